package ir

import (
	"strings"
	"testing"
)

func mustParse(t testing.TB, text string) *Program {
	t.Helper()
	p, err := ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A program for each rule that breaks it; break does what text cannot say.
var violations = []struct {
	rule, text string
	damage     func(p *Program)
}{
	{rule: "V17: %1 = all_reduce: no collective_done", text: "mesh dp=2\ndim \"rank.dp\" in 0..1\nentry f(%0 \"x\": f32[2]) { %1: f32[2] = all_reduce(%0) {combine = add, axes = [\"dp\"], size = 2, async = true} return %0 \"y\" }"},
	{rule: "V17: %2 = negate: %1 is used before", text: "mesh dp=2\ndim \"rank.dp\" in 0..1\nentry f(%0 \"x\": f32[2]) { %1: f32[2] = all_reduce(%0) {combine = add, axes = [\"dp\"], size = 2, async = true} %2: f32[2] = negate(%1) %3: f32[2] = collective_done(%1, %0) return %2 \"y\" }"},
	{rule: "V17: %2 = collective_done: it ends no", text: "mesh dp=2\ndim \"rank.dp\" in 0..1\nentry f(%0 \"x\": f32[2]) { %1: f32[2] = all_reduce(%0) {combine = add, axes = [\"dp\"], size = 2, async = true} %2: f32[2] = collective_done(%1, %1) return %2 \"y\" }"},
	{rule: "V17: %3 = collective_done: it ends no", text: "mesh dp=2\ndim \"rank.dp\" in 0..1\nentry f(%0 \"x\": f32[2]) { %1: f32[2] = all_reduce(%0) {combine = add, axes = [\"dp\"], size = 2, async = true} %2: f32[2] = collective_done(%1, %0) %3: f32[2] = collective_done(%1, %0) return %2 \"y\" }"},
	{rule: `V1: an input "x" is there twice`, text: `entry f(%0 "x": f32[], %1 "x": f32[]) { return }`},
	{rule: `V1: an output has no name`, text: `entry f(%0 "x": f32[]) { return %0 "" }`},
	{rule: `V1: a state "s" is there twice`, text: `state @"s": f32[] buffer`, damage: func(p *Program) { p.States = append(p.States, p.States[0]) }},
	{rule: `V1: an entry "f" is there twice`, text: `entry f() { return }`, damage: func(p *Program) { p.Entries = append(p.Entries, p.Entries[0]) }},
	{rule: `V1: a symbol "n" is there twice`, text: `dim n`, damage: func(p *Program) { p.Symbols = append(p.Symbols, p.Symbols[0]) }},
	{rule: "V2: dim n", text: `dim n in 3..2`},
	{rule: "V2: dim n", text: `dim n multiple 0`},
	{rule: "V2: dim n", text: `dim n in -1..2`},
	{rule: `V3: type f32[-1] has a negative dim`, text: `entry f(%0 "x": f32[-1]) { return }`},
	{rule: `V3: there is no state kind "weight"`, text: `state @"s": f32[] weight`},
	{rule: `V3: a sequence, optional or map has no element type`, text: `entry f(%0 "x": sequence<f32[]>) { return }`,
		damage: func(p *Program) { p.Entries[0].Types[0].Elem = nil }},
	{rule: "V3: type invalid[] has no element type", text: `entry f(%0 "x": f32[]) { return }`,
		damage: func(p *Program) { p.Entries[0].Types[0].DType = InvalidDType }},
	{rule: "V4: symbol n is not declared", text: `entry f(%0 "x": f32[n]) { return }`},
	{rule: "V4: symbol m is not declared", text: `dim n entry f(%0 "x": f32[n]) { %1: i64[] = dim() {value = m + 1} return }`},
	{rule: "V4: symbol m is not declared", text: `dim n entry f(%0 "x": f32[n, 2]) { %1: f32[2*n] = reshape(%0) {dims = [2*n]}
		%2: f32[n] = slice(%1) {start = [m], limit = [m + n], stride = [1]} return }`},
	{rule: "V5: 0 inputs for 1 parameters", text: `entry f(%0 "x": f32[]) { return }`, damage: func(p *Program) { p.Entries[0].Inputs = nil }},
	{rule: `V6: input %0 names state "s", which does not exist`, text: `entry f(%0 @"s": f32[]) { return }`},
	{rule: `V6: input %0 is f32[2], state "s" is f32[]`, text: `state @"s": f32[] buffer entry f(%0 @"s": f32[2]) { return }`},
	{rule: `V6: output %0 is i8[], state "s" is f32[]`, text: `state @"s": f32[] buffer entry f(%0 "x": i8[]) { return %0 @"s" }`},
	{rule: `V6: state "s" is written twice`, text: `state @"s": f32[] buffer entry f(%0 @"s": f32[]) { return %0 @"s", %0 @"s" }`},
	{rule: "V7: %1 is defined twice", text: `entry f(%0 "x": f32[]) { %1: f32[] = abs(%0) return }`,
		damage: func(p *Program) { b := &p.Entries[0].Body; b.Ops = append(b.Ops, b.Ops[0]) }},
	{rule: "V7: value 9 has no type", text: `entry f(%0 "x": f32[]) { return }`, damage: func(p *Program) { p.Entries[0].Body.Params[0] = 9 }},
	{rule: "V7: %1 = abs: value -1 has no type", text: `entry f(%0 "x": f32[]) { %1: f32[] = abs(%0) return }`,
		damage: func(p *Program) { p.Entries[0].Body.Ops[0].Operands[0] = NoValue }},
	{rule: "V8: %1 = abs: %2 is used where it is not defined", text: `entry f(%0 "x": f32[]) { %1: f32[] = abs(%2) %2: f32[] = abs(%0) return }`},
	{rule: "V8: %3 is used where it is not defined", text: `entry f(%0 "p": i1[], %1 "x": f32[]) {
		%2: f32[] = if(%0) do { %3: f32[] = abs(%1) yield %3 } { yield %1 } return %3 "y" }`},
	{rule: "V8: %2 = if: %2 is used where it is not defined", text: `entry f(%0 "p": i1[]) { %1: i1[] = not(%0) %2: i1[] = if(%2) do { yield %0 } { yield %1 } return }`},
	{rule: "V9: %2 = abs: %0 is used in a kernel that does not take it", text: `entry f(%0 "x": f32[]) { %1: f32[] = kernel() do { %2: f32[] = abs(%0) yield %2 } return }`},
	{rule: "V9: %3 = kernel: a kernel inside a kernel", text: `entry f(%0 "x": f32[]) { %1: f32[] = kernel(%0) do (%2: f32[]) {
		%3: f32[] = kernel(%2) do (%4: f32[]) { yield %4 } yield %3 } return }`},
	{rule: "V10: %1 = abs: attributes are *ir.AxisAttrs, not <nil>", text: `entry f(%0 "x": f32[]) { %1: f32[] = abs(%0) return }`,
		damage: func(p *Program) { p.Entries[0].Body.Ops[0].Attrs = &AxisAttrs{} }},
	{rule: "V10: %1 = invalid: unknown kind", text: `entry f(%0 "x": f32[]) { %1: f32[] = abs(%0) return }`,
		damage: func(p *Program) { p.Entries[0].Body.Ops[0].Kind = 250 }},
	{rule: "V10: %1 = if: a region is missing", text: `entry f(%0 "p": i1[]) { %1: i1[] = if(%0) do { yield %0 } { yield %0 } return }`,
		damage: func(p *Program) { p.Entries[0].Body.Ops[0].Regions[1] = nil }},
	{rule: "V18: %2 = kernel: its schedule has bulk copies", text: `entry f(%0 "x": f32[8, 64], %1 "w": f32[8, 64]) { %2: f32[8, 8] = kernel(%0, %1) {group = contract, schedule = {threads = 128}, warpgroup = {threads = 384, bulk = true}} do (%3: f32[8, 64], %4: f32[8, 64]) { %5: f32[8, 8] = dot_general(%3, %4) {lhs_contract = [1], rhs_contract = [1], to = f32} yield %5 } return %2 "y" }`},
	{rule: "V11: %1 = abs: results are [f32[2]], should be [f32[]]", text: `entry f(%0 "x": f32[]) { %1: f32[] = abs(%0) return }`,
		damage: func(p *Program) { p.Entries[0].Types[1] = TensorOf(F32, Const(2)) }},
	{rule: "V11: %1 = abs: 2 operands", text: `entry f(%0 "x": f32[]) { %1: f32[] = abs(%0) return }`,
		damage: func(p *Program) { op := p.Entries[0].Body.Ops[0]; op.Operands = append(op.Operands, 0) }},
	{rule: "V12: %1 is placed in something that does not exist", text: `entry f(%0 "x": f32[]) { %1: f32[] = abs(%0) return memory { %1 in buffer 0 } }`},
	{rule: "V12: %1 is live in steps 0..2, its buffer 0 in 0..1", text: `entry f(%0 "x": f32[]) { %1: f32[] = abs(%0) %2: f32[] = abs(%1) %3: f32[] = add(%1, %2) return
		memory { buffer 0: 4 live 0..1 %1 in buffer 0 } }`},
	{rule: "V12: %1 needs 8*n bytes, its buffer 0 has 8*n - 4", text: `dim n entry f(%0 "x": f32[2*n]) { %1: f32[2*n] = abs(%0) return memory { buffer 0: 8*n - 4 live 0..0 %1 in buffer 0 } }`},
	{rule: "V12: buffer 0 has size 4 and is live in steps 2..1", text: `entry f() { return memory { buffer 0: 4 live 2..1 } }`},
	{rule: "V12: 3 places for 1 values", text: `entry f(%0 "x": f32[]) { return memory {} }`,
		damage: func(p *Program) { p.Entries[0].Memory.Places = make([]Place, 3) }},
	{rule: "V12: %1 is live in steps 0..3, its buffer 0 in 0..2", text: `entry f(%0 "n": i64[]) { %1: i64[] = abs(%0)
		%2: i64[] = while(%0) do (%3: i64[]) { %4: i1[] = compare(%3, %1) {direction = LT} yield %4 } (%5: i64[]) { %6: i64[] = add(%5, %0) yield %6 }
		return memory { buffer 0: 8 live 0..2 %1 in buffer 0 } }`},
	{rule: "V12: %2 is live in steps 0..2, its buffer 0 in 0..1", text: `entry f(%0 "n": i64[]) {
		%1: i64[] = while(%0) do (%2: i64[]) { %3: i1[] = compare(%2, %0) {direction = LT} yield %3 } (%4: i64[]) { %5: i64[] = add(%4, %0) yield %5 }
		return memory { buffer 0: 8 live 0..1 %2 in buffer 0 } }`},
	{rule: "V13: buffers 0 and 1 are live together, but 1 does not list 0", text: `entry f() { return memory { buffer 0: 4 live 0..1 buffer 1: 4 live 1..2 } }`},
	{rule: "V13: buffer 0 lists 1, which is not earlier", text: `entry f() { return memory { buffer 0: 4 live 0..1 after [1] buffer 1: 4 live 2..3 } }`},
	{rule: "V16: %3 = kernel: %0 is used after the operation that writes into its memory", text: inPlace(`%8: f32[4] = abs(%0)`, "%8", "%3", `%0 in input 0 %3 in input 0`)},
	{rule: "V16: %3 = kernel: %3 is placed in an input that no output replaces there", text: inPlace(`%8: f32[4] = abs(%3)`, "%3", "%8", `%3 in input 0`)},
	{rule: "V16: %3 = kernel: %3 is placed in an input that no output replaces there", text: inPlace(`%8: f32[4] = abs(%3)`, "%8", "%3", `%3 in input 1`)},
	{rule: "V16: %4 = kernel: %0 of another block is written over", text: `state @"s": f32[4] buffer entry f(%0 @"s": f32[4], %1 "p": i1[], %2 "i": i64[]) {
		%3: f32[4] = if(%1) do { %4: f32[4] = kernel(%0, %2) {group = scatter} do (%5: f32[4], %6: i64[]) {
			%7: f32[1] = constant() {value = f32[1] [0]} %8: f32[4] = dynamic_update_slice(%5, %7, %6) yield %8 } yield %4 } { %9: f32[4] = abs(%0) yield %9 }
		return %3 @"s" memory { %0 in input 0 %3 in input 0 %4 in input 0 %9 in input 0 } }`},
	{rule: "V16: %6 = kernel: %5 is written over, but what replaces it is not in its place", text: `entry f(%0 "x": f32[4], %1 "i": i64[], %2 "p": i1[]) {
		%3: f32[4] = while(%0) do (%4: f32[4]) { yield %2 } (%5: f32[4]) { %6: f32[4] = kernel(%5, %1) {group = scatter} do (%7: f32[4], %8: i64[]) {
			%9: f32[1] = constant() {value = f32[1] [0]} %10: f32[4] = dynamic_update_slice(%7, %9, %8) yield %10 } %11: f32[4] = abs(%6) yield %11 }
		return %3 "y" memory { %3 in output 0 %5 in output 0 %6 in output 0 } }`},
}

// inPlace is an entry whose first operation writes into the memory of a state.
func inPlace(op, y, state, places string) string {
	return `state @"s": f32[4] buffer entry f(%0 @"s": f32[4], %1 "u": f32[1], %2 "i": i64[]) {
		%3: f32[4] = kernel(%0, %1, %2) {group = scatter} do (%4: f32[4], %5: f32[1], %6: i64[]) { %7: f32[4] = dynamic_update_slice(%4, %5, %6) yield %7 }
		` + op + ` return ` + y + ` "y", ` + state + ` @"s" memory { ` + places + ` } }`
}

func TestViolations(t *testing.T) {
	for _, c := range violations {
		p := mustParse(t, c.text)
		if c.damage != nil {
			c.damage(p)
		}
		err := Verify(p)
		if err == nil || !strings.Contains(err.Error(), "W3010: "+c.rule) {
			t.Errorf("%s\n\tverifies with %v, not %s", c.text, err, c.rule)
		}
		_ = p.String() // broken programs print
	}
}

func TestVerifyAccepts(t *testing.T) {
	for _, text := range []string{
		`dim n in 1..8 multiple 2
		 state @"s": f32[4] buffer
		 entry f(%0 "x": f32[n, 4], %1 @"s": f32[4], %2 "p": i1[]) {
		   %3: f32[n, 4] = broadcast_in_dim(%1) {dims = [n, 4], axes = [1]}
		   %4: f32[n, 4] = if(%2) do { %5: f32[n, 4] = add(%0, %3) yield %5 } { yield %3 }
		   %6: f32[n, 4] = kernel(%4) do (%7: f32[n, 4]) { %8: f32[n, 4] = abs(%7) yield %8 }
		   %9: f32[4] = reduce(%6) {axes = [0]}
		   return %6 "y", %9 @"s"
		   memory {
		     buffer 0: 16*n live 0..2
		     buffer 1: 16*n live 1..3 after [0]
		     buffer 2: 64 live 4..4
		     %3 in buffer 0  %4 in buffer 1  %6 in output 0  %9 in input 1
		   }
		 }
		 entry g() { return }`,
		inPlace(`%8: f32[4] = abs(%3)`, "%8", "%3", `%0 in input 0 %3 in input 0 %8 in output 0`),
		`entry loop(%0 "n": i64[]) {
		   %1: i64[] = while(%0) do (%2: i64[]) { %3: i1[] = compare(%2, %0) {direction = LT} yield %3 } (%4: i64[]) { %5: i64[] = add(%4, %0) yield %5 }
		   return %1 "y"
		 }`,
	} {
		if err := Verify(mustParse(t, text)); err != nil {
			t.Error(err)
		}
	}
}
