package emu

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"weft/codegen/ptx"
	"weft/runtime"
)

// Copies of boxes by the tensor memory accelerator. A copy is in flight from its start, and lands
// only when no warp of the cluster can go on without it; then its bytes count at its mbarrier. After
// that, a warp may touch them that has waited there, and after a barrier (or an arrival, or a fence)
// of such a warp everybody. So whoever does not wait as he must meets bytes in flight.

// bulkCopy is a copy to the shared memory of one block.
type bulkCopy struct {
	in       *instruction
	worker   *worker // of the thread that started it
	thread   [3]int
	tensor   *tensorMap
	at       [5]int64
	to       *worker
	place    uint64 // in its shared memory
	barrier  *mbarrier
	phase    uint32 // of the barrier at the start
	landed   bool
	released bool
	observed uint32 // warps of to that have waited for it
}

// tensorCopy holds the operands of a copy of a box to shared memory.
type tensorCopy struct {
	rank        int
	destination *memoryAccess
	barrier     *memoryAccess
	pointer     int32   // slot of the map's address
	coordinates []int32 // slots
	mask        int32   // slot of the blocks that get it, noSlot for one
}

// bulkInstruction decodes cp.async.bulk.
func (d *decoder) bulkInstruction(in *instruction) error {
	d.k.bulk = true
	name := strings.Join(d.in.Modifiers[2:], ".")
	rest, found := strings.CutPrefix(name, "tensor.")
	if !found || len(rest) < 3 || rest[0] < '1' || rest[0] > '5' || rest[1:3] != "d." {
		return d.unsupported("this form of cp.async.bulk")
	}
	rank := int(rest[0] - '0')
	switch rest[3:] {
	case "shared::cluster.global.mbarrier::complete_tx::bytes", "shared::cluster.global.tile.mbarrier::complete_tx::bytes":
		return d.tensorCopy(in, rank, false)
	case "shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster", "shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster":
		return d.tensorCopy(in, rank, true)
	}
	return d.unsupported("this form of cp.async.bulk.tensor")
}

// tensorCopy decodes cp.async.bulk.tensor to shared memory: [to], [map, {coordinates}], [mbarrier] {, mask}.
func (d *decoder) tensorCopy(in *instruction, rank int, multicast bool) error {
	o, want := d.in.Operands, 3
	if multicast {
		want = 4
	}
	if err := d.operands(want); err != nil {
		return err
	}
	c := &tensorCopy{rank: rank, mask: noSlot, destination: d.plainAccess(ptx.Shared, chunkBytes), barrier: d.plainAccess(ptx.Shared, mbarrierBytes)}
	if err := d.addressOperand(c.destination, &o[0]); err != nil {
		return err
	}
	if err := d.tensorOperand(&o[1], rank, &c.pointer, &c.coordinates); err != nil {
		return err
	}
	if err := d.addressOperand(c.barrier, &o[2]); err != nil {
		return err
	}
	if multicast {
		var err error
		if c.mask, err = d.operand(&o[3], ptx.U16); err != nil {
			return err
		}
	}
	in.access = c.destination
	in.extra.run = func(w *worker, wp *warp, in *instruction, mask uint32) *Fault {
		for lanes := mask; lanes != 0; lanes &= lanes - 1 {
			if fault := w.startTensorCopy(wp, in, bits.TrailingZeros32(lanes), c); fault != nil {
				return fault
			}
		}
		return nil
	}
	return nil
}

// tensorOperand decodes [map, {coordinates}].
func (d *decoder) tensorOperand(o *ptx.Operand, rank int, pointer *int32, coordinates *[]int32) error {
	if o.Kind != ptx.OperandAddress || len(o.Elements) != 2 || o.Offset != 0 || o.Elements[1].Kind != ptx.OperandVector || len(o.Elements[1].Elements) != rank {
		return d.unsupported("a tensor operand of %d dimensions is an address and as many coordinates", rank)
	}
	var err error
	if *pointer, err = d.operand(&o.Elements[0], ptx.U64); err != nil {
		return err
	}
	for i := range o.Elements[1].Elements {
		slot, err := d.operand(&o.Elements[1].Elements[i], ptx.S32)
		if err != nil {
			return err
		}
		*coordinates = append(*coordinates, slot)
	}
	return nil
}

// laneAddress is the address of one lane.
func (w *worker) laneAddress(wp *warp, a *memoryAccess, lane int) uint64 {
	var addresses lanes64
	w.addresses(wp, a, &addresses)
	return addresses[lane]
}

