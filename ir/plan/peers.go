package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// VerifyPeers proves P1 to P20 for ranks that may have different plans of one entry, as from a
// damaged or mixed set of artifacts: plans[rank] is that of each rank. Each decision is taken to
// be the same on ranks whose plans have it at the same place and prove that it does not differ between
// ranks. A collective holds up its rank until all of its group are at it, also where it is
// asynchronous: an order that works so works on streams too. Ranks that behave alike are looked
// at once, so that the time hangs on the number of distinct plans; equal ones share a pointer at best. The error is a
// diag.List, with which ranks wait for what at which step.
func VerifyPeers(plans []*Plan) error {
	if len(plans) == 0 {
		return nil
	}
	v := &peerVerifier{mesh: plans[0].MeshOf(), class: make([]int, len(plans))}
	if err := v.classify(plans); err != nil {
		return err
	}
	for k := range v.plans {
		if err := v.alone(k); err != nil {
			return err
		}
	}
	if n := v.mesh.Size(); n != int64(len(plans)) {
		return diag.List{diag.Errorf(diag.RanksDisagree, "", "P20: %d ranks have plans for a mesh of %d (%s)", len(plans), n, v.mesh)}
	}
	if len(v.plans) == 1 {
		return nil
	}
	for k := range v.plans[1:] {
		if err := v.sameHeader(k + 1); err != nil {
			return err
		}
	}
	for _, p := range v.plans {
		e := &eventList{}
		e.list(p, p.Steps, "")
		v.events = append(v.events, e.events)
	}
	v.alike()
	if d := v.simulate(); d != nil {
		return diag.List{d}
	}
	return nil
}

type peerVerifier struct {
	mesh  ir.Mesh
	plans []*Plan // the distinct ones
	class []int   // by rank: its plan
	first []int64 // by plan: the first rank that has it
	count []int   // by plan: the ranks that have it

	events [][]event // by plan

	// Ranks of one colour have the same plan, and along any axes of collectives meet ranks of the same colours:
	// they do the same at the same time.
	color   []int // by rank
	lowest  []int64
	members map[string][][]int // by axes and color: the colors in its group, ascending
	atPlan  []int              // by color
}

// event is a collective in the order in which a rank issues them.
type event struct {
	step int
	c    *Collective
	axes string // as a key
	path string // the decisions around it, among those with collectives in them
	size [2]ir.Dim
}

// eventList collects the events of a plan.
type eventList struct {
	events []event
	next   int // step
	inner  int // decisions with collectives in them
}

func (e *eventList) list(p *Plan, list []Step, path string) {
	for _, s := range list {
		number := e.next
		e.next++
		if c := s.Collective; c != nil {
			size := [2]ir.Dim{p.Buffers[c.From].Size, p.Buffers[c.To].Size}
			e.events = append(e.events, event{number, c, strings.Join(c.Axes, ","), path, size})
		}
		lists := s.lists()
		if lists == nil {
			continue
		}
		kind := "if"
		if s.While != nil {
			kind = "while"
		}
		here := fmt.Sprintf("%s/%s %d", path, kind, e.inner)
		before := len(e.events)
		for i, inner := range lists {
			e.list(p, inner, here+[]string{" first", " second"}[i])
		}
		if len(e.events) > before {
			e.inner++
		}
	}
}

// classify finds the distinct plans.
func (v *peerVerifier) classify(plans []*Plan) error {
	known, texts := map[*Plan]int{}, map[string]int{}
	for rank, p := range plans {
		if p == nil {
			return diag.List{diag.Errorf(diag.RanksDisagree, fmt.Sprintf("rank %d", rank), "P20: the rank has no plan")}
		}
		k, seen := known[p]
		if !seen {
			text, err := p.Encode()
			if err != nil {
				return err
			}
			if k, seen = texts[string(text)]; !seen {
				k = len(v.plans)
				texts[string(text)] = k
				v.plans, v.first, v.count = append(v.plans, p), append(v.first, int64(rank)), append(v.count, 0)
			}
			known[p] = k
		}
		v.class[rank] = k
		v.count[k]++
	}
	return nil
}

// alone checks a plan by itself; the places in the error name the ranks that have it.
func (v *peerVerifier) alone(k int) error {
	p := v.plans[k]
	err := Verify(p, nil)
	if err == nil {
		err = VerifyRanks(p)
	}
	if err == nil {
		return nil
	}
	who := rankText(p.MeshOf(), v.first[k])
	if v.count[k] > 1 {
		who = fmt.Sprintf("%d ranks from %s on", v.count[k], who)
	}
	for _, d := range diag.All(err) {
		d.Place = strings.TrimSuffix(who+", "+d.Place, ", ")
	}
	return err
}

