// Package eval is the definition of what a program means: plain Go that computes each
// operation in float64 (integers exactly, in their own width, wrapping around) and rounds its
// result once to its declared type. Sums and products of reductions, contractions and windows
// are taken in float64, in row-major order. Everything else in weft is judged by it.
//
// Elementary functions are those of Go's math package and of special.go, with a relative error
// below 4e-15 (a test compares with 60 digits): far below half an ulp of any type but f64.
package eval

import (
	"weft/ir"
	"weft/ir/diag"
)

// Result is what a run of an entry gives.
type Result struct {
	Outputs []*ir.Tensor          // the caller's outputs, in order
	State   map[string]*ir.Tensor // the new values of states that the entry writes
	Dims    map[string]int64      // the sizes of the symbolic dims
}

// Run evaluates an entry, on all ranks where there are several: then inputs, states and results are global tensors, and what several
// ranks hold of a result must be the same bits on each. inputs are the caller's inputs in order;
// state gives the value of a state that the entry reads, and may be nil where it reads none. Tensors are not written
// to; those of the result may share memory with the inputs. Errors are diagnostics.
func Run(p *ir.Program, entry string, inputs []*ir.Tensor, state func(name string) (*ir.Tensor, error)) (*Result, error) {
	return RunObserved(p, entry, inputs, state, nil)
}

// Observer is told of each operation of an entry's body, by the rank and its index there, before it is evaluated. What it
// gives is called with the results. Those inside control flow count as that. Ranks call it at the same time.
type Observer func(rank int64, index int, op *ir.Op) (done func(results []*ir.Tensor))

// RunObserved is Run with an observer, which may be nil.
func RunObserved(p *ir.Program, entry string, inputs []*ir.Tensor, state func(name string) (*ir.Tensor, error), observe Observer) (*Result, error) {
	if p.Mesh.Size() > 1 {
		return runMesh(p, entry, inputs, state, observe)
	}
	e, values, dims, err := bindEntry(p, entry, inputs, state)
	if err != nil {
		return nil, err
	}
	ev := newEvaluator(e, dimsOfRank(p, 0, dims))
	ev.observe = observe
	outputs, err := ev.block(&e.Body, values)
	if err != nil {
		return nil, err
	}
	r := &Result{State: map[string]*ir.Tensor{}, Dims: dims}
	for i, out := range e.Outputs {
		if out.State != "" {
			r.State[out.State] = outputs[i]
		} else {
			r.Outputs = append(r.Outputs, outputs[i])
		}
	}
	return r, nil
}

// bindEntry finds an entry, the values of its inputs and the sizes of its dims.
func bindEntry(p *ir.Program, entry string, inputs []*ir.Tensor, state func(name string) (*ir.Tensor, error)) (
	*ir.Entry, []*ir.Tensor, map[string]int64, error) {
	e := p.Entry(entry)
	if e == nil {
		d := diag.Errorf(diag.RunInputUnknown, "", "there is no entry %q", entry)
		for _, e := range p.Entries {
			d.Note("entry %q", e.Name)
		}
		return nil, nil, nil, d
	}
	values, err := gatherInputs(e, inputs, state)
	if err != nil {
		return nil, nil, nil, err
	}
	given := make([]ir.Given, len(values))
	for i, t := range values {
		given[i] = ir.Given{DType: t.DType, Shape: t.Shape}
	}
	dims, err := ir.BindDims(p, e, given)
	return e, values, dims, err
}

// gatherInputs puts the caller's inputs and the states in the order of the entry's inputs.
func gatherInputs(e *ir.Entry, inputs []*ir.Tensor, state func(string) (*ir.Tensor, error)) ([]*ir.Tensor, error) {
	wanted := 0
	for _, in := range e.Inputs {
		if in.State == "" {
			wanted++
		}
	}
	if len(inputs) != wanted {
		d := diag.Errorf(diag.RunInputMissing, "", "%d inputs given, entry %q takes %d", len(inputs), e.Name, wanted)
		for i, in := range e.Inputs {
			if in.State == "" {
				d.Note("input %q: %s", in.Name, e.Type(e.Body.Params[i]))
			}
		}
		return nil, d
	}
	values := make([]*ir.Tensor, 0, len(e.Inputs))
	for _, in := range e.Inputs {
		switch {
		case in.State == "":
			values, inputs = append(values, inputs[0]), inputs[1:]
		case state == nil:
			return nil, diag.Errorf(diag.RunInputMissing, "", "there is no value for state %q", in.State)
		default:
			t, err := state(in.State)
			if err != nil {
				return nil, err
			}
			values = append(values, t)
		}
		t := values[len(values)-1]
		if t == nil {
			return nil, diag.Errorf(diag.RunInputMissing, "", "there is no value for %q", in.Name)
		}
		if err := t.Check(); err != nil {
			return nil, diag.Errorf(diag.RunInputType, "", "the value for %q is damaged: %v", in.Name, err)
		}
	}
	return values, nil
}

// Op evaluates one operation of an entry, for folding constants. dims gives the sizes of the
// symbols that its attributes and types need; regions may use nothing from outside.
func Op(e *ir.Entry, op *ir.Op, operands []*ir.Tensor, dims map[string]int64) ([]*ir.Tensor, error) {
	ev := newEvaluator(e, dims)
	for i, t := range operands {
		want := e.Type(op.Operands[i])
		shape, err := ev.shape(op, want)
		if err != nil {
			return nil, err
		}
		if want.Kind != ir.TensorKind || t.DType != want.DType || !equal(t.Shape, shape) || t.Check() != nil {
			return nil, fail(op, "operand %d is %s, expected %s", i, t.Type(), want)
		}
	}
	return ev.op(op, operands)
}

