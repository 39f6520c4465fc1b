package fx

import (
	"math"
	"strings"

	"weft/frontend/lower"
	"weft/ir"
)

// elementwiseRules are arithmetic, comparisons, logic and elementary functions.
func elementwiseRules() map[string]rule {
	t := map[string]rule{}
	for name, kind := range map[string]ir.Kind{
		"sqrt": ir.OpSqrt, "rsqrt": ir.OpRsqrt, "exp": ir.OpExponential, "expm1": ir.OpExponentialMinusOne, "log": ir.OpLog,
		"log1p": ir.OpLogPlusOne, "special_log1p": ir.OpLogPlusOne, "sin": ir.OpSine, "cos": ir.OpCosine, "tan": ir.OpTan, "asin": ir.OpAsin, "acos": ir.OpAcos,
		"atan": ir.OpAtan, "sinh": ir.OpSinh, "cosh": ir.OpCosh, "asinh": ir.OpAsinh, "acosh": ir.OpAcosh, "atanh": ir.OpAtanh,
		"arcsin": ir.OpAsin, "arccos": ir.OpAcos, "arctan": ir.OpAtan, "arcsinh": ir.OpAsinh, "arccosh": ir.OpAcosh, "arctanh": ir.OpAtanh,
		"tanh": ir.OpTanh, "sigmoid": ir.OpLogistic, "special_expit": ir.OpLogistic, "erf": ir.OpErf, "special_erf": ir.OpErf, "erfinv": ir.OpErfInv,
		"special_erfinv": ir.OpErfInv, "lgamma": ir.OpLgamma, "digamma": ir.OpDigamma, "special_digamma": ir.OpDigamma, "special_gammaln": ir.OpLgamma,
	} {
		t[name+".default"] = value(func(c *call) ir.Value { return c.b.Unary(kind, c.floating("self")) })
	}
	for name, f := range floatFunctions {
		t[name+".default"] = value(func(c *call) ir.Value {
			return lower.InFloat32(c.b, func(x []ir.Value) ir.Value { return f(c.b, x[0]) }, c.floating("self"))
		})
	}
	for name, kind := range map[string]ir.Kind{"floor": ir.OpFloor, "ceil": ir.OpCeil, "round": ir.OpRoundNearestEven} {
		t[name+".default"] = value(func(c *call) ir.Value {
			x := c.tensor("self")
			if !c.b.DType(x).IsFloat() {
				return x
			}
			return c.b.Unary(kind, x)
		})
	}
	for name, f := range sameTypeFunctions {
		t[name] = value(func(c *call) ir.Value { return f(c, c.tensor("self")) })
	}
	addBinaryRules(t)
	for name, d := range map[string]ir.Direction{"eq": ir.EQ, "ne": ir.NE, "lt": ir.LT, "le": ir.LE, "gt": ir.GT, "ge": ir.GE,
		"not_equal": ir.NE, "less": ir.LT, "less_equal": ir.LE, "greater": ir.GT, "greater_equal": ir.GE} {
		r := value(func(c *call) ir.Value { return c.compare(d, c.operand("self"), c.operand("other")) })
		t[name+".Tensor"], t[name+".Scalar"] = r, r
	}
	for name, kind := range map[string]ir.Kind{"logical_and": ir.OpAnd, "logical_or": ir.OpOr, "logical_xor": ir.OpXor} {
		t[name+".default"] = value(func(c *call) ir.Value {
			return lower.Binary(c.b, kind, lower.Truth(c.b, c.tensor("self")), lower.Truth(c.b, c.tensor("other")))
		})
	}
	for name, kind := range map[string]ir.Kind{"and": ir.OpAnd, "or": ir.OpOr, "xor": ir.OpXor, "left_shift": ir.OpShiftLeft, "right_shift": ir.OpShiftRightArithmetic} {
		r := value(func(c *call) ir.Value { return c.bits(kind) })
		dunder := strings.NewReplacer("left_", "l", "right_", "r").Replace(name)
		for _, n := range []string{"bitwise_" + name, "__" + dunder + "__"} {
			t[n+".Tensor"], t[n+".Scalar"], t[n+".Tensor_Scalar"], t[n+".Scalar_Tensor"] = r, r, r, r
		}
	}
	for _, n := range []string{"self", "ScalarOther", "ScalarSelf", "Scalar"} {
		t["where."+n] = value(func(c *call) ir.Value {
			p := lower.Truth(c.b, c.tensor("condition"))
			x, y := c.operand("self"), c.operand("other")
			to := c.resultType(x, y)
			return lower.Where(c.b, p, c.as(x, to), c.as(y, to))
		})
	}
	for _, n := range []string{"default", "Tensor"} {
		t["clamp."+n], t["clip."+n] = value((*call).clamp), value((*call).clamp)
	}
	for _, n := range []string{"clamp_min.default", "clamp_min.Tensor", "clamp_max.default", "clamp_max.Tensor"} {
		t[n] = value((*call).clamp)
	}
	return t
}

