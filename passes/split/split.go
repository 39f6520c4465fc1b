// Package split does reductions and cumulative operations in stages. One that has too few rows to keep a GPU busy
// becomes two: one of parts of the rows, whose results are a tensor of its own, and one of the parts. The order in
// which elements are combined stays fixed by the program. The pass runs before fuse, so that what precedes the
// reduction joins the first kernel and what follows the second.
package split

import (
	"math"
	"slices"

	"weft/ir"
	"weft/passes/internal/sizing"
)

// Run splits the reductions of every entry. It tells whether anything changed.
func Run(p *ir.Program) (bool, error) {
	return ir.Replace(p, func(b *ir.Builder, op *ir.Op) ([]ir.Value, bool) {
		v, ok := splitter{b}.stagesOf(op)
		return []ir.Value{v}, ok
	})
}

type splitter struct{ b *ir.Builder }

// stagesOf gives the value of an operation in stages; false where it stays as it is.
func (s splitter) stagesOf(op *ir.Op) (ir.Value, bool) {
	switch op.Kind {
	case ir.OpReduce:
		a := op.Attrs.(*ir.ReduceAttrs)
		return s.split(op.Operands[0], a.Combine, a.Axes)
	case ir.OpArgReduce:
		return s.argReduce(op.Operands[0], op.Attrs.(*ir.ArgReduceAttrs))
	case ir.OpCumulative:
		return s.cumulative(op.Operands[0], op.Attrs.(*ir.CumulativeAttrs))
	}
	return ir.NoValue, false
}

// split gives the value of a reduction in stages; false where it is best in one.
func (s splitter) split(x ir.Value, c ir.Combine, axes []int) (ir.Value, bool) {
	if len(axes) == 0 {
		return x, false
	}
	t := s.b.Type(x)
	first := len(axes) - 1 // of the last run of adjacent axes
	for first > 0 && axes[first-1] == axes[first]-1 {
		first--
	}
	parts, alone := s.parts(t, axes, axes[first:])
	switch {
	case parts > 1:
		return s.stages(x, c, axes, func(x ir.Value) ir.Value {
			return s.reduceParts(x, c, axes[first], axes[len(axes)-1]+1, parts)
		}, func(x ir.Value) ir.Value {
			return s.reduce(x, c, append(slices.Clone(axes[:first]), axes[first]))
		}), true
	case first > 0 && !alone:
		return s.stages(x, c, axes, func(x ir.Value) ir.Value { return s.reduce(x, c, axes[first:]) },
			func(x ir.Value) ir.Value { return s.reduce(x, c, axes[:first]) }), true
	}
	return x, false
}

// stages runs two stages, in float32 at least: half types are rounded at the end.
func (s splitter) stages(x ir.Value, c ir.Combine, axes []int, first, second func(ir.Value) ir.Value) ir.Value {
	t := s.b.Type(x)
	var kept []ir.Dim
	for i, d := range t.Shape {
		if !slices.Contains(axes, i) {
			kept = append(kept, d)
		}
	}
	if t.DType.IsFloat() && t.DType.Size() < 4 && (c == ir.Sum || c == ir.Mul) {
		x = s.b.Convert(x, ir.F32)
	}
	return s.b.Convert(s.b.Reshape(second(first(x)), kept), t.DType)
}

// reduce reduces in as many stages as it takes.
func (s splitter) reduce(x ir.Value, c ir.Combine, axes []int) ir.Value {
	if v, ok := s.split(x, c, axes); ok {
		return v
	}
	return s.b.Reduce(c, x, axes...)
}

// reduceParts cuts the run of axes from lo to hi into parts and reduces each: one axis with an element for each part
// is left.
func (s splitter) reduceParts(x ir.Value, c ir.Combine, lo, hi int, parts int64) ir.Value {
	shape := s.b.Shape(x)
	run := ir.Product(shape[lo:hi])
	before, after := shape[:lo], shape[hi:]
	x = s.b.Reshape(x, slices.Concat(before, []ir.Dim{run}, after))
	x = s.cut(x, c, lo, parts)
	return s.b.Reduce(c, x, lo+1)
}

