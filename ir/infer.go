package ir

import (
	"fmt"
	"slices"
)

// inferRule computes the result types of an operation from its operands and attributes; its
// error says which rule is broken. Shape rules follow StableHLO's specification.
type inferRule func(op *Op, in []Type, e *Entry) ([]Type, error)

// dtypeSet tells which element types a rule takes.
type dtypeSet func(DType) bool

func numeric(t DType) bool   { return t.IsFloat() || t.IsInteger() || t.IsComplex() }
func floating(t DType) bool  { return t.IsFloat() || t.IsComplex() }
func integer(t DType) bool   { return t.IsInteger() }
func integral(t DType) bool  { return t.IsInteger() || t == Bool }
func orderable(t DType) bool { return t.IsFloat() || t.IsInteger() || t == Bool }

// Infer gives the result types of an operation, or says which rule it breaks.
func Infer(op *Op, e *Entry) ([]Type, error) {
	info := op.Kind.Info()
	if info.Infer == nil {
		return nil, fmt.Errorf("unknown operator")
	}
	if n := len(op.Operands); n < info.Min || info.Max >= 0 && n > info.Max {
		return nil, fmt.Errorf("%d operands", n)
	}
	if (info.Attrs == nil) != (op.Attrs == nil) {
		return nil, fmt.Errorf("wrong attributes")
	}
	if info.Regions >= 0 && len(op.Regions) != info.Regions {
		return nil, fmt.Errorf("%d regions", len(op.Regions))
	}
	in := make([]Type, len(op.Operands))
	for i, v := range op.Operands {
		in[i] = e.Types[v]
		if in[i].Kind != TensorKind && info.Class != ClassControl {
			return nil, fmt.Errorf("operand %d is a %s, not a tensor", i, in[i])
		}
	}
	return info.Infer(op, in, e)
}

func one(t Type, err error) ([]Type, error) {
	if err != nil {
		return nil, err
	}
	for _, d := range t.Shape {
		if v, ok := d.IsConst(); ok && v < 0 {
			return nil, fmt.Errorf("result %s has a negative dim", t)
		}
	}
	return []Type{t}, nil
}

// sameAs is the rule of elementwise operators whose operands and result have one type.
func sameAs(set dtypeSet) inferRule {
	return func(_ *Op, in []Type, _ *Entry) ([]Type, error) {
		if !set(in[0].DType) {
			return nil, fmt.Errorf("not defined for %s", in[0].DType)
		}
		for _, t := range in[1:] {
			if !t.Equal(in[0]) {
				return nil, fmt.Errorf("operands differ: %s and %s", in[0], t)
			}
		}
		return []Type{in[0]}, nil
	}
}

func inferConstant(op *Op, _ []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*ConstantAttrs)
	if a.Value == nil {
		return nil, fmt.Errorf("no value")
	}
	return []Type{a.Value.Type()}, a.Value.Check()
}

func inferDim(*Op, []Type, *Entry) ([]Type, error) { return []Type{Scalar(I64)}, nil }

func inferIota(op *Op, _ []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*IotaAttrs)
	if a.Axis < 0 || a.Axis >= len(a.Dims) {
		return nil, fmt.Errorf("axis %d of %d dims", a.Axis, len(a.Dims))
	}
	return one(TensorOf(a.Type, a.Dims...), nil)
}

func inferIsFinite(_ *Op, in []Type, _ *Entry) ([]Type, error) {
	if !in[0].DType.IsFloat() {
		return nil, fmt.Errorf("not defined for %s", in[0].DType)
	}
	return []Type{in[0].With(Bool)}, nil
}

func inferConvert(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*ConvertAttrs)
	if a.To == InvalidDType || a.To >= numDTypes || (a.To == String) != (in[0].DType == String) {
		return nil, fmt.Errorf("no conversion from %s to %s", in[0].DType, a.To)
	}
	return []Type{in[0].With(a.To)}, nil
}

func inferBitcast(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*BitcastAttrs)
	if a.To >= numDTypes || a.To.Bits() != in[0].DType.Bits() || a.To.Bits() == 0 {
		return nil, fmt.Errorf("%s and %s have different widths", in[0].DType, a.To)
	}
	return []Type{in[0].With(a.To)}, nil
}

