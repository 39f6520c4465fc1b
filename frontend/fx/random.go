package fx

import (
	"math"

	"weft/frontend/lower"
	"weft/ir"
)

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
	for _, name := range []string{"rand", "randn", "randint", "randperm"} {
		t[name+".generator"] = t[name+".default"]
	}
	t["randint.low_generator"] = t["randint.low"]
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

// droppedAttention is attention in training mode, whose weights drop out: written out, since
// its kernel keeps them to itself.
func (c *call) droppedAttention(q, k, v, mask ir.Value, scale, p float64) ir.Value {
	heads := func(x ir.Value) ir.Dim { return c.b.Shape(x)[1] }
	c.require(c.b.Rank(q) == 4 && heads(q).Equal(heads(k)) && heads(q).Equal(heads(v)), "with dropout and heads that share keys, or none")
	if mask != ir.NoValue && c.b.DType(mask) == ir.Bool {
		hidden := ir.TensorOf(ir.F32, c.b.Shape(mask)...)
		mask = c.b.Select(mask, c.b.Full(hidden, 0), c.b.Full(hidden, math.Inf(-1)))
	}
	s := c.scores(q, k, mask, scale, c.bool("is_causal", false))
	largest := c.b.ReduceKeep(ir.Max, s, 3)
	seen := c.b.Compare(ir.NE, largest, c.b.FullLike(largest, math.Inf(-1)))
	weights := c.b.Select(c.b.BroadcastTo(seen, c.b.Shape(s)), lower.Softmax(c.b, s, 3), c.b.FullLike(s, 0))
	weights, _ = c.random.Dropout(c.b, weights, p)
	t := c.b.DType(q)
	return c.b.DotGeneral(c.b.Convert(weights, t), v, &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1}, LhsContract: []int{3}, RhsContract: []int{2}, To: t})
}
