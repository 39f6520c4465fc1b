package kernel

import "weft/ir"

// vectorProduct runs a contraction of few rows, as decoding has them: time goes into reading the
// other operand, the weights, once. Rows is the number of those rows, TileN that of the weights'
// rows of a block. The block's threads are split over TileN/ThreadN groups of rows of the
// weights and over k; a thread takes ThreadN rows by Vector elements of k in each turn, of which
// 16 bytes are one load, whichever of them is adjacent in memory. Partial sums meet in a fixed
// order: by shuffles in a warp, then through shared memory.
type vectorProduct struct {
	*contraction
	s          ir.Schedule
	rows       int
	alongK     bool
	batchAt    []*Expr
	first      *Expr // first row of the weights of the block
	group, k   *Expr // the thread's group of rows, and its place along k
	groups     int
	kThreads   int // threads along k of a group
	weights    ir.Dim
	kTotal     ir.Dim
	wholeK     bool // Vector divides k
	wholeGroup bool // ThreadN divides the rows of the weights
}

// buildVectorProduct emits the kernel of a contract group with few rows.
func (g *group) buildVectorProduct() {
	ev, b := g.ev, g.ev.b
	c := &vectorProduct{contraction: contractionOf(ev, g.anchor), s: g.schedule, rows: g.schedule.Rows}
	if !ir.Product(c.m).Is(int64(c.rows)) {
		c.swap()
	}
	s := c.s
	c.weights, c.kTotal = ir.Product(c.n), ir.Product(c.contraction.k)
	c.wholeK = c.kTotal.DivisibleBy(int64(s.Vector), ev.prog.Divisor)
	c.wholeGroup = c.weights.DivisibleBy(int64(s.ThreadN), ev.prog.Divisor)
	block, _, batch := b.Blocks(c.weights.CeilDiv(int64(s.TileN)), ir.Const(1), ir.Product(c.batch))
	c.batchAt = ev.delinearize(batch, c.batch)
	c.first = b.Mul(block, b.Idx(int64(s.TileN)))
	c.groups = s.TileN / s.ThreadN
	c.kThreads = s.Threads / c.groups
	c.alongK = c.weightsAlongK()
	if c.alongK {
		c.group, c.k = b.DivMod(b.ThreadIndex(), b.Idx(int64(c.kThreads)))
	} else {
		c.k, c.group = b.DivMod(b.ThreadIndex(), b.Idx(int64(c.groups)))
	}
	if s.WarpM > 0 {
		c.finishTogether(g, c.multiplyOnTensorCores(), s.Threads/32)
		return
	}
	c.finish(g, c.multiply())
}

// weightsAlongK tells whether neighbours along k are neighbours in the weights' memory.
func (c *vectorProduct) weightsAlongK() bool {
	b := c.ev.b
	if c.kTotal.Bounds(c.ev.prog.Range).Max < 2 || !c.ev.nonZero(c.ev.shape(c.rhsValue)) {
		return true
	}
	zero := b.Idx(0)
	at := func(k int64) *Expr {
		p, _ := c.rhs(c.batchAt, c.ev.delinearize(zero, c.n), c.ev.delinearize(b.Idx(k), c.contraction.k))
		x := c.ev.value(c.rhsValue, []*Point{p})[0]
		for x.Op != Load && len(x.Args) > 0 {
			x = x.Args[0]
		}
		return x
	}
	first, second := at(0), at(1)
	if first.Op != Load || second.Op != Load {
		return true
	}
	d, ok := Difference(second.Args[0], first.Args[0])
	return ok && d == 1
}

// loadsAhead is the number of 16-byte loads of the weights that a thread starts together.
const loadsAhead = 8

