package emu

import (
	"math/bits"
	"slices"
	"strings"

	"weft/codegen/ptx"
	"weft/runtime"
)

// Asynchronous copies. The emulator moves the bytes when the copy starts, and remembers that
// they are in flight: until the thread that started the copy has waited for it nobody may touch
// them; after that, its own warp may, and after a barrier of that warp (or a fence) everybody.
// The source must not change before the wait; that is not checked.

// asyncCopy holds the operands of cp.async.
type asyncCopy struct {
	size       uint64
	from, to   instruction // the same instruction with the access of each side
	sourceSize int32       // slot of the number of bytes to read, noSlot for all
}

// flight is what one cp.async of a warp has under way.
type flight struct {
	in     *instruction
	group  uint32 // number of the group, counted by thread
	lanes  uint32 // whose bytes are still marked
	landed uint32 // those of them that have waited
	size   uint64
	offset lanes64 // in shared memory
}

// asyncState is what a warp's threads have under way.
type asyncState struct {
	flights   []flight
	committed lanes32 // groups that each thread has closed
}

// asyncInstruction decodes cp.async and the instructions that wait for it.
func (d *decoder) asyncInstruction(in *instruction) error {
	in.op, in.extra = opSpecial, &extra{}
	d.k.async = true
	if len(d.in.Modifiers) > 2 && d.in.Modifiers[1] == "bulk" {
		return d.bulkInstruction(in)
	}
	switch name := strings.Join(d.in.Modifiers, "."); name {
	case "async.commit_group":
		in.extra.run = (*worker).commitGroup
		return d.operands(0)
	case "async.wait_all":
		in.extra.run = (*worker).waitAll
		return d.operands(0)
	case "async.wait_group":
		in.extra.run = (*worker).waitGroup
		return d.groups(in)
	}
	return d.asyncCopy(in)
}

// groups decodes the only operand of a wait: how many groups may be unfinished.
func (d *decoder) groups(in *instruction) error {
	if err := d.operands(1); err != nil {
		return err
	}
	if d.in.Operands[0].Kind != ptx.OperandInteger {
		return d.unsupported("the number of groups is no immediate")
	}
	in.imm = d.in.Operands[0].Bits
	return nil
}

// asyncCopy decodes cp.async.cg|ca.shared.global [to], [from], size {, source size}.
func (d *decoder) asyncCopy(in *instruction) error {
	m := slices.DeleteFunc(slices.Clone(d.in.Modifiers), func(m string) bool { return strings.HasPrefix(m, "L2::") })
	if len(m) != 4 || m[0] != "async" || m[1] != "ca" && m[1] != "cg" || m[2] != "shared" && m[2] != "shared::cta" || m[3] != "global" {
		return d.unsupported("this form of cp")
	}
	o := d.in.Operands
	if len(o) != 3 && len(o) != 4 {
		return d.operands(3)
	}
	size := o[2].Bits
	if o[2].Kind != ptx.OperandInteger || size != 16 && (m[1] == "cg" || size != 4 && size != 8) {
		return d.unsupported("the size of a copy is 16 bytes, with .ca also 4 or 8")
	}
	c := &asyncCopy{size: size, from: *in, to: *in, sourceSize: noSlot}
	c.to.access, c.from.access = d.plainAccess(ptx.Shared, int(size)), d.plainAccess(ptx.Global, int(size))
	if err := d.addressOperand(c.to.access, &o[0]); err != nil {
		return err
	}
	if err := d.addressOperand(c.from.access, &o[1]); err != nil {
		return err
	}
	if len(o) == 4 {
		var err error
		if c.sourceSize, err = d.operand(&o[3], ptx.U32); err != nil {
			return err
		}
	}
	in.extra.run = func(w *worker, wp *warp, in *instruction, mask uint32) *Fault { return w.startCopy(wp, in, mask, c) }
	return nil
}

func (w *worker) startCopy(wp *warp, in *instruction, mask uint32, c *asyncCopy) *Fault {
	var from, to places
	if _, fault := w.resolve(wp, &c.to, mask, runtime.Write, &to); fault != nil {
		return fault
	}
	if fault := w.checkInFlight(wp, &c.to, mask, &to, runtime.Write); fault != nil {
		return fault
	}
	whole, partial := mask, uint32(0)
	if c.sourceSize >= 0 {
		for lanes := mask; lanes != 0; lanes &= lanes - 1 {
			lane := bits.TrailingZeros32(lanes)
			n := uint64(wp.r32[c.sourceSize][lane])
			if n > c.size {
				return w.fault(OutOfBounds, wp, lane, in, "the copy of %d bytes is told to read %d", c.size, n)
			}
			if n < c.size {
				whole, partial = whole&^(1<<lane), partial|1<<lane
			}
		}
	}
	for whole != 0 {
		lanes, fault := w.resolve(wp, &c.from, whole, runtime.Read, &from)
		if fault != nil {
			return fault
		}
		if from.region.checkRead {
			if fault := w.checkWritten(wp, &c.from, lanes, &from); fault != nil {
				return fault
			}
		}
		whole &^= lanes
		for ; lanes != 0; lanes &= lanes - 1 {
			lane := bits.TrailingZeros32(lanes)
			copy(w.shared.data[to.offset[lane]:][:c.size], from.region.data[from.offset[lane]:])
		}
	}
	if partial != 0 {
		if fault := w.copyPartial(wp, partial, c, &to); fault != nil {
			return fault
		}
	}
	if !w.sharedReady {
		markWritten(&to, mask, int64(c.size))
	}
	return w.takeOff(wp, &c.to, mask, c.size, &to)
}

