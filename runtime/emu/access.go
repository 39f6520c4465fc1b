package emu

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync/atomic"

	"weft/codegen/ptx"
	"weft/runtime"
)

// places is where the lanes of one access find their data: offsets into one region.
type places struct {
	region          *region
	offset          lanes64
	lowest, highest uint64 // of the offsets
}

// addresses computes the address of every lane as the program sees it.
func (w *worker) addresses(wp *warp, a *memoryAccess, out *lanes64) {
	switch {
	case a.base == noSlot:
		fill64(out, a.offset)
	case a.baseWide:
		base := &wp.r64[a.base]
		for i := range out {
			out[i] = base[i] + a.offset
		}
	default:
		base := &wp.r32[a.base]
		for i := range out {
			out[i] = uint64(base[i] + uint32(a.offset)) // 32-bit addresses wrap
		}
	}
}

// resolve finds the region of an access and the offset of every active lane in it, and checks
// bounds, alignment and permission. When lanes touch different regions it returns the mask of
// those in the region of the first lane; the caller comes back for the others.
func (w *worker) resolve(wp *warp, in *instruction, mask uint32, need runtime.Access, p *places) (uint32, *Fault) {
	a := in.access
	size := uint64(a.size * a.vector)
	first := bits.TrailingZeros32(mask)
	switch {
	case a.space == ptx.Shared:
		p.region = &w.shared
	case w.regionOf[a.index] >= 0:
		p.region = &w.regions[w.regionOf[a.index]]
	default:
		w.addresses(wp, a, &p.offset)
		if p.region = w.find(a.space, p.offset[first], size, need); p.region == nil {
			return 0, w.outside(wp, in, first, p.offset[first], size, need)
		}
	}
	r := p.region
	base := r.base
	if r == &w.shared && a.space == ptx.Generic {
		base += sharedWindow
	}
	// One comparison for all lanes: offsets below the region wrap around to huge ones.
	lowest, highest, all := ^uint64(0), uint64(0), uint64(0)
	if mask == warpFull && a.baseWide {
		shift, register := a.offset-base, &wp.r64[a.base]
		for i := range p.offset {
			offset := register[i] + shift
			p.offset[i] = offset
			all |= offset
			highest = max(highest, offset)
			lowest = min(lowest, offset)
		}
	} else {
		w.addresses(wp, a, &p.offset)
		for lanes := mask; lanes != 0; lanes &= lanes - 1 {
			i := bits.TrailingZeros32(lanes)
			p.offset[i] -= base
			all |= p.offset[i]
			highest = max(highest, p.offset[i])
			lowest = min(lowest, p.offset[i])
		}
	}
	p.lowest, p.highest = lowest, highest
	if base&(size-1) != 0 { // an argument that is itself not aligned
		all = 0
		for lanes := mask; lanes != 0; lanes &= lanes - 1 {
			all |= p.offset[bits.TrailingZeros32(lanes)] + base
		}
	}
	if highest+size > uint64(len(r.data)) || highest+size < size {
		return w.partly(wp, in, mask, need, p, base)
	}
	if all&(size-1) != 0 {
		return 0, w.misaligned(wp, in, mask, p, base)
	}
	if r.access&need == 0 && (need == runtime.Write || r.access&runtime.Discard == 0) {
		verb := "reads"
		if need == runtime.Write {
			verb = "writes"
		}
		f := w.memoryFault(AccessDenied, wp, first, in, p.offset[first]+base, r)
		f.Message = fmt.Sprintf("%s %s, which the launch declares as %s", verb, r.describe(), accessName(r.access))
		return 0, f
	}
	return mask, nil
}

func accessName(a runtime.Access) string {
	name := map[runtime.Access]string{0: "unused", runtime.Read: "read only", runtime.Write: "write only", runtime.ReadWrite: "read and write"}[a&runtime.ReadWrite]
	if a&runtime.Discard != 0 {
		name += ", discarded"
	}
	return name
}

// find looks for a region that holds the bytes, one that permits the access first.
func (w *worker) find(space ptx.Space, address, size uint64, need runtime.Access) *region {
	if space == ptx.Generic && address >= sharedWindow && address < globalBase {
		return &w.shared
	}
	var found *region
	for i := range w.regions {
		r := &w.regions[i]
		if offset := address - r.base; offset < uint64(len(r.data)) && size <= uint64(len(r.data))-offset {
			if r.access&need != 0 {
				return r
			}
			if found == nil {
				found = r
			}
		}
	}
	return found
}

