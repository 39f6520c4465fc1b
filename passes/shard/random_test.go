package shard

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"weft/ir"
	"weft/ir/eval"
	"weft/passes/canonicalize"
)

// TestRandom partitions random programs over random meshes, with random strategies and rules, and
// compares what all ranks compute together with the whole program. Sizes need not divide.
func TestRandom(t *testing.T) {
	count := uint64(600)
	if testing.Short() {
		count = 100
	}
	for seed := range count {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testRandom(t, seed) })
	}
}

func testRandom(t *testing.T, seed uint64) {
	g := &generator{r: rand.New(rand.NewPCG(seed, 7))}
	p := g.program()
	if err := ir.Verify(p); err != nil {
		t.Fatal(err)
	}
	o := g.options(p)
	whole := p.String()
	q := p.Clone()
	report, _, err := Run(q, o)
	if err != nil {
		t.Fatalf("%v\n%v\n%s", err, o, whole)
	}
	if err := ir.Verify(q); err != nil {
		t.Fatalf("%v\n%v\n%s%s", err, o, whole, q)
	}
	if _, err := canonicalize.Run(q); err != nil {
		t.Fatal(err)
	}
	inputs, states := g.values(p)
	state := func(name string) (*ir.Tensor, error) { return states[name], nil }
	want, err := eval.Run(p, "f", inputs, state)
	if err != nil {
		t.Fatal(err)
	}
	got, err := eval.Run(q, "f", inputs, state)
	if err != nil {
		t.Fatalf("%v\n%v %v\n%s%s", err, o, report, whole, q)
	}
	for i := range want.Outputs {
		if d := difference(want.Outputs[i], got.Outputs[i]); d != "" {
			t.Fatalf("output %d: %s\nmesh %s, %v, parameters %v, inputs %v\n%s%s", i, d, o.Mesh, o.Strategies, o.Parameters, o.Inputs, whole, q)
		}
	}
	for name := range want.State {
		if d := difference(want.State[name], got.State[name]); d != "" {
			t.Fatalf("state %s: %s\n%v\n%s%s", name, d, o, whole, q)
		}
	}
}

func difference(want, got *ir.Tensor) string {
	if want.DType != got.DType || !slices.Equal(want.Shape, got.Shape) {
		return fmt.Sprintf("%s instead of %s", got.Type(), want.Type())
	}
	for i := range want.Numel() {
		x, y := want.Float(i), got.Float(i)
		if x != y && !(math.Abs(x-y) <= 1e-9*(1+math.Abs(x))) && !(x != x && y != y) {
			return fmt.Sprintf("element %d is %v instead of %v", i, y, x)
		}
	}
	return ""
}

// generator makes programs over f64 and i64 tensors of small sizes, one of them symbolic.
type generator struct {
	r    *rand.Rand
	b    *ir.Builder
	vals []ir.Value // f64
}

func (g *generator) n(k int) int { return g.r.IntN(k) }

func (g *generator) dim() ir.Dim {
	return []ir.Dim{ir.Sym("n"), ir.Const(1), ir.Const(2), ir.Const(3), ir.Const(4), ir.Const(6), ir.Const(8)}[g.n(7)]
}

func (g *generator) shape(rank int) []ir.Dim {
	shape := make([]ir.Dim, rank)
	for i := range shape {
		shape[i] = g.dim()
	}
	return shape
}

