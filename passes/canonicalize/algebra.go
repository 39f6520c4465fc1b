package canonicalize

import (
	"math"
	"slices"

	"weft/ir"
)

// simplify gives a simpler value for an operation of one result.
func (c *canonicalizer) simplify(op *ir.Op, b *ir.Builder) (ir.Value, bool) {
	if v, ok := c.fold(op, b); ok {
		return v, true
	}
	rule, ok := algebra[op.Kind]
	if !ok {
		return 0, false
	}
	return rule(c, op, b)
}

// algebra has the rules by kind. A rule may append operations through b only when it succeeds.
var algebra = map[ir.Kind]func(c *canonicalizer, op *ir.Op, b *ir.Builder) (ir.Value, bool){
	ir.OpDim:            constantDim,
	ir.OpConvert:        convert,
	ir.OpReshape:        reshape,
	ir.OpTranspose:      transpose,
	ir.OpBroadcastInDim: broadcast,
	ir.OpSlice:          slice,
	ir.OpConcatenate:    concatenate,

	ir.OpDynamicUpdateSlice: updateOfRepeated,

	ir.OpAdd:      neutral(0, false),
	ir.OpSubtract: neutral(0, true),
	ir.OpMultiply: neutral(1, false),
	ir.OpDivide:   neutral(1, true),
	ir.OpAnd:      logical(true),
	ir.OpOr:       logical(false),
	ir.OpSelect:   selectKnown,
	ir.OpPower:    power,
	ir.OpNegate:   involution,
	ir.OpNot:      involution,
}

// splat is the value of all elements when v is one literal number, broadcast or not.
func (c *canonicalizer) splat(v ir.Value) (float64, bool) {
	if t, ok := c.literals[v]; ok && t.DType != ir.String && !t.DType.IsComplex() && t.Numel() > 0 {
		x := t.Float(0)
		for i := int64(1); i < t.Numel(); i++ {
			if t.Float(i) != x {
				return 0, false
			}
		}
		return x, true
	}
	if op := c.defs[v]; op != nil && (op.Kind == ir.OpBroadcastInDim || op.Kind == ir.OpReshape) {
		return c.splat(op.Operands[0])
	}
	return 0, false
}

func constantDim(_ *canonicalizer, op *ir.Op, b *ir.Builder) (ir.Value, bool) {
	if _, ok := op.Attrs.(*ir.DimAttrs).Value.IsConst(); ok {
		return b.Dim(op.Attrs.(*ir.DimAttrs).Value), true
	}
	return 0, false
}

// holds tells whether every value of one type is a value of another.
func holds(wide, narrow ir.DType) bool {
	switch {
	case wide == narrow:
		return true
	case narrow == ir.Bool:
		return wide.IsInteger() || wide.IsFloat() && wide.Bits() >= 16
	case wide.IsFloat() && narrow.IsFloat():
		return wide == ir.F64 && narrow.Bits() < 64 || wide == ir.F32 && narrow.Bits() < 32
	case wide.IsSigned() && narrow.IsSigned() || wide.IsUnsigned() && narrow.IsUnsigned():
		return wide.Bits() > narrow.Bits()
	case wide.IsSigned() && narrow.IsUnsigned():
		return wide.Bits() > narrow.Bits()
	case wide == ir.F64 && narrow.IsInteger():
		return narrow.Bits() <= 32
	case wide == ir.F32 && narrow.IsInteger():
		return narrow.Bits() <= 16
	}
	return false
}

// convert drops conversions to the type that a value has, and round trips through a wider one.
func convert(c *canonicalizer, op *ir.Op, _ *ir.Builder) (ir.Value, bool) {
	x := op.Operands[0]
	to := op.Attrs.(*ir.ConvertAttrs).To
	if c.entry.Type(x).DType == to {
		return x, true
	}
	if inner := c.defs[x]; inner != nil && inner.Kind == ir.OpConvert {
		y := inner.Operands[0]
		if from := c.entry.Type(y).DType; from == to && holds(c.entry.Type(x).DType, from) {
			return y, true
		}
	}
	return 0, false
}

