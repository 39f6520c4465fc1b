package fx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// addConvolutionRules adds convolutions by their number of spatial dims.
func addConvolutionRules(t map[string]rule) {
	for n, name := range map[int]string{1: "1d", 2: "2d", 3: "3d"} {
		r := value(func(c *call) ir.Value { return c.conv(n, false) })
		t["conv"+name+".default"], t["conv"+name+".padding"] = r, r
		up := value(func(c *call) ir.Value { return c.conv(n, true) })
		t["conv_transpose"+name+".default"], t["conv_transpose"+name+".input"] = up, up
	}
}

// convolution is the form that all others decompose to.
func (c *call) convolution() ir.Value {
	n := c.b.Rank(c.tensor("weight")) - 2
	if n < 1 {
		c.bad("a kernel of rank %d", n+2)
	}
	return c.conv(n, c.bool("transposed", false))
}

// conv is a convolution with n spatial dims; the input may lack the batch dim.
func (c *call) conv(n int, transposed bool) ir.Value {
	x, kernel := c.tensor("input"), c.tensor("weight")
	bare := c.b.Rank(x) == n+1
	if bare {
		x = c.b.Reshape(x, slices.Insert(slices.Clone(c.b.Shape(x)), 0, ir.Const(1)))
	}
	if c.b.Rank(x) != n+2 || c.b.Rank(kernel) != n+2 {
		c.bad("input and kernel of rank %d and %d for %d spatial dims", c.b.Rank(x), c.b.Rank(kernel), n)
	}
	a := &ir.ConvolutionAttrs{Strides: c.spatial("stride", n, 1), RhsDilation: c.spatial("dilation", n, 1), Groups: c.int("groups", 1)}
	a.LhsDilation = slices.Repeat([]int64{1}, n)
	if a.Groups < 1 || slices.Min(a.Strides) < 1 || slices.Min(a.RhsDilation) < 1 {
		c.bad("groups, stride or dilation below 1")
	}
	extra := c.spatial("output_padding", n, 0)
	if transposed {
		kernel = c.transposeKernel(x, kernel, a, extra)
	} else {
		c.convPadding(kernel, a, n)
	}
	y := c.withBias(x, kernel, a)
	if bare {
		y = c.b.Reshape(y, c.b.Shape(y)[1:])
	}
	return y
}

// withBias convolves and adds a bias of channels, rounded once.
func (c *call) withBias(x, kernel ir.Value, a *ir.ConvolutionAttrs) ir.Value {
	bias := lower.Channels(c.b, c.optional("bias"), c.b.Rank(x))
	return lower.AddBias(c.b, bias, func(to ir.DType) ir.Value {
		a.To = to
		return c.b.Convolution(x, kernel, a)
	}, c.b.DType(x))
}

// convPadding fills Low and High from numbers, "valid" or "same" (the odd one at the end).
func (c *call) convPadding(kernel ir.Value, a *ir.ConvolutionAttrs, n int) {
	if p, ok := c.arg("padding"); ok && p.kind == argString {
		for i := range n {
			total := ir.Const(0)
			if p.name == "same" {
				total = c.b.Shape(kernel)[2+i].AddConst(-1).MulConst(a.RhsDilation[i])
			} else if p.name != "valid" {
				c.bad("padding is %q", p.name)
			}
			low := total.FloorDiv(ir.Const(2))
			a.Low, a.High = append(a.Low, low), append(a.High, total.Sub(low))
		}
		return
	}
	for _, p := range c.spatial("padding", n, 0) {
		a.Low, a.High = append(a.Low, ir.Const(p)), append(a.High, ir.Const(p))
	}
}

// transposeKernel makes the convolution with dilated input that a transposed one is. The
// kernel [C, O/groups, ...] becomes [O, C/groups, ...], with its spatial dims reversed.
func (c *call) transposeKernel(x, kernel ir.Value, a *ir.ConvolutionAttrs, extra []int64) ir.Value {
	shape := c.b.Shape(kernel)
	n := len(shape) - 2
	a.LhsDilation, a.Strides = a.Strides, slices.Repeat([]int64{1}, n)
	a.ReverseKernel = true
	for i, p := range c.spatial("padding", n, 0) {
		reach := shape[2+i].AddConst(-1).MulConst(a.RhsDilation[i]).AddConst(-p)
		a.Low, a.High = append(a.Low, reach), append(a.High, reach.AddConst(extra[i]))
	}
	if v, ok := shape[0].IsConst(); !ok || v%a.Groups != 0 {
		c.bad("%d groups of %s channels", a.Groups, shape[0])
	}
	per := shape[0].FloorDiv(ir.Const(a.Groups))
	split := slices.Concat([]ir.Dim{ir.Const(a.Groups), per}, shape[1:])
	p := identity(len(split))
	p[1], p[2] = 2, 1
	swapped := c.b.Transpose(c.b.Reshape(kernel, split), p)
	return c.b.Reshape(swapped, slices.Concat([]ir.Dim{shape[1].MulConst(a.Groups), per}, shape[2:]))
}

