package main

import (
	"fmt"
	"slices"
	"strings"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
	"weft/ir/plan"
)

// mesh is that of the ranks that an artifact, or program text, is for.
func (m *model) mesh() ir.Mesh {
	if m.artifact != nil {
		return m.artifact.Manifest.Mesh.Program()
	}
	return m.program.Mesh
}

// shardings are how ranks divide the inputs or outputs of an entry, by name; those that each has
// whole are left out.
func (m *model) shardings(entry string) (inputs, outputs map[string]string) {
	inputs, outputs = map[string]string{}, map[string]string{}
	note := func(to map[string]string, name, shard string) {
		if shard != "" {
			to[name] = shard
		}
	}
	if m.artifact == nil {
		e := m.program.Entry(entry)
		for _, in := range e.Inputs {
			note(inputs, in.Name, shardText(in.Shard))
		}
		for _, out := range e.Outputs {
			note(outputs, out.Name, shardText(out.Shard))
		}
		return inputs, outputs
	}
	for _, e := range m.artifact.Manifest.Entries {
		if e.Name != entry {
			continue
		}
		for _, in := range e.Inputs {
			note(inputs, in.Name, in.Shard)
		}
		for _, out := range e.Outputs {
			note(outputs, out.Name, out.Shard)
		}
	}
	return inputs, outputs
}

func shardText(s ir.Sharding) string {
	if s == nil {
		return ""
	}
	return s.String()
}

// checkRank checks --rank.
func (f *inspectFlags) checkRank(m *model) error {
	if f.rank < 0 {
		return nil
	}
	if ranks := m.mesh().Size(); f.rank >= ranks {
		return diag.Errorf(diag.WrongRanks, "--rank", "there is no rank %d: the mesh %q has %d", f.rank, m.mesh(), ranks)
	}
	return nil
}

// rankReport is what one rank holds.
type rankReport struct {
	Rank        int64            `json:"rank"`
	Mesh        string           `json:"mesh"`
	Coordinates map[string]int64 `json:"coordinates"`
	States      []rankState      `json:"states"`
	Bytes       int64            `json:"state_bytes"`
}

type rankState struct {
	Name  string `json:"name"`
	Type  string `json:"type"`            // of the global tensor
	Shard string `json:"shard,omitempty"` // how ranks divide it
	Local string `json:"local_type"`
	Part  string `json:"part"` // the ranges of the global dims, padding left out
	Bytes int64  `json:"bytes"`
}

func (a *app) inspectRank(m *model, f *inspectFlags) error {
	r := rankReport{Rank: f.rank, Mesh: m.mesh().String(), Coordinates: map[string]int64{}, States: []rankState{}}
	for _, axis := range m.mesh().Axes {
		r.Coordinates[axis.Name] = m.mesh().Coordinate(f.rank, axis.Name)
	}
	for _, s := range m.statesOf() {
		state, err := stateOfRank(s, m.mesh(), f.rank)
		if err != nil {
			return err
		}
		r.States = append(r.States, state)
		r.Bytes += state.Bytes
	}
	if f.asJSON {
		return a.printJSON(r)
	}
	var at []string
	for _, axis := range m.mesh().Axes {
		at = append(at, fmt.Sprintf("%s=%d", axis.Name, r.Coordinates[axis.Name]))
	}
	a.printf("rank %d of mesh %s: %s\n", r.Rank, r.Mesh, strings.Join(at, ","))
	rows := [][]string{{"STATE", "TYPE", "DIVIDED", "ON THE RANK", "PART", "BYTES"}}
	for _, s := range r.States {
		rows = append(rows, []string{s.Name, s.Type, s.Shard, s.Local, s.Part, fmt.Sprint(s.Bytes)})
	}
	table(a.stdout, rows)
	a.printf("total %s\n", bytesText(r.Bytes))
	return nil
}

// dividedState is a state with the type of its global tensor.
type dividedState struct {
	name  string
	typ   ir.Type
	shard ir.Sharding
}

// statesOf lists the states that have a value before the program runs, and how ranks divide them.
func (m *model) statesOf() []dividedState {
	var list []dividedState
	divided := map[string]ir.Sharding{}
	if m.artifact != nil {
		for _, s := range m.artifact.Manifest.State {
			divided[s.Name] = s.Sharding()
		}
	}
	for _, s := range m.program.States {
		d := dividedState{s.Name, globalType(s.Type, s.Shard), s.Shard}
		if shard, known := divided[s.Name]; known {
			d.shard = shard
		}
		if s.Kind != ir.Prepared {
			list = append(list, d)
		}
	}
	return list
}

