package onnx

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// Limits of the walk: nodes lowered in all, with inlined functions and unrolled loops, and
// how deep functions and subgraphs nest.
const (
	maxSteps   = 1 << 18
	maxNesting = 48
)

// value is what a name of the graph stands for: a tensor, or a sequence of tensors (or an
// optional, a sequence of at most one) whose length is known.
type value struct {
	v        ir.Value // ir.NoValue until a stored tensor is used
	stored   *storedTensor
	sequence *sequence
	poison   bool // made by a node that failed
}

// sequence is a list of tensors that exists during the import only.
type sequence struct {
	items    []ir.Value
	optional bool
}

// storedTensor is an initializer or a large Constant, which becomes a literal or a state when
// it is used.
type storedTensor struct {
	name    string
	proto   *tensorProto
	tensor  *ir.Tensor
	order   int
	kind    ir.StateKind
	literal bool // a Constant node: a literal unless it is large
}

// scope is a graph being walked: the main graph, a subgraph or a function's body.
type scope struct {
	parent  *scope
	b       *ir.Builder
	values  map[string]*value
	opsets  map[string]int64
	call    map[string]*attributeProto // the attributes of an inlined function
	prefix  string                     // in front of node names of functions and subgraphs
	nesting int
}

func (s *scope) find(name string) *value {
	for ; s != nil; s = s.parent {
		if v := s.values[name]; v != nil {
			return v
		}
	}
	return nil
}

// inner makes the scope of a subgraph that appends to b.
func (s *scope) inner(b *ir.Builder, prefix string) *scope {
	return &scope{parent: s, b: b, values: map[string]*value{}, opsets: s.opsets, call: s.call,
		prefix: s.prefix + prefix + "/", nesting: s.nesting + 1}
}

// poisoned ends the lowering of a node whose operand failed before; it is never shown.
var poisoned = diag.Errorf(diag.Bug, "", "an operand was not imported")

// stored are the names of the tensors that the graph holds; older files list them as inputs too.
func (g *graphProto) stored() map[string]bool {
	names := map[string]bool{}
	for _, t := range g.initializers {
		names[t.name] = true
	}
	for _, t := range g.sparse {
		if t.values != nil {
			names[t.values.name] = true
		}
	}
	return names
}

// graph walks the main graph: its inputs, nodes and outputs.
func (im *importer) graph() {
	g := im.model.graph
	s := &scope{b: ir.NewBuilder(im.program, im.entry), values: map[string]*value{}, opsets: im.opsets}
	stored := g.stored()
	for _, in := range g.inputs {
		if stored[in.name] {
			continue
		}
		if in.name == "" {
			ir.Fail(diag.Errorf(diag.ONNXGraph, "", "an input of the graph has no name").Suggest("export the model again"))
		}
		if s.values[in.name] != nil {
			ir.Fail(diag.Errorf(diag.ONNXGraph, in.name, "two inputs have the name %q", in.name).Suggest("export the model again"))
		}
		if t := im.constants[in.name]; t != nil {
			s.values[in.name] = &value{v: s.b.Constant(t)}
			continue
		}
		s.values[in.name] = &value{v: im.entry.AddInput(in.name, im.inputType(in))}
	}
	im.initializers(s, g)
	im.nodes(s, g.nodes, outputNames(g))
	if len(g.outputs) == 0 {
		ir.Fail(diag.Errorf(diag.ONNXGraph, "", "the graph has no outputs").Suggest("export the model again"))
	}
	seen := map[string]bool{}
	for _, out := range g.outputs {
		if seen[out.name] {
			ir.Fail(diag.Errorf(diag.ONNXGraph, out.name, "two outputs have the name %q", out.name).Suggest("export the model again"))
		}
		seen[out.name] = true
		if out.name == "" {
			ir.Fail(diag.Errorf(diag.ONNXGraph, "", "an output of the graph has no name").Suggest("export the model again"))
		}
		v, err := im.use(s, out.name, "the graph's outputs")
		if err != nil {
			im.report(err)
			continue
		}
		im.entry.AddOutput(out.name, "", v)
		im.compareDeclared(out, v)
	}
	im.random.Close(s.b)
	for _, info := range g.valueInfo {
		if v := s.values[info.name]; v != nil && v.v != ir.NoValue && v.sequence == nil && v.stored == nil {
			im.compareDeclared(info, v.v)
		}
	}
}

