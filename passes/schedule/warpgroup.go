package schedule

import (
	"slices"

	"weft/ir"
	"weft/passes/internal/sizing"
)

// warpgroupTile is a shape of tiles for targets that multiply by warpgroups, and what is known of its speed.
type warpgroupTile struct {
	ir.Schedule
	resident int64 // blocks that a multiprocessor holds at a time
	percent  int64 // of the peak rate, which the bandwidth of memories leaves: larger tiles read less for a product
	clocks   int64 // what a block takes beside its products: the first tiles' way, and storing the result
}

// warpgroupTiles are two warpgroups a block, each with 64 rows. Where a multiprocessor holds two blocks, one multiplies while the
// other waits; where it holds one, more buffers hide the way of its tiles.
var warpgroupTiles = []warpgroupTile{
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 256, TileK: 64, WarpM: 16, WarpN: 256, Stages: 4}, 1, 75, 6000},
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 192, TileK: 64, WarpM: 16, WarpN: 192, Stages: 4}, 1, 72, 6000},
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 128, TileK: 64, WarpM: 16, WarpN: 128, Stages: 6}, 1, 60, 6000},
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 128, TileK: 64, WarpM: 16, WarpN: 128, Stages: 3}, 2, 59, 6000},
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 64, TileK: 64, WarpM: 16, WarpN: 64, Stages: 8}, 1, 42, 6000},
	{ir.Schedule{Threads: 256, TileM: 128, TileN: 64, TileK: 64, WarpM: 16, WarpN: 64, Stages: 4}, 2, 50, 6000},
}

// bulkTiles are two warpgroups of 64 rows, or of tiles of their own in turn, and one that copies for them. A block computes its tiles one
// after the other, so that the way of the operands is hidden, and in turn that of the results too.
var bulkTiles = []warpgroupTile{
	{ir.Schedule{Threads: 384, TileM: 128, TileN: 256, TileK: 64, WarpM: 16, WarpN: 256, Stages: 4, Bulk: true, Blocks: sizing.Multiprocessors}, 1, 95, 1900},
	{ir.Schedule{Threads: 384, TileM: 128, TileN: 192, TileK: 64, WarpM: 16, WarpN: 192, Stages: 4, Bulk: true, Blocks: sizing.Multiprocessors}, 1, 95, 2100},
	{ir.Schedule{Threads: 384, TileM: 128, TileN: 128, TileK: 64, WarpM: 32, WarpN: 128, Stages: 6, Bulk: true, Blocks: sizing.Multiprocessors}, 1, 93, 800},
	{ir.Schedule{Threads: 384, TileM: 128, TileN: 64, TileK: 64, WarpM: 16, WarpN: 64, Stages: 6, Bulk: true, Blocks: sizing.Multiprocessors}, 1, 67, 800},
}

const (
	// productsPerClock is the number of half multiply-adds of a multiprocessor of sm_90 in a clock.
	productsPerClock = 2048
	// mmaPercent is the share of that rate which mma.sync reaches.
	mmaPercent = 48
	// lanes is the number of instructions of threads that a multiprocessor executes in a clock.
	lanes = 128
	// epiloguePercent is the time of an epilogue by that of its instructions: its loads and stores are waited for.
	epiloguePercent = 130
	// tailElements is the number of elements of the last blocks that are stored in a clock, while nothing is multiplied any more.
	tailElements = 5
	// bulkStart is the clocks until the first tile of the operands is there by bulk copies.
	bulkStart = 4000
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
		case c.Kind == ir.OpConvolution && (s.gathers(region, c) || !s.storesTogether(op.Results[0])):
			return ir.Schedule{}
		}
		depth = s.depth(c)
	}
	p := matrixProduct{depth: depth, epilogue: epilogueInstructions(region)}
	p.m, p.n, p.batch = s.extents(op)
	best := ir.Schedule{}
	bestClocks := p.clocks(warpgroupTile{elsewhere, 2, mmaPercent, 6000})
	tiles := warpgroupTiles
	if ir.CopiesInBulk(s.program, s.entry, region) {
		tiles = slices.Concat(tiles, bulkTiles)
	}
	for _, t := range tiles {
		if clocks := p.clocks(t); clocks < bestClocks {
			best, bestClocks = t.Schedule, clocks
		}
	}
	return best
}

// matrixProduct has an epilogue of some instructions for each element.
type matrixProduct struct{ m, n, batch, depth, epilogue int64 }

// clocks estimates the time of a product. A tile's percent is the share of the peak rate that the blocks of a multiprocessor reach
// together; a block that has fewer beside it than could be waits for its tiles as long as all would multiply. Where there are
// two, or warpgroups take turns, the one's epilogue runs while the other multiplies.
func (p matrixProduct) clocks(t warpgroupTile) int64 {
	blocks := sizing.Ceil(p.m, int64(t.TileM)) * sizing.Ceil(p.n, int64(t.TileN)) * p.batch
	waves := sizing.Ceil(blocks, sizing.Multiprocessors*t.resident)
	elements := int64(t.TileM*t.TileN) * t.resident
	multiply := elements * p.depth * 100 / (productsPerClock * t.percent)
	epilogue := elements * p.epilogue * epiloguePercent / (100 * lanes)
	together := multiply + epilogue
	if t.resident > 1 || t.WarpM > 16 {
		epilogue += epilogue / 4 // narrow tiles store short rows
		together = max(multiply, epilogue) + min(multiply, epilogue)/2
	}
	clocks := waves*(together+t.clocks) + elements/tailElements
	if t.Bulk {
		clocks += bulkStart
	}
	return clocks
}

// epilogueInstructions estimates the instructions for an element of the product's result: of all that is not on the way to it.
func epilogueInstructions(region *ir.Block) int64 {
	n, before := int64(0), map[ir.Value]bool{}
	for _, op := range slices.Backward(region.Ops) {
		class := op.Kind.Info().Class
		if class == ir.ClassContraction || slices.ContainsFunc(op.Results, func(v ir.Value) bool { return before[v] }) {
			for _, v := range op.Operands {
				before[v] = true
			}
			continue
		}
		switch {
		case class != ir.ClassElementwise:
		case op.Kind == ir.OpDivide || op.Kind == ir.OpPower:
			n += 15
		case op.Kind >= ir.OpSqrt && op.Kind <= ir.OpDigamma: // elementary functions
			n += 25
		default:
			n++
		}
	}
	return n
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
