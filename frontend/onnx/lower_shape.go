package onnx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
	"weft/ir/diag"
)

func constant(n *node) {
	b := n.b
	switch {
	case n.hasAttr("value"):
		a := n.attr("value", attrTensor)
		n.setStored(&storedTensor{name: n.p.outputs[0], proto: a.t, kind: ir.Literal, literal: true})
	case n.hasAttr("sparse_value"):
		dense, d := n.densify(n.attr("sparse_value", attrSparse).sparse)
		if d != nil {
			ir.Fail(d)
		}
		n.setStored(&storedTensor{name: n.p.outputs[0], tensor: dense, kind: ir.Literal, literal: true})
	case n.hasAttr("value_float"):
		n.set(b.Scalar(ir.F32, n.float("value_float", 0)))
	case n.hasAttr("value_int"):
		n.set(b.Constant(ir.ScalarInt(ir.I64, n.int("value_int", 0))))
	case n.hasAttr("value_floats"):
		list := n.floats("value_floats")
		t := ir.NewTensor(ir.F32, int64(len(list)))
		for i, f := range list {
			t.SetFloat(int64(i), f)
		}
		n.setStored(&storedTensor{name: n.p.outputs[0], tensor: t, kind: ir.Literal, literal: true})
	case n.hasAttr("value_ints"):
		n.setStored(&storedTensor{name: n.p.outputs[0], tensor: ir.I64s(n.ints("value_ints")), kind: ir.Literal, literal: true})
	case n.hasAttr("value_string"):
		n.set(b.Constant(&ir.Tensor{DType: ir.String, Strings: []string{n.str("value_string", "")}}))
	case n.hasAttr("value_strings"):
		list := n.strings("value_strings")
		n.set(b.Constant(&ir.Tensor{DType: ir.String, Shape: []int64{int64(len(list))}, Strings: list}))
	default:
		n.missingAttribute("value")
	}
}

// setStored gives the output as a tensor of the file, which is made a literal or a state when
// it is used.
func (n *node) setStored(st *storedTensor) {
	n.outs = append(n.outs, &value{v: n.store(n.s, st)})
}

func identity(n *node) {
	x := n.input(0)
	if x != nil && x.sequence != nil {
		n.outs = append(n.outs, x)
		return
	}
	n.set(n.in(0))
}

// dimsValue makes a rank-1 i64 tensor of sizes.
func dimsValue(b *ir.Builder, dims []ir.Dim) ir.Value {
	values := make([]int64, len(dims))
	constant := true
	for i, d := range dims {
		c, ok := d.IsConst()
		values[i], constant = c, constant && ok
	}
	if constant {
		return b.Constant(ir.I64s(values))
	}
	parts := make([]ir.Value, len(dims))
	for i, d := range dims {
		parts[i] = b.Reshape(b.Dim(d), ir.Consts(1))
	}
	return b.Concatenate(0, parts...)
}

func shapeOf(n *node) {
	shape := n.b.Shape(n.in(0))
	rank := int64(len(shape))
	clamp := func(v int64) int64 {
		if v < 0 {
			v += rank
		}
		return min(max(v, 0), rank)
	}
	start, end := clamp(n.int("start", 0)), clamp(n.int("end", rank))
	n.set(dimsValue(n.b, shape[start:max(start, end)]))
}

func sizeOf(n *node) { n.set(n.b.Dim(n.b.Type(n.in(0)).Numel())) }

func reshape(n *node) {
	x := n.in(0)
	var want []ir.Dim
	if n.version < 5 {
		want = ir.Consts(n.ints("shape")...)
	} else {
		want = n.dims(1, "the shape")
	}
	n.set(n.b.Reshape(x, n.reshaped(n.b.Shape(x), want, n.flag("allowzero", false))))
}

