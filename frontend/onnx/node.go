package onnx

import (
	"slices"

	"weft/frontend/lower"
	"weft/ir"
	"weft/ir/diag"
)

// node is an operator that is being lowered: what lowering functions see. Its methods end
// the lowering with a diagnostic (ir.Fail) when the node is not as the operator demands.
type node struct {
	*importer
	p       *nodeProto
	s       *scope
	b       *ir.Builder
	version int64 // of the operator's opset
	place   string
	attrs   map[string]*attributeProto
	outs    []*value
}

// wrong ends the lowering: the operator is used wrongly.
func (n *node) wrong(format string, args ...any) {
	ir.Fail(diag.Errorf(diag.ONNXOperator, n.place, n.p.opType+": "+format, args...).
		Suggest("check the model with onnx.checker, or export it again"))
}

// unsupportedForm ends the lowering: this form of the operator is not supported.
func (n *node) unsupportedForm(format string, args ...any) {
	ir.Fail(unsupportedForm(n.place, n.p.opType+": "+format, args...))
}

// dataDependent ends the lowering: a shape depends on what is only known at run time.
func (n *node) dataDependent(format string, args ...any) {
	ir.Fail(diag.Errorf(diag.ONNXDataDependent, n.place, n.p.opType+": "+format, args...).
		Suggest("weft needs shapes made of constants and named dims: where the data is an input, --constant INPUT=VALUES fixes it; else give the exporter the size, or move the operator out of the model"))
}

// input gives what input i stands for; nil where it is left out.
func (n *node) input(i int) *value {
	if i >= len(n.p.inputs) || n.p.inputs[i] == "" {
		return nil
	}
	x := n.s.find(n.p.inputs[i])
	switch {
	case x == nil:
		ir.Fail(diag.Errorf(diag.ONNXGraph, n.place, "input %q of %s is not defined", n.p.inputs[i], n.p.opType).
			Suggest("the graph is incomplete: check it with onnx.checker and export it again"))
	case x.poison:
		ir.Fail(poisoned)
	}
	return x
}

// has tells whether input i is given.
func (n *node) has(i int) bool { return i < len(n.p.inputs) && n.p.inputs[i] != "" }

// in is input i, which must be a tensor.
func (n *node) in(i int) ir.Value {
	x := n.input(i)
	if x == nil {
		n.wrong("input %d is missing", i)
	}
	return n.tensor(n.s, x, n.place)
}

// opt is input i, or ir.NoValue where it is left out.
func (n *node) opt(i int) ir.Value {
	if !n.has(i) {
		return ir.NoValue
	}
	return n.in(i)
}

// all is every input, at least one.
func (n *node) all() []ir.Value {
	xs := make([]ir.Value, len(n.p.inputs))
	for i := range xs {
		xs[i] = n.in(i)
	}
	if len(xs) == 0 {
		n.wrong("it has no inputs")
	}
	return xs
}

// ins is the first k inputs.
func (n *node) ins(k int) []ir.Value {
	xs := make([]ir.Value, k)
	for i := range xs {
		xs[i] = n.in(i)
	}
	return xs
}

// set gives the outputs, in order. ir.NoValue is an output that is not supported.
func (n *node) set(vs ...ir.Value) {
	for i, v := range vs {
		if v == ir.NoValue {
			n.outs = append(n.outs, nil)
			continue
		}
		if i >= len(n.p.outputs) {
			return
		}
		n.check(v)
		n.outs = append(n.outs, &value{v: v})
	}
}

// Limits of a result's shape: the characters of a dim, and the products when dims multiply.
const (
	maxDimText  = 1 << 12
	maxProducts = 1 << 12
)

// check limits the type of an output.
func (n *node) check(v ir.Value) {
	t := n.b.Type(v)
	products, tooMuch := 1, t.Rank() > maxRank
	for _, d := range t.Shape {
		terms := 1
		if _, isConst := d.IsConst(); !isConst {
			d.Walk(func(int64, []ir.Factor) { terms++ })
			tooMuch = tooMuch || len(d.String()) > maxDimText
		}
		if products *= terms; products > maxProducts {
			tooMuch = true
			break
		}
	}
	if tooMuch {
		ir.Fail(diag.Errorf(diag.ONNXLimit, n.place, "the shape of a result of %s is beyond what weft handles", n.p.opType).
			Suggest("simplify the model's shapes"))
	}
	if tooLarge(t) {
		n.wrong("the result would have the size %s", t)
	}
}

// wants tells whether output i is asked for.
func (n *node) wants(i int) bool { return i < len(n.p.outputs) && n.p.outputs[i] != "" }

// setSequence gives output i as a sequence.
func (n *node) setSequence(s *sequence) { n.outs = append(n.outs, &value{v: ir.NoValue, sequence: s}) }

