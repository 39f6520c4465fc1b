package lower

import (
	"slices"

	"weft/ir"
)

// Pool describes sliding windows over the spatial dims of [N, C, spatial...] (or [C,
// spatial...]): one number a spatial dim.
type Pool struct {
	Window, Strides, Dilations []int64
	Low, High                  []ir.Dim
	// Beyond is further padding at the high edge that ceil_mode adds, so that the last window
	// fits; it never counts in averages.
	Beyond []ir.Dim
}

// NewPool makes windows with the same explicit padding at both edges, for the spatial dims
// of x. Empty strides are the window. With ceil, a last window that starts inside the input
// or its low padding counts even where it reaches past the high edge.
func NewPool(b *ir.Builder, x ir.Value, window, strides, padding, dilations []int64, ceil bool) Pool {
	if len(strides) == 0 {
		strides = window
	}
	p := Pool{Window: window, Strides: strides, Dilations: dilations}
	first := b.Rank(x) - len(window)
	for i := range window {
		low := ir.Const(padding[i])
		p.Low, p.High = append(p.Low, low), append(p.High, low)
		beyond := ir.Const(0)
		if ceil {
			beyond = ceilPadding(b.Shape(x)[first+i], window[i], strides[i], padding[i], dilations[i])
		}
		p.Beyond = append(p.Beyond, beyond)
	}
	return p
}

// ceilPadding is what the high edge needs for the windows that ceil_mode adds.
func ceilPadding(size ir.Dim, window, stride, padding, dilation int64) ir.Dim {
	span := dilation*(window-1) + 1
	rest := size.AddConst(2*padding - span)
	n := rest.CeilDiv(stride) // number of windows less one
	// The last window must start before the end of the input.
	n = n.Min(size.AddConst(padding - 1).FloorDiv(ir.Const(stride)))
	return n.MulConst(stride).Sub(rest).Max(ir.Const(0))
}

func (p Pool) attrs(rank int, c ir.Combine, explicit bool) *ir.ReduceWindowAttrs {
	first := rank - len(p.Window)
	a := &ir.ReduceWindowAttrs{Combine: c}
	for range first {
		a.Window, a.Strides, a.Dilations = append(a.Window, ir.Const(1)), append(a.Strides, 1), append(a.Dilations, 1)
		a.Low, a.High = append(a.Low, ir.Const(0)), append(a.High, ir.Const(0))
	}
	for i, w := range p.Window {
		a.Window, a.Strides, a.Dilations = append(a.Window, ir.Const(w)), append(a.Strides, p.Strides[i]), append(a.Dilations, p.Dilations[i])
		low, high := p.Low[i], p.High[i].Add(p.Beyond[i])
		if explicit {
			low, high = ir.Const(0), p.Beyond[i]
		}
		a.Low, a.High = append(a.Low, low), append(a.High, high)
	}
	return a
}

// MaxPool takes the largest element of each window.
func MaxPool(b *ir.Builder, x ir.Value, p Pool) ir.Value {
	return b.ReduceWindow(x, p.attrs(b.Rank(x), ir.Max, false))
}

// SumPool adds the elements of each window.
func SumPool(b *ir.Builder, x ir.Value, p Pool) ir.Value {
	return b.ReduceWindow(x, p.attrs(b.Rank(x), ir.Sum, false))
}

// AvgPool averages each window. Padding counts as zeros where countPadding; a divisor other
// than 0 replaces the number of elements.
func AvgPool(b *ir.Builder, x ir.Value, p Pool, countPadding bool, divisor int64) ir.Value {
	return unary(b, x, func(x ir.Value) ir.Value {
		sum := SumPool(b, x, p)
		if divisor != 0 {
			return b.Binary(ir.OpDivide, sum, b.FullLike(sum, float64(divisor)))
		}
		count := int64(1)
		for _, w := range p.Window {
			count *= w
		}
		if countPadding && allZero(p.Beyond) || allZero(p.Low) && allZero(p.High) && allZero(p.Beyond) {
			return b.Binary(ir.OpDivide, sum, b.FullLike(sum, float64(count)))
		}
		return b.Binary(ir.OpDivide, sum, like(b, p.counts(b, x, countPadding), sum))
	})
}

