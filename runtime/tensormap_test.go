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
		{"the largest dim", func(m *TensorMap) { m.Dims[1] = 1 << 31 }, ""},
		{"a larger dim", func(m *TensorMap) { m.Dims[1] = 1<<31 + 1 }, "2147483649 elements in dimension 1"},
		{"strides", func(m *TensorMap) { m.Strides = nil }, "0 strides"},
		{"a stride of 0", func(m *TensorMap) { m.Strides[0] = 0 }, "a stride of 0"},
		{"an odd stride", func(m *TensorMap) { m.Strides[0] = 136 }, "a stride of 136"},
		{"a large stride", func(m *TensorMap) { m.Strides[0] = 1 << 40 }, "a stride of 1099511627776"},
		{"box", func(m *TensorMap) { m.Box = m.Box[:1] }, "a box of 1"},
		{"an empty box", func(m *TensorMap) { m.Box[1] = 0 }, "0 elements in dimension 1"},
		{"a large box", func(m *TensorMap) { m.Box[1] = 257 }, "257 elements in dimension 1"},
		{"a box that the swizzle cuts", func(m *TensorMap) { m.Box[0] = 72 }, "144 bytes"},
		{"a box that leaves gaps", func(m *TensorMap) { m.Box[0] = 32 }, "64 bytes"},
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
			a.Map.Dims = []uint64{1 << 31, 1 << 31}
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
	m.Dims, m.Strides = []uint64{1, 1 << 31, 1 << 31}, []uint64{1 << 32, 1 << 32}
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

// mapPlan has one launch, with a tensor map of an input of some bytes.
func mapPlan(m *plan.TensorMap, size int64) *plan.Plan {
	return &plan.Plan{
		Version: plan.Version, Target: "sm_90a", Entry: "e",
		Inputs:  []plan.Tensor{{Name: "x", DType: "ui8", Shape: ir.Consts(size)}},
		Outputs: []plan.Tensor{{Name: "y", DType: "ui8", Shape: ir.Consts(1)}},
		Buffers: []plan.Buffer{{Kind: plan.Input, Size: ir.Const(size)}, {Kind: plan.Output, Size: ir.Const(1)}},
		Steps: []plan.Step{{Launch: &plan.Launch{Kernel: "k", Grid: plan.Grid(ir.Consts(1, 1, 1)), Block: 32,
			Args: []plan.Arg{{Buffer: 1, Access: plan.Write}, {Buffer: 0, Access: plan.Read, Map: m}}}}},
	}
}

// What the rules of plans accept, devices do, and the other way round.
func FuzzMapArgument(f *testing.F) {
	f.Add("bf16", uint8(2), int64(0), int64(64), int64(8), int64(1), int64(128), int64(1024), 64, 8, 1, 128, int64(1024))
	f.Add("f32", uint8(3), int64(16), int64(4), int64(3), int64(2), int64(32), int64(16), 4, 2, 1, 0, int64(112))
	f.Add("ui8", uint8(1), int64(0), int64(0), int64(0), int64(0), int64(0), int64(0), 256, 0, 0, 0, int64(0))
	f.Fuzz(func(t *testing.T, dtype string, rank uint8, offset, d0, d1, d2, s1, s2 int64, b0, b1, b2, swizzle int, size int64) {
		n := int(rank%3) + 1
		if size < 0 || size > 1<<50 {
			return
		}
		m := &plan.TensorMap{DType: dtype, Offset: ir.Const(offset), Dims: ir.Consts(d0, d1, d2)[:n], Strides: ir.Consts(s1, s2)[:n-1],
			Box: []int{b0, b1, b2}[:n], Swizzle: swizzle}
		p := mapPlan(m, size)
		if err := plan.Verify(p, nil); err == nil {
			bound, err := plan.Bind(p, nil)
			if err != nil {
				t.Fatalf("%s in %d bytes: verified, but %v", m, size, err)
			}
			if err := mapArg(m, bound.Steps[0].Maps[1], 0x100).CheckMap(); err != nil {
				t.Fatalf("%s in %d bytes: verified, but %v", m, size, err)
			}
			return
		}
		element, known := ir.ParseDType(dtype)
		kind, ok := TensorTypeOf(element)
		span, exists := SwizzleOf(swizzle)
		if !known || !ok || !exists || offset < 0 || offset > size || min(d0, d1, d2, s1, s2) < 0 || min(b0, b1, b2) < 0 || max(b0, b1, b2) > math.MaxUint16 || offset%16 != 0 {
			return
		}
		direct := Arg{Kind: ArgTensorMap, Bits: 0x100 + uint64(offset), Size: size - offset, Access: Read, Map: &TensorMap{
			Type: kind, Dims: []uint64{uint64(d0), uint64(d1), uint64(d2)}[:n], Strides: []uint64{uint64(s1), uint64(s2)}[:n-1],
			Box: []uint32{uint32(b0), uint32(b1), uint32(b2)}[:n], Swizzle: span}}
		if err := direct.CheckMap(); err == nil && !direct.Map.Empty() {
			t.Fatalf("%s in %d bytes: devices take it, but %v", m, size, plan.Verify(p, nil))
		}
	})
}
