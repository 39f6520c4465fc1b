package kernel

import (
	"slices"
	"sync"

	"weft/ir"
)

// rule gives the value of an operator as a function of the index.
type rule func(ev *evaluator, op *ir.Op, lanes []*Point) []*Expr

// rules has a rule for each kind that is not elementwise and that kernels can compute.
var rules = sync.OnceValue(func() map[ir.Kind]rule {
	return map[ir.Kind]rule{
		ir.OpConstant:           (*evaluator).constant,
		ir.OpDim:                (*evaluator).dim,
		ir.OpIota:               (*evaluator).iota,
		ir.OpReshape:            (*evaluator).reshape,
		ir.OpBroadcastInDim:     (*evaluator).broadcast,
		ir.OpTranspose:          (*evaluator).transpose,
		ir.OpSlice:              (*evaluator).slice,
		ir.OpReverse:            (*evaluator).reverse,
		ir.OpPad:                (*evaluator).pad,
		ir.OpConcatenate:        (*evaluator).concatenate,
		ir.OpDynamicSlice:       (*evaluator).dynamicSlice,
		ir.OpDynamicUpdateSlice: (*evaluator).dynamicUpdateSlice,
		ir.OpGather:             (*evaluator).gather,
		ir.OpReduce:             (*evaluator).reduce,
		ir.OpArgReduce:          (*evaluator).argReduce,
		ir.OpReduceWindow:       (*evaluator).reduceWindow,
		ir.OpCumulative:         (*evaluator).cumulative,
		ir.OpDotGeneral:         (*evaluator).dot,
		ir.OpConvolution:        (*evaluator).convolution,
		ir.OpScatter:            (*evaluator).scatter,
		ir.OpRng:                (*evaluator).rng,
	}
})

func (ev *evaluator) constant(op *ir.Op, lanes []*Point) []*Expr {
	t := op.Attrs.(*ir.ConstantAttrs).Value
	if t.Numel() == 0 { // never read
		return repeat(ev.b.zero(held(t.DType)), len(lanes))
	}
	out := make([]*Expr, len(lanes))
	for l, p := range lanes {
		linear := ev.linearIndex(p)
		// A literal of several elements is a chain of selects: literals are small.
		x := ev.b.literal(t, 0)
		for i := int64(1); i < t.Numel(); i++ {
			y := ev.b.literal(t, i)
			if y != x || i > 1 {
				x = ev.b.Select(ev.b.Cmp(EQ, linear, ev.b.Idx(i)), y, x)
			}
		}
		out[l] = x
	}
	return out
}

// literal is element i of a literal tensor as held in expressions.
func (b *Builder) literal(t *ir.Tensor, i int64) *Expr {
	if h := held(t.DType); h.IsFloat() {
		return b.Float(h, t.Float(i))
	} else {
		return b.Int(h, t.Int(i))
	}
}

func repeat(x *Expr, n int) []*Expr { return slices.Repeat([]*Expr{x}, n) }

func (ev *evaluator) dim(op *ir.Op, lanes []*Point) []*Expr {
	return repeat(ev.b.FromIndex(ev.b.parameter(op.Attrs.(*ir.DimAttrs).Value), ir.I64), len(lanes))
}

func (ev *evaluator) iota(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.IotaAttrs)
	out := make([]*Expr, len(lanes))
	for l, p := range lanes {
		out[l] = ev.b.convert(ev.coordinates(p)[a.Axis], ev.b.Index, a.Type)
	}
	return out
}

func (ev *evaluator) reshape(op *ir.Op, lanes []*Point) []*Expr {
	operand := op.Operands[0]
	dims := ev.shape(operand)
	points := make([]*Point, len(lanes))
	for l, p := range lanes {
		if p.linear != nil {
			points[l] = ev.atLinear(dims, p.linear)
		} else {
			points[l] = ev.at(dims, ev.regroup(p.multi, p.dims, dims))
		}
	}
	return ev.value(operand, points)
}

// regroup maps coordinates between two shapes of the same elements, run by run of dims whose
// products are equal, so that dims which the reshape keeps are not divided.
func (ev *evaluator) regroup(multi []*Expr, from, to []ir.Dim) []*Expr {
	var out []*Expr
	for len(to) > 0 || len(from) > 0 {
		n, m := equalProducts(from, to)
		switch {
		case n == 1 && m == 1:
			out = append(out, multi[0])
		default:
			linear := ev.linearize(multi[:n], from[:n])
			out = append(out, ev.delinearize(linear, to[:m])...)
		}
		multi, from, to = multi[n:], from[n:], to[m:]
	}
	return out
}

