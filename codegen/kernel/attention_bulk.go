package kernel

import (
	"fmt"
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
	maps := []*Expr{a.tensorMap(1, a.k), a.tensorMap(2, a.v)}
	start := func(values int64, i *Expr) {
		t := []*sharedTile{a.k, a.v}[values]
		_, stage := b.DivMod(i, b.Idx(2))
		b.Do("mbarrier.arrive.expect_tx.shared::cta.b64", full(values, stage), b.Int(ir.I32, int64(t.width*t.height*t.dtype.Size())))
		a.copyRows(t, maps[values], i, stage, full(values, stage))
	}
	await := func(values int64, i *Expr) {
		round, stage := b.DivMod(i, b.Idx(2))
		_, odd := b.DivMod(round, b.Idx(2))
		b.Do("mbarrier.wait.parity", full(values, stage), b.FromIndex(odd, ir.I32))
	}
	b.If(copying, func() {
		for i := range int64(4) {
			b.Do("mbarrier.init.shared::cta.b64", b.Address(barriers, b.Idx(i)), b.Int(ir.I32, 1))
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

// tensorMap describes keys or values to bulk copies: a head's columns, in panels, and rows, then heads and batches.
func (a *attention) tensorMap(operand int, t *sharedTile) *Expr {
	value := a.op.Operands[operand]
	s, ok := ir.StridedOf(a.ev.entry, a.region, value)
	if !ok {
		panic("BUG: an operand scheduled for bulk copies is no view of a parameter")
	}
	shape, size := a.ev.shape(value), int64(a.dtype.Size())
	m := &TensorMap{Operand: slices.Index(a.region.Params, s.Param), DType: a.dtype, Offset: s.Offset.MulConst(size), Swizzle: panelBytes,
		Dims: []ir.Dim{shape[3], shape[2]}, Strides: []ir.Dim{s.Strides[2].MulConst(size)}, Box: []int{panelBytes / int(size), t.height}}
	for d := 1; d >= 0; d-- {
		if apart(shape[d], s.Strides[d]) {
			m.Dims, m.Strides, m.Box = append(m.Dims, shape[d]), append(m.Strides, s.Strides[d].MulConst(size)), append(m.Box, 1)
		}
	}
	return a.ev.b.tensorMap(m)
}

// apart tells whether what a dim counts lies in several places: a tensor map has a dim for it.
func apart(size, stride ir.Dim) bool { return !size.Is(1) && !stride.Is(0) }

// copyRows starts the copies of tile i of keys or values: one for each panel.
func (a *attention) copyRows(t *sharedTile, tensorMap, i, stage, full *Expr) {
	b := a.ev.b
	s, _ := ir.StridedOf(a.ev.entry, a.region, t.value)
	shape := a.ev.shape(t.value)
	base := b.Mul(stage, b.Idx(int64(t.width*t.height)))
	for first := 0; first < t.width; first += panelBytes / t.dtype.Size() {
		at := []*Expr{b.Idx(int64(first)), b.Mul(i, b.Idx(int64(t.height)))}
		if apart(shape[1], s.Strides[1]) {
			at = append(at, a.keyHead)
		}
		if apart(shape[0], s.Strides[0]) {
			at = append(at, a.batch)
		}
		b.copyBox(b.Address(t.shared, b.Add(base, b.Idx(int64(first*t.height)))), tensorMap, at, full)
	}
}

// copyBox starts a bulk copy of the box at some coordinates, whose bytes a barrier counts.
func (b *Builder) copyBox(to, tensorMap *Expr, at []*Expr, full *Expr) {
	args := []*Expr{to, tensorMap}
	for _, x := range at {
		args = append(args, b.FromIndex(x, ir.I32))
	}
	b.Do(fmt.Sprintf("cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes", len(at)), append(args, full)...)
}
