package fx

import (
	"math"

	"weft/frontend/lower"
	"weft/ir"
)

// nnRules are convolutions, normalisations, pooling, attention and losses.
func nnRules() map[string]rule {
	t := map[string]rule{
		"convolution.default": value((*call).convolution),
		"layer_norm.default": value(func(c *call) ir.Value {
			y, _, _ := c.layerNorm(c.tensor("input"))
			return y
		}),
		"native_layer_norm.default": values(func(c *call) []ir.Value {
			y, mean, rstd := c.layerNorm(c.tensor("input"))
			return c.recordedTypes(y, mean, rstd)
		}),
		"rms_norm.default": value(func(c *call) ir.Value {
			x := c.tensor("input")
			return lower.RMSNorm(c.b, x, c.normalizedRank(x), c.optional("weight"), c.float("eps", epsilon(c.b.DType(x))))
		}),
		"group_norm.default": value(func(c *call) ir.Value {
			x := c.tensor("input")
			groups := c.groups(x, c.int("num_groups", 1))
			y, _, _ := lower.GroupNorm(c.b, x, groups, c.optional("weight"), c.optional("bias"), c.float("eps", 1e-5))
			return y
		}),
		"native_group_norm.default":                    values((*call).nativeGroupNorm),
		"batch_norm.default":                           value((*call).batchNorm),
		"instance_norm.default":                        value((*call).instanceNorm),
		"_native_batch_norm_legit_no_training.default": values((*call).nativeBatchNorm),
		"native_batch_norm.default":                    values((*call).nativeBatchNorm),
		"_native_batch_norm_legit.no_stats":            values((*call).nativeBatchNorm),
		"_native_batch_norm_legit_functional.default":  values((*call).functionalBatchNorm),
		"_batch_norm_with_update.default":              values(func(c *call) []ir.Value { return c.updatingBatchNorm() }),
		"_batch_norm_no_update.default": values(func(c *call) []ir.Value {
			return append(c.nativeBatchNorm(), c.b.Full(ir.TensorOf(ir.U8, ir.Const(0)), 0))
		}),
		"_native_batch_norm_legit.default":                    values((*call).nativeBatchNorm),
		"scaled_dot_product_attention.default":                value((*call).attention),
		"_scaled_dot_product_flash_attention_for_cpu.default": values((*call).flashAttention),
		"cosine_similarity.default":                           value((*call).cosineSimilarity),
	}
	addConvolutionRules(t)
	addPoolRules(t)
	addResizeRules(t)
	addLossRules(t)
	return t
}

func epsilon(t ir.DType) float64 {
	if t == ir.F64 {
		return 0x1p-52
	}
	return 0x1p-23
}

// normalizedRank is the number of dims that normalized_shape names.
func (c *call) normalizedRank(x ir.Value) int {
	dims, _ := c.dims("normalized_shape")
	if len(dims) == 0 || len(dims) > c.b.Rank(x) {
		c.bad("normalized_shape has %d dims for rank %d", len(dims), c.b.Rank(x))
	}
	return len(dims)
}

// recordedTypes converts statistics to the types that the exporter recorded: devices differ in
// whether those of narrow floats are float32.
func (c *call) recordedTypes(results ...ir.Value) []ir.Value {
	for i, name := range c.outputNames() {
		if t, _, ok := c.tensorType(name, c.place); ok && i > 0 && i < len(results) && t.DType.IsFloat() {
			results[i] = c.b.Convert(results[i], t.DType)
		}
	}
	return results
}

func (c *call) layerNorm(x ir.Value) (y, mean, rstd ir.Value) {
	return lower.LayerNorm(c.b, x, c.normalizedRank(x), c.optional("weight"), c.optional("bias"), c.float("eps", 1e-5))
}

