package fx

import (
	"fmt"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
	"weft/ir/diag"
)

// call is a node being lowered: typed access to its arguments by the names of the operator's
// schema. Arguments that a rule does not ask for are found out by checkUsed.
type call struct {
	*scope
	node  *node
	place string
	used  uint64 // bit i: input i was asked for
	part  complexPart
}

// harmless arguments do not change values: devices, layouts, hints.
var harmless = map[string]bool{
	"device": true, "layout": true, "pin_memory": true, "memory_format": true, "non_blocking": true, "cudnn_enabled": true,
	"cudnn_enable": true, "requires_grad": true, "scale_grad_by_freq": true, "sparse": true, "padding_idx": true, "benchmark": true,
	"deterministic": true, "allow_tf32": true, "implicit": true, "inplace": true, "generator": true, "output_mask": true,
	"unsafe": true, "stable": true, "sorted": true, "enable_gqa": true, "path": true, "out": true, "validate_indices": true,
}

// unsupported notes a form of the operator that has no lowering.
func (c *call) unsupported(form string) {
	ir.Fail(diag.Errorf(diag.UnsupportedOperators, c.place, "%s", form))
}

// require notes the form as unsupported unless the condition holds.
func (c *call) require(condition bool, form string) {
	if !condition {
		c.unsupported(" " + form)
	}
}

func (c *call) bad(format string, args ...any) {
	fail(diag.FXArgument, c.place, "%s: %s", shortTarget(c.node.target), fmt.Sprintf(format, args...))
}

// arg finds an argument; None counts as absent.
func (c *call) arg(name string) (argument, bool) {
	for i := range c.node.inputs {
		if c.node.inputs[i].name == name {
			if i < 64 {
				c.used |= 1 << i
			}
			return c.node.inputs[i].argument, c.node.inputs[i].kind != argNone
		}
	}
	return argument{}, false
}

// positional gives an input by number, for operators without a schema.
func (c *call) positional(i int) argument {
	if i >= len(c.node.inputs) {
		c.bad("argument %d is missing", i)
	}
	if i < 64 {
		c.used |= 1 << i
	}
	return c.node.inputs[i].argument
}

// checkUsed wants every argument that was given to have had its effect.
func (c *call) checkUsed() {
	for i, a := range c.node.inputs {
		if i < 64 && c.used&(1<<i) == 0 && a.kind != argNone && !harmless[a.name] {
			c.unsupported(" with " + a.name)
		}
	}
}

func (c *call) has(name string) bool {
	_, ok := c.arg(name)
	return ok
}

func (c *call) wrongKind(name string, a argument, want string) {
	c.bad("%s is %s, not %s", name, a.kind, want)
}

// lookup finds what a name stands for.
func (c *call) lookup(name string) any {
	v, ok := c.env[name]
	if !ok {
		fail(diag.FXName, c.place, "value %q is used before it is defined", name)
	}
	return v
}

// asTensor is the tensor that an argument names.
func (c *call) asTensor(name string, a argument) *tensor {
	if a.kind != argTensor {
		c.wrongKind(name, a, "a tensor")
	}
	found := c.lookup(a.name)
	if z, isComplex := found.(*complexTensor); isComplex {
		c.require(c.part != noPart, "of complex numbers")
		return c.part.of(z)
	}
	t, ok := found.(*tensor)
	if !ok || t == nil {
		c.bad("%s, the value %q, is no tensor", name, a.name)
	}
	return t
}

// handle is a tensor argument with its memory.
func (c *call) handle(name string) *tensor {
	a, ok := c.arg(name)
	if !ok {
		c.bad("%s is missing", name)
	}
	return c.asTensor(name, a)
}

// tensor is the value of a tensor argument.
func (c *call) tensor(name string) ir.Value { return c.autocast(c.handle(name).read(c.b)) }

// optional is the value of a tensor argument, ir.NoValue when it is absent.
func (c *call) optional(name string) ir.Value {
	if !c.has(name) {
		return ir.NoValue
	}
	return c.tensor(name)
}

