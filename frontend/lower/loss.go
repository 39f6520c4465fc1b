package lower

import (
	"slices"

	"weft/ir"
)

// Reduction says what a loss does with its elements.
type Reduction int

// The numbers are PyTorch's.
const (
	ReduceNone Reduction = iota
	ReduceMean
	ReduceSum
)

// Reduced applies a reduction over all dims.
func Reduced(b *ir.Builder, x ir.Value, r Reduction) ir.Value {
	all := lastAxes(b.Rank(x), b.Rank(x))
	switch r {
	case ReduceMean:
		return Mean(b, x, all, false)
	case ReduceSum:
		return b.Reduce(ir.Sum, x, all...)
	}
	return x
}

// NegativeLogLikelihood is -weight[t] * logp[n, t, ...] for logp [N, C, ...] (or
// [C]) and class indices target [N, ...] (or []). weight [C] may be ir.NoValue. Elements whose
// target is ignore give 0 and do not count in the mean. total is the sum of weights that the
// mean divides by.
func NegativeLogLikelihood(b *ir.Builder, logp, target, weight ir.Value, r Reduction, ignore int64) (loss, total ir.Value) {
	axis := min(1, b.Rank(logp)-1)
	kept := b.Compare(ir.NE, target, b.Full(b.Type(target), float64(ignore)))
	class := b.Select(kept, target, b.FullLike(target, 0))
	picked := b.Unary(ir.OpNegate, pickClass(b, logp, class, axis))
	w := b.FullLike(picked, 1)
	if weight != ir.NoValue {
		w = b.Convert(b.Take(weight, class, 0), b.DType(picked))
	}
	zero := b.FullLike(picked, 0)
	w = b.Select(kept, w, zero)
	each := b.Select(kept, b.Binary(ir.OpMultiply, picked, w), zero)
	all := lastAxes(b.Rank(each), b.Rank(each))
	total = b.Reduce(ir.Sum, w, all...)
	switch r {
	case ReduceNone:
		return each, total
	case ReduceSum:
		return b.Reduce(ir.Sum, each, all...), total
	}
	return b.Binary(ir.OpDivide, b.Reduce(ir.Sum, each, all...), total), total
}

// pickClass takes x[..., class, ...] along an axis; class has the dims of x without it.
func pickClass(b *ir.Builder, x, class ir.Value, axis int) ir.Value {
	rank := b.Rank(x)
	a := &ir.GatherAttrs{CollapsedSliceDims: []int{axis}, StartIndexMap: []int{axis}, IndexVectorDim: rank - 1}
	for i := range rank {
		a.SliceSizes = append(a.SliceSizes, ir.Const(1))
		if i == axis {
			continue
		}
		a.StartIndicesBatchingDims = append(a.StartIndicesBatchingDims, len(a.OperandBatchingDims))
		a.OperandBatchingDims = append(a.OperandBatchingDims, i)
	}
	return b.Gather(x, class, a)
}

// CrossEntropy is NegativeLogLikelihood of the log-softmax, with label smoothing; target may also hold class
// probabilities in the shape of x. Narrow floats compute in float32.
func CrossEntropy(b *ir.Builder, x, target, weight ir.Value, r Reduction, ignore int64, smoothing float64) ir.Value {
	return InFloat32(b, func(v []ir.Value) ir.Value {
		axis := min(1, b.Rank(x)-1)
		logp := LogSoftmax(b, v[0], axis)
		if b.DType(target).IsFloat() {
			return probabilityLoss(b, logp, b.Convert(target, b.DType(logp)), v[1], axis, r, smoothing)
		}
		loss, total := NegativeLogLikelihood(b, logp, target, v[1], r, ignore)
		if smoothing == 0 {
			return loss
		}
		smooth := smoothLoss(b, logp, target, v[1], axis, r, ignore, total)
		classes := b.Shape(x)[axis]
		share := b.Binary(ir.OpDivide, b.FullLike(loss, smoothing), b.Broadcast(b.Convert(b.Dim(classes), b.DType(loss)), b.Shape(loss), nil))
		return b.Binary(ir.OpAdd, Scale(b, loss, 1-smoothing), b.Binary(ir.OpMultiply, smooth, share))
	}, x, weight)
}