// groups checks a number of groups of channels.
func (c *call) groups(x ir.Value, n int64) int64 {
	if c.b.Rank(x) < 2 || n < 1 {
		c.bad("%d groups of rank %d", n, c.b.Rank(x))
	}
	if v, ok := c.b.Shape(x)[1].IsConst(); ok && v%n != 0 {
		c.bad("%d groups of %d channels", n, v)
	}
	return n
}

func (c *call) nativeGroupNorm() []ir.Value {
	x := c.tensor("input")
	for _, name := range []string{"N", "C", "HxW"} {
		c.arg(name) // the shape says the same
	}
	groups := c.groups(x, c.int("group", 1))
	y, mean, rstd := lower.GroupNorm(c.b, x, groups, c.optional("weight"), c.optional("bias"), c.float("eps", 1e-5))
	stats := []ir.Dim{c.b.Shape(x)[0], ir.Const(groups)}
	t := c.b.DType(x)
	return []ir.Value{y, c.b.Convert(c.b.Reshape(mean, stats), t), c.b.Convert(c.b.Reshape(rstd, stats), t)}
}

// batchNorm normalises by the running statistics, or in training by those of the batch; then
// the running statistics move by momentum.
func (c *call) batchNorm() ir.Value {
	x := c.tensor("input")
	c.groups(x, 1)
	weight, bias, eps := c.optional("weight"), c.optional("bias"), c.float("eps", 1e-5)
	momentum := c.float("momentum", 0.1)
	if !c.bool("training", false) {
		return lower.BatchNorm(c.b, x, weight, bias, c.tensor("running_mean"), c.tensor("running_var"), eps)
	}
	y, _, _ := c.trainBatchNorm(x, weight, bias, momentum, eps)
	return y
}

func (c *call) trainBatchNorm(x, weight, bias ir.Value, momentum, eps float64) (y, mean, rstd ir.Value) {
	mean, variance := lower.BatchMoments(c.b, x, 0)
	if c.has("running_mean") {
		_, unbiased := lower.BatchMoments(c.b, x, 1)
		c.moveAverage("running_mean", mean, momentum)
		c.moveAverage("running_var", unbiased, momentum)
	}
	y = lower.BatchNorm(c.b, x, weight, bias, mean, variance, eps)
	return y, mean, c.b.Unary(ir.OpRsqrt, lower.AddScalar(c.b, variance, eps))
}

// moveAverage moves a running statistic by momentum toward a new value.
func (c *call) moveAverage(name string, next ir.Value, momentum float64) {
	t := c.handle(name)
	t.write(c.b, c.movedAverage(t.read(c.b), next, momentum))
}

func (c *call) movedAverage(old, next ir.Value, momentum float64) ir.Value {
	wide := c.b.Convert(old, c.b.DType(next))
	moved := c.b.Binary(ir.OpAdd, lower.Scale(c.b, wide, 1-momentum), lower.Scale(c.b, next, momentum))
	return c.b.Convert(moved, c.b.DType(old))
}

func (c *call) nativeBatchNorm() []ir.Value {
	x := c.tensor("input")
	c.groups(x, 1)
	weight, bias, eps := c.optional("weight"), c.optional("bias"), c.float("eps", 1e-5)
	momentum := c.float("momentum", 0.1)
	if c.bool("training", false) || !c.has("running_mean") {
		y, mean, rstd := c.trainBatchNorm(x, weight, bias, momentum, eps)
		return c.recordedTypes(y, mean, rstd)
	}
	y := lower.BatchNorm(c.b, x, weight, bias, c.tensor("running_mean"), c.tensor("running_var"), eps)
	none := c.b.Full(ir.TensorOf(c.b.DType(c.tensor("running_mean")), ir.Const(0)), 0)
	return []ir.Value{y, none, none}
}

