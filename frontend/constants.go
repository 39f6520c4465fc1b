package frontend

import (
	"fmt"
	"slices"
	"strings"

	"weft/frontend/lower"
	"weft/ir"
	"weft/ir/diag"
)

// parseConstants reads facts "INPUT=VALUES" about different inputs.
func parseConstants(facts []string) (map[string]*ir.Tensor, error) {
	constants := map[string]*ir.Tensor{}
	for _, fact := range facts {
		input, t, err := lower.ParseConstant(fact)
		if err != nil {
			return nil, err
		}
		if constants[input] != nil {
			return nil, diag.Errorf("W0002", "--constant", "input %q is fixed twice", input)
		}
		constants[input] = t
	}
	return constants, nil
}

// fixInputs makes constants of inputs of a program's entry, which then are no inputs any more.
// A name is that of an input, or in.N as the inputs are numbered before.
func fixInputs(p *ir.Program, constants map[string]*ir.Tensor) error {
	if len(constants) == 0 {
		return nil
	}
	e := p.Entries[len(p.Entries)-1]
	for _, entry := range p.Entries {
		if entry.Name != ir.InitEntry {
			e = entry
		}
	}
	left := map[string]*ir.Tensor{}
	for name, t := range constants {
		left[name] = t
	}
	kept := []ir.Input{}
	params, values := []ir.Value{}, []*ir.Op{}
	number := 0
	for i, in := range e.Inputs {
		v := e.Body.Params[i]
		if in.State != "" {
			kept, params = append(kept, in), append(params, v)
			continue
		}
		t, byName := left[in.Name]
		delete(left, in.Name)
		if again, byPlace := left[fmt.Sprintf("in.%d", number)]; byPlace {
			if byName {
				return diag.Errorf("W0002", "--constant", "input %q is fixed twice", in.Name)
			}
			t = again
			delete(left, fmt.Sprintf("in.%d", number))
		}
		number++
		if t == nil {
			kept, params = append(kept, in), append(params, v)
			continue
		}
		t, err := lower.AsConstant(in.Name, t, e.Type(v))
		if err != nil {
			return err
		}
		if err := fixDims(p, e, v, t); err != nil {
			return err
		}
		values = append(values, &ir.Op{Kind: ir.OpConstant, Results: []ir.Value{v}, Attrs: &ir.ConstantAttrs{Value: t}})
	}
	if err := unknownInputs(e, left); err != nil {
		return err
	}
	e.Inputs, e.Body.Params = kept, params
	e.Body.Ops = append(values, e.Body.Ops...)
	return ir.Verify(p)
}

// fixDims gives the dims of an input the sizes of its values.
func fixDims(p *ir.Program, e *ir.Entry, v ir.Value, t *ir.Tensor) error {
	for i := range t.Shape {
		d := e.Type(v).Shape[i]
		if n, ok := d.IsConst(); ok {
			if n != t.Shape[i] {
				return diag.Errorf("W0002", "--constant", "axis %d of the values has the size %d, the input's is %d", i, t.Shape[i], n)
			}
			continue
		}
		if p.Symbol(d.String()) == nil {
			return diag.Errorf("W0002", "--constant", "axis %d of the input has the size %s, which the values cannot decide", i, d).Suggest("fix that dim with --dim")
		}
		if err := setDim(p, d.String(), fmt.Sprint(t.Shape[i])); err != nil {
			return err
		}
	}
	return nil
}

func unknownInputs(e *ir.Entry, left map[string]*ir.Tensor) error {
	if len(left) == 0 {
		return nil
	}
	var unknown, known []string
	for name := range left {
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	for _, in := range e.Inputs {
		if in.State == "" {
			known = append(known, fmt.Sprintf("in.%d (%s)", len(known), in.Name))
		}
	}
	d := diag.Errorf("W0002", "--constant", "there is no input %q", unknown[0])
	if len(known) > 0 {
		d.Suggest("inputs are %s", strings.Join(known, ", "))
	}
	return d
}
