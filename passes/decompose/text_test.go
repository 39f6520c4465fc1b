package decompose_test

import (
	"testing"

	"weft/passes/decompose"
	"weft/passes/internal/passtest"
)

func TestText(t *testing.T) { passtest.Run(t, decompose.Run, passtest.Kernels) }
