package emu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weft/runtime"
)

// boxText is a kernel "k" whose first parameter is a tensor map, %rd1 its address; %rd2 is the
// second, a pointer to as many bytes as there are in m, to which every block of a cluster copies its
// m at the end; %r1 is the thread, %r2 the rank of the block; %p1 is set for thread 0. The mbarriers are
// at %r3, +8, ..., m is at %r4. %rd4 is the address of m, %r5 and %r6 are 0 and 1. The body starts at line 18.
func boxText(header string, bytes int, body string) string {
	const wait = "{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%s], %s; @p bra DONE; bra WAIT; DONE: }"
	return fmt.Sprintf(`.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 k_map[128], .param .u64 k_out) %s
{
	.reg .pred %%p<9>; .reg .b16 %%rs<9>; .reg .b32 %%r<20>; .reg .f32 %%f<9>; .reg .b64 %%rd<12>;
	.shared .align 1024 .b8 m[%d]; .shared .align 8 .b8 bars[64];
	ld.param.u64 %%rd2, [k_out]; mov.b64 %%rd3, k_map; mov.u64 %%rd11, %%rd3; cvta.param.u64 %%rd1, %%rd11;
	mov.u32 %%r1, %%tid.x; mov.u32 %%r2, %%cluster_ctarank; setp.eq.u32 %%p1, %%r1, 0; mov.u32 %%r7, %%ctaid.x;
	mov.u64 %%rd4, m; cvt.u32.u64 %%r4, %%rd4; mov.u64 %%rd5, bars; cvt.u32.u64 %%r3, %%rd5; mov.b32 %%r5, 0; mov.b32 %%r6, 1;
	setp.lt.u32 %%p2, %%r1, 32; setp.eq.u32 %%p3, %%r2, 0; mul.wide.u32 %%rd6, %%r7, %[2]d; add.s64 %%rd2, %%rd2, %%rd6; mul.wide.u32 %%rd7, %%r1, 4; setp.eq.u32 %%p4, %%r1, 32;






`, header, bytes) + strings.NewReplacer(
		"INIT", "@%p1 mbarrier.init.shared::cta.b64 [%r3], 1; @%p1 fence.mbarrier_init.release.cluster; bar.sync 0;",
		"EXPECT", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3],",
		"ARRIVE", "mbarrier.arrive.shared::cta.b64 _, ",
		"COPY2", "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes",
		"WAIT0", fmt.Sprintf(wait, "%r3", "%r5"), "WAIT1", fmt.Sprintf(wait, "%r3", "%r6"), "NEXT0", fmt.Sprintf(wait, "%r3+8", "%r5"),
		"BARRIER", "bar.sync 0;", "ORDER", "wgmma.fence.sync.aligned;",
		"CLUSTER", "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;",
		"OUT", fmt.Sprintf(`add.s64 %%rd8, %%rd4, %%rd7; add.s64 %%rd9, %%rd2, %%rd7; mov.u32 %%r8, %%r1; OUT: ld.shared.u32 %%r9, [%%rd8]; st.global.u32 [%%rd9], %%r9;
			add.s64 %%rd8, %%rd8, 256; add.s64 %%rd9, %%rd9, 256; add.u32 %%r8, %%r8, 64; setp.lt.u32 %%p8, %%r8, %d; @%%p8 bra OUT;`, bytes/4),
	).Replace(body) + "\n\tret;\n}\n"
}

// boxCase is a tensor of 16-bit elements and a box of it.
type boxCase struct {
	m  runtime.TensorMap
	at []int
}

// image is the box as it lies in shared memory: the reference, element by element.
func (c boxCase) image(data []byte) []byte {
	rank, element := len(c.m.Dims), c.m.Type.Size()
	size := element
	for _, n := range c.m.Box {
		size *= int(n)
	}
	image := make([]byte, size)
	for i := 0; i < size; i += element {
		rest, from, inside := i/element, 0, true
		for d := range rank {
			x := c.at[d] + rest%int(c.m.Box[d])
			rest /= int(c.m.Box[d])
			inside = inside && x >= 0 && x < int(c.m.Dims[d])
			if d == 0 {
				from += x * element
			} else {
				from += x * int(c.m.Strides[d-1])
			}
		}
		if !inside {
			continue
		}
		to := i
		if span := c.m.Swizzle.Span(); span > 0 { // units of 16 bytes change places with their neighbours in the span
			line, unit := i/128, i/16%8
			to = line*128 + (unit^line%8&(span/16-1))*16 + i%16
		}
		copy(image[to:to+element], data[from:from+element])
	}
	return image
}

