package fx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// indexRules read and write by index, and join, repeat, shift and pad.
func indexRules() map[string]rule {
	t := map[string]rule{
		"index.Tensor":              value((*call).index),
		"_unsafe_index.Tensor":      value((*call).index),
		"_unsafe_index_put.default": value((*call).indexPut),
		"index_reduce.default":      value((*call).indexReduce),
		"put.default":               value((*call).put),
		"rot90.default":             value((*call).rot90),
		"msort.default":             value(func(c *call) ir.Value { return c.sortedAlong(c.tensor("self"), 0) }),
		"diagflat.default":          value(func(c *call) ir.Value { return c.diagonalMatrix(c.flat(c.tensor("self")), c.int("offset", 0)) }),
		"vstack.default":            value(func(c *call) ir.Value { return c.stacked(2, 0) }),
		"row_stack.default":         value(func(c *call) ir.Value { return c.stacked(2, 0) }),
		"dstack.default":            value(func(c *call) ir.Value { return c.stacked(3, 2) }),
		"tril_indices.default":      value(func(c *call) ir.Value { return c.triangleIndices(false) }),
		"triu_indices.default":      value(func(c *call) ir.Value { return c.triangleIndices(true) }),
		"index_put.default":         value((*call).indexPut),
		"embedding.default":         value(func(c *call) ir.Value { return c.b.Take(c.tensor("weight"), c.tensor("indices"), 0) }),
		"index_select.default": value(func(c *call) ir.Value {
			x, index := c.tensor("self"), c.tensor("index")
			axis := c.axis("dim", 0, c.b.Rank(x))
			if c.b.Rank(x) == 0 {
				return x
			}
			return c.b.Take(x, c.b.Reshape(index, []ir.Dim{ir.Product(c.b.Shape(index))}), axis)
		}),
		"index_add.default": value(func(c *call) ir.Value {
			src := c.tensor("source")
			if alpha, ok := c.literal("alpha"); ok && alpha.f != 1 {
				src = lower.Binary(c.b, ir.OpMultiply, src, alpha.scalar(c.b, c.b.DType(src)))
			}
			return c.putAlong(ir.Sum, src)
		}),
		"index_copy.default":    value(func(c *call) ir.Value { return c.putAlong(ir.Assign, c.tensor("source")) }),
		"index_fill.int_Scalar": value((*call).indexFill),
		"index_fill.int_Tensor": value((*call).indexFill),
		"gather.default": value(func(c *call) ir.Value {
			return c.gatherAlong(c.tensor("self"), c.tensor("index"), c.axis("dim", 0, c.b.Rank(c.tensor("self"))))
		}),
		"take.default": value(func(c *call) ir.Value {
			x := c.tensor("self")
			n := ir.Product(c.b.Shape(x))
			return c.b.Take(c.b.Reshape(x, []ir.Dim{n}), lower.WrapIndex(c.b, c.tensor("index"), n), 0)
		}),
		"take_along_dim.default": value((*call).takeAlong),
		"scatter.src":            value(func(c *call) ir.Value { return c.scatterAlong(ir.Assign, c.tensor("src")) }),
		"scatter.value":          value(func(c *call) ir.Value { return c.scatterAlong(ir.Assign, c.scatterValue()) }),
		"scatter.reduce":         value(func(c *call) ir.Value { return c.scatterAlong(c.combine(c.string("reduce", "")), c.tensor("src")) }),
		"scatter.value_reduce":   value(func(c *call) ir.Value { return c.scatterAlong(c.combine(c.string("reduce", "")), c.scatterValue()) }),
		"scatter_add.default":    value(func(c *call) ir.Value { return c.scatterAlong(ir.Sum, c.tensor("src")) }),
		"scatter_reduce.two":     value((*call).scatterReduce),
		"masked_fill.Scalar":     value(func(c *call) ir.Value { return c.maskedFill(c.operand("value")) }),
		"masked_fill.Tensor":     value(func(c *call) ir.Value { return c.maskedFill(c.operand("value")) }),
		"masked_scatter.default": value((*call).maskedScatter),
		"cat.default":            value((*call).cat),
		"concat.default":         value((*call).cat),
		"concatenate.default":    value((*call).cat),
		"stack.default": value(func(c *call) ir.Value {
			xs := c.promoted(c.tensors("tensors"))
			return lower.Stack(c.b, c.axis("dim", 0, c.b.Rank(xs[0])+1), xs...)
		}),
		"hstack.default": value(func(c *call) ir.Value {
			xs := c.promoted(c.tensors("tensors"))
			return c.b.Concatenate(min(1, c.b.Rank(xs[0])-1), xs...)
		}),
		"roll.default":                   value((*call).roll),
		"flip.default":                   value(func(c *call) ir.Value { x := c.tensor("self"); return c.flipped(x) }),
		"fliplr.default":                 value(func(c *call) ir.Value { return c.reversed(c.tensor("self"), []int{1}) }),
		"flipud.default":                 value(func(c *call) ir.Value { return c.reversed(c.tensor("self"), []int{0}) }),
		"repeat.default":                 value(func(c *call) ir.Value { return c.repeated(c.tensor("self"), c.sizes("repeats")) }),
		"tile.default":                   value(func(c *call) ir.Value { return c.repeated(c.tensor("self"), c.sizes("dims")) }),
		"repeat_interleave.self_int":     value((*call).repeatInterleave),
		"constant_pad_nd.default":        value(func(c *call) ir.Value { return c.padded("constant", "pad") }),
		"pad.default":                    value(func(c *call) ir.Value { return c.padded(c.string("mode", "constant"), "pad") }),
		"_pad_circular.default":          value(func(c *call) ir.Value { return c.padded("circular", "pad") }),
		"pixel_shuffle.default":          value((*call).pixelShuffle),
		"pixel_unshuffle.default":        value((*call).pixelUnshuffle),
		"channel_shuffle.default":        value((*call).channelShuffle),
		"native_channel_shuffle.default": value((*call).channelShuffle),
		"im2col.default":                 value((*call).imageToColumns),
		"col2im.default":                 value((*call).columnsToImage),
		"bucketize.Tensor":               value(func(c *call) ir.Value { return c.bucketize(c.tensor("self"), c.tensor("boundaries")) }),
		"searchsorted.Tensor":            value((*call).searchsorted),
		"bincount.default":               value((*call).bincount),
	}
	for _, n := range []string{"1d", "2d", "3d"} {
		t["reflection_pad"+n+".default"] = value(func(c *call) ir.Value { return c.padded("reflect", "padding") })
		t["replication_pad"+n+".default"] = value(func(c *call) ir.Value { return c.padded("replicate", "padding") })
	}
	return t
}

