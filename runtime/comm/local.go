// Package comm has the communicators that carry the collectives of ranks.
//
// Local connects the ranks of one process: emulated ones, whose memory the host reads and
// writes in place, and virtual ones that share a GPU, whose bytes pass through the host. What it
// computes is what ir/eval defines, in the order of the ranks, the same bits on each.
package comm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"weft/ir/diag"
	"weft/runtime"
)

// DefaultTimeout is how long ranks wait for each other where nothing says otherwise.
const DefaultTimeout = 10 * time.Minute

// Local is where the ranks of one process meet for their collectives.
type Local struct {
	timeout time.Duration

	mu       sync.Mutex
	meetings map[string]*meeting // that wait for ranks, by group
	ranks    []*localRank        // that have a recorder
	cause    error               // of the abort; nil before
	aborted  chan struct{}       // closed by the abort
}

// NewLocal makes a place to meet. A collective that waits longer than the timeout for other ranks
// ends the run of all; 0 is DefaultTimeout.
func NewLocal(timeout time.Duration) *Local {
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return &Local{timeout: timeout, meetings: map[string]*meeting{}, aborted: make(chan struct{})}
}

// Rank is the communicator of a rank whose memory is on a device. The recorder, which may be nil,
// is that of the rank's session: what it has is part of the report when ranks do not come.
func (l *Local) Rank(rank int64, device runtime.Device, recorder *runtime.Recorder) runtime.Communicator {
	r := &localRank{Local: l, rank: rank, device: device, recorder: recorder}
	l.mu.Lock()
	defer l.mu.Unlock()
	if recorder != nil {
		l.ranks = append(l.ranks, r)
	}
	return r
}

// meeting is one collective of one group.
type meeting struct {
	first    runtime.Collective // of the rank that came first
	rank     int64              // that came first
	given    []*share           // by position in the group; nil for those that have not come
	arrived  int
	left     int           // ranks that have not done their part
	all      chan struct{} // closed when all have come
	finished chan struct{} // closed when all have done their part
}

// share is the memory that a rank brings.
type share struct{ from, to []byte }

// localRank is the end of one rank.
type localRank struct {
	*Local
	rank     int64
	device   runtime.Device
	recorder *runtime.Recorder
	staging  [2][]byte // where the device's memory is not the host's
}

// Abort implements runtime.Communicator. The first cause counts.
func (l *Local) Abort(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.abort(cause)
}

func (l *Local) abort(cause error) {
	if l.cause == nil {
		l.cause = cause
		close(l.aborted)
	}
}

// Close implements runtime.Communicator.
func (r *localRank) Close() error { return nil }

// Collective implements runtime.Communicator. It returns when the result is there.
func (r *localRank) Collective(ctx context.Context, _ runtime.Stream, c runtime.Collective) error {
	s, err := r.take(c)
	if err != nil {
		return err
	}
	m, err := r.meet(ctx, c, s)
	if err != nil {
		return err
	}
	move(c, m.given)
	r.leave(m)
	return r.give(c, s)
}

// take is the memory of a collective as the host sees it, when the work before it has run.
func (r *localRank) take(c runtime.Collective) (*share, error) {
	if err := r.device.Synchronize(); err != nil {
		return nil, err
	}
	host, ok := r.device.(runtime.HostMemory)
	if !ok {
		s := &share{r.stage(0, c.FromSize), r.stage(1, c.ToSize)}
		return s, r.device.Download(s.from, c.From)
	}
	from, err := host.Host(c.From, c.FromSize, runtime.Read)
	if err != nil {
		return nil, err
	}
	to, err := host.Host(c.To, c.ToSize, runtime.Write)
	return &share{from, to}, err
}

// stage is host memory of a size, kept for the next collective.
func (r *localRank) stage(i int, size int64) []byte {
	if int64(cap(r.staging[i])) < size {
		r.staging[i] = make([]byte, size)
	}
	return r.staging[i][:size]
}

// give uploads the result where the device's memory is not the host's.
func (r *localRank) give(c runtime.Collective, s *share) error {
	if _, ok := r.device.(runtime.HostMemory); ok {
		return nil
	}
	return r.device.Upload(c.To, s.to)
}

// meet waits until all ranks of the group have come.
func (r *localRank) meet(ctx context.Context, c runtime.Collective, s *share) (*meeting, error) {
	m, err := r.arrive(c, s)
	if err != nil {
		return nil, err
	}
	select { // the last to come does not wait
	case <-m.all:
		return m, nil
	default:
	}
	timer := time.NewTimer(r.timeout)
	defer timer.Stop()
	select {
	case <-m.all:
		return m, nil
	case <-r.aborted:
	case <-ctx.Done():
	case <-timer.C:
	}
	return r.withdraw(ctx, c, m)
}

