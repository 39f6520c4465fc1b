package emu

import (
	"math"
	"math/bits"
)

// The quiet NaNs that floating-point instructions return.
const (
	nan32 = 0x7fffffff
	nan16 = 0x7fff
	nan64 = 0xfff8000000000000
)

func canonical32(v float32) uint32 {
	if v != v {
		return nan32
	}
	return math.Float32bits(v)
}

func canonical64(v float64) uint64 {
	if v != v {
		return nan64
	}
	return math.Float64bits(v)
}

// format is a binary floating-point format.
type format struct {
	precision int // significant bits with the hidden one
	minimum   int // smallest normal exponent
	maximum   int // largest exponent
	nan       uint64
}

var (
	formatF64  = format{53, -1022, 1023, nan64}
	formatF32  = format{24, -126, 127, nan32}
	formatF16  = format{11, -14, 15, nan16}
	formatBF16 = format{8, -126, 127, nan16}
)

// rounding is a rounding mode.
type rounding uint8

const (
	toNearest rounding = iota
	toZero
	toMinus
	toPlus
)

// encode rounds (-1)^sign · m · 2^e once to the format. The lowest bit of m may be sticky, as
// long as m has two bits more than the format.
func (f format) encode(negative bool, m uint64, e int, mode rounding) uint64 {
	width := f.precision + bits.Len64(uint64(f.maximum)) // exponent field: maximum = 2^(w-1)-1
	sign := uint64(0)
	if negative {
		sign = 1 << width
	}
	if m == 0 {
		return sign
	}
	top := e + bits.Len64(m) - 1 // exponent of the leading bit
	unit := max(top, f.minimum) - f.precision + 1
	up := mode == toPlus && !negative || mode == toMinus && negative
	var q uint64
	switch shift := unit - e; {
	case shift <= 0:
		q = m << -shift
	case shift > 64:
		if up {
			q = 1
		}
	default:
		var rest uint64 // the bits below the unit, left-aligned
		if shift == 64 {
			rest = m
		} else {
			q, rest = m>>shift, m<<(64-shift)
		}
		switch mode {
		case toNearest:
			if rest > 1<<63 || rest == 1<<63 && q&1 != 0 {
				q++
			}
		default:
			if up && rest != 0 {
				q++
			}
		}
	}
	// q has at most precision bits, or is the next power of two; adding it to the exponent
	// field carries as it should.
	result := q
	if top >= f.minimum {
		result += uint64(top-f.minimum) << (f.precision - 1)
	}
	infinity := uint64(f.maximum-f.minimum+2) << (f.precision - 1)
	if result >= infinity {
		result = infinity
		if mode == toZero || mode != toNearest && !up {
			result--
		}
	}
	return sign | result
}

// round rounds a float64 (itself exact or rounded to odd) to the format.
func (f format) round(v float64, mode rounding) uint64 {
	if v != v {
		return f.nan
	}
	if math.IsInf(v, 0) {
		// encode saturates by mode, an infinity stays one.
		infinity := uint64(f.maximum-f.minimum+2) << (f.precision - 1)
		if v < 0 {
			infinity |= 1 << (f.precision + bits.Len64(uint64(f.maximum)))
		}
		return infinity
	}
	raw := math.Float64bits(v)
	m, e := raw&(1<<52-1), int(raw>>52&0x7ff)
	if e == 0 {
		e = 1
	} else {
		m |= 1 << 52
	}
	return f.encode(raw>>63 != 0, m, e-1075, mode)
}

// oddSum is a + b rounded to odd: rounding it again to a format of at most 51 bits gives the
// single rounding of the exact sum.
func oddSum(a, b float64) float64 {
	s := float64(a + b)
	if math.IsInf(s, 0) || s != s {
		return s
	}
	bb := float64(s - a)
	err := float64(float64(a-float64(s-bb)) + float64(b-bb))
	return stickyBit(s, err)
}

// stickyBit moves s to the odd neighbour towards the exact value s + err.
func stickyBit(s, err float64) float64 {
	raw := math.Float64bits(s)
	if err == 0 || raw&1 != 0 {
		return s
	}
	if (err > 0) == (s > 0) {
		return math.Float64frombits(raw + 1)
	}
	if s == 0 {
		return err
	}
	return math.Float64frombits(raw - 1)
}

