package weft_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
	"weft/ir/eval"
	"weft/passes"
	"weft/passes/overlap"
	"weft/runtime"
)

// layer is a layer of one rank of a number of ranks, by which RANKS and LAST (that less one) are replaced: two products whose
// parts are summed up, each followed by a residual and a norm.
const layer = `mesh tp=RANKS
dim "rank.tp" in 0..LAST
dim n in 256..1024 multiple 256
state @"w": T[32, 48] parameter of [32*RANKS@tp, 48]
state @"u": T[48, 64] parameter of [48, 64*RANKS@tp]
state @"d": T[64, 48] parameter of [64*RANKS@tp, 48]
entry forward(%x "x": T[2, n, 32] of [2, n, 32*RANKS@tp], %r "r": T[2, n, 48], %w @"w": T[32, 48], %u @"u": T[48, 64], %d @"d": T[64, 48]) {
  %y: T[2, n, 48] = dot_general(%x, %w) {lhs_contract = [2], rhs_contract = [0], to = T}
  %s: T[2, n, 48] = all_reduce(%y) {combine = add, axes = ["tp"], size = RANKS, channel = 1}
  %z: T[2, n, 48] = add(%r, %s)
  %f: f32[2, n, 48] = convert(%z) {to = f32}
  %q: f32[2, n, 48] = multiply(%f, %f)
  %t: f32[2, n] = reduce(%q) {combine = add, axes = [2]}
  %i: f32[2, n] = rsqrt(%t)
  %j: f32[2, n, 48] = broadcast_in_dim(%i) {dims = [2, n, 48], axes = [0, 1]}
  %k: f32[2, n, 48] = multiply(%f, %j)
  %c: T[2, n, 48] = convert(%k) {to = T}
  %m: T[2*n, 48] = reshape(%c) {dims = [2*n, 48]}
  %h: T[2*n, 64] = dot_general(%m, %u) {lhs_contract = [1], rhs_contract = [0], to = T}
  %g: T[2*n, 64] = tanh(%h)
  %o: f32[2*n, 48] = dot_general(%g, %d) {lhs_contract = [1], rhs_contract = [0], to = f32}
  %b: T[2*n, 48] = convert(%o) {to = T}
  %a: T[2*n, 48] = all_reduce(%b) {combine = add, axes = ["tp"], size = RANKS, channel = 2}
  %l: T[2*n, 48] = reshape(%z) {dims = [2*n, 48]}
  %v: T[2*n, 48] = add(%a, %l)
  return %v "y"
}
`

// TestHalvedProducts holds a program whose products are halved to the bits of the one where they are whole, in the evaluator
// and on emulated ranks.
func TestHalvedProducts(t *testing.T) {
	needTools(t)
	for _, ranks := range []int64{2, 4} {
		for _, dtype := range []string{"f32", "bf16"} {
			t.Run(fmt.Sprintf("%d ranks %s", ranks, dtype), func(t *testing.T) { testHalved(t, ranks, dtype) })
		}
	}
}

func testHalved(t *testing.T, ranks int64, dtype string) {
	text := strings.NewReplacer("32*RANKS", fmt.Sprint(32*ranks), "64*RANKS", fmt.Sprint(64*ranks), "RANKS", fmt.Sprint(ranks),
		"LAST", fmt.Sprint(ranks-1), " T[", " "+dtype+"[", "to = T}", "to = "+dtype+"}").Replace(layer)
	whole, err := ir.ParseProgram("layer", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	halved := whole.Clone()
	if _, err := overlap.Run(halved, overlap.Options{FLOPS: 1, Links: map[string]float64{"tp": 1}, Least: 1}); err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(halved); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(halved.String(), "all_reduce("); n != 4 {
		t.Fatalf("%d sums, not four\n%s", n, halved)
	}
	inputs := globalInputs(t, rand.New(rand.NewPCG(1, 2)), whole.Entries[0], map[string]int64{"n": 256})
	var evaluated [2]*ir.Tensor
	var emulated [2]runtime.Global
	for i, p := range []*ir.Program{whole, halved} {
		path := filepath.Join(t.TempDir(), "program.weft.txt")
		if err := os.WriteFile(path, []byte(p.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		c, a := compileTo(t, []weft.File{{Path: path}}, weft.Config{Targets: []string{"sm_90a"}, Weights: "random:3", Settings: passes.Settings{Disabled: []string{"overlap"}}})
		asynchronous := 0
		for _, step := range c.Plans("sm_90a")[0].Steps {
			if step.Collective != nil && step.Collective.Async {
				asynchronous++
			}
		}
		if asynchronous != 4*i {
			t.Fatalf("%d asynchronous collectives in program %d", asynchronous, i)
		}
		source, err := a.Weights()
		if err != nil {
			t.Fatal(err)
		}
		r, err := eval.Run(p, "forward", inputs, func(name string) (*ir.Tensor, error) { return weights.Load(source, name) })
		if err != nil {
			t.Fatal(err)
		}
		got, err := localRanks(t, a).RunContext(context.Background(), "forward", inputs)
		if err != nil {
			t.Fatal(err)
		}
		evaluated[i], emulated[i] = r.Outputs[0], got.Outputs[0]
		compareGlobal(t, "emulated", emulated[i], r.Outputs[0])
	}
	exact := compare.Tolerance{}
	if r := compare.Tensors(evaluated[1], evaluated[0], exact); !r.Equal() {
		t.Errorf("evaluated: %+v", r)
	}
	if r := compare.Tensors(emulated[1].Whole, emulated[0].Whole, exact); !r.Equal() {
		t.Errorf("emulated: %+v", r)
	}
}
