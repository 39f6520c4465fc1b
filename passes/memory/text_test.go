package memory_test

import (
	"testing"

	"weft/passes/internal/passtest"
	"weft/passes/memory"
)

func TestText(t *testing.T) { passtest.Run(t, memory.Run, passtest.Memory) }
