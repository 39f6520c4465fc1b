package kernel

import "weft/ir"

// multiplyOnTensorCores multiplies 16 rows of the weights, which are the instruction's rows,
// with up to eight rows of the other operand, its columns. The block's warps share k: a thread
// reads 16 bytes of two rows of the weights and of one other row, and as both sides take their
// elements of k in the same order, any order will do. It leaves each warp's sums in shared memory.
func (c *vectorProduct) multiplyOnTensorCores() *Buffer {
	ev, b, s := c.ev, c.ev.b, c.s
	dtype := ev.entry.Type(c.rhsValue).DType
	warps := int64(s.Threads / 32)
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	quad, pair := b.DivMod(lane, b.Idx(4))
	perWarp := int64(4 * s.Vector)
	unroll := int64(loadsAhead / 2)
	if n, ok := c.kTotal.IsConst(); ok {
		unroll = max(1, min(unroll, n/(warps*perWarp)))
	}
	count := b.Size(c.kTotal.CeilDiv(unroll * warps * perWarp))
	sums := ev.loop(b.Idx(0), count, b.Idx(1), repeat(b.Float(ir.F32, 0), 4), func(i *Expr, sums []*Expr) []*Expr {
		weights, others := make([][2][]*Expr, unroll), make([][]*Expr, unroll)
		for u := range unroll {
			turn := b.Add(b.Mul(b.Add(b.Mul(i, b.Idx(unroll)), b.Idx(u)), b.Idx(warps)), warp)
			k0 := b.Add(b.Mul(turn, b.Idx(perWarp)), b.Mul(pair, b.Idx(int64(s.Vector))))
			for half := range 2 {
				n := b.Add(b.Add(c.first, quad), b.Idx(int64(8*half)))
				at := ev.delinearize(n, c.n)
				weights[u][half] = c.run(c.rhsValue, k0, b.Less(n, b.Size(c.weights)), func(k []*Expr) *Point { return c.rhsPoint(c.batchAt, at, k) })
			}
			at := ev.delinearize(quad, c.m)
			others[u] = c.run(c.lhsValue, k0, b.Less(quad, b.Idx(int64(c.rows))), func(k []*Expr) *Point { return c.lhsPoint(c.batchAt, at, k) })
		}
		for u := range unroll {
			x, y, z := b.packHalves(dtype, weights[u][0]), b.packHalves(dtype, weights[u][1]), b.packHalves(dtype, others[u])
			for w := 0; w < len(x); w += 2 {
				sums = b.multiplyAccumulate(dtype, []*Expr{x[w], y[w], x[w+1], y[w+1]}, z[w:w+2], sums)
			}
		}
		return sums
	})
	shared := b.SharedArray(ir.F32, warps*int64(c.rows*s.TileN))
	base := b.Mul(warp, b.Idx(int64(c.rows*s.TileN)))
	for i, x := range sums {
		column := b.Add(b.Mul(pair, b.Idx(2)), b.Idx(int64(i%2)))
		row := b.Add(quad, b.Idx(int64(8*(i/2))))
		b.If(b.Less(column, b.Idx(int64(c.rows))), func() {
			b.Store(shared, b.Add(base, b.Add(b.Mul(column, b.Idx(int64(s.TileN))), row)), x)
		})
	}
	return shared
}

// packHalves packs values that are of a half type already, two in a word.
func (b *Builder) packHalves(t ir.DType, xs []*Expr) []*Expr {
	pack := "cvt.rn.bf16x2.f32"
	if t == ir.F16 {
		pack = "cvt.rn.f16x2.f32"
	}
	out := make([]*Expr, len(xs)/2)
	for i := range out {
		out[i] = b.Instruction(pack, []ir.DType{ir.I32}, xs[2*i+1], xs[2*i])[0]
	}
	return out
}
