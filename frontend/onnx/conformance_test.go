package onnx

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/frontend/lower"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
	"weft/ir/diag"
	"weft/ir/eval"
)

// nodeCase is a case of ONNX's backend test suite.
type nodeCase struct {
	name            string
	model           []byte
	inputs, outputs [][]byte // TensorProto
	rtol, atol      float64
}

// readCase reads a folder as onnx.backend.test writes it: model.onnx, data.json with the
// tolerances, and test_data_set_0 with a file for each input and output.
func readCase(dir string) (nodeCase, error) {
	c := nodeCase{name: filepath.Base(dir), rtol: 1e-3, atol: 1e-7}
	var err error
	if c.model, err = os.ReadFile(filepath.Join(dir, "model.onnx")); err != nil {
		return c, err
	}
	if text, err := os.ReadFile(filepath.Join(dir, "data.json")); err == nil {
		limits := struct{ Rtol, Atol float64 }{c.rtol, c.atol}
		if err := json.Unmarshal(text, &limits); err != nil {
			return c, err
		}
		c.rtol, c.atol = limits.Rtol, limits.Atol
	}
	for _, part := range []struct {
		name string
		to   *[][]byte
	}{{"input", &c.inputs}, {"output", &c.outputs}} {
		for i := 0; ; i++ {
			data, err := os.ReadFile(filepath.Join(dir, "test_data_set_0", fmt.Sprintf("%s_%d.pb", part.name, i)))
			if errors.Is(err, os.ErrNotExist) {
				break
			}
			if err != nil {
				return c, err
			}
			*part.to = append(*part.to, data)
		}
	}
	return c, nil
}

func parseTensor(data []byte) (*ir.Tensor, error) {
	d := &decoder{base: data[:len(data):len(data)]}
	p, err := d.tensor(d.base)
	if err != nil {
		return nil, err
	}
	t, diagnostic := (&externalFiles{}).read(p, p.name)
	if diagnostic != nil {
		return nil, diagnostic
	}
	return t, nil
}

// outcome classifies what became of a case.
type outcome string

const (
	agrees      outcome = "agrees"
	agreesBound outcome = "agrees with integer inputs bound"
	drawn       outcome = "runs; random, so types and shapes are compared alone"
	unsupported outcome = "unsupported"
	rejected    outcome = "rejected"
	failsToRun  outcome = "fails to run"
	differs     outcome = "differs"
	invalid     outcome = "makes an invalid program"
	unreadable  outcome = "needs sequences or strings"
)

// run imports the case and evaluates it. Where a shape depends on an input, the integer and
// small inputs are fixed to their values.
func (c nodeCase) run() (outcome, error) {
	inputs, want := make([]*ir.Tensor, len(c.inputs)), make([]*ir.Tensor, len(c.outputs))
	for _, part := range []struct {
		from [][]byte
		to   []*ir.Tensor
	}{{c.inputs, inputs}, {c.outputs, want}} {
		for i, data := range part.from {
			t, err := parseTensor(data)
			if err != nil || t.DType == ir.String {
				return unreadable, err
			}
			part.to[i] = t
		}
	}
	good := agrees
	m, err := ImportBytes(c.model, Options{})
	if err != nil && bindable(err) {
		good = agreesBound
		m, err = ImportBytes(c.model, Options{Constants: c.constants(inputs)})
	}
	if err != nil {
		if diag.ExitStatus(err) == diag.Unsupported {
			return unsupported, err
		}
		return rejected, err
	}
	defer m.Close()
	if err := ir.Verify(m.Program); err != nil {
		return invalid, err
	}
	got, err := evaluate(m, c.graphInputs(), inputs)
	if err != nil {
		return failsToRun, err
	}
	generator := m.Program.State(lower.GeneratorState)
	random := generator != nil && generator.Kind == ir.Generator
	for i := range want {
		if i >= len(got) {
			return differs, fmt.Errorf("%d outputs, want %d", len(got), len(want))
		}
		if random {
			good = drawn
			if got[i].DType != want[i].DType || !slices.Equal(got[i].Shape, want[i].Shape) {
				return differs, fmt.Errorf("output %d is %s%d, want %s%d", i, got[i].DType, got[i].Shape, want[i].DType, want[i].Shape)
			}
			continue
		}
		if err := compareTensors(got[i], want[i], c.rtol, c.atol); err != nil {
			return differs, fmt.Errorf("output %d: %w", i, err)
		}
	}
	return good, nil
}

// bindable tells whether knowing inputs may help.
func bindable(err error) bool {
	return slices.ContainsFunc(diag.All(err), func(d *diag.Diagnostic) bool {
		return d.Code == diag.ONNXDataDependent || d.Code == diag.ONNXForm || d.Code == "W2002"
	})
}

