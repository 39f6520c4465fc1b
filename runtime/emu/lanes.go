package emu

import "math"

// warpSize is the number of lanes of a warp.
const warpSize = 32

// lanes32 and lanes64 are one virtual register for all lanes of a warp. Registers of 16 bits
// live in the low half of 32 and keep the high half zero.
type (
	lanes32 = [warpSize]uint32
	lanes64 = [warpSize]uint64
)

// Lane operations compute all 32 lanes; they are total functions, so that lanes which are not
// active may hold anything. Operands may alias the result. The executor merges under the mask.
type (
	lane32 func(d, a, b, c *lanes32)
	lane64 func(d, a, b, c *lanes64)
	// laneWide computes 64 bits from 32: mul.wide, mad.wide, widening conversions.
	laneWide func(d *lanes64, a, b *lanes32, c *lanes64)
	// laneNarrow computes 32 bits from 64: narrowing conversions, popc.b64.
	laneNarrow func(d *lanes32, a *lanes64)
	// laneShift shifts 64 bits by a 32-bit count.
	laneShift func(d, a *lanes64, b *lanes32)
	compare32 func(a, b *lanes32) uint32
	compare64 func(a, b *lanes64) uint32
)

// integer is any integer type of a PTX instruction.
type integer interface {
	int16 | uint16 | int32 | uint32 | int64 | uint64
}

// narrowInteger is an integer that lives in a 32-bit lane.
type narrowInteger interface {
	int16 | uint16 | int32 | uint32
}

// widthMask has the low bits of T set.
func widthMask[T integer]() uint64 {
	var minusOne T
	minusOne--
	switch any(minusOne).(type) {
	case int16, uint16:
		return 0xffff
	case int32, uint32:
		return 0xffffffff
	}
	return math.MaxUint64
}

// lift32 makes a lane operation of a scalar one.
func lift32[T narrowInteger](f func(a, b, c T) T) lane32 {
	mask := uint32(widthMask[T]())
	return func(d, a, b, c *lanes32) {
		for i := range d {
			d[i] = uint32(f(T(a[i]), T(b[i]), T(c[i]))) & mask
		}
	}
}

func lift64[T int64 | uint64](f func(a, b, c T) T) lane64 {
	return func(d, a, b, c *lanes64) {
		for i := range d {
			d[i] = uint64(f(T(a[i]), T(b[i]), T(c[i])))
		}
	}
}

// bits32 and bits64 lift functions on raw bits.
func bits32(f func(a, b, c uint32) uint32) lane32 { return lift32(f) }

func bits64(f func(a, b, c uint64) uint64) lane64 { return lift64(f) }

// liftFloat32 lifts a float32 function; results that are NaN become canonical.
func liftFloat32(f func(a, b, c float32) float32) lane32 {
	return func(d, a, b, c *lanes32) {
		for i := range d {
			d[i] = canonical32(f(math.Float32frombits(a[i]), math.Float32frombits(b[i]), math.Float32frombits(c[i])))
		}
	}
}

// blend32 writes the lanes of the mask.
func blend32(d, from *lanes32, mask uint32) {
	for i := range d {
		if mask&(1<<i) != 0 {
			d[i] = from[i]
		}
	}
}

func blend64(d, from *lanes64, mask uint32) {
	for i := range d {
		if mask&(1<<i) != 0 {
			d[i] = from[i]
		}
	}
}

func fill32(d *lanes32, v uint32) {
	for i := range d {
		d[i] = v
	}
}

func fill64(d *lanes64, v uint64) {
	for i := range d {
		d[i] = v
	}
}
