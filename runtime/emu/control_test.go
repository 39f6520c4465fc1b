package emu

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"weft/runtime"
)

// statement is part of a random structured program over two numbers, x and acc. It is printed
// as PTX and run thread by thread in Go.
type statement struct {
	kind        string // op, if, loop, break, continue, return
	shift       int    // the bit of x that decides
	constant    uint32
	then, else_ []statement
}

func randomStatements(r *rand.Rand, depth int, inLoop bool, returns *bool) []statement {
	var list []statement
	for range 1 + r.IntN(4) {
		s := statement{kind: "op", shift: r.IntN(16), constant: r.Uint32()}
		switch k := r.IntN(10); {
		case k < 3 && depth > 0:
			s.kind = "if"
			s.then = randomStatements(r, depth-1, inLoop, returns)
			if r.IntN(2) == 0 {
				s.else_ = randomStatements(r, depth-1, inLoop, returns)
			}
		case k < 6 && depth > 0:
			s.kind = "loop"
			s.then = randomStatements(r, depth-1, true, returns)
		case k == 6 && inLoop:
			s.kind = "break"
		case k == 7 && inLoop:
			s.kind = "continue"
		case k == 8 && returns != nil && r.IntN(3) == 0:
			s.kind = "return"
			*returns = true
		}
		list = append(list, s)
	}
	return list
}

// run interprets the statements for one thread; the result says how they ended.
func run(list []statement, x, acc *uint32) string {
	for _, s := range list {
		taken := *x>>s.shift&1 != 0
		switch s.kind {
		case "op":
			*acc = *acc*1664525 + *x + s.constant
			*x ^= *acc >> 7
		case "if":
			branch := s.then
			if !taken {
				branch = s.else_
			}
			if end := run(branch, x, acc); end != "" {
				return end
			}
		case "loop":
			bound := *x >> s.shift & 7
		loop:
			for i := uint32(0); i < bound; i++ {
				switch run(s.then, x, acc) {
				case "break":
					break loop
				case "return":
					return "return"
				}
			}
		default:
			if taken {
				return s.kind
			}
		}
	}
	return ""
}

// printer prints statements as PTX: x in %r1, acc in %r2.
type printer struct {
	strings.Builder
	labels int
	loops  []int
}

func (p *printer) print(list []statement, depth int) {
	for _, s := range list {
		p.labels++
		label := p.labels
		decide := func() {
			fmt.Fprintf(p, "\tshr.u32 %%r3, %%r1, %d;\n\tand.b32 %%r3, %%r3, 1;\n\tsetp.ne.s32 %%p1, %%r3, 0;\n", s.shift)
		}
		switch s.kind {
		case "op":
			fmt.Fprintf(p, "\tmad.lo.s32 %%r2, %%r2, 1664525, %%r1;\n\tadd.s32 %%r2, %%r2, %d;\n\tshr.u32 %%r3, %%r2, 7;\n\txor.b32 %%r1, %%r1, %%r3;\n", s.constant)
		case "if":
			decide()
			fmt.Fprintf(p, "\t@!%%p1 bra E%d;\n", label)
			p.print(s.then, depth)
			fmt.Fprintf(p, "\tbra.uni J%d;\nE%d:\n", label, label)
			p.print(s.else_, depth)
			fmt.Fprintf(p, "J%d:\n", label)
		case "loop":
			fmt.Fprintf(p, "\tmov.b32 %%c%d, -1;\n\tshr.u32 %%b%d, %%r1, %d;\n\tand.b32 %%b%d, %%b%d, 7;\nC%d:\n", depth, depth, s.shift, depth, depth, label)
			fmt.Fprintf(p, "\tadd.s32 %%c%d, %%c%d, 1;\n\tsetp.ge.u32 %%p1, %%c%d, %%b%d;\n\t@%%p1 bra X%d;\n", depth, depth, depth, depth, label)
			p.loops = append(p.loops, label)
			p.print(s.then, depth+1)
			p.loops = p.loops[:len(p.loops)-1]
			fmt.Fprintf(p, "\tbra.uni C%d;\nX%d:\n", label, label)
		case "break":
			decide()
			fmt.Fprintf(p, "\t@%%p1 bra X%d;\n", p.loops[len(p.loops)-1])
		case "continue":
			decide()
			fmt.Fprintf(p, "\t@%%p1 bra C%d;\n", p.loops[len(p.loops)-1])
		case "return":
			decide()
			p.WriteString("\t@%p1 st.global.u32 [%rd2], %r2;\n\t@%p1 ret;\n")
		}
	}
}

