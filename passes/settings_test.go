package passes

import (
	"encoding/json"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/target"
)

func TestSettings(t *testing.T) {
	targets, err := target.FindAll(target.Names())
	if err != nil {
		t.Fatal(err)
	}
	own := ir.Mesh{Axes: []ir.MeshAxis{{Name: "group", Size: 2}}}
	for _, test := range []struct {
		name     string
		settings Settings
		own      ir.Mesh
		mesh     string // of the result
		fault    string
	}{
		{name: "nothing"},
		{name: "a mesh", settings: Settings{Mesh: "dp=2,tp=4", Parallel: "dp:fsdp,tp:tp"}, mesh: "dp=2,tp=4"},
		{name: "auto", settings: Settings{Mesh: "dp=2", Parallel: "auto", Links: "dp=50"}, mesh: "dp=2"},
		{name: "the mesh of the program", settings: Settings{Shardings: []string{"w=[*,group]"}}, own: own, mesh: "group=2"},
		{name: "a program with collectives", own: own},
		{name: "no mesh", settings: Settings{Parallel: "dp:ddp"}, fault: "there is no mesh to divide the program over"},
		{name: "rules without a mesh", settings: Settings{InputShardings: []string{"x=[dp]"}}, fault: "there is no mesh"},
		{name: "a bad mesh", settings: Settings{Mesh: "dp"}, fault: "is not an axis and its size"},
		{name: "a strategy of no axis", settings: Settings{Mesh: "dp=2", Parallel: "tp:tp"}, fault: "tp"},
		{name: "a link of no axis", settings: Settings{Mesh: "dp=2", Parallel: "auto", Links: "tp=5"}, fault: "tp"},
		{name: "a bad rule", settings: Settings{Mesh: "dp=2", Parallel: "dp:ddp", Shardings: []string{"w"}}, fault: "w"},
		{name: "a bad precision", settings: Settings{Precision: "f13"}, fault: "f13"},
	} {
		o, err := test.settings.Options(test.own, targets)
		switch {
		case test.fault == "" && (err != nil || o.Sharding.Mesh.String() != test.mesh):
			t.Errorf("%s: %v, mesh %v", test.name, err, o.Sharding.Mesh)
		case test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)):
			t.Errorf("%s: %v has no %q", test.name, err, test.fault)
		}
	}
}

// The strategy auto plans for the weakest target, and within the limit.
func TestHardware(t *testing.T) {
	targets := []target.Target{{HalfTFLOPS: 900, BandwidthGBs: 3000, Memory: 80}, {HalfTFLOPS: 300, BandwidthGBs: 1500, Memory: 40}}
	for _, limit := range []int64{0, 60} {
		s := Settings{Mesh: "dp=2", Parallel: "auto", MemoryLimit: limit}
		o, err := s.Options(ir.Mesh{}, targets)
		if err != nil {
			t.Fatal(err)
		}
		want := limit
		if limit == 0 {
			want = 40
		}
		if h := o.Sharding.Auto; h == nil || h.FLOPS != 300e12 || h.Bandwidth != 1500e9 || h.Memory != want {
			t.Errorf("%+v", h)
		}
	}
}

// The names in recorded configurations stay.
func TestSettingsText(t *testing.T) {
	text, err := json.Marshal(Settings{[]string{"a"}, "b", "c", "d", 1, []string{"e"}, []string{"f"}, "g"})
	const want = `{"disabled_passes":["a"],"mesh":"b","parallel":"c","links":"d","memory_limit":1,"shardings":["e"],"input_shardings":["f"],"precision":"g"}`
	if err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
	if text, _ := json.Marshal(Settings{}); string(text) != "{}" {
		t.Errorf("%s", text)
	}
}
