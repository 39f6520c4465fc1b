package target

import (
	"slices"
	"strings"
	"testing"

	"weft/ir/diag"
)

// Every description is complete, and found by its name.
func TestAll(t *testing.T) {
	all := All()
	if len(all) == 0 || !slices.IsSortedFunc(all, func(a, b Target) int { return strings.Compare(a.Name, b.Name) }) {
		t.Fatalf("%v", all)
	}
	for _, g := range all {
		if g.Title == "" || g.Compute < 70 || g.PTX == "" || g.MinDriver == "" || g.Multiprocessors < 1 || g.SharedPerBlock < 48<<10 ||
			g.Memory < 1<<30 || g.HalfTFLOPS <= 0 || g.BandwidthGBs <= 0 || g.ArchSpecific != strings.HasSuffix(g.Name, "a") {
			t.Errorf("%+v", g)
		}
		if found, err := Find(g.Name); err != nil || found != g {
			t.Errorf("%s: %+v, %v", g.Name, found, err)
		}
	}
	found, err := FindAll(Names())
	if err != nil || !slices.Equal(found, all) {
		t.Errorf("%v, %v", found, err)
	}
}

func TestFindUnknown(t *testing.T) {
	_, err := FindAll([]string{"sm_80", "sm_12"})
	list := diag.All(err)
	if err == nil || list[0].Code != "W0002" || !strings.Contains(list[0].Suggestion, strings.Join(Names(), ", ")) {
		t.Errorf("%v", err)
	}
}

func TestMemory(t *testing.T) {
	two := []Target{{Memory: 80}, {Memory: 40}}
	for _, test := range []struct {
		targets     []Target
		limit, want int64
	}{{two, 0, 40}, {two, 60, 60}, {two[:1], 0, 80}, {nil, 0, 0}, {nil, 5, 5}} {
		if got := Memory(test.targets, test.limit); got != test.want {
			t.Errorf("%v, %d: %d", test.targets, test.limit, got)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parse("sm_1", "# a comment\n\ntitle One (A, B)\ncompute 1\narch_specific true\nmemory 5\nhalf_tflops 1.5\n")
	if want := (Target{Name: "sm_1", Title: "One (A, B)", Compute: 1, ArchSpecific: true, Memory: 5, HalfTFLOPS: 1.5}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for text, fault := range map[string]string{"size 1": "unknown key", "compute x": "target sm_1: compute", "memory 1.5": "memory"} {
		if _, err := parse("sm_1", text); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
