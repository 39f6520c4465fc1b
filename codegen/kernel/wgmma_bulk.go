package kernel

import (
	"fmt"
	"slices"

	"weft/ir"
)

// bulk runs a product of half types on warpgroups whose tiles come by bulk copies (TMA). The last warp of a block does nothing
// but start them: of a tile of both operands into each of Stages buffers, as soon as the warps that multiply have done with what was there.
// Two barriers in shared memory for a buffer say so: full, on which those warps wait for the bytes, and empty, on which the copying one
// waits for them. A block computes one tile of the result after the other, so that copies for the next one are under way while
// one is stored. The blocks of a cluster have neighbouring rows and the same columns: each copies its share of the latter to all.
type bulk struct {
	*warpgroups
	cluster  int64
	rank     *Expr // of the block in its cluster
	barriers *Buffer
	m, n     ir.Dim // tiles of the result, those of a cluster as one
	maps     [2]*Expr
	matrices [2]ir.Matrix
}

// TensorMap is a parameter that describes one of the kernel operation's operands to bulk copies: dims from the innermost one on.
type TensorMap struct {
	Operand int // of the kernel operation
	DType   ir.DType
	Offset  ir.Dim   // bytes
	Dims    []ir.Dim // elements
	Strides []ir.Dim // bytes, of all dims but the first
	Box     []int    // elements that a copy moves
	Swizzle int      // bytes after which chunks of 16 are permuted anew
}

// tensorMap adds a parameter and gives its address.
func (b *Builder) tensorMap(m *TensorMap) *Expr {
	b.Kernel.Maps = append(b.Kernel.Maps, m)
	return b.node(Map, ir.I64, int64(len(b.Kernel.Maps)-1))
}

// bandTiles is the number of tiles along rows that are computed before the next column of them: what blocks read together stays in
// the cache.
const bandTiles = 8

// buildBulk emits the kernel of a contract group on warpgroups that multiply what bulk copies bring.
func (g *group) buildBulk() {
	ev, b, s := g.ev, g.ev.b, g.schedule
	product := &mma{contraction: contractionOf(ev, g.anchor), s: s}
	product.dtype = ev.entry.Type(product.lhsValue).DType
	product.mTotal, product.nTotal, product.kTotal = ir.Product(product.m), ir.Product(product.n), ir.Product(product.k)
	c := &bulk{warpgroups: &warpgroups{mma: product}, cluster: int64(max(s.Cluster, 1))}
	c.m, c.n = c.mTotal.CeilDiv(int64(s.TileM)*c.cluster), c.nTotal.CeilDiv(int64(s.TileN))
	if c.cluster > 1 {
		b.Kernel.Cluster = s.Cluster
	}
	c.placeWarps()
	for i, t := range []**mmaTile{&c.lhs, &c.rhs} {
		*t = c.describe(g, i)
	}
	c.barriers = b.SharedArray(ir.I64, int64(2*s.Stages))
	clusters := c.m.Mul(c.n).Mul(ir.Product(c.batch)).Min(ir.Const(int64(s.Blocks) / c.cluster))
	b.Kernel.Grid = [3]ir.Dim{clusters.MulConst(c.cluster), ir.Const(1), ir.Const(1)}
	var first *Expr
	first, c.rank = b.DivMod(b.BlockIndex(0), b.Idx(c.cluster))
	c.openBarriers()
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	copying := b.Cmp(EQ, warp, b.Idx(int64(s.Threads/32-1)))
	tiles := func(init []*Expr, tile func(carried []*Expr) []*Expr) {
		total := c.m.Mul(c.n).Mul(ir.Product(c.batch))
		ev.loop(first, b.Size(total), b.Size(clusters), init, func(t *Expr, carried []*Expr) []*Expr {
			c.place(t)
			return tile(carried)
		})
	}
	g.guardedScope(b.And(copying, b.Cmp(EQ, lane, b.Idx(0))), func() {
		tiles([]*Expr{b.Idx(0), b.bit(true)}, c.copyTiles)
	})
	g.guardedScope(b.Not(copying), func() {
		tiles([]*Expr{b.Idx(0), b.bit(false)}, func(carried []*Expr) []*Expr {
			sums, turn := c.multiplyTiles(carried)
			c.finish(g, sums)
			return turn
		})
	})
	c.meet()
}

