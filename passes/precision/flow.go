package precision

import (
	"slices"

	"weft/ir"
)

// color says in which type a float32 value of the model is stored.
type color uint8

const (
	untouched color = iota // no float32: integers, bools, and floats of the types that the model asked for
	neutral                // constants alone: takes the type of what it meets
	weight                 // parameters and constants alone: made once at load
	narrow                 // the policy's compute type
	wide                   // float32
)

// flow decides the color of every value of an entry, from its operands to its results.
type flow struct {
	policy  Policy
	program *ir.Program
	entry   *ir.Entry
	colors  []color  // by value
	fixed   []bool   // by value: depends on parameters and constants alone
	why     []string // by value
	users   [][]*ir.Op
	given   []bool // by value: a result of a block
	defs    []*ir.Op
	rounded []bool // by value: stored in the compute type, which all users read
	relaxed []bool // by value: the result of a product that may take its operands as TF32
}

func newFlow(program *ir.Program, e *ir.Entry, policy Policy) *flow {
	n := len(e.Types)
	f := &flow{policy: policy, program: program, entry: e, colors: make([]color, n), fixed: make([]bool, n), why: make([]string, n),
		users: make([][]*ir.Op, n), given: make([]bool, n), defs: make([]*ir.Op, n), rounded: make([]bool, n),
		relaxed: make([]bool, n)}
	written := map[string]bool{}
	for _, other := range program.Entries {
		for _, o := range other.Outputs {
			written[o.State] = true
		}
	}
	for i, v := range e.Body.Params {
		s := e.Inputs[i].State
		f.fixed[v] = s != "" && !written[s]
		switch {
		case e.Type(v).DType != ir.F32 || e.Type(v).Kind != ir.TensorKind:
		case f.fixed[v]:
			f.colors[v] = weight
			if state := program.State(s); policy.Params != ir.F32 && state != nil && state.Kind == ir.Parameter {
				f.rounded[v] = true
			}
		default:
			f.colors[v] = wide
		}
	}
	f.uses(&e.Body)
	f.block(&e.Body)
	f.round(&e.Body)
	return f
}

// uses notes who uses and who defines each value.
func (f *flow) uses(b *ir.Block) {
	for _, op := range b.Ops {
		for _, v := range op.Operands {
			f.users[v] = append(f.users[v], op)
		}
		for _, r := range op.Results {
			f.defs[r] = op
		}
		for _, r := range op.Regions {
			f.uses(r)
		}
	}
	for _, v := range b.Results {
		f.given[v] = true
	}
}

// float32 tells whether a value is a float32 tensor.
func (f *flow) float32(v ir.Value) bool {
	t := f.entry.Type(v)
	return t.Kind == ir.TensorKind && t.DType == ir.F32
}

func (f *flow) block(b *ir.Block) {
	for _, op := range b.Ops {
		for _, r := range op.Regions {
			for _, v := range r.Params {
				if f.float32(v) {
					f.colors[v] = wide
				}
			}
			f.block(r)
		}
		f.operation(op)
	}
}

// operation colors the results of an operation.
func (f *flow) operation(op *ir.Op) {
	class := op.Kind.Info().Class
	fixed := class != ir.ClassControl && class != ir.ClassCollective && op.Kind != ir.OpDim
	for _, v := range op.Operands {
		fixed = fixed && f.fixed[v]
	}
	for _, v := range op.Results {
		f.fixed[v] = fixed
		if f.float32(v) {
			f.colors[v], f.why[v] = f.decide(op, fixed)
		}
	}
}

