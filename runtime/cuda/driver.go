//go:build cuda

package cuda

/*
#cgo LDFLAGS: -lcuda -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <cuda.h>

// The table behind the trampolines of the generated libcuda.a (see libcuda/assembly.go).
extern void *weft_cuda_table[];
extern const char *const weft_cuda_names[];
extern const uint64_t weft_cuda_count;
extern void weft_cuda_missing(void);

// loadDriver points the table into the driver's library. It returns NULL, or why it could not.
static const char *loadDriver(const char *soname) {
	void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) {
		return dlerror();
	}
	for (uint64_t i = 0; i < weft_cuda_count; i++) {
		void *function = dlsym(library, weft_cuda_names[i]);
		weft_cuda_table[i] = function != NULL ? function : (void *)weft_cuda_missing;
	}
	return NULL;
}
*/
import "C"

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"gorgonia.org/cu"
)

// Built tells whether this build has CUDA devices.
const Built = true

// driver loads and starts the CUDA driver, once for the process.
var driver = sync.OnceValue(func() error {
	soname := C.CString("libcuda.so.1")
	defer C.free(unsafe.Pointer(soname))
	if reason := C.loadDriver(soname); reason != nil {
		return &UnavailableError{Reason: "the driver's library does not load: " + C.GoString(reason)}
	}
	if err := check("cuInit", C.cuInit(0)); err != nil {
		return &UnavailableError{Reason: "the driver does not start", Err: err}
	}
	return nil
})

// Count returns how many CUDA devices there are. It fails with an UnavailableError where there is
// no driver or the driver finds no device.
func Count() (int, error) {
	if err := driver(); err != nil {
		return 0, err
	}
	n, err := cu.NumDevices()
	return n, named("cuDeviceGetCount", err)
}

// DriverVersion returns the newest CUDA version that the driver supports: 13000 for CUDA 13.0.
func DriverVersion() (int, error) {
	if err := driver(); err != nil {
		return 0, err
	}
	var version C.int
	err := check("cuDriverGetVersion", C.cuDriverGetVersion(&version))
	return int(version), err
}

// check makes an error of what a driver function returned.
func check(call string, result C.CUresult) error {
	if result == C.CUDA_SUCCESS {
		return nil
	}
	e := &Error{Call: call, Code: int(result), Name: "unknown error", Text: "this driver has no text for it"}
	var text *C.char
	if C.cuGetErrorName(result, &text) == C.CUDA_SUCCESS {
		e.Name = C.GoString(text)
	}
	if C.cuGetErrorString(result, &text) == C.CUDA_SUCCESS {
		e.Text = C.GoString(text)
	}
	return e
}

// named is check for an error of package cu, whose type holds the driver's result but does not
// give it out.
func named(call string, err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return check(call, C.CUresult(v.Int()))
	}
	return fmt.Errorf("%s: %w", call, err)
}
