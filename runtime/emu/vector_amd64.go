package emu

import "golang.org/x/sys/cpu"

// hasVectors tells whether the processor has what the assembly needs.
var hasVectors = cpu.X86.HasFMA && cpu.X86.HasAVX2

//go:noescape
func vectorFMA(d, a, b, c *lanes32)

//go:noescape
func vectorAddF32(d, a, b, c *lanes32)

//go:noescape
func vectorSubF32(d, a, b, c *lanes32)

//go:noescape
func vectorMulF32(d, a, b, c *lanes32)

//go:noescape
func vectorDivF32(d, a, b, c *lanes32)

//go:noescape
func vectorAdd32(d, a, b, c *lanes32)

//go:noescape
func vectorSub32(d, a, b, c *lanes32)

//go:noescape
func vectorMul32(d, a, b, c *lanes32)

//go:noescape
func vectorMad32(d, a, b, c *lanes32)

//go:noescape
func vectorAnd32(d, a, b, c *lanes32)

//go:noescape
func vectorOr32(d, a, b, c *lanes32)

//go:noescape
func vectorXor32(d, a, b, c *lanes32)

//go:noescape
func vectorShl32(d, a, b, c *lanes32)

//go:noescape
func vectorShrU32(d, a, b, c *lanes32)

//go:noescape
func vectorShrS32(d, a, b, c *lanes32)

//go:noescape
func vectorMinU32(d, a, b, c *lanes32)

//go:noescape
func vectorMaxU32(d, a, b, c *lanes32)

//go:noescape
func vectorMinS32(d, a, b, c *lanes32)

//go:noescape
func vectorMaxS32(d, a, b, c *lanes32)

//go:noescape
func vectorAdd64(d, a, b, c *lanes64)

//go:noescape
func vectorSub64(d, a, b, c *lanes64)

//go:noescape
func vectorAnd64(d, a, b, c *lanes64)

//go:noescape
func vectorOr64(d, a, b, c *lanes64)

//go:noescape
func vectorXor64(d, a, b, c *lanes64)

//go:noescape
func vectorWideS32(d *lanes64, a, b *lanes32, c *lanes64)

//go:noescape
func vectorWideU32(d *lanes64, a, b *lanes32, c *lanes64)

//go:noescape
func vectorExtendS32(d *lanes64, a, b *lanes32, c *lanes64)

//go:noescape
func vectorExtendU32(d *lanes64, a, b *lanes32, c *lanes64)

//go:noescape
func vectorShl64(d, a *lanes64, b *lanes32)

//go:noescape
func vectorShr64(d, a *lanes64, b *lanes32)

//go:noescape
func vectorEqual32(a, b *lanes32) uint32

//go:noescape
func vectorGreaterS32(a, b *lanes32) uint32

//go:noescape
func vectorGreaterU32(a, b *lanes32) uint32

//go:noescape
func vectorEqual64(a, b *lanes64) uint32

//go:noescape
func vectorGreaterS64(a, b *lanes64) uint32

//go:noescape
func vectorGreaterU64(a, b *lanes64) uint32

//go:noescape
func vectorEqF32(a, b *lanes32) uint32

//go:noescape
func vectorLtF32(a, b *lanes32) uint32

//go:noescape
func vectorLeF32(a, b *lanes32) uint32

//go:noescape
func vectorNanF32(a, b *lanes32) uint32

//go:noescape
func vectorEquF32(a, b *lanes32) uint32

//go:noescape
func vectorLtuF32(a, b *lanes32) uint32

//go:noescape
func vectorLeuF32(a, b *lanes32) uint32

// vectors returns the vector twins of portable operations, none on an old processor.
func vectors() vectorTwins {
	if !hasVectors {
		return vectorTwins{}
	}
	swap := func(f compare32) compare32 { return func(a, b *lanes32) uint32 { return f(b, a) } }
	not := func(f compare32) compare32 { return func(a, b *lanes32) uint32 { return ^f(a, b) } }
	swap64 := func(f compare64) compare64 { return func(a, b *lanes64) uint32 { return f(b, a) } }
	not64 := func(f compare64) compare64 { return func(a, b *lanes64) uint32 { return ^f(a, b) } }
	return vectorTwins{
		float32: map[string]lane32{"fma": vectorFMA, "add": vectorAddF32, "sub": vectorSubF32, "mul": vectorMulF32, "div": vectorDivF32},
		any32: map[string]lane32{
			"add": vectorAdd32, "sub": vectorSub32, "mul.lo": vectorMul32, "mad.lo": vectorMad32,
			"and": vectorAnd32, "or": vectorOr32, "xor": vectorXor32, "shl": vectorShl32,
		},
		unsigned32: map[string]lane32{"shr": vectorShrU32, "min": vectorMinU32, "max": vectorMaxU32},
		signed32:   map[string]lane32{"shr": vectorShrS32, "min": vectorMinS32, "max": vectorMaxS32},
		any64: map[string]lane64{
			"add": vectorAdd64, "sub": vectorSub64, "and": vectorAnd64, "or": vectorOr64, "xor": vectorXor64,
		},
		wide:            map[string]laneWide{"s64.s32": vectorExtendS32, "u64.u32": vectorExtendU32, "mul.s32": vectorWideS32, "mul.u32": vectorWideU32},
		shift:           map[string]laneShift{"shl": vectorShl64, "shr": vectorShr64},
		compareSigned:   orders[compare32](vectorEqual32, vectorGreaterS32, swap, not),
		compareUnsigned: orders[compare32](vectorEqual32, vectorGreaterU32, swap, not),
		longSigned:      orders[compare64](vectorEqual64, vectorGreaterS64, swap64, not64),
		longUnsigned:    orders[compare64](vectorEqual64, vectorGreaterU64, swap64, not64),
		compareFloat: map[string]compare32{
			"eq": vectorEqF32, "lt": vectorLtF32, "le": vectorLeF32, "gt": swap(vectorLtF32), "ge": swap(vectorLeF32),
			"neu": not(vectorEqF32), "geu": not(vectorLtF32), "gtu": not(vectorLeF32), "ltu": vectorLtuF32, "leu": vectorLeuF32,
			"equ": vectorEquF32, "ne": not(vectorEquF32), "nan": vectorNanF32, "num": not(vectorNanF32),
		},
	}
}

// orders derives all comparisons of integers from two.
func orders[F any](equal, greater F, swap, not func(F) F) map[string]F {
	less := swap(greater)
	return map[string]F{
		"eq": equal, "ne": not(equal), "gt": greater, "le": not(greater), "lt": less, "ge": not(less),
		"hi": greater, "ls": not(greater), "lo": less, "hs": not(less),
	}
}
