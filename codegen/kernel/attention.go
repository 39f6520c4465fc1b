package kernel

import (
	"math"

	"weft/ir"
)

// attention runs scaled dot-product attention of half types in one kernel, with no S x T matrix
// in memory. A block has TileM queries of one head, a warp 16 of them. Keys and values come in
// tiles of TileN; while one is used the next is on its way. The softmax is kept online: each
// row has the largest score so far, the sum of exponentials below it and the weighted values,
// which are scaled when the largest score grows. Scores are in units of log2, so that the
// exponential is one instruction. Masks and the causal rule are functions of the index.
type attention struct {
	*attentionBlock
	lane, row        *Expr // row: the thread's first query (the other is 8 further)
	pair             *Expr // the thread's first column in 8
	q, k, v          *sharedTile
	high, low, eight *Expr
}

// attentionBlock is a block's part of attention: TileM queries of one head.
type attentionBlock struct {
	*group
	op            *ir.Op
	attrs         *ir.AttentionAttrs
	dtype         ir.DType // of the operands
	queries, keys ir.Dim   // S, T
	depth, width  int      // D, E
	batch, head   *Expr
	keyHead       *Expr // the head of keys and values
	first         *Expr // first query of the block
}

const log2e = math.Log2E

// buildAttention emits the kernel of an attention group.
func (g *group) buildAttention() {
	if g.schedule.Stages == 0 {
		g.buildCoresAttention()
		return
	}
	a := &attention{attentionBlock: g.placeAttention()}
	a.place()
	fragments := a.loadQueries()
	var state []*Expr
	if a.warpgroup {
		state = a.overKeysByWarpgroups(fragments)
	} else {
		state = a.overKeys(fragments)
	}
	a.finish(state[:a.width/2], state[a.width/2:], a.ev.b.Idx(0))
	a.again(fragments, state[:a.width/2])
}

// placeAttention computes the block's part of the work.
func (g *group) placeAttention() *attentionBlock {
	ev, b := g.ev, g.ev.b
	a := &attentionBlock{group: g, op: g.anchor, attrs: g.anchor.Attrs.(*ir.AttentionAttrs)}
	q, k, v := ev.shape(a.op.Operands[0]), ev.shape(a.op.Operands[1]), ev.shape(a.op.Operands[2])
	a.dtype = ev.entry.Type(a.op.Operands[0]).DType
	a.queries, a.keys = q[2], k[2]
	a.depth, a.width = constant(q[3]), constant(v[3])
	rows := int64(g.schedule.TileM)
	block, head, batch := b.Blocks(a.queries.CeilDiv(rows), q[1], q[0])
	a.batch, a.head = batch, head
	repeats, _ := q[1].DivExact(k[1])
	a.keyHead, _ = b.DivMod(a.head, b.Size(repeats))
	a.first = b.Mul(block, b.Idx(rows))
	return a
}

// tile is the tile of an operand in shared memory, whose rows are positions of a head from
// first and the tile's origin on. Columns from limit on are zero.
func (a *attentionBlock) tile(operand, height int, head, first *Expr) *sharedTile {
	ev, b := a.ev, a.ev.b
	value := a.op.Operands[operand]
	dims := ev.shape(value)
	t := &sharedTile{ev: ev, threads: a.schedule.Threads, dtype: a.dtype, value: value, width: constant(dims[3]), height: height}
	t.whole = t.width%t.chunk() == 0
	t.at = func(origin, row, column, bound *Expr) (*Point, *Expr) {
		at := b.Add(b.Add(first, origin), row)
		inside := b.And(b.Less(at, b.Size(dims[2])), b.Less(bound, b.Size(dims[3])))
		return ev.at(dims, []*Expr{a.batch, head, at, column}), inside
	}
	return t
}

