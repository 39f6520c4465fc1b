package emu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/runtime"
)

// ring is a kernel of a ring of stages: in each block of a cluster thread 0 copies its part of a tile
// of 4096 bytes to all blocks, and the consumers, warps from 1 on, read tiles and tell all producers.
// Of every tile each lane makes a word.
type ring struct{ stages, tiles, blocks, consumers int }

const ringTile = 4096 // bytes: 32 rows of 64 elements

// ringText is the parts of a ring in their order.
type ringText struct{ init, stage, empty, expect, copies, next, full, read, tell, store, end string }

func (r ring) parts() ringText {
	const wait = "{ .reg .pred p; WAIT: mbarrier.try_wait.parity%s.shared::cta.b64 p, [%s], %s; @p bra DONE; bra WAIT; DONE: }"
	p := ringText{
		// %r10 is the tile, %r11 its stage, %r12 its parity, %r13 its full barrier, %r14 its empty one, %r15 its place.
		stage: fmt.Sprintf("rem.u32 %%r11, %%r10, %d; div.u32 %%r12, %%r10, %[1]d; and.b32 %%r12, %%r12, 1; shl.b32 %%r13, %%r11, 3; add.u32 %%r13, %%r13, %%r3; add.u32 %%r14, %%r13, %d; mad.lo.u32 %%r15, %%r11, %d, %%r4;",
			r.stages, 8*r.stages, ringTile),
		empty:  "xor.b32 %r16, %r12, 1;" + fmt.Sprintf(wait, ".acquire.cluster", "%r14", "%r16"),
		full:   fmt.Sprintf(wait, "", "%r13", "%r12"),
		expect: fmt.Sprintf("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%%r13], %d;", ringTile),
		copies: fmt.Sprintf("mad.lo.u32 %%r17, %%r2, %d, %%r15; mul.lo.u32 %%r18, %%r10, 32; mad.lo.u32 %%r18, %%r2, %d, %%r18; COPY2.multicast::cluster [%%r17], [%%rd1, {%%r5, %%r18}], [%%r13], %%rs1;",
			ringTile/r.blocks, 32/r.blocks),
		read: fmt.Sprintf("add.u32 %%r17, %%r1, -32; mad.lo.u32 %%r17, %%r17, %d, %%r15; mov.b32 %%r16, 0; mov.b32 %%r18, %d; S: ld.shared.u32 %%r19, [%%r17]; mad.lo.u32 %%r16, %%r16, 31, %%r19; add.u32 %%r17, %%r17, 4; add.s32 %%r18, %%r18, -1; setp.ne.s32 %%p7, %%r18, 0; @%%p7 bra S;",
			r.laneBytes(), r.laneBytes()/4),
		store: fmt.Sprintf("st.global.u32 [%%rd9], %%r16; add.s64 %%rd9, %%rd9, %d;", 128*r.consumers),
		next:  fmt.Sprintf("add.u32 %%r10, %%r10, 1; setp.lt.u32 %%p6, %%r10, %d;", r.tiles),
		end:   "CLUSTER",
		init:  "@!%p1 bra I;", tell: "and.b32 %r9, %r1, 31; setp.ne.u32 %p7, %r9, 0; @%p7 bra T;",
	}
	for i := range 2 * r.stages {
		count := 1
		if i >= r.stages {
			count = r.blocks * r.consumers
		}
		p.init += fmt.Sprintf("mbarrier.init.shared::cta.b64 [%%r3+%d], %d;", 8*i, count)
	}
	p.init += "fence.mbarrier_init.release.cluster; I: CLUSTER"
	for rank := range r.blocks {
		p.tell += fmt.Sprintf("mov.b32 %%r9, %d; mapa.shared::cluster.u32 %%r9, %%r14, %%r9; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%%r9];", rank)
	}
	p.tell += "T:"
	return p
}

// laneBytes is what a lane reads of a tile.
func (r ring) laneBytes() int { return ringTile / 32 / r.consumers }

