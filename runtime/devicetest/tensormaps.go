package devicetest

import (
	"encoding/binary"
	"fmt"

	"weft/runtime"
)

// tma loads the kernels of testdata/tma.ptx, or skips the test.
func (b *bench) tma() {
	b.Helper()
	if p := b.device.Properties(); p.ComputeMajor < 9 {
		b.Skipf("sm_%d%d has no tensor memory accelerator", p.ComputeMajor, p.ComputeMinor)
	}
	b.module = b.load("tma.ptx")
}

// boxBytes is the size of the boxes that the kernels of testdata/tma.ptx copy.
const boxBytes = 1024

// eachOfBox calls visit for the elements of a box at coordinates that are in its tensor: with their offsets in shared
// memory and in the tensor.
func eachOfBox(m *runtime.TensorMap, at []int, visit func(place, from int)) {
	size := m.Type.Size()
	for i := range boxBytes / size {
		rest, from, inside := i, 0, true
		for d, n := range m.Box {
			x := at[d] + rest%int(n)
			rest /= int(n)
			inside = inside && x >= 0 && uint64(x) < m.Dims[d]
			if d == 0 {
				from += x * size
			} else {
				from += x * int(m.Strides[d-1])
			}
		}
		place := i * size
		if span := m.Swizzle.Span(); span > 0 { // the unit of 16 bytes in its span, by the number of its 128 bytes
			place ^= place >> 7 % (span / 16) << 4
		}
		if inside {
			visit(place, from)
		}
	}
}

// box is what a map's box at coordinates holds in shared memory, for a tensor that data begins with.
func box(m *runtime.TensorMap, data []byte, at ...int) []byte {
	tile, size := make([]byte, boxBytes), m.Type.Size()
	eachOfBox(m, at, func(place, from int) { copy(tile[place:place+size], data[from:]) })
	return tile
}

// pattern is n bytes in which elements of any size differ.
func pattern(n int) []byte {
	data := make([]byte, 0, n+4)
	for i := 0; len(data) < n; i++ {
		data = binary.LittleEndian.AppendUint32(data, uint32(i+1)*0x9e3779b1)
	}
	return data[:n]
}

func tensorMap(p runtime.Pointer, size int, m *runtime.TensorMap) runtime.Arg {
	return runtime.Arg{Kind: runtime.ArgTensorMap, Bits: uint64(p), Size: int64(size), Access: runtime.Read, Map: m}
}

// maps2 are maps of two dimensions whose boxes have 1024 bytes: of 40 rows that are 208 bytes apart.
var maps2 = []struct {
	name string
	m    runtime.TensorMap
}{
	{"none", runtime.TensorMap{Type: runtime.TensorBF16, Dims: []uint64{100, mapRows}, Box: []uint32{64, 8}}},
	{"none, wide", runtime.TensorMap{Type: runtime.TensorU32, Dims: []uint64{50, mapRows}, Box: []uint32{64, 4}, Promotion: runtime.Promotion64}},
	{"32", runtime.TensorMap{Type: runtime.TensorF16, Dims: []uint64{100, mapRows}, Box: []uint32{16, 32}, Swizzle: runtime.Swizzle32}},
	{"64", runtime.TensorMap{Type: runtime.TensorU8, Dims: []uint64{203, mapRows}, Box: []uint32{64, 16}, Swizzle: runtime.Swizzle64, Promotion: runtime.Promotion128}},
	{"128", runtime.TensorMap{Type: runtime.TensorBF16, Dims: []uint64{100, mapRows}, Box: []uint32{64, 8}, Swizzle: runtime.Swizzle128, Promotion: runtime.Promotion256}},
	{"128 of f32", runtime.TensorMap{Type: runtime.TensorF32, Dims: []uint64{51, mapRows}, Box: []uint32{32, 8}, Swizzle: runtime.Swizzle128}},
}

const mapRows, mapPitch = 40, 208

// places2 are coordinates of boxes of a map inside of its tensor, over its edges and outside. Along a row they are at multiples of 16 bytes.
func places2(m *runtime.TensorMap) [][2]int {
	unit := 16 / m.Type.Size()
	return [][2]int{{0, 0}, {unit, 5}, {int(m.Dims[0]-1) / unit * unit, mapRows - 3}, {-unit, -2}, {0, mapRows}, {1024, 0}, {-70_000, 70_000}}
}

