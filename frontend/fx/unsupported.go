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

// decomposable are the operators that run_decompositions() is known to rewrite into ones that
// have rules.
var decomposable = []string{"affine_grid_generator", "fft_fftshift", "fft_ifftshift", "special_entr", "matrix_power", "vander", "gradient",
	"cumulative_trapezoid", "renorm", "multi_margin_loss", "multilabel_margin_loss", "linalg_multi_dot", "_chunk_cat", "istft", "hann_window"}

// dataSized are operators whose results have as many elements as the data say.
var dataSized = []string{"nonzero", "nonzero_numpy", "argwhere", "_unique2", "unique_consecutive", "unique_dim", "masked_select"}

// advice says what to do about operators without a lowering, for each kind that there is.
func advice(names []string) string {
	var rewritten, parts []string
	sized, training, foreign, unequal, rest := false, false, false, false, false
	for _, name := range names {
		operator, form, _ := strings.Cut(name, " ")
		aten, isAten := strings.CutPrefix(operator, "aten.")
		base, _, _ := strings.Cut(aten, ".")
		switch {
		case strings.Contains(form, "depends on data"), isAten && slices.Contains(dataSized, base):
			sized = true
		case strings.Contains(form, "in training mode"):
			training = true
		case strings.HasPrefix(operator, "torch._functorch."):
			if !slices.Contains(rewritten, "torch.vmap") {
				rewritten = append(rewritten, "torch.vmap")
			}
		case collectiveName(operator) != "":
			unequal = true
		case isAten && slices.Contains(decomposable, base) && form == "":
			rewritten = append(rewritten, operator)
		case !isAten:
			foreign = true
		default:
			rest = true
		}
	}
	if len(rewritten) > 0 {
		parts = append(parts, "ExportedProgram.run_decompositions() before saving rewrites "+strings.Join(rewritten, ", "))
	}
	if sized {
		parts = append(parts, "replace sizes that depend on data by masks (torch.where) of a fixed size")
	}
	if training {
		parts = append(parts, "call model.eval() before export")
	}
	if unequal {
		parts = append(parts, "let ranks exchange shares of equal sizes, by collectives that all of them take part in alike")
	}
	if foreign {
		parts = append(parts, "give operators of other libraries a decomposition, and pass it to run_decompositions()")
	}
	if rest {
		parts = append(parts, "express the model without these operators or forms")
	}
	return strings.Join(parts, "; ")
}
