package fx

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
	"weft/ir/diag"
	"weft/ir/eval"
)

// modelsDir has archives with inputs and outputs that torch computed.
const modelsDir = "../../testdata/models"

// TestModels imports every archive of the repository, evaluates it and compares with torch.
func TestModels(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(modelsDir, "*", "model.pt2"))
	own, _ := filepath.Glob(filepath.Join("testdata", "models", "*", "model.pt2")) // of testdata/export.py
	if len(files) == 0 || len(own) == 0 {
		t.Fatal("no models found")
	}
	files = append(files, own...)
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			t.Parallel()
			checkModel(t, file)
		})
	}
}

// withoutOutputs lists outputs that weft does not compile, whose sizes depend on data; their
// nodes are cut out of the graph.
var withoutOutputs = map[string]string{"ops_scatter": "bincount"}

// checkModel compares a model with every io*.safetensors beside it.
func checkModel(t *testing.T, file string) {
	m, err := Import(file, Options{})
	if node := withoutOutputs[filepath.Base(filepath.Dir(file))]; node != "" {
		if diag.ExitStatus(err) != diag.Unsupported {
			t.Errorf("import with %s: %v", node, err)
		}
		m, err = ImportBytes(editArchive(t, file, func(model string) string { return cutNode(t, model, node) }), Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	checkProgram(t, m.Program)
	for _, w := range m.Warnings {
		t.Log(w)
	}
	cases, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "io*.safetensors"))
	if len(cases) == 0 {
		t.Fatal("no io.safetensors")
	}
	for _, name := range cases {
		_, tensors, closer, err := weights.ReadTensors(name, "")
		if err != nil {
			t.Fatal(err)
		}
		checkRun(t, filepath.Base(name), m, tensors)
		closer.Close()
	}
}

// checkRun runs a model on in.N and compares its outputs with out.N, after.in.N and
// after.state.NAME.
func checkRun(t *testing.T, name string, m *Model, tensors map[string]*ir.Tensor) {
	e := m.Program.Entries[0]
	position := map[string]int{}
	var inputs []*ir.Tensor
	for _, in := range e.Inputs {
		if in.State == "" {
			position[in.Name] = len(inputs)
			inputs = append(inputs, tensors["in."+strconv.Itoa(len(inputs))])
		}
	}
	r, err := eval.Run(m.Program, e.Name, inputs, func(state string) (*ir.Tensor, error) {
		if v := tensors["state."+state]; v != nil {
			return v, nil
		}
		return weights.Load(m.Weights, state)
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	compared, outputs := 0, 0
	check := func(what string, got, want *ir.Tensor) {
		if want == nil {
			t.Errorf("%s: there is no %s to compare with", name, what)
			return
		}
		compared++
		tol := compare.Default(want.DType)
		if c := compare.Tensors(got, want, tol); !c.Equal() {
			t.Errorf("%s: %s %s: %s", name, what, got.Type(), describe(c))
		}
	}
	for _, out := range e.Outputs {
		if out.State != "" {
			if want := tensors["after.state."+out.State]; want != nil {
				check("after.state."+out.State, r.State[out.State], want)
			}
			continue
		}
		got := r.Outputs[0]
		r.Outputs = r.Outputs[1:]
		if in, ok := strings.CutPrefix(out.Name, "after."); ok {
			what := "after.in." + strconv.Itoa(position[in])
			check(what, got, tensors[what])
			continue
		}
		what := "out." + strconv.Itoa(outputs)
		outputs++
		check(what+" ("+out.Name+")", got, tensors[what])
	}
	wanted := 0
	for name := range tensors {
		if strings.HasPrefix(name, "out.") || strings.HasPrefix(name, "after.") {
			wanted++
		}
	}
	if withoutOutputs[strings.TrimPrefix(t.Name(), "TestModels/")] != "" {
		wanted--
	}
	if compared != wanted {
		t.Errorf("%s: %d outputs compared, the file has %d", name, compared, wanted)
	}
}

// checkProgram verifies a program, and that its text reads back to the same text.
func checkProgram(t *testing.T, p *ir.Program) {
	t.Helper()
	if err := ir.Verify(p); err != nil {
		t.Errorf("the program does not verify: %v", err)
	}
	text := p.String()
	again, err := ir.ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatalf("the program's text does not parse: %v", err)
	}
	if again.String() != text {
		t.Error("the program's text changes when it is read back")
	}
}

// editArchive changes the graph inside an archive.
func editArchive(t testing.TB, file string, edit func(model string) string) []byte {
	t.Helper()
	r, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name, "models/model.json") {
			data = []byte(edit(string(data)))
		}
		member, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// cutNode removes a node, those after it, and the outputs that it makes.
func cutNode(t testing.TB, model, name string) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(model), &m); err != nil {
		t.Fatal(err)
	}
	module := m["graph_module"].(map[string]any)
	graph, signature := module["graph"].(map[string]any), module["signature"].(map[string]any)
	filter := func(in map[string]any, key string, mentions string) {
		in[key] = slices.DeleteFunc(in[key].([]any), func(v any) bool {
			text, _ := json.Marshal(v)
			return strings.Contains(string(text), mentions)
		})
	}
	nodes := graph["nodes"].([]any)
	graph["nodes"] = nodes[:slices.IndexFunc(nodes, func(v any) bool { return v.(map[string]any)["name"] == name })]
	filter(graph, "outputs", `"name":"`+name+`"`)
	filter(signature, "output_specs", `"name":"`+name+`"`)
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func describe(c compare.Result) string {
	if c.Problem != "" {
		return c.Problem
	}
	return fmt.Sprintf("%d of %d differ, worst at %v: got %s, want %s", c.Mismatches, c.Elements, c.Worst.Index, c.Worst.Got, c.Worst.Want)
}