// reshaped resolves 0 (the input's dim) and -1 (what remains) in the shape of a Reshape.
func (n *node) reshaped(shape, want []ir.Dim, allowZero bool) []ir.Dim {
	out, open := slices.Clone(want), -1
	for i, d := range out {
		switch {
		case d.Is(0) && !allowZero:
			if i >= len(shape) {
				n.wrong("dim %d is 0, and the input has %d dims", i, len(shape))
			}
			out[i] = shape[i]
		case d.Is(-1) && open >= 0:
			n.wrong("more than one dim of the shape is -1")
		case d.Is(-1):
			open = i
		}
	}
	if open < 0 {
		return out
	}
	out[open] = ir.Const(1)
	known, numel := ir.Product(out), ir.Product(shape)
	switch c, ok := known.IsConst(); {
	case ok && c == 0:
		n.wrong("the dim -1 cannot be told: the other dims have no elements")
	case ok && c < 0:
		n.wrong("shape %s", ir.DimList(want))
	}
	rest, exact := cancel(shape, out)
	if !exact {
		if q, ok := numel.DivExact(known); ok {
			rest = q
		} else {
			rest = numel.FloorDiv(known)
			if c, ok := known.IsConst(); ok {
				if m, ok := numel.IsConst(); ok && m%c != 0 {
					n.wrong("%s elements do not make the shape %s", numel, ir.DimList(want))
				}
			}
		}
	}
	out[open] = rest
	return out
}

// cancel divides a shape by another dim by dim, where equal dims meet.
func cancel(shape, by []ir.Dim) (ir.Dim, bool) {
	left := slices.Clone(shape)
	rest := ir.Const(1)
	for _, d := range by {
		if i := slices.IndexFunc(left, d.Equal); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else {
			rest = rest.Mul(d)
		}
	}
	return ir.Product(left).DivExact(rest)
}

func flatten(n *node) {
	x := n.in(0)
	shape := n.b.Shape(x)
	axis := n.int("axis", 1)
	if axis != int64(len(shape)) {
		axis = int64(n.axis(axis, max(1, len(shape))))
	}
	axis = min(axis, int64(len(shape)))
	n.set(n.b.Reshape(x, []ir.Dim{ir.Product(shape[:axis]), ir.Product(shape[axis:])}))
}

func squeeze(n *node) {
	x := n.in(0)
	shape := n.b.Shape(x)
	list := n.axesOr(13, 1)
	var axes []int
	if list == nil {
		for i, d := range shape {
			if d.Is(1) {
				axes = append(axes, i)
			} else if _, isConst := d.IsConst(); !isConst {
				n.warnings = append(n.warnings, diag.Warnf(diag.ONNXDimTakenLarge, n.place, "dim %s is taken to be larger than 1, so that it stays", d).
					Suggest("give the operator axes, or the dim a size when importing"))
			}
		}
	} else {
		axes = n.axes(list, len(shape))
	}
	var rest []ir.Dim
	for i, d := range shape {
		if !slices.Contains(axes, i) {
			rest = append(rest, d)
		} else if c, ok := d.IsConst(); ok && c != 1 {
			n.wrong("dim %d of %s is not 1", i, n.b.Type(x))
		}
	}
	n.set(n.b.Reshape(x, rest))
}

func unsqueeze(n *node) {
	x := n.in(0)
	list := n.axesOr(13, 1)
	rank := n.b.Rank(x) + len(list)
	if rank > maxRank {
		n.wrong("%d dims", rank)
	}
	shape := slices.Clone(n.b.Shape(x))
	for _, a := range n.axes(list, rank) {
		shape = slices.Insert(shape, a, ir.Const(1))
	}
	n.set(n.b.Reshape(x, shape))
}

func transpose(n *node) {
	x := n.in(0)
	rank := n.b.Rank(x)
	perm := make([]int, rank)
	if list := n.ints("perm"); list != nil {
		if len(list) != rank {
			n.wrong("perm has %d numbers for %d dims", len(list), rank)
		}
		for i, p := range list {
			perm[i] = n.axis(p, rank)
		}
	} else {
		for i := range perm {
			perm[i] = rank - 1 - i
		}
	}
	n.set(n.b.Transpose(x, perm))
}

func concat(n *node) {
	xs := n.all()
	if !n.hasAttr("axis") {
		n.missingAttribute("axis")
	}
	n.set(n.concatenate(xs, n.axis(n.int("axis", 0), n.b.Rank(xs[0]))))
}

