package kernel

import (
	"weft/ir"
)

// contract runs a contraction as a tiled matrix product. A block computes TileM x TileN
// results, a thread ThreadM x ThreadN of them in registers. The tiles of the operands go
// through shared memory, two buffers in turn: while a block multiplies one, the next is on its
// way from global memory. Tiles are stored as [k][row], so that a thread reads its rows of one
// k as vectors.
type contract struct {
	*contraction
	s       ir.Schedule
	m, n    *Expr // first row and column of the block
	batchAt []*Expr
	lhsTile *tile
	rhsTile *tile
	kTotal  ir.Dim
}

// tile is one operand's part of the work of a block.
type tile struct {
	rows   int // of the tile
	pitch  int64
	shared *Buffer
	fast   int // lanes of a load run along k (0) or along rows (1)
	lanes  int
	total  ir.Dim // rows in all
	dims   []ir.Dim
	value  ir.Value
	first  *Expr // first row of the block
	point  func(batch, free, k []*Expr) (*Point, *Expr)
}

// buildContract emits the kernel of a contract group.
func (g *group) buildContract() {
	if g.schedule.Rows > 0 {
		g.buildVectorProduct()
		return
	}
	ev, b := g.ev, g.ev.b
	c := &contract{contraction: contractionOf(ev, g.anchor), s: g.schedule}
	s := c.s
	mTotal, nTotal := ir.Product(c.contraction.m), ir.Product(c.contraction.n)
	c.kTotal = ir.Product(c.k)
	column, row, batch := b.Blocks(nTotal.CeilDiv(int64(s.TileN)), mTotal.CeilDiv(int64(s.TileM)), ir.Product(c.batch))
	c.m = b.Mul(row, b.Idx(int64(s.TileM)))
	c.n = b.Mul(column, b.Idx(int64(s.TileN)))
	c.batchAt = ev.delinearize(batch, c.batch)
	c.lhsTile = c.newTile(s.TileM, mTotal, c.contraction.m, c.lhsValue, c.m, c.lhs)
	c.rhsTile = c.newTile(s.TileN, nTotal, c.contraction.n, c.rhsValue, c.n, c.rhs)

	accumulators := c.multiply()
	c.finish(g, accumulators, mTotal, nTotal)
}

func (c *contract) newTile(rows int, total ir.Dim, dims []ir.Dim, v ir.Value, first *Expr, point func(batch, free, k []*Expr) (*Point, *Expr)) *tile {
	t := &tile{rows: rows, pitch: int64(rows) + 4, total: total, dims: dims, value: v, first: first, point: point}
	t.shared = c.ev.b.SharedArray(c.accumulator, 2*t.pitch*int64(c.s.TileK))
	// Where lanes along k or along rows make one wide load, they run so; else along the
	// direction in which neighbours are adjacent in memory.
	for _, lanes := range []int{4, 2} {
		for fast := range 2 {
			t.fast, t.lanes = fast, lanes
			if c.fits(t) && hasVectorLoad(c.loadTile(t, c.ev.b.Idx(0))[0]) {
				return t
			}
		}
	}
	t.fast, t.lanes = 1, 1
	if c.adjacentAlongK(t) {
		t.fast = 0
	}
	return t
}

// fits tells whether the block's threads divide the tile into loads evenly.
func (c *contract) fits(t *tile) bool {
	along := c.s.TileK
	if t.fast == 1 {
		along = t.rows
	}
	return along%t.lanes == 0 && (t.rows*c.s.TileK)%(t.lanes*c.s.Threads) == 0
}

func hasVectorLoad(xs []*Expr) bool {
	seen := map[*Expr]bool{}
	var find func(x *Expr) bool
	find = func(x *Expr) bool {
		if x.Op == Lane {
			return true
		}
		if seen[x] {
			return false
		}
		seen[x] = true
		for _, a := range x.Args {
			if find(a) {
				return true
			}
		}
		return false
	}
	return find(xs[0])
}

func (c *contract) adjacentAlongK(t *tile) bool {
	b := c.ev.b
	at := func(k int64) *Expr {
		p, _ := t.point(c.batchAt, c.ev.delinearize(t.first, t.dims), c.ev.delinearize(b.Idx(k), c.k))
		return c.ev.linearIndex(p)
	}
	if c.kTotal.Bounds(c.ev.prog.Range).Max < 2 {
		return false
	}
	d, ok := Difference(at(1), at(0))
	return ok && d == 1
}

// chunk is one load of a thread: its lanes are at rows row, row+1 ... or k, k+1 ...
type chunk struct{ row, k *Expr }

