package eval

import (
	"errors"
	"math"
	"strings"
	"testing"

	"weft/ir"
)

// TestTableComplete holds that every kind has an evaluation.
func TestTableComplete(t *testing.T) {
	for k := ir.OpConstant; k < ir.NumKinds; k++ {
		if table[k] == nil {
			t.Errorf("%s has no evaluation", k)
		}
	}
}

func parse(t testing.TB, text string) *ir.Program {
	t.Helper()
	p, err := ir.ParseProgram("test", []byte(text))
	if err == nil {
		err = ir.Verify(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func floats(values []float64, shape ...int64) *ir.Tensor {
	x := ir.NewTensor(ir.F32, shape...)
	writeFloats(x, 0, values)
	return x
}

// TestRun runs an entry with symbolic dims, state that is read and written, and control flow.
func TestRun(t *testing.T) {
	p := parse(t, `
dim n in 1..8
state @"sum": f32[2] buffer
entry step(%0 "x": f32[n, 2], %1 @"sum": f32[2], %2 "grow": i1[]) {
  %3: f32[2] = reduce(%0) {axes = [0]}
  %4: f32[2] = kernel(%1, %3) {group = map} do (%5: f32[2], %6: f32[2]) {
    %7: f32[2] = add(%5, %6)
    yield %7
  }
  %8: f32[2] = if(%2) do {
    %9: f32[2] = add(%4, %3)
    yield %9
  } {
    yield %4
  }
  %10: i64[] = dim() {value = 3*n + 1}
  %11: f32[2*n] = reshape(%0) {dims = [2*n]}
  return %11 "flat", %8 @"sum", %10 "size", %0 "x"
}
entry factorial(%0 "n": i64[]) {
  %1: i64[] = constant() {value = i64[] 1}
  (%2: i64[], %3: i64[]) = while(%0, %1) do (%4: i64[], %5: i64[]) {
    %6: i1[] = compare(%4, %1) {direction = GT}
    yield %6
  } (%7: i64[], %8: i64[]) {
    %9: i64[] = multiply(%8, %7)
    %10: i64[] = subtract(%7, %1)
    yield %10, %9
  }
  return %3 "result"
}`)
	state := func(name string) (*ir.Tensor, error) {
		if name != "sum" {
			return nil, errors.New("unknown state " + name)
		}
		return floats([]float64{10, 20}, 2), nil
	}
	x := floats([]float64{1, 2, 3, 4}, 2, 2)
	r, err := Run(p, "step", []*ir.Tensor{x, ir.ScalarInt(ir.Bool, 1)}, state)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"f32[4] [1, 2, 3, 4]", "i64[] 7", "f32[2, 2] [1, 2, 3, 4]"} {
		if got := r.Outputs[i].String(); got != want {
			t.Errorf("output %d is %s, not %s", i, got, want)
		}
	}
	if got := r.State["sum"].String(); got != "f32[2] [18, 32]" || r.Dims["n"] != 2 {
		t.Errorf("state is %s with dims %v", got, r.Dims)
	}
	if r, err = Run(p, "factorial", []*ir.Tensor{ir.ScalarInt(ir.I64, 5)}, nil); err != nil || r.Outputs[0].Int(0) != 120 {
		t.Errorf("5! is %v: %v", r, err)
	}

	for _, c := range []struct {
		entry  string
		inputs []*ir.Tensor
		state  func(string) (*ir.Tensor, error)
		want   string
	}{
		{"jump", nil, nil, `W7001: there is no entry "jump"`},
		{"step", []*ir.Tensor{x}, state, `W7000: 1 inputs given, entry "step" takes 2`},
		{"step", []*ir.Tensor{x, nil}, state, `W7000: there is no value for "grow"`},
		{"step", []*ir.Tensor{x, ir.ScalarInt(ir.Bool, 1)}, nil, `W7000: there is no value for state "sum"`},
		{"step", []*ir.Tensor{x, ir.ScalarInt(ir.I8, 1)}, state, `W7002: input "grow" is i8[], expected i1[]`},
		{"step", []*ir.Tensor{floats(nil, 9, 2), ir.ScalarInt(ir.Bool, 1)}, state, `W7004: dim n is 9`},
		{"step", []*ir.Tensor{{DType: ir.F32, Shape: []int64{2, 2}}, ir.ScalarInt(ir.Bool, 1)}, state, `W7002: the value for "x" is damaged`},
	} {
		if _, err := Run(p, c.entry, c.inputs, c.state); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s gives %v, not %s", c.entry, err, c.want)
		}
	}
}

// TestSymbolicFailures runs programs whose sizes turn out not to fit.
func TestSymbolicFailures(t *testing.T) {
	for _, c := range []struct{ op, want string }{
		{`%1: f32[4] = reshape(%0) {dims = [4]}`, "W7006: reshape: f32[3] cannot take the shape [4]"},
		{`%1: f32[n - 4] = slice(%0) {start = [4], limit = [n], stride = [1]}`, "W7006: slice: dim 0 of f32[n - 4] is -1"},
		{`%1: f32[1] = slice(%0) {start = [5 - n], limit = [6 - n], stride = [1]}`, ""},
		{`%1: f32[1] = slice(%0) {start = [2*n], limit = [2*n + 1], stride = [1]}`, "W7006: slice: [6, 7) is no part of dim 0 of f32[3]"},
		{`%1: f32[1] = slice(%0) {start = [n - 4], limit = [n - 3], stride = [1]}`, "W7006: slice: [-1, 0) is no part"},
		{`%1: f32[m] = pad(%2, %3) {low = [0], high = [m], interior = [0]}`, "W7005"},
		{`%1: f32[n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n] = iota() {type = f32, dims = [n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n*n]}`, "W7007"},
		{`%1: f32[n] = scatter(%0, %4, %0) {combine = add, inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1}`, "W7006: scatter: updates f32[3] do not fit indices i64[2]"},
		{`%1: f32[2*n] = gather(%0, %5) {offset_dims = [0], start_index_map = [0], slice_sizes = [2*n]}`, "W7006: gather: a slice of size 6 does not fit dim 0 of f32[3]"},
	} {
		p := parse(t, `dim n dim m
entry f(%0 "x": f32[n]) {
  %2: f32[0] = constant() {value = f32[0] []}
  %3: f32[] = constant() {value = f32[] 0}
  %4: i64[2] = constant() {value = i64[2] [0, 1]}
  %5: i64[1] = constant() {value = i64[1] [0]}
`+c.op+`
  return %1 "y" }`)
		_, err := Run(p, "f", []*ir.Tensor{floats([]float64{1, 2, 3}, 3)}, nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n\tgives %v, not %s", c.op, err, c.want)
		}
	}
}

// TestOp folds single operations, and refuses operands of other types than the entry's.
func TestOp(t *testing.T) {
	p := parse(t, `dim n entry f(%0 "x": f32[n], %1 "y": f32[n]) {
  %2: f32[n] = add(%0, %1)
  %3: f32[n] = kernel(%0) do (%4: f32[n]) { %5: f32[n] = negate(%4) yield %5 }
  return }`)
	e := p.Entries[0]
	x := floats([]float64{1, 2}, 2)
	for i, want := range []string{"f32[2] [2, 4]", "f32[2] [-1, -2]"} {
		op := e.Body.Ops[i]
		r, err := Op(e, op, []*ir.Tensor{x, x}[:len(op.Operands)], map[string]int64{"n": 2})
		if err != nil || r[0].String() != want {
			t.Errorf("%s gives %v, not %s: %v", op.Kind, r, want, err)
		}
	}
	if _, err := Op(e, e.Body.Ops[0], []*ir.Tensor{x, floats([]float64{1}, 1)}, map[string]int64{"n": 2}); err == nil {
		t.Error("an operand of the wrong shape is taken")
	}
	if _, err := Op(e, e.Body.Ops[0], []*ir.Tensor{x, x}, nil); err == nil {
		t.Error("a dim without a size is taken")
	}
}

// TestMemoryIsFreed holds that values die after their last use.
func TestMemoryIsFreed(t *testing.T) {
	p := parse(t, `entry f(%0 "x": f32[]) { %1: f32[] = abs(%0) %2: f32[] = abs(%1) %3: f32[] = abs(%2) return %3 "y" }`)
	ev := newEvaluator(p.Entries[0], nil)
	if _, err := ev.block(&p.Entries[0].Body, []*ir.Tensor{ir.ScalarTensor(ir.F32, math.Pi)}); err != nil {
		t.Fatal(err)
	}
	for v, x := range ev.env[:3] {
		if x != nil {
			t.Errorf("%%%d is still there", v)
		}
	}
}

// TestIntegersRoundOnce compares with conversions that Go rounds once.
func TestIntegersRoundOnce(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 1<<24 + 1, 1<<53 + 1, math.MaxInt64, math.MinInt64, 1<<62 + 1<<38, 1<<62 + 1<<38 + 1, -(1<<60 + 1<<36 + 1), 1<<62 + 3<<38 - 1} {
		x := ir.NewTensor(ir.F32)
		setInt(x, 0, v, false)
		if want := float64(float32(v)); x.Float(0) != want {
			t.Errorf("%d becomes %v, not %v", v, x.Float(0), want)
		}
		setInt(x, 0, v, true)
		if want := float64(float32(uint64(v))); x.Float(0) != want {
			t.Errorf("%d becomes %v, not %v", uint64(v), x.Float(0), want)
		}
	}
}
