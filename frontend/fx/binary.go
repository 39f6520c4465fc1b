package fx

import (
	"math"

	"weft/frontend/lower"
	"weft/ir"
)

// addBinaryRules adds arithmetic of two operands and more.
func addBinaryRules(t map[string]rule) {
	both := func(name string, f func(c *call, x, y operand) ir.Value) {
		r := value(func(c *call) ir.Value { return f(c, c.operand("self"), c.operand("other")) })
		t[name+".Tensor"], t[name+".Scalar"], t[name+".default"], t[name+".Scalar_Tensor"] = r, r, r, r
	}
	both("add", func(c *call, x, y operand) ir.Value { return c.addScaled(x, y, 1) })
	both("sub", func(c *call, x, y operand) ir.Value { return c.addScaled(x, y, -1) })
	both("subtract", func(c *call, x, y operand) ir.Value { return c.addScaled(x, y, -1) })
	both("rsub", func(c *call, x, y operand) ir.Value { return c.addScaled(y, x, -1) })
	both("mul", func(c *call, x, y operand) ir.Value { return c.binary(x, y, c.product) })
	both("multiply", func(c *call, x, y operand) ir.Value { return c.binary(x, y, c.product) })
	for _, name := range []string{"div", "divide", "true_divide"} {
		both(name, func(c *call, x, y operand) ir.Value { return c.divide(x, y, "") })
		mode := value(func(c *call) ir.Value {
			return c.divide(c.operand("self"), c.operand("other"), c.string("rounding_mode", ""))
		})
		t[name+".Tensor_mode"], t[name+".Scalar_mode"] = mode, mode
	}
	both("floor_divide", func(c *call, x, y operand) ir.Value { return c.divide(x, y, "floor") })
	both("remainder", func(c *call, x, y operand) ir.Value {
		return c.binary(x, y, func(x, y ir.Value) ir.Value { return lower.FloorMod(c.b, x, y) })
	})
	both("fmod", func(c *call, x, y operand) ir.Value { return c.binary(x, y, c.kind(ir.OpRemainder)) })
	both("maximum", func(c *call, x, y operand) ir.Value { return c.binary(x, y, c.kind(ir.OpMaximum)) })
	both("minimum", func(c *call, x, y operand) ir.Value { return c.binary(x, y, c.kind(ir.OpMinimum)) })
	t["max.other"] = t["maximum.default"]
	t["min.other"] = t["minimum.default"]
	both("fmax", func(c *call, x, y operand) ir.Value { return c.binary(x, y, c.ignoringNaN(ir.OpMaximum)) })
	both("fmin", func(c *call, x, y operand) ir.Value { return c.binary(x, y, c.ignoringNaN(ir.OpMinimum)) })
	both("atan2", func(c *call, x, y operand) ir.Value { return c.real(x, y, c.kind(ir.OpAtan2)) })
	both("arctan2", func(c *call, x, y operand) ir.Value { return c.real(x, y, c.kind(ir.OpAtan2)) })
	both("hypot", func(c *call, x, y operand) ir.Value {
		return c.real(x, y, func(x, y ir.Value) ir.Value {
			return c.inFloat32(c.hypotenuse)(c.b.Unary(ir.OpAbs, x), c.b.Unary(ir.OpAbs, y))
		})
	})
	both("copysign", func(c *call, x, y operand) ir.Value {
		return c.real(x, y, func(x, y ir.Value) ir.Value {
			magnitude := c.b.Unary(ir.OpAbs, x)
			return c.b.Select(c.negative(y), c.b.Unary(ir.OpNegate, magnitude), magnitude)
		})
	})
	both("logaddexp", func(c *call, x, y operand) ir.Value { return c.real(x, y, c.inFloat32(c.logAddExp)) })
	both("xlogy", func(c *call, x, y operand) ir.Value { return c.real(x, y, c.inFloat32(c.xLogY)) })
	t["xlogy.Scalar_Other"], t["xlogy.Scalar_Self"] = t["xlogy.Tensor"], t["xlogy.Tensor"]
	t["special_xlogy.default"] = t["xlogy.Tensor"]
	t["heaviside.default"] = value(func(c *call) ir.Value {
		return c.binary(c.operand("self"), c.operand("values"), func(x, y ir.Value) ir.Value {
			zero := c.b.FullLike(x, 0)
			step := c.b.Convert(c.b.Compare(ir.GT, x, zero), c.b.DType(x))
			return c.b.Select(c.b.Compare(ir.EQ, x, zero), y, step)
		})
	})
	for _, n := range []string{"Tensor_Scalar", "Tensor_Tensor", "Scalar", "Tensor"} {
		t["pow."+n] = value((*call).pow)
	}
	for _, n := range []string{"Tensor_Scalar", "Tensor_Tensor", "Scalar"} {
		t["float_power."+n] = value(func(c *call) ir.Value {
			x, exponent := c.operand("self"), c.operand("exponent")
			return c.arithmetic(x, exponent, ir.F64, c.kind(ir.OpPower))
		})
	}
	t["special_xlog1py.default"] = value(func(c *call) ir.Value {
		return c.real(c.operand("self"), c.operand("other"), c.inFloat32(func(x, y ir.Value) ir.Value {
			zero := c.b.FullLike(x, 0)
			r := c.b.Select(c.b.Compare(ir.EQ, x, zero), zero, c.b.Binary(ir.OpMultiply, x, c.b.Unary(ir.OpLogPlusOne, y)))
			return c.b.Select(lower.IsNaN(c.b, y), y, r)
		}))
	})
	t["addcmul.default"] = value(func(c *call) ir.Value { return c.addProduct(c.product) })
	t["addcdiv.default"] = value(func(c *call) ir.Value { return c.addProduct(c.kind(ir.OpDivide)) })
	for _, n := range []string{"Scalar", "Tensor"} {
		t["lerp."+n] = value((*call).lerp)
	}
	prelu := value(func(c *call) ir.Value {
		x := c.tensor("self")
		return c.leak(x, lower.Channels(c.b, c.tensor("weight"), c.b.Rank(x)))
	})
	t["prelu.default"] = prelu
	t["_prelu_kernel.default"] = value(func(c *call) ir.Value { return c.leak(c.tensor("self"), c.tensor("weight")) })
}

