package eval

import (
	"cmp"
	"math"
	"math/bits"
	"math/cmplx"
	"strings"

	"weft/ir"
)

// unaryFunc is a function of one element for each class of element types; nil where it has no
// meaning. Integer functions get and give values in the type's range or beyond: the result
// keeps its low bits.
type unaryFunc struct {
	float   func(x float64) float64
	integer func(t ir.DType, x int64) int64 // bool is 0 and 1
	complex func(x complex128) complex128
}

func unaryFunctions() map[ir.Kind]unaryFunc {
	return map[ir.Kind]unaryFunc{
		ir.OpAbs:      {math.Abs, intAbs, func(x complex128) complex128 { return complex(cmplx.Abs(x), 0) }},
		ir.OpNegate:   {func(x float64) float64 { return -x }, func(_ ir.DType, x int64) int64 { return -x }, func(x complex128) complex128 { return -x }},
		ir.OpSign:     {sign, intSign, complexSign},
		ir.OpNot:      {nil, func(t ir.DType, x int64) int64 { return ^x & mask(t) }, nil},
		ir.OpPopcnt:   {nil, func(t ir.DType, x int64) int64 { return int64(bits.OnesCount64(uint64(x & mask(t)))) }, nil},
		ir.OpFloor:    {math.Floor, nil, nil},
		ir.OpCeil:     {math.Ceil, nil, nil},
		ir.OpSqrt:     {math.Sqrt, nil, cmplx.Sqrt},
		ir.OpRsqrt:    {func(x float64) float64 { return 1 / math.Sqrt(x) }, nil, func(x complex128) complex128 { return 1 / cmplx.Sqrt(x) }},
		ir.OpCbrt:     {math.Cbrt, nil, func(x complex128) complex128 { return cmplx.Pow(x, 1.0/3) }},
		ir.OpSine:     {math.Sin, nil, cmplx.Sin},
		ir.OpCosine:   {math.Cos, nil, cmplx.Cos},
		ir.OpTan:      {math.Tan, nil, cmplx.Tan},
		ir.OpAsin:     {asin, nil, cmplx.Asin},
		ir.OpAcos:     {acos, nil, cmplx.Acos},
		ir.OpAtan:     {math.Atan, nil, cmplx.Atan},
		ir.OpSinh:     {math.Sinh, nil, cmplx.Sinh},
		ir.OpCosh:     {math.Cosh, nil, cmplx.Cosh},
		ir.OpAsinh:    {math.Asinh, nil, cmplx.Asinh},
		ir.OpAcosh:    {math.Acosh, nil, cmplx.Acosh},
		ir.OpAtanh:    {math.Atanh, nil, cmplx.Atanh},
		ir.OpTanh:     {math.Tanh, nil, cmplx.Tanh},
		ir.OpLog:      {log, nil, cmplx.Log},
		ir.OpErf:      {math.Erf, nil, nil},
		ir.OpErfInv:   {erfInv, nil, nil},
		ir.OpLgamma:   {lgamma, nil, nil},
		ir.OpDigamma:  {digamma, nil, nil},
		ir.OpLogistic: {logistic, nil, func(x complex128) complex128 { return 1 / (1 + cmplx.Exp(-x)) }},

		ir.OpExponential:         {math.Exp, nil, cmplx.Exp},
		ir.OpExponentialMinusOne: {math.Expm1, nil, complexExpm1},
		ir.OpLogPlusOne:          {math.Log1p, nil, complexLog1p},
		ir.OpRoundNearestEven:    {math.RoundToEven, nil, nil},
		ir.OpRoundNearestAfz:     {math.Round, nil, nil},
	}
}

