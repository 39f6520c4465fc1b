package onnx

import (
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// Sequences and optionals exist during the import only: their lengths are known there.

// sequenceIn is input i, which must be a sequence.
func (n *node) sequenceIn(i int) []ir.Value {
	x := n.input(i)
	if x == nil || x.sequence == nil || x.sequence.optional {
		n.unsupportedForm("input %d is no sequence of known length", i)
	}
	return x.sequence.items
}

// position is an index into a sequence of the given length, from input i; absent where the
// input is left out.
func (n *node) position(i, length, absent int) int {
	if !n.has(i) {
		return absent
	}
	at := n.constInts(i, "the position")
	if len(at) != 1 || at[0] < -int64(length) || at[0] > int64(length) {
		n.wrong("position %v in a sequence of %d", at, length)
	}
	if at[0] < 0 {
		return int(at[0]) + length
	}
	return int(at[0])
}

func sequenceConstruct(n *node) { n.setSequence(&sequence{items: n.all()}) }
func sequenceEmpty(n *node)     { n.setSequence(&sequence{}) }
func sequenceLength(n *node) {
	n.set(n.b.Constant(ir.ScalarInt(ir.I64, int64(len(n.sequenceIn(0))))))
}

func sequenceAt(n *node) {
	items := n.sequenceIn(0)
	at := n.position(1, len(items), 0)
	if at >= len(items) {
		n.wrong("position %d in a sequence of %d", at, len(items))
	}
	n.set(items[at])
}

func sequenceInsert(n *node) {
	items := n.sequenceIn(0)
	n.setSequence(&sequence{items: slices.Insert(slices.Clone(items), n.position(2, len(items), len(items)), n.in(1))})
}

func sequenceErase(n *node) {
	items := n.sequenceIn(0)
	at := n.position(1, len(items), len(items)-1)
	if at < 0 || at >= len(items) {
		n.wrong("position %d in a sequence of %d", at, len(items))
	}
	n.setSequence(&sequence{items: slices.Delete(slices.Clone(items), at, at+1)})
}

func concatFromSequence(n *node) {
	items := slices.Clone(n.sequenceIn(0))
	if len(items) == 0 {
		n.wrong("the sequence is empty")
	}
	if n.flag("new_axis", false) {
		n.set(lower.Stack(n.b, n.axis(n.int("axis", 0), n.b.Rank(items[0])+1), items...))
		return
	}
	n.set(n.concatenate(items, n.axis(n.int("axis", 0), n.b.Rank(items[0]))))
}

func splitToSequence(n *node) {
	x := n.in(0)
	axis := n.axis(n.int("axis", 0), n.b.Rank(x))
	size, ok := n.b.Shape(x)[axis].IsConst()
	var sizes []ir.Dim
	keep := true
	switch {
	case !n.has(1):
		keep = n.flag("keepdims", true)
		if !ok || size > 1<<12 {
			n.dataDependent("the length of the sequence is %s", n.b.Shape(x)[axis])
		}
		sizes = slices.Repeat([]ir.Dim{ir.Const(1)}, int(size))
	case n.b.Rank(n.in(1)) == 0:
		each := n.constInts(1, "the size")[0]
		if !ok || each < 1 || size/each > 1<<12 {
			n.dataDependent("the length of the sequence: parts of %d of %s", each, n.b.Shape(x)[axis])
		}
		for at := int64(0); at < size; at += each {
			sizes = append(sizes, ir.Const(min(each, size-at)))
		}
	default:
		sizes = n.dims(1, "the sizes")
	}
	items := n.splitAxis(x, axis, sizes)
	if !keep {
		for i, item := range items {
			items[i] = n.b.Reshape(item, slices.Delete(slices.Clone(n.b.Shape(item)), axis, axis+1))
		}
	}
	n.setSequence(&sequence{items: items})
}

// sequenceMap runs its body for each element of the first sequence.
func sequenceMap(n *node) {
	g := n.subgraph("body")
	length := len(n.sequenceIn(0))
	outs := make([][]ir.Value, len(g.outputs))
	for i := range length {
		args := make([]*value, len(n.p.inputs))
		for k := range args {
			args[k] = n.input(k)
			if args[k] == nil {
				n.wrong("input %d is missing", k)
			}
			if s := args[k].sequence; s != nil {
				if i >= len(s.items) {
					n.wrong("the sequences have %d and %d elements", length, len(s.items))
				}
				args[k] = &value{v: s.items[i]}
			} else {
				args[k] = n.shared(args[k])
			}
		}
		for k, v := range n.tensors(n.body(g, n.b, args, "body")) {
			outs[k] = append(outs[k], v)
		}
	}
	for _, items := range outs {
		n.setSequence(&sequence{items: items})
	}
}

// optional wraps nothing: an optional that holds a value is the value.
func optional(n *node) {
	if x := n.input(0); x != nil {
		n.outs = append(n.outs, n.shared(x))
		return
	}
	n.setSequence(&sequence{optional: true})
}

func optionalHasElement(n *node) {
	x := n.input(0)
	has := x != nil && (x.sequence == nil || !x.sequence.optional)
	n.set(n.b.Convert(n.b.Constant(ir.ScalarInt(ir.I64, map[bool]int64{true: 1}[has])), ir.Bool))
}

func optionalGetElement(n *node) {
	x := n.input(0)
	if x == nil || x.sequence != nil && x.sequence.optional {
		n.wrong("the optional is empty")
	}
	n.outs = append(n.outs, n.shared(x))
}
