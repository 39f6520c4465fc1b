package fuse

import (
	"slices"

	"weft/ir"
)

// free tells whether an operation costs nothing where its operand is in memory: it only says
// where to read.
func free(op *ir.Op) bool {
	switch op.Kind {
	case ir.OpConstant, ir.OpDim, ir.OpIota, ir.OpReshape, ir.OpBroadcastInDim, ir.OpTranspose, ir.OpSlice, ir.OpReverse:
		return true
	}
	return false
}

// free is the function of that name for operation i, but for a transpose that is undone right
// after: it says how the value is to be stored (see passes/layout).
func (f *fuser) free(i int) bool { return free(f.ops[i]) && !f.stores(i) }

// stores tells whether an operation is a transpose whose users all undo it.
func (f *fuser) stores(i int) bool {
	op := f.ops[i]
	if op.Kind != ir.OpTranspose || len(f.users[i]) == 0 {
		return false
	}
	there := op.Attrs.(*ir.TransposeAttrs).Permutation
	for _, u := range f.users[i] {
		if u < 0 || f.ops[u].Kind != ir.OpTranspose {
			return false
		}
		for axis, from := range f.ops[u].Attrs.(*ir.TransposeAttrs).Permutation {
			if there[from] != axis {
				return false
			}
		}
	}
	return true
}

// expensive tells whether one element of the result takes a loop.
func expensive(op *ir.Op) bool {
	switch op.Kind {
	case ir.OpReduce, ir.OpArgReduce, ir.OpReduceWindow, ir.OpCumulative, ir.OpDotGeneral, ir.OpConvolution, ir.OpSort, ir.OpScatter, ir.OpAttention:
		return true
	}
	return false
}

// cheap lists the elementwise operations of an instruction or two; the others are costly to
// compute again.
var cheap = map[ir.Kind]bool{ir.OpAbs: true, ir.OpNegate: true, ir.OpNot: true, ir.OpConvert: true, ir.OpBitcastConvert: true,
	ir.OpAdd: true, ir.OpSubtract: true, ir.OpMultiply: true, ir.OpMaximum: true, ir.OpMinimum: true, ir.OpAnd: true, ir.OpOr: true,
	ir.OpXor: true, ir.OpCompare: true, ir.OpSelect: true, ir.OpClamp: true}

func costly(op *ir.Op) bool {
	return op.Kind == ir.OpRng || op.Kind.Info().Class == ir.ClassElementwise && !cheap[op.Kind]
}

// contracts tells whether an operation runs as a tiled contraction: a matrix product of some
// size. Depthwise convolutions and products over a few elements are loops of a map.
func (f *fuser) contracts(op *ir.Op) bool {
	least := func(d ir.Dim, n int64) bool { return d.Bounds(f.program.Range).Max >= n }
	switch op.Kind {
	case ir.OpAttention:
		return true // decompose leaves those that have a kernel
	case ir.OpDotGeneral:
		a := op.Attrs.(*ir.DotAttrs)
		k := ir.Const(1)
		for _, d := range a.LhsContract {
			k = k.Mul(f.entry.Type(op.Operands[0]).Shape[d])
		}
		t := f.entry.Type(op.Operands[0]).DType
		return least(k, 8) && holdable(t) && !(t.IsInteger() && t.Bits() == 64) // no registers for a tile of those
	case ir.OpConvolution:
		w := f.entry.Type(op.Operands[1]).Shape
		perGroup, _ := w[0].DivExact(ir.Const(op.Attrs.(*ir.ConvolutionAttrs).Groups))
		return least(perGroup, 4) && least(ir.Product(w[1:]), 8)
	}
	return false
}

func holdable(t ir.DType) bool {
	return t.IsFloat() && t.Bits() >= 16 || t.IsInteger() && t.Bits() >= 8
}

// reducesRows tells whether a reduction runs as rows: threads share a row where its elements
// are adjacent, or where there are too few rows to give each thread its own.
func (f *fuser) reducesRows(op *ir.Op) bool {
	if op.Kind != ir.OpReduce {
		return false
	}
	shape, axes := f.entry.Type(op.Operands[0]).Shape, op.Attrs.(*ir.ReduceAttrs).Axes
	if len(axes) == 0 {
		return false
	}
	columns, rows := ir.Const(1), ir.Const(1)
	for i, d := range shape {
		if slices.Contains(axes, i) {
			columns = columns.Mul(d)
		} else {
			rows = rows.Mul(d)
		}
	}
	if n, ok := columns.IsConst(); ok && n <= 4 {
		return false
	}
	n, ok := rows.IsConst()
	return slices.Contains(axes, len(shape)-1) || ok && n < 1024
}

// expanding tells whether an operation reads an operand's element more than once.
func (f *fuser) expanding(op *ir.Op) bool {
	switch op.Kind {
	case ir.OpBroadcastInDim:
		return !f.entry.Type(op.Operands[0]).Numel().Equal(f.entry.Type(op.Results[0]).Numel())
	case ir.OpGather:
		return true
	}
	return expensive(op) && op.Kind != ir.OpReduce && op.Kind != ir.OpCumulative
}

// repeated tells whether g evaluates j's elements more than once each.
func (f *fuser) repeated(g *group, j int) bool {
	for _, u := range f.users[j] {
		if u < 0 || !g.members[u] || g.kind == ir.RowsGroup && f.reducesRows(f.ops[u]) {
			continue // a shared reduction takes each element once
		}
		if f.expanding(f.ops[u]) || u != g.root && f.repeated(g, u) {
			return true
		}
	}
	return false
}

