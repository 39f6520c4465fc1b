package decompose

import (
	"slices"

	"weft/ir"
)

// A scatter whose updates may meet is sorted where each element of the result would have to look
// at too many updates: the updates are put into the order of their elements, those of one
// element in their own order, and then each is added to its neighbours. That takes n log n
// steps for n updates, needs no atomics and gives the sums in row-major order of the updates.
const (
	fewVectors = 8       // index vectors, at which an element can always look
	fewLooks   = 1 << 18 // elements times index vectors, which cost less than sorting
)

func sortsScatter(p *ir.Program, e *ir.Entry, op *ir.Op) bool {
	a := op.Attrs.(*ir.ScatterAttrs)
	if a.UniqueIndices || a.IndicesAreSorted || leading(e, op) == 0 {
		return false
	}
	most := func(d ir.Dim) int64 { return min(max(0, d.Bounds(p.Range).Max), 1<<31) }
	n := ir.Const(1)
	for d, size := range e.Type(op.Operands[1]).Shape {
		if d != a.IndexVectorDim {
			n = n.Mul(size)
		}
	}
	vectors := most(n)
	if vectors <= fewVectors && !donated(e, op.Operands[0]) {
		return false
	}
	return vectors*most(e.Type(op.Results[0]).Numel()) > fewLooks
}

// donated tells whether a value is a state that the entry replaces: sorted updates are then
// written where it lies, which saves a copy of all of it.
func donated(e *ir.Entry, v ir.Value) bool {
	k := slices.Index(e.Body.Params, v)
	return k >= 0 && e.Inputs[k].State != "" &&
		slices.ContainsFunc(e.Outputs, func(out ir.Output) bool { return out.State == e.Inputs[k].State })
}

// leading is the number of dims of the operand before those that every window covers whole.
func leading(e *ir.Entry, op *ir.Op) int {
	a := op.Attrs.(*ir.ScatterAttrs)
	operand, updates := e.Type(op.Operands[0]).Shape, e.Type(op.Operands[2]).Shape
	n := len(operand)
	for w := len(a.UpdateWindowDims) - 1; w >= 0 && n > 0; w-- {
		d := n - 1
		gone := slices.Contains(a.InsertedWindowDims, d) || slices.Contains(a.InputBatchingDims, d) || slices.Contains(a.ScatterDimsToOperandDims, d)
		if gone || !operand[d].Equal(updates[a.UpdateWindowDims[w]]) {
			break
		}
		n--
	}
	return n
}

// sortedScatter builds a scatter from one whose updates are in the order of their elements.
func sortedScatter(b *ir.Builder, op *ir.Op) ir.Value {
	a := op.Attrs.(*ir.ScatterAttrs)
	operand, updates := op.Operands[0], op.Operands[2]
	dims := b.Shape(operand)
	n := leading(b.Entry, op)
	whole := a.UpdateWindowDims[len(a.UpdateWindowDims)-(len(dims)-n):]
	var others []int // dims of the updates that choose the element of the leading dims
	for d := range b.Rank(updates) {
		if !slices.Contains(whole, d) {
			others = append(others, d)
		}
	}
	updates = b.Transpose(updates, slices.Concat(others, whole))
	count := ir.Product(b.Shape(updates)[:len(others)])
	updates = b.Reshape(updates, append([]ir.Dim{count}, dims[n:]...))

	key := b.Reshape(destination(b, op, n, others), []ir.Dim{count})
	out := sorted(b, ir.SortAttrs{}, []ir.Value{key, b.Iota(positions(b, count), []ir.Dim{count}, 0)})
	s := &ir.ScatterAttrs{Combine: a.Combine, IndexVectorDim: 1, IndicesAreSorted: true}
	for d := range n {
		s.InsertedWindowDims = append(s.InsertedWindowDims, d)
		s.ScatterDimsToOperandDims = append(s.ScatterDimsToOperandDims, d)
	}
	for d := n; d < len(dims); d++ {
		s.UpdateWindowDims = append(s.UpdateWindowDims, d-n+1)
	}
	return b.Scatter(operand, vectorsOf(b, out[0], dims[:n]), b.Take(updates, out[1], 0), s)
}

