package ir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// textFiles reads testdata/text: programs that cover the grammar.
func textFiles(t testing.TB) map[string][]byte {
	paths, err := filepath.Glob("testdata/text/*.weft")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no programs in testdata/text: %v", err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if files[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestTextFixpoint(t *testing.T) {
	for path, text := range textFiles(t) {
		p, err := ParseProgram(path, text)
		if err != nil {
			t.Fatal(err)
		}
		once := p.String()
		q, err := ParseProgram(path, []byte(once))
		if err != nil {
			t.Fatalf("printed text does not parse: %v\n%s", err, once)
		}
		if diff := cmp.Diff(once, q.String()); diff != "" {
			t.Errorf("%s: printing again differs: %s", path, diff)
		}
		if strings.HasSuffix(path, "printed.weft") {
			if diff := cmp.Diff(string(text), once); diff != "" {
				t.Errorf("%s: (-text +printed) %s", path, diff)
			}
		}
	}
}
