package precision

import (
	"slices"

	"weft/ir"
	"weft/ir/diag"
)

// Names of the states and of the output that ScaleLoss adds.
const (
	ScaleState    = "loss_scale"          // f32[]: what gradients are multiplied by while they are computed
	GoodState     = "loss_scale.good"     // i32[]: steps since the scale changed last
	OverflowState = "loss_scale.overflow" // output, i1[]: a gradient was infinite or NaN, and the step is skipped
)

// LossScaling says how a training step scales its loss: the gradients of a program in float16
// would else be lost where they are below 6e-8. The scale grows by Growth after Interval steps in
// which all gradients were finite, and shrinks by Backoff after one in which some were not.
type LossScaling struct {
	Entry     string   // with the gradients
	Loss      string   // the output that they are derivatives of
	Gradients []string // outputs; without any, those that the program says are gradients
	Growth    float64  // 2 where it is 0
	Backoff   float64  // 0.5 where it is 0
	Interval  int64    // 2000 where it is 0
}

// InitialScale is a first value for ScaleState, as frameworks have it; that of GoodState is 0.
const InitialScale = 65536

// ScaleLoss makes an entry that computes gradients do so with a scaled loss. The gradients come out
// divided by the scale, in the type that they had. What updates states by them is skipped where one
// of them is not finite on any rank: the states keep their values. Two states are added, and the
// output OverflowState for what happens outside.
//
// Gradients are linear in the derivative of the loss, which the program may have folded away. So
// the scale goes in where the chain of linear operations that ends in the gradients begins: this
// needs nothing from who made the program. It runs on a program as imported, before the passes.
func ScaleLoss(p *ir.Program, o LossScaling) error {
	e := p.Entry(o.Entry)
	if e == nil {
		return diag.Errorf(diag.UnknownName, "", "there is no entry %q", o.Entry)
	}
	if o.Growth == 0 {
		o.Growth = 2
	}
	if o.Backoff == 0 {
		o.Backoff = 0.5
	}
	if o.Interval == 0 {
		o.Interval = 2000
	}
	for _, state := range []string{ScaleState, GoodState} {
		if p.State(state) != nil {
			return diag.Errorf(diag.BadPrecision, "", "the program has a state %q already", state)
		}
	}
	s := &scaler{program: p, entry: e, options: o, scaled: map[ir.Value]ir.Value{}, unscaled: map[ir.Value]ir.Value{},
		backward: map[ir.Value]int{}, needed: map[ir.Value]bool{}, chain: map[ir.Value]bool{}, gradients: map[ir.Value]bool{}}
	loss, err := s.output(o.Loss)
	if err != nil {
		return err
	}
	for _, out := range e.Outputs {
		if out.Gradient != "" && len(o.Gradients) == 0 {
			i, _ := s.output(out.Name)
			s.gradients[e.Body.Results[i]] = true
		}
	}
	for _, name := range o.Gradients {
		i, err := s.output(name)
		if err != nil {
			return err
		}
		s.gradients[e.Body.Results[i]] = true
	}
	if len(s.gradients) == 0 {
		return diag.Errorf(diag.BadPrecision, "", "entry %q has no gradients to scale", o.Entry)
	}
	return ir.Try(func() { s.run(e.Body.Results[loss]) })
}

type scaler struct {
	program   *ir.Program
	entry     *ir.Entry
	options   LossScaling
	gradients map[ir.Value]bool
	backward  map[ir.Value]int      // how many operations stand between a value and the forward pass; 0: belongs to it
	needed    map[ir.Value]bool     // values that are to be had scaled
	chain     map[ir.Value]bool     // those of them that are linear in others
	scaled    map[ir.Value]ir.Value // the value times the scale
	unscaled  map[ir.Value]ir.Value // gradients divided by the scale again
	scale     ir.Value
	good      ir.Value
	infinite  [2][]ir.Value // for each gradient, how many elements are not finite, i64[]: vectors, others
	builder   *ir.Builder
}

