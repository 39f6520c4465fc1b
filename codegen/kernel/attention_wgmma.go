package kernel

import (
	"fmt"
	"slices"

	"weft/ir"
)

// overKeysByWarpgroups is overKeys on targets that multiply by warpgroups. A warpgroup has 64 queries, whose fragments stay in
// registers; keys and values are read from shared memory, where values lie as the transposed operand. In turn i the scores of tile i
// and the weighted values of tile i-1 are started together, so that the weights of tile i are computed while values are multiplied.
// The state is as overKeys has it, then the packed weights of the tile before.
func (a *attention) overKeysByWarpgroups(queries [][]*Expr) []*Expr {
	b, s := a.ev.b, a.schedule
	zero, one, tile := b.Idx(0), b.Idx(1), b.Idx(int64(s.TileN))
	count, _ := b.DivMod(b.Add(a.limit(), b.Idx(int64(s.TileN-1))), tile)
	count = b.MaxIndex(count, one) // keys that nobody sees add nothing
	keys, values := a.k.descriptor(zero), a.v.descriptor(zero)
	arrived := a.tilesOfTurns(count)
	arrived(zero)
	b.Do("wgmma.fence.sync.aligned")
	sums := b.awaitProducts(a.startScores(queries, a.k.inStage(keys, zero)), 0)
	weights, state := a.online(a.masked(fours(sums), zero, true), a.emptyState())
	end := len(state)
	state = append(state, a.packedAll(weights)...)
	turn := func(masked bool) func(i *Expr, state []*Expr) []*Expr {
		return func(i *Expr, state []*Expr) []*Expr {
			arrived(i)
			_, stage := b.DivMod(i, b.Idx(2))
			b.Do("wgmma.fence.sync.aligned")
			scores := a.startScores(queries, a.k.inStage(keys, stage))
			sums := a.startValues(state[end:], a.v.inStage(values, b.Sub(one, stage)), state[:end-4])
			scores = b.awaitProducts(scores, 1)
			weights, rows := a.onlineRows(a.masked(fours(scores), b.Mul(i, tile), masked), state[end-4:end])
			b.emit(&Let{rows})
			// The weights wait too: the registers in which they are packed are read by the products until then.
			n := len(sums)
			both := b.awaitProducts(slices.Concat(sums, slices.Concat(weights...)), 0)
			return slices.Concat(a.shrunk(both[:n], rows), rows[:4], a.packedAll(fours(both[n:])))
		}
	}
	state = a.loops(one, count, state, turn)
	arrived(count)
	_, stage := b.DivMod(b.Sub(count, one), b.Idx(2))
	sums = state[:end-4]
	if count.IsInt(1) {
		sums = nil // there is no tile before
	}
	b.Do("wgmma.fence.sync.aligned")
	sums = b.awaitProducts(a.startValues(state[end:], a.v.inStage(values, stage), sums), 0)
	return slices.Concat(sums, state[end-4:end])
}

// tilesOfTurns sends for the first tile of keys. What it gives waits for the tile of keys of a turn and the values of the one before, and
// sends for the next ones.
func (a *attention) tilesOfTurns(count *Expr) (arrived func(i *Expr)) {
	b := a.ev.b
	one, tile := b.Idx(1), b.Idx(int64(a.schedule.TileN))
	if a.schedule.Bulk {
		return a.bulkTilesOfTurns(count)
	}
	a.k.fill(b.Idx(0), b.Idx(0))
	b.Do("cp.async.commit_group")
	return func(i *Expr) {
		b.Do("cp.async.wait_group", b.Int(ir.I32, 0))
		b.Do("fence.proxy.async.shared::cta")
		b.Barrier()
		_, stage := b.DivMod(i, b.Idx(2))
		next := b.Add(i, one)
		b.If(b.Less(next, count), func() { a.k.fill(b.Sub(one, stage), b.Mul(next, tile)) })
		b.If(b.Less(i, count), func() { a.v.fill(stage, b.Mul(i, tile)) })
		b.Do("cp.async.commit_group")
	}
}

// startScores starts q k^T of a tile.
func (a *attention) startScores(queries [][]*Expr, keys *Expr) []*Expr {
	b := a.ev.b
	var sums []*Expr
	for i, q := range queries {
		sums = b.startProduct(a.dtype, a.schedule.TileN, q, b.advance(keys, a.k.alongDepth(16*i, false)), false, sums)
	}
	b.Do("wgmma.commit_group.sync.aligned")
	return sums
}

// startValues starts to add the weighted values of a tile.
func (a *attention) startValues(weights []*Expr, values *Expr, sums []*Expr) []*Expr {
	b := a.ev.b
	for i := 0; i < len(weights); i += 4 {
		sums = b.startProduct(a.dtype, a.width, weights[i:i+4], b.advance(values, a.v.alongDepth(4*i, true)), true, sums)
	}
	b.Do("wgmma.commit_group.sync.aligned")
	return sums
}

// packedAll packs a tile's weights, four registers for sixteen keys.
func (a *attention) packedAll(weights [][]*Expr) []*Expr {
	var out []*Expr
	for n := 0; n < len(weights); n += 2 {
		out = append(out, a.packed(weights[n:n+2])...)
	}
	return out
}

// fours takes scores apart as attention.scores gives them.
func fours(xs []*Expr) [][]*Expr {
	var out [][]*Expr
	for i := 0; i < len(xs); i += 4 {
		out = append(out, xs[i:i+4])
	}
	return out
}

// startProduct starts a product of 64 rows, n columns and 16 k whose A is in registers, and adds it to sums where there are any.
func (b *Builder) startProduct(t ir.DType, n int, x []*Expr, y *Expr, transposed bool, sums []*Expr) []*Expr {
	name := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%[2]s.registers", n, t)
	if sums == nil {
		name += ".first"
	}
	args := slices.Concat(sums, x, []*Expr{y, b.bit(sums != nil), b.bit(transposed)})
	return b.Instruction(name, slices.Repeat([]ir.DType{ir.F32}, n/2), args...)
}
