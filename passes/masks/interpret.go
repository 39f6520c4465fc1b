package masks

import (
	"strconv"
	"strings"

	"weft/ir"
)

// interpreter finds what is known of values at points whose coordinates are forms.
type interpreter struct {
	space
	entry *ir.Entry
	defs  map[ir.Value]*ir.Op // of operations outside of kernels
	known map[string]value    // by value and point
	left  int                 // evaluations until a mask is given up
	rules [ir.NumKinds]rule
}

// patience is how many evaluations a mask may take.
const patience = 20000

func newInterpreter(p *ir.Program, e *ir.Entry) *interpreter {
	n := &interpreter{space: space{program: p}, entry: e, defs: map[ir.Value]*ir.Op{}, known: map[string]value{}, rules: followed()}
	n.define(&e.Body)
	return n
}

func (n *interpreter) define(b *ir.Block) {
	for _, op := range b.Ops {
		for _, r := range op.Results {
			n.defs[r] = op
		}
		for _, r := range op.Regions {
			if op.Kind != ir.OpKernel {
				n.define(r)
			}
		}
	}
}

// at is the element of v at a point, which has a coordinate a dim. Coordinates lie inside of the shape.
func (n *interpreter) at(v ir.Value, point []form) value {
	op := n.defs[v]
	if op == nil || len(op.Results) != 1 {
		return value{}
	}
	rule := n.rules[op.Kind]
	if rule == nil || n.left <= 0 {
		return value{}
	}
	var b strings.Builder
	b.WriteString(strconv.Itoa(int(v)))
	for _, f := range point {
		if !n.modest(f) {
			return value{}
		}
		b.WriteString(",")
		b.WriteString(f.String())
	}
	key := b.String()
	if known, ok := n.known[key]; ok {
		return known
	}
	n.left--
	found := rule(n, op, point)
	if found.kind == number {
		found = n.number(found.form, n.entry.Type(v).DType)
	}
	n.known[key] = found
	return found
}

// shape is the shape of an operand.
func (n *interpreter) shape(op *ir.Op, operand int) []ir.Dim {
	return n.entry.Type(op.Operands[operand]).Shape
}

// rule gives the element of an operation's result at a point. A number need not fit its type: that is looked at later.
type rule func(n *interpreter, op *ir.Op, point []form) value

// followed has the rules of the kinds that are followed; of others nothing is known.
func followed() (t [ir.NumKinds]rule) {
	t[ir.OpConstant] = constant
	t[ir.OpDim] = func(_ *interpreter, op *ir.Op, _ []form) value {
		return value{kind: number, form: constantForm(op.Attrs.(*ir.DimAttrs).Value)}
	}
	t[ir.OpIota] = func(_ *interpreter, op *ir.Op, point []form) value {
		return value{kind: number, form: point[op.Attrs.(*ir.IotaAttrs).Axis]}
	}
	t[ir.OpConvert] = convert
	t[ir.OpCompare] = compare
	t[ir.OpSelect] = selected
	t[ir.OpNegate] = numbers(func(_ *space, x []form) (form, bool) { return form{}.add(x[0], -1), true })
	t[ir.OpAdd] = numbers(func(_ *space, x []form) (form, bool) { return x[0].add(x[1], 1), true })
	t[ir.OpSubtract] = numbers(func(_ *space, x []form) (form, bool) { return x[0].add(x[1], -1), true })
	t[ir.OpMultiply] = numbers(product)
	t[ir.OpRemainder] = numbers(remainder)
	t[ir.OpMaximum] = extreme((*space).larger, (*space).either)
	t[ir.OpMinimum] = extreme((*space).smaller, (*space).both)
	t[ir.OpClamp] = numbers(func(s *space, x []form) (form, bool) {
		raised, ok := s.larger(x[0], x[1])
		if !ok {
			return form{}, false
		}
		return s.smaller(raised, x[2])
	})
	t[ir.OpNot] = func(n *interpreter, op *ir.Op, point []form) value { return n.not(n.at(op.Operands[0], point)) }
	t[ir.OpAnd] = truths((*space).both)
	t[ir.OpOr] = truths((*space).either)
	for kind := range t {
		if onlyMoves(ir.Kind(kind)) {
			t[kind] = moved
		}
	}
	t[ir.OpConcatenate] = concatenate
	t[ir.OpPad] = pad
	t[ir.OpGather] = gather
	t[ir.OpDynamicSlice] = dynamicSlice
	t[ir.OpReduce] = reduce
	t[ir.OpCumulative] = cumulative
	return t
}

// numbers adapts a function of integers.
func numbers(f func(s *space, x []form) (form, bool)) rule {
	return func(n *interpreter, op *ir.Op, point []form) value {
		x := make([]form, len(op.Operands))
		for i, v := range op.Operands {
			known := n.at(v, point)
			if known.kind != number {
				return value{}
			}
			x[i] = known.form
		}
		if y, ok := f(&n.space, x); ok {
			return value{kind: number, form: y}
		}
		return value{}
	}
}

// truths adapts a function of bools. What is unknown of one operand may not matter.
func truths(f func(s *space, a, b value) value) rule {
	return func(n *interpreter, op *ir.Op, point []form) value {
		if n.entry.Type(op.Results[0]).DType != ir.Bool {
			return value{}
		}
		return f(&n.space, n.at(op.Operands[0], point), n.at(op.Operands[1], point))
	}
}

