package emu

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/runtime"
)

// tensorWarps is how many products each form of mma is tested on.
const tensorWarps = 2048

// randomWords is splitmix64.
type randomWords uint64

func (r *randomWords) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *randomWords) below(n uint64) uint32 { return uint32(r.next() % n) }

// element makes an element of a format with exponent and fraction bits. Styles: near 1, over
// wide ranges, with zeros and subnormals, few bits that cancel, with infinities and NaN, any, zeros that
// are mostly negative.
func (r *randomWords) element(style int, exponent, fraction uint) uint32 {
	bias := uint32(1)<<(exponent-1) - 1
	sign := uint32(r.next()&1) << (exponent + fraction)
	part := uint32(r.next()) & (1<<fraction - 1)
	switch style {
	case 0:
		return sign | (bias-4+r.below(6))<<fraction | part
	case 1:
		return sign | (bias-14+r.below(28))<<fraction | part
	case 2:
		switch r.below(3) {
		case 0:
			return sign
		case 1:
			return sign | part>>r.below(uint64(fraction))
		}
		return sign | (1+r.below(uint64(2*bias)))<<fraction | part
	case 3:
		return sign | (bias+r.below(3))<<fraction | part>>(fraction-2)<<(fraction-2)
	case 4:
		if r.below(40) == 0 {
			return sign | (1<<exponent-1)<<fraction | part*r.below(2)
		}
		return sign | (bias-4+r.below(6))<<fraction | part
	case 6:
		if r.below(16) == 0 {
			return 0
		}
		return 1 << (exponent + fraction)
	}
	return sign | uint32(r.next())&(1<<(exponent+fraction)-1)
}

// tensorForm is a form of mma, with the bits of its elements.
type tensorForm struct {
	kernel             string
	inner, perWord     int
	exponent, fraction uint
}

var tensorForms = []tensorForm{
	{"mma_bf16", 16, 2, 8, 7}, {"mma_f16", 16, 2, 5, 10}, {"mma_tf32", 8, 1, 8, 10}, {"mma_s8", 32, 4, 0, 0},
}

// inputs makes the words of A, B and C for all warps, in the order of lanes and registers.
func (f tensorForm) inputs(seed uint64) (a, b, c []uint32) {
	r := randomWords(seed)
	word := func(style int) uint32 {
		switch f.perWord {
		case 1:
			return r.element(style, 8, 10)<<13 | uint32(r.next())&0x1fff
		case 2:
			return r.element(style, f.exponent, f.fraction) | r.element(style, f.exponent, f.fraction)<<16
		}
		return uint32(r.next())
	}
	for warp := range tensorWarps {
		style := warp % 7
		for range 128 {
			if a = append(a, word(style)); style == 6 {
				a[len(a)-1] = 0
			}
			c = append(c, r.element(style, 8, 23))
		}
		for range 64 {
			b = append(b, word(style))
		}
	}
	return a, b, c
}

// at are an element's lane, register and place in the register. The formulas are those of the
// PTX ISA, section "Matrix Fragments for mma".
func (f tensorForm) atA(row, k int) (lane, register, part int) {
	n := f.perWord
	return row%8*4 + k%(4*n)/n, row/8 + k/(4*n)*2, k % n
}

func (f tensorForm) atB(k, column int) (lane, register, part int) {
	n := f.perWord
	return column*4 + k%(4*n)/n, k / (4 * n), k % n
}

func atC(row, column int) (lane, register int) { return row%8*4 + column/2, row/8*2 + column%2 }

// value is the exact value of an element.
func (f tensorForm) value(word uint32, part int) float64 {
	if f.perWord == 1 {
		return float64(math.Float32frombits(word &^ 0x1fff))
	}
	half := word >> (16 * part) & 0xffff
	if f.exponent == 8 {
		return float64(math.Float32frombits(half << 16))
	}
	return float64(math.Float32frombits(float16To32(half)))
}

// exponentOf is the exponent of a nonzero element of a format whose smallest is given.
func exponentOf(v float64, smallest int) int {
	_, e := math.Frexp(v)
	return max(e-1, smallest)
}

