// Package shard makes one program for all ranks of a mesh out of a whole one: it decides how each
// tensor is divided, from strategies and rules of the user, and rewrites operations to what one
// rank does, with collectives in between. In the terms of the literature: propagation and
// partitioning as in GSPMD (Xu et al., 2021), with factors of dims as in Shardy; the divisions of the
// tensor-parallel strategy are those of Megatron-LM (Shoeybi et al., 2019; with sequence parallelism,
// Korthikanti et al., 2022), those of fsdp ZeRO-3 (Rajbhandari et al., 2020).
package shard

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// Options say how a program is divided.
type Options struct {
	Mesh       ir.Mesh
	Strategies []Strategy
	Auto       *Hardware // choose the strategies for it; nil takes Strategies
	Parameters []Rule    // by name of a state
	Inputs     []Rule    // by name of an input of the caller
}

// Rule gives the tensors that a pattern names axes by dim; an empty list leaves a dim whole. The first
// rule that matches a tensor counts, before any strategy.
type Rule struct {
	Pattern string // as of path.Match, where * also matches dots
	Dims    [][]string
	From    string // where the rule stands, for messages
}

// Report tells what the pass did.
type Report struct {
	Mesh        string       `json:"mesh,omitempty"`
	Choices     []Choice     `json:"choices,omitempty"` // of Auto, the best first
	Collectives []Collective `json:"collectives,omitempty"`
	Notes       diag.List    `json:"-"`
}

// Collective is a collective that the pass inserted.
type Collective struct {
	Kind    string   `json:"kind"`
	Axes    []string `json:"axes"`
	Type    ir.Type  `json:"-"` // of the operand, on one rank
	Loc     string   `json:"loc,omitempty"`
	Why     string   `json:"why"`
	Channel int64    `json:"channel"`
	Entry   string   `json:"entry"`
}

func (r *Report) add(c Collective) { r.Collectives = append(r.Collectives, c) }

func (r *Report) note(code diag.Code, place, format string, args ...any) {
	d := diag.Warnf(code, place, format, args...)
	d.Severity = diag.Note
	r.Notes = append(r.Notes, d)
}

// Run partitions a program. It does nothing for a mesh without axes.
func Run(p *ir.Program, o Options) (*Report, bool, error) {
	report := &Report{}
	if len(o.Mesh.Axes) == 0 {
		return report, false, nil
	}
	if len(p.Mesh.Axes) > 0 {
		changed, err := o.declare(p)
		return report, changed, err
	}
	if err := o.check(p); err != nil {
		return nil, false, err
	}
	if o.Auto != nil {
		h := *o.Auto
		o.Auto = nil
		choices, err := Auto(p, o, h)
		if err != nil {
			return nil, false, err
		}
		o.Strategies, report.Choices = choices[0].Strategies, choices
		report.Notes = append(report.Notes, Explain(choices, h.Memory))
	}
	report.Mesh = o.Mesh.String()
	for _, a := range o.Mesh.Axes {
		s := p.AddSymbol(ir.RankSymbol(a.Name))
		s.Max = a.Size - 1
	}
	pt := &partitioner{program: p, mesh: o.Mesh, options: o.dividing(), report: report, stored: map[string]ir.Sharding{}}
	err := ir.Try(func() { pt.run() })
	return report, true, err
}

// dividing is the options without axes of one rank: they divide nothing, and nothing is exchanged
// along them.
func (o Options) dividing() Options {
	alone := func(axis string) bool { return o.Mesh.Extent([]string{axis}) == 1 }
	strategies := o.Strategies
	o.Strategies = nil
	for _, s := range strategies {
		many := slices.DeleteFunc(slices.Clone(s.Axes), alone)
		switch {
		case len(many) == len(s.Axes):
		case len(many) == 0:
			continue
		case alone(s.Axes[0]): // hsdp with nothing to repeat
			s = Strategy{Axes: many, Name: "fsdp"}
		default: // hsdp with nothing to divide
			s = Strategy{Axes: many, Name: "ddp"}
		}
		o.Strategies = append(o.Strategies, s)
	}
	drop := func(rules []Rule) []Rule {
		var kept []Rule
		for _, r := range rules {
			dims := make([][]string, len(r.Dims))
			for d, axes := range r.Dims {
				dims[d] = slices.DeleteFunc(slices.Clone(axes), alone)
			}
			r.Dims = dims
			kept = append(kept, r)
		}
		return kept
	}
	o.Parameters, o.Inputs = drop(o.Parameters), drop(o.Inputs)
	return o
}

func (pt *partitioner) run() {
	p := pt.program
	var analyses []*analysis
	for _, e := range p.Entries {
		a := newAnalysis(pt, e)
		a.decide()
		analyses = append(analyses, a)
	}
	pt.storeRest()
	for i, a := range analyses {
		p.Entries[i] = a.rewrite()
	}
	p.Mesh = pt.mesh
	for i := range p.States {
		s := &p.States[i]
		if stored := pt.stored[s.Name]; divided(slices.Concat(stored...)) {
			s.Shard = stored
			s.Type = ir.TensorOf(s.Type.DType, stored.Local(pt.mesh)...)
		}
	}
	pt.noteUnused()
}

