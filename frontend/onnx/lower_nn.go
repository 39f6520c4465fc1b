package onnx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

func matMul(n *node) { n.set(n.matmul(n.in(0), n.in(1))) }

// matmul is numpy.matmul, after the contracted and the batch dims are stated to be equal.
func (n *node) matmul(x, y ir.Value) ir.Value {
	n.rankAtLeast(x, 1)
	n.rankAtLeast(y, 1)
	xs, ys := n.b.Shape(x), n.b.Shape(y)
	n.unifyDims(xs[len(xs)-1], ys[max(0, len(ys)-2)])
	if len(xs) > 2 && len(ys) > 2 {
		n.unifyAlignedDims(xs[:len(xs)-2], ys[:len(ys)-2])
	}
	return lower.Matmul(n.b, x, y)
}

func gemm(n *node) {
	x, y := n.in(0), n.in(1)
	b := n.b
	if b.Rank(x) != 2 || b.Rank(y) != 2 {
		n.wrong("operands are %s and %s, not matrices", b.Type(x), b.Type(y))
	}
	a := &ir.DotAttrs{LhsContract: []int{1}, RhsContract: []int{0}}
	if n.flag("transA", false) {
		a.LhsContract[0] = 0
	}
	if n.flag("transB", false) {
		a.RhsContract[0] = 1
	}
	n.unifyDims(b.Shape(x)[a.LhsContract[0]], b.Shape(y)[a.RhsContract[0]])
	alpha, beta := n.float("alpha", 1), n.float("beta", 1)
	product := func(to ir.DType) ir.Value {
		a.To = to
		p := b.DotGeneral(x, y, a)
		if alpha != 1 {
			p = lower.Scale(b, p, alpha)
		}
		return p
	}
	bias := n.opt(2)
	if bias != ir.NoValue && beta != 1 {
		bias = lower.Scale(b, bias, beta)
	}
	n.set(lower.AddBias(b, bias, product, b.DType(x)))
}

// windowSpec is what convolutions and pooling share.
type windowSpec struct {
	kernel, strides, dilations []int64
	low, high                  []ir.Dim
}