// dotReference computes an element of D in float64 arithmetic, which holds all aligned terms.
func dotReference(a, b []float64, c float32, smallest int) uint32 {
	top, plain := -133, float64(c)
	if c != 0 {
		top = exponentOf(plain, -126)
	}
	for k := range a {
		plain += a[k] * b[k]
		if a[k]*b[k] != 0 {
			top = max(top, exponentOf(a[k], smallest)+exponentOf(b[k], smallest))
		}
	}
	if math.IsNaN(plain) {
		return 0x7fffffff
	}
	if math.IsInf(plain, 0) {
		return math.Float32bits(float32(plain))
	}
	sum := math.Trunc(math.Ldexp(float64(c), 25-top))
	for k := range a {
		sum += math.Trunc(math.Ldexp(a[k]*b[k], 25-top))
	}
	v := math.Ldexp(sum, top-25)
	f := float32(v)
	if math.Abs(float64(f)) > math.Abs(v) && !math.IsInf(float64(f), 0) {
		f = math.Nextafter32(f, 0)
	} else if math.IsInf(float64(f), 0) && math.Abs(v) < math.Ldexp(1, 128) {
		f = float32(math.Copysign(math.MaxFloat32, v))
	}
	return math.Float32bits(f + 0) // no negative zero
}

// reference computes D of one warp, in fragments.
func (f tensorForm) reference(a, b, c []uint32) []uint32 {
	d := make([]uint32, 128)
	smallest := map[uint]int{8: -126, 5: -14}[f.exponent]
	for row := range 16 {
		for column := range 8 {
			lane, register := atC(row, column)
			x, y, sum := make([]float64, f.inner), make([]float64, f.inner), c[lane*4+register]
			for k := range f.inner {
				la, ra, pa := f.atA(row, k)
				lb, rb, pb := f.atB(k, column)
				if f.perWord == 4 {
					sum += uint32(int32(int8(a[la*4+ra]>>(8*pa))) * int32(int8(b[lb*2+rb]>>(8*pb))))
					continue
				}
				x[k], y[k] = f.value(a[la*4+ra], pa), f.value(b[lb*2+rb], pb)
			}
			if f.perWord != 4 {
				sum = dotReference(x, y, math.Float32frombits(sum), smallest)
			}
			d[lane*4+register] = sum
		}
	}
	return d
}

func fromWords(v []uint32) []byte {
	data := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(data[4*i:], x)
	}
	return data
}

// run multiplies on the emulator.
func (f tensorForm) run(t *testing.T, h *harness, a, b, c []uint32) []uint32 {
	size := len(c) * 4
	out := h.buffer(size, nil)
	h.mustLaunch(f.kernel, tensorWarps, 32, pointer(h.buffer(len(a)*4, fromWords(a)), len(a)*4, runtime.Read),
		pointer(h.buffer(len(b)*4, fromWords(b)), len(b)*4, runtime.Read), pointer(h.buffer(size, fromWords(c)), size, runtime.Read),
		pointer(out, size, runtime.Write|runtime.Discard))
	return words(h.download(out, size))
}

// TestMatrixProduct compares every element with a direct computation, and all results with
// those of an H200. With -write-hardware it writes the operands for testdata/tensor.py.
func TestMatrixProduct(t *testing.T) {
	text := readTestdata(t, "tensor.ptx")
	golden := readTestdata(t, "h200_tensor.txt")
	if *writeHardware != "" {
		writeFile(t, filepath.Join(*writeHardware, "tensor.ptx"), []byte(text))
	}
	for i, f := range tensorForms {
		t.Run(f.kernel, func(t *testing.T) {
			a, b, c := f.inputs(uint64(i + 1))
			h := newHarness(t, Options{}, text)
			got := f.run(t, h, a, b, c)
			if *writeHardware != "" {
				for name, data := range map[string][]uint32{"a": a, "b": b, "c": c, "emulator": got} {
					writeFile(t, filepath.Join(*writeHardware, f.kernel+"."+name), fromWords(data))
				}
				return
			}
			align, split := alignProducts, splitElements
			alignProducts, splitElements = alignPortable, splitPortable
			portable := f.run(t, h, a, b, c)
			alignProducts, splitElements = align, split
			if !slices.Equal(got, portable) {
				t.Error("the vector code and the portable code differ")
			}
			bad := 0
			for warp := range tensorWarps {
				want := f.reference(a[warp*128:][:128], b[warp*64:][:64], c[warp*128:][:128])
				for j, w := range want {
					if g := got[warp*128+j]; g != w && bad < 5 {
						bad++
						t.Errorf("warp %d, lane %d, register %d: 0x%08x, want 0x%08x", warp, j/4, j%4, g, w)
					}
				}
			}
			if line := fmt.Sprintf("%x %s\n", sha256.Sum256(fromWords(got)), f.kernel); !strings.Contains(golden, line) {
				t.Error("the results are not the GPU's")
			}
		})
	}
}

