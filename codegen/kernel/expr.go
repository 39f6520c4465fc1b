// Package kernel builds loop-level kernels from the kernel groups of a scheduled program.
//
// A kernel is a list of structured statements (loops, guarded blocks, stores, barriers) over
// expressions: hash-consed scalar DAGs of thread and block indices, size parameters, loads and
// arithmetic. Fusing is composing functions: the value of an operation at an index is an
// expression over the values of its operands at indices computed from it (evaluate.go). What a
// group's threads do with such functions is in map.go, rows.go and contract.go.
package kernel

import (
	"fmt"
	"math"

	"weft/ir"
)

// Op is the operation of an expression.
type Op uint8

// The operations. Integers are signless; operations whose result depends on the sign name it.
const (
	Const   Op = iota // Imm: the integer, or the bits of the float
	Size              // Imm: number of a size parameter
	Thread            // index of the thread in its block
	Block             // Imm: axis of the grid
	Var               // loop counter or carried value, bound by its For; Imm is unique
	Load              // Args[0]: element index; Buffer; Imm: lanes (1, 2, 4, 8)
	Lane              // element Imm of a load of several lanes
	Shuffle           // Args[0] of the lane whose index differs by xor with Imm, in the warp

	Add
	Sub
	Mul
	SDiv
	UDiv
	SRem
	URem
	And
	Or
	Xor
	Shl
	LShr
	AShr
	SMin
	SMax
	UMin
	UMax
	Popcnt

	FAdd
	FSub
	FMul
	FDiv
	Fma
	FSqrt
	FNeg
	FAbs
	FMin // NaN wins, -0 < +0
	FMax
	FFloor
	FCeil
	FTrunc
	FRoundEven

	Compare // Imm: Predicate
	Select

	Trunc // integer narrowing
	SExt
	ZExt
	FConvert // F32 <-> F64
	SToF
	UToF
	FToS      // truncates; out of range gives any value: guard it
	FToU      // likewise
	Bitcast   // same width
	RoundHalf // F32 rounded to F16 or BF16 (Imm: ir.DType), still held in F32

	Asm      // an instruction of the catalogue; Instruction, Results
	Part     // result Imm of an Asm of several
	Address  // of element Args[0] of Buffer
	Map      // address of tensor map Imm
	Blocks   // number of blocks along the first axis of the grid
	HalfBits // I16: the bits of an F16 or BF16 (Imm: ir.DType) held in F32
	BitsHalf // the F32 that holds the F16 or BF16 (Imm: ir.DType) of an I16's bits
)

// Predicate is a comparison of Compare.
type Predicate int64

// The predicates: integers by sign, floats ordered except NE.
const (
	EQ Predicate = iota
	NE
	SLT
	SLE
	ULT
	ULE
	FEQ
	FNE
	FLT
	FLE
)

// Expr is a scalar expression. Its type is Bool, I8, I16, I32, I64, F32 or F64: unsigned
// integers are held in signless ones, F16 and BF16 in F32 at values of their own precision.
type Expr struct {
	Op     Op
	Type   ir.DType
	Args   []*Expr
	Imm    int64
	Buffer *Buffer
	ID     int

	Instruction string     // of Asm
	Results     []ir.DType // of Asm

	Depth int // depth of the loop or guard that it depends on; pure expressions are hoisted there

	// Fixed expressions depend on memory or on other threads: they are computed where they are
	// used, so that a guard around them holds. All others are hoisted out of loops and guards.
	Fixed bool

	lo, hi int64 // range of an integer, inclusive
}

// IsInt tells whether x is the integer constant v.
func (x *Expr) IsInt(v int64) bool {
	return x.Op == Const && !x.Type.IsFloat() && x.Imm == v
}

// consKey identifies a pure expression: operation, type, immediate and operands' IDs.
type consKey struct {
	op   Op
	t    ir.DType
	imm  int64
	args [3]int
}

// Builder makes the expressions and statements of one kernel.
type Builder struct {
	Kernel *Kernel
	Index  ir.DType // type of index arithmetic: I32, or I64 where sizes may need it

	cons   map[consKey]*Expr
	sizes  map[string]*Expr
	count  int
	depth  int
	block  *[]Stmt
	ranges func(string) (ir.Range, bool)
}

