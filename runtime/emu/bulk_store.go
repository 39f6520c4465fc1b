package emu

import (
	"fmt"
	"math/bits"
	"slices"

	"weft/codegen/ptx"
	"weft/runtime"
)

// Copies of boxes from shared memory. The bytes move when the copy starts, and what it reads is
// watched as what products of warpgroups read: it must not be written until the thread that started
// the copy has waited, and by others before a barrier after that; and what a warp wrote is seen
// only after its fence.proxy.async. A block that exits before has given its memory away.

// boxStore is a copy from shared memory.
type boxStore struct {
	in     *instruction
	warp   *warp
	lane   int
	place  uint64
	size   uint64
	group  uint32
	waited bool
}

// tensorStore decodes cp.async.bulk.tensor from shared memory: [map, {coordinates}], [from].
func (d *decoder) tensorStore(in *instruction, rank int) error {
	d.k.proxy = true
	if err := d.operands(2); err != nil {
		return err
	}
	var pointer int32
	var coordinates []int32
	if err := d.tensorOperand(&d.in.Operands[0], rank, &pointer, &coordinates); err != nil {
		return err
	}
	in.access = d.plainAccess(ptx.Shared, chunkBytes)
	if err := d.addressOperand(in.access, &d.in.Operands[1]); err != nil {
		return err
	}
	in.extra.run = func(w *worker, wp *warp, in *instruction, mask uint32) *Fault {
		for lanes := mask; lanes != 0; lanes &= lanes - 1 {
			lane := bits.TrailingZeros32(lanes)
			t, at, fault := w.box(wp, in, lane, rank, pointer, coordinates)
			if fault == nil {
				fault = w.startStore(wp, in, lane, t, at)
			}
			if fault != nil {
				return fault
			}
		}
		return nil
	}
	return nil
}

// startStore checks and moves a box.
func (w *worker) startStore(wp *warp, in *instruction, lane int, t *tensorMap, at [5]int64) *Fault {
	place, size := w.laneAddress(wp, in.access, lane)-w.shared.base, uint64(t.size)
	switch {
	case t.access&runtime.Write == 0:
		fault := w.fault(AccessDenied, wp, lane, in, "writes the tensor of argument %d, which the launch declares as %s", t.argument, accessName(t.access))
		fault.Argument = t.argument
		return fault
	case place+size > uint64(len(w.shared.data)) || place+size < size:
		return w.fault(OutOfBounds, wp, lane, in, "%d bytes at offset %d of shared memory, which has %d", size, int64(place), len(w.shared.data))
	case place%t.alignment() != 0:
		return w.fault(Misaligned, wp, lane, in, "offset %d of shared memory: a box with this swizzle is aligned to %d bytes", place, t.alignment())
	}
	w.chunks = w.chunks[:0]
	for chunk := place; chunk < place+size; chunk += chunkBytes {
		w.chunks = append(w.chunks, uint32(chunk))
	}
	if fault := w.checkChunks(wp, in); fault != nil {
		fault.Thread = w.threadAt(wp.index*warpSize + lane)
		return fault
	}
	flip := t.swizzleBits()
	var row [maxBoxRow]byte
	t.rows(at, func(line, from, size, target int64) {
		if size == 0 {
			return
		}
		for i := int64(0); i < t.inner; i += chunkBytes {
			at := uint32(int64(place) + line + i)
			copy(row[i:i+chunkBytes], w.shared.data[at^at>>3&flip:])
		}
		copy(t.data[target:target+size], row[from:])
		t.init.set(t.start+target, t.start+target+size)
	})
	w.stores = append(w.stores, &boxStore{in: in, warp: wp, lane: lane, place: place, size: size, group: wp.storeGroups[lane]})
	w.reads++
	for _, chunk := range w.chunks {
		w.readers[chunk/chunkBytes]++
	}
	return nil
}

// commitStores closes the group of each thread's stores.
func (w *worker) commitStores(wp *warp, _ *instruction, mask uint32) *Fault {
	for ; mask != 0; mask &= mask - 1 {
		wp.storeGroups[bits.TrailingZeros32(mask)]++
	}
	return nil
}

// waitStores ends the stores of all groups but the youngest.
func (w *worker) waitStores(wp *warp, in *instruction, mask uint32) *Fault {
	for _, s := range w.stores {
		if s.warp == wp && mask>>s.lane&1 != 0 && uint64(s.group)+in.imm < uint64(wp.storeGroups[s.lane]) {
			s.waited = true
		}
	}
	return nil
}

// releaseStores lets everybody write what stores read that the warp has waited for.
func (w *worker) releaseStores(wp *warp) {
	w.stores = slices.DeleteFunc(w.stores, func(s *boxStore) bool {
		if s.warp != wp || !s.waited {
			return false
		}
		for chunk := s.place; chunk < s.place+s.size; chunk += chunkBytes {
			w.readers[chunk/chunkBytes]--
		}
		w.reads--
		return true
	})
}

// storeOf finds a store that may still read what a warp writes.
func (w *worker) storeOf(wp *warp, at uint64) *boxStore {
	for _, s := range w.stores {
		if at&^(chunkBytes-1) >= s.place && at < s.place+s.size && !(s.waited && s.warp == wp) {
			return s
		}
	}
	return nil
}

// describe says which store may still read.
func (w *worker) describeStore(s *boxStore) string {
	why := "that thread has not waited for it"
	if s.waited {
		why = "that thread has waited for it, but there was no barrier since"
	}
	return fmt.Sprintf("the copy that thread %s started at line %d (%s) may still read; %s", coordinates(w.threadAt(s.warp.index*warpSize+s.lane)), s.in.source.Line, s.in.source.Text, why)
}

// checkStores reports a store that no thread has waited for when the block exits.
func (w *worker) checkStores() *Fault {
	for _, s := range w.stores {
		if !s.waited {
			return w.fault(InFlight, s.warp, s.lane, s.in, "the block exits while the copy may still read its shared memory: that thread has not waited for it")
		}
	}
	return nil
}
