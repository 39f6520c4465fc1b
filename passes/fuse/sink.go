package fuse

import (
	"slices"

	"weft/ir"
)

// sink copies what costs nothing, constants and views, from outside into the regions of control
// flow that use it: kernels then compute it, or read where it points, instead of reading it
// from memory.
func sink(e *ir.Entry) {
	s := &sinker{entry: e, defs: map[ir.Value]*ir.Op{}}
	s.block(&e.Body)
	if s.sunk {
		e.Body.DropDead()
	}
}

type sinker struct {
	entry *ir.Entry
	defs  map[ir.Value]*ir.Op // of the blocks around
	sunk  bool
}

func (s *sinker) block(b *ir.Block) {
	for _, op := range b.Ops {
		for _, r := range op.Regions {
			s.region(r)
		}
		for _, v := range op.Results {
			s.defs[v] = op
		}
	}
}

// region puts copies at the start of a region, then does the same for the regions inside it.
func (s *sinker) region(r *ir.Block) {
	copies := map[ir.Value]ir.Value{}
	var start []*ir.Op
	var take func(v ir.Value) ir.Value
	take = func(v ir.Value) ir.Value {
		op := s.defs[v]
		if op == nil || !free(op) {
			return v
		}
		if w, ok := copies[v]; ok {
			return w
		}
		made := *op
		made.Operands = slices.Clone(op.Operands)
		for i, o := range made.Operands {
			made.Operands[i] = take(o)
		}
		w := s.entry.NewValue(s.entry.Type(v))
		made.Results = []ir.Value{w}
		start = append(start, &made)
		copies[v] = w
		return w
	}
	r.Uses(func(v *ir.Value) { *v = take(*v) })
	s.sunk = s.sunk || len(start) > 0
	r.Ops = append(start, r.Ops...)
	s.block(r)
}
