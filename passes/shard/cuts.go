package shard

import (
	"slices"

	"weft/ir"
)

// cut is a part of a whole: what a slice takes, or what a pad puts among its padding.
type cut struct {
	whole, part   []ir.Dim
	start, stride func(d int) ir.Dim
	outside       func(d int) bool // some of the part may lie outside of the whole
}

// cutOf is the cut that a slice or a pad makes.
func cutOf(e *ir.Entry, op *ir.Op) cut {
	in, out := shapeOf(e, op.Operands[0]), shapeOf(e, op.Results[0])
	if a, ok := op.Attrs.(*ir.PadAttrs); ok {
		crops := func(d int) bool { return below(a.Low[d], in[d]) || below(a.High[d], in[d]) }
		return cut{out, in, func(d int) ir.Dim { return a.Low[d] }, func(d int) ir.Dim { return ir.Const(a.Interior[d] + 1) }, crops}
	}
	a := op.Attrs.(*ir.SliceAttrs)
	return cut{in, out, func(d int) ir.Dim { return a.Start[d] }, func(d int) ir.Dim { return ir.Const(a.Stride[d]) }, func(int) bool { return false }}
}

// below tells whether a padding of parts of a size may be negative, so that it takes elements away.
func below(padding, size ir.Dim) bool {
	n, ok := padding.IsConst()
	if !ok {
		var count ir.Dim
		if count, ok = padding.DivExact(size); ok {
			n, ok = count.IsConst()
		}
	}
	return !ok || n < 0
}

// stretch tells how the part lies in a dim: it is all of it, one of the stretches of its size, or neither (a
// size of 0).
func (c cut) stretch(d int) (keeps bool, stretch ir.Dim) {
	n, size, start := c.whole[d], c.part[d], c.start(d)
	if start.Is(0) && n.Equal(size) && c.stride(d).Is(1) {
		return true, n
	}
	if !c.stride(d).Is(1) || size.Is(0) || c.outside(d) {
		return false, ir.Dim{}
	}
	if _, ok := n.DivExact(size); !ok {
		return false, ir.Dim{}
	}
	if _, ok := start.DivExact(size); !ok && !start.Is(0) {
		return false, ir.Dim{}
	}
	return false, size
}

// interleaved is the stride where the part has one element of each stretch of so many, as of features of
// two kinds in turns; 0 where it has others.
func (c cut) interleaved(d int) int64 {
	start, ok := c.start(d).IsConst()
	stride, _ := c.stride(d).IsConst()
	if !ok || stride == 1 || start < 0 || start >= stride || !c.whole[d].Equal(c.part[d].MulConst(stride)) {
		return 0
	}
	return stride
}

// stretches tells whether the part consists of neighbouring stretches of a size, of which the whole consists
// too.
func (c cut) stretches(d int, size ir.Dim) (before, count, all ir.Dim, ok bool) {
	if !c.stride(d).Is(1) || size.Is(0) || c.outside(d) {
		return before, count, all, false
	}
	count, whole := c.part[d].DivExact(size)
	all, ok = c.whole[d].DivExact(size)
	before, starts := c.start(d).DivExact(size)
	return before, count, all, whole && ok && (starts || c.start(d).Is(0))
}

// stretchOf is one of the stretches that parts divide alike, and its parts.
func stretchOf(parts []ir.Part) (size ir.Dim, inner []ir.Part) {
	if len(parts[0].Axes) == 0 {
		parts = parts[1:]
	}
	return sizeOf(parts), parts
}

// ofWhole is the division of a dim of the whole for one of the part; nil where the part's cannot be kept.
func (pt *partitioner) ofWhole(c cut, d int, part []ir.Part) []ir.Part {
	if !divided(part) {
		return whole(c.whole[d])
	}
	if keeps, _ := c.stretch(d); keeps {
		return part
	}
	if stride := c.interleaved(d); stride > 0 {
		return pt.queryHeads(part, ir.Const(stride))
	}
	size, inner := stretchOf(part)
	if _, _, all, ok := c.stretches(d, size); ok {
		return pt.blocks(all, inner)
	}
	return nil
}

