package ptx

import (
	"errors"
	"strings"
)

// Lint rejects what weft's kernels must not contain: float additions, subtractions and
// multiplications without a rounding suffix, which ptxas would fuse and so change their
// result; local memory, which is slow and hides an array that should be in registers; and
// calls. The error joins one *Error a finding, in source order.
func Lint(text string) error {
	m, err := Parse(text)
	if err != nil {
		return err
	}
	var findings []error
	report := func(p Position, message string) { findings = append(findings, &Error{p, message}) }
	for _, v := range m.Variables {
		if v.Space == Local {
			report(v.Position, "local memory: "+v.Name)
		}
	}
	for _, f := range m.Functions {
		for _, v := range f.Variables {
			if v.Space == Local {
				report(v.Position, "local memory: "+v.Name)
			}
		}
		for _, in := range f.Body {
			if message := lintInstruction(in); message != "" {
				report(in.Position, message+": "+in.Text)
			}
		}
	}
	return errors.Join(findings...)
}

func lintInstruction(in *Instruction) string {
	switch in.Opcode {
	case "add", "sub", "mul":
		rounded := in.Has("rn") || in.Has("rz") || in.Has("rm") || in.Has("rp")
		if types := in.Types(); len(types) > 0 && types[0].Float() && !rounded {
			return "float " + in.Opcode + " without rounding, which ptxas may fuse"
		}
	case "call":
		return "call"
	}
	for _, m := range in.Modifiers {
		if strings.HasPrefix(m, "local") {
			return "local memory"
		}
	}
	return ""
}
