package emu

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// The products of warpgroups read shared memory through the asynchronous proxy and some time
// later. So a warp's writes are visible to them only after its fence.proxy.async, and what they
// read must not be written until the warps that started them have waited; after that, these
// warps may write there, and after a barrier (or a fence) everybody.

// warpgroupState is what a warp has under way.
type warpgroupState struct {
	reads     []productRead
	committed uint32   // groups that it has closed
	started   int      // products
	ordered   bool     // has executed wgmma.fence
	unfenced  []uint64 // bytes of shared memory that it wrote since its last fence.proxy.async, one a bit
	writers   uint32   // lanes that wrote bytes of unfenced since their last fence
}

// productRead is a warp's part of a product: what it reads until it is waited for.
type productRead struct {
	in      *instruction
	product *warpgroupProduct
	a, b    uint64 // descriptors
	adds    bool
	group   uint32
	waited  bool
}

// chunks lists what a warp's part reads: two units of A, if it is in shared memory, and those of B.
func (r *productRead) chunks(warp int, chunks []uint32) []uint32 {
	if r.product.a == nil {
		d, first := decodeDescriptor(r.a), uint32(warp%warpgroupWarps*2)
		for unit := first; unit < first+2; unit++ {
			chunks = d.unit(unit, r.product.transposedA, chunks)
		}
	}
	d := decodeDescriptor(r.b)
	for unit := range uint32(r.product.columns / unitRows) {
		chunks = d.unit(unit, r.product.transposedB, chunks)
	}
	return chunks
}

// startProduct checks that the warps of a group start the same products, and notes what this
// one reads: the chunks of the worker.
func (w *worker) startProduct(wp *warp, in *instruction, read productRead) *Fault {
	s := wp.warpgroup
	if !s.ordered {
		return w.fault(Unfenced, wp, 0, in, "the warp has executed no wgmma.fence, which orders its registers before the product")
	}
	group := &w.products[wp.index/warpgroupWarps]
	if s.started == len(*group) {
		*group = append(*group, read)
	} else if first := (*group)[s.started]; first.in != in || first.a != read.a || first.b != read.b || first.adds != read.adds {
		return w.fault(WarpDivergence, wp, 0, in, "product %d of this warp differs from that of another warp of its warpgroup, at line %d: descriptors 0x%x and 0x%x, C counts: %t; there 0x%x, 0x%x, %t",
			s.started, first.in.source.Line, read.a, read.b, read.adds, first.a, first.b, first.adds)
	}
	s.started++
	read.group = s.committed
	s.reads = append(s.reads, read)
	w.reads++
	for _, chunk := range w.chunks {
		w.readers[chunk/chunkBytes]++
	}
	return nil
}

func (w *worker) warpgroupFence(wp *warp, in *instruction, mask uint32) *Fault {
	wp.warpgroup.ordered = true
	return w.wholeWarpgroup(wp, in, mask)
}

func (w *worker) commitProducts(wp *warp, in *instruction, mask uint32) *Fault {
	wp.warpgroup.committed++
	return w.wholeWarpgroup(wp, in, mask)
}

// waitProducts ends the products of all groups but the youngest.
func (w *worker) waitProducts(wp *warp, in *instruction, mask uint32) *Fault {
	s := wp.warpgroup
	for i := range s.reads {
		if r := &s.reads[i]; uint64(r.group)+in.imm < uint64(s.committed) {
			r.waited = true
		}
	}
	return w.wholeWarpgroup(wp, in, mask)
}

// releaseReads lets everybody write what the products read that the warp has waited for.
func (w *worker) releaseReads(wp *warp) {
	s := wp.warpgroup
	for i := range s.reads {
		if r := &s.reads[i]; r.waited {
			w.chunks = r.chunks(wp.index, w.chunks[:0])
			for _, chunk := range w.chunks {
				w.readers[chunk/chunkBytes]--
			}
			w.reads--
		}
	}
	s.reads = slices.DeleteFunc(s.reads, func(r productRead) bool { return r.waited })
}

// checkReaders looks for lanes that write what a product may still read.
func (w *worker) checkReaders(wp *warp, in *instruction, mask uint32, p *places) *Fault {
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		lane := bits.TrailingZeros32(lanes)
		at := p.offset[lane]
		if w.readers[at/chunkBytes] == 0 {
			continue
		}
		for i := range w.warps {
			if fault := w.checkReadsOf(&w.warps[i], wp, in, lane, at); fault != nil {
				return fault
			}
		}
	}
	return nil
}

// checkReadsOf looks for products of one warp that may still read what another one writes.
func (w *worker) checkReadsOf(owner, wp *warp, in *instruction, lane int, at uint64) *Fault {
	r := w.readOf(owner, wp, at)
	if r == nil {
		return nil
	}
	size := in.access.size * in.access.vector
	fault := w.fault(InFlight, wp, lane, in, "writes %d bytes at offset %d of shared memory, which %s", size, at, r.describe(owner))
	fault.Address, fault.Size = at, size
	return fault
}

