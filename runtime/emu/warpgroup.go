package emu

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"weft/codegen/ptx"
	"weft/runtime"
)

// The products of warpgroups (wgmma): four warps from a multiple of four on multiply 64 rows of
// A with up to 256 columns of B, which lie in shared memory, 16 k at a time. Warp w has rows
// 16w to 16w+15 of D, so that each computes its part when it comes there. Products are done
// when they start; what the hardware leaves open until a wait is a matter of asyncproxy.go.
// Registers in flight are a matter of warpgroup_registers.go.

const (
	warpgroupWarps   = 4
	warpgroupInner   = 16 // columns of A, rows of B
	unitRows         = 8  // rows of A or columns of B that are loaded together,
	unitChunks       = 16 // and their chunks
	accumulatorsUnit = 4  // registers of D for eight columns
)

// warpgroupProduct holds the operands of wgmma.mma_async.
type warpgroupProduct struct {
	columns      int // of B and D
	format       factorFormat
	transposedA  bool // lies [k][row]
	transposedB  bool // lies [k][column]
	signA, signB uint32
	accumulators []int32 // slots of C and D, four for eight columns
	a            []int32 // slots of A's registers, nil if it lies in shared memory
	descriptorA  int32
	descriptorB  int32
	adds         int32 // predicate: C counts
	addsFlip     uint32
}

// warpgroupInstruction decodes wgmma.
func (d *decoder) warpgroupInstruction(in *instruction) error {
	d.k.proxy = true
	in.op, in.extra = opSpecial, &extra{}
	switch name := strings.Join(d.in.Modifiers, "."); name {
	case "fence.sync.aligned":
		in.extra.run = (*worker).warpgroupFence
		return d.operands(0)
	case "commit_group.sync.aligned":
		in.extra.run = (*worker).commitProducts
		return d.operands(0)
	case "wait_group.sync.aligned":
		in.extra.run = (*worker).waitProducts
		return d.groups(in)
	}
	return d.warpgroupProduct(in)
}

// warpgroupProduct decodes wgmma.mma_async d, a, b, p, sign of a, sign of b {, transpose a}, transpose b.
func (d *decoder) warpgroupProduct(in *instruction) error {
	p, err := d.warpgroupForm()
	if err != nil {
		return err
	}
	o, matrices := d.in.Operands, 2
	if len(o) > 1 && o[1].Kind == ptx.OperandVector {
		matrices = 1
	}
	if err := d.operands(6 + matrices); err != nil {
		return err
	}
	if p.accumulators, err = d.registers(&o[0], p.columns/unitRows*accumulatorsUnit, true); err != nil {
		return err
	}
	if matrices == 1 {
		p.a, err = d.registers(&o[1], 4, false)
	} else {
		p.descriptorA, err = d.operand(&o[1], ptx.B64)
	}
	if err != nil {
		return err
	}
	if p.descriptorB, err = d.operand(&o[2], ptx.B64); err != nil {
		return err
	}
	if p.adds, err = d.operand(&o[3], ptx.Pred); err != nil {
		return err
	}
	if o[3].Negated {
		p.addsFlip = ^uint32(0)
	}
	if err := d.warpgroupImmediates(p, o[4:]); err != nil {
		return err
	}
	in.access = d.plainAccess(ptx.Shared, chunkBytes)
	in.extra.run = func(w *worker, wp *warp, in *instruction, mask uint32) *Fault {
		return w.warpgroupProduct(wp, in, mask, p)
	}
	return nil
}

// warpgroupForm reads the modifiers.
func (d *decoder) warpgroupForm() (*warpgroupProduct, error) {
	m := d.in.Modifiers
	formats := map[string]factorFormat{"bf16": factorBF16, "f16": factorF16}
	if len(m) != 7 || strings.Join(m[:3], ".") != "mma_async.sync.aligned" || m[4] != "f32" || m[5] != m[6] || formats[m[5]] == (factorFormat{}) {
		return nil, d.unsupported("this form of wgmma")
	}
	shape, found := strings.CutPrefix(m[3], "m64n")
	shape, foundInner := strings.CutSuffix(shape, "k16")
	columns, err := strconv.Atoi(shape)
	if !found || !foundInner || err != nil || columns%unitRows != 0 || columns < unitRows || columns > 256 {
		return nil, d.unsupported("shape %s", m[3])
	}
	return &warpgroupProduct{columns: columns, format: formats[m[5]]}, nil
}