func reshape(c *canonicalizer, op *ir.Op, b *ir.Builder) (ir.Value, bool) {
	x := op.Operands[0]
	dims := op.Attrs.(*ir.ReshapeAttrs).Dims
	if ir.SameShape(c.entry.Type(x).Shape, dims) {
		return x, true
	}
	if inner := c.defs[x]; inner != nil && inner.Kind == ir.OpReshape {
		return b.Reshape(inner.Operands[0], dims), true
	}
	return 0, false
}

func transpose(c *canonicalizer, op *ir.Op, b *ir.Builder) (ir.Value, bool) {
	x := op.Operands[0]
	permutation := op.Attrs.(*ir.TransposeAttrs).Permutation
	if slices.IsSorted(permutation) {
		return x, true
	}
	inner := c.defs[x]
	if inner == nil || inner.Kind != ir.OpTranspose {
		return 0, false
	}
	first := inner.Attrs.(*ir.TransposeAttrs).Permutation
	composed := make([]int, len(first))
	for i, p := range permutation {
		composed[i] = first[p]
	}
	return b.Transpose(inner.Operands[0], composed), true
}

func broadcast(c *canonicalizer, op *ir.Op, b *ir.Builder) (ir.Value, bool) {
	x := op.Operands[0]
	a := op.Attrs.(*ir.BroadcastAttrs)
	if ir.SameShape(c.entry.Type(x).Shape, a.Dims) {
		return x, true
	}
	inner := c.defs[x]
	if inner == nil || inner.Kind != ir.OpBroadcastInDim {
		return 0, false
	}
	first := inner.Attrs.(*ir.BroadcastAttrs).Axes
	axes := make([]int, len(first))
	for i, axis := range first {
		axes[i] = a.Axes[axis]
	}
	return b.Broadcast(inner.Operands[0], a.Dims, axes), true
}

func slice(c *canonicalizer, op *ir.Op, _ *ir.Builder) (ir.Value, bool) {
	x := op.Operands[0]
	if ir.SameShape(c.entry.Type(x).Shape, c.entry.Type(op.Results[0]).Shape) {
		a := op.Attrs.(*ir.SliceAttrs)
		for i, d := range a.Start {
			if !d.Is(0) || a.Stride[i] != 1 {
				return 0, false
			}
		}
		return x, true
	}
	return 0, false
}

// concatenate drops operands without elements.
func concatenate(c *canonicalizer, op *ir.Op, b *ir.Builder) (ir.Value, bool) {
	axis := op.Attrs.(*ir.AxisAttrs).Axis
	kept := slices.DeleteFunc(slices.Clone(op.Operands), func(v ir.Value) bool { return c.entry.Type(v).Shape[axis].Is(0) })
	if len(kept) == len(op.Operands) && len(kept) > 1 || len(kept) == 0 {
		return 0, false
	}
	return b.Concatenate(axis, kept...), true
}

// updateOfRepeated makes a pad of an update of one scalar, repeated, at a place that is known: the gradient of
// what was cut.
func updateOfRepeated(c *canonicalizer, op *ir.Op, b *ir.Builder) (ir.Value, bool) {
	base := c.defs[op.Operands[0]]
	if base == nil || base.Kind != ir.OpBroadcastInDim || c.entry.Type(base.Operands[0]).Rank() != 0 {
		return 0, false
	}
	shape, size := c.entry.Type(op.Operands[0]).Shape, c.entry.Type(op.Operands[1]).Shape
	low, high := make([]ir.Dim, len(shape)), make([]ir.Dim, len(shape))
	for i, v := range op.Operands[2:] {
		start, ok := c.index(v)
		if !ok {
			return 0, false
		}
		low[i], high[i] = start, shape[i].Sub(size[i]).Sub(start)
		if min(low[i].Bounds(c.program.Range).Min, high[i].Bounds(c.program.Range).Min) < 0 {
			return 0, false // the place would be moved into the bounds
		}
	}
	return b.Pad(op.Operands[1], base.Operands[0], low, high, nil), true
}

