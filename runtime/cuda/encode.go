//go:build cuda

package cuda

/*
#include <string.h>
#include <cuda.h>

// encode writes the map to any 128 bytes; the driver wants 64-byte alignment.
static CUresult encode(void *out, CUtensorMapDataType type, cuuint32_t rank, cuuint64_t address,
		const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box, CUtensorMapSwizzle swizzle,
		CUtensorMapL2promotion promotion) {
	const cuuint32_t steps[] = {1, 1, 1, 1, 1};
	CUtensorMap map;
	CUresult result = cuTensorMapEncodeTiled(&map, type, rank, (void *)(uintptr_t)address, dims, strides, box, steps,
		CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	memcpy(out, &map, sizeof map);
	return result;
}
*/
import "C"

import (
	"unsafe"

	"weft/runtime"
)

// encodedMap is a tensor map as a kernel takes it, aligned to 64.
type encodedMap [runtime.TensorMapSize]byte

// encodeMap encodes the argument, a tensor map that has elements and passed its checks.
func encodeMap(a runtime.Arg) (e encodedMap, err error) {
	m := a.Map
	err = check("cuTensorMapEncodeTiled", C.encode(unsafe.Pointer(&e),
		C.CUtensorMapDataType(m.Type), C.cuuint32_t(len(m.Dims)), C.cuuint64_t(a.Bits),
		(*C.cuuint64_t)(unsafe.SliceData(m.Dims)), (*C.cuuint64_t)(unsafe.SliceData(m.Strides)),
		(*C.cuuint32_t)(unsafe.SliceData(m.Box)), C.CUtensorMapSwizzle(m.Swizzle), C.CUtensorMapL2promotion(m.Promotion)))
	return e, err
}

// mapKey is all that an encoding depends on.
type mapKey struct {
	address   uint64
	rank      int
	kind      runtime.TensorType
	swizzle   runtime.Swizzle
	promotion runtime.Promotion
	dims      [runtime.MaxTensorRank]uint64
	strides   [runtime.MaxTensorRank]uint64
	box       [runtime.MaxTensorRank]uint32
}

// maxEncodings is how many encodings a device keeps.
const maxEncodings = 4096

// encoded gives the argument of a kernel. Launches mostly come again, with the same maps.
func (d *Device) encoded(a runtime.Arg) (encodedMap, error) {
	if err := a.CheckMap(); err != nil {
		return encodedMap{}, err
	}
	m := a.Map
	key := mapKey{address: a.Bits, rank: len(m.Dims), kind: m.Type, swizzle: m.Swizzle, promotion: m.Promotion}
	copy(key.dims[:], m.Dims)
	copy(key.strides[:], m.Strides)
	copy(key.box[:], m.Box)
	if e, known := d.encodings[key]; known {
		return e, nil
	}
	if m.Empty() {
		a = d.nothing(a)
	}
	e, err := encodeMap(a)
	if err != nil {
		return encodedMap{}, err
	}
	if len(d.encodings) >= maxEncodings {
		clear(d.encodings)
	}
	d.encodings[key] = e
	return e, nil
}

// nothing is the map of a tensor without elements, which the driver does not encode: that of one
// element, which is zero.
func (d *Device) nothing(a runtime.Arg) runtime.Arg {
	m := *a.Map
	m.Dims, m.Strides = make([]uint64, len(m.Dims)), make([]uint64, len(m.Strides))
	for i := range m.Dims {
		m.Dims[i] = 1
	}
	for i := range m.Strides {
		m.Strides[i] = runtime.TensorAlignment
	}
	a.Bits, a.Size, a.Map = uint64(d.zeros), zeroBytes, &m
	return a
}
