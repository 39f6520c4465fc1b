package fx

import (
	"slices"

	"weft/ir"
	"weft/ir/diag"
)

// controlRule finds the rule of a target that is no plain operator: regions and assertions.
func controlRule(target string) (func(c *call), bool) {
	switch target {
	case "torch.ops.higher_order.wrap_with_set_grad_enabled":
		return func(c *call) { c.inline(1) }, true
	case "torch.ops.higher_order.wrap_with_autocast":
		return (*call).autocastRegion, true
	case "torch.ops.higher_order.tag_activation_checkpoint", "torch.ops.higher_order.wrap", "torch.ops.higher_order.wrap_activation_checkpoint",
		"torch.ops.higher_order.invoke_subgraph":
		return (*call).inlineFirst, true
	case "torch.ops.higher_order.cond":
		return (*call).cond, true
	case "torch.ops.higher_order.while_loop":
		return (*call).while, true
	case "torch.ops.higher_order.scan":
		return (*call).scan, true
	case "torch.ops.higher_order.map_impl", "torch.ops.higher_order.map":
		return (*call).eachElement, true
	case "torch.ops.aten._assert_tensor_metadata.default", "torch.ops.aten.sym_constrain_range.default",
		"torch.ops.aten.sym_constrain_range_for_size.default", "torch.ops.aten._functional_assert_async.msg", "torch._check",
		"torch.ops.aten._assert_async.msg", "torch.ops.aten._assert_async.default", "torch.ops.aten._assert_scalar.default",
		"torch.ops.aten._functional_assert_scalar.default", "torch.ops.profiler._record_function_enter_new.default",
		"torch.ops.profiler._record_function_exit._RecordFunction", "torch.ops.aten._make_dep_token.default":
		return (*call).assertion, true
	}
	return nil, false
}

// assertion leaves a check out; checks of data are reported.
func (c *call) assertion() {
	switch shortTarget(c.node.target) {
	case "aten._assert_async.msg", "aten._assert_async.default", "aten._functional_assert_async.msg":
		d := diag.Warnf(diag.FXAssertion, c.place, "an assertion about data is left out")
		d.Severity = diag.Note
		c.warnings = append(c.warnings, d)
	}
	for _, o := range c.node.outputs {
		if o.kind == argTensor || o.kind == argCustom {
			c.bind(o.name, (*tensor)(nil), c.place)
		}
	}
}

// graphInput is the index of the first input that is a graph.
func (c *call) graphInput(from int) int {
	for i := from; i < len(c.node.inputs); i++ {
		if c.node.inputs[i].kind == argGraph {
			return i
		}
	}
	c.bad("there is no graph")
	return 0
}

func (c *call) inlineFirst() { c.inline(c.graphInput(0)) }

// inline imports a subgraph in place: the graph is input number at, its operands follow.
func (c *call) inline(at int) {
	c.inlineIn(at, c.cast)
}

func (c *call) inlineIn(at int, cast *autocast) {
	if at >= len(c.node.inputs) || c.node.inputs[at].graph == nil {
		c.bad("input %d is no graph", at)
	}
	sub := &scope{importer: c.importer, graph: c.node.inputs[at].graph, b: c.b, env: map[string]any{}, cast: cast}
	args := c.node.inputs[at+1:]
	if extra := len(args) - len(sub.graph.inputs); extra > 0 && args[0].kind == argString {
		args = args[extra:] // invoke_subgraph names the graph first
	}
	if len(args) < len(sub.graph.inputs) {
		c.bad("the graph takes %d operands, the node gives %d", len(sub.graph.inputs), len(args))
	}
	for i, in := range sub.graph.inputs {
		sub.bind(in.name, c.meaning(args[i].argument), c.place)
	}
	loc := c.b.Loc
	sub.run()
	c.b.Loc = loc
	c.bindRegion(sub, sub.graph.outputs)
}

// meaning is what an argument stands for, as a name of a subgraph would.
func (c *call) meaning(a argument) any {
	switch a.kind {
	case argTensor, argSymInt, argSymFloat, argSymBool, argCustom:
		return c.lookup(a.name)
	case argInt:
		return ir.Const(a.i)
	case argFloat, argBool:
		return c.asNumber("operand", a)
	}
	return nil
}

// bindRegion gives the node's outputs the meanings of a subgraph's outputs.
func (c *call) bindRegion(sub *scope, outputs []argument) {
	names := c.outputNamesOfAnyKind()
	if len(names) > len(outputs) {
		c.bad("the graph has %d results, the node names %d", len(outputs), len(names))
	}
	for i, name := range names {
		if name == "" {
			continue
		}
		switch a := outputs[i]; a.kind {
		case argTensor, argSymInt, argSymFloat, argSymBool:
			v, ok := sub.env[a.name]
			if !ok {
				fail(diag.FXName, c.place, "value %q is used before it is defined", a.name)
			}
			if t, ok := v.(*tensor); ok && t != nil {
				v = c.checked(name, t)
			}
			c.bind(name, v, c.place)
		case argInt:
			c.bind(name, ir.Const(a.i), c.place)
		default:
			c.bind(name, nil, c.place)
		}
	}
}

func (c *call) outputNamesOfAnyKind() []string {
	var names []string
	for _, o := range c.node.outputs {
		if o.kind == argList {
			for _, e := range o.list {
				names = append(names, e.name)
			}
			continue
		}
		names = append(names, o.name)
	}
	return names
}

// region imports a subgraph as a region of an operation. Operands are read outside first, and
// inside they have memory of their own: regions do not change what is outside.
func (c *call) region(g *graph, operands []any, params []ir.Value) *ir.Block {
	block := &ir.Block{Params: params}
	operands = slices.Clone(operands)
	for i, p := range params {
		if _, ok := operands[i].(*tensor); ok {
			operands[i] = newTensor(p)
		}
	}
	block.Results = c.inside(g, operands, c.b.Within(block))
	return block
}

