// Package plan holds the launch plan: what the runtime steps through. A plan is data for one
// target and one entry: a table of buffers and nested lists of steps over them. Every size is
// an expression over the entry's symbolic dims, evaluated when a run binds them, so one plan
// serves every size.
//
// Steps run in order, each as if the one before had finished. An if reads its predicate, one
// byte of 0 or 1, when the steps before it have run, and runs one of its lists. A while runs
// its condition, reads its predicate, ends if that is 0, else runs its body and begins again:
// the condition runs once more than the body, at least once. Values are carried from one
// iteration to the next in buffers; the body ends with the copies that this takes.
//
// Steps are numbered in pre-order: an if comes before its then steps, those before its else
// steps; a while before its condition, and that before its body. In a plan without control
// flow the numbers are the indices of Steps.
package plan

import "weft/ir"

// Version is the schema of plans. Readers refuse another major version.
const Version = "1.1"

// Plan is the launch plan of one entry for one target.
type Plan struct {
	Version string   `json:"version"`
	Target  string   `json:"target"`
	Entry   string   `json:"entry"`
	Mesh    []Axis   `json:"mesh,omitempty"` // the ranks that run the plan together
	Dims    []Dim    `json:"dims,omitempty"`
	Inputs  []Tensor `json:"inputs"`  // as the entry's inputs, states included
	Outputs []Tensor `json:"outputs"` // as the entry's outputs, states included
	Buffers []Buffer `json:"buffers"`
	Steps   []Step   `json:"steps"`
}

// Dim is a symbolic dim and what is known of it (see ir.Symbol).
type Dim struct {
	Name     string `json:"name"`
	Min      int64  `json:"min"`
	Max      int64  `json:"max,omitempty"` // 0: unbounded
	Multiple int64  `json:"multiple,omitempty"`
}

// Axis is an axis of the mesh; ranks are numbered with the last axis varying fastest. The dim
// "rank.NAME" is a rank's coordinate.
type Axis struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// Tensor is an input or output of the entry.
type Tensor struct {
	Name  string   `json:"name"`
	State string   `json:"state,omitempty"` // the state that it reads, or that takes its value
	DType string   `json:"dtype"`           // as in program text: "f32"
	Shape []ir.Dim `json:"shape"`           // of one rank
	// Shard says how ranks divide the global tensor (see ir.Sharding); absent where each has all.
	Shard [][]Part `json:"shard,omitempty"`
}

// Part is a factor of a dim of the global tensor, divided over mesh axes (see ir.Part).
type Part struct {
	Size ir.Dim   `json:"size"`
	Axes []string `json:"axes,omitempty"`
}

// BufferKind says where a buffer's memory comes from.
type BufferKind string

const (
	Arena  BufferKind = "arena"  // the run's scratch memory
	Input  BufferKind = "input"  // what the caller gave, or the state's memory
	Output BufferKind = "output" // memory that the caller receives
)

// Buffer is a range of memory. The offset of an arena buffer is the largest end, rounded up to
// Alignment, of the buffers in After: earlier buffers that it must not overlap. Disjointness
// therefore holds at every size.
type Buffer struct {
	Kind  BufferKind `json:"kind"`
	Index int        `json:"index,omitempty"` // of the input or output
	Size  ir.Dim     `json:"size"`            // bytes
	After []int      `json:"after,omitempty"`
	Name  string     `json:"name,omitempty"` // what it holds, for people
}

// Alignment of buffers in bytes.
const Alignment = 256

// Step is one thing to do; exactly one field is set.
type Step struct {
	Launch *Launch `json:"launch,omitempty"`
	Copy   *Copy   `json:"copy,omitempty"`
	Fill   *Fill   `json:"fill,omitempty"`
	If     *If     `json:"if,omitempty"`
	While  *While  `json:"while,omitempty"`

	Collective *Collective `json:"collective,omitempty"`
	Wait       *Wait       `json:"wait,omitempty"`
}

