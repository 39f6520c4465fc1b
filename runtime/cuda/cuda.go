// Package cuda is runtime's device for NVIDIA GPUs. It is thin: some thirty calls of the CUDA
// driver behind runtime.Device, runtime.Capturer, runtime.Marker, Timer and Native.
//
// Without the build tag cuda the package holds the same functions, which answer that this build
// has no CUDA. With it (see build.sh) the program needs no driver to start: the driver is loaded
// when a device is asked for, and an UnavailableError says what is missing.
//
// What a kernel did wrong is known only when it has run, so Synchronize and Download report
// errors of work enqueued long before. After such an error every call fails until the process
// ends: CUDA's context is lost. CUDA_LAUNCH_BLOCKING=1 in the environment makes each launch wait,
// so that the error names its kernel.
package cuda

import (
	"fmt"
	"time"

	"weft/runtime"
)

// UnavailableError says why no CUDA device can be used: a build without CUDA, no driver, a driver
// that does not start, no device of that number.
type UnavailableError struct {
	Reason string
	Err    error // the driver's answer, or nil
}

// Error says what is wrong, and where.
func (e *UnavailableError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("CUDA is not available: %s: %v", e.Reason, e.Err)
	}
	return "CUDA is not available: " + e.Reason
}

// Unwrap gives the cause, for errors.Is and errors.As.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Error is a driver call that failed.
type Error struct {
	Call string // the driver's function: cuMemAlloc
	Code int    // CUresult: 2
	Name string // CUDA_ERROR_OUT_OF_MEMORY
	Text string // out of memory
}

// Error says what is wrong, and where.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Name, e.Code, e.Text)
}

// LoadError is an image that the driver refused.
type LoadError struct {
	Log string // what its assembler printed, possibly nothing
	Err error
}

// Error says what is wrong, and where.
func (e *LoadError) Error() string {
	if e.Log == "" {
		return fmt.Sprintf("load of a kernel image: %v", e.Err)
	}
	return fmt.Sprintf("load of a kernel image: %v\n%s", e.Err, e.Log)
}

// Unwrap gives the cause, for errors.Is and errors.As.
func (e *LoadError) Unwrap() error { return e.Err }

// Timer is a device that knows when its events happened. Both events must have been recorded
// outside a capture and after the last Synchronize but one. Elapsed waits for the second.
type Timer interface {
	Elapsed(from, to runtime.Event) (time.Duration, error)
}

// Native lends what libraries beside the driver need, NCCL above all.
type Native interface {
	// Ordinal is the device's CUDA number.
	Ordinal() int
	// StreamHandle is the CUstream behind s.
	StreamHandle(s runtime.Stream) (uintptr, error)
	// Do runs f on a thread where the device's context is current. It may be called at any time.
	Do(f func() error) error
	// Mapped allocates memory of the host that the device reads and writes in place, until the device
	// is closed. It is zero.
	Mapped(size int64) (host []byte, at runtime.Pointer, err error)
}