// warpgroupImmediates reads the signs and which matrices lie transposed.
func (d *decoder) warpgroupImmediates(p *warpgroupProduct, o []ptx.Operand) error {
	for i := range o {
		allowed := []uint64{0, 1}
		if i < 2 {
			allowed = []uint64{1, ^uint64(0)}
		}
		if o[i].Kind != ptx.OperandInteger || !slices.Contains(allowed, o[i].Bits) {
			return d.unsupported("the signs are 1 or -1, the orders of A and B in memory 0 or 1")
		}
	}
	signBit := uint32(1) << (p.format.fraction + p.format.exponent)
	p.signA, p.signB = uint32(o[0].Bits>>32)&signBit, uint32(o[1].Bits>>32)&signBit
	p.transposedB = o[len(o)-1].Bits == 1
	p.transposedA = len(o) == 4 && o[2].Bits == 1
	return nil
}

// warpgroupProduct executes a warp's part of a product.
func (w *worker) warpgroupProduct(wp *warp, in *instruction, mask uint32, p *warpgroupProduct) *Fault {
	if fault := w.wholeWarpgroup(wp, in, mask); fault != nil {
		return fault
	}
	read, fault := w.warpgroupOperands(wp, in, p)
	if fault != nil {
		return fault
	}
	if fault := w.startProduct(wp, in, read); fault != nil {
		return fault
	}
	chunks := w.chunks
	w.product.inner = warpgroupInner
	if p.a == nil {
		w.loadSharedA(p, chunks)
		chunks = chunks[2*unitChunks:]
	} else {
		for r, slot := range p.a {
			w.product.loadA(&wp.r32[slot], r%2*8, r/2*8, 2)
		}
	}
	if p.signA != 0 {
		flipSigns(w.product.rawA[:], p.signA)
	}
	w.product.unpackA(p.format)
	for unit := range p.columns / unitRows {
		loadUnit(w.product.rawB[:unitRows*warpgroupInner], w.shared.data, chunks[unit*unitChunks:][:unitChunks], p.transposedB)
		if p.signB != 0 {
			flipSigns(w.product.rawB[:unitRows*warpgroupInner], p.signB)
		}
		w.multiplyUnit(wp, p.accumulators[unit*accumulatorsUnit:][:accumulatorsUnit], p.format, read.adds)
	}
	return nil
}

// multiplyUnit computes eight columns of D.
func (w *worker) multiplyUnit(wp *warp, accumulators []int32, format factorFormat, adds bool) {
	p := &w.product
	if !adds {
		p.c = [matrixRows][matrixColumns]uint32{}
	} else {
		for r, slot := range accumulators {
			for lane, word := range &wp.r32[slot] {
				p.c[lane/4+r/2*8][lane%4*2+r%2] = word
			}
		}
	}
	p.multiplyUnpacked(format)
	for r, slot := range accumulators {
		d := &wp.r32[slot]
		for lane := range d {
			d[lane] = p.c[lane/4+r/2*8][lane%4*2+r%2]
		}
	}
}

// loadSharedA takes the warp's 16 rows of A from two units of chunks.
func (w *worker) loadSharedA(p *warpgroupProduct, chunks []uint32) {
	var unit [unitRows * warpgroupInner]uint32
	for i := range 2 {
		loadUnit(unit[:], w.shared.data, chunks[i*unitChunks:][:unitChunks], p.transposedA)
		for k := range warpgroupInner {
			for row := range unitRows {
				w.product.rawA[(i*unitRows+row)*maxInner+k] = unit[k*unitRows+row]
			}
		}
	}
}

