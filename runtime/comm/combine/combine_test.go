package combine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weft/ir"
)

// TestRounding holds the conversions of 16-bit floats against ir's, for all halves and floats
// beside them.
func TestRounding(t *testing.T) {
	for _, c := range []struct {
		dtype ir.DType
		n     narrow
	}{{ir.F16, f16()}, {ir.BF16, bf16}} {
		one, in, out := ir.NewTensor(c.dtype, 1), make([]float32, 1), make([]uint16, 1)
		for i := range 1 << 16 {
			out[0] = uint16(i)
			c.n.widen(in, out)
			middle := math.Float32bits(in[0])
			for _, bits := range []uint32{middle, middle + 0x800, middle + 0xfff, middle + 0x1000, middle + 0x1001, middle + 0x7fff, middle + 0x8000, middle + 0x8001, middle - 1, middle * 3} {
				in[0] = math.Float32frombits(bits)
				one.SetFloat(0, float64(in[0]))
				c.n.round(out, in)
				if want := uint16(one.Data[0]) | uint16(one.Data[1])<<8; out[0] != want && !(in[0] != in[0]) {
					t.Fatalf("%v rounds to %s %#x, want %#x", in[0], c.dtype, out[0], want)
				}
			}
		}
	}
}

// TestVectors compares the twins with the portable loops, bit for bit.
func TestVectors(t *testing.T) {
	portable, fast := newCombiner(twins{}), newCombiner(vectors())
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, 15, 16, 17, 32, 1000, 1 << 16} {
		halves, floats := make([]uint16, n), make([]float32, n)
		for i := range n {
			halves[i] = uint16(i)
			floats[i] = math.Float32frombits(r.Uint32())
			if i%3 == 0 {
				floats[i] = float32(r.NormFloat64() * math.Pow(2, float64(r.IntN(48)-30)))
			}
		}
		for name, pair := range map[string][2]narrow{"bf16": {portable.bf16(), fast.bf16()}, "f16": {portable.f16(), fast.f16()}} {
			var wide, sums [2][]float32
			var rounded [2][]uint16
			for k, f := range pair {
				wide[k], rounded[k], sums[k] = make([]float32, n), make([]uint16, n), slices.Clone(floats)
				f.widen(wide[k], halves)
				f.round(rounded[k], floats)
				f.add(sums[k], halves)
			}
			if !sameBits(wide[0], wide[1]) || !slices.Equal(rounded[0], rounded[1]) || !sameBits(sums[0], sums[1]) {
				t.Errorf("%s of %d elements: the twins differ", name, n)
			}
		}
		a, b := slices.Clone(floats), slices.Clone(floats)
		slices.Reverse(floats)
		portable.f32.add(a, floats)
		fast.f32.add(b, floats)
		if !sameBits(a, b) {
			t.Errorf("add of %d elements: the twins differ", n)
		}
	}
}

// sameBits compares floats; one NaN is like another where both operands of a sum were NaN.
func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool {
		return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
	})
}
