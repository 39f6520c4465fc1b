// Package fuse gathers operations into kernel groups. Each group becomes one kernel operation
// whose region holds its operations; what several groups need is either materialised by a
// group of its own or, when it costs nothing to compute again, copied into each.
package fuse

import (
	"fmt"
	"slices"

	"weft/ir"
)

// Decision says of a producer and a consumer in different operations whether they are in one
// kernel, and if not why.
type Decision struct {
	Producer string `json:"producer"`
	Consumer string `json:"consumer"`
	Fused    bool   `json:"fused"`
	Reason   string `json:"reason,omitempty"`
}

// Run fuses the body of every entry and returns its decisions by entry. The regions of control
// flow are fused like bodies: what they use from outside is in memory.
func Run(p *ir.Program) (map[string][]Decision, error) {
	decisions := map[string][]Decision{}
	for _, e := range p.Entries {
		sink(e)
		decisions[e.Name] = fuseBlock(p, e, &e.Body)
		materialiseResults(e)
	}
	return decisions, nil
}

// fuseBlock fuses a block and the regions of its control flow.
func fuseBlock(p *ir.Program, e *ir.Entry, b *ir.Block) []Decision {
	f := newFuser(p, e, b)
	f.groupAll()
	f.rewrite()
	decisions := f.decisions
	for _, op := range b.Ops {
		if op.Kind == ir.OpKernel {
			continue
		}
		for _, r := range op.Regions {
			decisions = append(decisions, fuseBlock(p, e, r)...)
		}
		if op.Kind == ir.OpWhile {
			materialiseCarried(e, op.Regions[1])
		}
	}
	return decisions
}

// maxOps and maxOperands bound a group, so that its kernel fits a thread's registers.
const (
	maxOps      = 160
	maxOperands = 24
)

type fuser struct {
	program   *ir.Program
	entry     *ir.Entry
	block     *ir.Block
	ops       []*ir.Op
	def       map[ir.Value]int // index of the defining operation
	users     [][]int          // by operation; -1 is a result of the block
	memberOf  [][]*group       // by operation
	groups    []*group         // roots descending
	stored    map[int]bool     // operations whose values a group stores beside its root's
	decisions []Decision
}

// group is a set of operations that becomes one kernel.
type group struct {
	kind    ir.Group
	root    int
	members map[int]bool
	anchor  int      // of a contract group, else -1
	full    []ir.Dim // of a rows group: the shape that is reduced
	axes    []int
	refused map[int]string // producers left out, with the reason
	joined  []int          // members whose producers are still to be looked at
	also    []int          // members whose values the kernel stores too
}

func newFuser(p *ir.Program, e *ir.Entry, b *ir.Block) *fuser {
	f := &fuser{program: p, entry: e, block: b, ops: b.Ops, def: map[ir.Value]int{}, stored: map[int]bool{}}
	f.users, f.memberOf = make([][]int, len(f.ops)), make([][]*group, len(f.ops))
	for i, op := range f.ops {
		for _, r := range op.Results {
			f.def[r] = i
		}
	}
	for i, op := range f.ops {
		for _, j := range f.producers(op) {
			f.users[j] = append(f.users[j], i)
		}
	}
	for _, v := range b.Results {
		if j, ok := f.def[v]; ok {
			f.users[j] = append(f.users[j], -1)
		}
	}
	return f
}

// producers lists the operations that define what op uses, each once, in operand order.
func (f *fuser) producers(op *ir.Op) []int {
	var out []int
	add := func(v ir.Value) {
		if j, ok := f.def[v]; ok && !slices.Contains(out, j) {
			out = append(out, j)
		}
	}
	for _, v := range op.Operands {
		add(v)
	}
	for _, r := range op.Regions {
		r.Uses(func(v *ir.Value) { add(*v) })
	}
	return out
}

// groupAll makes the groups, from the last operation to the first, so that all users of an
// operation are in groups when its turn comes.
func (f *fuser) groupAll() {
	for i := len(f.ops) - 1; i >= 0; i-- {
		if f.needed(i) && !f.stored[i] {
			f.grow(i)
		}
	}
}

// needed tells whether an operation's result must exist in memory: some user is in a group
// that does not hold the operation itself.
func (f *fuser) needed(i int) bool {
	for _, u := range f.users[i] {
		if u < 0 || standsAlone(f.ops[u]) {
			return true
		}
		for _, g := range f.memberOf[u] {
			if !g.members[i] {
				return true
			}
		}
	}
	return len(f.users[i]) == 0
}