// moved tells whether some way from j to the root does more than compute element by element or
// rename elements one to one.
func (f *fuser) moved(g *group, j int) bool {
	for _, u := range f.users[j] {
		if u < 0 || !g.members[u] {
			continue
		}
		k := f.ops[u].Kind
		oneToOne := k.Info().Class == ir.ClassElementwise || k == ir.OpReshape || k == ir.OpTranspose
		if !oneToOne || u != g.root && f.moved(g, u) {
			return true
		}
	}
	return false
}

// refuseSerial: a loop joins a map when each of its results is used once.
func (f *fuser) refuseSerial(g *group, j int) string {
	switch {
	case f.ops[j].Kind == ir.OpSort || f.ops[j].Kind == ir.OpScatter || f.ops[j].Kind == ir.OpCumulative:
		return "it is a kernel of its own"
	case g.kind != ir.MapGroup:
		return "it takes a loop for each element, which the kernel would repeat"
	case f.moved(g, j):
		return "its elements would be computed more than once"
	case f.hasExpensive(g):
		return "the kernel loops over another operation already"
	}
	return ""
}

func (f *fuser) hasExpensive(g *group) bool {
	for i := range g.members {
		if expensive(f.ops[i]) {
			return true
		}
	}
	return false
}

// refuseContraction: a contraction joins a map that is an epilogue of it.
func (f *fuser) refuseContraction(g *group, j int) string {
	switch {
	case anchored(g):
		return "the kernel has a contraction already"
	case g.kind == ir.RowsGroup:
		return "a tiled contraction does not keep whole rows on chip"
	case f.hasExpensive(g):
		return "the kernel loops over another operation already"
	}
	// Every value that depends on the contraction must be at one position of it: the same
	// reshapes and transposes applied.
	position := map[int]int{j: -1} // last operation that moved the elements
	for _, i := range sortedMembers(g) {
		op := f.ops[i]
		at, derived, same := 0, false, true
		for _, v := range op.Operands {
			if d, ok := f.def[v]; ok {
				if p, ok := position[d]; ok {
					same = same && (!derived || p == at)
					at, derived = p, true
				}
			}
		}
		switch {
		case !derived:
			continue
		case !same:
			return "its epilogue uses it at several positions"
		case op.Kind == ir.OpReshape || op.Kind == ir.OpTranspose:
			at = i
		case op.Kind.Info().Class != ir.ClassElementwise:
			return "what follows it is not computed element by element"
		}
		position[i] = at
	}
	if _, ok := position[g.root]; !ok {
		return "what follows it is not computed element by element"
	}
	g.kind, g.anchor = anchorKind(f.ops[j]), j
	return ""
}

// refusePrologue: what feeds a contraction is computed once for each tile that reads it, so
// only operations that say where to read, or convert, go into it.
func (f *fuser) refusePrologue(g *group, j int) string {
	op := f.ops[j]
	switch anchor := f.ops[g.anchor]; {
	case f.free(j):
		return ""
	case f.feeds(g, j, anchor.Operands[:min(3, len(anchor.Operands))]):
		if op.Kind == ir.OpConvert && g.kind == ir.ContractGroup && f.widens(op) {
			return ""
		}
		return "a contraction would compute it again for each tile"
	case f.feeds(g, j, anchor.Operands) && (costly(op) || expensive(op)):
		return "attention would compute its mask again for each head"
	}
	return ""
}

// widens tells whether a conversion makes elements wider, so that its operand is less to read.
// Half types are not made by a contraction's prologue: tensor cores take them from memory by
// asynchronous copies, which cannot convert.
func (f *fuser) widens(op *ir.Op) bool {
	return f.entry.Type(op.Results[0]).DType.Size() > f.entry.Type(op.Operands[0]).DType.Size() && f.entry.Type(op.Results[0]).DType.Size() > 2
}

// feeds tells whether some use of j in g leads to one of these operands of the anchor.
func (f *fuser) feeds(g *group, j int, operands []ir.Value) bool {
	for _, u := range f.users[j] {
		switch {
		case u < 0 || !g.members[u] || u > g.anchor:
		case u == g.anchor:
			if slices.ContainsFunc(operands, func(v ir.Value) bool { d, ok := f.def[v]; return ok && d == j }) {
				return true
			}
		case f.feeds(g, u, operands):
			return true
		}
	}
	return false
}

// anchored tells whether a group is built around a contraction.
func anchored(g *group) bool { return g.kind == ir.ContractGroup || g.kind == ir.AttentionGroup }

// anchorKind is the kind of group that a contraction is the anchor of.
func anchorKind(op *ir.Op) ir.Group {
	if op.Kind == ir.OpAttention {
		return ir.AttentionGroup
	}
	return ir.ContractGroup
}

// refuseReduction: a reduction joins a rows group over the same rows, or makes a map one.
func (f *fuser) refuseReduction(g *group, j int) string {
	op := f.ops[j]
	switch g.kind {
	case ir.ContractGroup, ir.AttentionGroup:
		return "a contraction does not keep whole rows on chip"
	case ir.RowsGroup:
		return f.checkRows(g, j)
	}
	if f.hasExpensive(g) {
		return "the kernel loops over another operation already"
	}
	tentative := &group{root: g.root, members: g.members, anchor: -1}
	f.makeRows(tentative, op)
	if reason := f.checkRows(tentative, j); reason != "" {
		return reason
	}
	g.kind, g.full, g.axes = tentative.kind, tentative.full, tentative.axes
	return ""
}