func inferCompare(op *Op, in []Type, _ *Entry) ([]Type, error) {
	if d := op.Attrs.(*CompareAttrs).Direction; in[0].DType.IsComplex() && d != EQ && d != NE {
		return nil, fmt.Errorf("%s is not defined for %s", d, in[0].DType)
	}
	if !in[0].Equal(in[1]) {
		return nil, fmt.Errorf("operands differ: %s and %s", in[0], in[1])
	}
	return []Type{in[0].With(Bool)}, nil
}

func inferSelect(_ *Op, in []Type, _ *Entry) ([]Type, error) {
	if in[0].DType != Bool {
		return nil, fmt.Errorf("the condition is %s, not i1", in[0])
	}
	if !in[1].Equal(in[2]) || !SameShape(in[0].Shape, in[1].Shape) {
		return nil, fmt.Errorf("operands differ: %s, %s and %s", in[0], in[1], in[2])
	}
	return []Type{in[1]}, nil
}

func inferReshape(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*ReshapeAttrs)
	out := TensorOf(in[0].DType, a.Dims...)
	n, m := in[0].Numel(), out.Numel()
	_, c1 := n.IsConst()
	_, c2 := m.IsConst()
	if c1 && c2 && !n.Equal(m) {
		return nil, fmt.Errorf("%s has %s elements, %s has %s", in[0], n, out, m)
	}
	return one(out, nil)
}

func inferBroadcast(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*BroadcastAttrs)
	if len(a.Axes) != in[0].Rank() {
		return nil, fmt.Errorf("%d axes for rank %d", len(a.Axes), in[0].Rank())
	}
	if err := checkAxes(a.Axes, len(a.Dims)); err != nil {
		return nil, err
	}
	for i, axis := range a.Axes {
		if from := in[0].Shape[i]; !from.Is(1) && !from.Equal(a.Dims[axis]) {
			return nil, fmt.Errorf("dim %d of %s is neither 1 nor %s", i, in[0], a.Dims[axis])
		}
	}
	return one(TensorOf(in[0].DType, a.Dims...), nil)
}

// checkAxes wants distinct ascending axes below rank.
func checkAxes(axes []int, rank int) error {
	for i, a := range axes {
		if a < 0 || a >= rank || i > 0 && a <= axes[i-1] {
			return fmt.Errorf("axes %v are not ascending below %d", axes, rank)
		}
	}
	return nil
}

// checkDistinct wants distinct axes below rank, in any order.
func checkDistinct(axes []int, rank int) error {
	sorted := slices.Sorted(slices.Values(axes))
	return checkAxes(sorted, rank)
}

func inferTranspose(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*TransposeAttrs)
	if len(a.Permutation) != in[0].Rank() || checkDistinct(a.Permutation, in[0].Rank()) != nil {
		return nil, fmt.Errorf("%v is no permutation of %d dims", a.Permutation, in[0].Rank())
	}
	shape := make([]Dim, in[0].Rank())
	for i, p := range a.Permutation {
		shape[i] = in[0].Shape[p]
	}
	return []Type{TensorOf(in[0].DType, shape...)}, nil
}

func inferSlice(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*SliceAttrs)
	rank := in[0].Rank()
	if len(a.Start) != rank || len(a.Limit) != rank || len(a.Stride) != rank {
		return nil, fmt.Errorf("start, limit and stride need %d numbers", rank)
	}
	shape := make([]Dim, rank)
	for i := range shape {
		if a.Stride[i] < 1 {
			return nil, fmt.Errorf("stride %d", a.Stride[i])
		}
		if v, ok := a.Start[i].IsConst(); ok && v < 0 {
			return nil, fmt.Errorf("start %d", v)
		}
		if over, ok := a.Limit[i].Sub(in[0].Shape[i]).IsConst(); ok && over > 0 {
			return nil, fmt.Errorf("limit %s of dim %d exceeds %s", a.Limit[i], i, in[0])
		}
		shape[i] = a.Limit[i].Sub(a.Start[i]).CeilDiv(a.Stride[i])
	}
	return one(TensorOf(in[0].DType, shape...), nil)
}

func checkStarts(operand Type, starts []Type) error {
	if len(starts) != operand.Rank() {
		return fmt.Errorf("%d start indices for rank %d", len(starts), operand.Rank())
	}
	for _, s := range starts {
		if s.Rank() != 0 || !s.DType.IsInteger() {
			return fmt.Errorf("a start index is %s, not a scalar integer", s)
		}
	}
	return nil
}

