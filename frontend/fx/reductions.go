package fx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// reductionRules are sums, extremes, moments, norms, scans and sorting.
func reductionRules() map[string]rule {
	t := map[string]rule{
		"max.default":  value(func(c *call) ir.Value { x := c.tensor("self"); return c.b.Reduce(ir.Max, x, identity(c.b.Rank(x))...) }),
		"min.default":  value(func(c *call) ir.Value { x := c.tensor("self"); return c.b.Reduce(ir.Min, x, identity(c.b.Rank(x))...) }),
		"max.dim":      values(func(c *call) []ir.Value { return c.extreme(ir.Max) }),
		"min.dim":      values(func(c *call) []ir.Value { return c.extreme(ir.Min) }),
		"amax.default": value(func(c *call) ir.Value { return c.reduceDims(ir.Max, c.tensor("self")) }),
		"amin.default": value(func(c *call) ir.Value { return c.reduceDims(ir.Min, c.tensor("self")) }),
		"aminmax.default": values(func(c *call) []ir.Value {
			x := c.tensor("self")
			return []ir.Value{c.reduceDims(ir.Min, x), c.reduceDims(ir.Max, x)}
		}),
		"argmax.default": value(func(c *call) ir.Value { return c.argReduce(ir.Max) }),
		"argmin.default": value(func(c *call) ir.Value { return c.argReduce(ir.Min) }),
		"logsumexp.default": value(func(c *call) ir.Value {
			x := c.floating("self")
			return lower.LogSumExp(c.b, x, c.axes("dim", c.b.Rank(x)), c.bool("keepdim", false))
		}),
		"cumsum.default":  value(func(c *call) ir.Value { return c.cumulative(ir.Sum) }),
		"cumprod.default": value(func(c *call) ir.Value { return c.cumulative(ir.Mul) }),
		"cummax.default":  values(func(c *call) []ir.Value { return c.runningExtreme(ir.Max, ir.GE) }),
		"cummin.default":  values(func(c *call) []ir.Value { return c.runningExtreme(ir.Min, ir.LE) }),
		"diff.default":    value((*call).diff),
		"trace.default":   value((*call).trace),
		"sort.default":    values((*call).sort),
		"sort.stable":     values((*call).sort),
		"argsort.default": value(func(c *call) ir.Value { return c.sort()[1] }),
		"argsort.stable":  value(func(c *call) ir.Value { return c.sort()[1] }),
		"topk.default":    values((*call).topk),
		"kthvalue.default": values(func(c *call) []ir.Value {
			return c.ranked(c.int("k", 1) - 1)
		}),
		"median.dim":           values(func(c *call) []ir.Value { return c.median(c.tensor("self"), false) }),
		"nanmedian.dim":        values(func(c *call) []ir.Value { return c.median(c.tensor("self"), true) }),
		"median.default":       value(func(c *call) ir.Value { return c.median(c.flat(c.tensor("self")), false)[0] }),
		"nanmedian.default":    value(func(c *call) ir.Value { return c.median(c.flat(c.tensor("self")), true)[0] }),
		"quantile.scalar":      value(func(c *call) ir.Value { return c.quantile(false) }),
		"quantile.default":     value(func(c *call) ir.Value { return c.quantile(false) }),
		"nanquantile.scalar":   value(func(c *call) ir.Value { return c.quantile(true) }),
		"nanquantile.default":  value(func(c *call) ir.Value { return c.quantile(true) }),
		"sum_to_size.default":  value((*call).sumToSize),
		"softmax.int":          value(func(c *call) ir.Value { return c.softmax(lower.Softmax) }),
		"_softmax.default":     value(func(c *call) ir.Value { return c.softmax(lower.Softmax) }),
		"log_softmax.int":      value(func(c *call) ir.Value { return c.softmax(lower.LogSoftmax) }),
		"_log_softmax.default": value(func(c *call) ir.Value { return c.softmax(lower.LogSoftmax) }),
		"_safe_softmax.default": value(func(c *call) ir.Value {
			return c.softmax(func(b *ir.Builder, x ir.Value, axis int) ir.Value {
				y := lower.Softmax(b, x, axis)
				hidden := b.Compare(ir.EQ, b.ReduceKeep(ir.Max, x, axis), b.FullLike(b.ReduceKeep(ir.Max, x, axis), math.Inf(-1)))
				return b.Select(b.BroadcastTo(hidden, b.Shape(y)), b.FullLike(y, 0), y)
			})
		}),
		"linalg_vector_norm.default": value(func(c *call) ir.Value { return c.norm(c.float("ord", 2)) }),
		"norm.Scalar":                value(func(c *call) ir.Value { return c.norm(c.float("p", 2)) }),
		"norm.ScalarOpt_dim":         value(func(c *call) ir.Value { return c.norm(c.float("p", 2)) }),
		"norm.ScalarOpt_dim_dtype":   value(func(c *call) ir.Value { return c.norm(c.float("p", 2)) }),
		"norm.ScalarOpt_dtype":       value(func(c *call) ir.Value { return c.norm(c.float("p", 2)) }),
	}
	both := func(r rule, names ...string) {
		for _, n := range names {
			t[n] = r
		}
	}
	both(value(func(c *call) ir.Value { return c.summed(c.tensor("self")) }), "sum.default", "sum.dim_IntList")
	both(value(func(c *call) ir.Value {
		x := c.tensor("self")
		return c.summed(c.b.Select(lower.IsNaN(c.b, x), c.b.FullLike(x, 0), x))
	}), "nansum.default")
	both(value((*call).mean), "mean.default", "mean.dim")
	both(value((*call).nanMean), "nanmean.default")
	both(value(func(c *call) ir.Value { return c.reduceDims(ir.Mul, c.accumulable(c.tensor("self"))) }), "prod.default", "prod.dim_int")
	both(value(func(c *call) ir.Value { return c.truth(ir.Or) }), "any.default", "any.dim", "any.dims")
	both(value(func(c *call) ir.Value { return c.truth(ir.And) }), "all.default", "all.dim", "all.dims")
	both(value(func(c *call) ir.Value {
		x := c.b.Convert(lower.Truth(c.b, c.tensor("self")), ir.I64)
		return c.reduceDims(ir.Sum, x)
	}), "count_nonzero.default", "count_nonzero.dim_IntList")
	overloads := []string{"default", "dim", "correction"}
	for _, o := range overloads {
		t["var."+o] = values(func(c *call) []ir.Value { return c.moments(false)[:1] })
		t["std."+o] = values(func(c *call) []ir.Value { return c.moments(true)[:1] })
		t["var_mean."+o] = values(func(c *call) []ir.Value { return c.moments(false) })
		t["std_mean."+o] = values(func(c *call) []ir.Value { return c.moments(true) })
	}
	return t
}

