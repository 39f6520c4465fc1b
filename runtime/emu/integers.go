package emu

import (
	"math"
	"math/bits"
	"strings"
)

// hot32 has the operations on 32 bits that inner loops are made of, written without a call per
// lane. Whatever is missing here comes from scalarInteger.
var hot32 = map[string]lane32{
	"add": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = a[i] + b[i]
		}
	},
	"sub": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = a[i] - b[i]
		}
	},
	"mul.lo": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = a[i] * b[i]
		}
	},
	"mad.lo": func(d, a, b, c *lanes32) {
		for i := range d {
			d[i] = a[i]*b[i] + c[i]
		}
	},
	"and": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = a[i] & b[i]
		}
	},
	"or": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = a[i] | b[i]
		}
	},
	"xor": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = a[i] ^ b[i]
		}
	},
	"shl": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = a[i] << b[i]
		}
	},
	"neg": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = -a[i]
		}
	},
	"not": func(d, a, _, _ *lanes32) {
		for i := range d {
			d[i] = ^a[i]
		}
	},
}

// hotU32 and hotS32 are the hot operations that depend on the sign.
var hotU32 = map[string]lane32{
	"shr": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = a[i] >> b[i]
		}
	},
	"min": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = min(a[i], b[i])
		}
	},
	"max": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = max(a[i], b[i])
		}
	},
	"mul.hi": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = uint32(uint64(a[i]) * uint64(b[i]) >> 32)
		}
	},
}

var hotS32 = map[string]lane32{
	"shr": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = uint32(int32(a[i]) >> b[i])
		}
	},
	"min": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = uint32(min(int32(a[i]), int32(b[i])))
		}
	},
	"max": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = uint32(max(int32(a[i]), int32(b[i])))
		}
	},
	"mul.hi": func(d, a, b, _ *lanes32) {
		for i := range d {
			d[i] = uint32(int64(int32(a[i])) * int64(int32(b[i])) >> 32)
		}
	},
}

// hot64 has the hot operations on 64 bits.
var hot64 = map[string]lane64{
	"add": func(d, a, b, _ *lanes64) {
		for i := range d {
			d[i] = a[i] + b[i]
		}
	},
	"sub": func(d, a, b, _ *lanes64) {
		for i := range d {
			d[i] = a[i] - b[i]
		}
	},
	"mul.lo": func(d, a, b, _ *lanes64) {
		for i := range d {
			d[i] = a[i] * b[i]
		}
	},
	"mad.lo": func(d, a, b, c *lanes64) {
		for i := range d {
			d[i] = a[i]*b[i] + c[i]
		}
	},
	"and": func(d, a, b, _ *lanes64) {
		for i := range d {
			d[i] = a[i] & b[i]
		}
	},
	"or": func(d, a, b, _ *lanes64) {
		for i := range d {
			d[i] = a[i] | b[i]
		}
	},
	"xor": func(d, a, b, _ *lanes64) {
		for i := range d {
			d[i] = a[i] ^ b[i]
		}
	},
}

// scalarInteger returns the meaning of an integer instruction on one lane, nil if unknown.
// Quotient and remainder of a division by zero are all ones, as an H200 returns them.
func scalarInteger[T integer](operation string) func(a, b, c T) T {
	mask := widthMask[T]()
	switch operation {
	case "add":
		return func(a, b, _ T) T { return a + b }
	case "sub":
		return func(a, b, _ T) T { return a - b }
	case "mul.lo":
		return func(a, b, _ T) T { return a * b }
	case "mad.lo":
		return func(a, b, c T) T { return a*b + c }
	case "mul.hi":
		return func(a, b, _ T) T { return mulHigh(a, b) }
	case "mad.hi":
		return func(a, b, c T) T { return mulHigh(a, b) + c }
	case "div":
		return func(a, b, _ T) T {
			if b == 0 {
				return ^T(0)
			}
			return a / b
		}
	case "rem":
		return func(a, b, _ T) T {
			if b == 0 {
				return ^T(0)
			}
			return a % b
		}
	case "min":
		return func(a, b, _ T) T { return min(a, b) }
	case "max":
		return func(a, b, _ T) T { return max(a, b) }
	case "abs":
		return func(a, _, _ T) T { return max(a, -a) }
	case "neg":
		return func(a, _, _ T) T { return -a }
	case "sad":
		return func(a, b, c T) T { return c + max(a, b) - min(a, b) }
	case "and":
		return func(a, b, _ T) T { return a & b }
	case "or":
		return func(a, b, _ T) T { return a | b }
	case "xor":
		return func(a, b, _ T) T { return a ^ b }
	case "not":
		return func(a, _, _ T) T { return ^a }
	case "cnot":
		return func(a, _, _ T) T {
			if a == 0 {
				return 1
			}
			return 0
		}
	case "shl":
		return func(a, b, _ T) T { return a << (uint64(b) & mask) }
	case "shr":
		return func(a, b, _ T) T { return a >> (uint64(b) & mask) }
	}
	return nil
}