func outputNames(g *graphProto) []string {
	names := make([]string, len(g.outputs))
	for i, o := range g.outputs {
		names[i] = o.name
	}
	return names
}

// use gives the tensor of a name, for use in the scope's block.
func (im *importer) use(s *scope, name, by string) (v ir.Value, err error) {
	err = ir.Try(func() {
		x := s.find(name)
		if x == nil {
			ir.Fail(diag.Errorf(diag.ONNXGraph, by, "%q is used but nothing defines it", name).
				Suggest("the graph is incomplete: check it with onnx.checker and export it again"))
		}
		v = im.tensor(s, x, by)
	})
	return v, err
}

// tensor gives the program's value of a name's value.
func (im *importer) tensor(s *scope, x *value, place string) ir.Value {
	switch {
	case x.poison:
		ir.Fail(poisoned)
	case x.sequence != nil:
		ir.Fail(unsupportedForm(place, "a sequence or optional is used where weft needs a tensor"))
	case x.v == ir.NoValue:
		owner := s
		for owner.parent != nil && !owns(owner, x) {
			owner = owner.parent
		}
		x.v = im.store(owner, x.stored)
	}
	return x.v
}

func owns(s *scope, x *value) bool { return s.values[x.stored.name] == x }

func unsupportedForm(place, format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(diag.ONNXForm, place, format, args...).Suggest("export the model in another form, or for another opset")
}

// initializers adds the stored tensors of a graph to its scope.
func (im *importer) initializers(s *scope, g *graphProto) {
	add := func(name string, st *storedTensor) {
		if s.values[name] != nil {
			ir.Fail(diag.Errorf(diag.ONNXGraph, name, "two initializers have the name %q", name).Suggest("export the model again"))
		}
		s.values[name] = &value{v: ir.NoValue, stored: st}
	}
	for i, t := range g.initializers {
		add(t.name, &storedTensor{name: t.name, proto: t, order: i, kind: ir.Parameter})
	}
	for i, t := range g.sparse {
		dense, d := im.densify(t)
		if d != nil {
			ir.Fail(d)
		}
		add(t.values.name, &storedTensor{name: t.values.name, tensor: dense, order: len(g.initializers) + i, kind: ir.Parameter})
	}
}

// maxLiteral is the largest literal of the program, in elements; larger tensors are states.
const maxLiteral = 64

// contents reads a stored tensor, once.
func (im *importer) contents(st *storedTensor) *ir.Tensor {
	if st.tensor == nil {
		t, d := im.external.read(st.proto, st.name)
		if d != nil {
			ir.Fail(d)
		}
		st.tensor = t
	}
	return st.tensor
}

// store makes a literal or a state of a stored tensor. Trained numbers are states: floats
// with at least one dim, and whatever is large.
func (im *importer) store(s *scope, st *storedTensor) ir.Value {
	if v, ok := im.stored[st.proto]; ok && st.proto != nil {
		return v
	}
	t := im.contents(st)
	weight := t.DType.IsFloat() && len(t.Shape) > 0 && !st.literal
	if t.DType == ir.String || t.Numel() <= maxLiteral && !weight {
		return s.b.Constant(t)
	}
	name := s.prefix + cmp.Or(st.name, "tensor")
	for n := 2; im.stateNames[name]; n++ {
		name = fmt.Sprintf("%s%s.%d", s.prefix, cmp.Or(st.name, "tensor"), n)
	}
	im.stateNames[name] = true
	v := im.entry.AddStateInput(name, t.Type())
	order := st.order
	if st.kind != ir.Parameter || s.parent != nil {
		order = len(im.model.graph.initializers) + len(im.model.graph.sparse) + len(im.states)
	}
	if st.proto != nil {
		im.stored[st.proto] = v
	}
	im.states = append(im.states, stateUse{order, name, t, st.kind, v})
	if t.Numel() <= 1<<14 {
		im.known.Literal(v, t)
	}
	return v
}

