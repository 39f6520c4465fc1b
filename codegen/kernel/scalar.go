package kernel

import (
	"math"

	"weft/codegen/elementary"
	"weft/ir"
	"weft/ir/diag"
)

// scalar computes an elementwise operation on held values, rounding the result to its type.
func (b *Builder) scalar(op *ir.Op, e *ir.Entry, in []*Expr) *Expr {
	t := e.Type(op.Operands[0]).DType
	to := e.Type(op.Results[0]).DType
	for _, d := range []ir.DType{t, to} {
		if !Holdable(d) {
			ir.Fail(diag.Errorf("W4004", op.Loc, "no kernel computes with element type %s (operator %s)", d, op.Kind).
				Suggest("convert to a supported type in the model, or run it with --device reference"))
		}
	}
	var x *Expr
	switch op.Kind {
	case ir.OpConvert:
		x = b.convert(in[0], t, to)
		if op.Attrs.(*ir.ConvertAttrs).Saturate && to.IsFloat() {
			h, limit := held(to), to.MaxFinite()
			x = b.binaryFloat(ir.OpMinimum, h, b.binaryFloat(ir.OpMaximum, h, x, b.Float(h, -limit)), b.Float(h, limit))
		}
	case ir.OpBitcastConvert:
		x = b.bitcast(in[0], t, to)
	case ir.OpCompare:
		return b.compare(op.Attrs.(*ir.CompareAttrs).Direction, t, in[0], in[1])
	case ir.OpIsFinite:
		return b.Cmp(FLT, b.Arith(FAbs, held(t), in[0]), b.Float(held(t), math.Inf(1)))
	case ir.OpSelect:
		return b.Select(in[0], in[1], in[2])
	case ir.OpClamp:
		x = b.binary(ir.OpMinimum, t, b.binary(ir.OpMaximum, t, in[1], in[0]), in[2])
	default:
		switch {
		case len(in) == 1:
			x = b.unary(op.Kind, t, in[0])
		default:
			x = b.binary(op.Kind, t, in[0], in[1])
		}
		if op.Kind == ir.OpTanh && t == ir.BF16 {
			x = elementary.TanhOfBFloat16(machine{b}, in[0])
		}
		if x == nil {
			x, _ = b.elementary(op.Kind.String(), held(t), in...)
		}
		if x == nil {
			ir.Fail(diag.Errorf("W4003", op.Loc, "no kernel for operator %s on %s yet", op.Kind, t).
				Suggest("run the program with --device reference, or rewrite the model without this operator"))
		}
	}
	return b.finish(to, x)
}

// unary computes operators that need no elementary function; nil for the others. Bool operands
// of not are logical.
func (b *Builder) unary(kind ir.Kind, t ir.DType, x *Expr) *Expr {
	h := held(t)
	if h.IsFloat() {
		return b.unaryFloat(kind, h, x)
	}
	zero := b.zero(h)
	switch kind {
	case ir.OpNegate:
		return b.Arith(Sub, h, zero, x)
	case ir.OpAbs:
		if t.IsUnsigned() {
			return x
		}
		return b.Arith(Select, h, b.Cmp(SLT, x, zero), b.Arith(Sub, h, zero, x), x)
	case ir.OpSign:
		one := b.Int(h, 1)
		if t.IsUnsigned() {
			return b.Select(b.Cmp(EQ, x, zero), zero, one)
		}
		return b.Select(b.Cmp(SLT, x, zero), b.Int(h, -1), b.Select(b.Cmp(EQ, x, zero), zero, one))
	case ir.OpNot:
		return b.Arith(Xor, h, x, b.Int(h, -1))
	case ir.OpPopcnt:
		return b.Arith(Popcnt, h, x)
	}
	return nil
}

func (b *Builder) unaryFloat(kind ir.Kind, h ir.DType, x *Expr) *Expr {
	switch kind {
	case ir.OpNegate:
		return b.Arith(FNeg, h, x)
	case ir.OpAbs:
		return b.Arith(FAbs, h, x)
	case ir.OpSign: // NaN stays NaN, zeros keep their sign
		one := b.Float(h, 1)
		signed := b.Select(b.Cmp(FLT, x, b.Float(h, 0)), b.Float(h, -1), x)
		return b.Select(b.Cmp(FLT, b.Float(h, 0), x), one, signed)
	case ir.OpFloor:
		return b.Arith(FFloor, h, x)
	case ir.OpCeil:
		return b.Arith(FCeil, h, x)
	case ir.OpRoundNearestEven:
		return b.Arith(FRoundEven, h, x)
	case ir.OpRoundNearestAfz:
		// trunc(x), one further from zero where the exact fraction is at least a half.
		whole := b.Arith(FTrunc, h, x)
		far := b.Cmp(FLE, b.Float(h, 0.5), b.Arith(FAbs, h, b.Arith(FSub, h, x, whole)))
		one := b.Select(b.Cmp(FLT, x, b.Float(h, 0)), b.Float(h, -1), b.Float(h, 1))
		return b.Select(far, b.Arith(FAdd, h, whole, one), whole)
	case ir.OpSqrt:
		return b.Arith(FSqrt, h, x)
	}
	return nil
}

