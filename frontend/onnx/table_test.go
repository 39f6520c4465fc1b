package onnx

import (
	"slices"
	"testing"
)

// TestTable checks that versions ascend, which the lookup relies on, and that the checked-in
// cases cover nearly all operators.
func TestTable(t *testing.T) {
	covered := map[string]bool{}
	for _, c := range subset(t) {
		m, err := decodeModel(c.model)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range m.graph.nodes {
			name := n.opType
			if n.domain != "" {
				name = n.domain + "." + name
			}
			covered[name] = true
		}
	}
	// Operators whose cases in the suite take or give sequences, or that it has no case for.
	without := []string{"ConcatFromSequence", "GlobalLpPool", "Mish", "Optional", "SequenceAt",
		"SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SequenceMap", "Softsign", "SplitToSequence",
		"Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "com.microsoft.DequantizeLinear", "com.microsoft.QuantizeLinear", "com.microsoft.SimplifiedLayerNormalization"}
	for _, o := range Operators() {
		if !slices.IsSorted(o.Since) {
			t.Errorf("%s: versions %v", o.Name, o.Since)
		}
		if !covered[o.Name] && !slices.Contains(without, o.Name) {
			t.Errorf("%s has no case", o.Name)
		}
		if covered[o.Name] && slices.Contains(without, o.Name) {
			t.Errorf("%s has a case: take it off the list", o.Name)
		}
	}
	for name := range withoutLowering() {
		if operators()[name] != nil {
			t.Errorf("%s has a lowering: take its advice away", name)
		}
	}
	t.Logf("%d operators", len(Operators()))
}
