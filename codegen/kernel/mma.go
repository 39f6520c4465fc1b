package kernel

import (
	"weft/ir"
)

// mma runs a contraction of half types on the tensor cores. A block of warps computes TileM x
// TileN results; tiles of the operands come through Stages buffers of shared memory, filled by
// asynchronous copies while others are multiplied. Rows of shared memory are cut into chunks of
// 16 bytes whose order is permuted by row (swizzle), so that ldmatrix and the copies meet no
// bank conflicts. Each warp computes WarpM x WarpN with m16n8k16 instructions.
type mma struct {
	*contraction
	s       ir.Schedule
	dtype   ir.DType // of the operands, F16 or BF16
	batchAt []*Expr
	lhs     *mmaTile
	rhs     *mmaTile
	kTotal  ir.Dim
	lane    *Expr
	warpM   *Expr // first row of the warp in the tile
	warpN   *Expr
}

// chunkSize is the number of half elements in 16 bytes.
const chunkSize = 8

// mmaTile is one operand's tile. Its elements lie along k ([row][k]) or along rows ([k][row]),
// whichever is adjacent in global memory.
type mmaTile struct {
	rows   int // of the tile
	alongK bool
	async  bool // chunks are plain loads of 16 bytes
	shared *Buffer
	width  int // elements of a row of shared memory
	height int
	total  ir.Dim
	dims   []ir.Dim
	value  ir.Value
	first  *Expr
	point  func(batch, free, k []*Expr) (*Point, *Expr)
	whole  bool // a chunk is inside when its first element is
}

// buildMMA emits the kernel of a contract group on tensor cores.
func (g *group) buildMMA() {
	ev, b := g.ev, g.ev.b
	c := &mma{contraction: contractionOf(ev, g.anchor), s: g.schedule}
	c.dtype = ev.entry.Type(c.lhsValue).DType
	s := c.s
	mTotal, nTotal := ir.Product(c.m), ir.Product(c.n)
	c.kTotal = ir.Product(c.k)
	// Blocks that run together share columns and rows: the grid's first axis runs over rows.
	b.Kernel.Grid = [3]ir.Dim{mTotal.CeilDiv(int64(s.TileM)), nTotal.CeilDiv(int64(s.TileN)), ir.Product(c.batch)}
	c.batchAt = ev.delinearize(b.BlockIndex(2), c.batch)
	firstM := b.Mul(b.BlockIndex(0), b.Idx(int64(s.TileM)))
	firstN := b.Mul(b.BlockIndex(1), b.Idx(int64(s.TileN)))
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	across := int64(s.TileN / s.WarpN)
	row, column := b.DivMod(warp, b.Idx(across))
	c.lane, c.warpM, c.warpN = lane, b.Mul(row, b.Idx(int64(s.WarpM))), b.Mul(column, b.Idx(int64(s.WarpN)))
	c.lhs = c.newTile(s.TileM, mTotal, c.m, c.lhsValue, firstM, c.contraction.lhs)
	c.rhs = c.newTile(s.TileN, nTotal, c.n, c.rhsValue, firstN, c.contraction.rhs)
	sums := c.multiply()
	c.finish(g, sums, firstM, firstN, mTotal, nTotal)
}

func (c *mma) newTile(rows int, total ir.Dim, dims []ir.Dim, v ir.Value, first *Expr, point func(batch, free, k []*Expr) (*Point, *Expr)) *mmaTile {
	t := &mmaTile{rows: rows, total: total, dims: dims, value: v, first: first, point: point, alongK: true, width: c.s.TileK, height: rows}
	for _, alongK := range []bool{true, false} {
		t.orient(c, alongK)
		if _, _, ok := c.plainLoad(t, c.ev.b.Idx(0), c.chunkAt(t, 0)); ok {
			t.async = true
			break
		}
	}
	if !t.async {
		t.orient(c, true)
	}
	t.shared = c.ev.b.SharedArray(c.dtype, int64(c.s.Stages*t.width*t.height))
	return t
}

func (t *mmaTile) orient(c *mma, alongK bool) {
	t.alongK, t.width, t.height = alongK, c.s.TileK, t.rows
	along := c.kTotal
	if !alongK {
		t.width, t.height, along = t.rows, c.s.TileK, t.total
	}
	t.whole = along.DivisibleBy(chunkSize, c.ev.prog.Divisor)
}

