package split

import (
	"slices"

	"weft/ir"
	"weft/passes/internal/sizing"
)

const (
	// scanLength is the length of an axis from which several blocks scan it faster than one.
	scanLength = 32 << 10
	// scanPart is what a block should scan at least.
	scanPart = 4096
	// scanLoop is the number of elements that a thread should scan at least, where each thread has a row.
	scanLoop = 64
)

// operators are the combinations as operators.
var operators = map[ir.Combine]ir.Kind{ir.Sum: ir.OpAdd, ir.Mul: ir.OpMultiply, ir.Max: ir.OpMaximum, ir.Min: ir.OpMinimum,
	ir.And: ir.OpAnd, ir.Or: ir.OpOr, ir.Xor: ir.OpXor}

// cumulative gives the value of a cumulative operation in stages: each part of the axis on its own, then what is
// before each part, then both together; false where it is best in one. It is float32 at least inside.
func (s splitter) cumulative(x ir.Value, a *ir.CumulativeAttrs) (ir.Value, bool) {
	t := s.b.Type(x)
	parts := s.scanParts(t, a.Axis)
	if parts < 2 || t.DType == ir.Bool {
		return x, false
	}
	if t.DType.IsFloat() && t.DType.Size() < 4 && (a.Combine == ir.Sum || a.Combine == ir.Mul) {
		x = s.b.Convert(x, ir.F32)
	}
	x = s.cut(x, a.Combine, a.Axis, parts)
	within := *a
	within.Axis++
	scanned := s.b.Cumulative(x, &within)
	totals := s.lastOf(scanned, &within)
	if a.Exclusive {
		totals = s.b.Binary(operators[a.Combine], totals, s.lastOf(x, &within))
	}
	before := *a
	before.Exclusive = true
	offsets := s.b.Cumulative(totals, &before)

	shape := s.b.Shape(scanned)
	axes := make([]int, 0, len(shape)-1)
	for i := range shape {
		if i != within.Axis {
			axes = append(axes, i)
		}
	}
	out := s.b.Binary(operators[a.Combine], s.b.Broadcast(offsets, shape, axes), scanned)
	padded := slices.Delete(slices.Clone(shape), a.Axis, a.Axis+1)
	padded[a.Axis] = shape[a.Axis].Mul(shape[within.Axis])
	out = s.b.Reshape(out, padded)
	if !ir.SameShape(padded, t.Shape) {
		out = s.b.SliceAxis(out, a.Axis, ir.Const(0), t.Shape[a.Axis], 1)
	}
	return s.b.Convert(out, t.DType), true
}

// lastOf takes the element that a scan comes to last; its axis goes.
func (s splitter) lastOf(x ir.Value, a *ir.CumulativeAttrs) ir.Value {
	shape := s.b.Shape(x)
	end := shape[a.Axis]
	if a.Reverse {
		end = ir.Const(1)
	}
	x = s.b.SliceAxis(x, a.Axis, end.AddConst(-1), end, 1)
	return s.b.Reshape(x, slices.Delete(slices.Clone(shape), a.Axis, a.Axis+1))
}

// scanParts is the number of parts to make of an axis.
func (s splitter) scanParts(t ir.Type, axis int) int64 {
	length := s.estimate(t.Shape[axis])
	rows, last := int64(1), true
	for i, d := range t.Shape {
		if i != axis {
			rows = saturating(rows, s.estimate(d))
			last = last && (i < axis || d.Is(1))
		}
	}
	switch {
	case rows == 0:
		return 1
	case last && rows < sizing.Multiprocessors/2 && length >= scanLength:
		return s.even(t.Shape[axis], min(length/scanPart, 2*sizing.Multiprocessors/rows))
	case !last && rows < enough/16 && length >= 8*scanLoop:
		return s.even(t.Shape[axis], min(length/scanLoop, enough/8/rows))
	}
	return 1
}
