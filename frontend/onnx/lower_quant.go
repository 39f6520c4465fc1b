package onnx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// spread makes a scale or zero point broadcast against x: a scalar, one number along an axis,
// or with a block size one number a block along the axis.
func (n *node) spread(v, x ir.Value, axis int, block int64) ir.Value {
	b := n.b
	shape := b.Shape(x)
	switch {
	case b.Rank(v) == 0 || b.Type(v).Numel().Is(1) && b.Rank(v) <= 1:
		return b.Broadcast(b.Reshape(v, nil), shape, nil)
	case block > 0:
		if b.Rank(v) != len(shape) {
			n.wrong("a scale of %s for %s in blocks", b.Type(v), b.Type(x))
		}
		// Repeat each element along the axis, and cut what the last block has too many.
		parts := b.Shape(v)
		split := slices.Insert(slices.Clone(parts), axis+1, ir.Const(1))
		wide := slices.Insert(slices.Clone(parts), axis+1, ir.Const(block))
		joined := slices.Clone(parts)
		joined[axis] = joined[axis].MulConst(block)
		v = b.Reshape(b.BroadcastTo(b.Reshape(v, split), wide), joined)
		return n.sameDims(b.SliceAxis(v, axis, ir.Const(0), shape[axis], 1), shape)
	case b.Rank(v) == 1 && len(shape) > 0:
		return b.Broadcast(n.sameDims(v, shape[axis:axis+1]), shape, []int{axis})
	case b.Rank(v) == len(shape):
		return b.Broadcast(v, shape, n.allAxes(x))
	}
	n.wrong("a scale of %s for %s", b.Type(v), b.Type(x))
	return v
}

// integerRange gives the smallest and largest value of an integer type.
func integerRange(t ir.DType) (low, high float64) {
	if t.IsUnsigned() {
		return 0, math.Ldexp(1, t.Bits()) - 1
	}
	return -math.Ldexp(1, t.Bits()-1), math.Ldexp(1, t.Bits()-1) - 1
}

// quantize rounds x/scale to even, adds the zero point (ir.NoValue: 0) and saturates. x and
// scale are of one float type.
func (n *node) quantize(x, scale, zero ir.Value, to ir.DType, saturate bool) ir.Value {
	b := n.b
	y := b.Binary(ir.OpDivide, x, scale)
	if to.IsFloat() {
		if zero != ir.NoValue {
			y = b.Binary(ir.OpAdd, y, b.Convert(zero, b.DType(y)))
		}
		return b.Op(ir.OpConvert, &ir.ConvertAttrs{To: to, Saturate: saturate && to.Bits() == 8}, nil, y)[0]
	}
	y = b.Unary(ir.OpRoundNearestEven, y)
	if zero != ir.NoValue {
		y = b.Binary(ir.OpAdd, y, b.Convert(zero, b.DType(y)))
	}
	low, high := integerRange(to)
	y = lower.Clip(b, y, low, high)
	if to.Bits() < 8 {
		y = b.Convert(y, ir.I32)
	}
	return b.Convert(y, to)
}

func quantizeLinear(n *node) {
	x, scale := n.in(0), n.in(1)
	b := n.b
	to := n.dtypeAttr("output_dtype", ir.InvalidDType)
	if n.has(2) {
		to = b.DType(n.in(2))
	}
	if to == ir.InvalidDType {
		to = ir.U8
	}
	axis, block := n.quantAxis(x)
	compute := ir.F32
	if p := n.dtypeAttr("precision", ir.InvalidDType); p == ir.F64 {
		compute = p
	}
	wide := n.spread(b.Convert(scale, compute), x, axis, block)
	zero := ir.NoValue
	if n.has(2) {
		zero = n.spread(b.Convert(n.in(2), compute), x, axis, block)
	}
	n.set(n.quantize(b.Convert(x, compute), wide, zero, to, n.flag("saturate", true)))
}

func (n *node) quantAxis(x ir.Value) (axis int, block int64) {
	block = n.int("block_size", 0)
	if block < 0 || block > 1<<40 {
		n.wrong("block_size %d", block)
	}
	if n.b.Rank(x) == 0 {
		return 0, 0
	}
	a := n.int("axis", 1)
	if n.b.Rank(x) == 1 && a == 1 {
		a = 0
	}
	return n.axis(a, n.b.Rank(x)), block
}

