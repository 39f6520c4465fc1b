package weft

import (
	"bytes"
	"slices"
	"testing"

	"weft/ir"
	"weft/ir/eval"
	"weft/runtime"
)

// merged are programs whose products of the same activations are merged, with the number of products that are left. Inputs are
// few multiples of 1/4, so that sums are exact in whatever order a schedule takes them.
var merged = []struct {
	name     string
	products int
	sizes    []int64
	text     string
}{
	{"attention", 1, []int64{1, 70}, `dim rows
state @"q": bf16[128, 64] parameter
state @"k": bf16[64, 64] parameter
state @"v": bf16[64, 64] parameter
state @"bq": bf16[128] parameter
state @"bk": bf16[64] parameter
state @"bv": bf16[64] parameter
entry forward(%x "x": bf16[2, rows, 64], %wq @"q": bf16[128, 64], %wk @"k": bf16[64, 64], %wv @"v": bf16[64, 64], %bq @"bq": bf16[128], %bk @"bk": bf16[64], %bv @"bv": bf16[64]) {
  %q0: f32[2, rows, 128] = dot_general(%x, %wq) {lhs_contract = [2], rhs_contract = [1], to = f32}
  %q1: f32[128] = convert(%bq) {to = f32}
  %q2: f32[2, rows, 128] = broadcast_in_dim(%q1) {dims = [2, rows, 128], axes = [2]}
  %q3: f32[2, rows, 128] = add(%q0, %q2)
  %q4: bf16[2, rows, 128] = convert(%q3) {to = bf16}
  %q5: bf16[2, rows, 2, 64] = reshape(%q4) {dims = [2, rows, 2, 64]}
  %q: bf16[2, 2, rows, 64] = transpose(%q5) {permutation = [0, 2, 1, 3]}
  %k0: f32[2, rows, 64] = dot_general(%x, %wk) {lhs_contract = [2], rhs_contract = [1], to = f32}
  %k1: f32[64] = convert(%bk) {to = f32}
  %k2: f32[2, rows, 64] = broadcast_in_dim(%k1) {dims = [2, rows, 64], axes = [2]}
  %k3: f32[2, rows, 64] = add(%k0, %k2)
  %k4: bf16[2, rows, 64] = convert(%k3) {to = bf16}
  %k5: bf16[2, 1, rows, 64] = reshape(%k4) {dims = [2, 1, rows, 64]}
  %k: bf16[2, 2, rows, 64] = broadcast_in_dim(%k5) {dims = [2, 2, rows, 64], axes = [0, 1, 2, 3]}
  %v0: f32[2, rows, 64] = dot_general(%x, %wv) {lhs_contract = [2], rhs_contract = [1], to = f32}
  %v1: f32[64] = convert(%bv) {to = f32}
  %v2: f32[2, rows, 64] = broadcast_in_dim(%v1) {dims = [2, rows, 64], axes = [2]}
  %v3: f32[2, rows, 64] = add(%v0, %v2)
  %v4: bf16[2, rows, 64] = convert(%v3) {to = bf16}
  %v5: bf16[2, 1, rows, 64] = reshape(%v4) {dims = [2, 1, rows, 64]}
  %v: bf16[2, 2, rows, 64] = broadcast_in_dim(%v5) {dims = [2, 2, rows, 64], axes = [0, 1, 2, 3]}
  %o: bf16[2, 2, rows, 64] = attention(%q, %k, %v) {scale = 0.125, causal = true}
  return %o "o"
}`},
	{"rope", 2, []int64{5, 150}, `dim rows in 1..300
state @"q": f16[32, 64] parameter
state @"k": f16[32, 40] parameter
state @"v": f16[32, 40] parameter
entry forward(%x "x": f16[rows, 32], %wq @"q": f16[32, 64], %wk @"k": f16[32, 40], %wv @"v": f16[32, 40]) {
  %q0: f16[rows, 64] = dot_general(%x, %wq) {lhs_contract = [1], rhs_contract = [0], to = f16}
  %q: f32[rows, 64] = convert(%q0) {to = f32}
  %qa: f32[rows, 32] = slice(%q) {start = [0, 0], limit = [rows, 32], stride = [1, 1]}
  %qb: f32[rows, 32] = slice(%q) {start = [0, 32], limit = [rows, 64], stride = [1, 1]}
  %qn: f32[rows, 32] = negate(%qb)
  %qt: f32[rows, 64] = concatenate(%qn, %qa) {axis = 1}
  %qr: f32[rows, 64] = multiply(%q, %qt)
  %k0: f16[rows, 40] = dot_general(%x, %wk) {lhs_contract = [1], rhs_contract = [0], to = f16}
  %ka: f16[rows, 20] = slice(%k0) {start = [0, 0], limit = [rows, 20], stride = [1, 1]}
  %kb: f16[rows, 20] = slice(%k0) {start = [0, 20], limit = [rows, 40], stride = [1, 1]}
  %kn: f16[rows, 20] = negate(%kb)
  %kt: f16[rows, 40] = concatenate(%kn, %ka) {axis = 1}
  %kr: f16[rows, 40] = multiply(%k0, %kt)
  %v: f16[rows, 40] = dot_general(%x, %wv) {lhs_contract = [1], rhs_contract = [0], to = f16}
  %vt: f16[40, rows] = transpose(%v) {permutation = [1, 0]}
  %o: f16[40, 40] = dot_general(%vt, %v) {lhs_contract = [1], rhs_contract = [0], to = f16}
  return %qr "q", %kr "k", %o "o"
}`},
	{"norms", 1, []int64{3, 40}, `dim rows
state @"q": f32[64, 48] parameter
state @"k": f32[32, 48] parameter
state @"b": f32[64] parameter
state @"c": f32[32] parameter
entry forward(%x "x": f32[rows, 48], %wq @"q": f32[64, 48], %wk @"k": f32[32, 48], %b @"b": f32[64], %c @"c": f32[32]) {
  %q0: f32[rows, 64] = dot_general(%x, %wq) {lhs_contract = [1], rhs_contract = [1], to = f32, precision = tf32}
  %q1: f32[rows, 64] = broadcast_in_dim(%b) {dims = [rows, 64], axes = [1]}
  %q2: f32[rows, 64] = add(%q1, %q0)
  %q: f32[rows] = reduce(%q2) {combine = maximum, axes = [1]}
  %k0: f32[rows, 32] = dot_general(%x, %wk) {lhs_contract = [1], rhs_contract = [1], to = f32, precision = tf32}
  %k1: f32[rows, 32] = broadcast_in_dim(%c) {dims = [rows, 32], axes = [1]}
  %k2: f32[rows, 32] = add(%k1, %k0)
  %k: f32[rows] = reduce(%k2) {combine = minimum, axes = [1]}
  return %q "q", %k "k"
}`},
	{"one row", 1, []int64{0}, `state @"q": bf16[64, 64] parameter
state @"k": bf16[64, 64] parameter
state @"b": bf16[64] parameter
state @"c": bf16[64] parameter
entry forward(%x "x": bf16[1, 64], %wq @"q": bf16[64, 64], %wk @"k": bf16[64, 64], %b @"b": bf16[64], %c @"c": bf16[64]) {
  %q0: f32[1, 64] = dot_general(%x, %wq) {lhs_contract = [1], rhs_contract = [1], to = f32}
  %q1: bf16[1, 64] = reshape(%b) {dims = [1, 64]}
  %q2: f32[1, 64] = convert(%q1) {to = f32}
  %q3: f32[1, 64] = add(%q0, %q2)
  %qa: f32[1, 32] = slice(%q3) {start = [0, 0], limit = [1, 32], stride = [1, 1]}
  %qb: f32[1, 32] = slice(%q3) {start = [0, 32], limit = [1, 64], stride = [1, 1]}
  %q: f32[1, 32] = multiply(%qa, %qb)
  %k0: f32[1, 64] = dot_general(%x, %wk) {lhs_contract = [1], rhs_contract = [1], to = f32}
  %k1: bf16[1, 64] = reshape(%c) {dims = [1, 64]}
  %k2: f32[1, 64] = convert(%k1) {to = f32}
  %k3: f32[1, 64] = add(%k0, %k2)
  %k: f32[1, 64] = reverse(%k3) {axes = [1]}
  %r: f32[1, 64] = negate(%k)
  return %q "q", %r "k"
}`},
	{"gate", 2, []int64{20}, `dim rows
state @"a": f16[32, 32] parameter
state @"b": f16[32, 32] parameter
entry forward(%x "x": f16[rows, 32], %a @"a": f16[32, 32], %b @"b": f16[32, 32]) {
  %g: f16[rows, 32] = dot_general(%x, %a) {lhs_contract = [1], rhs_contract = [0], to = f16}
  %s: f16[rows, 32] = logistic(%g)
  %u: f16[rows, 32] = dot_general(%x, %b) {lhs_contract = [1], rhs_contract = [0], to = f16}
  %o: f16[rows, 32] = multiply(%s, %u)
  return %o "o"
}`},
}

