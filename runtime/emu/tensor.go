package emu

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"

	"weft/codegen/ptx"
	"weft/runtime"
)

// The instructions of the tensor cores. A matrix lies in fragments: lane i holds row i/4 and
// the columns i%4*n to i%4*n+n-1 of eight rows, where n elements fit a register; further
// registers hold the next eight rows and then the next 4*n columns. B lies as its transpose
// would.

// productKind is a form of mma.
type productKind struct {
	inner   int // columns of A
	perWord int // elements in a register of A and B
	float   bool
	format  factorFormat
}

// productKinds has the supported forms by their modifiers.
var productKinds = map[string]productKind{
	"sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": {16, 2, true, factorBF16},
	"sync.aligned.m16n8k16.row.col.f32.f16.f16.f32":   {16, 2, true, factorF16},
	"sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32":  {8, 1, true, factorTF32},
	"sync.aligned.m16n8k32.row.col.s32.s8.s8.s32":     {32, 4, false, factorFormat{}},
}

// matrixProduct decodes mma.sync d, a, b, c.
func (d *decoder) matrixProduct(in *instruction) error {
	kind, ok := productKinds[strings.Join(d.in.Modifiers, ".")]
	if !ok {
		return d.unsupported("this form of mma")
	}
	if err := d.operands(4); err != nil {
		return err
	}
	var slots []int32
	for n, count := range []int{4, 4, 2, 4} {
		part, err := d.registers(&d.in.Operands[n], count, n == 0)
		if err != nil {
			return err
		}
		slots = append(slots, part...)
	}
	in.op = opSpecial
	in.extra = &extra{slots: slots, run: func(w *worker, wp *warp, in *instruction, mask uint32) *Fault {
		return w.matrixProduct(wp, in, mask, kind)
	}}
	return nil
}

// registers gives the slots of a vector of 32-bit registers; single ones may stand alone.
func (d *decoder) registers(o *ptx.Operand, count int, written bool) ([]int32, error) {
	elements := []ptx.Operand{*o}
	if o.Kind == ptx.OperandVector {
		elements = o.Elements
	}
	if len(elements) != count {
		return nil, d.unsupported("%d registers, expected %d", len(elements), count)
	}
	var slots []int32
	for i := range elements {
		slot, err := int32(0), error(nil)
		if written {
			slot, err = d.result(&elements[i], 32)
		} else {
			slot, err = d.operand(&elements[i], ptx.B32)
		}
		if err != nil {
			return nil, err
		}
		slots = append(slots, slot)
	}
	return slots, nil
}

// wholeWarp checks that all 32 lanes execute an instruction that needs them.
func (w *worker) wholeWarp(wp *warp, in *instruction, mask uint32) *Fault {
	if mask == warpFull {
		return nil
	}
	lane := bits.TrailingZeros32(^mask)
	where := "is elsewhere in the kernel"
	if wp.all>>lane&1 == 0 {
		where = "does not exist: the block is no multiple of 32 threads"
	} else if wp.alive>>lane&1 == 0 {
		where = "has exited"
	}
	return w.fault(WarpDivergence, wp, bits.TrailingZeros32(mask), in, "all 32 lanes must execute this together; lane %d %s", lane, where)
}

func (w *worker) matrixProduct(wp *warp, in *instruction, mask uint32, kind productKind) *Fault {
	if fault := w.wholeWarp(wp, in, mask); fault != nil {
		return fault
	}
	p, s := &w.product, in.extra.slots
	p.inner = kind.inner
	for r, slot := range s[4:8] {
		p.loadA(&wp.r32[slot], r%2*8, r/2*4*kind.perWord, kind.perWord)
	}
	for r, slot := range s[8:10] {
		p.loadB(&wp.r32[slot], r*4*kind.perWord, kind.perWord)
	}
	for r, slot := range s[10:14] {
		for lane, word := range &wp.r32[slot] {
			p.c[lane/4+r/2*8][lane%4*2+r%2] = word
		}
	}
	if kind.float {
		p.multiplyFloat(kind.format)
	} else {
		p.multiplyInteger()
	}
	for r, slot := range s[:4] {
		d := &wp.r32[slot]
		for lane := range d {
			d[lane] = p.c[lane/4+r/2*8][lane%4*2+r%2]
		}
	}
	return nil
}

// loadA takes one register of A: eight rows from row on, and four words of columns.
func (p *product) loadA(words *lanes32, row, column, perWord int) {
	for i := range 8 {
		to, from := p.rawA[(row+i)*maxInner+column:][:4*perWord], words[i*4:i*4+4]
		switch perWord {
		case 1:
			copy(to, from)
		case 2:
			for j, word := range from {
				to[2*j], to[2*j+1] = word&0xffff, word>>16
			}
		case 4:
			for j, word := range from {
				to[4*j], to[4*j+1], to[4*j+2], to[4*j+3] = signedByte(word), signedByte(word>>8), signedByte(word>>16), signedByte(word>>24)
			}
		}
	}
}

// loadB takes one register of B: four words of rows from row on, and all columns.
func (p *product) loadB(words *lanes32, row, perWord int) {
	for lane, word := range words {
		to := p.rawB[(row+lane%4*perWord)*matrixColumns+lane/4:]
		for i := range perWord {
			switch perWord {
			case 1:
				to[0] = word
			case 2:
				to[i*matrixColumns] = word >> (16 * i) & 0xffff
			case 4:
				to[i*matrixColumns] = signedByte(word >> (8 * i))
			}
		}
	}
}

func signedByte(word uint32) uint32 { return uint32(int32(int8(word))) }

// matrixBytes is the size of a row of an 8x8 matrix of 16-bit elements.
const matrixBytes = 16

