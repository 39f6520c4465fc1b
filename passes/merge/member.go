package merge

import (
	"fmt"
	"slices"
	"strings"

	"weft/ir"
	"weft/passes/internal/initentry"
)

// member is a product of activations and constant weights, with what is computed of its result alone.
type member struct {
	product     *ir.Op
	axis        int   // of the weights, that is the last of the result
	columns     int64 // its size
	chain       []link
	result      ir.Value // of the chain, or of the product
	elementwise []*ir.Op // operations that take the result, or a view of it
	last        int      // contractions of the body before the last operation that does
}

// link is an operation of a member's chain: a bias that is added, or a conversion.
type link struct {
	op        *ir.Op
	to        ir.DType
	bias      ir.Value           // the state, NoValue of a conversion
	axis      int                // of the bias, that is the last of the result
	broadcast *ir.BroadcastAttrs // of the bias, nil where it has the result's shape
	biasFirst bool
}

// vector is the number of elements that kernels access together: where a slice begins elsewhere, it is read one by one.
const vector = 8

// finder looks for members in the body of an entry.
type finder struct {
	program *ir.Program
	entry   *ir.Entry
	defs    map[ir.Value]*ir.Op
	users   map[ir.Value][]*ir.Op // control flow uses what its regions use
	results map[ir.Value]bool     // of the body
	before  map[*ir.Op]int        // contractions before an operation
}

func newFinder(p *ir.Program, e *ir.Entry) *finder {
	f := &finder{p, e, map[ir.Value]*ir.Op{}, map[ir.Value][]*ir.Op{}, map[ir.Value]bool{}, map[*ir.Op]int{}}
	contractions := 0
	for _, op := range e.Body.Ops {
		f.before[op] = contractions
		if op.Kind.Info().Class == ir.ClassContraction {
			contractions++
		}
		for _, v := range op.Results {
			f.defs[v] = op
		}
		use := func(v ir.Value) {
			if !slices.Contains(f.users[v], op) {
				f.users[v] = append(f.users[v], op)
			}
		}
		for _, v := range op.Operands {
			use(v)
		}
		for _, r := range op.Regions {
			r.Uses(func(v *ir.Value) { use(*v) })
		}
	}
	for _, v := range e.Body.Results {
		f.results[v] = true
	}
	return f
}

// member describes a product that may be merged with others; nil where it may not.
func (f *finder) member(op *ir.Op) *member {
	a, ok := op.Attrs.(*ir.DotAttrs)
	if !ok || !f.constant(op.Operands[1]) || len(a.LhsBatch) > 0 || a.To == ir.F64 {
		return nil
	}
	if t := f.entry.Type(op.Operands[0]).DType; t != ir.F16 && t != ir.BF16 && a.Precision != ir.TF32 {
		return nil // not on tensor cores: larger tiles gain little
	}
	c := &member{product: op, result: op.Results[0], axis: -1}
	for axis, size := range f.entry.Type(op.Operands[1]).Shape {
		if slices.Contains(a.RhsContract, axis) {
			continue
		}
		if c.axis >= 0 {
			return nil
		}
		c.axis = axis
		c.columns, _ = size.IsConst()
	}
	if c.axis < 0 || c.columns == 0 || c.columns%vector != 0 {
		return nil
	}
	f.follow(c)
	if !f.slices(c) {
		return nil
	}
	return c
}

// constant tells whether a value reads weights that stay as they are.
func (f *finder) constant(v ir.Value) bool {
	if !initentry.Constant(f.program, f.entry, v) {
		return false
	}
	s := f.program.State(stateOf(f.entry, v))
	if s.Kind != ir.Parameter && s.Kind != ir.Literal && s.Kind != ir.Prepared {
		return false
	}
	// Of two states with one stored value, memory is shared.
	return !slices.ContainsFunc(f.program.States, func(o ir.State) bool { return o.Name != s.Name && o.StoredName() == s.StoredName() })
}

// stateOf is the state that a parameter of an entry reads.
func stateOf(e *ir.Entry, v ir.Value) string { return e.Inputs[slices.Index(e.Body.Params, v)].State }

// follow finds a member's chain: what is computed of its result alone, until something else takes it. A conversion to a
// wider type at the end stays out: what reads the result computes it for nothing, and memory has the narrow one.
func (f *finder) follow(c *member) {
	v := c.result
	for {
		l, ok := f.next(v, c)
		if !ok {
			break
		}
		c.chain = append(c.chain, l)
		v = l.op.Results[0]
	}
	for n := len(c.chain); n > 0 && f.widens(c.chain[n-1].op); n-- {
		c.chain = c.chain[:n-1]
	}
	if n := len(c.chain); n > 0 {
		c.result = c.chain[n-1].op.Results[0]
	}
}

