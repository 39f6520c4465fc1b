// Package canonicalize folds what is known, merges equal operations, simplifies by algebra and
// drops what nobody uses. Floats are rewritten only where the result has the same bits.
package canonicalize

import (
	"strconv"
	"strings"

	"weft/ir"
	"weft/ir/eval"
)

// Run canonicalizes every entry. It tells whether anything changed.
func Run(p *ir.Program) (bool, error) {
	changed := false
	for _, e := range p.Entries {
		for {
			c := &canonicalizer{program: p, entry: e, literals: map[ir.Value]*ir.Tensor{}, defs: map[ir.Value]*ir.Op{}, same: map[ir.Value]ir.Value{}}
			err := ir.Try(func() { c.block(&e.Body, nil) })
			if err != nil {
				return changed, err
			}
			dropped := e.Body.DropDead()
			if !c.changed && !dropped {
				break
			}
			changed = true
		}
	}
	return changed, nil
}

type canonicalizer struct {
	program  *ir.Program
	entry    *ir.Entry
	literals map[ir.Value]*ir.Tensor // values known now
	defs     map[ir.Value]*ir.Op
	same     map[ir.Value]ir.Value // replaced values
	changed  bool
}

// scope holds the operations of a block and of those around it by what they compute.
type scope struct {
	outer *scope
	ops   map[string]*ir.Op
}

func (s *scope) find(key string) *ir.Op {
	for ; s != nil; s = s.outer {
		if op, ok := s.ops[key]; ok {
			return op
		}
	}
	return nil
}

// block rewrites a block's operations in order.
func (c *canonicalizer) block(b *ir.Block, outer *scope) {
	ops := b.Ops
	b.Ops = nil
	s := &scope{outer, map[string]*ir.Op{}}
	builder := &ir.Builder{Program: c.program, Entry: c.entry, Block: b}
	for _, op := range ops {
		for i, v := range op.Operands {
			op.Operands[i] = c.resolve(v)
		}
		for _, r := range op.Regions {
			c.block(r, s)
		}
		c.operation(op, s, builder)
	}
	for i, v := range b.Results {
		b.Results[i] = c.resolve(v)
	}
}

// operation replaces an operation by something simpler, or keeps it.
func (c *canonicalizer) operation(op *ir.Op, s *scope, b *ir.Builder) {
	b.Loc = op.Loc
	if c.chosen(op, s, b) {
		return
	}
	start := len(b.Block.Ops)
	if v, ok := c.simplify(op, b); ok {
		c.changed = true
		for _, made := range b.Block.Ops[start:] {
			c.define(made)
		}
		c.same[op.Results[0]] = v
		return
	}
	key := keyOf(op)
	if old := s.find(key); old != nil && len(op.Regions) == 0 {
		c.changed = true
		for i, r := range op.Results {
			c.same[r] = old.Results[i]
		}
		return
	}
	s.ops[key] = op
	c.define(op)
	b.Block.Ops = append(b.Block.Ops, op)
}

// chosen replaces an if whose predicate is known by the operations of the region that it runs.
func (c *canonicalizer) chosen(op *ir.Op, s *scope, b *ir.Builder) bool {
	if op.Kind != ir.OpIf {
		return false
	}
	predicate, ok := c.literals[op.Operands[0]]
	if !ok {
		return false
	}
	region := op.Regions[1]
	if predicate.Int(0) != 0 {
		region = op.Regions[0]
	}
	c.changed = true
	for _, inner := range region.Ops {
		s.ops[keyOf(inner)] = inner
		b.Block.Ops = append(b.Block.Ops, inner)
	}
	for i, r := range op.Results {
		c.same[r] = region.Results[i]
	}
	return true
}

func (c *canonicalizer) define(op *ir.Op) {
	for _, r := range op.Results {
		c.defs[r] = op
	}
	if a, ok := op.Attrs.(*ir.ConstantAttrs); ok {
		c.literals[op.Results[0]] = a.Value
	}
}

func (c *canonicalizer) resolve(v ir.Value) ir.Value {
	for {
		w, ok := c.same[v]
		if !ok {
			return v
		}
		v = w
	}
}

// keyOf is equal for operations that compute the same.
func keyOf(op *ir.Op) string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(int(op.Kind)))
	for _, v := range op.Operands {
		b.WriteByte(',')
		b.WriteString(strconv.Itoa(int(v)))
	}
	b.WriteString(ir.AttrsText(op.Attrs))
	return b.String()
}

// foldLimit is the number of elements up to which values are computed at compile time.
const foldLimit = 64

// fold computes an operation whose operands are literals: integers, bools, and float data that
// is only moved or rounded.
func (c *canonicalizer) fold(op *ir.Op, b *ir.Builder) (ir.Value, bool) {
	info := op.Kind.Info()
	if len(op.Results) != 1 || len(op.Regions) > 0 || len(op.Operands) == 0 {
		return 0, false
	}
	if n, ok := c.entry.Type(op.Results[0]).Numel().IsConst(); !ok || n > foldLimit {
		return 0, false
	}
	moves := info.Class == ir.ClassIndex || op.Kind == ir.OpConvert || op.Kind == ir.OpSelect || op.Kind == ir.OpCompare
	operands := make([]*ir.Tensor, len(op.Operands))
	for i, v := range op.Operands {
		t, ok := c.literals[v]
		if !ok || t.DType == ir.String || t.DType.IsFloat() && !moves || t.DType.IsComplex() {
			return 0, false
		}
		operands[i] = t
	}
	if n, ok := c.entry.Type(op.Results[0]).Numel().IsConst(); op.Kind == ir.OpBroadcastInDim && ok && n > 1 {
		return 0, false // a broadcast scalar is simpler than a list of equal numbers
	}
	out, err := eval.Op(c.entry, op, operands, nil)
	if err != nil {
		return 0, false
	}
	return b.Constant(out[0]), true
}
