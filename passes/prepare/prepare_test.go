package prepare_test

import (
	"testing"

	"weft/ir"
	"weft/passes/prepare"
)

// What two entries prepare alike is one state, computed once.
func TestEntriesShare(t *testing.T) {
	const text = `state @"w": f32[2, 3] parameter

entry prefill(%x "x": f32[4, 3], %w @"w": f32[2, 3]) {
  %t: f32[3, 2] = transpose(%w) {permutation = [1, 0]}
  %n: f32[3, 2] = negate(%t)
  %y: f32[4, 2] = dot_general(%x, %n) {lhs_contract = [1], rhs_contract = [0], to = f32}
  return %y "y"
}

entry decode(%x "x": f32[1, 3], %w @"w": f32[2, 3]) {
  %t: f32[3, 2] = transpose(%w) {permutation = [1, 0]}
  %n: f32[3, 2] = negate(%t)
  %e: f32[3, 2] = exponential(%t)
  %y: f32[1, 2] = dot_general(%x, %n) {lhs_contract = [1], rhs_contract = [0], to = f32}
  %z: f32[1, 2] = dot_general(%x, %e) {lhs_contract = [1], rhs_contract = [0], to = f32}
  return %y "y", %z "z"
}
`
	p, err := ir.ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prepare.Run(p); err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(p); err != nil {
		t.Fatal(err)
	}
	initial := p.Entry(ir.InitEntry)
	if initial == nil || len(initial.Outputs) != 2 || len(initial.Body.Ops) != 3 || len(initial.Inputs) != 1 {
		t.Errorf("init should make two states with three operations of one weight:\n%s", p)
	}
}