func (c nodeCase) graphInputs() []string {
	m, err := decodeModel(c.model)
	if err != nil {
		return nil
	}
	stored := map[string]bool{}
	for _, t := range m.graph.initializers {
		stored[t.name] = true
	}
	var names []string
	for _, in := range m.graph.inputs {
		if !stored[in.name] {
			names = append(names, in.name)
		}
	}
	return names
}

func (c nodeCase) constants(inputs []*ir.Tensor) map[string]*ir.Tensor {
	constants := map[string]*ir.Tensor{}
	for i, name := range c.graphInputs() {
		if i < len(inputs) && (inputs[i].DType.IsInteger() || inputs[i].DType == ir.Bool || inputs[i].Numel() <= 8) {
			constants[name] = inputs[i]
		}
	}
	return constants
}

// evaluate runs the program in the reference evaluator on named values.
func evaluate(m *lower.Imported, names []string, values []*ir.Tensor) ([]*ir.Tensor, error) {
	e := m.Program.Entries[0]
	var inputs []*ir.Tensor
	for _, in := range e.Inputs {
		if in.State != "" {
			continue
		}
		i := slices.Index(names, in.Name)
		if i < 0 || i >= len(values) {
			return nil, fmt.Errorf("no value for input %q", in.Name)
		}
		inputs = append(inputs, values[i])
	}
	state := func(name string) (*ir.Tensor, error) {
		if s := m.Program.State(name); s != nil && s.Kind == ir.Generator {
			return ir.NewTensor(ir.I64, 2), nil // seed and offset
		}
		return weights.Load(m.Weights, name)
	}
	r, err := eval.Run(m.Program, e.Name, inputs, state)
	if err != nil {
		return nil, err
	}
	return r.Outputs, nil
}

// compareTensors compares within the case's tolerance, or that of a narrow type, whose last
// place depends on the order of operations.
func compareTensors(got, want *ir.Tensor, rtol, atol float64) error {
	// The expected values were computed in float32.
	tolerance := compare.Tolerance{Relative: rtol, Absolute: max(atol, 1e-6)}
	if narrow := compare.Default(got.DType); got.DType.IsFloat() && got.DType.Bits() <= 16 {
		tolerance = compare.Tolerance{Relative: max(rtol, narrow.Relative), Absolute: max(atol, narrow.Absolute)}
	}
	r := compare.Tensors(got, want, tolerance)
	switch {
	case r.Problem != "":
		return errors.New(r.Problem)
	case !r.Equal():
		return fmt.Errorf("%d of %d elements differ; at %v got %s, want %s", r.Mismatches, r.Elements, r.Worst.Index, r.Worst.Got, r.Worst.Want)
	}
	return nil
}

// caseFolders lists the cases in the folders that WEFT_ONNX_NODE names.
func caseFolders(t *testing.T) []string {
	var all []string
	for _, root := range filepath.SplitList(os.Getenv("WEFT_ONNX_NODE")) {
		dirs, err := filepath.Glob(filepath.Join(root, "test_*"))
		if err != nil || len(dirs) == 0 {
			t.Fatalf("no cases in %s: %v", root, err)
		}
		all = append(all, dirs...)
	}
	if len(all) == 0 {
		t.Fatal("WEFT_ONNX_NODE does not name folders with node cases")
	}
	return all
}

// TestConformance runs the cases of folders, as onnx.backend.test writes them, and reports
// how many agree. WEFT_ONNX_NODE lists the folders; WEFT_ONNX_CASE selects cases by substring.
func TestConformance(t *testing.T) {
	if os.Getenv("WEFT_ONNX_NODE") == "" {
		t.Skip("WEFT_ONNX_NODE does not name folders with node cases")
	}
	outcomes := map[outcome]int{}
	for _, dir := range caseFolders(t) {
		if only := os.Getenv("WEFT_ONNX_CASE"); !strings.Contains(filepath.Base(dir), only) {
			continue
		}
		c, err := readCase(dir)
		if err != nil {
			t.Fatal(err)
		}
		o, err := c.run()
		outcomes[o]++
		switch o {
		case agrees, agreesBound, drawn:
		case differs, failsToRun, rejected, invalid:
			t.Errorf("%s %s: %v", c.name, o, err)
		default:
			t.Logf("%s %s: %v", c.name, o, err)
		}
	}
	total := 0
	for _, n := range outcomes {
		total += n
	}
	for _, o := range slices.SortedFunc(maps.Keys(outcomes), func(a, b outcome) int { return cmp.Compare(a, b) }) {
		t.Logf("%5d of %d %s", outcomes[o], total, o)
	}
}