func TestMatrixLoads(t *testing.T) {
	h := newHarness(t, Options{}, readTestdata(t, "tensor.ptx"))
	data := make([]byte, 2048)
	for i := range 1024 {
		binary.LittleEndian.PutUint16(data[2*i:], uint16(i))
	}
	rows := make([]uint32, 32)
	for i := range rows {
		rows[i] = uint32(i * 37 % 128 * 16)
	}
	element := func(matrix, row, column int) uint32 { return rows[matrix*8+row]/2 + uint32(column) }
	for _, count := range []int{1, 2, 4} {
		for _, suffix := range []string{"", "_trans"} {
			out := h.buffer(512, make([]byte, 512))
			h.mustLaunch(fmt.Sprintf("ldmatrix_x%d%s", count, suffix), 1, 32, pointer(h.buffer(2048, data), 2048, runtime.Read),
				pointer(h.buffer(128, fromWords(rows)), 128, runtime.Read), pointer(out, 512, runtime.ReadWrite))
			got := words(h.download(out, 512))
			for lane := range 32 {
				for matrix := range count {
					row, column := lane/4, lane%4*2
					want := element(matrix, row, column) | element(matrix, row, column+1)<<16
					if suffix != "" {
						want = element(matrix, column, row) | element(matrix, column+1, row)<<16
					}
					if g := got[lane*4+matrix]; g != want {
						t.Fatalf("x%d%s: lane %d, matrix %d: 0x%08x, want 0x%08x", count, suffix, lane, matrix, g, want)
					}
				}
			}
		}
	}
}

// TestMatrixStores stores with stmatrix what ldmatrix loads again, and transposes in registers.
func TestMatrixStores(t *testing.T) {
	const head = `ld.global.u32 %r3, [%rd4]; mul.lo.u32 %r5, %r2, 16; and.b32 %r5, %r5, 127; cvt.u32.u64 %r6, %rd6; add.u32 %r5, %r5, %r6; `
	for name, body := range map[string]string{
		"straight":   "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r3}; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r5];",
		"x2":         "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r7], {%r8, %r3}; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r5+128];",
		"transposed": "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r5], {%r3}; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r5];",
		"both":       "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r5], {%r3}; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r7}, [%r5];",
		"registers":  "movmatrix.sync.aligned.m8n8.trans.b16 %r7, %r3;",
	} {
		setup := "mul.lo.u32 %r7, %r2, 16; and.b32 %r7, %r7, 255; add.u32 %r7, %r7, %r6; mov.b32 %r8, 0; "
		h := newHarness(t, Options{}, kernelText(head+setup+body+" st.global.u32 [%rd5], %r7;"))
		in := make([]uint32, 32)
		for i := range in {
			in[i] = uint32(2*i) | uint32(2*i+1)<<16
		}
		out := h.buffer(128, nil)
		h.mustLaunch("k", 1, 32, pointer(h.buffer(128, fromWords(in)), 128, runtime.Read), pointer(out, 128, runtime.Write|runtime.Discard), int32Arg(0))
		got := words(h.download(out, 128))
		for lane, g := range got {
			want := in[lane]
			if name == "transposed" || name == "registers" {
				row, column := lane/4, lane%4*2
				want = uint32(column*8+row) | uint32((column+1)*8+row)<<16
			}
			if g != want {
				t.Errorf("%s: lane %d: 0x%08x, want 0x%08x", name, lane, g, want)
			}
		}
	}
}