// sameHeader compares a plan with the first one.
func (v *peerVerifier) sameHeader(k int) error {
	a, b := v.plans[0], v.plans[k]
	text := func(list []Tensor) string { return fmt.Sprint(list) }
	for _, part := range []struct {
		what        string
		first, this string
	}{
		{"entry", a.Entry, b.Entry}, {"mesh", a.MeshOf().String(), b.MeshOf().String()}, {"dims", fmt.Sprint(a.Dims), fmt.Sprint(b.Dims)},
		{"inputs", text(a.Inputs), text(b.Inputs)}, {"outputs", text(a.Outputs), text(b.Outputs)},
	} {
		if part.first != part.this {
			return diag.List{diag.Errorf(diag.RanksDisagree, rankText(v.mesh, v.first[k]), "P20: the plan has other %s than that of rank 0", part.what).
				Note("rank 0: %.200s", part.first).Note("rank %d: %.200s", v.first[k], part.this)}
		}
	}
	return nil
}

// groups gives each rank the lowest rank of its group along axes.
func groups(m ir.Mesh, axes []string) []int64 {
	of := make([]int64, m.Size())
	stride := int64(1)
	for rank := range of {
		of[rank] = int64(rank)
	}
	for _, a := range slices.Backward(m.Axes) {
		if slices.Contains(axes, a.Name) {
			for rank := range of {
				of[rank] -= int64(rank) / stride % a.Size * stride
			}
		}
		stride *= a.Size
	}
	return of
}

// alike colors the ranks: first by their plans, then as long as it tells more apart by the colors
// that they meet along the axes of some collective.
func (v *peerVerifier) alike() {
	along := map[string][]int64{}
	var keys []string
	for _, list := range v.events {
		for _, e := range list {
			if along[e.axes] == nil {
				along[e.axes] = groups(v.mesh, e.c.Axes)
				keys = append(keys, e.axes)
			}
		}
	}
	v.color = slices.Clone(v.class)
	for colors := len(v.plans); ; {
		met := v.meets(keys, along)
		ids, next := map[string]int{}, make([]int, len(v.color))
		var key []byte
		for rank, c := range v.color {
			key = strconv.AppendInt(key[:0], int64(c), 10)
			for i, axes := range keys {
				key = append(append(key, ' '), met[i][along[axes][rank]]...)
			}
			id, known := ids[string(key)]
			if !known {
				id = len(ids)
				ids[string(key)] = id
			}
			next[rank] = id
		}
		v.color = next
		if len(ids) == colors {
			break
		}
		colors = len(ids)
	}
	v.quotient(keys, along)
}

// meets gives for each of the axes and each group the colors in it, as text.
func (v *peerVerifier) meets(keys []string, along map[string][]int64) []map[int64]string {
	met := make([]map[int64]string, len(keys))
	for i, axes := range keys {
		met[i] = map[int64]string{}
		for group, colors := range v.colorsOf(along[axes]) {
			met[i][group] = fmt.Sprint(colors)
		}
	}
	return met
}

// colorsOf gives the colors of each group, ascending.
func (v *peerVerifier) colorsOf(groups []int64) map[int64][]int {
	sets := map[int64][]int{}
	for rank, group := range groups {
		set := sets[group]
		if i, found := slices.BinarySearch(set, v.color[rank]); !found {
			sets[group] = slices.Insert(set, i, v.color[rank])
		}
	}
	return sets
}

// quotient keeps what the simulation needs to know of colors.
func (v *peerVerifier) quotient(keys []string, along map[string][]int64) {
	for rank, c := range v.color {
		if c == len(v.lowest) { // colors are numbered by their first ranks
			v.lowest, v.atPlan = append(v.lowest, int64(rank)), append(v.atPlan, v.class[rank])
		}
	}
	v.members = map[string][][]int{}
	for _, axes := range keys {
		sets := v.colorsOf(along[axes])
		list := make([][]int, len(v.lowest))
		for c, rank := range v.lowest {
			list[c] = sets[along[axes][rank]]
		}
		v.members[axes] = list
	}
}

// meeting is a group by what it meets along and the first of its colors.
type meeting struct {
	axes  string
	first int
}

// simulate lets the colors go on from collective to collective.
func (v *peerVerifier) simulate() *diag.Diagnostic {
	at := make([]int, len(v.lowest)) // by color: the event it is at
	arrived := map[meeting][]int{}   // the colors that wait
	ready := make([]int, len(at))
	for c := range ready {
		ready[c] = c
	}
	for len(ready) > 0 {
		c := ready[0]
		ready = ready[1:]
		e := v.event(c, at)
		if e == nil {
			continue
		}
		group := v.members[e.axes][c]
		here := meeting{e.axes, group[0]}
		came := append(arrived[here], c)
		if what := e.differs(v.event(came[0], at)); what != "" {
			return v.mismatch(c, came[0], at, what)
		}
		if len(came) < len(group) {
			arrived[here] = came
			continue
		}
		delete(arrived, here)
		for _, o := range group {
			at[o]++
		}
		ready = append(ready, group...)
	}
	for c := range at {
		if v.event(c, at) != nil {
			return v.stuck(c, at)
		}
	}
	return nil
}