// readAttributes collects the node's attributes; in a function, those that refer to the
// call's are looked up there.
func (n *node) readAttributes() {
	n.attrs = map[string]*attributeProto{}
	for _, a := range n.p.attributes {
		if n.attrs[a.name] != nil {
			ir.Fail(diag.Errorf(diag.ONNXAttribute, n.place, "attribute %q of %s is given twice", a.name, n.p.opType).Suggest("export the model again"))
		}
		if a.ref != "" {
			given := n.s.call[a.ref]
			if given == nil {
				continue
			}
			renamed := *given
			renamed.name = a.name
			a = &renamed
		}
		n.attrs[a.name] = a
	}
}

// attr finds an attribute and checks its type; nil when it is not given.
func (n *node) attr(name string, want attributeType) *attributeProto {
	a := n.attrs[name]
	if a == nil {
		return nil
	}
	kind := a.kind
	if kind == attrUndefined { // files of IR version 1 leave it out
		kind = guessType(a)
	}
	missing := want == attrTensor && a.t == nil || want == attrGraph && a.g == nil || want == attrSparse && a.sparse == nil
	if missing {
		kind = attrUndefined
	}
	if kind != want {
		ir.Fail(diag.Errorf(diag.ONNXAttribute, n.place, "attribute %q of %s is %s, not %s", name, n.p.opType, kind, want).
			Suggest("export the model again"))
	}
	return a
}

func guessType(a *attributeProto) attributeType {
	switch {
	case a.t != nil:
		return attrTensor
	case a.g != nil:
		return attrGraph
	case a.ints != nil:
		return attrInts
	case a.floats != nil:
		return attrFloats
	case a.strings != nil:
		return attrStrings
	case a.s != nil:
		return attrString
	case a.f != 0:
		return attrFloat
	}
	return attrInt
}

func (n *node) missingAttribute(name string) {
	ir.Fail(diag.Errorf(diag.ONNXAttribute, n.place, "%s has no attribute %q", n.p.opType, name).Suggest("export the model again"))
}

func (n *node) hasAttr(name string) bool { return n.attrs[name] != nil }

func (n *node) int(name string, absent int64) int64 {
	if a := n.attr(name, attrInt); a != nil {
		return a.i
	}
	return absent
}

func (n *node) flag(name string, absent bool) bool {
	if a := n.attr(name, attrInt); a != nil {
		return a.i != 0
	}
	return absent
}

func (n *node) float(name string, absent float64) float64 {
	if a := n.attr(name, attrFloat); a != nil {
		return float64(a.f)
	}
	return absent
}

func (n *node) str(name, absent string) string {
	if a := n.attr(name, attrString); a != nil {
		return string(a.s)
	}
	return absent
}

// choice is a string attribute that must be one of several.
func (n *node) choice(name, absent string, of ...string) string {
	s := n.str(name, absent)
	if !slices.Contains(of, s) {
		ir.Fail(diag.Errorf(diag.ONNXAttribute, n.place, "attribute %q of %s is %q; it must be one of %q", name, n.p.opType, s, of).
			Suggest("export the model again"))
	}
	return s
}

// ints is an attribute of integers, nil when it is not given.
func (n *node) ints(name string) []int64 {
	if a := n.attr(name, attrInts); a != nil {
		return append([]int64{}, a.ints...)
	}
	return nil
}

// intsOr is an attribute of k integers, all of one value when it is not given.
func (n *node) intsOr(name string, k int, absent int64) []int64 {
	list := n.ints(name)
	if list == nil {
		return slices.Repeat([]int64{absent}, k)
	}
	if len(list) != k {
		ir.Fail(diag.Errorf(diag.ONNXAttribute, n.place, "attribute %q of %s has %d numbers, not %d", name, n.p.opType, len(list), k).
			Suggest("export the model again"))
	}
	return list
}

func (n *node) floats(name string) []float64 {
	a := n.attr(name, attrFloats)
	if a == nil {
		return nil
	}
	list := make([]float64, len(a.floats))
	for i, f := range a.floats {
		list[i] = float64(f)
	}
	return list
}

func (n *node) strings(name string) []string {
	a := n.attr(name, attrStrings)
	if a == nil {
		return nil
	}
	list := make([]string, len(a.strings))
	for i, s := range a.strings {
		list[i] = string(s)
	}
	return list
}

// dtypeAttr is an attribute that names an element type.
func (n *node) dtypeAttr(name string, absent ir.DType) ir.DType {
	a := n.attr(name, attrInt)
	if a == nil {
		return absent
	}
	t, d := elementType(int32(min(a.i, 1<<20)), n.place)
	if d != nil {
		ir.Fail(d)
	}
	return t
}