// matrixAccess decodes ldmatrix d, [a] and stmatrix [a], d.
func (d *decoder) matrixAccess(in *instruction) error {
	if err := d.modifiers("sync", "aligned", "m8n8", "x1", "x2", "x4", "trans", "shared", "shared::cta"); err != nil {
		return err
	}
	if err := d.operands(2); err != nil {
		return err
	}
	count := slices.IndexFunc([]string{"x1", "x2", "", "x4"}, d.in.Has) + 1
	if count == 0 || !d.in.Has("sync") || !d.in.Has("m8n8") || d.typ() != ptx.B16 {
		return d.unsupported("only .sync.aligned.m8n8 on .b16")
	}
	isLoad := d.in.Opcode == "ldmatrix"
	data, address := &d.in.Operands[0], &d.in.Operands[1]
	if !isLoad {
		data, address = address, data
	}
	slots, err := d.registers(data, count, isLoad)
	if err != nil {
		return err
	}
	a := d.plainAccess(ptx.Shared, matrixBytes)
	a.slots = slots
	in.op, in.access = opSpecial, a
	in.extra = &extra{run: (*worker).storeMatrices}
	if isLoad {
		in.extra.run = (*worker).loadMatrices
	}
	if d.in.Has("trans") {
		in.extra.mode = "trans"
	}
	return d.addressOperand(a, address)
}

// plainAccess is an access of 4, 8 or 16 bytes a lane.
func (d *decoder) plainAccess(space ptx.Space, size int) *memoryAccess {
	a := &memoryAccess{space: space, size: 4, vector: size / 4, base: noSlot, index: len(d.k.accesses)}
	d.k.accesses = append(d.k.accesses, a)
	return a
}

// matrixRowsOf finds the rows of the matrices: lane i has the address of row i%8 of matrix i/8.
func (w *worker) matrixRowsOf(wp *warp, in *instruction, mask uint32, need runtime.Access, p *places) (lanes uint32, fault *Fault) {
	if fault := w.wholeWarp(wp, in, mask); fault != nil {
		return 0, fault
	}
	lanes = warpFull >> (32 - 8*len(in.access.slots))
	if _, fault := w.resolve(wp, in, lanes, need, p); fault != nil {
		return 0, fault
	}
	return lanes, w.checkInFlight(wp, in, lanes, p, need)
}

func (w *worker) loadMatrices(wp *warp, in *instruction, mask uint32) *Fault {
	var p places
	lanes, fault := w.matrixRowsOf(wp, in, mask, runtime.Read, &p)
	if fault != nil {
		return fault
	}
	if !w.sharedReady {
		if fault := w.checkWritten(wp, in, lanes, &p); fault != nil {
			return fault
		}
	}
	data := p.region.data
	for matrix, slot := range in.access.slots {
		d, rows := &wp.r32[slot], (*[8]uint64)(p.offset[matrix*8:])
		if in.extra.mode == "trans" {
			for lane := range d {
				column := uint64(lane / 4 * 2)
				upper, lower := rows[lane%4*2]+column, rows[lane%4*2+1]+column
				d[lane] = uint32(binary.LittleEndian.Uint16(data[upper:])) | uint32(binary.LittleEndian.Uint16(data[lower:]))<<16
			}
			continue
		}
		for i, offset := range rows {
			row := (*[matrixBytes]byte)(data[offset:])
			for j := range 4 {
				d[i*4+j] = binary.LittleEndian.Uint32(row[j*4:])
			}
		}
	}
	return nil
}

func (w *worker) storeMatrices(wp *warp, in *instruction, mask uint32) *Fault {
	var p places
	lanes, fault := w.matrixRowsOf(wp, in, mask, runtime.Write, &p)
	if fault != nil {
		return fault
	}
	data := p.region.data
	for matrix, slot := range in.access.slots {
		rows := (*[8]uint64)(p.offset[matrix*8:])
		for lane, v := range &wp.r32[slot] {
			if in.extra.mode == "trans" {
				column := uint64(lane / 4 * 2)
				binary.LittleEndian.PutUint16(data[rows[lane%4*2]+column:], uint16(v))
				binary.LittleEndian.PutUint16(data[rows[lane%4*2+1]+column:], uint16(v>>16))
			} else {
				binary.LittleEndian.PutUint32(data[rows[lane/4]+uint64(lane%4*4):], v)
			}
		}
	}
	if !w.sharedReady {
		markWritten(&p, lanes, matrixBytes)
	}
	if wp.warpgroup != nil {
		w.noteWrites(wp, lanes, &p.offset, matrixBytes)
	}
	return nil
}

// transposeMatrix decodes movmatrix.sync.aligned.m8n8.trans.b16 d, a.
func (d *decoder) transposeMatrix(in *instruction) error {
	if strings.Join(d.in.Modifiers, ".") != "sync.aligned.m8n8.trans.b16" {
		return d.unsupported("this form of movmatrix")
	}
	in.op, in.extra = opSpecial, &extra{run: (*worker).transposeMatrix}
	return d.sources(in, ptx.B32, ptx.B32)
}

func (w *worker) transposeMatrix(wp *warp, in *instruction, mask uint32) *Fault {
	if fault := w.wholeWarp(wp, in, mask); fault != nil {
		return fault
	}
	a := wp.r32[in.a]
	element := func(row, column int) uint32 { return a[row*4+column/2] >> (column % 2 * 16) & 0xffff }
	d := &wp.r32[in.d]
	for lane := range d {
		row, column := lane/4, lane%4*2
		d[lane] = element(column, row) | element(column+1, row)<<16
	}
	return nil
}