// startTensorCopy starts the copy of one lane, to one block or several.
func (w *worker) startTensorCopy(wp *warp, in *instruction, lane int, c *tensorCopy) *Fault {
	t, at, fault := w.box(wp, in, lane, c.rank, c.pointer, c.coordinates)
	if fault != nil {
		return fault
	}
	to, place := w.locate(w.laneAddress(wp, c.destination, lane))
	block, barrier := w.locate(w.laneAddress(wp, c.barrier, lane))
	if to == nil || block != to {
		return w.fault(OutOfBounds, wp, lane, in, "the bytes and their mbarrier are not in one block of the cluster")
	}
	if fault := w.checkSource(wp, in, lane, t, at); fault != nil {
		return fault
	}
	start := bulkCopy{in: in, worker: w, thread: w.threadAt(wp.index*warpSize + lane), tensor: t, at: at, place: place}
	if c.mask == noSlot {
		start.to = to
		return w.startBulk(wp, lane, start, barrier)
	}
	blocks := wp.r32[c.mask][lane]
	if blocks == 0 || to != w {
		return w.fault(OutOfBounds, wp, lane, in, "a copy to the blocks 0x%x, by an address of block %s", blocks, coordinates(to.blockAt))
	}
	for ; blocks != 0; blocks &= blocks - 1 {
		rank := bits.TrailingZeros32(blocks)
		if rank >= len(w.cluster.blocks) {
			return w.fault(OutOfBounds, wp, lane, in, "a copy to rank %d in a cluster of %d blocks", rank, len(w.cluster.blocks))
		}
		start.to = w.cluster.blocks[rank]
		if fault := w.startBulk(wp, lane, start, barrier); fault != nil {
			return fault
		}
	}
	return nil
}

// box finds the tensor map and the coordinates of a lane.
func (w *worker) box(wp *warp, in *instruction, lane, rank int, pointer int32, slots []int32) (*tensorMap, [5]int64, *Fault) {
	var at [5]int64
	address := wp.r64[pointer][lane]
	t := w.mapAt(address)
	if t == nil {
		return nil, at, w.noMap(wp, in, lane, address)
	}
	if len(t.Dims) != rank {
		return nil, at, w.fault(BadTensorMap, wp, lane, in, "argument %d is the map of a tensor of %d dimensions, the instruction has %d", t.argument, len(t.Dims), rank)
	}
	for i, slot := range slots {
		at[i] = int64(int32(wp.r32[slot][lane]))
	}
	if size := int64(t.Type.Size()); at[0]*size%chunkBytes != 0 {
		return nil, at, w.fault(Misaligned, wp, lane, in, "the box at %v: its first coordinate, of elements of %d bytes, is at no multiple of %d bytes", at[:rank], size, chunkBytes)
	}
	return t, at, nil
}

// checkSource looks for bytes of a box that nobody wrote.
func (w *worker) checkSource(wp *warp, in *instruction, lane int, t *tensorMap, at [5]int64) (fault *Fault) {
	if t.access&runtime.Read == 0 {
		fault = w.fault(AccessDenied, wp, lane, in, "reads the tensor of argument %d, which the launch declares as %s", t.argument, accessName(t.access))
		fault.Argument = t.argument
		return fault
	}
	if !t.checkRead {
		return nil
	}
	t.rows(at, func(_, _, size, source int64) {
		if fault != nil || size == 0 {
			return
		}
		if bad := t.init.firstUnset(t.start+source, t.start+source+size); bad >= 0 {
			fault = w.fault(Uninitialised, wp, lane, in, "the box at %v: byte %d of argument %d was never written", at[:len(t.Dims)], bad-t.start, t.argument)
			fault.Argument, fault.Address, fault.Size = t.argument, t.base+uint64(bad-t.start), 1
		}
	})
	return fault
}

// startBulk puts a copy in flight, whose mbarrier lies at a place of the block that it goes to.
func (w *worker) startBulk(wp *warp, lane int, start bulkCopy, barrier uint64) *Fault {
	c := &start
	in, to, size := c.in, c.to, uint64(c.tensor.size)
	b, fault := w.useBarrier(wp, in, lane, to, barrier, true)
	if fault != nil {
		return fault
	}
	if c.place+size > uint64(len(to.shared.data)) {
		return w.bulkFault(OutOfBounds, wp, lane, c, "%d bytes at offset %d of shared memory, which has %d", size, c.place, len(to.shared.data))
	}
	if c.place%c.tensor.alignment() != 0 {
		return w.bulkFault(Misaligned, wp, lane, c, "offset %d of shared memory: a box with this swizzle is aligned to %d bytes", c.place, c.tensor.alignment())
	}
	if fault := w.checkTarget(wp, lane, c); fault != nil {
		return fault
	}
	if to.owners == nil {
		to.owners = make([]*bulkCopy, (len(to.shared.data)+chunkBytes-1)/chunkBytes)
	}
	initMap(to.inFlight).set(int64(c.place), int64(c.place+size))
	for chunk := c.place; chunk < c.place+size; chunk += chunkBytes {
		to.owners[chunk/chunkBytes] = c
	}
	to.flights++
	c.barrier, c.phase = b, b.phase
	w.cluster.copies = append(w.cluster.copies, c)
	return nil
}

