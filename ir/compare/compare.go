// Package compare says how far tensors are from what was expected.
package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"weft/ir"
)

// Tolerance allows a difference of Absolute + Relative*|expected| for each element.
type Tolerance struct {
	Relative float64 `json:"rtol"`
	Absolute float64 `json:"atol"`
}

// Default is the tolerance for a type of outputs. Integers, bools and strings must be equal.
func Default(t ir.DType) Tolerance {
	switch t {
	case ir.F64, ir.C128:
		return Tolerance{1e-9, 1e-9}
	case ir.F32, ir.C64:
		return Tolerance{1e-4, 1e-5}
	case ir.F16, ir.C32:
		return Tolerance{4e-3, 2e-3}
	case ir.BF16:
		return Tolerance{2e-2, 1e-2}
	case ir.F8E4M3FN, ir.F8E4M3FNUZ: // one step of 3 mantissa bits
		return Tolerance{0.125, 0.02}
	case ir.F8E5M2, ir.F8E5M2FNUZ, ir.F4E2M1FN, ir.F8E8M0FNU: // one step of 2 bits or fewer
		return Tolerance{0.5, 0.02}
	}
	return Tolerance{}
}

// Result is the comparison of one tensor. NaN equals NaN, an infinity itself.
type Result struct {
	Tolerance  Tolerance
	Problem    string // why elements cannot be compared: type or shape differs
	Elements   int64
	Mismatches int64
	Absolute   Extreme // the largest |got - want|
	Relative   Extreme // the largest |got - want| / |want| where want is not 0
	Worst      Extreme // the mismatch farthest out of tolerance: |got - want| minus what is allowed
}

// Extreme is a largest error and the first element that has it.
type Extreme struct {
	Error     float64
	Index     []int64 // nil where there is no error
	Got, Want string
}

// Equal tells whether all elements are within the tolerance.
func (r *Result) Equal() bool { return r.Problem == "" && r.Mismatches == 0 }

// Tensors compares got with want.
func Tensors(got, want *ir.Tensor, tol Tolerance) Result {
	r := Result{Tolerance: tol}
	if got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
		r.Problem = fmt.Sprintf("is %s, expected %s", got.Type(), want.Type())
		return r
	}
	if err := want.Check(); err != nil {
		r.Problem = "expected value is damaged: " + err.Error()
		return r
	}
	r.Elements = got.Numel()
	switch {
	case got.DType == ir.String:
		r.strings(got, want)
	case got.DType.IsComplex():
		r.floats(parts(got), parts(want))
	case got.DType.IsFloat():
		r.floats(got, want)
	default:
		r.integers(got, want)
	}
	for _, e := range []*Extreme{&r.Absolute, &r.Relative, &r.Worst} {
		e.fill(got, want)
	}
	return r
}

// parts is a complex tensor as real and imaginary parts, one after the other.
func parts(t *ir.Tensor) *ir.Tensor {
	part := map[ir.DType]ir.DType{ir.C32: ir.F16, ir.C64: ir.F32, ir.C128: ir.F64}[t.DType]
	return &ir.Tensor{DType: part, Shape: append(slices.Clone(t.Shape), 2), Data: t.Data}
}

func (r *Result) floats(got, want *ir.Tensor) {
	last := int64(-1)
	width := max(1, got.Numel()/max(1, r.Elements)) // parts an element
	for i := range got.Numel() {
		g, w := got.Float(i), want.Float(i)
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		difference := math.Abs(g - w)
		if math.IsNaN(difference) {
			difference = math.Inf(1) // one of the two is NaN
		}
		at := i / width
		r.Absolute.raise(difference, at)
		if w != 0 && !math.IsInf(w, 0) && !math.IsNaN(w) {
			r.Relative.raise(difference/math.Abs(w), at)
		}
		allowed := r.Tolerance.Absolute + r.Tolerance.Relative*math.Abs(w)
		if difference <= allowed && !math.IsInf(w, 0) {
			continue
		}
		r.Worst.raise(difference-min(allowed, math.MaxFloat64), at)
		if at != last {
			r.Mismatches, last = r.Mismatches+1, at
		}
	}
}