func inferDynamicSlice(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*DynamicSliceAttrs)
	if len(a.Sizes) != in[0].Rank() {
		return nil, fmt.Errorf("%d sizes for rank %d", len(a.Sizes), in[0].Rank())
	}
	return one(TensorOf(in[0].DType, a.Sizes...), checkStarts(in[0], in[1:]))
}

func inferDynamicUpdateSlice(_ *Op, in []Type, _ *Entry) ([]Type, error) {
	if in[1].Rank() != in[0].Rank() || in[1].DType != in[0].DType {
		return nil, fmt.Errorf("cannot put %s into %s", in[1], in[0])
	}
	return one(in[0], checkStarts(in[0], in[2:]))
}

func inferPad(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*PadAttrs)
	rank := in[0].Rank()
	if len(a.Low) != rank || len(a.High) != rank || len(a.Interior) != rank {
		return nil, fmt.Errorf("low, high and interior need %d numbers", rank)
	}
	if in[1].Rank() != 0 || in[1].DType != in[0].DType {
		return nil, fmt.Errorf("padding value is %s for %s", in[1], in[0])
	}
	shape := make([]Dim, rank)
	for i, d := range in[0].Shape {
		if a.Interior[i] < 0 {
			return nil, fmt.Errorf("interior padding %d", a.Interior[i])
		}
		inner := d
		if a.Interior[i] > 0 {
			inner = d.Add(d.AddConst(-1).Max(Const(0)).MulConst(a.Interior[i]))
		}
		shape[i] = inner.Add(a.Low[i]).Add(a.High[i])
	}
	return one(TensorOf(in[0].DType, shape...), nil)
}

func inferConcatenate(op *Op, in []Type, _ *Entry) ([]Type, error) {
	axis := op.Attrs.(*AxisAttrs).Axis
	if axis < 0 || axis >= in[0].Rank() {
		return nil, fmt.Errorf("axis %d of %s", axis, in[0])
	}
	shape := slices.Clone(in[0].Shape)
	for _, t := range in[1:] {
		if t.Rank() != in[0].Rank() || t.DType != in[0].DType {
			return nil, fmt.Errorf("cannot join %s and %s", in[0], t)
		}
		for i, d := range t.Shape {
			if i != axis && !d.Equal(shape[i]) {
				return nil, fmt.Errorf("cannot join %s and %s along axis %d", in[0], t, axis)
			}
		}
		shape[axis] = shape[axis].Add(t.Shape[axis])
	}
	return one(TensorOf(in[0].DType, shape...), nil)
}

func inferReverse(op *Op, in []Type, _ *Entry) ([]Type, error) {
	return []Type{in[0]}, checkAxes(op.Attrs.(*AxesAttrs).Axes, in[0].Rank())
}

func inferGather(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*GatherAttrs)
	operand, indices := in[0], in[1]
	if !indices.DType.IsInteger() {
		return nil, fmt.Errorf("indices are %s", indices)
	}
	if len(a.SliceSizes) != operand.Rank() || a.IndexVectorDim < 0 || a.IndexVectorDim > indices.Rank() {
		return nil, fmt.Errorf("slice sizes or index vector dim do not fit %s and %s", operand, indices)
	}
	batch := without(indices.Shape, a.IndexVectorDim)
	if n := vectorSize(indices, a.IndexVectorDim); !n.Is(int64(len(a.StartIndexMap))) {
		return nil, fmt.Errorf("index vectors of size %s for %d dims", n, len(a.StartIndexMap))
	}
	gone := slices.Concat(a.CollapsedSliceDims, a.OperandBatchingDims)
	if err := firstError(checkDistinct(gone, operand.Rank()), checkDistinct(a.StartIndexMap, operand.Rank()),
		checkAxes(a.OffsetDims, len(batch)+len(a.OffsetDims)), checkAxes(a.StartIndicesBatchingDims, indices.Rank())); err != nil {
		return nil, err
	}
	if len(a.OffsetDims)+len(gone) != operand.Rank() || len(a.OperandBatchingDims) != len(a.StartIndicesBatchingDims) {
		return nil, fmt.Errorf("offset, collapsed and batching dims do not add up to rank %d", operand.Rank())
	}
	for _, d := range gone {
		if !a.SliceSizes[d].Is(1) {
			return nil, fmt.Errorf("slice size %s of collapsed dim %d is not 1", a.SliceSizes[d], d)
		}
	}
	var offsets []Dim
	for d, size := range a.SliceSizes {
		if !slices.Contains(gone, d) {
			offsets = append(offsets, size)
		}
	}
	return one(TensorOf(operand.DType, interleave(offsets, batch, a.OffsetDims)...), nil)
}