// counts is the number of elements of each window, with dims of 1 in front.
func (p Pool) counts(b *ir.Builder, x ir.Value, countPadding bool) ir.Value {
	dims := slices.Clone(b.Shape(x))
	first := len(dims) - len(p.Window)
	for i := range dims {
		if i < first {
			dims[i] = ir.Const(1)
		} else if countPadding {
			dims[i] = dims[i].Add(p.Low[i-first]).Add(p.High[i-first])
		}
	}
	ones := b.Full(ir.TensorOf(b.DType(x), dims...), 1)
	return b.ReduceWindow(ones, p.attrs(len(dims), ir.Sum, countPadding))
}

func allZero(dims []ir.Dim) bool {
	return !slices.ContainsFunc(dims, func(d ir.Dim) bool { return !d.Is(0) })
}

// AdaptiveAvgPool averages each spatial dim (the last len(out) of x) over out[i] bins from
// floor(k*n/out) to ceil((k+1)*n/out). It needs constant spatial dims where out is not 1.
// A negative out keeps the dim.
func AdaptiveAvgPool(b *ir.Builder, x ir.Value, out []int64) (ir.Value, bool) {
	first := b.Rank(x) - len(out)
	var whole []int
	for i, n := range out {
		size, known := b.Shape(x)[first+i].IsConst()
		switch {
		case n == 1:
			whole = append(whole, first+i)
		case n < 0 || known && size == n:
		case !known || n == 0 || size%n != 0 && n > maxBins/max(size, 1):
			return x, false
		}
	}
	return unary(b, x, func(x ir.Value) ir.Value {
		if len(whole) > 0 {
			x = Mean(b, x, whole, true)
		}
		for i, n := range out {
			if size, known := b.Shape(x)[first+i].IsConst(); known && n > 1 && size != n {
				x = averageBins(b, x, first+i, size, n)
			}
		}
		return x
	}), true
}

// maxBins bounds the elements of a matrix of bins.
const maxBins = 1 << 20

// averageBins averages bins along one axis: windows where they have one size, else a product
// with the matrix of bins.
func averageBins(b *ir.Builder, x ir.Value, axis int, size, n int64) ir.Value {
	if size%n == 0 {
		shape := b.Shape(x)
		split := slices.Concat(shape[:axis], ir.Consts(n, size/n), shape[axis+1:])
		return Mean(b, b.Reshape(x, split), []int{axis + 1}, false)
	}
	bins := ir.NewTensor(b.DType(x), size, n)
	for k := range n {
		start, end := k*size/n, ((k+1)*size+n-1)/n
		for j := start; j < end; j++ {
			bins.SetFloat(j*n+k, 1/float64(end-start))
		}
	}
	return MoveLast(b, b.DotGeneral(x, b.Constant(bins), &ir.DotAttrs{LhsContract: []int{axis}, RhsContract: []int{0}}), axis)
}

// AdaptiveMaxPool takes the largest element of each bin, as AdaptiveAvgPool cuts them.
func AdaptiveMaxPool(b *ir.Builder, x ir.Value, out []int64) (ir.Value, bool) {
	first := b.Rank(x) - len(out)
	for i, n := range out {
		axis := first + i
		size, known := b.Shape(x)[axis].IsConst()
		switch {
		case n == 1:
			x = b.ReduceKeep(ir.Max, x, axis)
		case n < 0 || known && size == n:
		case !known || n == 0 || n > maxBins/max(size, 1):
			return x, false
		default:
			parts := make([]ir.Value, n)
			for k := range n {
				part := b.SliceAxis(x, axis, ir.Const(k*size/n), ir.Const(((k+1)*size+n-1)/n), 1)
				parts[k] = b.ReduceKeep(ir.Max, part, axis)
			}
			x = b.Concatenate(axis, parts...)
		}
	}
	return x, true
}
