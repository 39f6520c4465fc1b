package onnx

import (
	"math"
	"slices"
	"strings"

	"weft/frontend/lower"
	"weft/ir"
)

func samplings() map[string][]version {
	return map[string][]version{
		"GridSample": one(gridSample), "AffineGrid": one(affineGrid), "Col2Im": one(col2Im), "MaxUnpool": one(maxUnpool),
		"CausalConvWithState": one(causalConvWithState), "LinearAttention": one(linearAttention),
	}
}

// sampler takes elements of x [N, C, spatial...] at positions that need not be whole.
type sampler struct {
	n       *node
	x       ir.Value
	corners bool // -1 and 1 are the centers of the outermost elements, not their edges
	padding string
}

// size is a spatial dim as a float that broadcasts to v.
func (s *sampler) size(dim int, v ir.Value) ir.Value {
	b := s.n.b
	return b.Broadcast(b.Convert(b.Dim(b.Shape(s.x)[2+dim]), b.DType(v)), b.Shape(v), nil)
}

// reflect mirrors positions at the borders of a dim until they are inside.
func (s *sampler) reflect(dim int, v ir.Value) ir.Value {
	b := s.n.b
	low, span := -0.5, s.size(dim, v)
	if s.corners {
		low, span = 0, lower.AddScalar(b, span, -1)
	}
	safe := b.Binary(ir.OpMaximum, span, b.FullLike(span, 1e-9))
	d := b.Unary(ir.OpAbs, lower.AddScalar(b, v, -low))
	turns := b.Unary(ir.OpFloor, b.Binary(ir.OpDivide, d, safe))
	rest := b.Binary(ir.OpSubtract, d, b.Binary(ir.OpMultiply, turns, safe))
	odd := lower.CompareScalar(b, ir.EQ, b.Binary(ir.OpRemainder, turns, b.FullLike(turns, 2)), 1)
	return lower.AddScalar(b, b.Select(odd, b.Binary(ir.OpSubtract, span, rest), rest), low)
}

// tap is one neighbour along one dim: its index and its weight.
type tap struct{ index, weight ir.Value }

// taps gives the neighbours of positions along a dim, with the padding mode applied.
func (s *sampler) taps(dim int, v ir.Value, mode string) []tap {
	b := s.n.b
	v = lower.AddScalar(b, v, 1)
	if s.corners {
		v = b.Binary(ir.OpMultiply, lower.Scale(b, v, 0.5), lower.AddScalar(b, s.size(dim, v), -1))
	} else {
		v = lower.Scale(b, lower.AddScalar(b, b.Binary(ir.OpMultiply, v, s.size(dim, v)), -1), 0.5)
	}
	if mode == "nearest" {
		v = b.Unary(ir.OpRoundNearestEven, v)
	}
	last := lower.AddScalar(b, s.size(dim, v), -1)
	switch s.padding {
	case "border":
		v = b.Op(ir.OpClamp, nil, nil, b.FullLike(v, 0), v, last)[0]
	case "reflection":
		v = s.reflect(dim, v)
	}
	var out []tap
	base := b.Unary(ir.OpFloor, v)
	fraction := b.Binary(ir.OpSubtract, v, base)
	switch mode {
	case "nearest":
		out = []tap{{v, b.FullLike(v, 1)}}
	case "linear":
		out = []tap{{base, b.Binary(ir.OpSubtract, b.FullLike(v, 1), fraction)}, {lower.AddScalar(b, base, 1), fraction}}
	default:
		in := lower.Interpolation{Method: lower.CubicMethod, CubicA: -0.75}
		for t := -1; t <= 2; t++ {
			out = append(out, tap{lower.AddScalar(b, base, float64(t)), in.Kernel(b, lower.AddScalar(b, fraction, -float64(t)))})
		}
	}
	for i, t := range out {
		switch s.padding {
		case "zeros":
			outside := b.Binary(ir.OpOr, lower.CompareScalar(b, ir.LT, t.index, 0), b.Compare(ir.GT, t.index, last))
			out[i].weight = b.Select(outside, b.FullLike(t.weight, 0), t.weight)
		case "reflection":
			out[i].index = s.reflect(dim, t.index)
		}
		out[i].index = b.Convert(b.Op(ir.OpClamp, nil, nil, b.FullLike(v, 0), out[i].index, last)[0], ir.I64)
	}
	return out
}

