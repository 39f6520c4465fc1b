package elementary

// halfExp returns exp(|x|)/2 and exp(-|x|)/2.
func (c calc[V]) halfExp(x V) (grow, decay V) {
	grow = c.exp(c.abs(x), -1)
	return grow, c.reciprocal(c.mul(c.num(4), grow))
}

// sinh is an odd polynomial up to 1 and (e^|x| - e^-|x|)/2 beyond.
func sinh[V any](c calc[V], x V) V {
	grow, decay := c.halfExp(x)
	t := c.abs(x)
	z := c.mul(t, t)
	small := c.fma(c.mul(c.poly(z, sinhF32, sinhF64), z), t, t)
	return c.copySign(c.pick(c.less(t, c.num(1)), small, c.sub(grow, decay)), x)
}

func cosh[V any](c calc[V], x V) V {
	grow, decay := c.halfExp(x)
	return c.add(grow, decay)
}

// hugeArgument is where adding 1 under a logarithm no longer matters.
func (c calc[V]) hugeArgument() V { return c.value(0x1p30, 0x1p60) }

// asinh is log1p(t + t^2/(1+sqrt(1+t^2))) with t = |x|, or log(t) + ln 2 for huge t.
func asinh[V any](c calc[V], x V) V {
	t := c.abs(x)
	huge := c.less(c.hugeArgument(), t)
	z := c.mul(t, t)
	v := c.div(z, c.add(c.num(1), c.sqrt(c.add(z, c.num(1)))))
	a := c.add(t, v)
	lo := c.add(c.sub(t, a), v)
	r := c.log1p(c.pick(huge, t, a), c.pick(huge, c.num(0), lo), c.pick(huge, c.num(1), c.num(0)))
	return c.copySign(c.pick(c.less(t, c.inf()), r, x), x) // x and not t: PTX leaves the bits of abs(NaN) open
}

// acosh is log1p(t + sqrt(2t + t^2)) with t = x-1, or log(x) + ln 2 for huge x.
func acosh[V any](c calc[V], x V) V {
	huge := c.less(c.hugeArgument(), x)
	t := c.sub(x, c.num(1))
	square := c.fma(t, t, c.add(t, t))
	s := c.sqrt(square)
	lost := c.div(c.fma(c.neg(s), s, square), c.fma(c.num(2), s, c.num(0x1p-100))) // of the root; no division by 0 at x = 1
	a := c.add(s, t)
	lo := c.add(c.add(c.sub(s, a), t), lost)
	r := c.log1p(c.pick(huge, x, a), c.pick(huge, c.num(0), lo), c.pick(huge, c.num(1), c.num(0)))
	r = c.pick(c.less(x, c.inf()), r, x)
	return c.pick(c.less(x, c.num(1)), c.nan(), r)
}

// atanh is an odd polynomial up to 1/2 and log1p(2t/(1-t))/2 beyond, with t = |x|.
func atanh[V any](c calc[V], x V) V {
	t := c.abs(x)
	z := c.mul(t, t)
	small := c.fma(c.mul(c.poly(z, atanhF32, atanhF64), z), t, t)
	a := c.div(c.add(t, t), c.sub(c.num(1), t))
	large := c.mul(c.num(0.5), c.log1p(a, c.num(0), c.num(0)))
	r := c.pick(c.less(t, c.num(0.5)), small, large)
	one := c.num(1)
	r = c.pick(c.equal(t, one), c.inf(), r)
	return c.pick(c.atMost(t, one), c.copySign(r, x), c.nan())
}