func (c boxCase) check(t *testing.T) {
	t.Helper()
	data := make([]byte, c.m.Extent()+16)
	for i := range data {
		data[i] = byte(i*7 + i>>8*13 + 1)
	}
	want := c.image(data)
	var coordinates []string
	body := "INIT "
	for d, x := range c.at {
		coordinates = append(coordinates, fmt.Sprintf("%%r%d", 10+d))
		body += fmt.Sprintf("mov.b32 %%r%d, %d; ", 10+d, x)
	}
	copies := fmt.Sprintf("cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes", len(c.at))
	body += fmt.Sprintf("@%%p1 EXPECT %d; @%%p1 %s [%%r4], [%%rd1, {%s}], [%%r3]; WAIT0 OUT", len(want), copies, strings.Join(coordinates, ", "))
	h := newHarness(t, Options{}, boxText("", len(want), body))
	out := h.buffer(len(want), nil)
	h.mustLaunch("k", 1, 64, h.tensorMap(c.m, data), pointer(out, len(want), runtime.Write))
	if got := h.download(out, len(want)); !bytes.Equal(got, want) {
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%+v at %v: byte %d is %d, want %d", c.m, c.at, i, got[i], want[i])
				break
			}
		}
	}
}

// tensorMap uploads a tensor and makes its map an argument.
func (h *harness) tensorMap(m runtime.TensorMap, data []byte) runtime.Arg {
	return runtime.Arg{Kind: runtime.ArgTensorMap, Bits: uint64(h.buffer(len(data), data)), Size: int64(len(data)), Access: runtime.Read, Map: &m}
}

// TestBoxes copies boxes of all ranks, swizzles and element sizes, inside of their tensors and across
// their ends.
func TestBoxes(t *testing.T) {
	plane := func(swizzle runtime.Swizzle, at ...int) boxCase {
		inner := uint32(64)
		if span := swizzle.Span(); span > 0 {
			inner = uint32(span / 2)
		}
		return boxCase{runtime.TensorMap{Type: runtime.TensorBF16, Dims: []uint64{100, 40}, Strides: []uint64{208}, Box: []uint32{inner, 16}, Swizzle: swizzle}, at}
	}
	for swizzle := range runtime.Swizzle128 + 1 {
		for _, at := range [][]int{{0, 0}, {8, 3}, {64, 30}, {-8, -5}, {96, 39}, {104, 0}, {0, 40}, {-64, 0}, {-1 << 31, 1<<31 - 1}} {
			plane(swizzle, at...).check(t)
		}
	}
	for _, c := range []boxCase{
		{runtime.TensorMap{Type: runtime.TensorU8, Dims: []uint64{1000}, Box: []uint32{256}}, []int{896}},
		{runtime.TensorMap{Type: runtime.TensorF64, Dims: []uint64{300, 3}, Strides: []uint64{2400}, Box: []uint32{256, 2}}, []int{50, 2}},
		{runtime.TensorMap{Type: runtime.TensorF32, Dims: []uint64{40, 9, 5}, Strides: []uint64{160, 1600}, Box: []uint32{32, 3, 4}, Swizzle: runtime.Swizzle128}, []int{20, 7, -1}},
		{runtime.TensorMap{Type: runtime.TensorF16, Dims: []uint64{40, 3, 5, 2}, Strides: []uint64{80, 256, 1280}, Box: []uint32{16, 2, 2, 2}, Swizzle: runtime.Swizzle32}, []int{8, 1, 4, -1}},
		{runtime.TensorMap{Type: runtime.TensorF16, Dims: []uint64{40, 3, 5, 2, 7}, Strides: []uint64{80, 256, 1280, 2560}, Box: []uint32{32, 2, 2, 2, 2}, Swizzle: runtime.Swizzle64}, []int{8, 1, 0, 0, 5}},
		{runtime.TensorMap{Type: runtime.TensorF16, Dims: []uint64{40, 0}, Strides: []uint64{0}, Box: []uint32{32, 8}}, []int{0, 0}},
	} {
		c.check(t)
	}
}

