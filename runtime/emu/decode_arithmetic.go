package emu

import (
	"weft/codegen/ptx"
)

// decoders has the decoding function of every opcode.
var decoders = map[string]func(*decoder, *instruction) error{
	"add": (*decoder).arithmetic, "sub": (*decoder).arithmetic, "mul": (*decoder).arithmetic, "mad": (*decoder).arithmetic,
	"fma": (*decoder).arithmetic, "div": (*decoder).arithmetic, "rem": (*decoder).arithmetic, "min": (*decoder).arithmetic,
	"max": (*decoder).arithmetic, "abs": (*decoder).arithmetic, "neg": (*decoder).arithmetic, "and": (*decoder).arithmetic,
	"or": (*decoder).arithmetic, "xor": (*decoder).arithmetic, "not": (*decoder).arithmetic, "cnot": (*decoder).arithmetic,
	"shl": (*decoder).arithmetic, "shr": (*decoder).arithmetic, "sad": (*decoder).arithmetic, "rcp": (*decoder).arithmetic,
	"sqrt": (*decoder).arithmetic, "rsqrt": (*decoder).arithmetic, "ex2": (*decoder).arithmetic, "tanh": (*decoder).arithmetic,
	"copysign": (*decoder).arithmetic,
	"brev":     (*decoder).bitInstruction, "clz": (*decoder).bitInstruction, "popc": (*decoder).bitInstruction,
	"bfe": (*decoder).bitInstruction, "bfind": (*decoder).bitInstruction, "shf": (*decoder).bitInstruction,
	"bfi": (*decoder).bitInsert, "prmt": (*decoder).permute, "lop3": (*decoder).logic3,
	"setp": (*decoder).setPredicate, "set": (*decoder).set, "selp": (*decoder).selectPredicate, "slct": (*decoder).selectSign,
	"testp": (*decoder).testProperty, "mov": (*decoder).move, "cvt": (*decoder).convert, "cvta": (*decoder).convertAddress,
	"ld": (*decoder).load, "ldu": (*decoder).load, "st": (*decoder).store, "atom": (*decoder).atomic, "red": (*decoder).atomic,
	"prefetch": (*decoder).prefetch, "prefetchu": (*decoder).nothing, "membar": (*decoder).fence, "fence": (*decoder).fence,
	"discard": (*decoder).nothing, "nanosleep": (*decoder).nothing,
	"bra": (*decoder).branch, "brx": (*decoder).branchTable, "ret": (*decoder).leave, "exit": (*decoder).leave,
	"trap": (*decoder).trap, "bar": (*decoder).barrier, "barrier": (*decoder).barrier,
	"shfl": (*decoder).shuffle, "vote": (*decoder).vote, "activemask": (*decoder).activeMask,
	"match": (*decoder).match, "redux": (*decoder).reduceWarp,
	"mma": (*decoder).matrixProduct, "wgmma": (*decoder).warpgroupInstruction, "ldmatrix": (*decoder).matrixAccess, "stmatrix": (*decoder).matrixAccess,
	"movmatrix": (*decoder).transposeMatrix, "cp": (*decoder).asyncInstruction,
	"mbarrier": (*decoder).mbarrierInstruction, "mapa": (*decoder).mapAddress, "setmaxnreg": (*decoder).setRegisters,
}

// arity is the number of sources of arithmetic instructions.
var arity = map[string]int{
	"add": 2, "sub": 2, "mul": 2, "mad": 3, "fma": 3, "div": 2, "rem": 2, "min": 2, "max": 2, "abs": 1, "neg": 1,
	"and": 2, "or": 2, "xor": 2, "not": 1, "cnot": 1, "shl": 2, "shr": 2, "sad": 3, "rcp": 1, "sqrt": 1, "rsqrt": 1,
	"ex2": 1, "tanh": 1, "copysign": 2, "brev": 1, "clz": 1, "popc": 1, "bfe": 3, "bfind": 1, "shf": 3,
}