// testTensorMap copies boxes inside of tensors, over their edges and outside, in all swizzles.
func testTensorMap(b *bench) {
	b.tma()
	data := pattern(16 + mapRows*mapPitch)
	memory := b.put(data)
	for _, test := range maps2 {
		m := test.m
		m.Strides = []uint64{mapPitch}
		size := len(data) - 16
		for _, at := range places2(&m) {
			b.place = fmt.Sprintf(", swizzle %s at %v", test.name, at)
			result := b.alloc(boxBytes)
			b.launch(0, "box2", 1, 256, 0, tensorMap(memory+16, size, &m), out(result, boxBytes), i32(at[0]), i32(at[1]))
			if got := b.get(result, boxBytes); string(got) != string(box(&m, data[16:], at[0], at[1])) {
				b.Errorf("swizzle %s at %v: got\n%x\nwant\n%x", test.name, at, got, box(&m, data[16:], at[0], at[1]))
			}
		}
	}
}

// testTensorMapPlanes copies boxes of three dimensions from a tensor whose planes lie between its rows.
func testTensorMapPlanes(b *bench) {
	b.tma()
	const rows, planes = 6, 5
	data := pattern(rows * planes * 128)
	memory := b.put(data)
	m := &runtime.TensorMap{Type: runtime.TensorF32, Dims: []uint64{32, rows, planes}, Strides: []uint64{planes * 128, 128},
		Box: []uint32{32, 4, 2}, Swizzle: runtime.Swizzle128}
	for _, at := range [][3]int{{0, 0, 0}, {0, 1, 2}, {4, 4, 4}, {-8, -1, -1}} {
		result := b.alloc(boxBytes)
		b.launch(0, "box3", 1, 256, 0, out(result, boxBytes), i32(at[0]), i32(at[1]), i32(at[2]), tensorMap(memory, len(data), m))
		if got, want := b.get(result, boxBytes), box(m, data, at[0], at[1], at[2]); string(got) != string(want) {
			b.Errorf("at %v: got\n%x\nwant\n%x", at, got, want)
		}
	}
}

// testTensorMapLaunches has many maps of one address, tensors without elements, and a map in recorded work.
func testTensorMapLaunches(b *bench) {
	b.tma()
	const rows = 300
	data := pattern(rows * 128)
	memory := b.put(data)
	result := b.alloc(3 * boxBytes)
	launch := func(m *runtime.TensorMap, size int) {
		b.Helper()
		b.launch(0, "box2", 3, 256, 0, tensorMap(memory, size, m), out(result, 3*boxBytes), i32(0), i32(0))
	}
	want := func(m *runtime.TensorMap, data []byte) {
		b.Helper()
		var boxes []byte
		for block := range 3 {
			boxes = append(boxes, box(m, data, 0, 100*block)...)
		}
		if got := b.get(result, 3*boxBytes); string(got) != string(boxes) {
			b.Errorf("%d: got\n%x\nwant\n%x", m.Dims, got, boxes)
		}
	}
	whole := &runtime.TensorMap{Type: runtime.TensorF32, Dims: []uint64{32, rows}, Strides: []uint64{128}, Box: []uint32{32, 8}, Swizzle: runtime.Swizzle128}
	for _, n := range []uint64{1, 104, 205, rows, 104} {
		m := *whole
		m.Dims = []uint64{32, n}
		launch(&m, int(n)*128)
		want(&m, data)
	}
	for _, dims := range [][]uint64{{0, rows}, {32, 0}, {0, 0}} {
		m := *whole
		m.Dims, m.Strides = dims, []uint64{0}
		launch(&m, 0)
		want(&m, data)
	}
	capturer, ok := b.device.(runtime.Capturer)
	if !ok {
		return
	}
	b.check("BeginCapture", capturer.BeginCapture(0))
	launch(whole, len(data))
	graph, err := capturer.EndCapture(0)
	b.check("EndCapture", err)
	for i := range 2 {
		data[0] = byte(i)
		b.check("Upload", b.device.Upload(memory, data))
		b.check("Replay", graph.Replay(0))
		want(whole, data)
	}
	b.check("Close", graph.Close())
}

