package schedule

import "weft/ir"

// transposing gives tiles to map groups that read memory along other axes than they write, where
// both are long enough for coalesced accesses.
func (s scheduler) transposing(op *ir.Op) (ir.Schedule, bool) {
	for _, inner := range op.Regions[0].Ops {
		switch inner.Kind.Info().Class {
		case ir.ClassReduction, ir.ClassContraction:
			return ir.Schedule{}, false // each lane loops on its own
		}
	}
	transposes := ir.Transposed(s.entry, op.Regions[0])
	if len(transposes) == 0 {
		return ir.Schedule{}, false
	}
	out := s.entry.Type(op.Results[0])
	shape := out.Shape
	t, _ := ir.TranspositionOf(shape, transposes[0].Attrs.(*ir.TransposeAttrs).Permutation)
	extent := func(axes []int) ir.Dim {
		n := ir.Const(1)
		for _, i := range axes {
			n = n.Mul(shape[i])
		}
		return n
	}
	rows, columns := extent(t.Rows), extent(t.Columns)
	const least = 16
	if s.estimate(rows) < least || s.estimate(columns) < least {
		return ir.Schedule{}, false
	}
	vector := int64(16 / max(2, out.DType.Size()))
	for vector > 1 && !columns.DivisibleBy(vector, s.program.Divisor) {
		vector /= 2
	}
	schedule := ir.Schedule{Threads: 256, Vector: int(vector), TileM: 64, TileN: int(min(64, max(32, 8*vector)))}
	if s.estimate(rows) <= 32 {
		schedule.TileM, schedule.Threads = 32, 128
	}
	return schedule, true
}
