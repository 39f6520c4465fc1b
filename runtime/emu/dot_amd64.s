#include "textflag.h"

// func vectorAlign(valueA, exponentA *[16][32]int32, valueB, exponentB *[32][8]int32, top, sum *[16][8]int32, inner int)
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