// event is where a color is; nil at its end.
func (v *peerVerifier) event(c int, at []int) *event {
	list := v.events[v.atPlan[c]]
	if at[c] == len(list) {
		return nil
	}
	return &list[at[c]]
}

// differs names what keeps two collectives from being one; "" for nothing.
func (e *event) differs(o *event) string {
	switch what := e.c.differs(o.c); {
	case what != "":
		return what
	case e.c.Channel != o.c.Channel:
		return "channel"
	case !e.size[0].Equal(o.size[0]) || !e.size[1].Equal(o.size[1]):
		return "size"
	case e.path != o.path:
		return "decision around it"
	}
	return ""
}

// mismatch reports that ranks of a group are at different collectives. The rank whose plan fewer have is
// named first.
func (v *peerVerifier) mismatch(a, b int, at []int, what string) *diag.Diagnostic {
	if v.count[v.atPlan[a]] > v.count[v.atPlan[b]] || v.count[v.atPlan[a]] == v.count[v.atPlan[b]] && v.lowest[a] < v.lowest[b] {
		a, b = b, a
	}
	rank := v.lowest[a]
	e := v.event(a, at)
	peer := v.peer(rank, e.c.Axes, b)
	d := diag.Errorf(diag.RanksDisagree, fmt.Sprintf("%s, step %d", rankText(v.mesh, rank), e.step),
		"P20: the rank issues a collective with another %s than rank %d, which it meets there", what, peer)
	d.Note("%s", v.waits(rank, a, at)).Note("%s", v.waits(peer, b, at))
	return d
}

// peer is the first rank of a color in the group of a rank.
func (v *peerVerifier) peer(rank int64, axes []string, color int) int64 {
	for _, r := range v.mesh.Group(rank, axes) {
		if v.color[r] == color && r != rank {
			return r
		}
	}
	panic("BUG: a color that is not in the group")
}

// waits says what a rank waits for.
func (v *peerVerifier) waits(rank int64, color int, at []int) string {
	e := v.event(color, at)
	if e == nil {
		return fmt.Sprintf("%s has ended: its plan has no such collective left", rankText(v.mesh, rank))
	}
	text := fmt.Sprintf("%s waits at step %d: %s, %s bytes to %s", rankText(v.mesh, rank), e.step, e.c.brief(), e.size[0], e.size[1])
	if len(e.c.Pairs) > 0 {
		text += fmt.Sprintf(", pairs %v", e.c.Pairs)
	}
	if e.path != "" {
		text += ", inside " + strings.ReplaceAll(strings.TrimPrefix(e.path, "/"), "/", ", ")
	}
	return text + " with " + ranksText(others(v.mesh.Group(rank, e.c.Axes), rank))
}

// stuck reports ranks that wait for one another, or for one that has ended: from rank to rank that is
// waited for, up to one that has ended or was seen before.
func (v *peerVerifier) stuck(c int, at []int) *diag.Diagnostic {
	rank, seen := v.lowest[c], map[int64]int{}
	type waiter struct {
		rank  int64
		color int
	}
	var chain []waiter
	for {
		if start, again := seen[rank]; again {
			chain = chain[start:]
			break
		}
		seen[rank] = len(chain)
		chain = append(chain, waiter{rank, c})
		e := v.event(c, at)
		if e == nil {
			break
		}
		for _, o := range v.members[e.axes][c] {
			if other := v.event(o, at); other == nil || other.axes != e.axes {
				rank, c = v.peer(rank, e.c.Axes, o), o
				break
			}
		}
	}
	const most = 8
	last := chain[len(chain)-1]
	blame := chain[0]
	for _, w := range chain {
		if v.count[v.atPlan[w.color]] < v.count[v.atPlan[blame.color]] {
			blame = w
		}
	}
	place, message := rankText(v.mesh, blame.rank), "P20: ranks wait for each other in a circle"
	if e := v.event(blame.color, at); e != nil {
		place += fmt.Sprintf(", step %d", e.step)
	}
	if v.event(last.color, at) == nil {
		message = fmt.Sprintf("P20: a rank waits for rank %d, which has ended", last.rank)
	}
	d := diag.Errorf(diag.RanksDisagree, place, "%s", message)
	for i, w := range chain {
		if i == most {
			d.Note("and so on: %d more", len(chain)-most)
			break
		}
		d.Note("%s", v.waits(w.rank, w.color, at))
	}
	return d
}
