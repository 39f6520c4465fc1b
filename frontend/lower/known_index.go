package lower

import (
	"slices"

	"weft/ir"
)

// indexed evaluates operations that move elements.
func (k *Known) indexed(op *ir.Op, operands [][]Number, shape []int64, count int64) []Number {
	from, _, _ := k.size(op.Operands[0])
	// pick makes the result from the position in the first operand of each element.
	pick := func(position func(at []int64) []int64) []Number {
		out := make([]Number, count)
		for i := range out {
			out[i] = operands[0][ravel(position(unravel(int64(i), shape)), from)]
		}
		return out
	}
	at := make([]int64, len(from))
	switch a := op.Attrs.(type) {
	case *ir.ReshapeAttrs:
		return operands[0]
	case *ir.BroadcastAttrs:
		return pick(func(to []int64) []int64 {
			for i, axis := range a.Axes {
				at[i] = min(to[axis], from[i]-1)
			}
			return at
		})
	case *ir.TransposeAttrs:
		return pick(func(to []int64) []int64 {
			for i, p := range a.Permutation {
				at[p] = to[i]
			}
			return at
		})
	case *ir.SliceAttrs:
		start, ok := constants(a.Start)
		if !ok {
			return nil
		}
		return pick(func(to []int64) []int64 {
			for i := range at {
				at[i] = start[i] + to[i]*a.Stride[i]
			}
			return at
		})
	case *ir.AxesAttrs: // reverse
		return pick(func(to []int64) []int64 {
			copy(at, to)
			for _, axis := range a.Axes {
				at[axis] = from[axis] - 1 - to[axis]
			}
			return at
		})
	case *ir.AxisAttrs:
		return k.concatenated(op, a.Axis, operands, shape, count)
	case *ir.PadAttrs:
		return padded(a, operands, from, shape, count)
	case *ir.GatherAttrs:
		return k.gathered(op, a, operands, from, shape, count)
	}
	return nil
}

func constants(dims []ir.Dim) ([]int64, bool) {
	out := make([]int64, len(dims))
	for i, d := range dims {
		c, ok := d.IsConst()
		if !ok {
			return nil, false
		}
		out[i] = c
	}
	return out, true
}

func (k *Known) concatenated(op *ir.Op, axis int, operands [][]Number, shape []int64, count int64) []Number {
	out := make([]Number, count)
	for i := range out {
		at := unravel(int64(i), shape)
		for j, v := range op.Operands {
			part, _, _ := k.size(v)
			if at[axis] < part[axis] {
				out[i] = operands[j][ravel(at, part)]
				break
			}
			at[axis] -= part[axis]
		}
	}
	return out
}

func padded(a *ir.PadAttrs, operands [][]Number, from, shape []int64, count int64) []Number {
	low, ok := constants(a.Low)
	if !ok {
		return nil
	}
	out := make([]Number, count)
	for i := range out {
		at := unravel(int64(i), shape)
		inside := true
		for d := range at {
			at[d] -= low[d]
			step := a.Interior[d] + 1
			inside = inside && at[d] >= 0 && at[d]%step == 0 && at[d]/step < from[d]
			at[d] /= step
		}
		out[i] = operands[1][0]
		if inside {
			out[i] = operands[0][ravel(at, from)]
		}
	}
	return out
}

func (k *Known) gathered(op *ir.Op, a *ir.GatherAttrs, operands [][]Number, from, shape []int64, count int64) []Number {
	indexShape, _, _ := k.size(op.Operands[1])
	sizes, ok := constants(a.SliceSizes)
	if !ok {
		return nil
	}
	gone := slices.Concat(a.CollapsedSliceDims, a.OperandBatchingDims)
	out := make([]Number, count)
	for i := range out {
		to := unravel(int64(i), shape)
		batch, offset := ir.SplitGather(a, to)
		at := make([]int64, len(from))
		for j, d := range a.StartIndexMap {
			where := ir.GatherIndexAt(a, batch, len(indexShape), int64(j))
			start, isConst := operands[1][ravel(where, indexShape)].Dim.IsConst()
			if !isConst {
				return nil
			}
			at[d] = min(max(start, 0), from[d]-sizes[d])
		}
		for j, d := range a.OperandBatchingDims {
			position := a.StartIndicesBatchingDims[j]
			if position > a.IndexVectorDim {
				position--
			}
			at[d] += batch[position]
		}
		for d := range from {
			if !slices.Contains(gone, d) {
				at[d] += offset[0]
				offset = offset[1:]
			}
		}
		position := ravel(at, from)
		if position < 0 || position >= int64(len(operands[0])) {
			return nil // the operand is empty
		}
		out[i] = operands[0][position]
	}
	return out
}

func (k *Known) reduce(op *ir.Op, dtype ir.DType, operand []Number, shape []int64, count int64) []Number {
	a := op.Attrs.(*ir.ReduceAttrs)
	kind, ok := map[ir.Combine]ir.Kind{ir.Sum: ir.OpAdd, ir.Mul: ir.OpMultiply, ir.Max: ir.OpMaximum, ir.Min: ir.OpMinimum,
		ir.And: ir.OpAnd, ir.Or: ir.OpOr, ir.Xor: ir.OpXor}[a.Combine]
	from, n, _ := k.size(op.Operands[0])
	if !ok || dtype.IsFloat() || n == 0 {
		return nil
	}
	if dtype == ir.Bool && (kind == ir.OpMaximum || kind == ir.OpMinimum) {
		return nil
	}
	out := make([]Number, count)
	filled := make([]bool, count)
	for i, x := range operand {
		var to []int64
		for d, v := range unravel(int64(i), from) {
			if !slices.Contains(a.Axes, d) {
				to = append(to, v)
			}
		}
		j := ravel(to, shape)
		if !filled[j] {
			out[j], filled[j] = x, true
			continue
		}
		if len(out[j].Dim.String()) > maxDimText/4 {
			return nil
		}
		if out[j], ok = k.scalarBinary(kind, dtype, out[j], x); !ok {
			return nil
		}
	}
	return out
}
