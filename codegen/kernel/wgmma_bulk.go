package kernel

import (
	"slices"

	"weft/ir"
)

// bulk runs a product of half types on warpgroups whose tiles come by bulk copies (TMA). A thread of the last warpgroup of a block does
// nothing but start them: of a tile of both operands into each of Stages buffers, as soon as the warps that multiply have done with what
// was there. Two barriers in shared memory for a buffer say so: full, on which those warps wait for the bytes, and empty, on which the
// copying one waits for them. A block computes one tile of the result after the other, so that copies for the next one are under way
// while one is stored. Where each warpgroup has tiles of its own (WarpM is 32: 16 rows, and 16 that are 64 rows below), one multiplies
// while the other finishes its results.
type bulk struct {
	*warpgroups
	turns    int64   // warpgroups, or pairs of them, that compute tiles in turn
	turn     *Expr   // which of them this thread is of
	barriers *Buffer // full, empty, then the turns'
	m, n     ir.Dim  // tiles of the result
	operands [2]*bulkOperand
	matrices [2]ir.Matrix
}

// What two warpgroups of three need, the third leaves: a thread of the three begins with 168 registers.
const (
	copyingRegisters     = 40
	multiplyingRegisters = 232
)

// bandTiles is the number of tiles along rows that are computed before the next column of them: what blocks read together stays in
// the cache.
const bandTiles = 8

// buildBulk emits the kernel of a contract group on warpgroups that multiply what bulk copies bring.
func (g *group) buildBulk() {
	ev, b, s := g.ev, g.ev.b, g.schedule
	product := &mma{contraction: contractionOf(ev, g.anchor), s: s}
	product.dtype = ev.entry.Type(product.lhsValue).DType
	product.mTotal, product.nTotal, product.kTotal = ir.Product(product.m), ir.Product(product.n), ir.Product(product.k)
	c := &bulk{warpgroups: &warpgroups{mma: product}}
	c.m, c.n = c.mTotal.CeilDiv(int64(s.TileM)), c.nTotal.CeilDiv(int64(s.TileN))
	tiles := c.m.Mul(c.n).Mul(ir.Product(c.batch))
	blocks := tiles.Min(ir.Const(int64(s.Blocks)))
	b.Kernel.Grid, b.Kernel.Resident = [3]ir.Dim{blocks, ir.Const(1), ir.Const(1)}, 1
	c.placeWarps()
	c.lhs, c.rhs = c.describe(g, 0), c.describe(g, 1)
	c.openBarriers()
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	copying := b.Not(b.Less(warp, b.Idx(int64(c.multiplying()))))
	each := func(turn *Expr, turns int64, init []*Expr, tile func(carried []*Expr) []*Expr) {
		step := b.blocks()
		ev.loop(b.Add(b.BlockIndex(0), b.Mul(turn, step)), b.Size(tiles), b.Mul(step, b.Idx(turns)), init, func(t *Expr, carried []*Expr) []*Expr {
			c.place(t)
			return tile(carried)
		})
	}
	g.guardedScope(copying, func() {
		b.Do("setmaxnreg.dec.sync.aligned.u32", b.Int(ir.I32, copyingRegisters))
		g.guardedScope(b.And(b.Cmp(EQ, warp, b.Idx(int64(c.multiplying()))), b.Cmp(EQ, lane, b.Idx(0))), func() {
			each(b.Idx(0), 1, []*Expr{b.Idx(0), b.bit(true)}, c.copyTiles)
		})
	})
	g.guardedScope(b.Not(copying), func() {
		b.Do("setmaxnreg.inc.sync.aligned.u32", b.Int(ir.I32, multiplyingRegisters))
		// The first of those that take turns need not wait.
		parity := b.Select(b.Cmp(EQ, c.turn, b.Idx(0)), b.bit(true), b.bit(false))
		each(c.turn, c.turns, append(c.skip([]*Expr{b.Idx(0), b.bit(false)}, c.turn), parity), func(carried []*Expr) []*Expr {
			c.awaitTurn(carried[2])
			sums, next := c.multiplyTiles(carried[:2])
			c.lane = c.notBefore(next[1], lane)
			c.finish(g, sums)
			c.lane = lane
			return append(c.skip(next, b.Idx(c.turns-1)), b.Arith(Xor, ir.I32, carried[2], b.bit(true)))
		})
	})
}

// notBefore is the thread's lane as ptxas can know it only when it knows a parity: lane + parity/2. Where results go is computed of it for each
// tile anew. Else ptxas computes all these places before the first tile, and has no registers to keep them beside the sums.
func (c *bulk) notBefore(parity, lane *Expr) *Expr {
	b := c.ev.b
	return b.Add(lane, b.ToIndex(b.Arith(LShr, ir.I32, parity, b.Int(ir.I32, 1)), true)).ranged(0, 31)
}

