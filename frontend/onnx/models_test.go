package onnx

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
	"weft/ir/diag"
)

const models = "../../testdata/models"

// exporterDiffers lists outputs that the exporter gave another type than the model has.
var exporterDiffers = map[string]bool{"ops_types/out.9": true, "ops_types/out.20": true}

// TestModels imports the models that torch exported and compares with PyTorch's outputs.
func TestModels(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(models, "*", "model.onnx"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, path := range paths {
		name := filepath.Base(filepath.Dir(path))
		values, err := filepath.Glob(filepath.Join(filepath.Dir(path), "io*.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		for _, io := range values {
			t.Run(name+"/"+strings.TrimSuffix(filepath.Base(io), ".safetensors"), func(t *testing.T) { checkModel(t, name, path, io) })
		}
	}
}

func checkModel(t *testing.T, name, path, io string) {
	m, err := Import(path, Options{})
	if name == "ops_scatter" { // masked_scatter and bincount have sizes that depend on data
		if diag.ExitStatus(err) != diag.Unsupported || !strings.Contains(err.Error(), string(diag.ONNXDataDependent)) {
			t.Fatalf("want %s, got %v", diag.ONNXDataDependent, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := ir.Verify(m.Program); err != nil {
		t.Fatal(err)
	}
	source, err := weights.OpenSafetensors(io)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var names []string
	var inputs []*ir.Tensor
	for _, in := range m.Program.Entries[0].Inputs {
		if in.State == "" {
			v, err := weights.Load(source, fmt.Sprintf("in.%d", len(names)))
			if err != nil {
				t.Fatal(err)
			}
			names, inputs = append(names, in.Name), append(inputs, v)
		}
	}
	got, err := evaluate(m, names, inputs)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		key := fmt.Sprintf("out.%d", i)
		want, err := weights.Load(source, key)
		if err != nil {
			t.Fatal(err)
		}
		if exporterDiffers[name+"/"+key] {
			continue
		}
		if r := compare.Tensors(g, want, compare.Default(g.DType)); !r.Equal() {
			t.Errorf("%s: %s %d of %d elements differ, at %v got %s, want %s", key, r.Problem, r.Mismatches, r.Elements, r.Worst.Index, r.Worst.Got, r.Worst.Want)
		}
	}
}

// TestSameBytes imports a model twice, also from another folder and file name: programs must
// be equal.
func TestSameBytes(t *testing.T) {
	path := filepath.Join(models, "gpt2_tiny", "model.onnx")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.onnx")
	if err := os.WriteFile(other, data, 0o644); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, p := range []string{path, path, other} {
		m, err := Import(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, m.Program.String())
		m.Close()
	}
	if texts[0] != texts[1] || texts[0] != texts[2] {
		t.Error("imports of one model differ")
	}
	if strings.Contains(texts[0], t.TempDir()) {
		t.Error("the program mentions its folder")
	}
}

// TestDimNames checks that a model's named dims become symbols, and what is known of them.
func TestDimNames(t *testing.T) {
	m, err := Import(filepath.Join(models, "gpt2_tiny_dynamic_torch215", "model.onnx"), Options{Entry: "prefill"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e := m.Program.Entries[0]
	if e.Name != "prefill" || len(m.Program.Symbols) != 2 {
		t.Fatalf("entry %q, symbols %v", e.Name, m.Program.Symbols)
	}
	for _, s := range m.Program.Symbols {
		if s.Min != 1 || s.Max != ir.NoBound {
			t.Errorf("symbol %v", s)
		}
	}
	for i, in := range e.Inputs {
		if in.State != "" && m.Program.State(in.State) == nil {
			t.Errorf("input %d reads the state %q, which is not declared", i, in.State)
		}
	}
}
