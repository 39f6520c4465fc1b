package schedule

import (
	"slices"

	"weft/ir"
)

// columnsPerThread is the number of columns that a thread of a rows group takes where it can: many, since what follows
// the columns, combining the threads' results, costs each thread the same; but as few as it takes to keep the GPU
// busy, and so few that what the thread keeps of each whole tensor fits in registers.
func (s scheduler) columnsPerThread(op *ir.Op, full []ir.Dim) int64 {
	elements := ir.Product(full)
	words := 0
	for _, v := range op.Regions[0].Params {
		if t := s.entry.Type(v); t.Numel().Equal(elements) {
			words += max(1, t.DType.Size()/4)
		}
	}
	n := int64(32)
	if words > 1 {
		n = 16
	}
	for n > 8 && s.estimate(elements)/n < enough {
		n /= 2
	}
	return n
}

func (s scheduler) rows(op *ir.Op) ir.Schedule {
	region := op.Regions[0]
	first := region.Ops[slices.IndexFunc(region.Ops, func(op *ir.Op) bool { return op.Kind == ir.OpReduce })]
	full := s.entry.Type(first.Operands[0])
	axes := first.Attrs.(*ir.ReduceAttrs).Axes
	columns, rows := int64(1), ir.Const(1)
	known := true
	for i, d := range full.Shape {
		if slices.Contains(axes, i) {
			_, ok := d.IsConst()
			known = known && ok
			columns *= s.estimate(d)
		} else {
			rows = rows.Mul(d)
		}
	}
	v := int64(1)
	if axes[0] == len(full.Shape)-len(axes) { // the columns are adjacent
		v = s.rowVector(op, full.Shape)
	}
	perThread := s.columnsPerThread(op, full.Shape)
	perRow := int64(1)
	for perRow < 1024 && perRow*perThread < columns || perRow < 32 && perRow*v < columns {
		perRow *= 2
	}
	if !known {
		perRow = max(perRow, 32)
	}
	threads := max(perRow, 128)
	if s.estimate(rows) <= 1 {
		threads = perRow
	}
	threads = max(threads, 32)
	return ir.Schedule{Threads: int(threads), Vector: int(v), Rows: int(threads / perRow)}
}

// rowVector is the number of adjacent elements that a thread of a rows group handles together: 16 bytes of the
// narrowest whole tensor that it reads or writes; wider ones take several accesses.
func (s scheduler) rowVector(op *ir.Op, full []ir.Dim) int64 {
	narrowest := ir.F64
	for _, v := range slices.Concat(op.Regions[0].Params, op.Results) {
		if t := s.entry.Type(v); t.DType.Size() < narrowest.Size() && t.Numel().Equal(ir.Product(full)) {
			narrowest = t.DType
		}
	}
	return s.vector(full, narrowest)
}

// sharesRows tells whether an operation is a reduction that leaves the innermost axis, so that neighbouring results
// read neighbouring elements.
func (s scheduler) sharesRows(op *ir.Op) bool {
	return op.Kind == ir.OpReduce && !slices.Contains(op.Attrs.(*ir.ReduceAttrs).Axes, len(s.entry.Type(op.Operands[0]).Shape)-1)
}