// multiply runs over k and returns the thread's partial sums, row by row.
func (c *vectorProduct) multiply() []*Expr {
	ev, b, s := c.ev, c.ev.b, c.s
	perTurn := int64(c.kThreads * s.Vector)
	unroll := int64(1)
	if c.alongK {
		unroll = max(1, int64(loadsAhead/s.ThreadN))
	}
	if n, ok := c.kTotal.IsConst(); ok {
		unroll = max(1, min(unroll, n/perTurn))
	}
	count := b.Size(c.kTotal.CeilDiv(perTurn * unroll))
	init := repeat(b.zero(c.accumulator), c.rows*s.ThreadN)
	return ev.loop(b.Idx(0), count, b.Idx(1), init, func(i *Expr, sums []*Expr) []*Expr {
		weights := make([][][]*Expr, unroll)
		first := make([]*Expr, unroll)
		for u := range unroll {
			turn := b.Add(b.Mul(i, b.Idx(unroll)), b.Idx(u))
			first[u] = b.Mul(b.Add(b.Mul(turn, b.Idx(int64(c.kThreads))), c.k), b.Idx(int64(s.Vector)))
			weights[u] = c.loadWeights(first[u])
		}
		for u := range unroll {
			sums = c.addTurn(first[u], weights[u], sums)
		}
		return sums
	})
}

// run evaluates an operand at Vector elements of k, zero outside.
func (c *vectorProduct) run(v ir.Value, k0 *Expr, inside *Expr, point func(k []*Expr) *Point) []*Expr {
	ev, b := c.ev, c.ev.b
	points, valid := make([]*Point, c.s.Vector), make([]*Expr, c.s.Vector)
	for l := range points {
		k := b.Add(k0, b.Idx(int64(l)))
		bound := k
		if c.wholeK {
			bound = k0
		}
		points[l] = point(ev.delinearize(k, c.contraction.k))
		valid[l] = b.And(inside, b.Less(bound, b.Size(c.kTotal)))
	}
	return c.widened(v, points, valid)
}

func (c *vectorProduct) widened(v ir.Value, points []*Point, valid []*Expr) []*Expr {
	b := c.ev.b
	t := c.ev.entry.Type(v).DType
	out := make([]*Expr, len(points))
	for l, x := range c.ev.guarded(v, points, valid, repeat(b.zero(held(t)), len(points))) {
		out[l] = b.factor(c.op, x, t, c.accumulator)
	}
	return out
}

// loadWeights reads the thread's part of the weights of a turn, as [row][k].
func (c *vectorProduct) loadWeights(k0 *Expr) [][]*Expr {
	ev, b, s := c.ev, c.ev.b, c.s
	first := b.Add(c.first, b.Mul(c.group, b.Idx(int64(s.ThreadN))))
	out := make([][]*Expr, s.ThreadN)
	if c.alongK {
		for j := range out {
			n := b.Add(first, b.Idx(int64(j)))
			at := ev.delinearize(n, c.n)
			out[j] = c.run(c.rhsValue, k0, b.Less(n, b.Size(c.weights)), func(k []*Expr) *Point { return c.rhsPoint(c.batchAt, at, k) })
		}
		return out
	}
	for l := range s.Vector {
		k := b.Add(k0, b.Idx(int64(l)))
		points, valid := make([]*Point, s.ThreadN), make([]*Expr, s.ThreadN)
		for j := range points {
			n := b.Add(first, b.Idx(int64(j)))
			bound := n
			if c.wholeGroup {
				bound = first
			}
			points[j] = c.rhsPoint(c.batchAt, ev.delinearize(n, c.n), ev.delinearize(k, c.contraction.k))
			valid[j] = b.And(b.Less(bound, b.Size(c.weights)), b.Less(k, b.Size(c.kTotal)))
		}
		for j, x := range c.widened(c.rhsValue, points, valid) {
			out[j] = append(out[j], x)
		}
	}
	return out
}

// addTurn multiplies a turn's weights with all rows.
func (c *vectorProduct) addTurn(k0 *Expr, weights [][]*Expr, sums []*Expr) []*Expr {
	ev, b := c.ev, c.ev.b
	next := append([]*Expr{}, sums...)
	for m := range c.rows {
		at := ev.delinearize(b.Idx(int64(m)), c.m)
		x := c.run(c.lhsValue, k0, b.True(), func(k []*Expr) *Point { return c.lhsPoint(c.batchAt, at, k) })
		for j, w := range weights {
			sum := &next[m*c.s.ThreadN+j]
			for l := range x {
				*sum = b.multiplyAdd(c.accumulator, x[l], w[l], *sum)
			}
		}
	}
	return next
}

