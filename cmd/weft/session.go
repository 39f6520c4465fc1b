package main

import (
	"context"
	"fmt"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/runtime/trace"
)

// session runs the entries of one program again and again over the same state: on a device, or
// in the evaluator.
type session interface {
	// run runs an entry once on the caller's inputs and gives the caller's outputs. States that
	// the entry replaces keep the new value for the next run.
	run(ctx context.Context, entry string, inputs []*ir.Tensor) ([]*ir.Tensor, error)
	// repeat runs an entry n times more on the same inputs, calls each after every run, and gives
	// the outputs of the last. Only the first run and the last move tensors to and from a device.
	repeat(ctx context.Context, entry string, inputs []*ir.Tensor, n int, each func()) ([]*ir.Tensor, error)
	// state is the present value of a state.
	state(name string) (*ir.Tensor, error)
	// target names what runs: "reference", "emu (sm_90a)".
	target() string
	Close() error
}

// signature is what an entry takes and gives.
type signature struct {
	Name     string   `json:"name"`
	Inputs   []value  `json:"inputs"`
	Outputs  []value  `json:"outputs"`
	Replaced []string `json:"replaced_states,omitempty"` // states that take new values
}

// value is an input or output of the caller; Type is program text.
type value struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// signatureOf is the signature of a program's entry.
func signatureOf(e *ir.Entry) signature {
	s := signature{Name: e.Name}
	for i, in := range e.Inputs {
		if in.State == "" {
			s.Inputs = append(s.Inputs, value{in.Name, globalType(e.Type(e.Body.Params[i]), in.Shard).String()})
		}
	}
	for i, out := range e.Outputs {
		if out.State != "" {
			s.Replaced = append(s.Replaced, out.State)
		} else {
			s.Outputs = append(s.Outputs, value{out.Name, globalType(e.Type(e.Body.Results[i]), out.Shard).String()})
		}
	}
	return s
}

// globalType is the type of the tensor that ranks divide; t is that on one rank.
func globalType(t ir.Type, s ir.Sharding) ir.Type {
	if s == nil {
		return t
	}
	return ir.TensorOf(t.DType, s.Global()...)
}

// choose finds the entry to run: the named one, or the only one, or "forward".
func choose(entries []signature, name string) (signature, error) {
	var names []string
	for _, s := range entries {
		if s.Name == name || name == "" && (len(entries) == 1 || s.Name == "forward") {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if name == "" {
		return signature{}, diag.Errorf(diag.CommandLine, "", "the program has several entries").Note("entries: %s", listText(names)).Suggest("name one with --entry")
	}
	return signature{}, unknown("entry", name, names)
}

// reference is the session of the evaluator.
type reference struct {
	program *ir.Program
	values  weights.Source // of states, under their own names
	states  map[string]*ir.Tensor
	traced  bool
	last    []trace.Rank // of the last run that was traced
}

func (r *reference) state(name string) (*ir.Tensor, error) {
	if t := r.states[name]; t != nil {
		return t, nil
	}
	t, err := weights.Load(r.values, name)
	if err != nil {
		return nil, err
	}
	r.states[name] = t
	return t, nil
}

func (r *reference) target() string { return "reference" }

func (r *reference) Close() error { return r.values.Close() }

// override is a source with the weights of base, where top has one of the same name, top's.
// Names of top that base lacks are added. Closing it closes both.
func override(base, top weights.Source) (weights.Source, error) {
	if top == nil {
		return base, nil
	}
	if base == nil {
		return top, nil
	}
	var entries []weights.Entry
	add := func(from weights.Source, name string) {
		info, _ := from.Info(name)
		info.SameAs = ""
		entries = append(entries, weights.Entry{Info: info, Open: func() (weights.Reader, error) { return from.Open(name) }})
	}
	for _, name := range base.Names() {
		if _, ok := top.Info(name); ok {
			add(top, name)
		} else {
			add(base, name)
		}
	}
	for _, name := range top.Names() {
		if _, ok := base.Info(name); !ok {
			add(top, name)
		}
	}
	return weights.NewSource(entries, base, top)
}

func listText(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	text := names[0]
	for _, n := range names[1:] {
		text += fmt.Sprintf(", %s", n)
	}
	return text
}
