package fx

import (
	"slices"
	"strings"

	"weft/frontend/lower"
	"weft/ir"
)

// viewRule gives a view of a tensor, or a copy where the operator copies.
type viewRule func(c *call, t *tensor) *tensor

// viewRules are operators whose results share memory with their first argument, the copies
// of them (X_copy), and the functional writes through them (X_scatter).
func viewRules() map[string]rule {
	t := map[string]rule{}
	for names, f := range singleViews {
		for name := range strings.SplitSeq(names, " ") {
			t[name] = seen(func(c *call) *tensor { return f(c, c.handle(c.selfName())) })
			base, overload, _ := strings.Cut(name, ".")
			t[base+"_copy."+overload] = value(func(c *call) ir.Value { return f(c, c.handle(c.selfName())).read(c.b) })
		}
	}
	for name, f := range listViews {
		t[name] = func(c *call) []*tensor { return f(c, c.handle("self")) }
		base, overload, _ := strings.Cut(name, ".")
		t[base+"_copy."+overload] = values(func(c *call) []ir.Value {
			var list []ir.Value
			for _, v := range f(c, c.handle("self")) {
				list = append(list, v.read(c.b))
			}
			return list
		})
	}
	for name, f := range map[string]viewRule{
		"slice_scatter.default": sliceRule, "select_scatter.default": selectRule,
		"diagonal_scatter.default": diagonalRule, "as_strided_scatter.default": stridedRule,
	} {
		t[name] = seen(func(c *call) *tensor {
			whole := newTensor(c.tensor("self"))
			src := c.tensor("src")
			if v := f(c, whole); !v.write(c.b, lower.Expand(c.b, src, c.b.Shape(v.read(c.b)))) {
				c.unsupported(" with overlapping elements")
			}
			return whole
		})
	}
	return t
}

func inPlaceViews() map[string]rule {
	t := map[string]rule{}
	for names, f := range singleViews {
		r := seen(func(c *call) *tensor { return f(c, c.handle(c.selfName())) })
		for name := range strings.SplitSeq(names, " ") {
			base, overload, _ := strings.Cut(name, ".")
			t[base+"_."+overload] = r
			if overload == "int" {
				t[base+"_.default"] = r
			}
		}
	}
	return t
}

