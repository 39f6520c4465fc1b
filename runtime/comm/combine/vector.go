package combine

// twins do what portable loops do, faster; nil for none. n is a positive multiple of lanes.
type twins struct {
	addTwo func(acc, a, b *float32, n int)
	halves [2]halfTwins // of bf16 and f16
}

type halfTwins struct {
	add   func(acc *float32, a *uint16, n int)
	widen func(out *float32, in *uint16, n int)
	round func(out *uint16, in *float32, n int)
}

// lanes is how many elements the twins take at a time.
const lanes = 16

// addTwoF32 is addTwo for float32.
func (t twins) addTwoF32(acc, a, b []float32) {
	n := 0
	if t.addTwo != nil && len(acc) >= lanes {
		n = len(acc) &^ (lanes - 1)
		t.addTwo(&acc[0], &a[:n][0], &b[:n][0], n)
	}
	addTwo(acc[n:], a[n:], b[n:])
}

// addF32 is addOne for float32.
func (t twins) addF32(acc, a []float32) { t.addTwoF32(acc, acc, a) }

// faster is a type of 16 bits with its twins put in front.
func (n narrow) faster(t halfTwins) narrow {
	portable := n
	n.add = func(acc []float32, in []uint16) {
		k := split(t.add != nil, len(acc))
		if k > 0 {
			t.add(&acc[0], &in[:k][0], k)
		}
		portable.add(acc[k:], in[k:])
	}
	n.widen = func(out []float32, in []uint16) {
		k := split(t.widen != nil, len(out))
		if k > 0 {
			t.widen(&out[0], &in[:k][0], k)
		}
		portable.widen(out[k:], in[k:])
	}
	n.round = func(out []uint16, in []float32) {
		k := split(t.round != nil, len(out))
		if k > 0 {
			t.round(&out[0], &in[:k][0], k)
		}
		portable.round(out[k:], in[k:])
	}
	return n
}

// split is how many of n elements a twin does.
func split(have bool, n int) int {
	if !have {
		return 0
	}
	return n &^ (lanes - 1)
}
