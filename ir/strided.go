package ir

import "slices"

// Strided is a value that is a view of a parameter of its region: its element i0, i1, ... is the parameter's element
// Offset + i0*Strides[0] + i1*Strides[1] + ...
type Strided struct {
	Param   Value
	Offset  Dim
	Strides []Dim // by dim; 0 where it was broadcast
}

// StridedOf follows a value of a region through transposes, reshapes, slices and broadcasts back to a parameter; false where
// something else is on the way, or a reshape joins dims that are apart in memory.
func StridedOf(e *Entry, region *Block, v Value) (Strided, bool) {
	defs := map[Value]*Op{}
	for _, op := range region.Ops {
		for _, r := range op.Results {
			defs[r] = op
		}
	}
	return stridedOf(e, defs, v)
}

func stridedOf(e *Entry, defs map[Value]*Op, v Value) (Strided, bool) {
	shape := e.Type(v).Shape
	op, ok := defs[v]
	if !ok {
		return Strided{Param: v, Strides: rowMajorStrides(shape)}, true
	}
	switch op.Kind {
	case OpTranspose, OpReshape, OpSlice, OpBroadcastInDim:
	default:
		return Strided{}, false
	}
	s, ok := stridedOf(e, defs, op.Operands[0])
	if !ok {
		return Strided{}, false
	}
	strides := make([]Dim, len(shape))
	switch a := op.Attrs.(type) {
	case *TransposeAttrs:
		for i, from := range a.Permutation {
			strides[i] = s.Strides[from]
		}
	case *SliceAttrs:
		for i, start := range a.Start {
			s.Offset = s.Offset.Add(start.Mul(s.Strides[i]))
			strides[i] = s.Strides[i].MulConst(a.Stride[i])
		}
	case *BroadcastAttrs:
		from := e.Type(op.Operands[0]).Shape
		for i, axis := range a.Axes {
			if from[i].Equal(shape[axis]) {
				strides[axis] = s.Strides[i]
			} else if !from[i].Is(1) {
				return Strided{}, false
			}
		}
	default:
		if strides, ok = reshapedStrides(e.Type(op.Operands[0]).Shape, s.Strides, shape); !ok {
			return Strided{}, false
		}
	}
	s.Strides = strides
	return s, true
}

// rowMajorStrides are the distances of neighbours along each dim of a dense tensor.
func rowMajorStrides(shape []Dim) []Dim {
	strides := make([]Dim, len(shape))
	next := Const(1)
	for i, d := range slices.Backward(shape) {
		strides[i] = next
		next = next.Mul(d)
	}
	return strides
}

// reshapedStrides gives the strides of a view of another shape: each run of dims that lie densely, one in the other, is divided
// anew. Dims of size 1 get any stride.
func reshapedStrides(from, strides, to []Dim) ([]Dim, bool) {
	out := slices.Repeat([]Dim{Const(1)}, len(to))
	j := len(to) - 1
	for i := len(from) - 1; i >= 0; {
		if from[i].Is(1) {
			i--
			continue
		}
		size, stride := from[i], strides[i]
		for i--; i >= 0 && (from[i].Is(1) || strides[i].Equal(stride.Mul(size))); i-- {
			size = size.Mul(from[i])
		}
		covered := Const(1)
		for ; j >= 0 && !covered.Equal(size); j-- {
			out[j] = stride.Mul(covered)
			covered = covered.Mul(to[j])
		}
		if !covered.Equal(size) {
			return nil, false
		}
	}
	for ; j >= 0; j-- {
		if !to[j].Is(1) {
			return nil, false
		}
	}
	return out, true
}

// Matrix is an operand of a dot_general in memory: for each batch index, rows that the product keeps, and what it sums over.
type Matrix struct {
	Strided
	AlongK bool  // neighbours in what is summed over are adjacent in memory, else neighbouring rows
	Rows   Dim   // number of rows
	K      Dim   // elements that are summed over
	Pitch  Dim   // elements from one row to the next, or from one element of K to the next where rows are adjacent
	Batch  []Dim // elements from one batch index to the next, by batch dim; 0 where all read the same
}

