package emu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/codegen/ptx"
	"weft/runtime"
)

// sharedMatrix is how a test lays out a matrix of 64 k in shared memory: rows are those of A,
// or the columns of B. The formulas give places of elements; descriptor.go has those of chunks.
type sharedMatrix struct {
	base       int
	rows       int
	width      int // of the swizzle in bytes, 16 for none
	transposed bool
}

const sharedInner = 64

// place is the offset of an element.
func (m sharedMatrix) place(row, k int) int {
	w, across := m.width, m.width/2
	at := 0
	switch {
	case !m.transposed && w == 16: // core matrices of 8 rows and 16 bytes
		at = row/8*1024 + k/8*128 + row%8*16 + k%8*2
	case !m.transposed:
		at = k/across*m.rows*w + row*w + k%across*2
	case w == 16:
		at = row/8*1024 + k/8*128 + k%8*16 + row%8*2
	default:
		at = row/across*sharedInner*w + k*w + row%across*2
	}
	at += m.base
	return at ^ at>>7&(w/16-1)<<4
}

// descriptor is that of 16 k from 16*step on.
func (m sharedMatrix) descriptor(step int) uint64 {
	w := m.width
	start, leading, stride := m.base, 16, 8*w
	switch {
	case w == 16 && m.transposed:
		start, leading, stride = start+step*256, 128, 1024
	case w == 16:
		start, leading, stride = start+step*256, 128, 1024
	case m.transposed:
		start, leading = start+step*16*w, sharedInner*w
	default:
		start += step*32/w*m.rows*w + step*32%w
	}
	mode := map[int]uint64{16: 0, 128: 1, 64: 2, 32: 3}[w]
	return uint64(start>>4) | uint64(leading>>4)<<16 | uint64(stride>>4)<<32 | mode<<62
}

// warpgroupCase is a chain of four products.
type warpgroupCase struct {
	columns      int
	factors      string
	a, b         sharedMatrix
	registers    bool // A
	signA, signB int
	fresh        bool // the first product takes no C
	box          bool // A and B, not transposed and swizzled by 128 bytes, come by a copy of a box
	// cluster makes each of two blocks of a cluster do all, with descriptors of the address of its shared memory: this is
	// what it does with the address, %rd12, before it adds it, unless empty.
	cluster string
}

// blocks is how many blocks do the same.
func (c warpgroupCase) blocks() int {
	if c.cluster != "" {
		return 2
	}
	return 1
}

func (c warpgroupCase) name() string {
	return fmt.Sprintf("m64n%d %s a=%d,%t,%t b=%d,%t signs %d,%d fresh=%t", c.columns, c.factors, c.a.width, c.a.transposed, c.registers, c.b.width, c.b.transposed, c.signA, c.signB, c.fresh)
}

func registerList(name string, first, count int) string {
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s%d", name, first+i)
	}
	return "{" + strings.Join(names, ", ") + "}"
}

func transposition(transposed bool) int {
	if transposed {
		return 1
	}
	return 0
}

// text is the kernel: it copies the image of shared memory, loads the accumulators and, if
// they are in registers, A's fragments, multiplies, and stores the accumulators.
func (c warpgroupCase) text(imageBytes int) string {
	var body strings.Builder
	count := c.columns / 2
	emit := func(format string, arguments ...any) { fmt.Fprintf(&body, format+"\n", arguments...) }
	emit(`.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 image, .param .u64 a, .param .u64 c) .reqnctapercluster %d, 1, 1
{
.reg .pred %%p<3>; .reg .b32 %%r<40>; .reg .f32 %%f<129>; .reg .b64 %%rd<20>;
.shared .align 1024 .b8 m[%d];
ld.param.u64 %%rd1, [image]; ld.param.u64 %%rd2, [a]; ld.param.u64 %%rd3, [c];
mov.u32 %%r1, %%tid.x;
mul.wide.u32 %%rd4, %%r1, 16; add.s64 %%rd1, %%rd1, %%rd4; add.s64 %%rd2, %%rd2, %%rd4;
mov.u32 %%r7, %%ctaid.x; mad.lo.u32 %%r7, %%r7, 128, %%r1; mul.wide.u32 %%rd5, %%r7, %d; add.s64 %%rd3, %%rd3, %%rd5;
mov.u64 %%rd6, m; add.s64 %%rd7, %%rd6, %%rd4;`, c.blocks(), imageBytes, 4*count)
	for at := 0; at < imageBytes; at += 2048 {
		emit("ld.global.v4.u32 {%%r2, %%r3, %%r4, %%r5}, [%%rd1+%d]; st.shared.v4.u32 [%%rd7+%d], {%%r2, %%r3, %%r4, %%r5};", at, at)
	}
	for i := range 4 {
		emit("ld.global.v4.u32 %s, [%%rd2+%d];", registerList("%r", 10+4*i, 4), 2048*i)
	}
	for i := range count {
		emit("ld.global.f32 %%f%d, [%%rd3+%d];", i, 4*i)
	}
	emit("fence.proxy.async.shared::cta; bar.sync 0; wgmma.fence.sync.aligned;")
	for step := range 4 {
		adds := "%p1"
		if c.fresh {
			adds = "!%p1"
		}
		emit("mov.b64 %%rd10, %d; mov.b64 %%rd11, %d; mov.b32 %%r6, %d; setp.ne.b32 %%p1, %%r6, 0;", int64(c.a.descriptor(step)), int64(c.b.descriptor(step)), transposition(step == 0 || !c.fresh))
		if c.cluster != "" {
			emit("mov.b64 %%rd12, %%rd6; %s shr.u64 %%rd12, %%rd12, 4; add.s64 %%rd10, %%rd10, %%rd12; add.s64 %%rd11, %%rd11, %%rd12;", c.cluster)
		}
		a := fmt.Sprintf("%%rd10, %%rd11, %s, %d, %d, %d", adds, c.signA, c.signB, transposition(c.a.transposed))
		if c.registers {
			a = fmt.Sprintf("%s, %%rd11, %s, %d, %d", registerList("%r", 10+4*step, 4), adds, c.signA, c.signB)
		}
		emit("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%s %s, %s, %d;", c.columns, c.factors, c.factors, registerList("%f", 0, count), a, transposition(c.b.transposed))
	}
	emit("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")
	for i := range count {
		emit("st.global.f32 [%%rd3+%d], %%f%d;", 4*i, i)
	}
	return body.String() + "ret;\n}\n"
}

