package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/frontend/weights"
	"weft/ir"
)

// reshaping is an ONNX file whose result has the shape that its second input says.
const reshaping = `1: 8
8 { 1: "" 2: 17 }
7 {
  2: "graph"
  1 { 1: "x" 1: "shape" 2: "y" 4: "Reshape" }
  11 { 1: "x" 2 { 1 { 1: 1 2 { 1 { 2: "n" } 1 { 1: 6 } } } } }
  11 { 1: "shape" 2 { 1 { 1: 7 2 { 1 { 1: 2 } } } } }
  12 { 1: "y" 2 { 1 { 1: 1 } } }
}`

// choosing is program text with an input that could be fixed.
const choosing = `dim n in 1..
entry forward(%0 "x": f32[n, 2], %1 "factor": f32[2]) {
  %2: f32[n, 2] = broadcast_in_dim(%1) {dims = [n, 2], axes = [1]}
  %3: f32[n, 2] = multiply(%0, %2)
  return %3 "y"
}`

// TestGiven runs commands with --dim and --constant on model files.
func TestGiven(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"reshape.txt": reshaping, "choose.weft": choosing, "broken.npy": "no tensor"} {
		writeFile(t, name, []byte(text))
	}
	encodeProtobuf(t, []string{"reshape.onnx", "reshape.txt"})
	x := ir.NewTensor(ir.F32, 2, 6)
	for i := range int64(12) {
		x.SetFloat(i, float64(i))
	}
	factors := ir.NewTensor(ir.F32, 2)
	factors.SetFloat(1, 0.5)
	for path, list := range map[string][]weights.Named{"x.npy": {{Name: "x", Tensor: x}}, "shape.npy": {{Name: "shape", Tensor: ir.I64s([]int64{3, 4})}},
		"factor.safetensors": {{Name: "factor", Tensor: factors}, {Name: "other", Tensor: factors}}} {
		if err := weights.WriteTensors(path, list); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		command string
		status  int
		prints  string
	}{
		{"support reshape.onnx", 4, "W1220"},
		{"support reshape.onnx --constant shape=[3,4]", 0, "supported"},
		{"support reshape.onnx --constant shape=[3,-1] --dim n=2", 0, "supported"},
		{"run reshape.onnx --device reference --constant in.1=[3,-1] --dim n=2 --inputs x.npy", 0, "f32[3, 4]"},
		{"run reshape.onnx --device reference --constant shape=shape.npy --dim n=2 --inputs x.npy", 0, "f32[3, 4]"},
		{"run reshape.onnx --device reference --constant shape=[3,5] --dim n=2 --inputs x.npy", 3, ""},
		{"run reshape.onnx --device reference --constant shape=[3,-1 --inputs x.npy", 2, "cannot read the values"},
		{"run reshape.onnx --device reference --constant shape=broken.npy --inputs x.npy", 3, "broken.npy"},
		{"run reshape.onnx --device reference --constant shape=missing.npy --inputs x.npy", 3, "missing.npy"},
		{"run reshape.onnx --device reference --constant form=[3,4] --inputs x.npy", 2, `no input "form"`},
		{"compile reshape.onnx --target sm_80 --emit program --constant shape=[-1,4] --dim n=2", 0, "f32[3, 4]"},
		{"compile choose.weft --target sm_80 --emit program --constant factor=factor.safetensors", 0, "f32[2] [0, 0.5]"},
		{"compile choose.weft --target sm_80 --emit program --constant in.1=[0,0.5]", 0, "f32[2] [0, 0.5]"},
		{"compile choose.weft --target sm_80 --emit program --constant in.0=[[1,2],[3,4]]", 0, "f32[2, 2] [1, 2, 3, 4]"},
		{"compile choose.weft --target sm_80 --emit program --constant in.1=[1] ", 2, "cannot be fixed"},
		{"compile choose.weft --target sm_80 --emit program --constant z=[1] ", 2, "inputs are in.0 (x), in.1 (factor)"},
		{"compile choose.weft --target sm_80 --emit program --constant in.1=[1,2] --constant factor=[1,2] ", 2, `"factor" is fixed twice`},
		{"compile a=choose.weft b=choose.weft --target sm_80 --emit program --constant b.factor=[1,2]", 0, `entry b(%0 "x": f32[n, 2])`},
		{"compile a=choose.weft b=choose.weft --target sm_80 --emit program --constant factor=[1,2]", 2, "ENTRY.INPUT=VALUES"},
	} {
		var out bytes.Buffer
		status := run(strings.Fields(c.command), strings.NewReader(""), &out, &out)
		if status != c.status || !strings.Contains(out.String(), c.prints) {
			t.Errorf("weft %s: exit status %d, want %d and %q\n%s", c.command, status, c.status, c.prints, &out)
		}
	}
}

// TestGivenInArtifacts compiles with a constant: the artifact has one input less and says so.
func TestGivenInArtifacts(t *testing.T) {
	needLLC(t)
	t.Chdir(t.TempDir())
	writeFile(t, "choose.weft", []byte(choosing))
	var out bytes.Buffer
	if status := run(strings.Fields("compile choose.weft --target sm_80 --constant factor=[1,2] -o a.weft"), strings.NewReader(""), &out, &out); status != 0 {
		t.Fatal(&out)
	}
	out.Reset()
	if status := run(strings.Fields("run a.weft --device reference --constant factor=[1,2]"), strings.NewReader(""), &out, &out); status != 2 {
		t.Errorf("an artifact takes --constant: %d\n%s", status, &out)
	}
	data, err := os.ReadFile(filepath.Join(".", "a.weft"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(`factor=[1,2]`)) {
		t.Error("the manifest does not name the constant")
	}
}
