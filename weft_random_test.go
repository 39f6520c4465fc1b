package weft

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weft/ir"
)

var (
	randomPrograms = flag.Int("random-programs", 40, "number of random programs to run")
	randomSeed     = flag.Uint64("random-seed", 1, "seed of the first one")
)

// TestRandomPrograms compares evaluator and emulator on programs of random operations. A
// failure prints the program, which then belongs into testdata/programs.
func TestRandomPrograms(t *testing.T) {
	const batch = 40
	for first := 0; first < *randomPrograms; first += batch {
		var subjects []*subject
		for i := first; i < min(first+batch, *randomPrograms); i++ {
			s := randomSubject(*randomSeed + uint64(i))
			var disabled []string
			if i%4 == 3 {
				disabled = optionalPasses()
			}
			if err := s.schedule(disabled, nil); err != nil {
				t.Errorf("%s: %v\n%s", s.name, err, s.program)
				continue
			}
			subjects = append(subjects, s)
		}
		assembleAll(t, subjects)
		for _, s := range subjects {
			t.Run(s.name, func(t *testing.T) {
				s.check(t)
				if t.Failed() {
					t.Logf("the program:\n%s", s.program)
				}
			})
		}
	}
}

// generator makes a well-typed program. Inputs are multiples of 1/4 (and small integers), and
// it keeps account of how many bits results need: as long as those of float32 suffice, both
// sides must agree exactly, and operations that jump (floor, compare, sort) may follow.
type generator struct {
	*ir.Builder
	r      *rand.Rand
	pool   []operand
	styles map[string]string
	inputs int
}

// operand is a value with what is known of it: its magnitude is below 2^whole, and it is a
// multiple of 2^-part, unless it is inexact.
type operand struct {
	v           ir.Value
	whole, part int
	inexact     bool
}

func randomSubject(seed uint64) *subject {
	p := &ir.Program{}
	n := p.AddSymbol("n")
	n.Min, n.Max = 1, 64
	e := &ir.Entry{Name: "forward"}
	p.Entries = []*ir.Entry{e}
	g := &generator{Builder: ir.NewBuilder(p, e), r: rand.New(rand.NewPCG(seed, 3)), styles: map[string]string{}}
	switch g.r.IntN(3) {
	case 0:
		n.Min, n.Max = 0, ir.NoBound
	case 1:
		n.Min, n.Multiple = 8, 8
	}
	sizes := []map[string]int64{{"n": 8}, {"n": 16}}
	if n.Multiple == 1 {
		sizes = []map[string]int64{{"n": 1}, {"n": 13}}
		if n.Min == 0 {
			sizes = append(sizes, map[string]int64{"n": 0})
		}
	}
	for range 3 + g.r.IntN(22) {
		g.step()
	}
	g.finish()
	return &subject{name: fmt.Sprintf("seed%d", seed), program: p, spec: spec{sizes: sizes, styles: g.styles, ulps: 0, relative: g.tolerance()}}
}

func (g *generator) tolerance() float64 {
	worst := 0.0
	for _, x := range g.pool {
		if x.inexact {
			worst = max(worst, map[ir.DType]float64{ir.F16: 1e-2, ir.BF16: 6e-2}[g.DType(x.v)], 1e-4)
		}
	}
	return worst
}

// finish returns what nothing else uses, and now and then something that is used too.
func (g *generator) finish() {
	used := map[ir.Value]bool{}
	g.Entry.Body.Uses(func(v *ir.Value) { used[*v] = true })
	for i, x := range g.pool {
		if !used[x.v] || g.r.IntN(8) == 0 {
			g.Entry.AddOutput(fmt.Sprintf("out%d", i), "", x.v)
		}
	}
}

func (g *generator) dim() ir.Dim {
	if g.r.IntN(4) == 0 {
		return ir.Sym("n")
	}
	return ir.Const([]int64{1, 2, 3, 4, 5, 7, 8, 12, 16, 33}[g.r.IntN(10)])
}

var randomTypes = []ir.DType{ir.F32, ir.F32, ir.F32, ir.F32, ir.BF16, ir.F16, ir.F64, ir.I32, ir.I64, ir.I8, ir.U8, ir.U32, ir.Bool}

