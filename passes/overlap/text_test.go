package overlap_test

import (
	"testing"

	"weft/passes/internal/passtest"
	"weft/passes/overlap"
)

func TestText(t *testing.T) { passtest.Run(t, overlap.Run, passtest.Operations) }
