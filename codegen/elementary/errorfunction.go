package elementary

// erf32 is 1 - (1-h/2)^2 = h - h^2/4, where h = 2(1 - sqrt(erfc(|x|))) is a polynomial: it has the sign, the zero and
// nearly the slope of erf, so that nothing cancels, and is smoother, so that one polynomial serves for all arguments.
func erf32[V any](c calc[V], x V) V {
	t := c.clampAbove(c.abs(x), 0x1.f333dp+1) // the formula gives 1 there
	h := c.fma(c.horner(t, erfRootF32), t, t)
	return c.copySignOfPositive(c.fma(h, c.mul(h, c.num(-0.25)), h), x)
}

// erfcPositive is erfc(x) for x >= 0: exp(-x^2) * Q(t)/(1+2x) with a polynomial Q of t = (x-k)/(x+k).
func (c calc[V]) erfcPositive(x V) V {
	limit, k := 10.1875, 2.0
	if c.float == F64 {
		limit, k = 28, 4
	}
	x = c.clampAbove(x, limit)
	table := c.choose(erfcF32, erfcF64)
	t := c.div(c.sub(x, c.num(k)), c.add(x, c.num(k)))
	inner := c.horner(t, table[1:])
	first := c.num(table[0])
	q := c.fma(inner, t, first)
	qLow := c.fma(inner, t, c.sub(first, q))
	// quotient = q/(1+2x), corrected for the roundings of 1+2x, its reciprocal and the product.
	twice := c.add(x, x)
	sum := c.add(twice, c.num(1))
	lost := c.sub(c.num(1), c.sub(sum, twice))
	inverse := c.reciprocalAbove1(sum)
	quotient := c.mul(q, inverse)
	minus := c.neg(quotient)
	correction := c.mul(c.fma(lost, minus, c.add(qLow, c.fma(sum, minus, q))), inverse)

	square := c.mul(x, x)
	r, rLow, bits := c.reduceExpPair(c.neg(square), c.fma(c.neg(x), x, square))
	curve := c.fma(c.mul(c.poly(r, expF32, expF64), r), r, rLow) // exp(r) - 1 - r
	rest := c.fma(r, quotient, c.fma(curve, quotient, correction))
	return c.scale(c.add(quotient, rest), bits)
}

// erfc is 1 - erf below 0.75 and erfcPositive beyond, with erfc(x) = 2 - erfc(-x) for x < 0.
func erfc[V any](c calc[V], x V) V {
	// From 1/4 on, 1 - x - x*p is computed as 1/2 - (x*p + (x - 1/2)), where the inner difference is exact.
	p := c.poly(c.mul(x, x), erfF32, erfF64)
	low := c.less(x, c.num(0.25))
	near := c.fma(p, x, c.sub(x, c.pick(low, c.num(0), c.num(0.5))))
	near = c.sub(c.pick(low, c.num(1), c.num(0.5)), near)
	t := c.abs(x)
	y := c.erfcPositive(t)
	y = c.pick(c.less(x, c.num(0)), c.sub(c.num(2), y), y)
	return c.pick(c.less(t, c.num(0.75)), near, y)
}

// erf64 is an odd polynomial up to 0.84375 and 1 - erfc beyond.
func erf64[V any](c calc[V], x V) V {
	t := c.abs(x)
	small := c.fma(c.horner(c.mul(t, t), erfF64), t, t)
	large := c.sub(c.num(1), c.erfcPositive(t))
	return c.copySign(c.pick(c.less(t, c.num(0.84375)), small, large), x)
}

// erfInv is x*P(w) with w = -log(1-x^2) and polynomials P of w or of its root; in float64, below 1/2, it is an odd
// polynomial whose first coefficient, sqrt(pi)/2, is in two parts.
func erfInv[V any](c calc[V], x V) V {
	square := c.mul(x, x)
	lost := c.fma(x, x, c.neg(square))
	w := c.neg(c.log1p(c.neg(square), c.neg(lost), c.num(0)))
	root := c.sqrt(w)
	var p, low V
	if c.float == F32 {
		p, low = c.piecewise(
			piece[V]{table: erfInvTailF32, argument: c.sub(root, c.num(3))},
			piece[V]{table: erfInvCentralF32, argument: c.sub(w, c.num(2.5)), where: c.less(w, c.num(5))})
	} else {
		p, low = c.piecewise(
			piece[V]{table: erfInvTailF64, argument: c.sub(root, c.num(5))},
			piece[V]{table: erfInvMiddleF64, argument: c.sub(root, c.num(3.25)), where: c.less(w, c.num(16))},
			piece[V]{table: erfInvCentralF64, argument: c.sub(w, c.num(3.25)), where: c.less(w, c.num(6.25))})
	}
	t := c.abs(x)
	one := c.num(1)
	r := c.fma(p, x, c.mul(low, x))
	if c.float == F64 {
		small := c.fma(square, c.horner(square, erfInvSmallF64), c.num(-0x1.618f13eb7ca89p-55))
		r = c.pick(c.less(t, c.num(0.5)), c.fma(small, x, c.mul(x, c.num(0x1.c5bf891b4ef6bp-1))), r)
	}
	r = c.copySign(c.pick(c.less(t, one), r, c.inf()), x)
	return c.pick(c.atMost(t, one), r, c.nan())
}

// piece is a polynomial in its own argument, used where a condition holds.
type piece[V any] struct {
	table           []float64
	argument, where V
}

// piecewise evaluates the last piece whose condition holds, or the first, as a sum of two floats: the last step of
// Horner's rule is done with its rounding error.
func (c calc[V]) piecewise(pieces ...piece[V]) (hi, lo V) {
	var inner, argument, first V
	for i, p := range pieces {
		n, f := c.horner(p.argument, p.table[1:]), c.num(p.table[0])
		if i == 0 {
			inner, argument, first = n, p.argument, f
			continue
		}
		inner, argument, first = c.pick(p.where, n, inner), c.pick(p.where, p.argument, argument), c.pick(p.where, f, first)
	}
	hi = c.fma(inner, argument, first)
	return hi, c.fma(inner, argument, c.sub(first, hi))
}
