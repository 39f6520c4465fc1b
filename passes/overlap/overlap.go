// Package overlap lets collectives run beside computation: each becomes a start, as early as its
// operand is there, and a collective_done just before its result is used. What a block of a divided model
// needs is so gathered while the block before it runs, and gradients are reduced while further ones
// are computed.
package overlap

import (
	"slices"

	"weft/ir"
)

// Run moves and splits the collectives of every entry. It tells whether anything changed.
func Run(p *ir.Program) (bool, error) {
	changed := false
	for _, e := range p.Entries {
		if len(p.Mesh.Axes) > 0 {
			changed = entry(e) || changed
		}
	}
	return changed, nil
}

// ahead is how many gathers of parameters may be on their way or unused before the one that is
// computed with: the memory of so many blocks is the price.
const ahead = 1

// entry rewrites a body. Control flow is a border that nothing crosses: the host decides there.
func entry(e *ir.Entry) bool {
	o := &overlapper{entry: e, def: map[ir.Value]int{}}
	changed := false
	var body, stretch []*ir.Op
	flush := func() {
		made, did := o.stretch(stretch)
		body, changed = append(body, made...), changed || did
		stretch = nil
	}
	for _, op := range e.Body.Ops {
		if op.Kind.Info().Class == ir.ClassControl {
			flush()
			body = append(body, op)
			continue
		}
		stretch = append(stretch, op)
	}
	flush()
	e.Body.Ops = body
	return changed
}

type overlapper struct {
	entry *ir.Entry
	def   map[ir.Value]int // index in the stretch of the operation that defines a value
}

// stretch rewrites operations without control flow.
func (o *overlapper) stretch(ops []*ir.Op) ([]*ir.Op, bool) {
	if !slices.ContainsFunc(ops, starts) {
		return ops, false
	}
	ops, changed := o.delayViews(ops)
	clear(o.def)
	for i, op := range ops {
		for _, v := range op.Results {
			o.def[v] = i
		}
	}
	begins := make([][]*ir.Op, len(ops)+1) // by the operation that they come before
	ends := make([][]*ir.Op, len(ops)+1)
	split := map[int]bool{}
	flights := o.flights(ops)
	for i, op := range ops {
		start, use := flights[i].start, flights[i].use
		if start == use {
			continue
		}
		a := *op.Attrs.(*ir.CollectiveAttrs)
		a.Async = true
		result := op.Results[0]
		flight := o.entry.NewValue(o.entry.Type(result))
		begins[start] = append(begins[start], &ir.Op{Kind: op.Kind, Operands: op.Operands, Results: []ir.Value{flight}, Attrs: &a, Loc: op.Loc})
		ends[use] = append(ends[use], &ir.Op{Kind: ir.OpCollectiveDone, Operands: []ir.Value{flight, op.Operands[0]}, Results: []ir.Value{result}, Loc: op.Loc})
		split[i] = true
	}
	if len(split) == 0 {
		return ops, changed
	}
	var out []*ir.Op
	for i := range len(ops) + 1 {
		out = append(append(out, ends[i]...), begins[i]...)
		if i < len(ops) && !split[i] {
			out = append(out, ops[i])
		}
	}
	return out, true
}

// flight says before which operations a collective starts and is waited for; the same for one that is not split.
type flight struct{ start, use int }

// flights decides for each operation. Of collectives one after the other all are split, so that they keep their
// order, or none, where nothing runs beside any of them.
func (o *overlapper) flights(ops []*ir.Op) []flight {
	flights := make([]flight, len(ops))
	var blocks []int // where the gathers of each block of parameters begin
	first, hides := 0, false
	for i, op := range ops {
		if !starts(op) {
			continue
		}
		f := flight{i, firstUse(ops, i)}
		if o.ready(op) < 0 { // of states alone: as early as memory allows
			if n := len(blocks); n == 0 || !onlyStarts(ops[blocks[n-1]:i]) {
				blocks = append(blocks, i)
			}
			f.start = blocks[max(0, len(blocks)-1-ahead)]
		}
		if i == 0 || !starts(ops[i-1]) {
			first, hides = i, false
		}
		hides = hides || !onlyStarts(ops[f.start:f.use])
		if flights[i] = f; f.use == i+1 && f.start == i {
			flights[i] = flight{} // used at once
		}
		if last := i+1 == len(ops) || !starts(ops[i+1]); last && !hides {
			clear(flights[first : i+1])
		}
	}
	return flights
}

// starts tells whether an operation is a collective that is not split yet.
func starts(op *ir.Op) bool {
	a, ok := op.Attrs.(*ir.CollectiveAttrs)
	return ok && !a.Async
}

// onlyStarts tells whether operations are collectives, one after the other.
func onlyStarts(ops []*ir.Op) bool {
	return !slices.ContainsFunc(ops, func(op *ir.Op) bool { return !starts(op) })
}

// delayViews moves operations that only say where elements are to just before their first use:
// they are no reason to wait for a collective.
func (o *overlapper) delayViews(ops []*ir.Op) ([]*ir.Op, bool) {
	users := map[ir.Value][]int{}
	for i, op := range ops {
		for _, v := range op.Operands {
			users[v] = append(users[v], i)
		}
	}
	place := make([]int, len(ops))
	before := make([][]*ir.Op, len(ops)+1)
	for i, op := range slices.Backward(ops) {
		if place[i] = i; !isView(op) {
			continue
		}
		place[i] = len(ops)
		for _, u := range users[op.Results[0]] {
			place[i] = min(place[i], place[u])
		}
	}
	for i, op := range ops {
		if isView(op) {
			before[place[i]] = append(before[place[i]], op)
		}
	}
	var out []*ir.Op
	for i := range len(ops) + 1 {
		out = append(out, before[i]...)
		if i < len(ops) && !isView(ops[i]) {
			out = append(out, ops[i])
		}
	}
	return out, !slices.Equal(out, ops)
}

func isView(op *ir.Op) bool {
	switch op.Kind {
	case ir.OpReshape, ir.OpTranspose, ir.OpSlice, ir.OpBroadcastInDim:
		return true
	}
	return false
}

// ready is the index of the operation in the stretch that makes the last operand; -1 for none.
func (o *overlapper) ready(op *ir.Op) int {
	last := -1
	for _, v := range op.Operands {
		if i, ok := o.def[v]; ok {
			last = max(last, i)
		}
	}
	return last
}

// firstUse is the index of the first operation that uses the result of operation i; past the end
// where none does.
func firstUse(ops []*ir.Op, i int) int {
	result := ops[i].Results[0]
	for j := i + 1; j < len(ops); j++ {
		if slices.Contains(ops[j].Operands, result) {
			return j
		}
	}
	return len(ops)
}
