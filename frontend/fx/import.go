package fx

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// importer turns an exported program into an entry.
type importer struct {
	ep       *exportedProgram
	constant func(name string) *ir.Tensor // data of a lifted constant, nil when there is none
	prog     *ir.Program
	entry    *ir.Entry
	dims     map[string]ir.Dim // by expression text
	unlisted []unsupported
	warnings diag.List
	states   map[string]*tensor // by the state's name
	outputs  map[string]bool    // names of outputs
	// exporterGuesses is set once an operator was met for which torch records wrong shapes:
	// from there on shapes are not compared.
	exporterGuesses bool
}

// unsupported is one occurrence of something without a lowering.
type unsupported struct {
	what, place string
}

// scope is a graph being imported: the program's or a region's.
type scope struct {
	*importer
	graph *graph
	b     *ir.Builder
	env   map[string]any
	cast  *autocast // the autocast region that the graph is in, or nil
}

// build makes the program of ep.
func (im *importer) build() error {
	if err := im.checkTargets(im.ep.graph); err != nil {
		return err
	}
	return ir.Try(func() {
		s := &scope{importer: im, graph: im.ep.graph, b: ir.NewBuilder(im.prog, im.entry), env: map[string]any{}}
		inputs := im.bindInputs(s)
		s.run()
		im.bindOutputs(s, inputs)
		im.reportUnsupported()
		sweep(im.prog, im.entry)
		im.checkSymbols()
	})
}

// fail ends the import.
func fail(code diag.Code, place, format string, args ...any) {
	ir.Fail(diag.Errorf(code, place, format, args...))
}

// dim reads a size.
func (im *importer) dim(s symInt, place string) ir.Dim {
	if s.expr == "" {
		return ir.Const(s.value)
	}
	if d, ok := im.dims[s.expr]; ok {
		return d
	}
	d, err := parseExpr(s.expr, im.declare)
	if err != nil {
		fail(diag.FXExpression, place, "%v", err)
	}
	im.dims[s.expr] = d
	return d
}

// declare adds a symbol with what the range constraints and sympy's assumptions say of it.
func (im *importer) declare(f symbolFacts) {
	if im.prog.Symbol(f.name) != nil {
		return
	}
	sym := im.prog.AddSymbol(f.name)
	if f.positive {
		sym.Min = 1
	}
	for _, r := range im.ep.ranges {
		if r.name == f.name {
			sym.Min = max(sym.Min, r.min)
			if r.max > 0 && r.max < ir.NoBound {
				sym.Max = r.max
			}
		}
	}
}

// tensorType is the recorded type of a value; ok is false when none is recorded.
func (s *scope) tensorType(name, place string) (t ir.Type, strides []ir.Dim, ok bool) {
	m, ok := s.graph.tensors[name]
	if !ok {
		return ir.Type{}, nil, false
	}
	dtype, known := scalarTypes[m.dtype]
	if !known {
		fail(diag.FXType, place, "value %q has the unknown dtype %d", name, m.dtype)
	}
	t.DType = dtype
	for _, size := range m.sizes {
		d := s.dim(size, place)
		if v, c := d.IsConst(); c && (v < 0 || v > maxSize) {
			fail(diag.FXType, place, "value %q has a dim of %d", name, v)
		}
		t.Shape = append(t.Shape, d)
	}
	checkSize(t.Shape, place)
	return t, s.strides(m, place), true
}

// checkSize bounds the expressions of a shape, whose products grow fast in crafted files.
func checkSize(shape []ir.Dim, place string) {
	numel := ir.Const(1)
	for _, d := range shape {
		if numel = numel.Mul(d); len(d.String()) > maxExprText || len(numel.String()) > 8*maxExprText {
			fail(diag.FXExpression, place, "%v", errTooLarge)
		}
	}
}

// maxSize bounds a constant dim, so that products of a few dims stay in range.
const maxSize = 1 << 48