// floatFunctions are elementary functions of a float (float32 or wider) without a kind of
// their own.
var floatFunctions = map[string]func(b *ir.Builder, x ir.Value) ir.Value{
	"reciprocal": func(b *ir.Builder, x ir.Value) ir.Value { return b.Binary(ir.OpDivide, b.FullLike(x, 1), x) },
	"exp2":       func(b *ir.Builder, x ir.Value) ir.Value { return b.Binary(ir.OpPower, b.FullLike(x, 2), x) },
	"log2":       func(b *ir.Builder, x ir.Value) ir.Value { return lower.Scale(b, b.Unary(ir.OpLog, x), math.Log2E) },
	"log10":      func(b *ir.Builder, x ir.Value) ir.Value { return lower.Scale(b, b.Unary(ir.OpLog, x), math.Log10E) },
	"erfc": func(b *ir.Builder, x ir.Value) ir.Value {
		// In float64, so that the difference keeps its digits where erf is near 1.
		wide := b.Unary(ir.OpErf, b.Convert(x, ir.F64))
		return b.Convert(b.Binary(ir.OpSubtract, b.FullLike(wide, 1), wide), b.DType(x))
	},
	"sinc": func(b *ir.Builder, x ir.Value) ir.Value {
		px := lower.Scale(b, x, math.Pi)
		zero := b.Compare(ir.EQ, x, b.FullLike(x, 0))
		return b.Select(zero, b.FullLike(x, 1), b.Binary(ir.OpDivide, b.Unary(ir.OpSine, px), px))
	},
	"deg2rad":     func(b *ir.Builder, x ir.Value) ir.Value { return lower.Scale(b, x, math.Pi/180) },
	"rad2deg":     func(b *ir.Builder, x ir.Value) ir.Value { return lower.Scale(b, x, 180/math.Pi) },
	"frac":        func(b *ir.Builder, x ir.Value) ir.Value { return b.Binary(ir.OpSubtract, x, lower.Trunc(b, x)) },
	"silu":        lower.Silu,
	"mish":        lower.Mish,
	"selu":        lower.Selu,
	"log_sigmoid": lower.LogSigmoid,
	"hardswish":   lower.Hardswish,
}

