package fuse_test

import (
	"testing"

	"weft/ir"
	"weft/passes/fuse"
)

// TestControl counts the kernels outside and inside of control flow.
func TestControl(t *testing.T) {
	for _, test := range []struct {
		name, text      string
		outside, inside int
	}{
		{"constants and views are made where they are used", `
			entry f(%0 "p": i1[], %1 "x": f32[4]) {
			  %2: f32[] = constant() {value = f32[] 3}
			  %3: f32[2, 4] = broadcast_in_dim(%2) {dims = [2, 4]}
			  %4: f32[2, 4] = broadcast_in_dim(%1) {dims = [2, 4], axes = [1]}
			  %5: f32[2, 4] = if(%0) do { %6: f32[2, 4] = multiply(%3, %4) yield %6 } { %7: f32[2, 4] = subtract(%4, %3) yield %7 }
			  return %5 "y"
			}`, 0, 2},
		{"what is computed outside is in memory", `
			entry f(%0 "p": i1[], %1 "x": f32[4]) {
			  %2: f32[4] = exponential(%1)
			  %3: f32[4] = if(%0) do { %4: f32[4] = multiply(%2, %1) %5: f32[4] = negate(%4) yield %5 } { %6: f32[4] = abs(%2) yield %6 }
			  return %3 "y"
			}`, 1, 2},
		{"values that trade places are copied, one that stays is not", `
			entry f(%0 "a": f32[4], %1 "b": f32[4], %2 "p": i1[]) {
			  (%3: f32[4], %4: f32[4], %5: i1[]) = while(%0, %1, %2) do (%6: f32[4], %7: f32[4], %8: i1[]) { yield %8 }
			    (%9: f32[4], %10: f32[4], %11: i1[]) { yield %10, %9, %11 }
			  return %3 "a", %4 "b"
			}`, 0, 2},
		{"an operation joins no group across a loop", `
			entry f(%0 "x": f32[4], %1 "p": i1[]) {
			  %2: f32[4] = negate(%0)
			  (%3: f32[4], %4: i1[]) = while(%2, %1) do (%5: f32[4], %6: i1[]) { yield %6 }
			    (%7: f32[4], %8: i1[]) { %9: f32[4] = add(%7, %2) %10: i1[] = not(%8) yield %9, %10 }
			  %11: f32[4] = add(%3, %2)
			  return %11 "y"
			}`, 2, 2},
		{"a constant that a branch yields gets a kernel there", `
			entry f(%0 "p": i1[], %1 "x": f32[]) {
			  %2: f32[] = constant() {value = f32[] 3}
			  %3: f32[] = if(%0) do { yield %2 } { yield %1 }
			  return %3 "y"
			}`, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := ir.ParseProgram("test", []byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fuse.Run(p); err != nil {
				t.Fatal(err)
			}
			if err := ir.Verify(p); err != nil {
				t.Fatalf("%v\n%s", err, p)
			}
			outside, all := 0, 0
			for _, op := range p.Entries[0].Body.Ops {
				if op.Kind == ir.OpKernel {
					outside++
				}
			}
			p.Entries[0].Body.Walk(func(op *ir.Op) {
				if op.Kind == ir.OpKernel {
					all++
				}
			})
			if outside != test.outside || all-outside != test.inside {
				t.Errorf("%d kernels outside and %d inside, want %d and %d\n%s", outside, all-outside, test.outside, test.inside, p)
			}
		})
	}
}
