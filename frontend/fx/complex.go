package fx

import (
	"slices"
	"strings"

	"weft/frontend/lower"
	"weft/ir"
)

// complexTensor is an FX value of complex numbers: its real and its imaginary part, which never
// meet in one tensor of the program.
type complexTensor struct{ real, imaginary *tensor }

// pair is the value of a complex tensor; imaginary is ir.NoValue for real numbers.
type pair struct{ real, imaginary ir.Value }

// complexPart says which part of complex arguments a rule for real tensors is to see.
type complexPart uint8

const (
	noPart complexPart = iota
	realPart
	imaginaryPart
)

// of gives the part of a complex value.
func (p complexPart) of(z *complexTensor) *tensor {
	if p == imaginaryPart {
		return z.imaginary
	}
	return z.real
}

// complexRules are the operators that make complex numbers, or compute with them.
var complexRules = joinComplex(fourierRules(), map[string]func(c *call) pair{
	"view_as_complex.default": func(c *call) pair {
		x := c.tensor("self")
		last := c.b.Rank(x) - 1
		if last < 0 || !c.b.Shape(x)[last].Is(2) {
			c.bad("the last dim of %s does not hold two parts", c.b.Type(x))
		}
		part := func(i int64) ir.Value {
			return c.b.Reshape(c.b.SliceAxis(x, last, ir.Const(i), ir.Const(i+1), 1), c.b.Shape(x)[:last])
		}
		return pair{part(0), part(1)}
	},
	"view_as_real.default": func(c *call) pair {
		z := c.pair("self")
		return pair{lower.Stack(c.b, c.b.Rank(z.real), z.real, z.imaginary), ir.NoValue}
	},
	"complex.default": func(c *call) pair { return pair{c.tensor("real"), c.tensor("imag")} },
	"polar.default": func(c *call) pair {
		size, angle := c.tensor("abs"), c.tensor("angle")
		return pair{c.b.Binary(ir.OpMultiply, size, c.b.Unary(ir.OpCosine, angle)), c.b.Binary(ir.OpMultiply, size, c.b.Unary(ir.OpSine, angle))}
	},
	"real.default": func(c *call) pair { return pair{c.pair("self").real, ir.NoValue} },
	"imag.default": func(c *call) pair { return pair{c.pair("self").imaginary, ir.NoValue} },
	"abs.default": func(c *call) pair {
		z := c.pair("self")
		return pair{c.hypotenuse(c.b.Unary(ir.OpAbs, z.real), c.b.Unary(ir.OpAbs, z.imaginary)), ir.NoValue}
	},
	"angle.default": func(c *call) pair {
		z := c.pair("self")
		return pair{c.b.Binary(ir.OpAtan2, z.imaginary, z.real), ir.NoValue}
	},
	"conj.default":          (*call).conjugate,
	"_conj.default":         (*call).conjugate,
	"conj_physical.default": (*call).conjugate,
	"neg.default":           func(c *call) pair { return c.each(func(v ir.Value) ir.Value { return c.b.Unary(ir.OpNegate, v) }) },
	"add.Tensor":            func(c *call) pair { return c.complexSum(ir.OpAdd) },
	"sub.Tensor":            func(c *call) pair { return c.complexSum(ir.OpSubtract) },
	"mul.Tensor":            func(c *call) pair { return c.complexProduct(c.pairOrNumber("self"), c.pairOrNumber("other")) },
	"mul.Scalar":            func(c *call) pair { return c.complexProduct(c.pairOrNumber("self"), c.pairOrNumber("other")) },
	"div.Tensor":            (*call).quotient,
	"div.Scalar":            (*call).quotient,
	"exp.default": func(c *call) pair {
		z := c.pair("self")
		size := c.b.Unary(ir.OpExponential, z.real)
		return pair{c.b.Binary(ir.OpMultiply, size, c.b.Unary(ir.OpCosine, z.imaginary)), c.b.Binary(ir.OpMultiply, size, c.b.Unary(ir.OpSine, z.imaginary))}
	},
})

// partwise are operators that do with each part of complex numbers what they do with real
// numbers: they move elements, or are linear with real factors.
var partwise = partwiseNames()

