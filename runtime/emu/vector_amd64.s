#include "textflag.h"

// Lane operations with AVX2 and FMA3, eight 32-bit or four 64-bit lanes at a time. Each has a
// portable twin with the same bits; TestHardware runs both.

// NAN fills Y15 with 0x7fffffff, the NaN of float32 results.
#define NAN \
	VPCMPEQD Y15, Y15, Y15 \
	VPSRLD $1, Y15, Y15

#define CANONICAL \
	VCMPPS $3, Y0, Y0, Y2 \
	VBLENDVPS Y2, Y15, Y0, Y0

#define ARGUMENTS \
	MOVQ d+0(FP), DI \
	MOVQ a+8(FP), SI \
	MOVQ b+16(FP), BX

#define FMA(offset) \
	VMOVUPS offset(SI), Y0 \
	VMOVUPS offset(DX), Y1 \
	VFMADD132PS offset(BX), Y1, Y0 \
	CANONICAL \
	VMOVUPS Y0, offset(DI)

#define FLOAT8(offset, INSTRUCTION) \
	VMOVUPS offset(SI), Y0 \
	INSTRUCTION offset(BX), Y0, Y0 \
	CANONICAL \
	VMOVUPS Y0, offset(DI)

#define FLOAT(INSTRUCTION) \
	ARGUMENTS \
	NAN \
	FLOAT8(0, INSTRUCTION) \
	FLOAT8(32, INSTRUCTION) \
	FLOAT8(64, INSTRUCTION) \
	FLOAT8(96, INSTRUCTION) \
	VZEROUPPER \
	RET

#define INTEGER8(offset, INSTRUCTION) \
	VMOVDQU offset(SI), Y0 \
	INSTRUCTION offset(BX), Y0, Y0 \
	VMOVDQU Y0, offset(DI)

#define INTEGER(INSTRUCTION) \
	ARGUMENTS \
	INTEGER8(0, INSTRUCTION) \
	INTEGER8(32, INSTRUCTION) \
	INTEGER8(64, INSTRUCTION) \
	INTEGER8(96, INSTRUCTION) \
	VZEROUPPER \
	RET

#define MAD8(offset) \
	VMOVDQU offset(SI), Y0 \
	VPMULLD offset(BX), Y0, Y0 \
	VPADDD offset(DX), Y0, Y0 \
	VMOVDQU Y0, offset(DI)

#define LONG(INSTRUCTION) \
	ARGUMENTS \
	INTEGER8(0, INSTRUCTION) \
	INTEGER8(32, INSTRUCTION) \
	INTEGER8(64, INSTRUCTION) \
	INTEGER8(96, INSTRUCTION) \
	INTEGER8(128, INSTRUCTION) \
	INTEGER8(160, INSTRUCTION) \
	INTEGER8(192, INSTRUCTION) \
	INTEGER8(224, INSTRUCTION) \
	VZEROUPPER \
	RET

#define WIDE4(n, EXTEND, MULTIPLY) \
	EXTEND (16*n)(SI), Y0 \
	EXTEND (16*n)(BX), Y1 \
	MULTIPLY Y1, Y0, Y0 \
	VMOVDQU Y0, (32*n)(DI)

#define WIDE(EXTEND, MULTIPLY) \
	ARGUMENTS \
	WIDE4(0, EXTEND, MULTIPLY) \
	WIDE4(1, EXTEND, MULTIPLY) \
	WIDE4(2, EXTEND, MULTIPLY) \
	WIDE4(3, EXTEND, MULTIPLY) \
	WIDE4(4, EXTEND, MULTIPLY) \
	WIDE4(5, EXTEND, MULTIPLY) \
	WIDE4(6, EXTEND, MULTIPLY) \
	WIDE4(7, EXTEND, MULTIPLY) \
	VZEROUPPER \
	RET

#define EXTEND4(n, EXTEND) \
	EXTEND (16*n)(SI), Y0 \
	VMOVDQU Y0, (32*n)(DI)

#define EXTENSION(EXTEND) \
	ARGUMENTS \
	EXTEND4(0, EXTEND) \
	EXTEND4(1, EXTEND) \
	EXTEND4(2, EXTEND) \
	EXTEND4(3, EXTEND) \
	EXTEND4(4, EXTEND) \
	EXTEND4(5, EXTEND) \
	EXTEND4(6, EXTEND) \
	EXTEND4(7, EXTEND) \
	VZEROUPPER \
	RET

