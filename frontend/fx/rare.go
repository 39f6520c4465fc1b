package fx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// rareRules are operators that few models use.
func rareRules() map[string]rule {
	return map[string]rule{
		"logcumsumexp.default": value((*call).logCumSumExp),
		"trapezoid.dx":         value((*call).trapezoid),
		"trapz.dx":             value((*call).trapezoid),
		"cross.default":        value(func(c *call) ir.Value { return c.cross(c.tensor("self")) }),
		"linalg_cross.default": value(func(c *call) ir.Value { return c.cross(c.tensor("self")) }),
		"nextafter.default": value(func(c *call) ir.Value {
			return c.binary(c.operand("self"), c.operand("other"), c.nextAfter)
		}),
		"gcd.default":  value(func(c *call) ir.Value { return c.binary(c.operand("self"), c.operand("other"), c.gcd) }),
		"lcm.default":  value(func(c *call) ir.Value { return c.binary(c.operand("self"), c.operand("other"), c.lcm) }),
		"frexp.Tensor": values((*call).frexp),
		"cdist.default": value(func(c *call) ir.Value {
			c.arg("compute_mode")
			return c.cdist(c.tensor("x1"), c.tensor("x2"), c.float("p", 2))
		}),
		"_cdist_forward.default": value(func(c *call) ir.Value {
			c.arg("compute_mode")
			return c.cdist(c.tensor("x1"), c.tensor("x2"), c.float("p", 2))
		}),
		"histc.default":                  value((*call).histogram),
		"_weight_norm.default":           value(func(c *call) ir.Value { return c.weightNorm()[0] }),
		"_weight_norm_interface.default": values((*call).weightNorm),
		"transformers.grouped_mm_fallback.default": value(func(c *call) ir.Value {
			return c.groupedProduct(c.tensor("input"), c.tensor("weight"))
		}),
		"_grouped_mm.default": value(func(c *call) ir.Value { return c.groupedProduct(c.tensor("self"), c.tensor("mat2")) }),
	}
}

// logCumSumExp computes in float64, where terms vanish only 745 below the largest.
func (c *call) logCumSumExp() ir.Value {
	x := c.floating("self")
	axis := c.axis("dim", 0, c.b.Rank(x))
	if c.b.Rank(x) == 0 {
		return x
	}
	wide := c.b.Convert(x, ir.F64)
	largest := c.b.ReduceKeep(ir.Max, wide, axis)
	finite := c.b.Select(c.b.Unary(ir.OpIsFinite, largest), largest, c.b.FullLike(largest, 0))
	finite = c.b.BroadcastTo(finite, c.b.Shape(x))
	e := c.b.Unary(ir.OpExponential, c.b.Binary(ir.OpSubtract, wide, finite))
	sums := c.b.Cumulative(e, &ir.CumulativeAttrs{Combine: ir.Sum, Axis: axis})
	return c.b.Convert(c.b.Binary(ir.OpAdd, c.b.Unary(ir.OpLog, sums), finite), c.b.DType(x))
}

// trapezoid integrates along dim with steps of dx.
func (c *call) trapezoid() ir.Value {
	y := c.floating("y")
	axis := c.axis("dim", -1, c.b.Rank(y))
	dx := c.float("dx", 1)
	if c.b.Rank(y) == 0 {
		c.bad("a scalar has no integral")
	}
	size := c.b.Shape(y)[axis]
	if size.Is(0) {
		return c.b.Reduce(ir.Sum, y, axis)
	}
	sum := c.b.Binary(ir.OpAdd, c.b.SliceAxis(y, axis, ir.Const(1), size, 1), c.b.SliceAxis(y, axis, ir.Const(0), size.AddConst(-1), 1))
	return lower.Scale(c.b, c.b.Reduce(ir.Sum, sum, axis), dx/2)
}

