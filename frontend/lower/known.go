package lower

import (
	"math"

	"weft/ir"
)

// Number is one element of a tensor whose contents are known while a program is built. For
// integers and bools it is Dim. For floats it is Dim * Factor, where Dim is 1 unless the
// number comes from a symbolic size.
type Number struct {
	Dim    ir.Dim
	Factor float64
}

func integer(d ir.Dim) Number { return Number{Dim: d} }

func truth(v bool) Number {
	if v {
		return integer(ir.Const(1))
	}
	return integer(ir.Const(0))
}

// float makes a float number, rounded to a type.
func float(t ir.DType, v float64) Number {
	switch {
	case t == ir.F32:
		v = float64(float32(v))
	case t.Bits() <= 16:
		v = ir.DecodeFloat(t, ir.EncodeFloat(t, v))
	}
	return Number{ir.Const(1), v}
}

// Known evaluates the small integer, bool and float tensors that shapes are computed from,
// with symbolic sizes as expressions. It looks at the operations that a builder appended, so
// every operator that is lowered to primitives is covered.
type Known struct {
	program  *ir.Program
	entry    *ir.Entry
	blocks   []watched
	defs     map[ir.Value]*ir.Op
	memo     map[ir.Value][]Number // nil: not known
	literals map[ir.Value]*ir.Tensor
	budget   int64 // elements that may still be evaluated
}

type watched struct {
	block *ir.Block
	seen  int
}

// Limits of what is evaluated: elements of a tensor, characters of a dim expression, and
// elements in all.
const (
	maxKnownElements = 1 << 14
	maxDimText       = 1 << 10
	maxKnownTotal    = 1 << 22
)

// NewKnown makes an evaluator for the values of an entry's body.
func NewKnown(p *ir.Program, e *ir.Entry) *Known {
	k := &Known{program: p, entry: e, defs: map[ir.Value]*ir.Op{}, memo: map[ir.Value][]Number{}, literals: map[ir.Value]*ir.Tensor{}, budget: maxKnownTotal}
	k.Watch(&e.Body)
	return k
}

// Watch adds the block of a region, before operations are appended to it.
func (k *Known) Watch(block *ir.Block) { k.blocks = append(k.blocks, watched{block, len(block.Ops)}) }

// Literal tells the contents of a value that no operation makes.
func (k *Known) Literal(v ir.Value, t *ir.Tensor) { k.literals[v] = t }

// Numbers gives the contents of a tensor in row-major order, when they are known.
func (k *Known) Numbers(v ir.Value) ([]Number, bool) {
	for i := range k.blocks {
		w := &k.blocks[i]
		for _, op := range w.block.Ops[w.seen:] {
			for _, r := range op.Results {
				k.defs[r] = op
			}
		}
		w.seen = len(w.block.Ops)
	}
	n := k.numbers(v)
	return n, n != nil
}

// Dims gives the contents of an integer or bool tensor.
func (k *Known) Dims(v ir.Value) ([]ir.Dim, bool) {
	numbers, ok := k.Numbers(v)
	if !ok || k.isFloat(v) {
		return nil, false
	}
	dims := make([]ir.Dim, len(numbers))
	for i, n := range numbers {
		dims[i] = n.Dim
	}
	return dims, true
}

// Ints gives the contents of an integer or bool tensor without symbols.
func (k *Known) Ints(v ir.Value) ([]int64, bool) {
	dims, ok := k.Dims(v)
	ints := make([]int64, len(dims))
	for i, d := range dims {
		c, isConst := d.IsConst()
		ints[i], ok = c, ok && isConst
	}
	return ints, ok
}

// Floats gives the contents of a real tensor without symbols.
func (k *Known) Floats(v ir.Value) ([]float64, bool) {
	numbers, ok := k.Numbers(v)
	floats := make([]float64, len(numbers))
	for i, n := range numbers {
		c, isConst := n.Dim.IsConst()
		floats[i], ok = float64(c), ok && isConst
		if k.isFloat(v) {
			floats[i] *= n.Factor
		}
	}
	return floats, ok
}