// boxMap is a tensor of 16 rows of 256 bytes; a box is all of it.
func boxMap() runtime.TensorMap {
	return runtime.TensorMap{Type: runtime.TensorU8, Dims: []uint64{256, 16}, Strides: []uint64{256}, Box: []uint32{256, 16}}
}

// runBox runs a kernel of boxText with that tensor and 8192 bytes of results a block.
func runBox(t *testing.T, header, body string, grid, block int, m runtime.TensorMap) error {
	t.Helper()
	replaced := strings.NewReplacer(
		"START", "@%p1 EXPECT 4096; @%p1 COPY2 [%r4], [%rd1, {%r5, %r5}], [%r3]; BARRIER",
		"AGAIN", "COPY2 [%r4], [%rd1, {%r5, %r5}], [%r3];",
		"DESCRIPTORS", "mov.b64 %rd6, 0x1000080000; mov.b64 %rd7, 0x1000080080; setp.eq.u32 %p7, %r5, 0;",
		"PRODUCT", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %rd7, %p7, 1, 1, 0, 0; wgmma.commit_group.sync.aligned;",
		"DONE0", "wgmma.wait_group.sync.aligned 0;",
		"WRITE", "add.s64 %rd8, %rd4, %rd7; st.shared.u32 [%rd8], %r1;",
		"READ", "ld.shared.u32 %r9, [%rd4];",
		"PROXY", "fence.proxy.async.shared::cta;",
	).Replace(body)
	h := newHarness(t, Options{Workers: 1}, boxText(header, 8192, replaced))
	return h.launch("k", grid, block, h.tensorMap(m, make([]byte, m.Extent())), pointer(h.buffer(8192*grid, make([]byte, 8192*grid)), 8192*grid, runtime.ReadWrite))
}

