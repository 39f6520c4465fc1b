package eval

import (
	"math"
	"slices"

	"weft/ir"
)

// dot gives the sum of products of two rows of k elements for every pair of m rows of x and n
// rows of y, each sum in order of the elements. The conversion to T keeps x*y+z from being
// fused on machines where Go would.
func dot[T number](m, n, k int, x, y []T, store func(row int, sums []T)) {
	parallel(int64(m), max(1, 65536/int64(max(1, n*k))), func(lo, hi int64) {
		sums := make([]T, n)
		for i := int(lo); i < int(hi); i++ {
			row := x[i*k : (i+1)*k]
			j := 0
			for ; j+4 <= n; j += 4 { // four sums at a time hide the latency of addition
				y0, y1, y2, y3 := y[j*k:(j+1)*k], y[(j+1)*k:(j+2)*k], y[(j+2)*k:(j+3)*k], y[(j+3)*k:(j+4)*k]
				var s0, s1, s2, s3 T
				for p, v := range row {
					s0 += T(v * y0[p])
					s1 += T(v * y1[p])
					s2 += T(v * y2[p])
					s3 += T(v * y3[p])
				}
				sums[j], sums[j+1], sums[j+2], sums[j+3] = s0, s1, s2, s3
			}
			for ; j < n; j++ {
				var s T
				for p, v := range y[j*k : (j+1)*k] {
					s += T(row[p] * v)
				}
				sums[j] = s
			}
			store(i, sums)
		}
	})
}

// dotShape is a dot_general as a batch of products of m rows with n rows of k elements.
type dotShape struct{ batch, m, n, k int }

func dotGeneral(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.DotAttrs)
	out := c.result(0)
	free := func(t *ir.Tensor, bound ...int) (dims []int) {
		for d := range t.Shape {
			if !slices.Contains(bound, d) {
				dims = append(dims, d)
			}
		}
		return dims
	}
	l, r := c.in[0], c.in[1]
	lfree, rfree := free(l, slices.Concat(a.LhsBatch, a.LhsContract)...), free(r, slices.Concat(a.RhsBatch, a.RhsContract)...)
	size := func(t *ir.Tensor, dims []int) int {
		n := int64(1)
		for _, d := range dims {
			n *= t.Shape[d]
		}
		return int(n)
	}
	s := dotShape{size(l, a.LhsBatch), size(l, lfree), size(r, rfree), size(l, a.LhsContract)}
	// Both operands as batch, rows, contracted.
	l = permuted(l, slices.Concat(a.LhsBatch, lfree, a.LhsContract))
	r = permuted(r, slices.Concat(a.RhsBatch, rfree, a.RhsContract))
	switch {
	case l.DType.IsComplex() || out.DType.IsComplex():
		sums := batchedDot(s, allComplex(l), allComplex(r))
		if out.DType.IsComplex() {
			writeComplex(out, 0, sums)
			break
		}
		return nil, c.undefined(out.DType)
	case l.DType.IsFloat():
		sums := batchedDot(s, factors(l, a.Precision), factors(r, a.Precision))
		writeFloats(out, 0, sums)
	default:
		sums := batchedDot(s, allInts(l), allInts(r))
		for i, v := range sums {
			setInt(out, int64(i), v, l.DType == ir.U64)
		}
	}
	return out, nil
}

// factors are a product's operand as it is multiplied.
func factors(t *ir.Tensor, p ir.Precision) []float64 {
	x := allFloats(t)
	if p == ir.TF32 {
		for i, v := range x {
			x[i] = float64(ir.RoundTF32(float32(v)))
		}
	}
	return x
}

func batchedDot[T number](s dotShape, x, y []T) []T {
	sums := make([]T, s.batch*s.m*s.n)
	for b := range s.batch {
		dot(s.m, s.n, s.k, x[b*s.m*s.k:(b+1)*s.m*s.k], y[b*s.n*s.k:(b+1)*s.n*s.k], func(row int, of []T) {
			copy(sums[(b*s.m+row)*s.n:], of)
		})
	}
	return sums
}

