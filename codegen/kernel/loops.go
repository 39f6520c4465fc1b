package kernel

import (
	"math"
	"slices"

	"weft/ir"
)

// unrollLimit is the number of turns up to which a loop of known length is unrolled.
const unrollLimit = 32

// nest runs body at every index below dims: unrolled where that is short, else as nested loops.
func (ev *evaluator) nest(dims []ir.Dim, init []*Expr, body func(at []*Expr, carried []*Expr) []*Expr) []*Expr {
	return ev.nestFrom(nil, dims, 1, init, body)
}

// nestBy is nest with the innermost loop done some turns at a time, so that their loads are under way together.
func (ev *evaluator) nestBy(turns int64, dims []ir.Dim, init []*Expr, body func(at, carried []*Expr) []*Expr) []*Expr {
	b := ev.b
	last := len(dims) - 1
	if n, ok := ir.Product(dims).IsConst(); last < 0 || ok && n <= unrollLimit {
		return ev.nest(dims, init, body)
	}
	return ev.nest(dims[:last], init, func(at, carried []*Expr) []*Expr {
		return ev.loopBy(turns, b.Size(dims[last]), carried, func(i *Expr, carried []*Expr) []*Expr {
			return body(append(slices.Clone(at), i), carried)
		})
	})
}

// loopBy is a loop from 0 to end whose body is written several times in each turn.
func (ev *evaluator) loopBy(turns int64, end *Expr, init []*Expr, body func(i *Expr, carried []*Expr) []*Expr) []*Expr {
	b := ev.b
	q, rest := b.DivMod(end, b.Idx(turns))
	whole := b.Mul(q, b.Idx(turns))
	carried := ev.loop(b.Idx(0), whole, b.Idx(turns), init, func(i *Expr, carried []*Expr) []*Expr {
		i.ranged(0, max(0, end.hi-turns))
		for k := range turns {
			carried = body(b.Add(i, b.Idx(k)), carried)
		}
		return carried
	})
	if rest.IsInt(0) {
		return carried
	}
	return ev.loop(whole, end, b.Idx(1), carried, func(i *Expr, carried []*Expr) []*Expr {
		return body(i.ranged(0, max(0, end.hi-1)), carried)
	})
}

func (ev *evaluator) nestFrom(at []*Expr, dims []ir.Dim, unrolled int64, carried []*Expr, body func(at, carried []*Expr) []*Expr) []*Expr {
	if len(dims) == 0 {
		return body(at, carried)
	}
	b := ev.b
	if n, ok := dims[0].IsConst(); ok && n*unrolled <= unrollLimit {
		for i := range n {
			carried = ev.nestFrom(append(slices.Clone(at), b.Idx(i)), dims[1:], n*unrolled, carried, body)
		}
		return carried
	}
	return ev.loop(b.Idx(0), b.Size(dims[0]), b.Idx(1), carried, func(i *Expr, carried []*Expr) []*Expr {
		return ev.nestFrom(append(slices.Clone(at), i), dims[1:], unrolled, carried, body)
	})
}

// identity is the neutral element of a combination as held in expressions.
func (b *Builder) identity(c ir.Combine, t ir.DType) *Expr {
	h := held(t)
	if h.IsFloat() {
		return b.Float(h, [...]float64{ir.Sum: 0, ir.Mul: 1, ir.Max: math.Inf(-1), ir.Min: math.Inf(1), ir.And: 0, ir.Or: 0, ir.Xor: 0, ir.Assign: 0}[c])
	}
	lo, hi := fullRange(h)
	if t.IsUnsigned() {
		lo, hi = 0, -1
	}
	return b.Int(h, [...]int64{ir.Sum: 0, ir.Mul: 1, ir.Max: lo, ir.Min: hi, ir.And: -1, ir.Or: 0, ir.Xor: 0, ir.Assign: 0}[c])
}

// combine combines two held values; half types are not rounded here: reductions accumulate in
// float32 and round once.
func (b *Builder) combine(c ir.Combine, t ir.DType, x, y *Expr) *Expr {
	kind := [...]ir.Kind{ir.Sum: ir.OpAdd, ir.Mul: ir.OpMultiply, ir.Max: ir.OpMaximum, ir.Min: ir.OpMinimum, ir.And: ir.OpAnd, ir.Or: ir.OpOr, ir.Xor: ir.OpXor, ir.Assign: ir.OpAdd}[c]
	if h := held(t); h.IsFloat() {
		t = h
	}
	return b.binary(kind, t, x, y)
}

