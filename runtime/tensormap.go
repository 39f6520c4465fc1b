package runtime

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"weft/ir"
	"weft/ir/plan"
)

// TensorMap describes a tensor in global memory to the tensor memory accelerator of sm_90 and
// later, which copies boxes of it to shared memory. Dims, Strides and Box count from the innermost
// dimension on. What of a box lies outside of the tensor reads as zeros; all of it does where a
// dim is 0, and Strides are of no account then.
type TensorMap struct {
	Type      TensorType
	Dims      []uint64 // elements; 1 to 5 of them, each at most 2³¹, as coordinates are signed
	Strides   []uint64 // bytes, of all dimensions but the innermost; multiples of 16 below 2⁴⁰
	Box       []uint32 // elements that one instruction moves, each 1 to 256
	Swizzle   Swizzle
	Promotion Promotion
}

// TensorMapSize is how many bytes a kernel's parameter for a tensor map has, aligned to 64.
const TensorMapSize = 128

// Limits of tensor maps, which are those of the maps of plans.
const (
	MaxTensorRank   = plan.MaxMapRank
	TensorAlignment = plan.MapAlignment // bytes, of the address and of strides
)

// TensorType is an element type, numbered as CUtensorMapDataType.
type TensorType uint8

// The element types of tensor maps.
const (
	TensorU8 TensorType = iota
	TensorU16
	TensorU32
	TensorI32
	TensorU64
	TensorI64
	TensorF16
	TensorF32
	TensorF64
	TensorBF16
)

var tensorSizes = [...]int{
	TensorU8: 1, TensorU16: 2, TensorU32: 4, TensorI32: 4, TensorU64: 8, TensorI64: 8, TensorF16: 2, TensorF32: 4, TensorF64: 8, TensorBF16: 2,
}

// Size is the bytes of an element.
func (t TensorType) Size() int { return tensorSizes[t] }

// TensorTypeOf is the type that moves elements of a type as they are; false where there is none.
func TensorTypeOf(t ir.DType) (TensorType, bool) {
	switch t {
	case ir.F16:
		return TensorF16, true
	case ir.BF16:
		return TensorBF16, true
	case ir.F32:
		return TensorF32, true
	case ir.F64:
		return TensorF64, true
	}
	if t.IsComplex() {
		return 0, false
	}
	size, ok := map[int]TensorType{1: TensorU8, 2: TensorU16, 4: TensorU32, 8: TensorU64}[t.Size()]
	return size, ok
}

// Swizzle is how a box is laid out in shared memory, numbered as CUtensorMapSwizzle: the index of
// a unit of 16 bytes in its span has bits of the index of its 128 bytes added without carry.
type Swizzle uint8

// The swizzles, by the bytes of the span that each mixes.
const (
	SwizzleNone Swizzle = iota
	Swizzle32
	Swizzle64
	Swizzle128
)

// Span is the bytes that the swizzle mixes: 32, 64 or 128; 0 for none.
func (s Swizzle) Span() int {
	if s == SwizzleNone {
		return 0
	}
	return 16 << s
}

// SwizzleOf is the swizzle of a span of bytes.
func SwizzleOf(span int) (Swizzle, bool) {
	for s := range Swizzle128 + 1 {
		if s.Span() == span {
			return s, true
		}
	}
	return 0, false
}

// Promotion is how much the L2 cache fetches at a time, numbered as CUtensorMapL2promotion.
type Promotion uint8

// The promotions, in bytes.
const (
	PromotionNone Promotion = iota
	Promotion64
	Promotion128
	Promotion256
)

