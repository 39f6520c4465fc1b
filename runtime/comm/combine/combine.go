// Package combine has the arithmetic of reductions over ranks, at the speed of memory. It is beside
// package comm because assembly and cgo cannot be in one.
package combine

import (
	"math"
	"slices"
	"sync"
	"unsafe"

	"weft/ir"
)

// Ranks combines the elements of sources, one of each rank, in their order: floats in at least float32, rounded
// once. All have the length of dst and are aligned to their elements. dst may be one of the sources.
func Ranks(dst []byte, sources [][]byte, dtype ir.DType, combine ir.Combine) {
	if len(dst) == 0 {
		return
	}
	if slices.ContainsFunc(sources, func(s []byte) bool { return &s[0] == &dst[0] }) {
		through(dst, sources, dtype, combine)
		return
	}
	switch dtype {
	case ir.F32:
		fold(dst, sources, combine, combiner.f32)
	case ir.F64:
		fold(dst, sources, combine, floats[float64]())
	case ir.BF16:
		foldNarrow(dst, sources, combine, combiner.bf16())
	case ir.F16:
		foldNarrow(dst, sources, combine, combiner.f16())
	case ir.C32:
		foldComplexHalves(dst, sources, combine)
	case ir.C64:
		fold(dst, sources, combine, complexes[complex64]())
	case ir.C128:
		fold(dst, sources, combine, complexes[complex128]())
	case ir.I8:
		fold(dst, sources, combine, integers[int8]())
	case ir.I16:
		fold(dst, sources, combine, integers[int16]())
	case ir.I32:
		fold(dst, sources, combine, integers[int32]())
	case ir.I64:
		fold(dst, sources, combine, integers[int64]())
	case ir.U8, ir.Bool:
		fold(dst, sources, combine, integers[uint8]())
	case ir.U16:
		fold(dst, sources, combine, integers[uint16]())
	case ir.U32:
		fold(dst, sources, combine, integers[uint32]())
	case ir.U64:
		fold(dst, sources, combine, integers[uint64]())
	default:
		foldTensors(dst, sources, dtype, combine)
	}
}

// through combines a part after the other elsewhere, so that no source is written over before it is read.
func through(dst []byte, sources [][]byte, dtype ir.DType, combine ir.Combine) {
	size := block * dtype.Size()
	acc, parts := make([]byte, min(size, len(dst))), make([][]byte, len(sources))
	for at := 0; at < len(dst); at += size {
		end := min(at+size, len(dst))
		for i, s := range sources {
			parts[i] = s[at:end]
		}
		Ranks(acc[:end-at], parts, dtype, combine)
		copy(dst[at:end], acc)
	}
}

// view is bytes as elements. Go has no misaligned loads to fear here: memory of devices and
// slices of it at whole elements are aligned.
func view[T any](b []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// combiner combines with what the processor has.
var combiner = newCombiner(vectors())

type kernels struct {
	f32       folder[float32]
	bf16, f16 func() narrow
}

func newCombiner(t twins) kernels {
	f := floats[float32]()
	f.add2, f.add = t.addTwoF32, t.addF32
	return kernels{f, func() narrow { return bf16.faster(t.halves[0]) }, sync.OnceValue(func() narrow { return f16().faster(t.halves[1]) })}
}

// block is how many elements are combined at a time, so that partial results stay in the first
// level of the cache.
const block = 2048

// folder has what combines elements of a type: into acc, element by element.
type folder[T any] struct {
	add2     func(acc, a, b []T) // acc = a + b
	add      func(acc, a []T)    // acc += a
	combines [ir.Assign]func(a, b T) T
}

// fold combines sources block by block.
func fold[T any](dst []byte, sources [][]byte, combine ir.Combine, f folder[T]) {
	out := view[T](dst)
	in := make([][]T, len(sources))
	for i, s := range sources {
		in[i] = view[T](s)[:len(out)]
	}
	if len(in) == 1 {
		copy(out, in[0])
		return
	}
	op := f.combines[combine]
	for at := 0; at < len(out); at += block {
		end := min(at+block, len(out))
		acc := out[at:end]
		if combine == ir.Sum {
			f.add2(acc, in[0][at:end], in[1][at:end])
		} else {
			copy(acc, in[0][at:end])
			each(acc, in[1][at:end], op)
		}
		for _, s := range in[2:] {
			if combine == ir.Sum {
				f.add(acc, s[at:end])
			} else {
				each(acc, s[at:end], op)
			}
		}
	}
}

func each[T any](acc, a []T, op func(a, b T) T) {
	for i, v := range a[:len(acc)] {
		acc[i] = op(acc[i], v)
	}
}

type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64 | ~complex128
}

func addTwo[T number](acc, a, b []T) {
	a, b = a[:len(acc)], b[:len(acc)]
	for i := range acc {
		acc[i] = a[i] + b[i]
	}
}

func addOne[T number](acc, a []T) {
	a = a[:len(acc)]
	for i := range acc {
		acc[i] += a[i]
	}
}

func floats[T float32 | float64]() folder[T] {
	return folder[T]{addTwo[T], addOne[T], [ir.Assign]func(a, b T) T{
		ir.Mul: func(a, b T) T { return a * b },
		ir.Max: func(a, b T) T { return max(a, b) },
		ir.Min: func(a, b T) T { return min(a, b) },
	}}
}

func complexes[T complex64 | complex128]() folder[T] {
	return folder[T]{addTwo[T], addOne[T], [ir.Assign]func(a, b T) T{
		ir.Mul: func(a, b T) T { return a * b },
	}}
}