func (g *generator) program() *ir.Program {
	e := &ir.Entry{Name: "f"}
	p := &ir.Program{Entries: []*ir.Entry{e}}
	*p.AddSymbol("n") = ir.Symbol{Name: "n", Min: 1, Max: 7, Multiple: 1}
	g.b = ir.NewBuilder(p, e)
	for i := range 2 {
		g.vals = append(g.vals, e.AddInput(fmt.Sprint("x", i), ir.TensorOf(ir.F64, g.shape(1+g.n(3))...)))
	}
	// n needs an input that tells it.
	g.vals = append(g.vals, e.AddInput("size", ir.TensorOf(ir.F64, ir.Sym("n"), ir.Const(4))))
	for i := range 3 {
		name := fmt.Sprintf("layers.%d.weight", i)
		shape := g.shape(1 + g.n(2))
		for d := range shape {
			if _, ok := shape[d].IsConst(); !ok {
				shape[d] = ir.Const(5)
			}
		}
		typ := ir.TensorOf(ir.F64, shape...)
		p.States = append(p.States, ir.State{Name: name, Type: typ, Kind: ir.Parameter})
		g.vals = append(g.vals, e.AddStateInput(name, typ))
	}
	for range 4 + g.n(14) {
		g.step()
	}
	for i := range 2 + g.n(2) {
		e.AddOutput(fmt.Sprint("y", i), "", g.vals[len(g.vals)-1-g.n(min(5, len(g.vals)))])
	}
	if g.n(3) == 0 { // a state with a new value
		name := p.States[0].Name
		v := g.b.Binary(ir.OpAdd, e.Body.Params[3], g.b.FullLike(e.Body.Params[3], 1))
		e.AddOutput(name, name, v)
	}
	return p
}

func (g *generator) any() ir.Value {
	if g.n(2) == 0 {
		return g.vals[len(g.vals)-1-g.n(min(3, len(g.vals)))]
	}
	return g.vals[g.n(len(g.vals))]
}

// like is a value of a shape, made of others.
func (g *generator) like(shape []ir.Dim) ir.Value {
	for range 8 {
		if v := g.any(); ir.SameShape(g.b.Shape(v), shape) {
			return v
		}
	}
	v := g.any()
	for d, n := range g.b.Shape(v) {
		for e, m := range shape {
			if n.Equal(m) && g.n(2) == 0 { // a reduction to one dim, broadcast along the others
				var axes []int
				for i := range g.b.Shape(v) {
					if i != d {
						axes = append(axes, i)
					}
				}
				return g.b.Broadcast(g.b.Reduce(ir.Sum, v, axes...), shape, []int{e})
			}
		}
	}
	return g.b.Convert(g.b.Iota(ir.I64, shape, g.n(len(shape))), ir.F64)
}

func (g *generator) step() {
	var made ir.Value
	before := len(g.b.Block.Ops)
	x := g.any()
	shape := g.b.Shape(x)
	if len(shape) == 0 {
		return
	}
	d := g.n(len(shape))
	switch g.n(16) {
	case 0:
		made = g.b.Unary([]ir.Kind{ir.OpTanh, ir.OpNegate, ir.OpAbs}[g.n(3)], x)
	case 1, 2:
		made = g.b.Binary([]ir.Kind{ir.OpAdd, ir.OpSubtract, ir.OpMultiply, ir.OpMaximum}[g.n(4)], x, g.like(shape))
	case 3:
		made = g.b.Reduce([]ir.Combine{ir.Sum, ir.Max, ir.Min, ir.Sum}[g.n(4)], x, d)
	case 4:
		made = g.b.Transpose(x, g.r.Perm(len(shape)))
	case 5, 6, 7:
		made = g.product(x, d)
	case 8:
		made = g.reshape(x)
	case 9:
		other := slices.Clone(shape)
		other[d] = shape[d].MulConst(int64(1 + g.n(2))) // stretches of one size
		made = g.b.Concatenate(d, x, g.like(other))
	case 10:
		made = g.slice(x, d)
	case 11:
		made = g.b.Cumulative(x, &ir.CumulativeAttrs{Combine: ir.Sum, Axis: d, Reverse: g.n(2) == 0})
	case 12:
		made = g.take(x, d)
	case 13:
		top := g.b.ReduceKeep(ir.Max, x, d)
		made = g.b.Unary(ir.OpExponential, g.b.Binary(ir.OpSubtract, x, g.b.BroadcastTo(top, shape)))
		made = g.b.Binary(ir.OpDivide, made, g.b.BroadcastTo(g.b.ReduceKeep(ir.Sum, made, d), shape))
	case 14:
		made = g.add(x, d)
	case 15:
		made = g.among(x, d)
	}
	if g.tooLarge(made) {
		g.b.Block.Ops = g.b.Block.Ops[:before]
		return
	}
	g.vals = append(g.vals, made)
}