// concatenate joins tensors, after stating that their other dims are equal.
func (n *node) concatenate(xs []ir.Value, axis int) ir.Value {
	shape := slices.Clone(n.b.Shape(xs[0]))
	for _, x := range xs[1:] {
		if n.b.Rank(x) != len(shape) {
			n.wrong("inputs are %s and %s", n.b.Type(xs[0]), n.b.Type(x))
		}
		for i, d := range n.b.Shape(x) {
			if _, ok := d.IsConst(); ok {
				shape[i] = d
			}
		}
	}
	for i, x := range xs {
		shape[axis] = n.b.Shape(x)[axis]
		xs[i] = n.sameDims(x, slices.Clone(shape))
	}
	return n.b.Concatenate(axis, xs...)
}

func expand(n *node) {
	x := n.in(0)
	want := n.dims(1, "the shape")
	shape := n.b.Shape(x)
	if len(want) > maxRank {
		n.wrong("%d dims", len(want))
	}
	n.unifyAlignedDims(shape, want)
	// Dims broadcast in both directions.
	full := slices.Repeat([]ir.Dim{ir.Const(1)}, max(len(shape), len(want)))
	copy(full[len(full)-len(want):], want)
	for i, d := range shape {
		at := &full[len(full)-len(shape)+i]
		_, isConst := at.IsConst()
		switch {
		case at.Is(1):
			*at = d
		case isConst && !d.Is(1) && !d.Equal(*at):
			if _, ok := d.IsConst(); ok {
				n.wrong("%s does not expand to %s", n.b.Type(x), ir.DimList(want))
			}
		}
	}
	n.set(lower.Expand(n.b, x, full))
}

func (n *node) unifyAlignedDims(a, b []ir.Dim) {
	for i := 1; i <= min(len(a), len(b)); i++ {
		n.unifyBroadcast(a[len(a)-i], b[len(b)-i])
	}
}

func tile(n *node) {
	x := n.in(0)
	repeats := n.dims(1, "repeats")
	shape := n.b.Shape(x)
	if len(repeats) != len(shape) {
		n.wrong("%d repeats for %d dims", len(repeats), len(shape))
	}
	// Insert a dim in front of each, broadcast it, and join.
	var split, wide, out []ir.Dim
	for i, d := range shape {
		split, wide = append(split, ir.Const(1), d), append(wide, repeats[i], d)
		out = append(out, repeats[i].Mul(d))
	}
	if len(split) > maxRank*2 {
		n.wrong("%d dims", len(shape))
	}
	n.set(n.b.Reshape(n.b.BroadcastTo(n.b.Reshape(x, split), wide), out))
}

// clampDim limits d to [low, high] where what is known of the symbols does not tell.
func (n *node) clampDim(d, low, high ir.Dim) ir.Dim {
	return lower.MinDim(n.program, lower.MaxDim(n.program, d, low), high)
}

func slice(n *node) {
	x := n.in(0)
	var starts, ends []ir.Dim
	var axes, steps []int64
	if n.version < 10 {
		starts, ends, axes = ir.Consts(n.ints("starts")...), ir.Consts(n.ints("ends")...), n.ints("axes")
	} else {
		starts, ends = n.dims(1, "starts"), n.dims(2, "ends")
		if n.has(3) {
			axes = n.constInts(3, "axes")
		}
		if n.has(4) {
			steps = n.constInts(4, "steps")
		}
	}
	if axes == nil {
		for i := range starts {
			axes = append(axes, int64(i))
		}
	}
	if len(ends) != len(starts) || len(axes) != len(starts) || steps != nil && len(steps) != len(starts) {
		n.wrong("starts, ends, axes and steps have %d, %d, %d and %d numbers", len(starts), len(ends), len(axes), len(steps))
	}
	seen := map[int]bool{}
	for i, a := range axes {
		axis := n.axis(a, n.b.Rank(x))
		if seen[axis] {
			n.wrong("axes %v repeat", axes)
		}
		seen[axis] = true
		step := int64(1)
		if steps != nil {
			step = steps[i]
		}
		x = n.sliceAxis(x, axis, starts[i], ends[i], step)
	}
	n.set(x)
}

