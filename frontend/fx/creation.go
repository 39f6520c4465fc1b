package fx

import (
	"math"

	"weft/frontend/lower"
	"weft/ir"
)

// creationRules make tensors from numbers and sizes.
func creationRules() map[string]rule {
	t := map[string]rule{
		"arange.default":    value((*call).arange),
		"arange.start":      value((*call).arange),
		"arange.start_step": value((*call).arange),
		"linspace.default":  value((*call).linspace),
		"eye.default":       value(func(c *call) ir.Value { n := c.size("n"); return c.eye(n, n) }),
		"eye.m":             value(func(c *call) ir.Value { return c.eye(c.size("n"), c.size("m")) }),
		"scalar_tensor.default": value(func(c *call) ir.Value {
			n, _ := c.number("s")
			return n.scalar(c.b, c.dtype("dtype", n.dtype()))
		}),
		"full.default": value(func(c *call) ir.Value {
			n, _ := c.number("fill_value")
			return c.filled(c.sizes("size"), c.dtype("dtype", n.dtype()), n)
		}),
		"full_like.default": value(func(c *call) ir.Value {
			n, _ := c.number("fill_value")
			return c.filledLike(n)
		}),
		"new_full.default": value(func(c *call) ir.Value {
			n, _ := c.number("fill_value")
			return c.filled(c.sizes("size"), c.dtype("dtype", c.b.DType(c.tensor("self"))), n)
		}),
		"empty.memory_format":    value(func(c *call) ir.Value { return c.filled(c.sizes("size"), c.dtype("dtype", ir.F32), number{}) }),
		"empty_strided.default":  value((*call).emptyStrided),
		"empty_permuted.default": value((*call).emptyStrided),
		"new_empty_strided.default": value(func(c *call) ir.Value {
			c.arg("stride")
			return c.filled(c.sizes("size"), c.dtype("dtype", c.b.DType(c.tensor("self"))), number{})
		}),
		"fill.Scalar": value(func(c *call) ir.Value {
			n, _ := c.number("value")
			return c.filledLike(n)
		}),
		"fill.Tensor": value(func(c *call) ir.Value {
			x, v := c.tensor("self"), c.tensor("value")
			return lower.Expand(c.b, c.b.Convert(v, c.b.DType(x)), c.b.Shape(x))
		}),
		"zero.default": value(func(c *call) ir.Value { return c.b.FullLike(c.tensor("self"), 0) }),
		"copy.default": value(func(c *call) ir.Value {
			x, v := c.tensor("self"), c.tensor("src")
			if c.b.Rank(v) > c.b.Rank(x) {
				c.bad("a %s does not fit into a %s", c.b.Type(v), c.b.Type(x))
			}
			return lower.Expand(c.b, c.b.Convert(v, c.b.DType(x)), c.b.Shape(x))
		}),
		"tril.default":      value(func(c *call) ir.Value { return c.triangle(false) }),
		"triu.default":      value(func(c *call) ir.Value { return c.triangle(true) }),
		"meshgrid.default":  values((*call).meshgrid),
		"meshgrid.indexing": values((*call).meshgrid),
		"one_hot.default":   value((*call).oneHot),
		"broadcast_tensors.default": values(func(c *call) []ir.Value {
			return lower.Broadcast(c.b, c.tensors("tensors")...)
		}),
	}
	for name, v := range map[string]int64{"ones": 1, "zeros": 0, "empty": 0} {
		n := intLiteral(v)
		t["new_"+name+".default"] = value(func(c *call) ir.Value {
			return c.filled(c.sizes("size"), c.dtype("dtype", c.b.DType(c.tensor("self"))), n)
		})
		t[name+"_like.default"] = value(func(c *call) ir.Value { return c.filledLike(n) })
		if name != "empty" {
			t[name+".default"] = value(func(c *call) ir.Value { return c.filled(c.sizes("size"), c.dtype("dtype", ir.F32), n) })
		}
	}
	return t
}

func (c *call) filled(dims []ir.Dim, dtype ir.DType, n number) ir.Value {
	return c.b.Broadcast(n.scalar(c.b, dtype), dims, nil)
}

func (c *call) filledLike(n number) ir.Value {
	x := c.tensor("self")
	return c.filled(c.b.Shape(x), c.dtype("dtype", c.b.DType(x)), n)
}

// emptyStrided is zeros: what an empty tensor holds is not defined.
func (c *call) emptyStrided() ir.Value {
	c.arg("stride")
	c.arg("physical_layout")
	return c.filled(c.sizes("size"), c.dtype("dtype", ir.F32), number{})
}

