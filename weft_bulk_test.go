package weft

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/codegen"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/plan"
	"weft/passes"
	"weft/passes/precision"
	"weft/runtime"
)

var bulkModels = flag.String("bulk-models", "", "files of more models for TestBulkModels, as a `PATTERN` of paths")

// TestBulkModels runs products and attention of models by bulk copies, however small they are, and by copies of all warps. The same products
// are summed in the same order: results are equal, bit for bit, and close to PyTorch's.
func TestBulkModels(t *testing.T) {
	tests := [][2]string{ // file and policy
		{"narrow_llama_bf16/model.pt2"}, {"llama_tiny_bf16/model.pt2"}, {"narrow_autocast/model.pt2"}, {"gpt2_tiny_dynamic/model.pt2", "bf16"},
		{"llama_tiny/model.pt2", "compute=fp16"}, {"vit_tiny/model.onnx", "bf16"}, {"bert_tiny/model.pt2", "compute=fp16"}, {"ops_matmul/model.pt2", "compute=fp16"}, {"llama_tiny_loss/model.pt2", "bf16"}, {"mixtral_tiny/model.pt2", "bf16"},
	}
	for i := range tests {
		tests[i][0] = filepath.Join("testdata/models", tests[i][0])
	}
	more, err := filepath.Glob(*bulkModels)
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range more {
		tests = append(tests, [2]string{file, []string{"bf16", "compute=fp16"}[i%2]})
	}
	for i, test := range tests {
		tile := bulkTiles[i%len(bulkTiles)]
		tile.Blocks = []int{1, 2, 132}[i%3]
		t.Run(test[0]+" "+test[1], func(t *testing.T) { checkBulkModel(t, test[0], test[1], tile) })
	}
}

