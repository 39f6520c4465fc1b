package llvm

import (
	"fmt"
	"math"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"weft/codegen/kernel"
	weft "weft/ir"
)

// arithmetic emits an operation that is one LLVM instruction of two operands.
var arithmetic = map[kernel.Op]func(b *ir.Block, x, y value.Value) value.Value{
	kernel.Add:  func(b *ir.Block, x, y value.Value) value.Value { return b.NewAdd(x, y) },
	kernel.Sub:  func(b *ir.Block, x, y value.Value) value.Value { return b.NewSub(x, y) },
	kernel.Mul:  func(b *ir.Block, x, y value.Value) value.Value { return b.NewMul(x, y) },
	kernel.SDiv: func(b *ir.Block, x, y value.Value) value.Value { return b.NewSDiv(x, y) },
	kernel.UDiv: func(b *ir.Block, x, y value.Value) value.Value { return b.NewUDiv(x, y) },
	kernel.SRem: func(b *ir.Block, x, y value.Value) value.Value { return b.NewSRem(x, y) },
	kernel.URem: func(b *ir.Block, x, y value.Value) value.Value { return b.NewURem(x, y) },
	kernel.And:  func(b *ir.Block, x, y value.Value) value.Value { return b.NewAnd(x, y) },
	kernel.Or:   func(b *ir.Block, x, y value.Value) value.Value { return b.NewOr(x, y) },
	kernel.Xor:  func(b *ir.Block, x, y value.Value) value.Value { return b.NewXor(x, y) },
	kernel.Shl:  func(b *ir.Block, x, y value.Value) value.Value { return b.NewShl(x, y) },
	kernel.LShr: func(b *ir.Block, x, y value.Value) value.Value { return b.NewLShr(x, y) },
	kernel.AShr: func(b *ir.Block, x, y value.Value) value.Value { return b.NewAShr(x, y) },
	kernel.FAdd: func(b *ir.Block, x, y value.Value) value.Value { return b.NewFAdd(x, y) },
	kernel.FSub: func(b *ir.Block, x, y value.Value) value.Value { return b.NewFSub(x, y) },
	kernel.FMul: func(b *ir.Block, x, y value.Value) value.Value { return b.NewFMul(x, y) },
	kernel.FDiv: func(b *ir.Block, x, y value.Value) value.Value { return b.NewFDiv(x, y) },
}

// intrinsics names the LLVM intrinsic of an operation whose operands and result have one type.
var intrinsics = map[kernel.Op]string{
	kernel.SMin: "smin", kernel.SMax: "smax", kernel.UMin: "umin", kernel.UMax: "umax", kernel.Popcnt: "ctpop",
	kernel.Fma: "fma", kernel.FSqrt: "sqrt", kernel.FAbs: "fabs", kernel.FMin: "minimum", kernel.FMax: "maximum",
	kernel.FFloor: "floor", kernel.FCeil: "ceil", kernel.FTrunc: "trunc", kernel.FRoundEven: "roundeven",
}

// casts emits an operation that is one LLVM conversion.
var casts = map[kernel.Op]func(b *ir.Block, x value.Value, t types.Type) value.Value{
	kernel.Trunc:   func(b *ir.Block, x value.Value, t types.Type) value.Value { return b.NewTrunc(x, t) },
	kernel.SExt:    func(b *ir.Block, x value.Value, t types.Type) value.Value { return b.NewSExt(x, t) },
	kernel.ZExt:    func(b *ir.Block, x value.Value, t types.Type) value.Value { return b.NewZExt(x, t) },
	kernel.SToF:    func(b *ir.Block, x value.Value, t types.Type) value.Value { return b.NewSIToFP(x, t) },
	kernel.UToF:    func(b *ir.Block, x value.Value, t types.Type) value.Value { return b.NewUIToFP(x, t) },
	kernel.FToS:    func(b *ir.Block, x value.Value, t types.Type) value.Value { return b.NewFPToSI(x, t) },
	kernel.FToU:    func(b *ir.Block, x value.Value, t types.Type) value.Value { return b.NewFPToUI(x, t) },
	kernel.Bitcast: func(b *ir.Block, x value.Value, t types.Type) value.Value { return b.NewBitCast(x, t) },
	kernel.FConvert: func(b *ir.Block, x value.Value, t types.Type) value.Value {
		if t.Equal(types.Double) {
			return b.NewFPExt(x, t)
		}
		return b.NewFPTrunc(x, t)
	},
}

