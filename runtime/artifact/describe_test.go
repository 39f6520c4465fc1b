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
	want := []Entry{{Name: "step", Inputs: []Value{{Name: "x", Type: "f32[n, m]"}}, Outputs: []Value{{Name: "y", Type: "f32[n, m]"}, {Name: "@count", Type: "i64[]"}}, Donations: []Donation{{"@count", "count"}}}}
	if diff := cmp.Diff(want, EntriesOf(p)); diff != "" {
		t.Error(diff)
	}
	zero, one, eight := int64(0), int64(1), int64(8)
	if diff := cmp.Diff([]Dim{{Name: "n", Min: &one, Max: &eight, Multiple: 2}, {Name: "m", Min: &zero}}, DimsOf(p)); diff != "" {
		t.Error(diff)
	}
}

// TestDescribeMesh has the types of global tensors, and how ranks divide them.
func TestDescribeMesh(t *testing.T) {
	const text = `mesh dp=2, tp=3
dim "rank.dp" in 0..1
dim "rank.tp" in 0..2
dim n
state @"w": f32[4, 2] parameter of [(2, 5@tp), 2]

entry step(%x "x": f32[floordiv(n + 1, 2), 2] of [n@dp, 2], %w @"w": f32[4, 2]) {
  return %x "y" of [n@dp, 2], %w "w" @"w"
}
`
	p, err := ir.ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Entry{{Name: "step", Inputs: []Value{{"x", "f32[n, 2]", "[n@dp, 2]"}}, Outputs: []Value{{"y", "f32[n, 2]", "[n@dp, 2]"}, {"@w", "f32[10, 2]", "[(2, 5@tp), 2]"}}, Donations: []Donation{{"@w", "w"}}}}
	if diff := cmp.Diff(want, EntriesOf(p)); diff != "" {
		t.Error(diff)
	}
	state := StateOf(p.States[0], From{})
	if diff := cmp.Diff(State{Name: "w", Type: "f32[10, 2]", Shard: "[(2, 5@tp), 2]", Kind: "parameter"}, state); diff != "" {
		t.Error(diff)
	}
	if !state.Sharding().Equal(p.States[0].Shard) {
		t.Error(state.Sharding())
	}
	if m := MeshOf(p); m.Program().String() != "dp=2,tp=3" {
		t.Error(m)
	}
}
