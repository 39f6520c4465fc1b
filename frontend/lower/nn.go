// Package lower holds what both frontends build from primitives: normalisations,
// activations, pooling, attention and losses (nn.go, pool.go, loss.go), and the arithmetic
// and indexing of array languages (arith.go).
package lower

import (
	"math"
	"slices"

	"weft/ir"
)

// InFloat32 computes f on operands of at most 16 bits in float32 and rounds the result once
// to the type of the first operand, as frameworks do for softmax, norms and losses. Absent
// operands (ir.NoValue) stay absent.
func InFloat32(b *ir.Builder, f func(xs []ir.Value) ir.Value, xs ...ir.Value) ir.Value {
	to := b.DType(xs[0])
	wide := slices.Clone(xs)
	for i, x := range xs {
		if x != ir.NoValue && isNarrow(b.DType(x)) {
			wide[i] = b.Convert(x, ir.F32)
		}
	}
	return b.Convert(f(wide), to)
}

func isNarrow(t ir.DType) bool { return t.IsFloat() && t.Bits() <= 16 }

// unary is InFloat32 for functions of one operand.
func unary(b *ir.Builder, x ir.Value, f func(x ir.Value) ir.Value) ir.Value {
	return InFloat32(b, func(xs []ir.Value) ir.Value { return f(xs[0]) }, x)
}

// Scale multiplies every element by a number.
func Scale(b *ir.Builder, x ir.Value, by float64) ir.Value {
	return b.Binary(ir.OpMultiply, x, b.FullLike(x, by))
}

// AddScalar adds a number to every element.
func AddScalar(b *ir.Builder, x ir.Value, v float64) ir.Value {
	return b.Binary(ir.OpAdd, x, b.FullLike(x, v))
}

// like broadcasts a value whose dims are 1 or equal, aligned at the end, to the shape of x.
func like(b *ir.Builder, v, x ir.Value) ir.Value { return b.BroadcastTo(v, b.Shape(x)) }

// Count is the number of elements along axes as a tensor of type t.
func Count(b *ir.Builder, x ir.Value, axes []int, t ir.Type) ir.Value {
	n := ir.Const(1)
	for _, a := range axes {
		n = n.Mul(b.Shape(x)[a])
	}
	if c, ok := n.IsConst(); ok {
		return b.Full(t, float64(c))
	}
	return b.Broadcast(b.Convert(b.Dim(n), t.DType), t.Shape, nil)
}

// Mean averages along axes, which stay with size 1 (keep) or vanish; narrow floats sum in
// float32 and round once.
func Mean(b *ir.Builder, x ir.Value, axes []int, keep bool) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		sum := reduce(b, ir.Sum, x, axes, keep)
		return b.Binary(ir.OpDivide, sum, Count(b, x, axes, b.Type(sum)))
	})
}

func reduce(b *ir.Builder, c ir.Combine, x ir.Value, axes []int, keep bool) ir.Value {
	if keep {
		return b.ReduceKeep(c, x, axes...)
	}
	return b.Reduce(c, x, axes...)
}

// Moments gives mean and variance along axes, which stay with size 1, of x in float32 or
// wider. The squared deviations are divided by the count less correction.
func Moments(b *ir.Builder, x ir.Value, axes []int, correction float64) (mean, variance ir.Value) {
	mean = Mean(b, x, axes, true)
	d := b.Binary(ir.OpSubtract, x, like(b, mean, x))
	sum := b.ReduceKeep(ir.Sum, b.Binary(ir.OpMultiply, d, d), axes...)
	n := Count(b, x, axes, b.Type(sum))
	if correction != 0 {
		n = b.Binary(ir.OpMaximum, AddScalar(b, n, -correction), b.FullLike(n, 0))
	}
	return mean, b.Binary(ir.OpDivide, sum, n)
}

// Softmax is exp(x - max) / sum along an axis.
func Softmax(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		e := b.Unary(ir.OpExponential, b.Binary(ir.OpSubtract, x, like(b, b.ReduceKeep(ir.Max, x, axis), x)))
		return b.Binary(ir.OpDivide, e, like(b, b.ReduceKeep(ir.Sum, e, axis), x))
	})
}

