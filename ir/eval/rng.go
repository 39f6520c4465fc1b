package eval

import (
	"math"

	"weft/ir"
)

// rng gives random numbers: element i takes words of the block of 128 bits that Philox 4x32-10
// makes of the seed as key and of the offset plus stream and the block's number as counter.
func rng(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.RngAttrs)
	out := c.result(0)
	seed, offset := uint64(c.in[0].Int(0)), uint64(c.in[0].Int(1))+uint64(a.Stream)
	for i := range out.Numel() {
		switch a.Distribution {
		case ir.Bits:
			word := randomBits(seed, offset, i, a.Type)
			if a.Type == ir.Bool {
				word &= 1
			}
			out.SetInt(i, int64(word))
		case ir.Uniform:
			out.SetFloat(i, uniform(seed, offset, i, a.Type))
		case ir.Normal:
			inner := ir.F32
			if a.Type == ir.F64 {
				inner = ir.F64
			}
			u, v := uniform(seed, offset, i, inner), uniform(seed, offset+1, i, inner)
			radius := float64(rounded(inner, math.Sqrt(rounded(inner, -2*rounded(inner, math.Log1p(-u))))))
			out.SetFloat(i, rounded(inner, radius*rounded(inner, math.Cos(rounded(inner, 2*math.Pi*v)))))
		}
	}
	return out, nil
}

// rounded rounds to f32 or keeps a float64.
func rounded(t ir.DType, x float64) float64 {
	if t == ir.F32 {
		return float64(float32(x))
	}
	return x
}

// randomBits are the 64 bits of element i for types of that size, 32 for all others.
func randomBits(seed, offset uint64, i int64, t ir.DType) uint64 {
	if t.Bits() == 64 {
		w := philox(seed, offset, uint64(i/2))
		k := i % 2 * 2
		return uint64(w[k+1])<<32 | uint64(w[k])
	}
	return uint64(philox(seed, offset, uint64(i/4))[i%4])
}

// uniform is a number in [0, 1) with as many bits as the type's significand holds.
func uniform(seed, offset uint64, i int64, t ir.DType) float64 {
	digits := map[ir.DType]int{ir.F64: 53, ir.F32: 24, ir.F16: 11, ir.BF16: 8}[t]
	width := 32
	if t == ir.F64 {
		width = 64
	}
	return math.Ldexp(float64(randomBits(seed, offset, i, t)>>(width-digits)), -digits)
}

// philox is Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011) with a key and a counter of two
// numbers each.
func philox(key, low, high uint64) [4]uint32 {
	c := [4]uint32{uint32(low), uint32(low >> 32), uint32(high), uint32(high >> 32)}
	k0, k1 := uint32(key), uint32(key>>32)
	for range 10 {
		x, y := 0xD2511F53*uint64(c[0]), 0xCD9E8D57*uint64(c[2])
		c = [4]uint32{uint32(y>>32) ^ c[1] ^ k0, uint32(y), uint32(x>>32) ^ c[3] ^ k1, uint32(x)}
		k0, k1 = k0+0x9E3779B9, k1+0xBB67AE85
	}
	return c
}
