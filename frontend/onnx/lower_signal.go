package onnx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

func signals() map[string][]version {
	return map[string][]version{
		"HannWindow": one(cosineWindow(0.5, 0.5, 0)), "HammingWindow": one(cosineWindow(25.0/46, 21.0/46, 0)),
		"BlackmanWindow": one(cosineWindow(0.42, 0.5, 0.08)), "MelWeightMatrix": one(melWeightMatrix),
		"DFT": one(dft), "STFT": one(stft),
	}
}

// cosineWindow is a0 - a1 cos(2 pi i/n) + a2 cos(4 pi i/n).
func cosineWindow(a0, a1, a2 float64) func(*node) {
	return func(n *node) {
		b := n.b
		size := n.dims(0, "the size")[0]
		i := b.Iota(ir.F64, []ir.Dim{size}, 0)
		period := size
		if !n.flag("periodic", true) {
			period = size.AddConst(-1)
		}
		angle := b.Binary(ir.OpDivide, lower.Scale(b, i, 2*math.Pi), b.Broadcast(b.Convert(b.Dim(period), ir.F64), b.Shape(i), nil))
		y := lower.AddScalar(b, lower.Scale(b, b.Unary(ir.OpCosine, angle), -a1), a0)
		if a2 != 0 {
			y = b.Binary(ir.OpAdd, y, lower.Scale(b, b.Unary(ir.OpCosine, lower.Scale(b, angle, 2)), a2))
		}
		n.set(b.Convert(y, n.dtypeAttr("output_datatype", ir.F32)))
	}
}

// transform is a discrete Fourier transform along one axis of [..., 1 or 2] (real and
// imaginary part last).
type transform struct {
	length            ir.Dim // of the full transform
	axis              int
	inverse, onesided bool
}

func dft(n *node) {
	x := n.in(0)
	n.rankAtLeast(x, 2)
	t := transform{axis: n.b.Rank(x) - 2, inverse: n.flag("inverse", false), onesided: n.flag("onesided", false)}
	if n.version < 20 {
		t.axis = n.axis(n.int("axis", 1), n.b.Rank(x))
	} else if n.has(2) {
		t.axis = n.axis(n.constInts(2, "the axis")[0], n.b.Rank(x))
	}
	if t.axis == n.b.Rank(x)-1 {
		n.wrong("the axis is the last, which holds real and imaginary parts")
	}
	t.length = n.b.Shape(x)[t.axis]
	switch {
	case n.has(1):
		t.length = n.dims(1, "the length")[0]
	case t.inverse && t.onesided:
		t.length = t.length.AddConst(-1).MulConst(2)
	}
	n.set(n.fourier(x, t))
}

// fourier multiplies with matrices of cosines and sines.
func (n *node) fourier(x ir.Value, t transform) ir.Value {
	b := n.b
	compute := ir.F32
	if b.DType(x) == ir.F64 {
		compute = ir.F64
	}
	to := b.DType(x)
	x = b.Convert(x, compute)
	half := t.length.FloorDiv(ir.Const(2)).AddConst(1)
	used, out := t.length, t.length
	switch {
	case t.onesided && t.inverse:
		used = half
	case t.onesided:
		out = half
	}
	used = lower.MinDim(n.program, used, b.Shape(x)[t.axis])
	x = b.SliceAxis(x, t.axis, ir.Const(0), used, 1)
	last := b.Rank(x) - 1
	parts := b.Shape(x)[last]
	part := func(i int64) ir.Value {
		return b.Reshape(b.SliceAxis(x, last, ir.Const(i), ir.Const(i+1), 1), b.Shape(x)[:last])
	}
	cosine, sine := n.rotations(used, out, t, compute)
	times := func(v, m ir.Value) ir.Value {
		y := b.DotGeneral(v, m, &ir.DotAttrs{LhsContract: []int{t.axis}, RhsContract: []int{0}})
		return lower.MoveLast(b, y, t.axis)
	}
	real := times(part(0), cosine)
	imaginary := times(part(0), sine)
	if parts.Is(2) {
		real = b.Binary(ir.OpSubtract, real, times(part(1), sine))
		imaginary = b.Binary(ir.OpAdd, imaginary, times(part(1), cosine))
	}
	if t.inverse && t.onesided {
		shape := append(slices.Clone(b.Shape(real)), ir.Const(1))
		return b.Convert(b.Reshape(real, shape), to)
	}
	return b.Convert(lower.Stack(b, last, real, imaginary), to)
}

