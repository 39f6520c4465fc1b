package weft_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
	"weft/ir/diag"
	"weft/ir/eval"
	"weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/emu"
)

// update writes the table of docs/models.md instead of checking it.
var update = flag.Bool("update", false, "write the table of docs/models.md")

// realModel is a pretrained model of testdata/real/models.json.
type realModel struct {
	Name      string                     `json:"name"`
	Package   string                     `json:"package"` // NAME==VERSION
	Task      string                     `json:"task"`
	Note      string                     `json:"note"`      // the operators that make it interesting
	Dims      []string                   `json:"dims"`      // as --dim
	Constants []string                   `json:"constants"` // in.N=VALUES, as --constant
	Inputs    map[string]json.RawMessage `json:"inputs"`
	Tolerance realTolerance              `json:"tolerance"`
	Loose     map[string]realTolerance   `json:"loose"`            // of some of the inputs
	Status    string                     `json:"status"`           // matches, or the code of the error
	Missing   string                     `json:"missing"`          // what is missing where Status is a code
	Seconds   float64                    `json:"emulator_seconds"` // of one core, for all inputs; where it is long
}

type realTolerance struct {
	compare.Tolerance
	Why string `json:"why"`
}

func readRealModels(t *testing.T) []realModel {
	t.Helper()
	text, err := os.ReadFile("testdata/real/models.json")
	if err != nil {
		t.Fatal(err)
	}
	var models []realModel
	if err := json.Unmarshal(text, &models); err != nil {
		t.Fatal(err)
	}
	return models
}

// TestRealModels compares pretrained models with onnxruntime, on the evaluator and the emulator.
// Each must do what testdata/real/models.json says of it.
func TestRealModels(t *testing.T) {
	folder := os.Getenv("WEFT_REAL_MODELS")
	if folder == "" {
		t.Skip("WEFT_REAL_MODELS is not set: testdata/real/fetch.py makes the folder that it names")
	}
	needTools(t)
	for _, m := range readRealModels(t) {
		t.Run(m.Name, func(t *testing.T) { m.test(t, filepath.Join(folder, m.Name)) })
	}
}

