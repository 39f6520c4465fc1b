package kernel

import (
	"math"

	"weft/ir"
)

// coresAttention runs attention on the CUDA cores, without tensor cores and approximate
// instructions: for float32 and float64, and for half types whose heads tensor cores do not
// divide. As in attention the softmax is kept online and no S x T matrix is in memory. Sixteen
// threads share ThreadM queries; each computes the scores of every sixteenth key of a tile, then
// every sixteenth vector of elements of the weighted values. The weights of a tile pass from the
// one to the other through shared memory. The copy of a tile of values runs while its scores are
// computed, and that of the next tile of keys while values are added.
type coresAttention struct {
	*attentionBlock
	inner       ir.DType // of scores and sums: F32 or F64
	row, column *Expr    // the thread's first query in the block, and its number among sixteen
	rowStep     int
	vector      int // adjacent elements of the values of a thread
	vectors     int // of a thread
	q, k, v     *sharedTile
	weights     *Buffer // [query][key]
	weightPitch int
	largest     *Buffer // of the magnitudes that each warp has brought of the values
}

// sharers is the number of threads that share a query.
const sharers = 16

// buildCoresAttention emits the kernel of an attention group on the CUDA cores.
func (g *group) buildCoresAttention() {
	a := &coresAttention{attentionBlock: g.placeAttention()}
	a.place()
	a.finish(a.overKeys())
}

// valueVectors is how the sixteen threads of a query divide values of a width: the number of
// adjacent elements of a vector, which are loaded together, and of vectors of a thread.
func valueVectors(width int, t ir.DType) (vector, vectors int) {
	least := math.MaxInt
	for v := 1; v <= 16/t.Size(); v *= 2 {
		n := (width + sharers*v - 1) / (sharers * v)
		if cost := n * (4*v + 1); cost <= least { // multiplications and loads, by weight
			vector, vectors, least = v, n, cost
		}
	}
	return vector, vectors
}

// keyPitch is the number of elements from row to row of a tile of queries or keys: an odd number
// of chunks, so that eight rows lie in different banks.
func keyPitch(depth int, t ir.DType) int {
	chunk := 16 / t.Size()
	return ((depth+chunk-1)/chunk | 1) * chunk
}

// place computes the thread's part of the work and lays out shared memory.
func (a *coresAttention) place() {
	b, s := a.ev.b, a.schedule
	a.inner = ir.F32
	if a.dtype == ir.F64 {
		a.inner = ir.F64
	}
	a.row, a.column = b.DivMod(b.ThreadIndex(), b.Idx(sharers))
	a.rowStep = s.Threads / sharers
	a.vector, a.vectors = valueVectors(a.width, a.inner)
	tile := func(operand, height, width, pitch int, head, first *Expr) *sharedTile {
		t := a.tile(operand, height, head, first)
		t.dtype = a.inner
		t.whole = t.width%t.chunk() == 0
		t.width, t.pitch = width, pitch
		t.allocate(1)
		return t
	}
	pitch := keyPitch(a.depth, a.inner)
	chunk := 16 / a.inner.Size()
	depth := (a.depth + chunk - 1) / chunk * chunk
	a.q = tile(0, s.TileM, depth, pitch, a.head, a.first)
	a.k = tile(1, s.TileN, depth, pitch, a.keyHead, b.Idx(0))
	width := sharers * a.vector * a.vectors
	a.v = tile(2, s.TileN, width, width, a.keyHead, b.Idx(0))
	a.weightPitch = s.TileN + sharers
	a.weights = b.SharedArray(a.inner, int64(s.TileM*a.weightPitch))
	a.largest = b.SharedArray(a.inner, int64(s.Threads/32))
}

// queryRow is the thread's i-th query in the block.
func (a *coresAttention) queryRow(i int) *Expr {
	return a.ev.b.Add(a.row, a.ev.b.Idx(int64(i*a.rowStep)))
}

// keyColumn is the thread's j-th key in a tile.
func (a *coresAttention) keyColumn(j int) *Expr {
	return a.ev.b.Add(a.column, a.ev.b.Idx(int64(j*sharers)))
}

