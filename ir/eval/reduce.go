package eval

import (
	"math"
	"slices"

	"weft/ir"
)

var combineFloats = [...]func(a, b float64) float64{
	ir.Sum: func(a, b float64) float64 { return a + b },
	ir.Mul: func(a, b float64) float64 { return a * b },
	ir.Max: func(a, b float64) float64 { return max(a, b) },
	ir.Min: func(a, b float64) float64 { return min(a, b) },
}

var combineComplex = [...]func(a, b complex128) complex128{
	ir.Sum: func(a, b complex128) complex128 { return a + b },
	ir.Mul: func(a, b complex128) complex128 { return a * b },
}

// combineInts combines integers and bools; on bool, add and multiply do not occur.
func combineInts(c ir.Combine, t ir.DType) func(a, b int64) int64 {
	switch c {
	case ir.Sum:
		return func(a, b int64) int64 { return a + b }
	case ir.Mul:
		return func(a, b int64) int64 { return a * b }
	case ir.Max:
		return func(a, b int64) int64 { return intMax(t, a, b) }
	case ir.Min:
		return func(a, b int64) int64 { return intMin(t, a, b) }
	case ir.And:
		return func(a, b int64) int64 { return a & b }
	case ir.Or:
		return func(a, b int64) int64 { return a | b }
	}
	return func(a, b int64) int64 { return a ^ b }
}

// identityFloat is the value that combining leaves unchanged, or the nearest to it that a type
// without infinities has.
func identityFloat(c ir.Combine, t ir.DType) float64 {
	largest := math.Inf(1)
	if !t.HasInfinity() {
		largest = t.MaxFinite()
	}
	switch c {
	case ir.Mul:
		return 1
	case ir.Max:
		return -largest
	case ir.Min:
		return largest
	}
	return 0
}

func identityInt(c ir.Combine, t ir.DType) int64 {
	lowest, highest := int64(0), mask(t)
	if t.IsSigned() {
		highest = int64(uint64(mask(t)) >> 1)
		lowest = -highest - 1
	}
	switch c {
	case ir.Mul:
		return 1
	case ir.Max:
		return lowest
	case ir.Min:
		return highest
	case ir.And:
		return mask(t)
	}
	return 0
}

// number is what elements compute in.
type number interface{ float64 | int64 | complex128 }

// folder combines elements of one class.
type folder[T number] struct {
	combine  func(a, b T) T
	identity T
}

// folding calls the version of an algorithm for the class of an element type: with values to
// read and a slice of results to fill.
func folding(x, out *ir.Tensor, c ir.Combine, floats func(folder[float64], []float64, []float64),
	ints func(folder[int64], []int64, []int64), complexes func(folder[complex128], []complex128, []complex128)) {
	n := out.Numel()
	switch t := x.DType; {
	case t.IsFloat():
		acc := make([]float64, n)
		floats(folder[float64]{combineFloats[c], identityFloat(c, t)}, allFloats(x), acc)
		writeFloats(out, 0, acc)
	case t.IsComplex():
		acc := make([]complex128, n)
		complexes(folder[complex128]{combineComplex[c], complex(identityFloat(c, ir.F64), 0)}, allComplex(x), acc)
		writeComplex(out, 0, acc)
	default:
		acc := make([]int64, n)
		ints(folder[int64]{combineInts(c, t), identityInt(c, t)}, allInts(x), acc)
		putInts(out, 0, acc)
	}
}

func reduce(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.ReduceAttrs)
	x, out := c.in[0], c.result(0)
	// Strides of the result by dims of the operand, 0 for those that vanish.
	strides := make([]int64, len(x.Shape))
	left := rowMajor(out.Shape)
	for d := range x.Shape {
		if !slices.Contains(a.Axes, d) {
			strides[d], left = left[0], left[1:]
		}
	}
	folding(x, out, a.Combine,
		func(f folder[float64], in, acc []float64) { f.reduce(x.Shape, strides, in, acc) },
		func(f folder[int64], in, acc []int64) { f.reduce(x.Shape, strides, in, acc) },
		func(f folder[complex128], in, acc []complex128) { f.reduce(x.Shape, strides, in, acc) })
	return out, nil
}

// reduce folds each element into the one that strides lead to.
func (f folder[T]) reduce(shape, strides []int64, in, acc []T) {
	for i := range acc {
		acc[i] = f.identity
	}
	last := len(shape) - 1
	if last < 0 {
		acc[0] = f.combine(acc[0], in[0])
		return
	}
	n, step := shape[last], strides[last]
	odometer(shape[:last], func(at []int64) {
		to := at[0]
		for _, v := range in[:n] {
			acc[to] = f.combine(acc[to], v)
			to += step
		}
		in = in[n:]
	}, strides[:last])
}

// argReduce keeps the first extreme element, or the last; NaN beats numbers.
func argReduce(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.ArgReduceAttrs)
	x, out := c.in[0], c.result(0)
	if x.Shape[a.Axis] == 0 && out.Numel() > 0 {
		return nil, c.fail("there is no %s element of %s along axis %d", a.Combine, x.Type(), a.Axis)
	}
	order := elementOrder(x)
	if a.Combine == ir.Min {
		order = reversedNumbers(x, order)
	}
	_, n, inner := lines(x.Shape, a.Axis)
	for i := range out.Numel() {
		first := i/inner*n*inner + i%inner
		best := int64(0)
		for k := int64(1); k < n; k++ {
			o := order(first+k*inner, first+best*inner)
			if o > 0 || o == 0 && a.Last {
				best = k
			}
		}
		out.SetInt(i, best)
	}
	return out, nil
}