// addPoolRules adds pooling by the number of spatial dims.
func addPoolRules(t map[string]rule) {
	for n, name := range map[int]string{1: "1d", 2: "2d", 3: "3d"} {
		t["max_pool"+name+".default"] = value(func(c *call) ir.Value { return lower.MaxPool(c.b, c.tensor("self"), c.pool(n, true)) })
		t["avg_pool"+name+".default"] = value(func(c *call) ir.Value {
			return lower.AvgPool(c.b, c.tensor("self"), c.pool(n, false), c.bool("count_include_pad", true), c.int("divisor_override", 0))
		})
		for _, kind := range []string{"adaptive_avg_pool", "_adaptive_avg_pool"} {
			t[kind+name+".default"] = value(func(c *call) ir.Value { return c.adaptive(n, lower.AdaptiveAvgPool) })
		}
		t["adaptive_max_pool"+name+".default"] = values(func(c *call) []ir.Value {
			names := c.outputNames()
			c.require(len(names) == 1 || names[1] == "" || !c.isUsed(names[1]), "with indices")
			y := c.adaptive(n, lower.AdaptiveMaxPool)
			return []ir.Value{y, c.b.Full(c.b.Type(y).With(ir.I64), 0)}
		})
		t["max_pool"+name+"_with_indices.default"] = values(func(c *call) []ir.Value { return c.maxPoolIndices(n) })
		t["max_pool"+name+"_with_indices_backward.default"] = value(func(c *call) ir.Value { return c.maxPoolBackward(n) })
	}
}

// isUsed tells whether a node or output of the graph takes a value.
func (c *call) isUsed(name string) bool {
	takes := func(a argument) bool {
		return a.name == name || slices.ContainsFunc(a.list, func(e argument) bool { return e.name == name })
	}
	for i := range c.graph.nodes {
		for _, a := range c.graph.nodes[i].inputs {
			if takes(a.argument) {
				return true
			}
		}
	}
	return slices.ContainsFunc(c.graph.outputs, takes)
}

// pool reads the window arguments of pooling over n spatial dims.
func (c *call) pool(n int, dilated bool) lower.Pool {
	x := c.tensor("self")
	if c.b.Rank(x) < n {
		c.bad("%d spatial dims of rank %d", n, c.b.Rank(x))
	}
	window := c.spatial("kernel_size", n, 1)
	strides := window
	if len(c.ints("stride")) > 0 {
		strides = c.spatial("stride", n, 1)
	}
	dilations := slices.Repeat([]int64{1}, n)
	if dilated {
		dilations = c.spatial("dilation", n, 1)
	}
	if slices.Min(window) < 1 || slices.Min(strides) < 1 || slices.Min(dilations) < 1 {
		c.bad("a window, stride or dilation below 1")
	}
	return lower.NewPool(c.b, x, window, strides, c.spatial("padding", n, 0), dilations, c.bool("ceil_mode", false))
}

// maxPoolIndices gives the largest element of each window and its flat place in the spatial
// dims: the windows are laid out in a last dim, padded with the least element.
func (c *call) maxPoolIndices(n int) []ir.Value {
	x, p := c.tensor("self"), c.pool(n, true)
	y := lower.MaxPool(c.b, x, p)
	names := c.outputNames()
	if len(names) < 2 || !c.isUsed(names[1]) {
		return []ir.Value{y, c.b.Full(c.b.Type(y).With(ir.I64), 0)}
	}
	shape := c.b.Shape(x)
	first := len(shape) - n
	spatial := shape[first:]
	place := c.b.Iota(ir.I64, []ir.Dim{ir.Product(spatial)}, 0)
	place = c.b.Broadcast(c.b.Reshape(place, spatial), shape, lastDims(len(shape), n))
	least := c.b.Scalar(c.b.DType(x), identityOf(ir.Max, c.b.DType(x)))
	x, place = c.windows(x, least, p), c.windows(place, c.b.Scalar(ir.I64, 0), p)
	last := c.b.Rank(x) - 1
	at := c.b.ArgReduce(x, &ir.ArgReduceAttrs{Combine: ir.Max, Axis: last})
	at = c.b.Reshape(at, append(slices.Clone(c.b.Shape(at)), ir.Const(1)))
	index := c.b.Reshape(c.gatherAlong(place, at, last), c.b.Shape(y))
	return []ir.Value{y, index}
}