// output finds an output of the entry.
func (s *scaler) output(name string) (int, error) {
	i := slices.IndexFunc(s.entry.Outputs, func(o ir.Output) bool { return o.Name == name })
	if i >= 0 {
		return i, nil
	}
	var names []string
	for _, o := range s.entry.Outputs {
		names = append(names, o.Name)
	}
	d := diag.Errorf(diag.UnknownName, "", "entry %q has no output %q", s.entry.Name, name)
	for _, near := range diag.Nearest(name, names, 3) {
		d.Suggest("did you mean %s?", near)
	}
	return 0, d
}

func (s *scaler) run(loss ir.Value) {
	e := s.entry
	s.depths(loss)
	for _, op := range slices.Backward(e.Body.Ops) {
		s.need(op)
	}
	f32, i32 := ir.Scalar(ir.F32), ir.Scalar(ir.I32)
	s.program.States = append(s.program.States, ir.State{Name: ScaleState, Type: f32, Kind: ir.Buffer},
		ir.State{Name: GoodState, Type: i32, Kind: ir.Buffer})
	s.scale, s.good = e.AddStateInput(ScaleState, f32), e.AddStateInput(GoodState, i32)
	ops := e.Body.Ops
	e.Body.Ops = nil
	s.builder = ir.NewBuilder(s.program, e)
	depends := map[ir.Value]bool{} // on gradients
	for _, v := range e.Body.Params {
		s.define(nil, v)
	}
	for _, op := range ops {
		s.operation(op, depends)
	}
	s.finish(depends)
	e.Body.DropDead()
}

// depths finds what belongs to the forward pass (the loss depends on it), and how far the other
// values are from it.
func (s *scaler) depths(loss ir.Value) {
	forward := map[ir.Value]bool{loss: true}
	for _, op := range slices.Backward(s.entry.Body.Ops) {
		if slices.ContainsFunc(op.Results, func(v ir.Value) bool { return forward[v] }) {
			for _, v := range op.Operands {
				forward[v] = true
			}
			for _, r := range op.Regions {
				r.Uses(func(v *ir.Value) { forward[*v] = true })
			}
		}
	}
	delete(forward, loss)
	for _, op := range s.entry.Body.Ops {
		depth := 1
		for _, v := range op.Operands {
			depth = max(depth, s.backward[v]+1)
		}
		for _, v := range op.Results {
			if !forward[v] {
				s.backward[v] = depth
			}
		}
	}
	for v := range s.gradients {
		s.needed[v] = true
	}
}

// need notes which operands of an operation are to be scaled so that its result is.
func (s *scaler) need(op *ir.Op) {
	if len(op.Results) != 1 || !s.needed[op.Results[0]] {
		return
	}
	operands := s.linear(op)
	s.chain[op.Results[0]] = len(operands) > 0
	for _, i := range operands {
		s.needed[op.Operands[i]] = true
	}
}

// linear lists the operands whose scaling together scales the result of an operation; none where
// there are no such: the result itself is then multiplied. Where one factor of several is enough,
// it is the one that is farther from the forward pass.
func (s *scaler) linear(op *ir.Op) []int {
	if s.backward[op.Results[0]] == 0 {
		return nil // of the forward pass
	}
	all := make([]int, len(op.Operands))
	for i := range all {
		all[i] = i
	}
	switch op.Kind {
	case ir.OpNegate, ir.OpReshape, ir.OpBroadcastInDim, ir.OpTranspose, ir.OpSlice, ir.OpReverse, ir.OpDynamicSlice, ir.OpGather, ir.OpDivide,
		ir.OpAllGather, ir.OpAllToAll, ir.OpCollectivePermute:
		return all[:1]
	case ir.OpConvert:
		if s.entry.Type(op.Operands[0]).DType.IsFloat() {
			return all
		}
	case ir.OpAdd, ir.OpSubtract, ir.OpConcatenate, ir.OpPad:
		return all
	case ir.OpSelect:
		return all[1:]
	case ir.OpDynamicUpdateSlice:
		return all[:2]
	case ir.OpScatter:
		if c := op.Attrs.(*ir.ScatterAttrs).Combine; c == ir.Sum || c == ir.Assign {
			return []int{0, 2}
		}
	case ir.OpReduce, ir.OpCumulative, ir.OpReduceWindow, ir.OpAllReduce, ir.OpReduceScatter:
		if adds(op.Attrs) {
			return all
		}
	case ir.OpMultiply, ir.OpDotGeneral, ir.OpConvolution:
		a, b := s.backward[op.Operands[0]], s.backward[op.Operands[1]]
		switch {
		case op.Operands[0] == op.Operands[1] || max(a, b) == 0:
			return nil
		case a >= b:
			return all[:1]
		}
		return all[1:]
	}
	return nil
}

