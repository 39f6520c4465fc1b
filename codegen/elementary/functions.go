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
