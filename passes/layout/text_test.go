package layout_test

import (
	"testing"

	"weft/passes/internal/passtest"
	"weft/passes/layout"
)

func TestText(t *testing.T) { passtest.Run(t, layout.Run, passtest.Expressions) }