// overKeys runs over the tiles of keys. The state is the weighted values of each of the thread's
// queries, then their largest scores, then their sums.
func (a *coresAttention) overKeys() []*Expr {
	ev, b, s := a.ev, a.ev.b, a.schedule
	zero := b.Idx(0)
	tile := b.Idx(int64(s.TileN))
	count, _ := b.DivMod(b.Add(a.limit(), b.Idx(int64(s.TileN-1))), tile)
	b.If(b.Less(zero, count), func() {
		a.q.fill(zero, zero)
		a.k.fill(zero, zero)
	})
	b.Do("cp.async.commit_group")
	arrived := func() {
		b.Do("cp.async.wait_group", b.Int(ir.I32, 0))
	}
	init := repeat(b.zero(a.inner), s.ThreadM*a.vectors*a.vector)
	init = append(init, repeat(b.Float(a.inner, math.Inf(-1)), s.ThreadM)...)
	init = append(init, repeat(b.zero(a.inner), s.ThreadM)...)
	return ev.loop(zero, count, b.Idx(1), init, func(i *Expr, state []*Expr) []*Expr {
		first := b.Mul(i, tile)
		arrived()
		b.Barrier()
		a.v.fill(zero, first)
		b.Do("cp.async.commit_group")
		state = a.online(a.masked(a.scores(), first), state)
		arrived()
		a.noteLargest()
		b.Barrier()
		next := b.Add(i, b.Idx(1))
		b.If(b.Less(next, count), func() { a.k.fill(zero, b.Mul(next, tile)) })
		b.Do("cp.async.commit_group")
		return a.addValues(state)
	})
}

// turns emits a loop of n turns that are unrolled in groups with about budget multiplications.
func (a *coresAttention) turns(n, multiplications, budget int, init []*Expr, hi func(n int) *Expr, body func(i *Expr, carried []*Expr) []*Expr) []*Expr {
	b := a.ev.b
	group := 1
	for group < n && n%(2*group) == 0 && 2*group*multiplications <= budget {
		group *= 2
	}
	return a.ev.loop(b.Idx(0), hi(n/group), b.Idx(1), init, func(i *Expr, carried []*Expr) []*Expr {
		for g := range group {
			carried = body(b.Add(b.Mul(i, b.Idx(int64(group))), b.Idx(int64(g))), carried)
			b.emit(&Let{carried})
		}
		return carried
	})
}

// unrolledMultiplications is the number of multiplications up to which loops are unrolled.
const unrolledMultiplications = 512

// scores are q k^T of the thread's queries and keys, row by row.
func (a *coresAttention) scores() []*Expr {
	b, s := a.ev.b, a.schedule
	chunk := a.k.chunk()
	columns := s.TileN / sharers
	init := repeat(b.zero(a.inner), s.ThreadM*columns)
	return a.turns(a.k.width/chunk, chunk*len(init), unrolledMultiplications, init, func(n int) *Expr { return b.Idx(int64(n)) }, func(i *Expr, sums []*Expr) []*Expr {
		keys := make([][]*Expr, columns)
		for j := range keys {
			keys[j] = b.LoadShared(a.k.shared, a.k.offset(a.keyColumn(j), i), chunk)
		}
		out := make([]*Expr, len(sums))
		for m := range s.ThreadM {
			q := b.LoadShared(a.q.shared, a.q.offset(a.queryRow(m), i), chunk)
			for j, k := range keys {
				at := m*columns + j
				out[at] = sums[at]
				for l := range chunk {
					out[at] = b.Arith(Fma, a.inner, q[l], k[l], out[at])
				}
			}
		}
		return out
	})
}

// masked scales scores to units of log2 and applies what hides or shifts them.
func (a *coresAttention) masked(scores []*Expr, first *Expr) []*Expr {
	b, s := a.ev.b, a.schedule
	columns := make([]*Expr, s.TileN/sharers)
	for j := range columns {
		columns[j] = b.Add(first, a.keyColumn(j))
	}
	out := make([]*Expr, len(scores))
	for m := range s.ThreadM {
		row := b.Add(a.first, a.queryRow(m))
		bias, seen := a.mask(row, columns)
		for j, column := range columns {
			at := m*len(columns) + j
			y := b.Arith(FMul, a.inner, scores[at], b.Float(a.inner, a.attrs.Scale*log2e))
			if bias != nil {
				x := b.widen(bias[j], a.ev.entry.Type(a.op.Operands[3]).DType, a.inner)
				y = b.Arith(Fma, a.inner, x, b.Float(a.inner, log2e), y)
			}
			visible := a.visible(row, column)
			if seen != nil {
				visible = b.And(visible, seen[j])
			}
			out[at] = b.Select(visible, y, b.Float(a.inner, math.Inf(-1)))
		}
	}
	return out
}

