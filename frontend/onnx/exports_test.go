package onnx

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
)

// TestExports evaluates models with open dims at several sizes; testdata/make_exports.py
// writes them and the results of onnxruntime.
func TestExports(t *testing.T) {
	paths, err := filepath.Glob("testdata/exports/*.onnx")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no exports: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".onnx"), func(t *testing.T) {
			m, err := Import(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if err := ir.Verify(m.Program); err != nil {
				t.Fatal(err)
			}
			if len(m.Warnings) > 0 {
				t.Error(m.Warnings)
			}
			source, err := weights.OpenSafetensors(strings.TrimSuffix(path, ".onnx") + ".safetensors")
			if err != nil {
				t.Fatal(err)
			}
			defer source.Close()
			for run := range 2 {
				x, err := weights.Load(source, fmt.Sprintf("%d.in.0", run))
				if err != nil {
					t.Fatal(err)
				}
				got, err := evaluate(m, []string{"x"}, []*ir.Tensor{x})
				if err != nil {
					t.Fatal(err)
				}
				for i, g := range got {
					want, err := weights.Load(source, fmt.Sprintf("%d.out.%d", run, i))
					if err != nil {
						t.Fatal(err)
					}
					if r := compare.Tensors(g, want, compare.Default(ir.F32)); !r.Equal() {
						t.Errorf("run %d, output %d: %s %d of %d elements differ, at %v got %s, want %s", run, i, r.Problem, r.Mismatches, r.Elements, r.Worst.Index, r.Worst.Got, r.Worst.Want)
					}
				}
			}
		})
	}
}
