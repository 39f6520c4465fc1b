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
	r, bits := c.reduceExp(c.clampAbove(c.clampBelow(x, c.leastExp()), c.limit(89.5, 710.5)))
	if extra != 0 {
		bits = c.iadd(bits, c.integer(extra))
	}
	return c.scale(c.expReduced(r), bits)
}

// leastExp is below the smallest x whose exp does not round to 0.
func (c calc[V]) leastExp() float64 { return c.limit(-104, -746) }

// expOfSmall is exp(x, 0), to the bit, for x up to 64: cheaper.
func (c calc[V]) expOfSmall(x V) V {
	r, bits := c.reduceExp(c.clampBelow(x, c.leastExp()))
	return c.scaleDown(c.expReduced(r), bits)
}

// ExponentialOfSmall has the bits of exponential for every x up to 64 and for NaN, in fewer instructions: where x is
// known not to be positive, as in a softmax.
func ExponentialOfSmall[V any](m Machine[V], t Type, x V) V {
	if t == F32 {
		return calc[V]{binary32, m}.expOfSmall(x)
	}
	return calc[V]{binary64, m}.expOfSmall(x)
}

// expOfMinus is e^-|x|.
func (c calc[V]) expOfMinus(x V) V { return c.expOfSmall(c.neg(c.abs(x))) }

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
	x = c.clampAbove(c.clampBelow(x, c.limit(-151, -1076)), c.limit(128, 1024))
	n, bits := c.nearest(x)
	r := c.sub(x, n)
	p := c.fma(c.poly(r, exp2F32, exp2F64), r, c.num(1))
	return c.scale(p, bits)
}

// exponentialMinusOne is 2^n*(e^r - 1) + (2^n - 1), computed at half of its size so that 2^n does not overflow.
func exponentialMinusOne[V any](c calc[V], x V) V {
	clamped := c.clampAbove(c.clampBelow(x, c.limit(-26, -55)), c.limit(89, 710))
	r, bits := c.reduceExp(clamped)
	p := c.poly(r, expm1F32, expm1F64)
	p = c.fma(c.mul(p, r), r, r)
	half := c.fromBits(c.iadd(c.shl(bits, c.mantissa), c.integer((c.bias-1)<<c.mantissa)))
	y := c.fma(half, p, c.sub(half, c.num(0.5)))
	y = c.add(y, y)
	return c.pick(c.less(c.abs(x), c.value(0x1p-25, 0x1p-54)), x, y) // denormals and -0
}

// logistic is 1/(1+e) for x >= 0 and e/(1+e) for x < 0, with e = exp(-|x|); the roundings of 1+e, of its reciprocal
// and of the product are corrected by one step on the remainder.
func logistic[V any](c calc[V], x V) V {
	e := c.expOfMinus(x)
	sum := c.add(c.num(1), e)
	lost := c.add(c.sub(c.num(1), sum), e)
	numerator := c.pick(c.less(x, c.num(0)), e, c.num(1))
	inverse := c.reciprocalAbove1(sum)
	y := c.mul(numerator, inverse)
	minus := c.neg(y)
	rest := c.fma(lost, minus, c.fma(sum, minus, numerator))
	return c.fma(rest, inverse, y)
}

// tanh is an odd polynomial up to 0.625 and 1 - 2/(exp(2|x|)+1) beyond.
func tanh[V any](c calc[V], x V) V {
	t := c.clampAbove(c.abs(x), c.limit(10, 20)) // tanh rounds to 1 there
	z := c.mul(t, t)
	p := c.poly(z, tanhF32, tanhF64)
	small := c.fma(c.mul(p, z), t, t)
	e := c.expNormal(c.add(t, t))
	large := c.fma(c.num(-2), c.reciprocalAbove1(c.add(e, c.num(1))), c.num(1))
	return c.copySign(c.pick(c.less(t, c.num(0.625)), small, large), x)
}

// TanhOfBFloat16 is tanh of an x that is a bfloat16, as a float32 that rounds to the bfloat16 next to tanh(x), whatever x is: in a third of the
// instructions of tanh. It is x*P(x^2)/Q(x^2) up to 3.5, beyond which 1 is next; P and Q are a minimax fit whose error is below 2^-17.
func TanhOfBFloat16[V any](m Machine[V], x V) V {
	c := calc[V]{binary32, m}
	t := c.clampAbove(c.clampBelow(x, -3.5), 3.5)
	z := c.mul(t, t)
	p := c.horner(z, []float64{1, 0x1.b53758p-4, 0x1.b12bb4p-11})
	q := c.horner(z, []float64{1, 0x1.c29a7p-2, 0x1.d24eep-7})
	return c.mul(c.mul(t, p), c.reciprocalAbove1(q))
}