// storeRest stores the states whole that no entry reads.
func (pt *partitioner) storeRest() {
	for _, s := range pt.program.States {
		if pt.stored[s.Name] == nil {
			pt.stored[s.Name] = ir.Replicated(s.Type.Shape)
		}
	}
}

// noteUnused tells which axes divide nothing.
func (pt *partitioner) noteUnused() {
	used := map[string]bool{}
	note := func(s ir.Sharding) {
		for _, axis := range s.Axes() {
			used[axis] = true
		}
	}
	for _, s := range pt.program.States {
		note(s.Shard)
	}
	for _, e := range pt.program.Entries {
		for _, in := range e.Inputs {
			note(in.Shard)
		}
		for _, out := range e.Outputs {
			note(out.Shard)
		}
	}
	for _, c := range pt.report.Collectives {
		for _, axis := range c.Axes {
			used[axis] = true
		}
	}
	for _, a := range pt.mesh.Axes {
		if !used[a.Name] && a.Size > 1 {
			pt.report.note(diag.NotSharded, "", "axis %s=%d divides nothing: its ranks do the same work", a.Name, a.Size)
		}
	}
	for _, e := range pt.program.Entries {
		pt.noteIdle(e)
	}
}

// noteIdle tells of the first input with a dim of which some ranks have nothing, as of a batch that is smaller than
// their number.
func (pt *partitioner) noteIdle(e *ir.Entry) {
	for i, in := range e.Inputs {
		for _, p := range slices.Concat(in.Shard...) {
			n, ok := p.Size.IsConst()
			ranks := pt.mesh.Extent(p.Axes)
			if in.State != "" || !ok || n == 0 {
				continue
			}
			share := (n + ranks - 1) / ranks
			if idle := ranks - (n+share-1)/share; idle > 0 {
				pt.report.note(diag.NotSharded, inputNames(e, i)[0], "a dim of %d is divided over %d ranks (%s), %d on each: %d without work", n, ranks, strings.Join(p.Axes, ", "), share, idle)
				return
			}
		}
	}
}

// matches tells whether a pattern names a tensor; * matches dots too.
func matches(pattern, name string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, ".", "/"), strings.ReplaceAll(name, ".", "/"))
	if err == nil && ok {
		return true
	}
	ok, err = path.Match(pattern, name)
	return err == nil && ok
}

// check refuses options that contradict the mesh, each other or the program.
func (o Options) check(p *ir.Program) error {
	var errs diag.List
	for _, s := range o.Strategies {
		for _, axis := range s.Axes {
			if _, ok := o.Mesh.Axis(axis); !ok {
				errs = append(errs, diag.Errorf(diag.BadParallel, "", "strategy %s names axis %q, which the mesh %s does not have", s.Name, axis, o.Mesh))
			}
		}
	}
	var states, inputs []string
	shapes := map[string]int{}
	for _, s := range p.States {
		states = append(states, s.Name)
		shapes["state "+s.Name] = s.Type.Rank()
	}
	for _, e := range p.Entries {
		for i, in := range e.Inputs {
			for _, name := range inputNames(e, i) {
				if in.State == "" && !slices.Contains(inputs, name) {
					inputs = append(inputs, name)
					shapes["input "+name] = e.Type(e.Body.Params[i]).Rank()
				}
			}
		}
	}
	errs = append(errs, o.checkRules(o.Parameters, "state ", states, shapes)...)
	errs = append(errs, o.checkRules(o.Inputs, "input ", inputs, shapes)...)
	return errs.Err()
}

func (o Options) checkRules(rules []Rule, what string, names []string, ranks map[string]int) (errs diag.List) {
	taken := map[string]*Rule{} // by tensor: the rule that counts
	for i := range rules {
		r := &rules[i]
		found, counts := false, false
		for _, name := range names {
			if !matches(r.Pattern, name) {
				continue
			}
			if !found && len(r.Dims) != ranks[what+name] {
				errs = append(errs, diag.Errorf(diag.ShardingConflict, r.From, "pattern %q divides %d dims, %s%q has %d", r.Pattern, len(r.Dims), what, name, ranks[what+name]))
			}
			found = true
			if taken[name] == nil {
				taken[name], counts = r, true
			}
		}
		if !found {
			d := diag.Errorf(diag.NoSuchParameter, r.From, "pattern %q matches no %s", r.Pattern, strings.TrimSpace(what))
			if near := diag.Nearest(r.Pattern, alike(r.Pattern, names), 3); len(near) > 0 {
				d.Suggest("did you mean %s?", strings.Join(near, ", "))
			}
			errs = append(errs, d)
		}
		if found && !counts {
			errs = append(errs, shadowed(r, rules[:i], names, taken)...)
		}
		errs = append(errs, o.checkAxes(r)...)
	}
	return errs
}

