package runtime_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/ir"
	"weft/runtime"
	"weft/runtime/devicetest"
	"weft/runtime/emu"
	"weft/runtime/trace"
)

// clocked is an emulator that marks times in captured work.
type clocked struct {
	captor
	*devicetest.Marks
}

type captor struct{ *emu.Device }

func newClocked(t *testing.T) clocked {
	t.Helper()
	d := emu.New(emu.Options{Workers: 1})
	t.Cleanup(func() { d.Close() })
	m, err := devicetest.NewMarks(d)
	check(t, err)
	return clocked{captor{d}, m}
}

// steps are the numbers and names of spans.
func steps(r trace.Rank) (list []string) {
	for _, s := range r.Spans {
		list = append(list, fmt.Sprint(s.Step, " ", s.Name))
	}
	return list
}

// A trace has each step as often as it ran, also those of loops whose graphs run again, in order
// and without overlap; marks are given up with the session.
func TestTraceControl(t *testing.T) {
	x := vector(1, 2, 3, 4)
	const iteration = "6 add/8 copy/9 copy/10 copy/11 fill"
	for _, iterations := range []int{0, 1, 3} {
		want := slices.Concat([]string{"0 copy/1 copy/2 copy/3 copy"}, slices.Repeat([]string{iteration}, iterations), []string{"12 copy"})
		inputs := append([]*ir.Tensor{x}, flags(iterations > 0, iterations > 1, iterations > 2, true)...)
		d := newClocked(t)
		for name, device := range map[string]runtime.Device{"graphs with marks": d, "step by step": d.Device} {
			for _, noGraph := range []bool{false, true} {
				s := openOn(t, device, controlled, runtime.Options{Trace: true, NoGraph: noGraph})
				if _, err := s.Trace(); err == nil {
					t.Errorf("a trace of no run")
				}
				for range 3 { // each run's trace is its own
					_, err := s.Run("control", inputs)
					check(t, err)
					r, err := s.Trace()
					check(t, err)
					if got := strings.Join(steps(r), "/"); got != strings.Join(want, "/") {
						t.Errorf("%s, NoGraph %t, %d iterations: %s", name, noGraph, iterations, got)
					}
					end := int64(0)
					for _, span := range r.Spans {
						if span.Start < end || span.End < span.Start {
							t.Errorf("%s: step %d from %d to %d after one that ended at %d", name, span.Step, span.Start, span.End, end)
						}
						end = span.End
					}
				}
				check(t, s.Close())
			}
		}
		if len(d.Live) > 0 {
			t.Errorf("%d marks are left", len(d.Live))
		}
	}
}

// A session that is not asked to trace takes no marks.
func TestNoTrace(t *testing.T) {
	d := newClocked(t)
	s := openOn(t, d, controlled, runtime.Options{})
	_, err := s.Run("control", append([]*ir.Tensor{vector(1, 2, 3, 4)}, flags(true, false, false, true)...))
	check(t, err)
	if _, err := s.Trace(); err == nil || len(d.Live) > 0 {
		t.Errorf("%v, %d marks", err, len(d.Live))
	}
	check(t, s.Close())
}

// Spans say what a step does.
func TestTraceSpans(t *testing.T) {
	d := newClocked(t)
	s := openOn(t, d, controlled, runtime.Options{Trace: true})
	defer s.Close()
	before := time.Now()
	_, err := s.Run("control", append([]*ir.Tensor{vector(1, 2, 3, 4)}, flags(true, false, false, false)...))
	check(t, err)
	r, err := s.Trace()
	check(t, err)
	if r.Entry != "control" || r.Rank != 0 || r.Clock != trace.ClockEvents {
		t.Errorf("%+v", r)
	}
	if start := time.Unix(0, r.Start); start.Before(before.Add(-time.Millisecond)) || start.After(time.Now()) {
		t.Errorf("starts at %v, ran at %v", start, before)
	}
	for i, want := range map[int]trace.Span{
		0: {Kind: trace.Copy, Name: "copy", Bytes: 32},
		1: {Step: 1, Kind: trace.Copy, Name: "copy", Label: "again", Bytes: 2},
		4: {Step: 7, Kind: trace.Kernel, Name: "add", Label: "y + count", Bytes: 48},
		8: {Step: 11, Kind: trace.Fill, Name: "fill", Label: "at last", Bytes: 1},
	} {
		got := r.Spans[i]
		got.Start, got.End = 0, 0
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("span %d: %+v, want %+v", i, got, want)
		}
	}
}

// Ranks on emulators take the wall time of collectives too.
func TestTraceRanks(t *testing.T) {
	r, err := runtime.OpenRanks(meshArtifact(t, nil), members(t, 6, time.Minute, nil), runtime.Options{Trace: true})
	check(t, err)
	defer r.Close()
	_, err = r.RunContext(t.Context(), "sum", []*ir.Tensor{matrix(2, 2, 1, 2, 3, 4)})
	check(t, err)
	traces, err := r.Traces()
	check(t, err)
	for i, of := range traces {
		if got := strings.Join(steps(of), "/"); of.Rank != int64(i) || of.Clock != trace.ClockHost || got != "0 copy/1 all_reduce" {
			t.Errorf("rank %d of %d: %s by %s", of.Rank, i, got, of.Clock)
			continue
		}
		c := of.Spans[1]
		if c.Kind != trace.Collective || c.Label != "loss at model.py:4" || c.Bytes != 8 || !slices.Equal(c.Axes, []string{"tp"}) || c.Beside {
			t.Errorf("rank %d: %+v", i, c)
		}
		if s := trace.Summarize(of); s.Communicating <= 0 || s.Hidden != 0 || s.Exposed != s.Communicating {
			t.Errorf("rank %d: %+v", i, s)
		}
	}
}
