package onnx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// indices is an input of integer indices in which negative numbers count from the end of a
// dim.
func (n *node) indices(i int, size ir.Dim) ir.Value {
	v := n.in(i)
	if !n.b.DType(v).IsInteger() {
		n.wrong("indices are %s", n.b.Type(v))
	}
	// Known indices that are not negative need no wrapping.
	if dims, ok := n.known.Dims(v); ok && !slices.ContainsFunc(dims, func(d ir.Dim) bool { return d.Bounds(n.program.Range).Min < 0 }) {
		return v
	}
	return lower.WrapIndex(n.b, v, size)
}

func gather(n *node) {
	x := n.in(0)
	n.rankAtLeast(x, 1)
	axis := n.axis(n.int("axis", 0), n.b.Rank(x))
	n.set(n.b.Take(x, n.indices(1, n.b.Shape(x)[axis]), axis))
}

// alongAxis makes the dimension numbers of element-wise indexing along an axis: the other
// dims of the indices are positions in the operand's dims. Where they are smaller than the
// operand's, the operand is cut first.
func (n *node) gatherElements(x, indices ir.Value, axis int) ir.Value {
	b := n.b
	rank := b.Rank(x)
	if b.Rank(indices) != rank {
		n.wrong("indices are %s for %s", b.Type(indices), b.Type(x))
	}
	a := &ir.GatherAttrs{CollapsedSliceDims: []int{axis}, StartIndexMap: []int{axis}, IndexVectorDim: rank,
		SliceSizes: ir.Consts(slices.Repeat([]int64{1}, rank)...)}
	for i, d := range b.Shape(indices) {
		if i == axis {
			continue
		}
		if !d.Equal(b.Shape(x)[i]) {
			x = b.SliceAxis(x, i, ir.Const(0), d, 1)
		}
		a.OperandBatchingDims = append(a.OperandBatchingDims, i)
		a.StartIndicesBatchingDims = append(a.StartIndicesBatchingDims, i)
	}
	return b.Gather(x, indices, a)
}

func gatherElements(n *node) {
	x := n.in(0)
	n.rankAtLeast(x, 1)
	axis := n.axis(n.int("axis", 0), n.b.Rank(x))
	n.set(n.gatherElements(x, n.indices(1, n.b.Shape(x)[axis]), axis))
}

// tuples makes index tuples (the last dim of input i) count from the front of the given dims.
func (n *node) tuples(i int, dims []ir.Dim) (ir.Value, int) {
	v := n.in(i)
	n.rankAtLeast(v, 1)
	shape := n.b.Shape(v)
	k, ok := shape[len(shape)-1].IsConst()
	if !ok {
		n.dataDependent("the last dim of the indices is %s, not constant", shape[len(shape)-1])
	}
	if k < 0 || k > int64(len(dims)) {
		n.wrong("index tuples of %d numbers for %d dims", k, len(dims))
	}
	if known, ok := n.known.Dims(v); ok && !slices.ContainsFunc(known, func(d ir.Dim) bool { return d.Bounds(n.program.Range).Min < 0 }) {
		return v, int(k)
	}
	if k == 0 {
		return v, 0
	}
	v = n.b.Convert(v, ir.I64)
	sizes := n.b.Broadcast(dimsValue(n.b, dims[:k]), shape, []int{len(shape) - 1})
	return n.b.Select(lower.CompareScalar(n.b, ir.LT, v, 0), n.b.Binary(ir.OpAdd, v, sizes), v), int(k)
}