// singleViews are keyed by the overloads that they serve.
var singleViews = map[string]viewRule{
	"view.default _unsafe_view.default": func(c *call, t *tensor) *tensor { return c.reshaped(t, c.shapeArg(t, "size"), true) },
	"reshape.default":                   func(c *call, t *tensor) *tensor { return c.reshaped(t, c.shapeArg(t, "shape"), false) },
	"view_as.default reshape_as.default": func(c *call, t *tensor) *tensor {
		return c.reshaped(t, c.b.Shape(c.handle("other").read(c.b)), false)
	},
	"flatten.using_ints": flattenRule,
	"unflatten.int":      unflattenRule,
	"squeeze.default":    func(c *call, t *tensor) *tensor { return c.squeezed(t, c.axes("dim", c.rank(t))) },
	"squeeze.dim":        func(c *call, t *tensor) *tensor { return c.squeezed(t, c.axes("dim", c.rank(t))) },
	"squeeze.dims": func(c *call, t *tensor) *tensor {
		if len(c.ints("dim")) == 0 {
			return c.squeezed(t, nil)
		}
		return c.squeezed(t, c.axes("dim", c.rank(t)))
	},
	"ravel.default": func(c *call, t *tensor) *tensor {
		return c.reshaped(t, []ir.Dim{ir.Product(c.b.Shape(t.read(c.b)))}, false)
	},
	"real.default":         func(c *call, t *tensor) *tensor { return newView(c.b, t, aliasView{}) },
	"atleast_1d.default":   func(c *call, t *tensor) *tensor { return c.atLeastRank(t, 1) },
	"atleast_2d.default":   func(c *call, t *tensor) *tensor { return c.atLeastRank(t, 2) },
	"atleast_3d.default":   func(c *call, t *tensor) *tensor { return c.atLeastRank(t, 3) },
	"unsqueeze.default":    unsqueezeRule,
	"expand.default":       func(c *call, t *tensor) *tensor { dims, _ := c.dims("size"); return c.expanded(t, dims) },
	"broadcast_to.default": func(c *call, t *tensor) *tensor { dims, _ := c.dims("size"); return c.expanded(t, dims) },
	"expand_as.default":    func(c *call, t *tensor) *tensor { return c.expanded(t, c.b.Shape(c.handle("other").read(c.b))) },
	"permute.default":      func(c *call, t *tensor) *tensor { return c.permuted(t, c.permutation("dims", c.rank(t))) },
	"transpose.int":        func(c *call, t *tensor) *tensor { return c.swapped(t, "dim0", "dim1") },
	"swapdims.default":     func(c *call, t *tensor) *tensor { return c.swapped(t, "dim0", "dim1") },
	"swapaxes.default":     func(c *call, t *tensor) *tensor { return c.swapped(t, "axis0", "axis1") },
	"t.default numpy_T.default": func(c *call, t *tensor) *tensor {
		p := identity(c.rank(t))
		slices.Reverse(p)
		return c.permuted(t, p)
	},
	"mT.default adjoint.default mH.default matrix_H.default": func(c *call, t *tensor) *tensor {
		p := identity(c.rank(t))
		if n := len(p); n >= 2 {
			p[n-2], p[n-1] = p[n-1], p[n-2]
		}
		return c.permuted(t, p)
	},
	"movedim.int movedim.intlist moveaxis.int moveaxis.intlist": moveRule,
	"select.int":         selectRule,
	"slice.Tensor":       sliceRule,
	"narrow.default":     narrowRule,
	"diagonal.default":   diagonalRule,
	"as_strided.default": stridedRule,
	"unfold.default":     unfoldRule,
	"alias.default detach.default lift.default lift_fresh.default resolve_conj.default resolve_neg.default conj.default": func(c *call, t *tensor) *tensor {
		return newView(c.b, t, aliasView{})
	},
	"dropout.default alpha_dropout.default feature_dropout.default feature_alpha_dropout.default": func(c *call, t *tensor) *tensor {
		p := c.float("p", 0.5)
		if !c.bool("train", false) || p == 0 {
			return newView(c.b, t, aliasView{})
		}
		c.require(c.node.target == "torch.ops.aten.dropout.default", "in training mode")
		y, _ := c.random.Dropout(c.b, c.autocast(t.read(c.b)), p)
		return newTensor(y)
	},
	"view.dtype": func(c *call, t *tensor) *tensor {
		to := c.dtype("dtype", ir.F32)
		c.require(to.Bits() == c.b.DType(t.read(c.b)).Bits(), "between types of different widths")
		return newView(c.b, t, bitcastView{to})
	},
	"contiguous.default": func(c *call, t *tensor) *tensor {
		if isContiguous(c.b.Shape(t.read(c.b)), t.strides) && c.enum("memory_format", 1) == 1 {
			return newView(c.b, t, aliasView{})
		}
		return newTensor(t.read(c.b))
	},
	"clone.default": func(c *call, t *tensor) *tensor { return newTensor(t.read(c.b)) },
	"to.dtype to.dtype_layout to.device _to_copy.default": func(c *call, t *tensor) *tensor {
		return c.converted(t, c.dtype("dtype", c.b.DType(t.read(c.b))))
	},
	"to.other":        func(c *call, t *tensor) *tensor { return c.converted(t, c.b.DType(c.handle("other").read(c.b))) },
	"type_as.default": func(c *call, t *tensor) *tensor { return c.converted(t, c.b.DType(c.handle("other").read(c.b))) },
	"to.prim_dtype":   func(c *call, t *tensor) *tensor { return c.converted(t, c.dtype("dtype", c.b.DType(t.read(c.b)))) },
	"prims.convert_element_type.default": func(c *call, t *tensor) *tensor {
		return newTensor(c.b.Convert(t.read(c.b), c.dtype("dtype", ir.F32)))
	},
	"prims.view_of.default": func(c *call, t *tensor) *tensor { return newView(c.b, t, aliasView{}) },
}

