package elementary

import (
	"bufio"
	"flag"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var exhaustive = flag.String("exhaustive", "", "names of functions, separated by commas, to check on all 2^32 float32 values (minutes each)")

// references are float64 functions, far more accurate than float32 needs.
var references = map[string]func(float64) float64{
	"acos": math.Acos, "acosh": math.Acosh, "asin": math.Asin, "asinh": math.Asinh, "atan": math.Atan, "atanh": math.Atanh,
	"cbrt": math.Cbrt, "ceil": math.Ceil, "cosh": math.Cosh, "cosine": math.Cos, "digamma": digammaReference, "erf": math.Erf,
	"erf_inv": math.Erfinv, "erfc": math.Erfc, "exponential": math.Exp, "exponential_base2": math.Exp2,
	"exponential_minus_one": math.Expm1, "floor": math.Floor, "lgamma": lgammaReference,
	"log": math.Log, "log2": log2Reference, "log_plus_one": math.Log1p, "logistic": logisticReference,
	"round_nearest_afz": math.Round, "round_nearest_even": math.RoundToEven,
	"rsqrt": func(x float64) float64 { return 1 / math.Sqrt(x) },
	"sine":  math.Sin, "sinh": math.Sinh, "tan": math.Tan, "tanh": math.Tanh, "trunc": math.Trunc,
}

// references2 are those of two arguments.
var references2 = map[string]func(x, y float64) float64{"atan2": math.Atan2, "power": math.Pow, "remainder": math.Mod}

func log2Reference(x float64) float64 {
	if x > 0.5 && x < 2 {
		return math.Log1p(x-1) * math.Log2E // math.Log2 cancels just above 1
	}
	return math.Log2(x)
}

func logisticReference(x float64) float64 {
	if x < 0 {
		return math.Exp(x) / (1 + math.Exp(x))
	}
	return 1 / (1 + math.Exp(-x))
}

func lgammaReference(x float64) float64 {
	y, _ := math.Lgamma(x)
	if math.IsInf(x, -1) {
		return math.Inf(1) // as in C
	}
	return y
}

func digammaReference(x float64) float64 {
	if x == 0 {
		return math.Copysign(math.Inf(1), -x)
	}
	if x < 0 {
		fraction := x - math.RoundToEven(x)
		if fraction == 0 || math.IsInf(x, 0) {
			return math.NaN()
		}
		return digammaReference(1-x) - math.Pi/math.Tan(math.Pi*fraction)
	}
	sum := 0.0
	for ; x < 20; x++ {
		sum -= 1 / x
	}
	z := 1 / (x * x)
	return sum + math.Log(x) - 0.5/x - z*(1./12-z*(1./120-z*(1./252-z*(1./240-z/132))))
}

// ulps32 is the error of got in units in the last place of the float32 nearest to want. A NaN, an infinity or a sign
// of zero that is not as wanted is infinitely wrong.
func ulps32(got float32, want float64) float64 {
	near := float32(want)
	switch {
	case near != near || got != got:
		if near != near && got != got {
			return 0
		}
		return math.Inf(1)
	case math.IsInf(want, 0) || math.IsInf(float64(got), 0) && math.Abs(want) < 0x1.fffff8p127:
		if float64(got) == want {
			return 0
		}
		return math.Inf(1)
	case want == 0 && got == 0 && math.Signbit(want) != math.Signbit(float64(got)):
		return math.Inf(1)
	}
	_, exponent := math.Frexp(want)
	clamped := func(x float64) float64 { return max(-0x1p128, min(x, 0x1p128)) }
	return math.Abs(clamped(float64(got))-clamped(want)) / math.Ldexp(1, max(exponent, -125)-24)
}

func TestFloat32(t *testing.T) {
	step := uint64(1<<32) / 200_000
	if testing.Short() {
		step *= 20
	}
	for _, f := range Functions[uint64]() {
		if f.Arity != 1 {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			checkFloat32(t, f, 1+step&^1, 77)
		})
	}
}

