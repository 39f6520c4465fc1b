//go:build cuda

package cuda

/*
#include <stdlib.h>
#include <cuda.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"weft/runtime"
)

var (
	_ runtime.Device   = (*Device)(nil)
	_ runtime.Capturer = (*Device)(nil)
	_ runtime.Marker   = (*Device)(nil)
	_ Timer            = (*Device)(nil)
	_ Native           = (*Device)(nil)
)

// Device is one GPU. Its calls may come from any one goroutine at a time: each makes the device's
// context current on the thread it happens to run on, which costs far less than handing the work
// to a thread of the device's own.
type Device struct {
	device     cu.Device
	context    cu.CUContext
	current    C.CUcontext // the same, for our own bindings
	properties runtime.Properties
	uploads    cu.Stream   // only Upload uses it
	streams    []cu.Stream // by runtime.Stream
	events     events
	marks      marks
	memory     map[cu.DevicePtr]bool // allocations to free with the device
	open       map[io.Closer]bool    // modules and graphs to close with it
	filler     runtime.Kernel        // see fill8
	encodings  map[mapKey]encodedMap // of tensor maps
	zeros      runtime.Pointer       // zeroBytes of zeros, see nothing
	capturing  bool
	pending    pending
	before     pending // what was pending when the capture began
}

// pending remembers what was enqueued since the device was last idle, for errors that appear late.
type pending struct {
	launches int
	last     runtime.Launch
}

// Open makes the device of that number usable, counted from 0 as the driver counts
// (CUDA_VISIBLE_DEVICES included).
func Open(ordinal int) (*Device, error) {
	n, err := Count()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= n {
		return nil, &UnavailableError{Reason: fmt.Sprintf("there is no device %d, the driver shows %d", ordinal, n)}
	}
	device, err := cu.GetDevice(ordinal)
	if err != nil {
		return nil, named("cuDeviceGet", err)
	}
	d := &Device{device: device, memory: map[cu.DevicePtr]bool{}, open: map[io.Closer]bool{}, encodings: map[mapKey]encodedMap{}}
	if d.properties, err = properties(device); err != nil {
		return nil, err
	}
	if d.context, err = device.RetainPrimaryCtx(); err != nil {
		return nil, fmt.Errorf("open of CUDA device %d: %w", ordinal, named("cuDevicePrimaryCtxRetain", err))
	}
	if err := d.Do(d.makeStreams); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if d.zeros, err = d.Alloc(zeroBytes); err == nil {
		err = d.Upload(d.zeros, make([]byte, zeroBytes))
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// zeroBytes are enough for an element of any type.
const zeroBytes = 16

func (d *Device) makeStreams() (err error) {
	if err := check("cuCtxGetCurrent", C.cuCtxGetCurrent(&d.current)); err != nil {
		return err
	}
	if d.uploads, err = cu.MakeStream(cu.NonBlocking); err != nil {
		return named("cuStreamCreate", err)
	}
	_, err = d.NewStream()
	return err
}

func properties(device cu.Device) (p runtime.Properties, err error) {
	if p.Name, err = device.Name(); err != nil {
		return p, named("cuDeviceGetName", err)
	}
	for _, a := range []struct {
		attribute cu.DeviceAttribute
		value     *int
	}{
		{cu.ComputeCapabilityMajor, &p.ComputeMajor},
		{cu.ComputeCapabilityMinor, &p.ComputeMinor},
		{cu.MultiprocessorCount, &p.Multiprocessors},
		{C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &p.SharedPerBlock},
	} {
		if *a.value, err = device.Attribute(a.attribute); err != nil {
			return p, named("cuDeviceGetAttribute", err)
		}
	}
	if p.Memory, err = device.TotalMem(); err != nil {
		return p, named("cuDeviceTotalMem", err)
	}
	p.DriverVersion, err = DriverVersion()
	return p, err
}

// Properties describes the device.
func (d *Device) Properties() runtime.Properties { return d.properties }

// Ordinal is the device's CUDA number.
func (d *Device) Ordinal() int { return int(d.device) }

// StreamHandle is the CUstream behind s.
func (d *Device) StreamHandle(s runtime.Stream) (uintptr, error) {
	stream, err := d.stream(s)
	return uintptr(unsafe.Pointer(stream.C())), err
}

// Do runs f on a thread where the device's context is current.
func (d *Device) Do(f func() error) error {
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	if err := cu.SetCurrentContext(d.context); err != nil {
		return named("cuCtxSetCurrent", err)
	}
	return f()
}

// call is Do for one function of package cu.
func (d *Device) call(name string, f func() error) error {
	return d.Do(func() error { return named(name, f()) })
}

// NewStream returns another stream. It does not wait for CUDA's default stream.
func (d *Device) NewStream() (runtime.Stream, error) {
	err := d.call("cuStreamCreate", func() error {
		stream, err := cu.MakeStream(cu.NonBlocking)
		if err == nil {
			d.streams = append(d.streams, stream)
		}
		return err
	})
	return runtime.Stream(len(d.streams) - 1), err
}

func (d *Device) stream(s runtime.Stream) (cu.Stream, error) {
	if s < 0 || int(s) >= len(d.streams) {
		return cu.Stream{}, fmt.Errorf("stream %d was not made by this device", s)
	}
	return d.streams[s], nil
}

// enqueue runs one function of package cu on a stream.
func (d *Device) enqueue(name string, s runtime.Stream, f func(cu.Stream) error) error {
	stream, err := d.stream(s)
	if err != nil {
		return err
	}
	return d.call(name, func() error { return f(stream) })
}

// Record marks the present end of s.
func (d *Device) Record(s runtime.Stream) (runtime.Event, error) {
	var handle runtime.Event
	err := d.enqueue("cuEventRecord", s, func(stream cu.Stream) error {
		event, h, err := d.events.next()
		if err != nil {
			return err
		}
		handle = h
		return event.Record(stream)
	})
	return handle, err
}

// Wait makes s wait for a mark. A mark from before the last Synchronize but one is long past, and
// nothing has to wait for it.
func (d *Device) Wait(s runtime.Stream, e runtime.Event) error {
	event, past, err := d.events.find(e)
	if err != nil || past {
		return err
	}
	return d.enqueue("cuStreamWaitEvent", s, func(stream cu.Stream) error { return stream.Wait(event, 0) })
}

// Elapsed is the time between two marks. It waits for the second.
func (d *Device) Elapsed(from, to runtime.Event) (time.Duration, error) {
	var pair [2]cu.Event
	for i, e := range []runtime.Event{from, to} {
		event, past, err := d.events.find(e)
		if err != nil {
			return 0, err
		}
		if past {
			return 0, fmt.Errorf("event %d is from before the last Synchronize but one: its time is forgotten", e)
		}
		pair[i] = event
	}
	var ms float64
	err := d.Do(func() (err error) {
		if err = named("cuEventSynchronize", pair[1].Synchronize()); err != nil {
			return d.late(err)
		}
		ms, err = pair[0].Elapsed(pair[1])
		return named("cuEventElapsedTime", err)
	})
	return time.Duration(ms * float64(time.Millisecond)), err
}

// Synchronize waits for all streams and reports the first error of any work on them.
func (d *Device) Synchronize() error {
	if d.capturing {
		return errors.New("Synchronize inside a capture: nothing runs there that could be waited for")
	}
	if err := d.call("cuCtxSynchronize", cu.Synchronize); err != nil {
		return d.late(err)
	}
	d.pending = pending{}
	d.events.idle()
	return nil
}

// late adds to an error of enqueued work what may have caused it.
func (d *Device) late(err error) error {
	switch d.pending.launches {
	case 0:
		return err
	case 1:
		return fmt.Errorf("%s: %w", describe(d.pending.last), err)
	}
	return fmt.Errorf("one of %d launches, the last of which was %s (set CUDA_LAUNCH_BLOCKING=1 to learn which): %w",
		d.pending.launches, describe(d.pending.last), err)
}

// Close waits for the device and gives up everything on it.
func (d *Device) Close() error {
	if d.context == (cu.CUContext{}) {
		return nil
	}
	errs := []error{d.Do(func() error {
		if err := cu.Synchronize(); err != nil {
			// The context is lost: there is nothing in it to give back, and every call says so.
			return d.late(named("cuCtxSynchronize", err))
		}
		var errs []error
		for c := range d.open {
			errs = append(errs, c.Close())
		}
		for p := range d.memory {
			errs = append(errs, named("cuMemFree", cu.MemFree(p)))
		}
		errs = append(errs, d.events.destroy(), d.marks.destroy())
		for _, s := range append(d.streams, d.uploads) {
			if s != (cu.Stream{}) {
				errs = append(errs, named("cuStreamDestroy", s.Destroy()))
			}
		}
		return errors.Join(errs...)
	})}
	errs = append(errs, named("cuDevicePrimaryCtxRelease", d.device.ReleasePrimaryCtx()))
	*d = Device{properties: d.properties, device: d.device}
	return errors.Join(errs...)
}