// finish rounds an accumulated value to its declared type.
func (b *Builder) finish(t ir.DType, x *Expr) *Expr {
	if t == ir.F16 || t == ir.BF16 {
		return b.Round(t, x)
	}
	return x
}

func (ev *evaluator) finishAll(t ir.DType, xs []*Expr) []*Expr {
	out := make([]*Expr, len(xs))
	for i, x := range xs {
		out[i] = ev.b.finish(t, x)
	}
	return out
}

// reduce combines serially: one thread an element of the result.
func (ev *evaluator) reduce(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.ReduceAttrs)
	operand := op.Operands[0]
	t := ev.entry.Type(operand)
	var over []ir.Dim
	for _, axis := range a.Axes {
		over = append(over, t.Shape[axis])
	}
	init := repeat(ev.b.identity(a.Combine, t.DType), len(lanes))
	sums := ev.nestBy(4, over, init, func(at, carried []*Expr) []*Expr {
		points := ev.mapPoints(lanes, t.Shape, func(kept []*Expr) []*Expr { return insertAxes(kept, a.Axes, at) })
		next := make([]*Expr, len(lanes))
		for l, x := range ev.value(operand, points) {
			next[l] = ev.b.combine(a.Combine, t.DType, carried[l], x)
		}
		return next
	})
	return ev.finishAll(t.DType, sums)
}

// insertAxes puts values at ascending axes among the others.
func insertAxes(others []*Expr, axes []int, values []*Expr) []*Expr {
	out := slices.Clone(others)
	for i, axis := range axes {
		out = slices.Insert(out, axis, values[i])
	}
	return out
}

// argReduce keeps the best element and its index; NaN beats numbers, the first of equals wins
// unless the last is asked for.
func (ev *evaluator) argReduce(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.ArgReduceAttrs)
	b := ev.b
	operand := op.Operands[0]
	t := ev.entry.Type(operand)
	n := len(lanes)
	read := func(i *Expr) []*Expr {
		return ev.value(operand, ev.mapPoints(lanes, t.Shape, func(kept []*Expr) []*Expr {
			return insertAxes(kept, []int{a.Axis}, []*Expr{i})
		}))
	}
	init := slices.Concat(read(b.Idx(0)), repeat(b.Idx(0), n))
	last := ev.loop(b.Idx(1), b.Size(t.Shape[a.Axis]), b.Idx(1), init, func(i *Expr, carried []*Expr) []*Expr {
		next := make([]*Expr, 2*n)
		for l, x := range read(i) {
			best := carried[l]
			first, second := best, x
			if a.Combine == ir.Min {
				first, second = x, best
			}
			wins := b.lessThan(t.DType, first, second)
			if a.Last {
				wins = b.Not(b.lessThan(t.DType, second, first))
			}
			if t.DType.IsFloat() {
				wins = b.Or(b.And(wins, b.Not(b.isNaN(best))), b.And(b.isNaN(x), b.orLast(a.Last, best)))
			}
			next[l], next[n+l] = b.Select(wins, x, best), b.Select(wins, i, carried[n+l])
		}
		return next
	})
	out := make([]*Expr, n)
	for l := range out {
		out[l] = b.FromIndex(last[n+l], ir.I64)
	}
	return out
}

// orLast decides between two NaNs: the later one wins only when the last is asked for.
func (b *Builder) orLast(last bool, best *Expr) *Expr {
	if last {
		return b.True()
	}
	return b.Not(b.isNaN(best))
}

func (ev *evaluator) reduceWindow(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.ReduceWindowAttrs)
	b := ev.b
	operand := op.Operands[0]
	t := ev.entry.Type(operand)
	identity := b.identity(a.Combine, t.DType)
	sums := ev.nest(a.Window, repeat(identity, len(lanes)), func(at, carried []*Expr) []*Expr {
		points, valid := make([]*Point, len(lanes)), make([]*Expr, len(lanes))
		for l, p := range lanes {
			in := make([]*Expr, len(at))
			valid[l] = b.True()
			for d, x := range ev.coordinates(p) {
				in[d] = b.window(x, a.Strides[d], at[d], a.Dilations[d], a.Low[d])
				valid[l] = b.And(valid[l], b.inside(in[d], t.Shape[d]))
			}
			points[l] = ev.at(t.Shape, in)
		}
		next := make([]*Expr, len(lanes))
		for l, x := range ev.guarded(operand, points, valid, repeat(identity, len(lanes))) {
			next[l] = b.combine(a.Combine, t.DType, carried[l], x)
		}
		return next
	})
	return ev.finishAll(t.DType, sums)
}

