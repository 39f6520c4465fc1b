package eval

import (
	"testing"

	"weft/ir"
)

// TestTableComplete holds that every kind has an evaluation.
func TestTableComplete(t *testing.T) {
	for k := ir.OpConstant; k < ir.NumKinds; k++ {
		if table[k] == nil {
			t.Errorf("%s has no evaluation", k)
		}
	}
}
