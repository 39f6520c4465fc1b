package emu

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weft/codegen/ptx"
	"weft/runtime"
)

// decoder turns one entry into a kernel.
type decoder struct {
	f          *ptx.Function
	k          *kernel
	m          *module
	flow       *flow
	slot       []int32 // by register
	constant32 map[uint32]int32
	constant64 map[uint64]int32
	addresses  map[sharedAddress]int32 // slots, by what is in them
	shared     map[string]uint64       // offsets of shared variables
	provenance []pointees              // by register
	in         *ptx.Instruction        // being decoded
}

func decode(m *module, f *ptx.Function) (*kernel, error) {
	d := &decoder{
		f: f, m: m, k: &kernel{name: f.Name, module: m, maxThreads: f.MaxThreads, reqThreads: f.ReqThreads, clusterBlocks: f.ClusterBlocks},
		constant32: map[uint32]int32{}, constant64: map[uint64]int32{}, addresses: map[sharedAddress]int32{}, shared: map[string]uint64{},
	}
	for axis, n := range f.ClusterBlocks {
		if d.k.clusterBlocks[axis] = max(n, 1); n > math.MaxUint16 {
			return nil, &UnsupportedError{f.Name, f.Line, ".reqnctapercluster", "the size of clusters"}
		}
	}
	if len(f.Body) == 0 {
		f.Body = append(f.Body, &ptx.Instruction{Position: f.Position, Opcode: "ret", Text: "ret"})
	}
	if err := d.layoutParameters(); err != nil {
		return nil, err
	}
	if err := d.layoutShared(); err != nil {
		return nil, err
	}
	for _, r := range f.Registers {
		if !slices.Contains([]int{1, 16, 32, 64}, r.Type.Bits()) {
			return nil, &UnsupportedError{Kernel: f.Name, Line: f.Line, Instruction: r.Name, Message: "registers of type ." + r.Type.String()}
		}
	}
	d.flow = buildFlow(f.Body)
	d.assignSlots()
	d.k.registers32, d.k.registers64 = d.k.slots32, d.k.slots64
	d.findProvenance()
	if err := d.body(); err != nil {
		return nil, err
	}
	if d.k.proxy {
		d.findRegisterHazards()
	}
	return d.k, nil
}

func (d *decoder) unsupported(format string, arguments ...any) error {
	return &UnsupportedError{d.k.name, d.in.Line, d.in.Text, fmt.Sprintf(format, arguments...)}
}

func (d *decoder) layoutParameters() error {
	offset := 0
	for _, p := range d.f.Parameters {
		size := int(p.Size())
		if size <= 0 || size > 1<<12 {
			return &UnsupportedError{d.k.name, p.Line, p.Name, "parameter size"}
		}
		offset = (offset + p.Align - 1) / p.Align * p.Align
		d.k.parameters = append(d.k.parameters, parameter{p.Name, offset, size})
		offset += size
	}
	d.k.paramBytes = offset
	return nil
}

// layoutShared places the entry's shared variables: its own, then the module's that it
// mentions, then dynamic shared memory.
func (d *decoder) layoutShared() error {
	mentioned := map[string]bool{}
	for _, in := range d.f.Body {
		walkOperands(in.Operands, func(o *ptx.Operand) {
			if o.Kind == ptx.OperandSymbol {
				mentioned[o.Name] = true
			}
		})
	}
	offset := int64(0)
	var dynamic []*ptx.Variable
	for _, v := range slices.Concat(d.f.Variables, d.m.parsed.Variables) {
		switch {
		case v.Space == ptx.Local:
			return &UnsupportedError{d.k.name, v.Line, v.Name, "local memory"}
		case v.Space != ptx.Shared || v.Function == "" && !mentioned[v.Name]:
			continue
		case v.Extern:
			dynamic = append(dynamic, v)
			continue
		}
		offset = (offset + int64(v.Align) - 1) / int64(v.Align) * int64(v.Align)
		d.shared[v.Name] = uint64(offset)
		if offset += v.Size(); offset > 1<<30 {
			return &UnsupportedError{d.k.name, v.Line, v.Name, "shared memory size"}
		}
	}
	for _, v := range dynamic {
		d.k.dynamicAlign = max(d.k.dynamicAlign, v.Align, 16)
	}
	if align := int64(d.k.dynamicAlign); align > 0 {
		offset = (offset + align - 1) / align * align
	}
	d.k.staticShared = int(offset)
	for _, v := range dynamic {
		d.shared[v.Name] = uint64(offset)
	}
	return nil
}