// floatOps and integerOps are binary operators that are one operation.
var (
	floatOps = map[ir.Kind]Op{ir.OpAdd: FAdd, ir.OpSubtract: FSub, ir.OpMultiply: FMul, ir.OpDivide: FDiv,
		ir.OpMaximum: FMax, ir.OpMinimum: FMin}
	integerOps = map[ir.Kind]Op{ir.OpAdd: Add, ir.OpSubtract: Sub, ir.OpMultiply: Mul, ir.OpAnd: And, ir.OpOr: Or, ir.OpXor: Xor}
)

func (b *Builder) binary(kind ir.Kind, t ir.DType, x, y *Expr) *Expr {
	h := held(t)
	if h.IsFloat() {
		return b.binaryFloat(kind, h, x, y)
	}
	if t == ir.Bool {
		switch kind {
		case ir.OpMaximum, ir.OpOr, ir.OpAdd:
			return b.Or(x, y)
		case ir.OpMinimum, ir.OpAnd, ir.OpMultiply:
			return b.And(x, y)
		}
	}
	if op, ok := integerOps[kind]; ok {
		return b.Arith(op, h, x, y)
	}
	signed := t.IsSigned()
	switch kind {
	case ir.OpMaximum:
		return b.Arith(choose(signed, SMax, UMax), h, x, y)
	case ir.OpMinimum:
		return b.Arith(choose(signed, SMin, UMin), h, x, y)
	case ir.OpDivide, ir.OpRemainder:
		return b.divide(kind, h, signed, x, y)
	case ir.OpShiftLeft, ir.OpShiftRightLogical, ir.OpShiftRightArithmetic:
		return b.shift(kind, h, signed, x, y)
	case ir.OpPower:
		return b.integerPower(h, signed, x, y)
	}
	return nil
}

func choose(p bool, a, b Op) Op {
	if p {
		return a
	}
	return b
}

// binaryFloat: maximum and minimum of float64 are selects, since there is no instruction.
func (b *Builder) binaryFloat(kind ir.Kind, h ir.DType, x, y *Expr) *Expr {
	if h == ir.F64 && (kind == ir.OpMaximum || kind == ir.OpMinimum) {
		first := b.Cmp(FLT, x, y)
		bits := func(v *Expr) *Expr { return b.Arith(Bitcast, ir.I64, v) }
		tie := b.Arith(And, ir.I64, bits(x), bits(y)) // +0 unless both are -0
		if kind == ir.OpMinimum {
			first = b.Cmp(FLT, y, x)
			tie = b.Arith(Or, ir.I64, bits(x), bits(y))
		}
		larger := b.Select(first, y, x)
		larger = b.Select(b.Cmp(FEQ, x, y), b.Arith(Bitcast, ir.F64, tie), larger)
		larger = b.Select(b.Cmp(FNE, y, y), y, larger)
		return b.Select(b.Cmp(FNE, x, x), x, larger)
	}
	if op, ok := floatOps[kind]; ok {
		return b.Arith(op, h, x, y)
	}
	return nil
}

// divide guards what LLVM leaves undefined: x/0 has all bits set, x rem 0 is x, and the least
// integer divided by -1 wraps to itself with remainder 0.
func (b *Builder) divide(kind ir.Kind, h ir.DType, signed bool, x, y *Expr) *Expr {
	zero, one := b.Int(h, 0), b.Int(h, 1)
	isZero := b.Cmp(EQ, y, zero)
	safe := b.Select(isZero, one, y)
	if signed {
		least, _ := fullRange(h)
		wraps := b.And(b.Cmp(EQ, y, b.Int(h, -1)), b.Cmp(EQ, x, b.Int(h, least)))
		safe = b.Select(wraps, one, safe)
		if kind == ir.OpRemainder {
			r := b.Arith(SRem, h, x, safe)
			return b.Select(isZero, x, r)
		}
		return b.Select(isZero, b.Int(h, -1), b.Arith(SDiv, h, x, safe))
	}
	if kind == ir.OpRemainder {
		return b.Select(isZero, x, b.Arith(URem, h, x, safe))
	}
	return b.Select(isZero, b.Int(h, -1), b.Arith(UDiv, h, x, safe))
}