// NewBuilder starts a kernel of that many threads a block. Facts about the program's symbols
// give the ranges of sizes.
func NewBuilder(p *ir.Program, threads int, index ir.DType) *Builder {
	k := &Kernel{Threads: threads}
	return &Builder{Kernel: k, Index: index, cons: map[consKey]*Expr{}, sizes: map[string]*Expr{}, block: &k.Body, ranges: p.Range}
}

// fullRange is the range of an integer of a type of which nothing is known.
func fullRange(t ir.DType) (lo, hi int64) {
	switch t {
	case ir.Bool:
		return 0, 1
	case ir.I8, ir.I16, ir.I32, ir.I64:
		unused := 64 - t.Bits()
		return math.MinInt64 >> unused, math.MaxInt64 >> unused
	}
	return math.MinInt64, math.MaxInt64
}

// node finds or makes a pure expression.
func (b *Builder) node(op Op, t ir.DType, imm int64, args ...*Expr) *Expr {
	key := consKey{op: op, t: t, imm: imm, args: [3]int{-1, -1, -1}}
	for i, a := range args {
		key.args[i] = a.ID
	}
	if x, ok := b.cons[key]; ok {
		return x
	}
	x := b.fresh(op, t, imm, args...)
	b.cons[key] = x
	return x
}

// fresh makes an expression that is not shared.
func (b *Builder) fresh(op Op, t ir.DType, imm int64, args ...*Expr) *Expr {
	x := &Expr{Op: op, Type: t, Imm: imm, Args: args, ID: b.count}
	b.count++
	x.Fixed = op == Load || op == Shuffle || op == Asm
	for _, a := range args {
		x.Depth = max(x.Depth, a.Depth)
		x.Fixed = x.Fixed || a.Fixed
	}
	x.lo, x.hi = fullRange(t)
	return x
}

// ranged narrows what is known of an integer expression.
func (x *Expr) ranged(lo, hi int64) *Expr {
	x.lo, x.hi = max(x.lo, lo), min(x.hi, hi)
	return x
}

// Int is an integer constant, wrapped to its type.
func (b *Builder) Int(t ir.DType, v int64) *Expr {
	if t == ir.Bool {
		v &= 1
	} else {
		unused := 64 - t.Bits()
		v = v << unused >> unused
	}
	return b.node(Const, t, v).ranged(v, v)
}

// Idx is a constant of the index type.
func (b *Builder) Idx(v int64) *Expr { return b.Int(b.Index, v) }

// True is the true predicate.
func (b *Builder) True() *Expr { return b.Int(ir.Bool, 1) }

// bool is a truth value.
func (b *Builder) bool(v bool) *Expr {
	if v {
		return b.True()
	}
	return b.Int(ir.Bool, 0)
}

// Float is a float constant, rounded to its type.
func (b *Builder) Float(t ir.DType, v float64) *Expr {
	if t == ir.F32 {
		return b.node(Const, t, int64(math.Float32bits(float32(v))))
	}
	return b.node(Const, ir.F64, int64(math.Float64bits(v)))
}

// FloatValue is the value of a float constant.
func (x *Expr) FloatValue() float64 {
	if x.Type == ir.F32 {
		return float64(math.Float32frombits(uint32(x.Imm)))
	}
	return math.Float64frombits(uint64(x.Imm))
}

// Size is a size as an index: a constant, or a parameter that the launch computes. What is
// below zero by its bounds is a size of which nothing is read.
func (b *Builder) Size(d ir.Dim) *Expr { return b.MaxIndex(b.parameter(d), b.Idx(0)) }

// parameter is the value of a dim expression, which may be negative.
func (b *Builder) parameter(d ir.Dim) *Expr {
	if v, ok := d.IsConst(); ok {
		return b.Idx(v)
	}
	key := d.String()
	if x, ok := b.sizes[key]; ok {
		return x
	}
	r := d.Bounds(b.ranges)
	x := b.node(Size, b.Index, int64(len(b.Kernel.Sizes))).ranged(r.Min, r.Max)
	b.Kernel.Sizes = append(b.Kernel.Sizes, d)
	b.sizes[key] = x
	return x
}

