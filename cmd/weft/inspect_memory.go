package main

import (
	"fmt"
	"slices"
	"strings"

	"weft/ir/plan"
)

// memoryReport is the memory of one plan with sizes for its dims.
type memoryReport struct {
	Target  string           `json:"target"`
	Entry   string           `json:"entry"`
	Dims    map[string]int64 `json:"dims"`
	Arena   int64            `json:"arena_bytes"`
	Formula string           `json:"arena_formula,omitempty"`
	Peak    int64            `json:"peak_live_bytes"`
	Inputs  int64            `json:"input_bytes"`
	Outputs int64            `json:"output_bytes"`
	States  int64            `json:"state_bytes"`
	Total   int64            `json:"total_bytes"`
	Live    []int64          `json:"live_bytes"` // in the arena, by step
	Steps   []string         `json:"steps"`
}

func (a *app) inspectMemory(m *model, f *inspectFlags) error {
	reports := []memoryReport{}
	err := m.eachBound(f, func(p *plan.Plan, bound *plan.Bound, dims map[string]int64) error {
		mem := bound.Memory()
		r := memoryReport{p.Target, p.Entry, dims, mem.Arena, "", mem.Peak, mem.Inputs, mem.Outputs, mem.States, mem.Total(), mem.Live, []string{}}
		if d, ok := p.ArenaSize(); ok && withDims(dims) != "" {
			r.Formula = d.String()
		}
		for _, s := range p.Flat() {
			r.Steps = append(r.Steps, stepText(s))
		}
		reports = append(reports, r)
		return nil
	})
	if err != nil {
		return err
	}
	return printReports(a, reports, f.asJSON, a.printMemory)
}

func stepText(s plan.Step) string {
	switch {
	case s.Launch != nil && s.Launch.Label != "":
		return s.Launch.Label
	case s.Launch != nil:
		return s.Launch.Kernel
	case s.Copy != nil:
		return "copy"
	case s.Fill != nil:
		return "fill"
	case s.If != nil:
		return "if"
	case s.Collective != nil:
		return strings.TrimSpace(s.Collective.Kind + " " + s.Collective.Label)
	case s.While != nil:
		return "while"
	}
	return s.String()
}

func (a *app) printMemory(r memoryReport) {
	a.printf("entry %s for %s%s: %s\n", r.Entry, r.Target, withDims(r.Dims), bytesText(r.Total))
	a.printf("  states %s, inputs %s, outputs %s, arena %s\n", bytesText(r.States), bytesText(r.Inputs), bytesText(r.Outputs), bytesText(r.Arena))
	if r.Formula != "" {
		a.printf("  arena = %s\n", r.Formula)
	}
	a.printf("%s", chart(r.Live, r.Steps))
}

const (
	chartRows  = 40
	chartWidth = 40
)

// chart draws the arena bytes in use over the steps, one bar a line. Many steps share a line,
// which shows the largest of them.
func chart(live []int64, labels []string) string {
	if len(live) == 0 {
		return ""
	}
	perRow := (len(live)-1)/chartRows + 1
	peak := max(1, slices.Max(live))
	var b strings.Builder
	for start := 0; start < len(live); start += perRow {
		end := min(start+perRow, len(live))
		largest := start
		for i := start; i < end; i++ {
			if live[i] > live[largest] {
				largest = i
			}
		}
		v := live[largest]
		mark := ""
		if v == peak && slices.Index(live, peak) == largest {
			mark = "  <- peak"
		}
		bar := strings.Repeat("#", int(float64(v)/float64(peak)*chartWidth+0.5))
		fmt.Fprintf(&b, "%5d |%-*s| %10s  %s%s\n", largest, chartWidth, bar, bytesText(v), clip(labels[largest], 60), mark)
	}
	return b.String()
}

// clip shortens text to n runes.
func clip(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}
