package runtime

import (
	"strings"
	"testing"
)

func TestFlightRecorder(t *testing.T) {
	var none *FlightRecorder
	none.Finish(none.Begin(FlightRecord{}))
	if f := none.Flight(); f.Last != nil || f.Pending != nil {
		t.Errorf("no recorder recorded %v", f)
	}
	f := &FlightRecorder{}
	kernel := f.Begin(FlightRecord{Entry: "forward", Step: 1, Label: "relu"})
	first := f.Begin(FlightRecord{Entry: "forward", Step: 2, Label: "all_reduce", Sequence: 1, Collective: true})
	f.Begin(FlightRecord{Entry: "forward", Step: 3, Label: "all_gather", Sequence: 2, Collective: true})
	f.Finish(kernel)
	f.Finish(kernel)
	if p := f.Flight(); p.Last == nil || p.Last.Step != 1 || p.Last.State != FlightFinished || len(p.Pending) != 2 || p.Collective().Sequence != 1 {
		t.Errorf("after the kernel: %+v", p)
	}
	f.Finish(first)
	p := f.Flight()
	if p.Last.Step != 2 || p.Collective().Sequence != 2 {
		t.Errorf("after the first collective: %+v", p)
	}
	if text := p.Pending[0].String(); !strings.HasPrefix(text, `collective 2, step 3 of "forward" (all_gather), for `) {
		t.Errorf("a record prints as %s", text)
	}
	if text := p.Last.String(); !strings.HasPrefix(text, `collective 1, step 2 of "forward" (all_reduce), `) || !strings.HasSuffix(text, " ago") {
		t.Errorf("a record prints as %s", text)
	}
	for range 2 * maxPending {
		f.Begin(FlightRecord{})
	}
	if n := len(f.Flight().Pending); n != maxPending {
		t.Errorf("%d steps are pending", n)
	}
}
