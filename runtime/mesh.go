package runtime

import (
	"context"
	"fmt"
	"hash/fnv"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
	"weft/ir/plan"
)

// GraphCommunicator is a Communicator whose collectives run on the device, so that a graph can
// hold them with the work around them. Its Collective returns before they have run: it tells the
// session's Recorder itself when they finish. Those of a graph are enqueued once, when it is captured, and
// run whenever it is replayed; the Recorder has the number of each run.
type GraphCommunicator interface {
	Communicator
	// Captures tells whether Collective may be called during a capture.
	Captures() bool
}

// joinMesh takes the session's place in the mesh.
func (s *Session) joinMesh(m ir.Mesh) error {
	rank, ranks := s.options.Rank, m.Size()
	if rank < 0 || rank >= ranks {
		return diag.Errorf(diag.WrongRanks, "", "rank %d of a mesh of %d ranks (%s)", rank, ranks, meshText(m))
	}
	if ranks > 1 && s.options.Communicator == nil {
		return diag.Errorf(diag.WrongRanks, "", "the artifact is for %d ranks (%s), one runs", ranks, meshText(m))
	}
	s.mesh, s.coordinates = m, mesh.Coordinates(m, rank)
	if s.recorder = s.options.Recorder; s.recorder == nil {
		s.recorder = NewRecorder(rank)
	}
	return nil
}

func meshText(m ir.Mesh) string {
	if len(m.Axes) == 0 {
		return "no mesh"
	}
	return "mesh " + m.String()
}

// Mesh is that of the ranks that the artifact is for.
func (s *Session) Mesh() ir.Mesh { return s.mesh }

// Progress tells what the rank does, also while a run holds the session.
func (s *Session) Progress() Progress { return s.recorder.Progress() }

// abort ends the waits of the other ranks for this one.
func (s *Session) abort(cause error) {
	if s.options.Communicator != nil {
		s.options.Communicator.Abort(cause)
	}
}

// captures tells whether collectives are captured with the work around them.
func (s *Session) captures() bool {
	c, ok := s.options.Communicator.(GraphCommunicator)
	return ok && c.Captures() && !s.options.NoGraph
}

// windows is the communicator where it makes windows, else nil.
func (s *Session) windows() WindowCommunicator {
	if w, ok := s.options.Communicator.(WindowCommunicator); ok && w.Windows() && !s.plain {
		return w
	}
	return nil
}

// scratch allocates the arena: as a window where collectives work in it and all ranks can. Where one of them lacks
// memory, each gives up its oldest binding: they have the same. With none left, the session makes no more windows.
func (b *Binding) scratch() (Pointer, error) {
	for w, layout := b.session.windows(), b.layout(); w != nil && layout != 0; w = b.session.windows() {
		at, err := w.Window(b.bound.Arena, layout)
		if at != 0 || err != nil {
			b.window = at
			return at, err
		}
		dropped, err := b.session.dropOldest()
		if err != nil {
			return 0, err
		}
		b.session.plain = !dropped
	}
	return b.alloc(b.bound.Arena, "scratch memory")
}

// layout sums up where in the arena collectives with other ranks work; 0 where none does, or where one that sends from rank to rank works half
// there: NCCL wants the memory of both sides registered, or of none.
func (b *Binding) layout() uint64 {
	p, sum := b.entry.plan, fnv.New64a()
	found := false
	for _, step := range p.Flat() {
		c := step.Collective
		if c == nil || c.Ranks == 1 {
			continue
		}
		from, to := p.Buffers[c.From].Kind == plan.Arena, p.Buffers[c.To].Kind == plan.Arena
		if from != to && (c.Kind == "all_to_all" || c.Kind == "collective_permute") {
			return 0
		}
		found = found || from && to
		for _, i := range []int{c.From, c.To} {
			fmt.Fprintln(sum, i, b.bound.Offsets[i], b.bound.Sizes[i])
		}
	}
	if !found {
		return 0
	}
	return max(sum.Sum64(), 1)
}

// LeaveOut names a collective of a rank by its number among those of the entry's plan, from 1.
type LeaveOut struct{ Rank, Number int64 }

// ParseLeaveOut reads RANK:NUMBER; nothing is none.
func ParseLeaveOut(text string) (l LeaveOut, err error) {
	if text == "" {
		return l, nil
	}
	if n, err := fmt.Sscanf(text, "%d:%d", &l.Rank, &l.Number); n != 2 || err != nil || l.Number < 1 {
		return LeaveOut{}, diag.Errorf(diag.WrongRanks, "WEFT_DEBUG_LEAVE_OUT", "%q is not RANK:NUMBER, a collective that a rank leaves out", text)
	}
	return l, nil
}

// collective prepares a collective. One of a single rank is a copy, in place nothing, or where nobody sends to
// it, zeros.
func (b *Binding) collective(step int, c *plan.Collective) command {
	from, to, sizes := b.pointers[c.From], b.pointers[c.To], b.bound.Sizes
	b.prepared++
	if out := b.session.options.LeaveOut; out.Number == b.prepared && out.Rank == b.session.options.Rank {
		return command{step: step, nothing: true}
	}
	if c.Ranks == 1 && c.From == c.To {
		return command{step: step, nothing: true}
	}
	if c.Ranks == 1 {
		if c.Kind == "collective_permute" && len(c.Pairs) == 0 {
			return command{step: step, dst: to, pattern: []byte{0}, count: sizes[c.To]}
		}
		return command{step: step, dst: to, src: from, size: sizes[c.To]}
	}
	s := b.session
	dtype, _ := ir.ParseDType(c.DType)
	combine, _ := plan.ParseCombine(c.Combine)
	return command{step: step, meets: &Collective{
		Kind: c.Kind, Axes: c.Axes, Group: s.mesh.Group(s.options.Rank, c.Axes), Position: s.mesh.Position(s.options.Rank, c.Axes),
		DType: dtype, Combine: combine, From: from, To: to, FromSize: sizes[c.From], ToSize: sizes[c.To], Pairs: c.Pairs,
		Step: step, Entry: b.entry.plan.Entry, Label: c.Label, Async: c.Async && s.captures(),
	}}
}

