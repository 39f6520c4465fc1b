package weft

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/codegen/ptx"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/emu"
)

var mutationRounds = flag.Int("mutations", 1, "TestMutatedFiles tries `N` times as many files")

// What every mutated file must keep to.
const (
	leastMutatedFiles = 2000
	longestMutation   = 30 * time.Second // some milliseconds, but on a machine that may be busy
	mostMutationBytes = 1 << 30          // allocated in all for one file
	mostTestMemory    = 2 << 30          // of the whole test
)

// mutated is a kind of damage: files, how they are changed, and what reads the result.
type mutated struct {
	name   string
	files  []string
	change func(*rand.Rand, []byte) []byte
	try    func(path string) error
	count  int // of each file
}

// TestMutatedFiles damages files of every format that weft reads, always in the same ways, and
// takes each through everything that it can get to. Every one must give a result or coded
// diagnostics that are no bugs, in bounded time and memory, and leave no file behind.
func TestMutatedFiles(t *testing.T) {
	temporary := filepath.Join(t.TempDir(), "tmp")
	if err := os.Mkdir(temporary, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temporary)
	total, fine := 0, 0
	for _, m := range mutatedKinds(t) {
		t.Run(m.name, func(t *testing.T) {
			for _, file := range m.files {
				succeeded := m.run(t, file)
				total, fine = total+m.count**mutationRounds, fine+succeeded
			}
		})
	}
	if t.Failed() {
		return
	}
	if total < leastMutatedFiles {
		t.Errorf("%d mutated files, expected at least %d", total, leastMutatedFiles)
	}
	if fine == 0 || fine == total {
		t.Errorf("%d of %d mutated files are fine: the mutations are too strong or too weak", fine, total)
	}
	t.Logf("%d mutated files, of which %d are still good", total, fine)
	if left, err := filepath.Glob(filepath.Join(temporary, "*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v %v", left, err)
	}
	var memory goruntime.MemStats
	goruntime.ReadMemStats(&memory)
	if memory.Sys > mostTestMemory {
		t.Errorf("the test took %d MiB from the system", memory.Sys>>20)
	}
}

// mutatedKinds lists what is done to which files.
func mutatedKinds(t *testing.T) []mutated {
	archives := modelFiles("mlp/model.pt2", "cond/model.pt2", "while_loop/model.pt2", "old_torch24_mlp/model.pt2", "cache_decode/model.pt2")
	graphs := modelFiles("mlp/model.pt2", "cond/model.pt2", "while_loop/model.pt2", "ops_inplace/model.pt2", "ops_losses/model.pt2")
	onnx := modelFiles("mlp/model.onnx", "cond/model.onnx", "onnx_if/model.onnx", "onnx_loop/model.onnx", "onnx_lstm_reverse/model.onnx", "onnx_scan_sum/model.onnx")
	programs := []string{"testdata/programs/control_nested.weft", "testdata/programs/norms_f32.weft", "testdata/programs/dot_layouts.weft",
		"testdata/programs/state.weft", "testdata/programs/dynamic.weft", "testdata/programs/scatter_add.weft", "testdata/programs/convolution_symbolic.weft"}
	made := mutationArtifact(t, "testdata/programs/state.weft", corpusTarget)
	mapped := filepath.Join(t.TempDir(), "mapped.weft")
	if err := os.WriteFile(mapped, []byte(mappedProgram), 0o666); err != nil {
		t.Fatal(err)
	}
	mapped = mutationArtifact(t, mapped, "sm_90a")
	tensors := tensorFiles(t)
	kernels := filepath.Join(t.TempDir(), "kernels.ptx")
	if err := os.WriteFile(kernels, kernelsOf(t, made), 0o666); err != nil {
		t.Fatal(err)
	}
	return []mutated{
		{"pt2/bits", archives, flipBits, compileFile, 20},
		{"pt2/truncated", archives, truncateFile, compileFile, 12},
		{"pt2/lengths", archives, overwriteLengths, compileFile, 24},
		{"pt2/members", archives, inMembers(mixMembers), compileFile, 20},
		{"pt2/json", graphs, inMembers(mutateJSONMember), compileFile, 90},
		{"onnx/bits", onnx, flipBits, compileFile, 16},
		{"onnx/truncated", onnx, truncateFile, compileFile, 10},
		{"onnx/fields", onnx, mutateProtobuf, compileFile, 80},
		{"text/words", programs, mutateText, compileFile, 40},
		{"text/bits", programs, flipBits, compileFile, 6},
		{"ptx/words", []string{kernels}, mutateText, loadKernels, 150},
		{"ptx/bits", []string{kernels}, flipBits, loadKernels, 50},
		{"artifact/bits", []string{made}, flipBits, runArtifact, 60},
		{"artifact/truncated", []string{made}, truncateFile, runArtifact, 30},
		{"artifact/lengths", []string{made}, overwriteLengths, runArtifact, 60},
		{"artifact/members", []string{made}, inMembers(mixMembers), runArtifact, 30},
		{"artifact/manifest", []string{made}, inMembers(mutateManifest), runArtifact, 100},
		{"artifact/parts", []string{made}, nil, runMutatedParts(made, corpusTarget), 120},
		{"artifact/tensor maps", []string{mapped}, nil, runMutatedParts(mapped, "sm_90a"), 120},
		{"tensors/bits", tensors, flipBits, readTensorFile, 30},
		{"tensors/truncated", tensors, truncateFile, readTensorFile, 20},
		{"tensors/lengths", tensors, overwriteLengths, readTensorFile, 40},
	}
}

