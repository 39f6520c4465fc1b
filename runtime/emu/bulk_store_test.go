package emu

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"weft/runtime"
)

// storeText fills m with the bytes of the second parameter, which is read here, before the body.
func storeText(bytes int, body string) string {
	fill := fmt.Sprintf(`add.s64 %%rd8, %%rd4, %%rd7; add.s64 %%rd9, %%rd2, %%rd7; mov.u32 %%r8, %%r1; FILL: ld.global.u32 %%r9, [%%rd9]; st.shared.u32 [%%rd8], %%r9;
		add.s64 %%rd8, %%rd8, 256; add.s64 %%rd9, %%rd9, 256; add.u32 %%r8, %%r8, 64; setp.lt.u32 %%p8, %%r8, %d; @%%p8 bra FILL;`, bytes/4)
	return boxText("", bytes, strings.NewReplacer("FILL", fill,
		"STORE2", "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group",
		"STORE", "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r5, %r5}], [%r4];",
		"COMMIT", "cp.async.bulk.commit_group;", "DONE", "cp.async.bulk.wait_group.read 0;", "PROXY", "fence.proxy.async.shared::cta;",
		"WRITE", "add.s64 %rd8, %rd4, %rd7; st.shared.u32 [%rd8], %r1;").Replace(body))
}

// TestBoxStores: a box that is stored is the one that a load would bring; nothing else is written.
func TestBoxStores(t *testing.T) {
	for swizzle := range runtime.Swizzle128 + 1 {
		for _, at := range [][]int{{0, 0}, {64, 30}, {-3, -5}, {100, 0}, {0, -16}} {
			inner := uint32(64)
			if span := swizzle.Span(); span > 0 {
				inner = uint32(span / 2)
			}
			m := runtime.TensorMap{Type: runtime.TensorBF16, Dims: []uint64{100, 40}, Strides: []uint64{208}, Box: []uint32{inner, 16}, Swizzle: swizzle}
			size := int(inner) * 2 * 16
			image := make([]byte, size)
			for i := range image {
				image[i] = byte(i*7 + i>>8*13 + 1)
			}
			h := newHarness(t, Options{}, storeText(size, fmt.Sprintf("FILL PROXY BARRIER mov.b32 %%r10, %d; mov.b32 %%r11, %d; @%%p1 STORE2 [%%rd1, {%%r10, %%r11}], [%%r4]; @%%p1 COMMIT @%%p1 DONE", at[0], at[1])))
			before := bytes.Repeat([]byte{0xee}, int(m.Extent()))
			arg := h.tensorMap(m, before)
			arg.Access = runtime.Write
			h.mustLaunch("k", 1, 64, arg, pointer(h.buffer(size, image), size, runtime.Read))
			after := h.download(runtime.Pointer(arg.Bits), len(before))
			got := boxCase{m, at}.image(after)
			for i := range got { // what lies outside reads as zero, and was not stored
				if got[i] != image[i] && got[i] != 0 {
					t.Fatalf("swizzle %d at %v: byte %d of the box is %d, want %d", swizzle, at, i, got[i], image[i])
				}
			}
			written := 0
			for i := range after {
				if after[i] != before[i] {
					written++
				}
			}
			inside := 2 * max(0, min(at[0]+int(inner), 100)-max(at[0], 0)) * max(0, min(at[1]+16, 40)-max(at[1], 0))
			if written > inside || written < inside*9/10 {
				t.Errorf("swizzle %d at %v: %d bytes written, %d are in the tensor", swizzle, at, written, inside)
			}
		}
	}
}

