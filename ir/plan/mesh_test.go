package plan_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"weft/ir/diag"
	"weft/ir/plan"
)

const meshFile = "testdata/mesh.json"

// meshEdited is the plan for eight ranks with pairs of texts replaced, once each.
func meshEdited(t testing.TB, pairs ...string) string {
	t.Helper()
	data, err := os.ReadFile(meshFile)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the plan has no %s", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// meshKernels are those of the plan for eight ranks.
func meshKernels(name string) (int, bool) {
	n, ok := map[string]int{"partial": 3, "gradient": 2}[name]
	return n, ok
}

// TestMeshRoundTrip reads and writes a plan with a mesh, shardings and every collective.
func TestMeshRoundTrip(t *testing.T) {
	p := decode(t, meshEdited(t))
	if err := plan.Verify(p, meshKernels); err != nil {
		t.Fatal(err)
	}
	out, err := p.Encode()
	if err != nil || string(out) != meshEdited(t) {
		t.Errorf("%v, encoded:\n%s", err, out)
	}
	if again := decode(t, string(out)); !reflect.DeepEqual(again, p) {
		t.Errorf("%+v, want %+v", again, p)
	}
	const file = "testdata/mesh.txt"
	if *update {
		if err := os.WriteFile(file, []byte(p.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || p.String() != string(want) {
		t.Errorf("%v, got\n%s", err, p)
	}
	if m := p.MeshOf(); m.Size() != 8 || m.String() != "dp=2,tp=4" {
		t.Errorf("mesh %s", m)
	}
	if s := p.Inputs[1].Sharding(); s.String() != "[(2, 14@tp)]" || !reflect.DeepEqual(plan.ShardOf(s), [][]plan.Part{{{Size: p.Inputs[1].Shard[0][0].Size}, p.Inputs[1].Shard[0][1]}}) {
		t.Errorf("sharding %s", s)
	}
}

// meshFaults damages the plan for eight ranks, each time against one rule.
const (
	toOutput = `"channel":1,"label":"y at model.py:7"}}`
	inFlight = `"channel":1,"async":true,"label":"y at model.py:7"}}`
	gathered = `"to":5,"axes":["tp"],"ranks":4,"dtype":"f32"}}`
)

// TestAsynchronous accepts a collective beside another one.
func TestAsynchronous(t *testing.T) {
	p := decode(t, meshEdited(t, toOutput, inFlight, gathered, gathered+",\n {\"wait\":{\"from\":4,\"to\":2}}"))
	if err := plan.Verify(p, meshKernels); err != nil {
		t.Error(err)
	}
	if !strings.Contains(p.String(), "step 3: wait for 4 to 2") || !strings.Contains(p.String(), "by add async") {
		t.Errorf("%s", p)
	}
}

var meshFaults = []struct {
	rule, name string
	edits      []string
	words      []string
}{
	{"P15", "axis without a name", []string{`{"name":"tp","size":4}`, `{"name":"","size":4}`}, []string{"mesh axis 1"}},
	{"P15", "axis twice", []string{`{"name":"tp","size":4}`, `{"name":"dp","size":4}`}, []string{"mesh axis 1", `"dp"`}},
	{"P15", "empty axis", []string{`{"name":"tp","size":4}`, `{"name":"tp","size":0}`}, []string{"mesh axis 1", "size 0"}},
	{"P15", "too many ranks", []string{`{"name":"tp","size":4}`, `{"name":"tp","size":1048576}`}, []string{"mesh axis 1"}},
	{"P15", "bounds of a coordinate", []string{`{"name":"rank.tp","min":0,"max":3}`, `{"name":"rank.tp","min":0,"max":4}`}, []string{"mesh axis 1", "size 4"}},
	{"P15", "no mesh", []string{`"mesh": [{"name":"dp","size":2},{"name":"tp","size":4}],`, ``}, []string{"input 0", `"dp"`}},
	{"P15", "kind", []string{`"all_gather"`, `"broadcast"`}, []string{"step 2", `"broadcast"`}},
	{"P15", "element type", []string{`"ranks":4,"dtype":"f32"`, `"ranks":4,"dtype":"f31"`}, []string{"step 1", `"f31"`}},
	{"P15", "packed elements", []string{`"ranks":4,"dtype":"f32"`, `"ranks":4,"dtype":"i4"`}, []string{"step 1", `"i4"`}},
	{"P15", "no axes", []string{`"axes":["tp"],"ranks":4`, `"axes":[],"ranks":4`}, []string{"step 1", "0 axes"}},
	{"P15", "unknown axis", []string{`"axes":["tp"],"ranks":4`, `"axes":["pp"],"ranks":4`}, []string{"step 1", `"pp"`}},
	{"P15", "axis twice in a collective", []string{`"axes":["tp"],"ranks":4`, `"axes":["tp","tp"],"ranks":4`}, []string{"step 1", "twice"}},
	{"P15", "ranks", []string{`"axes":["tp"],"ranks":4`, `"axes":["tp"],"ranks":8`}, []string{"step 1", "8 ranks", "there are 4"}},
	{"P15", "combination", []string{`"combine":"add","channel":1`, `"combine":"average","channel":1`}, []string{"step 1", `"average"`}},
	{"P15", "no combination", []string{`"combine":"add","channel":1`, `"channel":1`}, []string{"step 1"}},
	{"P15", "combination of another type", []string{`"combine":"add","channel":1`, `"combine":"xor","channel":1`}, []string{"step 1", "xor"}},
	{"P15", "combination of a gather", []string{`"to":5,"axes":["tp"],"ranks":4,"dtype":"f32"`, `"to":5,"axes":["tp"],"ranks":4,"dtype":"f32","combine":"add"`}, []string{"step 2"}},
	{"P15", "pairs of a gather", []string{`"to":5,"axes":["tp"],"ranks":4,"dtype":"f32"`, `"to":5,"axes":["tp"],"ranks":4,"dtype":"f32","pairs":[[0,1]]`}, []string{"step 2", "pairs"}},
	{"P15", "pair outside", []string{`[3,0]`, `[4,0]`}, []string{"step 6", "4 to 0"}},
	{"P15", "two sources", []string{`[3,0]`, `[3,1]`}, []string{"step 6", "3 to 1"}},
	{"P15", "two targets", []string{`[3,0]`, `[0,0]`}, []string{"step 6", "0 to 0"}},
	{"P15", "shape on a rank", []string{`"shape":["8"],"shard":[[{"size":"2"},{"size":"14"`, `"shape":["8"],"shard":[[{"size":"2"},{"size":"20"`}, []string{"input 1", "20@tp"}},
	{"P15", "axis of a tensor", []string{`"shard":[[{"size":"n","axes":["dp"]}]`, `"shard":[[{"size":"n","axes":["pp"]}]`}, []string{"input 0", `"pp"`}},
	{"P15", "axis twice in a tensor", []string{`[{"size":"8"}]`, `[{"size":"8","axes":["dp"]}]`}, []string{"input 0", "twice"}},
	{"P17", "no wait", []string{toOutput, inFlight}, []string{"step 1", "nothing waits", "buffer 2"}},
	{"P17", "wait for nothing", []string{toOutput, toOutput + ",\n {\"wait\":{\"from\":4,\"to\":2}}"}, []string{"step 2", "4 to 2"}},
	{"P17", "wait for others", []string{toOutput, inFlight + ",\n {\"wait\":{\"from\":1,\"to\":2}}"}, []string{"step 2", "1 to 2"}},
	{"P17", "two waits", []string{toOutput, inFlight + ",\n {\"wait\":{\"from\":4,\"to\":2}},\n {\"wait\":{\"from\":4,\"to\":2}}"}, []string{"step 3"}},
	{"P17", "result in use", []string{toOutput, inFlight + ",\n {\"copy\":{\"from\":2,\"to\":4}},\n {\"wait\":{\"from\":4,\"to\":2}}"}, []string{"step 2", "buffer 2"}},
	{"P17", "operand written", []string{toOutput, inFlight + ",\n {\"fill\":{\"buffer\":4,\"pattern\":\"00\"}},\n {\"wait\":{\"from\":4,\"to\":2}}"}, []string{"step 2", "buffer 4"}},
	{"P17", "wait without a buffer", []string{toOutput, toOutput + ",\n {\"wait\":{\"from\":4,\"to\":99}}"}, []string{"step 2"}},
	{"P15", "huge product", []string{`{"size":"2"},{"size":"14","axes":["tp"]}`, `{"size":"14","axes":["tp"]}` + strings.Repeat(`,{"size":"n + 1"}`, 40)}, []string{"input 1", "too long"}},
	{"P16", "one buffer", []string{`"from":5,"to":6,"axes":["tp"]`, `"from":5,"to":5,"axes":["tp"]`}, []string{"step 3"}},
	{"P16", "one buffer in flight", []string{`"from":4,"to":2`, `"from":4,"to":4`, toOutput, inFlight + ",\n {\"wait\":{\"from\":4,\"to\":4}}"}, []string{"step 1"}},
	{"P16", "reduce to another size", []string{`"from":4,"to":2`, `"from":4,"to":3`}, []string{"step 1", "of 32"}},
	{"P16", "gather of another size", []string{`"size":"128","after":[4]`, `"size":"124","after":[4]`}, []string{"step 2", "124"}},
	{"P16", "scatter of another size", []string{`"size":"256"`, `"size":"64"`}, []string{"step 5", "64 bytes"}},
	{"P16", "half an element", []string{`"axes":["dp","tp"],"ranks":8,"dtype":"f32","combine"`, `"axes":["dp","tp"],"ranks":8,"dtype":"c128","combine"`,
		`"size":"256"`, `"size":"192"`, `"size":"32","after":[4,7],"name"`, `"size":"24","after":[4,7],"name"`}, []string{"step 5", "whole elements"}},
	{"P16", "shares of half an element", []string{`"from":5,"to":6,"axes":["tp"],"ranks":4,"dtype":"f32"`, `"from":5,"to":6,"axes":["tp"],"ranks":4,"dtype":"c128"`,
		`"size":"128","after":[4]`, `"size":"160","after":[4]`, `"size":"128","after":[4,5]`, `"size":"160","after":[4,5]`}, []string{"step 3", "whole elements"}},
	{"P16", "a size of the rank", []string{`{"kind":"arena","size":"32*floordiv(n + 1, 2)","name":"partial"}`, `{"kind":"arena","size":"32*\"rank.dp\"","name":"partial"}`,
		`"from":4,"to":2`, `"from":4,"to":9`, `"name":"of the neighbour"}`, `"name":"of the neighbour"},{"kind":"arena","size":"32*\"rank.dp\"","after":[4,5,6,7,8]}`}, []string{"step 1", "differ between ranks"}},
}

// TestVerifyMesh has a plan for each way in which meshes, shardings and collectives can be wrong.
func TestVerifyMesh(t *testing.T) {
	for _, test := range meshFaults {
		t.Run(test.rule+" "+test.name, func(t *testing.T) {
			err := plan.Verify(decode(t, meshEdited(t, test.edits...)), meshKernels)
			t.Log(err)
			found := slices.ContainsFunc(diag.All(err), func(d *diag.Diagnostic) bool {
				ok := d.Code == diag.InvalidPlan && strings.HasPrefix(d.Message, test.rule+": ")
				for _, w := range test.words {
					ok = ok && strings.Contains(d.Error(), w)
				}
				return ok
			})
			if !found {
				t.Errorf("no fault of rule %s with %q", test.rule, test.words)
			}
		})
	}
}

// TestBindMesh binds the plan on ranks of the mesh: all sizes are equal, arguments are the rank's.
func TestBindMesh(t *testing.T) {
	p := decode(t, meshEdited(t))
	for rank := range int64(8) {
		b, err := plan.Bind(p, map[string]int64{"n": 5, "rank.dp": rank / 4, "rank.tp": rank % 4})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Steps[0].Values[2]; got != rank {
			t.Errorf("rank %d passes %d", rank, got)
		}
		if want := []int64{96, 32, 96, 32, 96, 128, 128, 256, 32}; !slices.Equal(b.Sizes, want) {
			t.Errorf("sizes %v", b.Sizes)
		}
		if m := b.Memory(); !slices.Equal(m.Live, []int64{96, 96, 128, 256, 384, 288, 32}) || m.Inputs != 96 || m.States != 32 || m.Outputs != 128 {
			t.Errorf("memory %+v", m)
		}
	}
	b, err := plan.Bind(p, map[string]int64{"n": 0, "rank.dp": 0, "rank.tp": 0})
	if err != nil || !b.Steps[1].Empty || b.Steps[2].Empty {
		t.Errorf("%v, an all_reduce of no bytes and a gather of some: %+v", err, b.Steps)
	}
}