func modelFiles(names ...string) []string {
	for i, name := range names {
		names[i] = filepath.Join("testdata/models", name)
	}
	return names
}

// run tries all mutations of a file and counts those that are still good.
func (m mutated) run(t *testing.T, file string) (fine int) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "mutated"+filepath.Ext(file))
	h := fnv.New64a()
	fmt.Fprint(h, m.name, filepath.Base(filepath.Dir(file)), filepath.Base(file))
	for i := range m.count * *mutationRounds {
		bytes := data
		if m.change != nil {
			bytes = m.change(rand.New(rand.NewPCG(h.Sum64(), uint64(i))), data)
		} else {
			bytes = fmt.Appendf(nil, "%d", i) // the seed: try makes the file
		}
		if err := os.WriteFile(path, bytes, 0o666); err != nil {
			t.Fatal(err)
		}
		err := m.measured(path)
		if err == nil {
			fine++
		}
		if fault := notCoded(err); fault != nil {
			t.Errorf("%s, mutation %d: %v", file, i, fault)
			keepMutation(t, path, fmt.Sprintf("%s-%d", strings.ReplaceAll(m.name, "/", "-"), i))
		}
		os.Remove(path)
		if left, _ := filepath.Glob(filepath.Join(folder, "*")); len(left) > 0 {
			t.Fatalf("%s, mutation %d: left behind: %v", file, i, left)
		}
	}
	return fine
}

// keepMutation copies a file that failed to where it can be looked at.
func keepMutation(t *testing.T, path, name string) {
	folder := os.Getenv("WEFT_KEEP")
	if folder == "" {
		return
	}
	if data, err := os.ReadFile(path); err == nil {
		kept := filepath.Join(folder, name+filepath.Ext(path))
		t.Logf("kept as %s: %v", kept, os.WriteFile(kept, data, 0o666))
	}
}