func gatherND(n *node) {
	x := n.in(0)
	b := n.b
	rank := b.Rank(x)
	batch := n.int("batch_dims", 0)
	if batch < 0 || batch >= int64(rank) || batch >= int64(b.Rank(n.in(1))) {
		n.wrong("batch_dims %d of %s and %s", batch, b.Type(x), b.Type(n.in(1)))
	}
	k0 := int(batch)
	indices, k := n.tuples(1, b.Shape(x)[k0:])
	ishape := b.Shape(indices)
	a := &ir.GatherAttrs{IndexVectorDim: len(ishape) - 1, SliceSizes: slices.Clone(b.Shape(x))}
	for i := range k0 {
		n.unifyDims(b.Shape(x)[i], ishape[i])
		a.OperandBatchingDims, a.StartIndicesBatchingDims = append(a.OperandBatchingDims, i), append(a.StartIndicesBatchingDims, i)
		a.SliceSizes[i] = ir.Const(1)
	}
	for i := k0; i < k0+k; i++ {
		a.CollapsedSliceDims, a.StartIndexMap = append(a.CollapsedSliceDims, i), append(a.StartIndexMap, i)
		a.SliceSizes[i] = ir.Const(1)
	}
	for i := k0 + k; i < rank; i++ {
		a.OffsetDims = append(a.OffsetDims, len(ishape)-1+i-k0-k)
	}
	n.set(b.Gather(x, indices, a))
}

// combination reads the reduction attribute of the scatter operators.
func (n *node) combination() ir.Combine {
	switch n.choice("reduction", "none", "none", "add", "mul", "max", "min") {
	case "add":
		return ir.Sum
	case "mul":
		return ir.Mul
	case "max":
		return ir.Max
	case "min":
		return ir.Min
	}
	return ir.Assign
}

func scatterElements(n *node) {
	x, updates := n.in(0), n.in(2)
	b := n.b
	rank := b.Rank(x)
	n.rankAtLeast(x, 1)
	axis := n.axis(n.int("axis", 0), rank)
	indices := n.indices(1, b.Shape(x)[axis])
	if b.Rank(indices) != rank || b.Rank(updates) != rank {
		n.wrong("indices %s and updates %s for %s", b.Type(indices), b.Type(updates), b.Type(x))
	}
	// Index tuples: the position of each update, with the index in place of the axis.
	shape := b.Shape(indices)
	updates = n.sameDims(updates, shape)
	parts := make([]ir.Value, rank)
	column := append(slices.Clone(shape), ir.Const(1))
	for i := range parts {
		part := b.Iota(b.DType(indices), shape, i)
		if i == axis {
			part = indices
		}
		parts[i] = b.Reshape(part, column)
	}
	a := &ir.ScatterAttrs{Combine: n.combination(), IndexVectorDim: rank}
	for i := range rank {
		a.InsertedWindowDims, a.ScatterDimsToOperandDims = append(a.InsertedWindowDims, i), append(a.ScatterDimsToOperandDims, i)
	}
	n.set(b.Scatter(x, b.Concatenate(rank, parts...), updates, a))
}

func scatterND(n *node) {
	x, updates := n.in(0), n.in(2)
	b := n.b
	indices, k := n.tuples(1, b.Shape(x))
	irank := b.Rank(indices)
	if b.Rank(updates) != irank-1+b.Rank(x)-k {
		n.wrong("updates %s for indices %s and %s", b.Type(updates), b.Type(indices), b.Type(x))
	}
	a := &ir.ScatterAttrs{Combine: n.combination(), IndexVectorDim: irank - 1}
	for i := range k {
		a.InsertedWindowDims, a.ScatterDimsToOperandDims = append(a.InsertedWindowDims, i), append(a.ScatterDimsToOperandDims, i)
	}
	for i := irank - 1; i < b.Rank(updates); i++ {
		a.UpdateWindowDims = append(a.UpdateWindowDims, i)
	}
	n.set(b.Scatter(x, indices, updates, a))
}

func oneHot(n *node) {
	indices, values := n.in(0), n.in(2)
	b := n.b
	var depth []ir.Dim
	if b.DType(n.in(1)).IsFloat() {
		depth = ir.Consts(int64(n.constFloats(1, "the depth")[0]))
	} else if depth = n.dims(1, "the depth"); len(depth) != 1 {
		n.wrong("the depth has %d numbers", len(depth))
	}
	if !b.DType(indices).IsInteger() {
		indices = b.Convert(indices, ir.I64)
	}
	axis := n.axis(n.int("axis", -1), b.Rank(indices)+1)
	values = n.sameDims(values, ir.Consts(2))
	off := b.Reshape(b.SliceAxis(values, 0, ir.Const(0), ir.Const(1), 1), nil)
	on := b.Reshape(b.SliceAxis(values, 0, ir.Const(1), ir.Const(2), 1), nil)
	n.set(lower.OneHot(b, indices, depth[0], axis, on, off))
}