func (r *Result) integers(got, want *ir.Tensor) {
	for i := range r.Elements {
		if got.Int(i) == want.Int(i) {
			continue
		}
		g, w := got.Float(i), want.Float(i)
		difference := max(math.Abs(g-w), 1) // large int64 values may round to the same
		r.Absolute.raise(difference, i)
		if w != 0 {
			r.Relative.raise(difference/math.Abs(w), i)
		}
		if difference > r.Tolerance.Absolute+r.Tolerance.Relative*math.Abs(w) {
			r.Mismatches++
			r.Worst.raise(difference, i)
		}
	}
}

func (r *Result) strings(got, want *ir.Tensor) {
	for i := range r.Elements {
		if got.Strings[i] != want.Strings[i] {
			r.Mismatches++
			r.Worst.raise(1, i)
		}
	}
}

// raise takes a larger error; until fill, Index holds the element's number.
func (e *Extreme) raise(v float64, element int64) {
	if v > e.Error || e.Index == nil {
		e.Error, e.Index = v, []int64{element}
	}
}

// fill turns the element's number into its index and values.
func (e *Extreme) fill(got, want *ir.Tensor) {
	if e.Index == nil {
		return
	}
	n := e.Index[0]
	e.Got, e.Want = element(got, n), element(want, n)
	e.Index = make([]int64, len(got.Shape))
	for axis := len(got.Shape) - 1; axis >= 0; axis-- {
		e.Index[axis] = n % got.Shape[axis]
		n /= got.Shape[axis]
	}
}

// element prints one element.
func element(t *ir.Tensor, i int64) string {
	switch {
	case t.DType == ir.String:
		return fmt.Sprintf("%q", t.Strings[i])
	case t.DType.IsComplex():
		p := parts(t)
		return fmt.Sprintf("(%.9g, %.9g)", p.Float(2*i), p.Float(2*i+1))
	case t.DType.IsFloat():
		return fmt.Sprintf("%.9g", t.Float(i))
	case t.DType == ir.U64:
		return fmt.Sprintf("%d", uint64(t.Int(i)))
	case t.DType == ir.Bool:
		return fmt.Sprintf("%t", t.Int(i) != 0)
	}
	return fmt.Sprintf("%d", t.Int(i))
}

// Preview prints the first n elements: "0.5 1 -2 ...".
func Preview(t *ir.Tensor, n int64) string {
	var parts []string
	for i := range min(n, t.Numel()) {
		parts = append(parts, element(t, i))
	}
	if t.Numel() > n {
		parts = append(parts, "...")
	}
	return strings.Join(parts, " ")
}

// Bits compares got with want bit for bit: 0 differs from -0, and a NaN from a NaN with another
// payload. Mismatches counts the elements that differ, Worst is the first of them.
func Bits(got, want *ir.Tensor) Result {
	r := Tensors(got, want, Tolerance{})
	if r.Problem != "" || got.DType == ir.String {
		return r
	}
	r.Mismatches, r.Worst = 0, Extreme{}
	first := int64(-1)
	for i := range r.Elements {
		if sameBits(got, want, i) {
			continue
		}
		if r.Mismatches == 0 {
			first = i
		}
		r.Mismatches++
	}
	if first >= 0 {
		r.Worst.raise(0, first)
		r.Worst.fill(got, want)
		r.Worst.Got += hex(got, first)
		r.Worst.Want += hex(want, first)
	}
	return r
}

// sameBits compares one element. Types that are packed into bytes have no two NaNs that differ.
func sameBits(a, b *ir.Tensor, i int64) bool {
	width := int64(a.DType.Bits()) / 8
	if width == 0 {
		return a.Float(i) == b.Float(i) && math.Signbit(a.Float(i)) == math.Signbit(b.Float(i))
	}
	return string(a.Data[i*width:(i+1)*width]) == string(b.Data[i*width:(i+1)*width])
}

// hex prints the bits of a float: " (0x7fc00000)".
func hex(t *ir.Tensor, i int64) string {
	width := int64(t.DType.Bits()) / 8
	if !t.DType.IsFloat() || width == 0 {
		return ""
	}
	bytes := slices.Clone(t.Data[i*width : (i+1)*width])
	slices.Reverse(bytes)
	return fmt.Sprintf(" (0x%x)", bytes)
}
