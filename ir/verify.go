package ir

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"weft/ir/diag"
)

// The verifier's rules. Each error names the rule that is broken.
//
//	V1   Symbols, states, entries, and the caller's inputs and outputs of an entry have names, each its own.
//	V2   A symbol's facts make sense: 0 <= min <= max, multiple >= 1.
//	V3   Types are well formed: a known element type, no negative dim, an element where one is needed.
//	V4   Every symbol in a type or an attribute is declared.
//	V5   An entry has one parameter for each input and one result for each output.
//	V6   Inputs and outputs name states that exist, with the type of the state; at most one output writes a state.
//	V7   Every value is defined exactly once.
//	V8   A value is used only after its definition, in the block that defines it or in regions inside.
//	V9   A kernel's region uses nothing from outside, and holds no other kernel.
//	V10  An operation has a known kind, that kind's attribute struct, and regions that are there.
//	V11  Results have the types that Infer gives for kind, operands and attributes.
//	V12  The memory plan's places are in range, and its buffers hold what is put into them: large enough, and
//	     live at every step from the definition of a value to its last use; the results of an if or while, and what a
//	     while carries or uses from outside, to its last step.
//	V13  Of two buffers that are live at the same step, the later one lists the earlier one in After, which
//	     lists earlier buffers only.
//	V14  The axes of the mesh have names, each its own, and sizes of 1 or more; a program for a mesh declares the
//	     coordinates of ranks as symbols with their bounds. Where a tensor is divided, its type is that of one rank
//	     and each axis divides it once.
//	V17  The result of an asynchronous collective is used once, by a collective_done in its block that takes its
//	     operand too; a collective_done has no other operands.
//	V15  A collective names axes of the mesh, and as many ranks as there are along them.
//	V16  A scatter kernel whose result has the place of the operand that it updates, or an all_reduce that has its
//	     operand's, is the last to use that operand; a parameter is only written over where its successor, the new
//	     value of the state or the next one that a while carries, has its place; nor does another value lie in an input.
//	V18  A kernel whose schedule has bulk copies multiplies matrices that these can bring from memory (CopiesInBulk).

// maxViolations is where the verifier stops counting.
const maxViolations = 20

// Verify checks a program against the rules V1 to V18 and returns what breaks them as one
// error: W3010 diagnostics, each with the place of the operation. It takes time linear in the
// program and the memory plan. After a pass, an error is a bug of that pass.
func Verify(p *Program) error {
	v := verifier{p: p, symbols: map[string]bool{}}
	v.program()
	return v.errs.Err()
}

type verifier struct {
	p       *Program
	symbols map[string]bool
	errs    diag.List

	e       *Entry
	step    int         // in which the walk is (see Memory)
	loops   []*loop     // around it
	def     []valueInfo // by Value
	numbers *printer    // for messages, made on the first error of the entry
}

// valueInfo is what the walk knows of a value.
type valueInfo struct {
	defined bool
	visible bool
	depth   int // of the block that defines it
	first   int // the step that defines it
	last    int // the last step that uses it
}

// loop is a while that the walk is in.
type loop struct {
	depth int     // of the block that holds it
	outer []Value // used in it, defined outside
}

func (v *verifier) fail(place, rule, format string, args ...any) {
	if len(v.errs) < maxViolations {
		v.errs = append(v.errs, diag.Errorf(diag.InvalidProgram, place, "%s: %s", rule, fmt.Sprintf(format, args...)))
	}
}

// opFail reports a violation at an operation.
func (v *verifier) opFail(op *Op, rule, format string, args ...any) {
	place := op.Loc
	if place == "" {
		place = fmt.Sprintf("entry %s", nameText(v.e.Name))
	}
	what := op.Kind.String()
	if len(op.Results) > 0 {
		what = v.name(op.Results[0]) + " = " + what
	}
	v.fail(place, rule, "%s: %s", what, fmt.Sprintf(format, args...))
}

// name is a value's name in the printed text.
func (v *verifier) name(x Value) string {
	if v.numbers == nil {
		v.numbers = &printer{e: v.e, numbers: map[Value]int{}}
		v.numbers.number(&v.e.Body)
	}
	return v.numbers.use(x)
}

// names checks rule V1 for one kind of thing.
func (v *verifier) names(place, what string, names func(yield func(string))) map[string]bool {
	seen := map[string]bool{}
	names(func(name string) {
		switch {
		case name == "":
			v.fail(place, "V1", "%s has no name", what)
		case seen[name]:
			v.fail(place, "V1", "%s %q is there twice", what, name)
		}
		seen[name] = true
	})
	return seen
}

