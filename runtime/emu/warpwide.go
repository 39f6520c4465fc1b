package emu

import "math/bits"

// wholeBarrier checks that all threads of the warp are at a barrier: it is meant for whole warps,
// and a thread that has exited would be missed.
func (w *worker) wholeBarrier(wp *warp, in *instruction, mask uint32) *Fault {
	if mask == wp.all {
		return nil
	}
	missing := wp.all &^ mask
	lane := bits.TrailingZeros32(missing)
	where := "is elsewhere in the kernel"
	if wp.alive&(1<<lane) == 0 {
		where = "has exited"
	}
	return w.fault(BarrierDivergence, wp, bits.TrailingZeros32(mask), in, "%d of the warp's %d threads are at this barrier; thread %s %s",
		bits.OnesCount32(mask), bits.OnesCount32(wp.all), coordinates(w.threadAt(wp.index*warpSize+lane)), where)
}

// barrier makes the warp wait.
func (w *worker) barrier(wp *warp, in *instruction, mask uint32) *Fault {
	if fault := w.wholeBarrier(wp, in, mask); fault != nil {
		return fault
	}
	barrier := wp.r32[in.a][0]
	if barrier > 15 {
		return w.fault(BarrierDivergence, wp, 0, in, "barrier number %d, the last is 15", barrier)
	}
	threads := 0
	if in.extra.count >= 0 {
		threads = int(wp.r32[in.extra.count][0])
		if threads == 0 || threads%warpSize != 0 || threads > len(w.warps)*warpSize {
			return w.fault(BarrierDivergence, wp, 0, in, "a barrier of %d threads in a block of %d", threads, w.threads)
		}
	}
	if in.extra.mode == "arrive" {
		w.arrived[barrier] += warpSize
		w.publish(wp)
		return nil
	}
	wp.state, wp.barrier, wp.threads, wp.waitingAt = waiting, barrier, threads, in
	return nil
}

// members checks the member mask of a warp-wide instruction: every lane that it names, exited
// ones aside, must execute the instruction now, and every lane that does must be named.
func (w *worker) members(wp *warp, in *instruction, mask uint32, memberMask *lanes32) *Fault {
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		named := memberMask[lane]
		if named&(1<<lane) == 0 {
			return w.fault(WarpDivergence, wp, lane, in, "the member mask 0x%08x lacks lane %d, which executes this", named, lane)
		}
		if missing := named & wp.alive &^ mask; missing != 0 {
			return w.fault(WarpDivergence, wp, lane, in, "the member mask 0x%08x names lane %d, which is elsewhere in the kernel", named, bits.TrailingZeros32(missing))
		}
	}
	return nil
}

// warpWide executes the instructions that exchange values between lanes.
func (w *worker) warpWide(wp *warp, in *instruction, mask uint32) *Fault {
	memberSlot := in.b
	if in.op == opShuffle {
		memberSlot = in.extra.count
	}
	memberMask := &wp.r32[memberSlot]
	if fault := w.members(wp, in, mask, memberMask); fault != nil {
		return fault
	}
	switch in.op {
	case opShuffle:
		return w.shuffle(wp, in, mask)
	case opVote:
		w.vote(wp, in, mask, memberMask)
	case opMatch:
		if in.extra.mode != "warp" {
			w.match(wp, in, mask, memberMask)
		}
	case opReduce:
		a := &wp.r32[in.a]
		for lanes := mask; lanes != 0; lanes &= lanes - 1 {
			members := memberMask[bits.TrailingZeros32(lanes)] & mask
			sum := a[bits.TrailingZeros32(members)]
			for rest := members & (members - 1); rest != 0; rest &= rest - 1 {
				sum = in.extra.reduce(sum, a[bits.TrailingZeros32(rest)])
			}
			w.discard32[bits.TrailingZeros32(lanes)] = sum
		}
		blend32(&wp.r32[in.d], &w.discard32, mask)
	}
	return nil
}

// shuffle is shfl.sync. Reading a lane that does not take part has no defined result on the
// hardware and is a fault here.
func (w *worker) shuffle(wp *warp, in *instruction, mask uint32) *Fault {
	a, b, c := &wp.r32[in.a], &wp.r32[in.b], &wp.r32[in.c]
	inside := uint32(0)
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		delta, clamp, segment := int(b[lane]&31), int(c[lane]&31), int(c[lane]>>8&31)
		first := lane & segment
		last := first | clamp&^segment
		var from int
		var ok bool
		switch in.extra.mode {
		case "up":
			from = lane - delta
			ok = from >= last
		case "down":
			from = lane + delta
			ok = from <= last
		case "bfly":
			from = lane ^ delta
			ok = from <= last
		default:
			from = first | delta&^segment
			ok = from <= last
		}
		if !ok {
			from = lane
		} else {
			inside |= 1 << lane
		}
		if mask&(1<<from) == 0 {
			return w.fault(WarpDivergence, wp, lane, in, "lane %d reads lane %d, which does not take part", lane, from)
		}
		w.discard32[lane] = a[from]
	}
	if mask == wp.alive {
		wp.r32[in.d] = w.discard32
	} else {
		blend32(&wp.r32[in.d], &w.discard32, mask)
	}
	if in.e >= 0 {
		wp.writePredicate(in.e, mask, inside)
	}
	return nil
}

func (w *worker) vote(wp *warp, in *instruction, mask uint32, memberMask *lanes32) {
	p := wp.predicates[in.a] ^ in.extra.flip
	result := uint32(0)
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		members := memberMask[lane] & mask
		yes := p & members
		w.discard32[lane] = yes
		holds := false
		switch in.extra.mode {
		case "all":
			holds = yes == members
		case "any":
			holds = yes != 0
		case "uni":
			holds = yes == 0 || yes == members
		}
		result |= bit(holds) << lane
	}
	if in.extra.mode == "ballot" {
		blend32(&wp.r32[in.d], &w.discard32, mask)
	} else {
		wp.writePredicate(in.d, mask, result)
	}
}

// match is match.any (the lanes with the same value) and match.all (all members or none).
func (w *worker) match(wp *warp, in *instruction, mask uint32, memberMask *lanes32) {
	value := func(lane int) uint64 {
		if in.extra.width == 64 {
			return wp.r64[in.a][lane]
		}
		return uint64(wp.r32[in.a][lane])
	}
	agree := uint32(0)
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		members := memberMask[lane] & mask
		same := uint32(0)
		for rest := members; rest != 0; rest &= rest - 1 {
			if other := bits.TrailingZeros32(rest); value(other) == value(lane) {
				same |= 1 << other
			}
		}
		if in.extra.mode == "all" && same != members {
			same = 0
		}
		agree |= bit(same == members) << lane
		w.discard32[lane] = same
	}
	blend32(&wp.r32[in.d], &w.discard32, mask)
	if in.e >= 0 {
		wp.writePredicate(in.e, mask, agree)
	}
}