func bfloat16s(v []float32) []byte {
	var data []byte
	for _, x := range v {
		data = binary.LittleEndian.AppendUint16(data, uint16(roundBF16(math.Float32bits(x))))
	}
	return data
}

// launchGEMM64 multiplies two 64x64 bf16 matrices with cp.async, ldmatrix and mma.
func (h *harness) launchGEMM64(kernel string, a, b, c runtime.Pointer) error {
	h.t.Helper()
	return h.launch(kernel, 1, 128, pointer(a, 8192, runtime.Read), pointer(b, 8192, runtime.Read), pointer(c, 16384, runtime.Write|runtime.Discard))
}

func TestTensorGEMM(t *testing.T) {
	const n = 64
	a, b := make([]float32, n*n), make([]float32, n*n)
	for i := range a { // sums are exact
		a[i], b[i] = float32(i*7919%17-8), float32(i*104729%13-6)/4
	}
	var statistics LaunchStatistics
	h := newHarness(t, Options{Observe: func(s LaunchStatistics) { statistics = s }}, readTestdata(t, "tensor.ptx"))
	pa, pb, pc := h.buffer(8192, bfloat16s(a)), h.buffer(8192, bfloat16s(b)), h.buffer(16384, nil)
	if err := h.launchGEMM64("gemm64", pa, pb, pc); err != nil {
		t.Fatal(err)
	}
	got := words(h.download(pc, 16384))
	for row := range n {
		for column := range n {
			sum := float32(0)
			for k := range n {
				sum += a[row*n+k] * b[k*n+column]
			}
			if g := math.Float32frombits(got[row*n+column]); g != sum {
				t.Fatalf("C[%d,%d] = %v, want %v", row, column, g, sum)
			}
		}
	}
	if statistics.LeakedCopies != 0 {
		t.Errorf("%d leaked copies", statistics.LeakedCopies)
	}
	var fault *Fault
	if err := h.launchGEMM64("gemm64_early", pa, pb, pc); !errors.As(err, &fault) || fault.Kind != InFlight {
		t.Errorf("a kernel that waits too late: %v", err)
	}
}

func BenchmarkTensorGEMM(b *testing.B) {
	h := newHarness(b, Options{Workers: 1}, readTestdata(b, "tensor.ptx"))
	pa, pb, pc := h.buffer(8192, make([]byte, 8192)), h.buffer(8192, make([]byte, 8192)), h.buffer(16384, nil)
	for b.Loop() {
		if err := h.launchGEMM64("gemm64", pa, pb, pc); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(2*64*64*64*float64(b.N)/b.Elapsed().Seconds()/1e6, "MFLOP/s")
}

func BenchmarkMatrixProduct(b *testing.B) {
	for _, f := range tensorForms {
		b.Run(f.kernel, func(b *testing.B) {
			w := newWorker(&launchState{kernel: &kernel{}, threads: 32}, 0)
			wp := &w.warps[0]
			wp.r32 = make([]lanes32, 14)
			r := randomWords(1)
			for _, slot := range wp.r32[4:] {
				for lane := range slot {
					slot[lane] = uint32(r.next()) & 0xbfffbfff
				}
			}
			kind := productKinds["sync.aligned."+map[string]string{"mma_bf16": "m16n8k16.row.col.f32.bf16.bf16.f32", "mma_f16": "m16n8k16.row.col.f32.f16.f16.f32",
				"mma_tf32": "m16n8k8.row.col.f32.tf32.tf32.f32", "mma_s8": "m16n8k32.row.col.s32.s8.s8.s32"}[f.kernel]]
			in := &instruction{extra: &extra{slots: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}}}
			for b.Loop() {
				_ = w.matrixProduct(wp, in, warpFull, kind)
			}
		})
	}
}

// BenchmarkMultiplyAdds is what the products are measured against: 16x8x16 of them.
func BenchmarkMultiplyAdds(b *testing.B) {
	var x [16][16]float32
	var y [16][8]float32
	var sum [16][8]float32
	for b.Loop() {
		for i := range x {
			for k, a := range &x[i] {
				for j, c := range &y[k] {
					sum[i][j] += a * c
				}
			}
		}
	}
}
