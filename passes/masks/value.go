package masks

import (
	"slices"

	"weft/ir"
)

// value is what is known of an element, as a function of coordinates.
type value struct {
	kind   kind
	form   form   // of a number
	halves []form // of a truth: it holds where each of them is at least 0
}

type kind uint8

const (
	unknown kind = iota
	number       // an integer: form
	truth        // a bool: the conjunction of halves; always true where there are none
	never        // the bool that is always false
)

func flag(b bool) value {
	if b {
		return value{kind: truth}
	}
	return value{kind: never}
}

// always tells whether v is the bool that is always true.
func (v value) always() bool { return v.kind == truth && len(v.halves) == 0 }

// number is f as an integer of a type, unless the type may not hold it.
func (s *space) number(f form, t ir.DType) value {
	if !t.IsInteger() || !s.modest(f) {
		return value{}
	}
	low, high := -largestNumber, largestNumber
	if bits := t.Bits(); bits < 63 {
		high = int64(1)<<bits - 1
		if t.IsSigned() {
			high >>= 1
			low = -high - 1
		}
	}
	if t.IsUnsigned() {
		low = 0
	}
	if r := s.bounds(f); r.Min < low || r.Max > high {
		return value{}
	}
	return value{kind: number, form: f}
}

// half is the bool f >= 0.
func (s *space) half(f form) value {
	f = f.reduced()
	switch r := s.bounds(f); {
	case r.Min >= 0:
		return flag(true)
	case r.Max < 0:
		return flag(false)
	}
	return value{kind: truth, halves: []form{f}}
}

// both is a and b.
func (s *space) both(a, b value) value {
	switch {
	case a.kind == never || b.kind == never:
		return flag(false)
	case a.kind != truth || b.kind != truth:
		return value{}
	}
	all := value{kind: truth}
	for _, f := range slices.Concat(a.halves, b.halves) {
		if !s.implied(all.halves, f) {
			weaker := func(h form) bool { return s.implied([]form{f}, h) }
			all.halves = append(slices.DeleteFunc(all.halves, weaker), f)
		}
	}
	return all
}

// either is a or b.
func (s *space) either(a, b value) value {
	switch {
	case a.always() || b.kind == never:
		return a
	case b.always() || a.kind == never:
		return b
	case a.kind != truth || b.kind != truth:
		return value{}
	case s.implies(a, b):
		return b
	case s.implies(b, a):
		return a
	}
	return value{}
}

// not is the opposite of a bool.
func (s *space) not(a value) value {
	switch {
	case a.kind == never:
		return flag(true)
	case a.always():
		return flag(false)
	case a.kind == truth && len(a.halves) == 1:
		return s.half(form{}.add(a.halves[0], -1).plus(ir.Const(-1)))
	}
	return value{}
}

// implied tells whether one of halves being at least 0 lets f be so.
func (s *space) implied(halves []form, f form) bool {
	for _, h := range halves {
		if s.atLeastZero(f.add(h, -1)) {
			return true
		}
	}
	return s.atLeastZero(f)
}

// implies tells whether it can be seen that b holds wherever a does.
func (s *space) implies(a, b value) bool {
	for _, f := range b.halves {
		if !s.implied(a.halves, f) {
			return false
		}
	}
	return true
}

// same tells whether two values are equal everywhere.
func (s *space) same(a, b value) bool {
	switch {
	case a.kind != b.kind || a.kind == unknown:
		return false
	case a.kind == number:
		return a.form.equal(b.form)
	case a.kind == truth:
		return s.implies(a, b) && s.implies(b, a)
	}
	return true
}

// substitute puts a form in the place of a variable.
func (s *space) substitute(v value, variable int, g form) value {
	switch v.kind {
	case number:
		v.form = v.form.substitute(variable, g)
	case truth:
		all := flag(true)
		for _, f := range v.halves {
			all = s.both(all, s.half(f.substitute(variable, g)))
		}
		return all
	}
	return v
}

// without tells whether a value does not depend on a variable.
func (v value) without(variable int) bool {
	for _, f := range v.halves {
		if f.coefficient(variable) != 0 {
			return false
		}
	}
	return v.form.coefficient(variable) == 0
}

// compared is the bool x OP y.
func (s *space) compared(d ir.Direction, x, y form) value {
	above, below := x.add(y, -1), y.add(x, -1) // x - y, y - x
	one := ir.Const(-1)
	switch d {
	case ir.LT:
		return s.half(below.plus(one))
	case ir.LE:
		return s.half(below)
	case ir.GT:
		return s.half(above.plus(one))
	case ir.GE:
		return s.half(above)
	case ir.EQ:
		return s.both(s.half(above), s.half(below))
	}
	// x != y is x > y or x < y, of which one may be impossible.
	return s.either(s.half(above.plus(one)), s.half(below.plus(one)))
}