func TestBoxFaults(t *testing.T) {
	for _, c := range []struct {
		name, body string
		thread     int
		kind       FaultKind
		want       string
	}{
		{"read at once", "INIT START READ", 0, InFlight, "reads 4 bytes at offset 0 of shared memory, where the copy that thread (0,0,0) started at line 18 (@%p1 cp.async.bulk.tensor.2d"},
		{"read by another warp", "INIT START BARRIER @!%p2 READ", 32, InFlight, "is in flight"},
		{"another warp waits", "INIT START @!%p2 bra X; WAIT0 bra Y; X: READ Y:", 32, InFlight, "is in flight"},
		{"another warp waits and reads", "INIT START @!%p2 bra X; WAIT0 READ barrier.cluster.arrive.relaxed; barrier.cluster.wait; ret; X: barrier.cluster.arrive.relaxed; barrier.cluster.wait; READ", 32, InFlight,
			"is there, but this warp has not waited for phase 0 of the mbarrier at offset 8192, and there was no barrier of one that has"},
		{"write at once", "INIT START WRITE", 0, InFlight, "writes 4 bytes at offset 0"},
		{"atomic", "INIT START red.shared.add.u32 [m+64], 1;", 0, InFlight, "writes 4 bytes at offset 64"},
		{"ldmatrix", "INIT START ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r4];", 0, InFlight, "reads 16 bytes"},
		{"cp.async", "INIT START cp.async.ca.shared.global [%r4], [%rd2], 4;", 0, InFlight, "writes 4 bytes at offset 0"},
		{"two lanes", "INIT setp.lt.u32 %p5, %r1, 2; @%p1 EXPECT 8192; @%p5 AGAIN", 1, InFlight, "copies to offset 0 of shared memory, where the copy that thread (0,0,0) started"},
		{"again, without a wait", "INIT START @%p1 AGAIN", 0, InFlight, "is in flight"},
		{"again, by a warp that has not waited", "INIT START @!%p2 bra X; WAIT0 READ barrier.cluster.arrive.relaxed; barrier.cluster.wait; ret; X: barrier.cluster.arrive.relaxed; barrier.cluster.wait; @%p4 EXPECT 4096; @%p4 AGAIN", 32, InFlight, "is there, but this warp has not waited"},
		{"wait for another phase", "INIT START WAIT1 READ", 0, InFlight, "is in flight"},
		{"no expectation", "INIT @%p1 AGAIN WAIT0", 0, Deadlock, "warp 0 at line 18 (phase 0 of the mbarrier at offset 8192, 1 of 1 arrivals are missing, 4096 bytes are there already), warp 1"},
		{"expects less", "INIT @%p1 EXPECT 2048; @%p1 AGAIN WAIT0", 0, BadBarrier, "2048 bytes more are there than phase 0 of the mbarrier at offset 8192 expects"},
		{"expects less, later", "@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1; INIT @!%p4 bra X; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+8], 4096; COPY2 [%r4+4096], [%rd1, {%r5, %r5}], [%r3+8]; AGAIN X: @%p2 bra Y; NEXT0 Y: @%p4 EXPECT 2048; WAIT0", 32, BadBarrier, "all have arrived at phase 0 of the mbarrier at offset 8192, and 2048 bytes more are there than it expects"},
		{"expects too much", "INIT @%p1 mov.b32 %r9, 1048576; @%p1 EXPECT %r9;", 0, BadBarrier, "expects 1048576 bytes, 1048575 are possible"},
		{"arrives once too often", "INIT @%p1 EXPECT 4096; @%p1 ARRIVE [%r3];", 0, BadBarrier, "phase 0 of the mbarrier at offset 8192 expects 1 arrivals, this is one more; it still waits for 4096 bytes"},
		{"the phase ends before", "INIT @%p1 AGAIN @%p1 ARRIVE [%r3]; @%p1 ARRIVE [%r3]; @%p1 EXPECT 4096; mov.b32 %r5, 0; WAIT0 WAIT1 WAIT0", 0, BadBarrier, "phase 0 of the mbarrier at offset 8192, in which the copy started, has ended without its bytes"},
		{"nobody waits", "INIT START", 0, BadBarrier, "copies to block (0,0,0), which has exited"},
		{"a wait for nothing", "INIT WAIT0", 0, Deadlock, "0 of 2 warps have exited; waiting: warp 0 at line 18 (phase 0 of the mbarrier at offset 8192, 1 of 1 arrivals and 0 bytes are missing), warp 1 at line 18"},
		{"bad parity", "INIT mov.b32 %r5, 2; WAIT0", 0, BadBarrier, "parity 2"},
		{"no mbarrier", "START", 0, BadBarrier, "there is no mbarrier at offset 8192"},
		{"no mbarrier for a copy", "INIT @%p1 COPY2 [%r4], [%rd1, {%r5, %r5}], [%r3+8];", 0, BadBarrier, "there is no mbarrier at offset 8200"},
		{"no mbarrier to wait for", "@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1; WAIT0", 0, BadBarrier, "there is no mbarrier at offset 8192"},
		{"no barrier since", "@%p1 mbarrier.init.shared::cta.b64 [%r3], 1; WAIT1", 32, BadBarrier, "there was no barrier since warp 0 initialised it at line 18"},
		{"no fence since", "@%p1 mbarrier.init.shared::cta.b64 [%r3], 1; START", 0, Unfenced, "warp 0 has executed no fence.mbarrier_init since it initialised it at line 18"},
		{"initialised twice", "INIT INIT", 0, BadBarrier, "there is an mbarrier at offset 8192 of shared memory already, since line 18"},
		{"initialised over a copy", "INIT START @%p1 mbarrier.init.shared::cta.b64 [%r4+8], 1;", 0, InFlight, "writes 8 bytes at offset 8"},
		{"a copy over an mbarrier", "@%p1 mbarrier.init.shared::cta.b64 [%r4+8], 1; INIT START", 0, BadBarrier, "copies to offset 8 of shared memory, where the mbarrier lies that line 18 initialised"},
		{"a copy over cp.async", "INIT @%p1 cp.async.ca.shared.global [%r4+16], [%rd2], 16; START", 0, InFlight, "copies to offset 16 of shared memory, into which cp.async copies"},
		{"expects nothing to arrive", "@%p1 mbarrier.init.shared::cta.b64 [%r3], 0;", 0, BadBarrier, "an mbarrier that expects 0 arrivals"},
		{"misaligned mbarrier", "@%p1 mbarrier.init.shared::cta.b64 [%r3+4], 1;", 0, Misaligned, "8 bytes at 0x2004"},
		{"mbarrier out of bounds", "@%p1 mbarrier.init.shared::cta.b64 [%r3+64], 1;", 0, OutOfBounds, ""},
		{"an mbarrier is read", "INIT ld.shared.u32 %r9, [%r3+4];", 0, BadBarrier, "reads 4 bytes at offset 8196 of shared memory, where the mbarrier lies"},
		{"an mbarrier is written", "INIT st.shared.u64 [%r3], %rd1;", 0, BadBarrier, "writes 8 bytes at offset 8192"},
		{"no map", "INIT add.s64 %rd1, %rd1, 64; START", 0, BadTensorMap, "is not the address of a parameter that is a tensor map"},
		{"a pointer for a map", "INIT mov.u64 %rd1, %rd2; START", 0, BadTensorMap, "is not the address"},
		{"prefetch of no map", "prefetch.tensormap [%rd2];", 0, BadTensorMap, "is not the address"},
		{"another rank", "INIT @%p1 cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1, {%r5, %r5, %r5}], [%r3];", 0, BadTensorMap, "argument 0 is the map of a tensor of 2 dimensions, the instruction has 3"},
		{"misaligned", "INIT add.u32 %r4, %r4, 64; START", 0, Misaligned, "offset 64 of shared memory: a box with this swizzle is aligned to 128 bytes"},
		{"a column between units", "INIT mov.u32 %r9, 24; @%p1 COPY2 [%r4], [%rd1, {%r9, %r5}], [%r3];", 0, Misaligned, "the box at [24 0]: its first coordinate, of elements of 1 bytes, is at no multiple of 16 bytes"},
		{"out of bounds", "INIT add.u32 %r4, %r4, 4224; START", 0, OutOfBounds, "4096 bytes at offset 4224 of shared memory, which has 8256"},
		{"a block that does not exist", "INIT or.b32 %r4, %r4, 0x3000000; START", 0, OutOfBounds, "not in one block of the cluster"},
		{"mapa of no rank", "mapa.shared::cluster.u32 %r9, %r3, %r6;", 0, OutOfBounds, "rank 1 in a cluster of 1 blocks"},
		{"mapa of no shared memory", "mapa.shared::cluster.u32 %r9, %r9, %r5; add.u32 %r9, %r3, 64; mapa.shared::cluster.u32 %r9, %r9, %r5;", 0, OutOfBounds, "is not in the shared memory of a block"},
		{"a copy over bytes that no fence has ordered", "DESCRIPTORS ORDER bra X; PRODUCT X: INIT @%p4 st.shared.u32 [%r4+512], %r5; BARRIER START", 0, Unfenced, "copies to offset 512 of shared memory, which warp 1 wrote without executing fence.proxy.async since"},
		{"product before the wait", "INIT DESCRIPTORS START ORDER PRODUCT", 0, InFlight, "reads 16 bytes at offset 0"},
		{"copy before the product has read", "INIT DESCRIPTORS START WAIT0 BARRIER ORDER PRODUCT @%p1 EXPECT 4096; @%p1 AGAIN", 0, InFlight, "copies to offset 0 of shared memory, which the product that warp 0 started at line 18"},
		{"copy when one warp alone has waited for the product", "INIT DESCRIPTORS START WAIT0 BARRIER ORDER PRODUCT DONE0 @%p1 EXPECT 4096; @%p1 AGAIN DONE0", 0, InFlight, "which the product that warp 1 started"},
		{"arrives twice at the barrier of the cluster", "barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;", 0, BarrierDivergence, "has arrived at the barrier of the cluster already"},
		{"waits without arriving", "barrier.cluster.wait;", 0, BarrierDivergence, "has not arrived"},
		{"some threads arrive", "@%p1 barrier.cluster.arrive;", 0, BarrierDivergence, "1 of the warp's 32 threads are at this barrier"},
		{"some threads wait", "barrier.cluster.arrive; @%p1 barrier.cluster.wait;", 0, BarrierDivergence, "1 of the warp's 32 threads"},
		{"a warp that never comes", "@%p2 bra X; bar.sync 1, 64; X: CLUSTER", 0, Deadlock, "warp 0 at line 18 (the barrier of the cluster), warp 1 at line 18 (barrier 1, 64 threads)"},
		{"some threads give registers back", "@%p1 setmaxnreg.dec.sync.aligned.u32 40;", 0, WarpDivergence, "all 32 lanes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			block := 64
			if strings.Contains(c.body, "PRODUCT") {
				block = 128
			}
			err := runBox(t, "", c.body, 1, block, boxMap())
			var fault *Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			if fault.Kind != c.kind || fault.Thread != [3]int{c.thread, 0, 0} || fault.Line == 0 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nlacks %q", err, c.want)
			}
		})
	}
}

