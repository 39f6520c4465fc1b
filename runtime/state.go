package runtime

import (
	"fmt"
	"slices"
	"strings"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/plan"
	"weft/runtime/artifact"
)

// state is a named tensor in device memory.
type state struct {
	dtype   ir.DType
	shape   []int64     // on this rank
	shard   ir.Sharding // nil where each rank has all
	memory  *memory
	kept    bool // an entry of the caller uses it
	feeds   bool // init reads it
	written bool // an entry replaces it
}

// memory is an allocation that tied states share.
type memory struct {
	at    Pointer
	size  int64
	users int
	feeds bool // init reads it
}

func (m *memory) drop(device Device) error {
	if m.users--; m.users > 0 {
		return nil
	}
	return device.Free(m.at)
}

func (st *state) typ() ir.Type { return ir.TensorOf(st.dtype, ir.Consts(st.shape...)...) }

// loadStates allocates and uploads the states that entries use. Prepared ones are described
// only; prepare allocates and computes them.
func (s *Session) loadStates(a *artifact.Artifact, entries []*entry, initial *entry) error {
	used := usage(entries, initial)
	if err := checkWeights(a, s.options.Weights); err != nil {
		return err
	}
	source, err := a.WeightsWith(s.options.Weights) // closing it would close the caller's
	if err != nil {
		return err
	}
	for _, m := range a.Manifest.State {
		st := used[m.Name]
		if st == nil {
			continue
		}
		if p := m.From.Prepared; p != nil {
			if initial == nil || p.Entry != ir.InitEntry || !replaces(initial, m.Name) {
				return diag.Errorf(diag.PlanMismatch, fmt.Sprintf("state %.100q", m.Name), "no plan of an entry %q prepares it", ir.InitEntry)
			}
			continue
		}
		st.shard = m.Sharding()
		if err := s.loadState(m.Name, st, source, used); err != nil {
			return err
		}
	}
	return s.checkStates(a, entries, used)
}

// usage finds the states of the plans and what is done to them.
func usage(entries []*entry, initial *entry) map[string]*state {
	used := map[string]*state{}
	of := func(name string) *state {
		if used[name] == nil {
			used[name] = &state{}
		}
		return used[name]
	}
	for _, e := range entries {
		for _, t := range e.plan.Inputs {
			if t.State != "" {
				st := of(t.State)
				st.kept = st.kept || e != initial
				st.feeds = st.feeds || e == initial
			}
		}
		for _, t := range e.plan.Outputs {
			if t.State != "" {
				st := of(t.State)
				st.kept = st.kept || e != initial
				st.written = true
			}
		}
	}
	return used
}

func replaces(e *entry, state string) bool {
	return slices.ContainsFunc(e.plan.Outputs, func(t plan.Tensor) bool { return t.State == state })
}

// checkStates checks that the plans name states of the artifact with their types.
func (s *Session) checkStates(a *artifact.Artifact, entries []*entry, used map[string]*state) error {
	known := map[string]bool{}
	for _, m := range a.Manifest.State {
		known[m.Name] = true
	}
	for _, e := range entries {
		for _, t := range slices.Concat(e.plan.Inputs, e.plan.Outputs) {
			if t.State == "" {
				continue
			}
			place := fmt.Sprintf("plan of %q for %s", e.plan.Entry, s.target)
			if !known[t.State] {
				return diag.Errorf(diag.PlanMismatch, place, "the artifact has no state %.100q", t.State)
			}
			if st := used[t.State]; !t.Sharding().Equal(st.shard) {
				return diag.Errorf(diag.PlanMismatch, place, "ranks divide state %.100q as %s in the plan, as %s in the manifest", t.State, t.Sharding(), st.shard)
			} else if st.memory != nil && !t.Type().Equal(st.typ()) {
				return diag.Errorf(diag.PlanMismatch, place, "state %.100q is %s in the plan, %s in the manifest", t.State, t.Type(), st.typ())
			}
		}
	}
	return nil
}

