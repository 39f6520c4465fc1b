package ir

import "slices"

// Extent is a dim, or a factor of one, in memory: Size elements, Stride apart.
type Extent struct{ Size, Stride Dim }

// Strided is a value that is a view of a parameter of its region. Each dim is a list of extents, the last varying fastest: its element i
// has a place in each, and is as far from Offset as these places times their strides. Dims of size 1 have none, what was broadcast has
// stride 0, and no extent lies densely in the one before.
type Strided struct {
	Param  Value
	Offset Dim
	Dims   [][]Extent
}

// StridedOf follows a value of a region through transposes, reshapes, slices and broadcasts back to a parameter; false where
// something else is on the way.
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
		return Strided{Param: v, Dims: rowMajorExtents(shape)}, true
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
	from, dims := e.Type(op.Operands[0]).Shape, make([][]Extent, len(shape))
	switch a := op.Attrs.(type) {
	case *TransposeAttrs:
		for i, source := range a.Permutation {
			dims[i] = s.Dims[source]
		}
	case *SliceAttrs:
		for i, start := range a.Start {
			if dims[i] = s.Dims[i]; shape[i].Equal(from[i]) && a.Stride[i] == 1 {
				continue
			}
			if len(s.Dims[i]) != 1 {
				return Strided{}, false
			}
			x := s.Dims[i][0]
			s.Offset = s.Offset.Add(start.Mul(x.Stride))
			dims[i] = dense(Extent{shape[i], x.Stride.MulConst(a.Stride[i])})
		}
	case *BroadcastAttrs:
		for i, d := range shape {
			dims[i] = dense(Extent{Size: d})
		}
		for i, axis := range a.Axes {
			if from[i].Equal(shape[axis]) {
				dims[axis] = s.Dims[i]
			} else if !from[i].Is(1) {
				return Strided{}, false
			}
		}
	default:
		if dims, ok = regrouped(slices.Concat(s.Dims...), shape); !ok {
			return Strided{}, false
		}
	}
	s.Dims = dims
	return s, true
}

func rowMajorExtents(shape []Dim) [][]Extent {
	dims := make([][]Extent, len(shape))
	next := Const(1)
	for i, d := range slices.Backward(shape) {
		dims[i] = dense(Extent{d, next})
		next = next.Mul(d)
	}
	return dims
}

// dense leaves extents of size 1 out and joins those that lie one in the other.
func dense(extents ...Extent) []Extent {
	var out []Extent
	for _, x := range extents {
		last := len(out) - 1
		switch {
		case x.Size.Is(1):
		case last >= 0 && out[last].Stride.Equal(x.Stride.Mul(x.Size)):
			out[last] = Extent{out[last].Size.Mul(x.Size), x.Stride}
		default:
			out = append(out, x)
		}
	}
	return out
}

// regrouped divides the extents of one shape, the last varying fastest, among the dims of another, by cutting some in two.
func regrouped(extents []Extent, shape []Dim) ([][]Extent, bool) {
	dims := make([][]Extent, len(shape))
	for i, d := range slices.Backward(shape) {
		var mine []Extent
		for !d.Is(1) {
			last := len(extents) - 1
			if last < 0 {
				return nil, false
			}
			x := extents[last]
			if rest, ok := d.DivExact(x.Size); ok {
				mine, extents, d = append(mine, x), extents[:last], rest
			} else if rest, ok := x.Size.DivExact(d); ok {
				mine = append(mine, Extent{d, x.Stride})
				extents = append(slices.Clone(extents[:last]), Extent{rest, x.Stride.Mul(d)})
				d = Const(1)
			} else {
				return nil, false
			}
		}
		slices.Reverse(mine)
		dims[i] = dense(mine...)
	}
	return dims, len(extents) == 0
}

// Matrix is an operand of a dot_general in memory: for each batch index, rows that the product keeps, and what it sums over.
type Matrix struct {
	Param   Value
	Offset  Dim
	Rows, K []Extent
	Batch   [][]Extent // by batch dim
}

