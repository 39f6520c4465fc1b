package kernel

import (
	"fmt"

	"weft/ir"
)

// attentionProducts are the two products of attention on targets that multiply by warpgroups. A warpgroup has 64 queries, whose
// fragments stay in registers; keys and values are read from shared memory, where values lie as the transposed operand.
type attentionProducts struct {
	*attention
	keys, values *Expr // descriptors of the first buffers
}

// describe makes the descriptors.
func (a *attention) describe() *attentionProducts {
	zero := a.ev.b.Idx(0)
	return &attentionProducts{a, a.k.descriptor(zero), a.v.descriptor(zero)}
}

// scores are q k^T of a tile, as attention.scores gives them.
func (p *attentionProducts) scores(queries [][]*Expr, stage *Expr) [][]*Expr {
	b, n := p.ev.b, p.schedule.TileN
	var sums []*Expr
	at := p.k.inStage(p.keys, stage)
	b.Do("wgmma.fence.sync.aligned")
	for i, q := range queries {
		// Depth lies in panels of 64 elements.
		bytes := int64(16 * i % 64 * 2)
		bytes += int64(16 * i / 64 * p.k.height * 128)
		sums = b.startProduct(p.dtype, n, q, b.advance(at, bytes), false, sums)
	}
	b.Do("wgmma.commit_group.sync.aligned")
	sums = b.awaitProducts(sums, 0)
	var out [][]*Expr
	for i := 0; i < len(sums); i += 4 {
		out = append(out, sums[i:i+4])
	}
	return out
}

// addValues adds the weighted values of a tile to the state.
func (p *attentionProducts) addValues(weights [][]*Expr, stage *Expr, state []*Expr) []*Expr {
	b := p.ev.b
	sums, rest := state[:p.width/2], state[p.width/2:]
	at := p.v.inStage(p.values, stage)
	var operands [][]*Expr
	for n := 0; n < len(weights); n += 2 {
		operands = append(operands, p.packed(weights[n:n+2]))
	}
	b.emit(&Let{append([]*Expr{}, sums...)}) // scaled before the fence
	b.Do("wgmma.fence.sync.aligned")
	for i, w := range operands {
		sums = b.startProduct(p.dtype, p.width, w, b.advance(at, int64(16*i*128)), true, sums)
	}
	b.Do("wgmma.commit_group.sync.aligned")
	return append(append([]*Expr{}, b.awaitProducts(sums, 0)...), rest...)
}

// startProduct starts a product of 64 rows, n columns and 16 k whose A is in registers, and adds it to sums where there are any.
func (b *Builder) startProduct(t ir.DType, n int, x []*Expr, y *Expr, transposed bool, sums []*Expr) []*Expr {
	name := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk16.f32.%s.%[2]s.registers", n, halfName(t))
	if sums == nil {
		name += ".first"
	}
	args := append(append([]*Expr{}, sums...), x...)
	args = append(args, y, b.bit(sums != nil), b.bit(transposed))
	return b.Instruction(name, repeatType(ir.F32, n/2), args...)
}

func (b *Builder) bit(set bool) *Expr {
	if set {
		return b.Int(ir.I32, 1)
	}
	return b.Int(ir.I32, 0)
}
