package onnx

import (
	"math"

	"weft/frontend/lower"
	"weft/ir"
)

// Operators of onnxruntime's domain, which its optimizer and quantizer put into files.
func microsoft() map[string][]version {
	const domain = "com.microsoft."
	return map[string][]version{
		domain + "Gelu":                             one(gelu),
		domain + "FastGelu":                         one(biasedGelu(true)),
		domain + "BiasGelu":                         one(biasedGelu(false)),
		domain + "QuickGelu":                        one(inFloat32(quickGelu)),
		domain + "FusedMatMul":                      one(fusedMatMul),
		domain + "SkipLayerNormalization":           one(skipLayerNormalization),
		domain + "SkipSimplifiedLayerNormalization": one(skipRMSNormalization),
		domain + "SimplifiedLayerNormalization":     one(rmsNormalization),
		"SimplifiedLayerNormalization":              one(rmsNormalization),
		domain + "RotaryEmbedding":                  one(rotaryEmbeddingMicrosoft),
		domain + "MultiHeadAttention":               one(multiHeadAttention),
		domain + "MatMulNBits":                      one(matMulNBits),
		domain + "DynamicQuantizeMatMul":            one(dynamicQuantizeMatMul),
		domain + "MatMulIntegerToFloat":             one(matMulIntegerToFloat),
		domain + "QuantizeLinear":                   one(quantizeLinear),
		domain + "DequantizeLinear":                 one(dequantizeLinear),
		domain + "DynamicQuantizeLSTM":              one(dynamicQuantizeLSTM),
	}
}

func biasedGelu(tanh bool) func(*node) {
	return func(n *node) {
		x := n.in(0)
		if n.has(1) {
			x = n.binary(ir.OpAdd, x, n.in(1))
		}
		n.set(lower.Gelu(n.b, x, tanh))
	}
}

func quickGelu(n *node, x ir.Value) ir.Value {
	return n.b.Binary(ir.OpMultiply, x, n.b.Unary(ir.OpLogistic, lower.Scale(n.b, x, n.float("alpha", 1.702))))
}

func fusedMatMul(n *node) {
	if n.flag("transBatchA", false) || n.flag("transBatchB", false) {
		n.unsupportedForm("transposed batches")
	}
	turn := func(x ir.Value, name string) ir.Value {
		rank := n.b.Rank(x)
		if !n.flag(name, false) || rank < 2 {
			return x
		}
		perm := n.allAxes(x)
		perm[rank-2], perm[rank-1] = rank-1, rank-2
		return n.b.Transpose(x, perm)
	}
	y := n.matmul(turn(n.in(0), "transA"), turn(n.in(1), "transB"))
	if alpha := n.float("alpha", 1); alpha != 1 {
		y = lower.Scale(n.b, y, alpha)
	}
	n.set(y)
}

// skipSum adds input, skip and the optional bias at the given input.
func (n *node) skipSum(bias int) ir.Value {
	sum := n.binary(ir.OpAdd, n.in(0), n.in(1))
	if n.has(bias) {
		sum = n.binary(ir.OpAdd, sum, n.in(bias))
	}
	return sum
}

func skipLayerNormalization(n *node) {
	sum := n.skipSum(4)
	n.rankAtLeast(sum, 1)
	y, mean, rstd := lower.LayerNorm(n.b, sum, 1, n.opt(2), n.opt(3), n.float("epsilon", 1e-12))
	n.set(y, mean, rstd, sum)
}

func skipRMSNormalization(n *node) {
	sum := n.skipSum(3)
	n.rankAtLeast(sum, 1)
	n.set(lower.RMSNorm(n.b, sum, 1, n.opt(2), n.float("epsilon", 1e-12)), ir.NoValue, ir.NoValue, sum)
}

// rotaryEmbeddingMicrosoft has the positions as its second input: one for each token, or the
// first one of all.
func rotaryEmbeddingMicrosoft(n *node) {
	x, position := n.in(0), n.in(1)
	b := n.b
	n.rankAtLeast(x, 3)
	if n.int("num_heads", 0) == 0 && b.Rank(x) == 3 {
		n.unsupportedForm("3 dims without num_heads")
	}
	if b.Rank(position) < 2 {
		s := b.Shape(x)
		tokens := []ir.Dim{s[0], s[len(s)-2]}
		first := b.Broadcast(b.Convert(b.Reshape(position, nil), ir.I64), tokens, nil)
		position = b.Binary(ir.OpAdd, b.Iota(ir.I64, tokens, 1), first)
	}
	n.set(n.rotate(x, b.Take(n.in(2), position, 0), b.Take(n.in(3), position, 0)))
}

