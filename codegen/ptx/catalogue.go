package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// Intrinsic is an instruction that emitters write as inline assembly, because LLVM has no
// operation for it or would not promise the exact one.
type Intrinsic struct {
	Name        string // the instruction, as PTX spells it
	Text        string // LLVM's assembly template: $0 is the result, or the first of several
	Constraints string // LLVM's constraint string: r i32, l i64, f float, d double, h i16, n constant i32, 0 the register of $0
	Convergent  bool   // depends on which threads run it together: must not move under other control
	SideEffects bool   // must stay even if its result is unused
	Target      int    // oldest compute capability, 80 for sm_80
	Version     int    // oldest PTX version, 70 for 7.0
	Doc         string
	Meaning     string // what the emulator computes; lane is this thread's place in its warp
}

// Specific tells whether only the architecture of Target itself has the instruction (sm_90a), and no newer one.
func (i Intrinsic) Specific() bool {
	return strings.HasPrefix(i.Name, "wgmma.") || strings.HasPrefix(i.Name, "setmaxnreg.")
}

// Catalogue lists all intrinsics, sorted by name. The emulator runs every one: its tests
// assemble each row into a kernel.
func Catalogue() []Intrinsic { return slices.Clone(catalogue) }

// Lookup finds an intrinsic by name.
func Lookup(name string) (Intrinsic, bool) {
	i, ok := slices.BinarySearchFunc(catalogue, name, func(row Intrinsic, name string) int {
		switch {
		case row.Name < name:
			return -1
		case row.Name > name:
			return 1
		}
		return 0
	})
	if !ok {
		return Intrinsic{}, false
	}
	return catalogue[i], true
}

const (
	shuffleDoc    = "Exchanges 32-bit values between lanes. Operands: value, lane operand, clamp (0x1f; 0 for up), member mask."
	nearestDoc    = "Rounded once to nearest even; subnormals kept."
	nearestPlain  = "IEEE result, NaN is 0x7fffffff"
	nearestDouble = "IEEE result"
	copyDoc       = "This thread starts a copy of its bytes at global $1 to shared $0, both aligned to the size; they are there after a wait_group, for other threads after a barrier too."
	copyFillDoc   = copyDoc + " Only the first $2 bytes are read, the rest is zero."
	copyMeaning   = "the copy; touching the bytes before the wait is a fault, and for other warps before a barrier"
	matrixDoc     = "Loads 8x8 matrices of 16-bit elements from shared memory: lane i gives the address of row i%8 of matrix i/8, 16 bytes and aligned to them, and receives elements 2*(i%4) and 2*(i%4)+1 of row i/4"
	productDoc    = "D = A*B + C of a warp: $0..$3 D, $4..$7 A, $8 and $9 B, $10..$13 C. D and C: rows i/4 and, in the last two registers, i/4+8; columns 2*(i%4) and next, for lane i. A: rows i/4 and, in registers 1 and 3, i/4+8; B: column i/4. A register of A or B holds n = 1 (tf32), 2 or 4 (s8) elements along k from (i%4)*n on, the later half of the registers from 4n on."
	productExact  = "exact products and C, cut 25 bits below the largest exponent, added, cut to float32: the bits of Hopper"

	accumulators = "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f"
	mmaOperands  = " {$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};"
)

// warpgroupProduct is wgmma.mma_async of 64 rows, n columns and 16 k with half factors in shared memory: $0 and on D, then as many C,
// which are the same registers; then A and B, and which of them lie transposed.
func warpgroupProduct(n int, factors string) Intrinsic {
	row, out, tied := warpgroupRow(n, factors)
	next := n
	row.Text = fmt.Sprintf("{ .reg .pred p; setp.ne.b32 p, $%d, 0; %s %s, $%d, $%d, p, 1, 1, $%d, $%d; }", next+2, row.Name, out, next, next+1, next+3, next+4)
	row.Constraints = tied + ",l,l,r,n,n,~{memory}"
	row.Doc += fmt.Sprintf("$%d and the next are the descriptors of A and B in shared memory, then a word that is 0 where C does not count, and 1 where A lies [k][row] and where B lies [k][column].", next)
	return row
}