#define SHIFT4(n, INSTRUCTION) \
	VPMOVZXDQ (16*n)(BX), Y1 \
	VMOVDQU (32*n)(SI), Y0 \
	INSTRUCTION Y1, Y0, Y0 \
	VMOVDQU Y0, (32*n)(DI)

#define SHIFT64(INSTRUCTION) \
	ARGUMENTS \
	SHIFT4(0, INSTRUCTION) \
	SHIFT4(1, INSTRUCTION) \
	SHIFT4(2, INSTRUCTION) \
	SHIFT4(3, INSTRUCTION) \
	SHIFT4(4, INSTRUCTION) \
	SHIFT4(5, INSTRUCTION) \
	SHIFT4(6, INSTRUCTION) \
	SHIFT4(7, INSTRUCTION) \
	VZEROUPPER \
	RET

// Comparisons return one bit a lane. COLLECT appends the bits of Y0 to R8 from the top.
#define COLLECT \
	VMOVMSKPS Y0, AX \
	SHLL $24, AX \
	SHRL $8, R8 \
	ORL AX, R8

#define COMPARE8(offset, INSTRUCTION) \
	VMOVDQU offset(SI), Y0 \
	INSTRUCTION offset(BX), Y0, Y0 \
	COLLECT

#define COMPARE(INSTRUCTION) \
	MOVQ a+0(FP), SI \
	MOVQ b+8(FP), BX \
	XORL R8, R8 \
	COMPARE8(0, INSTRUCTION) \
	COMPARE8(32, INSTRUCTION) \
	COMPARE8(64, INSTRUCTION) \
	COMPARE8(96, INSTRUCTION) \
	VZEROUPPER \
	MOVL R8, ret+16(FP) \
	RET

#define UNSIGNED8(offset) \
	VPXOR offset(SI), Y15, Y0 \
	VPXOR offset(BX), Y15, Y1 \
	VPCMPGTD Y1, Y0, Y0 \
	COLLECT

#define COMPAREFLOAT8(offset, PREDICATE) \
	VMOVUPS offset(SI), Y0 \
	VCMPPS PREDICATE, offset(BX), Y0, Y0 \
	COLLECT

#define COMPAREFLOAT(PREDICATE) \
	MOVQ a+0(FP), SI \
	MOVQ b+8(FP), BX \
	XORL R8, R8 \
	COMPAREFLOAT8(0, PREDICATE) \
	COMPAREFLOAT8(32, PREDICATE) \
	COMPAREFLOAT8(64, PREDICATE) \
	COMPAREFLOAT8(96, PREDICATE) \
	VZEROUPPER \
	MOVL R8, ret+16(FP) \
	RET

#define COLLECT4 \
	VMOVMSKPD Y0, AX \
	SHLL $28, AX \
	SHRL $4, R8 \
	ORL AX, R8

#define LONGCOMPARE4(offset, INSTRUCTION) \
	VPXOR offset(SI), Y15, Y0 \
	VPXOR offset(BX), Y15, Y1 \
	INSTRUCTION Y1, Y0, Y0 \
	COLLECT4

// Y15 is zero, or the sign bits for an unsigned order.
#define LONGCOMPARE(INSTRUCTION) \
	MOVQ a+0(FP), SI \
	MOVQ b+8(FP), BX \
	XORL R8, R8 \
	LONGCOMPARE4(0, INSTRUCTION) \
	LONGCOMPARE4(32, INSTRUCTION) \
	LONGCOMPARE4(64, INSTRUCTION) \
	LONGCOMPARE4(96, INSTRUCTION) \
	LONGCOMPARE4(128, INSTRUCTION) \
	LONGCOMPARE4(160, INSTRUCTION) \
	LONGCOMPARE4(192, INSTRUCTION) \
	LONGCOMPARE4(224, INSTRUCTION) \
	VZEROUPPER \
	MOVL R8, ret+16(FP) \
	RET

