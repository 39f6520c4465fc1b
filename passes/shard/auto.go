package shard

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// Hardware is what the cost model of --parallel auto knows of the machines.
type Hardware struct {
	FLOPS     float64            // a second, of products in half precision
	Memory    int64              // bytes of a rank
	Bandwidth float64            // of a rank's memory, bytes a second
	Links     map[string]float64 // bytes a second and direction along an axis; DefaultLinks where it says nothing
}

// Links between ranks in bytes a second and direction: within a node of eight as fast as NVLink of
// the fourth generation, between nodes as 400 Gbit/s. Latency is that of one step around a ring.
const (
	nodeRanks    = 8
	nodeLink     = 450e9
	networkLink  = 50e9
	nodeDelay    = 2e-6
	networkDelay = 8e-6
)

// link is the bandwidth and the delay along an axis: the inner axes of a mesh lie within a node.
func (h Hardware) link(m ir.Mesh, axis string) (bandwidth, delay float64) {
	inner := int64(1)
	for _, a := range slices.Backward(m.Axes) {
		inner *= a.Size
		if a.Name == axis {
			break
		}
	}
	bandwidth, delay = networkLink, networkDelay
	if inner <= nodeRanks {
		bandwidth, delay = nodeLink, nodeDelay
	}
	if b, ok := h.Links[axis]; ok {
		bandwidth = b
	}
	return bandwidth, delay
}

// Choice is a set of strategies with what the cost model says of it.
type Choice struct {
	Strategies []Strategy `json:"-"`
	Parallel   string     `json:"parallel"`
	Compute    float64    `json:"compute_seconds"`
	Exchange   float64    `json:"exchange_seconds"`
	Memory     int64      `json:"bytes"` // states, inputs, and the largest values live at a time
	Fits       bool       `json:"fits"`
}

// Seconds is the estimate: half of what is exchanged hides beside computation at best.
func (c Choice) Seconds() float64 { return max(c.Compute, c.Exchange) + 0.5*min(c.Compute, c.Exchange) }

// Auto tries the strategies that an axis can have, partitions the program with each, and picks the
// one that takes the least time among those that fit the memory; of equals the first. The
// choices come back, the best first.
func Auto(p *ir.Program, o Options, h Hardware) ([]Choice, error) {
	var choices []Choice
	for _, strategies := range candidates(p, o.Mesh) {
		q := p.Clone()
		tried := o
		tried.Strategies = strategies
		report, _, err := Run(q, tried)
		if err != nil {
			return nil, err
		}
		c := estimate(q, report, o.Mesh, h)
		c.Strategies = strategies
		texts := make([]string, len(strategies))
		for i, s := range strategies {
			texts[i] = s.String()
		}
		c.Parallel = strings.Join(texts, ",")
		choices = append(choices, c)
	}
	slices.SortStableFunc(choices, func(a, b Choice) int {
		switch {
		case a.Fits != b.Fits:
			return map[bool]int{true: -1, false: 1}[a.Fits]
		case !a.Fits:
			return int(min(max(a.Memory-b.Memory, -1), 1))
		case a.Seconds() < b.Seconds():
			return -1
		case a.Seconds() > b.Seconds():
			return 1
		}
		return 0
	})
	return choices, nil
}

// maxCandidates bounds the search.
const maxCandidates = 64

// candidates lists the combinations of strategies, simple ones first: at most one axis divides
// layers, and one experts where there are any.
func candidates(p *ir.Program, m ir.Mesh) [][]Strategy {
	list := [][]Strategy{nil}
	for _, a := range m.Axes {
		var next [][]Strategy
		for _, name := range []string{"ddp", "fsdp", "tp", "tp+sp", "ep"} {
			s := Strategy{Axes: []string{a.Name}, Name: strings.TrimSuffix(name, "+sp"), Sequence: strings.HasSuffix(name, "+sp")}
			if name == "ep" && !hasExperts(p) {
				continue
			}
			for _, before := range list {
				if !s.batch() && slices.ContainsFunc(before, func(t Strategy) bool { return t.Name == s.Name }) {
					continue
				}
				next = append(next, append(slices.Clip(slices.Clone(before)), s))
			}
		}
		list = next[:min(len(next), maxCandidates)]
	}
	return list
}

