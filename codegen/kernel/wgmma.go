package kernel

import (
	"fmt"
	"slices"

	"weft/ir"
)

// warpgroups runs a contraction of half types on targets that multiply by warpgroups: four warps together start products of
// 64 rows and WarpN columns, which read both operands from shared memory and run while the warps go on. It is as mma, but
// for the multiplication: tiles of the operands come through Stages buffers by asynchronous copies, and the results leave through
// shared memory. Tiles are TileK = 64 elements deep, so that a row of one is the 128 bytes over which the instruction swizzles.
type warpgroups struct {
	*mma
	first *Expr // first row of the warpgroup in the tile
}

// warpgroupRows is the number of rows of a product of a warpgroup; a warp has a fourth of them.
const warpgroupRows = 64

// panelAlignment is the number of bytes after which the instruction's swizzle repeats.
const panelAlignment = 1024

// buildWarpgroups emits the kernel of a contract group on warpgroups.
func (g *group) buildWarpgroups() {
	c := &warpgroups{mma: g.placeMMA()}
	b, s := c.ev.b, c.s
	group, _ := b.DivMod(b.ThreadIndex(), b.Idx(128))
	across := int64(s.TileN / s.WarpN)
	row, column := b.DivMod(group, b.Idx(across))
	c.first = b.Mul(row, b.Idx(warpgroupRows))
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	_, quarter := b.DivMod(warp, b.Idx(4))
	c.lane = lane
	c.warpM = b.Add(c.first, b.Mul(quarter, b.Idx(int64(s.WarpM))))
	c.warpN = b.Mul(column, b.Idx(int64(s.WarpN)))
	c.placeTiles(true)
	c.finish(g, c.multiply())
}

// multiply runs over k and returns the warp's accumulators. In turn i the products of tile i are started while those of tile
// i-1 may still run; so the buffer that is filled meanwhile is that of tile i-2, which all warps have done with at the barrier.
func (c *warpgroups) multiply() []*Expr {
	ev, b, s := c.ev, c.ev.b, c.s
	ahead := s.Stages - 2
	count := b.Size(c.kTotal.CeilDiv(int64(s.TileK)))
	tileK := b.Idx(int64(s.TileK))
	for stage := range ahead {
		at := b.Idx(int64(stage))
		b.If(b.Less(at, count), func() { c.fillBoth(at, b.Mul(at, tileK)) })
		b.Do("cp.async.commit_group")
	}
	lhs, rhs := c.lhs.fromRow(c.first), c.rhs.fromRow(c.warpN)
	sums := repeat(b.Float(ir.F32, 0), s.WarpN/2)
	init := append(sums, b.Idx(0), b.Idx(int64(ahead)))
	last := len(sums)
	out := ev.loop(b.Idx(0), count, b.Idx(1), init, func(i *Expr, carried []*Expr) []*Expr {
		b.Do("cp.async.wait_group", b.Int(ir.I32, int64(ahead-1)))
		b.Do("fence.proxy.async.shared::cta")
		b.Barrier()
		read, write := carried[last], carried[last+1]
		b.Do("wgmma.fence.sync.aligned")
		sums := c.startTile([]*Expr{c.lhs.inStage(lhs, read)}, c.rhs.inStage(rhs, read), carried[:last])
		b.Do("wgmma.commit_group.sync.aligned")
		next := b.Add(i, b.Idx(int64(ahead)))
		b.If(b.Less(next, count), func() { c.fillBoth(write, b.Mul(next, tileK)) })
		b.Do("cp.async.commit_group")
		return append(b.awaitProducts(sums, 1), c.nextStage(read), c.nextStage(write))
	})
	sums = b.awaitProducts(out[:last], 0)
	b.Barrier()
	return sums
}

// awaitProducts waits until at most some groups of the warpgroup's products are unfinished.
func (b *Builder) awaitProducts(sums []*Expr, groups int64) []*Expr {
	name := fmt.Sprintf("wgmma.wait_group.sync.aligned.f32x%d", len(sums))
	return b.Instruction(name, slices.Repeat([]ir.DType{ir.F32}, len(sums)), slices.Concat(sums, []*Expr{b.Int(ir.I32, groups)})...)
}

// startTile starts the products of one pair of tiles: of one or several descriptors of 64 rows each, which have their parts of the
// sums, with that of the columns.
func (c *warpgroups) startTile(lhs []*Expr, rhs *Expr, sums []*Expr) []*Expr {
	b, s := c.ev.b, c.s
	name := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%[2]s", s.WarpN, c.dtype)
	n := len(sums) / len(lhs)
	for k := 0; k < s.TileK; k += 16 {
		y := b.advance(rhs, c.rhs.alongDepth(k, !c.rhs.alongK))
		var next []*Expr
		for i := range lhs {
			x := b.advance(lhs[i], c.lhs.alongDepth(k, !c.lhs.alongK))
			args := slices.Concat(sums[i*n:(i+1)*n], []*Expr{x, y, b.bit(true), b.bit(!c.lhs.alongK), b.bit(!c.rhs.alongK)})
			next = append(next, b.Instruction(name, slices.Repeat([]ir.DType{ir.F32}, n), args...)...)
		}
		sums = next
	}
	return sums
}

// bit is a flag of an instruction.
func (b *Builder) bit(set bool) *Expr {
	if set {
		return b.Int(ir.I32, 1)
	}
	return b.Int(ir.I32, 0)
}

// alongDepth is the distance in bytes from the start of a tile of panels to its elements from k on: k rows of 128 bytes where it
// lies transposed, else inside of a row of the panel that has them.
func (t *sharedTile) alongDepth(k int, transposed bool) int64 {
	if transposed {
		return int64(k * panelBytes)
	}
	at := k * t.dtype.Size()
	return int64(at/panelBytes*t.height*panelBytes + at%panelBytes)
}

// descriptor describes a tile of panels to the instruction, in its first buffer and from a place on: its address, the distance of
// panels and of groups of eight rows of 128 bytes, all in units of 16 bytes, and the swizzle. The first distance counts for tiles
// that lie transposed alone.
func (t *sharedTile) descriptor(at *Expr) *Expr {
	b := t.ev.b
	const eightRows = 8 * panelBytes
	panel := int64(t.height * panelBytes)
	address := b.Arith(LShr, ir.I32, b.Address(t.shared, at), b.Int(ir.I32, 4))
	low := b.Arith(Or, ir.I32, address, b.Int(ir.I32, panel/16<<16))
	return b.wide(low, b.Int(ir.I32, eightRows/16|1<<30))
}

// fromRow is a tile's descriptor from one of its rows on: rows of 128 bytes, or panels of 64 rows of the product.
func (t *mmaTile) fromRow(row *Expr) *Expr {
	b := t.ev.b
	if t.alongK {
		return t.descriptor(b.Mul(row, b.Idx(int64(t.width))))
	}
	return t.descriptor(b.Mul(row, b.Idx(int64(t.height))))
}

// inStage moves a descriptor to a buffer of its tile.
func (t *sharedTile) inStage(descriptor, stage *Expr) *Expr {
	b := t.ev.b
	size := int64(t.width * t.height * t.dtype.Size())
	return b.Arith(Add, ir.I64, descriptor, b.Arith(Mul, ir.I64, b.FromIndex(stage, ir.I64), b.Int(ir.I64, size/16)))
}

// advance moves a descriptor by some bytes.
func (b *Builder) advance(descriptor *Expr, bytes int64) *Expr {
	return b.Arith(Add, ir.I64, descriptor, b.Int(ir.I64, bytes/16))
}