func walkOperands(operands []ptx.Operand, visit func(*ptx.Operand)) {
	for i := range operands {
		visit(&operands[i])
		walkOperands(operands[i].Elements, visit)
	}
}

// body decodes all instructions, with a meeting point in front of every block where lanes
// that diverged come together again.
func (d *decoder) body() error {
	meets := make([]bool, len(d.flow.blocks)+1)
	for i, b := range d.flow.blocks {
		if len(b.successors) > 1 {
			meets[d.flow.postDominator[i]] = true
		}
	}
	meetingPoint := make([]int32, len(d.flow.blocks)+1)
	position := make([]int32, len(d.f.Body)+1)
	for i := range d.f.Body {
		block := d.flow.blockOf[i]
		position[i] = int32(len(d.k.code))
		if meets[block] && d.flow.blocks[block].start == i {
			meetingPoint[block] = int32(len(d.k.code))
			d.k.code = append(d.k.code, instruction{op: opReconverge, guard: noSlot})
		}
		if err := d.instruction(d.f.Body[i]); err != nil {
			return err
		}
	}
	position[len(d.f.Body)] = int32(len(d.k.code))
	meetingPoint[len(d.flow.blocks)] = -1
	d.k.code = append(d.k.code, instruction{op: opExit, guard: noSlot, source: d.f.Body[len(d.f.Body)-1]})
	index := map[*ptx.Instruction]int{}
	for i, in := range d.f.Body {
		index[in] = i
	}
	for i := range d.k.code {
		in := &d.k.code[i]
		switch in.op {
		case opBranch, opBranchIf, opBranchTable:
			in.reconverge = meetingPoint[d.flow.postDominator[d.flow.blockOf[index[in.source]]]]
			in.exitFirst = d.exitsAtOnce(index[in.source] + 1)
			targets := branchTargets(in.source)
			in.target = position[targets[0]]
			if in.op == opBranchTable {
				for _, t := range targets {
					in.extra.targets = append(in.extra.targets, position[t])
				}
			}
		}
	}
	return nil
}

// exitsAtOnce reports whether the block at a position leaves the kernel and does nothing with
// other threads before that.
func (d *decoder) exitsAtOnce(position int) bool {
	for ; position < len(d.f.Body); position++ {
		switch in := d.f.Body[position]; in.Opcode {
		case "ret", "exit":
			return in.Guard == nil
		case "bra", "brx", "bar", "barrier", "mbarrier", "cp", "shfl", "vote", "match", "redux", "mma", "wgmma", "ldmatrix", "stmatrix", "movmatrix":
			return false
		}
	}
	return true
}

// instruction decodes one instruction and appends it.
func (d *decoder) instruction(source *ptx.Instruction) error {
	d.in = source
	in := instruction{guard: noSlot, d: noSlot, e: noSlot, source: source}
	if source.Guard != nil {
		in.guard = d.slot[source.Guard.Register]
		if source.Guard.Negated {
			in.guardFlip = ^uint32(0)
		}
	}
	decodeFamily := decoders[source.Opcode]
	if decodeFamily == nil {
		return d.unsupported("unknown instruction")
	}
	if err := decodeFamily(d, &in); err != nil {
		return err
	}
	d.k.code = append(d.k.code, in)
	return nil
}

// operands checks the number of operands.
func (d *decoder) operands(n int) error {
	if len(d.in.Operands) != n {
		return d.unsupported("%d operands, expected %d", len(d.in.Operands), n)
	}
	return nil
}

// modifiers checks that all modifiers are among the allowed ones, types aside.
func (d *decoder) modifiers(allowed ...string) error {
	for _, m := range d.in.Modifiers {
		if _, ok := ptx.ParseType(m); !ok && !slices.Contains(allowed, m) {
			return d.unsupported("modifier .%s is not known here", m)
		}
	}
	return nil
}

// typ is the instruction's last type modifier.
func (d *decoder) typ() ptx.Type {
	types := d.in.Types()
	if len(types) == 0 {
		return ptx.NoType
	}
	return types[len(types)-1]
}

// fileWidth is the register file of a type: 1, 32 or 64.
func fileWidth(bits int) int {
	if bits == 8 || bits == 16 {
		return 32
	}
	return bits
}

// result gives the slot of a destination register of the width.
func (d *decoder) result(o *ptx.Operand, bits int) (int32, error) {
	if o.Kind == ptx.OperandSink {
		return d.sink(bits), nil
	}
	if o.Kind != ptx.OperandRegister {
		return 0, d.unsupported("the destination is no register")
	}
	if have := d.f.Registers[o.Register].Type.Bits(); have != bits {
		return 0, d.unsupported("%s has %d bits, the instruction writes %d", o.Name, have, bits)
	}
	return d.slot[o.Register], nil
}

