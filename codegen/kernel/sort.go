package kernel

import (
	"slices"

	"weft/ir"
)

// buildSort emits the kernel of a sort: a block sorts a run in shared memory, or each thread
// counts the elements that precede its own and stores it at that place.
func (g *group) buildSort(op *ir.Op) {
	if g.schedule.TileN > 0 {
		g.buildTileSort(op)
		return
	}
	ev, b := g.ev, g.ev.b
	a := op.Attrs.(*ir.SortAttrs)
	t := ev.entry.Type(op.Operands[0])
	total := t.Numel()
	b.Kernel.Grid = [3]ir.Dim{total.CeilDiv(int64(g.schedule.Threads)), ir.Const(1), ir.Const(1)}
	id := b.Add(b.Mul(b.BlockIndex(0), b.Idx(int64(g.schedule.Threads))), b.ThreadIndex())
	g.guardedScope(b.Less(id, b.Size(total)), func() {
		own := ev.atLinear(t.Shape, id)
		at := ev.coordinates(own)
		place := slices.Clone(at)
		if a.Sorted > 0 {
			place[a.Axis] = ev.mergedRank(op, own)
		} else {
			place[a.Axis] = ev.countedRank(op, own)
		}
		for i, operand := range op.Operands {
			to := []*Point{ev.at(ev.shape(operand), place)}
			g.storeLanes(i, to, ev.value(operand, []*Point{ev.atLinear(ev.shape(operand), id)}))
		}
	})
}

// sortedRange gives the positions along the axis that are sorted together with an element's.
func (ev *evaluator) sortedRange(a *ir.SortAttrs, dims []ir.Dim, at *Expr) (lo, hi *Expr) {
	b := ev.b
	n := b.Size(dims[a.Axis])
	if a.Within == 0 {
		return b.Idx(0), n
	}
	_, r := b.DivMod(at, b.Idx(a.Within))
	lo = b.Sub(at, r)
	return lo, b.MinIndex(b.Add(lo, b.Idx(a.Within)), n)
}

// sortKey reads the key at another position of a point's row.
func (ev *evaluator) sortKey(op *ir.Op, own *Point, j *Expr) *Expr {
	other := slices.Clone(ev.coordinates(own))
	other[op.Attrs.(*ir.SortAttrs).Axis] = j
	return ev.value(op.Operands[0], []*Point{ev.at(own.dims, other)})[0]
}

// goesFirst tells whether key y of an earlier (or later) position comes before key x.
func (b *Builder) goesFirst(a *ir.SortAttrs, t ir.DType, y, x, earlier *Expr) *Expr {
	precedes, follows := b.sortsBefore(t, y, x), b.sortsBefore(t, x, y)
	if a.Descending {
		precedes, follows = follows, precedes
	}
	return b.Or(precedes, b.And(b.Not(follows), earlier))
}

// countedRank looks at all elements: the work grows with the square of the axis.
func (ev *evaluator) countedRank(op *ir.Op, own *Point) *Expr {
	b := ev.b
	a := op.Attrs.(*ir.SortAttrs)
	at, t := ev.coordinates(own)[a.Axis], ev.entry.Type(op.Operands[0]).DType
	x := ev.value(op.Operands[0], []*Point{own})[0]
	zero, one := b.Idx(0), b.Idx(1)
	lo, hi := ev.sortedRange(a, own.dims, at)
	return ev.loop(lo, hi, one, []*Expr{lo}, func(j *Expr, carried []*Expr) []*Expr {
		first := b.goesFirst(a, t, ev.sortKey(op, own, j), x, b.Less(j, at))
		return []*Expr{b.Add(carried[0], b.Select(first, one, zero))}
	})[0]
}

