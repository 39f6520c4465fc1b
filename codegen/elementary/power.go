package elementary

import "math"

// logPair is log(x) = h + l for a positive normal x, where l is far below h. 2 atanh(s) with s = f/(2+f) is evaluated
// in pairs, and so is the sum with e ln 2.
func (c calc[V]) logPair(x, shift V) (h, l V) {
	offset := int64(math.Float32bits(math.Sqrt2 / 2))
	if c.float == F64 {
		offset = int64(math.Float64bits(math.Sqrt2 / 2))
	}
	bits := c.toBits(x)
	high := c.exponentBits(bits, offset)
	f := c.sub(c.fromBits(c.isub(bits, high)), c.num(1))
	e := c.sub(c.exponentFloat(high), shift)

	two := c.num(2)
	g := c.add(f, two)
	gLow := c.sub(f, c.sub(g, two))
	inverse := c.reciprocal(g)
	s := c.mul(f, inverse)
	sLow := c.mul(c.fma(c.neg(s), gLow, c.fma(c.neg(s), g, f)), inverse)
	z := c.mul(s, s)
	zLow := c.fma(c.add(s, s), sLow, c.fma(s, s, c.neg(z)))

	// p = 2/3 + z*(2/5 + …), v = z*p, t = 2 + v, w = s*t = log(1+f)
	first := c.value(0x1.555556p-1, 0x1.5555555555555p-1)
	rest := c.mul(z, c.poly(z, powLogF32, powLogF64))
	p := c.add(first, rest)
	pLow := c.add(c.add(c.sub(first, p), rest), c.value(-0x1.555556p-26, 0x1.5555555555555p-55))
	v := c.mul(z, p)
	vLow := c.fma(zLow, p, c.fma(z, pLow, c.fma(z, p, c.neg(v))))
	t := c.add(two, v)
	tLow := c.add(c.add(c.sub(two, t), v), vLow)
	w := c.mul(s, t)
	wLow := c.fma(sLow, t, c.fma(s, tLow, c.fma(s, t, c.neg(w))))

	a := c.mul(e, c.num(c.ln2Hi)) // exact
	h = c.add(a, w)
	l = c.add(c.add(c.sub(a, h), w), c.fma(e, c.num(c.ln2Lo), wLow))
	return h, l
}

// power is C's pow: exp(y*log|x|) with the product in two parts, and the special cases of IEEE 754.
func power[V any](c calc[V], x, y V) V {
	zero, one, inf := c.num(0), c.num(1), c.inf()
	t := c.abs(x)
	normal, shift := c.normalised(t)
	h, l := c.logPair(normal, shift)
	h = c.pick(c.equal(t, zero), c.num(math.Inf(-1)), c.pick(c.equal(t, inf), inf, h))

	product := c.mul(y, h)
	low := c.fma(y, l, c.fma(y, h, c.neg(product)))
	limit := c.value(256, 2048) // beyond it the result is 0 or infinite
	low = c.pick(c.less(c.abs(product), limit), low, zero)
	r := c.expPair(product, low)

	half := c.mul(y, c.num(0.5))
	whole := c.equal(c.m.Round(c.float, Floor, y), y)
	even := c.equal(c.m.Round(c.float, Floor, half), half)
	odd := c.m.Xor(Bool, whole, c.and(whole, even))
	r = c.pick(c.and(odd, c.isNegative(x)), c.neg(r), r)

	infinite := c.equal(c.abs(y), inf)
	undefined := c.and(c.less(x, zero), c.less(c.num(math.Inf(-1)), x))
	undefined = c.and(undefined, c.m.Xor(Bool, whole, c.m.Int(Bool, 1)))
	undefined = c.or(undefined, c.or(c.isNaN(x), c.isNaN(y)))
	r = c.pick(undefined, c.nan(), r)
	trivial := c.or(c.equal(x, one), c.equal(y, zero))
	return c.pick(c.or(trivial, c.and(infinite, c.equal(t, one))), one, r)
}

// expPair is exp(x + low).
func (c calc[V]) expPair(x, low V) V {
	lo, hi := -104.0, 89.5
	if c.float == F64 {
		lo, hi = -746.0, 710.5
	}
	r, _, bits := c.reduceExpPair(c.clampAbove(c.clampBelow(x, lo), hi), low)
	return c.scale(c.expReduced(r), bits)
}
