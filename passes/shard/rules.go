package shard

import (
	"slices"

	"weft/ir"
)

// rule relates the dims of an operation's tensors: dims with the same factor are divided alike.
// A dim with the factor fixed must be whole on every rank. Factors that only operands have are
// combined: ranks that divide one each have a partial result.
type rule struct {
	operands [][]int // factor by operand and dim
	results  [][]int
	factors  int
	combine  ir.Combine // of factors that vanish
}

const fixed = -1

// new makes a factor.
func (r *rule) new() int {
	r.factors++
	return r.factors - 1
}

func (r *rule) dims(n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = r.new()
	}
	return dims
}

func allFixed(n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = fixed
	}
	return dims
}

// ruleOf is the rule of an operation; nil where its dims are not related one to one (reshape,
// slices of whole stretches, attention of grouped heads), and where every operand must be whole.
func ruleOf(e *ir.Entry, op *ir.Op) *rule {
	make := ruleTable[op.Kind]
	if make == nil && op.Kind.Info().Class == ir.ClassElementwise {
		make = elementwiseRule
	}
	if make == nil {
		return nil
	}
	return make(e, op)
}

// ruleTable has the rules of kinds that are not elementwise. Kinds without one, and not in
// moves, compute on whole tensors.
var ruleTable = map[ir.Kind]func(e *ir.Entry, op *ir.Op) *rule{
	ir.OpBroadcastInDim:     broadcastRule,
	ir.OpTranspose:          transposeRule,
	ir.OpReverse:            reverseRule,
	ir.OpDynamicSlice:       dynamicSliceRule,
	ir.OpDynamicUpdateSlice: updateSliceRule,
	ir.OpGather:             gatherRule,
	ir.OpScatter:            scatterRule,
	ir.OpReduce:             reduceRule,
	ir.OpArgReduce:          argReduceRule,
	ir.OpReduceWindow:       windowRule,
	ir.OpCumulative:         cumulativeRule,
	ir.OpSort:               sortRule,
	ir.OpDotGeneral:         dotRule,
	ir.OpConvolution:        convolutionRule,
	ir.OpIota:               iotaRule,
}

func shapeOf(e *ir.Entry, v ir.Value) []ir.Dim { return e.Type(v).Shape }

func elementwiseRule(e *ir.Entry, op *ir.Op) *rule {
	r := &rule{}
	dims := r.dims(e.Type(op.Results[0]).Rank())
	for range op.Operands {
		r.operands = append(r.operands, dims)
	}
	r.results = [][]int{dims}
	return r
}

func broadcastRule(e *ir.Entry, op *ir.Op) *rule {
	r := &rule{}
	in, out := shapeOf(e, op.Operands[0]), shapeOf(e, op.Results[0])
	result, operand := r.dims(len(out)), allFixed(len(in))
	for i, axis := range op.Attrs.(*ir.BroadcastAttrs).Axes {
		if in[i].Equal(out[axis]) {
			operand[i] = result[axis]
		}
	}
	r.operands, r.results = [][]int{operand}, [][]int{result}
	return r
}

func transposeRule(e *ir.Entry, op *ir.Op) *rule {
	r := &rule{}
	operand := r.dims(e.Type(op.Operands[0]).Rank())
	result := make([]int, len(operand))
	for i, from := range op.Attrs.(*ir.TransposeAttrs).Permutation {
		result[i] = operand[from]
	}
	r.operands, r.results = [][]int{operand}, [][]int{result}
	return r
}

// mapped is the rule of an operation with one result whose dim i is dim i of the operands, free
// where keep says so.
func mapped(e *ir.Entry, op *ir.Op, keep func(i int) bool) *rule {
	r := &rule{}
	dims := r.dims(e.Type(op.Results[0]).Rank())
	for i := range dims {
		if !keep(i) {
			dims[i] = fixed
		}
	}
	for _, v := range op.Operands {
		if e.Type(v).Rank() == len(dims) {
			r.operands = append(r.operands, dims)
		} else {
			r.operands = append(r.operands, allFixed(e.Type(v).Rank()))
		}
	}
	for range op.Results {
		r.results = append(r.results, dims)
	}
	return r
}

func reverseRule(e *ir.Entry, op *ir.Op) *rule {
	return mapped(e, op, func(i int) bool { return !slices.Contains(op.Attrs.(*ir.AxesAttrs).Axes, i) })
}

func dynamicSliceRule(e *ir.Entry, op *ir.Op) *rule {
	in, out := shapeOf(e, op.Operands[0]), shapeOf(e, op.Results[0])
	return mapped(e, op, func(i int) bool { return in[i].Equal(out[i]) })
}

func updateSliceRule(e *ir.Entry, op *ir.Op) *rule {
	in, update := shapeOf(e, op.Operands[0]), shapeOf(e, op.Operands[1])
	return mapped(e, op, func(i int) bool { return in[i].Equal(update[i]) })
}

func cumulativeRule(e *ir.Entry, op *ir.Op) *rule {
	return mapped(e, op, func(i int) bool { return i != op.Attrs.(*ir.CumulativeAttrs).Axis })
}

func sortRule(e *ir.Entry, op *ir.Op) *rule {
	return mapped(e, op, func(i int) bool { return i != op.Attrs.(*ir.SortAttrs).Axis })
}

func windowRule(e *ir.Entry, op *ir.Op) *rule {
	a := op.Attrs.(*ir.ReduceWindowAttrs)
	return mapped(e, op, func(i int) bool {
		return a.Window[i].Is(1) && a.Strides[i] == 1 && a.Low[i].Is(0) && a.High[i].Is(0)
	})
}

func iotaRule(e *ir.Entry, op *ir.Op) *rule {
	r := &rule{}
	r.results = [][]int{r.dims(e.Type(op.Results[0]).Rank())}
	return r
}