// sliceAxis takes [start, end) with a step along one axis, with Python's rules for negative
// numbers, steps and limits.
func (n *node) sliceAxis(x ir.Value, axis int, start, end ir.Dim, step int64) ir.Value {
	size := n.b.Shape(x)[axis]
	zero := ir.Const(0)
	fromEnd := func(d ir.Dim) ir.Dim {
		switch r := d.Bounds(n.program.Range); {
		case r.Min >= 0:
			return d
		case r.Max < 0:
			return d.Add(size)
		}
		n.dataDependent("it cannot be told whether the bound %s counts from the end", d)
		return d
	}
	switch {
	case step == 0:
		n.wrong("a step is 0")
	case step == math.MinInt64:
		step++
	}
	if step > 0 {
		start = n.clampDim(fromEnd(start), zero, size)
		end = lower.MaxDim(n.program, n.clampDim(fromEnd(end), zero, size), start)
		return n.b.SliceAxis(x, axis, start, end, step)
	}
	// Backwards: from start down to end, exclusive. In the reversed tensor that is a slice
	// from size-1-start to size-1-end.
	last := size.AddConst(-1)
	start = n.clampDim(fromEnd(start), ir.Const(-1), last)
	if end.Is(math.MinInt64) || end.Is(math.MinInt64+1) || end.Is(-math.MaxInt32) || end.Is(math.MinInt32) {
		end = ir.Const(-1)
	} else {
		end = n.clampDim(fromEnd(end), ir.Const(-1), last)
	}
	low := last.Sub(start)
	high := lower.MaxDim(n.program, last.Sub(end), low)
	return n.b.SliceAxis(n.b.Reverse(x, axis), axis, low, high, -step)
}

func split(n *node) {
	x := n.in(0)
	axis := n.axis(n.int("axis", 0), n.b.Rank(x))
	size := n.b.Shape(x)[axis]
	var sizes []ir.Dim
	switch {
	case n.version < 13 && n.hasAttr("split"):
		sizes = ir.Consts(n.ints("split")...)
	case n.version >= 13 && n.has(1):
		sizes = n.dims(1, "the sizes")
	default:
		sizes = n.evenSizes(size, n.int("num_outputs", int64(len(n.p.outputs))))
	}
	if len(sizes) < len(n.p.outputs) {
		n.wrong("%d sizes for %d outputs", len(sizes), len(n.p.outputs))
	}
	n.set(n.splitAxis(x, axis, sizes)...)
}

// evenSizes cuts a dim into parts of ceil(size/parts); the last may be smaller.
func (n *node) evenSizes(size ir.Dim, parts int64) []ir.Dim {
	if parts < 1 || parts > int64(max(1, len(n.p.outputs))) && parts > 1<<16 {
		n.wrong("%d parts", parts)
	}
	each := size.CeilDiv(parts)
	if q, ok := size.DivExact(ir.Const(parts)); ok {
		each = q
	}
	sizes := slices.Repeat([]ir.Dim{each}, int(parts))
	if !each.MulConst(parts).Equal(size) {
		sizes[parts-1] = size.Sub(each.MulConst(parts - 1))
	}
	return sizes
}

func (n *node) splitAxis(x ir.Value, axis int, sizes []ir.Dim) []ir.Value {
	start := ir.Const(0)
	out := make([]ir.Value, len(sizes))
	for i, d := range sizes {
		end := start.Add(d)
		out[i] = n.b.SliceAxis(x, axis, start, end, 1)
		start = end
	}
	size := n.b.Shape(x)[axis]
	if _, ok := size.IsConst(); ok && !start.Equal(size) {
		n.wrong("the sizes add up to %s, dim %d of %s is %s", start, axis, n.b.Type(x), size)
	}
	return out
}

func constantOfShape(n *node) {
	shape := n.dims(0, "the shape")
	fill := n.b.Scalar(ir.F32, 0)
	if a := n.attr("value", attrTensor); a != nil {
		t, d := n.external.read(a.t, n.place)
		if d != nil {
			ir.Fail(d)
		}
		if t.Numel() != 1 {
			n.wrong("the value has %d elements", t.Numel())
		}
		fill = n.b.Constant(&ir.Tensor{DType: t.DType, Data: t.Data, Strings: t.Strings})
	}
	if len(shape) > maxRank {
		n.wrong("%d dims", len(shape))
	}
	n.set(n.b.Broadcast(fill, shape, nil))
}

