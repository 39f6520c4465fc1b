package shard

import (
	"slices"

	"weft/ir"
)

// lookup emits a gather of rows of a table that computation divides by rows, as an embedding is
// that shares its weights with a divided product: each rank looks up what it has, the rest
// counts as zero, and the sum over the ranks is the result.
func (w *rewriter) lookup(op *ir.Op, r *rule) bool {
	a, table := op.Attrs.(*ir.GatherAttrs), op.Operands[0]
	if len(a.StartIndexMap) != 1 || !slices.Contains(a.CollapsedSliceDims, a.StartIndexMap[0]) || w.b.DType(w.now[table].value) == ir.Bool {
		return false
	}
	d := a.StartIndexMap[0]
	rows := w.of(table)[d]
	if len(rows) != 1 || !divided(rows) {
		return false
	}
	parts, _ := w.factors(op, r)
	for f := range parts {
		parts[f] = w.without(parts[f], func(axis string) bool { return slices.Contains(rows[0].Axes, axis) })
	}
	operand := shardingOf(shapeOf(w.e, table), r.operands[0], parts)
	operand[d] = rows
	x := w.need(table, operand)
	indices := w.need(op.Operands[1], shardingOf(shapeOf(w.e, op.Operands[1]), r.operands[1], parts))
	result := shardingOf(shapeOf(w.e, op.Results[0]), r.results[0], parts)

	i, t := indices.value, w.b.DType(indices.value)
	scalar := func(n ir.Dim) ir.Value { return w.b.Broadcast(w.b.Convert(w.b.Dim(n), t), w.b.Shape(i), nil) }
	i = w.b.Op(ir.OpClamp, nil, nil, scalar(ir.Const(0)), i, scalar(rows[0].Size.AddConst(-1)))[0]
	i = w.b.Binary(ir.OpSubtract, i, scalar(w.first(rows[0])))
	here := w.b.Binary(ir.OpAnd, w.b.Compare(ir.GE, i, scalar(ir.Const(0))), w.b.Compare(ir.LT, i, scalar(rows[0].Local(w.mesh))))
	found := w.emit(op, []placed{x, {value: i, shard: indices.shard}}, []ir.Sharding{result})[0]
	if a.IndexVectorDim < w.b.Rank(here) {
		shape := slices.Delete(slices.Clone(w.b.Shape(here)), a.IndexVectorDim, a.IndexVectorDim+1)
		here = w.b.Reshape(here, shape)
	}
	var axes []int
	for n := range w.b.Rank(found) {
		if !slices.Contains(a.OffsetDims, n) {
			axes = append(axes, n)
		}
	}
	zero := w.b.Broadcast(w.zero(w.b.DType(found)), w.b.Shape(found), nil)
	v := w.b.Select(w.b.Broadcast(here, w.b.Shape(found), axes), found, zero)
	w.now[op.Results[0]] = placed{value: v, shard: result, partial: slices.Clone(rows[0].Axes)}
	return true
}
