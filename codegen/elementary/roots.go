package elementary

// rsqrt is 1/sqrt(x), corrected by one step on the remainder 1 - x*y^2.
func rsqrt[V any](c calc[V], x V) V {
	y := c.reciprocal(c.sqrt(x))
	h := c.mul(x, y)
	l := c.fma(x, y, c.neg(h))
	rest := c.fma(c.neg(l), y, c.fma(c.neg(h), y, c.num(1)))
	corrected := c.fma(c.mul(c.num(0.5), y), rest, y)
	return c.pick(c.equal(rest, rest), corrected, y) // the remainder is NaN at 0 and infinity
}

// cbrt starts from an estimate of 1/cbrt(x) made by dividing the exponent by three, improves it by Newton's method,
// and takes one step on the remainder y^3 - x of y = x*r^2.
func cbrt[V any](c calc[V], x V) V {
	t := c.abs(x)
	denormal := c.less(t, c.num(c.tiny))
	scaled := c.pick(denormal, c.mul(t, c.value(0x1p24, 0x1p54)), t)
	r := c.inverseCbrtEstimate(scaled)
	third := c.value(0x1.555556p-2, 0x1.5555555555555p-2)
	steps := 2
	if c.float == F64 {
		steps = 3
	}
	for range steps { // error e goes to about 14/9 e^3
		e := c.fma(c.neg(c.mul(scaled, r)), c.mul(r, r), c.num(1))
		r = c.fma(c.mul(r, e), c.fma(e, c.num(0.21875), third), r)
	}
	y := c.mul(scaled, c.mul(r, r))
	h := c.mul(y, y)
	l := c.fma(y, y, c.neg(h))
	rest := c.fma(l, y, c.fma(h, y, c.neg(scaled)))
	y = c.fma(c.mul(c.mul(r, r), c.neg(third)), rest, y)
	y = c.pick(denormal, c.mul(y, c.value(0x1p-8, 0x1p-18)), y)
	ordinary := c.and(c.less(c.num(0), t), c.less(t, c.inf()))
	return c.copySign(c.pick(ordinary, y, x), x) // x and not t: PTX leaves the bits of abs(NaN) open
}

// inverseCbrtEstimate is within 5 % of 1/cbrt(x) for a positive normal x: bits(r) is about 4/3 bits(1) - bits(x)/3.
func (c calc[V]) inverseCbrtEstimate(x V) V {
	m := c.m
	high := c.toBits(x)
	if c.float == F64 {
		high = m.Convert(I32, I64, m.ShrLogical(I64, high, m.Int(I64, 32)))
	}
	third := m.Convert(I32, I64, m.ShrLogical(I64, m.Mul(I64, m.ZeroExtend(high), m.Int(I64, 0x55555556)), m.Int(I64, 32)))
	if c.float == F32 {
		return c.fromBits(m.Sub(I32, m.Int(I32, 0x54a2fa8c), third))
	}
	guess := m.Sub(I32, m.Int(I32, 0x553f09fd), third)
	return c.fromBits(m.Shl(I64, m.ZeroExtend(guess), m.Int(I64, 32)))
}
