package kernel

import (
	"slices"

	"weft/ir"
)

// buildSort emits the kernel of a sort: a thread counts the elements that precede its own and
// stores it at that place. The work grows with the square of the axis and needs no workspace.
func (g *group) buildSort(op *ir.Op) {
	ev, b := g.ev, g.ev.b
	a := op.Attrs.(*ir.SortAttrs)
	key := op.Operands[0]
	t := ev.entry.Type(key)
	total := t.Numel()
	b.Kernel.Grid = [3]ir.Dim{total.CeilDiv(int64(g.schedule.Threads)), ir.Const(1), ir.Const(1)}
	id := b.Add(b.Mul(b.BlockIndex(0), b.Idx(int64(g.schedule.Threads))), b.ThreadIndex())
	g.guardedScope(b.Less(id, b.Size(total)), func() {
		own := ev.atLinear(t.Shape, id)
		at := ev.coordinates(own)
		x := ev.value(key, []*Point{own})[0]
		zero, one := b.Idx(0), b.Idx(1)
		rank := ev.loop(zero, b.Size(t.Shape[a.Axis]), one, []*Expr{zero}, func(j *Expr, carried []*Expr) []*Expr {
			other := slices.Clone(at)
			other[a.Axis] = j
			y := ev.value(key, []*Point{ev.at(t.Shape, other)})[0]
			precedes := b.sortsBefore(t.DType, y, x)
			follows := b.sortsBefore(t.DType, x, y)
			if a.Descending {
				precedes, follows = follows, precedes
			}
			first := b.Or(precedes, b.And(b.Not(follows), b.Less(j, at[a.Axis])))
			return []*Expr{b.Add(carried[0], b.Select(first, one, zero))}
		})[0]
		place := slices.Clone(at)
		place[a.Axis] = rank
		for i, operand := range op.Operands {
			to := []*Point{ev.at(ev.shape(operand), place)}
			g.storeLanes(i, to, ev.value(operand, []*Point{ev.atLinear(ev.shape(operand), id)}))
		}
	})
}

// sortsBefore is the ascending order of a sort: NaN is larger than all numbers.
func (b *Builder) sortsBefore(t ir.DType, x, y *Expr) *Expr {
	less := b.lessThan(t, x, y)
	if !t.IsFloat() {
		return less
	}
	return b.Or(less, b.And(b.Not(b.isNaN(x)), b.isNaN(y)))
}