func hasExperts(p *ir.Program) bool {
	return slices.ContainsFunc(p.States, func(s ir.State) bool { return strings.Contains(s.Name, "experts") && s.Type.Rank() == 3 })
}

// size is a number of elements or bytes with symbols at a middling value.
func size(p *ir.Program, d ir.Dim) float64 {
	n := d.Bounds(func(name string) (ir.Range, bool) {
		r, _ := p.Range(name)
		at := min(max(64, r.Min), r.Max)
		if strings.HasPrefix(name, "rank.") {
			at = 0
		}
		return ir.Range{Min: at, Max: at}, true
	})
	return float64(n.Max)
}

// estimate prices a partitioned program.
func estimate(p *ir.Program, r *Report, m ir.Mesh, h Hardware) Choice {
	var c Choice
	states := 0.0
	for _, s := range p.States {
		states += size(p, s.Type.Bytes())
	}
	peak := 0.0
	for _, e := range p.Entries {
		c.Compute += compute(p, e, h)
		peak = max(peak, live(p, e)+inputs(p, e))
	}
	for _, x := range r.Collectives {
		c.Exchange += exchange(p, x, m, h)
	}
	c.Memory = int64(min(states+peak, math.MaxInt64/2))
	c.Fits = h.Memory == 0 || c.Memory <= h.Memory
	return c
}

// compute is the time of an entry without exchange: each operation takes as long as its arithmetic
// or its memory traffic. What is elementwise fuses; a third of its traffic counts.
func compute(p *ir.Program, e *ir.Entry, h Hardware) float64 {
	total := 0.0
	e.Body.Walk(func(op *ir.Op) {
		bytes := 0.0
		for _, v := range slices.Concat(op.Operands, op.Results) {
			bytes += size(p, e.Type(v).Bytes())
		}
		shape := func(i int) []ir.Dim { return e.Type(op.Operands[i]).Shape }
		switch a := op.Attrs.(type) {
		case *ir.DotAttrs:
			n := e.Type(op.Results[0]).Numel().MulConst(2)
			for _, axis := range a.LhsContract {
				n = n.Mul(shape(0)[axis])
			}
			total += max(size(p, n)/h.FLOPS, bytes/h.Bandwidth)
		case *ir.ConvolutionAttrs:
			n := e.Type(op.Results[0]).Numel().MulConst(2)
			for _, d := range shape(1)[1:] {
				n = n.Mul(d)
			}
			total += max(size(p, n)/h.FLOPS, bytes/h.Bandwidth)
		case *ir.AttentionAttrs:
			q, k := shape(0), shape(1)
			n := q[0].Mul(q[1]).Mul(q[2]).Mul(k[2]).Mul(q[3]).MulConst(4)
			total += max(size(p, n)/h.FLOPS, bytes/h.Bandwidth)
		default:
			switch op.Kind.Info().Class {
			case ir.ClassElementwise, ir.ClassReduction:
				total += bytes / 3 / h.Bandwidth
			}
		}
	})
	return total
}

// inputs is the size of what the caller gives.
func inputs(p *ir.Program, e *ir.Entry) float64 {
	total := 0.0
	for i, in := range e.Inputs {
		if in.State == "" {
			total += size(p, e.Type(e.Body.Params[i]).Bytes())
		}
	}
	return total
}

// live is the largest sum of values that are in memory at a time, views and what fuses left out.
func live(p *ir.Program, e *ir.Entry) float64 {
	last := map[ir.Value]int{}
	for i, op := range e.Body.Ops {
		for _, v := range op.Operands {
			last[v] = i
		}
	}
	for _, v := range e.Body.Results {
		last[v] = len(e.Body.Ops)
	}
	begins, ends := make([]float64, len(e.Body.Ops)+1), make([]float64, len(e.Body.Ops)+1)
	stored := map[ir.Value]bool{} // states, and what is made of them alone
	for _, v := range e.Body.Params {
		stored[v] = true
	}
	block, before, gathering := 0, 0, false // where the gathers of this block of parameters and of the one before begin
	for i, op := range e.Body.Ops {
		alone := len(op.Operands) > 0
		for _, v := range op.Operands {
			alone = alone && stored[v]
		}
		at := i
		switch {
		case alone && op.Kind == ir.OpAllGather:
			if !gathering {
				before, block = block, i
			}
			gathering, at = true, before // it is on its way while the block before computes
		case alone:
			for _, v := range op.Results {
				stored[v] = true
			}
		case op.Kind.Info().Class != ir.ClassIndex:
			gathering = false
		}
		switch op.Kind.Info().Class {
		case ir.ClassContraction, ir.ClassCollective, ir.ClassReduction:
			for _, v := range op.Results {
				bytes := size(p, e.Type(v).Bytes())
				begins[at] += bytes
				ends[max(i, last[v])] += bytes
			}
		}
	}
	now, peak := 0.0, 0.0
	for i := range begins {
		now += begins[i]
		peak = max(peak, now)
		now -= ends[i]
	}
	return peak
}