// cross is the cross product along a dim of size 3.
func (c *call) cross(x ir.Value) ir.Value {
	xs := lower.Broadcast(c.b, c.promoted([]ir.Value{x, c.tensor("other")})...)
	shape := c.b.Shape(xs[0])
	axis := slices.IndexFunc(shape, func(d ir.Dim) bool { return d.Is(3) })
	if c.has("dim") {
		axis = c.axis("dim", -1, len(shape))
	} else if c.node.target == "torch.ops.aten.linalg_cross.default" {
		axis = len(shape) - 1
	}
	if axis < 0 || axis >= len(shape) || !shape[axis].Is(3) {
		c.bad("no dim of size 3 in %s", ir.DimList(shape))
	}
	turn := func(v ir.Value, n int64) ir.Value { return c.shifted(v, axis, ir.Const(n)) }
	left := c.b.Binary(ir.OpMultiply, turn(xs[0], -1), turn(xs[1], -2))
	return c.b.Binary(ir.OpSubtract, left, c.b.Binary(ir.OpMultiply, turn(xs[0], -2), turn(xs[1], -1)))
}

// nextAfter is the neighbour of x toward y: one more or less in the bits.
func (c *call) nextAfter(x, y ir.Value) ir.Value {
	t := c.b.DType(x)
	bits, ok := map[ir.DType]ir.DType{ir.F16: ir.I16, ir.BF16: ir.I16, ir.F32: ir.I32, ir.F64: ir.I64}[t]
	if !ok {
		c.unsupported(" of " + t.String())
	}
	zero := c.b.FullLike(x, 0)
	i := bitcastView{bits}.apply(c.b, x)
	one := c.b.FullLike(i, 1)
	away := c.b.Compare(ir.EQ, c.b.Convert(c.b.Compare(ir.GT, y, x), ir.I8), c.b.Convert(c.b.Compare(ir.GT, x, zero), ir.I8))
	next := c.b.Select(away, c.b.Binary(ir.OpAdd, i, one), c.b.Binary(ir.OpSubtract, i, one))
	r := bitcastView{t}.apply(c.b, next)
	smallest := bitcastView{t}.apply(c.b, one)
	fromZero := c.b.Select(c.b.Compare(ir.GT, y, zero), smallest, c.b.Unary(ir.OpNegate, smallest))
	r = c.b.Select(c.b.Compare(ir.EQ, x, zero), fromZero, r)
	r = c.b.Select(c.b.Compare(ir.EQ, x, y), y, r)
	nan := c.b.Binary(ir.OpOr, lower.IsNaN(c.b, x), lower.IsNaN(c.b, y))
	return c.b.Select(nan, c.b.Binary(ir.OpAdd, x, y), r)
}

// gcd is Euclid's algorithm on all elements until none has a remainder.
func (c *call) gcd(x, y ir.Value) ir.Value {
	t := c.b.Type(x)
	params := func() []ir.Value { return []ir.Value{c.entry.NewValue(t), c.entry.NewValue(t)} }
	condition, body := &ir.Block{Params: params()}, &ir.Block{Params: params()}
	left := func(b *ir.Builder, v ir.Value) ir.Value { return b.Compare(ir.NE, v, b.FullLike(v, 0)) }
	b := c.b.Within(condition)
	condition.Results = []ir.Value{b.Reduce(ir.Or, left(b, condition.Params[1]), identity(t.Rank())...)}
	b = c.b.Within(body)
	n, d := body.Params[0], body.Params[1]
	more := left(b, d)
	rest := b.Binary(ir.OpRemainder, n, b.Select(more, d, b.FullLike(d, 1)))
	body.Results = []ir.Value{b.Select(more, d, n), b.Select(more, rest, d)}
	start := []ir.Value{c.b.Unary(ir.OpAbs, x), c.b.Unary(ir.OpAbs, y)}
	return c.b.Op(ir.OpWhile, nil, []*ir.Block{condition, body}, start...)[0]
}