func (m *realModel) test(t *testing.T, folder string) {
	options := weft.Options{Config: weft.Config{Targets: []string{"sm_80", "sm_90a"}, Dims: m.Dims, Weights: "embed"},
		Files: []weft.File{{Path: filepath.Join(folder, "model.onnx"), Constants: m.Constants}}, Jobs: 2, VerifyIR: true}
	c, err := weft.Compile(context.Background(), options, weft.StagePTX)
	if m.Status != "matches" {
		var d *diag.Diagnostic
		if !errors.As(err, &d) || diag.All(err)[0].Code != diag.Code(m.Status) {
			t.Fatalf("models.json says %s; compiling says %v", m.Status, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	path := filepath.Join(t.TempDir(), "model.weft")
	if err := c.Write(path); err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, word := range slices.Sorted(maps.Keys(m.Inputs)) {
		t.Run(word, func(t *testing.T) { m.run(t, c.Imported, a, word, filepath.Join(folder, word+".safetensors")) })
	}
}

// run compares the outputs for one set of inputs.
func (m *realModel) run(t *testing.T, p *ir.Program, a *artifact.Artifact, word, path string) {
	tensors := readReference(t, path)
	tolerance := m.Tolerance
	if loose, ok := m.Loose[word]; ok {
		tolerance = loose
	}
	var inputs []*ir.Tensor
	for i, in := range numbered(tensors, "in.") {
		isFixed := func(fact string) bool { return strings.HasPrefix(fact, fmt.Sprintf("in.%d=", i)) }
		if !slices.ContainsFunc(m.Constants, isFixed) {
			inputs = append(inputs, in)
		}
	}
	source, err := a.Weights()
	if err != nil {
		t.Fatal(err)
	}
	entry := p.Entries[0].Name
	evaluated, err := eval.Run(p, entry, inputs, func(name string) (*ir.Tensor, error) { return weights.Load(source, name) })
	if err != nil {
		t.Fatal("evaluator: ", err)
	}
	tolerance.compare(t, "evaluator", evaluated.Outputs, tensors)
	session, err := runtime.Open(a, emu.New(emu.Options{}), runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	emulated, err := session.Run(entry, inputs)
	if err != nil {
		t.Fatal("emulator: ", err)
	}
	tolerance.compare(t, "emulator", emulated.Outputs, tensors)
}

// compare compares all outputs with out.N; integers must be equal.
func (tolerance realTolerance) compare(t *testing.T, device string, outputs []*ir.Tensor, tensors map[string]*ir.Tensor) {
	t.Helper()
	if want := len(numbered(tensors, "out.")); len(outputs) != want {
		t.Errorf("%s: %d outputs, not %d", device, len(outputs), want)
		return
	}
	for i, got := range outputs {
		allowed := tolerance.Tolerance
		if !got.DType.IsFloat() {
			allowed = compare.Tolerance{}
		}
		if r := compare.Tensors(got, tensors[fmt.Sprint("out.", i)], allowed); !r.Equal() {
			t.Errorf("%s: output %d differs: %+v", device, i, r)
		}
	}
}

const (
	tableBegin = "<!-- table: written by go test -run TestRealModelsTable -update -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

// TestRealModelsTable checks the list, and that docs/models.md shows what it says.
func TestRealModelsTable(t *testing.T) {
	models := readRealModels(t)
	for _, m := range models {
		if (m.Status == "matches") == (m.Missing != "") || len(m.Inputs) == 0 || m.Tolerance.Why == "" {
			t.Errorf("%s: the entry is not complete", m.Name)
		}
		for word := range m.Loose {
			if m.Inputs[word] == nil {
				t.Errorf("%s: a tolerance for %s, which it does not have", m.Name, word)
			}
		}
	}
	const page = "docs/models.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", page)
	}
	want := before + tableBegin + "\n" + realTable(models) + "\n" + tableEnd + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s is not what testdata/real/models.json says; run go test -run TestRealModelsTable -update", page)
	}
}

// realTable is the table of docs/models.md, with the reasons of tolerances below it.
func realTable(models []realModel) string {
	var b strings.Builder
	matching := 0
	for _, m := range models {
		if m.Status == "matches" {
			matching++
		}
	}
	fmt.Fprintf(&b, "%d of %d match on both devices.\n\n", matching, len(models))
	b.WriteString("| model | package | task | of note | `--dim`, `--constant` | evaluator, emulator | tolerance | emulator |\n|---|---|---|---|---|---|---|---|\n")
	var reasons []string
	for _, m := range models {
		status, seconds := m.Status, ""
		if m.Missing != "" {
			status += ": " + m.Missing
		}
		if m.Seconds > 0 {
			seconds = fmt.Sprintf("%g s", m.Seconds)
		}
		tolerances := []string{m.Tolerance.text(&reasons)}
		for _, word := range slices.Sorted(maps.Keys(m.Loose)) {
			loose := m.Loose[word]
			tolerances = append(tolerances, word+": "+loose.text(&reasons))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", m.Name, strings.Replace(m.Package, "==", " ", 1), m.Task, m.Note,
			strings.Join(append(slices.Clone(m.Dims), m.Constants...), ", "), status, strings.Join(tolerances, "; "), seconds)
	}
	b.WriteString("\n")
	for i, why := range reasons {
		fmt.Fprintf(&b, "%d. %s.\n", i+1, why)
	}
	return b.String()
}

// text is "RTOL, ATOL (N)", where N is the reason's number, which may be a new one.
func (tolerance realTolerance) text(reasons *[]string) string {
	i := slices.Index(*reasons, tolerance.Why)
	if i < 0 {
		i = len(*reasons)
		*reasons = append(*reasons, tolerance.Why)
	}
	return fmt.Sprintf("%g, %g (%d)", tolerance.Relative, tolerance.Absolute, i+1)
}
