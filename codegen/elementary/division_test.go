package elementary

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestDivisor compares quotients with Go's, which are correctly rounded.
func TestDivisor(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	divisors := []float32{1, 2, 3, 4096, 0x1p31, 0x1.fffffep0, 0x1.000002p0, 0x1.fffffep30, 0x1p48}
	for range 2000 {
		divisors = append(divisors, (1+random.Float32())*float32(math.Ldexp(1, random.IntN(32))))
	}
	check := func(d Divisor[uint64], a, b float32) {
		got, want := single(d.Divide(fromSingle(a))), a/b
		if got == want && math.Signbit(float64(got)) == math.Signbit(float64(want)) {
			return
		}
		exact := float64(a) / float64(b)
		between := math.Abs(math.Abs(float64(got)-exact)-math.Abs(float64(want)-exact)) == 0
		if !(want < 0x1p-126 && between) {
			t.Errorf("%x / %x = %x, want %x", a, b, got, want)
		}
	}
	for _, b := range divisors {
		d := NewDivisor[uint64](Host{}, fromSingle(b))
		for _, a := range []float32{0, 1, 0x1p-149, 0x1p-148, 0x1.8p-148, 0x1p-126, 0x1.fffffcp-127, 0x1.fffffep-1, 0.5} {
			check(d, a, b)
		}
		for range 500 {
			check(d, random.Float32(), b)
			check(d, math.Float32frombits(random.Uint32N(0x3f800001)), b) // of all exponents
			check(d, math.Float32frombits(random.Uint32N(1<<26)), b)      // denormal quotients
			near := float32(math.Ldexp(float64(b), -1-random.IntN(150)))
			if near <= 1 {
				check(d, math.Nextafter32(near, 0), b)
			}
		}
		if nan := single(d.Divide(fromSingle(float32(math.NaN())))); nan == nan {
			t.Errorf("NaN / %g = %g", b, nan)
		}
	}
	d := NewDivisor[uint64](Host{}, fromSingle(float32(math.NaN())))
	if q := single(d.Divide(fromSingle(1))); q == q {
		t.Errorf("1 / NaN = %g", q)
	}
}

// TestExponentialOfSmall compares with exponential.
func TestExponentialOfSmall(t *testing.T) {
	exponential, _ := Lookup[uint64]("exponential")
	same := func(x uint64, of32 bool) {
		var got, want uint64
		var nan bool
		if of32 {
			got, want = ExponentialOfSmall(Host{}, F32, x), exponential.F32(Host{}, x)
			nan = single(want) != single(want) && single(got) != single(got)
		} else {
			got, want = ExponentialOfSmall(Host{}, F64, x), exponential.F64(Host{}, x)
			nan = double(want) != double(want) && double(got) != double(got)
		}
		if got != want && !nan {
			t.Errorf("of %x: %x, want %x", x, got, want)
		}
	}
	random := rand.New(rand.NewPCG(5, 6))
	for range 200_000 {
		same(fromSingle(64-random.Float32()*170), true)
		same(fromDouble(64-random.Float64()*820), false)
		if x := random.Uint32(); !(math.Float32frombits(x) > 64) {
			same(uint64(x), true)
		}
	}
	for _, x := range specials {
		if !(x > 64) {
			same(fromSingle(float32(x)), true)
			same(fromDouble(x), false)
		}
	}
}

// TestTanhOfBFloat16 rounds tanh of every bfloat16, numbers, infinities and NaN.
func TestTanhOfBFloat16(t *testing.T) {
	rounded := func(x float64) float64 { // to 8 bits; results are normal, or exact
		fraction, exponent := math.Frexp(x)
		return math.Copysign(math.Ldexp(math.RoundToEven(math.Ldexp(fraction, 8)), exponent-8), x)
	}
	for high := range uint32(1 << 16) {
		x := math.Float32frombits(high << 16)
		got, want := float64(single(TanhOfBFloat16(Host{}, fromSingle(x)))), math.Tanh(float64(x))
		if math.Abs(float64(x)) < 0x1p-100 {
			want = float64(x)
		}
		if got, want = rounded(got), rounded(want); math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
			t.Errorf("tanh(%g) becomes %g, want %g", x, got, want)
		}
	}
}
