package codegen

import (
	"testing"

	"weft/ir"
)

func TestFLOPs(t *testing.T) {
	for _, c := range []struct{ name, params, args, body, result, want string }{
		{"no contraction", `%0 "x": f32[n, 4]`, `%1: f32[n, 4]`, `%2: f32[n, 4] = negate(%1)`, "f32[n, 4]", "0"},
		{"batched dot", `%0 "x": f32[n, 4, 8]`, `%1: f32[n, 4, 8]`,
			`%2: f32[n, 4, 4] = dot_general(%1, %1) {lhs_batch = [0], rhs_batch = [0], lhs_contract = [2], rhs_contract = [2], to = f32}`,
			"f32[n, 4, 4]", "256*n"},
		{"convolution", `%0 "x": f32[2, 5, 9]`, `%1: f32[2, 5, 9]`,
			`%2: f32[2, 2, 1] = convolution(%1, %1) {strides = [1], low = [0], high = [0], lhs_dilation = [1], rhs_dilation = [1], groups = 1}`,
			"f32[2, 2, 1]", "360"},
		{"attention", `%0 "x": f32[n, 2, 16, 8]`, `%1: f32[n, 2, 16, 8]`, `%2: f32[n, 2, 16, 8] = attention(%1, %1, %1) {scale = 1.0}`,
			"f32[n, 2, 16, 8]", "16384*n"},
		{"causal attention", `%0 "x": f32[n, 2, 16, 8]`, `%1: f32[n, 2, 16, 8]`,
			`%2: f32[n, 2, 16, 8] = attention(%1, %1, %1) {scale = 1.0, causal = true}`, "f32[n, 2, 16, 8]", "8192*n"},
	} {
		text := "dim n in 1..\nentry f(" + c.params + ") {\n%3: " + c.result + " = kernel(%0) {} do (" + c.args + ") {\n" + c.body + "\nyield %2\n}\nreturn %3 \"y\"\n}\n"
		p, err := ir.ParseProgram(c.name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		e := p.Entries[0]
		if got := flops(e, e.Body.Ops[0]).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
