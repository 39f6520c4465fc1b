package fx

import (
	"slices"

	"weft/ir"
)

// sweep removes operations and state inputs that no output needs, the states that no input
// reads, and renumbers the values in order of definition.
func sweep(p *ir.Program, e *ir.Entry) {
	live := make([]bool, len(e.Types))
	for _, v := range e.Body.Results {
		live[v] = true
	}
	sweepBlock(&e.Body, live)
	var inputs []ir.Input
	var params []ir.Value
	used := map[string]bool{}
	for i, in := range e.Inputs {
		if in.State != "" && !live[e.Body.Params[i]] && !slices.ContainsFunc(e.Outputs, func(o ir.Output) bool { return o.State == in.State }) {
			continue
		}
		used[in.State] = true
		inputs, params = append(inputs, in), append(params, e.Body.Params[i])
	}
	e.Inputs, e.Body.Params = inputs, params
	p.States = slices.DeleteFunc(p.States, func(s ir.State) bool { return !used[s.Name] })
	renumber(e)
}

// sweepBlock keeps the operations of a block whose results are live, last to first. All
// operations of imported programs are free of effects.
func sweepBlock(block *ir.Block, live []bool) {
	kept := block.Ops[:0:0]
	for _, op := range slices.Backward(block.Ops) {
		if !slices.ContainsFunc(op.Results, func(v ir.Value) bool { return live[v] }) {
			continue
		}
		for _, v := range op.Operands {
			live[v] = true
		}
		for _, r := range op.Regions {
			for _, v := range r.Results {
				live[v] = true
			}
			sweepBlock(r, live)
		}
		kept = append(kept, op)
	}
	slices.Reverse(kept)
	block.Ops = kept
}

// renumber makes values dense.
func renumber(e *ir.Entry) {
	to := make([]ir.Value, len(e.Types))
	var types []ir.Type
	define := func(values []ir.Value) {
		for i, v := range values {
			to[v] = ir.Value(len(types))
			types = append(types, e.Types[v])
			values[i] = to[v]
		}
	}
	use := func(values []ir.Value) {
		for i, v := range values {
			values[i] = to[v]
		}
	}
	var visit func(block *ir.Block)
	visit = func(block *ir.Block) {
		define(block.Params)
		for _, op := range block.Ops {
			use(op.Operands)
			for _, r := range op.Regions {
				visit(r)
			}
			define(op.Results)
		}
		use(block.Results)
	}
	visit(&e.Body)
	e.Types = types
}
