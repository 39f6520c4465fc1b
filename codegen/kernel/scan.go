package kernel

import (
	"slices"

	"weft/ir"
)

// scan runs a cumulative operation in linear work. Threads/Rows threads work on one row along the axis, a tile at a
// time: each combines Vector adjacent elements, the threads' totals are combined across lanes and warps, in an order
// that the schedule fixes, and what is before the tile is carried from tile to tile.
type scan struct {
	*group
	op       *ir.Op
	attrs    *ir.CumulativeAttrs
	dtype    ir.DType
	dims     []ir.Dim
	length   ir.Dim // of the axis
	perRow   int64
	vector   int64
	row      *Expr
	lane     *Expr
	inside   *Expr // the row exists
	rowAt    []*Expr
	identity *Expr
	totals   *Buffer // of a block's warps, nil where a row has one
}

// buildScan emits the kernel of a cumulative operation.
func (g *group) buildScan(op *ir.Op) {
	ev, b := g.ev, g.ev.b
	t := ev.entry.Type(op.Operands[0])
	a := op.Attrs.(*ir.CumulativeAttrs)
	s := &scan{group: g, op: op, attrs: a, dtype: t.DType, dims: t.Shape, length: t.Shape[a.Axis], identity: b.identity(a.Combine, t.DType)}
	perBlock := int64(g.schedule.Rows)
	s.perRow, s.vector = int64(g.schedule.Threads)/perBlock, int64(max(1, g.schedule.Vector))
	kept := slices.Delete(slices.Clone(t.Shape), a.Axis, a.Axis+1)
	rows := ir.Product(kept)
	b.Kernel.Grid = [3]ir.Dim{rows.CeilDiv(perBlock), ir.Const(1), ir.Const(1)}
	var slot *Expr
	slot, s.lane = b.DivMod(b.ThreadIndex(), b.Idx(s.perRow))
	row := b.Add(b.Mul(b.BlockIndex(0), b.Idx(perBlock)), slot)
	s.inside = b.Less(row, b.Size(rows))
	s.row = b.MinIndex(row, b.Sub(b.Size(rows), b.Idx(1)))
	s.rowAt = ev.delinearize(s.row, kept)
	if s.perRow > 32 {
		s.totals = b.SharedArray(s.identity.Type, perBlock*s.perRow/32)
	}
	tiles := s.length.CeilDiv(s.perRow * s.vector)
	ev.loop(b.Idx(0), b.Size(tiles), b.Idx(1), []*Expr{s.identity}, func(tile *Expr, carried []*Expr) []*Expr {
		return []*Expr{s.tile(tile, carried[0])}
	})
}

func (s *scan) combine(x, y *Expr) *Expr { return s.ev.b.combine(s.attrs.Combine, s.dtype, x, y) }

// points are a thread's elements of a tile in memory's order, and whether each is in the row.
func (s *scan) points(tile *Expr) (points []*Point, valid []*Expr) {
	ev, b := s.ev, s.ev.b
	first := b.Mul(b.Add(b.Mul(tile, b.Idx(s.perRow)), s.lane), b.Idx(s.vector))
	end := b.Size(s.length)
	for l := range s.vector {
		position := b.Add(first, b.Idx(l))
		last := position
		if s.length.DivisibleBy(s.vector, ev.prog.Divisor) {
			last = first // all or none
		}
		at := position
		if s.attrs.Reverse {
			at = b.Sub(b.Sub(end, b.Idx(1)), position)
		}
		points = append(points, s.point(at))
		valid = append(valid, b.Less(last, end))
	}
	if s.attrs.Reverse {
		slices.Reverse(points)
	}
	return points, valid
}

// point is the element of the thread's row at a position of the axis.
func (s *scan) point(at *Expr) *Point {
	ev, b := s.ev, s.ev.b
	multi := insertAxes(s.rowAt, []int{s.attrs.Axis}, []*Expr{at})
	if s.attrs.Axis < len(s.dims)-1 {
		return ev.at(s.dims, multi)
	}
	p := ev.atLinear(s.dims, b.Add(b.Mul(s.row, b.Size(s.length)), at))
	if p.multi == nil {
		p.multi = multi
	}
	return p
}

// inOrder gives values, which are in memory's order, in the order of the scan, and back.
func (s *scan) inOrder(values []*Expr) []*Expr {
	values = slices.Clone(values)
	if s.attrs.Reverse {
		slices.Reverse(values)
	}
	return values
}

// tile scans one tile and stores its results; it returns what the next tile starts with.
func (s *scan) tile(tile, before *Expr) *Expr {
	b := s.ev.b
	points, valid := s.points(tile)
	x := s.inOrder(s.ev.guarded(s.op.Operands[0], points, s.inOrder(valid), repeat(s.identity, len(points))))
	sums := []*Expr{s.identity} // of the elements before each and, at last, of all
	for _, v := range x {
		sums = append(sums, s.combine(sums[len(sums)-1], v))
	}
	prefix, total := s.across(sums[len(sums)-1])
	base := s.combine(before, prefix)
	results := make([]*Expr, len(x))
	for l := range results {
		own := sums[l+1]
		if s.attrs.Exclusive {
			own = sums[l]
		}
		results[l] = b.finish(s.dtype, s.combine(base, own))
	}
	s.store(points, s.inOrder(valid), s.inOrder(results))
	return s.combine(before, total)
}

// across combines the threads' totals: what is before a thread's elements in the tile, and the tile's total.
func (s *scan) across(total *Expr) (prefix, all *Expr) {
	b := s.ev.b
	prefix = s.identity
	_, lane := b.DivMod(s.lane, b.Idx(32))
	for mask := int64(1); mask < min(s.perRow, 32); mask *= 2 {
		other := b.ShuffleXor(total, mask)
		upper := b.Cmp(NE, b.Arith(And, b.Index, lane, b.Idx(mask)), b.Idx(0))
		prefix = b.Select(upper, s.combine(other, prefix), prefix)
		total = s.combine(total, other)
	}
	if s.totals == nil {
		return prefix, total
	}
	warp, inWarp := b.DivMod(b.ThreadIndex(), b.Idx(32))
	b.Barrier() // the totals of the tile before are read
	b.If(b.Cmp(EQ, inWarp, b.Idx(0)), func() { b.Store(s.totals, warp, total) })
	b.Barrier()
	warps := s.perRow / 32
	mine, _ := b.DivMod(s.lane, b.Idx(32))
	first := b.Sub(warp, mine)
	earlier, all := s.identity, s.identity
	for w := range warps {
		earlier = b.Select(b.Cmp(EQ, mine, b.Idx(w)), all, earlier)
		all = s.combine(all, b.LoadShared(s.totals, b.Add(first, b.Idx(w)), 1)[0])
	}
	return s.combine(earlier, prefix), all
}

// store stores a thread's results of a tile: together where all or none of them are in the row.
func (s *scan) store(points []*Point, valid, results []*Expr) {
	b := s.ev.b
	together := !slices.ContainsFunc(valid, func(v *Expr) bool { return v != valid[0] })
	if together {
		s.guardedScope(b.And(s.inside, valid[0]), func() { s.storeLanes(0, points, results) })
		return
	}
	for l := range points {
		s.guardedScope(b.And(s.inside, valid[l]), func() { s.storeLanes(0, points[l:l+1], results[l:l+1]) })
	}
}