// grow makes a group around a root and takes producers in, nearest first, as far as the rules
// of its kind allow.
func (f *fuser) grow(root int) {
	g := &group{root: root, members: map[int]bool{root: true}, anchor: -1, refused: map[int]string{}}
	f.groups = append(f.groups, g)
	f.memberOf[root] = append(f.memberOf[root], g)
	op := f.ops[root]
	if standsAlone(op) {
		return // stays an operation of its own
	}
	f.startKind(g, op)
	pending := f.producers(op)
	for len(pending) > 0 {
		slices.Sort(pending)
		j := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if g.members[j] || g.refused[j] != "" {
			continue
		}
		shared := !f.repeatable(j) && !f.exclusive(g, j)
		if reason := f.refuse(g, j, shared); reason != "" {
			g.refused[j] = reason
			continue
		}
		if shared {
			g.also, f.stored[j] = append(g.also, j), true
		}
		f.join(g, j)
		for _, i := range g.joined {
			pending = append(pending, f.producers(f.ops[i])...)
		}
		g.joined = nil
	}
	f.record(g)
}

// standsAlone tells whether an operation is a step of the plan and no part of a kernel.
func standsAlone(op *ir.Op) bool {
	c := op.Kind.Info().Class
	return c == ir.ClassControl || c == ir.ClassCollective
}

// join makes an operation a member.
func (f *fuser) join(g *group, j int) {
	g.joined = append(g.joined, j)
	if !g.members[j] {
		g.members[j] = true
		f.memberOf[j] = append(f.memberOf[j], g)
	}
}

// startKind sets the kind of a group by its root.
func (f *fuser) startKind(g *group, op *ir.Op) {
	switch {
	case f.contracts(op):
		g.kind, g.anchor = anchorKind(op), g.root
	case f.reducesRows(op):
		f.makeRows(g, op)
	case f.updates(g.root):
		g.kind = ir.ScatterGroup
	}
}

func (f *fuser) makeRows(g *group, op *ir.Op) {
	g.kind = ir.RowsGroup
	g.full, g.axes = f.entry.Type(op.Operands[0]).Shape, op.Attrs.(*ir.ReduceAttrs).Axes
}

// exclusive tells whether every user of j is in g and nothing else will need j in memory.
func (f *fuser) exclusive(g *group, j int) bool { return f.exclusiveTo(g, g.members, j) }

// exclusiveTo is exclusive for g with other members. Users that may be copied into several
// groups count with all of their own users.
func (f *fuser) exclusiveTo(g *group, members map[int]bool, j int) bool {
	for _, u := range f.users[j] {
		if u < 0 || !members[u] {
			return false
		}
		for _, other := range f.memberOf[u] {
			if other != g && !other.members[j] {
				return false
			}
		}
		if u != g.root && f.repeatable(u) && !f.exclusiveTo(g, members, u) {
			return false
		}
	}
	return true
}

// repeatable tells whether an operation may be copied into the groups of all its users: it costs
// nothing, or it makes elements wider, which are then in memory as they were.
func (f *fuser) repeatable(i int) bool {
	op := f.ops[i]
	return f.free(i) || op.Kind == ir.OpConvert && f.widens(op) && f.entry.Type(op.Operands[0]).DType.IsFloat()
}

// refuse gives the reason for which j cannot join g; empty when it can, and then g has the kind
// that j makes of it. shared: others need its value too.
func (f *fuser) refuse(g *group, j int, shared bool) string {
	op := f.ops[j]
	if standsAlone(op) || len(op.Results) != 1 {
		return "control flow, collectives and operations with several results are steps of their own"
	}
	if len(g.members) >= maxOps {
		return fmt.Sprintf("the kernel has %d operations already", len(g.members))
	}
	if shared && !f.storesToo(g, j) {
		return "its value is needed elsewhere too"
	}
	if f.operandCount(g, j) > maxOperands {
		return fmt.Sprintf("the kernel would read more than %d tensors", maxOperands)
	}
	if anchored(g) {
		if reason := f.refusePrologue(g, j); reason != "" {
			return reason
		}
	}
	if g.kind == ir.ScatterGroup {
		if reason := f.refuseUpdate(g, j); reason != "" {
			return reason
		}
	}
	switch {
	case f.contracts(op):
		return f.refuseContraction(g, j)
	case f.reducesRows(op):
		return f.refuseReduction(g, j)
	case expensive(op):
		return f.refuseSerial(g, j)
	}
	if costly(op) && f.repeated(g, j) && !f.onceARow(g, j) {
		return "it would be computed again for each use of the same element"
	}
	return f.checkRows(g, j)
}

