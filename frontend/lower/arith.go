package lower

import (
	"math"
	"slices"

	"weft/ir"
	"weft/ir/diag"
)

// joinShapes joins shapes as NumPy does: dims align at the end, and a dim of size 1 takes
// the other's size. Of two dims that cannot be told equal, a constant is preferred, then the
// first; ok is false for two different constants.
func joinShapes(shapes ...[]ir.Dim) (joined []ir.Dim, ok bool) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	joined = ir.Consts(slices.Repeat([]int64{1}, rank)...)
	for _, s := range shapes {
		for i, d := range s {
			at := &joined[rank-len(s)+i]
			_, isConst := d.IsConst()
			_, wasConst := at.IsConst()
			switch {
			case d.Is(1) || d.Equal(*at):
			case at.Is(1) || isConst && !wasConst:
				*at = d
			case isConst && wasConst:
				return nil, false
			}
		}
	}
	return joined, true
}

// Broadcast brings values to their common shape by NumPy's rules. Dims that are not seen to be
// equal are taken to be: a reshape states it.
func Broadcast(b *ir.Builder, xs ...ir.Value) []ir.Value {
	shapes := make([][]ir.Dim, len(xs))
	for i, x := range xs {
		shapes[i] = b.Shape(x)
	}
	shape, ok := joinShapes(shapes...)
	if !ok {
		d := diag.Errorf("W2002", b.Loc, "shapes do not broadcast together")
		for _, s := range shapes {
			d.Note("shape %s", ir.DimList(s))
		}
		ir.Fail(d)
	}
	out := make([]ir.Value, len(xs))
	for i, x := range xs {
		out[i] = Expand(b, x, shape)
	}
	return out
}

// Expand broadcasts x to a shape of at least its rank by NumPy's rules. A dim of x that is
// neither 1 nor seen to be equal to the shape's is taken to be: a reshape states it.
func Expand(b *ir.Builder, x ir.Value, shape []ir.Dim) ir.Value {
	own := slices.Clone(b.Shape(x))
	if len(own) > len(shape) {
		ir.Fail(diag.Errorf("W2002", b.Loc, "%s cannot be expanded to %s", b.Type(x), ir.DimList(shape)))
	}
	for i, d := range own {
		want := shape[len(shape)-len(own)+i]
		_, c1 := d.IsConst()
		_, c2 := want.IsConst()
		if !d.Is(1) && !(c1 && c2) {
			own[i] = want
		}
	}
	return b.BroadcastTo(b.Reshape(x, own), shape)
}

// Binary broadcasts two operands of one element type and combines them.
func Binary(b *ir.Builder, kind ir.Kind, x, y ir.Value) ir.Value {
	xs := Broadcast(b, x, y)
	return b.Binary(kind, xs[0], xs[1])
}

// BinaryScalar combines every element of x with a number of x's element type.
func BinaryScalar(b *ir.Builder, kind ir.Kind, x ir.Value, v float64) ir.Value {
	return b.Binary(kind, x, b.FullLike(x, v))
}

// Compare broadcasts two operands of one element type and compares them.
func Compare(b *ir.Builder, d ir.Direction, x, y ir.Value) ir.Value {
	xs := Broadcast(b, x, y)
	return b.Compare(d, xs[0], xs[1])
}

// CompareScalar compares every element of x with a number.
func CompareScalar(b *ir.Builder, d ir.Direction, x ir.Value, v float64) ir.Value {
	return b.Compare(d, x, b.FullLike(x, v))
}

// Where broadcasts three operands and chooses x where p is true, else y.
func Where(b *ir.Builder, p, x, y ir.Value) ir.Value {
	xs := Broadcast(b, p, x, y)
	return b.Select(xs[0], xs[1], xs[2])
}

// Truth converts to bool: true where x is not zero.
func Truth(b *ir.Builder, x ir.Value) ir.Value { return b.Convert(x, ir.Bool) }

// Not inverts a bool.
func Not(b *ir.Builder, x ir.Value) ir.Value { return b.Unary(ir.OpNot, x) }

// Trunc rounds floats toward zero; integers stay.
func Trunc(b *ir.Builder, x ir.Value) ir.Value {
	if !b.DType(x).IsFloat() {
		return x
	}
	negative := CompareScalar(b, ir.LT, x, 0)
	return b.Select(negative, b.Unary(ir.OpCeil, x), b.Unary(ir.OpFloor, x))
}

