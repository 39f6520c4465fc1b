package memory

import (
	"slices"

	"weft/ir"
)

// span is an inclusive range of steps (see ir.Memory).
type span struct{ first, last int }

// lives holds the steps in which values live, and which values share a place.
type lives struct {
	entry   *ir.Entry
	next    int        // step of the next operation
	defined []ir.Value // that need a place, in the order of definition
	spans   []span     // by value; last is -1 before the definition
	parent  []ir.Value // by value: of a forest whose trees are the values of one place
	members [][]ir.Value
	uses    []int // by value: how often it is used
}

func newLives(e *ir.Entry) *lives {
	n := len(e.Types)
	l := &lives{entry: e, spans: make([]span, n), parent: make([]ir.Value, n), members: make([][]ir.Value, n), uses: make([]int, n)}
	for v := range ir.Value(n) {
		l.spans[v], l.parent[v], l.members[v] = span{-1, -1}, v, []ir.Value{v}
	}
	e.Body.Uses(func(v *ir.Value) { l.uses[*v]++ })
	return l
}

func (l *lives) root(v ir.Value) ir.Value {
	for l.parent[v] != v {
		v = l.parent[v]
	}
	return v
}

// join gives two values one place.
func (l *lives) join(a, b ir.Value) {
	a, b = l.root(a), l.root(b)
	if a == b {
		return
	}
	if len(l.members[a]) < len(l.members[b]) {
		a, b = b, a
	}
	l.parent[b] = a
	l.members[a] = append(l.members[a], l.members[b]...)
}

// shared is when any value of v's place lives.
func (l *lives) shared(v ir.Value) span {
	s := l.spans[v]
	for _, m := range l.members[l.root(v)] {
		if t := l.spans[m]; t.first >= 0 {
			s = span{min(s.first, t.first), max(s.last, t.last)}
		}
	}
	return s
}

func (l *lives) define(v ir.Value, step int) {
	l.spans[v] = span{step, step}
	l.defined = append(l.defined, v)
}

func (l *lives) use(v ir.Value, step int) { l.spans[v].last = max(l.spans[v].last, step) }

// block walks over the operations of a block that is not a kernel's.
func (l *lives) block(b *ir.Block) {
	here := map[ir.Value]bool{}
	for _, op := range b.Ops {
		step := l.next
		l.next++
		for _, v := range op.Operands {
			l.use(v, step)
		}
		for _, r := range op.Results {
			l.define(r, step)
			here[r] = true
		}
		switch op.Kind {
		case ir.OpCollectiveDone:
			l.join(op.Results[0], op.Operands[0])
		case ir.OpIf:
			l.ifOp(op)
		case ir.OpWhile:
			l.while(op, step, here)
		}
	}
}

// ifOp lets the regions write the results in place. What a region yields twice, or takes from
// outside, is copied.
func (l *lives) ifOp(op *ir.Op) {
	for _, r := range op.Regions {
		l.block(r)
		for i, v := range r.Results {
			l.use(v, l.next-1)
			if slices.Index(r.Results, v) == i && defines(r, v) {
				l.join(op.Results[i], v)
			}
		}
	}
	for _, v := range op.Results {
		l.use(v, l.next-1) // written at the end of either region, though nobody may read it
	}
}

func defines(b *ir.Block, v ir.Value) bool {
	return slices.ContainsFunc(b.Ops, func(op *ir.Op) bool { return slices.Contains(op.Results, v) })
}

// while gives each value that is carried one place for all iterations, which lives from the
// first step to the last, as do the outer values that the regions use. here has the values
// that the block around the while has defined.
func (l *lives) while(op *ir.Op, step int, here map[ir.Value]bool) {
	condition, body := op.Regions[0], op.Regions[1]
	for i, result := range op.Results {
		for _, r := range op.Regions {
			l.define(r.Params[i], step)
			l.join(result, r.Params[i])
		}
		// The operand is written there directly, unless somebody else uses it too.
		if v := op.Operands[i]; l.uses[v] == 1 && here[v] {
			l.join(result, v)
		}
	}
	l.block(condition)
	l.use(condition.Results[0], l.next-1)
	l.block(body)
	for i, v := range body.Results {
		// So is the next value where the last use of the present one lies before all writes to
		// the memory of the next. (Fusion made sure that no parameter is the next value of
		// another; and one value cannot be the next of two, since it then lives from the start.)
		old := body.Params[i]
		if defines(body, v) && l.spans[old].last < l.shared(v).first {
			l.join(old, v)
		}
		l.use(v, l.next-1)
	}
	last := l.next - 1
	extend := func(v ir.Value) {
		if l.spans[v].first <= step {
			l.use(v, last)
		}
	}
	for _, r := range op.Regions {
		for _, v := range r.Params {
			l.use(v, last)
		}
		r.Uses(func(v *ir.Value) { extend(*v) })
	}
}
