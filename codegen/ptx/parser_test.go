package ptx

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLLC(t *testing.T) {
	m, err := Parse(readTestdata(t, "split/all.ptx"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Version != "8.0" || m.Targets[0] != "sm_90a" || m.AddressSize != 64 {
		t.Errorf("header: %s %v %d", m.Version, m.Targets, m.AddressSize)
	}
	table := m.Variables[0]
	if table.Name != "zeta_table" || table.Space != Const || table.Align != 4 || table.Size() != 16 || table.Init[2].Bits != 128 {
		t.Errorf("variable %+v", table)
	}
	if dynamic := m.Variables[1]; !dynamic.Extern || dynamic.Count != 0 || dynamic.Space != Shared {
		t.Errorf("variable %+v", dynamic)
	}
	mu := m.Function("mu")
	if mu.MaxThreads != [3]int{128, 1, 1} || len(mu.Parameters) != 3 || mu.Parameters[2].Type != U32 {
		t.Errorf("mu: %+v", mu)
	}
	if tile := m.Function("zeta").Variables[0]; tile.Name != "zeta_tile" || tile.Size() != 4096 || tile.Align != 16 {
		t.Errorf("variable %+v", tile)
	}
}

func TestInstruction(t *testing.T) {
	named := func(name string, i int) Operand { return Operand{Kind: OperandRegister, Name: name, Register: i} }
	m, err := Parse(entry("L1: @!%p1  ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+-8];\n bra L1;\n setp.lt.and.s32 %p1|_, %r1, -3, !%p2;"))
	if err != nil {
		t.Fatal(err)
	}
	want := []*Instruction{
		{
			Labels: []string{"L1"}, Guard: &Guard{0, true}, Opcode: "ld", Modifiers: []string{"global", "nc", "v2", "f32"},
			Operands: []Operand{
				{Kind: OperandVector, Elements: []Operand{named("%f1", 1), named("%f2", 2)}},
				{Kind: OperandAddress, Offset: -8, Elements: []Operand{named("%rd1", 3)}},
			},
			Text: "@!%p1 ld.global.nc.v2.f32 {%f1, %f2}, [%rd1+-8]",
		},
		{Opcode: "bra", Operands: []Operand{{Kind: OperandLabel, Name: "L1", Targets: []int{0}}}, Text: "bra L1", Modifiers: []string{}},
		{
			Opcode: "setp", Modifiers: []string{"lt", "and", "s32"},
			Operands: []Operand{
				{Kind: OperandPair, Elements: []Operand{named("%p1", 0), {Kind: OperandSink, Name: "_"}}},
				named("%r1", 4),
				{Kind: OperandInteger, Bits: 1<<64 - 3},
				{Kind: OperandRegister, Name: "%p2", Register: 5, Negated: true},
			},
			Text: "setp.lt.and.s32 %p1|_, %r1, -3, !%p2",
		},
	}
	ignore := cmp.FilterValues(func(a, b Position) bool { return true }, cmp.Ignore())
	if diff := cmp.Diff(want, m.Functions[0].Body, ignore); diff != "" {
		t.Error(diff)
	}
}

// TestScopes: braces of inline assembly have their own registers and labels.
func TestScopes(t *testing.T) {
	m, err := Parse(entry("{ .reg .pred p; setp.eq.s32 p, %r1, 0; @p bra DONE; { .reg .b32 p; mov.b32 p, 1; } DONE: }\n DONE: bra DONE;"))
	if err != nil {
		t.Fatal(err)
	}
	f := m.Functions[0]
	var types []string
	for _, r := range f.Registers {
		types = append(types, r.Name+":"+r.Type.String())
	}
	if diff := cmp.Diff([]string{"p:pred", "%r1:b32", "p:b32"}, types); diff != "" {
		t.Error(diff)
	}
	if got := f.Body[1].Operands[0].Targets[0]; got != 3 {
		t.Errorf("the inner label is at %d", got)
	}
}

func TestBranchTable(t *testing.T) {
	m, err := Parse(entry("brx.idx %r1, $T;\n$T: .branchtargets A, B;\nA: ret;\nB: ret;"))
	if err != nil {
		t.Fatal(err)
	}
	table := m.Functions[0].Body[0].Operands[1]
	if diff := cmp.Diff([]int{1, 2}, table.Targets); diff != "" || table.Kind != OperandTable {
		t.Error(table.Kind, diff)
	}
}

func TestImmediates(t *testing.T) {
	for _, c := range []struct {
		text string
		typ  Type
		want uint64
	}{
		{"0f3F800000", F32, 0x3f800000},
		{"0F3F800000", F64, 0x3ff0000000000000},
		{"0d3FF8000000000000", F64, 0x3ff8000000000000},
		{"0d3FF8000000000000", F32, 0x3fc00000},
		{"-1", B16, 0xffff}, {"0x10U", U32, 16}, {"017", U32, 15}, {"0b101", U32, 5}, {"-2147483648", S32, 0x80000000},
		{"1.5", F64, 0x3ff8000000000000}, {"-1", S64, 1<<64 - 1},
	} {
		m, err := Parse(entry("mov.b32 %r1, " + c.text + ";"))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if got := m.Functions[0].Body[0].Operands[1].ImmediateBits(c.typ); got != c.want {
			t.Errorf("%s as %s: 0x%x, want 0x%x", c.text, c.typ, got, c.want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "line 1, column 1: no .version"},
		{"hello", "expected a declaration"},
		{prologue + ".visible .entry k(", "line 4, column 19: expected a declaration, found the end of the text"},
		{prologue + ".visible .entry k() {", `expected "}", found the end`},
		{entry("add.s32 %r1, %r2, %r77;"), "line 12, column 19: register %r77 is not declared"},
		{entry("bra NOWHERE;"), "line 12, column 5: label NOWHERE is not defined"},
		{entry("A: ret; A: ret;"), "label A is defined twice"},
		{entry("@%r1 ret;"), "%r1 is not a predicate"},
		{entry("mov.b32 %r1, 0x1ffffffffffffffff;"), "malformed number"},
		{entry("mov.b32 %r1, 0fXX;"), "malformed number"},
		{entry("mov.b32 %r1, [[%r1]];"), "not an address"},
		{entry("mov.b32 %r1, !!!!!!!!%p1;"), "nesting is too deep"},
		{entry(strings.Repeat("{", 100)), "nesting is too deep"},
		{prologue + ".global .align 3 .b8 x[4];", "no power of two"},
		{prologue + ".global .b8 x[4] = {1,2,3,4,5};", "more initial values"},
		{prologue + ".global .b8 x[];", "x has no size"},
		{prologue + ".global .b8 x[99999999][99999999];", "too large"},
		{prologue + "/* no end", "comment without end"},
		{prologue + "\x01", "unexpected byte 0x01"},
		{entry("ret;") + entry("ret;")[len(prologue):], "function k is defined twice"},
	} {
		_, err := Parse(c.text)
		var typed *Error
		if err == nil || !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: got %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(readTestdata(f, "split/all.ptx"))
	f.Add(entry("{ .reg .pred p; @p bra A; A: }"))
	f.Add(entry("brx.idx %r1, $T; $T: .branchtargets A; A: ret;"))
	f.Add(entry("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%r1], 1; @p bra D; bra W; D: } mbarrier.arrive.shared::cta.b64 _, [%r1];"))
	f.Add(prologue + ".entry k(.param .align 64 .b8 m[128]) .explicitcluster .reqnctapercluster 2, 1, 1 { cp.async.bulk.tensor.2d.shared::cluster.global [s], [m, {1, -1}], [s+8], 3; }")
	f.Add(prologue + ".global .align 8 .u64 x[2] = {generic(y)+4, 0d3FF8000000000000};")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			var typed *Error
			if !errors.As(err, &typed) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		for _, f := range m.Functions {
			for _, in := range f.Body {
				for _, o := range in.Operands {
					for _, target := range o.Targets {
						if target > len(f.Body) {
							t.Fatalf("target %d of %d", target, len(f.Body))
						}
					}
				}
			}
		}
		_ = Lint(text)
		entries, err := Split(text)
		if err != nil {
			return
		}
		if _, err := Join("", entries); err != nil {
			return
		}
	})
}

// TestPhaseWait: a label may stand at the end of a scope, and in each scope again; a sink is an operand.
func TestPhaseWait(t *testing.T) {
	row, _ := Lookup("mbarrier.wait.parity")
	wait := strings.NewReplacer("$0", "%r1", "$1", "%r2").Replace(row.Text)
	m, err := Parse(entry(wait + wait + "\n mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1+8], 16;"))
	if err != nil {
		t.Fatal(err)
	}
	body := m.Functions[0].Body
	for i, target := range map[int]int{1: 3, 2: 0, 4: 6, 5: 3} {
		if got := body[i].Operands[0].Targets; len(got) != 1 || got[0] != target {
			t.Errorf("%s: targets %v, want %d", body[i], got, target)
		}
	}
	if o := body[6].Operands; o[0].Kind != OperandSink || o[1].Kind != OperandAddress || o[1].Offset != 8 || body[6].Modifiers[2] != "shared::cta" {
		t.Errorf("%+v", body[6])
	}
}

// headerText has the directives that stand outside of bodies.
const headerText = `.version 8.3
.target sm_90a, debug
.address_size 64
.file 1 "x.cu"
.extern .func (.param .b32 result) helper (.param .b64 p);
.visible .const .align 8 .u64 pointers[2] = {generic(table)+8, table};
.weak .global .align 4 .f32 table[2][2] = {{0f3F800000, 1.5}, {2.0, -0f40000000}};
.entry k(
	.param .u64 .ptr .global .align 16 a,
	.param .align 64 .b8 map[128],
	.param .f32 c
)
.reqntid 128, 2
.explicitcluster
.reqnctapercluster 2, 1, 1
.minnctapersm 2
.maxnreg 128
{
	.loc 1 2 3
	.pragma "nounroll";
	.reg .b128 %q<2>;
	wgmma.fence.sync.aligned;
	BODY
	ret;
}
`

func TestHeader(t *testing.T) {
	text := strings.Replace(headerText, "BODY", ".reg .b32 %r<5>; .reg .b64 %rd<2>;\n\tcp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];", 1)
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	k := m.Function("k")
	if k.ReqThreads != [3]int{128, 2, 1} || k.ClusterBlocks != [3]int{2, 1, 1} || !k.Parameters[0].Pointer || k.Parameters[0].Align != 16 || k.Parameters[1].Size() != 128 || k.Parameters[1].Align != 64 {
		t.Errorf("%+v", k)
	}
	if v := m.Variables[0]; v.Init[0] != (Initializer{Bits: 8, Symbol: "table", Generic: true}) || v.Init[1].Symbol != "table" {
		t.Errorf("%+v", v)
	}
	if v := m.Variables[1]; v.Size() != 16 || v.Init[1].Bits != 0x3fc00000 || v.Init[3].Bits != 0xc0000000 {
		t.Errorf("%+v", v)
	}
	in := k.Body[1]
	if !in.Has("mbarrier::complete_tx::bytes") || len(in.Operands[1].Elements) != 2 || in.Operands[1].Elements[1].Kind != OperandVector {
		t.Errorf("%v", in)
	}
}