// cut makes two axes of one: parts, and the elements of each. What the last part lacks is filled with neutral elements.
func (s splitter) cut(x ir.Value, c ir.Combine, axis int, parts int64) ir.Value {
	shape := slices.Clone(s.b.Shape(x))
	part, ok := shape[axis].DivExact(ir.Const(parts))
	if !ok {
		part = shape[axis].CeilDiv(8 * parts).MulConst(8) // parts start at multiples of 16 bytes
	}
	if whole := part.MulConst(parts); !whole.Equal(shape[axis]) {
		low, high := make([]ir.Dim, len(shape)), make([]ir.Dim, len(shape))
		high[axis] = whole.Sub(shape[axis])
		x = s.b.Pad(x, s.identity(c, s.b.DType(x)), low, high, make([]int64, len(shape)))
	}
	shape[axis] = part
	return s.b.Reshape(x, slices.Insert(shape, axis, ir.Const(parts)))
}

// identity is the neutral element of a combination.
func (s splitter) identity(c ir.Combine, t ir.DType) ir.Value {
	v := ir.NewTensor(t)
	switch {
	case t == ir.Bool:
		v.SetInt(0, [...]int64{ir.Mul: 1, ir.Min: 1, ir.And: 1, ir.Assign: 0}[c])
	case t.IsFloat():
		v.SetFloat(0, [...]float64{ir.Mul: 1, ir.Max: math.Inf(-1), ir.Min: math.Inf(1), ir.Assign: 0}[c])
	default:
		least, most := int64(-1)<<(t.Bits()-1), int64(-1)^int64(-1)<<(t.Bits()-1)
		if t.IsUnsigned() {
			least, most = 0, -1
		}
		v.SetInt(0, [...]int64{ir.Mul: 1, ir.Max: least, ir.Min: most, ir.And: -1, ir.Assign: 0}[c])
	}
	return s.b.Constant(v)
}

const (
	// enough is the number of threads that keep a large GPU busy.
	enough = 1024 * sizing.Multiprocessors
	// splitBytes is the length of a row from which several blocks read it faster than one, counting the second kernel.
	splitBytes = 128 << 10
	// partColumns is what a block should have of a row at least.
	partColumns = 4096
	// partLoop is the number of elements that a thread should combine at least, where each thread has a row.
	partLoop = 16
	// stageBytes is what one kernel reads fast enough, however its rows lie.
	stageBytes = 2 << 20
	// mostParts bounds what the second stage has to combine.
	mostParts = 1024
)

// parts is the number of parts to make of the last run of axes, 1 for none. alone tells whether the reduction has rows
// enough as it is.
func (s splitter) parts(t ir.Type, axes, run []int) (parts int64, alone bool) {
	rows, columns, length := int64(1), int64(1), int64(1)
	for i, d := range t.Shape {
		n := s.estimate(d)
		switch {
		case slices.Contains(run, i):
			length = saturating(length, n)
			columns = saturating(columns, n)
		case slices.Contains(axes, i):
			columns = saturating(columns, n)
		default:
			rows = saturating(rows, n)
		}
	}
	if rows == 0 || columns == 0 {
		return 1, true
	}
	bytes := saturating(saturating(rows, columns), int64(t.DType.Size()))
	last := run[len(run)-1] == len(t.Shape)-1
	switch {
	case len(run) < len(axes) && last: // the runs before are parts already
		return 1, bytes <= stageBytes
	case last: // threads share a row: blocks are what there must be enough of
		alone = rows >= sizing.Multiprocessors || columns*int64(t.DType.Size()) < splitBytes
		parts = min(length/partColumns, 4*sizing.Multiprocessors/rows)
	default: // a thread has a row, or four
		alone = rows >= enough || columns < 2*partLoop || rows < 1024 && bytes <= stageBytes
		parts = min(length/partLoop, 4*enough/rows)
	}
	if alone {
		return 1, true
	}
	return s.even(ir.Product(t.Shape[run[0]:run[len(run)-1]+1]), min(parts, mostParts)), false
}

// even prefers a number of parts that divides a run into equal ones that start at multiples of 16 bytes.
func (s splitter) even(run ir.Dim, parts int64) int64 {
	for n := parts; n > parts/2; n-- {
		if run.DivisibleBy(8*n, s.b.Program.Divisor) {
			return n
		}
	}
	return parts
}

// estimate is the size that a dim is split for.
func (s splitter) estimate(d ir.Dim) int64 { return sizing.Estimate(s.b.Program, d) }

func saturating(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/64/a {
		return math.MaxInt64 / 64
	}
	return a * b
}
