package weft_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft"
	"weft/frontend"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
	"weft/ir/eval"
	"weft/passes"
	"weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/comm"
	"weft/runtime/emu"
)

// meshPrograms are programs for meshes, with the sizes of their dims to run with. Their states
// are random; entries run one after the other, twice.
var meshPrograms = []struct {
	name, text string
	sizes      []map[string]int64
}{
	{"tensor and data parallel, a state that counts", `mesh dp=2, tp=2
dim "rank.dp" in 0..1
dim "rank.tp" in 0..1
dim n
state @"w1": f32[8, 8] parameter of [8, 16@tp]
state @"w2": f32[8, 8] parameter of [16@tp, 8]
state @"count": f32[] buffer
entry forward(%x "x": f32[floordiv(n + 1, 2), 8] of [n@dp, 8], %w1 @"w1": f32[8, 8], %w2 @"w2": f32[8, 8], %c @"count": f32[]) {
  %h: f32[floordiv(n + 1, 2), 8] = dot_general(%x, %w1) {lhs_contract = [1], rhs_contract = [0], to = f32}
  %r: f32[floordiv(n + 1, 2), 8] = tanh(%h)
  %p: f32[floordiv(n + 1, 2), 8] = dot_general(%r, %w2) {lhs_contract = [1], rhs_contract = [0], to = f32}
  %y: f32[floordiv(n + 1, 2), 8] = all_reduce(%p) {combine = add, axes = ["tp"], size = 2}
  %one: f32[] = constant() {value = f32[] 1}
  %d: f32[] = add(%c, %one)
  return %y "y" of [n@dp, 8], %d "count" @"count"
}
entry weights(%w1 @"w1": f32[8, 8], %w2 @"w2": f32[8, 8]) {
  %g: f32[16, 8] = all_gather(%w2) {axes = ["tp"], size = 2}
  %n: f32[8, 8] = negate(%w1)
  return %g "all of w2", %n "negated" of [8, 16@tp], %n "w1" @"w1"
}
`, []map[string]int64{{"n": 5}, {"n": 1}, {"n": 0}, {"n": 8}}},
	{"weights gathered and gradients scattered", `mesh dp=4
dim "rank.dp" in 0..3
state @"w": f32[3, 6] parameter of [10@dp, 6]
state @"b": bf16[6] buffer
entry step(%x "x": f32[2, 6] of [8@dp, 6], %w @"w": f32[3, 6], %b @"b": bf16[6]) {
  %g: f32[12, 6] = all_gather(%w) {axes = ["dp"], size = 4}
  %s: f32[10, 6] = slice(%g) {start = [0, 0], limit = [10, 6], stride = [1, 1]}
  %y: f32[2, 10] = dot_general(%x, %s) {lhs_contract = [1], rhs_contract = [1], to = f32}
  %p: f32[10, 6] = dot_general(%y, %x) {lhs_contract = [0], rhs_contract = [0], to = f32}
  %zero: f32[] = constant() {value = f32[] 0}
  %q: f32[12, 6] = pad(%p, %zero) {low = [0, 0], high = [2, 0], interior = [0, 0]}
  %d: f32[3, 6] = reduce_scatter(%q) {combine = add, axes = ["dp"], size = 4}
  %v: f32[3, 6] = subtract(%w, %d)
  return %y "y" of [8@dp, 10], %v "new w" @"w"
}
`, nil},
	{"coordinates and every collective, of narrow and whole numbers", `mesh a=2, b=2
dim "rank.a" in 0..1
dim "rank.b" in 0..1
entry forward(%x "x": bf16[4, 3] of [8@a, 3], %k "k": i32[2, 4] of [8@(a, b), 4]) {
  %at: i64[] = dim() {value = 2*"rank.a" + "rank.b"}
  %f: f32[] = convert(%at) {to = f32}
  %h: bf16[] = convert(%f) {to = bf16}
  %hb: bf16[4, 3] = broadcast_in_dim(%h) {dims = [4, 3]}
  %xa: bf16[4, 3] = add(%x, %hb)
  %r: bf16[4, 3] = all_reduce(%xa) {combine = add, axes = ["b"], size = 2}
  %m: bf16[4, 3] = all_reduce(%xa) {combine = maximum, axes = ["b", "a"], size = 4}
  %s: bf16[1, 3] = reduce_scatter(%xa) {combine = add, axes = ["a", "b"], size = 4}
  %g: i32[4, 4] = all_gather(%k) {axes = ["a"], size = 2}
  %t: i32[4, 2] = transpose(%k) {permutation = [1, 0]}
  %o: i32[4, 2] = all_to_all(%t) {axes = ["a", "b"], size = 4}
  %q: i32[2, 4] = collective_permute(%k) {axes = ["b"], size = 2, pairs = [{source = 1, target = 0}]}
  %z: i32[2, 4] = all_reduce(%k) {combine = xor, axes = ["a"], size = 2}
  return %r "reduced" of [8@a, 3], %m "largest", %s "scattered" of [4@(a, b), 3], %g "gathered" of [8@b, 4], %o "swapped" of [16@(a, b), 2], %q "moved" of [8@(a, b), 4], %z "xor" of [4@b, 4]
}
`, nil},
	{"prepared weights of each rank", `mesh tp=3
dim "rank.tp" in 0..2
dim n
state @"w": bf16[4, 5] parameter of [4, 13@tp]
entry forward(%x "x": f32[n, 4], %w @"w": bf16[4, 5]) {
  %c: f32[4, 5] = convert(%w) {to = f32}
  %t: f32[5, 4] = transpose(%c) {permutation = [1, 0]}
  %e: f32[5, 4] = exponential(%t)
  %y: f32[n, 5] = dot_general(%x, %e) {lhs_contract = [1], rhs_contract = [1], to = f32}
  return %y "y" of [n, 13@tp]
}
`, []map[string]int64{{"n": 2}, {"n": 7}}},
	{"a collective in each iteration", `mesh tp=2
dim "rank.tp" in 0..1
dim n in 1..
entry forward(%x "x": f32[4] of [8@tp]) {
  %zero: i64[] = constant() {value = i64[] 0}
  %one: i64[] = constant() {value = i64[] 1}
  %five: i64[] = constant() {value = i64[] 5}
  %half: f32[4] = constant() {value = f32[4] [0.5, 0.5, 0.5, 0.5]}
  (%i: i64[], %y: f32[4]) = while(%zero, %x) do (%c: i64[], %d: f32[4]) {
    %less: i1[] = compare(%c, %five) {direction = LT}
    yield %less
  } (%c2: i64[], %d2: f32[4]) {
    %n2: i64[] = add(%c2, %one)
    %s: f32[4] = all_reduce(%d2) {combine = add, axes = ["tp"], size = 2}
    %m: f32[4] = multiply(%s, %half)
    yield %n2, %m
  }
  return %y "y", %i "times"
}
`, nil},
}

