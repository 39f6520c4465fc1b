// Package schedule chooses how each kernel group runs: threads, vectors and tiles. A schedule
// is plain data in the kernel operation's attributes, printed and part of every cache key.
package schedule

import (
	"slices"

	"weft/ir"
	"weft/passes/internal/sizing"
)

// Run schedules every kernel group that has no schedule yet. It tells whether anything changed.
func Run(p *ir.Program) (bool, error) {
	changed := false
	for _, e := range p.Entries {
		s := scheduler{p, e}
		e.Body.Walk(func(op *ir.Op) {
			a, ok := op.Attrs.(*ir.KernelAttrs)
			if !ok || a.Schedule.Threads != 0 {
				return
			}
			changed = true
			scheduled := *a
			switch a.Group {
			case ir.MapGroup:
				scheduled.Schedule = s.mapGroup(op)
			case ir.ScatterGroup:
				scheduled.Schedule = s.update(op)
			case ir.RowsGroup:
				scheduled.Schedule = s.rows(op)
			case ir.ContractGroup:
				scheduled.Schedule = s.contract(op)
				scheduled.Warpgroup = s.warpgroups(op, scheduled.Schedule)
			case ir.AttentionGroup:
				scheduled.Schedule = s.attention(op)
				scheduled.Warpgroup = s.warpgroupAttention(op, scheduled.Schedule)
			}
			op.Attrs = &scheduled
		})
	}
	return changed, nil
}

type scheduler struct {
	program *ir.Program
	entry   *ir.Entry
}

// estimate is the size that a dim is scheduled for.
func (s scheduler) estimate(d ir.Dim) int64 { return sizing.Estimate(s.program, d) }

// vector is the number of adjacent elements that a thread handles together: 16 bytes of the
// widest type, as far as it divides the innermost dim that has more than one element.
func (s scheduler) vector(shape []ir.Dim, types ...ir.DType) int64 {
	size := 1
	for _, t := range types {
		size = max(size, t.Size())
	}
	v := int64(16 / max(size, 2))
	last := ir.Const(1)
	for i := len(shape) - 1; i >= 0 && last.Is(1); i-- {
		last = shape[i]
	}
	for v > 1 && !last.DivisibleBy(v, s.program.Divisor) {
		v /= 2
	}
	return v
}

// enough is the number of threads that keep a large GPU busy.
const enough = 132 * 1024

func (s scheduler) mapGroup(op *ir.Op) ir.Schedule {
	if t, ok := s.transposing(op); ok {
		return t
	}
	out := s.entry.Type(op.Results[0])
	v := s.vector(out.Shape, out.DType)
	busy := int64(enough)
	for _, inner := range op.Regions[0].Ops {
		switch c := inner.Kind.Info().Class; {
		case inner.Kind == ir.OpSort:
			return s.sort(inner)
		case inner.Kind == ir.OpCumulative:
			return s.scan(inner)
		case inner.Kind == ir.OpConvolution || inner.Kind == ir.OpReduceWindow:
			busy = enough / 4 // neighbours share their windows: vectors pay earlier
		case s.sharesRows(inner):
			busy = enough / 2 // a thread has several loads under way
		case c == ir.ClassReduction || c == ir.ClassContraction:
			v = 1 // each lane loops on its own
		}
	}
	elements := s.estimate(out.Numel())
	for v > 1 && elements/v < busy {
		v /= 2
	}
	threads := 256
	if elements/v < 132*256 {
		threads = 128
	}
	return ir.Schedule{Threads: threads, Vector: int(v)}
}

// tiles are the shapes of a contraction's tiles, from large to small. Threads are
// (TileM/ThreadM)*(TileN/ThreadN).
var tiles = []ir.Schedule{
	{Threads: 256, TileM: 128, TileN: 128, TileK: 8, ThreadM: 8, ThreadN: 8},
	{Threads: 256, TileM: 64, TileN: 64, TileK: 16, ThreadM: 4, ThreadN: 4},
	{Threads: 64, TileM: 32, TileN: 32, TileK: 16, ThreadM: 4, ThreadN: 4},
	{Threads: 64, TileM: 16, TileN: 64, TileK: 16, ThreadM: 4, ThreadN: 4},
	{Threads: 64, TileM: 64, TileN: 16, TileK: 16, ThreadM: 4, ThreadN: 4},
}

