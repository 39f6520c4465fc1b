package emu

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/runtime"
)

// TestSharedAddresses: the address of a block's shared memory has its rank from bit 24 on, whatever it is the address
// of, and accesses by it are the block's own.
func TestSharedAddresses(t *testing.T) {
	for _, blocks := range []int{1, 2, 8} {
		var body strings.Builder
		var want []uint32
		// put stores a register, whose value is that of a block of rank 0, and as much more with each rank.
		put := func(register string, value, more uint32) {
			fmt.Fprintf(&body, "@%%p1 st.global.u32 [%%rd2+%d], %s;\n", 4*len(want)/2, register)
			want = append(want, value, more)
		}
		body.WriteString("mov.u32 %r9, m; mov.u32 %r10, bars+24; mov.u64 %rd8, m+8; shr.u64 %rd9, %rd8, 32; cvt.u32.u64 %r11, %rd8; cvt.u32.u64 %r12, %rd9;")
		put("%r9", 0, 1<<24)
		put("%r10", 1024+24, 1<<24)
		put("%r11", 8, 1<<24)
		put("%r12", 0, 0)
		body.WriteString(`cvta.shared.u64 %rd9, %rd8; cvta.to.shared.u64 %rd10, %rd9; cvt.u32.u64 %r11, %rd10;
			mov.b32 %r13, 0; mapa.shared::cluster.u32 %r12, %r10, %r13; mapa.shared::cluster.u32 %r13, %r12, %r2;`)
		put("%r11", 8, 1<<24)
		put("%r12", 1024+24, 0)
		put("%r13", 1024+24, 1<<24)
		body.WriteString("mov.u32 %r11, 40; add.u32 %r11, %r11, %r2; @%p1 st.shared.u32 [m+8], %r11; @%p1 ld.shared.u32 %r12, [%r9+8]; @%p1 ld.shared.u32 %r13, [%rd8]; @%p1 ld.u32 %r14, [%rd9]; @%p1 ld.u32 %r15, [m+8];")
		for _, register := range []string{"%r12", "%r13", "%r14", "%r15"} {
			put(register, 40, 1)
		}
		body.WriteString("@%p1 st.shared.u32 [%r9+4], %r11; @%p1 st.u32 [%rd9+4], %r11; @%p1 red.shared.add.u32 [m+4], 1; @%p1 atom.add.u32 %r11, [%rd9+-4], 1; @%p1 ld.shared.v2.u32 {%r12, %r13}, [m+8]; @%p1 ld.shared.u32 %r14, [m+4];")
		put("%r11", 41, 1)
		put("%r13", 40, 1)
		put("%r14", 42, 1)
		h := newHarness(t, Options{Workers: 2}, boxText(fmt.Sprintf(".reqnctapercluster %d, 1, 1", blocks), 1024, body.String()))
		size := 2 * blocks * 1024
		out := h.buffer(size, make([]byte, size))
		m := boxMap()
		h.mustLaunch("k", 2*blocks, 32, h.tensorMap(m, make([]byte, m.Extent())), pointer(out, size, runtime.ReadWrite))
		got := words(h.download(out, size))
		for block := range 2 * blocks {
			var wanted []uint32
			for i := 0; i < len(want); i += 2 {
				wanted = append(wanted, want[i]+want[i+1]*uint32(block%blocks))
			}
			if got := got[256*block:][:len(wanted)]; !slices.Equal(got, wanted) {
				t.Errorf("clusters of %d, block %d: got %x, want %x", blocks, block, got, wanted)
			}
		}
	}
}

// TestSharedOfOthers: shared memory of another block of the cluster is out of bounds, by whatever instruction;
// a place without its rank is one in the block of rank 0.
func TestSharedOfOthers(t *testing.T) {
	const start = "xor.b32 %r8, %r2, 1; mapa.shared::cluster.u32 %r8, %r4, %r8; cvt.u64.u32 %rd8, %r8; cvta.shared.u64 %rd9, %rd8; @!%p3 bra X; "
	const only1 = "and.b32 %r4, %r4, 0xffffff; "
	for _, c := range []struct {
		name, body string
		rank       int // of the block that fails
		want       string
	}{
		{"load", start + "ld.shared.u32 %r9, [%r8+4]; X:", 0, "4 bytes at 0x1000004 are at offset 4 of the shared memory of block (1,0,0), another one of the cluster"},
		{"load of 64 bits", start + "ld.shared.u32 %r9, [%rd8]; X:", 0, "at offset 0 of the shared memory of block (1,0,0)"},
		{"store", start + "st.shared.u32 [%r8], %r9; X:", 0, "of block (1,0,0)"},
		{"atomic", start + "red.shared.add.u32 [%r8], 1; X:", 0, "of block (1,0,0)"},
		{"generic load", start + "ld.u32 %r9, [%rd9]; X:", 0, "of block (1,0,0)"},
		{"generic store", start + "st.u32 [%rd9], %r9; X:", 0, "of block (1,0,0)"},
		{"ldmatrix", start + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r8]; X:", 0, "of block (1,0,0)"},
		{"cp.async", start + "cp.async.ca.shared.global [%r8], [%rd2], 4; X:", 0, "of block (1,0,0)"},
		{"mbarrier.init", start + "@%p1 mbarrier.init.shared::cta.b64 [%r8], 1; X:", 0, "of block (1,0,0)"},
		{"mbarrier.arrive", "INIT CLUSTER " + start + "mbarrier.arrive.shared::cta.b64 _, [%r8]; X: CLUSTER", 0, "of block (1,0,0)"},
		{"load without rank", only1 + "ld.shared.u32 %r9, [%r4]; X:", 1, "4 bytes at 0x0 are at offset 0 of the shared memory of block (0,0,0)"},
		{"store without rank", only1 + "st.shared.u32 [%r4], %r9;", 1, "of block (0,0,0)"},
		{"load of no rank", "or.b32 %r4, %r4, 0x7000000; ld.shared.u32 %r9, [%r4]; X:", 0, "4 bytes at 0x7000000 are at offset 117440512 of variable shared memory"},
		{"copy of a box with an mbarrier without rank", "INIT CLUSTER @%p1 EXPECT 4096; and.b32 %r3, %r3, 0xffffff; @%p1 AGAIN CLUSTER", 1, "the bytes and their mbarrier are not in one block of the cluster"},
		{"mapa of no rank", "or.b32 %r4, %r4, 0x7000000; mapa.shared::cluster.u32 %r8, %r4, %r5;", 0, "is not in the shared memory of a block"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := runBox(t, ".reqnctapercluster 2, 1, 1", "st.shared.u32 [m], %r5;"+c.body, 2, 32, boxMap())
			var fault *Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			if fault.Kind != OutOfBounds || fault.Block != [3]int{c.rank, 0, 0} || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nlacks %q", err, c.want)
			}
		})
	}
}