// mulHigh is the high half of the product.
func mulHigh[T integer](a, b T) T {
	var zero T
	signed := zero-1 < 0
	switch width := bits.OnesCount64(widthMask[T]()); {
	case width < 64 && signed:
		return T(int64(a) * int64(b) >> width)
	case width < 64:
		return T(uint64(a) * uint64(b) >> width)
	}
	high, _ := bits.Mul64(uint64(a), uint64(b))
	if signed {
		if a < 0 {
			high -= uint64(b)
		}
		if b < 0 {
			high -= uint64(a)
		}
	}
	return T(high)
}

// integer32 finds the lane operation of an integer instruction on 16 or 32 bits.
func integer32(operation string, width int, signed bool) lane32 {
	if width == 32 {
		signedHot, signedTwins := hotU32, twins.unsigned32
		if signed {
			signedHot, signedTwins = hotS32, twins.signed32
		}
		for _, table := range []map[string]lane32{twins.any32, signedTwins, hot32, signedHot} {
			if f := table[operation]; f != nil {
				return f
			}
		}
	}
	switch {
	case width == 16 && signed:
		return liftOrNil(scalarInteger[int16](operation))
	case width == 16:
		return liftOrNil(scalarInteger[uint16](operation))
	case signed:
		return liftOrNil(scalarInteger[int32](operation))
	}
	return liftOrNil(scalarInteger[uint32](operation))
}

func liftOrNil[T narrowInteger](f func(a, b, c T) T) lane32 {
	if f == nil {
		return nil
	}
	return lift32(f)
}

func integer64(operation string, signed bool) lane64 {
	if f := hot64[operation]; f != nil {
		return pick(twins.any64, operation, f)
	}
	if signed {
		if f := scalarInteger[int64](operation); f != nil {
			return lift64(f)
		}
	} else if f := scalarInteger[uint64](operation); f != nil {
		return lift64(f)
	}
	return nil
}

// shift64 finds shl.b64, shr.u64 and shr.s64; counts past the width give zero or the sign.
func shift64(operation string, signed bool) laneShift {
	switch {
	case operation == "shl":
		return func(d, a *lanes64, b *lanes32) {
			for i := range d {
				d[i] = a[i] << b[i]
			}
		}
	case signed:
		return func(d, a *lanes64, b *lanes32) {
			for i := range d {
				d[i] = uint64(int64(a[i]) >> b[i])
			}
		}
	}
	return func(d, a *lanes64, b *lanes32) {
		for i := range d {
			d[i] = a[i] >> b[i]
		}
	}
}

// wideProduct finds mul.wide and mad.wide.
func wideProduct(operation string, signed bool, width int) laneWide {
	extend := func(v uint32) uint64 { return uint64(v) }
	switch {
	case signed && width == 16:
		extend = func(v uint32) uint64 { return uint64(int64(int16(v))) }
	case signed:
		if operation == "mul.wide" {
			return func(d *lanes64, a, b *lanes32, _ *lanes64) {
				for i := range d {
					d[i] = uint64(int64(int32(a[i])) * int64(int32(b[i])))
				}
			}
		}
		extend = func(v uint32) uint64 { return uint64(int64(int32(v))) }
	case operation == "mul.wide":
		return func(d *lanes64, a, b *lanes32, _ *lanes64) {
			for i := range d {
				d[i] = uint64(a[i]) * uint64(b[i])
			}
		}
	}
	return func(d *lanes64, a, b *lanes32, c *lanes64) {
		for i := range d {
			d[i] = extend(a[i])*extend(b[i]) + c[i]
		}
	}
}

