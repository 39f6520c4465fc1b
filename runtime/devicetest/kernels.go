package devicetest

import (
	"math"

	"weft/runtime"
)

// vadd adds n floats and returns the bits of the sums it should get, and where they will be.
func (b *bench) vadd(s runtime.Stream, n int) (runtime.Pointer, []uint32) {
	b.Helper()
	x := counted(n, func(i int) uint32 { return math.Float32bits(float32(i) * 0.37) })
	y := counted(n, func(i int) uint32 { return math.Float32bits(1 / float32(i+1)) })
	want := counted(n, func(i int) uint32 {
		return math.Float32bits(math.Float32frombits(x[i]) + math.Float32frombits(y[i]))
	})
	size := 4 * n
	z := b.alloc(size)
	b.launch(s, "vadd", (n+127)/128, 128, 0, in(b.put(words(x)), size), in(b.put(words(y)), size), out(z, size), i32(n))
	return z, want
}

func testVectorAdd(b *bench) {
	for _, n := range []int{1, 31, 128, 10_000} {
		z, want := b.vadd(0, n)
		same(b, "sum", b.get(z, 4*n), want)
	}
}

func testArguments(b *bench) {
	p := b.put(make([]byte, 32))
	want := []uint64{0xfffffffe, 0x8123456789abcdef, uint64(math.Float32bits(-1.5)), math.Float64bits(math.Pi)}
	b.launch(0, "arguments", 1, 1, 0, out(p, 32),
		i32(-2),
		runtime.Arg{Kind: runtime.ArgI64, Bits: want[1]},
		runtime.Arg{Kind: runtime.ArgF32, Bits: want[2]},
		runtime.Arg{Kind: runtime.ArgF64, Bits: want[3]})
	same(b, "argument", b.get(p, 32), want)
}

func testCoordinates(b *bench) {
	grid, block := [3]int{3, 2, 4}, [3]int{5, 3, 2}
	const n = 3 * 2 * 4 * 5 * 3 * 2
	p := b.put(make([]byte, 8*n))
	b.check("Launch", b.device.Launch(0, runtime.Launch{
		Kernel: b.kernel("coordinates"), Grid: grid, Block: block, Args: []runtime.Arg{out(p, 8*n)}}))
	want := counted(n, func(i int) uint64 {
		var at [6]uint64 // thread x, y, z, block x, y, z
		for d, size := range []int{block[0], block[1], block[2], grid[0], grid[1], grid[2]} {
			at[d] = uint64(i % size)
			i /= size
		}
		return at[3] | at[4]<<8 | at[5]<<16 | at[0]<<24 | at[1]<<32 | at[2]<<40
	})
	same(b, "coordinates", b.get(p, 8*n), want)
}

// reversed is what the kernel reverse makes of 0, 3, 6 …
func reversed(n int) []uint32 {
	return counted(n, func(i int) uint32 { return uint32(i&^255+255-i&255) * 3 })
}

func testShared(b *bench) {
	const n = 4 * 256
	src := b.put(words(counted(n, func(i int) uint32 { return uint32(i) * 3 })))
	dst := b.alloc(4 * n)
	b.launch(0, "reverse", n/256, 256, 0, in(src, 4*n), out(dst, 4*n))
	same(b, "reversed", b.get(dst, 4*n), reversed(n))
}

func testDynamicShared(b *bench) {
	const n, shared = 256, 96 << 10
	src := b.put(words(counted(n, func(i int) uint32 { return uint32(i) * 3 })))
	dst := b.alloc(4 * n)
	for range 2 {
		b.launch(0, "reverse_far", 1, n, shared, in(src, 4*n), out(dst, 4*n))
		same(b, "reversed", b.get(dst, 4*n), reversed(n))
	}
	err := b.device.Launch(0, runtime.Launch{
		Kernel: b.kernel("reverse_far"), Grid: one, Block: [3]int{n, 1, 1}, Shared: 1 << 20, Label: "far too much",
		Args: []runtime.Arg{in(src, 4*n), out(dst, 4*n)}})
	b.wantError("1 MiB of shared memory", err, "reverse_far", "far too much")
}

