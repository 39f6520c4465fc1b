package masks_test

import (
	"testing"

	"weft/passes/internal/passtest"
	"weft/passes/masks"
)

func TestText(t *testing.T) { passtest.Run(t, masks.Run, passtest.Expressions) }
