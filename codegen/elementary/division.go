package elementary

// Divisor divides many numbers by one, with six instructions for each quotient instead of a division.
type Divisor[V any] struct {
	c                    calc[V]
	minus                V // -b
	inverse, low, scaled V // 1/b and what its rounding lost; 1/b times 2^-64
}

// divisorScale keeps remainders of the smallest numbers from being denormal.
const divisorScale = 0x1p64

// NewDivisor prepares the float32 divisor b, which is in [1, 2^48] or NaN.
func NewDivisor[V any](m Machine[V], b V) Divisor[V] {
	c := calc[V]{binary32, m}
	d := Divisor[V]{c: c, minus: c.neg(b), inverse: c.reciprocalAbove1(b)}
	d.low = c.mul(c.fma(d.minus, d.inverse, c.num(1)), d.inverse)
	d.scaled = c.mul(d.inverse, c.num(1/divisorScale))
	return d
}

// Divide is a/b for a in [0, 1] or NaN, correctly rounded where it is at least the smallest normal number. A denormal
// quotient that lies exactly between two numbers may become either of them.
//
// The first quotient is off by less than a unit in the last place, since 1/b is known to twice the precision, so that
// its remainder is exact; adding the remainder over b to it rounds as the quotient itself would (Markstein, 2000).
func (d Divisor[V]) Divide(a V) V {
	c := d.c
	q := c.fma(a, d.inverse, c.mul(a, d.low))
	rest := c.fma(d.minus, c.mul(q, c.num(divisorScale)), c.mul(a, c.num(divisorScale)))
	return c.fma(rest, d.scaled, q)
}
