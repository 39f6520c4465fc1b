package ir

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Tensor is a host tensor: a literal in a program, an input, an output, a weight. Data is
// little-endian and row-major; elements under a byte are packed, low bits first; strings are
// in Strings instead. Data may be a view of a mapped file: it is never written to.
type Tensor struct {
	DType   DType
	Shape   []int64
	Data    []byte
	Strings []string
}

// NewTensor allocates a zeroed tensor.
func NewTensor(dtype DType, shape ...int64) *Tensor {
	t := &Tensor{DType: dtype, Shape: shape}
	if dtype == String {
		t.Strings = make([]string, t.Numel())
		return t
	}
	t.Data = make([]byte, t.bytes())
	return t
}

func (t *Tensor) bytes() int64 { return (t.Numel()*int64(t.DType.Bits()) + 7) / 8 }

// Numel is the number of elements; it saturates for hostile shapes.
func (t *Tensor) Numel() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n = satMul(n, d)
	}
	return n
}

// Type is the tensor's type.
func (t *Tensor) Type() Type { return TensorOf(t.DType, Consts(t.Shape...)...) }

// Check reports whether the data has the size that shape and type demand.
func (t *Tensor) Check() error {
	for _, d := range t.Shape {
		if d < 0 {
			return fmt.Errorf("negative dim in shape %v", t.Shape)
		}
	}
	if t.DType == String {
		if int64(len(t.Strings)) != t.Numel() {
			return fmt.Errorf("%d strings for shape %v", len(t.Strings), t.Shape)
		}
		return nil
	}
	if t.Numel() > math.MaxInt64/128 || int64(len(t.Data)) != t.bytes() {
		return fmt.Errorf("%d bytes of data for %s%v", len(t.Data), t.DType, t.Shape)
	}
	return nil
}

// I64s makes a tensor of int64 values; shape nil means rank 1.
func I64s(values []int64, shape ...int64) *Tensor {
	if shape == nil {
		shape = []int64{int64(len(values))}
	}
	t := NewTensor(I64, shape...)
	for i, v := range values {
		binary.LittleEndian.PutUint64(t.Data[8*i:], uint64(v))
	}
	return t
}

// ScalarTensor makes a tensor of rank 0 from a value that is rounded or wrapped to dtype once.
func ScalarTensor(dtype DType, v float64) *Tensor {
	t := NewTensor(dtype)
	t.SetFloat(0, v)
	return t
}

// ScalarInt makes a tensor of rank 0 from an integer.
func ScalarInt(dtype DType, v int64) *Tensor {
	t := NewTensor(dtype)
	t.SetInt(0, v)
	return t
}

// Float reads element i of a real, bool or integer tensor as float64.
func (t *Tensor) Float(i int64) float64 {
	switch t.DType {
	case F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(t.Data[8*i:]))
	case F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:])))
	case U64:
		return float64(uint64(t.Int(i)))
	}
	if t.DType.IsFloat() {
		return DecodeFloat(t.DType, t.rawBits(i))
	}
	return float64(t.Int(i))
}

// SetFloat writes element i, rounding to nearest even; integers truncate and saturate.
func (t *Tensor) SetFloat(i int64, v float64) {
	switch {
	case t.DType == F64:
		binary.LittleEndian.PutUint64(t.Data[8*i:], math.Float64bits(v))
	case t.DType == F32:
		binary.LittleEndian.PutUint32(t.Data[4*i:], math.Float32bits(float32(v)))
	case t.DType.IsFloat():
		t.setRawBits(i, EncodeFloat(t.DType, v))
	case t.DType == Bool:
		t.SetInt(i, b2i(v != 0))
	default:
		t.SetInt(i, SaturateToInt(t.DType, v))
	}
}

// Int reads element i of a bool or integer tensor; uint64 values keep their bits. Floats are
// truncated.
func (t *Tensor) Int(i int64) int64 {
	raw := t.rawBits(i)
	switch {
	case t.DType == Bool:
		return b2i(raw != 0)
	case t.DType.IsSigned():
		shift := 64 - t.DType.Bits()
		return int64(raw) << shift >> shift
	case t.DType.IsUnsigned():
		return int64(raw)
	}
	return SaturateToInt(I64, t.Float(i))
}

// SetInt writes element i, keeping the low bits.
func (t *Tensor) SetInt(i int64, v int64) {
	if t.DType.IsFloat() {
		t.SetFloat(i, float64(v))
		return
	}
	if t.DType == Bool {
		v = b2i(v != 0)
	}
	t.setRawBits(i, uint64(v))
}

func (t *Tensor) rawBits(i int64) uint64 {
	switch bits := t.DType.Bits(); bits {
	case 8:
		return uint64(t.Data[i])
	case 16:
		return uint64(binary.LittleEndian.Uint16(t.Data[2*i:]))
	case 32:
		return uint64(binary.LittleEndian.Uint32(t.Data[4*i:]))
	case 64:
		return binary.LittleEndian.Uint64(t.Data[8*i:])
	default:
		perByte := int64(8 / bits)
		return uint64(t.Data[i/perByte]) >> (int(i%perByte) * bits) & (1<<bits - 1)
	}
}

func (t *Tensor) setRawBits(i int64, raw uint64) {
	switch bits := t.DType.Bits(); bits {
	case 8:
		t.Data[i] = byte(raw)
	case 16:
		binary.LittleEndian.PutUint16(t.Data[2*i:], uint16(raw))
	case 32:
		binary.LittleEndian.PutUint32(t.Data[4*i:], uint32(raw))
	case 64:
		binary.LittleEndian.PutUint64(t.Data[8*i:], raw)
	default:
		perByte := int64(8 / bits)
		shift := int(i%perByte) * bits
		mask := byte(1<<bits-1) << shift
		t.Data[i/perByte] = t.Data[i/perByte]&^mask | byte(raw)<<shift&mask
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// SaturateToInt converts a float to an integer of the given type: toward zero, NaN to 0, out
// of range to the nearest value of the type. uint64 results keep their bits.
func SaturateToInt(dtype DType, v float64) int64 {
	if math.IsNaN(v) {
		return 0
	}
	v = math.Trunc(v)
	bits := dtype.Bits()
	if dtype.IsUnsigned() {
		switch {
		case v <= 0:
			return 0
		case v >= math.Ldexp(1, bits):
			return int64(uint64(math.MaxUint64) >> (64 - bits))
		}
		return int64(uint64(v))
	}
	limit := math.Ldexp(1, bits-1)
	switch {
	case v >= limit:
		return math.MaxInt64 >> (64 - bits)
	case v < -limit:
		return math.MinInt64 >> (64 - bits)
	}
	return int64(v)
}
