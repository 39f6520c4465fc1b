package kernel

import (
	"slices"

	"weft/ir"
)

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

// slabRows is the number of a warp's rows that go through shared memory together at the end.
const slabRows = 16

// multiplying is the number of warps that multiply: all but a last warpgroup that copies.
func (c *mma) multiplying() int {
	if c.s.Bulk {
		return c.s.Threads/32 - 4
	}
	return c.s.Threads / 32
}

// overTiles tells whether results leave through the memory of the operands' tiles: not where the next ones arrive there meanwhile.
func (c *mma) overTiles() bool { return c.lhs.panels && !c.s.Bulk }

// staged is the type in which results go through shared memory. Beside tiles of operands there is little: there half types are rounded
// before.
func (c *mma) staged() ir.DType {
	if to := c.ev.entry.Type(c.op.Results[0]).DType; c.s.Bulk && to.Size() == 2 {
		return to
	}
	return ir.F32
}

// slabColumns is the number of columns that do so: as many as 256 bytes have, or all where the memory of the operands has room for them.
func (c *mma) slabColumns() int {
	slab := c.s.WarpN
	for !c.overTiles() && slab*c.staged().Size() > 256 {
		slab /= 2
	}
	return slab
}

// stagePitch is the number of elements from row to row of the stage.
func (c *mma) stagePitch() int64 { return int64(c.slabColumns() + 16/c.staged().Size()) }

// rowsBelow is the distance of a warp's rows from m on, of its own rows, to its first: those of a warpgroup are 64 with other warps' between.
func (c *mma) rowsBelow(m int) int64 {
	if c.lhs.panels {
		return int64(m / slabRows * warpgroupRows)
	}
	return int64(m)
}

// finish runs the epilogue. The instruction leaves pairs of adjacent columns with each thread;
// through shared memory, 16 rows at a time, a thread gets runs of eight columns, so that the
// epilogue reads and stores 16 bytes of half types at a time; or of eight rows, where these are
// neighbours in the result. Every warp has its own part of that memory and waits for no other.
func (c *mma) finish(g *group, sums []*Expr) {
	b, s := c.ev.b, c.s
	slab := c.slabColumns()
	pitch := c.stagePitch()
	warps := int64(c.multiplying())
	stage := b.SharedArray(c.staged(), warps*slabRows*pitch)
	if stage.DType != ir.F32 {
		sums = c.ev.finishContraction(c.op, c.accumulator, sums)
	}
	if c.overTiles() {
		stage.Over = c.lhs.shared // and the rest of the tiles, which every warp has done with
	}
	warp, _ := b.DivMod(b.ThreadIndex(), b.Idx(32))
	base := b.Mul(warp, b.Idx(slabRows*pitch))
	store := c.storeRows
	if c.storedAlongRows(g) {
		store = c.storeColumns
	}
	across := s.WarpN / slab
	slabs := s.WarpM / slabRows * across
	if !c.inLoops(c.epilogueInstructions(g)) {
		for i := range slabs {
			if i > 0 || c.s.Bulk {
				c.warpSync()
			}
			c.stageSlab(stage, base, sums, i)
			c.warpSync()
			store(g, stage, base, b.Idx(c.rowsBelow(i/across*slabRows)), b.Idx(int64(i%across*slab)))
		}
		return
	}
	c.ev.loop(b.Idx(0), b.Idx(int64(slabs)), b.Idx(1), nil, func(at *Expr, _ []*Expr) []*Expr {
		c.warpSync()
		for i := range slabs {
			b.If(b.Cmp(EQ, at, b.Idx(int64(i))), func() { c.stageSlab(stage, base, sums, i) })
		}
		c.warpSync()
		row, column := b.DivMod(at, b.Idx(int64(across)))
		store(g, stage, base, b.Mul(row, b.Idx(c.rowsBelow(slabRows))), b.Mul(column, b.Idx(int64(slab))))
		return nil
	})
}

func (c *mma) warpSync() { c.ev.b.Do("bar.warp.sync", c.ev.b.Int(ir.I32, -1)) }

// stageSlab puts slab i of the warp's results where the warp's threads read it by runs.
func (c *mma) stageSlab(stage *Buffer, base *Expr, sums []*Expr, i int) {
	b := c.ev.b
	quad, pair := b.DivMod(c.lane, b.Idx(4))
	slab := c.slabColumns()
	sums = sums[i*slab/2:]
	for n := 0; n < slab; n += 8 {
		for half := range 2 {
			to := b.Add(b.Mul(b.Add(quad, b.Idx(int64(8*half))), b.Idx(c.stagePitch())), b.Add(b.Mul(pair, b.Idx(2)), b.Idx(int64(n))))
			b.Store(stage, b.Add(base, to), sums[n/2+2*half:n/2+2*half+2]...)
		}
	}
}

