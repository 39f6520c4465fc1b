package emu

import (
	"strings"

	"weft/codegen/ptx"
)

// convert decodes cvt in all its forms.
func (d *decoder) convert(in *instruction) error {
	types := d.in.Types()
	if len(types) != 2 {
		return d.unsupported("cvt needs two types")
	}
	if err := d.modifiers("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna", "ftz", "sat", "relu"); err != nil {
		return err
	}
	c := conversion{to: types[0], from: types[1], saturate: d.in.Has("sat"), flush: d.in.Has("ftz"), relu: d.in.Has("relu")}
	for _, m := range d.in.Modifiers {
		if f := integerRoundings[m]; f != nil {
			c.integer = f
		}
		if r, ok := floatRoundings[m]; ok {
			c.mode = r
		}
	}
	switch {
	case c.to == ptx.TF32:
		if c.from != ptx.F32 || !d.in.Has("rna") {
			return d.unsupported("this rounding to tf32")
		}
		in.op, in.f32 = opLane32, bits32(convertTF32)
		return d.sources(in, ptx.B32, ptx.F32)
	case c.to == ptx.F16x2 || c.to == ptx.BF16x2:
		if c.from != ptx.F32 {
			return d.unsupported("cvt from .%s", c.from)
		}
		c.to = map[ptx.Type]ptx.Type{ptx.F16x2: ptx.F16, ptx.BF16x2: ptx.BF16}[c.to]
		in.op, in.f32 = opLane32, convertPair(c)
		return d.sources(in, ptx.B32, ptx.F32, ptx.F32)
	case c.from.Float() && !c.to.Float() && c.integer == nil:
		return d.unsupported("conversion to an integer needs .rni, .rzi, .rmi or .rpi")
	case c.from == ptx.F16x2 || c.from == ptx.BF16x2 || c.from == ptx.TF32:
		return d.unsupported("cvt from .%s", c.from)
	}
	return d.convertLanes(in, c)
}

// convertLanes chooses the lane function of a conversion. The registers may be wider than the
// types: 8-bit values live in wider registers, and cvt.s16.s8 reads 16 bits.
func (d *decoder) convertLanes(in *instruction, c conversion) error {
	if err := d.operands(2); err != nil {
		return err
	}
	to, err := d.registerWidth(&d.in.Operands[0], c.to)
	if err != nil {
		return err
	}
	from, err := d.registerWidth(&d.in.Operands[1], c.from)
	if err != nil {
		return err
	}
	scalar := c.scalar()
	resultMask := ^uint64(0) >> (64 - to)
	apply := func(v uint64) uint64 { return scalar(v) & resultMask }
	if c.to.Float() {
		apply = scalar
	}
	plain := strings.Join(d.in.Modifiers, ".")
	switch wideTo, wideFrom := to == 64, from == 64; {
	case wideTo && wideFrom:
		in.op = opLane64
		in.f64 = bits64(func(a, _, _ uint64) uint64 { return apply(a) })
	case wideTo:
		in.op = opWide
		if in.wide = pick(twins.wide, plain, hotWide[plain]); in.wide == nil || from != 32 {
			in.wide = func(d *lanes64, a, _ *lanes32, _ *lanes64) {
				for i := range d {
					d[i] = apply(uint64(a[i]))
				}
			}
		}
	case wideFrom:
		in.op = opNarrow
		if in.narrow = hotNarrow[plain]; in.narrow == nil || to != 32 {
			in.narrow = func(d *lanes32, a *lanes64) {
				for i := range d {
					d[i] = uint32(apply(a[i]))
				}
			}
		}
	default:
		in.op = opLane32
		if in.f32 = hotConvert32[plain]; in.f32 == nil || to == 64 {
			in.f32 = bits32(func(a, _, _ uint32) uint32 { return uint32(apply(uint64(a))) })
		}
	}
	width := map[int]ptx.Type{16: ptx.B16, 32: ptx.B32, 64: ptx.B64}
	return d.sources(in, width[to], width[from])
}

// registerWidth is the width of the register that holds a value of the type, which may be
// wider than the type.
func (d *decoder) registerWidth(o *ptx.Operand, t ptx.Type) (int, error) {
	if o.Kind != ptx.OperandRegister {
		return max(t.Bits(), 16), nil
	}
	width := d.f.Registers[o.Register].Type.Bits()
	if width < t.Bits() || width < 16 || t.Float() && width != t.Bits() {
		return 0, d.unsupported("%s has %d bits, the type .%s", o.Name, width, t)
	}
	return width, nil
}

// convertAddress decodes cvta. Only shared memory and parameters have another address in the generic space.
func (d *decoder) convertAddress(in *instruction) error {
	t := d.typ()
	if t.Bits() != 64 {
		return d.unsupported("32-bit addresses")
	}
	in.op, in.f64 = opLane64, copyLanes64
	if shared := d.in.Has("shared") || d.in.Has("shared::cta"); shared || d.in.Has("param") {
		window := uint64(sharedWindow)
		if !shared {
			window = paramWindow
		}
		if d.in.Has("to") {
			window = -window
		}
		in.f64 = bits64(func(a, _, _ uint64) uint64 { return a + window })
	} else if d.in.Has("local") || d.in.Has("shared::cluster") {
		return d.unsupported("this state space")
	}
	return d.sources(in, t, t)
}