// destination gives each update's row-major index in the leading dims of the operand; their
// number where it lands outside.
func destination(b *ir.Builder, op *ir.Op, n int, others []int) ir.Value {
	a := op.Attrs.(*ir.ScatterAttrs)
	dims := b.Shape(op.Operands[0])
	shape := make([]ir.Dim, len(others))
	var batch []int // dims of shape that run over index vectors
	for i, d := range others {
		shape[i] = b.Shape(op.Operands[2])[d]
		if !slices.Contains(a.UpdateWindowDims, d) {
			batch = append(batch, i)
		}
	}
	window := 0
	full := func(d ir.Dim) ir.Value { return b.Broadcast(b.Dim(d), shape, nil) }
	linear, valid := full(ir.Const(0)), ir.Value(-1)
	for d := range n {
		at := full(ir.Const(0))
		if k := slices.Index(a.ScatterDimsToOperandDims, d); k >= 0 {
			start := b.Broadcast(component(b, op, k), shape, batch)
			at = b.Binary(ir.OpMinimum, b.Binary(ir.OpMaximum, start, full(dims[d].MulConst(-1))), full(dims[d]))
		}
		offset := -1
		if k := slices.Index(a.InputBatchingDims, d); k >= 0 {
			from := a.ScatterIndicesBatchingDims[k]
			if from > a.IndexVectorDim {
				from--
			}
			offset = batch[from]
		} else if !slices.Contains(a.InsertedWindowDims, d) {
			offset = slices.Index(others, a.UpdateWindowDims[window])
			window++
		}
		if offset >= 0 {
			at = b.Binary(ir.OpAdd, at, b.Iota(ir.I64, shape, offset))
		}
		inside := b.Binary(ir.OpAnd, b.Compare(ir.GE, at, full(ir.Const(0))), b.Compare(ir.LT, at, full(dims[d])))
		if valid >= 0 {
			inside = b.Binary(ir.OpAnd, valid, inside)
		}
		valid = inside
		linear = b.Binary(ir.OpAdd, b.Binary(ir.OpMultiply, linear, full(dims[d])), at)
	}
	return b.Convert(b.Select(valid, linear, full(ir.Product(dims[:n]))), positions(b, ir.Product(dims[:n])))
}

// component is number k of the index vectors, without their dim, as i64.
func component(b *ir.Builder, op *ir.Op, k int) ir.Value {
	a := op.Attrs.(*ir.ScatterAttrs)
	x := op.Operands[1]
	if a.IndexVectorDim < b.Rank(x) {
		shape := slices.Delete(slices.Clone(b.Shape(x)), a.IndexVectorDim, a.IndexVectorDim+1)
		x = b.Reshape(b.SliceAxis(x, a.IndexVectorDim, ir.Const(int64(k)), ir.Const(int64(k)+1), 1), shape)
	}
	return b.Convert(x, ir.I64)
}

// vectorsOf makes index vectors from row-major indices into dims.
func vectorsOf(b *ir.Builder, linear ir.Value, dims []ir.Dim) ir.Value {
	count := b.Shape(linear)[0]
	var parts []ir.Value
	for d := range dims {
		stride := ir.Product(dims[d+1:])
		part := linear
		if d < len(dims)-1 {
			by := b.Convert(b.Broadcast(b.Dim(stride), []ir.Dim{count}, nil), b.DType(linear))
			if n, ok := stride.IsConst(); ok {
				by = b.FullLike(linear, float64(n))
			}
			part = b.Binary(ir.OpDivide, linear, by)
			linear = b.Binary(ir.OpRemainder, linear, by)
		}
		parts = append(parts, b.Reshape(part, []ir.Dim{count, ir.Const(1)}))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return b.Concatenate(1, parts...)
}