// at takes the elements at whole positions [N, out..., k] as [N, C, out...].
func (s *sampler) at(positions ir.Value) ir.Value {
	b := s.n.b
	shape := b.Shape(s.x)
	a := &ir.GatherAttrs{OffsetDims: []int{1}, OperandBatchingDims: []int{0}, StartIndicesBatchingDims: []int{0},
		IndexVectorDim: b.Rank(positions) - 1, SliceSizes: ir.Consts(slices.Repeat([]int64{1}, len(shape))...)}
	a.SliceSizes[1] = shape[1]
	for i := 2; i < len(shape); i++ {
		a.CollapsedSliceDims, a.StartIndexMap = append(a.CollapsedSliceDims, i), append(a.StartIndexMap, i)
	}
	return b.Gather(s.x, positions, a)
}

// combine adds the neighbours of all dims (or takes the largest), each times the product of
// its weights.
func (s *sampler) combine(taps [][]tap, largest bool) ir.Value {
	b := s.n.b
	total, kind := ir.NoValue, ir.OpAdd
	if largest {
		kind = ir.OpMaximum
	}
	var visit func(dim int, indices []ir.Value, weight ir.Value)
	visit = func(dim int, indices []ir.Value, weight ir.Value) {
		if dim == len(taps) {
			v := s.at(lower.Stack(b, b.Rank(indices[0]), indices...))
			axes := []int{0}
			for i := 2; i < b.Rank(v); i++ {
				axes = append(axes, i)
			}
			v = b.Binary(ir.OpMultiply, v, b.Broadcast(b.Convert(weight, b.DType(v)), b.Shape(v), axes))
			if total != ir.NoValue {
				v = b.Binary(kind, total, v)
			}
			total = v
			return
		}
		for _, t := range taps[dim] {
			w := t.weight
			if weight != ir.NoValue {
				w = b.Binary(ir.OpMultiply, weight, w)
			}
			visit(dim+1, append(slices.Clone(indices), t.index), w)
		}
	}
	visit(0, nil, ir.NoValue)
	return total
}

func gridSample(n *node) {
	x, grid := n.in(0), n.in(1)
	b := n.b
	k := b.Rank(x) - 2
	if k < 1 || k > 4 || b.Rank(grid) != k+2 || !b.Shape(grid)[k+1].Is(int64(k)) {
		n.wrong("a grid %s for %s", b.Type(grid), b.Type(x))
	}
	n.unifyDims(b.Shape(x)[0], b.Shape(grid)[0])
	mode := n.choice("mode", "linear", "linear", "bilinear", "cubic", "bicubic", "nearest")
	mode = strings.TrimPrefix(mode, "bi")
	n.set(lower.InFloat32(b, func(v []ir.Value) ir.Value {
		s := &sampler{n: n, x: v[0], corners: n.flag("align_corners", false), padding: n.choice("padding_mode", "zeros", "zeros", "border", "reflection")}
		taps := make([][]tap, k)
		for d := range k {
			axis := ir.Const(int64(k - 1 - d)) // the grid has the last dim first
			position := b.SliceAxis(v[1], k+1, axis, axis.AddConst(1), 1)
			taps[d] = s.taps(d, b.Reshape(position, b.Shape(position)[:k+1]), mode)
		}
		return s.combine(taps, false)
	}, x, grid))
}

func affineGrid(n *node) {
	theta := n.in(0)
	b := n.b
	size := n.dims(1, "the size")
	k := len(size) - 2
	if b.Rank(theta) != 3 || k < 1 || k > 3 {
		n.wrong("theta %s for %d sizes", b.Type(theta), len(size))
	}
	corners := n.flag("align_corners", false)
	spatial := size[2:]
	ones := b.Full(ir.TensorOf(b.DType(theta), spatial...), 1)
	parts := make([]ir.Value, k+1)
	for d := range k {
		i := b.Iota(ir.F64, spatial, d)
		total := b.Broadcast(b.Convert(b.Dim(spatial[d]), ir.F64), spatial, nil)
		var v ir.Value
		if corners {
			v = b.Binary(ir.OpDivide, lower.Scale(b, i, 2), lower.AddScalar(b, total, -1))
		} else {
			v = b.Binary(ir.OpDivide, lower.AddScalar(b, lower.Scale(b, i, 2), 1), total)
		}
		parts[k-1-d] = b.Convert(lower.AddScalar(b, v, -1), b.DType(theta))
	}
	parts[k] = ones
	points := lower.Stack(b, k, parts...) // [spatial..., k+1]
	y := b.DotGeneral(theta, points, &ir.DotAttrs{LhsContract: []int{2}, RhsContract: []int{k}})
	perm := []int{0}
	for d := range k {
		perm = append(perm, 2+d)
	}
	n.set(b.Transpose(y, append(perm, 1)))
}