func reduceRule(e *ir.Entry, op *ir.Op) *rule {
	a := op.Attrs.(*ir.ReduceAttrs)
	r := &rule{combine: a.Combine}
	operand := r.dims(e.Type(op.Operands[0]).Rank())
	result := []int{}
	for i, f := range operand {
		if !slices.Contains(a.Axes, i) {
			result = append(result, f)
		}
	}
	r.operands, r.results = [][]int{operand}, [][]int{result}
	return r
}

func argReduceRule(e *ir.Entry, op *ir.Op) *rule {
	r := &rule{}
	operand := r.dims(e.Type(op.Operands[0]).Rank())
	axis := op.Attrs.(*ir.ArgReduceAttrs).Axis
	result := slices.Delete(slices.Clone(operand), axis, axis+1)
	operand[axis] = fixed
	r.operands, r.results = [][]int{operand}, [][]int{result}
	return r
}

func dotRule(e *ir.Entry, op *ir.Op) *rule {
	a := op.Attrs.(*ir.DotAttrs)
	r := &rule{}
	lhs, rhs := r.dims(e.Type(op.Operands[0]).Rank()), r.dims(e.Type(op.Operands[1]).Rank())
	var result []int
	for i, d := range a.LhsBatch {
		rhs[a.RhsBatch[i]] = lhs[d]
		result = append(result, lhs[d])
	}
	for i, d := range a.LhsContract {
		rhs[a.RhsContract[i]] = lhs[d]
	}
	free := func(dims, batch, contract []int) {
		for i, f := range dims {
			if !slices.Contains(batch, i) && !slices.Contains(contract, i) {
				result = append(result, f)
			}
		}
	}
	free(lhs, a.LhsBatch, a.LhsContract)
	free(rhs, a.RhsBatch, a.RhsContract)
	r.operands, r.results = [][]int{lhs, rhs}, [][]int{result}
	return r
}

// convolutionRule divides images by batch, by the channels that are summed over, or by those
// that are made; where each channel is convolved alone, by these.
func convolutionRule(e *ir.Entry, op *ir.Op) *rule {
	a := op.Attrs.(*ir.ConvolutionAttrs)
	r := &rule{}
	rank := e.Type(op.Operands[0]).Rank()
	input, kernel, result := allFixed(rank), allFixed(rank), allFixed(rank)
	input[0] = r.new()
	result[0] = input[0]
	channels, depth := shapeOf(e, op.Operands[0])[1], shapeOf(e, op.Operands[1])
	switch {
	case a.Groups == 1:
		input[1], result[1] = r.new(), r.new()
		kernel[1], kernel[0] = input[1], result[1]
	case channels.Is(a.Groups) && depth[0].Is(a.Groups):
		input[1] = r.new()
		kernel[0], result[1] = input[1], input[1]
	}
	r.operands, r.results = [][]int{input, kernel}, [][]int{result}
	return r
}

func gatherRule(e *ir.Entry, op *ir.Op) *rule {
	a := op.Attrs.(*ir.GatherAttrs)
	r := &rule{}
	shape := shapeOf(e, op.Operands[0])
	operand, indices := allFixed(len(shape)), r.dims(e.Type(op.Operands[1]).Rank())
	if a.IndexVectorDim < len(indices) {
		indices[a.IndexVectorDim] = fixed
	}
	result := allFixed(e.Type(op.Results[0]).Rank())
	batch := 0 // dims of the indices without the vector, in order
	for i := range result {
		if slices.Contains(a.OffsetDims, i) {
			continue
		}
		if batch == a.IndexVectorDim {
			batch++
		}
		result[i] = indices[batch]
		batch++
	}
	for i, d := range a.OperandBatchingDims {
		operand[d] = indices[a.StartIndicesBatchingDims[i]]
	}
	offset := 0
	for i := range operand {
		if slices.Contains(a.CollapsedSliceDims, i) || slices.Contains(a.OperandBatchingDims, i) {
			continue
		}
		if a.SliceSizes[i].Equal(shape[i]) && !slices.Contains(a.StartIndexMap, i) {
			operand[i] = r.new()
			result[a.OffsetDims[offset]] = operand[i]
		}
		offset++
	}
	r.operands, r.results = [][]int{operand, indices}, [][]int{result}
	return r
}

// scatterRule divides the windows that are updated whole. Where updates are added, they may be divided too:
// each rank adds its own.
func scatterRule(e *ir.Entry, op *ir.Op) *rule {
	a := op.Attrs.(*ir.ScatterAttrs)
	r := &rule{}
	shape, updated := shapeOf(e, op.Operands[0]), shapeOf(e, op.Operands[2])
	operand, indices, updates := allFixed(len(shape)), allFixed(e.Type(op.Operands[1]).Rank()), allFixed(len(updated))
	window := 0
	for i := range operand {
		if slices.Contains(a.InsertedWindowDims, i) || slices.Contains(a.InputBatchingDims, i) {
			continue
		}
		d := a.UpdateWindowDims[window]
		window++
		if updated[d].Equal(shape[i]) && !slices.Contains(a.ScatterDimsToOperandDims, i) {
			operand[i] = r.new()
			updates[d] = operand[i]
		}
	}
	at := 0 // dims of the indices without the vector, in order
	for i := range updates {
		if slices.Contains(a.UpdateWindowDims, i) {
			continue
		}
		if at == a.IndexVectorDim {
			at++
		}
		if a.Combine == ir.Sum && len(a.ScatterIndicesBatchingDims) == 0 {
			updates[i] = r.new()
			indices[at] = updates[i]
		}
		at++
	}
	r.operands, r.results = [][]int{operand, indices, updates}, [][]int{operand}
	return r
}