// FloorDiv divides and rounds toward minus infinity, as Python's // does.
func FloorDiv(b *ir.Builder, x, y ir.Value) ir.Value {
	xs := Broadcast(b, x, y)
	x, y = xs[0], xs[1]
	q := b.Binary(ir.OpDivide, x, y)
	switch {
	case b.DType(x).IsFloat():
		return b.Unary(ir.OpFloor, q)
	case b.DType(x).IsUnsigned():
		return q
	}
	r := b.Binary(ir.OpRemainder, x, y)
	return b.Select(oppositeRemainder(b, r, y), BinaryScalar(b, ir.OpSubtract, q, 1), q)
}

// FloorMod is the remainder with the sign of the divisor, as Python's % has it.
func FloorMod(b *ir.Builder, x, y ir.Value) ir.Value {
	xs := Broadcast(b, x, y)
	x, y = xs[0], xs[1]
	r := b.Binary(ir.OpRemainder, x, y)
	if b.DType(x).IsUnsigned() {
		return r
	}
	return b.Select(oppositeRemainder(b, r, y), b.Binary(ir.OpAdd, r, y), r)
}

// oppositeRemainder tells where r is not zero and has another sign than y.
func oppositeRemainder(b *ir.Builder, r, y ir.Value) ir.Value {
	signs := b.Binary(ir.OpXor, CompareScalar(b, ir.LT, r, 0), CompareScalar(b, ir.LT, y, 0))
	return b.Binary(ir.OpAnd, CompareScalar(b, ir.NE, r, 0), signs)
}

// IsNaN tells where x is not a number; never for integers.
func IsNaN(b *ir.Builder, x ir.Value) ir.Value { return b.Compare(ir.NE, x, x) }

// IsInf tells where x is infinite, of the signs that are asked for.
func IsInf(b *ir.Builder, x ir.Value, positive, negative bool) ir.Value {
	t := b.Type(x)
	switch {
	case !t.DType.IsFloat() || !positive && !negative:
		return b.Full(t.With(ir.Bool), 0)
	case positive && negative:
		return b.Compare(ir.EQ, b.Unary(ir.OpAbs, x), b.FullLike(x, math.Inf(1)))
	case positive:
		return b.Compare(ir.EQ, x, b.FullLike(x, math.Inf(1)))
	}
	return b.Compare(ir.EQ, x, b.FullLike(x, math.Inf(-1)))
}

// WrapIndex adds size to negative indices, as NumPy counts from the end.
func WrapIndex(b *ir.Builder, indices ir.Value, size ir.Dim) ir.Value {
	t := b.Type(indices)
	if t.DType.IsUnsigned() {
		return indices
	}
	if t.DType.Bits() < 64 {
		indices = b.Convert(indices, ir.I64)
	}
	n := b.Broadcast(b.Dim(size), t.Shape, nil)
	return b.Select(CompareScalar(b, ir.LT, indices, 0), b.Binary(ir.OpAdd, indices, n), indices)
}

// OneHot puts a new axis of size depth: the scalar on where its index equals the element of
// indices (negative ones count from the end), else the scalar off.
func OneHot(b *ir.Builder, indices ir.Value, depth ir.Dim, axis int, on, off ir.Value) ir.Value {
	wrapped := WrapIndex(b, indices, depth)
	shape := slices.Insert(slices.Clone(b.Shape(indices)), axis, depth)
	axes := make([]int, 0, len(shape)-1)
	for i := range shape {
		if i != axis {
			axes = append(axes, i)
		}
	}
	hit := b.Compare(ir.EQ, b.Iota(b.DType(wrapped), shape, axis), b.Broadcast(wrapped, shape, axes))
	return b.Select(hit, b.Broadcast(on, shape, nil), b.Broadcast(off, shape, nil))
}

// Triangle keeps the lower (or upper) triangle of the last two dims: elements with
// column - row <= offset (or >= offset); others become zero. The offset is a scalar i64.
func Triangle(b *ir.Builder, x, offset ir.Value, upper bool) ir.Value {
	shape, rank := b.Shape(x), b.Rank(x)
	row, column := b.Iota(ir.I64, shape, rank-2), b.Iota(ir.I64, shape, rank-1)
	direction := ir.LE
	if upper {
		direction = ir.GE
	}
	keep := b.Compare(direction, b.Binary(ir.OpSubtract, column, row), b.Broadcast(offset, shape, nil))
	return b.Select(keep, x, b.FullLike(x, 0))
}