// sameTypeFunctions keep the type of their operand, or give bool.
var sameTypeFunctions = map[string]func(c *call, x ir.Value) ir.Value{
	"neg.default":      func(c *call, x ir.Value) ir.Value { return c.b.Unary(ir.OpNegate, x) },
	"negative.default": func(c *call, x ir.Value) ir.Value { return c.b.Unary(ir.OpNegate, x) },
	"positive.default": func(_ *call, x ir.Value) ir.Value { return x },
	"abs.default":      func(c *call, x ir.Value) ir.Value { return c.b.Unary(ir.OpAbs, x) },
	"absolute.default": func(c *call, x ir.Value) ir.Value { return c.b.Unary(ir.OpAbs, x) },
	"sign.default":     sign,
	"sgn.default":      sign,
	"trunc.default":    func(c *call, x ir.Value) ir.Value { return lower.Trunc(c.b, x) },
	"fix.default":      func(c *call, x ir.Value) ir.Value { return lower.Trunc(c.b, x) },
	"square.default":   func(c *call, x ir.Value) ir.Value { return c.product(x, x) },
	"relu.default":     func(c *call, x ir.Value) ir.Value { return lower.Relu(c.b, x) },
	"relu6.default":    func(c *call, x ir.Value) ir.Value { return lower.Clip(c.b, x, 0, 6) },
	"isnan.default":    func(c *call, x ir.Value) ir.Value { return lower.IsNaN(c.b, x) },
	"isinf.default":    func(c *call, x ir.Value) ir.Value { return lower.IsInf(c.b, x, true, true) },
	"isposinf.default": func(c *call, x ir.Value) ir.Value { return lower.IsInf(c.b, x, true, false) },
	"isneginf.default": func(c *call, x ir.Value) ir.Value { return lower.IsInf(c.b, x, false, true) },
	"isfinite.default": func(c *call, x ir.Value) ir.Value {
		if !c.b.DType(x).IsFloat() {
			return c.b.Full(c.b.Type(x).With(ir.Bool), 1)
		}
		return c.b.Unary(ir.OpIsFinite, x)
	},
	"isreal.default":      func(c *call, x ir.Value) ir.Value { return c.b.Full(c.b.Type(x).With(ir.Bool), 1) },
	"logical_not.default": func(c *call, x ir.Value) ir.Value { return lower.Not(c.b, lower.Truth(c.b, x)) },
	"bitwise_not.default": func(c *call, x ir.Value) ir.Value { return lower.Not(c.b, x) },
	"signbit.default":     func(c *call, x ir.Value) ir.Value { return c.negative(x) },
	"round.decimals": func(c *call, x ir.Value) ir.Value {
		scale := math.Pow(10, float64(c.int("decimals", 0)))
		r := c.b.Unary(ir.OpRoundNearestEven, lower.Scale(c.b, x, scale))
		return c.b.Binary(ir.OpDivide, r, c.b.FullLike(r, scale))
	},
	"hardtanh.default": func(c *call, x ir.Value) ir.Value {
		return lower.Clip(c.b, x, c.float("min_val", -1), c.float("max_val", 1))
	},
	"threshold.default": func(c *call, x ir.Value) ir.Value {
		low := c.b.Compare(ir.LE, x, c.b.FullLike(x, c.float("threshold", 0)))
		return c.b.Select(low, c.b.FullLike(x, c.float("value", 0)), x)
	},
	"nan_to_num.default": (*call).nanToNum,
	"leaky_relu.default": func(c *call, x ir.Value) ir.Value { return lower.LeakyRelu(c.b, x, c.float("negative_slope", 0.01)) },
	"elu.default": func(c *call, x ir.Value) ir.Value {
		return lower.Elu(c.b, x, c.float("alpha", 1), c.float("scale", 1), c.float("input_scale", 1))
	},
	"celu.default": func(c *call, x ir.Value) ir.Value {
		alpha := c.float("alpha", 1)
		return lower.Elu(c.b, x, alpha, 1, 1/alpha)
	},
	"gelu.default": func(c *call, x ir.Value) ir.Value {
		return lower.Gelu(c.b, x, c.string("approximate", "none") == "tanh")
	},
	"hardsigmoid.default": func(c *call, x ir.Value) ir.Value { return lower.Hardsigmoid(c.b, x, 1.0/6, 0.5) },
	"softplus.default": func(c *call, x ir.Value) ir.Value {
		return lower.Softplus(c.b, x, c.float("beta", 1), c.float("threshold", 20))
	},
	"softshrink.default": func(c *call, x ir.Value) ir.Value {
		lambda := c.float("lambd", 0.5)
		shrunk := c.b.Select(c.b.Compare(ir.GT, x, c.b.FullLike(x, 0)), lower.AddScalar(c.b, x, -lambda), lower.AddScalar(c.b, x, lambda))
		return c.shrink(x, lambda, shrunk)
	},
	"hardshrink.default":    func(c *call, x ir.Value) ir.Value { return c.shrink(x, c.float("lambd", 0.5), x) },
	"logit.default":         (*call).logit,
	"special_logit.default": (*call).logit,
	"glu.default": func(c *call, x ir.Value) ir.Value {
		axis := c.axis("dim", -1, c.b.Rank(x))
		size := c.b.Shape(x)[axis]
		half := size.FloorDiv(ir.Const(2))
		return lower.InFloat32(c.b, func(v []ir.Value) ir.Value {
			return c.b.Binary(ir.OpMultiply, v[0], c.b.Unary(ir.OpLogistic, v[1]))
		}, c.b.SliceAxis(x, axis, ir.Const(0), half, 1), c.b.SliceAxis(x, axis, half, size, 1))
	},
}