// operandCount is the number of tensors that the group would read with j in it.
func (f *fuser) operandCount(g *group, j int) int {
	seen := map[ir.Value]bool{}
	count := func(i int) {
		for _, v := range f.ops[i].Operands {
			if d, ok := f.def[v]; !ok || !g.members[d] && d != j {
				seen[v] = true
			}
		}
	}
	for i := range g.members {
		count(i)
	}
	count(j)
	return len(seen)
}

// record notes for each neighbour of the group whether it is in the group.
func (f *fuser) record(g *group) {
	members := sortedMembers(g)
	for _, i := range members {
		for _, j := range f.producers(f.ops[i]) {
			d := Decision{Producer: f.name(j), Consumer: f.name(i), Fused: g.members[j]}
			if !d.Fused {
				d.Reason = g.refused[j]
			}
			f.decisions = append(f.decisions, d)
		}
	}
}

func (f *fuser) name(i int) string {
	op := f.ops[i]
	if op.Loc == "" {
		return op.Kind.String()
	}
	return op.Kind.String() + " at " + op.Loc
}

func sortedMembers(g *group) []int {
	members := make([]int, 0, len(g.members))
	for i := range g.members {
		members = append(members, i)
	}
	slices.Sort(members)
	return members
}

// rewrite replaces the block's operations by the kernel operations, in the order of their roots.
func (f *fuser) rewrite() {
	slices.Reverse(f.groups)
	body := f.block
	body.Ops = nil
	for _, g := range f.groups {
		if standsAlone(f.ops[g.root]) {
			body.Ops = append(body.Ops, f.ops[g.root])
			continue
		}
		body.Ops = append(body.Ops, f.kernel(g))
	}
}

// kernel makes the kernel operation of a group, with values of its own inside.
func (f *fuser) kernel(g *group) *ir.Op {
	region := &ir.Block{}
	inside := map[ir.Value]ir.Value{}
	k := &ir.Op{Kind: ir.OpKernel, Attrs: &ir.KernelAttrs{Group: g.kind}, Regions: []*ir.Block{region}, Results: slices.Clone(f.ops[g.root].Results)}
	k.Loc = f.ops[g.root].Loc
	if g.anchor >= 0 {
		k.Loc = f.ops[g.anchor].Loc
	}
	for _, i := range sortedMembers(g) {
		op := *f.ops[i]
		op.Operands = make([]ir.Value, len(f.ops[i].Operands))
		for n, v := range f.ops[i].Operands {
			w, ok := inside[v]
			if !ok {
				w = f.entry.NewValue(f.entry.Type(v))
				inside[v] = w
				region.Params = append(region.Params, w)
				k.Operands = append(k.Operands, v)
			}
			op.Operands[n] = w
		}
		op.Results = make([]ir.Value, len(f.ops[i].Results))
		for n, r := range f.ops[i].Results {
			op.Results[n] = f.entry.NewValue(f.entry.Type(r))
			inside[r] = op.Results[n]
		}
		region.Ops = append(region.Ops, &op)
	}
	for _, i := range g.also {
		k.Results = append(k.Results, f.ops[i].Results...)
	}
	for _, r := range k.Results {
		region.Results = append(region.Results, inside[r])
	}
	return k
}

// materialiseResults gives each result of the entry memory of its own: a copy where it is a
// parameter or another result too.
func materialiseResults(e *ir.Entry) {
	seen := map[ir.Value]bool{}
	for _, v := range e.Body.Params {
		seen[v] = true
	}
	for i, v := range e.Body.Results {
		if seen[v] {
			e.Body.Results[i] = copied(e, &e.Body, v)
		}
		seen[v] = true
	}
}

// materialiseCarried copies the values that a while's body passes from one of its parameters to
// another, so that each can be overwritten when the iteration ends.
func materialiseCarried(e *ir.Entry, body *ir.Block) {
	for i, v := range body.Results {
		if j := slices.Index(body.Params, v); j >= 0 && j != i {
			body.Results[i] = copied(e, body, v)
		}
	}
}

// copied adds a kernel that copies a value.
func copied(e *ir.Entry, b *ir.Block, v ir.Value) ir.Value {
	inner, out := e.NewValue(e.Type(v)), e.NewValue(e.Type(v))
	b.Ops = append(b.Ops, &ir.Op{Kind: ir.OpKernel, Operands: []ir.Value{v}, Results: []ir.Value{out},
		Attrs: &ir.KernelAttrs{}, Regions: []*ir.Block{{Params: []ir.Value{inner}, Results: []ir.Value{inner}}}})
	return out
}