// measured tries a file within the bounds of time and memory, and turns panics into errors.
func (m mutated) measured(path string) (err error) {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	start := time.Now()
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
		took := time.Since(start)
		goruntime.ReadMemStats(&after)
		if took > longestMutation {
			err = fmt.Errorf("took %s: %v", took, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > mostMutationBytes {
			err = fmt.Errorf("allocated %d MiB: %v", used>>20, err)
		}
	}()
	return m.try(path)
}

// notCoded gives err where it is a bug or has no code.
func notCoded(err error) error {
	for _, d := range diag.All(err) {
		if d.Code == diag.Bug || d.Code == "" {
			return err
		}
	}
	return nil
}

// compileFile imports, schedules, lowers and plans a model. Compile proves the plans that it makes.
func compileFile(path string) error {
	options := Options{Config: Config{Targets: []string{corpusTarget}, Weights: "embed"}, Files: []File{{Path: path}}, Jobs: 1, VerifyIR: true}
	c, err := Compile(context.Background(), options, StageLowered)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := ir.Verify(c.Imported); err != nil {
		return fmt.Errorf("the imported program is not valid: %v", err)
	}
	return nil
}

// mappedProgram is a product whose operands come by bulk copies.
const mappedProgram = `dim n in 0..4096
entry forward(%a "a": bf16[n, 2, 64], %b "b": bf16[72, 64]) {
  %y: bf16[n, 72] = kernel(%a, %b) {group = contract, schedule = {threads = 64, tile_m = 32, tile_n = 64, tile_k = 64, stages = 3, warp_m = 32, warp_n = 32}, warpgroup = {threads = 384, tile_m = 128, tile_n = 64, tile_k = 64, stages = 6, warp_m = 16, warp_n = 64, bulk = true, blocks = 132}} do (%x: bf16[n, 2, 64], %w: bf16[72, 64]) {
    %0: bf16[n, 1, 64] = slice(%x) {start = [0, 1, 0], limit = [n, 2, 64], stride = [1, 1, 1]}
    %1: bf16[n, 64] = reshape(%0) {dims = [n, 64]}
    %2: bf16[n, 72] = dot_general(%1, %w) {lhs_contract = [1], rhs_contract = [1], to = bf16}
    yield %2
  }
  return %y "y"
}
`

// mutationArtifact compiles a small program.
func mutationArtifact(t *testing.T, program, target string) string {
	path := filepath.Join(t.TempDir(), "small.weft")
	options := Options{Config: Config{Targets: []string{target}, Weights: "random:1"}, Files: []File{{Path: program}}, Jobs: 1}
	c, err := Compile(context.Background(), options, StagePTX)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Write(path); err != nil {
		t.Fatal(err)
	}
	if err := runArtifact(path); err != nil {
		t.Fatalf("the artifact does not run before it is damaged: %v", err)
	}
	return path
}

func kernelsOf(t *testing.T, path string) []byte {
	a, err := artifact.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	text, err := a.Kernels(corpusTarget)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(text) // the file is unmapped
}

// runArtifact verifies an artifact, and where its digests are right runs all that can be run.
func runArtifact(path string) error {
	a, err := artifact.Open(path)
	if err != nil {
		return err
	}
	defer a.Close()
	if err := a.Verify(); err != nil {
		return err
	}
	program, err := ir.ParseProgram("program.weft", a.Program())
	if err == nil {
		err = ir.Verify(program)
	}
	if err != nil {
		return err
	}
	device := emu.New(emu.Options{Memory: 1 << 28, MaxInstructions: 1 << 20})
	defer device.Close()
	session, err := runtime.Open(a, device, runtime.Options{})
	if err != nil {
		return err
	}
	defer session.Close()
	for _, name := range session.Entries() {
		entry, err := session.Entry(name)
		if err != nil {
			return err
		}
		inputs, err := someInputs(entry)
		if err != nil {
			return err
		}
		if _, err := session.Run(name, inputs); err != nil {
			return err
		}
	}
	return nil
}

// someInputs are zeros of a small size; every symbolic dim has 3 elements.
func someInputs(e runtime.Entry) ([]*ir.Tensor, error) {
	var inputs []*ir.Tensor
	for _, in := range e.Inputs {
		shape, elements := make([]int64, len(in.Type.Shape)), int64(1)
		for i, d := range in.Type.Shape {
			values := map[string]int64{}
			d.Symbols(func(name string) { values[name] = 3 })
			n, err := d.Eval(values)
			if err != nil || n < 0 || n > 1<<20 || elements*n > 1<<20 {
				return nil, diag.Errorf(diag.RunSize, in.Name, "no input of this size is tried: %v", d)
			}
			shape[i], elements = n, elements*n
		}
		if in.Type.DType == ir.String {
			return nil, diag.Errorf(diag.RunSize, in.Name, "no input of this type is tried")
		}
		inputs = append(inputs, ir.NewTensor(in.Type.DType, shape...))
	}
	return inputs, nil
}

// mutateManifest changes the manifest alone; it has no digest.
func mutateManifest(r *rand.Rand, members []zipMember) []zipMember {
	for i, m := range members {
		if m.name == "manifest.json" {
			members[i].data = mutateJSON(r, m.data)
		}
	}
	return members
}

// runMutatedParts writes the artifact anew with one part changed and right digests, then runs
// it. The file that is tried holds the seed.
func runMutatedParts(source, target string) func(path string) error {
	return func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seed := uint64(0)
		fmt.Sscan(string(text), &seed)
		r := rand.New(rand.NewPCG(seed, 99))
		if err := writeMutatedParts(r, source, target, path); err != nil {
			return err
		}
		return runArtifact(path)
	}
}

