package elementary

// erf32 is an odd polynomial up to 0.84375, and 1 - 2^q(|x|) beyond, where q is a polynomial.
func erf32[V any](c calc[V], x V) V {
	t := c.clampAbove(c.abs(x), 4) // erf rounds to 1 there
	small := c.fma(c.polyThen(c.mul(t, t), erfF32), t, t)
	q := c.polyThen(t, erfTailF32)
	n, bits := c.nearest(q)
	r := c.sub(q, n)
	tail := c.scaleNormal(c.fma(c.polyThen(r, exp2F32), r, c.num(1)), bits)
	large := c.sub(c.num(1), tail)
	return c.copySign(c.pick(c.less(t, c.num(0.84375)), small, large), x)
}

// erfcPositive is erfc(x) for x >= 0: exp(-x^2) * Q(t)/(1+2x) with a polynomial Q of t = (x-k)/(x+k).
func (c calc[V]) erfcPositive(x V) V {
	limit, k := 10.1875, 2.0
	if c.float == F64 {
		limit, k = 28, 4
	}
	x = c.clampAbove(x, limit)
	q := c.poly(c.div(c.sub(x, c.num(k)), c.add(x, c.num(k))), erfcF32, erfcF64)
	// quotient = q/(1+2x), corrected for the roundings of 1+2x, its reciprocal and the product.
	twice := c.add(x, x)
	sum := c.add(twice, c.num(1))
	lost := c.sub(c.num(1), c.sub(sum, twice))
	inverse := c.reciprocal(sum)
	quotient := c.mul(q, inverse)
	minus := c.neg(quotient)
	quotient = c.fma(c.fma(lost, minus, c.fma(sum, minus, q)), inverse, quotient)

	square := c.mul(x, x)
	r, _, bits := c.reduceExp(c.neg(square))
	r = c.sub(r, c.fma(x, x, c.neg(square)))
	p := c.mul(c.fma(c.poly(r, expF32, expF64), r, c.num(1)), r) // exp(r) - 1
	return c.scale(c.fma(p, quotient, quotient), c.fromNoisy(bits))
}

// erfc is 1 - erf below 0.46875 and erfcPositive beyond, with erfc(x) = 2 - erfc(-x) for x < 0.
func erfc[V any](c calc[V], x V) V {
	z := c.mul(x, x)
	near := c.sub(c.num(1), c.fma(c.poly(z, erfF32, erfF64), x, x))
	t := c.abs(x)
	y := c.erfcPositive(t)
	y = c.pick(c.less(x, c.num(0)), c.sub(c.num(2), y), y)
	return c.pick(c.less(t, c.num(0.46875)), near, y)
}

// erf64 is an odd polynomial up to 0.84375 and 1 - erfc beyond.
func erf64[V any](c calc[V], x V) V {
	t := c.abs(x)
	small := c.fma(c.polyThen(c.mul(t, t), erfF64), t, t)
	large := c.sub(c.num(1), c.erfcPositive(t))
	return c.copySign(c.pick(c.less(t, c.num(0.84375)), small, large), x)
}
