package fx

import (
	"slices"

	"weft/ir"
)

// aliasView sees all of its parent.
type aliasView struct{}

func (aliasView) apply(_ *ir.Builder, parent ir.Value) ir.Value        { return parent }
func (aliasView) scatter(_ *ir.Builder, _, elements ir.Value) ir.Value { return elements }

// reshapeView keeps the row-major order.
type reshapeView struct{ dims []ir.Dim }

func (v reshapeView) apply(b *ir.Builder, parent ir.Value) ir.Value { return b.Reshape(parent, v.dims) }

func (v reshapeView) scatter(b *ir.Builder, parent, elements ir.Value) ir.Value {
	return b.Reshape(elements, b.Shape(parent))
}

// permuteView permutes dims.
type permuteView struct{ permutation []int }

func (v permuteView) apply(b *ir.Builder, parent ir.Value) ir.Value {
	return b.Transpose(parent, v.permutation)
}

func (v permuteView) scatter(b *ir.Builder, _, elements ir.Value) ir.Value {
	inverse := make([]int, len(v.permutation))
	for i, p := range v.permutation {
		inverse[p] = i
	}
	return b.Transpose(elements, inverse)
}

// sliceView takes elements start, start+stride, ... below limit along an axis.
type sliceView struct {
	axis         int
	start, limit ir.Dim
	stride       int64
}

func (v sliceView) apply(b *ir.Builder, parent ir.Value) ir.Value {
	return b.SliceAxis(parent, v.axis, v.start, v.limit, v.stride)
}

func (v sliceView) scatter(b *ir.Builder, parent, elements ir.Value) ir.Value {
	shape := b.Shape(parent)
	if v.start.Is(0) && v.limit.Equal(shape[v.axis]) && v.stride == 1 {
		return elements
	}
	if v.stride == 1 {
		zero := b.Constant(ir.ScalarInt(ir.I64, 0))
		operands := []ir.Value{parent, elements}
		for i := range shape {
			at := zero
			if i == v.axis {
				at = b.Dim(v.start)
			}
			operands = append(operands, at)
		}
		return b.Op(ir.OpDynamicUpdateSlice, nil, nil, operands...)[0]
	}
	return b.Select(v.spread(b, b.Full(b.Type(elements).With(ir.Bool), 1), shape), v.spread(b, elements, shape), parent)
}

// movingView takes size elements along an axis from a place that is known when the model runs.
type movingView struct {
	axis  int
	start ir.Value // i64
	size  ir.Dim
}

func (v movingView) places(b *ir.Builder, rank int) []ir.Value {
	at := slices.Repeat([]ir.Value{b.Constant(ir.ScalarInt(ir.I64, 0))}, rank)
	at[v.axis] = v.start
	return at
}

func (v movingView) apply(b *ir.Builder, parent ir.Value) ir.Value {
	sizes := slices.Clone(b.Shape(parent))
	sizes[v.axis] = v.size
	operands := append([]ir.Value{parent}, v.places(b, len(sizes))...)
	return b.Op(ir.OpDynamicSlice, &ir.DynamicSliceAttrs{Sizes: sizes}, nil, operands...)[0]
}

func (v movingView) scatter(b *ir.Builder, parent, elements ir.Value) ir.Value {
	operands := append([]ir.Value{parent, elements}, v.places(b, b.Rank(parent))...)
	return b.Op(ir.OpDynamicUpdateSlice, nil, nil, operands...)[0]
}

// spread puts elements at their places in zeros of the parent's shape.
func (v sliceView) spread(b *ir.Builder, elements ir.Value, shape []ir.Dim) ir.Value {
	n := b.Shape(elements)[v.axis]
	low, high, interior := make([]ir.Dim, len(shape)), make([]ir.Dim, len(shape)), make([]int64, len(shape))
	low[v.axis], interior[v.axis] = v.start, v.stride-1
	reach := n.AddConst(-1).Max(ir.Const(0)).MulConst(v.stride - 1).Add(n)
	high[v.axis] = shape[v.axis].Sub(v.start).Sub(reach)
	return b.Pad(elements, b.Scalar(b.DType(elements), 0), low, high, interior)
}

// expandView repeats along dims of size 1 and new leading dims.
type expandView struct{ dims []ir.Dim }

func (v expandView) apply(b *ir.Builder, parent ir.Value) ir.Value {
	return b.BroadcastTo(parent, v.dims)
}

func (v expandView) scatter(b *ir.Builder, parent, elements ir.Value) ir.Value {
	if ir.Product(v.dims).Equal(ir.Product(b.Shape(parent))) {
		return b.Reshape(elements, b.Shape(parent))
	}
	return ir.NoValue
}

// diagonalView takes elements (i, i+offset) of two axes; the diagonal becomes the last dim.
type diagonalView struct {
	offset     int64
	row, col   int
	start, len ir.Dim // row of the first element (columns start at start+offset), number of elements
}

// toLast moves the two axes to the end.
func (v diagonalView) toLast(rank int) []int {
	var p []int
	for i := range rank {
		if i != v.row && i != v.col {
			p = append(p, i)
		}
	}
	return append(p, v.row, v.col)
}

func (v diagonalView) mask(b *ir.Builder, shape []ir.Dim) ir.Value {
	rank := len(shape)
	t := b.Iota(ir.I64, shape, rank-2)
	shifted := b.Binary(ir.OpAdd, t, b.FullLike(t, float64(v.offset)))
	return b.Compare(ir.EQ, shifted, b.Iota(ir.I64, shape, rank-1))
}

