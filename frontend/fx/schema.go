package fx

import (
	"strconv"

	"weft/ir"
	"weft/ir/diag"
)

// The types below are torch's export schema (torch/_export/serde/schema.py, major version 8)
// as far as weft needs it.

// exportedProgram is the content of models/NAME.json.
type exportedProgram struct {
	graph        *graph
	inputs       []spec
	outputs      []spec
	ranges       []rangeConstraint
	major, minor int64
	torch        string
	unknown      []string // fields that the schema does not have, in order of appearance
}

// graph is a list of nodes with the types of the values between them.
type graph struct {
	inputs, outputs []argument
	nodes           []node
	tensors         map[string]tensorMeta
	symInts         map[string]symInt
	singleTensor    bool // a region that returns one tensor and not a list of one
}

// node calls an operator.
type node struct {
	name, target string
	inputs       []namedArgument
	outputs      []argument
	stackTrace   string
	moduleStack  string
}

type namedArgument struct {
	name string
	argument
}

// argKind tells what an argument holds.
type argKind uint8

const (
	argNone argKind = iota
	argTensor
	argList
	argInt
	argFloat
	argBool
	argString
	argSymInt   // name of a sym_int value
	argSymFloat // name of a sym_float value
	argSymBool  // name of a sym_bool value
	argDType
	argMemoryFormat
	argLayout
	argDevice
	argGraph
	argCustom // custom objects
	argOther  // complex numbers, dicts: nothing that weft lowers takes them
)

var argNames = [...]string{"None", "a tensor", "a list", "an int", "a float", "a bool", "a string", "a symbolic int", "a symbolic float",
	"a symbolic bool", "a dtype", "a memory format", "a layout", "a device", "a graph", "a custom object", "a value of a kind that weft does not read"}

func (k argKind) String() string { return argNames[k] }

// argument is torch's union Argument.
type argument struct {
	kind  argKind
	name  string // of a value or graph; the text of a string; the type of a device
	i     int64  // ints, bools (0 or 1), enumerations
	f     float64
	list  []argument
	graph *graph
}

// symInt is a size: a constant, or an expression as sympy prints it.
type symInt struct {
	value int64
	expr  string
}

type tensorMeta struct {
	dtype   int64
	sizes   []symInt
	strides []symInt
	offset  symInt
	layout  int64
}

// spec is an entry of the signature: an input or an output of the graph and its role.
type spec struct {
	role       string // the key of the union: parameter, user_input, buffer_mutation ...
	arg        argument
	target     string // the parameter, buffer, constant or user input that it is about
	persistent bool
}

type rangeConstraint struct {
	name     string
	min, max int64
}

// payload is an entry of a weights or constants configuration.
type payload struct {
	name, path string
	pickled    bool
	meta       *tensorMeta
}

// stridedLayout is torch.strided in the schema's numbering.
const stridedLayout = 7

// scalarTypes are the element types by the schema's numbers.
var scalarTypes = map[int64]ir.DType{
	1: ir.U8, 2: ir.I8, 3: ir.I16, 4: ir.I32, 5: ir.I64, 6: ir.F16, 7: ir.F32, 8: ir.F64, 9: ir.C32, 10: ir.C64, 11: ir.C128,
	12: ir.Bool, 13: ir.BF16, 28: ir.U16, 29: ir.F8E4M3FN, 30: ir.F8E5M2, 31: ir.F8E4M3FNUZ, 32: ir.F8E5M2FNUZ,
	33: ir.F8E8M0FNU, 34: ir.U32, 35: ir.U64,
}

// decoder reads the schema's types.
type decoder struct {
	*scanner
	unknown []string
	seen    map[string]bool
}

// other skips a field that is not read; fields outside the known schema are remembered.
func (d *decoder) other(structName, key string) {
	if !knownFields[structName][key] && !d.seen[structName+"."+key] {
		d.seen[structName+"."+key] = true
		d.unknown = append(d.unknown, structName+"."+key)
	}
	d.skip()
}

