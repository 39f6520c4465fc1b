package emu

import (
	"strconv"
	"strings"

	"weft/codegen/ptx"
)

// memoryModifiers are hints and orders that change nothing here: a warp's accesses are done in
// program order, and blocks that communicate run one after the other.
var memoryModifiers = []string{
	"nc", "volatile", "relaxed", "weak", "acquire", "release", "acq_rel", "cta", "cluster", "gpu", "sys", "ca", "cg", "cs", "cv",
	"lu", "wb", "wt", "uni", "L1::evict_last", "L1::evict_first", "L1::evict_normal", "L1::no_allocate", "L1::evict_unchanged",
	"L2::64B", "L2::128B", "L2::256B", "L2::evict_last", "L2::evict_first",
	"v2", "v4", "param", "global", "shared", "shared::cta", "const",
}

// newAccess reads the modifiers of a memory instruction.
func (d *decoder) newAccess(allowed ...string) (*memoryAccess, error) {
	if err := d.modifiers(append(allowed, memoryModifiers...)...); err != nil {
		return nil, err
	}
	t := d.typ()
	a := &memoryAccess{vector: 1, base: noSlot, size: t.Bits() / 8, signed: t.Signed(), index: len(d.k.accesses)}
	if t.Bits() < 8 || t.Bits() > 64 {
		return nil, d.unsupported("access of .%s", t)
	}
	for _, m := range d.in.Modifiers {
		if space, ok := ptx.ParseSpace(m); ok {
			a.space = space
		}
		if n, ok := strings.CutPrefix(m, "v"); ok && (n == "2" || n == "4") {
			a.vector, _ = strconv.Atoi(n)
		}
	}
	if a.size*a.vector > 16 {
		return nil, d.unsupported("vector of more than 16 bytes")
	}
	d.k.accesses = append(d.k.accesses, a)
	return a, nil
}

// addressOperand sets the base and offset of an access.
func (d *decoder) addressOperand(a *memoryAccess, o *ptx.Operand) error {
	if o.Kind != ptx.OperandAddress || len(o.Elements) != 1 {
		return d.unsupported("no address")
	}
	base := &o.Elements[0]
	a.offset = uint64(o.Offset)
	switch base.Kind {
	case ptx.OperandRegister:
		a.base = d.slot[base.Register]
		switch d.f.Registers[base.Register].Type.Bits() {
		case 64:
			a.baseWide = true
		case 32:
			if a.space != ptx.Shared && a.space != ptx.Const {
				return d.unsupported("32-bit address in %s space", a.space)
			}
		default:
			return d.unsupported("address register %s", base.Name)
		}
		a.pointees = d.provenance[base.Register]
	case ptx.OperandSymbol:
		if offset, ok := d.shared[base.Name]; ok {
			if a.space == ptx.Generic {
				offset += sharedWindow
			}
			a.base, a.baseWide = d.sharedAddress(offset, 64), true
			return nil
		}
		address, err := d.address(base.Name)
		if err != nil {
			return err
		}
		a.offset += address
		a.pointees = d.operandPointees(base)
	case ptx.OperandInteger:
		a.offset += base.Bits
	}
	return nil
}

// dataOperand sets the data registers of an access, which may be wider than the elements.
func (d *decoder) dataOperand(a *memoryAccess, o *ptx.Operand, isLoad bool) error {
	elements := []ptx.Operand{*o}
	if o.Kind == ptx.OperandVector {
		elements = o.Elements
	}
	if len(elements) != a.vector {
		return d.unsupported("%d data registers, expected %d", len(elements), a.vector)
	}
	a.width = max(a.size*8, 16)
	for i := range elements {
		if e := &elements[i]; e.Kind == ptx.OperandRegister {
			width := d.f.Registers[e.Register].Type.Bits()
			if width < a.size*8 || width < 16 || i > 0 && width != a.width && elements[0].Kind == ptx.OperandRegister {
				return d.unsupported("%s has %d bits, the access %d", e.Name, width, a.size*8)
			}
			a.width = width
		}
	}
	a.wide = a.width == 64
	t := map[int]ptx.Type{16: ptx.B16, 32: ptx.B32, 64: ptx.B64}[a.width]
	for i := range elements {
		e := &elements[i]
		var slot int32
		var err error
		if isLoad {
			slot, err = d.result(e, a.width)
		} else {
			slot, err = d.operand(e, t)
		}
		if err != nil {
			return err
		}
		a.slots = append(a.slots, slot)
	}
	return nil
}

