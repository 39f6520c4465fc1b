package emu

import (
	"fmt"
	"math/bits"
	"strings"

	"weft/codegen/ptx"
	"weft/runtime"
)

// mbarrier is a barrier in shared memory. A phase of it ends when as many threads have arrived as
// it expects, and as many bytes of copies are there. Its 8 bytes are in flight as long as the block
// runs, so that every other access to them is seen.
type mbarrier struct {
	at      uint64
	count   uint32 // arrivals that a phase expects
	pending uint32 // those that are missing
	bytes   int64  // that are expected but not there yet; those that came early count below zero
	phase   uint32 // phases that have ended
	line    int    // where it was initialised,
	warp    int    // and by whom
	fenced  bool   // copies and other blocks may use it, once they know
	visible visibility
}

// visibility says who may use an mbarrier.
type visibility uint8

const (
	visibleToWarp visibility = iota
	visibleToBlock
	visibleToCluster
)

const (
	mbarrierBytes = 8
	maxArrivals   = 1<<20 - 1
	maxPending    = 1<<20 - 1 // bytes
)

// mbarrierInstruction decodes mbarrier.
func (d *decoder) mbarrierInstruction(in *instruction) error {
	d.k.bulk, d.k.async = true, true
	in.op, in.extra = opSpecial, &extra{}
	name := strings.Join(d.in.Modifiers, ".")
	operands := d.in.Operands
	switch name {
	case "init.shared::cta.b64", "init.shared.b64":
		in.extra.run = (*worker).initBarrier
	case "arrive.shared::cta.b64", "arrive.shared.b64", "arrive.release.cta.shared::cta.b64":
		in.extra.run = (*worker).arrive
	case "arrive.expect_tx.shared::cta.b64", "arrive.expect_tx.shared.b64", "arrive.expect_tx.release.cta.shared::cta.b64":
		in.extra.run = (*worker).arrive
		in.extra.width = 1 // it expects bytes
	case "arrive.release.cluster.shared::cluster.b64", "arrive.shared::cluster.b64":
		in.extra.run = (*worker).arriveRemote
	case "try_wait.parity.shared::cta.b64", "try_wait.parity.shared.b64", "try_wait.parity.acquire.cta.shared::cta.b64", "try_wait.parity.acquire.cluster.shared::cta.b64":
		in.extra.run = (*worker).waitPhase
	default:
		return d.unsupported("this form of mbarrier")
	}
	in.access = d.plainAccess(ptx.Shared, mbarrierBytes)
	if len(operands) < 1 {
		return d.operands(2)
	}
	switch d.in.Modifiers[0] {
	case "arrive":
		if operands[0].Kind != ptx.OperandSink {
			return d.unsupported("the state of an mbarrier is not kept")
		}
		operands = operands[1:]
	case "try_wait":
		var err error
		if in.d, err = d.result(&operands[0], 1); err != nil {
			return err
		}
		operands = operands[1:]
	}
	values := 1
	if d.in.Modifiers[0] == "arrive" && in.extra.width == 0 {
		values = 0
	}
	if len(operands) != 1+values {
		return d.unsupported("%d operands", len(d.in.Operands))
	}
	if values == 1 {
		var err error
		if in.b, err = d.operand(&operands[1], ptx.U32); err != nil {
			return err
		}
	}
	return d.addressOperand(in.access, &operands[0])
}

// findBarrier is the mbarrier at a place, nil if there is none.
func (w *worker) findBarrier(at uint64) *mbarrier {
	for i := range w.mbarriers {
		if w.mbarriers[i].at == at {
			return w.mbarriers[i]
		}
	}
	return nil
}