func rangeOf(n *node) {
	start, limit, delta := n.scalarIn(0), n.scalarIn(1), n.scalarIn(2)
	b := n.b
	dtype := b.DType(start)
	var size ir.Dim
	if dtype.IsFloat() {
		s, ok1 := n.known.Floats(start)
		l, ok2 := n.known.Floats(limit)
		d, ok3 := n.known.Floats(delta)
		if !ok1 || !ok2 || !ok3 {
			n.dataDependent("start, limit or delta is not known before the model runs")
		}
		size = ir.Const(ir.SaturateToInt(ir.I64, max(0, math.Ceil((l[0]-s[0])/d[0]))))
	} else {
		s, ok1 := n.known.Dims(start)
		l, ok2 := n.known.Dims(limit)
		d, ok3 := n.known.Ints(delta)
		if !ok1 || !ok2 || !ok3 {
			n.dataDependent("start, limit or delta is not known before the model runs")
		}
		if d[0] == 0 {
			n.wrong("delta is 0")
		}
		distance, step := l[0].Sub(s[0]), d[0]
		if step < 0 {
			distance, step = distance.Neg(), -step
		}
		size = lower.MaxDim(n.program, distance.CeilDiv(max(step, 1)), ir.Const(0))
	}
	shape := []ir.Dim{size}
	y := b.Iota(dtype, shape, 0)
	if c, ok := n.known.Floats(delta); !ok || c[0] != 1 {
		y = b.Binary(ir.OpMultiply, y, b.Broadcast(delta, shape, nil))
	}
	if c, ok := n.known.Floats(start); !ok || c[0] != 0 {
		y = b.Binary(ir.OpAdd, b.Broadcast(start, shape, nil), y)
	}
	n.set(y)
}

func eyeLike(n *node) {
	x := n.in(0)
	if n.b.Rank(x) != 2 {
		n.wrong("the input is %s, not a matrix", n.b.Type(x))
	}
	dtype := n.dtypeAttr("dtype", n.b.DType(x))
	shape := n.b.Shape(x)
	row, column := n.b.Iota(ir.I64, shape, 0), n.b.Iota(ir.I64, shape, 1)
	hit := n.b.Compare(ir.EQ, column, n.b.Binary(ir.OpAdd, row, n.b.FullLike(row, float64(n.int("k", 0)))))
	n.set(n.b.Convert(hit, dtype))
}

func trilu(n *node) {
	x := n.in(0)
	n.rankAtLeast(x, 2)
	offset := n.b.Constant(ir.ScalarInt(ir.I64, 0))
	if n.has(1) {
		offset = n.b.Convert(n.scalarIn(1), ir.I64)
	}
	n.set(lower.Triangle(n.b, x, offset, n.flag("upper", true)))
}

// blocks finds the block size of DepthToSpace and SpaceToDepth.
func (n *node) blocks(x ir.Value) int64 {
	if n.b.Rank(x) != 4 {
		n.wrong("the input is %s; it needs 4 dims", n.b.Type(x))
	}
	size := n.int("blocksize", 0)
	if size < 1 || size > 1<<20 {
		n.wrong("blocksize %d", size)
	}
	return size
}

func depthToSpace(n *node) {
	x := n.in(0)
	k := n.blocks(x)
	s := n.b.Shape(x)
	c := s[1].FloorDiv(ir.Const(k * k))
	bs := ir.Const(k)
	var y ir.Value
	if n.choice("mode", "DCR", "DCR", "CRD") == "DCR" {
		y = n.b.Transpose(n.b.Reshape(x, []ir.Dim{s[0], bs, bs, c, s[2], s[3]}), []int{0, 3, 4, 1, 5, 2})
	} else {
		y = n.b.Transpose(n.b.Reshape(x, []ir.Dim{s[0], c, bs, bs, s[2], s[3]}), []int{0, 1, 4, 2, 5, 3})
	}
	n.set(n.b.Reshape(y, []ir.Dim{s[0], c, s[2].MulConst(k), s[3].MulConst(k)}))
}

func spaceToDepth(n *node) {
	x := n.in(0)
	k := n.blocks(x)
	s := n.b.Shape(x)
	bs := ir.Const(k)
	h, w := s[2].FloorDiv(bs), s[3].FloorDiv(bs)
	y := n.b.Reshape(x, []ir.Dim{s[0], s[1], h, bs, w, bs})
	if n.choice("mode", "DCR", "DCR", "CRD") == "DCR" {
		y = n.b.Transpose(y, []int{0, 3, 5, 1, 2, 4})
	} else {
		y = n.b.Transpose(y, []int{0, 1, 3, 5, 2, 4})
	}
	n.set(n.b.Reshape(y, []ir.Dim{s[0], s[1].MulConst(k * k), h, w}))
}