func dequantizeLinear(n *node) {
	x, scale := n.in(0), n.in(1)
	b := n.b
	to := n.dtypeAttr("output_dtype", ir.InvalidDType)
	if to == ir.InvalidDType {
		to = b.DType(scale)
	}
	axis, block := n.quantAxis(x)
	zero := n.opt(2)
	if zero != ir.NoValue {
		zero = n.spread(b.Convert(zero, ir.F32), x, axis, block)
	}
	y := b.Convert(x, ir.F32)
	if b.DType(x) == ir.I32 {
		y = b.Convert(x, ir.F64)
		if zero != ir.NoValue {
			zero = b.Convert(zero, ir.F64)
		}
	}
	if zero != ir.NoValue {
		y = b.Binary(ir.OpSubtract, y, zero)
	}
	wide := n.spread(b.Convert(scale, b.DType(y)), x, axis, block)
	n.set(b.Convert(b.Binary(ir.OpMultiply, y, wide), to))
}

func dynamicQuantizeLinear(n *node) {
	x := n.in(0)
	b := n.b
	axes := n.allAxes(x)
	zero := b.Scalar(ir.F32, 0)
	low := b.Binary(ir.OpMinimum, b.Reduce(ir.Min, x, axes...), zero)
	high := b.Binary(ir.OpMaximum, b.Reduce(ir.Max, x, axes...), zero)
	scale := b.Binary(ir.OpDivide, b.Binary(ir.OpSubtract, high, low), b.Scalar(ir.F32, 255))
	point := b.Unary(ir.OpRoundNearestEven, lower.Clip(b, b.Unary(ir.OpNegate, b.Binary(ir.OpDivide, low, scale)), 0, 255))
	shape := b.Shape(x)
	y := n.quantize(x, b.Broadcast(scale, shape, nil), b.Broadcast(point, shape, nil), ir.U8, true)
	n.set(y, scale, b.Convert(point, ir.U8))
}

// shifted is input i as i32 less the zero point of input z, which broadcasts along an axis.
func (n *node) shifted(i, z, axis int) ir.Value {
	x := n.b.Convert(n.in(i), ir.I32)
	if !n.has(z) {
		return x
	}
	zero := n.spread(n.b.Convert(n.in(z), ir.I32), x, max(axis, 0), 0)
	return n.b.Binary(ir.OpSubtract, x, zero)
}

func matMulInteger(n *node) {
	a := n.shifted(0, 2, n.b.Rank(n.in(0))-2)
	n.set(n.matmul(a, n.shifted(1, 3, n.b.Rank(n.in(1))-1)))
}

func convInteger(n *node) { n.set(n.convolution(n.shifted(0, 2, 1), n.shifted(1, 3, 0))) }

// requantize scales an i32 product to the type of the output's zero point.
func (n *node) requantize(product, scale ir.Value, outScale, outZero int, axis int) ir.Value {
	b := n.b
	to := b.DType(n.in(outZero))
	y := b.Binary(ir.OpMultiply, b.Convert(product, ir.F64), n.spread(scale, product, axis, 0))
	wide := n.spread(b.Convert(n.in(outScale), ir.F64), product, axis, 0)
	return n.quantize(y, wide, n.spread(b.Convert(n.in(outZero), ir.F64), product, axis, 0), to, true)
}

func qLinearMatMul(n *node) {
	b := n.b
	x, y := n.in(0), n.in(3)
	product := n.matmul(n.shifted(0, 2, b.Rank(x)-2), n.shifted(3, 5, b.Rank(y)-1))
	rank := b.Rank(product)
	// Scales of rows and of columns broadcast against the product.
	row, column := b.Convert(n.in(1), ir.F64), b.Convert(n.in(4), ir.F64)
	if b.Rank(row) == 1 && rank >= 2 {
		row = b.Reshape(row, []ir.Dim{b.Shape(row)[0], ir.Const(1)})
	}
	scale := n.binary(ir.OpMultiply, row, column)
	if b.Type(scale).Numel().Is(1) {
		scale = b.Reshape(scale, nil)
	} else {
		scale = b.BroadcastTo(scale, b.Shape(product))
	}
	n.set(n.requantize(product, scale, 6, 7, max(rank-1, 0)))
}

func qLinearConv(n *node) {
	b := n.b
	x, w := n.shifted(0, 2, 1), n.shifted(3, 5, 0)
	product := n.convolution(x, w)
	if n.has(8) {
		product = b.Binary(ir.OpAdd, product, b.BroadcastTo(lower.Channels(b, n.in(8), b.Rank(product)), b.Shape(product)))
	}
	scale := n.binary(ir.OpMultiply, b.Reshape(b.Convert(n.in(1), ir.F64), nil), b.Convert(n.in(4), ir.F64))
	n.set(n.requantize(product, scale, 6, 7, 1))
}
