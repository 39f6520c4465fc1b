package fx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// samplingRules are grid sampling, bags of embeddings and distances.
func samplingRules() map[string]rule {
	t := map[string]rule{
		"grid_sampler.default":                value((*call).gridSample),
		"grid_sampler_2d.default":             value((*call).gridSample),
		"grid_sampler_3d.default":             value((*call).gridSample),
		"embedding_bag.padding_idx":           values((*call).embeddingBag),
		"embedding_bag.default":               values((*call).embeddingBag),
		"_embedding_bag.default":              values((*call).embeddingBag),
		"_embedding_bag_forward_only.default": values((*call).embeddingBag),
		"pairwise_distance.default": value(func(c *call) ir.Value {
			keep := c.bool("keepdim", false)
			d := c.distance(c.floating("x1"), c.floating("x2"), c.float("p", 2), c.float("eps", 1e-6))
			if keep {
				return c.b.Reshape(d, append(slices.Clone(c.b.Shape(d)), ir.Const(1)))
			}
			return d
		}),
		"dist.default": value(func(c *call) ir.Value {
			d := c.b.Unary(ir.OpAbs, lower.Binary(c.b, ir.OpSubtract, c.tensor("self"), c.tensor("other")))
			return c.powerNorm(d, c.float("p", 2), func(combine ir.Combine, x ir.Value) ir.Value { return c.b.Reduce(combine, x, identity(c.b.Rank(x))...) })
		}),
		"margin_ranking_loss.default": value(func(c *call) ir.Value {
			margin, r := c.float("margin", 0), c.reduction()
			d := lower.Binary(c.b, ir.OpSubtract, c.tensor("input1"), c.tensor("input2"))
			d = c.b.Convert(d, floatType(c.b.DType(d)))
			loss := lower.Binary(c.b, ir.OpMultiply, c.b.Convert(c.b.Unary(ir.OpNegate, c.tensor("target")), c.b.DType(d)), d)
			return lower.Reduced(c.b, lower.Relu(c.b, lower.AddScalar(c.b, loss, margin)), r)
		}),
		"triplet_margin_loss.default":   value((*call).tripletLoss),
		"cosine_embedding_loss.default": value((*call).cosineEmbeddingLoss),
		"poisson_nll_loss.default":      value((*call).poissonLoss),
		"bilinear.default": value(func(c *call) ir.Value {
			x, y, w := c.tensor("input1"), c.tensor("input2"), c.tensor("weight")
			if c.b.Rank(w) != 3 || c.b.Rank(x) < 1 || c.b.Rank(x) != c.b.Rank(y) {
				c.bad("operands of rank %d, %d and %d", c.b.Rank(x), c.b.Rank(y), c.b.Rank(w))
			}
			n := c.b.Rank(x) - 1
			xw := c.b.DotGeneral(x, w, &ir.DotAttrs{LhsContract: []int{n}, RhsContract: []int{1}}) // [..., O, J]
			dims := slices.Concat(c.b.Shape(xw))
			p := c.b.Binary(ir.OpMultiply, xw, c.b.Broadcast(y, dims, append(identity(n), n+1)))
			return lower.Affine(c.b, c.b.Reduce(ir.Sum, p, n+1), ir.NoValue, c.optional("bias"))
		}),
	}
	return t
}

// distance is the p-norm of x - y + eps along the last dim.
func (c *call) distance(x, y ir.Value, p, eps float64) ir.Value {
	d := lower.AddScalar(c.b, lower.Binary(c.b, ir.OpSubtract, x, y), eps)
	return c.powerNorm(c.b.Unary(ir.OpAbs, d), p, func(combine ir.Combine, x ir.Value) ir.Value { return c.b.Reduce(combine, x, c.b.Rank(x)-1) })
}

// tripletLoss is max(0, margin + d(anchor, positive) - d(anchor, negative)).
func (c *call) tripletLoss() ir.Value {
	margin, p, eps, swap, r := c.float("margin", 1), c.float("p", 2), c.float("eps", 1e-6), c.bool("swap", false), c.reduction()
	anchor, positive, negative := c.floating("anchor"), c.floating("positive"), c.floating("negative")
	near, far := c.distance(anchor, positive, p, eps), c.distance(anchor, negative, p, eps)
	if swap {
		far = c.b.Binary(ir.OpMinimum, far, c.distance(positive, negative, p, eps))
	}
	return lower.Reduced(c.b, lower.Relu(c.b, lower.AddScalar(c.b, c.b.Binary(ir.OpSubtract, near, far), margin)), r)
}

