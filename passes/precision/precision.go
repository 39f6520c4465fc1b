// Package precision decides which parts of a program compute in bfloat16, float16 or TF32, by a
// policy (docs/precision.md). Products (matrix products, convolutions, attention) take operands
// of the policy's compute type and sum in float32; what they give is stored in that type. Other
// operations compute in float32, and their results are stored in the type of their operands.
// Sums, norms, softmax and losses stay float32. What the model itself converts is left alone.
//
// A value is cast once. Casts move to where they cost least: through transposes, reshapes and
// broadcasts to what those read, so that a parameter's cast depends on the parameter alone and
// runs once at load.
package precision

import (
	"weft/ir"
	"weft/ir/diag"
)

// Result is what the pass did.
type Result struct {
	Changed bool
	Rows    []Row // for each operator of floats, what it computes in
}

// Run applies a policy to all entries of a program.
func Run(p *ir.Program, policy Policy) (Result, error) {
	var result Result
	if policy.IsZero() {
		return result, nil
	}
	if err := policy.checkModules(p); err != nil {
		return result, err
	}
	before := p.Clone()
	for _, e := range p.Entries {
		r := newRewriter(newFlow(p, e, policy))
		if err := ir.Try(r.run); err != nil {
			return result, err
		}
		result.Rows = append(result.Rows, r.report()...)
	}
	result.Rows = merge(result.Rows)
	if before.String() == p.String() {
		*p = *before
		return result, nil
	}
	result.Changed = true
	return result, Check(before, p, policy)
}

// Unchanged is the note that a policy had nothing to do.
func Unchanged(policy Policy) *diag.Diagnostic {
	reason := "the program has no float32 product that it applies to"
	if !policy.narrows() && !policy.TF32 {
		reason = "it asks for float32, which programs compute in unless they say otherwise"
	}
	d := diag.Errorf(diag.NothingNarrowed, "--precision", "%s changes nothing: %s", policy, reason)
	d.Severity = diag.Note
	return d
}