// warpsOfTile is the number of warps that compute a tile together.
func (c *bulk) warpsOfTile() int { return c.s.TileM / c.s.WarpM * (c.s.TileN / c.s.WarpN) }

// placeWarps gives each warp that multiplies its part of a tile. What is said of ranges holds for these warps.
func (c *bulk) placeWarps() {
	b, s := c.ev.b, c.s
	c.turns = int64(c.multiplying() / c.warpsOfTile())
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	turn, warp := b.DivMod(warp, b.Idx(int64(c.warpsOfTile())))
	c.turn = turn.ranged(0, c.turns-1)
	group, quarter := b.DivMod(warp, b.Idx(4))
	row, column := b.DivMod(group, b.Idx(int64(s.TileN/s.WarpN)))
	c.first = b.Mul(row, b.Idx(warpgroupRows))
	c.lane = lane
	c.warpM = b.Add(c.first, b.Mul(quarter, b.Idx(slabRows)))
	c.warpN = b.Mul(column, b.Idx(int64(s.WarpN)))
}

// describe gives an operand its tile in shared memory and its tensor map.
func (c *bulk) describe(g *group, operand int) *mmaTile {
	ev, s := c.ev, c.s
	m, ok := ir.MatrixOf(ev.entry, g.region, g.anchor, operand)
	if !ok {
		panic("BUG: an operand scheduled for bulk copies is no matrix in memory")
	}
	value, rows := c.lhsValue, s.TileM
	if operand == 1 {
		value, rows = c.rhsValue, s.TileN
	}
	last := len(m.K) - 1
	adjacent, other, outer := m.K[last], m.Rows[0], append([][]ir.Extent{m.K[:last]}, m.Batch...)
	t := &mmaTile{rows: rows, alongK: m.AlongK(), sharedTile: &sharedTile{ev: ev, dtype: c.dtype, value: value, panels: true, width: s.TileK, height: rows}}
	if !t.alongK {
		adjacent, other = other, adjacent
		t.width, t.height = rows, s.TileK
	}
	t.allocate(s.Stages)
	c.matrices[operand] = m
	c.operands[operand] = g.bulkOperand(t.sharedTile, m.Param, m.Offset, adjacent, other, slices.Concat(outer...))
	return t
}

// place moves on to tile t of the result: bands of rows, in which columns follow one another.
func (c *bulk) place(t *Expr) {
	b, s := c.ev.b, c.s
	m, n := b.Size(c.m), b.Size(c.n)
	batch, at := b.DivMod(t, b.Mul(m, n))
	band, at := b.DivMod(at, b.Mul(n, b.Idx(bandTiles)))
	above := b.Mul(band, b.Idx(bandTiles))
	column, row := b.DivMod(at, b.MinIndex(b.Idx(bandTiles), b.Sub(m, above)))
	c.batchAt = c.ev.delinearize(batch, c.batch)
	c.firstM = b.Mul(b.Add(row, above).ranged(0, m.hi-1), b.Idx(int64(s.TileM)))
	c.firstN = b.Mul(column.ranged(0, n.hi-1), b.Idx(int64(s.TileN)))
}

// openBarriers sets up the barriers, before any thread uses them.
func (c *bulk) openBarriers() {
	b, s := c.ev.b, c.s
	c.barriers = b.SharedArray(ir.I64, int64(2*s.Stages)+c.turns)
	warps := int64(c.warpsOfTile())
	b.If(b.Cmp(EQ, b.ThreadIndex(), b.Idx(0)), func() {
		for stage := range s.Stages {
			b.openBarrier(c.full(b.Idx(int64(stage))), 1)
			b.openBarrier(c.empty(b.Idx(int64(stage))), warps)
		}
		for turn := range c.turns {
			if c.turns > 1 {
				b.openBarrier(c.began(b.Idx(turn)), warps)
			}
		}
		b.Do("fence.mbarrier_init.release.cluster")
	})
	b.Barrier()
}

func (c *bulk) full(stage *Expr) *Expr { return c.ev.b.Address(c.barriers, stage) }

func (c *bulk) empty(stage *Expr) *Expr {
	b := c.ev.b
	return b.Address(c.barriers, b.Add(stage, b.Idx(int64(c.s.Stages))))
}

// began is the barrier by which a turn learns that the one before has begun all its products.
func (c *bulk) began(turn *Expr) *Expr {
	b := c.ev.b
	return b.Address(c.barriers, b.Add(turn, b.Idx(int64(2*c.s.Stages))))
}

// awaitTurn waits until the turn before has begun its products. Two turns must not wait for buffers at a time: parities tell one round of
// the buffers from the next, but not from the one after.
func (c *bulk) awaitTurn(parity *Expr) {
	if c.turns > 1 {
		c.ev.b.awaitPhase(c.began(c.turn), parity)
	}
}

// passTurn lets the next turn begin.
func (c *bulk) passTurn() {
	b := c.ev.b
	if c.turns > 1 {
		_, next := b.DivMod(b.Add(c.turn, b.Idx(1)), b.Idx(c.turns))
		c.arrive(c.began(next))
	}
}