func TestBoxStoreHazards(t *testing.T) {
	for _, c := range []struct {
		name, body string
		thread     int
		kind       FaultKind // 0 for none
		want       string
	}{
		{"all right", "FILL PROXY BARRIER @%p1 STORE @%p1 COMMIT @%p1 DONE BARRIER WRITE", 0, 0, ""},
		{"writes its own after the wait", "FILL PROXY BARRIER @%p1 STORE @%p1 COMMIT @%p1 DONE @%p1 st.shared.u32 [%rd4], %r1;", 0, 0, ""},
		{"reads before the wait", "FILL PROXY BARRIER @%p1 STORE ld.shared.u32 %r9, [%rd4]; @%p1 COMMIT @%p1 cp.async.bulk.wait_group 0;", 0, 0, ""},
		{"an older group", "FILL PROXY BARRIER @%p1 STORE @%p1 COMMIT @%p1 COMMIT @%p1 cp.async.bulk.wait_group.read 1;", 0, 0, ""},
		{"of what a copy brought", "INIT @%p1 EXPECT 4096; @%p1 COPY2 [%r4], [%rd1, {%r5, %r5}], [%r3]; WAIT0 @%p1 STORE @%p1 COMMIT @%p1 DONE", 0, AccessDenied, "reads the tensor of argument 0, which the launch declares as write only"},
		{"no fence", "FILL BARRIER @%p1 STORE @%p1 COMMIT @%p1 DONE", 0, Unfenced, "reads byte 0 of shared memory, which warp 0 wrote without executing fence.proxy.async since"},
		{"another warp's fence", "FILL @%p2 PROXY BARRIER @%p1 STORE @%p1 COMMIT @%p1 DONE", 0, Unfenced, "which warp 1 wrote"},
		{"never written", "@%p1 STORE", 0, Uninitialised, "byte 0 was never written"},
		{"no wait", "FILL PROXY BARRIER @%p1 STORE @%p1 COMMIT", 0, InFlight, "the block exits while the copy may still read its shared memory"},
		{"a wait without commit", "FILL PROXY BARRIER @%p1 STORE @%p1 DONE", 0, InFlight, "the block exits"},
		{"another thread waits", "FILL PROXY BARRIER @%p1 STORE @%p1 COMMIT @%p4 DONE", 0, InFlight, "the block exits"},
		{"a wait for too few", "FILL PROXY BARRIER @%p1 STORE @%p1 COMMIT @%p1 cp.async.bulk.wait_group.read 1; WRITE", 0, InFlight, "that thread has not waited for it"},
		{"written before the wait", "FILL PROXY BARRIER @%p1 STORE @%p1 COMMIT WRITE", 0, InFlight, "writes 4 bytes at offset 0 of shared memory, which the copy that thread (0,0,0) started at line 19"},
		{"written before a barrier", "FILL PROXY BARRIER @%p1 STORE @%p1 COMMIT @%p1 DONE @!%p2 st.shared.u32 [%rd4], %r1;", 32, InFlight, "that thread has waited for it, but there was no barrier since"},
		{"copied to before the wait", "INIT FILL PROXY BARRIER @%p1 STORE @%p1 EXPECT 4096; @%p1 COPY2 [%r4], [%rd1, {%r5, %r5}], [%r3];", 0, AccessDenied, ""},
		{"misaligned", "FILL PROXY BARRIER add.u32 %r4, %r4, 16; @%p1 STORE", 0, Misaligned, "offset 16 of shared memory"},
		{"out of bounds", "FILL PROXY BARRIER add.u32 %r4, %r4, 4096; @%p1 STORE", 0, OutOfBounds, "4096 bytes at offset 4096 of shared memory, which has 4160"},
		{"out of bounds of 64 bits", "FILL PROXY BARRIER add.s64 %rd4, %rd4, -4096; @%p1 STORE2 [%rd1, {%r5, %r5}], [%rd4];", 0, OutOfBounds, "4096 bytes at offset -4096 of shared memory"},
		{"in another block", "FILL PROXY BARRIER or.b32 %r4, %r4, 0x1000000; @%p1 STORE", 0, OutOfBounds, "4096 bytes at offset 16777216 of shared memory"},
		{"no map", "FILL PROXY BARRIER @%p1 STORE2 [%rd2, {%r5, %r5}], [%r4];", 0, BadTensorMap, "is not the address"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t, Options{}, storeText(4096, c.body))
			arg := h.tensorMap(boxMap(), make([]byte, 4096))
			arg.Access = runtime.Write
			err := h.launch("k", 2, 64, arg, pointer(h.buffer(8192, make([]byte, 8192)), 8192, runtime.Read))
			if c.kind == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
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

// TestBoxStoreOfReads: what a launch only reads is not stored to.
func TestBoxStoreOfReads(t *testing.T) {
	h := newHarness(t, Options{}, storeText(4096, "FILL PROXY BARRIER @%p1 STORE"))
	err := h.launch("k", 1, 64, h.tensorMap(boxMap(), make([]byte, 4096)), pointer(h.buffer(4096, make([]byte, 4096)), 4096, runtime.Read))
	if err == nil || !strings.Contains(err.Error(), "writes the tensor of argument 0, which the launch declares as read only") {
		t.Error(err)
	}
}

// TestBoxStoreOverwritten: a box must not come over what another one is still stored from.
func TestBoxStoreOverwritten(t *testing.T) {
	const again = "@%p1 EXPECT 4096; @%p1 COPY2 [%r4], [%rd10, {%r5, %r5}], [%r3]; WAIT0"
	for wait, want := range map[string]string{"": "copies to offset 0 of shared memory, which the copy that thread (0,0,0) started at line 19", "@%p1 DONE": ""} {
		text := storeText(4096, "mov.b64 %rd10, k_from; cvta.param.u64 %rd10, %rd10; INIT FILL PROXY BARRIER @%p1 STORE @%p1 COMMIT "+wait+again)
		h := newHarness(t, Options{}, strings.Replace(text, ".param .u64 k_out)", ".param .u64 k_out, .param .align 64 .b8 k_from[128])", 1))
		to := h.tensorMap(boxMap(), make([]byte, 4096))
		to.Access = runtime.Write
		err := h.launch("k", 1, 64, to, pointer(h.buffer(4096, make([]byte, 4096)), 4096, runtime.Read), h.tensorMap(boxMap(), make([]byte, 4096)))
		var fault *Fault
		if want == "" {
			if err != nil {
				t.Error(err)
			}
		} else if !errors.As(err, &fault) || fault.Kind != InFlight || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}
