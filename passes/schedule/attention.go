package schedule

import (
	"slices"

	"weft/ir"
	"weft/passes/internal/sizing"
)

// tensorCoreAttention has 64 queries a block, 16 a warp, and tiles of 64 keys. By warpgroups too: three blocks of one on a
// multiprocessor, which wait for nothing of each other, are faster than blocks of two or three.
var tensorCoreAttention = ir.Schedule{Threads: 128, TileM: 64, TileN: 64, Stages: 2}

// warpgroupAttention runs attention on warpgroups where tensor cores run it elsewhere and heads are rows of 128 bytes. Beside the
// queries and values of wider heads a thread has no registers for a mask.
func (s scheduler) warpgroupAttention(op *ir.Op, elsewhere ir.Schedule) ir.Schedule {
	anchor, depth, width := s.heads(op)
	masked := len(anchor.Operands) > 3
	if elsewhere.Stages > 0 && depth%64 == 0 && width%64 == 0 && (!masked || depth+width <= 128) {
		elsewhere.Bulk = ir.CopiesInBulk(s.program, s.entry, op.Regions[0])
		return elsewhere
	}
	return ir.Schedule{}
}

// heads finds the attention of a group, and the sizes of a head of its keys and values, 0 where they are not fixed.
func (s scheduler) heads(op *ir.Op) (anchor *ir.Op, depth, width int64) {
	i := slices.IndexFunc(op.Regions[0].Ops, func(inner *ir.Op) bool { return inner.Kind == ir.OpAttention })
	anchor = op.Regions[0].Ops[i]
	depth, _ = s.entry.Type(anchor.Operands[0]).Shape[3].IsConst()
	width, _ = s.entry.Type(anchor.Operands[2]).Shape[3].IsConst()
	return anchor, depth, width
}

// sharers is the number of threads that share a query of attention on the CUDA cores.
const sharers = 16

// attentionShared is the most shared memory that attention on the CUDA cores may use, so that
// every target has it and large ones run two blocks at a time.
const attentionShared = 96 << 10

// attention runs on tensor cores where they divide the heads of half types, else on the CUDA
// cores with the tile of the shortest time.
func (s scheduler) attention(op *ir.Op) ir.Schedule {
	anchor, depth, width := s.heads(op)
	q := s.entry.Type(anchor.Operands[0])
	if q.DType.Size() == 2 && depth%16 == 0 && width%16 == 0 && max(depth, width) <= 128 {
		return tensorCoreAttention
	}
	size := int64(max(4, q.DType.Size()))
	registers := int64(80)
	if len(anchor.Operands) > 3 {
		registers = 48 // each score has an element of the mask
	}
	best, bestCost := ir.Schedule{}, int64(-1)
	for rows := int64(8); rows >= 1; rows /= 2 {
		for keys := int64(64); keys >= sharers; keys /= 2 {
			t := ir.Schedule{Threads: 128, TileM: int(rows * 128 / sharers), TileN: int(keys), ThreadM: int(rows)}
			if !attentionFits(t, size, depth, width, registers) {
				continue
			}
			blocks := sizing.Ceil(s.estimate(q.Shape[2]), int64(t.TileM)) * s.estimate(q.Shape[0]) * s.estimate(q.Shape[1])
			// Each tile of 64 keys takes its multiplications, the loads that feed them, and two
			// barriers for each of the kernel's own tiles.
			work := 64 * (4*rows + rows*sharers/(keys/4) + 4 + 16*64/keys)
			if cost := sizing.Ceil(blocks, 3*sizing.Multiprocessors) * work; bestCost < 0 || cost < bestCost {
				best, bestCost = t, cost
			}
		}
	}
	return best
}

// attentionFits tells whether a tile's shared memory and a thread's registers suffice, for
// elements of a size, keys of depth and values of width elements.
func attentionFits(t ir.Schedule, size, depth, width, most int64) bool {
	m, n, rows := int64(t.TileM), int64(t.TileN), int64(t.ThreadM)
	chunk := 16 / size
	padded := sizing.Ceil(width, sharers*chunk) * sharers * chunk
	shared := size * ((m+n)*(depth+2*chunk) + n*padded + m*(n+sharers))
	registers := size / 4 * (rows*(padded/sharers+n/sharers) + 2*chunk)
	return shared <= attentionShared && registers <= most
}
