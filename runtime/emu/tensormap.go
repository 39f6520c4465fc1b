package emu

import (
	"math/bits"

	"weft/codegen/ptx"
	"weft/runtime"
)

// tensorMap is a tensor map argument: what the accelerator knows of a tensor.
type tensorMap struct {
	runtime.TensorMap
	*region
	inner int64 // bytes of a row of the box
	size  int64 // bytes of the box
}

// bindTensorMap checks a tensor map argument and finds its memory.
func (s *launchState) bindTensorMap(i int, arg runtime.Arg) error {
	if err := arg.CheckMap(); err != nil {
		return err
	}
	t := &tensorMap{TensorMap: *arg.Map, region: &region{base: arg.Bits, argument: i, access: arg.Access}}
	t.inner = int64(t.Box[0]) * int64(t.Type.Size())
	t.size = t.inner
	for _, n := range t.Box[1:] {
		t.size *= int64(n)
	}
	if extent := t.Extent(); extent > 0 {
		a, offset, err := s.device.memory.find(arg.Bits, extent)
		if err != nil {
			return err
		}
		t.data, t.init, t.start = a.data[offset:offset+extent], a.init, offset
	}
	if s.maps == nil {
		s.maps = make([]*tensorMap, len(s.kernel.parameters))
	}
	s.maps[i] = t
	return nil
}

// paramWindow is where the generic addresses of parameters begin. Only tensor maps are reached by them.
const paramWindow = 0x5000_0000_0000

// mapAt finds the tensor map that an address points to, nil if it is none.
func (s *launchState) mapAt(address uint64) *tensorMap {
	for i, t := range s.maps {
		if t != nil && address == paramWindow+uint64(s.kernel.parameters[i].offset) {
			return t
		}
	}
	return nil
}

// prefetch decodes prefetch; only what it wants of a tensor map can be wrong.
func (d *decoder) prefetch(in *instruction) error {
	in.op = opNothing
	if !d.in.Has("tensormap") {
		return nil
	}
	if err := d.operands(1); err != nil {
		return err
	}
	in.op, in.extra = opSpecial, &extra{run: func(w *worker, wp *warp, in *instruction, mask uint32) *Fault {
		var addresses lanes64
		w.addresses(wp, in.access, &addresses)
		for lanes := mask; lanes != 0; lanes &= lanes - 1 {
			if lane := bits.TrailingZeros32(lanes); w.mapAt(addresses[lane]) == nil {
				return w.noMap(wp, in, lane, addresses[lane])
			}
		}
		return nil
	}}
	in.access = d.plainAccess(ptx.Generic, 4)
	return d.addressOperand(in.access, &d.in.Operands[0])
}

func (w *worker) noMap(wp *warp, in *instruction, lane int, address uint64) *Fault {
	return w.fault(BadTensorMap, wp, lane, in, "0x%x is not the address of a parameter that is a tensor map", address)
}

// rows calls visit for each row of the box at coordinates: the place in the box, and which bytes of
// the row are in the tensor and where; none if size is 0.
func (t *tensorMap) rows(at [5]int64, visit func(place, from, size, source int64)) {
	element, first, last := int64(t.Type.Size()), max(at[0], 0), min(at[0]+int64(t.Box[0]), int64(t.Dims[0]))
	var index [5]int64
	for place := int64(0); place < t.size; place += t.inner {
		from, size, source := int64(0), int64(0), int64(0)
		if first < last {
			from, size, source = (first-at[0])*element, (last-first)*element, first*element
		}
		for i := 1; i < len(t.Dims); i++ {
			if n := at[i] + index[i]; n < 0 || n >= int64(t.Dims[i]) {
				size = 0
			} else if size > 0 {
				source += n * int64(t.Strides[i-1])
			}
		}
		visit(place, from, size, source)
		for i := 1; i < len(t.Dims); i++ {
			if index[i]++; index[i] < int64(t.Box[i]) {
				break
			}
			index[i] = 0
		}
	}
}

// swizzleBits are the bits of a place in shared memory that the three above them flip.
func (t *tensorMap) swizzleBits() uint32 {
	if span := uint32(t.Swizzle.Span()); span > 0 {
		return span - chunkBytes
	}
	return 0
}

// alignment is that of a box in shared memory: the length of the swizzle's pattern.
func (t *tensorMap) alignment() uint64 {
	return max(128, uint64(t.Swizzle.Span())*8)
}