// TestRandomControlFlow compares divergent execution with one thread after the other. Where no
// thread returns early, a barrier at the end proves that all lanes have met again.
func TestRandomControlFlow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const threads = 128
	for n := range 300 {
		returns := false
		wantReturns := &returns
		if n%2 == 0 {
			wantReturns = nil
		}
		list := randomStatements(r, 4, false, wantReturns)
		var p printer
		p.WriteString(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
	.reg .pred %p<9>;
	.reg .b32 %r<9>, %c<9>, %b<9>;
	.reg .b64 %rd<9>;
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd2, %rd1, %rd2;
	mul.lo.s32 %r1, %r1, 40503;
	mov.b32 %r2, 1;
`)
		p.print(list, 0)
		if !returns {
			p.WriteString("\tbar.sync 0;\n")
		}
		p.WriteString("\tst.global.u32 [%rd2], %r2;\n\tret;\n}\n")
		h := newHarness(t, Options{}, p.String())
		out := h.buffer(threads*4, nil)
		if err := h.launch("k", 1, threads, pointer(out, threads*4, runtime.Write|runtime.Discard)); err != nil {
			t.Fatalf("program %d: %v\n%s", n, err, p.String())
		}
		for thread, got := range words(h.download(out, threads*4)) {
			x, acc := uint32(thread)*40503, uint32(1)
			run(list, &x, &acc)
			if got != acc {
				t.Fatalf("program %d, thread %d: %d, want %d\n%s", n, thread, got, acc, p.String())
			}
		}
	}
}

// TestBranchTable: every lane goes its own way through brx.idx, and all meet behind it.
func TestBranchTable(t *testing.T) {
	h := newHarness(t, Options{}, kernelText(`rem.u32 %r3, %r2, 3; brx.idx %r3, T;
T: .branchtargets A, B, C;
A: mov.b32 %r6, 100; bra.uni J;
B: mov.b32 %r6, 200; bra.uni J;
C: mov.b32 %r6, 300;
J: bar.sync 0; st.global.u32 [%rd5], %r6;`))
	out := h.buffer(256, nil)
	h.mustLaunch("k", 1, 64, pointer(out, 256, runtime.ReadWrite), pointer(out, 256, runtime.Write|runtime.Discard), int32Arg(0))
	for i, got := range words(h.download(out, 256)) {
		if want := uint32(100 * (i%3 + 1)); got != want {
			t.Fatalf("thread %d: %d, want %d", i, got, want)
		}
	}
}

// TestSpecialRegisters runs a 3-d grid of blocks that are no multiple of a warp.
func TestSpecialRegisters(t *testing.T) {
	const text = `.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
	.reg .b32 %r<30>;
	.reg .b64 %rd<9>;
	mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
	mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;
	mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z;
	mov.u32 %r10, %nctaid.x; mov.u32 %r11, %nctaid.y; mov.u32 %r12, %nctaid.z;
	mov.u32 %r13, %laneid; mov.u32 %r14, %warpid; mov.u32 %r15, %lanemask_le;
	mad.lo.s32 %r16, %r9, %r11, %r8;
	mad.lo.s32 %r16, %r16, %r10, %r7;
	mad.lo.s32 %r17, %r3, %r5, %r2;
	mad.lo.s32 %r17, %r17, %r4, %r1;
	mul.lo.s32 %r18, %r4, %r5;
	mul.lo.s32 %r18, %r18, %r6;
	mad.lo.s32 %r19, %r16, %r18, %r17;
	ld.param.u64 %rd1, [out];
	mul.wide.u32 %rd2, %r19, 16;
	add.s64 %rd1, %rd1, %rd2;
	st.global.v4.u32 [%rd1], {%r19, %r13, %r14, %r15};
	ret;
}
`
	h := newHarness(t, Options{Workers: 3}, text)
	const threads, blocks = 3 * 5 * 3, 2 * 3 * 4
	out := h.buffer(threads*blocks*16, nil)
	err := h.device.Launch(0, runtime.Launch{
		Kernel: h.kernel("k"), Grid: [3]int{2, 3, 4}, Block: [3]int{3, 5, 3},
		Args: []runtime.Arg{pointer(out, threads*blocks*16, runtime.Write|runtime.Discard)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range words(h.download(out, threads*blocks*16)) {
		thread := i / 4 % threads
		want := []uint32{uint32(i / 4), uint32(thread % 32), uint32(thread / 32), 2<<(thread%32) - 1}[i%4]
		if got != want {
			t.Fatalf("word %d: 0x%x, want 0x%x", i, got, want)
		}
	}
}

// TestAtomics: sums and tickets of all blocks, the same with any number of workers.
func TestAtomics(t *testing.T) {
	body := `red.global.add.u32 [%rd1], %r2; atom.global.inc.u32 %r3, [%rd1+4], 1000000;
	setp.eq.s32 %p4, %r2, 0; @%p4 st.global.u32 [%rd2], %r3; atom.shared.max.u32 %r3, [s], %r2;`
	for _, workers := range []int{1, 4} {
		h := newHarness(t, Options{Workers: workers}, kernelText("st.shared.u32 [s], %r4; bar.sync 0; "+body))
		a, b := h.buffer(8, make([]byte, 8)), h.buffer(4, nil)
		h.mustLaunch("k", 50, 64, pointer(a, 8, runtime.ReadWrite), pointer(b, 4, runtime.Write|runtime.Discard), int32Arg(0))
		if got := words(h.download(a, 8)); got[0] != 50*63*64/2 || got[1] != 50*64 {
			t.Errorf("%d workers: %v", workers, got)
		}
		if got := words(h.download(b, 4)); got[0] != 49*64 {
			t.Errorf("%d workers: the last block's ticket is %d", workers, got[0])
		}
	}
}

// TestBarrierReduction and named barriers.
func TestBarriers(t *testing.T) {
	h := newHarness(t, Options{}, kernelText(`bar.red.popc.u32 %r3, 0, %p1; bar.red.and.pred %p4, 0, %p1; bar.red.or.pred %p5, 0, %p1;
	@%p4 add.s32 %r3, %r3, 100; @%p5 add.s32 %r3, %r3, 1000;
	@%p2 bra CONSUME;
	st.shared.u32 [%rd7+-128], %r2;
	bar.arrive 1, 64;
	bra.uni J;
CONSUME: bar.sync 1, 64;
	ld.shared.u32 %r6, [%rd7];
	add.s32 %r3, %r3, %r6;
J:	st.global.u32 [%rd5], %r3;`))
	out := h.buffer(256, nil)
	h.mustLaunch("k", 1, 64, pointer(out, 256, runtime.ReadWrite), pointer(out, 256, runtime.Write|runtime.Discard), int32Arg(0))
	for i, got := range words(h.download(out, 256)) {
		want := uint32(1005)
		if i < 32 {
			want += uint32(i + 32)
		}
		if got != want {
			t.Fatalf("thread %d: %d, want %d", i, got, want)
		}
	}
}

// TestPredicateNumbers: llc negates predicates by xor with a number.
func TestPredicateNumbers(t *testing.T) {
	h := newHarness(t, Options{}, kernelText(`setp.lt.s32 %p4, %r2, 8; xor.pred %p5, %p4, -1; or.pred %p6, %p4, 0; and.pred %p7, %p5, 1;
	mov.u32 %r3, 0; @%p5 add.s32 %r3, %r3, 1; @%p6 add.s32 %r3, %r3, 10; @%p7 add.s32 %r3, %r3, 100; st.global.u32 [%rd5], %r3;`))
	out := h.buffer(128, nil)
	h.mustLaunch("k", 1, 32, pointer(out, 128, runtime.ReadWrite), pointer(out, 128, runtime.Write|runtime.Discard), int32Arg(0))
	for i, got := range words(h.download(out, 128)) {
		want := uint32(101)
		if i < 8 {
			want = 10
		}
		if got != want {
			t.Fatalf("thread %d: %d, want %d", i, got, want)
		}
	}
}

// TestTwoExits: lanes that leave through a block of their own do not disturb a shuffle of the
// others, whichever side of the branch they are on.
func TestTwoExits(t *testing.T) {
	for _, body := range []string{
		"@%p1 bra BODY; ret; BODY: shfl.sync.idx.b32 %r3, %r2, 3, 31, -1; st.global.u32 [%rd5], %r3; ret;",
		"@!%p1 bra EXIT; shfl.sync.idx.b32 %r3, %r2, 3, 31, -1; st.global.u32 [%rd5], %r3; ret; EXIT: ret;",
	} {
		h := newHarness(t, Options{}, kernelText(body))
		out := h.buffer(256, nil)
		h.mustLaunch("k", 1, 32, pointer(out, 256, runtime.ReadWrite), pointer(out, 256, runtime.Write|runtime.Discard), int32Arg(0))
		for i, got := range words(h.download(out, 20)) {
			if got != 3 {
				t.Errorf("%s: thread %d: %d", body, i, got)
			}
		}
	}
}