func topK(n *node) {
	x := n.in(0)
	b := n.b
	n.rankAtLeast(x, 1)
	axis := n.axis(n.int("axis", -1), b.Rank(x))
	var k ir.Dim
	if n.version < 10 {
		k = ir.Const(n.int("k", 0))
	} else {
		list := n.dims(1, "k")
		if len(list) != 1 {
			n.wrong("k has %d numbers", len(list))
		}
		k = list[0]
	}
	positions := b.Iota(ir.I64, b.Shape(x), axis)
	sorted := b.Sort(&ir.SortAttrs{Axis: axis, Descending: n.flag("largest", true)}, x, positions)
	n.set(b.SliceAxis(sorted[0], axis, ir.Const(0), k, 1), b.SliceAxis(sorted[1], axis, ir.Const(0), k, 1))
}

func argReduce(c ir.Combine) func(*node) {
	return func(n *node) {
		x := n.in(0)
		n.rankAtLeast(x, 1)
		axis := n.axis(n.int("axis", 0), n.b.Rank(x))
		y := n.b.ArgReduce(x, &ir.ArgReduceAttrs{Combine: c, Axis: axis, Last: n.flag("select_last_index", false)})
		if n.flag("keepdims", true) {
			shape := slices.Clone(n.b.Shape(x))
			shape[axis] = ir.Const(1)
			y = n.b.Reshape(y, shape)
		}
		n.set(y)
	}
}

func cumulative(c ir.Combine) func(*node) {
	return func(n *node) {
		x := n.in(0)
		list := n.constInts(1, "the axis")
		if len(list) != 1 {
			n.wrong("the axis has %d numbers", len(list))
		}
		a := &ir.CumulativeAttrs{Combine: c, Axis: n.axis(list[0], n.b.Rank(x)), Reverse: n.flag("reverse", false), Exclusive: n.flag("exclusive", false)}
		n.set(n.b.Cumulative(x, a))
	}
}

func reverseSequence(n *node) {
	x, lengths := n.in(0), n.in(1)
	b := n.b
	n.rankAtLeast(x, 2)
	batch, time := n.axis(n.int("batch_axis", 1), b.Rank(x)), n.axis(n.int("time_axis", 0), b.Rank(x))
	shape := b.Shape(x)
	at := b.Iota(ir.I64, shape, time)
	length := b.Broadcast(b.Convert(lengths, ir.I64), shape, []int{batch})
	mirrored := lower.AddScalar(b, b.Binary(ir.OpSubtract, length, at), -1)
	n.set(n.gatherElements(x, b.Select(b.Compare(ir.LT, at, length), mirrored, at), time))
}

// compress is a selection by a condition that must be known.
func compress(n *node) {
	x := n.in(0)
	keep := n.constInts(1, "the condition")
	axis := 0
	if n.hasAttr("axis") {
		axis = n.axis(n.int("axis", 0), n.b.Rank(x))
	} else {
		x = n.b.Reshape(x, []ir.Dim{n.b.Type(x).Numel()})
	}
	var at []int64
	for i, k := range keep {
		if k != 0 {
			at = append(at, int64(i))
		}
	}
	n.set(n.b.Take(x, n.b.Constant(ir.I64s(at)), axis))
}

func nonZero(n *node) {
	x := n.in(0)
	t, ok := n.known.Tensor(x)
	if !ok {
		n.dataDependent("the number of elements that are not zero is only known when the model runs")
	}
	rank := len(t.Shape)
	var at [][]int64
	for i := range t.Numel() {
		if t.Float(i) == 0 {
			continue
		}
		where := make([]int64, rank)
		for d, rest := rank-1, i; d >= 0; d-- {
			where[d], rest = rest%t.Shape[d], rest/t.Shape[d]
		}
		at = append(at, where)
	}
	flat := make([]int64, 0, rank*len(at))
	for d := range rank {
		for _, where := range at {
			flat = append(flat, where[d])
		}
	}
	n.set(n.b.Constant(ir.I64s(flat, int64(rank), int64(len(at)))))
}

