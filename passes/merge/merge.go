// Package merge makes one product of several small ones that multiply the same activations by
// different weights: query, key and value of an attention. The weights are joined once, in the
// init entry; what read the result of one product reads a slice of the common result, which is
// index arithmetic in the kernels that follow. Each element is the same sum as before.
package merge

import (
	"slices"

	"weft/ir"
	"weft/passes/internal/initentry"
)

// Run merges products of every entry. It tells whether anything changed.
func Run(p *ir.Program) (bool, error) {
	m := &merger{program: p, reads: reads(p), prepared: map[string]string{}}
	var groups []*group
	for _, e := range p.Entries {
		if e.Name != ir.InitEntry {
			groups = append(groups, m.groups(e)...)
		}
	}
	groups = m.agreed(groups)
	if len(groups) == 0 {
		return false, nil
	}
	err := ir.Try(func() {
		for _, g := range groups {
			m.merge(g)
		}
		for _, e := range p.Entries {
			e.Body.DropDead()
		}
		initentry.Prune(p)
	})
	return true, err
}

type merger struct {
	program  *ir.Program
	reads    map[string]int    // uses of each state in all entries but init
	prepared map[string]string // states of joined weights by what they are made of
}

// group is some products of an entry that become one, in the order of their operations.
type group struct {
	entry   *ir.Entry
	members []*member
}

// reads counts the uses of states. Init reads some too, but at load only.
func reads(p *ir.Program) map[string]int {
	n := map[string]int{}
	for _, e := range p.Entries {
		if e.Name == ir.InitEntry {
			continue
		}
		states := map[ir.Value]string{}
		for i, v := range e.Body.Params {
			states[v] = e.Inputs[i].State
		}
		e.Body.Uses(func(v *ir.Value) { n[states[*v]]++ })
	}
	return n
}

// groups finds the products of an entry's body that may be one.
func (m *merger) groups(e *ir.Entry) []*group {
	f := newFinder(m.program, e)
	alike := map[string]*group{}
	var all []*group
	for _, op := range e.Body.Ops {
		c := f.member(op)
		if c == nil {
			continue
		}
		key := c.signature(e)
		if alike[key] == nil {
			alike[key] = &group{entry: e}
			all = append(all, alike[key])
		}
		alike[key].members = append(alike[key].members, c)
	}
	return slices.DeleteFunc(all, func(g *group) bool {
		return len(g.members) < 2 || g.meet() || g.outlives() || !f.pays(g)
	})
}

// meet tells whether results of two members are operands of one elementwise operation: the gate of
// an MLP and what it gates. That is the epilogue of one of the products; merged, both results would
// go through memory first.
func (g *group) meet() bool {
	user := map[*ir.Op]*member{}
	for _, c := range g.members {
		for _, op := range c.elementwise {
			if user[op] != nil && user[op] != c {
				return true
			}
			user[op] = c
		}
	}
	return false
}

// mostBetween is the number of contractions that may be between the last uses of two members. What follows within so few is the
// same layer.
const mostBetween = 4

// outlives tells whether a member's result is used long after another's: that would stay in memory as long. A backward
// computation far away reads the values, but not the queries before their rotation.
func (g *group) outlives() bool {
	first, last := g.members[0].last, g.members[0].last
	for _, c := range g.members {
		first, last = min(first, c.last), max(last, c.last)
	}
	return last-first > mostBetween
}

// agreed leaves the groups whose weights have no other use in any entry: the weights themselves
// are then not kept after init, so that states take no more memory than before. Entries that share
// weights merge them alike or not at all.
func (m *merger) agreed(groups []*group) []*group {
	n := map[string]int{}
	for _, g := range groups {
		n[g.key()]++
	}
	return slices.DeleteFunc(groups, func(g *group) bool {
		return slices.ContainsFunc(g.states(), func(state string) bool { return m.reads[state] != n[g.key()] })
	})
}

// merge replaces the products of a group by one, and what is computed of each alone by the same of all.
func (m *merger) merge(g *group) {
	e, first := g.entry, g.members[0]
	block := &ir.Block{}
	b := ir.NewBuilder(m.program, e).Within(block)
	b.Loc = first.product.Loc
	at := slices.Index(e.Body.Ops, first.product)

	attrs := *first.product.Attrs.(*ir.DotAttrs)
	weights := m.join(g, func(c *member) ir.Value { return c.product.Operands[1] }, first.axis)
	v := b.DotGeneral(first.product.Operands[0], weights, &attrs)
	last := b.Rank(v) - 1
	for i, l := range first.chain {
		b.Loc = l.op.Loc
		if l.op.Kind == ir.OpConvert {
			v = b.Convert(v, l.to)
			continue
		}
		bias := m.join(g, func(c *member) ir.Value { return c.chain[i].bias }, l.axis)
		if l.broadcast != nil {
			bias = b.Broadcast(bias, b.Shape(v), l.broadcast.Axes)
		}
		if l.biasFirst {
			v = b.Binary(ir.OpAdd, bias, v)
		} else {
			v = b.Binary(ir.OpAdd, v, bias)
		}
	}
	column := ir.Const(0)
	replaced := map[ir.Value]bool{}
	for _, c := range g.members {
		next := column.Add(ir.Const(c.columns))
		b.Loc = c.product.Loc
		b.SliceAxis(v, last, column, next, 1)
		block.Ops[len(block.Ops)-1].Results = []ir.Value{c.result}
		replaced[c.result] = true
		column = next
	}
	rest := slices.DeleteFunc(slices.Clone(e.Body.Ops[at:]), func(op *ir.Op) bool {
		return slices.ContainsFunc(op.Results, func(v ir.Value) bool { return replaced[v] })
	})
	e.Body.Ops = slices.Concat(e.Body.Ops[:at], block.Ops, rest)
}

// join gives the value of the group's entry that reads a state of each member, one after the other along an axis.
func (m *merger) join(g *group, of func(*member) ir.Value, axis int) ir.Value {
	e := g.entry
	var parts []ir.Value
	for _, c := range g.members {
		parts = append(parts, of(c))
	}
	key := keyOf(e, parts, axis)
	if state, ok := m.prepared[key]; ok {
		for i, in := range e.Inputs {
			if in.State == state {
				return e.Body.Params[i]
			}
		}
		return e.AddStateInput(state, m.program.State(state).Type)
	}
	v, ok := initentry.AddOf(m.program, e, parts, func(b *ir.Builder, vs []ir.Value) ir.Value { return b.Concatenate(axis, vs...) })
	if !ok {
		panic("BUG: the weights of products that are merged are no constant states")
	}
	m.prepared[key] = e.Inputs[len(e.Inputs)-1].State
	return v
}
