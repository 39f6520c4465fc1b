package plan

import (
	"fmt"

	"weft/ir"
)

// Type is the tensor's type. The element type must be known: Verify holds it.
func (t Tensor) Type() ir.Type {
	dtype, ok := ir.ParseDType(t.DType)
	if !ok {
		panic(fmt.Sprintf("BUG: element type %q in a verified plan", t.DType))
	}
	return ir.TensorOf(dtype, t.Shape...)
}

// Global is the type of the tensor that the ranks divide, or of the whole that each has.
func (t Tensor) Global() ir.Type {
	if t.Shard == nil {
		return t.Type()
	}
	return ir.TensorOf(t.Type().DType, t.Sharding().Global()...)
}

// Symbol is the dim as programs have it.
func (d Dim) Symbol() ir.Symbol {
	s := ir.Symbol{Name: d.Name, Min: d.Min, Max: d.Max, Multiple: max(1, d.Multiple)}
	if d.Max == 0 {
		s.Max = ir.NoBound
	}
	return s
}

// DimOf is the dim of a program's symbol.
func DimOf(s ir.Symbol) Dim {
	d := Dim{Name: s.Name, Min: s.Min, Max: s.Max}
	if s.Max == ir.NoBound {
		d.Max = 0
	}
	if s.Multiple > 1 {
		d.Multiple = s.Multiple
	}
	return d
}

// Signature is a program of one entry that has the plan's dims and inputs, and nothing in its
// body: what ir.BindDims needs to bind the dims of a run. The plan must be verified.
func (p *Plan) Signature() (*ir.Program, *ir.Entry) {
	e := &ir.Entry{Name: p.Entry}
	for _, t := range p.Inputs {
		if t.State != "" {
			e.AddStateInput(t.State, t.Type())
		} else {
			e.AddInput(t.Name, t.Type())
		}
		e.Inputs[len(e.Inputs)-1].Shard = t.Sharding()
	}
	return &ir.Program{Mesh: p.MeshOf(), Symbols: p.symbols(), Entries: []*ir.Entry{e}}, e
}

func (p *Plan) symbols() []ir.Symbol {
	symbols := make([]ir.Symbol, len(p.Dims))
	for i, d := range p.Dims {
		symbols[i] = d.Symbol()
	}
	return symbols
}

// byState indexes tensors by the state that they name.
func byState(list []Tensor) map[string]int {
	index := map[string]int{}
	for i, t := range list {
		if t.State != "" {
			index[t.State] = i
		}
	}
	return index
}

// InputBuffers gives the buffer of each input, -1 for one that no step touches.
func (p *Plan) InputBuffers() []int { return p.buffersOf(Input, len(p.Inputs)) }

// OutputBuffers gives the buffer of each output, -1 for a state that is written in place or
// does not change.
func (p *Plan) OutputBuffers() []int { return p.buffersOf(Output, len(p.Outputs)) }

func (p *Plan) buffersOf(kind BufferKind, n int) []int {
	buffers := make([]int, n)
	for i := range buffers {
		buffers[i] = -1
	}
	for i, b := range p.Buffers {
		if b.Kind == kind {
			buffers[b.Index] = i
		}
	}
	return buffers
}