func tensorScatter(n *node) {
	past, update := n.in(0), n.in(1)
	b := n.b
	axis := n.axis(n.int("axis", -2), b.Rank(past))
	circular := n.choice("mode", "linear", "linear", "circular") == "circular"
	shape := b.Shape(update)
	if axis == 0 || b.Rank(update) != b.Rank(past) {
		n.wrong("update %s for %s along axis %d", b.Type(update), b.Type(past), axis)
	}
	at := b.Iota(ir.I64, shape, axis)
	if n.has(2) {
		start := b.Broadcast(b.Convert(n.in(2), ir.I64), shape, []int{0})
		at = b.Binary(ir.OpAdd, at, start)
	}
	if circular {
		at = lower.FloorMod(b, at, b.Broadcast(b.Dim(b.Shape(past)[axis]), shape, nil))
	}
	rank := b.Rank(past)
	parts := make([]ir.Value, rank)
	column := append(slices.Clone(shape), ir.Const(1))
	a := &ir.ScatterAttrs{Combine: ir.Assign, IndexVectorDim: rank, UniqueIndices: true}
	for i := range parts {
		part := b.Iota(ir.I64, shape, i)
		if i == axis {
			part = at
		}
		parts[i] = b.Reshape(part, column)
		a.InsertedWindowDims, a.ScatterDimsToOperandDims = append(a.InsertedWindowDims, i), append(a.ScatterDimsToOperandDims, i)
	}
	n.set(b.Scatter(past, b.Concatenate(rank, parts...), update, a))
}

// Reductions.

// reduceAxes reads the axes of a reduction: an attribute before version since, an input from
// then on. None mean all, or with noop_with_empty_axes none.
func (n *node) reduceAxes(x ir.Value, since int64) []int {
	list := n.axesOr(since, 1)
	if len(list) == 0 {
		if n.version >= since && n.flag("noop_with_empty_axes", false) {
			return nil
		}
		axes := make([]int, n.b.Rank(x))
		for i := range axes {
			axes[i] = i
		}
		return axes
	}
	return n.axes(list, n.b.Rank(x))
}

// reduction lowers a reduction whose axes are an input from version since on. f reduces x
// along axes and keeps them with size 1.
func reduction(since int64, f func(n *node, x ir.Value, axes []int) ir.Value) func(*node) {
	return func(n *node) {
		x := n.in(0)
		axes := n.reduceAxes(x, since)
		y := f(n, x, axes)
		if !n.flag("keepdims", true) {
			var rest []ir.Dim
			for i, d := range n.b.Shape(x) {
				if !slices.Contains(axes, i) {
					rest = append(rest, d)
				}
			}
			y = n.b.Reshape(y, rest)
		}
		n.set(y)
	}
}

// plain combines with one of ir's reductions.
func plain(c ir.Combine) func(n *node, x ir.Value, axes []int) ir.Value {
	return func(n *node, x ir.Value, axes []int) ir.Value { return n.b.ReduceKeep(c, x, axes...) }
}

// after combines f(x) by a sum, and then applies g.
func after(f, g func(b *ir.Builder, x ir.Value) ir.Value) func(n *node, x ir.Value, axes []int) ir.Value {
	return func(n *node, x ir.Value, axes []int) ir.Value {
		one := func(v []ir.Value) ir.Value {
			y := v[0]
			if f != nil {
				y = f(n.b, y)
			}
			y = n.b.ReduceKeep(ir.Sum, y, axes...)
			if g != nil {
				y = g(n.b, y)
			}
			return y
		}
		if b := n.b.DType(x); !b.IsFloat() && g != nil {
			to := n.b.DType(x)
			return n.b.Convert(one([]ir.Value{n.b.Convert(x, ir.F64)}), to)
		}
		return lower.InFloat32(n.b, one, x)
	}
}