// lcm is |x / gcd * y|, 0 where either is.
func (c *call) lcm(x, y ir.Value) ir.Value {
	g := c.gcd(x, y)
	g = c.b.Select(c.b.Compare(ir.EQ, g, c.b.FullLike(g, 0)), c.b.FullLike(g, 1), g)
	return c.b.Unary(ir.OpAbs, c.b.Binary(ir.OpMultiply, c.b.Binary(ir.OpDivide, x, g), y))
}

// frexp splits float32 or float64 into a mantissa in [1/2, 1) and an exponent.
func (c *call) frexp() []ir.Value {
	x := c.tensor("self")
	t := c.b.DType(x)
	bits, mantissa, bias := ir.I32, 23, int64(126)
	switch t {
	case ir.F32:
	case ir.F64:
		bits, mantissa, bias = ir.I64, 52, 1022
	default:
		c.unsupported(" of " + t.String())
	}
	// Subnormal numbers are scaled up first.
	limit := math.Ldexp(1, int(1-bias))
	small := c.b.Compare(ir.LT, c.b.Unary(ir.OpAbs, x), c.b.FullLike(x, limit))
	scaled := c.b.Select(small, lower.Scale(c.b, x, math.Ldexp(1, 64)), x)
	i := bitcastView{bits}.apply(c.b, scaled)
	number := func(v int64) ir.Value {
		return c.b.Broadcast(c.b.Constant(ir.ScalarInt(bits, v)), c.b.Shape(x), nil)
	}
	fieldMask := int64(1)<<(t.Bits()-1-mantissa) - 1
	field := c.b.Binary(ir.OpAnd, c.b.Binary(ir.OpShiftRightLogical, i, number(int64(mantissa))), number(fieldMask))
	rest := c.b.Binary(ir.OpAnd, i, number(^(fieldMask << mantissa)))
	m := bitcastView{t}.apply(c.b, c.b.Binary(ir.OpOr, rest, number(bias<<mantissa)))
	e := c.b.Binary(ir.OpSubtract, field, number(bias))
	e = c.b.Select(small, c.b.Binary(ir.OpSubtract, e, number(64)), e)
	whole := c.b.Binary(ir.OpOr, c.b.Compare(ir.EQ, x, c.b.FullLike(x, 0)), lower.Not(c.b, c.b.Unary(ir.OpIsFinite, x)))
	return []ir.Value{c.b.Select(whole, x, m), c.b.Convert(c.b.Select(whole, number(0), e), ir.I32)}
}

// cdist is the p-norm of the differences of all rows of x and y.
func (c *call) cdist(x, y ir.Value, p float64) ir.Value {
	spread := func(v ir.Value, axis int) ir.Value {
		shape := c.b.Shape(v)
		if len(shape) < 2 {
			c.bad("rows of rank %d", len(shape))
		}
		return c.b.Reshape(v, slices.Insert(slices.Clone(shape), len(shape)-axis, ir.Const(1)))
	}
	d := c.b.Unary(ir.OpAbs, lower.Binary(c.b, ir.OpSubtract, spread(x, 1), spread(y, 2)))
	return c.powerNorm(d, p, func(combine ir.Combine, v ir.Value) ir.Value { return c.b.Reduce(combine, v, c.b.Rank(v)-1) })
}

