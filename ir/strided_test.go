package ir

import (
	"fmt"
	"testing"
)

// TestMatrixOf describes left operands %y of products, views of a parameter %x, in memory.
func TestMatrixOf(t *testing.T) {
	for name, c := range map[string]struct{ x, y, ops, want string }{
		"along k":        {"bf16[4, 6]", "bf16[4, 6]", "slice(%x) {start = [0, 0], limit = [4, 6], stride = [1, 1]}", "4 rows, 6 along k, pitch 6, offset 0"},
		"symbolic":       {"bf16[2, n, 6]", "bf16[2*n, 6]", "reshape(%x) {dims = [2*n, 6]}", "2*n rows, 6 along k, pitch 6, offset 0"},
		"along rows":     {"bf16[6, 4]", "bf16[4, 6]", "transpose(%x) {permutation = [1, 0]}", "4 rows, 6 of k, pitch 4, offset 0"},
		"columns":        {"bf16[4, 10]", "bf16[4, 6]", "slice(%x) {start = [0, 3], limit = [4, 9], stride = [1, 1]}", "4 rows, 6 along k, pitch 10, offset 3"},
		"second rows":    {"bf16[9, 6]", "bf16[4, 6]", "slice(%x) {start = [1, 0], limit = [9, 6], stride = [2, 1]}", "4 rows, 6 along k, pitch 12, offset 6"},
		"second sums":    {"bf16[4, 12]", "bf16[4, 6]", "slice(%x) {start = [0, 0], limit = [4, 12], stride = [1, 2]}", "none"},
		"turned":         {"bf16[4, 2, 6]", "bf16[8, 6]", "transpose(%x) {permutation = [1, 0, 2]}\n  %y: bf16[8, 6] = reshape(%0) {dims = [8, 6]}", "none"},
		"one of several": {"bf16[4, 12]", "bf16[4, 6]", "reshape(%x) {dims = [4, 2, 6]}\n  %1: bf16[4, 1, 6] = slice(%0) {start = [0, 1, 0], limit = [4, 2, 6], stride = [1, 1, 1]}\n  %y: bf16[4, 6] = reshape(%1) {dims = [4, 6]}", "4 rows, 6 along k, pitch 12, offset 6"},
		"broadcast":      {"bf16[6]", "bf16[4, 6]", "broadcast_in_dim(%x) {dims = [4, 6], axes = [1]}", "4 rows, 6 along k, pitch 0, offset 0"},
		"computed":       {"bf16[4, 6]", "bf16[4, 6]", "add(%x, %x)", "none"},
		"dims of one":    {"bf16[1, 4, 1, 6]", "bf16[4, 6]", "reshape(%x) {dims = [4, 6]}", "4 rows, 6 along k, pitch 6, offset 0"},
	} {
		t.Run(name, func(t *testing.T) {
			first := map[string]string{"turned": "%0: bf16[2, 4, 6]", "one of several": "%0: bf16[4, 2, 6]"}[name]
			if first == "" {
				first = "%y: " + c.y
			}
			rows := c.y[len("bf16[") : len(c.y)-len(", 6]")]
			text := fmt.Sprintf("dim n in 1..9\nentry forward(%%x \"x\": %s, %%w \"w\": bf16[8, 6]) {\n  %s = %s\n"+
				"  %%p: bf16[%s, 8] = dot_general(%%y, %%w) {lhs_contract = [1], rhs_contract = [1], to = bf16}\n  return %%p \"p\"\n}\n", c.x, first, c.ops, rows)
			p, err := ParseProgram("test", []byte(text))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			e := p.Entries[0]
			got := "none"
			if m, ok := MatrixOf(e, &e.Body, e.Body.Ops[len(e.Body.Ops)-1], 0); ok {
				along := "of"
				if m.AlongK {
					along = "along"
				}
				got = fmt.Sprintf("%s rows, %s %s k, pitch %s, offset %s", m.Rows, m.K, along, m.Pitch, m.Offset)
				if m.Param != e.Body.Params[0] {
					t.Errorf("the parameter is %d", m.Param)
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestMatrixBatch: what all batch indices read alike has no distance there.
func TestMatrixBatch(t *testing.T) {
	text := `entry forward(%q "q": bf16[2, 5, 4, 8], %k "k": bf16[2, 3, 8]) {
  %0: bf16[2, 4, 5, 8] = transpose(%q) {permutation = [0, 2, 1, 3]}
  %1: bf16[2, 4, 3, 8] = broadcast_in_dim(%k) {dims = [2, 4, 3, 8], axes = [0, 2, 3]}
  %2: bf16[2, 4, 5, 3] = dot_general(%0, %1) {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [3], to = bf16}
  return %2 "p"
}
`
	p, err := ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e := p.Entries[0]
	for i, want := range []string{"rows 5 pitch 32 batch [160, 8]", "rows 3 pitch 8 batch [24, 0]"} {
		m, ok := MatrixOf(e, &e.Body, e.Body.Ops[2], i)
		if got := fmt.Sprintf("rows %s pitch %s batch %s", m.Rows, m.Pitch, DimList(m.Batch)); !ok || got != want {
			t.Errorf("operand %d: %v, %s, want %s", i, ok, got, want)
		}
	}
}