func integers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64]() folder[T] {
	return folder[T]{addTwo[T], addOne[T], [ir.Assign]func(a, b T) T{
		ir.Mul: func(a, b T) T { return a * b },
		ir.Max: func(a, b T) T { return max(a, b) },
		ir.Min: func(a, b T) T { return min(a, b) },
		ir.And: func(a, b T) T { return a & b },
		ir.Or:  func(a, b T) T { return a | b },
		ir.Xor: func(a, b T) T { return a ^ b },
	}}
}

// narrow is a float type of 16 bits, which combines in float32.
type narrow struct {
	widen func(out []float32, in []uint16)
	round func(out []uint16, in []float32)
	add   func(acc []float32, in []uint16) // acc += in
}

// bf16 is the upper half of a float32, rounded to nearest, ties to even.
var bf16 = narrow{
	widen: func(out []float32, in []uint16) {
		in = in[:len(out)]
		for i := range out {
			out[i] = math.Float32frombits(uint32(in[i]) << 16)
		}
	},
	round: func(out []uint16, in []float32) {
		in = in[:len(out)]
		for i := range out {
			bits := math.Float32bits(in[i])
			r := uint16((bits + 0x7fff + bits>>16&1) >> 16)
			if bits&0x7fffffff > 0x7f800000 {
				r = 0x7fc0
			}
			out[i] = r
		}
	},
	add: func(acc []float32, in []uint16) {
		in = in[:len(acc)]
		for i := range acc {
			acc[i] += math.Float32frombits(uint32(in[i]) << 16)
		}
	},
}

// f16 reads halves through a table of all of them.
func f16() narrow {
	table := halves()
	return narrow{
		widen: func(out []float32, in []uint16) {
			in = in[:len(out)]
			for i := range out {
				out[i] = table[in[i]]
			}
		},
		round: func(out []uint16, in []float32) {
			for i, v := range in[:len(out)] {
				out[i] = roundHalf(v)
			}
		},
		add: func(acc []float32, in []uint16) {
			in = in[:len(acc)]
			for i := range acc {
				acc[i] += table[in[i]]
			}
		},
	}
}

var halves = sync.OnceValue(func() *[1 << 16]float32 {
	table := &[1 << 16]float32{}
	one := ir.NewTensor(ir.F16, 1)
	for i := range table {
		one.Data[0], one.Data[1] = byte(i), byte(i>>8)
		table[i] = float32(one.Float(0))
		if i&0x7fff > 0x7c00 { // NaN: quiet, with the bits that it has
			table[i] = math.Float32frombits(uint32(i>>15)<<31 | 0x7fc00000 | uint32(i&0x3ff)<<13)
		}
	}
	return table
})

// roundHalf rounds to nearest, ties to even.
func roundHalf(v float32) uint16 {
	bits := math.Float32bits(v)
	sign := uint16(bits >> 16 & 0x8000)
	bits &= 0x7fffffff
	switch {
	case bits > 0x7f800000:
		return sign | 0x7e00 | uint16(bits>>13&0x1ff)
	case bits >= 0x477ff000: // 65520 and more
		return sign | 0x7c00
	case bits < 0x38800000: // below the smallest normal half: units of 2^-24, which adding 2^-1 rounds to
		return sign | uint16(math.Float32bits(math.Float32frombits(bits)+0.5)-0x3f000000)
	}
	return sign | uint16((bits+0xfff+bits>>13&1)>>13-(112<<10))
}

// foldNarrow combines 16-bit floats in float32 and rounds once.
func foldNarrow(dst []byte, sources [][]byte, combine ir.Combine, n narrow) {
	out := view[uint16](dst)
	if len(sources) == 1 {
		copy(dst, sources[0])
		return
	}
	op := floats[float32]().combines[combine]
	var acc, next [block]float32
	for at := 0; at < len(out); at += block {
		end := min(at+block, len(out))
		a, b := acc[:end-at], next[:end-at]
		n.widen(a, view[uint16](sources[0])[at:end])
		for _, s := range sources[1:] {
			if combine == ir.Sum {
				n.add(a, view[uint16](s)[at:end])
				continue
			}
			n.widen(b, view[uint16](s)[at:end])
			each(a, b, op)
		}
		n.round(out[at:end], a)
	}
}

// foldTensors combines 8-bit floats, which are seldom reduced.
func foldTensors(dst []byte, sources [][]byte, dtype ir.DType, combine ir.Combine) {
	n := int64(len(dst) / dtype.Size())
	out := &ir.Tensor{DType: dtype, Shape: []int64{n}, Data: dst}
	in := make([]*ir.Tensor, len(sources))
	for i, s := range sources {
		in[i] = &ir.Tensor{DType: dtype, Shape: []int64{n}, Data: s}
	}
	op := floats[float64]().combines[combine]
	if combine == ir.Sum {
		op = func(a, b float64) float64 { return a + b }
	}
	for i := range n {
		acc := in[0].Float(i)
		for _, t := range in[1:] {
			acc = op(acc, t.Float(i))
		}
		out.SetFloat(i, acc)
	}
}

// foldComplexHalves combines pairs of halves: sums part by part, products as complex numbers.
func foldComplexHalves(dst []byte, sources [][]byte, combine ir.Combine) {
	if combine == ir.Sum {
		foldNarrow(dst, sources, combine, combiner.f16())
		return
	}
	table, out := halves(), view[uint16](dst)
	for i := 0; i < len(out); i += 2 {
		acc := complex64(1)
		for _, s := range sources {
			in := view[uint16](s)
			acc *= complex(table[in[i]], table[in[i+1]])
		}
		out[i], out[i+1] = roundHalf(real(acc)), roundHalf(imag(acc))
	}
}
