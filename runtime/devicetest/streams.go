package devicetest

import "weft/runtime"

// slow is enough steps for a GPU to get a second stream going meanwhile.
const slow = 3000

// step enqueues x = multiplier x + addend, after a while.
func (b *bench) step(s runtime.Stream, x runtime.Pointer, multiplier, addend int) {
	b.Helper()
	b.launch(s, "slow_step", 1, 1, 0, inOut(x, 4), i32(multiplier), i32(addend), i32(slow))
}

// handOver makes stream to wait for everything on stream from.
func (b *bench) handOver(from, to runtime.Stream) {
	b.Helper()
	e, err := b.device.Record(from)
	b.check("Record", err)
	b.check("Wait", b.device.Wait(to, e))
}

func (b *bench) stream() runtime.Stream {
	b.Helper()
	s, err := b.device.NewStream()
	b.check("NewStream", err)
	return s
}

// Two streams take turns at one word; only the events keep their order.
func testStreams(b *bench) {
	other := b.stream()
	if third := b.stream(); third == other || third == 0 || other == 0 {
		b.Fatalf("streams 0, %d and %d are not three", other, third)
	}
	x := b.put(make([]byte, 4))
	want := uint32(0)
	for range 20 {
		b.step(0, x, 1, 1)
		b.handOver(0, other)
		b.step(other, x, 3, 0)
		b.handOver(other, 0)
		want = (want + 1) * 3
	}
	same(b, "turns", b.get(x, 4), []uint32{want})

	// Events from before the device was idle are past, and waiting for them is fine.
	e, err := b.device.Record(0)
	b.check("Record", err)
	for range 3 {
		b.check("Synchronize", b.device.Synchronize())
		b.check("Wait for a past event", b.device.Wait(other, e))
	}
	b.step(other, x, 1, 1)
	same(b, "after past events", b.get(x, 4), []uint32{want + 1})

	// Order within a stream holds for copies and fills too.
	y := b.alloc(4)
	b.check("Fill", b.device.Fill(other, x, []byte{5, 0, 0, 0}, 1))
	b.step(other, x, 2, 1)
	b.check("Copy", b.device.Copy(other, y, x, 4))
	b.step(other, x, 2, 1)
	same(b, "copied between steps", b.get(y, 4), []uint32{11})
	same(b, "at the end", b.get(x, 4), []uint32{23})
}

// capturer skips the test when the device cannot capture.
func (b *bench) capturer() runtime.Capturer {
	b.Helper()
	c, ok := b.device.(runtime.Capturer)
	if !ok {
		b.Skip("this device does not capture")
	}
	return c
}

func testCapture(b *bench) {
	c := b.capturer()
	x, y := b.put(words([]uint32{7})), b.put(make([]byte, 16))
	b.kernel("slow_step")
	b.check("BeginCapture", c.BeginCapture(0))
	b.step(0, x, 2, 1)
	b.check("Copy", b.device.Copy(0, y, x, 4))
	b.check("Fill", b.device.Fill(0, y+8, []byte{1, 2, 3, 4, 5, 6, 7, 8}, 1))
	g, err := c.EndCapture(0)
	b.check("EndCapture", err)
	same(b, "what was recorded but must not run yet", b.get(x, 4), []uint32{7})
	for range 3 {
		b.check("Replay", g.Replay(0))
	}
	same(b, "three replays", b.get(x, 4), []uint32{63})
	same(b, "copy and fill", b.get(y, 16), []uint32{63, 0, 0x04030201, 0x08070605})
	s := b.stream()
	b.check("Replay on another stream", g.Replay(s))
	same(b, "four replays", b.get(x, 4), []uint32{127})
	b.step(0, x, 1, 1)
	same(b, "a launch after the capture", b.get(x, 4), []uint32{128})
	b.check("Close", g.Close())
	b.wantError("replay of a closed graph", g.Replay(0))
}

// A capture takes in the streams that wait for its events.
func testCaptureStreams(b *bench) {
	c := b.capturer()
	other := b.stream()
	x := b.put(make([]byte, 4))
	b.kernel("slow_step")
	b.check("BeginCapture", c.BeginCapture(0))
	b.step(0, x, 1, 1)
	b.handOver(0, other)
	b.step(other, x, 3, 0)
	b.handOver(other, 0)
	b.step(0, x, 1, 2)
	g, err := c.EndCapture(0)
	b.check("EndCapture", err)
	want := uint32(0)
	for range 5 {
		b.check("Replay", g.Replay(0))
		want = (want+1)*3 + 2
	}
	same(b, "five replays", b.get(x, 4), []uint32{want})
	_, err = c.EndCapture(0)
	b.wantError("EndCapture without BeginCapture", err)
	b.check("Close", g.Close())
}
