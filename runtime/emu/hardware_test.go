package emu

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/runtime"
)

// The emulator must give the bits that an H200 gives. The instructions below run on the same
// operands on both; testdata/h200.txt holds the digests of what the GPU returned. To take them
// again: go test -run Hardware -write-hardware DIR, then testdata/hardware.py DIR on a GPU.
var writeHardware = flag.String("write-hardware", "", "folder for the kernels and operands of the hardware comparison")

// hardwareOperands is the number of operand triples.
const hardwareOperands = 4096

// hardwareInstructions lists the instructions that are compared. Operands are numbered 1, 2, 3
// and the result 0, in the register class that the name says: %r 32 bits, %rd 64, %rs 16, %f,
// %fd; predicates %p1 and %p2 are bits of the operands.
func hardwareInstructions() []string {
	var list []string
	add := func(format string, alternatives ...string) {
		if len(alternatives) == 0 {
			list = append(list, format)
		}
		for _, a := range alternatives {
			list = append(list, strings.ReplaceAll(format, "@", a))
		}
	}
	add("@ %rs0, %rs1, %rs2", "add.s16", "sub.s16", "mul.lo.s16", "mul.hi.s16", "mul.hi.u16", "min.s16", "max.u16", "and.b16", "or.b16",
		"xor.b16", "div.s16", "rem.s16", "div.u16", "rem.u16")
	add("@ %r0, %r1, %r2", "add.s32", "sub.s32", "mul.lo.s32", "mul.hi.s32", "mul.hi.u32", "min.s32", "min.u32", "max.s32", "max.u32",
		"and.b32", "or.b32", "xor.b32", "div.s32", "div.u32", "rem.s32", "rem.u32", "add.sat.s32", "sub.sat.s32", "shl.b32", "shr.u32", "shr.s32")
	add("@ %rd0, %rd1, %rd2", "add.s64", "sub.s64", "mul.lo.s64", "mul.hi.s64", "mul.hi.u64", "min.s64", "max.u64", "and.b64",
		"or.b64", "xor.b64", "div.s64", "div.u64", "rem.s64", "rem.u64")
	add("@ %rd0, %rd1, %r2", "shl.b64", "shr.u64", "shr.s64")
	add("@ %rs0, %rs1, %r2", "shl.b16", "shr.u16", "shr.s16")
	add("@ %r0, %r1, %r2, %r3", "mad.lo.s32", "mad.hi.s32", "mad.hi.u32", "sad.s32", "sad.u32", "bfe.u32", "bfe.s32", "shf.l.wrap.b32",
		"shf.l.clamp.b32", "shf.r.wrap.b32", "shf.r.clamp.b32", "prmt.b32", "prmt.b32.f4e", "prmt.b32.b4e", "prmt.b32.rc8", "prmt.b32.ecl",
		"prmt.b32.ecr", "prmt.b32.rc16")
	add("lop3.b32 %r0, %r1, %r2, %r3, @", "0x96", "0xe8", "0x1b")
	add("bfi.b32 %r0, %r1, %r2, %r3, %r2")
	add("bfi.b64 %rd0, %rd1, %rd2, %r3, %r2")
	add("@ %rd0, %rd1, %r2, %r3", "bfe.u64", "bfe.s64")
	add("@ %rd0, %r1, %r2", "mul.wide.s32", "mul.wide.u32")
	add("@ %r0, %rs1, %rs2", "mul.wide.s16", "mul.wide.u16")
	add("@ %rd0, %r1, %r2, %rd3", "mad.wide.s32", "mad.wide.u32")
	add("@ %r0, %r1", "abs.s32", "neg.s32", "not.b32", "cnot.b32", "brev.b32", "clz.b32", "popc.b32", "bfind.u32", "bfind.s32")
	add("@ %rd0, %rd1", "abs.s64", "neg.s64", "not.b64", "brev.b64")
	add("@ %r0, %rd1", "clz.b64", "popc.b64")
	add("@ %rs0, %rs1", "neg.s16", "abs.s16", "not.b16")

	for _, mode := range []string{"rn", "rz", "rm", "rp"} {
		add("@."+mode+".f32 %f0, %f1, %f2", "add", "sub", "mul", "div")
		add("@."+mode+".f32 %f0, %f1", "rcp", "sqrt")
		add("fma." + mode + ".f32 %f0, %f1, %f2, %f3")
	}
	add("@ %f0, %f1, %f2", "add.rn.ftz.f32", "mul.rn.ftz.f32", "mul.rn.sat.f32", "add.rn.sat.f32", "div.rn.ftz.f32", "min.f32", "max.f32",
		"min.ftz.f32", "max.NaN.f32", "min.NaN.f32", "copysign.f32")
	add("@ %f0, %f1, %f2, %f3", "fma.rn.ftz.f32", "fma.rn.sat.f32")
	add("@ %f0, %f1", "neg.f32", "abs.f32", "neg.ftz.f32", "abs.ftz.f32", "rcp.rn.ftz.f32", "sqrt.rn.ftz.f32")
	add("@ %fd0, %fd1, %fd2", "add.rn.f64", "sub.rn.f64", "mul.rn.f64", "div.rn.f64", "min.f64", "max.f64", "copysign.f64")
	add("fma.rn.f64 %fd0, %fd1, %fd2, %fd3")
	add("@ %fd0, %fd1", "neg.f64", "abs.f64", "rcp.rn.f64", "sqrt.rn.f64")
	for _, t := range []string{"f16", "bf16"} {
		add("@."+t+" %rs0, %rs1, %rs2", "add.rn", "sub.rn", "mul.rn", "min", "max", "min.NaN", "max.NaN")
		add("@."+t+"x2 %r0, %r1, %r2", "add.rn", "sub.rn", "mul.rn", "min", "max", "max.NaN")
		add("@."+t+" %rs0, %rs1, %rs2, %rs3", "fma.rn", "fma.rn.relu")
		add("@."+t+"x2 %r0, %r1, %r2, %r3", "fma.rn")
		add("@."+t+" %rs0, %rs1", "neg", "abs")
		add("@."+t+"x2 %r0, %r1", "neg", "abs")
		add("setp.@."+t+" %p0, %rs1, %rs2", "lt", "neu", "geu", "num")
		add("cvt.@."+t+".f32 %rs0, %f1", "rn", "rz", "rn.relu")
		add("cvt.@."+t+"x2.f32 %r0, %f1, %f2", "rn", "rz", "rn.relu")
		add("cvt.f32." + t + " %f0, %rs1")
	}
	for _, op := range []string{"eq", "ne", "lt", "le", "gt", "ge"} {
		add("setp."+op+".@ %p0, %r1, %r2", "s32", "u32")
		add("setp."+op+".@ %p0, %rd1, %rd2", "s64", "u64")
		add("setp."+op+".@ %p0, %rs1, %rs2", "s16", "u16")
	}
	for _, op := range []string{"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"} {
		add("setp." + op + ".f32 %p0, %f1, %f2")
		add("setp." + op + ".f64 %p0, %fd1, %fd2")
	}
	add("setp.lt.ftz.f32 %p0, %f1, %f2")
	add("setp.lt.@.s32 %p0, %r1, %r2, !%p1", "and", "or", "xor")
	add("setp.lt.@.s32 %p3|%p0, %r1, %r2, %p1", "and", "or", "xor")
	add("set.lt.@ %r0, %r1, %r2", "u32.s32", "s32.u32")
	add("set.gtu.@ %f0, %f1, %f2", "f32.f32")
	add("selp.b32 %r0, %r1, %r2, %p1")
	add("selp.f64 %fd0, %fd1, %fd2, %p1")
	add("slct.f32.s32 %f0, %f1, %f2, %r3")
	add("slct.b64.f32 %rd0, %rd1, %rd2, %f3")
	add("testp.@.f32 %p0, %f1", "finite", "infinite", "number", "notanumber", "normal", "subnormal")
	add("testp.@.f64 %p0, %fd1", "finite", "infinite", "number", "notanumber", "normal", "subnormal")
	add("@.pred %p0, %p1, %p2", "and", "or", "xor")
	add("not.pred %p0, %p1")

	for _, to := range []string{"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"} {
		result := map[string]string{"8": "%r0", "6": "%rs0", "2": "%r0", "4": "%rd0"}[to[len(to)-1:]]
		for _, from := range []string{"s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"} {
			source := map[string]string{"8": "%r1", "6": "%rs1", "2": "%r1", "4": "%rd1"}[from[len(from)-1:]]
			add("cvt." + to + "." + from + " " + result + ", " + source)
			if saturates(to, from) {
				add("cvt.sat." + to + "." + from + " " + result + ", " + source)
			}
		}
		add("cvt.@."+to+".f32 "+result+", %f1", "rni", "rzi", "rmi", "rpi", "rzi.ftz")
		add("cvt.@."+to+".f64 "+result+", %fd1", "rni", "rzi", "rmi", "rpi")
		add("cvt.@."+to+".f16 "+result+", %rs1", "rni", "rzi")
		source := strings.Replace(result, "0", "1", 1)
		add("cvt.@.f32."+to+" %f0, "+source, "rn", "rz", "rm", "rp")
		add("cvt.@.f64."+to+" %fd0, "+source, "rn", "rz")
		add("cvt.@.f16."+to+" %rs0, "+source, "rn")
	}
	add("cvt.@.f32.f64 %f0, %fd1", "rn", "rz", "rm", "rp", "rn.ftz", "rn.sat")
	add("cvt.@.f32.f32 %f0, %f1", "rni", "rzi", "rmi", "rpi", "sat", "rpi.ftz", "rmi.sat")
	add("cvt.@.f64.f64 %fd0, %fd1", "rni", "rzi", "rmi", "rpi", "sat")
	add("cvt.@f64.f32 %fd0, %f1", "")
	add("cvt.rna.tf32.f32 %r0, %f1")
	add("mov.b64 %rd0, {%r1, %r2}")
	add("mov.b32 %r0, {%rs1, %rs2}")
	add("mov.b64 {%r0, %r4}, %rd1")
	add("shfl.sync.@.b32 %r0, %r1, %r2, 31, -1", "down", "bfly", "idx")
	add("shfl.sync.@.b32 %r0|%p0, %r1, %r2, 0x181f, -1", "down", "bfly", "idx")
	add("shfl.sync.@.b32 %r0, %r1, %r2, 0x1000, -1", "up")
	add("vote.sync.@.pred %p0, %p1, -1", "all", "any", "uni")
	add("vote.sync.ballot.b32 %r0, !%p1, -1")
	add("match.any.sync.b32 %r0, %r4, -1")
	add("match.all.sync.b32 %r0|%p0, %r4, -1")
	add("redux.sync.@ %r0, %r1, -1", "add.s32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "min.u32", "max.s32")
	return list
}

// saturates reports whether values of one integer type may lie outside of the other, which is
// where ptxas allows .sat.
func saturates(to, from string) bool {
	bits := map[string]int{"8": 8, "6": 16, "2": 32, "4": 64}
	wide, narrow := bits[to[len(to)-1:]], bits[from[len(from)-1:]]
	if to[0] == from[0] {
		return narrow > wide
	}
	return from[0] == 's' || narrow >= wide
}

// hardwareModule puts each instruction into a kernel of its own.
func hardwareModule(instructions []string) string {
	var s strings.Builder
	s.WriteString(".version 8.0\n.target sm_90\n.address_size 64\n")
	for i, in := range instructions {
		fmt.Fprintf(&s, `.visible .entry k%d(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d)
{
	.reg .pred %%p<4>;
	.reg .b16 %%rs<5>;
	.reg .b32 %%r<6>;
	.reg .f32 %%f<5>;
	.reg .b64 %%rd<20>;
	.reg .f64 %%fd<5>;
	mov.u32 %%r1, %%ctaid.x;
	mov.u32 %%r2, %%ntid.x;
	mov.u32 %%r3, %%tid.x;
	mad.lo.s32 %%r1, %%r1, %%r2, %%r3;
	mul.wide.u32 %%rd9, %%r1, 8;
	mov.b32 %%r0, 0;
	mov.b16 %%rs0, 0;
	mov.f32 %%f0, 0f00000000;
	setp.ne.s32 %%p0, %%r0, 0;
`, i)
		for n, name := range []string{"a", "b", "c"} {
			n++
			fmt.Fprintf(&s, `	ld.param.u64 %%rd10, [%s];
	add.s64 %%rd10, %%rd10, %%rd9;
	ld.global.u64 %%rd%d, [%%rd10];
	mov.b64 %%fd%d, %%rd%d;
	cvt.u32.u64 %%r%d, %%rd%d;
	mov.b32 %%f%d, %%r%d;
	cvt.u16.u64 %%rs%d, %%rd%d;
`, name, n, n, n, n, n, n, n, n, n)
		}
		s.WriteString(`	and.b32 %r5, %r1, 1;
	setp.ne.s32 %p1, %r5, 0;
	and.b32 %r5, %r2, 1;
	setp.ne.s32 %p2, %r5, 0;
	and.b32 %r4, %r1, 3;
`)
		fmt.Fprintf(&s, "\t%s;\n", in)
		_, operands, _ := strings.Cut(in, " ")
		switch {
		case strings.HasPrefix(operands, "%rd"):
		case strings.HasPrefix(operands, "%fd"):
			s.WriteString("\tmov.b64 %rd0, %fd0;\n")
		case strings.HasPrefix(operands, "%rs"):
			s.WriteString("\tcvt.u64.u16 %rd0, %rs0;\n")
		case strings.HasPrefix(operands, "%f"):
			s.WriteString("\tmov.b32 %r0, %f0;\n\tcvt.u64.u32 %rd0, %r0;\n")
		default: // %r, predicates, pairs of both
			s.WriteString("\tselp.b32 %r5, 1, 0, %p0;\n\tmov.b64 %rd0, {%r0, %r5};\n")
		}
		s.WriteString("\tld.param.u64 %rd10, [d];\n\tadd.s64 %rd10, %rd10, %rd9;\n\tst.global.u64 [%rd10], %rd0;\n\tret;\n}\n")
	}
	return s.String()
}

// hardwareInputs makes operands that reach the corners: specials, subnormals, ties, small
// integers, shift counts, and random bits.
func hardwareInputs(seed uint64) []byte {
	state := seed
	next := func() uint64 { // splitmix64
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	specials32 := []uint32{0, 1 << 31, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7fc12345, 0xffc00001, 0x7f800001,
		1, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff, 0x3f000000, 0x3fc00000, 0x40200000, 0x4f000000,
		0xcf000000, 0x4f800000, 0x5f000000, 0xdf000000, 0x5f800000, 0x3effffff, 0x4b000001, 0x7fffffff, 0xffffffff, 0x33800000, 0x38800000}
	specials64 := []uint64{0, 1 << 63, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000,
		0x7ff8000000012345, 0xfff8000000000001, 0x7ff0000000000001, 1, 0x000fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff,
		0xffefffffffffffff, 0x3fe0000000000000, 0x41e0000000000000, 0xc1e0000000000000, 0x43e0000000000000, 0xc3e0000000000000, 0x47efffffefffffff,
		0x47effffff0000000, 0x3800000000000000, 0x36a0000000000000, 0x3690000000000000, 0x7fffffffffffffff, 0xffffffffffffffff, 0x4004000000000000}
	var data []byte
	for range hardwareOperands {
		var v uint64
		r := next()
		switch next() % 10 {
		case 0:
			v = r<<32 | uint64(specials32[next()%uint64(len(specials32))])
		case 1:
			v = specials64[next()%uint64(len(specials64))]
		case 2:
			v = uint64(int64(r%21) - 10)
		case 3:
			v = r % 80
		case 4: // float32 near 1 with few bits, for ties
			v = r<<32 | uint64(uint32(next())&1<<31|(115+uint32(next()%24))<<23|uint32(next())&0x7fffff&^(1<<(next()%20)-1))
		case 5: // float32 of any size
			v = r<<32 | uint64(uint32(next()))
		case 6: // float64 near 1
			v = r&(1<<63|1<<52-1) | (1010+next()%40)<<52
		case 7: // float32 subnormals and small numbers
			v = r<<32 | next()%0x02000000 | next()&1<<31
		case 8: // float32 moderate
			v = r<<32 | uint64(math.Float32bits(float32(int64(next()))/float32(math.Ldexp(1, int(next()%64)))))
		default:
			v = r
		}
		data = binary.LittleEndian.AppendUint64(data, v)
	}
	return data
}

func TestHardware(t *testing.T) {
	instructions := hardwareInstructions()
	text := hardwareModule(instructions)
	inputs := [][]byte{hardwareInputs(1), hardwareInputs(2), hardwareInputs(3)}
	if *writeHardware != "" {
		writeFile(t, filepath.Join(*writeHardware, "hardware.ptx"), []byte(text))
		writeFile(t, filepath.Join(*writeHardware, "hardware.names"), []byte(strings.Join(instructions, "\n")+"\n"))
		for i, data := range inputs {
			writeFile(t, filepath.Join(*writeHardware, fmt.Sprintf("hardware.%d", i)), data)
		}
	}
	all := runHardware(t, text, instructions, inputs)
	if *writeHardware != "" {
		writeFile(t, filepath.Join(*writeHardware, "emulator.bin"), all)
		return
	}
	compareHardware(t, instructions, all)
	t.Run("portable", func(t *testing.T) {
		saved := twins
		twins = vectorTwins{}
		defer func() { twins = saved }()
		compareHardware(t, instructions, runHardware(t, text, instructions, inputs))
	})
}

// runHardware runs all instructions on the emulator and returns their results.
func runHardware(t *testing.T, text string, instructions []string, inputs [][]byte) []byte {
	h := newHarness(t, Options{}, text)
	size := hardwareOperands * 8
	var args []runtime.Arg
	for _, data := range inputs {
		args = append(args, pointer(h.buffer(size, data), size, runtime.Read))
	}
	out := h.buffer(size, nil)
	args = append(args, pointer(out, size, runtime.Write|runtime.Discard))
	var all []byte
	for i := range instructions {
		h.mustLaunch(fmt.Sprintf("k%d", i), hardwareOperands/128, 128, args...)
		all = append(all, h.download(out, size)...)
	}
	return all
}

// compareHardware compares results with the digests of the GPU's.
func compareHardware(t *testing.T, instructions []string, all []byte) {
	golden := map[string]string{}
	for line := range strings.Lines(readTestdata(t, "h200.txt")) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		golden[name] = digest
	}
	if len(golden) != len(instructions) {
		t.Errorf("%d instructions, h200.txt has %d", len(instructions), len(golden))
	}
	size := hardwareOperands * 8
	for i, name := range instructions {
		if digest := fmt.Sprintf("%x", sha256.Sum256(all[i*size:(i+1)*size]))[:16]; golden[name] != digest {
			t.Errorf("%s: the result is not the GPU's", name)
		}
	}
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
