//go:build cuda

package cuda

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"weft/runtime"
)

// events gives out handles for CUDA's events. A program that runs for days records without end, so
// events are used again: when the device has been idle, those recorded before are past. They are
// kept for one more round, for Elapsed.
//
// Handles count up from 1. live holds the events of the handles from first on; those below first
// are past.
type events struct {
	first runtime.Event
	live  []cu.Event
	round int        // how many of live were recorded before the device was last idle
	free  []cu.Event // to be used again
}

// next returns an event to record, and its handle. CUDA's context must be current.
func (v *events) next() (cu.Event, runtime.Event, error) {
	var event cu.Event
	if n := len(v.free); n > 0 {
		event, v.free = v.free[n-1], v.free[:n-1]
	} else {
		var err error
		if event, err = cu.MakeEvent(cu.DefaultEvent); err != nil {
			return event, 0, err
		}
	}
	v.live = append(v.live, event)
	return event, v.first + runtime.Event(len(v.live)), nil
}

// find returns the event of a handle; past says that it happened too long ago to be kept.
func (v *events) find(e runtime.Event) (event cu.Event, past bool, err error) {
	switch i := e - v.first - 1; {
	case e < 1 || int(i) >= len(v.live):
		return cu.Event{}, false, fmt.Errorf("event %d was not recorded on this device", e)
	case i < 0:
		return cu.Event{}, true, nil
	default:
		return v.live[i], false, nil
	}
}

// idle tells that everything enqueued has finished.
func (v *events) idle() {
	v.free = append(v.free, v.live[:v.round]...)
	v.live = append(v.live[:0], v.live[v.round:]...)
	v.first += runtime.Event(v.round)
	v.round = len(v.live)
}

// destroy gives all events back. CUDA's context must be current.
func (v *events) destroy() error {
	var errs []error
	for _, event := range append(v.free, v.live...) {
		errs = append(errs, named("cuEventDestroy", cu.DestroyEvent(&event)))
	}
	*v = events{}
	return errors.Join(errs...)
}