// LogSoftmax is x - max - log(sum(exp(x - max))) along an axis.
func LogSoftmax(b *ir.Builder, x ir.Value, axis int) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		d := b.Binary(ir.OpSubtract, x, like(b, b.ReduceKeep(ir.Max, x, axis), x))
		sum := b.ReduceKeep(ir.Sum, b.Unary(ir.OpExponential, d), axis)
		return b.Binary(ir.OpSubtract, d, like(b, b.Unary(ir.OpLog, sum), x))
	})
}

// LogSumExp is log(sum(exp(x))) along axes, stable for large x; an infinite maximum is the
// result itself.
func LogSumExp(b *ir.Builder, x ir.Value, axes []int, keep bool) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		largest := b.ReduceKeep(ir.Max, x, axes...)
		finite := b.Select(b.Unary(ir.OpIsFinite, largest), largest, b.FullLike(largest, 0))
		sum := b.ReduceKeep(ir.Sum, b.Unary(ir.OpExponential, b.Binary(ir.OpSubtract, x, like(b, finite, x))), axes...)
		r := b.Binary(ir.OpAdd, b.Unary(ir.OpLog, sum), finite)
		if keep {
			return r
		}
		return b.Reshape(r, without(b.Shape(r), axes))
	})
}

func without(dims []ir.Dim, axes []int) []ir.Dim {
	var rest []ir.Dim
	for i, d := range dims {
		if !slices.Contains(axes, i) {
			rest = append(rest, d)
		}
	}
	return rest
}

// lastAxes are the last n axes of a rank.
func lastAxes(rank, n int) []int {
	axes := make([]int, n)
	for i := range axes {
		axes[i] = rank - n + i
	}
	return axes
}

// Affine is x*weight + bias where they are given (ir.NoValue: not); they have the dims of x
// or 1, aligned at the end.
func Affine(b *ir.Builder, x, weight, bias ir.Value) ir.Value {
	if weight != ir.NoValue {
		x = b.Binary(ir.OpMultiply, x, like(b, weight, x))
	}
	if bias != ir.NoValue {
		x = b.Binary(ir.OpAdd, x, like(b, bias, x))
	}
	return x
}

// normalize is (x - mean) / sqrt(variance + eps), with 1/sqrt(variance + eps).
func normalize(b *ir.Builder, x, mean, variance ir.Value, eps float64) (y, rstd ir.Value) {
	rstd = b.Unary(ir.OpRsqrt, AddScalar(b, variance, eps))
	y = b.Binary(ir.OpMultiply, b.Binary(ir.OpSubtract, x, like(b, mean, x)), like(b, rstd, x))
	return y, rstd
}

// LayerNorm normalises over the last rank dims. weight and bias may be ir.NoValue. Mean and
// 1/sqrt(variance + eps) come in float32 or wider, with the reduced dims of size 1.
func LayerNorm(b *ir.Builder, x ir.Value, rank int, weight, bias ir.Value, eps float64) (y, mean, rstd ir.Value) {
	y = InFloat32(b, func(v []ir.Value) ir.Value {
		var variance, n ir.Value
		mean, variance = Moments(b, v[0], lastAxes(b.Rank(x), rank), 0)
		n, rstd = normalize(b, v[0], mean, variance, eps)
		return Affine(b, n, v[1], v[2])
	}, x, weight, bias)
	return y, mean, rstd
}

// RMSNorm divides by the root of the mean square over the last rank dims.
func RMSNorm(b *ir.Builder, x ir.Value, rank int, weight ir.Value, eps float64) ir.Value {
	return InFloat32(b, func(v []ir.Value) ir.Value {
		square := Mean(b, b.Binary(ir.OpMultiply, v[0], v[0]), lastAxes(b.Rank(x), rank), true)
		rstd := b.Unary(ir.OpRsqrt, AddScalar(b, square, eps))
		return Affine(b, b.Binary(ir.OpMultiply, v[0], like(b, rstd, v[0])), v[1], ir.NoValue)
	}, x, weight)
}

// Channels reshapes a vector of channels [C] so that it broadcasts against [N, C, spatial...]
// of a rank; ir.NoValue stays.
func Channels(b *ir.Builder, v ir.Value, rank int) ir.Value {
	if v == ir.NoValue {
		return v
	}
	dims := ir.Consts(slices.Repeat([]int64{1}, rank)...)
	dims[min(1, rank-1)] = ir.Product(b.Shape(v))
	return b.Reshape(v, dims)
}