// registerProduct is warpgroupProduct with A in four registers, as of mma.sync. The first of a sum has no C: nothing may
// write to its registers between a fence and the product.
func registerProduct(n int, factors string, first bool) Intrinsic {
	row, out, tied := warpgroupRow(n, factors)
	next := n
	name := row.Name
	row.Name += ".registers"
	row.Doc += fmt.Sprintf("A lies in four registers from $%d on; then B's descriptor, 1, and 1 where B lies [k][column].", next)
	if first {
		next = n / 2
		tied = strings.TrimSuffix(strings.Repeat("=f,", next), ",")
		row.Name += ".first"
		row.Doc = fmt.Sprintf("The warpgroup starts D = A*B, as the product without .first, but A begins at $%d and 0 comes after B.", next)
	}
	row.Text = fmt.Sprintf("{ .reg .pred p; setp.ne.b32 p, $%d, 0; %s %s, {$%d, $%d, $%d, $%d}, $%d, p, 1, 1, $%d; }", next+5, name, out, next, next+1, next+2, next+3, next+4, next+6)
	row.Constraints = tied + ",r,r,r,r,l,r,n,~{memory}"
	return row
}

// warpgroupRow is what products of warpgroups have in common, D as PTX spells it, and its constraints with those of C.
func warpgroupRow(n int, factors string) (row Intrinsic, out, tied string) {
	out, tied = accumulatorOperands(n / 2)
	return Intrinsic{Name: fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%[2]s", n, factors), Convergent: true, SideEffects: true, Target: 90, Version: 80,
		Doc:     "The warpgroup (four warps from a multiple of four on) starts D = A*B + C; D must not be touched before a wait_group. Each warp has 16 rows of D, fragments as of mma.sync, 8 columns after 8. ",
		Meaning: productExact + "; reading what is in flight, or writing what it reads before it is waited for, is a fault"}, out, tied
}

// warpgroupWait is wgmma.wait_group with count accumulators, which pass through it so that nothing reads them before.
func warpgroupWait(count int) Intrinsic {
	_, tied := accumulatorOperands(count)
	return Intrinsic{fmt.Sprintf("wgmma.wait_group.sync.aligned.f32x%d", count), fmt.Sprintf("wgmma.wait_group.sync.aligned $%d;", 2*count), tied + ",n,~{memory}", true, true, 90, 80,
		"Waits until at most as many of the warpgroup's youngest groups as the last operand says are unfinished; the accumulators before it pass through.", "products of the others are finished"}
}

// tensorCopy is the copy of a box of rank dimensions to shared memory; those of several blocks take a mask.
func tensorCopy(rank int, multicast bool) Intrinsic {
	next := rank + 2
	row := Intrinsic{
		Name:        fmt.Sprintf("cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes", rank),
		Constraints: "r,l" + strings.Repeat(",r", rank+1), SideEffects: true, Target: 90, Version: 80,
		Doc: fmt.Sprintf("This thread starts a copy to shared $0, aligned to 128 bytes (1024, 512, 256 for swizzles of 128, 64, 32), of the box at coordinates from $2 on, innermost first, "+
			"of the tensor whose map $1 points to. Its bytes, zeros outside of the tensor, count at mbarrier $%d of this block when they are there.", next),
		Meaning: "lands when no warp of the cluster can go on without it; touching the bytes before a wait for the mbarrier, or a barrier with who waited, is a fault",
	}
	operands := fmt.Sprintf("[$0], [$1, %s], [$%d]", coordinateOperands(2, rank), next)
	if multicast {
		row.Name += ".multicast::cluster"
		row.Doc += fmt.Sprintf(" It goes to the same place of each block of the cluster whose bit is set in $%d, and counts at the mbarrier in the same place there.", next+1)
		row.Constraints += ",h"
		operands += fmt.Sprintf(", $%d", next+1)
	}
	row.Text, row.Constraints = row.Name+" "+operands+";", row.Constraints+",~{memory}"
	return row
}

