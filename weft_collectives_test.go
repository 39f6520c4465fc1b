package weft_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
	"weft/ir/diag"
	"weft/ir/eval"
	"weft/ir/plan"
	"weft/passes"
	"weft/runtime/artifact"
)

// rankModels are models with collectives of torch.distributed, for four ranks, whose inputs and
// outputs each rank has of its own: testdata/export/collectives.py makes them.
var rankModels = []struct {
	name, mesh string // of --mesh
	want       ir.Mesh
	plan       []string // the collectives of the plan, in the order of the model
}{
	{"collectives_2d", "", ir.Mesh{Axes: []ir.MeshAxis{{Name: "group1", Size: 2}, {Name: "group3", Size: 2}}}, []string{
		"all_reduce add group3", "all_gather group1", "reduce_scatter add group3", "all_to_all group1", "all_reduce or group3",
		"all_reduce maximum group1,group3", "all_reduce maximum group1,group3", "all_gather group1,group3", "all_reduce multiply group1"}},
	{"collectives_2d", "dp=2,tp=2", ir.Mesh{Axes: []ir.MeshAxis{{Name: "dp", Size: 2}, {Name: "tp", Size: 2}}}, []string{
		"all_reduce add tp", "all_gather dp", "reduce_scatter add tp", "all_to_all dp", "all_reduce or tp",
		"all_reduce maximum dp,tp", "all_reduce maximum dp,tp", "all_gather dp,tp", "all_reduce multiply dp"}},
	{"collectives_rare", "", ir.Mesh{Axes: []ir.MeshAxis{{Name: "group1", Size: 2}, {Name: "group3", Size: 2}}}, []string{
		"all_gather group1", "all_gather group1", "reduce_scatter minimum group3", "reduce_scatter minimum group3", "all_gather group3",
		"all_reduce add group1", "all_reduce or group1", "all_reduce add group3", "all_reduce add group3", "all_reduce xor group3", "all_to_all group3"}},
	{"tensor_parallel_mlp", "dp=2,group3=2", ir.Mesh{Axes: []ir.MeshAxis{{Name: "dp", Size: 2}, {Name: "group3", Size: 2}}}, []string{"all_reduce add group3"}},
	{"sequence_parallel_mlp", "dp=2,group3=2", ir.Mesh{Axes: []ir.MeshAxis{{Name: "dp", Size: 2}, {Name: "group3", Size: 2}}}, []string{
		"all_gather group3", "reduce_scatter add group3"}},
}

// TestImportedCollectives compiles models with collectives and compares each rank, evaluated and
// emulated, with what processes of torch computed together.
func TestImportedCollectives(t *testing.T) {
	needTools(t)
	for _, m := range rankModels {
		t.Run(m.name+" "+m.mesh, func(t *testing.T) {
			folder := filepath.Join("testdata", "ranks", m.name)
			c, a := compileTo(t, []weft.File{{Path: filepath.Join(folder, "model.pt2")}}, weft.Config{Targets: []string{"sm_80"}, Weights: "embed", Settings: passes.Settings{Mesh: m.mesh}})
			if got := a.Manifest.Mesh.Program(); !slices.Equal(got.Axes, m.want.Axes) {
				t.Fatalf("the mesh is %s, want %s", got, m.want)
			}
			if got, want := collectivesOf(c.Lowered[0].Plans[0]), slices.Sorted(slices.Values(m.plan)); !slices.Equal(got, want) {
				t.Errorf("collectives %q, want %q", got, want)
			}
			compareRanks(t, c, a, filepath.Join(folder, "io.safetensors"))
		})
	}
}

// collectivesOf lists the collectives of a plan, sorted.
func collectivesOf(p *plan.Plan) (list []string) {
	for _, step := range p.Steps {
		if c := step.Collective; c != nil {
			list = append(list, strings.Join(slices.DeleteFunc([]string{c.Kind, c.Combine, strings.Join(c.Axes, ",")}, func(s string) bool { return s == "" }), " "))
		}
	}
	slices.Sort(list)
	return list
}

// compareRanks compares the ranks of a compiled model with rankR.out.N of a file.
func compareRanks(t *testing.T, c *weft.Compiled, a *artifact.Artifact, file string) {
	t.Helper()
	io := readReference(t, file)
	ofRank := func(rank int64, kind string) []*ir.Tensor { return numbered(io, fmt.Sprintf("rank%d.%s.", rank, kind)) }
	inputs := func(rank int64) []*ir.Tensor { return ofRank(rank, "in") }
	source, err := a.Weights()
	if err != nil {
		t.Fatal(err)
	}
	evaluated, err := eval.RunRanks(c.Imported, "forward", inputs, func(name string) (*ir.Tensor, error) { return weights.Load(source, name) })
	if err != nil {
		t.Fatal(err)
	}
	emulated, err := localRanks(t, a).RunEach(context.Background(), "forward", inputs)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range c.Imported.Mesh.Size() {
		want := ofRank(rank, "out")
		if len(want) == 0 || len(want) != len(emulated.Outputs) {
			t.Fatalf("rank %d has %d outputs, the file %d", rank, len(emulated.Outputs), len(want))
		}
		for i, w := range want {
			got := emulated.Outputs[i].Whole
			if got == nil {
				got = emulated.Outputs[i].Parts[rank]
			}
			for device, x := range map[string]*ir.Tensor{"evaluated": evaluated[rank][i], "emulated": got} {
				if r := compare.Tensors(x, w, compare.Default(w.DType)); !r.Equal() {
					t.Errorf("rank %d, output %d, %s: %+v", rank, i, device, r)
				}
			}
		}
	}
}

