package eval

import (
	"math"
	"slices"

	"weft/ir"
)

// scatter combines updates into a copy of its first operand, in row-major order of the updates.
func scatter(c *call) ([]*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.ScatterAttrs)
	if a.Combine == ir.Assign {
		return moving(func(c *call) (*ir.Tensor, error) {
			out := c.result(0)
			copy(out.Data, c.in[0].Data)
			size := int64(out.DType.Size())
			update := c.in[2].Data
			err := c.visitUpdates(a, func(to, from int64) {
				copy(out.Data[to*size:(to+1)*size], update[from*size:])
			})
			return out, err
		}, 0, 2)(c)
	}
	out := c.result(0)
	x, update := c.in[0], c.in[2]
	var err error
	switch t := out.DType; {
	case t.IsFloat():
		f := combineFloats[a.Combine]
		acc, u := allFloats(x), allFloats(update)
		if err = c.visitUpdates(a, func(to, from int64) { acc[to] = f(acc[to], u[from]) }); err == nil {
			writeFloats(out, 0, acc)
		}
	case t.IsComplex():
		f := combineComplex[a.Combine]
		acc, u := allComplex(x), allComplex(update)
		if err = c.visitUpdates(a, func(to, from int64) { acc[to] = f(acc[to], u[from]) }); err == nil {
			writeComplex(out, 0, acc)
		}
	default:
		f := combineInts(a.Combine, t)
		acc, u := allInts(x), allInts(update)
		if err = c.visitUpdates(a, func(to, from int64) { acc[to] = f(acc[to], u[from]) }); err == nil {
			putInts(out, 0, acc)
		}
	}
	return []*ir.Tensor{out}, err
}

// visitUpdates calls visit with the offset in the operand and that of the update, for each
// update that lands inside, in row-major order of the updates.
func (c *call) visitUpdates(a *ir.ScatterAttrs, visit func(to, from int64)) error {
	x, update := c.in[0], c.in[2]
	rank := len(update.Shape)
	ix := newIndexVectors(c.in[1], a.IndexVectorDim, a.ScatterIndicesBatchingDims)
	var scatterDims []int // of the updates, those that run over index vectors
	for d := range rank {
		if !slices.Contains(a.UpdateWindowDims, d) {
			scatterDims = append(scatterDims, d)
		}
	}
	for i, d := range scatterDims {
		if update.Shape[d] != ix.shape[i] {
			return c.fail("updates %s do not fit indices %s", update.Type(), c.in[1].Type())
		}
	}
	// spread gives strides over the updates from strides over the index vectors.
	spread := func(strides []int64) []int64 {
		s := make([]int64, rank)
		for i, d := range scatterDims {
			s[d] = strides[i]
		}
		return s
	}
	run := [][]int64{spread(ix.strides)}
	for _, b := range ix.batching {
		run = append(run, spread(b))
	}
	windows := len(run)
	for _, d := range a.UpdateWindowDims {
		unit := make([]int64, rank)
		unit[d] = 1
		run = append(run, unit)
	}
	dims := operandDims(a, len(x.Shape), windows)
	strides := rowMajor(x.Shape)
	from := int64(-1)
	odometer(update.Shape, func(at []int64) {
		from++
		to := int64(0)
		for d, n := range x.Shape {
			i := dims[d].index(at, ix)
			if i < 0 || i >= n {
				return
			}
			to += i * strides[d]
		}
		visit(to, from)
	}, run...)
	return nil
}

// operandDim says what adds up to the index along a dim of the operand: numbers of the index
// vector and running offsets of the updates; -1 for none.
type operandDim struct{ number, offset int }

// operandDims has offsets counted as visitUpdates runs them: the index vector's place, then
// batching dims, then window dims.
func operandDims(a *ir.ScatterAttrs, rank, windows int) []operandDim {
	dims := make([]operandDim, rank)
	for d := range dims {
		dims[d] = operandDim{slices.Index(a.ScatterDimsToOperandDims, d), -1}
		if k := slices.Index(a.InputBatchingDims, d); k >= 0 {
			dims[d].offset = 1 + k
		} else if !slices.Contains(a.InsertedWindowDims, d) {
			dims[d].offset = windows
			windows++
		}
	}
	return dims
}

func (o operandDim) index(at []int64, ix indexVectors) int64 {
	i := int64(0)
	if o.offset >= 0 {
		i = at[o.offset]
	}
	if o.number < 0 {
		return i
	}
	start := ix.values[at[0]+int64(o.number)*ix.step]
	if start > math.MaxInt64-i {
		return math.MaxInt64 // outside anyway
	}
	return start + i
}
