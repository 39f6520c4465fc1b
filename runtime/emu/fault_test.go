package emu

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"weft/runtime"
)

// kernelText wraps instructions in a kernel "k" with parameters a, b (pointers) and n, whose
// values are in %rd1, %rd2 and %r1; %r2 is the thread, %rd4 and %rd5 are a and b plus four
// times the thread, and s is 256 bytes of shared memory. The body starts at line 32.
func kernelText(body string) string {
	return `.version 8.0
.target sm_90
.address_size 64
.const .align 4 .u32 table[4] = {10, 11, 12, 13};
.global .align 4 .u32 counter;
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{
	.reg .pred %p<9>;
	.reg .b16 %rs<9>;
	.reg .b32 %r<9>;
	.reg .f32 %f<9>;
	.reg .b64 %rd<9>;
	.shared .align 16 .b8 s[256];
	ld.param.u64 %rd1, [a];
	ld.param.u64 %rd2, [b];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %tid.x;
	mul.wide.u32 %rd3, %r2, 4;
	add.s64 %rd4, %rd1, %rd3;
	add.s64 %rd5, %rd2, %rd3;
	mov.b32 %r4, 0;
	setp.lt.u32 %p1, %r2, 5;
	setp.lt.u32 %p2, %r2, 32;
	mov.u32 %r5, %ctaid.x;
	setp.ge.u32 %p3, %r5, 7;
	mov.u64 %rd6, s;
	add.s64 %rd7, %rd6, %rd3;




` + body + "\n\tret;\n}\n"
}