func partwiseNames() map[string]bool {
	names := map[string]bool{}
	for list := range singleViews {
		for _, name := range strings.Fields(list) {
			names[name] = name != "view.dtype" && name != "as_strided.default"
		}
	}
	for name := range listViews {
		names[name] = true
	}
	for _, name := range []string{"cat.default", "stack.default", "roll.default", "flip.default", "constant_pad_nd.default", "index_select.default", "index.Tensor",
		"sum.default", "sum.dim_IntList", "mean.default", "mean.dim", "cumsum.default", "repeat.default", "tile.default", "gather.default"} {
		names[name] = true
	}
	return names
}

func joinComplex(tables ...map[string]func(c *call) pair) map[string]func(c *call) pair {
	joined := map[string]func(c *call) pair{}
	for _, table := range tables {
		for name, rule := range table {
			joined[name] = rule
		}
	}
	return joined
}

// makesComplex tells operators that the ordinary rules do not have.
func makesComplex(name string) bool {
	_, ordinary := rules[name]
	return complexRules[name] != nil && !ordinary
}

// hasComplex tells whether an argument is a tensor of complex numbers, or a list with one.
func (c *call) hasComplex() bool {
	isComplex := func(a argument) bool {
		_, is := c.env[a.name].(*complexTensor)
		return a.kind == argTensor && is
	}
	return slices.ContainsFunc(c.node.inputs, func(in namedArgument) bool {
		return isComplex(in.argument) || in.kind == argList && slices.ContainsFunc(in.list, isComplex)
	})
}

// lowerComplex lowers an operator that makes, takes or gives complex numbers.
func (c *call) lowerComplex(name string) {
	if rule := complexRules[name]; rule != nil {
		z := rule(c)
		c.checkUsed()
		c.bindComplex([]pair{z})
		return
	}
	ordinary := rules[name]
	if !partwise[name] || ordinary == nil {
		c.unsupported(" of complex numbers")
	}
	var parts [2][]*tensor
	for i, part := range []complexPart{realPart, imaginaryPart} {
		c.part = part
		parts[i] = ordinary(c)
	}
	c.part = noPart
	c.checkUsed()
	results := make([]pair, len(parts[0]))
	for i := range results {
		results[i] = pair{parts[0][i].read(c.b), parts[1][i].read(c.b)}
	}
	c.bindComplex(results)
}

// bindComplex gives the outputs of the node their values.
func (c *call) bindComplex(results []pair) {
	names := c.outputNames()
	if len(names) > len(results) {
		c.bad("%d results, the node names %d", len(results), len(names))
	}
	for i, name := range names {
		if name == "" {
			continue
		}
		z := results[i]
		if z.imaginary == ir.NoValue {
			c.bind(name, c.checked(name, newTensor(z.real)), c.place)
			continue
		}
		if want, _, ok := c.tensorType(name, c.place); ok {
			if !want.DType.IsComplex() || want.Rank() != c.b.Rank(z.real) {
				c.bad("complex numbers of the shape of %s, the exporter recorded %s", c.b.Type(z.real), want)
			}
			z = pair{c.b.Reshape(z.real, want.Shape), c.b.Reshape(z.imaginary, want.Shape)}
		}
		c.bind(name, &complexTensor{newTensor(z.real), newTensor(z.imaginary)}, c.place)
	}
}

// pair is the value of an argument that may be complex; real numbers have imaginary parts of 0.
func (c *call) pair(name string) pair {
	z := c.pairOrNumber(name)
	if z.imaginary == ir.NoValue {
		z.imaginary = c.b.FullLike(z.real, 0)
	}
	return z
}

// pairOrNumber is the value of an argument, with no imaginary part where it is real.
func (c *call) pairOrNumber(name string) pair {
	a, ok := c.arg(name)
	if !ok {
		c.bad("%s is missing", name)
	}
	if z, is := c.env[a.name].(*complexTensor); is && a.kind == argTensor {
		return pair{z.real.read(c.b), z.imaginary.read(c.b)}
	}
	if a.kind == argTensor {
		return pair{c.asTensor(name, a).read(c.b), ir.NoValue}
	}
	return pair{c.asNumber(name, a).scalar(c.b, ir.F64), ir.NoValue}
}

func (c *call) each(f func(ir.Value) ir.Value) pair {
	z := c.pair("self")
	return pair{f(z.real), f(z.imaginary)}
}