func square(b *ir.Builder, x ir.Value) ir.Value    { return b.Binary(ir.OpMultiply, x, x) }
func absolute(b *ir.Builder, x ir.Value) ir.Value  { return b.Unary(ir.OpAbs, x) }
func root(b *ir.Builder, x ir.Value) ir.Value      { return b.Unary(ir.OpSqrt, x) }
func logarithm(b *ir.Builder, x ir.Value) ir.Value { return b.Unary(ir.OpLog, x) }

func reduceMean(n *node, x ir.Value, axes []int) ir.Value {
	if n.b.DType(x).IsInteger() {
		sum := n.b.ReduceKeep(ir.Sum, x, axes...)
		return n.b.Binary(ir.OpDivide, sum, lower.Count(n.b, x, axes, n.b.Type(sum)))
	}
	return lower.Mean(n.b, x, axes, true)
}

func reduceLogSumExp(n *node, x ir.Value, axes []int) ir.Value {
	if to := n.b.DType(x); !to.IsFloat() {
		return n.b.Convert(lower.LogSumExp(n.b, n.b.Convert(x, ir.F64), axes, true), to)
	}
	return lower.LogSumExp(n.b, x, axes, true)
}

// Norms along axes.

func lpNormalization(n *node) {
	x := n.in(0)
	axis := n.axis(n.int("axis", -1), n.b.Rank(x))
	p := n.int("p", 2)
	norm := after(absolute, nil)
	switch p {
	case 1:
	case 2:
		norm = after(square, root)
	default:
		n.wrong("p is %d", p)
	}
	y := n.b.BroadcastTo(norm(n, x, []int{axis}), n.b.Shape(x))
	// A row of zeros stays.
	zero := lower.CompareScalar(n.b, ir.EQ, y, 0)
	n.set(n.b.Select(zero, n.b.FullLike(x, 0), n.b.Binary(ir.OpDivide, x, y)))
}

func meanVarianceNormalization(n *node) {
	x := n.in(0)
	list := n.ints("axes")
	if list == nil {
		list = []int64{0, 2, 3}
	}
	axes := n.axes(list, n.b.Rank(x))
	n.set(lower.InFloat32(n.b, func(v []ir.Value) ir.Value {
		b, x := n.b, v[0]
		mean, variance := lower.Moments(b, x, axes, 0)
		d := b.Binary(ir.OpSubtract, x, b.BroadcastTo(mean, b.Shape(x)))
		deviation := lower.AddScalar(b, b.Unary(ir.OpSqrt, variance), 1e-9)
		return b.Binary(ir.OpDivide, d, b.BroadcastTo(deviation, b.Shape(x)))
	}, x))
}

// lrn sums squares over a window of channels.
func lrn(n *node) {
	x := n.in(0)
	n.rankAtLeast(x, 2)
	size := n.int("size", 0)
	if size < 1 || size > math.MaxInt32 {
		n.wrong("size %d", size)
	}
	alpha, beta, bias := n.float("alpha", 0.0001), n.float("beta", 0.75), n.float("bias", 1)
	n.set(lower.InFloat32(n.b, func(v []ir.Value) ir.Value {
		b, x := n.b, v[0]
		rank := b.Rank(x)
		a := &ir.ReduceWindowAttrs{Combine: ir.Sum, Window: ir.Consts(slices.Repeat([]int64{1}, rank)...), Strides: slices.Repeat([]int64{1}, rank),
			Dilations: slices.Repeat([]int64{1}, rank), Low: make([]ir.Dim, rank), High: make([]ir.Dim, rank)}
		a.Window[1], a.Low[1], a.High[1] = ir.Const(size), ir.Const((size-1)/2), ir.Const(size/2)
		sum := b.ReduceWindow(square(b, x), a)
		scale := b.Binary(ir.OpPower, lower.AddScalar(b, lower.Scale(b, sum, alpha/float64(size)), bias), b.FullLike(sum, beta))
		return b.Binary(ir.OpDivide, x, scale)
	}, x))
}