// decide gives the color of an operation's float32 results, and why.
func (f *flow) decide(op *ir.Op, fixed bool) (color, string) {
	if fixed {
		for _, v := range op.Operands {
			if f.colors[v] == weight {
				return weight, "from parameters alone: float32, once at load"
			}
		}
		return neutral, "constant"
	}
	rule, ruled := f.policy.ruleFor(op)
	if ruled && rule.Type == ir.F32 {
		return wide, "rule " + rule.String() + "=f32"
	}
	if f.product(op) {
		return f.colorOfProduct(op)
	}
	if f.policy.Reduce != ir.F32 && sumsRanks(op) {
		return narrow, "sum over ranks: reduce=" + name(f.policy.Reduce)
	}
	if reason, ok := needsFloat32(op); ok && !(ruled && rule.Kind == op.Kind) {
		return wide, reason
	}
	if ruled && narrowable(op) && slices.ContainsFunc(op.Operands, func(v ir.Value) bool { return f.colors[v] != untouched }) {
		return narrow, "rule " + rule.String() + "=" + name(f.policy.Compute)
	}
	return f.follow(op)
}

// narrowable tells whether a rule can have an operation's results stored in the compute type.
func narrowable(op *ir.Op) bool {
	c := op.Kind.Info().Class
	return (c == ir.ClassElementwise || c == ir.ClassIndex || c == ir.ClassReduction) && op.Kind != ir.OpConvert && op.Kind != ir.OpSort
}

// product tells whether an operation is a product of float32 operands.
func (f *flow) product(op *ir.Op) bool {
	return op.Kind.Info().Class == ir.ClassContraction && f.float32(op.Operands[0]) && f.float32(op.Results[0])
}

// sumsRanks tells whether an operation adds what several ranks have.
func sumsRanks(op *ir.Op) bool {
	a, ok := op.Attrs.(*ir.CollectiveAttrs)
	return ok && (op.Kind == ir.OpAllReduce || op.Kind == ir.OpReduceScatter) && sums(a.Combine)
}

// moves tells whether an operation only moves elements, and can move narrow ones.
func (f *flow) moves(op *ir.Op) bool {
	switch op.Kind.Info().Class {
	case ir.ClassIndex:
		a, ok := op.Attrs.(*ir.ScatterAttrs)
		return !ok || !sums(a.Combine)
	case ir.ClassCollective:
		return !sumsRanks(op) || f.policy.Reduce != ir.F32
	}
	return false
}

func (f *flow) colorOfProduct(op *ir.Op) (color, string) {
	if a, ok := op.Attrs.(*ir.DotAttrs); ok {
		summed := ir.Const(1)
		for _, d := range a.LhsContract {
			summed = summed.Mul(f.entry.Type(op.Operands[0]).Shape[d])
		}
		if summed.Is(1) {
			return wide, "a product that sums nothing is a multiplication: float32"
		}
	}
	for _, v := range op.Operands {
		if f.float32(v) && f.colors[v] == neutral {
			return wide, "a product with constants, as of a Fourier transform: float32"
		}
	}
	if f.policy.narrows() {
		return narrow, "product: sums in float32"
	}
	if f.policy.TF32 && op.Kind != ir.OpAttention {
		f.relaxed[op.Results[0]] = true
		return wide, "product: takes its operands as TF32, sums in float32"
	}
	return wide, "product"
}

// follow: the result has the type of the operands, float32 where they differ. Constants take the
// type of the others, and so do parameters in elementwise operations.
func (f *flow) follow(op *ir.Op) (color, string) {
	class := op.Kind.Info().Class
	if class == ir.ClassControl {
		return wide, "float32, as the model has it"
	}
	c, floats := narrow, 0
	for _, v := range op.Operands {
		switch f.colors[v] {
		case untouched, neutral:
			continue
		case weight:
			if class == ir.ClassElementwise {
				continue
			}
			c = wide
		case wide:
			c = wide
		}
		floats++
	}
	switch {
	case floats == 0:
		return wide, "float32, as the model has it"
	case c == narrow:
		return narrow, "follows its operands"
	}
	return wide, "follows its operands: float32"
}

// needsFloat32 tells whether an operation loses too much in a narrow type, as frameworks see it.
func needsFloat32(op *ir.Op) (reason string, ok bool) {
	switch a := op.Attrs.(type) {
	case *ir.ReduceAttrs:
		if sums(a.Combine) {
			return "sum: float32", true
		}
		return "reduction: float32", true
	case *ir.CumulativeAttrs:
		return "sum: float32", sums(a.Combine)
	case *ir.ReduceWindowAttrs:
		return "sum: float32", sums(a.Combine)
	case *ir.ScatterAttrs:
		return "sum: float32", sums(a.Combine)
	}
	return "function that needs float32", steep[op.Kind]
}

