package devicetest

import (
	"fmt"
	"time"

	"weft/runtime"
)

// Marks makes a runtime.Marker of a device that captures and has no clock. Its time counts the marks that were
// reached, a microsecond each. In a capture a mark is work on its stream, so that a device that checks what
// joins a capture checks the marks too.
type Marks struct {
	device  runtime.Device
	scratch runtime.Pointer
	last    runtime.Mark
	reached map[runtime.Mark]time.Duration // of the marks that were, when they last were
	now     time.Duration
	capture []runtime.Mark // recorded by the capture that goes on
	inside  bool
	Live    map[runtime.Mark]bool // given out and not given up
}

// NewMarks is for a device that has one byte of memory for it.
func NewMarks(d runtime.Device) (*Marks, error) {
	at, err := d.Alloc(1)
	return &Marks{device: d, scratch: at, reached: map[runtime.Mark]time.Duration{}, Live: map[runtime.Mark]bool{}}, err
}

// Mark implements runtime.Marker.
func (m *Marks) Mark(s runtime.Stream) (runtime.Mark, error) {
	m.last++
	m.Live[m.last] = true
	if !m.inside {
		m.reach(m.last)
		return m.last, nil
	}
	m.capture = append(m.capture, m.last)
	return m.last, m.device.Fill(s, m.scratch, []byte{0}, 1)
}

func (m *Marks) reach(mark runtime.Mark) {
	m.now += time.Microsecond
	m.reached[mark] = m.now
}

// Between implements runtime.Marker.
func (m *Marks) Between(from, to runtime.Mark) (time.Duration, error) {
	for _, mark := range []runtime.Mark{from, to} {
		if _, ok := m.reached[mark]; !ok || !m.Live[mark] {
			return 0, fmt.Errorf("mark %d was not reached, or given up", mark)
		}
	}
	return m.reached[to] - m.reached[from], nil
}

// Unmark implements runtime.Marker.
func (m *Marks) Unmark(marks ...runtime.Mark) {
	for _, mark := range marks {
		if !m.Live[mark] {
			panic(fmt.Sprintf("mark %d was given up twice", mark))
		}
		delete(m.Live, mark)
	}
}

// BeginCapture implements runtime.Capturer.
func (m *Marks) BeginCapture(s runtime.Stream) error {
	m.inside, m.capture = true, nil
	return m.device.(runtime.Capturer).BeginCapture(s)
}

// EndCapture implements runtime.Capturer.
func (m *Marks) EndCapture(s runtime.Stream) (runtime.Graph, error) {
	m.inside = false
	g, err := m.device.(runtime.Capturer).EndCapture(s)
	return markedGraph{g, m, m.capture}, err
}

// markedGraph reaches its marks at every replay.
type markedGraph struct {
	runtime.Graph
	of    *Marks
	marks []runtime.Mark
}

func (g markedGraph) Replay(s runtime.Stream) error {
	for _, mark := range g.marks {
		g.of.reach(mark)
	}
	return g.Graph.Replay(s)
}

// testMarks takes times in a stream, and in a graph of two streams whose replays take them anew.
func testMarks(b *bench) {
	m, ok := b.device.(runtime.Marker)
	if !ok {
		b.Skip("this device takes no times")
	}
	mark := func(s runtime.Stream) runtime.Mark {
		b.Helper()
		mark, err := m.Mark(s)
		b.check("Mark", err)
		return mark
	}
	between := func(from, to runtime.Mark) time.Duration {
		b.Helper()
		took, err := m.Between(from, to)
		b.check("Between", err)
		return took
	}
	other := b.stream()
	x := b.put(make([]byte, 4))
	base := mark(0)
	b.step(0, x, 1, 1)
	end := mark(0)
	b.check("Synchronize", b.device.Synchronize())
	if took := between(base, end); took <= 0 {
		b.Errorf("a launch took %v", took)
	}
	c := b.capturer()
	b.check("BeginCapture", c.BeginCapture(0))
	inside := []runtime.Mark{mark(0)}
	b.step(0, x, 1, 1)
	inside = append(inside, mark(0))
	b.handOver(0, other)
	inside = append(inside, mark(other))
	b.step(other, x, 3, 0)
	inside = append(inside, mark(other))
	b.handOver(other, 0)
	inside = append(inside, mark(0))
	g, err := c.EndCapture(0)
	b.check("EndCapture", err)
	last := time.Duration(0)
	for range 3 {
		b.check("Replay", g.Replay(0))
		b.check("Synchronize", b.device.Synchronize())
		for i, mark := range inside {
			at := between(base, mark)
			if at < last || at == last && i%2 == 1 {
				b.Errorf("mark %d was reached %v after the start, the one before after %v", i, at, last)
			}
			last = at
		}
	}
	b.check("Close", g.Close())
	m.Unmark(append(inside, base, end)...)
	b.check("Mark", func() error { _, err := m.Mark(other); return err }())
}
