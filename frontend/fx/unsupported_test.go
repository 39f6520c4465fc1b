package fx

import (
	"strings"
	"testing"
)

// TestAdvice holds that help names what helps, and nothing else.
func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  []string
		not   string
	}{
		{[]string{"aten.renorm.default"}, []string{"run_decompositions() before saving rewrites aten.renorm.default"}, "express"},
		{[]string{"aten.linalg_svd.default"}, []string{"express the model without"}, "run_decompositions"},
		{[]string{"aten.nonzero.default"}, []string{"torch.where"}, "run_decompositions"},
		{[]string{"aten.bincount.default with a result whose size depends on data"}, []string{"torch.where"}, "run_decompositions"},
		{[]string{"aten.dropout.default in training mode"}, []string{"model.eval()"}, "run_decompositions"},
		{[]string{"torch._functorch.predispatch._add_batch_dim"}, []string{"saving rewrites torch.vmap"}, "libraries"},
		{[]string{"_c10d_functional.irecv.default"}, []string{"shares of equal sizes"}, "libraries"},
		{[]string{"acme.fused.default"}, []string{"a decomposition"}, "express"},
		{[]string{"acme.fused.default", "aten.renorm.default", "aten.polygamma.default"}, []string{"a decomposition", "rewrites aten.renorm.default;", "express"}, "polygamma"},
	} {
		got := advice(c.names)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%v: %q does not say %q", c.names, got, want)
			}
		}
		if strings.Contains(got, c.not) {
			t.Errorf("%v: %q says %q", c.names, got, c.not)
		}
	}
	for _, base := range append(append([]string{}, decomposable...), dataSized...) {
		if hasRule("torch.ops.aten." + base + ".default") {
			t.Errorf("%s has a rule", base)
		}
	}
}
