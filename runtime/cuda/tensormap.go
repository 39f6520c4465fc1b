package cuda

import (
	"errors"
	"fmt"

	"weft/runtime"
)

// TensorMap describes a tensor in global memory to the tensor memory accelerator of sm_90 and
// later. Dims, Strides and Box count from the innermost dimension on.
type TensorMap struct {
	Type           TensorType
	Address        runtime.Pointer // aligned to 16 bytes
	Dims           []uint64        // elements; 1 to 5 of them
	Strides        []uint64        // bytes, of all dimensions but the innermost; multiples of 16
	Box            []uint32        // elements that one instruction moves, each at most 256
	ElementStrides []uint32        // steps through each dimension; all 1 when nil
	Swizzle        Swizzle
	Promotion      Promotion
	NaN            bool // out of bounds, floats read as NaN instead of 0
}

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

// Swizzle is how a box is laid out in shared memory, numbered as CUtensorMapSwizzle.
type Swizzle uint8

// The swizzles, by the bytes of the span that each mixes.
const (
	SwizzleNone Swizzle = iota
	Swizzle32
	Swizzle64
	Swizzle128
)

// Promotion is how much the L2 cache fetches at a time, numbered as CUtensorMapL2promotion.
type Promotion uint8

// The promotions, in bytes.
const (
	PromotionNone Promotion = iota
	Promotion64
	Promotion128
	Promotion256
)

// Check rejects what the driver has no way to notice: slices of different lengths.
func (m *TensorMap) Check() error {
	rank := len(m.Dims)
	switch {
	case rank < 1 || rank > 5:
		return fmt.Errorf("a tensor map of %d dimensions: 1 to 5 are possible", rank)
	case len(m.Strides) != rank-1:
		return fmt.Errorf("a tensor map of %d dimensions has %d strides: one fewer is needed", rank, len(m.Strides))
	case len(m.Box) != rank:
		return fmt.Errorf("a tensor map of %d dimensions with a box of %d", rank, len(m.Box))
	case m.ElementStrides != nil && len(m.ElementStrides) != rank:
		return fmt.Errorf("a tensor map of %d dimensions with %d element strides", rank, len(m.ElementStrides))
	case m.Type > TensorBF16 || m.Swizzle > Swizzle128 || m.Promotion > Promotion256:
		return errors.New("a tensor map of an unknown type, swizzle or promotion")
	}
	return nil
}