// loadState gives a state its memory and value. A tied state, which has the memory of an
// earlier one in the artifact, shares it here too while no entry writes to either.
func (s *Session) loadState(name string, st *state, source weights.Source, used map[string]*state) error {
	info, ok := source.Info(name)
	if !ok {
		panic(fmt.Sprintf("BUG: no value for state %q", name))
	}
	l, err := s.layout(st.shard, info.Shape, nil)
	if err != nil {
		return err
	}
	st.dtype, st.shape = info.DType, l.Local
	if same := used[info.SameAs]; info.SameAs != "" && same != nil && same.memory != nil && !same.written && !st.written && same.shard.Equal(st.shard) {
		st.memory = same.memory
		st.memory.users++
		st.memory.feeds = st.memory.feeds || st.feeds
		s.add(name, st)
		return nil
	}
	if err := s.allocState(name, st); err != nil {
		return err
	}
	r, err := source.Open(name)
	if err != nil {
		return err
	}
	if size, err := weights.ByteSize(info.DType, info.Shape); r.Size() != size || err != nil {
		panic(fmt.Sprintf("BUG: %d bytes for state %q of %s", r.Size(), name, info.Type()))
	}
	return s.uploadPart(st.memory, l, info.DType, r.View, "upload of state "+name)
}

func (s *Session) add(name string, st *state) {
	s.states[name] = st
	s.names = append(s.names, name)
}

// allocState allocates the memory of a state whose type is set.
func (s *Session) allocState(name string, st *state) error {
	size, err := weights.ByteSize(st.dtype, st.shape)
	if err != nil {
		return err
	}
	at, err := s.alloc(size, fmt.Sprintf("state %.100q", name))
	if err != nil {
		return err
	}
	st.memory = &memory{at: at, size: size, users: 1, feeds: st.feeds}
	s.add(name, st)
	return nil
}

// allocPrepared allocates the states that the init entry computes.
func (s *Session) allocPrepared(initial *entry, bound *plan.Bound) error {
	used := usage(s.entries, nil)
	for _, t := range initial.plan.Outputs {
		if t.State == "" || s.states[t.State] != nil {
			continue
		}
		shape, err := evalShape(t.Shape, bound.Dims)
		if err != nil {
			return err
		}
		st := &state{dtype: t.Type().DType, shape: shape, kept: used[t.State] != nil, written: true}
		if err := s.allocState(t.State, st); err != nil {
			return err
		}
	}
	return s.checkPrepared()
}

// checkPrepared checks the prepared states against the plans that read them.
func (s *Session) checkPrepared() error {
	for _, e := range s.entries {
		for _, t := range e.plan.Inputs {
			st := s.states[t.State]
			if st == nil {
				continue
			}
			if shape, c := t.Type().ConstShape(); t.Type().DType != st.dtype || len(t.Shape) != len(st.shape) || c && !slices.Equal(shape, st.shape) {
				return diag.Errorf(diag.PlanMismatch, fmt.Sprintf("plan of %q for %s", e.plan.Entry, s.target), "state %.100q is %s in the plan, but %s is prepared", t.State, t.Type(), st.typ())
			}
		}
	}
	return nil
}

// freeUnused frees the states that no entry of the caller uses.
func (s *Session) freeUnused() error {
	var first error
	s.names = slices.DeleteFunc(s.names, func(name string) bool {
		st := s.states[name]
		if st.kept {
			return false
		}
		delete(s.states, name)
		if err := st.memory.drop(s.device); err != nil && first == nil {
			first = err
		}
		return true
	})
	return first
}