// sink gives a slot that nobody reads.
func (d *decoder) sink(bits int) int32 {
	switch fileWidth(bits) {
	case 1:
		d.k.predicates++
		return int32(d.k.predicates - 1)
	case 64:
		d.k.slots64++
		return int32(d.k.slots64 - 1)
	}
	d.k.slots32++
	return int32(d.k.slots32 - 1)
}

// operand gives the slot of a source of the type: a register, an immediate, a special
// register or the address of a variable.
func (d *decoder) operand(o *ptx.Operand, t ptx.Type) (int32, error) {
	bits := t.Bits()
	switch o.Kind {
	case ptx.OperandRegister:
		if o.Negated && bits != 1 {
			return 0, d.unsupported("only predicates can be negated")
		}
		if have := d.f.Registers[o.Register].Type.Bits(); have != bits {
			return 0, d.unsupported("%s has %d bits, the instruction reads %d", o.Name, have, bits)
		}
		return d.slot[o.Register], nil
	case ptx.OperandInteger, ptx.OperandFloat32, ptx.OperandFloat64:
		if t == ptx.Pred {
			return 0, d.unsupported("immediate predicate")
		}
		return d.constant(o.ImmediateBits(t), bits), nil
	case ptx.OperandSpecial:
		return d.special(o.Name, bits)
	case ptx.OperandSymbol:
		if offset, ok := d.shared[o.Name]; ok {
			return d.sharedAddress(offset+uint64(o.Offset), bits), nil
		}
		address, err := d.address(o.Name)
		if i := d.parameter(o.Name); i >= 0 && d.k.parameters[i].size == runtime.TensorMapSize {
			address, err = uint64(d.k.parameters[i].offset), nil
		}
		if err != nil {
			return 0, err
		}
		return d.constant(address+uint64(o.Offset), bits), nil
	}
	return 0, d.unsupported("operand %q", o.Name)
}

func (d *decoder) constant(value uint64, bits int) int32 {
	if fileWidth(bits) == 64 {
		slot, ok := d.constant64[value]
		if !ok {
			slot = d.sink(64)
			d.constant64[value] = slot
			d.k.constants64 = append(d.k.constants64, constant64{slot, value})
		}
		return slot
	}
	slot, ok := d.constant32[uint32(value)]
	if !ok {
		slot = d.sink(32)
		d.constant32[uint32(value)] = slot
		d.k.constants32 = append(d.k.constants32, constant32{slot, uint32(value)})
	}
	return slot
}

// sharedAddress gives a slot with an address of the block's shared memory.
func (d *decoder) sharedAddress(offset uint64, bits int) int32 {
	a := sharedAddress{wide: fileWidth(bits) == 64, offset: offset}
	slot, ok := d.addresses[a]
	if !ok {
		slot = d.sink(bits)
		d.addresses[a] = slot
		a.slot = slot
		d.k.sharedAddresses = append(d.k.sharedAddresses, a)
	}
	return slot
}

// parameter is the index of a parameter, -1 for another name.
func (d *decoder) parameter(name string) int {
	return slices.IndexFunc(d.k.parameters, func(p parameter) bool { return p.name == name })
}

// address is the address of a variable in global or constant memory.
func (d *decoder) address(name string) (uint64, error) {
	if a := d.m.variable(name); a != nil {
		return a.base, nil
	}
	return 0, d.unsupported("%s has no address here", name)
}

// special gives the slot of a special register.
func (d *decoder) special(name string, bits int) (int32, error) {
	if !specialKnown(name) {
		return 0, d.unsupported("special register %s", name)
	}
	if bits != 32 {
		return 0, d.unsupported("special register %s as %d bits", name, bits)
	}
	base, axisName, found := strings.Cut(name, ".")
	axis := -1
	if found {
		axis = strings.Index("xyz", axisName)
	}
	for _, s := range d.k.specials {
		if s.base == base && s.axis == axis {
			return s.slot, nil
		}
	}
	slot := d.sink(32)
	d.k.specials = append(d.k.specials, special{base, axis, slot})
	return slot, nil
}

func specialKnown(name string) bool {
	base, axis, found := strings.Cut(name, ".")
	switch base {
	case "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid":
		return found && (axis == "x" || axis == "y" || axis == "z")
	case "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%lanemask_eq", "%lanemask_le", "%lanemask_lt",
		"%lanemask_ge", "%lanemask_gt", "%dynamic_smem_size", "%total_smem_size", "%cluster_ctarank", "%cluster_nctarank":
		return !found
	}
	return false
}