// strides are the recorded strides; nil where one is an expression that weft does not read.
func (s *scope) strides(m tensorMeta, place string) []ir.Dim {
	strides := make([]ir.Dim, len(m.strides))
	for i, x := range m.strides {
		if x.expr == "" {
			strides[i] = ir.Const(x.value)
			continue
		}
		d, ok := s.dims[x.expr]
		if !ok {
			var err error
			if d, err = parseExpr(x.expr, s.declare); err != nil {
				return nil
			}
			s.dims[x.expr] = d
		}
		strides[i] = d
	}
	if len(strides) != len(m.sizes) {
		return nil
	}
	return strides
}

// bind gives a name its meaning.
func (s *scope) bind(name string, v any, place string) {
	if _, dup := s.env[name]; dup || name == "" {
		fail(diag.FXName, place, "value %q is defined twice or has no name", name)
	}
	s.env[name] = v
}

// run imports the nodes of the graph in order.
func (s *scope) run() {
	for i := range s.graph.nodes {
		n := &s.graph.nodes[i]
		s.b.Loc = location(n)
		s.node(n)
	}
}

// node imports one node. An unsupported form is noted and its results are replaced by zeros
// of the recorded types, so that everything unsupported is found at once.
func (s *scope) node(n *node) {
	c := &call{scope: s, node: n, place: s.b.Loc}
	if n.name != "" && n.name != c.place {
		c.place = fmt.Sprintf("%s: %s", n.name, c.place)
	}
	err := c.lowered()
	if err == nil {
		return
	}
	found := diag.All(err)
	if len(found) == 1 && found[0].Code == diag.UnsupportedOperators {
		s.unlisted = append(s.unlisted, unsupported{shortTarget(n.target) + found[0].Message, c.place})
		s.placeholders(c)
		return
	}
	for _, d := range found {
		if d.Code == diag.IllTyped {
			d.Place = c.place
			d.Message = shortTarget(n.target) + ": " + d.Message
		}
	}
	ir.Fail(found[0])
}

// lowered lowers the node. A rule that trips over arguments that no exporter writes is a bug
// of weft, which is reported and does not end the process.
func (c *call) lowered() (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case runtime.Error:
			err = diag.Errorf(diag.Bug, c.place, "importing %s failed: %v", shortTarget(c.node.target), r).Because(r).
				Suggest("please report it with the model")
		default:
			panic(r)
		}
	}()
	return ir.Try(func() { c.lower(c) })
}

// placeholders binds the outputs of a node that could not be lowered.
func (s *scope) placeholders(c *call) {
	zero := func(name string) *tensor {
		t, _, ok := s.tensorType(name, c.place)
		if !ok {
			return nil
		}
		return newTensor(s.b.Full(t.With(ir.Bool), 0)).convert(s.b, t.DType)
	}
	for _, o := range c.node.outputs {
		switch o.kind {
		case argTensor:
			s.env[o.name] = zero(o.name)
		case argList:
			for _, e := range o.list {
				s.env[e.name] = zero(e.name)
			}
		case argSymInt:
			s.env[o.name] = s.recordedInt(o.name, c.place)
		case argSymFloat, argSymBool:
			s.env[o.name] = number{}
		}
	}
}

func (t *tensor) convert(b *ir.Builder, dtype ir.DType) *tensor {
	t.val = b.Convert(t.val, dtype)
	return t
}

// lower finds the rule of the node's target, applies it and binds the results.
func (s *scope) lower(c *call) {
	if rule, ok := controlRule(c.node.target); ok {
		rule(c)
		return
	}
	if rule, arity, ok := findNumberRule(c.node.target); ok {
		c.bindNumber(rule, arity)
		return
	}
	op, ok := strings.CutPrefix(c.node.target, "torch.ops.")
	if !ok {
		c.unsupported("")
	}
	r, mode, ok := findRule(op)
	if !ok {
		c.unsupported("")
	}
	if s.cast != nil {
		s.cast.begin(c, op)
	}
	results := r(c)
	switch mode {
	case inPlace:
		results = []*tensor{c.mutate(c.selfName(), results)}
	case intoOut:
		results = []*tensor{c.mutate("out", results)}
	}
	c.checkUsed()
	c.bindResults(results)
}

