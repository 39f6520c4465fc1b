package codegen_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/codegen"
	"weft/ir"
	"weft/ir/eval"
	"weft/ir/mesh"
	"weft/ir/plan"
	"weft/passes"
	"weft/passes/shard"
)

// TestMeshPlans divides the programs of passes/shard and runs the plans of all ranks side by side, by
// evaluating what their kernels are made of on each rank's memory, overlapping as it is. An asynchronous
// collective runs when it starts, or only when it is waited for: nothing in between may tell. So
// division, overlap, placement and waits are tested together without kernels.
func TestMeshPlans(t *testing.T) {
	files, err := filepath.Glob("../passes/shard/testdata/*/*.weft")
	if err != nil || len(files) == 0 {
		t.Fatal("no programs")
	}
	ran := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ir.ParseProgram(file, text)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "//!") || len(p.Symbols) > 0 {
			continue // rules are tested there, and this machine has no symbolic sizes
		}
		ran++
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s late=%v", strings.TrimPrefix(file, "../passes/shard/testdata/"), late), func(t *testing.T) { testMeshPlan(t, file, p, late) })
		}
	}
	if ran < 8 {
		t.Errorf("only %d programs", ran)
	}
}

func testMeshPlan(t *testing.T, file string, p *ir.Program, late bool) {
	text, strategies, _ := strings.Cut(filepath.Base(filepath.Dir(file)), "_")
	m, err := mesh.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	o := passes.Options{Verify: true, Sharding: shard.Options{Mesh: m}}
	if o.Sharding.Strategies, err = shard.ParseStrategies(strings.ReplaceAll(strategies, "-", ":"), m); err != nil {
		t.Fatal(err)
	}
	scheduled := p.Clone()
	if _, err := passes.Run(scheduled, o); err != nil {
		t.Fatal(err)
	}
	lowered, err := codegen.Lower(scheduled)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	values := map[string]*ir.Tensor{} // global, of inputs and states
	e := p.Entries[0]
	var inputs []*ir.Tensor
	for i, in := range e.Inputs {
		typ := e.Type(e.Body.Params[i])
		v := ir.NewTensor(typ.DType, shapeOf(typ)...)
		for n := range v.Numel() {
			if typ.DType.IsFloat() {
				v.SetFloat(n, r.NormFloat64())
			} else {
				v.SetInt(n, int64(r.IntN(2)))
			}
		}
		if in.State == "" {
			inputs = append(inputs, v)
		}
		values[in.Name] = v
	}
	want, err := eval.Run(p, e.Name, inputs, func(name string) (*ir.Tensor, error) { return values[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	g := &ranks{t: t, mesh: m, late: late, states: make([]map[string][]byte, m.Size())}
	for rank := range g.states {
		g.states[rank] = map[string][]byte{}
		for _, s := range scheduled.States {
			if v := values[s.Name]; v != nil {
				g.states[rank][s.Name] = g.slice(v, s.Shard, rank).Data
			}
		}
	}
	if scheduled.Entry(ir.InitEntry) != nil {
		g.run(lowered, scheduled, ir.InitEntry, nil, r)
	}
	got := g.run(lowered, scheduled, e.Name, values, r)
	for i, w := range want.Outputs {
		for n := range w.Numel() {
			if x, y := w.Float(n), got[i].Float(n); math.Abs(x-y) > 1e-4*(1+math.Abs(x)) || x != x != (y != y) {
				t.Fatalf("output %d, element %d: %v, not %v\n%s", i, n, y, x, lowered[0].Plans[0])
			}
		}
	}
}

// ranks are the machines of all ranks, which go through a plan step by step.
type ranks struct {
	t        *testing.T
	mesh     ir.Mesh
	late     bool // asynchronous collectives run when they are waited for
	states   []map[string][]byte
	machines []*machine
	flights  []*plan.Collective
}

func (g *ranks) layout(s ir.Sharding, shape []int64, rank int) mesh.Layout {
	if s == nil {
		s = ir.Replicated(ir.Consts(shape...))
	}
	l, err := mesh.Bind(s, g.mesh, int64(rank), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return l
}

func (g *ranks) slice(v *ir.Tensor, s ir.Sharding, rank int) *ir.Tensor {
	return g.layout(s, v.Shape, rank).Slice(v)
}

// run runs an entry on every rank and joins the caller's outputs.
func (g *ranks) run(lowered []*codegen.Lowered, p *ir.Program, entry string, values map[string]*ir.Tensor, r *rand.Rand) []*ir.Tensor {
	var pl *plan.Plan
	for _, candidate := range lowered[0].Plans {
		if candidate.Entry == entry {
			pl = candidate
		}
	}
	pl.Target = "test"
	if err := plan.Verify(pl, nil); err != nil {
		g.t.Fatalf("%v\n%s", err, pl)
	}
	g.machines = nil
	for rank := range g.states {
		bound, err := plan.Bind(pl, mesh.Coordinates(g.mesh, int64(rank)))
		if err != nil {
			g.t.Fatal(err)
		}
		m := newMachine(g.t, bound, p.Entry(entry), r)
		for i, in := range pl.Inputs {
			if b := pl.InputBuffers()[i]; b >= 0 && in.State != "" {
				m.memory[b] = g.states[rank][in.State]
			} else if b >= 0 {
				copy(m.bytes(b), g.slice(values[in.Name], in.Sharding(), rank).Data)
			}
		}
		g.machines = append(g.machines, m)
	}
	g.steps(pl.Steps)
	var outputs []*ir.Tensor
	for i, out := range pl.Outputs {
		b := pl.OutputBuffers()[i]
		if out.State != "" {
			for rank, m := range g.machines {
				if b >= 0 {
					g.states[rank][out.State] = m.bytes(b)
				}
			}
			continue
		}
		var whole *ir.Tensor
		for rank, m := range g.machines {
			local := ir.NewTensor(out.Type().DType, shapeOf(out.Type())...)
			copy(local.Data, m.bytes(b))
			l := g.layout(out.Sharding(), local.Shape, rank)
			if whole == nil {
				whole = ir.NewTensor(local.DType, l.Global...)
			}
			l.Place(whole, local)
		}
		outputs = append(outputs, whole)
	}
	return outputs
}

func (g *ranks) steps(list []plan.Step) {
	for _, s := range list {
		switch c := s.Collective; {
		case c != nil && c.Async && g.late:
			g.flights = append(g.flights, c)
		case c != nil:
			g.collective(c)
		case s.Wait != nil:
			for i, f := range g.flights {
				if f.From == s.Wait.From && f.To == s.Wait.To {
					g.collective(f)
					g.flights = append(g.flights[:i:i], g.flights[i+1:]...)
					break
				}
			}
		default:
			for _, m := range g.machines {
				m.steps([]plan.Step{s})
			}
		}
	}
}

// collective runs a collective of every group.
func (g *ranks) collective(c *plan.Collective) {
	dtype, _ := ir.ParseDType(c.DType)
	combine, _ := plan.ParseCombine(c.Combine)
	kind, _ := ir.ParseKind(c.Kind)
	size := int64(dtype.Size())
	results := make([]*ir.Tensor, len(g.machines))
	for rank := range g.machines {
		var given []*ir.Tensor
		for _, member := range g.mesh.Group(int64(rank), c.Axes) {
			from := g.machines[member].bytes(c.From)
			x := ir.NewTensor(dtype, int64(len(from))/size)
			copy(x.Data, from)
			given = append(given, x)
		}
		var err error
		results[rank], err = eval.Collective(kind, &ir.CollectiveAttrs{Combine: combine, Axes: c.Axes, Size: c.Ranks}, g.mesh.Position(int64(rank), c.Axes), given)
		if err != nil {
			g.t.Fatal(err)
		}
	}
	for rank, m := range g.machines {
		copy(m.bytes(c.To), results[rank].Data)
	}
}
