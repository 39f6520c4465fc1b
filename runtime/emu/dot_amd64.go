package emu

//go:noescape
func vectorAlign(valueA, exponentA *[16][32]int32, valueB, exponentB *[32][8]int32, top, sum *[16][8]int32, inner int)

// alignFunction is alignPortable or its vector twin.
func alignFunction() func(*product) {
	if !hasVectors {
		return alignPortable
	}
	return func(p *product) {
		vectorAlign(&p.valueA, &p.exponentA, &p.valueB, &p.exponentB, &p.top, &p.sum, p.inner)
	}
}