// place computes the thread's part of the work.
func (a *attention) place() {
	b, s := a.ev.b, a.schedule
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	quad, pair := b.DivMod(lane, b.Idx(4))
	a.lane = lane
	a.row = b.Add(b.Mul(warp, b.Idx(16)), quad)
	a.pair = b.Mul(pair, b.Idx(2))
	a.high, a.low, a.eight = matrixLane(b, lane)
	a.q = a.tile(0, s.TileM, a.head, a.first)
	a.k = a.tile(1, s.TileN, a.keyHead, b.Idx(0))
	a.v = a.tile(2, s.TileN, a.keyHead, b.Idx(0))
	a.k.panels, a.v.panels = a.warpgroup, a.warpgroup
	a.q.allocate(1)
	a.k.allocate(s.Stages)
	a.v.allocate(s.Stages)
}

func constant(d ir.Dim) int {
	v, ok := d.IsConst()
	if !ok {
		panic("BUG: attention kernel of a symbolic head size")
	}
	return int(v)
}

// loadQueries brings the block's queries into registers, as operands of the instruction.
func (a *attention) loadQueries() [][]*Expr {
	b := a.ev.b
	zero := b.Idx(0)
	a.q.fill(zero, zero)
	b.Do("cp.async.commit_group")
	b.Do("cp.async.wait_group", b.Int(ir.I32, 0))
	b.Barrier()
	warp, _ := b.DivMod(b.ThreadIndex(), b.Idx(32))
	var out [][]*Expr
	for d := 0; d < a.depth; d += 16 {
		out = append(out, a.q.matrices(zero, b.Mul(warp, b.Idx(16)), d, a.low, a.high, a.eight, false))
	}
	return out
}

// limit is the number of keys that some query of the block may see.
func (a *attentionBlock) limit() *Expr {
	b := a.ev.b
	keys := b.Size(a.keys)
	if !a.attrs.Causal {
		return keys
	}
	last := b.Add(b.Add(a.first, b.Idx(int64(a.schedule.TileM))), a.shift())
	return b.MaxIndex(b.MinIndex(last, keys), b.Idx(0))
}

// shift is what a query's position is moved by under the causal rule.
func (a *attentionBlock) shift() *Expr {
	if !a.attrs.AlignEnd {
		return a.ev.b.Idx(0)
	}
	return a.ev.b.parameter(a.keys.Sub(a.queries))
}

// overKeys runs over the tiles of keys. The state is the weighted values, then for each of the
// thread's two rows the largest score and the sum.
func (a *attention) overKeys(queries [][]*Expr) []*Expr {
	b, s := a.ev.b, a.schedule
	tile := b.Idx(int64(s.TileN))
	count, _ := b.DivMod(b.Add(a.limit(), b.Idx(int64(s.TileN-1))), tile)
	fill := func(stage, origin *Expr) {
		a.k.fill(stage, origin)
		a.v.fill(stage, origin)
	}
	b.If(b.Less(b.Idx(0), count), func() { fill(b.Idx(0), b.Idx(0)) })
	b.Do("cp.async.commit_group")
	turn := func(masked bool) func(i *Expr, state []*Expr) []*Expr {
		return func(i *Expr, state []*Expr) []*Expr {
			b.Do("cp.async.wait_group", b.Int(ir.I32, 0))
			b.Barrier()
			_, stage := b.DivMod(i, b.Idx(2))
			next := b.Add(i, b.Idx(1))
			b.If(b.Less(next, count), func() { fill(b.Sub(b.Idx(1), stage), b.Mul(next, tile)) })
			b.Do("cp.async.commit_group")
			weights, state := a.online(a.masked(a.scores(queries, stage), b.Mul(i, tile), masked), state)
			return a.addValues(weights, stage, state)
		}
	}
	return a.loops(b.Idx(0), count, a.emptyState(), turn)
}

// emptyState is the state of rows that have seen no key.
func (a *attention) emptyState() []*Expr {
	b := a.ev.b
	state := append(repeat(b.Float(ir.F32, 0), a.width/2), repeat(b.Float(ir.F32, math.Inf(-1)), 2)...)
	return append(state, repeat(b.Float(ir.F32, 0), 2)...)
}

