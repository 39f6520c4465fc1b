package kernel

import "weft/ir"

// transposing runs a map group whose operations read memory along other axes than they write.
// A block takes a tile of TileM rows by TileN columns: neighbouring threads read what is to be
// transposed along the rows, where it is adjacent, and put it into shared memory; then they
// compute results along the columns. So both sides are coalesced.
type transposing struct {
	*group
	of             ir.Transposition
	shape          []ir.Dim
	rows, columns  ir.Dim
	outer          []*Expr
	row0, column0  *Expr
	pitch          int64
	sharedElements map[*Point]*Expr // where the operand of a result's point lies in shared memory
}

// buildTransposing emits the kernel of a map group with transposes of one kind.
func (g *group) buildTransposing(transposes []*ir.Op) {
	ev, b, s := g.ev, g.ev.b, g.schedule
	t := &transposing{group: g, shape: ev.shape(g.region.Results[0]), sharedElements: map[*Point]*Expr{}}
	t.of, _ = ir.TranspositionOf(t.shape, transposes[0].Attrs.(*ir.TransposeAttrs).Permutation)
	t.rows, t.columns = ir.Product(pickDims(t.shape, t.of.Rows)), ir.Product(pickDims(t.shape, t.of.Columns))
	outer := pickDims(t.shape, t.of.Outer)
	row, column, rest := b.Blocks(t.rows.CeilDiv(int64(s.TileM)), t.columns.CeilDiv(int64(s.TileN)), ir.Product(outer))
	t.outer = ev.delinearize(rest, outer)
	t.row0, t.column0 = b.Mul(row, b.Idx(int64(s.TileM))), b.Mul(column, b.Idx(int64(s.TileN)))
	t.pitch = int64(s.TileM) + 1 // neither side meets bank conflicts
	tiles := make([]*Buffer, len(transposes))
	for i, op := range transposes {
		tiles[i] = t.read(op.Operands[0])
	}
	b.Barrier()
	for i, op := range transposes {
		tile := tiles[i]
		ev.leaves[op.Results[0]] = func(lanes []*Point) []*Expr {
			out := make([]*Expr, len(lanes))
			for l, p := range lanes {
				at, ok := t.sharedElements[p]
				if !ok {
					panic("BUG: a transposed tile is read at another point than the result's")
				}
				out[l] = b.LoadShared(tile, at, 1)[0]
			}
			return out
		}
	}
	t.write()
}

// read brings a tile of an operand into shared memory, as [column][row]. Past the ends it is
// the last row or column again.
func (t *transposing) read(v ir.Value) *Buffer {
	ev, b, s := t.ev, t.ev.b, t.schedule
	dtype := ev.entry.Type(v).DType
	tile := b.SharedArray(dtype, int64(s.TileN)*t.pitch)
	one := b.Idx(1)
	dims, at := make([]ir.Dim, 0, len(t.of.Operands)+1), make([]*Expr, 0, len(t.of.Operands)+1)
	moved := 0
	for _, axis := range t.of.Operands {
		if axis == ir.Moved {
			moved = len(dims)
			dims, at = append(dims, t.columns), append(at, nil)
			continue
		}
		dims = append(dims, t.shape[axis])
		for i, o := range t.of.Outer {
			if o == axis {
				at = append(at, t.outer[i])
			}
		}
	}
	dims, at = append(dims, t.rows), append(at, nil)
	var places, values []*Expr
	for first := 0; first < s.TileM*s.TileN; first += s.Threads {
		column, row := b.DivMod(b.Add(b.ThreadIndex(), b.Idx(int64(first))), b.Idx(int64(s.TileM)))
		at[moved] = b.MinIndex(b.Add(t.column0, column), b.Sub(b.Size(t.columns), one))
		at[len(at)-1] = b.MinIndex(b.Add(t.row0, row), b.Sub(b.Size(t.rows), one))
		p := ev.atLinear(ev.shape(v), ev.linearize(at, dims))
		places = append(places, b.Add(b.Mul(column, b.Idx(t.pitch)), row))
		values = append(values, ev.value(v, []*Point{p})[0])
	}
	b.emit(&Let{values})
	for i, x := range values {
		b.Store(tile, places[i], x)
	}
	return tile
}

// write computes the tile's results.
func (t *transposing) write() {
	ev, b, s := t.ev, t.ev.b, t.schedule
	vector := int64(max(1, s.Vector))
	whole := t.columns.DivisibleBy(vector, ev.prog.Divisor)
	if !whole {
		vector = 1
	}
	dims := append(pickDims(t.shape, t.of.Outer), t.rows, t.columns)
	// The outer axes may lie between rows and columns; the result's order is that of its axes.
	order := t.resultOrder()
	at := make([]*Expr, len(dims))
	copy(at, t.outer)
	perRow := int64(s.TileN) / vector
	for first := int64(0); first < int64(s.TileM)*perRow; first += int64(s.Threads) {
		row, part := b.DivMod(b.Add(b.ThreadIndex(), b.Idx(first)), b.Idx(perRow))
		column := b.Mul(part, b.Idx(vector))
		points := make([]*Point, vector)
		for l := range points {
			c := b.Add(column, b.Idx(int64(l)))
			at[len(at)-2], at[len(at)-1] = b.Add(t.row0, row), b.Add(t.column0, c)
			points[l] = ev.atLinear(t.shape, ev.linearize(pick(at, order), pickDims(dims, order)))
			t.sharedElements[points[l]] = b.Add(b.Mul(c, b.Idx(t.pitch)), row)
		}
		inside := b.And(b.Less(b.Add(t.row0, row), b.Size(t.rows)), b.Less(b.Add(t.column0, column), b.Size(t.columns)))
		if first+int64(s.Threads) > int64(s.TileM)*perRow {
			inside = b.And(inside, b.Less(row, b.Idx(int64(s.TileM))))
		}
		t.guardedScope(inside, func() {
			for i, v := range t.region.Results {
				t.storeLanes(i, points, ev.value(v, points))
			}
		})
	}
}

// resultOrder lists the outer axes, rows (their number is that of the outer axes) and columns
// as they follow each other in the result.
func (t *transposing) resultOrder() []int {
	n := len(t.of.Outer)
	var order []int
	placed := false
	for i, axis := range t.of.Outer {
		if !placed && t.of.Rows[0] < axis {
			order, placed = append(order, n), true
		}
		order = append(order, i)
	}
	if !placed {
		order = append(order, n)
	}
	return append(order, n+1)
}

func pick(xs []*Expr, which []int) []*Expr {
	out := make([]*Expr, len(which))
	for i, w := range which {
		out[i] = xs[w]
	}
	return out
}