// cosineEmbeddingLoss is 1 - cos for pairs with target 1, max(0, cos - margin) for those with -1.
func (c *call) cosineEmbeddingLoss() ir.Value {
	margin, r := c.float("margin", 0), c.reduction()
	x, y, target := c.floating("input1"), c.floating("input2"), c.tensor("target")
	last := c.b.Rank(x) - 1
	dot := func(x, y ir.Value) ir.Value { return c.b.Reduce(ir.Sum, c.b.Binary(ir.OpMultiply, x, y), last) }
	xy := dot(x, y)
	size := func(v ir.Value) ir.Value { return lower.AddScalar(c.b, dot(v, v), 1e-12) }
	cos := c.b.Binary(ir.OpDivide, xy, c.b.Unary(ir.OpSqrt, c.b.Binary(ir.OpMultiply, size(x), size(y))))
	target = lower.Expand(c.b, target, c.b.Shape(cos))
	is := func(v float64) ir.Value { return c.b.Compare(ir.EQ, target, c.b.FullLike(target, v)) }
	zero := c.b.FullLike(cos, 0)
	same := c.b.Select(is(1), c.b.Binary(ir.OpSubtract, c.b.FullLike(cos, 1), cos), zero)
	other := c.b.Select(is(-1), lower.Relu(c.b, lower.AddScalar(c.b, cos, -margin)), zero)
	return lower.Reduced(c.b, c.b.Binary(ir.OpAdd, same, other), r)
}

// poissonLoss is exp(x) - t x, or x - t log(x + eps); full adds Stirling's formula for t > 1.
func (c *call) poissonLoss() ir.Value {
	logs, full, eps, r := c.bool("log_input", true), c.bool("full", false), c.float("eps", 1e-8), c.reduction()
	return lower.Pairwise(c.b, c.floating("input"), c.tensor("target"), r, func(x, t ir.Value) ir.Value {
		var loss ir.Value
		t = c.b.Convert(t, c.b.DType(x))
		if logs {
			loss = c.b.Binary(ir.OpSubtract, c.b.Unary(ir.OpExponential, x), c.b.Binary(ir.OpMultiply, t, x))
		} else {
			loss = c.b.Binary(ir.OpSubtract, x, c.b.Binary(ir.OpMultiply, t, c.b.Unary(ir.OpLog, lower.AddScalar(c.b, x, eps))))
		}
		if full {
			stirling := c.b.Binary(ir.OpSubtract, c.xLogY(t, t), t)
			half := lower.Scale(c.b, c.b.Unary(ir.OpLog, lower.Scale(c.b, t, 2*math.Pi)), 0.5)
			stirling = c.b.Binary(ir.OpAdd, stirling, half)
			large := c.b.Compare(ir.GT, t, c.b.FullLike(t, 1))
			loss = c.b.Binary(ir.OpAdd, loss, c.b.Select(large, stirling, c.b.FullLike(t, 0)))
		}
		return loss
	})
}

