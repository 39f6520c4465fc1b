package emu

import (
	"fmt"
	"maps"

	"weft/runtime"
)

// eventRecord is a mark in a stream. Marks made during a capture belong to it and know which
// recorded work lies before them.
type eventRecord struct {
	stream  runtime.Stream
	capture *capture
	before  map[runtime.Stream]int
}

// capture is work being recorded. A stream joins when it waits for a recorded event, and all
// of its work must lie before the end of the origin stream.
type capture struct {
	origin  runtime.Stream
	work    []func() error
	issued  map[runtime.Stream]int                    // operations recorded on each stream
	ordered map[runtime.Stream]map[runtime.Stream]int // operations before the end of each stream
}

func (d *Device) checkStream(s runtime.Stream) error {
	if d.closed {
		return fmt.Errorf("emulator: the device is closed")
	}
	if s < 0 || int(s) >= d.streams {
		return fmt.Errorf("emulator: no stream %d", s)
	}
	return nil
}

// enqueue runs work now, or records it if the stream is being captured. After a failure, work
// is dropped until the failure has been reported.
func (d *Device) enqueue(s runtime.Stream, work func() error) error {
	if err := d.checkStream(s); err != nil {
		return err
	}
	if c := d.capture; c != nil {
		if before, ok := c.ordered[s]; ok {
			c.work = append(c.work, work)
			c.issued[s]++
			before[s] = c.issued[s]
			return nil
		}
	}
	if d.failure == nil {
		d.failure = work()
	}
	return nil
}

// NewStream implements runtime.Device.
func (d *Device) NewStream() (runtime.Stream, error) {
	d.streams++
	return runtime.Stream(d.streams - 1), nil
}

// Record implements runtime.Device.
func (d *Device) Record(s runtime.Stream) (runtime.Event, error) {
	if err := d.checkStream(s); err != nil {
		return 0, err
	}
	e := eventRecord{stream: s}
	if c := d.capture; c != nil && c.ordered[s] != nil {
		e.capture, e.before = c, maps.Clone(c.ordered[s])
	}
	d.events = append(d.events, e)
	return runtime.Event(len(d.events) - 1), nil
}

// Wait implements runtime.Device.
func (d *Device) Wait(s runtime.Stream, e runtime.Event) error {
	if err := d.checkStream(s); err != nil {
		return err
	}
	if e < 0 || int(e) >= len(d.events) {
		return fmt.Errorf("emulator: no event %d", e)
	}
	event := d.events[e]
	c := d.capture
	switch {
	case event.capture == nil && (c == nil || c.ordered[s] == nil):
		return nil // everything issued so far has run
	case event.capture == nil:
		return fmt.Errorf("emulator: captured stream %d waits for an event from outside the capture", s)
	case event.capture != c:
		return fmt.Errorf("emulator: event %d belongs to another capture", e)
	}
	if c.ordered[s] == nil {
		c.ordered[s] = map[runtime.Stream]int{}
	}
	for stream, n := range event.before {
		c.ordered[s][stream] = max(c.ordered[s][stream], n)
	}
	return nil
}

// BeginCapture implements runtime.Capturer.
func (d *Device) BeginCapture(s runtime.Stream) error {
	if err := d.checkStream(s); err != nil {
		return err
	}
	if d.capture != nil {
		return fmt.Errorf("emulator: stream %d is being captured already", d.capture.origin)
	}
	d.capture = &capture{
		origin: s, issued: map[runtime.Stream]int{},
		ordered: map[runtime.Stream]map[runtime.Stream]int{s: {}},
	}
	return nil
}

// EndCapture implements runtime.Capturer.
func (d *Device) EndCapture(s runtime.Stream) (runtime.Graph, error) {
	c := d.capture
	if c == nil || c.origin != s {
		return nil, fmt.Errorf("emulator: no capture began on stream %d", s)
	}
	d.capture = nil
	for stream := range runtime.Stream(d.streams) {
		if c.issued[stream] > c.ordered[s][stream] {
			return nil, fmt.Errorf("emulator: captured work on stream %d was not joined to stream %d", stream, s)
		}
	}
	return &graph{device: d, work: c.work}, nil
}

// graph is recorded work in issue order.
type graph struct {
	device *Device
	work   []func() error
	closed bool
}

// Replay implements runtime.Graph.
func (g *graph) Replay(s runtime.Stream) error {
	if g.closed {
		return fmt.Errorf("emulator: replay of a closed graph")
	}
	for _, work := range g.work {
		if err := g.device.enqueue(s, work); err != nil {
			return err
		}
	}
	return nil
}

// Close implements runtime.Graph.
func (g *graph) Close() error {
	if g.closed {
		return fmt.Errorf("emulator: graph closed twice")
	}
	g.closed, g.work = true, nil
	return nil
}