// placeWarps gives each warp that multiplies its part of a tile.
func (c *bulk) placeWarps() {
	b, s := c.ev.b, c.s
	group, _ := b.DivMod(b.ThreadIndex(), b.Idx(128))
	row, column := b.DivMod(group, b.Idx(int64(s.TileN/s.WarpN)))
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	_, quarter := b.DivMod(warp, b.Idx(4))
	c.first = b.Mul(row, b.Idx(warpgroupRows))
	c.lane = lane
	c.warpM = b.Add(c.first, b.Mul(quarter, b.Idx(int64(s.WarpM))))
	c.warpN = b.Mul(column, b.Idx(int64(s.WarpN)))
}

// describe gives an operand its tile in shared memory and its tensor map. What all batch indices read alike has no dim there.
func (c *bulk) describe(g *group, operand int) *mmaTile {
	ev, b, s := c.ev, c.ev.b, c.s
	m, ok := ir.MatrixOf(ev.entry, g.region, g.anchor, operand)
	if !ok {
		panic("BUG: an operand scheduled for bulk copies is no matrix in memory")
	}
	value, rows, shared := c.lhsValue, s.TileM, int64(1)
	if operand == 1 {
		value, rows, shared = c.rhsValue, s.TileN, c.cluster
	}
	t := &mmaTile{rows: rows, alongK: m.AlongK, sharedTile: &sharedTile{ev: ev, dtype: c.dtype, value: value, panels: true, width: s.TileK, height: rows}}
	size := int64(c.dtype.Size())
	panel := panelBytes / int(size)
	d := &TensorMap{Operand: slices.Index(g.region.Params, m.Param), DType: c.dtype, Offset: m.Offset.MulConst(size),
		Dims: []ir.Dim{m.K, m.Rows}, Strides: []ir.Dim{m.Pitch.MulConst(size)}, Box: []int{s.TileK, rows / int(shared)}, Swizzle: panelBytes}
	if !m.AlongK {
		t.width, t.height = rows, s.TileK
		d.Dims, d.Box = []ir.Dim{m.Rows, m.K}, []int{panel, s.TileK}
	}
	for i, stride := range m.Batch {
		if !stride.Is(0) {
			d.Dims, d.Strides, d.Box = append(d.Dims, c.batch[i]), append(d.Strides, stride.MulConst(size)), append(d.Box, 1)
		}
	}
	t.allocate(s.Stages)
	c.maps[operand], c.matrices[operand] = b.tensorMap(d), m
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
	row = b.Add(b.Mul(b.Add(row, above), b.Idx(c.cluster)), c.rank)
	c.firstM = b.Mul(row, b.Idx(int64(s.TileM)))
	c.firstN = b.Mul(column, b.Idx(int64(s.TileN)))
}

// openBarriers sets up the barriers, before any thread uses them.
func (c *bulk) openBarriers() {
	b, s := c.ev.b, c.s
	releases := int64(s.Threads/32-1) * c.cluster
	b.If(b.Cmp(EQ, b.ThreadIndex(), b.Idx(0)), func() {
		for stage := range s.Stages {
			b.Do("mbarrier.init.shared::cta.b64", c.full(b.Idx(int64(stage))), b.Int(ir.I32, 1))
			b.Do("mbarrier.init.shared::cta.b64", c.empty(b.Idx(int64(stage))), b.Int(ir.I32, releases))
		}
		b.Do("fence.mbarrier_init.release.cluster")
	})
	b.Barrier()
	if c.cluster > 1 {
		c.meet()
	}
}

// meet waits for all blocks of the cluster: none may end while others write to its memory.
func (c *bulk) meet() {
	if b := c.ev.b; c.cluster > 1 {
		b.Do("barrier.cluster.arrive.release")
		b.Do("barrier.cluster.wait.acquire")
	}
}

func (c *bulk) full(stage *Expr) *Expr { return c.ev.b.Address(c.barriers, stage) }

func (c *bulk) empty(stage *Expr) *Expr {
	b := c.ev.b
	return b.Address(c.barriers, b.Add(stage, b.Idx(int64(c.s.Stages))))
}

// turn moves on to the next buffer. The parity of a barrier's phases changes when all buffers had their turn.
func (c *bulk) turn(stage, parity *Expr) []*Expr {
	b := c.ev.b
	next := c.nextStage(stage)
	return []*Expr{next, b.Select(b.Cmp(EQ, next, b.Idx(0)), b.Arith(Xor, ir.I32, parity, b.bit(true)), parity)}
}

