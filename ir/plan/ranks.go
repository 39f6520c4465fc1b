package plan

// The rules of the ranks of a mesh. All ranks run one plan, so each issues the collectives in the
// plan's order; what remains to be proven is that all ranks of a group issue each of them, equally
// often. Then no rank waits for ever: of the collectives that are waited for, look at the one that
// comes first in the order of steps and iterations. All ranks of its group issue it, and none of
// them waits for an earlier one, so all come. That asynchronous collectives run on a stream of
// their own changes nothing: they start in the same order on all ranks, before what waits for
// them (P17). None of it depends on how many ranks there are.
//
//	P18  A collective inside an if or a while runs on all ranks of its group or on none: no
//	     decision around it differs between ranks along its axes. (Ranks of other groups may decide
//	     otherwise.) A decision differs along an axis if its predicate may be made from a rank's
//	     coordinate on it, from a tensor that is divided over it, or from what collectives
//	     give each rank of its own; all_reduce and all_gather make values equal along their axes.
//	P19  Collectives of one channel, where it is not 0, agree in kind, axes, element type,
//	     combination and pairs.
//	P20  Ranks with different plans (VerifyPeers): the plans agree in mesh, dims, inputs and outputs, and
//	     the ranks of each group issue the same collectives in an order in which none waits for ever.

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
)

// VerifyRanks proves P18 and P19 for every rank of the mesh at once, whatever its size. The plans are
// verified ones of the entries of one artifact for one target, which share states. The error is
// a diag.List of at most 20 diagnostics (W5005), each with a counter-example: which ranks wait
// for what, at which step.
func VerifyRanks(plans ...*Plan) error {
	if len(plans) == 0 {
		return nil
	}
	v := &rankVerifier{plans: plans, mesh: plans[0].MeshOf()}
	for _, p := range plans[1:] {
		if !slices.Equal(p.Mesh, plans[0].Mesh) {
			return diag.List{diag.Errorf(diag.RanksDisagree, entryPlace(p), "the plan is for the mesh %q, that of entry %q for %q", p.MeshOf(), plans[0].Entry, v.mesh)}
		}
	}
	if v.mesh.Size() == 1 || !slices.ContainsFunc(plans, (*Plan).communicates) {
		return nil
	}
	v.uniform = newUniformity(plans)
	for i, p := range plans {
		v.plan, v.next, v.channels = i, 0, map[int64]channelUse{}
		v.list(p.Steps, nil)
	}
	return v.faults.Err()
}

// communicates tells whether ranks meet.
func (p *Plan) communicates() bool {
	found := false
	for _, s := range p.Steps {
		s.each(func(inner Step, _ bool) { found = found || inner.Collective != nil })
	}
	return found
}

func entryPlace(p *Plan) string { return fmt.Sprintf("entry %q", p.Entry) }

type rankVerifier struct {
	plans   []*Plan
	mesh    ir.Mesh
	uniform *uniformity
	faults  diag.List

	plan, next int // the plan, and the number of the next step
	channels   map[int64]channelUse
}

type channelUse struct {
	step int
	c    *Collective
}

func (v *rankVerifier) fail(rule, step int, format string, args ...any) *diag.Diagnostic {
	place := at("step", step)
	if len(v.plans) > 1 {
		place = entryPlace(v.plans[v.plan]) + ", " + place
	}
	d := diag.Errorf(diag.RanksDisagree, place, "P%d: %s", rule, fmt.Sprintf(format, args...))
	v.faults = append(v.faults, d)
	return d
}

// decision is an if or a while around a step.
type decision struct {
	step, predicate int
	what            string // what keeps a rank from the step
}

func (v *rankVerifier) list(list []Step, around []decision) {
	for _, s := range list {
		number := v.next
		v.next++
		switch {
		case len(v.faults) == maxFaults:
			return
		case s.Collective != nil:
			if v.agreed(number, s.Collective, around) {
				v.channel(number, s.Collective)
			}
		case s.If != nil:
			skips := fmt.Sprintf("the if of step %d takes its else branch there", number)
			v.list(s.If.Then, append(around, decision{number, s.If.Predicate, skips}))
			skips = fmt.Sprintf("the if of step %d takes its then branch there", number)
			v.list(s.If.Else, append(around, decision{number, s.If.Predicate, skips}))
		case s.While != nil:
			ends := fmt.Sprintf("the while of step %d ends an iteration earlier there", number)
			inside := append(around, decision{number, s.While.Predicate, ends})
			v.list(s.While.Condition, inside)
			v.list(s.While.Body, inside)
		}
	}
}

