package kernel

import (
	"slices"

	"weft/ir"
)

// buildUpdate emits the kernel of a scatter group: a thread writes some consecutive elements of
// the update to where they go in the memory of the first operand, which the result shares.
func (g *group) buildUpdate() {
	ev, b := g.ev, g.ev.b
	op := g.region.Update()
	updates := op.Operands[1]
	if op.Kind == ir.OpScatter {
		updates = op.Operands[2]
	}
	dims := ev.shape(updates)
	vector := int64(max(1, g.schedule.Vector))
	total := ir.Product(dims)
	b.Kernel.Grid = [3]ir.Dim{total.CeilDiv(vector * int64(g.schedule.Threads)), ir.Const(1), ir.Const(1)}
	id := b.Add(b.Mul(b.BlockIndex(0), b.Idx(int64(g.schedule.Threads))), b.ThreadIndex())
	first := b.Mul(id, b.Idx(vector))
	g.guardedScope(b.Less(first, b.Size(total)), func() {
		points := make([]*Point, vector)
		for l := range points {
			points[l] = ev.atLinear(dims, b.Add(first, b.Idx(int64(l))))
		}
		switch {
		case op.Kind == ir.OpDynamicUpdateSlice:
			g.updateSlice(op, points)
		default:
			g.scatterEach(op, points)
		}
	})
}

// updateSlice stores elements of the update at the start of the slice.
func (g *group) updateSlice(op *ir.Op, points []*Point) {
	ev := g.ev
	dims := ev.shape(op.Operands[0])
	start := ev.starts(op.Operands[2:], dims, ev.shape(op.Operands[1]))
	to := ev.mapPoints(points, dims, func(at []*Expr) []*Expr {
		out := make([]*Expr, len(at))
		for d, x := range at {
			out[d] = ev.b.Add(start[d], x)
		}
		return out
	})
	g.storeLanes(0, to, ev.value(op.Operands[1], points))
}

// scatterEach writes each update where its index vector leads. Several updates of one element
// are neighbours where the index vectors are sorted: the thread of the first takes them all, in
// order, or that of the last where the last one wins.
func (g *group) scatterEach(op *ir.Op, points []*Point) {
	ev, b := g.ev, g.ev.b
	a := op.Attrs.(*ir.ScatterAttrs)
	to, valid := make([]*Point, len(points)), make([]*Expr, len(points))
	for l, p := range points {
		to[l], valid[l] = ev.scatterTo(a, op, p)
		if scatterMode(ev.entry, op) == sorted {
			valid[l] = b.And(valid[l], ev.endsRun(a, op, p))
		}
	}
	lanes := len(points)
	if slices.ContainsFunc(valid, func(x *Expr) bool { return x != valid[0] }) {
		lanes = 1
	}
	for i := 0; i < len(points); i += lanes {
		g.guardedScope(valid[i], func() {
			g.storeLanes(0, to[i:i+lanes], g.scattered(op, points[i:i+lanes], to[i:i+lanes]))
		})
	}
}

// mode is how a scatter kernel finds the updates of one element.
type mode uint8

const (
	alone  mode = iota // there is one at most
	sorted             // they are neighbours
)

func scatterMode(e *ir.Entry, op *ir.Op) mode {
	a := op.Attrs.(*ir.ScatterAttrs)
	n := ir.Const(1)
	for d, size := range e.Type(op.Operands[1]).Shape {
		if d != a.IndexVectorDim {
			n = n.Mul(size)
		}
	}
	if a.UniqueIndices || n.Is(1) {
		return alone
	}
	return sorted
}

// scatterTo gives the point of the operand to which an update goes, and whether there is one.
func (ev *evaluator) scatterTo(a *ir.ScatterAttrs, op *ir.Op, p *Point) (to *Point, valid *Expr) {
	b := ev.b
	dims := ev.shape(op.Operands[0])
	batch, window := ev.splitUpdate(a, p)
	start := ev.scatterStart(a, op.Operands[1], batch)
	at := make([]*Expr, len(dims))
	valid = b.True()
	for d := range dims {
		at[d] = b.Idx(0)
		if !slices.Contains(a.InsertedWindowDims, d) && !slices.Contains(a.InputBatchingDims, d) {
			at[d], window = window[0], window[1:]
		}
		if s, ok := start[d]; ok {
			// An index beyond the dim would wrap around with the offset: it counts as outside.
			valid = b.And(valid, b.Less(s, b.Size(dims[d])))
			at[d] = b.Add(b.MinIndex(s, b.Size(dims[d])), at[d])
			valid = b.And(valid, b.inside(at[d], dims[d]))
		}
	}
	return ev.at(dims, at), valid
}

// splitUpdate gives the coordinates of an update among the index vectors and in its window.
func (ev *evaluator) splitUpdate(a *ir.ScatterAttrs, p *Point) (batch, window []*Expr) {
	for d, x := range ev.coordinates(p) {
		if slices.Contains(a.UpdateWindowDims, d) {
			window = append(window, x)
		} else {
			batch = append(batch, x)
		}
	}
	return batch, window
}