// advanced is the indexing of x by several index tensors, by NumPy's rules.
type advanced struct {
	axes    []int    // that are indexed
	vectors ir.Value // index vectors, in the last dim when there are several axes
	batch   []ir.Dim // the common shape of the index tensors
	offsets []int    // where the other dims of x are in the result
	result  []ir.Dim
}

// advancedIndex reads the argument indices; masks of bools must be handled before.
func (c *call) advancedIndex(x ir.Value, indices []*tensor) advanced {
	var a advanced
	var list []ir.Value
	shape := c.b.Shape(x)
	if len(indices) > len(shape) {
		c.bad("%d indices for rank %d", len(indices), len(shape))
	}
	for i, t := range indices {
		if t == nil {
			continue
		}
		v := t.read(c.b)
		c.require(c.b.DType(v).IsInteger(), "by a mask, whose result has a size that depends on data")
		a.axes = append(a.axes, i)
		list = append(list, c.b.Convert(lower.WrapIndex(c.b, v, shape[i]), ir.I64))
	}
	if len(list) == 0 {
		c.bad("there is no index")
	}
	list = lower.Broadcast(c.b, list...)
	a.batch = c.b.Shape(list[0])
	a.vectors = list[0]
	if len(list) > 1 {
		a.vectors = lower.Stack(c.b, len(a.batch), list...)
	}
	// The batch dims take the place of adjacent indices, else they go in front.
	first, at := 0, 0
	if a.axes[len(a.axes)-1]-a.axes[0] == len(a.axes)-1 {
		first = a.axes[0]
	}
	for i, d := range shape {
		if slices.Contains(a.axes, i) {
			continue
		}
		if at == first {
			at += len(a.batch)
		}
		a.offsets = append(a.offsets, at)
		a.result = append(a.result, d)
		at++
	}
	a.result = slices.Insert(a.result, min(first, len(a.result)), a.batch...)
	return a
}