// densify makes a tensor of a sparse one; what it expands to is limited.
func (im *importer) densify(s *sparseTensorProto) (*ir.Tensor, *diag.Diagnostic) {
	if s.values == nil || s.indices == nil {
		return nil, diag.Errorf(diag.ONNXTensor, "", "a sparse tensor has no values or no indices").Suggest("export the model again")
	}
	place := s.values.name
	bad := func(format string, args ...any) *diag.Diagnostic {
		return diag.Errorf(diag.ONNXTensor, place, "sparse tensor: "+format, args...).Suggest("export the model again")
	}
	values, d := im.external.read(s.values, place)
	if d != nil {
		return nil, d
	}
	indices, d := im.external.read(s.indices, place)
	if d != nil {
		return nil, d
	}
	dense := &ir.Tensor{DType: values.DType, Shape: s.dims}
	n := dense.Numel()
	switch {
	case slices.ContainsFunc(s.dims, func(d int64) bool { return d < 0 }) || n > 1<<28 || values.DType.Size() == 0:
		return nil, bad("shape %v of %s is not possible or too large", s.dims, values.DType)
	case indices.DType != ir.I64 || len(values.Shape) != 1 || len(indices.Shape) < 1 || indices.Shape[0] != values.Shape[0]:
		return nil, bad("values %s and indices %s do not fit", values.Type(), indices.Type())
	}
	dense = ir.NewTensor(values.DType, s.dims...)
	width, per := int64(values.DType.Size()), indices.Numel()/max(1, values.Numel())
	for i := range values.Numel() {
		at := indices.Int(i * per)
		if per == int64(len(s.dims)) && len(indices.Shape) == 2 {
			at = 0
			for d, size := range s.dims {
				at = at*size + indices.Int(i*per+int64(d))
			}
		}
		if at < 0 || at >= n {
			return nil, bad("index %d of %d elements", at, n)
		}
		copy(dense.Data[at*width:(at+1)*width], values.Data[i*width:])
	}
	return dense, nil
}

// nodes lowers the nodes of a graph that the wanted names depend on. A node that fails is
// reported and poisons its outputs, so that one import lists all that is wrong.
func (im *importer) nodes(s *scope, nodes []*nodeProto, wanted []string) {
	if s.nesting > maxNesting {
		ir.Fail(diag.Errorf(diag.ONNXLimit, s.prefix, "functions and subgraphs nest deeper than %d", maxNesting).Suggest("export the model again"))
	}
	order, err := sortNodes(s, nodes)
	if err != nil {
		ir.Fail(err)
	}
	live := liveNodes(order, wanted)
	for i, n := range order {
		if !live[i] {
			continue
		}
		if im.steps++; im.steps > maxSteps {
			ir.Fail(diag.Errorf(diag.ONNXLimit, s.prefix+n.place(), "more than %d nodes with inlined functions and unrolled loops", maxSteps).
				Suggest("export the model with fewer nested functions"))
		}
		im.node(s, n)
	}
}

// producers maps names to the nodes that make them.
func producers(s *scope, nodes []*nodeProto) (map[string]int, *diag.Diagnostic) {
	by := map[string]int{}
	for i, n := range nodes {
		for _, name := range n.outputs {
			if name == "" {
				continue
			}
			if j, twice := by[name]; twice {
				return nil, diag.Errorf(diag.ONNXGraph, s.prefix+n.place(), "%q is an output of %s already", name, nodes[j].place()).
					Suggest("each value needs a name of its own: export the model again")
			}
			if s.values[name] != nil {
				return nil, diag.Errorf(diag.ONNXGraph, s.prefix+n.place(), "%q is an input or initializer already", name).
					Suggest("each value needs a name of its own: export the model again")
			}
			by[name] = i
		}
	}
	return by, nil
}

// sortNodes orders nodes so that each comes after those that it uses, keeping the file's
// order where it can; nodes that use each other in a circle are an error.
func sortNodes(s *scope, nodes []*nodeProto) ([]*nodeProto, *diag.Diagnostic) {
	by, d := producers(s, nodes)
	if d != nil {
		return nil, d
	}
	const (
		unseen = iota
		open
		done
	)
	state := make([]int, len(nodes))
	order := make([]*nodeProto, 0, len(nodes))
	type visit struct {
		node int
		uses []string
	}
	for root := range nodes {
		if state[root] != unseen {
			continue
		}
		state[root] = open
		stack := []visit{{root, usedNames(nodes[root])}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.uses) == 0 {
				state[top.node] = done
				order = append(order, nodes[top.node])
				stack = stack[:len(stack)-1]
				continue
			}
			next, made := by[top.uses[0]]
			top.uses = top.uses[1:]
			switch {
			case !made || state[next] == done:
			case state[next] == open:
				return nil, cycle(s, nodes, len(stack), func(i int) int { return stack[i].node }, next)
			default:
				state[next] = open
				stack = append(stack, visit{next, usedNames(nodes[next])})
			}
		}
	}
	return order, nil
}

