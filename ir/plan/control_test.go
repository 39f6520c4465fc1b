package plan_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/plan"
)

func controlText(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("testdata/control.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestControlRoundTrip reads and writes a plan with nested steps, as JSON and as text.
func TestControlRoundTrip(t *testing.T) {
	p := decode(t, controlText(t))
	if err := plan.Verify(p, nil); err != nil {
		t.Fatal(err)
	}
	out, err := p.Encode()
	if err != nil || string(out) != controlText(t) {
		t.Errorf("%v, encoded:\n%s", err, out)
	}
	const file = "testdata/control.txt"
	if *update {
		if err := os.WriteFile(file, []byte(p.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || p.String() != string(want) {
		t.Errorf("%v, got\n%s", err, p)
	}
	for i, want := range map[int]string{3: "while {", 6: "launch odd", 7: "if 6 {", 8: "launch add", 9: "copy 5 to 7", 12: "copy 8 to 2"} {
		if got := p.Flat()[i].String(); !strings.HasPrefix(got, want) {
			t.Errorf("step %d is %s, want %s", i, got, want)
		}
	}
	if again := decode(t, string(out)); !reflect.DeepEqual(again, p) {
		t.Errorf("%+v, want %+v", again, p)
	}
}

// TestControlEmpty writes lists without steps as lists.
func TestControlEmpty(t *testing.T) {
	p := &plan.Plan{Version: plan.Version, Target: "t", Entry: "e", Steps: []plan.Step{
		{If: &plan.If{}}, {While: &plan.While{}}, {If: &plan.If{}, Copy: &plan.Copy{To: 1}},
	}}
	out, err := p.Encode()
	if err != nil || strings.Contains(string(out), "null") && !strings.Contains(string(out), `"copy"`) {
		t.Errorf("%s %v", out, err)
	}
	second, err := decode(t, string(out)).Encode()
	if err != nil || len(second) == 0 {
		t.Errorf("%s %v", second, err)
	}
}

// TestVerifyControl breaks the rules where control flow matters.
func TestVerifyControl(t *testing.T) {
	for _, test := range []struct {
		rule, name string
		edits      []string
		words      []string
	}{
		{"P5", "two kinds", []string{`{"copy":{"from":5,"to":7}}]}}`, `{"copy":{"from":5,"to":7}}]},"copy":{"from":5,"to":7}}`}, []string{"step 7", "2 kinds"}},
		{"P6", "predicate of an if", []string{`"predicate":6`, `"predicate":10`}, []string{"step 7"}},
		{"P6", "predicate of a while", []string{`"predicate":4`, `"predicate":-1`}, []string{"step 3"}},
		{"P6", "inside", []string{`"from":5,"to":7`, `"from":5,"to":11`}, []string{"step 9"}},
		{"P7", "one branch", []string{`{"copy":{"from":5,"to":7}}`, ``}, []string{"step 9", "buffer 7"}},
		{"P7", "a body may not run", []string{`{"copy":{"from":8,"to":2}}`, `{"copy":{"from":7,"to":2}}`}, []string{"step 12", "buffer 7"}},
		{"P7", "predicate", []string{`{"buffer":9,"access":"r"},{"buffer":4,"access":"w"}`, `{"buffer":9,"access":"r"}`}, []string{"step 4", "buffer 4"}},
		{"P7", "what the body writes, in the condition", []string{`{"buffer":9,"access":"r"}`, `{"buffer":5,"access":"r"}`}, []string{"step 4", "buffer 5"}},
		{"P7", "what the other branch writes", []string{`"from":5,"to":7`, `"from":7,"to":8`}, []string{"step 9", "buffer 7"}},
		{"P8", "inside", []string{`{"copy":{"from":5,"to":7}}`, `{"copy":{"from":5,"to":7}},{"copy":{"from":5,"to":0}}`}, []string{"step 10"}},
		{"P9", "in a body only", []string{"{\"copy\":{\"from\":0,\"to\":8}},\n ", ``, `{"buffer":8,"access":"r"}`, `{"buffer":0,"access":"r"}`}, []string{"output 0"}},
		{"P10", "carried", []string{`"size":"1","after":[3],`, `"size":"1",`}, []string{"buffer 4", "buffer 3"}},
		{"P10", "from outside, read at the start of each iteration", []string{`"after":[3,4,5,6,7]`, `"after":[3,4,6,7]`}, []string{"buffer 9", "buffer 5"}},
		{"P10", "read by the next iteration", []string{`{"buffer":5,"access":"r"},{"buffer":0,"access":"r"}`, `{"buffer":5,"access":"r"},{"buffer":7,"access":"r"}`, `{"buffer":7,"access":"w"}`, `{"buffer":8,"access":"w"}`,
			`{"copy":{"from":0,"to":8}}`, `{"copy":{"from":0,"to":8}},{"copy":{"from":0,"to":7}}`}, []string{"buffer 7"}},
		{"P10", "between branches and what follows", []string{`"size":"4*n","after":[3,5],"name":"next y"`, `"size":"4*n","after":[3],"name":"next y"`}, []string{"buffer 7", "buffer 5"}},
		{"P12", "inside", []string{`"from":5,"to":7`, `"from":5,"to":6`}, []string{"step 9"}},
		{"P14", "predicate of an if", []string{`"size":"1","after":[3,5]`, `"size":"8","after":[3,5]`}, []string{"step 7", "8 bytes"}},
		{"P14", "predicate of a while", []string{`"predicate":4`, `"predicate":3`}, []string{"step 3"}},
	} {
		t.Run(test.rule+" "+test.name, func(t *testing.T) {
			text := controlText(t)
			for i := 0; i < len(test.edits); i += 2 {
				if !strings.Contains(text, test.edits[i]) {
					t.Fatalf("no %s", test.edits[i])
				}
				text = strings.Replace(text, test.edits[i], test.edits[i+1], 1)
			}
			err := plan.Verify(decode(t, text), nil)
			t.Log(err)
			found := slices.ContainsFunc(diag.All(err), func(d *diag.Diagnostic) bool {
				ok := strings.HasPrefix(d.Message, test.rule+": ")
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
}

// TestVerifyControlAccepts has what may share memory: values of one iteration whose steps do
// not overlap, and those of the two branches of an if.
func TestVerifyControlAccepts(t *testing.T) {
	p := decode(t, controlText(t))
	scratch := func(after ...int) int {
		p.Buffers = append(p.Buffers, plan.Buffer{Kind: plan.Arena, Size: p.Buffers[7].Size, After: after})
		return len(p.Buffers) - 1
	}
	choice := p.Steps[3].While.Body[2].If
	for _, branch := range []*[]plan.Step{&choice.Then, &choice.Else} {
		b := scratch(3, 5, 7, 9)
		*branch = append([]plan.Step{{Copy: &plan.Copy{From: 0, To: b}}, {Copy: &plan.Copy{From: b, To: 8}}}, *branch...)
	}
	if err := plan.Verify(p, nil); err != nil {
		t.Error(err)
	}
}

// TestVerifyDepth bounds how deep steps are nested.
func TestVerifyDepth(t *testing.T) {
	for depth, ok := range map[int]bool{1: true, 32: true, 33: false, 2000: false} {
		var steps []plan.Step
		for i := range depth {
			if i%2 == 0 {
				steps = []plan.Step{{If: &plan.If{Then: steps}}}
			} else {
				steps = []plan.Step{{While: &plan.While{Body: steps}}}
			}
		}
		p := &plan.Plan{Version: plan.Version, Target: "t", Entry: "e", Steps: steps,
			Inputs: []plan.Tensor{{Name: "p", DType: "i1"}}, Buffers: []plan.Buffer{{Kind: plan.Input, Size: ir.Const(1)}}}
		if err := plan.Verify(p, nil); (err == nil) != ok || !ok && !strings.Contains(err.Error(), "P5: ") {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

// TestVerifyControlMutations removes every nested step in turn.
func TestVerifyControlMutations(t *testing.T) {
	lists := func(p *plan.Plan) []*[]plan.Step {
		loop := p.Steps[3].While
		choice := loop.Body[2].If
		return []*[]plan.Step{&p.Steps, &loop.Condition, &loop.Body, &choice.Then, &choice.Else}
	}
	for n, list := range lists(decode(t, controlText(t))) {
		for i := range *list {
			p := decode(t, controlText(t))
			of := lists(p)[n]
			removed := (*of)[i].String()
			*of = slices.Delete(slices.Clone(*of), i, i+1)
			err := plan.Verify(p, nil)
			harmless := strings.Contains(removed, "copy 7 to 8") || strings.Contains(removed, "launch next") || strings.HasPrefix(removed, "while") || strings.Contains(removed, "copy 8 to 2")
			if err == nil && !harmless {
				t.Errorf("without %s: no error", removed)
			}
		}
	}
}

func TestBindControl(t *testing.T) {
	p := decode(t, controlText(t))
	b, err := plan.Bind(p, map[string]int64{"n": 70})
	if err != nil {
		t.Fatal(err)
	}
	if len(b.Steps) != 13 || b.Steps[8].Grid != [3]int64{70, 1, 1} {
		t.Errorf("%+v", b.Steps)
	}
	// i and limit live all along the loop; half, odd and next y in parts of its body.
	want := []int64{8, 16, 16, 16, 17, 296, 297, 297, 576, 576, 296, 16, 0}
	if m := b.Memory(); !slices.Equal(m.Live, want) {
		t.Errorf("live bytes %v", m.Live)
	}
	_, err = plan.Bind(p, map[string]int64{"n": 1 << 40})
	if err == nil {
		t.Error("a nested grid of 2^40 blocks")
	}
}

// TestManyWhiles holds the work for loops in loops, which hostile plans have, in bounds.
func TestManyWhiles(t *testing.T) {
	p := &plan.Plan{Version: plan.Version, Target: "t", Entry: "e",
		Inputs: []plan.Tensor{{Name: "p", DType: "i1"}}, Buffers: []plan.Buffer{{Kind: plan.Input, Size: ir.Const(1)}}}
	for i := range 20000 {
		p.Buffers = append(p.Buffers, plan.Buffer{Kind: plan.Arena, Size: ir.Const(1), Name: fmt.Sprint(i)})
		p.Steps = append(p.Steps, plan.Step{While: &plan.While{Condition: []plan.Step{{Copy: &plan.Copy{From: 0, To: i + 1}}}, Predicate: i + 1}})
	}
	if err := plan.Verify(p, nil); err != nil {
		t.Error(err)
	}
}