// func vectorFMA(d, a, b, c *lanes32)
TEXT ·vectorFMA(SB), NOSPLIT, $0-32
	ARGUMENTS
	MOVQ c+24(FP), DX
	NAN
	FMA(0)
	FMA(32)
	FMA(64)
	FMA(96)
	VZEROUPPER
	RET

// func vectorAddF32(d, a, b, c *lanes32)
TEXT ·vectorAddF32(SB), NOSPLIT, $0-32
	FLOAT(VADDPS)

// func vectorSubF32(d, a, b, c *lanes32)
TEXT ·vectorSubF32(SB), NOSPLIT, $0-32
	FLOAT(VSUBPS)

// func vectorMulF32(d, a, b, c *lanes32)
TEXT ·vectorMulF32(SB), NOSPLIT, $0-32
	FLOAT(VMULPS)

// func vectorDivF32(d, a, b, c *lanes32)
TEXT ·vectorDivF32(SB), NOSPLIT, $0-32
	FLOAT(VDIVPS)

// func vectorAdd32(d, a, b, c *lanes32)
TEXT ·vectorAdd32(SB), NOSPLIT, $0-32
	INTEGER(VPADDD)

// func vectorSub32(d, a, b, c *lanes32)
TEXT ·vectorSub32(SB), NOSPLIT, $0-32
	INTEGER(VPSUBD)

// func vectorMul32(d, a, b, c *lanes32)
TEXT ·vectorMul32(SB), NOSPLIT, $0-32
	INTEGER(VPMULLD)

// func vectorAnd32(d, a, b, c *lanes32)
TEXT ·vectorAnd32(SB), NOSPLIT, $0-32
	INTEGER(VPAND)

// func vectorOr32(d, a, b, c *lanes32)
TEXT ·vectorOr32(SB), NOSPLIT, $0-32
	INTEGER(VPOR)

// func vectorXor32(d, a, b, c *lanes32)
TEXT ·vectorXor32(SB), NOSPLIT, $0-32
	INTEGER(VPXOR)

// func vectorShl32(d, a, b, c *lanes32)
TEXT ·vectorShl32(SB), NOSPLIT, $0-32
	INTEGER(VPSLLVD)

// func vectorShrU32(d, a, b, c *lanes32)
TEXT ·vectorShrU32(SB), NOSPLIT, $0-32
	INTEGER(VPSRLVD)

// func vectorShrS32(d, a, b, c *lanes32)
TEXT ·vectorShrS32(SB), NOSPLIT, $0-32
	INTEGER(VPSRAVD)

// func vectorMinU32(d, a, b, c *lanes32)
TEXT ·vectorMinU32(SB), NOSPLIT, $0-32
	INTEGER(VPMINUD)

// func vectorMaxU32(d, a, b, c *lanes32)
TEXT ·vectorMaxU32(SB), NOSPLIT, $0-32
	INTEGER(VPMAXUD)

// func vectorMinS32(d, a, b, c *lanes32)
TEXT ·vectorMinS32(SB), NOSPLIT, $0-32
	INTEGER(VPMINSD)

// func vectorMaxS32(d, a, b, c *lanes32)
TEXT ·vectorMaxS32(SB), NOSPLIT, $0-32
	INTEGER(VPMAXSD)

// func vectorMad32(d, a, b, c *lanes32)
TEXT ·vectorMad32(SB), NOSPLIT, $0-32
	ARGUMENTS
	MOVQ c+24(FP), DX
	MAD8(0)
	MAD8(32)
	MAD8(64)
	MAD8(96)
	VZEROUPPER
	RET

// func vectorAdd64(d, a, b, c *lanes64)
TEXT ·vectorAdd64(SB), NOSPLIT, $0-32
	LONG(VPADDQ)

// func vectorSub64(d, a, b, c *lanes64)
TEXT ·vectorSub64(SB), NOSPLIT, $0-32
	LONG(VPSUBQ)

// func vectorAnd64(d, a, b, c *lanes64)
TEXT ·vectorAnd64(SB), NOSPLIT, $0-32
	LONG(VPAND)

// func vectorOr64(d, a, b, c *lanes64)
TEXT ·vectorOr64(SB), NOSPLIT, $0-32
	LONG(VPOR)