// across combines a value of each of the threads that share a query.
func (a *coresAttention) across(op Op, x *Expr) *Expr {
	b := a.ev.b
	for mask := int64(1); mask < sharers; mask *= 2 {
		x = b.Arith(op, a.inner, x, b.ShuffleXor(x, mask))
	}
	return x
}

func (a *coresAttention) exp2(x *Expr) *Expr {
	y, _ := a.ev.b.elementary("exponential_base2", a.inner, x)
	return y
}

// online stores a tile's weights and brings the state up to its scores.
func (a *coresAttention) online(scores, state []*Expr) []*Expr {
	b, s := a.ev.b, a.schedule
	each := a.vectors * a.vector
	columns := s.TileN / sharers
	next := make([]*Expr, len(state))
	for m := range s.ThreadM {
		maxAt := s.ThreadM*each + m
		sumAt := maxAt + s.ThreadM
		row := scores[m*columns : (m+1)*columns]
		largest := row[0]
		for _, x := range row[1:] {
			largest = b.Arith(FMax, a.inner, largest, x)
		}
		largest = b.Arith(FMax, a.inner, state[maxAt], a.across(FMax, largest))
		base := b.Select(b.Cmp(FEQ, largest, b.Float(a.inner, math.Inf(-1))), b.zero(a.inner), largest)
		shrink := a.exp2(b.Arith(FSub, a.inner, state[maxAt], base))
		sum := b.Arith(FMul, a.inner, state[sumAt], shrink)
		for j, x := range row {
			w := a.exp2(b.Arith(FSub, a.inner, x, base))
			sum = b.Arith(FAdd, a.inner, sum, w)
			b.Store(a.weights, b.Add(b.Mul(a.queryRow(m), b.Idx(int64(a.weightPitch))), a.keyColumn(j)), w)
		}
		for e := m * each; e < (m+1)*each; e++ {
			next[e] = b.Arith(FMul, a.inner, state[e], shrink)
		}
		next[maxAt], next[sumAt] = largest, sum
		b.emit(&Let{append([]*Expr{largest, sum}, next[m*each:(m+1)*each]...)})
	}
	return next
}

// noteLargest finds the largest magnitude among the values that the warp has brought, so that
// all know whether some are infinite or NaN.
func (a *coresAttention) noteLargest() {
	b := a.ev.b
	largest := b.zero(a.inner)
	chunks := a.v.width * a.v.height / a.v.chunk()
	for i := 0; i*a.v.threads < chunks; i++ {
		row, chunk := a.v.chunkOf(i)
		look := func(_ *Expr, carried []*Expr) []*Expr {
			out := carried[0]
			for _, x := range b.LoadShared(a.v.shared, a.v.offset(row, chunk), a.v.chunk()) {
				out = b.Arith(FMax, a.inner, out, b.Arith(FAbs, a.inner, x))
			}
			return []*Expr{out}
		}
		if (i+1)*a.v.threads <= chunks {
			largest = look(nil, []*Expr{largest})[0]
			continue
		}
		inside := b.Less(b.Add(b.ThreadIndex(), b.Idx(int64(i*a.v.threads))), b.Idx(int64(chunks)))
		largest = a.ev.loop(b.Idx(0), b.Select(inside, b.Idx(1), b.Idx(0)), b.Idx(1), []*Expr{largest}, look)[0]
	}
	for mask := int64(16); mask > 0; mask /= 2 {
		largest = b.Arith(FMax, a.inner, largest, b.ShuffleXor(largest, mask))
	}
	warp, lane := b.DivMod(b.ThreadIndex(), b.Idx(32))
	b.If(b.Cmp(EQ, lane, b.Idx(0)), func() { b.Store(a.largest, warp, largest) })
}

