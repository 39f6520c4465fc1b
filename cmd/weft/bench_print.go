package main

import (
	"fmt"
	"strings"

	"weft/runtime/bench"
)

// print prints a measurement for people: checks before times.
func (r *benchRun) print(correct bool) {
	p := r.report
	r.printf("entry %s on %s\n", p.Entry, p.Device)
	var inputs []string
	for _, in := range p.Inputs {
		inputs = append(inputs, fmt.Sprintf("%q %s", in.Name, in.Type))
	}
	how := "given"
	if p.Random {
		how = "random"
	}
	r.printf("inputs (%s): %s\n", how, strings.Join(inputs, ", "))
	if r.flags.expect != "" {
		printComparisons(r.stdout, p.Outputs)
	}
	if p.Torch != nil {
		r.printChecks(p.Torch)
	}
	if !correct {
		r.printf("THE OUTPUTS ARE WRONG\n")
		if p.Step.Count == 0 {
			return
		}
	}
	r.printf("step: median %s ms (%s to %s) of %d, %s; %s, arena %s", msText(p.Step.Median), msText(p.Step.Min), msText(p.Step.Max),
		p.Step.Count, p.Clock, launchesText(p.Launches), bytesText(p.Arena))
	if p.FLOPs > 0 {
		r.printf("; contractions %.3g GFLOP, %.3g TFLOP/s", float64(p.FLOPs)/1e9, float64(p.FLOPs)/p.Step.Median/1e9)
	}
	r.printf("\n")
	if p.Kernels != nil {
		r.printKernels(p.Kernels)
	}
	if p.Torch != nil {
		r.printModes(p.Torch)
	}
}

func launchesText(n int) string {
	if n == 1 {
		return "1 launch"
	}
	return fmt.Sprintf("%d launches", n)
}

// msText prints milliseconds with four significant digits.
func msText(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	case v >= 10:
		return fmt.Sprintf("%.2f", v)
	case v >= 1:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func (r *benchRun) printKernels(kernels []bench.Kernel) {
	rows := [][]string{{"SHARE", "MS A STEP", "COUNT", "MS", "GB/S", "TFLOP/S", "GRID", "BLOCK", "KERNEL", "COMPUTES"}}
	total := 0.0
	for _, k := range kernels {
		grid := fmt.Sprintf("%d×%d×%d", k.Grid[0], k.Grid[1], k.Grid[2])
		row := []string{"", "", fmt.Sprint(k.Count), "", "", "", grid, fmt.Sprint(k.Block), k.Name, k.Label}
		if k.Error != "" {
			row[9] = "not measured: " + firstLine(k.Error)
		} else {
			inStep := k.Times.Median * float64(k.Count)
			total += inStep
			row[0], row[1], row[3] = fmt.Sprintf("%.1f %%", 100*k.Share), msText(inStep), msText(k.Times.Median)
			row[4] = fmt.Sprintf("%.3g", k.GBs())
			if k.FLOPs > 0 {
				row[5] = fmt.Sprintf("%.3g", k.TFLOPs())
			}
		}
		rows = append(rows, row)
	}
	table(r.stdout, rows)
	r.printf("sum of kernels: %s ms\n", msText(total))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

func (r *benchRun) printChecks(t *bench.TorchReport) {
	rows := [][]string{{"OUTPUTS OF", "MAX ERROR", "RMS ERROR", "RELATIVE RMS", "OUT OF TOLERANCE", "RESULT"}}
	for _, c := range t.Checks {
		result := "ok"
		if !c.Agrees {
			result = "DIFFER"
		}
		rows = append(rows, []string{c.Who, errorCell(c.Max), errorCell(c.RMS), errorCell(c.Relative), fmt.Sprintf("%d of %d", c.Outside, c.Elements), result})
	}
	if len(t.Checks) > 0 {
		table(r.stdout, rows)
	}
	for _, n := range t.Notes {
		r.printf("note: %s\n", n)
	}
}

func errorCell(v any) string {
	if f, ok := v.(float64); ok {
		return fmt.Sprintf("%.3g", f)
	}
	return fmt.Sprint(v)
}

func (r *benchRun) printModes(t *bench.TorchReport) {
	r.printf("PyTorch %s on %s\n", t.Version, t.Device)
	rows := [][]string{{"MODE", "MEDIAN MS", "MIN", "MAX", "FIRST CALL S", "PEAK", "TIME BY WEFT'S"}}
	for _, m := range t.Modes {
		if m.Error != "" {
			rows = append(rows, []string{m.Mode, "-", "", "", "", "", m.Error})
			continue
		}
		rows = append(rows, []string{m.Mode, msText(m.Median), msText(m.Min), msText(m.Max), fmt.Sprintf("%.1f", m.First), bytesText(m.Peak),
			fmt.Sprintf("%.3f", r.report.Ratios[m.Mode])})
	}
	table(r.stdout, rows)
	if best := t.Best(); best != nil {
		r.printf("weft is %.3f times as fast as PyTorch's best (%s)\n", r.report.Ratios["best"], best.Mode)
	}
}
