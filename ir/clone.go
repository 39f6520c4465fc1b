package ir

import "slices"

// Clone copies a program deeply, but for attributes and literals, which are never written to.
func (p *Program) Clone() *Program {
	c := &Program{Mesh: p.Mesh, Symbols: slices.Clone(p.Symbols), States: slices.Clone(p.States)}
	for _, e := range p.Entries {
		c.Entries = append(c.Entries, &Entry{Name: e.Name, Inputs: slices.Clone(e.Inputs), Outputs: slices.Clone(e.Outputs),
			Body: *e.Body.clone(), Types: slices.Clone(e.Types)})
	}
	return c
}

func (b *Block) clone() *Block {
	c := &Block{Params: slices.Clone(b.Params), Results: slices.Clone(b.Results), Ops: make([]*Op, len(b.Ops))}
	for i, op := range b.Ops {
		n := *op
		n.Operands, n.Results = slices.Clone(op.Operands), slices.Clone(op.Results)
		n.Regions = make([]*Block, len(op.Regions))
		for j, r := range op.Regions {
			n.Regions[j] = r.clone()
		}
		c.Ops[i] = &n
	}
	return c
}