func TestFaults(t *testing.T) {
	const discarded = runtime.Write | runtime.Discard
	for _, c := range []struct {
		name, body     string
		block          int // threads
		accessA        runtime.Access
		accessB        runtime.Access
		kind           FaultKind
		line, argument int
		thread         int
		want           string
	}{
		{"past the end", "ld.global.u32 %r3, [%rd4+4];", 64, runtime.Read, discarded, OutOfBounds, 32, 0, 63, "offset 256 of argument 0, which has 256 bytes"},
		{"before the start", "ld.global.u32 %r3, [%rd4+-4];", 64, runtime.Read, discarded, OutOfBounds, 32, 0, 0, "offset -4 of argument 0"},
		{"into the next argument", "st.global.u32 [%rd4+256], %r2;", 64, runtime.ReadWrite, discarded, OutOfBounds, 32, 0, 0, "offset 256 of argument 0"},
		{"no argument", "mov.u64 %rd8, 4096; ld.global.u32 %r3, [%rd8];", 64, runtime.Read, discarded, OutOfBounds, 32, -1, 0, "0x1000 are in no argument of the launch"},
		{"a number as a pointer", "cvt.u64.u32 %rd8, %r1; st.global.u32 [%rd8], %r2;", 64, runtime.Read, discarded, OutOfBounds, 32, -1, 0, "in no argument"},
		{"near a pointer from memory", "st.global.u64 [%rd2], %rd1; ld.global.u64 %rd8, [%rd2]; ld.global.u32 %r3, [%rd8+-8];", 1, runtime.Read, discarded, OutOfBounds, 32, 0, 0, "nearest is argument 0: offset -8"},
		{"vector past the end", "mul.wide.u32 %rd3, %r2, 16; add.s64 %rd4, %rd1, %rd3; ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd4];", 64, runtime.Read, discarded, OutOfBounds, 32, 0, 16, "16 bytes"},
		{"shared past the end", "st.shared.u32 [%rd7+4], %r2;", 64, runtime.Read, discarded, OutOfBounds, 32, -1, 63, "offset 256 of variable shared memory"},
		{"store to a constant", "mov.u64 %rd8, table; st.global.u32 [%rd8], %r2;", 32, runtime.Read, discarded, AccessDenied, 32, -1, 0, "variable table"},
		{"misaligned", "ld.global.u32 %r3, [%rd4+2];", 32, runtime.Read, discarded, Misaligned, 32, 0, 0, "offset 2 of argument 0"},
		{"misaligned vector", "ld.global.v2.u32 {%r3, %r4}, [%rd4];", 32, runtime.Read, discarded, Misaligned, 32, 0, 1, "8 bytes"},
		{"misaligned shared", "st.shared.u16 [%rd7+1], %rs1;", 32, runtime.Read, discarded, Misaligned, 32, -1, 0, "shared memory"},
		{"write through Read", "st.global.u32 [%rd4], %r2;", 32, runtime.Read, discarded, AccessDenied, 32, 0, 0, "writes argument 0, which the launch declares as read only"},
		{"read through Write", "ld.global.u32 %r3, [%rd5];", 32, runtime.Read, runtime.Write, AccessDenied, 32, 1, 0, "reads argument 1, which the launch declares as write only"},
		{"read of a discarded argument", "ld.global.u32 %r3, [%rd5];", 32, runtime.Read, discarded, Uninitialised, 32, 1, 0, "since the launch discarded it"},
		{"read of what a neighbour wrote later", "@%p1 st.global.u32 [%rd5], %r2; ld.global.u32 %r3, [%rd5];", 32, runtime.Read, discarded, Uninitialised, 32, 1, 5, "byte 20 was never written"},
		{"read of half a word", "st.global.u16 [%rd5], %rs1; ld.global.u32 %r3, [%rd5];", 32, runtime.Read, discarded, Uninitialised, 32, 1, 0, "byte 2 was never written"},
		{"shared read before write", "ld.shared.u32 %r3, [%rd7];", 32, runtime.Read, discarded, Uninitialised, 32, -1, 0, "shared memory: byte 0"},
		{"generic shared", "cvta.shared.u64 %rd8, %rd7; ld.u32 %r3, [%rd8];", 32, runtime.Read, discarded, Uninitialised, 32, -1, 0, "shared memory: byte 0"},
		{"barrier in a branch", "@!%p1 bra L; bar.sync 0; L:", 64, runtime.Read, discarded, BarrierDivergence, 32, -1, 0, "5 of the warp's 32 threads are at this barrier; thread (5,0,0) is elsewhere"},
		{"barrier after an exit", "@%p1 ret; bar.sync 0;", 64, runtime.Read, discarded, BarrierDivergence, 32, -1, 5, "thread (0,0,0) has exited"},
		{"a warp has exited", "@%p2 ret; bar.sync 0;", 64, runtime.Read, discarded, Deadlock, 32, -1, 32, "1 of 2 warps have exited; waiting: warp 1 at line 32 (barrier 0, all threads)"},
		{"two barriers", "@%p2 bra L; bar.sync 0; ret; L: bar.sync 1;", 64, runtime.Read, discarded, Deadlock, 32, -1, 0, "warp 0 at line 32 (barrier 1, all threads), warp 1 at line 32 (barrier 0, all threads)"},
		{"counts differ", "@%p2 bra L; bar.sync 1, 64; ret; L: bar.sync 1;", 64, runtime.Read, discarded, BarrierDivergence, 32, -1, 32, "used with 64 threads here and all threads"},
		{"barrier number", "mov.b32 %r3, 16; bar.sync %r3;", 64, runtime.Read, discarded, BarrierDivergence, 32, -1, 0, "barrier number 16"},
		{"endless loop", "L: bra L;", 32, runtime.Read, discarded, BudgetExceeded, 32, -1, 0, "has executed"},
		{"spin on shared memory", "st.shared.u32 [s], %r4; L: ld.volatile.shared.u32 %r3, [s]; setp.eq.s32 %p4, %r3, 0; @%p4 bra L;", 64, runtime.Read, discarded, BudgetExceeded, 32, -1, 32, "has executed"},
		{"shuffle in a branch", "@!%p1 ret; shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;", 32, runtime.Read, discarded, WarpDivergence, 32, -1, 4, "lane 4 reads lane 5, which does not take part"},
		{"shuffle with others elsewhere", "@!%p1 bra L; shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; L:", 32, runtime.Read, discarded, WarpDivergence, 32, -1, 0, "names lane 5, which is elsewhere"},
		{"not a member", "vote.sync.any.pred %p4, %p1, 0xf;", 32, runtime.Read, discarded, WarpDivergence, 32, -1, 4, "lacks lane 4"},
		{"trap", "@%p1 trap;", 32, runtime.Read, discarded, Trapped, 32, -1, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, Options{MaxInstructions: 3 << 20}, kernelText(c.body))
			// One allocation, as a runtime's arena: a and b lie side by side.
			arena := h.buffer(512, make([]byte, 512))
			args := []runtime.Arg{pointer(arena, 256, c.accessA), pointer(arena+256, 256, c.accessB), int32Arg(7)}
			err := h.launch("k", 1, c.block, args...)
			var fault *Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			if fault.Kind != c.kind || fault.Line != c.line || fault.Argument != c.argument || fault.Thread != [3]int{c.thread, 0, 0} {
				t.Errorf("%s, line %d, argument %d, thread %v: %v", fault.Kind, fault.Line, fault.Argument, fault.Thread, err)
			}
			for _, want := range []string{c.want, "kernel k (label of k)", "PTX line 32"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nlacks %q", err, want)
				}
			}
			if err := h.device.Synchronize(); err != nil {
				t.Errorf("the error is reported twice: %v", err)
			}
		})
	}
}

// TestLowestBlockFails: of many failing blocks the lowest is reported, however they run.
func TestLowestBlockFails(t *testing.T) {
	for _, workers := range []int{1, 2, 7} {
		h := newHarness(t, Options{Workers: workers}, kernelText("@%p3 trap;"))
		p := h.buffer(256, nil)
		for range 20 {
			err := h.launch("k", 100, 32, pointer(p, 256, runtime.Write), pointer(p, 256, runtime.Write), int32Arg(0))
			var fault *Fault
			if !errors.As(err, &fault) || fault.Block != [3]int{7, 0, 0} {
				t.Fatalf("%d workers: %v", workers, err)
			}
		}
	}
}