func (c *call) index() ir.Value {
	x := c.tensor("self")
	a := c.advancedIndex(x, c.handles("indices"))
	g := &ir.GatherAttrs{OffsetDims: a.offsets, CollapsedSliceDims: a.axes, StartIndexMap: a.axes, IndexVectorDim: len(a.batch)}
	g.SliceSizes = slices.Clone(c.b.Shape(x))
	for _, axis := range a.axes {
		g.SliceSizes[axis] = ir.Const(1)
	}
	return c.b.Gather(x, a.vectors, g)
}

func (c *call) indexPut() ir.Value {
	x, indices, values := c.tensor("self"), c.handles("indices"), c.tensor("values")
	combine := ir.Assign
	if c.bool("accumulate", false) {
		combine = ir.Sum
	}
	values = c.b.Convert(values, c.b.DType(x))
	if mask, axis, ok := c.onlyMask(indices); ok && combine == ir.Assign && ir.Product(c.b.Shape(values)).Is(1) {
		return c.fillWhere(x, mask, axis, c.b.Reshape(values, nil))
	}
	a := c.advancedIndex(x, indices)
	return c.b.Scatter(x, a.vectors, lower.Expand(c.b, values, a.result), &ir.ScatterAttrs{Combine: combined(combine, c.b.DType(x)), UpdateWindowDims: a.offsets,
		InsertedWindowDims: a.axes, ScatterDimsToOperandDims: a.axes, IndexVectorDim: len(a.batch)})
}

// onlyMask is the single index of a list when it is a mask of bools.
func (c *call) onlyMask(indices []*tensor) (mask ir.Value, axis int, ok bool) {
	axis = -1
	for i, t := range indices {
		if t == nil {
			continue
		}
		if v := t.read(c.b); axis < 0 && c.b.DType(v) == ir.Bool {
			mask, axis = v, i
		} else {
			return mask, axis, false
		}
	}
	return mask, axis, axis >= 0
}

// fillWhere puts a scalar where a mask over the dims from axis on is true.
func (c *call) fillWhere(x, mask ir.Value, axis int, v ir.Value) ir.Value {
	shape := c.b.Shape(x)
	axes := make([]int, c.b.Rank(mask))
	for i := range axes {
		axes[i] = axis + i
	}
	return c.b.Select(c.b.Broadcast(mask, shape, axes), c.b.Broadcast(v, shape, nil), x)
}

// putAlong combines slices of src into self along dim at the positions of index.
func (c *call) putAlong(combine ir.Combine, src ir.Value) ir.Value {
	return c.putInto(c.tensor("self"), combine, src)
}

func (c *call) putInto(x ir.Value, combine ir.Combine, src ir.Value) ir.Value {
	index := c.tensor("index")
	rank := c.b.Rank(x)
	axis := c.axis("dim", 0, rank)
	if rank == 0 {
		one := ir.Consts[int64](1)
		n := ir.Product(c.b.Shape(index))
		r := c.b.Scatter(c.b.Reshape(x, one), c.b.Reshape(index, []ir.Dim{n}), lower.Expand(c.b, c.b.Convert(src, c.b.DType(x)), []ir.Dim{n}),
			&ir.ScatterAttrs{Combine: combined(combine, c.b.DType(x)), InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1})
		return c.b.Reshape(r, nil)
	}
	n := ir.Product(c.b.Shape(index))
	dims := slices.Clone(c.b.Shape(x))
	dims[axis] = n
	windows := slices.Delete(identity(rank), axis, axis+1)
	src = lower.Expand(c.b, c.b.Convert(src, c.b.DType(x)), dims)
	wrapped := lower.WrapIndex(c.b, c.b.Reshape(index, []ir.Dim{n}), c.b.Shape(x)[axis])
	return c.b.Scatter(x, wrapped, src, &ir.ScatterAttrs{Combine: combined(combine, c.b.DType(x)), UpdateWindowDims: windows,
		InsertedWindowDims: []int{axis}, ScatterDimsToOperandDims: []int{axis}, IndexVectorDim: 1})
}

