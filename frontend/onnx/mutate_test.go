package onnx

import (
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"

	"weft/frontend/weights"
	"weft/ir"
)

// mutate changes a decoded model at random, as hostile or careless writers would.
func mutate(r *rand.Rand, m *modelProto) {
	g := m.graph
	for depth := 0; depth < 3; depth++ {
		if len(g.nodes) == 0 {
			return
		}
		n := g.nodes[r.IntN(len(g.nodes))]
		if len(n.attributes) > 0 && r.IntN(3) == 0 {
			if a := n.attributes[r.IntN(len(n.attributes))]; a.g != nil {
				g = a.g
				continue
			}
		}
		break
	}
	numbers := []int64{0, 1, -1, 2, 3, 5, 7, -2, 64, 1 << 20, math.MaxInt32, math.MaxInt64, math.MinInt64}
	number := func() int64 { return numbers[r.IntN(len(numbers))] }
	names := []string{""}
	for _, in := range g.inputs {
		names = append(names, in.name)
	}
	for _, n := range g.nodes {
		names = append(names, n.outputs...)
	}
	name := func() string { return names[r.IntN(len(names))] }
	if len(g.nodes) == 0 {
		return
	}
	n := g.nodes[r.IntN(len(g.nodes))]
	switch r.IntN(10) {
	case 0, 1, 2:
		mutateInput(r, g, number, name)
	case 3:
		if len(n.inputs) > 0 {
			n.inputs[r.IntN(len(n.inputs))] = name()
		}
	case 4:
		if len(n.inputs) > 0 {
			n.inputs = n.inputs[:r.IntN(len(n.inputs))]
		}
	case 5:
		n.inputs = append(n.inputs, name())
	case 6:
		if len(n.attributes) > 0 {
			mutateAttribute(r, n.attributes[r.IntN(len(n.attributes))], number)
		}
	case 7:
		if len(n.attributes) > 0 {
			i := r.IntN(len(n.attributes))
			n.attributes = append(n.attributes[:i:i], n.attributes[i+1:]...)
		}
	case 8:
		m.opsets[0].version = int64(7 + r.IntN(22))
	case 9:
		if len(g.initializers) > 0 {
			t := g.initializers[r.IntN(len(g.initializers))]
			if len(t.dims) > 0 {
				t.dims[r.IntN(len(t.dims))] = number()
			}
		} else {
			n.outputs = append(n.outputs, "extra")
		}
	}
}

// mutateInput gives an input another size, rank or element type.
func mutateInput(r *rand.Rand, g *graphProto, number func() int64, name func() string) {
	if len(g.inputs) == 0 {
		return
	}
	in := g.inputs[r.IntN(len(g.inputs))]
	if in.kind == nil || in.kind.tensor == nil {
		return
	}
	t := in.kind.tensor
	switch choice := r.IntN(4); {
	case choice == 0:
		t.elem = int32(r.IntN(29))
	case choice == 1 && len(t.dims) > 0:
		t.dims = t.dims[1:]
	case choice == 2:
		t.dims = append([]dimension{{value: 2, hasValue: true}}, t.dims...)
	case len(t.dims) > 0:
		t.dims[r.IntN(len(t.dims))] = dimension{value: number(), hasValue: r.IntN(3) > 0, param: name()}
	}
}

func mutateAttribute(r *rand.Rand, a *attributeProto, number func() int64) {
	switch {
	case len(a.ints) > 0 && r.IntN(2) == 0:
		a.ints[r.IntN(len(a.ints))] = number()
	case len(a.ints) > 0:
		a.ints = a.ints[1:]
	case a.kind == attrInt:
		a.i = number()
	case a.kind == attrFloat:
		a.f = []float32{0, -1, float32(math.NaN()), float32(math.Inf(1)), 1e30}[r.IntN(5)]
	case len(a.s) > 0 && r.IntN(2) == 0:
		a.s = []byte("nonsense")
	case a.t != nil && len(a.t.dims) > 0:
		a.t.dims[0] = number()
	default:
		a.kind = attributeType(r.IntN(16))
	}
}

// TestMutatedModels imports models that were changed at random: each must give a program or
// diagnostics.
func TestMutatedModels(t *testing.T) {
	cases, rounds := subset(t), 6
	if os.Getenv("WEFT_ONNX_NODE") != "" {
		cases, rounds = nil, 40
		for _, dir := range caseFolders(t) {
			c, err := readCase(dir)
			if err != nil {
				t.Fatal(err)
			}
			cases = append(cases, c)
		}
	}
	r := rand.New(rand.NewPCG(8, 2))
	for _, c := range cases {
		for round := range rounds {
			m, err := decodeModel(c.model)
			if err != nil {
				t.Fatal(err)
			}
			for range 1 + r.IntN(3) {
				mutate(r, m)
			}
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s, round %d: panic: %v\n%s", c.name, round, p, debug.Stack())
					}
				}()
				constants := c.constants(c.tensors())
				opt := Options{}
				if round%2 == 1 {
					opt.Constants = constants
				}
				out, err := importDecoded(m, &externalFiles{open: map[string]*weights.Mapping{}}, opt)
				if err == nil {
					if err := ir.Verify(out.Program); err != nil {
						t.Errorf("%s, round %d: %v", c.name, round, err)
					}
					out.Close()
				}
			}()
		}
	}
}
