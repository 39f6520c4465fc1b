package eval

import (
	"slices"
	"strings"
	"testing"

	"weft/ir"
)

// meshHead declares four ranks and an input that they divide; every rank has one row.
const meshHead = `mesh dp=2, tp=2
dim "rank.dp" in 0..1
dim "rank.tp" in 0..1
entry f(%0 "x": f32[1, 4] of [4@(dp, tp), 4]) {
`

// TestCollectives runs each collective on four ranks. Rank r has the row 10r, 10r+1, ...
func TestCollectives(t *testing.T) {
	x := ir.NewTensor(ir.F32, 4, 4)
	for i := range int64(16) {
		x.SetFloat(i, float64(i/4*10+i%4))
	}
	tests := []struct {
		name, body string
		want       []float64
	}{
		{"all_reduce", `  %1: f32[1, 4] = all_reduce(%0) {combine = add, axes = ["dp", "tp"], size = 4}
  return %1 "y"`, []float64{60, 64, 68, 72}},
		{"all_reduce over one axis", `  %1: f32[1, 4] = all_reduce(%0) {combine = maximum, axes = ["tp"], size = 2}
  return %1 "y" of [2@dp, 4]`, []float64{10, 11, 12, 13, 30, 31, 32, 33}},
		{"all_gather", `  %1: f32[2, 4] = all_gather(%0) {combine = add, axes = ["dp"], size = 2}
  return %1 "y" of [4@tp, 4]`, []float64{0, 1, 2, 3, 20, 21, 22, 23, 10, 11, 12, 13, 30, 31, 32, 33}},
		{"reduce_scatter", `  %1: f32[4, 1] = reshape(%0) {dims = [4, 1]}
  %2: f32[2, 1] = reduce_scatter(%1) {combine = add, axes = ["tp"], size = 2}
  return %2 "y" of [8@(dp, tp), 1]`, []float64{10, 12, 14, 16, 50, 52, 54, 56}},
		{"all_to_all", `  %1: f32[4, 1] = reshape(%0) {dims = [4, 1]}
  %2: f32[4, 1] = all_to_all(%1) {combine = add, axes = ["dp", "tp"], size = 4}
  return %2 "y" of [16@(dp, tp), 1]`, []float64{0, 10, 20, 30, 1, 11, 21, 31, 2, 12, 22, 32, 3, 13, 23, 33}},
		{"collective_permute", `  %1: f32[1, 4] = collective_permute(%0) {combine = add, axes = ["tp"], size = 2, pairs = [{source = 0, target = 1}]}
  return %1 "y" of [4@(dp, tp), 4]`, []float64{0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 20, 21, 22, 23}},
		{"a coordinate", `  %1: i64[] = dim() {value = 2*"rank.dp" + "rank.tp"}
  %2: f32[] = convert(%1) {to = f32}
  %3: f32[1] = reshape(%2) {dims = [1]}
  return %3 "y" of [4@(dp, tp)]`, []float64{0, 1, 2, 3}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := parse(t, meshHead+test.body+"\n}\n")
			if again, err := ir.ParseProgram("again", []byte(p.String())); err != nil || again.String() != p.String() {
				t.Errorf("the text does not read back: %v\n%s", err, p)
			}
			r, err := Run(p, "f", []*ir.Tensor{x}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := allFloats(r.Outputs[0]); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestRanksDisagree refuses a result that should be the same on all ranks and is not.
func TestRanksDisagree(t *testing.T) {
	p := parse(t, meshHead+"  return %0 \"y\"\n}\n")
	_, err := Run(p, "f", []*ir.Tensor{floats(make([]float64, 16), 4, 4)}, nil)
	if err != nil {
		t.Errorf("equal parts are refused: %v", err)
	}
	x := floats(make([]float64, 16), 4, 4)
	x.SetFloat(4, 1)
	if _, err = Run(p, "f", []*ir.Tensor{x}, nil); err == nil || !strings.Contains(err.Error(), "differs between rank") {
		t.Errorf("got %v", err)
	}
}

// TestPadding has three rows on two ranks: the last row of the second rank is padding.
func TestPadding(t *testing.T) {
	p := parse(t, `mesh dp=2
dim "rank.dp" in 0..1
dim n
entry f(%0 "x": f32[floordiv(n + 1, 2), 2] of [n@dp, 2]) {
  %1: f32[floordiv(n + 1, 2), 2] = negate(%0)
  return %1 "y" of [n@dp, 2]
}
`)
	for n := int64(0); n < 6; n++ {
		x := ir.NewTensor(ir.F32, n, 2)
		want := ir.NewTensor(ir.F32, n, 2)
		for i := range 2 * n {
			x.SetFloat(i, float64(i))
			want.SetFloat(i, -float64(i))
		}
		r, err := Run(p, "f", []*ir.Tensor{x}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Outputs[0]; !slices.Equal(got.Shape, want.Shape) || !slices.Equal(got.Data, want.Data) {
			t.Errorf("n = %d: got %v, want %v", n, got, want)
		}
	}
}