func (g *generator) input(t ir.DType, shape []ir.Dim) operand {
	name := fmt.Sprintf("in%d", g.inputs)
	g.inputs++
	switch {
	case t.IsFloat() && g.r.IntN(6) == 0:
		g.styles[name] = "fewspecial"
	case t.IsFloat():
		g.styles[name] = "few"
	}
	return g.add(operand{v: g.Entry.AddInput(name, ir.TensorOf(t, shape...)), whole: 2, part: 2})
}

func (g *generator) indices(shape ...ir.Dim) ir.Value {
	name := fmt.Sprintf("in%d", g.inputs)
	g.inputs++
	g.styles[name] = "-1..9"
	return g.Entry.AddInput(name, ir.TensorOf([]ir.DType{ir.I64, ir.I32}[g.r.IntN(2)], shape...))
}

// add puts a value into the pool, inexact when its type cannot hold all of its bits.
func (g *generator) add(x operand) operand {
	t := g.DType(x.v)
	digits := 23
	if t == ir.F64 {
		digits = 50
	}
	if t.IsFloat() && x.whole+x.part > digits {
		x.inexact = true
	}
	if !t.IsFloat() {
		x.whole, x.part, x.inexact = min(t.Bits(), 30), 0, false
		if t == ir.Bool {
			x.whole = 1
		}
	}
	g.pool = append(g.pool, x)
	return x
}

// elements estimates the number of elements for n = 16.
func elements(shape []ir.Dim) int64 {
	v, err := ir.Product(shape).Eval(map[string]int64{"n": 16})
	if err != nil {
		return 0
	}
	return v
}

// pick takes a value of the pool that a test likes, or makes an input.
func (g *generator) pick(ok func(operand) bool) operand {
	var good []operand
	for _, x := range g.pool {
		if ok(x) {
			good = append(good, x)
		}
	}
	if len(good) > 0 && g.r.IntN(8) > 0 {
		// Recent values are likelier, so that programs are deep.
		return good[max(0, len(good)-1-int(math.Abs(g.r.NormFloat64())*2))]
	}
	for {
		var shape []ir.Dim
		for range g.r.IntN(4) {
			shape = append(shape, g.dim())
		}
		if elements(shape) > 1500 {
			continue
		}
		if x := g.input(randomTypes[g.r.IntN(len(randomTypes))], shape); ok(x) {
			return x
		}
		g.pool = g.pool[:len(g.pool)-1]
		g.Entry.Inputs, g.Entry.Body.Params = g.Entry.Inputs[:len(g.Entry.Inputs)-1], g.Entry.Body.Params[:len(g.Entry.Body.Params)-1]
	}
}

func (g *generator) isFloat(x operand) bool { return g.DType(x.v).IsFloat() }
func (g *generator) exact(x operand) bool   { return !x.inexact }
func (g *generator) isNumber(x operand) bool {
	return g.DType(x.v) != ir.Bool
}

// like finds a value with the type of x, or broadcasts an input to it.
func (g *generator) like(x operand, exact bool) operand {
	t := g.Type(x.v)
	for _, y := range slices.Backward(g.pool) {
		if y.v != x.v && g.Type(y.v).Equal(t) && !(exact && y.inexact) && g.r.IntN(3) > 0 {
			return y
		}
	}
	shape := slices.Clone(t.Shape)
	if g.r.IntN(2) == 0 && len(shape) > 0 {
		shape = shape[g.r.IntN(len(shape)):]
		for i := range shape {
			if g.r.IntN(3) == 0 {
				shape[i] = ir.Const(1)
			}
		}
	}
	y := g.input(t.DType, shape)
	y.v = g.BroadcastTo(y.v, t.Shape)
	return y
}

// step appends one operation or a few that belong together.
func (g *generator) step() {
	steps := []func(){g.elementwise, g.elementwise, g.elementwise, g.elementary, g.binary, g.binary, g.binary, g.compareSelect, g.convert,
		g.reshape, g.transpose, g.broadcast, g.slice, g.pad, g.concatenate, g.take, g.dynamic, g.reduce, g.reduce, g.rowsLike, g.rowsLike, g.scan, g.window, g.sort, g.dot, g.dot, g.convolution, g.scatter}
	steps[g.r.IntN(len(steps))]()
}

