package weft_test

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"weft"
	"weft/frontend/weights"
	"weft/ir"
)

// narrowMargin is how much larger weft's error may be than PyTorch's.
const narrowMargin = 1.25

// roundedByExporter are outputs of ONNX files whose constants the exporter rounded to the narrow
// type, where PyTorch computes with the exact number.
var roundedByExporter = map[string]int{"ops_types/model.onnx": 12} // h * 0.1

// TestNarrowTypes compares the error of programs with types narrower than float32 with that of
// PyTorch: both against a float64 run of the same program (exact.N of a fixture), as the root
// of the mean square over an output.
func TestNarrowTypes(t *testing.T) {
	needTools(t)
	compared := 0
	for _, folder := range modelFolders() {
		files, err := filepath.Glob(filepath.Join(folder, "*", "io*.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			_, tensors, closer, err := weights.ReadTensors(file, "in.0")
			if err != nil {
				t.Fatal(err)
			}
			defer closer.Close()
			exact := false
			for name := range tensors {
				exact = exact || strings.HasPrefix(name, "exact.")
			}
			models, err := filepath.Glob(filepath.Join(filepath.Dir(file), "model.*"))
			if err != nil || !exact {
				continue
			}
			for _, model := range models {
				name := filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(model)), filepath.Base(model)))
				if refused[name] != "" {
					continue
				}
				compared++
				t.Run(name, func(t *testing.T) { testNarrow(t, name, model, tensors) })
			}
		}
	}
	if compared == 0 {
		t.Error("no fixture has float64 references")
	}
}

func testNarrow(t *testing.T, name, model string, tensors map[string]*ir.Tensor) {
	c, a := compileTo(t, []weft.File{{Path: model}}, weft.Config{Targets: []string{"sm_90a"}, Weights: "embed"})
	session := emulated(t, a)
	r, err := session.Run(c.Imported.Entries[0].Name, numbered(tensors, "in."))
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range r.Outputs {
		exact, theirs := tensors[fmt.Sprint("exact.", i)], tensors[fmt.Sprint("out.", i)]
		if exact == nil || got.DType == ir.F64 {
			continue
		}
		if rounded, ok := roundedByExporter[name]; ok && rounded == i {
			continue
		}
		ours, limit := errorOf(got, exact), errorOf(theirs, exact)
		ratio := ours / limit
		if ours == limit {
			ratio = 1
		}
		t.Logf("output %d, %s: error %.3g, PyTorch's %.3g: %.2f times", i, got.DType, ours, limit, ratio)
		if !(ours <= narrowMargin*limit) && !(ours <= floor(theirs.DType)) {
			t.Errorf("output %d, %s: the error is %.2f times PyTorch's", i, got.Type(), ratio)
		}
	}
}

// floor is an error that does not count: a few roundings of a float32 where PyTorch had fewer.
func floor(t ir.DType) float64 {
	if t == ir.F32 {
		return 0x1p-22
	}
	return 0
}

// errorOf is the root of the mean square of t - exact, over that of exact.
func errorOf(t, exact *ir.Tensor) float64 {
	var sum, all float64
	for i := range t.Numel() {
		d := t.Float(i) - exact.Float(i)
		sum += d * d
		all += exact.Float(i) * exact.Float(i)
	}
	if sum == 0 {
		return 0
	}
	return math.Sqrt(sum / all)
}
