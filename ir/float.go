package ir

import "math"

// floatFormat describes a binary floating-point format of at most 16 bits.
type floatFormat struct {
	exponentBits, mantissaBits, bias int
	unsigned                         bool
	infinity                         bool   // has infinities (IEEE style)
	nan                              uint64 // the NaN to write
	max                              uint64 // the largest finite magnitude
	overflowToNaN                    bool   // values past max become NaN, else infinity or saturate (f4)
	onlyNegativeZeroNaN              bool   // FNUZ: 0x80 is NaN, there is no negative zero
}

var floatFormats = map[DType]floatFormat{
	F16:        {exponentBits: 5, mantissaBits: 10, bias: 15, infinity: true, nan: 0x7e00, max: 0x7bff},
	BF16:       {exponentBits: 8, mantissaBits: 7, bias: 127, infinity: true, nan: 0x7fc0, max: 0x7f7f},
	F8E5M2:     {exponentBits: 5, mantissaBits: 2, bias: 15, infinity: true, nan: 0x7f, max: 0x7b},
	F8E4M3FN:   {exponentBits: 4, mantissaBits: 3, bias: 7, nan: 0x7f, max: 0x7e, overflowToNaN: true},
	F8E4M3FNUZ: {exponentBits: 4, mantissaBits: 3, bias: 8, nan: 0x80, max: 0x7f, overflowToNaN: true, onlyNegativeZeroNaN: true},
	F8E5M2FNUZ: {exponentBits: 5, mantissaBits: 2, bias: 16, nan: 0x80, max: 0x7f, overflowToNaN: true, onlyNegativeZeroNaN: true},
	F8E8M0FNU:  {exponentBits: 8, mantissaBits: 0, bias: 127, unsigned: true, nan: 0xff, max: 0xfe, overflowToNaN: true},
	F4E2M1FN:   {exponentBits: 2, mantissaBits: 1, bias: 1, max: 0x7},
}

// DecodeFloat gives the exact value of the bits of a float format of at most 16 bits
// (F8E8M0FNU's 2^-127 included).
func DecodeFloat(dtype DType, raw uint64) float64 {
	f := floatFormats[dtype]
	sign := 1.0
	if !f.unsigned {
		if raw>>(f.exponentBits+f.mantissaBits)&1 == 1 {
			sign = -1
		}
	}
	magnitude := raw & (1<<(f.exponentBits+f.mantissaBits) - 1)
	exponent := int(magnitude >> f.mantissaBits)
	mantissa := magnitude & (1<<f.mantissaBits - 1)
	switch {
	case f.onlyNegativeZeroNaN && sign < 0 && magnitude == 0:
		return math.NaN()
	case f.infinity && exponent == 1<<f.exponentBits-1:
		if mantissa == 0 {
			return math.Inf(int(sign))
		}
		return math.NaN()
	case f.overflowToNaN && !f.onlyNegativeZeroNaN && magnitude > f.max:
		return math.NaN()
	case f.unsigned:
		return math.Ldexp(1, exponent-f.bias)
	case exponent == 0:
		return sign * math.Ldexp(float64(mantissa), 1-f.bias-f.mantissaBits)
	}
	return sign * math.Ldexp(float64(mantissa|1<<f.mantissaBits), exponent-f.bias-f.mantissaBits)
}

// EncodeFloat rounds v to nearest even in a float format of at most 16 bits and gives its
// bits. Values past the largest become infinity where the format has it, NaN where it has
// only that, and the largest value in F4E2M1FN, which has neither.
func EncodeFloat(dtype DType, v float64) uint64 {
	f := floatFormats[dtype]
	signBit := uint64(0)
	if math.Signbit(v) && !f.unsigned {
		signBit = 1 << (f.exponentBits + f.mantissaBits)
	}
	if math.IsNaN(v) {
		if f.nan == 0 {
			return 0
		}
		return f.nan
	}
	if f.unsigned && (v < 0 || v == 0) {
		if v < 0 {
			return f.nan
		}
		return 0
	}
	magnitude := f.roundMagnitude(math.Abs(v))
	if magnitude > f.max {
		switch {
		case f.infinity:
			magnitude = uint64(1<<f.exponentBits-1) << f.mantissaBits
		case f.overflowToNaN:
			return f.nan
		default:
			magnitude = f.max
		}
	}
	if magnitude == 0 && f.onlyNegativeZeroNaN {
		return 0
	}
	return signBit | magnitude
}

// roundMagnitude rounds a non-negative value to the format's grid, extended past its largest
// exponent, and gives the bits without sign.
func (f floatFormat) roundMagnitude(v float64) uint64 {
	if math.IsInf(v, 0) {
		return f.max + 1
	}
	if v == 0 {
		return 0
	}
	_, e := math.Frexp(v) // v = m * 2^e, m in [0.5, 1)
	exponent := e - 1 + f.bias
	least := 1
	if f.unsigned {
		least = 0 // no subnormals
	}
	exponent = max(exponent, least)
	if exponent > 1<<f.exponentBits {
		return f.max + 1
	}
	units := math.RoundToEven(math.Ldexp(v, f.mantissaBits-(exponent-f.bias)))
	if f.unsigned {
		return uint64(exponent) + uint64(units) - 1 + b2u(units < 1)
	}
	// Subnormals have exponent field 0 and no hidden bit; the carry of rounding is right.
	return uint64(exponent-1)<<f.mantissaBits + uint64(units)
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// MaxFinite is the largest finite value of a real float type.
func (t DType) MaxFinite() float64 {
	switch t {
	case F64:
		return math.MaxFloat64
	case F32:
		return math.MaxFloat32
	}
	return DecodeFloat(t, floatFormats[t].max)
}

// HasInfinity tells whether a real float type has infinities.
func (t DType) HasInfinity() bool { return t == F64 || t == F32 || floatFormats[t].infinity }
