package ir

// updates checks rule V16 for a block that is not a kernel's. home says for a parameter of the
// block in whose place its successor must be when the block ends; nil where nothing may be.
func (v *verifier) updates(b *Block, home func(param int) (Value, bool)) {
	last := b.LastUses()
	here := map[Value]bool{}
	for i, op := range b.Ops {
		if k, ok := op.Overwritten(); ok {
			v.update(b, op, k, last[op.Operands[k]] > i, here[op.Operands[k]], home)
		}
		v.donated(op)
		for _, r := range op.Results {
			here[r] = true
		}
		if op.Kind == OpKernel {
			continue
		}
		for n, r := range op.Regions {
			body := op.Kind == OpWhile && n == 1
			v.updates(r, func(param int) (Value, bool) {
				if !body {
					return 0, false
				}
				return r.Results[param], true
			})
		}
	}
}

// update checks an operation that may write into the memory of its operand k.
func (v *verifier) update(b *Block, op *Op, k int, usedAfter, here bool, home func(int) (Value, bool)) {
	x, result := op.Operands[k], op.Results[0]
	at := v.placeOf(result)
	if v.placeOf(x) != at || at == (Place{}) {
		return // another place: the plan copies what a kernel updates
	}
	if usedAfter {
		v.opFail(op, "V16", "%s is used after the operation that writes into its memory", v.name(x))
	}
	for i, other := range op.Operands {
		if i != k && other == x {
			v.opFail(op, "V16", "%s is read by the operation that writes into its memory", v.name(x))
		}
	}
	if here {
		return
	}
	for i, p := range b.Params {
		if p != x {
			continue
		}
		if next, ok := home(i); !ok || v.placeOf(next) != at {
			v.opFail(op, "V16", "%s is written over, but what replaces it is not in its place", v.name(x))
		}
		return
	}
	v.opFail(op, "V16", "%s of another block is written over", v.name(x))
}

// donated checks that values which lie in an input replace the state that it reads.
func (v *verifier) donated(op *Op) {
	for _, r := range op.Results {
		at := v.placeOf(r)
		if at.Kind != InInput || at.Index >= len(v.e.Inputs) {
			continue
		}
		if next, ok := v.successor(at.Index); !ok || v.placeOf(next) != at {
			v.opFail(op, "V16", "%s is placed in an input that no output replaces there", v.name(r))
		}
	}
}

func (v *verifier) placeOf(x Value) Place {
	if m := v.e.Memory; int(x) < len(m.Places) {
		return m.Places[x]
	}
	return Place{}
}

// successor is the output that replaces the state which an input reads.
func (v *verifier) successor(input int) (Value, bool) {
	state := v.e.Inputs[input].State
	for i, out := range v.e.Outputs {
		if state != "" && out.State == state {
			return v.e.Body.Results[i], true
		}
	}
	return 0, false
}