func (g *generator) elementwise() {
	x := g.pick(func(x operand) bool { return g.isNumber(x) && g.exact(x) })
	kinds := []ir.Kind{ir.OpAbs, ir.OpNegate, ir.OpSign, ir.OpNot, ir.OpPopcnt}
	if g.isFloat(x) {
		kinds = []ir.Kind{ir.OpAbs, ir.OpNegate, ir.OpSign, ir.OpFloor, ir.OpCeil, ir.OpRoundNearestEven, ir.OpRoundNearestAfz}
	}
	g.add(operand{g.Unary(kinds[g.r.IntN(len(kinds))], x.v), x.whole + 1, x.part, false})
}

func (g *generator) elementary() {
	x := g.pick(g.isFloat)
	v := g.Unary(ir.OpTanh, x.v) // tame
	k := []ir.Kind{ir.OpTanh, ir.OpExponential, ir.OpLogistic, ir.OpErf, ir.OpSine, ir.OpCbrt, ir.OpAsinh}[g.r.IntN(7)]
	g.add(operand{g.Unary(k, v), 2, 0, true})
}

func (g *generator) binary() {
	x := g.pick(g.isNumber)
	y := g.like(x, false)
	inexact := x.inexact || y.inexact
	if !g.isFloat(x) {
		kinds := []ir.Kind{ir.OpAdd, ir.OpSubtract, ir.OpMultiply, ir.OpDivide, ir.OpRemainder, ir.OpMaximum, ir.OpMinimum, ir.OpAnd, ir.OpOr, ir.OpXor, ir.OpShiftLeft, ir.OpShiftRightLogical, ir.OpShiftRightArithmetic, ir.OpPower}
		g.add(operand{g.Binary(kinds[g.r.IntN(len(kinds))], x.v, y.v), 0, 0, false})
		return
	}
	whole, part := max(x.whole, y.whole), max(x.part, y.part)
	switch g.r.IntN(6) {
	case 0:
		g.add(operand{g.Binary(ir.OpAdd, x.v, y.v), whole + 1, part, inexact})
	case 1:
		g.add(operand{g.Binary(ir.OpSubtract, x.v, y.v), whole + 1, part, inexact})
	case 2:
		g.add(operand{g.Binary(ir.OpMultiply, x.v, y.v), x.whole + y.whole, x.part + y.part, inexact})
	case 3:
		g.add(operand{g.Binary(ir.OpMaximum, x.v, y.v), whole, part, inexact})
	case 4:
		g.add(operand{g.Op(ir.OpClamp, nil, nil, y.v, x.v, x.v)[0], whole, part, inexact})
	case 5:
		d := g.Binary(ir.OpAdd, g.Unary(ir.OpAbs, y.v), g.FullLike(y.v, 1))
		g.add(operand{g.Binary(ir.OpDivide, x.v, d), x.whole, 0, true})
	}
}

func (g *generator) compareSelect() {
	x := g.pick(g.exact)
	y := g.like(x, true)
	p := g.Compare(ir.Direction(g.r.IntN(int(ir.GE)+1)), x.v, y.v)
	if g.r.IntN(3) == 0 {
		g.add(operand{v: p})
		return
	}
	z := g.like(x, false)
	g.add(operand{g.Select(p, x.v, z.v), max(x.whole, z.whole), max(x.part, z.part), z.inexact})
}

func (g *generator) convert() {
	x := g.pick(g.exact)
	to := randomTypes[g.r.IntN(len(randomTypes))]
	g.add(operand{g.Convert(x.v, to), x.whole, x.part, false})
}

func (g *generator) reshape() {
	x := g.pick(func(x operand) bool { return g.Rank(x.v) > 0 })
	s := slices.Clone(g.Shape(x.v))
	i := g.r.IntN(len(s))
	switch c, ok := s[i].IsConst(); {
	case g.r.IntN(3) == 0 && i+1 < len(s): // merge
		s = slices.Replace(s, i, i+2, s[i].Mul(s[i+1]))
	case ok && c%2 == 0 && c > 0: // split
		s = slices.Replace(s, i, i+1, ir.Const(c/2), ir.Const(2))
	case g.r.IntN(2) == 0:
		s = slices.Insert(s, i, ir.Const(1))
	default:
		s = []ir.Dim{ir.Product(s)}
	}
	x.v = g.Reshape(x.v, s)
	g.add(x)
}