// tooLarge keeps programs quick, and sums within what the comparison allows.
func (g *generator) tooLarge(v ir.Value) bool {
	n := g.b.Type(v).Numel().Bounds(func(string) (ir.Range, bool) { return ir.Range{Min: 7, Max: 7}, true }).Max
	return n > 3000 || g.b.Rank(v) > 4
}

// product contracts dim d with an equal dim of another value, with batch dims at times.
func (g *generator) product(x ir.Value, d int) ir.Value {
	shape := g.b.Shape(x)
	for range 10 {
		y := g.any()
		for e, n := range g.b.Shape(y) {
			if !n.Equal(shape[d]) {
				continue
			}
			a := &ir.DotAttrs{LhsContract: []int{d}, RhsContract: []int{e}}
			for i, m := range shape {
				for j, k := range g.b.Shape(y) {
					if i != d && j != e && m.Equal(k) && len(a.LhsBatch) == 0 && g.n(2) == 0 {
						a.LhsBatch, a.RhsBatch = []int{i}, []int{j}
					}
				}
			}
			return g.b.Binary(ir.OpMultiply, g.b.DotGeneral(x, y, a), g.b.FullLike(g.b.DotGeneral(x, y, a), 0.25))
		}
	}
	return g.b.Unary(ir.OpTanh, x)
}

// reshape merges two neighbouring dims, or splits one.
func (g *generator) reshape(x ir.Value) ir.Value {
	shape := slices.Clone(g.b.Shape(x))
	d := g.n(len(shape))
	if n, ok := shape[d].IsConst(); ok && n > 3 && n%2 == 0 && g.n(2) == 0 {
		return g.b.Reshape(x, slices.Replace(shape, d, d+1, ir.Const(2), ir.Const(n/2)))
	}
	if d+1 < len(shape) {
		return g.b.Reshape(x, slices.Replace(shape, d, d+2, shape[d].Mul(shape[d+1])))
	}
	return x
}

func (g *generator) slice(x ir.Value, d int) ir.Value {
	n, ok := g.b.Shape(x)[d].IsConst()
	if !ok || n < 2 {
		return x
	}
	if n%2 == 0 && g.n(2) == 0 {
		half := int64(g.n(2)) * n / 2
		return g.b.SliceAxis(x, d, ir.Const(half), ir.Const(half+n/2), 1)
	}
	start := int64(g.n(int(n - 1)))
	return g.b.SliceAxis(x, d, ir.Const(start), ir.Const(n), int64(1+g.n(2)))
}

// among puts a value among zeros, or ones: beside others of its size, between, or anywhere.
func (g *generator) among(x ir.Value, d int) ir.Value {
	shape := g.b.Shape(x)
	low, high, interior := make([]ir.Dim, len(shape)), make([]ir.Dim, len(shape)), make([]int64, len(shape))
	switch g.n(3) {
	case 0:
		low[d], high[d] = shape[d].MulConst(int64(g.n(3))), shape[d].MulConst(int64(g.n(2)))
	case 1:
		interior[d] = int64(1 + g.n(2))
		low[d] = ir.Const(int64(g.n(int(interior[d]) + 1)))
		high[d] = ir.Const(interior[d]).Sub(low[d])
	case 2:
		low[d], high[d] = ir.Const(int64(g.n(3))), ir.Const(int64(g.n(3)))
	}
	value := g.b.Constant(ir.ScalarTensor(ir.F64, float64(g.n(2))))
	return g.b.Pad(x, value, low, high, interior)
}

