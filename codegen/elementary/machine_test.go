package elementary

import (
	"fmt"
	"slices"
	"testing"
)

// typed is a value of the machine that only checks types.
type typed struct{ t Type }

// typeChecker is a Machine that checks that operands have the types that the methods name, so that a function that
// passes it is well-typed LLVM, and counts instructions.
type typeChecker struct {
	problems *[]string
	count    *int
}

func (m typeChecker) op(name string, result Type, allowed []Type, operands ...typed) typed {
	*m.count++
	for _, o := range operands {
		if o.t != operands[0].t || !slices.Contains(allowed, o.t) {
			*m.problems = append(*m.problems, fmt.Sprintf("%s of %v, result %v", name, operands, result))
			break
		}
	}
	return typed{t: result}
}

func (m typeChecker) expect(name string, want Type, x typed) {
	if x.t != want {
		*m.problems = append(*m.problems, fmt.Sprintf("%s: operand is %v, not %v", name, x.t, want))
	}
}

// same checks an operation whose operands and result have type t.
func (m typeChecker) same(name string, t Type, allowed []Type, operands ...typed) typed {
	m.expect(name, t, operands[0])
	return m.op(name, t, allowed, operands...)
}

var (
	floats   = []Type{F32, F64}
	integers = []Type{I32, I64}
	numbers  = []Type{I32, I64, F32, F64}
	bitwise  = []Type{Bool, I32, I64}
)

func (m typeChecker) Float(t Type, v float64) typed {
	if !slices.Contains(floats, t) || t == F32 && v == v && float64(float32(v)) != v {
		*m.problems = append(*m.problems, fmt.Sprintf("constant %x is not a %v", v, t))
	}
	return typed{t}
}

func (m typeChecker) Int(t Type, v int64) typed {
	if t == Bool && v>>1 != 0 || t == I32 && int64(int32(v)) != v || slices.Contains(floats, t) {
		*m.problems = append(*m.problems, fmt.Sprintf("constant %d is not an %v", v, t))
	}
	return typed{t}
}

func (m typeChecker) Add(t Type, x, y typed) typed    { return m.same("Add", t, numbers, x, y) }
func (m typeChecker) Sub(t Type, x, y typed) typed    { return m.same("Sub", t, numbers, x, y) }
func (m typeChecker) Mul(t Type, x, y typed) typed    { return m.same("Mul", t, numbers, x, y) }
func (m typeChecker) Div(t Type, x, y typed) typed    { return m.same("Div", t, floats, x, y) }
func (m typeChecker) Fma(t Type, x, y, z typed) typed { return m.same("Fma", t, floats, x, y, z) }
func (m typeChecker) ReciprocalAbove1(x typed) typed {
	return m.same("ReciprocalAbove1", F32, floats, x)
}
func (m typeChecker) Sqrt(t Type, x typed) typed   { return m.same("Sqrt", t, floats, x) }
func (m typeChecker) Neg(t Type, x typed) typed    { return m.same("Neg", t, floats, x) }
func (m typeChecker) Abs(t Type, x typed) typed    { return m.same("Abs", t, floats, x) }
func (m typeChecker) Min(t Type, x, y typed) typed { return m.same("Min", t, []Type{F32}, x, y) }
func (m typeChecker) Max(t Type, x, y typed) typed { return m.same("Max", t, []Type{F32}, x, y) }
func (m typeChecker) And(t Type, x, y typed) typed { return m.same("And", t, bitwise, x, y) }
func (m typeChecker) Or(t Type, x, y typed) typed  { return m.same("Or", t, bitwise, x, y) }
func (m typeChecker) Xor(t Type, x, y typed) typed { return m.same("Xor", t, bitwise, x, y) }
func (m typeChecker) Shl(t Type, x, n typed) typed { return m.same("Shl", t, integers, x, n) }

func (m typeChecker) ShrLogical(t Type, x, n typed) typed {
	return m.same("ShrLogical", t, integers, x, n)
}

func (m typeChecker) ShrArithmetic(t Type, x, n typed) typed {
	return m.same("ShrArithmetic", t, integers, x, n)
}

func (m typeChecker) Round(t Type, _ Rounding, x typed) typed { return m.same("Round", t, floats, x) }

func (m typeChecker) Compare(t Type, _ Predicate, x, y typed) typed {
	m.same("Compare", t, numbers, x, y)
	return typed{t: Bool}
}

func (m typeChecker) Select(t Type, c, x, y typed) typed {
	m.expect("Select", Bool, c)
	return m.same("Select", t, []Type{Bool, I32, I64, F32, F64}, x, y)
}

func (m typeChecker) Convert(to, from Type, x typed) typed {
	m.expect("Convert", from, x)
	if to == from {
		*m.problems = append(*m.problems, "Convert to the same type")
	}
	return m.op("Convert", to, numbers, x)
}

func (m typeChecker) ZeroExtend(x typed) typed { return m.op("ZeroExtend", I64, []Type{I32}, x) }

func (m typeChecker) Bitcast(to, from Type, x typed) typed {
	m.expect("Bitcast", from, x)
	pairs := map[Type]Type{F32: I32, I32: F32, F64: I64, I64: F64}
	if pairs[from] != to {
		*m.problems = append(*m.problems, fmt.Sprintf("Bitcast of %v to %v", from, to))
	}
	*m.count--
	return m.op("Bitcast", to, numbers, x)
}

// instructionCount checks the types of a body and counts its instructions (bitcasts are free).
func instructionCount(t *testing.T, f Function[typed], of Type) int {
	t.Helper()
	var problems []string
	count := 0
	body := f.F32
	if of == F64 {
		body = f.F64
	}
	result := body(typeChecker{&problems, &count}, slices.Repeat([]typed{{t: of}}, f.Arity)...)
	if result.t != of {
		problems = append(problems, fmt.Sprintf("result is %v", result.t))
	}
	for _, p := range problems {
		t.Errorf("%s %v: %s", f.Name, of, p)
	}
	return count
}

func TestFunctionsAreWellTyped(t *testing.T) {
	for _, f := range Functions[typed]() {
		for _, of := range floats {
			t.Logf("%s %v: %d instructions", f.Name, of, instructionCount(t, f, of))
		}
	}
}

// TestHotFunctionsAreShort keeps the functions that sit in softmax, norms and activations from growing.
func TestHotFunctionsAreShort(t *testing.T) {
	for name, limit := range map[string]int{"exponential": 21, "log": 32, "tanh": 32, "erf": 36, "logistic": 33, "rsqrt": 14, "power": 120} {
		f, _ := Lookup[typed](name)
		if n := instructionCount(t, f, F32); n > limit {
			t.Errorf("%s: %d instructions, more than %d", name, n, limit)
		}
	}
}
