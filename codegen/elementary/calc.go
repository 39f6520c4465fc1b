package elementary

//go:generate sh generate.sh

import "math"

// format is what the functions need to know about a float type.
type format struct {
	float, bits Type // the type, and the integer type of its width
	width       int64
	mantissa    int64 // stored bits, so that the precision is one more
	bias        int64
	tiny        float64 // the smallest normal number
	ln2Hi       float64 // ln 2 with enough trailing zeros for exact products with exponents
	ln2Lo       float64 // ln 2 - ln2Hi, rounded
}

var binary32 = format{
	float: F32, bits: I32, width: 32, mantissa: 23, bias: 127, tiny: 0x1p-126,
	ln2Hi: 0x1.62e4p-1, ln2Lo: 0x1.7f7d1cp-20,
}

var binary64 = format{
	float: F64, bits: I64, width: 64, mantissa: 52, bias: 1023, tiny: 0x1p-1022,
	ln2Hi: 0x1.62e42fefa3800p-1, ln2Lo: 0x1.ef35793c76730p-45,
}

// reciprocalAbove1 is 1/x for x in [1, 2^126], or NaN.
func (c calc[V]) reciprocalAbove1(x V) V {
	if c.float == F32 {
		return c.m.ReciprocalAbove1(x)
	}
	return c.reciprocal(x)
}

// calc writes expressions of one float type on a Machine.
type calc[V any] struct {
	format
	m Machine[V]
}

func (c calc[V]) num(v float64) V     { return c.m.Float(c.float, v) }
func (c calc[V]) add(x, y V) V        { return c.m.Add(c.float, x, y) }
func (c calc[V]) sub(x, y V) V        { return c.m.Sub(c.float, x, y) }
func (c calc[V]) mul(x, y V) V        { return c.m.Mul(c.float, x, y) }
func (c calc[V]) div(x, y V) V        { return c.m.Div(c.float, x, y) }
func (c calc[V]) fma(x, y, z V) V     { return c.m.Fma(c.float, x, y, z) }
func (c calc[V]) neg(x V) V           { return c.m.Neg(c.float, x) }
func (c calc[V]) abs(x V) V           { return c.m.Abs(c.float, x) }
func (c calc[V]) sqrt(x V) V          { return c.m.Sqrt(c.float, x) }
func (c calc[V]) reciprocal(x V) V    { return c.div(c.num(1), x) }
func (c calc[V]) pick(cond, x, y V) V { return c.m.Select(c.float, cond, x, y) }
func (c calc[V]) equal(x, y V) V      { return c.m.Compare(c.float, EQ, x, y) }
func (c calc[V]) less(x, y V) V       { return c.m.Compare(c.float, LT, x, y) }
func (c calc[V]) atMost(x, y V) V     { return c.m.Compare(c.float, LE, x, y) }
func (c calc[V]) isNaN(x V) V         { return c.m.Compare(c.float, NE, x, x) }
func (c calc[V]) and(x, y V) V        { return c.m.And(Bool, x, y) }
func (c calc[V]) or(x, y V) V         { return c.m.Or(Bool, x, y) }
func (c calc[V]) integer(v int64) V   { return c.m.Int(c.bits, v) }
func (c calc[V]) toBits(x V) V        { return c.m.Bitcast(c.bits, c.float, x) }
func (c calc[V]) fromBits(x V) V      { return c.m.Bitcast(c.float, c.bits, x) }
func (c calc[V]) iadd(x, y V) V       { return c.m.Add(c.bits, x, y) }
func (c calc[V]) isub(x, y V) V       { return c.m.Sub(c.bits, x, y) }
func (c calc[V]) shl(x V, n int64) V  { return c.m.Shl(c.bits, x, c.integer(n)) }
func (c calc[V]) sar(x V, n int64) V  { return c.m.ShrArithmetic(c.bits, x, c.integer(n)) }
func (c calc[V]) signMask() V         { return c.integer(-1 << (c.width - 1)) }
func (c calc[V]) inf() V              { return c.num(math.Inf(1)) }

// choose returns the table of the type.
func (c calc[V]) choose(table32, table64 []float64) []float64 {
	if c.float == F32 {
		return table32
	}
	return table64
}

