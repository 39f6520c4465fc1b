package fuse_test

import (
	"testing"

	"weft/ir"
	"weft/passes/fuse"
	"weft/passes/internal/passtest"
)

func TestText(t *testing.T) {
	passtest.Run(t, func(p *ir.Program) (bool, error) {
		_, err := fuse.Run(p)
		return true, err
	}, passtest.Kernels)
}