// knownFields are the fields of schema 8.20 that weft has no use for.
var knownFields = map[string]map[string]bool{
	"ExportedProgram": {"opset_version": true, "verifiers": true, "guards_code": true},
	"GraphModule":     {"module_call_graph": true, "metadata": true, "treespec_namedtuple_fields": true},
	"Graph":           {"sym_bool_values": true, "sym_float_values": true, "custom_obj_values": true},
	"Node":            {"is_hop_single_tensor_return": true},
	"NamedArgument":   {"kind": true},
	"SymExpr":         {"hint": true},
	"TensorMeta":      {"requires_grad": true, "device": true},
	"Device":          {"index": true},
}

// decodeProgram reads models/NAME.json.
func decodeProgram(data []byte) (*exportedProgram, *diag.Diagnostic) {
	d := &decoder{scanner: newScanner(data), seen: map[string]bool{}}
	ep := &exportedProgram{major: -1}
	d.object("the exported program", func(key string) {
		switch key {
		case "graph_module":
			d.graphModule(ep)
		case "range_constraints":
			d.object("range constraints", func(name string) { ep.ranges = append(ep.ranges, d.rangeConstraint(name)) })
		case "schema_version":
			d.object("the schema version", func(key string) {
				switch key {
				case "major":
					ep.major = d.integer("the major version")
				case "minor":
					ep.minor = d.integer("the minor version")
				default:
					d.other("SchemaVersion", key)
				}
			})
		case "torch_version":
			ep.torch = d.str("the torch version")
		default:
			d.other("ExportedProgram", key)
		}
	})
	d.end()
	ep.unknown = d.unknown
	if d.err == nil && (ep.graph == nil || ep.major < 0) {
		d.pos = 0
		d.fail("the exported program has no graph_module or no schema_version")
	}
	return ep, d.err
}

func (d *decoder) graphModule(ep *exportedProgram) {
	d.object("the graph module", func(key string) {
		switch key {
		case "graph":
			ep.graph = d.graph()
		case "signature":
			d.object("the signature", func(key string) {
				switch key {
				case "input_specs":
					d.array("input specs", func() { ep.inputs = append(ep.inputs, d.spec()) })
				case "output_specs":
					d.array("output specs", func() { ep.outputs = append(ep.outputs, d.spec()) })
				default:
					d.other("GraphSignature", key)
				}
			})
		default:
			d.other("GraphModule", key)
		}
	})
}

func (d *decoder) graph() *graph {
	g := &graph{tensors: map[string]tensorMeta{}, symInts: map[string]symInt{}}
	d.object("a graph", func(key string) {
		switch key {
		case "inputs":
			g.inputs = d.arguments("inputs")
		case "outputs":
			g.outputs = d.arguments("outputs")
		case "nodes":
			d.array("nodes", func() { g.nodes = append(g.nodes, d.node()) })
		case "tensor_values":
			d.object("tensor values", func(name string) { g.tensors[name] = d.tensorMeta() })
		case "sym_int_values":
			d.object("sym_int values", func(name string) { g.symInts[name] = d.symInt() })
		case "is_single_tensor_return":
			g.singleTensor = d.boolean("a bool")
		default:
			d.other("Graph", key)
		}
	})
	return g
}

func (d *decoder) node() node {
	var n node
	d.object("a node", func(key string) {
		switch key {
		case "target":
			n.target = d.str("a target")
		case "name":
			if !d.null() {
				n.name = d.str("a node name")
			}
		case "inputs":
			d.array("node inputs", func() { n.inputs = append(n.inputs, d.namedArgument()) })
		case "outputs":
			n.outputs = d.arguments("node outputs")
		case "metadata":
			d.object("node metadata", func(key string) {
				switch key {
				case "stack_trace":
					n.stackTrace = d.str("a stack trace")
				case "nn_module_stack":
					n.moduleStack = d.str("a module stack")
				default:
					d.skip() // metadata is open
				}
			})
		default:
			d.other("Node", key)
		}
	})
	return n
}