// next gives the only use of v, where that is a conversion or adds a bias.
func (f *finder) next(v ir.Value, c *member) (link, bool) {
	if f.results[v] || len(f.users[v]) != 1 {
		return link{}, false
	}
	op := f.users[v][0]
	switch op.Kind {
	case ir.OpConvert:
		return link{op: op, to: f.entry.Type(op.Results[0]).DType, bias: ir.NoValue}, true
	case ir.OpAdd:
		l := link{op: op, biasFirst: op.Operands[1] == v}
		l.bias = op.Operands[1]
		if l.biasFirst {
			l.bias = op.Operands[0]
		}
		return l, f.bias(&l, c)
	}
	return link{}, false
}

// bias tells whether what a link adds is a state with a number for each column, and completes the link.
func (f *finder) bias(l *link, c *member) bool {
	last := f.entry.Type(l.bias).Rank() - 1
	if op := f.defs[l.bias]; op != nil && op.Kind == ir.OpBroadcastInDim && len(f.users[l.bias]) == 1 && !f.results[l.bias] {
		l.broadcast = op.Attrs.(*ir.BroadcastAttrs)
		if n := len(l.broadcast.Axes); n == 0 || l.broadcast.Axes[n-1] != last {
			return false
		}
		l.bias = op.Operands[0]
	}
	if !f.constant(l.bias) {
		return false
	}
	l.axis = f.entry.Type(l.bias).Rank() - 1
	return f.entry.Type(l.bias).Shape[l.axis].Is(c.columns)
}

// widens tells whether an operation is a conversion to a wider type.
func (f *finder) widens(op *ir.Op) bool {
	return op.Kind == ir.OpConvert && f.entry.Type(op.Results[0]).DType.Size() > f.entry.Type(op.Operands[0]).DType.Size()
}

// slices tells whether all that uses a member's result can read a slice of a larger one where it lies. It cannot where the
// value must be alone in memory (a result of the entry, an operand of a collective or of control flow): that would take a
// copy. And it should not where elementwise operations are all that follows: they are the product's epilogue today, and
// would be a kernel of their own, or be computed for each use.
func (f *finder) slices(c *member) bool {
	alone, seen := false, map[ir.Value]bool{}
	var visit func(v ir.Value)
	visit = func(v ir.Value) {
		if seen[v] {
			return
		}
		seen[v] = true
		alone = alone || f.results[v]
		for _, op := range f.users[v] {
			c.last = max(c.last, f.before[op])
			switch class := op.Kind.Info().Class; {
			case class == ir.ClassControl || class == ir.ClassCollective:
				alone = true
			case isView(op) || f.widens(op):
				visit(op.Results[0])
			case class == ir.ClassElementwise:
				c.elementwise = append(c.elementwise, op)
			}
		}
	}
	visit(c.result)
	return !alone && !f.epilogue(c.result)
}

// epilogue tells whether elementwise operations are all that uses v, or one shape of it.
func (f *finder) epilogue(v ir.Value) bool {
	for {
		users := f.users[v]
		if len(users) == 1 && (users[0].Kind == ir.OpReshape || users[0].Kind == ir.OpTranspose || f.widens(users[0])) {
			v = users[0].Results[0]
			continue
		}
		return !slices.ContainsFunc(users, func(op *ir.Op) bool { return op.Kind.Info().Class != ir.ClassElementwise })
	}
}

// isView tells whether an operation only says where to read.
func isView(op *ir.Op) bool {
	switch op.Kind {
	case ir.OpReshape, ir.OpBroadcastInDim, ir.OpTranspose, ir.OpSlice, ir.OpReverse:
		return true
	}
	return false
}

// signature is the same of members that can be one: they multiply the same value, and compute the same of the result.
func (c *member) signature(e *ir.Entry) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d %s %d", c.product.Operands[0], ir.AttrsText(c.product.Attrs), c.axis)
	for _, l := range c.chain {
		fmt.Fprintf(&s, "; %s", e.Type(l.op.Results[0]).DType)
		if l.bias == ir.NoValue {
			continue
		}
		t := e.Type(l.bias)
		fmt.Fprintf(&s, " add %t %s %v", l.biasFirst, t.DType, t.Shape[:l.axis])
		if l.broadcast != nil {
			fmt.Fprintf(&s, " along %v", l.broadcast.Axes)
		}
	}
	return s.String()
}

// states lists the states of a group's weights and biases.
func (g *group) states() []string {
	var names []string
	for _, c := range g.members {
		names = append(names, stateOf(g.entry, c.product.Operands[1]))
		for _, l := range c.chain {
			if l.bias != ir.NoValue {
				names = append(names, stateOf(g.entry, l.bias))
			}
		}
	}
	return names
}

// key is the same of groups that prepare the same states.
func (g *group) key() string {
	return fmt.Sprintf("%d %d %q", g.members[0].axis, len(g.members), g.states())
}

// keyOf names what the states that some parameters read make, one after the other along an axis.
func keyOf(e *ir.Entry, parts []ir.Value, axis int) string {
	var names []string
	for _, v := range parts {
		names = append(names, stateOf(e, v))
	}
	return fmt.Sprintf("%d %q", axis, names)
}
