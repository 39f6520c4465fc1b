package fx

import (
	"math"
	"strings"

	"weft/frontend/lower"
	"weft/ir"
)

// numberRule computes a Python number from numbers.
type numberRule func(c *call, x []number) number

// findNumberRule finds the rule of an operator on sizes and numbers, and how many operands it
// takes (-1: it reads tensors itself).
func findNumberRule(target string) (numberRule, int, bool) {
	name, library := target, ""
	for _, p := range []string{"_operator.", "math.", "torch.ops.aten.", "torch.", "builtins.", "torch.sym_"} {
		if rest, ok := strings.CutPrefix(target, p); ok {
			name, library = rest, p
			break
		}
	}
	switch library {
	case "torch.ops.aten.":
		if r, ok := tensorNumbers[name]; ok {
			return r, -1, true
		}
		return nil, 0, false
	case "":
		return nil, 0, false
	}
	if r, ok := unaryNumbers[strings.TrimPrefix(strings.TrimPrefix(name, "_"), "sym_")]; ok {
		return r, 1, true
	}
	if r, ok := binaryNumbers[strings.TrimPrefix(name, "sym_")]; ok {
		return r, 2, true
	}
	if name == "sym_ite" {
		return chooseNumber, 3, true
	}
	return nil, 0, false
}

// bindNumber gives the node's output its meaning: an int as the exporter recorded it, unless
// it depends on data; other numbers are computed when they are used.
func (c *call) bindNumber(r numberRule, arity int) {
	var args []number
	live := false
	if arity >= 0 {
		if len(c.node.inputs) != arity {
			c.bad("%d operands", len(c.node.inputs))
		}
		for i := range arity {
			n := c.asNumber(c.node.inputs[i].name, c.positional(i))
			args = append(args, n)
			live = live || n.live
		}
	}
	for _, o := range c.node.outputs {
		recorded, ok := c.graph.symInts[o.name]
		if o.kind == argSymInt && ok && !live && !strings.Contains(c.node.target, "item") && !strings.Contains(c.node.target, "_local_scalar_dense") {
			if recorded.expr == "" {
				c.bind(o.name, ir.Const(recorded.value), c.place)
				return
			}
			if d, err := c.expression(recorded.expr); err == nil {
				c.bind(o.name, d, c.place)
				return
			}
		}
		switch o.kind {
		case argSymInt, argSymFloat, argSymBool:
			var made *number
			c.bind(o.name, func() number {
				if made == nil {
					n := r(c, args)
					made = &n
				}
				return *made
			}, c.place)
		}
	}
}

// recordedInt is the recorded expression of a symbolic int.
func (s *scope) recordedInt(name, place string) ir.Dim {
	return s.dim(s.graph.symInts[name], place)
}

// tensorNumbers take numbers out of tensors.
var tensorNumbers = map[string]numberRule{
	"item.default":                takeNumber,
	"_local_scalar_dense.default": takeNumber,
	"sym_size.int": func(c *call, _ []number) number {
		shape := c.b.Shape(c.handle("self").read(c.b))
		axis := c.axis("dim", 0, len(shape))
		if len(shape) == 0 {
			c.bad("a scalar has no sizes")
		}
		return dimNumber(shape[axis])
	},
	"sym_numel.default": func(c *call, _ []number) number {
		return dimNumber(ir.Product(c.b.Shape(c.handle("self").read(c.b))))
	},
	"sym_stride.int": func(c *call, _ []number) number {
		t := c.handle("self")
		axis := c.axis("dim", 0, c.rank(t))
		c.require(axis < len(t.strides), "of unknown strides")
		return dimNumber(t.strides[axis])
	},
	"sym_storage_offset.default": func(*call, []number) number { return intLiteral(0) },
}