// shift guards counts of the width or more, which shift everything out. Unsigned types have no
// sign to bring in.
func (b *Builder) shift(kind ir.Kind, h ir.DType, signed bool, x, n *Expr) *Expr {
	width := int64(h.Bits())
	inside := b.Cmp(ULT, n, b.Int(h, width))
	safe := b.Select(inside, n, b.Int(h, 0))
	switch {
	case kind == ir.OpShiftRightArithmetic && signed:
		return b.Arith(AShr, h, x, b.Select(inside, n, b.Int(h, width-1)))
	case kind == ir.OpShiftLeft:
		return b.Select(inside, b.Arith(Shl, h, x, safe), b.Int(h, 0))
	}
	return b.Select(inside, b.Arith(LShr, h, x, safe), b.Int(h, 0))
}

// integerPower multiplies by squaring. Negative exponents give what exact division would
// truncate to: 0, or 1 and -1 for bases 1 and -1.
func (b *Builder) integerPower(h ir.DType, signed bool, x, n *Expr) *Expr {
	one, zero := b.Int(h, 1), b.Int(h, 0)
	result, base := one, x
	for i := range int64(h.Bits()) {
		bit := b.Cmp(NE, b.Arith(And, h, b.Arith(LShr, h, n, b.Int(h, i)), one), zero)
		result = b.Select(bit, b.Arith(Mul, h, result, base), result)
		base = b.Arith(Mul, h, base, base)
	}
	if !signed {
		return result
	}
	odd := b.Cmp(NE, b.Arith(And, h, n, one), zero)
	negative := b.Select(b.Cmp(EQ, x, one), one, b.Select(b.Cmp(EQ, x, b.Int(h, -1)), b.Select(odd, b.Int(h, -1), one), zero))
	return b.Select(b.Cmp(SLT, n, zero), negative, result)
}

// lessThan orders two held values of a type; false with NaN.
func (b *Builder) lessThan(t ir.DType, x, y *Expr) *Expr {
	switch {
	case t.IsFloat():
		return b.Cmp(FLT, x, y)
	case t.IsSigned():
		return b.Cmp(SLT, x, y)
	}
	return b.Cmp(ULT, x, y)
}

func (b *Builder) isNaN(x *Expr) *Expr { return b.Cmp(FNE, x, x) }

func (b *Builder) compare(d ir.Direction, t ir.DType, x, y *Expr) *Expr {
	if d == ir.GT || d == ir.GE {
		x, y = y, x
		d = map[ir.Direction]ir.Direction{ir.GT: ir.LT, ir.GE: ir.LE}[d]
	}
	var table [4]Predicate
	switch {
	case t.IsFloat():
		table = [4]Predicate{ir.EQ: FEQ, ir.NE: FNE, ir.LT: FLT, ir.LE: FLE}
	case t.IsSigned():
		table = [4]Predicate{ir.EQ: EQ, ir.NE: NE, ir.LT: SLT, ir.LE: SLE}
	default:
		table = [4]Predicate{ir.EQ: EQ, ir.NE: NE, ir.LT: ULT, ir.LE: ULE}
	}
	return b.Cmp(table[d], x, y)
}

// convert changes the element type of a held value. The result of a conversion to a half type
// is rounded.
func (b *Builder) convert(x *Expr, from, to ir.DType) *Expr {
	if from == to {
		return x
	}
	hf, ht := held(from), held(to)
	switch {
	case to == ir.Bool && hf.IsFloat():
		return b.Cmp(FNE, x, b.Float(hf, 0))
	case to == ir.Bool:
		return b.Cmp(NE, x, b.Int(hf, 0))
	case hf.IsFloat() && ht.IsFloat():
		if hf != ht {
			x = b.widenOrRound(x, ht, to)
		}
		return b.finish(to, x)
	case ht.IsFloat():
		return b.integerToFloat(x, from, to)
	case hf.IsFloat():
		return b.floatToInteger(x, hf, to)
	}
	return b.integerToInteger(x, from, ht)
}

