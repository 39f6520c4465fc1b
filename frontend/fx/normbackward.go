package fx

import (
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// addNormBackwardRules adds gradients of normalisations and of convolutions.
func addNormBackwardRules(t map[string]rule) {
	t["native_layer_norm_backward.default"] = values((*call).layerNormBackward)
	t["convolution_backward.default"] = values((*call).convolutionBackward)
	t["avg_pool2d_backward.default"] = value((*call).averagePoolBackward)
}

// wanted reads output_mask: which gradients are asked for.
func (c *call) wanted(n int) []bool {
	mask := make([]bool, n)
	a, ok := c.arg("output_mask")
	for i := range mask {
		mask[i] = !ok || i < len(a.list) && a.list[i].i != 0
	}
	return mask
}

// layerNormBackward gives the gradients of input, weight and bias from mean and rstd.
func (c *call) layerNormBackward() []ir.Value {
	dy, x, mean, rstd := c.tensor("grad_out"), c.tensor("input"), c.tensor("mean"), c.tensor("rstd")
	weight, bias := c.optional("weight"), c.optional("bias")
	rank, all := c.normalizedRank(x), c.b.Rank(x)
	inner := identity(all)[all-rank:]
	outer := identity(all)[:all-rank]
	b, t := c.b, c.b.DType(x)
	wide := b.DType(mean)
	grow := func(v ir.Value) ir.Value { return b.BroadcastTo(b.Convert(v, wide), b.Shape(x)) }
	dyw, normal := grow(dy), b.Binary(ir.OpMultiply, b.Binary(ir.OpSubtract, grow(x), grow(mean)), grow(rstd))
	g := dyw
	if weight != ir.NoValue {
		g = b.Binary(ir.OpMultiply, dyw, grow(weight))
	}
	average := func(v ir.Value) ir.Value { return grow(lower.Mean(b, v, inner, true)) }
	dx := b.Binary(ir.OpSubtract, g, average(g))
	dx = b.Binary(ir.OpSubtract, dx, b.Binary(ir.OpMultiply, normal, average(b.Binary(ir.OpMultiply, g, normal))))
	dx = b.Binary(ir.OpMultiply, dx, grow(rstd))
	results := []ir.Value{b.Convert(dx, t), ir.NoValue, ir.NoValue}
	if weight != ir.NoValue {
		results[1] = b.Convert(b.Reduce(ir.Sum, b.Binary(ir.OpMultiply, dyw, normal), outer...), t)
	}
	if bias != ir.NoValue {
		results[2] = b.Convert(b.Reduce(ir.Sum, dyw, outer...), t)
	}
	return c.masked(results)
}

// masked leaves out gradients that are not asked for.
func (c *call) masked(results []ir.Value) []ir.Value {
	for i, want := range c.wanted(len(results)) {
		if !want {
			results[i] = ir.NoValue
		}
	}
	return results
}

// convolutionBackward gives the gradients of input, kernel and bias.
func (c *call) convolutionBackward() []ir.Value {
	dy, x, kernel := c.tensor("grad_output"), c.tensor("input"), c.tensor("weight")
	n := c.b.Rank(x) - 2
	if n < 1 || c.b.Rank(dy) != n+2 || c.b.Rank(kernel) != n+2 {
		c.bad("operands of rank %d, %d and %d", c.b.Rank(dy), c.b.Rank(x), c.b.Rank(kernel))
	}
	c.require(!c.bool("transposed", false), "of transposed convolutions")
	c.spatial("output_padding", n, 0)
	c.arg("bias_sizes")
	stride, padding, dilation := c.spatial("stride", n, 1), c.spatial("padding", n, 0), c.spatial("dilation", n, 1)
	groups := c.int("groups", 1)
	if slices.Min(stride) < 1 || slices.Min(dilation) < 1 {
		c.bad("a stride or dilation below 1")
	}
	want := c.wanted(3)
	results := []ir.Value{ir.NoValue, ir.NoValue, ir.NoValue}
	if want[0] {
		results[0] = c.convolutionInputGradient(dy, x, kernel, stride, padding, dilation, groups)
	}
	if want[1] {
		results[1] = c.convolutionKernelGradient(dy, x, kernel, stride, padding, dilation, groups)
	}
	if want[2] {
		results[2] = c.b.Reduce(ir.Sum, dy, slices.Delete(identity(n+2), 1, 2)...)
	}
	return results
}

// convolutionInputGradient convolves the gradient, dilated by the stride, with the reversed
// kernel whose channels are exchanged within groups.
func (c *call) convolutionInputGradient(dy, x, kernel ir.Value, stride, padding, dilation []int64, groups int64) ir.Value {
	n := len(stride)
	shape := c.b.Shape(kernel)
	c.groups(dy, groups)
	a := &ir.ConvolutionAttrs{Strides: slices.Repeat([]int64{1}, n), LhsDilation: stride, RhsDilation: dilation, Groups: groups, ReverseKernel: true}
	for i := range n {
		low := shape[2+i].AddConst(-1).MulConst(dilation[i]).AddConst(-padding[i])
		spread := c.b.Shape(dy)[2+i].AddConst(-1).MulConst(stride[i])
		// The result has the input's size: size - 1 = spread + low + high - (k-1)*dilation.
		high := c.b.Shape(x)[2+i].AddConst(-1).Sub(spread).AddConst(padding[i])
		a.Low, a.High = append(a.Low, low), append(a.High, high)
	}
	per := shape[0].FloorDiv(ir.Const(groups))
	split := slices.Concat([]ir.Dim{ir.Const(groups), per}, shape[1:])
	p := identity(len(split))
	p[1], p[2] = 2, 1
	swapped := c.b.Transpose(c.b.Reshape(kernel, split), p)
	swapped = c.b.Reshape(swapped, slices.Concat([]ir.Dim{shape[1].MulConst(groups), per}, shape[2:]))
	return c.b.Convolution(dy, swapped, a)
}

// convolutionKernelGradient convolves the input with the gradient, over the batch: with batch
// and channels exchanged, each group on its own.
func (c *call) convolutionKernelGradient(dy, x, kernel ir.Value, stride, padding, dilation []int64, groups int64) ir.Value {
	n := len(stride)
	swap := identity(n + 2)
	swap[0], swap[1] = 1, 0
	shape := c.b.Shape(kernel)
	c.groups(dy, groups)
	c.groups(x, groups)
	a := &ir.ConvolutionAttrs{Strides: dilation, LhsDilation: slices.Repeat([]int64{1}, n), RhsDilation: stride, Groups: 1}
	for i := range n {
		// The result has the kernel's size: (k-1)*dilation + 1 positions, one each dilation.
		reach := c.b.Shape(dy)[2+i].AddConst(-1).MulConst(stride[i])
		high := shape[2+i].AddConst(-1).MulConst(dilation[i]).Add(reach).AddConst(1 - padding[i]).Sub(c.b.Shape(x)[2+i])
		a.Low, a.High = append(a.Low, ir.Const(padding[i])), append(a.High, high)
	}
	in, out := c.b.Shape(x)[1].FloorDiv(ir.Const(groups)), c.b.Shape(dy)[1].FloorDiv(ir.Const(groups))
	c.require(groups <= 4096, "with very many groups")
	parts := make([]ir.Value, groups)
	for g := range groups {
		part := func(v ir.Value, per ir.Dim) ir.Value {
			return c.b.Transpose(c.b.SliceAxis(v, 1, per.MulConst(g), per.MulConst(g+1), 1), swap)
		}
		// [C/groups, N, ...] with kernels [O/groups, N, ...] gives [C/groups, O/groups, ...].
		parts[g] = c.b.Transpose(c.b.Convolution(part(x, in), part(dy, out), a), swap)
	}
	return c.b.Concatenate(0, parts...)
}

// averagePoolBackward spreads each gradient evenly over its window.
func (c *call) averagePoolBackward() ir.Value {
	dy, x := c.tensor("grad_output"), c.tensor("self")
	c.require(!c.bool("ceil_mode", false) && c.bool("count_include_pad", true), "in ceil_mode or without padding")
	p := c.pool(2, false)
	divisor := c.int("divisor_override", 0)
	rank := c.b.Rank(x)
	if divisor == 0 {
		divisor = p.Window[0] * p.Window[1]
	}
	low, high, interior := make([]ir.Dim, rank), make([]ir.Dim, rank), make([]int64, rank)
	a := &ir.ReduceWindowAttrs{Combine: ir.Sum}
	for i := range rank {
		window, first := int64(1), rank-2
		if i >= first {
			k := i - first
			window = p.Window[k]
			interior[i] = p.Strides[k] - 1
			low[i] = ir.Const(window - 1).Sub(p.Low[k])
			spread := c.b.Shape(dy)[i].AddConst(-1).MulConst(p.Strides[k])
			high[i] = c.b.Shape(x)[i].AddConst(-1).Sub(spread).Add(p.Low[k])
		}
		a.Window, a.Strides, a.Dilations = append(a.Window, ir.Const(window)), append(a.Strides, 1), append(a.Dilations, 1)
		a.Low, a.High = append(a.Low, ir.Const(0)), append(a.High, ir.Const(0))
	}
	scaled := lower.Scale(c.b, dy, 1/float64(divisor))
	return c.b.ReduceWindow(c.b.Pad(scaled, c.b.Scalar(c.b.DType(dy), 0), low, high, interior), a)
}