// TestBoxUses has correct uses.
func TestBoxUses(t *testing.T) {
	const again = "@%p1 EXPECT 4096; @%p1 AGAIN "
	for _, c := range []struct {
		name, body string
		block      int
	}{
		{"all wait", "INIT START WAIT0 READ", 64},
		{"one waits, then a barrier", "INIT START @!%p2 bra X; WAIT0 X: BARRIER READ", 64},
		{"one waits, then tells by an mbarrier", "@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1; INIT START @!%p2 bra X; WAIT0 @%p1 ARRIVE [%r3+8]; X: NEXT0 READ", 64},
		{"prefetch", "prefetch.tensormap [%rd1]; INIT START WAIT0 READ", 64},
		{"phases", "INIT START WAIT0 BARRIER " + again + "WAIT1 BARRIER " + again + "WAIT0 READ", 64},
		{"phases without copies", "INIT @%p1 ARRIVE [%r3]; WAIT0 @%p1 ARRIVE [%r3]; WAIT1 @%p1 ARRIVE [%r3]; WAIT0", 64},
		{"phase of the past", "INIT WAIT1", 64},
		{"overwritten by the warp that waited", "INIT START WAIT0 " + again + "WAIT1 READ", 32},
		{"overwritten before it is expected", "INIT START WAIT0 @%p1 AGAIN @%p1 EXPECT 4096; WAIT1 READ", 32},
		{"other bytes without a fence", "INIT START @%p4 st.shared.u32 [%r4+4096], %r5; WAIT0 DESCRIPTORS ORDER PRODUCT", 128},
		{"arrivals of all threads", "@%p1 mbarrier.init.shared::cta.b64 [%r3], 64; @%p1 fence.proxy.async.shared::cta; BARRIER ARRIVE [%r3]; WAIT0", 64},
		{"lanes wait for different mbarriers", "@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 1; INIT and.b32 %r9, %r1, 1; shl.b32 %r9, %r9, 3; add.u32 %r10, %r3, %r9; @%p4 ARRIVE [%r3]; @%p4 ARRIVE [%r3+8]; mov.b32 %r3, %r10; WAIT0", 64},
		{"expected after the copy has landed", "INIT @%p1 AGAIN BARRIER @%p4 EXPECT 4096; WAIT0 READ", 64},
		{"written, fenced, overwritten", "INIT WRITE PROXY BARRIER START WAIT0 DESCRIPTORS ORDER PRODUCT", 128},
		{"product of what a copy brought", "INIT DESCRIPTORS START WAIT0 ORDER PRODUCT DONE0 BARRIER " + again + "WAIT1 ORDER PRODUCT", 128},
		{"product, then arrivals", "@%p1 mbarrier.init.shared::cta.b64 [%r3+8], 128; INIT DESCRIPTORS START WAIT0 ORDER PRODUCT DONE0 ARRIVE [%r3+8]; @!%p1 bra X; NEXT0 " + again + "X: WAIT1 ORDER PRODUCT", 128},
		{"cp.async beside it", "INIT @%p4 cp.async.ca.shared.global [%r4+4096], [%rd2], 16; @%p4 cp.async.wait_all; START WAIT0 ld.shared.u32 %r9, [%r4+4096];", 64},
		{"its own address by mapa", "mapa.shared::cluster.u32 %r4, %r4, %r2; INIT START WAIT0 READ", 64},
		{"registers", "setmaxnreg.dec.sync.aligned.u32 24; setmaxnreg.inc.sync.aligned.u32 256;", 128},
		{"a thread waits for all", "INIT START @!%p1 bra X; WAIT0 X: BARRIER READ", 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := runBox(t, "", c.body, 3, c.block, boxMap()); err != nil { // one block after the other
				t.Error(err)
			}
		})
	}
}