// without removes dim i where there is one.
func without(dims []Dim, i int) []Dim {
	if i >= len(dims) {
		return slices.Clone(dims)
	}
	return slices.Delete(slices.Clone(dims), i, i+1)
}

// vectorSize is the size of index vectors: 1 when the dim is implicit.
func vectorSize(indices Type, dim int) Dim {
	if dim == indices.Rank() {
		return Const(1)
	}
	return indices.Shape[dim]
}

// interleave puts offsets at the given positions of the result and batch dims at the others.
func interleave(offsets, batch []Dim, positions []int) []Dim {
	out := make([]Dim, 0, len(offsets)+len(batch))
	for len(out) < cap(out) {
		if slices.Contains(positions, len(out)) {
			out, offsets = append(out, offsets[0]), offsets[1:]
		} else {
			out, batch = append(out, batch[0]), batch[1:]
		}
	}
	return out
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func inferScatter(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*ScatterAttrs)
	operand, indices, updates := in[0], in[1], in[2]
	if !indices.DType.IsInteger() || updates.DType != operand.DType {
		return nil, fmt.Errorf("cannot scatter %s at %s into %s", updates, indices, operand)
	}
	if a.Combine != Assign {
		if err := CombineTakes(a.Combine, operand.DType); err != nil {
			return nil, err
		}
	}
	gone := slices.Concat(a.InsertedWindowDims, a.InputBatchingDims)
	if err := firstError(checkDistinct(gone, operand.Rank()), checkDistinct(a.ScatterDimsToOperandDims, operand.Rank()),
		checkAxes(a.UpdateWindowDims, updates.Rank()), checkAxes(a.ScatterIndicesBatchingDims, indices.Rank())); err != nil {
		return nil, err
	}
	if a.IndexVectorDim < 0 || a.IndexVectorDim > indices.Rank() || len(a.UpdateWindowDims)+len(gone) != operand.Rank() ||
		len(a.InputBatchingDims) != len(a.ScatterIndicesBatchingDims) {
		return nil, fmt.Errorf("window, inserted and batching dims do not add up to rank %d", operand.Rank())
	}
	if n := vectorSize(indices, a.IndexVectorDim); !n.Is(int64(len(a.ScatterDimsToOperandDims))) {
		return nil, fmt.Errorf("index vectors of size %s for %d dims", n, len(a.ScatterDimsToOperandDims))
	}
	if batch := without(indices.Shape, a.IndexVectorDim); len(batch)+len(a.UpdateWindowDims) != updates.Rank() {
		return nil, fmt.Errorf("updates have rank %d, not %d", updates.Rank(), len(batch)+len(a.UpdateWindowDims))
	}
	return []Type{operand}, nil
}

// CombineTakes gives an error where elements of a type cannot be combined so.
func CombineTakes(c Combine, t DType) error {
	ok := false
	switch c {
	case Sum, Mul:
		ok = numeric(t)
	case Max, Min:
		ok = orderable(t)
	case And, Or, Xor:
		ok = integral(t)
	}
	if !ok {
		return fmt.Errorf("%s is not defined for %s", c, t)
	}
	return nil
}

func inferReduce(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*ReduceAttrs)
	if err := firstError(checkAxes(a.Axes, in[0].Rank()), CombineTakes(a.Combine, in[0].DType)); err != nil {
		return nil, err
	}
	var shape []Dim
	for i, d := range in[0].Shape {
		if !slices.Contains(a.Axes, i) {
			shape = append(shape, d)
		}
	}
	return []Type{TensorOf(in[0].DType, shape...)}, nil
}

func inferArgReduce(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*ArgReduceAttrs)
	if a.Axis < 0 || a.Axis >= in[0].Rank() || a.Combine != Max && a.Combine != Min || !orderable(in[0].DType) {
		return nil, fmt.Errorf("no %s index of %s along axis %d", a.Combine, in[0], a.Axis)
	}
	return []Type{TensorOf(I64, without(in[0].Shape, a.Axis)...)}, nil
}

