package fx

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// TestImport holds how states, inputs and outputs of an archive are named.
func TestImport(t *testing.T) {
	m, err := Import(filepath.Join(modelsDir, "ops_inplace", "model.pt2"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	e := m.Program.Entry("forward")
	var inputs, outputs []string
	for _, in := range e.Inputs {
		inputs = append(inputs, in.Name)
	}
	for _, out := range e.Outputs {
		outputs = append(outputs, strings.TrimSpace(out.Name+" "+out.State))
	}
	if got, want := strings.Join(inputs, " "), "count mean x y"; got != want {
		t.Errorf("inputs %q, want %q", got, want)
	}
	if got := outputs[len(outputs)-3:]; got[0] != "after.y" || got[1] != "count count" || got[2] != "mean mean" {
		t.Errorf("last outputs %q", got)
	}
	for _, s := range m.Program.States {
		if s.Kind != ir.Buffer {
			t.Errorf("state %s is a %s", s.Name, s.Kind)
		}
		v, err := weights.Load(m.Weights, s.Name)
		if err != nil || !v.Type().Equal(s.Type) {
			t.Errorf("weight %s: %v", s.Name, err)
		}
	}
}

// TestUnusedStates holds that weights which no operation reads are left out: GPT-2's embedding
// is tied to its head, and one of the names is enough.
func TestUnusedStates(t *testing.T) {
	m, err := Import(filepath.Join(modelsDir, "gpt2_tiny_torch215", "model.pt2"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tied := 0
	for _, s := range m.Program.States {
		if strings.HasSuffix(s.Name, "wte.weight") || strings.HasSuffix(s.Name, "lm_head.weight") {
			tied++
		}
	}
	if tied != 1 || len(m.Weights.Names()) != len(m.Program.States) {
		t.Errorf("%d names of the tied embedding, %d weights for %d states", tied, len(m.Weights.Names()), len(m.Program.States))
	}
}

// TestGraphAlone imports a zip that holds a graph and no weights.
func TestGraphAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "model.json.zip")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create("model.json")
	if err == nil {
		_, err = w.Write(modelJSON(t, "mlp"))
	}
	if err = errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	m, err := Import(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Weights != nil || len(m.Program.States) != 6 {
		t.Errorf("weights %v, %d states", m.Weights, len(m.Program.States))
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestImportErrors holds that diagnostics name the file.
func TestImportErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "a.pt2")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, code := range map[string]diag.Code{text: diag.BadZip, filepath.Join(dir, "none.pt2"): "W0003"} {
		_, err := Import(file, Options{})
		var d *diag.Diagnostic
		if !errors.As(err, &d) || d.Code != code || d.File != file {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestOperators holds that the table is as large as it is meant to be, and sorted.
func TestOperators(t *testing.T) {
	list := Operators()
	if len(list) < 500 {
		t.Errorf("%d operators", len(list))
	}
	for i, name := range list {
		if i > 0 && name <= list[i-1] || !hasRule("torch.ops."+name) {
			t.Errorf("operator %s", name)
		}
	}
}