// oddQuotient and oddRoot are a/b and sqrt(a) of float32 values, rounded to odd in float64.
func oddQuotient(a, b float64) float64 {
	q := float64(a / b)
	if q != q || math.IsInf(q, 0) || q == 0 {
		return q
	}
	rest := math.FMA(-q, b, a)
	if b < 0 {
		rest = -rest
	}
	return stickyBit(q, rest)
}

func oddRoot(a float64) float64 {
	r := math.Sqrt(a)
	if r != r || math.IsInf(r, 0) || r == 0 {
		return r
	}
	return stickyBit(r, math.FMA(-r, r, a))
}

// fma32 is the single-rounded float32 a*b + c. The product is exact in float64; the sum may
// be rounded a second time, which matters only when it lies on a tie of the float32 grid or
// below the normal range.
func fma32(a, b, c float32) float32 {
	s := float64(float64(a)*float64(b)) + float64(c)
	raw := math.Float64bits(s)
	if raw&0x1fffffff == 0x10000000 || raw<<1 < 0x381<<53 {
		return float32(oddSum(float64(float64(a)*float64(b)), float64(c)))
	}
	return float32(s)
}

// hotFloat32 has the float32 operations that inner loops are made of.
var hotFloat32 = map[string]lane32{
	"add": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = canonical32(math.Float32frombits(a[i]) + math.Float32frombits(b[i]))
		}
	},
	"sub": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = canonical32(math.Float32frombits(a[i]) - math.Float32frombits(b[i]))
		}
	},
	"mul": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = canonical32(math.Float32frombits(a[i]) * math.Float32frombits(b[i]))
		}
	},
	"fma": fmaPortable,
	"div": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = canonical32(math.Float32frombits(a[i]) / math.Float32frombits(b[i]))
		}
	},
	"min": func(d, a, b, _ *lanes32) {
		for i := range d {
			x, y := math.Float32frombits(a[i]), math.Float32frombits(b[i])
			switch {
			case x < y:
				d[i] = a[i]
			case y < x:
				d[i] = b[i]
			default:
				d[i] = canonical32(min32(x, y, 0))
			}
		}
	},
	"max": func(d, a, b, _ *lanes32) {
		for i := range d {
			x, y := math.Float32frombits(a[i]), math.Float32frombits(b[i])
			switch {
			case x > y:
				d[i] = a[i]
			case y > x:
				d[i] = b[i]
			default:
				d[i] = canonical32(max32(x, y, 0))
			}
		}
	},
	"rcp": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = canonical32(1 / math.Float32frombits(a[i]))
		}
	},
	"sqrt": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = canonical32(float32(math.Sqrt(float64(math.Float32frombits(a[i])))))
		}
	},
	"neg": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = canonical32(math.Float32frombits(a[i] ^ 1<<31))
		}
	},
	"abs": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = canonical32(math.Float32frombits(a[i] &^ (1 << 31)))
		}
	},
	"min.NaN": func(d, a, b, _ *lanes32) {
		for i := range d {
			x, y := math.Float32frombits(a[i]), math.Float32frombits(b[i])
			switch {
			case x < y:
				d[i] = a[i]
			case y < x:
				d[i] = b[i]
			case x == y:
				d[i] = a[i] | b[i] // equal, or zeros of which one may be negative
			default:
				d[i] = nan32
			}
		}
	},
	"max.NaN": func(d, a, b, _ *lanes32) {
		for i := range d {
			x, y := math.Float32frombits(a[i]), math.Float32frombits(b[i])
			switch {
			case x > y:
				d[i] = a[i]
			case y > x:
				d[i] = b[i]
			case x == y:
				d[i] = a[i] & b[i]
			default:
				d[i] = nan32
			}
		}
	},
	"copysign": bits32(func(a, b, _ uint32) uint32 { return a&(1<<31) | b&^(1<<31) }),
}

// fmaPortable is fma.rn.f32.
func fmaPortable(d, a, b, c *lanes32) {
	for i := range d {
		d[i] = canonical32(fma32(math.Float32frombits(a[i]), math.Float32frombits(b[i]), math.Float32frombits(c[i])))
	}
}

