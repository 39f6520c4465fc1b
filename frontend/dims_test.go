package frontend_test

import (
	"testing"

	"weft/frontend"
	"weft/ir/diag"
)

// TestSizesDecideBranches imports an ONNX file with a branch on the size of a dim.
func TestSizesDecideBranches(t *testing.T) {
	for _, c := range []struct {
		fact string
		want string // the result's type, or the code of the error
	}{
		{"channels=1", "f32[batch]"},
		{"channels=3", "f32[batch, 3]"},
		{"x[1]=1", "f32[batch]"},
		{"in.0[1]=3", "f32[batch, 3]"},
		{"batch=2", string(diag.ONNXForm)}, // the branch stays open
		{"channels=1..4", string(diag.ONNXForm)},
		{"columns=1", string(diag.ONNXForm)},
	} {
		facts := []string{c.fact}
		imported, err := frontend.Import("testdata/branch_on_size.onnx", frontend.Options{Dims: facts})
		if err == nil {
			err = frontend.ApplyDims(imported.Program, facts)
		}
		got := ""
		if err != nil {
			got = string(diag.All(err)[0].Code)
		} else {
			e := imported.Program.Entries[0]
			got = e.Type(e.Body.Results[0]).String()
			if len(imported.Program.Symbols) != 1 {
				t.Errorf("%s: dims %v are left", c.fact, imported.Program.Symbols)
			}
			imported.Close()
		}
		if got != c.want {
			t.Errorf("%s: got %s (%v), want %s", c.fact, got, err, c.want)
		}
	}
	for facts, want := range map[[2]string]diag.Code{{"channels=1", "rows=2"}: "W0002", {"channels=1", "x[1]=2"}: "W0002"} {
		imported, err := frontend.Import("testdata/branch_on_size.onnx", frontend.Options{Dims: facts[:]})
		if err == nil {
			err = frontend.ApplyDims(imported.Program, facts[:])
			imported.Close()
		}
		if err == nil || diag.All(err)[0].Code != want {
			t.Errorf("%v: want %s, got %v", facts, want, err)
		}
	}
}

func TestFactsOf(t *testing.T) {
	got := frontend.FactsOf("decode", []string{"decode.in.0[1]=8", "prefill.x[1]=4", "batch=2"})
	want := []string{"in.0[1]=8", "prefill.x[1]=4", "batch=2"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("fact %d is %s, want %s", i, got[i], want[i])
		}
	}
}
