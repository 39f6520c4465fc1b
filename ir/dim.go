package ir

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Dim is an integer expression over a program's symbols, in a canonical form: a sum of
// products of atoms, where an atom is a symbol or a floor division, remainder, minimum or
// maximum of two expressions. Two Dims are equal as expressions exactly when Equal says so.
// The zero value is the constant 0. Constant arithmetic saturates at the range of int64, so
// that a hostile shape becomes too large instead of wrapping around.
type Dim struct {
	c int64 // the value, when e is nil
	e *dimExpr
}

type dimExpr struct {
	terms []dimTerm // ascending by key, at least one has atoms
	c     int64
	text  string // canonical text; equality is equality of texts
}

type dimTerm struct {
	coef  int64 // not zero
	atoms []dimAtom
	key   string
}

type dimAtom struct {
	symbol string // or:
	op     dimOp
	a, b   Dim
	key    string
}

type dimOp uint8

const (
	dimSymbol dimOp = iota
	dimFloorDiv
	dimMod
	dimMin
	dimMax
)

// Const makes a constant.
func Const(v int64) Dim { return Dim{c: v} }

// Sym makes the symbol of that name.
func Sym(name string) Dim {
	key := symbolText(name)
	return fromTerms([]dimTerm{{coef: 1, atoms: []dimAtom{{symbol: name, key: key}}, key: key}}, 0)
}

// symbolText is a symbol's name as text has it: quoted unless it is an identifier that is not
// the name of a function.
func symbolText(name string) string {
	switch name {
	case "floordiv", "mod", "min", "max":
		return strconv.Quote(name)
	}
	return nameText(name)
}

// Consts makes a list of constants.
func Consts[T int | int64](values ...T) []Dim {
	dims := make([]Dim, len(values))
	for i, v := range values {
		dims[i] = Const(int64(v))
	}
	return dims
}

// IsConst tells whether d is a constant, and its value.
func (d Dim) IsConst() (int64, bool) { return d.c, d.e == nil }

// Is tells whether d is the constant v.
func (d Dim) Is(v int64) bool { return d.e == nil && d.c == v }

// Equal tells whether two expressions are the same.
func (d Dim) Equal(o Dim) bool {
	if d.e == nil || o.e == nil {
		return d.e == nil && o.e == nil && d.c == o.c
	}
	return d.e == o.e || d.e.text == o.e.text
}

// String is the canonical text, which the program parser reads back.
func (d Dim) String() string {
	if d.e == nil {
		return strconv.FormatInt(d.c, 10)
	}
	return d.e.text
}

func (d Dim) parts() ([]dimTerm, int64) {
	if d.e == nil {
		return nil, d.c
	}
	return d.e.terms, d.e.c
}

// fromTerms canonicalises: sorts, merges equal products, drops zeros.
func fromTerms(terms []dimTerm, c int64) Dim {
	slices.SortStableFunc(terms, func(a, b dimTerm) int { return strings.Compare(a.key, b.key) })
	merged := terms[:0]
	for _, t := range terms {
		if n := len(merged); n > 0 && merged[n-1].key == t.key {
			merged[n-1].coef = satAdd(merged[n-1].coef, t.coef)
			continue
		}
		merged = append(merged, t)
	}
	merged = slices.DeleteFunc(merged, func(t dimTerm) bool { return t.coef == 0 })
	if len(merged) == 0 {
		return Const(c)
	}
	var b strings.Builder
	for i, t := range merged {
		switch {
		case i > 0 && t.coef > 0:
			b.WriteString(" + ")
		case i > 0:
			b.WriteString(" - ")
		case t.coef < 0:
			b.WriteString("-")
		}
		if m := magnitude(t.coef); m != 1 {
			b.WriteString(strconv.FormatUint(m, 10) + "*")
		}
		b.WriteString(t.key)
	}
	if c > 0 {
		b.WriteString(" + " + strconv.FormatInt(c, 10))
	} else if c < 0 {
		b.WriteString(" - " + strconv.FormatUint(magnitude(c), 10))
	}
	return Dim{e: &dimExpr{terms: merged, c: c, text: b.String()}}
}

func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// Add returns d + o.
func (d Dim) Add(o Dim) Dim {
	if d.e == nil && o.e == nil {
		return Const(satAdd(d.c, o.c))
	}
	t1, c1 := d.parts()
	t2, c2 := o.parts()
	return fromTerms(slices.Concat(t1, t2), satAdd(c1, c2))
}

// AddConst returns d + v.
func (d Dim) AddConst(v int64) Dim { return d.Add(Const(v)) }

