package passes

import (
	"strings"
	"testing"

	"weft/ir"
)

// What is kept for a failed pass is the program before it, with the passes from it on; for a later step the
// scheduled program.
func TestBefore(t *testing.T) {
	p, err := ir.ParseProgram("test", []byte(`entry forward(%x "x": f32[4]) {
  %a: f32[4] = negate(%x)
  %b: f32[4] = exponential(%a)
  return %b "y"
}
`))
	if err != nil {
		t.Fatal(err)
	}
	given := p.String()
	before, left := Before(p, nil, Options{Disabled: []string{"prepare"}}, Place("schedule"))
	if strings.Join(left, " ") != "schedule memory" || !strings.Contains(before.String(), "kernel(") || p.String() != given {
		t.Errorf("%v\n%s", left, before)
	}
	before, left = Before(p, nil, Options{Only: []string{"canonicalize", "fuse", "memory"}}, Place("memory"))
	if strings.Join(left, " ") != "memory" || !strings.Contains(before.String(), "kernel(") {
		t.Errorf("%v\n%s", left, before)
	}
	for _, place := range []string{Place("canonicalize"), "import"} {
		if before, left = Before(p, nil, Options{}, place); len(left) != len(Table()) || before != p {
			t.Errorf("%s: %v\n%s", place, left, before)
		}
	}
	scheduled := p.Clone()
	if before, left = Before(p, scheduled, Options{}, "kernels"); len(left) != 0 || before != scheduled {
		t.Errorf("%v\n%s", left, before)
	}
}
