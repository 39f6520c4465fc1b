// Package trace holds what the ranks of a run did and when: it sums it up and writes it as Chrome
// trace events, which Perfetto and chrome://tracing open.
package trace

import (
	"cmp"
	"slices"
)

// Kind says what a span is of.
type Kind string

// The kinds of spans.
const (
	Kernel     Kind = "kernel"
	Copy       Kind = "copy"
	Fill       Kind = "fill"
	Collective Kind = "collective"
	Wait       Kind = "wait"      // the stream of kernels has nothing to do until a collective beside it has finished
	Operation  Kind = "operation" // of the evaluator
)

// computes tells whether the rank's own units work.
func (k Kind) computes() bool { return k != Collective && k != Wait }

// Rank is what one rank did in one run of an entry.
type Rank struct {
	Rank  int64  `json:"rank"`
	Entry string `json:"entry"`
	Clock string `json:"clock"` // what times were taken with: ClockEvents or ClockHost
	Start int64  `json:"start"` // where spans count from, by the clock of the rank's host: nanoseconds since 1970
	Spans []Span `json:"spans"` // in the order in which they were issued
}

// The clocks.
const (
	ClockEvents = "device events"
	ClockHost   = "wall time"
)

// Span is a step of the plan, or for the evaluator an operation of the program, that ran from Start to End:
// nanoseconds after the start of the rank.
type Span struct {
	Step   int      `json:"step"` // its number in the plan, or in the entry's body
	Kind   Kind     `json:"kind"`
	Name   string   `json:"name"` // of the kernel, or the kind of collective
	Label  string   `json:"label,omitempty"`
	Start  int64    `json:"start"`
	End    int64    `json:"end"`
	Bytes  int64    `json:"bytes"`
	FLOPs  int64    `json:"flops,omitempty"`
	Axes   []string `json:"axes,omitempty"`   // of a collective
	Beside bool     `json:"beside,omitempty"` // on a stream beside that of the kernels
}

// Summary sums up a rank's run, in microseconds.
type Summary struct {
	Rank          int64   `json:"rank"`
	Step          float64 `json:"step_us"`          // from the first start to the last end
	Computing     float64 `json:"computing_us"`     // some kernel, copy or fill ran
	Communicating float64 `json:"communicating_us"` // some collective ran
	Hidden        float64 `json:"hidden_us"`        // both
	Exposed       float64 `json:"exposed_us"`       // communicating and not hidden
	Share         float64 `json:"hidden_share"`     // hidden of communicating; 0 where nothing was communicated
}

// Summarize sums up a rank's run. Each time is the length of a union of intervals: what runs twice at
// the same time counts once.
func Summarize(r Rank) Summary {
	var computing, communicating, all []interval
	for _, s := range r.Spans {
		i := interval{s.Start, s.End}
		all = append(all, i)
		switch {
		case s.Kind.computes():
			computing = append(computing, i)
		case s.Kind == Collective:
			communicating = append(communicating, i)
		}
	}
	computing, communicating = union(computing), union(communicating)
	total := length(communicating)
	hidden := length(intersection(computing, communicating))
	s := Summary{Rank: r.Rank, Computing: microseconds(length(computing)), Communicating: microseconds(total), Hidden: microseconds(hidden), Exposed: microseconds(total - hidden)}
	if all = union(all); len(all) > 0 {
		s.Step = microseconds(all[len(all)-1].end - all[0].start)
	}
	if total > 0 {
		s.Share = float64(hidden) / float64(total)
	}
	return s
}

func microseconds(ns int64) float64 { return float64(ns) / 1000 }

// interval is from start to end, in nanoseconds.
type interval struct{ start, end int64 }

// union gives the same times as intervals that do not touch, in order.
func union(list []interval) []interval {
	slices.SortFunc(list, func(a, b interval) int { return cmp.Compare(a.start, b.start) })
	var out []interval
	for _, i := range list {
		if n := len(out); n > 0 && i.start <= out[n-1].end {
			out[n-1].end = max(out[n-1].end, i.end)
		} else {
			out = append(out, i)
		}
	}
	return out
}

// intersection gives the times that are in both of two unions.
func intersection(a, b []interval) []interval {
	var out []interval
	for len(a) > 0 && len(b) > 0 {
		if i := (interval{max(a[0].start, b[0].start), min(a[0].end, b[0].end)}); i.start < i.end {
			out = append(out, i)
		}
		if a[0].end < b[0].end {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

func length(union []interval) (total int64) {
	for _, i := range union {
		total += i.end - i.start
	}
	return total
}