func (c *call) indexFill() ir.Value {
	return c.putAlong(ir.Assign, c.as(c.operand("value"), c.b.DType(c.tensor("self"))))
}

// gatherAlong takes x[..., index, ...] along an axis; index has the rank of x, and its other
// dims may be smaller than those of x.
func (c *call) gatherAlong(x, index ir.Value, axis int) ir.Value {
	rank := c.b.Rank(x)
	if c.b.Rank(index) != rank {
		c.unsupported(" with an index of another rank")
	}
	if rank == 0 {
		return x
	}
	g := &ir.GatherAttrs{CollapsedSliceDims: []int{axis}, StartIndexMap: []int{axis}, IndexVectorDim: rank}
	for i, d := range c.b.Shape(index) {
		g.SliceSizes = append(g.SliceSizes, ir.Const(1))
		if i == axis {
			continue
		}
		if !d.Equal(c.b.Shape(x)[i]) {
			x = c.b.SliceAxis(x, i, ir.Const(0), d, 1)
		}
		g.OperandBatchingDims = append(g.OperandBatchingDims, i)
		g.StartIndicesBatchingDims = append(g.StartIndicesBatchingDims, i)
	}
	return c.b.Gather(x, index, g)
}

func (c *call) takeAlong() ir.Value {
	x, index := c.tensor("self"), c.tensor("indices")
	if !c.has("dim") {
		n := ir.Product(c.b.Shape(x))
		return c.b.Take(c.b.Reshape(x, []ir.Dim{n}), c.b.Reshape(index, []ir.Dim{ir.Product(c.b.Shape(index))}), 0)
	}
	axis := c.axis("dim", 0, c.b.Rank(x))
	if c.b.Rank(index) != c.b.Rank(x) {
		c.bad("an index of another rank")
	}
	// All dims but the axis broadcast against each other.
	xs, is := slices.Clone(c.b.Shape(x)), slices.Clone(c.b.Shape(index))
	for i := range xs {
		if i == axis {
			continue
		}
		if xs[i].Is(1) {
			xs[i] = is[i]
		} else {
			is[i] = xs[i]
		}
	}
	return c.gatherAlong(lower.Expand(c.b, x, xs), lower.WrapIndex(c.b, lower.Expand(c.b, index, is), xs[axis]), axis)
}

// scatterValue is the number of scatter.value in the shape of index.
func (c *call) scatterValue() ir.Value {
	return lower.Expand(c.b, c.as(c.operand("value"), c.b.DType(c.tensor("self"))), c.b.Shape(c.tensor("index")))
}

func (c *call) combine(name string) ir.Combine {
	switch name {
	case "add", "sum", "mean":
		return ir.Sum
	case "multiply", "prod":
		return ir.Mul
	case "amax":
		return ir.Max
	case "amin":
		return ir.Min
	}
	c.bad("reduce is %q", name)
	return ir.Sum
}

func (c *call) scatterAlong(combine ir.Combine, src ir.Value) ir.Value {
	x := c.tensor("self")
	return c.scatterInto(x, combine, src)
}

// scatterInto combines src into x at x[..., index, ...] along dim. Index has the rank of x;
// its dims may be smaller than those of src and, but for dim, those of x.
func (c *call) scatterInto(x ir.Value, combine ir.Combine, src ir.Value) ir.Value {
	index := c.tensor("index")
	rank := c.b.Rank(x)
	axis := c.axis("dim", 0, rank)
	if rank == 0 || c.b.Rank(index) == 0 || c.b.Rank(src) == 0 {
		shape := c.b.Shape(x) // scalars are vectors of one element
		c.require(rank <= 1 && c.b.Rank(index) <= 1 && c.b.Rank(src) <= 1, "of scalars and tensors of higher rank")
		r := c.scatterAlongAxis(c.flat(x), c.flat(index), c.flat(src), combine, 0)
		return c.b.Reshape(r, shape)
	}
	if c.b.Rank(index) != rank || c.b.Rank(src) != rank {
		c.bad("an index of rank %d and a source of rank %d for rank %d", c.b.Rank(index), c.b.Rank(src), rank)
	}
	return c.scatterAlongAxis(x, index, src, combine, axis)
}