// stateOfRank is what a rank has of a state.
func stateOfRank(s dividedState, m ir.Mesh, rank int64) (rankState, error) {
	out := rankState{Name: s.name, Type: s.typ.String(), Shard: shardText(s.shard)}
	shard := s.shard
	if shard == nil {
		shard = ir.Replicated(s.typ.Shape)
	}
	local := ir.TensorOf(s.typ.DType, shard.Local(m)...)
	out.Local = local.String()
	out.Bytes, _ = local.Bytes().IsConst()
	var parts []string
	for _, dim := range shard {
		var ranges []string
		for _, p := range dim {
			l, err := mesh.Bind(ir.Sharding{{p}}, m, rank, nil)
			if err != nil {
				return out, err
			}
			first, count := int64(0), int64(0)
			l.Runs(func(global, _, n int64) { first, count = global, n })
			ranges = append(ranges, fmt.Sprintf("%d..%d", first, first+count))
		}
		text := strings.Join(ranges, ", ")
		if len(ranges) != 1 {
			text = "(" + text + ")"
		}
		parts = append(parts, text)
	}
	out.Part = "[" + strings.Join(parts, ", ") + "]"
	return out, nil
}

// commReport is the collectives of a plan.
type commReport struct {
	Target      string           `json:"target"`
	Entry       string           `json:"entry"`
	Dims        map[string]int64 `json:"dims"`
	Collectives []collectiveInfo `json:"collectives"`
	Bytes       int64            `json:"bytes"` // given by one rank in a run; steps in an if or while count once
}

type collectiveInfo struct {
	Step    int      `json:"step"`
	Kind    string   `json:"kind"`
	Combine string   `json:"combine,omitempty"`
	Axes    []string `json:"axes"`
	Ranks   int64    `json:"ranks"`
	DType   string   `json:"dtype"`
	Bytes   int64    `json:"bytes"` // that one rank gives
	Label   string   `json:"label,omitempty"`
}

func (a *app) inspectComm(m *model, f *inspectFlags) error {
	reports := []commReport{}
	err := m.eachBound(f, func(p *plan.Plan, bound *plan.Bound, dims map[string]int64) error {
		r := commReport{Target: p.Target, Entry: p.Entry, Dims: dims, Collectives: []collectiveInfo{}}
		for i, s := range p.Flat() {
			if c := s.Collective; c != nil {
				r.Collectives = append(r.Collectives, collectiveInfo{i, c.Kind, c.Combine, c.Axes, c.Ranks, c.DType, bound.Sizes[c.From], c.Label})
				r.Bytes += bound.Sizes[c.From]
			}
		}
		reports = append(reports, r)
		return nil
	})
	if err != nil {
		return err
	}
	return printReports(a, reports, f.asJSON, a.printComm)
}

func (a *app) printComm(r commReport) {
	a.printf("entry %s for %s%s: %s, a rank gives %s\n", r.Entry, r.Target, withDims(r.Dims), plural(len(r.Collectives), "collective"), bytesText(r.Bytes))
	if len(r.Collectives) == 0 {
		return
	}
	rows := [][]string{{"STEP", "COLLECTIVE", "OVER", "RANKS", "TYPE", "BYTES", "WHERE FROM"}}
	for _, c := range r.Collectives {
		kind := c.Kind
		if c.Combine != "" {
			kind += " " + c.Combine
		}
		rows = append(rows, []string{fmt.Sprint(c.Step), kind, strings.Join(c.Axes, ","), fmt.Sprint(c.Ranks), c.DType, fmt.Sprint(c.Bytes), c.Label})
	}
	table(a.stdout, rows)
}

// withDims says with which sizes something was computed; coordinates of ranks are left out.
func withDims(dims map[string]int64) string {
	var texts []string
	for name, size := range dims {
		if !strings.HasPrefix(name, ir.RankSymbol("")) {
			texts = append(texts, fmt.Sprintf("%s=%d", name, size))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	slices.Sort(texts)
	return " with " + strings.Join(texts, ", ")
}