// wideProduct16 is mul.wide and mad.wide of 16-bit operands, which give 32 bits.
func wideProduct16(signed bool) lane32 {
	if signed {
		return bits32(func(a, b, c uint32) uint32 { return uint32(int32(int16(a))*int32(int16(b))) + c })
	}
	return bits32(func(a, b, c uint32) uint32 { return a*b + c })
}

// bitOps32 are instructions on bits, by opcode with modifiers.
var bitOps32 = map[string]lane32{
	"brev.b32": bits32(func(a, _, _ uint32) uint32 { return bits.Reverse32(a) }),
	"clz.b32":  bits32(func(a, _, _ uint32) uint32 { return uint32(bits.LeadingZeros32(a)) }),
	"popc.b32": bits32(func(a, _, _ uint32) uint32 { return uint32(bits.OnesCount32(a)) }),
	"bfe.u32":  bits32(func(a, b, c uint32) uint32 { return uint32(extractBits(uint64(a), b, c, 32, false)) }),
	"bfe.s32":  bits32(func(a, b, c uint32) uint32 { return uint32(extractBits(uint64(a), b, c, 32, true)) }),
	"bfind.u32": bits32(func(a, _, _ uint32) uint32 {
		return uint32(31 - bits.LeadingZeros32(a)) // -1 for zero
	}),
	"bfind.s32": bits32(func(a, _, _ uint32) uint32 {
		if int32(a) < 0 {
			a = ^a
		}
		return uint32(31 - bits.LeadingZeros32(a))
	}),
	"shf.l.wrap.b32":  bits32(func(a, b, c uint32) uint32 { return funnel(a, b, c&31, true) }),
	"shf.l.clamp.b32": bits32(func(a, b, c uint32) uint32 { return funnel(a, b, min(c, 32), true) }),
	"shf.r.wrap.b32":  bits32(func(a, b, c uint32) uint32 { return funnel(a, b, c&31, false) }),
	"shf.r.clamp.b32": bits32(func(a, b, c uint32) uint32 { return funnel(a, b, min(c, 32), false) }),
	"add.sat.s32": bits32(func(a, b, _ uint32) uint32 {
		return saturate32(int64(int32(a)) + int64(int32(b)))
	}),
	"sub.sat.s32": bits32(func(a, b, _ uint32) uint32 {
		return saturate32(int64(int32(a)) - int64(int32(b)))
	}),
}

func saturate32(v int64) uint32 {
	return uint32(max(math.MinInt32, min(math.MaxInt32, v)))
}

// bitOps64 are instructions from 64 bits to 64.
var bitOps64 = map[string]lane64{
	"brev.b64": bits64(func(a, _, _ uint64) uint64 { return bits.Reverse64(a) }),
}

// bitOpsNarrow are instructions from 64 bits to 32.
var bitOpsNarrow = map[string]laneNarrow{
	"popc.b64": func(d *lanes32, a *lanes64) {
		for i := range d {
			d[i] = uint32(bits.OnesCount64(a[i]))
		}
	},
	"clz.b64": func(d *lanes32, a *lanes64) {
		for i := range d {
			d[i] = uint32(bits.LeadingZeros64(a[i]))
		}
	},
}

// extractBits is bfe on a value of the width. The forms on 32 bits look at the low bytes of
// position and length; those on 64 bits, which the hardware does by shifts, at all of them.
func extractBits(a uint64, position, length uint32, width uint32, signed bool) uint64 {
	if width == 32 {
		position, length = position&0xff, length&0xff
	}
	at := func(bit uint32) uint64 { return a >> bit & 1 }
	var sign uint64
	if signed && length != 0 {
		sign = -at(uint32(min(uint64(position)+uint64(length)-1, uint64(width)-1)))
	}
	if position >= width || length == 0 {
		return sign
	}
	length = min(length, width-position)
	mask := uint64(1)<<length - 1
	if length == 64 {
		mask = math.MaxUint64
	}
	return a>>position&mask | sign&^mask
}

// insertBits is bfi: the low bits of a go to a position of b.
func insertBits(a, b uint64, position, length uint32, width uint32) uint64 {
	if width == 32 {
		position, length = position&0xff, length&0xff
	}
	if position >= width || length == 0 {
		return b
	}
	length = min(length, width-position)
	mask := uint64(math.MaxUint64)
	if length < 64 {
		mask = uint64(1)<<length - 1
	}
	return b&^(mask<<position) | a&mask<<position
}

