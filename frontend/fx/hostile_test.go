package fx

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
)

// modelJSON reads the graph of a model of the repository.
func modelJSON(t testing.TB, name string) []byte {
	t.Helper()
	r, err := zip.OpenReader(filepath.Join(modelsDir, name, "model.pt2"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "models/model.json") {
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			data, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	t.Fatal("no model.json")
	return nil
}

// TestHostileGraph changes one thing in a graph and wants a coded diagnostic.
func TestHostileGraph(t *testing.T) {
	model := string(modelJSON(t, "mlp"))
	for name, c := range map[string]struct {
		old, new string
		code     diag.Code
		says     string
	}{
		"unknown major version": {`"major": 8`, `"major": 9`, diag.FXVersion, "schema version 9."},
		"no version":            {`"schema_version"`, `"other"`, diag.FXMalformed, "no schema_version"},
		"wrong type":            {`"target": "torch.ops.aten.gelu.default"`, `"target": 5`, diag.FXMalformed, "expected a target, found a number"},
		"float for an int":      {`"as_int": 64`, `"as_int": 64.5`, diag.FXMalformed, "expected a size, found a number 64.5"},
		"unknown operator":      {`aten.gelu.default`, `aten.frobnicate.default`, diag.UnsupportedOperators, "aten.frobnicate.default"},
		"unknown dtype":         {`"dtype": 7`, `"dtype": 99`, diag.FXType, "unknown dtype 99"},
		"negative size":         {`"as_int": 128`, `"as_int": -128`, diag.FXType, "a dim of -128"},
		"huge size":             {`"as_int": 128`, `"as_int": 9000000000000000000`, diag.FXType, "a dim of 9000000000000000000"},
		"undefined value":       {`"arg": {"as_tensor": {"name": "gelu"}}`, `"arg": {"as_tensor": {"name": "silu"}}`, diag.FXName, "\"silu\" is used before it is defined"},
		"defined twice":         {`"outputs": [{"as_tensor": {"name": "gelu"}}]`, `"outputs": [{"as_tensor": {"name": "linear"}}]`, diag.FXName, "defined twice"},
		"bad expression":        {`Symbol('s31', positive=True, integer=True)`, `Sine(Integer(1))`, diag.FXExpression, "unknown function Sine"},
		"wrong recorded shape":  {`"linear": {"dtype": 7`, `"linear": {"dtype": 8`, diag.FXType, "aten.linear.default gives f32[s31, 128], the exporter recorded f64[s31, 128]"},
		"empty range":           {`"max_val": 1024`, `"max_val": 0.5`, diag.FXMalformed, "a number 0.5"},
		"range of no size":      {`"min_val": 1`, `"min_val": 1025`, diag.FXExpression, "the range 1025..1024 is empty"},
		"missing signature":     {`"input_specs"`, `"inputs"`, diag.FXSignature, "inputs"},
		"unknown role":          {`"user_output"`, `"sideways"`, diag.FXSignature, "sideways"},
		"wrong argument kind":   {`{"as_float": 1e-05}`, `{"as_string": "x"}`, diag.FXArgument, "eps is a string"},
		"unknown argument":      {`"name": "eps"`, `"name": "epsilon"`, diag.UnsupportedOperators, "with epsilon"},
		"bad axis":              {`{"as_int": -1}`, `{"as_int": -9}`, diag.FXArgument, "dim is -9"},
		"not UTF-8":             {`"softmax"`, "\"soft\xffmax\"", diag.FXMalformed, "not UTF-8"},
		"trailing data":         {`"guards_code": []}`, `"guards_code": []} x`, diag.FXMalformed, "more after the end"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(model, c.old) {
				t.Fatalf("the model has no %s", c.old)
			}
			_, err := importGraph([]byte(strings.ReplaceAll(model, c.old, c.new)), nil, Options{})
			wantCode(t, err, c.code, c.says)
		})
	}
}

func wantCode(t *testing.T, err error, code diag.Code, says string) {
	t.Helper()
	var d *diag.Diagnostic
	if !errors.As(err, &d) || d.Code != code || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want %s with %q", err, code, says)
	}
}

