package split_test

import (
	"testing"

	"weft/passes/internal/passtest"
	"weft/passes/split"
)

func TestText(t *testing.T) { passtest.Run(t, split.Run, passtest.Expressions) }
