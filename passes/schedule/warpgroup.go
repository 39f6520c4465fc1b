package schedule

import (
	"slices"

	"weft/ir"
)

// warpgroupTile is a shape of tiles for targets that multiply by warpgroups, and what is known of its speed.
type warpgroupTile struct {
	ir.Schedule
	resident int64 // blocks that a multiprocessor holds at a time
	percent  int64 // of the peak rate, which shared memory's bandwidth leaves: larger tiles read less for a product
}

// warpgroupTiles are two warpgroups a block, each with 64 rows. Where a multiprocessor holds two blocks, one multiplies while the
// other waits; where it holds one, more buffers hide the way of its tiles.
var warpgroupTiles = []warpgroupTile{
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 256, TileK: 64, WarpM: 16, WarpN: 256, Stages: 4}, 1, 77},
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 192, TileK: 64, WarpM: 16, WarpN: 192, Stages: 4}, 1, 72},
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 128, TileK: 64, WarpM: 16, WarpN: 128, Stages: 6}, 1, 60},
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 128, TileK: 64, WarpM: 16, WarpN: 128, Stages: 3}, 2, 59},
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 64, TileK: 64, WarpM: 16, WarpN: 64, Stages: 8}, 1, 42},
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 64, TileK: 64, WarpM: 16, WarpN: 64, Stages: 4}, 2, 50},
}

const (
	// productsPerClock is the number of half multiply-adds of a multiprocessor of sm_90 in a clock.
	productsPerClock = 2048
	// mmaPercent is the share of that rate which mma.sync reaches.
	mmaPercent = 48
	// blockClocks is what a block takes beside its products: the first tiles' way, and the epilogue.
	blockClocks = 6000
)

// warpgroups takes the tile with the shortest time for a contraction that tensor cores run by schedule elsewhere, or none where
// that is as fast: where the result has few tiles, or elements are gathered one by one or rounded on their way.
func (s scheduler) warpgroups(op *ir.Op, elsewhere ir.Schedule) ir.Schedule {
	region := op.Regions[0]
	if elsewhere.Stages == 0 || elsewhere.Rows > 0 {
		return ir.Schedule{}
	}
	depth := int64(1)
	for _, c := range region.Ops {
		switch {
		case c.Kind != ir.OpDotGeneral && c.Kind != ir.OpConvolution:
			continue
		case s.entry.Type(c.Operands[0]).DType.Size() != 2:
			return ir.Schedule{}
		case c.Kind == ir.OpConvolution && !s.pointwise(c) && !s.copiesChannels(region, c) && !s.copiesPatches(region, c):
			return ir.Schedule{}
		case c.Kind == ir.OpConvolution && !s.storesTogether(op.Results[0]):
			return ir.Schedule{}
		}
		depth = s.depth(c)
	}
	m, n, batch := s.extents(op)
	best := ir.Schedule{}
	bestClocks := blockTime(elsewhere, 2, mmaPercent, m, n, batch, depth)
	for _, t := range warpgroupTiles {
		if clocks := blockTime(t.Schedule, t.resident, t.percent, m, n, batch, depth); clocks < bestClocks {
			best, bestClocks = t.Schedule, clocks
		}
	}
	return best
}

// blockTime estimates the clocks of a product whose multiprocessors hold some blocks at a time. Percent is the share of the peak
// rate that they reach together; a block that has fewer beside it than could be waits for its tiles as long as all would multiply.
func blockTime(t ir.Schedule, resident, percent, m, n, batch, depth int64) int64 {
	blocks := ceil(m, int64(t.TileM)) * ceil(n, int64(t.TileN)) * batch
	each := int64(t.TileM*t.TileN) * depth * 100 / (productsPerClock * percent)
	return ceil(blocks, multiprocessors*resident) * (resident*each + blockClocks)
}

// storesTogether tells whether neighbours of a result can be stored by 16 bytes. Elsewhere storing takes longer than multiplying,
// and small blocks hide it better.
func (s scheduler) storesTogether(v ir.Value) bool {
	shape := s.entry.Type(v).Shape
	return len(shape) > 0 && shape[len(shape)-1].DivisibleBy(8, s.program.Divisor)
}

// depth is the number of products of an element of a contraction's result.
func (s scheduler) depth(c *ir.Op) int64 {
	if c.Kind == ir.OpConvolution {
		return s.estimate(ir.Product(slices.Clone(s.entry.Type(c.Operands[1]).Shape[1:])))
	}
	depth := int64(1)
	for _, d := range c.Attrs.(*ir.DotAttrs).LhsContract {
		depth *= s.estimate(s.entry.Type(c.Operands[0]).Shape[d])
	}
	return depth
}
