// Package masks reads masks of attention that are functions of positions alone. Models that were traced carry them as
// comparisons of counted positions; the causal rule among them becomes an attribute, which lets kernels leave out hidden keys, what
// is always true goes, and only the rest stays an operand.
//
// Values are read by abstract interpretation: the element of a value at a point is followed back through the operations
// that make it, with coordinates that are affine functions of batch, head, query and key. Sizes may be symbols. What
// is said of a value holds at every point, for every size in the ranges of the program's symbols.
//
// Only bool masks are read. A key that one hides has no weight, as under the causal rule, whatever its score is; an additive
// mask of minus infinity makes NaN of a score that is infinite or NaN.
package masks

import (
	"fmt"
	"slices"

	"weft/ir"
)

// Run rewrites the attention of every entry. It tells whether anything changed.
func Run(p *ir.Program) (bool, error) {
	readers := map[*ir.Entry]*reader{}
	for _, e := range p.Entries {
		readers[e] = &reader{interpreter: newInterpreter(p, e), rests: map[where]ir.Value{}, axes: map[string]form{}}
	}
	changed, err := ir.Replace(p, func(b *ir.Builder, op *ir.Op) ([]ir.Value, bool) { return readers[b.Entry].attention(b, op) })
	if changed && err == nil {
		for _, e := range p.Entries {
			e.Body.DropDead()
		}
	}
	return changed, err
}

// reader rewrites the attention of an entry.
type reader struct {
	*interpreter
	axes  map[string]form    // coordinates of batch, heads, queries and keys by axis and size
	rests map[where]ir.Value // what is left of masks
}

// where is a mask in a block, and which of its conjuncts stay.
type where struct {
	block *ir.Block
	mask  ir.Value
	stay  string
}

// attention gives the result of an attention that says more by attributes, or has less of a mask.
func (r *reader) attention(b *ir.Builder, op *ir.Op) ([]ir.Value, bool) {
	if op.Kind != ir.OpAttention || len(op.Operands) < 4 || r.defs[op.Results[0]] != op || r.entry.Type(op.Operands[3]).DType != ir.Bool {
		return nil, false
	}
	r.left = patience
	mask, point := op.Operands[3], r.point(op)
	rule := newRule(op, r.entry, point)
	all := r.conjuncts(mask, nil)
	r.left = patience
	for i := range all {
		all[i].value = r.conjunct(all[i], r.maskPoint(mask, point))
		for _, f := range all[i].value.halves {
			rule.take(&r.space, f)
		}
	}
	var stay []conjunct
	kept := ""
	for i, c := range all {
		if c.value.kind != truth || !r.implies(rule.value(), c.value) {
			stay, kept = append(stay, c), kept+fmt.Sprintf(" %d", i)
		}
	}
	if rule.attrs == *op.Attrs.(*ir.AttentionAttrs) && len(stay) == len(all) {
		return nil, false
	}
	operands := slices.Clone(op.Operands[:3])
	switch key := (where{b.Block, mask, kept}); {
	case len(stay) == len(all):
		operands = append(operands, mask)
	case len(stay) > 0:
		if _, ok := r.rests[key]; !ok {
			r.rests[key] = r.rest(b, stay)
		}
		operands = append(operands, r.rests[key])
	}
	return []ir.Value{b.Attention(&rule.attrs, operands...)}, true
}

// point has the coordinates of batch, head, query and key.
func (r *reader) point(op *ir.Op) []form {
	q, k := r.shape(op, 0), r.shape(op, 1)
	point := make([]form, 4)
	for axis, size := range []ir.Dim{q[0], q[1], q[2], k[2]} {
		name := fmt.Sprintf("%d %s", axis, size)
		if _, ok := r.axes[name]; !ok {
			r.axes[name] = r.coordinate(size)
		}
		point[axis] = r.axes[name]
	}
	return point
}