// loops runs over tiles from first on: first over those that need no mask, then over the others.
func (a *attention) loops(first, count *Expr, state []*Expr, turn func(masked bool) func(i *Expr, state []*Expr) []*Expr) []*Expr {
	ev, b := a.ev, a.ev.b
	whole := b.MaxIndex(a.wholeTiles(count), first)
	if d, ok := Difference(whole, first); !ok || d != 0 {
		state = ev.loop(first, whole, b.Idx(1), state, turn(false))
	}
	if d, ok := Difference(count, whole); ok && d == 0 {
		return state
	}
	return ev.loop(whole, count, b.Idx(1), state, turn(true))
}

// wholeTiles is the number of tiles, from the first on, whose keys every query of the block sees.
func (a *attention) wholeTiles(count *Expr) *Expr {
	b := a.ev.b
	if len(a.op.Operands) > 3 {
		return b.Idx(0)
	}
	seen := b.Size(a.keys)
	if a.attrs.Causal {
		first := b.Add(b.Add(a.first, a.shift()), b.Idx(1)) // what the block's first query sees
		seen = b.MinIndex(b.MaxIndex(first, b.Idx(0)), seen)
	}
	whole, _ := b.DivMod(seen, b.Idx(int64(a.schedule.TileN)))
	return b.MinIndex(whole, count)
}

// mmaName is the instruction for the operands' type.
func mmaName(t ir.DType) string {
	switch t {
	case ir.F16:
		return "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
	case ir.F32:
		return "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
	}
	return "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
}

var fourF32 = []ir.DType{ir.F32, ir.F32, ir.F32, ir.F32}

// multiplyAccumulate is one instruction: m16n8k16, of TF32 m16n8k8.
func (b *Builder) multiplyAccumulate(t ir.DType, x, y, sum []*Expr) []*Expr {
	args := make([]*Expr, 0, 10)
	args = append(append(append(args, x...), y...), sum...)
	return b.Instruction(mmaName(t), fourF32, args...)
}

// scores are q k^T of a tile: for each 8 keys four elements, columns pair and pair+1 of the two rows.
func (a *attention) scores(queries [][]*Expr, stage *Expr) [][]*Expr {
	b, s := a.ev.b, a.schedule
	zero := repeat(b.Float(ir.F32, 0), 4)
	var out [][]*Expr
	for n := 0; n < s.TileN; n += 16 {
		left, right := zero, zero
		for i, q := range queries {
			k := a.k.matrices(stage, b.Idx(int64(n)), 16*i, a.high, a.low, a.eight, false)
			left = b.multiplyAccumulate(a.dtype, q, k[:2], left)
			right = b.multiplyAccumulate(a.dtype, q, k[2:], right)
		}
		out = append(out, left, right)
	}
	return out
}

// unit is what a score of masked is worth in units of log2. Where it is not 1, the maximum is scaled and not each score; that
// takes a positive scale, and no bias, which is added to scaled scores.
func (a *attention) unit() float64 {
	biased := len(a.op.Operands) > 3 && a.ev.entry.Type(a.op.Operands[3]).DType != ir.Bool
	if a.attrs.Scale > 0 && !biased {
		return a.attrs.Scale * log2e
	}
	return 1
}

// scaled turns a score into what unit measures.
func (a *attention) scaled(x *Expr) *Expr {
	if a.unit() != 1 {
		return x
	}
	return a.ev.b.Arith(FMul, ir.F32, x, a.ev.b.Float(ir.F32, a.attrs.Scale*log2e))
}

// masked applies to scores of keys from first on what scales them, and where some may be hidden or shifted, that too.
func (a *attention) masked(scores [][]*Expr, first *Expr, hides bool) [][]*Expr {
	b := a.ev.b
	out := make([][]*Expr, len(scores))
	for i, x := range scores {
		if hides {
			out[i] = a.maskedFour(x, b.Add(first, b.Idx(int64(8*i))))
			continue
		}
		out[i] = make([]*Expr, len(x))
		for l, y := range x {
			out[i][l] = a.scaled(y)
		}
	}
	return out
}