func (w *worker) bulkFault(kind FaultKind, wp *warp, lane int, c *bulkCopy, format string, arguments ...any) *Fault {
	fault := w.fault(kind, wp, lane, c.in, "%s%s", fmt.Sprintf(format, arguments...), w.blockName(c.to))
	fault.Address, fault.Size = c.place, int(c.tensor.size)
	return fault
}

// blockName names another block than this one.
func (w *worker) blockName(other *worker) string {
	if w == other {
		return ""
	}
	return fmt.Sprintf(" (block %s)", coordinates(other.blockAt))
}

// checkTarget looks for what a copy must not overwrite: bytes in flight, bytes that products read,
// and bytes that a warp wrote without a fence.
func (w *worker) checkTarget(wp *warp, lane int, c *bulkCopy) *Fault {
	to, end := c.to, c.place+uint64(c.tensor.size)
	for at := c.place; at < end; at += chunkBytes {
		if to.inFlight[at>>6]>>(at&63)&chunkMask != 0 {
			if fault := w.checkOverwrite(wp, lane, c, at); fault != nil {
				return fault
			}
		}
		if to.reads > 0 && to.readers[at/chunkBytes] > 0 {
			for i := range to.warps {
				owner := &to.warps[i]
				if r := to.readOf(owner, wp, at); r != nil {
					return w.bulkFault(InFlight, wp, lane, c, "copies to offset %d of shared memory, which %s", at, r.describe(owner))
				}
			}
		}
		for warps := to.unfenced; warps != 0; warps &= warps - 1 {
			writer := bits.TrailingZeros32(warps)
			if to.warps[writer].warpgroup.unfenced[at>>6]>>(at&63)&chunkMask != 0 {
				return w.bulkFault(Unfenced, wp, lane, c, "copies to offset %d of shared memory, which warp %d wrote without executing fence.proxy.async since", at, writer)
			}
		}
	}
	return nil
}

// checkOverwrite tells whether a copy may go to a chunk in flight: one that its warp has waited for.
func (w *worker) checkOverwrite(wp *warp, lane int, c *bulkCopy, at uint64) *Fault {
	to := c.to
	for _, b := range to.mbarriers {
		if b.at&^(chunkBytes-1) == at {
			return w.bulkFault(BadBarrier, wp, lane, c, "copies to offset %d of shared memory, where the mbarrier lies that line %d initialised", b.at, b.line)
		}
	}
	old := to.ownerOf(at)
	if old == nil {
		return w.bulkFault(InFlight, wp, lane, c, "copies to offset %d of shared memory, into which cp.async copies", at)
	}
	if old.landed && to == w && old.observed>>wp.index&1 != 0 {
		to.releaseBulk(old)
		return nil
	}
	return w.bulkFault(InFlight, wp, lane, c, "copies to offset %d of shared memory, %s", at, old.describe())
}

// ownerOf is the copy that has a chunk in flight, nil if there is none.
func (w *worker) ownerOf(at uint64) *bulkCopy {
	if w.owners == nil {
		return nil
	}
	if c := w.owners[at/chunkBytes]; c != nil && !c.released {
		return c
	}
	return nil
}

// describe says which copy somebody meets.
func (c *bulkCopy) describe() string {
	why := "is in flight"
	if c.landed {
		why = fmt.Sprintf("is there, but this warp has not waited for phase %d of the mbarrier at offset %d, and there was no barrier of one that has", c.phase, c.barrier.at)
	}
	return fmt.Sprintf("where the copy that thread %s%s started at line %d (%s) %s", coordinates(c.thread), c.to.blockName(c.worker), c.in.source.Line, c.in.source.Text, why)
}

// touchBulk tells whether an access meets an mbarrier, or a copy that its warp has not waited for;
// done if it met one that it has waited for.
func (w *worker) touchBulk(wp *warp, in *instruction, lane int, at, size uint64, need runtime.Access) (done bool, fault *Fault) {
	verb := "reads"
	if need == runtime.Write {
		verb = "writes"
	}
	if c := w.ownerOf(at); c != nil {
		if c.landed && c.observed>>wp.index&1 != 0 {
			return true, nil
		}
		fault = w.fault(InFlight, wp, lane, in, "%s %d bytes at offset %d of shared memory, %s", verb, size, at, c.describe())
		fault.Address, fault.Size = at, int(size)
		return false, fault
	}
	for _, b := range w.mbarriers {
		if at < b.at+mbarrierBytes && b.at < at+size {
			fault = w.fault(BadBarrier, wp, lane, in, "%s %d bytes at offset %d of shared memory, where the mbarrier lies that line %d initialised", verb, size, at, b.line)
			fault.Address, fault.Size = at, int(size)
			return false, fault
		}
	}
	return false, nil
}

