package kernel

import "weft/ir"

// Where rows of half types begin at no multiple of 16 bytes, a warp stores all but their ends by 16 bytes nevertheless. A row lies in the stage as
// far behind a multiple of 16 bytes as it does in the result, its shift, so that what is aligned in the one is in the other. Of the columns of a
// slab, 8 - shift at the left and shift at the right are outside of such chunks: eight elements in each row, which are stored one by one.

// storesShifted tells whether results are stored so: where columns are neighbours, and nothing is computed of what is in the stage.
func (l *leaving) storesShifted() bool {
	b := l.ev.b
	if !l.s.Bulk || l.stage.DType.Size() != 2 || l.g.outputs[0].DType != l.stage.DType || l.nTotal.DivisibleBy(chunkSize, l.ev.prog.Divisor) {
		return false
	}
	plain, adjacent := false, false
	l.ev.aside(func() {
		x, row, column := b.variable(ir.F32), b.variable(b.Index), b.variable(b.Index)
		at := func(column *Expr) *Expr {
			points, values := l.g.epilogueTo(l.g.region.Results[0], l.value, l.points(l.batchAt, row, column, 1), []*Expr{x})
			plain = values[0] == x
			return l.ev.linearIndex(points[0])
		}
		d, ok := Difference(at(b.Add(column, b.Idx(1))), at(column))
		adjacent = ok && d == 1
	})
	return plain && adjacent
}

// index is the place in the result of a column of a slab.
func (l *leaving) index(at slab, row, column *Expr) *Expr {
	b := l.ev.b
	row = b.Add(b.Add(l.firstM, l.warpM), b.Add(row, at.below))
	column = b.Add(b.Add(l.firstN, l.warpN), b.Add(column, at.right))
	return l.ev.linearIndex(l.g.moved(l.op.Results[0], l.points(l.batchAt, row, column, 1)[0]))
}

// rowInStage is where a row of a slab begins in the stage.
func (l *leaving) rowInStage(at slab, row *Expr) *Expr {
	b := l.ev.b
	from := b.Add(l.base, b.Mul(row, b.Idx(l.pitch)))
	if l.shifted {
		from = b.Add(from, l.shift(at, row))
	}
	return from
}

// shift is the number of elements from a multiple of 16 bytes of the result to the first column of a slab in a row.
func (l *leaving) shift(at slab, row *Expr) *Expr {
	b := l.ev.b
	return b.Arith(And, b.Index, l.index(at, row, b.Idx(0)), b.Idx(chunkSize-1)).ranged(0, chunkSize-1)
}

// storeShifted stores a slab if all its columns are in the result, and gives whether they are.
func (l *leaving) storeShifted(at slab) *Expr {
	b := l.ev.b
	columns := int64(l.columns)
	right := b.Add(b.Add(l.firstN, l.warpN), b.Add(at.right, b.Idx(columns-1)))
	whole := b.Less(right, b.Size(l.nTotal))
	store := func(row, column *Expr, run int) {
		inside := b.Less(b.Add(b.Add(l.firstM, l.warpM), b.Add(row, at.below)), b.Size(l.mTotal))
		values := b.LoadShared(l.stage, b.Add(l.rowInStage(at, row), column), run)
		b.StoreIf(inside, l.g.outputs[0], l.index(at, row, column), values...)
	}
	l.g.guardedScope(whole, func() {
		// A row has a chunk less than its columns have room for. Where threads keep to their chunks from row to row, one guard is for all.
		perRow := columns / chunkSize
		_, chunk := b.DivMod(l.lane, b.Idx(perRow))
		alike := 32%perRow == 0
		l.g.guardedScope(b.Or(b.bool(!alike), b.Less(chunk, b.Idx(perRow-1))), func() {
			for i := int64(0); i < slabRows*perRow; i += 32 {
				row, chunk := b.DivMod(b.Add(l.lane, b.Idx(i)), b.Idx(perRow))
				column := b.Add(b.Sub(b.Idx(chunkSize), l.shift(at, row)), b.Mul(chunk, b.Idx(chunkSize)))
				l.g.guardedScope(b.Or(b.bool(alike), b.Less(chunk, b.Idx(perRow-1))), func() { store(row, column, chunkSize) })
			}
		})
		for i := int64(0); i < slabRows*chunkSize; i += 32 {
			row, end := b.DivMod(b.Add(l.lane, b.Idx(i)), b.Idx(chunkSize))
			left := b.Less(b.Add(end, l.shift(at, row)), b.Idx(chunkSize))
			store(row, b.Add(end, b.Select(left, b.Idx(0), b.Idx(columns-chunkSize))), 1)
		}
	})
	return whole
}
