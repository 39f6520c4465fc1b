package canonicalize_test

import (
	"testing"

	"weft/passes/canonicalize"
	"weft/passes/internal/passtest"
)

func TestText(t *testing.T) { passtest.Run(t, canonicalize.Run, passtest.Expressions) }
