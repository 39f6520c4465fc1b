//go:build cuda

package cuda

/*
#include <cuda.h>
*/
import "C"

import (
	"fmt"
	"unsafe"

	"weft/runtime"
)

// mapped is memory of the host that is given back with the device.
type mapped struct{ at unsafe.Pointer }

// Mapped allocates memory of the host that the device reads and writes in place.
func (d *Device) Mapped(size int64) (host []byte, at runtime.Pointer, err error) {
	err = d.Do(func() error {
		var p unsafe.Pointer
		if err := check("cuMemHostAlloc", C.cuMemHostAlloc(&p, C.size_t(size), C.CU_MEMHOSTALLOC_PORTABLE|C.CU_MEMHOSTALLOC_DEVICEMAP)); err != nil {
			return err
		}
		d.open[&mapped{p}] = true
		host = unsafe.Slice((*byte)(p), size)
		clear(host)
		var device C.CUdeviceptr
		err := check("cuMemHostGetDevicePointer", C.cuMemHostGetDevicePointer(&device, p, 0))
		at = runtime.Pointer(device)
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("mapped memory of %d bytes: %w", size, err)
	}
	return host, at, nil
}

// Close gives the memory back. CUDA's context must be current.
func (m *mapped) Close() error { return check("cuMemFreeHost", C.cuMemFreeHost(m.at)) }
