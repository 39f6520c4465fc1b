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
		unary(Info{Name: "cosine"}, cosine[V], cosine[V]),
		unary(Info{Name: "erf"}, erf32[V], erf64[V]),
		unary(Info{Name: "erfc"}, erfc[V], erfc[V]),
		unary(Info{Name: "exponential"}, exponential[V], exponential[V]),
		unary(Info{Name: "exponential_base2"}, exponentialBase2[V], exponentialBase2[V]),
		unary(Info{Name: "exponential_minus_one"}, exponentialMinusOne[V], exponentialMinusOne[V]),
		unary(Info{Name: "log"}, logarithm[V], logarithm[V]),
		unary(Info{Name: "logistic"}, logistic[V], logistic[V]),
		unary(Info{Name: "sine"}, sine[V], sine[V]),
		unary(Info{Name: "tanh"}, tanh[V], tanh[V]),
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
