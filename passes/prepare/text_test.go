package prepare_test

import (
	"testing"

	"weft/passes/internal/passtest"
	"weft/passes/prepare"
)

func TestText(t *testing.T) { passtest.Run(t, prepare.Run, passtest.Expressions) }