func (d *decoder) load(in *instruction) error {
	if err := d.operands(2); err != nil {
		return err
	}
	a, err := d.newAccess()
	if err != nil {
		return err
	}
	in.op, in.access = opLoad, a
	if err := d.dataOperand(a, &d.in.Operands[0], true); err != nil {
		return err
	}
	if a.space == ptx.Param {
		in.op = opLoadParameter
		return d.parameterAddress(a, &d.in.Operands[1])
	}
	if a.space != ptx.Shared && (d.in.Has("volatile") || d.in.Has("acquire") || d.in.Has("relaxed")) {
		d.k.sequential = true // it may wait for what another block writes
	}
	return d.addressOperand(a, &d.in.Operands[1])
}

// parameterAddress resolves [parameter + offset] to an offset into the parameter bytes.
func (d *decoder) parameterAddress(a *memoryAccess, o *ptx.Operand) error {
	if o.Kind != ptx.OperandAddress || o.Elements[0].Kind != ptx.OperandSymbol {
		return d.unsupported("parameters are read by name only")
	}
	for _, p := range d.k.parameters {
		if p.name != o.Elements[0].Name {
			continue
		}
		total := int64(a.size * a.vector)
		if o.Offset < 0 || o.Offset+total > int64(p.size) {
			return d.unsupported("%d bytes at %d of parameter %s, which has %d", total, o.Offset, p.name, p.size)
		}
		a.offset = uint64(p.offset) + uint64(o.Offset)
		return nil
	}
	return d.unsupported("no parameter %s", o.Elements[0].Name)
}

func (d *decoder) store(in *instruction) error {
	if err := d.operands(2); err != nil {
		return err
	}
	a, err := d.newAccess()
	if err != nil {
		return err
	}
	if a.space == ptx.Param || a.space == ptx.Const {
		return d.unsupported("store to %s space", a.space)
	}
	in.op, in.access = opStore, a
	if err := d.dataOperand(a, &d.in.Operands[1], false); err != nil {
		return err
	}
	return d.addressOperand(a, &d.in.Operands[0])
}

// atomicOperations are the read-modify-write functions by name; b is the operand, c the new
// value of a compare-and-swap. Values are bits of the type, zero-extended.
func atomicOperation(name string, t ptx.Type) func(old, b, c uint64) uint64 {
	switch name {
	case "add":
		return func(old, b, _ uint64) uint64 { return old + b }
	case "and":
		return func(old, b, _ uint64) uint64 { return old & b }
	case "or":
		return func(old, b, _ uint64) uint64 { return old | b }
	case "xor":
		return func(old, b, _ uint64) uint64 { return old ^ b }
	case "exch":
		return func(_, b, _ uint64) uint64 { return b }
	case "cas":
		return func(old, b, c uint64) uint64 {
			if old == b {
				return c
			}
			return old
		}
	case "inc":
		return func(old, b, _ uint64) uint64 {
			if old >= b {
				return 0
			}
			return old + 1
		}
	case "dec":
		return func(old, b, _ uint64) uint64 {
			if old == 0 || old > b {
				return b
			}
			return old - 1
		}
	case "min", "max":
		smaller := func(a, b uint64) bool { return a < b }
		if t.Signed() {
			smaller = func(a, b uint64) bool { return int64(extend(a, t)) < int64(extend(b, t)) }
		}
		return func(old, b, _ uint64) uint64 {
			if smaller(b, old) == (name == "min") {
				return b
			}
			return old
		}
	}
	return nil
}

// atomic decodes atom and red on integers.
func (d *decoder) atomic(in *instruction) error {
	a, err := d.newAccess("add", "and", "or", "xor", "exch", "cas", "inc", "dec", "min", "max")
	if err != nil {
		return err
	}
	t := d.typ()
	if t.Float() || t.Bits() < 32 {
		return d.unsupported("atomic on .%s: only integers of 32 and 64 bits", t)
	}
	name := ""
	for _, m := range d.in.Modifiers {
		if f := atomicOperation(m, t); f != nil {
			name, a.atomic = m, f
		}
	}
	if a.atomic == nil {
		return d.unsupported("no atomic operation")
	}
	in.op, in.access = opAtomic, a
	operands := d.in.Operands
	if a.discarded = d.in.Opcode == "red"; a.discarded {
		operands = append([]ptx.Operand{{Kind: ptx.OperandSink}}, operands...)
	}
	want := 3
	if name == "cas" {
		want = 4
	}
	if len(operands) != want {
		return d.operands(want)
	}
	if err := d.dataOperand(a, &operands[0], true); err != nil {
		return err
	}
	if err := d.addressOperand(a, &operands[1]); err != nil {
		return err
	}
	if a.operand, err = d.operand(&operands[2], t); err != nil {
		return err
	}
	if name == "cas" {
		if a.operand2, err = d.operand(&operands[3], t); err != nil {
			return err
		}
	}
	if a.space != ptx.Shared && (!a.discarded || name == "exch" || name == "cas") {
		d.k.sequential = true
	}
	return nil
}

func (d *decoder) nothing(in *instruction) error {
	in.op = opNothing
	return nil
}
