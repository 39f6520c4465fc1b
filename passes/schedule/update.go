package schedule

import "weft/ir"

// update schedules a scatter group: threads go over the elements of the update.
func (s scheduler) update(op *ir.Op) ir.Schedule {
	update := op.Regions[0].Update()
	updates := s.entry.Type(update.Operands[len(update.Operands)-1])
	if update.Kind == ir.OpDynamicUpdateSlice {
		updates = s.entry.Type(update.Operands[1])
	}
	v := s.vector(updates.Shape, updates.DType)
	elements := s.estimate(updates.Numel())
	for v > 1 && elements/v < enough {
		v /= 2
	}
	return ir.Schedule{Threads: 128, Vector: int(v)}
}
