// Package emu is a GPU in plain Go: it runs PTX text on the CPU, warp by warp in lockstep,
// and reports what a real GPU would hide: accesses outside of a launch's arguments,
// misaligned accesses, reads of memory that nobody wrote, barriers that some threads miss.
//
// Results do not depend on the number of workers. Streams run eagerly in issue order, which
// is one of the orders that events allow.
package emu

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	"weft/runtime"
)

// Options configure a Device. The zero value is a device like an H100.
type Options struct {
	ComputeMajor    int                    // 9 if zero
	ComputeMinor    int                    //
	Memory          int64                  // bytes of global memory, 8 GiB if zero
	Workers         int                    // blocks that run at the same time, GOMAXPROCS if zero
	MaxInstructions int64                  // warp instructions that one block may execute, 2^31 if zero
	Observe         func(LaunchStatistics) // called after every launch, if set
}

// LaunchStatistics counts what one launch did.
type LaunchStatistics struct {
	Kernel       string
	Label        string
	Blocks       int64
	Warps        int64
	Instructions int64 // warp instructions executed
	LeakedCopies int64 // asynchronous copies, counted by thread, that it ended without waiting for
}

// Device implements runtime.Device and runtime.Capturer.
type Device struct {
	options Options
	memory  memory
	streams int
	events  []eventRecord
	capture *capture
	failure error // the first error of enqueued work, until it is reported
	total   int64
	closed  bool
}

var (
	_ runtime.Device     = (*Device)(nil)
	_ runtime.Capturer   = (*Device)(nil)
	_ runtime.HostMemory = (*Device)(nil)
)

// New returns a device with empty memory.
func New(options Options) *Device {
	if options.ComputeMajor == 0 {
		options.ComputeMajor = 9
	}
	if options.Memory == 0 {
		options.Memory = 8 << 30
	}
	if options.Workers <= 0 {
		options.Workers = goruntime.GOMAXPROCS(0)
	}
	if options.MaxInstructions == 0 {
		options.MaxInstructions = 1 << 31
	}
	return &Device{options: options, memory: memory{limit: options.Memory, next: globalBase}, streams: 1}
}

// sharedPerBlock is what a block may use after opting in, in bytes.
func (d *Device) sharedPerBlock() int {
	switch {
	case d.options.ComputeMajor >= 9:
		return 227 << 10
	case d.options.ComputeMajor == 8 && d.options.ComputeMinor == 0:
		return 163 << 10
	}
	return 99 << 10
}

// multiprocessors is that of the A100 or the H100, whatever this machine has, so that nothing
// that looks at it depends on the machine.
func (d *Device) multiprocessors() int {
	if d.options.ComputeMajor >= 9 {
		return 132
	}
	return 108
}

// Properties implements runtime.Device.
func (d *Device) Properties() runtime.Properties {
	return runtime.Properties{
		Name: "weft emulator", ComputeMajor: d.options.ComputeMajor, ComputeMinor: d.options.ComputeMinor,
		Multiprocessors: d.multiprocessors(), SharedPerBlock: d.sharedPerBlock(), Memory: d.options.Memory,
	}
}

// Instructions is the number of warp instructions that the device has executed.
func (d *Device) Instructions() int64 { return d.total }

// Alloc implements runtime.Device.
func (d *Device) Alloc(size int64) (runtime.Pointer, error) {
	a, err := d.memory.alloc(size)
	if err != nil {
		return 0, err
	}
	return runtime.Pointer(a.base), nil
}

// Free implements runtime.Device.
func (d *Device) Free(p runtime.Pointer) error { return d.memory.free(p) }

// Upload implements runtime.Device.
func (d *Device) Upload(dst runtime.Pointer, src []byte) error {
	if d.capture != nil {
		return fmt.Errorf("emulator: upload during a capture")
	}
	a, offset, err := d.memory.find(uint64(dst), int64(len(src)))
	if err != nil {
		return fmt.Errorf("emulator: upload: %w", err)
	}
	copy(a.data[offset:], src)
	a.init.set(offset, offset+int64(len(src)))
	return nil
}

// Download implements runtime.Device. Bytes that nobody wrote are an error.
func (d *Device) Download(dst []byte, src runtime.Pointer) error {
	if err := d.Synchronize(); err != nil {
		return err
	}
	a, offset, err := d.memory.find(uint64(src), int64(len(dst)))
	if err != nil {
		return fmt.Errorf("emulator: download: %w", err)
	}
	if bad := a.init.firstUnset(offset, offset+int64(len(dst))); bad >= 0 {
		return fmt.Errorf("emulator: download of %d bytes at 0x%x: byte %d was never written", len(dst), uint64(src), bad-offset)
	}
	copy(dst, a.data[offset:])
	return nil
}