// agreed checks P18 for a collective.
func (v *rankVerifier) agreed(number int, c *Collective, around []decision) bool {
	u := v.uniform
	axes := u.set(c.Axes)
	for _, d := range around {
		read := u.predicate[u.step[v.plan]+d.step]
		common := axes & u.differs[read]
		if common == 0 {
			continue
		}
		axis := common & -common
		name := u.axes[bits.TrailingZeros32(uint32(axis))]
		fault := v.fail(18, number, "%s over %s where ranks along %s may decide differently", c.Kind, strings.Join(c.Axes, ","), name)
		waits, skips := v.mesh.Group(0, []string{name})[1], int64(0)
		fault.Note("%s waits at step %d: %s with %s", rankText(v.mesh, waits), number, c.brief(), ranksText(others(v.mesh.Group(waits, c.Axes), waits)))
		fault.Note("%s skips it when %s", rankText(v.mesh, skips), d.what)
		fault.Note("buffer %d, the predicate, may differ along %s: %s", d.predicate, name, u.explain(v.plan, read, axis))
		return false
	}
	return true
}

// channel checks P19 for a collective.
func (v *rankVerifier) channel(number int, c *Collective) {
	first, used := v.channels[c.Channel]
	switch {
	case c.Channel == 0:
	case !used:
		v.channels[c.Channel] = channelUse{number, c}
	default:
		if what := c.differs(first.c); what != "" {
			all := ranksText(v.mesh.Group(0, c.Axes))
			v.fail(19, number, "channel %d is that of step %d too, with another %s", c.Channel, first.step, what).
				Note("%s wait at step %d: %s", all, number, c.brief()).
				Note("the channel was opened at step %d: %s", first.step, first.c.brief())
		}
	}
}

// differs names the first thing in which two collectives differ; "" for none.
func (c *Collective) differs(o *Collective) string {
	switch {
	case c.Kind != o.Kind:
		return "kind"
	case !slices.Equal(c.Axes, o.Axes):
		return "axes"
	case c.DType != o.DType:
		return "element type"
	case c.Combine != o.Combine:
		return "combination"
	case !slices.Equal(c.Pairs, o.Pairs):
		return "pairs"
	}
	return ""
}

// brief describes the collective in a trace.
func (c *Collective) brief() string {
	s := c.Kind + " of " + c.DType
	if c.Combine != "" {
		s += " by " + c.Combine
	}
	if c.Channel != 0 {
		s += fmt.Sprintf(" channel %d", c.Channel)
	}
	s += " over " + strings.Join(c.Axes, ",")
	if c.Label != "" {
		s += " (" + c.Label + ")"
	}
	return s
}

// rankText names a rank with its coordinates: "rank 3 (dp=1,tp=1)".
func rankText(m ir.Mesh, rank int64) string {
	at := mesh.Coordinates(m, rank)
	var parts []string
	for _, a := range m.Axes {
		parts = append(parts, fmt.Sprintf("%s=%d", a.Name, at[ir.RankSymbol(a.Name)]))
	}
	return fmt.Sprintf("rank %d (%s)", rank, strings.Join(parts, ","))
}

// ranksText lists ranks, the first few of many.
func ranksText(ranks []int64) string {
	const most = 8
	var parts []string
	for i, r := range ranks {
		if i == most {
			parts = append(parts, fmt.Sprintf("... (%d in all)", len(ranks)))
			break
		}
		parts = append(parts, fmt.Sprint(r))
	}
	if len(ranks) == 1 {
		return "rank " + parts[0]
	}
	return "ranks " + strings.Join(parts, ", ")
}

// others is a group without one of its ranks.
func others(group []int64, rank int64) []int64 {
	return slices.DeleteFunc(slices.Clone(group), func(r int64) bool { return r == rank })
}
