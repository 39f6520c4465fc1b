package ir

import (
	"fmt"
	"testing"
)

func TestTranspositionOf(t *testing.T) {
	for _, c := range []struct {
		shape, permutation []int64
		want               string // outer, rows, columns, operands; "" for none
	}{
		{[]int64{3, 4}, []int64{1, 0}, "[] [0] [1] [-1]"},
		{[]int64{3, 4}, []int64{0, 1}, ""},
		{[]int64{2, 5, 6, 7}, []int64{0, 2, 3, 1}, "[0] [1 2] [3] [0 -1]"}, // to channels last
		{[]int64{2, 7, 5, 6}, []int64{0, 3, 1, 2}, "[0] [1] [2 3] [0 -1]"}, // and back
		{[]int64{2, 4, 5, 6}, []int64{0, 2, 1, 3}, ""},                     // heads
		{[]int64{1, 5, 1, 7}, []int64{0, 3, 2, 1}, "[] [1] [3] [-1]"},
		{[]int64{4, 3, 2}, []int64{2, 1, 0}, "[1] [0] [2] [-1 1]"},
		{[]int64{2, 3, 4, 5}, []int64{1, 3, 0, 2}, "[0 2] [1] [3] [2 0 -1]"},
	} {
		perm := make([]int, len(c.permutation))
		for i, p := range c.permutation {
			perm[i] = int(p)
		}
		got := ""
		if x, ok := TranspositionOf(Consts(c.shape...), perm); ok {
			got = fmt.Sprint(x.Outer, x.Rows, x.Columns, x.Operands)
		}
		if got != c.want {
			t.Errorf("%v by %v: %q, want %q", c.shape, perm, got, c.want)
		}
	}
}