// evaluator runs the blocks of one entry.
type evaluator struct {
	e        *ir.Entry
	dims     map[string]int64
	env      []*ir.Tensor // by Value; nil before definition and after the last use
	deaths   map[*ir.Block][][]ir.Value
	exchange *exchange // where ranks meet; nil for one rank alone
	rank     int64
	observe  Observer               // nil for none
	issued   int                    // collectives so far
	table    *[ir.NumKinds]evalFunc // a field because control flow would make the variable a cycle
}

func newEvaluator(e *ir.Entry, dims map[string]int64) *evaluator {
	return &evaluator{e: e, dims: dims, env: make([]*ir.Tensor, len(e.Types)), deaths: map[*ir.Block][][]ir.Value{}, table: &table}
}

// block runs a block on the values of its parameters and gives those of its results.
func (ev *evaluator) block(b *ir.Block, params []*ir.Tensor) ([]*ir.Tensor, error) {
	deaths := ev.lastUses(b)
	for i, v := range b.Params {
		ev.env[v] = params[i]
	}
	for i, op := range b.Ops {
		operands, err := ev.values(op, op.Operands)
		if err != nil {
			return nil, err
		}
		done := func([]*ir.Tensor) {}
		if ev.observe != nil && b == &ev.e.Body {
			done = ev.observe(ev.rank, i, op)
		}
		results, err := ev.op(op, operands)
		if err != nil {
			return nil, err
		}
		done(results)
		for j, v := range op.Results {
			ev.env[v] = results[j]
		}
		for _, v := range deaths[i] {
			ev.env[v] = nil
		}
	}
	results, err := ev.values(nil, b.Results)
	for _, v := range deaths[len(b.Ops)] {
		ev.env[v] = nil
	}
	return results, err
}

func (ev *evaluator) values(op *ir.Op, vs []ir.Value) ([]*ir.Tensor, error) {
	ts := make([]*ir.Tensor, len(vs))
	for i, v := range vs {
		if ts[i] = ev.env[v]; ts[i] == nil {
			return nil, fail(op, "a value is used where it is not defined")
		}
	}
	return ts, nil
}

// lastUses lists, for each operation of a block, the values of this block that nothing uses
// after it; uses in regions count for the operation that holds them.
func (ev *evaluator) lastUses(b *ir.Block) [][]ir.Value {
	if d, ok := ev.deaths[b]; ok {
		return d
	}
	last := map[ir.Value]int{} // values of this block, by their last use
	for i, op := range b.Ops {
		for _, v := range op.Results {
			last[v] = i
		}
	}
	for _, v := range b.Params {
		last[v] = 0
	}
	use := func(i int) func(*ir.Value) {
		return func(v *ir.Value) {
			if _, mine := last[*v]; mine {
				last[*v] = i
			}
		}
	}
	for i, op := range b.Ops {
		(&ir.Block{Ops: []*ir.Op{op}}).Uses(use(i))
	}
	for _, v := range b.Results {
		use(len(b.Ops))(&v)
	}
	d := make([][]ir.Value, len(b.Ops)+1)
	for v, i := range last {
		d[i] = append(d[i], v)
	}
	ev.deaths[b] = d
	return d
}

// op evaluates one operation.
func (ev *evaluator) op(op *ir.Op, operands []*ir.Tensor) ([]*ir.Tensor, error) {
	c := &call{evaluator: ev, op: op, in: operands}
	for _, v := range op.Results {
		t := ev.e.Type(v)
		shape, err := ev.shape(op, t)
		if err != nil {
			return nil, err
		}
		c.types = append(c.types, ir.Given{DType: t.DType, Shape: shape})
	}
	f := ev.table[op.Kind]
	if f == nil {
		return nil, unsupported(op, "there is no evaluation for %s", op.Kind)
	}
	return f(c)
}

// maxBytes is the largest tensor that a run may make.
const maxBytes = 1 << 35

// shape evaluates the shape of a tensor type.
func (ev *evaluator) shape(op *ir.Op, t ir.Type) ([]int64, error) {
	if t.Kind != ir.TensorKind {
		return nil, unsupported(op, "values of type %s cannot be evaluated", t)
	}
	shape, err := ev.evalDims(op, t.Shape)
	if err != nil {
		return nil, err
	}
	bytes := float64(max(t.DType.Bits(), 8)) / 8
	for i, d := range shape {
		if d < 0 {
			return nil, fail(op, "dim %d of %s is %d", i, t, d)
		}
		bytes *= float64(max(d, 1))
	}
	if bytes > maxBytes {
		return nil, diag.Errorf(diag.RunTooLarge, loc(op), "%s%v takes %.0f bytes", t.DType, shape, bytes)
	}
	return shape, nil
}

// evalDims evaluates expressions, which may be negative.
func (ev *evaluator) evalDims(op *ir.Op, dims []ir.Dim) ([]int64, error) {
	vs := make([]int64, len(dims))
	for i, d := range dims {
		v, ok := d.IsConst()
		if !ok {
			var err error
			if v, err = d.Eval(ev.dims); err != nil {
				return nil, diag.Errorf(diag.RunDimUnknown, loc(op), "%v", err).Because(err)
			}
		}
		vs[i] = v
	}
	return vs, nil
}

func loc(op *ir.Op) string {
	if op == nil {
		return ""
	}
	return op.Loc
}

func fail(op *ir.Op, format string, args ...any) *diag.Diagnostic {
	d := diag.Errorf(diag.RunOperation, loc(op), format, args...)
	if op != nil {
		d.Message = op.Kind.String() + ": " + d.Message
	}
	return d
}

func unsupported(op *ir.Op, format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(diag.RunUnsupported, loc(op), format, args...)
}