// checkWeights compares the weights that a user gives with the states that the artifact needs
// and lists all that is wrong in one diagnostic. Tensors that no state needs are fine beside
// those that do, as checkpoints have them.
func checkWeights(a *artifact.Artifact, given weights.Source) error {
	if given == nil {
		return nil // the artifact says what it lacks
	}
	needs, err := a.Needs()
	if err != nil {
		return err
	}
	must := map[string]bool{}
	for _, m := range a.Manifest.State {
		if m.From.Reference != nil {
			must[m.From.Reference.Name] = true
		}
	}
	var faults []string
	needed := map[string]bool{}
	fits := 0
	for _, need := range needs {
		if needed[need.Name] {
			continue
		}
		needed[need.Name] = true
		got, ok := given.Info(need.Name)
		switch {
		case !ok && must[need.Name]:
			faults = append(faults, fmt.Sprintf("missing: %q, %s", need.Name, need.Type()))
		case ok && !got.Type().Equal(need.Type()):
			faults = append(faults, fmt.Sprintf("mismatched: %q is %s, expected %s", need.Name, got.Type(), need.Type()))
		case ok:
			fits++
		}
	}
	if len(faults) == 0 && (fits > 0 || len(given.Names()) == 0 || len(needs) == 0) {
		return nil
	}
	var unexpected []string
	for _, name := range given.Names() {
		if !needed[name] {
			info, _ := given.Info(name)
			unexpected = append(unexpected, fmt.Sprintf("unexpected: %q, %s", name, info.Type()))
		}
	}
	d := diag.Errorf(diag.RunWeights, "", "the weights that were given do not fit: of the %d that the artifact takes, %d are missing or mismatched and %d fit", len(needed), len(faults), fits)
	for _, list := range [][]string{faults, unexpected} {
		for _, text := range list[:min(len(list), maxListed)] {
			d.Note("%s", text)
		}
		if more := len(list) - maxListed; more > 0 {
			d.Note("and %d more that are %s", more, strings.SplitN(list[maxListed], ":", 2)[0])
		}
	}
	return d
}

// maxListed bounds what a message lists of a kind.
const maxListed = 20

// States describes the states that the session keeps, in the order of the artifact, prepared
// ones last.
func (s *Session) States() []Value {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Value, len(s.names))
	for i, name := range s.names {
		st := s.states[name]
		list[i] = Value{name, st.global(), st.shard}
	}
	return list
}

func (s *Session) state(name string) (*state, error) {
	if s.closed {
		return nil, errClosed
	}
	if st := s.states[name]; st != nil {
		return st, nil
	}
	shown := make([]string, 0, maxListed)
	for _, n := range s.names[:min(len(s.names), maxListed)] {
		shown = append(shown, fmt.Sprintf("%q", n))
	}
	if len(s.names) > maxListed {
		shown = append(shown, fmt.Sprintf("%d more", len(s.names)-maxListed))
	}
	return nil, diag.Errorf(diag.RunState, "", "the session keeps no state %.100q", name).
		Note("it has: %s", strings.Join(shown, ", "))
}

// State downloads the present value of a state; of a rank, its part.
func (s *Session) State(name string) (*ir.Tensor, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.state(name)
	if err != nil {
		return nil, err
	}
	t := ir.NewTensor(st.dtype, slices.Clone(st.shape)...)
	if err := s.device.Download(t.Data, st.memory.at); err != nil {
		return nil, deviceError("download of state "+name, err)
	}
	return t, nil
}

// SetState gives a state a new value of the same type, on a rank its part. Tied states share it. A state that the
// init entry reads cannot be set: what was prepared from it would no longer fit.
func (s *Session) SetState(name string, value *ir.Tensor) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.state(name)
	if err != nil {
		return err
	}
	place := fmt.Sprintf("state %q", name)
	if st.memory.feeds {
		return diag.Errorf(diag.RunState, place, "other states were prepared from it when the session opened").
			Suggest("open a session with the new weights")
	}
	if value == nil || value.Check() != nil || value.DType != st.dtype || !slices.Equal(value.Shape, st.shape) {
		got := "no valid tensor"
		if value != nil && value.Check() == nil {
			got = value.Type().String()
		}
		return diag.Errorf(diag.RunInputType, place, "%s is %s, expected %s", place, got, st.typ())
	}
	if err := s.device.Synchronize(); err != nil {
		return deviceError(place, err)
	}
	if err := s.device.Upload(st.memory.at, value.Data); err != nil {
		return deviceError(place, err)
	}
	return nil
}
