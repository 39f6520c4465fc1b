package lower

import (
	"math"
	"slices"

	"weft/ir"
)

// Coordinates says how an output position maps to an input position when an axis is resized.
type Coordinates int

// The names are ONNX's; PyTorch uses HalfPixel, AlignCorners and (nearest) Asymmetric.
const (
	HalfPixel Coordinates = iota
	HalfPixelSymmetric
	PytorchHalfPixel
	AlignCorners
	Asymmetric
	TFHalfPixelForNN
	TFCropAndResize
)

// Method says how values between input positions are made.
type Method int

// The methods: the nearest position, a line through two, a cubic through four (in each dim).
const (
	NearestMethod Method = iota
	LinearMethod
	CubicMethod
)

// Rounding turns a position into an index, for NearestMethod.
type Rounding int

// The roundings: to the nearest index, halves down or up, down, up.
const (
	RoundPreferFloor Rounding = iota // halves go down
	RoundPreferCeil                  // halves go up
	RoundFloor
	RoundCeil
)

// Interpolation describes the resizing of one axis after another.
type Interpolation struct {
	Coordinates    Coordinates
	Method         Method
	Rounding       Rounding
	CubicA         float64 // the coefficient of cubic interpolation
	ExcludeOutside bool    // positions outside the input have weight 0, the others are rescaled
	Antialias      bool    // widen the filter when shrinking (linear and cubic)
	Extrapolation  float64 // TFCropAndResize: the value where the position is outside
}

// ResizedAxis is one axis to resize to size Out. Scale is the ratio of sizes that positions
// are computed with; 0 means Out divided by the axis's size. Start and End are the region of
// TFCropAndResize, in parts of the axis.
type ResizedAxis struct {
	Axis       int
	Out        ir.Dim
	Scale      float64
	Start, End float64
}

// Resize resizes the axes of x. Positions are computed in float64; narrow floats interpolate
// in float32.
func (in Interpolation) Resize(b *ir.Builder, x ir.Value, axes ...ResizedAxis) ir.Value {
	if in.Method == NearestMethod || !b.DType(x).IsFloat() {
		return in.each(b, x, axes)
	}
	return unary(b, x, func(x ir.Value) ir.Value { return in.each(b, x, axes) })
}

func (in Interpolation) each(b *ir.Builder, x ir.Value, axes []ResizedAxis) ir.Value {
	outside := ir.NoValue
	for _, a := range axes {
		position := in.positions(b, b.Shape(x)[a.Axis], a)
		if in.Coordinates == TFCropAndResize {
			outside = in.markOutside(b, outside, position, b.Shape(x)[a.Axis], a.Axis, b.Rank(x))
		}
		switch {
		case in.Method == NearestMethod:
			x = in.nearest(b, x, a.Axis, position)
		case in.Antialias:
			x = in.filter(b, x, a, position)
		default:
			x = in.taps(b, x, a.Axis, position)
		}
	}
	if outside == ir.NoValue {
		return x
	}
	return b.Select(b.BroadcastTo(outside, b.Shape(x)), b.FullLike(x, in.Extrapolation), x)
}

// markOutside adds the positions of one axis that are outside its input to a mask.
func (in Interpolation) markOutside(b *ir.Builder, mask, position ir.Value, size ir.Dim, axis, rank int) ir.Value {
	last := b.Broadcast(b.Convert(b.Dim(size.AddConst(-1)), ir.F64), b.Shape(position), nil)
	out := b.Binary(ir.OpOr, CompareScalar(b, ir.LT, position, 0), b.Compare(ir.GT, position, last))
	dims := ir.Consts(slices.Repeat([]int64{1}, rank)...)
	dims[axis] = b.Shape(position)[0]
	out = b.Reshape(out, dims)
	if mask == ir.NoValue {
		return out
	}
	return Binary(b, ir.OpOr, mask, out)
}

