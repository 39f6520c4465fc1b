package shard

import (
	"slices"

	"weft/ir"
)

// analysis decides how the values of an entry are divided. It starts from what is fixed (states,
// inputs) and from choices of the strategies, and carries divisions over operations in both
// directions until nothing changes. The first division of a dim stays.
type analysis struct {
	*partitioner
	e     *ir.Entry
	want  map[ir.Value]ir.Sharding
	shut  map[ir.Value]func(axis string) bool // axes that may not divide a value
	mute  map[ir.Value]bool                   // values whose division is not carried on
	def   map[ir.Value]*ir.Op
	users map[ir.Value][]*ir.Op
	queue []*ir.Op
	in    map[*ir.Op]bool // is in the queue
	known map[*ir.Op]bool // operations that no input or state decides about
	trial []change        // what changed since a choice that may be taken back
}

// change is the division of a value before it changed.
type change struct {
	v   ir.Value
	old ir.Sharding
}

func newAnalysis(pt *partitioner, e *ir.Entry) *analysis {
	a := &analysis{partitioner: pt, e: e, want: map[ir.Value]ir.Sharding{}, shut: map[ir.Value]func(string) bool{}, mute: map[ir.Value]bool{},
		def: map[ir.Value]*ir.Op{}, users: map[ir.Value][]*ir.Op{}, in: map[*ir.Op]bool{}, known: map[*ir.Op]bool{}}
	for _, op := range e.Body.Ops {
		for _, v := range op.Results {
			a.def[v] = op
		}
		for i, v := range op.Operands {
			if !slices.Contains(op.Operands[:i], v) {
				a.users[v] = append(a.users[v], op)
			}
		}
	}
	return a
}

// of is the division of a value; whole where nothing was decided.
func (a *analysis) of(v ir.Value) ir.Sharding {
	if s := a.want[v]; s != nil {
		return s
	}
	return ir.Replicated(shapeOf(a.e, v))
}

// set gives a value a division and looks at its neighbours again.
func (a *analysis) set(v ir.Value, s ir.Sharding) {
	a.trial = append(a.trial, change{v, a.want[v]})
	a.want[v] = s
	if op := a.def[v]; op != nil {
		a.enqueue(op)
	}
	for _, op := range a.users[v] {
		a.enqueue(op)
	}
}

func (a *analysis) enqueue(op *ir.Op) {
	if !a.in[op] {
		a.in[op] = true
		a.queue = append(a.queue, op)
	}
}

// divide divides dim d of a value like parts, as far as the value allows it. It tells whether
// the value changed.
func (a *analysis) divide(v ir.Value, d int, parts []ir.Part) bool {
	cur := a.of(v)
	if !divided(parts) || !sizeOf(parts).Equal(shapeOf(a.e, v)[d]) {
		return false
	}
	here, used := axesOf(cur[d]), cur.Axes()
	shut := a.shut[v]
	parts = a.without(parts, func(axis string) bool {
		return slices.Contains(used, axis) && !slices.Contains(here, axis) || shut != nil && shut(axis)
	})
	if len(axesOf(parts)) <= len(here) {
		return false
	}
	// More axes may come to a dim that is divided, if they leave its division as it is.
	rest := a.without(parts, func(axis string) bool { return !slices.Contains(here, axis) })
	if len(here) > 0 && !(ir.Sharding{rest}).Equal(cur[d:d+1]) {
		return false
	}
	next := slices.Clone(cur)
	next[d] = parts
	a.set(v, next)
	return true
}

// propagate carries divisions on until nothing changes.
func (a *analysis) propagate() {
	for len(a.queue) > 0 {
		op := a.queue[0]
		a.queue, a.in[op] = a.queue[1:], false
		if r := ruleOf(a.e, op); r != nil {
			a.byRule(op, r)
		} else if m, ok := moves[op.Kind]; ok {
			m.propagate(a, op)
		}
	}
}

