package onnx

import (
	"slices"
	"testing"

	"weft/ir"
)

// TestSequences runs sequence operators on x = [[0 1] [2 3] [4 5]], whose results are tensors.
func TestSequences(t *testing.T) {
	x := ir.NewTensor(ir.F32, 3, 2)
	for i := range x.Numel() {
		x.SetFloat(i, float64(i))
	}
	number := func(name string, v byte) []byte { return initializer(name, 7, []byte{v, 0, 0, 0, 0, 0, 0, 0}) }
	split := nodeOf("SplitToSequence", "s", []string{"x"}, intAttribute("axis", 0), intAttribute("keepdims", 0))
	increment := msg(text(11, msg(text(1, "item"))), nodeOf("Add", "sum", []string{"item", "item"}), output("sum"))
	for _, c := range []struct {
		name  string
		nodes [][]byte
		want  []float64
	}{
		{"split and concatenate", [][]byte{split, nodeOf("ConcatFromSequence", "y", []string{"s"}, intAttribute("axis", 0))}, []float64{0, 1, 2, 3, 4, 5}},
		{"split and stack", [][]byte{split, nodeOf("ConcatFromSequence", "y", []string{"s"}, intAttribute("axis", 1), intAttribute("new_axis", 1))}, []float64{0, 2, 4, 1, 3, 5}},
		{"last element", [][]byte{split, nodeOf("Neg", "minus", []string{"one"}), nodeOf("SequenceAt", "y", []string{"s", "minus"})}, []float64{4, 5}},
		{"length", [][]byte{split, nodeOf("SequenceLength", "y", []string{"s"})}, []float64{3}},
		{"insert", [][]byte{nodeOf("SequenceEmpty", "e", nil), nodeOf("SequenceInsert", "i", []string{"e", "x"}), nodeOf("SequenceAt", "y", []string{"i", "zero"})}, []float64{0, 1, 2, 3, 4, 5}},
		{"erase", [][]byte{split, nodeOf("SequenceErase", "e", []string{"s", "zero"}), nodeOf("SequenceAt", "y", []string{"e", "zero"})}, []float64{2, 3}},
		{"map", [][]byte{split, nodeOf("SequenceMap", "m", []string{"s"}, msg(text(1, "body"), text(6, increment), num(20, 5))), nodeOf("SequenceAt", "y", []string{"m", "one"})}, []float64{4, 6}},
		{"construct", [][]byte{nodeOf("SequenceConstruct", "s", []string{"x", "x"}), nodeOf("SequenceLength", "y", []string{"s"})}, []float64{2}},
		{"optional", [][]byte{nodeOf("Optional", "o", []string{"x"}), nodeOf("OptionalGetElement", "y", []string{"o"})}, []float64{0, 1, 2, 3, 4, 5}},
		{"empty optional", [][]byte{nodeOf("Optional", "o", nil), nodeOf("OptionalHasElement", "h", []string{"o"}),
			nodeOf("Cast", "y", []string{"h"}, intAttribute("to", 1))}, []float64{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			graph := msg(input("x", 1, 3, 2), number("zero", 0), number("one", 1), slices.Concat(c.nodes...), output("y"))
			m, err := ImportBytes(modelOf(graph), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			got, err := evaluate(m, []string{"x"}, []*ir.Tensor{x})
			if err != nil {
				t.Fatal(err)
			}
			var values []float64
			for i := range got[0].Numel() {
				values = append(values, got[0].Float(i))
			}
			if !slices.Equal(values, c.want) {
				t.Errorf("got %v, want %v", values, c.want)
			}
		})
	}
}
