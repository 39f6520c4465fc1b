package lower

import (
	"math"

	"weft/ir"
	"weft/ir/diag"
)

// Generator makes the random numbers of an entry. The program then has a state with seed and
// offset; each use takes streams of its own, and the entry moves the offset past them, so that
// the next run has other numbers. Values are those of no framework: see docs/numerics.md.
type Generator struct {
	program *ir.Program
	entry   *ir.Entry
	state   ir.Value // from the first use on
	streams int64
}

// NewGenerator makes the generator of an entry that is being imported.
func NewGenerator(p *ir.Program, e *ir.Entry) *Generator {
	return &Generator{program: p, entry: e, state: ir.NoValue}
}

// GeneratorState is the name of the state with seed and offset.
const GeneratorState = "rng"

func (g *Generator) make(b *ir.Builder, d ir.Distribution, t ir.DType, dims []ir.Dim) ir.Value {
	if b.Block != &g.entry.Body {
		ir.Fail(diag.Errorf(diag.UnsupportedOperators, b.Loc, " inside of control flow"))
	}
	if g.state == ir.NoValue {
		if g.program.State(GeneratorState) != nil {
			ir.Fail(diag.Errorf(diag.UnsupportedOperators, b.Loc, " in a model with a weight named %q", GeneratorState))
		}
		state := ir.TensorOf(ir.I64, ir.Const(2))
		g.program.States = append(g.program.States, ir.State{Name: GeneratorState, Type: state, Kind: ir.Generator})
		g.state = g.entry.AddStateInput(GeneratorState, state)
	}
	x := b.Rng(g.state, &ir.RngAttrs{Distribution: d, Type: t, Dims: dims, Stream: g.streams})
	g.streams++
	if d == ir.Normal {
		g.streams++
	}
	return x
}

// Close gives the entry the generator's new state as an output, and returns its input; NoValue
// where nothing was random.
func (g *Generator) Close(b *ir.Builder) ir.Value {
	if g.state != ir.NoValue {
		step := ir.NewTensor(ir.I64, 2)
		step.SetInt(1, g.streams)
		g.entry.AddOutput(GeneratorState, GeneratorState, b.Binary(ir.OpAdd, g.state, b.Constant(step)))
	}
	return g.state
}

// Uniform numbers in [low, high).
func (g *Generator) Uniform(b *ir.Builder, t ir.DType, dims []ir.Dim, low, high float64) ir.Value {
	x := g.make(b, ir.Uniform, t, dims)
	if low == 0 && high == 1 {
		return x
	}
	return b.Binary(ir.OpAdd, b.Binary(ir.OpMultiply, x, b.FullLike(x, high-low)), b.FullLike(x, low))
}

// Normal numbers.
func (g *Generator) Normal(b *ir.Builder, t ir.DType, dims []ir.Dim, mean, deviation float64) ir.Value {
	x := g.make(b, ir.Normal, t, dims)
	if mean == 0 && deviation == 1 {
		return x
	}
	return b.Binary(ir.OpAdd, b.Binary(ir.OpMultiply, x, b.FullLike(x, deviation)), b.FullLike(x, mean))
}

// Integers in [low, high), all with the same probability up to one part in 2^32: the range
// times 32 random bits, without the lower 32 bits of the product.
func (g *Generator) Integers(b *ir.Builder, t ir.DType, dims []ir.Dim, low, high int64) ir.Value {
	if high <= low || uint64(high-low) > math.MaxUint32 {
		ir.Fail(diag.Errorf(diag.UnsupportedOperators, b.Loc, " of integers from %d up to %d", low, high))
	}
	bits := b.Convert(g.make(b, ir.Bits, ir.U32, dims), ir.I64)
	full := func(v int64) ir.Value { return b.Broadcast(b.Constant(ir.ScalarInt(ir.I64, v)), dims, nil) }
	product := b.Binary(ir.OpMultiply, bits, full(high-low))
	return b.Convert(b.Binary(ir.OpAdd, b.Binary(ir.OpShiftRightLogical, product, full(32)), full(low)), t)
}

// Exponential numbers of rate 1, of a float type.
func (g *Generator) Exponential(b *ir.Builder, t ir.DType, dims []ir.Dim) ir.Value {
	u := g.make(b, ir.Uniform, t, dims)
	return b.Unary(ir.OpNegate, b.Unary(ir.OpLogPlusOne, b.Unary(ir.OpNegate, u)))
}

// Bernoulli is true with probability p, a tensor of floats.
func (g *Generator) Bernoulli(b *ir.Builder, p ir.Value) ir.Value {
	t := ir.F32
	if b.DType(p) == ir.F64 {
		t = ir.F64
	}
	return b.Compare(ir.LT, g.make(b, ir.Uniform, t, b.Shape(p)), b.Convert(p, t))
}

// Dropout keeps elements with probability 1-p and divides them by it; kept says which.
func (g *Generator) Dropout(b *ir.Builder, x ir.Value, p float64) (y, kept ir.Value) {
	keep := 1 - p
	kept = g.Bernoulli(b, b.Full(b.Type(x).With(ir.F32), keep))
	scale := 0.0
	if keep > 0 {
		scale = 1 / keep
	}
	return b.Select(kept, b.Binary(ir.OpMultiply, x, b.FullLike(x, scale)), b.FullLike(x, 0)), kept
}

// Permutation of 0 to n-1: the order of random bits.
func (g *Generator) Permutation(b *ir.Builder, t ir.DType, n ir.Dim) ir.Value {
	dims := []ir.Dim{n}
	bits := g.make(b, ir.Bits, ir.I64, dims)
	return b.Sort(&ir.SortAttrs{}, bits, b.Iota(t, dims, 0))[1]
}

// Multinomial draws indices along the last axis of weights, which need not add up to 1: with
// replacement by the place of a uniform number in the running sum, without by the smallest of
// exponential numbers divided by the weights.
func (g *Generator) Multinomial(b *ir.Builder, weights ir.Value, samples int64, replacement bool) ir.Value {
	axis := b.Rank(weights) - 1
	dims := b.Shape(weights)
	w := b.Convert(weights, ir.F32)
	if !replacement {
		race := b.Binary(ir.OpDivide, g.Exponential(b, ir.F32, dims), w)
		order := b.Sort(&ir.SortAttrs{Axis: axis}, race, b.Iota(ir.I64, dims, axis))[1]
		return b.SliceAxis(order, axis, ir.Const(0), ir.Const(samples), 1)
	}
	out := append(append([]ir.Dim{}, dims[:axis]...), ir.Const(samples))
	rows := make([]int, axis)
	for i := range rows {
		rows[i] = i
	}
	at := b.Binary(ir.OpMultiply, g.make(b, ir.Uniform, ir.F32, out), b.Broadcast(b.Reduce(ir.Sum, w, axis), out, rows))
	full := append(append([]ir.Dim{}, out...), dims[axis])
	sums := b.Cumulative(w, &ir.CumulativeAttrs{Combine: ir.Sum, Axis: axis})
	below := b.Compare(ir.LE, b.Broadcast(sums, full, append(rows, axis+1)), b.Broadcast(at, full, append(append([]int{}, rows...), axis)))
	count := b.Reduce(ir.Sum, b.Convert(below, ir.I64), axis+1)
	last := b.Broadcast(b.Dim(dims[axis].AddConst(-1)), out, nil)
	return b.Binary(ir.OpMinimum, count, last)
}