// product multiplies; bools combine as "and".
func (c *call) product(x, y ir.Value) ir.Value {
	if c.b.DType(x) == ir.Bool {
		return c.b.Binary(ir.OpAnd, x, y)
	}
	return c.b.Binary(ir.OpMultiply, x, y)
}

// addScaled is x + sign*alpha*y; bools combine as "or".
func (c *call) addScaled(x, y operand, sign int64) ir.Value {
	alpha, ok := c.number("alpha")
	plain := !ok || alpha.known() && alpha.f == 1
	t := c.resultType(x, y)
	switch {
	case plain && t == ir.Bool && sign > 0:
		return c.arithmetic(x, y, t, c.kind(ir.OpOr))
	case plain && sign > 0:
		return c.arithmetic(x, y, t, c.kind(ir.OpAdd))
	case plain:
		return c.arithmetic(x, y, t, c.kind(ir.OpSubtract))
	}
	at := t
	if t.IsFloat() && t.Bits() <= 16 {
		at = ir.F32 // the scaled operand is not rounded by itself
	}
	return c.b.Convert(c.arithmetic(x, y, at, func(x, y ir.Value) ir.Value {
		y = c.b.Binary(ir.OpMultiply, y, lower.Expand(c.b, alpha.scalar(c.b, at), c.b.Shape(y)))
		if sign < 0 {
			return c.b.Binary(ir.OpSubtract, x, y)
		}
		return c.b.Binary(ir.OpAdd, x, y)
	}), t)
}

// real is arithmetic of floats: integers become float32.
func (c *call) real(x, y operand, f func(x, y ir.Value) ir.Value) ir.Value {
	return c.arithmetic(x, y, floatType(c.resultType(x, y)), f)
}

// divide is true division, or division rounded as mode says.
func (c *call) divide(x, y operand, mode string) ir.Value {
	switch mode {
	case "":
		return c.real(x, y, c.kind(ir.OpDivide))
	case "floor":
		return c.binary(x, y, func(x, y ir.Value) ir.Value { return lower.FloorDiv(c.b, x, y) })
	case "trunc":
		return c.binary(x, y, func(x, y ir.Value) ir.Value { return lower.Trunc(c.b, c.b.Binary(ir.OpDivide, x, y)) })
	}
	c.bad("rounding_mode is %q", mode)
	return ir.NoValue
}

// inFloat32 makes a function of narrow floats compute in float32 and round once.
func (c *call) inFloat32(f func(x, y ir.Value) ir.Value) func(x, y ir.Value) ir.Value {
	return func(x, y ir.Value) ir.Value {
		return lower.InFloat32(c.b, func(v []ir.Value) ir.Value { return f(v[0], v[1]) }, x, y)
	}
}

// hypotenuse is the larger magnitude times sqrt(1 + ratio^2), which does not overflow early.
func (c *call) hypotenuse(x, y ir.Value) ir.Value {
	b := c.b
	large, small := b.Binary(ir.OpMaximum, x, y), b.Binary(ir.OpMinimum, x, y)
	zero, one := b.FullLike(x, 0), b.FullLike(x, 1)
	ratio := b.Binary(ir.OpDivide, small, b.Select(b.Compare(ir.EQ, large, zero), one, large))
	r := b.Binary(ir.OpMultiply, large, b.Unary(ir.OpSqrt, b.Binary(ir.OpAdd, one, b.Binary(ir.OpMultiply, ratio, ratio))))
	infinite := b.Binary(ir.OpOr, lower.IsInf(b, x, true, true), lower.IsInf(b, y, true, true))
	return b.Select(infinite, b.FullLike(x, math.Inf(1)), r)
}

// ignoringNaN is an extremum that prefers numbers to NaN.
func (c *call) ignoringNaN(k ir.Kind) func(x, y ir.Value) ir.Value {
	return func(x, y ir.Value) ir.Value {
		m := c.b.Binary(k, x, y)
		if !c.b.DType(x).IsFloat() {
			return m
		}
		return c.b.Select(lower.IsNaN(c.b, x), y, c.b.Select(lower.IsNaN(c.b, y), x, m))
	}
}

