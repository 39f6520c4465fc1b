package memory_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"weft/ir"
	"weft/passes/memory"
)

var shorthand = regexp.MustCompile(`(?m)^\s*(%\d+: )(\S+) = ([KC])\((%\d+)\)`)

// expand writes out the kernels of the texts below: K negates, C compares.
func expand(text string) string {
	next := 100
	return shorthand.ReplaceAllStringFunc(text, func(line string) string {
		m := shorthand.FindStringSubmatch(line)
		body := fmt.Sprintf("(%%%d: %s) { %%%d: %s = negate(%%%d)", next, m[2], next+1, m[2], next)
		if m[3] == "C" {
			body = fmt.Sprintf("(%%%d: i64[]) { %%%d: i1[] = compare(%%%d, %%%d) {direction = NE}", next, next+1, next, next)
		}
		next += 2
		return fmt.Sprintf("%s%s = kernel(%s) do %s yield %%%d }", m[1], m[2], m[4], body, next-1)
	})
}

// TestControl says which values share a place and when buffers are live.
func TestControl(t *testing.T) {
	for _, test := range []struct{ name, text, memory string }{
		{"branches write the result, and their scratch memory overlaps", `
			entry f(%0 "p": i1[], %1 "x": f32[8]) {
			%2: f32[8] = if(%0) do {
			%3: f32[8] = K(%1)
			%4: f32[8] = K(%3)
			yield %4
			} {
			%5: f32[8] = K(%1)
			%6: f32[8] = K(%5)
			yield %6
			}
			%7: f32[8] = K(%2)
			return %7 "y"
			}`,
			"buffer 0: 32 live 0..5; buffer 1: 32 live 1..2 after [0]; buffer 2: 32 live 3..4 after [0]; " +
				"%2 in buffer 0; %3 in buffer 1; %4 in buffer 0; %5 in buffer 2; %6 in buffer 0; %7 in output 0"},
		{"what a branch yields twice, or from outside, is copied", `
			entry f(%0 "p": i1[], %1 "x": f32[8]) {
			(%2: f32[8], %3: f32[8]) = if(%0) do {
			%4: f32[8] = K(%1)
			yield %4, %4
			} {
			%5: f32[8] = K(%1)
			yield %1, %5
			}
			return %2 "y", %3 "z"
			}`, "%2 in output 0; %3 in output 1; %4 in output 0; %5 in output 1"},
		{"a loop's value has one place; the operand is written there", `
			entry f(%0 "x": i64[]) {
			%1: i64[] = K(%0)
			%2: i64[] = while(%1) do (%3: i64[]) {
			%4: i1[] = C(%3)
			yield %4
			} (%5: i64[]) {
			%6: i64[] = K(%5)
			yield %6
			}
			%7: i64[] = K(%2)
			return %7 "y"
			}`,
			"buffer 0: 8 live 0..4; buffer 1: 8 live 3..3 after [0]; buffer 2: 1 live 2..2 after [0]; " +
				"%1 in buffer 0; %2 in buffer 0; %3 in buffer 0; %4 in buffer 2; %5 in buffer 0; %6 in buffer 1; %7 in output 0"},
		{"an operand that is used elsewhere is copied; outer values live all along", `
			entry f(%0 "x": i64[]) {
			%1: i64[] = K(%0)
			%2: i64[] = K(%0)
			%3: i64[] = while(%1) do (%4: i64[]) {
			%5: i1[] = C(%2)
			yield %5
			} (%6: i64[]) {
			%7: i64[] = K(%1)
			%8: i64[] = K(%7)
			yield %8
			}
			return %3 "y"
			}`,
			"buffer 0: 8 live 0..5; buffer 1: 8 live 1..5 after [0]; buffer 2: 8 live 4..5 after [0, 1]; buffer 3: 1 live 3..3 after [0, 1]; " +
				"%1 in buffer 0; %2 in buffer 1; %3 in output 0; %4 in output 0; %5 in buffer 3; %6 in output 0; %7 in buffer 2; %8 in output 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := ir.ParseProgram("test", []byte(expand(test.text)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := memory.Run(p); err != nil {
				t.Fatal(err)
			}
			if err := ir.Verify(p); err != nil {
				t.Error(err)
			}
			if got := planText(p.Entries[0]); got != test.memory {
				t.Errorf("got  %s\nwant %s", got, test.memory)
			}
		})
	}
}

// planText prints the memory plan in a line, with values numbered as in the texts above: those
// inside of kernels are left out.
func planText(e *ir.Entry) string {
	var parts []string
	for i, b := range e.Memory.Buffers {
		part := fmt.Sprintf("buffer %d: %s live %d..%d", i, b.Size, b.First, b.Last)
		if len(b.After) > 0 {
			part += " after [" + strings.Trim(strings.ReplaceAll(fmt.Sprint(b.After), " ", ", "), "[]") + "]"
		}
		parts = append(parts, part)
	}
	next := 0
	define := func(values []ir.Value) {
		for _, v := range values {
			switch p := e.Memory.Places[v]; p.Kind {
			case ir.InArena:
				parts = append(parts, fmt.Sprintf("%%%d in buffer %d", next, p.Index))
			case ir.InOutput:
				parts = append(parts, fmt.Sprintf("%%%d in output %d", next, p.Index))
			}
			next++
		}
	}
	var block func(b *ir.Block)
	block = func(b *ir.Block) {
		define(b.Params)
		for _, op := range b.Ops {
			define(op.Results)
			for _, r := range op.Regions {
				if op.Kind != ir.OpKernel {
					block(r)
				}
			}
		}
	}
	block(&e.Body)
	return strings.Join(parts, "; ")
}
