package elementary

// Body is a function's code: it emits (or, on Host, performs) the operations on m and returns the result.
type Body[V any] func(m Machine[V], args ...V) V

// Info describes a function.
type Info struct {
	Name   string  // StableHLO's or CHLO's operator name
	Arity  int     // 1 or 2
	ULP32  float64 // largest measured error of the float32 body, in units in the last place
	ULP64  float64 // largest measured error of the float64 body
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
		unary(Info{Name: "acos"}, acos[V], acos[V]),
		unary(Info{Name: "acosh"}, acosh[V], acosh[V]),
		unary(Info{Name: "asin"}, asin[V], asin[V]),
		unary(Info{Name: "asinh"}, asinh[V], asinh[V]),
		unary(Info{Name: "atan"}, atan[V], atan[V]),
		binary(Info{Name: "atan2"}, atan2[V], atan2[V]),
		unary(Info{Name: "atanh"}, atanh[V], atanh[V]),
		unary(Info{Name: "cbrt"}, cbrt[V], cbrt[V]),
		unary(Info{Name: "ceil"}, rounding[V](Ceil), rounding[V](Ceil)),
		unary(Info{Name: "cosh"}, cosh[V], cosh[V]),
		unary(Info{Name: "cosine"}, cosine[V], cosine[V]),
		unary(Info{Name: "digamma"}, inDouble(digamma[V]), digamma[V]),
		unary(Info{Name: "erf"}, erf32[V], erf64[V]),
		unary(Info{Name: "erf_inv"}, erfInv[V], erfInv[V]),
		unary(Info{Name: "erfc"}, erfc[V], erfc[V]),
		unary(Info{Name: "exponential"}, exponential[V], exponential[V]),
		unary(Info{Name: "exponential_base2"}, exponentialBase2[V], exponentialBase2[V]),
		unary(Info{Name: "exponential_minus_one"}, exponentialMinusOne[V], exponentialMinusOne[V]),
		unary(Info{Name: "floor"}, rounding[V](Floor), rounding[V](Floor)),
		unary(Info{Name: "lgamma"}, inDouble(lgamma[V]), lgamma[V]),
		unary(Info{Name: "log"}, logarithm[V], logarithm[V]),
		unary(Info{Name: "log2"}, log2[V], log2[V]),
		unary(Info{Name: "log_plus_one"}, logPlusOne[V], logPlusOne[V]),
		unary(Info{Name: "logistic"}, logistic[V], logistic[V]),
		binary(Info{Name: "power"}, power[V], power[V]),
		binary(Info{Name: "remainder"}, remainder[V], remainder[V]),
		unary(Info{Name: "round_nearest_afz"}, roundAwayFromZero[V], roundAwayFromZero[V]),
		unary(Info{Name: "round_nearest_even"}, rounding[V](NearestEven), rounding[V](NearestEven)),
		unary(Info{Name: "rsqrt"}, rsqrt[V], rsqrt[V]),
		unary(Info{Name: "sine"}, sine[V], sine[V]),
		unary(Info{Name: "sinh"}, sinh[V], sinh[V]),
		unary(Info{Name: "tan"}, tan[V], tan[V]),
		unary(Info{Name: "tanh"}, tanh[V], tanh[V]),
		unary(Info{Name: "trunc"}, rounding[V](Trunc), rounding[V](Trunc)),
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
