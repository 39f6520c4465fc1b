// Package memory gives every value of a scheduled entry a place: the caller's memory, a
// state's, or a buffer of the arena, which values share whose lives do not overlap.
//
// Control flow makes values share a place on purpose, so that few copies are needed: the
// regions of an if write its results where they are wanted, and what a while carries has one
// place for all iterations, which its operand and its body write directly where nothing else
// reads or needs the old value then. A scatter kernel's result has the place of the operand that
// it updates where that is not used after (inplace.go): so a state is updated where it lies. So has
// that of an all_reduce the place of what it sums up.
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

// manyBuffers is from where on one order is tried alone: measuring one takes the square of their number.
const manyBuffers = 6000

// arrange puts buffers into the arena. The offset of one is the largest end of the earlier ones that
// live with it, so the order decides how well they pack. Several orders are tried, and the one kept
// that needs least at middling sizes.
func arrange(m *ir.Memory, live []placed) {
	bySize := func(a, b placed) int { return cmp.Compare(typical(b.buffer.Size), typical(a.buffer.Size)) }
	byLife := func(a, b placed) int {
		return cmp.Compare(b.buffer.Last-b.buffer.First, a.buffer.Last-a.buffer.First)
	}
	sorted := slices.Clone(live)
	slices.SortStableFunc(sorted, bySize)
	lasting := slices.Clone(live)
	slices.SortStableFunc(lasting, bySize)
	slices.SortStableFunc(lasting, byLife)
	orders := [][]placed{sorted, layers(sorted), layers(lasting), layers(live)}
	if len(live) > manyBuffers {
		orders = orders[1:2]
	}
	var best []placed
	least := int64(-1)
	for _, order := range orders {
		if end := stack(order); least < 0 || end < least {
			best, least = order, end
		}
	}
	for i, p := range best {
		p.buffer.After = nil
		for j, other := range best[:i] {
			if meet(p, other) {
				p.buffer.After = append(p.buffer.After, j)
			}
		}
		m.Buffers = append(m.Buffers, p.buffer)
		m.Places[p.value] = ir.Place{Kind: ir.InArena, Index: i}
	}
}

// meet tells whether two buffers live at a time.
func meet(a, b placed) bool {
	return a.buffer.First <= b.buffer.Last && b.buffer.First <= a.buffer.Last
}

// layers orders buffers by layers of which the members never live at a time: each takes, in the order
// given, what fits beside those it has. Buffers that follow one another, as those between the
// layers of a model, alternate between two layers instead of climbing.
func layers(live []placed) []placed {
	left := live
	var order []placed
	for len(left) > 0 {
		var layer, rest []placed // the layer by first step
		for _, p := range left {
			at, _ := slices.BinarySearchFunc(layer, p, func(x, p placed) int { return cmp.Compare(x.buffer.First, p.buffer.First) })
			if at < len(layer) && meet(layer[at], p) || at > 0 && meet(layer[at-1], p) {
				rest = append(rest, p)
				continue
			}
			layer = slices.Insert(layer, at, p)
		}
		order, left = append(order, layer...), rest
	}
	return order
}

// stack is the size of the arena for an order, at middling sizes.
func stack(order []placed) int64 {
	ends := make([]int64, len(order))
	highest := int64(0)
	for i, p := range order {
		for j := range i {
			if meet(p, order[j]) {
				ends[i] = max(ends[i], ends[j])
			}
		}
		ends[i] += typical(p.buffer.Size)
		highest = max(highest, ends[i])
	}
	return highest
}

// typical is a size with every symbol at a middling value, to order by.
func typical(d ir.Dim) int64 {
	return d.Bounds(func(string) (ir.Range, bool) { return ir.Range{Min: 64, Max: 64}, true }).Max
}
