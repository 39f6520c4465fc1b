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

// TestSamePlaces holds that absolute paths in stack traces do not reach the program.
func TestSamePlaces(t *testing.T) {
	model := string(modelJSON(t, "gpt2_tiny_torch215"))
	texts := map[string]bool{}
	for _, roots := range [][2]string{
		{"", ""},
		{"/home/ada/venv/lib/python3.11/site-packages/", "/home/ada/work/"},
		{"/opt/build 7/lib/python3.13/dist-packages/", "/src/other checkout/"},
		{"/src/pytorch/", "../models of mine/"},
	} {
		moved := strings.NewReplacer(`File \"torch/`, `File \"`+roots[0]+`torch/`, `File \"models.py`, `File \"`+roots[1]+`models.py`).Replace(model)
		m, err := importGraph([]byte(moved), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		texts[m.Program.String()] = true
	}
	if len(texts) != 1 {
		t.Errorf("%d different programs", len(texts))
	}
}
