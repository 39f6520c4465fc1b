package ir

import "math"

// SetPrecision asks for a precision in every product of float32 of a program and gives the
// number of products that it changed. Attention is left as it is.
func SetPrecision(p *Program, to Precision) int {
	changed := 0
	for _, e := range p.Entries {
		e.Body.Walk(func(op *Op) {
			if len(op.Operands) == 0 || e.Type(op.Operands[0]).DType != F32 {
				return
			}
			switch a := op.Attrs.(type) {
			case *DotAttrs:
				if a.Precision != to {
					b := *a
					b.Precision, op.Attrs = to, &b
					changed++
				}
			case *ConvolutionAttrs:
				if a.Precision != to {
					b := *a
					b.Precision, op.Attrs = to, &b
					changed++
				}
			}
		})
	}
	return changed
}

// RoundTF32 is a float32 with 10 fraction bits: the nearest one, ties away from zero.
func RoundTF32(x float32) float32 {
	if x != x {
		return x
	}
	return math.Float32frombits((math.Float32bits(x) + 0x1000) &^ 0x1fff)
}