func (f unaryFunc) eval(c *call) (*ir.Tensor, error) {
	x, out := c.in[0], c.result(0)
	n := out.Numel()
	switch t := x.DType; {
	case t.IsFloat() && f.float != nil:
		inBlocks(n, func(lo, hi int64) {
			var buf [blockSize]float64
			xs := buf[:hi-lo]
			readFloats(xs, x, lo)
			for i, v := range xs {
				xs[i] = f.float(v)
			}
			writeFloats(out, lo, xs)
		})
	case (t.IsInteger() || t == ir.Bool) && f.integer != nil:
		for i := range n {
			out.SetInt(i, f.integer(t, x.Int(i)))
		}
	case t.IsComplex() && f.complex != nil:
		xs := allComplex(x)
		for i, v := range xs {
			xs[i] = f.complex(v)
		}
		writeComplex(out, 0, xs)
	default:
		return nil, c.undefined(t)
	}
	return out, nil
}

// mask has the bits of an integer type; one for bool.
func mask(t ir.DType) int64 {
	if t == ir.Bool {
		return 1
	}
	return int64(uint64(math.MaxUint64) >> (64 - t.Bits()))
}

func intAbs(t ir.DType, x int64) int64 {
	if t.IsSigned() && x < 0 {
		return -x
	}
	return x
}

// sign keeps zeros, with their sign, and NaN.
func sign(x float64) float64 {
	if x == 0 || math.IsNaN(x) {
		return x
	}
	return math.Copysign(1, x)
}

func intSign(t ir.DType, x int64) int64 {
	if t.IsSigned() {
		return int64(cmp.Compare(x, 0))
	}
	return int64(cmp.Compare(uint64(x), 0))
}

func complexSign(x complex128) complex128 {
	if x == 0 || cmplx.IsNaN(x) {
		return x
	}
	return x / complex(cmplx.Abs(x), 0)
}

func complexExpm1(x complex128) complex128 {
	a, b := real(x), imag(x)
	s := math.Sin(b / 2)
	return complex(math.Expm1(a)*math.Cos(b)-2*s*s, math.Exp(a)*math.Sin(b))
}

func complexLog1p(x complex128) complex128 {
	a, b := real(x), imag(x)
	if h := math.Hypot(a, b); h > 0.5 {
		return cmplx.Log(1 + x)
	}
	return complex(math.Log1p(float64(a*(2+a))+float64(b*b))/2, math.Atan2(b, 1+a))
}

// binaryFunc is a function of two elements for each class of element types.
type binaryFunc struct {
	float   func(x, y float64) float64
	integer func(t ir.DType, x, y int64) int64
	complex func(x, y complex128) complex128
}

func binaryFunctions() map[ir.Kind]binaryFunc {
	bitwise := func(f func(x, y int64) int64) binaryFunc {
		return binaryFunc{nil, func(_ ir.DType, x, y int64) int64 { return f(x, y) }, nil}
	}
	return map[ir.Kind]binaryFunc{
		ir.OpAdd: {func(x, y float64) float64 { return x + y }, func(_ ir.DType, x, y int64) int64 { return x + y },
			func(x, y complex128) complex128 { return x + y }},
		ir.OpSubtract: {func(x, y float64) float64 { return x - y }, func(_ ir.DType, x, y int64) int64 { return x - y },
			func(x, y complex128) complex128 { return x - y }},
		ir.OpMultiply: {func(x, y float64) float64 { return x * y }, func(_ ir.DType, x, y int64) int64 { return x * y },
			func(x, y complex128) complex128 { return x * y }},
		ir.OpDivide: {func(x, y float64) float64 { return x / y }, intDivide,
			func(x, y complex128) complex128 { return x / y }},
		ir.OpRemainder: {math.Mod, intRemainder, nil},
		ir.OpPower:     {pow, intPower, cmplx.Pow},
		ir.OpMaximum:   {func(x, y float64) float64 { return max(x, y) }, intMax, nil},
		ir.OpMinimum:   {func(x, y float64) float64 { return min(x, y) }, intMin, nil},
		ir.OpAtan2:     {math.Atan2, nil, nil},

		ir.OpAnd:                  bitwise(func(x, y int64) int64 { return x & y }),
		ir.OpOr:                   bitwise(func(x, y int64) int64 { return x | y }),
		ir.OpXor:                  bitwise(func(x, y int64) int64 { return x ^ y }),
		ir.OpShiftLeft:            {nil, shiftLeft, nil},
		ir.OpShiftRightArithmetic: {nil, shiftRightArithmetic, nil},
		ir.OpShiftRightLogical:    {nil, shiftRightLogical, nil},
	}
}

