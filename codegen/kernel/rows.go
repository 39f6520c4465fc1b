package kernel

import (
	"slices"

	"weft/ir"
)

// rows runs reductions that share rows. Threads/Rows threads work on one row: each takes
// columns in turn, Vector at a time; the partial results of a row meet by shuffles and, when a
// row has several warps, in shared memory, in a fixed order. Reductions that need the result of
// others come in later stages. Where a row's columns fit in registers the loop over them is
// unrolled, and what one stage computed the next finds there; else each stage reads again.
type rows struct {
	*group
	full       []ir.Dim // shape of what is reduced
	axes       []int    // reduced ones, ascending
	kept, over []ir.Dim
	columns    ir.Dim
	perRow     int64 // threads a row
	vector     int64
	row, lane  *Expr
	rowInside  *Expr
	rowAt      []*Expr
	trailing   bool // the reduced axes are the last ones
}

// registerColumns is the number of columns a thread keeps in registers at most.
const registerColumns = 32

// buildRows emits the kernel of a rows group.
func (g *group) buildRows() {
	first := slices.IndexFunc(g.region.Ops, func(op *ir.Op) bool { return op.Kind == ir.OpReduce })
	if first < 0 {
		panic("BUG: rows group without reduction")
	}
	op := g.region.Ops[first]
	r := &rows{group: g, full: g.ev.shape(op.Operands[0]), axes: op.Attrs.(*ir.ReduceAttrs).Axes}
	r.place()
	for _, stage := range r.stages() {
		r.reduceStage(stage)
	}
	for i, v := range g.region.Results {
		r.output(i, v)
	}
}

// place computes the thread's row and lane.
func (r *rows) place() {
	ev, b := r.ev, r.ev.b
	for d, size := range r.full {
		if slices.Contains(r.axes, d) {
			r.over = append(r.over, size)
		} else {
			r.kept = append(r.kept, size)
		}
	}
	r.columns = ir.Product(r.over)
	r.trailing = len(r.axes) > 0 && r.axes[0] == len(r.kept)
	total := ir.Product(r.kept)
	perBlock := int64(max(1, r.schedule.Rows))
	r.perRow = int64(r.schedule.Threads) / perBlock
	r.vector = int64(max(1, r.schedule.Vector))
	b.Kernel.Grid = [3]ir.Dim{total.CeilDiv(perBlock), ir.Const(1), ir.Const(1)}
	slot, lane := b.DivMod(b.ThreadIndex(), b.Idx(r.perRow))
	row := b.Add(b.Mul(b.BlockIndex(0), b.Idx(perBlock)), slot)
	r.rowInside = b.Less(row, b.Size(total))
	r.row, r.lane = b.MinIndex(row, b.Sub(b.Size(total), b.Idx(1))), lane
	r.rowAt = ev.delinearize(r.row, r.kept)
}

// stages groups the reductions by how many others precede them.
func (r *rows) stages() [][]*ir.Op {
	level := map[ir.Value]int{}
	var stages [][]*ir.Op
	for _, op := range r.region.Ops {
		n := 0
		for _, v := range op.Operands {
			n = max(n, level[v])
		}
		if r.shares(op) {
			for len(stages) <= n {
				stages = append(stages, nil)
			}
			stages[n] = append(stages[n], op)
			n++
		}
		for _, v := range op.Results {
			level[v] = n
		}
	}
	return stages
}

// shares tells whether an operation is one of the group's shared reductions; others over other
// shapes are evaluated serially.
func (r *rows) shares(op *ir.Op) bool {
	return op.Kind == ir.OpReduce && slices.Equal(op.Attrs.(*ir.ReduceAttrs).Axes, r.axes) && ir.SameShape(r.ev.shape(op.Operands[0]), r.full)
}

// unrolled is the number of turns when a thread's columns fit in registers, else 0.
func (r *rows) unrolled() int64 {
	n, ok := r.columns.IsConst()
	turns := (n + r.perRow*r.vector - 1) / (r.perRow * r.vector)
	if !ok || turns*r.vector > registerColumns {
		return 0
	}
	return turns
}

// pointsAt gives the lanes' points of a turn and whether they are inside of the row. Columns
// outside are replaced by the first.
func (r *rows) pointsAt(turn *Expr) ([]*Point, *Expr) {
	ev, b := r.ev, r.ev.b
	first := b.Mul(b.Add(b.Mul(turn, b.Idx(r.perRow)), r.lane), b.Idx(r.vector))
	inside := b.Less(first, b.Size(r.columns))
	first = b.Select(inside, first, b.Idx(0))
	points := make([]*Point, r.vector)
	for l := range points {
		column := b.Add(first, b.Idx(int64(l)))
		at := insertAxes(r.rowAt, r.axes, ev.delinearize(column, r.over))
		if r.trailing {
			points[l] = ev.atLinear(r.full, b.Add(b.Mul(r.row, b.Size(r.columns)), column))
			if points[l].multi == nil {
				points[l].multi = at
			}
		} else {
			points[l] = ev.at(r.full, at)
		}
	}
	return points, inside
}