// landAwaited lands the oldest copy that a warp waits for, if no warp can go on.
func (c *cluster) landAwaited() (bool, *Fault) {
	for _, b := range c.copies {
		if b.to.exited() {
			fault := b.fault(BadBarrier, "copies to block %s, which has exited", coordinates(b.to.blockAt))
			return false, fault
		}
	}
	for _, w := range c.blocks {
		for i := range w.warps {
			wp := &w.warps[i]
			if wp.state != waitingPhase {
				continue
			}
			for lanes := wp.wait.waiting; lanes != 0; lanes &= lanes - 1 {
				awaited := wp.wait.barriers[bits.TrailingZeros32(lanes)]
				if i := slices.IndexFunc(c.copies, func(b *bulkCopy) bool { return b.barrier == awaited }); i >= 0 {
					b := c.copies[i]
					c.copies = slices.Delete(c.copies, i, i+1)
					return true, b.land()
				}
			}
		}
	}
	return false, nil
}

// fault is one of the thread that started the copy.
func (c *bulkCopy) fault(kind FaultKind, format string, arguments ...any) *Fault {
	f := c.worker.fault(kind, &c.worker.warps[0], 0, c.in, format, arguments...)
	f.Thread = c.thread
	return f
}

// land moves the bytes and counts them at the mbarrier.
func (c *bulkCopy) land() *Fault {
	to, t := c.to, c.tensor
	flip := t.swizzleBits()
	var row [maxBoxRow]byte
	t.rows(c.at, func(place, from, size, source int64) {
		clear(row[:t.inner])
		if size > 0 {
			copy(row[from:from+size], t.data[source:])
		}
		for i := int64(0); i < t.inner; i += chunkBytes {
			at := uint32(int64(c.place) + place + i)
			copy(to.shared.data[at^at>>3&flip:][:chunkBytes], row[i:])
		}
	})
	start, end := int64(c.place), int64(c.place)+t.size
	if !to.sharedReady {
		to.shared.init.set(start, end)
	}
	for warps := to.unfenced; warps != 0; warps &= warps - 1 { // what they wrote is no more
		initMap(to.warps[bits.TrailingZeros32(warps)].warpgroup.unfenced).clear(start, end)
	}
	c.landed = true
	to.boxes = append(to.boxes, c)
	b := c.barrier
	if b.phase != c.phase {
		return c.fault(BadBarrier, "phase %d of the mbarrier at offset %d, in which the copy started, has ended without its bytes", c.phase, b.at)
	}
	b.bytes -= t.size
	if b.bytes < 0 && b.pending == 0 || b.bytes < -maxPending {
		return c.fault(BadBarrier, "%d bytes more are there than phase %d of the mbarrier at offset %d expects", -b.bytes, b.phase, b.at)
	}
	b.advance()
	return nil
}

// maxBoxRow is the bytes of the longest row of a box: 256 elements of 8 bytes.
const maxBoxRow = 256 * 8

// observe lets a warp touch what has landed in phases of an mbarrier that it has waited for.
func (w *worker) observe(wp *warp, b *mbarrier) {
	for _, c := range w.boxes {
		if c.barrier == b && c.phase < b.phase {
			c.observed |= 1 << wp.index
		}
	}
}

// publishBulk lets everybody touch what a warp has waited for.
func (w *worker) publishBulk(wp *warp) {
	w.publishBarriers(wp)
	some := false
	for _, c := range w.boxes {
		if c.observed>>wp.index&1 != 0 {
			w.releaseBulk(c)
			some = true
		}
	}
	if some {
		w.boxes = slices.DeleteFunc(w.boxes, func(c *bulkCopy) bool { return c.released })
	}
}

// releaseBulk ends the marks of a copy's bytes.
func (w *worker) releaseBulk(c *bulkCopy) {
	if !c.released {
		c.released = true
		w.flights--
		initMap(w.inFlight).clear(int64(c.place), int64(c.place)+c.tensor.size)
	}
}

// resetBulk forgets the mbarriers and copies of the block before.
func (w *worker) resetBulk() {
	w.mbarriers, w.boxes = w.mbarriers[:0], w.boxes[:0]
	clear(w.owners)
}
