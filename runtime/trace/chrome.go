package trace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
)

// The threads of a rank's process.
const (
	computeThread = iota
	communicationThread
)

var threads = []string{computeThread: "compute", communicationThread: "communication"}

// event is a Chrome trace event.
type event struct {
	Name      string   `json:"name"`
	Category  string   `json:"cat,omitempty"`
	Phase     string   `json:"ph"` // X: complete, M: metadata
	Process   int64    `json:"pid"`
	Thread    int      `json:"tid"`
	Time      *float64 `json:"ts,omitempty"` // microseconds
	Duration  *float64 `json:"dur,omitempty"`
	Arguments any      `json:"args"`
}

// arguments are those of a complete event.
type arguments struct {
	Step   int    `json:"step"`
	Kernel string `json:"kernel,omitempty"`
	Label  string `json:"label,omitempty"`
	Bytes  int64  `json:"bytes"`
	Axes   string `json:"axes,omitempty"`
	FLOPs  int64  `json:"flops,omitempty"`
	// Async says that a collective was on a stream beside that of the kernels; the others take turns with kernels.
	Async bool `json:"async,omitempty"`
}

// other is what stands beside the events.
type other struct {
	Entry  string    `json:"entry"`
	Device string    `json:"device"`
	Clock  string    `json:"clock"`
	Ranks  []Summary `json:"ranks"`
}

// Write writes the ranks of a run, in their order, as one Chrome trace: a process for each rank, a thread for
// its kernels and one for its collectives. Times count from the first start of any rank. device says what ran.
func Write(w io.Writer, device string, ranks []Rank) error {
	out := bufio.NewWriter(w)
	beside := other{Device: device, Ranks: []Summary{}}
	first := int64(math.MaxInt64)
	for _, r := range ranks {
		beside.Entry, beside.Clock = r.Entry, r.Clock
		beside.Ranks = append(beside.Ranks, Summarize(r))
		for _, s := range r.Spans {
			first = min(first, r.Start+s.Start)
		}
	}
	fmt.Fprint(out, `{"displayTimeUnit":"ns","traceEvents":[`)
	separator := "\n"
	put := func(e event) error {
		text, err := json.Marshal(e)
		fmt.Fprintf(out, "%s%s", separator, text)
		separator = ",\n"
		return err
	}
	for _, r := range ranks {
		for _, e := range names(r) {
			if err := put(e); err != nil {
				return err
			}
		}
	}
	for _, r := range ranks {
		for _, s := range r.Spans {
			if err := put(complete(r, s, first)); err != nil {
				return err
			}
		}
	}
	text, err := json.Marshal(beside)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n],\"otherData\":%s}\n", text)
	return out.Flush()
}

// names are the events that name a rank's process and threads.
func names(r Rank) []event {
	meta := func(name string, thread int, args any) event {
		return event{Name: name, Phase: "M", Process: r.Rank, Thread: thread, Arguments: args}
	}
	list := []event{
		meta("process_name", 0, map[string]string{"name": fmt.Sprintf("rank %d", r.Rank)}),
		meta("process_sort_index", 0, map[string]int64{"sort_index": r.Rank}),
	}
	for thread, name := range threads {
		list = append(list, meta("thread_name", thread, map[string]string{"name": name}),
			meta("thread_sort_index", thread, map[string]int{"sort_index": thread}))
	}
	return list
}

func complete(r Rank, s Span, first int64) event {
	start, length := microseconds(r.Start+s.Start-first), microseconds(s.End-s.Start)
	thread := computeThread
	if s.Kind == Collective {
		thread = communicationThread
	}
	name, kernel := s.Name, ""
	if s.Kind == Kernel {
		kernel = s.Name
		if operations, _, _ := strings.Cut(s.Label, " at "); operations != "" { // the place in the model is in the label
			name = operations
		}
	}
	return event{Name: name, Category: string(s.Kind), Phase: "X", Process: r.Rank, Thread: thread, Time: &start, Duration: &length,
		Arguments: arguments{Step: s.Step, Kernel: kernel, Label: s.Label, Bytes: s.Bytes, Axes: strings.Join(s.Axes, ","), FLOPs: s.FLOPs, Async: s.Beside}}
}
