package lower

import (
	"testing"

	"weft/ir"
)

// TestKnown builds shape arithmetic over x: f32[batch, seq, 64], with batch and seq at least 1,
// and compares what is known of its contents.
func TestKnown(t *testing.T) {
	p := &ir.Program{}
	e := &ir.Entry{Name: "f"}
	p.Entries = []*ir.Entry{e}
	batch, seq := ir.Sym("batch"), ir.Sym("seq")
	p.AddSymbol("batch").Min = 1
	p.AddSymbol("seq").Min = 1
	x := e.AddInput("x", ir.TensorOf(ir.I64, batch, seq))
	b := ir.NewBuilder(p, e)
	k := NewKnown(p, e)
	shape := func() ir.Value {
		one := ir.Consts(1)
		return b.Concatenate(0, b.Reshape(b.Dim(batch), one), b.Reshape(b.Dim(seq), one), b.Constant(ir.I64s([]int64{64})))
	}
	minusOne := b.Constant(ir.I64s([]int64{-1, -1, -1}))
	for _, c := range []struct {
		name string
		v    ir.Value
		want string // "unknown" when it cannot be told
	}{
		{"shape", shape(), "[batch, seq, 64]"},
		{"element", b.Take(shape(), b.Constant(ir.I64s([]int64{1})), 0), "[seq]"},
		{"slice", b.SliceAxis(shape(), 0, ir.Const(0), ir.Const(2), 1), "[batch, seq]"},
		{"reversed", b.Reverse(shape(), 0), "[64, seq, batch]"},
		{"product", b.Reduce(ir.Mul, shape(), 0), "[64*batch*seq]"},
		{"half", b.Binary(ir.OpDivide, shape(), b.FullLike(shape(), 2)), "[floordiv(batch, 2), floordiv(seq, 2), 32]"},
		{"never negative", b.Select(b.Compare(ir.EQ, shape(), minusOne), b.FullLike(shape(), 1), shape()), "[batch, seq, 64]"},
		{"at least one", b.Binary(ir.OpMaximum, shape(), b.FullLike(shape(), 1)), "[batch, seq, 64]"},
		{"not decided", b.Convert(b.Compare(ir.EQ, shape(), b.FullLike(shape(), 4)), ir.I64), "unknown"},
		{"narrow and wide", b.Convert(b.Convert(shape(), ir.I32), ir.I64), "[batch, seq, 64]"},
		{"bytes are not trusted", b.Convert(b.Convert(shape(), ir.I8), ir.I64), "unknown"},
		{"scaled in floats", b.Convert(b.Unary(ir.OpFloor, Scale(b, b.Convert(shape(), ir.F32), 1.5)), ir.I64), "[floordiv(3*batch, 2), floordiv(3*seq, 2), 96]"},
		{"counted", b.Binary(ir.OpAdd, b.Iota(ir.I64, ir.Consts(3), 0), shape()), "[batch, seq + 1, 66]"},
		{"padded", b.Pad(shape(), b.Constant(ir.ScalarInt(ir.I64, 7)), ir.Consts(1), ir.Consts(0), nil), "[7, batch, seq, 64]"},
		{"data", b.Reduce(ir.Sum, x, 0, 1), "unknown"},
		{"divided by zero", b.Binary(ir.OpDivide, shape(), b.FullLike(shape(), 0)), "unknown"},
	} {
		got := "unknown"
		if dims, ok := k.Dims(c.v); ok {
			got = ir.DimList(dims)
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestKnownLimits checks that expressions do not grow without bound.
func TestKnownLimits(t *testing.T) {
	p := &ir.Program{}
	e := &ir.Entry{Name: "f"}
	p.Entries = []*ir.Entry{e}
	b := ir.NewBuilder(p, e)
	v := b.Binary(ir.OpAdd, b.Dim(ir.Sym("a")), b.Dim(ir.Sym("b")))
	for range 40 {
		v = b.Binary(ir.OpMultiply, v, v)
	}
	if _, ok := NewKnown(p, e).Dims(v); ok {
		t.Error("(a + b)^(2^40) was expanded")
	}
}

func TestSimplify(t *testing.T) {
	p := &ir.Program{}
	e := &ir.Entry{Name: "f"}
	p.Entries = []*ir.Entry{e}
	n := ir.Sym("n")
	p.AddSymbol("n")
	x := e.AddInput("x", ir.TensorOf(ir.F32, n))
	b := ir.NewBuilder(p, e)
	k := NewKnown(p, e)
	size := b.Binary(ir.OpMultiply, b.Dim(n), b.Constant(ir.ScalarInt(ir.I64, 2)))
	b.Unary(ir.OpExponential, x) // unused
	e.AddOutput("size", "", size)
	e.AddOutput("six", "", b.Binary(ir.OpMultiply, b.Constant(ir.ScalarInt(ir.I64, 2)), b.Constant(ir.ScalarInt(ir.I64, 3))))
	Simplify(p, e, k)
	if len(e.Body.Ops) != 2 || e.Body.Ops[0].Kind != ir.OpDim || e.Body.Ops[1].Kind != ir.OpConstant {
		t.Errorf("simplified to\n%s", p)
	}
}
