package emu

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weft/runtime"
)

// asyncPrologue: %r3 is the shared address of s plus four times the thread, %r5 of s plus 16
// times the thread, %rd8 is a plus 16 times the thread.
const asyncPrologue = "cvt.u32.u64 %r3, %rd7; cvt.u32.u64 %r6, %rd6; mad.lo.u32 %r5, %r2, 16, %r6; mul.wide.u32 %rd3, %r2, 16; add.s64 %rd8, %rd1, %rd3; "

func TestAsyncFaults(t *testing.T) {
	const copy4, commit, barrier = "cp.async.ca.shared.global [%r3], [%rd4], 4; ", "cp.async.commit_group; ", "bar.sync 0; "
	for _, c := range []struct {
		name, body       string
		block            int
		kind             FaultKind
		argument, thread int
		want             string
	}{
		{"no wait", copy4 + commit + "ld.shared.u32 %r7, [%rd7];", 32, InFlight, -1, 0,
			`reads 4 bytes at offset 0 of shared memory, into which thread (0,0,0) copies at line 32 (cp.async.ca.shared.global [%r3], [%rd4], 4); that thread has not waited for it`},
		{"a barrier instead of a wait", copy4 + commit + barrier + "ld.shared.u32 %r7, [%rd7+128];", 64, InFlight, -1, 0, "into which thread (32,0,0) copies"},
		{"waits for closed groups only", copy4 + "cp.async.wait_group 0; ld.shared.u32 %r7, [%rd7];", 32, InFlight, -1, 0, "has not waited"},
		{"waits for too few", copy4 + commit + "cp.async.wait_group 1; ld.shared.u8 %rs1, [%rd7+3];", 32, InFlight, -1, 0, "reads 1 bytes at offset 3"},
		{"some threads wait", copy4 + "@%p1 cp.async.wait_all; ld.shared.u32 %r7, [%rd7];", 32, InFlight, -1, 5, "thread (5,0,0) copies"},
		{"some threads close a group", copy4 + "@%p1 cp.async.commit_group; cp.async.wait_group 0; " + barrier + "ld.shared.u32 %r7, [%rd7];", 32, InFlight, -1, 5, "thread (5,0,0) copies"},
		{"store", copy4 + "st.shared.u32 [%rd7], %r2;", 32, InFlight, -1, 0, "writes 4 bytes at offset 0"},
		{"atomic", copy4 + "atom.shared.add.u32 %r7, [%rd7], 1;", 32, InFlight, -1, 0, "writes 4 bytes at offset 0"},
		{"generic address", copy4 + "cvta.shared.u64 %rd3, %rd7; ld.u32 %r7, [%rd3];", 32, InFlight, -1, 0, "reads 4 bytes"},
		{"second copy", copy4 + copy4, 32, InFlight, -1, 0, "writes 4 bytes at offset 0"},
		{"two lanes", "cp.async.ca.shared.global [%r6], [%rd4], 4;", 32, InFlight, -1, 1, "two lanes"},
		{"another warp, no barrier", copy4 + "cp.async.wait_all; @%p2 bra L; ld.shared.u32 %r7, [%rd7+-128]; L:", 64, InFlight, -1, 32, "but there was no barrier since"},
		{"ldmatrix", "cp.async.cg.shared.global [%r5], [%rd8], 16; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r5];", 16, WarpDivergence, -1, 0, "does not exist"},
		{"ldmatrix in flight", "setp.lt.u32 %p4, %r2, 16; @%p4 cp.async.cg.shared.global [%r5], [%rd8], 16; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r5];",
			32, InFlight, -1, 0, "reads 16 bytes at offset 0"},
		{"stmatrix in flight", copy4 + "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r7};", 32, InFlight, -1, 0, "writes 16 bytes at offset 0"},
		{"ldmatrix of nothing", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r5];", 32, Uninitialised, -1, 0, "16 bytes at offset 0"},
		{"ldmatrix misaligned", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r3];", 32, Misaligned, -1, 1, "16 bytes"},
		{"ldmatrix past the end", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r7, %r7, %r7, %r7}, [%r5];", 32, OutOfBounds, -1, 16, "offset 256"},
		{"mma in a branch", "@%p1 mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
			32, WarpDivergence, -1, 0, "lane 5 is elsewhere"},
		{"mma after an exit", "@%p1 ret; mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
			32, WarpDivergence, -1, 5, "lane 0 has exited"},
		{"movmatrix", "@%p1 movmatrix.sync.aligned.m8n8.trans.b16 %r7, %r2;", 32, WarpDivergence, -1, 0, "all 32 lanes"},
		{"misaligned source", "cp.async.cg.shared.global [%r5], [%rd4], 16;", 16, Misaligned, 0, 1, "16 bytes"},
		{"misaligned source in part", "cp.async.cg.shared.global [%r5], [%rd4], 16, 3;", 16, Misaligned, 0, 1, "16 bytes"},
		{"misaligned destination", "cp.async.cg.shared.global [%r3], [%rd8], 16;", 16, Misaligned, -1, 1, "shared memory"},
		{"source past the end", "cp.async.cg.shared.global [%r5], [%rd8+16], 16;", 16, OutOfBounds, 0, 15, "offset 256 of argument 0, which has 256 bytes"},
		{"source past the end in part", "cp.async.cg.shared.global [%r5], [%rd8+16], 16, 1;", 16, OutOfBounds, 0, 15, "1 bytes at"},
		{"destination past the end", "cp.async.cg.shared.global [%r5], [%rd8], 16;", 17, OutOfBounds, -1, 16, "offset 256 of variable shared memory"},
		{"reads too much", "cp.async.ca.shared.global [%r3], [%rd4], 4, 5;", 16, OutOfBounds, -1, 0, "the copy of 4 bytes is told to read 5"},
		{"source not written", "cp.async.ca.shared.global [%r3], [%rd5], 4;", 16, Uninitialised, 1, 0, "since the launch discarded it"},
		{"source not written in part", "@%p1 st.global.u8 [%rd5], %rs1; cp.async.ca.shared.global [%r3], [%rd5], 4, 1;", 16, Uninitialised, 1, 5, "1 bytes at offset 20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, Options{}, kernelText(asyncPrologue+c.body))
			arena := h.buffer(512, make([]byte, 512))
			err := h.launch("k", 1, c.block, pointer(arena, 256, runtime.Read), pointer(arena+256, 256, runtime.ReadWrite|runtime.Discard), int32Arg(7))
			var fault *Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			if fault.Kind != c.kind || fault.Argument != c.argument || fault.Thread != [3]int{c.thread, 0, 0} || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nlacks %q", err, c.want)
			}
		})
	}
}

