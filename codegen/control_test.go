package codegen_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"

	"weft/codegen"
	"weft/ir"
	"weft/ir/eval"
	"weft/ir/plan"
	"weft/passes"
)

// TestControl runs the plans of random programs with branches and loops by evaluating what
// their kernels are made of on the plan's memory, overlapping as it is: the results must be
// those of the program. So fusion, placement and copies are tested without kernels.
func TestControl(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { testControl(t, seed) })
	}
}

func testControl(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	p := randomProgram(r)
	if err := ir.Verify(p); err != nil {
		t.Fatal(err)
	}
	scheduled := p.Clone()
	if _, err := passes.Run(scheduled, passes.Options{Verify: true}); err != nil {
		t.Fatal(err)
	}
	lowered, err := codegen.Lower(scheduled)
	if err != nil {
		t.Fatal(err)
	}
	pl := lowered[0].Plans[0]
	pl.Target = "test"
	if err := plan.Verify(pl, nil); err != nil {
		t.Fatalf("%v\n%s%s", err, scheduled, pl)
	}
	bound, err := plan.Bind(pl, nil)
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]*ir.Tensor{}
	var given []*ir.Tensor
	e := p.Entries[0]
	for i, in := range e.Inputs {
		v := ir.NewTensor(e.Type(e.Body.Params[i]).DType, shapeOf(e.Type(e.Body.Params[i]))...)
		for n := range v.Numel() {
			if v.DType == ir.Bool {
				v.SetInt(n, int64(r.IntN(2)))
			} else {
				v.SetInt(n, int64(r.IntN(17)-8))
			}
		}
		inputs[cmp.Or(in.State, in.Name)] = v
		if in.State == "" {
			given = append(given, v)
		}
	}
	want, err := eval.Run(p, e.Name, given, func(name string) (*ir.Tensor, error) { return inputs[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, bound, scheduled.Entries[0], r)
	for i, in := range pl.Inputs {
		if b := pl.InputBuffers()[i]; b >= 0 {
			copy(m.bytes(b), inputs[cmp.Or(in.State, in.Name)].Data)
		}
	}
	m.steps(pl.Steps)
	n := 0
	for i, out := range pl.Outputs {
		b, expected := pl.OutputBuffers()[i], want.State[out.State]
		if out.State == "" {
			expected = want.Outputs[n]
			n++
		} else if in := inputOf(pl, out.State); in >= 0 {
			b = pl.InputBuffers()[in]
		}
		if b >= 0 && !bytes.Equal(m.bytes(b), expected.Data) {
			t.Errorf("output %d is %v, not %v\n%s%s%s", i, m.bytes(b), expected.Data, p, scheduled, pl)
		}
	}
}

func inputOf(p *plan.Plan, state string) int {
	for i, in := range p.Inputs {
		if in.State == state {
			return i
		}
	}
	return -1
}

func shapeOf(t ir.Type) []int64 {
	shape := []int64{}
	for _, d := range t.Shape {
		n, _ := d.IsConst()
		shape = append(shape, n)
	}
	return shape
}

// machine runs a plan on memory that starts as noise.
type machine struct {
	t       *testing.T
	bound   *plan.Bound
	entry   *ir.Entry
	kernels []*ir.Op // in the order of the plan's launches
	launch  map[*plan.Launch]*ir.Op
	arena   []byte
	memory  map[int][]byte // of the other buffers
}

func newMachine(t *testing.T, bound *plan.Bound, e *ir.Entry, r *rand.Rand) *machine {
	m := &machine{t: t, bound: bound, entry: e, launch: map[*plan.Launch]*ir.Op{}, memory: map[int][]byte{}, arena: make([]byte, bound.Arena)}
	e.Body.Walk(func(op *ir.Op) {
		if op.Kind == ir.OpKernel {
			m.kernels = append(m.kernels, op)
		}
	})
	n := 0
	for _, s := range bound.Plan.Flat() {
		if s.Launch != nil {
			m.launch[s.Launch] = m.kernels[n]
			n++
		}
	}
	if n != len(m.kernels) {
		t.Fatalf("%d launches of %d kernels", n, len(m.kernels))
	}
	for i := range m.arena {
		m.arena[i] = byte(r.Uint32()) & 1
	}
	for i, b := range bound.Plan.Buffers {
		if b.Kind != plan.Arena {
			m.memory[i] = make([]byte, bound.Sizes[i])
		}
	}
	return m
}

func (m *machine) bytes(b int) []byte {
	if own, ok := m.memory[b]; ok {
		return own
	}
	return m.arena[m.bound.Offsets[b]:][:m.bound.Sizes[b]]
}

func (m *machine) steps(list []plan.Step) {
	for _, s := range list {
		switch {
		case s.Launch != nil:
			m.run(s.Launch)
		case s.Copy != nil:
			copy(m.bytes(s.Copy.To), m.bytes(s.Copy.From))
		case s.If != nil:
			if m.bytes(s.If.Predicate)[0] != 0 {
				m.steps(s.If.Then)
			} else {
				m.steps(s.If.Else)
			}
		case s.While != nil:
			for m.steps(s.While.Condition); m.bytes(s.While.Predicate)[0] != 0; m.steps(s.While.Condition) {
				m.steps(s.While.Body)
			}
		}
	}
}

func (m *machine) run(l *plan.Launch) {
	op := m.launch[l]
	operands := make([]*ir.Tensor, len(op.Operands))
	for i, v := range op.Operands {
		t := m.entry.Type(v)
		operands[i] = ir.NewTensor(t.DType, shapeOf(t)...)
		copy(operands[i].Data, m.bytes(l.Args[i].Buffer))
	}
	results, err := eval.Op(m.entry, op, operands, m.bound.Dims)
	if err != nil {
		m.t.Fatal(err)
	}
	for i, v := range results {
		copy(m.bytes(l.Args[len(operands)+i].Buffer), v.Data)
	}
}

// generator makes programs over i64[3] and i1[].
type generator struct {
	r *rand.Rand
	b *ir.Builder
}

// scope holds the values that may be used.
type scope struct{ numbers, flags []ir.Value }

func (s scope) with(numbers, flags []ir.Value) scope {
	return scope{append(s.numbers[:len(s.numbers):len(s.numbers)], numbers...), append(s.flags[:len(s.flags):len(s.flags)], flags...)}
}

var number = ir.TensorOf(ir.I64, ir.Const(3))

func randomProgram(r *rand.Rand) *ir.Program {
	e := &ir.Entry{Name: "forward"}
	p := &ir.Program{Entries: []*ir.Entry{e}}
	for _, name := range []string{"s0", "s1"} {
		p.States = append(p.States, ir.State{Name: name, Type: number, Kind: ir.Buffer})
	}
	g := &generator{r: r, b: ir.NewBuilder(p, e)}
	var s scope
	for i := range 3 {
		s.numbers = append(s.numbers, e.AddInput(fmt.Sprint("x", i), number))
		s.flags = append(s.flags, e.AddInput(fmt.Sprint("p", i), ir.Scalar(ir.Bool)))
	}
	s.numbers = append(s.numbers, e.AddStateInput("s0", number), e.AddStateInput("s1", number))
	s = g.block(s, 3, 6)
	for i := range 3 {
		e.AddOutput(fmt.Sprint("y", i), "", g.number(s))
	}
	e.AddOutput("s0", "s0", g.number(s))
	e.AddOutput("s1", "s1", g.number(s))
	return p
}

// number and flag prefer late values.
func (g *generator) number(s scope) ir.Value { return late(g.r, s.numbers) }
func (g *generator) flag(s scope) ir.Value   { return late(g.r, s.flags) }

func late(r *rand.Rand, list []ir.Value) ir.Value {
	if r.IntN(2) == 0 {
		return list[r.IntN(len(list))]
	}
	return list[len(list)-1-r.IntN(min(3, len(list)))]
}

// block adds operations and returns the scope with their results.
func (g *generator) block(s scope, depth, operations int) scope {
	for range 1 + g.r.IntN(operations) {
		choice := g.r.IntN(10)
		if depth == 0 {
			choice = g.r.IntN(6)
		}
		switch {
		case choice < 3:
			kinds := []ir.Kind{ir.OpAdd, ir.OpSubtract, ir.OpMultiply, ir.OpMaximum}
			s = s.with([]ir.Value{g.b.Binary(kinds[g.r.IntN(len(kinds))], g.number(s), g.number(s))}, nil)
		case choice == 3:
			known := ir.ScalarInt(ir.Bool, int64(g.r.IntN(2)))
			s = s.with([]ir.Value{g.b.Full(number, float64(g.r.IntN(5)))}, []ir.Value{g.b.Constant(known)})
		case choice == 4:
			s = s.with([]ir.Value{g.b.Reverse(g.number(s), 0)}, nil)
		case choice == 5:
			sum := g.b.Reduce(ir.Sum, g.number(s), 0)
			s = s.with(nil, []ir.Value{g.b.Compare(ir.LT, sum, g.b.Reduce(ir.Sum, g.number(s), 0))})
		case choice < 8:
			s = g.branch(s, depth)
		default:
			s = g.loop(s, depth)
		}
	}
	return s
}

func (g *generator) inside(f func()) *ir.Block {
	outer := g.b
	block := &ir.Block{}
	g.b = outer.Within(block)
	f()
	g.b = outer
	return block
}

func (g *generator) branch(s scope, depth int) scope {
	numbers, flags := g.r.IntN(4), g.r.IntN(2)
	if numbers+flags == 0 {
		numbers = 1
	}
	region := func() *ir.Block {
		var results []ir.Value
		b := g.inside(func() {
			inner := s
			if g.r.IntN(4) > 0 {
				inner = g.block(s, depth-1, 4)
			}
			results = g.choose(inner, numbers, flags)
		})
		b.Results = results
		return b
	}
	out := g.b.Op(ir.OpIf, nil, []*ir.Block{region(), region()}, g.flag(s))
	return s.with(out[:numbers], out[numbers:])
}

func (g *generator) choose(s scope, numbers, flags int) []ir.Value {
	var out []ir.Value
	for range numbers {
		out = append(out, g.number(s))
	}
	for range flags {
		out = append(out, g.flag(s))
	}
	return out
}

// loop counts to a small number, and may end earlier.
func (g *generator) loop(s scope, depth int) scope {
	numbers, flags := g.r.IntN(4), g.r.IntN(2)
	zero, limit := g.b.Constant(ir.ScalarInt(ir.I64, 0)), g.b.Constant(ir.ScalarInt(ir.I64, int64(g.r.IntN(4))))
	start := append([]ir.Value{zero}, g.choose(s, numbers, flags)...)
	params := func(b *ir.Block) scope {
		for _, v := range start {
			b.Params = append(b.Params, g.b.Entry.NewValue(g.b.Type(v)))
		}
		return s.with(b.Params[1:1+numbers], b.Params[1+numbers:])
	}
	condition := g.inside(func() {
		b := g.b.Block
		inner := params(b)
		more := g.b.Compare(ir.LT, b.Params[0], limit)
		if g.r.IntN(3) == 0 {
			inner = g.block(inner, depth-1, 2)
			more = g.b.Binary(ir.OpAnd, more, g.flag(inner))
		}
		b.Results = []ir.Value{more}
	})
	body := g.inside(func() {
		b := g.b.Block
		inner := params(b)
		next := g.b.Binary(ir.OpAdd, b.Params[0], g.b.Constant(ir.ScalarInt(ir.I64, 1)))
		if g.r.IntN(4) > 0 {
			inner = g.block(inner, depth-1, 5)
		}
		b.Results = append([]ir.Value{next}, g.choose(inner, numbers, flags)...)
	})
	out := g.b.Op(ir.OpWhile, nil, []*ir.Block{condition, body}, start...)
	return s.with(out[1:1+numbers], out[1+numbers:])
}
