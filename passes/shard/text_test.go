package shard_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/mesh"
	"weft/passes/canonicalize"
	"weft/passes/internal/passtest"
	"weft/passes/shard"
)

// TestText divides the programs of each folder of testdata as its name says: MESH, an underscore and
// strategies with "-" for ":".
func TestText(t *testing.T) {
	folders, err := filepath.Glob("testdata/*")
	if err != nil || len(folders) == 0 {
		t.Fatal("no programs")
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			continue
		}
		t.Run(filepath.Base(folder), func(t *testing.T) {
			text, strategies, _ := strings.Cut(filepath.Base(folder), "_")
			m, err := mesh.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			s, err := shard.ParseStrategies(strings.ReplaceAll(strategies, "-", ":"), m)
			if err != nil {
				t.Fatal(err)
			}
			passtest.RunIn(t, folder, func(p *ir.Program) (bool, error) {
				_, changed, err := shard.Run(p, shard.Options{Mesh: m, Strategies: s})
				if err == nil {
					_, err = canonicalize.Run(p)
				}
				return changed, err
			}, passtest.Operations)
		})
	}
}