var integerPredicates = map[kernel.Predicate]enum.IPred{
	kernel.EQ: enum.IPredEQ, kernel.NE: enum.IPredNE, kernel.SLT: enum.IPredSLT, kernel.SLE: enum.IPredSLE,
	kernel.ULT: enum.IPredULT, kernel.ULE: enum.IPredULE,
}

var floatPredicates = map[kernel.Predicate]enum.FPred{
	kernel.FEQ: enum.FPredOEQ, kernel.FNE: enum.FPredUNE, kernel.FLT: enum.FPredOLT, kernel.FLE: enum.FPredOLE,
}

// instruction emits one expression into the innermost scope.
func (e *emitter) instruction(x *kernel.Expr, args []value.Value) value.Value {
	b := e.top().block
	if f, ok := arithmetic[x.Op]; ok {
		return f(b, args[0], args[1])
	}
	if f, ok := casts[x.Op]; ok {
		return f(b, args[0], register(x.Type))
	}
	if name, ok := intrinsics[x.Op]; ok {
		t := register(x.Type)
		params := make([]types.Type, len(args))
		for i := range params {
			params[i] = t
		}
		return b.NewCall(e.intrinsic(fmt.Sprintf("llvm.%s.%s", name, suffix(x.Type)), t, params...), args...)
	}
	switch x.Op {
	case kernel.Thread:
		return e.index(x, e.special("tid.x"))
	case kernel.Block:
		return e.index(x, e.special("ctaid."+string("xyz"[x.Imm])))
	case kernel.Blocks:
		return e.index(x, e.special("nctaid.x"))
	case kernel.Map:
		return b.NewPtrToInt(e.params[len(e.params)-len(e.kernel.Maps)+int(x.Imm)], types.I64)
	case kernel.FNeg:
		return b.NewFNeg(args[0])
	case kernel.Compare:
		p := kernel.Predicate(x.Imm)
		if fp, ok := floatPredicates[p]; ok {
			return b.NewFCmp(fp, args[0], args[1])
		}
		return b.NewICmp(integerPredicates[p], args[0], args[1])
	case kernel.Select:
		return b.NewSelect(args[0], args[1], args[2])
	case kernel.Load:
		return e.load(x)
	case kernel.Lane:
		if load := x.Args[0]; wordPairs(load.Buffer, int(load.Imm)) {
			return e.halfOfWord(args[0], x.Imm)
		}
		return e.fromMemory(x.Args[0].Buffer.DType, e.lane(x.Args[0].Buffer.DType, args[0], x.Imm))
	case kernel.Shuffle:
		return e.shuffle(x, args[0])
	case kernel.RoundHalf:
		return e.round(weft.DType(x.Imm), args[0])
	case kernel.Asm:
		return e.asm(x.Instruction, x.Results, args)
	case kernel.Part:
		return b.NewExtractValue(args[0], uint64(x.Imm))
	case kernel.Address:
		return e.address(x)
	case kernel.HalfBits:
		v := e.toMemory(weft.DType(x.Imm), args[0])
		if weft.DType(x.Imm) == weft.F16 {
			v = b.NewBitCast(v, types.I16)
		}
		return v
	case kernel.BitsHalf:
		v := args[0]
		if weft.DType(x.Imm) == weft.F16 {
			v = b.NewBitCast(v, types.Half)
		}
		return e.fromMemory(weft.DType(x.Imm), v)
	}
	panic(fmt.Sprintf("BUG: no LLVM for operation %d", x.Op))
}

func suffix(t weft.DType) string {
	if t.IsFloat() {
		return fmt.Sprintf("f%d", t.Bits())
	}
	return fmt.Sprintf("i%d", t.Bits())
}

func (e *emitter) special(register string) value.Value {
	return e.top().block.NewCall(e.intrinsic("llvm.nvvm.read.ptx.sreg."+register, types.I32))
}

// index widens a 32-bit special register to the index type.
func (e *emitter) index(x *kernel.Expr, v value.Value) value.Value {
	if x.Type == weft.I32 {
		return v
	}
	return e.top().block.NewZExt(v, types.I64)
}

// place is an index into a buffer: a value, and a number of elements beyond it, which instructions that access memory add for nothing.
type place struct {
	index  value.Value
	beyond int64
}

// place takes the constant off an index.
func (e *emitter) place(x *kernel.Expr) place {
	if x.Op == kernel.Add && x.Args[1].Op == kernel.Const {
		return place{e.value(x.Args[0]), x.Args[1].Imm}
	}
	return place{e.value(x), 0}
}

