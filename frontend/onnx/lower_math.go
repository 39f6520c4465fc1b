package onnx

import (
	"math"

	"weft/frontend/lower"
	"weft/ir"
)

// unary lowers to one primitive.
func unary(kind ir.Kind) func(*node) {
	return func(n *node) { n.set(n.b.Unary(kind, n.in(0))) }
}

// function lowers to a formula of one operand.
func function(f func(b *ir.Builder, x ir.Value) ir.Value) func(*node) {
	return func(n *node) { n.set(f(n.b, n.in(0))) }
}

// inFloat32 lowers to a formula of one operand that is computed in at least float32.
func inFloat32(f func(n *node, x ir.Value) ir.Value) func(*node) {
	return func(n *node) {
		n.set(lower.InFloat32(n.b, func(xs []ir.Value) ir.Value { return f(n, xs[0]) }, n.in(0)))
	}
}

// pairwise lowers to one primitive of two operands that broadcast.
func pairwise(kind ir.Kind) func(*node) {
	return func(n *node) { n.set(n.binary(kind, n.in(0), n.in(1))) }
}

// formula lowers to a formula of two operands that broadcast.
func formula(f func(b *ir.Builder, x, y ir.Value) ir.Value) func(*node) {
	return func(n *node) {
		xs := n.broadcast(n.in(0), n.in(1))
		n.set(f(n.b, xs[0], xs[1]))
	}
}

func comparison(d ir.Direction) func(*node) {
	return formula(func(b *ir.Builder, x, y ir.Value) ir.Value { return b.Compare(d, x, y) })
}

// variadic combines any number of operands that broadcast.
func variadic(kind ir.Kind) func(*node) {
	return func(n *node) { n.set(combineAll(n, kind)) }
}

func combineAll(n *node, kind ir.Kind) ir.Value {
	xs := n.broadcast(n.all()...)
	sum := xs[0]
	for _, x := range xs[1:] {
		sum = n.b.Binary(kind, sum, x)
	}
	return sum
}

func mean(n *node) {
	n.set(lower.Scale(n.b, combineAll(n, ir.OpAdd), 1/float64(len(n.p.inputs))))
}

// pow has an exponent of any type; the result has the base's.
func pow(n *node) {
	x, y := n.in(0), n.in(1)
	to, wide := n.b.DType(x), n.b.DType(x)
	if ty := n.b.DType(y); ty.IsFloat() && !to.IsFloat() {
		wide = ir.F64
	}
	// A square is common, and exact as a product.
	if c, ok := n.known.Floats(y); ok && len(c) == 1 && c[0] == 2 && n.b.Rank(y) <= n.b.Rank(x) {
		n.set(n.b.Binary(ir.OpMultiply, x, x))
		return
	}
	n.set(n.b.Convert(n.binary(ir.OpPower, n.b.Convert(x, wide), n.b.Convert(y, wide)), to))
}

func mod(n *node) {
	if n.flag("fmod", false) {
		pairwise(ir.OpRemainder)(n)
		return
	}
	formula(lower.FloorMod)(n)
}

func bitShift(n *node) {
	kind := ir.OpShiftLeft
	switch {
	case n.choice("direction", "", "LEFT", "RIGHT") == "LEFT":
	case n.b.DType(n.in(0)).IsSigned():
		kind = ir.OpShiftRightArithmetic
	default:
		kind = ir.OpShiftRightLogical
	}
	pairwise(kind)(n)
}

func prelu(n *node) {
	xs := n.broadcast(n.in(0), n.in(1))
	b := n.b
	n.set(b.Select(lower.CompareScalar(b, ir.LT, xs[0], 0), b.Binary(ir.OpMultiply, xs[0], xs[1]), xs[0]))
}

func where(n *node) {
	xs := n.broadcast(n.in(0), n.in(1), n.in(2))
	n.set(n.b.Select(xs[0], xs[1], xs[2]))
}

func isInf(n *node) {
	n.set(lower.IsInf(n.b, n.in(0), n.flag("detect_positive", true), n.flag("detect_negative", true)))
}

// clipAttributes is Clip before version 11.
func clipAttributes(n *node) {
	n.set(lower.Clip(n.b, n.in(0), n.float("min", -math.MaxFloat32), n.float("max", math.MaxFloat32)))
}

func clip(n *node) {
	x := n.in(0)
	if n.has(1) {
		x = n.b.Binary(ir.OpMaximum, x, n.b.Broadcast(n.scalarIn(1), n.b.Shape(x), nil))
	}
	if n.has(2) {
		x = n.b.Binary(ir.OpMinimum, x, n.b.Broadcast(n.scalarIn(2), n.b.Shape(x), nil))
	}
	n.set(x)
}

func cast(n *node) {
	to := n.dtypeAttr("to", ir.InvalidDType)
	if to == ir.InvalidDType {
		n.missingAttribute("to")
	}
	n.set(n.castTo(n.in(0), to))
}

func castLike(n *node) { n.set(n.castTo(n.in(0), n.b.DType(n.in(1)))) }

func (n *node) castTo(x ir.Value, to ir.DType) ir.Value {
	from := n.b.DType(x)
	switch {
	case from == to:
		return x
	case from == ir.String || to == ir.String:
		n.unsupportedForm("conversion of strings")
	case to == ir.F8E8M0FNU:
		if mode := n.str("round_mode", "up"); mode != "up" {
			n.unsupportedForm("round_mode %q", mode)
		}
		x = n.roundUpToPower(x)
	}
	if from.IsFloat() && to.IsInteger() && to.Bits() < 8 {
		x = n.b.Convert(x, ir.I32) // narrow integers keep the low bits
	}
	saturate := to.IsFloat() && to.Bits() == 8 && n.flag("saturate", true)
	return n.b.Op(ir.OpConvert, &ir.ConvertAttrs{To: to, Saturate: saturate}, nil, x)[0]
}

