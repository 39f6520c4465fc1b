package onnx

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/ir"
	"weft/ir/diag"
)

func relu(in, out string) []byte { return nodeOf("Relu", out, []string{in}) }

// nested makes a model whose If nests to a depth.
func nested(depth int) []byte {
	graph := msg(relu("x", "y"), output("y"))
	for range depth {
		branch := msg(text(1, "then_branch"), text(6, graph), num(20, 5))
		other := msg(text(1, "else_branch"), text(6, graph[:0]), num(20, 5))
		graph = msg(nodeOf("If", "y", []string{"c"}, branch, other), output("y"))
	}
	return modelOf(msg(input("x", 1, 2), input("c", 9), graph))
}

// laughs makes a model whose functions call each other twice, to a depth.
func laughs(depth int) []byte {
	call := func(name, in, out string) []byte {
		return msg(text(1, in), text(2, out), text(4, name), text(7, "local"))
	}
	function := func(name, callee string) []byte {
		return text(25, msg(text(1, name), text(10, "local"), text(4, "x"), text(5, "z"), text(9, msg(num(2, 20))), text(9, msg(text(1, "local"), num(2, 1))),
			text(7, call(callee, "x", "y")), text(7, call(callee, "y", "z"))))
	}
	m := msg(num(1, 10), opsetImport(20), text(8, msg(text(1, "local"), num(2, 1))),
		text(7, msg(input("x", 1, 2), text(1, call(fmt.Sprintf("f%d", depth), "x", "out")), output("out"))))
	for i := depth; i > 0; i-- {
		m = append(m, function(fmt.Sprintf("f%d", i), fmt.Sprintf("f%d", i-1))...)
	}
	last := msg(text(1, "x"), text(2, "z"), text(4, "Relu"))
	return append(m, text(25, msg(text(1, "f0"), text(10, "local"), text(4, "x"), text(5, "z"), text(7, last)))...)
}

// flexModel makes a FlexAttention with an attribute and a score_mod of one node.
func flexModel(a message, node, inputs []byte) []byte {
	graph := msg(inputs, node, output("z"))
	attention := msg(text(1, "q"), text(1, "q"), text(1, "q"), text(2, "y"), text(3, "the_y"), text(4, "FlexAttention"), text(7, "ai.onnx.preview"),
		text(5, a), text(5, msg(text(1, "score_mod"), text(6, graph), num(20, 5))))
	return msg(num(1, 10), opsetImport(26), text(8, msg(text(1, "ai.onnx.preview"), num(2, 1))),
		text(7, msg(input("q", 1, 1, 2, 3, 4), text(1, attention), output("y"))))
}

// gramModel makes a TfIdfVectorizer of rows of a length, which counts pairs with up to 2^62 skips.
func gramModel(length any, starts, pool []int64, coordinates ...int64) []byte {
	return modelOf(msg(input("x", 7, 2, length), output("y"), nodeOf("TfIdfVectorizer", "y", []string{"x"}, msg(text(1, "mode"), text(4, "TF"), num(20, 3)),
		intAttribute("min_gram_length", 1), intAttribute("max_gram_length", 2), intAttribute("max_skip_count", 1<<62),
		intsAttribute("ngram_counts", starts...), intsAttribute("pool_int64s", pool...), intsAttribute("ngram_indexes", coordinates...))))
}

