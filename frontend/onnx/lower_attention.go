package onnx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// heads makes [B, H, S, D] of [B, S, H*D]; values of rank 4 stay.
func (n *node) heads(x ir.Value, count int64) ir.Value {
	b := n.b
	switch b.Rank(x) {
	case 4:
		return x
	case 3:
	default:
		n.wrong("an input is %s; it needs 3 or 4 dims", b.Type(x))
	}
	if count < 1 {
		n.wrong("%d heads", count)
	}
	s := b.Shape(x)
	split := b.Reshape(x, []ir.Dim{s[0], s[1], ir.Const(count), s[2].FloorDiv(ir.Const(count))})
	return b.Transpose(split, []int{0, 2, 1, 3})
}

// joinHeads makes [B, S, H*D] of [B, H, S, D].
func (n *node) joinHeads(x ir.Value) ir.Value {
	s := n.b.Shape(x)
	return n.b.Reshape(n.b.Transpose(x, []int{0, 2, 1, 3}), []ir.Dim{s[0], s[2], s[1].Mul(s[3])})
}

// attentionCall is an Attention operator after its inputs are brought to rank 4.
type attentionCall struct {
	n       *node
	q, k, v ir.Value
	scale   float64
	past    ir.Dim   // keys before the first query
	nonpad  ir.Value // valid keys of each batch, or ir.NoValue
	mask    ir.Value // bool or additive, rank 4, or ir.NoValue
}

func attention(n *node) {
	b := n.b
	if n.p.opType == "Attention" && len(n.p.inputs) < 3 {
		n.wrong("%d inputs", len(n.p.inputs))
	}
	rank3 := b.Rank(n.in(0)) == 3
	c := &attentionCall{n: n, nonpad: n.opt(6), mask: ir.NoValue}
	c.q = n.heads(n.in(0), n.int("q_num_heads", 0))
	c.k, c.v = n.heads(n.in(1), n.int("kv_num_heads", 0)), n.heads(n.in(2), n.int("kv_num_heads", 0))
	if n.has(4) {
		n.rankIs(n.in(4), 4)
		c.past = b.Shape(n.in(4))[2]
		c.k = b.Concatenate(2, n.in(4), c.k)
		c.v = b.Concatenate(2, n.in(5), c.v)
	}
	size, ok := b.Shape(c.q)[3].IsConst()
	if !ok || size < 1 {
		n.dataDependent("the head size is %s", b.Shape(c.q)[3])
	}
	c.scale = n.float("scale", 1/math.Sqrt(float64(size)))
	if n.has(3) {
		c.mask = c.fullMask(n.in(3))
	}
	n.unifyDims(b.Shape(c.k)[2], b.Shape(c.v)[2])
	y, scores := c.lower()
	if rank3 {
		y = n.joinHeads(y)
	}
	n.set(y, c.k, c.v, scores)
}

// fullMask gives a mask rank 4, and hides the keys that it does not reach.
func (c *attentionCall) fullMask(mask ir.Value) ir.Value {
	b := c.n.b
	if b.Rank(mask) > 4 || b.Rank(mask) < 1 {
		c.n.wrong("the mask is %s", b.Type(mask))
	}
	dims := slices.Concat(ir.Consts(slices.Repeat([]int64{1}, 4-b.Rank(mask))...), b.Shape(mask))
	mask = b.Reshape(mask, dims)
	keys := b.Shape(c.k)[2]
	short := keys.Sub(dims[3])
	if dims[3].Is(1) {
		return b.BroadcastTo(mask, []ir.Dim{dims[0], dims[1], dims[2], keys})
	}
	if v, isConst := short.IsConst(); isConst && v > 0 {
		hidden := b.Scalar(b.DType(mask), 0)
		if b.DType(mask) != ir.Bool {
			hidden = b.Scalar(b.DType(mask), math.Inf(-1))
		}
		zero := ir.Const(0)
		mask = b.Pad(mask, hidden, []ir.Dim{zero, zero, zero, zero}, []ir.Dim{zero, zero, zero, short}, nil)
	}
	dims = slices.Clone(b.Shape(mask))
	dims[3] = keys
	return c.n.sameDims(mask, dims)
}