func (v *verifier) program() {
	p := v.p
	v.symbols = v.names("", "a symbol", func(yield func(string)) {
		for _, s := range p.Symbols {
			yield(s.Name)
		}
	})
	v.names("", "a state", func(yield func(string)) {
		for _, s := range p.States {
			yield(s.Name)
		}
	})
	v.names("", "an entry", func(yield func(string)) {
		for _, e := range p.Entries {
			yield(e.Name)
		}
	})
	for _, s := range p.Symbols {
		if s.Min < 0 || s.Max < s.Min || s.Max > NoBound || s.Multiple < 1 {
			v.fail("", "V2", "dim %s has range %d..%d and multiple %d", symbolText(s.Name), s.Min, s.Max, s.Multiple)
		}
	}
	v.mesh()
	states := map[string]*State{}
	for i := range p.States {
		s := &p.States[i]
		states[s.Name] = s
		place := fmt.Sprintf("state %q", s.Name)
		if !v.typ(place, s.Type) {
			return
		}
		if !slices.Contains([]StateKind{Parameter, Buffer, Literal, Prepared, Generator}, s.Kind) {
			v.fail(place, "V3", "there is no state kind %q", s.Kind)
		}
		v.shard(place, s.Shard, s.Type)
	}
	for _, e := range p.Entries {
		v.entry(e, states)
	}
}

// typ checks rules V3 and V4 for a type, and reports whether it can be worked with.
func (v *verifier) typ(place string, t Type) bool {
	switch t.Kind {
	case TensorKind:
		if t.DType == InvalidDType || t.DType >= numDTypes {
			v.fail(place, "V3", "type %s has no element type", t)
			return false
		}
		for _, d := range t.Shape {
			if c, ok := d.IsConst(); ok && c < 0 {
				v.fail(place, "V3", "type %s has a negative dim", t)
			}
			v.dim(place, d)
		}
	case SequenceKind, OptionalKind, MapKind:
		if t.Elem == nil {
			v.fail(place, "V3", "a sequence, optional or map has no element type")
			return false
		}
		return v.typ(place, *t.Elem)
	case TokenKind:
	default:
		v.fail(place, "V3", "there is no type kind %d", t.Kind)
		return false
	}
	return true
}

func (v *verifier) dim(place string, d Dim) {
	d.Symbols(func(name string) {
		if !v.symbols[name] {
			v.fail(place, "V4", "symbol %s is not declared", symbolText(name))
		}
	})
}

func (v *verifier) entry(e *Entry, states map[string]*State) {
	v.e, v.numbers, v.step, v.loops = e, nil, -1, nil
	v.def = make([]valueInfo, len(e.Types))
	place := fmt.Sprintf("entry %s", nameText(e.Name))
	if len(e.Inputs) != len(e.Body.Params) || len(e.Outputs) != len(e.Body.Results) {
		v.fail(place, "V5", "%d inputs for %d parameters, %d outputs for %d results",
			len(e.Inputs), len(e.Body.Params), len(e.Outputs), len(e.Body.Results))
		return
	}
	v.names(place, "an input", func(yield func(string)) {
		for _, in := range e.Inputs {
			if in.State == "" {
				yield(in.Name)
			}
		}
	})
	v.names(place, "an output", func(yield func(string)) {
		for _, out := range e.Outputs {
			if out.State == "" {
				yield(out.Name)
			}
		}
	})
	if !v.block(&e.Body, 0, 0) {
		return // what follows needs values that are there
	}
	v.states(place, states)
	for i, in := range e.Inputs {
		v.shard(fmt.Sprintf("%s, input %q", place, in.Name), in.Shard, e.Types[e.Body.Params[i]])
	}
	for i, out := range e.Outputs {
		if out.Gradient != "" && states[out.Gradient] == nil {
			v.fail(place, "V6", "output %q is the gradient of state %q, which does not exist", out.Name, out.Gradient)
		}
		v.shard(fmt.Sprintf("%s, output %q", place, out.Name), out.Shard, e.Types[e.Body.Results[i]])
	}
	if e.Memory != nil {
		v.places(place)
		v.buffers(place)
		v.updates(&e.Body, v.successor)
	}
}