// partly handles lanes outside of the region: they are in another one, or nowhere.
func (w *worker) partly(wp *warp, in *instruction, mask uint32, need runtime.Access, p *places, base uint64) (uint32, *Fault) {
	r := p.region
	size := uint64(in.access.size * in.access.vector)
	dynamic := in.access.space != ptx.Shared && w.regionOf[in.access.index] < 0
	inside := uint32(0)
	all := uint64(0)
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		i := bits.TrailingZeros32(lanes)
		if offset := p.offset[i]; offset < uint64(len(r.data)) && size <= uint64(len(r.data))-offset {
			inside |= 1 << i
			all |= offset + base
		} else if address := offset + base; !dynamic {
			return 0, w.beyond(wp, in, i, address, r)
		} else if w.find(in.access.space, address, size, need) == nil {
			return 0, w.outside(wp, in, i, address, size, need)
		}
	}
	if inside == 0 {
		return 0, w.beyond(wp, in, bits.TrailingZeros32(mask), p.offset[bits.TrailingZeros32(mask)]+base, r)
	}
	if all&(size-1) != 0 {
		return 0, w.misaligned(wp, in, inside, p, base)
	}
	p.lowest, p.highest = 0, ^uint64(0) // unknown
	return inside, nil
}

// memoryFault is a fault at an address of a lane.
func (w *worker) memoryFault(kind FaultKind, wp *warp, lane int, in *instruction, address uint64, r *region) *Fault {
	f := w.fault(kind, wp, lane, in, "")
	f.Address, f.Size = address, in.access.size*in.access.vector
	if r != nil {
		f.Argument = r.argument
	}
	return f
}

// beyond reports an access that misses its region.
func (w *worker) beyond(wp *warp, in *instruction, lane int, address uint64, r *region) *Fault {
	f := w.memoryFault(OutOfBounds, wp, lane, in, address, r)
	base, window := r.base, uint64(0)
	if r == &w.shared {
		if in.access.space == ptx.Generic {
			window = sharedWindow
		}
		base += window
		if other, at := w.locate(address - window); other != nil && other != w {
			f.Message = fmt.Sprintf("%d bytes at 0x%x are at offset %d of the shared memory of block %s, another one of the cluster", f.Size, address, at, coordinates(other.blockAt))
			return f
		}
	}
	f.Message = fmt.Sprintf("%d bytes at 0x%x are at offset %d of %s, which has %d bytes", f.Size, address, int64(address-base), r.describe(), len(r.data))
	if len(r.data) == 0 && r.argument >= 0 && r.access == 0 {
		f.Message = fmt.Sprintf("%d bytes at 0x%x: argument %d is no pointer", f.Size, address, r.argument)
	}
	return f
}

// outside reports an access that is in no region of the launch, and names the nearest one.
func (w *worker) outside(wp *warp, in *instruction, lane int, address, size uint64, _ runtime.Access) *Fault {
	f := w.memoryFault(OutOfBounds, wp, lane, in, address, nil)
	f.Message = fmt.Sprintf("%d bytes at 0x%x are in no argument of the launch", size, address)
	const near = 1 << 20
	var nearest *region
	distance := uint64(near)
	for i := range w.regions {
		r := &w.regions[i]
		end := r.base + uint64(len(r.data))
		away := r.base - address
		if address >= r.base {
			away = address + size - min(end, address+size)
		}
		if len(r.data) > 0 && away < distance {
			nearest, distance = r, away
		}
	}
	if nearest != nil {
		f.Argument = nearest.argument
		f.Message += fmt.Sprintf("; nearest is %s: offset %d, %d bytes", nearest.describe(), int64(address-nearest.base), len(nearest.data))
	}
	return f
}

func (w *worker) misaligned(wp *warp, in *instruction, mask uint32, p *places, base uint64) *Fault {
	size := uint64(in.access.size * in.access.vector)
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		if i := bits.TrailingZeros32(lanes); (p.offset[i]+base)&(size-1) != 0 {
			f := w.memoryFault(Misaligned, wp, i, in, p.offset[i]+base, p.region)
			f.Message = fmt.Sprintf("%d bytes at 0x%x (offset %d of %s)", size, f.Address, p.offset[i], p.region.describe())
			return f
		}
	}
	panic("BUG: no lane is misaligned")
}

