package emu

// chunkBytes is the unit in which the tensor cores read shared memory, aligned to itself.
const (
	chunkBytes    = 16
	chunkElements = 8 // of 16 bits
	chunkMask     = 1<<chunkBytes - 1
)

// descriptor is a matrix descriptor: how a matrix lies in shared memory, in bytes. The canonical
// layouts are those of the PTX ISA, "Strides" of wgmma. Addresses are swizzled last, whole, so
// that a start may lie within the pattern, which repeats from multiples of its own length on.
type descriptor struct {
	start   uint32
	leading uint32 // leading dimension byte offset
	stride  uint32 // stride dimension byte offset
	width   uint32 // of a row of the pattern: 128, 64 or 32, 16 without swizzle
	swizzle uint32 // address bits that are flipped by those three above them
	problem string
}

// decodeDescriptor takes a descriptor apart.
func decodeDescriptor(bits uint64) descriptor {
	field := func(shift uint) uint32 { return uint32(bits>>shift&0x3fff) << 4 }
	d := descriptor{start: field(0), leading: field(16), stride: field(32)}
	switch bits >> 62 {
	case 0:
		d.width = 16
	case 1:
		d.width, d.swizzle = 128, 0x70
	case 2:
		d.width, d.swizzle = 64, 0x30
	case 3:
		d.width, d.swizzle = 32, 0x10
	}
	const fields = 3<<62 | 7<<49 | 0x3fff<<32 | 0x3fff<<16 | 0x3fff
	if bits>>49&7 != 0 {
		d.problem = "a base offset is not supported"
	} else if bits&^fields != 0 {
		d.problem = "bits outside of its fields are set"
	}
	return d
}

// unit lists the 16 chunks of eight rows from 8*unit on.
func (d *descriptor) unit(unit uint32, transposed bool, chunks []uint32) []uint32 {
	if transposed {
		return d.columns(unit, chunks)
	}
	return d.rows(unit, chunks)
}

// rows lists the chunks of eight rows from 8*unit on whose 16 k lie side by side: two a row.
func (d *descriptor) rows(unit uint32, chunks []uint32) []uint32 {
	next := uint32(chunkBytes) // of the second half of k
	if d.swizzle == 0 {
		next = d.leading
	}
	for row := range uint32(unitRows) {
		at := d.start + unit*d.stride + row*d.width
		chunks = append(chunks, d.flip(at), d.flip(at+next))
	}
	return chunks
}

// columns lists the chunks of eight rows from 8*unit on that lie side by side: one a k.
func (d *descriptor) columns(unit uint32, chunks []uint32) []uint32 {
	across := d.width / chunkBytes // units in a row of the pattern
	outer, inner := d.leading, d.stride
	if d.swizzle == 0 {
		outer, inner = d.stride, d.leading
	}
	for k := range uint32(warpgroupInner) {
		at := d.start + unit/across*outer + unit%across*chunkBytes + k/8*inner + k%8*d.width
		chunks = append(chunks, d.flip(at))
	}
	return chunks
}

func (d *descriptor) flip(at uint32) uint32 { return at ^ at>>3&d.swizzle }