// loadUnit takes eight rows of A, or columns of B, as [k][row].
func loadUnit(to []uint32, data []byte, chunks []uint32, transposed bool) {
	for i, at := range chunks {
		chunk := (*[chunkBytes]byte)(data[at:])
		if transposed {
			row := (*[unitRows]uint32)(to[i*unitRows:])
			for j := range row {
				row[j] = uint32(binary.LittleEndian.Uint16(chunk[2*j:]))
			}
			continue
		}
		column := to[i%2*chunkElements*unitRows+i/2:]
		_ = column[(chunkElements-1)*unitRows]
		for j := range chunkElements {
			column[j*unitRows] = uint32(binary.LittleEndian.Uint16(chunk[2*j:]))
		}
	}
}

func flipSigns(elements []uint32, sign uint32) {
	for i := range elements {
		elements[i] ^= sign
	}
}

// wholeWarpgroup checks that the warp and the three others of its group are whole.
func (w *worker) wholeWarpgroup(wp *warp, in *instruction, mask uint32) *Fault {
	if fault := w.wholeWarp(wp, in, mask); fault != nil {
		return fault
	}
	if last := wp.index | (warpgroupWarps - 1); last >= len(w.warps) || w.warps[last].all != warpFull {
		return w.fault(WarpDivergence, wp, 0, in, "warp %d is in no whole warpgroup: the block has %d threads, warps %d to %d must be there",
			wp.index, w.threads, last-warpgroupWarps+1, last)
	}
	return nil
}

// warpgroupOperands reads what must be the same in all lanes, and finds the chunks of A and B.
func (w *worker) warpgroupOperands(wp *warp, in *instruction, p *warpgroupProduct) (productRead, *Fault) {
	read := productRead{in: in, product: p}
	uniform := func(slot int32, name string) (uint64, *Fault) {
		values := &wp.r64[slot]
		for lane, v := range values {
			if v != values[0] {
				return 0, w.fault(BadDescriptor, wp, lane, in, "lane %d has 0x%x as the descriptor of %s, lane 0 has 0x%x", lane, v, name, values[0])
			}
		}
		if problem := decodeDescriptor(values[0]).problem; problem != "" {
			return 0, w.fault(BadDescriptor, wp, 0, in, "descriptor 0x%x of %s: %s", values[0], name, problem)
		}
		return values[0], nil
	}
	var fault *Fault
	if p.a == nil {
		if read.a, fault = uniform(p.descriptorA, "A"); fault != nil {
			return read, fault
		}
	}
	if read.b, fault = uniform(p.descriptorB, "B"); fault != nil {
		return read, fault
	}
	adds := wp.predicates[p.adds] ^ p.addsFlip
	if adds != 0 && adds != warpFull {
		return read, w.fault(WarpDivergence, wp, 0, in, "whether C counts differs between the lanes: mask 0x%08x", adds)
	}
	read.adds = adds != 0
	w.chunks = read.chunks(wp.index, w.chunks[:0])
	return read, w.checkChunks(wp, in)
}

// checkChunks looks at the bytes that a product reads: in shared memory, not in flight,
// written, and visible to the asynchronous proxy.
func (w *worker) checkChunks(wp *warp, in *instruction) *Fault {
	size := uint64(len(w.shared.data))
	for _, chunk := range w.chunks {
		if at := uint64(chunk); at+chunkBytes > size {
			return w.beyond(wp, in, 0, w.shared.base+at, &w.shared)
		}
	}
	if w.flights > 0 {
		for _, chunk := range w.chunks {
			if at := uint64(chunk); w.inFlight[at>>6]>>(at&63)&chunkMask != 0 {
				if fault := w.touch(wp, in, 0, at, chunkBytes, runtime.Read); fault != nil {
					return fault
				}
			}
		}
	}
	if !w.sharedReady {
		for _, chunk := range w.chunks {
			if at := uint64(chunk); w.shared.init[at>>6]>>(at&63)&chunkMask != chunkMask {
				p := places{region: &w.shared, lowest: at, highest: at}
				p.offset[0] = at
				return w.checkWritten(wp, in, 1, &p)
			}
		}
	}
	if w.unfenced != 0 {
		return w.checkFenced(wp, in)
	}
	return nil
}