// ofPart is the division of a dim of the part for one of the whole; nil where the whole's cannot be kept.
func (pt *partitioner) ofPart(c cut, d int, parts []ir.Part) []ir.Part {
	if !divided(parts) {
		return whole(c.part[d])
	}
	if keeps, _ := c.stretch(d); keeps {
		return parts
	}
	if stride := c.interleaved(d); stride > 0 {
		return pt.keyHeads(parts, ir.Const(stride), c.part[d])
	}
	size, inner := stretchOf(parts)
	if _, count, _, ok := c.stretches(d, size); ok {
		return pt.blocks(count, inner)
	}
	return nil
}

func propagateCut(a *analysis, op *ir.Op) {
	c := cutOf(a.e, op)
	whole, part := op.Operands[0], op.Results[0]
	if op.Kind == ir.OpPad {
		whole, part = part, whole
	}
	for d := range c.whole {
		if parts := a.ofPart(c, d, a.of(whole)[d]); parts != nil {
			a.divide(part, d, parts)
		}
		if parts := a.ofWhole(c, d, a.of(part)[d]); parts != nil {
			a.divide(whole, d, parts)
		}
	}
}

func cutOperands(pt *partitioner, e *ir.Entry, op *ir.Op, result ir.Sharding) ([]ir.Sharding, ir.Sharding) {
	c := cutOf(e, op)
	operand, fits := make(ir.Sharding, len(result)), slices.Clone(result)
	for d := range result {
		if op.Kind == ir.OpPad {
			operand[d] = pt.ofPart(c, d, result[d])
			if operand[d] != nil { // the padding is as large as the parts are on a rank
				fits[d] = pt.ofWhole(c, d, operand[d])
			}
		} else {
			operand[d] = pt.ofWhole(c, d, result[d])
		}
		if operand[d] == nil || !(ir.Sharding{fits[d]}).Equal(ir.Sharding{result[d]}) {
			operand[d], fits[d] = whole(shapeOf(e, op.Operands[0])[d]), whole(shapeOf(e, op.Results[0])[d])
		}
	}
	if op.Kind == ir.OpPad {
		return []ir.Sharding{operand, {}}, fits
	}
	return []ir.Sharding{operand}, fits
}

// localSlice gives the bounds of a slice of whole stretches on a rank.
func (w *rewriter) localSlice(op *ir.Op, a *ir.SliceAttrs, operand, result ir.Sharding) *ir.SliceAttrs {
	local := &ir.SliceAttrs{Start: slices.Clone(a.Start), Limit: slices.Clone(a.Limit), Stride: a.Stride}
	in, out, c := operand.Local(w.mesh), result.Local(w.mesh), cutOf(w.e, op)
	for d := range in {
		keeps, _ := c.stretch(d)
		switch {
		case !divided(operand[d]):
		case keeps, c.interleaved(d) > 0:
			local.Limit[d] = in[d]
		default:
			size, inner := stretchOf(operand[d])
			before, _, _, _ := c.stretches(d, size)
			local.Start[d] = before.Mul(ir.Sharding{inner}.Local(w.mesh)[0])
			local.Limit[d] = local.Start[d].Add(out[d])
		}
	}
	return local
}

// localPad gives the padding around stretches on a rank.
func (w *rewriter) localPad(op *ir.Op, a *ir.PadAttrs, operand ir.Sharding) *ir.PadAttrs {
	local := &ir.PadAttrs{Low: slices.Clone(a.Low), High: slices.Clone(a.High), Interior: a.Interior}
	c := cutOf(w.e, op)
	for d, parts := range operand {
		if keeps, _ := c.stretch(d); !divided(parts) || keeps || c.interleaved(d) > 0 {
			continue
		}
		size, inner := stretchOf(parts)
		before, count, all, _ := c.stretches(d, size)
		each := ir.Sharding{inner}.Local(w.mesh)[0]
		local.Low[d], local.High[d] = before.Mul(each), all.Sub(before).Sub(count).Mul(each)
	}
	return local
}
