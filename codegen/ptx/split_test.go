package ptx

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readTestdata(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestSplit compares the entries of a module with what llc prints for each kernel alone.
func TestSplit(t *testing.T) {
	entries, err := Split(readTestdata(t, "split/all.ptx"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
		if diff := cmp.Diff(readTestdata(t, "split/"+e.Name+".ptx"), e.Text()); diff != "" {
			t.Errorf("entry %s differs from llc (-llc +split):\n%s", e.Name, diff)
		}
	}
	if diff := cmp.Diff([]string{"zeta", "alpha", "mu"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestJoin(t *testing.T) {
	entries, err := Split(readTestdata(t, "split/all.ptx"))
	if err != nil {
		t.Fatal(err)
	}
	joined, err := Join(entries[0].Header, entries)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(joined)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range m.Entries() {
		names = append(names, f.Name)
	}
	if diff := cmp.Diff([]string{"alpha", "mu", "zeta"}, names); diff != "" {
		t.Error(diff)
	}
	again, err := Split(joined)
	if err != nil {
		t.Fatal(err)
	}
	for i := range again {
		if diff := cmp.Diff(readTestdata(t, "split/"+again[i].Name+".ptx"), again[i].Text()); diff != "" {
			t.Errorf("entry %s changed:\n%s", again[i].Name, diff)
		}
	}
	if _, err := Join(entries[0].Header, append(entries, entries[0])); err == nil || !strings.Contains(err.Error(), "zeta") {
		t.Errorf("an entry twice: %v", err)
	}
}
