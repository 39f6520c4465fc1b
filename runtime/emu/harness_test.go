package emu

import (
	"encoding/binary"
	"math"
	"os"
	"testing"

	"weft/runtime"
)

// harness runs kernels of one PTX text on a fresh device.
type harness struct {
	t      testing.TB
	device *Device
	module runtime.Module
}

func newHarness(t testing.TB, options Options, text string) *harness {
	t.Helper()
	h := &harness{t: t, device: New(options)}
	module, err := h.device.Load([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	h.module = module
	return h
}

func readTestdata(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (h *harness) kernel(name string) runtime.Kernel {
	h.t.Helper()
	k, err := h.module.Kernel(name)
	if err != nil {
		h.t.Fatal(err)
	}
	return k
}

// buffer allocates size bytes; data, if given, is uploaded.
func (h *harness) buffer(size int, data []byte) runtime.Pointer {
	h.t.Helper()
	p, err := h.device.Alloc(int64(size))
	if err != nil {
		h.t.Fatal(err)
	}
	if data != nil {
		if err := h.device.Upload(p, data); err != nil {
			h.t.Fatal(err)
		}
	}
	return p
}

func pointer(p runtime.Pointer, size int, access runtime.Access) runtime.Arg {
	return runtime.Arg{Kind: runtime.ArgPointer, Bits: uint64(p), Size: int64(size), Access: access}
}

func int32Arg(v int) runtime.Arg {
	return runtime.Arg{Kind: runtime.ArgI32, Bits: uint64(uint32(v))}
}

// launch runs a kernel of grid×block threads and returns what Launch or Synchronize says.
func (h *harness) launch(name string, grid, block int, args ...runtime.Arg) error {
	h.t.Helper()
	err := h.device.Launch(0, runtime.Launch{
		Kernel: h.kernel(name), Grid: [3]int{grid, 1, 1}, Block: [3]int{block, 1, 1}, Args: args, Label: "label of " + name,
	})
	if err != nil {
		return err
	}
	return h.device.Synchronize()
}

func (h *harness) mustLaunch(name string, grid, block int, args ...runtime.Arg) {
	h.t.Helper()
	if err := h.launch(name, grid, block, args...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *harness) download(p runtime.Pointer, size int) []byte {
	h.t.Helper()
	data := make([]byte, size)
	if err := h.device.Download(data, p); err != nil {
		h.t.Fatal(err)
	}
	return data
}

func words(data []byte) []uint32 {
	v := make([]uint32, len(data)/4)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(data[i*4:])
	}
	return v
}

func fromFloats(v []float32) []byte {
	var data []byte
	for _, x := range v {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	return data
}
