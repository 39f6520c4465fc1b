#include "textflag.h"

// Loops over 16 elements with AVX2 and F16C; n is a multiple of 16. Each has a portable twin in
// combine.go with the same bits, which TestVectors compares.

// func vectorAddTwo(acc, a, b *float32, n int)
TEXT ·vectorAddTwo(SB), NOSPLIT, $0-32
	MOVQ acc+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ n+24(FP), CX
addTwo:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VADDPS (BX), Y0, Y0
	VADDPS 32(BX), Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $64, SI
	ADDQ $64, BX
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ addTwo
	VZEROUPPER
	RET

// func vectorAddBF16(acc *float32, a *uint16, n int)
TEXT ·vectorAddBF16(SB), NOSPLIT, $0-24
	MOVQ acc+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ n+16(FP), CX
addBF16:
	VPMOVZXWD (SI), Y2
	VPMOVZXWD 16(SI), Y3
	VPSLLD $16, Y2, Y2
	VPSLLD $16, Y3, Y3
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VADDPS Y2, Y0, Y0
	VADDPS Y3, Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ addBF16
	VZEROUPPER
	RET

// func vectorWidenBF16(out *float32, in *uint16, n int)
TEXT ·vectorWidenBF16(SB), NOSPLIT, $0-24
	MOVQ out+0(FP), DI
	MOVQ in+8(FP), SI
	MOVQ n+16(FP), CX
widenBF16:
	VPMOVZXWD (SI), Y0
	VPMOVZXWD 16(SI), Y1
	VPSLLD $16, Y0, Y0
	VPSLLD $16, Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ widenBF16
	VZEROUPPER
	RET

// ROUND rounds the floats in x to bf16 in the low halves of t: adds 0x7fff and the last bit that
// stays, and puts the quiet NaN where x is none.
#define ROUND(x, t, m) \
	VPSRLD $16, x, t \
	VPAND Y8, t, t \
	VPADDD Y9, t, t \
	VPADDD x, t, t \
	VPSRLD $16, t, t \
	VCMPPS $3, x, x, m \
	VBLENDVPS m, Y10, t, t

// func vectorRoundBF16(out *uint16, in *float32, n int)
TEXT ·vectorRoundBF16(SB), NOSPLIT, $0-24
	MOVQ out+0(FP), DI
	MOVQ in+8(FP), SI
	MOVQ n+16(FP), CX
	MOVL $1, AX
	MOVQ AX, X8
	VPBROADCASTD X8, Y8
	MOVL $0x7fff, AX
	MOVQ AX, X9
	VPBROADCASTD X9, Y9
	MOVL $0x7fc0, AX
	MOVQ AX, X10
	VPBROADCASTD X10, Y10
roundBF16:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	ROUND(Y0, Y2, Y4)
	ROUND(Y1, Y3, Y5)
	VPACKUSDW Y3, Y2, Y2
	VPERMQ $0xd8, Y2, Y2
	VMOVDQU Y2, (DI)
	ADDQ $64, SI
	ADDQ $32, DI
	SUBQ $16, CX
	JNZ roundBF16
	VZEROUPPER
	RET

// func vectorAddF16(acc *float32, a *uint16, n int)
TEXT ·vectorAddF16(SB), NOSPLIT, $0-24
	MOVQ acc+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ n+16(FP), CX
addF16:
	VCVTPH2PS (SI), Y2
	VCVTPH2PS 16(SI), Y3
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VADDPS Y2, Y0, Y0
	VADDPS Y3, Y1, Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ addF16
	VZEROUPPER
	RET

// func vectorWidenF16(out *float32, in *uint16, n int)
TEXT ·vectorWidenF16(SB), NOSPLIT, $0-24
	MOVQ out+0(FP), DI
	MOVQ in+8(FP), SI
	MOVQ n+16(FP), CX
widenF16:
	VCVTPH2PS (SI), Y0
	VCVTPH2PS 16(SI), Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $32, SI
	ADDQ $64, DI
	SUBQ $16, CX
	JNZ widenF16
	VZEROUPPER
	RET

// func vectorRoundF16(out *uint16, in *float32, n int)
TEXT ·vectorRoundF16(SB), NOSPLIT, $0-24
	MOVQ out+0(FP), DI
	MOVQ in+8(FP), SI
	MOVQ n+16(FP), CX
roundF16:
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VCVTPS2PH $0, Y0, (DI)
	VCVTPS2PH $0, Y1, 16(DI)
	ADDQ $64, SI
	ADDQ $32, DI
	SUBQ $16, CX
	JNZ roundF16
	VZEROUPPER
	RET
