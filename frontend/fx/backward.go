package fx

import (
	"math"

	"weft/frontend/lower"
	"weft/ir"
)

// backwardRules are gradients, which joint programs contain.
func backwardRules() map[string]rule {
	grad := func(f func(b *ir.Builder, dy, x ir.Value) ir.Value, second string) rule {
		return value(func(c *call) ir.Value {
			return lower.InFloat32(c.b, func(v []ir.Value) ir.Value { return f(c.b, v[0], v[1]) }, c.tensor("grad_output"), c.tensor(second))
		})
	}
	t := map[string]rule{
		"sigmoid_backward.default": grad(func(b *ir.Builder, dy, y ir.Value) ir.Value {
			return b.Binary(ir.OpMultiply, dy, b.Binary(ir.OpMultiply, y, b.Binary(ir.OpSubtract, b.FullLike(y, 1), y)))
		}, "output"),
		"tanh_backward.default": grad(func(b *ir.Builder, dy, y ir.Value) ir.Value {
			return b.Binary(ir.OpMultiply, dy, b.Binary(ir.OpSubtract, b.FullLike(y, 1), b.Binary(ir.OpMultiply, y, y)))
		}, "output"),
		"silu_backward.default": grad(func(b *ir.Builder, dy, x ir.Value) ir.Value {
			s := b.Unary(ir.OpLogistic, x)
			inner := lower.AddScalar(b, b.Binary(ir.OpMultiply, x, b.Binary(ir.OpSubtract, b.FullLike(s, 1), s)), 1)
			return b.Binary(ir.OpMultiply, dy, b.Binary(ir.OpMultiply, s, inner))
		}, "self"),
		"gelu_backward.default": value((*call).geluBackward),
		"threshold_backward.default": value(func(c *call) ir.Value {
			dy, x := c.tensor("grad_output"), c.tensor("self")
			low := c.b.Compare(ir.LE, x, c.b.FullLike(x, c.float("threshold", 0)))
			return c.b.Select(low, c.b.FullLike(dy, 0), dy)
		}),
		"_softmax_backward_data.default": value(func(c *call) ir.Value {
			return c.softmaxBackward(func(dy, y ir.Value, axis int) ir.Value {
				p := c.b.Binary(ir.OpMultiply, dy, y)
				sum := c.b.BroadcastTo(c.b.ReduceKeep(ir.Sum, p, axis), c.b.Shape(y))
				return c.b.Binary(ir.OpSubtract, p, c.b.Binary(ir.OpMultiply, y, sum))
			})
		}),
		"_log_softmax_backward_data.default": value(func(c *call) ir.Value {
			return c.softmaxBackward(func(dy, y ir.Value, axis int) ir.Value {
				sum := c.b.BroadcastTo(c.b.ReduceKeep(ir.Sum, dy, axis), c.b.Shape(y))
				return c.b.Binary(ir.OpSubtract, dy, c.b.Binary(ir.OpMultiply, c.b.Unary(ir.OpExponential, y), sum))
			})
		}),
		"embedding_dense_backward.default":                             value((*call).embeddingBackward),
		"_scaled_dot_product_flash_attention_for_cpu_backward.default": values((*call).attentionBackward),
		"_weight_norm_interface_backward.default":                      values((*call).weightNormBackward),
		"transformers.grouped_mm_fallback_backward.default":            values((*call).groupedProductBackward),
	}
	addNormBackwardRules(t)
	return t
}

// geluBackward is dy (Phi(x) + x phi(x)), or the derivative of the tanh approximation.
func (c *call) geluBackward() ir.Value {
	tanh := c.string("approximate", "none") == "tanh"
	return lower.InFloat32(c.b, func(v []ir.Value) ir.Value {
		b, dy, x := c.b, v[0], v[1]
		square := b.Binary(ir.OpMultiply, x, x)
		if !tanh {
			phi := lower.Scale(b, b.Unary(ir.OpExponential, lower.Scale(b, square, -0.5)), 1/math.Sqrt(2*math.Pi))
			cdf := lower.Scale(b, lower.AddScalar(b, b.Unary(ir.OpErf, lower.Scale(b, x, math.Sqrt2/2)), 1), 0.5)
			return b.Binary(ir.OpMultiply, dy, b.Binary(ir.OpAdd, cdf, b.Binary(ir.OpMultiply, x, phi)))
		}
		const k, a = math.Sqrt2 / math.SqrtPi, 0.044715
		inner := lower.Scale(b, b.Binary(ir.OpMultiply, x, lower.AddScalar(b, lower.Scale(b, square, a), 1)), k)
		t := b.Unary(ir.OpTanh, inner)
		slope := lower.Scale(b, lower.AddScalar(b, lower.Scale(b, square, 3*a), 1), k)
		sech := b.Binary(ir.OpSubtract, b.FullLike(t, 1), b.Binary(ir.OpMultiply, t, t))
		right := b.Binary(ir.OpMultiply, b.Binary(ir.OpMultiply, lower.Scale(b, x, 0.5), sech), slope)
		return b.Binary(ir.OpMultiply, dy, b.Binary(ir.OpAdd, lower.Scale(b, lower.AddScalar(b, t, 1), 0.5), right))
	}, c.tensor("grad_output"), c.tensor("self"))
}