func coordinateOperands(first, rank int) string {
	operands := make([]string, rank)
	for i := range operands {
		operands[i] = fmt.Sprintf("$%d", first+i)
	}
	return "{" + strings.Join(operands, ", ") + "}"
}

// phaseWait is mbarrier.try_wait.parity in a loop, which the emulator does not run through: it waits.
func phaseWait(name, order string) Intrinsic {
	return Intrinsic{name, "{ .reg .pred p; WAIT: mbarrier.try_wait.parity" + order + ".shared::cta.b64 p, [$0], $1; @p bra DONE; bra WAIT; DONE: }", "r,r,~{memory}", true, true, 90, 80,
		"Waits until the mbarrier at shared $0 is past the phase of parity $1: its phases count from 0.", "a wait that nothing can end is a deadlock"}
}

// accumulatorOperands lists registers 0 to count-1 as PTX spells a vector, and the constraints of outputs and of inputs tied to them.
func accumulatorOperands(count int) (vector, constraints string) {
	registers, outputs, inputs := make([]string, count), make([]string, count), make([]string, count)
	for i := range count {
		registers[i], outputs[i], inputs[i] = fmt.Sprintf("$%d", i), "=f", fmt.Sprint(i)
	}
	return "{" + strings.Join(registers, ", ") + "}", strings.Join(append(outputs, inputs...), ",")
}