// testBadTensorMaps wants errors that name the launch for what no device takes.
func testBadTensorMaps(b *bench) {
	b.tma()
	p, result := b.put(pattern(4096)), b.alloc(boxBytes)
	for _, test := range []struct {
		name   string
		change func(a *runtime.Arg)
		words  []string
	}{
		{"no map", func(a *runtime.Arg) { a.Map = nil }, []string{"without a map"}},
		{"six dimensions", func(a *runtime.Arg) { a.Map.Dims = make([]uint64, 6) }, []string{"6 dimensions"}},
		{"an address between units", func(a *runtime.Arg) { a.Bits += 8 }, []string{"not aligned"}},
		{"too much", func(a *runtime.Arg) { a.Size = 4095 }, []string{"4096 bytes in memory of 4095"}},
		{"a stride between units", func(a *runtime.Arg) { a.Map.Strides[0] = 120 }, []string{"stride of 120 bytes"}},
		{"a box over the swizzle", func(a *runtime.Arg) { a.Map.Box[0] = 64 }, []string{"256 bytes"}},
		{"written", func(a *runtime.Arg) { a.Access = runtime.ReadWrite }, []string{"only read"}},
		{"a pointer", func(a *runtime.Arg) { a.Kind = runtime.ArgPointer }, []string{"argument 0", "8 bytes", "128"}},
	} {
		a := tensorMap(p, 4096, &runtime.TensorMap{Type: runtime.TensorF32, Dims: []uint64{32, 32}, Strides: []uint64{128}, Box: []uint32{32, 8}, Swizzle: runtime.Swizzle128})
		test.change(&a)
		err := b.device.Launch(0, runtime.Launch{Kernel: b.kernel("box2"), Grid: one, Block: [3]int{256, 1, 1}, Label: "tiles of a test",
			Args: []runtime.Arg{a, out(result, boxBytes), i32(0), i32(0)}})
		b.wantError(test.name, err, append(test.words, "box2", "tiles of a test")...)
	}
	a := tensorMap(p, 4096, &runtime.TensorMap{Type: runtime.TensorU8, Dims: []uint64{4096}, Box: []uint32{256}})
	err := b.device.Launch(0, runtime.Launch{Kernel: b.kernel("box2"), Grid: one, Block: [3]int{256, 1, 1}, Label: "tiles of a test",
		Args: []runtime.Arg{a, a, i32(0), i32(0)}})
	b.wantError("a map for a pointer", err, "argument 1", "128 bytes", "tiles of a test")
}

// testClusterAddresses: addresses of shared memory in clusters have the rank of their block from bit 24 on.
func testClusterAddresses(b *bench) {
	b.tma()
	const blocks, words = 4, 5
	result := b.alloc(4 * words * blocks)
	b.launch(0, "ranks", blocks, 1, 0, out(result, 4*words*blocks))
	var want []uint32
	for block := range uint32(blocks) {
		want = append(want, block%2, block%2, 0, 1, 0)
	}
	same(b, "ranks", b.get(result, 4*words*blocks), want)
}

// testCluster has two blocks copy halves of tiles to both, over two rounds.
func testCluster(b *bench) {
	b.tma()
	const clusters, rows = 3, 3*32 - 11
	data := pattern(rows * 128)
	m := &runtime.TensorMap{Type: runtime.TensorU32, Dims: []uint64{32, rows}, Strides: []uint64{128}, Box: []uint32{32, 8}, Swizzle: runtime.Swizzle128}
	a := tensorMap(b.put(data), len(data), m)
	const size = 2 * clusters * 4 * boxBytes // two tiles of two boxes for each block
	result := b.alloc(size)
	b.launch(0, "shared_tiles", 2*clusters, 256, 0, out(result, size), a)
	got := b.get(result, size)
	for i := range size / boxBytes {
		block, half := i/4, i%4
		want := box(m, data, 0, block/2*32+8*half)
		if from := i * boxBytes; string(got[from:from+boxBytes]) != string(want) {
			b.Errorf("block %d, half %d: got\n%x\nwant\n%x", block, half, got[from:from+boxBytes], want)
		}
	}
	err := b.device.Launch(0, runtime.Launch{Kernel: b.kernel("shared_tiles"), Grid: [3]int{3, 1, 1}, Block: [3]int{256, 1, 1}, Label: "half a cluster",
		Args: []runtime.Arg{out(result, size), a}})
	b.wantError("a grid of one and a half clusters", err, "shared_tiles", "cluster", "half a cluster")
}
