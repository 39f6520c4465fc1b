package weft_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weft"
	"weft/ir/plan"
	"weft/passes"
)

// TestRanksProven compiles models for meshes of up to 16,384 ranks: each plan is proven for all of them.
func TestRanksProven(t *testing.T) {
	for _, c := range []struct{ model, mesh, parallel string }{
		{"mlp", "dp=2", "dp:ddp"},
		{"gpt2_tiny", "tp=2", "tp:tp"},
		{"gpt2_tiny", "dp=2,tp=2", "dp:fsdp,tp:tp+sp"},
		{"llama_tiny", "dp=64,tp=8", "dp:fsdp,tp:tp"},
		{"llama_tiny_joint", "dp=2", "dp:ddp"},
		{"llama_tiny_joint", "dp=2048,tp=8", "dp:fsdp,tp:tp"},
		{"mlp_joint", "dp=4", "dp:zero2"},
		{"mixtral_tiny", "ep=4", "ep:ep"},
		{"mobilenet_v3_small", "dp=2", "dp:fsdp"},
		{"gpt2_tiny", "dp=4096,tp=4", "dp:fsdp,tp:tp"},
	} {
		t.Run(c.model+" "+c.mesh+" "+c.parallel, func(t *testing.T) {
			config := weft.Config{Targets: []string{"sm_80"}, Weights: "none", Settings: passes.Settings{Mesh: c.mesh, Parallel: c.parallel}}
			compiled, err := weft.Compile(context.Background(), weft.Options{Config: config, Files: []weft.File{{Path: "testdata/models/" + c.model + "/model.pt2"}}}, weft.StageLowered)
			if err != nil {
				t.Fatal(err)
			}
			defer compiled.Close()
			plans := compiled.Lowered[0].Plans
			start := time.Now()
			if err := plan.VerifyRanks(plans...); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took > time.Second {
				t.Errorf("the proof took %v", took)
			}
			testOtherRank(t, plans[0].For("sm_80"))
		})
	}
}

// testOtherRank refuses a plan for a mesh where one rank has another, which lacks a collective.
func testOtherRank(t *testing.T, good *plan.Plan) {
	t.Helper()
	ranks := int(good.MeshOf().Size())
	last := -1
	for i, s := range good.Steps {
		if s.Collective != nil {
			last = i
		}
	}
	if last < 0 {
		return
	}
	bad := *good
	bad.Steps = slices.Delete(slices.Clone(good.Steps), last, last+1)
	plans := slices.Repeat([]*plan.Plan{good}, ranks)
	plans[ranks-1] = &bad
	start := time.Now()
	err := plan.VerifyPeers(plans)
	if took := time.Since(start); took > time.Second {
		t.Errorf("the proof took %v", took)
	}
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("rank %d (", ranks-1)) {
		t.Error(err)
	}
	if err := plan.VerifyPeers(plans[:ranks-1]); err == nil {
		t.Error("a rank is missing")
	}
}