func (d *decoder) namedArgument() namedArgument {
	var a namedArgument
	d.object("an argument", func(key string) {
		switch key {
		case "name":
			a.name = d.str("an argument name")
		case "arg":
			a.argument = d.argument()
		default:
			d.other("NamedArgument", key)
		}
	})
	return a
}

func (d *decoder) arguments(what string) []argument {
	var list []argument
	d.array(what, func() { list = append(list, d.argument()) })
	return list
}

// argument reads the union Argument, and the smaller unions that elements of lists are.
func (d *decoder) argument() argument {
	var a argument
	d.object("an argument", func(key string) {
		if key != "as_none" && d.null() {
			return
		}
		a = d.alternative(key)
	})
	return a
}

// alternative reads the value of a union under its key.
func (d *decoder) alternative(key string) argument {
	if element, ok := listElements[key]; ok {
		return d.listOf(element)
	}
	switch key {
	case "as_none":
		d.skip()
		return argument{}
	case "as_int":
		return argument{kind: argInt, i: d.integer("an int")}
	case "as_float":
		return argument{kind: argFloat, f: d.float("a float")}
	case "as_bool":
		a := argument{kind: argBool}
		if d.boolean("a bool") {
			a.i = 1
		}
		return a
	case "as_string", "as_operator":
		return argument{kind: argString, name: d.str("a string")}
	case "as_tensor":
		return d.named(argTensor)
	case "as_custom_obj":
		return d.named(argCustom)
	case "as_name":
		return argument{kind: argSymInt, name: d.str("a name")}
	case "as_sym_int":
		return d.symbolic(argSymInt)
	case "as_sym_float":
		return d.symbolic(argSymFloat)
	case "as_sym_bool":
		return d.symbolic(argSymBool)
	case "as_optional_tensor":
		return d.argument()
	case "as_scalar_type":
		return argument{kind: argDType, i: d.integer("a dtype")}
	case "as_memory_format":
		return argument{kind: argMemoryFormat, i: d.integer("a memory format")}
	case "as_layout":
		return argument{kind: argLayout, i: d.integer("a layout")}
	case "as_device":
		return d.device()
	case "as_graph":
		return d.graphArgument()
	case "as_complex", "as_string_to_argument":
		d.skip()
		return argument{kind: argOther}
	}
	d.other("Argument", key)
	return argument{kind: argOther}
}

// listElements says what the elements of each kind of list are; "" stands for unions.
var listElements = map[string]string{
	"as_tensors": "as_tensor", "as_ints": "as_int", "as_floats": "as_float", "as_strings": "as_string", "as_bools": "as_bool",
	"as_sym_ints": "", "as_sym_bools": "", "as_sym_floats": "", "as_optional_tensors": "",
	"as_int_lists": "as_ints", "as_nested_tensors": "as_tensors", "as_float_lists": "as_floats",
}

func (d *decoder) listOf(element string) argument {
	a := argument{kind: argList}
	d.array("a list", func() {
		if element == "" {
			a.list = append(a.list, d.argument())
		} else {
			a.list = append(a.list, d.alternative(element))
		}
	})
	return a
}

func (d *decoder) device() argument {
	a := argument{kind: argDevice}
	d.object("a device", func(key string) {
		if key == "type" {
			a.name = d.str("a device type")
		} else {
			d.other("Device", key)
		}
	})
	return a
}

// named reads an object with a name.
func (d *decoder) named(kind argKind) argument {
	a := argument{kind: kind}
	d.object("a value", func(key string) {
		switch key {
		case "name":
			a.name = d.str("a name")
		case "class_fqn":
			d.skip()
		default:
			d.other("TensorArgument", key)
		}
	})
	return a
}

// symbolic reads SymIntArgument and its likes: a name or a literal.
func (d *decoder) symbolic(kind argKind) argument {
	a := d.argument()
	if a.kind == argSymInt {
		a.kind = kind
	}
	return a
}