// listViews cut a tensor into several.
var listViews = map[string]func(c *call, t *tensor) []*tensor{
	"split.Tensor": func(c *call, t *tensor) []*tensor {
		return c.pieces(t, c.axis("dim", 0, c.rank(t)), c.int("split_size", 1))
	},
	"split.sizes":              splitSizes,
	"split_with_sizes.default": splitSizes,
	"chunk.default":            chunkRule,
	"unsafe_chunk.default":     chunkRule,
	"unsafe_split.Tensor": func(c *call, t *tensor) []*tensor {
		return c.pieces(t, c.axis("dim", 0, c.rank(t)), c.int("split_size", 1))
	},
	"unbind.int": func(c *call, t *tensor) []*tensor {
		axis := c.axis("dim", 0, c.rank(t))
		parts := c.pieces(t, axis, 1)
		for i, p := range parts {
			parts[i] = c.squeezed(p, []int{axis})
		}
		return parts
	},
	"tensor_split.indices": func(c *call, t *tensor) []*tensor {
		return c.cutAt(t, c.axis("dim", 0, c.rank(t)), c.ints("indices"))
	},
	"hsplit.int":            func(c *call, t *tensor) []*tensor { return c.sections(t, min(1, max(c.rank(t)-1, 0))) },
	"vsplit.int":            func(c *call, t *tensor) []*tensor { return c.sections(t, 0) },
	"dsplit.int":            func(c *call, t *tensor) []*tensor { return c.sections(t, 2) },
	"hsplit.array":          func(c *call, t *tensor) []*tensor { return c.cutAt(t, min(1, max(c.rank(t)-1, 0)), c.ints("indices")) },
	"vsplit.array":          func(c *call, t *tensor) []*tensor { return c.cutAt(t, 0, c.ints("indices")) },
	"dsplit.array":          func(c *call, t *tensor) []*tensor { return c.cutAt(t, 2, c.ints("indices")) },
	"tensor_split.sections": func(c *call, t *tensor) []*tensor { return c.sections(t, c.axis("dim", 0, c.rank(t))) },
}

func chunkRule(c *call, t *tensor) []*tensor {
	axis := c.axis("dim", 0, c.rank(t))
	n, chunks := c.constDim(t, axis), c.int("chunks", 1)
	if chunks < 1 {
		c.bad("%d chunks", chunks)
	}
	return c.pieces(t, axis, max((n+chunks-1)/chunks, 1))
}

// atLeastRank adds dims of 1: in front, and for rank 3 one at the end.
func (c *call) atLeastRank(t *tensor, rank int) *tensor {
	shape := slices.Clone(c.b.Shape(t.read(c.b)))
	one := ir.Const(1)
	switch {
	case rank == 3 && len(shape) == 2:
		shape = append(shape, one)
	default:
		if rank == 3 && len(shape) == 1 {
			shape = append(shape, one)
		}
		for len(shape) < rank {
			shape = slices.Insert(shape, 0, one)
		}
	}
	return newView(c.b, t, reshapeView{shape})
}

func identity(rank int) []int {
	p := make([]int, rank)
	for i := range p {
		p[i] = i
	}
	return p
}

func (c *call) rank(t *tensor) int { return c.b.Rank(t.read(c.b)) }

func isContiguous(shape, strides []ir.Dim) bool {
	if strides == nil || len(strides) != len(shape) {
		return true
	}
	next := ir.Const(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i].Is(1) {
			continue
		}
		if !strides[i].Equal(next) {
			return false
		}
		next = next.Mul(shape[i])
	}
	return true
}