func lastDims(rank, n int) []int { return identity(rank)[rank-n:] }

// windows lays out the elements of each window of the last n dims in a new last dim.
func (c *call) windows(x, edge ir.Value, p lower.Pool) ir.Value {
	n := len(p.Window)
	rank := c.b.Rank(x)
	first := rank - n
	low, high := make([]ir.Dim, rank), make([]ir.Dim, rank)
	for i := range n {
		low[first+i], high[first+i] = p.Low[i], p.High[i].Add(p.Beyond[i])
	}
	x = c.b.Pad(x, edge, low, high, nil)
	window := ir.Const(1)
	var outs, ins []int
	for i := range n {
		axis := first + 2*i
		span := p.Dilations[i]*(p.Window[i]-1) + 1
		count := c.b.Shape(x)[axis].AddConst(-span).FloorDiv(ir.Const(p.Strides[i])).AddConst(1)
		dims := []ir.Dim{count, ir.Const(p.Window[i])}
		at := lower.Scale(c.b, c.b.Iota(ir.I64, dims, 0), float64(p.Strides[i]))
		at = c.b.Binary(ir.OpAdd, at, lower.Scale(c.b, c.b.Iota(ir.I64, dims, 1), float64(p.Dilations[i])))
		x = c.b.Take(x, at, axis)
		outs, ins = append(outs, axis), append(ins, axis+1)
		window = window.MulConst(p.Window[i])
	}
	x = c.b.Transpose(x, slices.Concat(identity(first), outs, ins))
	return c.b.Reshape(x, append(slices.Clone(c.b.Shape(x)[:rank]), window))
}

// maxPoolBackward adds gradients at the places that the windows took their elements from.
func (c *call) maxPoolBackward(n int) ir.Value {
	dy, x, indices := c.tensor("grad_output"), c.tensor("self"), c.tensor("indices")
	for _, name := range []string{"kernel_size", "stride", "padding", "dilation", "ceil_mode"} {
		c.arg(name) // the indices say it all
	}
	shape := c.b.Shape(x)
	first := len(shape) - n
	if first < 0 || !ir.SameShape(c.b.Shape(dy), c.b.Shape(indices)) || c.b.Rank(dy) != len(shape) {
		c.bad("gradients of %s for %s", c.b.Type(dy), c.b.Type(x))
	}
	rows := ir.Product(shape[:first])
	dims := []ir.Dim{rows, ir.Product(c.b.Shape(dy)[first:])}
	zeros := c.b.Full(ir.TensorOf(c.b.DType(dy), rows, ir.Product(shape[first:])), 0)
	r := c.b.Scatter(zeros, c.b.Reshape(indices, dims), c.b.Reshape(dy, dims), &ir.ScatterAttrs{Combine: ir.Sum, InsertedWindowDims: []int{1},
		InputBatchingDims: []int{0}, ScatterIndicesBatchingDims: []int{0}, ScatterDimsToOperandDims: []int{1}, IndexVectorDim: 2})
	return c.b.Reshape(r, shape)
}

func (c *call) adaptive(n int, pool func(b *ir.Builder, x ir.Value, out []int64) (ir.Value, bool)) ir.Value {
	x := c.tensor("self")
	dims, _ := c.dims("output_size")
	if len(dims) == 1 {
		dims = slices.Repeat(dims, n)
	}
	if len(dims) != n || c.b.Rank(x) < n {
		c.bad("output_size has %d numbers for %d spatial dims", len(dims), n)
	}
	out := make([]int64, n)
	for i, d := range dims {
		v, ok := d.IsConst()
		if size := c.b.Shape(x)[c.b.Rank(x)-n+i]; !ok && d.Equal(size) {
			v, ok = -1, true
		}
		c.require(ok, "with a symbolic output_size")
		out[i] = v
	}
	y, ok := pool(c.b, x, out)
	c.require(ok, "over dims of symbolic size")
	return y
}

