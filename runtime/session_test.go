package runtime_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/cuda"
	"weft/runtime/emu"
)

// The model of the tests has three entries over the states w, w2 and count:
//
//	init:    w2 = 2*w
//	forward: y = 2*(x*w2 + x), for x of any n up to 1024
//	step:    count = count + x; total = count; one = 1
const files = "init forward step"

// model describes an artifact of the tests.
type model struct {
	entries string                         // files of testdata
	targets string                         //
	edit    func(file, text string) string // of the plans; may be nil
	given   bool                           // the weights are referred to
	tied    bool                           // count is the same memory as w
}

func (m model) write(t testing.TB) *artifact.Artifact {
	t.Helper()
	ptx := read(t, "kernels.ptx")
	f32 := func(values ...float32) []byte { return vector(values...).Data }
	w, count := f32(1, 2, 3, 4), f32(10, 20, 30, 40)
	if m.tied {
		count = w
	}
	source, err := weights.FromRegions([]weights.Region{
		{Name: "w", DType: ir.F32, Shape: []int64{4}, Data: w},
		{Name: "count", DType: ir.F32, Shape: []int64{4}, Data: count},
	})
	if err != nil {
		t.Fatal(err)
	}
	from := func(name string) artifact.From {
		if m.given {
			return artifact.From{Reference: &artifact.Reference{Name: "model." + name}}
		}
		return artifact.From{Embedded: &artifact.Embedded{}}
	}
	c := artifact.Contents{
		Program: []byte("\n"), Report: []byte("{}\n"), Weights: source,
		Manifest: artifact.Manifest{Weft: "test", State: []artifact.State{
			{Name: "w", Type: "f32[4]", Kind: "parameter", From: from("w")},
			{Name: "count", Type: "f32[4]", Kind: "buffer", From: from("count")},
		}},
	}
	if strings.Contains(m.entries, "init") {
		c.Manifest.State = append(c.Manifest.State, artifact.State{Name: "w2", Type: "f32[4]", Kind: "prepared", From: artifact.From{Prepared: &artifact.Prepared{Entry: "init"}}})
	}
	for _, entry := range strings.Fields(m.entries) {
		c.Manifest.Entries = append(c.Manifest.Entries, artifact.Entry{Name: entry})
	}
	for _, target := range strings.Fields(m.targets) {
		c.Manifest.Targets = append(c.Manifest.Targets, artifact.Target{Name: target})
		c.Kernels = append(c.Kernels, artifact.Kernels{Target: target, PTX: []byte(strings.NewReplacer("sm_80", target, ".version 7.0", ".version 8.0").Replace(ptx))})
		for _, entry := range strings.Fields(m.entries) {
			text := strings.Replace(read(t, entry+".json"), "TARGET", target, 1)
			if m.edit != nil {
				text = m.edit(entry, text)
			}
			c.Plans = append(c.Plans, artifact.Plan{Target: target, Entry: entry, JSON: []byte(text)})
		}
	}
	path := filepath.Join(t.TempDir(), "model.weft")
	if err := artifact.Write(path, c); err != nil {
		t.Fatal(err)
	}
	a, err := artifact.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// onDevices runs a test on the emulator, and on a GPU where there is one.
func onDevices(t *testing.T, test func(t *testing.T, device runtime.Device)) {
	run := func(name string, device runtime.Device) {
		t.Run(name, func(t *testing.T) {
			test(t, device)
			check(t, device.Close())
		})
	}
	run("emu", emu.New(emu.Options{}))
	if n, err := cuda.Count(); err == nil && n > 0 {
		device, err := cuda.Open(0)
		check(t, err)
		run("cuda", device)
	}
}

func open(t testing.TB, m model, options runtime.Options) *runtime.Session {
	return openOn(t, emu.New(emu.Options{}), m, options)
}

func openOn(t testing.TB, device runtime.Device, m model, options runtime.Options) *runtime.Session {
	t.Helper()
	a := m.write(t)
	s, err := runtime.Open(a, device, options)
	if err != nil {
		t.Fatal(err)
	}
	check(t, a.Close())
	return s
}

var whole = model{entries: files, targets: "sm_80 sm_90a"}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks the code of the first diagnostic and words of the message.
func wantError(t *testing.T, err error, code diag.Code, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	t.Log(err)
	if got := diag.All(err)[0].Code; got != code {
		t.Errorf("code %s, want %s", got, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error does not say %q", w)
		}
	}
}

func vector(values ...float32) *ir.Tensor {
	t := ir.NewTensor(ir.F32, int64(len(values)))
	for i, v := range values {
		t.SetFloat(int64(i), float64(v))
	}
	return t
}

// rows is x of the forward entry with n rows and its output.
func rows(n int64) (x, y *ir.Tensor) {
	x, y = ir.NewTensor(ir.F32, n, 4), ir.NewTensor(ir.F32, n, 4)
	for i := range 4 * n {
		v := float64(i) - 7
		x.SetFloat(i, v)
		y.SetFloat(i, 2*(v*float64(2*(i%4+1))+v))
	}
	return x, y
}

func same(t *testing.T, what string, got, want *ir.Tensor) {
	t.Helper()
	if got.Type().String() != want.Type().String() || string(got.Data) != string(want.Data) {
		t.Errorf("%s: %s %v, want %s %v", what, got.Type(), got.Data, want.Type(), want.Data)
	}
}

func TestRun(t *testing.T) { onDevices(t, testRun) }

func testRun(t *testing.T, device runtime.Device) {
	for _, noGraph := range []bool{false, true} {
		s := openOn(t, device, whole, runtime.Options{NoGraph: noGraph})
		if p := device.Properties(); p.ComputeMajor == 9 && s.Target() != "sm_90a" {
			t.Errorf("target %s", s.Target())
		}
		for _, n := range []int64{1, 8, 64, 0, 9, 8, 1024} {
			x, y := rows(n)
			r, err := s.Run("forward", []*ir.Tensor{x})
			check(t, err)
			same(t, "y", r.Outputs[0], y)
			if len(r.Outputs) != 1 || r.Dims["n"] != n {
				t.Errorf("%d outputs, dims %v", len(r.Outputs), r.Dims)
			}
		}
		check(t, s.Close())
	}
}

func TestStates(t *testing.T) { onDevices(t, testStates) }

func testStates(t *testing.T, device runtime.Device) {
	s := openOn(t, device, whole, runtime.Options{})
	for k := range 3 {
		r, err := s.Run("step", []*ir.Tensor{vector(1, 2, 3, 4)})
		check(t, err)
		f := float32(k + 1)
		want := vector(10+f, 20+2*f, 30+3*f, 40+4*f)
		same(t, "total", r.Outputs[0], want)
		same(t, "one", r.Outputs[1], ir.ScalarTensor(ir.F32, 1))
		count, err := s.State("count")
		check(t, err)
		same(t, "count", count, want)
	}
	check(t, s.SetState("count", vector(0, 0, 0, -1)))
	r, err := s.Run("step", []*ir.Tensor{vector(1, 1, 1, 1)})
	check(t, err)
	same(t, "total", r.Outputs[0], vector(1, 1, 1, 0))
	w2, err := s.State("w2")
	check(t, err)
	same(t, "w2", w2, vector(2, 4, 6, 8))
	if got := s.States(); len(got) != 2 || got[0].Name != "w2" && got[1].Name != "w2" {
		t.Errorf("states %v", got)
	}
	_, err = s.State("w") // only init needed it
	wantError(t, err, diag.RunState, `"count"`, `"w2"`)
	wantError(t, s.SetState("count", ir.NewTensor(ir.F64, 4)), diag.RunInputType, "f64[4]", "f32[4]")
	wantError(t, s.SetState("count", nil), diag.RunInputType)
	check(t, s.Close())
}

// reads edits step so that it returns w beside count, and neither is written.
func reads(file, text string) string {
	if file != "step" {
		return text
	}
	return strings.NewReplacer(
		`{"name":"x","dtype":"f32","shape":["4"]}`, `{"name":"w","state":"w","dtype":"f32","shape":["4"]}`,
		`{"copy":{"from":2,"to":1}},`, ``,
		`"shape":[]},
 {"name":"count","state":"count","dtype":"f32","shape":["4"]}]`, `"shape":[]}]`,
	).Replace(text)
}

func TestTiedStates(t *testing.T) {
	m := model{entries: "step", targets: "sm_80", edit: reads, tied: true}
	s := open(t, m, runtime.Options{})
	r, err := s.Run("step", nil)
	check(t, err)
	same(t, "w + count", r.Outputs[0], vector(2, 4, 6, 8))
	check(t, s.SetState("count", vector(1, 1, 1, 1))) // as one parameter of the model
	r, err = s.Run("step", nil)
	check(t, err)
	same(t, "w + count", r.Outputs[0], vector(2, 2, 2, 2))
	check(t, s.Close())

	m.entries = files // init prepares w2 from what both are
	s = open(t, m, runtime.Options{})
	for _, name := range []string{"w", "count"} {
		wantError(t, s.SetState(name, vector(0, 0, 0, 0)), diag.RunState, "prepared")
	}
	check(t, s.Close())

	m = whole // count is written: it has memory of its own
	m.tied = true
	s = open(t, m, runtime.Options{})
	_, err = s.Run("step", []*ir.Tensor{vector(1, 1, 1, 1)})
	check(t, err)
	w2, err := s.State("w2")
	check(t, err)
	same(t, "w2", w2, vector(2, 4, 6, 8))
	check(t, s.Close())
}

func TestDescriptions(t *testing.T) {
	s := open(t, whole, runtime.Options{})
	if got := strings.Join(s.Entries(), " "); got != "forward step" {
		t.Errorf("entries %s", got)
	}
	e, err := s.Entry("step")
	check(t, err)
	if len(e.Inputs) != 1 || e.Inputs[0].Name != "x" || len(e.Outputs) != 2 || e.Outputs[1].Type.String() != "f32[]" ||
		len(e.States) != 1 || e.States[0].Name != "count" || e.Plan.Entry != "step" {
		t.Errorf("%+v", e)
	}
	_, err = s.Entry("")
	wantError(t, err, diag.RunInputUnknown, "forward, step")
	_, err = s.Run("init", nil)
	wantError(t, err, diag.RunInputUnknown, "forward, step")
}

func TestBadInputs(t *testing.T) {
	s := open(t, whole, runtime.Options{})
	x, _ := rows(2)
	broken := &ir.Tensor{DType: ir.F32, Shape: []int64{2, 4}, Data: make([]byte, 31)}
	for _, test := range []struct {
		name   string
		inputs []*ir.Tensor
		code   diag.Code
		words  []string
	}{
		{"none", nil, diag.RunInputMissing, []string{`"x"`, "f32[n, 4]"}},
		{"nil", []*ir.Tensor{nil}, diag.RunInputMissing, []string{`"x"`, "f32[n, 4]"}},
		{"too many", []*ir.Tensor{x, x}, diag.RunInputUnknown, []string{"2 inputs", `"x": f32[n, 4]`}},
		{"type", []*ir.Tensor{ir.NewTensor(ir.F64, 2, 4)}, diag.RunInputType, []string{`"x"`, "f64[2, 4]", "f32[n, 4]"}},
		{"rank", []*ir.Tensor{vector(1, 2, 3, 4)}, diag.RunInputType, []string{`"x"`, "f32[4]", "f32[n, 4]"}},
		{"shape", []*ir.Tensor{ir.NewTensor(ir.F32, 2, 5)}, diag.RunInputShape, []string{`"x"`, "f32[2, 5]", "f32[n, 4]"}},
		{"bound", []*ir.Tensor{ir.NewTensor(ir.F32, 1025, 4)}, diag.RunDimRange, []string{"n is 1025", "0..1024"}},
		{"short data", []*ir.Tensor{broken}, diag.RunInputShape, []string{`"x"`, "31 bytes", "f32[n, 4]"}},
		{"no type", []*ir.Tensor{{DType: 200}}, diag.RunInputType, []string{`"x"`}},
		{"zero type", []*ir.Tensor{{}}, diag.RunInputType, []string{`"x"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := s.Run("forward", test.inputs)
			wantError(t, err, test.code, test.words...)
		})
	}
}

func TestMultiple(t *testing.T) {
	m := whole
	m.edit = func(_, text string) string { return strings.Replace(text, `"max":1024`, `"multiple":8`, 1) }
	s := open(t, m, runtime.Options{})
	x, y := rows(16)
	r, err := s.Run("forward", []*ir.Tensor{x})
	check(t, err)
	same(t, "y", r.Outputs[0], y)
	x, _ = rows(12)
	_, err = s.Run("forward", []*ir.Tensor{x})
	wantError(t, err, diag.RunDimRange, "n is 12", "multiple of 8")
}

func TestBinding(t *testing.T) { onDevices(t, testBinding) }

func testBinding(t *testing.T, device runtime.Device) {
	s := openOn(t, device, whole, runtime.Options{})
	one := []*ir.Tensor{vector(1, 1, 1, 1)}
	b, err := s.Bind("step", one)
	check(t, err)
	for range 5 {
		check(t, b.Replay())
	}
	check(t, b.Synchronize())
	_, err = s.Run("step", []*ir.Tensor{vector(100, 0, 0, 0)}) // leaves the binding's inputs alone
	check(t, err)
	check(t, b.Replay())
	out, err := b.Download()
	check(t, err)
	same(t, "total", out[0], vector(116, 26, 36, 46))
	check(t, b.Upload([]*ir.Tensor{vector(0, 0, 0, 1)}))
	check(t, b.Replay())
	out, err = b.Download()
	check(t, err)
	same(t, "total", out[0], vector(116, 26, 36, 47))
	check(t, b.Close())
	if err := b.Replay(); err == nil {
		t.Error("a closed binding replays")
	}
	check(t, s.Close())
}

func TestBindingSizes(t *testing.T) {
	s := open(t, whole, runtime.Options{})
	x, _ := rows(20)
	b, err := s.Bind("", []*ir.Tensor{x})
	wantError(t, err, diag.RunInputUnknown)
	if b != nil {
		t.Error("a binding beside an error")
	}
	b, err = s.Bind("forward", []*ir.Tensor{x})
	check(t, err)
	if m := b.Memory(); b.Dims()["n"] != 20 || m.Arena != 512+320 || m.Peak != 640 || m.States != 16 || m.Inputs != 320 || m.Outputs != 320 || m.Total() != 832+656 {
		t.Errorf("dims %v, memory %+v", b.Dims(), m)
	}
	other, _ := rows(21)
	wantError(t, b.Upload([]*ir.Tensor{other}), diag.RunInputShape, "20", "21")
}

func TestManyBindings(t *testing.T) {
	device := emu.New(emu.Options{Memory: 64 << 10}) // not enough for the arenas of all
	s, err := runtime.Open(whole.write(t), device, runtime.Options{})
	check(t, err)
	for n := int64(1); n < 200; n += 3 {
		x, y := rows(n)
		r, err := s.Run("forward", []*ir.Tensor{x})
		check(t, err)
		same(t, "y", r.Outputs[0], y)
	}
	x, _ := rows(1024)
	_, err = s.Run("forward", []*ir.Tensor{x})
	wantError(t, err, diag.RunMemory, "out of memory")
	x, y := rows(5) // goes on
	r, err := s.Run("forward", []*ir.Tensor{x})
	check(t, err)
	same(t, "y", r.Outputs[0], y)
	check(t, s.Close())
	check(t, s.Close())
	if _, err := device.Alloc(64 << 10); err != nil {
		t.Errorf("the session left memory behind: %v", err)
	}
	if _, err := s.Run("forward", nil); err == nil {
		t.Error("a closed session runs")
	}
}

func TestArenaLimit(t *testing.T) {
	s := open(t, whole, runtime.Options{ArenaLimit: 1 << 10})
	for _, n := range []int64{16, 10, 16} { // together more than the limit
		x, y := rows(n)
		r, err := s.Run("forward", []*ir.Tensor{x})
		check(t, err)
		same(t, "y", r.Outputs[0], y)
	}
	x, _ := rows(100)
	_, err := s.Run("forward", []*ir.Tensor{x})
	wantError(t, err, diag.RunMemory, "limit is 1024")
}

func TestTargets(t *testing.T) {
	for _, test := range []struct {
		targets, want string
		major, minor  int
		choice        string // empty for an error
	}{
		{"sm_80 sm_90a", "", 9, 0, "sm_90a"},
		{"sm_80 sm_90 sm_90a", "", 9, 0, "sm_90a"},
		{"sm_80 sm_90a", "sm_80", 9, 0, "sm_80"},
		{"sm_80 sm_90a", "", 8, 6, "sm_80"},
		{"sm_80 sm_86 sm_90", "", 8, 9, "sm_86"},
		{"sm_80 sm_90 sm_90a", "", 10, 0, "sm_90"},
		{"sm_90a", "", 10, 0, ""},
		{"sm_80 sm_90a", "sm_90a", 8, 0, ""},
		{"sm_90", "", 8, 0, ""},
		{"sm_80", "sm_86", 9, 0, ""},
		{"cpu", "", 9, 0, ""},
		{"sm_120", "", 12, 0, "sm_120"},
	} {
		p := runtime.Properties{Name: "GPU", ComputeMajor: test.major, ComputeMinor: test.minor}
		got, err := runtime.ChooseTarget(strings.Fields(test.targets), test.want, p)
		if got != test.choice {
			t.Errorf("%+v: %s %v", test, got, err)
		}
		if test.choice == "" {
			wantError(t, err, diag.RunTarget, "GPU")
		}
	}
}

func TestReferredWeights(t *testing.T) {
	given := func(pairs ...any) weights.Source {
		var named []weights.Named
		for i := 0; i < len(pairs); i += 2 {
			named = append(named, weights.Named{Name: pairs[i].(string), Tensor: pairs[i+1].(*ir.Tensor)})
		}
		s, err := weights.FromTensors(named)
		check(t, err)
		return s
	}
	m := model{entries: files, targets: "sm_80", given: true}
	a := m.write(t)
	device := emu.New(emu.Options{})
	s, err := runtime.Open(a, device, runtime.Options{Weights: given("model.w", vector(1, 1, 1, 1), "model.count", vector(5, 5, 5, 5), "extra", vector(1))})
	check(t, err)
	w2, err := s.State("w2")
	check(t, err)
	same(t, "w2", w2, vector(2, 2, 2, 2))
	check(t, s.Close())

	_, err = runtime.Open(a, device, runtime.Options{})
	wantError(t, err, diag.ArtifactNoWeights, "model.w", "model.count", "--weights")
	_, err = runtime.Open(a, device, runtime.Options{Weights: given("model.w", vector(1, 1), "w", vector(1))})
	wantError(t, err, diag.RunWeights, `mismatched: "model.w" is f32[2], expected f32[4]`, `missing: "model.count", f32[4]`, `unexpected: "w", f32[1]`)

	// An artifact with weights of its own takes others by name, and refuses ones that have none.
	a = whole.write(t)
	s, err = runtime.Open(a, device, runtime.Options{Weights: given("count", vector(7, 7, 7, 7))})
	check(t, err)
	count, err := s.State("count")
	check(t, err)
	same(t, "count", count, vector(7, 7, 7, 7))
	check(t, s.Close())
	_, err = runtime.Open(a, device, runtime.Options{Weights: given("other", vector(7))})
	wantError(t, err, diag.RunWeights, `unexpected: "other"`)
}

func TestBadArtifacts(t *testing.T) {
	replace := func(file, old, text string) func(string, string) string {
		return func(f, plan string) string {
			if f == file {
				if !strings.Contains(plan, old) {
					t.Fatalf("%s has no %s", file, old)
				}
				return strings.Replace(plan, old, text, 1)
			}
			return plan
		}
	}
	for _, test := range []struct {
		name  string
		edit  func(string, string) string
		code  diag.Code
		words []string
	}{
		{"no JSON", replace("step", `"steps": [`, `"steps": `), diag.PlanSyntax, []string{`plan of "step" for sm_80`}},
		{"unknown field", replace("step", `"fill"`, `"fall"`), diag.PlanSyntax, []string{"fall"}},
		{"version", replace("step", `"1.0"`, `"2.0"`), diag.PlanVersion, nil},
		{"rule", replace("forward", `"from":4`, `"from":9`), diag.InvalidPlan, []string{"P6", "step 3"}},
		{"arguments", replace("forward", `{"buffer":4,"access":"rw"},`, ``), diag.InvalidPlan, []string{"P11", "double"}},
		{"kernel", replace("forward", `"kernel":"add"`, `"kernel":"sub"`), diag.InvalidPlan, []string{"P11", "sub"}},
		{"entry", replace("forward", `"entry": "forward"`, `"entry": "backward"`), diag.PlanMismatch, []string{"backward"}},
		{"unknown state", replace("forward", `"state":"w2"`, `"state":"w3"`), diag.PlanMismatch, []string{"w3"}},
		{"state type", replace("step", `"state":"count","dtype":"f32"`, `"state":"count","dtype":"i32"`), diag.InvalidPlan, []string{"P2"}},
		{"state type in all", func(f, plan string) string {
			return strings.ReplaceAll(plan, `"state":"count","dtype":"f32"`, `"state":"count","dtype":"i32"`)
		}, diag.PlanMismatch, []string{"i32[4]", "f32[4]"}},
		{"prepared type", replace("forward", `"state":"w2","dtype":"f32"`, `"state":"w2","dtype":"i32"`), diag.PlanMismatch, []string{"i32[4]", "f32[4]"}},
		{"not prepared", replace("init", `"state":"w2"`, `"state":"count"`), diag.PlanMismatch, []string{"w2"}},
		{"init with an input", replace("init", `"name":"w","state":"w"`, `"name":"w"`), diag.RunInputMissing, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			device := emu.New(emu.Options{Memory: 1 << 20})
			a := model{entries: files, targets: "sm_80", edit: test.edit}.write(t)
			s, err := runtime.Open(a, device, runtime.Options{})
			if err == nil {
				check(t, s.Close())
			}
			wantError(t, err, test.code, test.words...)
			if _, err := device.Alloc(1 << 20); err != nil {
				t.Errorf("a failed Open left memory behind: %v", err)
			}
		})
	}
	t.Run("bad PTX", func(t *testing.T) {
		a := model{entries: files, targets: "sm_80"}.write(t)
		_, err := runtime.Open(a, refusing{emu.New(emu.Options{})}, runtime.Options{})
		wantError(t, err, diag.RunKernels, "no such instruction")
	})
	t.Run("target", func(t *testing.T) {
		a := model{entries: files, targets: "sm_90a"}.write(t)
		_, err := runtime.Open(a, emu.New(emu.Options{ComputeMajor: 8}), runtime.Options{})
		wantError(t, err, diag.RunTarget, "sm_90a", "--target sm_80")
	})
}

// refusing is a device that loads nothing.
type refusing struct{ *emu.Device }

func (refusing) Load([]byte) (runtime.Module, error) { return nil, errors.New("no such instruction") }

func TestFault(t *testing.T) {
	for _, noGraph := range []bool{false, true} {
		m := whole
		m.edit = func(f, text string) string {
			if f == "forward" {
				text = strings.Replace(text, `"kernel":"double"`, `"kernel":"beyond"`, 1)
			}
			return text
		}
		s := open(t, m, runtime.Options{NoGraph: noGraph})
		x, _ := rows(3)
		_, err := s.Run("forward", []*ir.Tensor{x})
		wantError(t, err, diag.RunDevice, "beyond", "g = 2*g")
		var fault *emu.Fault
		if !errors.As(err, &fault) || fault.Kind != emu.OutOfBounds {
			t.Errorf("the fault is lost: %v", err)
		}
		_, err = s.Run("step", []*ir.Tensor{vector(1, 1, 1, 1)}) // the session goes on
		check(t, err)
	}
}

func TestSizeRange(t *testing.T) {
	m := whole
	m.edit = func(f, text string) string {
		return strings.Replace(text, `"value":"4*n","bits":32`, `"value":"4000000000*n","bits":32`, 1)
	}
	s := open(t, m, runtime.Options{})
	x, _ := rows(3)
	_, err := s.Run("forward", []*ir.Tensor{x})
	wantError(t, err, diag.RunSize, "g = h + x", "4000000000*n = 12000000000", "n = 3")
}

func TestUnknownDim(t *testing.T) {
	m := whole
	m.edit = func(f, text string) string {
		return strings.Replace(text, `"dims": [`, `"dims": [{"name":"m","min":0},`, 1)
	}
	s := open(t, m, runtime.Options{})
	x, _ := rows(3)
	_, err := s.Run("forward", []*ir.Tensor{x})
	wantError(t, err, diag.RunDimUnknown, `"m"`, "--dim")
}

func TestManyGoroutines(t *testing.T) {
	s := open(t, whole, runtime.Options{})
	var group sync.WaitGroup
	for k := range int64(8) {
		group.Go(func() {
			for n := range int64(6) {
				x, y := rows(n + k%3)
				r, err := s.Run("forward", []*ir.Tensor{x})
				if err != nil {
					t.Error(err)
					return
				}
				same(t, "y", r.Outputs[0], y)
			}
		})
	}
	group.Wait()
}
