package plan_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/plan"
)

var update = flag.Bool("update", false, "rewrite the goldens")

const sampleFile = "testdata/sample.json"

func sampleText(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(sampleFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func decode(t testing.TB, text string) *plan.Plan {
	t.Helper()
	p, err := plan.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// kernels of the sample.
func kernels(name string) (int, bool) {
	n, ok := map[string]int{"mul": 4, "wide": 2, "narrow": 3, "update": 3}[name]
	return n, ok
}

// edited is the sample with pairs of texts replaced, once each.
func edited(t testing.TB, pairs ...string) string {
	t.Helper()
	text := sampleText(t)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the sample has no %s", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

func TestRoundTrip(t *testing.T) {
	text := sampleText(t)
	p := decode(t, text)
	if err := plan.Verify(p, kernels); err != nil {
		t.Fatal(err)
	}
	out, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != text {
		t.Errorf("encoded:\n%s", out)
	}
	if again := decode(t, string(out)); !reflect.DeepEqual(again, p) {
		t.Errorf("%+v, want %+v", again, p)
	}
}

func TestEncodeEmpty(t *testing.T) {
	p := &plan.Plan{Version: plan.Version, Target: "t", Entry: "e", Inputs: []plan.Tensor{{Name: "x", DType: "f32"}}, Steps: []plan.Step{{Launch: &plan.Launch{Kernel: "k", Block: 1}}}}
	out, err := p.Encode()
	if err != nil || bytes.Contains(out, []byte("null")) {
		t.Errorf("%s %v", out, err)
	}
	again, err := decode(t, string(out)).Encode()
	if err != nil || !bytes.Equal(out, again) {
		t.Errorf("%s %v", again, err)
	}
}

func TestString(t *testing.T) {
	got := decode(t, sampleText(t)).String()
	const file = "testdata/sample.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("%v, got\n%s", err, got)
	}
}

func TestDecodeErrors(t *testing.T) {
	long := strings.Repeat(" ", 65<<20)
	for _, test := range []struct {
		name, text string
		code       diag.Code
		word       string
	}{
		{"empty", "", diag.PlanSyntax, "JSON"},
		{"truncated", sampleText(t)[:500], diag.PlanSyntax, "byte"},
		{"no object", `[]`, diag.PlanSyntax, ""},
		{"no version", `{}`, diag.PlanVersion, "1.x"},
		{"next version", edited(t, `"1.0"`, `"2.0"`), diag.PlanVersion, "2.0"},
		{"odd version", edited(t, `"1.0"`, `"1"`), diag.PlanVersion, ""},
		{"unknown field", edited(t, `"entry"`, `"entre"`), diag.PlanSyntax, "entre"},
		{"unknown field inside", edited(t, `"bits"`, `"bit"`), diag.PlanSyntax, "bit"},
		{"wrong kind", edited(t, `"block":128`, `"block":"128"`), diag.PlanSyntax, "block"},
		{"bad size", edited(t, `"64*n + 12"`, `"64*n + "`), diag.PlanSyntax, "size expression"},
		{"grid of four", edited(t, `"floordiv(n + 31, 32)","1","1"`, `"1","1","1","1"`), diag.PlanSyntax, "3 sizes"},
		{"grid of two", edited(t, `"floordiv(n + 31, 32)","1","1"`, `"1","1"`), diag.PlanSyntax, "3 sizes"},
		{"text after", sampleText(t) + "{}", diag.PlanSyntax, ""},
		{"too long", sampleText(t) + long, diag.PlanTooLarge, ""},
		{"too many values", `{"version":"1.0","steps":[` + strings.Repeat("{},", 3<<20) + `{}]}`, diag.PlanTooLarge, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := plan.Decode([]byte(test.text))
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
			if d := diag.All(err)[0]; d.Code != test.code || !strings.Contains(err.Error(), test.word) {
				t.Errorf("want %s and %q", test.code, test.word)
			}
		})
	}
	if _, err := plan.Decode([]byte(edited(t, `"1.0"`, `"1.7"`))); err != nil {
		t.Errorf("a later minor version: %v", err)
	}
}

// TestVerify breaks each rule of the verifier in the sample.
func TestVerify(t *testing.T) {
	tests := []struct {
		rule, name string
		edits      []string
		words      []string
	}{
		{"P1", "target", []string{`"sm_80"`, `""`}, nil},
		{"P1", "entry", []string{`"forward"`, `""`}, nil},
		{"P1", "dim twice", []string{`"m.rows","min":8`, `"n","min":8`}, []string{"dim 1"}},
		{"P1", "dim without name", []string{`{"name":"n"`, `{"name":""`}, []string{"dim 0"}},
		{"P1", "negative bound", []string{`"min":0`, `"min":-1`}, []string{"dim 0"}},
		{"P1", "bounds", []string{`"max":1024`, `"max":7`, `"min":0`, `"min":8`}, []string{"dim 0"}},
		{"P1", "multiple", []string{`"multiple":8`, `"multiple":-8`}, []string{"dim 1"}},
		{"P2", "input names", []string{`"name":"ids"`, `"name":"x"`}, []string{"input 1"}},
		{"P2", "output names", []string{`"name":"pad"`, `"name":""`}, []string{"output 1"}},
		{"P2", "element type", []string{`"dtype":"ui8"`, `"dtype":"u8"`}, []string{"input 1", "u8"}},
		{"P2", "strings", []string{`"dtype":"ui8"`, `"dtype":"string"`}, []string{"input 1"}},
		{"P2", "rank", []string{`["512"]`, `["512"` + strings.Repeat(`,"1"`, 64) + `]`}, []string{"input 4"}},
		{"P2", "many terms", []string{`["512"]`, `["512"` + strings.Repeat(`,"n + 1"`, 11) + `]`}, []string{"input 4"}},
		{"P2", "state read twice", []string{`"state":"0.weight"`, `"state":"cache"`}, []string{"input 4"}},
		{"P2", "state replaced twice", []string{`"state":"scale"`, `"state":"cache"`}, []string{"output 4"}},
		{"P2", "state of two types", []string{`"state":"cache","dtype":"f16"`, `"state":"cache","dtype":"bf16"`}, []string{"output 3", "bf16[512]"}},
		{"P2", "state of two shapes", []string{`["512"]`, `["2","256"]`}, []string{"output 3"}},
		{"P3", "shape", []string{`["n","4"]`, `["k","4"]`}, []string{"input 0", `"k"`}},
		{"P3", "size", []string{`"64*n + 12"`, `"64*k + 12"`}, []string{"buffer 5"}},
		{"P3", "grid", []string{`"floordiv(n + 31, 32)"`, `"floordiv(k + 31, 32)"`}, []string{"step 0"}},
		{"P3", "argument", []string{`"4*n"`, `"4*k"`}, []string{"step 0"}},
		{"P4", "kind", []string{`"kind":"arena"`, `"kind":"heap"`}, []string{"buffer 4", "heap"}},
		{"P4", "input range", []string{`"index":4,"size":"1024"`, `"index":5,"size":"1024"`}, []string{"buffer 3"}},
		{"P4", "negative index", []string{`"index":4,"size":"1024"`, `"index":-1,"size":"1024"`}, []string{"buffer 3"}},
		{"P4", "two buffers", []string{`"index":3,"size":"4"`, `"index":2,"size":"16"`}, []string{"buffer 2"}},
		{"P4", "size", []string{`"index":2,"size":"16"`, `"index":2,"size":"20"`}, []string{"buffer 1", "20 bytes"}},
		{"P4", "arena index", []string{`"kind":"arena","size":"16*n","name"`, `"kind":"arena","index":1,"size":"16*n","name"`}, []string{"buffer 4"}},
		{"P4", "after itself", []string{`"after":[4]`, `"after":[5]`}, []string{"buffer 5"}},
		{"P4", "after a later one", []string{`"after":[4]`, `"after":[6]`}, []string{"buffer 5"}},
		{"P4", "after an input", []string{`"after":[4]`, `"after":[4,0]`}, []string{"buffer 5"}},
		{"P4", "after twice", []string{`"after":[4]`, `"after":[4,4]`}, []string{"buffer 5"}},
		{"P4", "after negative", []string{`"after":[4]`, `"after":[-1]`}, []string{"buffer 5"}},
		{"P4", "placed output", []string{`"index":4,"size":"4"`, `"index":4,"size":"4","after":[4]`}, []string{"buffer 10"}},
		{"P5", "nothing", []string{`{"copy":{"from":6,"to":7}}`, `{}`}, []string{"step 3", "0 kinds"}},
		{"P5", "two kinds", []string{`{"copy":{"from":6,"to":7}}`, `{"copy":{"from":6,"to":7},"fill":{"buffer":7,"pattern":"00"}}`}, []string{"step 3", "2 kinds"}},
		{"P6", "copy", []string{`"to":7`, `"to":11`}, []string{"step 3", "11"}},
		{"P6", "copy from", []string{`"from":6`, `"from":-1`}, []string{"step 3"}},
		{"P6", "fill", []string{`"fill":{"buffer":8`, `"fill":{"buffer":-1`}, []string{"step 4"}},
		{"P6", "argument", []string{`{"buffer":1,"access":"r"}`, `{"buffer":99,"access":"r"}`}, []string{"step 0", "99"}},
		{"P6", "access", []string{`{"buffer":1,"access":"r"}`, `{"buffer":1}`}, []string{"step 0", "argument 1"}},
		{"P6", "odd access", []string{`{"buffer":1,"access":"r"}`, `{"buffer":1,"access":"wr"}`}, []string{"step 0", "argument 1"}},
		{"P6", "both", []string{`{"buffer":1,"access":"r"}`, `{"buffer":1,"access":"r","bits":32}`}, []string{"step 0", "argument 1"}},
		{"P6", "width", []string{`"bits":32`, `"bits":16`}, []string{"step 0", "argument 3"}},
		{"P6", "access of a value", []string{`"bits":32`, `"bits":32,"access":"r"`}, []string{"step 0", "argument 3"}},
		{"P7", "arena", []string{`{"buffer":4,"access":"w"}`, `{"buffer":4,"access":"rw"}`}, []string{"step 0", "buffer 4"}},
		{"P7", "argument order", []string{`{"buffer":4,"access":"r"},{"buffer":5,"access":"w"}`, `{"buffer":6,"access":"r"},{"buffer":5,"access":"w"}`}, []string{"step 1", "buffer 6"}},
		{"P7", "output", []string{`{"copy":{"from":6,"to":7}}`, `{"copy":{"from":7,"to":6}}`}, []string{"step 3", "buffer 7"}},
		{"P8", "caller's input", []string{`{"copy":{"from":6,"to":7}}`, `{"copy":{"from":6,"to":7}},{"copy":{"from":6,"to":0}}`}, []string{"step 4", "buffer 0"}},
		{"P8", "state", []string{`{"buffer":1,"access":"r"}`, `{"buffer":1,"access":"rw"}`}, []string{"step 0", "0.weight"}},
		{"P9", "no buffer", []string{`{"kind":"output","index":4,"size":"4"}`, `{"kind":"arena","size":"4"}`}, []string{"output 4"}},
		{"P9", "not written", []string{"},\n {\"fill\":{\"buffer\":10,\"pattern\":\"0000803f\"}}]", "}]"}, []string{"output 4", "buffer 10"}},
		{"P9", "state not written", []string{`{"copy":{"from":9,"to":2}}`, `{"copy":{"from":1,"to":1}}`, `{"copy":{"from":1,"to":1}},`, ``}, []string{"output 2"}},
		{"P10", "overlap", []string{`,"after":[4]`, ``}, []string{"buffer 5", "buffer 4", "step 1"}},
		{"P10", "overlap by a long life", []string{`{"copy":{"from":6,"to":7}}`, `{"copy":{"from":4,"to":7}}`}, []string{"buffer 6", "buffer 4"}},
		{"P11", "kernel", []string{`"mul"`, `"mil"`}, []string{"step 0", "mil"}},
		{"P11", "few arguments", []string{`{"buffer":1,"access":"r"},`, ``}, []string{"step 0", "3 arguments", "4 parameters"}},
		{"P11", "no threads", []string{`"block":128`, `"block":0`}, []string{"step 0"}},
		{"P11", "many threads", []string{`"block":128`, `"block":1025`}, []string{"step 0"}},
		{"P11", "shared memory", []string{`"shared":1024`, `"shared":-1`}, []string{"step 1"}},
		{"P11", "resident blocks", []string{`"shared":1024`, `"shared":1024,"resident":33`}, []string{"step 1", "33 blocks a multiprocessor"}},
		{"P12", "sizes", []string{`"from":6,"to":7`, `"from":5,"to":7`}, []string{"step 3", "64*n + 12", "16*n"}},
		{"P12", "itself", []string{`"from":6,"to":7`, `"from":7,"to":7`}, []string{"step 3"}},
		{"P12", "pattern", []string{`"0000803f"`, `"00803f"`}, []string{"step 7"}},
		{"P12", "no hex", []string{`"0000803f"`, `"0x"`}, []string{"step 7"}},
		{"P12", "long pattern", []string{`"0000803f"`, `"0000803f0000803f"`}, []string{"step 7", "8 bytes", "of 4 bytes"}},
		{"P12", "divisor", []string{`,"multiple":8`, ``}, []string{"step 4"}},
		{"P14", "predicate", []string{`{"copy":{"from":6,"to":7}}`, `{"copy":{"from":6,"to":7}},{"if":{"predicate":6,"then":[],"else":[]}}`}, []string{"step 4", "16*n bytes"}},
		{"P13", "read and written", []string{`{"buffer":2,"access":"r"},{"buffer":9,"access":"w"}`, `{"buffer":9,"access":"r"},{"buffer":9,"access":"w"}`}, []string{"step 5", "buffer 9"}},
	}
	covered := map[string]bool{}
	for _, test := range tests {
		t.Run(test.rule+" "+test.name, func(t *testing.T) {
			covered[test.rule] = true
			err := plan.Verify(decode(t, edited(t, test.edits...)), kernels)
			if err == nil {
				t.Fatal("no error")
			}
			t.Log(err)
			found := slices.ContainsFunc(diag.All(err), func(d *diag.Diagnostic) bool {
				ok := d.Code == diag.InvalidPlan && strings.HasPrefix(d.Message, test.rule+": ")
				for _, w := range test.words {
					ok = ok && strings.Contains(d.Error(), w)
				}
				return ok
			})
			if !found {
				t.Errorf("no fault of rule %s with %q", test.rule, test.words)
			}
		})
	}
	for _, f := range slices.Concat(meshFaults, mapFaults) {
		covered[f.rule] = true
	}
	source, err := os.ReadFile("verify.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^//\t(P\d+) `).FindAllSubmatch(source, -1) {
		if !covered[string(m[1])] {
			t.Errorf("rule %s has no failing test", m[1])
		}
		delete(covered, string(m[1]))
	}
	if len(covered) > 0 {
		t.Errorf("rules that the header lacks: %v", slices.Sorted(maps.Keys(covered)))
	}
}

func TestVerifyVersion(t *testing.T) {
	p := decode(t, sampleText(t))
	p.Version = "3.0"
	if err := plan.Verify(p, nil); err == nil || !strings.Contains(err.Error(), "P1: ") {
		t.Error(err)
	}
}

// TestVerifyAccepts has what the rules allow.
func TestVerifyAccepts(t *testing.T) {
	for name, edits := range map[string][]string{
		"not after what is dead":   {`"after":[5]`, `"after":[5,4]`},
		"disjoint lives":           {`"after":[4]`, `"after":[4],"name":"b"`},
		"state that only is":       {`{"buffer":3,"access":"rw"}`, `{"buffer":3,"access":"r"}`},
		"read and in place":        {`{"buffer":2,"access":"r"},{"buffer":9,"access":"w"}`, `{"buffer":3,"access":"r"},{"buffer":9,"access":"w"}`},
		"unused buffer":            {`{"kind":"output","index":4`, `{"kind":"arena","size":"8"},{"kind":"output","index":4`, `"fill":{"buffer":10`, `"fill":{"buffer":11`},
		"unbounded, pattern fits":  {`"max":1024`, `"multiple":2`},
		"output written in pieces": {`{"copy":{"from":6,"to":7}}`, `{"copy":{"from":6,"to":7}},{"copy":{"from":0,"to":7}}`},
	} {
		if err := plan.Verify(decode(t, edited(t, edits...)), kernels); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestVerifyMutations removes every step and every After in turn: the verifier must find what
// a later step lacks, and nothing may panic.
func TestVerifyMutations(t *testing.T) {
	for i := range decode(t, sampleText(t)).Steps {
		p := decode(t, sampleText(t))
		p.Steps = slices.Delete(p.Steps, i, i+1)
		if err := plan.Verify(p, kernels); err == nil {
			t.Errorf("without step %d: no error", i)
		}
	}
	for i := range decode(t, sampleText(t)).Buffers {
		p := decode(t, sampleText(t))
		if p.Buffers[i].After != nil {
			p.Buffers[i].After = nil
			if err := plan.Verify(p, kernels); err == nil {
				t.Errorf("buffer %d placed at 0: no error", i)
			}
		}
		p = decode(t, sampleText(t))
		p.Buffers = slices.Delete(p.Buffers, i, i+1)
		if err := plan.Verify(p, kernels); err == nil {
			t.Errorf("without buffer %d: no error", i)
		}
	}
}

func TestManyFaults(t *testing.T) {
	p := &plan.Plan{Version: plan.Version, Target: "t", Entry: "e"}
	l := &plan.Launch{Kernel: "k", Grid: plan.Grid(ir.Consts(1, 1, 1)), Block: 1}
	for i := range 1000 {
		p.Buffers = append(p.Buffers, plan.Buffer{Kind: plan.Arena, Size: ir.Const(8)})
		l.Args = append(l.Args, plan.Arg{Buffer: i, Access: plan.Write})
	}
	p.Steps = []plan.Step{{Launch: l}}
	err := plan.Verify(p, nil)
	if n := len(diag.All(err)); n != 20 {
		t.Errorf("%d diagnostics", n)
	}
}

func TestBind(t *testing.T) {
	p := decode(t, sampleText(t))
	b, err := plan.Bind(p, map[string]int64{"n": 40, "m.rows": 24})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int64{640, 16, 4, 1024, 640, 2572, 640, 640, 24, 4, 4}; !slices.Equal(b.Sizes, want) {
		t.Errorf("sizes %v", b.Sizes)
	}
	if want := []int64{0, 0, 0, 0, 0, 768, 3584, 0, 0, 0, 0}; !slices.Equal(b.Offsets, want) || b.Arena != 4224 {
		t.Errorf("offsets %v, arena %d", b.Offsets, b.Arena)
	}
	if s := b.Steps[0]; s.Grid != [3]int64{2, 1, 1} || s.Values[3] != 160 || s.Empty {
		t.Errorf("step 0: %+v", s)
	}
	if s := b.Steps[4]; string(s.Pattern) != "\x01\x00\x00\x00\x00\x00\x00\x00" || s.Count != 3 || s.Empty {
		t.Errorf("step 4: %+v", s)
	}
	m := b.Memory()
	if want := []int64{640, 3212, 3212, 640, 0, 0, 0, 0}; !slices.Equal(m.Live, want) {
		t.Errorf("live bytes %v", m.Live)
	}
	if m.Peak != 3212 || m.Inputs != 640 || m.Outputs != 640+24+4 || m.States != 16+4+1024+4 || m.Total() != 4224+640+668+1048 {
		t.Errorf("%+v", m)
	}
	empty, err := plan.Bind(p, map[string]int64{"n": 0, "m.rows": 8})
	if err != nil || !empty.Steps[0].Empty || !empty.Steps[1].Empty || !empty.Steps[3].Empty || empty.Steps[4].Empty || empty.Arena != 256 {
		t.Errorf("%+v %v", empty, err)
	}
}

func TestArenaSize(t *testing.T) {
	if size, ok := decode(t, sampleText(t)).ArenaSize(); !ok {
		t.Error("no formula")
	} else {
		for n := range int64(70) {
			b, err := plan.Bind(decode(t, sampleText(t)), map[string]int64{"n": n, "m.rows": 8})
			if err != nil {
				t.Fatal(err)
			}
			if v, err := size.Eval(b.Dims); v != b.Arena || err != nil {
				t.Errorf("%s at n = %d is %d %v, the arena has %d", size, n, v, err, b.Arena)
			}
		}
	}
	p := &plan.Plan{Dims: []plan.Dim{{Name: "n", Max: 64}, {Name: "k"}}}
	add := func(size string, after ...int) {
		d, err := ir.ParseDim(size)
		if err != nil {
			t.Fatal(err)
		}
		p.Buffers = append(p.Buffers, plan.Buffer{Kind: plan.Arena, Size: d, After: after})
	}
	add("512*n")
	add("1024*n", 0)
	add("100", 0, 1)
	if size, ok := p.ArenaSize(); !ok || size.String() != "1536*n + 100" {
		t.Errorf("%s %v", size, ok)
	}
	for i := range 60 {
		add(fmt.Sprintf("%d*k*n + %d", i*37%11+1, i), len(p.Buffers)-1, i/2)
	}
	if size, ok := p.ArenaSize(); ok && len(size.String()) > 400 {
		t.Errorf("an unreadable formula: %s", size)
	}
}

func TestBindErrors(t *testing.T) {
	for _, test := range []struct {
		name  string
		edits []string
		n     int64
		code  diag.Code
		word  string
	}{
		{"argument of 32 bits", []string{`"4*n"`, `"3*n*1073741824"`}, 1, diag.RunSize, "multiply at model.py:12"},
		{"negative argument of 32 bits", []string{`"4*n"`, `"-3*n*1073741824"`}, 1, diag.RunSize, "n = 1"},
		{"negative size", []string{`"64*n + 12"`, `"12 - 64*n"`}, 1, diag.RunSize, "buffer 5"},
		{"huge size", []string{`"64*n + 12"`, `"n*n*n*n*n*n*n"`}, 1 << 10, diag.RunSize, "too large"},
		{"large size", []string{`"64*n + 12"`, `"n*n*n*n*n*n"`}, 1 << 10, diag.RunSize, "is not in"},
		{"large arena", []string{`"64*n + 12"`, `"72057594037927936"`}, 1, diag.RunSize, "arena"},
		{"grid", []string{`"grid":["n","2","1"]`, `"grid":["n","65536","1"]`}, 1, diag.RunSize, "kernel wide"},
		{"division by zero", []string{`"64*n + 12"`, `"floordiv(64, n)"`}, 0, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := decode(t, edited(t, test.edits...))
			if err := plan.Verify(p, kernels); err != nil {
				t.Fatal(err)
			}
			_, err := plan.Bind(p, map[string]int64{"n": test.n, "m.rows": 8})
			if test.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var d *diag.Diagnostic
			if !errors.As(err, &d) || d.Code != test.code || !strings.Contains(err.Error(), test.word) {
				t.Errorf("%v, want %s and %q", err, test.code, test.word)
			}
		})
	}
	_, err := plan.Bind(decode(t, sampleText(t)), map[string]int64{"n": 1})
	var d *diag.Diagnostic
	if !errors.As(err, &d) || d.Code != diag.RunDimUnknown || !strings.Contains(err.Error(), "m.rows") {
		t.Error(err)
	}
}

func TestSignature(t *testing.T) {
	p := decode(t, sampleText(t))
	program, e := p.Signature()
	given := []ir.Given{{DType: ir.F32, Shape: []int64{3, 4}}, {DType: ir.U8, Shape: []int64{16}}, {}, {}, {}}
	dims, err := ir.BindDims(program, e, given)
	if err != nil || dims["n"] != 3 || dims["m.rows"] != 16 {
		t.Errorf("%v %v", dims, err)
	}
	for i, d := range p.Dims {
		if again := plan.DimOf(program.Symbols[i]); again != d {
			t.Errorf("%+v became %+v", d, again)
		}
	}
	given[0].Shape[0] = 1025
	if _, err := ir.BindDims(program, e, given); err == nil {
		t.Error("1025 is in bounds")
	}
}

// FuzzPlan feeds any bytes to all that reads plans.
func FuzzPlan(f *testing.F) {
	f.Add([]byte(sampleText(f)))
	f.Add([]byte(controlText(f)))
	f.Add([]byte(meshEdited(f)))
	f.Add([]byte(mapsEdited(f)))
	peer := decode(f, ranksEdited(f))
	for _, test := range damages {
		f.Add([]byte(ranksEdited(f, test.edits...)))
	}
	f.Add([]byte(`{"version":"1.0","target":"t","entry":"e","steps":[{}]}`))
	f.Add([]byte(`{"version":"1.0","dims":[{"name":"n"}],"buffers":[{"kind":"arena","size":"n*n - 1","after":[0]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := plan.Decode(data)
		if err != nil {
			if d := diag.All(err)[0]; d.Code == diag.Bug {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		out, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := plan.Decode(out)
		if err != nil {
			t.Fatalf("encoding does not decode: %v\n%s", err, out)
		}
		second, err := again.Encode()
		if err != nil || !bytes.Equal(out, second) {
			t.Fatalf("encoding is no fixpoint: %v\n%s\n%s", err, out, second)
		}
		_ = p.String()
		if plan.Verify(p, nil) != nil {
			return
		}
		if plan.VerifyRanks(p) == nil {
			plan.VerifyPeers([]*plan.Plan{peer, p, peer, peer})
		}
		p.Fits(1 << 20)
		p.Signature()
		p.ArenaSize()
		dims := map[string]int64{}
		for i, d := range p.Dims {
			dims[d.Name] = int64(i * 3)
		}
		if b, err := plan.Bind(p, dims); err == nil {
			b.Memory()
		}
	})
}
