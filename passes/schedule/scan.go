package schedule

import (
	"weft/ir"
	"weft/passes/internal/sizing"
)

// scan schedules a cumulative operation that fills a map group. Where the axis is not the last and there are many
// rows, each thread has a row, beside that of its neighbour in memory; else threads share a row.
func (s scheduler) scan(op *ir.Op) ir.Schedule {
	t := s.entry.Type(op.Operands[0])
	axis := op.Attrs.(*ir.CumulativeAttrs).Axis
	length := s.estimate(t.Shape[axis])
	rows := s.estimate(t.Numel()) / max(1, length)
	last := ir.Product(t.Shape[axis+1:]).Is(1)
	if length <= 4 || !last && rows >= enough/16 {
		return ir.Schedule{Threads: 128, Vector: 1, Rows: 128}
	}
	v := int64(1)
	if last {
		v = s.vector(t.Shape[:axis+1], t.DType)
	}
	most := int64(1024)
	if rows >= 8*sizing.Multiprocessors {
		most = 128 // several blocks a multiprocessor hide each other's barriers
	}
	if t.DType.Bits() == 64 {
		most = min(most, 512) // numbers of two registers do not fit 1024 threads
	}
	perRow := int64(1)
	for perRow < most && perRow*v < length {
		perRow *= 2
	}
	threads := max(perRow, 128)
	return ir.Schedule{Threads: int(threads), Vector: int(v), Rows: int(threads / perRow)}
}
