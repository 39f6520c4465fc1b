package ir

import "slices"

// Transposition is a transpose that moves the innermost axis of what it reads: seen with one
// index for each list of axes of the result, it exchanges two of them. Axes of size 1 are in
// none of the lists.
type Transposition struct {
	Outer    []int // axes in neither of the two
	Rows     []int // neighbours in the operand's memory: its last axes, in order
	Columns  []int // neighbours in the result's memory: its last axes, in order
	Operands []int // the lists in the operand's order: an axis of Outer, or Moved for all Columns
}

// Moved stands for all columns in Transposition.Operands.
const Moved = -1

// TranspositionOf analyses a transpose to a shape; false where the innermost axis stays.
func TranspositionOf(shape []Dim, permutation []int) (Transposition, bool) {
	var axes []int // of the result
	for i, d := range shape {
		if !d.Is(1) {
			axes = append(axes, i)
		}
	}
	if len(axes) < 2 {
		return Transposition{}, false
	}
	inner := slices.Clone(axes) // in the operand's order
	slices.SortFunc(inner, func(i, j int) int { return permutation[i] - permutation[j] })
	tail := func(list, other []int) []int {
		n := len(list) - 1
		at := slices.Index(other, list[n])
		for n > 0 && at > 0 && other[at-1] == list[n-1] {
			n, at = n-1, at-1
		}
		return list[n:]
	}
	t := Transposition{Rows: tail(inner, axes), Columns: tail(axes, inner)}
	if slices.Contains(t.Columns, inner[len(inner)-1]) {
		return Transposition{}, false
	}
	for _, i := range axes {
		if !slices.Contains(t.Rows, i) && !slices.Contains(t.Columns, i) {
			t.Outer = append(t.Outer, i)
		}
	}
	for _, i := range inner {
		switch {
		case i == t.Columns[0]:
			t.Operands = append(t.Operands, Moved)
		case slices.Contains(t.Outer, i):
			t.Operands = append(t.Operands, i)
		}
	}
	return t, true
}

// Transposed gives the operations of a region that exchange rows and columns in the way of the
// first such one, where the region's results have its shape and all that depends on them is
// computed element by element.
func Transposed(e *Entry, region *Block) []*Op {
	var found []*Op
	reached := map[Value]bool{}
	for _, op := range region.Ops {
		depends := slices.ContainsFunc(op.Operands, func(v Value) bool { return reached[v] })
		a, ok := op.Attrs.(*TransposeAttrs)
		switch {
		case depends && op.Kind.Info().Class != ClassElementwise:
			return nil
		case depends:
			reached[op.Results[0]] = true
		case ok && (len(found) == 0 || slices.Equal(a.Permutation, found[0].Attrs.(*TransposeAttrs).Permutation)):
			shape := e.Type(op.Results[0]).Shape
			if _, moves := TranspositionOf(shape, a.Permutation); moves && SameShape(shape, e.Type(region.Results[0]).Shape) {
				found = append(found, op)
				reached[op.Results[0]] = true
			}
		}
	}
	for _, v := range region.Results {
		if !SameShape(e.Type(v).Shape, e.Type(region.Results[0]).Shape) {
			return nil
		}
	}
	return found
}
