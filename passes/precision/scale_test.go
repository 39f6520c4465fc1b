package precision_test

import (
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/eval"
	"weft/passes/precision"
	"weft/passes/shard"
)

func parse(t *testing.T, text string) *ir.Program {
	t.Helper()
	p, err := ir.ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// random gives tensors for an entry: the caller's inputs and the states, of which the counters of
// ScaleLoss are given.
func random(t *testing.T, p *ir.Program, scale float64) ([]*ir.Tensor, map[string]*ir.Tensor) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var inputs []*ir.Tensor
	states := map[string]*ir.Tensor{}
	e := p.Entries[0]
	for i, v := range e.Body.Params {
		shape, ok := e.Type(v).ConstShape()
		if !ok {
			t.Fatal("no fixed shape")
		}
		x := ir.NewTensor(e.Type(v).DType, shape...)
		for k := range x.Numel() {
			if x.DType.IsFloat() {
				x.SetFloat(k, r.NormFloat64()/4)
			} else {
				x.SetInt(k, r.Int64N(10))
			}
		}
		switch name := e.Inputs[i].State; name {
		case "":
			inputs = append(inputs, x)
		case precision.ScaleState:
			states[name] = ir.ScalarTensor(ir.F32, scale)
		case precision.GoodState:
			states[name] = ir.ScalarInt(ir.I32, 0)
		default:
			states[name] = x
		}
	}
	return inputs, states
}

