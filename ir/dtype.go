package ir

import "fmt"

// DType is the element type of a tensor. It covers all element types of ONNX and PyTorch.
// Names in program text are StableHLO's.
type DType uint8

// The element types: bools, signed and unsigned integers by bits, floats by exponent and mantissa bits as in
// StableHLO, complex numbers by bits of both parts, strings.
const (
	InvalidDType DType = iota
	Bool
	I2
	I4
	I8
	I16
	I32
	I64
	U2
	U4
	U8
	U16
	U32
	U64
	F4E2M1FN
	F8E4M3FN
	F8E4M3FNUZ
	F8E5M2
	F8E5M2FNUZ
	F8E8M0FNU
	F16
	BF16
	F32
	F64
	C32 // two F16
	C64 // two F32
	C128
	String
	numDTypes
)

type dtypeInfo struct {
	name  string
	bits  int // storage bits of one element; 0 for String
	class DTypeClass
}

// DTypeClass groups element types.
type DTypeClass uint8

// The classes of element types.
const (
	ClassBool DTypeClass = iota + 1
	ClassSigned
	ClassUnsigned
	ClassFloat
	ClassComplex
	ClassString
)

var dtypes = [numDTypes]dtypeInfo{
	InvalidDType: {"invalid", 0, 0},
	Bool:         {"i1", 8, ClassBool},
	I2:           {"i2", 2, ClassSigned}, I4: {"i4", 4, ClassSigned}, I8: {"i8", 8, ClassSigned},
	I16: {"i16", 16, ClassSigned}, I32: {"i32", 32, ClassSigned}, I64: {"i64", 64, ClassSigned},
	U2: {"ui2", 2, ClassUnsigned}, U4: {"ui4", 4, ClassUnsigned}, U8: {"ui8", 8, ClassUnsigned},
	U16: {"ui16", 16, ClassUnsigned}, U32: {"ui32", 32, ClassUnsigned}, U64: {"ui64", 64, ClassUnsigned},
	F4E2M1FN: {"f4E2M1FN", 4, ClassFloat}, F8E4M3FN: {"f8E4M3FN", 8, ClassFloat}, F8E4M3FNUZ: {"f8E4M3FNUZ", 8, ClassFloat},
	F8E5M2: {"f8E5M2", 8, ClassFloat}, F8E5M2FNUZ: {"f8E5M2FNUZ", 8, ClassFloat}, F8E8M0FNU: {"f8E8M0FNU", 8, ClassFloat},
	F16: {"f16", 16, ClassFloat}, BF16: {"bf16", 16, ClassFloat}, F32: {"f32", 32, ClassFloat}, F64: {"f64", 64, ClassFloat},
	C32: {"c32", 32, ClassComplex}, C64: {"c64", 64, ClassComplex}, C128: {"c128", 128, ClassComplex},
	String: {"string", 0, ClassString},
}

// String returns the name that program text uses.
func (t DType) String() string {
	if t >= numDTypes {
		return fmt.Sprintf("dtype(%d)", uint8(t))
	}
	return dtypes[t].name
}

// ParseDType finds the element type of a name.
func ParseDType(name string) (DType, bool) {
	for t := Bool; t < numDTypes; t++ {
		if dtypes[t].name == name {
			return t, true
		}
	}
	return InvalidDType, false
}

// Bits is the storage size of one element: 8 for bool, 0 for strings. Elements smaller than a
// byte are packed, low bits first.
func (t DType) Bits() int { return dtypes[t].bits }

// Size is the bytes of one element, 0 for types smaller than a byte and for strings.
func (t DType) Size() int { return dtypes[t].bits / 8 }

// Class is the group that t belongs to.
func (t DType) Class() DTypeClass { return dtypes[t].class }

// IsFloat holds for real floating-point types of any width.
func (t DType) IsFloat() bool { return dtypes[t].class == ClassFloat }

// IsInteger holds for signed and unsigned integers, not for bool.
func (t DType) IsInteger() bool {
	return dtypes[t].class == ClassSigned || dtypes[t].class == ClassUnsigned
}

// IsSigned holds for signed integers.
func (t DType) IsSigned() bool { return dtypes[t].class == ClassSigned }

// IsUnsigned holds for unsigned integers, not for bool.
func (t DType) IsUnsigned() bool { return dtypes[t].class == ClassUnsigned }

// IsComplex holds for complex types.
func (t DType) IsComplex() bool { return dtypes[t].class == ClassComplex }
