package elementary

import "math"

// splitLog writes a positive normal x as 2^e * (1+f) with 1+f in [2/3, 4/3) (float32) or [sqrt(1/2), sqrt(2))
// (float64).
func (c calc[V]) splitLog(x V) (e, f V) {
	offset := int64(0x3f2aaaab)
	if c.float == F64 {
		offset = int64(math.Float64bits(math.Sqrt2 / 2))
	}
	bits := c.toBits(x)
	high := c.exponentBits(bits, offset)
	f = c.sub(c.fromBits(c.isub(bits, high)), c.num(1))
	return c.exponentFloat(high), f
}

// exponentBits is the exponent, in place, of the float with the given bits, relative to one that begins at offset.
func (c calc[V]) exponentBits(bits V, offset int64) V {
	return c.m.And(c.bits, c.isub(bits, c.integer(offset)), c.integer(-1<<c.mantissa))
}

// exponentFloat is the exponent of exponentBits as a float.
func (c calc[V]) exponentFloat(high V) V {
	return c.m.Convert(c.float, c.bits, c.sar(high, c.mantissa))
}

// logKernel is log(1+f) + e ln 2 for an f of splitLog and an integral e.
func (c calc[V]) logKernel(f, e V) V {
	if c.float == F32 {
		p := c.mul(c.horner(f, logF32), f)
		return c.fma(e, c.num(0x1.62e43p-1), c.fma(p, f, f))
	}
	// s = f/(2+f); log(1+f) = 2 atanh(s) = f - (f^2/2 - s (f^2/2 + R)).
	s := c.div(f, c.add(c.num(2), f))
	z := c.mul(s, s)
	r := c.mul(z, c.horner(z, logF64))
	half := c.mul(c.mul(c.num(0.5), f), f)
	t := c.fma(s, c.add(half, r), c.mul(e, c.num(c.ln2Lo)))
	return c.fma(e, c.num(c.ln2Hi), c.sub(f, c.sub(half, t)))
}

// normalised multiplies denormals by a power of two and returns the exponent that this added.
func (c calc[V]) normalised(x V) (y, shift V) {
	denormal := c.less(x, c.num(c.tiny))
	y = c.pick(denormal, c.mul(x, c.num(float64(int64(2)<<c.mantissa))), x)
	return y, c.pick(denormal, c.num(float64(c.mantissa+1)), c.num(0))
}

// logSpecial replaces r by -Inf at 0, NaN below, and x at +Inf and NaN.
func (c calc[V]) logSpecial(x, r V) V {
	zero := c.num(0)
	ordinary := c.and(c.less(zero, x), c.less(x, c.inf()))
	special := c.pick(c.equal(x, zero), c.num(math.Inf(-1)), c.pick(c.less(x, zero), c.nan(), x))
	return c.pick(ordinary, r, special)
}

func logarithm[V any](c calc[V], x V) V {
	y, shift := c.normalised(x)
	e, f := c.splitLog(y)
	return c.logSpecial(x, c.logKernel(f, c.sub(e, shift)))
}

// log1p is log(1 + a + lo) + extra ln 2 for a finite a > -1 and a lo far smaller than a.
func (c calc[V]) log1p(a, lo, extra V) V {
	offset := int64(0x3f2aaaab)
	if c.float == F64 {
		offset = int64(math.Float64bits(math.Sqrt2 / 2))
	}
	high := c.exponentBits(c.toBits(c.add(a, c.num(1))), offset)
	// f = (1+a)*2^-e - 1 = a*2^-e + (2^-e - 1). 4*2^-e is a normal number where 2^-e may not be.
	scaled := c.fromBits(c.isub(c.toBits(a), high))
	four := c.fromBits(c.isub(c.toBits(c.num(4)), high))
	f := c.add(scaled, c.fma(four, c.num(0.25), c.num(-1)))
	f = c.fma(lo, c.mul(four, c.num(0.25)), f)
	return c.logKernel(f, c.add(c.exponentFloat(high), extra))
}

func logPlusOne[V any](c calc[V], x V) V {
	r := c.log1p(x, c.num(0), c.num(0))
	r = c.pick(c.equal(x, c.num(0)), x, r)
	minusOne := c.num(-1)
	ordinary := c.and(c.less(minusOne, x), c.less(x, c.inf()))
	special := c.pick(c.equal(x, minusOne), c.num(math.Inf(-1)), c.pick(c.less(x, minusOne), c.nan(), x))
	return c.pick(ordinary, r, special)
}

// log2 is log2(1+f) + e. In float64 it is the sum of e and log(1+f)/ln 2, both factors in two parts.
func log2[V any](c calc[V], x V) V {
	y, shift := c.normalised(x)
	e, f := c.splitLog(y)
	e = c.sub(e, shift)
	if c.float == F32 {
		p := c.fma(f, c.horner(f, log2F32), c.num(0x1.4ae0cp-26)) // log2(e) is this and the next constant
		return c.logSpecial(x, c.add(e, c.fma(f, c.num(0x1.715476p+0), c.mul(f, p))))
	}
	s := c.div(f, c.add(c.num(2), f))
	z := c.mul(s, s)
	r := c.mul(z, c.horner(z, logF64))
	halfF := c.mul(c.num(0.5), f)
	half := c.mul(halfF, f)
	hi := c.sub(f, half)
	lo := c.sub(c.sub(c.sub(f, hi), half), c.fma(halfF, f, c.neg(half)))
	lo = c.fma(s, c.add(half, r), lo)
	log2e := c.num(0x1.71547652b82fep+0)
	a := c.mul(hi, log2e)
	b := c.fma(hi, log2e, c.neg(a))
	b = c.fma(hi, c.num(0x1.777d0ffda0d24p-56), b)
	b = c.fma(lo, log2e, b)
	w := c.add(e, a)
	return c.logSpecial(x, c.add(w, c.add(c.add(c.sub(e, w), a), b)))
}
