package emu

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"weft/codegen/ptx"
)

// cluster is the blocks that run together, warp by warp in turn, each with its own shared memory:
// one, unless the kernel has .reqnctapercluster.
type cluster struct {
	*launchState
	index  int64
	blocks []*worker // by rank
	passed uint32    // times that its barrier has let all go on
	copies []*bulkCopy
	total  int64 // warp instructions
}

// maxCluster is how many blocks a cluster has on every device that has clusters.
const maxCluster = 8

func newCluster(s *launchState) *cluster {
	c := &cluster{launchState: s}
	for rank := range s.clusterSize() {
		w := newWorker(s, rank)
		w.cluster = c
		for i := range w.warps {
			for _, sr := range s.kernel.specials {
				w.fillSpecial(&w.warps[i], sr)
			}
		}
		c.blocks = append(c.blocks, w)
	}
	return c
}

// runAll takes clusters in order until none is left or a lower one has failed.
func (c *cluster) runAll() {
	for {
		index := c.next.Add(1) - 1
		if index >= c.blockCount/int64(len(c.blocks)) || index > c.firstFailure.Load() {
			break
		}
		c.index = index
		if fault := c.run(); fault != nil {
			c.report(index, fault)
		}
		for _, w := range c.blocks {
			c.total += w.executed
		}
	}
	c.instructions.Add(c.total)
}

func (c *cluster) run() *Fault {
	c.passed, c.copies = 0, c.copies[:0]
	for _, w := range c.blocks {
		w.start()
	}
	for {
		progress := false
		for _, w := range c.blocks {
			ran, fault := w.stepAll()
			if fault != nil {
				return fault
			}
			progress = progress || ran
		}
		if progress {
			continue
		}
		released, fault := c.release()
		if fault != nil {
			return fault
		}
		if !released {
			return c.finish()
		}
	}
}

// release lets some warp go on when none can: past a barrier, or else by landing a copy.
func (c *cluster) release() (bool, *Fault) {
	released := false
	for _, w := range c.blocks {
		passed, fault := w.releaseBarriers()
		if fault != nil {
			return false, fault
		}
		released = released || passed
	}
	if released || c.releaseBarrier() {
		return true, nil
	}
	return c.landAwaited()
}

// finish looks at what the blocks leave when none of their warps can go on.
func (c *cluster) finish() *Fault {
	if fault := c.checkAllExited(); fault != nil {
		return fault
	}
	for _, w := range c.blocks {
		w.leaked.Add(w.unwaited())
		if fault := w.checkProducts(); fault != nil {
			return fault
		}
	}
	return nil
}

// checkAllExited reports a deadlock if a warp still waits though nobody can run.
func (c *cluster) checkAllExited() *Fault {
	var lines []string
	var block *worker
	var first *warp
	done, count := 0, 0
	for _, w := range c.blocks {
		for i := range w.warps {
			wp := &w.warps[i]
			count++
			if wp.state == exited {
				done++
				continue
			}
			if first == nil {
				block, first = w, wp
			}
			name := fmt.Sprintf("warp %d", wp.index)
			if len(c.blocks) > 1 {
				name = fmt.Sprintf("block %s warp %d", coordinates(w.blockAt), wp.index)
			}
			lines = append(lines, fmt.Sprintf("%s at line %d (%s)", name, wp.waitingAt.source.Line, w.waitsFor(wp)))
		}
	}
	if first == nil {
		return nil
	}
	const shown = 8
	if len(lines) > shown {
		lines = append(slices.Clone(lines[:shown]), fmt.Sprintf("%d more", len(lines)-shown))
	}
	return block.fault(Deadlock, first, 0, first.waitingAt, "%d of %d warps have exited; waiting: %s", done, count, strings.Join(lines, ", "))
}

// waitsFor says what a warp waits for.
func (w *worker) waitsFor(wp *warp) string {
	switch wp.state {
	case waitingPhase:
		return w.describeWait(wp)
	case waitingCluster:
		return "the barrier of the cluster"
	}
	return fmt.Sprintf("barrier %d, %s", wp.barrier, countName(wp.threads))
}

// exited tells whether no warp of the block is left.
func (w *worker) exited() bool {
	return !slices.ContainsFunc(w.warps, func(wp warp) bool { return wp.state != exited })
}

