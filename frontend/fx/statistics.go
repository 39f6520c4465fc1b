package fx

import (
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// statisticsRules are tests of membership and closeness, diagonals, and joins of vectors.
func statisticsRules() map[string]rule {
	isin := value((*call).isIn)
	return map[string]rule{
		"isclose.default":        value((*call).isClose),
		"isin.Tensor_Tensor":     isin,
		"isin.Tensor_Scalar":     isin,
		"isin.Scalar_Tensor":     isin,
		"ldexp.Tensor":           value((*call).loadExponent),
		"ldexp.default":          value((*call).loadExponent),
		"diag_embed.default":     value(func(c *call) ir.Value { return c.diagonalMatrix(c.tensor("self"), c.int("offset", 0)) }),
		"diag.default":           value((*call).diag),
		"cartesian_prod.default": value((*call).cartesianProduct),
		"block_diag.default":     value((*call).blockDiagonal),
		"addr.default": value(func(c *call) ir.Value {
			return c.addScaledProduct(func(to ir.DType) ir.Value {
				return c.b.DotGeneral(c.tensor("vec1"), c.tensor("vec2"), &ir.DotAttrs{To: to})
			})
		}),
		"logaddexp2.default": value(func(c *call) ir.Value {
			return c.real(c.operand("self"), c.operand("other"), c.inFloat32(func(x, y ir.Value) ir.Value {
				const ln2 = 0.693147180559945309417232121458
				return lower.Scale(c.b, c.logAddExp(lower.Scale(c.b, x, ln2), lower.Scale(c.b, y, ln2)), 1/ln2)
			}))
		}),
		"logspace.default":      value((*call).logspace),
		"conj_physical.default": value(func(c *call) ir.Value { return c.tensor("self") }),
		"max_unpool2d.default":  value(func(c *call) ir.Value { return c.unpool(2) }),
		"max_unpool3d.default":  value(func(c *call) ir.Value { c.arg("stride"); c.arg("padding"); return c.unpool(3) }),
	}
}

func (c *call) flat(x ir.Value) ir.Value { return c.b.Reshape(x, []ir.Dim{ir.Product(c.b.Shape(x))}) }

// median is the lower of the middle elements along dim and its index; a NaN is the median
// unless they are ignored.
func (c *call) median(x ir.Value, ignoreNaN bool) []ir.Value {
	rank := c.b.Rank(x)
	axis := c.axis("dim", -1, rank)
	keep := c.bool("keepdim", false)
	if rank == 0 {
		return []ir.Value{x, c.b.Scalar(ir.I64, 0)}
	}
	list := c.sortedOf(x, false)
	size := c.b.Shape(x)[axis]
	dims := slices.Clone(c.b.Shape(x))
	dims[axis] = ir.Const(1)
	at := c.b.Broadcast(c.b.Dim(size.AddConst(-1).FloorDiv(ir.Const(2))), dims, nil)
	if c.b.DType(x).IsFloat() {
		// NaN counts as largest: the numbers come first.
		numbers := c.b.ReduceKeep(ir.Sum, c.b.Convert(lower.Not(c.b, lower.IsNaN(c.b, x)), ir.I64), axis)
		if ignoreNaN {
			at = c.b.Binary(ir.OpDivide, c.b.Binary(ir.OpMaximum, lower.AddScalar(c.b, numbers, -1), c.b.FullLike(at, 0)), c.b.FullLike(at, 2))
		} else {
			some := c.b.Compare(ir.LT, numbers, c.b.Broadcast(c.b.Dim(size), dims, nil))
			at = c.b.Select(some, numbers, at)
		}
	}
	for i, v := range list {
		v = c.gatherAlong(v, at, axis)
		if !keep {
			v = c.b.Reshape(v, slices.Delete(slices.Clone(dims), axis, axis+1))
		}
		list[i] = v
	}
	return list
}

// quantile interpolates between the sorted elements along dim (all of them when it is absent).
// Several quantiles come in a new first dim.
func (c *call) quantile(ignoreNaN bool) ir.Value {
	x, q := c.tensor("self"), c.operand("q")
	keep := c.bool("keepdim", false)
	mode := c.string("interpolation", "linear")
	shape := slices.Clone(c.b.Shape(x))
	axis := 0
	if !c.has("dim") {
		for i := range shape {
			shape[i] = ir.Const(1)
		}
		x = c.flat(x)
	} else {
		axis = c.axis("dim", 0, len(shape))
	}
	c.require(c.b.Rank(x) > 0, "of a scalar")
	if c.has("dim") {
		shape[axis] = ir.Const(1)
		if !keep {
			shape = slices.Delete(shape, axis, axis+1)
		}
	} else if !keep {
		shape = nil
	}
	t := c.b.DType(x)
	p := c.as(q, ir.F64)
	several := c.b.Rank(p) == 1
	// Sorted elements in the last dim, quantiles in a dim after it.
	order := identity(c.b.Rank(x))
	order = append(slices.Delete(order, axis, axis+1), axis)
	s := c.b.Transpose(x, order)
	n := c.b.Rank(s) - 1
	size := c.b.Shape(s)[n]
	s = c.b.Sort(&ir.SortAttrs{Axis: n}, s)[0]
	lead := c.b.Shape(s)[:n]
	dims := slices.Concat(lead, []ir.Dim{ir.Product(c.b.Shape(p))})
	grid := c.b.Broadcast(c.flat(p), dims, []int{n})
	numbers := c.b.Broadcast(c.b.Convert(c.b.Dim(size), ir.F64), lead, nil)
	nan := c.b.Reduce(ir.Or, lower.IsNaN(c.b, s), n)
	if ignoreNaN {
		numbers = c.b.Reduce(ir.Sum, c.b.Convert(lower.Not(c.b, lower.IsNaN(c.b, s)), ir.F64), n)
		nan = c.b.Compare(ir.EQ, numbers, c.b.FullLike(numbers, 0))
	}
	place := c.b.Binary(ir.OpMultiply, grid, c.b.Broadcast(lower.AddScalar(c.b, numbers, -1), dims, identity(n)))
	r := c.interpolated(s, place, n, mode)
	r = c.b.Select(c.b.Broadcast(nan, dims, identity(n)), c.b.Binary(ir.OpDivide, c.b.FullLike(r, 0), c.b.FullLike(r, 0)), r)
	r = c.b.Convert(r, t)
	if !several {
		return c.b.Reshape(r, shape)
	}
	r = c.b.Transpose(r, append([]int{n}, identity(n)...))
	return c.b.Reshape(r, slices.Concat([]ir.Dim{c.b.Shape(r)[0]}, shape))
}

// interpolated reads sorted elements at fractional places along an axis.
func (c *call) interpolated(s, place ir.Value, axis int, mode string) ir.Value {
	below, above := c.b.Unary(ir.OpFloor, place), c.b.Unary(ir.OpCeil, place)
	read := func(at ir.Value) ir.Value { return c.gatherAlong(s, c.b.Convert(at, ir.I64), axis) }
	switch mode {
	case "lower":
		return read(below)
	case "higher":
		return read(above)
	case "nearest":
		return read(c.b.Unary(ir.OpRoundNearestEven, place))
	}
	low, high := read(below), read(above)
	weight := c.b.Convert(c.b.Binary(ir.OpSubtract, place, below), c.b.DType(s))
	if mode == "midpoint" {
		weight = c.b.FullLike(weight, 0.5)
	}
	return c.b.Binary(ir.OpAdd, low, c.b.Binary(ir.OpMultiply, weight, c.b.Binary(ir.OpSubtract, high, low)))
}

// sumToSize sums over leading dims and over dims that the size has as 1.
func (c *call) sumToSize() ir.Value {
	x, size := c.tensor("self"), c.sizes("size")
	shape := c.b.Shape(x)
	extra := len(shape) - len(size)
	if extra < 0 {
		c.bad("%s cannot be summed to %s", ir.DimList(shape), ir.DimList(size))
	}
	var axes []int
	for i, d := range shape {
		if i < extra || size[i-extra].Is(1) && !d.Is(1) {
			axes = append(axes, i)
		}
	}
	if len(axes) > 0 {
		x = c.accumulable(x)
	}
	return c.b.Reshape(c.b.Reduce(ir.Sum, x, axes...), size)
}

// isClose is |x - y| <= atol + rtol*|y| for finite y, or x = y.
func (c *call) isClose() ir.Value {
	rtol, atol, nan := c.float("rtol", 1e-5), c.float("atol", 1e-8), c.bool("equal_nan", false)
	x, y := c.operand("self"), c.operand("other")
	t := c.resultType(x, y)
	return c.arithmetic(x, y, t, func(x, y ir.Value) ir.Value {
		close := c.b.Compare(ir.EQ, x, y)
		if nan {
			close = c.b.Binary(ir.OpOr, close, c.b.Binary(ir.OpAnd, lower.IsNaN(c.b, x), lower.IsNaN(c.b, y)))
		}
		if !t.IsFloat() {
			x, y = c.b.Convert(x, ir.F64), c.b.Convert(y, ir.F64)
		}
		allowed := lower.AddScalar(c.b, lower.Scale(c.b, c.b.Unary(ir.OpAbs, y), rtol), atol)
		distance := c.b.Unary(ir.OpAbs, c.b.Binary(ir.OpSubtract, x, y))
		near := c.b.Binary(ir.OpAnd, c.b.Unary(ir.OpIsFinite, distance), c.b.Compare(ir.LE, distance, allowed))
		return c.b.Binary(ir.OpOr, close, near)
	})
}

// isIn tells which elements are among the test elements.
func (c *call) isIn() ir.Value {
	name, test := "elements", "test_elements"
	if !c.has(name) {
		name = "element"
	}
	if !c.has(test) {
		test = "test_element"
	}
	x, y := c.operand(name), c.operand(test)
	invert := c.bool("invert", false)
	c.arg("assume_unique")
	t := c.resultType(x, y)
	elements, tests := c.as(x, t), c.flat(c.as(y, t))
	n := c.b.Rank(elements)
	dims := slices.Concat(c.b.Shape(elements), c.b.Shape(tests))
	same := c.b.Compare(ir.EQ, c.b.Broadcast(elements, dims, identity(n)), c.b.Broadcast(tests, dims, []int{n}))
	r := c.b.Reduce(ir.Or, same, n)
	if invert {
		return lower.Not(c.b, r)
	}
	return r
}

// loadExponent is x * 2^y.
func (c *call) loadExponent() ir.Value {
	return c.real(c.operand("self"), c.operand("other"), func(x, y ir.Value) ir.Value {
		return c.b.Binary(ir.OpMultiply, x, c.b.Binary(ir.OpPower, c.b.FullLike(y, 2), y))
	})
}

// diagonalMatrix puts the last dim of x on a diagonal of two new dims, dim1 and dim2.
func (c *call) diagonalMatrix(x ir.Value, offset int64) ir.Value {
	shape := c.b.Shape(x)
	rank := len(shape) + 1
	row, col := c.axis("dim1", -2, rank), c.axis("dim2", -1, rank)
	if len(shape) == 0 || row == col {
		c.bad("a diagonal of rank %d in dims %d and %d", len(shape), row, col)
	}
	n := shape[len(shape)-1]
	side := n.AddConst(max(offset, -offset))
	whole := slices.Concat(shape[:len(shape)-1], []ir.Dim{side, side})
	v := diagonalView{offset: offset, row: rank - 2, col: rank - 1, start: ir.Const(max(-offset, 0)), len: n}
	m := v.scatter(c.b, c.b.Full(ir.TensorOf(c.b.DType(x), whole...), 0), x)
	p := make([]int, 0, rank)
	for i, next := 0, 0; i < rank; i++ {
		switch i {
		case row:
			p = append(p, rank-2)
		case col:
			p = append(p, rank-1)
		default:
			p = append(p, next)
			next++
		}
	}
	return c.b.Transpose(m, p)
}

// diag makes a matrix of a vector, or takes the diagonal of a matrix.
func (c *call) diag() ir.Value {
	x, offset := c.tensor("self"), c.int("diagonal", 0)
	if c.b.Rank(x) == 1 {
		return c.diagonalMatrix(x, offset)
	}
	if c.b.Rank(x) != 2 {
		c.bad("a diagonal of rank %d", c.b.Rank(x))
	}
	v := diagonalView{offset: offset, row: 0, col: 1, start: ir.Const(max(-offset, 0))}
	v.len = c.least(c.b.Shape(x)[0].Sub(v.start), c.b.Shape(x)[1].AddConst(-max(offset, 0)))
	return v.apply(c.b, x)
}

// cartesianProduct lists all combinations of elements of vectors.
func (c *call) cartesianProduct() ir.Value {
	xs := c.meshgrid()
	if len(xs) == 1 {
		return xs[0]
	}
	for i, x := range xs {
		xs[i] = c.flat(x)
	}
	return lower.Stack(c.b, 1, c.promoted(xs)...)
}

// blockDiagonal puts matrices along a diagonal.
func (c *call) blockDiagonal() ir.Value {
	xs := c.promoted(c.tensors("tensors"))
	columns := ir.Const(0)
	for i, x := range xs {
		if shape := c.b.Shape(x); len(shape) < 2 {
			xs[i] = c.b.Reshape(x, []ir.Dim{ir.Const(1), ir.Product(shape)})
		}
		columns = columns.Add(c.b.Shape(xs[i])[1])
	}
	at := ir.Const(0)
	for i, x := range xs {
		width := c.b.Shape(x)[1]
		rest := columns.Sub(at).Sub(width)
		xs[i] = c.b.Pad(x, c.b.Scalar(c.b.DType(x), 0), []ir.Dim{ir.Const(0), at}, []ir.Dim{ir.Const(0), rest}, nil)
		at = at.Add(width)
	}
	return c.b.Concatenate(0, xs...)
}

// logspace is base to the power of evenly spaced exponents.
func (c *call) logspace() ir.Value {
	base := c.float("base", 10)
	start, end, n := c.float("start", 0), c.float("end", 0), c.int("steps", 100)
	if n < 0 || n > maxSize {
		c.bad("%d steps", n)
	}
	step := 0.0
	if n > 1 {
		step = (end - start) / float64(n-1)
	}
	e := c.progression(ir.Const(n), start, step)
	return c.b.Convert(c.b.Binary(ir.OpPower, c.b.FullLike(e, base), e), c.dtype("dtype", ir.F32))
}

// unpool puts elements at their flat places in n spatial dims of zeros.
func (c *call) unpool(n int) ir.Value {
	x, indices := c.tensor("self"), c.tensor("indices")
	out := c.sizes("output_size")
	rank := c.b.Rank(x)
	if len(out) != n || rank < n || c.b.Rank(indices) != rank {
		c.bad("output_size has %d numbers for rank %d", len(out), rank)
	}
	lead := c.b.Shape(x)[:rank-n]
	rows, from := ir.Product(lead), ir.Product(c.b.Shape(x)[rank-n:])
	dims := []ir.Dim{rows, from}
	zeros := c.b.Full(ir.TensorOf(c.b.DType(x), rows, ir.Product(out)), 0)
	r := c.b.Scatter(zeros, c.b.Reshape(indices, dims), c.b.Reshape(x, dims), &ir.ScatterAttrs{Combine: ir.Assign,
		InsertedWindowDims: []int{1}, InputBatchingDims: []int{0}, ScatterIndicesBatchingDims: []int{0}, ScatterDimsToOperandDims: []int{1}, IndexVectorDim: 2})
	return c.b.Reshape(r, slices.Concat(lead, out))
}
