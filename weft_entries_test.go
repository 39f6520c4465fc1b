package weft_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"weft"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/eval"
	"weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/emu"
)

// compileTo compiles files into an artifact and opens it; both are closed with the test.
func compileTo(t *testing.T, files []weft.File, config weft.Config) (*weft.Compiled, *artifact.Artifact) {
	t.Helper()
	c, err := weft.Compile(context.Background(), weft.Options{Config: config, Files: files, Jobs: 2, VerifyIR: true}, weft.StagePTX)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	out := filepath.Join(t.TempDir(), "model.weft")
	if err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return c, a
}

// emulated opens a session on the emulator, which is closed with the test.
func emulated(t *testing.T, a *artifact.Artifact) *runtime.Session {
	t.Helper()
	session, err := runtime.Open(a, emu.New(emu.Options{}), runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

// stateOf looks states up: what runs have left, else the artifact's.
func stateOf(t *testing.T, a *artifact.Artifact, left map[string]*ir.Tensor) func(string) (*ir.Tensor, error) {
	t.Helper()
	source, err := a.Weights()
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) (*ir.Tensor, error) {
		if v, ok := left[name]; ok {
			return v, nil
		}
		return weights.Load(source, name)
	}
}

func readReference(t *testing.T, path string) map[string]*ir.Tensor {
	t.Helper()
	_, tensors, closer, err := weights.ReadTensors(path, "in.0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closer.Close() })
	return tensors
}

// TestPrefillAndDecode runs two exports of a decoder over one cache: the prompt, then three more
// tokens, each compared with PyTorch.
func TestPrefillAndDecode(t *testing.T) {
	needTools(t)
	files := []weft.File{{Entry: "prefill", Path: "testdata/models/cache_prefill/model.pt2"}, {Entry: "decode", Path: "testdata/models/cache_decode/model.pt2"}}
	c, a := compileTo(t, files, weft.Config{Targets: []string{"sm_80"}, Weights: "embed"})
	alone, _ := compileTo(t, files[:1], weft.Config{Targets: []string{"sm_80"}, Weights: "embed"})
	if got, want := len(c.Imported.States), len(alone.Imported.States); got != want {
		t.Errorf("%d states for two entries, %d for one", got, want)
	}
	if got, want := initOutputs(c.Scheduled), initOutputs(alone.Scheduled); got != want {
		t.Errorf("%d states are prepared for two entries, %d for one", got, want)
	}
	session := emulated(t, a)
	states := map[string]*ir.Tensor{}
	state := stateOf(t, a, states)
	steps := []struct{ entry, reference string }{{"prefill", "cache_prefill/io"}, {"decode", "cache_decode/io_step0"}, {"decode", "cache_decode/io_step1"}, {"decode", "cache_decode/io_step2"}}
	for i, step := range steps {
		tensors := readReference(t, filepath.Join("testdata/models", step.reference+".safetensors"))
		inputs := numbered(tensors, "in.")
		evaluated, err := eval.Run(c.Imported, step.entry, inputs, state)
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range evaluated.State {
			states[name] = v
		}
		compareAll(t, fmt.Sprintf("run %d, evaluator", i), evaluated.Outputs, tensors, false)
		emulated, err := session.Run(step.entry, inputs)
		if err != nil {
			t.Fatal(err)
		}
		compareAll(t, fmt.Sprintf("run %d, emulator", i), emulated.Outputs, tensors, false)
	}
}

// TestSteps runs fixtures with io_step0, io_step1, ... in one session: each step begins with the
// states that the one before has left, as a cache or a batch norm in training has them.
func TestSteps(t *testing.T) {
	needTools(t)
	for _, folder := range modelFolders() {
		firsts, err := filepath.Glob(filepath.Join(folder, "*", "io_step0.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		for _, first := range firsts {
			models, err := filepath.Glob(filepath.Join(filepath.Dir(first), "model.*"))
			if err != nil || len(models) == 0 {
				t.Fatalf("no model beside %s: %v", first, err)
			}
			for _, model := range models {
				t.Run(filepath.Base(filepath.Dir(model))+"/"+filepath.Base(model), func(t *testing.T) { testSteps(t, model) })
			}
		}
	}
}

func testSteps(t *testing.T, model string) {
	references, err := filepath.Glob(filepath.Join(filepath.Dir(model), "io_step?.safetensors"))
	if err != nil || len(references) < 3 {
		t.Fatalf("steps: %v, %v; want at least three", references, err)
	}
	c, a := compileTo(t, []weft.File{{Path: model}}, weft.Config{Targets: []string{"sm_80"}, Weights: "embed"})
	session := emulated(t, a)
	states := map[string]*ir.Tensor{}
	state := stateOf(t, a, states)
	entry := c.Imported.Entries[0].Name
	for i, reference := range references {
		tensors := readReference(t, reference)
		for name, v := range tensors {
			if name, ok := strings.CutPrefix(name, "state."); ok && i == 0 {
				states[name] = v
				if err := session.SetState(name, v); err != nil {
					t.Fatal(err)
				}
			}
		}
		evaluated, err := eval.Run(c.Imported, entry, numbered(tensors, "in."), state)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(states, evaluated.State)
		compareAll(t, fmt.Sprintf("step %d, evaluator", i), evaluated.Outputs, tensors, false)
		compareStates(t, fmt.Sprintf("step %d, evaluator", i), tensors, state)
		emulated, err := session.Run(entry, numbered(tensors, "in."))
		if err != nil {
			t.Fatal(err)
		}
		compareAll(t, fmt.Sprintf("step %d, emulator", i), emulated.Outputs, tensors, false)
		compareStates(t, fmt.Sprintf("step %d, emulator", i), tensors, session.State)
	}
}

func initOutputs(p *ir.Program) int {
	if e := p.Entry("init"); e != nil {
		return len(e.Outputs)
	}
	return 0
}

// TestTwoCheckpoints runs one artifact with the weights of another checkpoint: the outputs are
// those of an artifact that was compiled with that checkpoint, bit for bit.
func TestTwoCheckpoints(t *testing.T) {
	needTools(t)
	inputs := numbered(readReference(t, "testdata/models/gpt2_tiny/io.safetensors"), "in.")
	files := []weft.File{{Path: "testdata/models/gpt2_tiny/model.pt2"}}
	run := func(a *artifact.Artifact, given weights.Source) []byte {
		s, err := runtime.Open(a, emu.New(emu.Options{}), runtime.Options{Weights: given})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r, err := s.Run("forward", inputs)
		if err != nil {
			t.Fatal(err)
		}
		return r.Outputs[0].Data
	}
	_, second := compileTo(t, files, weft.Config{Targets: []string{"sm_80"}, Weights: "random:7"})
	want := run(second, nil)
	checkpoint := filepath.Join(t.TempDir(), "checkpoint.safetensors")
	writeCheckpoint(t, checkpoint, second)
	for _, mode := range []string{"embed", "none"} {
		other, err := weights.OpenSource(checkpoint)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		_, first := compileTo(t, files, weft.Config{Targets: []string{"sm_80"}, Weights: mode})
		if mode == "embed" && bytes.Equal(run(first, nil), want) {
			t.Error("the two checkpoints give the same outputs")
		}
		if !bytes.Equal(run(first, other), want) {
			t.Errorf("an artifact with --weights %s gives other outputs than one compiled with the checkpoint", mode)
		}
	}
}

// writeCheckpoint writes the weights of an artifact to a file.
func writeCheckpoint(t *testing.T, path string, a *artifact.Artifact) {
	t.Helper()
	source, err := a.Weights()
	if err != nil {
		t.Fatal(err)
	}
	var list []weights.Named
	for _, name := range source.Names() {
		tensor, err := weights.Load(source, name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, weights.Named{Name: name, Tensor: tensor})
	}
	if err := weights.WriteTensors(path, list); err != nil {
		t.Fatal(err)
	}
}
