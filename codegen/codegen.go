// Package codegen turns a scheduled program into kernels and launch plans.
package codegen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"weft/codegen/kernel"
	"weft/codegen/llvm"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/plan"
	"weft/ir/target"
)

// Lowered is a scheduled program as kernels and plans for one or several targets.
type Lowered struct {
	Targets []target.Target
	Kernels []llvm.Module // each once, in the order of first use
	Plans   []*plan.Plan  // one an entry, in order; Target is still to be set
}

// lowerer remembers kernels that were made already: repeated layers are compiled once.
type lowerer struct {
	program    *ir.Program
	warpgroups bool             // the targets have them
	byShape    map[string]built // by the kernel operation's text
	byName     map[string]bool
	out        *Lowered
}

type built struct {
	name   string
	kernel *kernel.Kernel
}

// Lower makes the kernels and plans of a scheduled program for targets, which share those that have the same kernels.
// Without targets they are for all GPUs. A panic on the way becomes a diagnostic of a bug.
func Lower(p *ir.Program, targets ...target.Target) (lowered []*Lowered, err error) {
	defer func() {
		if value := recover(); value != nil {
			lowered, err = nil, diag.Panicked("kernels", value)
		}
	}()
	special := slices.ContainsFunc(p.Entries, func(e *ir.Entry) bool { return hasWarpgroups(&e.Body) })
	by := map[bool]*Lowered{}
	for _, t := range targets {
		warpgroups := t.Warpgroups && special
		l := by[warpgroups]
		if l == nil {
			if l, err = lower(p, warpgroups); err != nil {
				return nil, err
			}
			by[warpgroups] = l
			lowered = append(lowered, l)
		}
		l.Targets = append(l.Targets, t)
	}
	if len(targets) > 0 {
		return lowered, nil
	}
	l, err := lower(p, false)
	return []*Lowered{l}, err
}

// hasWarpgroups tells whether a kernel of a block has a schedule for warpgroups.
func hasWarpgroups(b *ir.Block) bool {
	found := false
	b.Walk(func(op *ir.Op) {
		a, ok := op.Attrs.(*ir.KernelAttrs)
		found = found || ok && a.Warpgroup.Threads > 0
	})
	return found
}

// For gives the kernels and plans for a target.
func For(lowered []*Lowered, name string) *Lowered {
	for _, l := range lowered {
		if slices.ContainsFunc(l.Targets, func(t target.Target) bool { return t.Name == name }) {
			return l
		}
	}
	return nil
}

// lower makes the kernels and plans for targets that have warpgroups or not.
func lower(p *ir.Program, warpgroups bool) (*Lowered, error) {
	l := &lowerer{program: p, warpgroups: warpgroups, byShape: map[string]built{}, byName: map[string]bool{}, out: &Lowered{}}
	var errs diag.List
	for _, e := range p.Entries {
		pl, err := l.entry(e)
		if err != nil {
			errs = append(errs, diag.All(err)...)
			continue
		}
		l.out.Plans = append(l.out.Plans, pl)
	}
	if len(errs) > 0 {
		errs.Sort()
		return nil, errs
	}
	return l.out, nil
}

// entry makes the plan of one entry.
func (l *lowerer) entry(e *ir.Entry) (*plan.Plan, error) {
	pl := &plan.Plan{Version: plan.Version, Entry: e.Name}
	for _, a := range l.program.Mesh.Axes {
		pl.Mesh = append(pl.Mesh, plan.Axis{Name: a.Name, Size: a.Size})
	}
	buffers := newBufferTable(l.program, pl, e)
	var errs diag.List
	pl.Steps = l.steps(e, &e.Body, buffers, &errs)
	for i, v := range e.Body.Results {
		if place := e.Memory.Places[v]; place.Kind == ir.InArena {
			to := buffers.stateInput(e.Outputs[i].State)
			pl.Steps = append(pl.Steps, plan.Step{Copy: &plan.Copy{From: buffers.of(v), To: to}})
		}
	}
	pl.Dims = l.dims(pl)
	return pl, errs.Err()
}