// func vectorXor64(d, a, b, c *lanes64)
TEXT ·vectorXor64(SB), NOSPLIT, $0-32
	LONG(VPXOR)

// func vectorWideS32(d *lanes64, a, b *lanes32, c *lanes64)
TEXT ·vectorWideS32(SB), NOSPLIT, $0-32
	WIDE(VPMOVSXDQ, VPMULDQ)

// func vectorWideU32(d *lanes64, a, b *lanes32, c *lanes64)
TEXT ·vectorWideU32(SB), NOSPLIT, $0-32
	WIDE(VPMOVZXDQ, VPMULUDQ)

// func vectorExtendS32(d *lanes64, a, b *lanes32, c *lanes64)
TEXT ·vectorExtendS32(SB), NOSPLIT, $0-32
	EXTENSION(VPMOVSXDQ)

// func vectorExtendU32(d *lanes64, a, b *lanes32, c *lanes64)
TEXT ·vectorExtendU32(SB), NOSPLIT, $0-32
	EXTENSION(VPMOVZXDQ)

// func vectorShl64(d, a *lanes64, b *lanes32)
TEXT ·vectorShl64(SB), NOSPLIT, $0-24
	SHIFT64(VPSLLVQ)

// func vectorShr64(d, a *lanes64, b *lanes32)
TEXT ·vectorShr64(SB), NOSPLIT, $0-24
	SHIFT64(VPSRLVQ)

// func vectorEqual32(a, b *lanes32) uint32
TEXT ·vectorEqual32(SB), NOSPLIT, $0-20
	COMPARE(VPCMPEQD)

// func vectorGreaterS32(a, b *lanes32) uint32
TEXT ·vectorGreaterS32(SB), NOSPLIT, $0-20
	COMPARE(VPCMPGTD)

// func vectorGreaterU32(a, b *lanes32) uint32
TEXT ·vectorGreaterU32(SB), NOSPLIT, $0-20
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), BX
	XORL R8, R8
	VPCMPEQD Y15, Y15, Y15
	VPSLLD $31, Y15, Y15
	UNSIGNED8(0)
	UNSIGNED8(32)
	UNSIGNED8(64)
	UNSIGNED8(96)
	VZEROUPPER
	MOVL R8, ret+16(FP)
	RET

// func vectorEqF32(a, b *lanes32) uint32
TEXT ·vectorEqF32(SB), NOSPLIT, $0-20
	COMPAREFLOAT($0)

// func vectorLtF32(a, b *lanes32) uint32
TEXT ·vectorLtF32(SB), NOSPLIT, $0-20
	COMPAREFLOAT($17)

// func vectorLeF32(a, b *lanes32) uint32
TEXT ·vectorLeF32(SB), NOSPLIT, $0-20
	COMPAREFLOAT($18)

// func vectorNanF32(a, b *lanes32) uint32
TEXT ·vectorNanF32(SB), NOSPLIT, $0-20
	COMPAREFLOAT($3)

// func vectorEquF32(a, b *lanes32) uint32
TEXT ·vectorEquF32(SB), NOSPLIT, $0-20
	COMPAREFLOAT($8)

// func vectorLtuF32(a, b *lanes32) uint32
TEXT ·vectorLtuF32(SB), NOSPLIT, $0-20
	COMPAREFLOAT($25)

// func vectorLeuF32(a, b *lanes32) uint32
TEXT ·vectorLeuF32(SB), NOSPLIT, $0-20
	COMPAREFLOAT($26)

// func vectorEqual64(a, b *lanes64) uint32
TEXT ·vectorEqual64(SB), NOSPLIT, $0-20
	VPXOR Y15, Y15, Y15
	LONGCOMPARE(VPCMPEQQ)

// func vectorGreaterS64(a, b *lanes64) uint32
TEXT ·vectorGreaterS64(SB), NOSPLIT, $0-20
	VPXOR Y15, Y15, Y15
	LONGCOMPARE(VPCMPGTQ)

// func vectorGreaterU64(a, b *lanes64) uint32
TEXT ·vectorGreaterU64(SB), NOSPLIT, $0-20
	VPCMPEQQ Y15, Y15, Y15
	VPSLLQ $63, Y15, Y15
	LONGCOMPARE(VPCMPGTQ)
