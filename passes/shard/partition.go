package shard

import (
	"fmt"
	"slices"
	"strings"

	"weft/ir"
)

// partitioner rewrites a program to what each rank of a mesh does.
type partitioner struct {
	program  *ir.Program
	mesh     ir.Mesh
	options  Options
	report   *Report
	stored   map[string]ir.Sharding // by state: what a rank keeps
	channels int64
}

// placed is a value of the partitioned entry that stands for one of the whole program.
type placed struct {
	value   ir.Value
	shard   ir.Sharding
	partial []string // axes whose ranks have a part of the sum each
	zeros   bool     // padding is zero
}

// rewriter rewrites one entry.
type rewriter struct {
	*partitioner
	*analysis
	b      *ir.Builder
	now    map[ir.Value]placed
	needed map[string]placed // by value and division
	open   []*bucket         // gradients to be summed together
	why    string            // for the report: what asks for a collective
}

// rewrite replaces the body of an entry by that of one rank.
func (a *analysis) rewrite() *ir.Entry {
	out := &ir.Entry{Name: a.e.Name}
	w := &rewriter{partitioner: a.partitioner, analysis: a, now: map[ir.Value]placed{}, needed: map[string]placed{}}
	w.b = ir.NewBuilder(a.program, out)
	w.params(out)
	gathers := w.planGathers()
	isOutput := map[ir.Value]bool{}
	for _, v := range a.e.Body.Results {
		isOutput[v] = true
	}
	for i, op := range a.e.Body.Ops {
		w.b.Loc, w.why = op.Loc, op.Kind.String()
		w.gatherBlocks(gathers, i)
		w.op(op)
		for _, v := range op.Results {
			if isOutput[v] {
				w.reduceOutput(v)
			}
		}
	}
	w.flushAll()
	w.b.Loc = ""
	w.outputs(out)
	out.Body.DropDead()
	return out
}

func (w *rewriter) params(out *ir.Entry) {
	for i, in := range w.e.Inputs {
		v := w.e.Body.Params[i]
		s, t := w.of(v), w.e.Type(v)
		if in.State != "" {
			s = w.stored[in.State]
		}
		var p ir.Value
		local := ir.TensorOf(t.DType, s.Local(w.mesh)...)
		if in.State != "" {
			p = out.AddStateInput(in.State, local)
		} else {
			p = out.AddInput(in.Name, local)
			if divided(slices.Concat(s...)) {
				out.Inputs[i].Shard = s
			}
		}
		w.now[v] = placed{value: p, shard: s, zeros: true}
	}
}

func (w *rewriter) outputs(out *ir.Entry) {
	results := make([]placed, len(w.e.Outputs))
	w.why = "output"
	for i, o := range w.e.Outputs {
		v := w.e.Body.Results[i]
		target := w.of(v)
		if o.State != "" {
			target = w.stored[o.State]
		}
		results[i] = w.need(v, target)
	}
	for i, o := range w.e.Outputs {
		out.AddOutput(o.Name, o.State, results[i].value)
		out.Outputs[i].Gradient = o.Gradient
		if o.State == "" && divided(slices.Concat(results[i].shard...)) {
			out.Outputs[i].Shard = results[i].shard
		}
	}
}

// op emits one operation for a rank.
func (w *rewriter) op(op *ir.Op) {
	r := ruleOf(w.e, op)
	if r == nil {
		if m, ok := moves[op.Kind]; ok {
			w.move(op, m)
			return
		}
		w.wholeOp(op)
		return
	}
	switch op.Kind {
	case ir.OpIota:
		w.iota(op)
		return
	case ir.OpAdd, ir.OpSubtract:
		if w.addPartial(op) {
			return
		}
	case ir.OpGather:
		if w.lookup(op, r) || w.linear(op, r) {
			return
		}
	case ir.OpMultiply, ir.OpReduce, ir.OpSelect:
		if w.linear(op, r) {
			return
		}
	case ir.OpTranspose, ir.OpNegate:
		if w.throughPartial(op) {
			return
		}
	case ir.OpConvert:
		if w.castOfStored(op) {
			w.castStored(op)
			return
		}
	}
	w.ruled(op, r)
}