func (c *call) scatterAlongAxis(x, index, src ir.Value, combine ir.Combine, axis int) ir.Value {
	rank := c.b.Rank(x)
	dims := c.b.Shape(index)
	for i, d := range dims {
		if !d.Equal(c.b.Shape(src)[i]) {
			src = c.b.SliceAxis(src, i, ir.Const(0), d, 1)
		}
	}
	src = c.b.Convert(src, c.b.DType(x))
	a := &ir.ScatterAttrs{Combine: combined(combine, c.b.DType(x)), IndexVectorDim: rank}
	whole := slices.Delete(slices.Clone(c.b.Shape(x)), axis, axis+1)
	if ir.SameShape(whole, slices.Delete(slices.Clone(dims), axis, axis+1)) {
		a.InsertedWindowDims, a.ScatterDimsToOperandDims = []int{axis}, []int{axis}
		a.InputBatchingDims = slices.Delete(identity(rank), axis, axis+1)
		a.ScatterIndicesBatchingDims = a.InputBatchingDims
		return c.b.Scatter(x, index, src, a)
	}
	parts := make([]ir.Value, rank)
	for i := range parts {
		parts[i] = c.b.Iota(ir.I64, dims, i)
	}
	parts[axis] = c.b.Convert(index, ir.I64)
	a.InsertedWindowDims, a.ScatterDimsToOperandDims = identity(rank), identity(rank)
	return c.b.Scatter(x, lower.Stack(c.b, rank, parts...), src, a)
}

// scatterReduce is scatter_reduce: without self, positions that are written start from the
// identity of the reduction; the mean divides by the number of contributions.
func (c *call) scatterReduce() ir.Value {
	x, src := c.tensor("self"), c.tensor("src")
	mode := c.string("reduce", "")
	combine := c.combine(mode)
	include := c.bool("include_self", true)
	start := x
	if !include {
		start = c.scatterInto(x, ir.Assign, c.b.FullLike(src, identityOf(combine, c.b.DType(x))))
	}
	r := c.scatterInto(start, combine, src)
	if mode != "mean" {
		return r
	}
	ones, zeros := c.b.FullLike(src, 1), c.b.FullLike(x, 0)
	return c.scatteredMean(r, c.scatterInto(zeros, ir.Sum, ones), include)
}

// scatteredMean divides sums by how many were added to each, and by one more where what was there counts.
func (c *call) scatteredMean(sums, counts ir.Value, include bool) ir.Value {
	if include {
		counts = lower.AddScalar(c.b, counts, 1)
	}
	counts = c.b.Binary(ir.OpMaximum, counts, c.b.FullLike(counts, 1))
	if c.b.DType(sums).IsFloat() {
		return c.b.Binary(ir.OpDivide, sums, counts)
	}
	return lower.FloorDiv(c.b, sums, counts)
}

// indexReduce combines slices of source into self; the mean divides by the contributions.
func (c *call) indexReduce() ir.Value {
	x, src, mode := c.tensor("self"), c.tensor("source"), c.string("reduce", "")
	include := c.bool("include_self", true)
	combine := c.combine(mode)
	start := x
	if !include {
		start = c.putInto(x, ir.Assign, c.b.FullLike(src, identityOf(combine, c.b.DType(x))))
	}
	r := c.putInto(start, combine, src)
	if mode != "mean" {
		return r
	}
	return c.scatteredMean(r, c.putInto(c.b.FullLike(x, 0), ir.Sum, c.b.FullLike(src, 1)), include)
}

// put writes source at flat places of self.
func (c *call) put() ir.Value {
	x, index, src := c.tensor("self"), c.flat(c.tensor("index")), c.flat(c.tensor("source"))
	combine := ir.Assign
	if c.bool("accumulate", false) {
		combine = ir.Sum
	}
	flat := c.flat(x)
	index = lower.WrapIndex(c.b, index, c.b.Shape(flat)[0])
	r := c.b.Scatter(flat, index, src, &ir.ScatterAttrs{Combine: combined(combine, c.b.DType(x)), InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1})
	return c.b.Reshape(r, c.b.Shape(x))
}

