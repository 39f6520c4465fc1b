package kernel

import (
	"slices"

	"weft/ir"
)

// bulkTilesOfTurns is tilesOfTurns by bulk copies, which the block's first thread starts. Each of the two buffers of keys and of values
// has a barrier for the bytes of a tile.
func (a *attention) bulkTilesOfTurns(count *Expr) (arrived func(i *Expr)) {
	b := a.ev.b
	barriers := b.SharedArray(ir.I64, 4)
	copying := b.Cmp(EQ, b.ThreadIndex(), b.Idx(0))
	full := func(values int64, stage *Expr) *Expr { return b.Address(barriers, b.Add(stage, b.Idx(2*values))) }
	keys, keysAt := a.bulkHead(1, a.k)
	values, valuesAt := a.bulkHead(2, a.v)
	operands, places := []*bulkOperand{keys, values}, [][]*Expr{keysAt, valuesAt}
	start := func(values int64, i *Expr) {
		t := operands[values].tile
		_, stage := b.DivMod(i, b.Idx(2))
		b.expectTiles(full(values, stage), t)
		operands[values].copyTile(stage, b.Idx(0), b.Mul(i, b.Idx(int64(t.height))), places[values], full(values, stage))
	}
	await := func(values int64, i *Expr) {
		round, stage := b.DivMod(i, b.Idx(2))
		_, odd := b.DivMod(round, b.Idx(2))
		b.awaitPhase(full(values, stage), b.FromIndex(odd, ir.I32))
	}
	b.If(copying, func() {
		for i := range int64(4) {
			b.openBarrier(b.Address(barriers, b.Idx(i)), 1)
		}
		b.Do("fence.mbarrier_init.release.cluster")
		start(0, b.Idx(0))
	})
	return func(i *Expr) {
		b.Barrier() // all have done with the buffers that are filled next
		next := b.Add(i, b.Idx(1))
		b.If(copying, func() {
			b.If(b.Less(next, count), func() { start(0, next) })
			b.If(b.Less(i, count), func() { start(1, i) })
		})
		b.If(b.Less(i, count), func() { await(0, i) })
		b.If(b.Less(b.Idx(0), i), func() { await(1, b.Sub(i, b.Idx(1))) })
	}
}

// bulkHead describes the keys or values of all heads to bulk copies, and gives the places of the block's.
func (a *attention) bulkHead(operand int, t *sharedTile) (o *bulkOperand, places []*Expr) {
	ev := a.ev
	s, ok := ir.StridedOf(ev.entry, a.region, a.op.Operands[operand])
	if !ok {
		panic("BUG: an operand scheduled for bulk copies is no view of a parameter")
	}
	places = slices.Concat(ev.delinearize(a.batch, ir.Sizes(s.Dims[0])), ev.delinearize(a.keyHead, ir.Sizes(s.Dims[1])))
	return a.bulkOperand(t, s.Param, s.Offset, s.Dims[3][0], s.Dims[2][0], slices.Concat(s.Dims[0], s.Dims[1])), places
}