// place is a thread's chunk: row and chunk of the row in shared memory.
type place struct{ row, chunk *Expr }

// chunkAt is the thread's i-th chunk.
func (c *mma) chunkAt(t *mmaTile, i int) place {
	b := c.ev.b
	id := b.Add(b.ThreadIndex(), b.Idx(int64(i*c.s.Threads)))
	row, chunk := b.DivMod(id, b.Idx(int64(t.width/chunkSize)))
	return place{row, chunk}
}

// swizzled is the element offset of a chunk in a buffer of shared memory.
func (c *mma) swizzled(t *mmaTile, row, chunk *Expr) *Expr {
	b := c.ev.b
	perRow := int64(t.width / chunkSize)
	turn := row
	if perRow < 8 { // several rows share the 128 bytes of all banks
		turn, _ = b.DivMod(row, b.Idx(8/perRow))
	}
	_, turn = b.DivMod(turn, b.Idx(min(perRow, 8)))
	return b.Add(b.Mul(row, b.Idx(int64(t.width))), b.Mul(b.Arith(Xor, b.Index, chunk, turn), b.Idx(chunkSize)))
}

// points gives the elements of a chunk and whether each is inside of the operand.
func (c *mma) points(t *mmaTile, k0 *Expr, at place) ([]*Point, []*Expr) {
	ev, b := c.ev, c.ev.b
	points, valid := make([]*Point, chunkSize), make([]*Expr, chunkSize)
	first := b.Mul(at.chunk, b.Idx(chunkSize))
	for l := range chunkSize {
		along, bound := b.Add(first, b.Idx(int64(l))), first
		if !t.whole {
			bound = along
		}
		row, k, rowBound, kBound := at.row, along, at.row, bound
		if !t.alongK {
			row, k, rowBound, kBound = along, at.row, bound, at.row
		}
		inside := b.And(b.Less(b.Add(t.first, rowBound), b.Size(t.total)), b.Less(b.Add(k0, kBound), b.Size(c.kTotal)))
		p, element := t.point(c.batchAt, ev.delinearize(b.Add(t.first, row), t.dims), ev.delinearize(b.Add(k0, k), c.k))
		if element != nil {
			inside = b.And(inside, element)
		}
		points[l], valid[l] = p, inside
	}
	return points, valid
}

// plainLoad tells whether a chunk is 16 adjacent bytes of a buffer, all inside or all outside;
// then it gives the load and the predicate.
func (c *mma) plainLoad(t *mmaTile, k0 *Expr, at place) (load, valid *Expr, ok bool) {
	points, inside := c.points(t, k0, at)
	for _, v := range inside[1:] {
		if v != inside[0] {
			return nil, nil, false
		}
	}
	if !c.ev.nonZero(c.ev.shape(t.value)) {
		return nil, nil, false
	}
	values := c.ev.value(t.value, c.ev.clampPoints(points, inside))
	for i, x := range values {
		if x.Op != Lane || x.Imm != int64(i) || x.Args[0] != values[0].Args[0] || x.Args[0].Imm != chunkSize || x.Args[0].Buffer.DType != c.dtype {
			return nil, nil, false
		}
	}
	return values[0].Args[0], inside[0], true
}