func (v diagonalView) apply(b *ir.Builder, parent ir.Value) ir.Value {
	x := b.Transpose(parent, v.toLast(b.Rank(parent)))
	rank := b.Rank(x)
	// Index pairs (start+k, start+offset+k).
	k := b.Iota(ir.I64, []ir.Dim{v.len, ir.Const(2)}, 0)
	start := b.Broadcast(b.Dim(v.start), b.Shape(k), nil)
	columns := b.Iota(ir.I64, b.Shape(k), 1)
	shift := b.Binary(ir.OpMultiply, columns, b.FullLike(columns, float64(v.offset)))
	index := b.Binary(ir.OpAdd, b.Binary(ir.OpAdd, k, start), shift)
	a := &ir.GatherAttrs{CollapsedSliceDims: []int{rank - 2, rank - 1}, StartIndexMap: []int{rank - 2, rank - 1}, IndexVectorDim: 1}
	for i, d := range b.Shape(x) {
		if i < rank-2 {
			a.OffsetDims = append(a.OffsetDims, i)
			a.SliceSizes = append(a.SliceSizes, d)
		} else {
			a.SliceSizes = append(a.SliceSizes, ir.Const(1))
		}
	}
	return b.Gather(x, index, a)
}

func (v diagonalView) scatter(b *ir.Builder, parent, elements ir.Value) ir.Value {
	permutation := v.toLast(b.Rank(parent))
	x := b.Transpose(parent, permutation)
	shape := b.Shape(x)
	rank := len(shape)
	low, high := make([]ir.Dim, rank-1), make([]ir.Dim, rank-1)
	low[rank-2] = v.start
	high[rank-2] = shape[rank-2].Sub(v.start).Sub(v.len)
	rows := b.Pad(elements, b.Scalar(b.DType(elements), 0), low, high, nil)
	axes := make([]int, rank-1)
	for i := range axes {
		axes[i] = i
	}
	full := b.Broadcast(rows, shape, axes)
	return permuteView{permutation}.scatter(b, parent, b.Select(v.mask(b, shape), full, x))
}

// stridedView sees the elements of a contiguous parent at offset + sum(index * stride).
type stridedView struct {
	dims    []ir.Dim
	strides []int64
	offset  int64
	unique  bool // no two elements share memory
}

func (v stridedView) indices(b *ir.Builder) ir.Value {
	t := ir.TensorOf(ir.I64, v.dims...)
	index := b.Full(t, float64(v.offset))
	for i, s := range v.strides {
		n := b.Iota(ir.I64, v.dims, i)
		index = b.Binary(ir.OpAdd, index, b.Binary(ir.OpMultiply, n, b.FullLike(n, float64(s))))
	}
	return index
}

func (v stridedView) apply(b *ir.Builder, parent ir.Value) ir.Value {
	flat := b.Reshape(parent, []ir.Dim{ir.Product(b.Shape(parent))})
	return b.Take(flat, v.indices(b), 0)
}

func (v stridedView) scatter(b *ir.Builder, parent, elements ir.Value) ir.Value {
	if !v.unique {
		return ir.NoValue
	}
	shape := b.Shape(parent)
	flat := b.Reshape(parent, []ir.Dim{ir.Product(shape)})
	index := b.Reshape(v.indices(b), []ir.Dim{ir.Product(v.dims)})
	updates := b.Reshape(elements, []ir.Dim{ir.Product(v.dims)})
	out := b.Scatter(flat, index, updates, &ir.ScatterAttrs{Combine: ir.Assign, InsertedWindowDims: []int{0},
		ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1, UniqueIndices: true})
	return b.Reshape(out, shape)
}

// bitcastView sees the bits as another type of the same width.
type bitcastView struct{ to ir.DType }

func (v bitcastView) apply(b *ir.Builder, parent ir.Value) ir.Value {
	return b.Op(ir.OpBitcastConvert, &ir.BitcastAttrs{To: v.to}, nil, parent)[0]
}

func (v bitcastView) scatter(b *ir.Builder, parent, elements ir.Value) ir.Value {
	return bitcastView{b.DType(parent)}.apply(b, elements)
}

// canView tells whether a tensor of those sizes and strides can be seen in another shape
// without a copy (torch's computeStride). Unknown strides count as contiguous.
func canView(sizes, strides, to []ir.Dim) bool {
	if strides == nil || ir.Product(sizes).Is(0) {
		return true
	}
	// Merge neighbours that are contiguous with respect to each other, innermost first.
	type run struct{ stride, size ir.Dim }
	var runs []run
	for i := len(sizes) - 1; i >= 0; i-- {
		if sizes[i].Is(1) {
			continue
		}
		if n := len(runs); n > 0 && strides[i].Equal(runs[n-1].stride.Mul(runs[n-1].size)) {
			runs[n-1].size = runs[n-1].size.Mul(sizes[i])
		} else {
			runs = append(runs, run{strides[i], sizes[i]})
		}
	}
	// Every run must be a product of consecutive new dims.
	product, at := ir.Const(1), 0
	for _, d := range slices.Backward(to) {
		product = product.Mul(d)
		for at < len(runs) && product.Equal(runs[at].size) {
			product, at = ir.Const(1), at+1
		}
	}
	return at == len(runs) && product.Is(1)
}