// TestBoxLayout: boxes with swizzles are the matrices that descriptors of products describe.
func TestBoxLayout(t *testing.T) {
	for swizzle, width := range map[runtime.Swizzle]int{runtime.Swizzle128: 128, runtime.Swizzle64: 64, runtime.Swizzle32: 32} {
		m := runtime.TensorMap{Type: runtime.TensorBF16, Dims: []uint64{sharedInner, 48}, Strides: []uint64{2 * sharedInner}, Box: []uint32{uint32(width / 2), 48}, Swizzle: swizzle}
		var data []byte
		for i := range 48 * sharedInner {
			data = binary.LittleEndian.AppendUint16(data, uint16(i))
		}
		var image []byte
		for k := 0; k < sharedInner; k += width / 2 {
			image = append(image, boxCase{m, []int{k, 0}}.image(data)...)
		}
		matrix := sharedMatrix{0, 48, width, false}
		for row := range 48 {
			for k := range sharedInner {
				if got := binary.LittleEndian.Uint16(image[matrix.place(row, k):]); got != uint16(row*sharedInner+k) {
					t.Fatalf("swizzle of %d bytes: row %d, k %d is %d", width, row, k, got)
				}
			}
		}
	}
}

// TestTensorMapArguments: what is wrong with a map or a cluster is said when the kernel is launched.
func TestTensorMapArguments(t *testing.T) {
	for _, c := range []struct {
		name, header string
		grid         int
		change       func(*runtime.Arg)
		want         string
	}{
		{"no map", "", 1, func(a *runtime.Arg) { a.Map = nil }, "argument 0: a tensor map argument without a map"},
		{"a pointer", "", 1, func(a *runtime.Arg) { a.Kind = runtime.ArgPointer }, "argument 0 has 8 bytes, parameter k_map has 128"},
		{"a map for a pointer", "", 1, func(a *runtime.Arg) { a.Kind = runtime.ArgI64 }, "argument 0 has 8 bytes"},
		{"misaligned", "", 1, func(a *runtime.Arg) { a.Bits += 8 }, "not aligned to 16 bytes"},
		{"too large", "", 1, func(a *runtime.Arg) { a.Map.Dims[1]++ }, "a tensor map of 4352 bytes in memory of 4096"},
		{"no memory", "", 1, func(a *runtime.Arg) { a.Bits, a.Size = 1<<20, 4096 }, "argument 0: address 0x100000 is in no allocation"},
		{"gaps", "", 1, func(a *runtime.Arg) { a.Map.Box[0], a.Map.Swizzle = 64, runtime.Swizzle128 }, "a box of 64 bytes in dimension 0"},
		{"half a cluster", ".reqnctapercluster 2", 3, func(*runtime.Arg) {}, "grid [3 1 1] is no multiple of .reqnctapercluster [2 1 1]"},
		{"a large cluster", ".reqnctapercluster 16", 16, func(*runtime.Arg) {}, "clusters of 16 blocks, at most 8 are possible"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, Options{}, boxText(c.header, 4096, ""))
			arg := h.tensorMap(boxMap(), make([]byte, 4096))
			c.change(&arg)
			if err := h.launch("k", c.grid, 32, arg, pointer(h.buffer(4096, nil), 4096, runtime.Write)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nlacks %q", err, c.want)
			}
		})
	}
}