// ThreadIndex is the thread's index in its block.
func (b *Builder) ThreadIndex() *Expr {
	return b.node(Thread, b.Index, 0).ranged(0, int64(b.Kernel.Threads)-1)
}

// Blocks makes a grid of x by y by z blocks and gives a block's place in it. A GPU's grid ends
// at 65535 along y and z: where they may be longer, all blocks lie along x.
func (b *Builder) Blocks(x, y, z ir.Dim) (i, j, k *Expr) {
	const limit = 65535
	if y.Bounds(b.ranges).Max <= limit && z.Bounds(b.ranges).Max <= limit {
		b.Kernel.Grid = [3]ir.Dim{x, y, z}
		return b.BlockIndex(0), b.BlockIndex(1), b.BlockIndex(2)
	}
	b.Kernel.Grid = [3]ir.Dim{x.Mul(y).Mul(z), ir.Const(1), ir.Const(1)}
	rest, i := b.DivMod(b.BlockIndex(0), b.Size(x))
	k, j = b.DivMod(rest, b.Size(y))
	return i, j, k
}

// BlockIndex is the block's index along an axis of the grid.
func (b *Builder) BlockIndex(axis int) *Expr {
	limit := int64(math.MaxInt32 - 1)
	if n, ok := b.Kernel.Grid[axis].IsConst(); ok && n > 0 {
		limit = n - 1
	}
	return b.node(Block, b.Index, int64(axis)).ranged(0, limit)
}

// blocks is the number of blocks along the first axis of the grid, at least one, which the launch may have fewer of than Kernel.Grid says.
func (b *Builder) blocks() *Expr {
	limit := int64(math.MaxInt32 - 1)
	if n, ok := b.Kernel.Grid[0].IsConst(); ok {
		limit = n
	}
	return b.node(Blocks, b.Index, 0).ranged(1, max(1, limit))
}

// Add adds integers and folds constants, keeping them last in a chain of sums.
func (b *Builder) Add(x, y *Expr) *Expr {
	if x.Op == Const {
		x, y = y, x
	}
	switch {
	case y.IsInt(0):
		return x
	case x.Op == Const:
		return b.Int(x.Type, x.Imm+y.Imm)
	case y.Op == Const && x.Op == Add && x.Args[1].Op == Const:
		return b.Add(x.Args[0], b.Int(x.Type, x.Args[1].Imm+y.Imm))
	case x.Op == Add && x.Args[1].Op == Const: // (a + c) + y
		return b.Add(b.Add(x.Args[0], y), x.Args[1])
	case y.Op == Add && y.Args[1].Op == Const: // x + (a + c)
		return b.Add(b.Add(x, y.Args[0]), y.Args[1])
	}
	if y.Op != Const && x.ID > y.ID {
		x, y = y, x
	}
	lo, ok1 := addRange(x.lo, y.lo)
	hi, ok2 := addRange(x.hi, y.hi)
	z := b.node(Add, x.Type, 0, x, y)
	if ok1 && ok2 && inRange(x.Type, lo, hi) {
		z.ranged(lo, hi)
	}
	return z
}

func addRange(a, b int64) (int64, bool) {
	s := a + b
	return s, (a > 0) != (b > 0) || (s > 0) == (a > 0) || a == 0 || b == 0
}

func inRange(t ir.DType, lo, hi int64) bool {
	tlo, thi := fullRange(t)
	return lo >= tlo && hi <= thi
}

// Sub subtracts integers.
func (b *Builder) Sub(x, y *Expr) *Expr {
	if y.Op == Const {
		return b.Add(x, b.Int(y.Type, -y.Imm))
	}
	if x == y {
		return b.Int(x.Type, 0)
	}
	z := b.node(Sub, x.Type, 0, x, y)
	if x.lo >= 0 && y.lo >= 0 {
		z.ranged(-y.hi, x.hi)
	}
	return z
}

