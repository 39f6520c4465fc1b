package kernel

import (
	"slices"

	"weft/ir"
)

// buildSort emits the kernel of a sort: a thread counts the elements that precede its own and
// stores it at that place. The work grows with the square of the axis and needs no workspace.
func (g *group) buildSort(op *ir.Op) {
	ev, b := g.ev, g.ev.b
	a := op.Attrs.(*ir.SortAttrs)
	key := op.Operands[0]
	t := ev.entry.Type(key)
	total := t.Numel()
	b.Kernel.Grid = [3]ir.Dim{total.CeilDiv(int64(g.schedule.Threads)), ir.Const(1), ir.Const(1)}
	id := b.Add(b.Mul(b.BlockIndex(0), b.Idx(int64(g.schedule.Threads))), b.ThreadIndex())
	g.guardedScope(b.Less(id, b.Size(total)), func() {
		own := ev.atLinear(t.Shape, id)
		at := ev.coordinates(own)
		x := ev.value(key, []*Point{own})[0]
		zero, one := b.Idx(0), b.Idx(1)
		rank := ev.loop(zero, b.Size(t.Shape[a.Axis]), one, []*Expr{zero}, func(j *Expr, carried []*Expr) []*Expr {
			other := slices.Clone(at)
			other[a.Axis] = j
			y := ev.value(key, []*Point{ev.at(t.Shape, other)})[0]
			precedes := b.sortsBefore(t.DType, y, x)
			follows := b.sortsBefore(t.DType, x, y)
			if a.Descending {
				precedes, follows = follows, precedes
			}
			first := b.Or(precedes, b.And(b.Not(follows), b.Less(j, at[a.Axis])))
			return []*Expr{b.Add(carried[0], b.Select(first, one, zero))}
		})[0]
		place := slices.Clone(at)
		place[a.Axis] = rank
		for i, operand := range op.Operands {
			to := []*Point{ev.at(ev.shape(operand), place)}
			g.storeLanes(i, to, ev.value(operand, []*Point{ev.atLinear(ev.shape(operand), id)}))
		}
	})
}

// sortsBefore is the ascending order of a sort: NaN is larger than all numbers.
func (b *Builder) sortsBefore(t ir.DType, x, y *Expr) *Expr {
	less := b.lessThan(t, x, y)
	if !t.IsFloat() {
		return less
	}
	return b.Or(less, b.And(b.Not(b.isNaN(x)), b.isNaN(y)))
}

// scatter computes one element of the result: the operand's, combined with every update whose
// index leads there, in row-major order of the indices.
func (ev *evaluator) scatter(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.ScatterAttrs)
	operand, indices := op.Operands[0], op.Operands[1]
	t := ev.entry.Type(operand)
	indexDims := ev.shape(indices)
	batch := indexDims
	if a.IndexVectorDim < len(indexDims) {
		batch = slices.Delete(slices.Clone(indexDims), a.IndexVectorDim, a.IndexVectorDim+1)
	}
	out := ev.nest(batch, ev.value(operand, lanes), func(at, carried []*Expr) []*Expr {
		start := ev.scatterStart(a, indices, at)
		next := make([]*Expr, len(lanes))
		for l, p := range lanes {
			next[l] = ev.scatterUpdate(a, op, p, at, start, carried[l])
		}
		return next
	})
	return ev.finishAll(t.DType, out)
}

// scatterStart reads one index vector: the operand coordinates where its window starts.
func (ev *evaluator) scatterStart(a *ir.ScatterAttrs, indices ir.Value, batch []*Expr) map[int]*Expr {
	b := ev.b
	dims := ev.shape(indices)
	start := map[int]*Expr{}
	for k, d := range a.ScatterDimsToOperandDims {
		at := slices.Clone(batch)
		if a.IndexVectorDim < len(dims) {
			at = slices.Insert(at, a.IndexVectorDim, b.Idx(int64(k)))
		}
		x := ev.value(indices, []*Point{ev.at(dims, at)})[0]
		start[d] = b.ToIndex(x, ev.entry.Type(indices).DType.IsUnsigned())
	}
	for i, d := range a.InputBatchingDims {
		from := a.ScatterIndicesBatchingDims[i]
		if from > a.IndexVectorDim {
			from--
		}
		start[d] = batch[from]
	}
	return start
}

// scatterUpdate combines the update that one index vector has for a point, if it has one.
func (ev *evaluator) scatterUpdate(a *ir.ScatterAttrs, op *ir.Op, p *Point, batch []*Expr, start map[int]*Expr, sum *Expr) *Expr {
	b := ev.b
	updates := op.Operands[2]
	dims := ev.shape(updates)
	at := make([]*Expr, len(dims))
	valid := b.True()
	window := a.UpdateWindowDims
	for d, x := range ev.coordinates(p) {
		offset := x
		if s, ok := start[d]; ok {
			offset = b.Sub(x, s)
		}
		if slices.Contains(a.InsertedWindowDims, d) || slices.Contains(a.InputBatchingDims, d) {
			valid = b.And(valid, b.Cmp(EQ, offset, b.Idx(0)))
			continue
		}
		at[window[0]] = offset
		valid = b.And(valid, b.inside(offset, dims[window[0]]))
		window = window[1:]
	}
	for i := range at {
		if at[i] == nil {
			at[i], batch = batch[0], batch[1:]
		}
	}
	u := ev.guarded(updates, []*Point{ev.at(dims, at)}, []*Expr{valid}, []*Expr{sum})[0]
	if a.Combine == ir.Assign {
		return u
	}
	return b.Select(valid, b.combine(a.Combine, ev.entry.Type(updates).DType, sum, u), sum)
}