// TestAsyncUses has correct uses; all end with %r7 = the word of a that lies 4*(thread^32) from
// its start, or 4*thread.
func TestAsyncUses(t *testing.T) {
	const copy4, commit, barrier = "cp.async.ca.shared.global [%r3], [%rd4], 4; ", "cp.async.commit_group; ", "bar.sync 0; "
	const other = "xor.b64 %rd8, %rd7, 128; ld.shared.u32 %r7, [%rd8];"
	for _, c := range []struct {
		name, body string
		flip       int
		leaked     int64
	}{
		{"own bytes", copy4 + "cp.async.wait_all; ld.shared.u32 %r7, [%rd7];", 0, 0},
		{"own bytes twice", copy4 + "cp.async.wait_all; " + copy4 + commit + "cp.async.wait_group 0; ld.shared.u32 %r7, [%rd7]; st.shared.u32 [%rd7], %r7; ld.shared.u32 %r7, [%rd7];", 0, 0},
		{"barrier", copy4 + commit + "cp.async.wait_group 0; " + barrier + other, 32, 0},
		{"two groups", copy4 + commit + "@%p1 " + commit + "cp.async.wait_group 0; " + barrier + other, 32, 0},
		{"arrive", copy4 + "cp.async.wait_all; @%p2 bra L; bar.arrive 1, 64; ld.shared.u32 %r7, [%rd7]; bra M; L: bar.sync 1, 64; " + other +
			" xor.b32 %r7, %r7, 32; M:", 0, 0},
		{"address by cvta", "cvta.shared.u64 %rd8, %rd7; cvta.to.shared.u64 %rd8, %rd8; cvt.u32.u64 %r8, %rd8; cp.async.ca.shared.global.L2::128B [%r8], [%rd4], 4; cp.async.wait_all; " + barrier + other, 32, 0},
		{"a fence and a flag", "st.shared.u32 [%rd7], %r4; " + barrier + "@%p2 bra L; mov.u64 %rd8, s; add.s64 %rd3, %rd4, -128; add.u32 %r3, %r3, -128; cp.async.ca.shared.global [%r3], [%rd3], 4; cp.async.wait_all; membar.cta; " +
			"ld.shared.u32 %r7, [%rd7+-128]; add.u32 %r7, %r7, 32; st.shared.u32 [%rd7], %r7; bra M; L: ld.volatile.shared.u32 %r7, [%rd7+128]; setp.eq.s32 %p4, %r7, 0; @%p4 bra L; ld.shared.u32 %r7, [%rd7]; M:", 0, 0},
		{"leak", copy4 + "ld.global.u32 %r7, [%rd4];", 0, 64},
		{"leak of an older group", "ld.global.u32 %r7, [%rd4]; " + copy4 + commit + "cp.async.wait_group 4;", 0, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			var seen LaunchStatistics
			h := newHarness(t, Options{Observe: func(s LaunchStatistics) { seen = s }}, kernelText(asyncPrologue+c.body+" st.global.u32 [%rd5], %r7;"))
			data := make([]uint32, 64)
			for i := range data {
				data[i] = uint32(i)
			}
			out := h.buffer(256, nil)
			h.mustLaunch("k", 1, 64, pointer(h.buffer(256, fromWords(data)), 256, runtime.Read), pointer(out, 256, runtime.Write|runtime.Discard), int32Arg(0))
			for i, g := range words(h.download(out, 256)) {
				if g != uint32(i^c.flip) {
					t.Fatalf("thread %d: %d", i, g)
				}
			}
			if seen.LeakedCopies != c.leaked {
				t.Errorf("%d leaked copies, want %d", seen.LeakedCopies, c.leaked)
			}
		})
	}
}