func multiHeadAttention(n *node) {
	if n.has(3) || n.has(4) {
		n.unsupportedForm("a bias or key padding mask")
	}
	b := n.b
	count := n.int("num_heads", 0)
	if !n.has(1) || !n.has(2) {
		n.unsupportedForm("packed queries, keys and values")
	}
	c := &attentionCall{n: n, nonpad: ir.NoValue, mask: ir.NoValue}
	c.q, c.k, c.v = n.heads(n.in(0), count), n.heads(n.in(1), count), n.heads(n.in(2), count)
	if n.has(6) {
		n.rankIs(n.in(6), 4)
		c.past = b.Shape(n.in(6))[2]
		c.k, c.v = b.Concatenate(2, n.in(6), c.k), b.Concatenate(2, n.in(7), c.v)
	}
	size, ok := b.Shape(c.q)[3].IsConst()
	if !ok || size < 1 {
		n.dataDependent("the head size is %s", b.Shape(c.q)[3])
	}
	c.scale = n.float("scale", 1/math.Sqrt(float64(size)))
	if n.has(5) {
		c.mask = c.fullMask(n.in(5))
	}
	operands := []ir.Value{c.q, c.k, c.v}
	if mask := c.combine(ir.NoValue); mask != ir.NoValue {
		operands = append(operands, mask)
	}
	causal := n.flag("unidirectional", false)
	y := b.Attention(&ir.AttentionAttrs{Scale: c.scale, Causal: causal, AlignEnd: causal && !c.past.Is(0)}, operands...)
	n.set(n.joinHeads(y), c.k, c.v)
}

// matMulNBits multiplies with weights [N, blocks, bytes] of 4 or 8 bits.
func matMulNBits(n *node) {
	x, packed := n.in(0), n.in(1)
	b := n.b
	bits, block, columns, rows := n.int("bits", 4), n.int("block_size", 0), n.int("N", 0), n.int("K", 0)
	if bits != 4 && bits != 8 || block < 16 || block > 1<<16 || columns < 1 || rows < 1 || rows > 1<<40 || columns > 1<<40 || n.has(4) {
		n.unsupportedForm("%d bits, blocks of %d, N %d, K %d, or a group index", bits, block, columns, rows)
	}
	blocks := (rows + block - 1) / block
	wide := b.DType(x)
	if wide.Bits() < 32 {
		wide = ir.F32
	}
	weights := b.Convert(b.Reshape(n.nibbles(packed, bits), ir.Consts(columns, blocks, block)), wide)
	shape := b.Shape(weights)
	zero := b.FullLike(weights, float64(int64(1)<<(bits-1)))
	if n.has(3) {
		points := n.in(3)
		if b.DType(points) == ir.U8 {
			perRow := (blocks*bits + 7) / 8
			points = n.nibbles(b.Reshape(points, ir.Consts(columns, perRow)), bits)
			points = b.SliceAxis(points, 1, ir.Const(0), ir.Const(blocks), 1)
		}
		zero = b.Broadcast(b.Convert(b.Reshape(points, ir.Consts(columns, blocks)), wide), shape, []int{0, 1})
	}
	scales := b.Broadcast(b.Convert(b.Reshape(n.in(2), ir.Consts(columns, blocks)), wide), shape, []int{0, 1})
	w := b.Binary(ir.OpMultiply, b.Binary(ir.OpSubtract, weights, zero), scales)
	w = b.SliceAxis(b.Reshape(w, ir.Consts(columns, blocks*block)), 1, ir.Const(0), ir.Const(rows), 1)
	bias := ir.NoValue
	if n.has(5) {
		bias = n.in(5)
	}
	n.rankAtLeast(x, 1)
	n.set(lower.Linear(b, x, b.Convert(w, b.DType(x)), bias))
}

// nibbles unpacks bytes to numbers of 4 bits along the last dim, low bits first.
func (n *node) nibbles(x ir.Value, bits int64) ir.Value {
	b := n.b
	n.rankAtLeast(x, 1)
	if bits == 8 {
		return x
	}
	low := b.Binary(ir.OpAnd, x, b.FullLike(x, 15))
	high := b.Binary(ir.OpShiftRightLogical, x, b.FullLike(x, 4))
	shape := append([]ir.Dim{}, b.Shape(x)...)
	shape[len(shape)-1] = shape[len(shape)-1].MulConst(2)
	return b.Reshape(lower.Stack(b, b.Rank(x), low, high), shape)
}

