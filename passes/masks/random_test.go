package masks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"weft/ir"
	"weft/ir/eval"
)

// random makes values of integers and bools by the operations that are followed, and some that are not.
type random struct {
	*rand.Rand
	b    *ir.Builder
	pool []ir.Value
}

// newRandom starts a program of two symbols, s and t, whose entry takes q, k, v, an integer and a bool.
func newRandom(seed uint64) *random {
	p := &ir.Program{Symbols: []ir.Symbol{{Name: "s", Min: 1, Max: 4, Multiple: 1}, {Name: "t", Min: 1, Max: 6, Multiple: 1}}}
	e := &ir.Entry{Name: "forward"}
	p.Entries = append(p.Entries, e)
	r := &random{Rand: rand.New(rand.NewPCG(seed, 1)), b: ir.NewBuilder(p, e)}
	rows, keys := []ir.Dim{ir.Const(2), ir.Const(2), ir.Sym("s"), ir.Const(3)}, []ir.Dim{ir.Const(2), ir.Const(2), ir.Sym("t"), ir.Const(3)}
	e.AddInput("q", ir.TensorOf(ir.F32, rows...))
	e.AddInput("k", ir.TensorOf(ir.F32, keys...))
	e.AddInput("v", ir.TensorOf(ir.F32, keys...))
	r.pool = append(r.pool, e.AddInput("padding", ir.TensorOf(ir.Bool, ir.Const(2), ir.Sym("t"))))
	r.pool = append(r.pool, e.AddInput("positions", ir.TensorOf(ir.I64, ir.Sym("s"))))
	return r
}

func one[T any](r *random, of ...T) T { return of[r.IntN(len(of))] }

func (r *random) dim() ir.Dim {
	return one(r, ir.Const(1), ir.Const(2), ir.Const(3), ir.Sym("s"), ir.Sym("s"), ir.Sym("t"), ir.Sym("t"))
}

func (r *random) shape() []ir.Dim {
	dims := make([]ir.Dim, r.IntN(4))
	for i := range dims {
		dims[i] = r.dim()
	}
	return dims
}

func (r *random) integer() ir.DType { return one(r, ir.I64, ir.I64, ir.I64, ir.I32, ir.I8, ir.U8) }

// value takes one of the pool, more often a late one, that fits; ir.NoValue where there is none.
func (r *random) value(fits func(t ir.Type) bool) ir.Value {
	for range 30 {
		i := max(r.IntN(len(r.pool)), r.IntN(len(r.pool)))
		if v := r.pool[i]; fits(r.b.Type(v)) {
			return v
		}
	}
	return ir.NoValue
}

func isInteger(t ir.Type) bool { return t.DType.IsInteger() }

func isBool(t ir.Type) bool { return t.DType == ir.Bool }

// like takes one of the pool or makes one of that type.
func (r *random) like(t ir.Type) ir.Value {
	if v := r.value(t.Equal); v != ir.NoValue && r.IntN(3) > 0 {
		return v
	}
	switch {
	case isBool(t):
		return r.b.Full(t, float64(r.IntN(2)))
	case t.Rank() > 0 && r.IntN(2) == 0:
		return r.b.Iota(t.DType, t.Shape, r.IntN(t.Rank()))
	}
	return r.b.Full(t, float64(r.IntN(7)-2*r.IntN(2)))
}

