//go:build cuda

package cuda

import (
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

// Fill enqueues writing count repetitions of the pattern to dst.
func (d *Device) Fill(s runtime.Stream, dst runtime.Pointer, pattern []byte, count int64) error {
	if count < 0 {
		return fmt.Errorf("fill of %d elements", count)
	}
	write, err := fill(cu.DevicePtr(dst), pattern, count)
	if err != nil || count == 0 {
		return err
	}
	if err := d.enqueue("cuMemsetAsync", s, write); err != nil {
		return fmt.Errorf("fill of %d elements of %d bytes at %#x: %w", count, len(pattern), uint64(dst), err)
	}
	return nil
}

// fill returns what enqueues the fill on a stream. The driver's patterns have at most 4 bytes; one
// of 8 bytes whose halves differ is two columns of 4 bytes.
func fill(dst cu.DevicePtr, pattern []byte, count int64) (func(cu.Stream) error, error) {
	switch len(pattern) {
	case 1:
		return func(s cu.Stream) error { return cu.MemsetD8Async(dst, pattern[0], count, s) }, nil
	case 2:
		v := binary.LittleEndian.Uint16(pattern)
		return func(s cu.Stream) error { return cu.MemsetD16Async(dst, v, count, s) }, nil
	case 4:
		v := uint(binary.LittleEndian.Uint32(pattern))
		return func(s cu.Stream) error { return cu.MemsetD32Async(dst, v, count, s) }, nil
	case 8:
		low, high := uint(binary.LittleEndian.Uint32(pattern)), uint(binary.LittleEndian.Uint32(pattern[4:]))
		if low == high {
			return func(s cu.Stream) error { return cu.MemsetD32Async(dst, low, 2*count, s) }, nil
		}
		return func(s cu.Stream) error {
			if err := cu.MemsetD2D32Async(dst, 8, low, 1, count, s); err != nil {
				return err
			}
			return cu.MemsetD2D32Async(dst+4, 8, high, 1, count, s)
		}, nil
	}
	return nil, fmt.Errorf("fill with a pattern of %d bytes: only 1, 2, 4 and 8 are possible", len(pattern))
}
