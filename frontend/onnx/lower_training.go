package onnx

import (
	"weft/frontend/lower"
	"weft/ir"
)

// Optimizers of ONNX's preview training domain. Their inputs are the learning rate, the
// iteration, and for each parameter its value, gradient and states, all values first.
func trainings() map[string][]version {
	const domain = "ai.onnx.preview.training."
	return map[string][]version{
		domain + "Adagrad":  one(optimizer(1, adagrad)),
		domain + "Momentum": one(optimizer(1, momentum)),
		domain + "Adam":     one(optimizer(2, adam)),
	}
}

// updateRule computes a parameter's new value and states from the learning rate and iteration
// (scalars of its type), its value, the regularized gradient and its states.
type updateRule func(n *node, rate, iteration, x, gradient ir.Value, states []ir.Value) []ir.Value

func optimizer(states int, f updateRule) func(*node) {
	return func(n *node) {
		b := n.b
		count := (len(n.p.inputs) - 2) / (2 + states)
		if count < 1 || 2+count*(2+states) != len(n.p.inputs) {
			n.wrong("%d inputs", len(n.p.inputs))
		}
		outs := make([]ir.Value, count*(1+states))
		for i := range count {
			x, g := n.in(2+i), n.in(2+count+i)
			wide := func(k int) ir.Value {
				return b.Broadcast(b.Convert(n.scalarIn(k), b.DType(x)), b.Shape(x), nil)
			}
			var own []ir.Value
			for s := range states {
				own = append(own, n.sameDims(n.in(2+(2+s)*count+i), b.Shape(x)))
			}
			g = b.Binary(ir.OpAdd, lower.Scale(b, x, n.float("norm_coefficient", 0)), n.sameDims(g, b.Shape(x)))
			for k, v := range f(n, wide(0), wide(1), x, g, own) {
				outs[k*count+i] = v
			}
		}
		n.set(outs...)
	}
}

func adagrad(n *node, rate, iteration, x, g ir.Value, states []ir.Value) []ir.Value {
	b := n.b
	rate = b.Binary(ir.OpDivide, rate, lower.AddScalar(b, lower.Scale(b, iteration, n.float("decay_factor", 0)), 1))
	h := b.Binary(ir.OpAdd, states[0], square(b, g))
	step := b.Binary(ir.OpDivide, b.Binary(ir.OpMultiply, rate, g), lower.AddScalar(b, root(b, h), n.float("epsilon", 0)))
	return []ir.Value{b.Binary(ir.OpSubtract, x, step), h}
}

func momentum(n *node, rate, iteration, x, g ir.Value, states []ir.Value) []ir.Value {
	b := n.b
	alpha, beta := n.float("alpha", 0), n.float("beta", 0)
	later := lower.CompareScalar(b, ir.GT, iteration, 0)
	v := b.Binary(ir.OpAdd, lower.Scale(b, states[0], alpha), b.Select(later, lower.Scale(b, g, beta), g))
	step := v
	if n.choice("mode", "standard", "standard", "nesterov") == "nesterov" {
		step = b.Binary(ir.OpAdd, g, lower.Scale(b, v, alpha))
	}
	return []ir.Value{b.Binary(ir.OpSubtract, x, b.Binary(ir.OpMultiply, rate, step)), v}
}

func adam(n *node, rate, iteration, x, g ir.Value, states []ir.Value) []ir.Value {
	b := n.b
	alpha, beta := n.float("alpha", 0.9), n.float("beta", 0.999)
	blend := func(old, new ir.Value, keep float64) ir.Value {
		return b.Binary(ir.OpAdd, lower.Scale(b, old, keep), lower.Scale(b, new, 1-keep))
	}
	v, h := blend(states[0], g, alpha), blend(states[1], square(b, g), beta)
	rest := func(base float64) ir.Value { // 1 - base^iteration
		return b.Binary(ir.OpSubtract, b.FullLike(x, 1), b.Binary(ir.OpPower, b.FullLike(x, base), iteration))
	}
	corrected := b.Binary(ir.OpDivide, b.Binary(ir.OpMultiply, rate, root(b, rest(beta))), rest(alpha))
	rate = b.Select(lower.CompareScalar(b, ir.GT, iteration, 0), corrected, rate)
	step := b.Binary(ir.OpDivide, v, lower.AddScalar(b, root(b, h), n.float("epsilon", 0)))
	x = b.Binary(ir.OpSubtract, x, b.Binary(ir.OpMultiply, rate, step))
	return []ir.Value{lower.Scale(b, x, 1-n.float("norm_coefficient_post", 0)), v, h}
}