// takeNumber reads the only element of a tensor.
func takeNumber(c *call, _ []number) number {
	v := c.tensor("self")
	if !ir.Product(c.b.Shape(v)).Is(1) {
		c.bad("%s has not one element", c.b.Type(v))
	}
	v = c.b.Reshape(v, nil)
	switch t := c.b.DType(v); {
	case t == ir.Bool:
		return number{kind: boolNumber, v: v, live: true}
	case t.IsInteger():
		return number{kind: intNumber, v: c.b.Convert(v, ir.I64), live: true}
	}
	return number{kind: floatNumber, v: c.b.Convert(v, ir.F64), live: true}
}

// wide is a number's value in int64 or float64.
func (n number) wide(b *ir.Builder) ir.Value {
	if n.kind == floatNumber {
		return n.scalar(b, ir.F64)
	}
	return n.scalar(b, ir.I64)
}

func (n number) real(b *ir.Builder) ir.Value { return n.scalar(b, ir.F64) }

// liveNumber wraps a scalar.
func liveNumber(b *ir.Builder, v ir.Value) number {
	switch b.DType(v) {
	case ir.Bool:
		return number{kind: boolNumber, v: v, live: true}
	case ir.I64:
		return number{kind: intNumber, v: v, live: true}
	}
	return number{kind: floatNumber, v: b.Convert(v, ir.F64), live: true}
}

// onReals is a function of a float.
func onReals(f func(float64) float64, lowered func(b *ir.Builder, x ir.Value) ir.Value) numberRule {
	return func(c *call, x []number) number {
		if x[0].known() {
			return floatLiteral(f(x[0].f))
		}
		return liveNumber(c.b, lowered(c.b, x[0].real(c.b)))
	}
}

// rounded is a function of a float with an int result.
func rounded(f func(float64) float64, lowered func(b *ir.Builder, x ir.Value) ir.Value) numberRule {
	return func(c *call, x []number) number {
		if x[0].kind != floatNumber {
			return x[0]
		}
		if x[0].known() {
			return intLiteral(int64(f(x[0].f)))
		}
		return liveNumber(c.b, c.b.Convert(lowered(c.b, x[0].real(c.b)), ir.I64))
	}
}

func kindOf(k ir.Kind) func(b *ir.Builder, x ir.Value) ir.Value {
	return func(b *ir.Builder, x ir.Value) ir.Value { return b.Unary(k, x) }
}

var unaryNumbers = map[string]numberRule{
	"neg":   func(c *call, x []number) number { return subtractNumbers(c, []number{intLiteral(0), x[0]}) },
	"pos":   func(_ *call, x []number) number { return x[0] },
	"float": func(c *call, x []number) number { return toFloat(c, x[0]) },
	"int":   rounded(math.Trunc, lower.Trunc),
	"trunc": rounded(math.Trunc, lower.Trunc),
	"floor": rounded(math.Floor, kindOf(ir.OpFloor)),
	"ceil":  rounded(math.Ceil, kindOf(ir.OpCeil)),
	"round": rounded(math.RoundToEven, kindOf(ir.OpRoundNearestEven)),
	"sqrt":  onReals(math.Sqrt, kindOf(ir.OpSqrt)),
	"exp":   onReals(math.Exp, kindOf(ir.OpExponential)),
	"log":   onReals(math.Log, kindOf(ir.OpLog)),
	"not": func(c *call, x []number) number {
		if x[0].known() {
			return boolLiteral(x[0].f == 0)
		}
		return liveNumber(c.b, lower.Not(c.b, x[0].scalar(c.b, ir.Bool)))
	},
}

func toFloat(c *call, n number) number {
	if n.known() {
		return floatLiteral(n.f)
	}
	return liveNumber(c.b, n.real(c.b))
}

var subtractNumbers = combineNumbers(ir.OpSubtract, func(x, y float64) float64 { return x - y }, ir.Dim.Sub)