// BatchNorm normalises channels (dim 1) by the given statistics [C].
func BatchNorm(b *ir.Builder, x, weight, bias, mean, variance ir.Value, eps float64) ir.Value {
	return InFloat32(b, func(v []ir.Value) ir.Value {
		for i := 1; i < len(v); i++ {
			v[i] = Channels(b, v[i], b.Rank(x))
		}
		n, _ := normalize(b, v[0], v[3], v[4], eps)
		return Affine(b, n, v[1], v[2])
	}, x, weight, bias, mean, variance)
}

// BatchMoments gives mean and variance [C] over all dims but 1, in float32 or wider.
func BatchMoments(b *ir.Builder, x ir.Value, correction float64) (mean, variance ir.Value) {
	if isNarrow(b.DType(x)) {
		x = b.Convert(x, ir.F32)
	}
	axes := []int{0}
	for i := 2; i < b.Rank(x); i++ {
		axes = append(axes, i)
	}
	mean, variance = Moments(b, x, axes, correction)
	c := b.Shape(x)[1:2]
	return b.Reshape(mean, c), b.Reshape(variance, c)
}

// GroupNorm normalises over groups of channels and all spatial dims; weight and bias [C] may
// be ir.NoValue. Groups equal to the channels make an instance norm.
func GroupNorm(b *ir.Builder, x ir.Value, groups int64, weight, bias ir.Value, eps float64) (y, mean, rstd ir.Value) {
	shape := b.Shape(x)
	y = InFloat32(b, func(v []ir.Value) ir.Value {
		grouped := []ir.Dim{shape[0], ir.Const(groups), ir.Product(shape[1:]).FloorDiv(ir.Const(groups))}
		g := b.Reshape(v[0], grouped)
		var variance, n ir.Value
		mean, variance = Moments(b, g, []int{2}, 0)
		n, rstd = normalize(b, g, mean, variance, eps)
		return Affine(b, b.Reshape(n, shape), Channels(b, v[1], len(shape)), Channels(b, v[2], len(shape)))
	}, x, weight, bias)
	return y, mean, rstd
}

// Relu is max(x, 0), NaN where x is.
func Relu(b *ir.Builder, x ir.Value) ir.Value { return b.Binary(ir.OpMaximum, x, b.FullLike(x, 0)) }

// Clip is min(max(x, low), high) with numbers.
func Clip(b *ir.Builder, x ir.Value, low, high float64) ir.Value {
	if math.IsInf(low, -1) && math.IsInf(high, 1) {
		return x
	}
	return b.Op(ir.OpClamp, nil, nil, b.FullLike(x, low), x, b.FullLike(x, high))[0]
}

// Gelu is x * Phi(x), by the error function or by the tanh approximation.
func Gelu(b *ir.Builder, x ir.Value, tanh bool) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		half := Scale(b, x, 0.5)
		if !tanh {
			return b.Binary(ir.OpMultiply, half, AddScalar(b, b.Unary(ir.OpErf, Scale(b, x, math.Sqrt2/2)), 1))
		}
		cube := b.Binary(ir.OpMultiply, b.Binary(ir.OpMultiply, x, x), x)
		inner := Scale(b, b.Binary(ir.OpAdd, x, Scale(b, cube, 0.044715)), math.Sqrt2/math.SqrtPi)
		return b.Binary(ir.OpMultiply, half, AddScalar(b, b.Unary(ir.OpTanh, inner), 1))
	})
}

// Silu is x * sigmoid(x).
func Silu(b *ir.Builder, x ir.Value) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value { return b.Binary(ir.OpMultiply, x, b.Unary(ir.OpLogistic, x)) })
}

// Mish is x * tanh(softplus(x)).
func Mish(b *ir.Builder, x ir.Value) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		return b.Binary(ir.OpMultiply, x, b.Unary(ir.OpTanh, Softplus(b, x, 1, math.Inf(1))))
	})
}