// bindResults gives the outputs of the node their values and checks them against what the
// exporter recorded.
func (c *call) bindResults(results []*tensor) {
	names := c.outputNames()
	if len(names) > len(results) {
		fail(diag.FXArgument, c.place, "%s has %d results, the node names %d", shortTarget(c.node.target), len(results), len(names))
	}
	for i, name := range names {
		if name == "" {
			continue
		}
		c.bind(name, c.checked(name, results[i]), c.place)
	}
}

// outputNames lists the names of the node's tensor results; "" for None.
func (c *call) outputNames() []string {
	var names []string
	for _, o := range c.node.outputs {
		switch o.kind {
		case argTensor:
			names = append(names, o.name)
		case argList:
			for _, e := range o.list {
				names = append(names, e.name)
			}
		case argNone:
			names = append(names, "")
		default:
			c.unsupported(" with a result that is " + o.kind.String())
		}
	}
	return names
}

// checked compares a result with its recorded type. Where sizes differ as expressions but not
// as constants, the recorded ones are taken: the exporter has proven them equal.
func (c *call) checked(name string, t *tensor) *tensor {
	if t == nil {
		return nil
	}
	want, strides, ok := c.tensorType(name, c.place)
	if !ok {
		checkSize(c.b.Shape(t.read(c.b)), c.place)
		return t
	}
	got := c.b.Type(t.read(c.b))
	checkSize(got.Shape, c.place)
	if c.exporterGuesses && got.DType == want.DType {
		return t
	}
	same := got.DType == want.DType && got.Rank() == want.Rank()
	for i := 0; same && i < got.Rank(); i++ {
		a, ca := got.Shape[i].IsConst()
		b, cb := want.Shape[i].IsConst()
		same = !ca || !cb || a == b
	}
	if !same {
		fail(diag.FXType, c.place, "%s gives %s, the exporter recorded %s for %q", shortTarget(c.node.target), got, want, name)
	}
	if !ir.SameShape(got.Shape, want.Shape) {
		t = newView(c.b, t, reshapeView{want.Shape})
	}
	if t.strides == nil {
		t.strides = strides
	}
	return t
}

// shortTarget names an operator as users know it.
func shortTarget(target string) string {
	target = strings.TrimPrefix(target, "torch.ops.")
	return strings.TrimPrefix(target, "higher_order.")
}

// checkTargets reports all operators of the graph and its regions that have no rule.
func (im *importer) checkTargets(g *graph) error {
	var visit func(g *graph)
	visit = func(g *graph) {
		for i := range g.nodes {
			n := &g.nodes[i]
			if !hasRule(n.target) {
				im.unlisted = append(im.unlisted, unsupported{shortTarget(n.target), location(n)})
			}
			for _, a := range n.inputs {
				if a.graph != nil {
					visit(a.graph)
				}
			}
		}
	}
	visit(g)
	return ir.Try(im.reportUnsupported)
}

// reportUnsupported ends the import when something had no lowering.
func (im *importer) reportUnsupported() {
	if len(im.unlisted) == 0 {
		return
	}
	counts, first := map[string]int{}, map[string][]string{}
	var names []string
	for _, u := range im.unlisted {
		if counts[u.what]++; counts[u.what] == 1 {
			names = append(names, u.what)
		}
		if len(first[u.what]) < 3 {
			first[u.what] = append(first[u.what], u.place)
		}
	}
	slices.Sort(names)
	what := "operators have"
	if len(names) == 1 {
		what = "operator has"
	}
	d := diag.Errorf(diag.UnsupportedOperators, "", "%d %s no lowering: %s", len(names), what, strings.Join(names, ", "))
	for _, name := range names {
		times := "once"
		if n := counts[name]; n > 1 {
			times = fmt.Sprintf("%d times", n)
		}
		d.Note("%s: %s, at %s", name, times, strings.Join(first[name], "; "))
	}
	ir.Fail(d.Suggest("call ExportedProgram.run_decompositions() before saving, which rewrites many operators into simpler ones, or express them otherwise"))
}

