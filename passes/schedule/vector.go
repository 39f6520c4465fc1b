package schedule

import (
	"slices"

	"weft/ir"
	"weft/passes/internal/sizing"
)

// fewRows is the number of rows up to which a product is a matter of reading the other operand.
const fewRows = 8

// enoughWarps is the number of warps that have enough loads under way to saturate the memory of
// a large GPU.
const enoughWarps = sizing.Multiprocessors * 24

// vectorProduct schedules a dot_general of a known, small number of rows, on either side: the
// other operand, the weights, is read once, by loads of 16 bytes.
func (s scheduler) vectorProduct(op *ir.Op) (ir.Schedule, bool) {
	region := op.Regions[0]
	i := slices.IndexFunc(region.Ops, func(c *ir.Op) bool { return c.Kind == ir.OpDotGeneral })
	if i < 0 {
		return ir.Schedule{}, false
	}
	c := region.Ops[i]
	a := c.Attrs.(*ir.DotAttrs)
	l, r := s.entry.Type(c.Operands[0]), s.entry.Type(c.Operands[1])
	if !l.DType.IsFloat() || !r.DType.IsFloat() {
		return ir.Schedule{}, false
	}
	free := func(shape []ir.Dim, batch, contract []int) ir.Dim {
		n := ir.Const(1)
		for d, size := range shape {
			if !slices.Contains(batch, d) && !slices.Contains(contract, d) {
				n = n.Mul(size)
			}
		}
		return n
	}
	m, n := free(l.Shape, a.LhsBatch, a.LhsContract), free(r.Shape, a.RhsBatch, a.RhsContract)
	k, batch := ir.Const(1), ir.Const(1)
	for _, d := range a.LhsContract {
		k = k.Mul(l.Shape[d])
	}
	for _, d := range a.LhsBatch {
		batch = batch.Mul(l.Shape[d])
	}
	few, many, weights, contracted := m, n, c.Operands[1], a.RhsContract
	rows, ok := m.IsConst()
	if other, known := n.IsConst(); known && (!ok || other < rows) {
		few, many, weights, contracted = n, m, c.Operands[0], a.LhsContract
		rows, ok = other, true
	}
	if !ok || rows < 1 || rows > fewRows || few.Equal(many) || s.estimate(k) < 64 {
		return ir.Schedule{}, false
	}
	axis := adjacentAxis(region, weights, s.entry.Type(weights).Rank())
	if axis < 0 {
		return ir.Schedule{}, false
	}
	p := product{rows: rows, weights: many, k: k, batch: s.estimate(batch), size: s.entry.Type(weights).DType.Size()}
	if slices.Contains(contracted, axis) {
		if t := s.entry.Type(weights).DType; rows > 2 && t.Size() == 2 && k.DivisibleBy(8, s.program.Divisor) && s.entry.Type(c.Results[0]).DType != ir.F64 {
			return s.sixteenRows(p), true
		}
		return s.alongK(p), true
	}
	return s.alongRows(p), true
}

// product is a contraction of few rows.
type product struct {
	rows       int64
	weights, k ir.Dim
	batch      int64
	size       int // of an element of the weights
}

// alongK is for weights that are adjacent along k: a thread takes 16 bytes of several rows.
func (s scheduler) alongK(p product) ir.Schedule {
	vector := int64(16 / p.size)
	for !p.k.DivisibleBy(vector, s.program.Divisor) {
		vector /= 2
	}
	perThread, threads := int64(4), int64(32)
	groups := func() int64 { return sizing.Ceil(s.estimate(p.weights), perThread) * p.batch }
	// Longer rows are split over more threads where there are too few rows, and a thread takes
	// fewer of them.
	for threads < 256 && groups()*threads/32 < enoughWarps && 2*threads*vector <= s.estimate(p.k) {
		threads *= 2
	}
	for perThread > 1 && groups()*threads/32 < enoughWarps {
		perThread /= 2
	}
	block := max(threads, 128)
	return ir.Schedule{Threads: int(block), Vector: int(vector), Rows: int(p.rows), TileN: int(block / threads * perThread), ThreadN: int(perThread)}
}

// sixteenRows is for weights of a half type along k and more rows than threads multiply while
// they read: tensor cores do, sixteen rows of the weights a block.
func (s scheduler) sixteenRows(p product) ir.Schedule {
	threads := int64(128)
	for threads < 512 && sizing.Ceil(s.estimate(p.weights), 16)*p.batch*threads/32 < enoughWarps/2 && 2*threads <= s.estimate(p.k) {
		threads *= 2
	}
	return ir.Schedule{Threads: int(threads), Vector: 8, Rows: int(p.rows), TileN: 16, ThreadN: 16, WarpM: 16}
}

// alongRows is for weights whose rows are neighbours: a thread takes 16 bytes at several k.
func (s scheduler) alongRows(p product) ir.Schedule {
	perThread := int64(16 / p.size)
	for !p.weights.DivisibleBy(perThread, s.program.Divisor) {
		perThread /= 2
	}
	vector := int64(8)
	if p.rows*perThread > 32 {
		vector = 4
	}
	for vector > 1 && (!p.k.DivisibleBy(vector, s.program.Divisor) || vector*32 > s.estimate(p.k)) {
		vector /= 2
	}
	// Four neighbouring threads read 64 bytes, two where there are too few blocks.
	groups := int64(4)
	for groups < 16 && sizing.Ceil(s.estimate(p.weights), 2*groups*perThread)*p.batch >= 4*sizing.Multiprocessors {
		groups *= 2
	}
	if sizing.Ceil(s.estimate(p.weights), groups*perThread)*p.batch < sizing.Multiprocessors*3/4 {
		groups = 2
	}
	threads := int64(128)
	for threads < 512 && sizing.Ceil(s.estimate(p.weights), groups*perThread)*p.batch*threads/32 < enoughWarps/2 && 2*threads/groups*vector <= s.estimate(p.k) {
		threads *= 2
	}
	return ir.Schedule{Threads: int(threads), Vector: int(vector), Rows: int(p.rows), TileN: int(groups * perThread), ThreadN: int(perThread)}
}

// adjacentAxis is the axis of a value along which neighbours are neighbours in memory: the last,
// unless the region transposes the value; -1 where it computes the value in another way.
func adjacentAxis(region *ir.Block, v ir.Value, rank int) int {
	for _, op := range region.Ops {
		if len(op.Results) != 1 || op.Results[0] != v {
			continue
		}
		switch op.Kind {
		case ir.OpTranspose:
			axis := adjacentAxis(region, op.Operands[0], rank)
			return slices.Index(op.Attrs.(*ir.TransposeAttrs).Permutation, axis)
		case ir.OpConvert:
			return adjacentAxis(region, op.Operands[0], rank)
		}
		return -1
	}
	return rank - 1
}