// reshaped is a view in another shape where memory allows (or must, for view), else a copy.
func (c *call) reshaped(t *tensor, dims []ir.Dim, must bool) *tensor {
	v := t.read(c.b)
	if must || canView(c.b.Shape(v), t.strides, dims) {
		return newView(c.b, t, reshapeView{dims})
	}
	return newTensor(c.b.Reshape(v, dims))
}

// shapeArg reads a shape with at most one -1.
func (c *call) shapeArg(t *tensor, name string) []ir.Dim {
	given, _ := c.dims(name)
	return c.inferred(given, ir.Product(c.b.Shape(t.read(c.b))))
}

func (c *call) inferred(given []ir.Dim, numel ir.Dim) []ir.Dim {
	dims, open, known := slices.Clone(given), -1, ir.Const(1)
	for i, d := range dims {
		switch v, ok := d.IsConst(); {
		case ok && v == -1 && open < 0:
			open = i
			continue
		case ok && (v < 0 || v > maxSize):
			c.bad("a dim of %d", v)
		}
		known = known.Mul(d)
	}
	if open >= 0 {
		q, ok := numel.DivExact(known)
		if !ok {
			if _, constant := numel.IsConst(); constant || known.Is(0) {
				c.bad("%s elements do not fit into %s", numel, ir.DimList(given))
			}
			q = numel.FloorDiv(known)
		}
		dims[open] = q
	}
	return dims
}

func flattenRule(c *call, t *tensor) *tensor {
	shape := c.b.Shape(t.read(c.b))
	if len(shape) == 0 {
		return c.reshaped(t, ir.Consts[int64](1), false)
	}
	start, end := c.axis("start_dim", 0, len(shape)), c.axis("end_dim", -1, len(shape))
	if start > end {
		c.bad("start_dim %d is after end_dim %d", start, end)
	}
	dims := slices.Concat(shape[:start], []ir.Dim{ir.Product(shape[start : end+1])}, shape[end+1:])
	return c.reshaped(t, dims, false)
}

func unflattenRule(c *call, t *tensor) *tensor {
	shape := c.b.Shape(t.read(c.b))
	axis := c.axis("dim", 0, len(shape))
	sizes, _ := c.dims("sizes")
	if len(shape) == 0 {
		c.bad("a scalar has no dim to unflatten")
	}
	return c.reshaped(t, slices.Concat(shape[:axis], c.inferred(sizes, shape[axis]), shape[axis+1:]), true)
}

// squeezed drops those of the axes that have size 1.
func (c *call) squeezed(t *tensor, axes []int) *tensor {
	var dims []ir.Dim
	for i, d := range c.b.Shape(t.read(c.b)) {
		if !d.Is(1) || !slices.Contains(axes, i) {
			dims = append(dims, d)
		}
	}
	return newView(c.b, t, reshapeView{dims})
}

func unsqueezeRule(c *call, t *tensor) *tensor {
	shape := c.b.Shape(t.read(c.b))
	axis := c.axis("dim", 0, len(shape)+1)
	return newView(c.b, t, reshapeView{slices.Insert(slices.Clone(shape), axis, ir.Const(1))})
}

// expanded broadcasts to dims, where -1 keeps the tensor's.
func (c *call) expanded(t *tensor, dims []ir.Dim) *tensor {
	shape := c.b.Shape(t.read(c.b))
	lead := len(dims) - len(shape)
	if lead < 0 {
		c.bad("%s cannot be expanded to %s", ir.DimList(shape), ir.DimList(dims))
	}
	dims = slices.Clone(dims)
	for i, d := range dims {
		if d.Is(-1) {
			if i < lead {
				c.bad("a new dim of -1")
			}
			dims[i] = shape[i-lead]
		} else if i >= lead && !shape[i-lead].Is(1) {
			if _, constant := shape[i-lead].IsConst(); !constant {
				dims[i] = shape[i-lead] // equal by the exporter's guards
			}
		}
	}
	return newView(c.b, t, expandView{dims})
}