// TestGlobalWeightsOfCollectives says of which global tensor a rank's weight is the part: each rank takes
// its own from one file.
func TestGlobalWeightsOfCollectives(t *testing.T) {
	needTools(t)
	folder := filepath.Join("testdata", "ranks", "collectives_2d")
	files := []weft.File{{Path: filepath.Join(folder, "model.pt2")}}
	config := weft.Config{Targets: []string{"sm_80"}, Weights: "random:3", Settings: passes.Settings{Shardings: []string{"weight=[*,group3]"}}}
	var declared *ir.Program
	after := func(pass string, _ bool, p *ir.Program) error {
		if pass == "shard" {
			declared = p.Clone()
		}
		return nil
	}
	c, err := weft.Compile(context.Background(), weft.Options{Config: config, Files: files, Jobs: 1, VerifyIR: true, AfterPass: after}, weft.StageScheduled)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := declared.State("weight").Shard.String(); got != "[8, 16@group3]" {
		t.Fatalf("the weight is of %s", got)
	}
	_, a := compileTo(t, files, config)
	source, err := a.Weights()
	if err != nil {
		t.Fatal(err)
	}
	io := readReference(t, filepath.Join(folder, "io.safetensors"))
	inputs := func(rank int64) []*ir.Tensor { return numbered(io, fmt.Sprintf("rank%d.in.", rank)) }
	want, err := eval.RunRanks(declared, "forward", inputs, func(name string) (*ir.Tensor, error) { return weights.Load(source, name) })
	if err != nil {
		t.Fatal(err)
	}
	got, err := localRanks(t, a).RunEach(context.Background(), "forward", inputs)
	if err != nil {
		t.Fatal(err)
	}
	for rank := range want {
		if r := compare.Tensors(got.Outputs[0].Parts[rank], want[rank][0], compare.Default(ir.F32)); !r.Equal() {
			t.Errorf("rank %d: %+v", rank, r)
		}
	}
}

// TestMeshOfCollectives gives models with collectives meshes that do not fit, and strategies.
func TestMeshOfCollectives(t *testing.T) {
	cases := []struct{ name, mesh, parallel, want string }{
		{"tensor_parallel_mlp", "", "", `no operator of the model tells how many ranks process group "3" has`},
		{"tensor_parallel_mlp", "dp=2,tp=2", "", "the mesh dp=2,tp=2 does not have the process groups of the model as axes: group3"},
		{"sequence_parallel_mlp", "group3=4", "", `process group "3" has 2 ranks, --mesh gives axis group3 4`},
		{"collectives_2d", "group1=2", "", "the mesh group1=2 does not have the process groups of the model as axes: group1, group3"},
		{"collectives_2d", "rest=2,group1=2,group3=2", "", "the group of all ranks has 4, the other process groups of the model make a mesh of 8"},
		{"collectives_2d", "dp=2,tp=2", "dp:ddp", "the model has collectives of its own, for a mesh dp=2,tp=2; it cannot be partitioned again"},
	}
	for _, c := range cases {
		files := []weft.File{{Path: filepath.Join("testdata", "ranks", c.name, "model.pt2")}}
		config := weft.Config{Targets: []string{"sm_80"}, Weights: "embed", Settings: passes.Settings{Mesh: c.mesh, Parallel: c.parallel}}
		compiled, err := weft.Compile(context.Background(), weft.Options{Config: config, Files: files, Jobs: 1}, weft.StageScheduled)
		if err == nil {
			compiled.Close()
		}
		list := diag.All(err)
		if len(list) != 1 || list[0].Code != diag.BadMesh || !strings.HasPrefix(list[0].Message, c.want) {
			t.Errorf("%s --mesh %q: got %v, want %s", c.name, c.mesh, err, c.want)
		}
	}
}

// TestRankModelFolders holds the table to the folders.
func TestRankModelFolders(t *testing.T) {
	folders, err := os.ReadDir(filepath.Join("testdata", "ranks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		tested := false
		for _, m := range rankModels {
			tested = tested || m.name == f.Name()
		}
		if !tested {
			t.Errorf("testdata/ranks/%s is not tested", f.Name())
		}
	}
}