// checkSymbols wants every symbol of the live program to come from the size of an input.
func (im *importer) checkSymbols() {
	known := map[string]bool{}
	for i, in := range im.entry.Inputs {
		if in.State == "" {
			for _, d := range im.entry.Type(im.entry.Body.Params[i]).Shape {
				d.Symbols(func(name string) { known[name] = true })
			}
		}
	}
	live := map[string]bool{}
	for _, t := range im.entry.Types {
		for _, d := range t.Shape {
			d.Symbols(func(name string) { live[name] = true })
		}
	}
	im.entry.Body.Walk(func(op *ir.Op) {
		if a, ok := op.Attrs.(*ir.DimAttrs); ok {
			a.Value.Symbols(func(name string) { live[name] = true })
		}
	})
	im.prog.Symbols = slices.DeleteFunc(im.prog.Symbols, func(s ir.Symbol) bool {
		if live[s.Name] && !known[s.Name] {
			fail(diag.FXDimUnbound, s.Name, "the size %s is only known after part of the model has run", s.Name)
		}
		return !live[s.Name]
	})
}

// stateKinds maps roles of inputs to kinds of states.
var stateKinds = map[string]ir.StateKind{"parameter": ir.Parameter, "buffer": ir.Buffer, "tensor_constant": ir.Literal}

// maxLiteral is the number of elements up to which a lifted constant becomes a literal.
const maxLiteral = 64

// bindInputs makes the entry's inputs. It returns the tensors of user inputs, which in-place
// operators may change.
func (im *importer) bindInputs(s *scope) []userInput {
	if len(im.ep.inputs) != len(s.graph.inputs) {
		fail(diag.FXSignature, "", "the signature has %d inputs, the graph %d", len(im.ep.inputs), len(s.graph.inputs))
	}
	var users []userInput
	for i, in := range im.ep.inputs {
		arg := s.graph.inputs[i]
		if in.role != "constant_input" && in.role != "custom_obj" && in.arg.name != arg.name {
			fail(diag.FXSignature, arg.name, "input %d is %q in the signature, %q in the graph", i, in.arg.name, arg.name)
		}
		switch in.role {
		case "user_input", "constant_input":
			if u, ok := im.bindUser(s, in, arg); ok {
				users = append(users, u)
			}
		case "parameter", "buffer", "tensor_constant":
			im.bindState(s, in, arg)
		case "custom_obj":
			s.bind(arg.name, nil, arg.name)
		default:
			fail(diag.FXSignature, arg.name, "inputs of kind %q", in.role)
		}
	}
	return users
}

type userInput struct {
	name string
	t    *tensor
}

func (im *importer) bindUser(s *scope, in spec, arg argument) (userInput, bool) {
	switch arg.kind {
	case argTensor:
		t, strides, ok := s.tensorType(arg.name, arg.name)
		if !ok {
			fail(diag.FXType, arg.name, "the input has no recorded type")
		}
		if s.graph.tensors[arg.name].layout != stridedLayout {
			fail(diag.UnsupportedOperators, arg.name, "inputs of a sparse layout")
		}
		v := newTensor(im.entry.AddInput(arg.name, t))
		v.strides = strides
		s.bind(arg.name, v, arg.name)
		return userInput{arg.name, v}, true
	case argSymInt:
		// An int input with a symbol is a scalar at run time.
		fail(diag.FXDimUnbound, arg.name, "an input that is a symbolic int and no tensor's size")
	}
	// Python constants are fixed at export: the graph does not use them.
	if arg.name != "" {
		s.bind(arg.name, nil, arg.name)
	}
	return userInput{}, false
}

func (im *importer) bindState(s *scope, in spec, arg argument) {
	t, strides, ok := s.tensorType(arg.name, arg.name)
	if !ok {
		fail(diag.FXType, arg.name, "%s %q has no recorded type", in.role, in.target)
	}
	for _, d := range t.Shape {
		if _, c := d.IsConst(); !c {
			fail(diag.FXType, arg.name, "%s %q has the symbolic type %s", in.role, in.target, t)
		}
	}
	if n, _ := t.Numel().IsConst(); in.role == "tensor_constant" && n <= maxLiteral && im.constant != nil {
		if data := im.constant(in.target); data != nil && data.Type().Equal(t) {
			s.b.Loc = in.target
			s.bind(arg.name, newTensor(s.b.Constant(data)), arg.name)
			return
		}
	}
	v, known := im.states[in.target]
	if !known {
		im.prog.States = append(im.prog.States, ir.State{Name: in.target, Type: t, Kind: stateKinds[in.role]})
		v = newTensor(im.entry.AddStateInput(in.target, t))
		v.strides = strides
		im.states[in.target] = v
	}
	s.bind(arg.name, v, arg.name)
}

