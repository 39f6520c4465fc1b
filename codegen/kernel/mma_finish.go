package kernel

import (
	"slices"

	"weft/ir"
)

// slabRows is the number of a warp's rows that go through shared memory together at the end.
const slabRows = 16

// multiplying is the number of warps that multiply: all but a last warpgroup that copies.
func (c *mma) multiplying() int {
	if c.s.Bulk {
		return c.s.Threads/32 - 4
	}
	return c.s.Threads / 32
}

// overTiles tells whether results leave through the memory of the operands' tiles: not where the next ones arrive there meanwhile.
func (c *mma) overTiles() bool { return c.lhs.panels && !c.s.Bulk }

// earlyInstructions is up to how many instructions of an element's epilogue are executed before results go through shared memory.
const earlyInstructions = 8

// stagedValue is the value that goes through shared memory: the product or, beside tiles of operands, where there is little of it, the first value
// of a half type that is made of the product and of what depends on columns alone (a bias), if that takes few instructions.
func (c *mma) stagedValue(g *group) ir.Value {
	v := c.op.Results[0]
	half := func(v ir.Value) bool { return c.ev.entry.Type(v).DType.Size() == 2 }
	if !c.s.Bulk || half(v) {
		return v
	}
	b := c.ev.b
	for at := v; !half(at); {
		next := onlyUser(g.region, at)
		if next == nil || next.Kind.Info().Class != ir.ClassElementwise {
			return v
		}
		at = next.Results[0]
		if half(at) {
			same, cost := false, 0
			c.ev.aside(func() {
				sum := b.variable(ir.F32)
				value := func(row int64) *Expr {
					_, values := g.epilogueTo(at, v, c.points(c.batchAt, b.Add(b.variable(b.Index), b.Idx(row)), c.firstN, 1), []*Expr{sum})
					return values[0]
				}
				x := value(0)
				same, cost = x == value(1), countInstructions(x)
			})
			if same && cost <= earlyInstructions {
				return at
			}
		}
	}
	return v
}

// onlyUser is the operation of a region that uses a value, if it is one alone and the value is no result.
func onlyUser(region *ir.Block, v ir.Value) *ir.Op {
	var user *ir.Op
	if slices.Contains(region.Results, v) {
		return nil
	}
	for _, op := range region.Ops {
		if slices.Contains(op.Operands, v) {
			if user != nil {
				return nil
			}
			user = op
		}
	}
	return user
}

// countInstructions is about how many instructions values take together: their distinct expressions, but constants and places in memory.
func countInstructions(values ...*Expr) int {
	seen := map[*Expr]bool{}
	var visit func(x *Expr)
	visit = func(x *Expr) {
		if !seen[x] && x.Op != Const {
			seen[x] = true
			if x.Op == Load {
				return
			}
			for _, a := range x.Args {
				visit(a)
			}
		}
	}
	for _, x := range values {
		visit(x)
	}
	return len(seen)
}

// leaving is how the results of a warp leave through shared memory.
type leaving struct {
	*mma
	g       *group
	value   ir.Value // that goes through shared memory
	stage   *Buffer
	base    *Expr // of the warp's part of the stage
	columns int   // of a slab
	pitch   int64 // elements from row to row of the stage
	shifted bool  // rows lie in the stage as far from a multiple of 16 bytes as they do in the result
}

// slab is a part of a warp's results: it begins below the warp's first row, and right of its first column.
type slab struct{ below, right *Expr }

// finish runs the epilogue. The instruction leaves pairs of adjacent columns with each thread;
// through shared memory, 16 rows at a time, a thread gets runs of eight columns, so that the
// epilogue reads and stores 16 bytes of half types at a time; or of eight rows, where these are
// neighbours in the result. Every warp has its own part of that memory and waits for no other.
func (c *mma) finish(g *group, sums []*Expr) {
	b, s := c.ev.b, c.s
	l := &leaving{mma: c, g: g, value: c.stagedValue(g), columns: s.WarpN}
	dtype := ir.F32
	if t := c.ev.entry.Type(l.value).DType; s.Bulk && t.Size() == 2 {
		dtype = t
	}
	for !c.overTiles() && l.columns*dtype.Size() > 256 {
		l.columns /= 2
	}
	l.pitch = int64(l.columns + 16/dtype.Size())
	l.stage = b.SharedArray(dtype, int64(c.multiplying())*slabRows*l.pitch)
	if c.overTiles() {
		l.stage.Over = c.lhs.shared // and the rest of the tiles, which every warp has done with
	}
	warp, _ := b.DivMod(b.ThreadIndex(), b.Idx(32))
	l.base = b.Mul(warp, b.Idx(slabRows*l.pitch))
	l.shifted = l.storesShifted()
	slabs := s.WarpM / slabRows * (s.WarpN / l.columns)
	for i := range slabs {
		at := l.slab(i)
		if i > 0 || s.Bulk {
			l.warpSync()
		}
		l.stageSlab(at, l.ofSlab(sums, i))
		l.warpSync()
		l.store(at)
	}
}

