package emu

import (
	"fmt"
	"math/bits"
	"slices"

	"weft/codegen/ptx"
)

// The registers of products of warpgroups, too, belong to the products until a wait: nothing
// else may read or write accumulators, or write A's fragments, and after other instructions
// wrote them it takes a wgmma.fence before a product uses them. All this shows in the program
// text, so it is found once, on all ways through it; an instruction at fault reports itself when
// a warp comes there.

// productRegister is what may be true of a register of products at one place of the program.
type productRegister struct {
	accumulator int8 // groups that were closed since a product that may still write it, idleRegister for none
	factor      int8 // the same for a product that may still read it
	unordered   bool // written since the last wgmma.fence
}

const idleRegister = 127

// join is what is true where two ways meet.
func (r productRegister) join(other productRegister) productRegister {
	return productRegister{min(r.accumulator, other.accumulator), min(r.factor, other.factor), r.unordered || other.unordered}
}

// registerHazards walks the program.
type registerHazards struct {
	d     *decoder
	index []int // by register: place in the state, -1 if no product has it
	state []productRegister
	found map[*ptx.Instruction]registerHazard
}

type registerHazard struct {
	kind    FaultKind
	message string
}

// isProduct reports whether an instruction is wgmma.mma_async.
func isProduct(in *ptx.Instruction) bool {
	return in.Opcode == "wgmma" && in.Has("mma_async") && len(in.Operands) > 1
}

// findRegisterHazards makes the instructions report that misuse registers of products.
func (d *decoder) findRegisterHazards() {
	h := &registerHazards{d: d, index: make([]int, len(d.f.Registers)), found: map[*ptx.Instruction]registerHazard{}}
	for i := range h.index {
		h.index[i] = -1
	}
	for _, in := range d.f.Body {
		if isProduct(in) {
			walkOperands(productVectors(in), func(o *ptx.Operand) {
				if o.Kind == ptx.OperandRegister && h.index[o.Register] < 0 {
					h.index[o.Register] = len(h.state)
					h.state = append(h.state, productRegister{idleRegister, idleRegister, false})
				}
			})
		}
	}
	if len(h.state)*len(d.flow.blocks) > maxLiveness/8 {
		return
	}
	h.walkBlocks()
	for i := range d.k.code {
		in := &d.k.code[i]
		if hazard, ok := h.found[in.source]; ok {
			run := func(w *worker, wp *warp, in *instruction, mask uint32) *Fault {
				return w.fault(hazard.kind, wp, bits.TrailingZeros32(mask), in, "%s", hazard.message)
			}
			*in = instruction{op: opSpecial, guard: in.guard, guardFlip: in.guardFlip, d: noSlot, e: noSlot, source: in.source, extra: &extra{run: run}}
		}
	}
}

// productVectors are the operands of a product that are vectors of registers: D and, perhaps, A.
func productVectors(in *ptx.Instruction) []ptx.Operand {
	if in.Operands[1].Kind == ptx.OperandVector {
		return in.Operands[:2]
	}
	return in.Operands[:1]
}

// walkBlocks follows the states through the program until they stay, and finds the hazards.
func (h *registerHazards) walkBlocks() {
	blocks, idle := h.d.flow.blocks, slices.Clone(h.state)
	entry := make([][]productRegister, len(blocks)+1)
	entry[0] = idle
	for changed := true; changed; {
		changed = false
		for i, b := range blocks {
			if entry[i] == nil {
				continue
			}
			copy(h.state, entry[i])
			for _, in := range h.d.f.Body[b.start:b.end] {
				h.visit(in)
			}
			for _, s := range b.successors {
				if entry[s] == nil {
					entry[s] = slices.Clone(h.state)
					changed = true
					continue
				}
				for r, before := range entry[s] {
					if after := before.join(h.state[r]); after != before {
						entry[s][r] = after
						changed = true
					}
				}
			}
		}
	}
}

// visit is the effect of one instruction. States grow worse only, so hazards that are found
// before they stay are hazards.
func (h *registerHazards) visit(in *ptx.Instruction) {
	switch {
	case isProduct(in):
		h.product(in)
	case in.Opcode == "wgmma" && in.Guard == nil:
		h.order(in)
	case in.Opcode != "wgmma":
		effects(in, func(register int) {
			if i := h.index[register]; i >= 0 && h.state[i].accumulator != idleRegister {
				h.report(in, InFlight, register, "reads %s, an accumulator of a product that no wgmma.wait_group has ended")
			}
		}, func(register int) {
			i := h.index[register]
			if i < 0 {
				return
			}
			if r := h.state[i]; r.accumulator != idleRegister || r.factor != idleRegister {
				h.report(in, InFlight, register, "writes %s, a register of a product that no wgmma.wait_group has ended")
			}
			h.state[i].unordered = true
		})
	}
}

// product checks and marks the registers of a product.
func (h *registerHazards) product(in *ptx.Instruction) {
	for n, vector := range productVectors(in) {
		walkOperands([]ptx.Operand{vector}, func(o *ptx.Operand) {
			if o.Kind != ptx.OperandRegister {
				return
			}
			r := &h.state[h.index[o.Register]]
			if r.unordered {
				h.report(in, Unfenced, o.Register, "%s was written without a wgmma.fence since")
			}
			switch {
			case n == 0 && r.factor != idleRegister:
				h.report(in, InFlight, o.Register, "writes %s, which a product reads that no wgmma.wait_group has ended")
			case n == 0:
				r.accumulator = 0
			case r.accumulator != idleRegister:
				h.report(in, InFlight, o.Register, "reads %s, an accumulator of a product that no wgmma.wait_group has ended")
			default:
				r.factor = 0
			}
		})
	}
}

// order is the effect of wgmma.fence, commit_group and wait_group.
func (h *registerHazards) order(in *ptx.Instruction) {
	for i := range h.state {
		r := &h.state[i]
		for _, age := range []*int8{&r.accumulator, &r.factor} {
			switch {
			case in.Has("commit_group") && *age < idleRegister-1:
				*age++
			case in.Has("wait_group") && uint64(*age) > in.Operands[0].Bits:
				*age = idleRegister
			}
		}
		if in.Has("fence") {
			r.unordered = false
		}
	}
}

func (h *registerHazards) report(in *ptx.Instruction, kind FaultKind, register int, format string) {
	if _, ok := h.found[in]; !ok {
		h.found[in] = registerHazard{kind, fmt.Sprintf(format, h.d.f.Registers[register].Name)}
	}
}