// TestTruncatedGraph cuts a graph at many places.
func TestTruncatedGraph(t *testing.T) {
	model := modelJSON(t, "ops_inplace")
	for n := 0; n < len(model)-1; n += 1 + len(model)/500 {
		if _, err := importGraph(model[:n], nil, Options{}); err == nil {
			t.Errorf("the first %d of %d bytes import", n, len(model))
		} else if diag.ExitStatus(err) != diag.BadInput {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	deep := []byte(`{"x": ` + strings.Repeat(`[`, 5000))
	if _, err := importGraph(deep, nil, Options{}); err == nil || !strings.Contains(err.Error(), "nested") {
		t.Errorf("deep nesting: %v", err)
	}
}

// TestHostileArchive changes an archive around its graph.
func TestHostileArchive(t *testing.T) {
	file := filepath.Join(modelsDir, "mlp", "model.pt2")
	same := editArchive(t, file, func(s string) string { return s })
	replace := func(old, new string) []byte {
		if !bytes.Contains(same, []byte(old)) || len(old) != len(new) {
			t.Fatalf("cannot replace %q", old)
		}
		return rezip(t, same, func(name string, data []byte) (string, []byte) {
			return strings.ReplaceAll(name, old, new), bytes.ReplaceAll(data, []byte(old), []byte(new))
		})
	}
	for name, c := range map[string]struct {
		data []byte
		code diag.Code
	}{
		"empty":             {nil, diag.FileTruncated},
		"no zip":            {[]byte("not a zip"), diag.BadZip},
		"cut off":           {same[:len(same)/2], diag.FileTruncated},
		"no model":          {replace("models/model.json", "models/model.jsom"), diag.FXArchive},
		"missing weight":    {replace(`"0.weight"`, `"9.weight"`), ""},
		"missing file":      {replace("weights/weight_0", "weights/weight_9"), diag.FXWeights},
		"pickled weight":    {replace(`"use_pickle": false`, `"use_pickle": true `), diag.FXPickle},
		"short weight":      {rezip(t, same, shorten), diag.WeightStorage},
		"weight of a dtype": {replaceConfig(t, same, `"dtype": 7`, `"dtype": 8`), diag.FXWeights},
		"weight of a shape": {replaceConfig(t, same, `"as_int": 64`, `"as_int": 32`), diag.FXWeights},
		"weight at offset":  {replaceConfig(t, same, `"storage_offset": {"as_int": 0}`, `"storage_offset": {"as_int": 99}`), diag.WeightStorage},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := ImportBytes(c.data, Options{})
			if c.code == "" {
				if err != nil || m == nil {
					t.Errorf("a renamed state does not import: %v", err)
				}
				return
			}
			wantCode(t, err, c.code, "")
		})
	}
	if _, err := ImportBytes(same, Options{}); err != nil {
		t.Errorf("the unchanged archive: %v", err)
	}
}

func shorten(name string, data []byte) (string, []byte) {
	if strings.HasSuffix(name, "weight_0") {
		return name, data[:len(data)/2]
	}
	return name, data
}

func replaceConfig(t *testing.T, archive []byte, old, new string) []byte {
	return rezip(t, archive, func(name string, data []byte) (string, []byte) {
		if !strings.HasSuffix(name, "weights_config.json") {
			return name, data
		}
		if !bytes.Contains(data, []byte(old)) {
			t.Fatalf("the configuration has no %s", old)
		}
		return name, bytes.ReplaceAll(data, []byte(old), []byte(new))
	})
}