// Tensor gives the contents as a literal, when they hold no symbols.
func (k *Known) Tensor(v ir.Value) (*ir.Tensor, bool) {
	t := k.entry.Types[v]
	shape, isConst := t.ConstShape()
	if !isConst || t.DType.Class() == ir.ClassString || t.DType.IsComplex() {
		return nil, false
	}
	if k.isFloat(v) {
		floats, ok := k.Floats(v)
		if !ok {
			return nil, false
		}
		out := ir.NewTensor(t.DType, shape...)
		for i, f := range floats {
			out.SetFloat(int64(i), f)
		}
		return out, true
	}
	ints, ok := k.Ints(v)
	if !ok {
		return nil, false
	}
	out := ir.NewTensor(t.DType, shape...)
	for i, n := range ints {
		out.SetInt(int64(i), n)
	}
	return out, true
}

func (k *Known) isFloat(v ir.Value) bool { return k.entry.Types[v].DType.IsFloat() }

// size is the number of elements of a value that is small enough to evaluate.
func (k *Known) size(v ir.Value) (shape []int64, n int64, ok bool) {
	t := k.entry.Types[v]
	shape, ok = t.ConstShape()
	if t.Kind != ir.TensorKind || !ok {
		return nil, 0, false
	}
	switch t.DType.Class() {
	case ir.ClassString, ir.ClassComplex:
		return nil, 0, false
	}
	n = 1
	for _, d := range shape {
		if d < 0 || d > maxKnownElements || n*d > maxKnownElements {
			return nil, 0, false
		}
		n *= d
	}
	return shape, n, true
}

func (k *Known) numbers(v ir.Value) []Number {
	if n, done := k.memo[v]; done {
		return n
	}
	shape, count, ok := k.size(v)
	if !ok {
		k.memo[v] = nil
		return nil
	}
	if k.budget -= count; k.budget < 0 {
		return nil
	}
	var out []Number
	if t := k.literals[v]; t != nil {
		out = literalNumbers(t)
	} else if op := k.defs[v]; op != nil && len(op.Results) == 1 {
		out = k.evaluate(op, k.entry.Types[v].DType, shape, count)
	}
	for _, n := range out {
		if len(n.Dim.String()) > maxDimText {
			out = nil
			break
		}
	}
	if out != nil && int64(len(out)) != count {
		out = nil
	}
	k.memo[v] = out
	return out
}

func literalNumbers(t *ir.Tensor) []Number {
	out := make([]Number, t.Numel())
	for i := range out {
		if t.DType.IsFloat() {
			out[i] = Number{ir.Const(1), t.Float(int64(i))}
		} else {
			out[i] = integer(ir.Const(t.Int(int64(i))))
		}
	}
	return out
}

// evaluate gives the contents of an operation's result, nil when they are not known.
func (k *Known) evaluate(op *ir.Op, dtype ir.DType, shape []int64, count int64) []Number {
	switch a := op.Attrs.(type) {
	case *ir.ConstantAttrs:
		return literalNumbers(a.Value)
	case *ir.DimAttrs:
		return []Number{integer(a.Value)}
	case *ir.IotaAttrs:
		return iotaNumbers(a, dtype, shape, count)
	}
	if op.Kind.Info().Class == ir.ClassControl {
		return nil
	}
	operands := make([][]Number, len(op.Operands))
	for i, v := range op.Operands {
		if operands[i] = k.numbers(v); operands[i] == nil {
			return nil
		}
	}
	switch op.Kind.Info().Class {
	case ir.ClassElementwise:
		return k.elementwise(op, dtype, operands, count)
	case ir.ClassIndex:
		return k.indexed(op, operands, shape, count)
	}
	if op.Kind == ir.OpReduce {
		return k.reduce(op, dtype, operands[0], shape, count)
	}
	return nil
}

func iotaNumbers(a *ir.IotaAttrs, dtype ir.DType, shape []int64, count int64) []Number {
	out := make([]Number, count)
	for i := range out {
		at := unravel(int64(i), shape)[a.Axis]
		if dtype.IsFloat() {
			out[i] = float(dtype, float64(at))
		} else {
			out[i] = integer(ir.Const(at))
		}
	}
	return out
}

// unravel is the position of a row-major index.
func unravel(i int64, shape []int64) []int64 {
	at := make([]int64, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		at[d] = i % shape[d]
		i /= shape[d]
	}
	return at
}

func ravel(at, shape []int64) int64 {
	i := int64(0)
	for d, n := range shape {
		i = i*n + at[d]
	}
	return i
}