// autocast converts an operand as the autocast region asks.
func (c *call) autocast(v ir.Value) ir.Value {
	if c.cast == nil {
		return v
	}
	return c.cast.convert(c.b, v)
}

// handles is a list of tensors; absent elements are nil.
func (c *call) handles(name string) []*tensor {
	a, ok := c.arg(name)
	if !ok {
		return nil
	}
	if a.kind != argList {
		c.wrongKind(name, a, "a list of tensors")
	}
	list := make([]*tensor, len(a.list))
	for i, e := range a.list {
		if e.kind != argNone {
			list[i] = c.asTensor(fmt.Sprintf("%s[%d]", name, i), e)
		}
	}
	return list
}

// tensors is a list of tensor values without absent elements.
func (c *call) tensors(name string) []ir.Value {
	var list []ir.Value
	for _, t := range c.handles(name) {
		if t == nil {
			c.bad("%s has an element that is None", name)
		}
		list = append(list, c.autocast(t.read(c.b)))
	}
	return list
}

// number is an argument that is a Python number.
func (c *call) number(name string) (number, bool) {
	a, ok := c.arg(name)
	if !ok {
		return number{}, false
	}
	return c.asNumber(name, a), true
}

func (c *call) asNumber(name string, a argument) number {
	switch a.kind {
	case argInt:
		return intLiteral(a.i)
	case argFloat:
		return floatLiteral(a.f)
	case argBool:
		return boolLiteral(a.i != 0)
	case argSymInt, argSymFloat, argSymBool:
		switch v := c.lookup(a.name).(type) {
		case ir.Dim:
			return dimNumber(v)
		case number:
			return v
		case func() number:
			return v()
		}
		c.bad("%s, the value %q, is no number", name, a.name)
	}
	c.wrongKind(name, a, "a number")
	return number{}
}

// literal is a number that must be known.
func (c *call) literal(name string) (number, bool) {
	n, ok := c.number(name)
	if ok && !n.known() {
		c.unsupported(" with a " + name + " that is known only when run")
	}
	return n, ok
}

func (c *call) float(name string, def float64) float64 {
	n, ok := c.literal(name)
	if !ok {
		return def
	}
	return n.f
}

func (c *call) int(name string, def int64) int64 {
	n, ok := c.literal(name)
	if !ok {
		return def
	}
	if n.kind == floatNumber {
		c.bad("%s is a float, not an int", name)
	}
	return n.i
}

func (c *call) bool(name string, def bool) bool {
	n, ok := c.literal(name)
	if !ok {
		return def
	}
	return n.f != 0
}

func (c *call) string(name, def string) string {
	a, ok := c.arg(name)
	if !ok {
		return def
	}
	if a.kind != argString {
		c.wrongKind(name, a, "a string")
	}
	return a.name
}

// dim is an int argument that may be symbolic.
func (c *call) dim(name string) (ir.Dim, bool) {
	a, ok := c.arg(name)
	if !ok {
		return ir.Dim{}, false
	}
	return c.asDim(name, a), true
}

func (c *call) asDim(name string, a argument) ir.Dim {
	n := c.asNumber(name, a)
	switch {
	case n.dim != nil:
		return n.dim.Within(c.prog.Range)
	case n.live:
		c.unsupported(" with a size that depends on data")
	case n.kind == floatNumber:
		c.bad("%s is a float, not an int", name)
	}
	return ir.Const(n.i)
}

// dims is a list of ints that may be symbolic; a single int is a list of one.
func (c *call) dims(name string) ([]ir.Dim, bool) {
	a, ok := c.arg(name)
	if !ok {
		return nil, false
	}
	if a.kind != argList {
		return []ir.Dim{c.asDim(name, a)}, true
	}
	dims := make([]ir.Dim, len(a.list))
	for i, e := range a.list {
		dims[i] = c.asDim(name, e)
	}
	return dims, true
}

// sizes is a shape argument: no negative constants.
func (c *call) sizes(name string) []ir.Dim {
	dims, _ := c.dims(name)
	for _, d := range dims {
		if v, ok := d.IsConst(); ok && (v < 0 || v > maxSize) {
			c.bad("%s has a dim of %d", name, v)
		}
	}
	return dims
}

