package runtime

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/plan"
	"weft/runtime/artifact"
)

// Options of a session. The zero value is good.
type Options struct {
	// Target names the kernels to use. Empty picks the best for the device (ChooseTarget).
	Target string
	// Weights gives the states that the artifact refers to, and replaces those that it holds,
	// by name. The session reads it during Open and does not close it.
	Weights weights.Source
	// NoGraph enqueues every step anew instead of replaying captured graphs.
	NoGraph bool
	// ArenaLimit is the most scratch memory in bytes that runs may keep; 0 is no limit.
	ArenaLimit int64
	// Rank is the session's among those of the artifact's mesh, and Communicator leads to the
	// others. The session does not close it. An artifact for one rank needs neither.
	Rank         int64
	Communicator Communicator
	// Recorder notes what the rank does; nil makes one.
	Recorder *Recorder
	// Trace has the session note when the steps of each run begin and end, for Trace. This takes time.
	Trace bool
	// LeaveOut makes one rank leave out one collective of each entry, to see how a run ends when ranks
	// disagree; the zero value leaves out none.
	LeaveOut LeaveOut
}

// Session is an artifact on a device: kernels loaded, states in device memory. It runs any
// entry any number of times. Its methods may be called from any goroutine; they take turns.
//
// A session of an artifact for a mesh is one rank. It takes global inputs, of which it uploads
// its own part, and gives its part of the outputs; Ranks joins those of several.
type Session struct {
	mu       sync.Mutex
	device   Device
	options  Options
	target   string
	module   Module
	entries  []*entry // of the caller, in the order of the artifact
	states   map[string]*state
	names    []string // of states: in the order of the artifact, prepared ones last
	plain    bool     // makes no more windows
	bindings []*Binding
	closed   bool

	mesh        ir.Mesh
	coordinates map[string]int64 // of the rank, by symbol
	recorder    *Recorder
	tracer      *tracer // nil where nothing is traced
	beside      Stream  // of asynchronous collectives; 0 before the first
	sequence    int64   // collectives that the rank has issued
}

// entry is an entry of the artifact, ready to be bound.
type entry struct {
	plan      *plan.Plan
	program   *ir.Program // its signature, for ir.BindDims
	signature *ir.Entry
	inputs    []int    // those of the caller
	outputs   []int    // those of the caller
	kernels   []Kernel // by number of the step

	inputBuffers, outputBuffers []int // by input and output, -1 for none
}

