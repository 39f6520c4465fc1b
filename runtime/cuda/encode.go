//go:build cuda

package cuda

/*
#include <string.h>
#include <cuda.h>

// encode writes the map to any 128 bytes; the driver wants 64-byte alignment.
static CUresult encode(void *out, CUtensorMapDataType type, cuuint32_t rank, cuuint64_t address,
		const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
		CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
	CUtensorMap map;
	CUresult result = cuTensorMapEncodeTiled(&map, type, rank, (void *)(uintptr_t)address, dims, strides, box, steps,
		CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, promotion, fill);
	memcpy(out, &map, sizeof map);
	return result;
}
*/
import "C"

import "unsafe"

// EncodeTensorMap returns the 128 bytes that a kernel takes as its tensor map, aligned to 64.
func EncodeTensorMap(m TensorMap) (encoded [128]byte, err error) {
	if err := driver(); err != nil {
		return encoded, err
	}
	if err := m.Check(); err != nil {
		return encoded, err
	}
	steps := m.ElementStrides
	if steps == nil {
		for range m.Dims {
			steps = append(steps, 1)
		}
	}
	var fill C.CUtensorMapFloatOOBfill = C.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
	if m.NaN {
		fill = C.CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
	}
	out := make([]byte, len(encoded))
	err = check("cuTensorMapEncodeTiled", C.encode(unsafe.Pointer(unsafe.SliceData(out)),
		C.CUtensorMapDataType(m.Type), C.cuuint32_t(len(m.Dims)), C.cuuint64_t(m.Address),
		(*C.cuuint64_t)(unsafe.SliceData(m.Dims)), (*C.cuuint64_t)(unsafe.SliceData(m.Strides)),
		(*C.cuuint32_t)(unsafe.SliceData(m.Box)), (*C.cuuint32_t)(unsafe.SliceData(steps)),
		C.CUtensorMapSwizzle(m.Swizzle), C.CUtensorMapL2promotion(m.Promotion), fill))
	copy(encoded[:], out)
	return encoded, err
}
