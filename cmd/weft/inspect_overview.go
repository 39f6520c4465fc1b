package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"weft/ir"
)

// overview is what inspect shows without a choice.
type overview struct {
	File       string         `json:"file"`
	Kind       string         `json:"kind"` // model or artifact
	Digest     string         `json:"digest,omitempty"`
	Weft       string         `json:"weft,omitempty"` // that wrote the artifact
	Entries    []entryInfo    `json:"entries"`
	Dims       []dimInfo      `json:"dims"`
	Mesh       string         `json:"mesh,omitempty"`
	Targets    []targetInfo   `json:"targets,omitempty"`
	States     int            `json:"states"`
	StateBytes int64          `json:"state_bytes"`
	Operations []operationUse `json:"operations"`
}

type entryInfo struct {
	signature
	Operations int `json:"operations"`
	// how ranks divide inputs and outputs, by name
	InputShards  map[string]string `json:"input_shards,omitempty"`
	OutputShards map[string]string `json:"output_shards,omitempty"`
}

type dimInfo struct {
	Name     string `json:"name"`
	Min      int64  `json:"min"`
	Max      int64  `json:"max,omitempty"` // absent: unbounded
	Multiple int64  `json:"multiple,omitempty"`
}

type targetInfo struct {
	Name      string `json:"name"`
	PTX       string `json:"ptx"`
	MinDriver string `json:"min_driver"`
	LLC       string `json:"llc"`
	PTXAS     string `json:"ptxas,omitempty"`
}

type operationUse struct {
	Operator string `json:"operator"`
	Count    int    `json:"count"`
}

func (m *model) overview(f *inspectFlags) overview {
	o := overview{File: m.path, Kind: "model", Entries: []entryInfo{}, Dims: []dimInfo{}, Operations: []operationUse{}, Mesh: m.mesh().String()}
	if m.artifact != nil {
		o.Kind, o.Digest, o.Weft = "artifact", m.artifact.Digest(), m.artifact.Manifest.Weft
		for _, t := range m.artifact.Manifest.Targets {
			o.Targets = append(o.Targets, targetInfo(t))
		}
	}
	for _, s := range m.program.Symbols {
		if strings.HasPrefix(s.Name, ir.RankSymbol("")) {
			continue
		}
		d := dimInfo{Name: s.Name, Min: s.Min}
		if s.Max != ir.NoBound {
			d.Max = s.Max
		}
		if s.Multiple > 1 {
			d.Multiple = s.Multiple
		}
		o.Dims = append(o.Dims, d)
	}
	var counts [ir.NumKinds]int
	for _, e := range m.program.Entries {
		if f.entry != "" && e.Name != f.entry {
			continue
		}
		n := 0
		e.Body.Walk(func(op *ir.Op) { n++; counts[op.Kind]++ })
		info := entryInfo{signature: signatureOf(e), Operations: n}
		info.InputShards, info.OutputShards = m.shardings(e.Name)
		o.Entries = append(o.Entries, info)
	}
	for k, n := range counts {
		if n > 0 {
			o.Operations = append(o.Operations, operationUse{ir.Kind(k).String(), n})
		}
	}
	slices.SortStableFunc(o.Operations, func(a, b operationUse) int { return b.Count - a.Count })
	for _, s := range m.program.States {
		if s.Kind != ir.Prepared {
			bytes, _ := globalType(s.Type, s.Shard).Bytes().IsConst()
			o.States, o.StateBytes = o.States+1, o.StateBytes+bytes
		}
	}
	return o
}

func (a *app) inspectOverview(m *model, f *inspectFlags) error {
	o := m.overview(f)
	if f.asJSON {
		return a.printJSON(o)
	}
	a.printf("%s %s\n", o.Kind, o.File)
	if o.Digest != "" {
		a.printf("sha256 %s, written by weft %s\n", o.Digest, o.Weft)
	}
	for _, t := range o.Targets {
		a.printf("target %s: PTX %s, driver %s or newer, %s\n", t.Name, t.PTX, t.MinDriver, strings.TrimSuffix(t.LLC+", "+t.PTXAS, ", "))
	}
	if o.Mesh != "" {
		a.printf("mesh %s: %s\n", o.Mesh, plural(int(m.mesh().Size()), "rank"))
	}
	for _, d := range o.Dims {
		a.printf("dim %s\n", strings.TrimSpace(d.Name+" "+rangeText(d)))
	}
	for _, e := range o.Entries {
		a.printf("entry %s: %s\n", e.Name, plural(e.Operations, "operation"))
		for i, v := range e.Inputs {
			a.printf("  in.%d %q: %s%s\n", i, v.Name, v.Type, divided(e.InputShards[v.Name]))
		}
		for i, v := range e.Outputs {
			a.printf("  out.%d %q: %s%s\n", i, v.Name, v.Type, divided(e.OutputShards[v.Name]))
		}
		for _, s := range e.Replaced {
			a.printf("  replaces state %q\n", s)
		}
	}
	a.printf("weights: %s, %s\n", plural(o.States, "tensor"), bytesText(o.StateBytes))
	var uses []string
	for _, u := range o.Operations {
		uses = append(uses, fmt.Sprintf("%s %d", u.Operator, u.Count))
	}
	a.printf("operations: %s\n", wrap(listText(uses), 100))
	return nil
}

// divided says how ranks divide a tensor.
func divided(shard string) string {
	if shard == "" {
		return ""
	}
	return " divided " + shard
}

func rangeText(d dimInfo) string {
	text := ""
	switch {
	case d.Max > 0:
		text = fmt.Sprintf("in %d..%d", d.Min, d.Max)
	case d.Min > 0:
		text = fmt.Sprintf("in %d..", d.Min)
	}
	if d.Multiple > 1 {
		text += fmt.Sprintf(" multiple of %d", d.Multiple)
	}
	return text
}

// sizesReport is where the bytes of a model are.
type sizesReport struct {
	Parts  []sizedPart  `json:"parts,omitempty"`
	States []sizedState `json:"states"` // the largest first
	Total  int64        `json:"state_bytes"`
}

type sizedPart struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

type sizedState struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"`
}

const shownStates = 20

func (a *app) inspectSizes(m *model, f *inspectFlags) error {
	r := sizesReport{States: []sizedState{}}
	if m.artifact != nil {
		for _, p := range m.artifact.Manifest.Members {
			r.Parts = append(r.Parts, sizedPart{p.Name, p.Size})
		}
	}
	for _, s := range m.program.States {
		typ := globalType(s.Type, s.Shard)
		bytes, _ := typ.Bytes().IsConst()
		r.States = append(r.States, sizedState{s.Name, typ.String(), string(s.Kind), bytes})
		r.Total += bytes
	}
	slices.SortStableFunc(r.States, func(a, b sizedState) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if f.asJSON {
		return a.printJSON(r)
	}
	if r.Parts != nil {
		rows := [][]string{{"PART", "BYTES"}}
		for _, p := range r.Parts {
			rows = append(rows, []string{p.Name, fmt.Sprint(p.Bytes)})
		}
		table(a.stdout, rows)
		a.printf("\n")
	}
	rows := [][]string{{"STATE", "TYPE", "KIND", "BYTES"}}
	for _, s := range r.States[:min(shownStates, len(r.States))] {
		rows = append(rows, []string{s.Name, s.Type, s.Kind, fmt.Sprint(s.Bytes)})
	}
	table(a.stdout, rows)
	if n := len(r.States) - shownStates; n > 0 {
		a.printf("and %d smaller\n", n)
	}
	a.printf("total %s\n", bytesText(r.Total))
	return nil
}