// arrive enters a rank's memory into the meeting of its group.
func (r *localRank) arrive(c runtime.Collective, s *share) (*meeting, error) {
	key := fmt.Sprint(c.Group[0], c.Axes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cause != nil {
		return nil, r.failed(c)
	}
	m := r.meetings[key]
	if m == nil {
		m = &meeting{first: c, rank: r.rank, given: make([]*share, len(c.Group)), left: len(c.Group), all: make(chan struct{}), finished: make(chan struct{})}
		r.meetings[key] = m
	}
	if err := r.agrees(c, m); err != nil {
		r.abort(err)
		return nil, err
	}
	m.given[c.Position] = s
	if m.arrived++; m.arrived == len(c.Group) {
		delete(r.meetings, key)
		close(m.all)
	}
	return m, nil
}

// agrees checks that a rank issues the collective that the others of its group do.
func (r *localRank) agrees(c runtime.Collective, m *meeting) error {
	f := m.first
	if f.Kind == c.Kind && f.DType == c.DType && f.Combine == c.Combine && f.FromSize == c.FromSize && f.ToSize == c.ToSize &&
		f.Entry == c.Entry && f.Step == c.Step && m.given[c.Position] == nil {
		return nil
	}
	low, high := m.rank, r.rank
	if low > high {
		low, high, f, c = high, low, c, f
	}
	return diag.Errorf(diag.RankFailed, place(f), "ranks issue different collectives").
		Note("rank %d: %s", low, describe(f)).Note("rank %d: %s", high, describe(c))
}

// withdraw gives a meeting up, unless all have come in the meantime.
func (r *localRank) withdraw(ctx context.Context, c runtime.Collective, m *meeting) (*meeting, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.arrived == len(c.Group) {
		return m, nil
	}
	switch {
	case r.cause != nil:
		return nil, r.failed(c)
	case ctx.Err() != nil:
		r.abort(ctx.Err())
		return nil, ctx.Err()
	}
	err := Stuck(c, r.timeout, m.missing(c.Group))
	for _, of := range r.ranks[:min(len(r.ranks), shownRanks)] {
		err.Note("%s", of.recorder.Progress())
	}
	r.abort(err)
	return nil, err
}

func (m *meeting) missing(group []int64) []int64 {
	var ranks []int64
	for i, rank := range group {
		if m.given[i] == nil {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// failed is the error of a collective after an abort.
func (l *Local) failed(c runtime.Collective) error { return Failed(c, l.cause) }

// leave waits until no rank of the group touches another's memory any more. That is soon: all
// have come.
func (r *localRank) leave(m *meeting) {
	r.mu.Lock()
	if m.left--; m.left == 0 {
		close(m.finished)
	}
	r.mu.Unlock()
	<-m.finished
}

// Stuck is the error of a collective that ranks did not come to in time.
func Stuck(c runtime.Collective, timeout time.Duration, missing []int64) *diag.Diagnostic {
	return diag.Errorf(diag.CollectiveStuck, place(c), "%s waited %v for %s", describe(c), timeout, rankList(missing))
}

// Failed is the error of a collective that was given up for what happened elsewhere.
func Failed(c runtime.Collective, cause error) error {
	if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return diag.Errorf(diag.RankFailed, place(c), "%s was given up: %s", describe(c), firstLine(cause)).Because(cause)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func place(c runtime.Collective) string { return fmt.Sprintf("entry %q, step %d", c.Entry, c.Step) }

// describe names a collective for people.
func describe(c runtime.Collective) string {
	text := fmt.Sprintf("%s of %d bytes over %s, the rank's collective number %d, step %d of entry %s", c.Kind, c.FromSize, strings.Join(c.Axes, ","), c.Sequence, c.Step, c.Entry)
	if c.Label != "" {
		text += " (" + c.Label + ")"
	}
	return text
}

// shownRanks is how many ranks a message lists.
const shownRanks = 16

func rankList(ranks []int64) string {
	texts := make([]string, 0, shownRanks)
	for _, rank := range ranks[:min(len(ranks), shownRanks)] {
		texts = append(texts, fmt.Sprint(rank))
	}
	list := strings.Join(texts, ", ")
	if more := len(ranks) - shownRanks; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if len(ranks) == 1 {
		return "rank " + list
	}
	return "ranks " + list
}