// catalogue is sorted by name.
var catalogue = []Intrinsic{
	{"activemask.b32", "activemask.b32 $0;", "=r", true, true, 80, 70,
		"The mask of lanes that run this together; a hint only, since the hardware may split warps.", "mask of active lanes"},
	{"bar.sync", "bar.sync $0;", "r,~{memory}", true, true, 80, 70,
		"All threads of the block meet at barrier $0 (0 to 15), and see each other's memory.", "barrier of all threads"},
	{"bar.sync.count", "bar.sync $0, $1;", "r,r,~{memory}", true, true, 80, 70,
		"$1 threads, a multiple of 32, meet at barrier $0.", "barrier of $1 threads"},
	{"bar.warp.sync", "bar.warp.sync $0;", "r,~{memory}", true, true, 80, 70,
		"The lanes of the member mask $0 meet, and see each other's memory.", "nothing: a warp's lanes are together"},
	{"barrier.cluster.arrive.release", "barrier.cluster.arrive.release;", "~{memory}", true, true, 90, 80,
		"This thread is at the barrier of its cluster, and what it did is visible to those who wait there.", "whole warps"},
	{"barrier.cluster.arrive.release.aligned", "barrier.cluster.arrive.release.aligned;", "~{memory}", true, true, 90, 80,
		"As without .aligned; all threads of the warp execute it together.", "whole warps"},
	{"barrier.cluster.wait.acquire", "barrier.cluster.wait.acquire;", "~{memory}", true, true, 90, 80,
		"Waits until all threads of the cluster, exited ones aside, are at its barrier. This thread has arrived before.", "whole warps"},
	{"barrier.cluster.wait.acquire.aligned", "barrier.cluster.wait.acquire.aligned;", "~{memory}", true, true, 90, 80,
		"As without .aligned; all threads of the warp execute it together.", "whole warps"},
	{"barrier.sync", "barrier.sync $0;", "r,~{memory}", true, true, 80, 70,
		"Like bar.sync; the emulator asks for whole warps here too.", "barrier of all threads"},
	tensorCopy(1, false),
	tensorCopy(1, true),
	tensorCopy(2, false),
	tensorCopy(2, true),
	tensorCopy(3, false),
	tensorCopy(3, true),
	tensorCopy(4, false),
	tensorCopy(4, true),
	tensorCopy(5, false),
	tensorCopy(5, true),
	{"cp.async.ca.shared.global.16", "cp.async.ca.shared.global [$0], [$1], 16;", "r,l,~{memory}", false, true, 80, 70,
		copyDoc, copyMeaning},
	{"cp.async.ca.shared.global.16.zfill", "cp.async.ca.shared.global [$0], [$1], 16, $2;", "r,l,r,~{memory}", false, true, 80, 70,
		copyFillDoc, copyMeaning},
	{"cp.async.ca.shared.global.4", "cp.async.ca.shared.global [$0], [$1], 4;", "r,l,~{memory}", false, true, 80, 70,
		copyDoc, copyMeaning},
	{"cp.async.ca.shared.global.4.zfill", "cp.async.ca.shared.global [$0], [$1], 4, $2;", "r,l,r,~{memory}", false, true, 80, 70,
		copyFillDoc, copyMeaning},
	{"cp.async.ca.shared.global.8", "cp.async.ca.shared.global [$0], [$1], 8;", "r,l,~{memory}", false, true, 80, 70,
		copyDoc, copyMeaning},
	{"cp.async.ca.shared.global.8.zfill", "cp.async.ca.shared.global [$0], [$1], 8, $2;", "r,l,r,~{memory}", false, true, 80, 70,
		copyFillDoc, copyMeaning},
	{"cp.async.cg.shared.global.16", "cp.async.cg.shared.global [$0], [$1], 16;", "r,l,~{memory}", false, true, 80, 70,
		copyDoc, copyMeaning},
	{"cp.async.cg.shared.global.16.zfill", "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,r,~{memory}", false, true, 80, 70,
		copyFillDoc, copyMeaning},
	{"cp.async.commit_group", "cp.async.commit_group;", "~{memory}", false, true, 80, 70,
		"Closes the group of the copies that this thread started since the last one.", "per thread; a group may be empty"},
	{"cp.async.wait_all", "cp.async.wait_all;", "~{memory}", false, true, 80, 70,
		"Waits for all copies that this thread started.", "their bytes become readable to this thread"},
	{"cp.async.wait_group", "cp.async.wait_group $0;", "n,~{memory}", false, true, 80, 70,
		"Waits until at most the $0 youngest of this thread's groups are unfinished.", "bytes of the others become readable to this thread"},
	{"cvt.f32.bf16", "cvt.f32.bf16 $0, $1;", "=f,h", false, false, 90, 78, "Widens bfloat16.", "exact"},
	{"cvt.f32.f16", "cvt.f32.f16 $0, $1;", "=f,h", false, false, 80, 70, "Widens float16.", "exact"},
	{"cvt.rn.bf16.f32", "cvt.rn.bf16.f32 $0, $1;", "=h,f", false, false, 80, 70, "Rounds to bfloat16.", "to nearest even, NaN is 0x7fff"},
	{"cvt.rn.bf16x2.f32", "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f", false, false, 80, 70,
		"Rounds two values to bfloat16: $1 goes to the high half, $2 to the low one.", "to nearest even, NaN is 0x7fff"},
	{"cvt.rn.f16.f32", "cvt.rn.f16.f32 $0, $1;", "=h,f", false, false, 80, 70, "Rounds to float16.", "to nearest even, NaN is 0x7fff"},
	{"cvt.rn.f16x2.f32", "cvt.rn.f16x2.f32 $0, $1, $2;", "=r,f,f", false, false, 80, 70,
		"Rounds two values to float16: $1 goes to the high half, $2 to the low one.", "to nearest even, NaN is 0x7fff"},
	{"cvt.rn.f32.s32", "cvt.rn.f32.s32 $0, $1;", "=f,r", false, false, 80, 70, "Integer to float.", "to nearest even"},
	{"cvt.rna.tf32.f32", "cvt.rna.tf32.f32 $0, $1;", "=r,f", false, false, 80, 70,
		"Rounds to the tensor cores' tf32, ties away from zero.", "10 fraction bits kept"},
	{"cvt.rni.f32.f32", "cvt.rni.f32.f32 $0, $1;", "=f,f", false, false, 80, 70, "Rounds to an integral value, ties to even.", "exact"},
	{"cvt.rzi.s32.f32", "cvt.rzi.s32.f32 $0, $1;", "=r,f", false, false, 80, 70,
		"Truncates, clamping to the range of i32.", "NaN becomes 0"},
	{"cvt.rzi.s64.f32", "cvt.rzi.s64.f32 $0, $1;", "=l,f", false, false, 80, 70,
		"Truncates, clamping to the range of i64.", "NaN becomes 1<<63"},
	{"div.rn.f32", "div.rn.f32 $0, $1, $2;", "=f,f,f", false, false, 80, 70, nearestDoc, nearestPlain},
	{"div.rn.f64", "div.rn.f64 $0, $1, $2;", "=d,d,d", false, false, 80, 70, nearestDoc, nearestDouble},
	{"ex2.approx.ftz.f32", "ex2.approx.ftz.f32 $0, $1;", "=f,f", false, false, 80, 70,
		"2 to the power $1, about 2 ulp; subnormals are zero. Only where approximations are allowed.", "stand-in: correctly rounded from float64"},
	{"fence.mbarrier_init.release.cluster", "fence.mbarrier_init.release.cluster;", "~{memory}", false, true, 90, 80,
		"Makes the mbarriers that this thread has initialised usable by copies, and by other blocks of the cluster after its barrier.", "other uses are a fault"},
	{"fence.proxy.async.shared::cta", "fence.proxy.async.shared::cta;", "~{memory}", false, true, 90, 80,
		"Makes what this thread wrote to shared memory, its finished cp.async too, readable to wgmma of threads that meet it at a barrier.", "wgmma of other bytes is a fault"},
	{"fma.rn.bf16x2", "fma.rn.bf16x2 $0, $1, $2, $3;", "=r,r,r,r", false, false, 80, 70,
		"$1 * $2 + $3 of both bfloat16.", "rounded once, to nearest even, denormals too; NaN is 0x7fff"},
	{"fma.rn.f32", "fma.rn.f32 $0, $1, $2, $3;", "=f,f,f,f", false, false, 80, 70, nearestDoc, nearestPlain},
	{"fma.rn.f64", "fma.rn.f64 $0, $1, $2, $3;", "=d,d,d,d", false, false, 80, 70, nearestDoc, nearestDouble},
	{"ld.global.nc.v2.f32", "ld.global.nc.v2.f32 {$0, $1}, [$2];", "=f,=f,l", false, false, 80, 70,
		"8 bytes of memory that no thread of the launch writes; aligned to 8.", "checked load"},
	{"ld.global.nc.v2.u32", "ld.global.nc.v2.u32 {$0, $1}, [$2];", "=r,=r,l", false, false, 80, 70,
		"8 bytes of memory that no thread of the launch writes; aligned to 8.", "checked load"},
	{"ld.global.nc.v4.f32", "ld.global.nc.v4.f32 {$0, $1, $2, $3}, [$4];", "=f,=f,=f,=f,l", false, false, 80, 70,
		"16 bytes of memory that no thread of the launch writes; aligned to 16.", "checked load"},
	{"ld.global.nc.v4.u32", "ld.global.nc.v4.u32 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,l", false, false, 80, 70,
		"16 bytes of memory that no thread of the launch writes; aligned to 16.", "checked load"},
	{"ldmatrix.sync.aligned.m8n8.x1.shared.b16", "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {$0}, [$1];", "=r,r,~{memory}", true, true, 80, 70,
		matrixDoc + ".", "checked load"},
	{"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {$0}, [$1];", "=r,r,~{memory}", true, true, 80, 70,
		matrixDoc + " of the transposed matrix.", "checked load"},
	{"ldmatrix.sync.aligned.m8n8.x2.shared.b16", "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {$0, $1}, [$2];", "=r,=r,r,~{memory}", true, true, 80, 70,
		matrixDoc + ".", "checked load"},
	{"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {$0, $1}, [$2];", "=r,=r,r,~{memory}", true, true, 80, 70,
		matrixDoc + " of the transposed matrix.", "checked load"},
	{"ldmatrix.sync.aligned.m8n8.x4.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}", true, true, 80, 70,
		matrixDoc + ".", "checked load"},
	{"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {$0, $1, $2, $3}, [$4];", "=r,=r,=r,=r,r,~{memory}", true, true, 80, 70,
		matrixDoc + " of the transposed matrix.", "checked load"},
	{"lop3.b32", "lop3.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,n", false, false, 80, 70,
		"Any logic function of three words; bit 4a+2b+c of $4 is its value for bits a of $1, b of $2, c of $3.", "exact"},
	{"mapa.shared::cluster.u32", "mapa.shared::cluster.u32 $0, $1, $2;", "=r,r,r", false, false, 90, 78,
		"The address by which this block reaches shared $1 of the block with rank $2 in the cluster.", "addresses by which only mbarriers are reached"},
	{"mbarrier.arrive.expect_tx.shared::cta.b64", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], $1;", "r,r,~{memory}", false, true, 90, 80,
		"The phase of the mbarrier at shared $0 lasts until $1 more bytes are there; then as mbarrier.arrive.", "a phase has fewer than 2^20 bytes"},
	{"mbarrier.arrive.shared::cluster.b64", "mbarrier.arrive.shared::cluster.b64 _, [$0];", "r,~{memory}", false, true, 90, 80,
		"As mbarrier.arrive, at an mbarrier of any block of the cluster, by an address of mapa.", "an mbarrier of a block that has exited is a fault"},
	{"mbarrier.arrive.shared::cta.b64", "mbarrier.arrive.shared::cta.b64 _, [$0];", "r,~{memory}", false, true, 90, 80,
		"This thread arrives at the mbarrier at shared $0: the last one that a phase expects ends it, and those who wait see what all had done.", "more than the phase expects are a fault"},
	{"mbarrier.init.shared::cta.b64", "mbarrier.init.shared::cta.b64 [$0], $1;", "r,r,~{memory}", false, true, 90, 80,
		"Makes 8 bytes of shared memory, aligned to them, an mbarrier whose phases expect $1 arrivals. Other warps may use it after a barrier.", "touching them otherwise is a fault"},
	phaseWait("mbarrier.wait.parity", ""),
	phaseWait("mbarrier.wait.parity.acquire.cluster", ".acquire.cluster"),
	{"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32" + mmaOperands, accumulators, true, false, 80, 70,
		productDoc, productExact},
	{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32" + mmaOperands, accumulators, true, false, 80, 70,
		productDoc, productExact},
	{"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32" + mmaOperands, "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r", true, false, 80, 70,
		productDoc, "exact, wrapping"},
	{"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" + mmaOperands, accumulators, true, false, 80, 70,
		productDoc, productExact},
	{"movmatrix.sync.aligned.m8n8.trans.b16", "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r", true, false, 80, 78,
		"Transposes an 8x8 matrix of 16-bit elements that a warp holds as ldmatrix loads it.", "exchange of lanes"},
	{"prefetch.global.L2", "prefetch.global.L2 [$0];", "l", false, true, 80, 70, "Brings a line into the L2 cache.", "nothing"},
	{"prefetch.tensormap", "prefetch.tensormap [$0];", "l,~{memory}", false, true, 90, 80,
		"Brings the tensor map, a parameter of the kernel, into the cache.", "nothing; what is no tensor map is a fault"},
	{"prmt.b32", "prmt.b32 $0, $1, $2, $3;", "=r,r,r,r", false, false, 80, 70,
		"Picks four of the eight bytes of $2:$1; a nibble of $3 chooses each, its top bit copies the sign.", "exact"},
	{"rcp.above1.f32", "{ .reg .f32 r, e; rcp.approx.ftz.f32 r, $1; neg.f32 e, $1; fma.rn.f32 e, e, r, 0f3F800000; fma.rn.f32 $0, r, e, r; }", "=f,f", false, false, 80, 70,
		"1/$1 for $1 in [1, 2^126], or NaN, rounded once: an approximation and one step of Newton's, which is how rcp.rn goes where it need not look for other operands.", "IEEE result, NaN is 0x7fffffff"},
	{"rcp.rn.f32", "rcp.rn.f32 $0, $1;", "=f,f", false, false, 80, 70, nearestDoc, nearestPlain},
	{"rcp.rn.f64", "rcp.rn.f64 $0, $1;", "=d,d", false, false, 80, 70, nearestDoc, nearestDouble},
	{"redux.sync.add.s32", "redux.sync.add.s32 $0, $1, $2;", "=r,r,r", true, true, 80, 70,
		"Sum of $1 over the lanes of the member mask $2.", "wrapping sum"},
	{"setmaxnreg.dec.sync.aligned.u32", "setmaxnreg.dec.sync.aligned.u32 $0;", "n", true, true, 90, 80,
		"The warpgroup gives registers back: $0 a thread, a multiple of 8 from 24 to 256, remain.", "nothing"},
	{"setmaxnreg.inc.sync.aligned.u32", "setmaxnreg.inc.sync.aligned.u32 $0;", "n", true, true, 90, 80,
		"The warpgroup waits for free registers, until it has $0 a thread, a multiple of 8 from 24 to 256.", "nothing"},
	{"shfl.sync.bfly.b32", "shfl.sync.bfly.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,r", true, true, 80, 70, shuffleDoc, "value of lane xor $2"},
	{"shfl.sync.bfly.f32", "shfl.sync.bfly.b32 $0, $1, $2, $3, $4;", "=f,f,r,r,r", true, true, 80, 70, shuffleDoc, "value of lane xor $2"},
	{"shfl.sync.down.b32", "shfl.sync.down.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,r", true, true, 80, 70, shuffleDoc, "value of lane + $2, own value past the end"},
	{"shfl.sync.down.f32", "shfl.sync.down.b32 $0, $1, $2, $3, $4;", "=f,f,r,r,r", true, true, 80, 70, shuffleDoc, "value of lane + $2, own value past the end"},
	{"shfl.sync.idx.b32", "shfl.sync.idx.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,r", true, true, 80, 70, shuffleDoc, "value of lane $2"},
	{"shfl.sync.idx.f32", "shfl.sync.idx.b32 $0, $1, $2, $3, $4;", "=f,f,r,r,r", true, true, 80, 70, shuffleDoc, "value of lane $2"},
	{"shfl.sync.up.b32", "shfl.sync.up.b32 $0, $1, $2, $3, $4;", "=r,r,r,r,r", true, true, 80, 70, shuffleDoc, "value of lane - $2, own value before the start"},
	{"shfl.sync.up.f32", "shfl.sync.up.b32 $0, $1, $2, $3, $4;", "=f,f,r,r,r", true, true, 80, 70, shuffleDoc, "value of lane - $2, own value before the start"},
	{"sqrt.rn.f32", "sqrt.rn.f32 $0, $1;", "=f,f", false, false, 80, 70, nearestDoc, nearestPlain},
	{"sqrt.rn.f64", "sqrt.rn.f64 $0, $1;", "=d,d", false, false, 80, 70, nearestDoc, nearestDouble},
	{"st.global.v2.f32", "st.global.v2.f32 [$0], {$1, $2};", "l,f,f,~{memory}", false, true, 80, 70, "8 bytes, aligned to 8.", "checked store"},
	{"st.global.v4.f32", "st.global.v4.f32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f,~{memory}", false, true, 80, 70, "16 bytes, aligned to 16.", "checked store"},
	{"stmatrix.sync.aligned.m8n8.x1.shared.b16", "stmatrix.sync.aligned.m8n8.x1.shared.b16 [$0], {$1};", "r,r,~{memory}", true, true, 90, 78,
		"The reverse of ldmatrix: stores 8x8 matrices of 16-bit elements to shared memory.", "checked store"},
	{"stmatrix.sync.aligned.m8n8.x1.trans.shared.b16", "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [$0], {$1};", "r,r,~{memory}", true, true, 90, 78,
		"The reverse of ldmatrix.trans: stores 8x8 matrices of 16-bit elements to shared memory.", "checked store"},
	{"stmatrix.sync.aligned.m8n8.x2.shared.b16", "stmatrix.sync.aligned.m8n8.x2.shared.b16 [$0], {$1, $2};", "r,r,r,~{memory}", true, true, 90, 78,
		"The reverse of ldmatrix: stores 8x8 matrices of 16-bit elements to shared memory.", "checked store"},
	{"stmatrix.sync.aligned.m8n8.x2.trans.shared.b16", "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [$0], {$1, $2};", "r,r,r,~{memory}", true, true, 90, 78,
		"The reverse of ldmatrix.trans: stores 8x8 matrices of 16-bit elements to shared memory.", "checked store"},
	{"stmatrix.sync.aligned.m8n8.x4.shared.b16", "stmatrix.sync.aligned.m8n8.x4.shared.b16 [$0], {$1, $2, $3, $4};", "r,r,r,r,r,~{memory}", true, true, 90, 78,
		"The reverse of ldmatrix: stores 8x8 matrices of 16-bit elements to shared memory.", "checked store"},
	{"stmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [$0], {$1, $2, $3, $4};", "r,r,r,r,r,~{memory}", true, true, 90, 78,
		"The reverse of ldmatrix.trans: stores 8x8 matrices of 16-bit elements to shared memory.", "checked store"},
	{"tanh.approx.f32", "tanh.approx.f32 $0, $1;", "=f,f", false, false, 80, 70,
		"Hyperbolic tangent, relative error 2^-11. Only where approximations are allowed.", "stand-in: correctly rounded from float64"},
	{"vote.sync.all.pred", "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.all.pred p, p, $2; selp.b32 $0, 1, 0, p; }", "=r,r,r", true, true, 80, 70,
		"1 if $1 is not 0 in all lanes of the member mask $2, else 0.", "and over lanes"},
	{"vote.sync.any.pred", "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.any.pred p, p, $2; selp.b32 $0, 1, 0, p; }", "=r,r,r", true, true, 80, 70,
		"1 if $1 is not 0 in some lane of the member mask $2, else 0.", "or over lanes"},
	{"vote.sync.ballot.b32", "{ .reg .pred p; setp.ne.b32 p, $1, 0; vote.sync.ballot.b32 $0, p, $2; }", "=r,r,r", true, true, 80, 70,
		"The mask of lanes in the member mask $2 where $1 is not 0.", "mask of lanes"},
	{"wgmma.commit_group.sync.aligned", "wgmma.commit_group.sync.aligned;", "~{memory}", true, true, 90, 80,
		"Closes the group of the products that the warpgroup started since the last one.", "a group may be empty"},
	{"wgmma.fence.sync.aligned", "wgmma.fence.sync.aligned;", "~{memory}", true, true, 90, 80,
		"Orders what the warpgroup did to accumulators and shared memory before the products that follow.", "nothing"},
	warpgroupProduct(128, "bf16"),
	registerProduct(128, "bf16", false),
	registerProduct(128, "bf16", true),
	warpgroupProduct(128, "f16"),
	registerProduct(128, "f16", false),
	registerProduct(128, "f16", true),
	warpgroupProduct(192, "bf16"),
	warpgroupProduct(192, "f16"),
	warpgroupProduct(256, "bf16"),
	warpgroupProduct(256, "f16"),
	warpgroupProduct(64, "bf16"),
	registerProduct(64, "bf16", false),
	registerProduct(64, "bf16", true),
	warpgroupProduct(64, "f16"),
	registerProduct(64, "f16", false),
	registerProduct(64, "f16", true),
	warpgroupWait(128),
	warpgroupWait(32),
	warpgroupWait(64),
	warpgroupWait(96),
}