// contract takes the tile with the least work done outside of the result and enough blocks.
func (s scheduler) contract(op *ir.Op) ir.Schedule {
	if t, ok := s.vectorProduct(op); ok {
		return t
	}
	m, n, batch := s.extents(op)
	if t, ok := s.tensorCores(op, m, n, batch); ok {
		return t
	}
	best, bestCost := tiles[0], int64(-1)
	for _, t := range tiles {
		blocks := sizing.Ceil(m, int64(t.TileM)) * sizing.Ceil(n, int64(t.TileN)) * batch
		// Time in units of one thread's multiply-adds: waves of blocks, each as long as its
		// thread tile and as its loads, which a larger tile shares better.
		waves := sizing.Ceil(blocks*int64(t.Threads), sizing.Multiprocessors*512)
		perK := int64(t.ThreadM*t.ThreadN) + 4*int64(t.ThreadM+t.ThreadN)
		cost := waves * perK
		if bestCost < 0 || cost < bestCost {
			best, bestCost = t, cost
		}
	}
	return best
}

// extents are the sizes of the matrix product that a contraction is.
func (s scheduler) extents(op *ir.Op) (m, n, batch int64) {
	region := op.Regions[0]
	for _, c := range region.Ops {
		switch c.Kind {
		case ir.OpDotGeneral:
			a := c.Attrs.(*ir.DotAttrs)
			l, r := s.entry.Type(c.Operands[0]).Shape, s.entry.Type(c.Operands[1]).Shape
			m, n, batch = 1, 1, 1
			for i, d := range l {
				switch {
				case slices.Contains(a.LhsBatch, i):
					batch *= s.estimate(d)
				case !slices.Contains(a.LhsContract, i):
					m *= s.estimate(d)
				}
			}
			for i, d := range r {
				if !slices.Contains(a.RhsBatch, i) && !slices.Contains(a.RhsContract, i) {
					n *= s.estimate(d)
				}
			}
			return m, n, batch
		case ir.OpConvolution:
			out := s.entry.Type(c.Results[0]).Shape
			batch = c.Attrs.(*ir.ConvolutionAttrs).Groups
			n = s.estimate(out[0])
			for _, d := range out[2:] {
				n *= s.estimate(d)
			}
			m = s.estimate(out[1]) / batch
			if channelsLast(region, c.Operands[0]) {
				m, n = n, m // as codegen multiplies them
			}
			return m, n, batch
		}
	}
	panic("BUG: contract group without contraction")
}

// channelsLast tells whether an image is read from where passes/layout stored it.
func channelsLast(region *ir.Block, image ir.Value) bool {
	for _, op := range region.Ops {
		if op.Kind == ir.OpTranspose && op.Results[0] == image {
			p := op.Attrs.(*ir.TransposeAttrs).Permutation
			return p[1] == len(p)-1
		}
	}
	return false
}

// mmaTiles are the shapes of tiles on tensor cores, from large to small. A tile of K has whole
// chunks of 16 bytes; warps are (TileM/WarpM)*(TileN/WarpN). Of TF32, tiles are half as deep.
var mmaTiles = []ir.Schedule{
	{Threads: 128, TileM: 128, TileN: 128, TileK: 32, WarpM: 64, WarpN: 64, Stages: 4},
	{Threads: 128, TileM: 128, TileN: 64, TileK: 32, WarpM: 64, WarpN: 32, Stages: 4},
	{Threads: 128, TileM: 64, TileN: 64, TileK: 64, WarpM: 32, WarpN: 32, Stages: 3},
	{Threads: 64, TileM: 32, TileN: 64, TileK: 64, WarpM: 32, WarpN: 32, Stages: 3},
	{Threads: 32, TileM: 16, TileN: 32, TileK: 64, WarpM: 16, WarpN: 32, Stages: 4},
}

// windowTiles are for convolutions with windows, whose elements are gathered one by one: many
// threads for a tile, so that each holds few.
var windowTiles = []ir.Schedule{
	{Threads: 128, TileM: 64, TileN: 64, TileK: 32, WarpM: 32, WarpN: 32, Stages: 2},
	{Threads: 128, TileM: 32, TileN: 64, TileK: 32, WarpM: 16, WarpN: 32, Stages: 2},
}

