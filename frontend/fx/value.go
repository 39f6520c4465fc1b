package fx

import (
	"weft/ir"
)

// A name of the graph stands for one of: *tensor, []*tensor (a list of tensors), ir.Dim (a
// symbolic int), number (any other Python number), or nil (None).

// number is a Python bool, int or float: known now, or a scalar of the program (v) that was
// computed from sizes or taken out of a tensor. As an operand of a tensor it is weak: it takes
// the tensor's type within its category.
type number struct {
	kind numberKind
	i    int64 // bool, int
	f    float64
	dim  *ir.Dim  // an int known as an expression
	v    ir.Value // a scalar of type i1, i64 or f64 when run
	live bool     // v is set
}

type numberKind uint8

const (
	boolNumber numberKind = iota
	intNumber
	floatNumber
)

func intLiteral(v int64) number     { return number{kind: intNumber, i: v, f: float64(v)} }
func floatLiteral(v float64) number { return number{kind: floatNumber, f: v} }

func boolLiteral(v bool) number {
	if v {
		return number{kind: boolNumber, i: 1, f: 1}
	}
	return number{kind: boolNumber}
}

func dimNumber(d ir.Dim) number {
	if v, ok := d.IsConst(); ok {
		return intLiteral(v)
	}
	return number{kind: intNumber, dim: &d}
}

// known tells whether the number is a literal.
func (n number) known() bool { return n.dim == nil && !n.live }

// dtype is the type that PyTorch gives a tensor of the number.
func (n number) dtype() ir.DType {
	switch n.kind {
	case boolNumber:
		return ir.Bool
	case intNumber:
		return ir.I64
	}
	return ir.F32
}

// scalar makes a value of rank 0.
func (n number) scalar(b *ir.Builder, dtype ir.DType) ir.Value {
	switch {
	case n.live:
		return b.Convert(n.v, dtype)
	case n.dim != nil:
		return b.Convert(b.Dim(*n.dim), dtype)
	case n.kind == floatNumber:
		return b.Scalar(dtype, n.f)
	}
	return b.Constant(ir.ScalarInt(dtype, n.i))
}

// tensor is an FX value of tensor type: a base, or a view of another tensor. In-place
// operators change the base; a view is derived again when it is read after its base changed.
type tensor struct {
	val     ir.Value
	version int // of the base when val was made
	parent  *tensor
	view    view
	base    *base
	// strides as the exporter recorded them, nil when it did not: they tell views from copies.
	strides []ir.Dim
}

// base is the memory that a tensor and its views share.
type base struct {
	version int
	// written holds from the first write on, for parameters, buffers and inputs.
	written bool
}

// view is an invertible way to see part of a tensor.
type view interface {
	// apply derives the view from the value of its parent.
	apply(b *ir.Builder, parent ir.Value) ir.Value
	// scatter gives the parent with the view's elements replaced; ir.NoValue when elements of
	// the view share memory.
	scatter(b *ir.Builder, parent, elements ir.Value) ir.Value
}

// newTensor makes a tensor with memory of its own.
func newTensor(v ir.Value) *tensor { return &tensor{val: v, base: &base{}} }

// newView makes a view and derives its value.
func newView(b *ir.Builder, parent *tensor, v view) *tensor {
	return &tensor{val: v.apply(b, parent.read(b)), version: parent.base.version, parent: parent, view: v, base: parent.base}
}

// read is the tensor's value as of now.
func (t *tensor) read(b *ir.Builder) ir.Value {
	if t.parent == nil || t.version == t.base.version {
		return t.val
	}
	t.val = t.view.apply(b, t.parent.read(b))
	t.version = t.base.version
	return t.val
}

// write replaces the tensor's elements, and so those of its base and of all its views. It
// reports false when elements share memory.
func (t *tensor) write(b *ir.Builder, v ir.Value) bool {
	next, root := v, t
	for ; root.parent != nil; root = root.parent {
		if next = root.view.scatter(b, root.parent.read(b), next); next == ir.NoValue {
			return false
		}
	}
	root.val = next
	t.base.version++
	t.base.written = true
	t.val, t.version = v, t.base.version
	return true
}
