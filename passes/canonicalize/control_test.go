package canonicalize_test

import (
	"strings"
	"testing"

	"weft/ir"
	"weft/passes/canonicalize"
)

// TestControl has programs with regions and what is left of them.
func TestControl(t *testing.T) {
	for _, test := range []struct {
		name, text, want string
		changed          bool
	}{
		{"what a branch computes again is taken from outside; one region's work is not the other's", `
entry regions(%p "p": i1[], %x "x": f32[4]) {
  %a: f32[4] = exponential(%x)
  %unused: f32[4] = negate(%x)
  %r: f32[4] = if(%p) do {
    %b: f32[4] = exponential(%x)
    %c: f32[4] = tanh(%b)
    %d: f32[4] = negate(%c)
    yield %c
  } {
    %e: f32[4] = tanh(%a)
    %f: f32[4] = abs(%e)
    yield %f
  }
  %g: f32[4] = add(%a, %r)
  return %g "g"
}
`, `
entry regions(%0 "p": i1[], %1 "x": f32[4]) {
  %2: f32[4] = exponential(%1)
  %3: f32[4] = if(%0) do {
    %4: f32[4] = tanh(%2)
    yield %4
  } {
    %5: f32[4] = tanh(%2)
    %6: f32[4] = abs(%5)
    yield %6
  }
  %7: f32[4] = add(%2, %3)
  return %7 "g"
}
`, true},
		{"the branch is known, and inside it another", `
entry known(%p "p": i1[], %x "x": f32[4]) {
  %t: i1[] = constant() {value = i1[] true}
  %n: i1[] = not(%t)
  %e: f32[4] = exponential(%x)
  %r: f32[4] = if(%t) do {
    %s: f32[4] = if(%n) do { yield %x } {
      %u: f32[4] = if(%p) do { %a: f32[4] = exponential(%x) yield %a } { yield %x }
      yield %u
    }
    yield %s
  } {
    %b: f32[4] = negate(%x)
    yield %b
  }
  %w: f32[4] = add(%r, %e)
  return %w "r"
}
`, `
entry known(%0 "p": i1[], %1 "x": f32[4]) {
  %2: f32[4] = exponential(%1)
  %3: f32[4] = if(%0) do {
    yield %2
  } {
    yield %1
  }
  %4: f32[4] = add(%3, %2)
  return %4 "r"
}
`, true},
		{"what a loop carries is not what it starts from", `
entry loop(%x "x": f32[4]) {
  %t: i1[] = constant() {value = i1[] true}
  %n: i1[] = constant() {value = i1[] false}
  (%r: f32[4], %q: i1[]) = while(%x, %t) do (%a: f32[4], %b: i1[]) {
    yield %b
  } (%c: f32[4], %d: i1[]) {
    %e: f32[4] = if(%d) do { %f: f32[4] = negate(%c) yield %f } { yield %c }
    yield %e, %n
  }
  return %r "r"
}
`, `
entry loop(%0 "x": f32[4]) {
  %1: i1[] = constant() {value = i1[] true}
  %2: i1[] = constant() {value = i1[] false}
  (%3: f32[4], %4: i1[]) = while(%0, %1) do (%5: f32[4], %6: i1[]) {
    yield %6
  } (%7: f32[4], %8: i1[]) {
    %9: f32[4] = if(%8) do {
      %10: f32[4] = negate(%7)
      yield %10
    } {
      yield %7
    }
    yield %9, %2
  }
  return %3 "r"
}
`, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := ir.ParseProgram("test", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if changed, err := canonicalize.Run(p); err != nil || changed != test.changed {
				t.Errorf("changed %t, %v", changed, err)
			}
			if err := ir.Verify(p); err != nil {
				t.Error(err)
			}
			if got := strings.TrimSpace(p.String()); got != strings.TrimSpace(test.want) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}
