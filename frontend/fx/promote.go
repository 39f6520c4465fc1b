package fx

import (
	"weft/frontend/lower"
	"weft/ir"
)

// operand is an argument of an arithmetic operator: a tensor or a Python number.
type operand struct {
	v     ir.Value
	num   number
	isNum bool
}

// operand reads an argument that may be a tensor or a number.
func (c *call) operand(name string) operand {
	a, ok := c.arg(name)
	if !ok {
		c.bad("%s is missing", name)
	}
	if a.kind == argTensor {
		return operand{v: c.autocast(c.asTensor(name, a).read(c.b))}
	}
	return operand{num: c.asNumber(name, a), isNum: true}
}

func tensorOperand(v ir.Value) operand { return operand{v: v} }

func numberOperand(n number) operand { return operand{num: n, isNum: true} }

// resultType is the type that operands of arithmetic are brought to (torch.result_type):
// tensors with dims decide within a category, then tensors of rank 0, then numbers.
func (c *call) resultType(operands ...operand) ir.DType {
	var dimmed, zero, weak ir.DType
	for _, o := range operands {
		switch {
		case o.isNum:
			weak = promote(weak, o.num.dtype())
		case c.b.Rank(o.v) == 0:
			zero = promote(zero, c.b.DType(o.v))
		default:
			dimmed = promote(dimmed, c.b.DType(o.v))
		}
	}
	return combineCategories(dimmed, combineCategories(zero, weak))
}

func combineCategories(high, low ir.DType) ir.DType {
	switch {
	case high == ir.InvalidDType:
		return low
	case low == ir.InvalidDType || category(high) >= category(low):
		return high
	case high.IsFloat() && low.IsComplex():
		return map[ir.DType]ir.DType{ir.F16: ir.C32, ir.F64: ir.C128}[high]
	}
	return low
}

// category orders bool, integers, floats, complex numbers.
func category(t ir.DType) int {
	switch {
	case t == ir.Bool:
		return 1
	case t.IsInteger():
		return 2
	case t.IsFloat():
		return 3
	}
	return 4
}

// promote is the smallest type of the higher category that holds both (torch.promote_types).
func promote(a, b ir.DType) ir.DType {
	switch {
	case a == b || b == ir.InvalidDType:
		return a
	case a == ir.InvalidDType:
		return b
	case category(a) != category(b):
		if category(a) > category(b) {
			return a
		}
		return b
	case a.IsFloat():
		if a.Bits() == b.Bits() {
			return ir.F32 // float16 with bfloat16; PyTorch has no rule for different float8 types
		}
		return wider(a, b)
	case a.IsInteger():
		if a.IsSigned() == b.IsSigned() {
			return wider(a, b)
		}
		signed, unsigned := a, b
		if b.IsSigned() {
			signed, unsigned = b, a
		}
		for _, t := range []ir.DType{signed, ir.I16, ir.I32, ir.I64} {
			if t.Bits() > unsigned.Bits() && t.Bits() >= signed.Bits() {
				return t
			}
		}
		return ir.I64
	}
	return wider(a, b)
}

func wider(a, b ir.DType) ir.DType {
	if b.Bits() > a.Bits() {
		return b
	}
	return a
}

// as makes an operand a tensor of a type: numbers become scalars.
func (c *call) as(o operand, t ir.DType) ir.Value {
	if o.isNum {
		return o.num.scalar(c.b, t)
	}
	return c.b.Convert(o.v, t)
}

// floatType is the type that functions of real numbers compute in: integers become float32.
func floatType(t ir.DType) ir.DType {
	if t.IsFloat() || t.IsComplex() {
		return t
	}
	return ir.F32
}

// floating is a tensor argument as a float.
func (c *call) floating(name string) ir.Value {
	v := c.tensor(name)
	return c.b.Convert(v, floatType(c.b.DType(v)))
}

// arithmetic brings two operands to type t, combines them with f and gives a result of t.
// Where an operand is a number that t cannot hold exactly and t is at most 16 bits wide, the
// operation is done in float32 and rounded once, as PyTorch's kernels do.
func (c *call) arithmetic(x, y operand, t ir.DType, f func(x, y ir.Value) ir.Value) ir.Value {
	at := t
	if t.IsFloat() && t.Bits() <= 16 && (inexact(x, t) || inexact(y, t)) {
		at = ir.F32
	}
	xs := lower.Broadcast(c.b, c.as(x, at), c.as(y, at))
	v := f(xs[0], xs[1])
	if at != t && c.b.DType(v) == at {
		v = c.b.Convert(v, t)
	}
	return v
}

func inexact(o operand, t ir.DType) bool {
	return o.isNum && (!o.num.known() || ir.ScalarTensor(t, o.num.f).Float(0) != o.num.f)
}

// binary is arithmetic in the common type of two arguments.
func (c *call) binary(x, y operand, f func(x, y ir.Value) ir.Value) ir.Value {
	return c.arithmetic(x, y, c.resultType(x, y), f)
}

// kind makes the function of two values that an operator kind is.
func (c *call) kind(k ir.Kind) func(x, y ir.Value) ir.Value {
	return func(x, y ir.Value) ir.Value { return c.b.Binary(k, x, y) }
}