// storedAlongRows tells whether the rows of the product, and not its columns, are neighbours in
// the group's result.
func (c *mma) storedAlongRows(g *group) bool {
	ev, b := c.ev, c.ev.b
	if ir.Product(c.m).Bounds(ev.prog.Range).Max < 2 {
		return false
	}
	at := func(m int64) *Expr {
		zero := b.Idx(0)
		coordinates := c.join(c.batchAt, ev.delinearize(b.Idx(m), c.m), ev.delinearize(zero, c.n))
		return ev.linearIndex(g.moved(c.op.Results[0], ev.at(ev.shape(c.op.Results[0]), coordinates)))
	}
	d, ok := Difference(at(1), at(0))
	return ok && d == 1 && !ir.Product(c.n).Is(1)
}

// storeRows stores a slab in runs along columns: of eight where every row of the result starts at
// a multiple of 16 bytes, else of single elements, neighbours by neighbouring threads.
func (c *mma) storeRows(g *group, stage *Buffer, base, below, n *Expr) {
	slab := c.slabColumns()
	run := chunkSize
	if !c.nTotal.DivisibleBy(chunkSize, c.ev.prog.Divisor) {
		run = 1
	}
	c.eachRun(g, slabRows*slab/run, run, func(from *Expr, count int) { c.storeRuns(g, stage, base, from, count, run, below, n) })
}

// eachRun stores the runs of a slab, some at a time. Single elements are stored in a loop where ptxas would have no registers for all their places:
// of 64 bits, or beside the sums of the next tile or what an epilogue reads. Runs are where their epilogues are long.
func (c *mma) eachRun(g *group, runs, run int, store func(from *Expr, count int)) {
	b := c.ev.b
	some := runs
	if much := c.s.WarpM > slabRows || b.Index == ir.I64 || c.staged() == ir.F32 && len(g.region.Params) > 2; run == 1 && c.s.Bulk && much {
		some = 32 * runsTogether
	}
	if cost := c.epilogueInstructions(g); c.inLoops(cost) {
		some = min(some, 32*max(1, loopInstructions/(cost*run)))
	}
	if some == runs {
		store(b.Idx(0), runs)
		return
	}
	c.ev.loop(b.Idx(0), b.Idx(int64(runs)), b.Idx(int64(some)), nil, func(i *Expr, _ []*Expr) []*Expr {
		store(i.ranged(0, int64(runs-some)), some)
		return nil
	})
}

// A multiprocessor has some 100 KB of instructions at hand, and fetches others slowlier than one warp of each scheduler executes them. So epilogues
// of more than straightInstructions for a thread are loops, each turn of about loopInstructions.
const (
	straightInstructions = 1500
	loopInstructions     = 500
)

// inLoops tells whether an epilogue of some instructions for an element runs in loops.
func (c *mma) inLoops(instructions int) bool {
	return c.s.Bulk && instructions*c.s.WarpM*c.s.WarpN/32 > straightInstructions
}

// epilogueInstructions is about the number of instructions of the epilogue of one element.
func (c *mma) epilogueInstructions(g *group) int {
	b := c.ev.b
	seen := map[*Expr]bool{}
	b.aside(func() {
		sums := make([]*Expr, chunkSize)
		for i := range sums {
			sums[i] = b.variable(ir.F32)
		}
		_, values := g.epilogue(c.op.Results[0], c.points(c.batchAt, c.firstM, c.firstN, chunkSize), sums)
		var visit func(x *Expr)
		visit = func(x *Expr) {
			if !seen[x] && x.Op != Const {
				seen[x] = true
				for _, a := range x.Args {
					visit(a)
				}
			}
		}
		for _, x := range values {
			visit(x)
		}
	})
	return len(seen) / chunkSize
}

