package runtime

import (
	"bytes"
	"context"
	"errors"
	"maps"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
	"weft/runtime/artifact"
)

// Member is a rank that a process drives.
type Member struct {
	Rank         int64
	Device       Device
	Communicator Communicator
	Recorder     *Recorder // nil makes one
}

// Ranks is an artifact on the ranks of a mesh that one process drives: all of them, or those of
// its host. It is used like a Session, with global inputs, outputs and states. Its methods may
// be called from any goroutine. When a rank has failed in a run, no other run is possible.
type Ranks struct {
	members  []Member
	sessions []*Session
	all      bool // the members are all ranks of the mesh

	mu      sync.Mutex // the members do one thing at a time, all the same
	workers []chan func()
	grace   time.Duration
	lost    bool
}

// OpenRanks opens a session for each member. Rank, Communicator and Recorder of the options are
// theirs. The members' devices and communicators stay open when it is closed.
func OpenRanks(a *artifact.Artifact, members []Member, o Options) (*Ranks, error) {
	m := a.Manifest.Mesh.Program()
	if err := checkMembers(m, members); err != nil {
		return nil, err
	}
	r := &Ranks{members: members, sessions: make([]*Session, len(members)), all: int64(len(members)) == m.Size(), grace: grace}
	for _, member := range members {
		work := make(chan func())
		_, host := member.Device.(HostMemory)
		go worker(work, !host)
		r.workers = append(r.workers, work)
	}
	err := r.each(func(i int) (err error) {
		options := o
		options.Rank, options.Communicator, options.Recorder = members[i].Rank, members[i].Communicator, members[i].Recorder
		r.sessions[i], err = Open(a, members[i].Device, options)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// worker runs what a rank has to do; a GPU's stays on one thread.
func worker(work <-chan func(), lock bool) {
	if lock {
		goruntime.LockOSThread()
	}
	for f := range work {
		f()
	}
}

// checkMembers checks that members are ranks of the mesh, each once.
func checkMembers(m ir.Mesh, members []Member) error {
	seen := map[int64]bool{}
	for _, member := range members {
		if member.Rank < 0 || member.Rank >= m.Size() || seen[member.Rank] {
			return diag.Errorf(diag.WrongRanks, "", "rank %d is not in a mesh of %d ranks (%s), or is there twice", member.Rank, m.Size(), meshText(m))
		}
		seen[member.Rank] = true
	}
	if len(members) == 0 {
		return diag.Errorf(diag.WrongRanks, "", "no rank of %d runs (%s)", m.Size(), meshText(m))
	}
	return nil
}

// each runs f for every member, each on its own goroutine, and gives the error that was first:
// what other ranks say of it is left out.
func (r *Ranks) each(f func(i int) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.workers == nil {
		return errClosed
	}
	type end struct {
		member int
		err    error
	}
	done := make(chan end, len(r.members))
	for i, work := range r.workers {
		work <- func() { done <- end{i, f(i)} }
	}
	errs := make([]error, len(r.members))
	var late <-chan time.Time
	for range r.members {
		select {
		case e := <-done:
			if errs[e.member] = e.err; e.err != nil && late == nil {
				late = time.After(r.grace)
			}
		case <-late:
			r.lost = true
			r.stop()
			return r.cause(errs)
		}
	}
	return r.cause(errs)
}

// grace is how long the others may take when a rank has failed: those that wait for it end at once.
const grace = 10 * time.Second

// Lost tells whether a member did not come back after another had failed, from a kernel that does not end. Then
// nothing can be run any more, and what the member uses is not closed.
func (r *Ranks) Lost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// stop ends the workers when they have done what they do.
func (r *Ranks) stop() {
	for _, work := range r.workers {
		close(work)
	}
	r.workers = nil
}

// cause picks the error that the others follow from.
func (r *Ranks) cause(errs []error) error {
	var first, follows error
	for i, err := range errs {
		var d *diag.Diagnostic
		switch {
		case err == nil:
		case errors.As(err, &d) && d.Code == diag.RankFailed && d.Unwrap() != nil:
			if follows == nil {
				follows = err
			}
		case first == nil:
			if first = err; d != nil && d.Code == diag.RunDevice {
				d.Note("on rank %d", r.members[i].Rank)
			}
		}
	}
	if first == nil {
		return follows
	}
	return first
}

// Mesh is that of the ranks that the artifact is for.
func (r *Ranks) Mesh() ir.Mesh { return r.sessions[0].mesh }

// Members lists the ranks that the process drives.
func (r *Ranks) Members() []Member { return r.members }

// Target names the kernels in use.
func (r *Ranks) Target() string { return r.sessions[0].Target() }

// Entries lists the names of the entries that can be run.
func (r *Ranks) Entries() []string { return r.sessions[0].Entries() }

// Entry describes an entry; types are those of global tensors.
func (r *Ranks) Entry(name string) (Entry, error) { return r.sessions[0].Entry(name) }

// Progress tells what each member does, also while they run.
func (r *Ranks) Progress() []Progress {
	list := make([]Progress, len(r.sessions))
	for i, s := range r.sessions {
		list[i] = s.Progress()
	}
	return list
}

// Global is a tensor of all ranks.
type Global struct {
	// Whole is the global tensor; nil where the members do not have all of it, or ranks that should
	// have the same differ.
	Whole *ir.Tensor
	Parts []*ir.Tensor // by member, or of all ranks where rank 0 has gathered them; where Whole is nil
}

// RanksResult is what a run of several ranks gives.
type RanksResult struct {
	Outputs []Global
	Dims    map[string]int64 // the sizes of the symbolic dims
}

// RunContext runs an entry once on all members with the same global inputs. See Session.RunContext.
func (r *Ranks) RunContext(ctx context.Context, entry string, inputs []*ir.Tensor) (*RanksResult, error) {
	return r.RunEach(ctx, entry, func(int64) []*ir.Tensor { return inputs })
}

// RunEach is RunContext with inputs by rank. They may differ where nothing divides them.
func (r *Ranks) RunEach(ctx context.Context, entry string, inputs func(rank int64) []*ir.Tensor) (*RanksResult, error) {
	b, err := r.Bind(entry, inputs)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := b.ReplayContext(ctx); err != nil {
		return nil, err
	}
	return b.Download()
}

// RanksBinding is an entry with sizes for its dims on all members; see Binding.
type RanksBinding struct {
	ranks    *Ranks
	bindings []*Binding
}

// Bind prepares an entry on all members and uploads their parts of the inputs.
func (r *Ranks) Bind(entry string, inputs func(rank int64) []*ir.Tensor) (*RanksBinding, error) {
	b := &RanksBinding{r, make([]*Binding, len(r.sessions))}
	err := r.each(func(i int) (err error) {
		b.bindings[i], err = r.sessions[i].Bind(entry, inputs(r.members[i].Rank))
		if err != nil && !r.all {
			r.sessions[i].abort(err) // other processes wait
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// ReplayContext runs the entry on all members, until what each has to do is enqueued.
func (b *RanksBinding) ReplayContext(ctx context.Context) error {
	return b.ranks.each(func(i int) error { return b.bindings[i].ReplayContext(ctx) })
}

// Synchronize waits for all that was enqueued.
func (b *RanksBinding) Synchronize() error {
	return b.ranks.each(func(i int) error { return b.bindings[i].Synchronize() })
}

// Each runs f for all members at once, each with its own binding, until all have returned: what
// a rank does by itself, as often as the others.
func (b *RanksBinding) Each(f func(m Member, own *Binding) error) error {
	return b.ranks.each(func(i int) error { return f(b.ranks.members[i], b.bindings[i]) })
}

// Bindings are those of the members.
func (b *RanksBinding) Bindings() []*Binding { return b.bindings }

// Download waits for the last run and joins the outputs.
func (b *RanksBinding) Download() (*RanksResult, error) {
	parts := make([][]*ir.Tensor, len(b.bindings))
	err := b.ranks.each(func(i int) (err error) {
		parts[i], err = b.bindings[i].Download()
		return err
	})
	if err != nil {
		return nil, err
	}
	e, dims := b.bindings[0].entry, b.bindings[0].bound.Dims
	result := &RanksResult{Dims: maps.Clone(dims)}
	maps.DeleteFunc(result.Dims, func(name string, _ int64) bool { _, is := b.ranks.sessions[0].coordinates[name]; return is })
	for k, i := range e.outputs {
		of := make([]*ir.Tensor, len(parts))
		for member := range parts {
			of[member] = parts[member][k]
		}
		g, err := b.ranks.join(e.plan.Outputs[i].Sharding(), of, dims)
		if err != nil {
			return nil, err
		}
		result.Outputs = append(result.Outputs, g)
	}
	return result, nil
}

// Close lets go of the bindings.
func (b *RanksBinding) Close() error {
	if b.ranks.Lost() {
		return nil // a member still runs one
	}
	var errs []error
	for _, one := range b.bindings {
		if one != nil {
			errs = append(errs, one.Close())
		}
	}
	return errors.Join(errs...)
}

// join puts the parts of the members together: with those of other processes where rank 0 can have them.
func (r *Ranks) join(shard ir.Sharding, parts []*ir.Tensor, dims map[string]int64) (Global, error) {
	ranks := make([]int64, len(r.members))
	for i, member := range r.members {
		ranks[i] = member.Rank
	}
	if g, ok := r.members[0].Communicator.(Gatherer); ok && !r.all && len(parts) == 1 {
		all, err := g.Gather(context.Background(), parts[0].Data)
		if err != nil || all == nil {
			return Global{Parts: parts}, err
		}
		ranks, parts = ranks[:0], slices.Repeat(parts, len(all))
		for rank, data := range all {
			ranks = append(ranks, int64(rank))
			parts[rank] = &ir.Tensor{DType: parts[rank].DType, Shape: parts[rank].Shape, Data: data}
		}
	}
	return joinParts(r.Mesh(), ranks, shard, parts, dims)
}

// joinParts puts parts of some ranks together.
func joinParts(m ir.Mesh, ranks []int64, shard ir.Sharding, parts []*ir.Tensor, dims map[string]int64) (Global, error) {
	var whole *ir.Tensor
	placed := map[int64]bool{}
	if shard == nil {
		shard = ir.Replicated(ir.Consts(parts[0].Shape...))
	}
	axes := shard.Axes()
	for i, part := range parts {
		l, err := mesh.Bind(shard, m, ranks[i], dims)
		if err != nil {
			return Global{}, diag.Errorf(diag.RunSize, "", "a dim of an output: %v", err)
		}
		if whole == nil {
			whole = ir.NewTensor(part.DType, l.Global...)
		}
		at := m.Position(ranks[i], axes)
		switch {
		case !placed[at]:
			place(l, whole, part)
			placed[at] = true
		case !holds(l, whole, part):
			return Global{Parts: parts}, nil
		}
	}
	if int64(len(placed)) < m.Extent(axes) {
		return Global{Parts: parts}, nil
	}
	return Global{Whole: whole}, nil
}

// place copies a part into the whole. What is not divided may have elements smaller than a byte.
func place(l mesh.Layout, whole, part *ir.Tensor) {
	if whole.DType.Size() == 0 {
		copy(whole.Data, part.Data)
		return
	}
	l.Place(whole, part)
}

// holds tells whether a part is the same bits as its place in the whole, but for padding.
func holds(l mesh.Layout, whole, part *ir.Tensor) bool {
	size := int64(whole.DType.Size())
	if size == 0 {
		return bytes.Equal(whole.Data, part.Data)
	}
	same := true
	l.Runs(func(global, local, count int64) {
		same = same && bytes.Equal(whole.Data[global*size:(global+count)*size], part.Data[local*size:(local+count)*size])
	})
	return same
}

// State joins the present value of a state.
func (r *Ranks) State(name string) (Global, error) {
	parts := make([]*ir.Tensor, len(r.sessions))
	err := r.each(func(i int) (err error) {
		parts[i], err = r.sessions[i].State(name)
		return err
	})
	if err != nil {
		return Global{}, err
	}
	return r.join(r.sharding(name), parts, nil)
}

func (r *Ranks) sharding(state string) ir.Sharding {
	list := r.sessions[0].States()
	return list[slices.IndexFunc(list, func(v Value) bool { return v.Name == state })].Shard
}

// States describes the states that are kept; types are those of global tensors.
func (r *Ranks) States() []Value { return r.sessions[0].States() }

// SetState gives each member its part of a new value of a state.
func (r *Ranks) SetState(name string, value *ir.Tensor) error {
	return r.each(func(i int) error {
		s := r.sessions[i]
		list := s.States()
		at := slices.IndexFunc(list, func(v Value) bool { return v.Name == name })
		if at < 0 || list[at].Shard == nil {
			return s.SetState(name, value)
		}
		if value == nil || value.Check() != nil || !value.Type().Equal(list[at].Type) {
			return diag.Errorf(diag.RunInputType, "state "+name, "the value is not %s", list[at].Type)
		}
		l, err := s.layout(list[at].Shard, value.Shape, nil)
		if err != nil {
			return err
		}
		return s.SetState(name, l.Slice(value))
	})
}

// Close closes the sessions. Closing twice does nothing.
func (r *Ranks) Close() error {
	r.mu.Lock()
	closed := r.workers == nil
	r.mu.Unlock()
	if closed {
		return nil
	}
	err := r.each(func(i int) error {
		if r.sessions[i] == nil {
			return nil
		}
		return r.sessions[i].Close()
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop()
	return err
}