// matrices are random factors, as bits, [row][k] and [column][k], and accumulators [row][column].
func (c warpgroupCase) matrices(seed uint64) (a, b, sum [][]uint32) {
	r := randomWords(seed)
	exponent, fraction := uint(8), uint(7)
	if c.factors == "f16" {
		exponent, fraction = 5, 10
	}
	matrix := func(rows, columns int, exponent, fraction uint) [][]uint32 {
		m := make([][]uint32, rows)
		for i := range m {
			style := int(r.below(16)) // one row in eight has infinities and NaN
			if style > 6 {
				style %= 4
			}
			m[i] = make([]uint32, columns)
			for j := range m[i] {
				m[i][j] = r.element(style, exponent, fraction)
			}
		}
		return m
	}
	return matrix(64, sharedInner, exponent, fraction), matrix(c.columns, sharedInner, exponent, fraction), matrix(64, c.columns, 8, 23)
}

// expected computes D by the products of mma.sync.
func (c warpgroupCase) expected(a, b, sum [][]uint32) [][]uint32 {
	format, sign := factorBF16, uint32(0x8000)
	if c.factors == "f16" {
		format = factorF16
	}
	signs := [2]uint32{}
	for i, s := range []int{c.signA, c.signB} {
		if s < 0 {
			signs[i] = sign
		}
	}
	d := make([][]uint32, 64)
	for i := range d {
		d[i] = make([]uint32, c.columns)
	}
	p := &product{inner: 16}
	for row := 0; row < 64; row += 16 {
		for column := 0; column < c.columns; column += 8 {
			for i := range 16 {
				copy(p.c[i][:], sum[row+i][column:])
			}
			if c.fresh {
				p.c = [16][8]uint32{}
			}
			for step := range 4 {
				for k := range 16 {
					for i := range 16 {
						p.rawA[i*maxInner+k] = a[row+i][step*16+k] ^ signs[0]
					}
					for j := range 8 {
						p.rawB[k*8+j] = b[column+j][step*16+k] ^ signs[1]
					}
				}
				p.multiplyFloat(format)
			}
			for i := range 16 {
				copy(d[row+i][column:], p.c[i][:])
			}
		}
	}
	return d
}

// image is shared memory with A and B.
func (c warpgroupCase) image(a, b [][]uint32) []byte {
	image := make([]byte, 8192+128*c.columns)
	for i, m := range []sharedMatrix{c.a, c.b} {
		for row, elements := range [][][]uint32{a, b}[i] {
			for k, x := range elements {
				binary.LittleEndian.PutUint16(image[m.place(row, k):], uint16(x))
			}
		}
	}
	return append(image, make([]byte, (2048-len(image)%2048)%2048)...)
}

// boxProduct replaces the copy of the image by that of a box of A and B.
func boxProduct(text string) string {
	loads := strings.Index(text, "ld.global.v4.u32 {%r2,")
	head, rest := text[:loads], text[strings.LastIndex(text, "st.shared.v4.u32"):]
	return strings.NewReplacer(".param .u64 image", ".param .align 64 .b8 image[128]", "ld.param.u64 %rd1, [image];", ".shared .align 8 .b8 bar[8]; mov.b64 %rd1, image; cvta.param.u64 %rd1, %rd1;",
		"add.s64 %rd1, %rd1, %rd4;", "").Replace(head) +
		strings.Replace(rest[strings.Index(rest, ";")+1:], "fence.proxy.async.shared::cta; bar.sync 0;", `mov.b32 %r2, 0; setp.eq.u32 %p1, %r1, 0; mov.u64 %rd8, bar; cvt.u32.u64 %r3, %rd8; cvt.u32.u64 %r4, %rd6;
		@%p1 mbarrier.init.shared::cta.b64 [%r3], 1; @%p1 fence.mbarrier_init.release.cluster; bar.sync 0;
		@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], BYTES; @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1, {%r2, %r2}], [%r3];
		{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%r3], 0; @p bra DONE; bra WAIT; DONE: }`, 1)
}