// col2Im adds the columns of blocks into an image.
func col2Im(n *node) {
	x := n.in(0)
	b := n.b
	n.rankIs(x, 3)
	image, block := n.dims(1, "the image's shape"), n.constInts(2, "the block's shape")
	k := len(image)
	if len(block) != k || k < 1 {
		n.wrong("a block %v of an image %s", block, ir.DimList(image))
	}
	dilations, strides, pads := n.intsOr("dilations", k, 1), n.intsOr("strides", k, 1), n.intsOr("pads", 2*k, 0)
	taps := int64(1)
	for i := range k {
		if block[i] < 1 || strides[i] < 1 || dilations[i] < 1 || block[i] > 1<<20 {
			n.wrong("block %v, strides %v, dilations %v", block, strides, dilations)
		}
		if taps *= block[i]; taps > 1<<12 {
			n.unsupportedForm("blocks of more than 4096 elements")
		}
	}
	s := b.Shape(x)
	channels := s[1].FloorDiv(ir.Const(taps))
	counts := make([]ir.Dim, k)
	for i, d := range image {
		counts[i] = d.AddConst(pads[i] + pads[k+i] - dilations[i]*(block[i]-1) - 1).FloorDiv(ir.Const(strides[i])).AddConst(1)
	}
	columns := b.Reshape(x, slices.Concat([]ir.Dim{s[0], channels, ir.Const(taps)}, counts))
	sum, zero := ir.NoValue, b.Scalar(b.DType(x), 0)
	for t := range taps {
		part := b.Reshape(b.SliceAxis(columns, 2, ir.Const(t), ir.Const(t+1), 1), slices.Concat([]ir.Dim{s[0], channels}, counts))
		low, high, interior := make([]ir.Dim, k+2), make([]ir.Dim, k+2), make([]int64, k+2)
		for i, rest := k-1, t; i >= 0; i-- {
			offset := rest%block[i]*dilations[i] - pads[i]
			rest /= block[i]
			low[i+2], interior[i+2] = ir.Const(offset), strides[i]-1
			high[i+2] = image[i].AddConst(-offset).Sub(counts[i].AddConst(-1).MulConst(strides[i]).AddConst(1))
		}
		part = b.Pad(part, zero, low, high, interior)
		if sum == ir.NoValue {
			sum = part
		} else {
			sum = b.Binary(ir.OpAdd, sum, n.sameDims(part, b.Shape(sum)))
		}
	}
	n.set(sum)
}

// maxUnpool puts elements at their indices in the flattened default output, which is the
// corner of a larger output where one is asked for.
func maxUnpool(n *node) {
	x, indices := n.in(0), n.in(1)
	b := n.b
	kernel := n.ints("kernel_shape")
	k := len(kernel)
	if k < 1 || b.Rank(x) != k+2 {
		n.wrong("a window of %d dims for %s", k, b.Type(x))
	}
	strides, pads := n.intsOr("strides", k, 1), n.intsOr("pads", 2*k, 0)
	shape := slices.Clone(b.Shape(x))
	for i := range k {
		shape[2+i] = shape[2+i].AddConst(-1).MulConst(strides[i]).AddConst(kernel[i] - pads[i] - pads[k+i])
	}
	count := []ir.Dim{b.Type(x).Numel()}
	flat := b.Full(ir.TensorOf(b.DType(x), ir.Product(shape)), 0)
	at := b.Reshape(n.sameDims(indices, b.Shape(x)), append(slices.Clone(count), ir.Const(1)))
	a := &ir.ScatterAttrs{Combine: ir.Assign, InsertedWindowDims: []int{0}, ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1}
	y := b.Reshape(b.Scatter(flat, at, b.Reshape(x, count), a), shape)
	if n.has(2) {
		want := n.dims(2, "the output's shape")
		if len(want) != len(shape) {
			n.wrong("an output shape of %d dims for %s", len(want), b.Type(x))
		}
		high := make([]ir.Dim, len(shape))
		for i := range high {
			high[i] = want[i].Sub(shape[i])
		}
		y = b.Pad(y, b.Scalar(b.DType(x), 0), make([]ir.Dim, len(shape)), high, nil)
	}
	n.set(y)
}

// causalConvWithState is a depthwise convolution over time with the last elements of the
// previous call in front.
func causalConvWithState(n *node) {
	x, w := n.in(0), n.in(1)
	b := n.b
	n.rankIs(x, 3)
	n.rankIs(w, 3)
	width, ok := b.Shape(w)[2].IsConst()
	channels, ok2 := b.Shape(x)[1].IsConst()
	if !ok || !ok2 || width < 1 || channels < 1 {
		n.dataDependent("weights %s for %s", b.Type(w), b.Type(x))
	}
	s := b.Shape(x)
	past := b.Full(ir.TensorOf(b.DType(x), s[0], s[1], ir.Const(width-1)), 0)
	if n.has(3) {
		past = n.sameDims(n.in(3), b.Shape(past))
	}
	padded := b.Concatenate(2, past, x)
	zero := []ir.Dim{ir.Const(0)}
	y := n.convolutionWithBias(padded, w, n.opt(2),
		&ir.ConvolutionAttrs{Strides: []int64{1}, Low: zero, High: zero, LhsDilation: []int64{1}, RhsDilation: []int64{1}, Groups: channels})
	if n.choice("activation", "none", "none", "silu", "swish") != "none" {
		y = lower.Silu(b, y)
	}
	length := b.Shape(padded)[2]
	n.set(y, b.SliceAxis(padded, 2, length.AddConst(1-width), length, 1))
}