func cycle(s *scope, nodes []*nodeProto, depth int, at func(int) int, back int) *diag.Diagnostic {
	var names []string
	for i := depth - 1; i >= 0 && len(names) < 8; i-- {
		names = append(names, nodes[at(i)].place())
		if at(i) == back {
			break
		}
	}
	slices.Reverse(names)
	return diag.Errorf(diag.ONNXGraph, s.prefix+nodes[back].place(), "nodes depend on each other in a circle: %s", strings.Join(names, ", ")).
		Suggest("the graph must have no cycle: check it with onnx.checker and export it again")
}

// usedNames lists the names that a node uses, with those that its subgraphs take from outside.
func usedNames(n *nodeProto) []string {
	var names []string
	for _, name := range n.inputs {
		if name != "" {
			names = append(names, name)
		}
	}
	for _, a := range n.attributes {
		if a.g != nil {
			names = append(names, captured(a.g)...)
		}
	}
	return names
}

// captured lists the names that a subgraph uses and does not define.
func captured(g *graphProto) []string {
	own := map[string]bool{}
	for _, in := range g.inputs {
		own[in.name] = true
	}
	for _, t := range g.initializers {
		own[t.name] = true
	}
	for _, n := range g.nodes {
		for _, out := range n.outputs {
			own[out] = true
		}
	}
	var names []string
	take := func(name string) {
		if !own[name] {
			names = append(names, name)
		}
	}
	for _, n := range g.nodes {
		for _, name := range usedNames(n) {
			take(name)
		}
	}
	for _, out := range g.outputs {
		take(out.name)
	}
	return names
}

// liveNodes tells which nodes the wanted names depend on.
func liveNodes(order []*nodeProto, wanted []string) []bool {
	needed := map[string]bool{}
	for _, name := range wanted {
		needed[name] = true
	}
	live := make([]bool, len(order))
	for i := len(order) - 1; i >= 0; i-- {
		live[i] = slices.ContainsFunc(order[i].outputs, func(name string) bool { return name != "" && needed[name] })
		if live[i] {
			for _, name := range usedNames(order[i]) {
				needed[name] = true
			}
		}
	}
	return live
}

// node lowers one node and binds its outputs.
func (im *importer) node(s *scope, p *nodeProto) {
	n := &node{importer: im, p: p, s: s, b: s.b, version: s.opsets[canonicalDomain(p.domain)], place: s.prefix + p.place()}
	s.b.Loc = s.prefix + p.loc()
	err := ir.Try(func() {
		n.readAttributes()
		if f := im.functions[functionKey{canonicalDomain(p.domain), p.opType, p.overload}]; f != nil {
			n.inline(f)
			return
		}
		lowering := im.lowering(p, n.version)
		if lowering == nil {
			im.addUnsupported(s, p)
			ir.Fail(poisoned)
		}
		lowering(n)
	})
	if err != nil {
		im.report(err)
	}
	for i, name := range p.outputs {
		if name == "" {
			continue
		}
		out := &value{v: ir.NoValue, poison: true}
		if err == nil && i < len(n.outs) && n.outs[i] != nil {
			out = n.outs[i]
		} else if err == nil {
			im.report(unsupportedForm(n.place, "output %d of %s is not supported", i, p.opType))
		}
		s.values[name] = out
	}
}

// lowering finds the table's row for an operator: the newest version that the model's opset
// has reached.
func (im *importer) lowering(p *nodeProto, opset int64) func(*node) {
	name := p.opType
	if d := canonicalDomain(p.domain); d != "" {
		name = d + "." + name
		opset = max(opset, 1)
	}
	var found func(*node)
	for _, v := range im.table[name] {
		if v.since <= opset {
			found = v.lower
		}
	}
	return found
}

// addUnsupported records a node without a lowering, and those of its subgraphs.
func (im *importer) addUnsupported(s *scope, p *nodeProto) {
	if len(im.unsupported) >= maxSteps {
		return
	}
	name := p.opType
	if d := canonicalDomain(p.domain); d != "" {
		name = d + "." + name
	}
	im.unsupported = append(im.unsupported, unsupportedUse{name, s.prefix + p.place()})
}