func (c *call) conjugate() pair {
	z := c.pair("self")
	return pair{z.real, c.b.Unary(ir.OpNegate, z.imaginary)}
}

// matched gives two real operands a common shape, and the wider type of those with a rank.
func (c *call) matched(x, y ir.Value) (ir.Value, ir.Value) {
	to := c.b.DType(x)
	if c.b.Rank(x) == 0 || c.b.Rank(y) > 0 && !to.IsFloat() {
		to = c.b.DType(y)
	}
	both := lower.Broadcast(c.b, c.b.Convert(x, to), c.b.Convert(y, to))
	return both[0], both[1]
}

func (c *call) realProduct(x, y ir.Value) ir.Value {
	x, y = c.matched(x, y)
	return c.b.Binary(ir.OpMultiply, x, y)
}

func (c *call) complexSum(kind ir.Kind) pair {
	x, y := c.pair("self"), c.pair("other")
	if alpha := c.float("alpha", 1); alpha != 1 {
		y = pair{lower.Scale(c.b, y.real, alpha), lower.Scale(c.b, y.imaginary, alpha)}
	}
	sum := func(x, y ir.Value) ir.Value {
		x, y = c.matched(x, y)
		return c.b.Binary(kind, x, y)
	}
	return pair{sum(x.real, y.real), sum(x.imaginary, y.imaginary)}
}

func (c *call) complexProduct(x, y pair) pair {
	switch {
	case x.imaginary == ir.NoValue:
		return pair{c.realProduct(x.real, y.real), c.realProduct(x.real, y.imaginary)}
	case y.imaginary == ir.NoValue:
		return pair{c.realProduct(x.real, y.real), c.realProduct(x.imaginary, y.real)}
	}
	return pair{c.b.Binary(ir.OpSubtract, c.realProduct(x.real, y.real), c.realProduct(x.imaginary, y.imaginary)),
		c.b.Binary(ir.OpAdd, c.realProduct(x.real, y.imaginary), c.realProduct(x.imaginary, y.real))}
}

func (c *call) quotient() pair {
	x, y := c.pair("self"), c.pairOrNumber("other")
	over := func(v, by ir.Value) ir.Value {
		v, by = c.matched(v, by)
		return c.b.Binary(ir.OpDivide, v, by)
	}
	if y.imaginary == ir.NoValue {
		return pair{over(x.real, y.real), over(x.imaginary, y.real)}
	}
	size := c.b.Binary(ir.OpAdd, c.realProduct(y.real, y.real), c.realProduct(y.imaginary, y.imaginary))
	z := c.complexProduct(x, pair{y.real, c.b.Unary(ir.OpNegate, y.imaginary)})
	return pair{over(z.real, size), over(z.imaginary, size)}
}

// fourierRules are the transforms of torch.fft, and what they decompose into.
func fourierRules() map[string]func(c *call) pair {
	table := map[string]func(c *call) pair{
		"_fft_c2c.default": func(c *call) pair {
			return c.along(c.pairOrNumber("self"), lower.Transform{Inverse: !c.bool("forward", true), Scaling: lower.Scaling(c.int("normalization", 0))})
		},
		"_fft_r2c.default": func(c *call) pair {
			z, t := c.pairOrNumber("self"), lower.Transform{Scaling: lower.Scaling(c.int("normalization", 0))}
			axes := c.axes("dim", c.b.Rank(z.real))
			return c.transforms(z, axes, nil, t, c.bool("onesided", true))
		},
		"_fft_c2r.default": func(c *call) pair {
			z, t := c.pairOrNumber("self"), lower.Transform{Inverse: true, Scaling: lower.Scaling(c.int("normalization", 0))}
			axes := c.axes("dim", c.b.Rank(z.real))
			sizes := make([]ir.Dim, len(axes))
			for i, axis := range axes {
				sizes[i] = c.b.Shape(z.real)[axis]
			}
			sizes[len(sizes)-1], _ = c.dim("last_dim_size")
			return c.transforms(z, axes, sizes, t, true)
		},
		"stft.default": (*call).shortTime,
		"stft.center":  (*call).shortTime,
	}
	for _, form := range []string{"", "2", "n"} {
		for _, kind := range []string{"fft", "ifft", "rfft", "irfft"} {
			table["fft_"+kind+form+".default"] = func(c *call) pair { return c.fft(kind, form) }
		}
	}
	return table
}