func (w *worker) initBarrier(wp *warp, in *instruction, mask uint32) *Fault {
	var p places
	if _, fault := w.resolve(wp, in, mask, runtime.Write, &p); fault != nil {
		return fault
	}
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		at, count := p.offset[lane], wp.r32[in.b][lane]
		if b := w.findBarrier(at); b != nil {
			return w.fault(BadBarrier, wp, lane, in, "there is an mbarrier at offset %d of shared memory already, since line %d", at, b.line)
		}
		if fault := w.checkInFlight(wp, in, 1<<lane, &p, runtime.Write); fault != nil {
			return fault
		}
		if count < 1 || count > maxArrivals {
			return w.fault(BadBarrier, wp, lane, in, "an mbarrier that expects %d arrivals: 1 to %d are possible", count, maxArrivals)
		}
		w.mbarriers = append(w.mbarriers, &mbarrier{at: at, count: count, pending: count, line: in.source.Line, warp: wp.index})
		w.inFlight[at>>6] |= (1<<mbarrierBytes - 1) << (at & 63)
		w.flights++
	}
	return nil
}

// useBarrier finds the mbarrier that a lane names, and checks that the lane may know of it.
func (w *worker) useBarrier(wp *warp, in *instruction, lane int, block *worker, at uint64, async bool) (*mbarrier, *Fault) {
	b := block.findBarrier(at)
	where := fmt.Sprintf("offset %d of shared memory", at)
	need := visibleToBlock
	if block != w {
		where += fmt.Sprintf(" of block %s", coordinates(block.blockAt))
		async, need = true, visibleToCluster
	} else if b != nil && b.warp == wp.index {
		need = visibleToWarp
	}
	switch {
	case block != w && block.exited():
		return nil, w.fault(BadBarrier, wp, lane, in, "%s: the block has exited", where)
	case b == nil:
		return nil, w.fault(BadBarrier, wp, lane, in, "there is no mbarrier at %s", where)
	case async && !b.fenced:
		return nil, w.fault(Unfenced, wp, lane, in, "the mbarrier at %s: warp %d has executed no fence.mbarrier_init since it initialised it at line %d", where, b.warp, b.line)
	case b.visible < need:
		scope := "barrier"
		if need == visibleToCluster {
			scope = "barrier of the cluster"
		}
		return nil, w.fault(BadBarrier, wp, lane, in, "the mbarrier at %s: there was no %s since warp %d initialised it at line %d", where, scope, b.warp, b.line)
	}
	return b, nil
}

// fenceBarriers executes fence.mbarrier_init.
func (w *worker) fenceBarriers(wp *warp, _ *instruction, _ uint32) *Fault {
	for _, b := range w.mbarriers {
		if b.warp == wp.index {
			b.fenced = true
		}
	}
	return nil
}

// arrive executes mbarrier.arrive of an mbarrier of this block, with or without expect_tx. Then the
// other warps have their turn, so that they overwrite at once what this one must no longer read.
func (w *worker) arrive(wp *warp, in *instruction, mask uint32) *Fault {
	var p places
	if _, fault := w.resolve(wp, in, mask, runtime.Write, &p); fault != nil {
		return fault
	}
	w.publish(wp)
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		b, fault := w.useBarrier(wp, in, lane, w, p.offset[lane], false)
		if fault != nil {
			return fault
		}
		if in.extra.width != 0 {
			b.bytes += int64(wp.r32[in.b][lane])
			if b.bytes > maxPending {
				return w.fault(BadBarrier, wp, lane, in, "the mbarrier at offset %d expects %d bytes, %d are possible", b.at, b.bytes, maxPending)
			}
		}
		if fault := w.arriveAt(wp, in, lane, b); fault != nil {
			return fault
		}
	}
	wp.state = yielding
	return nil
}

// arriveRemote executes mbarrier.arrive by an address of the cluster's.
func (w *worker) arriveRemote(wp *warp, in *instruction, mask uint32) *Fault {
	var addresses lanes64
	w.addresses(wp, in.access, &addresses)
	w.publish(wp)
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		block, at := w.locate(addresses[lane])
		if block == nil {
			return w.fault(OutOfBounds, wp, lane, in, "address 0x%x is in no block of the cluster", addresses[lane])
		}
		b, fault := w.useBarrier(wp, in, lane, block, at, false)
		if fault != nil {
			return fault
		}
		if fault := w.arriveAt(wp, in, lane, b); fault != nil {
			return fault
		}
	}
	wp.state = yielding
	return nil
}