// MatrixOf describes operand i (0 or 1) of a dot_general of a region; false where it is no view of a parameter.
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
	m := Matrix{Param: s.Param, Offset: s.Offset}
	var rows, k []Extent
	for d, extents := range s.Dims {
		if !slices.Contains(batch, d) && !slices.Contains(contract, d) {
			rows = append(rows, extents...)
		}
	}
	for _, d := range contract {
		k = append(k, s.Dims[d]...)
	}
	for _, d := range batch {
		m.Batch = append(m.Batch, s.Dims[d])
	}
	m.Rows, m.K = dense(rows...), dense(k...)
	return m, true
}

// AlongK tells whether neighbours in what is summed over are adjacent in memory.
func (m Matrix) AlongK() bool { return len(m.K) > 0 && m.K[len(m.K)-1].Stride.Is(1) }

// bulkDepth is the number of elements of what a product sums over that bulk copies bring at a time.
const bulkDepth = 64

// mapDims is the number of dims that a tensor map has room for.
const mapDims = 5

// CopiesInBulk tells whether bulk copies (TMA) can bring the operands of a region's product or attention of half types to shared memory: both
// of a dot_general, or keys and values. They must be matrices in memory whose start and distances are multiples of 16 bytes; what a product
// sums over must not be empty, and where it lies in several places, each must have a multiple of bulkDepth.
func CopiesInBulk(p *Program, e *Entry, region *Block) bool {
	at := slices.IndexFunc(region.Ops, func(op *Op) bool { return op.Kind == OpDotGeneral || op.Kind == OpAttention })
	if at < 0 || e.Type(region.Ops[at].Operands[0]).DType.Size() != 2 {
		return false
	}
	op := region.Ops[at]
	for i := range 2 {
		var inner []Extent // rows, and what is adjacent
		var outer [][]Extent
		var offset Dim
		if op.Kind == OpAttention {
			s, ok := StridedOf(e, region, op.Operands[1+i])
			if !ok || len(s.Dims[2]) != 1 || len(s.Dims[3]) != 1 {
				return false
			}
			inner, outer, offset = []Extent{s.Dims[2][0], s.Dims[3][0]}, s.Dims[:2], s.Offset
		} else {
			m, ok := MatrixOf(e, region, op, i)
			if !ok || len(m.Rows) != 1 || len(m.K) == 0 {
				return false
			}
			last := len(m.K) - 1
			if Product(Sizes(m.K)).Bounds(p.Range).Min < 1 || last > 0 && !m.K[last].Size.DivisibleBy(bulkDepth, p.Divisor) {
				return false
			}
			inner, outer, offset = []Extent{m.Rows[0], m.K[last]}, append([][]Extent{m.K[:last]}, m.Batch...), m.Offset
			if !m.AlongK() {
				slices.Reverse(inner)
			}
		}
		if !inner[1].Stride.Is(1) || inner[0].Stride.Is(0) || !fitsMap(p, offset, inner[0], slices.Concat(outer...)) {
			return false
		}
	}
	return true
}

// fitsMap tells whether a tensor map describes rows and what lies around them.
func fitsMap(p *Program, offset Dim, rows Extent, outer []Extent) bool {
	apart := apartOf(outer)
	for _, x := range append(apart, rows, Extent{Stride: offset}) {
		if !x.Stride.DivisibleBy(8, p.Divisor) {
			return false
		}
	}
	return len(apart)+2 <= mapDims
}

// apartOf are the extents that lie in several places: not what was broadcast.
func apartOf(extents []Extent) []Extent {
	return slices.DeleteFunc(slices.Clone(extents), func(x Extent) bool { return x.Stride.Is(0) })
}

// Sizes are those of extents.
func Sizes(extents []Extent) []Dim {
	out := make([]Dim, len(extents))
	for i, x := range extents {
		out[i] = x.Size
	}
	return out
}