// storeRuns stores some runs of a slab, from one on.
func (c *mma) storeRuns(g *group, stage *Buffer, base, from *Expr, count, run int, below, n *Expr) {
	b := c.ev.b
	type place struct{ row, column, from, inside *Expr }
	perRow := c.slabColumns() / run
	var places []place
	for i := 0; i < count; i += 32 {
		id := b.Add(b.Add(from, c.lane), b.Idx(int64(i)))
		r, at := b.DivMod(id, b.Idx(int64(perRow)))
		row := b.Add(b.Add(c.firstM, c.warpM), b.Add(r, below))
		first := b.Mul(at, b.Idx(int64(run)))
		column := b.Add(b.Add(c.firstN, c.warpN), b.Add(first, n))
		inside := b.And(b.Less(id, b.Idx(int64(slabRows*perRow))), b.Less(row, b.Size(c.mTotal)))
		from := b.Add(base, b.Add(b.Mul(r, b.Idx(c.stagePitch())), first))
		places = append(places, place{row, column, from, b.And(inside, b.Less(column, b.Size(c.nTotal)))})
	}
	for some := range slices.Chunk(places, runsTogether) {
		if c.s.Bulk && !slices.ContainsFunc(some, func(p place) bool { return !p.inside.IsInt(1) }) {
			var inputs []*Expr
			for _, p := range some {
				inputs = append(inputs, g.epilogueInputs(c.op.Results[0], c.points(c.batchAt, p.row, p.column, run))...)
			}
			b.loadFirst(inputs)
		}
		for _, p := range some {
			g.guardedScope(p.inside, func() {
				c.storeFinished(g, c.batchAt, p.row, p.column, c.finishStaged(stage, c.loadRun(stage, p.from, run)))
			})
		}
	}
}

// runsTogether is the number of runs whose epilogues' inputs a thread reads at a time.
const runsTogether = 4

// loadFirst reads what expressions read of global memory here and now, before any of them is computed.
func (b *Builder) loadFirst(xs []*Expr) {
	seen := map[*Expr]bool{}
	var loads []*Expr
	var visit func(x *Expr)
	visit = func(x *Expr) {
		if seen[x] {
			return
		}
		seen[x] = true
		for _, a := range x.Args {
			visit(a)
		}
		if x.Op == Load && x.Buffer.Space == Global {
			loads = append(loads, x)
		}
	}
	for _, x := range xs {
		visit(x)
	}
	if len(loads) > 1 {
		b.emit(&Let{loads})
	}
}

// storeColumns stores a slab in runs along rows, likewise.
func (c *mma) storeColumns(g *group, stage *Buffer, base, below, n *Expr) {
	run := chunkSize
	if !c.mTotal.DivisibleBy(chunkSize, c.ev.prog.Divisor) {
		run = 1
	}
	c.eachRun(g, c.slabColumns()*slabRows/run, run, func(from *Expr, count int) { c.storeColumnRuns(g, stage, base, from, count, run, below, n) })
}

// storeColumnRuns stores some runs along rows, from one on.
func (c *mma) storeColumnRuns(g *group, stage *Buffer, base, from *Expr, count, run int, below, n *Expr) {
	ev, b := c.ev, c.ev.b
	perColumn := slabRows / run
	for i := 0; i < count; i += 32 {
		at, r := b.DivMod(b.Add(b.Add(from, c.lane), b.Idx(int64(i))), b.Idx(int64(perColumn)))
		first := b.Mul(r, b.Idx(int64(run)))
		row := b.Add(b.Add(c.firstM, c.warpM), b.Add(first, below))
		column := b.Add(b.Add(c.firstN, c.warpN), b.Add(at, n))
		g.guardedScope(b.And(b.Less(row, b.Size(c.mTotal)), b.Less(column, b.Size(c.nTotal))), func() {
			points, sums := make([]*Point, run), make([]*Expr, run)
			for l := range points {
				coordinates := c.join(c.batchAt, ev.delinearize(b.Add(row, b.Idx(int64(l))), c.m), ev.delinearize(column, c.n))
				points[l] = ev.at(ev.shape(c.op.Results[0]), coordinates)
				staged := b.Add(b.Mul(b.Add(first, b.Idx(int64(l))), b.Idx(c.stagePitch())), at)
				sums[l] = b.LoadShared(stage, b.Add(base, staged), 1)[0]
			}
			values := c.finishStaged(stage, sums)
			points, values = g.epilogue(c.op.Results[0], points, values)
			g.storeLanes(0, points, values)
		})
	}
}

// loadRun reads adjacent elements of the stage.
func (c *mma) loadRun(stage *Buffer, from *Expr, run int) []*Expr {
	b := c.ev.b
	if run == 1 || stage.DType != ir.F32 {
		return b.LoadShared(stage, from, run)
	}
	return append(b.LoadShared(stage, from, 4), b.LoadShared(stage, b.Add(from, b.Idx(4)), 4)...)
}

// finishStaged finishes sums that went through the stage, but where they were finished before.
func (c *mma) finishStaged(stage *Buffer, sums []*Expr) []*Expr {
	if stage.DType != ir.F32 {
		return sums
	}
	return c.ev.finishContraction(c.op, c.accumulator, sums)
}