// logAddExp is log(e^x + e^y): the larger plus log(1 + e^-|x-y|).
func (c *call) logAddExp(x, y ir.Value) ir.Value {
	larger := c.b.Binary(ir.OpMaximum, x, y)
	distance := c.b.Unary(ir.OpAbs, c.b.Binary(ir.OpSubtract, x, y))
	sum := c.b.Binary(ir.OpAdd, larger, c.b.Unary(ir.OpLogPlusOne, c.b.Unary(ir.OpExponential, c.b.Unary(ir.OpNegate, distance))))
	same := c.b.Binary(ir.OpAnd, lower.IsInf(c.b, x, true, true), c.b.Compare(ir.EQ, x, y))
	return c.b.Select(same, x, sum)
}

// xLogY is x log(y), 0 where x is 0, NaN where y is.
func (c *call) xLogY(x, y ir.Value) ir.Value {
	zero := c.b.FullLike(x, 0)
	r := c.b.Select(c.b.Compare(ir.EQ, x, zero), zero, c.b.Binary(ir.OpMultiply, x, c.b.Unary(ir.OpLog, y)))
	return c.b.Select(lower.IsNaN(c.b, y), y, r)
}

func (c *call) pow() ir.Value { return c.power(c.operand("self"), c.operand("exponent")) }

// power raises to an exponent; small constant exponents are products and roots.
func (c *call) power(x, exponent operand) ir.Value {
	t := c.resultType(x, exponent)
	if exponent.isNum && exponent.num.known() && (t.IsFloat() || exponent.num.f >= 0) {
		if f, ok := smallPowers[exponent.num.f]; ok && (t.IsFloat() || exponent.num.f == math.Trunc(exponent.num.f)) {
			v := c.as(x, t)
			return lower.InFloat32(c.b, func(v []ir.Value) ir.Value { return f(c.b, v[0]) }, v)
		}
	}
	return c.arithmetic(x, exponent, t, c.kind(ir.OpPower))
}

var smallPowers = map[float64]func(b *ir.Builder, x ir.Value) ir.Value{
	0.5:  func(b *ir.Builder, x ir.Value) ir.Value { return b.Unary(ir.OpSqrt, x) },
	-0.5: func(b *ir.Builder, x ir.Value) ir.Value { return b.Unary(ir.OpRsqrt, x) },
	1:    func(_ *ir.Builder, x ir.Value) ir.Value { return x },
	2:    func(b *ir.Builder, x ir.Value) ir.Value { return b.Binary(ir.OpMultiply, x, x) },
	3: func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Binary(ir.OpMultiply, b.Binary(ir.OpMultiply, x, x), x)
	},
	-1: func(b *ir.Builder, x ir.Value) ir.Value { return b.Binary(ir.OpDivide, b.FullLike(x, 1), x) },
	-2: func(b *ir.Builder, x ir.Value) ir.Value {
		return b.Binary(ir.OpDivide, b.FullLike(x, 1), b.Binary(ir.OpMultiply, x, x))
	},
}

// addProduct is self + value * f(tensor1, tensor2).
func (c *call) addProduct(f func(x, y ir.Value) ir.Value) ir.Value {
	self, x, y := c.tensor("self"), c.tensor("tensor1"), c.tensor("tensor2")
	t := c.resultType(tensorOperand(self), tensorOperand(x), tensorOperand(y))
	v := lower.Broadcast(c.b, c.b.Convert(self, t), c.b.Convert(x, t), c.b.Convert(y, t))
	return lower.InFloat32(c.b, func(v []ir.Value) ir.Value {
		p := f(v[1], v[2])
		if n, ok := c.number("value"); ok && !(n.known() && n.f == 1) {
			p = c.b.Binary(ir.OpMultiply, p, lower.Expand(c.b, n.scalar(c.b, c.b.DType(p)), c.b.Shape(p)))
		}
		return c.b.Binary(ir.OpAdd, v[0], p)
	}, v...)
}

// lerp is self + weight * (end - self).
func (c *call) lerp() ir.Value {
	self, end, weight := c.tensor("self"), c.tensor("end"), c.operand("weight")
	wide := c.b.DType(self)
	if wide.Bits() <= 16 && weight.isNum {
		wide = ir.F32 // the number is not rounded by itself
	}
	v := lower.Broadcast(c.b, self, end, c.as(weight, wide))
	return lower.InFloat32(c.b, func(v []ir.Value) ir.Value {
		return c.b.Binary(ir.OpAdd, v[0], c.b.Binary(ir.OpMultiply, v[2], c.b.Binary(ir.OpSubtract, v[1], v[0])))
	}, v...)
}

// leak is x where positive, else weight * x.
func (c *call) leak(x, weight ir.Value) ir.Value {
	v := lower.Broadcast(c.b, x, weight)
	return c.b.Select(c.b.Compare(ir.GT, v[0], c.b.FullLike(v[0], 0)), v[0], c.b.Binary(ir.OpMultiply, v[1], v[0]))
}
