package eval

import (
	"encoding/binary"
	"math"
	"math/bits"
	"runtime"
	"sync"

	"weft/ir"
)

// blockSize is the number of elements that are decoded, computed and rounded together; a
// multiple of 8, so that blocks of elements under a byte share no byte.
const blockSize = 1024

// parallel runs f over [0, n) in ranges that start at multiples of grain, on several cores
// where there is enough to do.
func parallel(n, grain int64, f func(lo, hi int64)) {
	workers := int64(runtime.GOMAXPROCS(0))
	if n <= grain || workers == 1 {
		f(0, n)
		return
	}
	chunk := ((n+workers-1)/workers + grain - 1) / grain * grain
	var wg sync.WaitGroup
	for lo := int64(0); lo < n; lo += chunk {
		wg.Go(func() { f(lo, min(lo+chunk, n)) })
	}
	wg.Wait()
}

// inBlocks runs f over [0, n) in ranges of at most blockSize.
func inBlocks(n int64, f func(lo, hi int64)) {
	parallel(n, 16*blockSize, func(lo, hi int64) {
		for ; lo < hi; lo += blockSize {
			f(lo, min(lo+blockSize, hi))
		}
	})
}

// halfValues are the values of all f16 bit patterns.
var halfValues = sync.OnceValue(func() []float32 {
	vs := make([]float32, 1<<16)
	for i := range vs {
		vs[i] = float32(ir.DecodeFloat(ir.F16, uint64(i)))
	}
	return vs
})

// readFloats decodes elements from lo of a real, integer or bool tensor.
func readFloats(dst []float64, t *ir.Tensor, lo int64) {
	switch t.DType {
	case ir.F64:
		for i := range dst {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(t.Data[8*(lo+int64(i)):]))
		}
	case ir.F32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*(lo+int64(i)):])))
		}
	case ir.BF16:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*(lo+int64(i)):])) << 16))
		}
	case ir.F16:
		values := halfValues()
		for i := range dst {
			dst[i] = float64(values[binary.LittleEndian.Uint16(t.Data[2*(lo+int64(i)):])])
		}
	default:
		for i := range dst {
			dst[i] = t.Float(lo + int64(i))
		}
	}
}

// writeFloats rounds values into elements from lo, once.
func writeFloats(t *ir.Tensor, lo int64, src []float64) {
	switch t.DType {
	case ir.F64:
		for i, v := range src {
			binary.LittleEndian.PutUint64(t.Data[8*(lo+int64(i)):], math.Float64bits(v))
		}
	case ir.F32:
		for i, v := range src {
			binary.LittleEndian.PutUint32(t.Data[4*(lo+int64(i)):], math.Float32bits(float32(v)))
		}
	default:
		for i, v := range src {
			t.SetFloat(lo+int64(i), v)
		}
	}
}

// readInts decodes elements from lo of an integer or bool tensor; uint64 values keep their bits.
func readInts(dst []int64, t *ir.Tensor, lo int64) {
	switch t.DType {
	case ir.I64, ir.U64:
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint64(t.Data[8*(lo+int64(i)):]))
		}
	case ir.I32:
		for i := range dst {
			dst[i] = int64(int32(binary.LittleEndian.Uint32(t.Data[4*(lo+int64(i)):])))
		}
	default:
		for i := range dst {
			dst[i] = t.Int(lo + int64(i))
		}
	}
}

// putInts writes the low bits of values into elements from lo.
func putInts(t *ir.Tensor, lo int64, src []int64) {
	for i, v := range src {
		t.SetInt(lo+int64(i), v)
	}
}

// readComplex decodes elements from lo of a tensor of numbers.
func readComplex(dst []complex128, t *ir.Tensor, lo int64) {
	if !t.DType.IsComplex() {
		for i := range dst {
			dst[i] = complex(t.Float(lo+int64(i)), 0)
		}
		return
	}
	parts := complexParts(t)
	for i := range dst {
		j := 2 * (lo + int64(i))
		dst[i] = complex(parts.Float(j), parts.Float(j+1))
	}
}

// writeComplex rounds both parts of values into elements from lo.
func writeComplex(t *ir.Tensor, lo int64, src []complex128) {
	parts := complexParts(t)
	for i, v := range src {
		j := 2 * (lo + int64(i))
		parts.SetFloat(j, real(v))
		parts.SetFloat(j+1, imag(v))
	}
}