// min32 and max32 ignore one NaN and order -0 before +0.
func min32(a, b, _ float32) float32 {
	switch {
	case a != a:
		return b
	case b != b || a < b:
		return a
	case a == 0 && b == 0 && math.Signbit(float64(a)):
		return a
	}
	return b
}

func max32(a, b, _ float32) float32 {
	switch {
	case a != a:
		return b
	case b != b || a > b:
		return a
	case a == 0 && b == 0 && math.Signbit(float64(b)):
		return a
	}
	return b
}

func min64(a, b, _ float64) float64 {
	switch {
	case a != a:
		return b
	case b != b || a < b:
		return a
	case a == 0 && b == 0 && math.Signbit(a):
		return a
	}
	return b
}

func max64(a, b, _ float64) float64 {
	switch {
	case a != a:
		return b
	case b != b || a > b:
		return a
	case a == 0 && b == 0 && math.Signbit(b):
		return a
	}
	return b
}

// float64Ops are the float64 operations, rounded to nearest. Unlike those on float32 they hand
// on the NaN that they get, made quiet; of several the operand that priority names first.
var float64Ops = map[string]lane64{
	"add":  propagateNaN(func(a, b, _ float64) float64 { return a + b }, 1, 0),
	"sub":  propagateNaN(func(a, b, _ float64) float64 { return a - b }, 1, 0),
	"mul":  propagateNaN(func(a, b, _ float64) float64 { return a * b }, 1, 0),
	"div":  propagateNaN(func(a, b, _ float64) float64 { return a / b }, 0, 1),
	"fma":  propagateNaN(math.FMA, 1, 2, 0),
	"rcp":  propagateNaN(func(a, _, _ float64) float64 { return 1 / a }, 0),
	"sqrt": propagateNaN(func(a, _, _ float64) float64 { return math.Sqrt(a) }, 0),
	"neg":  propagateNaN(func(a, _, _ float64) float64 { return -a }, 0),
	"abs":  propagateNaN(func(a, _, _ float64) float64 { return math.Abs(a) }, 0),
	"min":  orderFloat64(min64),
	"max":  orderFloat64(max64),
	"copysign": bits64(func(a, b, _ uint64) uint64 {
		return a&(1<<63) | b&^(1<<63)
	}),
}

// quietNaN is the bit that a signalling NaN of float64 lacks.
const quietNaN = 1 << 51

func isNaN64(v uint64) bool { return v<<1 > 0x7ff<<53 }

// propagateNaN lifts a float64 function. priority orders the operands.
func propagateNaN(f func(a, b, c float64) float64, priority ...int) lane64 {
	return func(d, a, b, c *lanes64) {
		operands := [3]*lanes64{a, b, c}
		for i := range d {
			result := canonical64(f(math.Float64frombits(a[i]), math.Float64frombits(b[i]), math.Float64frombits(c[i])))
			if isNaN64(result) {
				for _, n := range priority {
					if v := operands[n][i]; isNaN64(v) {
						result = v | quietNaN
						break
					}
				}
			}
			d[i] = result
		}
	}
}

// orderFloat64 lifts min and max, which give a NaN only if both operands are.
func orderFloat64(f func(a, b, c float64) float64) lane64 {
	return bits64(func(a, b, _ uint64) uint64 {
		if isNaN64(a) && isNaN64(b) {
			return b | quietNaN
		}
		return math.Float64bits(f(math.Float64frombits(a), math.Float64frombits(b), 0))
	})
}