// axis makes an axis of a number that may count from the end.
func (n *node) axis(v int64, rank int) int {
	if v < -int64(rank) || v >= int64(rank) {
		n.wrong("axis %d of %d dims", v, rank)
	}
	if v < 0 {
		v += int64(rank)
	}
	return int(v)
}

// axes makes distinct axes, ascending.
func (n *node) axes(list []int64, rank int) []int {
	out := make([]int, len(list))
	for i, v := range list {
		out[i] = n.axis(v, rank)
	}
	slices.Sort(out)
	if len(slices.Compact(slices.Clone(out))) != len(out) {
		n.wrong("axes %v repeat", list)
	}
	return out
}

// dims is the known contents of an integer input, for shapes.
func (n *node) dims(i int, what string) []ir.Dim {
	v := n.in(i)
	if !n.b.DType(v).IsInteger() && n.b.DType(v) != ir.Bool {
		n.wrong("%s is %s, not integers", what, n.b.Type(v))
	}
	d, ok := n.known.Dims(v)
	if !ok {
		n.dataDependent("%s (input %q) is not known before the model runs", what, n.p.inputs[i])
	}
	return d
}

// constInts is the known contents of an integer input without symbols.
func (n *node) constInts(i int, what string) []int64 {
	dims := n.dims(i, what)
	out := make([]int64, len(dims))
	for j, d := range dims {
		c, ok := d.IsConst()
		if !ok {
			n.dataDependent("%s (input %q) is %s, not constant", what, n.p.inputs[i], d)
		}
		out[j] = c
	}
	return out
}

// constFloats is the known contents of a real input without symbols.
func (n *node) constFloats(i int, what string) []float64 {
	f, ok := n.known.Floats(n.in(i))
	if !ok {
		n.dataDependent("%s (input %q) is not known before the model runs", what, n.p.inputs[i])
	}
	return f
}

// axesOr is the list of axes of an operator that took it as an attribute before version
// `since` and takes it as input i from then on; nil when it is not given.
func (n *node) axesOr(since int64, i int) []int64 {
	if n.version < since {
		return n.ints("axes")
	}
	if !n.has(i) {
		return nil
	}
	return n.constInts(i, "axes")
}

// scalarIn is input i as a tensor of rank 0.
func (n *node) scalarIn(i int) ir.Value {
	v := n.in(i)
	if c, ok := n.b.Type(v).Numel().IsConst(); ok && c != 1 {
		n.wrong("input %d is %s, not a scalar", i, n.b.Type(v))
	}
	return n.b.Reshape(v, nil)
}

// broadcast brings values to one shape. Dims that are not seen to be equal are unified.
func (n *node) broadcast(xs ...ir.Value) []ir.Value {
	n.unifyAligned(xs...)
	return lower.Broadcast(n.b, xs...)
}

// unifyAligned takes dims that broadcasting aligns to be equal.
func (n *node) unifyAligned(xs ...ir.Value) {
	var aligned []ir.Dim // from the last dim
	for _, x := range xs {
		shape := n.b.Shape(x)
		for i := range shape {
			d := shape[len(shape)-1-i]
			if i >= len(aligned) {
				aligned = append(aligned, d)
				continue
			}
			n.unifyBroadcast(aligned[i], d)
			if aligned[i].Is(1) {
				aligned[i] = d
			}
		}
	}
}

// unifyBroadcast takes two dims that broadcasting aligns to be equal, unless one is 1.
func (n *node) unifyBroadcast(a, b ir.Dim) {
	if !a.Is(1) && !b.Is(1) {
		n.unifyDims(a, b)
	}
}

// unifyDims takes two dims to be equal. Different constants are left to who combines them.
func (n *node) unifyDims(a, b ir.Dim) {
	_, c1 := a.IsConst()
	_, c2 := b.IsConst()
	if !a.Equal(b) && !(c1 && c2) {
		n.unify(a, b, n.place)
	}
}

// sameDims states that x has a shape; a reshape says so where it is not seen to have it.
func (n *node) sameDims(x ir.Value, shape []ir.Dim) ir.Value {
	own := n.b.Shape(x)
	if len(own) != len(shape) {
		n.wrong("%s where the shape %s is needed", n.b.Type(x), ir.DimList(shape))
	}
	for i := range own {
		n.unifyDims(own[i], shape[i])
	}
	return n.b.Reshape(x, shape)
}

// binary broadcasts two operands and combines them.
func (n *node) binary(kind ir.Kind, x, y ir.Value) ir.Value {
	xs := n.broadcast(x, y)
	return n.b.Binary(kind, xs[0], xs[1])
}

