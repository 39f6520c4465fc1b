package onnx

import (
	"testing"

	"weft/frontend/lower"
	"weft/ir"
	"weft/ir/diag"
)

// TestShapesFromConstants fixes the inputs of operators that decide about shapes. Without them
// the shape depends on data.
func TestShapesFromConstants(t *testing.T) {
	const f32, i64, boolean = 1, 7, 9
	for _, c := range []struct {
		op     string
		inputs []string // of the node; "" leaves one out
		types  []message
		fixed  []string
		want   string
	}{
		{"Reshape", []string{"x", "shape"}, []message{valueInfo("x", f32, 2, 6), valueInfo("shape", i64, 2)}, []string{"shape=[3,-1]"}, "f32[3, 4]"},
		{"Reshape", []string{"x", "shape"}, []message{valueInfo("x", f32, 2, 6), valueInfo("shape", i64, "rank")}, []string{"in.1=[12]"}, "f32[12]"},
		{"Expand", []string{"x", "shape"}, []message{valueInfo("x", f32, 1, 3), valueInfo("shape", i64, 2)}, []string{"in.1=[4,1]"}, "f32[4, 3]"},
		{"Tile", []string{"x", "n"}, []message{valueInfo("x", f32, 2, 3), valueInfo("n", i64, 2)}, []string{"n=[2,2]"}, "f32[4, 6]"},
		{"OneHot", []string{"x", "depth", "values"}, []message{valueInfo("x", i64, 3), valueInfo("depth", i64), valueInfo("values", f32, 2)}, []string{"depth=5"}, "f32[3, 5]"},
		{"OneHot", []string{"x", "depth", "values"}, []message{valueInfo("x", i64, 3), valueInfo("depth", i64), valueInfo("values", f32, 2)},
			[]string{"depth=5", "values=[0,1]"}, "f32[3, 5]"},
		{"Resize", []string{"x", "", "", "sizes"}, []message{valueInfo("x", f32, 1, 1, 2, 2), valueInfo("sizes", i64, 4)}, []string{"sizes=[1,1,3,5]"}, "f32[1, 1, 3, 5]"},
		{"Resize", []string{"x", "", "scales"}, []message{valueInfo("x", f32, 1, 1, 2, 2), valueInfo("scales", f32, 4)}, []string{"scales=[1,1,2.5,2]"}, "f32[1, 1, 5, 4]"},
		{"Slice", []string{"x", "from", "to"}, []message{valueInfo("x", f32, 9), valueInfo("from", i64, 1), valueInfo("to", i64, 1)}, []string{"in.1=[2]", "in.2=[-1]"}, "f32[6]"},
		{"Pad", []string{"x", "pads"}, []message{valueInfo("x", f32, 2, 3), valueInfo("pads", i64, 4)}, []string{"pads=[1,0,0,2]"}, "f32[3, 5]"},
		{"ConstantOfShape", []string{"shape"}, []message{valueInfo("shape", i64, 2)}, []string{"shape=[2,5]"}, "f32[2, 5]"},
		{"Range", []string{"a", "b", "c"}, []message{valueInfo("a", f32), valueInfo("b", f32), valueInfo("c", f32)}, []string{"a=0", "b=1", "c=0.25"}, "f32[4]"},
		{"Unsqueeze", []string{"x", "axes"}, []message{valueInfo("x", f32, 3), valueInfo("axes", i64, 2)}, []string{"axes=[0,-1]"}, "f32[1, 3, 1]"},
		{"ReduceSum", []string{"x", "axes"}, []message{valueInfo("x", f32, 3, 4), valueInfo("axes", i64, 1)}, []string{"axes=[1]"}, "f32[3, 1]"},
		{"Compress", []string{"x", "which"}, []message{valueInfo("x", f32, 3), valueInfo("which", boolean, 3)}, []string{"which=[true,false,true]"}, "f32[2]"},
		{"NonZero", []string{"x"}, []message{valueInfo("x", f32, 4)}, []string{"x=[0,1.5,0,2]"}, "i64[1, 2]"},
	} {
		var graph message
		for _, in := range c.types {
			graph = append(graph, text(11, in)...)
		}
		graph = append(graph, append(nodeOf(c.op, "y", c.inputs), output("y")...)...)
		if _, err := ImportBytes(modelOf(graph), Options{}); err == nil {
			t.Errorf("%s: the shape does not depend on an input", c.op)
		}
		constants := map[string]*ir.Tensor{}
		for _, fact := range c.fixed {
			name, value, err := lower.ParseConstant(fact)
			if err != nil {
				t.Fatal(err)
			}
			constants[name] = value
		}
		m, err := ImportBytes(modelOf(graph), Options{Constants: constants})
		if err != nil {
			t.Errorf("%s with %v: %v", c.op, c.fixed, err)
			continue
		}
		e := m.Program.Entries[0]
		if got := e.Type(e.Body.Results[0]).String(); got != c.want || len(e.Inputs) != len(c.types)-len(c.fixed) {
			t.Errorf("%s with %v: %s with %d inputs, want %s", c.op, c.fixed, got, len(e.Inputs), c.want)
		}
	}
}

// TestWrongConstants fixes inputs to what they cannot be.
func TestWrongConstants(t *testing.T) {
	model := modelOf(msg(input("x", 1, 2, 3), input("shape", 7, 2), nodeOf("Reshape", "y", []string{"x", "shape"}), output("y")))
	for _, fact := range []string{"form=[1]", "in.2=[1]", "shape=1", "shape=[1,2,3]", "shape=[1.5,2]", "x=[[1,2],[3,4],[5,6]]"} {
		name, value, err := lower.ParseConstant(fact)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ImportBytes(model, Options{Constants: map[string]*ir.Tensor{name: value}}); diag.ExitStatus(err) != diag.Usage {
			t.Errorf("%s: %v", fact, err)
		}
	}
	twice := map[string]*ir.Tensor{"in.1": ir.I64s([]int64{6, 1}), "shape": ir.I64s([]int64{6, 1})}
	if _, err := ImportBytes(model, Options{Constants: twice}); diag.ExitStatus(err) != diag.Usage {
		t.Errorf("one input fixed twice: %v", err)
	}
}
