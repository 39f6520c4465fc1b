package emu

import (
	"errors"
	"testing"

	"weft/codegen/ptx"
	"weft/runtime"
)

// FuzzRun decodes and runs arbitrary PTX: whatever it is, there is an error or a result, never
// a panic, and the instruction budget ends it.
func FuzzRun(f *testing.F) {
	f.Add(kernelText("st.global.u32 [%rd5], %r2;"))
	f.Add(kernelText("@%p1 bra L; bar.sync 0; L:"))
	f.Add(kernelText("brx.idx %r2, T; T: .branchtargets A; A: ret;"))
	f.Add(kernelText("shfl.sync.up.b32 %r3|%p4, %r2, 1, 0, -1; atom.shared.add.u32 %r3, [s], 1;"))
	f.Add(kernelText("bar.red.popc.u32 %r3, 0, %p1; match.any.sync.b32 %r3, %r2, -1; redux.sync.add.s32 %r3, %r2, -1;"))
	f.Add(kernelText("cvt.rn.bf16x2.f32 %r3, %f1, %f2; mov.b64 {%r3, %r4}, %rd1; bfi.b32 %r3, %r2, %r2, 3, 4; prmt.b32 %r3, %r2, %r2, 1;"))
	f.Add(kernelText("testp.finite.f32 %p4, %f1; set.lt.u32.s32 %r3, %r2, 4; slct.b32.s32 %r3, %r2, %r1, %r2; lop3.b32 %r3, %r2, %r2, %r2, 7;"))
	f.Add(kernelText("cvt.u32.u64 %r3, %rd7; cp.async.ca.shared.global [%r3], [%rd4], 4, 2; cp.async.commit_group; cp.async.wait_group 0; ld.shared.u32 %r4, [%rd7];"))
	f.Add(kernelText("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};"))
	f.Add(kernelText("shl.b32 %r3, %r2, 4; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r4}; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r3}, [%r3];"))
	f.Add(warpgroupText(readyProduct + "PRODUCT COMMIT STORE wgmma.wait_group.sync.aligned 1; COPY cp.async.wait_all; PROXY"))
	r := ring{2, 3, 2, 1}
	f.Add(r.text(r.parts()))
	f.Add(boxText("", 4096, "INIT prefetch.tensormap [%rd1]; @%p1 EXPECT 4096; @%p1 COPY2 [%r4], [%rd1, {%r5, %r5}], [%r3]; WAIT0 OUT"))
	f.Add(boxText(".reqnctapercluster 1, 2, 1", 64, "CLUSTER mapa.shared::cluster.u32 %r9, %r3, %r5; setmaxnreg.dec.sync.aligned.u32 24; INIT @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r9]; WAIT0 WAIT1"))
	for _, in := range hardwareInstructions() {
		f.Add(hardwareModule([]string{in}))
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ptx.Parse(text)
		if err != nil {
			return
		}
		d := New(Options{Workers: 1, MaxInstructions: 2000, Memory: 1 << 24})
		module, err := d.Load([]byte(text))
		if err != nil {
			return
		}
		p, err := d.Alloc(1024)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Entries() {
			k, err := module.Kernel(e.Name)
			if err != nil {
				return // declared only
			}
			var args []runtime.Arg
			for _, v := range e.Parameters {
				switch v.Size() {
				case 8:
					args = append(args, pointer(p, 1024, runtime.ReadWrite))
				case runtime.TensorMapSize:
					tensor := &runtime.TensorMap{Type: runtime.TensorF16, Dims: []uint64{64, 7}, Strides: []uint64{144}, Box: []uint32{64, 8}, Swizzle: runtime.Swizzle128}
					args = append(args, runtime.Arg{Kind: runtime.ArgTensorMap, Bits: uint64(p), Size: 1024, Access: runtime.Read, Map: tensor})
				default:
					args = append(args, int32Arg(3))
				}
			}
			err = d.Launch(0, runtime.Launch{Kernel: k, Grid: [3]int{2, 1, 1}, Block: [3]int{48, 1, 1}, Args: args})
			if err != nil {
				continue
			}
			var fault *Fault
			if err := d.Synchronize(); err != nil && !errors.As(err, &fault) {
				t.Fatal(err)
			}
		}
	})
}

// TestDecodeMalformed tries every opcode with wrong modifiers and operands: errors, no panics.
func TestDecodeMalformed(t *testing.T) {
	modifiers := []string{"", ".b32", ".f32", ".f64", ".b64", ".u16", ".pred", ".f16x2", ".u8", ".b128", ".lo.s32", ".wide.s64", ".eq.s32", ".sync",
		".sync.all.pred", ".u32.u32", ".f32.s32", ".global.u32", ".shared.v4.f64", ".param.u64", ".red.popc.u32", ".add.u32", ".rn", ".uni", ".idx", ".NaN.relu.f16",
		".sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", ".sync.aligned.m8n8.x2.shared.b16", ".async.cg.shared.global", ".async.wait_group",
		".async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster", ".async.bulk.tensor", ".async.bulk", ".cluster.wait.acquire", ".shared::cluster.u32", ".tensormap",
		".init.shared::cta.b64", ".arrive.expect_tx.shared::cta.b64", ".arrive.shared::cta.b64", ".try_wait.parity.shared::cta.b64", ".inc.sync.aligned.u32"}
	operands := []string{"", "%r1", "%p1", "%r1, %r2", "%r1, 1", "%r1, %r2, %r3", "%p1|%p2, %r1, %r2, !%p3", "{%r1, %r2}, [%rd1]", "[%rd1], %r1",
		"[%rd1+4], {%r1, %r2, %r3, %r4}", "%rd1, {%r1, %r2}", "%rs1, %rs2, %rs3, %rs4", "%r1, %r2, %r3, %r4, %r5", "(%r1), %r2", "_, [s], %r1", "{}, %r1",
		"%r1, {}", "%rd1, [a]", "1, 2, 3", "%r1, 0f3F800000, 0d3FF0000000000000", "[[%r1]]", "s, table", "%r1, %tid.x, %laneid", "%p1, %f1, %f2", "|", "%r1|%p1, %r2, 1, 31, -1", "[%r1], [%rd1], 16, %r2",
		"{%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, 1", "[%r1], [%rd1, {%r1, %r2}], [%r3], %rs1", "[%r1], [%rd1, {%r1}], [%r3]", "_, [%r1]", "_, [%r1], 16", "40", "[%r1], 1", "%p1, [s], %r1", "_"}
	const head = `.version 8.0
.target sm_90
.address_size 64
.const .align 4 .u32 table[4] = {10, 11, 12, 13};
.visible .entry k(.param .u64 a)
{
	.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>; .shared .align 16 .b8 s[256];
`
	for op := range decoders {
		for _, m := range modifiers {
			for _, o := range operands {
				_ = Check(head + op + m + " " + o + ";\n}\n")
			}
		}
	}
}