// positions gives the input position of each output element along an axis, f64[Out].
func (in Interpolation) positions(b *ir.Builder, size ir.Dim, a ResizedAxis) ir.Value {
	i := b.Iota(ir.F64, []ir.Dim{a.Out}, 0)
	number := func(d ir.Dim) ir.Value { return b.Broadcast(b.Convert(b.Dim(d), ir.F64), b.Shape(i), nil) }
	n, out := number(size), number(a.Out)
	length, scale := out, b.Binary(ir.OpDivide, out, n) // the exact output length, and its ratio
	if a.Scale != 0 {
		scale = b.FullLike(i, a.Scale)
		length = b.Binary(ir.OpMultiply, n, scale)
	}
	half := func() ir.Value { return b.Binary(ir.OpDivide, AddScalar(b, i, 0.5), scale) }
	// whereOne takes v where the output has one element.
	whereOne := func(v, other ir.Value) ir.Value {
		if c, ok := a.Out.IsConst(); ok && a.Scale == 0 {
			if c == 1 {
				return v
			}
			return other
		}
		return b.Select(CompareScalar(b, ir.EQ, length, 1), v, other)
	}
	switch in.Coordinates {
	case PytorchHalfPixel:
		return whereOne(b.FullLike(i, 0), AddScalar(b, half(), -0.5))
	case AlignCorners:
		steps := b.Binary(ir.OpMultiply, i, AddScalar(b, n, -1))
		return whereOne(b.FullLike(i, 0), b.Binary(ir.OpDivide, steps, AddScalar(b, length, -1)))
	case Asymmetric:
		return b.Binary(ir.OpDivide, i, scale)
	case TFHalfPixelForNN:
		return half()
	case TFCropAndResize:
		last := AddScalar(b, n, -1)
		steps := b.Binary(ir.OpDivide, b.Binary(ir.OpMultiply, Scale(b, i, a.End-a.Start), last), AddScalar(b, length, -1))
		return whereOne(Scale(b, last, (a.Start+a.End)/2), b.Binary(ir.OpAdd, Scale(b, last, a.Start), steps))
	case HalfPixelSymmetric:
		adjustment := b.Binary(ir.OpDivide, out, length)
		offset := b.Binary(ir.OpMultiply, Scale(b, n, 0.5), b.Binary(ir.OpSubtract, b.FullLike(i, 1), adjustment))
		return b.Binary(ir.OpAdd, offset, AddScalar(b, half(), -0.5))
	}
	return AddScalar(b, half(), -0.5)
}

func (in Interpolation) nearest(b *ir.Builder, x ir.Value, axis int, position ir.Value) ir.Value {
	var index ir.Value
	switch in.Rounding {
	case RoundPreferFloor:
		index = b.Unary(ir.OpCeil, AddScalar(b, position, -0.5))
	case RoundPreferCeil:
		index = b.Unary(ir.OpFloor, AddScalar(b, position, 0.5))
	case RoundFloor:
		index = b.Unary(ir.OpFloor, position)
	case RoundCeil:
		index = b.Unary(ir.OpCeil, position)
	}
	return b.Take(x, clampIndex(b, index, b.Shape(x)[axis]), axis)
}

// clampIndex makes integer indices of integral floats, limited to [0, size).
func clampIndex(b *ir.Builder, index ir.Value, size ir.Dim) ir.Value {
	index = b.Convert(index, ir.I64)
	last := b.Broadcast(b.Dim(size.AddConst(-1)), b.Shape(index), nil)
	return b.Op(ir.OpClamp, nil, nil, b.FullLike(index, 0), index, last)[0]
}

// taps sums the neighbours of each position, 2 for linear and 4 for cubic interpolation.
func (in Interpolation) taps(b *ir.Builder, x ir.Value, axis int, position ir.Value) ir.Value {
	size := b.Shape(x)[axis]
	base := b.Unary(ir.OpFloor, position)
	fraction := b.Binary(ir.OpSubtract, position, base)
	first, count := 0, 2
	if in.Method == CubicMethod {
		first, count = -1, 4
	}
	indices, weights := make([]ir.Value, count), make([]ir.Value, count)
	total := b.FullLike(position, 0)
	for t := range count {
		offset := float64(first + t)
		at := AddScalar(b, base, offset)
		distance := AddScalar(b, fraction, -offset)
		weights[t] = in.Kernel(b, distance)
		if in.ExcludeOutside {
			last := b.Broadcast(b.Convert(b.Dim(size.AddConst(-1)), ir.F64), b.Shape(at), nil)
			outside := b.Binary(ir.OpOr, CompareScalar(b, ir.LT, at, 0), b.Compare(ir.GT, at, last))
			weights[t] = b.Select(outside, b.FullLike(at, 0), weights[t])
		}
		total = b.Binary(ir.OpAdd, total, weights[t])
		indices[t] = clampIndex(b, at, size)
	}
	var sum ir.Value
	for t := range count {
		w := weights[t]
		if in.ExcludeOutside {
			w = b.Binary(ir.OpDivide, w, total)
		}
		part := b.Take(x, indices[t], axis)
		part = b.Binary(ir.OpMultiply, part, b.Broadcast(b.Convert(w, b.DType(x)), b.Shape(part), []int{axis}))
		if t == 0 {
			sum = part
		} else {
			sum = b.Binary(ir.OpAdd, sum, part)
		}
	}
	return sum
}