// Softplus is log(1 + exp(beta x)) / beta, and x where beta x exceeds threshold.
func Softplus(b *ir.Builder, x ir.Value, beta, threshold float64) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		z := Scale(b, x, beta)
		// log(1 + e^z) = max(z, 0) + log(1 + e^-|z|) does not overflow.
		tail := b.Unary(ir.OpLogPlusOne, b.Unary(ir.OpExponential, b.Unary(ir.OpNegate, b.Unary(ir.OpAbs, z))))
		soft := b.Binary(ir.OpDivide, b.Binary(ir.OpAdd, Relu(b, z), tail), b.FullLike(x, beta))
		if math.IsInf(threshold, 1) {
			return soft
		}
		return b.Select(b.Compare(ir.GT, z, b.FullLike(z, threshold)), x, soft)
	})
}

// LogSigmoid is -softplus(-x).
func LogSigmoid(b *ir.Builder, x ir.Value) ir.Value {
	return b.Unary(ir.OpNegate, Softplus(b, b.Unary(ir.OpNegate, x), 1, math.Inf(1)))
}

// Elu is scale * (x where positive, else alpha * (exp(inputScale * x) - 1)).
func Elu(b *ir.Builder, x ir.Value, alpha, scale, inputScale float64) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		z := x
		if inputScale != 1 {
			z = Scale(b, x, inputScale)
		}
		low := Scale(b, b.Unary(ir.OpExponentialMinusOne, z), alpha*scale)
		high := x
		if scale != 1 {
			high = Scale(b, x, scale)
		}
		return b.Select(b.Compare(ir.GT, x, b.FullLike(x, 0)), high, low)
	})
}

// Selu is Elu with the constants of self-normalising networks.
func Selu(b *ir.Builder, x ir.Value) ir.Value {
	return Elu(b, x, 1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1)
}

// LeakyRelu is x where positive, else slope * x.
func LeakyRelu(b *ir.Builder, x ir.Value, slope float64) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		return b.Select(b.Compare(ir.GT, x, b.FullLike(x, 0)), x, Scale(b, x, slope))
	})
}

// Hardsigmoid is min(max(alpha*x + beta, 0), 1).
func Hardsigmoid(b *ir.Builder, x ir.Value, alpha, beta float64) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		return Clip(b, AddScalar(b, Scale(b, x, alpha), beta), 0, 1)
	})
}

// Hardswish is x * min(max(x + 3, 0), 6) / 6.
func Hardswish(b *ir.Builder, x ir.Value) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		gate := Clip(b, AddScalar(b, x, 3), 0, 6)
		return b.Binary(ir.OpDivide, b.Binary(ir.OpMultiply, x, gate), b.FullLike(x, 6))
	})
}

// Softsign is x / (1 + |x|).
func Softsign(b *ir.Builder, x ir.Value) ir.Value {
	return b.Binary(ir.OpDivide, x, AddScalar(b, b.Unary(ir.OpAbs, x), 1))
}

// Matmul is NumPy's: dims before the last two broadcast; a vector on the left is a row, on
// the right a column, and its dim vanishes.
func Matmul(b *ir.Builder, x, y ir.Value) ir.Value {
	xr, yr := b.Rank(x), b.Rank(y)
	switch {
	case yr == 1:
		return b.DotGeneral(x, y, &ir.DotAttrs{LhsContract: []int{xr - 1}, RhsContract: []int{0}})
	case xr == 1 && yr == 2:
		return b.DotGeneral(x, y, &ir.DotAttrs{LhsContract: []int{0}, RhsContract: []int{0}})
	case yr == 2:
		return b.DotGeneral(x, y, &ir.DotAttrs{LhsContract: []int{xr - 1}, RhsContract: []int{0}})
	case xr == 1:
		row := Matmul(b, b.Reshape(x, []ir.Dim{ir.Const(1), b.Shape(x)[0]}), y)
		shape := b.Shape(row)
		return b.Reshape(row, slices.Delete(slices.Clone(shape), len(shape)-2, len(shape)-1))
	}
	xs, ys := b.Shape(x), b.Shape(y)
	batch, _ := joinShapes(xs[:xr-2], ys[:yr-2])
	x = Expand(b, x, slices.Concat(batch, xs[xr-2:]))
	y = Expand(b, y, slices.Concat(batch, ys[yr-2:]))
	n := len(batch)
	a := &ir.DotAttrs{LhsContract: []int{n + 1}, RhsContract: []int{n}}
	for i := range n {
		a.LhsBatch, a.RhsBatch = append(a.LhsBatch, i), append(a.RhsBatch, i)
	}
	return b.DotGeneral(x, y, a)
}

