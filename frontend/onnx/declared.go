package onnx

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"weft/ir"
	"weft/ir/diag"
)

// inputType is the type of an input of the caller, with symbols for its open dims.
func (im *importer) inputType(in *valueInfoProto) ir.Type {
	bad := func(code diag.Code, format string, args ...any) {
		ir.Fail(diag.Errorf(code, in.name, format, args...).Suggest("declare the input as a tensor with an element type and a shape; open dims may be named"))
	}
	switch {
	case in.kind == nil:
		bad(diag.ONNXType, "input %q has no type", in.name)
	case in.kind.tensor == nil:
		ir.Fail(unsupportedForm(in.name, "input %q is a sequence, optional, map, sparse or opaque value", in.name))
	}
	t := in.kind.tensor
	dtype, d := elementType(t.elem, in.name)
	if d != nil {
		ir.Fail(d)
	}
	if !t.hasShape {
		ir.Fail(unsupportedForm(in.name, "input %q has no declared shape", in.name).
			Suggest("declare the shape of the input; open dims may be named (onnx.shape_inference and the exporter can do it)"))
	}
	if len(t.dims) > maxRank {
		bad(diag.ONNXType, "input %q has %d dims; the limit is %d", in.name, len(t.dims), maxRank)
	}
	shape := make([]ir.Dim, len(t.dims))
	for i, dim := range t.dims {
		switch {
		case dim.hasValue && dim.value == -1 && im.model.producerName == "PaddlePaddle":
			// Its exporter writes open dims so.
			shape[i] = im.symbol("", fmt.Sprintf("%s_%d", in.name, i))
		case dim.hasValue && dim.value < 0:
			bad(diag.ONNXType, "dim %d of input %q is %d", i, in.name, dim.value)
		case dim.hasValue:
			shape[i] = ir.Const(dim.value)
		default:
			shape[i] = im.symbol(dim.param, fmt.Sprintf("%s_%d", in.name, i))
		}
	}
	out := ir.TensorOf(dtype, shape...)
	if tooLarge(out) {
		bad(diag.ONNXType, "input %q has the size %s", in.name, out)
	}
	return out
}

const maxRank = 32

// tooLarge tells whether a type has more elements than memory can have.
func tooLarge(t ir.Type) bool {
	n := ir.Const(1)
	for _, d := range t.Shape {
		if c, ok := d.IsConst(); ok && c != 0 {
			n = n.MulConst(c)
		}
	}
	c, _ := n.IsConst()
	return c > math.MaxInt64/1024
}

// resolveSizes finds the names of the dims that sizes are given for by their place.
func (im *importer) resolveSizes() {
	position, stored := 0, im.model.graph.stored()
	for _, in := range im.model.graph.inputs {
		if in.kind == nil || in.kind.tensor == nil || stored[in.name] || im.constants[in.name] != nil {
			continue
		}
		for axis, dim := range in.kind.tensor.dims {
			for _, place := range []string{fmt.Sprintf("%s[%d]", in.name, axis), fmt.Sprintf("in.%d[%d]", position, axis)} {
				if n, given := im.opt.Sizes[place]; given {
					im.sizes[dimName(dim.param, in.name, axis)] = n
				}
			}
		}
		position++
	}
}

// dimName is the name of a dim of an input: its own, or INPUT_AXIS.
func dimName(param, input string, axis int) string {
	if isUnnamed(param) {
		param = fmt.Sprintf("%s_%d", input, axis)
	}
	return symbolName(param)
}

// isUnnamed tells whether a name of a dim is none, as "?" is.
func isUnnamed(param string) bool {
	return !strings.ContainsFunc(param, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}

// symbol gives the symbol of a named dim, or of one that is not named.
func (im *importer) symbol(param, fallback string) ir.Dim {
	if isUnnamed(param) {
		param = ""
	}
	if name, ok := im.symbols[param]; ok && param != "" {
		return im.substituted(name)
	}
	name := symbolName(fallback)
	if param != "" {
		name = symbolName(param)
	}
	for base, n := name, 2; im.taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	im.taken[name] = true
	if param != "" {
		im.symbols[param] = name
	}
	return im.substituted(name)
}

// substituted declares a symbol, unless an earlier round found what it is equal to. Sizes
// are at least 1, as exporters assume.
func (im *importer) substituted(name string) ir.Dim {
	if n, fixed := im.sizes[name]; fixed {
		if _, named := im.opt.Sizes[name]; named {
			s := im.program.AddSymbol(name)
			s.Min, s.Max = n, n
		}
		return ir.Const(n)
	}
	d, ok := im.same[name]
	if !ok {
		d = ir.Sym(name)
	}
	d.Symbols(func(s string) { im.program.AddSymbol(s).Min = 1 })
	return d
}

// symbolName makes a name of letters, digits and underscores.
func symbolName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, text)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "d" + name
	}
	return name
}

// compareDeclared warns where the file declares another type than follows from the operators.
func (im *importer) compareDeclared(info *valueInfoProto, v ir.Value) {
	if info.kind == nil || info.kind.tensor == nil {
		return
	}
	t, declared := im.entry.Type(v), info.kind.tensor
	dtype, known := elementTypes[declared.elem]
	wrong := known && dtype != t.DType || declared.hasShape && len(declared.dims) != t.Rank()
	if !wrong && declared.hasShape {
		for i, d := range declared.dims {
			c, isConst := t.Shape[i].IsConst()
			wrong = wrong || d.hasValue && isConst && d.value != c
		}
	}
	if !wrong {
		return
	}
	shape := "of unknown shape"
	if declared.hasShape {
		dims := make([]string, len(declared.dims))
		for i, d := range declared.dims {
			dims[i] = "?"
			if d.hasValue {
				dims[i] = fmt.Sprint(d.value)
			} else if d.param != "" {
				dims[i] = d.param
			}
		}
		shape = "[" + strings.Join(dims, ", ") + "]"
	}
	im.warnings = append(im.warnings, diag.Warnf(diag.ONNXContradiction, info.name,
		"the file declares %q as %s%s; its operators give %s, which is used", info.name, dtype, shape, t).
		Suggest("nothing needs to be done; a newer exporter may declare it right"))
}

// unify takes two dims to be equal that an operator combines: a later round walks the graph
// with one symbol replaced.
func (im *importer) unify(a, b ir.Dim, place string) {
	symbol, to, ok := solve(a, b)
	if !ok || slices.ContainsFunc(im.found, func(s substitution) bool { return s.symbol == symbol }) {
		return
	}
	im.found = append(im.found, substitution{symbol, to})
	im.unified = append(im.unified, diag.Warnf(diag.ONNXDimsTakenEqual, place, "dims %s and %s are combined and taken to be equal", a, b).
		Suggest("give them one name in the exporter if they are always equal"))
}

// solve finds a symbol to replace so that two dims become equal.
func solve(a, b ir.Dim) (symbol string, to ir.Dim, ok bool) {
	sa, isA := bareSymbol(a)
	sb, isB := bareSymbol(b)
	switch {
	case isA && isB:
		if sa < sb {
			return sb, a, true
		}
		return sa, b, true
	case isA && !mentions(b, sa):
		return sa, b, true
	case isB && !mentions(a, sb):
		return sb, a, true
	}
	return "", ir.Dim{}, false
}

func bareSymbol(d ir.Dim) (name string, ok bool) {
	d.Symbols(func(s string) { name = s })
	return name, name != "" && d.Equal(ir.Sym(name))
}

func mentions(d ir.Dim, symbol string) bool {
	found := false
	d.Symbols(func(s string) { found = found || s == symbol })
	return found
}