// slab is where a slab of a number is: those beside one another first.
func (l *leaving) slab(number int) slab {
	b, beside := l.ev.b, l.s.WarpN/l.columns
	return slab{b.Idx(l.rowsBelow(number / beside * slabRows)), b.Idx(int64(number % beside * l.columns))}
}

// ofSlab are the sums of a thread in a slab.
func (l *leaving) ofSlab(sums []*Expr, number int) []*Expr {
	n := l.columns * slabRows / 32
	return sums[number*n : (number+1)*n]
}

// rowsBelow is the distance of a warp's rows from m on, of its own rows, to its first: those of a warpgroup are 64 with other warps' between.
func (c *mma) rowsBelow(m int) int64 {
	if c.lhs.panels {
		return int64(m / slabRows * warpgroupRows)
	}
	return int64(m)
}

func (l *leaving) warpSync() { l.ev.b.Do("bar.warp.sync", l.ev.b.Int(ir.I32, -1)) }

// stageSlab puts the warp's results of a slab where its threads read them by runs.
func (l *leaving) stageSlab(at slab, sums []*Expr) {
	b := l.ev.b
	if l.stage.DType != ir.F32 {
		sums = l.early(at, sums)
	}
	quad, pair := b.DivMod(l.lane, b.Idx(4))
	for n := 0; n < l.columns; n += 8 {
		for half := range 2 {
			row := b.Add(quad, b.Idx(int64(8*half)))
			to := b.Add(l.rowInStage(at, row), b.Add(b.Mul(pair, b.Idx(2)), b.Idx(int64(n))))
			two := sums[n/2+2*half : n/2+2*half+2]
			if l.shifted {
				b.StoreApart(l.stage, to, two...)
			} else {
				b.Store(l.stage, to, two...)
			}
		}
	}
}

// early computes of the sums of a slab what goes through shared memory.
func (l *leaving) early(at slab, sums []*Expr) []*Expr {
	b, product := l.ev.b, l.op.Results[0]
	sums = l.ev.finishContraction(l.op, l.accumulator, sums)
	if l.value == product {
		return sums
	}
	quad, pair := b.DivMod(l.lane, b.Idx(4))
	row := b.Add(b.Add(l.firstM, l.warpM), b.Add(quad, at.below)) // columns alone matter
	var inputs []*Expr
	var points [][]*Point
	for n := 0; n < l.columns; n += 8 {
		column := b.Add(b.Add(l.firstN, l.warpN), b.Add(b.Mul(pair, b.Idx(2)), b.Add(at.right, b.Idx(int64(n)))))
		points = append(points, l.pointsInside(row, column, 2))
		inputs = append(inputs, l.g.epilogueInputs(l.value, product, points[n/8])...)
	}
	b.readNow(globalLoads(inputs))
	var out []*Expr
	for i := 0; i < len(sums); i += 2 {
		_, values := l.g.epilogueTo(l.value, product, points[i/4], sums[i:i+2])
		out = append(out, values...)
	}
	return out
}

// pointsInside are the points of a run of columns from one on, moved to places of the result that are next to those outside.
func (l *leaving) pointsInside(row, column *Expr, run int) []*Point {
	b := l.ev.b
	row = b.MinIndex(row, b.Sub(b.Size(l.mTotal), b.Idx(1)))
	if l.nTotal.DivisibleBy(int64(run), l.ev.prog.Divisor) {
		return l.points(l.batchAt, row, b.MinIndex(column, b.Sub(b.Size(l.nTotal), b.Idx(int64(run)))), run)
	}
	var points []*Point
	for i := range run {
		points = append(points, l.points(l.batchAt, row, b.MinIndex(b.Add(column, b.Idx(int64(i))), b.Sub(b.Size(l.nTotal), b.Idx(1))), 1)...)
	}
	return points
}

// store stores a slab that is in shared memory.
func (l *leaving) store(at slab) {
	if l.storedAlongRows() {
		l.storeColumns(at)
	} else {
		l.storeRows(at)
	}
}

