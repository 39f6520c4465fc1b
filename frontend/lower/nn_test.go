package lower

import (
	"math"
	"testing"

	"weft/ir"
	"weft/ir/eval"
)

// evaluate lowers f over one input and evaluates it.
func evaluate(t *testing.T, x *ir.Tensor, f func(b *ir.Builder, x ir.Value) ir.Value) []float64 {
	t.Helper()
	e := &ir.Entry{Name: "forward"}
	p := &ir.Program{Entries: []*ir.Entry{e}}
	in := e.AddInput("x", x.Type())
	if err := ir.Try(func() { e.AddOutput("y", "", f(ir.NewBuilder(p, e), in)) }); err != nil {
		t.Fatal(err)
	}
	r, err := eval.Run(p, "forward", []*ir.Tensor{x}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []float64
	for i := range r.Outputs[0].Numel() {
		list = append(list, r.Outputs[0].Float(i))
	}
	return list
}

func doubles(values []float64, shape ...int64) *ir.Tensor {
	x := ir.NewTensor(ir.F64, shape...)
	for i, v := range values {
		x.SetFloat(int64(i), v)
	}
	return x
}

// TestNN compares lowerings with values worked out by hand.
func TestNN(t *testing.T) {
	inf, third := math.Inf(1), 1.0/3
	e := math.Exp
	none := ir.NoValue
	for name, c := range map[string]struct {
		x    *ir.Tensor
		f    func(b *ir.Builder, x ir.Value) ir.Value
		want []float64
	}{
		"softmax": {doubles([]float64{0, 1, -inf, 1000}, 2, 2), func(b *ir.Builder, x ir.Value) ir.Value { return Softmax(b, x, 1) },
			[]float64{1 / (1 + e(1)), e(1) / (1 + e(1)), 0, 1}},
		"logsumexp of -inf": {doubles([]float64{-inf, -inf}, 2), func(b *ir.Builder, x ir.Value) ir.Value { return LogSumExp(b, x, []int{0}, false) },
			[]float64{-inf}},
		"layer_norm": {doubles([]float64{1, 3}, 1, 2), func(b *ir.Builder, x ir.Value) ir.Value {
			y, _, _ := LayerNorm(b, x, 1, none, none, 3)
			return y
		}, []float64{-0.5, 0.5}},
		"group_norm of one group": {doubles([]float64{1, 3, 1, 3}, 1, 2, 2), func(b *ir.Builder, x ir.Value) ir.Value {
			y, _, _ := GroupNorm(b, x, 1, none, none, 3)
			return y
		}, []float64{-0.5, 0.5, -0.5, 0.5}},
		"softplus far out": {doubles([]float64{1000, -1000}, 2), func(b *ir.Builder, x ir.Value) ir.Value { return Softplus(b, x, 1, inf) }, []float64{1000, 0}},
		"mean keeps dims":  {doubles([]float64{1, 2, 3, 4}, 2, 2), func(b *ir.Builder, x ir.Value) ir.Value { return Mean(b, x, []int{0}, true) }, []float64{2, 3}},
		"average without padding": {doubles([]float64{2, 4}, 1, 1, 2), func(b *ir.Builder, x ir.Value) ir.Value {
			return AvgPool(b, x, NewPool(b, x, []int64{2}, []int64{1}, []int64{1}, []int64{1}, false), false, 0)
		}, []float64{2, 3, 4}},
		"average with padding": {doubles([]float64{2, 4}, 1, 1, 2), func(b *ir.Builder, x ir.Value) ir.Value {
			return AvgPool(b, x, NewPool(b, x, []int64{2}, []int64{1}, []int64{1}, []int64{1}, false), true, 0)
		}, []float64{1, 3, 2}},
		"ceil mode": {doubles([]float64{1, 2, 3, 4, 5}, 1, 1, 5), func(b *ir.Builder, x ir.Value) ir.Value {
			return AvgPool(b, x, NewPool(b, x, []int64{2}, nil, []int64{0}, []int64{1}, true), true, 0)
		}, []float64{1.5, 3.5, 5}},
		"uneven bins": {doubles([]float64{1, 2, 3, 4, 5}, 1, 5), func(b *ir.Builder, x ir.Value) ir.Value {
			y, _ := AdaptiveAvgPool(b, x, []int64{3})
			return y
		}, []float64{1.5, 3, 4.5}},
		"nll ignores": {doubles([]float64{-1, -2, -3, -4}, 2, 2), func(b *ir.Builder, x ir.Value) ir.Value {
			loss, _ := NegativeLogLikelihood(b, x, b.Constant(ir.I64s([]int64{1, -100})), none, ReduceMean, -100)
			return loss
		}, []float64{2}},
		"attention of rank 3": {doubles([]float64{0, 0, 0, 3, 3, 3}, 2, 3, 1), func(b *ir.Builder, x ir.Value) ir.Value {
			return ScaledDotProductAttention(b, b.FullLike(x, 0), x, b.Iota(ir.F64, b.Shape(x), 1), none, 1, true)
		}, []float64{0, 0.5, 1, 0, 0.5, 1}},
		"matmul of a batch and a vector": {doubles([]float64{1, 2, 3, 4}, 1, 2, 2), func(b *ir.Builder, x ir.Value) ir.Value {
			return Matmul(b, x, b.Full(ir.TensorOf(ir.F64, ir.Const(2)), third))
		}, []float64{1, 7.0 / 3}},
	} {
		got := evaluate(t, c.x, c.f)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
			continue
		}
		for i, w := range c.want {
			if got[i] != w && !(math.Abs(got[i]-w) < 1e-12) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
				break
			}
		}
	}
}

// TestInFloat32 holds that narrow floats are rounded once, at the end.
func TestInFloat32(t *testing.T) {
	x := ir.NewTensor(ir.BF16, 1)
	x.SetFloat(0, 256)
	y := evaluate(t, x, func(b *ir.Builder, x ir.Value) ir.Value {
		return InFloat32(b, func(v []ir.Value) ir.Value { return AddScalar(b, AddScalar(b, v[0], 1), 1) }, x)
	})
	if y[0] != 258 {
		t.Errorf("256 + 1 + 1 = %g", y[0])
	}
}