func checkBulkModel(t *testing.T, file, text string, tile ir.Schedule) {
	var policy precision.Policy
	var err error
	if text != "" {
		if policy, err = precision.Parse(text); err != nil {
			t.Fatal(err)
		}
	}
	imported, err := Import([]File{{Path: file}}, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	defer imported.Weights.Close()
	var subjects []*subject
	for _, bulk := range []bool{true, false} {
		s := forcedSubject(t, fmt.Sprintf("%s %s, %v", file, text, bulk), imported.Program, policy, tile, bulk)
		if s == nil {
			if *bulkModels == "" {
				t.Error("no product or attention of half types has operands that bulk copies can bring")
			}
			return
		}
		s.compiled.weights = imported.Weights
		subjects = append(subjects, s)
	}
	owner := map[string]string{}
	kernels := assemble(t, subjects, corpusTargets[1], owner)
	checkAssembly(t, kernels, owner, corpusTargets[1])
	for i, s := range subjects {
		if copies := bytes.Contains(s.compiled.PTX[corpusTargets[1]], []byte("cp.async.bulk.tensor")); copies != (i == 0) {
			t.Errorf("%s: bulk copies: %v", s.name, copies)
		}
	}
	references, err := filepath.Glob(filepath.Join(filepath.Dir(file), "io*.safetensors"))
	if err != nil || len(references) == 0 {
		t.Fatal("no references")
	}
	for _, reference := range references {
		_, tensors, closer, err := weights.ReadTensors(reference, "in.0")
		if err != nil {
			t.Fatal(err)
		}
		defer closer.Close()
		got, same := subjects[0].results(t, tensors), subjects[1].results(t, tensors)
		for i, x := range got {
			if !bytes.Equal(x.Data, same[i].Data) {
				t.Errorf("%s: output %d is not what copies of all warps give: %v", reference, i, spec{}.compareTensors(x, same[i]))
			}
			if want := tensors[fmt.Sprint("out.", i)]; want != nil && want.DType.IsFloat() && !(apart(x, want) < 0.06) {
				t.Errorf("%s: output %d is %g of its size from PyTorch's", reference, i, apart(x, want))
			}
		}
	}
}

// results are the outputs of the first entry on the emulator.
func (s *subject) results(t *testing.T, tensors map[string]*ir.Tensor) []*ir.Tensor {
	t.Helper()
	a, device := s.opened(t)
	session, err := runtime.Open(a, device, runtime.Options{Target: corpusTargets[1]})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var inputs []*ir.Tensor
	for tensors[fmt.Sprint("in.", len(inputs))] != nil {
		inputs = append(inputs, tensors[fmt.Sprint("in.", len(inputs))])
	}
	for name, v := range tensors {
		if state, ok := strings.CutPrefix(name, "state."); ok {
			if err := session.SetState(state, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	r, err := session.Run(s.program.Entries[0].Name, inputs)
	if err != nil {
		t.Fatal(err)
	}
	return r.Outputs
}

// apart is the size of a difference as a part of that of a tensor, as the roots of sums of squares.
func apart(got, want *ir.Tensor) float64 {
	difference, size := 0.0, 1e-12
	for i := range want.Numel() {
		d := got.Float(i) - want.Float(i)
		difference += d * d
		size += want.Float(i) * want.Float(i)
	}
	return math.Sqrt(difference / size)
}

// forcedSubject is a program with all products and attention of half types on warpgroups that can run by bulk copies: by these, or by copies
// of all warps. It is nil where there are none.
func forcedSubject(t *testing.T, name string, p *ir.Program, policy precision.Policy, tile ir.Schedule, bulk bool) *subject {
	t.Helper()
	s := &subject{name: fmt.Sprintf("%s/%d columns", name, tile.TileN), program: p}
	scheduled, count := p.Clone(), 0
	report, err := passes.Run(scheduled, passes.Options{Precision: policy, Verify: true, After: func(pass string, _ bool, p *ir.Program) error {
		if pass == "fuse" {
			count = forceBulk(p, tile, bulk)
		}
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	if count == 0 {
		return nil
	}
	s.compiled = &Compiled{Imported: p, Scheduled: scheduled, Report: report, PTX: map[string][]byte{}}
	s.compiled.aim(corpusTargets[1])
	if s.compiled.Lowered, err = codegen.Lower(scheduled, s.compiled.targets...); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	for _, l := range s.compiled.Lowered {
		if _, err := plan.Prove(l.Plans, l.Targets, 0); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
	return s
}

// forceBulk schedules the groups whose operands bulk copies can bring, and counts them.
func forceBulk(p *ir.Program, tile ir.Schedule, bulk bool) (count int) {
	for _, e := range p.Entries {
		e.Body.Walk(func(op *ir.Op) {
			a, ok := op.Attrs.(*ir.KernelAttrs)
			if !ok || a.Group != ir.ContractGroup && a.Group != ir.AttentionGroup || !ir.CopiesInBulk(p, e, op.Regions[0]) {
				return
			}
			s, elsewhere := tile, warpgroupsElsewhere
			if a.Group == ir.AttentionGroup {
				if !attentionOnWarpgroups(e, op.Regions[0]) {
					return
				}
				elsewhere = ir.Schedule{Threads: 128, TileM: 64, TileN: 64, Stages: 2}
				s = elsewhere
				s.Bulk = true
			}
			count++
			if a.Schedule, a.Warpgroup = elsewhere, s; !bulk {
				a.Warpgroup = withoutBulk(s)
			}
		})
	}
	return count
}

// attentionOnWarpgroups tells whether heads are as the kernels for warpgroups have them.
func attentionOnWarpgroups(e *ir.Entry, region *ir.Block) bool {
	anchor := region.Ops[slices.IndexFunc(region.Ops, func(op *ir.Op) bool { return op.Kind == ir.OpAttention })]
	depth, _ := e.Type(anchor.Operands[0]).Shape[3].IsConst()
	width, _ := e.Type(anchor.Operands[2]).Shape[3].IsConst()
	return min(depth, width) > 0 && depth%64 == 0 && width%64 == 0 && max(depth, width) <= 128 && (len(anchor.Operands) == 3 || depth+width <= 128)
}