func TestExhaustiveFloat32(t *testing.T) {
	if *exhaustive == "" {
		t.Skip("needs -exhaustive")
	}
	for name := range strings.SplitSeq(*exhaustive, ",") {
		f, ok := Lookup[uint64](name)
		if !ok || f.Arity != 1 {
			t.Fatalf("no function %q of one argument", name)
		}
		checkFloat32(t, f, 1, 0)
	}
}

func checkFloat32(t *testing.T, f Function[uint64], step, first uint64) {
	reference := references[f.Name]
	if reference == nil {
		t.Fatal("no reference")
	}
	worst, at := 0.0, float32(0)
	check := func(x float32) {
		if e := ulps32(EvaluateF32(f, x), reference(float64(x))); e > worst {
			worst, at = e, x
		}
	}
	for b := first; b < 1<<32; b += step {
		check(math.Float32frombits(uint32(b)))
	}
	for _, x := range specials {
		check(float32(x))
	}
	t.Logf("%.4f ulp", worst)
	if worst > f.ULP32 {
		t.Errorf("%s(%g) = %g, want %g: %.4f ulp, more than %.2f", f.Name, at, EvaluateF32(f, at), reference(float64(at)), worst, f.ULP32)
	}
}

// specials are values at which functions like to fail.
var specials = []float64{
	0, math.Copysign(0, -1), 1, -1, 2, -2, 3, -3, 4, 0.5, -0.5, 0.25, 1.5, -1.5, 2.5, -2.5, 7, -7, math.Inf(1), math.Inf(-1), math.NaN(),
	0x1p-149, -0x1p-149, 0x1p-126, -0x1p-126, 0x1.fffffcp-127, 0x1.fffffep127, -0x1.fffffep127, 0x1p23, -0x1p23, 0x1p24, 0x1p24 - 1,
	1 - 0x1p-24, -1 + 0x1p-24, 1 + 0x1p-23, -1 - 0x1p-23, 0x1.921fb6p+0, 0x1.921fb6p+1, 88.5, 89, -87.5, -103.5, -104.5, 127.5, 128, -149.5, 1e5, -1e5,
}

func TestFloat32Pairs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() float32 {
		switch random.IntN(5) {
		case 0:
			return float32(specials[random.IntN(len(specials))])
		case 1:
			return math.Float32frombits(random.Uint32())
		case 2:
			return float32(random.IntN(41) - 20)
		case 3:
			return random.Float32()*2 - 1
		}
		return (random.Float32()*2 - 1) * 500
	}
	for name, reference := range references2 {
		f, _ := Lookup[uint64](name)
		worst := 0.0
		check := func(x, y float32) {
			e := ulps32(EvaluateF32(f, x, y), reference(float64(x), float64(y)))
			worst = max(worst, e)
			if e > f.ULP32 {
				t.Errorf("%s(%g, %g) = %g, want %g: %.4f ulp", name, x, y, EvaluateF32(f, x, y), reference(float64(x), float64(y)), e)
			}
		}
		for range 100_000 {
			check(draw(), draw())
		}
		for _, x := range specials {
			for _, y := range specials {
				check(float32(x), float32(y))
			}
		}
		t.Logf("%s: %.4f ulp", name, worst)
	}
}

// TestFloat64 compares with the vectors that testdata/vectors.py computed with many more digits.
func TestFloat64(t *testing.T) {
	file, err := os.Open("testdata/float64.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	worst := map[string]float64{}
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		fields := strings.Fields(scanner.Text())
		f, ok := Lookup[uint64](fields[0])
		if !ok || len(fields) != f.Arity+3 {
			t.Fatalf("bad line %q", scanner.Text())
		}
		var numbers []float64
		for _, s := range fields[1:] {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, v)
		}
		want, rest := numbers[f.Arity], numbers[f.Arity+1]
		got := EvaluateF64(f, numbers[:f.Arity]...)
		_, exponent := math.Frexp(want)
		e := math.Abs((got-want)/math.Ldexp(1, max(exponent-53, -1074)) - rest)
		worst[f.Name] = max(worst[f.Name], e)
		if !(e <= f.ULP64) {
			t.Errorf("%s%v = %x, want %x: %.3f ulp, more than %.2f", f.Name, numbers[:f.Arity], got, want, e, f.ULP64)
		}
	}
	for _, f := range Functions[uint64]() {
		t.Logf("%-24s %.3f", f.Name, worst[f.Name])
	}
}