// Open loads an artifact onto a device: it picks the target, loads the kernels, uploads the
// states that the entries use, and runs the entry named init where there is one; what only
// init needed is freed after. The artifact may be closed when Open returns. Errors are
// diagnostics.
func Open(a *artifact.Artifact, device Device, options Options) (*Session, error) {
	s := &Session{device: device, options: options, states: map[string]*state{}}
	if options.Trace {
		s.tracer = newTracer(device)
	}
	if err := s.open(a); err != nil {
		s.abort(err)
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (s *Session) open(a *artifact.Artifact) error {
	if err := s.joinMesh(a.Manifest.Mesh.Program()); err != nil {
		return err
	}
	var targets []string
	for _, t := range a.Manifest.Targets {
		targets = append(targets, t.Name)
	}
	var err error
	if s.target, err = ChooseTarget(targets, s.options.Target, s.device.Properties()); err != nil {
		return err
	}
	parameters, err := s.loadKernels(a)
	if err != nil {
		return err
	}
	var all []*entry
	var initial *entry
	for _, e := range a.Manifest.Entries {
		entry, err := s.loadEntry(a, e.Name, parameters)
		if err != nil {
			return err
		}
		all = append(all, entry)
		if e.Name == ir.InitEntry {
			initial = entry
		} else {
			s.entries = append(s.entries, entry)
		}
	}
	if err := verifyRanks(all); err != nil {
		return err
	}
	if err := s.loadStates(a, all, initial); err != nil {
		return err
	}
	return s.prepare(initial)
}

// verifyRanks proves that no rank waits for others for ever.
func verifyRanks(entries []*entry) error {
	plans := make([]*plan.Plan, len(entries))
	for i, e := range entries {
		plans[i] = e.plan
	}
	return plan.VerifyRanks(plans...)
}

// loadKernels loads the target's kernels and gives their parameter counts; nil where the
// artifact has machine code alone.
func (s *Session) loadKernels(a *artifact.Artifact) (parameters map[string]int, err error) {
	image, noText := a.Kernels(s.target)
	code, noCode := a.Cubin(s.target)
	if noText == nil {
		parameters = parameterCounts(image)
	}
	switch {
	case noCode == nil && s.runsCubin(noText == nil):
		image = code
	case noCode == nil && noText != nil:
		return nil, diag.Errorf(diag.RunKernels, "", "the artifact has machine code alone for %s, which %s does not run", s.target, s.device.Properties().Name).
			Suggest("compile with --code ptx or --code both")
	case noText != nil:
		return nil, noText
	}
	if s.module, err = s.device.Load(image); err != nil {
		return nil, diag.Errorf(diag.RunKernels, "", "%s does not load the kernels for %s: %v", s.device.Properties().Name, s.target, err).Because(err)
	}
	return parameters, nil
}

// runsCubin tells whether machine code for the target is to be loaded: on a GPU of exactly its
// compute capability, and where there is no PTX also on a later one of the same major version.
func (s *Session) runsCubin(hasText bool) bool {
	rank, _ := targetRank(s.target)
	p := s.device.Properties()
	exact := rank == 10*p.ComputeMajor+p.ComputeMinor
	return p.DriverVersion > 0 && (exact || !hasText && rank/10 == p.ComputeMajor)
}

// entryHeader finds an entry and its parameter list in PTX; parameters have no parentheses.
var entryHeader = regexp.MustCompile(`(?m)\.entry\s+([\w$]+)\s*(?:\(([^)]*)\))?`)

// parameterCounts counts the parameters of each entry of a PTX text without reading the rest
// of it, which the device does.
func parameterCounts(ptx []byte) map[string]int {
	counts := map[string]int{}
	for _, m := range entryHeader.FindAllSubmatch(ptx, -1) {
		counts[string(m[1])] = strings.Count(string(m[2]), ".param")
	}
	return counts
}

// loadEntry reads and verifies a plan and finds its kernels.
func (s *Session) loadEntry(a *artifact.Artifact, name string, parameters map[string]int) (*entry, error) {
	place := fmt.Sprintf("plan of %q for %s", name, s.target)
	data, err := a.Plan(s.target, name, "")
	if err != nil {
		return nil, err
	}
	p, err := plan.Decode(data)
	if err == nil {
		kernels := func(kernel string) (int, bool) {
			n, ok := parameters[kernel]
			return n, ok
		}
		if parameters == nil {
			kernels = nil // the device finds out which kernels there are
		}
		err = plan.Verify(p, kernels)
	}
	if err != nil {
		for _, d := range diag.All(err) {
			d.Place = strings.TrimSuffix(place+", "+d.Place, ", ")
		}
		return nil, err
	}
	if p.Entry != name || p.Target != s.target {
		return nil, diag.Errorf(diag.PlanMismatch, place, "the plan is of entry %.100q for %.100q", p.Entry, p.Target)
	}
	if !slices.Equal(p.MeshOf().Axes, s.mesh.Axes) {
		return nil, diag.Errorf(diag.PlanMismatch, place, "the plan is for the mesh %q, the artifact for %q", p.MeshOf(), s.mesh)
	}
	steps := p.Flat()
	e := &entry{plan: p, kernels: make([]Kernel, len(steps))}
	e.program, e.signature = p.Signature()
	e.inputs, e.outputs = callers(p.Inputs), callers(p.Outputs)
	e.inputBuffers, e.outputBuffers = p.InputBuffers(), p.OutputBuffers()
	found := map[string]Kernel{}
	for i, step := range steps {
		if step.Launch == nil {
			continue
		}
		k, ok := found[step.Launch.Kernel]
		if !ok {
			if k, err = s.module.Kernel(step.Launch.Kernel); err != nil {
				return nil, diag.Errorf(diag.PlanMismatch, place, "%v", err).Because(err)
			}
			found[step.Launch.Kernel] = k
		}
		e.kernels[i] = k
	}
	return e, nil
}

// callers lists the tensors that are not states.
func callers(list []plan.Tensor) []int {
	var indices []int
	for i, t := range list {
		if t.State == "" {
			indices = append(indices, i)
		}
	}
	return indices
}

// prepare runs the init entry and frees what nothing else needs.
func (s *Session) prepare(initial *entry) error {
	if initial == nil {
		return nil
	}
	dims, err := s.bindDims(initial, make([]*ir.Tensor, len(initial.inputs)))
	if err != nil {
		return err
	}
	bound, err := plan.Bind(initial.plan, dims)
	if err != nil {
		return err
	}
	if err := s.allocPrepared(initial, bound); err != nil {
		return err
	}
	b, err := s.newBinding(initial, bound)
	if err != nil {
		return err
	}
	s.recorder.begin(initial.plan.Entry)
	err = b.runBlock(context.Background(), b.work, nil)
	if err == nil {
		err = s.device.Synchronize()
	}
	if err != nil {
		err = deviceError(initial.plan.Entry, err)
	}
	return errors.Join(err, b.release(), s.freeUnused())
}

// Target names the kernels in use.
func (s *Session) Target() string { return s.target }

// Value describes an input, an output or a state. Where the ranks of a mesh divide it, the type
// is that of the global tensor.
type Value struct {
	Name  string
	Type  ir.Type
	Shard ir.Sharding // nil where each rank has all
}

// Entry describes an entry.
type Entry struct {
	Name    string
	Inputs  []Value // of the caller, in order
	Outputs []Value // to the caller, in order
	States  []Value // read or replaced
	Plan    *plan.Plan
}

// Entries lists the names of the entries that can be run. The init entry is none of them: it
// ran when the session opened.
func (s *Session) Entries() []string {
	names := make([]string, len(s.entries))
	for i, e := range s.entries {
		names[i] = e.plan.Entry
	}
	return names
}

// Entry describes an entry by name. An empty name stands for the only one that there is.
func (s *Session) Entry(name string) (Entry, error) {
	e, err := s.entry(name)
	if err != nil {
		return Entry{}, err
	}
	d := Entry{Name: e.plan.Entry, Plan: e.plan}
	for _, side := range []struct {
		to   *[]Value
		list []plan.Tensor
	}{{&d.Inputs, e.plan.Inputs}, {&d.Outputs, e.plan.Outputs}} {
		for _, t := range side.list {
			v := Value{t.Name, t.Global(), t.Sharding()}
			if t.State == "" {
				*side.to = append(*side.to, v)
				continue
			}
			v.Name = t.State
			if !slices.ContainsFunc(d.States, func(have Value) bool { return have.Name == v.Name }) {
				d.States = append(d.States, v)
			}
		}
	}
	return d, nil
}

func (s *Session) entry(name string) (*entry, error) {
	for _, e := range s.entries {
		if e.plan.Entry == name || name == "" && len(s.entries) == 1 {
			return e, nil
		}
	}
	return nil, diag.Errorf(diag.RunInputUnknown, "", "there is no entry %.100q to run", name).
		Suggest("the artifact has: %s", strings.Join(s.Entries(), ", "))
}

// Close frees all that the session holds on the device. The device stays open. Closing twice
// does nothing.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.release()
}

func (s *Session) release() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	if len(s.bindings) > 0 {
		errs = append(errs, s.device.Synchronize())
	}
	for _, b := range s.bindings {
		errs = append(errs, b.release())
	}
	s.bindings = nil
	for _, name := range s.names {
		errs = append(errs, s.states[name].memory.drop(s.device))
	}
	s.names = nil
	if s.module != nil {
		errs = append(errs, s.module.Close())
	}
	return errors.Join(errs...)
}

// errClosed is a mistake of the program that uses the session.
var errClosed = errors.New("weft: the session is closed")