func pad(n *node) {
	x := n.in(0)
	rank := n.b.Rank(x)
	var pads []ir.Dim
	fill := n.b.Scalar(n.b.DType(x), 0)
	if n.version < 11 {
		pads = ir.Consts(n.ints("pads")...)
		fill = n.b.Scalar(n.b.DType(x), n.float("value", 0))
	} else {
		pads = n.dims(1, "pads")
		if n.has(2) {
			fill = n.scalarIn(2)
		}
	}
	axes := make([]int, rank)
	for i := range axes {
		axes[i] = i
	}
	if n.has(3) {
		axes = nil
		for _, a := range n.constInts(3, "axes") {
			axes = append(axes, n.axis(a, rank))
		}
	}
	if len(pads) != 2*len(axes) {
		n.wrong("%d pads for %d axes", len(pads), len(axes))
	}
	low, high := slices.Repeat([]ir.Dim{{}}, rank), slices.Repeat([]ir.Dim{{}}, rank)
	for i, a := range axes {
		low[a], high[a] = pads[i], pads[len(axes)+i]
	}
	mode := n.choice("mode", "constant", "constant", "reflect", "edge", "wrap")
	if mode == "constant" {
		n.set(n.b.Pad(x, fill, low, high, nil))
		return
	}
	for axis := range rank {
		if !low[axis].Is(0) || !high[axis].Is(0) {
			x = n.padByIndex(x, axis, low[axis], high[axis], mode)
		}
	}
	n.set(x)
}

// padByIndex pads along one axis with elements of the input.
func (n *node) padByIndex(x ir.Value, axis int, low, high ir.Dim, mode string) ir.Value {
	b := n.b
	size := b.Shape(x)[axis]
	if size.Is(0) {
		n.wrong("mode %s of an empty dim", mode)
	}
	out := size.Add(low).Add(high)
	i := b.Iota(ir.I64, []ir.Dim{out}, 0)
	number := func(d ir.Dim) ir.Value { return b.Broadcast(b.Dim(d), b.Shape(i), nil) }
	i = b.Binary(ir.OpSubtract, i, number(low))
	switch last := size.AddConst(-1); mode {
	case "edge":
		i = b.Op(ir.OpClamp, nil, nil, b.FullLike(i, 0), i, number(last))[0]
	case "wrap":
		i = lower.FloorMod(b, i, number(size))
	case "reflect":
		// A period of 2*(size-1), mirrored: last - |i mod period - last|.
		period := number(lower.MaxDim(n.program, last.MulConst(2), ir.Const(1)))
		folded := lower.FloorMod(b, i, period)
		i = b.Binary(ir.OpSubtract, number(last), b.Unary(ir.OpAbs, b.Binary(ir.OpSubtract, folded, number(last))))
	}
	return b.Take(x, i, axis)
}

func centerCropPad(n *node) {
	x := n.in(0)
	want := n.dims(1, "the shape")
	axes := make([]int64, n.b.Rank(x))
	for i := range axes {
		axes[i] = int64(i)
	}
	if list := n.ints("axes"); list != nil {
		axes = list
	}
	if len(want) != len(axes) {
		n.wrong("%d sizes for %d axes", len(want), len(axes))
	}
	zero := n.b.Scalar(n.b.DType(x), 0)
	for i, a := range axes {
		axis := n.axis(a, n.b.Rank(x))
		have, ok1 := n.b.Shape(x)[axis].IsConst()
		size, ok2 := want[i].IsConst()
		switch {
		case n.b.Shape(x)[axis].Equal(want[i]):
		case !ok1 || !ok2:
			n.dataDependent("dim %d of %s to %s: the sizes must be constant", axis, n.b.Type(x), want[i])
		case size < have:
			start := (have - size) / 2
			x = n.b.SliceAxis(x, axis, ir.Const(start), ir.Const(start+size), 1)
		default:
			low, high := make([]ir.Dim, n.b.Rank(x)), make([]ir.Dim, n.b.Rank(x))
			low[axis] = ir.Const((size - have) / 2)
			high[axis] = ir.Const(size - have - (size-have)/2)
			x = n.b.Pad(x, zero, low, high, nil)
		}
	}
	n.set(x)
}