func sums(c ir.Combine) bool { return c == ir.Sum || c == ir.Mul }

// steep are the functions whose results differ much where their arguments hardly do, or whose
// results leave the range of half types: those that PyTorch's autocast computes in float32.
var steep = map[ir.Kind]bool{ir.OpExponential: true, ir.OpExponentialMinusOne: true, ir.OpLog: true, ir.OpLogPlusOne: true,
	ir.OpPower: true, ir.OpRsqrt: true, ir.OpTan: true, ir.OpAcos: true, ir.OpAsin: true, ir.OpCosh: true, ir.OpSinh: true,
	ir.OpAcosh: true, ir.OpAsinh: true, ir.OpAtanh: true, ir.OpErfInv: true, ir.OpLgamma: true, ir.OpDigamma: true, ir.OpSort: true}

// round decides which values are rounded: what products give, what is moved, and what several
// operators of the model read. What one operator of the model computes inside stays in
// registers, in float32.
func (f *flow) round(b *ir.Block) {
	for _, op := range b.Ops {
		for _, r := range op.Regions {
			f.round(r)
		}
		for _, v := range op.Results {
			if f.float32(v) {
				f.rounded[v] = f.stored(op, v)
			}
		}
	}
}

// stored tells whether a float32 value is kept in the compute type.
func (f *flow) stored(op *ir.Op, v ir.Value) bool {
	isNarrow := f.colors[v] == narrow
	switch {
	case f.moves(op):
		return isNarrow || f.colors[v] != neutral && f.allRounded(op)
	case !isNarrow || f.castByModel(v):
		return false
	case op.Kind == ir.OpAttention || op.Kind.Info().Class == ir.ClassCollective:
		return true
	case op.Kind.Info().Class == ir.ClassContraction:
		users := f.users[v]
		summed := len(users) == 1 && (f.biased(users[0], v) || sumsRanks(users[0]))
		return f.policy.Reduce != ir.F32 || len(users) > 0 && !summed
	}
	return f.shared(op, v)
}

// castByModel tells whether the model itself casts a value, for all who read it.
func (f *flow) castByModel(v ir.Value) bool {
	for _, u := range f.users[v] {
		if u.Kind != ir.OpConvert {
			return false
		}
	}
	return len(f.users[v]) > 0 && !f.given[v]
}

// allRounded tells whether all that an operation moves is rounded, constants aside.
func (f *flow) allRounded(op *ir.Op) bool {
	some := false
	for _, v := range op.Operands {
		if f.float32(v) && f.colors[v] != neutral {
			if !f.rounded[v] {
				return false
			}
			some = true
		}
	}
	return some
}

// shared tells whether the result of an elementwise operation goes where it is stored: to an
// operation that moves it, or to several of which some belong to another operator of the model.
func (f *flow) shared(op *ir.Op, v ir.Value) bool {
	elsewhere := false
	for _, u := range f.users[v] {
		switch u.Kind.Info().Class {
		case ir.ClassElementwise, ir.ClassReduction:
			elsewhere = elsewhere || u.Loc != op.Loc || u.Loc == ""
		case ir.ClassIndex, ir.ClassCollective:
			if f.colors[u.Results[0]] == narrow && f.moves(u) {
				return true
			}
		}
	}
	return elsewhere && len(f.users[v]) > 1
}

// biased tells whether an operation adds a bias to a product: the sum is rounded, not the product.
func (f *flow) biased(op *ir.Op, v ir.Value) bool {
	if op.Kind != ir.OpAdd || f.colors[op.Results[0]] != narrow {
		return false
	}
	other := op.Operands[0]
	if other == v {
		other = op.Operands[1]
	}
	return f.colors[other] == weight
}