// visible is the bool mask [B or 1, 1, S, T] of causality, windows and padding, or ir.NoValue
// where all is visible. plain tells that it is causality without an offset, or with that of
// past keys.
func (c *attentionCall) visible() (mask ir.Value, plain bool) {
	n, b := c.n, c.n.b
	causal := n.flag("is_causal", false)
	left, right := n.int("left_window_size", -1), n.int("right_window_size", -1)
	if left < 0 && right < 0 && c.nonpad == ir.NoValue {
		return ir.NoValue, causal
	}
	s, t := b.Shape(c.q)[2], b.Shape(c.k)[2]
	batch := ir.Const(1)
	if c.nonpad != ir.NoValue {
		batch = b.Shape(c.q)[0]
	}
	shape := []ir.Dim{batch, ir.Const(1), s, t}
	key := b.Iota(ir.I64, shape, 3)
	query := b.Iota(ir.I64, shape, 2)
	offset := b.Broadcast(b.Dim(c.past), shape, nil)
	mask = ir.NoValue
	and := func(m ir.Value) {
		if mask != ir.NoValue {
			m = b.Binary(ir.OpAnd, mask, m)
		}
		mask = m
	}
	if c.nonpad != ir.NoValue {
		valid := b.Broadcast(b.Convert(c.nonpad, ir.I64), shape, []int{0})
		and(b.Compare(ir.LT, key, valid))
		offset = b.Binary(ir.OpSubtract, valid, b.Broadcast(b.Dim(s), shape, nil))
	}
	distance := b.Binary(ir.OpSubtract, key, b.Binary(ir.OpAdd, query, offset))
	if causal {
		and(lower.CompareScalar(b, ir.LE, distance, 0))
	}
	if left >= 0 {
		and(lower.CompareScalar(b, ir.GE, distance, -float64(left)))
	}
	if right >= 0 {
		and(lower.CompareScalar(b, ir.LE, distance, float64(right)))
	}
	return mask, false
}

// lower makes the composite, or its parts where the operator asks for more than the result.
func (c *attentionCall) lower() (y, scores ir.Value) {
	n, b := c.n, c.n.b
	mask, causal := c.visible()
	softcap := n.float("softcap", 0)
	if softcap == 0 && !n.wants(3) {
		bias := c.combine(mask)
		operands := []ir.Value{c.q, c.k, c.v}
		if bias != ir.NoValue {
			operands = append(operands, bias)
		}
		return b.Attention(&ir.AttentionAttrs{Scale: c.scale, Causal: causal, AlignEnd: causal && !c.past.Is(0)}, operands...), ir.NoValue
	}
	if causal {
		shape := []ir.Dim{ir.Const(1), ir.Const(1), b.Shape(c.q)[2], b.Shape(c.k)[2]}
		limit := b.Binary(ir.OpAdd, b.Iota(ir.I64, shape, 2), b.Broadcast(b.Dim(c.past), shape, nil))
		mask = b.Compare(ir.LE, b.Iota(ir.I64, shape, 3), limit)
	}
	return c.decompose(c.combine(mask), softcap)
}

// combine joins the visible positions with the caller's mask.
func (c *attentionCall) combine(visible ir.Value) ir.Value {
	b := c.n.b
	switch {
	case visible == ir.NoValue && c.mask != ir.NoValue && b.DType(c.mask) != ir.Bool:
		return b.Convert(c.mask, b.DType(c.q))
	case visible == ir.NoValue:
		return c.mask
	case c.mask == ir.NoValue:
		return visible
	case b.DType(c.mask) == ir.Bool:
		return lower.Binary(b, ir.OpAnd, visible, c.mask)
	}
	mask := b.Convert(c.mask, b.DType(c.q))
	xs := lower.Broadcast(b, visible, mask)
	return b.Select(xs[0], xs[1], b.FullLike(xs[1], math.Inf(-1)))
}

// decompose computes attention in float32 or wider, with the scores that the operator's
// fourth output shows.
func (c *attentionCall) decompose(mask ir.Value, softcap float64) (y, scores ir.Value) {
	n, b := c.n, c.n.b
	to, wide := b.DType(c.q), ir.F32
	if to == ir.F64 {
		wide = to
	}
	q, k, v := b.Convert(c.q, wide), c.repeatHeads(b.Convert(c.k, wide)), c.repeatHeads(b.Convert(c.v, wide))
	s := b.DotGeneral(lower.Scale(b, q, c.scale), k, &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1}, LhsContract: []int{3}, RhsContract: []int{3}})
	raw := s
	if softcap != 0 {
		s = lower.Scale(b, b.Unary(ir.OpTanh, lower.Scale(b, s, 1/softcap)), softcap)
	}
	capped := s
	if mask != ir.NoValue {
		if b.DType(mask) == ir.Bool {
			none := b.Scalar(wide, math.Inf(-1))
			m := b.Broadcast(mask, b.Shape(s), []int{0, 1, 2, 3})
			s = b.Select(m, s, b.Broadcast(none, b.Shape(s), nil))
		} else {
			s = b.Binary(ir.OpAdd, s, b.BroadcastTo(b.Convert(mask, wide), b.Shape(s)))
			hidden := lower.CompareScalar(b, ir.EQ, b.BroadcastTo(mask, b.Shape(s)), math.Inf(-1))
			s = b.Select(hidden, b.FullLike(s, math.Inf(-1)), s)
		}
	}
	p := c.softmax(s)
	y = b.DotGeneral(p, v, &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1}, LhsContract: []int{3}, RhsContract: []int{2}})
	shown := map[int64]ir.Value{0: raw, 1: capped, 2: s, 3: p}
	scores, ok := shown[n.int("qk_matmul_output_mode", 0)]
	if !ok {
		n.wrong("qk_matmul_output_mode %d", n.int("qk_matmul_output_mode", 0))
	}
	return b.Convert(y, to), b.Convert(scores, to)
}