// Neg returns -d.
func (d Dim) Neg() Dim { return d.MulConst(-1) }

// Sub returns d - o.
func (d Dim) Sub(o Dim) Dim { return d.Add(o.Neg()) }

// MulConst returns v * d.
func (d Dim) MulConst(v int64) Dim { return d.Mul(Const(v)) }

// Mul returns d * o.
func (d Dim) Mul(o Dim) Dim {
	if d.e == nil && o.e == nil {
		return Const(satMul(d.c, o.c))
	}
	t1, c1 := d.parts()
	t2, c2 := o.parts()
	terms := make([]dimTerm, 0, (len(t1)+1)*(len(t2)+1))
	for _, a := range t1 {
		for _, b := range t2 {
			atoms := slices.Concat(a.atoms, b.atoms)
			slices.SortStableFunc(atoms, func(x, y dimAtom) int { return strings.Compare(x.key, y.key) })
			terms = append(terms, newTerm(satMul(a.coef, b.coef), atoms))
		}
	}
	scale := func(ts []dimTerm, c int64) {
		for _, t := range ts {
			if c != 0 {
				terms = append(terms, dimTerm{satMul(t.coef, c), t.atoms, t.key})
			}
		}
	}
	scale(t1, c2)
	scale(t2, c1)
	return fromTerms(terms, satMul(c1, c2))
}

func newTerm(coef int64, atoms []dimAtom) dimTerm {
	keys := make([]string, len(atoms))
	for i, a := range atoms {
		keys[i] = a.key
	}
	return dimTerm{coef, atoms, strings.Join(keys, "*")}
}

// opaque makes an expression of one atom that is not a symbol.
func opaque(op dimOp, a, b Dim) Dim {
	name := map[dimOp]string{dimFloorDiv: "floordiv", dimMod: "mod", dimMin: "min", dimMax: "max"}[op]
	key := name + "(" + a.String() + ", " + b.String() + ")"
	return fromTerms([]dimTerm{newTerm(1, []dimAtom{{op: op, a: a, b: b, key: key}})}, 0)
}

// FloorDiv returns floor(d / o). A constant divisor of zero gives zero; evaluation reports
// a zero divisor that only shows there.
func (d Dim) FloorDiv(o Dim) Dim {
	if v, ok := o.IsConst(); ok {
		return d.floorDivConst(v)
	}
	if q, ok := d.DivExact(o); ok {
		return q
	}
	return opaque(dimFloorDiv, d, o)
}

func (d Dim) floorDivConst(v int64) Dim {
	switch {
	case v == 0:
		return Dim{}
	case v == 1:
		return d
	case d.e == nil:
		return Const(floorDiv(d.c, v))
	}
	whole, rest := d.splitMultiples(v)
	if _, c := rest.IsConst(); c || whole.Equal(Dim{}) {
		if c {
			return whole.Add(rest.floorDivConst(v))
		}
		return opaque(dimFloorDiv, rest, Const(v))
	}
	return whole.Add(opaque(dimFloorDiv, rest, Const(v)))
}

// splitMultiples writes d as v*whole + rest with every term of whole taken out exactly.
func (d Dim) splitMultiples(v int64) (whole, rest Dim) {
	terms, c := d.parts()
	var w, r []dimTerm
	for _, t := range terms {
		if t.coef%v == 0 {
			w = append(w, dimTerm{t.coef / v, t.atoms, t.key})
		} else {
			r = append(r, t)
		}
	}
	q := floorDiv(c, v)
	return fromTerms(w, q), fromTerms(r, c-q*v)
}

// CeilDiv returns ceil(d / v) for a positive v.
func (d Dim) CeilDiv(v int64) Dim { return d.AddConst(v - 1).FloorDiv(Const(v)) }

// Mod returns d - o*floor(d/o).
func (d Dim) Mod(o Dim) Dim {
	if v, ok := o.IsConst(); ok && v != 0 {
		_, rest := d.splitMultiples(v)
		if c, ok := rest.IsConst(); ok {
			return Const(c - v*floorDiv(c, v))
		}
		return opaque(dimMod, rest, o)
	}
	if _, ok := d.DivExact(o); ok {
		return Dim{}
	}
	return opaque(dimMod, d, o)
}

// Max returns the larger of two expressions.
func (d Dim) Max(o Dim) Dim { return d.extremum(dimMax, o) }

// Min returns the smaller of two expressions.
func (d Dim) Min(o Dim) Dim { return d.extremum(dimMin, o) }