func adds(attrs ir.Attrs) bool {
	switch a := attrs.(type) {
	case *ir.ReduceAttrs:
		return a.Combine == ir.Sum
	case *ir.CumulativeAttrs:
		return a.Combine == ir.Sum
	case *ir.ReduceWindowAttrs:
		return a.Combine == ir.Sum
	case *ir.CollectiveAttrs:
		return a.Combine == ir.Sum
	}
	return false
}

// operation keeps an operation and adds the scaled one where it is needed. What reads a gradient, or a
// value on the way to it, without being on that way, reads it divided by the scale.
func (s *scaler) operation(op *ir.Op, depends map[ir.Value]bool) {
	b := s.builder
	b.Loc = op.Loc
	original := &ir.Op{Kind: op.Kind, Operands: slices.Clone(op.Operands), Results: op.Results, Attrs: op.Attrs, Loc: op.Loc}
	later := slices.ContainsFunc(op.Results, func(v ir.Value) bool { return s.chain[v] || s.gradients[v] })
	if !later {
		use := func(v *ir.Value) {
			later = later || depends[*v]
			*v = s.divided(*v)
		}
		for i := range op.Operands {
			use(&op.Operands[i])
		}
		for _, r := range op.Regions {
			r.Uses(use)
		}
	}
	b.Block.Ops = append(b.Block.Ops, op)
	for _, v := range op.Results {
		depends[v] = later
		s.define(original, v)
	}
}

// divided gives a value of the chain that ends in the gradients divided by the scale, others as they are.
func (s *scaler) divided(v ir.Value) ir.Value {
	if w, ok := s.unscaled[v]; ok {
		return w
	}
	if !s.chain[v] || s.scaled[v] == v {
		return v
	}
	b := s.builder
	s.unscaled[v] = s.times(s.scaled[v], b.Binary(ir.OpDivide, b.Scalar(ir.F32, 1), s.scale))
	return s.unscaled[v]
}

// define makes the scaled form of a value where it is needed; op, nil for parameters, is what makes
// the value.
func (s *scaler) define(op *ir.Op, v ir.Value) {
	if !s.needed[v] {
		return
	}
	b := s.builder
	switch {
	case op != nil && s.zero(op):
		s.scaled[v] = v
	case op != nil && len(s.linear(op)) > 0:
		operands := slices.Clone(op.Operands)
		for _, i := range s.linear(op) {
			operands[i] = s.scaled[operands[i]]
		}
		s.scaled[v] = b.Op(op.Kind, op.Attrs, nil, operands...)[0]
	default:
		s.scaled[v] = s.times(v, s.scale)
	}
	if s.gradients[v] {
		s.gradient(v)
	}
}

// zero tells whether an operation is the constant 0, which stays what it is.
func (s *scaler) zero(op *ir.Op) bool {
	a, ok := op.Attrs.(*ir.ConstantAttrs)
	if !ok {
		return false
	}
	for i := range a.Value.Numel() {
		if a.Value.Float(i) != 0 {
			return false
		}
	}
	return true
}

// times multiplies a float by a float32 scalar, in float32 or wider, and rounds once.
func (s *scaler) times(v, factor ir.Value) ir.Value {
	b := s.builder
	t := b.Type(v)
	if !t.DType.IsFloat() {
		ir.Fail(diag.Errorf(diag.BadPrecision, b.Loc, "a gradient of type %s cannot be scaled", t))
	}
	wide := ir.F32
	if t.DType == ir.F64 {
		wide = ir.F64
	}
	product := b.Binary(ir.OpMultiply, b.Convert(v, wide), b.Broadcast(b.Convert(factor, wide), t.Shape, nil))
	return b.Convert(product, t.DType)
}