// widenOrRound converts between float32 and float64. From float64 to a half type the value is
// first rounded to float32 to odd, so that the second rounding is right.
func (b *Builder) widenOrRound(x *Expr, h, to ir.DType) *Expr {
	y := b.Arith(FConvert, h, x)
	if h == ir.F64 || to == ir.F32 {
		return y
	}
	back := b.Arith(FConvert, ir.F64, y)
	bits := b.Arith(Bitcast, ir.I32, y)
	one := b.Int(ir.I32, 1)
	// Toward zero, then the last bit set where inexact. A finite x that became infinite comes
	// back as the largest float32, which the half type rounds to infinity again.
	over := b.Cmp(FLT, b.Arith(FAbs, ir.F64, x), b.Arith(FAbs, ir.F64, back))
	truncated := b.Select(over, b.Arith(Sub, ir.I32, bits, one), bits)
	odd := b.Arith(Bitcast, ir.F32, b.Arith(Or, ir.I32, truncated, one))
	exact := b.Or(b.Cmp(FEQ, back, x), b.Cmp(FNE, x, x))
	return b.Select(exact, y, odd)
}

func (b *Builder) integerToFloat(x *Expr, from, to ir.DType) *Expr {
	h := held(to)
	if from == ir.Bool {
		return b.Select(x, b.Float(h, 1), b.Float(h, 0))
	}
	if h == ir.F32 && to != ir.F32 && from.Bits() > 16 {
		// Through float64, which holds 32-bit integers exactly, and 64-bit ones rounded to odd.
		if from.Bits() == 64 {
			x = b.roundToOdd(x, from.IsSigned())
		}
		return b.finish(to, b.widenOrRound(b.integerToFloat(x, from, ir.F64), ir.F32, to))
	}
	op := UToF
	if from.IsSigned() {
		op = SToF
	}
	return b.finish(to, b.Arith(op, h, x))
}

// roundToOdd makes a 64-bit integer one that float64 holds, in such a way that rounding it to
// fewer digits gives what rounding the integer itself would.
func (b *Builder) roundToOdd(x *Expr, signed bool) *Expr {
	const dropped = 11
	i64 := func(v int64) *Expr { return b.Int(ir.I64, v) }
	small := b.Cmp(ULT, x, i64(1<<53))
	if signed {
		small = b.Cmp(ULT, b.Arith(Add, ir.I64, x, i64(1<<53)), i64(1<<54))
	}
	kept := b.Arith(And, ir.I64, x, i64(-1<<dropped))
	exact := b.Cmp(EQ, kept, x)
	odd := b.Arith(Or, ir.I64, kept, i64(1<<dropped))
	return b.Select(b.Or(small, exact), x, odd)
}

// floatToInteger truncates, saturates and takes NaN to 0.
func (b *Builder) floatToInteger(x *Expr, hf, to ir.DType) *Expr {
	ht := held(to)
	bits := to.Bits()
	low, high := -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
	lowest, highest := fullRange(ht)
	op := FToS
	if to.IsUnsigned() {
		low, high, op = 0, math.Ldexp(1, bits), FToU
		lowest, highest = 0, -1
	}
	whole := b.Arith(FTrunc, hf, x)
	tooLow := b.Cmp(FLT, whole, b.Float(hf, low))
	tooHigh := b.Cmp(FLE, b.Float(hf, high), whole)
	outside := b.Or(b.Or(tooLow, tooHigh), b.isNaN(x))
	safe := b.Select(outside, b.Float(hf, 0), whole)
	y := b.Arith(op, ht, safe)
	y = b.Select(tooLow, b.Int(ht, lowest), y)
	return b.Select(tooHigh, b.Int(ht, highest), y)
}

func (b *Builder) integerToInteger(x *Expr, from, h ir.DType) *Expr {
	switch {
	case x.Op == Const && from == ir.Bool:
		return b.Int(h, x.Imm)
	case x.Type.Bits() > h.Bits() && from != ir.Bool:
		return b.Arith(Trunc, h, x)
	case from.IsSigned() && x.Type != h:
		return b.FromIndex(x, h)
	case x.Type != h:
		return b.Arith(ZExt, h, x)
	}
	return x
}

// bitcast reinterprets bits; half types are held wider than they are. A bool is 0 or 1.
func (b *Builder) bitcast(x *Expr, from, to ir.DType) *Expr {
	if from == to {
		return x
	}
	if from.Bits() == 16 && from.IsFloat() {
		x = b.node(HalfBits, ir.I16, int64(from), x)
	}
	if to.Bits() == 16 && to.IsFloat() {
		return b.node(BitsHalf, ir.F32, int64(to), x)
	}
	switch t := held(to); {
	case x.Type == t:
		return x
	case from == ir.Bool:
		return b.Arith(ZExt, t, x)
	case to == ir.Bool:
		return b.Cmp(NE, x, b.zero(x.Type))
	default:
		return b.Arith(Bitcast, t, x)
	}
}
