package plan

import (
	"fmt"
	"math/bits"
	"strings"

	"weft/ir"
)

// axisSet is a set of axes of a mesh, a bit each. Axes of one rank have no bit: nothing differs
// along them, and a mesh has at most 20 others.
type axisSet uint32

// uniformity finds along which axes of the mesh what ranks hold may differ. It starts with what
// differs by itself: tensors that ranks divide, the coordinates of ranks, and collectives that
// give each rank another share. From there it follows the plans, whatever the order of their
// steps, until nothing is added: so it holds in every iteration and in every later run, as states
// carry what is in them on. Inputs and states that nothing divides are the same on all ranks when
// a run begins, which is the caller's part.
type uniformity struct {
	plans []*Plan
	axes  []string // by bit
	bit   map[string]axisSet

	// A node is a buffer or a step of a plan, or a state. The set of a step has what its buffers
	// and the decisions around it bring; that of an if or a while, so what its branches differ by.
	// Outside of ifs and whiles an all_reduce in place begins another node for its buffer: the steps
	// before it see what ranks have of their own, those after it the sum.
	differs      []axisSet
	seeds        []axisSet
	edges        [][]carry
	buffer, step []int       // the first of each plan
	predicate    map[int]int // node of the buffer that an if or a while, by its node, reads
	states       map[string]int

	// For an explanation; nil before the first.
	parent map[reached]reached // how a node came to an axis
	flat   [][]Step
}

// carry is a way from one node to another.
type carry struct {
	to     int
	clear  axisSet // axes along which the values are made equal
	spread axisSet // axes that come together: ranks exchange values along all of them
}

// reached is a node that differs along an axis.
type reached struct {
	node int
	axis axisSet
}

// newUniformity analyses plans that share their states, all for one mesh.
func newUniformity(plans []*Plan) *uniformity {
	u := &uniformity{plans: plans, bit: map[string]axisSet{}, states: map[string]int{}, predicate: map[int]int{}}
	for _, a := range plans[0].Mesh {
		if a.Size > 1 {
			u.bit[a.Name] = 1 << len(u.axes)
			u.axes = append(u.axes, a.Name)
		}
	}
	for _, p := range plans {
		u.buffer = append(u.buffer, u.nodes(len(p.Buffers)))
		u.step = append(u.step, u.nodes(p.count()))
		u.plan(p, u.buffer[len(u.buffer)-1], u.step[len(u.step)-1])
	}
	u.propagate()
	return u
}

// nodes adds nodes and gives the first.
func (u *uniformity) nodes(n int) int {
	first := len(u.edges)
	u.edges = append(u.edges, make([][]carry, n)...)
	u.seeds = append(u.seeds, make([]axisSet, n)...)
	return first
}

func (u *uniformity) edge(from, to int) { u.edges[from] = append(u.edges[from], carry{to: to}) }

// count is the number of steps.
func (p *Plan) count() int {
	n := 0
	for _, s := range p.Steps {
		s.each(func(Step, bool) { n++ })
	}
	return n
}

// set is that of some axes.
func (u *uniformity) set(axes []string) (s axisSet) {
	for _, name := range axes {
		s |= u.bit[name]
	}
	return s
}

// coordinates are the axes on which an expression depends.
func (u *uniformity) coordinates(d ir.Dim) (s axisSet) {
	d.Symbols(func(name string) {
		if axis, ok := strings.CutPrefix(name, ir.RankSymbol("")); ok {
			s |= u.bit[axis]
		}
	})
	return s
}

// plan connects the steps of a plan, and its buffers with what they hold when it begins and with states,
// which they read when it begins and are when it ends. first is the node of the first buffer, next that of
// the first step.
func (u *uniformity) plan(p *Plan, first, next int) {
	now := make([]int, len(p.Buffers)) // the nodes of buffers
	for i := range now {
		now[i] = first + i
	}
	u.list(p.Steps, now, &next, -1)
	for i, b := range p.Buffers {
		node := first + i
		u.seeds[node] |= u.coordinates(b.Size)
		var t Tensor
		switch b.Kind {
		case Input:
			t = p.Inputs[b.Index]
			u.seeds[node] |= u.set(t.Sharding().Axes())
		case Output:
			t = p.Outputs[b.Index]
		}
		if t.State == "" {
			continue
		}
		state, known := u.states[t.State]
		if !known {
			state = u.nodes(1)
			u.states[t.State] = state
		}
		u.edge(state, node)
		u.edge(now[i], state)
	}
}

// list connects steps with the buffers that they name, whose nodes are now those, and the decision
// around them. next is the node of the first step.
func (u *uniformity) list(list []Step, now []int, next *int, decision int) {
	for _, s := range list {
		node := *next
		*next++
		if decision >= 0 {
			u.edge(decision, node)
		}
		clear, spread := axisSet(0), axisSet(0)
		switch {
		case s.Launch != nil:
			u.seeds[node] = u.passed(s.Launch)
		case s.Collective != nil:
			clear, spread, u.seeds[node] = u.exchange(s.Collective)
		case s.If != nil:
			u.predicate[node] = now[s.If.Predicate]
		case s.While != nil:
			u.predicate[node] = now[s.While.Predicate]
			u.edge(now[s.While.Predicate], node)
		}
		s.accesses(func(b int, reads, writes bool) {
			if reads {
				u.edges[now[b]] = append(u.edges[now[b]], carry{node, clear, spread})
			}
			if c := s.Collective; writes && c != nil && c.From == c.To && decision < 0 {
				now[b] = u.nodes(1)
			}
			if writes {
				u.edge(node, now[b])
			}
		})
		for _, inner := range s.lists() {
			u.list(inner, now, next, node)
		}
	}
}