// copyPartial serves the lanes that read less than the copy's size: byte by byte, then zeros.
func (w *worker) copyPartial(wp *warp, mask uint32, c *asyncCopy, to *places) *Fault {
	access := *c.from.access
	one := c.from
	one.access = &access
	access.size, access.vector = 1, 1
	var from places
	counts := &wp.r32[c.sourceSize]
	for n := range c.size {
		reads := uint32(0)
		for lanes := mask; lanes != 0; lanes &= lanes - 1 {
			lane := bits.TrailingZeros32(lanes)
			w.shared.data[to.offset[lane]+n] = 0
			if n < uint64(counts[lane]) {
				reads |= 1 << lane
			}
		}
		for reads != 0 {
			lanes, fault := w.resolve(wp, &one, reads, runtime.Read, &from)
			if fault == nil && n == 0 {
				fault = w.checkAligned(wp, &c.from, lanes, &from)
			}
			if fault == nil && from.region.checkRead {
				fault = w.checkWritten(wp, &one, lanes, &from)
			}
			if fault != nil {
				return fault
			}
			reads &^= lanes
			for ; lanes != 0; lanes &= lanes - 1 {
				lane := bits.TrailingZeros32(lanes)
				w.shared.data[to.offset[lane]+n] = from.region.data[from.offset[lane]]
			}
		}
		access.offset++
	}
	return nil
}

func (w *worker) checkAligned(wp *warp, in *instruction, mask uint32, p *places) *Fault {
	size := uint64(in.access.size * in.access.vector)
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		if (p.offset[bits.TrailingZeros32(lanes)]+p.region.base)&(size-1) != 0 {
			return w.misaligned(wp, in, mask, p, p.region.base)
		}
	}
	return nil
}

// takeOff marks the bytes of a copy as in flight.
func (w *worker) takeOff(wp *warp, in *instruction, mask uint32, size uint64, to *places) *Fault {
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		at := to.offset[lane]
		word, want := &w.inFlight[at>>6], (uint64(1)<<size-1)<<(at&63)
		if *word&want != 0 {
			f := w.memoryFault(InFlight, wp, lane, in, at, to.region)
			f.Message = "two lanes of this instruction copy to the same byte"
			return f
		}
		*word |= want
	}
	s := wp.async
	for mask != 0 {
		group := s.committed[bits.TrailingZeros32(mask)]
		same := uint32(0)
		for lanes := mask; lanes != 0; lanes &= lanes - 1 {
			if lane := bits.TrailingZeros32(lanes); s.committed[lane] == group {
				same |= 1 << lane
			}
		}
		s.flights = append(s.flights, flight{in, group, same, 0, size, to.offset})
		w.flights += bits.OnesCount32(same)
		mask &^= same
	}
	return nil
}

func (w *worker) commitGroup(wp *warp, _ *instruction, mask uint32) *Fault {
	for ; mask != 0; mask &= mask - 1 {
		wp.async.committed[bits.TrailingZeros32(mask)]++
	}
	return nil
}

// waitGroup lands all groups but the youngest.
func (w *worker) waitGroup(wp *warp, in *instruction, mask uint32) *Fault {
	s := wp.async
	for i := range s.flights {
		f, before := &s.flights[i], s.flights[i].landed
		for lanes := mask & f.lanes &^ f.landed; lanes != 0; lanes &= lanes - 1 {
			lane := bits.TrailingZeros32(lanes)
			if uint64(f.group)+in.imm < uint64(s.committed[lane]) {
				f.landed |= 1 << lane
			}
		}
		w.landed(wp, f, before)
	}
	return nil
}

// waitAll lands all copies, those of no closed group too.
func (w *worker) waitAll(wp *warp, _ *instruction, mask uint32) *Fault {
	for i := range wp.async.flights {
		f, before := &wp.async.flights[i], wp.async.flights[i].landed
		f.landed |= f.lanes & mask
		w.landed(wp, f, before)
	}
	return nil
}

// landed notes the bytes of lanes that have just waited.
func (w *worker) landed(wp *warp, f *flight, before uint32) {
	if wp.warpgroup != nil && f.landed != before {
		w.noteWrites(wp, f.landed&^before, &f.offset, f.size)
	}
}

// publish makes what a warp has waited for readable to all.
func (w *worker) publish(wp *warp) {
	if wp.warpgroup != nil {
		w.releaseReads(wp)
	}
	if w.kernel.bulk {
		w.publishBulk(wp)
	}
	if wp.async == nil {
		return
	}
	for i := range wp.async.flights {
		f := &wp.async.flights[i]
		w.release(f, f.landed)
	}
	wp.async.flights = slices.DeleteFunc(wp.async.flights, func(f flight) bool { return f.lanes == 0 })
}

