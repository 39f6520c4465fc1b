package weft_test

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/eval"
	"weft/passes"
	"weft/passes/canonicalize"
	"weft/passes/precision"
)

// TestPrecision compares models under policies with PyTorch's float32 results. The error, as the
// root of the mean square over the output, is at most that of PyTorch's autocast over the same
// fixture (measured on a CPU, PyTorch 2.15), in the evaluator and on the emulator. Outputs of a few
// elements, whose error is chance, may have twice as much.
func TestPrecision(t *testing.T) {
	needTools(t)
	tests := []struct {
		model, policy string
		theirs        float64
	}{
		{"gpt2_tiny", "bf16", 3.81e-3},
		{"gpt2_tiny", "fp16", 4.83e-4},
		{"llama_tiny", "bf16", 8.48e-3},
		{"llama_tiny", "fp16", 1.04e-3},
		{"gpt2_tiny_loss", "bf16", 2.09e-4},
		{"vit_tiny", "bf16", 2.72e-3},
	}
	for _, test := range tests {
		t.Run(test.model+"/"+test.policy, func(t *testing.T) {
			folder := "testdata/models/" + test.model
			tensors := readReference(t, folder+"/io.safetensors")
			c, a := compileTo(t, []weft.File{{Path: folder + "/model.pt2"}}, weft.Config{Targets: []string{"sm_90a"}, Weights: "embed", Settings: passes.Settings{Precision: test.policy}})
			session := emulated(t, a)
			inputs := numbered(tensors, "in.")
			r, err := session.Run(c.Imported.Entries[0].Name, inputs)
			if err != nil {
				t.Fatal(err)
			}
			evaluated := evaluate(t, c.Scheduled, folder+"/model.pt2", inputs)
			for i, got := range r.Outputs {
				want := numbered(tensors, "out.")[i]
				if got.DType != ir.F32 {
					t.Errorf("output %d is %s", i, got.Type())
				}
				e, m := errorOf(got, want), errorOf(evaluated[i], want)
				t.Logf("output %d: error %.3g on the emulator, %.3g in the evaluator, PyTorch's %.3g", i, e, m, test.theirs)
				bound := test.theirs
				if got.Numel() <= 4 {
					bound *= 2
				}
				if !(e <= bound) || !(m <= bound) {
					t.Errorf("output %d: the errors %.3g and %.3g are above %.3g", i, e, m, bound)
				}
			}
		})
	}
}

// evaluate runs the first entry of a program in the evaluator, with the weights of a model.
func evaluate(t *testing.T, p *ir.Program, model string, inputs []*ir.Tensor) []*ir.Tensor {
	t.Helper()
	imported, err := weft.Import([]weft.File{{Path: model}}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	defer imported.Weights.Close()
	states := map[string]*ir.Tensor{}
	source := func(name string) (*ir.Tensor, error) {
		if v, ok := states[name]; ok {
			return v, nil
		}
		return weights.Load(imported.Weights, name)
	}
	if p.Entry("init") != nil {
		r, err := eval.Run(p, "init", nil, source)
		if err != nil {
			t.Fatal(err)
		}
		states = r.State
	}
	r, err := eval.Run(p, p.Entries[0].Name, inputs, source)
	if err != nil {
		t.Fatal(err)
	}
	return r.Outputs
}

// TestPolicies applies policies to every fixture and program: what comes out is valid, and keeps the
// rules of precision.Check, which the pass holds itself to.
func TestPolicies(t *testing.T) {
	var policies []precision.Policy
	for _, text := range []string{"bf16", "compute=fp16,params=fp16,reduce=fp16,output=fp16", "tf32"} {
		policy, err := precision.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, policy)
	}
	models, err := filepath.Glob("testdata/models/*/model.*")
	if err != nil {
		t.Fatal(err)
	}
	programs, err := filepath.Glob("testdata/programs/*.weft")
	if err != nil || len(models)*len(programs) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	changed := 0
	for _, file := range append(models, programs...) {
		imported, err := weft.Import([]weft.File{{Path: file}}, nil, false)
		if err != nil {
			continue // other tests say which files are refused
		}
		for _, policy := range policies {
			p := imported.Program.Clone()
			if _, err := canonicalize.Run(p); err != nil {
				t.Fatal(err)
			}
			r, err := precision.Run(p, policy)
			if err == nil {
				err = ir.Verify(p)
			}
			if err != nil {
				t.Errorf("%s, %s: %v", file, policy, err)
			}
			if r.Changed {
				changed++
			}
			again, err := precision.Run(p, policy)
			if err != nil {
				t.Errorf("%s, %s, a second time: %v", file, policy, err)
			}
			if again.Changed && policy.Output == ir.InvalidDType && !policy.TF32 {
				t.Errorf("%s, %s: a second run changes something", file, policy)
			}
		}
		if imported.Weights != nil {
			imported.Weights.Close()
		}
	}
	t.Logf("%d programs changed", changed)
	if changed < 100 {
		t.Errorf("policies changed only %d programs", changed)
	}
}

// On a mesh, parameters are cast before they are gathered, activations are gathered in the compute
// type, and partial sums travel in the type that reduce names.
func TestPrecisionOnMesh(t *testing.T) {
	const folder = "testdata/models/llama_tiny"
	tensors := readReference(t, folder+"/io.safetensors")
	inputs := numbered(tensors, "in.")
	for _, test := range []struct {
		policy, parallel, gathered, reduced string
		bound                               float64
	}{
		{"bf16", "dp:fsdp,tp:tp", "bf16 f32", "f32", 8.48e-3}, // norms and the embedding are gathered in float32
		{"bf16", "dp:ddp,tp:tp+sp", "bf16", "f32", 8.48e-3},
		{"bf16,reduce=bf16", "dp:ddp,tp:tp+sp", "bf16", "bf16", 1.2e-2},
	} {
		t.Run(test.policy+"/"+test.parallel, func(t *testing.T) {
			config := weft.Config{Targets: []string{"sm_90a"}, Weights: "embed",
				Settings: passes.Settings{Precision: test.policy, Mesh: "dp=2,tp=2", Parallel: test.parallel}}
			var divided *ir.Program
			keep := func(pass string, _ bool, p *ir.Program) error {
				if pass == "shard" {
					divided = p.Clone()
				}
				return nil
			}
			c, err := weft.Compile(context.Background(), weft.Options{Config: config, Files: []weft.File{{Path: folder + "/model.pt2"}}, Jobs: 1, VerifyIR: true,
				AfterPass: keep}, weft.StageScheduled)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			gathered, reduced := map[string]bool{}, map[string]bool{}
			for _, collective := range c.Report.Sharding.Collectives {
				types := gathered
				if collective.Kind != "all_gather" {
					types = reduced
				}
				types[collective.Type.DType.String()] = true
			}
			if got := strings.Join(slices.Sorted(maps.Keys(gathered)), " "); got != test.gathered {
				t.Errorf("gathered in %s", got)
			}
			if got := strings.Join(slices.Sorted(maps.Keys(reduced)), " "); got != test.reduced {
				t.Errorf("reduced in %s", got)
			}
			out := evaluate(t, divided, folder+"/model.pt2", inputs)
			if e := errorOf(out[0], numbered(tensors, "out.")[0]); !(e <= test.bound) {
				t.Errorf("the error is %g", e)
			}
		})
	}
}