// start issues an asynchronous collective on a stream of its own, after the work that is on the session's so
// far. Work that is enqueued until finish runs beside it.
func (b *Binding) start(ctx context.Context, c *Collective, meet func(context.Context, Stream, *Collective) error) error {
	s := b.session
	if s.beside == 0 {
		stream, err := s.device.NewStream()
		if err != nil {
			return err
		}
		s.beside = stream
	}
	before, err := s.device.Record(0)
	if err == nil {
		err = s.device.Wait(s.beside, before)
	}
	if err == nil {
		err = meet(ctx, s.beside, c)
	}
	if err != nil {
		return err
	}
	if b.flights == nil {
		b.flights = map[Pointer]Event{}
	}
	b.flights[c.To], err = s.device.Record(s.beside)
	return err
}

// finish lets the session's stream wait for the asynchronous collective that writes to a buffer.
func (b *Binding) finish(to Pointer) error {
	done, ok := b.flights[to]
	if !ok {
		return nil // it had nothing to do
	}
	delete(b.flights, to)
	return b.session.device.Wait(0, done)
}

// number gives a collective that is issued its number.
func (s *Session) number(c *Collective) {
	s.sequence++
	c.Sequence = s.sequence
	s.recorder.start(*c)
}

// meet issues a collective.
func (b *Binding) meet(ctx context.Context, stream Stream, c *Collective) error {
	s := b.session
	s.recorder.issue(c.Step)
	s.number(c)
	err := s.options.Communicator.Collective(ctx, stream, *c)
	if _, later := s.options.Communicator.(GraphCommunicator); err == nil && !later {
		s.recorder.Finish(c.Sequence)
	}
	return err
}

// layout is how the rank holds a tensor. shape is the global one where nothing divides it.
func (s *Session) layout(shard ir.Sharding, shape []int64, dims map[string]int64) (mesh.Layout, error) {
	if shard == nil {
		shard = ir.Replicated(ir.Consts(shape...))
	}
	l, err := mesh.Bind(shard, s.mesh, s.options.Rank, dims)
	if err != nil {
		return l, diag.Errorf(diag.RunSize, "", "a dim of a tensor: %v", err)
	}
	return l, nil
}

// uploadInput uploads the rank's part of an input.
func (b *Binding) uploadInput(t plan.Tensor, to *memory, given *ir.Tensor) error {
	if t.Shard == nil {
		return b.session.device.Upload(to.at, given.Data)
	}
	l, err := b.session.layout(t.Sharding(), given.Shape, b.bound.Dims)
	if err != nil {
		return err
	}
	view := func(off, n int64) ([]byte, error) { return given.Data[off : off+n], nil }
	return b.session.uploadPart(to, l, given.DType, view, "upload of input "+t.Name)
}

// uploadChunk is how much of a tensor is looked at at a time, so that what is not in memory as
// it is read (other layouts, random values) takes no more.
const uploadChunk = int64(16 << 20)

// uploadPart uploads what the rank has of a tensor, of which view gives n bytes from off. It
// looks at nothing else. Padding is zero.
func (s *Session) uploadPart(to *memory, l mesh.Layout, dtype ir.DType, view func(off, n int64) ([]byte, error), what string) error {
	u := &upload{session: s, to: to, view: view}
	bits := int64(dtype.Bits())
	l.Runs(func(global, local, count int64) {
		if u.err == nil { // elements smaller than a byte are never divided
			u.err = u.run(global*bits/8, local*bits/8, (count*bits+7)/8)
		}
	})
	for u.err == nil && u.at < to.size {
		u.err = u.flush()
	}
	if u.err != nil {
		return deviceError(what, u.err)
	}
	return nil
}

// upload fills device memory from its beginning to its end, a chunk at a time.
type upload struct {
	session *Session
	to      *memory
	view    func(off, n int64) ([]byte, error)
	chunk   []byte // bytes from at, zero where nothing came; nil before the first
	at      int64
	err     error
}

func (u *upload) size() int64 { return min(uploadChunk, u.to.size-u.at) }

// run takes count bytes of the global tensor to their place on the rank.
func (u *upload) run(global, local, count int64) error {
	for count > 0 {
		for local >= u.at+u.size() {
			if err := u.flush(); err != nil {
				return err
			}
		}
		n := min(count, u.at+u.size()-local)
		bytes, err := u.view(global, n)
		switch {
		case err != nil:
			return err
		case n == u.size(): // nothing else is in the chunk
			err = u.session.device.Upload(u.to.at+Pointer(u.at), bytes)
			u.at += n
		default:
			if u.chunk == nil {
				u.chunk = make([]byte, u.size())
			}
			copy(u.chunk[local-u.at:], bytes)
		}
		if err != nil {
			return err
		}
		global, local, count = global+n, local+n, count-n
	}
	return nil
}

// flush uploads the chunk and goes on to the next.
func (u *upload) flush() error {
	n := u.size()
	if u.chunk == nil {
		u.chunk = make([]byte, n)
	}
	err := u.session.device.Upload(u.to.at+Pointer(u.at), u.chunk[:n])
	clear(u.chunk)
	u.at += n
	return err
}

// global is the type of the state's global tensor.
func (st *state) global() ir.Type {
	if st.shard == nil {
		return st.typ()
	}
	return ir.TensorOf(st.dtype, st.shard.Global()...)
}