func inferReduceWindow(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*ReduceWindowAttrs)
	rank := in[0].Rank()
	for _, n := range []int{len(a.Window), len(a.Strides), len(a.Dilations), len(a.Low), len(a.High)} {
		if n != rank {
			return nil, fmt.Errorf("window attributes need %d numbers", rank)
		}
	}
	shape := make([]Dim, rank)
	for i, d := range in[0].Shape {
		if a.Strides[i] < 1 || a.Dilations[i] < 1 {
			return nil, fmt.Errorf("stride %d, dilation %d", a.Strides[i], a.Dilations[i])
		}
		span := a.Window[i].AddConst(-1).MulConst(a.Dilations[i]).AddConst(1)
		shape[i] = windows(d.Add(a.Low[i]).Add(a.High[i]), span, a.Strides[i])
	}
	return one(TensorOf(in[0].DType, shape...), CombineTakes(a.Combine, in[0].DType))
}

// windows counts positions of a window in a padded dim: none where it does not fit.
func windows(padded, span Dim, stride int64) Dim {
	n := padded.Sub(span).FloorDiv(Const(stride)).AddConst(1)
	if v, ok := n.IsConst(); ok {
		return Const(max(v, 0))
	}
	return n
}

func inferCumulative(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*CumulativeAttrs)
	if a.Axis < 0 || a.Axis >= in[0].Rank() {
		return nil, fmt.Errorf("axis %d of %s", a.Axis, in[0])
	}
	return []Type{in[0]}, CombineTakes(a.Combine, in[0].DType)
}

func inferSort(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*SortAttrs)
	if a.Axis < 0 || a.Axis >= in[0].Rank() || !orderable(in[0].DType) {
		return nil, fmt.Errorf("cannot sort %s along axis %d", in[0], a.Axis)
	}
	if a.Within < 0 || a.Sorted < 0 || a.Within > 0 && a.Sorted > 0 && a.Within%a.Sorted != 0 {
		return nil, fmt.Errorf("runs of %d elements that are sorted within %d", a.Sorted, a.Within)
	}
	for _, t := range in[1:] {
		if !SameShape(t.Shape, in[0].Shape) {
			return nil, fmt.Errorf("operands differ in shape: %s and %s", in[0], t)
		}
	}
	return in, nil
}

func inferDot(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*DotAttrs)
	l, r := in[0], in[1]
	if l.DType != r.DType || !numeric(l.DType) {
		return nil, fmt.Errorf("operands are %s and %s", l, r)
	}
	if err := checkPrecision(a.Precision, l); err != nil {
		return nil, err
	}
	if len(a.LhsBatch) != len(a.RhsBatch) || len(a.LhsContract) != len(a.RhsContract) {
		return nil, fmt.Errorf("dimension numbers differ in length")
	}
	lhs, rhs := slices.Concat(a.LhsBatch, a.LhsContract), slices.Concat(a.RhsBatch, a.RhsContract)
	if err := firstError(checkDistinct(lhs, l.Rank()), checkDistinct(rhs, r.Rank())); err != nil {
		return nil, err
	}
	for i := range lhs {
		if !l.Shape[lhs[i]].Equal(r.Shape[rhs[i]]) {
			return nil, fmt.Errorf("dim %d of %s and dim %d of %s differ", lhs[i], l, rhs[i], r)
		}
	}
	var shape []Dim
	for _, d := range a.LhsBatch {
		shape = append(shape, l.Shape[d])
	}
	for i, d := range l.Shape {
		if !slices.Contains(lhs, i) {
			shape = append(shape, d)
		}
	}
	for i, d := range r.Shape {
		if !slices.Contains(rhs, i) {
			shape = append(shape, d)
		}
	}
	return []Type{TensorOf(a.To, shape...)}, nil
}

// checkPrecision: only float32 is rounded to TF32.
func checkPrecision(p Precision, t Type) error {
	if p != FullPrecision && t.DType != F32 {
		return fmt.Errorf("precision %s is of products of f32, not %s", p, t.DType)
	}
	return nil
}

