package ir

import (
	"math"
	"testing"
)

func TestRoundTF32(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct{ x, want float32 }{
		{0, 0},
		{1, 1},
		{1 + 1.0/1024, 1 + 1.0/1024},
		{1 + 1.0/2048, 1 + 1.0/1024}, // a tie, away from zero
		{-1 - 1.0/2048, -1 - 1.0/1024},
		{1 + 1.0/4096, 1},
		{math.MaxFloat32, inf},
		{-inf, -inf},
	} {
		if got := RoundTF32(c.x); got != c.want {
			t.Errorf("RoundTF32(%g) = %g, want %g", c.x, got, c.want)
		}
	}
	if x := RoundTF32(float32(math.NaN())); x == x {
		t.Errorf("RoundTF32(NaN) = %g", x)
	}
}

func TestSetPrecision(t *testing.T) {
	const text = `entry e(%0 "x": f32[2, 8], %1 "y": f16[2, 8], %2 "i": f32[1, 2, 9], %3 "k": f32[4, 2, 3]) {
  %4: f32[2, 2] = dot_general(%0, %0) {lhs_contract = [1], rhs_contract = [1], to = f32}
  %5: f32[2, 2] = dot_general(%1, %1) {lhs_contract = [1], rhs_contract = [1], to = f32}
  %6: f32[1, 4, 7] = convolution(%2, %3) {strides = [1], low = [0], high = [0], lhs_dilation = [1], rhs_dilation = [1], groups = 1}
  return %4 "a", %5 "b", %6 "c"
}
`
	p, err := ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if n := SetPrecision(p, TF32); n != 2 {
		t.Errorf("changed %d products, want 2", n)
	}
	again, err := ParseProgram("again", []byte(p.String()))
	if err != nil {
		t.Fatal(err)
	}
	if n := SetPrecision(again, TF32); n != 0 {
		t.Errorf("%d products lost their precision in the text:\n%s", n, p)
	}
	if n := SetPrecision(again, FullPrecision); n != 2 {
		t.Errorf("changed %d products back, want 2", n)
	}
	if err := Verify(again); err != nil {
		t.Error(err)
	}
	again.Entries[0].Body.Ops[1].Attrs.(*DotAttrs).Precision = TF32
	if err := Verify(again); err == nil {
		t.Error("a product of f16 with precision tf32 was accepted")
	}
}
