package eval

import (
	"encoding/binary"
	"slices"

	"weft/ir"
)

// moving adapts an operation that moves elements without looking at them. data lists the
// operands that hold such elements, none meaning all. Elements under a byte are moved as
// bytes and strings as numbers into a list, so that f sees elements of 1, 2, 4, 8 or 16 bytes;
// its result has the element type of the first of them.
func moving(f func(c *call) (*ir.Tensor, error), data ...int) evalFunc {
	return func(c *call) ([]*ir.Tensor, error) {
		which := data
		if len(which) == 0 {
			for i := range c.in {
				which = append(which, i)
			}
		}
		restore := c.widen(which)
		t, err := f(c)
		if err != nil {
			return nil, err
		}
		return []*ir.Tensor{restore(t)}, nil
	}
}

// widen replaces data operands by ones whose elements are whole bytes, and the type of the
// first result with theirs; restore turns a result back.
func (c *call) widen(which []int) (restore func(*ir.Tensor) *ir.Tensor) {
	dtype := c.types[0].DType
	c.in = slices.Clone(c.in)
	switch {
	case dtype == ir.String:
		var strings []string
		for _, i := range which {
			ids := ir.NewTensor(ir.I64, c.in[i].Shape...)
			for j, s := range c.in[i].Strings {
				ids.SetInt(int64(j), int64(len(strings)))
				strings = append(strings, s)
			}
			c.in[i] = ids
		}
		c.types[0].DType = ir.I64
		return func(ids *ir.Tensor) *ir.Tensor {
			out := ir.NewTensor(ir.String, ids.Shape...)
			for j := range out.Strings {
				out.Strings[j] = strings[ids.Int(int64(j))]
			}
			return out
		}
	case dtype.Size() == 0:
		for _, i := range which {
			c.in[i] = unpack(c.in[i])
		}
		c.types[0].DType = ir.U8
		return func(t *ir.Tensor) *ir.Tensor { return pack(dtype, t) }
	}
	return func(t *ir.Tensor) *ir.Tensor { return t }
}

// unpack gives the bits of elements under a byte a byte each.
func unpack(t *ir.Tensor) *ir.Tensor {
	out := ir.NewTensor(ir.U8, t.Shape...)
	width := t.DType.Bits()
	for i := range out.Data {
		bit := i * width
		out.Data[i] = t.Data[bit/8] >> (bit % 8) & (1<<width - 1)
	}
	return out
}

func pack(dtype ir.DType, t *ir.Tensor) *ir.Tensor {
	out := ir.NewTensor(dtype, t.Shape...)
	width := dtype.Bits()
	for i, v := range t.Data {
		bit := i * width
		out.Data[bit/8] |= v << (bit % 8)
	}
	return out
}

// view is a strided part of a tensor's elements.
type view struct {
	data    []byte
	offset  int64
	strides []int64
}

func whole(t *ir.Tensor) view { return view{t.Data, 0, rowMajor(t.Shape)} }

// copyElements copies elements of a size in bytes from one view of a shape to another.
func copyElements(shape []int64, size int, dst, src view) {
	if product(shape) == 0 {
		return
	}
	last := len(shape) - 1
	if last < 0 {
		copyRow(size, 1, dst.data, src.data, dst.offset, src.offset, 1, 1)
		return
	}
	odometer(shape[:last], func(at []int64) {
		copyRow(size, shape[last], dst.data, src.data, dst.offset+at[0], src.offset+at[1], dst.strides[last], src.strides[last])
	}, dst.strides[:last], src.strides[:last])
}

// copyRow copies n elements; offsets and strides count elements.
func copyRow(size int, n int64, dst, src []byte, to, from, toStep, fromStep int64) {
	if toStep == 1 && fromStep == 1 {
		s := int64(size)
		copy(dst[to*s:(to+n)*s], src[from*s:(from+n)*s])
		return
	}
	for ; n > 0; n-- {
		switch size {
		case 1:
			dst[to] = src[from]
		case 2:
			binary.LittleEndian.PutUint16(dst[2*to:], binary.LittleEndian.Uint16(src[2*from:]))
		case 4:
			binary.LittleEndian.PutUint32(dst[4*to:], binary.LittleEndian.Uint32(src[4*from:]))
		case 8:
			binary.LittleEndian.PutUint64(dst[8*to:], binary.LittleEndian.Uint64(src[8*from:]))
		default:
			copy(dst[16*to:16*to+16], src[16*from:])
		}
		to += toStep
		from += fromStep
	}
}