// addValues adds the weighted values of a tile to the state. A key without weight adds nothing,
// whatever its values are: where some are not finite, a loop of its own looks at the weights.
func (a *coresAttention) addValues(state []*Expr) []*Expr {
	b, s := a.ev.b, a.schedule
	each := a.vectors * a.vector
	sums := state[:s.ThreadM*each]
	largest := b.zero(a.inner)
	for w := range s.Threads / 32 {
		largest = b.Arith(FMax, a.inner, largest, b.LoadShared(a.largest, b.Idx(int64(w)), 1)[0])
	}
	finite := b.Cmp(FLT, largest, b.Float(a.inner, math.Inf(1)))
	chunk := a.k.chunk()
	n, each4 := s.TileN/chunk, chunk*len(sums)
	sums = a.turns(n, each4, unrolledMultiplications, sums, func(n int) *Expr { return b.Select(finite, b.Idx(int64(n)), b.Idx(0)) },
		func(i *Expr, sums []*Expr) []*Expr { return a.addChunk(i, sums, false) })
	sums = a.turns(n, each4, 0, sums, func(n int) *Expr { return b.Select(finite, b.Idx(0), b.Idx(int64(n))) },
		func(i *Expr, sums []*Expr) []*Expr { return a.addChunk(i, sums, true) })
	return append(append([]*Expr{}, sums...), state[s.ThreadM*each:]...)
}

// addChunk adds the weighted values of as many keys as have their weights in 16 bytes.
func (a *coresAttention) addChunk(i *Expr, sums []*Expr, careful bool) []*Expr {
	b, s := a.ev.b, a.schedule
	chunk := a.k.chunk()
	first := b.Mul(i, b.Idx(int64(chunk)))
	weights := make([][]*Expr, s.ThreadM)
	for m := range weights {
		at := b.Add(b.Mul(a.queryRow(m), b.Idx(int64(a.weightPitch))), first)
		weights[m] = b.LoadShared(a.weights, at, chunk)
	}
	out := append([]*Expr{}, sums...)
	for l := range chunk {
		row := b.Mul(b.Add(first, b.Idx(int64(l))), b.Idx(int64(a.v.rowPitch())))
		for j := range a.vectors {
			column := b.Add(b.Mul(a.column, b.Idx(int64(a.vector))), b.Idx(int64(j*sharers*a.vector)))
			for e, v := range b.LoadShared(a.v.shared, b.Add(row, column), a.vector) {
				for m := range s.ThreadM {
					at := (m*a.vectors+j)*a.vector + e
					sum := b.Arith(Fma, a.inner, weights[m][l], v, out[at])
					if careful {
						sum = b.Select(b.Cmp(FEQ, weights[m][l], b.zero(a.inner)), out[at], sum)
					}
					out[at] = sum
				}
			}
		}
	}
	return out
}

// finish divides by the sums and stores the results; rows that saw nothing are zero.
func (a *coresAttention) finish(state []*Expr) {
	ev, b, s := a.ev, a.ev.b, a.schedule
	each := a.vectors * a.vector
	dims := ev.shape(a.op.Results[0])
	to := ev.entry.Type(a.op.Results[0]).DType
	run := a.vector // neighbours are stored together where all are inside or none is
	if a.width%a.vector != 0 {
		run = 1
	}
	for m := range s.ThreadM {
		zero := b.zero(a.inner)
		sum := a.across(FAdd, state[s.ThreadM*(each+1)+m])
		factor := b.Select(b.Cmp(FEQ, sum, zero), zero, b.Arith(FDiv, a.inner, b.Float(a.inner, 1), sum))
		row := b.Add(a.first, a.queryRow(m))
		for e := 0; e < each; e += run {
			column := b.Add(b.Mul(a.column, b.Idx(int64(a.vector))), b.Idx(int64(e/a.vector*sharers*a.vector+e%a.vector)))
			inside := b.And(b.Less(row, b.Size(a.queries)), b.Less(column, b.Idx(int64(a.width))))
			a.guardedScope(inside, func() {
				points, out := make([]*Point, run), make([]*Expr, run)
				for l := range out {
					points[l] = ev.at(dims, []*Expr{a.batch, a.head, row, b.Add(column, b.Idx(int64(l)))})
					out[l] = b.convert(b.Arith(FMul, a.inner, state[m*each+e+l], factor), a.inner, to)
				}
				points, out = a.epilogue(a.op.Results[0], points, out)
				a.storeLanes(0, points, out)
			})
		}
	}
}
