package fuse

import (
	"slices"

	"weft/ir"
)

// fewUpdates is the number of index vectors up to which each element of a scatter's result may
// look at all of them.
const fewUpdates = 8

// updates tells whether operation i runs as a scatter kernel, which writes its updates into the
// memory of its first operand. It pays where that memory may be written over, and where there
// are many updates.
func (f *fuser) updates(i int) bool {
	op := f.ops[i]
	if op.Kind != ir.OpDynamicUpdateSlice && op.Kind != ir.OpScatter || slices.Contains(op.Operands[1:], op.Operands[0]) {
		return false
	}
	if op.Kind == ir.OpDynamicUpdateSlice {
		return f.overwritable(i)
	}
	if !Direct(f.entry, op) {
		return false
	}
	n, ok := vectors(f.entry, op).IsConst()
	return !ok || n > fewUpdates || f.overwritable(i)
}

// Direct tells whether the updates of a scatter can be written each on its own: no two lead to
// one element, or those that do are neighbours.
func Direct(e *ir.Entry, op *ir.Op) bool {
	a := op.Attrs.(*ir.ScatterAttrs)
	return a.UniqueIndices || vectors(e, op).Is(1) ||
		a.IndicesAreSorted && len(a.InputBatchingDims) == 0 && a.IndexVectorDim == 1 && e.Type(op.Operands[1]).Rank() == 2 &&
			len(a.InsertedWindowDims) == len(a.ScatterDimsToOperandDims)
}

// vectors is the number of index vectors of a scatter.
func vectors(e *ir.Entry, op *ir.Op) ir.Dim {
	n := ir.Const(1)
	for d, size := range e.Type(op.Operands[1]).Shape {
		if d != op.Attrs.(*ir.ScatterAttrs).IndexVectorDim {
			n = n.Mul(size)
		}
	}
	return n
}

// overwritable tells whether the memory of an operation's first operand is of no use after it:
// passes/memory decides in the end.
func (f *fuser) overwritable(i int) bool {
	v := f.ops[i].Operands[0]
	if d, ok := f.def[v]; ok {
		if free(f.ops[d]) {
			return false // it is not in memory
		}
		return !slices.ContainsFunc(f.users[d], func(u int) bool { return u < 0 || u > i })
	}
	k := slices.Index(f.block.Params, v)
	for u := i + 1; u < len(f.ops); u++ {
		uses := slices.Contains(f.ops[u].Operands, v)
		for _, r := range f.ops[u].Regions {
			r.Uses(func(w *ir.Value) { uses = uses || *w == v })
		}
		if uses {
			return false
		}
	}
	if k < 0 || slices.Contains(f.block.Results, v) {
		return false
	}
	if f.block != &f.entry.Body {
		return true // carried by a while
	}
	state := f.entry.Inputs[k].State
	return state != "" && slices.ContainsFunc(f.entry.Outputs, func(out ir.Output) bool { return out.State == state })
}

// refuseUpdate: what a scatter kernel writes over stays in memory, and nothing else in the
// kernel reads it.
func (f *fuser) refuseUpdate(g *group, j int) string {
	into := f.ops[g.root].Operands[0]
	switch d, ok := f.def[into]; {
	case ok && d == j:
		return "the kernel writes into its memory"
	case slices.Contains(f.ops[j].Operands, into):
		return "it reads what the kernel writes over"
	case expensive(f.ops[j]):
		return "it takes a loop for each element"
	}
	return ""
}