// Kernel is the weight of a neighbour at a distance.
func (in Interpolation) Kernel(b *ir.Builder, distance ir.Value) ir.Value {
	d := b.Unary(ir.OpAbs, distance)
	zero := b.FullLike(d, 0)
	if in.Method == LinearMethod {
		return b.Binary(ir.OpMaximum, b.Binary(ir.OpSubtract, b.FullLike(d, 1), d), zero)
	}
	polynomial := func(c3, c2, c1, c0 float64) ir.Value {
		y := AddScalar(b, Scale(b, d, c3), c2)
		y = AddScalar(b, b.Binary(ir.OpMultiply, y, d), c1)
		return AddScalar(b, b.Binary(ir.OpMultiply, y, d), c0)
	}
	a := in.CubicA
	near := polynomial(a+2, -(a + 3), 0, 1)
	far := polynomial(a, -5*a, 8*a, -4*a)
	return b.Select(CompareScalar(b, ir.LE, d, 1), near, b.Select(CompareScalar(b, ir.LT, d, 2), far, zero))
}

// filter multiplies an axis with a matrix of weights: when shrinking, the kernel is stretched
// by the ratio of sizes. Rows are scaled to sum to 1. Positions outside the input count as the
// element at the edge, unless ExcludeOutside.
func (in Interpolation) filter(b *ir.Builder, x ir.Value, a ResizedAxis, position ir.Value) ir.Value {
	size := b.Shape(x)[a.Axis]
	ratio := b.Scalar(ir.F64, a.Scale)
	if a.Scale == 0 {
		ratio = b.Binary(ir.OpDivide, b.Convert(b.Dim(a.Out), ir.F64), b.Convert(b.Dim(size), ir.F64))
	}
	reach := ir.Const(0) // columns on both sides that stand for positions outside
	if !in.ExcludeOutside {
		reach = in.reach(size, a)
	}
	dims := []ir.Dim{a.Out, size.Add(reach).Add(reach)}
	scale := b.Broadcast(b.Binary(ir.OpMinimum, ratio, b.Scalar(ir.F64, 1)), dims, nil)
	first := b.Broadcast(b.Convert(b.Dim(reach), ir.F64), dims, nil)
	j := b.Binary(ir.OpSubtract, b.Iota(ir.F64, dims, 1), first)
	distance := b.Binary(ir.OpMultiply, b.Binary(ir.OpSubtract, j, b.Broadcast(position, dims, []int{0})), scale)
	weights := in.Kernel(b, distance)
	total := b.Broadcast(b.Reduce(ir.Sum, weights, 1), dims, []int{0})
	weights = b.Binary(ir.OpDivide, weights, total)
	if !reach.Is(0) {
		weights = foldEdges(b, weights, size, reach)
	}
	y := b.DotGeneral(x, b.Convert(weights, b.DType(x)), &ir.DotAttrs{LhsContract: []int{a.Axis}, RhsContract: []int{1}})
	return MoveLast(b, y, a.Axis)
}

// reach is how far the stretched kernel reaches beyond an edge.
func (in Interpolation) reach(size ir.Dim, a ResizedAxis) ir.Dim {
	support := int64(1)
	if in.Method == CubicMethod {
		support = 2
	}
	if a.Scale != 0 {
		return ir.Const(ir.SaturateToInt(ir.I32, math.Ceil(float64(support)/math.Min(1, a.Scale))+1))
	}
	return size.MulConst(support).FloorDiv(a.Out).AddConst(support + 2)
}

// foldEdges adds the weights of positions outside to those of the edges.
func foldEdges(b *ir.Builder, weights ir.Value, size, reach ir.Dim) ir.Value {
	cut := func(from, to ir.Dim) ir.Value { return b.SliceAxis(weights, 1, from, to, 1) }
	if size.Is(1) {
		return b.ReduceKeep(ir.Sum, weights, 1)
	}
	left := b.ReduceKeep(ir.Sum, cut(ir.Const(0), reach.AddConst(1)), 1)
	right := b.ReduceKeep(ir.Sum, cut(reach.Add(size).AddConst(-1), b.Shape(weights)[1]), 1)
	return b.Concatenate(1, left, cut(reach.AddConst(1), reach.Add(size).AddConst(-1)), right)
}

// MoveLast moves the last dim to an axis.
func MoveLast(b *ir.Builder, x ir.Value, axis int) ir.Value {
	rank := b.Rank(x)
	permutation := make([]int, rank)
	for i := range permutation {
		switch {
		case i < axis:
			permutation[i] = i
		case i == axis:
			permutation[i] = rank - 1
		default:
			permutation[i] = i - 1
		}
	}
	return b.Transpose(x, permutation)
}
