package ir

import (
	"slices"
	"strings"
)

// Type is the type of a value.
type Type struct {
	Kind  TypeKind
	DType DType // tensors: element type; maps: key type
	Shape []Dim // tensors only
	Elem  *Type // sequences, optionals and maps
}

// TypeKind tells what sort of value a type describes.
type TypeKind uint8

// The sorts of values.
const (
	TensorKind TypeKind = iota
	SequenceKind
	OptionalKind
	MapKind
	TokenKind
)

// TensorOf makes a tensor type.
func TensorOf(dtype DType, shape ...Dim) Type { return Type{DType: dtype, Shape: shape} }

// Scalar makes the type of a tensor of rank 0.
func Scalar(dtype DType) Type { return Type{DType: dtype} }

// Rank is the number of dims of a tensor.
func (t Type) Rank() int { return len(t.Shape) }

// Numel is the number of elements of a tensor.
func (t Type) Numel() Dim { return Product(t.Shape) }

// Bytes is the storage size of a tensor, packed elements rounded up to whole bytes.
func (t Type) Bytes() Dim {
	if bits := int64(t.DType.Bits()); bits%8 != 0 {
		return t.Numel().MulConst(bits).CeilDiv(8)
	}
	return t.Numel().MulConst(int64(t.DType.Size()))
}

// With returns the tensor type with another element type.
func (t Type) With(dtype DType) Type {
	t.DType = dtype
	return t
}

// Product multiplies dims; 1 for none.
func Product(dims []Dim) Dim {
	p := Const(1)
	for _, d := range dims {
		p = p.Mul(d)
	}
	return p
}

// SameShape tells whether two shapes are equal as expressions.
func SameShape(a, b []Dim) bool { return slices.EqualFunc(a, b, Dim.Equal) }

// Equal tells whether two types are the same.
func (t Type) Equal(o Type) bool {
	if t.Kind != o.Kind || t.DType != o.DType || !SameShape(t.Shape, o.Shape) || (t.Elem == nil) != (o.Elem == nil) {
		return false
	}
	return t.Elem == nil || t.Elem.Equal(*o.Elem)
}

// ConstShape is the shape as integers, when it has no symbols.
func (t Type) ConstShape() ([]int64, bool) {
	shape := make([]int64, len(t.Shape))
	for i, d := range t.Shape {
		v, ok := d.IsConst()
		if !ok {
			return nil, false
		}
		shape[i] = v
	}
	return shape, true
}

// String prints the type as program text: f32[batch, 64], sequence<i64[]>, token.
func (t Type) String() string {
	if t.Elem == nil && (t.Kind == SequenceKind || t.Kind == OptionalKind || t.Kind == MapKind) {
		return "invalid" // Verify reports it
	}
	switch t.Kind {
	case SequenceKind:
		return "sequence<" + t.Elem.String() + ">"
	case OptionalKind:
		return "optional<" + t.Elem.String() + ">"
	case MapKind:
		return "map<" + t.DType.String() + ", " + t.Elem.String() + ">"
	case TokenKind:
		return "token"
	}
	return t.DType.String() + DimList(t.Shape)
}

// DimList prints dims as [a, b].
func DimList(dims []Dim) string {
	texts := make([]string, len(dims))
	for i, d := range dims {
		texts[i] = d.String()
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
