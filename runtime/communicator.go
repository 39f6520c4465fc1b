package runtime

import (
	"context"

	"weft/ir"
)

// Communicator carries the collectives of one rank. The ranks of a run issue the same collectives
// in the same order; each call is the part of one rank. A Communicator is used from the goroutine of its
// rank, but for Abort, which anybody may call.
type Communicator interface {
	// Collective enqueues a collective after the work on a stream of the rank's device; work enqueued
	// later comes after it. It may return before the collective has run. The error of one that fails
	// or does not finish in time is a diagnostic that names the ranks that are missing.
	Collective(ctx context.Context, s Stream, c Collective) error
	// Abort ends collectives that wait, here and on the other ranks, with a cause.
	Abort(cause error)
	Close() error
}

// Gatherer is a Communicator of a process among others, which can bring what the ranks have to rank 0.
type Gatherer interface {
	// Gather gives rank 0 the bytes of all ranks, in their order, and the others nothing. All ranks
	// call it at the same place, with as many bytes.
	Gather(ctx context.Context, part []byte) ([][]byte, error)
}

// WindowCommunicator is a Communicator that can make windows: memory of this rank's device that all ranks reach. It
// carries collectives between such memory faster.
type WindowCommunicator interface {
	Communicator
	// Windows tells whether the run can have windows. All ranks say the same.
	Windows() bool
	// Window allocates size bytes as Device.Alloc does, and makes them a window. All ranks call it at the same
	// place; layout sums up where in the memory their collectives work. Where the ranks differ in that or in the size,
	// or one of them has no such memory, none gets any: 0.
	Window(size int64, layout uint64) (Pointer, error)
	// CloseWindow gives the memory back. The device must be idle on it. The other ranks need not come.
	CloseWindow(Pointer) error
}

// Collective is a collective of a plan with its memory, as one rank issues it.
type Collective struct {
	Kind     string // plan.Collective.Kind: all_reduce, ...
	Axes     []string
	Group    []int64 // the ranks that take part, by position
	Position int64   // of this rank in Group
	DType    ir.DType
	Combine  ir.Combine // all_reduce and reduce_scatter
	From, To Pointer
	FromSize int64 // bytes
	ToSize   int64
	Pairs    [][2]int64 // collective_permute: source and target positions
	Sequence int64      // counts the collectives that this rank has issued, from 1
	Async    bool       // work that is enqueued later may run beside it
	Step     int        // its number in the plan
	Entry    string
	Label    string // where it came from, for reports
}
