package runtime

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/plan"
)

// maxBindings is how many bindings a session keeps for their next use.
const maxBindings = 16

// Binding is an entry with sizes for its dims: input and output memory, an arena, and where
// the device can capture, the steps as graphs: one for each stretch between the decisions of
// if and while. A session keeps recent ones for its runs;
// one that Bind returned belongs to the caller until it is closed.
type Binding struct {
	session  *Session
	entry    *entry
	bound    *plan.Bound
	pointers []Pointer // by buffer
	owned    []Pointer // to free with the binding
	window   Pointer   // the arena, where the communicator gave it
	work     block
	held     bool // given out by Bind: nobody else may use it
	released bool
	prepared int64             // collectives of the plan so far
	flights  map[Pointer]Event // ends of asynchronous collectives, by where they write
}

// block is a list of steps, ready to be run: stretches of work between decisions of the host.
type block []*stretch

// stretch is steps that are enqueued without waiting, as a graph where the device can capture,
// and the collective or decision that follows them.
type stretch struct {
	work   []command
	graph  Graph       // of the work, once it was captured
	meets  *Collective // issued after the work; nil for none, or where it is in the work
	choice *decision   // nil for none

	timings []timing // of the graph's steps, where the run is traced
	marks   []Mark   // that the graph has
}

// decision is an if or a while: the host reads a byte, the predicate, and goes on in one block
// or the other.
type decision struct {
	step      int
	predicate Pointer
	loop      bool
	// condition of a while runs before its predicate is read. yes runs where that is 1, then
	// again the condition for a while; no where it is 0.
	condition, yes, no block
}

// command is a step that has something to do, ready to be enqueued.
type command struct {
	step    int
	nothing bool        // or
	launch  *Launch     // or
	meets   *Collective // or
	waits   Pointer     // for the asynchronous collective that writes there, or
	dst     Pointer     // copy: size bytes from src; fill: count times the pattern
	src     Pointer
	size    int64
	pattern []byte
	count   int64
}

// bindDims checks the inputs of the caller and finds the sizes of the dims.
func (s *Session) bindDims(e *entry, inputs []*ir.Tensor) (map[string]int64, error) {
	if err := checkInputs(e, inputs); err != nil {
		return nil, err
	}
	given := make([]ir.Given, len(e.plan.Inputs))
	for k, i := range e.inputs {
		given[i] = ir.Given{DType: inputs[k].DType, Shape: inputs[k].Shape}
	}
	for i, t := range e.plan.Inputs {
		if st := s.states[t.State]; st != nil && t.Shard == nil && slices.ContainsFunc(t.Shape, symbolic) {
			given[i] = ir.Given{DType: st.dtype, Shape: st.shape}
		}
	}
	dims, err := ir.BindDims(e.program, e.signature, given)
	if err != nil {
		return nil, err
	}
	maps.Copy(dims, s.coordinates)
	return dims, nil
}

func symbolic(d ir.Dim) bool {
	_, c := d.IsConst()
	return !c
}

// checkInputs checks that there is a valid tensor for each input.
func checkInputs(e *entry, inputs []*ir.Tensor) error {
	var faults diag.List
	place := fmt.Sprintf("entry %q", e.plan.Entry)
	if len(inputs) > len(e.inputs) {
		faults = append(faults, diag.Errorf(diag.RunInputUnknown, place, "%d inputs were given, the entry has %d", len(inputs), len(e.inputs)).
			Note("its inputs: %s", e.inputList()))
	}
	for k, i := range e.inputs {
		t := e.plan.Inputs[i]
		if k >= len(inputs) || inputs[k] == nil {
			faults = append(faults, diag.Errorf(diag.RunInputMissing, place, "input %q was not given, expected %s", t.Name, t.Global()))
			continue
		}
		if _, ok := ir.ParseDType(inputs[k].DType.String()); !ok {
			faults = append(faults, diag.Errorf(diag.RunInputType, place, "input %q has no element type, expected %s", t.Name, t.Global()))
		} else if err := inputs[k].Check(); err != nil {
			faults = append(faults, diag.Errorf(diag.RunInputShape, place, "input %q has %v, expected %s", t.Name, err, t.Global()))
		}
	}
	return faults.Err()
}

func (e *entry) inputList() string {
	var list []string
	for _, i := range e.inputs {
		t := e.plan.Inputs[i]
		list = append(list, fmt.Sprintf("%q: %s", t.Name, t.Global()))
	}
	return strings.Join(list, ", ")
}

func evalShape(dims []ir.Dim, values map[string]int64) ([]int64, error) {
	shape := make([]int64, len(dims))
	for i, d := range dims {
		v, err := d.Eval(values)
		if err != nil {
			return nil, diag.Errorf(diag.RunSize, "", "a dim of a tensor: %v", err)
		}
		if v < 0 {
			return nil, diag.Errorf(diag.RunSize, "", "dim %s of a tensor is %d", d, v)
		}
		shape[i] = v
	}
	return shape, nil
}