// fakeQuantize rounds x as dynamic quantization to unsigned bytes does.
func (n *node) fakeQuantize(b *ir.Builder, x ir.Value) ir.Value {
	axes := n.allAxes(x)
	zero := b.Scalar(ir.F32, 0)
	low := b.Binary(ir.OpMinimum, b.Reduce(ir.Min, x, axes...), zero)
	high := b.Binary(ir.OpMaximum, b.Reduce(ir.Max, x, axes...), zero)
	scale := b.Binary(ir.OpDivide, b.Binary(ir.OpSubtract, high, low), b.Scalar(ir.F32, 255))
	scale = b.Select(lower.CompareScalar(b, ir.EQ, scale, 0), b.Scalar(ir.F32, 1), scale)
	point := b.Unary(ir.OpRoundNearestEven, lower.Clip(b, b.Unary(ir.OpNegate, b.Binary(ir.OpDivide, low, scale)), 0, 255))
	shape := b.Shape(x)
	wide, offset := b.Broadcast(scale, shape, nil), b.Broadcast(point, shape, nil)
	q := b.Binary(ir.OpAdd, b.Unary(ir.OpRoundNearestEven, b.Binary(ir.OpDivide, x, wide)), offset)
	return b.Binary(ir.OpMultiply, b.Binary(ir.OpSubtract, lower.Clip(b, q, 0, 255), offset), wide)
}

// dequantized is an integer input less its zero point, times its scale, which broadcast along
// an axis; ir.NoValue inputs are left out.
func (n *node) dequantized(x ir.Value, scale, zero, axis int) ir.Value {
	b := n.b
	y := b.Convert(x, ir.F32)
	if n.has(zero) {
		y = b.Binary(ir.OpSubtract, y, n.spread(b.Convert(n.in(zero), ir.F32), y, axis, 0))
	}
	return b.Binary(ir.OpMultiply, y, n.spread(b.Convert(n.in(scale), ir.F32), y, axis, 0))
}

func dynamicQuantizeMatMul(n *node) {
	w := n.in(1)
	n.rankAtLeast(w, 1)
	y := n.matmul(n.fakeQuantize(n.b, n.in(0)), n.dequantized(w, 2, 3, n.b.Rank(w)-1))
	if n.has(4) {
		y = n.binary(ir.OpAdd, y, n.in(4))
	}
	n.set(y)
}

func matMulIntegerToFloat(n *node) {
	x, w := n.in(0), n.in(1)
	n.rankAtLeast(x, 1)
	n.rankAtLeast(w, 1)
	y := n.matmul(n.dequantized(x, 2, 4, max(0, n.b.Rank(x)-2)), n.dequantized(w, 3, 5, n.b.Rank(w)-1))
	if n.has(6) {
		y = n.binary(ir.OpAdd, y, n.in(6))
	}
	n.set(y)
}

// dynamicQuantizeLSTM is an LSTM whose weights [D, I, 4H] are integers; the input and the
// hidden state are quantized before each product.
func dynamicQuantizeLSTM(n *node) {
	b := n.b
	weights := func(i, scale, zero int) ir.Value {
		w := n.in(i)
		n.rankIs(w, 3)
		s := b.Shape(w)
		per := func(k int) ir.Value { // [D] or [D, 4H]
			v := b.Convert(n.in(k), ir.F32)
			if b.Rank(v) == 2 {
				return b.Broadcast(v, s, []int{0, 2})
			}
			return b.Broadcast(n.sameDims(b.Reshape(v, []ir.Dim{b.Type(v).Numel()}), s[:1]), s, []int{0})
		}
		y := b.Convert(w, ir.F32)
		if n.has(zero) {
			y = b.Binary(ir.OpSubtract, y, per(zero))
		}
		return b.Transpose(b.Binary(ir.OpMultiply, y, per(scale)), []int{0, 2, 1})
	}
	r := n.newRecurrent(weights(1, 8, 9), weights(2, 10, 11), 4, 2, 7, []string{"Sigmoid", "Tanh", "Tanh"})
	r.x = n.fakeQuantize(b, r.x)
	r.hiddenInput = n.fakeQuantize
	r.finish(2, lstmStep)
}
