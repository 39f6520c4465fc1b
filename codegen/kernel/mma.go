package kernel

import "weft/ir"

// mma runs a contraction of half types, or of float32 rounded to TF32, on the tensor cores. A block of warps computes
// TileM x TileN results; tiles of the operands come through Stages buffers of shared memory, filled by asynchronous
// copies while others are multiplied. Rows of shared memory are cut into chunks of 16 bytes whose order is permuted by
// row (swizzle), so that ldmatrix and the copies meet no bank conflicts. Each warp computes WarpM x WarpN with
// m16n8k16 instructions (m16n8k8 for TF32).
type mma struct {
	*contraction
	s       ir.Schedule
	dtype   ir.DType // of the operands: F16, BF16 or F32
	batchAt []*Expr
	firstM  *Expr // of the block
	firstN  *Expr
	lhs     *mmaTile
	rhs     *mmaTile
	mTotal  ir.Dim
	nTotal  ir.Dim
	kTotal  ir.Dim
	lane    *Expr
	warpM   *Expr // first row of the warp in the tile
	warpN   *Expr
}

// mmaTile is one operand's tile. Its elements lie along k ([row][k]) or along rows ([k][row]),
// whichever is adjacent in global memory.
type mmaTile struct {
	*sharedTile
	rows   int // of the tile
	alongK bool
	total  ir.Dim
	dims   []ir.Dim
	first  *Expr
	point  func(batch, free, k []*Expr) (*Point, *Expr)
}

// buildMMA emits the kernel of a contract group on tensor cores.
func (g *group) buildMMA() {
	c := g.placeMMA()
	b, s := c.ev.b, c.s
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	across := int64(s.TileN / s.WarpN)
	row, column := b.DivMod(warp, b.Idx(across))
	c.lane, c.warpM, c.warpN = lane, b.Mul(row, b.Idx(int64(s.WarpM))), b.Mul(column, b.Idx(int64(s.WarpN)))
	c.placeTiles(false)
	c.finish(g, c.multiply())
}

// placeMMA computes the block's part of a product on tensor cores.
func (g *group) placeMMA() *mma {
	ev, b, s := g.ev, g.ev.b, g.schedule
	c := &mma{contraction: contractionOf(ev, g.anchor), s: s}
	c.dtype = ev.entry.Type(c.lhsValue).DType
	c.mTotal, c.nTotal, c.kTotal = ir.Product(c.m), ir.Product(c.n), ir.Product(c.k)
	// Blocks that run together share columns and rows: the grid's first axis runs over rows.
	blockM, blockN, batch := b.Blocks(c.mTotal.CeilDiv(int64(s.TileM)), c.nTotal.CeilDiv(int64(s.TileN)), ir.Product(c.batch))
	c.batchAt = ev.delinearize(batch, c.batch)
	c.firstM = b.Mul(blockM, b.Idx(int64(s.TileM)))
	c.firstN = b.Mul(blockN, b.Idx(int64(s.TileN)))
	return c
}

// placeTiles gives both operands their tiles, in panels where warpgroups read them.
func (c *mma) placeTiles(panels bool) {
	c.lhs = c.newTile(c.s.TileM, c.mTotal, c.m, c.lhsValue, c.firstM, c.contraction.lhs, panels)
	c.rhs = c.newTile(c.s.TileN, c.nTotal, c.n, c.rhsValue, c.firstN, c.contraction.rhs, panels)
}

func (c *mma) newTile(rows int, total ir.Dim, dims []ir.Dim, v ir.Value, first *Expr, point func(batch, free, k []*Expr) (*Point, *Expr), panels bool) *mmaTile {
	b := c.ev.b
	t := &mmaTile{rows: rows, total: total, dims: dims, first: first, point: point,
		sharedTile: &sharedTile{ev: c.ev, threads: c.s.Threads, dtype: c.dtype, value: v, panels: panels}}
	for _, alongK := range []bool{true, false} {
		t.orient(c, alongK)
		row, chunk := t.chunkOf(0)
		if _, _, ok := t.plainLoad(b.Idx(0), row, chunk); ok {
			t.allocate(c.s.Stages)
			return t
		}
	}
	t.orient(c, true)
	t.allocate(c.s.Stages)
	return t
}

// orient lays the tile out along k or along rows.
func (t *mmaTile) orient(c *mma, alongK bool) {
	ev, b := c.ev, c.ev.b
	t.alongK, t.width, t.height = alongK, c.s.TileK, t.rows
	along := c.kTotal
	if !alongK {
		t.width, t.height, along = t.rows, c.s.TileK, t.total
	}
	// Rows of TF32 that lie along k are read one by one, four of them by a warp at a time: their
	// pairs of chunks go to different banks.
	t.spread = 1
	if !alongK && c.dtype == ir.F32 {
		t.spread = 2
	}
	t.whole = along.DivisibleBy(int64(t.chunk()), ev.prog.Divisor)
	t.at = func(k0, row, column, bound *Expr) (*Point, *Expr) {
		r, k, rBound, kBound := row, column, row, bound
		if !alongK {
			r, k, rBound, kBound = column, row, bound, row
		}
		inside := b.And(b.Less(b.Add(t.first, rBound), b.Size(t.total)), b.Less(b.Add(k0, kBound), b.Size(c.kTotal)))
		p, element := t.point(c.batchAt, ev.delinearize(b.Add(t.first, r), t.dims), ev.delinearize(b.Add(k0, k), c.k))
		if element != nil {
			inside = b.And(inside, element)
		}
		return p, inside
	}
}