// steps makes the steps of a block that is not a kernel's.
func (l *lowerer) steps(e *ir.Entry, b *ir.Block, buffers *bufferTable, errs *diag.List) []plan.Step {
	var steps []plan.Step
	for _, op := range b.Ops {
		switch op.Kind {
		case ir.OpIf:
			var branches [2][]plan.Step
			for n, r := range op.Regions {
				branches[n] = l.steps(e, r, buffers, errs)
				for i, v := range r.Results {
					branches[n] = append(branches[n], copyStep(buffers, v, op.Results[i])...)
				}
			}
			steps = append(steps, plan.Step{If: &plan.If{Predicate: buffers.of(op.Operands[0]), Then: branches[0], Else: branches[1]}})
		case ir.OpWhile:
			for i, v := range op.Operands {
				steps = append(steps, copyStep(buffers, v, op.Results[i])...)
			}
			steps = append(steps, plan.Step{While: l.while(e, op, buffers, errs)})
		case ir.OpCollectiveDone:
			steps = append(steps, plan.Step{Wait: &plan.Wait{From: buffers.of(op.Operands[1]), To: buffers.of(op.Operands[0])}})
		case ir.OpAllReduce, ir.OpAllGather, ir.OpReduceScatter, ir.OpAllToAll, ir.OpCollectivePermute:
			steps = append(steps, plan.Step{Collective: collective(e, op, buffers)})
		default:
			launch, err := l.launch(e, op, buffers)
			if err != nil {
				*errs = append(*errs, diag.All(err)...)
				continue
			}
			if k, ok := op.Updated(); ok {
				steps = append(steps, copyStep(buffers, op.Operands[k], op.Results[0])...)
			}
			steps = append(steps, plan.Step{Launch: launch})
		}
	}
	return steps
}

// collective makes the step of a collective.
func collective(e *ir.Entry, op *ir.Op, buffers *bufferTable) *plan.Collective {
	a, v := op.Attrs.(*ir.CollectiveAttrs), op.Operands[0]
	c := &plan.Collective{Kind: op.Kind.String(), From: buffers.of(v), To: buffers.of(op.Results[0]), Axes: a.Axes, Ranks: a.Size,
		DType: e.Type(v).DType.String(), Channel: a.Channel, Async: a.Async, Label: op.Loc}
	if op.Kind == ir.OpAllReduce || op.Kind == ir.OpReduceScatter {
		c.Combine = a.Combine.String()
	}
	for _, p := range a.Pairs {
		c.Pairs = append(c.Pairs, [2]int64{p.Source, p.Target})
	}
	return c
}

// while makes the step of a while, whose values lie where its results do. What the body yields
// is in no such place but its own (see passes/fuse), so the copies may follow one another.
func (l *lowerer) while(e *ir.Entry, op *ir.Op, buffers *bufferTable, errs *diag.List) *plan.While {
	condition, body := op.Regions[0], op.Regions[1]
	w := &plan.While{
		Condition: l.steps(e, condition, buffers, errs),
		Predicate: buffers.of(condition.Results[0]),
		Body:      l.steps(e, body, buffers, errs),
	}
	for i, v := range body.Results {
		w.Body = append(w.Body, copyStep(buffers, v, op.Results[i])...)
	}
	return w
}

// dims lists the symbols that a plan uses, in the program's order.
func (l *lowerer) dims(pl *plan.Plan) []plan.Dim {
	used := map[string]bool{}
	note := func(dims ...ir.Dim) {
		for _, d := range dims {
			d.Symbols(func(name string) { used[name] = true })
		}
	}
	for _, t := range slices.Concat(pl.Inputs, pl.Outputs) {
		note(t.Shape...)
		for _, parts := range t.Shard {
			for _, p := range parts {
				note(p.Size)
			}
		}
	}
	for _, b := range pl.Buffers {
		note(b.Size)
	}
	for _, s := range pl.Flat() {
		if s.Launch != nil {
			note(s.Launch.Grid[:]...)
			for _, a := range s.Launch.Args {
				note(a.Value)
				if a.Map != nil {
					a.Map.Visit(func(d ir.Dim) { note(d) })
				}
			}
		}
	}
	var out []plan.Dim
	for _, s := range l.program.Symbols {
		if used[s.Name] {
			out = append(out, plan.DimOf(s))
		}
	}
	return out
}