// equalProducts finds the shortest leading runs of both shapes with equal products; the whole
// shapes where there are none that are shorter.
func equalProducts(from, to []ir.Dim) (n, m int) {
	for total := 1; total <= len(from)+len(to); total++ {
		for n = 0; n <= min(total, len(from)); n++ {
			m = total - n
			if m <= len(to) && ir.Product(from[:n]).Equal(ir.Product(to[:m])) {
				return n, m
			}
		}
	}
	return len(from), len(to)
}

func (ev *evaluator) broadcast(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.BroadcastAttrs)
	dims := ev.shape(op.Operands[0])
	return ev.value(op.Operands[0], ev.mapPoints(lanes, dims, func(at []*Expr) []*Expr {
		in := make([]*Expr, len(dims))
		for i, axis := range a.Axes {
			in[i] = at[axis]
			if dims[i].Is(1) {
				in[i] = ev.b.Idx(0)
			}
		}
		return in
	}))
}

func (ev *evaluator) transpose(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.TransposeAttrs)
	return ev.value(op.Operands[0], ev.mapPoints(lanes, ev.shape(op.Operands[0]), func(at []*Expr) []*Expr {
		in := make([]*Expr, len(at))
		for i, p := range a.Permutation {
			in[p] = at[i]
		}
		return in
	}))
}

func (ev *evaluator) slice(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.SliceAttrs)
	return ev.value(op.Operands[0], ev.mapPoints(lanes, ev.shape(op.Operands[0]), func(at []*Expr) []*Expr {
		in := make([]*Expr, len(at))
		for i, x := range at {
			in[i] = ev.b.Add(ev.b.Mul(x, ev.b.Idx(a.Stride[i])), ev.b.Size(a.Start[i]))
		}
		return in
	}))
}

func (ev *evaluator) reverse(op *ir.Op, lanes []*Point) []*Expr {
	axes := op.Attrs.(*ir.AxesAttrs).Axes
	dims := ev.shape(op.Operands[0])
	return ev.value(op.Operands[0], ev.mapPoints(lanes, dims, func(at []*Expr) []*Expr {
		in := slices.Clone(at)
		for _, axis := range axes {
			in[axis] = ev.b.Sub(ev.b.Size(dims[axis].AddConst(-1)), at[axis])
		}
		return in
	}))
}

func (ev *evaluator) pad(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.PadAttrs)
	b := ev.b
	dims := ev.shape(op.Operands[0])
	points, valid := make([]*Point, len(lanes)), make([]*Expr, len(lanes))
	first := make([]*Expr, len(dims)) // of the first lane, before the ends are checked
	for l, p := range lanes {
		in := make([]*Expr, len(dims))
		valid[l] = b.True()
		for d, x := range ev.coordinates(p) {
			x = b.Sub(x, b.parameter(a.Low[d]))
			if step := a.Interior[d] + 1; step > 1 {
				at := b.MaxIndex(x, b.Idx(0))
				q, r := b.DivMod(at, b.Idx(step))
				valid[l] = b.And(valid[l], b.And(b.NotLess(x, b.Idx(0)), b.Cmp(EQ, r, b.Idx(0))))
				x = q
			}
			if l == 0 {
				first[d] = x
			}
			at := x
			if ev.together(x, first[d], int64(len(lanes)), dims[d]) {
				at = first[d]
			}
			valid[l] = b.And(valid[l], b.inside(at, dims[d]))
			in[d] = x
		}
		points[l] = ev.at(dims, in)
	}
	scalar := ev.value(op.Operands[1], []*Point{ev.at(nil, nil)})
	return ev.guarded(op.Operands[0], points, valid, repeat(scalar[0], len(lanes)))
}

// together tells whether x is inside of a dim wherever first is, and nowhere else: both are in one run of n from a
// multiple of n, and so are no end of the dim.
func (ev *evaluator) together(x, first *Expr, n int64, d ir.Dim) bool {
	distance, ok := Difference(x, first)
	return ok && distance >= 0 && distance < n && MultipleOf(first, n, ev.sizeDivisor) && d.DivisibleBy(n, ev.prog.Divisor)
}

// inside is 0 <= x < d.
func (b *Builder) inside(x *Expr, d ir.Dim) *Expr {
	return b.And(b.NotLess(x, b.Idx(0)), b.Less(x, b.Size(d)))
}

func (ev *evaluator) concatenate(op *ir.Op, lanes []*Point) []*Expr {
	axis := op.Attrs.(*ir.AxisAttrs).Axis
	b := ev.b
	var out []*Expr
	end := ir.Const(0)
	for n, operand := range op.Operands {
		dims := ev.shape(operand)
		start := end
		end = end.Add(dims[axis])
		points, valid := make([]*Point, len(lanes)), make([]*Expr, len(lanes))
		for l, p := range lanes {
			at := slices.Clone(ev.coordinates(p))
			at[axis] = b.Sub(at[axis], b.Size(start))
			valid[l] = b.inside(at[axis], dims[axis])
			points[l] = ev.at(dims, at)
		}
		if n == 0 {
			zero := b.zero(held(ev.entry.Type(operand).DType))
			out = ev.guarded(operand, points, valid, repeat(zero, len(lanes)))
		} else {
			out = ev.guarded(operand, points, valid, out)
		}
	}
	return out
}

