package weights

import (
	"io"
	"unsafe"

	"weft/ir"
	"weft/ir/diag"
)

// Named is a tensor with its name, in files that keep an order.
type Named struct {
	Name   string
	Tensor *ir.Tensor
}

// FromTensors makes a source of tensors in memory.
func FromTensors(tensors []Named) (Source, error) {
	regions := make([]Region, len(tensors))
	for i, t := range tensors {
		regions[i] = Region{Name: t.Name, DType: t.Tensor.DType, Shape: t.Tensor.Shape, Data: t.Tensor.Data}
		if size, err := ByteSize(t.Tensor.DType, t.Tensor.Shape); err != nil {
			return nil, inPlace(err, quote(t.Name))
		} else if size != int64(len(t.Tensor.Data)) {
			return nil, diag.Errorf(diag.WeightStorage, quote(t.Name), "%d bytes of data for %s, which takes %d", len(t.Tensor.Data), t.Tensor.Type(), size)
		}
	}
	return FromRegions(regions)
}

// Region is a tensor inside a storage, as torch saves them: a view with strides and an offset.
// Data is the whole storage, usually a view of a mapping.
type Region struct {
	Name    string
	DType   ir.DType
	Shape   []int64
	Data    []byte
	Strides []int64 // in elements, one a dim, 0 for expanded dims; nil for row-major
	Offset  int64   // in elements
}

// FromRegions makes a source of regions in their order; closers are closed with it. Regions
// that read the same memory in the same way are marked as the same weight.
func FromRegions(regions []Region, closers ...io.Closer) (Source, error) {
	entries := make([]Entry, len(regions))
	first := map[regionKey]string{}
	for i, r := range regions {
		reader, err := r.reader()
		if err != nil {
			return nil, inPlace(err, quote(r.Name))
		}
		entries[i] = Entry{Info: Info{Name: r.Name, DType: r.DType, Shape: r.Shape}, Open: func() (Reader, error) { return reader, nil }}
		if reader.Size() == 0 {
			continue
		}
		key := regionKey{unsafe.SliceData(r.Data), r.Offset, r.DType, dimsKey(r.Shape), dimsKey(rowMajorUnless(r.Strides, r.Shape))}
		if name, seen := first[key]; seen {
			entries[i].SameAs = name
		} else {
			first[key] = r.Name
		}
	}
	return NewSource(entries, closers...)
}

type regionKey struct {
	data           *byte
	offset         int64
	dtype          ir.DType
	shape, strides string
}

func rowMajorUnless(strides, shape []int64) []int64 {
	if strides != nil {
		return strides
	}
	strides = make([]int64, len(shape))
	step := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= shape[i]
	}
	return strides
}

// reader checks the region against its storage and makes the reader of its contents.
func (r Region) reader() (Reader, error) {
	size, err := ByteSize(r.DType, r.Shape)
	if err != nil {
		return nil, err
	}
	if r.Strides != nil && len(r.Strides) != len(r.Shape) {
		return nil, diag.Errorf(diag.WeightStorage, "", "%d strides for %d dims", len(r.Strides), len(r.Shape))
	}
	if size == 0 {
		return bytesReader(nil), nil
	}
	run, outer := r.collapse()
	bitsPer := int64(r.DType.Bits())
	if len(outer) == 0 {
		start, ok := mulCheck(r.Offset, bitsPer)
		if !ok || start%8 != 0 || checkRange(start/8, size, int64(len(r.Data))) != nil {
			return nil, r.outside()
		}
		return bytesReader(r.Data[start/8 : start/8+size : start/8+size]), nil
	}
	if bitsPer%8 != 0 {
		return nil, diag.Errorf(diag.WeightStorage, "", "a strided view of %s, whose elements are smaller than a byte", r.DType)
	}
	last, ok := r.Offset, r.Offset >= 0
	for _, d := range append([]stridedDim{{run, 1}}, outer...) {
		reach, fits := mulCheck(d.size-1, d.stride)
		ok = ok && fits && reach <= int64(len(r.Data)) // keeps the sum small
		if ok {
			last += reach
			ok = last <= int64(len(r.Data))
		}
	}
	if !ok || last >= int64(len(r.Data))/(bitsPer/8) {
		return nil, r.outside()
	}
	if size > int64(len(r.Data)) && size > maxExpanded {
		return nil, diag.Errorf(diag.WeightStorage, "", "%s expands %d bytes of storage to %d", r.typ(), len(r.Data), size)
	}
	return &stridedReader{data: r.Data, element: bitsPer / 8, offset: r.Offset, run: run, outer: outer, size: size}, nil
}

// maxExpanded bounds a tensor that is larger than its storage, by strides of 0.
const maxExpanded = 1 << 30

func (r Region) typ() ir.Type { return ir.TensorOf(r.DType, ir.Consts(r.Shape...)...) }

func (r Region) outside() error {
	return diag.Errorf(diag.WeightStorage, "", "%s with strides %v at element %d reaches outside its storage of %d bytes",
		r.typ(), r.Strides, r.Offset, len(r.Data))
}

// collapse splits the dims into the trailing elements that are contiguous, run of them, and
// the outer dims, those of size 1 left out and neighbours merged where one continues the other.
func (r Region) collapse() (run int64, outer []stridedDim) {
	run = 1
	strides := rowMajorUnless(r.Strides, r.Shape)
	for i := len(r.Shape) - 1; i >= 0; i-- {
		d := stridedDim{r.Shape[i], strides[i]}
		switch last := len(outer) - 1; {
		case d.size == 1:
		case last < 0 && d.stride == run:
			run *= d.size
		case last >= 0 && d.stride > 0 && d.stride/outer[last].size == outer[last].stride && d.stride%outer[last].size == 0:
			outer[last].size *= d.size
		default:
			outer = append(outer, d)
		}
	}
	return run, outer
}

type stridedDim struct{ size, stride int64 }

// stridedReader gives the row-major contents of a strided view.
type stridedReader struct {
	data    []byte
	element int64 // bytes
	offset  int64 // elements
	run     int64 // contiguous elements
	outer   []stridedDim
	size    int64 // bytes
}

func (s *stridedReader) Size() int64 { return s.size }

func (s *stridedReader) View(off, n int64) ([]byte, error) { return copiedView(s, off, n) }

func (s *stridedReader) ReadAt(p []byte, off int64) (int, error) {
	if err := checkRange(off, 0, s.size); err != nil {
		return 0, err
	}
	want := min(int64(len(p)), s.size-off)
	runBytes := s.run * s.element
	counter := make([]int64, len(s.outer)) // of the outer dims, innermost first
	at := s.offset
	for i, rest := 0, off/runBytes; i < len(counter); i++ {
		counter[i] = rest % s.outer[i].size
		rest /= s.outer[i].size
		at += counter[i] * s.outer[i].stride
	}
	skip := off % runBytes
	for done := int64(0); done < want; skip = 0 {
		from := at*s.element + skip
		done += int64(copy(p[done:want], s.data[from:from+runBytes-skip]))
		for i := range counter { // the next run
			counter[i]++
			at += s.outer[i].stride
			if counter[i] < s.outer[i].size {
				break
			}
			at -= counter[i] * s.outer[i].stride
			counter[i] = 0
		}
	}
	if want < int64(len(p)) {
		return int(want), io.EOF
	}
	return int(want), nil
}
