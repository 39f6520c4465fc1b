package emu

import (
	"math"

	"weft/codegen/ptx"
)

// conversion describes one cvt instruction.
type conversion struct {
	to, from ptx.Type
	mode     rounding
	integer  func(float64) float64 // rni, rzi, rmi, rpi: rounding to an integral value
	saturate bool
	flush    bool
	relu     bool
}

// integerRoundings are the modifiers that round to integral values.
var integerRoundings = map[string]func(float64) float64{
	"rni": math.RoundToEven, "rzi": math.Trunc, "rmi": math.Floor, "rpi": math.Ceil,
}

// floatRoundings are the modifiers that round to the destination's precision.
var floatRoundings = map[string]rounding{"rn": toNearest, "rz": toZero, "rm": toMinus, "rp": toPlus}

// scalar is the conversion of one value, given and returned as bits of its type. Integers
// narrower than the result's register are extended by the executor.
func (c conversion) scalar() func(uint64) uint64 {
	switch {
	case c.from.Float() && c.to.Float():
		return c.floatToFloat
	case c.from.Float():
		return c.floatToInteger
	case c.to.Float():
		return c.integerToFloat
	}
	return c.integerToInteger
}

func signExtend(v uint64, width int) uint64 { return uint64(int64(v<<(64-width)) >> (64 - width)) }

// extend widens an integer of the type to 64 bits.
func extend(v uint64, t ptx.Type) uint64 {
	if t.Signed() {
		return signExtend(v, t.Bits())
	}
	if t.Bits() < 64 {
		v &= 1<<t.Bits() - 1
	}
	return v
}

func (c conversion) integerToInteger(v uint64) uint64 {
	v = extend(v, c.from)
	if c.saturate {
		low, high := integerRange(c.to)
		switch {
		case c.from.Signed() && int64(v) < 0:
			if !c.to.Signed() {
				v = 0
			} else if int64(v) < int64(low) {
				v = low
			}
		case v > high:
			v = high
		}
	}
	return extend(v, c.to)
}

// integerRange is the smallest and largest value of the type, as 64-bit patterns.
func integerRange(t ptx.Type) (low, high uint64) {
	if t.Signed() {
		high = 1<<(t.Bits()-1) - 1
		return ^high, high
	}
	return 0, math.MaxUint64 >> (64 - t.Bits())
}

func (c conversion) widen(v uint64) float64 {
	switch c.from {
	case ptx.F16:
		return widenF16(uint32(v))
	case ptx.BF16:
		return widenBF16(uint32(v))
	case ptx.F32:
		if c.flush {
			return widenFlushed(uint32(v))
		}
		return widenF32(uint32(v))
	}
	return math.Float64frombits(v)
}

func formatOf(t ptx.Type) format {
	switch t {
	case ptx.F16:
		return formatF16
	case ptx.BF16:
		return formatBF16
	case ptx.F32:
		return formatF32
	}
	return formatF64
}

// floatToInteger clamps to the range of the result. NaN becomes zero, or the sign bit alone
// where a 64-bit type is involved.
func (c conversion) floatToInteger(v uint64) uint64 {
	f := c.widen(v)
	width := c.to.Bits()
	if f != f {
		if c.from == ptx.F64 || width == 64 {
			return extend(1<<(width-1), c.to)
		}
		return 0
	}
	f = c.integer(f)
	low, high := integerRange(c.to)
	if c.to.Signed() {
		limit := math.Ldexp(1, width-1)
		switch {
		case f >= limit:
			return extend(high, c.to)
		case f < -limit:
			return extend(low, c.to)
		}
		return uint64(int64(f))
	}
	switch {
	case f >= math.Ldexp(1, width):
		return high
	case f <= 0:
		return 0
	case f >= 1<<63:
		return uint64(f-(1<<63)) | 1<<63
	}
	return uint64(int64(f))
}

func (c conversion) integerToFloat(v uint64) uint64 {
	v = extend(v, c.from)
	negative := c.from.Signed() && int64(v) < 0
	if negative {
		v = -v
	}
	return c.finish(formatOf(c.to).encode(negative, v, 0, c.mode))
}

func (c conversion) floatToFloat(v uint64) uint64 {
	f := c.widen(v)
	if f != f && !c.saturate { // the conversions with float64 keep what fits of a NaN
		switch {
		case c.from == ptx.F64 && c.to == ptx.F64:
			return v | quietNaN
		case c.from == ptx.F64 && c.to == ptx.F32:
			return v>>32&(1<<31) | 0x7fc00000 | v>>29&0x3fffff
		case c.from == ptx.F32 && c.to == ptx.F64:
			return v&(1<<31)<<32 | 0x7ff8<<48 | v&0x3fffff<<29
		}
	}
	if c.integer != nil {
		f = c.integer(f)
	}
	return c.finish(formatOf(c.to).round(f, c.mode))
}

// finish applies .sat, .relu and .ftz to a result.
func (c conversion) finish(v uint64) uint64 {
	back := conversion{from: c.to}
	if c.saturate {
		switch f := back.widen(v); {
		case f >= 1:
			v = formatOf(c.to).encode(false, 1, 0, toNearest)
		case !(f > 0):
			v = 0
		}
	}
	if c.relu && back.widen(v) <= 0 {
		v = 0
	}
	if c.flush && c.to == ptx.F32 {
		v = uint64(flush32(uint32(v)))
	}
	return v
}

