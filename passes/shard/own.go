package shard

import (
	"slices"

	"weft/ir"
	"weft/ir/diag"
)

// declare takes a program that has collectives of its own, whose types are those of one rank. It cannot
// be partitioned again, but rules may say of which global tensors its parameters and inputs are
// the parts: then a run takes those, whole.
func (o Options) declare(p *ir.Program) (bool, error) {
	if o.Auto != nil || len(o.Strategies) > 0 || !slices.Equal(p.Mesh.Axes, o.Mesh.Axes) {
		return false, diag.Errorf(diag.BadMesh, "", "the model has collectives of its own, for a mesh %s; it cannot be partitioned again", p.Mesh)
	}
	if err := o.check(p); err != nil {
		return false, err
	}
	changed := false
	for i := range p.States {
		s := &p.States[i]
		if r := ruleFor(o.Parameters, s.Name); r != nil && s.Shard == nil {
			s.Shard = wholeOf(s.Type, r, p.Mesh)
			changed = changed || s.Shard != nil
		}
	}
	for _, e := range p.Entries {
		for i := range e.Inputs {
			in := &e.Inputs[i]
			if r := ruleFor(o.Inputs, inputNames(e, i)...); r != nil && in.State == "" && in.Shard == nil {
				in.Shard = wholeOf(e.Type(e.Body.Params[i]), r, p.Mesh)
				changed = changed || in.Shard != nil
			}
		}
	}
	return changed, nil
}

// wholeOf is the global tensor of which each rank has one of equal parts; nil where nothing is divided.
func wholeOf(part ir.Type, r *Rule, m ir.Mesh) ir.Sharding {
	whole := make(ir.Sharding, part.Rank())
	for i, d := range part.Shape {
		whole[i] = []ir.Part{{Size: d.MulConst(m.Extent(r.Dims[i])), Axes: r.Dims[i]}}
	}
	if len(whole.Axes()) == 0 {
		return nil
	}
	return whole
}
