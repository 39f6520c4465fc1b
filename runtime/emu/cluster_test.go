package emu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weft/runtime"
)

// A ring of two stages: in each block of a cluster thread 0 copies its half of a tile to both blocks,
// and warp 1 reads tiles and tells both producers. Every tile becomes a word a lane.
const (
	ringTiles = 7
	ringTile  = 2048 // bytes
)

const (
	ringInit = `@!%p1 bra I; mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.init.shared::cta.b64 [%r3+8], 1;
		mbarrier.init.shared::cta.b64 [%r3+16], 2; mbarrier.init.shared::cta.b64 [%r3+24], 2; fence.mbarrier_init.release.cluster; I: CLUSTER`
	// %r10 is the tile, %r11 its stage, %r12 its parity, %r13 its full barrier, %r14 its empty one, %r15 its place.
	ringStage    = "and.b32 %r11, %r10, 1; shr.u32 %r12, %r10, 1; and.b32 %r12, %r12, 1; shl.b32 %r13, %r11, 3; add.u32 %r13, %r13, %r3; add.u32 %r14, %r13, 16; mad.lo.u32 %r15, %r11, 2048, %r4;"
	ringEmpty    = "xor.b32 %r16, %r12, 1; { .reg .pred p; WAIT: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%r14], %r16; @p bra DONE; bra WAIT; DONE: }"
	ringFull     = "{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%r13], %r12; @p bra DONE; bra WAIT; DONE: }"
	ringExpect   = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 2048;"
	ringCopy     = "COPY2.multicast::cluster [%r17], [%rd1, {%r5, %r18}], [%r13], %rs1;"
	ringRead     = "mad.lo.u32 %r17, %r1, 64, %r15; mov.b32 %r16, 0; mov.b32 %r18, 16; S: ld.shared.u32 %r19, [%r17+-2048]; mad.lo.u32 %r16, %r16, 31, %r19; add.u32 %r17, %r17, 4; add.s32 %r18, %r18, -1; setp.ne.s32 %p7, %r18, 0; @%p7 bra S;"
	ringStore    = "st.global.u32 [%rd9], %r16; add.s64 %rd9, %rd9, 128;"
	ringTell     = "@!%p4 bra T; mapa.shared::cluster.u32 %r9, %r14, %r5; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9]; mapa.shared::cluster.u32 %r9, %r14, %r6; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9]; T:"
	ringNext     = "add.u32 %r10, %r10, 1; setp.lt.u32 %p6, %r10, 7;"
	ringProducer = "@%p2 bra P; bra C; P: @!%p1 bra E; mov.b32 %r10, 0; mov.b16 %rs1, 3; L: " + ringStage + ringEmpty + ringExpect +
		"mad.lo.u32 %r17, %r2, 1024, %r15; shl.b32 %r18, %r10, 1; add.u32 %r18, %r18, %r2; shl.b32 %r18, %r18, 3; " + ringCopy + ringNext + "@%p6 bra L; bra E; "
	ringConsumer = "C: mov.b32 %r10, 0; add.s64 %rd9, %rd2, %rd7; add.s64 %rd9, %rd9, -128; M: " + ringStage + ringFull + ringRead + ringTell + ringStore + ringNext + "@%p6 bra M; "
	ringEnd      = "E: CLUSTER"
	ring         = ringInit + ringProducer + ringConsumer + ringEnd
)

// runRing runs the ring and gives the words of each block and tile, and those that are right.
func runRing(t *testing.T, body string, workers int) (got, want []uint32, err error) {
	m := runtime.TensorMap{Type: runtime.TensorBF16, Dims: []uint64{64, 16 * ringTiles}, Strides: []uint64{128}, Box: []uint32{64, 8}, Swizzle: runtime.Swizzle128}
	data := make([]byte, m.Extent())
	r := randomWords(3)
	for i := range data {
		data[i] = byte(r.below(256))
	}
	for range 4 { // blocks
		for tile := range ringTiles {
			var image []byte
			for half := range 2 {
				image = append(image, boxCase{m, []int{0, tile*16 + half*8}}.image(data)...)
			}
			for lane := range 32 {
				sum := uint32(0)
				for i := range 16 {
					sum = sum*31 + binary.LittleEndian.Uint32(image[lane*64+i*4:])
				}
				want = append(want, sum)
			}
		}
	}
	h := newHarness(t, Options{Workers: workers}, boxText(".explicitcluster .reqnctapercluster 2, 1, 1", 4096, body))
	out := h.buffer(4*4096, nil)
	if err := h.launch("k", 4, 64, h.tensorMap(m, data), pointer(out, 4*4096, runtime.Write)); err != nil {
		return nil, want, err
	}
	for block := range 4 {
		got = append(got, words(h.download(out+runtime.Pointer(block*4096), ringTiles*128))...)
	}
	return got, want, nil
}

func TestRing(t *testing.T) {
	for i, body := range []string{ring, ring, strings.Replace(ring, ringEnd, "ret; "+ringEnd, 1)} { // warps that have exited are not waited for
		workers := i%2 + 1
		got, want, err := runRing(t, body, workers)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%d workers: another result", workers)
		}
	}
}