// histogram counts elements in bins of equal width from min to max; equal bounds mean those of
// the data.
func (c *call) histogram() ir.Value {
	x := c.tensor("self")
	bins, low, high := c.int("bins", 100), c.float("min", 0), c.float("max", 0)
	if bins < 1 || bins > maxSize {
		c.bad("%d bins", bins)
	}
	x = c.b.Reshape(x, []ir.Dim{ir.Product(c.b.Shape(x))})
	t := c.b.Type(x)
	from, to := c.b.FullLike(x, low), c.b.FullLike(x, high)
	if low == high {
		from = c.b.Broadcast(c.b.Reduce(ir.Min, x, 0), t.Shape, nil)
		to = c.b.Broadcast(c.b.Reduce(ir.Max, x, 0), t.Shape, nil)
		flat := c.b.Compare(ir.EQ, from, to)
		one := c.b.FullLike(x, 1)
		from, to = c.b.Select(flat, c.b.Binary(ir.OpSubtract, from, one), from), c.b.Select(flat, c.b.Binary(ir.OpAdd, to, one), to)
	}
	share := c.b.Binary(ir.OpDivide, c.b.Binary(ir.OpSubtract, x, from), c.b.Binary(ir.OpSubtract, to, from))
	at := c.b.Convert(c.b.Unary(ir.OpFloor, lower.Scale(c.b, share, float64(bins))), ir.I64)
	at = c.b.Binary(ir.OpMinimum, at, c.b.FullLike(at, float64(bins-1)))
	inside := c.b.Binary(ir.OpAnd, c.b.Compare(ir.GE, x, from), c.b.Compare(ir.LE, x, to))
	at = c.b.Select(inside, at, c.b.FullLike(at, -1)) // dropped by scatter
	zeros := c.b.Full(ir.TensorOf(t.DType, ir.Const(bins)), 0)
	return c.b.Scatter(zeros, at, c.b.FullLike(x, 1), &ir.ScatterAttrs{Combine: ir.Sum, InsertedWindowDims: []int{0},
		ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1})
}

// groupedProduct multiplies row t of x [T, K] with the matrix of its group in weight [G, K, N];
// offs [G] are the ends of the groups.
func (c *call) groupedProduct(x, weight ir.Value) ir.Value {
	offs := c.tensor("offs")
	if c.b.Rank(x) != 2 || c.b.Rank(weight) != 3 || c.b.Rank(offs) != 1 {
		c.unsupported(" of other ranks than [T, K], [G, K, N] and [G]")
	}
	all := c.b.DotGeneral(x, weight, &ir.DotAttrs{LhsContract: []int{1}, RhsContract: []int{1}}) // [T, G, N]
	return c.b.Reduce(ir.Sum, c.ofGroup(all, offs), 1)
}

// ofGroup keeps what rows [T, G, N] have of their own group, which ends before the row that offs says, and
// makes the rest zero.
func (c *call) ofGroup(all, offs ir.Value) ir.Value {
	shape := c.b.Shape(all)
	grid := shape[:2]
	row := c.b.Iota(c.b.DType(offs), grid, 0)
	ends := c.b.Broadcast(offs, grid, []int{1})
	starts := c.b.Broadcast(c.b.Pad(offs, c.b.Scalar(c.b.DType(offs), 0), ir.Consts[int64](1), ir.Consts[int64](-1), nil), grid, []int{1})
	own := c.b.Binary(ir.OpAnd, c.b.Compare(ir.GE, row, starts), c.b.Compare(ir.LT, row, ends))
	return c.b.Select(c.b.Broadcast(own, shape, []int{0, 1}), all, c.b.FullLike(all, 0))
}

// groupedProductBackward gives the gradients of the rows and of the weights of each group.
func (c *call) groupedProductBackward() []ir.Value {
	x, weight, offs, dy := c.tensor("input"), c.tensor("weight"), c.tensor("offs"), c.tensor("grad_output")
	if c.b.Rank(x) != 2 || c.b.Rank(weight) != 3 || c.b.Rank(offs) != 1 || c.b.Rank(dy) != 2 {
		c.unsupported(" of other ranks than [T, K], [G, K, N], [G] and [T, N]")
	}
	all := c.b.DotGeneral(dy, weight, &ir.DotAttrs{LhsContract: []int{1}, RhsContract: []int{2}}) // [T, G, K]
	dx := c.b.Reduce(ir.Sum, c.ofGroup(all, offs), 1)
	rows := c.ofGroup(c.b.Broadcast(x, c.b.Shape(all), []int{0, 2}), offs)
	return []ir.Value{dx, c.b.DotGeneral(rows, dy, &ir.DotAttrs{LhsContract: []int{0}, RhsContract: []int{0}})}
}
