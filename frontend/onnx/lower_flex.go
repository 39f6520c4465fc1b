package onnx

import (
	"math"

	"weft/frontend/lower"
	"weft/ir"
)

// previews are operators of ONNX's preview domain.
func previews() map[string][]version {
	return map[string][]version{"ai.onnx.preview.FlexAttention": one(flexAttention)}
}

// flexAttention is attention whose scores, before softmax, and probabilities, after it, pass
// through subgraphs of the caller. Operands are [B, H, S, D]; keys and values may have fewer heads.
func flexAttention(n *node) {
	b := n.b
	c := &attentionCall{n: n, q: n.in(0), k: n.in(1), v: n.in(2), mask: ir.NoValue, nonpad: ir.NoValue}
	for _, x := range []ir.Value{c.q, c.k, c.v} {
		n.rankIs(x, 4)
	}
	size, ok := b.Shape(c.q)[3].IsConst()
	if !ok || size < 1 {
		n.dataDependent("the head size is %s", b.Shape(c.q)[3])
	}
	c.scale = n.float("scale", 1/math.Sqrt(float64(size)))
	n.unifyDims(b.Shape(c.k)[2], b.Shape(c.v)[2])
	wide := ir.F32
	if b.DType(c.q) == ir.F64 {
		wide = ir.F64
	}
	precision := n.dtypeAttr("softmax_precision", wide)
	if !precision.IsFloat() || precision.Bits() < 16 {
		n.wrong("softmax_precision %s", precision)
	}
	if precision == wide && !n.hasAttr("score_mod") && !n.hasAttr("prob_mod") {
		n.set(b.Attention(&ir.AttentionAttrs{Scale: c.scale}, c.q, c.k, c.v))
		return
	}
	q, k := b.Convert(c.q, wide), c.repeatHeads(b.Convert(c.k, wide))
	s := b.DotGeneral(lower.Scale(b, q, c.scale), k, &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1}, LhsContract: []int{3}, RhsContract: []int{3}})
	s = n.modified(b.Convert(s, precision), "score_mod")
	p := n.modified(lower.Softmax(b, s, 3), "prob_mod")
	v := c.repeatHeads(b.Convert(c.v, precision))
	y := b.DotGeneral(p, v, &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1}, LhsContract: []int{3}, RhsContract: []int{2}})
	n.set(b.Convert(y, b.DType(c.v)))
}

// modified passes a value through the subgraph of an attribute, where it is given: one that
// keeps the type.
func (n *node) modified(x ir.Value, name string) ir.Value {
	if !n.hasAttr(name) {
		return x
	}
	g := n.subgraph(name)
	if len(g.inputs) != 1 || len(g.outputs) != 1 {
		n.wrong("%s takes %d inputs and gives %d outputs; it must be one each", name, len(g.inputs), len(g.outputs))
	}
	y := n.tensors(n.body(g, n.b, wrapAll([]ir.Value{x}), name))[0]
	if n.b.DType(y) != n.b.DType(x) {
		n.wrong("%s makes %s of %s", name, n.b.Type(y), n.b.Type(x))
	}
	return n.sameDims(y, n.b.Shape(x))
}
