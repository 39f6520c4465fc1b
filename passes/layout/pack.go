package layout

import (
	"slices"

	"weft/ir"
	"weft/passes/internal/initentry"
)

// packedChannels is the number of channels of a packed image: 16 bytes of a half type.
const packedChannels = 8

// pack rewrites a convolution over an image of few channels, as the first of a network is, for
// tensor cores, which load eight adjacent elements at a time. As many neighbours along the
// innermost axis as the stride steps over become channels of one position, padded with zeros to
// eight channels in all; the kernel is packed alike, with zeros where it does not begin or end
// at a whole position. It tells whether it did.
func (l *layouter) pack(op *ir.Op) bool {
	a := op.Attrs.(*ir.ConvolutionAttrs)
	x, w := l.entry.Type(op.Operands[0]), l.entry.Type(op.Operands[1])
	last := len(a.Strides) - 1
	s := a.Strides[last]
	channels, _ := x.Shape[1].IsConst()
	width, wide := x.Shape[x.Rank()-1].IsConst()
	taps, known := w.Shape[w.Rank()-1].IsConst()
	low, fixed := a.Low[last].IsConst()
	result := l.entry.Type(op.Results[0])
	out, _ := result.Shape[result.Rank()-1].IsConst()
	half := x.DType == ir.F16 || x.DType == ir.BF16 || a.Precision == ir.TF32
	switch {
	case !half || a.Groups != 1 || a.ReverseKernel || a.LhsDilation[last] != 1 || a.RhsDilation[last] != 1:
		return false
	case !wide || !known || !fixed || low < 0 || channels < 1 || s > packedChannels || packedChannels%s != 0 || channels > packedChannels/s:
		return false
	case width%s != 0 || taps < 2 || l.stored[op.Operands[0]]:
		return false
	}
	p := packing{positions: s, channels: channels, before: (low+s-1)/s*s - low}
	p.taps = (taps + p.before + s - 1) / s * s
	packed := *a
	packed.Strides, packed.Low, packed.High = slices.Clone(a.Strides), slices.Clone(a.Low), slices.Clone(a.High)
	packed.Strides[last] = 1
	first := (low + p.before) / s
	packed.Low[last] = ir.Const(first)
	packed.High[last] = ir.Const(out - 1 + p.taps/s - width/s - first)

	kernel, ok := initentry.Add(l.program, l.entry, op.Operands[1], p.kernel)
	if !ok {
		kernel = p.kernel(l.builder, op.Operands[1])
	}
	op.Operands[0] = l.builder.Transpose(p.gather(l.builder, op.Operands[0]), toFirst(x.Rank()))
	op.Operands[1] = l.builder.Transpose(kernel, toFirst(w.Rank()))
	op.Attrs = &packed
	return true
}

// packing is how images and kernels of few channels are packed.
type packing struct {
	positions, channels int64 // neighbours that become one position, and the channels of each
	before              int64 // zeros before a row of the kernel
	taps                int64 // of a row of the kernel, with zeros
}

// gather brings [N, C, ..., W] into the form [N, ..., W/positions, packedChannels].
func (p packing) gather(b *ir.Builder, v ir.Value) ir.Value {
	shape := b.Shape(v)
	rank := len(shape)
	width, _ := shape[rank-1].IsConst()
	split := append(slices.Clone(shape[:rank-1]), ir.Const(width/p.positions), ir.Const(p.positions))
	v = b.Transpose(b.Reshape(v, split), toLast(rank+1))
	high := ir.Consts(make([]int64, rank+1)...)
	high[rank] = ir.Const(packedChannels/p.positions - p.channels)
	v = b.Pad(v, b.Scalar(b.DType(v), 0), ir.Consts(make([]int64, rank+1)...), high, nil)
	joined := append(slices.Clone(b.Shape(v)[:rank-1]), ir.Const(packedChannels))
	return b.Reshape(v, joined)
}

// kernel packs a kernel.
func (p packing) kernel(b *ir.Builder, v ir.Value) ir.Value {
	rank := b.Rank(v)
	taps, _ := b.Shape(v)[rank-1].IsConst()
	low, high := ir.Consts(make([]int64, rank)...), ir.Consts(make([]int64, rank)...)
	low[rank-1], high[rank-1] = ir.Const(p.before), ir.Const(p.taps-taps-p.before)
	return p.gather(b, b.Pad(v, b.Scalar(b.DType(v), 0), low, high, nil))
}
