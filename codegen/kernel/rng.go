package kernel

import "weft/ir"

// rng gives random numbers at points: Philox 4x32-10 of the seed, with the offset, the stream
// and the number of the element's block of 128 bits as counter. Lanes of one block share it.
// Normal numbers are decomposed before.
func (ev *evaluator) rng(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.RngAttrs)
	b := ev.b
	state := func(i int64) *Expr {
		return ev.value(op.Operands[0], []*Point{ev.at(ev.shape(op.Operands[0]), []*Expr{b.Idx(i)})})[0]
	}
	seed, offset := state(0), b.Arith(Add, ir.I64, state(1), b.Int(ir.I64, a.Stream))
	out := make([]*Expr, len(lanes))
	for l, p := range lanes {
		linear := ev.linearIndex(p)
		if a.Type.Bits() == 64 {
			block, k := b.DivMod(linear, b.Idx(2))
			w := b.philox(seed, offset, block)
			odd := b.Cmp(EQ, k, b.Idx(1))
			out[l] = b.random(a, b.wide(b.Select(odd, w[2], w[0]), b.Select(odd, w[3], w[1])))
			continue
		}
		block, k := b.DivMod(linear, b.Idx(4))
		w := b.philox(seed, offset, block)
		word := w[0]
		for i := int64(1); i < 4; i++ {
			if k.Op == Const {
				word = w[k.Imm]
			} else {
				word = b.Select(b.Cmp(EQ, k, b.Idx(i)), w[i], word)
			}
		}
		out[l] = b.random(a, word)
	}
	return out
}

// wide joins two words of 32 bits.
func (b *Builder) wide(low, high *Expr) *Expr {
	h := b.Arith(Shl, ir.I64, b.Arith(ZExt, ir.I64, high), b.Int(ir.I64, 32))
	return b.Arith(Or, ir.I64, h, b.Arith(ZExt, ir.I64, low))
}

// random makes a number of the distribution from random bits.
func (b *Builder) random(a *ir.RngAttrs, bits *Expr) *Expr {
	if a.Distribution == ir.Bits {
		if a.Type == ir.Bool {
			return b.Cmp(NE, b.Arith(And, ir.I32, bits, b.Int(ir.I32, 1)), b.Int(ir.I32, 0))
		}
		return b.FromIndex(bits, held(a.Type))
	}
	digits := map[ir.DType]int64{ir.F64: 53, ir.F32: 24, ir.F16: 11, ir.BF16: 8}[a.Type]
	top := b.Arith(LShr, bits.Type, bits, b.Int(bits.Type, int64(bits.Type.Bits())-digits))
	t := held(a.Type)
	return b.Arith(FMul, t, b.Arith(SToF, t, top), b.Float(t, 1/float64(int64(1)<<digits)))
}

// philox gives the four words of a block.
func (b *Builder) philox(seed, offset, block *Expr) [4]*Expr {
	half := func(x *Expr) (low, high *Expr) {
		if x.Type == ir.I32 { // an index, not negative
			return x, b.Int(ir.I32, 0)
		}
		return b.Arith(Trunc, ir.I32, x), b.Arith(Trunc, ir.I32, b.Arith(LShr, ir.I64, x, b.Int(ir.I64, 32)))
	}
	product := func(x *Expr, m int64) (low, high *Expr) {
		p := b.Arith(Mul, ir.I64, b.Arith(ZExt, ir.I64, x), b.Int(ir.I64, m))
		return b.Arith(Trunc, ir.I32, p), b.Arith(Trunc, ir.I32, b.Arith(LShr, ir.I64, p, b.Int(ir.I64, 32)))
	}
	xor := func(x, y, z *Expr) *Expr { return b.Arith(Xor, ir.I32, b.Arith(Xor, ir.I32, x, y), z) }
	var c [4]*Expr
	c[0], c[1] = half(offset)
	c[2], c[3] = half(block)
	k0, k1 := half(seed)
	for range 10 {
		xl, xh := product(c[0], 0xD2511F53)
		yl, yh := product(c[2], 0xCD9E8D57)
		c = [4]*Expr{xor(yh, c[1], k0), yl, xor(xh, c[3], k1), xl}
		k0, k1 = b.Arith(Add, ir.I32, k0, b.Int(ir.I32, 0x9E3779B9)), b.Arith(Add, ir.I32, k1, b.Int(ir.I32, 0xBB67AE85))
	}
	return c
}