func (k *Known) elementwise(op *ir.Op, dtype ir.DType, operands [][]Number, count int64) []Number {
	from := k.entry.Types[op.Operands[0]].DType
	out := make([]Number, count)
	for i := range out {
		var ok bool
		args := make([]Number, len(operands))
		for j := range operands {
			args[j] = operands[j][i]
			if len(args[j].Dim.String()) > maxDimText/4 {
				return nil
			}
		}
		if out[i], ok = k.scalar(op, from, dtype, args); !ok {
			return nil
		}
	}
	return out
}

// scalar evaluates an elementwise operation on one element; from is the element type of the
// first operand, to of the result.
func (k *Known) scalar(op *ir.Op, from, to ir.DType, x []Number) (Number, bool) {
	switch op.Kind {
	case ir.OpSelect:
		c, ok := x[0].Dim.IsConst()
		if c != 0 {
			return x[1], ok
		}
		return x[2], ok
	case ir.OpConvert:
		return k.convert(from, to, x[0])
	case ir.OpCompare:
		return k.compare(op.Attrs.(*ir.CompareAttrs).Direction, from, x[0], x[1])
	case ir.OpClamp:
		low, ok := k.scalarBinary(ir.OpMaximum, from, x[1], x[0])
		if !ok {
			return Number{}, false
		}
		return k.scalarBinary(ir.OpMinimum, from, low, x[2])
	}
	switch len(x) {
	case 1:
		return k.scalarUnary(op.Kind, from, x[0])
	case 2:
		return k.scalarBinary(op.Kind, from, x[0], x[1])
	}
	return Number{}, false
}

func (k *Known) scalarUnary(kind ir.Kind, t ir.DType, x Number) (Number, bool) {
	if t.IsFloat() {
		return k.floatUnary(kind, t, x)
	}
	c, isConst := x.Dim.IsConst()
	switch kind {
	case ir.OpNegate:
		return wrap(t, x.Dim.Neg())
	case ir.OpNot:
		if t == ir.Bool {
			return truth(c == 0), isConst
		}
		n, ok := wrap(t, ir.Const(^c))
		return n, ok && isConst
	case ir.OpAbs, ir.OpSign:
		r := x.Dim.Bounds(k.program.Range)
		switch {
		case kind == ir.OpAbs && r.Min >= 0:
			return x, true
		case kind == ir.OpAbs && isConst:
			return wrap(t, x.Dim.Neg())
		case kind == ir.OpSign && r.Min > 0:
			return integer(ir.Const(1)), true
		case kind == ir.OpSign && isConst:
			return integer(ir.Const(min(max(c, -1), 1))), true
		}
	}
	return Number{}, false
}

func (k *Known) floatUnary(kind ir.Kind, t ir.DType, x Number) (Number, bool) {
	if c, isConst := x.Dim.IsConst(); isConst {
		v := float64(c) * x.Factor
		f, ok := map[ir.Kind]func(float64) float64{
			ir.OpNegate: func(v float64) float64 { return -v }, ir.OpAbs: math.Abs, ir.OpFloor: math.Floor,
			ir.OpCeil: math.Ceil, ir.OpRoundNearestEven: math.RoundToEven, ir.OpRoundNearestAfz: math.Round, ir.OpSqrt: math.Sqrt,
		}[kind]
		if !ok {
			return Number{}, false
		}
		return float(t, f(v)), true
	}
	switch kind {
	case ir.OpNegate:
		return Number{x.Dim, -x.Factor}, true
	case ir.OpFloor, ir.OpCeil:
		p, q, ok := fraction(x.Factor)
		if kind == ir.OpCeil {
			return Number{x.Dim.MulConst(p).CeilDiv(q), 1}, ok
		}
		return Number{x.Dim.MulConst(p).FloorDiv(ir.Const(q)), 1}, ok
	}
	return Number{}, false
}

// fraction writes a factor as p/q with a small q; float32 noise is forgiven.
func fraction(f float64) (p, q int64, ok bool) {
	for q = 1; q <= 64; q++ {
		v := math.Round(f * float64(q))
		if math.Abs(v) < 1<<31 && math.Abs(f*float64(q)-v) <= math.Abs(v)*0x1p-22 {
			return int64(v), q, v != 0 || f == 0
		}
	}
	return 0, 1, false
}