// nan is the NaN that is one in both types: quiet, positive, without payload.
func (c calc[V]) nan() V { return c.num(math.Float64frombits(0x7ff8000000000000)) }

// value returns v32 for float32 and v64 for float64.
func (c calc[V]) value(v32, v64 float64) V { return c.num(c.limit(v32, v64)) }

// limit is value as a Go number.
func (c calc[V]) limit(v32, v64 float64) float64 {
	if c.float == F32 {
		return v32
	}
	return v64
}

// poly is table[0] + table[1]*x + … by Horner's rule, with the table of the type.
func (c calc[V]) poly(x V, table32, table64 []float64) V {
	return c.horner(x, c.choose(table32, table64))
}

// horner is poly with a given table.
func (c calc[V]) horner(x V, table []float64) V {
	r := c.num(table[len(table)-1])
	for i := len(table) - 2; i >= 0; i-- {
		r = c.fma(r, x, c.num(table[i]))
	}
	return r
}

// copySign is |x| with the sign of s.
func (c calc[V]) copySign(x, s V) V {
	sign := c.m.And(c.bits, c.toBits(s), c.signMask())
	return c.fromBits(c.m.Or(c.bits, c.toBits(c.abs(x)), sign))
}

// copySignOfPositive is copySign for an x whose sign bit is not set, or NaN.
func (c calc[V]) copySignOfPositive(x, s V) V {
	return c.fromBits(c.m.Or(c.bits, c.toBits(x), c.m.And(c.bits, c.toBits(s), c.signMask())))
}

// clampAbove is min(x, hi), and NaN if x is NaN.
func (c calc[V]) clampAbove(x V, hi float64) V {
	if c.float == F32 {
		return c.m.Min(F32, x, c.num(hi))
	}
	return c.pick(c.less(c.num(hi), x), c.num(hi), x)
}

// clampBelow is max(x, lo), and NaN if x is NaN.
func (c calc[V]) clampBelow(x V, lo float64) V {
	if c.float == F32 {
		return c.m.Max(F32, x, c.num(lo))
	}
	return c.pick(c.less(x, c.num(lo)), c.num(lo), x)
}

// nearest rounds x, |x| < 2^(mantissa-2), to the nearest integer and returns it as a float, and as bits whose low end
// holds the integer in two's complement (the rest is noise: shift it out or subtract roundingBits).
func (c calc[V]) nearest(x V) (float, bits V) {
	t := c.add(x, c.magic())
	return c.sub(t, c.magic()), c.toBits(t)
}

// nearestOfProduct is nearest(x*k), with one rounding.
func (c calc[V]) nearestOfProduct(x, k V) (float, bits V) {
	t := c.fma(x, k, c.magic())
	return c.sub(t, c.magic()), c.toBits(t)
}

// magic is 1.5 * 2^mantissa: added to a small number it leaves the integral part in the low bits.
func (c calc[V]) magic() V { return c.num(1.5 * float64(int64(1)<<c.mantissa)) }

// powerOfTwo is 2^n for an integer n in the range of normal exponents.
func (c calc[V]) powerOfTwo(n V) V {
	return c.fromBits(c.iadd(c.shl(n, c.mantissa), c.integer(c.bias<<c.mantissa)))
}

// scale is x * 2^n, rounded once where the result is denormal and infinite where it overflows, for n between twice the
// smallest and twice the largest normal exponent and x near 1; bits are the noisy bits of n.
func (c calc[V]) scale(x, bits V) V {
	half := c.sar(bits, 1) // the noise ends in zeros: it is still shifted out
	return c.mul(c.mul(x, c.powerOfTwo(half)), c.powerOfTwo(c.isub(bits, half)))
}

// scaleDown is scale for n up to a third of the largest exponent: cheaper.
func (c calc[V]) scaleDown(x, bits V) V {
	up := int64(32) // makes every result a normal number
	if c.float == F64 {
		up = 64
	}
	y := c.mul(x, c.fromBits(c.iadd(c.shl(bits, c.mantissa), c.integer((c.bias+up)<<c.mantissa))))
	return c.mul(y, c.num(math.Ldexp(1, int(-up))))
}