// Mul multiplies integers; a constant factor distributes over a sum with a constant.
func (b *Builder) Mul(x, y *Expr) *Expr {
	if x.Op == Const {
		x, y = y, x
	}
	switch {
	case y.IsInt(0):
		return y
	case y.IsInt(1):
		return x
	case x.Op == Const:
		return b.Int(x.Type, x.Imm*y.Imm)
	case y.Op == Const && x.Op == Mul && x.Args[1].Op == Const:
		return b.Mul(x.Args[0], b.Int(x.Type, x.Args[1].Imm*y.Imm))
	case y.Op == Const && x.Op == Add && x.Args[1].Op == Const:
		return b.Add(b.Mul(x.Args[0], y), b.Int(x.Type, x.Args[1].Imm*y.Imm))
	}
	if y.Op != Const && x.ID > y.ID {
		x, y = y, x
	}
	z := b.node(Mul, x.Type, 0, x, y)
	if x.lo >= 0 && y.lo >= 0 && (x.hi == 0 || y.hi <= math.MaxInt64/max(x.hi, 1)) && inRange(x.Type, 0, x.hi*y.hi) {
		z.ranged(x.lo*y.lo, x.hi*y.hi)
	}
	return z
}

// linear is an integer expression as a sum: constant plus coefficient times opaque terms.
type linear struct {
	terms []*Expr
	coefs []int64
	c     int64
}

func (l *linear) add(x *Expr, scale int64) {
	switch {
	case x.Op == Const:
		l.c += scale * x.Imm
	case x.Op == Add:
		l.add(x.Args[0], scale)
		l.add(x.Args[1], scale)
	case x.Op == Sub:
		l.add(x.Args[0], scale)
		l.add(x.Args[1], -scale)
	case x.Op == Mul && x.Args[1].Op == Const:
		l.add(x.Args[0], scale*x.Args[1].Imm)
	default:
		for i, t := range l.terms {
			if t == x {
				l.coefs[i] += scale
				return
			}
		}
		l.terms, l.coefs = append(l.terms, x), append(l.coefs, scale)
	}
}

func linearOf(x *Expr) linear {
	var l linear
	l.add(x, 1)
	return l
}

// Difference gives x - y when it is a constant, whatever the values of the variables.
func Difference(x, y *Expr) (int64, bool) {
	l := linearOf(x)
	l.add(y, -1)
	for _, c := range l.coefs {
		if c != 0 {
			return 0, false
		}
	}
	return l.c, true
}

// MultipleOf tells whether x is a multiple of v for every value of its variables. divisor
// tells what size parameters are known to be multiples of.
func MultipleOf(x *Expr, v int64, divisor func(*Expr) int64) bool {
	return knownDivisor(x, v, divisor)%v == 0
}

// knownDivisor is a divisor of v that x is surely a multiple of.
func knownDivisor(x *Expr, v int64, divisor func(*Expr) int64) int64 {
	l := linearOf(x)
	d := gcd(v, l.c)
	for i, t := range l.terms {
		f := int64(1)
		switch t.Op {
		case Size:
			f = max(1, divisor(t))
		case Mul: // of two variables
			f = knownDivisor(t.Args[0], v, divisor) * knownDivisor(t.Args[1], v, divisor)
		case Select:
			f = gcd(knownDivisor(t.Args[1], v, divisor), knownDivisor(t.Args[2], v, divisor))
		case SMin, SMax:
			f = gcd(knownDivisor(t.Args[0], v, divisor), knownDivisor(t.Args[1], v, divisor))
		}
		d = gcd(d, gcd(v, f)*gcd(v, l.coefs[i]))
	}
	return d
}

// DivMod divides a non-negative index by a positive one: quotient and remainder. Multiples of
// a constant divisor are taken out of sums, and factors common with it.
func (b *Builder) DivMod(x, y *Expr) (q, r *Expr) {
	if y.Op != Const {
		if x.IsInt(0) {
			return x, x
		}
		// Divisions are hoisted out of the guards that keep empty shapes away.
		y = b.MaxIndex(y, b.Int(y.Type, 1))
		q = b.node(UDiv, x.Type, 0, x, y).ranged(0, max(x.hi, 0))
		r = b.node(URem, x.Type, 0, x, y).ranged(0, max(0, min(x.hi, y.hi-1)))
		return q, r
	}
	d := y.Imm
	if d <= 1 { // 0: an empty shape, of which nothing is read
		return x, b.Int(x.Type, 0)
	}
	if x.lo >= 0 && x.hi < d {
		return b.Int(x.Type, 0), x
	}
	whole, rest := b.splitMultiples(x, d)
	if rest.lo >= 0 && rest.hi < d {
		return whole, rest
	}
	if whole.IsInt(0) || rest.lo < 0 {
		return b.divModFactored(x, d)
	}
	q, r = b.divModFactored(rest, d)
	return b.Add(whole, q), r
}

