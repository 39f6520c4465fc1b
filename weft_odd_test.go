package weft_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"weft"
	"weft/ir/diag"
)

// oddRefused are the files of testdata/odd that weft does not compile, and why.
var oddRefused = map[string]diag.Code{
	"associative":      diag.UnsupportedOperators, // torch.vmap's own operators, which run_decompositions() takes out
	"symbolic_size_in": diag.UnsupportedOperators, // an int of the caller as a size
	"float8":           "W4004",
}

// TestOddFiles compiles programs that are legal and seldom written: outputs that are inputs, inputs that
// nothing reads, views as weights, complex numbers, scans, and compares them with PyTorch or onnxruntime.
// testdata/export/odd.py and odd_onnx.py write them.
func TestOddFiles(t *testing.T) {
	needTools(t)
	files, err := filepath.Glob("testdata/odd/*.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		if filepath.Ext(file) == ".safetensors" {
			continue
		}
		name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		seen[name] = true
		t.Run(name, func(t *testing.T) { testOdd(t, name, file) })
	}
	for name := range oddRefused {
		if !seen[name] {
			t.Errorf("there is no file %s", name)
		}
	}
}

func testOdd(t *testing.T, name, file string) {
	models := []weft.File{{Path: file}}
	config := weft.Config{Targets: []string{"sm_80"}, Weights: "embed"}
	if code, ok := oddRefused[name]; ok {
		c, err := weft.Compile(context.Background(), weft.Options{Config: config, Files: models, Jobs: 1}, weft.StagePTX)
		if err == nil {
			c.Close()
		}
		if list := diag.All(err); len(list) == 0 || list[0].Code != code {
			t.Errorf("got %v, want %s", err, code)
		}
		return
	}
	c, a := compileTo(t, models, config)
	if entry := c.Imported.Entries[0]; len(entry.Outputs) > 0 {
		testReference(t, name, c.Imported, a, strings.TrimSuffix(file, filepath.Ext(file))+".safetensors")
	}
}
