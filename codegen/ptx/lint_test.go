package ptx

import (
	"strings"
	"testing"
)

const prologue = ".version 8.0\n.target sm_90a\n.address_size 64\n"

// entry wraps instructions in a kernel with a few registers.
func entry(body string) string {
	return prologue + `.visible .entry k(.param .u64 k_param_0)
{
	.reg .pred %p<9>;
	.reg .b16 %rs<9>;
	.reg .b32 %r<9>;
	.reg .f32 %f<9>;
	.reg .b64 %rd<9>;
	.reg .f64 %fd<9>;
` + body + "\n}\n"
}

func TestLint(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"add.rn.f32 %f1, %f2, %f3; fma.rn.f32 %f1, %f2, %f3, %f4; add.s32 %r1, %r2, %r3; ret;", ""},
		{"mul.rz.f64 %fd1, %fd2, %fd3; neg.f32 %f1, %f2; sub.rn.bf16 %rs1, %rs2, %rs3;", ""},
		{"add.f32 %f1, %f2, %f3;", "line 12, column 1: float add without rounding"},
		{"mul.ftz.f32 %f1, %f2, %f3;", "float mul without rounding"},
		{"sub.f64 %fd1, %fd2, %fd3;", "float sub without rounding"},
		{"add.f16x2 %r1, %r2, %r3;", "float add without rounding"},
		{"mul.bf16 %rs1, %rs2, %rs3;", "float mul without rounding"},
		{".local .align 8 .b8 __local_depot0[8];", "local memory: __local_depot0"},
		{"st.local.u32 [%rd1], %r1;", "local memory: st.local.u32"},
		{"call.uni (%r1), f, (%r2);", "call"},
		{"add.f32 %f1, %f2, %f3;\nmul.f32 %f1, %f2, %f3;", "line 13, column 1: float mul"},
		{"add.f32 %f1 %f2;", `expected ";"`},
	} {
		err := Lint(entry(c.body))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", c.body, err, c.want)
		}
	}
}