// reduceDims combines along the argument dim (all when it is absent), which vanishes unless
// keepdim is set.
func (c *call) reduceDims(combine ir.Combine, x ir.Value) ir.Value {
	axes := c.axes("dim", c.b.Rank(x))
	if c.bool("keepdim", false) {
		return c.b.ReduceKeep(combine, x, axes...)
	}
	return c.b.Reduce(combine, x, axes...)
}

// accumulable is x in the argument dtype, or, for bools and integers, in int64.
func (c *call) accumulable(x ir.Value) ir.Value {
	def := c.b.DType(x)
	if !def.IsFloat() && !def.IsComplex() {
		def = ir.I64
	}
	return c.b.Convert(x, c.dtype("dtype", def))
}

func (c *call) summed(x ir.Value) ir.Value { return c.reduceDims(ir.Sum, c.accumulable(x)) }

func (c *call) mean() ir.Value {
	x := c.tensor("self")
	x = c.b.Convert(x, c.dtype("dtype", c.b.DType(x)))
	return lower.Mean(c.b, x, c.axes("dim", c.b.Rank(x)), c.bool("keepdim", false))
}

func (c *call) nanMean() ir.Value {
	x := c.tensor("self")
	nan := lower.IsNaN(c.b, x)
	return lower.InFloat32(c.b, func(v []ir.Value) ir.Value {
		sum := c.reduceDims(ir.Sum, c.b.Select(nan, c.b.FullLike(v[0], 0), v[0]))
		n := c.reduceDims(ir.Sum, c.b.Convert(lower.Not(c.b, nan), c.b.DType(v[0])))
		return c.b.Binary(ir.OpDivide, sum, n)
	}, x)
}

// truth is any or all; for uint8 the result is uint8.
func (c *call) truth(combine ir.Combine) ir.Value {
	x := c.tensor("self")
	r := c.reduceDims(combine, lower.Truth(c.b, x))
	if c.b.DType(x) == ir.U8 {
		return c.b.Convert(r, ir.U8)
	}
	return r
}

// extreme gives the extreme element along dim and its index.
func (c *call) extreme(combine ir.Combine) []ir.Value {
	x := c.tensor("self")
	if c.b.Rank(x) == 0 {
		c.arg("dim")
		c.arg("keepdim")
		return []ir.Value{x, c.b.Scalar(ir.I64, 0)}
	}
	index := c.argReduce(combine)
	return []ir.Value{c.reduceDims(combine, x), index}
}