// smoothLoss is the part of label smoothing: minus the (weighted) sum over all classes.
func smoothLoss(b *ir.Builder, logp, target, weight ir.Value, axis int, r Reduction, ignore int64, total ir.Value) ir.Value {
	terms := b.Unary(ir.OpNegate, logp)
	if weight != ir.NoValue {
		terms = b.Binary(ir.OpMultiply, terms, b.Broadcast(weight, b.Shape(terms), []int{axis}))
	}
	each := b.Reduce(ir.Sum, terms, axis)
	kept := b.Compare(ir.NE, target, b.Full(b.Type(target), float64(ignore)))
	each = b.Select(kept, each, b.FullLike(each, 0))
	switch r {
	case ReduceNone:
		return each
	case ReduceSum:
		return Reduced(b, each, ReduceSum)
	}
	return b.Binary(ir.OpDivide, Reduced(b, each, ReduceSum), total)
}

// probabilityLoss is cross entropy against class probabilities; its mean is over all dims but
// the classes.
func probabilityLoss(b *ir.Builder, logp, target, weight ir.Value, axis int, r Reduction, smoothing float64) ir.Value {
	if smoothing != 0 {
		classes := b.Broadcast(b.Convert(b.Dim(b.Shape(logp)[axis]), b.DType(target)), b.Shape(target), nil)
		target = b.Binary(ir.OpAdd, Scale(b, target, 1-smoothing), b.Binary(ir.OpDivide, b.FullLike(target, smoothing), classes))
	}
	terms := b.Unary(ir.OpNegate, b.Binary(ir.OpMultiply, logp, target))
	if weight != ir.NoValue {
		terms = b.Binary(ir.OpMultiply, terms, b.Broadcast(weight, b.Shape(terms), []int{axis}))
	}
	return Reduced(b, b.Reduce(ir.Sum, terms, axis), r)
}

// Pairwise computes an elementwise loss of two operands that broadcast, and reduces it.
func Pairwise(b *ir.Builder, x, y ir.Value, r Reduction, each func(x, y ir.Value) ir.Value) ir.Value {
	return InFloat32(b, func(v []ir.Value) ir.Value {
		v = Broadcast(b, v...)
		return Reduced(b, each(v[0], v[1]), r)
	}, x, y)
}

// SquaredError is (x - y)^2.
func SquaredError(b *ir.Builder, x, y ir.Value) ir.Value {
	d := b.Binary(ir.OpSubtract, x, y)
	return b.Binary(ir.OpMultiply, d, d)
}

// AbsoluteError is |x - y|.
func AbsoluteError(b *ir.Builder, x, y ir.Value) ir.Value {
	return b.Unary(ir.OpAbs, b.Binary(ir.OpSubtract, x, y))
}

// HuberError is quadratic below delta: scale * (d^2/2 where |d| < delta, else delta*(|d| - delta/2)).
func HuberError(b *ir.Builder, x, y ir.Value, delta, scale float64) ir.Value {
	d := AbsoluteError(b, x, y)
	near := Scale(b, b.Binary(ir.OpMultiply, d, d), 0.5*scale)
	far := Scale(b, AddScalar(b, d, -delta/2), delta*scale)
	return b.Select(b.Compare(ir.LT, d, b.FullLike(d, delta)), near, far)
}

// Stack joins values along a new axis.
func Stack(b *ir.Builder, axis int, xs ...ir.Value) ir.Value {
	parts := make([]ir.Value, len(xs))
	for i, x := range xs {
		parts[i] = b.Reshape(x, slices.Insert(slices.Clone(b.Shape(x)), axis, ir.Const(1)))
	}
	return b.Concatenate(axis, parts...)
}
