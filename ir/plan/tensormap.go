package plan

import (
	"errors"
	"fmt"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// TensorMap describes a tensor in a buffer to the tensor memory accelerator of sm_90 and later,
// which copies boxes of it to shared memory. Dims, Strides and Box count from the innermost
// dimension on. What of a box lies outside of the tensor reads as zeros. Tensor maps are the last
// arguments of a launch.
type TensorMap struct {
	DType   string   `json:"dtype"`
	Offset  ir.Dim   `json:"offset,omitzero"`   // bytes from the buffer's start to the first element
	Dims    []ir.Dim `json:"dims"`              // elements; 1 to 5 of them
	Strides []ir.Dim `json:"strides,omitempty"` // bytes, of all dimensions but the innermost
	Box     []int    `json:"box"`               // elements that one instruction moves, each 1 to 256
	Swizzle int      `json:"swizzle,omitempty"` // bytes of the span that is mixed in shared memory: 0, 32, 64 or 128
}

// Limits of tensor maps, which are the CUDA driver's, but for dims: it takes 2³² elements.
const (
	MaxMapRank   = 5
	MaxMapDim    = 1 << 31   // elements: coordinates are signed, of 32 bits
	MaxMapStride = 1<<40 - 1 // bytes
	MaxMapBox    = 256       // elements, of each dimension
	MapAlignment = 16        // bytes, of addresses, strides and the innermost extent of a box
)

// elementSize is the bytes of an element; 0 for a type that tensor maps do not have.
func (m *TensorMap) elementSize() int64 {
	dtype, ok := ir.ParseDType(m.DType)
	if !ok || dtype.IsComplex() || dtype.Bits()%8 != 0 {
		return 0
	}
	return int64(dtype.Size())
}

// Visit visits the expressions of the map.
func (m *TensorMap) Visit(visit func(ir.Dim)) {
	visit(m.Offset)
	for _, list := range [][]ir.Dim{m.Dims, m.Strides} {
		for _, d := range list {
			visit(d)
		}
	}
}

// tensorMaps checks P21, P22 and P23.
func (v *verifier) tensorMaps(place string, l *Launch) {
	written := map[int]bool{}
	for _, a := range l.Args {
		written[a.Buffer] = written[a.Buffer] || a.Access != Read
	}
	before := -1 // the tensor map before
	for k, a := range l.Args {
		m := a.Map
		if m == nil {
			if before >= 0 {
				v.fail(21, place, "argument %d comes after argument %d, a tensor map", k, before)
			}
			continue
		}
		before = k
		if a.Buffer < 0 || a.Buffer >= len(v.p.Buffers) {
			continue // P6
		}
		if written[a.Buffer] {
			v.fail(21, place, "argument %d is a tensor map of buffer %d, which the launch writes", k, a.Buffer)
		}
		faults := len(v.faults)
		m.Visit(func(d ir.Dim) { v.declared(place, d) })
		v.mapForm(place, k, m)
		if len(v.faults) == faults {
			v.inside(place, k, l, a)
		}
	}
}

// mapForm checks what can be said of argument k without sizes: P21 and P22.
func (v *verifier) mapForm(place string, k int, m *TensorMap) {
	rank, size := len(m.Dims), m.elementSize()
	if size == 0 || rank < 1 || rank > MaxMapRank || len(m.Strides) != rank-1 || len(m.Box) != rank {
		v.fail(21, place, "argument %d is a tensor map of %.40q with %d dims, %d strides and a box of %d", k, m.DType, rank, len(m.Strides), len(m.Box))
		return
	}
	for i, n := range m.Box {
		if n < 1 || n > MaxMapBox {
			v.fail(21, place, "argument %d is a tensor map with a box of %d elements in dimension %d: 1 to %d are possible", k, n, i, MaxMapBox)
			return
		}
	}
	inner := int64(m.Box[0]) * size
	switch swizzle := int64(m.Swizzle); {
	case swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128:
		v.fail(21, place, "argument %d is a tensor map with a swizzle of %d bytes: 0, 32, 64 and 128 are possible", k, swizzle)
	case inner%MapAlignment != 0 || swizzle > 0 && inner != swizzle:
		v.fail(22, place, "argument %d is a tensor map with a box of %d bytes in dimension 0, which are no multiple of %d, or not its swizzle of %d", k, inner, MapAlignment, swizzle)
	}
	for _, d := range append([]ir.Dim{m.Offset}, m.Strides...) {
		if !d.DivisibleBy(MapAlignment, v.divisor) {
			v.fail(22, place, "argument %d is a tensor map with an offset or stride of %s bytes, which may be no multiple of %d", k, d, MapAlignment)
		}
	}
}

// inside checks P23 of argument k.
func (v *verifier) inside(place string, k int, l *Launch, a Arg) {
	for _, about := range []int64{1, 4096} {
		b := &Bound{Plan: v.p, Dims: map[string]int64{}}
		for _, d := range v.p.Dims {
			size, ok := d.near(about)
			if !ok {
				return
			}
			b.Dims[d.Name] = size
		}
		size, err := b.size("", v.p.Buffers[a.Buffer].Size, 0, maxSize)
		if err != nil {
			continue
		}
		if empty, err := b.grid(&BoundStep{}, l); err != nil || empty {
			continue // it does not run
		}
		var d *diag.Diagnostic
		if _, err := b.tensorMap(place, a.Map, size); errors.As(err, &d) {
			v.fail(23, place, "argument %d: %s %s", k, d.Message, strings.Join(d.Notes, ", "))
			return
		}
	}
}

// near is a size that the dim can have, as close to one as its bounds allow; false where it has none.
func (d Dim) near(size int64) (int64, bool) {
	multiple := max(1, d.Multiple)
	size = max(size, d.Min)
	if d.Max != 0 {
		size = min(size, d.Max)
	}
	size -= size % multiple
	if size < d.Min {
		size += multiple
	}
	return size, size >= d.Min && (d.Max == 0 || size <= d.Max)
}

// BoundMap is what a tensor map evaluates to.
type BoundMap struct {
	Offset  int64    // bytes from the buffer's start to the first element; 0 for a tensor without elements
	Size    int64    // bytes from there to the buffer's end; 0 for a tensor without elements
	Dims    []uint64 // elements
	Strides []uint64 // bytes, of all dimensions but the innermost
}

// tensorMap evaluates a map of a buffer of a size.
func (b *Bound) tensorMap(what string, m *TensorMap, size int64) (*BoundMap, error) {
	to := &BoundMap{Dims: make([]uint64, len(m.Dims)), Strides: make([]uint64, len(m.Strides))}
	empty := false
	for i, d := range m.Dims {
		n, err := b.size(what, d, 0, MaxMapDim)
		if err != nil {
			return nil, err
		}
		to.Dims[i] = uint64(n)
		empty = empty || n == 0
	}
	if empty {
		return to, nil // nothing is read: strides and offset do not matter
	}
	offset, err := b.mapBytes(what, m.Offset, 0, size)
	if err != nil {
		return nil, err
	}
	rest := size - offset
	left := rest - int64(to.Dims[0])*m.elementSize()
	for i, d := range m.Strides {
		stride, err := b.mapBytes(what, d, MapAlignment, MaxMapStride)
		if err != nil {
			return nil, err
		}
		to.Strides[i] = uint64(stride)
		if steps := int64(to.Dims[i+1]) - 1; left < 0 || steps > left/stride {
			left = -1
		} else {
			left -= steps * stride
		}
	}
	if left < 0 {
		return nil, b.tooLarge(what, "a tensor map of %s leaves its buffer of %d bytes", m, size)
	}
	to.Offset, to.Size = offset, rest
	return to, nil
}

// mapBytes is size for what must be aligned.
func (b *Bound) mapBytes(what string, d ir.Dim, low, high int64) (int64, error) {
	v, err := b.size(what, d, low, high)
	if err == nil && v%MapAlignment != 0 {
		err = b.tooLarge(what, "%s = %d bytes is no multiple of %d", d, v, MapAlignment)
	}
	return v, err
}

// String prints type, offset, strides, box and swizzle, all from the innermost dimension on.
func (m *TensorMap) String() string {
	s := fmt.Sprintf("%s%s", m.DType, ir.DimList(m.Dims))
	if !m.Offset.IsZero() {
		s += fmt.Sprintf(" at %s", m.Offset)
	}
	if len(m.Strides) > 0 {
		s += " strides " + ir.DimList(m.Strides)
	}
	s += " box " + ir.DimList(ir.Consts(m.Box...))
	if m.Swizzle != 0 {
		s += fmt.Sprintf(" swizzle %d", m.Swizzle)
	}
	return s
}