func (w *worker) arriveAt(wp *warp, in *instruction, lane int, b *mbarrier) *Fault {
	if b.pending == 0 {
		return w.fault(BadBarrier, wp, lane, in, "phase %d of the mbarrier at offset %d expects %d arrivals, this is one more; it still waits for %d bytes", b.phase, b.at, b.count, b.bytes)
	}
	b.pending--
	if b.pending == 0 && b.bytes < 0 {
		return w.fault(BadBarrier, wp, lane, in, "all have arrived at phase %d of the mbarrier at offset %d, and %d bytes more are there than it expects", b.phase, b.at, -b.bytes)
	}
	b.advance()
	return nil
}

// advance ends the phase if nothing is missing.
func (b *mbarrier) advance() {
	if b.pending == 0 && b.bytes == 0 {
		b.phase++
		b.pending = b.count
	}
}

// phaseWait is what a warp waits for at mbarrier.try_wait.
type phaseWait struct {
	in       *instruction
	barriers [warpSize]*mbarrier // by lane
	mask     uint32              // all lanes
	waiting  uint32              // those whose phase has not ended
}

// waitPhase executes mbarrier.try_wait.parity. The hardware may give up after a while, this does
// not: warps that wait cost nothing here.
func (w *worker) waitPhase(wp *warp, in *instruction, mask uint32) *Fault {
	var p places
	if _, fault := w.resolve(wp, in, mask, runtime.Read, &p); fault != nil {
		return fault
	}
	if wp.wait == nil {
		wp.wait = &phaseWait{}
	}
	wait := wp.wait
	wait.in, wait.mask, wait.waiting = in, mask, mask
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		b, fault := w.useBarrier(wp, in, lane, w, p.offset[lane], false)
		if fault != nil {
			return fault
		}
		if parity := wp.r32[in.b][lane]; parity > 1 {
			return w.fault(BadBarrier, wp, lane, in, "parity %d of a phase, which is 0 or 1", parity)
		}
		wait.barriers[lane] = b
	}
	wp.state, wp.waitingAt = waitingPhase, in
	w.poll(wp)
	return nil
}

// poll lets a warp go on if the phases have ended that its lanes wait for.
func (w *worker) poll(wp *warp) {
	wait := wp.wait
	for lanes := wait.waiting; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		if b := wait.barriers[lane]; b.phase&1 != wp.r32[wait.in.b][lane] {
			wait.waiting &^= 1 << lane
			w.observe(wp, b)
		}
	}
	if wait.waiting == 0 {
		wp.writePredicate(wait.in.d, wait.mask, wait.mask)
		wp.state = ready
	}
}

// describeWait says what is missing at the mbarrier that a warp waits for.
func (w *worker) describeWait(wp *warp) string {
	lane := bits.TrailingZeros32(wp.wait.waiting)
	b := wp.wait.barriers[lane]
	missing := fmt.Sprintf("phase %d of the mbarrier at offset %d, %d of %d arrivals", b.phase, b.at, b.pending, b.count)
	if b.bytes < 0 {
		return fmt.Sprintf("%s are missing, %d bytes are there already", missing, -b.bytes)
	}
	return fmt.Sprintf("%s and %d bytes are missing", missing, b.bytes)
}

// publishBarriers makes the mbarriers that a warp has initialised usable by its block.
func (w *worker) publishBarriers(wp *warp) {
	for _, b := range w.mbarriers {
		if b.warp == wp.index && b.visible == visibleToWarp {
			b.visible = visibleToBlock
		}
	}
}

// publishToCluster is what passing the barrier of the cluster does.
func (w *worker) publishToCluster() {
	for _, b := range w.mbarriers {
		b.visible = visibleToCluster
	}
}
