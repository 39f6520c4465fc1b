package fuse

import (
	"slices"

	"weft/ir"
)

// A rows group evaluates its values at the elements of one row at a time. A reduction's result
// may therefore only be used at the element of its own row: along the dims that it kept.

// rowUse says how a value of a rows group relates to the row.
type rowUse struct {
	kind rowKind
	axes []int // perRow: for each dim of the value the axis of the full shape, -1 for size 1
}

type rowKind uint8

const (
	anywhere rowKind = iota // does not depend on a reduction of the group
	perRow                  // one element a row
	whole                   // an element of the full shape
	reshaped                // of the full shape, renamed by a reshape: only as the result
)

// checkRows gives the reason for which the group with j in it is no rows group; empty when it
// is, or when the group is of another kind.
func (f *fuser) checkRows(g *group, j int) string {
	if g.kind != ir.RowsGroup {
		return ""
	}
	use := map[int]rowUse{}
	for _, i := range sortedMembersWith(g, j) {
		u, reason := f.rowUseOf(g, i, use)
		if reason != "" {
			return reason
		}
		use[i] = u
	}
	if use[g.root].kind == anywhere {
		return "the kernel's result does not depend on the reduction"
	}
	return ""
}

// storesToo tells whether a rows group can take in an operation whose value is needed elsewhere too and store it as a second result: a sum
// that is normalised and goes on beside, as residuals do. Each element is read and computed once then, where one kernel would store the
// sum and the next read it again. What a kernel with a loop can end with, its own epilogue stores without a way through memory.
func (f *fuser) storesToo(g *group, j int) bool {
	op := f.ops[j]
	return g.kind == ir.RowsGroup && len(g.also) == 0 && cheap[op.Kind] && ir.SameShape(f.entry.Type(op.Results[0]).Shape, g.full) &&
		!f.endsLoop(j) && f.usedFrom(g, j)
}

// endsLoop tells whether an operation can be part of the kernel of one that takes a loop for each element.
func (f *fuser) endsLoop(j int) bool {
	for _, i := range f.producers(f.ops[j]) {
		op := f.ops[i]
		if expensive(op) || !standsAlone(op) && len(f.users[i]) == 1 && f.endsLoop(i) {
			return true
		}
	}
	return false
}

// usedFrom tells whether all uses of an operation are in g or come after it.
func (f *fuser) usedFrom(g *group, j int) bool {
	for _, u := range f.users[j] {
		switch {
		case u < 0:
			continue
		case standsAlone(f.ops[u]):
			if u < g.root {
				return false
			}
			continue
		case !g.members[u] && len(f.memberOf[u]) == 0:
			return false // its group may come before
		}
		for _, other := range f.memberOf[u] {
			if other.root < g.root {
				return false
			}
		}
		// What may be copied into several groups counts with all of its own uses.
		if u != g.root && f.repeatable(u) && !f.usedFrom(g, u) {
			return false
		}
	}
	return true
}

// onceARow tells whether j is computed from the results of a reduction that can join g with
// everything between: then it is computed once a row, however often it is used along it. They
// join, and a map becomes a rows group.
func (f *fuser) onceARow(g *group, j int) bool {
	if anchored(g) {
		return false
	}
	between, reduction := f.reductionBehind(j)
	if reduction < 0 {
		return false
	}
	t := &group{kind: g.kind, root: g.root, members: map[int]bool{}, anchor: -1, full: g.full, axes: g.axes}
	if t.kind == ir.MapGroup {
		if f.hasExpensive(g) {
			return false
		}
		f.makeRows(t, f.ops[reduction])
	}
	for i := range g.members {
		t.members[i] = true
	}
	for _, i := range between {
		t.members[i] = true
	}
	for _, i := range between {
		if !f.repeatable(i) && !f.exclusiveTo(g, t.members, i) {
			return false
		}
	}
	delete(t.members, j)
	if f.checkRows(t, j) != "" {
		return false
	}
	g.kind, g.full, g.axes = t.kind, t.full, t.axes
	for _, i := range between {
		f.join(g, i)
	}
	return true
}

// reductionBehind finds a reduction of rows that j is computed from by elementwise operations
// and changes of shape, and all operations from it to j; -1 where there is none.
func (f *fuser) reductionBehind(j int) (between []int, reduction int) {
	const limit = 32
	reduction = -1
	visited := map[int]bool{}
	var visit func(i int) bool // tells whether i depends on the reduction
	visit = func(i int) bool {
		if done, ok := visited[i]; ok || len(visited) > limit {
			return done
		}
		visited[i] = false
		op := f.ops[i]
		depends := false
		if f.reducesRows(op) {
			if reduction < 0 {
				reduction = i
			}
			depends = i == reduction
		} else if !expensive(op) && (op.Kind.Info().Class == ir.ClassElementwise || f.free(i)) {
			for _, k := range f.producers(op) {
				depends = visit(k) || depends
			}
		}
		visited[i] = depends
		if depends {
			between = append(between, i)
		}
		return depends
	}
	visit(j)
	return between, reduction
}

