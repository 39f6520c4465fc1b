package kernel

import (
	"slices"

	"weft/codegen/elementary"
	"weft/ir"
)

// What a softmax computes is bounded, whatever its input: e^(x - max x) is at most 1, and the sum of a row is at least
// 1. So its exponentials and quotients take fewer instructions than those of any numbers, for the same results.

// softmax gives the values of a softmax's exponentials and quotients; false for all other operations.
func (ev *evaluator) softmax(op *ir.Op, lanes []*Point) ([]*Expr, bool) {
	t := ev.entry.Type(op.Results[0]).DType
	switch {
	case op.Kind == ir.OpExponential && ev.shifted(op) != nil && (t == ir.F32 || t == ir.F64):
		out := slices.Clone(ev.value(op.Operands[0], lanes))
		for i, x := range out {
			out[i] = elementary.ExponentialOfSmall(machine{ev.b}, elementaryType(t), x)
		}
		return out, true
	case op.Kind == ir.OpDivide && t == ir.F32 && ev.normalised(op):
		sums := ev.value(op.Operands[1], lanes)
		if slices.ContainsFunc(sums, func(x *Expr) bool { return x != sums[0] }) || len(sums) == 1 {
			return nil, false // each lane has a divisor of its own
		}
		divisor := elementary.NewDivisor(machine{ev.b}, sums[0])
		out := slices.Clone(ev.value(op.Operands[0], lanes))
		for i, x := range out {
			out[i] = divisor.Divide(x)
		}
		return out, true
	}
	return nil, false
}

func elementaryType(t ir.DType) elementary.Type {
	return elementary.Type(slices.Index(elementaryTypes[:], t))
}

// shifted gives the reduction that finds max x when op is e^(x - max x), with the maximum over rows that x is in; else
// nil.
func (ev *evaluator) shifted(op *ir.Op) *ir.Op {
	if op == nil || op.Kind != ir.OpExponential {
		return nil
	}
	difference := ev.defs[op.Operands[0]]
	if difference == nil || difference.Kind != ir.OpSubtract {
		return nil
	}
	x := difference.Operands[0]
	if r := ev.rowResult(difference.Operands[1], ev.shape(x)); r != nil && r.Operands[0] == x && r.Attrs.(*ir.ReduceAttrs).Combine == ir.Max {
		return r
	}
	return nil
}

// normalised tells whether op divides e^(x - max x) by its sum over the same rows.
func (ev *evaluator) normalised(op *ir.Op) bool {
	maximum := ev.shifted(ev.defs[op.Operands[0]])
	if maximum == nil {
		return false
	}
	sum := ev.rowResult(op.Operands[1], ev.shape(op.Operands[0]))
	if sum == nil || sum.Operands[0] != op.Operands[0] {
		return false
	}
	a := sum.Attrs.(*ir.ReduceAttrs)
	return a.Combine == ir.Sum && slices.Equal(a.Axes, maximum.Attrs.(*ir.ReduceAttrs).Axes)
}

// rowResult finds the reduction whose result v spreads back over the shape that it reduces: each element of v is the
// result of the row in which the element lies. It is nil where v is anything else.
func (ev *evaluator) rowResult(v ir.Value, full []ir.Dim) *ir.Op {
	reduction, axes := ev.axesOf(v)
	if reduction == nil || !ir.SameShape(ev.shape(v), full) || !ir.SameShape(ev.shape(reduction.Operands[0]), full) {
		return nil
	}
	reduced := reduction.Attrs.(*ir.ReduceAttrs).Axes
	for d, axis := range axes {
		if axis != d && !(axis == -1 && (slices.Contains(reduced, d) || full[d].Is(1))) {
			return nil
		}
	}
	return reduction
}

// axesOf follows v through broadcasts and through reshapes that add or drop dims of size 1 back to a reduction. axes
// says for each dim of v along which axis of the reduction's operand it runs, -1 for those that repeat elements or
// have one.
func (ev *evaluator) axesOf(v ir.Value) (reduction *ir.Op, axes []int) {
	op := ev.defs[v]
	if op == nil {
		return nil, nil
	}
	switch op.Kind {
	case ir.OpReduce:
		for d := range ev.shape(op.Operands[0]) {
			if !slices.Contains(op.Attrs.(*ir.ReduceAttrs).Axes, d) {
				axes = append(axes, d)
			}
		}
		return op, axes
	case ir.OpBroadcastInDim:
		reduction, from := ev.axesOf(op.Operands[0])
		a := op.Attrs.(*ir.BroadcastAttrs)
		axes = slices.Repeat([]int{-1}, len(a.Dims))
		for i, axis := range from {
			if ev.shape(op.Operands[0])[i].Equal(a.Dims[a.Axes[i]]) {
				axes[a.Axes[i]] = axis
			}
		}
		return reduction, axes
	case ir.OpReshape:
		reduction, from := ev.axesOf(op.Operands[0])
		before := ev.shape(op.Operands[0])
		next := 0
		for _, d := range ev.shape(v) {
			for next < len(from) && before[next].Is(1) {
				next++
			}
			switch {
			case d.Is(1):
				axes = append(axes, -1)
			case next < len(from) && d.Equal(before[next]):
				axes = append(axes, from[next])
				next++
			default:
				return nil, nil
			}
		}
		return reduction, axes
	}
	return nil, nil
}
