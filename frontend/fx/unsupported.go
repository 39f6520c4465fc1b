package fx

import (
	"fmt"
	"slices"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// checkTargets reports all operators of the graph and its regions that have no rule.
func (im *importer) checkTargets(g *graph) error {
	var visit func(g *graph)
	visit = func(g *graph) {
		for i := range g.nodes {
			n := &g.nodes[i]
			if !hasRule(n.target) {
				im.unlisted = append(im.unlisted, unsupported{shortTarget(n.target), location(n)})
			}
			for _, a := range n.inputs {
				if a.graph != nil {
					visit(a.graph)
				}
			}
		}
	}
	visit(g)
	return ir.Try(im.reportUnsupported)
}

// reportUnsupported ends the import when something had no lowering.
func (im *importer) reportUnsupported() {
	if len(im.unlisted) == 0 {
		return
	}
	counts, first := map[string]int{}, map[string][]string{}
	var names []string
	for _, u := range im.unlisted {
		if counts[u.what]++; counts[u.what] == 1 {
			names = append(names, u.what)
		}
		if len(first[u.what]) < 3 {
			first[u.what] = append(first[u.what], u.place)
		}
	}
	slices.Sort(names)
	what := "operators have"
	if len(names) == 1 {
		what = "operator has"
	}
	d := diag.Errorf(diag.UnsupportedOperators, "", "%d %s no lowering: %s", len(names), what, strings.Join(names, ", "))
	for _, name := range names {
		times := "once"
		if n := counts[name]; n > 1 {
			times = fmt.Sprintf("%d times", n)
		}
		d.Note("%s: %s, at %s", name, times, strings.Join(first[name], "; "))
	}
	ir.Fail(d.Suggest("%s", advice(names)))
}

// advice says what to do about operators without a lowering: those of libraries need a
// decomposition, those of ATen may have one.
func advice(names []string) string {
	own := slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "aten.") })
	others := slices.ContainsFunc(names, func(n string) bool { return !strings.HasPrefix(n, "aten.") })
	var parts []string
	if own {
		parts = append(parts, "call ExportedProgram.run_decompositions() before saving, which rewrites many ATen operators into simpler ones")
	}
	if others {
		parts = append(parts, "give operators of other libraries a decomposition, and pass it to run_decompositions()")
	}
	return strings.Join(parts, "; ") + "; or express the model without them"
}