// directed32 are the float32 operations with another rounding than to nearest: the exact
// result, rounded to odd in float64, is rounded once.
func directed32(operation string, mode rounding) lane32 {
	var exact func(a, b, c float64) float64
	switch operation {
	case "add":
		exact = func(a, b, _ float64) float64 { return directedZero(oddSum(a, b), a, b, mode) }
	case "sub":
		exact = func(a, b, _ float64) float64 { return directedZero(oddSum(a, -b), a, -b, mode) }
	case "mul":
		exact = func(a, b, _ float64) float64 { return a * b }
	case "fma":
		exact = func(a, b, c float64) float64 {
			p := float64(a * b)
			return directedZero(oddSum(p, c), p, c, mode)
		}
	case "div":
		exact = func(a, b, _ float64) float64 { return oddQuotient(a, b) }
	case "rcp":
		exact = func(a, _, _ float64) float64 { return oddQuotient(1, a) }
	case "sqrt":
		exact = func(a, _, _ float64) float64 { return oddRoot(a) }
	default:
		return nil
	}
	wide := func(v uint32) float64 { return float64(math.Float32frombits(v)) }
	return bits32(func(a, b, c uint32) uint32 {
		return uint32(formatF32.round(exact(wide(a), wide(b), wide(c)), mode))
	})
}

// directedZero gives an exact zero sum of opposite terms the sign that the mode asks for.
func directedZero(s, a, b float64, mode rounding) float64 {
	if s == 0 && mode == toMinus && (math.Signbit(a) || math.Signbit(b)) {
		return math.Copysign(0, -1)
	}
	return s
}

// smallFloat is arithmetic on a 16-bit format: operands widen exactly, the result is rounded
// once.
type smallFloat struct {
	format format
	widen  func(uint32) float64
}

var (
	half      = smallFloat{formatF16, widenF16}
	brainHalf = smallFloat{formatBF16, widenBF16}
)

func widenBF16(v uint32) float64 { return float64(math.Float32frombits(v << 16)) }

func widenF16(v uint32) float64 {
	exponent, fraction := int(v>>10&0x1f), v&0x3ff
	var f float64
	switch {
	case exponent == 31 && fraction != 0:
		return math.NaN()
	case exponent == 31:
		f = math.Inf(1)
	case exponent == 0:
		f = math.Ldexp(float64(fraction), -24)
	default:
		f = math.Float64frombits(uint64(exponent-15+1023)<<52 | uint64(fraction)<<42)
	}
	if v&0x8000 != 0 {
		f = -f
	}
	return f
}

// operation finds the scalar meaning of an instruction on the format.
func (s smallFloat) operation(name string) func(a, b, c uint32) uint32 {
	var f func(a, b, c float64) float64
	switch name {
	case "add":
		f = func(a, b, _ float64) float64 { return oddSum(a, b) }
	case "sub":
		f = func(a, b, _ float64) float64 { return oddSum(a, -b) }
	case "mul":
		f = func(a, b, _ float64) float64 { return a * b }
	case "fma":
		f = func(a, b, c float64) float64 { return oddSum(float64(a*b), c) }
	case "fma.relu":
		f = func(a, b, c float64) float64 { return relu(oddSum(float64(a*b), c)) }
	case "min":
		f = min64
	case "max":
		f = max64
	case "min.NaN", "max.NaN":
		order := min64
		if name == "max.NaN" {
			order = max64
		}
		f = func(a, b, _ float64) float64 {
			if a != a || b != b {
				return math.NaN()
			}
			return order(a, b, 0)
		}
	case "neg":
		f = func(a, _, _ float64) float64 { return -a }
	case "abs":
		f = func(a, _, _ float64) float64 { return math.Abs(a) }
	case "ex2":
		f = func(a, _, _ float64) float64 { return exp2(a) }
	case "tanh":
		f = func(a, _, _ float64) float64 { return tanh(a) }
	default:
		return nil
	}
	return func(a, b, c uint32) uint32 {
		return uint32(s.format.round(f(s.widen(a), s.widen(b), s.widen(c)), toNearest))
	}
}

// relu is max(v, 0) that keeps NaN.
func relu(v float64) float64 {
	if v < 0 || v == 0 {
		return 0
	}
	return v
}

// packed applies a 16-bit operation to both halves.
func packed(f func(a, b, c uint32) uint32) func(a, b, c uint32) uint32 {
	return func(a, b, c uint32) uint32 {
		return f(a&0xffff, b&0xffff, c&0xffff) | f(a>>16, b>>16, c>>16)<<16
	}
}

// flush32 replaces a subnormal by a zero of its sign.
func flush32(v uint32) uint32 {
	if v&0x7f800000 == 0 {
		return v & 0x80000000
	}
	return v
}