// mergedRank looks into each run that is sorted already by halves.
func (ev *evaluator) mergedRank(op *ir.Op, own *Point) *Expr {
	b := ev.b
	a := op.Attrs.(*ir.SortAttrs)
	at, t := ev.coordinates(own)[a.Axis], ev.entry.Type(op.Operands[0]).DType
	x := ev.value(op.Operands[0], []*Point{own})[0]
	lo, hi := ev.sortedRange(a, own.dims, at)
	run := b.Idx(a.Sorted)
	_, within := b.DivMod(at, run)
	mine := b.Sub(at, within)
	return ev.loop(lo, hi, run, []*Expr{lo}, func(start *Expr, carried []*Expr) []*Expr {
		end := b.MinIndex(b.Add(start, run), hi)
		self := b.Cmp(EQ, start, mine)
		turns := b.Select(self, b.Idx(0), b.Idx(halvings(ir.Const(a.Sorted), ev.prog)))
		found := ev.loop(b.Idx(0), turns, b.Idx(1), []*Expr{start, end}, func(_ *Expr, c []*Expr) []*Expr {
			mid := b.Arith(LShr, b.Index, b.Add(c[0], c[1]), b.Idx(1))
			y := ev.sortKey(op, own, b.MinIndex(mid, b.Sub(end, b.Idx(1))))
			first := b.And(b.Less(mid, c[1]), b.goesFirst(a, t, y, x, b.Less(start, at)))
			return []*Expr{b.Select(first, b.Add(mid, b.Idx(1)), c[0]), b.Select(first, c[1], mid)}
		})
		count := b.Select(self, within, b.Sub(found[0], start))
		return []*Expr{b.Add(carried[0], count)}
	})[0]
}

// sortsBefore is the ascending order of a sort: NaN is larger than all numbers.
func (b *Builder) sortsBefore(t ir.DType, x, y *Expr) *Expr {
	less := b.lessThan(t, x, y)
	if !t.IsFloat() {
		return less
	}
	return b.Or(less, b.And(b.Not(b.isNaN(x)), b.isNaN(y)))
}

// buildTileSort emits a bitonic sort: a block loads a run of one row into shared memory, sorts
// keys with their positions, so that equal keys keep their order, and picks the elements by the
// positions. A thread compares two elements in each of the network's steps.
func (g *group) buildTileSort(op *ir.Op) {
	ev, b := g.ev, g.ev.b
	a := op.Attrs.(*ir.SortAttrs)
	t := ev.entry.Type(op.Operands[0])
	tile := int64(g.schedule.TileN)
	length := t.Shape[a.Axis]
	runs := length.CeilDiv(tile)
	rows := ir.Product(slices.Delete(slices.Clone(t.Shape), a.Axis, a.Axis+1))
	b.Kernel.Grid = [3]ir.Dim{rows.Mul(runs), ir.Const(1), ir.Const(1)}
	row, run := b.DivMod(b.BlockIndex(0), b.Size(runs))
	first := b.Mul(run, b.Idx(tile))
	point := func(shape []ir.Dim, position *Expr) *Point {
		at := ev.delinearize(row, slices.Delete(slices.Clone(shape), a.Axis, a.Axis+1))
		return ev.at(shape, slices.Insert(at, a.Axis, position))
	}
	s := newSortTile(b, t.DType, tile)
	perThread := tile / int64(g.schedule.Threads)
	for i := range perThread {
		at := b.Add(b.ThreadIndex(), b.Idx(i*int64(g.schedule.Threads)))
		position := b.Add(first, at)
		valid := b.Less(position, b.Size(length))
		zero := b.zero(held(t.DType))
		x := ev.guarded(op.Operands[0], []*Point{point(t.Shape, position)}, []*Expr{valid}, []*Expr{zero})[0]
		s.put(at, b.orderKey(t.DType, x, a.Descending), valid)
	}
	s.sort()
	for i := range perThread {
		at := b.Add(b.ThreadIndex(), b.Idx(i*int64(g.schedule.Threads)))
		to, from := b.Add(first, at), b.Add(first, s.position(at))
		g.guardedScope(b.Less(to, b.Size(length)), func() {
			for n, operand := range op.Operands {
				shape := ev.shape(operand)
				g.storeLanes(n, []*Point{point(shape, to)}, ev.value(operand, []*Point{point(shape, from)}))
			}
		})
	}
}

// orderKey maps a key to a signed integer of 32 or 64 bits with the order of the sort.
func (b *Builder) orderKey(t ir.DType, x *Expr, descending bool) *Expr {
	h := x.Type
	k := ir.I32
	if h.Bits() == 64 {
		k = ir.I64
	}
	lo, hi := fullRange(k)
	switch {
	case h.IsFloat():
		bits := b.Arith(Bitcast, k, x)
		negative := b.Cmp(SLT, bits, b.Int(k, 0))
		order := b.Select(negative, b.Arith(Xor, k, bits, b.Int(k, hi)), bits)
		order = b.Select(b.Cmp(FEQ, x, b.Float(h, 0)), b.Int(k, 0), order)
		x = b.Select(b.isNaN(x), b.Int(k, hi), order)
	case h.Bits() < 32 && (t.IsUnsigned() || t == ir.Bool):
		x = b.Arith(ZExt, k, x)
	case h.Bits() < 32:
		x = b.Arith(SExt, k, x)
	case t.IsUnsigned():
		x = b.Arith(Xor, k, x, b.Int(k, lo))
	}
	if descending {
		x = b.Arith(Xor, k, x, b.Int(k, -1))
	}
	return x
}