// TestRingMistakes leaves something out of the ring, or does it wrongly.
func TestRingMistakes(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		kind           FaultKind
		want           string
	}{
		{"the consumer does not wait", ringFull, "", Uninitialised, "byte 0 was never written"},
		{"the consumer waits once", ringFull, "setp.gt.u32 %p7, %r10, 0; @%p7 bra X; " + ringFull + " X:", InFlight, "reads 4 bytes at offset 2048 of shared memory, where the copy that thread (0,0,0) started at line"},
		{"the producer does not wait", ringEmpty, "", BadBarrier, "phase 0 of the mbarrier at offset 4096 expects 1 arrivals, this is one more; it still waits for 4096 bytes"},
		{"the producer's first wait is one too many", "xor.b32 %r16, %r12, 1;", "mov.b32 %r16, %r12;", Deadlock, "phase 0 of the mbarrier at offset 4112, 2 of 2 arrivals and 0 bytes are missing"},
		{"the other block is not told", "mapa.shared::cluster.u32 %r9, %r14, %r6;", "", InFlight, "is in flight (block (1,0,0))"},
		{"a block is told once for two", "mov.b32 %r10, 0; mov.b16 %rs1, 3;", "mov.b32 %r10, 0; mov.b16 %rs1, 3; setp.eq.u32 %p5, %r2, 1; @%p5 bra E;", Deadlock, "1 of 1 arrivals are missing, 1024 bytes are there already"},
		{"told before the read", ringRead + ringTell, ringTell + ringRead, InFlight, "is in flight"},
		{"half of the bytes are expected", "%r13], 2048;", "%r13], 1024;", InFlight, "reads 4 bytes at offset 1024"},
		{"more bytes are expected", "%r13], 2048;", "%r13], 2064;", Deadlock, "0 of 1 arrivals and 16 bytes are missing"},
		{"no bytes are expected", ringExpect, "mbarrier.arrive.shared::cta.b64 _, [%r13];", Uninitialised, "byte 0 was never written"},
		{"nothing is expected", ringExpect, "", Deadlock, "2048 bytes are there already"},
		{"no barrier of the cluster at the end", ringEnd, "E:", BadBarrier, "the block has exited"},
		{"a barrier of the block at the beginning", "I: CLUSTER", "I: BARRIER", BadBarrier, "of block (1,0,0)"},
		{"no fence at the beginning", "fence.mbarrier_init.release.cluster;", "", Unfenced, "warp 0 has executed no fence.mbarrier_init since it initialised it at line"},
		{"a mask of three", "mov.b16 %rs1, 3;", "mov.b16 %rs1, 7;", OutOfBounds, "a copy to rank 2 in a cluster of 2 blocks"},
		{"to the other block alone", "mov.b16 %rs1, 3;", "mov.b16 %rs1, 2;", Deadlock, "bytes are missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Count(ring, c.old) != 1 {
				t.Fatalf("%d times in the ring", strings.Count(ring, c.old))
			}
			_, _, err := runRing(t, strings.Replace(ring, c.old, c.new, 1), 1)
			var fault *Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			if fault.Kind != c.kind || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nlacks %q", err, c.want)
			}
		})
	}
}

// TestClusterRegisters: each block of a cluster knows its place, whatever its shape.
func TestClusterRegisters(t *testing.T) {
	names := []string{"%ctaid.x", "%ctaid.y", "%clusterid.x", "%clusterid.y", "%nclusterid.x", "%nclusterid.y", "%cluster_ctaid.x", "%cluster_ctaid.y",
		"%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_ctarank", "%cluster_nctarank"}
	for _, shape := range [][2]int{{1, 1}, {2, 1}, {1, 2}, {3, 2}} {
		var body strings.Builder
		for i, name := range names {
			fmt.Fprintf(&body, "mov.u32 %%r1, %s; st.global.u32 [%%rd2+%d], %%r1;\n", name, 4*i)
		}
		h := newHarness(t, Options{Workers: 2}, fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out) .reqnctapercluster %d, %d, 1
{
	.reg .b32 %%r<9>; .reg .b64 %%rd<9>;
	mov.u32 %%r1, %%ctaid.x; mov.u32 %%r2, %%ctaid.y; mad.lo.u32 %%r1, %%r2, 6, %%r1; mul.wide.u32 %%rd1, %%r1, 64;
	ld.param.u64 %%rd2, [out]; add.s64 %%rd2, %%rd2, %%rd1;
	%s ret;
}`, shape[0], shape[1], &body))
		const size = 6 * 4 * 64
		out := h.buffer(size, make([]byte, size))
		launch := runtime.Launch{Kernel: h.kernel("k"), Grid: [3]int{6, 4, 1}, Block: [3]int{1, 1, 1}, Args: []runtime.Arg{pointer(out, size, runtime.ReadWrite)}}
		if err := h.device.Launch(0, launch); err != nil {
			t.Fatal(err)
		}
		got := words(h.download(out, size))
		for y := range 4 {
			for x := range 6 {
				a, b := shape[0], shape[1]
				want := []int{x, y, x / a, y / b, 6 / a, 4 / b, x % a, y % b, a, b, x%a + y%b*a, a * b}
				if at := got[(y*6+x)*16:][:len(want)]; fmt.Sprint(at) != fmt.Sprint(want) {
					t.Errorf("%v: block (%d,%d) has %d, want %d", shape, x, y, at, want)
				}
			}
		}
	}
}

// TestClusterFaults: of many failing clusters the lowest is reported, and its lowest block.
func TestClusterFaults(t *testing.T) {
	for range 5 {
		h := newHarness(t, Options{Workers: 4}, boxText(".reqnctapercluster 2, 1, 1", 64, "setp.ge.u32 %p5, %r7, 6; CLUSTER @%p5 trap;"))
		m := boxMap()
		err := h.launch("k", 16, 32, h.tensorMap(m, make([]byte, m.Extent())), pointer(h.buffer(64, nil), 64, runtime.Write))
		var fault *Fault
		if !errors.As(err, &fault) || fault.Kind != Trapped || fault.Block != [3]int{6, 0, 0} {
			t.Fatalf("got %v", err)
		}
	}
}