// run evaluates the first entry, and gives outputs by name, states with @.
func run(t *testing.T, p *ir.Program, inputs []*ir.Tensor, states map[string]*ir.Tensor) map[string]*ir.Tensor {
	t.Helper()
	r, err := eval.Run(p, p.Entries[0].Name, inputs, func(name string) (*ir.Tensor, error) { return states[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*ir.Tensor{}
	next := 0
	for _, o := range p.Entries[0].Outputs {
		if o.State != "" {
			all["@"+o.State] = r.State[o.State]
			continue
		}
		all[o.Name] = r.Outputs[next]
		next++
	}
	return all
}

// apart is the root of the mean square of a - b over that of b.
func apart(a, b *ir.Tensor) float64 {
	var sum, all float64
	for i := range b.Numel() {
		d := a.Float(i) - b.Float(i)
		sum, all = sum+d*d, all+b.Float(i)*b.Float(i)
	}
	return math.Sqrt(sum / max(all, 1e-300))
}

// A training step: the derivative of the loss is folded into the gradient, which updates a state.
const step = `state @"w": f32[4] parameter
state @"seen": i64[] buffer

entry step(%x "x": f32[4], %w @"w": f32[4], %n @"seen": i64[]) {
  %p: f32[4] = multiply(%x, %w)
  %loss: f32[] = reduce(%p) {combine = add, axes = [0]}
  %small: f32[] = constant() {value = f32[] 1e-06}
  %seed: f32[4] = broadcast_in_dim(%small) {dims = [4]}
  %g: f32[4] = multiply(%seed, %x)
  %w1: f32[4] = subtract(%w, %g)
  %one: i64[] = constant() {value = i64[] 1}
  %n1: i64[] = add(%n, %one)
  return %loss "loss", %g "grad", %w1 @"w", %n1 @"seen"
}
`

func TestScaleLoss(t *testing.T) {
	plain := parse(t, step)
	scaled := parse(t, step)
	o := precision.LossScaling{Entry: "step", Loss: "loss", Gradients: []string{"grad"}, Interval: 2}
	if err := precision.ScaleLoss(scaled, o); err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(scaled); err != nil {
		t.Fatalf("%v\n%s", err, scaled)
	}
	inputs, states := random(t, scaled, 1024)
	want := run(t, plain, inputs, states)
	for step, next := range []struct{ scale, good float64 }{{1024, 1}, {2048, 0}, {2048, 1}} {
		got := run(t, scaled, inputs, states)
		for _, name := range []string{"loss", "grad", "@w"} {
			if d := apart(got[name], want[name]); d > 1e-6 {
				t.Errorf("step %d: %s differs by %g", step, name, d)
			}
		}
		if s, g := got["@loss_scale"].Float(0), got["@loss_scale.good"].Int(0); s != next.scale || float64(g) != next.good {
			t.Errorf("step %d: scale %g, %d good steps", step, s, g)
		}
		if got[precision.OverflowState].Int(0) != 0 {
			t.Errorf("step %d overflows", step)
		}
		states[precision.ScaleState], states[precision.GoodState] = got["@loss_scale"], got["@loss_scale.good"]
	}
	// An infinite gradient skips the step, but not what does not depend on gradients.
	inputs[0].SetFloat(2, math.Inf(1))
	got := run(t, scaled, inputs, states)
	if got[precision.OverflowState].Int(0) != 1 || apart(got["@w"], states["w"]) != 0 || got["@seen"].Int(0) != states["seen"].Int(0)+1 {
		t.Errorf("an infinite gradient: overflow %d, w moved by %g", got[precision.OverflowState].Int(0), apart(got["@w"], states["w"]))
	}
	if s, g := got["@loss_scale"].Float(0), got["@loss_scale.good"].Int(0); s != 1024 || g != 0 {
		t.Errorf("scale %g, %d good steps", s, g)
	}
}

// In float16, the products of a backward pass lose gradients that are small; with a scale they do
// not.
func TestScaleLossOfMLP(t *testing.T) {
	text, err := os.ReadFile("testdata/scale/mlp_joint.txt")
	if err != nil {
		t.Fatal(err)
	}
	small := strings.Replace(string(text), "value = f32[] -1}", "value = f32[] -1e-07}", 1)
	if small == string(text) {
		t.Fatal("the derivative of the loss is not where it was")
	}
	gradients := []string{"permute_8", "view_1", "sum_7", "sum_8", "permute_5", "view"}
	policy, err := precision.Parse("fp16")
	if err != nil {
		t.Fatal(err)
	}
	exact, unscaled, scaled := parse(t, small), parse(t, small), parse(t, small)
	if err := precision.ScaleLoss(scaled, precision.LossScaling{Entry: "forward", Loss: "div", Gradients: gradients}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*ir.Program{unscaled, scaled} {
		if _, err := precision.Run(p, policy); err != nil {
			t.Fatal(err)
		}
		if err := ir.Verify(p); err != nil {
			t.Fatal(err)
		}
	}
	inputs, states := random(t, scaled, precision.InitialScale)
	want, lost, got := run(t, exact, inputs, states), run(t, unscaled, inputs, states), run(t, scaled, inputs, states)
	for _, name := range gradients {
		without, with := apart(lost[name], want[name]), apart(got[name], want[name])
		t.Logf("%s: error %.3g, %.3g without scale", name, with, without)
		if with > 4e-3 {
			t.Errorf("%s: the error is %g", name, with)
		}
	}
	if worst := apart(lost["permute_8"], want["permute_8"]); worst < 0.5 {
		t.Errorf("without a scale the error is only %g: the test shows nothing", worst)
	}
	states[precision.ScaleState] = ir.ScalarTensor(ir.F32, 0x1p60)
	if r := run(t, scaled, inputs, states); r[precision.OverflowState].Int(0) != 1 || r["@loss_scale"].Float(0) != 0x1p59 {
		t.Errorf("overflow %d, scale %g", r[precision.OverflowState].Int(0), r["@loss_scale"].Float(0))
	}
}

// On a mesh, one rank with an infinite gradient stops all.
func TestScaleLossOnMesh(t *testing.T) {
	p := parse(t, `mesh dp=2
dim "rank.dp" in 0..1
state @"w": f32[2] parameter

entry step(%x "x": f32[1, 2] of [2@dp, 2], %w @"w": f32[2]) {
  %r: f32[2] = reshape(%x) {dims = [2]}
  %p: f32[2] = multiply(%r, %w)
  %mine: f32[] = reduce(%p) {combine = add, axes = [0]}
  %loss: f32[] = all_reduce(%mine) {combine = add, axes = ["dp"], size = 2}
  %one: f32[] = constant() {value = f32[] 1}
  %seed: f32[2] = broadcast_in_dim(%one) {dims = [2]}
  %g: f32[2] = multiply(%seed, %r)
  %row: f32[1, 2] = reshape(%g) {dims = [1, 2]}
  %w1: f32[2] = subtract(%w, %g)
  return %row "grad" of [2@dp, 2], %loss "loss", %w1 @"w"
}
`)
	if err := precision.ScaleLoss(p, precision.LossScaling{Entry: "step", Loss: "loss", Gradients: []string{"grad"}}); err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(p); err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	x := ir.NewTensor(ir.F32, 2, 2)
	x.SetFloat(3, math.Inf(1)) // of the second rank
	w := ir.NewTensor(ir.F32, 2)
	states := map[string]*ir.Tensor{"w": w, precision.ScaleState: ir.ScalarTensor(ir.F32, 2), precision.GoodState: ir.ScalarInt(ir.I32, 0)}
	r := run(t, p, []*ir.Tensor{x}, states)
	if r[precision.OverflowState].Int(0) != 1 || apart(r["@w"], w) != 0 {
		t.Errorf("overflow %d, w %g", r[precision.OverflowState].Int(0), apart(r["@w"], w))
	}
}

// A step with a scaled loss, divided over a mesh, does on four ranks what it does on one.
func TestScaleLossDivided(t *testing.T) {
	text, err := os.ReadFile("testdata/scale/mlp_joint.txt")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := precision.Parse("fp16")
	if err != nil {
		t.Fatal(err)
	}
	mesh := ir.Mesh{Axes: []ir.MeshAxis{{Name: "dp", Size: 2}, {Name: "tp", Size: 2}}}
	for _, parallel := range []string{"dp:fsdp,tp:tp", "dp:ddp,tp:tp+sp"} {
		whole := parse(t, string(text))
		gradients := []string{"permute_8", "view_1", "sum_7", "sum_8", "permute_5", "view"}
		if err := precision.ScaleLoss(whole, precision.LossScaling{Entry: "forward", Loss: "div", Gradients: gradients}); err != nil {
			t.Fatal(err)
		}
		if _, err := precision.Run(whole, policy); err != nil {
			t.Fatal(err)
		}
		divided := whole.Clone()
		strategies, err := shard.ParseStrategies(parallel, mesh)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := shard.Run(divided, shard.Options{Mesh: mesh, Strategies: strategies}); err != nil {
			t.Fatal(err)
		}
		if err := ir.Verify(divided); err != nil {
			t.Fatal(err)
		}
		for _, scale := range []float64{1024, 0x1p60} {
			inputs, states := random(t, whole, scale)
			want, got := run(t, whole, inputs, states), run(t, divided, inputs, states)
			for name, w := range want {
				if d := apart(got[name], w); d > 1e-6 {
					t.Errorf("%s, scale %g: %s differs by %g", parallel, scale, name, d)
				}
			}
			if overflow := scale > 1e9; (got[precision.OverflowState].Int(0) != 0) != overflow {
				t.Errorf("%s, scale %g: overflow %d", parallel, scale, got[precision.OverflowState].Int(0))
			}
		}
	}
}

// Names that are not there, and programs without gradients, are errors.
func TestScaleLossRefuses(t *testing.T) {
	for _, o := range []precision.LossScaling{
		{Entry: "stop", Loss: "loss", Gradients: []string{"grad"}},
		{Entry: "step", Loss: "los", Gradients: []string{"grad"}},
		{Entry: "step", Loss: "loss", Gradients: []string{"grads"}},
		{Entry: "step", Loss: "loss"},
	} {
		if err := precision.ScaleLoss(parse(t, step), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}