// Host implements runtime.HostMemory.
func (d *Device) Host(at runtime.Pointer, size int64, access runtime.Access) ([]byte, error) {
	if d.capture != nil {
		return nil, fmt.Errorf("emulator: access of the host during a capture")
	}
	a, offset, err := d.memory.find(uint64(at), size)
	if err != nil {
		return nil, fmt.Errorf("emulator: access of the host: %w", err)
	}
	if access&runtime.Read != 0 {
		if bad := a.init.firstUnset(offset, offset+size); bad >= 0 {
			return nil, fmt.Errorf("emulator: access of the host to %d bytes at 0x%x: byte %d was never written", size, uint64(at), bad-offset)
		}
	}
	if access&runtime.Write != 0 {
		a.init.set(offset, offset+size)
	}
	return a.data[offset : offset+size : offset+size], nil
}

// Load implements runtime.Device.
func (d *Device) Load(image []byte) (runtime.Module, error) {
	m, err := newModule(string(image), &d.memory)
	if err != nil {
		return nil, err
	}
	if err := d.checkTarget(m.parsed.Targets); err != nil {
		m.release(&d.memory)
		return nil, err
	}
	m.device = d
	return m, nil
}

// checkTarget refuses what a driver would refuse: PTX for a newer device, or for the special
// features of another one.
func (d *Device) checkTarget(targets []string) error {
	have := d.options.ComputeMajor*10 + d.options.ComputeMinor
	for _, target := range targets {
		name, ok := strings.CutPrefix(target, "sm_")
		if !ok {
			continue
		}
		digits := strings.TrimRight(name, "af")
		want, err := strconv.Atoi(digits)
		if err != nil || want > have || digits != name && want != have {
			return fmt.Errorf("emulator: PTX for %s does not run on compute capability %d.%d", target, d.options.ComputeMajor, d.options.ComputeMinor)
		}
	}
	return nil
}

// Copy implements runtime.Device. Bytes that were never written stay so.
func (d *Device) Copy(s runtime.Stream, dst, src runtime.Pointer, size int64) error {
	to, toOffset, err := d.memory.find(uint64(dst), size)
	if err != nil {
		return fmt.Errorf("emulator: copy to: %w", err)
	}
	from, fromOffset, err := d.memory.find(uint64(src), size)
	if err != nil {
		return fmt.Errorf("emulator: copy from: %w", err)
	}
	if dst < src+runtime.Pointer(size) && src < dst+runtime.Pointer(size) && size > 0 {
		return fmt.Errorf("emulator: copy of %d bytes from 0x%x to 0x%x overlaps", size, uint64(src), uint64(dst))
	}
	return d.enqueue(s, func() error {
		copy(to.data[toOffset:toOffset+size], from.data[fromOffset:])
		to.init.copyFrom(toOffset, from.init, fromOffset, size)
		return nil
	})
}

// Fill implements runtime.Device.
func (d *Device) Fill(s runtime.Stream, dst runtime.Pointer, pattern []byte, count int64) error {
	if !slices.Contains([]int{1, 2, 4, 8}, len(pattern)) || count < 0 || count > d.options.Memory {
		return fmt.Errorf("emulator: fill of %d patterns of %d bytes", count, len(pattern))
	}
	if uint64(dst)%uint64(len(pattern)) != 0 {
		return fmt.Errorf("emulator: fill at 0x%x with %d bytes is misaligned", uint64(dst), len(pattern))
	}
	size := count * int64(len(pattern))
	a, offset, err := d.memory.find(uint64(dst), size)
	if err != nil {
		return fmt.Errorf("emulator: fill: %w", err)
	}
	pattern = slices.Clone(pattern)
	return d.enqueue(s, func() error {
		data := a.data[offset : offset+size]
		for done := copy(data, pattern); done < len(data); done *= 2 {
			copy(data[done:], data[:done])
		}
		a.init.set(offset, offset+size)
		return nil
	})
}

// Synchronize implements runtime.Device. After an error has been reported, work goes on.
func (d *Device) Synchronize() error {
	if d.capture != nil {
		return fmt.Errorf("emulator: synchronization during a capture")
	}
	err := d.failure
	d.failure = nil
	return err
}

// Close implements runtime.Device.
func (d *Device) Close() error {
	if d.closed {
		return fmt.Errorf("emulator: device closed twice")
	}
	d.closed = true
	d.memory.blocks = nil
	return nil
}
