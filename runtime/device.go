// Package runtime executes launch plans on devices. It knows two interfaces, Device and
// Communicator; the emulator, CUDA and the communicators implement them, and everything that
// decides anything is shared above them.
package runtime

import "time"

// Pointer is an address in a device's global memory. Zero is never a valid allocation.
type Pointer uint64

// Device is one GPU, real or emulated. A Device is used from one goroutine at a time.
//
// Streams order work: operations on one stream run in issue order, operations on different
// streams are ordered only by events. Stream 0 exists from the start.
type Device interface {
	// Properties describes the device; they do not change.
	Properties() Properties
	// Alloc returns size bytes of uninitialised global memory aligned to 256 bytes.
	Alloc(size int64) (Pointer, error)
	// Free gives an allocation back. The device must be idle on it.
	Free(Pointer) error
	// Upload copies host bytes to device memory and returns when they are there.
	Upload(dst Pointer, src []byte) error
	// Download waits for all streams and copies device memory to the host.
	Download(dst []byte, src Pointer) error
	// Load makes the kernels of one PTX text (or cubin) available.
	Load(image []byte) (Module, error)
	// Launch enqueues one kernel.
	Launch(Stream, Launch) error
	// Copy enqueues a device to device copy of size bytes; ranges must not overlap.
	Copy(s Stream, dst, src Pointer, size int64) error
	// Fill enqueues writing count repetitions of the pattern (1, 2, 4 or 8 bytes) to dst.
	Fill(s Stream, dst Pointer, pattern []byte, count int64) error
	// NewStream returns another stream.
	NewStream() (Stream, error)
	// Record marks the present end of s; Wait makes s wait for a mark.
	Record(s Stream) (Event, error)
	Wait(s Stream, e Event) error
	// Synchronize waits for all streams and reports the first error of any work on them.
	Synchronize() error
	Close() error
}

// Capturer is a Device that can record the work enqueued between BeginCapture and EndCapture
// and enqueue it again as a whole. Recorded work does not run while it is recorded.
type Capturer interface {
	BeginCapture(Stream) error
	EndCapture(Stream) (Graph, error)
}

// Marker is a Device that notes when its streams reach a point, in recorded work too.
type Marker interface {
	// Mark notes when s reaches its present end. Inside a capture of s the mark is recorded: the time is taken
	// anew whenever the work runs.
	Mark(s Stream) (Mark, error)
	// Between is the time from one mark to another, as they were reached last. The device must be idle on
	// both.
	Between(from, to Mark) (time.Duration, error)
	// Unmark gives marks up. Work that they were recorded with must not run again.
	Unmark(marks ...Mark)
}

// Mark is a handle given out by a Marker, never 0.
type Mark int64

// HostMemory is a Device whose memory the host can touch in place.
type HostMemory interface {
	// Host gives size bytes of device memory, for what access says, until the memory is freed.
	// The device must be idle on them. Bytes to be read must have been written; bytes to be written
	// count as that.
	Host(at Pointer, size int64, access Access) ([]byte, error)
}

// Graph is recorded work. Replay enqueues it on a stream.
type Graph interface {
	Replay(Stream) error
	Close() error
}

// Properties of a device.
type Properties struct {
	Name            string // "NVIDIA H200", "weft emulator"
	ComputeMajor    int    // 9 for sm_90
	ComputeMinor    int    // 0
	Multiprocessors int
	SharedPerBlock  int   // bytes one block may use after opting in
	Memory          int64 // bytes of global memory
	DriverVersion   int   // CUDA's number, 13000 for CUDA 13.0; 0 without a driver
}

// Stream and Event are handles given out by a Device.
type (
	Stream int
	Event  int
)

// Module holds loaded kernels.
type Module interface {
	// Kernel finds an entry by name. The error names the entries that exist.
	Kernel(name string) (Kernel, error)
	Close() error
}

// Kernel is a loaded entry, valid for the device that loaded it.
type Kernel interface{ Name() string }

// Launch is one kernel launch.
type Launch struct {
	Kernel Kernel
	Grid   [3]int // blocks
	Block  [3]int // threads
	Shared int    // bytes of dynamic shared memory
	Args   []Arg  // in the order of the entry's parameters
	Label  string // what the kernel computes and where it came from, for messages
}

// ArgKind says how an argument is passed.
type ArgKind uint8

const (
	ArgPointer   ArgKind = iota // 8 bytes, an address
	ArgI32                      // 4 bytes
	ArgI64                      // 8 bytes
	ArgF32                      // 4 bytes
	ArgF64                      // 8 bytes
	ArgTensorMap                // TensorMapSize bytes, which the device makes of Map
)

// Access says what a kernel may do with the memory behind a pointer argument.
type Access uint8

// The accesses that a kernel may make, which combine as bits.
const (
	Read      Access = 1 << iota // the kernel reads it
	Write                        // the kernel writes it
	Discard                      // its old contents are dead: uninitialised when the kernel starts
	ReadWrite = Read | Write
)

// Arg is one kernel argument. For a pointer, Size is the extent in bytes that the kernel may
// touch, starting at Bits: the emulator rejects any access outside the extents of the launch. A
// tensor map has the address of its first element, aligned to 16 bytes, the extent that may be
// touched from there, and Access Read, or Write for copies from shared memory.
type Arg struct {
	Kind   ArgKind
	Bits   uint64     // the value, in the low bits
	Size   int64      // bytes, pointers and tensor maps only
	Access Access     // pointers and tensor maps only
	Map    *TensorMap // tensor maps only; not to be changed once it was launched with
}
