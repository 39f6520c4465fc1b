package artifact

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/ir"
)

func TestDescribe(t *testing.T) {
	const text = `dim n in 1..8 multiple 2
dim m
state @"count": i64[] buffer

entry step(%x "x": f32[n, m], %c @"count": i64[]) {
  return %x "y", %c "count" @"count"
}
`
	p, err := ir.ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{{Name: "step", Inputs: []Value{{"x", "f32[n, m]"}}, Outputs: []Value{{"y", "f32[n, m]"}, {"@count", "i64[]"}}, Donations: []Donation{{"@count", "count"}}}}
	if diff := cmp.Diff(want, EntriesOf(p)); diff != "" {
		t.Error(diff)
	}
	zero, one, eight := int64(0), int64(1), int64(8)
	if diff := cmp.Diff([]Dim{{Name: "n", Min: &one, Max: &eight, Multiple: 2}, {Name: "m", Min: &zero}}, DimsOf(p)); diff != "" {
		t.Error(diff)
	}
}
