package compare

import (
	"math"
	"slices"
	"testing"

	"weft/ir"
)

// tensor parses the value of a constant as program text has it: "f32[2] [1, nan]".
func tensor(t *testing.T, typ, value string) *ir.Tensor {
	t.Helper()
	text := "entry e() {\n  %0: " + typ + " = constant() {value = " + typ + " " + value + "}\n  return %0 \"x\"\n}\n"
	p, err := ir.ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p.Entries[0].Body.Ops[0].Attrs.(*ir.ConstantAttrs).Value
}

func TestTensors(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name, typ, got, want string
		tol                  Tolerance
		mismatches           int64
		absolute, relative   float64
		worst                []int64 // index
	}{
		{"equal", "f32[2, 2]", "[1, -0, 3, 1e30]", "[1, 0, 3, 1e30]", Tolerance{}, 0, 0, 0, nil},
		{"nan and infinities equal themselves", "f32[3]", "[nan, inf, -inf]", "[nan, inf, -inf]", Tolerance{}, 0, 0, 0, nil},
		{"nan differs from numbers", "f32[2]", "[nan, 1]", "[1, nan]", Tolerance{1, 1}, 2, inf, inf, []int64{0}},
		{"infinities differ from numbers", "f32[3]", "[inf, 3, inf]", "[3e38, inf, -inf]", Tolerance{1, 1}, 3, inf, inf, []int64{0}},
		{"within", "f32[2]", "[1.00005, 0.00001]", "[1, 0]", Tolerance{1e-4, 1e-5}, 0, 4.9949e-05, 4.9949e-05, nil},
		{"the worst is farthest outside, not the largest", "f64[2, 2]", "[110, 1, 1, 3]", "[100, 1, 1, 1]", Tolerance{0.1, 0}, 1, 10, 2, []int64{1, 1}},
		{"relative leaves out zero", "f64[2]", "[1, 3]", "[0, 2]", Tolerance{}, 2, 1, 0.5, []int64{0}},
		{"bf16", "bf16[1]", "[1.0078125]", "[1]", Default(ir.BF16), 0, 0.0078125, 0.0078125, nil},
		{"integers", "i64[2]", "[5, -9007199254740993]", "[5, -9007199254740992]", Tolerance{}, 1, 1, 1 / 9007199254740992.0, []int64{1}},
		{"unsigned", "ui64[1]", "[18446744073709551615]", "[18446744073709551615]", Tolerance{}, 0, 0, 0, nil},
		{"bools", "i1[3]", "[true, false, true]", "[true, true, true]", Tolerance{}, 1, 1, 1, []int64{1}},
		{"packed", "i4[3]", "[-8, 7, 1]", "[-8, 7, 2]", Tolerance{}, 1, 1, 0.5, []int64{2}},
		{"complex counts elements", "c64[2]", "[(1, 2), (3, 4)]", "[(1, 2), (4, 6)]", Tolerance{}, 1, 2, 1 / 3.0, []int64{1}},
		{"strings", "string[2]", `["a", "b"]`, `["a", "c"]`, Tolerance{}, 1, 0, 0, []int64{1}},
		{"scalars", "f32[]", "2", "1", Tolerance{}, 1, 1, 1, []int64{}},
		{"nothing", "f32[0, 3]", "[]", "[]", Tolerance{}, 0, 0, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Tensors(tensor(t, c.typ, c.got), tensor(t, c.typ, c.want), c.tol)
			if r.Problem != "" || r.Mismatches != c.mismatches || r.Equal() != (c.mismatches == 0) {
				t.Errorf("%d mismatches, problem %q, expected %d", r.Mismatches, r.Problem, c.mismatches)
			}
			for _, e := range []struct {
				what      string
				got, want float64
			}{{"absolute", r.Absolute.Error, c.absolute}, {"relative", r.Relative.Error, c.relative}} {
				if !(e.got == e.want || math.Abs(e.got-e.want) <= 1e-4*e.want) {
					t.Errorf("largest %s error %g, expected %g", e.what, e.got, e.want)
				}
			}
			if !slices.Equal(r.Worst.Index, c.worst) || (r.Worst.Index == nil) != (c.worst == nil) {
				t.Errorf("worst at %v, expected %v", r.Worst.Index, c.worst)
			}
		})
	}
}

func TestTensorsOfOtherTypesAndShapes(t *testing.T) {
	a := tensor(t, "f32[2]", "[1, 2]")
	for _, want := range []*ir.Tensor{tensor(t, "f64[2]", "[1, 2]"), tensor(t, "f32[2, 1]", "[1, 2]"), {DType: ir.F32, Shape: []int64{2}, Data: make([]byte, 7)}} {
		if r := Tensors(a, want, Tolerance{1, 1}); r.Equal() || r.Problem == "" {
			t.Errorf("%s equals %s", a.Type(), want.Type())
		}
	}
}

func TestExtremesHaveValues(t *testing.T) {
	r := Tensors(tensor(t, "c64[1]", "[(1, 2)]"), tensor(t, "c64[1]", "[(1, 3)]"), Tolerance{})
	if r.Worst.Got != "(1, 2)" || r.Worst.Want != "(1, 3)" {
		t.Errorf("got %s, want %s", r.Worst.Got, r.Worst.Want)
	}
	if got := Preview(tensor(t, "ui64[3]", "[1, 2, 18446744073709551615]"), 3); got != "1 2 18446744073709551615" {
		t.Error(got)
	}
	if got := Preview(tensor(t, "f32[3]", "[1.5, 2, 3]"), 2); got != "1.5 2 ..." {
		t.Error(got)
	}
}

func TestBits(t *testing.T) {
	for _, c := range []struct {
		typ, got, want string
		mismatches     int64
		first          []int64
		text           string
	}{
		{"f32[3]", "[1, nan, inf]", "[1, nan, inf]", 0, nil, ""},
		{"f32[2, 2]", "[1, 0, -0, 2]", "[1, -0, 0, 2]", 2, []int64{0, 1}, "0 (0x00000000)"},
		{"f64[1]", "[1]", "[1.0000000000000002]", 1, []int64{0}, "1 (0x3ff0000000000000)"},
		{"bf16[2]", "[1, 2]", "[1, 2]", 0, nil, ""},
		{"i4[3]", "[-8, 7, 1]", "[-8, 7, 2]", 1, []int64{2}, "1"},
		{"i1[2]", "[true, false]", "[true, true]", 1, []int64{1}, "false"},
		{"f32[0]", "[]", "[]", 0, nil, ""},
	} {
		r := Bits(tensor(t, c.typ, c.got), tensor(t, c.typ, c.want))
		if r.Problem != "" || r.Mismatches != c.mismatches || !slices.Equal(r.Worst.Index, c.first) || r.Worst.Got != c.text || r.Equal() != (c.mismatches == 0) {
			t.Errorf("%s: %s and %s: %+v", c.typ, c.got, c.want, r)
		}
	}
	quiet, other := tensor(t, "f32[1]", "[nan]"), tensor(t, "f32[1]", "[nan]")
	other.Data[0] ^= 1
	if r := Bits(quiet, other); r.Mismatches != 1 || r.Absolute.Index != nil {
		t.Errorf("NaNs with other payloads: %+v", r)
	}
	if r := Bits(quiet, tensor(t, "f64[1]", "[nan]")); r.Problem == "" {
		t.Error("types are not compared")
	}
}
