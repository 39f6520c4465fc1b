package fx

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"weft/frontend/lower"

	"weft/ir"
	"weft/ir/diag"
)

// importer turns an exported program into an entry.
type importer struct {
	ep            *exportedProgram
	constant      func(name string) *ir.Tensor // data of a lifted constant, nil when there is none
	prog          *ir.Program
	entry         *ir.Entry
	random        *lower.Generator
	dims          map[string]ir.Dim // by expression text
	unlisted      []unsupported
	warnings      diag.List
	states        map[string]*tensor // by the state's name
	outputs       map[string]bool    // names of outputs
	processGroups []*processGroup    // of collectives
	mesh          ir.Mesh            // sizes of the groups, as the caller says
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
		im.bindMesh(im.mesh)
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
	d, err := im.expression(s.expr)
	if err != nil {
		fail(diag.FXExpression, place, "%v", err)
	}
	im.dims[s.expr] = d
	return d
}

// expression reads a size that depends on symbols, as far as their ranges leave it open.
func (im *importer) expression(text string) (ir.Dim, error) {
	d, err := parseExpr(text, im.declare)
	if err != nil {
		return ir.Dim{}, err
	}
	return d.Within(im.prog.Range), nil
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
	if sym.Min > sym.Max {
		fail(diag.FXExpression, "dim "+f.name, "the range %d..%d is empty", sym.Min, sym.Max)
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
			if d, err = s.expression(x.expr); err != nil {
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
	if name := strings.TrimPrefix(op, "aten."); makesComplex(name) || c.hasComplex() {
		c.lowerComplex(name)
		return
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

// checkSymbols wants every symbol of the live program to come from the size of an input, or to be a
// coordinate on the mesh.
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
	for _, a := range im.prog.Mesh.Axes {
		known[ir.RankSymbol(a.Name)], live[ir.RankSymbol(a.Name)] = true, true
	}
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
