package emu

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"weft/runtime"
)

// boxText is a kernel "k" whose first parameter is a tensor map, %rd1 its address; %rd2 is the
// second, a pointer to as many bytes as there are in m, to which every block of a cluster copies its
// m at the end; %r1 is the thread, %r2 the rank of the block; %p1 is set for thread 0. The mbarriers are
// at %r3, +8, ..., m is at %r4. %rd4 is the address of m, %r5 and %r6 are 0 and 1. The body starts at line 19.
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
		"WAIT0", fmt.Sprintf(wait, "%r3", "%r5"), "WAIT1", fmt.Sprintf(wait, "%r3", "%r6"),
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
		for _, at := range [][]int{{0, 0}, {8, 3}, {64, 30}, {-3, -5}, {99, 39}, {100, 0}, {0, 40}, {-64, 0}, {-1 << 31, 1<<31 - 1}} {
			plane(swizzle, at...).check(t)
		}
	}
	for _, c := range []boxCase{
		{runtime.TensorMap{Type: runtime.TensorU8, Dims: []uint64{1000}, Box: []uint32{256}}, []int{900}},
		{runtime.TensorMap{Type: runtime.TensorF64, Dims: []uint64{300, 3}, Strides: []uint64{2400}, Box: []uint32{256, 2}}, []int{50, 2}},
		{runtime.TensorMap{Type: runtime.TensorF32, Dims: []uint64{40, 9, 5}, Strides: []uint64{160, 1600}, Box: []uint32{32, 3, 4}, Swizzle: runtime.Swizzle128}, []int{20, 7, -1}},
		{runtime.TensorMap{Type: runtime.TensorF16, Dims: []uint64{40, 3, 5, 2}, Strides: []uint64{80, 256, 1280}, Box: []uint32{16, 2, 2, 2}, Swizzle: runtime.Swizzle32}, []int{8, 1, 4, -1}},
		{runtime.TensorMap{Type: runtime.TensorF16, Dims: []uint64{40, 3, 5, 2, 7}, Strides: []uint64{80, 256, 1280, 2560}, Box: []uint32{32, 2, 2, 2, 2}, Swizzle: runtime.Swizzle64}, []int{8, 1, 0, 0, 5}},
		{runtime.TensorMap{Type: runtime.TensorF16, Dims: []uint64{40, 0}, Strides: []uint64{0}, Box: []uint32{32, 8}}, []int{0, 0}},
	} {
		c.check(t)
	}
}