// maskPoint is where a mask, which may have one element along a dim, is read at a point.
func (r *reader) maskPoint(mask ir.Value, point []form) []form {
	at := slices.Clone(point)
	for d, size := range r.entry.Type(mask).Shape {
		if size.Is(1) {
			at[d] = form{}
		}
	}
	return at
}

// conjunct is one of the bools that a mask is the conjunction of: moved by operations, of which the last is the
// first to apply.
type conjunct struct {
	v     ir.Value
	moves []*ir.Op
	value value
}

// mostConjuncts is into how many bools a mask is taken apart: each operation may double them.
const mostConjuncts = 100

// conjuncts takes a value apart that moves are applied to.
func (r *reader) conjuncts(v ir.Value, moves []*ir.Op) []conjunct {
	op := r.defs[v]
	switch {
	case op == nil || r.left <= 0:
	case op.Kind == ir.OpAnd:
		r.left -= patience / mostConjuncts
		return append(r.conjuncts(op.Operands[0], moves), r.conjuncts(op.Operands[1], moves)...)
	case onlyMoves(op.Kind):
		if inner := r.conjuncts(op.Operands[0], append(slices.Clone(moves), op)); len(inner) > 1 {
			return inner
		}
	}
	return []conjunct{{v: v, moves: moves}}
}

// conjunct is what is known of a conjunct at a point of the mask.
func (r *reader) conjunct(c conjunct, point []form) value {
	for _, op := range c.moves {
		from, ok := r.source(op, point)
		if !ok {
			return value{}
		}
		point = from
	}
	return r.at(c.v, point)
}

// rest makes the mask of the conjuncts that stay, of one element along the dims where all of them are the same.
func (r *reader) rest(b *ir.Builder, stay []conjunct) ir.Value {
	values, dims := make([]ir.Value, len(stay)), ir.Consts(1, 1, 1, 1)
	for i, c := range stay {
		v := c.v
		for _, op := range slices.Backward(c.moves) {
			v = b.Op(op.Kind, op.Attrs, nil, v)[0]
			r.defs[v] = b.Block.Ops[len(b.Block.Ops)-1]
		}
		for op := r.defs[v]; op != nil && op.Kind == ir.OpBroadcastInDim && b.Rank(op.Operands[0]) == 4; op = r.defs[v] {
			v = op.Operands[0]
		}
		for d, size := range b.Shape(v) {
			if !size.Is(1) {
				dims[d] = size
			}
		}
		values[i] = v
	}
	all := ir.NoValue
	for _, v := range values {
		if v = b.BroadcastTo(v, dims); all == ir.NoValue {
			all = v
		} else {
			all = b.Binary(ir.OpAnd, all, v)
		}
	}
	return all
}

// causal is the rule by which an attention's attributes hide keys, and how it may become stronger.
type causal struct {
	attrs   ir.AttentionAttrs
	plain   form // at least 0 where a query sees a key under the rule that counts from the first positions
	aligned form // or from the last ones
}

func newRule(op *ir.Op, e *ir.Entry, point []form) *causal {
	queries, keys := e.Type(op.Operands[0]).Shape[2], e.Type(op.Operands[1]).Shape[2]
	plain := point[2].add(point[3], -1)
	return &causal{*op.Attrs.(*ir.AttentionAttrs), plain, plain.plus(keys.Sub(queries))}
}

// value is what the attributes let queries see.
func (c *causal) value() value {
	switch {
	case !c.attrs.Causal:
		return flag(true)
	case c.attrs.AlignEnd:
		return value{kind: truth, halves: []form{c.aligned}}
	}
	return value{kind: truth, halves: []form{c.plain}}
}

// take lets the attributes say that f is at least 0, where they can and what they say already follows from it.
func (c *causal) take(s *space, f form) {
	if !s.implies(value{kind: truth, halves: []form{f}}, c.value()) {
		return
	}
	switch {
	case f.equal(c.plain):
		c.attrs.Causal, c.attrs.AlignEnd = true, false
	case f.equal(c.aligned):
		c.attrs.Causal, c.attrs.AlignEnd = true, true
	}
}