// reshape keeps the elements, also where symbolic sizes hid that they do not fit.
func reshape(c *call) (*ir.Tensor, error) {
	x, shape := c.in[0], c.types[0].Shape
	if x.Numel() != product(shape) {
		return nil, c.fail("%s cannot take the shape %v", x.Type(), shape)
	}
	return &ir.Tensor{DType: x.DType, Shape: shape, Data: x.Data, Strings: x.Strings}, nil
}

func broadcast(c *call) (*ir.Tensor, error) {
	x, out := c.in[0], c.result(0)
	from := whole(x)
	strides := make([]int64, len(out.Shape))
	for i, axis := range c.op.Attrs.(*ir.BroadcastAttrs).Axes {
		if x.Shape[i] != 1 {
			strides[axis] = from.strides[i]
		}
	}
	from.strides = strides
	copyElements(out.Shape, x.DType.Size(), whole(out), from)
	return out, nil
}

func transpose(c *call) (*ir.Tensor, error) {
	x, out := c.in[0], c.result(0)
	from := whole(x)
	strides := make([]int64, len(out.Shape))
	for i, p := range c.op.Attrs.(*ir.TransposeAttrs).Permutation {
		strides[i] = from.strides[p]
	}
	from.strides = strides
	copyElements(out.Shape, x.DType.Size(), whole(out), from)
	return out, nil
}

func slice(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.SliceAttrs)
	x, out := c.in[0], c.result(0)
	start, err := c.evalDims(c.op, a.Start)
	if err != nil {
		return nil, err
	}
	limit, err := c.evalDims(c.op, a.Limit)
	if err != nil {
		return nil, err
	}
	from := whole(x)
	for i, s := range start {
		if s < 0 || limit[i] > x.Shape[i] || s > limit[i] {
			return nil, c.fail("[%d, %d) is no part of dim %d of %s", s, limit[i], i, x.Type())
		}
		from.offset += s * from.strides[i]
		from.strides[i] *= a.Stride[i]
	}
	copyElements(out.Shape, x.DType.Size(), whole(out), from)
	return out, nil
}

// clampStarts reads scalar start indices and moves them so that a part of that shape fits.
func (c *call) clampStarts(starts []*ir.Tensor, part, shape []int64) ([]int64, error) {
	at := make([]int64, len(starts))
	for i, s := range starts {
		if part[i] > shape[i] {
			return nil, c.fail("a part of size %d does not fit dim %d of size %d", part[i], i, shape[i])
		}
		at[i] = clampIndex(indices(s)[0], shape[i]-part[i])
	}
	return at, nil
}

func clampIndex(i, limit int64) int64 { return max(0, min(i, limit)) }

func dynamicSlice(c *call) (*ir.Tensor, error) {
	x, out := c.in[0], c.result(0)
	at, err := c.clampStarts(c.in[1:], out.Shape, x.Shape)
	if err != nil {
		return nil, err
	}
	from := whole(x)
	for i, s := range at {
		from.offset += s * from.strides[i]
	}
	copyElements(out.Shape, x.DType.Size(), whole(out), from)
	return out, nil
}

func dynamicUpdateSlice(c *call) (*ir.Tensor, error) {
	x, update, out := c.in[0], c.in[1], c.result(0)
	at, err := c.clampStarts(c.in[2:], update.Shape, x.Shape)
	if err != nil {
		return nil, err
	}
	copy(out.Data, x.Data)
	to := whole(out)
	for i, s := range at {
		to.offset += s * to.strides[i]
	}
	copyElements(update.Shape, x.DType.Size(), to, whole(update))
	return out, nil
}

// pad fills the result with the value and copies the elements that stay.
func pad(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.PadAttrs)
	x, value, out := c.in[0], c.in[1], c.result(0)
	low, err := c.evalDims(c.op, a.Low)
	if err != nil {
		return nil, err
	}
	size := x.DType.Size()
	for i := 0; i < len(out.Data); i += size {
		copy(out.Data[i:], value.Data)
	}
	from, to := whole(x), whole(out)
	kept := slices.Clone(x.Shape)
	for i, d := range x.Shape {
		step := a.Interior[i] + 1
		// Elements first..last of the dim land inside the result.
		first := max(0, ceilDiv(-low[i], step))
		last := min(d-1, floorDiv(out.Shape[i]-1-low[i], step))
		kept[i] = max(0, last-first+1)
		from.offset += first * from.strides[i]
		to.offset += (low[i] + first*step) * to.strides[i]
		to.strides[i] *= step
	}
	copyElements(kept, size, to, from)
	return out, nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