func testShuffle(b *bench) {
	value := func(i int) uint32 { return uint32(i*i + 1) }
	sum := uint32(0)
	for i := range 32 {
		sum += value(i)
	}
	want := make([]uint32, 0, 4*32)
	for i := range 32 {
		below, above := i-2, i+3
		if below < 0 {
			below = i
		}
		if above > 31 {
			above = i
		}
		want = append(want, sum, value(below), value(above), value(5))
	}
	src, dst := b.put(words(counted(32, value))), b.alloc(16*32)
	b.launch(0, "shuffle", 1, 32, 0, in(src, 4*32), out(dst, 16*32))
	same(b, "shuffled", b.get(dst, 16*32), want)
}

func testVectorAccess(b *bench) {
	const n = 1000 // of 16 bytes
	value := func(i int) float32 { return float32(i) - 1999.5 }
	src := b.put(words(counted(4*n, func(i int) uint32 { return math.Float32bits(value(i)) })))
	dst := b.alloc(16 * n)
	b.launch(0, "double4", (n+255)/256, 256, 0, in(src, 16*n), out(dst, 16*n), i32(n))
	same(b, "doubled", b.get(dst, 16*n), counted(4*n, func(i int) uint32 { return math.Float32bits(2 * value(i)) }))
}

func testMissingKernel(b *bench) {
	b.kernel("vadd")
	_, err := b.module.Kernel("vsub")
	b.wantError("a kernel that is missing", err, "vsub", "vadd", "reverse_far")
	b.check("Close", b.module.Close())
}

func testBadImage(b *bench) {
	for _, image := range []string{
		"", "no PTX at all", "\x7fELF",
		".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { frobnicate.u32 %r1, %r2; ret; }",
	} {
		_, err := b.device.Load([]byte(image))
		b.wantError("Load of a bad image", err)
	}
	// The device still works.
	z, want := b.vadd(0, 64)
	same(b, "sum", b.get(z, 4*64), want)
}

func testBadLaunches(b *bench) {
	p := b.put(make([]byte, 64))
	good := runtime.Launch{Kernel: b.kernel("slow_step"), Grid: one, Block: one, Label: "step of a test",
		Args: []runtime.Arg{inOut(p, 4), i32(1), i32(1), i32(1)}}
	for _, test := range []struct {
		name   string
		change func(l *runtime.Launch)
	}{
		{"an empty grid", func(l *runtime.Launch) { l.Grid[1] = 0 }},
		{"an empty block", func(l *runtime.Launch) { l.Block[2] = 0 }},
		{"a block of 1,025 threads", func(l *runtime.Launch) { l.Block[0] = 1025 }},
		{"a grid of 65,536 in z", func(l *runtime.Launch) { l.Grid[2] = 65_536 }},
		{"negative shared memory", func(l *runtime.Launch) { l.Shared = -1 }},
		{"an argument too few", func(l *runtime.Launch) { l.Args = l.Args[:3] }},
		{"an argument too many", func(l *runtime.Launch) { l.Args = append(l.Args[:4:4], i32(1)) }},
		{"an argument of a wrong size", func(l *runtime.Launch) {
			l.Args = append(l.Args[:3:3], runtime.Arg{Kind: runtime.ArgI64, Bits: 1})
		}},
	} {
		l := good
		test.change(&l)
		b.wantError(test.name, b.device.Launch(0, l), "slow_step", "step of a test")
	}
	b.check("the launch itself", b.device.Launch(0, good))
	same(b, "steps", b.get(p, 4), []uint32{1})
	nothing := good
	nothing.Kernel = nil
	b.wantError("no kernel", b.device.Launch(0, nothing), "step of a test")
}
