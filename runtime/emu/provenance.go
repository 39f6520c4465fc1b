package emu

import (
	"math/bits"

	"weft/codegen/ptx"
)

// pointees is the set of regions that a value may point into: bit i is parameter i, then come
// the module's variables. The empty set means that nothing is known.
type pointees uint64

// pointsAnywhere is the whole set, for pointers from memory and regions past the sixty-fourth.
const pointsAnywhere = ^pointees(0)

func pointee(region int) pointees {
	if region >= 64 {
		return pointsAnywhere
	}
	return 1 << region
}

// only is the single region of a set, restricted to regions that are pointers in a launch;
// -1 if there are several or none.
func (p pointees) only(pointers pointees) int {
	if p &= pointers; bits.OnesCount64(uint64(p)) == 1 {
		return bits.TrailingZeros64(uint64(p))
	}
	return -1
}

// findProvenance follows parameter values and variable addresses through moves, additions and
// selections. A memory access whose address comes from exactly one pointer is then checked
// against that argument alone, even where another argument's memory lies beside it.
func (d *decoder) findProvenance() {
	d.provenance = make([]pointees, len(d.f.Registers))
	for changed := true; changed; {
		changed = false
		for _, in := range d.f.Body {
			if len(in.Operands) < 2 {
				continue
			}
			from := d.instructionPointees(in)
			targets := in.Operands[:1]
			if kind := targets[0].Kind; kind == ptx.OperandVector || kind == ptx.OperandPair {
				targets = targets[0].Elements
			}
			for _, t := range targets {
				if t.Kind == ptx.OperandRegister && d.provenance[t.Register]|from != d.provenance[t.Register] {
					d.provenance[t.Register] |= from
					changed = true
				}
			}
		}
	}
}

// instructionPointees is what the result of an instruction may point into.
func (d *decoder) instructionPointees(in *ptx.Instruction) pointees {
	sources := in.Operands[1:]
	switch in.Opcode {
	case "ld":
		switch types := in.Types(); {
		case len(types) == 0 || types[0].Bits() != 64:
			return 0
		case in.Has("param"):
			return d.parameterPointee(&sources[0])
		}
		return pointsAnywhere
	case "mad", "fma":
		sources = sources[len(sources)-1:]
	case "mov", "add", "sub", "cvta", "selp", "or", "and", "xor", "min", "max", "shfl":
	default:
		return 0
	}
	var union pointees
	for i := range sources {
		union |= d.operandPointees(&sources[i])
	}
	return union
}

func (d *decoder) operandPointees(o *ptx.Operand) pointees {
	switch o.Kind {
	case ptx.OperandRegister:
		return d.provenance[o.Register]
	case ptx.OperandSymbol:
		if i := d.m.variableIndex(o.Name); i >= 0 {
			return pointee(len(d.k.parameters) + i)
		}
	case ptx.OperandVector:
		var union pointees
		for i := range o.Elements {
			union |= d.operandPointees(&o.Elements[i])
		}
		return union
	}
	return 0
}

// parameterPointee is the set of the parameter that [name] reads.
func (d *decoder) parameterPointee(o *ptx.Operand) pointees {
	if o.Kind != ptx.OperandAddress || o.Offset != 0 || o.Elements[0].Kind != ptx.OperandSymbol {
		return pointsAnywhere
	}
	i := d.parameter(o.Elements[0].Name)
	if i < 0 {
		return pointsAnywhere
	}
	return pointee(i)
}
