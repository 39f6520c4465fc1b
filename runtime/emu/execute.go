package emu

import (
	"math/bits"
)

// quantum is how many instructions a warp runs before another one gets its turn, so that a
// warp that spins on shared memory lets the others go on.
const quantum = 1 << 20

// step runs one warp until it waits, exits or has used its quantum.
func (w *worker) step(wp *warp) (fault *Fault) {
	code := w.kernel.code
	count := int64(0)
	limit := min(quantum, w.budget-w.executed+1)
	var in *instruction
	for count < limit && wp.state == ready {
		in = &code[wp.pc]
		wp.pc++
		mask := wp.mask
		if in.guard >= 0 && in.op != opBranchIf {
			if mask &= wp.predicates[in.guard] ^ in.guardFlip; mask == 0 {
				count++
				continue
			}
		}
		count++
		switch in.op {
		case opLane32:
			if mask == wp.alive {
				in.f32(&wp.r32[in.d], &wp.r32[in.a], &wp.r32[in.b], &wp.r32[in.c])
			} else {
				in.f32(&w.discard32, &wp.r32[in.a], &wp.r32[in.b], &wp.r32[in.c])
				blend32(&wp.r32[in.d], &w.discard32, mask)
			}
		case opLane64, opWide, opShift:
			w.long(wp, in, mask)
		case opNarrow:
			in.narrow(&w.discard32, &wp.r64[in.a])
			if mask == wp.alive {
				wp.r32[in.d] = w.discard32
			} else {
				blend32(&wp.r32[in.d], &w.discard32, mask)
			}
		case opCompare32:
			wp.setPredicate(in, mask, in.compare32(&wp.r32[in.a], &wp.r32[in.b]))
		case opCompare64:
			wp.setPredicate(in, mask, in.compare64(&wp.r64[in.a], &wp.r64[in.b]))
		case opReconverge:
			count-- // no instruction of the program
			if wp.meet == wp.pc-1 {
				wp.pop()
			}
		case opBranch:
			wp.pc = in.target
		case opBranchIf:
			taken := mask & (wp.predicates[in.guard] ^ in.guardFlip)
			switch taken {
			case mask:
				wp.pc = in.target
			case 0:
			default:
				wp.diverge(in, taken)
			}
		case opLoad:
			fault = w.load(wp, in, mask)
		case opStore:
			fault = w.store(wp, in, mask)
		default:
			fault = w.rare(wp, in, mask)
		}
		if fault != nil {
			break
		}
	}
	w.executed += count
	if fault == nil && w.executed > w.budget {
		fault = w.fault(BudgetExceeded, wp, bits.TrailingZeros32(wp.mask), in, "the block has executed %d warp instructions", w.executed-1)
	}
	return fault
}

// long executes the lane operations whose result has 64 bits.
func (w *worker) long(wp *warp, in *instruction, mask uint32) {
	d := &wp.r64[in.d]
	if mask != wp.alive {
		d = &w.discard64
	}
	switch in.op {
	case opLane64:
		in.f64(d, &wp.r64[in.a], &wp.r64[in.b], &wp.r64[in.c])
	case opWide:
		in.wide(d, &wp.r32[in.a], &wp.r32[in.b], &wp.r64[in.c])
	default:
		in.shift(d, &wp.r64[in.a], &wp.r32[in.b])
	}
	if mask != wp.alive {
		blend64(&wp.r64[in.d], d, mask)
	}
}

// setPredicate writes the result of a comparison, and its complement, under the mask.
func (wp *warp) setPredicate(in *instruction, mask, result uint32) {
	complement := ^result
	if in.extra != nil {
		c := wp.predicates[in.c] ^ in.extra.flip
		switch in.extra.combine {
		case "and":
			result, complement = result&c, complement&c
		case "or":
			result, complement = result|c, complement|c
		case "xor":
			result, complement = result^c, complement^c
		}
	}
	wp.writePredicate(in.d, mask, result)
	if in.e >= 0 {
		wp.writePredicate(in.e, mask, complement)
	}
}

func (wp *warp) writePredicate(slot int32, mask, value uint32) {
	p := &wp.predicates[slot]
	*p = *p&^mask | value&mask
}

func (wp *warp) write32(slot int32, mask uint32, value *lanes32) {
	if mask == wp.alive {
		wp.r32[slot] = *value
	} else {
		blend32(&wp.r32[slot], value, mask)
	}
}

func (wp *warp) write64(slot int32, mask uint32, value *lanes64) {
	if mask == wp.alive {
		wp.r64[slot] = *value
	} else {
		blend64(&wp.r64[slot], value, mask)
	}
}

// diverge splits the running lanes: some go on, the others wait on the stack, and both meet
// where the branch says.
func (wp *warp) diverge(in *instruction, taken uint32) {
	first := divergence{in.target, in.reconverge, taken}
	second := divergence{wp.pc, in.reconverge, wp.mask &^ taken}
	if in.exitFirst {
		first, second = second, first
	}
	wp.suspend(in.reconverge)
	wp.stack = append(wp.stack, second)
	wp.divergence = first
}

// suspend puts the running lanes on the stack, to go on together at the meeting point. It does
// nothing if they would meet lower on the stack anyway.
func (wp *warp) suspend(meet int32) {
	if meet >= 0 && meet != wp.meet {
		wp.stack = append(wp.stack, divergence{meet, wp.meet, wp.mask})
	}
}

