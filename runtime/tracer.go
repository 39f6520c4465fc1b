package runtime

import (
	"errors"
	"slices"
	"time"

	"weft/ir/plan"
	"weft/runtime/trace"
)

// tracer notes when the steps of a session's runs begin and end, by marks on the streams that execute
// them. Where steps are captured the marks are part of the graph, and each replay takes their times anew. A
// nil tracer notes nothing.
type tracer struct {
	marker Marker
	host   bool     // the marker is the host's clock
	run    *Binding // of the last run; nil for none
	start  time.Time
	base   Mark // at start
	spans  []trace.Span

	queue  []timing          // ran, or was enqueued, after what spans has
	queued map[*stretch]bool // whose timings are in the queue

	loose   []Mark   // of this run alone
	into    *stretch // that is captured; nil outside of captures
	between Mark     // after the last step of stream 0 in the capture; 0 before the first
}

// timing is a step between two marks.
type timing struct {
	step     int
	beside   bool // not on stream 0
	from, to Mark
}

func newTracer(d Device) *tracer {
	if m, ok := d.(Marker); ok {
		return &tracer{marker: m}
	}
	return &tracer{marker: hostClock{time.Now()}, host: true}
}

// hostClock marks with the host's clock what devices without one run step by step. A mark is the
// nanoseconds since origin.
type hostClock struct{ origin time.Time }

func (c hostClock) Mark(Stream) (Mark, error) { return Mark(time.Since(c.origin)), nil }

func (c hostClock) Between(from, to Mark) (time.Duration, error) {
	return time.Duration(to - from), nil
}

func (c hostClock) Unmark(...Mark) {}

// stepByStep tells whether work must not be captured, because the host takes the times.
func (t *tracer) stepByStep() bool { return t != nil && t.host }

// begin begins a run. It waits for the device, so that the host knows when the run begins.
func (t *tracer) begin(b *Binding) error {
	if t == nil {
		return nil
	}
	device := b.session.device
	if err := device.Synchronize(); err != nil {
		return err
	}
	t.marker.Unmark(t.loose...)
	*t = tracer{marker: t.marker, host: t.host, run: b, queued: map[*stretch]bool{}}
	before := time.Now()
	var err error
	if t.base, err = t.mark(0); err != nil {
		return err
	}
	if err := device.Synchronize(); err != nil {
		return err
	}
	t.start = before.Add(time.Since(before) / 2)
	return nil
}

// record says which stretch is being captured; nil for none.
func (t *tracer) record(s *stretch) {
	if t == nil {
		return
	}
	t.into, t.between = s, 0
	if s != nil {
		s.timings = nil
	}
}

func (t *tracer) mark(s Stream) (Mark, error) {
	m, err := t.marker.Mark(s)
	switch {
	case err != nil:
	case t.into != nil:
		t.into.marks = append(t.into.marks, m)
	default:
		t.loose = append(t.loose, m)
	}
	return m, err
}

// before marks the beginning of a step. In a graph that is the end of the one before it: the stream does
// nothing between.
func (t *tracer) before(s Stream) (Mark, error) {
	if s == 0 && t.between != 0 {
		return t.between, nil
	}
	return t.mark(s)
}

// after marks the end of a step.
func (t *tracer) after(s Stream) (Mark, error) {
	m, err := t.mark(s)
	if s == 0 && t.into != nil {
		t.between = m
	}
	return m, err
}

// timed enqueues a step on a stream by f, between marks where the run is traced.
func (b *Binding) timed(s Stream, step int, f func() error) error {
	t := b.session.tracer
	if t == nil || t.run != b {
		return f()
	}
	from, err := t.before(s)
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	to, err := t.after(s)
	if err != nil {
		return err
	}
	list := &t.queue
	if t.into != nil {
		list = &t.into.timings
	}
	*list = append(*list, timing{step, s != 0, from, to})
	return nil
}

// replay notes that the graph of a stretch runs next. Its times are read before it takes others.
func (t *tracer) replay(s *stretch) error {
	if t == nil {
		return nil
	}
	if t.queued[s] {
		if err := t.read(); err != nil {
			return err
		}
	}
	t.queue, t.queued[s] = append(t.queue, s.timings...), true
	return nil
}