func TestUnsupported(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"frobnicate.b32 %r1, %r2;", `PTX line 32: "frobnicate.b32 %r1, %r2": unknown instruction`},
		{"add.s32 %r1, %r2;", "2 operands, expected 3"},
		{"add.s32 %r1, %rd2, %r2;", "%rd2 has 64 bits"},
		{"add.rn.s32 %r1, %r2, %r2;", "modifier .rn"},
		{"atom.global.add.f32 %f1, [%rd1], %f2;", "atomic on .f32"},
		{"ld.local.u32 %r1, [%rd1];", "modifier .local"},
		{"mov.u32 %r1, %clock;", "special register %clock"},
		{"call f, ();", "unknown instruction"},
		{"st.const.u32 [table], %r1;", "store to const space"},
		{"ld.param.u64 %rd1, [a+4];", "8 bytes at 4 of parameter a"},
		{"cvt.s32.f32 %r1, %f1;", "needs .rni"},
		{"shfl.down.b32 %r1, %r2, 1, 31;", "expected 5"},
		{"mul.s32 %r1, %r2, %r2;", "no integer mul"},
	} {
		err := Check(kernelText(c.body))
		var unsupported *UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Line != 32 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.body, err, c.want)
		}
	}
	if err := Check(kernelText("ret;")); err != nil {
		t.Error(err)
	}
	if err := Check("nonsense"); err == nil {
		t.Error("nonsense passes")
	}
}

func TestLaunchErrors(t *testing.T) {
	h := newHarness(t, Options{}, kernelText(""))
	p := h.buffer(256, nil)
	good := []runtime.Arg{pointer(p, 256, runtime.Read), pointer(p, 0, 0), int32Arg(0)}
	for _, c := range []struct {
		launch runtime.Launch
		want   string
	}{
		{runtime.Launch{Grid: [3]int{0, 1, 1}, Block: [3]int{1, 1, 1}, Args: good}, "grid [0 1 1]"},
		{runtime.Launch{Grid: [3]int{1, 1 << 16, 1}, Block: [3]int{1, 1, 1}, Args: good}, "grid"},
		{runtime.Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{33, 32, 1}, Args: good}, "more than 1024 threads"},
		{runtime.Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Args: good[:2]}, "2 arguments for 3 parameters"},
		{runtime.Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Args: []runtime.Arg{good[0], good[1], good[0]}}, "argument 2 has 8 bytes, parameter n has 4"},
		{runtime.Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Args: []runtime.Arg{pointer(p, 257, 1), good[1], good[2]}}, "argument 0: 257 bytes"},
		{runtime.Launch{Grid: [3]int{1, 1, 1}, Block: [3]int{1, 1, 1}, Shared: 300 << 10, Args: good}, "shared memory"},
	} {
		c.launch.Kernel = h.kernel("k")
		if err := h.device.Launch(0, c.launch); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if _, err := h.module.Kernel("other"); err == nil || !strings.Contains(err.Error(), "the module has k") {
		t.Error(err)
	}
}

func TestMemoryErrors(t *testing.T) {
	d := New(Options{Memory: 1 << 20})
	p, err := d.Alloc(100)
	if err != nil || p%256 != 0 {
		t.Fatal(p, err)
	}
	fail := func(name string, err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	_, err = d.Alloc(1 << 20)
	fail("limit", err, "out of memory")
	fail("download", d.Download(make([]byte, 10), p), "byte 0 was never written")
	fail("upload", d.Upload(p+90, make([]byte, 11)), "end past the allocation")
	fail("upload", d.Upload(16, make([]byte, 1)), "is in no allocation")
	fail("fill", d.Fill(0, p+1, []byte{1, 2}, 1), "misaligned")
	fail("fill", d.Fill(0, p, []byte{1, 2, 3}, 1), "patterns of 3 bytes")
	fail("copy", d.Copy(0, p, p+4, 8), "overlaps")
	fail("free", d.Free(p+4), "no allocation")
	fail("stream", d.Copy(3, p, p+50, 8), "no stream 3")
	if err := d.Upload(p, make([]byte, 30)); err != nil {
		t.Fatal(err)
	}
	if err := d.Copy(0, p+40, p, 40); err != nil { // 30 written bytes, 10 that are not
		t.Fatal(err)
	}
	if err := d.Download(make([]byte, 30), p+40); err != nil {
		t.Error(err)
	}
	fail("copied", d.Download(make([]byte, 31), p+40), "byte 30 was never written")
	if err := d.Free(p); err != nil {
		t.Fatal(err)
	}
	if q, err := d.Alloc(1 << 20); err != nil || q == p {
		t.Errorf("after free: 0x%x, %v", q, err)
	}
}

func ExampleFault() {
	f := &Fault{Kind: Misaligned, Kernel: "k", Label: "add at model.py:3", Line: 12, Instruction: "ld.global.u32 %r1, [%rd1]", Message: "4 bytes at 0x2 (offset 2 of argument 0)"}
	fmt.Println(f)
	// Output: emulator: misaligned access: kernel k (add at model.py:3), block (0,0,0), thread (0,0,0), PTX line 12: "ld.global.u32 %r1, [%rd1]": 4 bytes at 0x2 (offset 2 of argument 0)
}