func (k *Known) scalarBinary(kind ir.Kind, t ir.DType, x, y Number) (Number, bool) {
	if t.IsFloat() {
		return floatBinary(kind, t, x, y)
	}
	a, b := x.Dim, y.Dim
	ca, okA := a.IsConst()
	cb, okB := b.IsConst()
	constant := okA && okB
	switch kind {
	case ir.OpAdd:
		return wrap(t, a.Add(b))
	case ir.OpSubtract:
		return wrap(t, a.Sub(b))
	case ir.OpMultiply:
		return wrap(t, a.Mul(b))
	case ir.OpMaximum:
		return integer(MaxDim(k.program, a, b)), t.Bits() < 64 || !t.IsUnsigned()
	case ir.OpMinimum:
		return integer(MinDim(k.program, a, b)), t.Bits() < 64 || !t.IsUnsigned()
	case ir.OpDivide, ir.OpRemainder:
		return k.divide(kind, a, b)
	case ir.OpAnd:
		return integer(ir.Const(ca & cb)), constant || okA && ca == 0 || okB && cb == 0
	case ir.OpOr:
		if t == ir.Bool && (okA && ca != 0 || okB && cb != 0) {
			return truth(true), true
		}
		return integer(ir.Const(ca | cb)), constant
	case ir.OpXor:
		return integer(ir.Const(ca ^ cb)), constant
	case ir.OpPower:
		return power(t, ca, cb, constant)
	}
	return Number{}, false
}

func power(t ir.DType, base, exponent int64, known bool) (Number, bool) {
	if !known || exponent < 0 || exponent > 64 {
		return Number{}, false
	}
	p := ir.Const(1)
	for range exponent {
		p = p.MulConst(base)
	}
	return wrap(t, p)
}

func (k *Known) divide(kind ir.Kind, a, b ir.Dim) (Number, bool) {
	ca, okA := a.IsConst()
	cb, okB := b.IsConst()
	switch {
	case okB && cb == 0:
		return Number{}, false
	case okA && okB && kind == ir.OpDivide:
		if cb == -1 {
			return integer(a.Neg()), true
		}
		return integer(ir.Const(ca / cb)), true
	case okA && okB:
		if cb == -1 {
			return integer(ir.Const(0)), true
		}
		return integer(ir.Const(ca % cb)), true
	}
	// Truncation is floor where both are not negative.
	if a.Bounds(k.program.Range).Min < 0 || b.Bounds(k.program.Range).Min <= 0 {
		if q, ok := a.DivExact(b); ok && kind == ir.OpDivide {
			return integer(q), true
		}
		return Number{}, false
	}
	if kind == ir.OpDivide {
		return integer(a.FloorDiv(b)), true
	}
	return integer(a.Mod(b)), true
}

func floatBinary(kind ir.Kind, t ir.DType, x, y Number) (Number, bool) {
	ca, okA := x.Dim.IsConst()
	cb, okB := y.Dim.IsConst()
	if okA && okB {
		a, b := float64(ca)*x.Factor, float64(cb)*y.Factor
		switch kind {
		case ir.OpAdd:
			return float(t, a+b), true
		case ir.OpSubtract:
			return float(t, a-b), true
		case ir.OpMultiply:
			return float(t, a*b), true
		case ir.OpDivide:
			return float(t, a/b), true
		case ir.OpMaximum:
			return float(t, max(a, b)), true
		case ir.OpMinimum:
			return float(t, min(a, b)), true
		}
		return Number{}, false
	}
	switch kind {
	case ir.OpMultiply:
		return Number{x.Dim.Mul(y.Dim), x.Factor * y.Factor}, true
	case ir.OpDivide:
		if okB && cb != 0 {
			return Number{x.Dim, x.Factor / (float64(cb) * y.Factor)}, y.Factor != 0
		}
		if q, ok := x.Dim.DivExact(y.Dim); ok && y.Factor != 0 {
			return Number{q, x.Factor / y.Factor}, true
		}
	}
	return Number{}, false
}