// gradient divides a gradient by the scale again, and looks for infinities and NaN before.
func (s *scaler) gradient(v ir.Value) {
	b := s.builder
	g := s.scaled[v]
	if !b.DType(g).IsFloat() {
		ir.Fail(diag.Errorf(diag.BadPrecision, b.Loc, "a gradient of type %s cannot be scaled", b.Type(g)))
	}
	s.divided(v)
	count := b.Convert(b.Unary(ir.OpNot, b.Unary(ir.OpIsFinite, g)), ir.I64)
	if rank := b.Rank(count); rank > 0 {
		axes := make([]int, rank)
		for i := range axes {
			axes[i] = i
		}
		count = b.Reduce(ir.Sum, count, axes...)
	}
	kind := 0
	if b.Rank(g) > 1 {
		kind = 1
	}
	s.infinite[kind] = append(s.infinite[kind], count)
}

// finish adds what a step does with the gradients: it is skipped where one is not finite, and the
// scale changes.
func (s *scaler) finish(depends map[ir.Value]bool) {
	e, b := s.entry, s.builder
	b.Loc = "loss scaling"
	finite := s.allFinite()
	for i, v := range e.Body.Results {
		e.Body.Results[i] = s.divided(v)
		if state := e.Outputs[i].State; state != "" && depends[v] {
			old := s.read(state, b.Type(v))
			e.Body.Results[i] = b.Select(b.Broadcast(finite, b.Shape(v), nil), e.Body.Results[i], old)
		}
	}
	s.update(finite)
	e.AddOutput(OverflowState, "", b.Unary(ir.OpNot, finite))
}

// allFinite tells whether all gradients are finite, on all ranks of a program that was partitioned. What is
// not is counted, those of vectors apart: where a program is partitioned later, ranks add their counts
// of all that is divided alike at once.
func (s *scaler) allFinite() ir.Value {
	b := s.builder
	zero := b.Constant(ir.ScalarInt(ir.I64, 0))
	count := zero
	for _, list := range s.infinite {
		if len(list) == 0 {
			continue
		}
		sum := list[0]
		for _, n := range list[1:] {
			sum = b.Binary(ir.OpAdd, sum, n)
		}
		count = b.Binary(ir.OpAdd, count, sum)
	}
	if n := s.program.Mesh.Size(); n > 1 {
		a := &ir.CollectiveAttrs{Combine: ir.Sum, Size: n}
		for _, axis := range s.program.Mesh.Axes {
			a.Axes = append(a.Axes, axis.Name)
		}
		count = b.Op(ir.OpAllReduce, a, nil, count)[0]
	}
	return b.Compare(ir.EQ, count, zero)
}

// read gives the value that a state has at the start of the step.
func (s *scaler) read(state string, t ir.Type) ir.Value {
	for i, in := range s.entry.Inputs {
		if in.State == state {
			return s.entry.Body.Params[i]
		}
	}
	return s.entry.AddStateInput(state, t)
}

// update gives the states of the scale their next values.
func (s *scaler) update(finite ir.Value) {
	b, o := s.builder, s.options
	count := b.Binary(ir.OpAdd, s.good, b.Constant(ir.ScalarInt(ir.I32, 1)))
	grow := b.Compare(ir.GE, count, b.Constant(ir.ScalarInt(ir.I32, o.Interval)))
	grown := b.Binary(ir.OpMultiply, s.scale, b.Scalar(ir.F32, o.Growth))
	grown = b.Select(b.Unary(ir.OpIsFinite, grown), grown, s.scale) // never beyond float32
	shrunk := b.Binary(ir.OpMultiply, s.scale, b.Scalar(ir.F32, o.Backoff))
	zero := b.Constant(ir.ScalarInt(ir.I32, 0))
	next := b.Select(finite, b.Select(grow, grown, s.scale), shrunk)
	again := b.Select(b.Binary(ir.OpAnd, finite, b.Unary(ir.OpNot, grow)), count, zero)
	s.entry.AddOutput(ScaleState, ScaleState, next)
	s.entry.AddOutput(GoodState, GoodState, again)
}
