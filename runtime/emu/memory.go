package emu

import (
	"fmt"
	"math/bits"
	"sort"
	"sync/atomic"

	"weft/runtime"
)

// Where address ranges begin. Allocations keep a gap between them, so that an address just
// past one belongs to none.
const (
	globalBase   = 0x7000_0000_0000
	sharedWindow = 0x6000_0000_0000 // generic addresses of shared memory
	allocGap     = 4096
	allocAlign   = 256
)

// initMap records for every byte of an allocation whether it was ever written. Blocks set
// bits in parallel, so all access is atomic; bits are cleared only between launches.
type initMap []uint64

func newInitMap(size int64) initMap { return make(initMap, (size+63)/64) }

// set marks the bytes of [from, to) as written.
func (m initMap) set(from, to int64) {
	for from < to {
		mask, next := wordMask(from, to)
		word := &m[from/64]
		if old := atomic.LoadUint64(word); old&mask != mask {
			atomic.OrUint64(word, mask)
		}
		from = next
	}
}

func (m initMap) clear(from, to int64) {
	for from < to {
		mask, next := wordMask(from, to)
		m[from/64] &^= mask
		from = next
	}
}

// firstUnset finds the first byte of [from, to) that is not written, -1 if all are.
func (m initMap) firstUnset(from, to int64) int64 { return m.first(from, to, ^uint64(0)) }

// firstSet finds the first byte of [from, to) that is written, -1 if none is.
func (m initMap) firstSet(from, to int64) int64 { return m.first(from, to, 0) }

func (m initMap) first(from, to int64, invert uint64) int64 {
	for from < to {
		mask, next := wordMask(from, to)
		if found := mask & (atomic.LoadUint64(&m[from/64]) ^ invert); found != 0 {
			return from&^63 + int64(bits.TrailingZeros64(found))
		}
		from = next
	}
	return -1
}

// copyFrom takes over what is written of [start, start+size) of another map.
func (m initMap) copyFrom(at int64, from initMap, start, size int64) {
	m.clear(at, at+size)
	shift := at - start
	for end := start + size; start < end; {
		first := from.firstSet(start, end)
		if first < 0 {
			return
		}
		if start = from.firstUnset(first, end); start < 0 {
			start = end
		}
		m.set(first+shift, start+shift)
	}
}

// wordMask is the mask of [from, to) in from's word, and the start of the next word.
func wordMask(from, to int64) (mask uint64, next int64) {
	next = from&^63 + 64
	mask = ^uint64(0) << (from & 63)
	if to < next {
		mask &= 1<<(to&63) - 1
	}
	return mask, next
}

// allocation is one piece of global memory.
type allocation struct {
	base uint64
	data []byte
	init initMap
}

func (a *allocation) end() uint64 { return a.base + uint64(len(a.data)) }

// memory is the global memory of a device.
type memory struct {
	limit  int64
	used   int64
	next   uint64        // base of the next allocation
	blocks []*allocation // by address
}

func (m *memory) alloc(size int64) (*allocation, error) {
	if size < 0 {
		return nil, fmt.Errorf("emulator: allocation of %d bytes", size)
	}
	if size > m.limit-m.used {
		return nil, fmt.Errorf("emulator: out of memory: %d bytes asked for, %d of %d in use", size, m.used, m.limit)
	}
	a := &allocation{base: m.next, data: make([]byte, size), init: newInitMap(size)}
	m.next += (uint64(size) + allocGap + allocAlign - 1) &^ (allocAlign - 1)
	m.used += size
	m.blocks = append(m.blocks, a)
	return a, nil
}

func (m *memory) free(p runtime.Pointer) error {
	for i, a := range m.blocks {
		if a.base == uint64(p) {
			m.used -= int64(len(a.data))
			m.blocks = append(m.blocks[:i], m.blocks[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("emulator: free of 0x%x, which is no allocation", uint64(p))
}

// find gives the allocation that holds [p, p+size) and the offset of p in it.
func (m *memory) find(p uint64, size int64) (*allocation, int64, error) {
	i := sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].base > p }) - 1
	if i < 0 || p > m.blocks[i].end() {
		return nil, 0, fmt.Errorf("address 0x%x is in no allocation", p)
	}
	a := m.blocks[i]
	if size < 0 || size > int64(a.end()-p) {
		return nil, 0, fmt.Errorf("%d bytes at 0x%x end past the allocation at 0x%x of %d bytes", size, p, a.base, len(a.data))
	}
	return a, int64(p - a.base), nil
}