// wrap gives constants the range of an integer type; an expression must be at least 32 bits
// wide to be trusted.
func wrap(t ir.DType, d ir.Dim) (Number, bool) {
	c, isConst := d.IsConst()
	if !isConst {
		return integer(d), t.IsInteger() && t.Bits() >= 32
	}
	if !t.IsInteger() || c == math.MaxInt64 && t.Bits() < 64 {
		return Number{}, false
	}
	out := ir.ScalarInt(t, c)
	return integer(ir.Const(out.Int(0))), true
}

func (k *Known) convert(from, to ir.DType, x Number) (Number, bool) {
	c, isConst := x.Dim.IsConst()
	switch {
	case isConst && from.IsFloat() && to.IsFloat():
		return float(to, float64(c)*x.Factor), true
	case from.IsFloat() && to.IsFloat():
		return x, true
	case isConst && from.IsFloat():
		v := float64(c) * x.Factor
		if to == ir.Bool {
			return truth(v != 0), true
		}
		return integer(ir.Const(ir.SaturateToInt(to, v))), true
	case from.IsFloat():
		floor, ok := k.floatUnary(ir.OpFloor, from, x)
		nonNegative := x.Factor >= 0 && x.Dim.Bounds(k.program.Range).Min >= 0
		return integer(floor.Dim), ok && nonNegative && to.Bits() >= 32
	case to.IsFloat():
		if isConst {
			return float(to, float64(c)), from != ir.U64 || c >= 0
		}
		return Number{x.Dim, 1}, true
	case to == ir.Bool:
		if r := x.Dim.Bounds(k.program.Range); r.Min > 0 || r.Max < 0 {
			return truth(true), true
		}
		return truth(c != 0), isConst
	case to.IsInteger():
		return wrap(to, x.Dim)
	}
	return Number{}, false
}

// compare decides a comparison where every value of the symbols gives the same answer.
func (k *Known) compare(d ir.Direction, t ir.DType, x, y Number) (Number, bool) {
	if t.IsFloat() {
		ca, okA := x.Dim.IsConst()
		cb, okB := y.Dim.IsConst()
		a, b := float64(ca)*x.Factor, float64(cb)*y.Factor
		return truth([]bool{a == b, a != b, a < b, a <= b, a > b, a >= b}[d]), okA && okB
	}
	if t == ir.U64 {
		return Number{}, false
	}
	r := x.Dim.Sub(y.Dim).Bounds(k.program.Range)
	if ca, ok := x.Dim.IsConst(); ok {
		if cb, ok := y.Dim.IsConst(); ok { // a difference of constants may saturate
			r = ir.Range{Min: order(ca, cb), Max: order(ca, cb)}
		}
	}
	var yes, no bool
	switch d {
	case ir.EQ:
		yes, no = r.Min == 0 && r.Max == 0, r.Min > 0 || r.Max < 0
	case ir.NE:
		no, yes = r.Min == 0 && r.Max == 0, r.Min > 0 || r.Max < 0
	case ir.LT:
		yes, no = r.Max < 0, r.Min >= 0
	case ir.LE:
		yes, no = r.Max <= 0, r.Min > 0
	case ir.GT:
		yes, no = r.Min > 0, r.Max <= 0
	case ir.GE:
		yes, no = r.Min >= 0, r.Max < 0
	}
	return truth(yes), yes || no
}

func order(a, b int64) int64 {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// MaxDim is the larger of two expressions; what is known of the symbols decides it where it can.
func MaxDim(p *ir.Program, a, b ir.Dim) ir.Dim {
	switch r := a.Sub(b).Bounds(p.Range); {
	case r.Min >= 0:
		return a
	case r.Max <= 0:
		return b
	}
	return a.Max(b)
}

// MinDim is the smaller of two expressions; what is known of the symbols decides it where it can.
func MinDim(p *ir.Program, a, b ir.Dim) ir.Dim {
	switch r := a.Sub(b).Bounds(p.Range); {
	case r.Min >= 0:
		return b
	case r.Max <= 0:
		return a
	}
	return a.Min(b)
}

// ScaleDim is floor(d * factor); for a symbolic d the factor must be a ratio of small integers.
func ScaleDim(d ir.Dim, factor float64) (ir.Dim, bool) {
	if c, ok := d.IsConst(); ok {
		return ir.Const(ir.SaturateToInt(ir.I64, math.Floor(float64(c)*factor))), true
	}
	p, q, ok := fraction(factor)
	return d.MulConst(p).FloorDiv(ir.Const(q)), ok
}
