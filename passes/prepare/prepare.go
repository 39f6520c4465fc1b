// Package prepare moves what depends on weights alone into the init entry, which runs once
// when an artifact is loaded: folded norms, converted and transposed weights. Its results are
// states of kind prepared. A compile never looks at weights, so one artifact serves every
// checkpoint of a model.
package prepare

import (
	"fmt"
	"slices"

	"weft/ir"
	"weft/passes/internal/initentry"
)

// growth is how many times larger than the weights it is made from a prepared state may be.
const growth = 4

// Run moves work out of every entry. It tells whether anything changed.
func Run(p *ir.Program) (bool, error) {
	if p.Entry(ir.InitEntry) != nil {
		return false, nil
	}
	written := map[string]bool{}
	for _, e := range p.Entries {
		for _, o := range e.Outputs {
			written[o.State] = true
		}
	}
	m := &mover{program: p, written: written, init: &ir.Entry{Name: ir.InitEntry}, params: map[string]ir.Value{},
		made: map[string][]ir.Value{}, states: map[ir.Value]string{}}
	entries := slices.Clone(p.Entries)
	changed := false
	var err error
	for _, e := range entries {
		if err = ir.Try(func() { m.entry(e) }); err != nil {
			return true, err
		}
		changed = e.Body.DropDead() || changed
		changed = initentry.PruneEntry(e) || changed
	}
	if len(m.init.Outputs) == 0 {
		return changed, nil
	}
	p.Entries = append(p.Entries, m.init)
	return true, nil
}

type mover struct {
	program *ir.Program
	written map[string]bool // states that an entry writes
	init    *ir.Entry
	params  map[string]ir.Value   // states read by init
	made    map[string][]ir.Value // results of init's operations by their text: entries share what both prepare
	states  map[ir.Value]string   // of init: the prepared state that holds a value
	named   int                   // numbers of prepared states that are taken
}

// source tells how a value relates to weights.
type source uint8

const (
	other   source = iota
	neutral        // constants: available everywhere
	weights        // a function of weights and constants
)

// entry moves the operations of one entry's body.
func (m *mover) entry(e *ir.Entry) {
	from := map[ir.Value]source{}
	bytes := map[ir.Value]int64{} // of the weights that a value is made from
	for i, v := range e.Body.Params {
		if s := e.Inputs[i].State; s != "" && !m.written[s] {
			if n, ok := e.Type(v).Bytes().IsConst(); ok {
				from[v], bytes[v] = weights, n
			}
		}
	}
	defs := map[ir.Value]*ir.Op{}
	for _, op := range e.Body.Ops {
		s, size := m.classify(e, op, from, bytes)
		for _, r := range op.Results {
			from[r], bytes[r] = s, size
			defs[r] = op
		}
	}
	m.extract(e, from, defs)
}

// classify tells whether an operation may move: all operands are weights or constants, and the
// result has a fixed size that does not grow far beyond the weights.
func (m *mover) classify(e *ir.Entry, op *ir.Op, from map[ir.Value]source, bytes map[ir.Value]int64) (source, int64) {
	if c := op.Kind.Info().Class; c == ir.ClassControl || c == ir.ClassCollective {
		return other, 0
	}
	s, size := neutral, int64(0)
	for _, v := range op.Operands {
		switch from[v] {
		case other:
			return other, 0
		case weights:
			s, size = weights, size+bytes[v]
		}
	}
	if op.Kind == ir.OpDim {
		return other, 0
	}
	for _, r := range op.Results {
		n, ok := e.Type(r).Bytes().IsConst()
		if !ok || s == weights && n > growth*size {
			return other, 0
		}
	}
	return s, size
}

// extract makes prepared states of the moved values that the rest of the entry uses. A view
// (broadcast, reshape) of weights stays where it is: it costs nothing there.
func (m *mover) extract(e *ir.Entry, from map[ir.Value]source, defs map[ir.Value]*ir.Op) {
	replaced := map[ir.Value]ir.Value{}
	inputs := map[string]ir.Value{} // by prepared state
	use := func(v *ir.Value) {
		if from[*v] != weights || defs[*v] == nil || isView(defs, *v) {
			return
		}
		w, ok := replaced[*v]
		if !ok {
			state := m.prepare(e, defs, *v)
			if w, ok = inputs[state]; !ok {
				w = e.AddStateInput(state, e.Type(*v))
				inputs[state] = w
			}
			replaced[*v] = w
		}
		*v = w
	}
	for _, op := range e.Body.Ops {
		if len(op.Results) > 0 && from[op.Results[0]] == weights && !isView(defs, op.Results[0]) {
			continue // moved, with its operands
		}
		for i := range op.Operands {
			use(&op.Operands[i])
		}
		for _, r := range op.Regions {
			r.Uses(use)
		}
	}
	for i := range e.Body.Results {
		if e.Outputs[i].State == "" {
			use(&e.Body.Results[i])
		}
	}
}

// isView tells whether a value only shows a parameter or constant in another shape.
func isView(defs map[ir.Value]*ir.Op, v ir.Value) bool {
	for {
		op := defs[v]
		if op == nil {
			return true
		}
		if op.Kind != ir.OpReshape && op.Kind != ir.OpBroadcastInDim {
			return op.Kind.Info().Class == ir.ClassSource
		}
		v = op.Operands[0]
	}
}

// prepare copies the computation of v into init and returns the state that holds it.
func (m *mover) prepare(e *ir.Entry, defs map[ir.Value]*ir.Op, v ir.Value) string {
	copied := map[ir.Value]ir.Value{}
	w := m.copyInto(e, defs, v, copied)
	if name, ok := m.states[w]; ok {
		return name
	}
	name := fmt.Sprintf("prepared.%d", m.named)
	for m.program.State(name) != nil { // the model's own
		m.named++
		name = fmt.Sprintf("prepared.%d", m.named)
	}
	m.named++
	m.program.States = append(m.program.States, ir.State{Name: name, Type: e.Type(v), Kind: ir.Prepared})
	m.init.AddOutput(name, name, w)
	m.states[w] = name
	return name
}

func (m *mover) copyInto(e *ir.Entry, defs map[ir.Value]*ir.Op, v ir.Value, copied map[ir.Value]ir.Value) ir.Value {
	if w, ok := copied[v]; ok {
		return w
	}
	op := defs[v]
	if op == nil {
		w := m.param(e.Inputs[slices.Index(e.Body.Params, v)].State, e.Type(v))
		copied[v] = w
		return w
	}
	n := *op
	n.Operands = make([]ir.Value, len(op.Operands))
	for i, o := range op.Operands {
		n.Operands[i] = m.copyInto(e, defs, o, copied)
	}
	text := ""
	if len(op.Regions) == 0 {
		text = fmt.Sprintf("%s %v %s", op.Kind, n.Operands, ir.AttrsText(op.Attrs))
		if results, ok := m.made[text]; ok {
			for i, r := range op.Results {
				copied[r] = results[i]
			}
			return copied[v]
		}
	}
	n.Results = make([]ir.Value, len(op.Results))
	for i, r := range op.Results {
		n.Results[i] = m.init.NewValue(e.Type(r))
		copied[r] = n.Results[i]
	}
	m.init.Body.Ops = append(m.init.Body.Ops, &n)
	if text != "" {
		m.made[text] = n.Results
	}
	return copied[v]
}

func (m *mover) param(state string, t ir.Type) ir.Value {
	v, ok := m.params[state]
	if !ok {
		v = m.init.AddStateInput(state, t)
		m.params[state] = v
	}
	return v
}