func (c *contract) chunks(t *tile) []chunk {
	b := c.ev.b
	n := t.rows * c.s.TileK / t.lanes
	out := make([]chunk, 0, n/c.s.Threads+1)
	for first := 0; first < n; first += c.s.Threads {
		id := b.Add(b.ThreadIndex(), b.Idx(int64(first)))
		if t.fast == 0 {
			q, r := b.DivMod(id, b.Idx(int64(c.s.TileK/t.lanes)))
			out = append(out, chunk{q, b.Mul(r, b.Idx(int64(t.lanes)))})
		} else {
			q, r := b.DivMod(id, b.Idx(int64(t.rows/t.lanes)))
			out = append(out, chunk{b.Mul(r, b.Idx(int64(t.lanes))), q})
		}
	}
	return out
}

// loadTile evaluates a thread's part of the tile whose first k is given: zero outside of the
// operand.
func (c *contract) loadTile(t *tile, k0 *Expr) [][]*Expr {
	ev, b := c.ev, c.ev.b
	var out [][]*Expr
	along := c.kTotal
	if t.fast == 1 {
		along = t.total
	}
	whole := along.DivisibleBy(int64(t.lanes), ev.prog.Divisor)
	for _, ch := range c.chunks(t) {
		points, valid := make([]*Point, t.lanes), make([]*Expr, t.lanes)
		for l := range t.lanes {
			row, k := b.Add(t.first, ch.row), b.Add(k0, ch.k)
			lane := b.Idx(int64(l))
			bound := lane
			if whole {
				bound = b.Idx(0) // all lanes are inside when the first is
			}
			rowBound, kBound := row, k
			if t.fast == 1 {
				row, rowBound = b.Add(row, lane), b.Add(row, bound)
			} else {
				k, kBound = b.Add(k, lane), b.Add(k, bound)
			}
			inside := b.And(b.Less(rowBound, b.Size(t.total)), b.Less(kBound, b.Size(c.kTotal)))
			p, element := t.point(c.batchAt, ev.delinearize(row, t.dims), ev.delinearize(k, c.k))
			if element != nil {
				inside = b.And(inside, element)
			}
			points[l], valid[l] = p, inside
		}
		dtype := ev.entry.Type(t.value).DType
		values := ev.guarded(t.value, points, valid, repeat(b.zero(held(dtype)), t.lanes))
		widened := make([]*Expr, t.lanes)
		for l, x := range values {
			widened[l] = b.factor(c.op, x, dtype, c.accumulator)
		}
		out = append(out, widened)
	}
	return out
}

// storeTile puts what loadTile read into one of the two shared buffers.
func (c *contract) storeTile(t *tile, buffer *Expr, values [][]*Expr) {
	b := c.ev.b
	base := b.Mul(buffer, b.Idx(t.pitch*int64(c.s.TileK)))
	full := t.rows * c.s.TileK / t.lanes
	for i, ch := range c.chunks(t) {
		b.If(b.Less(b.Add(b.ThreadIndex(), b.Idx(int64(i*c.s.Threads))), b.Idx(int64(full))), func() {
			at := b.Add(base, b.Add(b.Mul(ch.k, b.Idx(t.pitch)), ch.row))
			if t.fast == 1 {
				b.storeVector(t.shared, at, values[i])
				return
			}
			for l, x := range values[i] {
				b.Store(t.shared, b.Add(at, b.Idx(int64(l)*t.pitch)), x)
			}
		})
	}
}

// storeVector stores consecutive elements, at most 16 bytes at a time.
func (b *Builder) storeVector(buf *Buffer, at *Expr, values []*Expr) {
	w := min(len(values), 16/buf.DType.Size())
	for i := 0; i < len(values); i += w {
		b.Store(buf, b.Add(at, b.Idx(int64(i))), values[i:i+w]...)
	}
}

// multiply runs over k and returns the thread's accumulators, row by row.
func (c *contract) multiply() []*Expr {
	ev, b, s := c.ev, c.ev.b, c.s
	tileK := int64(s.TileK)
	count := b.Size(c.kTotal.CeilDiv(tileK))
	c.storeTile(c.lhsTile, b.Idx(0), c.loadTile(c.lhsTile, b.Idx(0)))
	c.storeTile(c.rhsTile, b.Idx(0), c.loadTile(c.rhsTile, b.Idx(0)))
	b.Barrier()
	init := repeat(b.zero(c.accumulator), s.ThreadM*s.ThreadN)
	return ev.loop(b.Idx(0), count, b.Idx(1), init, func(i *Expr, sums []*Expr) []*Expr {
		// The last turn loads its own tile again: harmless, and every index stays in range.
		next := b.MinIndex(b.Add(i, b.Idx(1)), b.Sub(count, b.Idx(1)))
		k0 := b.Mul(next, b.Idx(tileK))
		lhs, rhs := c.loadTile(c.lhsTile, k0), c.loadTile(c.rhsTile, k0)
		for _, values := range append(lhs, rhs...) {
			b.emit(&Let{values})
		}
		_, buffer := b.DivMod(i, b.Idx(2))
		for k := range tileK {
			x := c.fragment(c.lhsTile, buffer, k, s.ThreadM, s.TileM, c.threadRow())
			y := c.fragment(c.rhsTile, buffer, k, s.ThreadN, s.TileN, c.threadColumn())
			updated := make([]*Expr, len(sums))
			for m := range x {
				for n := range y {
					at := m*s.ThreadN + n
					updated[at] = b.multiplyAdd(c.accumulator, x[m], y[n], sums[at])
				}
			}
			sums = updated
			// Emitted here, so that the fragments of one k are dead before those of the next are
			// read, and the products precede the barrier in program order.
			b.emit(&Let{sums})
		}
		other := b.Sub(b.Idx(1), buffer)
		c.storeTile(c.lhsTile, other, lhs)
		c.storeTile(c.rhsTile, other, rhs)
		b.Barrier()
		return sums
	})
}

