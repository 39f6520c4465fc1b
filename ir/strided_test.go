package ir

import (
	"fmt"
	"strings"
	"testing"
)

// extentsText shows extents as SIZE by STRIDE.
func extentsText(extents []Extent) string {
	texts := make([]string, len(extents))
	for i, x := range extents {
		texts[i] = fmt.Sprintf("%s by %s", x.Size, x.Stride)
	}
	return strings.Join(texts, ", ")
}

// TestMatrixOf describes in memory left operands %y of products, which are views of a parameter %x.
func TestMatrixOf(t *testing.T) {
	for name, c := range map[string]struct{ x, rows, ops, want string }{
		"along k":     {"[4, 6]", "4", "%y: bf16[4, 6] = reshape(%x) {dims = [4, 6]}", "rows 4 by 6, k 6 by 1, from 0"},
		"symbolic":    {"[2, n, 6]", "2*n", "%y: bf16[2*n, 6] = reshape(%x) {dims = [2*n, 6]}", "rows 2*n by 6, k 6 by 1, from 0"},
		"along rows":  {"[6, 4]", "4", "%y: bf16[4, 6] = transpose(%x) {permutation = [1, 0]}", "rows 4 by 1, k 6 by 4, from 0"},
		"columns":     {"[4, 10]", "4", "%y: bf16[4, 6] = slice(%x) {start = [0, 3], limit = [4, 9], stride = [1, 1]}", "rows 4 by 10, k 6 by 1, from 3"},
		"second rows": {"[9, 6]", "4", "%y: bf16[4, 6] = slice(%x) {start = [1, 0], limit = [9, 6], stride = [2, 1]}", "rows 4 by 12, k 6 by 1, from 6"},
		"second sums": {"[4, 12]", "4", "%y: bf16[4, 6] = slice(%x) {start = [0, 0], limit = [4, 12], stride = [1, 2]}", "rows 4 by 12, k 6 by 2, from 0"},
		"turned rows": {"[4, 2, 6]", "8", "%0: bf16[2, 4, 6] = transpose(%x) {permutation = [1, 0, 2]}\n  %y: bf16[8, 6] = reshape(%0) {dims = [8, 6]}",
			"rows 2 by 6, 4 by 12, k 6 by 1, from 0"},
		"heads": {"[2, n, 3]", "n", "%0: bf16[n, 2, 3] = transpose(%x) {permutation = [1, 0, 2]}\n  %y: bf16[n, 6] = reshape(%0) {dims = [n, 6]}",
			"rows n by 3, k 2 by 3*n, 3 by 1, from 0"},
		"one of several": {"[4, 12]", "4", "%0: bf16[4, 2, 6] = reshape(%x) {dims = [4, 2, 6]}\n  %1: bf16[4, 1, 6] = slice(%0) {start = [0, 1, 0], limit = [4, 2, 6], stride = [1, 1, 1]}\n" +
			"  %y: bf16[4, 6] = reshape(%1) {dims = [4, 6]}", "rows 4 by 12, k 6 by 1, from 6"},
		"part of joined": {"[4, 2, 6]", "4", "%0: bf16[2, 4, 6] = transpose(%x) {permutation = [1, 0, 2]}\n  %1: bf16[8, 6] = reshape(%0) {dims = [8, 6]}\n" +
			"  %y: bf16[4, 6] = slice(%1) {start = [2, 0], limit = [6, 6], stride = [1, 1]}", "none"},
		"broadcast":   {"[6]", "4", "%y: bf16[4, 6] = broadcast_in_dim(%x) {dims = [4, 6], axes = [1]}", "rows 4 by 0, k 6 by 1, from 0"},
		"dims of one": {"[1, 4, 1, 6]", "4", "%y: bf16[4, 6] = reshape(%x) {dims = [4, 6]}", "rows 4 by 6, k 6 by 1, from 0"},
		"computed":    {"[4, 6]", "4", "%y: bf16[4, 6] = add(%x, %x)", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("dim n in 1..9\nentry forward(%%x \"x\": bf16%s, %%w \"w\": bf16[8, 6]) {\n  %s\n"+
				"  %%p: bf16[%s, 8] = dot_general(%%y, %%w) {lhs_contract = [1], rhs_contract = [1], to = bf16}\n  return %%p \"p\"\n}\n", c.x, c.ops, c.rows)
			p, err := ParseProgram("test", []byte(text))
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			e := p.Entries[0]
			got := "none"
			if m, ok := MatrixOf(e, &e.Body, e.Body.Ops[len(e.Body.Ops)-1], 0); ok {
				got = fmt.Sprintf("rows %s, k %s, from %s", extentsText(m.Rows), extentsText(m.K), m.Offset)
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

// TestMatrixBatch: heads that share keys, as exporters write them, are a factor that was broadcast.
func TestMatrixBatch(t *testing.T) {
	text := `entry forward(%q "q": bf16[2, 5, 4, 64], %k "k": bf16[2, 2, 3, 64]) {
  %0: bf16[2, 4, 5, 64] = transpose(%q) {permutation = [0, 2, 1, 3]}
  %1: bf16[2, 2, 2, 3, 64] = broadcast_in_dim(%k) {dims = [2, 2, 2, 3, 64], axes = [0, 1, 3, 4]}
  %2: bf16[2, 4, 3, 64] = reshape(%1) {dims = [2, 4, 3, 64]}
  %3: bf16[2, 4, 5, 3] = dot_general(%0, %2) {lhs_batch = [0, 1], rhs_batch = [0, 1], lhs_contract = [3], rhs_contract = [3], to = bf16}
  return %3 "p"
}
`
	p, err := ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e := p.Entries[0]
	for i, want := range []string{"rows 5 by 256 batch 2 by 1280; 4 by 64", "rows 3 by 64 batch 2 by 384; 2 by 192, 2 by 0"} {
		m, ok := MatrixOf(e, &e.Body, e.Body.Ops[3], i)
		if got := fmt.Sprintf("rows %s batch %s; %s", extentsText(m.Rows), extentsText(m.Batch[0]), extentsText(m.Batch[1])); !ok || got != want {
			t.Errorf("operand %d: %v, %s, want %s", i, ok, got, want)
		}
	}
	if !CopiesInBulk(p, e, &e.Body) {
		t.Error("not copied in bulk")
	}
}