// read waits for what was enqueued and makes spans of it.
func (t *tracer) read() error {
	if err := t.run.session.device.Synchronize(); err != nil {
		return err
	}
	steps := t.run.entry.plan.Flat()
	for _, timing := range t.queue {
		span := t.run.span(steps, timing.step)
		span.Beside = timing.beside
		for _, end := range []struct {
			at *int64
			of Mark
		}{{&span.Start, timing.from}, {&span.End, timing.to}} {
			after, err := t.marker.Between(t.base, end.of)
			if err != nil {
				return err
			}
			*end.at = after.Nanoseconds()
		}
		t.spans = append(t.spans, span)
	}
	t.queue = t.queue[:0]
	clear(t.queued)
	return nil
}

// span describes a step.
func (b *Binding) span(steps []plan.Step, number int) trace.Span {
	p, sizes := b.entry.plan, b.bound.Sizes
	s := trace.Span{Step: number}
	switch step := steps[number]; {
	case step.Launch != nil:
		s.Kind, s.Name, s.Label = trace.Kernel, step.Launch.Kernel, step.Launch.Label
		s.FLOPs, _ = step.Launch.FLOPs.Eval(b.bound.Dims) // for people: 0 where it cannot be told
		for k, a := range step.Launch.Args {
			same := func(other plan.Arg) bool { return other.Buffer == a.Buffer }
			switch {
			case a.Buffer < 0 || a.Map != nil && slices.ContainsFunc(step.Launch.Args[:k], same):
			case a.Access == plan.ReadWrite:
				s.Bytes += 2 * sizes[a.Buffer]
			default:
				s.Bytes += sizes[a.Buffer]
			}
		}
	case step.Copy != nil:
		s.Kind, s.Name, s.Label, s.Bytes = trace.Copy, "copy", p.Buffers[step.Copy.To].Name, 2*sizes[step.Copy.To]
	case step.Fill != nil:
		s.Kind, s.Name, s.Label, s.Bytes = trace.Fill, "fill", p.Buffers[step.Fill.Buffer].Name, sizes[step.Fill.Buffer]
	case step.Collective != nil:
		c := step.Collective
		s.Kind, s.Name, s.Label, s.Axes, s.Bytes = trace.Collective, c.Kind, c.Label, c.Axes, sizes[c.From]
		if c.Ranks == 1 {
			s.Kind = trace.Copy
		}
	case step.Wait != nil:
		s.Kind, s.Name, s.Label = trace.Wait, "wait", p.Buffers[step.Wait.To].Name
	}
	return s
}

// unmark gives up the marks of a graph that is closed.
func (t *tracer) unmark(marks []Mark) {
	if t != nil {
		t.marker.Unmark(marks...)
	}
}

// forget drops what is known of a binding that is given up.
func (t *tracer) forget(b *Binding) {
	if t != nil && t.run == b {
		t.marker.Unmark(t.loose...)
		t.loose = nil
		t.run, t.queue, t.spans = nil, nil, nil
	}
}

var errNotTraced = errors.New("weft: no run was traced")

// Trace waits for the last run and tells what the rank did in it and when. The session was opened with
// Options.Trace, and no run has been prepared since.
func (s *Session) Trace() (trace.Rank, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tracer
	if s.closed || t == nil || t.run == nil {
		return trace.Rank{}, errNotTraced
	}
	if err := t.read(); err != nil {
		return trace.Rank{}, t.run.failed(err)
	}
	r := trace.Rank{Rank: s.options.Rank, Entry: t.run.entry.plan.Entry, Clock: trace.ClockEvents, Start: t.start.UnixNano(), Spans: t.spans}
	if t.host {
		r.Clock = trace.ClockHost
	}
	return r, nil
}

// Traces is Session.Trace of all members.
func (r *Ranks) Traces() ([]trace.Rank, error) {
	list := make([]trace.Rank, len(r.sessions))
	err := r.each(func(i int) (err error) {
		list[i], err = r.sessions[i].Trace()
		return err
	})
	return list, err
}
