// Package decompose replaces composite operations that no kernel runs whole by the primitives
// that define them.
package decompose

import (
	"math"

	"weft/ir"
)

// Run decomposes attention without a kernel, long sorts and scatters whose updates may meet in every
// entry. It tells whether anything changed.
func Run(p *ir.Program) (bool, error) {
	return ir.Replace(p, func(b *ir.Builder, op *ir.Op) ([]ir.Value, bool) {
		switch {
		case op.Kind == ir.OpAttention && !hasKernel(b.Entry, op):
			return []ir.Value{attention(b, op)}, true
		case op.Kind == ir.OpRng && op.Attrs.(*ir.RngAttrs).Distribution == ir.Normal:
			return []ir.Value{normal(b, op)}, true
		case op.Kind == ir.OpSort && sortsLong(p, b.Entry, op):
			return longSort(b, op), true
		case op.Kind == ir.OpScatter && sortsScatter(p, b.Entry, op):
			return []ir.Value{sortedScatter(b, op)}, true
		}
		return nil, false
	})
}

// hasKernel tells whether attention runs whole: heads of a fixed size that registers and shared
// memory hold.
func hasKernel(e *ir.Entry, op *ir.Op) bool {
	q, v := e.Type(op.Operands[0]), e.Type(op.Operands[2])
	switch q.DType {
	case ir.F16, ir.BF16, ir.F32, ir.F64:
	default:
		return false
	}
	for _, d := range []ir.Dim{q.Shape[3], v.Shape[3]} {
		if n, ok := d.IsConst(); !ok || n < 1 || n > 256 {
			return false
		}
	}
	return true
}

// attention writes softmax(q k^T * scale + mask) v out. Its interior is float32 (float64 for
// float64 operands) and is rounded once at the end. Query heads that share key and value heads
// are a batch dim of their own.
func attention(b *ir.Builder, op *ir.Op) ir.Value {
	a := op.Attrs.(*ir.AttentionAttrs)
	result := b.Type(op.Results[0])
	inner := ir.F32
	if result.DType == ir.F64 {
		inner = ir.F64
	}
	q, k, v := op.Operands[0], op.Operands[1], op.Operands[2]
	qs, ks := b.Shape(q), b.Shape(k)
	batch, heads, s, t := qs[0], qs[1], qs[2], ks[2]
	groups := ks[1]
	repeats, _ := heads.DivExact(groups)
	single := repeats.Is(1)
	if !single {
		q = b.Reshape(q, []ir.Dim{batch, groups, repeats, s, qs[3]})
	}
	rank := b.Rank(q)
	scores := b.DotGeneral(q, k, &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1},
		LhsContract: []int{rank - 1}, RhsContract: []int{3}, To: inner})
	full := b.Shape(scores)
	scores = b.Binary(ir.OpMultiply, scores, b.Full(ir.TensorOf(inner, full...), a.Scale))
	scores = mask(b, a, op, scores, single, s, t)

	weights := softmax(b, scores, inner)
	out := b.DotGeneral(weights, b.Convert(v, inner), &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1},
		LhsContract: []int{rank - 1}, RhsContract: []int{2}, To: result.DType})
	return b.Reshape(out, result.Shape)
}

// mask hides scores: with minus infinity where a bool mask or the causal rule says so, or adds
// a bias.
func mask(b *ir.Builder, a *ir.AttentionAttrs, op *ir.Op, scores ir.Value, single bool, s, t ir.Dim) ir.Value {
	full := b.Type(scores)
	hidden := b.Full(full, math.Inf(-1))
	if a.Causal {
		square := []ir.Dim{s, t}
		row := b.Iota(ir.I64, square, 0)
		if a.AlignEnd {
			row = b.Binary(ir.OpAdd, row, b.Broadcast(b.Dim(t.Sub(s)), square, nil))
		}
		seen := b.Compare(ir.LE, b.Iota(ir.I64, square, 1), row)
		scores = b.Select(b.BroadcastTo(seen, full.Shape), scores, hidden)
	}
	if len(op.Operands) < 4 {
		return scores
	}
	m := op.Operands[3]
	if ms := b.Shape(m); !single {
		dims := []ir.Dim{ms[0], ir.Const(1), ir.Const(1), ms[2], ms[3]}
		if !ms[1].Is(1) {
			dims[1], dims[2] = full.Shape[1], full.Shape[2]
		}
		m = b.Reshape(m, dims)
	}
	if b.DType(m) == ir.Bool {
		return b.Select(b.BroadcastTo(m, full.Shape), scores, hidden)
	}
	return b.Binary(ir.OpAdd, scores, b.BroadcastTo(b.Convert(m, full.DType), full.Shape))
}

// softmax over the last dim; a row of minus infinities gives zeros.
func softmax(b *ir.Builder, x ir.Value, inner ir.DType) ir.Value {
	last := b.Rank(x) - 1
	full := b.Type(x)
	spread := func(v ir.Value) ir.Value { return b.BroadcastTo(v, full.Shape) }
	largest := b.ReduceKeep(ir.Max, x, last)
	empty := b.Compare(ir.EQ, largest, b.FullLike(largest, math.Inf(-1)))
	largest = b.Select(empty, b.FullLike(largest, 0), largest)
	e := b.Unary(ir.OpExponential, b.Binary(ir.OpSubtract, x, spread(largest)))
	sum := b.ReduceKeep(ir.Sum, e, last)
	sum = b.Select(empty, b.FullLike(sum, 1), sum)
	return b.Binary(ir.OpDivide, e, spread(sum))
}