// fill brings the tile at k0 into one of the shared buffers.
func (c *mma) fill(t *mmaTile, stage, k0 *Expr) {
	b := c.ev.b
	base := b.Mul(stage, b.Idx(int64(t.width*t.height)))
	chunks := t.width * t.height / chunkSize
	for i := 0; i*c.s.Threads < chunks; i++ {
		at := c.chunkAt(t, i)
		store := func() {
			to := b.Add(base, c.swizzled(t, at.row, at.chunk))
			if load, valid, ok := c.plainLoad(t, k0, at); ok {
				size := b.Select(valid, b.Int(ir.I32, 16), b.Int(ir.I32, 0))
				b.Do("cp.async.cg.shared.global.16.zfill", b.Address(t.shared, to), b.Address(load.Buffer, load.Args[0]), size)
				return
			}
			points, valid := c.points(t, k0, at)
			b.Store(t.shared, to, c.ev.guarded(t.value, points, valid, repeat(b.Float(ir.F32, 0), chunkSize))...)
		}
		b.If(b.Less(b.Add(b.ThreadIndex(), b.Idx(int64(i*c.s.Threads))), b.Idx(int64(chunks))), store)
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
	c.fill(c.lhs, stage, k0)
	c.fill(c.rhs, stage, k0)
}

func (c *mma) nextStage(stage *Expr) *Expr {
	b := c.ev.b
	next := b.Add(stage, b.Idx(1))
	return b.Select(b.Cmp(EQ, next, b.Idx(int64(c.s.Stages))), b.Idx(0), next)
}

// multiplyTile multiplies one pair of tiles.
func (c *mma) multiplyTile(stage *Expr, sums []*Expr) []*Expr {
	s := c.s
	name := "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
	if c.dtype == ir.F16 {
		name = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
	}
	f32 := []ir.DType{ir.F32, ir.F32, ir.F32, ir.F32}
	for k := 0; k < s.TileK; k += 16 {
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
				next = append(next, c.ev.b.Instruction(name, f32, append(append(append([]*Expr{}, x[m]...), y[n]...), sums[at:at+4]...)...)...)
			}
		}
		sums = next
	}
	return sums
}

// matrix loads 16 rows and 16 k as four 8x8 matrices: for the lhs in the order of the
// instruction's registers (rows 0-7 and 8-15 of k 0-7, then of k 8-15), for the rhs as two
// pairs (k 0-7 and 8-15 of rows 0-7, then of rows 8-15).
func (c *mma) matrix(t *mmaTile, stage, warp *Expr, row, k int, lhs bool) []*Expr {
	b := c.ev.b
	half, eighth := b.DivMod(c.lane, b.Idx(8)) // matrix 0..3 and row in it
	upper, odd := b.DivMod(half, b.Idx(2))
	rowHalf, kHalf := odd, upper
	if !lhs {
		rowHalf, kHalf = upper, odd
	}
	base := b.Mul(stage, b.Idx(int64(t.width*t.height)))
	name := "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
	var at *Expr
	if t.alongK {
		r := b.Add(b.Add(warp, b.Idx(int64(row))), b.Add(b.Mul(rowHalf, b.Idx(8)), eighth))
		at = c.swizzled(t, r, b.Add(kHalf, b.Idx(int64(k/chunkSize))))
	} else {
		name = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
		r := b.Add(b.Idx(int64(k)), b.Add(b.Mul(kHalf, b.Idx(8)), eighth))
		chunk, _ := b.DivMod(b.Add(warp, b.Idx(int64(row))), b.Idx(chunkSize))
		at = c.swizzled(t, r, b.Add(chunk, rowHalf))
	}
	word := []ir.DType{ir.I32, ir.I32, ir.I32, ir.I32}
	return b.Instruction(name, word, b.Address(t.shared, b.Add(base, at)))
}

// finish runs the epilogue: a thread has pairs of adjacent columns in rows lane/4 and lane/4+8.
func (c *mma) finish(g *group, sums []*Expr, firstM, firstN *Expr, mTotal, nTotal ir.Dim) {
	ev, b, s := c.ev, c.ev.b, c.s
	quad, pair := b.DivMod(c.lane, b.Idx(4))
	whole := nTotal.DivisibleBy(2, ev.prog.Divisor)
	at := 0
	for m := 0; m < s.WarpM; m += 16 {
		for n := 0; n < s.WarpN; n += 8 {
			column := b.Add(b.Add(firstN, c.warpN), b.Add(b.Mul(pair, b.Idx(2)), b.Idx(int64(n))))
			for half := range 2 {
				row := b.Add(b.Add(firstM, c.warpM), b.Add(quad, b.Idx(int64(m+8*half))))
				values := sums[at : at+2]
				at += 2
				inside := b.Less(row, b.Size(mTotal))
				if whole {
					g.guardedScope(b.And(inside, b.Less(column, b.Size(nTotal))), func() { c.store(g, c.batchAt, row, column, values) })
					continue
				}
				for l := range 2 {
					one := b.Add(column, b.Idx(int64(l)))
					g.guardedScope(b.And(inside, b.Less(one, b.Size(nTotal))), func() { c.store(g, c.batchAt, row, one, values[l:l+1]) })
				}
			}
		}
	}
}
