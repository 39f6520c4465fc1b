package lower

import (
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// Imported is what a frontend makes of a model file.
type Imported struct {
	Program *ir.Program
	// Weights holds the values of the program's states under their Source names (Name where
	// Source is empty). It is nil when the file has a graph but no weights.
	Weights  weights.Source
	Warnings diag.List
}

// Close releases the mappings that Weights reads from.
func (m *Imported) Close() error {
	if m == nil || m.Weights == nil {
		return nil
	}
	return m.Weights.Close()
}
