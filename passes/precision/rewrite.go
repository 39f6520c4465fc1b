package precision

import (
	"math"
	"slices"

	"weft/ir"
)

// rewriter gives the operations of an entry the types that its flow decided.
type rewriter struct {
	*flow
	builder  ir.Builder
	narrowed map[ir.Value]ir.Value // the value in the compute type
	widened  map[ir.Value]ir.Value // the rounded value in float32
	after    map[*ir.Op][]*ir.Op   // to stand behind an operation
	first    map[*ir.Block][]*ir.Op
	blockOf  map[ir.Value]*ir.Block // whose parameter a value is
	replaced map[*ir.Op]bool        // by what stands behind
	made     map[*ir.Op]string      // the operations made here, and why
}

func newRewriter(f *flow) *rewriter {
	return &rewriter{flow: f, builder: ir.Builder{Program: f.program, Entry: f.entry}, narrowed: map[ir.Value]ir.Value{},
		widened: map[ir.Value]ir.Value{}, after: map[*ir.Op][]*ir.Op{}, first: map[*ir.Block][]*ir.Op{}, blockOf: map[ir.Value]*ir.Block{},
		replaced: map[*ir.Op]bool{}, made: map[*ir.Op]string{}}
}

// run rewrites the entry.
func (r *rewriter) run() {
	body := &r.entry.Body
	r.blocks(body)
	r.operations(body)
	for i, v := range body.Results {
		body.Results[i] = r.output(i, v)
	}
	r.place(body)
	body.DropDead()
}

// output gives a result of the entry the type of the policy's outputs, where the caller takes it.
func (r *rewriter) output(i int, v ir.Value) ir.Value {
	to := r.policy.Output
	switch {
	case r.entry.Outputs[i].State != "" || !r.float32(v) || to == ir.InvalidDType || to == ir.F32:
		return r.wide(v)
	case to == r.policy.Compute:
		return r.narrow(v)
	}
	return r.make(v, "output="+name(to), ir.OpConvert, &ir.ConvertAttrs{To: to}, r.wide(v))
}

// blocks notes whose parameter each value is.
func (r *rewriter) blocks(b *ir.Block) {
	for _, v := range b.Params {
		r.blockOf[v] = b
	}
	for _, op := range b.Ops {
		for _, region := range op.Regions {
			r.blocks(region)
		}
	}
}

// operations rewrites those of a block; what they need besides waits in after and first.
func (r *rewriter) operations(b *ir.Block) {
	for _, op := range b.Ops {
		for _, region := range op.Regions {
			r.operations(region)
			for i, v := range region.Results {
				region.Results[i] = r.wide(v)
			}
		}
		r.operation(op)
	}
}

func (r *rewriter) operation(op *ir.Op) {
	switch {
	case r.product(op) && r.colors[op.Results[0]] == narrow:
		r.narrowProduct(op)
	case len(op.Results) == 1 && r.moves(op) && r.float32(op.Results[0]) && r.rounded[op.Results[0]]:
		v := op.Results[0]
		r.narrowed[v] = r.make(v, r.why[v], op.Kind, op.Attrs, r.narrowAll(op.Operands)...)
		r.replaced[op] = true
	default:
		if len(op.Results) > 0 && r.relaxed[op.Results[0]] {
			relax(op)
		}
		for i, v := range op.Operands {
			op.Operands[i] = r.wide(v)
			if op.Kind == ir.OpSelect && r.colors[op.Results[0]] == narrow {
				op.Operands[i] = r.saturated(op.Operands[i])
			}
		}
		for _, v := range op.Results {
			if r.float32(v) && r.rounded[v] {
				r.cast(v)
			}
		}
	}
}

// narrowProduct gives a product operands of the compute type. Its sums are float32 values, which
// are rounded where they are stored, so that ranks can add theirs before; attention rounds itself.
func (r *rewriter) narrowProduct(op *ir.Op) {
	v := op.Results[0]
	operands, attrs := r.narrowAll(op.Operands), op.Attrs
	to := ir.F32
	if r.policy.Reduce != ir.F32 {
		to = r.policy.Reduce
	}
	switch a := op.Attrs.(type) {
	case *ir.DotAttrs:
		n := *a
		n.To, n.Precision, attrs = to, ir.FullPrecision, &n
	case *ir.ConvolutionAttrs:
		n := *a
		n.To, n.Precision, attrs = to, ir.FullPrecision, &n
		if to != ir.F32 {
			n.To = ir.InvalidDType // the operands' type has no other text
		}
	}
	if op.Kind == ir.OpAttention || to != ir.F32 {
		r.narrowed[v] = r.make(v, r.why[v], op.Kind, attrs, operands...)
		r.replaced[op] = true
		return
	}
	op.Operands, op.Attrs = operands, attrs
	if r.rounded[v] {
		r.cast(v)
	}
}

// relax lets a product take its float32 operands as TF32.
func relax(op *ir.Op) {
	switch a := op.Attrs.(type) {
	case *ir.DotAttrs:
		n := *a
		n.Precision, op.Attrs = ir.TF32, &n
	case *ir.ConvolutionAttrs:
		n := *a
		n.Precision, op.Attrs = ir.TF32, &n
	}
}

