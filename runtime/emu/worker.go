package emu

import (
	"fmt"
	"math"
)

// worker runs blocks one after the other with its own registers and shared memory.
type worker struct {
	*launchState
	cluster     *cluster // of the block,
	rank        int      // and its place there
	warps       []warp
	shared      region // its base is the rank in the window of the cluster
	sharedReady bool   // all of it has been written: loads need no check
	blockAt     [3]int
	executed    int64 // warp instructions of this block
	discard32   lanes32
	discard64   lanes64
	arrived     map[uint32]int // bar.arrive: threads by barrier
	product     product
	flights     int      // lanes that have bytes in flight
	inFlight    []uint64 // bytes of shared memory that an asynchronous copy is about to write, one a bit
	reads       int      // products of warpgroups that may be reading, counted by warp
	readers     []uint32 // their number by chunk of shared memory
	unfenced    uint32   // warps that have written to shared memory since their last fence.proxy.async
	products    [][]productRead
	chunks      []uint32 // offsets of what a product reads
	mbarriers   []*mbarrier
	owners      []*bulkCopy // by chunk: the last copy of a box to it
	boxes       []*bulkCopy // those whose bytes are still marked
}

// warpState says why a warp does not run.
type warpState uint8

const (
	ready    warpState = iota
	yielding           // until the others had their turn
	waiting
	waitingPhase   // of an mbarrier
	waitingCluster // at its barrier
	exited
)

// divergence is what to do when the running lanes are done: the lanes of mask go on at pc and
// meet the ones below at meet (-1: never).
type divergence struct {
	pc, meet int32
	mask     uint32
}

// warp is 32 threads in lockstep.
type warp struct {
	index      int
	r32        []lanes32
	r64        []lanes64
	predicates []uint32
	divergence // of the running lanes
	stack      []divergence
	all        uint32 // lanes that exist
	alive      uint32 // lanes that have not exited
	state      warpState
	barrier    uint32 // while waiting
	threads    int    // count of the barrier, 0 for all
	waitingAt  *instruction
	async      *asyncState     // nil if the kernel has no asynchronous copies
	warpgroup  *warpgroupState // nil if nothing reads shared memory through the asynchronous proxy
	wait       *phaseWait      // nil before the first
	arrived    bool            // at the cluster's barrier, where it has not waited yet,
	passed     uint32          // and the barrier's passes then
}

func newWorker(s *launchState, rank int) *worker {
	k := s.kernel
	w := &worker{launchState: s, rank: rank, arrived: map[uint32]int{}}
	w.shared = region{base: uint64(rank) << rankShift, data: make([]byte, s.shared), init: newInitMap(int64(s.shared)), access: 3, checkRead: true, argument: -1, name: "shared memory"}
	w.warps = make([]warp, (s.threads+warpSize-1)/warpSize)
	for i := range w.warps {
		wp := &w.warps[i]
		wp.index = i
		wp.r32 = make([]lanes32, max(k.slots32, 1))
		wp.r64 = make([]lanes64, max(k.slots64, 1))
		wp.predicates = make([]uint32, max(k.predicates, 1))
		wp.all = math.MaxUint32
		if rest := s.threads - i*warpSize; rest < warpSize {
			wp.all = 1<<rest - 1
		}
		for _, c := range k.constants32 {
			fill32(&wp.r32[c.slot], c.value)
		}
		for _, c := range k.constants64 {
			fill64(&wp.r64[c.slot], c.value)
		}
		for _, a := range k.sharedAddresses {
			if address := w.shared.base + a.offset; a.wide {
				fill64(&wp.r64[a.slot], address)
			} else {
				fill32(&wp.r32[a.slot], uint32(address))
			}
		}
	}
	return w
}

// start makes the worker ready for its block of the cluster's present index.
func (w *worker) start() {
	k := w.kernel
	index, rank := w.cluster.index, w.rank
	for axis, n := range k.clusterBlocks {
		across := int64(w.grid[axis] / n)
		w.blockAt[axis] = int(index%across)*n + rank%n
		index, rank = index/across, rank/n
	}
	w.executed = 0
	w.sharedReady = len(w.shared.data) == 0
	clear(w.shared.init)
	clear(w.arrived)
	w.resetAsync()
	w.resetWarpgroups()
	w.resetBulk()
	for i := range w.warps {
		w.startWarp(&w.warps[i])
	}
}

// stepAll runs all warps that can go on for a while, and tells whether there was one.
func (w *worker) stepAll() (ran bool, fault *Fault) {
	for i := range w.warps {
		wp := &w.warps[i]
		switch wp.state {
		case waitingPhase:
			w.poll(wp)
		case yielding:
			wp.state = ready
		}
		if wp.state == ready {
			if fault := w.step(wp); fault != nil {
				return true, fault
			}
			ran = true
		}
	}
	return ran, nil
}

// startWarp resets a warp. Registers are cleared, so that a kernel that reads one before
// writing it behaves the same whatever ran before.
func (w *worker) startWarp(wp *warp) {
	k := w.kernel
	clear(wp.r32[:k.registers32])
	clear(wp.r64[:k.registers64])
	clear(wp.predicates)
	wp.divergence = divergence{pc: 0, meet: -1, mask: wp.all}
	wp.stack = wp.stack[:0]
	wp.alive = wp.all
	wp.state = ready
	wp.arrived = false
	for _, s := range k.specials {
		switch s.base { // the others stay the same for all blocks
		case "%ctaid":
			fill32(&wp.r32[s.slot], uint32(w.blockAt[s.axis]))
		case "%clusterid":
			fill32(&wp.r32[s.slot], uint32(w.blockAt[s.axis]/k.clusterBlocks[s.axis]))
		}
	}
}