func (c *call) permutation(name string, rank int) []int {
	list := c.ints(name)
	p := make([]int, len(list))
	for i, v := range list {
		p[i] = c.wrap(name, v, rank)
	}
	if rank == 0 {
		return nil
	}
	return p
}

func (c *call) permuted(t *tensor, p []int) *tensor { return newView(c.b, t, permuteView{p}) }

func (c *call) swapped(t *tensor, first, second string) *tensor {
	rank := c.rank(t)
	p := identity(rank)
	i, j := c.axis(first, 0, rank), c.axis(second, 0, rank)
	if rank > 0 {
		p[i], p[j] = p[j], p[i]
	}
	return c.permuted(t, p)
}

func moveRule(c *call, t *tensor) *tensor {
	rank := c.rank(t)
	from, to := c.permutation("source", rank), c.permutation("destination", rank)
	if len(from) != len(to) {
		c.bad("source and destination differ in length")
	}
	p := slices.Repeat([]int{-1}, rank)
	var rest []int
	for i := range rank {
		if !slices.Contains(from, i) {
			rest = append(rest, i)
		}
	}
	for i, d := range to {
		p[d] = from[i]
	}
	for i := range p {
		if p[i] < 0 {
			if len(rest) == 0 {
				c.bad("a dim is named twice")
			}
			p[i], rest = rest[0], rest[1:]
		}
	}
	return c.permuted(t, p)
}

// atLeast tells whether x >= y for all values of the symbols.
func (c *call) atLeast(x, y ir.Dim) bool { return x.Sub(y).Bounds(c.prog.Range).Min >= 0 }

// bound normalises an end of a Python slice: negative ends count from the end, and all are
// cut to 0..size.
func (c *call) bound(d, size ir.Dim) ir.Dim {
	zero := ir.Const(0)
	r := d.Bounds(c.prog.Range)
	switch {
	case r.Max < 0:
		d = d.Add(size)
		if c.atLeast(zero, d) {
			return zero
		}
		if !c.atLeast(d, zero) {
			d = d.Max(zero)
		}
		return d
	case r.Min < 0:
		c.unsupported(" with a bound whose sign is not known")
	}
	if c.atLeast(size, d) {
		return d
	}
	if c.atLeast(d, size) {
		return size
	}
	return d.Min(size)
}

func sliceRule(c *call, t *tensor) *tensor {
	shape := c.b.Shape(t.read(c.b))
	axis := c.axis("dim", 0, len(shape))
	if len(shape) == 0 {
		c.bad("a scalar cannot be sliced")
	}
	size := shape[axis]
	if at, ok := c.liveStart("start", size); ok {
		if length, ok := c.recordedSize(axis); ok && c.int("step", 1) == 1 {
			c.arg("end")
			return newView(c.b, t, movingView{axis, at, length})
		}
	}
	start, limit := ir.Const(0), size
	if d, ok := c.dim("start"); ok {
		start = c.bound(d, size)
	}
	if d, ok := c.dim("end"); ok {
		limit = c.bound(d, size)
	}
	step := c.int("step", 1)
	if step < 1 {
		c.bad("step is %d", step)
	}
	if !c.atLeast(limit, start) {
		limit = limit.Max(start)
	}
	return newView(c.b, t, sliceView{axis, start, limit, step})
}

// liveStart is the place of a slice that is only known when the model runs, in a dim of a size.
func (c *call) liveStart(name string, size ir.Dim) (ir.Value, bool) {
	n, ok := c.number(name)
	if !ok || !n.live || n.kind == floatNumber {
		return ir.NoValue, false
	}
	at := n.scalar(c.b, ir.I64)
	fromEnd := c.b.Binary(ir.OpAdd, at, c.b.Dim(size))
	return c.b.Select(c.b.Compare(ir.LT, at, c.b.Constant(ir.ScalarInt(ir.I64, 0))), fromEnd, at), true
}