func writeMutatedParts(r *rand.Rand, source, target, path string) error {
	a, err := artifact.Open(source)
	if err != nil {
		return err
	}
	defer a.Close()
	contents := artifact.Contents{Manifest: a.Manifest, Program: a.Program(), Report: a.Report()}
	if contents.Weights, err = a.Weights(); err != nil {
		return err
	}
	for _, e := range a.Manifest.Entries {
		plan, err := a.Plan(target, e.Name, "")
		if err != nil {
			return err
		}
		contents.Plans = append(contents.Plans, artifact.Plan{Target: target, Entry: e.Name, JSON: plan})
	}
	text, err := a.Kernels(target)
	if err != nil {
		return err
	}
	switch plan := &contents.Plans[r.IntN(len(contents.Plans))]; r.IntN(4) {
	case 0:
		contents.Program = mutateText(r, contents.Program)
	case 1:
		text = mutateText(r, text)
	default:
		plan.JSON = mutateJSON(r, plan.JSON)
	}
	contents.Kernels = []artifact.Kernels{{Target: target, PTX: text}}
	return artifact.Write(path, contents)
}

// loadKernels parses, lints and decodes PTX, as `weft ptx check` does. What is found there has a
// place in the text instead of a code.
func loadKernels(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = ptx.Parse(string(text))
	if err == nil {
		err = ptx.Lint(string(text))
	}
	if err == nil {
		err = emu.Check(string(text))
	}
	var at *ptx.Error
	var unsupported *emu.UnsupportedError
	if errors.As(err, &at) || errors.As(err, &unsupported) {
		return diag.Errorf(diag.InvalidPTX, "", "%v", err)
	}
	return err
}

// tensorFiles writes tensors in all formats.
func tensorFiles(t *testing.T) []string {
	folder := t.TempDir()
	a, b := ir.NewTensor(ir.F32, 3, 4), ir.NewTensor(ir.I64, 5)
	for i := range a.Numel() {
		a.SetFloat(i, float64(i)/3)
	}
	var files []string
	for _, name := range []string{"io.safetensors", "io.npz", "in.npy"} {
		list := []weights.Named{{Name: "in.0", Tensor: a}, {Name: "in.1", Tensor: b}}
		if name == "in.npy" {
			list = list[:1]
		}
		files = append(files, filepath.Join(folder, name))
		if err := weights.WriteTensors(files[len(files)-1], list); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func readTensorFile(path string) error {
	_, _, closer, err := weights.ReadTensors(path, "in.0")
	if err != nil {
		return err
	}
	return closer.Close()
}
