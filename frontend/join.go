package frontend

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"weft/frontend/lower"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// Part is an imported file that becomes an entry of a program with several.
type Part struct {
	Entry string // empty keeps the names that the file gives
	Path  string // for messages
	*lower.Imported
}

// Join makes one program of files that are parts of one model, such as its prefill and its
// decode step: their entries over one set of states.
//
// States of the same name and type are one state. With contents, their first values must be
// the same, too; a literal of the model (which has a name that the exporter made up) is renamed
// where they are not, anything else is an error. Dims of the same name about which the same is
// known are one; others get the entry's name behind theirs.
//
// The result owns the weights of the parts, which must not be used any more. After an error
// they are still the caller's to close.
func Join(parts []Part, contents bool) (*lower.Imported, error) {
	j := &joiner{program: &ir.Program{}, contents: contents, owner: map[string]int{}, sources: map[string]place{}}
	var warnings diag.List
	for i := range parts {
		if err := nameEntries(&parts[i]); err != nil {
			return nil, err
		}
		j.parts = append(j.parts, parts[i])
		if err := j.add(i); err != nil {
			return nil, err
		}
		warnings = append(warnings, parts[i].Warnings...)
	}
	if err := j.conflict(); err != nil {
		return nil, err
	}
	source, err := j.weights()
	if err != nil {
		return nil, err
	}
	return &lower.Imported{Program: j.program, Weights: source, Warnings: warnings}, nil
}

// nameEntries gives the only entry of a file the name that the user chose.
func nameEntries(p *Part) error {
	switch {
	case p.Entry == "":
	case p.Entry == ir.InitEntry:
		return diag.Errorf(diag.CommandLine, "", "the entry %q prepares weights and cannot be named by a file", ir.InitEntry).In(p.Path)
	case len(p.Program.Entries) != 1:
		var names []string
		for _, e := range p.Program.Entries {
			names = append(names, e.Name)
		}
		return diag.Errorf(diag.CommandLine, "", "the file has %d entries, which have names already: %s", len(names), strings.Join(names, ", ")).In(p.Path).
			Suggest("give the file without %s=", p.Entry)
	default:
		p.Program.Entries[0].Name = p.Entry
	}
	return nil
}

// joiner joins files one after the other.
type joiner struct {
	program  *ir.Program
	parts    []Part
	contents bool
	owner    map[string]int // by name of the state: the part whose value it has
	order    []string       // names of weights
	sources  map[string]place
	clashes  []string
}

// place is a weight in the weights of a part.
type place struct {
	part int
	name string
}

// add adds part i.
func (j *joiner) add(i int) error {
	part := j.parts[i]
	for _, e := range part.Program.Entries {
		if j.program.Entry(e.Name) != nil {
			return diag.Errorf(diag.CommandLine, "", "two files have an entry %q", e.Name).In(part.Path).
				Suggest("name the entries: prefill=FILE decode=FILE")
		}
	}
	if mesh := part.Program.Mesh; i > 0 && !slices.Equal(mesh.Axes, j.program.Mesh.Axes) {
		return diag.Errorf(diag.BadMesh, "", "the file is for the mesh %q, another one for %q", mesh, j.program.Mesh).In(part.Path)
	}
	j.program.Mesh = part.Program.Mesh
	j.symbols(part)
	for _, s := range part.Program.States {
		if err := j.state(i, s); err != nil {
			return err
		}
	}
	j.program.Entries = append(j.program.Entries, part.Program.Entries...)
	return nil
}

// suffix tells apart what is named alike in another part.
func (p Part) suffix() string {
	return strings.ReplaceAll(p.Program.Entries[0].Name, "-", "_")
}

// symbols adds the symbols of a part.
func (j *joiner) symbols(part Part) {
	for i := range part.Program.Symbols {
		s := &part.Program.Symbols[i]
		have := j.program.Symbol(s.Name)
		if have != nil && *have == *s {
			continue
		}
		if have != nil {
			old, name := s.Name, s.Name+"_"+part.suffix()
			for j.program.Symbol(name) != nil || part.Program.Symbol(name) != nil {
				name += "_"
			}
			part.Program.SubstituteDims(func(n string) (ir.Dim, bool) { return ir.Sym(name), n == old })
			s.Name = name
		}
		j.program.Symbols = append(j.program.Symbols, *s)
	}
}

// state adds a state of part i, or finds that it is one that is there already.
func (j *joiner) state(i int, s ir.State) error {
	have := j.program.State(s.Name)
	if have != nil {
		same, err := j.same(i, s, *have)
		if err != nil || same {
			return err
		}
		if have.Kind != ir.Literal && s.Kind != ir.Literal {
			j.clashes = append(j.clashes, j.clash(i, s, *have))
			return nil
		}
		name := s.Name
		for j.program.State(name) != nil || name != s.Name && j.parts[i].Program.State(name) != nil {
			name = fmt.Sprintf("%s.%s", j.parts[i].suffix(), name)
		}
		if s.Source == "" {
			s.Source = s.Name
		}
		renameState(j.parts[i].Program, s.Name, name)
		s.Name = name
	}
	source, err := j.source(i, s.StoredName())
	if err != nil {
		return err
	}
	s.Source = source
	if source == s.Name {
		s.Source = ""
	}
	j.program.States = append(j.program.States, s)
	j.owner[s.Name] = i
	return nil
}