// permuted is a tensor with its dims in another order.
func permuted(t *ir.Tensor, dims []int) *ir.Tensor {
	if slices.IsSorted(dims) {
		return t
	}
	if t.DType.Size() == 0 {
		return pack(t.DType, permuted(unpack(t), dims))
	}
	from := whole(t)
	shape, strides := make([]int64, len(dims)), make([]int64, len(dims))
	for i, d := range dims {
		shape[i], strides[i] = t.Shape[d], from.strides[d]
	}
	out := ir.NewTensor(t.DType, shape...)
	from.strides = strides
	copyElements(shape, t.DType.Size(), whole(out), from)
	return out
}

// conv is a convolution with its sizes.
type conv struct {
	*ir.ConvolutionAttrs
	low      []int64
	in, out  []int64 // spatial sizes
	window   []int64
	channels int // of the input, in a group
	filters  int // in a group
}

func convolution(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.ConvolutionAttrs)
	x, k, out := c.in[0], c.in[1], c.result(0)
	low, err := c.evalDims(c.op, a.Low)
	if err != nil {
		return nil, err
	}
	v := conv{a, low, x.Shape[2:], out.Shape[2:], k.Shape[2:], int(k.Shape[1]), int(k.Shape[0] / a.Groups)}
	if x.DType.IsFloat() {
		sums := make([]float64, out.Numel())
		convolve(v, int(x.Shape[0]), factors(x, a.Precision), factors(k, a.Precision), sums)
		writeFloats(out, 0, sums)
	} else {
		sums := make([]int64, out.Numel())
		convolve(v, int(x.Shape[0]), allInts(x), allInts(k), sums)
		putInts(out, 0, sums)
	}
	return out, nil
}

// convolve takes, for each image and group, the patches under the window as rows and multiplies
// them with the kernels. Padding is zeros that are multiplied like any other element.
func convolve[T number](v conv, images int, x, kernels, sums []T) {
	groups := int(v.Groups)
	pixels, positions := int(product(v.in)), int(product(v.out))
	k := v.channels * int(product(v.window))
	offsets := v.patchOffsets()
	taps := int(product(v.window))
	for g := range images * groups {
		group := g % groups
		image := x[g*v.channels*pixels : (g+1)*v.channels*pixels]
		weights := kernels[group*v.filters*k : (group+1)*v.filters*k]
		to := sums[g*v.filters*positions:]
		const rows = 64 // positions at a time, which bounds the memory for patches
		parallel(int64(positions), rows, func(lo, hi int64) {
			patch := make([]T, rows*k)
			for start := int(lo); start < int(hi); start += rows {
				n := min(rows, int(hi)-start)
				for p := range n {
					fillPatch(patch[p*k:(p+1)*k], image, offsets[(start+p)*taps:(start+p+1)*taps], pixels)
				}
				dot(n, v.filters, k, patch[:n*k], weights, func(p int, of []T) {
					for o, s := range of {
						to[o*positions+start+p] = s
					}
				})
			}
		})
	}
}

// fillPatch gathers the pixels under the window from all channels of an image.
func fillPatch[T number](patch, image []T, offsets []int32, pixels int) {
	for i := 0; i < len(patch); i += len(offsets) {
		for tap, offset := range offsets {
			if offset < 0 {
				patch[i+tap] = 0
			} else {
				patch[i+tap] = image[offset]
			}
		}
		image = image[pixels:]
	}
}

// patchOffsets lists, for each output position and window element, the offset of the input
// pixel, or -1 in the padding and between dilated pixels.
func (v conv) patchOffsets() []int32 {
	rank := len(v.in)
	offsets := make([]int32, 0, product(v.out)*product(v.window))
	strides := rowMajor(v.in)
	position, tap := rowMajor(v.out), rowMajor(v.window)
	for p := range product(v.out) {
		for w := range product(v.window) {
			offset := int64(0)
			for d := range rank {
				k := w / tap[d] % v.window[d]
				if v.ReverseKernel {
					k = v.window[d] - 1 - k
				}
				i := p/position[d]%v.out[d]*v.Strides[d] + k*v.RhsDilation[d] - v.low[d]
				if i < 0 || i%v.LhsDilation[d] != 0 || i/v.LhsDilation[d] >= v.in[d] {
					offset = -1
					break
				}
				offset += i / v.LhsDilation[d] * strides[d]
			}
			offsets = append(offsets, int32(offset))
		}
	}
	return offsets
}