func (e *emitter) pointer(buf *kernel.Buffer, at place, lanes int) value.Value {
	b := e.top().block
	base, ok := e.shared[buf]
	space := sharedSpace
	if !ok {
		space = globalSpace
		for i, p := range e.kernel.Buffers {
			if p == buf {
				base = e.params[i]
			}
		}
	}
	var p value.Value = b.NewGetElementPtr(memory(buf.DType), base, at.index)
	if at.beyond != 0 {
		p = b.NewGetElementPtr(memory(buf.DType), p, constant.NewInt(types.I64, at.beyond))
	}
	if lanes > 1 {
		t := types.NewPointer(types.NewVector(uint64(lanes), memory(buf.DType)))
		t.AddrSpace = space
		p = b.NewBitCast(p, t)
	}
	return p
}

func (e *emitter) load(x *kernel.Expr) value.Value {
	b := e.top().block
	lanes := int(x.Imm)
	element := memory(x.Buffer.DType)
	p := e.pointer(x.Buffer, e.place(x.Args[0]), lanes)
	t := element
	if lanes > 1 {
		t = types.NewVector(uint64(lanes), element)
	}
	if wordPairs(x.Buffer, lanes) {
		t = types.NewVector(uint64(lanes/2), types.I32)
		if lanes == 2 {
			t = types.I32
		}
		p = b.NewBitCast(p, pointerLike(p, t))
	}
	if lanes > 1 && x.Buffer.DType.Size() == 1 {
		// Vectors of bytes go through memory when compared; an integer of the same width does not.
		t = types.NewInt(uint64(8 * lanes))
		p = b.NewBitCast(p, pointerLike(p, t))
	}
	load := b.NewLoad(t, p)
	load.Align = ir.Align(lanes * x.Buffer.DType.Size())
	if lanes > 1 {
		return load
	}
	return e.fromMemory(x.Buffer.DType, load)
}

// lane takes one element out of a load of several.
func (e *emitter) lane(t weft.DType, v value.Value, i int64) value.Value {
	b := e.top().block
	if t.Size() == 1 {
		return b.NewTrunc(b.NewLShr(v, constant.NewInt(v.Type().(*types.IntType), 8*i)), types.I8)
	}
	return b.NewExtractElement(v, constant.NewInt(types.I32, i))
}

// wordPairs tells whether a load's lanes are taken as pairs in words: bfloat16, which becomes a float by a shift or a
// mask.
func wordPairs(buf *kernel.Buffer, lanes int) bool { return lanes > 1 && buf.DType == weft.BF16 }

// word is one of those of a load of bfloat16 pairs.
func (e *emitter) word(words value.Value, i int64) value.Value {
	if _, ok := words.Type().(*types.VectorType); ok {
		return e.top().block.NewExtractElement(words, constant.NewInt(types.I32, i))
	}
	return words
}

// halfOfWord is lane i of bfloat16 pairs as a float.
func (e *emitter) halfOfWord(words value.Value, i int64) value.Value {
	word := e.word(words, i/2)
	b := e.top().block
	if i%2 == 0 {
		word = b.NewShl(word, constant.NewInt(types.I32, 16))
	} else {
		word = b.NewAnd(word, constant.NewInt(types.I32, -1<<16))
	}
	return b.NewBitCast(word, types.Float)
}

// pointerLike is the type of pointers to t in the address space of p.
func pointerLike(p value.Value, t types.Type) *types.PointerType {
	to := types.NewPointer(t)
	to.AddrSpace = p.Type().(*types.PointerType).AddrSpace
	return to
}

// fromMemory turns an element as stored into a value as held.
func (e *emitter) fromMemory(t weft.DType, v value.Value) value.Value {
	b := e.top().block
	switch t {
	case weft.Bool:
		return b.NewICmp(enum.IPredNE, v, constant.NewInt(types.I8, 0))
	case weft.F16:
		return b.NewFPExt(v, types.Float)
	case weft.BF16:
		return b.NewBitCast(b.NewShl(b.NewZExt(v, types.I32), constant.NewInt(types.I32, 16)), types.Float)
	}
	return v
}

// toMemory turns a value as held into an element as stored; half values are exact already.
func (e *emitter) toMemory(t weft.DType, v value.Value) value.Value {
	b := e.top().block
	switch t {
	case weft.Bool:
		return b.NewZExt(v, types.I8)
	case weft.F16:
		return b.NewFPTrunc(v, types.Half)
	case weft.BF16:
		return b.NewTrunc(b.NewLShr(b.NewBitCast(v, types.I32), constant.NewInt(types.I32, 16)), types.I16)
	}
	return v
}