// TestBoxUninitialised: a box of bytes that nobody wrote is a fault of the copy; bytes between its rows do not count.
func TestBoxUninitialised(t *testing.T) {
	m := runtime.TensorMap{Type: runtime.TensorU8, Dims: []uint64{240, 16}, Strides: []uint64{256}, Box: []uint32{256, 16}}
	for _, row := range []int{-1, 0, 15} {
		h := newHarness(t, Options{}, boxText("", 4096, "INIT @%p1 EXPECT 4096; @%p1 COPY2 [%r4], [%rd1, {%r5, %r5}], [%r3]; WAIT0 OUT"))
		tensor := h.buffer(4096, nil)
		for i := range 16 {
			if i != row {
				if err := h.device.Upload(tensor+runtime.Pointer(i*256), make([]byte, 240)); err != nil {
					t.Fatal(err)
				}
			}
		}
		arg := runtime.Arg{Kind: runtime.ArgTensorMap, Bits: uint64(tensor), Size: 4096, Access: runtime.Read, Map: &m}
		err := h.launch("k", 1, 64, arg, pointer(h.buffer(4096, nil), 4096, runtime.Write))
		var fault *Fault
		if row < 0 {
			if err != nil {
				t.Error(err)
			}
		} else if want := fmt.Sprintf("the box at [0 0]: byte %d of argument 0 was never written", row*256); !errors.As(err, &fault) || fault.Kind != Uninitialised || fault.Argument != 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}

func TestBoxUnsupported(t *testing.T) {
	for _, body := range []string{
		"mbarrier.init.b64 [%rd1], 1;", "mbarrier.init.shared::cta.b64 [%r3];", "mbarrier.init.shared::cta.b64 %r3, 1;", "mbarrier.arrive.shared::cta.b64 %rd1, [%r3];",
		"mbarrier.arrive.shared::cta.b64 _, [%r3], 2;", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3];", "mbarrier.test_wait.parity.shared::cta.b64 %p4, [%r3], 0;",
		"mbarrier.try_wait.parity.shared::cta.b64 %r3, [%r3], 0;", "mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r3];", "mbarrier.inval.shared::cta.b64 [%r3];", "mbarrier;",
		"mapa.shared::cluster.u64 %rd1, %rd2, %r3;", "mapa.shared::cluster.u32 %r3, %r4;", "ld.shared::cluster.u32 %r3, [%r4];", "st.shared::cluster.u32 [%r4], %r3;",
		"barrier.cluster.arrive.acquire;", "barrier.cluster.wait 0;", "setmaxnreg.dec.sync.aligned.u32 16;", "setmaxnreg.inc.sync.aligned.u32 44;", "setmaxnreg.inc.sync.aligned.u32 264;",
		"setmaxnreg.inc.sync.aligned.u32 %r3;", "setmaxnreg.inc.u32 40;", "cp.async.bulk.commit_group 1;", "cp.async.bulk.wait_group %r3;", "cp.async.bulk.wait_all;", "cp.async.bulk;",
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r3}], [%r4];",
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1+64, {%r3, %r3}], [%r4];",
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], [%r4];",
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r3, %r3}];",
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r3], [%rd1, {%r3, %r3}], [%r4], %r5;",
		"cp.async.bulk.tensor.6d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r3, %r3, %r3, %r3, %r3, %r3}], [%r4];",
		"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r3, %r3}];", "prefetch.tensormap %rd1;", "mov.b64 %rd1, a;", "fence.mbarrier_init.release.cluster 1;",
	} {
		var unsupported *UnsupportedError
		if err := Check(kernelText(body)); !errors.As(err, &unsupported) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
