package fx

import "weft/ir"

// randomRules draw random numbers.
func randomRules() map[string]rule {
	like := func(c *call) (ir.DType, []ir.Dim) {
		x := c.tensor("self")
		return c.dtype("dtype", c.b.DType(x)), c.b.Shape(x)
	}
	sized := func(c *call) (ir.DType, []ir.Dim) { return c.dtype("dtype", ir.F32), c.sizes("size") }
	integers := func(of func(c *call) (ir.DType, []ir.Dim)) rule {
		return value(func(c *call) ir.Value {
			t, dims := of(c)
			return c.random.Integers(c.b, t, dims, c.int("low", 0), c.int("high", 0))
		})
	}
	sizedIntegers := integers(func(c *call) (ir.DType, []ir.Dim) { return c.dtype("dtype", ir.I64), c.sizes("size") })
	likeIntegers := integers(like)
	t := map[string]rule{
		"rand.default":      value(func(c *call) ir.Value { t, dims := sized(c); return c.random.Uniform(c.b, t, dims, 0, 1) }),
		"rand_like.default": value(func(c *call) ir.Value { t, dims := like(c); return c.random.Uniform(c.b, t, dims, 0, 1) }),
		"randn.default":     value(func(c *call) ir.Value { t, dims := sized(c); return c.random.Normal(c.b, t, dims, 0, 1) }),
		"randn_like.default": value(func(c *call) ir.Value {
			t, dims := like(c)
			return c.random.Normal(c.b, t, dims, 0, 1)
		}),
		"randint.default": sizedIntegers, "randint.low": sizedIntegers,
		"randint_like.default": likeIntegers, "randint_like.low_dtype": likeIntegers,
		"uniform.default": value(func(c *call) ir.Value {
			t, dims := like(c)
			return c.random.Uniform(c.b, t, dims, c.float("from", 0), c.float("to", 1))
		}),
		"normal.float_float": value(func(c *call) ir.Value {
			t, dims := sized(c)
			return c.random.Normal(c.b, t, dims, c.float("mean", 0), c.float("std", 1))
		}),
		"exponential.default": value(func(c *call) ir.Value {
			t, dims := like(c)
			x := c.random.Exponential(c.b, t, dims)
			return c.b.Binary(ir.OpDivide, x, c.b.FullLike(x, c.float("lambd", 1)))
		}),
		"randperm.default": value(func(c *call) ir.Value {
			return c.random.Permutation(c.b, c.dtype("dtype", ir.I64), c.size("n"))
		}),
		"bernoulli.default": value(func(c *call) ir.Value {
			p := c.tensor("self")
			return c.b.Convert(c.random.Bernoulli(c.b, p), c.b.DType(p))
		}),
		"bernoulli.Tensor": value(func(c *call) ir.Value {
			x, p := c.tensor("self"), c.tensor("p")
			p = c.b.BroadcastTo(p, c.b.Shape(x))
			return c.b.Convert(c.random.Bernoulli(c.b, p), c.b.DType(x))
		}),
		"multinomial.default": value(func(c *call) ir.Value {
			return c.random.Multinomial(c.b, c.tensor("self"), c.int("num_samples", 1), c.bool("replacement", false))
		}),
		"native_dropout.default": values((*call).nativeDropout),
	}
	chance := value(func(c *call) ir.Value {
		x := c.tensor("self")
		return c.b.Convert(c.random.Bernoulli(c.b, c.b.Full(c.b.Type(x).With(ir.F32), c.float("p", 0.5))), c.b.DType(x))
	})
	t["bernoulli.p"], t["bernoulli.float"] = chance, chance
	gauss := value(func(c *call) ir.Value {
		t, dims := like(c)
		return c.random.Normal(c.b, t, dims, c.float("mean", 0), c.float("std", 1))
	})
	t["normal.default"], t["normal_functional.default"] = gauss, gauss
	return t
}

// nativeDropout gives the result and the mask of what was kept.
func (c *call) nativeDropout() []ir.Value {
	x, p := c.tensor("input"), c.float("p", 0.5)
	if !c.bool("train", true) || p == 0 {
		return []ir.Value{x, c.b.Full(c.b.Type(x).With(ir.Bool), 1)}
	}
	y, kept := c.random.Dropout(c.b, x, p)
	return []ir.Value{y, kept}
}
