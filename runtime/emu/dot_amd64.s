#include "textflag.h"

// func vectorAlign(valueA, exponentA *[512]int32, valueB, exponentB *[256]int32, top, sum *[16][8]int32, inner int)
//
// One row of D a turn, its eight columns side by side.
TEXT ·vectorAlign(SB), NOSPLIT, $0-56
	MOVQ valueA+0(FP), SI
	MOVQ exponentA+8(FP), DI
	MOVQ valueB+16(FP), R8
	MOVQ exponentB+24(FP), R9
	MOVQ top+32(FP), R10
	MOVQ sum+40(FP), R11
	MOVQ inner+48(FP), CX
	MOVQ $16, DX

row:
	VMOVDQU (R10), Y0
	MOVQ R9, BX
	XORQ AX, AX

largest:
	VPBROADCASTD (DI)(AX*4), Y1
	VPADDD (BX), Y1, Y1
	VPMAXSD Y1, Y0, Y0
	ADDQ $32, BX
	INCQ AX
	CMPQ AX, CX
	JLT largest
	VMOVDQU Y0, (R10)
	VPXOR Y2, Y2, Y2
	MOVQ R9, BX
	MOVQ R8, R12
	XORQ AX, AX

add:
	VPBROADCASTD (DI)(AX*4), Y1
	VPADDD (BX), Y1, Y1
	VPSUBD Y1, Y0, Y1
	VPBROADCASTD (SI)(AX*4), Y3
	VPMULLD (R12), Y3, Y3
	VPABSD Y3, Y4
	VPSRLVD Y1, Y4, Y4
	VPSIGND Y3, Y4, Y4
	VPADDD Y4, Y2, Y2
	ADDQ $32, BX
	ADDQ $32, R12
	INCQ AX
	CMPQ AX, CX
	JLT add
	VMOVDQU Y2, (R11)
	ADDQ $128, SI
	ADDQ $128, DI
	ADDQ $32, R10
	ADDQ $32, R11
	DECQ DX
	JNZ row
	VZEROUPPER
	RET

// func vectorSplit(raw *uint32, significand, exponent *int32, count int, c *splitConstants) (special uint32)
//
// Eight elements a turn; count is a multiple of 8.
TEXT ·vectorSplit(SB), NOSPLIT, $0-44
	MOVQ raw+0(FP), SI
	MOVQ significand+8(FP), DI
	MOVQ exponent+16(FP), BX
	MOVQ count+24(FP), CX
	MOVQ c+32(FP), DX
	VMOVQ 0(DX), X0
	VMOVQ 8(DX), X1
	VMOVQ 16(DX), X2
	VMOVQ 24(DX), X3
	VPBROADCASTD 32(DX), Y4
	VPBROADCASTD 36(DX), Y5
	VPBROADCASTD 40(DX), Y6
	VPBROADCASTD 44(DX), Y7
	VPBROADCASTD 48(DX), Y8
	VPXOR Y14, Y14, Y14
	VPXOR Y15, Y15, Y15

eight:
	VMOVDQU (SI), Y9
	VPSRLD X0, Y9, Y9
	VPSRLD X1, Y9, Y10
	VPAND Y4, Y10, Y10    // stored exponent
	VPAND Y6, Y9, Y11     // fraction
	VPCMPEQD Y4, Y10, Y12
	VPOR Y12, Y15, Y15    // special
	VPCMPEQD Y14, Y10, Y12 // subnormal or zero
	VPSUBD Y12, Y10, Y10
	VPSUBD Y7, Y10, Y10   // exponent
	VPANDN Y5, Y12, Y12
	VPOR Y12, Y11, Y11    // significand
	VPCMPEQD Y14, Y11, Y12
	VPBLENDVB Y12, Y8, Y10, Y10
	VMOVDQU Y10, (BX)
	VPSLLD X2, Y9, Y9
	VPSRAD $31, Y9, Y9    // sign
	VPXOR Y9, Y11, Y11
	VPSUBD Y9, Y11, Y11
	VPSLLD X3, Y11, Y11
	VMOVDQU Y11, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	ADDQ $32, BX
	SUBQ $8, CX
	JG eight
	VMOVMSKPS Y15, AX
	VZEROUPPER
	MOVL AX, special+40(FP)
	RET
