package masks

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"weft/ir"
)

// form is an affine function of coordinates: c plus the sum of coefficients times variables.
type form struct {
	c     ir.Dim
	terms []term // ascending by variable; no coefficient is zero
}

type term struct {
	variable    int
	coefficient int64
}

func constantForm(c ir.Dim) form { return form{c: c} }

func variableForm(v int) form { return form{terms: []term{{v, 1}}} }

// add returns f + k*g.
func (f form) add(g form, k int64) form {
	sum := form{c: f.c.Add(g.c.MulConst(k))}
	a, b := f.terms, g.terms
	for len(a) > 0 || len(b) > 0 {
		var t term
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].variable < b[0].variable:
			t, a = a[0], a[1:]
		case len(a) == 0 || b[0].variable < a[0].variable:
			t, b = term{b[0].variable, k * b[0].coefficient}, b[1:]
		default:
			t, a, b = term{a[0].variable, a[0].coefficient + k*b[0].coefficient}, a[1:], b[1:]
		}
		if t.coefficient != 0 {
			sum.terms = append(sum.terms, t)
		}
	}
	return sum
}

// plus returns f + d.
func (f form) plus(d ir.Dim) form { return form{f.c.Add(d), f.terms} }

// scale returns d*f, where that is affine.
func (f form) scale(d ir.Dim) (form, bool) {
	if k, ok := d.IsConst(); ok && abs(k) <= largestCoefficient {
		return form{}.add(f, k), true
	}
	if f.fixed() {
		return constantForm(f.c.Mul(d)), true
	}
	return form{}, false
}

// fixed tells whether f is the same at every point.
func (f form) fixed() bool { return len(f.terms) == 0 }

func (f form) equal(g form) bool { return slices.Equal(f.terms, g.terms) && f.c.Equal(g.c) }

// coefficient is that of a variable.
func (f form) coefficient(variable int) int64 {
	for _, t := range f.terms {
		if t.variable == variable {
			return t.coefficient
		}
	}
	return 0
}

// substitute puts g in the place of a variable.
func (f form) substitute(variable int, g form) form {
	k := f.coefficient(variable)
	if k == 0 {
		return f
	}
	return f.add(variableForm(variable), -k).add(g, k)
}

// divide writes f as n*quotient + rest with every term that allows it in the quotient.
func (f form) divide(n int64) (quotient, rest form, ok bool) {
	for _, t := range f.terms {
		if t.coefficient%n == 0 {
			quotient.terms = append(quotient.terms, term{t.variable, t.coefficient / n})
		} else {
			rest.terms = append(rest.terms, t)
		}
	}
	if c, fixed := f.c.IsConst(); fixed {
		quotient.c = ir.Const(c).FloorDiv(ir.Const(n))
		rest.c = f.c.Sub(quotient.c.MulConst(n))
		return quotient, rest, true
	}
	quotient.c, ok = f.c.DivExact(ir.Const(n))
	return quotient, rest, ok
}

// reduced divides a half-space f >= 0 by what the coefficients of its variables have in common.
func (f form) reduced() form {
	common := int64(0)
	for _, t := range f.terms {
		common = gcd(common, abs(t.coefficient))
	}
	if common < 2 {
		return f
	}
	quotient, rest, ok := f.divide(common)
	if _, fixed := rest.c.IsConst(); !ok || !fixed {
		return f
	}
	return quotient // the rest is at least 0 and less than the divisor
}

// String identifies a form.
func (f form) String() string {
	var b strings.Builder
	b.WriteString(f.c.String())
	for _, t := range f.terms {
		b.WriteString(" ")
		b.WriteString(strconv.FormatInt(t.coefficient, 10))
		b.WriteString("x")
		b.WriteString(strconv.Itoa(t.variable))
	}
	return b.String()
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// abs is the magnitude of x, of the least number too: as the largest.
func abs(x int64) int64 { return max(x, -max(x, -math.MaxInt64)) }

// Beyond these limits a form is not followed: then nothing that is computed with forms of sizes that exist wraps around.
const (
	largestCoefficient = int64(1) << 31
	largestNumber      = int64(1)<<62 - 1
)

// space holds the coordinates that forms are over. A variable takes every value of its range, which may be empty.
type space struct {
	program *ir.Program
	ranges  []interval
}

// interval is inclusive.
type interval struct{ low, high ir.Dim }

// variable adds a coordinate.
func (s *space) variable(low, high ir.Dim) int {
	s.ranges = append(s.ranges, interval{low, high})
	return len(s.ranges) - 1
}

// coordinate is a new coordinate along a dim of that size.
func (s *space) coordinate(size ir.Dim) form { return s.between(ir.Const(0), size.AddConst(-1)) }

// between is a new coordinate of a range, or the constant where the range has one.
func (s *space) between(low, high ir.Dim) form {
	if low.Equal(high) {
		return constantForm(low)
	}
	return variableForm(s.variable(low, high))
}

// bounds gives an interval that holds every value of f.
func (s *space) bounds(f form) ir.Range {
	low, high := f.c, f.c
	for _, t := range f.terms {
		r := s.ranges[t.variable]
		if t.coefficient < 0 {
			r.low, r.high = r.high, r.low
		}
		low = low.Add(r.low.MulConst(t.coefficient))
		high = high.Add(r.high.MulConst(t.coefficient))
	}
	return ir.Range{Min: low.Bounds(s.program.Range).Min, Max: high.Bounds(s.program.Range).Max}
}

// atLeastZero tells whether f >= 0 everywhere.
func (s *space) atLeastZero(f form) bool { return s.bounds(f).Min >= 0 }

// modest tells whether the numbers in f are small enough to compute with.
func (s *space) modest(f form) bool {
	ok := true
	c := f.c.Walk(func(coefficient int64, factors []ir.Factor) {
		ok = ok && abs(coefficient) <= largestCoefficient && len(factors) <= 4
	})
	for _, t := range f.terms {
		ok = ok && abs(t.coefficient) <= largestCoefficient
	}
	return ok && c > -largestNumber && c < largestNumber
}
