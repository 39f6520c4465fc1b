package precision_test

import (
	"os"
	"path/filepath"
	"testing"

	"weft/ir"
	"weft/passes/internal/passtest"
	"weft/passes/precision"
)

// Each folder of testdata is a policy; the programs in it say what the pass makes of them.
func TestText(t *testing.T) {
	folders, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !folder.IsDir() || folder.Name() == "scale" {
			continue
		}
		t.Run(folder.Name(), func(t *testing.T) {
			policy, err := precision.Parse(folder.Name())
			if err != nil {
				t.Fatal(err)
			}
			run := func(p *ir.Program) (bool, error) {
				result, err := precision.Run(p, policy)
				return result.Changed, err
			}
			passtest.RunIn(t, filepath.Join("testdata", folder.Name()), run, passtest.Expressions)
		})
	}
}