// MatrixOf describes operand i (0 or 1) of a dot_general of a region; false where it is no view of a parameter that one stride for rows
// and one for sums describe, one of them 1.
func MatrixOf(e *Entry, region *Block, dot *Op, i int) (Matrix, bool) {
	a := dot.Attrs.(*DotAttrs)
	batch, contract := a.LhsBatch, a.LhsContract
	if i == 1 {
		batch, contract = a.RhsBatch, a.RhsContract
	}
	s, ok := StridedOf(e, region, dot.Operands[i])
	if !ok {
		return Matrix{}, false
	}
	m := Matrix{Strided: s, Rows: Const(1)}
	shape := e.Type(dot.Operands[i]).Shape
	var free []int
	for d := range shape {
		if !slices.Contains(batch, d) && !slices.Contains(contract, d) {
			free = append(free, d)
		}
	}
	rows, rowStride, ok1 := joined(shape, s.Strides, free)
	k, kStride, ok2 := joined(shape, s.Strides, contract)
	if !ok1 || !ok2 {
		return Matrix{}, false
	}
	m.Rows, m.K = rows, k
	switch {
	case kStride.Is(1):
		m.AlongK, m.Pitch = true, rowStride
	case rowStride.Is(1):
		m.Pitch = kStride
	default:
		return Matrix{}, false
	}
	for _, d := range batch {
		stride := s.Strides[d]
		if shape[d].Is(1) {
			stride = Const(0)
		}
		m.Batch = append(m.Batch, stride)
	}
	return m, true
}

// joined sees dims as one: its size and stride; false where they do not lie one in the other. A dim of size 1 has stride 0.
func joined(shape, strides []Dim, dims []int) (size, stride Dim, ok bool) {
	size, stride = Const(1), Const(0)
	for _, d := range slices.Backward(dims) {
		switch {
		case shape[d].Is(1):
			continue
		case size.Is(1):
			stride = strides[d]
		case !strides[d].Equal(stride.Mul(size)):
			return Dim{}, Dim{}, false
		}
		size = size.Mul(shape[d])
	}
	return size, stride, true
}

// bulkBatches is the number of batch dims that a tensor map has room for beside the two dims of a matrix.
const bulkBatches = 3

// CopiesInBulk tells whether bulk copies (TMA) can bring the operands of a region's product or attention of half types to shared memory: both
// of a dot_general, or keys and values. They must be matrices in memory whose start and distances are multiples of 16 bytes; what a product
// sums over must not be empty.
func CopiesInBulk(p *Program, e *Entry, region *Block) bool {
	at := slices.IndexFunc(region.Ops, func(op *Op) bool { return op.Kind == OpDotGeneral || op.Kind == OpAttention })
	if at < 0 || e.Type(region.Ops[at].Operands[0]).DType.Size() != 2 {
		return false
	}
	op := region.Ops[at]
	sixteen := func(distances ...Dim) bool {
		return !slices.ContainsFunc(distances, func(d Dim) bool { return !d.DivisibleBy(8, p.Divisor) })
	}
	for i := range 2 {
		if op.Kind == OpAttention {
			s, ok := StridedOf(e, region, op.Operands[1+i])
			if !ok || !s.Strides[3].Is(1) || s.Strides[2].Is(0) || !sixteen(append(s.Strides[:3:3], s.Offset)...) {
				return false
			}
			continue
		}
		m, ok := MatrixOf(e, region, op, i)
		if !ok || m.Pitch.Is(0) || m.K.Bounds(p.Range).Min < 1 {
			return false
		}
		apart := slices.DeleteFunc(slices.Clone(m.Batch), func(d Dim) bool { return d.Is(0) })
		if len(apart) > bulkBatches || !sixteen(append(apart, m.Offset, m.Pitch)...) {
			return false
		}
	}
	return true
}
