package eval

import (
	"math"
	"testing"

	"weft/ir"
)

// TestPhilox holds the known answers of Random123's tests.
func TestPhilox(t *testing.T) {
	const ones = math.MaxUint64
	for _, test := range []struct {
		key, low, high uint64
		want           [4]uint32
	}{
		{0, 0, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{ones, ones, ones, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(test.key, test.low, test.high); got != test.want {
			t.Errorf("philox(%x, %x, %x) = %x, not %x", test.key, test.low, test.high, got, test.want)
		}
	}
}

// TestRandomMoments compares mean, variance and, for uniform numbers, the counts of 16 equal parts with
// what they should be, for a fixed seed.
func TestRandomMoments(t *testing.T) {
	const n = 1 << 16
	for _, test := range []struct {
		distribution   ir.Distribution
		dtype          ir.DType
		mean, variance float64
	}{
		{ir.Uniform, ir.F32, 0.5, 1.0 / 12}, {ir.Uniform, ir.F64, 0.5, 1.0 / 12}, {ir.Uniform, ir.F16, 0.5, 1.0 / 12},
		{ir.Normal, ir.F32, 0, 1}, {ir.Normal, ir.F64, 0, 1}, {ir.Normal, ir.BF16, 0, 1},
	} {
		e := &ir.Entry{Name: "forward"}
		p := &ir.Program{Entries: []*ir.Entry{e}}
		state := ir.NewTensor(ir.I64, 2)
		state.SetInt(0, 42)
		in := e.AddInput("state", state.Type())
		b := ir.NewBuilder(p, e)
		e.AddOutput("x", "", b.Rng(in, &ir.RngAttrs{Distribution: test.distribution, Type: test.dtype, Dims: ir.Consts(n)}))
		r, err := Run(p, "forward", []*ir.Tensor{state}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sum, squares := 0.0, 0.0
		var parts [16]int
		for i := range int64(n) {
			x := r.Outputs[0].Float(i)
			sum, squares = sum+x, squares+(x-test.mean)*(x-test.mean)
			if test.distribution == ir.Uniform {
				if x < 0 || x >= 1 {
					t.Fatalf("%s: element %d is %g", test.dtype, i, x)
				}
				parts[int(x*16)]++
			}
		}
		// Four standard deviations of the estimates. Rounding down to 11 bits moves the mean by 2^-12.
		if d := math.Abs(sum/n - test.mean); d > 4*math.Sqrt(test.variance/n)+1.0/4096 {
			t.Errorf("%s %s: the mean is off by %g", test.distribution, test.dtype, d)
		}
		if v := squares / n; math.Abs(v/test.variance-1) > 4*math.Sqrt(2.0/n)+1.0/256 {
			t.Errorf("%s %s: the variance is %g, not %g", test.distribution, test.dtype, v, test.variance)
		}
		chi := 0.0
		for _, k := range parts {
			chi += float64(k-n/16) * float64(k-n/16) / (n / 16)
		}
		if test.distribution == ir.Uniform && chi > 45 { // 1 in 10,000 with 15 degrees of freedom
			t.Errorf("%s: the parts are uneven: %v", test.dtype, parts)
		}
	}
}
