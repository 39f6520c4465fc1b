package shard

import (
	"slices"

	"weft/ir"
)

// divideHeads divides attention by heads: composite attention, or products of two activations
// with batch dims, of which the last is the heads'.
func (a *analysis) divideHeads(op *ir.Op, axis string) {
	switch op.Kind {
	case ir.OpAttention:
		keys := shapeOf(a.e, op.Operands[1])[1]
		part := ir.Part{Size: keys, Axes: []string{axis}}
		if each := heads(a.e, op); each.Is(1) || a.even(part) {
			a.divide(op.Results[0], 1, a.queryHeads([]ir.Part{part}, each))
		}
	case ir.OpDotGeneral:
		if a.parameter(op.Operands[0]) || a.parameter(op.Operands[1]) {
			return
		}
		v := op.Results[0]
		switch n := len(op.Attrs.(*ir.DotAttrs).LhsBatch); {
		case n >= 2:
			a.divide(v, n-1, []ir.Part{{Size: shapeOf(a.e, v)[n-1], Axes: []string{axis}}})
			a.propagate()
		case n == 1 && !a.uses(op, axis):
			a.divideJoined(op, axis)
		}
	}
}

// divideJoined divides a product of two activations by heads where these were joined with the batch, and where
// weights are divided by that.
func (a *analysis) divideJoined(op *ir.Op, axis string) {
	v, at := op.Results[0], op.Attrs.(*ir.DotAttrs)
	heads, ok := a.joinedLast(op.Operands[0], at.LhsBatch[0])
	if !ok {
		heads, ok = a.joinedLast(op.Operands[1], at.RhsBatch[0])
	}
	if !ok {
		return
	}
	batch, ok := shapeOf(a.e, v)[0].DivExact(heads)
	if !ok {
		return
	}
	a.propagate() // of the heads before
	a.trial = nil
	apart := a.regroup(a.of(v)[:1], []ir.Dim{batch, heads})
	a.divide(v, 0, a.normal(append(slices.Clone(apart[0]), ir.Part{Size: heads, Axes: []string{axis}})))
	a.propagate()
	weights := slices.ContainsFunc(a.trial, func(c change) bool { return a.def[c.v] == nil && a.parameter(c.v) })
	if !weights || !a.pays(axis) {
		a.takeBack()
	}
}

// joinedLast is the last of the dims that a reshape joined into dim d of a value.
func (a *analysis) joinedLast(v ir.Value, d int) (last ir.Dim, ok bool) {
	for {
		op := a.def[v]
		if op == nil {
			return last, false
		}
		switch {
		case op.Kind == ir.OpTranspose:
			d = op.Attrs.(*ir.TransposeAttrs).Permutation[d]
		case op.Kind == ir.OpReshape:
			from := shapeOf(a.e, op.Operands[0])
			first, end := joined(from, shapeOf(a.e, v), d)
			if end-first > 1 {
				return from[end-1], true
			} else if end == first {
				return last, false
			}
			d = first
		case op.Kind == ir.OpSlice && shapeOf(a.e, op.Operands[0])[d].Equal(shapeOf(a.e, v)[d]):
		case op.Kind.Info().Class == ir.ClassElementwise:
		default:
			return last, false
		}
		v = op.Operands[0]
	}
}

// joined is the stretch of dims that a reshape makes dim d of, without those of size 1 at its ends; none where
// dims are cut.
func joined(from, to []ir.Dim, d int) (first, end int) {
	before, n := ir.Product(to[:d]), to[d]
	for first = range from {
		if ir.Product(from[:first]).Equal(before) && !from[first].Is(1) {
			break
		}
	}
	for end = first + 1; end <= len(from); end++ {
		if ir.Product(from[first:end]).Equal(n) {
			return first, end
		}
	}
	return 0, 0
}