// TestFloat64Specials compares with package math where results are zeros, infinities or NaNs.
func TestFloat64Specials(t *testing.T) {
	same := func(got, want float64) bool {
		if math.IsNaN(want) || math.IsInf(want, 0) || want == 0 {
			return got == want && math.Signbit(got) == math.Signbit(want) || got != got && want != want
		}
		return got == got
	}
	extremes := append([]float64{0x1p-1074, -0x1p-1074, 0x1p-1022, math.MaxFloat64, -math.MaxFloat64, 0x1p53, -0x1p53 + 1}, specials...)
	for _, f := range Functions[uint64]() {
		for _, x := range extremes {
			if f.Arity == 1 {
				if got, want := EvaluateF64(f, x), references[f.Name](x); !same(got, want) {
					t.Errorf("%s(%g) = %g, want %g", f.Name, x, got, want)
				}
				continue
			}
			for _, y := range extremes {
				if got, want := EvaluateF64(f, x, y), references2[f.Name](x, y); !same(got, want) {
					t.Errorf("%s(%g, %g) = %g, want %g", f.Name, x, y, got, want)
				}
			}
		}
	}
}

func TestRemainderIsExact(t *testing.T) {
	f, _ := Lookup[uint64]("remainder")
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		x, y := math.Float64frombits(random.Uint64()), math.Float64frombits(random.Uint64())
		if got, want := EvaluateF64(f, x, y), math.Mod(x, y); got != want && (got == got || want == want) {
			t.Fatalf("remainder(%x, %x) = %x, want %x", x, y, got, want)
		}
		a, b := math.Float32frombits(random.Uint32()), math.Float32frombits(random.Uint32())
		if got, want := EvaluateF32(f, a, b), float32(math.Mod(float64(a), float64(b))); got != want && (got == got || want == want) {
			t.Fatalf("remainder(%x, %x) = %x, want %x", a, b, got, want)
		}
	}
}

func TestFunctionsAreSortedAndDescribed(t *testing.T) {
	functions := Functions[uint64]()
	if !slices.IsSortedFunc(functions, func(a, b Function[uint64]) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not sorted by name")
	}
	for _, f := range functions {
		if f.Doc == "" || f.Method == "" || f.F32 == nil || f.F64 == nil {
			t.Errorf("%s: incomplete", f.Name)
		}
		if f.ULP32 > 2 || f.ULP64 > 2 {
			t.Errorf("%s: more than 2 ulp", f.Name)
		}
	}
	if _, ok := Lookup[uint64]("no_such_function"); ok {
		t.Error("Lookup found what does not exist")
	}
}

func TestFmaSingleRoundsOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	draw := func() float32 {
		if random.IntN(4) == 0 {
			return float32(specials[random.IntN(len(specials))])
		}
		return math.Float32frombits(random.Uint32()&0x807fffff | (100+random.Uint32N(50))<<23)
	}
	for range 200_000 {
		x, y, z := draw(), draw(), draw()
		if random.IntN(2) == 0 { // near a tie or a cancellation
			z = -float32(float64(x)*float64(y)) * (1 + float32(random.IntN(3)-1)*0x1p-23)
		}
		got := fmaSingle(x, y, z)
		if x-x != 0 || y-y != 0 || z-z != 0 { // not finite
			if want := float32(float64(x)*float64(y) + float64(z)); got != want && (got == got || want == want) {
				t.Fatalf("fma(%x, %x, %x) = %x, want %x", x, y, z, got, want)
			}
			continue
		}
		exact := new(big.Float).SetPrec(900).Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
		want, _ := exact.Add(exact, big.NewFloat(float64(z))).Float32()
		if got != want {
			t.Fatalf("fma(%x, %x, %x) = %x, want %x", x, y, z, got, want)
		}
	}
}
