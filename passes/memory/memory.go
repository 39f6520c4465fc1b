// Package memory gives every value of a scheduled entry a place: the caller's memory, a
// state's, or a buffer of the arena, which values share whose lives do not overlap.
//
// Control flow makes values share a place on purpose, so that few copies are needed: the
// regions of an if write its results where they are wanted, and what a while carries has one
// place for all iterations, which its operand and its body write directly where nothing else
// reads or needs the old value then. A scatter kernel's result has the place of the operand that
// it updates where that is not used after (inplace.go): so a state is updated where it lies.
// Where places differ, the plan copies.
package memory

import (
	"cmp"
	"slices"

	"weft/ir"
)

// Run plans the memory of every entry. It tells whether anything changed.
func Run(p *ir.Program) (bool, error) {
	for _, e := range p.Entries {
		plan(e)
	}
	return len(p.Entries) > 0, nil
}

func plan(e *ir.Entry) {
	l := newLives(e)
	l.updates(&e.Body, l.donated())
	l.block(&e.Body)
	m := &ir.Memory{Places: make([]ir.Place, len(e.Types))}
	places := map[ir.Value]ir.Place{} // by root
	for i, v := range e.Body.Params {
		m.Places[v] = ir.Place{Kind: ir.InInput, Index: i}
		places[l.root(v)] = m.Places[v]
	}
	inputStates := map[string]bool{}
	for _, in := range e.Inputs {
		inputStates[in.State] = in.State != ""
	}
	for i, v := range e.Body.Results {
		// A state that the entry also reads takes its new value after all reads, by a copy unless
		// it is updated where it lies; other results are written in place.
		if inputStates[e.Outputs[i].State] {
			l.use(v, l.next)
			continue
		}
		places[l.root(v)] = ir.Place{Kind: ir.InOutput, Index: i}
	}
	var live []placed
	for _, v := range l.defined {
		if root := l.root(v); root == v && places[v].Kind == ir.Nowhere {
			places[v] = ir.Place{Kind: ir.InArena}
			r := l.shared(v)
			live = append(live, placed{v, ir.ArenaBuffer{Size: e.Type(v).Bytes(), First: r.first, Last: r.last}})
		}
	}
	arrange(m, live)
	for _, v := range l.defined {
		root := l.root(v)
		if places[root].Kind != ir.InArena {
			m.Places[v] = places[root]
		} else {
			m.Places[v] = m.Places[root]
		}
	}
	e.Memory = m
}

// placed is a value that needs a buffer.
type placed struct {
	value  ir.Value
	buffer ir.ArenaBuffer
}

// arrange puts buffers into the arena, the largest first, so that small ones fill the gaps.
// Sizes that are not comparable keep the order of the steps.
func arrange(m *ir.Memory, live []placed) {
	slices.SortStableFunc(live, func(a, b placed) int {
		return cmp.Compare(typical(b.buffer.Size), typical(a.buffer.Size))
	})
	for i, p := range live {
		for j, other := range live[:i] {
			if p.buffer.First <= other.buffer.Last && other.buffer.First <= p.buffer.Last {
				p.buffer.After = append(p.buffer.After, j)
			}
		}
		m.Buffers = append(m.Buffers, p.buffer)
		m.Places[p.value] = ir.Place{Kind: ir.InArena, Index: i}
	}
}

// typical is a size with every symbol at a middling value, to order by.
func typical(d ir.Dim) int64 {
	return d.Bounds(func(string) (ir.Range, bool) { return ir.Range{Min: 64, Max: 64}, true }).Max
}
