package emu

import (
	"fmt"
	"strings"
)

// FaultKind classifies what a kernel did wrong.
type FaultKind uint8

// The kinds of faults.
const (
	OutOfBounds FaultKind = iota + 1
	Misaligned
	AccessDenied  // writes through Read, reads through Write
	Uninitialised // reads bytes that nobody has written
	BarrierDivergence
	Deadlock
	WarpDivergence // a warp-wide instruction whose lanes are not all there
	BudgetExceeded
	Trapped
	InFlight // touches bytes that an asynchronous copy may still be writing, or writes what a product may still be reading
	Unfenced // a warpgroup's product of what no fence has ordered before it
	BadDescriptor
	BadBarrier   // misuses an mbarrier, or touches it as data
	BadTensorMap // copies a box of what is no tensor map, or one of another rank
)

var faultNames = [...]string{
	OutOfBounds: "access out of bounds", Misaligned: "misaligned access", AccessDenied: "access not declared",
	Uninitialised: "read of uninitialised memory", BarrierDivergence: "barrier divergence", Deadlock: "deadlock",
	WarpDivergence: "warp divergence", BudgetExceeded: "instruction budget exceeded", Trapped: "trap",
	InFlight: "access to bytes in flight", Unfenced: "missing fence", BadDescriptor: "bad matrix descriptor",
	BadBarrier: "misuse of an mbarrier", BadTensorMap: "bad tensor map",
}

// String says in words what the kernel did.
func (k FaultKind) String() string { return faultNames[k] }

// Fault is an error of a running kernel. Of all blocks' faults, that of the lowest block is
// reported, so that the report does not depend on scheduling.
type Fault struct {
	Kind        FaultKind
	Kernel      string
	Label       string // Launch.Label
	Block       [3]int
	Thread      [3]int
	Line        int    // in the PTX text, 0 where no single instruction is at fault
	Instruction string // its text
	Address     uint64 // of a memory access, as the program sees it
	Size        int    // bytes of the access
	Argument    int    // index of the launch argument concerned, -1 if none is known
	Message     string
}

// Error says what is wrong, and where.
func (f *Fault) Error() string {
	var s strings.Builder
	fmt.Fprintf(&s, "emulator: %s: kernel %s", f.Kind, f.Kernel)
	if f.Label != "" {
		fmt.Fprintf(&s, " (%s)", f.Label)
	}
	fmt.Fprintf(&s, ", block %s, thread %s", coordinates(f.Block), coordinates(f.Thread))
	if f.Line > 0 {
		fmt.Fprintf(&s, ", PTX line %d: %q", f.Line, f.Instruction)
	}
	if f.Message != "" {
		fmt.Fprintf(&s, ": %s", f.Message)
	}
	return s.String()
}

func coordinates(c [3]int) string { return fmt.Sprintf("(%d,%d,%d)", c[0], c[1], c[2]) }

// UnsupportedError says that a kernel uses something that the emulator does not know.
type UnsupportedError struct {
	Kernel      string
	Line        int
	Instruction string
	Message     string
}

// Error says what is wrong, and where.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("emulator: kernel %s, PTX line %d: %q: %s", e.Kernel, e.Line, e.Instruction, e.Message)
}