// hotPair has the packing conversions that models use.
var hotPair = map[ptx.Type]lane32{
	ptx.BF16: func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = roundBF16(a[i])<<16 | roundBF16(b[i])
		}
	},
	ptx.F16: func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = roundF16(a[i])<<16 | roundF16(b[i])
		}
	},
}

// convertPair is cvt.rn.f16x2.f32 and cvt.rn.bf16x2.f32: the first source goes to the high half.
func convertPair(c conversion) lane32 {
	if c.mode == toNearest && !c.saturate && !c.relu {
		return hotPair[c.to]
	}
	return bits32(func(a, b, _ uint32) uint32 {
		return uint32(c.floatToFloat(uint64(a)))<<16 | uint32(c.floatToFloat(uint64(b)))
	})
}

// convertTF32 is cvt.rna.tf32.f32: nearest, ties away, 10 fraction bits kept.
func convertTF32(v, _, _ uint32) uint32 {
	if v&0x7f800000 == 0x7f800000 {
		return v &^ 0x1fff
	}
	return (v + 0x1000) &^ 0x1fff
}

// hotWide has the conversions of address arithmetic.
var hotWide = map[string]laneWide{
	"s64.s32": func(d *lanes64, a, _ *lanes32, _ *lanes64) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i])))
		}
	},
	"u64.u32": func(d *lanes64, a, _ *lanes32, _ *lanes64) {
		for i := range d {
			d[i] = uint64(a[i])
		}
	},
	"f64.f32": func(d *lanes64, a, _ *lanes32, _ *lanes64) {
		for i := range d {
			f := math.Float32frombits(a[i])
			if f != f {
				d[i] = conversion{to: ptx.F64, from: ptx.F32}.floatToFloat(uint64(a[i]))
				continue
			}
			d[i] = math.Float64bits(float64(f))
		}
	},
}

func narrowLanes(d *lanes32, a *lanes64) {
	for i := range d {
		d[i] = uint32(a[i])
	}
}

func copyLanes32(d, a, _, _ *lanes32) { *d = *a }

func copyLanes64(d, a, _, _ *lanes64) { *d = *a }

// hotNarrow has conversions from 64 bits to 32.
var hotNarrow = map[string]laneNarrow{
	"u32.u64": narrowLanes,
	"s32.s64": narrowLanes,
	"rn.f32.f64": func(d *lanes32, a *lanes64) {
		for i := range d {
			f := math.Float64frombits(a[i])
			if f != f {
				d[i] = uint32(conversion{to: ptx.F32, from: ptx.F64}.floatToFloat(a[i]))
				continue
			}
			d[i] = math.Float32bits(float32(f))
		}
	},
}

// hotConvert32 are conversions between values of at most 32 bits that models use everywhere,
// by the modifiers of cvt.
var hotConvert32 = map[string]lane32{
	"f32.bf16": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = a[i] << 16
		}
	},
	"f32.f16": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = float16To32(a[i])
		}
	},
	"rn.bf16.f32": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = roundBF16(a[i])
		}
	},
	"rn.f16.f32": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = roundF16(a[i])
		}
	},
	"rn.f32.s32": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = math.Float32bits(float32(int32(a[i])))
		}
	},
	"rn.f32.u32": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = math.Float32bits(float32(a[i]))
		}
	},
	"rzi.s32.f32": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = truncateS32(math.Float32frombits(a[i]))
		}
	},
	"rni.f32.f32": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = canonical32(float32(math.RoundToEven(float64(math.Float32frombits(a[i])))))
		}
	},
	"rzi.f32.f32": integral32(math.Trunc),
	"rmi.f32.f32": integral32(math.Floor),
	"rpi.f32.f32": integral32(math.Ceil),
}

// float16To32 widens exactly; NaN becomes canonical.
func float16To32(v uint32) uint32 {
	sign, exponent, fraction := v&0x8000<<16, v>>10&0x1f, v&0x3ff
	switch exponent {
	case 0: // a multiple of 2^-24
		return sign | math.Float32bits(float32(fraction)*(1.0/(1<<24)))
	case 31:
		if fraction != 0 {
			return nan32
		}
		return sign | 0x7f800000
	}
	return sign | (exponent+112)<<23 | fraction<<13
}

// roundBF16 rounds the bits of a float32 to bfloat16, to nearest even.
func roundBF16(v uint32) uint32 {
	if v<<1 > 0xff<<24 {
		return nan16
	}
	return (v + 0x7fff + v>>16&1) >> 16
}

// roundF16 rounds the bits of a float32 to float16, to nearest even.
func roundF16(v uint32) uint32 {
	sign, size := v>>16&0x8000, v&0x7fffffff
	switch {
	case size > 0x7f800000:
		return nan16
	case size >= 0x47800000: // 65536 and more
		return sign | 0x7c00
	case size >= 0x38800000: // a normal float16; the carry may reach infinity
		size -= 112 << 23
		return sign | (size+0xfff+size>>13&1)>>13
	}
	// One half has units of 2^-24, as float16's subnormals.
	return sign | math.Float32bits(math.Float32frombits(size)+0.5) - 0x3f000000
}

// truncateS32 is cvt.rzi.s32.f32.
func truncateS32(f float32) uint32 {
	switch {
	case f >= 1<<31:
		return math.MaxInt32
	case f >= -1<<31:
		return uint32(int32(f))
	case f != f:
		return 0
	}
	return 1 << 31
}

// integral32 rounds float32 values to integral ones.
func integral32(f func(float64) float64) lane32 {
	return liftFloat32(func(a, _, _ float32) float32 { return float32(f(float64(a))) })
}