// TestMerged compares programs with their products merged and without, bit by bit: by the evaluator, and on the emulator
// for all targets.
func TestMerged(t *testing.T) {
	var subjects []*subject // merged and not, by turns
	for _, m := range merged {
		for _, disabled := range [][]string{nil, {"merge"}} {
			p, err := ir.ParseProgram(m.name, []byte(m.text))
			if err != nil {
				t.Fatal(err)
			}
			s := &subject{name: m.name, program: p, spec: spec{styles: map[string]string{"x": "few"}}}
			for _, st := range p.States {
				s.spec.styles[st.Name] = "few"
			}
			if err := s.schedule(disabled, nil); err != nil {
				t.Fatal(err)
			}
			if disabled == nil && products(s.compiled.Scheduled) != m.products {
				t.Errorf("%s has %d products, expected %d:\n%s", m.name, products(s.compiled.Scheduled), m.products, s.compiled.Scheduled)
			}
			subjects = append(subjects, s)
		}
	}
	assembleAll(t, subjects)
	for i, m := range merged {
		t.Run(m.name, func(t *testing.T) {
			for _, rows := range m.sizes {
				one, other := subjects[2*i].exactly(t, rows), subjects[2*i+1].exactly(t, rows)
				for target, outputs := range one {
					for n := range outputs {
						if !bytes.Equal(outputs[n].Data, other[target][n].Data) {
							t.Errorf("%d rows for %s: output %d differs", rows, target, n)
						}
					}
				}
			}
		})
	}
}