func inferConvolution(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*ConvolutionAttrs)
	x, k := in[0], in[1]
	n := x.Rank() - 2
	if n < 0 || k.Rank() != x.Rank() || x.DType != k.DType || !x.DType.IsFloat() && !x.DType.IsInteger() {
		return nil, fmt.Errorf("operands are %s and %s", x, k)
	}
	if err := checkPrecision(a.Precision, x); err != nil {
		return nil, err
	}
	for _, l := range []int{len(a.Strides), len(a.Low), len(a.High), len(a.LhsDilation), len(a.RhsDilation)} {
		if l != n {
			return nil, fmt.Errorf("attributes need %d numbers", n)
		}
	}
	if a.Groups < 1 || !k.Shape[1].MulConst(a.Groups).Equal(x.Shape[1]) || !k.Shape[0].DivisibleBy(a.Groups, nil) {
		return nil, fmt.Errorf("%d groups do not divide the channels of %s and %s", a.Groups, x, k)
	}
	to := a.To
	if to == InvalidDType {
		to = x.DType
	}
	if to.IsFloat() != x.DType.IsFloat() || to.IsInteger() != x.DType.IsInteger() {
		return nil, fmt.Errorf("sums of %s are no %s", x.DType, to)
	}
	shape := []Dim{x.Shape[0], k.Shape[0]}
	for i := range n {
		if a.Strides[i] < 1 || a.LhsDilation[i] < 1 || a.RhsDilation[i] < 1 {
			return nil, fmt.Errorf("stride or dilation below 1")
		}
		padded := x.Shape[i+2].AddConst(-1).MulConst(a.LhsDilation[i]).AddConst(1).Add(a.Low[i]).Add(a.High[i])
		span := k.Shape[i+2].AddConst(-1).MulConst(a.RhsDilation[i]).AddConst(1)
		shape = append(shape, windows(padded, span, a.Strides[i]))
	}
	return one(TensorOf(to, shape...), nil)
}

func inferAttention(op *Op, in []Type, _ *Entry) ([]Type, error) {
	q, k, v := in[0], in[1], in[2]
	for _, t := range in[:3] {
		if t.Rank() != 4 || t.DType != q.DType || !t.DType.IsFloat() {
			return nil, fmt.Errorf("operands are %s, %s and %s", q, k, v)
		}
	}
	_, whole := q.Shape[1].DivExact(k.Shape[1])
	same := q.Shape[0].Equal(k.Shape[0]) && q.Shape[0].Equal(v.Shape[0]) && q.Shape[3].Equal(k.Shape[3]) &&
		k.Shape[1].Equal(v.Shape[1]) && k.Shape[2].Equal(v.Shape[2])
	if !same || !whole {
		return nil, fmt.Errorf("shapes do not fit: %s, %s and %s", q, k, v)
	}
	if len(in) == 4 {
		full := []Dim{q.Shape[0], q.Shape[1], q.Shape[2], k.Shape[2]}
		if in[3].Rank() != 4 || in[3].DType != Bool && in[3].DType != q.DType {
			return nil, fmt.Errorf("mask is %s", in[3])
		}
		for i, d := range in[3].Shape {
			if !d.Is(1) && !d.Equal(full[i]) {
				return nil, fmt.Errorf("mask %s does not fit %s", in[3], DimList(full))
			}
		}
	}
	return []Type{TensorOf(q.DType, q.Shape[0], q.Shape[1], q.Shape[2], v.Shape[3])}, nil
}

// inferCollective is the shape rule of all collectives: they work along dim 0, which is in memory
// the shares of the ranks one after the other.
func inferCollective(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a, t := op.Attrs.(*CollectiveAttrs), in[0]
	if a.Size < 1 || len(a.Axes) == 0 {
		return nil, fmt.Errorf("the group has %d ranks over %d axes", a.Size, len(a.Axes))
	}
	for i, name := range a.Axes {
		if name == "" || slices.Contains(a.Axes[:i], name) {
			return nil, fmt.Errorf("axis %q has no name or is there twice", name)
		}
	}
	if t.DType.Size() == 0 {
		return nil, fmt.Errorf("not defined for %s", t.DType)
	}
	if reduces := op.Kind == OpAllReduce || op.Kind == OpReduceScatter; reduces {
		if err := CombineTakes(a.Combine, t.DType); err != nil {
			return nil, err
		}
	} else if a.Combine != Sum {
		return nil, fmt.Errorf("nothing is combined")
	}
	if op.Kind == OpAllReduce {
		return []Type{t}, nil
	}
	if op.Kind == OpCollectivePermute {
		return []Type{t}, checkPairs(a)
	}
	if t.Rank() == 0 {
		return nil, fmt.Errorf("a scalar has no dim 0")
	}
	out := TensorOf(t.DType, slices.Clone(t.Shape)...)
	if op.Kind == OpAllGather {
		out.Shape[0] = t.Shape[0].MulConst(a.Size)
		return []Type{out}, nil
	}
	share, ok := t.Shape[0].DivExact(Const(a.Size))
	if !ok {
		return nil, fmt.Errorf("dim 0 of %s is not seen to be a multiple of %d", t, a.Size)
	}
	if op.Kind == OpReduceScatter {
		out.Shape[0] = share
	}
	return []Type{out}, nil
}