func TestHostileModels(t *testing.T) {
	whole := modelOf(msg(input("x", 1, 2, 3), relu("x", "y"), output("y")))
	selfCall := msg(num(1, 10), opsetImport(20), text(8, msg(text(1, "local"), num(2, 1))),
		text(7, msg(input("x", 1, 2), text(1, msg(text(1, "x"), text(2, "y"), text(4, "f"), text(7, "local"))), output("y"))),
		text(25, msg(text(1, "f"), text(10, "local"), text(4, "x"), text(5, "y"), text(7, msg(text(1, "x"), text(2, "y"), text(4, "f"), text(7, "local"))))))
	external := func(key, value string, more ...[]byte) []byte {
		tensor := msg(num(2, 1), text(8, "w"), num(1, 4), num(14, 1), text(13, msg(text(1, key), text(2, value))))
		for _, m := range more {
			tensor = append(tensor, m...)
		}
		return modelOf(msg(input("x", 1, 4), text(5, tensor), nodeOf("Add", "y", []string{"x", "w"}), output("y")))
	}
	weight := func(elem int64, data []byte, dims ...int64) []byte {
		return modelOf(msg(input("x", 1, 4), initializer("w", elem, data, dims...), nodeOf("Add", "y", []string{"x", "w"}), output("y")))
	}
	for _, c := range []struct {
		name  string
		model []byte
		code  diag.Code
		place string // contained in the place
	}{
		{"empty", nil, diag.NotONNX, ""},
		{"no graph", msg(num(1, 10), opsetImport(20)), diag.NotONNX, ""},
		{"text", []byte("this is no model"), diag.ONNXDamaged, "byte"},
		{"truncated", whole[:len(whole)-3], diag.ONNXDamaged, "byte"},
		{"huge length", append(msg(num(1, 10)), 0x3a, 0xff, 0xff, 0xff, 0xff, 0x7f), diag.ONNXDamaged, "byte"},
		{"wrong wire type", msg(text(1, "ten"), text(7, "")), diag.ONNXDamaged, "byte"},
		{"deep messages", nested(40), diag.ONNXLimit, "byte"},
		{"IR version", msg(num(1, 99), opsetImport(20), text(7, "")), diag.ONNXVersion, ""},
		{"old opset", msg(num(1, 10), opsetImport(6), text(7, "")), diag.ONNXVersion, ""},
		{"new opset", msg(num(1, 10), opsetImport(9999), text(7, "")), diag.ONNXVersion, ""},
		{"negative opset", msg(num(1, 10), opsetImport(-1), text(7, "")), diag.ONNXVersion, ""},
		{"no opset", msg(num(1, 10), text(7, msg(relu("x", "y")))), diag.ONNXVersion, ""},
		{"two opsets", msg(num(1, 10), opsetImport(20), opsetImport(21), text(7, "")), diag.ONNXGraph, ""},
		{"no outputs", modelOf(msg(input("x", 1, 2))), diag.ONNXGraph, ""},
		{"missing input", modelOf(msg(relu("nowhere", "y"), output("y"))), diag.ONNXGraph, "the_y"},
		{"missing output", modelOf(msg(input("x", 1, 2), output("y"))), diag.ONNXGraph, ""},
		{"cycle", modelOf(msg(relu("b", "a"), relu("a", "b"), output("b"))), diag.ONNXGraph, "the_"},
		{"self cycle", modelOf(msg(relu("a", "a"), output("a"))), diag.ONNXGraph, "the_a"},
		{"duplicate node output", modelOf(msg(input("x", 1, 2), relu("x", "y"), relu("x", "y"), output("y"))), diag.ONNXGraph, "the_y"},
		{"output named as input", modelOf(msg(input("x", 1, 2), relu("x", "x"), output("x"))), diag.ONNXGraph, "the_x"},
		{"input without a name", modelOf(msg(input("", 1, 2), relu("", "y"), output("y"))), diag.ONNXGraph, ""},
		{"duplicate input", modelOf(msg(input("x", 1, 2), input("x", 1, 2), relu("x", "y"), output("y"))), diag.ONNXGraph, "x"},
		{"duplicate graph output", modelOf(msg(input("x", 1, 2), relu("x", "y"), output("y"), output("y"))), diag.ONNXGraph, "y"},
		{"duplicate initializer", modelOf(msg(initializer("w", 1, make([]byte, 4)), initializer("w", 1, make([]byte, 4)), relu("w", "y"), output("y"))), diag.ONNXGraph, "w"},
		{"negative input dim", modelOf(msg(input("x", 1, -2), relu("x", "y"), output("y"))), diag.ONNXType, "x"},
		{"2^64 elements", modelOf(msg(input("x", 1, int64(1)<<32, int64(1)<<32), relu("x", "y"), output("y"))), diag.ONNXType, "x"},
		{"input without type", modelOf(msg(text(11, msg(text(1, "x"))), relu("x", "y"), output("y"))), diag.ONNXType, "x"},
		{"input without shape", modelOf(msg(text(11, msg(text(1, "x"), text(2, msg(text(1, msg(num(1, 1))))))), relu("x", "y"), output("y"))), diag.ONNXForm, "x"},
		{"unknown element type", modelOf(msg(input("x", 77, 2), relu("x", "y"), output("y"))), diag.ONNXTensor, "x"},
		{"float6", modelOf(msg(input("x", 27, 2), relu("x", "y"), output("y"))), diag.ONNXElementType, "x"},
		{"weight with negative dim", weight(1, make([]byte, 16), -4), diag.ONNXTensor, "w"},
		{"weight of 2^64 elements", weight(1, make([]byte, 16), math.MaxInt64, 4), diag.ONNXTensor, "w"},
		{"weight with too few bytes", weight(1, make([]byte, 15), 4), diag.ONNXTensor, "w"},
		{"weight with too many bytes", weight(1, make([]byte, 17), 4), diag.ONNXTensor, "w"},
		{"absolute external path", external("location", "/etc/passwd"), diag.ONNXExternal, "w"},
		{"external path that leaves the folder", external("location", "../w.bin"), diag.ONNXExternal, "w"},
		{"external data from memory", external("location", "w.bin"), diag.ONNXExternal, "w"},
		{"attribute of a wrong type", modelOf(msg(input("x", 1, 2), nodeOf("Softmax", "y", []string{"x"}, msg(text(1, "axis"), text(4, "one"), num(20, 3))), output("y"))), diag.ONNXAttribute, "the_y"},
		{"attribute given twice", modelOf(msg(input("x", 1, 2), nodeOf("Softmax", "y", []string{"x"}, intAttribute("axis", 0), intAttribute("axis", 0)), output("y"))), diag.ONNXAttribute, "the_y"},
		{"axis out of range", modelOf(msg(input("x", 1, 2), nodeOf("Softmax", "y", []string{"x"}, intAttribute("axis", 5)), output("y"))), diag.ONNXOperator, "the_y"},
		{"shapes do not fit", modelOf(msg(input("a", 1, 2, 3), input("b", 1, 4, 5), nodeOf("MatMul", "y", []string{"a", "b"}), output("y"))), "W2002", "the_y"},
		{"recursive function", selfCall, diag.ONNXFunction, "f#0"},
		{"billion laughs", laughs(40), diag.ONNXLimit, ""},
		{"unknown operator", modelOf(msg(input("x", 1, 2), nodeOf("Bogus", "y", []string{"x"}), output("y"))), "W2001", ""},
		{"modifier that changes the type", flexModel(intsAttribute("unused"), nodeOf("Cast", "z", []string{"s"}, intAttribute("to", 7)), input("s", 1)), diag.ONNXOperator, "the_y"},
		{"modifier that changes the shape", flexModel(intsAttribute("unused"), nodeOf("ReduceMax", "z", []string{"s"}, intAttribute("keepdims", 0)), input("s", 1)), diag.ONNXOperator, "the_y"},
		{"modifier of two inputs", flexModel(intsAttribute("unused"), nodeOf("Add", "z", []string{"s", "t"}), msg(input("s", 1), input("t", 1))), diag.ONNXOperator, "the_y"},
		{"softmax in integers", flexModel(intAttribute("softmax_precision", 7), relu("s", "z"), input("s", 1)), diag.ONNXOperator, "the_y"},
		{"n-grams without coordinates", gramModel(4, []int64{0}, []int64{1, 2}), diag.ONNXOperator, "the_y"},
		{"n-grams cut in two", gramModel(4, []int64{0, 1}, []int64{1, 2}, 0, 1), diag.ONNXOperator, "the_y"},
		{"n-grams from outside of the pool", gramModel(4, []int64{-1}, []int64{1, 2}, 0, 1), diag.ONNXOperator, "the_y"},
		{"negative coordinate", gramModel(4, []int64{0}, []int64{1, 2}, 0, -1), diag.ONNXOperator, "the_y"},
		{"2^63 coordinates", gramModel(4, []int64{0}, []int64{1, 2}, 0, math.MaxInt64), diag.ONNXOperator, "the_y"},
		{"endless rows of n-grams", gramModel(1<<40, []int64{0, 0}, []int64{1, 2}, 0), diag.ONNXForm, "the_y"},
		{"n-grams in rows of any length", gramModel("c", []int64{0, 0}, []int64{1, 2}, 0), diag.ONNXForm, "the_y"},
		{"shape depends on data", modelOf(msg(input("x", 1, 4), input("s", 7, 2), nodeOf("Reshape", "y", []string{"x", "s"}), output("y"))), diag.ONNXDataDependent, "the_y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			m, err := ImportBytes(c.model, Options{})
			if err == nil {
				t.Fatalf("accepted:\n%s", m.Program)
			}
			first := diag.All(err)[0]
			if first.Code != c.code || !strings.Contains(first.Place, c.place) {
				t.Errorf("got %v, want code %s at %q", err, c.code, c.place)
			}
			if first.Suggestion == "" {
				t.Errorf("no suggestion: %v", err)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestUnsupportedOperators checks that one diagnostic lists all of them.
func TestUnsupportedOperators(t *testing.T) {
	_, err := ImportBytes(modelOf(msg(input("x", 1, 2), nodeOf("Bogus", "a", []string{"x"}), nodeOf("Bogus", "b", []string{"a"}), nodeOf("Odd", "y", []string{"b"}), output("y"))), Options{})
	want := `error W2001: 3 nodes of 2 operators not supported
  note: Bogus (2 nodes): the_a, the_b
  note: Odd (1 node): the_y`
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v", err)
	}
	if diag.ExitStatus(err) != diag.Unsupported {
		t.Errorf("exit status %d", diag.ExitStatus(err))
	}
}

// TestUnsupportedAdvice checks that the help says what to do about each operator, once.
func TestUnsupportedAdvice(t *testing.T) {
	_, err := ImportBytes(modelOf(msg(input("x", 1, 2), nodeOf("Unique", "a", []string{"x"}), nodeOf("Bogus", "b", []string{"a"}), nodeOf("Odd", "y", []string{"b"}), output("y"))), Options{})
	all := diag.All(err)
	if len(all) != 1 || strings.Count(all[0].Suggestion, "weft support FILE") != 1 || !strings.Contains(all[0].Suggestion, "remove duplicates after the run") {
		t.Errorf("got %v", err)
	}
}

func TestExternalData(t *testing.T) {
	folder := t.TempDir()
	entry := func(key, value string) []byte { return text(13, msg(text(1, key), text(2, value))) }
	model := func(offset, length string) []byte {
		tensor := msg(num(2, 1), text(8, "w"), num(1, 4), num(14, 1), entry("location", "w.bin"), entry("offset", offset), entry("length", length))
		return modelOf(msg(input("x", 1, 4), text(5, tensor), nodeOf("Add", "y", []string{"x", "w"}), output("y")))
	}
	data := ir.NewTensor(ir.F32, 8)
	for i := range int64(8) {
		data.SetFloat(i, float64(i))
	}
	if err := os.WriteFile(filepath.Join(folder, "w.bin"), data.Data, 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "model.onnx")
	for _, c := range []struct {
		offset, length string
		ok             bool
	}{{"0", "16", true}, {"16", "16", true}, {"17", "16", false}, {"-1", "16", false}, {"0", "15", false}, {"0", "99", false},
		{"9223372036854775807", "16", false}, {"x", "16", false}} {
		if err := os.WriteFile(path, model(c.offset, c.length), 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := Import(path, Options{})
		switch {
		case c.ok && err != nil:
			t.Errorf("offset %s, length %s: %v", c.offset, c.length, err)
		case c.ok:
			x := ir.NewTensor(ir.F32, 4)
			got, err := evaluate(m, []string{"x"}, []*ir.Tensor{x})
			if err != nil || got[0].Float(1) != map[string]float64{"0": 1, "16": 5}[c.offset] {
				t.Errorf("offset %s: got %v, %v", c.offset, got, err)
			}
			m.Close()
		case err == nil || diag.All(err)[0].Code != diag.ONNXExternal || diag.All(err)[0].File != path:
			t.Errorf("offset %s, length %s: %v", c.offset, c.length, err)
		}
	}
	if err := os.Remove(filepath.Join(folder, "w.bin")); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(path, Options{}); err == nil || diag.All(err)[0].Code != diag.ONNXExternal {
		t.Errorf("missing data file: %v", err)
	}
}

// TestUnifiedDims checks that dims which must be equal become one, with a warning.
func TestUnifiedDims(t *testing.T) {
	m, err := ImportBytes(modelOf(msg(input("x", 1, "n", 4), input("z", 1, "m", 4), nodeOf("Add", "y", []string{"x", "z"}), output("y"))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Program.Symbols) != 1 || m.Program.Symbols[0].Name != "m" {
		t.Errorf("symbols %v", m.Program.Symbols)
	}
	if len(m.Warnings) != 1 || m.Warnings[0].Code != diag.ONNXDimsTakenEqual || m.Warnings[0].Place != "the_y" {
		t.Errorf("warnings %v", m.Warnings)
	}
}

// TestDeclaredContradiction checks that inference wins over a declared shape, with a warning.
func TestDeclaredContradiction(t *testing.T) {
	declared := text(12, valueInfo("y", 1, 5))
	m, err := ImportBytes(modelOf(msg(input("x", 1, 4), relu("x", "y"), declared)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	e := m.Program.Entries[0]
	if got := e.Type(e.Body.Results[0]); got.String() != "f32[4]" {
		t.Errorf("result %s", got)
	}
	if len(m.Warnings) != 1 || m.Warnings[0].Code != diag.ONNXContradiction {
		t.Errorf("warnings %v", m.Warnings)
	}
}

// TestSizes checks that a size that is given for a dim decides branches on it.
func TestSizes(t *testing.T) {
	squeeze := msg(nodeOf("Squeeze", "s", []string{"x", "one"}), output("s"))
	keep := msg(nodeOf("Identity", "k", []string{"x"}), output("k"))
	branch := nodeOf("If", "y", []string{"c"}, msg(text(1, "then_branch"), text(6, squeeze), num(20, 5)), msg(text(1, "else_branch"), text(6, keep), num(20, 5)))
	one := make([]byte, 8)
	one[0] = 1
	model := modelOf(msg(input("x", 1, 4, "n"), initializer("one", 7, one), nodeOf("Shape", "d", []string{"x"}, intAttribute("start", 1)),
		nodeOf("Squeeze", "e", []string{"d"}), nodeOf("Equal", "c", []string{"e", "one"}), branch, output("y")))
	for _, c := range []struct {
		sizes map[string]int64
		want  string // the result's type, or an error's code
	}{{nil, string(diag.ONNXForm)}, {map[string]int64{"n": 1}, "f32[4]"}, {map[string]int64{"n": 3}, "f32[4, 3]"},
		{map[string]int64{"x[1]": 3}, "f32[4, 3]"}, {map[string]int64{"in.0[1]": 1}, "f32[4]"},
		{map[string]int64{"m": 3}, string(diag.ONNXForm)}, {map[string]int64{"n": -3}, "W0001"}} {
		m, err := ImportBytes(model, Options{Sizes: c.sizes})
		got := ""
		if err != nil {
			got = string(diag.All(err)[0].Code)
		} else {
			e := m.Program.Entries[0]
			got = e.Type(e.Body.Results[0]).String()
		}
		if got != c.want {
			t.Errorf("sizes %v: got %s (%v), want %s", c.sizes, got, err, c.want)
		}
	}
}

// TestConstants checks that an input can be fixed to a value.
func TestConstants(t *testing.T) {
	model := modelOf(msg(input("x", 1, 2, 3), input("shape", 7, 1), nodeOf("Reshape", "y", []string{"x", "shape"}), output("y")))
	m, err := ImportBytes(model, Options{Constants: map[string]*ir.Tensor{"shape": ir.I64s([]int64{-1})}})
	if err != nil {
		t.Fatal(err)
	}
	e := m.Program.Entries[0]
	if got := e.Type(e.Body.Results[0]).String(); got != "f32[6]" || len(e.Inputs) != 1 {
		t.Errorf("result %s, inputs %v", got, e.Inputs)
	}
	if _, err := ImportBytes(model, Options{Constants: map[string]*ir.Tensor{"form": nil}}); diag.ExitStatus(err) != diag.Usage {
		t.Errorf("unknown input: %v", err)
	}
}

// TestUnsortedNodes checks that nodes in a wrong order are sorted.
func TestUnsortedNodes(t *testing.T) {
	if _, err := ImportBytes(modelOf(msg(input("x", 1, 4), relu("a", "y"), relu("x", "a"), output("y"))), Options{}); err != nil {
		t.Error(err)
	}
}

func FuzzImport(f *testing.F) {
	for _, c := range subset(f) {
		if len(c.model) < 400 {
			f.Add(c.model)
		}
	}
	f.Add(nested(3))
	f.Add(laughs(3))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ImportBytes(data, Options{})
		if err != nil {
			for _, d := range diag.All(err) {
				if d.Code == diag.Bug {
					t.Error(err)
				}
			}
			return
		}
		if err := ir.Verify(m.Program); err != nil {
			t.Error(err)
		}
		m.Close()
	})
}
