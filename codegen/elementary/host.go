package elementary

import "math"

// Host is the Machine of plain Go numbers. A value is the bit pattern of its type in the low bits of a uint64, the
// rest zero. Its results are the same on every platform: what a GPU computes for a kernel, Host computes on the CPU.
type Host struct{}

var _ Machine[uint64] = Host{}

// EvaluateF32 applies a function to float32 arguments on the Host machine.
func EvaluateF32(f Function[uint64], args ...float32) float32 {
	var bits [2]uint64
	for i, a := range args {
		bits[i] = uint64(math.Float32bits(a))
	}
	return single(f.F32(Host{}, bits[:len(args)]...))
}

// EvaluateF64 applies a function to float64 arguments on the Host machine.
func EvaluateF64(f Function[uint64], args ...float64) float64 {
	var bits [2]uint64
	for i, a := range args {
		bits[i] = math.Float64bits(a)
	}
	return double(f.F64(Host{}, bits[:len(args)]...))
}

func single(x uint64) float32 { return math.Float32frombits(uint32(x)) }
func double(x uint64) float64 { return math.Float64frombits(x) }

func fromSingle(x float32) uint64 { return uint64(math.Float32bits(x)) }
func fromDouble(x float64) uint64 { return math.Float64bits(x) }

func fromBool(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func unexpected(method string, t Type) string {
	return "BUG: elementary: " + method + " of " + t.String()
}

// Float implements Machine.
func (Host) Float(t Type, v float64) uint64 {
	switch t {
	case F64:
		return fromDouble(v)
	case F32:
		if s := float32(v); float64(s) == v || v != v {
			return fromSingle(s)
		}
		panic("BUG: elementary: the constant is not a float32")
	}
	panic(unexpected("Float", t))
}

// Int implements Machine.
func (Host) Int(t Type, v int64) uint64 {
	switch t {
	case Bool:
		return uint64(v) & 1
	case I32:
		return uint64(uint32(v))
	case I64:
		return uint64(v)
	}
	panic(unexpected("Int", t))
}

// Add implements Machine.
func (Host) Add(t Type, x, y uint64) uint64 {
	switch t {
	case I32:
		return uint64(uint32(x) + uint32(y))
	case I64:
		return x + y
	case F32:
		return fromSingle(float32(single(x) + single(y)))
	case F64:
		return fromDouble(float64(double(x) + double(y)))
	}
	panic(unexpected("Add", t))
}

// Sub implements Machine.
func (Host) Sub(t Type, x, y uint64) uint64 {
	switch t {
	case I32:
		return uint64(uint32(x) - uint32(y))
	case I64:
		return x - y
	case F32:
		return fromSingle(float32(single(x) - single(y)))
	case F64:
		return fromDouble(float64(double(x) - double(y)))
	}
	panic(unexpected("Sub", t))
}

// Mul implements Machine.
func (Host) Mul(t Type, x, y uint64) uint64 {
	switch t {
	case I32:
		return uint64(uint32(x) * uint32(y))
	case I64:
		return x * y
	case F32:
		return fromSingle(float32(single(x) * single(y)))
	case F64:
		return fromDouble(float64(double(x) * double(y)))
	}
	panic(unexpected("Mul", t))
}

// Div implements Machine.
func (Host) Div(t Type, x, y uint64) uint64 {
	switch t {
	case F32:
		return fromSingle(float32(single(x) / single(y)))
	case F64:
		return fromDouble(float64(double(x) / double(y)))
	}
	panic(unexpected("Div", t))
}

// ReciprocalAbove1 implements Machine.
func (Host) ReciprocalAbove1(x uint64) uint64 { return fromSingle(1 / single(x)) }

// Fma implements Machine.
func (Host) Fma(t Type, x, y, z uint64) uint64 {
	switch t {
	case F32:
		return fromSingle(fmaSingle(single(x), single(y), single(z)))
	case F64:
		return fromDouble(math.FMA(double(x), double(y), double(z)))
	}
	panic(unexpected("Fma", t))
}

// fmaSingle is x*y + z rounded once. The product of two float32 is exact in float64. The sum is rounded to odd (an
// inexact sum gets an odd last bit), so that the second rounding, to a format with less than 51 bits, is as if the sum
// were exact.
func fmaSingle(x, y, z float32) float32 {
	p := float64(float64(x) * float64(y))
	z64 := float64(z)
	sum := float64(p + z64)
	rest := float64(sum - p)
	lost := float64(float64(p-float64(sum-rest)) + float64(z64-rest)) // exact; NaN if sum is not finite
	if bits := math.Float64bits(sum); bits&1 == 0 && (lost > 0 || lost < 0) {
		if (lost > 0) == (sum > 0) {
			sum = math.Float64frombits(bits + 1)
		} else {
			sum = math.Float64frombits(bits - 1)
		}
	}
	return float32(sum)
}

// Sqrt implements Machine.
func (Host) Sqrt(t Type, x uint64) uint64 {
	switch t {
	case F32:
		return fromSingle(float32(math.Sqrt(float64(single(x))))) // 53 bits are enough for the second rounding to be harmless
	case F64:
		return fromDouble(math.Sqrt(double(x)))
	}
	panic(unexpected("Sqrt", t))
}

// Neg implements Machine.
func (Host) Neg(t Type, x uint64) uint64 {
	switch t {
	case F32:
		return x ^ 1<<31
	case F64:
		return x ^ 1<<63
	}
	panic(unexpected("Neg", t))
}

// Abs implements Machine.
func (Host) Abs(t Type, x uint64) uint64 {
	switch t {
	case F32:
		return x &^ (1 << 31)
	case F64:
		return x &^ (1 << 63)
	}
	panic(unexpected("Abs", t))
}

// Min implements Machine.
func (Host) Min(t Type, x, y uint64) uint64 {
	if t != F32 {
		panic(unexpected("Min", t))
	}
	return fromSingle(min(single(x), single(y)))
}

// Max implements Machine.
func (Host) Max(t Type, x, y uint64) uint64 {
	if t != F32 {
		panic(unexpected("Max", t))
	}
	return fromSingle(max(single(x), single(y)))
}

// Round implements Machine.
func (Host) Round(t Type, r Rounding, x uint64) uint64 {
	var round func(float64) float64
	switch r {
	case Floor:
		round = math.Floor
	case Ceil:
		round = math.Ceil
	case Trunc:
		round = math.Trunc
	case NearestEven:
		round = math.RoundToEven
	}
	switch t {
	case F32:
		return fromSingle(float32(round(float64(single(x)))))
	case F64:
		return fromDouble(round(double(x)))
	}
	panic(unexpected("Round", t))
}

// And implements Machine.
func (Host) And(_ Type, x, y uint64) uint64 { return x & y }

// Or implements Machine.
func (Host) Or(_ Type, x, y uint64) uint64 { return x | y }

// Xor implements Machine.
func (Host) Xor(_ Type, x, y uint64) uint64 { return x ^ y }

// Shl implements Machine.
func (Host) Shl(t Type, x, n uint64) uint64 {
	switch t {
	case I32:
		return uint64(uint32(x) << n)
	case I64:
		return x << n
	}
	panic(unexpected("Shl", t))
}

// ShrLogical implements Machine.
func (Host) ShrLogical(_ Type, x, n uint64) uint64 { return x >> n }

// ShrArithmetic implements Machine.
func (Host) ShrArithmetic(t Type, x, n uint64) uint64 {
	switch t {
	case I32:
		return uint64(uint32(int32(x) >> n))
	case I64:
		return uint64(int64(x) >> n)
	}
	panic(unexpected("ShrArithmetic", t))
}

// Compare implements Machine.
func (Host) Compare(t Type, p Predicate, x, y uint64) uint64 {
	switch t {
	case I32:
		return compare(p, int32(x), int32(y))
	case I64:
		return compare(p, int64(x), int64(y))
	case F32:
		return compare(p, single(x), single(y))
	case F64:
		return compare(p, double(x), double(y))
	}
	panic(unexpected("Compare", t))
}

func compare[T int32 | int64 | float32 | float64](p Predicate, x, y T) uint64 {
	switch p {
	case EQ:
		return fromBool(x == y)
	case NE:
		return fromBool(x != y)
	case LT:
		return fromBool(x < y)
	default:
		return fromBool(x <= y)
	}
}

// Select implements Machine.
func (Host) Select(_ Type, c, x, y uint64) uint64 {
	if c != 0 {
		return x
	}
	return y
}

// Convert implements Machine. Floats that the integer type cannot hold saturate and NaN gives 0, as PTX's cvt does.
func (Host) Convert(to, from Type, x uint64) uint64 {
	switch from {
	case I32:
		return Host{}.Convert(to, I64, uint64(int64(int32(x))))
	case I64:
		switch to {
		case I32:
			return x & math.MaxUint32
		case I64:
			return x
		case F32:
			return fromSingle(float32(int64(x)))
		case F64:
			return fromDouble(float64(int64(x)))
		}
	case F32:
		if to == F32 {
			return x
		}
		return Host{}.Convert(to, F64, fromDouble(float64(single(x))))
	case F64:
		switch to {
		case I32:
			return uint64(uint32(saturate(double(x), math.MinInt32, math.MaxInt32)))
		case I64:
			return uint64(saturate(double(x), math.MinInt64, math.MaxInt64))
		case F32:
			return fromSingle(float32(double(x)))
		case F64:
			return x
		}
	}
	panic(unexpected("Convert", from))
}

func saturate(x float64, lo, hi int64) int64 {
	switch {
	case x != x:
		return 0
	case x <= float64(lo):
		return lo
	case x >= float64(hi):
		return hi
	}
	return int64(x)
}

// ZeroExtend implements Machine.
func (Host) ZeroExtend(x uint64) uint64 { return x }

// Bitcast implements Machine.
func (Host) Bitcast(_, _ Type, x uint64) uint64 { return x }