func (g *generator) transpose() {
	x := g.pick(func(x operand) bool { return g.Rank(x.v) > 1 })
	x.v = g.Transpose(x.v, g.r.Perm(g.Rank(x.v)))
	g.add(x)
}

func (g *generator) broadcast() {
	x := g.pick(func(x operand) bool { return elements(g.Shape(x.v)) < 300 })
	s := slices.Clone(g.Shape(x.v))
	axes := make([]int, len(s))
	at := g.r.IntN(len(s) + 1)
	for i := range axes {
		axes[i] = i
		if i >= at {
			axes[i]++
		}
	}
	x.v = g.Broadcast(x.v, slices.Insert(s, at, ir.Const([]int64{2, 3, 8}[g.r.IntN(3)])), axes)
	g.add(x)
}

// fixedAxis picks a value and an axis of a fixed size of at least 2.
func (g *generator) fixedAxis(ok func(operand) bool) (operand, int, int64) {
	axisOf := func(x operand) int {
		return slices.IndexFunc(g.Shape(x.v), func(d ir.Dim) bool { c, ok := d.IsConst(); return ok && c >= 2 })
	}
	x := g.pick(func(x operand) bool { return ok(x) && axisOf(x) >= 0 })
	axis := axisOf(x)
	c, _ := g.Shape(x.v)[axis].IsConst()
	return x, axis, c
}

func anything(operand) bool { return true }

func (g *generator) slice() {
	x, axis, size := g.fixedAxis(anything)
	start := g.r.Int64N(size)
	x.v = g.SliceAxis(x.v, axis, ir.Const(start), ir.Const(start+1+g.r.Int64N(size-start)), 1+g.r.Int64N(2))
	if g.r.IntN(2) == 0 {
		x.v = g.Reverse(x.v, axis)
	}
	g.add(x)
}

func (g *generator) pad() {
	x := g.pick(func(x operand) bool { return g.Rank(x.v) > 0 && elements(g.Shape(x.v)) < 300 })
	rank := g.Rank(x.v)
	low, high, interior := ir.Consts(make([]int64, rank)...), ir.Consts(make([]int64, rank)...), make([]int64, rank)
	for i := range rank {
		low[i], high[i], interior[i] = ir.Const(g.r.Int64N(3)), ir.Const(g.r.Int64N(3)), g.r.Int64N(2)
	}
	if c, ok := g.Shape(x.v)[0].IsConst(); ok && c > 2 {
		low[0] = ir.Const(-1)
	}
	x.v = g.Pad(x.v, g.Scalar(g.DType(x.v), 1), low, high, interior)
	g.add(x)
}

func (g *generator) concatenate() {
	x := g.pick(func(x operand) bool { return g.Rank(x.v) > 0 && elements(g.Shape(x.v)) < 800 })
	y := g.like(x, false)
	g.add(operand{g.Concatenate(g.r.IntN(g.Rank(x.v)), x.v, y.v), max(x.whole, y.whole), max(x.part, y.part), x.inexact || y.inexact})
}

func (g *generator) take() {
	x, axis, _ := g.fixedAxis(func(x operand) bool { return elements(g.Shape(x.v)) < 800 })
	x.v = g.Take(x.v, g.indices([][]ir.Dim{{}, ir.Consts(3), ir.Consts(2, 2)}[g.r.IntN(3)]...), axis)
	g.add(x)
}

func (g *generator) dynamic() {
	x, axis, size := g.fixedAxis(anything)
	sizes := slices.Clone(g.Shape(x.v))
	sizes[axis] = ir.Const(1 + g.r.Int64N(size))
	starts := make([]ir.Value, len(sizes))
	for i := range starts {
		starts[i] = g.indices()
	}
	if g.r.IntN(2) == 0 {
		x.v = g.Op(ir.OpDynamicSlice, &ir.DynamicSliceAttrs{Sizes: sizes}, nil, append([]ir.Value{x.v}, starts...)...)[0]
	} else {
		x.v = g.Op(ir.OpDynamicUpdateSlice, nil, nil, append([]ir.Value{x.v, g.input(g.DType(x.v), sizes).v}, starts...)...)[0]
	}
	g.add(x)
}

