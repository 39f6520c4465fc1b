package emu

import (
	"math"
	"math/bits"
)

// How a tensor core sums. It does not round after each addition: for every element of D it
// takes the exact products of a row of A and a column of B and the element of C, aligns all of
// them to the largest exponent, cuts each off (toward zero) alignedFraction bits below that
// exponent, adds what is left exactly, and cuts the sum to a float32. The exponent of a product
// is the sum of its factors' exponents, though its value may reach 4; a subnormal factor or C
// has its format's smallest exponent, a zero none, and the largest exponent counts as -133 if it
// is below. A result of zero is positive.
//
// These are Hopper's rules, with one step for 16 products of 16-bit factors or 8 of tf32: an
// H200 gave the same bits for 786,432 elements, see TestMatrixProduct (which leaves open
// whether -133 is not -132). Published studies have the same rules but for that number (MMA-Sim,
// arXiv 2511.10909; arXiv 2512.07004). By them Ampere and Ada take steps of half that length and
// keep one bit less: their results differ by less than 2^-19 of the power of two of the largest
// term and three units in the last place of the largest sum. Of the exact result, this one is
// short by less than 2^-20 of that power and one unit.
const alignedFraction = 25

const (
	matrixRows      = 16 // of A and D
	matrixColumns   = 8  // of B and D
	maxInner        = 32 // columns of A, rows of B
	noExponent      = -1024
	lowestExponent  = -126 // of float32
	lowestTop       = -133
	float32Fraction = 23
)

// factorFormat is the format of A's and B's elements.
type factorFormat struct {
	fraction uint // stored fraction bits
	exponent uint // exponent bits
	ignored  uint // low bits of the register that do not count
}

var (
	factorBF16 = factorFormat{fraction: 7, exponent: 8}
	factorF16  = factorFormat{fraction: 10, exponent: 5}
	factorTF32 = factorFormat{fraction: 10, exponent: 8, ignored: 13}
)

// split gives the parts of an element, which is worth significand*2^(exponent-fraction).
// An infinity or NaN is special; its parts mean nothing.
func (f factorFormat) split(x uint32) (significand, exponent int32, special bool) {
	const word = 31 // tells the compiler that no shift is longer
	x >>= f.ignored & word
	top := uint32(1)<<(f.exponent&word) - 1
	e := x >> (f.fraction & word) & top
	normal := min(e, 1)
	hidden := uint32(1) << (f.fraction & word)
	m := int32(x&(hidden-1) | -normal&hidden)
	sign := -int32(x >> ((f.fraction + f.exponent) & word) & 1)
	exponent = int32(e+1-normal) - int32(top>>1)
	if m == 0 {
		exponent = noExponent
	}
	return m ^ sign - sign, exponent, e == top
}

// value is an element as a float64.
func (f factorFormat) value(x uint32) float64 {
	m, e, special := f.split(x)
	switch {
	case !special:
		return math.Ldexp(float64(m), int(e)-int(f.fraction))
	case x>>f.ignored&(1<<f.fraction-1) != 0:
		return math.NaN()
	}
	return math.Inf(int(m))
}

// product is the working memory of one matrix product, D = A*B + C.
type product struct {
	inner      int                               // columns of A, rows of B
	rawA       [matrixRows * maxInner]uint32     // bits of the elements, maxInner a row
	rawB       [maxInner * matrixColumns]uint32  // B's rows one after the other
	c          [matrixRows][matrixColumns]uint32 // bits of C, then of D
	valueA     [matrixRows * maxInner]int32      // significands, shifted so that products have alignedFraction bits
	exponentA  [matrixRows * maxInner]int32
	valueB     [maxInner * matrixColumns]int32
	exponentB  [maxInner * matrixColumns]int32
	top        [matrixRows][matrixColumns]int32 // largest exponent; C's at first
	sum        [matrixRows][matrixColumns]int32 // of the aligned products
	specialRow [matrixRows]bool                 // A has an infinity or NaN there
	special    [matrixColumns]bool              // so has B
}

// multiplyFloat computes D from float factors.
func (p *product) multiplyFloat(f factorFormat) {
	p.unpackA(f)
	p.multiplyUnpacked(f)
}

// multiplyUnpacked is multiplyFloat for an A that unpackA has split.
func (p *product) multiplyUnpacked(f factorFormat) {
	p.unpackB(f)
	alignProducts(p)
	for i := range p.c {
		for j, c := range p.c[i] {
			if p.specialRow[i] || p.special[j] || c&0x7f800000 == 0x7f800000 {
				p.c[i][j] = p.specialSum(f, i, j)
			} else {
				p.c[i][j] = finishSum(p.sum[i][j], p.top[i][j], c)
			}
		}
	}
}

// unpackA splits the elements of A.
func (p *product) unpackA(f factorFormat) {
	p.specialRow = [matrixRows]bool{}
	if splitElements(f, p.rawA[:], p.valueA[:], p.exponentA[:], alignedFraction-2*f.fraction) { // one call for all rows, though some columns mean nothing
		for i := range matrixRows {
			for _, x := range p.row(i) {
				_, _, special := f.split(x)
				p.specialRow[i] = p.specialRow[i] || special
			}
		}
	}
}