// binding finds or makes the binding for inputs and marks it as the latest.
func (s *Session) binding(e *entry, inputs []*ir.Tensor) (*Binding, error) {
	dims, err := s.bindDims(e, inputs)
	if err != nil {
		return nil, err
	}
	for i, b := range s.bindings {
		if b.entry == e && !b.held && b.has(dims) {
			s.bindings = append(slices.Delete(s.bindings, i, i+1), b)
			return b, nil
		}
	}
	bound, err := plan.Bind(e.plan, dims)
	if err != nil {
		return nil, err
	}
	if err := s.makeRoom(bound.Arena); err != nil {
		return nil, err
	}
	b, err := s.newBinding(e, bound)
	if err != nil {
		return nil, err
	}
	s.bindings = append(s.bindings, b)
	return b, nil
}

func (b *Binding) has(dims map[string]int64) bool {
	for _, d := range b.entry.plan.Dims {
		if v, ok := dims[d.Name]; !ok || v != b.bound.Dims[d.Name] {
			return false
		}
	}
	return true
}

// makeRoom gives up old bindings until one more with the arena is within the limits.
func (s *Session) makeRoom(arena int64) error {
	limit := s.options.ArenaLimit
	for {
		kept := int64(0)
		for _, b := range s.bindings {
			kept += b.bound.Arena
		}
		fits := limit <= 0 || arena <= limit-kept
		if fits && len(s.bindings) < maxBindings {
			return nil
		}
		dropped, err := s.dropOldest()
		if err != nil {
			return err
		}
		if !dropped {
			if fits {
				return nil // Bind gave all of them out
			}
			return diag.Errorf(diag.RunMemory, "", "the run needs %d bytes of scratch memory, the limit is %d", arena, limit).
				Note("bindings in use hold %d", kept)
		}
	}
}

// dropOldest gives up the binding that was not used for the longest time; false when Bind gave
// all of them out.
func (s *Session) dropOldest() (bool, error) {
	i := slices.IndexFunc(s.bindings, func(b *Binding) bool { return !b.held })
	if i < 0 {
		return false, nil
	}
	b := s.bindings[i]
	s.bindings = slices.Delete(s.bindings, i, i+1)
	if err := s.device.Synchronize(); err != nil {
		return true, errors.Join(deviceError(b.entry.plan.Entry, err), b.release())
	}
	return true, b.release()
}

// alloc allocates device memory, giving up old bindings for it where it must, and may: where ranks make windows
// together, all have the same bindings.
func (s *Session) alloc(size int64, what string) (Pointer, error) {
	for {
		at, err := s.device.Alloc(size)
		if err == nil {
			return at, nil
		}
		dropped := false
		if s.windows() == nil {
			var e error
			if dropped, e = s.dropOldest(); e != nil {
				return 0, e
			}
		}
		if !dropped {
			return 0, diag.Errorf(diag.RunMemory, what, "no device memory for %d bytes: %v", size, err).Because(err)
		}
	}
}

// newBinding allocates the memory of a binding and prepares its steps.
func (s *Session) newBinding(e *entry, bound *plan.Bound) (*Binding, error) {
	b := &Binding{session: s, entry: e, bound: bound}
	if err := b.place(); err != nil {
		return nil, errors.Join(err, b.release())
	}
	next := 0
	b.work = b.block(e.plan.Steps, &next)
	return b, nil
}

// block prepares a list of steps. next is the number of the first, and after the list that of
// the next step.
func (b *Binding) block(steps []plan.Step, next *int) block {
	s := &stretch{}
	list := block{s}
	for _, step := range steps {
		number := *next
		*next++
		var choice *decision
		var meets *Collective
		switch {
		case step.If != nil:
			choice = &decision{step: number, predicate: b.pointers[step.If.Predicate]}
			choice.yes = b.block(step.If.Then, next)
			choice.no = b.block(step.If.Else, next)
		case step.While != nil:
			choice = &decision{step: number, predicate: b.pointers[step.While.Predicate], loop: true}
			choice.condition = b.block(step.While.Condition, next)
			choice.yes = b.block(step.While.Body, next)
		case step.Wait != nil && !b.session.captures(): // collectives have run when their call returns
		case !b.bound.Steps[number].Empty:
			c := b.command(number, step)
			if c.meets == nil || b.session.captures() {
				s.work = append(s.work, c)
			} else {
				meets = c.meets
			}
		}
		if choice != nil || meets != nil {
			s.choice, s.meets = choice, meets
			s = &stretch{}
			list = append(list, s)
		}
	}
	return list
}