// ruled emits an operation with a rule: results as they are wanted, factors that vanish as the
// operands are.
func (w *rewriter) ruled(op *ir.Op, r *rule) {
	parts, vanishing := w.factors(op, r)
	operands := make([]placed, len(op.Operands))
	for i, v := range op.Operands {
		operands[i] = w.need(v, shardingOf(shapeOf(w.e, v), r.operands[i], parts))
	}
	combine, axes := r.combine, []string(nil)
	for f := range vanishing {
		if vanishing[f] && divided(parts[f]) {
			axes = append(axes, axesOf(parts[f])...)
		}
	}
	if len(axes) > 0 {
		w.maskVanishing(op, r, parts, vanishing, operands)
	}
	var results []ir.Sharding
	for i, v := range op.Results {
		results = append(results, shardingOf(shapeOf(w.e, v), r.results[i], parts))
	}
	values := w.emit(op, operands, results)
	for i, v := range op.Results {
		p := placed{value: values[i], shard: results[i]}
		if len(axes) > 0 {
			if combine == ir.Sum {
				p.partial = axes
			} else {
				p.value = w.collective(ir.OpAllReduce, combine, axes, p.value)
			}
		}
		w.now[v] = p
	}
}

// factors gives each factor its division and says which ones vanish.
func (w *rewriter) factors(op *ir.Op, r *rule) (parts [][]ir.Part, vanishing []bool) {
	parts, vanishing = make([][]ir.Part, r.factors), make([]bool, r.factors)
	for f := range vanishing {
		vanishing[f] = true
	}
	used := map[string]bool{}
	take := func(f int, p []ir.Part) {
		p = w.without(p, func(axis string) bool { return used[axis] })
		if parts[f] != nil || !divided(p) {
			return
		}
		parts[f] = p
		for _, axis := range axesOf(p) {
			used[axis] = true
		}
	}
	for i := range op.Results {
		for _, f := range r.results[i] {
			if f >= 0 {
				vanishing[f] = false
			}
		}
	}
	// What all operands have divided already stays so: its sum may become the division that is
	// wanted of the result.
	for f, gone := range vanishing {
		if p := w.sharedParts(op, r, f); gone && p != nil {
			take(f, p)
		}
	}
	for i, v := range op.Results {
		for d, f := range r.results[i] {
			if f >= 0 {
				take(f, w.of(v)[d])
			}
		}
	}
	for i, v := range op.Operands {
		for d, f := range r.operands[i] {
			// What a reduction leaves is smaller: it is gathered where it is wanted whole.
			if f >= 0 && (vanishing[f] || op.Kind == ir.OpReduce) {
				take(f, w.now[v].shard[d])
			}
		}
	}
	return parts, vanishing
}

// sharedParts is how all operands with a factor divide it now, by the axes that they have in common;
// nil where there are none, or where these divide in different ways.
func (w *rewriter) sharedParts(op *ir.Op, r *rule, f int) []ir.Part {
	var all [][]ir.Part
	for i, v := range op.Operands {
		for d, g := range r.operands[i] {
			if g == f {
				all = append(all, w.now[v].shard[d])
			}
		}
	}
	common := func(axis string) bool {
		return !slices.ContainsFunc(all, func(parts []ir.Part) bool { return !slices.Contains(axesOf(parts), axis) })
	}
	var shared []ir.Part
	for i, parts := range all {
		parts = w.without(parts, func(axis string) bool { return !common(axis) })
		if i > 0 && !(ir.Sharding{parts}).Equal(ir.Sharding{shared}) || !divided(parts) {
			return nil
		}
		shared = parts
	}
	return shared
}

// shardingOf divides a shape by the factors of its dims.
func shardingOf(shape []ir.Dim, factors []int, parts [][]ir.Part) ir.Sharding {
	s := ir.Replicated(shape)
	for d, f := range factors {
		if f >= 0 && parts[f] != nil && sizeOf(parts[f]).Equal(shape[d]) {
			s[d] = parts[f]
		}
	}
	return s
}

// move emits an operation of the table moves.
func (w *rewriter) move(op *ir.Op, m move) {
	switch op.Kind {
	case ir.OpReshape, ir.OpSlice, ir.OpPad, ir.OpConcatenate:
		if w.throughPartial(op) {
			return
		}
	}
	needs, fits := m.operands(w.partitioner, w.e, op, w.of(op.Results[0]))
	operands := make([]placed, len(op.Operands))
	for i, v := range op.Operands {
		operands[i] = w.need(v, needs[i])
	}
	values := w.emit(op, operands, []ir.Sharding{fits})
	w.now[op.Results[0]] = placed{value: values[0], shard: fits}
}

