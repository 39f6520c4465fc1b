package weft_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
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

// refused lists the fixtures that do not compile, with the code that says why. Every other
// fixture must compile and agree with PyTorch.
var refused = map[string]diag.Code{
	"ops_scatter/model.onnx": "W1220", // shapes that depend on data
	"ops_scatter/model.pt2":  "W2001", // bincount: a result whose size depends on data
}

// mistyped lists outputs whose type the exporter changed: they are compared by value.
var mistyped = map[string]bool{
	"ops_types/model.onnx": true, // bf16 sums and maxima are exported as f32
}

// needTools skips a test where llc is missing, or fails it where tools are required.
func needTools(t *testing.T) {
	t.Helper()
	name := os.Getenv("WEFT_LLC")
	if name == "" {
		name = "llc-19"
	}
	if _, err := exec.LookPath(name); err != nil {
		if os.Getenv("WEFT_REQUIRE_TOOLS") != "" {
			t.Fatal("llc is required: ", err)
		}
		t.Skip("llc is missing")
	}
}

// modelFolders are the folders with fixtures: testdata/models, and WEFT_MODELS where it is set.
func modelFolders() []string {
	folders := []string{"testdata/models"}
	if more := os.Getenv("WEFT_MODELS"); more != "" {
		folders = append(folders, more)
	}
	return folders
}

// TestModels compiles every fixture and compares evaluator and emulator with PyTorch's outputs.
func TestModels(t *testing.T) {
	needTools(t)
	for _, folder := range modelFolders() {
		files, err := filepath.Glob(filepath.Join(folder, "*", "model.*"))
		if err != nil || len(files) == 0 {
			t.Fatal("no fixtures in ", folder)
		}
		for _, file := range files {
			name := filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file)))
			if strings.HasSuffix(name, ".json.zip") {
				continue // a graph without weights has no outputs to compare
			}
			t.Run(name, func(t *testing.T) { testModel(t, name, file) })
		}
	}
}