// Check rejects what cuTensorMapEncodeTiled does, so that all devices refuse alike, dims that
// coordinates do not reach, and boxes whose rows do not fill the span of a swizzle, as gaps are left
// between them.
func (m *TensorMap) Check() error {
	rank := len(m.Dims)
	switch {
	case rank < 1 || rank > plan.MaxMapRank:
		return fmt.Errorf("a tensor map of %d dimensions: 1 to %d are possible", rank, plan.MaxMapRank)
	case len(m.Strides) != rank-1:
		return fmt.Errorf("a tensor map of %d dimensions has %d strides: one fewer is needed", rank, len(m.Strides))
	case len(m.Box) != rank:
		return fmt.Errorf("a tensor map of %d dimensions with a box of %d", rank, len(m.Box))
	case m.Type > TensorBF16 || m.Swizzle > Swizzle128 || m.Promotion > Promotion256:
		return errors.New("a tensor map of an unknown type, swizzle or promotion")
	}
	for i, n := range m.Box {
		if n < 1 || n > plan.MaxMapBox {
			return fmt.Errorf("a tensor map with a box of %d elements in dimension %d: 1 to %d are possible", n, i, plan.MaxMapBox)
		}
	}
	inner := int(m.Box[0]) * m.Type.Size()
	if span := m.Swizzle.Span(); inner%plan.MapAlignment != 0 || span > 0 && inner != span {
		return fmt.Errorf("a tensor map with a box of %d bytes in dimension 0, which must be a multiple of %d, and the %d of a swizzle",
			inner, plan.MapAlignment, span)
	}
	for i, n := range m.Dims {
		if n > plan.MaxMapDim {
			return fmt.Errorf("a tensor map of %d elements in dimension %d: at most %d are possible", n, i, uint64(plan.MaxMapDim))
		}
	}
	for i, n := range m.Strides {
		if !m.Empty() && (n == 0 || n%plan.MapAlignment != 0 || n > plan.MaxMapStride) {
			return fmt.Errorf("a tensor map with a stride of %d bytes in dimension %d, which must be a multiple of %d, and above 0 and below 2⁴⁰", n, i+1, plan.MapAlignment)
		}
	}
	return nil
}

// Empty tells whether the tensor has no elements.
func (m *TensorMap) Empty() bool {
	for _, n := range m.Dims {
		if n == 0 {
			return true
		}
	}
	return false
}

// Extent is the number of bytes from the first element to the end of the last: 0 for an empty
// tensor, math.MaxInt64 for what is too much to count. The map must have passed Check.
func (m *TensorMap) Extent() int64 {
	if m.Empty() {
		return 0
	}
	end := m.Dims[0] * uint64(m.Type.Size())
	for i, stride := range m.Strides {
		high, low := bits.Mul64(m.Dims[i+1]-1, stride)
		if high > 0 || low > math.MaxInt64 || end+low > math.MaxInt64 {
			return math.MaxInt64
		}
		end += low
	}
	return int64(end)
}

// CheckMap rejects a tensor map argument that no device takes: with an invalid map, an address
// that is not aligned, or a tensor that leaves the extent.
func (a Arg) CheckMap() error {
	if a.Map == nil {
		return errors.New("a tensor map argument without a map")
	}
	if err := a.Map.Check(); err != nil {
		return err
	}
	switch extent := a.Map.Extent(); {
	case a.Access != Read && a.Access != Write:
		return errors.New("a tensor map is only read, or only written")
	case a.Bits%plan.MapAlignment != 0:
		return fmt.Errorf("a tensor map at address %#x, which is not aligned to %d bytes", a.Bits, plan.MapAlignment)
	case extent > a.Size:
		return fmt.Errorf("a tensor map of %d bytes in memory of %d", extent, a.Size)
	}
	return nil
}

// mapArg is the argument that a plan's tensor map, as it evaluates, stands for in a buffer.
func mapArg(m *plan.TensorMap, bound *plan.BoundMap, buffer Pointer) Arg {
	dtype, known := ir.ParseDType(m.DType)
	kind, ok := TensorTypeOf(dtype)
	swizzle, exists := SwizzleOf(m.Swizzle)
	if !known || !ok || !exists {
		panic(fmt.Sprintf("BUG: a tensor map %s in a verified plan", m))
	}
	t := &TensorMap{Type: kind, Dims: bound.Dims, Strides: bound.Strides, Box: make([]uint32, len(m.Box)), Swizzle: swizzle, Promotion: mapPromotion}
	for i, n := range m.Box {
		t.Box[i] = uint32(n)
	}
	return Arg{Kind: ArgTensorMap, Bits: uint64(buffer) + uint64(bound.Offset), Size: bound.Size, Access: Read, Map: t}
}

// mapPromotion is that of plans: the rows of a box are mostly 128 bytes, one line of the L2 cache, of a
// tensor whose next columns are copied next.
const mapPromotion = Promotion256
