package eval

import (
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
)

// FuzzRun evaluates small programs that verify: whatever their attributes, the result is values
// of the declared types or a diagnostic.
func FuzzRun(f *testing.F) {
	eachCase(f, func(_ string, _ int, line string) {
		if _, text, _, err := caseText(strings.TrimPrefix(line, "about ")); err == nil && len(text) < 1000 {
			f.Add(text)
		}
	})
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ir.ParseProgram("fuzz", []byte(text))
		if err != nil || ir.Verify(p) != nil || len(p.Entries) == 0 || !small(p.Entries[0]) {
			return
		}
		e := p.Entries[0]
		var inputs []*ir.Tensor
		state := func(name string) (*ir.Tensor, error) { return zeros(p.State(name).Type), nil }
		for i, in := range e.Inputs {
			if in.State == "" {
				inputs = append(inputs, zeros(e.Type(e.Body.Params[i])))
			}
		}
		r, err := Run(p, e.Name, inputs, state)
		if err != nil {
			if diag.All(err)[0].Code == diag.Bug {
				t.Fatalf("error without a code: %v", err)
			}
			return
		}
		for i, v := range e.Body.Results {
			if e.Outputs[i].State != "" {
				continue
			}
			if got := r.Outputs[0]; got.DType != e.Type(v).DType || got.Check() != nil {
				t.Fatalf("output %d is %s, declared %s", i, got, e.Type(v))
			}
			r.Outputs = r.Outputs[1:]
		}
	})
}

// zeros is a tensor of a type, with 2 for dims that are not constant.
func zeros(t ir.Type) *ir.Tensor {
	shape := make([]int64, t.Rank())
	for i, d := range t.Shape {
		v, ok := d.IsConst()
		if !ok {
			v = 2
		}
		shape[i] = v
	}
	return ir.NewTensor(t.DType, shape...)
}

// small tells whether a program has no loop and only small values.
func small(e *ir.Entry) bool {
	ok := true
	e.Body.Walk(func(op *ir.Op) {
		ok = ok && op.Kind != ir.OpWhile
	})
	for _, t := range e.Types {
		n, c := t.Numel().IsConst()
		ok = ok && t.Kind == ir.TensorKind && (!c || n < 1<<12) && t.Rank() < 8
	}
	return ok
}
