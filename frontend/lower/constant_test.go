package lower

import (
	"strings"
	"testing"

	"weft/ir"
)

func TestParseConstant(t *testing.T) {
	for _, c := range []struct{ fact, want string }{
		{"a=5", "i64[] 5"},
		{"in.1=[1,-2]", "i64[2] [1,-2]"},
		{"a=[[1,2],[3,4]]", "i64[2, 2] [[1,2],[3,4]]"},
		{"a=[true,false]", "i1[2] [true,false]"},
		{"a=[1, 2.5]", "f64[2] [1.0,2.5]"},
		{"a=1e3", "f64[] 1000.0"},
		{"a=[]", "i64[0] []"},
		{"a=[[],[]]", "i64[2, 0] "},
		{"a.b=[9223372036854775807]", "i64[1] [9223372036854775807]"},
		{"a", "cannot read"},
		{"=1", "cannot read"},
		{"a=", "cannot read"},
		{"a=[1", "cannot read"},
		{"a=1 2", "more than one"},
		{"a=[1,[2]]", "mix"},
		{"a=[[1],2]", "mix"},
		{"a=[[1],[2,3]]", "different lengths"},
		{`a="x"`, "are numbers"},
		{"a=1e999", "out of range"},
		{"a=" + strings.Repeat("[", 40) + strings.Repeat("]", 40), "too deep"},
		{"a=[" + strings.Repeat("1,", MaxConstantElements) + "1]", "are more than"},
	} {
		_, v, err := ParseConstant(c.fact)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			text, ok := FormatConstant(v)
			if !ok {
				text = ""
			}
			got = v.Type().String() + " " + text
		}
		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%.40s: %s, want %s", c.fact, got, c.want)
		}
	}
}

func TestAsConstant(t *testing.T) {
	for _, c := range []struct {
		fact, to string
		dtype    ir.DType
		ok       bool
	}{
		{"a=[1,2]", "ui8", ir.U8, true},
		{"a=[256]", "ui8", ir.U8, false},
		{"a=[-1]", "ui64", ir.U64, false},
		{"a=[1]", "f16", ir.F16, true},
		{"a=[1.5]", "i32", ir.I32, false},
		{"a=[true]", "i32", ir.I32, true},
		{"a=[2]", "i1", ir.Bool, false},
	} {
		_, v, err := ParseConstant(c.fact)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := AsConstant("a", v, ir.TensorOf(c.dtype, ir.Consts(v.Shape...)...)); (err == nil) != c.ok {
			t.Errorf("%s as %s: %v", c.fact, c.to, err)
		}
	}
}