// along transforms all axes of the argument dim at their sizes.
func (c *call) along(z pair, t lower.Transform) pair {
	return c.transforms(z, c.axes("dim", c.b.Rank(z.real)), nil, t, false)
}

// fft is a transform of torch.fft: kind says of what, form over which axes.
func (c *call) fft(kind, form string) pair {
	z := c.pairOrNumber("self")
	if !c.b.DType(z.real).IsFloat() {
		z.real = c.b.Convert(z.real, ir.F32)
	}
	rank := c.b.Rank(z.real)
	t := lower.Transform{Inverse: kind[0] == 'i' || kind == "irfft"}
	switch norm := c.string("norm", "backward"); {
	case norm == "ortho":
		t.Scaling = lower.ByRoot
	case norm == "forward" && !t.Inverse, norm == "backward" && t.Inverse:
		t.Scaling = lower.ByLength
	}
	var axes []int
	var sizes []ir.Dim
	if form == "" {
		axes = []int{c.axis("dim", -1, rank)}
		if n, given := c.dim("n"); given {
			sizes = []ir.Dim{n}
		}
	} else {
		sizes, _ = c.dims("s")
		axes = c.fftAxes(form, rank, len(sizes))
	}
	onesided := kind == "rfft" || kind == "irfft"
	if onesided && t.Inverse && sizes == nil {
		for _, axis := range axes {
			sizes = append(sizes, c.b.Shape(z.real)[axis])
		}
		last := &sizes[len(sizes)-1]
		*last = last.AddConst(-1).MulConst(2)
	}
	return c.transforms(z, axes, sizes, t, onesided)
}

// fftAxes are the axes of a transform over several: given, the last two, the last that have
// sizes, or all.
func (c *call) fftAxes(form string, rank, sizes int) []int {
	if c.has("dim") {
		return c.axes("dim", rank)
	}
	first := 0
	if form == "2" {
		first = max(rank-2, 0)
	} else if sizes > 0 {
		first = max(rank-sizes, 0)
	}
	var axes []int
	for axis := first; axis < rank; axis++ {
		axes = append(axes, axis)
	}
	return axes
}

// transforms applies a transform to several axes, of which the last is onesided where the
// signal is real. sizes, where given, are the lengths.
func (c *call) transforms(z pair, axes []int, sizes []ir.Dim, t lower.Transform, onesided bool) pair {
	if len(axes) == 0 {
		c.unsupported(" over no dims")
	}
	if sizes != nil && len(sizes) != len(axes) {
		c.bad("%d sizes for %d dims", len(sizes), len(axes))
	}
	order := make([]int, len(axes))
	for i := range order {
		order[i] = i
	}
	if onesided && !t.Inverse {
		slices.Reverse(order) // a real signal is one only before the first transform
	}
	for _, i := range order {
		t.Axis, t.Length = axes[i], c.b.Shape(z.real)[axes[i]]
		if sizes != nil && !sizes[i].Is(-1) {
			t.Length = sizes[i]
		}
		t.Onesided = onesided && i == len(axes)-1
		z.real, z.imaginary = lower.Fourier(c.b, z.real, z.imaginary, t)
	}
	return z
}

