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

// EncodeTensorMap returns the bytes that a kernel takes as the argument, a tensor map that is not
// empty. They are to be aligned to 64.
func EncodeTensorMap(a runtime.Arg) (encoded [runtime.TensorMapSize]byte, err error) {
	if err := driver(); err != nil {
		return encoded, err
	}
	if err := a.CheckMap(); err != nil {
		return encoded, err
	}
	m := a.Map
	err = check("cuTensorMapEncodeTiled", C.encode(unsafe.Pointer(&encoded),
		C.CUtensorMapDataType(m.Type), C.cuuint32_t(len(m.Dims)), C.cuuint64_t(a.Bits),
		(*C.cuuint64_t)(unsafe.SliceData(m.Dims)), (*C.cuuint64_t)(unsafe.SliceData(m.Strides)),
		(*C.cuuint32_t)(unsafe.SliceData(m.Box)), C.CUtensorMapSwizzle(m.Swizzle), C.CUtensorMapL2promotion(m.Promotion)))
	return encoded, err
}
