package elementary

// reduceExp splits x = n ln 2 + r, |r| <= ln(2)/2, and returns r and the noisy bits of n.
func (c calc[V]) reduceExp(x V) (r, bits V) {
	n, bits := c.nearestOfProduct(x, c.value(0x1.715476p+0, 0x1.71547652b82fep+0))
	r = c.fma(n, c.num(-c.ln2Hi), x)
	return c.fma(n, c.num(-c.ln2Lo), r), bits
}

// reduceExpPair is reduceExp of x + low; rLow is the rounding error of r.
func (c calc[V]) reduceExpPair(x, low V) (r, rLow, bits V) {
	n, bits := c.nearestOfProduct(x, c.value(0x1.715476p+0, 0x1.71547652b82fep+0))
	a, b := c.fma(n, c.num(-c.ln2Hi), x), c.fma(n, c.num(-c.ln2Lo), low)
	r = c.add(a, b)
	return r, c.add(c.sub(a, r), b), bits
}

// expReduced is exp(r) for |r| <= ln(2)/2.
func (c calc[V]) expReduced(r V) V {
	p := c.poly(r, expF32, expF64)
	p = c.fma(p, r, c.num(1))
	return c.fma(p, r, c.num(1))
}

// exp is e^x * 2^extra.
func (c calc[V]) exp(x V, extra int64) V {
	lo, hi := -104.0, 89.5
	if c.float == F64 {
		lo, hi = -746.0, 710.5
	}
	x = c.clampAbove(c.clampBelow(x, lo), hi)
	r, bits := c.reduceExp(x)
	n := c.fromNoisy(bits)
	if extra != 0 {
		n = c.iadd(n, c.integer(extra))
	}
	return c.scale(c.expReduced(r), n)
}

// expOfMinus is e^-|x|.
func (c calc[V]) expOfMinus(x V) V {
	lo := -104.0
	if c.float == F64 {
		lo = -746
	}
	r, bits := c.reduceExp(c.clampBelow(c.neg(c.abs(x)), lo))
	return c.scale(c.expReduced(r), c.fromNoisy(bits))
}

// expNormal is e^x for an x so bounded that the result is normal (or x is NaN).
func (c calc[V]) expNormal(x V) V {
	r, bits := c.reduceExp(x)
	return c.scaleNormal(c.expReduced(r), bits)
}

// scaleNormal is x * 2^n where that is normal and x is in [1/2, 2]; bits are the noisy bits of n.
func (c calc[V]) scaleNormal(x, bits V) V {
	return c.mul(x, c.fromBits(c.iadd(c.shl(bits, c.mantissa), c.integer(c.bias<<c.mantissa))))
}

func exponential[V any](c calc[V], x V) V { return c.exp(x, 0) }

func exponentialBase2[V any](c calc[V], x V) V {
	lo, hi := -151.0, 128.0
	if c.float == F64 {
		lo, hi = -1076.0, 1024.0
	}
	x = c.clampAbove(c.clampBelow(x, lo), hi)
	n, bits := c.nearest(x)
	r := c.sub(x, n)
	p := c.fma(c.poly(r, exp2F32, exp2F64), r, c.num(1))
	return c.scale(p, c.fromNoisy(bits))
}

// exponentialMinusOne is 2^n*(e^r - 1) + (2^n - 1), computed at half of its size so that 2^n does not overflow.
func exponentialMinusOne[V any](c calc[V], x V) V {
	lo, hi := -26.0, 89.0
	if c.float == F64 {
		lo, hi = -55.0, 710.0
	}
	clamped := c.clampAbove(c.clampBelow(x, lo), hi)
	r, bits := c.reduceExp(clamped)
	p := c.poly(r, expm1F32, expm1F64)
	p = c.fma(c.mul(p, r), r, r)
	half := c.fromBits(c.iadd(c.shl(bits, c.mantissa), c.integer((c.bias-1)<<c.mantissa)))
	y := c.fma(half, p, c.sub(half, c.num(0.5)))
	y = c.add(y, y)
	return c.pick(c.less(c.abs(x), c.value(0x1p-25, 0x1p-54)), x, y) // denormals and -0
}

// logistic is 1/(1+e) for x >= 0 and e/(1+e) for x < 0, with e = exp(-|x|); the roundings of 1+e, of its reciprocal and of the
// product are corrected by one step on the remainder.
func logistic[V any](c calc[V], x V) V {
	e := c.expOfMinus(x)
	sum := c.add(c.num(1), e)
	lost := c.add(c.sub(c.num(1), sum), e)
	numerator := c.pick(c.less(x, c.num(0)), e, c.num(1))
	inverse := c.reciprocal(sum)
	y := c.mul(numerator, inverse)
	minus := c.neg(y)
	rest := c.fma(lost, minus, c.fma(sum, minus, numerator))
	return c.fma(rest, inverse, y)
}

// tanh is an odd polynomial up to 0.625 and 1 - 2/(exp(2|x|)+1) beyond.
func tanh[V any](c calc[V], x V) V {
	limit := 10.0 // tanh rounds to 1 there
	if c.float == F64 {
		limit = 20.0
	}
	t := c.clampAbove(c.abs(x), limit)
	z := c.mul(t, t)
	p := c.poly(z, tanhF32, tanhF64)
	small := c.fma(c.mul(p, z), t, t)
	e := c.expNormal(c.add(t, t))
	large := c.fma(c.num(-2), c.reciprocal(c.add(e, c.num(1))), c.num(1))
	return c.copySign(c.pick(c.less(t, c.num(0.625)), small, large), x)
}
