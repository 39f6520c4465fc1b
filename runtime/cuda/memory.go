//go:build cuda

package cuda

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	goruntime "runtime"
	"unsafe"

	"gorgonia.org/cu"

	"weft/runtime"
)

// Alloc returns size bytes of uninitialised global memory aligned to 256 bytes.
func (d *Device) Alloc(size int64) (runtime.Pointer, error) {
	if size < 0 {
		return 0, fmt.Errorf("alloc of %d bytes", size)
	}
	var p cu.DevicePtr
	err := d.call("cuMemAlloc", func() (err error) {
		p, err = cu.MemAlloc(max(size, 1))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("alloc of %d bytes of %d on the device: %w", size, d.properties.Memory, err)
	}
	d.memory[p] = true
	return runtime.Pointer(p), nil
}

// Free gives an allocation back.
func (d *Device) Free(p runtime.Pointer) error {
	if !d.memory[cu.DevicePtr(p)] {
		return fmt.Errorf("free of %#x: Alloc did not return it, or it was freed before", uint64(p))
	}
	delete(d.memory, cu.DevicePtr(p))
	err := d.call("cuMemFree", func() error { return cu.MemFree(cu.DevicePtr(p)) })
	if err != nil {
		return fmt.Errorf("free of %#x: %w", uint64(p), err)
	}
	return nil
}

// Upload copies host bytes to device memory and returns when they are there. It neither waits for
// the streams nor do they wait for it: dst must not be in use.
func (d *Device) Upload(dst runtime.Pointer, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	err := d.Do(func() error {
		// cuMemcpyHtoD may return while the last bytes are on their way, and streams such as ours
		// would not wait for them.
		err := cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(unsafe.SliceData(src)), int64(len(src)), d.uploads)
		if err != nil {
			return named("cuMemcpyHtoDAsync", err)
		}
		return named("cuStreamSynchronize", d.uploads.Synchronize())
	})
	goruntime.KeepAlive(src)
	if err != nil {
		return fmt.Errorf("upload of %d bytes to %#x: %w", len(src), uint64(dst), err)
	}
	return nil
}

// Download waits for all streams and copies device memory to the host.
func (d *Device) Download(dst []byte, src runtime.Pointer) error {
	if err := d.Synchronize(); err != nil {
		return err
	}
	if len(dst) == 0 {
		return nil
	}
	err := d.call("cuMemcpyDtoH", func() error {
		return cu.MemcpyDtoH(unsafe.Pointer(unsafe.SliceData(dst)), cu.DevicePtr(src), int64(len(dst)))
	})
	if err != nil {
		return fmt.Errorf("download of %d bytes from %#x: %w", len(dst), uint64(src), err)
	}
	return nil
}

// Copy enqueues a device to device copy of size bytes.
func (d *Device) Copy(s runtime.Stream, dst, src runtime.Pointer, size int64) error {
	switch distance := int64(dst - src); {
	case size < 0:
		return fmt.Errorf("copy of %d bytes", size)
	case size == 0:
		return nil
	case -size < distance && distance < size:
		return fmt.Errorf("copy of %d bytes from %#x to %#x: the ranges overlap", size, uint64(src), uint64(dst))
	}
	err := d.enqueue("cuMemcpyDtoDAsync", s, func(stream cu.Stream) error {
		return cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), size, stream)
	})
	if err != nil {
		return fmt.Errorf("copy of %d bytes from %#x to %#x: %w", size, uint64(src), uint64(dst), err)
	}
	return nil
}

// Fill enqueues writing count repetitions of the pattern to dst, which must be aligned to it.
func (d *Device) Fill(s runtime.Stream, dst runtime.Pointer, pattern []byte, count int64) error {
	if count < 0 {
		return fmt.Errorf("fill of %d elements", count)
	}
	switch n := len(pattern); {
	case n != 1 && n != 2 && n != 4 && n != 8:
		return fmt.Errorf("fill with a pattern of %d bytes: only 1, 2, 4 and 8 are possible", n)
	case uint64(dst)%uint64(n) != 0:
		return fmt.Errorf("fill with a pattern of %d bytes at %#x, which is not aligned to it", n, uint64(dst))
	}
	if count == 0 {
		return nil
	}
	if err := d.fill(s, dst, pattern, count); err != nil {
		return fmt.Errorf("fill of %d elements of %d bytes at %#x: %w", count, len(pattern), uint64(dst), err)
	}
	return nil
}

func (d *Device) fill(s runtime.Stream, dst runtime.Pointer, pattern []byte, count int64) error {
	p := cu.DevicePtr(dst)
	memset := func(f func(cu.Stream) error) error { return d.enqueue("cuMemsetAsync", s, f) }
	switch len(pattern) {
	case 1:
		return memset(func(s cu.Stream) error { return cu.MemsetD8Async(p, pattern[0], count, s) })
	case 2:
		v := binary.LittleEndian.Uint16(pattern)
		return memset(func(s cu.Stream) error { return cu.MemsetD16Async(p, v, count, s) })
	case 4:
		v := uint(binary.LittleEndian.Uint32(pattern))
		return memset(func(s cu.Stream) error { return cu.MemsetD32Async(p, v, count, s) })
	}
	v := binary.LittleEndian.Uint64(pattern)
	if half := uint32(v); half == uint32(v>>32) {
		return memset(func(s cu.Stream) error { return cu.MemsetD32Async(p, uint(half), 2*count, s) })
	}
	return d.fill8(s, dst, v, count)
}

//go:embed fill.ptx
var fillImage []byte

// fill8 is Fill with a pattern of 8 bytes, by a kernel that is loaded when it is first needed. The
// driver's two-dimensional fill could do it in two columns, at a seven-hundredth of the speed.
func (d *Device) fill8(s runtime.Stream, dst runtime.Pointer, pattern uint64, count int64) error {
	if d.filler == nil {
		m, err := d.Load(fillImage)
		if err != nil {
			return err
		}
		if d.filler, err = m.Kernel("weft_fill8"); err != nil {
			return err
		}
	}
	const threads, perMultiprocessor = 256, 16
	blocks := min((count+threads-1)/threads, int64(perMultiprocessor*d.properties.Multiprocessors))
	return d.Launch(s, runtime.Launch{
		Kernel: d.filler, Grid: [3]int{int(blocks), 1, 1}, Block: [3]int{threads, 1, 1}, Label: "fill",
		Args: []runtime.Arg{
			{Bits: uint64(dst), Size: 8 * count, Access: runtime.Write},
			{Kind: runtime.ArgI64, Bits: pattern},
			{Kind: runtime.ArgI64, Bits: uint64(count)},
		}})
}
