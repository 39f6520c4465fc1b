// Package ir holds weft's program: a tensor graph in SSA form, its table of operator kinds, its
// text, its builder and its verifier. It imports nothing of weft but diagnostics.
package ir

import "slices"

// Program is one or more entries over the same named state.
type Program struct {
	Mesh    Mesh     // the ranks that run it together; types are those of one rank
	Symbols []Symbol // facts about symbolic dims, in order of first appearance
	States  []State  // parameters, buffers and what is prepared from them
	Entries []*Entry
}

// Symbol is a named dim and what is known of it.
type Symbol struct {
	Name     string
	Min, Max int64 // inclusive; Max is NoBound when unbounded
	Multiple int64 // every value is a multiple of it; 1 when nothing is known
}

// NoBound is the Max of a symbol without an upper bound.
const NoBound = int64(1)<<62 - 1

// StateKind says what a state is for.
type StateKind string

const (
	Parameter StateKind = "parameter" // trained weights
	Buffer    StateKind = "buffer"    // other named tensors of the model; may be written
	Literal   StateKind = "literal"   // tensors in the model file that have no role of their own
	Prepared  StateKind = "prepared"  // made by the init entry from other states
	Generator StateKind = "generator" // seed and offset of random numbers, 0 unless a run sets them; no weights file has it
)

// State is a named tensor that outlives a run.
type State struct {
	Name string
	Type Type
	Kind StateKind
	// Source is the name under which the weights file stores the value, when it is not Name.
	Source string
	// Shard says how the ranks of the mesh divide the tensor, and what its global shape is; Type
	// is then that of one rank. nil: every rank has the same, whole.
	Shard Sharding
}

// StoredName is the name under which weights files store the state.
func (s *State) StoredName() string {
	if s.Source != "" {
		return s.Source
	}
	return s.Name
}

// InitEntry is the name of the entry that makes the prepared states from others. It runs once, at load.
const InitEntry = "init"

// Entry is one function of a program. Body has one parameter an input, one result an output.
type Entry struct {
	Name    string
	Inputs  []Input
	Outputs []Output
	Body    Block
	Types   []Type // by Value
	Memory  *Memory
}

// Input is a parameter of an entry: given by the caller, or the value of a state.
type Input struct {
	Name  string   // how the caller names it; state inputs have the state's name
	State string   // the state that it reads; empty for inputs of the caller
	Shard Sharding // of a caller's input: see State.Shard
}

// Output is a result of an entry: given to the caller, or the new value of a state.
type Output struct {
	Name  string
	State string // the state that takes this value after the run; empty for the caller's
	// Gradient names the state whose gradient a caller's output is, in a program with a backward.
	Gradient string
	Shard    Sharding // of a caller's output: see State.Shard
}

// Value is an SSA value: an index into its entry's Types.
type Value int32

// NoValue is not a value.
const NoValue Value = -1

// Block is a list of operations with parameters and results.
type Block struct {
	Params  []Value
	Ops     []*Op
	Results []Value
}

// Op is one operation.
type Op struct {
	Kind     Kind
	Operands []Value
	Results  []Value
	Attrs    Attrs // the attribute struct of the kind, or nil
	Regions  []*Block
	Loc      string // module path and source line, or the ONNX node's name
}

