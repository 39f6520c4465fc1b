package elementary

import "math"

// window returns the consecutive words table[index], table[index+1], …, count of them, by selects on the bits of index
// (of type t), which is at most len(table)-count.
func window[V any](m Machine[V], t Type, table []int64, index V, count int) []V {
	words := make([]V, len(table))
	for i, w := range table {
		words[i] = m.Int(t, w)
	}
	top := len(table) - count // the largest index
	for step := 1 << (bitLength(top) - 1); step > 0; step >>= 1 {
		bit := m.Compare(t, NE, m.And(t, index, m.Int(t, int64(step))), m.Int(t, 0))
		kept := min(count+step-1, len(words))
		next := make([]V, kept)
		for i := range next {
			next[i] = words[i]
			if i+step < len(words) {
				next[i] = m.Select(t, bit, words[i+step], words[i])
			}
		}
		words = next
	}
	return words
}

func bitLength(n int) int {
	bits := 0
	for ; n > 0; n >>= 1 {
		bits++
	}
	return bits
}

// funnel shifts a row of words left by s bits, 0 <= s < width, dropping the last word.
func funnel[V any](m Machine[V], t Type, words []V, s V, width int64) []V {
	rest := m.Sub(t, m.Int(t, width-1), s)
	out := make([]V, len(words)-1)
	for i := range out {
		low := m.ShrLogical(t, m.ShrLogical(t, words[i+1], m.Int(t, 1)), rest)
		out[i] = m.Or(t, m.Shl(t, words[i], s), low)
	}
	return out
}

// reduceTrig32 is Payne and Hanek's reduction of a float32 x of at least 1/2: |x| = (4k + q) pi/2 + hi + lo, |hi| <=
// pi/4. The mantissa is multiplied by the 96 bits of 2/pi that matter for its exponent; the product's top two bits are
// the quadrant.
func reduceTrig32[V any](c calc[V], x V) (q, hi, lo V) {
	m := c.m
	i64 := func(v int64) V { return m.Int(I64, v) }
	bits := c.toBits(c.abs(x))
	start := m.Sub(I32, m.ShrLogical(I32, bits, m.Int(I32, 23)), m.Int(I32, 120))
	mantissa := m.Or(I32, m.And(I32, bits, m.Int(I32, 0x7fffff)), m.Int(I32, 0x800000))
	index := m.And(I32, m.ShrLogical(I32, start, m.Int(I32, 5)), m.Int(I32, 7))
	words := window(m, I32, twoOverPi32, index, 4)
	words = funnel(m, I32, words, m.And(I32, start, m.Int(I32, 31)), 32)

	wide := func(w V) V { return m.Mul(I64, m.ZeroExtend(mantissa), m.ZeroExtend(w)) }
	product := m.Add(I64, wide(words[1]), m.ShrLogical(I64, wide(words[2]), i64(32)))
	product = m.Add(I64, product, m.Shl(I64, m.ZeroExtend(m.Mul(I32, mantissa, words[0])), i64(32)))
	q = m.Convert(I32, I64, m.ShrLogical(I64, m.Add(I64, product, i64(1<<61)), i64(62)))
	fraction := m.ShrArithmetic(I64, m.Shl(I64, product, i64(2)), i64(1)) // of pi/2, in units of 2^-63
	a := m.Convert(F32, I64, fraction)
	b := m.Convert(F32, I64, m.Sub(I64, fraction, m.Convert(I64, F32, a)))
	hi, lo = c.timesHalfPi(a, b)
	return q, hi, lo
}

// timesHalfPi is (a + b) * 2^-63 * pi/2 as a sum of two floats.
func (c calc[V]) timesHalfPi(a, b V) (hi, lo V) {
	big := c.value(0x1.921fb6p-63, 0x1.921fb54442d18p-63)
	hi = c.mul(a, big)
	lo = c.fma(a, big, c.neg(hi))
	lo = c.fma(a, c.value(-0x1.777a5cp-88, 0x1.1a62633145c07p-117), lo)
	return hi, c.fma(b, big, lo)
}

// reduceTrig gives |x| = (4k + q) pi/2 + hi + lo for a finite x.
func reduceTrig[V any](c calc[V], x V) (q, hi, lo V) {
	if c.float == F32 {
		q, hi, lo = reduceTrig32(c, x)
	} else {
		q, hi, lo = reduceTrig64(c, x)
	}
	t := c.abs(x)
	inside := c.less(t, c.num(0.78125))
	q = c.m.Select(I32, inside, c.m.Int(I32, 0), q)
	return q, c.pick(inside, t, hi), c.pick(inside, c.num(0), lo)
}

// sinKernel is sin(hi + lo) for |hi| <= pi/4.
func (c calc[V]) sinKernel(hi, lo V) V {
	z := c.mul(hi, hi)
	p := c.mul(c.poly(z, sinF32, sinF64), z)
	return c.add(hi, c.fma(p, hi, lo))
}

// cosKernel is cos(hi + lo) for |hi| <= pi/4.
func (c calc[V]) cosKernel(hi, lo V) V {
	z := c.mul(hi, hi)
	rest := c.mul(c.mul(z, z), c.poly(z, cosF32, cosF64))
	rest = c.fma(c.neg(hi), lo, rest)
	w := c.fma(z, c.num(-0.5), c.num(1))
	return c.add(w, c.fma(z, c.num(-0.5), c.add(c.sub(c.num(1), w), rest)))
}

