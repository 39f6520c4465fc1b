package emu

import (
	"math/bits"
	"slices"

	"weft/codegen/ptx"
)

// PTX has as many virtual registers as the compiler liked to name, most of them short-lived.
// Giving each its own 128 bytes a warp would not fit any cache, so registers whose lifetimes
// do not overlap share a slot. Lifetimes are those of a single thread: lanes that wait on the
// divergence stack keep their values, since others write under their own mask only.

// written returns the operands that an instruction writes.
func written(in *ptx.Instruction) []ptx.Operand {
	switch in.Opcode {
	case "st", "stmatrix", "cp", "red", "bra", "brx", "ret", "exit", "trap", "membar", "fence", "prefetch", "prefetchu", "discard", "nanosleep", "setmaxnreg":
		return nil
	case "mbarrier":
		if in.Has("init") {
			return nil
		}
	case "bar", "barrier":
		if !in.Has("red") {
			return nil
		}
	}
	if len(in.Operands) == 0 {
		return nil
	}
	return in.Operands[:1]
}

// bitset is a set of registers.
type bitset []uint64

func (b bitset) add(i int)    { b[i/64] |= 1 << (i % 64) }
func (b bitset) remove(i int) { b[i/64] &^= 1 << (i % 64) }

// effects calls read and write for the registers of an instruction, reads first. A guarded
// write keeps the old value where the guard is false, so it reads too;
// so do the products of warpgroups, whose accumulators are D and C.
func effects(in *ptx.Instruction, read, write func(register int)) {
	outputs := written(in)
	if in.Guard != nil {
		read(in.Guard.Register)
	}
	if in.Guard != nil || in.Opcode == "wgmma" {
		walkOperands(outputs, func(o *ptx.Operand) {
			if o.Kind == ptx.OperandRegister {
				read(o.Register)
			}
		})
	}
	walkOperands(in.Operands[len(outputs):], func(o *ptx.Operand) {
		if o.Kind == ptx.OperandRegister {
			read(o.Register)
		}
	})
	walkOperands(outputs, func(o *ptx.Operand) {
		if o.Kind == ptx.OperandRegister {
			write(o.Register)
		}
	})
}

// lifetime is the range of body positions at which a register holds a value that may be read.
type lifetime struct {
	register   int
	start, end int
}

// lifetimes computes liveness over the control flow and flattens it to ranges.
func lifetimes(f *ptx.Function, fl *flow) []lifetime {
	words := (len(f.Registers) + 63) / 64
	liveIn := make([]bitset, len(fl.blocks)+1)
	storage := make(bitset, words*(len(fl.blocks)+2))
	for i := range liveIn {
		liveIn[i], storage = storage[:words:words], storage[words:]
	}
	live := storage[:words]
	ranges := make([]lifetime, len(f.Registers))
	for i := range ranges {
		ranges[i] = lifetime{i, len(f.Body), -1}
	}
	extend := func(register, position int) {
		r := &ranges[register]
		r.start, r.end = min(r.start, position), max(r.end, position)
	}
	// backward walks a block from its end; visit sees what is live after each instruction.
	backward := func(block int, visit func(position int)) {
		b := fl.blocks[block]
		clear(live)
		for _, s := range b.successors {
			for w, v := range liveIn[s] {
				live[w] |= v
			}
		}
		for i := b.end - 1; i >= b.start; i-- {
			visit(i)
			effects(f.Body[i], func(int) {}, func(r int) { live.remove(r) })
			effects(f.Body[i], func(r int) { live.add(r) }, func(int) {})
		}
	}
	for changed := true; changed; {
		changed = false
		for block := len(fl.blocks) - 1; block >= 0; block-- {
			backward(block, func(int) {})
			if !slices.Equal(live, liveIn[block]) {
				copy(liveIn[block], live)
				changed = true
			}
		}
	}
	for i, in := range f.Body {
		touch := func(r int) { extend(r, i) }
		effects(in, touch, touch)
	}
	for block, b := range fl.blocks {
		forEach(liveIn[block], func(r int) { extend(r, b.start) })
		for _, s := range b.successors {
			forEach(liveIn[s], func(r int) { extend(r, b.end-1) })
		}
	}
	return ranges
}

func forEach(b bitset, visit func(int)) {
	for w, v := range b {
		for ; v != 0; v &= v - 1 {
			visit(w*64 + bits.TrailingZeros64(v))
		}
	}
}

// maxLiveness bounds the work and memory of liveness on hostile input, in bits.
const maxLiveness = 1 << 27

// assignSlots gives every register a slot of its file.
func (d *decoder) assignSlots() {
	f := d.f
	d.slot = make([]int32, len(f.Registers))
	files := map[int]*slotFile{1: {}, 32: {}, 64: {}}
	if len(f.Registers)*len(d.flow.blocks) > maxLiveness {
		for i, r := range f.Registers {
			d.slot[i] = files[fileWidth(r.Type.Bits())].fresh()
		}
	} else {
		ranges := lifetimes(f, d.flow)
		slices.SortStableFunc(ranges, func(a, b lifetime) int { return a.start - b.start })
		for _, r := range ranges {
			file := files[fileWidth(f.Registers[r.register].Type.Bits())]
			d.slot[r.register] = file.take(r)
		}
	}
	d.k.predicates, d.k.slots32, d.k.slots64 = files[1].count, files[32].count, files[64].count
}

// slotFile hands out slots; a slot is free again after the lifetime of its register.
type slotFile struct {
	count int
	busy  []lifetime // by slot: the register in it
}

func (s *slotFile) fresh() int32 {
	s.count++
	return int32(s.count - 1)
}

func (s *slotFile) take(r lifetime) int32 {
	for slot := range s.busy {
		if s.busy[slot].end < r.start {
			s.busy[slot] = r
			return int32(slot)
		}
	}
	s.busy = append(s.busy, r)
	return s.fresh()
}