func (e *emitter) store(s *kernel.Store) {
	cond, at := e.value(s.Cond), e.place(s.Index)
	if s.Apart {
		e.storeApart(s, at)
		return
	}
	v := e.stored(s)
	p := e.pointer(s.Buffer, at, len(s.Values))
	b := e.top().block
	if to := pointerLike(p, v.Type()); !to.Equal(p.Type()) {
		p = b.NewBitCast(p, to)
	}
	write := func() {
		st := e.top().block.NewStore(v, p)
		st.Align = ir.Align(len(s.Values) * s.Buffer.DType.Size())
	}
	if s.Cond.IsInt(1) {
		write()
		return
	}
	e.where(cond, write)
}

// storeApart stores two elements of a half type, which are rounded together: sums of products by warpgroups that are rounded one by one are, to
// ptxas, a reason to let the products run one after the other (C7514).
func (e *emitter) storeApart(s *kernel.Store, at place) {
	low, high := s.Values[0], s.Values[1]
	var word value.Value
	if rounded(low, weft.F16) && rounded(high, weft.F16) {
		word = e.asm("cvt.rn.f16x2.f32", []weft.DType{weft.I32}, []value.Value{e.value(high.Args[0]), e.value(low.Args[0])})
	} else if v := e.stored(s); v.Type().Equal(types.I32) {
		word = v
	} else {
		word = e.top().block.NewBitCast(v, types.I32)
	}
	b := e.top().block
	for i := range s.Values {
		p := e.pointer(s.Buffer, place{at.index, at.beyond + int64(i)}, 1)
		half := b.NewTrunc(b.NewLShr(word, constant.NewInt(types.I32, int64(16*i))), types.I16)
		b.NewStore(half, b.NewBitCast(p, pointerLike(p, types.I16))).Align = 2
	}
}

// stored is what a store writes: an element, or a vector; of bfloat16, words of two.
func (e *emitter) stored(s *kernel.Store) value.Value {
	values := make([]value.Value, 0, len(s.Values))
	element := memory(s.Buffer.DType)
	if wordPairs(s.Buffer, len(s.Values)) {
		element = types.I32
		for i := 0; i < len(s.Values); i += 2 {
			values = append(values, e.pair(s.Values[i+1], s.Values[i]))
		}
	} else if x := s.Values[0]; s.Buffer.DType == weft.BF16 && rounded(x, weft.BF16) { // in the low half, where it is stored from
		word := e.roundPair(constant.NewFloat(types.Float, 0), e.value(x.Args[0]))
		return e.top().block.NewTrunc(word, types.I16)
	} else {
		for _, x := range s.Values {
			values = append(values, e.value(x))
		}
		for i := range values {
			values[i] = e.toMemory(s.Buffer.DType, values[i])
		}
	}
	if len(values) == 1 {
		return values[0]
	}
	return e.vector(element, values)
}

// rounded tells whether an expression is one rounded to a half type.
func rounded(x *kernel.Expr, half weft.DType) bool {
	return x.Op == kernel.RoundHalf && weft.DType(x.Imm) == half
}

// pair is the word of two held bfloat16: what is still to be rounded is rounded together, and what was computed of bfloat16 alike is computed
// together.
func (e *emitter) pair(high, low *kernel.Expr) value.Value {
	key := [2]*kernel.Expr{high, low}
	for i := len(e.scopes) - 1; i >= 0; i-- {
		if v, ok := e.scopes[i].pairs[key]; ok {
			return v
		}
	}
	v := e.newPair(high, low)
	e.top().pairs[key] = v
	return v
}

func (e *emitter) newPair(high, low *kernel.Expr) value.Value {
	if rounded(high, weft.BF16) && rounded(low, weft.BF16) {
		if v := e.packed(high.Args[0], low.Args[0]); v != nil {
			return v
		}
		return e.roundPair(e.value(high.Args[0]), e.value(low.Args[0]))
	}
	if high.Op == kernel.Const && low.Op == kernel.Const {
		return constant.NewInt(types.I32, int64(int32(float32Bits(high)&^0xffff|float32Bits(low)>>16)))
	}
	if high.Op == kernel.Lane && low.Op == kernel.Lane && high.Args[0] == low.Args[0] && high.Imm == low.Imm+1 && low.Imm%2 == 0 && wordPairs(low.Args[0].Buffer, int(low.Args[0].Imm)) {
		return e.word(e.value(low.Args[0]), low.Imm/2)
	}
	x, y := e.value(high), e.value(low)
	b := e.top().block
	upper := b.NewAnd(b.NewBitCast(x, types.I32), constant.NewInt(types.I32, -1<<16))
	return b.NewOr(upper, b.NewLShr(b.NewBitCast(y, types.I32), constant.NewInt(types.I32, 16)))
}