func (d *decoder) graphArgument() argument {
	a := argument{kind: argGraph}
	d.object("a graph argument", func(key string) {
		switch key {
		case "name":
			a.name = d.str("a graph name")
		case "graph":
			a.graph = d.graph()
		default:
			d.other("GraphArgument", key)
		}
	})
	if a.graph == nil {
		a.graph = &graph{}
	}
	return a
}

func (d *decoder) symInt() symInt {
	var s symInt
	d.object("a size", func(key string) {
		switch {
		case d.null():
		case key == "as_int":
			s.value = d.integer("a size")
		case key == "as_expr":
			d.object("an expression", func(key string) {
				if key == "expr_str" {
					s.expr = d.str("an expression")
				} else {
					d.other("SymExpr", key)
				}
			})
		default:
			d.other("SymInt", key)
		}
	})
	return s
}

func (d *decoder) symInts(what string) []symInt {
	var list []symInt
	d.array(what, func() { list = append(list, d.symInt()) })
	return list
}

func (d *decoder) tensorMeta() tensorMeta {
	m := tensorMeta{layout: stridedLayout}
	d.object("tensor metadata", func(key string) {
		switch key {
		case "dtype":
			m.dtype = d.integer("a dtype")
		case "sizes":
			m.sizes = d.symInts("sizes")
		case "strides":
			m.strides = d.symInts("strides")
		case "storage_offset":
			m.offset = d.symInt()
		case "layout":
			m.layout = d.integer("a layout")
		default:
			d.other("TensorMeta", key)
		}
	})
	return m
}

// spec reads an InputSpec or OutputSpec.
func (d *decoder) spec() spec {
	var s spec
	d.object("a spec", func(role string) {
		if d.null() {
			return
		}
		s.role = role
		d.object("a spec", func(key string) {
			switch key {
			case "arg":
				s.arg = d.specArgument(role)
			case "parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name", "user_input_name", "name":
				s.target = d.str("a name")
			case "persistent":
				s.persistent = d.boolean("a bool")
			case "value":
				s.arg = d.argument()
			default:
				d.other("Spec", key)
			}
		})
	})
	return s
}

// specArgument is an Argument for user inputs and outputs, else a TensorArgument.
func (d *decoder) specArgument(role string) argument {
	if role == "user_input" || role == "user_output" {
		return d.argument()
	}
	return d.named(argTensor)
}

func (d *decoder) rangeConstraint(name string) rangeConstraint {
	r := rangeConstraint{name: name, max: ir.NoBound}
	d.object("a range", func(key string) {
		switch {
		case d.null():
		case key == "min_val":
			r.min = d.bound(0)
		case key == "max_val":
			r.max = d.bound(ir.NoBound)
		default:
			d.other("RangeConstraint", key)
		}
	})
	return r
}

// bound reads a bound, which may be written as a word such as int_oo.
func (d *decoder) bound(none int64) int64 {
	if d.next() != '"' {
		return d.integer("a bound")
	}
	if v, err := strconv.ParseInt(d.str("a bound"), 10, 64); err == nil {
		return v
	}
	return none
}

// decodePayloads reads a weights or constants configuration.
func decodePayloads(data []byte) ([]payload, *diag.Diagnostic) {
	d := &decoder{scanner: newScanner(data), seen: map[string]bool{}}
	var list []payload
	d.object("a payload configuration", func(key string) {
		if key != "config" {
			d.skip()
			return
		}
		d.object("payloads", func(name string) {
			p := payload{name: name}
			d.object("a payload", func(key string) {
				switch {
				case d.null():
				case key == "path_name":
					p.path = d.str("a path")
				case key == "use_pickle":
					p.pickled = d.boolean("a bool")
				case key == "tensor_meta":
					m := d.tensorMeta()
					p.meta = &m
				default:
					d.skip()
				}
			})
			list = append(list, p)
		})
	})
	d.end()
	return list, d.err
}
