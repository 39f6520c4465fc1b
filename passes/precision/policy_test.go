package precision

import (
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
)

func TestParse(t *testing.T) {
	tests := []struct{ text, want string }{
		{"bf16", "compute=bf16,params=f32,reduce=f32"},
		{"fp16", "compute=fp16,params=f32,reduce=f32"},
		{"float16,output=bf16", "compute=fp16,params=f32,reduce=f32,output=bf16"},
		{"f32", "compute=f32,params=f32,reduce=f32"},
		{"tf32", "compute=tf32,params=f32,reduce=f32"},
		{"compute=tf32,lm_head=f32", "compute=tf32,params=f32,reduce=f32,lm_head=f32"},
		{"compute=bf16, params=bf16, reduce=bf16", "compute=bf16,params=bf16,reduce=bf16"},
		{"bf16,op:attention=f32,layers.*.mlp=f32,embed=bf16", "compute=bf16,params=f32,reduce=f32,op:attention=f32,layers.*.mlp=f32,embed=bf16"},
	}
	for _, test := range tests {
		p, err := Parse(test.text)
		if err != nil || p.String() != test.want {
			t.Errorf("%s: %q, %v", test.text, p, err)
		}
		if again, err := Parse(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("%s: %q reads back as %q, %v", test.text, p, again, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "no part"},
		{"bf17", "did you mean bf16"},
		{"int8", "no type"},
		{"compute=bf16,fp16", "no part"},
		{"bf16,compute=bf16", "given twice"},
		{"bf16,params=fp16", "params is fp16 where compute is bf16"},
		{"f32,reduce=bf16", "reduce is bf16 where compute is f32"},
		{"bf16,lm_head=fp16", "a rule gives f32"},
		{"bf16,lm_head=tf32", "no type"},
		{"bf16,op:attentoin=f32", "did you mean attention"},
		{"bf16,=f32", "without a name"},
		{"bf16,", "no part"},
	}
	for _, test := range tests {
		_, err := Parse(test.text)
		if err == nil || !strings.Contains(err.Error(), test.want) || diag.All(err)[0].Code != diag.BadPrecision || diag.All(err)[0].Suggestion == "" {
			t.Errorf("%s: %v", test.text, err)
		}
	}
}

func TestMatchModule(t *testing.T) {
	tests := []struct {
		pattern, loc string
		want         bool
	}{
		{"lm_head", "m.lm_head (torch/nn/modules/linear.py:134)", true},
		{"m", "m.lm_head (linear.py:1)", true},
		{"head", "m.lm_head (linear.py:1)", false},
		{"*head", "m.lm_head (linear.py:1)", true},
		{"layers.*.mlp", "m.layers.3.mlp.up_proj (linear.py:1)", true},
		{"layers.*.mlp", "m.layers.3.attn (linear.py:1)", false},
		{"layers.3", "m.layers.30.mlp (linear.py:1)", false},
		{"layers.3", "m.layers.3.mlp (linear.py:1)", true},
		{"h.0/attn", "/transformer/h.0/attn/MatMul", true},
		{"*", "anything", true},
		{"*", "", false},
		{"a*b*c", "aXbYc", true},
		{"a*b*c", "aXcYb", false},
		{"aba*ba", "aba", false},
	}
	for _, test := range tests {
		if got := matchModule(test.pattern, moduleOf(test.loc)); got != test.want {
			t.Errorf("%q and %q: %v", test.pattern, test.loc, got)
		}
	}
}

const rules = `state @"w": f32[8, 8] parameter
entry forward(%x "x": f32[8, 8], %w @"w": f32[8, 8]) {
  %y: f32[8, 8] = dot_general(%x, %w) {lhs_contract = [1], rhs_contract = [0], to = f32} loc("m.lm_head (a.py:1)")
  %z: f32[8, 8] = dot_general(%y, %w) {lhs_contract = [1], rhs_contract = [0], to = f32} loc("m.body (a.py:2)")
  return %z "z"
}
`

func parse(t *testing.T, text string) *ir.Program {
	t.Helper()
	p, err := ir.ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNoSuchModule(t *testing.T) {
	policy, err := Parse("bf16,lm_hed=f32")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Run(parse(t, rules), policy)
	if err == nil || diag.All(err)[0].Code != diag.NoSuchParameter || !strings.Contains(err.Error(), "did you mean lm_head") {
		t.Errorf("%v", err)
	}
}

// A policy that has nothing to do says so.
func TestUnchanged(t *testing.T) {
	for _, text := range []string{"f32", "bf16,op:dot_general=f32", "bf16,m=f32"} {
		policy, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p := parse(t, rules)
		r, err := Run(p, policy)
		if err != nil || r.Changed || p.String() != parse(t, rules).String() || len(r.Rows) != 2 {
			t.Errorf("%s: %v, %v\n%s", text, r, err, p)
		}
	}
	if d := Unchanged(Policy{Compute: ir.BF16, Params: ir.F32, Reduce: ir.F32}); d.Severity != diag.Note || !strings.Contains(d.Message, "compute=bf16") {
		t.Errorf("%v", d)
	}
}

// Check finds what a pass may not do.
func TestCheck(t *testing.T) {
	const before = `state @"w": f32[8, 8] parameter
entry forward(%x "x": f32[8, 8], %w @"w": f32[8, 8]) {
  %y: f32[8, 8] = dot_general(%x, %w) {lhs_contract = [1], rhs_contract = [0], to = f32}
  %z: f32[8, 8] = exponential(%y)
  return %z "z"
}
`
	const after = `state @"w": f32[8, 8] parameter
entry forward(%x "x": f32[8, 8], %w @"w": f32[8, 8]) {
  %a: bf16[8, 8] = convert(%x) {to = bf16}
  %b: bf16[8, 8] = convert(%w) {to = bf16}
  %y: f32[8, 8] = dot_general(%a, %b) {lhs_contract = [1], rhs_contract = [0], to = f32}
  %z: f32[8, 8] = exponential(%y)
  return %z "z"
}
`
	policy := Policy{Compute: ir.BF16, Params: ir.F32, Reduce: ir.F32}
	if err := Check(parse(t, before), parse(t, after), policy); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ rule, old, new string }{
		{"D1", "  %a: bf16[8, 8] = convert(%x) {to = bf16}\n", ""},
		{"D1", `return %z "z"`, "%n: bf16[8, 8] = convert(%z) {to = bf16}\n  return %n \"z\""},
		{"D1", `state @"w": f32[8, 8]`, `state @"w": bf16[8, 8]`},
		{"D2", `return`, "%n: f64[8, 8] = convert(%z) {to = f64}\n  return"},
		{"D3", "(%a, %b)", "(%x, %w)"},
		{"D4", "return", "%n: bf16[8, 8] = exponential(%a)\n return"},
		{"D5", "return", "%n: f32[8, 8] = convert(%a) {to = f32}\n %m: bf16[8, 8] = convert(%n) {to = bf16} return"},
	}
	for _, test := range tests {
		text := strings.Replace(after, test.old, test.new, 1)
		switch {
		case strings.HasPrefix(test.new, "state"):
			text = strings.Replace(text, `%w @"w": f32[8, 8]`, `%w @"w": bf16[8, 8]`, 1)
			text = strings.Replace(text, "  %b: bf16[8, 8] = convert(%w) {to = bf16}\n", "", 1)
			text = strings.Replace(text, "%b", "%w", 1)
		case test.new == "":
			text = strings.Replace(text, `%x "x": f32[8, 8]`, `%a "x": bf16[8, 8]`, 1)
		}
		err := Check(parse(t, before), parse(t, text), policy)
		if err == nil || !strings.Contains(err.Error(), test.rule+":") {
			t.Errorf("%s: %v\n%s", test.rule, err, text)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"bf16", "compute=tf32", "bf16,op:attention=f32,layers.*.mlp=f32,output=bf16", "a=f32,=,,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("%q reads as %q, which reads as %q: %v", text, p, again, err)
		}
		for _, r := range p.Rules {
			matchModule(r.Module, text)
		}
	})
}