// each visits the stretches of a block and of those inside it.
func (l block) each(visit func(*stretch)) {
	for _, s := range l {
		visit(s)
		if c := s.choice; c != nil {
			c.condition.each(visit)
			c.yes.each(visit)
			c.no.each(visit)
		}
	}
}

// place gives every buffer its memory: that of the state for a state that the entry reads, or
// replaces without reading; else memory of the binding's own.
func (b *Binding) place() error {
	p, s := b.entry.plan, b.session
	arena, err := b.scratch()
	if err != nil {
		return err
	}
	reads := map[string]bool{}
	for _, t := range p.Inputs {
		reads[t.State] = true
	}
	b.pointers = make([]Pointer, len(p.Buffers))
	for i, buf := range p.Buffers {
		var t plan.Tensor
		switch buf.Kind {
		case plan.Arena:
			b.pointers[i] = arena + Pointer(b.bound.Offsets[i])
			continue
		case plan.Input:
			t = p.Inputs[buf.Index]
		default:
			if t = p.Outputs[buf.Index]; reads[t.State] {
				t.State = "" // the plan copies it to the state, which it still reads
			}
		}
		if st := s.states[t.State]; t.State != "" {
			if st == nil || st.memory.size != b.bound.Sizes[i] {
				return diag.Errorf(diag.PlanMismatch, fmt.Sprintf("entry %q", p.Entry), "state %.100q does not take %d bytes", t.State, b.bound.Sizes[i])
			}
			b.pointers[i] = st.memory.at
		} else if b.pointers[i], err = b.alloc(b.bound.Sizes[i], fmt.Sprintf("%s %.100q", buf.Kind, t.Name)); err != nil {
			return err
		}
	}
	return nil
}

// alloc allocates memory that is freed with the binding. No bytes get an address as well.
func (b *Binding) alloc(size int64, what string) (Pointer, error) {
	at, err := b.session.alloc(size, what)
	if err == nil {
		b.owned = append(b.owned, at)
	}
	return at, err
}

// accesses is what the plan's words mean to the device.
var accesses = map[plan.Access]Access{plan.Read: Read, plan.Write: Write | Discard, plan.ReadWrite: ReadWrite}

func (b *Binding) command(i int, step plan.Step) command {
	bound := b.bound.Steps[i]
	switch {
	case step.Collective != nil:
		return b.collective(i, step.Collective)
	case step.Wait != nil:
		return command{step: i, waits: b.pointers[step.Wait.To]}
	case step.Copy != nil:
		return command{step: i, dst: b.pointers[step.Copy.To], src: b.pointers[step.Copy.From], size: b.bound.Sizes[step.Copy.To]}
	case step.Fill != nil:
		return command{step: i, dst: b.pointers[step.Fill.Buffer], pattern: bound.Pattern, count: bound.Count}
	}
	l := &Launch{
		Kernel: b.entry.kernels[i], Block: [3]int{step.Launch.Block, 1, 1}, Shared: step.Launch.Shared, Label: step.Launch.Label,
		Args: make([]Arg, len(step.Launch.Args)),
	}
	for axis, n := range bound.Grid {
		l.Grid[axis] = int(n)
	}
	if most := step.Launch.Resident * b.session.device.Properties().Multiprocessors; most > 0 {
		l.Grid[0] = min(l.Grid[0], most)
	}
	for k, a := range step.Launch.Args {
		switch {
		case a.Map != nil:
			l.Args[k] = mapArg(a.Map, bound.Maps[k], b.pointers[a.Buffer])
		case a.Buffer >= 0:
			l.Args[k] = Arg{Kind: ArgPointer, Bits: uint64(b.pointers[a.Buffer]), Size: b.bound.Sizes[a.Buffer], Access: accesses[a.Access]}
		case a.Bits == 32:
			l.Args[k] = Arg{Kind: ArgI32, Bits: uint64(uint32(bound.Values[k]))}
		default:
			l.Args[k] = Arg{Kind: ArgI64, Bits: uint64(bound.Values[k])}
		}
	}
	return command{step: i, launch: l}
}

// release frees graphs and memory. The device must be idle.
func (b *Binding) release() error {
	if b.released {
		return nil
	}
	b.released = true
	var errs []error
	b.work.each(func(s *stretch) {
		if s.graph != nil {
			errs = append(errs, s.graph.Close())
		}
		b.session.tracer.unmark(s.marks)
	})
	b.session.tracer.forget(b)
	for _, at := range b.owned {
		errs = append(errs, b.session.device.Free(at))
	}
	if b.window != 0 {
		errs = append(errs, b.session.options.Communicator.(WindowCommunicator).CloseWindow(b.window))
	}
	return errors.Join(errs...)
}