// pop goes on with the lanes on top of the stack that are still alive.
func (wp *warp) pop() {
	for len(wp.stack) > 0 {
		top := wp.stack[len(wp.stack)-1]
		wp.stack = wp.stack[:len(wp.stack)-1]
		if top.mask &= wp.alive; top.mask != 0 {
			wp.divergence = top
			return
		}
	}
	wp.mask = 0
	wp.meet = -1
	wp.state = exited
}

// exit ends the lanes of the mask.
func (wp *warp) exit(mask uint32) {
	wp.alive &^= mask
	if wp.mask &= wp.alive; wp.mask == 0 {
		wp.pop()
	}
}

// rare executes the less frequent instructions.
func (w *worker) rare(wp *warp, in *instruction, mask uint32) *Fault {
	switch in.op {
	case opSelect32:
		p, a, b := wp.predicates[in.c], &wp.r32[in.a], &wp.r32[in.b]
		for i := range w.discard32 {
			v := b[i]
			if p&(1<<i) != 0 {
				v = a[i]
			}
			w.discard32[i] = v
		}
		wp.write32(in.d, mask, &w.discard32)
	case opSelect64:
		p, a, b := wp.predicates[in.c], &wp.r64[in.a], &wp.r64[in.b]
		for i := range w.discard64 {
			v := b[i]
			if p&(1<<i) != 0 {
				v = a[i]
			}
			w.discard64[i] = v
		}
		wp.write64(in.d, mask, &w.discard64)
	case opSet32:
		for i := range w.discard32 {
			w.discard32[i] = uint32(in.imm) * (wp.predicates[in.a] >> i & 1)
		}
		wp.write32(in.d, mask, &w.discard32)
	case opPredicate:
		wp.writePredicate(in.d, mask, in.extra.logic(wp.predicates[in.a], wp.predicates[in.b]))
	case opSlowInsert:
		w.insertBits(wp, in, mask)
	case opPack:
		w.pack(wp, in, mask)
	case opUnpack:
		w.unpack(wp, in, mask)
	case opLoadParameter:
		w.loadParameter(wp, in, mask)
	case opBranchTable:
		wp.branchTable(in)
	case opExit:
		wp.exit(mask)
	case opTrap:
		return w.fault(Trapped, wp, bits.TrailingZeros32(mask), in, "")
	case opSpecial:
		return in.extra.run(w, wp, in, mask)
	case opAtomic:
		return w.atomic(wp, in, mask)
	case opBarrier, opBarrierReduce:
		return w.barrier(wp, in, mask)
	case opShuffle, opVote, opMatch, opReduce:
		return w.warpWide(wp, in, mask)
	case opActiveMask:
		fill32(&w.discard32, mask)
		wp.write32(in.d, mask, &w.discard32)
	}
	return nil
}

// branchTable sends every lane to its target; lanes with the same target stay together.
func (wp *warp) branchTable(in *instruction) {
	index := &wp.r32[in.a]
	active := wp.mask
	target := func(lane int) int32 { return in.extra.targets[min(int(index[lane]), len(in.extra.targets)-1)] }
	var ways []divergence
	for rest := active; rest != 0; {
		way := divergence{target(bits.TrailingZeros32(rest)), in.reconverge, 0}
		for lanes := rest; lanes != 0; lanes &= lanes - 1 {
			if lane := bits.TrailingZeros32(lanes); target(lane) == way.pc {
				way.mask |= 1 << lane
			}
		}
		rest &^= way.mask
		ways = append(ways, way)
	}
	if len(ways) == 1 {
		wp.pc = ways[0].pc
		return
	}
	wp.suspend(in.reconverge)
	wp.stack = append(wp.stack, ways[1:]...)
	wp.divergence = ways[0]
}

func (w *worker) insertBits(wp *warp, in *instruction, mask uint32) {
	c, n := &wp.r32[in.extra.slots[0]], &wp.r32[in.extra.slots[1]]
	if in.extra.width == 64 {
		for i := range w.discard64 {
			w.discard64[i] = in.extra.insert(wp.r64[in.a][i], wp.r64[in.b][i], c[i], n[i])
		}
		wp.write64(in.d, mask, &w.discard64)
		return
	}
	for i := range w.discard32 {
		w.discard32[i] = uint32(in.extra.insert(uint64(wp.r32[in.a][i]), uint64(wp.r32[in.b][i]), c[i], n[i]))
	}
	wp.write32(in.d, mask, &w.discard32)
}

// pack builds a scalar of the vector's elements, the first one lowest.
func (w *worker) pack(wp *warp, in *instruction, mask uint32) {
	var value lanes64
	for n, slot := range in.extra.slots {
		part := &wp.r32[slot]
		for i := range value {
			value[i] |= uint64(part[i]) << (n * in.extra.width)
		}
	}
	if in.imm == 64 {
		wp.write64(in.d, mask, &value)
		return
	}
	narrowLanes(&w.discard32, &value)
	wp.write32(in.d, mask, &w.discard32)
}

func (w *worker) unpack(wp *warp, in *instruction, mask uint32) {
	var value lanes64
	if in.imm == 64 {
		value = wp.r64[in.a]
	} else {
		for i := range value {
			value[i] = uint64(wp.r32[in.a][i])
		}
	}
	for n, slot := range in.extra.slots {
		for i := range value {
			w.discard32[i] = uint32(value[i] >> (n * in.extra.width) & (1<<in.extra.width - 1))
		}
		wp.write32(slot, mask, &w.discard32)
	}
}
