package fx

import (
	"fmt"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
	"weft/ir/diag"
)

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
		if arg.name == "" {
			fail(diag.FXSignature, "", "an input without a name")
		}
		v := newTensor(im.entry.AddInput(arg.name, storedType(t)))
		v.strides = strides
		s.bindStored(arg.name, v, t)
		return userInput{arg.name, v}, true
	case argSymInt:
		// The caller gives a scalar. It cannot be a size, which kernels would have to know before it.
		if arg.name == "" {
			fail(diag.FXSignature, "", "an input without a name")
		}
		s.bind(arg.name, number{kind: intNumber, v: im.entry.AddInput(arg.name, ir.TensorOf(ir.I64)), live: true}, arg.name)
		return userInput{}, false
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
	if in.target == "" {
		fail(diag.FXSignature, arg.name, "a %s without a name", in.role)
	}
	for _, d := range t.Shape {
		if _, c := d.IsConst(); !c {
			fail(diag.FXType, arg.name, "%s %q has the symbolic type %s", in.role, in.target, t)
		}
	}
	if n, _ := t.Numel().IsConst(); !t.DType.IsComplex() && in.role == "tensor_constant" && n <= maxLiteral && im.constant != nil {
		if data := im.constant(in.target); data != nil && data.Type().Equal(t) {
			s.b.Loc = in.target
			s.bind(arg.name, newTensor(s.b.Constant(data)), arg.name)
			return
		}
	}
	v, known := im.states[in.target]
	if !known {
		stored := storedType(t)
		im.prog.States = append(im.prog.States, ir.State{Name: in.target, Type: stored, Kind: stateKinds[in.role]})
		v = newTensor(im.entry.AddStateInput(in.target, stored))
		v.strides = strides
		im.states[in.target] = v
	}
	s.bindStored(arg.name, v, t)
}

// partTypes are the types of the parts of complex numbers.
var partTypes = map[ir.DType]ir.DType{ir.C32: ir.F16, ir.C64: ir.F32, ir.C128: ir.F64}

// storedType is the type of an input or state: complex numbers are given as torch.view_as_real sees
// them, with a last dim of two.
func storedType(t ir.Type) ir.Type {
	if !t.DType.IsComplex() {
		return t
	}
	return ir.TensorOf(partTypes[t.DType], append(slices.Clone(t.Shape), ir.Const(2))...)
}

// bindStored gives the name of an input or state of type t its meaning.
func (s *scope) bindStored(name string, v *tensor, t ir.Type) {
	if !t.DType.IsComplex() {
		s.bind(name, v, name)
		return
	}
	v.strides = nil
	part := func(i int64) *tensor {
		return newView(s.b, newView(s.b, v, sliceView{t.Rank(), ir.Const(i), ir.Const(i + 1), 1}), reshapeView{t.Shape})
	}
	s.bind(name, &complexTensor{part(0), part(1)}, name)
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
			first := len(im.entry.Outputs)
			im.addOutput(s, arg)
			if out.role == "gradient_to_parameter" && im.states[out.target] != nil && len(im.entry.Outputs) == first+1 {
				im.entry.Outputs[first].Gradient = out.target
			}
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
		if t := im.states[st.Name]; t != nil && t.base.written {
			im.entry.AddOutput(st.Name, st.Name, t.read(s.b))
		}
	}
	im.random.Close(s.b)
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
		im.entry.AddOutput(im.outputName(arg.name), "", im.outputValue(s, arg))
	case argSymInt, argSymFloat, argSymBool:
		if _, ok := s.env[arg.name]; !ok {
			fail(diag.FXName, arg.name, "the output %q is not defined", arg.name)
		}
		n := (&call{scope: s, node: &node{}, place: arg.name}).asNumber("the output", arg)
		v := n.wide(s.b)
		if n.kind == boolNumber {
			v = n.scalar(s.b, ir.Bool)
		}
		im.entry.AddOutput(im.outputName(arg.name), "", v)
	default:
		fail(diag.UnsupportedOperators, arg.name, "an output that is %s", arg.kind)
	}
}

// outputValue is a tensor of the module's result; complex numbers as torch.view_as_real sees them.
func (im *importer) outputValue(s *scope, arg argument) ir.Value {
	switch t := s.env[arg.name].(type) {
	case *complexTensor:
		return lower.Stack(s.b, s.b.Rank(t.real.read(s.b)), t.real.read(s.b), t.imaginary.read(s.b))
	case *tensor:
		if t != nil {
			return t.read(s.b)
		}
	}
	fail(diag.FXName, arg.name, "the output %q is not defined", arg.name)
	return ir.NoValue
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
