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

func dft(n *node) {
	x := n.in(0)
	n.rankAtLeast(x, 2)
	t := lower.Transform{Axis: n.b.Rank(x) - 2, Inverse: n.flag("inverse", false), Onesided: n.flag("onesided", false)}
	if n.version < 20 {
		t.Axis = n.axis(n.int("axis", 1), n.b.Rank(x))
	} else if n.has(2) {
		t.Axis = n.axis(n.constInts(2, "the axis")[0], n.b.Rank(x))
	}
	if t.Axis == n.b.Rank(x)-1 {
		n.wrong("the axis is the last, which holds real and imaginary parts")
	}
	t.Length = n.b.Shape(x)[t.Axis]
	switch {
	case n.has(1):
		t.Length = n.dims(1, "the length")[0]
	case t.Inverse && t.Onesided:
		t.Length = t.Length.AddConst(-1).MulConst(2)
	}
	if t.Inverse {
		t.Scaling = lower.ByLength
	}
	n.set(n.fourier(x, t))
}

// fourier transforms [..., 1 or 2], with real and imaginary part last.
func (n *node) fourier(x ir.Value, t lower.Transform) ir.Value {
	b := n.b
	to := b.DType(x)
	if to != ir.F64 {
		x = b.Convert(x, ir.F32)
	}
	last := b.Rank(x) - 1
	part := func(i int64) ir.Value {
		return b.Reshape(b.SliceAxis(x, last, ir.Const(i), ir.Const(i+1), 1), b.Shape(x)[:last])
	}
	real, imaginary := part(0), ir.NoValue
	if b.Shape(x)[last].Is(2) {
		imaginary = part(1)
	}
	real, imaginary = lower.Fourier(b, real, imaginary, t)
	if imaginary == ir.NoValue {
		return b.Convert(b.Reshape(real, append(slices.Clone(b.Shape(real)), ir.Const(1))), to)
	}
	return b.Convert(lower.Stack(b, last, real, imaginary), to)
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
	n.set(n.fourier(cut, lower.Transform{Length: length, Axis: 2, Onesided: n.flag("onesided", true)}))
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