// arrive says at a barrier that this warp has come so far.
func (c *bulk) arrive(barrier *Expr) {
	b := c.ev.b
	b.If(b.Cmp(EQ, c.lane, b.Idx(0)), func() { b.Do("mbarrier.arrive.shared::cta.b64", barrier) })
}

// next moves on to the next buffer. The parity of a barrier's phases changes when all buffers had their turn.
func (c *bulk) next(stage, parity *Expr) []*Expr {
	b := c.ev.b
	next := c.nextStage(stage)
	return []*Expr{next, b.Select(b.Cmp(EQ, next, b.Idx(0)), b.Arith(Xor, ir.I32, parity, b.bit(true)), parity)}
}

// skip moves on over the buffers of some tiles of the result, which others multiply.
func (c *bulk) skip(carried []*Expr, tiles *Expr) []*Expr {
	b := c.ev.b
	if tiles.IsInt(0) {
		return carried
	}
	rounds, stage := b.DivMod(b.Add(carried[0], b.Mul(tiles, c.depth())), b.Idx(int64(c.s.Stages)))
	_, odd := b.DivMod(rounds, b.Idx(2))
	return []*Expr{stage, b.Arith(Xor, ir.I32, carried[1], b.FromIndex(odd, ir.I32))}
}

// depth is the number of pairs of tiles of the operands that a tile of the result takes.
func (c *bulk) depth() *Expr { return c.ev.b.Size(c.kTotal.CeilDiv(int64(c.s.TileK))) }

// copyTiles starts the copies for a tile of the result; carried are the next buffer and the parity of its barrier.
func (c *bulk) copyTiles(carried []*Expr) []*Expr {
	b, s := c.ev.b, c.s
	return c.ev.loop(b.Idx(0), c.depth(), b.Idx(1), carried, func(i *Expr, carried []*Expr) []*Expr {
		stage := carried[0]
		b.awaitPhase(c.empty(stage), carried[1])
		b.expectTiles(c.full(stage), c.lhs.sharedTile, c.rhs.sharedTile)
		k := b.Mul(i, b.Idx(int64(s.TileK)))
		c.copyOperand(0, c.lhs, c.firstM, k, stage)
		c.copyOperand(1, c.rhs, c.firstN, k, stage)
		return c.next(stage, carried[1])
	})
}

// copyOperand starts the copies of a tile whose first row and k are given.
func (c *bulk) copyOperand(operand int, t *mmaTile, row, k, stage *Expr) {
	m := c.matrices[operand]
	within := c.ev.delinearize(k, ir.Sizes(m.K))
	last := len(m.K) - 1
	outer := within[:last:last]
	for i, extents := range m.Batch {
		outer = append(outer, c.ev.delinearize(c.batchAt[i], ir.Sizes(extents))...)
	}
	if t.alongK {
		c.operands[operand].copyTile(stage, within[last], row, outer, c.full(stage))
	} else {
		c.operands[operand].copyTile(stage, row, within[last], outer, c.full(stage))
	}
}

// multiplyTiles gives the sums of a tile of the result, and the buffer and parity that are next.
func (c *bulk) multiplyTiles(carried []*Expr) (sums, turn []*Expr) {
	ev, b, s := c.ev, c.ev.b, c.s
	var lhs []*Expr
	for m := 0; m < s.WarpM; m += slabRows {
		lhs = append(lhs, c.lhs.fromRow(b.Add(c.first, b.Idx(c.rowsBelow(m)))))
	}
	rhs := c.rhs.fromRow(c.warpN)
	init := append(repeat(b.Float(ir.F32, 0), len(lhs)*s.WarpN/2), carried...)
	last := len(init) - len(carried)
	before := func(stage *Expr) *Expr {
		return b.Select(b.Cmp(EQ, stage, b.Idx(0)), b.Idx(int64(s.Stages-1)), b.Sub(stage, b.Idx(1)))
	}
	out := ev.loop(b.Idx(0), c.depth(), b.Idx(1), init, func(i *Expr, carried []*Expr) []*Expr {
		stage, parity := carried[last], carried[last+1]
		b.awaitPhase(c.full(stage), parity)
		b.Do("wgmma.fence.sync.aligned")
		x := make([]*Expr, len(lhs))
		for i := range x {
			x[i] = c.lhs.inStage(lhs[i], stage)
		}
		sums := c.startTile(x, c.rhs.inStage(rhs, stage), carried[:last])
		b.Do("wgmma.commit_group.sync.aligned")
		sums = b.awaitProducts(sums, 1)
		b.If(b.Less(b.Idx(0), i), func() { c.arrive(c.empty(before(stage))) })
		return append(sums, c.next(stage, parity)...)
	})
	c.passTurn()
	sums = b.awaitProducts(out[:last], 0)
	c.arrive(c.empty(before(out[last])))
	return sums, out[last:]
}