// checkWritten looks for a lane that reads a byte which nobody wrote. Accesses are aligned, so
// their bits lie in one word of the map, unless the argument itself is not.
func (w *worker) checkWritten(wp *warp, in *instruction, mask uint32, p *places) *Fault {
	size := int64(in.access.size * in.access.vector)
	r := p.region
	// Lanes are mostly neighbours: if all bytes between them are written, so are theirs.
	if p.highest-p.lowest <= 1024 && r.init.firstUnset(r.start+int64(p.lowest), r.start+int64(p.highest)+size) < 0 {
		return nil
	}
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		i := bits.TrailingZeros32(lanes)
		at := r.start + int64(p.offset[i])
		if want := uint64(1)<<size - 1; atomic.LoadUint64(&r.init[at>>6])>>(at&63)&want == want {
			continue
		}
		if bad := r.init.firstUnset(at, at+size); bad >= 0 {
			f := w.memoryFault(Uninitialised, wp, i, in, p.offset[i]+r.base, r)
			f.Message = fmt.Sprintf("%d bytes at offset %d of %s: byte %d was never written", size, p.offset[i], r.describe(), bad-r.start)
			if r.access&runtime.Discard != 0 {
				f.Message += " since the launch discarded it"
			}
			return f
		}
	}
	return nil
}

// load executes ld.
func (w *worker) load(wp *warp, in *instruction, mask uint32) *Fault {
	var p places
	for mask != 0 {
		lanes, fault := w.resolve(wp, in, mask, runtime.Read, &p)
		if fault != nil {
			return fault
		}
		if w.flights > 0 {
			if fault := w.checkInFlight(wp, in, lanes, &p, runtime.Read); fault != nil {
				return fault
			}
		}
		if p.region.checkRead && !(p.region == &w.shared && w.sharedReady) {
			if fault := w.checkWritten(wp, in, lanes, &p); fault != nil {
				return fault
			}
		}
		a := in.access
		if a.vector == 4 && a.size == 4 && !a.wide && lanes == warpFull {
			s := a.slots
			gather128(&wp.r32[s[0]], &wp.r32[s[1]], &wp.r32[s[2]], &wp.r32[s[3]], p.region.data, &p.offset)
			return nil
		}
		for n, slot := range a.slots {
			data := p.region.data[n*a.size:]
			switch {
			case a.size == 4 && !a.wide && lanes == warpFull:
				gather32(&wp.r32[slot], data, &p.offset)
			case a.wide:
				gatherWide(&wp.r64[slot], data, &p.offset, lanes, a)
			default:
				gatherNarrow(&wp.r32[slot], data, &p.offset, lanes, a)
			}
		}
		mask &^= lanes
	}
	return nil
}

const warpFull = ^uint32(0)

func gather32(d *lanes32, data []byte, offset *lanes64) {
	for i := range d {
		d[i] = binary.LittleEndian.Uint32(data[offset[i]:])
	}
}

// gather128 loads four words a lane.
func gather128(d0, d1, d2, d3 *lanes32, data []byte, offset *lanes64) {
	for i := range d0 {
		word := (*[16]byte)(data[offset[i]:])
		d0[i] = binary.LittleEndian.Uint32(word[0:])
		d1[i] = binary.LittleEndian.Uint32(word[4:])
		d2[i] = binary.LittleEndian.Uint32(word[8:])
		d3[i] = binary.LittleEndian.Uint32(word[12:])
	}
}

// readElement reads one element, extended to 64 bits by its sign.
func readElement(data []byte, a *memoryAccess) uint64 {
	var v uint64
	switch a.size {
	case 1:
		v = uint64(data[0])
	case 2:
		v = uint64(binary.LittleEndian.Uint16(data))
	case 4:
		v = uint64(binary.LittleEndian.Uint32(data))
	default:
		return binary.LittleEndian.Uint64(data)
	}
	if a.signed {
		v = signExtend(v, a.size*8)
	}
	return v
}

func gatherWide(d *lanes64, data []byte, offset *lanes64, mask uint32, a *memoryAccess) {
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros32(mask)
		d[i] = readElement(data[offset[i]:], a)
	}
}

func gatherNarrow(d *lanes32, data []byte, offset *lanes64, mask uint32, a *memoryAccess) {
	keep := ^uint32(0) >> (32 - a.width)
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros32(mask)
		d[i] = uint32(readElement(data[offset[i]:], a)) & keep
	}
}

