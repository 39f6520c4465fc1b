package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"weft/ir/diag"
	"weft/passes/precision"
)

// inspectPrecision shows in which types each operator computes, from an artifact's report.
func (a *app) inspectPrecision(m *model, f *inspectFlags) error {
	var report struct {
		Precision []precision.Row `json:"precision"`
	}
	if err := json.Unmarshal(m.artifact.Report(), &report); err != nil {
		return diag.Errorf(diag.ArtifactManifest, "report.json", "%v", err).In(m.path).Because(err)
	}
	rows := report.Precision
	if f.entry != "" {
		rows = slices.DeleteFunc(rows, func(r precision.Row) bool { return r.Entry != f.entry })
	}
	if f.asJSON {
		return a.printJSON(append([]precision.Row{}, rows...))
	}
	if len(rows) == 0 {
		a.printf("compiled without --precision: each operator has the types of the model\n")
		return nil
	}
	lines := [][]string{{"OPERATOR", "TIMES", "IN", "OUT", "WHY", "WHERE"}}
	for _, r := range rows {
		lines = append(lines, []string{r.Operator, strconv.Itoa(r.Count), strings.Join(r.In, " "), strings.Join(r.Out, " "), r.Why, r.Loc})
	}
	table(a.stdout, lines)
	return nil
}