// updatingBatchNorm is batch norm in training, with a fourth result that GPUs reserve.
func (c *call) updatingBatchNorm() []ir.Value {
	x := c.tensor("input")
	c.groups(x, 1)
	y, mean, rstd := c.trainBatchNorm(x, c.optional("weight"), c.optional("bias"), c.float("momentum", 0.1), c.float("eps", 1e-5))
	return c.recordedTypes(y, mean, rstd, c.b.Full(ir.TensorOf(ir.U8, ir.Const(0)), 0))
}

// functionalBatchNorm gives the new running statistics as results and leaves the old ones.
func (c *call) functionalBatchNorm() []ir.Value {
	x := c.tensor("input")
	c.groups(x, 1)
	momentum := c.float("momentum", 0.1)
	c.require(c.bool("training", true), "outside of training")
	weight, bias, eps := c.optional("weight"), c.optional("bias"), c.float("eps", 1e-5)
	mean, variance := lower.BatchMoments(c.b, x, 0)
	_, unbiased := lower.BatchMoments(c.b, x, 1)
	y := lower.BatchNorm(c.b, x, weight, bias, mean, variance, eps)
	rstd := c.b.Unary(ir.OpRsqrt, lower.AddScalar(c.b, variance, eps))
	return c.recordedTypes(y, mean, rstd, c.movedAverage(c.tensor("running_mean"), mean, momentum), c.movedAverage(c.tensor("running_var"), unbiased, momentum))
}

// instanceNorm normalises each channel of each sample, or by running statistics.
func (c *call) instanceNorm() ir.Value {
	x := c.tensor("input")
	c.groups(x, 1)
	weight, bias, eps := c.optional("weight"), c.optional("bias"), c.float("eps", 1e-5)
	useInput := c.bool("use_input_stats", true)
	momentum := c.float("momentum", 0.1)
	if !useInput {
		return lower.BatchNorm(c.b, x, weight, bias, c.tensor("running_mean"), c.tensor("running_var"), eps)
	}
	if c.has("running_mean") {
		c.moveInstanceStats(x, momentum)
	}
	channels, ok := c.b.Shape(x)[1].IsConst()
	c.require(ok, "with a symbolic number of channels")
	y, _, _ := lower.GroupNorm(c.b, x, channels, weight, bias, eps)
	return y
}

// moveInstanceStats moves the running statistics toward the mean of the samples' statistics.
func (c *call) moveInstanceStats(x ir.Value, momentum float64) {
	var axes []int
	for i := 2; i < c.b.Rank(x); i++ {
		axes = append(axes, i)
	}
	wide := c.b.Convert(x, ir.F32)
	if c.b.DType(x) == ir.F64 {
		wide = x
	}
	mean, variance := lower.Moments(c.b, wide, axes, 1)
	average := func(v ir.Value) ir.Value {
		return c.b.Reshape(lower.Mean(c.b, v, []int{0}, false), c.b.Shape(x)[1:2])
	}
	c.moveAverage("running_mean", average(mean), momentum)
	c.moveAverage("running_var", average(variance), momentum)
}

// attention is scaled_dot_product_attention.
func (c *call) attention() ir.Value {
	q, k, v := c.tensor("query"), c.tensor("key"), c.tensor("value")
	rank := c.b.Rank(q)
	if rank < 2 || c.b.Rank(k) != rank || c.b.Rank(v) != rank {
		c.bad("operands of rank %d, %d and %d", rank, c.b.Rank(k), c.b.Rank(v))
	}
	scale := c.attentionScale(q)
	mask := c.optional("attn_mask")
	if mask != ir.NoValue && c.b.DType(mask) != ir.Bool {
		mask = c.b.Convert(mask, c.b.DType(q))
	}
	q, k, v = c.sameBatch(q, k, v)
	if p := c.float("dropout_p", 0); p != 0 {
		return c.droppedAttention(q, k, v, mask, scale, p)
	}
	return lower.ScaledDotProductAttention(c.b, q, k, v, mask, scale, c.bool("is_causal", false))
}

