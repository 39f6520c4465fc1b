//go:build cuda

package cuda

/*
#include <stdint.h>
#include <cuda.h>

// loadModule loads a PTX text that ends in a zero byte, or a cubin. log gets what the driver's
// assembler has to say against it.
static CUresult loadModule(CUmodule *module, const void *image, char *log, unsigned size) {
	CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)size};
	log[0] = 0;
	CUresult result = cuModuleLoadDataEx(module, image, 2, options, values);
	log[size - 1] = 0;
	return result;
}
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"weft/runtime"
)

const (
	jitLogSize    = 16 << 10 // bytes of the driver's assembler log that are kept
	defaultShared = 48 << 10 // bytes of shared memory that a block may use without asking
)

// module is a loaded image.
type module struct {
	device  *Device
	handle  C.CUmodule
	names   []string // its entries
	kernels map[string]*kernel
}

// kernel is a loaded entry.
type kernel struct {
	device     *Device
	name       string
	handle     C.CUfunction
	static     int    // bytes of shared memory that the entry declares itself
	shared     int    // bytes of dynamic shared memory that it may use as it stands
	parameters []int  // the size of each in bytes; nil when the driver does not tell
	cluster    [3]int // blocks of the clusters that the entry asks for; 0 for none
}

// Name is the entry's name in the image.
func (k *kernel) Name() string { return k.name }

// Load makes the kernels of one PTX text or cubin available. The driver assembles PTX here.
func (d *Device) Load(image []byte) (runtime.Module, error) {
	if err := checkImage(image); err != nil {
		return nil, &LoadError{Err: err}
	}
	m := &module{device: d, names: kernelNames(image), kernels: map[string]*kernel{}}
	text := append(append(make([]byte, 0, len(image)+1), image...), 0)
	log := make([]byte, jitLogSize)
	err := d.Do(func() error {
		return check("cuModuleLoadDataEx", C.loadModule(&m.handle, unsafe.Pointer(&text[0]), (*C.char)(unsafe.Pointer(&log[0])), jitLogSize))
	})
	if err != nil {
		printed, _, _ := strings.Cut(string(log), "\x00")
		return nil, &LoadError{Log: strings.TrimSpace(printed), Err: err}
	}
	d.open[m] = true
	return m, nil
}

// Close unloads the image; its kernels are gone.
func (m *module) Close() error {
	if m.handle == nil {
		return nil
	}
	delete(m.device.open, m)
	err := m.device.Do(func() error { return check("cuModuleUnload", C.cuModuleUnload(m.handle)) })
	m.handle = nil
	for _, k := range m.kernels {
		k.handle = nil
	}
	return err
}

// Kernel finds an entry by name.
func (m *module) Kernel(name string) (runtime.Kernel, error) {
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	k := &kernel{device: m.device, name: name}
	if m.handle == nil {
		return nil, fmt.Errorf("kernel %s: its module is closed", name)
	}
	if err := m.device.Do(func() error { return k.find(m.handle) }); err != nil {
		return nil, fmt.Errorf("no kernel %q in this module, which has %s: %w", name, strings.Join(m.names, ", "), err)
	}
	m.kernels[name] = k
	return k, nil
}

// find fills k with what the driver knows of the entry.
func (k *kernel) find(m C.CUmodule) error {
	name := C.CString(k.name)
	defer C.free(unsafe.Pointer(name))
	if err := check("cuModuleGetFunction", C.cuModuleGetFunction(&k.handle, m, name)); err != nil {
		return err
	}
	var static C.int
	if err := check("cuFuncGetAttribute", C.cuFuncGetAttribute(&static, C.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, k.handle)); err != nil {
		return err
	}
	k.static = int(static)
	k.shared = max(0, defaultShared-k.static)
	for axis, attribute := range []C.CUfunction_attribute{
		C.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, C.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, C.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
	} {
		var blocks C.int
		if C.cuFuncGetAttribute(&blocks, attribute, k.handle) != C.CUDA_SUCCESS {
			break // the driver is older than CUDA 11.8, which has no clusters
		}
		k.cluster[axis] = int(blocks)
	}
	for {
		var offset, size C.size_t
		switch C.cuFuncGetParamInfo(k.handle, C.size_t(len(k.parameters)), &offset, &size) {
		case C.CUDA_SUCCESS:
			k.parameters = append(k.parameters, int(size))
		case C.CUDA_ERROR_INVALID_VALUE: // past the last
			if k.parameters == nil {
				k.parameters = []int{}
			}
			return nil
		default: // the driver is older than CUDA 12.4
			k.parameters = nil
			return nil
		}
	}
}

// allow asks for bytes of dynamic shared memory.
func (k *kernel) allow(bytes int) error {
	if bytes <= k.shared {
		return nil
	}
	if limit := k.device.properties.SharedPerBlock; bytes+k.static > limit {
		return fmt.Errorf("%d bytes of dynamic and %d of static shared memory: a block has at most %d", bytes, k.static, limit)
	}
	err := k.device.Do(func() error {
		return check("cuFuncSetAttribute", C.cuFuncSetAttribute(k.handle, C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
	})
	if err != nil {
		return fmt.Errorf("%d bytes of dynamic shared memory: %w", bytes, err)
	}
	k.shared = bytes
	return nil
}