// release ends the marks of some lanes' bytes.
func (w *worker) release(f *flight, lanes uint32) {
	f.lanes &^= lanes
	f.landed &^= lanes
	w.flights -= bits.OnesCount32(lanes)
	for ; lanes != 0; lanes &= lanes - 1 {
		at := f.offset[bits.TrailingZeros32(lanes)]
		w.inFlight[at>>6] &^= (uint64(1)<<f.size - 1) << (at & 63)
	}
}

// checkInFlight looks for lanes that touch bytes in flight. Bytes that the warp itself has
// waited for are released by that.
func (w *worker) checkInFlight(wp *warp, in *instruction, mask uint32, p *places, need runtime.Access) *Fault {
	if p.region != &w.shared {
		return nil
	}
	if w.reads > 0 && need == runtime.Write {
		if fault := w.checkReaders(wp, in, mask, p); fault != nil {
			return fault
		}
	}
	if w.flights == 0 {
		return nil
	}
	size := uint64(in.access.size * in.access.vector)
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		at := p.offset[lane]
		if want := uint64(1)<<size - 1; w.inFlight[at>>6]>>(at&63)&want == 0 {
			continue
		}
		if fault := w.touch(wp, in, lane, at, size, need); fault != nil {
			return fault
		}
	}
	return nil
}

// touch finds the copies that have bytes of [at, at+size) under way.
func (w *worker) touch(wp *warp, in *instruction, lane int, at, size uint64, need runtime.Access) *Fault {
	if w.kernel.bulk {
		if done, fault := w.touchBulk(wp, in, lane, at, size, need); done || fault != nil {
			return fault
		}
	}
	for i := range w.warps {
		owner := &w.warps[i]
		for j := range owner.async.flights {
			f := &owner.async.flights[j]
			for lanes := f.lanes; lanes != 0; lanes &= lanes - 1 {
				other := bits.TrailingZeros32(lanes)
				if start := f.offset[other]; at+size <= start || start+f.size <= at {
					continue
				}
				landed := f.landed>>other&1 != 0
				if landed && owner == wp {
					w.release(f, 1<<other)
					continue
				}
				return w.earlyAccess(wp, in, lane, at, need, owner, f, other)
			}
		}
	}
	wp.async.flights = slices.DeleteFunc(wp.async.flights, func(f flight) bool { return f.lanes == 0 })
	return nil
}

// earlyAccess says which copy an access did not wait for.
func (w *worker) earlyAccess(wp *warp, in *instruction, lane int, at uint64, need runtime.Access, owner *warp, f *flight, other int) *Fault {
	verb := "reads"
	if need == runtime.Write {
		verb = "writes"
	}
	why := "that thread has not waited for it"
	if f.landed>>other&1 != 0 {
		why = "that thread has waited for it, but there was no barrier since"
	}
	fault := w.fault(InFlight, wp, lane, in, "%s %d bytes at offset %d of shared memory, into which thread %s copies at line %d (%s); %s",
		verb, in.access.size*in.access.vector, at, coordinates(w.threadAt(owner.index*warpSize+other)), f.in.source.Line, f.in.source.Text, why)
	fault.Address, fault.Size = at, in.access.size*in.access.vector
	return fault
}

// resetAsync forgets the copies of the block before, and counts those that nobody waited for.
func (w *worker) resetAsync() {
	if !w.kernel.async {
		return
	}
	if w.inFlight == nil {
		w.inFlight = make([]uint64, len(w.shared.init))
	}
	clear(w.inFlight)
	w.flights = 0
	for i := range w.warps {
		wp := &w.warps[i]
		if wp.async == nil {
			wp.async = &asyncState{}
		}
		wp.async.flights = wp.async.flights[:0]
		wp.async.committed = lanes32{}
	}
}

// unwaited counts the copies of the block that no thread has waited for.
func (w *worker) unwaited() int64 {
	count := 0
	for i := range w.warps {
		if s := w.warps[i].async; s != nil {
			for _, f := range s.flights {
				count += bits.OnesCount32(f.lanes &^ f.landed)
			}
		}
	}
	return int64(count)
}

// fence decodes membar and fence: what a thread has waited for may be read by others after it,
// if they learn of it by a flag in memory. A fence between proxies orders nothing else.
func (d *decoder) fence(in *instruction) error {
	switch strings.Join(d.in.Modifiers, ".") {
	case "proxy.async", "proxy.async.shared::cta":
		in.op, in.extra = opSpecial, &extra{run: (*worker).proxyFence}
		return d.operands(0)
	case "mbarrier_init.release.cluster":
		in.op, in.extra = opSpecial, &extra{run: (*worker).fenceBarriers}
		return d.operands(0)
	}
	in.op, in.extra = opSpecial, &extra{run: func(w *worker, wp *warp, _ *instruction, _ uint32) *Fault {
		w.publish(wp)
		return nil
	}}
	return nil
}