// shadowed reports a rule that says something else than those before it that take all its tensors.
func shadowed(r *Rule, before []Rule, names []string, taken map[string]*Rule) diag.List {
	for i := range before {
		other := &before[i]
		differs := !slices.EqualFunc(r.Dims, other.Dims, slices.Equal)
		for _, name := range names {
			if differs && taken[name] == other && matches(r.Pattern, name) {
				return diag.List{diag.Errorf(diag.ShardingConflict, r.From, "%q divides what %q has divided in another way: the first rule that matches counts", r.From, other.From).
					Suggest("put the special rule before the general one, or take one of them out")}
			}
		}
	}
	return nil
}

// checkAxes checks that the mesh has the axes of a rule, and that each divides one dim.
func (o Options) checkAxes(r *Rule) (errs diag.List) {
	seen := map[string]bool{}
	for _, axes := range r.Dims {
		for _, axis := range axes {
			if _, ok := o.Mesh.Axis(axis); !ok {
				errs = append(errs, diag.Errorf(diag.ShardingConflict, r.From, "pattern %q divides by axis %q, which the mesh %s does not have", r.Pattern, axis, o.Mesh))
			} else if seen[axis] {
				errs = append(errs, diag.Errorf(diag.ShardingConflict, r.From, "pattern %q divides by axis %q twice: ranks along it have one share each", r.Pattern, axis))
			}
			seen[axis] = true
		}
	}
	return errs
}

// alike gives the names the form of a pattern, for suggestions: * where it has one, and only as many
// parts as it has where it begins or ends with *.
func alike(pattern string, names []string) []string {
	want := strings.Split(pattern, ".")
	var list []string
	for _, name := range names {
		parts := strings.Split(name, ".")
		switch n := len(want); {
		case len(parts) < n:
		case want[0] == "*":
			parts = slices.Clone(parts[len(parts)-n:])
		case want[n-1] == "*":
			parts = slices.Clone(parts[:n])
		}
		for i := range parts {
			if i < len(want) && want[i] == "*" && len(parts) == len(want) {
				parts[i] = "*"
			}
		}
		if text := strings.Join(parts, "."); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// inputNames are the names of an input for rules: that of a state, or the caller's and in.N.
func inputNames(e *ir.Entry, i int) []string {
	if in := e.Inputs[i]; in.State != "" {
		return []string{in.State}
	}
	n := 0
	for _, in := range e.Inputs[:i] {
		if in.State == "" {
			n++
		}
	}
	return []string{e.Inputs[i].Name, fmt.Sprintf("in.%d", n)}
}

// ruleFor is the first rule that gives a tensor one of its names.
func ruleFor(rules []Rule, names ...string) *Rule {
	for i := range rules {
		if slices.ContainsFunc(names, func(name string) bool { return matches(rules[i].Pattern, name) }) {
			return &rules[i]
		}
	}
	return nil
}

// sharding is the division of a shape that a rule asks for.
func (r *Rule) sharding(shape []ir.Dim) ir.Sharding {
	s := ir.Replicated(shape)
	for d, axes := range r.Dims {
		if d < len(s) {
			s[d] = []ir.Part{{Size: shape[d], Axes: axes}}
		}
	}
	return s
}

// ParseRules reads rules: a pattern, "=", and for each dim the axes that divide it, one or several in
// parentheses, or * for none, as in "*.q_proj.weight=[tp, *]" and "in.0=[(dp, fsdp), *]".
func ParseRules(texts []string) ([]Rule, error) {
	var rules []Rule
	for _, text := range texts {
		pattern, dims, ok := strings.Cut(text, "=")
		dims = strings.TrimSpace(dims)
		list, ok2 := parseDims(dims)
		if !ok || !ok2 || pattern == "" {
			return nil, diag.Errorf(diag.BadParallel, "", "%q is not a pattern and how it divides dims", text).
				Suggest("write one entry a dim, as in '*.weight=[tp, *]' or 'in.0=[(dp, fsdp), *]'")
		}
		rules = append(rules, Rule{Pattern: strings.TrimSpace(pattern), Dims: list, From: text})
	}
	return rules, nil
}

func parseDims(text string) (dims [][]string, ok bool) {
	if !strings.HasPrefix(text, "[") || !strings.HasSuffix(text, "]") {
		return nil, false
	}
	text = strings.TrimSpace(text[1 : len(text)-1])
	for text != "" {
		var item string
		if strings.HasPrefix(text, "(") {
			item, text, ok = strings.Cut(text[1:], ")")
			if !ok {
				return nil, false
			}
			text = strings.TrimPrefix(strings.TrimSpace(text), ",")
		} else {
			item, text, _ = strings.Cut(text, ",")
		}
		var axes []string
		for _, axis := range strings.Split(item, ",") {
			if axis = strings.TrimSpace(axis); axis == "" || strings.ContainsAny(axis, "()[]") {
				return nil, false
			} else if axis != "*" {
				axes = append(axes, axis)
			}
		}
		dims, text = append(dims, axes), strings.TrimSpace(text)
	}
	return dims, true
}

// String is the strategy as --parallel has it.
func (s Strategy) String() string {
	text := fmt.Sprintf("%s:%s", strings.Join(s.Axes, "+"), s.Name)
	if s.Sequence {
		text += "+sp"
	}
	return text
}
