#include "textflag.h"

// Eight lanes: load a and c, multiply by b and add, replace NaN by 0x7fffffff (Y15).
#define LANES(offset) \
	VMOVUPS offset(SI), Y0 \
	VMOVUPS offset(DX), Y1 \
	VFMADD132PS offset(BX), Y1, Y0 \
	VCMPPS $3, Y0, Y0, Y2 \
	VBLENDVPS Y2, Y15, Y0, Y0 \
	VMOVUPS Y0, offset(DI)

// func fmaVector(d, a, b, c *lanes32)
TEXT ·fmaVector(SB), NOSPLIT, $0-32
	MOVQ d+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), BX
	MOVQ c+24(FP), DX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $1, Y15, Y15
	LANES(0)
	LANES(32)
	LANES(64)
	LANES(96)
	VZEROUPPER
	RET