// indices are integers made of a value; take clamps them.
func (g *generator) indices(v ir.Value) ir.Value {
	scaled := g.b.Binary(ir.OpMultiply, v, g.b.FullLike(v, 3))
	return g.b.Convert(scaled, ir.I64)
}

func (g *generator) take(x ir.Value, d int) ir.Value {
	i := g.any()
	if g.b.Rank(i) > 2 {
		return x
	}
	return g.b.Take(x, g.indices(i), d)
}

// add adds rows of x to rows of zeros, or of itself, at indices.
func (g *generator) add(x ir.Value, d int) ir.Value {
	if d != 0 {
		return x
	}
	shape := g.b.Shape(x)
	var window []int
	for i := 1; i < len(shape); i++ {
		window = append(window, i)
	}
	column := g.b.Convert(g.b.Iota(ir.I64, shape[:1], 0), ir.F64)
	i := g.indices(g.b.Unary(ir.OpTanh, column))
	into := g.b.Full(ir.TensorOf(ir.F64, append([]ir.Dim{ir.Const(3)}, shape[1:]...)...), float64(g.n(2)))
	return g.b.Scatter(into, i, x, &ir.ScatterAttrs{Combine: []ir.Combine{ir.Sum, ir.Sum, ir.Assign}[g.n(3)], UpdateWindowDims: window, InsertedWindowDims: []int{0},
		ScatterDimsToOperandDims: []int{0}, IndexVectorDim: 1})
}

// options draws a mesh, strategies and rules.
func (g *generator) options(p *ir.Program) Options {
	var o Options
	names := []string{"a", "b", "c"}
	for _, name := range names[:1+g.n(3)] {
		o.Mesh.Axes = append(o.Mesh.Axes, ir.MeshAxis{Name: name, Size: int64(1 + g.n(4))})
	}
	strategies := []string{"ddp", "fsdp", "zero2", "tp", "tp", "ep"}
	for _, a := range o.Mesh.Axes {
		o.Strategies = append(o.Strategies, Strategy{Axes: []string{a.Name}, Name: strategies[g.n(6)], Sequence: g.n(2) == 0})
	}
	rule := func(name string, rank int) Rule {
		r := Rule{Pattern: name, Dims: make([][]string, rank)}
		for _, a := range o.Mesh.Axes {
			if d := g.n(rank + 1); d < rank {
				r.Dims[d] = append(r.Dims[d], a.Name)
			}
		}
		return r
	}
	for _, s := range p.States {
		if g.n(3) == 0 {
			o.Parameters = append(o.Parameters, rule(s.Name, s.Type.Rank()))
		}
	}
	e := p.Entries[0]
	for i, in := range e.Inputs {
		if in.State == "" && g.n(3) == 0 {
			o.Inputs = append(o.Inputs, rule(in.Name, e.Type(e.Body.Params[i]).Rank()))
		}
	}
	return o
}

// values draws inputs and states.
func (g *generator) values(p *ir.Program) ([]*ir.Tensor, map[string]*ir.Tensor) {
	n := int64(1 + g.n(7))
	random := func(t ir.Type) *ir.Tensor {
		shape := make([]int64, t.Rank())
		for i, d := range t.Shape {
			shape[i], _ = d.Eval(map[string]int64{"n": n})
		}
		x := ir.NewTensor(t.DType, shape...)
		for i := range x.Numel() {
			x.SetFloat(i, g.r.NormFloat64())
		}
		return x
	}
	var inputs []*ir.Tensor
	states := map[string]*ir.Tensor{}
	e := p.Entries[0]
	for i, in := range e.Inputs {
		x := random(e.Type(e.Body.Params[i]))
		if in.State != "" {
			states[in.State] = x
		} else {
			inputs = append(inputs, x)
		}
	}
	return inputs, states
}
