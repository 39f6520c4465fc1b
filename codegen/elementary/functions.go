package elementary

// Body is a function's code: it emits (or, on Host, performs) the operations on m and returns the result.
type Body[V any] func(m Machine[V], args ...V) V

// Info describes a function.
type Info struct {
	Name   string  // StableHLO's or CHLO's operator name
	Arity  int     // 1 or 2
	ULP32  float64 // bound of the measured error of the float32 body, in units in the last place
	ULP64  float64 // bound of the measured error of the float64 body; of digamma and lgamma for positive arguments only
	Doc    string  // what it computes, special cases
	Method string  // how
}

// Function is a function over the values of a Machine[V].
type Function[V any] struct {
	Info
	F32, F64 Body[V]
}

// Functions returns all functions, sorted by name.
func Functions[V any]() []Function[V] {
	return []Function[V]{
		unary(Info{Name: "acos", ULP32: 1.07, ULP64: 1.15,
			Doc:    "arc cosine; NaN outside [-1, 1]",
			Method: "pi/2 - asin up to 1/2; beyond, 2 asin(sqrt((1-|x|)/2)), reflected for x < 0"}, acos[V], acos[V]),
		unary(Info{Name: "acosh", ULP32: 1.97, ULP64: 1.6,
			Doc:    "inverse hyperbolic cosine; NaN below 1",
			Method: "log1p(t + sqrt(2t + t^2)) with t = x-1 and the rounding of root and sum carried along"}, acosh[V], acosh[V]),
		unary(Info{Name: "asin", ULP32: 1.11, ULP64: 1.15,
			Doc:    "arc sine; NaN outside [-1, 1]",
			Method: "odd polynomial up to 1/2; beyond, pi/2 - 2 asin(sqrt((1-|x|)/2))"}, asin[V], asin[V]),
		unary(Info{Name: "asinh", ULP32: 1.89, ULP64: 1.8,
			Doc:    "inverse hyperbolic sine",
			Method: "log1p(t + t^2/(1+sqrt(1+t^2))) with t = |x| and the rounding of the sum carried along"}, asinh[V], asinh[V]),
		unary(Info{Name: "atan", ULP32: 1.37, ULP64: 1.6,
			Doc:    "arc tangent; ±pi/2 at infinities",
			Method: "odd polynomial up to 1, pi/2 - atan(1/|x|) beyond"}, atan[V], atan[V]),
		binary(Info{Name: "atan2", ULP32: 1.6, ULP64: 1.6,
			Doc:    "angle of the point (y, x), with C's rules for zeros and infinities; the first argument is y",
			Method: "atan of the smaller coordinate over the larger, moved to its octant"}, atan2[V], atan2[V]),
		unary(Info{Name: "atanh", ULP32: 1.08, ULP64: 1.15,
			Doc:    "inverse hyperbolic tangent; ±Inf at ±1, NaN outside",
			Method: "odd polynomial up to 1/2, log1p(2t/(1-t))/2 with t = |x| beyond"}, atanh[V], atanh[V]),
		unary(Info{Name: "cbrt", ULP32: 0.81, ULP64: 0.75,
			Doc:    "cube root",
			Method: "estimate of 1/cbrt(x) by dividing the exponent, third-order Newton steps, one step on the exact remainder"}, cbrt[V], cbrt[V]),
		unary(Info{Name: "ceil", ULP32: 0, ULP64: 0,
			Doc:    "smallest integer not below x",
			Method: "one instruction"}, rounding[V](Ceil), rounding[V](Ceil)),
		unary(Info{Name: "cosh", ULP32: 1.36, ULP64: 1.4,
			Doc:    "hyperbolic cosine",
			Method: "e^|x|/2 + e^-|x|/2, the second from the reciprocal of the first"}, cosh[V], cosh[V]),
		unary(Info{Name: "cosine", ULP32: 1.1, ULP64: 1.1,
			Doc:    "cosine, for all finite arguments; NaN at infinities",
			Method: "Payne-Hanek reduction to [-pi/4, pi/4] in two parts, even polynomial"}, cosine[V], cosine[V]),
		unary(Info{Name: "digamma", ULP32: 0.51, ULP64: 1.95,
			Doc:    "derivative of log Gamma(x); ∓Inf at ±0, NaN at negative integers",
			Method: "polynomial around the positive zero, which is a factor; recurrence up to 6, asymptotic series beyond, reflection for x < 0; float32 in float64"}, inDouble(digamma[V]), digamma[V]),
		unary(Info{Name: "erf", ULP32: 1.99, ULP64: 0.95,
			Doc:    "error function",
			Method: "h - h^2/4 with a polynomial h = 2(1 - sqrt(erfc)) (float32); odd polynomial up to 27/32, 1 - erfc beyond (float64)"}, erf32[V], erf64[V]),
		unary(Info{Name: "erf_inv", ULP32: 1.62, ULP64: 1.9,
			Doc:    "inverse error function; ±Inf at ±1, NaN outside",
			Method: "x P(w) with w = -log1p(-x^2), polynomials in w or its root; float64 has an odd polynomial up to 1/2"}, erfInv[V], erfInv[V]),
		unary(Info{Name: "erfc", ULP32: 1.91, ULP64: 1.95,
			Doc:    "1 - erf(x), without cancellation",
			Method: "1 - erf up to 3/4; beyond, exp(-x^2) Q((x-k)/(x+k))/(1+2x), with the roundings of x^2, quotient and Q carried along"}, erfc[V], erfc[V]),
		unary(Info{Name: "exponential", ULP32: 0.9, ULP64: 0.95,
			Doc:    "e^x",
			Method: "x = n ln 2 + r, polynomial in r, scaling by 2^n in two steps so that denormals round once"}, exponential[V], exponential[V]),
		unary(Info{Name: "exponential_base2", ULP32: 0.89, ULP64: 0.85,
			Doc:    "2^x",
			Method: "x = n + r, polynomial in r, scaling as for exponential"}, exponentialBase2[V], exponentialBase2[V]),
		unary(Info{Name: "exponential_minus_one", ULP32: 1.57, ULP64: 1.95,
			Doc:    "e^x - 1, accurate near 0",
			Method: "2^n (e^r - 1) + (2^n - 1)"}, exponentialMinusOne[V], exponentialMinusOne[V]),
		unary(Info{Name: "floor", ULP32: 0, ULP64: 0,
			Doc:    "largest integer not above x",
			Method: "one instruction"}, rounding[V](Floor), rounding[V](Floor)),
		unary(Info{Name: "lgamma", ULP32: 0.51, ULP64: 1.6,
			Doc:    "log |Gamma(x)|; +Inf at integers up to 0 and at both infinities",
			Method: "polynomials on [1/2, 5/2) with the zeros 1 and 2 as factors, recurrence up to 8, Stirling's series beyond, reflection for x < 0; float32 in float64"}, inDouble(lgamma[V]), lgamma[V]),
		unary(Info{Name: "log", ULP32: 0.93, ULP64: 0.9,
			Doc:    "natural logarithm; -Inf at 0, NaN below",
			Method: "x = 2^e (1+f), polynomial in f (float32) or in the square of f/(2+f) (float64)"}, logarithm[V], logarithm[V]),
		unary(Info{Name: "log2", ULP32: 1.43, ULP64: 0.75,
			Doc:    "logarithm to base 2; -Inf at 0, NaN below",
			Method: "as log, times 1/ln 2 in two parts"}, log2[V], log2[V]),
		unary(Info{Name: "log_plus_one", ULP32: 1.57, ULP64: 1.5,
			Doc:    "log(1 + x), accurate near 0; -Inf at -1, NaN below",
			Method: "1+x = 2^e (1+f) with f from x itself, then as log"}, logPlusOne[V], logPlusOne[V]),
		unary(Info{Name: "logistic", ULP32: 1.49, ULP64: 1.45,
			Doc:    "1/(1+e^-x)",
			Method: "e^-|x| and one quotient, corrected by its remainder"}, logistic[V], logistic[V]),
		binary(Info{Name: "power", ULP32: 1.1, ULP64: 1.1,
			Doc:    "x^y with C's special cases; a negative x with an integer y has y's parity as sign",
			Method: "exp(y log|x|) with the logarithm and the product in two parts"}, power[V], power[V]),
		binary(Info{Name: "remainder", ULP32: 0, ULP64: 0,
			Doc:    "C's fmod, exact; the sign of x; NaN for y = 0 or infinite x",
			Method: "2^(difference of exponents) modulo the significand of y by repeated squaring in exact arithmetic"}, remainder[V], remainder[V]),
		unary(Info{Name: "round_nearest_afz", ULP32: 0, ULP64: 0,
			Doc:    "nearest integer, halves away from zero",
			Method: "truncation and a comparison"}, roundAwayFromZero[V], roundAwayFromZero[V]),
		unary(Info{Name: "round_nearest_even", ULP32: 0, ULP64: 0,
			Doc:    "nearest integer, halves to even",
			Method: "one instruction"}, rounding[V](NearestEven), rounding[V](NearestEven)),
		unary(Info{Name: "rsqrt", ULP32: 0.51, ULP64: 0.51,
			Doc:    "1/sqrt(x); ±Inf at ±0, NaN below",
			Method: "reciprocal of the root, corrected by the remainder 1 - x y^2"}, rsqrt[V], rsqrt[V]),
		unary(Info{Name: "sine", ULP32: 1.09, ULP64: 1.1,
			Doc:    "sine, for all finite arguments; NaN at infinities",
			Method: "Payne-Hanek reduction to [-pi/4, pi/4] in two parts, odd polynomial"}, sine[V], sine[V]),
		unary(Info{Name: "sinh", ULP32: 1.63, ULP64: 1.7,
			Doc:    "hyperbolic sine",
			Method: "odd polynomial up to 1, e^|x|/2 - e^-|x|/2 beyond"}, sinh[V], sinh[V]),
		unary(Info{Name: "tan", ULP32: 1.74, ULP64: 1.7,
			Doc:    "tangent, for all finite arguments; NaN at infinities",
			Method: "Payne-Hanek reduction, odd polynomial, reciprocal in odd quadrants"}, tan[V], tan[V]),
		unary(Info{Name: "tanh", ULP32: 1.37, ULP64: 1.45,
			Doc:    "hyperbolic tangent",
			Method: "odd polynomial up to 5/8, 1 - 2/(e^2|x| + 1) beyond"}, tanh[V], tanh[V]),
		unary(Info{Name: "trunc", ULP32: 0, ULP64: 0,
			Doc:    "x without its fraction",
			Method: "one instruction"}, rounding[V](Trunc), rounding[V](Trunc)),
	}
}

// Lookup returns the function with the given name.
func Lookup[V any](name string) (Function[V], bool) {
	for _, f := range Functions[V]() {
		if f.Name == name {
			return f, true
		}
	}
	return Function[V]{}, false
}

func unary[V any](info Info, f32, f64 func(c calc[V], x V) V) Function[V] {
	info.Arity = 1
	return Function[V]{
		Info: info,
		F32:  func(m Machine[V], args ...V) V { return f32(calc[V]{binary32, m}, args[0]) },
		F64:  func(m Machine[V], args ...V) V { return f64(calc[V]{binary64, m}, args[0]) },
	}
}

func binary[V any](info Info, f32, f64 func(c calc[V], x, y V) V) Function[V] {
	info.Arity = 2
	return Function[V]{
		Info: info,
		F32:  func(m Machine[V], args ...V) V { return f32(calc[V]{binary32, m}, args[0], args[1]) },
		F64:  func(m Machine[V], args ...V) V { return f64(calc[V]{binary64, m}, args[0], args[1]) },
	}
}