// throughPartial emits an operation that moves elements of values that are still sums over the same
// ranks, and at most puts zeros beside them: the sum is taken later, once.
func (w *rewriter) throughPartial(op *ir.Op) bool {
	moved := op.Operands
	if op.Kind == ir.OpPad {
		if !w.isZero(op.Operands[1]) {
			return false
		}
		moved = op.Operands[:1]
	}
	axes := w.now[moved[0]].partial
	var operands []placed
	for _, v := range moved {
		p := w.now[v]
		if len(axes) == 0 || !slices.Equal(p.partial, axes) || len(w.users[v]) > 1 || slices.Contains(w.e.Body.Results, v) || w.wantsAny(v, axes) {
			return false
		}
		operands = append(operands, p)
	}
	needs, result := w.asMoved(op, operands[0])
	for i, p := range operands {
		if !p.shard.Equal(needs[i]) {
			return false
		}
	}
	for i, v := range op.Operands[len(moved):] {
		operands = append(operands, w.need(v, needs[len(moved)+i]))
	}
	values := w.emit(op, operands, []ir.Sharding{result})
	w.now[op.Results[0]] = placed{value: values[0], shard: result, partial: axes}
	return true
}

// asMoved gives the divisions of the operands and of the result of an operation that moves elements, of which
// the first are divided as they are now.
func (w *rewriter) asMoved(op *ir.Op, first placed) (needs []ir.Sharding, result ir.Sharding) {
	if m, ok := moves[op.Kind]; ok {
		result = w.of(op.Results[0])
		if op.Kind == ir.OpReshape {
			result = w.regroup(first.shard, shapeOf(w.e, op.Results[0]))
		}
		result = w.dropAxes(result, func(axis string) bool { return slices.Contains(first.partial, axis) })
		return m.operands(w.partitioner, w.e, op, result)
	}
	r := ruleOf(w.e, op)
	parts := make([][]ir.Part, r.factors)
	for d, f := range r.operands[0] {
		if f >= 0 {
			parts[f] = first.shard[d]
		}
	}
	return []ir.Sharding{shardingOf(shapeOf(w.e, op.Operands[0]), r.operands[0], parts)}, shardingOf(shapeOf(w.e, op.Results[0]), r.results[0], parts)
}

// wantsAny tells whether a value is to be divided over some of the axes.
func (w *rewriter) wantsAny(v ir.Value, axes []string) bool {
	return slices.ContainsFunc(w.of(v).Axes(), func(axis string) bool { return slices.Contains(axes, axis) })
}

// addPartial adds two values that are both sums over the same ranks.
func (w *rewriter) addPartial(op *ir.Op) bool {
	x, y := w.now[op.Operands[0]], w.now[op.Operands[1]]
	if len(x.partial) == 0 || !slices.Equal(x.partial, y.partial) || !x.shard.Equal(y.shard) || w.wantsAny(op.Operands[0], x.partial) {
		return false
	}
	if len(w.users[op.Operands[0]]) > 1 || len(w.users[op.Operands[1]]) > 1 {
		return false
	}
	values := w.emit(op, []placed{x, y}, []ir.Sharding{x.shard})
	w.now[op.Results[0]] = placed{value: values[0], shard: x.shard, partial: x.partial}
	return true
}

func (pt *partitioner) dropAxes(s ir.Sharding, drop func(axis string) bool) ir.Sharding {
	out := make(ir.Sharding, len(s))
	for i, parts := range s {
		out[i] = pt.without(parts, drop)
	}
	return out
}

// emit appends the operation with the shapes of a rank.
func (w *rewriter) emit(op *ir.Op, operands []placed, results []ir.Sharding) []ir.Value {
	values := make([]ir.Value, len(operands))
	for i, p := range operands {
		values[i] = p.value
	}
	return w.b.Op(op.Kind, w.localAttrs(op, operands, results), nil, values...)
}

// localAttrs are the attributes of an operation with sizes of a rank.
func (w *rewriter) localAttrs(op *ir.Op, operands []placed, results []ir.Sharding) ir.Attrs {
	switch a := op.Attrs.(type) {
	case *ir.ReshapeAttrs:
		return &ir.ReshapeAttrs{Dims: results[0].Local(w.mesh)}
	case *ir.BroadcastAttrs:
		return &ir.BroadcastAttrs{Dims: results[0].Local(w.mesh), Axes: a.Axes}
	case *ir.SliceAttrs:
		return w.localSlice(op, a, operands[0].shard, results[0])
	case *ir.PadAttrs:
		return w.localPad(op, a, operands[0].shard)
	case *ir.DynamicSliceAttrs:
		return &ir.DynamicSliceAttrs{Sizes: results[0].Local(w.mesh)}
	case *ir.GatherAttrs:
		local := *a
		local.SliceSizes = slices.Clone(a.SliceSizes)
		for d, n := range operands[0].shard.Local(w.mesh) {
			if divided(operands[0].shard[d]) && !slices.Contains(a.CollapsedSliceDims, d) && !slices.Contains(a.OperandBatchingDims, d) {
				local.SliceSizes[d] = n
			}
		}
		return &local
	case *ir.ConvolutionAttrs:
		if a.Groups > 1 {
			local := *a
			local.Groups, _ = operands[0].shard.Local(w.mesh)[1].IsConst()
			if !divided(operands[0].shard[1]) {
				local.Groups = a.Groups
			}
			return &local
		}
	}
	return op.Attrs
}

