package comm

import (
	"weft/ir"
	"weft/runtime"
)

// move does the part of one rank in a collective of ranks whose memory it can touch: together
// the parts write all results, each byte once.
func move(c runtime.Collective, given []*share) {
	me, k := c.Position, int64(len(given))
	mine := given[me]
	switch c.Kind {
	case "all_reduce":
		// A rank combines its part of the elements and writes it for all.
		size := int64(c.DType.Size())
		n := c.FromSize / size
		first, last := me*n/k*size, (me+1)*n/k*size
		sources := make([][]byte, k)
		for i, s := range given {
			sources[i] = s.from[first:last]
		}
		part := mine.to[first:last]
		Combine(part, sources, c.DType, c.Combine)
		for i, s := range given {
			if int64(i) != me {
				copy(s.to[first:last], part)
			}
		}
	case "reduce_scatter":
		sources := make([][]byte, k)
		for i, s := range given {
			sources[i] = s.from[me*c.ToSize : (me+1)*c.ToSize]
		}
		Combine(mine.to, sources, c.DType, c.Combine)
	case "all_gather":
		for i, s := range given {
			copy(mine.to[int64(i)*c.FromSize:], s.from)
		}
	case "all_to_all":
		size := c.FromSize / k
		for i, s := range given {
			copy(mine.to[int64(i)*size:(int64(i)+1)*size], s.from[me*size:])
		}
	default: // collective_permute
		permute(c, given)
	}
}

func permute(c runtime.Collective, given []*share) {
	to := given[c.Position].to
	for _, p := range c.Pairs {
		if p[1] == c.Position {
			copy(to, given[p[0]].from)
			return
		}
	}
	clear(to)
}

// Combine combines the elements of sources in their order: floats in at least float32, rounded
// once. All have the length of dst and are aligned to their elements.
func Combine(dst []byte, sources [][]byte, dtype ir.DType, combine ir.Combine) {
	if len(dst) == 0 {
		return
	}
	switch dtype {
	case ir.F32:
		fold(dst, sources, combine, floats[float32]())
	case ir.F64:
		fold(dst, sources, combine, floats[float64]())
	case ir.BF16:
		foldNarrow(dst, sources, combine, bf16)
	case ir.F16:
		foldNarrow(dst, sources, combine, f16())
	case ir.C32:
		foldComplexHalves(dst, sources, combine)
	case ir.C64:
		fold(dst, sources, combine, complexes[complex64]())
	case ir.C128:
		fold(dst, sources, combine, complexes[complex128]())
	case ir.I8:
		fold(dst, sources, combine, integers[int8]())
	case ir.I16:
		fold(dst, sources, combine, integers[int16]())
	case ir.I32:
		fold(dst, sources, combine, integers[int32]())
	case ir.I64:
		fold(dst, sources, combine, integers[int64]())
	case ir.U8, ir.Bool:
		fold(dst, sources, combine, integers[uint8]())
	case ir.U16:
		fold(dst, sources, combine, integers[uint16]())
	case ir.U32:
		fold(dst, sources, combine, integers[uint32]())
	case ir.U64:
		fold(dst, sources, combine, integers[uint64]())
	default:
		foldTensors(dst, sources, dtype, combine)
	}
}