// matrix is A and B one below the other, as a tensor of which a box is all.
func (c warpgroupCase) matrix(a, b [][]uint32) (runtime.TensorMap, []byte) {
	var data []byte
	for _, row := range slices.Concat(a, b) {
		for _, x := range row {
			data = binary.LittleEndian.AppendUint16(data, uint16(x))
		}
	}
	rows := 64 + c.columns
	return runtime.TensorMap{Type: runtime.TensorBF16, Dims: []uint64{sharedInner, uint64(rows)}, Strides: []uint64{2 * sharedInner}, Box: []uint32{sharedInner, uint32(rows)}, Swizzle: runtime.Swizzle128}, data
}

// check runs the chain and compares all elements.
func (c warpgroupCase) check(t *testing.T, seed uint64) {
	t.Helper()
	bad, err := c.run(t, seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range bad[:min(5, len(bad))] {
		t.Errorf("%s: %s", c.name(), problem)
	}
}

// run runs the chain and lists the elements that differ.
func (c warpgroupCase) run(t *testing.T, seed uint64) (bad []string, err error) {
	t.Helper()
	a, b, sum := c.matrices(seed)
	image := c.image(a, b)
	fragments, accumulators := make([]uint32, 4*128*4), make([]uint32, 64*c.columns)
	for thread := range 128 {
		warp, lane := thread/32, thread%32
		for step := range 4 { // section "Matrix Fragments for wgmma.mma_async" of the PTX ISA
			for register := range 4 {
				row, k := 16*warp+lane/4+register%2*8, 16*step+lane%4*2+register/2*8
				fragments[step*512+thread*4+register] = a[row][k] | a[row][k+1]<<16
			}
		}
		for i := range c.columns / 2 {
			accumulators[thread*c.columns/2+i] = sum[16*warp+lane/4+i/2%2*8][i/4*8+lane%4*2+i%2]
		}
	}
	text := c.text(len(image))
	if c.box {
		text = strings.Replace(boxProduct(text), "BYTES", fmt.Sprint(128*(64+c.columns)), 1)
	}
	h := newHarness(t, Options{}, text)
	size := 256 * c.columns * c.blocks()
	out := h.buffer(size, bytes.Repeat(fromWords(accumulators), c.blocks()))
	from := pointer(h.buffer(len(image), image), len(image), runtime.Read)
	if c.box {
		from = h.tensorMap(c.matrix(a, b))
	}
	if err := h.launch("k", c.blocks(), 128, from, pointer(h.buffer(8192, fromWords(fragments)), 8192, runtime.Read), pointer(out, size, runtime.ReadWrite)); err != nil {
		return nil, err
	}
	want := c.expected(a, b, sum)
	for i, got := range words(h.download(out, size)) {
		block, thread, register := i/(64*c.columns), i/(c.columns/2)%128, i%(c.columns/2)
		row, column := thread/32*16+thread%32/4+register/2%2*8, register/4*8+thread%4*2+register%2
		if got != want[row][column] {
			bad = append(bad, fmt.Sprintf("block %d: D[%d,%d] = 0x%08x, want 0x%08x", block, row, column, got, want[row][column]))
		}
	}
	return bad, nil
}

// TestWarpgroupProduct compares chains of products along k with those of mma.sync.
func TestWarpgroupProduct(t *testing.T) {
	for i, factors := range []string{"bf16", "f16"} {
		for _, columns := range []int{8, 64, 128, 192, 256} {
			for _, transposed := range []bool{false, true} {
				c := warpgroupCase{columns: columns, factors: factors, signA: 1, signB: 1,
					a: sharedMatrix{0, 64, 128, transposed}, b: sharedMatrix{8192, columns, 128, transposed}}
				if columns == 8 && transposed { // a row of the widest pattern has 64 columns
					c.b.width = 16
				}
				c.check(t, uint64(columns+i))
				c.box = !transposed && columns <= 192
				c.check(t, uint64(columns+i+20))
				c.registers, c.box = true, false
				c.check(t, uint64(columns+i+10))
			}
		}
	}
}

// TestWarpgroupLayouts has all canonical layouts, signs, and products without C.
func TestWarpgroupLayouts(t *testing.T) {
	for _, width := range []int{16, 32, 64, 128} {
		for _, transposed := range []bool{false, true} {
			c := warpgroupCase{columns: 64, factors: "bf16", a: sharedMatrix{0, 64, width, transposed}, b: sharedMatrix{8192, 64, 128, false}, signA: 1, signB: -1, fresh: true}
			c.check(t, 1)
			c.a, c.b, c.signA, c.signB = sharedMatrix{0, 64, 128, false}, sharedMatrix{8192, 64, width, transposed}, -1, 1
			c.check(t, 2)
		}
	}
}

// TestWarpgroupCluster: descriptors take the place in the block out of an address in a cluster; with the rank in it,
// the leading offset of rank 1 is larger by 256 bytes.
func TestWarpgroupCluster(t *testing.T) {
	for _, c := range []struct {
		name  string
		c     warpgroupCase
		fault bool // the last elements that are read then lie after the image
	}{
		{"A without swizzle", warpgroupCase{columns: 64, a: sharedMatrix{0, 64, 16, false}, b: sharedMatrix{8192, 64, 128, false}}, false},
		{"B transposed", warpgroupCase{columns: 128, a: sharedMatrix{0, 64, 128, false}, b: sharedMatrix{8192, 128, 128, true}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			c := c
			c.c.factors, c.c.signA, c.c.signB = "bf16", 1, 1
			c.c.cluster = "and.b64 %rd12, %rd12, 0x3ffff;"
			c.c.check(t, 1)
			c.c.cluster = "and.b64 %rd12, %rd12, -1;"
			bad, err := c.c.run(t, 1)
			if c.fault {
				var fault *Fault
				if !errors.As(err, &fault) || fault.Kind != OutOfBounds || fault.Block != [3]int{1, 0, 0} || !strings.Contains(fault.Instruction, "wgmma") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || len(bad) == 0 || !strings.HasPrefix(bad[0], "block 1:") {
				t.Errorf("got %q, %v", bad, err)
			}
		})
	}
}

// warpgroupText is a kernel with m, 4096 bytes of shared memory of which every thread has
// written 32; %rd4 is the shared address of a thread's 32 bytes, %r5 too, %rd8 its address in a;
// %rd6 and %rd7 are the descriptors of A (bytes 0 to 2047) and B (bytes 2048 to 2303). %p1 is set
// for the first 5 threads, %p2 for the first 32, %p3 for the first 128.
func warpgroupText(body string) string {
	return `.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 a)
{
	.reg .pred %p<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<12>;
	.shared .align 1024 .b8 m[4096];
	ld.param.u64 %rd1, [a];
	mov.u32 %r2, %tid.x; mov.b32 %r3, 0; setp.eq.s32 %p4, %r3, 0;
	and.b32 %r6, %r2, 127; mul.wide.u32 %rd2, %r6, 32; mov.u64 %rd3, m; add.s64 %rd4, %rd3, %rd2; cvt.u32.u64 %r5, %rd4;
	add.s64 %rd8, %rd1, %rd2;
	setp.lt.u32 %p1, %r2, 5; setp.lt.u32 %p2, %r2, 32; setp.lt.u32 %p3, %r2, 128;
	mov.b64 %rd6, 0x1000080000; mov.b64 %rd7, 0x1000080080;
` + strings.NewReplacer(
		"WRITE", "st.shared.v4.u32 [%rd4], {%r3, %r3, %r3, %r3}; st.shared.v4.u32 [%rd4+16], {%r3, %r3, %r3, %r3};",
		"COPY", "cp.async.cg.shared.global [%r5], [%rd8], 16; cp.async.cg.shared.global [%r5+16], [%rd8+16], 16;",
		"PROXY", "fence.proxy.async.shared::cta;", "BARRIER", "bar.sync 0;", "ORDER", "wgmma.fence.sync.aligned;",
		"PRODUCT", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %rd7, %p4, 1, 1, 0, 0;",
		"COMMIT", "wgmma.commit_group.sync.aligned;", "WAIT", "wgmma.wait_group.sync.aligned 0;",
		"STORE", "st.shared.u32 [%rd4], %r3;").Replace(body) + "\n\tret;\n}\n"
}

const readyProduct = "WRITE PROXY BARRIER ORDER "

func runWarpgroup(t *testing.T, body string, block int) error {
	h := newHarness(t, Options{}, warpgroupText(body))
	return h.launch("k", 1, block, pointer(h.buffer(4096, make([]byte, 4096)), 4096, runtime.Read))
}

func TestWarpgroupFaults(t *testing.T) {
	for _, c := range []struct {
		name, body    string
		block, thread int
		kind          FaultKind
		want          string
	}{
		{"some lanes", readyProduct + "@%p1 PRODUCT", 128, 0, WarpDivergence, "all 32 lanes must execute this together; lane 5"},
		{"some lanes commit", readyProduct + "PRODUCT @%p1 COMMIT", 128, 0, WarpDivergence, "lane 5"},
		{"some lanes wait", readyProduct + "PRODUCT COMMIT @%p1 WAIT", 128, 0, WarpDivergence, "lane 5"},
		{"a lane short", readyProduct + "PRODUCT", 127, 0, WarpDivergence, "the block has 127 threads"},
		{"three warps", readyProduct + "PRODUCT", 96, 0, WarpDivergence, "warp 0 is in no whole warpgroup: the block has 96 threads, warps 0 to 3 must be there"},
		{"five warps", readyProduct + "PRODUCT", 160, 128, WarpDivergence, "warp 4 is in no whole warpgroup"},
		{"a warp that goes elsewhere", readyProduct + "@%p2 bra L; PRODUCT L:", 128, 0, WarpDivergence, "warp 0 has exited after 0 products, another warp of its warpgroup has started 1"},
		{"descriptors of warps differ", readyProduct + "@%p2 mov.b64 %rd6, 0x1000080001; PRODUCT", 128, 32, WarpDivergence, "product 0 of this warp differs from that of another warp"},
		{"descriptors of B differ between warps", readyProduct + "@%p2 mov.b64 %rd7, 0x1000080090; PRODUCT", 128, 32, WarpDivergence, "0x1000080000 and 0x1000080080, C counts: true; there 0x1000080000, 0x1000080090, true"},
		{"warps differ about C", readyProduct + "@%p2 setp.ne.s32 %p4, %r3, 0; PRODUCT", 128, 32, WarpDivergence, "C counts: true; there 0x1000080000, 0x1000080080, false"},
		{"warps at different products", readyProduct + "@%p2 bra L; PRODUCT bra M; L: PRODUCT M: bar.sync 0;", 128, 32, WarpDivergence, "product 0 of this warp differs from that of another warp"},
		{"descriptors of lanes differ", readyProduct + "@%p1 mov.b64 %rd7, 0x1000080000; PRODUCT", 128, 5, BadDescriptor, "lane 5 has 0x1000080080 as the descriptor of B, lane 0 has 0x1000080000"},
		{"base offset", readyProduct + "mov.b64 %rd6, 0x0002001000080000; PRODUCT", 128, 0, BadDescriptor, "of A: a base offset is not supported"},
		{"stray bits", readyProduct + "mov.b64 %rd7, 0x1000084080; PRODUCT", 128, 0, BadDescriptor, "bits outside of its fields"},
		{"lanes differ about C", readyProduct + "and.pred %p4, %p4, %p1; PRODUCT", 128, 0, WarpDivergence, "mask 0x0000001f"},
		{"no fence of registers", "WRITE PROXY BARRIER PRODUCT", 128, 0, Unfenced, "no wgmma.fence"},
		{"never written", "@%p2 WRITE PROXY BARRIER ORDER PRODUCT", 128, 0, Uninitialised, "16 bytes at offset 2048 of variable shared memory: byte 2048 was never written"},
		{"out of bounds", readyProduct + "mov.b64 %rd7, 0x1000080100; PRODUCT", 128, 0, OutOfBounds, "offset 4096 of variable shared memory, which has 4096 bytes"},
		{"out of bounds by a stride", readyProduct + "mov.b64 %rd6, 0x4000080000; PRODUCT", 128, 64, OutOfBounds, "shared memory"},
		{"no proxy fence", "WRITE BARRIER ORDER PRODUCT", 128, 0, Unfenced, "reads byte 0 of shared memory, which warp 0 wrote without executing fence.proxy.async since"},
		{"another warp's proxy fence", "WRITE @%p2 PROXY BARRIER ORDER PRODUCT", 128, 0, Unfenced, "reads byte 2048 of shared memory, which warp 2 wrote"},
		{"some lanes' proxy fence", "WRITE @%p1 PROXY BARRIER ORDER PRODUCT", 128, 0, Unfenced, "which warp 0 wrote"},
		{"another fence", "WRITE membar.cta; BARRIER ORDER PRODUCT", 128, 0, Unfenced, "which warp 0 wrote"},
		{"proxy fence before a write", readyProduct + "@%p1 STORE BARRIER PRODUCT", 128, 0, Unfenced, "reads byte 0"},
		{"proxy fence before an atomic", readyProduct + "@%p1 red.shared.add.u32 [m+2048], 1; BARRIER PRODUCT", 128, 0, Unfenced, "reads byte 2048"},
		{"proxy fence before stmatrix", readyProduct + "@%p2 stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r3}; BARRIER PRODUCT", 128, 0, Unfenced, "reads byte 0"},
		{"proxy fence before a generic store", readyProduct + "cvta.shared.u64 %rd9, %rd4; st.u32 [%rd9+16], %r3; BARRIER PRODUCT", 128, 0, Unfenced, "reads byte 16"},
		{"copy without proxy fence", "COPY cp.async.wait_all; BARRIER ORDER PRODUCT", 128, 0, Unfenced, "reads byte 0"},
		{"proxy fence before the wait of a copy", "COPY cp.async.commit_group; PROXY cp.async.wait_group 0; BARRIER ORDER PRODUCT", 128, 0, Unfenced, "reads byte 0"},
		{"copy in flight", "COPY PROXY BARRIER ORDER PRODUCT", 128, 0, InFlight, "reads 16 bytes at offset 0 of shared memory, into which thread (0,0,0) copies"},
		{"copy without barrier", "COPY cp.async.wait_all; PROXY ORDER setp.ge.u32 %p5, %r2, 96; @%p5 PRODUCT", 128, 96, InFlight, "reads 16 bytes at offset 1536 of shared memory, into which thread (48,0,0) copies at line 14 (cp.async.cg.shared.global [%r5], [%rd8], 16); that thread has waited for it, but there was no barrier since"},
		{"store before the wait", readyProduct + "PRODUCT COMMIT STORE", 128, 0, InFlight,
			"writes 4 bytes at offset 0 of shared memory, which the product that warp 0 started at line 14 (wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16) may still read; that warp has not waited for it"},
		{"store to B before the wait", readyProduct + "PRODUCT COMMIT add.s64 %rd4, %rd4, 2048; STORE", 128, 0, InFlight, "at offset 2048"},
		{"atomic before the wait", readyProduct + "PRODUCT COMMIT atom.shared.add.u32 %r7, [m+8], 1;", 128, 0, InFlight, "at offset 8"},
		{"stmatrix before the wait", readyProduct + "PRODUCT COMMIT stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r3};", 128, 0, InFlight, "writes 16 bytes"},
		{"copy before the wait", readyProduct + "PRODUCT COMMIT COPY", 128, 0, InFlight, "writes 16 bytes at offset 0"},
		{"a wait for too few", readyProduct + "PRODUCT COMMIT wgmma.wait_group.sync.aligned 1; STORE", 128, 0, InFlight, "has not waited"},
		{"a wait without commit", readyProduct + "PRODUCT WAIT STORE", 128, 0, InFlight, "has not waited"},
		{"a barrier instead of a wait", readyProduct + "PRODUCT COMMIT BARRIER STORE", 128, 0, InFlight, "has not waited"},
		{"another warp, no barrier", readyProduct + "PRODUCT COMMIT WAIT add.s64 %rd4, %rd4, -1024; @!%p2 STORE", 128, 32, InFlight, "that warp has waited for it, but there was no barrier since"},
		{"another warp, no fence", readyProduct + "PRODUCT COMMIT WAIT add.s64 %rd4, %rd4, -1024; add.u32 %r7, %r2, -32; setp.lt.u32 %p5, %r7, 5; @%p5 STORE", 128, 32, InFlight, "no barrier since"},
		{"another warpgroup, no barrier", readyProduct + "@!%p3 bra L; PRODUCT COMMIT WAIT ret; L: STORE", 256, 128, InFlight, "no barrier since"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := runWarpgroup(t, c.body, c.block)
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

// TestWarpgroupUses has correct uses.
func TestWarpgroupUses(t *testing.T) {
	for _, c := range []struct {
		name, body string
		block      int
	}{
		{"two warpgroups", readyProduct + "PRODUCT COMMIT WAIT", 256},
		{"one of two", readyProduct + "@!%p3 ret; PRODUCT COMMIT WAIT", 256},
		{"half a warpgroup that multiplies nothing", "WRITE PROXY BARRIER @!%p3 ret; ORDER PRODUCT COMMIT WAIT", 192},
		{"exit without wait", readyProduct + "PRODUCT", 128},
		{"barrier after the wait", readyProduct + "PRODUCT COMMIT WAIT BARRIER STORE", 128},
		{"fence after the wait", readyProduct + "PRODUCT COMMIT WAIT membar.cta; add.s64 %rd4, %rd4, -1024; add.u32 %r7, %r2, -32; setp.lt.u32 %p5, %r7, 5; @%p5 STORE", 128},
		{"own rows of A after the wait", readyProduct + "PRODUCT COMMIT WAIT cvt.u32.u64 %r7, %rd4; mul.wide.u32 %rd9, %r6, 16; add.s64 %rd9, %rd9, %rd3; st.shared.v4.u32 [%rd9], {%r3, %r3, %r3, %r3};", 128},
		{"other bytes before the wait", readyProduct + "PRODUCT COMMIT add.s64 %rd4, %rd4, 2304; @%p1 STORE", 128},
		{"older group", readyProduct + "PRODUCT COMMIT mov.b64 %rd7, 0x1000080090; PRODUCT COMMIT wgmma.wait_group.sync.aligned 1; BARRIER st.shared.u32 [m+2048], %r3;", 128},
		{"written again", readyProduct + "PRODUCT COMMIT WAIT BARRIER WRITE PROXY BARRIER ORDER PRODUCT", 128},
		{"copies", "COPY cp.async.wait_all; PROXY BARRIER ORDER PRODUCT COMMIT WAIT BARRIER COPY cp.async.wait_all; PROXY BARRIER ORDER PRODUCT", 128},
		{"another warp overwrites and fences", "WRITE BARRIER @!%p2 bra M; " + strings.Repeat("WRITE add.s64 %rd4, %rd4, 1024; ", 4) + "PROXY M: BARRIER ORDER PRODUCT", 128},
		{"lanes wait and fence one after the other", "COPY @%p1 cp.async.wait_all; @%p1 PROXY @!%p1 cp.async.wait_all; @!%p1 PROXY BARRIER ORDER PRODUCT", 128},
		{"waits twice", "COPY cp.async.wait_all; PROXY cp.async.wait_all; BARRIER ORDER PRODUCT", 128},
		{"loads what the product reads", readyProduct + "PRODUCT COMMIT ld.shared.u32 %r7, [%rd4]; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r5];", 128},
		{"lanes fence one after the other", "WRITE @%p1 PROXY @!%p1 PROXY BARRIER ORDER PRODUCT", 128},
		{"negated predicate", readyProduct + "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, {%r3, %r3, %r3, %r3}, %rd7, !%p4, 1, -1, 1;", 128},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := runWarpgroup(t, c.body, c.block); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWarpgroupBlocks runs two blocks on one worker: what the first leaves under way does not
// concern the second, which multiplies less.
func TestWarpgroupBlocks(t *testing.T) {
	h := newHarness(t, Options{Workers: 1}, warpgroupText(`mov.u32 %r7, %ctaid.x; setp.eq.u32 %p6, %r7, 1; @!%p3 bra L;
		WRITE PROXY bar.sync 1, 128; ORDER @!%p6 PRODUCT PRODUCT @!%p6 bar.sync 0; ret;
		L: @%p6 bra M; bar.sync 0; st.shared.u32 [%rd4+4], %r3; st.shared.u32 [m+4092], %r3; ret;
		M: st.shared.u32 [m+4088], %r3;`))
	if err := h.launch("k", 1, 256, pointer(h.buffer(4096, make([]byte, 4096)), 4096, runtime.Read)); err == nil || !strings.Contains(err.Error(), "has not waited") {
		t.Errorf("the first block: %v", err)
	}
	h = newHarness(t, Options{Workers: 1}, warpgroupText(`mov.u32 %r7, %ctaid.x; setp.eq.u32 %p6, %r7, 1; @!%p3 bra L;
		WRITE PROXY bar.sync 1, 128; ORDER @!%p6 PRODUCT PRODUCT COMMIT WAIT @!%p6 bar.sync 0; ret;
		L: @%p6 bra M; bar.sync 0; st.shared.u32 [%rd4+4], %r3; st.shared.u32 [m+4092], %r3; ret;
		M: st.shared.u32 [m+4088], %r3;`))
	if err := h.launch("k", 2, 256, pointer(h.buffer(4096, make([]byte, 4096)), 4096, runtime.Read)); err != nil {
		t.Error(err)
	}
}

// TestWarpgroupRegisters misuses registers of products, or just does not.
func TestWarpgroupRegisters(t *testing.T) {
	const (
		registers = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, {%r7, %r7, %r7, %r8}, %rd7, %p4, 1, 1, 0;"
		read      = "add.f32 %f5, %f1, %f1;"
	)
	for _, c := range []struct {
		name, body string
		kind       FaultKind // 0 for none
		want       string
	}{
		{"read before the wait", "PRODUCT COMMIT " + read + " WAIT", InFlight, `"add.f32 %f5, %f1, %f1": reads %f1, an accumulator of a product that no wgmma.wait_group has ended`},
		{"read after the wait", "PRODUCT COMMIT WAIT " + read, 0, ""},
		{"wait before commit", "PRODUCT WAIT " + read, InFlight, "reads %f1"},
		{"a wait for too few", "PRODUCT COMMIT wgmma.wait_group.sync.aligned 1; " + read, InFlight, "reads %f1"},
		{"a wait for enough", "PRODUCT COMMIT COMMIT wgmma.wait_group.sync.aligned 1; " + read, 0, ""},
		{"write before the wait", "PRODUCT COMMIT mov.f32 %f2, %f5;", InFlight, "writes %f2, a register of a product"},
		{"load before the wait", "PRODUCT COMMIT ld.global.f32 %f4, [%rd1];", InFlight, "writes %f4"},
		{"a chain", "PRODUCT PRODUCT COMMIT PRODUCT COMMIT WAIT PRODUCT", 0, ""},
		{"no fence after a write", "mov.f32 %f1, %f5; PRODUCT", Unfenced, "%f1 was written without a wgmma.fence since"},
		{"fence after a write", "mov.f32 %f1, %f5; ORDER PRODUCT", 0, ""},
		{"no fence after a write to A", "mov.b32 %r8, %r3; " + registers, Unfenced, "%r8 was written"},
		{"write to A before the wait", registers + " COMMIT mov.b32 %r7, %r3;", InFlight, "writes %r7, a register of a product"},
		{"read of A before the wait", registers + " COMMIT add.u32 %r6, %r7, 1;", 0, ""},
		{"write to A after the wait", registers + " COMMIT WAIT mov.b32 %r7, %r3; ORDER " + registers, 0, ""},
		{"accumulators as A", "mov.b32 %r8, %r3; ORDER " + registers + strings.NewReplacer("%r7", "%f1", "%r8", "%f1").Replace(registers), InFlight, "reads %f1, an accumulator"},
		{"A as accumulators", strings.NewReplacer("%r7", "%f5", "%r8", "%f5").Replace(registers) + strings.Replace(registers, "%f1", "%f5", 1), InFlight, "writes %f5, which a product reads"},
		{"around a loop", "mov.b32 %r6, 2; L: @%p5 add.f32 %f5, %f5, %f6; PRODUCT COMMIT wgmma.wait_group.sync.aligned 1; add.u32 %r6, %r6, -1; setp.ne.u32 %p6, %r6, 0; @%p6 bra L; WAIT " + read, 0, ""},
		{"around a loop without wait", "mov.b32 %r6, 2; L: add.f32 %f5, %f5, %f1; PRODUCT COMMIT wgmma.wait_group.sync.aligned 1; add.u32 %r6, %r6, -1; setp.ne.u32 %p6, %r6, 0; @%p6 bra L;", InFlight, "reads %f1"},
		{"around two loops", "setp.eq.u32 %p6, %r3, 1; L: add.f32 %f5, %f5, %f1; M: @%p6 bra L; PRODUCT bra M;", InFlight, "reads %f1"},
		{"no fence after a write on one way", "@!%p4 bra L; mov.f32 %f1, %f5; L: PRODUCT", Unfenced, "%f1 was written"},
		{"a guarded wait", "PRODUCT COMMIT @%p4 WAIT " + read, InFlight, "reads %f1"},
		{"on one way only", "@!%p3 bra L; PRODUCT COMMIT bra M; L: WAIT M: " + read, InFlight, "reads %f1"},
		{"not reached", "PRODUCT COMMIT @%p4 bra L; " + read + " L:", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := runWarpgroup(t, readyProduct+c.body, 128)
			var fault *Fault
			if !errors.As(err, &fault) {
				if c.kind != 0 || err != nil {
					t.Fatalf("got %v", err)
				}
				return
			}
			if fault.Kind != c.kind || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v\nlacks %q", err, c.want)
			}
		})
	}
}

// TestWarpgroupAccumulatorsLive: a product reads the registers that it writes.
func TestWarpgroupAccumulatorsLive(t *testing.T) {
	m, err := ptx.Parse(warpgroupText("PRODUCT"))
	if err != nil {
		t.Fatal(err)
	}
	f := m.Function("k")
	for _, in := range f.Body {
		if in.Opcode != "wgmma" {
			continue
		}
		var read, written []string
		effects(in, func(r int) { read = append(read, f.Registers[r].Name) }, func(r int) { written = append(written, f.Registers[r].Name) })
		if got := fmt.Sprint(read, written); got != "[%f1 %f2 %f3 %f4 %rd6 %rd7 %p4] [%f1 %f2 %f3 %f4]" {
			t.Error(got)
		}
	}
}

func TestWarpgroupUnsupported(t *testing.T) {
	for _, body := range []string{
		"wgmma;", "wgmma.fence;", "wgmma.fence.sync.aligned 1;", "wgmma.commit_group.sync.aligned 1;", "wgmma.wait_group.sync.aligned;", "wgmma.wait_group.sync.aligned %r1;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %rd7, %p4, 1, 1, 0;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %rd7, %p4, 1, 2, 0, 0;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %rd7, %p4, 1, 1, 0, 2;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %rd7, %p4, 1, 1, %r1, 0;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %r1, %rd7, %p4, 1, 1, 0, 0;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %r1, %p4, 1, 1, 0, 0;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %rd7, %r1, 1, 1, 0, 0;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, {%r1, %r2}, %rd7, %p4, 1, 1, 0;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3}, %rd6, %rd7, %p4, 1, 1, 0, 0;",
		"wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %rd7, %p4, 1, 1, 0, 0;",
		"wgmma.mma_async.sync.aligned.m64n264k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd6, %rd7, %p4, 1, 1, 0, 0;",
		"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f1, %f2, %f3, %f4}, %rd6, %rd7, %p4, 1, 1;",
		"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd6, %rd7, %p4, 1, 1, 0, 0;",
		"fence.proxy.async 1;",
	} {
		var unsupported *UnsupportedError
		if err := Check(warpgroupText(body)); !errors.As(err, &unsupported) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// BenchmarkWarpgroupProduct is the chain of products of TestWarpgroupProduct, 64 times.
func BenchmarkWarpgroupProduct(b *testing.B) {
	for _, columns := range []int{64, 256} {
		for _, transposed := range []bool{false, true} {
			c := warpgroupCase{columns: columns, factors: "bf16", signA: 1, signB: 1, a: sharedMatrix{0, 64, 128, false}, b: sharedMatrix{8192, columns, 128, transposed}}
			b.Run(fmt.Sprintf("n%d_transposed_%t", columns, transposed), func(b *testing.B) {
				const repeats = 16
				size := 8192 + 128*columns
				text := c.text(size)
				first, last := strings.Index(text, "mov.b64 %rd10"), strings.Index(text, "wgmma.commit_group")
				h := newHarness(b, Options{Workers: 1}, text[:first]+strings.Repeat(text[first:last], repeats)+text[last:])
				image, a, out := h.buffer(size, make([]byte, size)), h.buffer(8192, make([]byte, 8192)), h.buffer(256*columns, make([]byte, 256*columns))
				for b.Loop() {
					h.mustLaunch("k", 1, 128, pointer(image, size, runtime.Read), pointer(a, 8192, runtime.Read), pointer(out, 256*columns, runtime.ReadWrite))
				}
				b.ReportMetric(repeats*2*64*64*float64(columns)*float64(b.N)/b.Elapsed().Seconds()/1e6, "MFLOP/s")
			})
		}
	}
}