func sortedMembersWith(g *group, j int) []int {
	members := append(sortedMembers(g), j)
	slices.Sort(members)
	return members
}

// rowUseOf classifies one operation of the group from its operands.
func (f *fuser) rowUseOf(g *group, i int, use map[int]rowUse) (rowUse, string) {
	op := f.ops[i]
	var derived []rowUse
	for _, v := range op.Operands {
		if d, ok := f.def[v]; ok {
			if u, in := use[d]; in && u.kind != anywhere {
				derived = append(derived, u)
			}
		}
	}
	if slices.ContainsFunc(derived, func(u rowUse) bool { return u.kind == reshaped }) {
		return rowUse{}, "the rows are used in another shape"
	}
	if op.Kind == ir.OpReduce && f.reducesRows(op) {
		return f.reduceUse(g, op, derived)
	}
	if len(derived) == 0 {
		if expensive(op) {
			return rowUse{}, "it takes a loop for each element, which the kernel would repeat"
		}
		return rowUse{}, ""
	}
	first := derived[0]
	switch {
	case op.Kind.Info().Class == ir.ClassElementwise:
		for _, u := range derived {
			if u.kind != first.kind || !slices.Equal(u.axes, first.axes) {
				return rowUse{}, "it mixes elements of a row and results of the row"
			}
		}
		return first, ""
	case op.Kind == ir.OpReshape:
		return f.reshapeUse(g, i, first)
	case op.Kind == ir.OpBroadcastInDim && first.kind == perRow:
		return f.broadcastUse(g, op, first)
	}
	return rowUse{}, "it uses results of other rows"
}

func (f *fuser) reduceUse(g *group, op *ir.Op, derived []rowUse) (rowUse, string) {
	if !slices.Equal(op.Attrs.(*ir.ReduceAttrs).Axes, g.axes) || !ir.SameShape(f.entry.Type(op.Operands[0]).Shape, g.full) {
		return rowUse{}, "it reduces other rows"
	}
	if len(derived) > 0 && derived[0].kind != whole {
		return rowUse{}, "it reduces results of rows"
	}
	u := rowUse{kind: perRow}
	for axis := range g.full {
		if !slices.Contains(g.axes, axis) {
			u.axes = append(u.axes, axis)
		}
	}
	return u, ""
}

// reshapeUse: dims of size 1 come and go; the full shape may be reshaped as the last thing.
func (f *fuser) reshapeUse(g *group, i int, from rowUse) (rowUse, string) {
	op := f.ops[i]
	if from.kind == whole {
		last := len(g.axes) > 0 && g.axes[0] == len(g.full)-len(g.axes)
		if i == g.root && last {
			return rowUse{kind: reshaped}, ""
		}
		return rowUse{}, "the rows are used in another shape"
	}
	before, after := f.entry.Type(op.Operands[0]).Shape, f.entry.Type(op.Results[0]).Shape
	u := rowUse{kind: perRow}
	next := 0
	for _, d := range after {
		for next < len(before) && before[next].Is(1) {
			next++
		}
		switch {
		case d.Is(1):
			u.axes = append(u.axes, -1)
		case next < len(before) && d.Equal(before[next]):
			u.axes = append(u.axes, from.axes[next])
			next++
		case i == g.root:
			return rowUse{kind: reshaped}, ""
		default:
			return rowUse{}, "results of rows are used in another shape"
		}
	}
	return u, ""
}

// broadcastUse: results of a row spread along it, back to the full shape or to dims of size 1.
func (f *fuser) broadcastUse(g *group, op *ir.Op, from rowUse) (rowUse, string) {
	a := op.Attrs.(*ir.BroadcastAttrs)
	axes := slices.Repeat([]int{-1}, len(a.Dims))
	for i, to := range a.Axes {
		if f.entry.Type(op.Operands[0]).Shape[i].Equal(a.Dims[to]) {
			axes[to] = from.axes[i]
		}
	}
	if ir.SameShape(a.Dims, g.full) {
		for d, axis := range axes {
			spread := slices.Contains(g.axes, d) || g.full[d].Is(1)
			if axis != d && !(axis == -1 && spread) {
				return rowUse{}, "results of rows are used along other dims"
			}
		}
		return rowUse{kind: whole}, ""
	}
	for d, axis := range axes {
		if axis == -1 && !a.Dims[d].Is(1) {
			return rowUse{}, "results of rows are spread to another shape"
		}
	}
	return rowUse{perRow, axes}, ""
}
