package elementary

import "math"

// inDouble turns a float64 function into one of float32: the argument is converted, and the result rounded.
func inDouble[V any](f func(c calc[V], x V) V) func(c calc[V], x V) V {
	return func(c calc[V], x V) V {
		return c.m.Convert(F32, F64, f(calc[V]{binary64, c.m}, c.m.Convert(F64, F32, x)))
	}
}

// fraction is x less the nearest integer, and whether that is 0.
func (c calc[V]) fraction(x V) (r, whole V) {
	r = c.sub(x, c.m.Round(c.float, NearestEven, x))
	return r, c.equal(r, c.num(0))
}

// lgamma is log|Gamma(x)|, in float64 arithmetic. For t = |x| it is a polynomial on [1/2, 5/2), whose zeros 1 and 2
// are factors, carried to [0, 8) by the recurrence Gamma(t+1) = t Gamma(t); from 8 on, it is Stirling's series. For x
// < 0 it is reflected.
func lgamma[V any](c calc[V], x V) V {
	t := c.abs(x)
	tiny := c.less(t, c.num(0.5))
	large := c.atMost(c.num(8), t)

	// product = (t-1)(t-2)…, reduced = the last factor, in [1/2, 5/2)
	reduced, product := t, c.num(1)
	for range 6 {
		above := c.atMost(c.num(2.5), reduced)
		next := c.sub(reduced, c.num(1))
		reduced = c.pick(above, next, reduced)
		product = c.pick(above, c.mul(product, next), product)
	}
	high := c.atMost(c.num(1.5), reduced)
	uOne := c.pick(tiny, t, c.sub(reduced, c.num(1)))
	uTwo := c.sub(reduced, c.num(2))
	p, pLow := c.piecewise(piece[V]{table: lgammaOne, argument: uOne}, piece[V]{table: lgammaTwo, argument: uTwo, where: high})
	zeros := c.pick(high, c.fma(uTwo, uTwo, uTwo), c.fma(uOne, uOne, c.neg(uOne)))
	v := c.fma(zeros, p, c.mul(zeros, pLow))

	argument := c.pick(c.or(tiny, large), t, product)
	normal, shift := c.normalised(argument)
	h, l := c.logPair(normal, shift)
	small := c.add(h, c.add(l, v))
	small = c.pick(tiny, c.sub(c.sub(v, l), h), small)
	r := c.pick(large, c.stirling(t, h, l), small)

	reflected := c.sub(c.reflectionLog(x), r)
	r = c.pick(c.and(c.less(x, c.num(0)), c.less(c.num(0x1p-70), t)), reflected, r)
	_, whole := c.fraction(x)
	pole := c.and(whole, c.atMost(x, c.num(0)))
	r = c.pick(c.or(pole, c.equal(t, c.inf())), c.inf(), r)
	return c.pick(c.isNaN(x), x, r)
}

// stirling is (t-1/2) log t - t + log(2 pi)/2 + S(1/t^2)/t for t >= 8, with log t = h + l.
func (c calc[V]) stirling(t, h, l V) V {
	inverse := c.reciprocal(t)
	series := c.fma(c.horner(c.mul(inverse, inverse), stirling), inverse, c.num(0x1.d67f1c864beb4p-1))
	a := c.sub(t, c.num(0.5))
	p := c.mul(a, h)
	low := c.fma(a, l, c.fma(a, h, c.neg(p)))
	d := c.sub(p, t)
	low = c.add(low, c.sub(c.sub(p, d), t))
	return c.pick(c.less(p, c.inf()), c.add(d, c.add(low, series)), c.inf())
}

// reflectionLog is log(pi/(|x| |sin(pi x)|)).
func (c calc[V]) reflectionLog(x V) V {
	r, _ := c.fraction(x)
	r = c.abs(r)
	far := c.less(c.num(0.25), r)
	hi, lo := c.timesPi(c.pick(far, c.sub(c.num(0.5), r), r))
	sine := c.pick(far, c.cosKernel(hi, lo), c.sinKernel(hi, lo))
	quotient := c.div(c.num(math.Pi), c.mul(c.abs(x), sine))
	e, f := c.splitLog(quotient)
	return c.logKernel(f, e)
}

// digamma is Gamma'(x)/Gamma(x), in float64 arithmetic. With z = x, or 1-x for x < 0, it is (z-x0) times a polynomial
// on [1, 3], where x0 is its zero, carried to [0, 6) by the recurrence digamma(z+1) = digamma(z) + 1/z; from 6 on, it
// is the asymptotic series. For x < 0 it is reflected.
func digamma[V any](c calc[V], x V) V {
	zero, one := c.num(0), c.num(1)
	negative := c.less(x, zero)
	z := c.pick(negative, c.sub(one, x), x)

	// numerator/denominator = the sum of 1/(z-1), 1/(z-2), …, or -1/z
	low := c.less(z, one)
	reduced := c.pick(low, c.add(z, one), z)
	numerator, denominator := c.pick(low, c.num(-1), zero), c.pick(low, z, one)
	for range 3 {
		above := c.less(c.num(3), reduced)
		next := c.sub(reduced, one)
		reduced = c.pick(above, next, reduced)
		numerator = c.pick(above, c.fma(numerator, next, denominator), numerator)
		denominator = c.pick(above, c.mul(denominator, next), denominator)
	}
	distance := c.sub(c.sub(reduced, c.num(digammaRootHi)), c.num(digammaRootLo))
	p, pLow := c.piecewise(piece[V]{table: digammaRoot, argument: c.sub(reduced, c.num(2))})
	quotient := c.div(numerator, denominator)
	lost := c.mul(c.fma(quotient, denominator, one), c.neg(quotient)) // what -1/z lost to rounding, negated
	pLow = c.mul(distance, pLow)
	pLow = c.pick(c.and(low, c.less(c.num(0.5), z)), c.sub(pLow, lost), pLow)
	small := c.add(quotient, c.fma(distance, p, pLow))

	inverse := c.reciprocal(z)
	series := c.fma(c.horner(c.mul(inverse, inverse), digammaSeries), inverse, c.num(0.5))
	e, f := c.splitLog(z)
	large := c.fma(c.neg(series), inverse, c.logKernel(f, e))
	r := c.pick(c.less(z, c.num(6)), small, large)

	cotangent, whole := c.piCotangentPi(x)
	r = c.pick(negative, c.sub(r, cotangent), r)
	r = c.pick(c.and(negative, c.or(whole, c.equal(x, c.num(math.Inf(-1))))), c.nan(), r)
	r = c.pick(c.equal(x, zero), c.copySign(c.inf(), c.neg(x)), r)
	r = c.pick(c.equal(x, c.inf()), x, r)
	return c.pick(c.isNaN(x), x, r)
}

// piCotangentPi is pi/tan(pi x), and whether x is an integer.
func (c calc[V]) piCotangentPi(x V) (r, whole V) {
	fraction, whole := c.fraction(x)
	t := c.abs(fraction)
	far := c.less(c.num(0.25), t)
	tangent := c.tanKernel(c.timesPi(c.pick(far, c.sub(c.num(0.5), t), t)))
	pi := c.num(math.Pi)
	return c.copySign(c.pick(far, c.mul(pi, tangent), c.div(pi, tangent)), fraction), whole
}
