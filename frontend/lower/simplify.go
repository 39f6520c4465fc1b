package lower

import (
	"slices"

	"weft/ir"
)

// maxFolded is the largest literal that Simplify makes, in elements.
const maxFolded = 64

// Simplify replaces small tensors whose contents are known by literals and sizes, and drops
// operations whose results nothing uses. It removes what only computed shapes.
func Simplify(p *ir.Program, e *ir.Entry, k *Known) {
	e.Body.Walk(func(op *ir.Op) {
		switch op.Kind {
		case ir.OpConstant, ir.OpDim, ir.OpIota:
			return
		}
		if len(op.Results) != 1 || len(op.Regions) > 0 {
			return
		}
		v := op.Results[0]
		if n, isConst := e.Type(v).Numel().IsConst(); !isConst || n > maxFolded {
			return
		}
		if t, ok := k.Tensor(v); ok {
			*op = ir.Op{Kind: ir.OpConstant, Results: op.Results, Attrs: &ir.ConstantAttrs{Value: t}, Loc: op.Loc}
			return
		}
		if dims, ok := k.Dims(v); ok && len(dims) == 1 && e.Type(v).Rank() == 0 && e.Type(v).DType == ir.I64 {
			*op = ir.Op{Kind: ir.OpDim, Results: op.Results, Attrs: &ir.DimAttrs{Value: dims[0]}, Loc: op.Loc}
		}
	})
	DropUnused(e)
}

// DropUnused removes operations whose results nothing uses, regions included.
func DropUnused(e *ir.Entry) { keepLive(&e.Body, make([]bool, len(e.Types))) }

// keepLive goes backwards through a block: an operation lives when one of its results is
// marked, and marks its operands and what its regions use.
func keepLive(b *ir.Block, live []bool) {
	for _, r := range b.Results {
		live[r] = true
	}
	var kept []*ir.Op
	for _, op := range slices.Backward(b.Ops) {
		if !slices.ContainsFunc(op.Results, func(r ir.Value) bool { return live[r] }) {
			continue
		}
		kept = append(kept, op)
		for _, v := range op.Operands {
			live[v] = true
		}
		for _, r := range op.Regions {
			keepLive(r, live)
		}
	}
	slices.Reverse(kept)
	b.Ops = kept
}
