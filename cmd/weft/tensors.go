package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// tensorFile is an open file of named tensors, which are views of it.
type tensorFile struct {
	path    string
	names   []string
	tensors map[string]*ir.Tensor

	// what inputs found
	ranks     rankInputs
	ranksOnly map[int]bool // inputs that the file has for single ranks alone
	io.Closer
}

// readTensors opens a tensor file; the tensor of an .npy file has the given name.
func readTensors(path, single string) (*tensorFile, error) {
	names, tensors, closer, err := weights.ReadTensors(path, single)
	if err != nil {
		return nil, err
	}
	return &tensorFile{path: path, names: names, tensors: tensors, Closer: closer}, nil
}

const (
	statePrefix      = "state."
	afterPrefix      = "after."
	afterStatePrefix = "after.state."
	exactPrefix      = "exact." // outputs in float64, which tests of narrow types hold errors against
)

// numbered reads PREFIX.N.
func numbered(name, prefix string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0 && strconv.Itoa(n) == digits
}

func position(values []value, name string) int {
	return slices.IndexFunc(values, func(v value) bool { return v.Name == name })
}

// indexOf finds a value by its name or as PREFIX.N; -1 for another name, and N past the end
// gives ok false.
func indexOf(values []value, name, prefix string) (i int, ok bool) {
	if i := position(values, name); i >= 0 {
		return i, true
	}
	if n, numbered := numbered(name, prefix); numbered {
		return n, n < len(values)
	}
	return -1, true
}

// inputs takes the inputs of an entry, in order, and the initial values of states from the
// file, which may be nil. Expected outputs in it are left alone.
func (f *tensorFile) inputs(s signature) (inputs []*ir.Tensor, states []weights.Named, err error) {
	inputs = make([]*ir.Tensor, len(s.Inputs))
	var faults diag.List
	if f != nil {
		for _, name := range f.names {
			if rank, of, ok := cutRank(name); ok && position(s.Inputs, name) < 0 && f.rankInput(s, rank, of, f.tensors[name]) {
				continue
			}
			state, isState := strings.CutPrefix(name, statePrefix)
			i, inRange := indexOf(s.Inputs, name, "in.")
			switch {
			case i >= 0 && inRange && inputs[i] != nil:
				faults = append(faults, diag.Errorf(diag.FileDuplicate, strconv.Quote(name), "input %q is given twice", s.Inputs[i].Name).In(f.path))
			case i >= 0 && inRange:
				inputs[i] = f.tensors[name]
			case i >= 0:
				faults = append(faults, f.noInput(s, name))
			case isState:
				states = append(states, weights.Named{Name: state, Tensor: f.tensors[name]})
			case strings.HasPrefix(name, "out.") || strings.HasPrefix(name, afterPrefix) || strings.HasPrefix(name, exactPrefix) || position(s.Outputs, name) >= 0:
			default:
				faults = append(faults, f.noInput(s, name))
			}
		}
	}
	f.fillRanks(inputs)
	if err := missingInputs(f, s, inputs); err != nil {
		faults = append(faults, err)
	}
	return inputs, states, faults.Err()
}

// fillRanks gives inputs that the file has for single ranks alone the value of one of them.
func (f *tensorFile) fillRanks(inputs []*ir.Tensor) {
	if f == nil {
		return
	}
	f.ranksOnly = map[int]bool{}
	for _, given := range f.ranks {
		for i, t := range given {
			if inputs[i] == nil || f.ranksOnly[i] {
				inputs[i], f.ranksOnly[i] = t, true
			}
		}
	}
}

// rankInput takes an input, or leaves an expected output, of one rank; false for another name.
func (f *tensorFile) rankInput(s signature, rank int64, name string, t *ir.Tensor) bool {
	i, inRange := indexOf(s.Inputs, name, "in.")
	if i < 0 || !inRange {
		return strings.HasPrefix(name, "out.") || strings.HasPrefix(name, afterPrefix) || position(s.Outputs, name) >= 0
	}
	if f.ranks == nil {
		f.ranks = rankInputs{}
	}
	if f.ranks[rank] == nil {
		f.ranks[rank] = map[int]*ir.Tensor{}
	}
	f.ranks[rank][i] = t
	return true
}

