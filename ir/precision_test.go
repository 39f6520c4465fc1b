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

func TestPrecision(t *testing.T) {
	const text = `entry e(%0 "x": f32[2, 8], %1 "y": f16[2, 8]) {
  %2: f32[2, 2] = dot_general(%0, %0) {lhs_contract = [1], rhs_contract = [1], to = f32, precision = tf32}
  %3: f32[2, 2] = dot_general(%1, %1) {lhs_contract = [1], rhs_contract = [1], to = f32}
  return %2 "a", %3 "b"
}
`
	p, err := ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if p.String() != text {
		t.Errorf("prints\n%s", p)
	}
	if err := Verify(p); err != nil {
		t.Error(err)
	}
	p.Entries[0].Body.Ops[1].Attrs.(*DotAttrs).Precision = TF32
	if err := Verify(p); err == nil {
		t.Error("a product of f16 with precision tf32 was accepted")
	}
}
