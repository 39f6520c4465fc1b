package memory

import "weft/ir"

// homes says of a value in whose memory it ends: that of a parameter whose successor it is, or
// leads to by updates in place.
type homes map[ir.Value]ir.Value

// donated gives the new values of states that the entry reads: each may be made where the state
// lies.
func (l *lives) donated() homes {
	h := homes{}
	for i, out := range l.entry.Outputs {
		for k, in := range l.entry.Inputs {
			if out.State != "" && in.State == out.State {
				h[l.entry.Body.Results[i]] = l.entry.Body.Params[k]
			}
		}
	}
	return h
}

// updates gives the results of the scatter kernels of a block, and of its regions, the places of
// the operands that they update: where nothing uses the operand after the kernel, and where the
// operand is a parameter only if its successor comes of it. So every way to the operand's memory
// sees the old value before the kernel and the new one after it. An all_reduce is treated alike where
// it is outside of control flow: there alone the proof of all ranks tells what is in a buffer before
// it, which may differ between ranks, from what is there after it (see ir/plan).
func (l *lives) updates(b *ir.Block, home homes) {
	last := b.LastUses()
	here := map[ir.Value]bool{}
	for _, op := range b.Ops {
		for _, r := range op.Results {
			here[r] = true
		}
	}
	// takes joins a value's place to that of its successor.
	takes := func(v, successor ir.Value) {
		if p, ok := home[successor]; ok && (p == v || here[v]) {
			home[v] = p
		} else if !here[v] {
			return
		}
		l.join(v, successor)
	}
	for i := len(b.Ops) - 1; i >= 0; i-- {
		op := b.Ops[i]
		k, ok := op.Overwritten()
		ok = ok && (op.Kind == ir.OpKernel || b == &l.entry.Body)
		switch {
		case ok && last[op.Operands[k]] == i && count(op.Operands, op.Operands[k]) == 1:
			takes(op.Operands[k], op.Results[0])
		case op.Kind == ir.OpIf:
			for _, r := range op.Regions {
				l.updates(r, homes{})
			}
		case op.Kind == ir.OpWhile:
			l.carried(op, home, takes)
		}
	}
}

// carried lets a while carry a state where it lies, and update what it carries.
func (l *lives) carried(op *ir.Op, home homes, takes func(v, successor ir.Value)) {
	for i, result := range op.Results {
		if _, ok := home[result]; ok && l.uses[op.Operands[i]] == 1 {
			takes(op.Operands[i], result)
		}
	}
	l.updates(op.Regions[0], homes{})
	body := op.Regions[1]
	next := homes{}
	for i, v := range body.Results {
		if count(body.Results, v) == 1 {
			next[v] = body.Params[i]
		}
	}
	l.updates(body, next)
}

func count(values []ir.Value, v ir.Value) int {
	n := 0
	for _, other := range values {
		if other == v {
			n++
		}
	}
	return n
}
