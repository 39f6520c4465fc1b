package lower

import (
	"math"
	"slices"
	"testing"

	"weft/ir"
	"weft/ir/eval"
)

// run evaluates what build makes of constants.
func run(t *testing.T, build func(b *ir.Builder) ir.Value) *ir.Tensor {
	t.Helper()
	p := &ir.Program{}
	e := &ir.Entry{Name: "f"}
	p.Entries = []*ir.Entry{e}
	b := ir.NewBuilder(p, e)
	if err := ir.Try(func() { e.AddOutput("y", "", build(b)) }); err != nil {
		t.Fatal(err)
	}
	r, err := eval.Run(p, "f", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r.Outputs[0]
}

// vector makes a constant of rank 1.
func vector(b *ir.Builder, t ir.DType, values ...float64) ir.Value {
	x := ir.NewTensor(t, int64(len(values)))
	for i, v := range values {
		x.SetFloat(int64(i), v)
	}
	return b.Constant(x)
}

func floats(t *ir.Tensor) []float64 {
	out := make([]float64, t.Numel())
	for i := range out {
		out[i] = t.Float(int64(i))
	}
	return out
}

func TestArithmetic(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name  string
		build func(b *ir.Builder) ir.Value
		want  []float64
	}{
		{"floor division of integers", func(b *ir.Builder) ir.Value {
			return FloorDiv(b, vector(b, ir.I32, 7, -7, 7, -7, 6), vector(b, ir.I32, 2, 2, -2, -2, 3))
		}, []float64{3, -4, -4, 3, 2}},
		{"floor division of floats", func(b *ir.Builder) ir.Value {
			return FloorDiv(b, vector(b, ir.F32, 7, -7), vector(b, ir.F32, 2, 2))
		}, []float64{3, -4}},
		{"remainder with the divisor's sign", func(b *ir.Builder) ir.Value {
			return FloorMod(b, vector(b, ir.I64, 7, -7, 7, -7, 6), vector(b, ir.I64, 3, 3, -3, -3, 3))
		}, []float64{1, 2, -2, -1, 0}},
		{"remainder of unsigned", func(b *ir.Builder) ir.Value {
			return FloorMod(b, vector(b, ir.U8, 7, 200), vector(b, ir.U8, 3, 7))
		}, []float64{1, 4}},
		{"truncation", func(b *ir.Builder) ir.Value { return Trunc(b, vector(b, ir.F32, 1.7, -1.7, 0.5)) }, []float64{1, -1, 0}},
		{"NaN", func(b *ir.Builder) ir.Value { return IsNaN(b, vector(b, ir.F32, 1, math.NaN(), inf)) }, []float64{0, 1, 0}},
		{"infinities", func(b *ir.Builder) ir.Value { return IsInf(b, vector(b, ir.F32, 1, inf, -inf), true, true) }, []float64{0, 1, 1}},
		{"negative infinity", func(b *ir.Builder) ir.Value { return IsInf(b, vector(b, ir.F32, 1, inf, -inf), false, true) }, []float64{0, 0, 1}},
		{"indices from the end", func(b *ir.Builder) ir.Value { return WrapIndex(b, vector(b, ir.I32, 0, -1, -4), ir.Const(4)) }, []float64{0, 3, 0}},
		{"one-hot", func(b *ir.Builder) ir.Value {
			return OneHot(b, vector(b, ir.I64, 1, -1, 5), ir.Const(3), 1, b.Scalar(ir.F32, 2), b.Scalar(ir.F32, -1))
		}, []float64{-1, 2, -1, -1, -1, 2, -1, -1, -1}},
		{"broadcasting choice", func(b *ir.Builder) ir.Value {
			p := b.Reshape(vector(b, ir.Bool, 1, 0), ir.Consts(2, 1))
			return Where(b, p, vector(b, ir.F32, 1, 2), b.Scalar(ir.F32, 9))
		}, []float64{1, 2, 9, 9}},
		{"lower triangle", func(b *ir.Builder) ir.Value {
			x := b.Full(ir.TensorOf(ir.F32, ir.Consts(2, 3)...), 1)
			return Triangle(b, x, b.Constant(ir.ScalarInt(ir.I64, 0)), false)
		}, []float64{1, 0, 0, 1, 1, 0}},
		{"trace and product by einsum", func(b *ir.Builder) ir.Value {
			x := b.Reshape(vector(b, ir.F32, 1, 2, 3, 4), ir.Consts(2, 2))
			y, err := Einsum(b, "ii,jk->kj", x, x)
			if err != nil {
				panic(err)
			}
			return y
		}, []float64{5, 15, 10, 20}},
		{"linear interpolation", func(b *ir.Builder) ir.Value {
			in := Interpolation{Method: LinearMethod}
			return in.Resize(b, vector(b, ir.F32, 0, 4), ResizedAxis{Axis: 0, Out: ir.Const(4)})
		}, []float64{0, 1, 3, 4}},
		{"nearest interpolation", func(b *ir.Builder) ir.Value {
			in := Interpolation{Coordinates: Asymmetric, Rounding: RoundFloor}
			return in.Resize(b, vector(b, ir.F32, 1, 2), ResizedAxis{Axis: 0, Out: ir.Const(4)})
		}, []float64{1, 1, 2, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := floats(run(t, c.build)); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestBroadcastFails(t *testing.T) {
	p := &ir.Program{}
	e := &ir.Entry{Name: "f"}
	b := ir.NewBuilder(p, e)
	if err := ir.Try(func() { Binary(b, ir.OpAdd, vector(b, ir.F32, 1, 2), vector(b, ir.F32, 1, 2, 3)) }); err == nil {
		t.Error("shapes [2] and [3] broadcast")
	}
}