func (r ring) text(p ringText) string {
	body := p.init + fmt.Sprintf("@%%p2 bra P; bra C; P: @!%%p1 bra E; mov.b32 %%r10, 0; mov.b16 %%rs1, %d; L: ", 1<<r.blocks-1) +
		p.stage + p.empty + p.expect + p.copies + p.next + "@%p6 bra L; bra E; " +
		"C: mov.b32 %r10, 0; add.s64 %rd9, %rd2, %rd7; add.s64 %rd9, %rd9, -128; M: " +
		p.stage + p.full + p.read + p.tell + p.store + p.next + "@%p6 bra M; E: " + p.end
	return boxText(fmt.Sprintf(".explicitcluster .reqnctapercluster %d, 1, 1", r.blocks), r.stages*ringTile, body)
}

// run runs two clusters and compares the words of each block.
func (r ring) run(t *testing.T, p ringText, workers int) error {
	t.Helper()
	m := runtime.TensorMap{Type: runtime.TensorBF16, Dims: []uint64{64, 32 * uint64(r.tiles)}, Strides: []uint64{128}, Box: []uint32{64, 32 / uint32(r.blocks)}, Swizzle: runtime.Swizzle128}
	data := make([]byte, m.Extent())
	random := randomWords(3)
	for i := range data {
		data[i] = byte(random.below(256))
	}
	var want []uint32
	for range 2 * r.blocks {
		for tile := range r.tiles {
			var image []byte
			for part := range r.blocks {
				image = append(image, boxCase{m, []int{0, tile*32 + part*32/r.blocks}}.image(data)...)
			}
			for lane := range 32 * r.consumers {
				sum := uint32(0)
				for i := 0; i < r.laneBytes(); i += 4 {
					sum = sum*31 + binary.LittleEndian.Uint32(image[lane*r.laneBytes()+i:])
				}
				want = append(want, sum)
			}
		}
	}
	h := newHarness(t, Options{Workers: workers}, r.text(p))
	grid, stride := 2*r.blocks, r.stages*ringTile
	out := h.buffer(grid*stride, nil)
	if err := h.launch("k", grid, 32+32*r.consumers, h.tensorMap(m, data), pointer(out, grid*stride, runtime.Write)); err != nil {
		return err
	}
	var got []uint32
	for block := range grid {
		got = append(got, words(h.download(out+runtime.Pointer(block*stride), r.tiles*r.consumers*128))...)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v: another result", r)
	}
	return nil
}

func TestRing(t *testing.T) {
	for _, stages := range []int{1, 2, 4} {
		for _, blocks := range []int{1, 2, 4} {
			for _, consumers := range []int{1, 2, 4} {
				r := ring{stages, min(1+stages*blocks+consumers, 32*stages/consumers), blocks, consumers} // the words fit where m does
				if err := r.run(t, r.parts(), 1+consumers%2); err != nil {
					t.Errorf("%+v: %v", r, err)
				}
			}
		}
	}
	r := ring{2, 7, 2, 1}
	p := r.parts()
	p.end = "@!%p2 ret; " + p.end // warps that have exited are not waited for
	if err := r.run(t, p, 1); err != nil {
		t.Error(err)
	}
}