// window reads strides, dilations, pads and auto_pad for spatial dims (the dims of x from the
// third) and a kernel.
func (n *node) window(x ir.Value, kernel []int64) windowSpec {
	k := len(kernel)
	n.rankAtLeast(x, 3)
	spatial := n.b.Shape(x)[2:]
	if len(spatial) != k {
		n.wrong("a window of %d dims for %s", k, n.b.Type(x))
	}
	w := windowSpec{kernel: kernel, strides: n.intsOr("strides", k, 1), dilations: n.intsOr("dilations", k, 1)}
	for i := range k {
		if kernel[i] < 1 || w.strides[i] < 1 || w.dilations[i] < 1 || kernel[i] > 1<<31 || w.strides[i] > 1<<31 || w.dilations[i] > 1<<31 {
			n.wrong("kernel %v, strides %v, dilations %v", kernel, w.strides, w.dilations)
		}
	}
	mode := n.choice("auto_pad", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
	pads := n.intsOr("pads", 2*k, 0)
	for i, size := range spatial {
		low, high := ir.Const(pads[i]), ir.Const(pads[k+i])
		switch mode {
		case "VALID":
			low, high = ir.Const(0), ir.Const(0)
		case "SAME_UPPER", "SAME_LOWER":
			span := w.dilations[i]*(kernel[i]-1) + 1
			out := size.CeilDiv(w.strides[i])
			total := lower.MaxDim(n.program, out.AddConst(-1).MulConst(w.strides[i]).AddConst(span).Sub(size), ir.Const(0))
			low = total.FloorDiv(ir.Const(2))
			if mode == "SAME_LOWER" {
				low = total.CeilDiv(2)
			}
			high = total.Sub(low)
		}
		w.low, w.high = append(w.low, low), append(w.high, high)
	}
	return w
}

// kernelOf gives the spatial dims of a convolution's weights.
func (n *node) kernelOf(w ir.Value) []int64 {
	n.rankAtLeast(w, 3)
	kernel := make([]int64, n.b.Rank(w)-2)
	for i, d := range n.b.Shape(w)[2:] {
		c, ok := d.IsConst()
		if !ok {
			n.dataDependent("the kernel has the shape %s", n.b.Type(w))
		}
		kernel[i] = c
	}
	if list := n.ints("kernel_shape"); list != nil && !slices.Equal(list, kernel) {
		n.wrong("kernel_shape %v, the weights are %s", list, n.b.Type(w))
	}
	return kernel
}

func (n *node) convolution(x, w ir.Value) ir.Value {
	return n.b.Convolution(x, w, n.convolutionOf(x, w))
}

// convolutionOf reads the attributes of a convolution.
func (n *node) convolutionOf(x, w ir.Value) *ir.ConvolutionAttrs {
	spec := n.window(x, n.kernelOf(w))
	n.unifyDims(n.b.Shape(x)[1], n.b.Shape(w)[1].MulConst(n.int("group", 1)))
	return &ir.ConvolutionAttrs{Strides: spec.strides, Low: spec.low, High: spec.high,
		LhsDilation: slices.Repeat([]int64{1}, len(spec.kernel)), RhsDilation: spec.dilations, Groups: n.int("group", 1)}
}

// convolutionWithBias convolves and adds a bias of one number a channel, or ir.NoValue, rounded
// once.
func (n *node) convolutionWithBias(x, w, bias ir.Value, a *ir.ConvolutionAttrs) ir.Value {
	return lower.AddBias(n.b, lower.Channels(n.b, bias, n.b.Rank(x)), func(to ir.DType) ir.Value {
		a.To = to
		return n.b.Convolution(x, w, a)
	}, n.b.DType(x))
}

func conv(n *node) {
	x, w := n.in(0), n.in(1)
	n.set(n.convolutionWithBias(x, w, n.opt(2), n.convolutionOf(x, w)))
}

// convTranspose is a convolution of the dilated input with the flipped kernel.
func convTranspose(n *node) {
	x, w := n.in(0), n.in(1)
	b := n.b
	kernel := n.kernelOf(w)
	k := len(kernel)
	n.rankAtLeast(x, 3)
	if b.Rank(x) != k+2 {
		n.wrong("a kernel %s for %s", b.Type(w), b.Type(x))
	}
	groups := n.int("group", 1)
	strides, dilations := n.intsOr("strides", k, 1), n.intsOr("dilations", k, 1)
	extra, pads := n.intsOr("output_padding", k, 0), n.intsOr("pads", 2*k, 0)
	mode := n.choice("auto_pad", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
	sizes := n.ints("output_shape")
	a := &ir.ConvolutionAttrs{Strides: slices.Repeat([]int64{1}, k), LhsDilation: strides, RhsDilation: dilations, Groups: groups, ReverseKernel: true}
	if sizes != nil && len(sizes) != k {
		if len(sizes) != k+2 {
			n.wrong("output_shape %v", sizes)
		}
		sizes = sizes[2:]
	}
	for i, size := range b.Shape(x)[2:] {
		span := dilations[i]*(kernel[i]-1) + 1
		full := size.AddConst(-1).MulConst(strides[i]).AddConst(span + extra[i])
		low, high := ir.Const(pads[i]), ir.Const(pads[k+i])
		want, given := ir.Dim{}, false
		switch {
		case sizes != nil:
			want, given = ir.Const(sizes[i]), true
		case mode == "SAME_UPPER" || mode == "SAME_LOWER":
			want, given = size.MulConst(strides[i]), true
		case mode == "VALID":
			low, high = ir.Const(0), ir.Const(0)
		}
		if given {
			total := full.Sub(want)
			low, high = total.CeilDiv(2), total.FloorDiv(ir.Const(2))
			if mode == "SAME_UPPER" {
				low, high = high, low
			}
		}
		a.Low = append(a.Low, ir.Const(span-1).Sub(low))
		a.High = append(a.High, ir.Const(span-1+extra[i]).Sub(high))
	}
	n.set(n.convolutionWithBias(x, n.transposedKernel(w, groups), n.opt(2), a))
}

// transposedKernel turns weights [C, M/groups, ...] into [M, C/groups, ...].
func (n *node) transposedKernel(w ir.Value, groups int64) ir.Value {
	if groups < 1 {
		n.wrong("group %d", groups)
	}
	s := n.b.Shape(w)
	per := s[0].FloorDiv(ir.Const(groups))
	split := slices.Concat([]ir.Dim{ir.Const(groups), per}, s[1:])
	perm := []int{0, 2, 1}
	for i := 3; i < len(split); i++ {
		perm = append(perm, i)
	}
	return n.b.Reshape(n.b.Transpose(n.b.Reshape(w, split), perm), slices.Concat([]ir.Dim{s[1].MulConst(groups), per}, s[2:]))
}

// pool reads the window of a pooling operator.
func (n *node) pool(x ir.Value) lower.Pool {
	kernel := n.ints("kernel_shape")
	if kernel == nil {
		n.missingAttribute("kernel_shape")
	}
	w := n.window(x, kernel)
	p := lower.Pool{Window: kernel, Strides: w.strides, Dilations: w.dilations, Low: w.low, High: w.high}
	for i, size := range n.b.Shape(x)[2:] {
		beyond := ir.Const(0)
		if n.flag("ceil_mode", false) {
			span := w.dilations[i]*(kernel[i]-1) + 1
			rest := size.Add(w.low[i]).Add(w.high[i]).AddConst(-span)
			stride := ir.Const(w.strides[i])
			// A window that would start behind the input and its low padding does not count.
			windows := lower.MinDim(n.program, rest.CeilDiv(w.strides[i]), size.Add(w.low[i]).AddConst(-1).FloorDiv(stride))
			beyond = lower.MaxDim(n.program, windows.Mul(stride).Sub(rest), ir.Const(0))
		}
		p.Beyond = append(p.Beyond, beyond)
	}
	return p
}

func maxPool(n *node) {
	x := n.in(0)
	p := n.pool(x)
	if !n.wants(1) {
		n.set(lower.MaxPool(n.b, x, p))
		return
	}
	n.set(n.maxPoolIndices(x, p))
}

// maxPoolIndices gives the largest elements of windows and their positions in the flattened
// input, the first of equals.
func (n *node) maxPoolIndices(x ir.Value, p lower.Pool) (largest, positions ir.Value) {
	b := n.b
	shape := b.Shape(x)
	rank, k := len(shape), len(p.Window)
	taps := int64(1)
	for _, w := range p.Window {
		if taps *= w; taps > 1<<12 {
			n.unsupportedForm("indices of windows with more than 4096 elements")
		}
	}
	lows, highs := make([]ir.Dim, rank), make([]ir.Dim, rank)
	for i := range k {
		lows[i+2], highs[i+2] = p.Low[i], p.High[i].Add(p.Beyond[i])
	}
	padded := b.Pad(x, b.Scalar(b.DType(x), lowest(b.DType(x))), lows, highs, nil)
	// Where each element comes from, -1 in the padding.
	flat := b.Reshape(b.Iota(ir.I64, []ir.Dim{b.Type(x).Numel()}, 0), shape)
	if n.flag("storage_order", false) {
		flat = n.columnMajor(shape)
	}
	from := b.Pad(flat, b.Scalar(ir.I64, -1), lows, highs, nil)
	out := b.Shape(lower.MaxPool(b, x, p))
	values, origins := make([]ir.Value, taps), make([]ir.Value, taps)
	for t := range taps {
		start, limit, stride := make([]ir.Dim, rank), slices.Clone(b.Shape(padded)), slices.Repeat([]int64{1}, rank)
		for i, rest := k-1, t; i >= 0; i-- {
			offset := rest % p.Window[i] * p.Dilations[i]
			rest /= p.Window[i]
			start[i+2], stride[i+2] = ir.Const(offset), p.Strides[i]
			limit[i+2] = out[i+2].AddConst(-1).MulConst(p.Strides[i]).AddConst(offset + 1)
		}
		values[t], origins[t] = b.Slice(padded, start, limit, stride), b.Slice(from, start, limit, stride)
	}
	all, at := lower.Stack(b, rank, values...), lower.Stack(b, rank, origins...)
	best := b.ArgReduce(all, &ir.ArgReduceAttrs{Combine: ir.Max, Axis: rank})
	column := b.Reshape(best, append(slices.Clone(out), ir.Const(1)))
	return b.Reduce(ir.Max, all, rank), b.Reshape(n.gatherElements(at, column, rank), out)
}

func lowest(t ir.DType) float64 {
	switch {
	case t.IsFloat():
		return math.Inf(-1)
	case !t.IsSigned():
		return 0
	}
	return -float64(uint64(1) << (t.Bits() - 1))
}

// columnMajor numbers the elements of [N, C, spatial...] with the first spatial dim running
// fastest.
func (n *node) columnMajor(shape []ir.Dim) ir.Value {
	b := n.b
	total := b.FullLike(b.Iota(ir.I64, shape, 0), 0)
	add := func(axis int, stride ir.Dim) {
		step := b.Broadcast(b.Dim(stride), shape, nil)
		total = b.Binary(ir.OpAdd, total, b.Binary(ir.OpMultiply, b.Iota(ir.I64, shape, axis), step))
	}
	stride := ir.Const(1)
	for axis := 2; axis < len(shape); axis++ {
		add(axis, stride)
		stride = stride.Mul(shape[axis])
	}
	add(1, stride)
	add(0, stride.Mul(shape[1]))
	return total
}

func averagePool(n *node) {
	x := n.in(0)
	n.set(lower.AvgPool(n.b, x, n.pool(x), n.flag("count_include_pad", false), 0))
}

func lpPool(n *node) {
	x := n.in(0)
	p := n.pool(x)
	n.set(lower.InFloat32(n.b, func(v []ir.Value) ir.Value {
		return n.lpNorm(v[0], func(y ir.Value) ir.Value { return lower.SumPool(n.b, y, p) })
	}, x))
}

// lpNorm is sum(|x|^p)^(1/p) with a given sum.
func (n *node) lpNorm(x ir.Value, sum func(ir.Value) ir.Value) ir.Value {
	b := n.b
	switch p := n.int("p", 2); p {
	case 1:
		return sum(absolute(b, x))
	case 2:
		return root(b, sum(square(b, x)))
	default:
		power := b.Binary(ir.OpPower, absolute(b, x), b.FullLike(x, float64(p)))
		s := sum(power)
		return b.Binary(ir.OpPower, s, b.FullLike(s, 1/float64(p)))
	}
}

// spatialAxes are the dims from the third.
func (n *node) spatialAxes(x ir.Value) []int {
	n.rankAtLeast(x, 3)
	var axes []int
	for i := 2; i < n.b.Rank(x); i++ {
		axes = append(axes, i)
	}
	return axes
}

func globalAveragePool(n *node) {
	x := n.in(0)
	n.set(lower.Mean(n.b, x, n.spatialAxes(x), true))
}

func globalMaxPool(n *node) {
	x := n.in(0)
	n.set(n.b.ReduceKeep(ir.Max, x, n.spatialAxes(x)...))
}

func globalLpPool(n *node) {
	x := n.in(0)
	axes := n.spatialAxes(x)
	n.set(lower.InFloat32(n.b, func(v []ir.Value) ir.Value {
		return n.lpNorm(v[0], func(y ir.Value) ir.Value { return n.b.ReduceKeep(ir.Sum, y, axes...) })
	}, x))
}

func batchNormalization(n *node) {
	x := n.in(0)
	v := n.ins(5)
	n.rankAtLeast(x, 1)
	eps := n.float("epsilon", 1e-5)
	if n.version < 9 && !n.flag("spatial", true) {
		n.unsupportedForm("spatial = 0")
	}
	if n.version < 14 || !n.flag("training_mode", false) {
		n.set(lower.BatchNorm(n.b, x, v[1], v[2], v[3], v[4], eps))
		return
	}
	b := n.b
	n.rankAtLeast(x, 2)
	mean, variance := lower.BatchMoments(b, x, 0)
	momentum := n.float("momentum", 0.9)
	blend := func(old, new ir.Value) ir.Value {
		t := b.DType(new)
		sum := b.Binary(ir.OpAdd, lower.Scale(b, b.Convert(old, t), momentum), lower.Scale(b, new, 1-momentum))
		return b.Convert(sum, b.DType(old))
	}
	n.set(lower.BatchNorm(b, x, v[1], v[2], mean, variance, eps), blend(v[3], mean), blend(v[4], variance))
}

func layerNormalization(n *node) {
	x := n.in(0)
	axis := n.axis(n.int("axis", -1), n.b.Rank(x))
	y, mean, rstd := lower.LayerNorm(n.b, x, n.b.Rank(x)-axis, n.opt(1), n.opt(2), n.float("epsilon", 1e-5))
	n.set(y, mean, rstd)
}

func rmsNormalization(n *node) {
	x := n.in(0)
	axis := n.axis(n.int("axis", -1), n.b.Rank(x))
	n.set(lower.RMSNorm(n.b, x, n.b.Rank(x)-axis, n.opt(1), n.float("epsilon", 1e-5)))
}

func instanceNormalization(n *node) {
	x := n.in(0)
	n.rankAtLeast(x, 3)
	c, ok := n.b.Shape(x)[1].IsConst()
	if !ok || c < 1 {
		n.dataDependent("%s has no constant number of channels", n.b.Type(x))
	}
	y, _, _ := lower.GroupNorm(n.b, x, c, n.in(1), n.in(2), n.float("epsilon", 1e-5))
	n.set(y)
}

// groupNormalization has one scale a group before version 21, then one a channel.
func groupNormalization(n *node) {
	x, scale, bias := n.in(0), n.in(1), n.in(2)
	b := n.b
	n.rankAtLeast(x, 2)
	groups := n.int("num_groups", 0)
	c, ok := b.Shape(x)[1].IsConst()
	if !ok || groups < 1 || c%groups != 0 {
		n.wrong("%d groups of %s", groups, b.Type(x))
	}
	if n.version < 21 {
		spread := func(v ir.Value) ir.Value {
			wide := b.Broadcast(n.sameDims(v, ir.Consts(groups)), ir.Consts(groups, c/groups), []int{0})
			return b.Reshape(wide, ir.Consts(c))
		}
		scale, bias = spread(scale), spread(bias)
	}
	y, _, _ := lower.GroupNorm(b, x, groups, scale, bias, n.float("epsilon", 1e-5))
	n.set(y)
}

func dropout(n *node) {
	x := n.in(0)
	if n.version >= 12 && n.has(2) {
		training := n.constInts(2, "training_mode")
		ratio := []float64{0.5}
		if n.has(1) {
			ratio = n.constFloats(1, "the ratio")
		}
		if len(training) > 0 && training[0] != 0 && (len(ratio) == 0 || ratio[0] != 0) {
			p := 0.5
			if len(ratio) > 0 {
				p = ratio[0]
			}
			n.attr("seed", attrInt)
			n.set(n.random.Dropout(n.b, x, p))
			return
		}
	}
	mask := ir.Bool
	if n.version < 10 {
		mask = n.b.DType(x)
	}
	n.set(x, n.b.Full(n.b.Type(x).With(mask), 1))
}