// attention computes each row of the definition: scores, mask, softmax, sum of values.
func attention(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.AttentionAttrs)
	q, k, v, out := c.in[0], c.in[1], c.in[2], c.result(0)
	heads, rows, depth := q.Shape[1], q.Shape[2], q.Shape[3]
	keys, width := k.Shape[2], v.Shape[3]
	var mask *ir.Tensor
	var maskStrides []int64
	if len(c.in) == 4 {
		mask = c.in[3]
		maskStrides = rowMajor(mask.Shape)
		for d, n := range mask.Shape {
			if n == 1 {
				maskStrides[d] = 0
			}
		}
	}
	qs, ks, vs := allFloats(q), allFloats(k), allFloats(v)
	sums := make([]float64, out.Numel())
	groups := max(1, k.Shape[1])
	repeat := max(1, heads/groups)
	parallel(q.Shape[0]*heads*rows, 1, func(lo, hi int64) {
		scores := make([]float64, keys)
		for r := lo; r < hi; r++ {
			b, h, s := r/rows/heads, r/rows%heads, r%rows
			kv := (b*groups + h/repeat) * keys
			row := attentionRow{scores: scores, query: qs[r*depth : (r+1)*depth], keys: ks[kv*depth : (kv+keys)*depth], scale: a.Scale}
			row.visible = keys
			if a.Causal {
				row.visible = s + 1
				if a.AlignEnd {
					row.visible += keys - rows
				}
				row.visible = max(0, min(row.visible, keys))
			}
			if mask != nil {
				row.mask, row.maskStep = mask, maskStrides[3]
				row.maskAt = b*maskStrides[0] + h*maskStrides[1] + s*maskStrides[2]
			}
			row.weigh()
			row.sum(vs[kv*width:(kv+keys)*width], sums[r*width:(r+1)*width])
		}
	})
	writeFloats(out, 0, sums)
	return out, nil
}

// attentionRow is one row of attention: a query and the keys it may see.
type attentionRow struct {
	scores           []float64
	query, keys      []float64
	scale            float64
	visible          int64 // keys from here on are hidden
	mask             *ir.Tensor
	maskAt, maskStep int64
}

// weigh fills scores with the weights of the keys: a softmax, or zeros where nothing is seen.
func (r *attentionRow) weigh() {
	largest := math.Inf(-1)
	depth := len(r.query)
	for t := range r.scores {
		score := math.Inf(-1)
		if int64(t) < r.visible {
			score = 0
			for i, x := range r.query {
				score += float64(x * r.keys[t*depth+i])
			}
			score *= r.scale
			if r.mask != nil {
				at := r.maskAt + int64(t)*r.maskStep
				switch {
				case r.mask.DType != ir.Bool:
					score += r.mask.Float(at)
				case r.mask.Data[at] == 0:
					score = math.Inf(-1)
				}
			}
		}
		r.scores[t] = score
		largest = max(largest, score)
	}
	total := 0.0
	for t, score := range r.scores {
		if math.IsInf(largest, -1) {
			r.scores[t] = 0
			continue
		}
		r.scores[t] = math.Exp(score - largest)
		total += r.scores[t]
	}
	if total != 0 {
		for t := range r.scores {
			r.scores[t] /= total
		}
	}
}

// sum adds up values by weight; a hidden key's value does not count, whatever it is.
func (r *attentionRow) sum(values, out []float64) {
	for t, weight := range r.scores {
		if weight == 0 {
			continue
		}
		for i, v := range values[t*len(out) : (t+1)*len(out)] {
			out[i] += float64(weight * v)
		}
	}
}
