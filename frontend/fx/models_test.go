package fx

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
	"weft/ir/eval"
)

// modelsDir has archives with inputs and outputs that torch computed.
const modelsDir = "../../testdata/models"

// TestModels imports every archive of the repository, evaluates it and compares with torch.
func TestModels(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(modelsDir, "*", "model.pt2"))
	if err != nil || len(files) == 0 {
		t.Fatal("no models found", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			t.Parallel()
			checkModel(t, file)
		})
	}
}

// checkModel compares a model with every io*.safetensors beside it.
func checkModel(t *testing.T, file string) {
	m, err := Import(file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, w := range m.Warnings {
		t.Log(w)
	}
	cases, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "io*.safetensors"))
	if len(cases) == 0 {
		t.Fatal("no io.safetensors")
	}
	for _, io := range cases {
		_, tensors, closer, err := weights.ReadTensors(io, "")
		if err != nil {
			t.Fatal(err)
		}
		checkRun(t, filepath.Base(io), m, tensors)
		closer.Close()
	}
}

// checkRun runs a model on in.N and compares its outputs with out.N, after.in.N and
// after.state.NAME.
func checkRun(t *testing.T, name string, m *Model, tensors map[string]*ir.Tensor) {
	e := m.Program.Entries[0]
	position := map[string]int{}
	var inputs []*ir.Tensor
	for _, in := range e.Inputs {
		if in.State == "" {
			position[in.Name] = len(inputs)
			inputs = append(inputs, tensors["in."+strconv.Itoa(len(inputs))])
		}
	}
	r, err := eval.Run(m.Program, e.Name, inputs, func(state string) (*ir.Tensor, error) {
		if v := tensors["state."+state]; v != nil {
			return v, nil
		}
		return weights.Load(m.Weights, state)
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	compared, outputs := 0, 0
	check := func(what string, got, want *ir.Tensor) {
		if want == nil {
			t.Errorf("%s: there is no %s to compare with", name, what)
			return
		}
		compared++
		tol := compare.Default(want.DType)
		if c := compare.Tensors(got, want, tol); !c.Equal() {
			t.Errorf("%s: %s %s: %s", name, what, got.Type(), describe(c))
		}
	}
	for _, out := range e.Outputs {
		if out.State != "" {
			if want := tensors["after.state."+out.State]; want != nil {
				check("after.state."+out.State, r.State[out.State], want)
			}
			continue
		}
		got := r.Outputs[0]
		r.Outputs = r.Outputs[1:]
		if in, ok := strings.CutPrefix(out.Name, "after."); ok {
			what := "after.in." + strconv.Itoa(position[in])
			check(what, got, tensors[what])
			continue
		}
		what := "out." + strconv.Itoa(outputs)
		outputs++
		check(what+" ("+out.Name+")", got, tensors[what])
	}
	wanted := 0
	for name := range tensors {
		if strings.HasPrefix(name, "out.") || strings.HasPrefix(name, "after.") {
			wanted++
		}
	}
	if compared != wanted {
		t.Errorf("%s: %d outputs compared, the file has %d", name, compared, wanted)
	}
}

func describe(c compare.Result) string {
	if c.Problem != "" {
		return c.Problem
	}
	return fmt.Sprintf("%d of %d differ, worst at %v: got %s, want %s", c.Mismatches, c.Elements, c.Worst.Index, c.Worst.Got, c.Worst.Want)
}