// saturateFloat32 clamps to [0, 1]; NaN becomes 0.
func saturateFloat32(v uint32) uint32 {
	switch f := math.Float32frombits(v); {
	case f >= 1:
		return 0x3f800000
	case f > 0:
		return v
	}
	return 0
}

// withFlush and withSaturation wrap a float32 operation for .ftz and .sat.
func withFlush(f lane32) lane32 {
	return func(d, a, b, c *lanes32) {
		var fa, fb, fc lanes32
		for i := range d {
			fa[i], fb[i], fc[i] = flush32(a[i]), flush32(b[i]), flush32(c[i])
		}
		f(d, &fa, &fb, &fc)
		for i := range d {
			d[i] = flush32(d[i])
		}
	}
}

func withSaturation(f lane32) lane32 {
	return func(d, a, b, c *lanes32) {
		f(d, a, b, c)
		for i := range d {
			d[i] = saturateFloat32(d[i])
		}
	}
}

// exp2 and tanh stand in for the hardware's approximations: they are computed in float64 to
// about 1e-16 and rounded by the caller, so they are closer to the truth than the hardware,
// and the same on every machine.
func exp2(x float64) float64 {
	switch {
	case x != x:
		return x
	case x >= 1024:
		return math.Inf(1)
	case x < -1080:
		return 0
	}
	whole := math.RoundToEven(x)
	t := float64(float64(x-whole) * math.Ln2)
	sum := 1.0
	for n := 13.0; n >= 1; n-- { // Horner's rule for the exponential series
		sum = 1 + float64(float64(t*sum)/n)
	}
	return math.Ldexp(sum, int(whole))
}

func tanh(x float64) float64 {
	switch size := math.Abs(x); {
	case x != x || size < 1e-5:
		return x
	case size > 20:
		return math.Copysign(1, x)
	}
	e := exp2(float64(x * (2 * math.Log2E)))
	return float64(e-1) / float64(e+1)
}

// approximate32 are the approximate float32 instructions.
var approximate32 = map[string]lane32{
	"ex2":   liftFloat32(func(a, _, _ float32) float32 { return float32(exp2(float64(a))) }),
	"tanh":  liftFloat32(func(a, _, _ float32) float32 { return float32(tanh(float64(a))) }),
	"rsqrt": liftFloat32(func(a, _, _ float32) float32 { return float32(1 / math.Sqrt(float64(a))) }),
	"rcp":   hotFloat32["rcp"],
	"sqrt":  hotFloat32["sqrt"],
	"div":   hotFloat32["div"],
}

// floatOrder is the relation of two floats as a set of bits, for comparisons.
const (
	less = 1 << iota
	equal
	greater
	unordered
)

// floatComparisons maps an operator to the relations that satisfy it.
var floatComparisons = map[string]uint8{
	"eq": equal, "ne": less | greater, "lt": less, "le": less | equal, "gt": greater, "ge": greater | equal,
	"equ": equal | unordered, "neu": less | greater | unordered, "ltu": less | unordered,
	"leu": less | equal | unordered, "gtu": greater | unordered, "geu": greater | equal | unordered,
	"num": less | equal | greater, "nan": unordered,
}

func relation(a, b float64) uint8 {
	switch {
	case a < b:
		return less
	case a == b:
		return equal
	case a > b:
		return greater
	}
	return unordered
}

// compareFloat32 compares values that widen turns into float64.
func compareFloat32(operator string, widen func(uint32) float64) compare32 {
	set, ok := floatComparisons[operator]
	if !ok {
		return nil
	}
	return func(a, b *lanes32) (m uint32) {
		for i := range a {
			m |= bit(set&relation(widen(a[i]), widen(b[i])) != 0) << i
		}
		return m
	}
}

func compareFloat64(operator string) compare64 {
	set, ok := floatComparisons[operator]
	if !ok {
		return nil
	}
	return func(a, b *lanes64) (m uint32) {
		for i := range a {
			m |= bit(set&relation(math.Float64frombits(a[i]), math.Float64frombits(b[i])) != 0) << i
		}
		return m
	}
}

func widenF32(v uint32) float64 { return float64(math.Float32frombits(v)) }

func widenFlushed(v uint32) float64 { return float64(math.Float32frombits(flush32(v))) }