func (f binaryFunc) eval(c *call) (*ir.Tensor, error) {
	x, y, out := c.in[0], c.in[1], c.result(0)
	n := out.Numel()
	switch t := x.DType; {
	case t.IsFloat() && f.float != nil:
		inBlocks(n, func(lo, hi int64) {
			var bufX, bufY [blockSize]float64
			xs, ys := bufX[:hi-lo], bufY[:hi-lo]
			readFloats(xs, x, lo)
			readFloats(ys, y, lo)
			for i, v := range xs {
				xs[i] = f.float(v, ys[i])
			}
			writeFloats(out, lo, xs)
		})
	case (t.IsInteger() || t == ir.Bool) && f.integer != nil:
		for i := range n {
			out.SetInt(i, f.integer(t, x.Int(i), y.Int(i)))
		}
	case t.IsComplex() && f.complex != nil:
		xs, ys := allComplex(x), allComplex(y)
		for i, v := range xs {
			xs[i] = f.complex(v, ys[i])
		}
		writeComplex(out, 0, xs)
	default:
		return nil, c.undefined(t)
	}
	return out, nil
}

// intDivide truncates; dividing by zero sets all bits.
func intDivide(t ir.DType, x, y int64) int64 {
	switch {
	case y == 0:
		return -1
	case t.IsUnsigned():
		return int64(uint64(x) / uint64(y))
	}
	return x / y
}

// intRemainder has the sign of x; the remainder by zero is x.
func intRemainder(t ir.DType, x, y int64) int64 {
	switch {
	case y == 0:
		return x
	case t.IsUnsigned():
		return int64(uint64(x) % uint64(y))
	}
	return x % y
}

// intPower multiplies by squaring. Negative powers are those of the real number, truncated.
func intPower(t ir.DType, x, y int64) int64 {
	if t.IsSigned() && y < 0 {
		switch x {
		case 1:
			return 1
		case -1:
			return 1 - 2*(y&1)
		}
		return 0
	}
	power := int64(1)
	for n := uint64(y); n > 0; n >>= 1 {
		if n&1 == 1 {
			power *= x
		}
		x *= x
	}
	return power
}

// intLess compares values of an integer type or bool.
func intLess(t ir.DType, x, y int64) bool {
	if t == ir.U64 {
		return uint64(x) < uint64(y)
	}
	return x < y
}

func intMax(t ir.DType, x, y int64) int64 {
	if intLess(t, x, y) {
		return y
	}
	return x
}

func intMin(t ir.DType, x, y int64) int64 {
	if intLess(t, y, x) {
		return y
	}
	return x
}

// shiftCount is the count of a shift; all bits of the type for counts outside it.
func shiftCount(t ir.DType, y int64) int {
	if y < 0 || y >= int64(t.Bits()) {
		return t.Bits()
	}
	return int(y)
}

func shiftLeft(t ir.DType, x, y int64) int64 { return x << shiftCount(t, y) }

// shiftRightArithmetic repeats the sign of signed types; unsigned ones have none.
func shiftRightArithmetic(t ir.DType, x, y int64) int64 {
	if t.IsUnsigned() {
		return shiftRightLogical(t, x, y)
	}
	return x >> shiftCount(t, y)
}

func shiftRightLogical(t ir.DType, x, y int64) int64 {
	return int64(uint64(x&mask(t)) >> shiftCount(t, y))
}

