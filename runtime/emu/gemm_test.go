package emu

import (
	"math"
	"testing"

	"weft/runtime"
)

const gemmSize = 256

func gemmInputs() (a, b []float32) {
	a, b = make([]float32, gemmSize*gemmSize), make([]float32, gemmSize*gemmSize)
	for i := range a {
		a[i] = float32(i*7919%2003)/1000 - 1
		b[i] = float32(i*104729%1999)/1000 - 1
	}
	return a, b
}

func (h *harness) launchGEMM(a, b, c runtime.Pointer) {
	h.t.Helper()
	const size = gemmSize * gemmSize * 4
	err := h.device.Launch(0, runtime.Launch{
		Kernel: h.kernel("gemm"), Grid: [3]int{2, 2, 1}, Block: [3]int{256, 1, 1}, Label: "gemm",
		Args: []runtime.Arg{pointer(a, size, runtime.Read), pointer(b, size, runtime.Read), pointer(c, size, runtime.Write|runtime.Discard), int32Arg(gemmSize)},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.device.Synchronize(); err != nil {
		h.t.Fatal(err)
	}
}

func TestGEMM(t *testing.T) {
	a, b := gemmInputs()
	h := newHarness(t, Options{}, readTestdata(t, "gemm.ptx"))
	pa, pb, pc := h.buffer(len(a)*4, fromFloats(a)), h.buffer(len(b)*4, fromFloats(b)), h.buffer(len(a)*4, nil)
	h.launchGEMM(pa, pb, pc)
	got := words(h.download(pc, len(a)*4))
	for row := 0; row < gemmSize; row += 37 {
		for column := range gemmSize {
			sum := float32(0)
			for k := range gemmSize {
				sum = fma32(a[row*gemmSize+k], b[k*gemmSize+column], sum)
			}
			if g := got[row*gemmSize+column]; g != math.Float32bits(sum) {
				t.Fatalf("C[%d,%d] = %v, want %v", row, column, math.Float32frombits(g), sum)
			}
		}
	}
}

// BenchmarkGEMM reports warp instructions a second and core.
func BenchmarkGEMM(b *testing.B) {
	x, y := gemmInputs()
	h := newHarness(b, Options{Workers: 1}, readTestdata(b, "gemm.ptx"))
	pa, pb, pc := h.buffer(len(x)*4, fromFloats(x)), h.buffer(len(y)*4, fromFloats(y)), h.buffer(len(x)*4, nil)
	start := h.device.Instructions()
	for b.Loop() {
		h.launchGEMM(pa, pb, pc)
	}
	b.ReportMetric(float64(h.device.Instructions()-start)/b.Elapsed().Seconds()/1e6, "Mwarpinstr/s")
}

// BenchmarkElementwise is a short kernel over many blocks: loads, a few operations, a store.
func BenchmarkElementwise(b *testing.B) {
	const n = 1 << 20
	h := newHarness(b, Options{Workers: 1}, kernelText(`mad.lo.s32 %r3, %r5, 256, %r2; setp.ge.s32 %p4, %r3, %r1; @%p4 bra END;
	mul.wide.s32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
	ld.global.nc.f32 %f1, [%rd4]; mul.rn.f32 %f2, %f1, %f1; fma.rn.f32 %f2, %f2, %f1, %f1; max.f32 %f2, %f2, 0f00000000;
	setp.lt.f32 %p5, %f2, 0f3F800000; selp.f32 %f3, %f1, %f2, %p5; st.global.f32 [%rd5], %f3;
END:`))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%1000) / 500
	}
	in, out := h.buffer(4*n, fromFloats(x)), h.buffer(4*n, nil)
	start := h.device.Instructions()
	for b.Loop() {
		h.mustLaunch("k", n/256, 256, pointer(in, 4*n, runtime.Read), pointer(out, 4*n, runtime.Write|runtime.Discard), int32Arg(n))
	}
	b.ReportMetric(float64(h.device.Instructions()-start)/b.Elapsed().Seconds()/1e6, "Mwarpinstr/s")
}