// inside imports a subgraph at the end of a region's block and gives its results.
func (c *call) inside(g *graph, operands []any, b *ir.Builder) (results []ir.Value) {
	sub := &scope{importer: c.importer, graph: g, b: b, env: map[string]any{}, cast: c.cast}
	if len(g.inputs) != len(operands) {
		c.bad("the graph takes %d operands, the node gives %d", len(g.inputs), len(operands))
	}
	var inside []*tensor
	for i, in := range g.inputs {
		v := operands[i]
		if t, ok := v.(*tensor); ok && t != nil {
			copied := newTensor(t.read(c.b))
			inside = append(inside, copied)
			v = copied
		}
		sub.bind(in.name, v, c.place)
	}
	sub.run()
	for _, out := range g.outputs {
		switch out.kind {
		case argTensor:
			t, ok := sub.env[out.name].(*tensor)
			if !ok || t == nil {
				fail(diag.FXName, c.place, "the region's output %q is not defined", out.name)
			}
			results = append(results, t.read(sub.b))
		case argBool, argInt, argSymBool, argSymInt:
			results = append(results, (&call{scope: sub, node: c.node, place: c.place}).asNumber("output", out).scalarOf(sub.b))
		default:
			c.unsupported(" with a result that is " + out.kind.String())
		}
	}
	if slices.ContainsFunc(inside, func(t *tensor) bool { return t.base.written }) {
		c.unsupported(" with a region that changes its operands in place")
	}
	return results
}

// scalarOf is the number as a tensor of its own type.
func (n number) scalarOf(b *ir.Builder) ir.Value { return n.scalar(b, n.dtype()) }

// operands lists what the elements of list inputs from number at on stand for.
func (c *call) operands(at int) []any {
	var list []any
	for _, in := range c.node.inputs[min(at, len(c.node.inputs)):] {
		if in.kind == argList {
			for _, e := range in.list {
				list = append(list, c.meaning(e))
			}
			continue
		}
		list = append(list, c.meaning(in.argument))
	}
	return list
}

// predicate is a scalar bool.
func (c *call) predicate(a argument) ir.Value {
	if a.kind != argTensor {
		return c.asNumber("predicate", a).scalar(c.b, ir.Bool)
	}
	v := c.asTensor("predicate", a).read(c.b)
	if !ir.Product(c.b.Shape(v)).Is(1) {
		c.bad("the predicate is %s", c.b.Type(v))
	}
	return c.b.Convert(c.b.Reshape(v, nil), ir.Bool)
}

// cond(predicate, true graph, false graph, operands).
func (c *call) cond() {
	if len(c.node.inputs) < 3 || c.node.inputs[1].graph == nil || c.node.inputs[2].graph == nil {
		c.bad("cond needs a predicate and two graphs")
	}
	predicate := c.predicate(c.node.inputs[0].argument)
	operands := c.operands(3)
	c.readAll(operands)
	regions := []*ir.Block{c.region(c.node.inputs[1].graph, operands, nil), c.region(c.node.inputs[2].graph, operands, nil)}
	c.bindValues(c.b.Op(ir.OpIf, nil, regions, predicate))
}

// readAll brings views up to date outside of a region.
func (c *call) readAll(operands []any) {
	for _, o := range operands {
		if t, ok := o.(*tensor); ok && t != nil {
			t.read(c.b)
		}
	}
}

// while(condition graph, body graph, carried, additional).
func (c *call) while() {
	if len(c.node.inputs) < 3 || c.node.inputs[0].graph == nil || c.node.inputs[1].graph == nil || c.node.inputs[2].kind != argList {
		c.bad("while_loop needs two graphs and a list")
	}
	operands := c.operands(2)
	carried := len(c.node.inputs[2].list)
	var start []ir.Value
	for i := range carried {
		switch v := operands[i].(type) {
		case *tensor:
			start = append(start, v.read(c.b))
		default:
			c.unsupported(" that carries a Python number")
		}
	}
	c.readAll(operands)
	params := func() []ir.Value {
		list := make([]ir.Value, carried)
		for i, v := range start {
			list[i] = c.entry.NewValue(c.b.Type(v))
		}
		return list
	}
	condition := c.region(c.node.inputs[0].graph, operands, params())
	if len(condition.Results) == 1 {
		b := c.b.Within(condition)
		condition.Results[0] = b.Convert(b.Reshape(condition.Results[0], nil), ir.Bool)
	}
	body := c.region(c.node.inputs[1].graph, operands, params())
	c.bindValues(c.b.Op(ir.OpWhile, nil, []*ir.Block{condition, body}, start...))
}

func (c *call) bindValues(vs []ir.Value) {
	results := make([]*tensor, len(vs))
	for i, v := range vs {
		results[i] = newTensor(v)
	}
	c.bindResults(results)
}

// autocastRegion is wrap_with_autocast(device, dtype, enabled, cache, graph, operands...).
func (c *call) autocastRegion() {
	at := c.graphInput(0)
	cast := &autocast{}
	for _, in := range c.node.inputs[:at] {
		switch in.kind {
		case argString:
			cast.device = in.name
		case argDType:
			cast.to = scalarTypes[in.i]
		case argBool:
			if !cast.decided {
				cast.decided, cast.enabled = true, in.i != 0
			}
		}
	}
	if cast.to == ir.InvalidDType {
		cast.to = map[string]ir.DType{"cuda": ir.F16}[cast.device]
		if cast.to == ir.InvalidDType {
			cast.to = ir.BF16
		}
	}
	if !cast.enabled {
		cast = nil
	}
	c.inlineIn(at, cast)
}
