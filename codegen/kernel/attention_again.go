package kernel

import (
	"math"

	"weft/ir"
)

// again computes the block's results once more where some are infinite or NaN. The instruction
// multiplies each value with its weight, so that a hidden key with an infinite or NaN value, of
// weight zero, gives NaN. Here values that are not finite are zeros, and two more products with
// the weights tell which results have an infinity of either sign (a NaN is both). Sixteen columns
// are computed at a time, which takes few registers: this is rare, not fast.
func (a *attention) again(queries [][]*Expr, values []*Expr) {
	ev, b, s := a.ev, a.ev.b, a.schedule
	bad := b.Not(a.finite(values))
	tile := b.Idx(int64(s.TileN))
	zero := b.Idx(0)
	b.If(bad, func() {
		count, _ := b.DivMod(b.Add(a.limit(), b.Idx(int64(s.TileN-1))), tile)
		ev.loop(zero, b.Idx(int64(a.width/16)), b.Idx(1), nil, func(e *Expr, _ []*Expr) []*Expr {
			const columns = 8 // of a thread: sums of finite values, then what tells infinities
			init := append(repeat(b.Float(ir.F32, 0), 3*columns), repeat(b.Float(ir.F32, math.Inf(-1)), 2)...)
			init = append(init, repeat(b.Float(ir.F32, 0), 2)...)
			state := ev.loop(zero, count, b.Idx(1), init, func(i *Expr, state []*Expr) []*Expr {
				first := b.Mul(i, tile)
				b.Barrier()
				a.k.fill(zero, first)
				a.v.fill(zero, first)
				b.Do("cp.async.commit_group")
				b.Do("cp.async.wait_group", b.Int(ir.I32, 0))
				b.Barrier()
				weights, state := a.online(a.masked(a.scores(queries, zero), first, true), state)
				return a.addApart(weights, e, state)
			})
			values := make([]*Expr, columns)
			for i := range values {
				values[i] = a.infinities(state[i], state[columns+i], state[2*columns+i])
			}
			a.finish(values, state[3*columns:], b.Mul(e, b.Idx(16)))
			return nil
		})
	})
}

// finite tells whether all of the block's values are.
func (a *attention) finite(values []*Expr) *Expr {
	b := a.ev.b
	largest := b.Float(ir.F32, 0)
	for _, x := range values {
		largest = b.Arith(FMax, ir.F32, largest, b.Arith(FAbs, ir.F32, x))
	}
	for mask := int64(16); mask > 0; mask /= 2 {
		largest = b.Arith(FMax, ir.F32, largest, b.ShuffleXor(largest, mask))
	}
	warps := a.schedule.Threads / 32
	shared := b.SharedArray(ir.F32, int64(warps))
	warp, _ := b.DivMod(b.ThreadIndex(), b.Idx(32))
	b.If(b.Cmp(EQ, a.lane, b.Idx(0)), func() { b.Store(shared, warp, largest) })
	b.Barrier()
	for w := range warps {
		largest = b.Arith(FMax, ir.F32, largest, b.LoadShared(shared, b.Idx(int64(w)), 1)[0])
	}
	return b.Cmp(FLT, largest, b.Float(ir.F32, math.Inf(1)))
}

// infinities is a result of finite values and what tells infinities of both signs.
func (a *attention) infinities(x, positive, negative *Expr) *Expr {
	b := a.ev.b
	zero, inf := b.Float(ir.F32, 0), b.Float(ir.F32, math.Inf(1))
	x = b.Select(b.Cmp(FLT, zero, positive), inf, x)
	return b.Select(b.Cmp(FLT, zero, negative), b.Arith(FSub, ir.F32, b.Select(b.Cmp(FLT, zero, positive), inf, zero), inf), x)
}

// addApart adds the weighted values of sixteen columns of a tile, those that are not finite apart.
func (a *attention) addApart(weights [][]*Expr, e *Expr, state []*Expr) []*Expr {
	b := a.ev.b
	zero := b.Idx(0)
	for n := 0; n < len(weights); n += 2 {
		w := a.packed(weights[n : n+2])
		v := a.v.matrices(zero, b.Idx(int64(8*n)), 0, a.low, b.Add(a.high, b.Mul(e, b.Idx(2))), a.eight, true)
		parts := make([][]*Expr, 3)
		for _, x := range v {
			finite, positive, negative := a.apart(x)
			parts[0], parts[1], parts[2] = append(parts[0], finite), append(parts[1], positive), append(parts[2], negative)
		}
		for p, part := range parts {
			for i := range 2 {
				at := 8*p + 4*i
				copy(state[at:at+4], b.multiplyAccumulate(a.dtype, w, part[2*i:2*i+2], state[at:at+4]))
			}
		}
	}
	return state
}

// apart splits two packed values: what is finite of them, ones where they are +Inf or NaN, and
// ones where they are -Inf or NaN.
func (a *attention) apart(x *Expr) (finite, positive, negative *Expr) {
	b := a.ev.b
	inf, one := int64(0x7f80), int64(0x3f80)
	if a.dtype == ir.F16 {
		inf, one = 0x7c00, 0x3c00
	}
	word := func(v int64) *Expr { return b.Int(ir.I32, v<<16|v) }
	op := func(op Op, x, y *Expr) *Expr { return b.Arith(op, ir.I32, x, y) }
	sign := word(0x8000)
	magnitude := op(And, x, word(0x7fff))
	// Added to a magnitude from infinity (or NaN) on, these set the bit of the sign.
	special := op(And, op(Add, magnitude, word(0x8000-inf)), sign)
	nan := op(And, op(Add, magnitude, word(0x7fff-inf)), sign)
	spread := func(bits *Expr, v int64) *Expr {
		return op(Mul, op(LShr, bits, b.Int(ir.I32, 15)), b.Int(ir.I32, v))
	}
	finite = op(And, x, op(Xor, spread(special, 0xffff), b.Int(ir.I32, -1)))
	positive = spread(op(And, special, op(Or, nan, op(Xor, x, sign))), one)
	negative = spread(op(And, special, op(Or, nan, x)), one)
	return finite, positive, negative
}