// TestAsyncCopies copies whole and in part with every size.
func TestAsyncCopies(t *testing.T) {
	const threads = 64
	h := newHarness(t, Options{}, readTestdata(t, "tensor.ptx"))
	for _, size := range []int{4, 8, 16, -16} {
		name := fmt.Sprintf("copy_ca_%d", size)
		if size < 0 {
			size, name = -size, "copy_cg_16"
		}
		from, counts := make([]byte, threads*size), make([]uint32, threads)
		for i := range from {
			from[i] = byte(i*7 + 1)
		}
		want := append(bytes.Clone(from), make([]byte, 2048-len(from))...)
		for i := range counts {
			counts[i] = uint32(i % (size + 1))
			want = append(want, from[i*size:i*size+int(counts[i])]...)
			want = append(want, make([]byte, size-int(counts[i]))...)
		}
		want = append(want, make([]byte, 4096-len(want))...)
		out := h.buffer(4096, make([]byte, 4096))
		h.mustLaunch(name, 1, threads, pointer(h.buffer(len(from), from), len(from), runtime.Read),
			pointer(h.buffer(4*threads, fromWords(counts)), 4*threads, runtime.Read), pointer(out, 4096, runtime.ReadWrite))
		if got := h.download(out, 4096); !bytes.Equal(got, want) {
			t.Errorf("%s: wrong bytes", name)
		}
	}
}

func TestAsyncUnsupported(t *testing.T) {
	for _, body := range []string{
		"cp.async.cg.shared.global [%r3], [%rd1], 8;", "cp.async.ca.shared.global [%r3], [%rd1], 12;", "cp.async.ca.shared.global [%r3], [%rd1];",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd4], 16, [%r3];", "cp.async.wait_group %r1;", "cp.async.wait_group;", "cp.async.commit_group 1;", "cp;",
		"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%rd1, %rd2}, {%rd3}, {%rd4}, {%rd5, %rd6};",
		"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
		"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %rd4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
		"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1, %r2, %r3}, [%r4];", "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r4];",
		"ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r1}, [%r4];", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, %r4;", "movmatrix.sync.aligned.m8n8.b16 %r1, %r2;",
	} {
		var unsupported *UnsupportedError
		if err := Check(kernelText(body)); !errors.As(err, &unsupported) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