func inferDone(_ *Op, in []Type, _ *Entry) ([]Type, error) { return in[:1], nil }

func checkPairs(a *CollectiveAttrs) error {
	sources, targets := map[int64]bool{}, map[int64]bool{}
	for _, p := range a.Pairs {
		if min(p.Source, p.Target) < 0 || max(p.Source, p.Target) >= a.Size || sources[p.Source] || targets[p.Target] {
			return fmt.Errorf("pair %d to %d is outside of the group or repeats a rank", p.Source, p.Target)
		}
		sources[p.Source], targets[p.Target] = true, true
	}
	return nil
}

func blockTypes(values []Value, e *Entry) []Type {
	types := make([]Type, len(values))
	for i, v := range values {
		types[i] = e.Types[v]
	}
	return types
}

func inferIf(op *Op, in []Type, e *Entry) ([]Type, error) {
	if in[0].Rank() != 0 || in[0].DType != Bool {
		return nil, fmt.Errorf("the condition is %s, not a scalar i1", in[0])
	}
	then, otherwise := blockTypes(op.Regions[0].Results, e), blockTypes(op.Regions[1].Results, e)
	if !slices.EqualFunc(then, otherwise, Type.Equal) || len(op.Regions[0].Params)+len(op.Regions[1].Params) > 0 {
		return nil, fmt.Errorf("regions give %v and %v", then, otherwise)
	}
	return then, nil
}

func inferWhile(op *Op, in []Type, e *Entry) ([]Type, error) {
	condition, body := op.Regions[0], op.Regions[1]
	for _, types := range [][]Type{blockTypes(condition.Params, e), blockTypes(body.Params, e), blockTypes(body.Results, e)} {
		if !slices.EqualFunc(types, in, Type.Equal) {
			return nil, fmt.Errorf("a region has %v where the operands are %v", types, in)
		}
	}
	if r := blockTypes(condition.Results, e); len(r) != 1 || !r[0].Equal(Scalar(Bool)) {
		return nil, fmt.Errorf("the condition gives %v, not a scalar i1", r)
	}
	return in, nil
}

func inferKernel(op *Op, in []Type, e *Entry) ([]Type, error) {
	if params := blockTypes(op.Regions[0].Params, e); !slices.EqualFunc(params, in, Type.Equal) {
		return nil, fmt.Errorf("the region takes %v, the operands are %v", params, in)
	}
	return blockTypes(op.Regions[0].Results, e), nil
}

// inferRng: the state of the generator is a seed and an offset.
func inferRng(op *Op, in []Type, _ *Entry) ([]Type, error) {
	a := op.Attrs.(*RngAttrs)
	if in[0].DType != I64 || in[0].Rank() != 1 || !in[0].Shape[0].Is(2) {
		return nil, fmt.Errorf("the generator's state is i64[2], not %s", in[0])
	}
	if a.Stream < 0 || a.Distribution > Bits {
		return nil, fmt.Errorf("stream %d", a.Stream)
	}
	float := slices.Contains([]DType{F16, BF16, F32, F64}, a.Type)
	whole := a.Type == Bool || a.Type.IsInteger() && a.Type.Bits() >= 8
	if a.Distribution == Bits && !whole || a.Distribution != Bits && !float {
		return nil, fmt.Errorf("no %s random numbers of type %s", a.Distribution, a.Type)
	}
	return []Type{TensorOf(a.Type, a.Dims...)}, nil
}