// launch makes the launch of a kernel operation.
func (l *lowerer) launch(e *ir.Entry, op *ir.Op, buffers *bufferTable) (*plan.Launch, error) {
	b, err := l.kernel(e, op)
	if err != nil {
		return nil, err
	}
	k := b.kernel
	launch := &plan.Launch{Kernel: b.name, Grid: k.Grid, Block: k.Threads, Shared: k.DynamicShared(), Resident: k.Resident, Label: label(op), FLOPs: flops(e, op)}
	updated, inPlace := op.Updated()
	access := plan.Write
	if inPlace {
		access = plan.ReadWrite
	}
	for i, v := range op.Operands {
		if !inPlace || i != updated {
			launch.Args = append(launch.Args, plan.Arg{Buffer: buffers.of(v), Access: plan.Read})
		}
	}
	for _, v := range op.Results {
		launch.Args = append(launch.Args, plan.Arg{Buffer: buffers.of(v), Access: access})
	}
	for _, d := range k.Sizes {
		launch.Args = append(launch.Args, plan.Arg{Buffer: -1, Value: d, Bits: k.Index.Bits()})
	}
	for _, m := range k.Maps {
		launch.Args = append(launch.Args, plan.Arg{Buffer: buffers.of(op.Operands[m.Operand]), Access: plan.Read, Map: &plan.TensorMap{
			DType: m.DType.String(), Offset: m.Offset, Dims: m.Dims, Strides: m.Strides, Box: m.Box, Swizzle: m.Swizzle}})
	}
	return launch, nil
}

// copyStep copies a value to the place of another, where that is another one.
func copyStep(buffers *bufferTable, from, to ir.Value) []plan.Step {
	a, b := buffers.of(from), buffers.of(to)
	if a == b {
		return nil
	}
	return []plan.Step{{Copy: &plan.Copy{From: a, To: b}}}
}

// kernel finds or makes the kernel of an operation. Its name is a hash of its LLVM IR.
func (l *lowerer) kernel(e *ir.Entry, op *ir.Op) (built, error) {
	shape := shapeKey(e, op)
	if b, ok := l.byShape[shape]; ok {
		return b, nil
	}
	k, err := kernel.Build(l.program, e, op, l.warpgroups)
	if err != nil {
		return built{}, err
	}
	const placeholder = "weft_kernel_name"
	text := llvm.Emit(k, placeholder).String()
	sum := sha256.Sum256([]byte(text))
	b := built{op.Attrs.(*ir.KernelAttrs).Group.String() + "_" + hex.EncodeToString(sum[:8]), k}
	l.byShape[shape] = b
	if !l.byName[b.name] {
		l.byName[b.name] = true
		l.out.Kernels = append(l.out.Kernels, llvm.Module{Name: b.name, Text: strings.ReplaceAll(text, placeholder, b.name)})
	}
	return b, nil
}

// shapeKey is equal for kernel operations that are the same but for the values they use.
func shapeKey(e *ir.Entry, op *ir.Op) string {
	var b strings.Builder
	region := op.Regions[0]
	number := map[ir.Value]int{}
	define := func(vs []ir.Value) {
		for _, v := range vs {
			number[v] = len(number)
			fmt.Fprintf(&b, "%s;", e.Type(v))
		}
	}
	use := func(vs []ir.Value) {
		for _, v := range vs {
			fmt.Fprintf(&b, "%d,", number[v])
		}
	}
	b.WriteString(ir.AttrsText(op.Attrs))
	define(region.Params)
	for _, inner := range region.Ops {
		fmt.Fprintf(&b, "\n%d ", inner.Kind)
		use(inner.Operands)
		b.WriteString(ir.AttrsText(inner.Attrs))
		define(inner.Results)
	}
	use(region.Results)
	return b.String()
}