// storedAlongRows tells whether the rows of the product, and not its columns, are neighbours in
// the group's result.
func (l *leaving) storedAlongRows() bool {
	ev, b := l.ev, l.ev.b
	if ir.Product(l.m).Bounds(ev.prog.Range).Max < 2 {
		return false
	}
	at := func(m int64) *Expr {
		zero := b.Idx(0)
		coordinates := l.join(l.batchAt, ev.delinearize(b.Idx(m), l.m), ev.delinearize(zero, l.n))
		return ev.linearIndex(l.g.moved(l.op.Results[0], ev.at(ev.shape(l.op.Results[0]), coordinates)))
	}
	d, ok := Difference(at(1), at(0))
	return ok && d == 1 && !ir.Product(l.n).Is(1)
}

// eachRun stores the runs of a slab, some at a time. Single elements, and runs of fewer than chunkSize, of which there are many, are stored in a
// loop where ptxas would have no registers for all their places: of 64 bits, or beside the sums of the next tile or what an epilogue reads.
func (l *leaving) eachRun(run int, store func(from *Expr, count int)) {
	b := l.ev.b
	runs := slabRows * l.columns / run
	together := runs / 32
	much := l.s.WarpM > slabRows || b.Index == ir.I64 || l.stage.DType == ir.F32 && len(l.g.region.Params) > 2
	if l.s.Bulk && (run == 1 && much || run > 1 && run < chunkSize) {
		together = min(together, runsTogether)
	}
	some := runs
	if together < runs/32 {
		for runs/32%together != 0 {
			together--
		}
		some = 32 * together
	}
	if some == runs {
		store(b.Idx(0), runs)
		return
	}
	l.ev.loop(b.Idx(0), b.Idx(int64(runs/some)), b.Idx(1), nil, func(i *Expr, _ []*Expr) []*Expr {
		store(b.Mul(i, b.Idx(int64(some))), some)
		return nil
	})
}

// storeRows stores a slab in runs along columns: of eight, or of 16 bytes of wider results, where every row of the result starts at
// a multiple of that, else of single elements, neighbours by neighbouring threads.
func (l *leaving) storeRows(at slab) {
	run := chunkSize
	if size := l.g.outputs[0].DType.Size(); l.s.Bulk && size > 2 {
		run = 16 / size
	}
	if !l.nTotal.DivisibleBy(int64(run), l.ev.prog.Divisor) {
		run = 1
	}
	whole := l.ev.b.bool(false)
	if l.shifted {
		whole = l.storeShifted(at)
	}
	l.g.guardedScope(l.ev.b.Not(whole), func() {
		l.eachRun(run, func(from *Expr, count int) { l.storeRuns(at, from, count, run) })
	})
}

// storeRuns stores some runs of a slab, from one on.
func (l *leaving) storeRuns(at slab, from *Expr, count, run int) {
	b := l.ev.b
	type place struct {
		from, inside *Expr
		points       []*Point
	}
	perRow := l.columns / run
	ahead := l.readsAhead(run)
	var places []place
	for i := 0; i < count; i += 32 {
		id := b.Add(b.Add(from, l.lane), b.Idx(int64(i)))
		r, c := b.DivMod(id, b.Idx(int64(perRow)))
		row := b.Add(b.Add(l.firstM, l.warpM), b.Add(r, at.below))
		first := b.Mul(c, b.Idx(int64(run)))
		column := b.Add(b.Add(l.firstN, l.warpN), b.Add(first, at.right))
		inside := b.And(b.Less(id, b.Idx(int64(slabRows*perRow))), b.Less(row, b.Size(l.mTotal)))
		p := place{b.Add(l.rowInStage(at, r), first), b.And(inside, b.Less(column, b.Size(l.nTotal))), nil}
		if ahead {
			p.points = l.pointsInside(row, column, run)
		} else {
			p.points = l.points(l.batchAt, row, column, run)
		}
		places = append(places, p)
	}
	for some := range slices.Chunk(places, runsTogether) {
		if ahead {
			var inputs []*Expr
			for _, p := range some {
				inputs = append(inputs, l.inputs(p.points)...)
			}
			b.readNow(globalLoads(inputs))
		}
		for _, p := range some {
			if ahead {
				l.storeRun(p.points, p.inside, l.loadRun(p.from, run))
			} else {
				l.g.guardedScope(p.inside, func() { l.storeRun(p.points, b.True(), l.loadRun(p.from, run)) })
			}
		}
	}
}

