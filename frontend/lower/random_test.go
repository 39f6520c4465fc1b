package lower

import (
	"math"
	"slices"
	"testing"

	"weft/ir"
	"weft/ir/eval"
)

// draw evaluates an entry that draws random numbers, with the seed 7, twice: the generator's
// state passes from one run to the next.
func draw(t *testing.T, f func(g *Generator, b *ir.Builder) ir.Value) (first, second []float64) {
	t.Helper()
	e := &ir.Entry{Name: "forward"}
	p := &ir.Program{Entries: []*ir.Entry{e}}
	g, b := NewGenerator(p, e), ir.NewBuilder(p, e)
	if err := ir.Try(func() { e.AddOutput("y", "", f(g, b)); g.Close(b) }); err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(p); err != nil {
		t.Fatal(err)
	}
	state := ir.NewTensor(ir.I64, 2)
	state.SetInt(0, 7)
	run := func() []float64 {
		r, err := eval.Run(p, "forward", nil, func(string) (*ir.Tensor, error) { return state, nil })
		if err != nil {
			t.Fatal(err)
		}
		state = r.State[GeneratorState]
		out := make([]float64, r.Outputs[0].Numel())
		for i := range out {
			out[i] = r.Outputs[0].Float(int64(i))
		}
		return out
	}
	return run(), run()
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// TestGenerator looks at what is drawn: its mean, its range, and that runs differ.
func TestGenerator(t *testing.T) {
	dims := ir.Consts(4000)
	for name, c := range map[string]struct {
		f                   func(g *Generator, b *ir.Builder) ir.Value
		mean, low, high, by float64
	}{
		"uniform":     {func(g *Generator, b *ir.Builder) ir.Value { return g.Uniform(b, ir.F32, dims, 2, 6) }, 4, 2, 6, 0.08},
		"normal":      {func(g *Generator, b *ir.Builder) ir.Value { return g.Normal(b, ir.F32, dims, 3, 2) }, 3, -9, 15, 0.15},
		"integers":    {func(g *Generator, b *ir.Builder) ir.Value { return g.Integers(b, ir.I64, dims, -3, 4) }, 0, -3, 3, 0.15},
		"exponential": {func(g *Generator, b *ir.Builder) ir.Value { return g.Exponential(b, ir.F64, dims) }, 1, 0, 30, 0.08},
		"bernoulli": {func(g *Generator, b *ir.Builder) ir.Value {
			return b.Convert(g.Bernoulli(b, b.Full(ir.TensorOf(ir.F32, dims...), 0.2)), ir.F32)
		}, 0.2, 0, 1, 0.03},
		"dropout": {func(g *Generator, b *ir.Builder) ir.Value {
			y, _ := g.Dropout(b, b.Full(ir.TensorOf(ir.F32, dims...), 3), 0.25)
			return y
		}, 3, 0, 4, 0.1},
		"multinomial": {func(g *Generator, b *ir.Builder) ir.Value {
			return g.Multinomial(b, b.Convert(b.Iota(ir.I64, ir.Consts(4), 0), ir.F32), 4000, true)
		}, 14.0 / 6, 1, 3, 0.06},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := draw(t, c.f)
			if slices.Equal(first, second) {
				t.Error("two runs draw the same")
			}
			for _, xs := range [][]float64{first, second} {
				if m := mean(xs); math.Abs(m-c.mean) > c.by {
					t.Errorf("the mean is %g, not %g", m, c.mean)
				}
				if lo, hi := slices.Min(xs), slices.Max(xs); lo < c.low || hi > c.high {
					t.Errorf("from %g up to %g, not inside %g..%g", lo, hi, c.low, c.high)
				}
			}
			again, _ := draw(t, c.f)
			if !slices.Equal(first, again) {
				t.Error("one seed draws different numbers")
			}
		})
	}
}

// TestPermutation draws without replacement.
func TestPermutation(t *testing.T) {
	for name, f := range map[string]func(g *Generator, b *ir.Builder) ir.Value{
		"permutation": func(g *Generator, b *ir.Builder) ir.Value { return g.Permutation(b, ir.I32, ir.Const(20)) },
		"multinomial": func(g *Generator, b *ir.Builder) ir.Value {
			return g.Multinomial(b, b.Full(ir.TensorOf(ir.F32, ir.Const(20)), 1), 20, false)
		},
	} {
		xs, _ := draw(t, f)
		slices.Sort(xs)
		for i, x := range xs {
			if x != float64(i) {
				t.Errorf("%s: %v", name, xs)
				break
			}
		}
	}
}

// TestGeneratorRefuses says where random numbers are not drawn.
func TestGeneratorRefuses(t *testing.T) {
	e := &ir.Entry{Name: "forward"}
	p := &ir.Program{Entries: []*ir.Entry{e}}
	g, b := NewGenerator(p, e), ir.NewBuilder(p, e)
	if ir.Try(func() { g.Uniform(b.Within(&ir.Block{}), ir.F32, nil, 0, 1) }) == nil {
		t.Error("no error inside of control flow")
	}
	if ir.Try(func() { g.Integers(b, ir.I64, nil, 3, 3) }) == nil {
		t.Error("no error for an empty range")
	}
	p.States = []ir.State{{Name: GeneratorState}}
	if ir.Try(func() { g.Uniform(b, ir.F32, nil, 0, 1) }) == nil {
		t.Error("no error where a weight has the state's name")
	}
}