// bits is the growth of a sum of n terms.
func bits(n int64) int { return int(math.Ceil(math.Log2(float64(max(n, 1))))) }

func (g *generator) axes(rank int) []int {
	axes := g.r.Perm(rank)[:1+g.r.IntN(rank)]
	slices.Sort(axes)
	return axes
}

func (g *generator) reduce() {
	x := g.pick(func(x operand) bool { return g.isNumber(x) && g.Rank(x.v) > 0 })
	if g.r.IntN(5) == 0 && g.exact(x) {
		if _, axis, ok := g.constAxis(x); ok {
			g.add(operand{v: g.ArgReduce(x.v, &ir.ArgReduceAttrs{Combine: []ir.Combine{ir.Max, ir.Min}[g.r.IntN(2)], Axis: axis, Last: g.r.IntN(2) == 0})})
			return
		}
	}
	c := []ir.Combine{ir.Sum, ir.Sum, ir.Max, ir.Min}[g.r.IntN(4)]
	if c == ir.Sum {
		x.whole += bits(elements(g.Shape(x.v)))
	}
	x.v = g.Reduce(c, x.v, g.axes(g.Rank(x.v))...)
	g.add(x)
}

func (g *generator) constAxis(x operand) (operand, int, bool) {
	axis := slices.IndexFunc(g.Shape(x.v), func(d ir.Dim) bool { c, ok := d.IsConst(); return ok && c >= 1 })
	return x, axis, axis >= 0
}

// rowsLike reduces, spreads the result back and uses it, perhaps twice in a row.
func (g *generator) rowsLike() {
	x := g.pick(func(x operand) bool { return g.isFloat(x) && g.Rank(x.v) > 0 })
	axes := g.axes(g.Rank(x.v))
	s := g.Shape(x.v)
	m := g.ReduceKeep(ir.Max, x.v, axes...)
	d := g.Binary(ir.OpSubtract, x.v, g.BroadcastTo(m, s))
	if g.r.IntN(2) == 0 {
		g.add(operand{d, x.whole + 1, x.part, x.inexact})
		return
	}
	e := g.Unary(ir.OpExponential, g.Unary(ir.OpTanh, d))
	sum := g.ReduceKeep(ir.Sum, e, axes...)
	g.add(operand{g.Binary(ir.OpDivide, e, g.BroadcastTo(sum, s)), 1, 0, true})
	if g.r.IntN(2) == 0 {
		g.add(operand{g.Unary(ir.OpTanh, sum), 1, 0, true})
	}
}

func (g *generator) scan() {
	x, axis, size := g.fixedAxis(func(x operand) bool { return g.isNumber(x) && elements(g.Shape(x.v)) < 600 })
	x.whole += bits(size)
	x.v = g.Cumulative(x.v, &ir.CumulativeAttrs{Combine: []ir.Combine{ir.Sum, ir.Max}[g.r.IntN(2)], Axis: axis, Reverse: g.r.IntN(2) == 0, Exclusive: g.r.IntN(2) == 0})
	g.add(x)
}

func (g *generator) window() {
	x, axis, _ := g.fixedAxis(func(x operand) bool { return g.isNumber(x) && elements(g.Shape(x.v)) < 600 })
	rank := g.Rank(x.v)
	a := &ir.ReduceWindowAttrs{Combine: []ir.Combine{ir.Sum, ir.Max, ir.Min}[g.r.IntN(3)]}
	for i := range rank {
		w, s, pad := int64(1), int64(1), int64(0)
		if i == axis {
			w, s, pad = 2, 1+g.r.Int64N(2), g.r.Int64N(2)
		}
		a.Window, a.Strides, a.Dilations = append(a.Window, ir.Const(w)), append(a.Strides, s), append(a.Dilations, 1)
		a.Low, a.High = append(a.Low, ir.Const(pad)), append(a.High, ir.Const(pad))
	}
	x.whole++
	x.v = g.ReduceWindow(x.v, a)
	g.add(x)
}

