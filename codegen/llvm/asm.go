package llvm

import (
	"fmt"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"weft/codegen/kernel"
	"weft/codegen/ptx"
	weft "weft/ir"
)

// asm emits a call of an instruction of the catalogue as inline assembly.
func (e *emitter) asm(name string, results []weft.DType, args []value.Value) value.Value {
	row, ok := ptx.Lookup(name)
	if !ok {
		panic(fmt.Sprintf("BUG: instruction %s is not in the catalogue", name))
	}
	params := make([]types.Type, len(args))
	for i, a := range args {
		params[i] = a.Type()
	}
	t := types.NewFunc(e.resultType(results), params...)
	inline := ir.NewInlineAsm(types.NewPointer(t), row.Text, row.Constraints)
	inline.SideEffect = row.SideEffects
	call := e.top().block.NewCall(inline, args...)
	if row.Convergent {
		call.FuncAttrs = append(call.FuncAttrs, enum.FuncAttrConvergent)
	}
	return call
}

// resultType is the LLVM type of an instruction's results: nothing, a value, or a struct.
func (e *emitter) resultType(results []weft.DType) types.Type {
	switch len(results) {
	case 0:
		return types.Void
	case 1:
		return register(results[0])
	}
	fields := make([]types.Type, len(results))
	for i, r := range results {
		fields[i] = register(r)
	}
	return types.NewStruct(fields...)
}

// address turns the place of an element into a number: 32 bits for shared memory.
func (e *emitter) address(x *kernel.Expr) value.Value {
	p := e.pointer(x.Buffer, e.place(x.Args[0]), 1)
	return e.top().block.NewPtrToInt(p, intType(x.Type))
}

// declareDynamic makes the shared arrays parts of one array whose size the launch gives, which
// may be larger than a static one.
func (e *emitter) declareDynamic(k *kernel.Kernel) {
	t := types.NewArray(0, types.I8)
	g := e.module.NewGlobal(e.name+"_shared", t)
	g.Linkage = enum.LinkageExternal
	g.AddrSpace = sharedSpace
	g.Typ.AddrSpace = sharedSpace
	for _, buf := range k.Shared {
		g.Align = max(g.Align, ir.Align(buf.SharedAlign()))
	}
	for i, offset := range k.SharedOffsets() {
		buf := k.Shared[i]
		p := types.NewPointer(memory(buf.DType))
		p.AddrSpace = sharedSpace
		at := constant.NewGetElementPtr(t, g, constant.NewInt(types.I32, 0), constant.NewInt(types.I32, offset))
		e.shared[buf] = constant.NewBitCast(at, p)
	}
}
