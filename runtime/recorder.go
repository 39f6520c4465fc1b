package runtime

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Recorder is a rank's flight recorder: what it did last, for the report of a run that got
// stuck. It is written by the rank and may be read at any time.
type Recorder struct {
	rank int64
	step atomic.Int64

	mu       sync.Mutex
	entry    string
	finished *Collective
	pending  []Collective // issued and not finished, in order
}

// NewRecorder is the recorder of a rank that has done nothing.
func NewRecorder(rank int64) *Recorder { return &Recorder{rank: rank} }

// Progress is what a rank does at a moment.
type Progress struct {
	Rank     int64
	Entry    string      // that runs, or ran last; empty before the first
	Step     int         // that was issued last
	Finished *Collective // last; nil for none
	Pending  *Collective // the first that was issued and has not finished; nil for none
}

// begin notes that an entry runs.
func (r *Recorder) begin(entry string) {
	r.mu.Lock()
	r.entry = entry
	r.mu.Unlock()
	r.issue(0)
}

// issue notes a step.
func (r *Recorder) issue(step int) { r.step.Store(int64(step)) }

// start notes a collective that is issued.
func (r *Recorder) start(c Collective) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending = append(r.pending, c)
}

// Finish notes that collectives up to a number have finished.
func (r *Recorder) Finish(sequence int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	done := 0
	for done < len(r.pending) && r.pending[done].Sequence <= sequence {
		done++
	}
	if done > 0 {
		last := r.pending[done-1]
		r.finished = &last
		r.pending = append(r.pending[:0], r.pending[done:]...)
	}
}

// FinishEach asks of each pending collective, in order, whether it has finished. Those beside
// computation may finish before others that were issued earlier.
func (r *Recorder) FinishEach(finished func(Collective) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.pending[:0]
	for _, c := range r.pending {
		if !finished(c) {
			kept = append(kept, c)
			continue
		}
		last := c
		r.finished = &last
	}
	r.pending = kept
}

// Progress tells what the rank does.
func (r *Recorder) Progress() Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := Progress{Rank: r.rank, Entry: r.entry, Step: int(r.step.Load()), Finished: r.finished}
	if len(r.pending) > 0 {
		first := r.pending[0]
		p.Pending = &first
	}
	return p
}

// String is a line of a report.
func (p Progress) String() string {
	text := fmt.Sprintf("rank %d: ", p.Rank)
	if p.Entry == "" {
		return text + "has run nothing"
	}
	text += fmt.Sprintf("entry %s, step %d; ", p.Entry, p.Step)
	if p.Finished == nil {
		text += "finished no collective"
	} else {
		text += "last finished " + p.Finished.String()
	}
	if p.Pending != nil {
		text += ", pending " + p.Pending.String()
	}
	return text
}

// String names the collective: kind, axes, the rank's number for it, step and origin.
func (c Collective) String() string {
	text := fmt.Sprintf("%s over %s (number %d, step %d of %s", c.Kind, strings.Join(c.Axes, ","), c.Sequence, c.Step, c.Entry)
	if c.Label != "" {
		text += ", " + c.Label
	}
	return text + ")"
}