func rezip(t *testing.T, archive []byte, edit func(name string, data []byte) (string, []byte)) []byte {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
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
		name, data := edit(f.Name, data)
		member, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = member.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestUnsupportedListsAll wants one diagnostic with every unsupported operator, its count and
// places.
func TestUnsupportedListsAll(t *testing.T) {
	text := string(modelJSON(t, "mlp"))
	text = strings.ReplaceAll(text, "aten.linear.default", "acme.linear.default")
	text = strings.ReplaceAll(text, "aten.gelu.default", "acme.gelu.default")
	_, err := importGraph([]byte(text), nil, Options{})
	wantCode(t, err, diag.UnsupportedOperators, "2 operators have no lowering: acme.gelu.default, acme.linear.default")
	for _, want := range []string{"acme.gelu.default: once, at 1 (", "acme.linear.default: 2 times, at 0 ("} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
	if s := diag.ExitStatus(err); s != diag.Unsupported {
		t.Errorf("status %d", s)
	}
}

// smallGraph adds a number to an input in place and returns a view of it.
const smallGraph = `{"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "x"}}], "outputs": [{"as_tensor": {"name": "v"}}],
"nodes": [{"target": "torch.ops.aten.add_.Tensor", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "x"}}}, {"name": "other", "arg": {"as_int": 1}}],
"outputs": [{"as_tensor": {"name": "y"}}], "metadata": {}}, {"target": "torch.ops.aten.select.int", "inputs": [{"name": "self",
"arg": {"as_tensor": {"name": "x"}}}, {"name": "dim", "arg": {"as_int": 0}}, {"name": "index", "arg": {"as_int": -1}}],
"outputs": [{"as_tensor": {"name": "v"}}], "metadata": {}}],
"tensor_values": {"x": {"dtype": 7, "sizes": [{"as_int": 2}, {"as_expr": {"expr_str": "Symbol('s0', positive=True, integer=True)"}}], "strides": [], "layout": 7}},
"sym_int_values": {}, "sym_bool_values": {}}, "signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}],
"output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "v"}}}}]}}, "range_constraints": {"s0": {"min_val": 2, "max_val": "int_oo"}},
"schema_version": {"major": 8, "minor": 20}}`

// TestNewerSchema wants a newer minor version to be read, with a warning about what is new.
func TestNewerSchema(t *testing.T) {
	newer := strings.NewReplacer(`"minor": 20`, `"minor": 99`, `"signature": {`, `"promises": [{"kind": null}], "signature": {`).Replace(smallGraph)
	for text, warnings := range map[string]int{smallGraph: 0, newer: 1} {
		m, err := importGraph([]byte(text), nil, Options{Entry: "step"})
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Warnings) != warnings {
			t.Errorf("warnings: %v", m.Warnings)
		}
		for _, w := range m.Warnings {
			if w.Code != diag.FXUnknown || !strings.Contains(w.Message, "GraphModule.promises") {
				t.Errorf("warning: %v", w)
			}
		}
		e := m.Program.Entry("step")
		if e == nil || len(e.Outputs) != 2 || e.Outputs[0].Name != "v" || e.Outputs[1].Name != "after.x" {
			t.Errorf("program: %s", m.Program)
		}
		if s := m.Program.Symbols; len(s) != 1 || s[0].Min != 2 || s[0].Max != ir.NoBound {
			t.Errorf("symbols: %v", s)
		}
	}
}

// FuzzGraph wants a diagnostic or a program that verifies, whatever the graph.
func FuzzGraph(f *testing.F) {
	f.Add(modelJSON(f, "mlp"))
	f.Add([]byte(smallGraph))
	f.Add(modelJSON(f, filepath.Join("..", "ranks", "collectives_rare")))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := importGraph(data, nil, Options{})
		if err != nil {
			for _, d := range diag.All(err) {
				if d.Code == diag.Bug {
					t.Fatal(err)
				}
			}
			return
		}
		if err := ir.Verify(m.Program); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzExpr wants an error or an expression of bounded size.
func FuzzExpr(f *testing.F) {
	f.Add("Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(-1))")
	f.Add("Pow(FloorDiv(Symbol('s0'), Integer(2)), Integer(3))")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := parseExpr(text, nil); err == nil && len(d.String()) > maxExprText+len(text) {
			t.Errorf("%q makes an expression of %d characters", text, len(d.String()))
		}
	})
}