// passed are the coordinates that a launch passes on.
func (u *uniformity) passed(l *Launch) (s axisSet) {
	for _, d := range l.Grid {
		s |= u.coordinates(d)
	}
	for _, a := range l.Args {
		s |= u.coordinates(a.Value)
		if a.Map != nil {
			a.Map.Visit(func(d ir.Dim) { s |= u.coordinates(d) })
		}
	}
	return s
}

// exchange says what a collective does to what ranks hold: along its axes it makes values equal,
// makes equal values of different ones come to other ranks, or gives each rank another share.
func (u *uniformity) exchange(c *Collective) (clear, spread, seed axisSet) {
	axes := u.set(c.Axes)
	switch c.Kind {
	case "all_reduce", "all_gather":
		return axes, 0, 0
	case "collective_permute":
		if int64(len(c.Pairs)) == c.Ranks {
			return 0, axes, 0
		}
	}
	return axes, 0, axes // a rank that nobody sends to has zeros
}

// propagate finds the sets of all nodes.
func (u *uniformity) propagate() {
	u.differs = make([]axisSet, len(u.seeds))
	var queue []int
	waits := make([]bool, len(u.seeds))
	add := func(node int, axes axisSet) {
		if u.differs[node] |= axes; !waits[node] {
			waits[node] = true
			queue = append(queue, node)
		}
	}
	for node, axes := range u.seeds {
		if axes != 0 {
			add(node, axes)
		}
	}
	for len(queue) > 0 {
		node := queue[0]
		queue, waits[node] = queue[1:], false
		for _, e := range u.edges[node] {
			has := u.differs[node]
			brings := has &^ e.clear
			if has&e.spread != 0 {
				brings |= e.spread
			}
			if more := brings &^ u.differs[e.to]; more != 0 {
				u.record(node, e, more)
				add(e.to, more)
			}
		}
	}
}

// record keeps where new axes of a node came from.
func (u *uniformity) record(from int, e carry, more axisSet) {
	if u.parent == nil {
		return
	}
	for more != 0 {
		axis := more & -more
		more &^= axis
		source := axis
		if u.differs[from]&axis&^e.clear == 0 {
			source = u.differs[from] & e.spread
			source &= -source
		}
		u.parent[reached{e.to, axis}] = reached{from, source}
	}
}

// explain says why a node differs along an axis: where that begins, and by which steps it comes.
func (u *uniformity) explain(plan, node int, axis axisSet) string {
	if u.parent == nil {
		u.parent = map[reached]reached{}
		for _, p := range u.plans {
			u.flat = append(u.flat, p.Flat())
		}
		u.propagate()
	}
	way := []reached{{node, axis}} // backwards
	for {
		from, ok := u.parent[way[len(way)-1]]
		if !ok {
			break
		}
		way = append(way, from)
	}
	text := u.origin(plan, way[len(way)-1])
	const most = 6
	steps := 0
	for i := len(way) - 2; i > 0; i-- {
		s := u.stepText(plan, way[i].node)
		if s == "" {
			continue
		}
		if steps++; steps > most {
			return text + ", and so on"
		}
		text += ", " + s
	}
	return text
}

// stepText says that the step of a node brings a difference on; "" for a node that is none.
func (u *uniformity) stepText(plan, node int) string {
	i := node - u.step[plan]
	if i < 0 || i >= len(u.flat[plan]) || u.flat[plan][i].Wait != nil {
		return ""
	}
	if s := u.flat[plan][i]; s.If != nil || s.While != nil {
		return fmt.Sprintf("which step %d decides by", i)
	}
	return fmt.Sprintf("which step %d reads", i)
}

// origin says why a node differs by itself.
func (u *uniformity) origin(plan int, at reached) string {
	axis := u.axes[bits.TrailingZeros32(uint32(at.axis))]
	for k, p := range u.plans {
		other := ""
		if k != plan {
			other = fmt.Sprintf(" of entry %q", p.Entry)
		}
		if i := at.node - u.buffer[k]; i >= 0 && i < len(p.Buffers) {
			b := p.Buffers[i]
			if b.Kind == Input && u.set(p.Inputs[b.Index].Sharding().Axes())&at.axis != 0 {
				return fmt.Sprintf("input %d%s, %.100q, is divided over %s", b.Index, other, p.Inputs[b.Index].Name, axis)
			}
			return fmt.Sprintf("buffer %d%s has another size by %s", i, other, ir.RankSymbol(axis))
		}
		if i := at.node - u.step[k]; i >= 0 && i < len(u.flat[k]) {
			if c := u.flat[k][i].Collective; c != nil {
				return fmt.Sprintf("step %d%s, %s, gives each rank along %s another share", i, other, c.Kind, axis)
			}
			return fmt.Sprintf("step %d%s passes %s to a kernel", i, other, ir.RankSymbol(axis))
		}
	}
	panic("BUG: a state that differs by itself")
}