// maskedFour scales four scores and applies what hides or shifts them.
func (a *attention) maskedFour(x []*Expr, first *Expr) []*Expr {
	b := a.ev.b
	hidden := b.Float(ir.F32, math.Inf(-1))
	out := make([]*Expr, 4)
	for half := range 2 {
		row := b.Add(b.Add(a.first, a.row), b.Idx(int64(8*half)))
		columns := []*Expr{b.Add(first, a.pair), b.Add(first, b.Add(a.pair, b.Idx(1)))}
		bias, seen := a.mask(row, columns)
		for l, column := range columns {
			y := a.scaled(x[2*half+l])
			if bias != nil {
				y = b.Arith(Fma, ir.F32, bias[l], b.Float(ir.F32, log2e), y)
			}
			visible := a.visible(row, column)
			if seen != nil {
				visible = b.And(visible, seen[l])
			}
			out[2*half+l] = b.Select(visible, y, hidden)
		}
	}
	return out
}

// visible tells whether a query may see a key by its position.
func (a *attentionBlock) visible(row, column *Expr) *Expr {
	b := a.ev.b
	visible := b.Less(column, b.Size(a.keys))
	if a.attrs.Causal {
		visible = b.And(visible, b.Less(column, b.Add(b.Add(row, a.shift()), b.Idx(1))))
	}
	return visible
}

// mask evaluates the mask operand at a row and several columns: an additive bias, or what is seen.
func (a *attentionBlock) mask(row *Expr, columns []*Expr) (bias, seen []*Expr) {
	if len(a.op.Operands) < 4 {
		return nil, nil
	}
	ev, b := a.ev, a.ev.b
	m := a.op.Operands[3]
	dims := ev.shape(m)
	points, valid := make([]*Point, len(columns)), make([]*Expr, len(columns))
	for l, column := range columns {
		at := []*Expr{a.batch, a.head, row, column}
		for d := range at {
			if dims[d].Is(1) {
				at[d] = b.Idx(0)
			}
		}
		points[l] = ev.at(dims, at)
		bound := column
		if d, ok := Difference(column, columns[0]); ok && d == 1 && a.keys.DivisibleBy(2, ev.prog.Divisor) {
			bound = columns[0]
		}
		valid[l] = b.And(b.Less(bound, b.Size(a.keys)), b.Less(row, b.Size(a.queries)))
	}
	t := ev.entry.Type(m).DType
	values := ev.guarded(m, points, valid, repeat(b.zero(held(t)), len(columns)))
	if t == ir.Bool {
		return nil, values
	}
	return values, nil
}

// across combines a value of each of the four threads that share a row.
func (a *attention) across(op Op, x *Expr) *Expr {
	b := a.ev.b
	for _, mask := range []int64{1, 2} {
		x = b.Arith(op, ir.F32, x, b.ShuffleXor(x, mask))
	}
	return x
}

func (b *Builder) exp2(x *Expr) *Expr {
	return b.Instruction("ex2.approx.ftz.f32", []ir.DType{ir.F32}, x)[0]
}

// online turns a tile's scores into weights and brings the state up to them.
func (a *attention) online(scores [][]*Expr, state []*Expr) (weights [][]*Expr, next []*Expr) {
	values := len(state) - 4
	weights, rows := a.onlineRows(scores, state[values:])
	return weights, append(a.shrunk(state[:values], rows), rows[:4]...)
}

