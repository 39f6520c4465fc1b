//go:build cuda

package cuda

import (
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/runtime"
	"weft/runtime/devicetest"
)

// open skips the test where there is no CUDA device.
func open(t *testing.T) runtime.Device { return openDevice(t) }

func openDevice(t testing.TB) *Device {
	t.Helper()
	d, err := Open(0)
	var absent *UnavailableError
	if errors.As(err, &absent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestDevice(t *testing.T) { devicetest.Run(t, open) }

// The fault takes CUDA's context with it, so it happens in a process of its own.
func TestFault(t *testing.T) {
	const child = "WEFT_TEST_FAULT"
	if os.Getenv(child) != "" {
		devicetest.RunFault(t, open)
		return
	}
	must(t, "Close", openDevice(t).Close())
	for _, blocking := range []string{"0", "1"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFault$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1", "CUDA_LAUNCH_BLOCKING="+blocking)
		out, err := cmd.CombinedOutput()
		t.Logf("CUDA_LAUNCH_BLOCKING=%s: %s", blocking, out)
		if err != nil || !strings.Contains(string(out), "CUDA_ERROR_ILLEGAL_ADDRESS") {
			t.Errorf("CUDA_LAUNCH_BLOCKING=%s: %v, or the error does not have CUDA's name", blocking, err)
		}
	}
}

func TestLoadError(t *testing.T) {
	d := openDevice(t)
	defer d.Close()
	_, err := d.Load([]byte(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { frobnicate.u32 %r1, %r2; ret; }"))
	var load *LoadError
	if !errors.As(err, &load) || !strings.Contains(load.Log, "frobnicate") {
		t.Errorf("error %v does not show what the assembler said", err)
	}
	var call *Error
	if !errors.As(err, &call) || !strings.HasPrefix(call.Name, "CUDA_ERROR_") || call.Text == "" {
		t.Errorf("error %v has no CUDA error with name and text", err)
	}
}

// The program must start where neither CUDA nor anything else is installed.
func TestNeedsOnlyLibc(t *testing.T) {
	path, err := os.Executable()
	must(t, "Executable", err)
	program, err := elf.Open(path)
	must(t, "Open", err)
	defer program.Close()
	libraries, err := program.ImportedLibraries()
	must(t, "ImportedLibraries", err)
	for _, l := range libraries {
		if !strings.HasPrefix(l, "libc.so.") && !strings.HasPrefix(l, "ld-linux") {
			t.Errorf("the program needs %s", l)
		}
	}
}

// A driver that finds no GPU, and lacks every function but one, is an error like no driver at all.
func TestDriverWithoutDevice(t *testing.T) {
	const child = "WEFT_TEST_NO_DEVICE"
	if os.Getenv(child) != "" {
		_, err := Open(0)
		var absent *UnavailableError
		var call *Error
		if !errors.As(err, &absent) || !errors.As(err, &call) || call.Call != "cuInit" || call.Code != 100 {
			t.Errorf("Open: %v (%T), want an UnavailableError of cuInit", err, err)
		}
		t.Log(err)
		return
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler: ", err)
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "driver.c")
	must(t, "write", os.WriteFile(source, []byte("int cuInit(unsigned flags) { return 100; }"), 0o666))
	out, err := exec.Command("cc", "-shared", "-fPIC", "-o", filepath.Join(dir, "libcuda.so.1"), source).CombinedOutput()
	if err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestDriverWithoutDevice$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1", "LD_LIBRARY_PATH="+dir)
	out, err = cmd.CombinedOutput()
	t.Logf("%s", out)
	must(t, "child", err)
}

func TestOpenUnknown(t *testing.T) {
	openDevice(t).Close()
	var absent *UnavailableError
	for _, ordinal := range []int{-1, 1000} {
		if _, err := Open(ordinal); !errors.As(err, &absent) {
			t.Errorf("Open(%d): %v, want an UnavailableError", ordinal, err)
		}
	}
}

// Devices of one GPU share a context but nothing else, and may be used from any goroutine.
func TestTwoDevices(t *testing.T) {
	a, b := openDevice(t), openDevice(t)
	defer a.Close()
	p, err := b.Alloc(16)
	must(t, "Alloc", err)
	if err := a.Free(p); err == nil {
		t.Error("a device frees what another allocated")
	}
	done := make(chan error)
	go func() { done <- errors.Join(b.Upload(p, make([]byte, 16)), b.Free(p), b.Close(), b.Close()) }()
	must(t, "work in another goroutine", <-done)
	if _, err := a.Alloc(16); err != nil {
		t.Errorf("after the other was closed: %v", err)
	}
	if _, err := b.Alloc(16); err == nil {
		t.Error("a closed device allocates")
	}
}

func TestNative(t *testing.T) {
	d := openDevice(t)
	defer d.Close()
	h, err := d.StreamHandle(0)
	if err != nil || h == 0 || d.Ordinal() != 0 {
		t.Errorf("device %d, stream %#x, %v", d.Ordinal(), h, err)
	}
	if _, err := d.StreamHandle(7); err == nil {
		t.Error("there is a stream 7")
	}
	want := errors.New("mine")
	if err := d.Do(func() error { return want }); err != want {
		t.Errorf("Do: %v", err)
	}
}

func TestElapsed(t *testing.T) {
	d := openDevice(t)
	defer d.Close()
	const size = 256 << 20
	p, err := d.Alloc(size)
	must(t, "Alloc", err)
	fill := func(pattern []byte) time.Duration {
		var times []time.Duration
		for range 5 {
			from, err := d.Record(0)
			must(t, "Record", err)
			must(t, "Fill", d.Fill(0, p, pattern, size/int64(len(pattern))))
			to, err := d.Record(0)
			must(t, "Record", err)
			took, err := d.Elapsed(from, to)
			must(t, "Elapsed", err)
			times = append(times, took)
		}
		must(t, "Synchronize", d.Synchronize())
		return slices.Min(times)
	}
	for _, pattern := range [][]byte{{1}, {1, 2}, {1, 2, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8}} {
		took := fill(pattern)
		t.Logf("fill of 256 MiB with %d bytes: %v, %.0f GB/s", len(pattern), took, size/took.Seconds()/1e9)
		if took <= 0 || took > time.Second {
			t.Errorf("fill of 256 MiB took %v", took)
		}
	}
	e, err := d.Record(0)
	must(t, "Record", err)
	must(t, "Synchronize", d.Synchronize())
	if _, err := d.Elapsed(e, e); err != nil {
		t.Errorf("after one Synchronize: %v", err)
	}
	must(t, "Synchronize", d.Synchronize())
	if _, err := d.Elapsed(e, e); err == nil {
		t.Error("an event of two Synchronize before still has a time")
	}
}

// The speed of transfers from and to ordinary memory.
func TestTransferTimes(t *testing.T) {
	d := openDevice(t)
	defer d.Close()
	const size = 256 << 20
	p, err := d.Alloc(size)
	must(t, "Alloc", err)
	data := make([]byte, size)
	data[size-1] = 1
	for range 2 { // the first time the pages of data are made
		start := time.Now()
		must(t, "Upload", d.Upload(p, data))
		up := time.Since(start)
		start = time.Now()
		must(t, "Download", d.Download(data, p))
		t.Logf("256 MiB up in %v, down in %v", up, time.Since(start))
	}
	if data[size-1] != 1 {
		t.Error("the last byte changed")
	}
}

// mapLaunch launches a kernel that does nothing with two tensor maps.
func mapLaunch(t *testing.T, d *Device) runtime.Launch {
	m, err := d.Load([]byte(".version 8.0\n.target sm_90\n.address_size 64\n" +
		".visible .entry maps(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128]) { ret; }"))
	must(t, "Load", err)
	k, err := m.Kernel("maps")
	must(t, "Kernel", err)
	p, err := d.Alloc(1024)
	must(t, "Alloc", err)
	l := runtime.Launch{Kernel: k, Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, Label: "nothing with maps"}
	for _, rows := range []uint64{4, 8} {
		l.Args = append(l.Args, runtime.Arg{Kind: runtime.ArgTensorMap, Bits: uint64(p), Size: 1024, Access: runtime.Read, Map: &runtime.TensorMap{
			Type: runtime.TensorBF16, Dims: []uint64{64, rows}, Strides: []uint64{128}, Box: []uint32{64, 8}, Swizzle: runtime.Swizzle128}})
	}
	return l
}

// The time that calls take on the host, measured over the calls alone.
func TestCallTimes(t *testing.T) {
	d := openDevice(t)
	defer d.Close()
	m, err := d.Load([]byte(".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n) { ret; }"))
	must(t, "Load", err)
	k, err := m.Kernel("k")
	must(t, "Kernel", err)
	p, err := d.Alloc(4)
	must(t, "Alloc", err)
	l := runtime.Launch{Kernel: k, Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}, Label: "nothing",
		Args: []runtime.Arg{{Bits: uint64(p), Size: 4}, {Kind: runtime.ArgI32, Bits: 1}}}
	const n = 500
	measure := func(what string, f func() error) {
		best := time.Duration(math.MaxInt64)
		for range 20 {
			start := time.Now()
			for range n {
				must(t, what, f())
			}
			best = min(best, time.Since(start)/n)
			must(t, "Synchronize", d.Synchronize())
		}
		t.Logf("%s: %v a call", what, best)
	}
	measure("Do", func() error { return d.Do(func() error { return nil }) })
	measure("Launch", func() error { return d.Launch(0, l) })
	allocations := testing.AllocsPerRun(100, func() { must(t, "Launch", d.Launch(0, l)) })
	if allocations > 0 {
		t.Errorf("a launch allocates %v times", allocations)
	}
	if d.Properties().ComputeMajor >= 9 {
		withMaps := mapLaunch(t, d)
		measure("Launch with two tensor maps", func() error { return d.Launch(0, withMaps) })
		if n := testing.AllocsPerRun(100, func() { must(t, "Launch", d.Launch(0, withMaps)) }); n > 0 {
			t.Errorf("a launch with tensor maps allocates %v times", n)
		}
		measure("encoding of a tensor map", func() error { _, err := encodeMap(withMaps.Args[0]); return err })
	}
	must(t, "BeginCapture", d.BeginCapture(0))
	for range 100 {
		must(t, "Launch", d.Launch(0, l))
	}
	g, err := d.EndCapture(0)
	must(t, "EndCapture", err)
	measure("Replay of 100 launches", func() error { return g.Replay(0) })
	if err := d.Launch(0, runtime.Launch{Kernel: k, Grid: [3]int{1, 1, 1}, Block: [3]int{32, 1, 1}}); err == nil {
		t.Error(fmt.Sprint("a launch without arguments is accepted; parameters known: ", k.(*kernel).parameters))
	}
}
