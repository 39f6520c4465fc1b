package emu

//go:noescape
func vectorAlign(valueA, exponentA *[512]int32, valueB, exponentB *[256]int32, top, sum *[16][8]int32, inner int)

// splitConstants are a format as vectorSplit wants it.
type splitConstants struct {
	ignored, fraction, toSign, shift uint64 // lengths of shifts
	largest, hidden, mask, bias      uint32
	none                             int32
}

//go:noescape
func vectorSplit(raw *uint32, significand, exponent *int32, count int, c *splitConstants) (special uint32)

// alignFunction is alignPortable or its vector twin.
func alignFunction() func(*product) {
	if !hasVectors {
		return alignPortable
	}
	return func(p *product) {
		vectorAlign(&p.valueA, &p.exponentA, &p.valueB, &p.exponentB, &p.top, &p.sum, p.inner)
	}
}

// splitFunction is splitPortable or its vector twin.
func splitFunction() func(f factorFormat, raw []uint32, significand, exponent []int32, shift uint) bool {
	if !hasVectors {
		return splitPortable
	}
	return func(f factorFormat, raw []uint32, significand, exponent []int32, shift uint) bool {
		n := len(raw)
		if n == 0 || n%8 != 0 || len(significand) < n || len(exponent) < n {
			return splitPortable(f, raw, significand, exponent, shift)
		}
		c := splitConstants{
			ignored: uint64(f.ignored), fraction: uint64(f.fraction), toSign: uint64(31 - f.fraction - f.exponent), shift: uint64(shift),
			largest: 1<<f.exponent - 1, hidden: 1 << f.fraction, mask: 1<<f.fraction - 1, bias: 1<<(f.exponent-1) - 1, none: noExponent,
		}
		return vectorSplit(&raw[0], &significand[0], &exponent[0], n, &c) != 0
	}
}