// products counts the products of a program's entry forward.
func products(p *ir.Program) int {
	n := 0
	p.Entry("forward").Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.OpDotGeneral {
			n++
		}
	})
	return n
}

// exactly runs the scheduled program by the evaluator, which must give what the imported one gives, and on the emulator,
// whose outputs it gives by target.
func (s *subject) exactly(t *testing.T, rows int64) map[string][]*ir.Tensor {
	t.Helper()
	a, device, values := s.open(t)
	inputs, err := s.inputs("forward", map[string]int64{"rows": rows}, 1)
	if err != nil {
		t.Fatal(err)
	}
	want, err := eval.Run(s.program, "forward", inputs, lookup(values))
	if err != nil {
		t.Fatal(err)
	}
	exact := *s
	exact.spec.ulps, exact.spec.relative = 0, 0
	if err := exact.checkScheduled("forward", inputs, values, want); err != nil {
		t.Error(err)
	}
	outputs := map[string][]*ir.Tensor{}
	for _, target := range s.compiled.targets {
		session, err := runtime.Open(a, device, runtime.Options{Target: target.Name})
		if err != nil {
			t.Fatal(err)
		}
		got, err := session.Run("forward", inputs)
		session.Close()
		if err != nil {
			t.Fatal(err)
		}
		outputs[target.Name] = slices.Clone(got.Outputs)
	}
	return outputs
}