// clusterBarrier decodes barrier.cluster.arrive and wait.
func (d *decoder) clusterBarrier(in *instruction) error {
	in.op, in.extra = opSpecial, &extra{}
	switch name := strings.TrimSuffix(strings.Join(d.in.Modifiers, "."), ".aligned"); name {
	case "cluster.arrive", "cluster.arrive.release":
		in.extra.run = func(w *worker, wp *warp, in *instruction, mask uint32) *Fault {
			fault := w.arriveCluster(wp, in, mask)
			w.publish(wp)
			return fault
		}
	case "cluster.arrive.relaxed":
		in.extra.run = (*worker).arriveCluster
	case "cluster.wait", "cluster.wait.acquire":
		in.extra.run = (*worker).waitCluster
	default:
		return d.unsupported("this form of barrier.cluster")
	}
	return d.operands(0)
}

func (w *worker) arriveCluster(wp *warp, in *instruction, mask uint32) *Fault {
	if fault := w.wholeBarrier(wp, in, mask); fault != nil {
		return fault
	}
	if wp.arrived {
		return w.fault(BarrierDivergence, wp, bits.TrailingZeros32(mask), in, "the warp has arrived at the barrier of the cluster already, without waiting there")
	}
	wp.arrived, wp.passed = true, w.cluster.passed
	return nil
}

func (w *worker) waitCluster(wp *warp, in *instruction, mask uint32) *Fault {
	if fault := w.wholeBarrier(wp, in, mask); fault != nil {
		return fault
	}
	if !wp.arrived {
		return w.fault(BarrierDivergence, wp, bits.TrailingZeros32(mask), in, "the warp has not arrived at the barrier of the cluster")
	}
	if wp.passed != w.cluster.passed {
		wp.arrived = false
		return nil
	}
	wp.state, wp.waitingAt = waitingCluster, in
	return nil
}

// releaseBarrier lets the warps pass that wait at the cluster's barrier, if all are there.
func (c *cluster) releaseBarrier() bool {
	some := false
	for _, w := range c.blocks {
		for i := range w.warps {
			wp := &w.warps[i]
			there := wp.arrived && wp.passed == c.passed
			if !there && wp.state != exited {
				return false
			}
			some = some || there
		}
	}
	if !some {
		return false
	}
	c.passed++
	for _, w := range c.blocks {
		w.publishToCluster()
		for i := range w.warps {
			if wp := &w.warps[i]; wp.state == waitingCluster {
				wp.state, wp.arrived = ready, false
			}
		}
	}
	return true
}

// rankShift is where the rank of a block in its cluster stands in an address of its shared memory:
// above the offset in the block, also in the addresses that the block itself has of its variables.
const rankShift = 24

// mapAddress decodes mapa.shared::cluster.u32 d, a, rank.
func (d *decoder) mapAddress(in *instruction) error {
	if name := strings.Join(d.in.Modifiers, "."); name != "shared::cluster.u32" {
		return d.unsupported("this form of mapa")
	}
	in.op, in.extra = opSpecial, &extra{run: (*worker).mapAddress}
	return d.sources(in, ptx.B32, ptx.B32, ptx.U32)
}

func (w *worker) mapAddress(wp *warp, in *instruction, mask uint32) *Fault {
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		address, rank := wp.r32[in.a][lane], wp.r32[in.b][lane]
		if rank >= uint32(len(w.cluster.blocks)) {
			return w.fault(OutOfBounds, wp, lane, in, "rank %d in a cluster of %d blocks", rank, len(w.cluster.blocks))
		}
		block, at := w.locate(uint64(address))
		if block == nil || at >= uint64(len(block.shared.data)) {
			return w.fault(OutOfBounds, wp, lane, in, "address 0x%x is not in the shared memory of a block, which has %d bytes", address, len(w.shared.data))
		}
		w.discard32[lane] = uint32(at) | rank<<rankShift
	}
	blend32(&wp.r32[in.d], &w.discard32, mask)
	return nil
}

// locate finds the block and the place in its shared memory of an address of the cluster's.
func (w *worker) locate(address uint64) (*worker, uint64) {
	if rank := address >> rankShift; rank < uint64(len(w.cluster.blocks)) {
		return w.cluster.blocks[rank], address & (1<<rankShift - 1)
	}
	return nil, 0
}

// setRegisters decodes setmaxnreg: registers are not counted here.
func (d *decoder) setRegisters(in *instruction) error {
	if name := strings.Join(d.in.Modifiers, "."); name != "inc.sync.aligned.u32" && name != "dec.sync.aligned.u32" {
		return d.unsupported("this form of setmaxnreg")
	}
	if err := d.operands(1); err != nil {
		return err
	}
	const least, most, step = 24, 256, 8
	if o := d.in.Operands[0]; o.Kind != ptx.OperandInteger || o.Bits < least || o.Bits > most || o.Bits%step != 0 {
		return d.unsupported("the number of registers is a multiple of %d from %d to %d", step, least, most)
	}
	in.op, in.extra = opSpecial, &extra{run: (*worker).wholeWarp}
	return nil
}