// eachTurn runs body for each turn over the columns with carried values.
func (r *rows) eachTurn(init []*Expr, body func(turn *Expr, carried []*Expr) []*Expr) []*Expr {
	b := r.ev.b
	if n := r.unrolled(); n > 0 {
		for turn := range n {
			init = body(b.Idx(turn), init)
		}
		return init
	}
	turns := b.Size(r.columns.CeilDiv(r.perRow * r.vector))
	if len(init) == 0 { // stores
		return r.ev.loop(b.Idx(0), turns, b.Idx(1), init, body)
	}
	return r.ev.loopBy(4, turns, init, body)
}

// reduceStage computes reductions that do not depend on each other, in one pass.
func (r *rows) reduceStage(ops []*ir.Op) {
	ev, b := r.ev, r.ev.b
	combine := make([]ir.Combine, len(ops))
	dtype := make([]ir.DType, len(ops))
	init := make([]*Expr, len(ops))
	for i, op := range ops {
		combine[i], dtype[i] = op.Attrs.(*ir.ReduceAttrs).Combine, ev.entry.Type(op.Operands[0]).DType
		init[i] = b.identity(combine[i], dtype[i])
	}
	sums := r.eachTurn(init, func(turn *Expr, carried []*Expr) []*Expr {
		points, inside := r.pointsAt(turn)
		next := slices.Clone(carried)
		for i, op := range ops {
			for _, x := range ev.value(op.Operands[0], points) {
				next[i] = b.combine(combine[i], dtype[i], next[i], b.Select(inside, x, init[i]))
			}
		}
		return next
	})
	for i, op := range ops {
		value := b.finish(dtype[i], r.across(combine[i], dtype[i], sums[i]))
		ev.leaves[op.Results[0]] = func(lanes []*Point) []*Expr { return repeat(value, len(lanes)) }
	}
}

// across combines the partial results of a row's threads; all of them get the result.
func (r *rows) across(c ir.Combine, t ir.DType, x *Expr) *Expr {
	b := r.ev.b
	for mask := min(r.perRow, 32) / 2; mask > 0; mask /= 2 {
		x = b.combine(c, t, x, b.ShuffleXor(x, mask))
	}
	warps := r.perRow / 32
	if warps <= 1 {
		return x
	}
	store := x.Type
	shared := b.SharedArray(store, warps*int64(max(1, r.schedule.Rows)))
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	b.If(b.Cmp(EQ, lane, b.Idx(0)), func() { b.Store(shared, warp, x) })
	b.Barrier()
	slot, _ := b.DivMod(b.ThreadIndex(), b.Idx(r.perRow))
	first := b.Mul(slot, b.Idx(warps))
	x = b.LoadShared(shared, first, 1)[0]
	for w := int64(1); w < warps; w++ {
		x = b.combine(c, t, x, b.LoadShared(shared, b.Add(first, b.Idx(w)), 1)[0])
	}
	return x
}

// output stores a result: at every column when it has the full shape, once a row when it has
// one element a row.
func (r *rows) output(i int, v ir.Value) {
	ev, b := r.ev, r.ev.b
	dims := ev.shape(v)
	if !ir.Product(dims).Equal(ir.Product(r.full)) || r.columns.Is(1) {
		first := b.Cmp(EQ, r.lane, b.Idx(0))
		r.guardedScope(b.And(r.rowInside, first), func() {
			p := []*Point{ev.atLinear(dims, r.row)}
			r.storeLanes(i, p, ev.value(v, p))
		})
		return
	}
	r.guardedScope(r.rowInside, func() {
		r.eachTurn(nil, func(turn *Expr, _ []*Expr) []*Expr {
			points, inside := r.pointsAt(turn)
			out := points
			if !ir.SameShape(dims, r.full) {
				out = make([]*Point, len(points))
				for l, p := range points {
					out[l] = ev.atLinear(dims, ev.linearIndex(p))
				}
			}
			store := func() { r.storeLanes(i, out, ev.value(v, out)) }
			if inside.IsInt(1) {
				store() // what the row shares is computed once for all turns
			} else {
				r.guardedScope(inside, store)
			}
			return nil
		})
	})
}