// arange counts from start (0) by step (1) up to end.
func (c *call) arange() ir.Value {
	start, _ := c.number("start")
	step, ok := c.number("step")
	if !ok {
		step = intLiteral(1)
	}
	end, _ := c.number("end")
	isFloat := start.kind == floatNumber || step.kind == floatNumber || end.kind == floatNumber
	if isFloat {
		return c.arangeFloat(start, end, step)
	}
	c.require(step.known() && !start.live && !end.live, "with bounds that depend on data")
	if step.i == 0 {
		c.bad("step is 0")
	}
	n := end.asDim().Sub(start.asDim())
	if step.i < 0 {
		n = n.Neg().CeilDiv(-step.i)
	} else {
		n = n.CeilDiv(step.i)
	}
	if !c.atLeast(n, ir.Const(0)) {
		n = n.Max(ir.Const(0))
	}
	to := c.dtype("dtype", ir.I64)
	at := to
	if !to.IsInteger() {
		at = ir.I64
	}
	v := c.b.Iota(at, []ir.Dim{n}, 0)
	if step.i != 1 {
		v = c.b.Binary(ir.OpMultiply, v, c.b.FullLike(v, float64(step.i)))
	}
	if d := start.asDim(); !d.Is(0) {
		v = c.b.Binary(ir.OpAdd, v, lower.Expand(c.b, start.scalar(c.b, at), c.b.Shape(v)))
	}
	return c.b.Convert(v, to)
}

// asDim is the expression of an int.
func (n number) asDim() ir.Dim {
	if n.dim != nil {
		return *n.dim
	}
	return ir.Const(n.i)
}

// arangeFloat counts in float64 and rounds once.
func (c *call) arangeFloat(start, end, step number) ir.Value {
	c.require(start.known() && end.known() && step.known(), "of floats with symbolic bounds")
	n := math.Ceil((end.f - start.f) / step.f)
	if math.IsNaN(n) || n < 0 || n > maxSize {
		c.bad("bounds %g, %g and step %g", start.f, end.f, step.f)
	}
	return c.b.Convert(c.progression(ir.Const(int64(n)), start.f, step.f), c.dtype("dtype", ir.F32))
}

// progression is start + i*step in float64.
func (c *call) progression(n ir.Dim, start, step float64) ir.Value {
	v := c.b.Iota(ir.F64, []ir.Dim{n}, 0)
	return lower.AddScalar(c.b, lower.Scale(c.b, v, step), start)
}

// linspace has steps elements from start to end, the second half counted back from the end.
func (c *call) linspace() ir.Value {
	start, end, n := c.float("start", 0), c.float("end", 0), c.int("steps", 100)
	if n < 0 || n > maxSize {
		c.bad("%d steps", n)
	}
	step := 0.0
	if n > 1 {
		step = (end - start) / float64(n-1)
	}
	up := c.progression(ir.Const(n), start, step)
	down := c.progression(ir.Const(n), end-step*float64(n-1), step)
	index := c.b.Iota(ir.I64, []ir.Dim{ir.Const(n)}, 0)
	v := c.b.Select(c.b.Compare(ir.LT, index, c.b.FullLike(index, float64(n/2))), up, down)
	if n == 1 {
		v = up
	}
	return c.b.Convert(v, c.dtype("dtype", ir.F32))
}

func (c *call) eye(rows, columns ir.Dim) ir.Value {
	dims := []ir.Dim{rows, columns}
	on := c.b.Compare(ir.EQ, c.b.Iota(ir.I64, dims, 0), c.b.Iota(ir.I64, dims, 1))
	return c.b.Convert(on, c.dtype("dtype", ir.F32))
}

func (c *call) triangle(upper bool) ir.Value {
	x := c.tensor("self")
	if c.b.Rank(x) < 2 {
		c.bad("a triangle of rank %d", c.b.Rank(x))
	}
	d, _ := c.dim("diagonal")
	return lower.Triangle(c.b, x, c.b.Dim(d), upper)
}

// meshgrid spreads vectors along the dims of a grid; "xy" swaps the first two.
func (c *call) meshgrid() []ir.Value {
	xs := c.tensors("tensors")
	swap := c.string("indexing", "ij") == "xy" && len(xs) > 1
	order := identity(len(xs))
	if swap {
		order[0], order[1] = 1, 0
	}
	dims := make([]ir.Dim, len(xs))
	for i, x := range xs {
		dims[order[i]] = ir.Product(c.b.Shape(x))
	}
	for i, x := range xs {
		flat := c.b.Reshape(x, dims[order[i]:order[i]+1])
		xs[i] = c.b.Broadcast(flat, dims, []int{order[i]})
	}
	return xs
}

func (c *call) oneHot() ir.Value {
	x := c.tensor("self")
	classes, _ := c.dim("num_classes")
	if !c.atLeast(classes, ir.Const(0)) {
		c.unsupported(" with a number of classes that depends on data")
	}
	return lower.OneHot(c.b, x, classes, c.b.Rank(x), c.b.Scalar(ir.I64, 1), c.b.Scalar(ir.I64, 0))
}