// quadrant picks sin or cos by q and applies the sign.
func (c calc[V]) quadrant(q, hi, lo V) V {
	m := c.m
	odd := m.Compare(I32, NE, m.And(I32, q, m.Int(I32, 1)), m.Int(I32, 0))
	r := c.pick(odd, c.cosKernel(hi, lo), c.sinKernel(hi, lo))
	negative := m.Compare(I32, NE, m.And(I32, q, m.Int(I32, 2)), m.Int(I32, 0))
	return c.pick(negative, c.neg(r), r)
}

func sine[V any](c calc[V], x V) V {
	q, hi, lo := reduceTrig(c, x)
	r := c.quadrant(q, hi, lo)
	negative := c.m.Compare(c.bits, LT, c.toBits(x), c.integer(0))
	r = c.pick(negative, c.neg(r), r)
	return c.pick(c.less(c.abs(x), c.inf()), r, c.nan())
}

func cosine[V any](c calc[V], x V) V {
	q, hi, lo := reduceTrig(c, x)
	r := c.quadrant(c.m.Add(I32, q, c.m.Int(I32, 1)), hi, lo)
	return c.pick(c.less(c.abs(x), c.inf()), r, c.nan())
}

// reduceTrig64 is reduceTrig32 for float64: the product of the mantissa with the 192 bits of 2/pi that matter, of
// which the top 128 are kept.
func reduceTrig64[V any](c calc[V], x V) (q, hi, lo V) {
	m := c.m
	k := func(v int64) V { return m.Int(I64, v) }
	bits := c.toBits(c.abs(x))
	// Bit j (from 1) of 2/pi is bit 63+j of the table. The window begins at j = exponent - 1076.
	start := m.Sub(I64, m.ShrLogical(I64, bits, k(52)), k(1076-63))
	mantissa := m.Or(I64, m.And(I64, bits, k(1<<52-1)), k(1<<52))
	index := m.And(I64, m.ShrLogical(I64, start, k(6)), k(31))
	words := funnel(m, I64, window(m, I64, twoOverPi64, index, 4), m.And(I64, start, k(63)), 64)

	high, low := c.multiply192(mantissa, words)
	q = m.Convert(I32, I64, m.ShrLogical(I64, m.Add(I64, high, k(1<<61)), k(62)))
	high = m.Or(I64, m.Shl(I64, high, k(2)), m.ShrLogical(I64, low, k(62))) // the fraction of pi/2 in units of 2^-64
	low = m.Shl(I64, low, k(2))
	rest := m.Or(I64, m.ShrLogical(I64, low, k(2)), m.Shl(I64, m.And(I64, high, k(1)), k(62))) // in units of 2^-126
	high = m.ShrArithmetic(I64, high, k(1))                                                    // in units of 2^-63
	a := m.Convert(F64, I64, high)
	b := m.Convert(F64, I64, m.Sub(I64, high, m.Convert(I64, F64, a)))
	b = c.fma(m.Convert(F64, I64, rest), c.num(0x1p-63), b)
	hi, lo = c.timesHalfPi(a, b)
	return q, hi, lo
}

// multiply192 is the top 128 of the low 192 bits of x * words, words being three 64-bit words, highest first.
func (c calc[V]) multiply192(x V, words []V) (high, low V) {
	m := c.m
	half := m.Int(I64, 32)
	mask := m.Int(I64, math.MaxUint32)
	split := func(v V) (hi, lo V) { return m.ShrLogical(I64, v, half), m.And(I64, v, mask) }
	xh, xl := split(x)
	// full is the 128-bit product of x with a word.
	full := func(w V) (hi, lo V) {
		wh, wl := split(w)
		p00 := m.Mul(I64, xl, wl)
		middle := m.Add(I64, m.Mul(I64, xh, wl), m.ShrLogical(I64, p00, half))
		mh, ml := split(middle)
		cross := m.Add(I64, m.Mul(I64, xl, wh), ml)
		ch, cl := split(cross)
		hi = m.Add(I64, m.Mul(I64, xh, wh), m.Add(I64, mh, ch))
		return hi, m.Or(I64, m.Shl(I64, cl, half), m.And(I64, p00, mask))
	}
	h2, _ := full(words[2])
	h1, l1 := full(words[1])
	// The carry of l1 + h2, in halves.
	l1h, l1l := split(l1)
	h2h, h2l := split(h2)
	carry, _ := split(m.Add(I64, l1l, h2l))
	carry, _ = split(m.Add(I64, m.Add(I64, l1h, h2h), carry))
	low = m.Add(I64, l1, h2)
	high = m.Add(I64, m.Add(I64, m.Mul(I64, x, words[0]), h1), carry)
	return high, low
}

// tanKernel is tan(hi + lo) for |hi| <= pi/4.
func (c calc[V]) tanKernel(hi, lo V) V {
	z := c.mul(hi, hi)
	p := c.mul(c.poly(z, tanF32, tanF64), z)
	return c.add(hi, c.fma(p, hi, c.fma(z, lo, lo)))
}

// tan is tan(r) in even quadrants and -1/tan(r) in odd ones.
func tan[V any](c calc[V], x V) V {
	m := c.m
	q, hi, lo := reduceTrig(c, x)
	t := c.tanKernel(hi, lo)
	odd := m.Compare(I32, NE, m.And(I32, q, m.Int(I32, 1)), m.Int(I32, 0))
	r := c.pick(odd, c.neg(c.reciprocal(t)), t)
	r = c.pick(c.isNegative(x), c.neg(r), r)
	return c.pick(c.less(c.abs(x), c.inf()), r, c.nan())
}

// timesPi is pi*x in two parts.
func (c calc[V]) timesPi(x V) (hi, lo V) {
	halfHi, halfLo := c.halfPi()
	twice := c.add(x, x)
	hi = c.mul(twice, halfHi)
	return hi, c.fma(twice, halfLo, c.fma(twice, halfHi, c.neg(hi)))
}