// rankAtLeast checks a rank.
func (n *node) rankAtLeast(x ir.Value, rank int) {
	if n.b.Rank(x) < rank {
		n.wrong("an input is %s; it needs at least %d dims", n.b.Type(x), rank)
	}
}

// rankIs checks a rank.
func (n *node) rankIs(x ir.Value, rank int) {
	if n.b.Rank(x) != rank {
		n.wrong("an input is %s; it needs %d dims", n.b.Type(x), rank)
	}
}

// inline lowers a call of a function of the model by its body.
func (n *node) inline(f *functionProto) {
	key := functionKey{canonicalDomain(f.domain), f.name, f.overload}
	if slices.Contains(n.calls, key) {
		ir.Fail(diag.Errorf(diag.ONNXFunction, n.place, "function %s calls itself", f.name).Suggest("functions must not be recursive: export the model again"))
	}
	if len(n.p.inputs) > len(f.inputs) || len(n.p.outputs) > len(f.outputs) {
		ir.Fail(diag.Errorf(diag.ONNXFunction, n.place, "function %s takes %d inputs and gives %d outputs; the call has %d and %d",
			f.name, len(f.inputs), len(f.outputs), len(n.p.inputs), len(n.p.outputs)).Suggest("export the model again"))
	}
	s := &scope{b: n.b, values: map[string]*value{}, opsets: map[string]int64{}, call: map[string]*attributeProto{},
		prefix: n.place + "/", nesting: n.s.nesting + 1}
	for d, v := range n.s.opsets {
		s.opsets[d] = v
	}
	for _, o := range f.opsets {
		s.opsets[canonicalDomain(o.domain)] = o.version
	}
	for _, a := range f.defaults {
		s.call[a.name] = a
	}
	for name, a := range n.attrs {
		s.call[name] = a
	}
	for i, name := range f.inputs {
		if x := n.input(i); x != nil {
			s.values[name] = n.shared(x)
		}
	}
	// An input that the call leaves out is an empty name in the body.
	body := make([]*nodeProto, len(f.nodes))
	for i, p := range f.nodes {
		body[i] = p
		if slices.ContainsFunc(p.inputs, func(name string) bool { return omitted(f, s, name) }) {
			c := *p
			c.inputs = slices.Clone(p.inputs)
			for j, name := range c.inputs {
				if omitted(f, s, name) {
					c.inputs[j] = ""
				}
			}
			body[i] = &c
		}
	}
	n.calls = append(n.calls, key)
	loc := n.b.Loc
	n.nodes(s, body, f.outputs)
	n.b.Loc = loc
	n.calls = n.calls[:len(n.calls)-1]
	for i := range n.p.outputs {
		x := s.find(f.outputs[i])
		if x == nil {
			ir.Fail(diag.Errorf(diag.ONNXFunction, n.place, "function %s does not define its output %q", f.name, f.outputs[i]).Suggest("export the model again"))
		}
		n.outs = append(n.outs, n.shared(x))
	}
}

func omitted(f *functionProto, s *scope, name string) bool {
	return name != "" && s.values[name] == nil && slices.Contains(f.inputs, name)
}

// shared is a value that may get a second name: stored tensors are made values first, in the
// scope that owns them.
func (n *node) shared(x *value) *value {
	if x.stored != nil && x.v == ir.NoValue {
		n.tensor(n.s, x, n.place)
	}
	return x
}

// subgraph is an attribute that holds a graph.
func (n *node) subgraph(name string) *graphProto {
	a := n.attr(name, attrGraph)
	if a == nil {
		n.missingAttribute(name)
	}
	return a.g
}

// body walks a subgraph in a block, with its inputs bound, and gives its outputs.
func (n *node) body(g *graphProto, b *ir.Builder, inputs []*value, name string) []*value {
	s := n.s.inner(b, n.p.place()+"."+name)
	if len(inputs) > len(g.inputs) {
		n.wrong("subgraph %q takes %d inputs, not %d", name, len(g.inputs), len(inputs))
	}
	for i, x := range inputs {
		s.values[g.inputs[i].name] = x
	}
	n.initializers(s, g)
	loc := n.b.Loc
	n.nodes(s, g.nodes, outputNames(g))
	n.b.Loc, b.Loc = loc, loc
	outs := make([]*value, len(g.outputs))
	for i, o := range g.outputs {
		x := s.find(o.name)
		switch {
		case x == nil:
			ir.Fail(diag.Errorf(diag.ONNXGraph, s.prefix, "output %q of the subgraph is not defined", o.name).Suggest("export the model again"))
		case x.poison:
			ir.Fail(poisoned)
		case x.sequence == nil:
			n.tensor(s, x, n.place)
		}
		outs[i] = x
	}
	return outs
}