func (c *call) softmaxBackward(f func(dy, y ir.Value, axis int) ir.Value) ir.Value {
	dy, y := c.tensor("grad_output"), c.tensor("output")
	axis := c.axis("dim", -1, c.b.Rank(y))
	r := lower.InFloat32(c.b, func(v []ir.Value) ir.Value { return f(v[0], v[1], axis) }, dy, y)
	return c.b.Convert(r, c.dtype("input_dtype", c.b.DType(r)))
}

// embeddingBackward adds the gradients of each row of the table; those of padding are left out.
func (c *call) embeddingBackward() ir.Value {
	dy, indices := c.tensor("grad_output"), c.tensor("indices")
	n, padding := c.size("num_weights"), c.int("padding_idx", -1)
	shape := c.b.Shape(dy)
	rank := c.b.Rank(indices)
	if rank >= len(shape) {
		c.bad("gradients of rank %d for indices of rank %d", len(shape), rank)
	}
	if padding >= 0 {
		out := c.b.Compare(ir.EQ, indices, c.b.FullLike(indices, float64(padding)))
		indices = c.b.Select(out, c.b.FullLike(indices, -1), indices) // dropped
	}
	width := shape[len(shape)-1]
	count := ir.Product(c.b.Shape(indices))
	zeros := c.b.Full(ir.TensorOf(c.b.DType(dy), n, width), 0)
	return c.b.Scatter(zeros, c.b.Reshape(indices, []ir.Dim{count}), c.b.Reshape(dy, []ir.Dim{count, width}), &ir.ScatterAttrs{Combine: ir.Sum,
		UpdateWindowDims: []int{1}, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1})
}

// attentionBackward gives the gradients of q, k and v from the output and the log of the sums
// of exponentials.
func (c *call) attentionBackward() []ir.Value {
	dout, q, k, v := c.tensor("grad_out"), c.tensor("query"), c.tensor("key"), c.tensor("value")
	out, lse := c.tensor("out"), c.tensor("logsumexp")
	c.require(c.float("dropout_p", 0) == 0, "with dropout")
	scale := c.attentionScale(q)
	shared := c.b.Shape(k)
	k, v = c.repeatHeads(k, q), c.repeatHeads(v, q)
	s := c.scores(q, k, c.optional("attn_mask"), scale, c.bool("is_causal", false))
	b, wide := c.b, c.b.DType(s)
	shape := b.Shape(s)
	rows := func(x ir.Value) ir.Value { return b.Broadcast(b.Convert(x, wide), shape, []int{0, 1, 2}) }
	// Where the exporter decomposed the forward operator, it passes the probabilities themselves.
	p := lse
	if b.Rank(lse) != 4 {
		p = b.Unary(ir.OpExponential, b.Binary(ir.OpSubtract, s, rows(lse)))
		empty := b.Compare(ir.EQ, rows(lse), b.FullLike(s, math.Inf(-1))) // rows that see nothing
		p = b.Select(empty, b.FullLike(p, 0), p)
	}
	p = b.Convert(p, wide)
	product := func(x, y ir.Value, xc, yc int) ir.Value {
		return b.DotGeneral(b.Convert(x, wide), b.Convert(y, wide), &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1}, LhsContract: []int{xc}, RhsContract: []int{yc}})
	}
	if !ir.SameShape(b.Shape(p), shape) {
		c.bad("logsumexp is %s for scores %s", b.Type(lse), ir.DimList(shape))
	}
	delta := b.Reduce(ir.Sum, b.Binary(ir.OpMultiply, b.Convert(dout, wide), b.Convert(out, wide)), 3)
	dp := product(dout, v, 3, 3)
	ds := lower.Scale(b, b.Binary(ir.OpMultiply, p, b.Binary(ir.OpSubtract, dp, rows(delta))), scale)
	t := b.DType(q)
	dk, dv := c.sumHeads(product(ds, q, 2, 2), shared[1]), c.sumHeads(product(p, dout, 2, 2), shared[1])
	return []ir.Value{b.Convert(product(ds, k, 3, 2), t), b.Convert(dk, t), b.Convert(dv, t)}
}

// repeatHeads gives every query head its key or value head, which several may share.
func (c *call) repeatHeads(x, q ir.Value) ir.Value {
	heads := c.b.Shape(q)[1]
	wide, ok := lower.RepeatHeads(c.b, x, heads)
	if !ok {
		c.bad("%s query heads and %s key heads", heads, c.b.Shape(x)[1])
	}
	return wide
}

// sumHeads adds up the gradients of query heads that share one of so many key heads.
func (c *call) sumHeads(x ir.Value, keys ir.Dim) ir.Value {
	s := c.b.Shape(x)
	if keys.Equal(s[1]) {
		return x
	}
	each, _ := s[1].DivExact(keys)
	return c.b.Reduce(ir.Sum, c.b.Reshape(x, []ir.Dim{s[0], keys, each, s[2], s[3]}), 2)
}