// byRule gives all dims of a factor the division that one of them has: of those over the most axes the first,
// results first.
func (a *analysis) byRule(op *ir.Op, r *rule) {
	parts := make([][]ir.Part, r.factors)
	each := func(visit func(v ir.Value, d, f int)) {
		for i, v := range op.Results {
			for d, f := range r.results[i] {
				visit(v, d, f)
			}
		}
		for i, v := range op.Operands {
			for d, f := range r.operands[i] {
				visit(v, d, f)
			}
		}
	}
	each(func(v ir.Value, d, f int) {
		if f >= 0 && len(axesOf(a.of(v)[d])) > len(axesOf(parts[f])) && !a.mute[v] {
			parts[f] = a.of(v)[d]
		}
	})
	each(func(v ir.Value, d, f int) {
		if f >= 0 && parts[f] != nil && (a.def[v] == op || !a.repeats(v)) {
			a.divide(v, d, parts[f])
		}
	})
}

// repeats tells whether a value is repeated elements, or known, with several users. It takes no division from
// a user: that of one layer would become that of all, and each user can have the elements anew.
func (a *analysis) repeats(v ir.Value) bool {
	op := a.def[v]
	return op != nil && len(a.users[v]) > 1 && (op.Kind == ir.OpBroadcastInDim || a.isKnown(op))
}

// isKnown tells whether an operation computes, element by element, from constants and sizes alone.
func (a *analysis) isKnown(op *ir.Op) bool {
	if k, ok := a.known[op]; ok {
		return k
	}
	c := op.Kind.Info().Class
	k := len(op.Results) == 1 && (c == ir.ClassSource || c == ir.ClassElementwise || c == ir.ClassIndex)
	for _, v := range op.Operands {
		k = k && a.def[v] != nil && a.isKnown(a.def[v])
	}
	a.known[op] = k
	return k
}

// move is an operation whose dims are not related one to one.
type move struct {
	propagate func(a *analysis, op *ir.Op)
	// operands gives the divisions that operands must have for a result of a division, and that
	// result's division, of which axes that cannot be had are dropped.
	operands func(pt *partitioner, e *ir.Entry, op *ir.Op, result ir.Sharding) (operands []ir.Sharding, fits ir.Sharding)
}

var moves = map[ir.Kind]move{
	ir.OpReshape:     {propagateReshape, reshapeOperands},
	ir.OpSlice:       {propagateCut, cutOperands},
	ir.OpPad:         {propagateCut, cutOperands},
	ir.OpConcatenate: {propagateConcatenate, concatenateOperands},
	ir.OpAttention:   {propagateAttention, attentionOperands},
}

func (a *analysis) divideAll(v ir.Value, s ir.Sharding) {
	for d, parts := range s {
		a.divide(v, d, parts)
	}
}

func propagateReshape(a *analysis, op *ir.Op) {
	in, out := op.Operands[0], op.Results[0]
	a.divideAll(out, a.regroup(a.of(in), shapeOf(a.e, out)))
	a.divideAll(in, a.regroup(a.of(out), shapeOf(a.e, in)))
}

func reshapeOperands(pt *partitioner, e *ir.Entry, op *ir.Op, result ir.Sharding) ([]ir.Sharding, ir.Sharding) {
	operand := pt.regroup(result, shapeOf(e, op.Operands[0]))
	return []ir.Sharding{operand}, pt.regroup(operand, shapeOf(e, op.Results[0]))
}

// joinedStretches gives, for parts of one of the tensors that a concatenation joins or of the result, the
// stretch that they divide: all that is joined must consist of such stretches.
func joinedStretches(e *ir.Entry, op *ir.Op, parts []ir.Part) (size ir.Dim, inner []ir.Part, ok bool) {
	axis := op.Attrs.(*ir.AxisAttrs).Axis
	size, inner = stretchOf(parts)
	for _, v := range op.Operands {
		if _, whole := shapeOf(e, v)[axis].DivExact(size); !whole || size.Is(0) {
			return size, inner, false
		}
	}
	return size, inner, divided(parts)
}

func propagateConcatenate(a *analysis, op *ir.Op) {
	axis, out := op.Attrs.(*ir.AxisAttrs).Axis, op.Results[0]
	all := append(slices.Clone(op.Operands), out)
	for _, from := range append([]ir.Value{out}, op.Operands...) {
		for _, to := range all {
			for d, parts := range a.of(from) {
				if d != axis {
					a.divide(to, d, parts)
				} else if size, inner, ok := joinedStretches(a.e, op, parts); ok {
					count, _ := shapeOf(a.e, to)[d].DivExact(size)
					a.divide(to, d, a.blocks(count, inner))
				}
			}
		}
	}
}

