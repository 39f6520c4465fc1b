package split

import "weft/ir"

// argLength is the length of an axis from which threads should share the search for its best element.
const argLength = 64

// argReduce gives the value of an index of a best element by two reductions, which run in parallel: of the elements,
// and of the indices of those that are as good. false where one thread for each row is as fast.
func (s splitter) argReduce(x ir.Value, a *ir.ArgReduceAttrs) (ir.Value, bool) {
	t := s.b.Type(x)
	rows, last := int64(1), a.Axis == t.Rank()-1
	for i, d := range t.Shape {
		if i != a.Axis {
			rows = saturating(rows, s.estimate(d))
		}
	}
	if t.DType == ir.Bool || s.estimate(t.Shape[a.Axis]) < argLength || !last && rows >= enough/16 {
		return x, false
	}
	var kept []int
	for i := range t.Shape {
		if i != a.Axis {
			kept = append(kept, i)
		}
	}
	best := s.b.Broadcast(s.reduce(x, a.Combine, []int{a.Axis}), t.Shape, kept)
	asGood := s.b.Compare(ir.EQ, x, best)
	if t.DType.IsFloat() { // NaN is best, and equals nothing
		asGood = s.b.Binary(ir.OpOr, asGood, s.b.Binary(ir.OpAnd, s.b.Compare(ir.NE, x, x), s.b.Compare(ir.NE, best, best)))
	}
	indices := s.b.Iota(ir.I64, t.Shape, a.Axis)
	combine, none := ir.Min, 0x1p62
	if a.Last {
		combine, none = ir.Max, -1
	}
	return s.reduce(s.b.Select(asGood, indices, s.b.Full(s.b.Type(indices), none)), combine, []int{a.Axis}), true
}
