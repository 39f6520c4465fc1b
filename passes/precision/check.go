package precision

import (
	"fmt"

	"weft/ir"
	"weft/ir/diag"
)

// Check holds the flow of types in a program that a policy rewrote against the one before. What
// it finds is a bug of the pass. Its rules:
//
//   - D1: states, and the caller's inputs and outputs, keep their types, but for outputs that the
//     policy gives another.
//   - D2: no value has a float type that neither the model nor the policy has.
//   - D3: a product of float32 is one that the policy leaves: by a rule, since it sums nothing, or
//     since it is made of parameters alone.
//   - D4: beside products, and operations that only move elements, nothing takes or gives narrower floats
//     that did not in the model.
//   - D5: nothing is rounded twice: no cast to the compute type of a value that was widened from it
//     (the model may do so).
func Check(before, after *ir.Program, policy Policy) error {
	c := &checker{policy: policy, own: map[string]bool{}}
	for i, s := range after.States {
		if i < len(before.States) && !s.Type.Equal(before.States[i].Type) {
			c.fail("", "D1: state %q became %s", s.Name, s.Type)
		}
	}
	for i, e := range after.Entries {
		c.entry(before.Entries[i], e, before, after)
	}
	return c.err
}

type checker struct {
	policy Policy
	own    map[string]bool // the places of the model's own casts
	err    error
}

func (c *checker) fail(loc, format string, args ...any) {
	if c.err == nil {
		c.err = diag.Errorf(diag.Bug, "", "precision: %s", fmt.Sprintf(format, args...)).Note("at %s", loc)
	}
}

func (c *checker) entry(before, after *ir.Entry, was, is *ir.Program) {
	for i, v := range after.Body.Params {
		if !after.Type(v).Equal(before.Type(before.Body.Params[i])) {
			c.fail(after.Inputs[i].Name, "D1: input %q became %s", after.Inputs[i].Name, after.Type(v))
		}
	}
	for i, v := range after.Body.Results {
		want := before.Type(before.Body.Results[i])
		if to := c.policy.Output; to != ir.InvalidDType && want.DType == ir.F32 && after.Outputs[i].State == "" {
			want = want.With(to)
		}
		if !after.Type(v).Equal(want) {
			c.fail(after.Outputs[i].Name, "D1: output %q became %s, not %s", after.Outputs[i].Name, after.Type(v), want)
		}
	}
	narrowed := map[string]int{} // operations of the model on narrower floats, by what they are
	types := map[ir.DType]bool{c.policy.Compute: true, c.policy.Output: true, ir.F32: true}
	before.Body.Walk(func(op *ir.Op) {
		eachType(before, op, func(t ir.DType) { types[t] = true })
		if op.Kind == ir.OpConvert {
			c.own[op.Loc] = true
		}
		if isNarrow(before, op) {
			narrowed[op.Kind.String()+" "+op.Loc]++
		}
	})
	for _, v := range before.Body.Params {
		types[before.Type(v).DType] = true
	}
	flow := newFlow(is, after, c.policy)
	defs := map[ir.Value]*ir.Op{}
	after.Body.Walk(func(op *ir.Op) {
		for _, v := range op.Results {
			defs[v] = op
		}
		eachType(after, op, func(t ir.DType) {
			if t.IsFloat() && !types[t] {
				c.fail(op.Loc, "D2: %s has %s", op.Kind, t)
			}
		})
		c.product(flow, op)
		if key := op.Kind.String() + " " + op.Loc; isNarrow(after, op) && c.computes(flow, op) {
			if narrowed[key]--; narrowed[key] < 0 {
				c.fail(op.Loc, "D4: %s computes in %s", op.Kind, operandTypes(after, op))
			}
		}
		c.roundTrip(after, op, defs)
	})
}

// product is rule D3.
func (c *checker) product(f *flow, op *ir.Op) {
	if c.policy.narrows() && f.product(op) && f.colors[op.Results[0]] == narrow {
		c.fail(op.Loc, "D3: %s of float32, where the policy has %s", op.Kind, c.policy.Compute)
	}
}

// computes tells whether rule D4 is about an operation.
func (c *checker) computes(f *flow, op *ir.Op) bool {
	class := op.Kind.Info().Class
	return class != ir.ClassContraction && class != ir.ClassSource && class != ir.ClassControl && op.Kind != ir.OpConvert && !f.moves(op)
}

// roundTrip is rule D5.
func (c *checker) roundTrip(e *ir.Entry, op *ir.Op, defs map[ir.Value]*ir.Op) {
	if op.Kind != ir.OpConvert || e.Type(op.Results[0]).DType != c.policy.Compute || !c.policy.narrows() || c.own[op.Loc] {
		return
	}
	inner := defs[op.Operands[0]]
	if inner != nil && inner.Kind == ir.OpConvert && e.Type(inner.Operands[0]).DType == c.policy.Compute {
		c.fail(op.Loc, "D5: a value is widened and cast back")
	}
}

// isNarrow tells whether an operation takes or gives floats of less than 32 bits.
func isNarrow(e *ir.Entry, op *ir.Op) bool {
	found := false
	eachType(e, op, func(t ir.DType) { found = found || t.IsFloat() && t.Bits() < 32 })
	return found
}

func eachType(e *ir.Entry, op *ir.Op, visit func(ir.DType)) {
	for _, list := range [][]ir.Value{op.Operands, op.Results} {
		for _, v := range list {
			if e.Type(v).Kind == ir.TensorKind {
				visit(e.Type(v).DType)
			}
		}
	}
}

func operandTypes(e *ir.Entry, op *ir.Op) []string {
	var list []string
	for _, v := range op.Operands {
		list = append(list, e.Type(v).DType.String())
	}
	return list
}