// roundUpToPower makes the next power of two that is not smaller, in float32.
func (n *node) roundUpToPower(x ir.Value) ir.Value {
	b := n.b
	bits := b.Op(ir.OpBitcastConvert, &ir.BitcastAttrs{To: ir.U32}, nil, b.Convert(x, ir.F32))[0]
	up := b.Binary(ir.OpAdd, bits, b.FullLike(bits, 0x7fffff))
	masked := b.Binary(ir.OpAnd, up, b.FullLike(bits, 0xff800000))
	return b.Op(ir.OpBitcastConvert, &ir.BitcastAttrs{To: ir.F32}, nil, masked)[0]
}

func bitCast(n *node) {
	to := n.dtypeAttr("to", ir.InvalidDType)
	n.set(n.b.Op(ir.OpBitcastConvert, &ir.BitcastAttrs{To: to}, nil, n.in(0))[0])
}

// Activations with attributes.

func elu(n *node)       { n.set(lower.Elu(n.b, n.in(0), n.float("alpha", 1), 1, 1)) }
func leakyRelu(n *node) { n.set(lower.LeakyRelu(n.b, n.in(0), n.float("alpha", 0.01))) }
func hardSigmoid(n *node) {
	n.set(lower.Hardsigmoid(n.b, n.in(0), n.float("alpha", 0.2), n.float("beta", 0.5)))
}
func softplus(n *node) { n.set(lower.Softplus(n.b, n.in(0), 1, math.Inf(1))) }

func selu(n *node) {
	alpha, gamma := n.float("alpha", 1.67326319217681884765625), n.float("gamma", 1.05070102214813232421875)
	n.set(lower.Elu(n.b, n.in(0), alpha, gamma, 1))
}

func celu(n *node) {
	alpha := n.float("alpha", 1)
	n.set(lower.Elu(n.b, n.in(0), alpha, 1, 1/alpha))
}

func gelu(n *node) {
	n.set(lower.Gelu(n.b, n.in(0), n.choice("approximate", "none", "none", "tanh") == "tanh"))
}

func hardSwish(n *node, x ir.Value) ir.Value {
	gate := lower.Clip(n.b, lower.AddScalar(n.b, lower.Scale(n.b, x, 1.0/6), 0.5), 0, 1)
	return n.b.Binary(ir.OpMultiply, x, gate)
}

func swish(n *node, x ir.Value) ir.Value {
	return n.b.Binary(ir.OpMultiply, x, n.b.Unary(ir.OpLogistic, lower.Scale(n.b, x, n.float("alpha", 1))))
}

func shrink(n *node) {
	x, b := n.in(0), n.b
	bias, lambd := n.float("bias", 0), n.float("lambd", 0.5)
	low := b.Select(lower.CompareScalar(b, ir.LT, x, -lambd), lower.AddScalar(b, x, bias), b.FullLike(x, 0))
	n.set(b.Select(lower.CompareScalar(b, ir.GT, x, lambd), lower.AddScalar(b, x, -bias), low))
}

func thresholdedRelu(n *node) {
	x, b := n.in(0), n.b
	n.set(b.Select(lower.CompareScalar(b, ir.GT, x, n.float("alpha", 1)), x, b.FullLike(x, 0)))
}

func swiGLU(n *node) {
	b := n.b
	xs := n.broadcast(n.in(0), n.in(1))
	n.set(lower.InFloat32(b, func(v []ir.Value) ir.Value {
		gate := b.Binary(ir.OpMultiply, v[0], b.Unary(ir.OpLogistic, lower.Scale(b, v[0], n.float("alpha", 1))))
		return b.Binary(ir.OpMultiply, gate, v[1])
	}, xs...))
}

// Softmax and its like. Before version 13 the input is taken as a matrix of the dims before
// the axis and those from it on.

func softmaxLike(f func(b *ir.Builder, x ir.Value, axis int) ir.Value) func(*node) {
	return func(n *node) {
		x := n.in(0)
		n.set(f(n.b, x, n.axis(n.int("axis", -1), n.b.Rank(x))))
	}
}

func softmaxFlat(f func(b *ir.Builder, x ir.Value, axis int) ir.Value) func(*node) {
	return func(n *node) {
		x := n.in(0)
		shape := n.b.Shape(x)
		axis := n.axis(n.int("axis", 1), n.b.Rank(x))
		if axis == len(shape)-1 {
			n.set(f(n.b, x, axis))
			return
		}
		flat := n.b.Reshape(x, []ir.Dim{ir.Product(shape[:axis]), ir.Product(shape[axis:])})
		n.set(n.b.Reshape(f(n.b, flat, 1), shape))
	}
}

// hardmax is one at the first largest element along an axis, else zero.
func hardmax(b *ir.Builder, x ir.Value, axis int) ir.Value {
	best := b.ArgReduce(x, &ir.ArgReduceAttrs{Combine: ir.Max, Axis: axis})
	t := b.DType(x)
	return lower.OneHot(b, best, b.Shape(x)[axis], axis, b.Scalar(t, 1), b.Scalar(t, 0))
}
