package eval

import "math"

// erfInv is the inverse of erf: infinite at -1 and 1, NaN outside. math.Erfinv's rational
// approximations are good to about 1e-16.
func erfInv(x float64) float64 { return math.Erfinv(x) }

// lgamma is the logarithm of |gamma(x)|; infinite at zero, at negative integers and at both
// infinities. Between 0.5 and 2.5, where it has zeros, it is a Taylor series around 2.
func lgamma(x float64) float64 {
	switch {
	case math.IsInf(x, -1):
		return math.Inf(1)
	case x >= 0.5 && x < 1.5:
		return lgammaNear2(x-1) - math.Log1p(x-1)
	case x >= 1.5 && x < 2.5:
		return lgammaNear2(x - 2)
	}
	v, _ := math.Lgamma(x)
	return v
}

// lgammaNear2 is lgamma(2+z) for |z| <= 0.5.
func lgammaNear2(z float64) float64 {
	sum := 0.0
	for i := len(lgammaTaylor) - 1; i >= 0; i-- {
		sum = float64(sum*z) + lgammaTaylor[i]
	}
	return sum * z
}

// lgammaTaylor has 1 - Euler's constant, then (-1)^k (zeta(k)-1)/k for k = 2, 3, ...
var lgammaTaylor = [...]float64{
	0.42278433509846713939, 0.32246703342411321824, -0.067352301053198095133, 0.020580808427784547879,
	-0.0073855510286739852663, 0.0028905103307415232858, -0.0011927539117032609771, 0.00050966952474304242234,
	-0.00022315475845357937976, 0.000099457512781808533715, -0.0000449262367381331417, 0.000020507212775670691553,
	-9.439488275268395904e-6, 4.3748667899074878042e-6, -2.0392157538013662368e-6, 9.5514121304074198329e-7,
	-4.4924691987645660433e-7, 2.1207184805554665869e-7, -1.0043224823968099609e-7, 4.7698101693639805658e-8,
	-2.271109460894316491e-8, 1.0838659214896954091e-8, -5.1834750419700466551e-9, 2.4836745438024783172e-9,
	-1.1921401405860912074e-9, 5.7313672416788620133e-10, -2.7595228851242331452e-10, 1.3304764374244489481e-10,
	-6.4229645638381000221e-11,
}

// asin and acos are exact to a few ulp also next to 1, where math's lose digits.
func asin(x float64) float64 { return math.Atan2(x, math.Sqrt((1-x)*(1+x))) }

func acos(x float64) float64 { return 2 * math.Atan2(math.Sqrt(1-x), math.Sqrt(1+x)) }

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
	return log(x) - 0.5/x - float64(series*z) - shift
}

// log is math.Log, whose assembly for amd64 is wrong for denormal numbers.
func log(x float64) float64 {
	if 0 < x && x < 0x1p-1022 {
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}

// pow is math.Pow, which takes such a logarithm.
func pow(x, y float64) float64 {
	if 0 < x && x < 0x1p-1022 && !math.IsInf(y, 0) {
		return math.Pow(x*0x1p54, y) * math.Pow(2, -54*y)
	}
	return math.Pow(x, y)
}
