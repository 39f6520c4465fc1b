package artifact

import (
	"encoding/json"
	"slices"
	"testing"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

func TestStatesOf(t *testing.T) {
	f32 := ir.TensorOf(ir.F32, ir.Const(2))
	p := &ir.Program{States: []ir.State{
		{Name: "w", Type: f32, Kind: ir.Parameter},
		{Name: "tied", Type: f32, Kind: ir.Parameter, Source: "stored"},
		{Name: "made", Type: f32, Kind: ir.Prepared},
		{Name: "generator", Type: ir.TensorOf(ir.U64, ir.Const(2)), Kind: ir.Generator},
	}}
	source := sample(t).Weights
	const always = `{"prepared":{"entry":"init"}} {"random":{"seed":0,"name":"generator"}}`
	for _, test := range []struct {
		how    string
		source weights.Source
		want   string
		code   diag.Code
	}{
		{how: "none", want: `{"reference":{"name":"w"}} {"reference":{"name":"stored"}} ` + always},
		{how: "none", source: source, want: `{"reference":{"name":"w"}} {"reference":{"name":"stored"}} ` + always},
		{how: "random:7", want: `{"random":{"seed":7,"name":"w"}} {"random":{"seed":7,"name":"stored"}} ` + always},
		{how: "random:x", code: diag.WeightsOption},
		{how: "embed", code: "W1012"},
		{how: "", code: "W1012"},
		{how: "reference", code: "W1012"},
		{how: "some", source: source, code: "W0001"},
	} {
		states, embedded, err := StatesOf(p, test.how, test.source)
		if test.code != "" {
			wantCode(t, err, test.code)
			continue
		}
		got := ""
		for i, s := range states {
			text, err := json.Marshal(s.From)
			if err != nil {
				t.Fatal(err)
			}
			if got += string(text); i < len(states)-1 {
				got += " "
			}
		}
		if err != nil || got != test.want || embedded != nil {
			t.Errorf("%s: %s, %v", test.how, got, err)
		}
	}
}

// What is embedded is found by the name of the state.
func TestStatesOfEmbedded(t *testing.T) {
	source, err := weights.Random(1, []weights.Info{{Name: "stored", DType: ir.F32, Shape: []int64{2}}})
	if err != nil {
		t.Fatal(err)
	}
	p := &ir.Program{States: []ir.State{{Name: "w", Type: ir.TensorOf(ir.F32, ir.Const(2)), Kind: ir.Parameter, Source: "stored"}}}
	_, embedded, err := StatesOf(p, "embed", source)
	if err != nil {
		t.Fatal(err)
	}
	if names := embedded.Names(); !slices.Equal(names, []string{"w"}) {
		t.Errorf("%v", names)
	}
	states, embedded, err := StatesOf(p, "reference", source)
	if err != nil || embedded != nil || states[0].From.Reference.Name != "stored" || len(states[0].From.Reference.SHA256) != 64 {
		t.Errorf("%+v, %v", states, err)
	}
}