// embeddingBag sums, averages or takes the maximum of rows of weight in bags that start at
// offsets. Its other results are for gradients and are zeros here.
func (c *call) embeddingBag() []ir.Value {
	weight, indices, offsets := c.tensor("weight"), c.tensor("indices"), c.tensor("offsets")
	mode, whole := c.int("mode", 0), c.bool("include_last_offset", false)
	padding := c.int("padding_idx", -1)
	perSample := c.optional("per_sample_weights")
	if c.b.Rank(weight) != 2 || c.b.Rank(indices) != 1 || c.b.Rank(offsets) != 1 {
		c.unsupported(" of other ranks than [V, D], [N] and [B]")
	}
	n, bags := c.b.Shape(indices)[0], c.b.Shape(offsets)[0]
	if whole {
		bags = bags.AddConst(-1)
		offsets = c.b.SliceAxis(offsets, 0, ir.Const(0), bags, 1)
	}
	rows := c.b.Take(weight, indices, 0)
	if perSample != ir.NoValue {
		rows = c.b.Binary(ir.OpMultiply, rows, c.b.Broadcast(perSample, c.b.Shape(rows), []int{0}))
	}
	// The bag of element i is the number of offsets at or before i, less one.
	grid := []ir.Dim{n, bags}
	at := c.b.Compare(ir.LE, c.b.Broadcast(c.b.Convert(offsets, ir.I64), grid, []int{1}), c.b.Iota(ir.I64, grid, 0))
	bag := lower.AddScalar(c.b, c.b.Reduce(ir.Sum, c.b.Convert(at, ir.I64), 1), -1)
	result := bag
	counted := c.b.Full(ir.TensorOf(c.b.DType(weight), n), 1)
	if padding >= 0 {
		skip := c.b.Compare(ir.EQ, indices, c.b.FullLike(indices, float64(padding)))
		bag = c.b.Select(skip, c.b.FullLike(bag, -1), bag) // dropped
	}
	combine := ir.Sum
	if mode == 2 {
		combine = ir.Max
	}
	out := ir.TensorOf(c.b.DType(weight), bags, c.b.Shape(weight)[1])
	start := c.b.Full(out, identityOf(combine, out.DType))
	window := &ir.ScatterAttrs{Combine: combine, UpdateWindowDims: []int{1}, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1}
	y := c.b.Scatter(start, bag, rows, window)
	counts := c.b.Scatter(c.b.Full(ir.TensorOf(out.DType, bags), 0), bag, counted,
		&ir.ScatterAttrs{Combine: ir.Sum, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1})
	switch mode {
	case 1:
		least := c.b.Binary(ir.OpMaximum, counts, c.b.FullLike(counts, 1))
		y = c.b.Binary(ir.OpDivide, y, c.b.Broadcast(least, out.Shape, []int{0}))
	case 2:
		empty := c.b.Broadcast(c.b.Compare(ir.EQ, counts, c.b.FullLike(counts, 0)), out.Shape, []int{0})
		y = c.b.Select(empty, c.b.FullLike(y, 0), y)
	}
	sizes := c.b.Convert(counts, ir.I64)
	results := []ir.Value{y, result, sizes, c.b.FullLike(sizes, 0)}
	for i, name := range c.outputNames() {
		c.require(i == 0 || name == "" || !c.isUsed(name), "with results for gradients")
		if t, _, ok := c.tensorType(name, c.place); ok && i > 0 && i < len(results) {
			results[i] = c.b.Full(t, 0)
		}
	}
	return results
}

// gridSample reads input [N, C, spatial...] at places in -1..1 that grid [N, out..., n] names,
// the last spatial dim first.
func (c *call) gridSample() ir.Value {
	x, grid := c.tensor("input"), c.tensor("grid")
	mode, edge, corners := c.int("interpolation_mode", 0), c.int("padding_mode", 0), c.bool("align_corners", false)
	n := c.b.Rank(x) - 2
	if n < 2 || n > 3 || c.b.Rank(grid) != n+2 || !c.b.Shape(grid)[n+1].Is(int64(n)) {
		c.bad("a grid of %s for %s", c.b.Type(grid), c.b.Type(x))
	}
	c.require(mode == 0 || mode == 1, "with bicubic interpolation")
	shape, outs := c.b.Shape(x), c.b.Shape(grid)[1:n+1]
	points := []ir.Dim{shape[0], ir.Product(outs)}
	grid = c.b.Reshape(grid, append(slices.Clone(points), ir.Const(int64(n))))
	places := make([]ir.Value, n) // by spatial dim, [N, P]
	for i := range n {
		k := int64(n - 1 - i)
		g := c.b.Reshape(c.b.SliceAxis(grid, 2, ir.Const(k), ir.Const(k+1), 1), points)
		places[i] = c.gridPlace(g, shape[2+i], edge, corners)
	}
	flat := c.b.Reshape(x, []ir.Dim{shape[0], shape[1], ir.Product(shape[2:])})
	var y ir.Value
	if mode == 1 {
		for i, p := range places {
			places[i] = c.b.Unary(ir.OpRoundNearestEven, p)
		}
		y, _ = c.gridCorner(flat, shape[2:], places, ir.NoValue)
	} else {
		y = c.gridLinear(flat, shape[2:], places)
	}
	return c.b.Reshape(y, slices.Concat(shape[:2], outs))
}