func (c *call) argReduce(combine ir.Combine) ir.Value {
	x := c.tensor("self")
	shape := c.b.Shape(x)
	keep := c.bool("keepdim", false)
	if !c.has("dim") {
		flat := c.b.Reshape(x, []ir.Dim{ir.Product(shape)})
		r := c.b.ArgReduce(flat, &ir.ArgReduceAttrs{Combine: combine})
		if keep {
			return c.b.Reshape(r, ir.Consts(slices.Repeat([]int64{1}, len(shape))...))
		}
		return r
	}
	axis := c.axis("dim", 0, len(shape))
	if len(shape) == 0 {
		return c.b.Scalar(ir.I64, 0)
	}
	r := c.b.ArgReduce(x, &ir.ArgReduceAttrs{Combine: combine, Axis: axis})
	if keep {
		dims := slices.Clone(shape)
		dims[axis] = ir.Const(1)
		return c.b.Reshape(r, dims)
	}
	return r
}

func (c *call) cumulative(combine ir.Combine) ir.Value {
	x := c.accumulable(c.tensor("self"))
	axis := c.axis("dim", 0, c.b.Rank(x))
	if c.b.Rank(x) == 0 {
		return x
	}
	return c.b.Cumulative(x, &ir.CumulativeAttrs{Combine: combine, Axis: axis})
}

// runningExtreme is cummax or cummin: the extreme so far and the index of its last occurrence.
func (c *call) runningExtreme(combine ir.Combine, d ir.Direction) []ir.Value {
	x := c.tensor("self")
	axis := c.axis("dim", 0, c.b.Rank(x))
	if c.b.Rank(x) == 0 {
		return []ir.Value{x, c.b.Scalar(ir.I64, 0)}
	}
	m := c.b.Cumulative(x, &ir.CumulativeAttrs{Combine: combine, Axis: axis})
	index := c.b.Iota(ir.I64, c.b.Shape(x), axis)
	reached := c.b.Compare(d, x, m)
	if c.b.DType(x).IsFloat() {
		reached = c.b.Binary(ir.OpOr, reached, lower.IsNaN(c.b, x))
	}
	at := c.b.Select(reached, index, c.b.FullLike(index, 0))
	return []ir.Value{m, c.b.Cumulative(at, &ir.CumulativeAttrs{Combine: ir.Max, Axis: axis})}
}

// diff subtracts neighbours along dim, n times, after prepend and append were joined.
func (c *call) diff() ir.Value {
	x := c.tensor("self")
	rank := c.b.Rank(x)
	axis := c.axis("dim", -1, rank)
	if rank == 0 {
		c.bad("a scalar has no differences")
	}
	parts := []ir.Value{x}
	if v := c.optional("prepend"); v != ir.NoValue {
		parts = slices.Insert(parts, 0, v)
	}
	if v := c.optional("append"); v != ir.NoValue {
		parts = append(parts, v)
	}
	x = c.b.Concatenate(axis, c.promoted(parts)...)
	n := c.int("n", 1)
	if n < 0 || n > 64 {
		c.bad("n is %d", n)
	}
	kind := ir.OpSubtract
	if c.b.DType(x) == ir.Bool {
		kind = ir.OpXor
	}
	for range n {
		size := c.b.Shape(x)[axis]
		if size.Is(0) {
			return x
		}
		high := c.b.SliceAxis(x, axis, ir.Const(1), size, 1)
		x = c.b.Binary(kind, high, c.b.SliceAxis(x, axis, ir.Const(0), size.AddConst(-1), 1))
	}
	return x
}

func (c *call) trace() ir.Value {
	x := c.accumulable(c.tensor("self"))
	shape := c.b.Shape(x)
	if len(shape) != 2 {
		c.bad("a trace of rank %d", len(shape))
	}
	on := c.b.Compare(ir.EQ, c.b.Iota(ir.I64, shape, 0), c.b.Iota(ir.I64, shape, 1))
	return c.b.Reduce(ir.Sum, c.b.Select(on, x, c.b.FullLike(x, 0)), 0, 1)
}

// sort gives sorted elements and their indices; it is stable.
func (c *call) sort() []ir.Value {
	return c.sorted(c.bool("descending", false))
}

func (c *call) sorted(descending bool) []ir.Value { return c.sortedOf(c.tensor("self"), descending) }

func (c *call) sortedOf(x ir.Value, descending bool) []ir.Value {
	axis := c.axis("dim", -1, c.b.Rank(x))
	if c.b.Rank(x) == 0 {
		return []ir.Value{x, c.b.Scalar(ir.I64, 0)}
	}
	index := c.b.Iota(ir.I64, c.b.Shape(x), axis)
	return slices.Clone(c.b.Sort(&ir.SortAttrs{Axis: axis, Descending: descending}, x, index))
}