// acrossLanes adds up partial sums over the lanes of a warp that differ in the bits of masks.
// At each bit the lanes of a pair share the sums between them as long as there are several, so
// that in the end each lane has few of the sums; index gives which the first of them is, and
// those after follow it. Lanes that are not owner have the same ones again.
func (c *vectorProduct) acrossLanes(sums []*Expr, masks []int64) (out []*Expr, index, owner *Expr) {
	b := c.ev.b
	index, owner = b.Idx(0), b.True()
	for len(sums)&(len(sums)-1) != 0 { // always divisible in halves
		sums = append(sums, b.zero(c.accumulator))
	}
	for _, mask := range masks {
		bit := b.Cmp(NE, b.node(And, b.Index, 0, b.ThreadIndex(), b.Idx(mask)), b.Idx(0))
		if len(sums) == 1 {
			sums = []*Expr{b.Arith(FAdd, c.accumulator, sums[0], b.ShuffleXor(sums[0], mask))}
			owner = b.And(owner, b.Not(bit))
			continue
		}
		half := len(sums) / 2
		kept := make([]*Expr, half)
		for i := range kept {
			low, high := sums[i], sums[half+i]
			received := b.ShuffleXor(b.Select(bit, low, high), mask)
			kept[i] = b.Arith(FAdd, c.accumulator, b.Select(bit, high, low), received)
		}
		sums = kept
		index = b.Add(index, b.Select(bit, b.Idx(int64(half)), b.Idx(0)))
	}
	return sums, index, owner
}

// finish brings the partial sums of the block together and stores the results.
func (c *vectorProduct) finish(g *group, sums []*Expr) {
	b, s := c.ev.b, c.s
	lowest, stride := 1, 1 // of the bits of a lane that count along k
	if !c.alongK {
		lowest = c.groups
		stride = min(c.groups, 32)
	}
	var masks []int64
	for mask := lowest; mask < min(32, lowest*c.kThreads); mask *= 2 {
		masks = append(masks, int64(mask))
	}
	total := len(sums)
	sums, index, owner := c.acrossLanes(sums, masks)
	part, _ := b.DivMod(c.k, b.Idx(int64(min(c.kThreads, 32/stride))))
	parts := max(1, c.kThreads*stride/32)
	perPart := int64(c.rows * s.TileN)
	shared := b.SharedArray(c.accumulator, int64(parts)*perPart)
	base := b.Add(b.Mul(part, b.Idx(perPart)), b.Mul(c.group, b.Idx(int64(total))))
	for i, x := range sums {
		at := b.Add(index, b.Idx(int64(i)))
		b.If(b.And(owner, b.Less(at, b.Idx(int64(total)))), func() { b.Store(shared, b.Add(base, at), x) })
	}
	c.finishTogether(g, shared, parts)
}

// finishTogether adds up the parts of the block's sums in shared memory and stores the results.
func (c *vectorProduct) finishTogether(g *group, shared *Buffer, parts int) {
	b, s := c.ev.b, c.s
	perPart := int64(c.rows * s.TileN)
	total := c.rows * s.ThreadN
	b.Barrier()
	for first := 0; first < int(perPart); first += s.Threads {
		id := b.Add(b.ThreadIndex(), b.Idx(int64(first)))
		m, column := b.DivMod(id, b.Idx(int64(s.TileN)))
		n := b.Add(c.first, column)
		g.guardedScope(b.And(b.Less(id, b.Idx(perPart)), b.Less(n, b.Size(c.weights))), func() {
			group, j := b.DivMod(column, b.Idx(int64(s.ThreadN)))
			at := b.Add(b.Add(b.Mul(group, b.Idx(int64(total))), b.Mul(m, b.Idx(int64(s.ThreadN)))), j)
			sum := b.LoadShared(shared, at, 1)[0]
			for p := 1; p < parts; p++ {
				sum = b.Arith(FAdd, c.accumulator, sum, b.LoadShared(shared, b.Add(at, b.Idx(int64(p)*perPart)), 1)[0])
			}
			c.store(g, c.batchAt, m, n, []*Expr{sum})
		})
	}
}