// multiply runs over k with Stages buffers and returns the warp's accumulators.
func (c *mma) multiply() []*Expr {
	ev, b, s := c.ev, c.ev.b, c.s
	count := b.Size(c.kTotal.CeilDiv(int64(s.TileK)))
	tileK := b.Idx(int64(s.TileK))
	for stage := range s.Stages - 1 {
		// Tiles past the end are outside of the operands: zeros, or nothing at all.
		at := b.Idx(int64(stage))
		b.If(b.Less(at, count), func() { c.fillBoth(at, b.Mul(at, tileK)) })
		b.Do("cp.async.commit_group")
	}
	init := append(repeat(b.Float(ir.F32, 0), s.WarpM*s.WarpN/32), b.Idx(0), b.Idx(int64(s.Stages-1)))
	last := len(init) - 2
	out := ev.loop(b.Idx(0), count, b.Idx(1), init, func(i *Expr, carried []*Expr) []*Expr {
		b.Do("cp.async.wait_group", b.Int(ir.I32, int64(s.Stages-2)))
		b.Barrier()
		read, write := carried[last], carried[last+1]
		ahead := b.Add(i, b.Idx(int64(s.Stages-1)))
		b.If(b.Less(ahead, count), func() { c.fillBoth(write, b.Mul(ahead, tileK)) })
		b.Do("cp.async.commit_group")
		sums := c.multiplyTile(read, carried[:last])
		return append(sums, c.nextStage(read), c.nextStage(write))
	})
	return out[:last]
}

func (c *mma) fillBoth(stage, k0 *Expr) {
	c.lhs.fill(stage, k0)
	c.rhs.fill(stage, k0)
}

func (c *mma) nextStage(stage *Expr) *Expr {
	b := c.ev.b
	next := b.Add(stage, b.Idx(1))
	return b.Select(b.Cmp(EQ, next, b.Idx(int64(c.s.Stages))), b.Idx(0), next)
}

// multiplyTile multiplies one pair of tiles.
func (c *mma) multiplyTile(stage *Expr, sums []*Expr) []*Expr {
	s := c.s
	for k := 0; k < s.TileK; k += 2 * c.lhs.chunk() {
		var x, y [][]*Expr
		for m := 0; m < s.WarpM; m += 16 {
			x = append(x, c.matrix(c.lhs, stage, c.warpM, m, k, true))
		}
		for n := 0; n < s.WarpN; n += 16 {
			two := c.matrix(c.rhs, stage, c.warpN, n, k, false)
			y = append(y, two[:2], two[2:])
		}
		next := make([]*Expr, 0, len(sums))
		for m := range x {
			for n := range y {
				at := (m*len(y) + n) * 4
				next = append(next, c.ev.b.multiplyAccumulate(c.dtype, x[m], y[n], sums[at:at+4])...)
			}
		}
		sums = next
	}
	return sums
}

// matrix loads 16 rows and 16 k (8 of TF32) as four matrices: for the lhs in the order of the
// instruction's registers (rows 0-7 and 8-15 of the first half of k, then of the second), for
// the rhs as two pairs (both halves of k of rows 0-7, then of rows 8-15).
func (c *mma) matrix(t *mmaTile, stage, warp *Expr, row, k int, lhs bool) []*Expr {
	b := c.ev.b
	high, low, eighth := matrixLane(b, c.lane)
	rowHalf, kHalf := low, high
	if !lhs {
		rowHalf, kHalf = high, low
	}
	if c.dtype == ir.F32 {
		return c.matrixTF32(t, stage, b.Add(warp, b.Idx(int64(row))), k, lhs)
	}
	if t.alongK {
		return t.matrices(stage, b.Add(warp, b.Idx(int64(row))), k, rowHalf, kHalf, eighth, false)
	}
	chunk, _ := b.DivMod(b.Add(warp, b.Idx(int64(row))), b.Idx(chunkSize))
	return t.matrices(stage, b.Idx(int64(k)), 0, kHalf, b.Add(chunk, rowHalf), eighth, true)
}

// matrixTF32 loads 16 rows and 8 k and rounds them.
func (c *mma) matrixTF32(t *mmaTile, stage, row *Expr, k int, lhs bool) []*Expr {
	b := c.ev.b
	out := make([]*Expr, 4)
	if t.alongK {
		high, low, eighth := matrixLane(b, c.lane)
		rowHalf, kHalf := low, high
		if !lhs {
			rowHalf, kHalf = high, low
		}
		for i, x := range t.matrices(stage, row, k, rowHalf, kHalf, eighth, false) {
			out[i] = b.Arith(Bitcast, ir.F32, x)
		}
	} else {
		base := b.Mul(stage, b.Idx(int64(t.rowPitch()*t.height)))
		quad, place := b.DivMod(c.lane, b.Idx(4))
		for i := range out {
			rowHalf, kHalf := i%2, i/2
			if !lhs {
				rowHalf, kHalf = i/2, i%2
			}
			chunk, within := b.DivMod(b.Add(b.Add(row, b.Idx(int64(8*rowHalf))), quad), b.Idx(int64(t.chunk())))
			at := t.offset(b.Add(place, b.Idx(int64(k+4*kHalf))), chunk)
			out[i] = b.LoadShared(t.shared, b.Add(base, b.Add(at, within)), 1)[0]
		}
	}
	for i, x := range out {
		out[i] = b.Instruction("cvt.rna.tf32.f32", []ir.DType{ir.I32}, x)[0]
	}
	return out
}
