//go:build cuda

package cuda

/*
#include <cuda.h>

// mark records an event on a stream. Where the stream is captured the event becomes a node of the graph, which
// takes the time at every replay; the flag for that is refused outside of captures.
static CUresult mark(CUcontext context, CUstream stream, CUevent event) {
	CUstreamCaptureStatus status;
	CUresult result = cuCtxSetCurrent(context);
	if (result == CUDA_SUCCESS) {
		result = cuStreamIsCapturing(stream, &status);
	}
	if (result != CUDA_SUCCESS) {
		return result;
	}
	unsigned int flags = status == CU_STREAM_CAPTURE_STATUS_NONE ? CU_EVENT_RECORD_DEFAULT : CU_EVENT_RECORD_EXTERNAL;
	return cuEventRecordWithFlags(event, stream, flags);
}

static CUresult newMark(CUcontext context, CUevent *event) {
	CUresult result = cuCtxSetCurrent(context);
	return result == CUDA_SUCCESS ? cuEventCreate(event, CU_EVENT_DEFAULT) : result;
}

static CUresult between(CUcontext context, float *milliseconds, CUevent from, CUevent to) {
	CUresult result = cuCtxSetCurrent(context);
	return result == CUDA_SUCCESS ? cuEventElapsedTime(milliseconds, from, to) : result;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"weft/runtime"
)

// marks are the events of runtime.Marker. They are apart from those that streams wait for: a graph goes on
// recording its own. Marks count from 1.
type marks struct {
	events []C.CUevent // by mark - 1
	free   []runtime.Mark
}

// Mark notes when s reaches its present end, inside a capture whenever the recorded work runs.
func (d *Device) Mark(s runtime.Stream) (runtime.Mark, error) {
	stream, err := d.stream(s)
	if err != nil {
		return 0, err
	}
	m, err := d.marks.next(d.current)
	if err != nil {
		return 0, err
	}
	handle := C.CUstream(unsafe.Pointer(stream.C()))
	return m, check("cuEventRecordWithFlags", C.mark(d.current, handle, d.marks.events[m-1]))
}

// next returns a mark that is not in use.
func (v *marks) next(context C.CUcontext) (runtime.Mark, error) {
	if n := len(v.free); n > 0 {
		m := v.free[n-1]
		v.free = v.free[:n-1]
		return m, nil
	}
	var event C.CUevent
	if err := check("cuEventCreate", C.newMark(context, &event)); err != nil {
		return 0, err
	}
	v.events = append(v.events, event)
	return runtime.Mark(len(v.events)), nil
}

// Between is the time between two marks that were reached. The driver counts in steps of about half a microsecond.
func (d *Device) Between(from, to runtime.Mark) (time.Duration, error) {
	for _, m := range []runtime.Mark{from, to} {
		if m < 1 || int(m) > len(d.marks.events) {
			return 0, fmt.Errorf("mark %d was not made by this device", m)
		}
	}
	var ms C.float
	if err := check("cuEventElapsedTime", C.between(d.current, &ms, d.marks.events[from-1], d.marks.events[to-1])); err != nil {
		return 0, err
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), nil
}

// Unmark gives marks up, to be used again.
func (d *Device) Unmark(marks ...runtime.Mark) { d.marks.free = append(d.marks.free, marks...) }

// destroy gives the events back. CUDA's context must be current.
func (v *marks) destroy() error {
	var errs []error
	for _, event := range v.events {
		errs = append(errs, check("cuEventDestroy", C.cuEventDestroy(event)))
	}
	*v = marks{}
	return errors.Join(errs...)
}