// linearAttention carries a state [B, H, K, V] over time; see ONNX's definition.
func linearAttention(n *node) {
	b := n.b
	rule := n.choice("update_rule", "gated_delta", "linear", "gated", "delta", "gated_delta")
	heads, groups := n.int("q_num_heads", 0), n.int("kv_num_heads", 0)
	wide := func(v ir.Value, count int64) ir.Value { return b.Convert(n.heads(v, count), ir.F32) }
	q, k, v := wide(n.in(0), heads), wide(n.in(1), groups), wide(n.in(2), groups)
	if groups < 1 || heads%groups != 0 {
		n.wrong("%d query heads, %d key heads", heads, groups)
	}
	qs, vs := b.Shape(q), b.Shape(v)
	state := b.Full(ir.TensorOf(ir.F32, qs[0], ir.Const(groups), qs[3], vs[3]), 0)
	stateType := b.DType(n.in(0))
	if n.has(3) {
		stateType = b.DType(n.in(3))
		state = n.sameDims(b.Convert(n.in(3), ir.F32), b.Shape(state))
	}
	scale := n.float("scale", 0)
	if scale == 0 {
		size, ok := qs[3].IsConst()
		if !ok || size < 1 {
			n.dataDependent("the head size is %s", qs[3])
		}
		scale = 1 / math.Sqrt(float64(size))
	}
	decay, beta := ir.NoValue, ir.NoValue
	if rule == "gated" || rule == "gated_delta" {
		decay = b.Unary(ir.OpExponential, wide(n.in(4), groups))
	}
	if rule == "delta" || rule == "gated_delta" {
		n.rankIs(n.in(5), 3)
		count, ok := b.Shape(n.in(5))[2].IsConst()
		if !ok {
			n.dataDependent("beta is %s", b.Type(n.in(5)))
		}
		beta = wide(n.in(5), count)
	}
	body := func(b *ir.Builder, i ir.Value, carried []ir.Value) ([]ir.Value, ir.Value, []ir.Value) {
		state := carried[0]
		at := func(x ir.Value) ir.Value { return n.element(b, x, 2, i) } // [B, H, D]
		kt, vt := at(k), at(v)
		spread := func(x ir.Value, shape []ir.Dim) ir.Value { // [B, H, D or 1] over the last dim
			x = b.Reshape(x, append(slices.Clone(b.Shape(x)), ir.Const(1)))
			return b.BroadcastTo(x, shape)
		}
		if decay != ir.NoValue {
			state = b.Binary(ir.OpMultiply, state, spread(at(decay), b.Shape(state)))
		}
		if beta != ir.NoValue {
			seen := b.DotGeneral(kt, state, &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1}, LhsContract: []int{2}, RhsContract: []int{2}})
			vt = b.Binary(ir.OpMultiply, b.BroadcastTo(at(beta), b.Shape(vt)), b.Binary(ir.OpSubtract, vt, seen))
		}
		outer := b.Binary(ir.OpMultiply, b.Broadcast(kt, b.Shape(state), []int{0, 1, 2}), b.Broadcast(vt, b.Shape(state), []int{0, 1, 3}))
		state = b.Binary(ir.OpAdd, state, outer)
		s := b.Shape(state)
		qt := b.Reshape(at(q), []ir.Dim{s[0], s[1], ir.Const(heads / groups), s[2]})
		y := b.DotGeneral(qt, state, &ir.DotAttrs{LhsBatch: []int{0, 1}, RhsBatch: []int{0, 1}, LhsContract: []int{3}, RhsContract: []int{2}})
		y = b.Reshape(lower.Scale(b, y, scale), []ir.Dim{s[0], ir.Const(heads), s[3]})
		return []ir.Value{state}, ir.NoValue, []ir.Value{y}
	}
	final, rows := n.run(loop{trip: qs[2], isKnown: true, tripValue: ir.NoValue, goOn: ir.NoValue, carried: []ir.Value{state}, body: body})
	y := n.joinHeads(b.Transpose(rows[0], []int{1, 2, 0, 3}))
	n.set(b.Convert(y, b.DType(n.in(0))), b.Convert(final[0], stateType))
}