// sameBatch broadcasts the dims before the heads.
func (c *call) sameBatch(q, k, v ir.Value) (ir.Value, ir.Value, ir.Value) {
	rank := c.b.Rank(q)
	grow := func(x ir.Value) ir.Value {
		dims := append([]ir.Dim(nil), c.b.Shape(x)...)
		for i := range max(rank-3, 0) {
			for _, o := range []ir.Value{q, k, v} {
				if dims[i].Is(1) {
					dims[i] = c.b.Shape(o)[i]
				}
			}
		}
		return c.b.BroadcastTo(x, dims)
	}
	return grow(q), grow(k), grow(v)
}

// attentionScale is the argument scale, 1/sqrt of the head's size when absent.
func (c *call) attentionScale(q ir.Value) float64 {
	if n, ok := c.literal("scale"); ok {
		return n.f
	}
	head, ok := c.b.Shape(q)[c.b.Rank(q)-1].IsConst()
	c.require(ok && head > 0, "with a symbolic head size and no scale")
	return 1 / math.Sqrt(float64(head))
}

// scores are scale * q k^T + mask in float32 or wider, [B, H, S, T].
func (c *call) scores(q, k, mask ir.Value, scale float64, causal bool) ir.Value {
	wide := ir.F32
	if c.b.DType(q) == ir.F64 {
		wide = ir.F64
	}
	s := c.b.DotGeneral(q, k, &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1}, LhsContract: []int{3}, RhsContract: []int{3}, To: wide})
	s = lower.Scale(c.b, s, scale)
	if mask != ir.NoValue {
		s = c.b.Binary(ir.OpAdd, s, c.b.BroadcastTo(c.b.Convert(mask, wide), c.b.Shape(s)))
	}
	if causal {
		shape := c.b.Shape(s)
		seen := c.b.Compare(ir.GE, c.b.Iota(ir.I64, shape, 2), c.b.Iota(ir.I64, shape, 3))
		s = c.b.Select(seen, s, c.b.FullLike(s, math.Inf(-1)))
	}
	return s
}

// flashAttention gives attention and the log of the sums of exponentials, which its gradient
// uses.
func (c *call) flashAttention() []ir.Value {
	q, k, v := c.tensor("query"), c.tensor("key"), c.tensor("value")
	c.require(c.float("dropout_p", 0) == 0, "with dropout")
	if c.b.Rank(q) != 4 || c.b.Rank(k) != 4 || c.b.Rank(v) != 4 {
		c.bad("operands that are not of rank 4")
	}
	scale, mask, causal := c.attentionScale(q), c.optional("attn_mask"), c.bool("is_causal", false)
	out := lower.ScaledDotProductAttention(c.b, q, k, v, mask, scale, causal)
	sums := lower.LogSumExp(c.b, c.scores(q, c.repeatHeads(k, q), mask, scale, causal), []int{3}, false)
	return []ir.Value{out, sums}
}

// cosineSimilarity is x.y / (max(|x|, eps) max(|y|, eps)) along dim.
func (c *call) cosineSimilarity() ir.Value {
	xs := lower.Broadcast(c.b, c.promoted([]ir.Value{c.floating("x1"), c.floating("x2")})...)
	axis := c.axis("dim", 1, c.b.Rank(xs[0]))
	eps := c.float("eps", 1e-8)
	return lower.InFloat32(c.b, func(v []ir.Value) ir.Value {
		dot := func(x, y ir.Value) ir.Value { return c.b.Reduce(ir.Sum, c.b.Binary(ir.OpMultiply, x, y), axis) }
		length := func(x ir.Value) ir.Value {
			n := c.b.Unary(ir.OpSqrt, dot(x, x))
			return c.b.Binary(ir.OpMaximum, n, c.b.FullLike(n, eps))
		}
		return c.b.Binary(ir.OpDivide, dot(v[0], v[1]), c.b.Binary(ir.OpMultiply, length(v[0]), length(v[1])))
	}, xs...)
}