// Wait is the end of the asynchronous collective that reads From and writes To.
type Wait struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Collective is an operation of all ranks of a group: those whose coordinates differ only on
// Axes. From and To are whole buffers with the shares of ranks one after the other; the buffer of all_gather's
// result is Ranks times the other, that of reduce_scatter's operand too.
type Collective struct {
	Kind    string     `json:"kind"` // all_reduce, all_gather, reduce_scatter, all_to_all, collective_permute
	From    int        `json:"from"`
	To      int        `json:"to"`
	Axes    []string   `json:"axes"`
	Ranks   int64      `json:"ranks"`
	DType   string     `json:"dtype"`
	Combine string     `json:"combine,omitempty"` // add, maximum, ...
	Channel int64      `json:"channel,omitempty"`
	Pairs   [][2]int64 `json:"pairs,omitempty"` // source and target, of collective_permute
	// Async lets later steps run at the same time, up to the wait that names the same buffers.
	Async bool   `json:"async,omitempty"`
	Label string `json:"label,omitempty"`
}

// If runs Then where the buffer Predicate holds 1, else Else.
type If struct {
	Predicate int    `json:"predicate"`
	Then      []Step `json:"then"`
	Else      []Step `json:"else"`
}

// While runs Condition, then Body and Condition as long as the buffer Predicate holds 1.
type While struct {
	Condition []Step `json:"condition"`
	Predicate int    `json:"predicate"`
	Body      []Step `json:"body"`
}

// lists gives the lists of steps inside a step, in the order of their numbers.
func (s Step) lists() [][]Step {
	switch {
	case s.If != nil:
		return [][]Step{s.If.Then, s.If.Else}
	case s.While != nil:
		return [][]Step{s.While.Condition, s.While.Body}
	}
	return nil
}

// Flat lists all steps, nested ones too, by their numbers.
func (p *Plan) Flat() []Step {
	var flat []Step
	var visit func(list []Step)
	visit = func(list []Step) {
		for _, s := range list {
			flat = append(flat, s)
			for _, inner := range s.lists() {
				visit(inner)
			}
		}
	}
	visit(p.Steps)
	return flat
}

// Launch runs a kernel.
type Launch struct {
	Kernel string `json:"kernel"`
	Grid   Grid   `json:"grid"`             // blocks; a launch with an empty grid is left out
	Block  int    `json:"block"`            // threads
	Shared int    `json:"shared,omitempty"` // bytes of dynamic shared memory
	// Resident, where set, allows fewer blocks along the grid's first axis: as many as a multiprocessor runs at a time, on each. They share
	// the work however many they are.
	Resident int    `json:"resident,omitempty"`
	Args     []Arg  `json:"args"`            // in the order of the kernel's parameters
	Label    string `json:"label,omitempty"` // what it computes and where in the model
	FLOPs    ir.Dim `json:"flops,omitzero"`  // operations of its contractions, two a multiply-add; for people
}

// Grid is the number of blocks by axis.
type Grid [3]ir.Dim

// Access says what a launch does to a buffer.
type Access string

// The accesses of a launch.
const (
	Read      Access = "r"
	Write     Access = "w"  // all of it is written, nothing read
	ReadWrite Access = "rw" // in place
)

// Arg is a kernel argument: a buffer, a tensor map of one that is read, or a size passed as an
// integer.
type Arg struct {
	Buffer int        `json:"buffer"` // -1: Value is passed
	Access Access     `json:"access,omitempty"`
	Map    *TensorMap `json:"map,omitempty"`
	Value  ir.Dim     `json:"value,omitzero"`
	Bits   int        `json:"bits,omitempty"` // 32 or 64, of Value
}

// Copy copies the whole of one buffer to another of the same size.
type Copy struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Fill writes a pattern of 1, 2, 4 or 8 bytes (hex) to a whole buffer.
type Fill struct {
	Buffer  int    `json:"buffer"`
	Pattern string `json:"pattern"`
}