// funnel shifts the pair hi:lo by n, 0 to 32.
func funnel(lo, hi, n uint32, left bool) uint32 {
	pair := uint64(hi)<<32 | uint64(lo)
	if left {
		return uint32(pair << n >> 32)
	}
	return uint32(pair >> n)
}

// permute is prmt with the mode of the instruction, "" for the default.
func permute(mode string) func(a, b, c uint32) uint32 {
	return func(a, b, c uint32) uint32 {
		pair := uint64(b)<<32 | uint64(a)
		var result uint32
		for i := range uint32(4) {
			var selector uint32
			switch n := c & 3; mode {
			case "":
				selector = c >> (4 * i) & 0xf
			case "f4e":
				selector = n + i
			case "b4e":
				selector = (n - i) & 7
			case "rc8":
				selector = n
			case "ecl":
				selector = max(n, i)
			case "ecr":
				selector = min(n, i)
			case "rc16":
				selector = n&1*2 + i&1
			}
			value := uint32(pair >> (8 * (selector & 7)) & 0xff)
			if selector&8 != 0 {
				value = uint32(int32(int8(value))>>7) & 0xff
			}
			result |= value << (8 * i)
		}
		return result
	}
}

// logic3 is lop3.b32 with a truth table.
func logic3(table uint32) func(a, b, c uint32) uint32 {
	return func(a, b, c uint32) uint32 {
		var result uint32
		for i := range uint32(8) {
			if table&(1<<i) == 0 {
				continue
			}
			term := ^uint32(0)
			for bit, v := range []uint32{c, b, a} {
				if i&(1<<bit) == 0 {
					v = ^v
				}
				term &= v
			}
			result |= term
		}
		return result
	}
}

// isComparison reports whether the modifier is a comparison operator of setp and set.
func isComparison(name string) bool {
	return strings.Contains(" eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan ", " "+name+" ")
}

// compareInteger32 and 64 find a comparison; nil if the operator does not apply to integers.
func compareInteger32[T narrowInteger](operator string) compare32 {
	switch operator {
	case "eq":
		return func(a, b *lanes32) (m uint32) {
			for i := range a {
				m |= bit(a[i] == b[i]) << i
			}
			return m
		}
	case "ne":
		return func(a, b *lanes32) (m uint32) {
			for i := range a {
				m |= bit(a[i] != b[i]) << i
			}
			return m
		}
	case "lt", "lo":
		return func(a, b *lanes32) (m uint32) {
			for i := range a {
				m |= bit(T(a[i]) < T(b[i])) << i
			}
			return m
		}
	case "le", "ls":
		return func(a, b *lanes32) (m uint32) {
			for i := range a {
				m |= bit(T(a[i]) <= T(b[i])) << i
			}
			return m
		}
	case "gt", "hi":
		return func(a, b *lanes32) (m uint32) {
			for i := range a {
				m |= bit(T(a[i]) > T(b[i])) << i
			}
			return m
		}
	case "ge", "hs":
		return func(a, b *lanes32) (m uint32) {
			for i := range a {
				m |= bit(T(a[i]) >= T(b[i])) << i
			}
			return m
		}
	}
	return nil
}

func compareInteger64[T int64 | uint64](operator string) compare64 {
	test := func(f func(a, b T) bool) compare64 {
		return func(a, b *lanes64) (m uint32) {
			for i := range a {
				m |= bit(f(T(a[i]), T(b[i]))) << i
			}
			return m
		}
	}
	switch operator {
	case "eq":
		return test(func(a, b T) bool { return a == b })
	case "ne":
		return test(func(a, b T) bool { return a != b })
	case "lt", "lo":
		return test(func(a, b T) bool { return a < b })
	case "le", "ls":
		return test(func(a, b T) bool { return a <= b })
	case "gt", "hi":
		return test(func(a, b T) bool { return a > b })
	case "ge", "hs":
		return test(func(a, b T) bool { return a >= b })
	}
	return nil
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// shift16 finds the shifts of 16-bit values; the count has 32 bits.
func shift16(operation string, signed bool) lane32 {
	switch {
	case operation == "shl":
		return bits32(func(a, b, _ uint32) uint32 { return a << b & 0xffff })
	case signed:
		return bits32(func(a, b, _ uint32) uint32 { return uint32(int32(int16(a))>>b) & 0xffff })
	}
	return bits32(func(a, b, _ uint32) uint32 { return a >> b })
}
