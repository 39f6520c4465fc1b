package devicetest

import (
	"bytes"

	"weft/runtime"
)

func testProperties(b *bench) {
	p := b.device.Properties()
	b.Logf("%+v", p)
	if p.Name == "" || p.ComputeMajor < 8 || p.Multiprocessors < 1 || p.SharedPerBlock < 96<<10 || p.Memory < 1<<20 {
		b.Errorf("properties %+v are not those of a GPU that weft has targets for", p)
	}
	if again := b.device.Properties(); again != p {
		b.Errorf("the properties changed to %+v", again)
	}
}

// sequence is n bytes without a short period.
func sequence(n int) []byte {
	return counted(n, func(i int) byte { return byte(i*7 + i>>8) })
}

func testMemory(b *bench) {
	for _, size := range []int{1, 3, 256, 1000, 65_537, 1 << 20} {
		data := sequence(size)
		p := b.put(data)
		if got := b.get(p, size); !bytes.Equal(got, data) {
			b.Errorf("%d bytes came back changed", size)
		}
		b.check("Free", b.device.Free(p))
	}
	p := b.put(sequence(100))
	b.check("Upload inside", b.device.Upload(p+10, []byte{1, 2, 3}))
	b.check("Upload of nothing", b.device.Upload(p, nil))
	want := sequence(100)
	copy(want[10:], []byte{1, 2, 3})
	if got := b.get(p+5, 50); !bytes.Equal(got, want[5:55]) {
		b.Errorf("bytes 5 to 55 are %v, want %v", got, want[5:55])
	}
	_, err := b.device.Alloc(-1)
	b.wantError("Alloc(-1)", err)
	_, err = b.device.Alloc(1 << 60)
	b.wantError("Alloc(1<<60)", err)
}

func testCopy(b *bench) {
	data := sequence(1000)
	p := b.put(data)
	b.check("Copy", b.device.Copy(0, p+500, p, 500))
	b.check("Copy of nothing", b.device.Copy(0, p, p, 0))
	if got, want := b.get(p, 1000), append(data[:500:500], data[:500]...); !bytes.Equal(got, want) {
		b.Error("the copied half differs from the other")
	}
	b.wantError("overlapping copy", b.device.Copy(0, p+1, p, 500))
	b.wantError("copy of -1 bytes", b.device.Copy(0, p+500, p, -1))
}

func testFill(b *bench) {
	pattern := []byte{0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88}
	for _, test := range []struct {
		pattern []byte
		count   int
	}{
		{pattern[:1], 1}, {pattern[:1], 777}, {pattern[:2], 1}, {pattern[:2], 333}, {pattern[:4], 1},
		{pattern[:4], 1025}, {pattern, 1}, {pattern, 513}, {pattern, 100_000}, {bytes.Repeat(pattern[:4], 2), 99},
		{make([]byte, 8), 99}, {pattern[:4], 0},
	} {
		size := len(test.pattern) * test.count
		p := b.put(make([]byte, size+32))
		b.check("Fill", b.device.Fill(0, p+16, test.pattern, int64(test.count)))
		want := append(append(make([]byte, 16), bytes.Repeat(test.pattern, test.count)...), make([]byte, 16)...)
		if got := b.get(p, len(want)); !bytes.Equal(got, want) {
			b.Errorf("fill with %d times %x differs", test.count, test.pattern)
		}
	}
	p := b.alloc(64)
	for _, n := range []int{0, 3, 16} {
		b.wantError("fill with an odd pattern", b.device.Fill(0, p, make([]byte, n), 1))
	}
	for _, n := range []int{2, 4, 8} {
		b.wantError("misaligned fill", b.device.Fill(0, p+runtime.Pointer(n/2), pattern[:n], 1))
	}
	b.wantError("fill of -1 elements", b.device.Fill(0, p, pattern[:1], -1))
}

func testBadHandles(b *bench) {
	p := b.put(make([]byte, 64))
	const stream = runtime.Stream(99)
	b.wantError("Copy on no stream", b.device.Copy(stream, p+32, p, 32))
	b.wantError("Fill on no stream", b.device.Fill(stream, p, []byte{1}, 8))
	_, err := b.device.Record(stream)
	b.wantError("Record on no stream", err)
	b.wantError("Wait for no event", b.device.Wait(0, 99))
	e, err := b.device.Record(0)
	b.check("Record", err)
	b.wantError("Wait on no stream", b.device.Wait(stream, e))
	b.wantError("Launch on no stream", b.device.Launch(stream, runtime.Launch{
		Kernel: b.kernel("wild"), Grid: one, Block: one, Args: []runtime.Arg{out(p, 4)}}))
	b.check("Synchronize", b.device.Synchronize())
}