// Entry finds an entry by name.
func (p *Program) Entry(name string) *Entry {
	for _, e := range p.Entries {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// State finds a state by name.
func (p *Program) State(name string) *State {
	i := slices.IndexFunc(p.States, func(s State) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &p.States[i]
}

// Symbol finds a symbol by name.
func (p *Program) Symbol(name string) *Symbol {
	i := slices.IndexFunc(p.Symbols, func(s Symbol) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Symbols[i]
}

// AddSymbol declares a symbol with no facts unless it is declared already.
func (p *Program) AddSymbol(name string) *Symbol {
	if s := p.Symbol(name); s != nil {
		return s
	}
	p.Symbols = append(p.Symbols, Symbol{Name: name, Max: NoBound, Multiple: 1})
	return &p.Symbols[len(p.Symbols)-1]
}

// Range gives a symbol's bounds in the form that Dim.Bounds asks for.
func (p *Program) Range(name string) (Range, bool) {
	s := p.Symbol(name)
	if s == nil {
		return Range{}, false
	}
	return Range{s.Min, s.Max}, true
}

// Divisor gives a symbol's known divisor in the form that Dim.DivisibleBy asks for.
func (p *Program) Divisor(name string) int64 {
	if s := p.Symbol(name); s != nil {
		return s.Multiple
	}
	return 1
}

// NewValue adds a value of a type.
func (e *Entry) NewValue(t Type) Value {
	e.Types = append(e.Types, t)
	return Value(len(e.Types) - 1)
}

// Type is the type of a value.
func (e *Entry) Type(v Value) Type { return e.Types[v] }

// AddInput adds a parameter of the caller.
func (e *Entry) AddInput(name string, t Type) Value { return e.addParam(Input{Name: name}, t) }

// AddStateInput adds a parameter that reads a state.
func (e *Entry) AddStateInput(state string, t Type) Value {
	return e.addParam(Input{Name: state, State: state}, t)
}

func (e *Entry) addParam(in Input, t Type) Value {
	v := e.NewValue(t)
	e.Inputs = append(e.Inputs, in)
	e.Body.Params = append(e.Body.Params, v)
	return v
}

// AddOutput adds a result; state is empty for a result of the caller.
func (e *Entry) AddOutput(name, state string, v Value) {
	e.Outputs = append(e.Outputs, Output{Name: name, State: state})
	e.Body.Results = append(e.Body.Results, v)
}

// Walk visits each operation of the block and of its regions, an operation before its regions.
func (b *Block) Walk(visit func(*Op)) {
	for _, op := range b.Ops {
		visit(op)
		for _, r := range op.Regions {
			r.Walk(visit)
		}
	}
}

// Uses visits every use of a value in the block and its regions, results included.
func (b *Block) Uses(visit func(*Value)) {
	for _, op := range b.Ops {
		for i := range op.Operands {
			visit(&op.Operands[i])
		}
		for _, r := range op.Regions {
			r.Uses(visit)
		}
	}
	for i := range b.Results {
		visit(&b.Results[i])
	}
}

// Memory is the memory plan of a scheduled entry: where each value of its body lives.
//
// Its steps are the operations in pre-order, those inside of kernels left out: an if or while
// comes before the operations of its regions. Without control flow they are the indices of
// Body.Ops. Values may share a place where control flow makes them one: the result of an if
// with what a region yields, and the result of a while with its regions' parameters, its
// operand and what its body yields. Where their places differ, the plan copies.
type Memory struct {
	Buffers []ArenaBuffer
	Places  []Place // by Value; the zero Place means that the value has no storage
}

// ArenaBuffer is a range of the arena. Its offset is the largest end among the buffers it must
// not overlap that were placed before it, 0 when there are none: an expression evaluated when
// the dims are bound, so buffers are disjoint by construction at every size.
type ArenaBuffer struct {
	Size        Dim   // bytes
	First, Last int   // steps between which it is live, inclusive; see Memory
	After       []int // indices of earlier buffers that it must not overlap
}

// DropDead removes the operations of the block and its regions whose results nobody uses, and
// tells whether there were any. All uses must be in the block.
func (b *Block) DropDead() bool { return b.dropDead(map[Value]bool{}) }

func (b *Block) dropDead(live map[Value]bool) bool {
	for _, v := range b.Results {
		live[v] = true
	}
	dropped := false
	var kept []*Op
	for _, op := range slices.Backward(b.Ops) {
		if !slices.ContainsFunc(op.Results, func(v Value) bool { return live[v] }) {
			dropped = true
			continue
		}
		for _, r := range op.Regions {
			dropped = r.dropDead(live) || dropped
		}
		for _, v := range op.Operands {
			live[v] = true
		}
		kept = append(kept, op)
	}
	slices.Reverse(kept)
	b.Ops = kept
	return dropped
}

// PlaceKind says in what kind of storage a value lives.
type PlaceKind uint8

// The kinds of places.
const (
	Nowhere  PlaceKind = iota
	InArena            // Index is a buffer
	InInput            // Index is an input of the entry, states included
	InOutput           // Index is an output of the entry
)

// Place is where a value's bytes are.
type Place struct {
	Kind  PlaceKind
	Index int
}
