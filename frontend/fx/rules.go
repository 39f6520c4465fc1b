package fx

import (
	"slices"
	"strings"

	"weft/ir"
)

// rule lowers a node of an ATen operator.
type rule func(c *call) []*tensor

// callMode says what becomes of a rule's result.
type callMode uint8

const (
	functional callMode = iota
	inPlace             // it is written into the first argument: add_
	intoOut             // it is written into the argument out: add.out
)

// findRule finds the rule of an operator by its overload name. An in-place operator or an
// out= overload without a rule of its own is the functional one with a write.
func findRule(op string) (rule, callMode, bool) {
	name, ok := strings.CutPrefix(op, "aten.")
	if !ok {
		r, ok := rules[op]
		return r, functional, ok
	}
	if r, ok := rules[name]; ok {
		return r, functional, true
	}
	base, overload, _ := strings.Cut(name, ".")
	if r, ok := reviews[name]; ok {
		return r, functional, true
	}
	if makesComplex(name) {
		return nil, functional, true // lowerComplex has it
	}
	if plain := functionalName(base); plain != base {
		if r, ok := rules[plain+"."+overload]; ok {
			return r, inPlace, true
		}
	}
	if overload == "out" || strings.HasSuffix(overload, "_out") {
		for _, o := range []string{strings.TrimSuffix(strings.TrimSuffix(overload, "out"), "_"), "Tensor", "default", "int"} {
			if r, ok := rules[base+"."+o]; ok {
				return r, intoOut, true
			}
		}
	}
	return nil, functional, false
}

// functionalName strips the mark of in-place operators: add_, __iand__, _index_put_impl_.
func functionalName(base string) string {
	switch {
	case base == "_index_put_impl_":
		return "index_put"
	case strings.HasPrefix(base, "__i") && strings.HasSuffix(base, "__"):
		return "__" + base[3:]
	case strings.HasSuffix(base, "__"):
		return base
	}
	return strings.TrimSuffix(base, "_")
}

func hasRule(target string) bool {
	if _, ok := controlRule(target); ok {
		return true
	}
	if _, _, ok := findNumberRule(target); ok {
		return true
	}
	op, ok := strings.CutPrefix(target, "torch.ops.")
	if !ok {
		return false
	}
	_, _, ok = findRule(op)
	return ok
}

// Operators lists the operators with a rule, sorted. In-place and out= forms of them work too.
func Operators() []string {
	var names []string
	for name := range rules {
		if strings.Count(name, ".") == 1 { // others name their library
			name = "aten." + name
		}
		names = append(names, name)
	}
	for name := range complexRules {
		if makesComplex(name) {
			names = append(names, "aten."+name)
		}
	}
	slices.Sort(names)
	return names
}

// rules are the ATen operators by overload name without "aten.".
var rules = joinTables(elementwiseRules(), viewRules(), creationRules(), indexRules(), reductionRules(), productRules(), nnRules(), recurrentRules(), backwardRules(), rareRules(), collectiveRules(), quantizeRules(), statisticsRules(), samplingRules(), randomRules())

// reviews are the in-place forms of views, which change how a tensor is seen and not what is in
// memory: squeeze_, t_, dropout_ outside of training.
var reviews = inPlaceViews()

func joinTables(tables ...map[string]rule) map[string]rule {
	all := map[string]rule{}
	for _, t := range tables {
		for name, r := range t {
			if _, dup := all[name]; dup {
				panic("BUG: two rules for " + name)
			}
			all[name] = r
		}
	}
	return all
}

// value makes a rule of a function with one result.
func value(f func(c *call) ir.Value) rule {
	return func(c *call) []*tensor { return []*tensor{newTensor(f(c))} }
}

// values makes a rule of a function with several results.
func values(f func(c *call) []ir.Value) rule {
	return func(c *call) []*tensor {
		var list []*tensor
		for _, v := range f(c) {
			if v == ir.NoValue {
				list = append(list, nil) // a result that is not asked for
				continue
			}
			list = append(list, newTensor(v))
		}
		return list
	}
}

// seen makes a rule of a function that gives a view of its argument.
func seen(f func(c *call) *tensor) rule {
	return func(c *call) []*tensor { return []*tensor{f(c)} }
}
