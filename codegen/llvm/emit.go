// Package llvm turns loop-level kernels into LLVM IR through llir/llvm, and LLVM IR into PTX
// through llc.
package llvm

import (
	"fmt"
	"math"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/metadata"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"weft/codegen/kernel"
	weft "weft/ir"
)

// addrspace numbers of NVPTX.
const (
	globalSpace types.AddrSpace = 1
	sharedSpace types.AddrSpace = 3
)

// emitter turns one kernel into one LLVM function.
type emitter struct {
	module     *ir.Module
	fn         *ir.Func
	kernel     *kernel.Kernel
	name       string
	params     []value.Value // buffers, sizes, then tensor maps
	shared     map[*kernel.Buffer]value.Value
	intrinsics map[string]*ir.Func
	scopes     []*scope // innermost last
	blocks     int
}

// scope is a loop body, a guarded block or the function itself: the block that grows, and the
// values computed so far. A value that does not depend on memory is put into the outermost
// scope that has what it depends on: out of loops and guards.
type scope struct {
	block  *ir.Block
	values map[*kernel.Expr]value.Value
	pairs  map[[2]*kernel.Expr]value.Value // words of two bfloat16
}

func newScope(block *ir.Block) *scope {
	return &scope{block, map[*kernel.Expr]value.Value{}, map[[2]*kernel.Expr]value.Value{}}
}

// Emit gives the LLVM module of a kernel whose entry has that name.
func Emit(k *kernel.Kernel, name string) *ir.Module {
	e := &emitter{module: ir.NewModule(), kernel: k, name: name, shared: map[*kernel.Buffer]value.Value{}, intrinsics: map[string]*ir.Func{}}
	e.module.TargetTriple = "nvptx64-nvidia-cuda"
	var params []*ir.Param
	for _, b := range k.Buffers {
		t := types.NewPointer(memory(b.DType))
		t.AddrSpace = globalSpace
		p := ir.NewParam(b.Name, t)
		p.Attrs = append(p.Attrs, enum.ParamAttrNoAlias)
		if !b.Written {
			p.Attrs = append(p.Attrs, enum.ParamAttrReadOnly)
		}
		params = append(params, p)
	}
	for i := range k.Sizes {
		params = append(params, ir.NewParam(fmt.Sprintf("n%d", i), intType(k.Index)))
	}
	for i := range k.Maps {
		t := types.NewArray(tensorMapBytes, types.I8)
		p := ir.NewParam(fmt.Sprintf("m%d", i), types.NewPointer(t))
		p.Attrs = append(p.Attrs, ir.Byval{Typ: t}, ir.Align(tensorMapAlign))
		params = append(params, p)
	}
	e.fn = e.module.NewFunc(name, types.Void, params...)
	e.fn.CallingConv = enum.CallingConvPTXKernel
	for _, p := range params {
		e.params = append(e.params, p)
	}
	if k.DynamicShared() > 0 {
		e.declareDynamic(k)
	} else {
		for _, b := range k.Shared {
			e.declareShared(b)
		}
	}
	entry := e.fn.NewBlock("entry")
	e.scopes = []*scope{newScope(entry)}
	e.statements(k.Body)
	e.top().block.NewRet(nil)
	e.annotate()
	return e.module
}

// A tensor map is 128 bytes, of which kernels need the address.
const (
	tensorMapBytes = 128
	tensorMapAlign = 64
)

// annotate tells the number of threads a block, and that one block a multiprocessor is enough:
// together they allow as many registers as the block can have. Without the latter ptxas stops
// at fewer and spills. Tensor maps stay where the launch put them.
func (e *emitter) annotate() {
	tuple := &metadata.Tuple{MetadataID: 0, Fields: []metadata.Field{
		e.fn, &metadata.String{Value: "reqntidx"}, constant.NewInt(types.I32, int64(e.kernel.Threads)),
		&metadata.String{Value: "minctasm"}, constant.NewInt(types.I32, 1)}}
	if n := len(e.kernel.Maps); n > 0 {
		places := &metadata.Tuple{MetadataID: -1}
		for i := range n {
			places.Fields = append(places.Fields, constant.NewInt(types.I32, int64(len(e.params)-n+i+1)))
		}
		tuple.Fields = append(tuple.Fields, &metadata.String{Value: "grid_constant"}, places)
	}
	e.module.MetadataDefs = append(e.module.MetadataDefs, tuple)
	e.module.NamedMetadataDefs["nvvm.annotations"] = &metadata.NamedDef{Name: "nvvm.annotations", Nodes: []metadata.Node{tuple}}
}

func (e *emitter) declareShared(b *kernel.Buffer) {
	t := types.NewArray(uint64(b.Length), memory(b.DType))
	g := e.module.NewGlobalDef(e.name+"_"+b.Name, constant.NewUndef(t))
	g.AddrSpace = sharedSpace
	g.Typ.AddrSpace = sharedSpace
	g.Align = ir.Align(b.SharedAlign())
	zero := constant.NewInt(types.I32, 0)
	first := constant.NewGetElementPtr(t, g, zero, zero)
	e.shared[b] = first
}

func (e *emitter) top() *scope { return e.scopes[len(e.scopes)-1] }

// newBlock adds a basic block with a number for a name.
func (e *emitter) newBlock() *ir.Block {
	e.blocks++
	return e.fn.NewBlock(fmt.Sprintf("b%d", e.blocks))
}

func (e *emitter) statements(list []kernel.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *kernel.For:
			e.loop(s)
		case *kernel.If:
			e.guard(s)
		case *kernel.Store:
			e.store(s)
		case *kernel.Let:
			for _, x := range s.Exprs {
				e.value(x)
			}
		case *kernel.Do:
			args := make([]value.Value, len(s.Args))
			for i, x := range s.Args {
				args[i] = e.value(x)
			}
			e.asm(s.Instruction, nil, args)
		case *kernel.Barrier:
			e.top().block.NewCall(e.intrinsic("llvm.nvvm.barrier0", types.Void))
		}
	}
}

