package shard

import (
	"slices"

	"weft/ir"
)

// linear emits an operation of one operand that is still a sum over ranks, where the result of a sum is the
// sum of the results: the sum is taken later, once, and of less where the operation adds up or selects.
func (w *rewriter) linear(op *ir.Op, r *rule) bool {
	at := w.linearIn(op)
	if at < 0 {
		return false
	}
	v := op.Operands[at]
	p := w.now[v]
	if len(p.partial) == 0 || len(w.users[v]) > 1 || slices.Contains(w.e.Body.Results, v) || w.wantsAny(v, p.partial) {
		return false
	}
	parts := make([][]ir.Part, r.factors)
	used := slices.Clone(p.partial)
	for d, f := range r.operands[at] {
		if divided(p.shard[d]) && (f < 0 || !slices.Contains(r.results[0], f)) {
			return false
		}
		if f >= 0 {
			parts[f] = p.shard[d]
			used = append(used, axesOf(p.shard[d])...)
		}
	}
	for d, f := range r.results[0] { // of other operands alone
		if f >= 0 && parts[f] == nil {
			parts[f] = w.without(w.of(op.Results[0])[d], func(axis string) bool { return slices.Contains(used, axis) })
			used = append(used, axesOf(parts[f])...)
		}
	}
	if !shardingOf(shapeOf(w.e, v), r.operands[at], parts).Equal(p.shard) {
		return false
	}
	operands := make([]placed, len(op.Operands))
	for i, o := range op.Operands {
		if operands[i] = p; i != at {
			operands[i] = w.need(o, shardingOf(shapeOf(w.e, o), r.operands[i], parts))
		}
	}
	result := shardingOf(shapeOf(w.e, op.Results[0]), r.results[0], parts)
	w.now[op.Results[0]] = placed{value: w.emit(op, operands, []ir.Sharding{result})[0], shard: result, partial: p.partial}
	return true
}

// linearIn is the operand in which an operation is linear, given the others as they are; -1 for none.
func (w *rewriter) linearIn(op *ir.Op) int {
	partial := func(i int) bool { return len(w.now[op.Operands[i]].partial) > 0 }
	switch op.Kind {
	case ir.OpGather:
		return 0
	case ir.OpReduce:
		if op.Attrs.(*ir.ReduceAttrs).Combine == ir.Sum {
			return 0
		}
	case ir.OpSelect:
		if w.isZero(op.Operands[2]) && !partial(0) {
			return 1
		}
	case ir.OpMultiply:
		if !partial(1) {
			return 0
		}
		if !partial(0) {
			return 1
		}
	}
	return -1
}

// isZero tells whether a value is zero everywhere.
func (w *rewriter) isZero(v ir.Value) bool {
	op := w.def[v]
	for op != nil && op.Kind == ir.OpBroadcastInDim {
		op = w.def[op.Operands[0]]
	}
	if op == nil || op.Kind != ir.OpConstant {
		return false
	}
	t := op.Attrs.(*ir.ConstantAttrs).Value
	return t.Numel() == 1 && t.Float(0) == 0
}