// endsRun tells whether an update is the first of those with its index vector, or the last where
// the last one wins.
func (ev *evaluator) endsRun(a *ir.ScatterAttrs, op *ir.Op, p *Point) *Expr {
	b := ev.b
	batch, _ := ev.splitUpdate(a, p)
	n, last := batch[0], b.Size(ev.shape(op.Operands[1])[0].AddConst(-1))
	if a.Combine == ir.Assign {
		end := b.Cmp(EQ, n, last)
		return b.Or(end, b.Not(ev.sameVector(op, n, b.MinIndex(b.Add(n, b.Idx(1)), last))))
	}
	start := b.Cmp(EQ, n, b.Idx(0))
	return b.Or(start, b.Not(ev.sameVector(op, n, b.MaxIndex(b.Sub(n, b.Idx(1)), b.Idx(0)))))
}

// sameVector tells whether two index vectors of sorted ones are equal.
func (ev *evaluator) sameVector(op *ir.Op, i, j *Expr) *Expr {
	b := ev.b
	dims := ev.shape(op.Operands[1])
	n, _ := dims[1].IsConst()
	same := b.True()
	for k := range n {
		x := ev.value(op.Operands[1], []*Point{ev.at(dims, []*Expr{i, b.Idx(k)})})[0]
		y := ev.value(op.Operands[1], []*Point{ev.at(dims, []*Expr{j, b.Idx(k)})})[0]
		same = b.And(same, b.Cmp(EQ, x, y))
	}
	return same
}

// scattered gives the new elements at points of the operand from the updates that begin there.
func (g *group) scattered(op *ir.Op, points, to []*Point) []*Expr {
	ev, b := g.ev, g.ev.b
	a := op.Attrs.(*ir.ScatterAttrs)
	updates := op.Operands[2]
	if a.Combine == ir.Assign {
		return ev.value(updates, points)
	}
	t := ev.entry.Type(updates).DType
	old := make([]*Expr, len(to))
	for l, p := range to {
		old[l] = b.loadWritten(g.outputs[0], ev.linearIndex(p))
	}
	add := func(points []*Point, sum []*Expr) []*Expr {
		next := make([]*Expr, len(sum))
		for l, u := range ev.value(updates, points) {
			next[l] = b.combine(a.Combine, t, sum[l], u)
		}
		return next
	}
	if scatterMode(ev.entry, op) == alone {
		return ev.finishAll(t, add(points, old))
	}
	batch, _ := ev.splitUpdate(a, points[0])
	n := batch[0]
	sum := ev.loop(n, ev.endOfRun(op, n), b.Idx(1), old, func(i *Expr, carried []*Expr) []*Expr {
		return add(ev.mapPoints(points, points[0].dims, func(at []*Expr) []*Expr {
			at = slices.Clone(at)
			for d := range at {
				if !slices.Contains(a.UpdateWindowDims, d) {
					at[d] = i
				}
			}
			return at
		}), carried)
	})
	return ev.finishAll(t, sum)
}

// endOfRun finds the index after the last of the sorted index vectors that equal number n. Most
// are alone, so that the search by halves is left out where the next one differs.
func (ev *evaluator) endOfRun(op *ir.Op, n *Expr) *Expr {
	b := ev.b
	size := ev.shape(op.Operands[1])[0]
	one, end := b.Idx(1), b.Size(size)
	next := b.Add(n, one)
	several := b.And(b.Less(next, end), ev.sameVector(op, n, b.MinIndex(next, b.Sub(end, one))))
	turns := b.Select(several, b.Idx(halvings(size, ev.prog)), b.Idx(0))
	found := ev.loop(b.Idx(0), turns, one, []*Expr{next, end}, func(_ *Expr, carried []*Expr) []*Expr {
		lo, hi := carried[0], carried[1]
		mid := b.Arith(LShr, b.Index, b.Add(lo, hi), one)
		same := b.And(b.Less(mid, hi), ev.sameVector(op, n, b.MinIndex(mid, b.Sub(end, one))))
		return []*Expr{b.Select(same, b.Add(mid, one), lo), b.Select(same, hi, mid)}
	})
	return found[0]
}

// halvings is the number of times that a range of some size is halved before nothing is left.
func halvings(size ir.Dim, p *ir.Program) int64 {
	most, ok := size.IsConst()
	if !ok {
		most = size.Bounds(p.Range).Max
	}
	n := int64(1)
	for ; most > 0; most /= 2 {
		n++
	}
	return n
}

// loadWritten reads an element of a buffer that the kernel writes, here and now.
func (b *Builder) loadWritten(buf *Buffer, index *Expr) *Expr {
	return b.LoadShared(buf, index, 1)[0]
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
