package fx

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata again")

// TestGolden holds the text of a few imported programs.
func TestGolden(t *testing.T) {
	names := []string{"mlp", "ops_inplace", "ops_dynamic"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			m, err := Import(filepath.Join(modelsDir, name, "model.pt2"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			text, file := m.Program.String(), filepath.Join("testdata", name+".weft")
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if text != string(want) {
				t.Errorf("the program differs from %s; see it with -update", file)
			}
		})
	}
	files, _ := filepath.Glob("testdata/*.weft")
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".weft")
		found := false
		for _, n := range names {
			found = found || n == name
		}
		if !found {
			t.Errorf("%s belongs to no test", f)
		}
	}
}
