package fx

import (
	"strings"
	"testing"
)

func TestParseExpr(t *testing.T) {
	s0, s1 := "Symbol('s0', positive=True, integer=True)", "Symbol('s1', integer=True)"
	for text, want := range map[string]string{
		"Integer(7)":                   "7",
		"Integer(-7)":                  "-7",
		s0:                             "s0",
		"Mul(Integer(64), " + s0 + ")": "64*s0",
		"Add(" + s0 + ", Integer(1), " + s1 + ")":                      "s0 + s1 + 1",
		"Pow(" + s0 + ", Integer(2))":                                  "s0*s0",
		"FloorDiv(Add(" + s0 + ", Integer(3)), Integer(4))":            "floordiv(s0 + 3, 4)",
		"FloorDiv(Mul(Integer(6), " + s0 + "), Integer(3))":            "2*s0",
		"Mod(" + s0 + ", Integer(8))":                                  "mod(s0, 8)",
		"PythonMod(" + s0 + ", Integer(8))":                            "mod(s0, 8)",
		"Max(Integer(1), " + s0 + ")":                                  "max(1, s0)",
		"Min(Integer(64), Mul(Integer(64), " + s0 + "))":               "min(64, 64*s0)",
		"CeilDiv(" + s0 + ", Integer(2))":                              "-floordiv(-s0, 2)",
		"Mul(Integer(2), Add(" + s0 + ", Integer(1)), evaluate=False)": "2*s0 + 2",
		"ModularIndexing(" + s0 + ", Integer(2), Integer(5))":          "mod(floordiv(s0, 2), 5)",
		"TruncToInt(" + s0 + ")":                                       "s0",
		`Symbol("u0", integer=True)`:                                   "u0",
		"s0":                                                           "s0",
		"96*s1":                                                        "96*s1",
		"-2*s0 + s1 - 1":                                               "-2*s0 + s1 - 1",
		"s0**2*(s1 + 1)":                                               "s0*s0 + s0*s0*s1",
		"((s0 - 1)//2) + 1":                                            "floordiv(s0 + 1, 2)",
		"Max(1, s0)":                                                   "max(1, s0)",
		"PythonMod(s0, 8) + s1 % 4":                                    "mod(s0, 8) + mod(s1, 4)",
		"-s0**2":                                                       "-s0*s0",
	} {
		d, err := parseExpr(text, nil)
		if err != nil || d.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, d, err, want)
		}
	}
}

func TestParseExprErrors(t *testing.T) {
	nested := strings.Repeat("Add(", 200) + "Integer(1)" + strings.Repeat(")", 200)
	sums := "Add(Symbol('a'), Symbol('b'), Symbol('c'), Symbol('d'), Symbol('e'), Symbol('f'), Symbol('g'), Symbol('h'))"
	for text, want := range map[string]string{
		"":                                 "expected a function",
		"Sin(Integer(1))":                  "unknown function Sin",
		"Integer(x)":                       "malformed Integer",
		"Integer(1) Integer(2)":            "more after the expression",
		"Symbol(s0)":                       "malformed Symbol",
		"Symbol('0')":                      "malformed Symbol",
		"Symbol('s0', positive)":           "malformed Symbol",
		"Add(Integer(1)":                   "expected , or )",
		"Mod(Integer(1))":                  "Mod of 1 operands",
		"FloorDiv(Integer(1), Integer(0))": "FloorDiv by zero",
		"Pow(Symbol('s0'), Integer(-1))":   "power",
		"Pow(Symbol('s0'), Integer(99))":   "power",
		nested:                             "nested too deep",
		strings.Repeat("-", 200) + "s0":    "nested too deep",
		strings.Repeat("(", 200) + "s0":    "nested too deep",
		"s0/2":                             "more after the expression",
		"s0//0":                            "FloorDiv by zero",
		"s0 +":                             "expected a function",
		"(s0":                              "expected )",
		"int_oo":                           "is no size",
		"2.5":                              "is no size",
		"Pow(" + sums + ", Integer(8))":    "too large",
	} {
		if d, err := parseExpr(text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %s, %v; want %q", text, d, err, want)
		}
	}
}

func TestLocation(t *testing.T) {
	frames := func(paths ...string) string {
		var b strings.Builder
		for i, p := range paths {
			b.WriteString(`  File "` + p + `", line ` + string(rune('1'+i)) + ", in forward\n    y = f(x)\n")
		}
		return b.String()
	}
	for name, c := range map[string]struct{ trace, modules, want string }{
		"installed package": {frames("/home/a/run.py", "/usr/lib/python3/site-packages/torch/nn/modules/linear.py"),
			"L__self__,,torch.nn.modules.container.Sequential;L__self___0,h.0.attn,torch.nn.modules.linear.Linear", "h.0.attn (torch/nn/modules/linear.py:2)"},
		"file of the class": {frames("/src/checkout/models/gpt/block.py"), "k,block,models.gpt.block.Block", "block (models/gpt/block.py:1)"},
		"own file":          {frames("/home/b/work/net.py"), "k,a,__main__.Net", "a (net.py:1)"},
		"relative file":     {frames("work/net.py"), "k,a,__main__.Net", "a (net.py:1)"},
		"windows":           {frames(`C:\x\site-packages\pkg\m.py`, `C:\x\net.py`), "", "net.py:2"},
		"root module":       {frames("/a/net.py"), "L__self__,,__main__.Net", "net.py:1"},
		"generated code":    {frames("/a/net.py", "<eval_with_key>.5 from x.py:3 in y"), "", "net.py:1"},
		"no trace":          {"", "k,a.b,__main__.Net", "a.b"},
		"nothing":           {"", "", "node"},
		"no module":         {frames("/a/net.py"), "_empty_nn_module_stack_from_metadata_hook,x,y", "net.py:1"},
		"malformed":         {`File "`, "a;b,c;;", "node"},
	} {
		if got := location(&node{name: "node", stackTrace: c.trace, moduleStack: c.modules}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
