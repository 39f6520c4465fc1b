package ptx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestCatalogue(t *testing.T) {
	rows := Catalogue()
	if !slices.IsSortedFunc(rows, func(a, b Intrinsic) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the catalogue is not sorted by name")
	}
	for i, row := range rows {
		if i > 0 && rows[i-1].Name == row.Name {
			t.Errorf("%s: twice", row.Name)
		}
		if got, ok := Lookup(row.Name); !ok || got != row {
			t.Errorf("%s: not found", row.Name)
		}
		if row.Doc == "" || row.Meaning == "" || row.Target < 80 || row.Version < 70 {
			t.Errorf("%s: incomplete row", row.Name)
		}
		operands := slices.DeleteFunc(strings.Split(row.Constraints, ","), func(c string) bool { return c == "~{memory}" })
		for n, constraint := range operands {
			if constraint[0] >= '0' && constraint[0] <= '9' || slices.Contains(operands, fmt.Sprint(n)) { // one register for an output and an input
				continue
			}
			if !strings.Contains(row.Text, fmt.Sprintf("$%d", n)) {
				t.Errorf("%s: the text does not use $%d", row.Name, n)
			}
		}
		if regexp.MustCompile(fmt.Sprintf(`\$%d\b`, len(operands))).MatchString(row.Text) {
			t.Errorf("%s: the text uses more than %d operands", row.Name, len(operands))
		}
		if strings.Contains(row.Text, ".sync") && !row.Convergent {
			t.Errorf("%s: must be convergent", row.Name)
		}
	}
	if _, ok := Lookup("no.such"); ok {
		t.Error("found what does not exist")
	}
}