func (f *tensorFile) noInput(s signature, name string) *diag.Diagnostic {
	d := diag.Errorf(diag.RunInputUnknown, "", "the file has %q, which is no input of entry %q", name, s.Name).In(f.path)
	var names []string
	for i, in := range s.Inputs {
		names = append(names, in.Name)
		d.Note("in.%d: input %q: %s", i, in.Name, in.Type)
	}
	if near := diag.Nearest(name, names, 3); len(near) > 0 {
		d.Suggest("did you mean %s?", strings.Join(near, " or "))
	}
	return d
}

func missingInputs(f *tensorFile, s signature, inputs []*ir.Tensor) *diag.Diagnostic {
	var missing []string
	for i, t := range inputs {
		if t == nil {
			missing = append(missing, fmt.Sprintf("in.%d: input %q: %s", i, s.Inputs[i].Name, s.Inputs[i].Type))
		}
	}
	if missing == nil {
		return nil
	}
	d := diag.Errorf(diag.RunInputMissing, "", "%s of entry %q not given", plural(len(missing), "input"), s.Name)
	d.Notes = missing
	if f == nil {
		return d.Suggest("give them with --inputs FILE (.safetensors, .npz or .npy)")
	}
	return d.In(f.path)
}

// output is a result of a run with the names that tensor files give it.
type output struct {
	key    string // out.0, after.in.1, after.state.NAME
	name   string // of the entry's output; empty for states
	tensor *ir.Tensor
}

// outputsOf names the results of a run: outputs, inputs that the model changed, states.
func outputsOf(s signature, tensors []*ir.Tensor, state func(string) (*ir.Tensor, error)) ([]output, error) {
	var list []output
	for i, t := range tensors {
		o := output{fmt.Sprintf("out.%d", i), s.Outputs[i].Name, t}
		if input, ok := strings.CutPrefix(o.name, afterPrefix); ok {
			if k := position(s.Inputs, input); k >= 0 {
				o.key = fmt.Sprintf("after.in.%d", k)
			}
		}
		list = append(list, o)
	}
	for _, name := range s.Replaced {
		t, err := state(name)
		if err != nil {
			return nil, err
		}
		list = append(list, output{afterStatePrefix + name, "", t})
	}
	return list, nil
}

// expected finds the expected value of an output by name or key; nil where the file has none. That
// of a rank may be what all ranks should have.
func (f *tensorFile) expected(o output) *ir.Tensor {
	if t := f.tensors[o.name]; t != nil && o.name != "" {
		return t
	}
	if t := f.tensors[o.key]; t != nil {
		return t
	}
	if _, key, ok := cutRank(o.key); ok {
		_, name, _ := cutRank(o.name)
		return f.expected(output{key, name, o.tensor})
	}
	return nil
}

// unexpected lists names in the file that are no output, input or state of the entry.
func (f *tensorFile) unexpected(s signature, outputs []output) []string {
	var names []string
	for _, name := range f.names {
		known := slices.ContainsFunc(outputs, func(o output) bool {
			_, key, _ := cutRank(o.key)
			_, of, _ := cutRank(o.name)
			return o.key == name || o.name == name || key == name || of == name
		})
		_, ofRank, _ := cutRank(name)
		known = known || position(s.Inputs, ofRank) >= 0 || strings.HasPrefix(ofRank, "in.")
		known = known || position(s.Inputs, name) >= 0 || strings.HasPrefix(name, "in.") || strings.HasPrefix(name, statePrefix) || strings.HasPrefix(name, exactPrefix)
		if !known {
			names = append(names, name)
		}
	}
	return names
}

// writeOutputs writes the results of a run to a tensor file.
func writeOutputs(path string, outputs []output) error {
	list := make([]weights.Named, len(outputs))
	for i, o := range outputs {
		list[i] = weights.Named{Name: o.key, Tensor: o.tensor}
	}
	return weights.WriteTensors(path, list)
}