func isFinite(c *call) (*ir.Tensor, error) {
	x, out := c.in[0], c.result(0)
	for i := range out.Numel() {
		v := x.Float(i)
		out.SetInt(i, flag(!math.IsNaN(v) && !math.IsInf(v, 0)))
	}
	return out, nil
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// holds tells whether a comparison holds for the order of two elements.
func holds(d ir.Direction, order int) bool {
	switch d {
	case ir.EQ:
		return order == 0
	case ir.NE:
		return order != 0
	case ir.LT:
		return order < 0
	case ir.LE:
		return order <= 0
	case ir.GT:
		return order > 0
	}
	return order >= 0
}

func compare(c *call) (*ir.Tensor, error) {
	x, y, out := c.in[0], c.in[1], c.result(0)
	d := c.op.Attrs.(*ir.CompareAttrs).Direction
	var order func(i int64) (order int, ordered bool)
	switch t := x.DType; {
	case t.IsFloat():
		order = func(i int64) (int, bool) {
			a, b := x.Float(i), y.Float(i)
			return cmp.Compare(a, b), !math.IsNaN(a) && !math.IsNaN(b)
		}
	case t == ir.U64:
		order = func(i int64) (int, bool) { return cmp.Compare(uint64(x.Int(i)), uint64(y.Int(i))), true }
	case t == ir.String:
		order = func(i int64) (int, bool) { return strings.Compare(x.Strings[i], y.Strings[i]), true }
	case t.IsComplex():
		if d != ir.EQ && d != ir.NE {
			return nil, c.undefined(t)
		}
		xs, ys := allComplex(x), allComplex(y)
		order = func(i int64) (int, bool) { return int(flag(xs[i] != ys[i])), true }
	default:
		order = func(i int64) (int, bool) { return cmp.Compare(x.Int(i), y.Int(i)), true }
	}
	for i := range out.Numel() {
		o, ordered := order(i)
		out.SetInt(i, flag(ordered && holds(d, o) || !ordered && d == ir.NE))
	}
	return out, nil
}

// clamp is minimum(maximum(x, low), high).
func clamp(c *call) (*ir.Tensor, error) {
	low, x, high, out := c.in[0], c.in[1], c.in[2], c.result(0)
	t := x.DType
	for i := range out.Numel() {
		switch {
		case t.IsFloat():
			out.SetFloat(i, min(max(x.Float(i), low.Float(i)), high.Float(i)))
		default:
			out.SetInt(i, intMin(t, intMax(t, x.Int(i), low.Int(i)), high.Int(i)))
		}
	}
	return out, nil
}

// bitcast keeps the bits.
func bitcast(c *call) (*ir.Tensor, error) {
	return &ir.Tensor{DType: c.types[0].DType, Shape: c.in[0].Shape, Data: c.in[0].Data}, nil
}

func convert(c *call) (*ir.Tensor, error) {
	x, out := c.in[0], c.result(0)
	from, to := x.DType, out.DType
	saturate := c.op.Attrs.(*ir.ConvertAttrs).Saturate && to.IsFloat()
	n := out.Numel()
	switch {
	case from == to:
		return x, nil
	case from.IsComplex() || to.IsComplex():
		convertComplex(x, out)
	case from.IsFloat():
		inBlocks(n, func(lo, hi int64) {
			var buf [blockSize]float64
			xs := buf[:hi-lo]
			readFloats(xs, x, lo)
			if saturate {
				limit := to.MaxFinite()
				for i, v := range xs {
					xs[i] = max(-limit, min(limit, v))
				}
			}
			writeFloats(out, lo, xs)
		})
	default:
		for i := range n {
			setInt(out, i, x.Int(i), from.IsUnsigned())
			if saturate && math.Abs(out.Float(i)) > to.MaxFinite() || saturate && math.IsNaN(out.Float(i)) {
				out.SetFloat(i, math.Copysign(to.MaxFinite(), x.Float(i)))
			}
		}
	}
	return out, nil
}

// convertComplex drops the imaginary part for real types, bool excepted: it is true where
// either part is not zero.
func convertComplex(x, out *ir.Tensor) {
	if !x.DType.IsComplex() && !x.DType.IsFloat() {
		parts := complexParts(out)
		for i := range out.Numel() {
			setInt(parts, 2*i, x.Int(i), x.DType.IsUnsigned())
		}
		return
	}
	xs := allComplex(x)
	if out.DType.IsComplex() {
		writeComplex(out, 0, xs)
		return
	}
	for i, v := range xs {
		if out.DType == ir.Bool {
			out.SetInt(int64(i), flag(v != 0))
		} else {
			out.SetFloat(int64(i), real(v))
		}
	}
}