// onlineRows turns a tile's scores into weights and brings the largest scores and sums of the thread's two rows up to them. Two
// more results are what earlier values are worth now.
func (a *attention) onlineRows(scores [][]*Expr, state []*Expr) (weights [][]*Expr, rows []*Expr) {
	b, unit := a.ev.b, a.unit()
	rows = make([]*Expr, 6)
	weights = make([][]*Expr, len(scores))
	for i := range weights {
		weights[i] = make([]*Expr, 4)
	}
	for half := range 2 {
		old := state[half]
		largest := scores[0][2*half]
		for _, s := range scores {
			largest = b.Arith(FMax, ir.F32, largest, b.Arith(FMax, ir.F32, s[2*half], s[2*half+1]))
		}
		largest = a.across(FMax, largest)
		if unit != 1 {
			largest = b.Arith(FMul, ir.F32, largest, b.Float(ir.F32, unit))
		}
		largest = b.Arith(FMax, ir.F32, old, largest)
		base := b.Select(b.Cmp(FEQ, largest, b.Float(ir.F32, math.Inf(-1))), b.Float(ir.F32, 0), largest)
		shrink := b.exp2(b.Arith(FSub, ir.F32, old, base))
		sum := b.Arith(FMul, ir.F32, state[2+half], shrink)
		below := b.Arith(FNeg, ir.F32, base)
		for i, s := range scores {
			for l := range 2 {
				w := b.exp2(b.Arith(Fma, ir.F32, s[2*half+l], b.Float(ir.F32, unit), below))
				weights[i][2*half+l] = w
				sum = b.Arith(FAdd, ir.F32, sum, w)
			}
		}
		rows[half], rows[2+half], rows[4+half] = largest, sum, shrink
	}
	return weights, rows
}

// shrunk scales values as onlineRows says.
func (a *attention) shrunk(values, rows []*Expr) []*Expr {
	out := make([]*Expr, len(values))
	for i, x := range values {
		out[i] = a.ev.b.Arith(FMul, ir.F32, x, rows[4+i/2%2])
	}
	return out
}

// packed gives two parts of the weights, of sixteen keys, as an operand of the instruction.
func (a *attention) packed(weights [][]*Expr) []*Expr {
	pack := "cvt.rn.bf16x2.f32"
	if a.dtype == ir.F16 {
		pack = "cvt.rn.f16x2.f32"
	}
	var w []*Expr
	for _, part := range weights {
		for half := range 2 {
			w = append(w, a.ev.b.Instruction(pack, []ir.DType{ir.I32}, part[2*half+1], part[2*half])[0])
		}
	}
	return w
}

// addValues adds the weighted values of a tile to the state.
func (a *attention) addValues(weights [][]*Expr, stage *Expr, state []*Expr) []*Expr {
	b := a.ev.b
	for n := 0; n < len(weights); n += 2 {
		w := a.packed(weights[n : n+2])
		for e := 0; e < a.width; e += 16 {
			v := a.v.matrices(stage, b.Idx(int64(8*n)), e, a.low, a.high, a.eight, true)
			for i := range 2 {
				at := e/2 + 4*i
				copy(state[at:at+4], b.multiplyAccumulate(a.dtype, w, v[2*i:2*i+2], state[at:at+4]))
			}
		}
	}
	return state
}

// finish divides values of columns from first on by the sums and stores the results; rows that
// saw nothing are zero. rows has the largest scores and the sums.
func (a *attention) finish(values, rows []*Expr, first *Expr) {
	ev, b := a.ev, a.ev.b
	dims := ev.shape(a.op.Results[0])
	for half := range 2 {
		sum := a.across(FAdd, rows[2+half])
		zero := b.Float(ir.F32, 0)
		factor := b.Select(b.Cmp(FEQ, sum, zero), zero, b.Arith(FDiv, ir.F32, b.Float(ir.F32, 1), sum))
		row := b.Add(b.Add(a.first, a.row), b.Idx(int64(8*half)))
		a.guardedScope(b.Less(row, b.Size(a.queries)), func() {
			for e := 0; e < 2*len(values); e += 8 {
				points, out := make([]*Point, 2), make([]*Expr, 2)
				for l := range 2 {
					column := b.Add(b.Add(first, a.pair), b.Idx(int64(e+l)))
					points[l] = ev.at(dims, []*Expr{a.batch, a.head, row, column})
					out[l] = b.Round(a.dtype, b.Arith(FMul, ir.F32, values[e/2+2*half+l], factor))
				}
				points, out = a.epilogue(a.op.Results[0], points, out)
				a.storeLanes(0, points, out)
			}
		})
	}
}
