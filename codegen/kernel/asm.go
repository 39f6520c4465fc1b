package kernel

import "weft/ir"

// Do runs an instruction of the catalogue that has no result.
type Do struct {
	Instruction string // name in the catalogue of codegen/ptx
	Args        []*Expr
}

func (*Do) stmt() {}

// Instruction runs an instruction of the catalogue here and now and gives its results.
func (b *Builder) Instruction(name string, results []ir.DType, args ...*Expr) []*Expr {
	x := b.fresh(Asm, results[0], int64(len(results)), args...)
	x.Instruction, x.Results = name, results
	x.Depth = max(x.Depth, b.depth)
	b.emit(&Let{[]*Expr{x}})
	if len(results) == 1 {
		return []*Expr{x}
	}
	out := make([]*Expr, len(results))
	for i, t := range results {
		out[i] = b.node(Part, t, int64(i), x)
	}
	return out
}

// Do runs an instruction without result here and now.
func (b *Builder) Do(name string, args ...*Expr) { b.emit(&Do{name, args}) }

// Address is the address of an element: 32 bits in shared memory, 64 bits in global memory.
func (b *Builder) Address(buf *Buffer, index *Expr) *Expr {
	t := ir.I64
	if buf.Space == Shared {
		t = ir.I32
	}
	x := b.fresh(Address, t, 0, index)
	x.Buffer = buf
	return x
}