// row is a row of A.
func (p *product) row(i int) []uint32 { return p.rawA[i*maxInner:][:p.inner] }

// unpackB splits the elements of B, and takes the exponents of C.
func (p *product) unpackB(f factorFormat) {
	for i := range p.c {
		for j, c := range p.c[i] {
			_, e := splitFloat32(c)
			p.top[i][j] = max(e, lowestTop)
		}
	}
	p.special = [matrixColumns]bool{}
	n := p.inner * matrixColumns
	if splitElements(f, p.rawB[:n], p.valueB[:n], p.exponentB[:n], 0) {
		for i, x := range p.rawB[:n] {
			_, _, special := f.split(x)
			p.special[i%matrixColumns] = p.special[i%matrixColumns] || special
		}
	}
}

// splitPortable splits elements, with significands shifted left, and reports whether one is special.
func splitPortable(f factorFormat, raw []uint32, significand, exponent []int32, shift uint) bool {
	special := false
	significand, exponent = significand[:len(raw)], exponent[:len(raw)]
	for i, x := range raw {
		m, e, s := f.split(x)
		significand[i], exponent[i] = m<<(shift&31), e
		special = special || s
	}
	return special
}

// splitFloat32 is factorFormat.split for C.
func splitFloat32(x uint32) (significand, exponent int32) {
	e := x >> float32Fraction & 0xff
	normal := min(e, 1)
	m := int32(x&(1<<float32Fraction-1) | normal<<float32Fraction)
	sign := int32(x) >> 31
	exponent = int32(e+1-normal) - 127
	if m == 0 {
		exponent = noExponent
	}
	return m ^ sign - sign, exponent
}

// alignPortable finds the largest exponents and sums the products, aligned to them.
func alignPortable(p *product) {
	for i := range p.top {
		top, sum := p.top[i], [matrixColumns]int32{}
		for k, e := range p.exponentA[i*maxInner:][:p.inner] {
			for j, other := range p.exponentB[k*matrixColumns:][:matrixColumns] {
				top[j] = max(top[j], e+other)
			}
		}
		for k, a := range p.valueA[i*maxInner:][:p.inner] {
			e, other := p.exponentA[i*maxInner+k], p.exponentB[k*matrixColumns:][:matrixColumns]
			for j, b := range p.valueB[k*matrixColumns:][:matrixColumns] {
				sum[j] += shiftToZero(a*b, top[j]-e-other[j])
			}
		}
		p.top[i], p.sum[i] = top, sum
	}
}

// shiftToZero divides by a power of two and drops the fraction.
func shiftToZero(v, shift int32) int32 {
	sign := v >> 31
	return int32(uint32(v^sign-sign)>>uint32(shift)) ^ sign - sign
}

// finishSum adds C and cuts the sum to float32.
func finishSum(sum, top int32, c uint32) uint32 {
	m, e := splitFloat32(c)
	total := int64(sum) + int64(shiftToZero(m<<(alignedFraction-float32Fraction), top-e))
	if total == 0 {
		return 0
	}
	sign := uint32(0)
	if total < 0 {
		sign, total = 1<<31, -total
	}
	// The result is total*2^(top-alignedFraction).
	length := int32(bits.Len64(uint64(total)))
	e = top - alignedFraction + length - 1
	switch {
	case e > 127:
		return sign | 0x7f800000
	case e < lowestExponent: // subnormal, in units of 2^-149
		if up := top - alignedFraction - lowestExponent + float32Fraction; up >= 0 {
			total <<= up
		} else if total >>= -up; total == 0 {
			return 0
		}
		return sign | uint32(total)
	case length > float32Fraction+1:
		total >>= length - float32Fraction - 1
	default:
		total <<= float32Fraction + 1 - length
	}
	return sign | uint32(e+127)<<float32Fraction | uint32(total)&(1<<float32Fraction-1)
}

// specialSum is an element of D with an infinity or NaN among its terms.
func (p *product) specialSum(f factorFormat, i, j int) uint32 {
	sum := float64(math.Float32frombits(p.c[i][j]))
	for k, a := range p.row(i) {
		sum += f.value(a) * f.value(p.rawB[k*matrixColumns+j])
	}
	switch {
	case math.IsNaN(sum):
		return nan32
	case sum < 0:
		return 0xff800000
	}
	return 0x7f800000
}

// multiplyInteger computes D from signed bytes.
func (p *product) multiplyInteger() {
	for i := range p.c {
		d := &p.c[i]
		for k, a := range p.row(i) {
			for j, b := range p.rawB[k*matrixColumns:][:matrixColumns] {
				d[j] += a * b
			}
		}
	}
}

// What has a vector twin.
var (
	alignProducts = alignFunction()
	splitElements = splitFunction()
)
