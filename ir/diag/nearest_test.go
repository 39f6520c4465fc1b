package diag

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"compile", "completion", "run", "inspect", "sm_80", "sm_90", "sm_90a", "dot_general"}
	for _, c := range []struct{ name, want string }{
		{"compil", "compile"},
		{"comp", "compile completion"}, // the beginning of both
		{"COMPILE", "compile"},
		{"runn", "run"},
		{"sm_90b", "sm_90 sm_90a sm_80"},
		{"dot_generl", "dot_general"},
		{"entirely different", ""},
		{"", ""},
	} {
		if got := strings.Join(Nearest(c.name, names, 3), " "); got != c.want {
			t.Errorf("Nearest(%q) = %q, expected %q", c.name, got, c.want)
		}
	}
	if got := Nearest("sm_90", names, 1); len(got) != 1 || got[0] != "sm_90" {
		t.Errorf("Nearest gives %q, expected the nearest alone", got)
	}
	if got := Nearest(strings.Repeat("x", 1000), []string{strings.Repeat("x", 1001)}, 1); len(got) != 0 && len(got[0]) != 1001 {
		t.Errorf("long names: %q", got)
	}
}

func TestCodesAreInOrderAndDocumented(t *testing.T) {
	last := Code("")
	for _, info := range Codes() {
		if info.Code <= last {
			t.Errorf("code %s comes after %s: there twice, or out of order", info.Code, last)
		}
		last = info.Code
		if info.Title == "" || !strings.HasSuffix(info.Help, ".") || len(info.Code) != 5 {
			t.Errorf("code %s has title %q, help %q", info.Code, info.Title, info.Help)
		}
	}
}
