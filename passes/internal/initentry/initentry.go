// Package initentry changes the init entry, which makes the prepared states of an artifact once
// at load. Passes that prepare weights share it.
package initentry

import (
	"fmt"
	"slices"

	"weft/ir"
)

// Add prepares one more state: what build makes of the state that v reads. It gives the value
// of e that reads the new state; false when v is no state that keeps its value.
func Add(p *ir.Program, e *ir.Entry, v ir.Value, build func(b *ir.Builder, v ir.Value) ir.Value) (ir.Value, bool) {
	w, ok := AddOf(p, e, []ir.Value{v}, func(b *ir.Builder, vs []ir.Value) ir.Value { return build(b, vs[0]) })
	if !ok {
		return v, false
	}
	return w, true
}

// AddOf is Add of what several states make together.
func AddOf(p *ir.Program, e *ir.Entry, vs []ir.Value, build func(b *ir.Builder, vs []ir.Value) ir.Value) (ir.Value, bool) {
	for _, v := range vs {
		if !Constant(p, e, v) {
			return ir.NoValue, false
		}
	}
	init := p.Entry(ir.InitEntry)
	if init == nil {
		init = &ir.Entry{Name: ir.InitEntry}
		p.Entries = append(p.Entries, init)
	}
	var sources []ir.Value
	for _, v := range vs {
		state := e.Inputs[slices.Index(e.Body.Params, v)].State
		sources = append(sources, valueInInit(p, init, state, e.Type(v)))
	}
	made := build(ir.NewBuilder(p, init), sources)
	name := unusedName(p)
	t := init.Type(made)
	p.States = append(p.States, ir.State{Name: name, Type: t, Kind: ir.Prepared})
	init.AddOutput(name, name, made)
	return e.AddStateInput(name, t), true
}

// Constant tells whether a value of an entry reads a state of a fixed size that no run changes.
func Constant(p *ir.Program, e *ir.Entry, v ir.Value) bool {
	i := slices.Index(e.Body.Params, v)
	if i < 0 || e.Inputs[i].State == "" || e.Name == ir.InitEntry {
		return false
	}
	_, fixed := e.Type(v).ConstShape()
	return fixed && !writes(p, e.Inputs[i].State)
}

// writes tells whether some entry but init writes a state.
func writes(p *ir.Program, state string) bool {
	for _, e := range p.Entries {
		if e.Name != ir.InitEntry && slices.ContainsFunc(e.Outputs, func(o ir.Output) bool { return o.State == state }) {
			return true
		}
	}
	return false
}

// valueInInit gives a state's value in init: what it prepares there, or what it reads.
func valueInInit(p *ir.Program, init *ir.Entry, state string, t ir.Type) ir.Value {
	for i, o := range init.Outputs {
		if o.State == state {
			return init.Body.Results[i]
		}
	}
	for i, in := range init.Inputs {
		if in.State == state {
			return init.Body.Params[i]
		}
	}
	return init.AddStateInput(state, t)
}

func unusedName(p *ir.Program) string {
	for n := 0; ; n++ {
		if name := fmt.Sprintf("prepared.%d", n); p.State(name) == nil {
			return name
		}
	}
}

// Prune drops the states that entries read but do not use, and the prepared ones that no entry
// reads any more.
func Prune(p *ir.Program) {
	read := map[string]bool{}
	for _, e := range p.Entries {
		if e.Name == ir.InitEntry {
			continue
		}
		PruneEntry(e)
		for _, in := range e.Inputs {
			read[in.State] = true
		}
	}
	init := p.Entry(ir.InitEntry)
	if init == nil {
		return
	}
	var outputs []ir.Output
	var results []ir.Value
	for i, o := range init.Outputs {
		if read[o.State] {
			outputs, results = append(outputs, o), append(results, init.Body.Results[i])
		}
	}
	init.Outputs, init.Body.Results = outputs, results
	p.States = slices.DeleteFunc(p.States, func(s ir.State) bool { return s.Kind == ir.Prepared && !read[s.Name] })
	init.Body.DropDead()
	PruneEntry(init)
	if len(outputs) == 0 {
		p.Entries = slices.DeleteFunc(p.Entries, func(e *ir.Entry) bool { return e == init })
	}
}

// PruneEntry drops the states that an entry reads but no longer uses; it tells whether there were any.
func PruneEntry(e *ir.Entry) bool {
	used := map[ir.Value]bool{}
	e.Body.Uses(func(v *ir.Value) { used[*v] = true })
	var inputs []ir.Input
	var params []ir.Value
	for i, v := range e.Body.Params {
		if e.Inputs[i].State == "" || used[v] {
			inputs, params = append(inputs, e.Inputs[i]), append(params, v)
		}
	}
	dropped := len(params) < len(e.Body.Params)
	e.Inputs, e.Body.Params = inputs, params
	return dropped
}
