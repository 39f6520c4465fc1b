package comm

import (
	"weft/runtime"
	"weft/runtime/comm/combine"
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
		combine.Ranks(part, sources, c.DType, c.Combine)
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
		combine.Ranks(mine.to, sources, c.DType, c.Combine)
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
