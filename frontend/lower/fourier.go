package lower

import (
	"math"

	"weft/ir"
)

// Scaling says by what a Fourier transform of N elements is divided.
type Scaling uint8

// The scalings: by nothing, by a root, by N.
const (
	Unscaled Scaling = iota
	ByRoot           // sqrt(N)
	ByLength         // N
)

// Transform is a discrete Fourier transform along one axis.
type Transform struct {
	Length            ir.Dim // of the full transform; elements beyond it are left out, missing ones are 0
	Axis              int
	Inverse, Onesided bool // onesided: Length/2+1 frequencies stand for all, of a real signal
	Scaling           Scaling
}

// Fourier multiplies with matrices of cosines and sines. Complex values are pairs of their real
// and imaginary parts; ir.NoValue is an imaginary part of zeros, or one that is not asked for:
// the inverse of a onesided transform is real.
func Fourier(b *ir.Builder, real, imaginary ir.Value, t Transform) (outReal, outImaginary ir.Value) {
	half := t.Length.FloorDiv(ir.Const(2)).AddConst(1)
	used, out := t.Length, t.Length
	switch {
	case t.Onesided && t.Inverse:
		used = half
	case t.Onesided:
		out = half
	}
	used = MinDim(b.Program, used, b.Shape(real)[t.Axis])
	cosine, sine := rotations(b, used, out, t, b.DType(real))
	times := func(v, m ir.Value) ir.Value {
		v = b.SliceAxis(v, t.Axis, ir.Const(0), used, 1)
		return MoveLast(b, b.DotGeneral(v, m, &ir.DotAttrs{LhsContract: []int{t.Axis}, RhsContract: []int{0}}), t.Axis)
	}
	outReal, outImaginary = times(real, cosine), ir.NoValue
	if imaginary != ir.NoValue {
		outReal = b.Binary(ir.OpSubtract, outReal, times(imaginary, sine))
	}
	if t.Inverse && t.Onesided {
		return outReal, ir.NoValue
	}
	outImaginary = times(real, sine)
	if imaginary != ir.NoValue {
		outImaginary = b.Binary(ir.OpAdd, outImaginary, times(imaginary, cosine))
	}
	return outReal, outImaginary
}

// rotations makes cos and sin of -2 pi k m/N (of +2 pi k m/N for the inverse), scaled, [m, k].
// The product is taken modulo N, so that angles are exact.
func rotations(b *ir.Builder, rows, columns ir.Dim, t Transform, to ir.DType) (cosine, sine ir.Value) {
	dims := []ir.Dim{rows, columns}
	m, k := b.Iota(ir.I64, dims, 0), b.Iota(ir.I64, dims, 1)
	length := b.Broadcast(b.Dim(t.Length), dims, nil)
	turns := b.Convert(b.Binary(ir.OpRemainder, b.Binary(ir.OpMultiply, m, k), length), ir.F64)
	total := b.Convert(length, ir.F64)
	sign := -2 * math.Pi
	if t.Inverse {
		sign = 2 * math.Pi
	}
	angle := b.Binary(ir.OpDivide, Scale(b, turns, sign), total)
	cosine, sine = b.Unary(ir.OpCosine, angle), b.Unary(ir.OpSine, angle)
	weight := b.FullLike(total, 1)
	switch t.Scaling {
	case ByRoot:
		weight = b.Binary(ir.OpDivide, weight, b.Unary(ir.OpSqrt, total))
	case ByLength:
		weight = b.Binary(ir.OpDivide, weight, total)
	}
	if t.Inverse && t.Onesided {
		// Each frequency but the first, and the middle of an even length, stands for two.
		twice := b.Binary(ir.OpAnd, CompareScalar(b, ir.GT, m, 0), b.Compare(ir.NE, Scale(b, m, 2), length))
		weight = b.Select(twice, Scale(b, weight, 2), weight)
	}
	if t.Scaling != Unscaled || t.Inverse && t.Onesided {
		cosine, sine = b.Binary(ir.OpMultiply, cosine, weight), b.Binary(ir.OpMultiply, sine, weight)
	}
	return b.Convert(cosine, to), b.Convert(sine, to)
}