// recordedSize is a constant size that the exporter recorded for the node's result.
func (c *call) recordedSize(axis int) (ir.Dim, bool) {
	names := c.outputNames()
	if len(names) != 1 {
		return ir.Dim{}, false
	}
	t, _, ok := c.tensorType(names[0], c.place)
	if !ok || axis >= t.Rank() {
		return ir.Dim{}, false
	}
	_, constant := t.Shape[axis].IsConst()
	return t.Shape[axis], constant
}

func narrowRule(c *call, t *tensor) *tensor {
	axis := c.axis("dim", 0, c.rank(t))
	size := c.b.Shape(t.read(c.b))[axis]
	length, _ := c.dim("length")
	if at, ok := c.liveStart("start", size); ok {
		return newView(c.b, t, movingView{axis, at, length})
	}
	start, _ := c.dim("start")
	start = c.bound(start, size)
	return newView(c.b, t, sliceView{axis, start, start.Add(length), 1})
}

func selectRule(c *call, t *tensor) *tensor {
	shape := c.b.Shape(t.read(c.b))
	axis := c.axis("dim", 0, len(shape))
	if len(shape) == 0 {
		c.bad("a scalar has no elements to select")
	}
	size := shape[axis]
	if at, ok := c.liveStart("index", size); ok {
		part := newView(c.b, t, movingView{axis, at, ir.Const(1)})
		return newView(c.b, part, reshapeView{slices.Delete(slices.Clone(shape), axis, axis+1)})
	}
	index, _ := c.dim("index")
	if index.Bounds(c.prog.Range).Max < 0 {
		index = index.Add(size)
	}
	if v, ok := index.IsConst(); ok && v < 0 || c.atLeast(index, size) {
		c.bad("index %s of a dim of %s", index, size)
	}
	if !c.atLeast(size.AddConst(-1), index) {
		index = index.Min(size.AddConst(-1))
	}
	part := newView(c.b, t, sliceView{axis, index, index.AddConst(1), 1})
	return newView(c.b, part, reshapeView{slices.Delete(slices.Clone(shape), axis, axis+1)})
}

// converted shares memory when the type stays, unless a copy is asked for.
func (c *call) converted(t *tensor, to ir.DType) *tensor {
	v, copied := t.read(c.b), c.bool("copy", false)
	if c.part != noPart && to.IsComplex() {
		to = partTypes[to]
	} else if c.part != noPart && c.b.DType(v) != to {
		c.unsupported(" of complex numbers to real ones")
	}
	if c.b.DType(v) == to && !copied && !strings.Contains(c.node.target, "_to_copy") {
		return newView(c.b, t, aliasView{})
	}
	return newTensor(c.b.Convert(v, to))
}

func diagonalRule(c *call, t *tensor) *tensor {
	shape := c.b.Shape(t.read(c.b))
	if len(shape) < 2 {
		c.bad("a diagonal of rank %d", len(shape))
	}
	v := diagonalView{offset: c.int("offset", 0), row: c.axis("dim1", 0, len(shape)), col: c.axis("dim2", 1, len(shape))}
	if v.row == v.col {
		c.bad("dim1 and dim2 are the same")
	}
	rows, columns := shape[v.row], shape[v.col]
	v.start = ir.Const(max(-v.offset, 0))
	v.len = c.least(rows.Sub(v.start), columns.AddConst(-max(v.offset, 0)))
	if !c.atLeast(v.len, ir.Const(0)) {
		v.len = v.len.Max(ir.Const(0))
	}
	return newView(c.b, t, v)
}

func (c *call) least(x, y ir.Dim) ir.Dim {
	switch {
	case c.atLeast(y, x):
		return x
	case c.atLeast(x, y):
		return y
	}
	return x.Min(y)
}