// same tells whether a state of part i is one that an earlier part has.
func (j *joiner) same(i int, s, have ir.State) (bool, error) {
	if !s.Type.Equal(have.Type) || !s.Shard.Equal(have.Shard) || (s.Kind == ir.Prepared) != (have.Kind == ir.Prepared) {
		return false, nil
	}
	at, stored := j.sources[have.StoredName()]
	if !j.contents && s.Kind != ir.Literal || !stored || !j.stored(i, s.StoredName()) {
		if !stored && j.stored(i, s.StoredName()) { // the first file is a graph alone
			_, err := j.source(i, s.StoredName())
			return true, err
		}
		return true, nil
	}
	return j.equal(at, place{i, s.StoredName()})
}

// stored tells whether the file of part i holds a weight.
func (j *joiner) stored(i int, name string) bool {
	if j.parts[i].Weights == nil {
		return false
	}
	_, ok := j.parts[i].Weights.Info(name)
	return ok
}

// source adds a weight of part i under a name that is free, or finds the one that it is.
func (j *joiner) source(i int, from string) (string, error) {
	if !j.stored(i, from) {
		return from, nil
	}
	name := from
	for {
		at, taken := j.sources[name]
		if !taken {
			j.sources[name] = place{i, from}
			j.order = append(j.order, name)
			return name, nil
		}
		same, err := j.equal(at, place{i, from})
		if err != nil || same {
			return name, err
		}
		name = j.parts[i].suffix() + "." + name
	}
}

// equal compares two weights.
func (j *joiner) equal(a, b place) (bool, error) {
	if a == b {
		return true, nil
	}
	x, y := j.parts[a.part].Weights, j.parts[b.part].Weights
	first, _ := x.Info(a.name)
	second, _ := y.Info(b.name)
	if !first.Type().Equal(second.Type()) {
		return false, nil
	}
	from, err := x.Open(a.name)
	if err != nil {
		return false, err
	}
	to, err := y.Open(b.name)
	if err != nil {
		return false, err
	}
	const chunk = int64(4 << 20)
	for off := int64(0); off < from.Size(); off += chunk {
		n := min(chunk, from.Size()-off)
		one, err := from.View(off, n)
		if err != nil {
			return false, err
		}
		other, err := to.View(off, n)
		if err != nil || !bytes.Equal(one, other) {
			return false, err
		}
	}
	return true, nil
}

// clash says how two states of one name differ.
func (j *joiner) clash(i int, s, have ir.State) string {
	first, second := j.parts[j.owner[have.Name]], j.parts[i]
	if !s.Type.Equal(have.Type) {
		return fmt.Sprintf("%s %q: %s in %s, %s in %s", s.Kind, s.Name, have.Type, first.Path, s.Type, second.Path)
	}
	return fmt.Sprintf("%s %q: %s has other values than %s", s.Kind, s.Name, second.Path, first.Path)
}

const maxClashes = 20

// conflict is the diagnostic of all states that cannot be shared.
func (j *joiner) conflict() error {
	if len(j.clashes) == 0 {
		return nil
	}
	d := diag.Errorf(diag.StatesDiffer, "", "%d of the states that the files have in common are not the same", len(j.clashes)).
		Suggest("export all files from one instance of the model, with buffers such as caches as they are at the beginning; with --weights none only types must agree")
	d.Notes = slices.Clone(j.clashes[:min(len(j.clashes), maxClashes)])
	if more := len(j.clashes) - maxClashes; more > 0 {
		d.Note("and %d more", more)
	}
	return d
}

// weights joins the weights that states have; nil when no file holds any.
func (j *joiner) weights() (weights.Source, error) {
	var entries []weights.Entry
	var closers []io.Closer
	renamed := map[place]string{}
	for _, name := range j.order {
		at := j.sources[name]
		source := j.parts[at.part].Weights
		info, _ := source.Info(at.name)
		info.Name = name
		root := at.name
		if info.SameAs != "" {
			root = info.SameAs
		}
		if info.SameAs = renamed[place{at.part, root}]; info.SameAs == "" {
			renamed[place{at.part, root}] = name
		}
		entries = append(entries, weights.Entry{Info: info, Open: func() (weights.Reader, error) { return source.Open(at.name) }})
	}
	for _, p := range j.parts {
		if p.Weights != nil {
			closers = append(closers, p.Weights)
		}
	}
	if closers == nil {
		return nil, nil
	}
	return weights.NewSource(entries, closers...)
}

// renameState gives a state another name in every entry.
func renameState(p *ir.Program, old, name string) {
	for _, e := range p.Entries {
		for i := range e.Inputs {
			if e.Inputs[i].State == old {
				e.Inputs[i] = ir.Input{Name: name, State: name}
			}
		}
		for i := range e.Outputs {
			if e.Outputs[i].State == old {
				e.Outputs[i].State = name
			}
		}
	}
}