// TestRingMistakes leaves something out of a ring, or does it wrongly.
func TestRingMistakes(t *testing.T) {
	r := ring{2, 7, 2, 1}
	for _, c := range []struct {
		name   string
		change func(p *ringText)
		kind   FaultKind
		want   string
	}{
		{"the consumer does not wait", func(p *ringText) { p.full = "" }, Uninitialised, "byte 0 was never written"},
		{"the consumer waits once", func(p *ringText) { p.full = "setp.gt.u32 %p7, %r10, 0; @%p7 bra X; " + p.full + " X:" }, InFlight,
			"reads 4 bytes at offset 4096 of shared memory, where the copy that thread (0,0,0) started at line"},
		{"the producer does not wait", func(p *ringText) { p.empty = "" }, BadBarrier, "phase 0 of the mbarrier at offset 8192 expects 1 arrivals, this is one more; it still waits for 8192 bytes"},
		{"the producer's first wait is one too many", func(p *ringText) {
			p.empty = strings.Replace(p.empty, "xor.b32 %r16, %r12, 1", "mov.b32 %r16, %r12", 1)
		}, Deadlock,
			"phase 0 of the mbarrier at offset 8208, 2 of 2 arrivals and 0 bytes are missing"},
		{"one block is told twice", func(p *ringText) { p.tell = strings.Replace(p.tell, "mov.b32 %r9, 1;", "mov.b32 %r9, 0;", 1) }, InFlight, "is in flight (block (1,0,0))"},
		{"a block does not copy", func(p *ringText) { p.init += "setp.eq.u32 %p5, %r2, 1; @%p5 and.pred %p1, %p1, %p4;" }, Deadlock, "1 of 1 arrivals are missing, 2048 bytes are there already"},
		{"told before the read", func(p *ringText) { p.read, p.tell = p.tell, p.read }, InFlight, "is in flight"},
		{"half of the bytes are expected", func(p *ringText) { p.expect = strings.Replace(p.expect, "4096", "2048", 1) }, InFlight, "reads 4 bytes at offset 2048"},
		{"more bytes are expected", func(p *ringText) { p.expect = strings.Replace(p.expect, "4096", "4112", 1) }, Deadlock, "0 of 1 arrivals and 16 bytes are missing"},
		{"no bytes are expected", func(p *ringText) { p.expect = "mbarrier.arrive.shared::cta.b64 _, [%r13];" }, Uninitialised, "byte 0 was never written"},
		{"nothing is expected", func(p *ringText) { p.expect = "" }, Deadlock, "4096 bytes are there already"},
		{"no barrier of the cluster at the end", func(p *ringText) { p.end = "" }, BadBarrier, "the block has exited"},
		{"a barrier of the block at the beginning", func(p *ringText) { p.init = strings.Replace(p.init, "CLUSTER", "BARRIER", 1) }, BadBarrier, "of block (1,0,0)"},
		{"no fence at the beginning", func(p *ringText) { p.init = strings.Replace(p.init, "fence.mbarrier_init.release.cluster;", "", 1) }, Unfenced,
			"warp 0 has executed no fence.mbarrier_init since it initialised it at line"},
		{"a mask of three", func(p *ringText) { p.copies = "mov.b16 %rs1, 7;" + p.copies }, OutOfBounds, "a copy to rank 2 in a cluster of 2 blocks"},
		{"a mask of none", func(p *ringText) { p.copies = "mov.b16 %rs1, 0;" + p.copies }, OutOfBounds, "a copy to the blocks 0x0"},
		{"to the other block alone", func(p *ringText) { p.copies = "mov.b16 %rs1, 2;" + p.copies }, Deadlock, "bytes are missing"},
		{"by another block's address", func(p *ringText) {
			p.copies = strings.Replace(p.copies, "COPY2", "xor.b32 %r17, %r17, 0x1000000; xor.b32 %r13, %r13, 0x1000000; COPY2", 1)
		}, OutOfBounds, "by an address of block (1,0,0)"},
		{"an arrival at no block", func(p *ringText) {
			p.tell = strings.Replace(p.tell, "mbarrier.arrive", "or.b32 %r9, %r9, 0x4000000; mbarrier.arrive", 1)
		}, OutOfBounds, "is in no block of the cluster"},
		{"an arrival beside", func(p *ringText) { p.tell = strings.Replace(p.tell, "[%r9]", "[%r9+16]", 1) }, BadBarrier, "there is no mbarrier at offset 8224"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := r.parts()
			c.change(&p)
			err := r.run(t, p, 1)
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