func stridedRule(c *call, t *tensor) *tensor {
	root := t
	for root.parent != nil {
		root = root.parent
	}
	shape := c.b.Shape(root.read(c.b))
	numel, known := ir.Product(shape).IsConst()
	c.require(known && isContiguous(shape, root.strides), "of memory that is not contiguous and of constant size")
	v := stridedView{dims: c.sizes("size"), strides: c.ints("stride")}
	if len(v.strides) != len(v.dims) {
		c.bad("size and stride differ in length")
	}
	offset, ok := c.dim("storage_offset")
	if a, _ := c.arg(c.selfName()); !ok {
		offset = c.dimensionOf(c.graph.tensors[a.name].offset)
	}
	v.offset, known = offset.IsConst()
	c.require(known, "with a symbolic offset")
	last, empty := v.offset, false
	v.unique = true
	for i, d := range v.dims {
		n, known := d.IsConst()
		c.require(known, "with a symbolic size")
		empty = empty || n == 0
		if v.strides[i] < 0 || n > 1 && v.strides[i] > maxSize/n {
			c.bad("a stride of %d", v.strides[i])
		}
		last += max(n-1, 0) * v.strides[i]
	}
	if v.offset < 0 || !empty && last >= numel {
		c.bad("elements outside the memory of %d elements", numel)
	}
	v.unique = v.disjoint()
	return newView(c.b, root, v)
}

func (c *call) dimensionOf(s symInt) ir.Dim { return c.scope.dim(s, c.place) }

// disjoint tells whether no two elements share memory: each stride, from small to large, steps
// over all that the smaller ones reach.
func (v stridedView) disjoint() bool {
	order := identity(len(v.dims))
	slices.SortStableFunc(order, func(i, j int) int { return int(min(max(v.strides[i]-v.strides[j], -1), 1)) })
	reach := int64(0)
	for _, i := range order {
		n, _ := v.dims[i].IsConst()
		if n <= 1 {
			continue
		}
		if v.strides[i] <= reach {
			return false
		}
		reach += (n - 1) * v.strides[i]
	}
	return true
}

// unfoldView takes windows along an axis; positions inside the window become the last dim.
type unfoldView struct {
	axis       int
	count      ir.Dim
	size, step int64
}

func (v unfoldView) apply(b *ir.Builder, parent ir.Value) ir.Value {
	dims := []ir.Dim{v.count, ir.Const(v.size)}
	start := b.Iota(ir.I64, dims, 0)
	index := b.Binary(ir.OpAdd, b.Binary(ir.OpMultiply, start, b.FullLike(start, float64(v.step))), b.Iota(ir.I64, dims, 1))
	x := b.Take(parent, index, v.axis)
	p := identity(b.Rank(x))
	p = append(slices.Delete(p, v.axis+1, v.axis+2), v.axis+1)
	return b.Transpose(x, p)
}

func (unfoldView) scatter(*ir.Builder, ir.Value, ir.Value) ir.Value { return ir.NoValue }

func unfoldRule(c *call, t *tensor) *tensor {
	shape := c.b.Shape(t.read(c.b))
	axis := c.axis("dimension", 0, len(shape))
	v := unfoldView{axis: axis, size: c.int("size", 1), step: c.int("step", 1)}
	if len(shape) == 0 && v.size == 1 {
		return newView(c.b, t, reshapeView{ir.Consts[int64](1)})
	}
	c.require(len(shape) > 0, "of a scalar")
	if v.size < 1 || v.step < 1 || !c.atLeast(shape[axis], ir.Const(v.size)) {
		c.bad("windows of %d at steps of %d", v.size, v.step)
	}
	v.count = shape[axis].AddConst(-v.size).FloorDiv(ir.Const(v.step)).AddConst(1)
	return newView(c.b, t, v)
}