func (d Dim) extremum(op dimOp, o Dim) Dim {
	if diff, ok := d.Sub(o).IsConst(); ok {
		if (diff >= 0) == (op == dimMax) {
			return d
		}
		return o
	}
	if d.String() > o.String() {
		d, o = o, d
	}
	return opaque(op, d, o)
}

// DivExact returns q with d = q*o, when it can be seen that there is one.
func (d Dim) DivExact(o Dim) (Dim, bool) {
	if v, ok := o.IsConst(); ok {
		if v == 0 {
			return Dim{}, false
		}
		whole, rest := d.splitMultiples(v)
		return whole, rest.Is(0)
	}
	if d.Is(0) {
		return Dim{}, true
	}
	// The quotient is found term by term, as in polynomial division, by the last product.
	var quotient Dim
	for range 8 {
		dt, _ := d.parts()
		ot, _ := o.parts()
		if len(dt) == 0 {
			return quotient, d.Is(0)
		}
		q, ok := divTerm(longest(dt), longest(ot))
		if !ok {
			return Dim{}, false
		}
		quotient = quotient.Add(q)
		d = d.Sub(q.Mul(o))
	}
	return Dim{}, false
}

// longest is the term with the most atoms, the last of them by key.
func longest(ts []dimTerm) dimTerm {
	best := ts[0]
	for _, t := range ts[1:] {
		if len(t.atoms) >= len(best.atoms) {
			best = t
		}
	}
	return best
}

func divTerm(a, b dimTerm) (Dim, bool) {
	if a.coef%b.coef != 0 {
		return Dim{}, false
	}
	rest := slices.Clone(a.atoms)
	for _, x := range b.atoms {
		i := slices.IndexFunc(rest, func(y dimAtom) bool { return x.key == y.key })
		if i < 0 {
			return Dim{}, false
		}
		rest = slices.Delete(rest, i, i+1)
	}
	if len(rest) == 0 {
		return Const(a.coef / b.coef), true
	}
	return fromTerms([]dimTerm{newTerm(a.coef/b.coef, rest)}, 0), true
}

// Symbols calls visit for each symbol in d, in order of appearance, repeats included.
func (d Dim) Symbols(visit func(name string)) {
	terms, _ := d.parts()
	for _, t := range terms {
		for _, a := range t.atoms {
			if a.op == dimSymbol {
				visit(a.symbol)
				continue
			}
			a.a.Symbols(visit)
			a.b.Symbols(visit)
		}
	}
}

// Substitute replaces symbols by expressions; replace returns false to keep a symbol.
func (d Dim) Substitute(replace func(name string) (Dim, bool)) Dim {
	return d.rebuilt(func(a dimAtom) Dim {
		if a.op == dimSymbol {
			if v, ok := replace(a.symbol); ok {
				return v
			}
			return Sym(a.symbol)
		}
		return a.op.apply(a.a.Substitute(replace), a.b.Substitute(replace))
	})
}

// Within is d with each min and max resolved whose operands never change places while the symbols lie in their ranges, as
// max(1 - s, 0) is 0 for s in 2..32. Symbols that ranges does not know are at least 0.
func (d Dim) Within(ranges func(name string) (Range, bool)) Dim {
	return d.rebuilt(func(a dimAtom) Dim {
		if a.op == dimSymbol {
			return Sym(a.symbol)
		}
		x, y := a.a.Within(ranges), a.b.Within(ranges)
		if a.op != dimMax && a.op != dimMin {
			return a.op.apply(x, y)
		}
		difference := x.Sub(y).Bounds(ranges)
		switch {
		case difference.Min >= 0 && a.op == dimMax, difference.Max <= 0 && a.op == dimMin:
			return x
		case difference.Min >= 0, difference.Max <= 0:
			return y
		}
		return a.op.apply(x, y)
	})
}

// rebuilt is d with each atom replaced.
func (d Dim) rebuilt(replaced func(dimAtom) Dim) Dim {
	terms, c := d.parts()
	sum := Const(c)
	for _, t := range terms {
		product := Const(t.coef)
		for _, a := range t.atoms {
			product = product.Mul(replaced(a))
		}
		sum = sum.Add(product)
	}
	return sum
}

func (op dimOp) apply(x, y Dim) Dim {
	switch op {
	case dimFloorDiv:
		return x.FloorDiv(y)
	case dimMod:
		return x.Mod(y)
	case dimMin:
		return x.Min(y)
	}
	return x.Max(y)
}