// sortTile is a run in shared memory: keys and positions, joined in one integer where both fit.
type sortTile struct {
	b         *Builder
	length    int64
	keys      *Buffer
	positions *Buffer // of keys of 64 bits
}

func newSortTile(b *Builder, t ir.DType, length int64) *sortTile {
	s := &sortTile{b: b, length: length, keys: b.SharedArray(ir.I64, length)}
	if held(t).Bits() == 64 {
		s.positions = b.SharedArray(ir.I32, length)
	}
	return s
}

// put stores an element; what lies beyond the row sorts to the end.
func (s *sortTile) put(at, key, valid *Expr) {
	b := s.b
	_, last := fullRange(ir.I64)
	position := b.FromIndex(at, ir.I32)
	if s.positions != nil {
		b.Store(s.positions, at, position)
	} else {
		high := b.Arith(Shl, ir.I64, b.Arith(SExt, ir.I64, key), b.Int(ir.I64, 32))
		key = b.Arith(Or, ir.I64, high, b.Arith(ZExt, ir.I64, position))
	}
	b.Store(s.keys, at, b.Select(valid, key, b.Int(ir.I64, last)))
}

// position is where the element came from that is at a place now.
func (s *sortTile) position(at *Expr) *Expr {
	b := s.b
	if s.positions != nil {
		return b.ToIndex(b.LoadShared(s.positions, at, 1)[0], false).ranged(0, s.length-1)
	}
	packed := b.Arith(Trunc, ir.I32, b.LoadShared(s.keys, at, 1)[0])
	return b.ToIndex(packed, false).ranged(0, s.length-1)
}

// sort runs the network: stage i merges runs of 2^i elements, comparing at distances from 2^i
// down to 1.
func (s *sortTile) sort() {
	b := s.b
	none := func(f func(i *Expr)) func(*Expr, []*Expr) []*Expr {
		return func(i *Expr, _ []*Expr) []*Expr { f(i); return nil }
	}
	stages := halvings(ir.Const(s.length), nil) - 2
	b.Barrier()
	b.For(b.Idx(0), b.Idx(stages), b.Idx(1), nil, none(func(i *Expr) {
		b.For(b.Idx(0), b.Add(i, b.Idx(1)), b.Idx(1), nil, none(func(j *Expr) {
			s.compare(i, b.Sub(i, j))
			b.Barrier()
		}))
	}))
}

// compare orders the thread's two elements, which are 2^distance apart.
func (s *sortTile) compare(stage, distance *Expr) {
	b := s.b
	shift := func(op Op, x, n *Expr) *Expr { return b.Arith(op, b.Index, x, n) }
	thread, one := b.ThreadIndex(), b.Idx(1)
	apart := shift(Shl, one, distance)
	low := b.Arith(And, b.Index, thread, b.Sub(apart, one))
	x := b.Arith(Or, b.Index, shift(Shl, shift(Shl, shift(LShr, thread, distance), distance), one), low)
	y := b.Add(x, apart)
	down := b.Arith(And, b.Index, shift(LShr, x, b.Add(stage, one)), one)
	first, second := b.LoadShared(s.keys, x, 1)[0], b.LoadShared(s.keys, y, 1)[0]
	greater := b.Cmp(SLT, second, first)
	var p, q *Expr
	if s.positions != nil {
		p, q = b.LoadShared(s.positions, x, 1)[0], b.LoadShared(s.positions, y, 1)[0]
		greater = b.Or(greater, b.And(b.Cmp(EQ, first, second), b.Cmp(SLT, q, p)))
	}
	swap := b.node(Xor, ir.Bool, 0, greater, b.Cmp(EQ, down, one))
	b.Store(s.keys, x, b.Select(swap, second, first))
	b.Store(s.keys, y, b.Select(swap, first, second))
	if s.positions != nil {
		b.Store(s.positions, x, b.Select(swap, q, p))
		b.Store(s.positions, y, b.Select(swap, p, q))
	}
}
