package merge_test

import (
	"testing"

	"weft/passes/internal/passtest"
	"weft/passes/merge"
)

func TestText(t *testing.T) { passtest.Run(t, merge.Run, passtest.Expressions) }