func (c *contract) threadRow() *Expr {
	q, _ := c.ev.b.DivMod(c.ev.b.ThreadIndex(), c.ev.b.Idx(int64(c.s.TileN/c.s.ThreadN)))
	return q
}

func (c *contract) threadColumn() *Expr {
	_, r := c.ev.b.DivMod(c.ev.b.ThreadIndex(), c.ev.b.Idx(int64(c.s.TileN/c.s.ThreadN)))
	return r
}

// runLength is the number of adjacent rows (or columns) of a thread: longer runs are split, so
// that neighbouring threads read neighbouring vectors.
const runLength = 4

// rowOf is the row in the tile of row i of a thread.
func (c *contract) rowOf(i, perThread, tileRows int, thread *Expr) *Expr {
	run := min(runLength, perThread)
	stripe := tileRows / (perThread / run)
	b := c.ev.b
	return b.Add(b.Mul(thread, b.Idx(int64(run))), b.Idx(int64(i/run*stripe+i%run)))
}

// fragment reads a thread's rows of one k from shared memory.
func (c *contract) fragment(t *tile, buffer *Expr, k int64, perThread, tileRows int, thread *Expr) []*Expr {
	b := c.ev.b
	base := b.Add(b.Mul(buffer, b.Idx(t.pitch*int64(c.s.TileK))), b.Idx(k*t.pitch))
	w := min(runLength, perThread, 16/c.accumulator.Size())
	var out []*Expr
	for i := 0; i < perThread; i += w {
		out = append(out, b.LoadShared(t.shared, b.Add(base, c.rowOf(i, perThread, tileRows, thread)), w)...)
	}
	return out
}

// finish runs the epilogue on the accumulators and stores the results.
func (c *contract) finish(g *group, sums []*Expr, mTotal, nTotal ir.Dim) {
	ev, b, s := c.ev, c.ev.b, c.s
	run := min(runLength, s.ThreadN)
	whole := nTotal.DivisibleBy(int64(run), ev.prog.Divisor)
	for i := range s.ThreadM {
		m := b.Add(c.m, c.rowOf(i, s.ThreadM, s.TileM, c.threadRow()))
		for j := 0; j < s.ThreadN; j += run {
			n := b.Add(c.n, c.rowOf(j, s.ThreadN, s.TileN, c.threadColumn()))
			first := i*s.ThreadN + j
			inside := b.Less(m, b.Size(mTotal))
			if whole {
				g.guardedScope(b.And(inside, b.Less(n, b.Size(nTotal))), func() { c.store(g, c.batchAt, m, n, sums[first:first+run]) })
				continue
			}
			for l := range run {
				at := b.Add(n, b.Idx(int64(l)))
				g.guardedScope(b.And(inside, b.Less(at, b.Size(nTotal))), func() { c.store(g, c.batchAt, m, at, sums[first+l:first+l+1]) })
			}
		}
	}
}

// store finishes results m, n.. n+len(sums)-1 of a contraction.
func (c *contraction) store(g *group, batch []*Expr, m, n *Expr, sums []*Expr) {
	c.storeFinished(g, batch, m, n, c.ev.finishContraction(c.op, c.accumulator, sums))
}

// storeFinished runs the epilogue on results m, n.. and stores them.
func (c *contraction) storeFinished(g *group, batch []*Expr, m, n *Expr, values []*Expr) {
	points, values := g.epilogue(c.op.Results[0], c.points(batch, m, n, len(values)), values)
	g.storeLanes(0, points, values)
}

// points are where results m, n.. of the contraction are.
func (c *contraction) points(batch []*Expr, m, n *Expr, count int) []*Point {
	ev, b := c.ev, c.ev.b
	points := make([]*Point, count)
	for l := range points {
		at := c.join(batch, ev.delinearize(m, c.m), ev.delinearize(b.Add(n, b.Idx(int64(l))), c.n))
		points[l] = ev.at(ev.shape(c.op.Results[0]), at)
	}
	return points
}