func (c *call) topk() []ir.Value {
	k, _ := c.dim("k")
	list := c.sorted(c.bool("largest", true))
	if c.b.Rank(list[0]) == 0 {
		return list
	}
	axis := c.axis("dim", -1, c.b.Rank(list[0]))
	for i, v := range list {
		list[i] = c.b.SliceAxis(v, axis, ir.Const(0), k, 1)
	}
	return list
}

// ranked gives the element at a place of the ascending order along dim, and its index.
func (c *call) ranked(place int64) []ir.Value {
	list := c.sorted(false)
	rank := c.b.Rank(list[0])
	if rank == 0 {
		return list
	}
	axis := c.axis("dim", -1, rank)
	keep := c.bool("keepdim", false)
	for i, v := range list {
		v = c.b.SliceAxis(v, axis, ir.Const(place), ir.Const(place+1), 1)
		if !keep {
			v = c.b.Reshape(v, slices.Delete(slices.Clone(c.b.Shape(v)), axis, axis+1))
		}
		list[i] = v
	}
	return list
}

// softmax computes in the argument dtype where it is given (the half_to_float form gives
// float32).
func (c *call) softmax(f func(b *ir.Builder, x ir.Value, axis int) ir.Value) ir.Value {
	x := c.floating("self")
	x = c.b.Convert(x, c.dtype("dtype", c.b.DType(x)))
	if c.bool("half_to_float", false) {
		x = c.b.Convert(x, ir.F32)
	}
	axis := c.axis("dim", -1, c.b.Rank(x))
	if c.b.Rank(x) == 0 {
		return c.b.Reshape(f(c.b, c.b.Reshape(x, ir.Consts[int64](1)), 0), nil)
	}
	return f(c.b, x, axis)
}

// moments gives the variance (or its root) and the mean.
func (c *call) moments(root bool) []ir.Value {
	x := c.tensor("self")
	axes := c.axes("dim", c.b.Rank(x))
	correction := c.float("correction", 1)
	if c.has("unbiased") && !c.bool("unbiased", true) {
		correction = 0
	}
	wide := x
	if t := c.b.DType(x); t.IsFloat() && t.Bits() < 32 {
		wide = c.b.Convert(x, ir.F32)
	}
	mean, variance := lower.Moments(c.b, wide, axes, correction)
	if root {
		variance = c.b.Unary(ir.OpSqrt, variance)
	}
	list := []ir.Value{variance, mean}
	keep := c.bool("keepdim", false)
	for i, v := range list {
		v = c.b.Convert(v, c.b.DType(x))
		if !keep {
			v = c.dropped(v, axes)
		}
		list[i] = v
	}
	return list
}

// dropped removes axes of size 1.
func (c *call) dropped(v ir.Value, axes []int) ir.Value {
	var dims []ir.Dim
	for i, d := range c.b.Shape(v) {
		if !slices.Contains(axes, i) {
			dims = append(dims, d)
		}
	}
	return c.b.Reshape(v, dims)
}

// norm is the p-norm along dim.
func (c *call) norm(p float64) ir.Value {
	x := c.floating("self")
	x = c.b.Convert(x, c.dtype("dtype", c.b.DType(x)))
	return lower.InFloat32(c.b, func(v []ir.Value) ir.Value {
		return c.powerNorm(c.b.Unary(ir.OpAbs, v[0]), p, c.reduceDims)
	}, x)
}

// powerNorm is the p-norm of magnitudes m, combined by reduce.
func (c *call) powerNorm(m ir.Value, p float64, reduce func(combine ir.Combine, x ir.Value) ir.Value) ir.Value {
	switch {
	case math.IsInf(p, 1):
		return reduce(ir.Max, m)
	case math.IsInf(p, -1):
		return reduce(ir.Min, m)
	case p == 0:
		return reduce(ir.Sum, c.b.Convert(c.b.Compare(ir.NE, m, c.b.FullLike(m, 0)), c.b.DType(m)))
	case p == 1:
		return reduce(ir.Sum, m)
	case p == 2:
		return c.b.Unary(ir.OpSqrt, reduce(ir.Sum, c.b.Binary(ir.OpMultiply, m, m)))
	}
	sum := reduce(ir.Sum, c.b.Binary(ir.OpPower, m, c.b.FullLike(m, p)))
	return c.b.Binary(ir.OpPower, sum, c.b.FullLike(sum, 1/p))
}