// window is the index of element k of window x: x*stride + k*dilation - low.
func (b *Builder) window(x *Expr, stride int64, k *Expr, dilation int64, low ir.Dim) *Expr {
	at := b.Add(b.Mul(x, b.Idx(stride)), b.Mul(k, b.Idx(dilation)))
	return b.Sub(at, b.parameter(low))
}

// cumulative combines serially up to each element.
func (ev *evaluator) cumulative(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.CumulativeAttrs)
	b := ev.b
	operand := op.Operands[0]
	t := ev.entry.Type(operand)
	out := make([]*Expr, len(lanes))
	for l, p := range lanes {
		at := ev.coordinates(p)
		exclusive := int64(1)
		if a.Exclusive {
			exclusive = 0
		}
		count := b.Add(at[a.Axis], b.Idx(exclusive))
		if a.Reverse {
			count = b.Add(b.Sub(b.Size(t.Shape[a.Axis]), at[a.Axis]), b.Idx(exclusive-1))
		}
		sum := ev.loop(b.Idx(0), count, b.Idx(1), []*Expr{b.identity(a.Combine, t.DType)}, func(i *Expr, carried []*Expr) []*Expr {
			in := slices.Clone(at)
			in[a.Axis] = i
			if a.Reverse {
				in[a.Axis] = b.Sub(b.Size(t.Shape[a.Axis].AddConst(-1)), i)
			}
			x := ev.value(operand, []*Point{ev.at(t.Shape, in)})[0]
			return []*Expr{b.combine(a.Combine, t.DType, carried[0], x)}
		})
		out[l] = b.finish(t.DType, sum[0])
	}
	return out
}

// multiplyAdd is x*y + sum as contractions accumulate: fused for floats.
func (b *Builder) multiplyAdd(t ir.DType, x, y, sum *Expr) *Expr {
	if t.IsFloat() {
		return b.Arith(Fma, t, x, y, sum)
	}
	return b.Add(b.Mul(x, y), sum)
}

// accumulator is the type in which products are summed and its zero: float32 at least for
// floats, the result's own width for integers.
func (b *Builder) accumulator(operand, result ir.DType) ir.DType {
	if operand == ir.F64 || result == ir.F64 {
		return ir.F64
	}
	if operand.IsFloat() {
		return ir.F32
	}
	return held(result)
}

// dot sums products serially: one thread an element of the result.
func (ev *evaluator) dot(op *ir.Op, lanes []*Point) []*Expr {
	c := contractionOf(ev, op)
	b := ev.b
	acc := c.accumulator
	sums := ev.nest(c.k, repeat(b.zero(acc), len(lanes)), func(at, carried []*Expr) []*Expr {
		lhs, rhs := make([]*Point, len(lanes)), make([]*Point, len(lanes))
		for l, p := range lanes {
			batch, m, n := c.split(ev.coordinates(p))
			lhs[l], rhs[l] = c.lhsPoint(batch, m, at), c.rhsPoint(batch, n, at)
		}
		return ev.accumulate(acc, ev.value(op.Operands[0], lhs), ev.value(op.Operands[1], rhs), op, carried)
	})
	return ev.finishContraction(op, acc, sums)
}

func (ev *evaluator) accumulate(acc ir.DType, x, y []*Expr, op *ir.Op, carried []*Expr) []*Expr {
	next := make([]*Expr, len(carried))
	t := ev.entry.Type(op.Operands[0]).DType
	for l := range carried {
		next[l] = ev.b.multiplyAdd(acc, ev.b.factor(op, x[l], t, acc), ev.b.factor(op, y[l], t, acc), carried[l])
	}
	return next
}