// Linear is x W^T + bias with weight [out, in]; bias may be ir.NoValue. Narrow floats round
// once, after the bias.
func Linear(b *ir.Builder, x, weight, bias ir.Value) ir.Value {
	a := &ir.DotAttrs{LhsContract: []int{b.Rank(x) - 1}, RhsContract: []int{b.Rank(weight) - 1}}
	return AddBias(b, bias, func(to ir.DType) ir.Value {
		a.To = to
		return b.DotGeneral(x, weight, a)
	}, b.DType(x))
}

// AddBias adds a bias that broadcasts (or ir.NoValue) to a product that can be had in a wider
// type: narrow floats are summed in float32 and rounded once to type to.
func AddBias(b *ir.Builder, bias ir.Value, product func(to ir.DType) ir.Value, to ir.DType) ir.Value {
	if bias == ir.NoValue {
		return product(to)
	}
	wide := to
	if isNarrow(to) {
		wide = ir.F32
	}
	p := product(wide)
	return b.Convert(b.Binary(ir.OpAdd, p, like(b, b.Convert(bias, wide), p)), to)
}

// RepeatHeads gives each of so many query heads its key or value head of x [N, H, S, E], which neighbours share. It is false where they do not come out
// even.
func RepeatHeads(b *ir.Builder, x ir.Value, heads ir.Dim) (ir.Value, bool) {
	s := b.Shape(x)
	if heads.Equal(s[1]) {
		return x, true
	}
	each, ok := heads.DivExact(s[1])
	if !ok {
		return x, false
	}
	wide := b.Broadcast(x, []ir.Dim{s[0], s[1], each, s[2], s[3]}, []int{0, 1, 3, 4})
	return b.Reshape(wide, []ir.Dim{s[0], heads, s[2], s[3]}), true
}

// ScaledDotProductAttention is softmax(q k^T * scale + mask) v with q [..., S, D], k [..., T, D], v [..., T, E]
// of rank 3 or more, whose leading dims broadcast (the heads of k and v may also divide those
// of q). mask is ir.NoValue, bool (false hides) or an additive bias. Causal position s sees
// t <= s.
func ScaledDotProductAttention(b *ir.Builder, q, k, v, mask ir.Value, scale float64, causal bool) ir.Value {
	shape := b.Shape(q)
	rank := len(shape)
	var lead []ir.Dim
	if rank > 4 {
		lead = shape[:rank-3]
	}
	fold := func(x ir.Value) ir.Value { return foldBatch(b, x, lead) }
	operands := []ir.Value{fold(q), fold(k), fold(v)}
	if mask != ir.NoValue {
		if len(lead) > 0 && b.Rank(mask) >= 4 {
			mask = b.BroadcastTo(mask, slices.Concat(lead, b.Shape(mask)[b.Rank(mask)-3:]))
			mask = foldBatch(b, mask, lead)
		} else {
			mask = foldBatch(b, mask, nil)
		}
		operands = append(operands, mask)
	}
	out := b.Attention(&ir.AttentionAttrs{Scale: scale, Causal: causal}, operands...)
	dims := slices.Clone(shape)
	dims[rank-1] = b.Shape(v)[b.Rank(v)-1]
	return b.Reshape(out, dims)
}

// foldBatch makes a rank of 4: leading dims of 1 in front, or the dims of lead folded to one.
func foldBatch(b *ir.Builder, x ir.Value, lead []ir.Dim) ir.Value {
	shape := b.Shape(x)
	if len(shape) > 4 {
		n := len(shape) - 3
		return b.Reshape(x, slices.Concat([]ir.Dim{ir.Product(shape[:n])}, shape[n:]))
	}
	dims := slices.Clone(shape)
	for len(dims) < 4 {
		dims = slices.Insert(dims, 0, ir.Const(1))
	}
	return b.Reshape(x, dims)
}
