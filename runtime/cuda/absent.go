//go:build !cuda

package cuda

import "weft/runtime"

// Built tells whether this build has CUDA devices.
const Built = false

// Device is a CUDA device; there is none in this build.
type Device struct {
	runtime.Device
	runtime.Capturer
	runtime.Marker
	Timer
	Native
}

var errNotBuilt = &UnavailableError{
	Reason: "this weft was built without CUDA; use the cuda build: sh runtime/cuda/build.sh",
}

// Open answers with an UnavailableError in this build.
func Open(ordinal int) (*Device, error) { return nil, errNotBuilt }

// Count answers with an UnavailableError in this build.
func Count() (int, error) { return 0, errNotBuilt }

// DriverVersion answers with an UnavailableError in this build.
func DriverVersion() (int, error) { return 0, errNotBuilt }