// exchange is the time of a collective by a ring, or by pairs for all_to_all.
func exchange(p *ir.Program, c Collective, m ir.Mesh, h Hardware) float64 {
	k := float64(m.Extent(c.Axes))
	bandwidth, delay := math.Inf(1), 0.0
	for _, axis := range c.Axes {
		b, d := h.link(m, axis)
		bandwidth, delay = min(bandwidth, b), max(delay, d)
	}
	bytes := size(p, c.Type.Bytes()) // of the operand, on one rank
	steps, moved := k-1, bytes*(k-1)/k
	switch c.Kind {
	case "all_reduce":
		steps, moved = 2*(k-1), 2*moved
	case "all_gather":
		moved = bytes * (k - 1)
	}
	// Rings of many ranks are cut into trees: the delay grows with their logarithm.
	return moved/bandwidth + delay*min(steps, 4*math.Log2(k+1))
}

// Explain says why the first choice was taken, a line each choice.
func Explain(choices []Choice, memory int64) *diag.Diagnostic {
	best := choices[0]
	d := diag.Warnf(diag.ChosenParallel, "--parallel", "auto takes %s: %s", best.Parallel, best)
	d.Severity = diag.Note
	if !best.Fits {
		d.Severity = diag.Warning
		d.Message = fmt.Sprintf("no strategy fits %s a rank; auto takes %s, which needs %s", bytesText(memory), best.Parallel, bytesText(best.Memory))
	}
	shown := min(len(choices), 1+maxShown)
	for _, c := range choices[1:shown] {
		text := c.String()
		if !c.Fits {
			text = "does not fit: " + text
		}
		d.Note("%s: %s", c.Parallel, text)
	}
	if left := len(choices) - shown; left > 0 {
		d.Note("%d more, none of them better, are in the artifact's report.json", left)
	}
	return d
}

// maxShown is how many choices Explain lists beside the one that was taken.
const maxShown = 15

// String says what the cost model thinks of the choice.
func (c Choice) String() string {
	return fmt.Sprintf("%s (%s computing, %s exchanging), %s a rank", duration(c.Seconds()), duration(c.Compute), duration(c.Exchange), bytesText(c.Memory))
}

// duration is a time with three digits.
func duration(seconds float64) string {
	switch {
	case seconds >= 1:
		return fmt.Sprintf("%.3g s", seconds)
	case seconds >= 1e-3:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	}
	return fmt.Sprintf("%.3g us", seconds*1e6)
}

// bytesText is a size with three digits, in the units of --memory-limit.
func bytesText(n int64) string {
	switch v := float64(n); {
	case v >= 1e9:
		return fmt.Sprintf("%.3g GB", v/1e9)
	case v >= 1e6:
		return fmt.Sprintf("%.3g MB", v/1e6)
	}
	return fmt.Sprintf("%.3g kB", float64(n)/1e3)
}

// ParseLinks reads bandwidths between ranks: "dp=50,tp=450", in GB/s along an axis.
func ParseLinks(text string, m ir.Mesh) (map[string]float64, error) {
	links := map[string]float64{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		axis, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		v, err := strconv.ParseFloat(value, 64)
		if _, ok := m.Axis(axis); !ok || err != nil || !(v > 0) || math.IsInf(v, 0) {
			return nil, diag.Errorf(diag.BadMesh, "", "%q is no bandwidth of an axis of the mesh %s", part, m).Suggest("write GB/s by axis, as in dp=50,tp=450")
		}
		links[axis] = v * 1e9
	}
	return links, nil
}