// rot90 turns a plane k times by a quarter, from the first of dims toward the second.
func (c *call) rot90() ir.Value {
	x, k := c.tensor("self"), c.int("k", 1)&3
	rank := c.b.Rank(x)
	dims := c.ints("dims", 0, 1)
	if len(dims) != 2 || rank < 2 {
		c.bad("%d dims of rank %d", len(dims), rank)
	}
	i, j := c.wrap("dims", dims[0], rank), c.wrap("dims", dims[1], rank)
	p := identity(rank)
	p[i], p[j] = j, i
	switch k {
	case 1:
		return c.b.Transpose(c.b.Reverse(x, j), p)
	case 2:
		return c.b.Reverse(c.b.Reverse(x, i), j)
	case 3:
		return c.b.Transpose(c.b.Reverse(x, i), p)
	}
	return x
}

func (c *call) sortedAlong(x ir.Value, axis int) ir.Value {
	if c.b.Rank(x) == 0 {
		return x
	}
	return c.b.Sort(&ir.SortAttrs{Axis: axis}, x)[0]
}

// stacked joins tensors along an axis after they have at least a rank.
func (c *call) stacked(rank, axis int) ir.Value {
	xs := c.promoted(c.tensors("tensors"))
	for i, x := range xs {
		xs[i] = c.atLeastRank(newTensor(x), rank).read(c.b)
	}
	return c.b.Concatenate(axis, xs...)
}

// triangleIndices lists the places of a triangle of a matrix, row by row: [2, n].
func (c *call) triangleIndices(upper bool) ir.Value {
	rows, columns, offset := c.int("row", 0), c.int("col", 0), c.int("offset", 0)
	if rows < 0 || columns < 0 || columns > 0 && rows > 1<<20/columns {
		c.bad("%d rows and %d columns", rows, columns)
	}
	var at [2][]int64
	for r := range rows {
		for k := range columns {
			if upper && k-r >= offset || !upper && k-r <= offset {
				at[0], at[1] = append(at[0], r), append(at[1], k)
			}
		}
	}
	t := ir.I64s(slices.Concat(at[0], at[1]), 2, int64(len(at[0])))
	return c.b.Convert(c.b.Constant(t), c.dtype("dtype", ir.I64))
}

// combined is the way to combine elements of a type: bools are added and multiplied as "or" and
// "and".
func combined(combine ir.Combine, t ir.DType) ir.Combine {
	if t == ir.Bool {
		switch combine {
		case ir.Sum:
			return ir.Or
		case ir.Mul:
			return ir.And
		}
	}
	return combine
}

// identityOf leaves any element unchanged when combined with it.
func identityOf(combine ir.Combine, t ir.DType) float64 {
	switch combine {
	case ir.Mul:
		return 1
	case ir.Max, ir.Min:
		limit := math.Inf(1)
		if t.IsInteger() {
			limit = 1 << 63 // saturates
		}
		if t == ir.Bool {
			if combine == ir.Max {
				return 0
			}
			return 1
		}
		if combine == ir.Max {
			return -limit
		}
		return limit
	}
	return 0
}

// maskedFill puts a number (or a tensor of one) where mask is true, in the type of self.
func (c *call) maskedFill(v operand) ir.Value {
	x := c.tensor("self")
	return lower.Where(c.b, lower.Truth(c.b, c.tensor("mask")), c.as(v, c.b.DType(x)), x)
}

// maskedScatter puts the elements of source, in their order, where mask is true.
func (c *call) maskedScatter() ir.Value {
	x, source := c.tensor("self"), c.tensor("source")
	v := lower.Broadcast(c.b, x, c.tensor("mask"))
	x, mask := v[0], v[1]
	flat := []ir.Dim{ir.Product(c.b.Shape(x))}
	ones := c.b.Convert(c.b.Reshape(mask, flat), ir.I64)
	rank := c.b.Cumulative(ones, &ir.CumulativeAttrs{Combine: ir.Sum, Exclusive: true})
	picked := c.b.Take(c.b.Reshape(source, []ir.Dim{ir.Product(c.b.Shape(source))}), rank, 0)
	return c.b.Select(mask, c.b.Reshape(picked, c.b.Shape(x)), x)
}

