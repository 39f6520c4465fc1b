package fx

import (
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// padded adds edges; the argument lists low and high padding from the last dim on. Negative
// padding of constants removes.
func (c *call) padded(mode, name string) ir.Value {
	x := c.tensor("self")
	list, _ := c.dims(name)
	rank := c.b.Rank(x)
	if len(list)%2 != 0 || len(list)/2 > rank {
		c.bad("%d numbers of padding for rank %d", len(list), rank)
	}
	low, high := make([]ir.Dim, rank), make([]ir.Dim, rank)
	for i := 0; i < len(list); i += 2 {
		low[rank-1-i/2], high[rank-1-i/2] = list[i], list[i+1]
	}
	if mode == "constant" {
		v := numberOperand(floatLiteral(0))
		if c.has("value") {
			v = c.operand("value")
		}
		return c.b.Pad(x, c.as(v, c.b.DType(x)), low, high, nil)
	}
	for axis := range rank {
		x = c.edges(x, axis, low[axis], high[axis], mode)
	}
	return x
}

// edges pads one axis with elements of x.
func (c *call) edges(x ir.Value, axis int, low, high ir.Dim, mode string) ir.Value {
	size := c.b.Shape(x)[axis]
	zero := ir.Const(0)
	if mode == "replicate" {
		return c.replicated(x, axis, low, high)
	}
	// Negative padding removes, before the edges are taken.
	from, to := zero, size
	if c.atLeast(zero, low) {
		from, low = low.Neg(), zero
	}
	if c.atLeast(zero, high) {
		to, high = size.Add(high), zero
	}
	x = c.b.SliceAxis(x, axis, from, to, 1)
	size = c.b.Shape(x)[axis]
	part := func(from, to ir.Dim) ir.Value { return c.b.SliceAxis(x, axis, from, to, 1) }
	var before, after func() ir.Value
	switch mode {
	case "reflect":
		before = func() ir.Value { return c.b.Reverse(part(ir.Const(1), low.AddConst(1)), axis) }
		after = func() ir.Value { return c.b.Reverse(part(size.Sub(high).AddConst(-1), size.AddConst(-1)), axis) }
	case "circular":
		before = func() ir.Value { return part(size.Sub(low), size) }
		after = func() ir.Value { return part(zero, high) }
	default:
		c.bad("padding mode %q", mode)
	}
	parts := []ir.Value{x}
	if !low.Is(0) {
		parts = slices.Insert(parts, 0, before())
	}
	if !high.Is(0) {
		parts = append(parts, after())
	}
	return c.b.Concatenate(axis, parts...)
}

// replicated pads one axis with copies of the elements at its ends.
func (c *call) replicated(x ir.Value, axis int, low, high ir.Dim) ir.Value {
	size := c.b.Shape(x)[axis]
	if low.Is(0) && high.Is(0) {
		return x
	}
	i := c.b.Iota(ir.I64, []ir.Dim{size.Add(low).Add(high)}, 0)
	i = c.b.Binary(ir.OpSubtract, i, c.b.Broadcast(c.b.Dim(low), c.b.Shape(i), nil))
	return c.b.Take(x, i, axis) // indices are clamped
}

// imageOf splits the shape of [..., C, H, W].
func (c *call) imageOf(x ir.Value) (lead []ir.Dim, channels, height, width ir.Dim) {
	shape := c.b.Shape(x)
	n := len(shape)
	if n < 3 {
		c.bad("an image of rank %d", n)
	}
	return shape[:n-3], shape[n-3], shape[n-2], shape[n-1]
}

// pixelShuffle is [..., C*r*r, H, W] to [..., C, H*r, W*r].
func (c *call) pixelShuffle() ir.Value {
	x, r := c.tensor("self"), c.int("upscale_factor", 1)
	lead, channels, h, w := c.imageOf(x)
	if r < 1 {
		c.bad("upscale_factor is %d", r)
	}
	factor, n := ir.Const(r), len(lead)
	out := channels.FloorDiv(ir.Const(r * r))
	x = c.b.Reshape(x, slices.Concat(lead, []ir.Dim{out, factor, factor, h, w}))
	x = c.b.Transpose(x, append(identity(n), n, n+3, n+1, n+4, n+2))
	return c.b.Reshape(x, slices.Concat(lead, []ir.Dim{out, h.MulConst(r), w.MulConst(r)}))
}

// pixelUnshuffle is the inverse of pixelShuffle.
func (c *call) pixelUnshuffle() ir.Value {
	x, r := c.tensor("self"), c.int("downscale_factor", 1)
	lead, channels, h, w := c.imageOf(x)
	if r < 1 {
		c.bad("downscale_factor is %d", r)
	}
	factor, n := ir.Const(r), len(lead)
	h, w = h.FloorDiv(factor), w.FloorDiv(factor)
	x = c.b.Reshape(x, slices.Concat(lead, []ir.Dim{channels, h, factor, w, factor}))
	x = c.b.Transpose(x, append(identity(n), n, n+2, n+4, n+1, n+3))
	return c.b.Reshape(x, slices.Concat(lead, []ir.Dim{channels.MulConst(r * r), h, w}))
}

func (c *call) channelShuffle() ir.Value {
	x, groups := c.tensor("self"), c.int("groups", 1)
	shape := c.b.Shape(x)
	if groups < 1 || len(shape) < 2 {
		c.bad("%d groups of rank %d", groups, len(shape))
	}
	g := ir.Const(groups)
	split := slices.Concat(shape[:1], []ir.Dim{g, shape[1].FloorDiv(g)}, shape[2:])
	p := identity(len(split))
	p[1], p[2] = 2, 1
	return c.b.Reshape(c.b.Transpose(c.b.Reshape(x, split), p), shape)
}

// imageToColumns is unfold of images: [N, C, H, W] to [N, C*kh*kw, positions].
func (c *call) imageToColumns() ir.Value {
	x := c.tensor("self")
	kernel, dilation := c.spatial("kernel_size", 2, 1), c.spatial("dilation", 2, 1)
	padding, stride := c.spatial("padding", 2, 0), c.spatial("stride", 2, 1)
	c.require(c.b.Rank(x) == 4, "without a batch")
	low := []ir.Dim{ir.Const(0), ir.Const(0), ir.Const(padding[0]), ir.Const(padding[1])}
	x = c.b.Pad(x, c.b.Scalar(c.b.DType(x), 0), low, low, nil)
	n, channels := c.b.Shape(x)[0], c.b.Shape(x)[1]
	// Take windows of rows, then of columns: [N, C, kh, oh, kw, ow].
	for i := range 2 {
		axis := 2 + 2*i
		size := c.b.Shape(x)[axis]
		if stride[i] < 1 || kernel[i] < 1 {
			c.bad("kernel_size or stride below 1")
		}
		count := size.AddConst(-dilation[i]*(kernel[i]-1) - 1).FloorDiv(ir.Const(stride[i])).AddConst(1)
		dims := []ir.Dim{ir.Const(kernel[i]), count}
		at := lower.Scale(c.b, c.b.Iota(ir.I64, dims, 0), float64(dilation[i]))
		at = c.b.Binary(ir.OpAdd, at, lower.Scale(c.b, c.b.Iota(ir.I64, dims, 1), float64(stride[i])))
		x = c.b.Take(x, at, axis)
	}
	shape := c.b.Shape(x)
	x = c.b.Transpose(x, []int{0, 1, 2, 4, 3, 5})
	return c.b.Reshape(x, []ir.Dim{n, channels.MulConst(kernel[0] * kernel[1]), shape[3].Mul(shape[5])})
}

// columnsToImage is fold: [N, C*kh*kw, positions] to [N, C, H, W], adding where windows overlap.
func (c *call) columnsToImage() ir.Value {
	x := c.tensor("self")
	size := c.sizes("output_size")
	kernel, dilation := c.spatial("kernel_size", 2, 1), c.spatial("dilation", 2, 1)
	padding, stride := c.spatial("padding", 2, 0), c.spatial("stride", 2, 1)
	if slices.Min(slices.Concat(kernel, stride, dilation)) < 1 || len(size) != 2 || c.b.Rank(x) < 2 || c.b.Rank(x) > 3 {
		c.bad("kernel_size, stride or dilation below 1, or no image of two dims")
	}
	c.require(kernel[0] <= maxFoldKernel && kernel[1] <= maxFoldKernel, "with a kernel of more than 64")
	lead := c.b.Shape(x)[:c.b.Rank(x)-2]
	channels, ok := c.b.Shape(x)[len(lead)].DivExact(ir.Const(kernel[0] * kernel[1]))
	if !ok {
		c.bad("%s does not hold windows of %v", c.b.Type(x), kernel)
	}
	var counts [2]ir.Dim
	for i := range counts {
		counts[i] = size[i].AddConst(2*padding[i] - dilation[i]*(kernel[i]-1) - 1).FloorDiv(ir.Const(stride[i])).AddConst(1)
	}
	x = c.b.Reshape(x, []ir.Dim{ir.Product(lead).Mul(channels), ir.Const(kernel[0]), ir.Const(kernel[1]), counts[0], counts[1]})
	x = c.foldAxis(x, 2, 4, size[1], padding[1], stride[1], dilation[1])
	x = c.foldAxis(x, 1, 2, size[0], padding[0], stride[0], dilation[0])
	return c.b.Reshape(x, slices.Concat(lead, []ir.Dim{channels, size[0], size[1]}))
}

// maxFoldKernel bounds the terms of a fold along one axis.
const maxFoldKernel = 64

// foldAxis adds the elements that a dim of offsets has for windows along an axis at their places in an
// axis of a size; the dim of offsets goes. axis counts it.
func (c *call) foldAxis(x ir.Value, offsets, axis int, size ir.Dim, padding, stride, dilation int64) ir.Value {
	shape := c.b.Shape(x)
	kernel, _ := shape[offsets].IsConst()
	rest := slices.Delete(slices.Clone(shape), offsets, offsets+1)
	if axis > offsets {
		axis--
	}
	zero := c.b.Scalar(c.b.DType(x), 0)
	reach := rest[axis].AddConst(-1).MulConst(stride).AddConst(1)
	sum := ir.NoValue
	for i := range kernel {
		part := c.b.Reshape(c.b.SliceAxis(x, offsets, ir.Const(i), ir.Const(i+1), 1), rest)
		low, high, interior := ir.Consts(make([]int64, len(rest))...), ir.Consts(make([]int64, len(rest))...), make([]int64, len(rest))
		low[axis], interior[axis] = ir.Const(i*dilation-padding), stride-1
		high[axis] = size.Sub(low[axis]).Sub(reach)
		part = c.b.Pad(part, zero, low, high, interior)
		if sum == ir.NoValue {
			sum = part
			continue
		}
		sum = c.b.Binary(ir.OpAdd, sum, part)
	}
	return sum
}

// bucketize counts the boundaries below (or, with right, at most) each element.
func (c *call) bucketize(x, boundaries ir.Value) ir.Value {
	rank := c.b.Rank(x)
	t := c.resultType(tensorOperand(x), tensorOperand(boundaries))
	x, boundaries = c.b.Convert(x, t), c.b.Convert(boundaries, t)
	dims := slices.Concat(c.b.Shape(x), c.b.Shape(boundaries))
	c.require(c.b.Rank(boundaries) == 1, "with several rows of boundaries")
	direction := ir.LT
	if c.bool("right", false) || c.string("side", "left") == "right" {
		direction = ir.LE
	}
	below := c.b.Compare(direction, c.b.Broadcast(boundaries, dims, []int{rank}), c.b.Broadcast(x, dims, identity(rank)))
	to := ir.I64
	if c.bool("out_int32", false) {
		to = ir.I32
	}
	return c.b.Reduce(ir.Sum, c.b.Convert(below, to), rank)
}

func (c *call) searchsorted() ir.Value {
	return c.bucketize(c.tensor("self"), c.tensor("sorted_sequence"))
}

// bincount counts each value below the recorded size of the result.
func (c *call) bincount() ir.Value {
	x := c.tensor("self")
	names := c.outputNames()
	if len(names) != 1 {
		c.bad("%d results", len(names))
	}
	want, _, ok := c.tensorType(names[0], c.place)
	n := int64(0)
	if ok && want.Rank() == 1 {
		n, ok = want.Shape[0].IsConst()
	}
	c.require(ok && c.int("minlength", 0) <= n, "with a result whose size depends on data")
	weights := c.optional("weights")
	if weights == ir.NoValue {
		weights = c.b.Full(c.b.Type(x).With(want.DType), 1)
	}
	zeros := c.b.Full(ir.TensorOf(want.DType, ir.Const(n)), 0)
	return c.b.Scatter(zeros, x, c.b.Convert(weights, want.DType), &ir.ScatterAttrs{Combine: ir.Sum, InsertedWindowDims: []int{0},
		ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1})
}