// splitMultiples writes x as d*whole + rest, with the terms whose coefficient d divides in whole.
func (b *Builder) splitMultiples(x *Expr, d int64) (whole, rest *Expr) {
	l := linearOf(x)
	c := l.c % d
	if c < 0 {
		c += d
	}
	whole, rest = b.Int(x.Type, (l.c-c)/d), b.Int(x.Type, 0)
	for i, t := range l.terms {
		if l.coefs[i]%d == 0 {
			whole = b.Add(whole, b.Mul(t, b.Int(x.Type, l.coefs[i]/d)))
		} else {
			rest = b.Add(rest, b.Mul(t, b.Int(x.Type, l.coefs[i])))
		}
	}
	return whole, b.Add(rest, b.Int(x.Type, c))
}

// divModFactored uses x = g*u + s with 0 <= s < g and g dividing d: x div d = u div (d/g) and
// x mod d = g*(u mod (d/g)) + s.
func (b *Builder) divModFactored(x *Expr, d int64) (q, r *Expr) {
	l := linearOf(x)
	g := d
	for _, c := range l.coefs {
		if c%d != 0 && gcd(c, d) > 1 {
			g = gcd(g, c)
		}
	}
	if g > 1 && g < d {
		u, s := b.splitMultiples(x, g)
		if s.lo >= 0 && s.hi < g && u.lo >= 0 {
			uq, ur := b.plainDivMod(u, d/g)
			return uq, b.Add(b.Mul(ur, b.Int(x.Type, g)), s)
		}
	}
	return b.plainDivMod(x, d)
}