// states checks rule V6.
func (v *verifier) states(place string, states map[string]*State) {
	check := func(what, name string, x Value) {
		if name == "" {
			return
		}
		s := states[name]
		if s == nil {
			v.fail(place, "V6", "%s %s names state %q, which does not exist", what, v.name(x), name)
		} else if t := v.e.Types[x]; !t.Equal(s.Type) {
			v.fail(place, "V6", "%s %s is %s, state %q is %s", what, v.name(x), t, name, s.Type)
		}
	}
	for i, in := range v.e.Inputs {
		check("input", in.State, v.e.Body.Params[i])
	}
	written := map[string]bool{}
	for i, out := range v.e.Outputs {
		check("output", out.State, v.e.Body.Results[i])
		if out.State != "" && written[out.State] {
			v.fail(place, "V6", "state %q is written twice", out.State)
		}
		written[out.State] = true
	}
}

// block checks a block at a depth of nesting; values defined above depth isolated are hidden
// from it. It reports whether all values are in range.
func (v *verifier) block(b *Block, depth, isolated int) bool {
	var here []Value
	ok := true
	define := func(xs []Value) {
		for _, x := range xs {
			ok = v.define(x, depth) && ok
			here = append(here, x)
		}
	}
	define(b.Params)
	for _, op := range b.Ops {
		if isolated == 0 {
			v.step++
		}
		step := v.step
		ok = v.uses(op, op.Operands, isolated) && v.op(op, depth, isolated) && ok
		end := v.step
		v.step = step // regions may write the results from the first step to the last
		define(op.Results)
		v.step = end
		v.extend(op.Results)
		if ok {
			v.types(op)
			v.collective(op)
		}
	}
	if ok {
		v.pairs(b)
	}
	v.step = max(0, v.step) // results are taken after the last step
	ok = v.uses(nil, b.Results, isolated) && ok
	for _, x := range here {
		if v.inRange(x) {
			v.def[x].visible = false
		}
	}
	return ok
}

func (v *verifier) inRange(x Value) bool { return x >= 0 && int(x) < len(v.def) }

// define checks rule V7 and the type of a value.
func (v *verifier) define(x Value, depth int) bool {
	place := fmt.Sprintf("entry %s", nameText(v.e.Name))
	if !v.inRange(x) {
		v.fail(place, "V7", "value %d has no type", x)
		return false
	}
	if v.def[x].defined {
		v.fail(place, "V7", "%s is defined twice", v.name(x))
	}
	v.def[x] = valueInfo{defined: true, visible: true, depth: depth, first: v.step, last: v.step}
	return v.typ(place, v.e.Types[x])
}

// uses checks rules V8 and V9 for the operands of an operation or, with op nil, for the results
// of a block.
func (v *verifier) uses(op *Op, xs []Value, isolated int) bool {
	ok := true
	report := func(rule, format string, args ...any) {
		if op == nil {
			v.fail(fmt.Sprintf("entry %s", nameText(v.e.Name)), rule, format, args...)
			return
		}
		v.opFail(op, rule, format, args...)
	}
	for _, x := range xs {
		switch {
		case !v.inRange(x):
			report("V7", "value %d has no type", x)
			ok = false
			continue
		case !v.def[x].visible:
			report("V8", "%s is used where it is not defined", v.name(x))
		case v.def[x].depth < isolated:
			report("V9", "%s is used in a kernel that does not take it", v.name(x))
		}
		v.def[x].last = max(v.def[x].last, v.step)
		for _, l := range v.loops {
			if v.def[x].depth <= l.depth {
				l.outer = append(l.outer, x)
			}
		}
	}
	return ok
}

// op checks rules V10, V4 for attributes, and the regions. It reports whether the operation can
// be inferred.
func (v *verifier) op(op *Op, depth, isolated int) bool {
	info := op.Kind.Info()
	if info.Infer == nil {
		v.opFail(op, "V10", "unknown kind")
		return false
	}
	if reflect.TypeOf(op.Attrs) != reflect.TypeOf(info.Attrs) || op.Attrs != nil && reflect.ValueOf(op.Attrs).IsNil() {
		v.opFail(op, "V10", "attributes are %T, not %T", op.Attrs, info.Attrs)
		return false
	}
	if op.Attrs != nil {
		v.attrDims(op, reflect.ValueOf(op.Attrs).Elem())
	}
	ok := true
	inner := isolated
	if op.Kind == OpKernel {
		if isolated > 0 {
			v.opFail(op, "V9", "a kernel inside a kernel")
		}
		inner = depth + 1
	}
	if op.Kind == OpWhile && isolated == 0 {
		l := &loop{depth: depth}
		v.loops = append(v.loops, l)
		defer v.leave(op, l)
	}
	for _, r := range op.Regions {
		if r == nil {
			v.opFail(op, "V10", "a region is missing")
			return false
		}
		ok = v.block(r, depth+1, inner) && ok
	}
	if a, is := op.Attrs.(*KernelAttrs); is && len(op.Regions) == 1 && len(v.errs) == 0 && (a.Schedule.Bulk || a.Warpgroup.Bulk) && !CopiesInBulk(v.p, v.e, op.Regions[0]) {
		v.opFail(op, "V18", "its schedule has bulk copies, which cannot bring what it multiplies")
	}
	return ok
}

