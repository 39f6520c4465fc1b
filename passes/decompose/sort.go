package decompose

import (
	"slices"

	"weft/ir"
)

// A sort along more elements than a block sorts in its shared memory becomes a chain of sorts:
// of runs of tile elements, then of runs of growing length that are sorted in parts already,
// which kernels merge. They carry the positions of elements, by which the other operands are
// picked in the end.
const (
	tile     = 2048
	growth   = 4
	longest  = 1 << 17 // of a run where the length is not known; the last kernel merges any number
	smallest = 1 << 31 // sizes below it have positions in 32 bits
)

func sortsLong(p *ir.Program, e *ir.Entry, op *ir.Op) bool {
	a := op.Attrs.(*ir.SortAttrs)
	return a.Within == 0 && a.Sorted == 0 && e.Type(op.Operands[0]).Shape[a.Axis].Bounds(p.Range).Max > tile
}

// longSort replaces the results of a long sort.
func longSort(b *ir.Builder, op *ir.Op) []ir.Value {
	a := op.Attrs.(*ir.SortAttrs)
	carried := op.Operands[:1]
	if len(op.Operands) > 1 {
		t := b.Type(op.Operands[0])
		carried = append(slices.Clone(carried), b.Iota(positions(b, t.Shape[a.Axis]), t.Shape, a.Axis))
	}
	out := sorted(b, *a, carried)
	results := out[:1:1]
	for _, v := range op.Operands[1:] {
		results = append(results, pick(b, v, out[1], a.Axis))
	}
	return results
}

// positions is the type of positions along a dim.
func positions(b *ir.Builder, d ir.Dim) ir.DType {
	if d.Bounds(b.Program.Range).Max < smallest {
		return ir.I32
	}
	return ir.I64
}

// sorted sorts values along an axis, in several steps where that is long.
func sorted(b *ir.Builder, a ir.SortAttrs, values []ir.Value) []ir.Value {
	length := b.Shape(values[0])[a.Axis]
	most := length.Bounds(b.Program.Range).Max
	if _, known := length.IsConst(); !known {
		most = min(most, longest)
	}
	if most <= tile {
		return b.Sort(&a, values...)
	}
	step := a
	for step.Within = tile; ; step.Within *= growth {
		if step.Within >= most && step.Sorted > 0 {
			step.Within = 0
			return b.Sort(&step, values...)
		}
		run := step
		values = b.Sort(&run, values...)
		step.Sorted = step.Within
	}
}

// pick takes elements of v along an axis: result[..., i, ...] is v[..., from[..., i, ...], ...].
func pick(b *ir.Builder, v, from ir.Value, axis int) ir.Value {
	rank := b.Rank(v)
	g := &ir.GatherAttrs{CollapsedSliceDims: []int{axis}, StartIndexMap: []int{axis}, IndexVectorDim: rank}
	for i := range rank {
		g.SliceSizes = append(g.SliceSizes, ir.Const(1))
		if i != axis {
			g.OperandBatchingDims = append(g.OperandBatchingDims, i)
			g.StartIndicesBatchingDims = append(g.StartIndicesBatchingDims, i)
		}
	}
	return b.Gather(v, from, g)
}