// shortTime is the transform of overlapping frames, [batch, frequencies, frames].
func (c *call) shortTime() pair {
	x := c.tensor("self")
	c.require(!c.hasComplex(), "of complex numbers")
	rank := c.b.Rank(x)
	if rank == 1 {
		x = c.b.Reshape(x, append([]ir.Dim{ir.Const(1)}, c.b.Shape(x)...))
	}
	length := c.int("n_fft", 0)
	hop, width := c.int("hop_length", length/4), c.int("win_length", length)
	c.arg("align_to_window")
	c.require(!c.bool("align_to_window", false), "with align_to_window")
	if c.bool("center", false) {
		mode := c.string("pad_mode", "reflect")
		x = c.edges(x, 1, ir.Const(length/2), ir.Const(length/2), mode)
	}
	if length < 1 || hop < 1 || width < 1 || width > length {
		c.bad("n_fft %d, hop_length %d, win_length %d", length, hop, width)
	}
	frames := c.b.Shape(x)[1].AddConst(-length).FloorDiv(ir.Const(hop)).AddConst(1)
	dims := []ir.Dim{frames, ir.Const(length)}
	at := c.b.Binary(ir.OpAdd, lower.Scale(c.b, c.b.Iota(ir.I64, dims, 0), float64(hop)), c.b.Iota(ir.I64, dims, 1))
	cut := c.b.Take(x, at, 1) // [batch, frames, length]
	if window := c.optional("window"); window != ir.NoValue {
		left := (length - width) / 2
		zero := c.b.Scalar(c.b.DType(window), 0)
		window = c.b.Pad(window, zero, []ir.Dim{ir.Const(left)}, []ir.Dim{ir.Const(length - width - left)}, []int64{0})
		cut = c.b.Binary(ir.OpMultiply, cut, c.b.Broadcast(window, c.b.Shape(cut), []int{2}))
	} else {
		c.require(width == length, "with win_length and no window")
	}
	t := lower.Transform{Length: ir.Const(length), Axis: 2, Onesided: c.bool("onesided", true)}
	if c.bool("normalized", false) {
		t.Scaling = lower.ByRoot
	}
	real, imaginary := lower.Fourier(c.b, cut, ir.NoValue, t)
	shape := func(v ir.Value) ir.Value {
		v = c.b.Transpose(v, []int{0, 2, 1})
		if rank == 1 {
			v = c.b.Reshape(v, c.b.Shape(v)[1:])
		}
		return v
	}
	z := pair{shape(real), shape(imaginary)}
	if !c.bool("return_complex", true) {
		return pair{lower.Stack(c.b, c.b.Rank(z.real), z.real, z.imaginary), ir.NoValue}
	}
	return z
}

// weightNorm scales the directions v to the lengths g: along dim, or as a whole (-1).
func (c *call) weightNorm() []ir.Value {
	v, g := c.tensor("v"), c.tensor("g")
	axes := c.normedAxes(v)
	wide := ir.F32
	if c.b.DType(v) == ir.F64 {
		wide = ir.F64
	}
	x := c.b.Convert(v, wide)
	norm := c.b.Unary(ir.OpSqrt, c.b.ReduceKeep(ir.Sum, c.b.Binary(ir.OpMultiply, x, x), axes...))
	scale := c.b.Binary(ir.OpDivide, lower.Expand(c.b, c.b.Convert(g, wide), c.b.Shape(norm)), norm)
	y := c.b.Binary(ir.OpMultiply, x, lower.Expand(c.b, scale, c.b.Shape(x)))
	return []ir.Value{c.b.Convert(y, c.b.DType(v)), norm}
}

// normedAxes are the axes along which weights have one norm: all but dim.
func (c *call) normedAxes(v ir.Value) (axes []int) {
	dim, rank := c.int("dim", 0), c.b.Rank(v)
	for axis := range rank {
		if dim == -1 || axis != c.wrap("dim", dim, rank) {
			axes = append(axes, axis)
		}
	}
	return axes
}

// weightNormBackward gives the gradients of v and g, of which g v / |v| are the weights.
func (c *call) weightNormBackward() []ir.Value {
	b, dw, v, g, norms := c.b, c.tensor("grad_w"), c.tensor("saved_v"), c.tensor("saved_g"), c.tensor("saved_norms")
	axes, wide, shape := c.normedAxes(v), b.DType(norms), b.Shape(v)
	x, dy := b.Convert(v, wide), b.Convert(dw, wide)
	sum := b.ReduceKeep(ir.Sum, b.Binary(ir.OpMultiply, dy, x), axes...)
	norm := lower.Expand(b, norms, b.Shape(sum))
	dg := b.Binary(ir.OpDivide, sum, norm)
	scale := b.Binary(ir.OpDivide, lower.Expand(b, b.Convert(g, wide), b.Shape(sum)), norm)
	along := b.Binary(ir.OpDivide, dg, norm) // how much of dy only makes v longer
	rest := b.Binary(ir.OpSubtract, dy, b.Binary(ir.OpMultiply, x, lower.Expand(b, along, shape)))
	dv := b.Binary(ir.OpMultiply, lower.Expand(b, scale, shape), rest)
	return []ir.Value{b.Convert(dv, b.DType(v)), lower.Expand(b, b.Convert(dg, b.DType(g)), b.Shape(g))}
}
