package shard

import (
	"slices"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// Strategy says what the ranks along axes of a mesh do together.
type Strategy struct {
	Axes     []string
	Name     string // ddp, zero1, zero2, fsdp, hsdp, tp, ep
	Sequence bool   // tp+sp: what lies between the divided layers is divided along the sequence
}

var strategyNames = []string{"ddp", "zero1", "zero2", "fsdp", "hsdp", "tp", "tp+sp", "ep"}

// defaults are the strategies of axes that --parallel says nothing about, by name of the axis.
var defaults = map[string]string{"dp": "ddp", "ddp": "ddp", "fsdp": "fsdp", "tp": "tp", "ep": "ep"}

// ParseStrategies reads --parallel: "dp:fsdp,tp:tp+sp"; hsdp has two axes, "node+gpu:hsdp", of which
// the first repeats what the second divides.
func ParseStrategies(text string, m ir.Mesh) ([]Strategy, error) {
	var list []Strategy
	taken := map[string]bool{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		axes, name, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok || !slices.Contains(strategyNames, name) {
			d := diag.Errorf(diag.BadParallel, "", "%q is not an axis and its strategy", part)
			return nil, d.Suggest("write strategies as in dp:fsdp,tp:tp+sp; there are %s", strings.Join(strategyNames, ", "))
		}
		s := Strategy{Axes: strings.Split(axes, "+"), Name: name}
		s.Name, s.Sequence = strings.TrimSuffix(name, "+sp"), strings.HasSuffix(name, "+sp")
		if want := map[bool]int{true: 2, false: 1}[name == "hsdp"]; len(s.Axes) != want {
			return nil, diag.Errorf(diag.BadParallel, "", "strategy %s is over %d axes, it takes %d", name, len(s.Axes), want)
		}
		for _, axis := range s.Axes {
			if _, ok := m.Axis(axis); !ok {
				return nil, diag.Errorf(diag.BadParallel, "", "--parallel names axis %q, which the mesh %s does not have", axis, m)
			}
			if taken[axis] {
				return nil, diag.Errorf(diag.BadParallel, "", "axis %q has two strategies", axis)
			}
			taken[axis] = true
		}
		list = append(list, s)
	}
	for _, a := range m.Axes {
		if taken[a.Name] {
			continue
		}
		name, ok := defaults[a.Name]
		if !ok {
			return nil, diag.Errorf(diag.BadParallel, "", "axis %q has no strategy", a.Name).Suggest("give it one: --parallel %s:fsdp; there are %s", a.Name, strings.Join(strategyNames, ", "))
		}
		list = append(list, Strategy{Axes: []string{a.Name}, Name: name})
	}
	return list, nil
}

// batch tells whether the strategy divides the batch.
func (s Strategy) batch() bool { return s.Name != "tp" && s.Name != "ep" }

// batchAxes are the axes that divide the batch, in the order of the mesh.
func (pt *partitioner) batchAxes() []string {
	var axes []string
	for _, a := range pt.mesh.Axes {
		for _, s := range pt.options.Strategies {
			if s.batch() && slices.Contains(s.Axes, a.Name) {
				axes = append(axes, a.Name)
			}
		}
	}
	return axes
}

// storageAxes are the axes that divide what is stored of parameters beside what computation
// divides: fsdp and the second axis of hsdp.
func (pt *partitioner) storageAxes() []string {
	var axes []string
	for _, s := range pt.options.Strategies {
		switch s.Name {
		case "fsdp":
			axes = append(axes, s.Axes...)
		case "hsdp":
			axes = append(axes, s.Axes[1])
		}
	}
	return axes
}

// gradientAxes are the axes over which gradients are left divided.
func (pt *partitioner) gradientAxes() []string {
	axes := pt.storageAxes()
	for _, s := range pt.options.Strategies {
		if s.Name == "zero2" {
			axes = append(axes, s.Axes...)
		}
	}
	return axes
}

// decide divides the values of an entry.
func (a *analysis) decide() {
	a.fix()
	a.propagate()
	for _, s := range a.options.Strategies {
		switch s.Name {
		case "tp":
			a.tensorParallel(s)
		case "ep":
			a.expertParallel(s.Axes[0])
		}
	}
	a.store()
	a.gradients()
}

// fix divides inputs and states as rules and the batch strategies say.
func (a *analysis) fix() {
	batch := a.batchAxes()
	leading, found := ir.Dim{}, false
	for i, in := range a.e.Inputs {
		v, rules := a.e.Body.Params[i], a.options.Inputs
		if in.State != "" {
			a.shut[v] = func(axis string) bool { return slices.Contains(batch, axis) }
			rules = a.options.Parameters
		}
		if ruleFor(rules, inputNames(a.e, i)...) != nil {
			a.shut[v] = func(string) bool { return true }
		}
	}
	for i, in := range a.e.Inputs {
		v := a.e.Body.Params[i]
		shape := shapeOf(a.e, v)
		rules := a.options.Inputs
		if in.State != "" {
			rules = a.options.Parameters
		}
		if r := ruleFor(rules, inputNames(a.e, i)...); r != nil {
			a.byRuleOf(v, r.sharding(shape), in.State != "")
			continue
		}
		if in.State != "" || len(batch) == 0 || len(shape) == 0 {
			continue
		}
		if !found {
			leading, found = shape[0], true
		}
		if shape[0].Equal(leading) {
			a.divide(v, 0, []ir.Part{{Size: shape[0], Axes: batch}})
		}
	}
	for i, o := range a.e.Outputs {
		if o.State == "" {
			continue
		}
		if v := a.e.Body.Results[i]; a.shut[v] == nil {
			a.shut[v] = func(axis string) bool { return slices.Contains(batch, axis) }
		}
	}
}

// byRuleOf divides an input as the user asks. What follows from that for a parameter is carried on
// only where it pays: one weight that is stored in another way must not divide all layers.
func (a *analysis) byRuleOf(v ir.Value, s ir.Sharding, parameter bool) {
	if !parameter {
		a.set(v, s)
		return
	}
	a.propagate() // of the inputs before
	a.trial = nil
	a.set(v, s)
	a.propagate()
	for _, axis := range s.Axes() {
		if !a.pays(axis) {
			a.takeBack()
			a.want[v], a.mute[v] = s, true
			return
		}
	}
}

// store decides what each rank keeps of the states that the entry reads: what computation
// divides, divided further over the storage axes.
func (a *analysis) store() {
	extra := a.storageAxes()
	for i, in := range a.e.Inputs {
		if in.State == "" || a.stored[in.State] != nil {
			continue
		}
		v := a.e.Body.Params[i]
		s := a.of(v)
		kind := a.program.State(in.State).Kind
		if kind == ir.Parameter && ruleFor(a.options.Parameters, in.State) == nil {
			s = a.divideMore(s, extra)
		}
		a.stored[in.State] = s
	}
}

// divideMore divides a tensor over further axes: along its first dim that they divide evenly and
// nothing divides yet, else along the largest.
func (a *analysis) divideMore(s ir.Sharding, axes []string) ir.Sharding {
	if len(axes) == 0 {
		return s
	}
	best := -1
	for d, parts := range s {
		if divided(parts) || parts[0].Size.Is(1) {
			continue
		}
		if a.even(ir.Part{Size: parts[0].Size, Axes: axes}) {
			best = d
			break
		}
		if best < 0 || larger(parts[0].Size, s[best][0].Size) {
			best = d
		}
	}
	if best < 0 {
		return s
	}
	out := slices.Clone(s)
	out[best] = []ir.Part{{Size: s[best][0].Size, Axes: axes}}
	return out
}

func larger(x, y ir.Dim) bool {
	a, ok := x.IsConst()
	b, both := y.IsConst()
	return ok && both && a > b
}

// gradients lets the outputs that are gradients of parameters be divided as their parameters are
// stored, where the strategy leaves them so.
func (a *analysis) gradients() {
	axes := a.gradientAxes()
	for i, o := range a.e.Outputs {
		v := a.e.Body.Results[i]
		if o.Gradient == "" {
			continue
		}
		s := a.computed(o.Gradient, shapeOf(a.e, v))
		if slices.EqualFunc(s.Global(), shapeOf(a.e, v), ir.Dim.Equal) {
			a.want[v] = a.divideMore(s, axes)
		}
	}
}

// computed is how computation divides a state.
func (a *analysis) computed(state string, shape []ir.Dim) ir.Sharding {
	for i, in := range a.e.Inputs {
		if in.State == state {
			return a.of(a.e.Body.Params[i])
		}
	}
	return ir.Replicated(shape)
}

// tensorParallel divides layers over an axis: attention by heads, products with parameters by
// what they make (column) and then by what they sum over (row).
func (a *analysis) tensorParallel(s Strategy) {
	axis := s.Axes[0]
	for _, op := range a.e.Body.Ops {
		a.divideHeads(op, axis)
	}
	a.propagate()
	var rows []*ir.Op
	for _, op := range a.e.Body.Ops {
		if !a.productOfParameter(op) {
			continue
		}
		r := ruleOf(a.e, op)
		if !a.uses(op, axis) {
			a.trial = nil
			a.column(op, r, axis)
			a.propagate()
			if n := a.reductions(axis); n > fewReductions || a.narrows(op) && (n > 0 || a.gathers()) {
				a.takeBack()
			}
		}
		if a.sums(op, r, axis) {
			rows = append(rows, op)
		}
	}
	if !s.Sequence {
		return
	}
	for _, op := range rows {
		if a.sideBySide(op) {
			continue
		}
		v := a.sequenced(op.Results[0])
		if rank := a.e.Type(v).Rank(); rank >= 2 && op.Kind == ir.OpDotGeneral {
			d := rank - 2
			n := shapeOf(a.e, v)[d]
			if size, ok := n.IsConst(); ok && size < a.mesh.Extent(s.Axes) {
				continue // some ranks would have nothing
			}
			a.divide(v, d, []ir.Part{{Size: n, Axes: []string{axis}}})
			a.propagate()
		}
	}
}

// sideBySide tells whether the last dim but one of a product is of the parameter, as that of experts.
func (a *analysis) sideBySide(op *ir.Op) bool {
	r := ruleOf(a.e, op)
	w := 1
	if a.parameter(op.Operands[0]) {
		w = 0
	}
	n := len(r.results[0])
	return n >= 3 && slices.Contains(r.operands[w], r.results[0][n-2])
}

// sequenced follows a product of tokens and features to where batch and sequence are dims of their
// own.
func (a *analysis) sequenced(v ir.Value) ir.Value {
	for w := v; ; {
		if a.e.Type(w).Rank() >= 3 {
			return w
		}
		users := a.users[w]
		if len(users) != 1 || users[0].Kind != ir.OpReshape && users[0].Kind != ir.OpAdd && users[0].Kind != ir.OpConvert {
			return v
		}
		w = users[0].Results[0]
	}
}

// fewReductions is how many reductions along divided features a choice may bring: those of a norm
// inside a layer, or of a softmax and a loss at the end of a model. More means that what runs
// through all layers would be divided, with an exchange in each norm.
const fewReductions = 4

// pays tells whether the divisions since the last choice are worth their exchanges.
func (a *analysis) pays(axis string) bool { return a.reductions(axis) <= fewReductions }

// reductions counts those along what the divisions since the last choice divide.
func (a *analysis) reductions(axis string) int {
	seen := map[*ir.Op]bool{}
	reductions := 0
	for _, c := range a.trial {
		for _, op := range a.users[c.v] {
			if seen[op] || op.Kind.Info().Class != ir.ClassReduction {
				continue
			}
			seen[op] = true
			if r := ruleOf(a.e, op); r != nil && a.sums(op, r, axis) {
				reductions++
			}
		}
	}
	return reductions
}

// narrows tells whether a product makes fewer features than it sums over, as the router of experts does.
func (a *analysis) narrows(op *ir.Op) bool {
	at, ok := op.Attrs.(*ir.DotAttrs)
	if !ok {
		return false
	}
	weight, contract := shapeOf(a.e, op.Operands[1]), at.RhsContract
	if a.parameter(op.Operands[0]) {
		weight, contract = shapeOf(a.e, op.Operands[0]), at.LhsContract
	}
	makes, sums := ir.Const(1), ir.Const(1)
	for d, n := range weight {
		if slices.Contains(contract, d) {
			sums = sums.Mul(n)
		} else {
			makes = makes.Mul(n)
		}
	}
	return larger(sums, makes)
}

// gathers tells whether the divisions since the last choice are of dims that an operation needs whole,
// as a sort does.
func (a *analysis) gathers() bool {
	for _, c := range a.trial {
		for _, op := range a.users[c.v] {
			if at := slices.Index(op.Operands, c.v); at < 0 || a.gathersFor(op, at) {
				return true
			}
		}
	}
	return false
}

// gathersFor tells whether an operation needs a divided dim of an operand whole.
func (a *analysis) gathersFor(op *ir.Op, at int) bool {
	have := a.of(op.Operands[at])
	if m, ok := moves[op.Kind]; ok {
		needs, _ := m.operands(a.partitioner, a.e, op, a.of(op.Results[0]))
		return slices.ContainsFunc(have.Axes(), func(axis string) bool { return !slices.Contains(needs[at].Axes(), axis) })
	}
	r := ruleOf(a.e, op)
	if r == nil {
		return divided(slices.Concat(have...))
	}
	if op.Kind == ir.OpGather && at == 0 {
		return false // rows are looked up where they are
	}
	for d, f := range r.operands[at] {
		if !divided(have[d]) {
			continue
		}
		if f == fixed {
			return true
		}
		// Where the axis divides another dim of the result, as heads that share a value do.
		if to := slices.Index(r.results[0], f); to >= 0 && !divided(a.of(op.Results[0])[to]) {
			return true
		}
	}
	return false
}

// takeBack undoes the divisions since the last choice.
func (a *analysis) takeBack() {
	for _, c := range slices.Backward(a.trial) {
		if c.old == nil {
			delete(a.want, c.v)
		} else {
			a.want[c.v] = c.old
		}
	}
	a.trial = nil
}

// parameter tells whether a value is a parameter, seen through operations of one operand and
// moves.
func (a *analysis) parameter(v ir.Value) bool {
	for {
		op := a.def[v]
		if op == nil {
			i := slices.Index(a.e.Body.Params, v)
			return i >= 0 && a.e.Inputs[i].State != "" && a.program.State(a.e.Inputs[i].State).Kind == ir.Parameter
		}
		if c := op.Kind.Info().Class; len(op.Operands) == 0 || c != ir.ClassIndex && op.Kind != ir.OpConvert {
			return false
		}
		v = op.Operands[0]
	}
}

// productOfParameter tells whether an operation multiplies an activation by a parameter.
func (a *analysis) productOfParameter(op *ir.Op) bool {
	if op.Kind != ir.OpDotGeneral && op.Kind != ir.OpConvolution {
		return false
	}
	return a.parameter(op.Operands[0]) != a.parameter(op.Operands[1])
}

// uses tells whether an axis divides an operand or the result.
func (a *analysis) uses(op *ir.Op, axis string) bool {
	return slices.ContainsFunc(slices.Concat(op.Operands, op.Results), func(v ir.Value) bool {
		return slices.Contains(a.of(v).Axes(), axis)
	})
}

// sums tells whether an axis divides what an operation sums over, in all operands.
func (a *analysis) sums(op *ir.Op, r *rule, axis string) bool {
	divides := map[int]bool{}
	for i, v := range op.Operands {
		for d, f := range r.operands[i] {
			if f < 0 || slices.Contains(r.results[0], f) {
				continue
			}
			here := slices.Contains(axesOf(a.of(v)[d]), axis)
			if all, known := divides[f]; known {
				here = here && all
			}
			divides[f] = here
		}
	}
	for _, all := range divides {
		if all {
			return true
		}
	}
	return false
}

// column divides what a product with a parameter makes. Where the result is cut into equal
// stretches, as projections side by side are, each is divided.
func (a *analysis) column(op *ir.Op, r *rule, axis string) {
	w := 1
	if a.parameter(op.Operands[0]) {
		w = 0
	}
	out := op.Results[0]
	for d, f := range slices.Backward(r.results[0]) { // features are after experts
		if f < 0 || !slices.Contains(r.operands[w], f) || slices.Contains(r.operands[1-w], f) {
			continue
		}
		n, ranks := shapeOf(a.e, out)[d], a.mesh.Extent([]string{axis})
		fewer := func(x ir.Dim) bool { size, ok := x.IsConst(); return ok && size < ranks }
		if fewer(n) {
			continue
		}
		size := a.stretch(out, d)
		if fewer(size) { // each channel alone, as a gradient has them
			size = n
		}
		count, ok := n.DivExact(size)
		if !ok {
			panic("BUG: stretches do not divide the dim")
		}
		if a.divide(out, d, a.blocks(count, []ir.Part{{Size: size, Axes: []string{axis}}})) {
			return
		}
	}
}

// stretch is the size of the equal stretches into which the users of a value cut a dim, at once or after
// elementwise operations, transposes, reshapes that keep it, and reductions along others; all of it where they do not, or in
// different ways.
func (a *analysis) stretch(v ir.Value, d int) ir.Dim { return a.stretchWithin(v, d, farStretch) }

// farStretch is how many operations may come between a product and what cuts it.
const farStretch = 4

func (a *analysis) stretchWithin(v ir.Value, d, hops int) ir.Dim {
	n := shapeOf(a.e, v)[d]
	found := n
	for _, op := range a.users[v] {
		at, size := d, n
		switch {
		case op.Kind == ir.OpSlice:
			keeps, part := cutOf(a.e, op).stretch(d)
			if !keeps && part.Is(0) {
				return n
			} else if !keeps {
				size = part
			}
		case op.Kind == ir.OpReshape:
			if at = kept(shapeOf(a.e, v), d, shapeOf(a.e, op.Results[0])); at < 0 {
				continue
			}
		case op.Kind == ir.OpTranspose:
			at = slices.Index(op.Attrs.(*ir.TransposeAttrs).Permutation, d)
		case op.Kind == ir.OpReduce:
			axes := op.Attrs.(*ir.ReduceAttrs).Axes
			if slices.Contains(axes, d) {
				continue
			}
			for _, axis := range axes {
				if axis < d {
					at--
				}
			}
		case op.Kind.Info().Class != ir.ClassElementwise:
			continue
		}
		if op.Kind != ir.OpSlice && hops > 0 {
			size = a.stretchWithin(op.Results[0], at, hops-1)
		}
		if !size.Equal(n) && !found.Equal(n) && !size.Equal(found) {
			return n
		}
		if !size.Equal(n) {
			found = size
		}
	}
	return found
}

// kept is where a reshape has dim d of what it reshapes; -1 where it is joined with others or cut.
func kept(from []ir.Dim, d int, to []ir.Dim) int {
	after, rest := ir.Const(1), ir.Const(1)
	for _, n := range from[d+1:] {
		after = after.Mul(n)
	}
	for at, n := range slices.Backward(to) {
		if rest.Equal(after) && n.Equal(from[d]) {
			return at
		}
		rest = rest.Mul(n)
	}
	return -1
}

// expertParallel divides the parameters that hold all experts side by side along the first of
// three dims.
func (a *analysis) expertParallel(axis string) {
	for i, in := range a.e.Inputs {
		v := a.e.Body.Params[i]
		if in.State != "" && strings.Contains(in.State, "experts") && a.e.Type(v).Rank() == 3 {
			a.divide(v, 0, []ir.Part{{Size: shapeOf(a.e, v)[0], Axes: []string{axis}}})
		}
	}
	a.propagate()
}