// Eval computes d for the given symbol values. It fails on a symbol without a value, a zero
// divisor, or a result that does not fit an int64.
func (d Dim) Eval(values map[string]int64) (int64, error) {
	var failed error
	v := d.Substitute(func(name string) (Dim, bool) {
		x, ok := values[name]
		if !ok && failed == nil {
			failed = fmt.Errorf("dim %s has no value", name)
		}
		return Const(x), ok
	})
	if failed != nil {
		return 0, failed
	}
	if v.c == math.MaxInt64 || v.c == math.MinInt64 {
		return 0, fmt.Errorf("size %s is too large", d)
	}
	return v.c, nil
}

// Walk decomposes d for code that lowers it: each term is a coefficient times factors, and
// each factor is a symbol (op "") or op(a, b) with op floordiv, mod, min or max.
func (d Dim) Walk(term func(coef int64, factors []Factor)) (constant int64) {
	terms, c := d.parts()
	for _, t := range terms {
		fs := make([]Factor, len(t.atoms))
		for i, a := range t.atoms {
			fs[i] = Factor{Symbol: a.symbol, A: a.a, B: a.b}
			fs[i].Op = [...]string{"", "floordiv", "mod", "min", "max"}[a.op]
		}
		term(t.coef, fs)
	}
	return c
}

// Factor is one factor of a term of a Dim.
type Factor struct {
	Symbol string // when Op is empty
	Op     string
	A, B   Dim
}

// Range is an inclusive interval.
type Range struct{ Min, Max int64 }

// Bounds gives an interval that holds every value d can take when each symbol lies in its
// range; a symbol that ranges does not know is at least 0.
func (d Dim) Bounds(ranges func(name string) (Range, bool)) Range {
	terms, c := d.parts()
	sum := Range{c, c}
	for _, t := range terms {
		p := Range{t.coef, t.coef}
		for _, a := range t.atoms {
			p = mulRange(p, a.bounds(ranges))
		}
		sum = Range{satAdd(sum.Min, p.Min), satAdd(sum.Max, p.Max)}
	}
	return sum
}

func (a dimAtom) bounds(ranges func(string) (Range, bool)) Range {
	if a.op == dimSymbol {
		if r, ok := ranges(a.symbol); ok {
			return r
		}
		return Range{0, math.MaxInt64}
	}
	x, y := a.a.Bounds(ranges), a.b.Bounds(ranges)
	switch a.op {
	case dimMin:
		return Range{min(x.Min, y.Min), min(x.Max, y.Max)}
	case dimMax:
		return Range{max(x.Min, y.Min), max(x.Max, y.Max)}
	case dimMod:
		if y.Min > 0 {
			return Range{0, y.Max - 1}
		}
	case dimFloorDiv:
		if y.Min > 0 {
			lo := min(floorDiv(x.Min, y.Min), floorDiv(x.Min, y.Max))
			hi := max(floorDiv(x.Max, y.Min), floorDiv(x.Max, y.Max))
			return Range{lo, hi}
		}
	}
	return Range{math.MinInt64, math.MaxInt64}
}

func mulRange(a, b Range) Range {
	p := []int64{satMul(a.Min, b.Min), satMul(a.Min, b.Max), satMul(a.Max, b.Min), satMul(a.Max, b.Max)}
	return Range{slices.Min(p), slices.Max(p)}
}

// DivisibleBy tells whether every value of d is a multiple of v, given what is known of the
// symbols (a symbol's known divisor, 1 when nothing is known).
func (d Dim) DivisibleBy(v int64, divisor func(name string) int64) bool {
	terms, c := d.parts()
	if v == 0 || c%v != 0 {
		return false
	}
	for _, t := range terms {
		known := t.coef % v
		for _, a := range t.atoms {
			f := int64(1)
			if a.op == dimSymbol && divisor != nil {
				f = max(1, divisor(a.symbol))
			}
			known = satMul(known, f) % v
		}
		if known != 0 {
			return false
		}
	}
	return true
}

func floorDiv(a, b int64) int64 {
	if b == 0 {
		return 0
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func satAdd(a, b int64) int64 {
	s := a + b
	if (a > 0) == (b > 0) && a != 0 && b != 0 && (s > 0) != (a > 0) {
		if a > 0 {
			return math.MaxInt64
		}
		return math.MinInt64
	}
	return s
}

func satMul(a, b int64) int64 {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	if hi != 0 || lo > math.MaxInt64 {
		if negative {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	if negative {
		return -int64(lo)
	}
	return int64(lo)
}

// Dim is the factor as an expression.
func (f Factor) Dim() Dim {
	switch f.Op {
	case "":
		return Sym(f.Symbol)
	case "floordiv":
		return f.A.FloorDiv(f.B)
	case "mod":
		return f.A.Mod(f.B)
	case "min":
		return f.A.Min(f.B)
	}
	return f.A.Max(f.B)
}