func (b *Builder) zero(t ir.DType) *Expr {
	if t.IsFloat() {
		return b.Float(t, 0)
	}
	return b.Int(t, 0)
}

// starts evaluates scalar start indices, clamped so that a part of these sizes lies inside.
func (ev *evaluator) starts(operands []ir.Value, dims, sizes []ir.Dim) []*Expr {
	out := make([]*Expr, len(operands))
	for d, v := range operands {
		x := ev.value(v, []*Point{ev.at(nil, nil)})[0]
		out[d] = ev.clampStart(v, x, dims[d], sizes[d])
	}
	return out
}

// clampStart clamps a start index to [0, dim-size].
func (ev *evaluator) clampStart(v ir.Value, x *Expr, dim, size ir.Dim) *Expr {
	b := ev.b
	return b.Clamp(b.ToIndex(x, ev.entry.Type(v).DType.IsUnsigned()), b.Idx(0), b.Size(dim.Sub(size)))
}

func (ev *evaluator) dynamicSlice(op *ir.Op, lanes []*Point) []*Expr {
	dims := ev.shape(op.Operands[0])
	start := ev.starts(op.Operands[1:], dims, op.Attrs.(*ir.DynamicSliceAttrs).Sizes)
	return ev.value(op.Operands[0], ev.mapPoints(lanes, dims, func(at []*Expr) []*Expr {
		in := make([]*Expr, len(at))
		for d, x := range at {
			in[d] = ev.b.Add(start[d], x)
		}
		return in
	}))
}

func (ev *evaluator) dynamicUpdateSlice(op *ir.Op, lanes []*Point) []*Expr {
	dims, sizes := ev.shape(op.Operands[0]), ev.shape(op.Operands[1])
	start := ev.starts(op.Operands[2:], dims, sizes)
	b := ev.b
	points, valid := make([]*Point, len(lanes)), make([]*Expr, len(lanes))
	for l, p := range lanes {
		in := make([]*Expr, len(dims))
		valid[l] = b.True()
		for d, x := range ev.coordinates(p) {
			in[d] = b.Sub(x, start[d])
			valid[l] = b.And(valid[l], b.inside(in[d], sizes[d]))
		}
		points[l] = ev.at(sizes, in)
	}
	return ev.guarded(op.Operands[1], points, valid, ev.value(op.Operands[0], lanes))
}

func (ev *evaluator) gather(op *ir.Op, lanes []*Point) []*Expr {
	a := op.Attrs.(*ir.GatherAttrs)
	operand, indices := op.Operands[0], op.Operands[1]
	dims, indexDims := ev.shape(operand), ev.shape(indices)
	b := ev.b
	starts := make([][]*Expr, len(lanes)) // by lane and operand dim
	offsets := make([][]*Expr, len(lanes))
	batches := make([][]*Expr, len(lanes))
	for l, p := range lanes {
		at := ev.coordinates(p)
		starts[l] = repeat(b.Idx(0), len(dims))
		offsets[l] = repeat(b.Idx(0), len(dims))
		batch, within := ir.SplitGather(a, at)
		batches[l] = batch
		for d := range dims {
			if !slices.Contains(a.CollapsedSliceDims, d) && !slices.Contains(a.OperandBatchingDims, d) {
				offsets[l][d], within = within[0], within[1:]
			}
		}
		for i, d := range a.OperandBatchingDims {
			from := a.StartIndicesBatchingDims[i]
			if from > a.IndexVectorDim {
				from--
			}
			starts[l][d] = batches[l][from]
		}
	}
	for k, d := range a.StartIndexMap {
		points := make([]*Point, len(lanes))
		for l := range lanes {
			points[l] = ev.at(indexDims, ir.GatherIndexAt(a, batches[l], len(indexDims), b.Idx(int64(k))))
		}
		for l, x := range ev.value(indices, points) {
			starts[l][d] = ev.clampStart(indices, x, dims[d], a.SliceSizes[d])
		}
	}
	points := make([]*Point, len(lanes))
	for l := range lanes {
		at := make([]*Expr, len(dims))
		for d := range dims {
			at[d] = b.Add(starts[l][d], offsets[l][d])
		}
		points[l] = ev.at(dims, at)
	}
	return ev.value(operand, points)
}
