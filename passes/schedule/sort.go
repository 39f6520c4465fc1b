package schedule

import "weft/ir"

// A block sorts up to maxTile elements of a row in shared memory. Shorter rows than fewKeys are
// sorted by threads that count, one for each element.
const (
	maxTile = 2048
	minTile = 128
	fewKeys = 64
)

// sort schedules a sort that fills a map group.
func (s scheduler) sort(op *ir.Op) ir.Schedule {
	a := op.Attrs.(*ir.SortAttrs)
	most := s.entry.Type(op.Operands[0]).Shape[a.Axis].Bounds(s.program.Range).Max
	if a.Within > 0 {
		most = min(most, a.Within)
	}
	if a.Sorted > 0 || most <= fewKeys || most > maxTile || a.Within > 0 && a.Within != maxTile {
		return ir.Schedule{Threads: 128, Vector: 1}
	}
	tile := minTile
	for int64(tile) < most {
		tile *= 2
	}
	if a.Within > 0 {
		tile = maxTile
	}
	return ir.Schedule{Threads: tile / 2, TileN: tile}
}