// elementOrder compares two elements by their offsets; NaN counts as largest, zeros as equal.
func elementOrder(x *ir.Tensor) func(i, j int64) int {
	if !x.DType.IsFloat() {
		vs := allInts(x)
		return func(i, j int64) int {
			switch {
			case vs[i] == vs[j]:
				return 0
			case intLess(x.DType, vs[i], vs[j]):
				return -1
			}
			return 1
		}
	}
	vs := allFloats(x)
	return func(i, j int64) int {
		a, b := vs[i], vs[j]
		switch {
		case a < b || b != b && a == a:
			return -1
		case a > b || a != a && b == b:
			return 1
		}
		return 0
	}
}

// reversedNumbers turns the order of numbers around and keeps NaN largest.
func reversedNumbers(x *ir.Tensor, order func(i, j int64) int) func(i, j int64) int {
	if !x.DType.IsFloat() {
		return func(i, j int64) int { return order(j, i) }
	}
	return func(i, j int64) int {
		if math.IsNaN(x.Float(i)) || math.IsNaN(x.Float(j)) {
			return order(i, j)
		}
		return order(j, i)
	}
}

func reduceWindow(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.ReduceWindowAttrs)
	x, out := c.in[0], c.result(0)
	window, err := c.evalDims(c.op, a.Window)
	if err != nil {
		return nil, err
	}
	low, err := c.evalDims(c.op, a.Low)
	if err != nil {
		return nil, err
	}
	w := windows{shape: x.Shape, out: out.Shape, window: window, strides: a.Strides, dilations: a.Dilations, low: low}
	folding(x, out, a.Combine,
		func(f folder[float64], in, acc []float64) { f.window(w, in, acc) },
		func(f folder[int64], in, acc []int64) { f.window(w, in, acc) },
		func(f folder[complex128], in, acc []complex128) { f.window(w, in, acc) })
	return out, nil
}

// windows are the positions of a sliding window.
type windows struct {
	shape, out, window, strides, dilations, low []int64
}

// window folds the elements under each window in row-major order; padding is the identity.
func (f folder[T]) window(w windows, in, acc []T) {
	strides, outStrides := rowMajor(w.shape), rowMajor(w.out)
	var fold func(sum T, dim int, base, position int64) T
	fold = func(sum T, dim int, base, position int64) T {
		if dim == len(w.shape) {
			return f.combine(sum, in[base])
		}
		start := position/outStrides[dim]%w.out[dim]*w.strides[dim] - w.low[dim]
		step := w.dilations[dim]
		last := min(w.window[dim]-1, floorDiv(w.shape[dim]-1-start, step))
		for k := max(0, ceilDiv(-start, step)); k <= last; k++ {
			sum = fold(sum, dim+1, base+(start+k*step)*strides[dim], position)
		}
		return sum
	}
	for i := range acc {
		acc[i] = fold(f.identity, 0, 0, int64(i))
	}
}

func cumulative(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.CumulativeAttrs)
	x, out := c.in[0], c.result(0)
	folding(x, out, a.Combine,
		func(f folder[float64], in, acc []float64) { f.cumulate(a, x.Shape, in, acc) },
		func(f folder[int64], in, acc []int64) { f.cumulate(a, x.Shape, in, acc) },
		func(f folder[complex128], in, acc []complex128) { f.cumulate(a, x.Shape, in, acc) })
	return out, nil
}

// cumulate combines along lines of one axis.
func (f folder[T]) cumulate(a *ir.CumulativeAttrs, shape []int64, in, acc []T) {
	if len(acc) == 0 {
		return
	}
	outer, n, inner := lines(shape, a.Axis)
	for line := range outer * inner {
		at, step := line/inner*n*inner+line%inner, inner
		if a.Reverse {
			at, step = at+(n-1)*inner, -inner
		}
		sum := f.identity
		for range n {
			if a.Exclusive {
				acc[at] = sum
			}
			sum = f.combine(sum, in[at])
			if !a.Exclusive {
				acc[at] = sum
			}
			at += step
		}
	}
}

// sortOp finds the order of the first operand along each line and carries the others along.
func sortOp(c *call) ([]*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.SortAttrs)
	key := c.in[0]
	order := elementOrder(key)
	if a.Descending {
		ascending := order
		order = func(i, j int64) int { return ascending(j, i) }
	}
	outer, n, inner := lines(key.Shape, a.Axis)
	from := make([]int64, key.Numel()) // the offset from which each element comes
	line := make([]int64, n)
	for l := int64(0); len(from) > 0 && l < outer*inner; l++ {
		first := l/inner*n*inner + l%inner
		for k := range line {
			line[k] = first + int64(k)*inner
		}
		within := n
		if a.Within > 0 {
			within = a.Within
		}
		for run := range slices.Chunk(line, int(max(1, min(within, n)))) {
			slices.SortStableFunc(run, func(i, j int64) int { return order(i, j) })
		}
		for k, i := range line {
			from[first+int64(k)*inner] = i
		}
	}
	results := make([]*ir.Tensor, len(c.in))
	for i, x := range c.in {
		one := &call{evaluator: c.evaluator, op: c.op, in: []*ir.Tensor{x}, types: c.types[i : i+1]}
		r, err := moving(func(c *call) (*ir.Tensor, error) {
			out := c.result(0)
			size := int64(out.DType.Size())
			for to, i := range from {
				copy(out.Data[int64(to)*size:int64(to+1)*size], c.in[0].Data[i*size:])
			}
			return out, nil
		}, 0)(one)
		if err != nil {
			return nil, err
		}
		results[i] = r[0]
	}
	return results, nil
}