// label says what a kernel computes and where in the model, for people.
func label(op *ir.Op) string {
	var kinds []string
	for _, inner := range op.Regions[0].Ops {
		c := inner.Kind.Info().Class
		if c == ir.ClassSource || c == ir.ClassIndex && len(op.Regions[0].Ops) > 1 && inner != op.Regions[0].Update() {
			continue
		}
		kinds = append(kinds, inner.Kind.String())
	}
	const shown = 6
	if len(kinds) > shown {
		kinds = append(kinds[:shown], fmt.Sprintf("+%d", len(kinds)-shown))
	}
	if len(kinds) == 0 {
		kinds = []string{"copy"}
	}
	text := strings.Join(kinds, " ")
	if op.Loc != "" {
		text += " at " + op.Loc
	}
	return text
}

// bufferTable gives values their buffers in the plan.
type bufferTable struct {
	entry   *ir.Entry
	inputs  []int // buffer by input
	outputs []int // buffer by output, -1 where a state takes the value by a copy
	arena   []int
}

func newBufferTable(p *ir.Program, pl *plan.Plan, e *ir.Entry) *bufferTable {
	t := &bufferTable{entry: e}
	add := func(b plan.Buffer) int {
		pl.Buffers = append(pl.Buffers, b)
		return len(pl.Buffers) - 1
	}
	for i, in := range e.Inputs {
		typ := e.Type(e.Body.Params[i])
		pl.Inputs = append(pl.Inputs, plan.Tensor{Name: TensorName(in.Name, in.State), State: in.State, DType: typ.DType.String(), Shape: typ.Shape, Shard: shardOf(p, in.State, in.Shard)})
		t.inputs = append(t.inputs, add(plan.Buffer{Kind: plan.Input, Index: i, Size: typ.Bytes(), Name: in.Name}))
	}
	for i, out := range e.Outputs {
		v := e.Body.Results[i]
		typ := e.Type(v)
		pl.Outputs = append(pl.Outputs, plan.Tensor{Name: TensorName(out.Name, out.State), State: out.State, DType: typ.DType.String(), Shape: typ.Shape, Shard: shardOf(p, out.State, out.Shard)})
		buffer := -1
		if e.Memory.Places[v].Kind == ir.InOutput {
			buffer = add(plan.Buffer{Kind: plan.Output, Index: i, Size: typ.Bytes(), Name: out.Name})
		}
		t.outputs = append(t.outputs, buffer)
	}
	first := len(pl.Buffers)
	for _, b := range e.Memory.Buffers {
		after := make([]int, len(b.After))
		for n, j := range b.After {
			after[n] = first + j
		}
		t.arena = append(t.arena, add(plan.Buffer{Kind: plan.Arena, Size: b.Size, After: after}))
	}
	return t
}

// shardOf is how ranks divide an input or output, or the state that it names.
func shardOf(p *ir.Program, state string, shard ir.Sharding) [][]plan.Part {
	if s := p.State(state); s != nil {
		shard = s.Shard
	}
	return plan.ShardOf(shard)
}

// TensorName is the name of an input or output in plans and artifacts. States have names of their own,
// which the caller's may equal.
func TensorName(name, state string) string {
	if state != "" {
		return "@" + state
	}
	return name
}

// of is the buffer of a value.
func (t *bufferTable) of(v ir.Value) int {
	switch p := t.entry.Memory.Places[v]; p.Kind {
	case ir.InInput:
		return t.inputs[p.Index]
	case ir.InOutput:
		return t.outputs[p.Index]
	case ir.InArena:
		return t.arena[p.Index]
	}
	panic("BUG: a kernel uses a value that has no place")
}

// stateInput is the buffer in which an entry reads a state.
func (t *bufferTable) stateInput(state string) int {
	for i, in := range t.entry.Inputs {
		if in.State == state {
			return t.inputs[i]
		}
	}
	panic("BUG: a state is written by a copy that the entry does not read")
}