// softmax over keys, zero for rows that see nothing.
func (c *attentionCall) softmax(s ir.Value) ir.Value {
	b := c.n.b
	best := b.ReduceKeep(ir.Max, s, 3)
	empty := lower.CompareScalar(b, ir.EQ, best, math.Inf(-1))
	best = b.Select(empty, b.FullLike(best, 0), best)
	e := b.Unary(ir.OpExponential, b.Binary(ir.OpSubtract, s, b.BroadcastTo(best, b.Shape(s))))
	sum := b.ReduceKeep(ir.Sum, e, 3)
	sum = b.Select(empty, b.FullLike(sum, 1), sum)
	return b.Binary(ir.OpDivide, e, b.BroadcastTo(sum, b.Shape(s)))
}

// repeatHeads gives every query head its key or value head.
func (c *attentionCall) repeatHeads(x ir.Value) ir.Value {
	heads := c.n.b.Shape(c.q)[1]
	wide, ok := lower.RepeatHeads(c.n.b, x, heads)
	if !ok {
		c.n.wrong("%s query heads and %s key heads", heads, c.n.b.Shape(x)[1])
	}
	return wide
}

func rotaryEmbedding(n *node) {
	cos, sin := n.in(1), n.in(2)
	if n.has(3) {
		cos, sin = n.b.Take(cos, n.in(3), 0), n.b.Take(sin, n.in(3), 0)
	}
	n.set(n.rotate(n.in(0), cos, sin))
}

// rotate turns pairs of elements of the last dim by the angles of each token: cos and sin are
// [B, S, half or more].
func (n *node) rotate(x, cos, sin ir.Value) ir.Value {
	b := n.b
	rank3 := b.Rank(x) == 3
	x = n.heads(x, n.int("num_heads", 0))
	s := b.Shape(x) // [B, H, S, D]
	dim := s[3]
	if d := n.int("rotary_embedding_dim", 0); d > 0 {
		dim = ir.Const(d)
	}
	half := dim.FloorDiv(ir.Const(2))
	rotated := b.SliceAxis(x, 3, ir.Const(0), dim, 1)
	interleaved := n.flag("interleaved", false)
	var first, second ir.Value
	if interleaved {
		first, second = b.SliceAxis(rotated, 3, ir.Const(0), dim, 2), b.SliceAxis(rotated, 3, ir.Const(1), dim, 2)
	} else {
		first, second = b.SliceAxis(rotated, 3, ir.Const(0), half, 1), b.SliceAxis(rotated, 3, half, dim, 1)
	}
	wide := func(v ir.Value) ir.Value {
		v = n.sameDims(b.SliceAxis(v, b.Rank(v)-1, ir.Const(0), half, 1), []ir.Dim{s[0], s[2], half})
		return b.Broadcast(b.Convert(v, b.DType(x)), b.Shape(first), []int{0, 2, 3})
	}
	if b.Rank(cos) != 3 || b.Rank(sin) != 3 {
		n.wrong("the caches are %s and %s", b.Type(cos), b.Type(sin))
	}
	c, z := wide(cos), wide(sin)
	mul := func(x, y ir.Value) ir.Value { return b.Binary(ir.OpMultiply, x, y) }
	real := b.Binary(ir.OpSubtract, mul(c, first), mul(z, second))
	imaginary := b.Binary(ir.OpAdd, mul(z, first), mul(c, second))
	var y ir.Value
	if interleaved {
		y = b.Reshape(lower.Stack(b, 4, real, imaginary), b.Shape(rotated))
	} else {
		y = b.Concatenate(3, real, imaginary)
	}
	if !dim.Equal(s[3]) {
		y = b.Concatenate(3, y, b.SliceAxis(x, 3, dim, s[3], 1))
	}
	if rank3 {
		y = n.joinHeads(y)
	}
	return y
}

func attentions() map[string][]version {
	return map[string][]version{"Attention": one(attention), "RotaryEmbedding": one(rotaryEmbedding)}
}