func (g *generator) sort() {
	x, axis, _ := g.fixedAxis(func(x operand) bool { return g.isNumber(x) && g.exact(x) && elements(g.Shape(x.v)) < 400 })
	out := g.Sort(&ir.SortAttrs{Axis: axis, Descending: g.r.IntN(2) == 0}, x.v, g.Iota(ir.I32, g.Shape(x.v), axis))
	x.v = out[0]
	g.add(x)
	g.add(operand{v: out[1]})
}

func (g *generator) dot() {
	x := g.pick(func(x operand) bool {
		return g.isNumber(x) && g.Rank(x.v) > 0 && g.Rank(x.v) < 4 && elements(g.Shape(x.v)) < 1000
	})
	s, t := g.Shape(x.v), g.DType(x.v)
	k := g.r.IntN(len(s))
	y := g.input(t, []ir.Dim{s[k], ir.Const([]int64{1, 5, 8, 24}[g.r.IntN(4)])})
	a := &ir.DotAttrs{LhsContract: []int{k}, RhsContract: []int{0}, To: t}
	if g.r.IntN(3) == 0 && len(s) > 1 {
		b := (k + 1) % len(s)
		y = g.input(t, []ir.Dim{ir.Const(6), s[b], s[k]})
		a.LhsBatch, a.RhsBatch, a.RhsContract = []int{b}, []int{1}, []int{2}
	}
	if t == ir.BF16 || t == ir.F16 || t == ir.I8 {
		a.To = []ir.DType{t, ir.F32, ir.F32}[g.r.IntN(2)]
		if t == ir.I8 {
			a.To = ir.I32
		}
	}
	x.whole += y.whole + bits(elements(s[k:k+1]))
	x.part += y.part
	x.v = g.DotGeneral(x.v, y.v, a)
	x = g.add(x)
	if g.isFloat(x) && g.r.IntN(2) == 0 { // an epilogue
		last := g.Shape(x.v)[g.Rank(x.v)-1]
		b := g.input(g.DType(x.v), []ir.Dim{last})
		x.v = g.Binary(ir.OpMaximum, g.Binary(ir.OpAdd, x.v, g.BroadcastTo(b.v, g.Shape(x.v))), g.FullLike(x.v, 0))
		x.whole++
		g.add(x)
	}
}

func (g *generator) convolution() {
	t := []ir.DType{ir.F32, ir.BF16}[g.r.IntN(2)]
	groups := 1 + g.r.Int64N(2)
	n := ir.Const(2)
	if g.r.IntN(2) == 0 {
		n = ir.Sym("n")
	}
	x := g.input(t, []ir.Dim{n, ir.Const(4), ir.Const(5 + g.r.Int64N(4))})
	w := g.input(t, []ir.Dim{ir.Const(8), ir.Const(4 / groups), ir.Const(1 + g.r.Int64N(3))})
	v := g.Convolution(x.v, w.v, &ir.ConvolutionAttrs{Strides: []int64{1 + g.r.Int64N(2)}, Low: ir.Consts(g.r.IntN(3)), High: ir.Consts(g.r.IntN(3)),
		LhsDilation: []int64{1 + g.r.Int64N(2)}, RhsDilation: []int64{1 + g.r.Int64N(2)}, Groups: groups, ReverseKernel: g.r.IntN(2) == 0})
	g.add(operand{v, 8, 4, false})
}

func (g *generator) scatter() {
	x, axis, _ := g.fixedAxis(func(x operand) bool { return g.isNumber(x) && g.Rank(x.v) > 0 && elements(g.Shape(x.v)) < 600 })
	rank := g.Rank(x.v)
	updates := slices.Clone(g.Shape(x.v))
	updates[axis] = ir.Const(4)
	a := &ir.ScatterAttrs{Combine: []ir.Combine{ir.Sum, ir.Max, ir.Assign}[g.r.IntN(3)], InsertedWindowDims: []int{axis}, ScatterDimsToOperandDims: []int{axis}, IndexVectorDim: 1}
	for i := range rank {
		if i != axis {
			a.UpdateWindowDims = append(a.UpdateWindowDims, i)
		}
	}
	u := g.input(g.DType(x.v), updates)
	x.whole = max(x.whole, u.whole) + 3
	x.part = max(x.part, u.part)
	x.v = g.Scatter(x.v, g.indices(ir.Const(4)), u.v, a)
	g.add(x)
}