// iota counts from the rank's first index on, divided as it is wanted where that can be had.
func (w *rewriter) iota(op *ir.Op) {
	p, ok := w.iotaOf(op, w.of(op.Results[0]))
	if !ok {
		s := slices.Clone(w.of(op.Results[0]))
		a := op.Attrs.(*ir.IotaAttrs)
		s[a.Axis] = whole(a.Dims[a.Axis])
		p, _ = w.iotaOf(op, s)
	}
	w.now[op.Results[0]] = p
}

func (w *rewriter) iotaOf(op *ir.Op, s ir.Sharding) (placed, bool) {
	a := op.Attrs.(*ir.IotaAttrs)
	parts := s[a.Axis]
	if len(parts) > 1 || divided(parts) && !a.Type.IsInteger() {
		return placed{}, false
	}
	x := w.b.Iota(a.Type, s.Local(w.mesh), a.Axis)
	if divided(parts) {
		first := w.b.Convert(w.b.Dim(w.first(parts[0])), a.Type)
		x = w.b.Binary(ir.OpAdd, x, w.b.Broadcast(first, w.b.Shape(x), nil))
	}
	return placed{value: x, shard: s}, true
}

// wholeOp emits an operation on whole tensors, the same on every rank.
func (w *rewriter) wholeOp(op *ir.Op) {
	values := map[ir.Value]ir.Value{}
	use := func(v ir.Value) ir.Value {
		if n, ok := values[v]; ok {
			return n
		}
		if _, ok := w.now[v]; !ok {
			panic(fmt.Sprintf("BUG: value %d is used before it is placed", v))
		}
		values[v] = w.need(v, ir.Replicated(shapeOf(w.e, v))).value
		return values[v]
	}
	var operands []ir.Value
	for _, v := range op.Operands {
		operands = append(operands, use(v))
	}
	var regions []*ir.Block
	for _, region := range op.Regions {
		inside := insideOf(region)
		region.Uses(func(v *ir.Value) {
			if !inside[*v] {
				use(*v)
			}
		})
	}
	for _, region := range op.Regions {
		regions = append(regions, w.copyRegion(region, values))
	}
	results := w.b.Op(op.Kind, op.Attrs, regions, operands...)
	for i, v := range op.Results {
		w.now[v] = placed{value: results[i], shard: ir.Replicated(shapeOf(w.e, v))}
	}
}

// insideOf are the values that a region defines.
func insideOf(b *ir.Block) map[ir.Value]bool {
	inside := map[ir.Value]bool{}
	var visit func(b *ir.Block)
	visit = func(b *ir.Block) {
		for _, v := range b.Params {
			inside[v] = true
		}
		for _, op := range b.Ops {
			for _, v := range op.Results {
				inside[v] = true
			}
			for _, r := range op.Regions {
				visit(r)
			}
		}
	}
	visit(b)
	return inside
}

// copyRegion copies a region with values of the new entry.
func (w *rewriter) copyRegion(region *ir.Block, values map[ir.Value]ir.Value) *ir.Block {
	copied := &ir.Block{}
	define := func(vs []ir.Value) []ir.Value {
		var out []ir.Value
		for _, v := range vs {
			n := w.b.Entry.NewValue(w.e.Type(v))
			values[v] = n
			out = append(out, n)
		}
		return out
	}
	use := func(vs []ir.Value) []ir.Value {
		var out []ir.Value
		for _, v := range vs {
			out = append(out, values[v])
		}
		return out
	}
	copied.Params = define(region.Params)
	for _, op := range region.Ops {
		n := &ir.Op{Kind: op.Kind, Attrs: op.Attrs, Loc: op.Loc, Operands: use(op.Operands)}
		for _, r := range op.Regions {
			n.Regions = append(n.Regions, w.copyRegion(r, values))
		}
		n.Results = define(op.Results)
		copied.Ops = append(copied.Ops, n)
	}
	copied.Results = use(region.Results)
	return copied
}

// key names a value with a division.
func key(v ir.Value, s ir.Sharding) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", v, s)
	return b.String()
}
