package artifact

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

func wantCode(t *testing.T, err error, code diag.Code) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %s", code)
	}
	if got := diag.All(err)[0].Code; got != code {
		t.Fatalf("code %s, want %s: %v", got, code, err)
	}
}

func ptr(v int64) *int64 { return &v }

// sample is an artifact with one state of every origin; "tied" is the same memory as "w".
func sample(t testing.TB) Contents {
	t.Helper()
	w := make([]byte, 64)
	for i := range w {
		w[i] = byte(i)
	}
	source, err := weights.FromRegions([]weights.Region{
		{Name: "unused", DType: ir.F32, Shape: []int64{1}, Data: make([]byte, 4)},
		{Name: "w", DType: ir.F32, Shape: []int64{4, 4}, Data: w},
		{Name: "tied", DType: ir.F32, Shape: []int64{4, 4}, Data: w},
		{Name: "t", DType: ir.BF16, Shape: []int64{2, 3}, Data: w, Strides: []int64{1, 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Contents{
		Manifest: Manifest{
			Weft: "test",
			Entries: []Entry{
				{Name: "forward", Inputs: []Value{{Name: "in.0", Type: "f32[batch, 4]"}}, Outputs: []Value{{Name: "out.0", Type: "f32[batch, 4]"}}},
				{Name: "init", Outputs: []Value{{Name: "p", Type: "f32[4]"}}, Donations: []Donation{{"p", "packed"}}},
			},
			State: []State{
				{"w", "f32[4, 4]", "", "parameter", From{Embedded: &Embedded{}}},
				{"tied", "f32[4, 4]", "", "parameter", From{Embedded: &Embedded{}}},
				{"t", "bf16[2, 3]", "", "buffer", From{Embedded: &Embedded{}}},
				{"r", "f32[8]", "", "parameter", From{Random: &Random{Seed: 3, Name: "r"}}},
				{"packed", "f32[4]", "", "prepared", From{Prepared: &Prepared{Entry: "init"}}},
			},
			Dims:    []Dim{{Name: "batch", Min: ptr(1), Max: ptr(64)}},
			Targets: []Target{{"sm_80", "7.0", "450.36", "LLVM version 19.1.7", ""}, {"sm_90a", "8.6", "560.28", "LLVM version 19.1.7", "ptxas 12.9.86"}},
			Config:  json.RawMessage(`{"b": {"z": 1, "a": 12345678901234567890}, "a": "<&>"}`),
		},
		Program: []byte("program text\n"),
		Report:  []byte("{}\n"),
		Plans: []Plan{
			{Target: "sm_90a", Entry: "forward", JSON: []byte("90")},
			{Target: "sm_80", Entry: "forward", JSON: []byte("80")},
			{Target: "sm_80", Entry: "init", Stage: "1", JSON: []byte("stage")},
		},
		Kernels: []Kernels{{Target: "sm_90a", PTX: []byte("ptx 90")}, {Target: "sm_80", PTX: []byte("ptx 80"), Cubin: []byte("cubin")}},
		Weights: source,
	}
}

func writeSample(t testing.TB) (path string, file []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "m.weft")
	if err := Write(path, sample(t)); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, file
}

func TestRoundTrip(t *testing.T) {
	path, _ := writeSample(t)
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Verify(); err != nil {
		t.Error(err)
	}
	if string(a.Program()) != "program text\n" || string(a.Report()) != "{}\n" || len(a.Digest()) != 64 || a.Manifest.Schema != "1.0" {
		t.Errorf("%q %q %s %s", a.Program(), a.Report(), a.Digest(), a.Manifest.Schema)
	}
	for _, p := range sample(t).Plans {
		if got, err := a.Plan(p.Target, p.Entry, p.Stage); !bytes.Equal(got, p.JSON) || err != nil {
			t.Errorf("plan %+v: %q %v", p, got, err)
		}
	}
	for _, k := range sample(t).Kernels {
		if got, err := a.Kernels(k.Target); !bytes.Equal(got, k.PTX) || err != nil {
			t.Errorf("kernels %s: %q %v", k.Target, got, err)
		}
	}
	if got, err := a.Cubin("sm_80"); string(got) != "cubin" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	_, err = a.Kernels("sm_75")
	wantCode(t, err, diag.ArtifactNoPart)
	if !strings.Contains(err.Error(), "it has: sm_80, sm_90a") {
		t.Error(err)
	}
	_, err = a.Plan("sm_80", "step", "")
	wantCode(t, err, diag.ArtifactNoPart)
	if got := string(a.Manifest.Config); !strings.Contains(got, "12345678901234567890") {
		t.Errorf("configuration %s", got)
	}
}

func TestWeights(t *testing.T) {
	c := sample(t)
	path, _ := writeSample(t)
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	s, err := a.Weights()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Names(), []string{"w", "tied", "t", "r"}) {
		t.Fatalf("names %v", s.Names())
	}
	for _, name := range []string{"w", "tied", "t"} {
		want, _ := weights.Load(c.Weights, name)
		got, err := weights.Load(s, name)
		if err != nil || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s: %v %v", name, got, err)
		}
		r, _ := s.Open(name)
		part := make([]byte, 7)
		if n, err := r.ReadAt(part, 5); n != 7 || err != nil || !bytes.Equal(part, want.Data[5:12]) {
			t.Errorf("%s: part %v %v", name, part, err)
		}
		if n, err := r.ReadAt(part, r.Size()-2); n != 2 || err != io.EOF {
			t.Errorf("%s: end %d %v", name, n, err)
		}
	}
	if info, _ := s.Info("tied"); info.SameAs != "w" {
		t.Errorf("tied %+v", info)
	}
	if m := a.Manifest.Members; m[len(m)-1].Size != 4096+64+12 {
		t.Errorf("tied weights are stored twice: %+v", m[len(m)-1])
	}
	random, _ := weights.Random(3, []weights.Info{{Name: "r", DType: ir.F32, Shape: []int64{8}}})
	want, _ := random.Digest("r")
	if got, err := s.Digest("r"); got != want || err != nil {
		t.Errorf("random values %s %v", got, err)
	}
}

func TestReferencedWeights(t *testing.T) {
	c := sample(t)
	digest, err := c.Weights.Digest("w")
	if err != nil {
		t.Fatal(err)
	}
	c.Manifest.State[0].From = From{Reference: &Reference{Name: "model.w", SHA256: digest}}
	c.Manifest.State[1].From = From{Reference: &Reference{Name: "any"}}
	path := filepath.Join(t.TempDir(), "m.weft")
	if err := Write(path, c); err != nil {
		t.Fatal(err)
	}
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	_, err = a.WeightsWith(nil)
	wantCode(t, err, diag.ArtifactNoWeights)
	right, _ := weights.Load(c.Weights, "w")
	wrong := ir.NewTensor(ir.F32, 4, 4)
	given := func(tensors ...weights.Named) weights.Source {
		s, err := weights.FromTensors(tensors)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	_, err = a.WeightsWith(given(weights.Named{Name: "any", Tensor: wrong}))
	wantCode(t, err, diag.WeightMissing)
	_, err = a.WeightsWith(given(weights.Named{Name: "any", Tensor: wrong}, weights.Named{Name: "model.w", Tensor: ir.NewTensor(ir.F32, 4)}))
	wantCode(t, err, diag.WeightType)
	s, err := a.WeightsWith(given(weights.Named{Name: "any", Tensor: wrong}, weights.Named{Name: "model.w", Tensor: wrong}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Open("w")
	wantCode(t, err, diag.ArtifactDigest)
	s, err = a.WeightsWith(given(weights.Named{Name: "any", Tensor: wrong}, weights.Named{Name: "model.w", Tensor: right}, weights.Named{Name: "r", Tensor: ir.NewTensor(ir.F32, 8)}))
	if err != nil {
		t.Fatal(err)
	}
	if x, err := weights.Load(s, "w"); err != nil || !bytes.Equal(x.Data, right.Data) {
		t.Errorf("%v %v", x, err)
	}
	if x, err := weights.Load(s, "r"); err != nil || x.Float(0) != 0 {
		t.Errorf("a given value does not replace the random one: %v %v", x, err)
	}
	needs, err := a.Needs()
	if err != nil || len(needs) != 5-1 || needs[0].Name != "model.w" {
		t.Errorf("%v %v", needs, err)
	}
	random, err := weights.Random(1, needs)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.WeightsWith(random); err != nil {
		t.Error(err)
	}
}

// The bytes depend on the contents alone: not on the name, nor on the order in which lists
// without an order are given.
func TestSameBytes(t *testing.T) {
	_, want := writeSample(t)
	c := sample(t)
	slices.Reverse(c.Plans)
	slices.Reverse(c.Kernels)
	c.Manifest.Config = json.RawMessage(`{"a":"<&>","b":{"a":12345678901234567890,"z":1}}`)
	path := filepath.Join(t.TempDir(), "other name")
	if err := Write(path, c); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d and %d bytes differ (%v)", len(got), len(want), err)
	}
}

func TestContainerIsAnOrdinaryZip(t *testing.T) {
	_, file := writeSample(t)
	r, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
		at, err := f.DataOffset()
		if err != nil || at%64 != 0 || strings.HasPrefix(f.Name, "weights/") && at%4096 != 0 {
			t.Errorf("%s at %d: %v", f.Name, at, err)
		}
		if got := f.Modified.Format("2006-01-02 15:04:05"); got != "1980-01-01 00:00:00" || f.Method != zip.Store {
			t.Errorf("%s: %s, method %d", f.Name, got, f.Method)
		}
		rc, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, rc); err != nil { // verifies the checksum
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	want := "program.weft plans/sm_80/forward.json plans/sm_80/init.1.json plans/sm_90a/forward.json kernels/sm_80.cubin kernels/sm_80.ptx kernels/sm_90a.ptx report.json weights/model.safetensors manifest.json"
	if strings.Join(names, " ") != want {
		t.Errorf("order %v", names)
	}
	manifest, _ := r.Open("manifest.json")
	text, _ := io.ReadAll(manifest)
	host, _ := os.Hostname()
	for _, leak := range []string{os.TempDir(), host} {
		if leak != "" && bytes.Contains(text, []byte(leak)) {
			t.Errorf("the manifest holds %q", leak)
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.weft")
	left := func() int {
		entries, _ := os.ReadDir(dir)
		return len(entries)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Add("program.weft", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Add("program.weft", nil); err == nil {
		t.Error("members out of order are accepted")
	}
	w.Abort()
	w.Abort()
	failure := errors.New("cannot read the model")
	for name, stop := range map[string]func() error{"error": func() error { return failure }, "panic": func() error { panic("in the middle") }} {
		c := sample(t)
		c.Weights, err = weights.NewSource([]weights.Entry{
			{Info: weights.Info{Name: "w", DType: ir.F32, Shape: []int64{4, 4}}, Open: func() (weights.Reader, error) { return nil, stop() }},
			{Info: weights.Info{Name: "tied", DType: ir.F32, Shape: []int64{4, 4}}},
			{Info: weights.Info{Name: "t", DType: ir.BF16, Shape: []int64{2, 3}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		func() {
			defer func() { recover() }()
			if err := Write(path, c); !errors.Is(err, failure) {
				t.Errorf("%s: %v", name, err)
			}
		}()
		if left() != 0 {
			t.Errorf("after %s something is left", name)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Contents)
		code   diag.Code
	}{
		{"no weights", func(c *Contents) { c.Weights = nil }, diag.WeightMissing},
		{"weight of another type", func(c *Contents) { c.Manifest.State[0].Type = "f32[16]" }, diag.WeightType},
		{"weight missing", func(c *Contents) { c.Manifest.State[0].Name = "x" }, diag.WeightMissing},
		{"two plans of one name", func(c *Contents) { c.Plans = append(c.Plans, c.Plans[0]) }, diag.Bug},
		{"plan outside", func(c *Contents) { c.Plans[0].Entry = "../x" }, diag.Bug},
		{"target outside", func(c *Contents) { c.Kernels[0].Target = "../x" }, diag.Bug},
		{"state twice", func(c *Contents) { c.Manifest.State = append(c.Manifest.State, c.Manifest.State[0]) }, diag.Bug},
		{"configuration that is no object", func(c *Contents) { c.Manifest.Config = json.RawMessage(`[]`) }, diag.Bug},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			contents := sample(t)
			c.change(&contents)
			dir := t.TempDir()
			wantCode(t, Write(filepath.Join(dir, "m.weft"), contents), c.code)
			if entries, _ := os.ReadDir(dir); len(entries) != 0 {
				t.Error("something is left")
			}
		})
	}
}

func TestMemberDigestsByChunk(t *testing.T) {
	data := make([]byte, 100)
	for i := range data {
		data[i] = byte(i)
	}
	h := newMemberHash(32)
	h.Write(data[:50])
	h.Write(data[50:])
	p := h.member("weights/x")
	if len(p.Chunks) != 4 || p.Size != 100 || p.SHA256 != treeDigest(p.Chunks) {
		t.Fatalf("%+v", p)
	}
	m := newMember(p, data, 32)
	if err := m.verify(0, 100); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(data)
	damaged[40]++
	m = newMember(p, damaged, 32)
	for _, c := range []struct {
		off, n int64
		ok     bool
	}{{0, 32, true}, {64, 36, true}, {31, 1, true}, {31, 2, false}, {40, 1, false}, {63, 1, false}, {33, 0, true}, {100, 0, true}} {
		if err := m.verify(c.off, c.n); (err == nil) != c.ok {
			t.Errorf("%d bytes at %d: %v", c.n, c.off, err)
		}
	}
	exact := newMemberHash(32)
	exact.Write(data[:64])
	if p := exact.member("x"); len(p.Chunks) != 2 {
		t.Errorf("64 bytes have %d chunks of 32", len(p.Chunks))
	}
}
