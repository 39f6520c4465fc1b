package kernel

import (
	"weft/codegen/elementary"
	"weft/ir"
)

// machine emits elementary functions as expressions.
type machine struct{ b *Builder }

var elementaryTypes = [...]ir.DType{elementary.Bool: ir.Bool, elementary.I32: ir.I32, elementary.I64: ir.I64, elementary.F32: ir.F32, elementary.F64: ir.F64}

func (m machine) isFloat(t elementary.Type) bool { return t == elementary.F32 || t == elementary.F64 }

// pick chooses the float or the integer form of an operation.
func (m machine) pick(t elementary.Type, float, integer Op, args ...*Expr) *Expr {
	if m.isFloat(t) {
		return m.b.Arith(float, elementaryTypes[t], args...)
	}
	return m.b.Arith(integer, elementaryTypes[t], args...)
}

func (m machine) Float(t elementary.Type, v float64) *Expr { return m.b.Float(elementaryTypes[t], v) }
func (m machine) Int(t elementary.Type, v int64) *Expr     { return m.b.Int(elementaryTypes[t], v) }

func (m machine) Add(t elementary.Type, x, y *Expr) *Expr { return m.pick(t, FAdd, Add, x, y) }
func (m machine) Sub(t elementary.Type, x, y *Expr) *Expr { return m.pick(t, FSub, Sub, x, y) }
func (m machine) Mul(t elementary.Type, x, y *Expr) *Expr { return m.pick(t, FMul, Mul, x, y) }
func (m machine) Div(t elementary.Type, x, y *Expr) *Expr {
	return m.b.Arith(FDiv, elementaryTypes[t], x, y)
}

func (m machine) Fma(t elementary.Type, x, y, z *Expr) *Expr {
	return m.b.Arith(Fma, elementaryTypes[t], x, y, z)
}
func (m machine) ReciprocalAbove1(x *Expr) *Expr {
	return m.b.Instruction("rcp.above1.f32", []ir.DType{ir.F32}, x)[0]
}
func (m machine) Sqrt(t elementary.Type, x *Expr) *Expr {
	return m.b.Arith(FSqrt, elementaryTypes[t], x)
}
func (m machine) Neg(t elementary.Type, x *Expr) *Expr { return m.b.Arith(FNeg, elementaryTypes[t], x) }
func (m machine) Abs(t elementary.Type, x *Expr) *Expr { return m.b.Arith(FAbs, elementaryTypes[t], x) }
func (m machine) Min(t elementary.Type, x, y *Expr) *Expr {
	return m.b.Arith(FMin, elementaryTypes[t], x, y)
}
func (m machine) Max(t elementary.Type, x, y *Expr) *Expr {
	return m.b.Arith(FMax, elementaryTypes[t], x, y)
}

func (m machine) Round(t elementary.Type, r elementary.Rounding, x *Expr) *Expr {
	op := [...]Op{elementary.Floor: FFloor, elementary.Ceil: FCeil, elementary.Trunc: FTrunc, elementary.NearestEven: FRoundEven}[r]
	return m.b.Arith(op, elementaryTypes[t], x)
}

func (m machine) And(t elementary.Type, x, y *Expr) *Expr {
	return m.b.Arith(And, elementaryTypes[t], x, y)
}
func (m machine) Or(t elementary.Type, x, y *Expr) *Expr {
	return m.b.Arith(Or, elementaryTypes[t], x, y)
}
func (m machine) Xor(t elementary.Type, x, y *Expr) *Expr {
	return m.b.Arith(Xor, elementaryTypes[t], x, y)
}
func (m machine) Shl(t elementary.Type, x, n *Expr) *Expr {
	return m.b.Arith(Shl, elementaryTypes[t], x, n)
}
func (m machine) ShrLogical(t elementary.Type, x, n *Expr) *Expr {
	return m.b.Arith(LShr, elementaryTypes[t], x, n)
}
func (m machine) ShrArithmetic(t elementary.Type, x, n *Expr) *Expr {
	return m.b.Arith(AShr, elementaryTypes[t], x, n)
}

func (m machine) Compare(t elementary.Type, p elementary.Predicate, x, y *Expr) *Expr {
	if m.isFloat(t) {
		return m.b.Cmp([...]Predicate{elementary.EQ: FEQ, elementary.NE: FNE, elementary.LT: FLT, elementary.LE: FLE}[p], x, y)
	}
	return m.b.Cmp([...]Predicate{elementary.EQ: EQ, elementary.NE: NE, elementary.LT: SLT, elementary.LE: SLE}[p], x, y)
}

func (m machine) Select(_ elementary.Type, c, x, y *Expr) *Expr { return m.b.Select(c, x, y) }

func (m machine) Convert(to, from elementary.Type, x *Expr) *Expr {
	t, f := elementaryTypes[to], elementaryTypes[from]
	switch {
	case m.isFloat(to) && m.isFloat(from):
		return m.b.Arith(FConvert, t, x)
	case m.isFloat(to):
		return m.b.Arith(SToF, t, x)
	case m.isFloat(from):
		return m.b.Arith(FToS, t, x)
	case f.Bits() < t.Bits():
		return m.b.Arith(SExt, t, x)
	}
	return m.b.Arith(Trunc, t, x)
}

func (m machine) ZeroExtend(x *Expr) *Expr { return m.b.Arith(ZExt, ir.I64, x) }
func (m machine) Bitcast(to, _ elementary.Type, x *Expr) *Expr {
	return m.b.Arith(Bitcast, elementaryTypes[to], x)
}

// elementary emits a function by its operator name in float32 or float64.
func (b *Builder) elementary(name string, t ir.DType, args ...*Expr) (*Expr, bool) {
	f, ok := elementary.Lookup[*Expr](name)
	if !ok {
		return nil, false
	}
	if t == ir.F64 {
		return f.F64(machine{b}, args...), true
	}
	return f.F32(machine{b}, args...), true
}