func testModel(t *testing.T, name, file string) {
	out := filepath.Join(t.TempDir(), "model.weft")
	options := weft.Options{Config: weft.Config{Targets: []string{"sm_80", "sm_90a"}, Weights: "embed"},
		Files: []weft.File{{Path: file}}, Jobs: 2, VerifyIR: true}
	c, err := weft.Compile(context.Background(), options, weft.StagePTX)
	if code, ok := refused[name]; ok {
		var d *diag.Diagnostic
		if !errors.As(err, &d) || diag.All(err)[0].Code != code {
			t.Fatalf("want %s, got %v", code, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	references, err := filepath.Glob(filepath.Join(filepath.Dir(file), "io*.safetensors"))
	if err != nil || len(references) == 0 {
		t.Fatal("no references")
	}
	for _, reference := range references {
		testReference(t, name, c.Imported, a, reference)
	}
}

// testReference runs one set of inputs. Each gets its own session: entries may write states.
func testReference(t *testing.T, name string, p *ir.Program, a *artifact.Artifact, reference string) {
	_, tensors, closer, err := weights.ReadTensors(reference, "in.0")
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	session := emulated(t, a)
	inputs := numbered(tensors, "in.")
	source, err := a.Weights()
	if err != nil {
		t.Fatal(err)
	}
	state := func(name string) (*ir.Tensor, error) {
		if v, ok := tensors["state."+name]; ok {
			return v, nil
		}
		return weights.Load(source, name)
	}
	for name, v := range tensors {
		if state, ok := strings.CutPrefix(name, "state."); ok {
			if err := session.SetState(state, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(device string, outputs []*ir.Tensor, err error) {
		if err != nil {
			t.Errorf("%s, %s: %v", filepath.Base(reference), device, err)
			return
		}
		compareAll(t, fmt.Sprintf("%s, %s", filepath.Base(reference), device), outputs, tensors, mistyped[name])
	}
	entry := p.Entries[0].Name
	evaluated, err := eval.Run(p, entry, inputs, state)
	if err == nil {
		run("evaluator", evaluated.Outputs, nil)
		compareStates(t, filepath.Base(reference)+", evaluator", tensors, func(name string) (*ir.Tensor, error) { return evaluated.State[name], nil })
	} else {
		run("evaluator", nil, err)
	}
	emulated, err := session.Run(entry, inputs)
	if err == nil {
		run("emulator", emulated.Outputs, nil)
		compareStates(t, filepath.Base(reference)+", emulator", tensors, session.State)
	} else {
		run("emulator", nil, err)
	}
}

// compareStates compares states after a run with after.state.NAME.
func compareStates(t *testing.T, what string, tensors map[string]*ir.Tensor, after func(name string) (*ir.Tensor, error)) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(tensors)) {
		name, ok := strings.CutPrefix(key, "after.state.")
		if !ok {
			continue
		}
		got, err := after(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if got == nil {
			t.Errorf("%s: state %s was not written", what, name)
			continue
		}
		if r := compare.Tensors(got, tensors[key], compare.Default(got.DType)); !r.Equal() {
			t.Errorf("%s: state %s after the run differs: %+v", what, name, r)
		}
	}
}

func numbered(tensors map[string]*ir.Tensor, prefix string) []*ir.Tensor {
	var out []*ir.Tensor
	for i := 0; tensors[fmt.Sprint(prefix, i)] != nil; i++ {
		out = append(out, tensors[fmt.Sprint(prefix, i)])
	}
	return out
}

// compareAll compares outputs with out.N by the default tolerances of their types.
func compareAll(t *testing.T, what string, outputs []*ir.Tensor, tensors map[string]*ir.Tensor, byValue bool) {
	t.Helper()
	compared := 0
	for i, got := range outputs {
		want := tensors[fmt.Sprint("out.", i)]
		if want == nil {
			continue
		}
		compared++
		tolerance := compare.Default(got.DType)
		if byValue && got.DType != want.DType {
			tolerance = compare.Default(want.DType)
			want = converted(want, got.DType)
		}
		if r := compare.Tensors(got, want, tolerance); !r.Equal() {
			t.Errorf("%s: output %d differs: %+v", what, i, r)
		}
	}
	if compared == 0 {
		t.Errorf("%s: nothing to compare", what)
	}
}

func converted(t *ir.Tensor, to ir.DType) *ir.Tensor {
	out := ir.NewTensor(to, t.Shape...)
	for i := range t.Numel() {
		out.SetFloat(i, t.Float(i))
	}
	return out
}

// TestSameBytes compiles with one and two jobs, and from another folder and name.
func TestSameBytes(t *testing.T) {
	needTools(t)
	original := "testdata/models/gpt2_tiny/model.pt2"
	moved := filepath.Join(t.TempDir(), "renamed.bin")
	text, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(moved, text, 0o644); err != nil {
		t.Fatal(err)
	}
	var artifacts [][]byte
	for _, run := range []struct {
		path string
		jobs int
	}{{original, 1}, {original, 2}, {original, 7}, {moved, 2}} {
		out := filepath.Join(t.TempDir(), "model.weft")
		c, err := weft.Compile(context.Background(), weft.Options{Config: weft.Config{Targets: []string{"sm_80", "sm_90a"}, Weights: "embed"},
			Files: []weft.File{{Path: run.path}}, Jobs: run.jobs}, weft.StagePTX)
		if err != nil {
			t.Fatal(err)
		}
		err = c.Write(out)
		c.Close()
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		artifacts = append(artifacts, bytes)
	}
	for i, a := range artifacts[1:] {
		if !bytes.Equal(a, artifacts[0]) {
			t.Errorf("compile %d gives other bytes", i+1)
		}
	}
}

// TestEveryWeightsMode opens artifacts with embedded, referenced and absent weights: the same
// outputs.
func TestEveryWeightsMode(t *testing.T) {
	needTools(t)
	file := "testdata/models/mlp/model.pt2"
	_, tensors, closer, err := weights.ReadTensors("testdata/models/mlp/io.safetensors", "in.0")
	if err != nil {
		t.Fatal(err)
	}
	defer closer.Close()
	for _, mode := range []string{"embed", "reference", "none"} {
		t.Run(mode, func(t *testing.T) {
			c, err := weft.Compile(context.Background(), weft.Options{Config: weft.Config{Targets: []string{"sm_80"}, Weights: mode},
				Files: []weft.File{{Path: file}}, Jobs: 1}, weft.StagePTX)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			out := filepath.Join(t.TempDir(), "model.weft")
			if err := c.Write(out); err != nil {
				t.Fatal(err)
			}
			a, err := artifact.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			var options runtime.Options
			if mode != "embed" {
				imported, err := weft.Import([]weft.File{{Path: file}}, nil, true)
				if err != nil {
					t.Fatal(err)
				}
				defer imported.Close()
				options.Weights = imported.Weights
			}
			s, err := runtime.Open(a, emu.New(emu.Options{}), options)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			r, err := s.Run("forward", numbered(tensors, "in."))
			if err != nil {
				t.Fatal(err)
			}
			compareAll(t, mode, r.Outputs, tensors, false)
		})
	}
}

// TestRefusedCodesExist keeps the list of refusals honest: each names a fixture.
func TestRefusedCodesExist(t *testing.T) {
	for name, code := range refused {
		if _, err := os.Stat(filepath.Join("testdata/models", name)); err != nil {
			t.Error(err)
		}
		if !slices.ContainsFunc(diag.Codes(), func(i diag.Info) bool { return i.Code == code }) {
			t.Errorf("%s: no code %s", name, code)
		}
	}
}