// copiesChannels tells whether a convolution's images come by asynchronous copies of eight
// channels, whatever its window.
func (s scheduler) copiesChannels(region *ir.Block, c *ir.Op) bool {
	return channelsLast(region, c.Operands[0]) && s.entry.Type(c.Operands[1]).Shape[1].DivisibleBy(8, s.program.Divisor)
}

// copiesPatches tells whether a convolution's images come by asynchronous copies of eight
// neighbours along the innermost axis: patches side by side, as vision transformers take them.
func (s scheduler) copiesPatches(region *ir.Block, c *ir.Op) bool {
	a := c.Attrs.(*ir.ConvolutionAttrs)
	last := len(a.Strides) - 1
	x, w := s.entry.Type(c.Operands[0]).Shape, s.entry.Type(c.Operands[1]).Shape
	if adjacentAxis(region, c.Operands[0], len(x)) != len(x)-1 || adjacentAxis(region, c.Operands[1], len(w)) != len(w)-1 {
		return false
	}
	return a.Strides[last]%8 == 0 && a.Low[last].Is(0) && a.LhsDilation[last] == 1 && a.RhsDilation[last] == 1 && !a.ReverseKernel &&
		x[len(x)-1].DivisibleBy(8, s.program.Divisor) && w[len(w)-1].DivisibleBy(8, s.program.Divisor)
}

// pointwise tells whether a convolution reads each element of its input once.
func (s scheduler) pointwise(op *ir.Op) bool {
	a := op.Attrs.(*ir.ConvolutionAttrs)
	for i, d := range s.entry.Type(op.Operands[1]).Shape[2:] {
		if !d.Is(1) || a.Strides[i] != 1 || !a.Low[i].Is(0) || a.LhsDilation[i] != 1 {
			return false
		}
	}
	return true
}

// gathers tells whether a convolution's images are read element by element.
func (s scheduler) gathers(region *ir.Block, c *ir.Op) bool {
	return !s.pointwise(c) && !s.copiesChannels(region, c) && !s.copiesPatches(region, c)
}

// tensorCores takes the tile with the shortest time for contractions of half types and of TF32,
// which all targets multiply on tensor cores.
func (s scheduler) tensorCores(op *ir.Op, m, n, batch int64) (ir.Schedule, bool) {
	tiles, tf32 := mmaTiles, false
	for _, c := range op.Regions[0].Ops {
		if c.Kind != ir.OpDotGeneral && c.Kind != ir.OpConvolution {
			continue
		}
		t := s.entry.Type(c.Operands[0]).DType
		tf32 = roundsToTF32(c)
		if t != ir.F16 && t != ir.BF16 && !tf32 || s.entry.Type(c.Results[0]).DType == ir.F64 {
			return ir.Schedule{}, false
		}
		if c.Kind == ir.OpConvolution && s.gathers(op.Regions[0], c) {
			tiles = windowTiles
		}
	}
	best, bestCost := tiles[0], int64(-1)
	for _, t := range tiles {
		blocks := sizing.Ceil(m, int64(t.TileM)) * sizing.Ceil(n, int64(t.TileN)) * batch
		// Each multiprocessor runs two blocks at a time. A wave takes as long as its products,
		// or as its loads, which cost about as much as a 128 x 128 tile can hide.
		waves := sizing.Ceil(blocks, 2*sizing.Multiprocessors)
		cost := waves * max(int64(t.TileM*t.TileN), 64*int64(t.TileM+t.TileN)*3/4)
		if bestCost < 0 || cost < bestCost {
			best, bestCost = t, cost
		}
	}
	if tf32 {
		best.TileK /= 2
	}
	return best, true
}

// roundsToTF32 tells whether a contraction's operands are rounded for tensor cores.
func roundsToTF32(op *ir.Op) bool {
	switch a := op.Attrs.(type) {
	case *ir.DotAttrs:
		return a.Precision == ir.TF32
	case *ir.ConvolutionAttrs:
		return a.Precision == ir.TF32
	}
	return false
}