// bindOutputs makes the entry's outputs: those of the caller, changed inputs ("after.NAME"),
// then states with new values.
func (im *importer) bindOutputs(s *scope, inputs []userInput) {
	if len(im.ep.outputs) != len(s.graph.outputs) {
		fail(diag.FXSignature, "", "the signature has %d outputs, the graph %d", len(im.ep.outputs), len(s.graph.outputs))
	}
	type replacement struct {
		old *tensor
		v   ir.Value
	}
	var replaced []replacement
	for i, out := range im.ep.outputs {
		arg := s.graph.outputs[i]
		switch out.role {
		case "user_output", "loss_output", "gradient_to_parameter", "gradient_to_user_input":
			im.addOutput(s, arg)
		case "buffer_mutation", "parameter_mutation":
			st := im.states[out.target]
			if st == nil {
				fail(diag.FXSignature, arg.name, "the output replaces %q, which is no state", out.target)
			}
			replaced = append(replaced, replacement{st, im.replacement(s, st, arg)})
		case "user_input_mutation":
			k := slices.IndexFunc(inputs, func(u userInput) bool { return u.name == out.target })
			if k < 0 {
				fail(diag.FXSignature, arg.name, "the output replaces %q, which is no input", out.target)
			}
			replaced = append(replaced, replacement{inputs[k].t, im.replacement(s, inputs[k].t, arg)})
		case "token":
		default:
			fail(diag.FXSignature, arg.name, "outputs of kind %q", out.role)
		}
	}
	for _, r := range replaced {
		r.old.write(s.b, r.v)
	}
	for _, u := range inputs {
		if u.t.base.written {
			im.entry.AddOutput(im.outputName("after."+u.name), "", u.t.read(s.b))
		}
	}
	for _, st := range im.prog.States {
		if t := im.states[st.Name]; t.base.written {
			im.entry.AddOutput(st.Name, st.Name, t.read(s.b))
		}
	}
}

// replacement is the new value that a graph output gives an input or state.
func (im *importer) replacement(s *scope, old *tensor, arg argument) ir.Value {
	t, ok := s.env[arg.name].(*tensor)
	if !ok || t == nil {
		fail(diag.FXName, arg.name, "the output %q is not defined", arg.name)
	}
	v := t.read(s.b)
	if was := s.b.Type(old.read(s.b)); !s.b.Type(v).Equal(was) {
		fail(diag.FXType, arg.name, "a %s cannot replace a %s", s.b.Type(v), was)
	}
	return v
}

func (im *importer) addOutput(s *scope, arg argument) {
	switch arg.kind {
	case argNone, argInt, argFloat, argBool, argString:
		return // constants of the module's result
	case argTensor:
		t, ok := s.env[arg.name].(*tensor)
		if !ok || t == nil {
			fail(diag.FXName, arg.name, "the output %q is not defined", arg.name)
		}
		im.entry.AddOutput(im.outputName(arg.name), "", t.read(s.b))
	case argSymInt:
		d, ok := s.env[arg.name].(ir.Dim)
		if !ok {
			fail(diag.FXName, arg.name, "the output %q is not defined", arg.name)
		}
		im.entry.AddOutput(im.outputName(arg.name), "", s.b.Dim(d))
	default:
		fail(diag.UnsupportedOperators, arg.name, "an output that is %s", arg.kind)
	}
}

// outputName makes names of outputs distinct: a value may be returned twice.
func (im *importer) outputName(name string) string {
	unique := name
	for n := 1; im.outputs[unique]; n++ {
		unique = fmt.Sprintf("%s.%d", name, n)
	}
	im.outputs[unique] = true
	return unique
}