// complexParts views a complex tensor as its real and imaginary parts in turn.
func complexParts(t *ir.Tensor) *ir.Tensor {
	part := map[ir.DType]ir.DType{ir.C32: ir.F16, ir.C64: ir.F32, ir.C128: ir.F64}[t.DType]
	return &ir.Tensor{DType: part, Shape: []int64{2 * t.Numel()}, Data: t.Data}
}

func allFloats(t *ir.Tensor) []float64 {
	vs := make([]float64, t.Numel())
	parallel(int64(len(vs)), 16*blockSize, func(lo, hi int64) { readFloats(vs[lo:hi], t, lo) })
	return vs
}

func allInts(t *ir.Tensor) []int64 {
	vs := make([]int64, t.Numel())
	readInts(vs, t, 0)
	return vs
}

func allComplex(t *ir.Tensor) []complex128 {
	vs := make([]complex128, t.Numel())
	readComplex(vs, t, 0)
	return vs
}

// indices reads integers as positions: those of uint64 past the range of int64 are the largest.
func indices(t *ir.Tensor) []int64 {
	vs := allInts(t)
	for i, v := range vs {
		if t.DType == ir.U64 && v < 0 {
			vs[i] = math.MaxInt64
		}
	}
	return vs
}

// writeInts sets each element of a tensor of numbers to an integer, rounded once.
func writeInts(t *ir.Tensor, value func(i int64) int64) {
	n := t.Numel()
	switch {
	case t.DType.IsComplex():
		parts := complexParts(t)
		for i := range n {
			setInt(parts, 2*i, value(i), false)
		}
	default:
		for i := range n {
			setInt(t, i, value(i), false)
		}
	}
}

// setInt sets element i to an integer (of 64 bits without sign where unsigned), rounded once.
func setInt(t *ir.Tensor, i, v int64, unsigned bool) {
	switch {
	case !t.DType.IsFloat():
		t.SetInt(i, v)
	case t.DType == ir.F64 && unsigned:
		t.SetFloat(i, float64(uint64(v)))
	case t.DType == ir.F64:
		t.SetFloat(i, float64(v))
	default:
		t.SetFloat(i, intToOdd(v, unsigned))
	}
}

// intToOdd converts an integer to a float64 that rounds to any narrower float type as the
// integer itself would: bits below the 53rd are kept as one sticky bit.
func intToOdd(v int64, unsigned bool) float64 {
	sign, m := 1.0, uint64(v)
	if v < 0 && !unsigned {
		sign, m = -1, -m
	}
	if drop := bits.Len64(m) - 53; drop > 0 {
		lost := m & (1<<drop - 1)
		m &^= 1<<drop - 1
		if lost != 0 {
			m |= 1 << drop
		}
	}
	return sign * float64(m)
}

// lines splits a shape at an axis: the product of the dims before it, its size, and the product
// of those after it, 1 rather than 0 so that indices can be divided by them.
func lines(shape []int64, axis int) (outer, n, inner int64) {
	outer, n, inner = 1, max(shape[axis], 1), 1
	for i, d := range shape {
		switch {
		case i < axis:
			outer *= d
		case i > axis:
			inner *= d
		}
	}
	return outer, n, max(inner, 1)
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// rowMajor gives the strides of a contiguous shape, in elements.
func rowMajor(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	n := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = n
		n *= shape[i]
	}
	return strides
}

// odometer visits all indices of a shape in row-major order with one running offset for each
// list of strides.
func odometer(shape []int64, visit func(offsets []int64), strides ...[]int64) {
	if product(shape) == 0 {
		return
	}
	index := make([]int64, len(shape))
	offsets := make([]int64, len(strides))
	for {
		visit(offsets)
		d := len(shape) - 1
		for ; d >= 0; d-- {
			index[d]++
			for k, s := range strides {
				offsets[k] += s[d]
			}
			if index[d] < shape[d] {
				break
			}
			for k, s := range strides {
				offsets[k] -= s[d] * shape[d]
			}
			index[d] = 0
		}
		if d < 0 {
			return
		}
	}
}
