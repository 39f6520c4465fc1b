package ir

import (
	"slices"

	"weft/ir/diag"
)

// Builder appends operations to a block, inferring their types. A rule that an operation
// breaks raises a *diag.Diagnostic (W2002) as a panic that Try turns into an error, so
// that lowering code reads as formulas.
type Builder struct {
	Program *Program
	Entry   *Entry
	Block   *Block
	Loc     string // given to new operations
}

// buildError carries a diagnostic through a panic from Builder to Try.
type buildError struct{ d *diag.Diagnostic }

// Fail ends the enclosing Try with d.
func Fail(d *diag.Diagnostic) { panic(buildError{d}) }

// Try runs f and returns the diagnostic that Fail or a Builder raised in it.
func Try(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case buildError:
			err = r.d
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// NewBuilder builds at the end of an entry's body.
func NewBuilder(p *Program, e *Entry) *Builder {
	return &Builder{Program: p, Entry: e, Block: &e.Body}
}

// Within builds in another block of the same entry, for regions.
func (b *Builder) Within(block *Block) *Builder {
	return &Builder{b.Program, b.Entry, block, b.Loc}
}

// Type is the type of a value.
func (b *Builder) Type(v Value) Type { return b.Entry.Types[v] }

// Shape is the shape of a value.
func (b *Builder) Shape(v Value) []Dim { return b.Entry.Types[v].Shape }

// Rank is the rank of a value.
func (b *Builder) Rank(v Value) int { return len(b.Entry.Types[v].Shape) }

// DType is the element type of a value.
func (b *Builder) DType(v Value) DType { return b.Entry.Types[v].DType }

// Op appends an operation with any number of results.
func (b *Builder) Op(kind Kind, attrs Attrs, regions []*Block, operands ...Value) []Value {
	op := &Op{Kind: kind, Operands: slices.Clone(operands), Attrs: attrs, Regions: regions, Loc: b.Loc}
	types, err := Infer(op, b.Entry)
	if err != nil {
		Fail(diag.Errorf("W2002", b.Loc, "%s: %v", kind, err).
			Suggest("the model asks for an operation that does not type-check; check its shapes and types, or export it again"))
	}
	for _, t := range types {
		op.Results = append(op.Results, b.Entry.NewValue(t))
	}
	b.Block.Ops = append(b.Block.Ops, op)
	return op.Results
}

// wantAxis raises the diagnostic for an axis that x does not have.
func (b *Builder) wantAxis(kind Kind, x Value, axis int) {
	if axis < 0 || axis >= b.Rank(x) {
		Fail(diag.Errorf("W2002", b.Loc, "%s: axis %d of %s", kind, axis, b.Type(x)).
			Suggest("the model asks for an operation that does not type-check; check its shapes and types, or export it again"))
	}
}

func (b *Builder) one(kind Kind, attrs Attrs, operands ...Value) Value {
	return b.Op(kind, attrs, nil, operands...)[0]
}

// Unary appends an elementwise operation of one operand and no attributes.
func (b *Builder) Unary(kind Kind, x Value) Value { return b.one(kind, nil, x) }

// Binary appends an elementwise operation of two operands of one type.
func (b *Builder) Binary(kind Kind, x, y Value) Value { return b.one(kind, nil, x, y) }

// Compare appends a comparison.
func (b *Builder) Compare(d Direction, x, y Value) Value {
	return b.one(OpCompare, &CompareAttrs{d}, x, y)
}

// Select chooses x where p is true, else y.
func (b *Builder) Select(p, x, y Value) Value { return b.one(OpSelect, nil, p, x, y) }

// Constant appends a literal.
func (b *Builder) Constant(t *Tensor) Value { return b.one(OpConstant, &ConstantAttrs{t}) }

// Scalar appends a scalar literal.
func (b *Builder) Scalar(dtype DType, v float64) Value {
	if !orderable(dtype) {
		Fail(diag.Errorf("W2002", b.Loc, "the operation is not defined for %s", dtype).
			Suggest("convert the operand to a real type first"))
	}
	return b.Constant(ScalarTensor(dtype, v))
}

// Full appends a tensor of one value.
func (b *Builder) Full(t Type, v float64) Value {
	return b.Broadcast(b.Scalar(t.DType, v), t.Shape, nil)
}

// FullLike appends a tensor of one value with the type of x.
func (b *Builder) FullLike(x Value, v float64) Value { return b.Full(b.Type(x), v) }

// Dim appends a scalar i64 of a dim expression.
func (b *Builder) Dim(d Dim) Value {
	if v, ok := d.IsConst(); ok {
		return b.Constant(ScalarInt(I64, v))
	}
	return b.one(OpDim, &DimAttrs{d})
}

// Iota counts along an axis.
func (b *Builder) Iota(dtype DType, dims []Dim, axis int) Value {
	return b.one(OpIota, &IotaAttrs{dtype, dims, axis})
}

// Convert changes the element type; nothing where it is that already.
func (b *Builder) Convert(x Value, to DType) Value {
	if b.DType(x) == to {
		return x
	}
	return b.one(OpConvert, &ConvertAttrs{To: to}, x)
}

// Reshape changes the shape; nothing where it is that already.
func (b *Builder) Reshape(x Value, dims []Dim) Value {
	if SameShape(b.Shape(x), dims) {
		return x
	}
	return b.one(OpReshape, &ReshapeAttrs{dims}, x)
}

// Broadcast is broadcast_in_dim; nothing where the shape is that already.
func (b *Builder) Broadcast(x Value, dims []Dim, axes []int) Value {
	if SameShape(b.Shape(x), dims) {
		return x
	}
	return b.one(OpBroadcastInDim, &BroadcastAttrs{dims, axes}, x)
}

// BroadcastTo broadcasts as NumPy does: dims align at the end.
func (b *Builder) BroadcastTo(x Value, dims []Dim) Value {
	axes := make([]int, b.Rank(x))
	for i := range axes {
		axes[i] = len(dims) - len(axes) + i
	}
	return b.Broadcast(x, dims, axes)
}

// Transpose permutes dims; nothing for the identity.
func (b *Builder) Transpose(x Value, permutation []int) Value {
	if slices.IsSorted(permutation) && len(permutation) == b.Rank(x) {
		return x
	}
	return b.one(OpTranspose, &TransposeAttrs{permutation}, x)
}

// Slice takes a strided part; nothing where it is the whole.
func (b *Builder) Slice(x Value, start, limit []Dim, stride []int64) Value {
	shape := b.Shape(x)
	whole := len(start) == len(shape) && len(limit) == len(shape) && len(stride) == len(shape)
	for i := 0; whole && i < len(shape); i++ {
		whole = start[i].Is(0) && limit[i].Equal(shape[i]) && stride[i] == 1
	}
	if whole {
		return x
	}
	return b.one(OpSlice, &SliceAttrs{start, limit, stride}, x)
}

// SliceAxis takes [start, limit) with a stride along one axis.
func (b *Builder) SliceAxis(x Value, axis int, start, limit Dim, stride int64) Value {
	b.wantAxis(OpSlice, x, axis)
	shape := b.Shape(x)
	starts, limits, strides := make([]Dim, len(shape)), slices.Clone(shape), make([]int64, len(shape))
	for i := range strides {
		strides[i] = 1
	}
	starts[axis], limits[axis], strides[axis] = start, limit, stride
	return b.Slice(x, starts, limits, strides)
}

// Pad adds edges of a scalar value; interior may be nil.
func (b *Builder) Pad(x, value Value, low, high []Dim, interior []int64) Value {
	if interior == nil {
		interior = make([]int64, b.Rank(x))
	}
	return b.one(OpPad, &PadAttrs{low, high, interior}, x, value)
}

// Concatenate joins along an axis.
func (b *Builder) Concatenate(axis int, xs ...Value) Value {
	if len(xs) == 1 {
		return xs[0]
	}
	return b.one(OpConcatenate, &AxisAttrs{axis}, xs...)
}

// Reverse reverses along axes.
func (b *Builder) Reverse(x Value, axes ...int) Value {
	return b.one(OpReverse, &AxesAttrs{axes}, x)
}

// Gather is StableHLO's gather.
func (b *Builder) Gather(x, indices Value, a *GatherAttrs) Value {
	return b.one(OpGather, a, x, indices)
}

// Scatter is StableHLO's scatter.
func (b *Builder) Scatter(x, indices, updates Value, a *ScatterAttrs) Value {
	return b.one(OpScatter, a, x, indices, updates)
}

// Take picks slices of x along an axis at indices of any shape, whose dims take the axis's
// place. Indices are clamped.
func (b *Builder) Take(x, indices Value, axis int) Value {
	b.wantAxis(OpGather, x, axis)
	rank, irank := b.Rank(x), b.Rank(indices)
	a := &GatherAttrs{CollapsedSliceDims: []int{axis}, StartIndexMap: []int{axis}, IndexVectorDim: irank}
	a.SliceSizes = slices.Clone(b.Shape(x))
	a.SliceSizes[axis] = Const(1)
	for i := range rank {
		switch {
		case i < axis:
			a.OffsetDims = append(a.OffsetDims, i)
		case i > axis:
			a.OffsetDims = append(a.OffsetDims, i+irank-1)
		}
	}
	return b.Gather(x, indices, a)
}

// Reduce combines along axes, which vanish.
func (b *Builder) Reduce(c Combine, x Value, axes ...int) Value {
	if len(axes) == 0 {
		return x
	}
	return b.one(OpReduce, &ReduceAttrs{c, slices.Sorted(slices.Values(axes))}, x)
}

// ReduceKeep combines along axes, which stay with size 1.
func (b *Builder) ReduceKeep(c Combine, x Value, axes ...int) Value {
	shape := slices.Clone(b.Shape(x))
	for _, a := range axes {
		b.wantAxis(OpReduce, x, a)
		shape[a] = Const(1)
	}
	return b.Reshape(b.Reduce(c, x, axes...), shape)
}

// ArgReduce gives the index of the largest or smallest element along an axis.
func (b *Builder) ArgReduce(x Value, a *ArgReduceAttrs) Value { return b.one(OpArgReduce, a, x) }

// ReduceWindow combines sliding windows.
func (b *Builder) ReduceWindow(x Value, a *ReduceWindowAttrs) Value {
	return b.one(OpReduceWindow, a, x)
}

// Cumulative combines all elements up to each position.
func (b *Builder) Cumulative(x Value, a *CumulativeAttrs) Value { return b.one(OpCumulative, a, x) }

// Sort sorts by the first operand along an axis.
func (b *Builder) Sort(a *SortAttrs, operands ...Value) []Value {
	return b.Op(OpSort, a, nil, operands...)
}

// DotGeneral contracts; the result has the operands' type unless a.To names one.
func (b *Builder) DotGeneral(x, y Value, a *DotAttrs) Value {
	if a.To == InvalidDType {
		a.To = b.DType(x)
	}
	return b.one(OpDotGeneral, a, x, y)
}

// Convolution convolves; the result has the operands' type unless a.To names another.
func (b *Builder) Convolution(x, kernel Value, a *ConvolutionAttrs) Value {
	if a.To == b.DType(x) {
		a.To = InvalidDType // one text for one meaning
	}
	return b.one(OpConvolution, a, x, kernel)
}

// Attention is scaled dot-product attention.
func (b *Builder) Attention(a *AttentionAttrs, operands ...Value) Value {
	return b.one(OpAttention, a, operands...)
}

// Rng makes random numbers from the generator's state.
func (b *Builder) Rng(state Value, a *RngAttrs) Value { return b.one(OpRng, a, state) }