// logit is log(p / (1-p)); with eps, p is brought to eps..1-eps first.
func (c *call) logit(x ir.Value) ir.Value {
	x = c.b.Convert(x, floatType(c.b.DType(x)))
	eps, ok := c.literal("eps")
	return lower.InFloat32(c.b, func(v []ir.Value) ir.Value {
		p := v[0]
		if ok && eps.f >= 0 {
			low, high := c.b.FullLike(p, eps.f), c.b.FullLike(p, 1-eps.f)
			below := c.b.Compare(ir.LT, p, low)
			p = c.b.Select(c.b.Compare(ir.GT, p, high), high, p)
			p = c.b.Select(below, low, p)
		}
		rest := c.b.Binary(ir.OpSubtract, c.b.FullLike(p, 1), p)
		return c.b.Unary(ir.OpLog, c.b.Binary(ir.OpDivide, p, rest))
	}, x)
}

func sign(c *call, x ir.Value) ir.Value {
	if c.b.DType(x) == ir.Bool {
		return x
	}
	s := c.b.Unary(ir.OpSign, x)
	if !c.b.DType(x).IsFloat() {
		return s
	}
	return c.b.Select(lower.IsNaN(c.b, x), c.b.FullLike(x, 0), s) // PyTorch's sign of NaN is 0
}

// shrink is inside (0) where |x| <= lambda, else outside; NaN stays.
func (c *call) shrink(x ir.Value, lambda float64, outside ir.Value) ir.Value {
	small := c.b.Compare(ir.LE, c.b.Unary(ir.OpAbs, x), c.b.FullLike(x, lambda))
	return c.b.Select(small, c.b.FullLike(x, 0), outside)
}

// negative tells where the sign bit is set.
func (c *call) negative(x ir.Value) ir.Value {
	t := c.b.DType(x)
	if t.IsFloat() {
		to := map[int]ir.DType{8: ir.I8, 16: ir.I16, 32: ir.I32, 64: ir.I64}[t.Bits()]
		x = bitcastView{to}.apply(c.b, x)
	} else if t == ir.Bool {
		return c.b.FullLike(x, 0)
	}
	return c.b.Compare(ir.LT, x, c.b.FullLike(x, 0))
}

func (c *call) nanToNum(x ir.Value) ir.Value {
	t := c.b.DType(x)
	if !t.IsFloat() {
		return x
	}
	largest := largestFinite(t)
	fill := func(where ir.Value, name string, def float64) {
		x = c.b.Select(where, c.b.FullLike(x, c.float(name, def)), x)
	}
	nan, up, down := lower.IsNaN(c.b, x), lower.IsInf(c.b, x, true, false), lower.IsInf(c.b, x, false, true)
	fill(nan, "nan", 0)
	fill(up, "posinf", largest)
	fill(down, "neginf", -largest)
	return x
}

func largestFinite(t ir.DType) float64 {
	switch t {
	case ir.F16:
		return 65504
	case ir.BF16:
		return 0x1.fep127
	case ir.F64:
		return math.MaxFloat64
	}
	return math.MaxFloat32
}

// compare brings operands to their common type and compares them.
func (c *call) compare(d ir.Direction, x, y operand) ir.Value {
	t := c.resultType(x, y)
	return c.arithmetic(x, y, t, func(x, y ir.Value) ir.Value { return c.b.Compare(d, x, y) })
}

// bits combines integers or bools bitwise.
func (c *call) bits(kind ir.Kind) ir.Value {
	x, y := c.operand("self"), c.operand("other")
	t := c.resultType(x, y)
	if kind == ir.OpShiftRightArithmetic && t.IsUnsigned() {
		kind = ir.OpShiftRightLogical
	}
	return c.arithmetic(x, y, t, c.kind(kind))
}

// clamp bounds self by min and max, numbers or tensors.
func (c *call) clamp() ir.Value {
	x := c.operand("self")
	all := []operand{x}
	bounds := map[string]ir.Kind{"min": ir.OpMaximum, "max": ir.OpMinimum}
	for _, name := range []string{"min", "max"} {
		if c.has(name) {
			all = append(all, c.operand(name))
		}
	}
	t := c.resultType(all...)
	v := c.as(x, t)
	for _, name := range []string{"min", "max"} {
		if c.has(name) {
			v = lower.Binary(c.b, bounds[name], v, c.as(c.operand(name), t))
		}
	}
	return v
}