func (b *Builder) plainDivMod(x *Expr, d int64) (q, r *Expr) {
	if x.lo >= 0 && x.hi < d {
		return b.Int(x.Type, 0), x
	}
	y := b.Int(x.Type, d)
	q = b.node(UDiv, x.Type, 0, x, y).ranged(max(x.lo, 0)/d, max(x.hi, 0)/d)
	r = b.node(URem, x.Type, 0, x, y).ranged(0, d-1)
	return q, r
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// Less compares signed integers, deciding what the ranges decide.
func (b *Builder) Less(x, y *Expr) *Expr {
	switch {
	case x.hi < y.lo:
		return b.True()
	case x.lo >= y.hi:
		return b.Int(ir.Bool, 0)
	}
	return b.node(Compare, ir.Bool, int64(SLT), x, y)
}

// NotLess is the negation of Less.
func (b *Builder) NotLess(x, y *Expr) *Expr { return b.Not(b.Less(x, y)) }

// And combines predicates.
func (b *Builder) And(x, y *Expr) *Expr {
	switch {
	case x.IsInt(1) || y.IsInt(0):
		return y
	case y.IsInt(1) || x.IsInt(0) || x == y:
		return x
	}
	return b.node(And, ir.Bool, 0, x, y)
}

// Or combines predicates.
func (b *Builder) Or(x, y *Expr) *Expr {
	switch {
	case x.IsInt(0) || y.IsInt(1):
		return y
	case y.IsInt(0) || x.IsInt(1) || x == y:
		return x
	}
	return b.node(Or, ir.Bool, 0, x, y)
}

// Not negates a predicate.
func (b *Builder) Not(x *Expr) *Expr {
	if x.Op == Const {
		return b.Int(ir.Bool, 1-x.Imm)
	}
	return b.node(Xor, ir.Bool, 0, x, b.True())
}

// Select picks x where p is true, else y.
func (b *Builder) Select(p, x, y *Expr) *Expr {
	switch {
	case p.IsInt(1) || x == y:
		return x
	case p.IsInt(0):
		return y
	}
	if z, ok := b.selectMultiple(p, x, y); ok {
		return z
	}
	z := b.node(Select, x.Type, 0, p, x, y)
	if !x.Type.IsFloat() {
		z.ranged(min(x.lo, y.lo), max(x.hi, y.hi))
	}
	return z
}

// selectMultiple takes a common factor out of an index and zero, so that what follows still sees
// that the choice is a multiple of it.
func (b *Builder) selectMultiple(p, x, zero *Expr) (*Expr, bool) {
	if x.Type != b.Index || x.Op == Const || !zero.IsInt(0) {
		return nil, false
	}
	l := linearOf(x)
	g := max(l.c, -l.c)
	for _, c := range l.coefs {
		g = gcd(g, c)
	}
	if g < 2 {
		return nil, false
	}
	quotient := b.Idx(l.c / g)
	for i, t := range l.terms {
		quotient = b.Add(quotient, b.Mul(t, b.Idx(l.coefs[i]/g)))
	}
	return b.Mul(b.Select(p, quotient, zero), b.Idx(g)), true
}

// Clamp is min(max(x, lo), hi) of signed integers.
func (b *Builder) Clamp(x, lo, hi *Expr) *Expr { return b.MinIndex(b.MaxIndex(x, lo), hi) }

// MinIndex is the smaller of two signed integers.
func (b *Builder) MinIndex(x, y *Expr) *Expr {
	switch {
	case x.hi <= y.lo:
		return x
	case y.hi <= x.lo:
		return y
	}
	return b.node(SMin, x.Type, 0, x, y).ranged(min(x.lo, y.lo), min(x.hi, y.hi))
}

// MaxIndex is the larger of two signed integers.
func (b *Builder) MaxIndex(x, y *Expr) *Expr {
	switch {
	case x.lo >= y.hi:
		return x
	case y.lo >= x.hi:
		return y
	}
	return b.node(SMax, x.Type, 0, x, y).ranged(max(x.lo, y.lo), max(x.hi, y.hi))
}

// Arith is a pure operation without simplification.
func (b *Builder) Arith(op Op, t ir.DType, args ...*Expr) *Expr { return b.node(op, t, 0, args...) }

// Cmp compares.
func (b *Builder) Cmp(p Predicate, x, y *Expr) *Expr { return b.node(Compare, ir.Bool, int64(p), x, y) }

// Round rounds an F32 to the precision of F16 or BF16.
func (b *Builder) Round(half ir.DType, x *Expr) *Expr {
	if x.Op == RoundHalf && x.Imm == int64(half) || x.Op == Load && x.Buffer.DType == half {
		return x
	}
	return b.node(RoundHalf, ir.F32, int64(half), x)
}

// ToIndex converts an integer to the index type; wider values are clamped first, so that an
// index out of range stays out of range.
func (b *Builder) ToIndex(x *Expr, unsigned bool) *Expr {
	from, to := x.Type.Bits(), b.Index.Bits()
	lo, hi := fullRange(b.Index)
	switch {
	case x.Op == Const && unsigned && x.Imm < 0 && from < 64:
		return b.Idx(min(x.Imm+int64(1)<<from, hi))
	case x.Op == Const && unsigned && x.Imm < 0:
		return b.Idx(hi)
	case x.Op == Const:
		return b.Idx(min(max(x.Imm, lo), hi))
	case from >= to:
		if unsigned {
			x = b.node(UMin, x.Type, 0, x, b.Int(x.Type, hi)).ranged(0, hi)
		} else {
			x = b.Clamp(x, b.Int(x.Type, lo), b.Int(x.Type, hi))
		}
		if from == to {
			return x
		}
		return b.node(Trunc, b.Index, 0, x).ranged(x.lo, x.hi)
	case unsigned:
		return b.node(ZExt, b.Index, 0, x).ranged(0, int64(1)<<from-1)
	}
	return b.node(SExt, b.Index, 0, x).ranged(x.lo, x.hi)
}

// FromIndex converts an index to another integer type, keeping the low bits.
func (b *Builder) FromIndex(x *Expr, t ir.DType) *Expr {
	switch from, to := x.Type.Bits(), t.Bits(); {
	case x.Op == Const:
		return b.Int(t, x.Imm)
	case from == to:
		return x
	case from > to:
		return b.node(Trunc, t, 0, x)
	}
	return b.node(SExt, t, 0, x).ranged(x.lo, x.hi)
}

// String is the name of the expression in dumps: x and its number.
func (x *Expr) String() string { return fmt.Sprintf("x%d", x.ID) }