// factor is an element of a product's operand as it is multiplied: widened to the accumulator's
// type, rounded to TF32 before where the program asks for it.
func (b *Builder) factor(op *ir.Op, x *Expr, t, acc ir.DType) *Expr {
	if precisionOf(op) == ir.TF32 {
		bits := b.Arith(Bitcast, ir.I32, x)
		bits = b.Arith(And, ir.I32, b.Arith(Add, ir.I32, bits, b.Int(ir.I32, 0x1000)), b.Int(ir.I32, ^0x1fff))
		x = b.Select(b.Cmp(FNE, x, x), x, b.Arith(Bitcast, ir.F32, bits))
	}
	return b.widen(x, t, acc)
}

func precisionOf(op *ir.Op) ir.Precision {
	switch a := op.Attrs.(type) {
	case *ir.DotAttrs:
		return a.Precision
	case *ir.ConvolutionAttrs:
		return a.Precision
	}
	return ir.FullPrecision
}

// widen converts a held operand to the accumulator's type.
func (b *Builder) widen(x *Expr, t, acc ir.DType) *Expr {
	if x.Type == acc {
		return x
	}
	return b.convert(x, t, acc)
}

func (ev *evaluator) finishContraction(op *ir.Op, acc ir.DType, sums []*Expr) []*Expr {
	to := ev.entry.Type(op.Results[0]).DType
	out := make([]*Expr, len(sums))
	for i, x := range sums {
		out[i] = ev.b.convert(x, acc, to)
	}
	return out
}

// convolution sums products serially over channels of the group and kernel positions.
func (ev *evaluator) convolution(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.ConvolutionAttrs)
	b := ev.b
	x, w := ev.shape(op.Operands[0]), ev.shape(op.Operands[1])
	acc := b.accumulator(ev.entry.Type(op.Operands[0]).DType, ev.entry.Type(op.Results[0]).DType)
	perGroup, _ := w[0].DivExact(ir.Const(a.Groups))
	over := append([]ir.Dim{w[1]}, w[2:]...)
	sums := ev.nest(over, repeat(b.zero(acc), len(lanes)), func(k, carried []*Expr) []*Expr {
		xs, valid, ws := make([]*Point, len(lanes)), make([]*Expr, len(lanes)), make([]*Point, len(lanes))
		for l, p := range lanes {
			at := ev.coordinates(p)
			group, _ := b.DivMod(at[1], b.Size(perGroup))
			channel := b.Add(b.Mul(group, b.Size(w[1])), k[0])
			if a.Groups == 1 {
				channel = k[0]
			}
			spatial, inside, kernelAt := ev.convolutionAt(a, at[2:], k[1:], x[2:], w[2:])
			xs[l], valid[l] = ev.at(x, append([]*Expr{at[0], channel}, spatial...)), inside
			ws[l] = ev.at(w, append([]*Expr{at[1], k[0]}, kernelAt...))
		}
		zero := repeat(b.zero(held(ev.entry.Type(op.Operands[0]).DType)), len(lanes))
		return ev.accumulate(acc, ev.guarded(op.Operands[0], xs, valid, zero), ev.value(op.Operands[1], ws), op, carried)
	})
	return ev.finishContraction(op, acc, sums)
}

// convolutionAt gives the input position of kernel position k at output position out, whether
// it is an element of the input, and the position in the kernel as stored.
func (ev *evaluator) convolutionAt(a *ir.ConvolutionAttrs, out, k []*Expr, in, window []ir.Dim) (at []*Expr, inside *Expr, kernelAt []*Expr) {
	b := ev.b
	inside = b.True()
	for d := range out {
		x := b.window(out[d], a.Strides[d], k[d], a.RhsDilation[d], a.Low[d])
		if step := a.LhsDilation[d]; step > 1 {
			inside = b.And(inside, b.NotLess(x, b.Idx(0)))
			q, r := b.DivMod(b.MaxIndex(x, b.Idx(0)), b.Idx(step))
			inside = b.And(inside, b.Cmp(EQ, r, b.Idx(0)))
			x = q
		}
		inside = b.And(inside, b.inside(x, in[d]))
		at = append(at, x)
		position := k[d]
		if a.ReverseKernel {
			position = b.Sub(b.Size(window[d].AddConst(-1)), k[d])
		}
		kernelAt = append(kernelAt, position)
	}
	return at, inside, kernelAt
}
