package fx

import (
	"math"
	"path/filepath"
	"testing"

	"weft/ir"
	"weft/ir/eval"
)

// TestRandom draws what a module in training mode draws, from its export and from its form in
// core operators, and compares means.
func TestRandom(t *testing.T) {
	means := []struct{ mean, within float64 }{
		{1, 0.1}, {0.5, 0.05}, {0, 0.15}, {6, 0.3}, {0.3, 0.07}, {24.5, 0}, {4.5, 0}, {6, 0.3}, {2.5, 0.05}, {5, 0.3}, {1, 0.15},
	}
	for _, file := range []string{"model.pt2", "core.pt2"} {
		m, err := Import(filepath.Join("testdata", "random", file), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if err := ir.Verify(m.Program); err != nil {
			t.Error(err)
		}
		ones := ir.NewTensor(ir.F32, 40, 25)
		for i := range ones.Numel() {
			ones.SetFloat(i, 1)
		}
		state := ir.NewTensor(ir.I64, 2)
		state.SetInt(0, 3)
		r, err := eval.Run(m.Program, "forward", []*ir.Tensor{ones}, func(string) (*ir.Tensor, error) { return state, nil })
		if err != nil {
			t.Fatal(err)
		}
		if next := r.State["rng"]; next == nil || next.Int(0) != 3 || next.Int(1) < 10 {
			t.Errorf("%s: the generator's next state is %v", file, next)
		}
		for i, out := range r.Outputs {
			sum := 0.0
			for k := range out.Numel() {
				sum += out.Float(k)
			}
			if mean := sum / float64(out.Numel()); math.Abs(mean-means[i].mean) > means[i].within {
				t.Errorf("%s: output %d has the mean %g, not %g", file, i, mean, means[i].mean)
			}
		}
	}
}