// inputs are what the epilogue reads beside what is staged.
func (l *leaving) inputs(points []*Point) []*Expr {
	return l.g.epilogueInputs(l.g.region.Results[0], l.value, points)
}

// readsAhead tells whether inputs of runs are read before the guards of their results, elsewhere where there is no result: where they are few loads.
func (l *leaving) readsAhead(run int) (ahead bool) {
	if !l.s.Bulk || run == 1 || slabRows*l.columns/run%32 != 0 {
		return false
	}
	b := l.ev.b
	l.ev.aside(func() {
		points := l.pointsInside(b.variable(b.Index), b.Mul(b.variable(b.Index), b.Idx(int64(run))), run)
		ahead = len(globalLoads(l.inputs(points))) <= loadsOfRun
	})
	return ahead
}

// storeRun stores results at points, if they are inside, of what went through shared memory.
func (l *leaving) storeRun(points []*Point, inside *Expr, values []*Expr) {
	points, values = l.g.epilogueTo(l.g.region.Results[0], l.value, points, l.finishStaged(values))
	l.g.storeLanesIf(inside, 0, points, values)
}

// runsTogether is the number of runs whose epilogues' inputs a thread reads at a time, if they are up to loadsOfRun loads each: ptxas has no registers
// for the places of more.
const (
	runsTogether = 4
	loadsOfRun   = 4
)

// globalLoads are what expressions read of global memory.
func globalLoads(xs []*Expr) (loads []*Expr) {
	seen := map[*Expr]bool{}
	var visit func(x *Expr)
	visit = func(x *Expr) {
		if seen[x] {
			return
		}
		seen[x] = true
		for _, a := range x.Args {
			visit(a)
		}
		if x.Op == Load && x.Buffer.Space == Global {
			loads = append(loads, x)
		}
	}
	for _, x := range xs {
		visit(x)
	}
	return loads
}

// readNow reads of global memory here and now, before anything is computed of it.
func (b *Builder) readNow(loads []*Expr) {
	if len(loads) > 1 {
		b.emit(&Let{loads})
	}
}

// storeColumns stores a slab in runs along rows, likewise.
func (l *leaving) storeColumns(at slab) {
	run := chunkSize
	if !l.mTotal.DivisibleBy(chunkSize, l.ev.prog.Divisor) {
		run = 1
	}
	l.eachRun(run, func(from *Expr, count int) { l.storeColumnRuns(at, from, count, run) })
}

// storeColumnRuns stores some runs along rows, from one on.
func (l *leaving) storeColumnRuns(in slab, from *Expr, count, run int) {
	ev, b := l.ev, l.ev.b
	perColumn := slabRows / run
	for i := 0; i < count; i += 32 {
		at, r := b.DivMod(b.Add(b.Add(from, l.lane), b.Idx(int64(i))), b.Idx(int64(perColumn)))
		first := b.Mul(r, b.Idx(int64(run)))
		row := b.Add(b.Add(l.firstM, l.warpM), b.Add(first, in.below))
		column := b.Add(b.Add(l.firstN, l.warpN), b.Add(at, in.right))
		l.g.guardedScope(b.And(b.Less(row, b.Size(l.mTotal)), b.Less(column, b.Size(l.nTotal))), func() {
			points, values := make([]*Point, run), make([]*Expr, run)
			for i := range points {
				coordinates := l.join(l.batchAt, ev.delinearize(b.Add(row, b.Idx(int64(i))), l.m), ev.delinearize(column, l.n))
				points[i] = ev.at(ev.shape(l.op.Results[0]), coordinates)
				staged := b.Add(b.Mul(b.Add(first, b.Idx(int64(i))), b.Idx(l.pitch)), at)
				values[i] = b.LoadShared(l.stage, b.Add(l.base, staged), 1)[0]
			}
			l.storeRun(points, b.True(), values)
		})
	}
}

// loadRun reads adjacent elements of the stage.
func (l *leaving) loadRun(from *Expr, run int) []*Expr {
	b := l.ev.b
	var out []*Expr
	for widest := min(run, 16/l.stage.DType.Size()); len(out) < run; {
		out = append(out, b.LoadShared(l.stage, b.Add(from, b.Idx(int64(len(out)))), widest)...)
	}
	return out
}

// finishStaged finishes sums that went through the stage, but where they were finished before.
func (l *leaving) finishStaged(sums []*Expr) []*Expr {
	if l.stage.DType != ir.F32 {
		return sums
	}
	return l.ev.finishContraction(l.op, l.accumulator, sums)
}
