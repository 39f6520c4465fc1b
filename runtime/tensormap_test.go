package runtime

import (
	"math"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/plan"
)

func goodMap() TensorMap {
	return TensorMap{Type: TensorBF16, Dims: []uint64{64, 8}, Strides: []uint64{128}, Box: []uint32{64, 8}, Swizzle: Swizzle128}
}

func TestTensorMapCheck(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(m *TensorMap)
		want   string // in the error; "" for none
	}{
		{"as it is", func(m *TensorMap) {}, ""},
		{"no dims", func(m *TensorMap) { m.Dims = nil }, "0 dimensions"},
		{"six dims", func(m *TensorMap) { m.Dims = make([]uint64, 6) }, "6 dimensions"},
		{"a dim of 0", func(m *TensorMap) { m.Dims[1], m.Strides[0] = 0, 0 }, ""},
		{"the largest dim", func(m *TensorMap) { m.Dims[1] = 1 << 32 }, ""},
		{"a larger dim", func(m *TensorMap) { m.Dims[1] = 1<<32 + 1 }, "4294967297 elements in dimension 1"},
		{"strides", func(m *TensorMap) { m.Strides = nil }, "0 strides"},
		{"a stride of 0", func(m *TensorMap) { m.Strides[0] = 0 }, "a stride of 0"},
		{"an odd stride", func(m *TensorMap) { m.Strides[0] = 136 }, "a stride of 136"},
		{"a large stride", func(m *TensorMap) { m.Strides[0] = 1 << 40 }, "a stride of 1099511627776"},
		{"box", func(m *TensorMap) { m.Box = m.Box[:1] }, "a box of 1"},
		{"an empty box", func(m *TensorMap) { m.Box[1] = 0 }, "0 elements in dimension 1"},
		{"a large box", func(m *TensorMap) { m.Box[1] = 257 }, "257 elements in dimension 1"},
		{"a box that the swizzle cuts", func(m *TensorMap) { m.Box[0] = 72 }, "144 bytes"},
		{"a box without swizzle", func(m *TensorMap) { m.Box[0], m.Swizzle = 72, SwizzleNone }, ""},
		{"an odd box", func(m *TensorMap) { m.Box[0] = 7 }, "14 bytes"},
		{"type", func(m *TensorMap) { m.Type = 10 }, "unknown type"},
		{"swizzle", func(m *TensorMap) { m.Swizzle = 4 }, "unknown type, swizzle"},
		{"promotion", func(m *TensorMap) { m.Promotion = 4 }, "promotion"},
	} {
		m := goodMap()
		test.change(&m)
		err := m.Check()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestTensorMapArgument(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(a *Arg)
		want   string
	}{
		{"as it is", func(a *Arg) {}, ""},
		{"no map", func(a *Arg) { a.Map = nil }, "without a map"},
		{"a bad map", func(a *Arg) { a.Map.Box = nil }, "a box of 0"},
		{"written", func(a *Arg) { a.Access = ReadWrite }, "only read"},
		{"address", func(a *Arg) { a.Bits += 8 }, "not aligned"},
		{"extent", func(a *Arg) { a.Size-- }, "1024 bytes in memory of 1023"},
		{"empty", func(a *Arg) { a.Map.Dims[0], a.Size = 0, 0 }, ""},
		{"beyond all counting", func(a *Arg) {
			a.Map.Dims = []uint64{1 << 32, 1 << 32}
			a.Map.Strides[0] = plan.MaxMapStride &^ 15
		}, "9223372036854775807 bytes"},
	} {
		m := goodMap()
		a := Arg{Kind: ArgTensorMap, Bits: 0x1000, Size: 1024, Access: Read, Map: &m}
		test.change(&a)
		err := a.CheckMap()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	m := goodMap()
	m.Dims[1] = 5
	if got := m.Extent(); got != 4*128+128 {
		t.Errorf("the extent of 5 rows is %d", got)
	}
	m.Dims, m.Strides = []uint64{1, 1 << 32, 1 << 32}, []uint64{1 << 31, 1 << 31}
	if got := m.Extent(); got != math.MaxInt64 {
		t.Errorf("the extent of too much is %d", got)
	}
}

func TestTensorTypes(t *testing.T) {
	for dtype, want := range map[ir.DType]TensorType{
		ir.BF16: TensorBF16, ir.F16: TensorF16, ir.F32: TensorF32, ir.F64: TensorF64,
		ir.Bool: TensorU8, ir.F8E4M3FN: TensorU8, ir.I16: TensorU16, ir.I32: TensorU32, ir.I64: TensorU64,
	} {
		got, ok := TensorTypeOf(dtype)
		if !ok || got != want || got.Size() != dtype.Size() {
			t.Errorf("%s: %d, %t, want %d", dtype, got, ok, want)
		}
	}
	for _, dtype := range []ir.DType{ir.C32, ir.C128, ir.I4, ir.String} {
		if got, ok := TensorTypeOf(dtype); ok {
			t.Errorf("%s: %d, want none", dtype, got)
		}
	}
	for span, want := range map[int]Swizzle{0: SwizzleNone, 32: Swizzle32, 64: Swizzle64, 128: Swizzle128} {
		if got, ok := SwizzleOf(span); !ok || got != want || got.Span() != span {
			t.Errorf("span %d: %d, %t", span, got, ok)
		}
	}
	if _, ok := SwizzleOf(16); ok {
		t.Error("a span of 16 bytes is accepted")
	}
}
