package elementary

func rounding[V any](direction Rounding) func(c calc[V], x V) V {
	return func(c calc[V], x V) V { return c.m.Round(c.float, direction, x) }
}

// roundAwayFromZero rounds halves away from zero.
func roundAwayFromZero[V any](c calc[V], x V) V {
	t := c.abs(x)
	whole := c.m.Round(c.float, Trunc, t)
	up := c.atMost(c.num(0.5), c.sub(t, whole))
	return c.copySign(c.pick(up, c.add(whole, c.num(1)), whole), x)
}

// remainder is C's fmod, exact for all arguments. With |x| = a*2^i and |y| = b*2^j (a, b integers of full precision),
// the result is (a * 2^(i-j) mod b) * 2^j; the power of two is taken modulo b by repeated squaring, so that no loop
// depends on the quotient.
func remainder[V any](c calc[V], x, y V) V {
	ax, ay := c.abs(x), c.abs(y)
	a, i := c.integerParts(ax)
	b, j := c.integerParts(ay)
	d := c.isub(i, j)
	mod := modulus[V]{c, b, c.reciprocal(b)}

	// d is below 2^9 or 2^12; its bits above the lowest 4 or 6 count up to 17 or 32, which is less than the precision.
	squarings := int64(4)
	if c.float == F64 {
		squarings = 6
	}
	p := c.powerOfTwo(c.sar(d, squarings))
	for k := squarings - 1; k >= 0; k-- {
		p = mod.multiply(p, p)
		bit := c.m.And(c.bits, d, c.integer(1<<k))
		p = c.pick(c.m.Compare(c.bits, NE, bit, c.integer(0)), mod.reduce(c.add(p, p)), p)
	}
	r := mod.multiply(p, mod.reduce(a))
	r = c.pick(c.less(r, c.num(0)), c.add(r, b), r)
	r = c.scale(r, j)
	r = c.copySign(r, x)
	r = c.pick(c.m.Compare(c.bits, LT, d, c.integer(0)), x, r)
	defined := c.and(c.less(ax, c.inf()), c.and(c.less(c.num(0), ay), c.atMost(ay, c.inf())))
	return c.pick(defined, r, c.nan())
}

// integerParts writes a positive finite x as m * 2^e with an integer m of full precision, as a float.
func (c calc[V]) integerParts(x V) (m, e V) {
	denormal := c.less(x, c.num(c.tiny))
	bits := c.toBits(c.pick(denormal, c.mul(x, c.num(float64(int64(2)<<c.mantissa))), x))
	one := c.integer((c.bias + c.mantissa) << c.mantissa)
	m = c.fromBits(c.m.Or(c.bits, c.m.And(c.bits, bits, c.integer(1<<c.mantissa-1)), one))
	lift := c.m.Select(c.bits, denormal, c.integer(c.bias+2*c.mantissa+1), c.integer(c.bias+c.mantissa))
	return m, c.isub(c.m.ShrLogical(c.bits, bits, c.integer(c.mantissa)), lift)
}

// modulus computes with integers, held as floats, modulo an integer of full precision. Residues are at most half of it
// in size (and a half more, which the rounding of the quotient may leave).
type modulus[V any] struct {
	calc[V]
	value, inverse V
}

// reduce brings |x| <= 2*value, or the rounded product of two residues, to a residue. The quotient is off by at most
// one in the second case, and the difference is an exact integer, so reducing again is right.
func (m modulus[V]) reduce(x V) V {
	n := m.m.Round(m.float, NearestEven, m.mul(x, m.inverse))
	return m.fma(m.neg(n), m.value, x)
}

// multiply is the residue of the product of two residues.
func (m modulus[V]) multiply(x, y V) V {
	h := m.mul(x, y)
	l := m.fma(x, y, m.neg(h))
	return m.reduce(m.add(m.reduce(m.reduce(h)), l))
}