var binaryNumbers = map[string]numberRule{
	"add": combineNumbers(ir.OpAdd, func(x, y float64) float64 { return x + y }, ir.Dim.Add),
	"sub": subtractNumbers,
	"mul": combineNumbers(ir.OpMultiply, func(x, y float64) float64 { return x * y }, ir.Dim.Mul),
	"max": combineNumbers(ir.OpMaximum, math.Max, ir.Dim.Max),
	"min": combineNumbers(ir.OpMinimum, math.Min, ir.Dim.Min),
	"pow": combineNumbers(ir.OpPower, math.Pow, nil),
	"mod": func(c *call, x []number) number {
		if d, ok := dimsOf(x); ok && !d[1].Is(0) {
			return dimNumber(d[0].Mod(d[1]))
		}
		return liveNumber(c.b, lower.FloorMod(c.b, x[0].real(c.b), x[1].real(c.b)))
	},
	"floordiv": func(c *call, x []number) number {
		if d, ok := dimsOf(x); ok && !d[1].Is(0) {
			return dimNumber(d[0].FloorDiv(d[1]))
		}
		return liveNumber(c.b, c.b.Unary(ir.OpFloor, c.b.Binary(ir.OpDivide, x[0].real(c.b), x[1].real(c.b))))
	},
	"truediv": func(c *call, x []number) number {
		if x[0].known() && x[1].known() {
			return floatLiteral(x[0].f / x[1].f)
		}
		return liveNumber(c.b, c.b.Binary(ir.OpDivide, x[0].real(c.b), x[1].real(c.b)))
	},
	"and_": logicNumbers(ir.OpAnd), "or_": logicNumbers(ir.OpOr), "and": logicNumbers(ir.OpAnd), "or": logicNumbers(ir.OpOr),
	"eq": compareNumbers(ir.EQ), "ne": compareNumbers(ir.NE), "lt": compareNumbers(ir.LT),
	"le": compareNumbers(ir.LE), "gt": compareNumbers(ir.GT), "ge": compareNumbers(ir.GE),
}

// dimsOf gives numbers as expressions, when all are ints known that way.
func dimsOf(x []number) ([]ir.Dim, bool) {
	var dims []ir.Dim
	for _, n := range x {
		if n.live || n.kind == floatNumber {
			return nil, false
		}
		dims = append(dims, n.asDim())
	}
	return dims, true
}

func combineNumbers(kind ir.Kind, f func(x, y float64) float64, dims func(x, y ir.Dim) ir.Dim) numberRule {
	return func(c *call, x []number) number {
		if d, ok := dimsOf(x); ok && dims != nil {
			return dimNumber(dims(d[0], d[1]))
		}
		if x[0].known() && x[1].known() {
			v := f(x[0].f, x[1].f)
			if x[0].kind != floatNumber && x[1].kind != floatNumber && v == math.Trunc(v) {
				return intLiteral(int64(v))
			}
			return floatLiteral(v)
		}
		if x[0].kind == floatNumber || x[1].kind == floatNumber {
			return liveNumber(c.b, c.b.Binary(kind, x[0].real(c.b), x[1].real(c.b)))
		}
		return liveNumber(c.b, c.b.Binary(kind, x[0].wide(c.b), x[1].wide(c.b)))
	}
}

func logicNumbers(kind ir.Kind) numberRule {
	return func(c *call, x []number) number {
		return liveNumber(c.b, c.b.Binary(kind, x[0].scalar(c.b, ir.Bool), x[1].scalar(c.b, ir.Bool)))
	}
}

func compareNumbers(d ir.Direction) numberRule {
	return func(c *call, x []number) number {
		if x[0].kind == floatNumber || x[1].kind == floatNumber {
			return liveNumber(c.b, c.b.Compare(d, x[0].real(c.b), x[1].real(c.b)))
		}
		return liveNumber(c.b, c.b.Compare(d, x[0].wide(c.b), x[1].wide(c.b)))
	}
}

func chooseNumber(c *call, x []number) number {
	if x[0].known() {
		if x[0].f != 0 {
			return x[1]
		}
		return x[2]
	}
	p := x[0].scalar(c.b, ir.Bool)
	if x[1].kind == floatNumber || x[2].kind == floatNumber {
		return liveNumber(c.b, c.b.Select(p, x[1].real(c.b), x[2].real(c.b)))
	}
	return liveNumber(c.b, c.b.Select(p, x[1].wide(c.b), x[2].wide(c.b)))
}