// packed is the rounded word of two sums, differences or products of bfloat16; nil for others. Rounded to float32 first they would be the same, but
// for products that are denormal.
func (e *emitter) packed(high, low *kernel.Expr) value.Value {
	if high.Op != low.Op || high.Op != kernel.FAdd && high.Op != kernel.FSub && high.Op != kernel.FMul {
		return nil
	}
	for _, x := range []*kernel.Expr{high.Args[0], low.Args[0], high.Args[1], low.Args[1]} {
		if !isBFloat16(x) {
			return nil
		}
	}
	x, y := e.pair(high.Args[0], low.Args[0]), e.pair(high.Args[1], low.Args[1])
	both := func(v float32) value.Value {
		return constant.NewInt(types.I32, int64(int32(math.Float32bits(v)|math.Float32bits(v)>>16)))
	}
	args := []value.Value{x, y, both(float32(math.Copysign(0, -1)))}
	switch high.Op {
	case kernel.FAdd:
		args = []value.Value{x, both(1), y}
	case kernel.FSub:
		args = []value.Value{y, both(-1), x}
	}
	return e.asm("fma.rn.bf16x2", []weft.DType{weft.I32}, args)
}

// isBFloat16 tells whether a float is surely one of bfloat16.
func isBFloat16(x *kernel.Expr) bool {
	switch x.Op {
	case kernel.Load:
		return x.Buffer.DType == weft.BF16
	case kernel.Lane:
		return x.Args[0].Buffer.DType == weft.BF16
	case kernel.Const:
		return x.Type == weft.F32 && float32Bits(x)&0xffff == 0
	}
	return rounded(x, weft.BF16)
}

func float32Bits(x *kernel.Expr) uint32 { return math.Float32bits(float32(x.FloatValue())) }

// vector joins values.
func (e *emitter) vector(element types.Type, values []value.Value) value.Value {
	b := e.top().block
	var v value.Value = constant.NewUndef(types.NewVector(uint64(len(values)), element))
	for i := range values {
		v = b.NewInsertElement(v, values[i], constant.NewInt(types.I32, int64(i)))
	}
	return v
}

// shuffle moves 32 bits at a time.
func (e *emitter) shuffle(x *kernel.Expr, v value.Value) value.Value {
	b := e.top().block
	i32 := func(n int64) value.Value { return constant.NewInt(types.I32, n) }
	f := e.intrinsic("llvm.nvvm.shfl.sync.bfly.i32", types.I32, types.I32, types.I32, types.I32, types.I32)
	word := func(w value.Value) value.Value { return b.NewCall(f, i32(-1), w, i32(x.Imm), i32(31)) }
	switch x.Type {
	case weft.F32:
		return b.NewBitCast(word(b.NewBitCast(v, types.I32)), types.Float)
	case weft.I32:
		return word(v)
	case weft.F64, weft.I64:
		bits := v
		if x.Type == weft.F64 {
			bits = b.NewBitCast(v, types.I64)
		}
		low := b.NewZExt(word(b.NewTrunc(bits, types.I32)), types.I64)
		high := b.NewZExt(word(b.NewTrunc(b.NewLShr(bits, constant.NewInt(types.I64, 32)), types.I32)), types.I64)
		joined := value.Value(b.NewOr(low, b.NewShl(high, constant.NewInt(types.I64, 32))))
		if x.Type == weft.F64 {
			joined = b.NewBitCast(joined, types.Double)
		}
		return joined
	}
	return b.NewTrunc(word(b.NewZExt(v, types.I32)), register(x.Type))
}

// round rounds a float to nearest even at the precision of a half type. For bfloat16 that is one instruction: rounded
// beside a zero, in the high half of a register, it is the float again.
func (e *emitter) round(half weft.DType, v value.Value) value.Value {
	b := e.top().block
	if half == weft.F16 {
		return b.NewFPExt(b.NewFPTrunc(v, types.Half), types.Float)
	}
	return b.NewBitCast(e.roundPair(v, constant.NewFloat(types.Float, 0)), types.Float)
}

// roundPair rounds two floats to bfloat16: high and low half of a word.
func (e *emitter) roundPair(high, low value.Value) value.Value {
	return e.asm("cvt.rn.bf16x2.f32", []weft.DType{weft.I32}, []value.Value{high, low})
}