// sources sets the slots of the sources and of the result; types has the result's type first.
func (d *decoder) sources(in *instruction, types ...ptx.Type) (err error) {
	if err := d.operands(len(types)); err != nil {
		return err
	}
	if in.d, err = d.result(&d.in.Operands[0], types[0].Bits()); err != nil {
		return err
	}
	for i, slot := range []*int32{&in.a, &in.b, &in.c}[:len(types)-1] {
		if *slot, err = d.operand(&d.in.Operands[i+1], types[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// arithmetic decodes instructions whose operands all have one type, and their exceptions
// mul.wide and the shifts.
func (d *decoder) arithmetic(in *instruction) error {
	t := d.typ()
	types := []ptx.Type{t}
	for range arity[d.in.Opcode] {
		types = append(types, t)
	}
	switch {
	case t == ptx.NoType:
		return d.unsupported("no type")
	case t == ptx.Pred:
		return d.predicateLogic(in)
	case t.Float():
		if err := d.floatOperation(in, t); err != nil {
			return err
		}
		return d.sources(in, types...)
	}
	return d.integerOperation(in, t, types)
}

func (d *decoder) integerOperation(in *instruction, t ptx.Type, types []ptx.Type) error {
	operation := d.in.Opcode
	switch operation {
	case "mul", "mad":
		part := d.in.Modifiers[0]
		operation += "." + part
		if err := d.modifiers("lo", "hi", "wide"); err != nil {
			return err
		}
		if part == "wide" {
			return d.wide(in, operation, t)
		}
	case "add", "sub":
		if d.in.Has("sat") && t == ptx.S32 {
			in.op, in.f32 = opLane32, bitOps32[operation+".sat.s32"]
			return d.sources(in, types...)
		}
		if err := d.modifiers(); err != nil {
			return err
		}
	case "shl", "shr":
		if err := d.modifiers(); err != nil {
			return err
		}
		if types[2] = ptx.U32; t.Bits() == 64 {
			in.op, in.shift = opShift, shift64(operation, t.Signed())
			if operation == "shl" || !t.Signed() {
				in.shift = pick(twins.shift, operation, in.shift)
			}
			return d.sources(in, types...)
		}
	default:
		if err := d.modifiers(); err != nil {
			return err
		}
	}
	switch t.Bits() {
	case 16, 32:
		in.op, in.f32 = opLane32, integer32(operation, t.Bits(), t.Signed())
		if t.Bits() == 16 && (operation == "shl" || operation == "shr") {
			in.f32 = shift16(operation, t.Signed())
		}
	case 64:
		in.op, in.f64 = opLane64, integer64(operation, t.Signed())
	}
	if in.f32 == nil && in.f64 == nil {
		return d.unsupported("no integer %s on .%s", operation, t)
	}
	return d.sources(in, types...)
}

func (d *decoder) wide(in *instruction, operation string, t ptx.Type) error {
	result := map[ptx.Type]ptx.Type{ptx.U16: ptx.U32, ptx.S16: ptx.S32, ptx.U32: ptx.U64, ptx.S32: ptx.S64}[t]
	types := []ptx.Type{result, t, t}
	if operation == "mad.wide" {
		types = append(types, result)
	}
	switch t.Bits() {
	case 16:
		in.op, in.f32 = opLane32, wideProduct16(t.Signed())
	case 32:
		in.op, in.wide = opWide, wideProduct(operation, t.Signed(), 32)
		if operation == "mul.wide" {
			in.wide = pick(twins.wide, "mul."+t.String(), in.wide)
		}
	default:
		return d.unsupported("no %s on .%s", operation, t)
	}
	if operation == "mul.wide" { // the addend is zero
		in.c = d.constant(0, result.Bits())
	}
	return d.sources(in, types...)
}

// floatOperation finds the lane function of a floating-point instruction.
func (d *decoder) floatOperation(in *instruction, t ptx.Type) error {
	if err := d.modifiers("rn", "rz", "rm", "rp", "ftz", "sat", "approx", "full", "NaN", "relu"); err != nil {
		return err
	}
	name := d.in.Opcode
	if name == "mad" {
		name = "fma"
	}
	if d.in.Has("NaN") {
		name += ".NaN"
	}
	mode := toNearest
	for m, r := range floatRoundings {
		if d.in.Has(m) {
			mode = r
		}
	}
	approximate := d.in.Has("approx") || d.in.Has("full")
	switch t {
	case ptx.F64:
		if !approximate && mode == toNearest {
			in.op, in.f64 = opLane64, float64Ops[name]
		}
	case ptx.F32:
		in.op, in.f32 = opLane32, float32Operation(name, mode, approximate)
		if in.f32 != nil && d.in.Has("ftz") {
			in.f32 = withFlush(in.f32)
		}
	case ptx.F16, ptx.BF16, ptx.F16x2, ptx.BF16x2:
		if d.in.Has("relu") {
			name += ".relu"
		}
		kind := half
		if t == ptx.BF16 || t == ptx.BF16x2 {
			kind = brainHalf
		}
		if f := kind.operation(name); f != nil && mode == toNearest {
			if t.Bits() == 32 {
				f = packed(f)
			}
			in.op, in.f32 = opLane32, bits32(f)
		}
		if d.in.Has("ftz") || d.in.Has("sat") {
			return d.unsupported(".ftz and .sat on .%s", t)
		}
	}
	if in.f32 == nil && in.f64 == nil {
		return d.unsupported("no such operation on .%s", t)
	}
	if d.in.Has("sat") {
		if t != ptx.F32 {
			return d.unsupported(".sat on .%s", t)
		}
		in.f32 = withSaturation(in.f32)
	}
	return nil
}

func float32Operation(name string, mode rounding, approximate bool) lane32 {
	switch {
	case approximate:
		return approximate32[name]
	case mode != toNearest:
		return directed32(name, mode)
	}
	return pick(twins.float32, name, hotFloat32[name])
}

func (d *decoder) bitInstruction(in *instruction) error {
	t := d.typ()
	key := d.in.Opcode
	for _, m := range d.in.Modifiers {
		key += "." + m
	}
	switch {
	case bitOps32[key] != nil:
		in.op, in.f32 = opLane32, bitOps32[key]
		types := []ptx.Type{ptx.B32}
		for range arity[d.in.Opcode] {
			types = append(types, ptx.B32)
		}
		return d.sources(in, types...)
	case bitOps64[key] != nil:
		in.op, in.f64 = opLane64, bitOps64[key]
		return d.sources(in, t, t)
	case bitOpsNarrow[key] != nil:
		in.op, in.narrow = opNarrow, bitOpsNarrow[key]
		return d.sources(in, ptx.B32, t)
	case d.in.Opcode == "bfe" && t.Bits() == 64:
		signed := t.Signed()
		in.op = opSlowInsert
		in.extra = &extra{width: 64, insert: func(a, _ uint64, c, n uint32) uint64 { return extractBits(a, c, n, 64, signed) }}
		if err := d.sources(in, t, t, ptx.U32, ptx.U32); err != nil {
			return err
		}
		in.extra.slots = []int32{in.b, in.c}
		in.b = in.a
		return nil
	}
	return d.unsupported("no such bit instruction")
}

func (d *decoder) bitInsert(in *instruction) error {
	t := d.typ()
	if err := d.operands(5); err != nil {
		return err
	}
	width := uint32(t.Bits())
	in.op = opSlowInsert
	in.extra = &extra{width: int(width), insert: func(a, b uint64, c, n uint32) uint64 { return insertBits(a, b, c, n, width) }}
	o := d.in.Operands
	var err error
	if in.d, err = d.result(&o[0], t.Bits()); err != nil {
		return err
	}
	if in.a, err = d.operand(&o[1], t); err != nil {
		return err
	}
	if in.b, err = d.operand(&o[2], t); err != nil {
		return err
	}
	for _, operand := range o[3:] {
		slot, err := d.operand(&operand, ptx.U32)
		if err != nil {
			return err
		}
		in.extra.slots = append(in.extra.slots, slot)
	}
	return nil
}

func (d *decoder) permute(in *instruction) error {
	mode := ""
	for _, m := range d.in.Modifiers {
		if m != "b32" {
			mode = m
		}
	}
	if err := d.modifiers("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"); err != nil {
		return err
	}
	in.op, in.f32 = opLane32, bits32(permute(mode))
	return d.sources(in, ptx.B32, ptx.B32, ptx.B32, ptx.B32)
}

func (d *decoder) logic3(in *instruction) error {
	if err := d.operands(5); err != nil {
		return err
	}
	table := d.in.Operands[4]
	if table.Kind != ptx.OperandInteger {
		return d.unsupported("the truth table is no immediate")
	}
	in.op, in.f32 = opLane32, bits32(logic3(uint32(table.Bits)))
	whole := *d.in
	whole.Operands = whole.Operands[:4]
	saved := d.in
	d.in = &whole
	err := d.sources(in, ptx.B32, ptx.B32, ptx.B32, ptx.B32)
	d.in = saved
	return err
}

// predicateLogic decodes and.pred and its kin.
func (d *decoder) predicateLogic(in *instruction) error {
	logic := map[string]func(a, b uint32) uint32{
		"and": func(a, b uint32) uint32 { return a & b },
		"or":  func(a, b uint32) uint32 { return a | b },
		"xor": func(a, b uint32) uint32 { return a ^ b },
		"not": func(a, _ uint32) uint32 { return ^a },
	}[d.in.Opcode]
	if logic == nil {
		return d.unsupported("no predicate %s", d.in.Opcode)
	}
	if err := d.operands(arity[d.in.Opcode] + 1); err != nil {
		return err
	}
	return d.predicateOperation(in, logic, d.in.Operands[1:])
}

// predicateOperation sets up a logic operation on predicate operands, negated ones and numbers
// included.
func (d *decoder) predicateOperation(in *instruction, logic func(a, b uint32) uint32, operands []ptx.Operand) (err error) {
	in.op = opPredicate
	in.extra = &extra{}
	if in.d, err = d.result(&d.in.Operands[0], 1); err != nil {
		return err
	}
	var flips [2]uint32
	keep := [2]uint32{^uint32(0), ^uint32(0)}
	slots := [2]int32{}
	for i := range operands {
		if operands[i].Kind == ptx.OperandInteger { // as in xor.pred p, q, -1
			keep[i], flips[i] = 0, -bit(operands[i].Bits != 0)
			continue
		}
		if slots[i], err = d.operand(&operands[i], ptx.Pred); err != nil {
			return err
		}
		if operands[i].Negated {
			flips[i] = ^uint32(0)
		}
	}
	in.a, in.b = slots[0], slots[1]
	in.extra.logic = func(a, b uint32) uint32 { return logic(a&keep[0]^flips[0], b&keep[1]^flips[1]) }
	return nil
}

// comparison finds the comparison of setp and set for the type.
func (d *decoder) comparison(in *instruction, t ptx.Type) error {
	operator := ""
	for _, m := range d.in.Modifiers {
		if isComparison(m) {
			operator = m
			break
		}
	}
	in.op = opCompare32
	switch {
	case t == ptx.F32 && d.in.Has("ftz"):
		in.compare32 = compareFloat32(operator, widenFlushed)
	case t == ptx.F32:
		in.compare32 = pick(twins.compareFloat, operator, compareFloat32(operator, widenF32))
	case t == ptx.F16:
		in.compare32 = compareFloat32(operator, widenF16)
	case t == ptx.BF16:
		in.compare32 = compareFloat32(operator, widenBF16)
	case t == ptx.F64:
		in.op, in.compare64 = opCompare64, compareFloat64(operator)
	case t.Bits() == 64:
		in.op, in.compare64 = opCompare64, pick(twins.longUnsigned, operator, compareInteger64[uint64](operator))
		if t.Signed() {
			in.compare64 = pick(twins.longSigned, operator, compareInteger64[int64](operator))
		}
	case t == ptx.S16:
		in.compare32 = compareInteger32[int16](operator)
	case t == ptx.S32:
		in.compare32 = pick(twins.compareSigned, operator, compareInteger32[int32](operator))
	case t.Bits() == 16 || t.Bits() == 32:
		in.compare32 = pick(twins.compareUnsigned, operator, compareInteger32[uint32](operator))
	}
	if t.Bits() == 32 && t != ptx.F32 && t.Float() {
		in.compare32 = nil
	}
	if in.compare32 == nil && in.compare64 == nil {
		return d.unsupported("no comparison %q on .%s", operator, t)
	}
	return nil
}

// setPredicate decodes setp.op[.bool].type p[|q], a, b[, c].
func (d *decoder) setPredicate(in *instruction) error {
	t := d.typ()
	if err := d.comparison(in, t); err != nil {
		return err
	}
	o := d.in.Operands
	if len(o) != 3 && len(o) != 4 {
		return d.operands(3)
	}
	results := o[:1]
	if o[0].Kind == ptx.OperandPair {
		results = o[0].Elements
	}
	var err error
	if in.d, err = d.result(&results[0], 1); err != nil {
		return err
	}
	if len(results) == 2 {
		if in.e, err = d.result(&results[1], 1); err != nil {
			return err
		}
	}
	if in.a, err = d.operand(&o[1], t); err != nil {
		return err
	}
	if in.b, err = d.operand(&o[2], t); err != nil {
		return err
	}
	if len(o) == 4 {
		in.extra = &extra{}
		if in.c, err = d.operand(&o[3], ptx.Pred); err != nil {
			return err
		}
		if o[3].Negated {
			in.extra.flip = ^uint32(0)
		}
		for _, m := range d.in.Modifiers {
			if m == "and" || m == "or" || m == "xor" {
				in.extra.combine = m
			}
		}
		if in.extra.combine == "" {
			return d.unsupported("no boolean operator for the fourth operand")
		}
	}
	return nil
}

// set decodes set.op.dtype.stype d, a, b as a comparison into a hidden predicate and a choice.
func (d *decoder) set(in *instruction) error {
	types := d.in.Types()
	if len(types) != 2 || types[0].Bits() != 32 && types[0].Bits() != 16 {
		return d.unsupported("set needs two types")
	}
	if err := d.operands(3); err != nil {
		return err
	}
	if err := d.comparison(in, types[1]); err != nil {
		return err
	}
	var err error
	if in.a, err = d.operand(&d.in.Operands[1], types[1]); err != nil {
		return err
	}
	if in.b, err = d.operand(&d.in.Operands[2], types[1]); err != nil {
		return err
	}
	in.d = d.sink(1)
	d.k.code = append(d.k.code, *in)
	yes := map[ptx.Type]uint64{ptx.F32: 0x3f800000, ptx.F16: 0x3c00, ptx.BF16: 0x3f80}[types[0]]
	if yes == 0 {
		yes = 1<<types[0].Bits() - 1
	}
	*in = instruction{op: opSet32, guard: in.guard, guardFlip: in.guardFlip, a: in.d, e: noSlot, imm: yes, source: in.source}
	in.d, err = d.result(&d.in.Operands[0], types[0].Bits())
	return err
}

func (d *decoder) selectPredicate(in *instruction) error {
	t := d.typ()
	in.op = opSelect32
	if t.Bits() == 64 {
		in.op = opSelect64
	}
	if d.in.Operands == nil || t.Bits() < 16 {
		return d.unsupported("selp on .%s", t)
	}
	return d.sources(in, t, t, t, ptx.Pred)
}

// selectSign decodes slct.dtype.ctype d, a, b, c: a where c >= 0.
func (d *decoder) selectSign(in *instruction) error {
	types := d.in.Types()
	if len(types) != 2 || types[1] != ptx.S32 && types[1] != ptx.F32 {
		return d.unsupported("slct needs two types")
	}
	if err := d.operands(4); err != nil {
		return err
	}
	compare := compareInteger32[int32]("ge")
	if types[1] == ptx.F32 {
		compare = compareFloat32("ge", widenF32)
	}
	c, err := d.operand(&d.in.Operands[3], types[1])
	if err != nil {
		return err
	}
	p := d.sink(1)
	d.k.code = append(d.k.code, instruction{
		op: opCompare32, compare32: compare, guard: in.guard, guardFlip: in.guardFlip,
		d: p, e: noSlot, a: c, b: d.constant(0, 32), source: in.source,
	})
	in.op = opSelect32
	if types[0].Bits() == 64 {
		in.op = opSelect64
	}
	in.c = p
	o := d.in.Operands
	if in.d, err = d.result(&o[0], types[0].Bits()); err != nil {
		return err
	}
	if in.a, err = d.operand(&o[1], types[0]); err != nil {
		return err
	}
	in.b, err = d.operand(&o[2], types[0])
	return err
}

// testProperty decodes testp.property.f32 p, a.
func (d *decoder) testProperty(in *instruction) error {
	t := d.typ()
	if err := d.operands(2); err != nil {
		return err
	}
	if t != ptx.F32 && t != ptx.F64 {
		return d.unsupported("testp on .%s", t)
	}
	test := floatProperties[d.in.Modifiers[0]]
	if test == nil {
		return d.unsupported("no such property")
	}
	if t == ptx.F64 {
		in.op = opCompare64
		in.compare64 = func(a, _ *lanes64) (m uint32) {
			for i := range a {
				m |= bit(test(a[i]>>52&0x7ff, 0x7ff, a[i]&(1<<52-1))) << i
			}
			return m
		}
	} else {
		in.op = opCompare32
		in.compare32 = func(a, _ *lanes32) (m uint32) {
			for i := range a {
				m |= bit(test(uint64(a[i]>>23&0xff), 0xff, uint64(a[i]&(1<<23-1)))) << i
			}
			return m
		}
	}
	var err error
	if in.d, err = d.result(&d.in.Operands[0], 1); err != nil {
		return err
	}
	in.a, err = d.operand(&d.in.Operands[1], t)
	in.b = in.a
	return err
}

// floatProperties tests the exponent field, whose largest value is given, and the fraction.
var floatProperties = map[string]func(exponent, largest, fraction uint64) bool{
	"finite":     func(e, largest, _ uint64) bool { return e != largest },
	"infinite":   func(e, largest, f uint64) bool { return e == largest && f == 0 },
	"number":     func(e, largest, f uint64) bool { return e != largest || f == 0 },
	"notanumber": func(e, largest, f uint64) bool { return e == largest && f != 0 },
	"normal":     func(e, largest, f uint64) bool { return e != largest && (e != 0 || f == 0) }, // zero counts
	"subnormal":  func(e, _, f uint64) bool { return e == 0 && f != 0 },
}

// move decodes mov: copies, predicates, and packing and unpacking of vectors.
func (d *decoder) move(in *instruction) error {
	if err := d.operands(2); err != nil {
		return err
	}
	to, from := &d.in.Operands[0], &d.in.Operands[1]
	t := d.typ()
	switch {
	case t == ptx.Pred && from.Kind == ptx.OperandInteger:
		value := -bit(from.Bits != 0)
		whole := []ptx.Operand{{Kind: ptx.OperandRegister, Register: to.Register}}
		return d.predicateOperation(in, func(_, _ uint32) uint32 { return value }, whole)
	case t == ptx.Pred:
		return d.predicateOperation(in, func(a, _ uint32) uint32 { return a }, d.in.Operands[1:])
	case to.Kind == ptx.OperandVector:
		return d.vectorMove(in, opUnpack, from, to, t)
	case from.Kind == ptx.OperandVector:
		return d.vectorMove(in, opPack, to, from, t)
	case t.Bits() == 64:
		in.op, in.f64 = opLane64, copyLanes64
	case t.Bits() == 32 || t.Bits() == 16:
		in.op, in.f32 = opLane32, copyLanes32
	default:
		return d.unsupported("mov of .%s", t)
	}
	return d.sources(in, t, t)
}

// vectorMove sets up a move between a scalar and a vector of its parts, lowest first.
func (d *decoder) vectorMove(in *instruction, op opcode, scalar, vector *ptx.Operand, t ptx.Type) error {
	n := len(vector.Elements)
	if n == 0 || t.Bits()/n < 16 || t.Bits()%n != 0 {
		return d.unsupported("vector of %d in .%s", n, t)
	}
	in.op = op
	in.extra = &extra{width: t.Bits() / n}
	part := map[int]ptx.Type{16: ptx.B16, 32: ptx.B32}[in.extra.width]
	if part == ptx.NoType {
		return d.unsupported("vector of %d in .%s", n, t)
	}
	var err error
	if op == opUnpack {
		in.a, err = d.operand(scalar, t)
	} else {
		in.d, err = d.result(scalar, t.Bits())
	}
	if err != nil {
		return err
	}
	in.imm = uint64(t.Bits())
	for i := range vector.Elements {
		var slot int32
		if op == opUnpack {
			slot, err = d.result(&vector.Elements[i], part.Bits())
		} else {
			slot, err = d.operand(&vector.Elements[i], part)
		}
		if err != nil {
			return err
		}
		in.extra.slots = append(in.extra.slots, slot)
	}
	return nil
}