func concatenateOperands(pt *partitioner, e *ir.Entry, op *ir.Op, result ir.Sharding) ([]ir.Sharding, ir.Sharding) {
	axis, fits := op.Attrs.(*ir.AxisAttrs).Axis, slices.Clone(result)
	size, inner, ok := joinedStretches(e, op, result[axis])
	if !ok {
		fits[axis] = whole(shapeOf(e, op.Results[0])[axis])
	}
	var operands []ir.Sharding
	for _, v := range op.Operands {
		s, n := slices.Clone(fits), shapeOf(e, v)[axis]
		if s[axis] = whole(n); ok {
			count, _ := n.DivExact(size)
			s[axis] = pt.blocks(count, inner)
		}
		operands = append(operands, s)
	}
	return operands, fits
}

// heads is how many query heads share a key head.
func heads(e *ir.Entry, op *ir.Op) ir.Dim {
	r, ok := shapeOf(e, op.Operands[0])[1].DivExact(shapeOf(e, op.Operands[1])[1])
	if !ok {
		panic("BUG: query heads are no multiple of key heads")
	}
	return r
}

// queryHeads is the division of query heads for one of key heads.
func (pt *partitioner) queryHeads(parts []ir.Part, each ir.Dim) []ir.Part {
	return pt.normal(append(slices.Clone(parts), ir.Part{Size: each}))
}

// keyHeads is the division of key heads for one of query heads: each rank has the key heads of
// its query heads; nil where the ranks would share some.
func (pt *partitioner) keyHeads(parts []ir.Part, each ir.Dim, keys ir.Dim) []ir.Part {
	if each.Is(1) {
		return parts
	}
	got := pt.regroup(ir.Sharding{parts}, []ir.Dim{keys, each})
	if !slices.Equal(axesOf(got[0]), axesOf(parts)) {
		return nil
	}
	return got[0]
}

func propagateAttention(a *analysis, op *ir.Op) {
	q, out, each := op.Operands[0], op.Results[0], heads(a.e, op)
	keys := shapeOf(a.e, op.Operands[1])[1]
	all := append(slices.Clone(op.Operands), out)
	for _, v := range all { // batch
		for _, w := range all {
			if shapeOf(a.e, v)[0].Equal(shapeOf(a.e, w)[0]) {
				a.divide(w, 0, a.of(v)[0])
			}
		}
	}
	for _, v := range []ir.Value{out, q} {
		for _, w := range []ir.Value{out, q} {
			a.divide(w, 1, a.of(v)[1])
		}
		if parts := a.keyHeads(a.of(v)[1], each, keys); parts != nil {
			a.divide(op.Operands[1], 1, parts)
			a.divide(op.Operands[2], 1, parts)
		}
	}
	for _, v := range op.Operands[1:3] {
		if divided(a.of(v)[1]) {
			a.divide(out, 1, a.queryHeads(a.of(v)[1], each))
		}
	}
	if len(op.Operands) == 4 && shapeOf(a.e, op.Operands[3])[1].Equal(shapeOf(a.e, q)[1]) {
		a.divide(op.Operands[3], 1, a.of(out)[1])
	}
}

func attentionOperands(pt *partitioner, e *ir.Entry, op *ir.Op, result ir.Sharding) ([]ir.Sharding, ir.Sharding) {
	fits := ir.Replicated(shapeOf(e, op.Results[0]))
	fits[0], fits[1] = result[0], result[1]
	keys := pt.keyHeads(result[1], heads(e, op), shapeOf(e, op.Operands[1])[1])
	if keys == nil {
		fits[1] = whole(shapeOf(e, op.Results[0])[1])
		keys = whole(shapeOf(e, op.Operands[1])[1])
	}
	operands := make([]ir.Sharding, len(op.Operands))
	for i, v := range op.Operands {
		operands[i] = ir.Replicated(shapeOf(e, v))
		if i < 3 || shapeOf(e, v)[0].Equal(shapeOf(e, op.Results[0])[0]) {
			operands[i][0] = fits[0]
		}
		switch {
		case i == 1 || i == 2:
			operands[i][1] = keys
		case i == 0 || shapeOf(e, v)[1].Equal(shapeOf(e, op.Results[0])[1]):
			operands[i][1] = fits[1]
		}
	}
	return operands, fits
}
