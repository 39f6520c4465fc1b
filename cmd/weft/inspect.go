package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"weft/codegen/ptx"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/plan"
)

// inspectFlags are the flags of weft inspect.
type inspectFlags struct {
	program, plan, kernels, sizes, memory, fusion, precision, comm, asJSON bool
	rank                                                                   int64
	entry, target                                                          string
	dims                                                                   []string
}

func (a *app) inspectCommand() *cobra.Command {
	f := &inspectFlags{}
	cmd := &cobra.Command{
		Use:   "inspect FILE|ARTIFACT",
		Short: "Show what a model or an artifact holds",
		Long: "inspect shows the entries, dims and weights of a model file or an artifact. Of an artifact it also shows the\n" +
			"launch plans, the kernels, where the bytes are, memory over time, and what was fused.",
		Args: exactly("a FILE or ARTIFACT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			chosen := 0
			for _, set := range []bool{f.program, f.plan, f.kernels, f.sizes, f.memory, f.fusion, f.precision, f.comm} {
				if set {
					chosen++
				}
			}
			if chosen > 1 {
				return usage(cmd, "weft inspect shows one of --program, --plan, --kernels, --sizes, --memory, --fusion, --precision and --comm at a time")
			}
			return a.inspect(cmd, args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.program, "program", false, "the program's text")
	flags.BoolVar(&f.plan, "plan", false, "the launch plans")
	flags.BoolVar(&f.kernels, "kernels", false, "the kernels, and how often each is launched")
	flags.BoolVar(&f.sizes, "sizes", false, "bytes of each part and of the largest weights")
	flags.BoolVar(&f.memory, "memory", false, "memory over time")
	flags.BoolVar(&f.fusion, "fusion", false, "for each pair of neighbours: fused, or why not")
	flags.BoolVar(&f.comm, "comm", false, "the collectives: over which axes, how many bytes, where from")
	flags.BoolVar(&f.precision, "precision", false, "for each operator: in which types it computes, and why")
	flags.Int64Var(&f.rank, "rank", -1, "what rank `N` of the mesh holds")
	flags.StringVar(&f.entry, "entry", "", "only this entry")
	flags.StringVar(&f.target, "target", "", "only this target")
	flags.StringArrayVar(&f.dims, "dim", nil, "size of a dim for --memory: batch=8; repeatable (the smallest)")
	flags.BoolVar(&f.asJSON, "json", false, "print as JSON")
	return cmd
}

func (a *app) inspect(cmd *cobra.Command, arg string, f *inspectFlags) error {
	path, err := a.input(arg)
	if err != nil {
		return err
	}
	m, err := openModel(path, a.warn)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := f.check(m); err != nil {
		return err
	}
	switch {
	case f.program:
		return a.inspectProgram(m, f)
	case m.artifact == nil && (f.plan || f.kernels || f.memory || f.fusion || f.precision || f.comm):
		return usage(cmd, "%s is no artifact: plans and kernels come from a compile", arg).Suggest("compile it, and inspect the artifact")
	case f.plan:
		return a.inspectPlans(m, f)
	case f.kernels:
		return a.inspectKernels(m, f)
	case f.sizes:
		return a.inspectSizes(m, f)
	case f.memory:
		return a.inspectMemory(m, f)
	case f.fusion:
		return a.inspectFusion(m, f)
	case f.comm:
		return a.inspectComm(m, f)
	case f.precision:
		return a.inspectPrecision(m, f)
	}
	if f.rank >= 0 {
		return a.inspectRank(m, f)
	}
	return a.inspectOverview(m, f)
}

// check checks --entry and --target against the model.
func (f *inspectFlags) check(m *model) error {
	var entries []string
	for _, e := range m.program.Entries {
		entries = append(entries, e.Name)
	}
	if f.entry != "" && !slices.Contains(entries, f.entry) {
		return unknown("entry", f.entry, entries)
	}
	if err := f.checkRank(m); err != nil {
		return err
	}
	if targets := m.targets(); f.target != "" && !slices.Contains(targets, f.target) {
		return unknown("target", f.target, targets)
	}
	return nil
}

// targets lists the targets of an artifact; none for a file.
func (m *model) targets() []string {
	var names []string
	if m.artifact != nil {
		for _, t := range m.artifact.Manifest.Targets {
			names = append(names, t.Name)
		}
	}
	return names
}

func (a *app) inspectProgram(m *model, f *inspectFlags) error {
	p := *m.program
	if f.entry != "" {
		p.Entries = []*ir.Entry{p.Entry(f.entry)}
	}
	text := p.String()
	if f.asJSON {
		return a.printJSON(map[string]string{"program": text})
	}
	a.printf("%s", text)
	return nil
}

// eachPlan visits the plans that the flags choose, targets first.
func (m *model) eachPlan(f *inspectFlags, visit func(*plan.Plan) error) error {
	for _, t := range m.artifact.Manifest.Targets {
		if f.target != "" && t.Name != f.target {
			continue
		}
		for _, e := range m.artifact.Manifest.Entries {
			if f.entry != "" && e.Name != f.entry {
				continue
			}
			p, err := readPlan(m.artifact, t.Name, e.Name)
			if err == nil {
				err = visit(p)
			}
			if err != nil {
				return inFile(err, m.path)
			}
		}
	}
	return nil
}

// eachBound visits plans with the dims that the flags give.
func (m *model) eachBound(f *inspectFlags, visit func(*plan.Plan, *plan.Bound, map[string]int64) error) error {
	return m.eachPlan(f, func(p *plan.Plan) error {
		dims, err := f.dimSizes(p)
		if err != nil {
			return err
		}
		bound, err := plan.Bind(p, dims)
		if err != nil {
			return err
		}
		return visit(p, bound, dims)
	})
}

func (a *app) inspectPlans(m *model, f *inspectFlags) error {
	var all []*plan.Plan
	var texts []string
	err := m.eachPlan(f, func(p *plan.Plan) error {
		all = append(all, p)
		texts = append(texts, p.String())
		return nil
	})
	if err != nil {
		return err
	}
	if f.asJSON {
		return a.printJSON(all)
	}
	a.printf("%s", strings.Join(texts, "\n"))
	return nil
}

// targetKernels is the kernels of one target.
type targetKernels struct {
	Target  string         `json:"target"`
	Kernels []launchedInfo `json:"kernels"`
}

type launchedInfo struct {
	kernelInfo
	Launches int      `json:"launches"` // in the plans of all entries
	Labels   []string `json:"labels"`   // what they compute
}

func (a *app) inspectKernels(m *model, f *inspectFlags) error {
	launches := map[string]map[string][]string{} // labels by target and kernel
	err := m.eachPlan(f, func(p *plan.Plan) error {
		if launches[p.Target] == nil {
			launches[p.Target] = map[string][]string{}
		}
		for _, s := range p.Flat() {
			if s.Launch != nil {
				launches[p.Target][s.Launch.Kernel] = append(launches[p.Target][s.Launch.Kernel], s.Launch.Label)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	all := []targetKernels{}
	for _, target := range m.targets() {
		if f.target != "" && target != f.target {
			continue
		}
		text, err := m.artifact.Kernels(target)
		if err != nil {
			return inFile(err, m.path)
		}
		module, err := ptx.Parse(string(text))
		if err != nil {
			return ptxFaults(err, m.path)
		}
		t := targetKernels{Target: target, Kernels: []launchedInfo{}}
		for _, k := range kernelsOf(module) {
			labels := launches[target][k.Name]
			count := len(labels)
			if f.entry != "" && count == 0 {
				continue
			}
			slices.Sort(labels)
			t.Kernels = append(t.Kernels, launchedInfo{k, count, slices.Compact(labels)})
		}
		all = append(all, t)
	}
	if f.asJSON {
		return a.printJSON(all)
	}
	a.printKernels(all)
	return nil
}

func (a *app) printKernels(all []targetKernels) {
	for i, t := range all {
		if i > 0 {
			a.printf("\n")
		}
		a.printf("%s: %s\n", t.Target, plural(len(t.Kernels), "kernel"))
		rows := [][]string{{"KERNEL", "LAUNCHES", "INSTRUCTIONS", "SHARED", "COMPUTES"}}
		for _, k := range t.Kernels {
			label := ""
			if len(k.Labels) > 0 {
				label = k.Labels[0]
			}
			if n := len(k.Labels) - 1; n > 0 {
				label += fmt.Sprintf(" and %d more", n)
			}
			rows = append(rows, []string{k.Name, fmt.Sprint(k.Launches), fmt.Sprint(k.Instructions), bytesText(k.Shared), label})
		}
		table(a.stdout, rows)
	}
}

// fusionPair is an element of report.json's "fusion".
type fusionPair struct {
	Entry    string `json:"entry,omitempty"`
	Producer string `json:"producer"`
	Consumer string `json:"consumer"`
	Fused    bool   `json:"fused"`
	Reason   string `json:"reason,omitempty"`
}

func (a *app) inspectFusion(m *model, f *inspectFlags) error {
	pairs, err := fusionOf(m.artifact.Report())
	if err != nil {
		return diag.Errorf(diag.ArtifactManifest, "report.json", "%v", err).In(m.path).Because(err)
	}
	if f.entry != "" {
		pairs = slices.DeleteFunc(pairs, func(p fusionPair) bool { return p.Entry != "" && p.Entry != f.entry })
	}
	if f.asJSON {
		return a.printJSON(pairs)
	}
	rows := [][]string{{"PRODUCER", "CONSUMER", "FUSED", "WHY NOT"}}
	fused := 0
	for _, p := range pairs {
		yes := "no"
		if p.Fused {
			yes = "yes"
			fused++
		}
		rows = append(rows, []string{p.Producer, p.Consumer, yes, p.Reason})
	}
	table(a.stdout, rows)
	a.printf("%d of %s fused\n", fused, plural(len(pairs), "pair"))
	return nil
}

// fusionOf reads the pairs from a report, a list or a list by entry.
func fusionOf(report []byte) ([]fusionPair, error) {
	var doc struct {
		Fusion json.RawMessage `json:"fusion"`
	}
	pairs := []fusionPair{}
	if err := json.Unmarshal(report, &doc); err != nil || doc.Fusion == nil {
		return pairs, err
	}
	if json.Unmarshal(doc.Fusion, &pairs) == nil {
		return pairs, nil
	}
	var byEntry map[string][]fusionPair
	if err := json.Unmarshal(doc.Fusion, &byEntry); err != nil {
		return nil, err
	}
	pairs = []fusionPair{}
	var entries []string
	for e := range byEntry {
		entries = append(entries, e)
	}
	slices.Sort(entries)
	for _, e := range entries {
		for _, p := range byEntry[e] {
			p.Entry = e
			pairs = append(pairs, p)
		}
	}
	return pairs, nil
}

// dimSizes reads --dim NAME=N for inspect; dims that are not given have their least size, 1 at least.
func (f *inspectFlags) dimSizes(p *plan.Plan) (map[string]int64, error) {
	sizes := map[string]int64{}
	var names []string
	for _, d := range p.Dims {
		sizes[d.Name] = max(1, d.Min, d.Multiple)
		if axis, ok := strings.CutPrefix(d.Name, ir.RankSymbol("")); ok {
			sizes[d.Name] = p.MeshOf().Coordinate(max(0, f.rank), axis)
			continue
		}
		names = append(names, d.Name)
	}
	for _, text := range f.dims {
		name, digits, _ := strings.Cut(text, "=")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n < 0 {
			return nil, diag.Errorf(diag.CommandLine, "", "--dim %q: expected NAME=SIZE", text)
		}
		if _, ok := sizes[name]; !ok {
			return nil, unknown("dim", name, names)
		}
		sizes[name] = n
	}
	return sizes, nil
}