func concatenate(c *call) (*ir.Tensor, error) {
	axis := c.op.Attrs.(*ir.AxisAttrs).Axis
	out := c.result(0)
	to := whole(out)
	for _, x := range c.in {
		copyElements(x.Shape, x.DType.Size(), to, whole(x))
		to.offset += x.Shape[axis] * to.strides[axis]
	}
	return out, nil
}

func reverse(c *call) (*ir.Tensor, error) {
	x, out := c.in[0], c.result(0)
	from := whole(x)
	for _, axis := range c.op.Attrs.(*ir.AxesAttrs).Axes {
		from.offset += max(0, x.Shape[axis]-1) * from.strides[axis]
		from.strides[axis] *= -1
	}
	copyElements(out.Shape, x.DType.Size(), whole(out), from)
	return out, nil
}

func selectOp(c *call) (*ir.Tensor, error) {
	p, x, y, out := c.in[0], c.in[1], c.in[2], c.result(0)
	size := int64(x.DType.Size())
	for i, v := range p.Data {
		from := y
		if v != 0 {
			from = x
		}
		at := int64(i) * size
		copy(out.Data[at:at+size], from.Data[at:])
	}
	return out, nil
}

// gather copies one slice for each index vector.
func gather(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.GatherAttrs)
	x, starts, out := c.in[0], c.in[1], c.result(0)
	sizes, err := c.evalDims(c.op, a.SliceSizes)
	if err != nil {
		return nil, err
	}
	for d, n := range sizes {
		if n < 0 || n > x.Shape[d] {
			return nil, c.fail("a slice of size %d does not fit dim %d of %s", n, d, x.Type())
		}
	}
	to, from := whole(out), whole(x)
	var window, fromStrides, toStrides, batchShape, batchStrides []int64
	for d := range x.Shape {
		if !slices.Contains(a.CollapsedSliceDims, d) && !slices.Contains(a.OperandBatchingDims, d) {
			window = append(window, sizes[d])
			fromStrides = append(fromStrides, from.strides[d])
		}
	}
	for d := range out.Shape {
		if slices.Contains(a.OffsetDims, d) {
			toStrides = append(toStrides, to.strides[d])
		} else {
			batchShape = append(batchShape, out.Shape[d])
			batchStrides = append(batchStrides, to.strides[d])
		}
	}
	ix := newIndexVectors(starts, a.IndexVectorDim, a.StartIndicesBatchingDims)
	odometer(batchShape, func(at []int64) {
		offset := int64(0)
		for i, d := range a.StartIndexMap {
			offset += clampIndex(ix.values[at[1]+int64(i)*ix.step], x.Shape[d]-sizes[d]) * from.strides[d]
		}
		// A batching dim of the operand moves with that of the indices.
		for i, d := range a.OperandBatchingDims {
			offset += at[2+i] * from.strides[d]
		}
		copyElements(window, x.DType.Size(), view{out.Data, at[0], toStrides}, view{x.Data, offset, fromStrides})
	}, slices.Concat([][]int64{batchStrides, ix.strides}, ix.batching)...)
	return out, nil
}

// indexVectors are the index vectors of a gather or scatter, with strides over the dims of the
// indices other than the vectors' own.
type indexVectors struct {
	values   []int64
	step     int64     // between the numbers of a vector
	shape    []int64   // without the vectors' dim
	strides  []int64   // lead to the first number of a vector
	batching [][]int64 // for each batching dim, strides that lead to the index along it
}

func newIndexVectors(t *ir.Tensor, vectorDim int, batching []int) indexVectors {
	ix := indexVectors{values: indices(t)}
	where := make([]int, len(t.Shape)) // dims without the vectors' own
	for d, s := range rowMajor(t.Shape) {
		if d == vectorDim {
			ix.step = s
			continue
		}
		where[d] = len(ix.shape)
		ix.shape = append(ix.shape, t.Shape[d])
		ix.strides = append(ix.strides, s)
	}
	for _, d := range batching {
		unit := make([]int64, len(ix.shape))
		if d != vectorDim {
			unit[where[d]] = 1
		}
		ix.batching = append(ix.batching, unit)
	}
	return ix
}
