// Package devicetest is the one suite of tests that every runtime.Device passes: the emulator and
// CUDA run the same PTX here and must give the same bits.
package devicetest

import (
	"embed"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"weft/runtime"
)

//go:embed testdata
var testdata embed.FS

// Run runs the suite. Open returns a device for one test, which closes it, or skips the test.
func Run(t *testing.T, open func(t *testing.T) runtime.Device) {
	for _, test := range []struct {
		name string
		run  func(b *bench)
	}{
		{"properties", testProperties},
		{"memory", testMemory},
		{"copy", testCopy},
		{"fill", testFill},
		{"vector add", testVectorAdd},
		{"arguments", testArguments},
		{"coordinates", testCoordinates},
		{"shared memory", testShared},
		{"dynamic shared memory", testDynamicShared},
		{"warp shuffle", testShuffle},
		{"vector access", testVectorAccess},
		{"streams", testStreams},
		{"capture", testCapture},
		{"capture of two streams", testCaptureStreams},
		{"arithmetic", testArithmetic},
		{"tensor map", testTensorMap},
		{"planes of a tensor map", testTensorMapPlanes},
		{"launches with tensor maps", testTensorMapLaunches},
		{"bad tensor maps", testBadTensorMaps},
		{"cluster", testCluster},
		{"addresses in a cluster", testClusterAddresses},
		{"marks", testMarks},
		{"missing kernel", testMissingKernel},
		{"bad image", testBadImage},
		{"bad launches", testBadLaunches},
		{"bad handles", testBadHandles},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &bench{T: t, device: open(t)}
			defer func() { b.check("Close", b.device.Close()) }()
			test.run(b)
		})
	}
}

// RunFault launches a kernel that stores to an address that no allocation holds, and wants an
// error that names the kernel and its label. It is apart from Run because it takes the context of
// a CUDA device with it, for the whole process.
func RunFault(t *testing.T, open func(t *testing.T) runtime.Device) {
	b := &bench{T: t, device: open(t)}
	l := runtime.Launch{
		Kernel: b.kernel("wild"), Grid: one, Block: one, Label: "add of layer.3",
		Args: []runtime.Arg{{Kind: runtime.ArgPointer, Bits: 0xdead0000, Size: 4, Access: runtime.Write}},
	}
	err := b.device.Launch(0, l)
	if err == nil {
		err = b.device.Synchronize()
	}
	b.wantError("a store to nowhere", err, "wild", "add of layer.3")
	if err := b.device.Close(); err != nil {
		b.Logf("Close after the fault: %v", err)
	}
}

// bench is one device under test.
type bench struct {
	*testing.T
	device runtime.Device
	module runtime.Module // testdata/kernels.ptx
	place  string         // of a test with many launches, for the messages of devices
}

var one = [3]int{1, 1, 1}

func (b *bench) check(what string, err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%s: %v", what, err)
	}
}

// wantError fails the test unless err holds all words.
func (b *bench) wantError(what string, err error, words ...string) {
	b.Helper()
	if err == nil {
		b.Errorf("%s: no error", what)
		return
	}
	b.Logf("%s: %v", what, err)
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			b.Errorf("%s: error %q does not name %q", what, err, w)
		}
	}
}

func (b *bench) load(file string) runtime.Module {
	b.Helper()
	text, err := testdata.ReadFile("testdata/" + file)
	b.check("read", err)
	m, err := b.device.Load(text)
	b.check("Load "+file, err)
	return m
}

func (b *bench) kernel(name string) runtime.Kernel {
	b.Helper()
	if b.module == nil {
		b.module = b.load("kernels.ptx")
	}
	k, err := b.module.Kernel(name)
	b.check("Kernel "+name, err)
	if k.Name() != name {
		b.Errorf("kernel %s calls itself %s", name, k.Name())
	}
	return k
}

// alloc returns size bytes, which the closing of the device gives back.
func (b *bench) alloc(size int) runtime.Pointer {
	b.Helper()
	p, err := b.device.Alloc(int64(size))
	b.check("Alloc", err)
	if p == 0 || p%256 != 0 {
		b.Fatalf("Alloc(%d) = %#x, want an address aligned to 256 bytes", size, uint64(p))
	}
	return p
}

// put returns memory that holds the data.
func (b *bench) put(data []byte) runtime.Pointer {
	b.Helper()
	p := b.alloc(len(data))
	b.check("Upload", b.device.Upload(p, data))
	return p
}

func (b *bench) get(p runtime.Pointer, size int) []byte {
	b.Helper()
	data := make([]byte, size)
	b.check("Download", b.device.Download(data, p))
	return data
}

func (b *bench) launch(s runtime.Stream, kernel string, grid, block, shared int, args ...runtime.Arg) {
	b.Helper()
	b.check("Launch", b.device.Launch(s, runtime.Launch{
		Kernel: b.kernel(kernel), Grid: [3]int{grid, 1, 1}, Block: [3]int{block, 1, 1}, Shared: shared,
		Args: args, Label: b.Name() + b.place,
	}))
}

func in(p runtime.Pointer, size int) runtime.Arg {
	return runtime.Arg{Kind: runtime.ArgPointer, Bits: uint64(p), Size: int64(size), Access: runtime.Read}
}

func out(p runtime.Pointer, size int) runtime.Arg {
	return runtime.Arg{Kind: runtime.ArgPointer, Bits: uint64(p), Size: int64(size), Access: runtime.Write}
}

func inOut(p runtime.Pointer, size int) runtime.Arg {
	return runtime.Arg{Kind: runtime.ArgPointer, Bits: uint64(p), Size: int64(size), Access: runtime.ReadWrite}
}

func i32(v int) runtime.Arg { return runtime.Arg{Kind: runtime.ArgI32, Bits: uint64(uint32(v))} }

// words are little-endian values of one size, as devices hold them.
func words[T uint16 | uint32 | uint64](values []T) []byte {
	data, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(fmt.Sprintf("BUG: %v", err))
	}
	return data
}

// counted is n values made by f.
func counted[T any](n int, f func(i int) T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = f(i)
	}
	return s
}

// same compares what a device holds with the values it should hold.
func same[T uint16 | uint32 | uint64](b *bench, what string, got []byte, want []T) {
	b.Helper()
	values := make([]T, len(want))
	if _, err := binary.Decode(got, binary.LittleEndian, values); err != nil {
		b.Fatalf("%s: %d bytes: %v", what, len(got), err)
	}
	bad := 0
	for i := range want {
		if values[i] != want[i] {
			if bad++; bad <= 5 {
				b.Errorf("%s: element %d is %#x, want %#x", what, i, values[i], want[i])
			}
		}
	}
	if bad > 5 {
		b.Errorf("%s: %d of %d elements differ", what, bad, len(want))
	}
}
