package eval

import "math"

// erfInv is the inverse of erf: infinite at -1 and 1, NaN outside. math.Erfinv's rational
// approximations are good to about 1e-16.
func erfInv(x float64) float64 { return math.Erfinv(x) }

// lgamma is the logarithm of |gamma(x)|; infinite at zero, at negative integers and at both
// infinities.
func lgamma(x float64) float64 {
	if math.IsInf(x, -1) {
		return math.Inf(1)
	}
	v, _ := math.Lgamma(x)
	return v
}

// logistic is 1/(1+exp(-x)) without overflow for large negative x.
func logistic(x float64) float64 {
	if x < 0 {
		e := math.Exp(x)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-x))
}

// Digamma's positive root, as a float64 and the rest, and its Taylor coefficients there.
const (
	digammaRoot     = 1.461632144968362341262659542325721328468
	digammaRootRest = 9.549995429965697715183199075267e-17
)

var digammaTaylor = [...]float64{
	0.96767224544762117043, -0.44276316898359210609, 0.25849976095565101062, -0.1639427054424065275,
	0.10782405069126236576, -0.072199561256454710926, 0.048804288164143107225, -0.033161126474847359292,
	0.02259764823221810466, -0.015424765904948959139, 0.010538791616612175388, -0.007204534386356868241,
	0.0049267813957298534464, -0.0033698016554393280828, 0.0023051263267349278369, -0.0015769367714301972593,
	0.0010788252019162965807, -0.00073807093899600512957, 0.00050495326583460203518, -0.00034546802510630769956,
}

// digamma is the derivative of log gamma: -inf at +0, +inf at -0, NaN at negative integers and
// -inf. Its error is about 1e-15 absolute, and relative too around the positive root; next to
// its negative roots only absolute.
func digamma(x float64) float64 {
	switch {
	case x == 0:
		return math.Copysign(math.Inf(1), -x)
	case math.IsInf(x, -1) || x < 0 && x == math.Floor(x):
		return math.NaN()
	case x < 0:
		// Reflection. The tangent has period 1 in x; reducing first keeps it exact.
		f := x - math.Round(x)
		return digamma(1-x) - math.Pi/math.Tan(math.Pi*f)
	case math.Abs(x-digammaRoot) < 0.15:
		d := (x - digammaRoot) - digammaRootRest
		sum := 0.0
		for i := len(digammaTaylor) - 1; i >= 0; i-- {
			sum = float64(sum*d) + digammaTaylor[i]
		}
		return sum * d
	}
	// psi(x) = psi(x+1) - 1/x up to 16, then the asymptotic series in 1/x^2 with the
	// Bernoulli numbers B2, B4, ... over 2, 4, ...
	shift := 0.0
	for ; x < 16; x++ {
		shift += 1 / x
	}
	z := 1 / (x * x)
	series := 0.0
	for _, b := range []float64{1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12} {
		series = float64(series*z) + b
	}
	return math.Log(x) - 0.5/x - float64(series*z) - shift
}
