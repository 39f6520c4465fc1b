// Package elementary holds weft's elementary functions (exp, log, sin, tanh, erf …) in float32 and float64.
//
// A function is written once, as straight-line code over the instruction set Machine: selects instead of branches,
// constants instead of tables in memory. The emitter runs it with values that are LLVM expressions; Host runs it on
// machine numbers. Both follow the same sequence of correctly rounded operations, so a kernel, the emulator and plain
// Go give the same bits.
//
// Lookup finds a function by the name that the operator has in StableHLO or CHLO. docs/numerics.md has the table of
// errors.
package elementary

// Type is the type of a scalar value of a Machine.
type Type uint8

// The types of values. Integers are two's complement and wrap around.
const (
	Bool Type = iota // i1: what comparisons return and Select takes
	I32
	I64
	F32 // IEEE 754 binary32
	F64 // IEEE 754 binary64
)

var typeNames = [...]string{Bool: "bool", I32: "i32", I64: "i64", F32: "f32", F64: "f64"}

// String returns the name of the type, as in "f32".
func (t Type) String() string { return typeNames[t] }

// Predicate is a comparison. On floats EQ, LT and LE are ordered (false if an operand is NaN) and NE is unordered
// (true then), as Go's and C's operators; on integers LT and LE are signed.
type Predicate uint8

// The comparisons: LLVM's oeq, une, olt, ole on floats and eq, ne, slt, sle on integers.
const (
	EQ Predicate = iota
	NE
	LT
	LE
)

// Rounding is the direction in which Round makes a float integral.
type Rounding uint8

// The directions: LLVM's llvm.floor, llvm.ceil, llvm.trunc, llvm.roundeven; PTX's cvt.rmi, .rpi, .rzi, .rni.
const (
	Floor Rounding = iota
	Ceil
	Trunc
	NearestEven
)

// Machine is the instruction set that the functions are written in. V is a scalar value; the type of the operands is
// always named. Every method but ReciprocalAbove1 is one LLVM instruction or intrinsic and one PTX instruction (Fma is fma.rn, Add is
// add.rn, and so on); an implementation must not contract, reassociate or flush denormals.
//
// Float results are rounded once, to nearest even. The sign and payload of a NaN result are not defined: no function
// lets them reach its result except as "a NaN".
type Machine[V any] interface {
	// Float is a constant of type F32 or F64; v is a value of that type (no rounding takes place).
	Float(t Type, v float64) V
	// Int is a constant of type Bool (0 or 1), I32 or I64; v is in the signed range of the type.
	Int(t Type, v int64) V

	// Add, Sub, Mul and Div work on all types but Bool; Div is of floats only. Div(1, x) is cheaper than other
	// quotients (rcp.rn).
	Add(t Type, x, y V) V
	Sub(t Type, x, y V) V
	Mul(t Type, x, y V) V
	Div(t Type, x, y V) V

	// Fma is x*y + z of floats, rounded once.
	Fma(t Type, x, y, z V) V
	// ReciprocalAbove1 is 1/x of an F32 in [1, 2^126], or NaN: a division without branches.
	ReciprocalAbove1(x V) V
	// Sqrt is the square root of a float.
	Sqrt(t Type, x V) V
	// Neg flips the sign bit of a float.
	Neg(t Type, x V) V
	// Abs clears the sign bit of a float.
	Abs(t Type, x V) V
	// Min and Max are of F32 only; a NaN operand makes the result a NaN, and -0 is less than +0 (llvm.minimum,
	// min.NaN.f32).
	Min(t Type, x, y V) V
	Max(t Type, x, y V) V
	// Round makes a float integral, keeping its type and the sign of zero.
	Round(t Type, r Rounding, x V) V

	// And, Or and Xor are bitwise, on Bool, I32 and I64.
	And(t Type, x, y V) V
	Or(t Type, x, y V) V
	Xor(t Type, x, y V) V
	// Shl, ShrLogical and ShrArithmetic shift an I32 or I64 by n of the same type, 0 <= n < the width of the type.
	Shl(t Type, x, n V) V
	ShrLogical(t Type, x, n V) V
	ShrArithmetic(t Type, x, n V) V

	// Compare compares two floats or two integers and returns a Bool. t is the type of the operands.
	Compare(t Type, p Predicate, x, y V) V
	// Select returns x where c (a Bool) is true and else y, both of type t. Both are evaluated; there are no traps.
	Select(t Type, c, x, y V) V

	// Convert changes the type of a number: F32 to and from F64 (rounded to nearest even), I32 and I64 to floats
	// (signed, rounded to nearest even), floats to I32 and I64 (towards zero), I32 to I64 (sign extended), I64 to I32
	// (the low half). A float that is not finite or whose integral part is outside of the signed range of the integer
	// type gives any integer (LLVM: poison, to be frozen if not provably unused); functions discard such results by
	// Select or clamp before.
	Convert(to, from Type, x V) V
	// ZeroExtend turns an I32, taken as unsigned, into an I64.
	ZeroExtend(x V) V
	// Bitcast reinterprets the bits: F32 to and from I32, F64 to and from I64.
	Bitcast(to, from Type, x V) V
}