// copyTiles starts the copies for a tile of the result; carried are the next buffer and the parity of its barrier.
func (c *bulk) copyTiles(carried []*Expr) []*Expr {
	b, s := c.ev.b, c.s
	count := b.Size(c.kTotal.CeilDiv(int64(s.TileK)))
	bytes := int64(c.lhs.width*c.lhs.height+c.rhs.width*c.rhs.height) * int64(c.dtype.Size())
	return c.ev.loop(b.Idx(0), count, b.Idx(1), carried, func(i *Expr, carried []*Expr) []*Expr {
		stage := carried[0]
		b.Do("mbarrier.wait.parity", c.empty(stage), carried[1])
		b.Do("mbarrier.arrive.expect_tx.shared::cta.b64", c.full(stage), b.Int(ir.I32, bytes))
		k := b.Mul(i, b.Idx(int64(s.TileK)))
		c.copyOperand(0, c.lhs, c.firstM, k, stage, 1, b.Idx(0))
		c.copyOperand(1, c.rhs, c.firstN, k, stage, c.cluster, c.rank)
		return c.turn(stage, carried[1])
	})
}

// copyOperand starts the copies of one share of a tile whose first row and k are given, to all blocks that share it.
func (c *bulk) copyOperand(operand int, t *mmaTile, row, k, stage *Expr, shares int64, share *Expr) {
	b := c.ev.b
	base := b.Mul(stage, b.Idx(int64(t.width*t.height)))
	var batch []*Expr
	for i, stride := range c.matrices[operand].Batch {
		if !stride.Is(0) {
			batch = append(batch, c.batchAt[i])
		}
	}
	start := func(to *Expr, at ...*Expr) {
		at = append(at, batch...)
		name := fmt.Sprintf("cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes", len(at))
		args := []*Expr{b.Address(t.shared, b.Add(base, to)), c.maps[operand]}
		for _, x := range at {
			args = append(args, b.FromIndex(x, ir.I32))
		}
		args = append(args, c.full(stage))
		if shares > 1 {
			name += ".multicast::cluster"
			args = append(args, b.Int(ir.I16, 1<<shares-1))
		}
		b.Do(name, args...)
	}
	if t.alongK {
		rows := b.Mul(share, b.Idx(int64(t.height)/shares))
		start(b.Mul(rows, b.Idx(int64(t.width))), k, b.Add(row, rows))
		return
	}
	columns := panelBytes / int64(c.dtype.Size())
	panels := int64(t.width) / columns / shares
	for p := range panels {
		panel := b.Add(b.Mul(share, b.Idx(panels)), b.Idx(p))
		first := b.Mul(panel, b.Idx(columns))
		start(b.Mul(first, b.Idx(int64(t.height))), b.Add(row, first), k)
	}
}

// multiplyTiles gives the sums of a tile of the result, and the buffer and parity that are next.
func (c *bulk) multiplyTiles(carried []*Expr) (sums, turn []*Expr) {
	ev, b, s := c.ev, c.ev.b, c.s
	count := b.Size(c.kTotal.CeilDiv(int64(s.TileK)))
	lhs, rhs := c.lhs.fromRow(c.first), c.rhs.fromRow(c.warpN)
	init := append(repeat(b.Float(ir.F32, 0), s.WarpN/2), carried...)
	last := len(init) - len(carried)
	before := func(stage *Expr) *Expr {
		return b.Select(b.Cmp(EQ, stage, b.Idx(0)), b.Idx(int64(s.Stages-1)), b.Sub(stage, b.Idx(1)))
	}
	out := ev.loop(b.Idx(0), count, b.Idx(1), init, func(i *Expr, carried []*Expr) []*Expr {
		stage, parity := carried[last], carried[last+1]
		b.Do("mbarrier.wait.parity", c.full(stage), parity)
		b.Do("wgmma.fence.sync.aligned")
		sums := c.startTile(c.lhs.inStage(lhs, stage), c.rhs.inStage(rhs, stage), carried[:last])
		b.Do("wgmma.commit_group.sync.aligned")
		sums = b.awaitProducts(sums, 1)
		b.If(b.Less(b.Idx(0), i), func() { c.release(before(stage)) })
		return append(sums, c.turn(stage, parity)...)
	})
	sums = b.awaitProducts(out[:last], 0)
	c.release(before(out[last]))
	return sums, out[last:]
}

// release tells all blocks that copy into a buffer that this warp has done with it.
func (c *bulk) release(stage *Expr) {
	b := c.ev.b
	if c.cluster == 1 {
		b.If(b.Cmp(EQ, c.lane, b.Idx(0)), func() { b.Do("mbarrier.arrive.shared::cta.b64", c.empty(stage)) })
		return
	}
	b.If(b.Less(c.lane, b.Idx(c.cluster)), func() {
		there := b.Instruction("mapa.shared::cluster.u32", []ir.DType{ir.I32}, c.empty(stage), b.FromIndex(c.lane, ir.I32))[0]
		b.Do("mbarrier.arrive.release.cluster.shared::cluster.b64", there)
	})
}