// promoted brings tensors of a list to their common type.
func (c *call) promoted(xs []ir.Value) []ir.Value {
	if len(xs) == 0 {
		c.bad("the list of tensors is empty")
	}
	operands := make([]operand, len(xs))
	for i, x := range xs {
		operands[i] = tensorOperand(x)
	}
	t := c.resultType(operands...)
	for i, x := range xs {
		xs[i] = c.b.Convert(x, t)
	}
	return xs
}

// cat joins along dim; empty vectors are left out whatever the rank of the others.
func (c *call) cat() ir.Value {
	xs := c.promoted(c.tensors("tensors"))
	whole := slices.DeleteFunc(slices.Clone(xs), func(x ir.Value) bool {
		return c.b.Rank(x) == 1 && c.b.Shape(x)[0].Is(0)
	})
	if len(whole) == 0 {
		return xs[0]
	}
	return c.b.Concatenate(c.axis("dim", 0, c.b.Rank(whole[0])), whole...)
}

// flipped reverses the argument dims; none are none.
func (c *call) flipped(x ir.Value) ir.Value {
	if len(c.ints("dims")) == 0 {
		return x
	}
	return c.reversed(x, c.axes("dims", c.b.Rank(x)))
}

func (c *call) reversed(x ir.Value, axes []int) ir.Value {
	if len(axes) == 0 {
		return x
	}
	return c.b.Reverse(x, axes...)
}

func (c *call) roll() ir.Value {
	x := c.tensor("self")
	shape := c.b.Shape(x)
	shifts, _ := c.dims("shifts")
	axes := c.ints("dims")
	if len(axes) == 0 {
		if len(shifts) != 1 {
			c.bad("%d shifts without dims", len(shifts))
		}
		flat := c.b.Reshape(x, []ir.Dim{ir.Product(shape)})
		return c.b.Reshape(c.shifted(flat, 0, shifts[0]), shape)
	}
	if len(axes) != len(shifts) {
		c.bad("%d shifts for %d dims", len(shifts), len(axes))
	}
	for i, a := range axes {
		x = c.shifted(x, c.wrap("dims", a, len(shape)), shifts[i])
	}
	return x
}

// shifted moves elements up by shift along an axis, around the end.
func (c *call) shifted(x ir.Value, axis int, shift ir.Dim) ir.Value {
	size := c.b.Shape(x)[axis]
	if size.Is(0) {
		return x
	}
	at := size.Sub(shift.Mod(size))
	return c.b.Concatenate(axis, c.b.SliceAxis(x, axis, at, size, 1), c.b.SliceAxis(x, axis, ir.Const(0), at, 1))
}

// repeated tiles: repeats[i] copies along dim i, where missing leading numbers or dims are 1.
func (c *call) repeated(x ir.Value, repeats []ir.Dim) ir.Value {
	shape := slices.Clone(c.b.Shape(x))
	for len(shape) < len(repeats) {
		shape = slices.Insert(shape, 0, ir.Const(1))
	}
	for len(repeats) < len(shape) {
		repeats = slices.Insert(slices.Clone(repeats), 0, ir.Const(1))
	}
	var split, wide, dims []ir.Dim
	for i, d := range shape {
		if !repeats[i].Is(1) {
			split, wide = append(split, ir.Const(1)), append(wide, repeats[i])
		}
		split, wide = append(split, d), append(wide, d)
		dims = append(dims, d.Mul(repeats[i]))
	}
	x = c.b.Reshape(x, split)
	return c.b.Reshape(c.b.BroadcastTo(x, wide), dims)
}

func (c *call) repeatInterleave() ir.Value {
	x := c.tensor("self")
	n, _ := c.dim("repeats")
	c.arg("output_size")
	axis := 0
	if c.has("dim") {
		axis = c.axis("dim", 0, c.b.Rank(x))
	} else {
		x = c.b.Reshape(x, []ir.Dim{ir.Product(c.b.Shape(x))})
	}
	shape := c.b.Shape(x)
	if len(shape) == 0 {
		c.bad("a scalar has no dim to repeat along")
	}
	split := slices.Insert(slices.Clone(shape), axis+1, ir.Const(1))
	wide := slices.Clone(split)
	wide[axis+1] = n
	dims := slices.Clone(shape)
	dims[axis] = dims[axis].Mul(n)
	return c.b.Reshape(c.b.BroadcastTo(c.b.Reshape(x, split), wide), dims)
}