// index is the value of a whole number that is known or depends on sizes alone.
func (c *canonicalizer) index(v ir.Value) (ir.Dim, bool) {
	if t, ok := c.literals[v]; ok {
		return ir.Const(t.Int(0)), true
	}
	if op := c.defs[v]; op != nil && op.Kind == ir.OpDim {
		return op.Attrs.(*ir.DimAttrs).Value, true
	}
	return ir.Dim{}, false
}

// neutral drops an operand that does not change the other: x*1, x/1 for all types; x+0 and
// x-0 for integers (floats: x-0 only, since -0 + 0 is 0).
func neutral(value float64, secondOnly bool) func(*canonicalizer, *ir.Op, *ir.Builder) (ir.Value, bool) {
	return func(c *canonicalizer, op *ir.Op, _ *ir.Builder) (ir.Value, bool) {
		if c.entry.Type(op.Operands[0]).DType.IsFloat() && op.Kind == ir.OpAdd {
			return 0, false
		}
		if x, ok := c.splat(op.Operands[1]); ok && x == value && !math.Signbit(x) {
			return op.Operands[0], true
		}
		if x, ok := c.splat(op.Operands[0]); ok && x == value && !secondOnly {
			return op.Operands[1], true
		}
		return 0, false
	}
}

// logical simplifies and, or on bools: the neutral value gives the other operand, its opposite
// gives itself.
func logical(neutralValue bool) func(*canonicalizer, *ir.Op, *ir.Builder) (ir.Value, bool) {
	return func(c *canonicalizer, op *ir.Op, _ *ir.Builder) (ir.Value, bool) {
		if c.entry.Type(op.Operands[0]).DType != ir.Bool {
			return 0, false
		}
		for i, v := range op.Operands {
			if x, ok := c.splat(v); ok {
				if (x != 0) == neutralValue {
					return op.Operands[1-i], true
				}
				return v, true
			}
		}
		return 0, false
	}
}

func selectKnown(c *canonicalizer, op *ir.Op, _ *ir.Builder) (ir.Value, bool) {
	if op.Operands[1] == op.Operands[2] {
		return op.Operands[1], true
	}
	if x, ok := c.splat(op.Operands[0]); ok {
		if x != 0 {
			return op.Operands[1], true
		}
		return op.Operands[2], true
	}
	return 0, false
}

// power with exponent 1, 2 or -1 is x, x*x (rounded once, as the power is) and 1/x. The cube
// takes two roundings instead of one: within an ulp, and a tenth of the work. That of a half
// type is rounded once, from float32.
func power(c *canonicalizer, op *ir.Op, b *ir.Builder) (ir.Value, bool) {
	x := op.Operands[0]
	n, ok := c.splat(op.Operands[1])
	if !ok || !c.entry.Type(x).DType.IsFloat() {
		return 0, false
	}
	switch n {
	case 1:
		return x, true
	case 2:
		return b.Binary(ir.OpMultiply, x, x), true
	case 3:
		t, wide := c.entry.Type(x).DType, x
		if t.Bits() < 32 {
			wide = b.Convert(x, ir.F32)
		}
		return b.Convert(b.Binary(ir.OpMultiply, b.Binary(ir.OpMultiply, wide, wide), wide), t), true
	case -1:
		return b.Binary(ir.OpDivide, b.FullLike(x, 1), x), true
	}
	return 0, false
}

// involution drops an operation applied twice.
func involution(c *canonicalizer, op *ir.Op, _ *ir.Builder) (ir.Value, bool) {
	if inner := c.defs[op.Operands[0]]; inner != nil && inner.Kind == op.Kind {
		return inner.Operands[0], true
	}
	return 0, false
}