// size is one size that must be given.
func (c *call) size(name string) ir.Dim {
	list := c.sizes(name)
	if len(list) != 1 {
		c.bad("%s is missing", name)
	}
	return list[0]
}

// ints is a list of constant ints, def when absent.
func (c *call) ints(name string, def ...int64) []int64 {
	dims, ok := c.dims(name)
	if !ok {
		return def
	}
	list := make([]int64, len(dims))
	for i, d := range dims {
		v, known := d.IsConst()
		c.require(known, "with a symbolic "+name)
		list[i] = v
	}
	return list
}

// spatial is ints for n spatial dims: one number stands for all.
func (c *call) spatial(name string, n int, def int64) []int64 {
	list := c.ints(name)
	if len(list) == 0 {
		list = []int64{def}
	}
	if len(list) == 1 {
		list = slices.Repeat(list, n)
	}
	if len(list) != n {
		c.bad("%s has %d numbers for %d dims", name, len(list), n)
	}
	return list
}

// axis is a dim argument, counted from the end when negative.
func (c *call) axis(name string, def int64, rank int) int {
	return c.wrap(name, c.int(name, def), rank)
}

func (c *call) wrap(name string, v int64, rank int) int {
	n := int64(max(rank, 1))
	if v < -n || v >= n {
		c.bad("%s is %d for rank %d", name, v, rank)
	}
	if v < 0 {
		v += n
	}
	return int(v)
}

// axes is a list of dims; absent or empty means all, unless none is set.
func (c *call) axes(name string, rank int) []int {
	list := c.ints(name)
	if len(list) == 0 {
		all := make([]int, rank)
		for i := range all {
			all[i] = i
		}
		return all
	}
	axes := make([]int, len(list))
	for i, v := range list {
		axes[i] = c.wrap(name, v, rank)
	}
	slices.Sort(axes)
	if len(slices.Compact(slices.Clone(axes))) != len(axes) {
		c.bad("%s names a dim twice", name)
	}
	if rank == 0 {
		return nil
	}
	return axes
}

// dtype is a dtype argument, def when absent.
func (c *call) dtype(name string, def ir.DType) ir.DType {
	a, ok := c.arg(name)
	if !ok {
		return def
	}
	if a.kind != argDType {
		c.wrongKind(name, a, "a dtype")
	}
	t, known := scalarTypes[a.i]
	if !known {
		c.bad("unknown dtype %d", a.i)
	}
	return t
}

// enum is the number of an enumeration, such as a memory format.
func (c *call) enum(name string, def int64) int64 {
	if a, ok := c.arg(name); ok {
		return a.i
	}
	return def
}

// reduction is the reduction argument of losses.
func (c *call) reduction() lower.Reduction {
	r := c.int("reduction", 1)
	if r < 0 || r > 2 {
		c.bad("reduction is %d", r)
	}
	return lower.Reduction(r)
}

// selfName is the argument that an in-place operator changes: the first.
func (c *call) selfName() string {
	if len(c.node.inputs) == 0 {
		c.bad("there is no argument to change")
	}
	return c.node.inputs[0].name
}

// mutate writes the result of an in-place operator into an argument.
func (c *call) mutate(name string, results []*tensor) *tensor {
	t := c.handle(name)
	if len(results) != 1 {
		c.unsupported(" in place")
	}
	v := c.b.Convert(results[0].read(c.b), c.b.DType(t.read(c.b)))
	if shape := c.b.Shape(t.read(c.b)); t.parent == nil && name == "out" && !ir.SameShape(shape, c.b.Shape(v)) {
		*t = *newTensor(v) // out is resized
		return t
	}
	shape := c.b.Shape(t.read(c.b))
	if c.b.Rank(v) > len(shape) {
		c.bad("a %s does not fit into %s", c.b.Type(v), name)
	}
	v = lower.Expand(c.b, v, shape)
	if !t.write(c.b, v) {
		fail(diag.FXOverlapping, c.place, "%s writes to a view whose elements share memory", shortTarget(c.node.target))
	}
	return t
}
