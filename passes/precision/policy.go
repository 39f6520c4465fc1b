package precision

import (
	"slices"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// Policy says in which types a program computes, reduces and gives its results. The zero Policy
// leaves programs as they are.
type Policy struct {
	Compute ir.DType // of products: bf16, f16 or f32
	TF32    bool     // products of float32 may round their operands to TF32; Compute is f32
	Params  ir.DType // to which parameters are rounded before any use: f32 (not at all) or Compute
	Reduce  ir.DType // in which partial sums travel between ranks: f32 or Compute
	Output  ir.DType // of the caller's float32 outputs; InvalidDType and f32 keep them
	Rules   []Rule   // exceptions; the last that applies decides
}

// Rule makes an exception of the operations of a kind or of some modules: with float32 all of
// them compute in float32; with the policy's compute type their products do so, and their other
// results are stored in it, but for sums and the functions that need float32.
type Rule struct {
	Kind   ir.Kind // ir.InvalidKind: the rule is for modules
	Module string  // a pattern of module paths: see matchModule
	Type   ir.DType
}

// Parse reads a policy: a type (bf16, fp16, f32 or tf32), or parts separated by commas:
//
//	compute=bf16,params=f32,reduce=f32,output=f32,op:attention=f32,lm_head=f32
//
// A type alone may be the first part. What is left out is float32.
func Parse(text string) (Policy, error) {
	p := Policy{Compute: ir.F32, Params: ir.F32, Reduce: ir.F32}
	seen := map[string]bool{}
	for i, part := range strings.Split(text, ",") {
		part = strings.TrimSpace(part)
		key, value, given := strings.Cut(part, "=")
		if !given {
			if i > 0 || part == "" {
				return Policy{}, bad("%q is no part of a precision policy", part)
			}
			key, value = "compute", part
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if seen[key] {
			return Policy{}, bad("%q is given twice", key)
		}
		seen[key] = true
		if err := p.set(key, value); err != nil {
			return Policy{}, err
		}
	}
	return p, p.check()
}

// set sets one part of a policy.
func (p *Policy) set(key, value string) error {
	t, ok := typeNames[strings.ToLower(value)]
	tf32 := key == "compute" && strings.EqualFold(value, "tf32")
	if !ok && !tf32 {
		d := bad("%q is no type of a precision policy", value)
		if near := diag.Nearest(value, slices.Sorted(keys(typeNames)), 2); len(near) > 0 {
			d.Suggest("did you mean %s?", strings.Join(near, " or "))
		}
		return d
	}
	switch {
	case tf32:
		p.Compute, p.TF32 = ir.F32, true
	case key == "compute":
		p.Compute = t
	case key == "params":
		p.Params = t
	case key == "reduce":
		p.Reduce = t
	case key == "output":
		p.Output = t
	case key == "":
		return bad("a type without a name")
	default:
		return p.rule(key, t)
	}
	return nil
}

// rule adds an exception.
func (p *Policy) rule(key string, t ir.DType) error {
	name, isKind := strings.CutPrefix(key, "op:")
	if !isKind {
		p.Rules = append(p.Rules, Rule{Module: key, Type: t})
		return nil
	}
	kind, ok := ir.ParseKind(name)
	if !ok {
		var names []string
		for k := ir.OpConstant; k < ir.NumKinds; k++ {
			names = append(names, k.String())
		}
		d := bad("there is no operator %q", name)
		if near := diag.Nearest(name, names, 3); len(near) > 0 {
			d.Suggest("did you mean %s?", strings.Join(near, " or "))
		}
		return d
	}
	p.Rules = append(p.Rules, Rule{Kind: kind, Type: t})
	return nil
}

// check checks the parts against each other.
func (p *Policy) check() error {
	for _, part := range []struct {
		name string
		t    ir.DType
	}{{"params", p.Params}, {"reduce", p.Reduce}} {
		if part.t != ir.F32 && part.t != p.Compute {
			return bad("%s is %s where compute is %s", part.name, name(part.t), name(p.Compute)).
				Suggest("%s is f32 or what computes", part.name)
		}
	}
	for _, r := range p.Rules {
		if r.Type != ir.F32 && r.Type != p.Compute {
			return bad("%s is %s where compute is %s", r, name(r.Type), name(p.Compute)).Suggest("a rule gives f32 or what computes")
		}
	}
	return nil
}

func bad(format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(diag.BadPrecision, "--precision", format, args...).
		Suggest("it takes bf16, fp16, f32 or tf32, or parts: compute=bf16,params=f32,reduce=f32,output=f32,op:attention=f32,lm_head=f32")
}

var typeNames = map[string]ir.DType{"bf16": ir.BF16, "bfloat16": ir.BF16, "fp16": ir.F16, "f16": ir.F16, "float16": ir.F16,
	"f32": ir.F32, "fp32": ir.F32, "float32": ir.F32}

func keys(m map[string]ir.DType) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// name is how policies write a type.
func name(t ir.DType) string {
	if t == ir.F16 {
		return "fp16"
	}
	return t.String()
}

// String is the rule as Parse reads it, without its type.
func (r Rule) String() string {
	if r.Kind != ir.InvalidKind {
		return "op:" + r.Kind.String()
	}
	return r.Module
}

// IsZero tells whether the policy leaves every program as it is because none was given.
func (p Policy) IsZero() bool { return p.Compute == ir.InvalidDType }

// String is the policy in full, as Parse reads it; empty for the zero Policy.
func (p Policy) String() string {
	if p.IsZero() {
		return ""
	}
	compute := name(p.Compute)
	if p.TF32 {
		compute = "tf32"
	}
	text := "compute=" + compute + ",params=" + name(p.Params) + ",reduce=" + name(p.Reduce)
	if p.Output != ir.InvalidDType {
		text += ",output=" + name(p.Output)
	}
	for _, r := range p.Rules {
		text += "," + r.String() + "=" + name(r.Type)
	}
	return text
}

// narrows tells whether the policy computes in less than float32.
func (p Policy) narrows() bool { return !p.IsZero() && p.Compute != ir.F32 }

// ruleFor finds the rule that decides about an operation.
func (p Policy) ruleFor(op *ir.Op) (Rule, bool) {
	for _, r := range slices.Backward(p.Rules) {
		if r.Kind == op.Kind && r.Kind != ir.InvalidKind || r.Kind == ir.InvalidKind && matchModule(r.Module, moduleOf(op.Loc)) {
			return r, true
		}
	}
	return Rule{}, false
}

// checkModules looks for rules whose pattern matches no operation of a program.
func (p Policy) checkModules(program *ir.Program) error {
	var modules []string
	known := map[string]bool{}
	for _, e := range program.Entries {
		e.Body.Walk(func(op *ir.Op) {
			if m := moduleOf(op.Loc); m != "" && !known[m] {
				known[m] = true
				modules = append(modules, m)
			}
		})
	}
	for _, r := range p.Rules {
		if r.Kind == ir.InvalidKind && !slices.ContainsFunc(modules, func(m string) bool { return matchModule(r.Module, m) }) {
			return noSuchModule(r, modules)
		}
	}
	return nil
}

func noSuchModule(r Rule, modules []string) error {
	d := diag.Errorf(diag.NoSuchParameter, "--precision", "no module's path matches %q", r.Module)
	var names []string // whole paths, and the parts that a pattern may name
	for _, m := range modules {
		names = append(names, m)
		names = append(names, strings.Split(m, ".")...)
	}
	slices.Sort(names)
	near := diag.Nearest(r.Module, slices.Compact(names), 3)
	if len(near) > 0 {
		return d.Suggest("did you mean %s?", strings.Join(near, " or "))
	}
	slices.Sort(modules)
	for _, m := range modules[:min(len(modules), 8)] {
		d.Note("module %q", m)
	}
	return d.Suggest("a pattern is a run of names of a module's path, with * for any text: lm_head, layers.*.mlp")
}

// moduleOf is the module path in the Loc of an operation; nodes of ONNX have their path in
// their name.
func moduleOf(loc string) string {
	module, _, _ := strings.Cut(loc, " (")
	return strings.Trim(strings.ReplaceAll(module, "/", "."), ".")
}

// matchModule tells whether a pattern matches a module or one that it is part of: a run of
// names of its path, from any of them on. In a pattern, * stands for any text.
func matchModule(pattern, module string) bool {
	pattern = moduleOf(pattern)
	if module == "" || pattern == "" {
		return false
	}
	ends := []int{len(module)}
	for i, c := range module {
		if c == '.' {
			ends = append(ends, i)
		}
	}
	for start := 0; start >= 0 && start <= len(module); {
		for _, end := range ends {
			if end > start && matchGlob(pattern, module[start:end]) {
				return true
			}
		}
		next := strings.IndexByte(module[start:], '.')
		if next < 0 {
			return false
		}
		start += next + 1
	}
	return false
}

// matchGlob matches a whole text with a pattern in which * is any text.
func matchGlob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}