// fillSpecial sets the lanes of a special register that is the same for all blocks.
func (w *worker) fillSpecial(wp *warp, s special) {
	d := &wp.r32[s.slot]
	for i := range d {
		var v int
		switch s.base {
		case "%tid":
			v = w.threadAt(wp.index*warpSize + i)[s.axis]
		case "%ntid":
			v = w.block[s.axis]
		case "%nctaid":
			v = w.grid[s.axis]
		case "%laneid":
			v = i
		case "%warpid":
			v = wp.index
		case "%nwarpid":
			v = len(w.warps)
		case "%nsmid":
			v = 1
		case "%lanemask_eq":
			v = 1 << i
		case "%lanemask_lt":
			v = 1<<i - 1
		case "%lanemask_le":
			v = 2<<i - 1
		case "%lanemask_gt":
			v = math.MaxUint32 &^ (2<<i - 1)
		case "%lanemask_ge":
			v = math.MaxUint32 &^ (1<<i - 1)
		case "%dynamic_smem_size":
			v = w.dynamic
		case "%total_smem_size":
			v = w.launchState.shared
		case "%nclusterid":
			v = w.grid[s.axis] / w.kernel.clusterBlocks[s.axis]
		case "%cluster_ctaid":
			v = w.rankAt()[s.axis]
		case "%cluster_nctaid":
			v = w.kernel.clusterBlocks[s.axis]
		case "%cluster_ctarank":
			v = w.rank
		case "%cluster_nctarank":
			v = w.clusterSize()
		}
		d[i] = uint32(v)
	}
}

// threadAt gives the coordinates of a thread of the block.
func (w *worker) threadAt(thread int) [3]int {
	return [3]int{thread % w.block[0], thread / w.block[0] % w.block[1], thread / w.block[0] / w.block[1]}
}

// rankAt gives the coordinates of the block in its cluster.
func (w *worker) rankAt() [3]int {
	n := w.kernel.clusterBlocks
	return [3]int{w.rank % n[0], w.rank / n[0] % n[1], w.rank / n[0] / n[1]}
}

// fault describes what lane i did wrong at an instruction.
func (w *worker) fault(kind FaultKind, wp *warp, lane int, in *instruction, format string, arguments ...any) *Fault {
	f := &Fault{
		Kind: kind, Kernel: w.kernel.name, Label: w.label, Block: w.blockAt, Thread: w.threadAt(wp.index*warpSize + lane),
		Argument: -1, Message: fmt.Sprintf(format, arguments...),
	}
	if in != nil && in.source != nil {
		f.Line, f.Instruction = in.source.Line, in.source.Text
	}
	return f
}

// releaseBarriers lets warps pass the barriers at which all expected threads have arrived.
func (w *worker) releaseBarriers() (bool, *Fault) {
	released := false
	for i := range w.warps {
		first := &w.warps[i]
		if first.state != waiting {
			continue
		}
		threads := w.arrived[first.barrier]
		for j := range w.warps {
			wp := &w.warps[j]
			if wp.state != waiting || wp.barrier != first.barrier {
				continue
			}
			if wp.threads != first.threads {
				return false, w.fault(BarrierDivergence, wp, 0, wp.waitingAt,
					"barrier %d is used with %s here and %s at line %d", wp.barrier, countName(wp.threads), countName(first.threads), first.waitingAt.source.Line)
			}
			threads += warpSize
		}
		expected := first.threads
		if expected == 0 {
			expected = len(w.warps) * warpSize
		}
		if threads < expected {
			continue
		}
		if threads > expected {
			return false, w.fault(BarrierDivergence, first, 0, first.waitingAt, "%d threads arrive at barrier %d, which expects %d", threads, first.barrier, expected)
		}
		w.pass(first.barrier)
		released = true
	}
	return released, nil
}

func countName(threads int) string {
	if threads == 0 {
		return "all threads"
	}
	return fmt.Sprintf("%d threads", threads)
}

// pass releases one barrier: reductions get their result.
func (w *worker) pass(barrier uint32) {
	var passing []*warp
	for i := range w.warps {
		if wp := &w.warps[i]; wp.state == waiting && wp.barrier == barrier {
			passing = append(passing, wp)
		}
	}
	reduceBarrier(passing)
	for _, wp := range passing {
		wp.state = ready
		w.publish(wp)
	}
	delete(w.arrived, barrier)
	if !w.sharedReady {
		w.sharedReady = w.shared.init.firstUnset(0, int64(len(w.shared.data))) < 0
	}
}

// reduceBarrier computes the result of bar.red over the warps that pass.
func reduceBarrier(passing []*warp) {
	count, total := 0, 0
	for _, wp := range passing {
		if in := wp.waitingAt; in.op == opBarrierReduce {
			for lane := range warpSize {
				if wp.alive&(1<<lane) != 0 {
					total++
					count += int((wp.predicates[in.c] ^ in.extra.flip) >> lane & 1)
				}
			}
		}
	}
	for _, wp := range passing {
		in := wp.waitingAt
		if in.op != opBarrierReduce {
			continue
		}
		switch in.extra.mode {
		case "popc":
			fill32(&wp.r32[in.d], uint32(count))
		case "and":
			wp.predicates[in.d] = -bit(count == total)
		case "or":
			wp.predicates[in.d] = -bit(count > 0)
		}
	}
}
