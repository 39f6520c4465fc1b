package elementary

// halfPi is pi/2 = hi + lo.
func (c calc[V]) halfPi() (hi, lo V) {
	return c.value(0x1.921fb6p+0, 0x1.921fb54442d18p+0), c.value(-0x1.777a5cp-25, 0x1.1a62633145c07p-54)
}

// isNegative tests the sign bit.
func (c calc[V]) isNegative(x V) V {
	return c.m.Compare(c.bits, LT, c.toBits(x), c.integer(0))
}

// atanKernel is atan(x) for 0 <= x <= 1.
func (c calc[V]) atanKernel(x V) V {
	z := c.mul(x, x)
	return c.fma(c.mul(c.poly(z, atanF32, atanF64), z), x, x)
}

// atan is atanKernel(|x|), or pi/2 - atanKernel(1/|x|) beyond 1.
func atan[V any](c calc[V], x V) V {
	t := c.abs(x)
	big := c.less(c.num(1), t)
	p := c.atanKernel(c.pick(big, c.reciprocal(t), t))
	hi, lo := c.halfPi()
	return c.copySign(c.pick(big, c.sub(hi, c.sub(p, lo)), p), x)
}

// atan2 is the angle of the point (x, y), from the arctangent of the smaller coordinate divided by the larger.
func atan2[V any](c calc[V], y, x V) V {
	ax, ay := c.abs(x), c.abs(y)
	steep := c.less(ax, ay)
	small, large := c.pick(steep, ax, ay), c.pick(steep, ay, ax)
	ratio := c.div(small, large)
	ratio = c.pick(c.equal(large, c.num(0)), c.num(0), ratio)
	ratio = c.pick(c.equal(small, c.inf()), c.num(1), ratio)
	p := c.atanKernel(ratio)

	// The angle is p, pi/2 - p, pi - p or pi/2 + p.
	left := c.isNegative(x)
	hi, lo := c.halfPi()
	zero := c.num(0)
	baseHi := c.pick(steep, hi, c.pick(left, c.add(hi, hi), zero))
	baseLo := c.pick(steep, lo, c.pick(left, c.add(lo, lo), zero))
	p = c.pick(c.m.Xor(Bool, steep, left), c.neg(p), p)
	r := c.copySign(c.add(baseHi, c.add(p, baseLo)), y)
	return c.pick(c.or(c.isNaN(x), c.isNaN(y)), c.nan(), r)
}

// asinKernel returns s + s*p = asin(|x|) for |x| <= 1/2, and the half of acos(|x|) beyond, which is
// asin(sqrt((1-|x|)/2)).
func (c calc[V]) asinKernel(x V) (big, s, p V) {
	t := c.abs(x)
	big = c.less(c.num(0.5), t)
	z := c.pick(big, c.fma(t, c.num(-0.5), c.num(0.5)), c.mul(t, t))
	s = c.pick(big, c.sqrt(z), t)
	return big, s, c.mul(c.poly(z, asinF32, asinF64), z)
}

func asin[V any](c calc[V], x V) V {
	big, s, p := c.asinKernel(x)
	hi, lo := c.halfPi()
	twice := c.add(s, s)
	d := c.sub(hi, twice)
	lo = c.add(c.sub(c.sub(hi, d), twice), lo)
	large := c.add(d, c.fma(c.neg(twice), p, lo))
	return c.copySign(c.pick(big, large, c.fma(s, p, s)), x)
}

func acos[V any](c calc[V], x V) V {
	big, s, p := c.asinKernel(x)
	hi, lo := c.halfPi()
	negative := c.less(x, c.num(0))
	twice := c.add(s, s)
	far := c.fma(twice, p, twice)
	far = c.pick(negative, c.sub(c.add(hi, hi), c.sub(far, c.add(lo, lo))), far)
	near := c.fma(s, p, s)
	near = c.sub(hi, c.sub(c.pick(negative, c.neg(near), near), lo))
	return c.pick(big, far, near)
}