// addLossRules adds losses in the forward direction.
func addLossRules(t map[string]rule) {
	t["cross_entropy_loss.default"] = value(func(c *call) ir.Value {
		return lower.CrossEntropy(c.b, c.tensor("self"), c.tensor("target"), c.optional("weight"), c.reduction(),
			c.int("ignore_index", -100), c.float("label_smoothing", 0))
	})
	nll := func(c *call) []ir.Value {
		x := c.tensor("self")
		loss, total := lower.NegativeLogLikelihood(c.b, x, c.tensor("target"), c.optional("weight"), c.reduction(), c.int("ignore_index", -100))
		return []ir.Value{loss, total}
	}
	for _, name := range []string{"nll_loss", "nll_loss2d", "nll_loss_nd"} {
		t[name+".default"] = values(func(c *call) []ir.Value { return nll(c)[:1] })
		t[name+"_forward.default"] = values(nll)
	}
	pair := func(name string, each func(c *call, x, y ir.Value) ir.Value) {
		t[name+".default"] = value(func(c *call) ir.Value {
			return lower.Pairwise(c.b, c.tensor("self"), c.tensor("target"), c.reduction(), func(x, y ir.Value) ir.Value { return each(c, x, y) })
		})
	}
	pair("mse_loss", func(c *call, x, y ir.Value) ir.Value { return lower.SquaredError(c.b, x, y) })
	pair("l1_loss", func(c *call, x, y ir.Value) ir.Value { return lower.AbsoluteError(c.b, x, y) })
	pair("huber_loss", func(c *call, x, y ir.Value) ir.Value { return lower.HuberError(c.b, x, y, c.float("delta", 1), 1) })
	pair("smooth_l1_loss", func(c *call, x, y ir.Value) ir.Value {
		beta := c.float("beta", 1)
		if beta == 0 {
			return lower.AbsoluteError(c.b, x, y)
		}
		return lower.HuberError(c.b, x, y, beta, 1/beta)
	})
	pair("kl_div", func(c *call, x, y ir.Value) ir.Value {
		if c.bool("log_target", false) {
			return c.b.Binary(ir.OpMultiply, c.b.Unary(ir.OpExponential, y), c.b.Binary(ir.OpSubtract, y, x))
		}
		return c.b.Binary(ir.OpSubtract, c.xLogY(y, y), c.b.Binary(ir.OpMultiply, y, x))
	})
	pair("hinge_embedding_loss", func(c *call, x, y ir.Value) ir.Value {
		rest := lower.Relu(c.b, lower.AddScalar(c.b, c.b.Unary(ir.OpNegate, x), c.float("margin", 1)))
		zero, one := c.b.FullLike(x, 0), c.b.FullLike(x, 1)
		far := c.b.Select(c.b.Compare(ir.NE, y, one), rest, zero)
		return c.b.Binary(ir.OpAdd, far, c.b.Select(c.b.Compare(ir.NE, y, c.b.FullLike(y, -1)), x, zero))
	})
	pair("binary_cross_entropy", (*call).binaryCrossEntropy)
	pair("binary_cross_entropy_with_logits", (*call).binaryCrossEntropyLogits)
	pair("soft_margin_loss", func(c *call, x, y ir.Value) ir.Value {
		return lower.Softplus(c.b, c.b.Unary(ir.OpNegate, c.b.Binary(ir.OpMultiply, x, y)), 1, math.Inf(1))
	})
}

// weighted multiplies the terms of a loss by the argument weight.
func (c *call) weighted(x ir.Value) ir.Value {
	w := c.optional("weight")
	if w == ir.NoValue {
		return x
	}
	return c.b.Binary(ir.OpMultiply, x, lower.Expand(c.b, c.b.Convert(w, c.b.DType(x)), c.b.Shape(x)))
}

// binaryCrossEntropy is -(y log x + (1-y) log(1-x)), logarithms at least -100.
func (c *call) binaryCrossEntropy(x, y ir.Value) ir.Value {
	one := c.b.FullLike(x, 1)
	log := func(v ir.Value) ir.Value {
		return c.b.Binary(ir.OpMaximum, c.b.Unary(ir.OpLog, v), c.b.FullLike(v, -100))
	}
	positive := c.b.Binary(ir.OpMultiply, y, log(x))
	negative := c.b.Binary(ir.OpMultiply, c.b.Binary(ir.OpSubtract, one, y), log(c.b.Binary(ir.OpSubtract, one, x)))
	return c.weighted(c.b.Unary(ir.OpNegate, c.b.Binary(ir.OpAdd, positive, negative)))
}

// binaryCrossEntropyLogits is (1-y) x + w softplus(-x) with w = 1 + (pos_weight - 1) y.
func (c *call) binaryCrossEntropyLogits(x, y ir.Value) ir.Value {
	soft := c.b.Unary(ir.OpNegate, lower.LogSigmoid(c.b, x))
	if p := c.optional("pos_weight"); p != ir.NoValue {
		p = lower.Expand(c.b, c.b.Convert(p, c.b.DType(x)), c.b.Shape(x))
		w := lower.AddScalar(c.b, c.b.Binary(ir.OpMultiply, lower.AddScalar(c.b, p, -1), y), 1)
		soft = c.b.Binary(ir.OpMultiply, w, soft)
	}
	rest := c.b.Binary(ir.OpMultiply, c.b.Binary(ir.OpSubtract, c.b.FullLike(y, 1), y), x)
	return c.weighted(c.b.Binary(ir.OpAdd, rest, soft))
}
