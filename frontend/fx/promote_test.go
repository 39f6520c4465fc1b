package fx

import (
	"testing"

	"weft/ir"
)

// TestPromote has pairs whose common type torch.promote_types gives.
func TestPromote(t *testing.T) {
	for _, c := range [][3]ir.DType{
		{ir.Bool, ir.U8, ir.U8}, {ir.U8, ir.I8, ir.I16}, {ir.U8, ir.I16, ir.I16}, {ir.I8, ir.I64, ir.I64}, {ir.U16, ir.I16, ir.I32},
		{ir.U32, ir.I8, ir.I64}, {ir.I64, ir.F16, ir.F16}, {ir.Bool, ir.BF16, ir.BF16}, {ir.F16, ir.BF16, ir.F32},
		{ir.F32, ir.F64, ir.F64}, {ir.BF16, ir.F32, ir.F32}, {ir.F32, ir.C64, ir.C64}, {ir.I32, ir.I32, ir.I32},
	} {
		if got := promote(c[0], c[1]); got != c[2] {
			t.Errorf("promote(%s, %s) = %s, want %s", c[0], c[1], got, c[2])
		}
		if got := promote(c[1], c[0]); got != c[2] {
			t.Errorf("promote(%s, %s) = %s, want %s", c[1], c[0], got, c[2])
		}
	}
}

// TestResultType has the rules by which ranks and Python numbers count (torch.result_type).
func TestResultType(t *testing.T) {
	e := &ir.Entry{Name: "forward"}
	c := &call{scope: &scope{b: ir.NewBuilder(&ir.Program{}, e)}}
	vector := func(d ir.DType) operand { return tensorOperand(e.AddInput("", ir.TensorOf(d, ir.Const(3)))) }
	scalar := func(d ir.DType) operand { return tensorOperand(e.AddInput("", ir.Scalar(d))) }
	integer, float := numberOperand(intLiteral(2)), numberOperand(floatLiteral(0.5))
	for name, x := range map[string]struct {
		operands []operand
		want     ir.DType
	}{
		"int tensor, float number":         {[]operand{vector(ir.I32), float}, ir.F32},
		"int tensor, int number":           {[]operand{vector(ir.I8), integer}, ir.I8},
		"bool tensor, int number":          {[]operand{vector(ir.Bool), integer}, ir.I64},
		"half tensor, float number":        {[]operand{vector(ir.F16), float}, ir.F16},
		"float tensor, double scalar":      {[]operand{vector(ir.F32), scalar(ir.F64)}, ir.F32},
		"int tensor, double scalar":        {[]operand{vector(ir.I64), scalar(ir.F64)}, ir.F64},
		"half tensor, bfloat16 tensor":     {[]operand{vector(ir.F16), vector(ir.BF16)}, ir.F32},
		"int8 tensor, int64 scalar":        {[]operand{vector(ir.I8), scalar(ir.I64)}, ir.I8},
		"int scalar, float number":         {[]operand{scalar(ir.I64), float}, ir.F32},
		"bfloat16 scalar, float32 tensor":  {[]operand{scalar(ir.BF16), vector(ir.F32)}, ir.F32},
		"bool number, bool tensor":         {[]operand{numberOperand(boolLiteral(true)), vector(ir.Bool)}, ir.Bool},
		"double scalar, half scalar":       {[]operand{scalar(ir.F64), scalar(ir.F16)}, ir.F64},
		"uint8 tensor, int8 tensor, float": {[]operand{vector(ir.U8), vector(ir.I8), float}, ir.F32},
	} {
		if got := c.resultType(x.operands...); got != x.want {
			t.Errorf("%s: %s, want %s", name, got, x.want)
		}
	}
}

// TestCanView compares with torch's rule for views of strided memory.
func TestCanView(t *testing.T) {
	d := func(v ...int64) []ir.Dim { return ir.Consts(v...) }
	b, s := ir.Sym("b"), ir.Sym("s")
	for name, c := range map[string]struct {
		sizes, strides, to []ir.Dim
		want               bool
	}{
		"contiguous":             {d(2, 3, 4), d(12, 4, 1), d(6, 4), true},
		"transposed":             {d(3, 2), d(1, 3), d(6), false},
		"transposed, kept":       {d(3, 2), d(1, 3), d(3, 1, 2), true},
		"split of a slice":       {d(2, 4), d(8, 1), d(2, 2, 2), true},
		"merge over a slice":     {d(2, 4), d(8, 1), d(8), false},
		"expanded":               {d(3, 2), d(0, 1), d(6), false},
		"expanded dims together": {d(3, 4, 2), d(0, 0, 1), d(12, 2), true},
		"empty":                  {d(0, 3), d(1, 5), d(3, 0), true},
		"unknown strides":        {d(2, 3), nil, d(6), true},
		"ones":                   {d(1, 4, 1), d(9, 1, 7), d(2, 2), true},
		"symbolic":               {[]ir.Dim{b, s, ir.Const(4)}, []ir.Dim{s.MulConst(4), ir.Const(4), ir.Const(1)}, []ir.Dim{b.Mul(s), ir.Const(4)}, true},
		"symbolic transposed":    {[]ir.Dim{s, b}, []ir.Dim{ir.Const(1), s}, []ir.Dim{b.Mul(s)}, false},
	} {
		if got := canView(c.sizes, c.strides, c.to); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
