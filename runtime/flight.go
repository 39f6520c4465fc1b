package runtime

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// FlightState is how far a recorded step is.
type FlightState uint8

const (
	FlightPending  FlightState = iota // begun or enqueued, not known to have finished
	FlightFinished                    // it has run
)

// FlightRecord is what a rank remembers of a step of its plan.
type FlightRecord struct {
	Entry      string
	Step       int    // its number in the plan
	Label      string // what it is and where it came from
	Sequence   int64  // for a collective its Collective.Sequence, else 0
	Collective bool
	State      FlightState
	Since      time.Duration // how long ago it began (pending) or ended (finished)
}

// String is the record as reports have it.
func (r FlightRecord) String() string {
	s := fmt.Sprintf("step %d of %q", r.Step, r.Entry)
	if r.Collective {
		s = fmt.Sprintf("collective %d, ", r.Sequence) + s
	}
	if r.Label != "" {
		s += " (" + r.Label + ")"
	}
	if r.State == FlightPending {
		return fmt.Sprintf("%s, for %s", s, r.Since.Round(time.Millisecond))
	}
	return fmt.Sprintf("%s, %s ago", s, r.Since.Round(time.Millisecond))
}

// Flight is the present of a rank: the step that finished last, and those that it waits for.
type Flight struct {
	Last    *FlightRecord // nil before the first
	Pending []FlightRecord
}

// Collective is the oldest collective that the rank waits for; nil where it waits for none.
func (f Flight) Collective() *FlightRecord {
	for i := range f.Pending {
		if f.Pending[i].Collective {
			return &f.Pending[i]
		}
	}
	return nil
}

// maxPending bounds how many pending steps a recorder keeps.
const maxPending = 64

// FlightRecorder remembers what a rank does, for the report of a run that stalls. It keeps the
// last finished step and the oldest pending ones. Its methods may be called from any goroutine; those of nil do
// nothing.
type FlightRecorder struct {
	mu      sync.Mutex
	next    int64
	last    *flightEntry
	pending []flightEntry // by number
}

type flightEntry struct {
	number int64
	at     time.Time
	record FlightRecord
}

// Begin records a step that begins now and gives its number, for Finish. Its State and Since need not be
// set.
func (f *FlightRecorder) Begin(r FlightRecord) int64 {
	if f == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	if len(f.pending) < maxPending {
		r.State = FlightPending
		f.pending = append(f.pending, flightEntry{f.next, time.Now(), r})
	}
	return f.next
}

// Finish records that a step ended. A number that is not pending counts for nothing.
func (f *FlightRecorder) Finish(number int64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.pending, func(e flightEntry) bool { return e.number == number })
	if i < 0 {
		return
	}
	done := f.pending[i]
	f.pending = slices.Delete(f.pending, i, i+1)
	done.at, done.record.State = time.Now(), FlightFinished
	f.last = &done
}

// Flight is the present.
func (f *FlightRecorder) Flight() Flight {
	if f == nil {
		return Flight{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	timed := func(e flightEntry) FlightRecord {
		e.record.Since = now.Sub(e.at)
		return e.record
	}
	var present Flight
	if f.last != nil {
		r := timed(*f.last)
		present.Last = &r
	}
	for _, e := range f.pending {
		present.Pending = append(present.Pending, timed(e))
	}
	return present
}