// leave extends the lives of what the next iteration of a while may use to its last step.
func (v *verifier) leave(op *Op, l *loop) {
	v.loops = v.loops[:len(v.loops)-1]
	v.extend(l.outer)
	for _, r := range op.Regions {
		if r != nil {
			v.extend(r.Params)
		}
	}
}

// extend makes values live until the present step.
func (v *verifier) extend(xs []Value) {
	for _, x := range xs {
		if v.inRange(x) {
			v.def[x].last = max(v.def[x].last, v.step)
		}
	}
}

var dimType, dimsType = reflect.TypeFor[Dim](), reflect.TypeFor[[]Dim]()

// attrDims checks rule V4 for the dims among attributes.
func (v *verifier) attrDims(op *Op, attrs reflect.Value) {
	for i := range attrs.NumField() {
		switch f := attrs.Field(i); f.Type() {
		case dimType:
			v.dim(op.Loc, f.Interface().(Dim))
		case dimsType:
			for _, d := range f.Interface().([]Dim) {
				v.dim(op.Loc, d)
			}
		}
	}
}

// types checks rule V11.
func (v *verifier) types(op *Op) {
	types, err := Infer(op, v.e)
	if err != nil {
		v.opFail(op, "V11", "%v", err)
		return
	}
	if have := blockTypes(op.Results, v.e); !slices.EqualFunc(have, types, Type.Equal) {
		v.opFail(op, "V11", "results are %v, should be %v", have, types)
	}
}

// places checks rule V12.
func (v *verifier) places(place string) {
	m := v.e.Memory
	if len(m.Places) > len(v.e.Types) {
		v.fail(place, "V12", "%d places for %d values", len(m.Places), len(v.e.Types))
		return
	}
	limits := []int{InArena: len(m.Buffers), InInput: len(v.e.Inputs), InOutput: len(v.e.Outputs)}
	for i, at := range m.Places {
		if at == (Place{}) || !v.def[i].defined {
			continue
		}
		x := Value(i)
		if int(at.Kind) >= len(limits) || at.Index < 0 || at.Index >= limits[at.Kind] {
			v.fail(place, "V12", "%s is placed in something that does not exist", v.name(x))
			continue
		}
		if at.Kind != InArena {
			continue
		}
		b, d := m.Buffers[at.Index], v.def[i]
		if d.first < b.First || d.last > b.Last {
			v.fail(place, "V12", "%s is live in steps %d..%d, its buffer %d in %d..%d", v.name(x), d.first, d.last, at.Index, b.First, b.Last)
		}
		if short, ok := b.Size.Sub(v.e.Types[x].Bytes()).IsConst(); ok && short < 0 {
			v.fail(place, "V12", "%s needs %s bytes, its buffer %d has %s", v.name(x), v.e.Types[x].Bytes(), at.Index, b.Size)
		}
	}
}

// buffers checks rule V13. Buffers that are live together are found by going through them in
// order of their first step; their number is what the After lists must have.
func (v *verifier) buffers(place string) {
	bs := v.e.Memory.Buffers
	order := make([]int, len(bs))
	after := make([]map[int]bool, len(bs))
	for i, b := range bs {
		order[i] = i
		after[i] = map[int]bool{}
		for _, j := range b.After {
			if j < 0 || j >= i {
				v.fail(place, "V13", "buffer %d lists %d, which is not earlier", i, j)
			}
			after[i][j] = true
		}
		v.dim(place, b.Size)
		if c, ok := b.Size.IsConst(); ok && c < 0 || b.First > b.Last || b.First < 0 {
			v.fail(place, "V12", "buffer %d has size %s and is live in steps %d..%d", i, b.Size, b.First, b.Last)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(bs[i].First, bs[j].First) })
	var live []int
	for _, i := range order {
		live = slices.DeleteFunc(live, func(j int) bool { return bs[j].Last < bs[i].First })
		for _, j := range live {
			if late, early := max(i, j), min(i, j); !after[late][early] {
				v.fail(place, "V13", "buffers %d and %d are live together, but %d does not list %d", early, late, late, early)
			}
		}
		live = append(live, i)
	}
}