// rotations makes cos and sin of -2 pi k m/N (of +2 pi k m/N, divided by N, for the inverse),
// [m, k]. The product is taken modulo N, so that angles are exact.
func (n *node) rotations(rows, columns ir.Dim, t transform, to ir.DType) (cosine, sine ir.Value) {
	b := n.b
	dims := []ir.Dim{rows, columns}
	m, k := b.Iota(ir.I64, dims, 0), b.Iota(ir.I64, dims, 1)
	length := b.Broadcast(b.Dim(t.length), dims, nil)
	turns := b.Convert(b.Binary(ir.OpRemainder, b.Binary(ir.OpMultiply, m, k), length), ir.F64)
	total := b.Convert(length, ir.F64)
	sign := -2 * math.Pi
	if t.inverse {
		sign = 2 * math.Pi
	}
	angle := b.Binary(ir.OpDivide, lower.Scale(b, turns, sign), total)
	cosine, sine = b.Unary(ir.OpCosine, angle), b.Unary(ir.OpSine, angle)
	if t.inverse {
		weight := b.Binary(ir.OpDivide, b.FullLike(total, 1), total)
		if t.onesided {
			// Each frequency but the first, and the middle of an even length, stands for two.
			twice := b.Binary(ir.OpAnd, lower.CompareScalar(b, ir.GT, m, 0), b.Compare(ir.NE, lower.Scale(b, m, 2), length))
			weight = b.Select(twice, lower.Scale(b, weight, 2), weight)
		}
		cosine, sine = b.Binary(ir.OpMultiply, cosine, weight), b.Binary(ir.OpMultiply, sine, weight)
	}
	return b.Convert(cosine, to), b.Convert(sine, to)
}

func stft(n *node) {
	x := n.in(0)
	b := n.b
	if b.Rank(x) == 2 {
		x = b.Reshape(x, append(slices.Clone(b.Shape(x)), ir.Const(1)))
	}
	n.rankIs(x, 3)
	step := n.constInts(1, "the frame step")[0]
	var length ir.Dim
	switch {
	case n.has(3):
		length = n.dims(3, "the frame length")[0]
	case n.has(2):
		n.rankIs(n.in(2), 1)
		length = b.Shape(n.in(2))[0]
	default:
		length = b.Shape(x)[1]
	}
	if step < 1 {
		n.wrong("frame step %d", step)
	}
	frames := b.Shape(x)[1].Sub(length).FloorDiv(ir.Const(step)).AddConst(1)
	dims := []ir.Dim{frames, length}
	at := b.Binary(ir.OpAdd, lower.Scale(b, b.Iota(ir.I64, dims, 0), float64(step)), b.Iota(ir.I64, dims, 1))
	cut := b.Take(x, at, 1) // [B, frames, length, 1 or 2]
	if n.has(2) {
		window := n.sameDims(n.in(2), []ir.Dim{length})
		cut = b.Binary(ir.OpMultiply, cut, b.Broadcast(window, b.Shape(cut), []int{2}))
	}
	n.set(n.fourier(cut, transform{length: length, axis: 2, onesided: n.flag("onesided", true)}))
}

// melWeightMatrix is a constant: all its inputs must be known.
func melWeightMatrix(n *node) {
	bands, length, rate := n.constInts(0, "num_mel_bins")[0], n.constInts(1, "dft_length")[0], n.constInts(2, "sample_rate")[0]
	low, high := n.constFloats(3, "lower_edge_hertz")[0], n.constFloats(4, "upper_edge_hertz")[0]
	rows := length/2 + 1
	if bands < 1 || bands > 1<<16 || length < 1 || length > 1<<20 || rate < 1 || rows*bands > 1<<24 {
		n.wrong("%d bands of %d bins at %d Hz", bands, rows, rate)
	}
	mel := func(hertz float64) float64 { return 2595 * math.Log1p(hertz/700) / math.Ln10 }
	step := (mel(high) - mel(low)) / float64(bands+2)
	bin := func(i int64) int64 {
		hertz := 700 * math.Expm1((float64(i)*step+mel(low))/2595*math.Ln10)
		return ir.SaturateToInt(ir.I32, math.Floor(float64(length+1)*hertz/float64(rate)))
	}
	out := ir.NewTensor(n.dtypeAttr("output_datatype", ir.F32), rows, bands)
	put := func(row, band int64, v float64) {
		if row >= 0 && row < rows {
			out.SetFloat(row*bands+band, v)
		}
	}
	for i := range bands {
		left, center, right := bin(i), bin(i+1), bin(i+2)
		if left == center {
			put(center, i, 1)
		}
		for j := max(left, 0); left < center && j <= min(center, rows); j++ {
			put(j, i, float64(j-left)/float64(center-left))
		}
		for j := max(center, 0); j < min(right, rows); j++ {
			put(j, i, float64(right-j)/float64(right-center))
		}
	}
	n.setStored(&storedTensor{name: n.p.outputs[0], tensor: out, kind: ir.Literal, literal: true})
}