// make adds an operation behind the definition of a value.
func (r *rewriter) make(at ir.Value, why string, kind ir.Kind, attrs ir.Attrs, operands ...ir.Value) ir.Value {
	var scratch ir.Block
	r.builder.Block, r.builder.Loc = &scratch, ""
	if def := r.defs[at]; def != nil {
		r.builder.Loc = def.Loc
	}
	v := r.builder.Op(kind, attrs, nil, operands...)[0]
	r.made[scratch.Ops[0]] = why
	if def := r.defs[at]; def != nil {
		r.after[def] = append(r.after[def], scratch.Ops...)
	} else {
		b := r.blockOf[at]
		r.first[b] = append(r.first[b], scratch.Ops...)
	}
	return v
}

// saturated keeps the constants of a select whose result is narrow finite: where models hide scores by the least float32, rows that are
// hidden as a whole would be NaN after the softmax. They take the least number of the compute type, as models that compute in it do.
func (r *rewriter) saturated(v ir.Value) ir.Value {
	if int(v) >= len(r.defs) || r.defs[v] == nil || !r.float32(v) {
		return v
	}
	const why = "constant: the largest number of the compute type"
	op, largest := r.defs[v], r.policy.Compute.MaxFinite()
	if a, ok := op.Attrs.(*ir.ConstantAttrs); ok {
		to, changed := &ir.Tensor{DType: a.Value.DType, Shape: a.Value.Shape, Data: slices.Clone(a.Value.Data)}, false
		for i := range to.Numel() {
			if x := to.Float(i); math.Abs(x) > largest && !math.IsInf(x, 0) {
				to.SetFloat(i, math.Copysign(largest, x))
				changed = true
			}
		}
		if changed {
			return r.make(v, why, ir.OpConstant, &ir.ConstantAttrs{Value: to})
		}
		return v
	}
	switch op.Kind {
	case ir.OpReshape, ir.OpTranspose, ir.OpBroadcastInDim:
		if x := r.saturated(op.Operands[0]); x != op.Operands[0] {
			return r.make(v, why, op.Kind, op.Attrs, x)
		}
	}
	return v
}

// cast rounds a value behind its definition.
func (r *rewriter) cast(v ir.Value) ir.Value {
	n := r.make(v, "cast: once, for all who read it", ir.OpConvert, &ir.ConvertAttrs{To: r.policy.Compute}, v)
	r.narrowed[v] = n
	return n
}

func (r *rewriter) narrowAll(vs []ir.Value) []ir.Value {
	out := make([]ir.Value, len(vs))
	for i, v := range vs {
		out[i] = r.narrow(v)
	}
	return out
}

// narrow gives a float32 value in the compute type; others as they are.
func (r *rewriter) narrow(v ir.Value) ir.Value {
	if n, ok := r.narrowed[v]; ok {
		return n
	}
	if !r.float32(v) {
		return v
	}
	op := r.defs[v]
	if op == nil {
		return r.cast(v)
	}
	if op.Kind == ir.OpConvert && r.entry.Type(op.Operands[0]).DType == r.policy.Compute {
		return op.Operands[0]
	}
	if !r.passes(op) {
		return r.cast(v)
	}
	n := r.make(v, r.why[v], op.Kind, op.Attrs, append([]ir.Value{r.narrow(op.Operands[0])}, op.Operands[1:]...)...)
	r.narrowed[v] = n
	return n
}

// passes tells whether a cast moves through an operation to what it reads: where that has no more
// elements, or is made of parameters, or is narrow already, or is computed for operations that move it.
func (r *rewriter) passes(op *ir.Op) bool {
	switch op.Kind {
	case ir.OpReshape, ir.OpTranspose, ir.OpReverse, ir.OpBroadcastInDim:
		return true
	case ir.OpSlice, ir.OpGather, ir.OpDynamicSlice:
		x := op.Operands[0]
		_, done := r.narrowed[x]
		return done || r.colors[x] == weight || r.onlyMoved(x)
	}
	return false
}

// onlyMoved tells whether a value is computed here and then only moved: a cast joins what computes it.
func (r *rewriter) onlyMoved(v ir.Value) bool {
	for _, u := range r.users[v] {
		if u.Kind.Info().Class != ir.ClassIndex {
			return false
		}
	}
	return r.defs[v] != nil && !r.given[v]
}

// wide gives a value for those who compute in float32: the rounded one where it is stored so.
func (r *rewriter) wide(v ir.Value) ir.Value {
	if !r.float32(v) || !r.rounded[v] {
		return v
	}
	if w, ok := r.widened[v]; ok {
		return w
	}
	n := r.narrow(v)
	w := r.make(v, "read in float32", ir.OpConvert, &ir.ConvertAttrs{To: ir.F32}, n)
	r.widened[v] = w
	return w
}

// place puts the operations that were made where they belong.
func (r *rewriter) place(b *ir.Block) {
	ops := slices.Clone(r.first[b])
	for _, op := range b.Ops {
		for _, region := range op.Regions {
			r.place(region)
		}
		if !r.replaced[op] {
			ops = append(ops, op)
		}
		ops = append(ops, r.after[op]...)
	}
	b.Ops = ops
}