// extreme adapts a maximum or minimum, which is logical on bool.
func extreme(of func(s *space, x, y form) (form, bool), logical func(s *space, a, b value) value) rule {
	integers := numbers(func(s *space, x []form) (form, bool) { return of(s, x[0], x[1]) })
	bools := truths(logical)
	return func(n *interpreter, op *ir.Op, point []form) value {
		if n.entry.Type(op.Results[0]).DType == ir.Bool {
			return bools(n, op, point)
		}
		return integers(n, op, point)
	}
}

// larger is the maximum of x and y where one is so everywhere.
func (s *space) larger(x, y form) (form, bool) {
	switch {
	case s.atLeastZero(x.add(y, -1)):
		return x, true
	case s.atLeastZero(y.add(x, -1)):
		return y, true
	}
	return form{}, false
}

// smaller is the minimum of x and y where one is so everywhere.
func (s *space) smaller(x, y form) (form, bool) {
	switch {
	case s.atLeastZero(x.add(y, -1)):
		return y, true
	case s.atLeastZero(y.add(x, -1)):
		return x, true
	}
	return form{}, false
}

func product(_ *space, x []form) (form, bool) {
	for i, f := range x {
		if f.fixed() {
			if y, ok := x[1-i].scale(f.c); ok {
				return y, true
			}
		}
	}
	return form{}, false
}

// remainder is the dividend where that is at least 0 and less than the divisor.
func remainder(s *space, x []form) (form, bool) {
	return x[0], s.atLeastZero(x[0]) && s.atLeastZero(x[1].add(x[0], -1).plus(ir.Const(-1)))
}

func convert(n *interpreter, op *ir.Op, point []form) value {
	to, x := op.Attrs.(*ir.ConvertAttrs).To, n.at(op.Operands[0], point)
	switch {
	case to == ir.Bool && x.kind == number:
		return n.compared(ir.NE, x.form, form{})
	case to == ir.Bool:
		return x
	case !to.IsInteger():
		return value{}
	case x.kind == never:
		return value{kind: number}
	case x.always():
		return value{kind: number, form: constantForm(ir.Const(1))}
	case x.kind == number:
		return x
	}
	return value{}
}

func compare(n *interpreter, op *ir.Op, point []form) value {
	d := op.Attrs.(*ir.CompareAttrs).Direction
	x, y := n.at(op.Operands[0], point), n.at(op.Operands[1], point)
	switch {
	case x.kind == number && y.kind == number:
		return n.compared(d, x.form, y.form)
	case x.kind == number || y.kind == number || d != ir.EQ && d != ir.NE:
		return value{}
	case x.kind == never || x.always():
		x, y = y, x // the one that is the same everywhere comes second
	}
	switch {
	case y.always() && d == ir.EQ, y.kind == never && d == ir.NE:
		return x
	case y.always(), y.kind == never:
		return n.not(x)
	}
	return value{}
}

func selected(n *interpreter, op *ir.Op, point []form) value {
	p := n.at(op.Operands[0], point)
	switch {
	case p.always():
		return n.at(op.Operands[1], point)
	case p.kind == never:
		return n.at(op.Operands[2], point)
	}
	x, y := n.at(op.Operands[1], point), n.at(op.Operands[2], point)
	switch {
	case n.same(x, y):
		return x
	case n.entry.Type(op.Results[0]).DType != ir.Bool:
		return value{}
	case y.kind == never:
		return n.both(p, x)
	case x.always():
		return n.either(p, y)
	case x.kind == never:
		return n.both(n.not(p), y)
	case y.always():
		return n.either(n.not(p), x)
	}
	return value{}
}

// literalLimit is the number of elements up to which literals are looked at.
const literalLimit = 1 << 16

// constant is a literal that counts in equal steps along each dim, or an element of it.
func constant(_ *interpreter, op *ir.Op, point []form) value {
	t := op.Attrs.(*ir.ConstantAttrs).Value
	if n := t.Numel(); n == 0 || n > literalLimit || t.DType != ir.Bool && !t.DType.IsInteger() {
		return value{}
	}
	element := func(x int64) value {
		if t.DType == ir.Bool {
			return flag(x != 0)
		}
		return value{kind: number, form: constantForm(ir.Const(x))}
	}
	if offset, ok := fixedOffset(t.Shape, point); ok {
		return element(t.Int(offset))
	}
	f := constantForm(ir.Const(t.Int(0)))
	steps, stride := make([]int64, len(t.Shape)), int64(1)
	for d := len(t.Shape) - 1; d >= 0; d-- {
		if t.Shape[d] > 1 {
			steps[d] = t.Int(stride) - t.Int(0)
		}
		if abs(steps[d]) > largestCoefficient {
			return value{}
		}
		f = f.add(point[d], steps[d])
		stride *= t.Shape[d]
	}
	for i := range t.Numel() {
		want, rest := t.Int(0), i
		for d := len(t.Shape) - 1; d >= 0; d-- {
			want += steps[d] * (rest % t.Shape[d])
			rest /= t.Shape[d]
		}
		if t.Int(i) != want {
			return value{}
		}
	}
	if x, ok := f.c.IsConst(); ok && f.fixed() {
		return element(x)
	}
	if t.DType == ir.Bool {
		return value{}
	}
	return value{kind: number, form: f}
}

// fixedOffset is the offset of an element whose coordinates are numbers.
func fixedOffset(shape []int64, point []form) (int64, bool) {
	offset := int64(0)
	for d, f := range point {
		x, ok := f.c.IsConst()
		if !ok || !f.fixed() || x < 0 || x >= shape[d] {
			return 0, false
		}
		offset = offset*shape[d] + x
	}
	return offset, true
}