// loop emits: preheader -> header (test) -> body -> header, and the block after it.
func (e *emitter) loop(s *kernel.For) {
	lo, hi, step := e.value(s.Lo), e.value(s.Hi), e.value(s.Step)
	init := make([]value.Value, len(s.Init))
	for i, x := range s.Init {
		init[i] = e.value(x)
	}
	outer := e.top()
	before := outer.block
	header, body, after := e.newBlock(), e.newBlock(), e.newBlock()
	before.NewBr(header)

	counter := header.NewPhi(ir.NewIncoming(lo, before))
	phis := make([]*ir.InstPhi, len(init))
	for i := range init {
		phis[i] = header.NewPhi(ir.NewIncoming(init[i], before))
	}
	header.NewCondBr(header.NewICmp(enum.IPredSLT, counter, hi), body, after)

	inner := newScope(body)
	inner.values[s.Var] = counter
	for i, x := range s.Carried {
		inner.values[x] = phis[i]
	}
	// What is hoisted out of the body while it is emitted goes before the loop, whose block is
	// complete but for its terminator.
	e.scopes = append(e.scopes, inner)
	e.statements(s.Body)
	next := make([]value.Value, len(s.Next))
	for i, x := range s.Next {
		next[i] = e.value(x)
	}
	last := inner.block
	counter.Incs = append(counter.Incs, ir.NewIncoming(last.NewAdd(counter, step), last))
	for i := range phis {
		phis[i].Incs = append(phis[i].Incs, ir.NewIncoming(next[i], last))
	}
	last.NewBr(header)
	e.scopes = e.scopes[:len(e.scopes)-1]
	outer.block = after
	for i, x := range s.Results {
		outer.values[x] = phis[i]
	}
}

func (e *emitter) guard(s *kernel.If) {
	e.where(e.value(s.Cond), func() { e.statements(s.Body) })
}

// where emits what runs where a condition holds.
func (e *emitter) where(cond value.Value, body func()) {
	outer := e.top()
	then, after := e.newBlock(), e.newBlock()
	outer.block.NewCondBr(cond, then, after)
	inner := newScope(then)
	e.scopes = append(e.scopes, inner)
	body()
	inner.block.NewBr(after)
	e.scopes = e.scopes[:len(e.scopes)-1]
	outer.block = after
}

// value finds an expression's value in the enclosing scopes or computes it in the scope where
// it belongs.
func (e *emitter) value(x *kernel.Expr) value.Value {
	for i := len(e.scopes) - 1; i >= 0; i-- {
		if v, ok := e.scopes[i].values[x]; ok {
			return v
		}
	}
	if c := e.constant(x); c != nil {
		return c
	}
	if x.Op == kernel.Var {
		panic(fmt.Sprintf("BUG: %s is used outside of its loop", x))
	}
	saved := e.scopes
	if !x.Fixed {
		e.scopes = saved[:min(x.Depth+1, len(saved))]
	}
	args := make([]value.Value, len(x.Args))
	for i, a := range x.Args {
		args[i] = e.value(a)
	}
	v := e.instruction(x, args)
	e.top().values[x] = v
	e.scopes = saved
	return v
}

// constant gives constants, which belong to no block; nil for other expressions.
func (e *emitter) constant(x *kernel.Expr) value.Value {
	switch {
	case x.Op == kernel.Size:
		return e.params[len(e.kernel.Buffers)+int(x.Imm)]
	case x.Op != kernel.Const:
		return nil
	case !x.Type.IsFloat():
		return constant.NewInt(intType(x.Type), x.Imm)
	}
	t := floatType(x.Type)
	if f := x.FloatValue(); math.IsInf(f, 0) || math.IsNaN(f) {
		return constant.NewBitCast(constant.NewInt(intType(sameWidth(x.Type)), x.Imm), t)
	}
	return constant.NewFloat(t, x.FloatValue())
}

// sameWidth is the integer type of a float type's width.
func sameWidth(t weft.DType) weft.DType {
	if t == weft.F64 {
		return weft.I64
	}
	return weft.I32
}

func (e *emitter) intrinsic(name string, result types.Type, params ...types.Type) *ir.Func {
	f, ok := e.intrinsics[name]
	if !ok {
		list := make([]*ir.Param, len(params))
		for i, t := range params {
			list[i] = ir.NewParam("", t)
		}
		f = e.module.NewFunc(name, result, list...)
		e.intrinsics[name] = f
	}
	return f
}

// memory is the LLVM type of an element in memory.
func memory(t weft.DType) types.Type {
	switch t {
	case weft.Bool, weft.I8, weft.U8:
		return types.I8
	case weft.I16, weft.U16, weft.BF16:
		return types.I16
	case weft.F16:
		return types.Half
	case weft.I32, weft.U32:
		return types.I32
	case weft.F32:
		return types.Float
	case weft.F64:
		return types.Double
	}
	return types.I64
}

// register is the LLVM type of a value in an expression.
func register(t weft.DType) types.Type {
	if t.IsFloat() {
		return floatType(t)
	}
	return intType(t)
}

func floatType(t weft.DType) *types.FloatType {
	if t == weft.F64 {
		return types.Double
	}
	return types.Float
}

func intType(t weft.DType) *types.IntType {
	switch t {
	case weft.Bool:
		return types.I1
	case weft.I8:
		return types.I8
	case weft.I16:
		return types.I16
	case weft.I32:
		return types.I32
	}
	return types.I64
}
