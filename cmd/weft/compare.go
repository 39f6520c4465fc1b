package main

import (
	"fmt"
	"io"
	"strings"

	"weft/ir/compare"
	"weft/ir/diag"
)

// comparison is a compare.Result for printing.
type comparison struct {
	Equal      bool              `json:"equal"`
	Problem    string            `json:"problem,omitempty"`
	Elements   int64             `json:"elements"`
	Mismatches int64             `json:"mismatches"`
	Absolute   *extreme          `json:"largest_absolute,omitempty"`
	Relative   *extreme          `json:"largest_relative,omitempty"`
	Worst      *extreme          `json:"worst_mismatch,omitempty"`
	Tolerance  compare.Tolerance `json:"tolerance"`
}

type extreme struct {
	Error number  `json:"error"`
	At    []int64 `json:"at"`
	Got   string  `json:"got"`
	Want  string  `json:"want"`
}

func comparisonOf(r compare.Result) *comparison {
	return &comparison{r.Equal(), r.Problem, r.Elements, r.Mismatches, extremeOf(r.Absolute), extremeOf(r.Relative), extremeOf(r.Worst), r.Tolerance}
}

func extremeOf(e compare.Extreme) *extreme {
	if e.Index == nil {
		return nil
	}
	return &extreme{number(e.Error), e.Index, e.Got, e.Want}
}

// compare compares the outputs that the file has expectations for and notes the results in the
// reports, which are in the order of outputs. differs is the error of a mismatch.
func (a *app) compare(reports []outputReport, outputs []output, s signature, expect *tensorFile, f *runFlags) (differs, err error) {
	if names := expect.unexpected(s, outputs); len(names) > 0 {
		d := diag.Errorf(diag.RunInputUnknown, "", "the file expects %q, which is no output of entry %q", names[0], s.Name).In(expect.path)
		for _, o := range outputs {
			d.Note("%s: output %q: %s", o.key, o.name, o.tensor.Type())
		}
		return nil, d
	}
	compared := 0
	var wrong []string
	for i, o := range outputs {
		want := expect.expected(o)
		if want == nil {
			continue
		}
		compared++
		tolerance := compare.Default(o.tensor.DType)
		if f.relativeGiven {
			tolerance.Relative = f.relative
		}
		if f.absoluteGiven {
			tolerance.Absolute = f.absolute
		}
		r := compare.Tensors(o.tensor, want, tolerance)
		reports[i].Comparison = comparisonOf(r)
		if !r.Equal() {
			wrong = append(wrong, o.key)
		}
	}
	if compared == 0 {
		return nil, diag.Errorf(diag.RunInputMissing, "", "the file has no expected value for any output of entry %q", s.Name).In(expect.path).
			Suggest("expected values are named out.N, or as the outputs are")
	}
	if wrong == nil {
		return nil, nil
	}
	return diag.Errorf(diag.OutputsDiffer, "", "outputs differ: %s (%d of %d compared)", strings.Join(wrong, ", "), len(wrong), compared).In(expect.path), nil
}

// printComparisons prints a row an output, and for those that differ where they do most.
func printComparisons(w io.Writer, reports []outputReport) {
	rows := [][]string{{"OUTPUT", "NAME", "TYPE", "MAX ABS ERROR", "AT", "MAX REL ERROR", "AT", "RTOL", "ATOL", "RESULT"}}
	var details []string
	for _, o := range reports {
		row := []string{o.Output, o.Name, o.Type}
		c := o.Comparison
		switch {
		case c == nil:
			row = append(row, "", "", "", "", "", "", "no expected value")
		case c.Problem != "":
			row = append(row, "", "", "", "", "", "", "DIFFERS: "+c.Problem)
		default:
			result := "ok"
			if !c.Equal {
				result = fmt.Sprintf("DIFFERS in %d of %d", c.Mismatches, c.Elements)
				details = append(details, c.detail(o.Output))
			}
			row = append(row, errorText(c.Absolute), indexText(c.Absolute), errorText(c.Relative), indexText(c.Relative),
				fmt.Sprintf("%.3g", c.Tolerance.Relative), fmt.Sprintf("%.3g", c.Tolerance.Absolute), result)
		}
		rows = append(rows, row)
	}
	table(w, rows)
	for _, d := range details {
		fmt.Fprintln(w, d)
	}
}

func errorText(e *extreme) string {
	if e == nil {
		return "0"
	}
	return fmt.Sprintf("%.3g", float64(e.Error))
}

func indexText(e *extreme) string {
	if e == nil {
		return ""
	}
	return indices(e.At)
}

// indices prints an index as tensors are indexed: [1, 4].
func indices(at []int64) string {
	return strings.ReplaceAll(fmt.Sprint(at), " ", ", ")
}