// TestMeshPrograms compiles programs for meshes and compares their ranks on the emulator with the
// evaluator.
func TestMeshPrograms(t *testing.T) {
	needTools(t)
	for _, p := range meshPrograms {
		t.Run(p.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "program.weft.txt")
			if err := os.WriteFile(path, []byte(p.text), 0o644); err != nil {
				t.Fatal(err)
			}
			c, a := compileTo(t, []weft.File{{Path: path}}, weft.Config{Targets: []string{"sm_80"}, Weights: "random:3"})
			sizes := p.sizes
			if sizes == nil {
				sizes = []map[string]int64{{}}
			}
			for _, s := range sizes {
				testMesh(t, c.Imported, a, s)
			}
		})
	}
}

// localRanks opens all ranks of an artifact on emulators.
func localRanks(t *testing.T, a *artifact.Artifact) *runtime.Ranks {
	t.Helper()
	local := comm.NewLocal(time.Minute)
	var members []runtime.Member
	for rank := range a.Manifest.Mesh.Program().Size() {
		device, recorder := emu.New(emu.Options{Workers: 1}), runtime.NewRecorder(rank)
		t.Cleanup(func() { device.Close() })
		members = append(members, runtime.Member{Rank: rank, Device: device, Communicator: local.Rank(rank, device, recorder), Recorder: recorder})
	}
	r, err := runtime.OpenRanks(a, members, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// testMesh runs all entries twice over the same states.
func testMesh(t *testing.T, p *ir.Program, a *artifact.Artifact, sizes map[string]int64) {
	t.Helper()
	ranks := localRanks(t, a)
	source, err := a.Weights()
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]*ir.Tensor{}
	state := func(name string) (*ir.Tensor, error) {
		if s := states[name]; s != nil {
			return s, nil
		}
		return weights.Load(source, name)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 2 {
		for _, e := range p.Entries {
			what := fmt.Sprintf("%s %v, round %d", e.Name, sizes, round)
			inputs := globalInputs(t, random, e, sizes)
			want, err := eval.Run(p, e.Name, inputs, state)
			if err != nil {
				t.Fatal(what, err)
			}
			got, err := ranks.RunContext(context.Background(), e.Name, inputs)
			if err != nil {
				t.Fatal(what, err)
			}
			for i, w := range want.Outputs {
				compareGlobal(t, fmt.Sprintf("%s, output %d", what, i), got.Outputs[i], w)
			}
			for _, name := range slices.Sorted(maps.Keys(want.State)) {
				states[name] = want.State[name]
				after, err := ranks.State(name)
				if err != nil {
					t.Fatal(what, err)
				}
				compareGlobal(t, what+", state "+name, after, want.State[name])
			}
		}
	}
}

func compareGlobal(t *testing.T, what string, got runtime.Global, want *ir.Tensor) {
	t.Helper()
	if got.Whole == nil {
		t.Errorf("%s: ranks differ: %v", what, got.Parts)
		return
	}
	if r := compare.Tensors(got.Whole, want, compare.Default(want.DType)); !r.Equal() {
		t.Errorf("%s: %+v", what, r)
	}
}

// globalInputs are random inputs of an entry, small numbers.
func globalInputs(t *testing.T, random *rand.Rand, e *ir.Entry, sizes map[string]int64) []*ir.Tensor {
	t.Helper()
	var inputs []*ir.Tensor
	for i, in := range e.Inputs {
		if in.State != "" {
			continue
		}
		typ := e.Type(e.Body.Params[i])
		dims := typ.Shape
		if in.Shard != nil {
			dims = in.Shard.Global()
		}
		shape := make([]int64, len(dims))
		for k, d := range dims {
			n, err := d.Eval(sizes)
			if err != nil {
				t.Fatal(err)
			}
			shape[k] = n
		}
		x := ir.NewTensor(typ.DType, shape...)
		for k := range x.Numel() {
			if typ.DType.IsFloat() {
				x.SetFloat(k, random.NormFloat64())
			} else {
				x.SetInt(k, random.Int64N(100))
			}
		}
		inputs = append(inputs, x)
	}
	return inputs
}

var allMeshes = flag.Bool("all-meshes", false, "run every model of TestMeshModels on emulated ranks of every mesh, not one mesh a strategy")

// strategies are meshes of 2, 4 and 8 ranks for each way to divide a model.
var strategies = []struct {
	parallel string
	meshes   []string
}{
	{"dp:ddp", []string{"dp=2", "dp=4", "dp=8"}},
	{"dp:fsdp", []string{"dp=2", "dp=4", "dp=8"}},
	{"tp:tp", []string{"tp=2", "tp=4", "tp=8"}},
	{"tp:tp+sp", []string{"tp=2", "tp=4", "tp=8"}},
	{"dp:fsdp,tp:tp", []string{"dp=2,tp=2", "dp=2,tp=4", "dp=4,tp=2"}},
	{"node+gpu:hsdp", []string{"node=2,gpu=2", "node=2,gpu=4"}},
	{"dp:zero2,tp:tp+sp", []string{"dp=2,tp=2", "dp=4,tp=2"}},
	{"ep:ep", []string{"ep=2", "ep=4", "ep=8"}},
	{"dp:fsdp,ep:ep", []string{"dp=2,ep=2", "dp=2,ep=4"}},
}

// TestMeshModels divides models over meshes by every strategy: the ranks together give PyTorch's
// outputs, losses and gradients, in the evaluator on every mesh and on emulated ranks.
func TestMeshModels(t *testing.T) {
	needTools(t)
	for n, model := range []string{"mlp", "gpt2_tiny", "llama_tiny", "mixtral_tiny", "mobilenet_v3_small", "mlp_joint", "llama_tiny_joint"} {
		for k, s := range strategies {
			if strings.Contains(s.parallel, "ep") && model != "mixtral_tiny" {
				continue
			}
			t.Run(model+" "+s.parallel, func(t *testing.T) {
				for i, m := range s.meshes {
					testMeshModel(t, model, m, s.parallel, *allMeshes || i == (n+k)%len(s.meshes) && (model != "mobilenet_v3_small" || k < 5))
				}
			})
		}
	}
}

func testMeshModel(t *testing.T, model, mesh, parallel string, emulated bool) {
	files := []weft.File{{Path: "testdata/models/" + model + "/model.pt2"}}
	config := weft.Config{Targets: []string{"sm_90a"}, Weights: "embed", Settings: passes.Settings{Mesh: mesh, Parallel: parallel}}
	io := readReference(t, "testdata/models/"+model+"/io.safetensors")
	inputs, want := numbered(io, "in."), numbered(io, "out.")
	var divided *ir.Program
	after := func(pass string, _ bool, p *ir.Program) error {
		if pass == "shard" {
			divided = p.Clone()
		}
		return nil
	}
	c, err := weft.Compile(context.Background(), weft.Options{Config: config, Files: files, Jobs: 2, VerifyIR: true, AfterPass: after}, weft.StageScheduled)
	if err != nil {
		t.Fatal(mesh, err)
	}
	defer c.Close()
	source, err := frontend.Import(files[0].Path, frontend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	evaluated, err := eval.Run(divided, "forward", inputs, func(name string) (*ir.Tensor, error) {
		return weights.Load(source.Weights, cmp.Or(divided.State(name).Source, name))
	})
	if err != nil {
		t.Fatal(mesh, err)
	}
	for i, w := range want {
		if r := compare.Tensors(evaluated.Outputs[i], w, compare.Default(w.DType)); !r.Equal() {
			t.Errorf("%s, output %d in the evaluator: %+v", mesh, i, r)
		}
	}
	if !emulated {
		return
	}
	_, a := compileTo(t, files, config)
	got, err := localRanks(t, a).RunContext(context.Background(), "forward", inputs)
	if err != nil {
		t.Fatal(mesh, err)
	}
	for i, w := range want {
		compareGlobal(t, fmt.Sprintf("%s, output %d on emulated ranks", mesh, i), got.Outputs[i], w)
	}
}

// TestMeshPrefillAndDecode runs two exports over one cache, which ranks have by heads under tp: the prompt,
// then three more tokens, each compared with PyTorch.
func TestMeshPrefillAndDecode(t *testing.T) {
	needTools(t)
	files := []weft.File{{Entry: "prefill", Path: "testdata/models/cache_prefill/model.pt2"}, {Entry: "decode", Path: "testdata/models/cache_decode/model.pt2"}}
	for _, test := range []struct{ mesh, parallel, keys string }{
		{"tp=2", "tp:tp", "[1, 2@tp, 16, 8]"},
		{"dp=2,tp=2", "dp:fsdp,tp:tp+sp", "[1, 2@tp, 16, 8]"},
		{"dp=2", "dp:ddp", "[]"},
	} {
		t.Run(test.mesh, func(t *testing.T) {
			c, a := compileTo(t, files, weft.Config{Targets: []string{"sm_80"}, Weights: "embed", Settings: passes.Settings{Mesh: test.mesh, Parallel: test.parallel}})
			if keys := c.Scheduled.State("layers.0.attention.keys"); keys.Shard.String() != test.keys {
				t.Errorf("the cache is divided as %s", keys.Shard)
			}
			ranks := localRanks(t, a)
			for i, reference := range []string{"cache_prefill/io", "cache_decode/io_step0", "cache_decode/io_step1", "cache_decode/io_step2"} {
				tensors := readReference(t, filepath.Join("testdata/models", reference+".safetensors"))
				got, err := ranks.RunContext(context.Background(), files[min(i, 1)].Entry, numbered(tensors, "in."))
				if err != nil {
					t.Fatal(err)
				}
				for k, want := range numbered(tensors, "out.") {
					compareGlobal(t, fmt.Sprintf("run %d, output %d", i, k), got.Outputs[k], want)
				}
			}
		})
	}
}
