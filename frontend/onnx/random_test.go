package onnx

import (
	"math"
	"path/filepath"
	"testing"

	"weft/ir"
	"weft/ir/eval"
)

// TestRandom compares the means of what a model draws. Dropout with the ratio 0.4 of 0.3 gives
// 0.3 on average; the logits' probabilities are 1/7, 2/7 and 4/7.
func TestRandom(t *testing.T) {
	m, err := Import(filepath.Join("testdata", "random", "random.onnx"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := ir.Verify(m.Program); err != nil {
		t.Error(err)
	}
	x, logits, state := ir.NewTensor(ir.F32, 40, 25), ir.NewTensor(ir.F32, 2, 3), ir.NewTensor(ir.I64, 2)
	for i := range x.Numel() {
		x.SetFloat(i, 0.3)
	}
	for i := range logits.Numel() {
		logits.SetFloat(i, math.Log(float64(int(1)<<(i%3)))+100)
	}
	r, err := eval.Run(m.Program, "forward", []*ir.Tensor{x, logits}, func(string) (*ir.Tensor, error) { return state, nil })
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ mean, within float64 }{{3, 0.1}, {1, 0.3}, {0.5, 0.05}, {0, 0.15}, {0.3, 0.07}, {10.0 / 7, 0.1}, {0.3, 0.05}, {0.6, 0.07}} {
		out := r.Outputs[i]
		sum := 0.0
		for k := range out.Numel() {
			v := out.Float(k)
			if out.DType == ir.Bool {
				v = float64(out.Data[k])
			}
			sum += v
		}
		if mean := sum / float64(out.Numel()); math.Abs(mean-want.mean) > want.within {
			t.Errorf("output %d has the mean %g, not %g", i, mean, want.mean)
		}
	}
	if r.State["rng"].Int(1) == 0 {
		t.Error("the generator's state stays")
	}
}