// steps are the ways to make a value; each gives ir.NoValue where the pool has no operand for it.
var steps = []func(r *random) ir.Value{
	func(r *random) ir.Value {
		dims := append(r.shape(), r.dim())
		return r.b.Iota(r.integer(), dims, r.IntN(len(dims)))
	},
	func(r *random) ir.Value { return r.b.Dim(r.dim().AddConst(int64(r.IntN(5) - 2))) },
	func(r *random) ir.Value { return r.like(ir.TensorOf(r.integer(), r.shape()...)) },
	func(r *random) ir.Value {
		n := r.IntN(4) + 1
		values, step := make([]int64, n), int64(r.IntN(5)-2)
		for i := range values {
			values[i] = int64(i) * step
		}
		return r.b.Constant(ir.I64s(values, int64(n)))
	},
	func(r *random) ir.Value {
		return r.b.Convert(r.value(func(ir.Type) bool { return true }), one(r, ir.I64, ir.I32, ir.Bool, ir.I8))
	},
	binary(isInteger, ir.OpAdd, ir.OpSubtract, ir.OpSubtract, ir.OpMultiply, ir.OpMaximum, ir.OpMinimum, ir.OpRemainder),
	binary(isInteger, ir.OpAdd, ir.OpSubtract),
	binary(isBool, ir.OpAnd, ir.OpOr, ir.OpMaximum, ir.OpXor),
	with(isInteger, func(r *random, x ir.Value) ir.Value { return r.b.Unary(ir.OpNegate, x) }),
	with(isBool, func(r *random, x ir.Value) ir.Value { return r.b.Unary(ir.OpNot, x) }),
	comparison, comparison, comparison,
	func(r *random) ir.Value {
		p := r.value(isBool)
		if p == ir.NoValue {
			return p
		}
		t := ir.TensorOf(one(r, ir.I64, ir.I64, ir.Bool), r.b.Shape(p)...)
		return r.b.Select(p, r.like(t), r.like(t))
	},
	with(isInteger, func(r *random, x ir.Value) ir.Value {
		return r.b.Op(ir.OpClamp, nil, nil, r.like(r.b.Type(x)), x, r.like(r.b.Type(x)))[0]
	}),
	moving(randomReshape), moving(randomReshape), moving(randomBroadcast), moving(randomBroadcast), moving(randomBroadcast),
	moving(func(r *random, x ir.Value) ir.Value { return r.b.Transpose(x, r.Perm(r.b.Rank(x))) }),
	moving(func(r *random, x ir.Value) ir.Value {
		axis := r.IntN(r.b.Rank(x))
		n := r.b.Shape(x)[axis]
		start := ir.Const(int64(r.IntN(2))).Min(n)
		return r.b.SliceAxis(x, axis, start, n.AddConst(-int64(r.IntN(2))).Max(start), int64(r.IntN(2)+1))
	}),
	moving(func(r *random, x ir.Value) ir.Value { return r.b.Reverse(x, r.IntN(r.b.Rank(x))) }),
	moving(func(r *random, x ir.Value) ir.Value {
		axis := r.IntN(r.b.Rank(x))
		dims := slices.Clone(r.b.Shape(x))
		dims[axis] = one(r, ir.Const(1), ir.Const(1), r.dim())
		parts := []ir.Value{r.like(ir.TensorOf(r.b.DType(x), dims...)), x}
		r.Shuffle(2, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return r.b.Concatenate(axis, parts...)
	}),
	moving(difference), moving(difference),
	moving(func(r *random, x ir.Value) ir.Value {
		low, high, interior := make([]ir.Dim, r.b.Rank(x)), make([]ir.Dim, r.b.Rank(x)), make([]int64, r.b.Rank(x))
		axis := r.IntN(len(low))
		low[axis], high[axis], interior[axis] = ir.Const(int64(r.IntN(2))), ir.Const(int64(r.IntN(2))), int64(r.IntN(4)/3)
		return r.b.Pad(x, r.like(ir.TensorOf(r.b.DType(x))), low, high, interior)
	}),
	randomGather, randomGather, randomGather,
	moving(func(r *random, x ir.Value) ir.Value {
		operands, sizes := []ir.Value{x}, slices.Clone(r.b.Shape(x))
		axis := r.IntN(len(sizes))
		sizes[axis] = ir.Const(1)
		for range sizes {
			operands = append(operands, r.like(ir.TensorOf(ir.I64)))
		}
		return r.b.Op(ir.OpDynamicSlice, &ir.DynamicSliceAttrs{Sizes: sizes}, nil, operands...)[0]
	}),
	moving(func(r *random, x ir.Value) ir.Value {
		return r.b.Reduce(r.combine(x), x, r.Perm(r.b.Rank(x))[:1+r.IntN(r.b.Rank(x))]...)
	}),
	moving(func(r *random, x ir.Value) ir.Value {
		return r.b.Cumulative(x, &ir.CumulativeAttrs{Combine: r.combine(x), Axis: r.IntN(r.b.Rank(x)), Reverse: r.IntN(4) == 0, Exclusive: r.IntN(4) == 0})
	}),
}

func with(fits func(ir.Type) bool, f func(r *random, x ir.Value) ir.Value) func(r *random) ir.Value {
	return func(r *random) ir.Value {
		x := r.value(fits)
		if x == ir.NoValue {
			return x
		}
		return f(r, x)
	}
}

func moving(f func(r *random, x ir.Value) ir.Value) func(r *random) ir.Value {
	return with(func(t ir.Type) bool { return t.Rank() > 0 }, f)
}

func binary(fits func(ir.Type) bool, kinds ...ir.Kind) func(r *random) ir.Value {
	return with(fits, func(r *random, x ir.Value) ir.Value {
		y := r.like(r.b.Type(x))
		if r.IntN(2) == 0 {
			x, y = y, x
		}
		return r.b.Binary(one(r, kinds...), x, y)
	})
}

func comparison(r *random) ir.Value {
	return with(func(ir.Type) bool { return true }, func(r *random, x ir.Value) ir.Value {
		return r.b.Compare(ir.Direction(r.IntN(6)), x, r.like(r.b.Type(x)))
	})(r)
}

func (r *random) combine(x ir.Value) ir.Combine {
	if r.b.DType(x) == ir.Bool {
		return one(r, ir.And, ir.Or, ir.Max, ir.Min)
	}
	return one(r, ir.Sum, ir.Sum, ir.Max, ir.Min, ir.Mul)
}

// randomReshape inserts or removes a dim of one element, or joins or cuts.
func randomReshape(r *random, x ir.Value) ir.Value {
	dims := slices.Clone(r.b.Shape(x))
	switch i := r.IntN(len(dims)); {
	case r.IntN(3) == 0 && i+1 < len(dims):
		dims = slices.Replace(dims, i, i+2, dims[i].Mul(dims[i+1]))
	case dims[i].Is(1):
		dims = slices.Delete(dims, i, i+1)
	case r.IntN(3) == 0:
		for _, size := range []ir.Dim{ir.Const(2), ir.Const(3), ir.Sym("s"), ir.Sym("t")} {
			if q, ok := dims[i].DivExact(size); ok {
				dims = slices.Replace(dims, i, i+1, one(r, []ir.Dim{q, size}, []ir.Dim{size, q})...)
				break
			}
		}
	default:
		dims = slices.Insert(dims, i, ir.Const(1))
	}
	return r.b.Reshape(x, dims)
}

func randomBroadcast(r *random, x ir.Value) ir.Value {
	dims, axes := slices.Clone(r.b.Shape(x)), make([]int, r.b.Rank(x))
	for i, d := range dims {
		axes[i] = i
		if d.Is(1) {
			dims[i] = r.dim()
		}
	}
	if at := r.IntN(len(dims) + 1); len(dims) < 4 {
		dims = slices.Insert(dims, at, r.dim())
		for i := at; i < len(axes); i++ {
			axes[i]++
		}
	}
	return r.b.Broadcast(x, dims, axes)
}

// difference is what a value grows by along an axis, from one before its first element.
func difference(r *random, x ir.Value) ir.Value {
	axis := r.IntN(r.b.Rank(x))
	if !isInteger(r.b.Type(x)) || r.b.Shape(x)[axis].Bounds(r.b.Program.Range).Min < 1 {
		return ir.NoValue
	}
	first := r.b.SliceAxis(x, axis, ir.Const(0), ir.Const(1), 1)
	all := r.b.Concatenate(axis, r.b.Binary(ir.OpSubtract, first, r.b.FullLike(first, float64(r.IntN(2)))), x)
	n := r.b.Shape(x)[axis]
	return r.b.Binary(ir.OpSubtract, r.b.SliceAxis(all, axis, ir.Const(1), n.AddConst(1), 1), r.b.SliceAxis(all, axis, ir.Const(0), n, 1))
}

// randomGather takes elements along one axis, or at vectors of indices along two.
func randomGather(r *random) ir.Value {
	x, indices := r.value(func(t ir.Type) bool { return t.Rank() > 0 }), r.value(isInteger)
	switch {
	case x == ir.NoValue || indices == ir.NoValue:
		return ir.NoValue
	case r.b.Rank(x) < 2 || r.IntN(2) == 0:
		return r.b.Take(x, indices, r.IntN(r.b.Rank(x)))
	}
	vectors := r.b.Reshape(indices, append(slices.Clone(r.b.Shape(indices)), ir.Const(1)))
	vectors = r.b.Concatenate(r.b.Rank(indices), vectors, r.like(r.b.Type(vectors)))
	a := &ir.GatherAttrs{CollapsedSliceDims: []int{0, 1}, StartIndexMap: one(r, []int{0, 1}, []int{1, 0}), IndexVectorDim: r.b.Rank(vectors) - 1}
	a.SliceSizes = slices.Clone(r.b.Shape(x))
	a.SliceSizes[0], a.SliceSizes[1] = ir.Const(1), ir.Const(1)
	for d := 2; d < r.b.Rank(x); d++ {
		a.OffsetDims = append(a.OffsetDims, r.b.Rank(indices)+d-2)
	}
	return r.b.Gather(x, vectors, a)
}

// grow adds values to the pool.
func (r *random) grow(count int) {
	for range count {
		var v ir.Value
		step := steps[r.IntN(len(steps))]
		err := ir.Try(func() { v = step(r) })
		if err == nil && v != ir.NoValue && r.b.Rank(v) <= 4 {
			r.pool = append(r.pool, v)
		}
	}
}

// run evaluates the program at sizes; false where some operation fails there.
func (r *random) run(s, t int64) ([]*ir.Tensor, error) {
	fill := rand.New(rand.NewPCG(7, uint64(s)))
	var inputs []*ir.Tensor
	sizes := map[string]int64{"s": s, "t": t}
	for _, v := range r.b.Entry.Body.Params {
		shape := make([]int64, r.b.Rank(v))
		for i, d := range r.b.Shape(v) {
			shape[i], _ = d.Eval(sizes)
		}
		x := ir.NewTensor(r.b.DType(v), shape...)
		for i := range x.Numel() {
			if x.DType == ir.F32 {
				x.SetFloat(i, fill.NormFloat64())
			} else {
				x.SetInt(i, fill.Int64N(2))
			}
		}
		inputs = append(inputs, x)
	}
	result, err := eval.Run(r.b.Program, "forward", inputs, nil)
	if err != nil {
		return nil, err
	}
	return result.Outputs, nil
}

// sizes that programs are evaluated at.
var sizes = [][2]int64{{1, 1}, {3, 3}, {2, 5}, {4, 2}}

// TestRandomValues compares what is known of values with what they are.
func TestRandomValues(t *testing.T) {
	told := map[kind]int{}
	for seed := range uint64(400) {
		r := newRandom(seed)
		r.grow(40)
		for i, v := range r.pool {
			r.b.Entry.AddOutput(fmt.Sprint(i), "", v)
		}
		n := newInterpreter(r.b.Program, r.b.Entry)
		known, points := make([]value, len(r.pool)), make([][]form, len(r.pool))
		for i, v := range r.pool {
			n.left = patience
			for _, d := range r.b.Shape(v) {
				points[i] = append(points[i], n.coordinate(d))
			}
			known[i] = n.at(v, points[i])
			told[known[i].kind]++
		}
		for _, at := range sizes {
			outputs, err := r.run(at[0], at[1])
			if err != nil {
				continue // a slice that does not fit
			}
			for i, x := range outputs {
				holds(t, r, known[i], points[i], x, at)
			}
			if t.Failed() {
				t.Fatalf("seed %d\n%s", seed, r.b.Program)
			}
		}
	}
	t.Logf("unknown, numbers, truths, never: %v", told)
	if told[number] < 1000 || told[truth] < 300 || told[never] < 100 {
		t.Errorf("little is known: %v", told)
	}
}

// holds looks at each element of a tensor.
func holds(t *testing.T, r *random, known value, point []form, x *ir.Tensor, at [2]int64) {
	t.Helper()
	compute := func(f form, coordinates map[int]int64) int64 {
		sum, err := f.c.Eval(map[string]int64{"s": at[0], "t": at[1]})
		if err != nil {
			t.Fatal(err)
		}
		for _, term := range f.terms {
			c, ok := coordinates[term.variable]
			if !ok {
				t.Fatalf("%s has a coordinate of another point", f)
			}
			sum += term.coefficient * c
		}
		return sum
	}
	for i := range x.Numel() {
		coordinates, rest := map[int]int64{}, i
		for d := len(point) - 1; d >= 0; d-- {
			if !point[d].fixed() {
				coordinates[point[d].terms[0].variable] = rest % x.Shape[d]
			}
			rest /= x.Shape[d]
		}
		var want int64
		switch known.kind {
		case unknown:
			return
		case number:
			want = compute(known.form, coordinates)
		case truth:
			want = 1
			for _, f := range known.halves {
				if compute(f, coordinates) < 0 {
					want = 0
				}
			}
		}
		if got := x.Int(i); got != want {
			t.Errorf("element %d of %s at %v is %d, not %d", i, x.Type(), at, got, want)
			return
		}
	}
}

// TestRandomMasks compares attention under random masks before and after the pass, bit for bit.
func TestRandomMasks(t *testing.T) {
	causal := 0
	for seed := range uint64(600) {
		r := newRandom(seed)
		r.grow(25)
		mask, ok := r.mask()
		if !ok {
			continue
		}
		params := r.b.Entry.Body.Params
		attrs := ir.AttentionAttrs{Scale: 0.5, Causal: r.IntN(4) == 0}
		attrs.AlignEnd = attrs.Causal && r.IntN(2) == 0
		y := r.b.Attention(&attrs, params[0], params[1], params[2], mask)
		r.b.Entry.AddOutput("y", "", y)
		var before [][]*ir.Tensor
		for _, at := range sizes {
			outputs, _ := r.run(at[0], at[1])
			before = append(before, outputs)
		}
		text := r.b.Program.String()
		changed, err := Run(r.b.Program)
		if err != nil {
			t.Fatal(err)
		}
		if err := ir.Verify(r.b.Program); err != nil {
			t.Fatalf("%v\n%s", err, r.b.Program)
		}
		r.b.Entry.Body.Walk(func(op *ir.Op) {
			if a, ok := op.Attrs.(*ir.AttentionAttrs); ok && changed && a.Causal {
				causal++
			}
		})
		for i, at := range sizes {
			if before[i] == nil {
				continue
			}
			after, err := r.run(at[0], at[1])
			if err != nil || !slices.Equal(after[0].Data, before[i][0].Data) {
				t.Fatalf("seed %d: differs at %v (%v)\n%s\nbecomes\n%s", seed, at, err, text, r.b.Program)
			}
		}
	}
	t.Logf("%d causal", causal)
	if causal < 50 {
		t.Errorf("%d masks are causal", causal)
	}
}

// mask is the conjunction of some values of the pool and of comparisons of rows and columns.
func (r *random) mask() (ir.Value, bool) {
	dims := []ir.Dim{ir.Const(2), ir.Const(1), ir.Sym("s"), ir.Sym("t")}
	t := ir.TensorOf(ir.I64, dims...)
	var conjuncts []ir.Value
	row, column := r.b.Iota(ir.I64, dims, 2), r.b.Iota(ir.I64, dims, 3)
	for range r.IntN(3) + 1 {
		shift := r.b.BroadcastTo(r.b.Dim(one(r, ir.Const(0), ir.Const(0), ir.Const(1), ir.Sym("t").Sub(ir.Sym("s")), ir.Sym("t"), ir.Sym("s").Neg())), dims)
		conjuncts = append(conjuncts, r.b.Compare(one(r, ir.GE, ir.GE, ir.GT, ir.LT, ir.NE), r.b.Binary(ir.OpAdd, row, shift), column))
	}
	for _, v := range r.pool {
		err := ir.Try(func() {
			v = r.b.Convert(v, ir.Bool)
			if r.b.Rank(v) <= 4 && len(conjuncts) < 5 && r.IntN(4) == 0 {
				conjuncts = append(conjuncts, r.b.BroadcastTo(v, dims))
			}
		})
		if err != nil {
			continue
		}
	}
	r.Shuffle(len(conjuncts), func(i, j int) { conjuncts[i], conjuncts[j] = conjuncts[j], conjuncts[i] })
	all := conjuncts[0]
	for _, v := range conjuncts[1:] {
		all = r.b.Binary(ir.OpAnd, all, v)
	}
	return all, t.Rank() == 4
}
