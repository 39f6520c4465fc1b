package overlap_test

import (
	"testing"

	"weft/ir"
	"weft/passes/internal/passtest"
	"weft/passes/overlap"
)

func TestText(t *testing.T) {
	passtest.Run(t, func(p *ir.Program) (bool, error) { return overlap.Run(p, overlap.Options{}) }, passtest.Operations)
}

// Products are halved here where a rank has 16 KiB, and sums over two numbers for each element.
func TestHalves(t *testing.T) {
	o := overlap.Options{FLOPS: 4e12, Links: map[string]float64{"dp": 1e12, "tp": 1e12}, Least: 16 << 10}
	passtest.RunIn(t, "testdata/halves", func(p *ir.Program) (bool, error) { return overlap.Run(p, o) }, passtest.Operations)
}