// store executes st. Lanes write in order, so that the highest one wins where several write
// the same place.
func (w *worker) store(wp *warp, in *instruction, mask uint32) *Fault {
	var p places
	for mask != 0 {
		lanes, fault := w.resolve(wp, in, mask, runtime.Write, &p)
		if fault != nil {
			return fault
		}
		if w.flights > 0 || w.reads > 0 {
			if fault := w.checkInFlight(wp, in, lanes, &p, runtime.Write); fault != nil {
				return fault
			}
		}
		a := in.access
		for n, slot := range a.slots {
			data := p.region.data[n*a.size:]
			if a.wide {
				scatterWide(&wp.r64[slot], data, &p.offset, lanes, a.size)
			} else {
				scatterNarrow(&wp.r32[slot], data, &p.offset, lanes, a.size)
			}
		}
		if p.region.checkRead && !(p.region == &w.shared && w.sharedReady) {
			markWritten(&p, lanes, int64(a.size*a.vector))
		}
		if wp.warpgroup != nil && p.region == &w.shared {
			w.noteWrites(wp, lanes, &p.offset, uint64(a.size*a.vector))
		}
		mask &^= lanes
	}
	return nil
}

func scatterWide(s *lanes64, data []byte, offset *lanes64, mask uint32, size int) {
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros32(mask)
		writeElement(data[offset[i]:], s[i], size)
	}
}

func scatterNarrow(s *lanes32, data []byte, offset *lanes64, mask uint32, size int) {
	if size == 4 && mask == warpFull {
		for i := range s {
			binary.LittleEndian.PutUint32(data[offset[i]:], s[i])
		}
		return
	}
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros32(mask)
		writeElement(data[offset[i]:], uint64(s[i]), size)
	}
}

func writeElement(data []byte, v uint64, size int) {
	switch size {
	case 1:
		data[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(data, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(data, uint32(v))
	default:
		binary.LittleEndian.PutUint64(data, v)
	}
}

// markWritten records the bytes that lanes wrote; neighbours are marked together.
func markWritten(p *places, mask uint32, size int64) {
	start, end := int64(0), int64(0)
	for ; mask != 0; mask &= mask - 1 {
		at := p.region.start + int64(p.offset[bits.TrailingZeros32(mask)])
		if at != end {
			p.region.init.set(start, end)
			start = at
		}
		end = at + size
	}
	p.region.init.set(start, end)
}

// loadParameter executes ld.param: every lane gets the same bytes.
func (w *worker) loadParameter(wp *warp, in *instruction, mask uint32) {
	a := in.access
	for n, slot := range a.slots {
		v := readElement(w.params[int(a.offset)+n*a.size:], a)
		if a.wide {
			fill64(&w.discard64, v)
			wp.write64(slot, mask, &w.discard64)
		} else {
			fill32(&w.discard32, uint32(v)&(^uint32(0)>>(32-a.width)))
			wp.write32(slot, mask, &w.discard32)
		}
	}
}

// atomic executes atom and red, lane after lane.
func (w *worker) atomic(wp *warp, in *instruction, mask uint32) *Fault {
	var p places
	a := in.access
	if a.space != ptx.Shared {
		w.mutex.Lock()
		defer w.mutex.Unlock()
	}
	operand := func(slot int32, lane int) uint64 {
		if a.size == 8 {
			return wp.r64[slot][lane]
		}
		return uint64(wp.r32[slot][lane])
	}
	for mask != 0 {
		lanes, fault := w.resolve(wp, in, mask, runtime.Write, &p)
		if fault != nil {
			return fault
		}
		if fault := w.checkInFlight(wp, in, lanes, &p, runtime.Write); fault != nil {
			return fault
		}
		if p.region.checkRead {
			if fault := w.checkWritten(wp, in, lanes, &p); fault != nil {
				return fault
			}
		}
		if wp.warpgroup != nil && p.region == &w.shared {
			w.noteWrites(wp, lanes, &p.offset, uint64(a.size))
		}
		mask &^= lanes
		for ; lanes != 0; lanes &= lanes - 1 {
			i := bits.TrailingZeros32(lanes)
			data := p.region.data[p.offset[i]:]
			old := uint64(binary.LittleEndian.Uint32(data))
			if a.size == 8 {
				old = binary.LittleEndian.Uint64(data)
			}
			writeElement(data, a.atomic(old, operand(a.operand, i), operand(a.operand2, i)), a.size)
			switch {
			case a.discarded:
			case a.wide:
				wp.r64[a.slots[0]][i] = old
			default:
				wp.r32[a.slots[0]][i] = uint32(old)
			}
		}
	}
	return nil
}
