package onnx

import "weft/ir"

// uniformOrNormal draws from the range or the distribution that the attributes say.
func (n *node) uniformOrNormal(normal bool, t ir.DType, dims []ir.Dim) ir.Value {
	if normal {
		return n.random.Normal(n.b, t, dims, n.float("mean", 0), n.float("scale", 1))
	}
	return n.random.Uniform(n.b, t, dims, n.float("low", 0), n.float("high", 1))
}

// randomOf has the shape as an attribute.
func randomOf(normal bool) func(n *node) {
	return func(n *node) {
		n.attr("seed", attrFloat) // the run says it
		n.set(n.uniformOrNormal(normal, n.dtypeAttr("dtype", ir.F32), ir.Consts(n.ints("shape")...)))
	}
}

// randomLike has the shape of its operand.
func randomLike(normal bool) func(n *node) {
	return func(n *node) {
		n.attr("seed", attrFloat)
		x := n.in(0)
		n.set(n.uniformOrNormal(normal, n.dtypeAttr("dtype", n.b.DType(x)), n.b.Shape(x)))
	}
}

func bernoulli(n *node) {
	n.attr("seed", attrFloat)
	x := n.in(0)
	n.set(n.b.Convert(n.random.Bernoulli(n.b, x), n.dtypeAttr("dtype", n.b.DType(x))))
}

// multinomial draws with replacement; its operand has logarithms.
func multinomial(n *node) {
	n.attr("seed", attrFloat)
	x := n.in(0)
	n.rankIs(x, 2)
	b := n.b
	x = b.Convert(x, ir.F32)
	largest := b.Broadcast(b.ReduceKeep(ir.Max, x, 1), b.Shape(x), []int{0, 1})
	drawn := n.random.Multinomial(b, b.Unary(ir.OpExponential, b.Binary(ir.OpSubtract, x, largest)), n.int("sample_size", 1), true)
	n.set(b.Convert(drawn, n.dtypeAttr("dtype", ir.I32)))
}
