package prepare_test

import (
	"testing"

	"weft/passes/prepare"
	"weft/passes/internal/passtest"
)

func TestText(t *testing.T) { passtest.Run(t, prepare.Run, passtest.Expressions) }
