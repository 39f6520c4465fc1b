package decompose

import (
	"math"

	"weft/ir"
)

// normal makes normal random numbers of two streams of uniform ones (Box and Muller, 1958): the
// radius sqrt(-2 log(1-u)) at the angle 2 pi v. Half types are rounded at the end.
func normal(b *ir.Builder, op *ir.Op) ir.Value {
	a := op.Attrs.(*ir.RngAttrs)
	inner := ir.F32
	if a.Type == ir.F64 {
		inner = ir.F64
	}
	uniform := func(stream int64) ir.Value {
		return b.Rng(op.Operands[0], &ir.RngAttrs{Type: inner, Dims: a.Dims, Stream: stream})
	}
	u, v := uniform(a.Stream), uniform(a.Stream+1)
	square := b.Binary(ir.OpMultiply, b.Unary(ir.OpLogPlusOne, b.Unary(ir.OpNegate, u)), b.FullLike(u, -2))
	angle := b.Binary(ir.OpMultiply, v, b.FullLike(v, 2*math.Pi))
	return b.Convert(b.Binary(ir.OpMultiply, b.Unary(ir.OpSqrt, square), b.Unary(ir.OpCosine, angle)), a.Type)
}