// readOf finds a product of one warp that may still read what another one, perhaps of another
// block, writes.
func (w *worker) readOf(owner, wp *warp, at uint64) *productRead {
	for i := range owner.warpgroup.reads {
		r := &owner.warpgroup.reads[i]
		if r.waited && owner == wp {
			continue
		}
		w.chunks = r.chunks(owner.index, w.chunks[:0])
		if slices.Contains(w.chunks, uint32(at&^(chunkBytes-1))) {
			return r
		}
	}
	return nil
}

// describe says which product may still read.
func (r *productRead) describe(owner *warp) string {
	why := "that warp has not waited for it"
	if r.waited {
		why = "that warp has waited for it, but there was no barrier since"
	}
	source := r.in.source
	return fmt.Sprintf("the product that warp %d started at line %d (%s.%s) may still read; %s", owner.index, source.Line, source.Opcode, strings.Join(source.Modifiers, "."), why)
}

// noteWrites marks bytes of shared memory that lanes wrote as not yet visible to products.
func (w *worker) noteWrites(wp *warp, mask uint32, offset *lanes64, size uint64) {
	s := wp.warpgroup
	if s.unfenced == nil {
		s.unfenced = make([]uint64, len(w.shared.init))
	}
	others := w.unfenced &^ (1 << wp.index)
	for lanes := mask; lanes != 0; lanes &= lanes - 1 {
		at := offset[bits.TrailingZeros32(lanes)]
		word, written := at>>6, (uint64(1)<<size-1)<<(at&63)
		s.unfenced[word] |= written
		for other := others; other != 0; other &= other - 1 { // their bytes are no more
			w.warps[bits.TrailingZeros32(other)].warpgroup.unfenced[word] &^= written
		}
	}
	s.writers |= mask
	w.unfenced |= 1 << wp.index
}

// proxyFence executes fence.proxy.async: what the lanes wrote becomes visible to products.
func (w *worker) proxyFence(wp *warp, _ *instruction, mask uint32) *Fault {
	s := wp.warpgroup
	if s == nil {
		return nil
	}
	if s.writers &^= mask; s.writers == 0 && w.unfenced>>wp.index&1 != 0 {
		clear(s.unfenced)
		w.unfenced &^= 1 << wp.index
	}
	return nil
}

// checkFenced looks for bytes of the chunks that a warp wrote without a fence since.
func (w *worker) checkFenced(wp *warp, in *instruction) *Fault {
	for warps := w.unfenced; warps != 0; warps &= warps - 1 {
		writer := bits.TrailingZeros32(warps)
		unfenced := w.warps[writer].warpgroup.unfenced
		for _, chunk := range w.chunks {
			if at := uint64(chunk); unfenced[at>>6]>>(at&63)&chunkMask != 0 {
				fault := w.memoryFault(Unfenced, wp, 0, in, at, &w.shared)
				fault.Message = fmt.Sprintf("reads byte %d of shared memory, which warp %d wrote without executing fence.proxy.async since",
					at+uint64(bits.TrailingZeros64(unfenced[at>>6]>>(at&63))), writer)
				return fault
			}
		}
	}
	return nil
}

// resetWarpgroups forgets what the block before had under way.
func (w *worker) resetWarpgroups() {
	if !w.kernel.proxy {
		return
	}
	if w.products == nil {
		w.products = make([][]productRead, (len(w.warps)+warpgroupWarps-1)/warpgroupWarps)
		w.readers = make([]uint32, (len(w.shared.data)+chunkBytes-1)/chunkBytes)
	}
	for i := range w.products {
		w.products[i] = w.products[i][:0]
	}
	clear(w.readers)
	w.reads, w.unfenced = 0, 0
	for i := range w.warps {
		wp := &w.warps[i]
		if wp.warpgroup == nil {
			wp.warpgroup = &warpgroupState{}
		}
		clear(wp.warpgroup.unfenced)
		*wp.warpgroup = warpgroupState{reads: wp.warpgroup.reads[:0], unfenced: wp.warpgroup.unfenced}
	}
}

// checkProducts reports a warp that started fewer products than the others of its warpgroup.
func (w *worker) checkProducts() *Fault {
	for i := range w.warps {
		wp := &w.warps[i]
		if wp.warpgroup == nil {
			return nil
		}
		if group := w.products[i/warpgroupWarps]; wp.warpgroup.started < len(group) {
			return w.fault(WarpDivergence, wp, 0, group[wp.warpgroup.started].in, "warp %d has exited after %d products, another warp of its warpgroup has started %d",
				i, wp.warpgroup.started, len(group))
		}
	}
	return nil
}