// gridLinear sums the corners around each place by their weights.
func (c *call) gridLinear(flat ir.Value, spatial []ir.Dim, places []ir.Value) ir.Value {
	y := ir.NoValue
	for corner := range 1 << len(places) {
		at, weight := make([]ir.Value, len(places)), ir.NoValue
		for i, p := range places {
			low := c.b.Unary(ir.OpFloor, p)
			share := c.b.Binary(ir.OpSubtract, p, low)
			if corner>>i&1 == 1 {
				low = lower.AddScalar(c.b, low, 1)
			} else {
				share = c.b.Binary(ir.OpSubtract, c.b.FullLike(share, 1), share)
			}
			at[i] = low
			if weight == ir.NoValue {
				weight = share
			} else {
				weight = c.b.Binary(ir.OpMultiply, weight, share)
			}
		}
		part, _ := c.gridCorner(flat, spatial, at, weight)
		if y == ir.NoValue {
			y = part
		} else {
			y = c.b.Binary(ir.OpAdd, y, part)
		}
	}
	return y
}

// gridCorner reads the elements at whole places, [N, C, P], zeros outside, times a weight
// (ir.NoValue: 1).
func (c *call) gridCorner(flat ir.Value, spatial []ir.Dim, at []ir.Value, weight ir.Value) (ir.Value, ir.Value) {
	b := c.b
	index, inside := ir.NoValue, ir.NoValue
	for i, p := range at {
		size := b.Broadcast(b.Convert(b.Dim(spatial[i]), b.DType(p)), b.Shape(p), nil)
		ok := b.Binary(ir.OpAnd, b.Compare(ir.GE, p, b.FullLike(p, 0)), b.Compare(ir.LT, p, size))
		place := b.Convert(b.Select(ok, p, b.FullLike(p, 0)), ir.I64)
		if index == ir.NoValue {
			index, inside = place, ok
			continue
		}
		row := b.Broadcast(b.Dim(spatial[i]), b.Shape(p), nil)
		index = b.Binary(ir.OpAdd, b.Binary(ir.OpMultiply, index, row), place)
		inside = b.Binary(ir.OpAnd, inside, ok)
	}
	shape := b.Shape(flat)
	v := b.Gather(flat, index, &ir.GatherAttrs{OffsetDims: []int{1}, CollapsedSliceDims: []int{2}, OperandBatchingDims: []int{0},
		StartIndicesBatchingDims: []int{0}, StartIndexMap: []int{2}, IndexVectorDim: 2, SliceSizes: []ir.Dim{ir.Const(1), shape[1], ir.Const(1)}})
	spread := func(x ir.Value) ir.Value { return b.Broadcast(x, b.Shape(v), []int{0, 2}) }
	if weight != ir.NoValue {
		v = b.Binary(ir.OpMultiply, v, spread(weight))
	}
	return b.Select(spread(inside), v, b.FullLike(v, 0)), inside
}

// gridPlace turns a place in -1..1 into one in elements, brought inside as the padding says.
func (c *call) gridPlace(g ir.Value, size ir.Dim, edge int64, corners bool) ir.Value {
	b := c.b
	number := func(d ir.Dim) ir.Value { return b.Broadcast(b.Convert(b.Dim(d), b.DType(g)), b.Shape(g), nil) }
	n := number(size)
	var p ir.Value
	if corners {
		p = b.Binary(ir.OpMultiply, lower.Scale(b, lower.AddScalar(b, g, 1), 0.5), lower.AddScalar(b, n, -1))
	} else {
		p = lower.Scale(b, lower.AddScalar(b, b.Binary(ir.OpMultiply, lower.AddScalar(b, g, 1), n), -1), 0.5)
	}
	if edge == 0 {
		return p
	}
	last := lower.AddScalar(b, n, -1)
	if edge == 2 {
		// Reflect at the centres of the outer elements, or at their edges.
		low, span := b.FullLike(p, 0), last
		if !corners {
			low, span = b.FullLike(p, -0.5), n
		}
		away := b.Unary(ir.OpAbs, b.Binary(ir.OpSubtract, p, low))
		safe := b.Select(b.Compare(ir.EQ, span, b.FullLike(span, 0)), b.FullLike(span, 1), span)
		flips := b.Unary(ir.OpFloor, b.Binary(ir.OpDivide, away, safe))
		rest := b.Binary(ir.OpSubtract, away, b.Binary(ir.OpMultiply, flips, safe))
		odd := b.Compare(ir.NE, b.Binary(ir.OpRemainder, flips, b.FullLike(flips, 2)), b.FullLike(flips, 0))
		p = b.Binary(ir.OpAdd, b.Select(odd, b.Binary(ir.OpSubtract, span, rest), rest), low)
	}
	return b.Op(ir.OpClamp, nil, nil, b.FullLike(p, 0), p, last)[0]
}
