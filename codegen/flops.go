package codegen

import "weft/ir"

// flops counts the floating-point operations of the contractions in a kernel operation, two for
// a multiply-add. It is what the program asks for: padded tiles do not count, and of a causal
// attention half of the positions do.
func flops(e *ir.Entry, op *ir.Op) ir.Dim {
	total := ir.Const(0)
	if len(op.Regions) == 0 {
		return total
	}
	op.Regions[0].Walk(func(inner *ir.Op) {
		shape := func(operand int) []ir.Dim { return e.Type(inner.Operands[operand]).Shape }
		switch a := inner.Attrs.(type) {
		case *ir.DotAttrs:
			n := e.Type(inner.Results[0]).Numel().MulConst(2)
			for _, axis := range a.LhsContract {
				n = n.Mul(shape(0)[axis])
			}
			total = total.Add(n)
		case *ir.ConvolutionAttrs:
			// Each output element meets all of a kernel's elements; padding counts as the zeros
			// that it stands for.
			n := e.Type(inner.Results[0]).Numel().MulConst(2)
			for _, d := range shape(1)[1:] {
				n = n.Mul(d)
			}
			total = total.Add(n)
		case *ir.AttentionAttrs:
			q, k, v := shape(0), shape(1), shape(2)
			products := q[0].Mul(q[1]).Mul(q[2]).Mul(k[2])
			n := products.Mul(q[3].Add(v[len(v)-1]))
			if !a.Causal {
				n = n.MulConst(2)
			}
			total = total.Add(n)
		}
	})
	return total
}
