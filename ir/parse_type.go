package ir

import (
	"encoding"
	"encoding/hex"
	"math"
	"reflect"
	"strconv"

	"weft/ir/diag"
)

// typ reads a type.
func (ps *parser) typ(depth int) Type {
	if depth > maxTypeDepth {
		ps.fail(diag.TextLimit, ps.tok.pos, "types nest deeper than %d", maxTypeDepth)
	}
	t := ps.expectKind(tokIdent, "a type")
	switch t.text {
	case "token":
		return Type{Kind: TokenKind}
	case "sequence", "optional":
		ps.expect("<")
		elem := ps.typ(depth + 1)
		ps.expect(">")
		return Type{Kind: map[string]TypeKind{"sequence": SequenceKind, "optional": OptionalKind}[t.text], Elem: &elem}
	case "map":
		ps.expect("<")
		key := ps.dtype(ps.expectKind(tokIdent, "an element type"))
		ps.expect(",")
		elem := ps.typ(depth + 1)
		ps.expect(">")
		return Type{Kind: MapKind, DType: key, Elem: &elem}
	}
	typ := Type{DType: ps.dtype(t)}
	ps.expect("[")
	terms := 1
	ps.list("]", func() {
		pos := ps.tok.pos
		d := ps.dim(0)
		typ.Shape = append(typ.Shape, d)
		// The product of all dims must stay small: shape rules multiply them.
		ts, _ := d.parts()
		if terms *= len(ts) + 1; terms > maxDimTerms {
			ps.fail(diag.TextLimit, pos, "the number of elements has too many terms")
		}
	})
	return typ
}

func (ps *parser) dtype(t token) DType {
	d, ok := ParseDType(t.text)
	if !ok {
		ps.fail(diag.TextUnknownName, t.pos, "there is no element type %q", t.text)
	}
	return d
}

// dim reads a dim expression: sums of products of integers, symbols, floordiv, mod, min and
// max of two expressions, and parentheses.
func (ps *parser) dim(depth int) Dim {
	pos := ps.tok.pos
	if depth > maxDimDepth {
		ps.fail(diag.TextLimit, pos, "dim expressions nest deeper than %d", maxDimDepth)
	}
	negative := ps.accept("-")
	sum := ps.dimProduct(depth, negative)
	for ps.is("+") || ps.is("-") {
		negative = ps.next().text == "-"
		sum = ps.checkDim(pos, sum.Add(ps.dimProduct(depth, negative)))
	}
	return sum
}

func (ps *parser) dimProduct(depth int, negative bool) Dim {
	pos := ps.tok.pos
	product := ps.dimFactor(depth, negative)
	for ps.accept("*") {
		f := ps.dimFactor(depth, false)
		t1, _ := product.parts()
		t2, _ := f.parts()
		if (len(t1)+1)*(len(t2)+1) > maxDimTerms {
			ps.fail(diag.TextLimit, pos, "dim expression has too many terms")
		}
		product = ps.checkDim(pos, product.Mul(f))
	}
	return product
}

// checkDim bounds the size of an expression.
func (ps *parser) checkDim(pos int, d Dim) Dim {
	if terms, _ := d.parts(); len(terms) > maxDimTerms || len(d.String()) > maxDimText {
		ps.fail(diag.TextLimit, pos, "dim expression is too large")
	}
	return d
}

var dimFunctions = map[string]func(a, b Dim) Dim{"floordiv": Dim.FloorDiv, "mod": Dim.Mod, "min": Dim.Min, "max": Dim.Max}

func (ps *parser) dimFactor(depth int, negative bool) Dim {
	t := ps.tok
	sign := func(d Dim) Dim {
		if negative {
			return d.Neg()
		}
		return d
	}
	switch {
	case t.kind == tokNumber:
		ps.next()
		text := t.text
		if negative {
			text = "-" + text // so that the smallest int64 can be read
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			ps.fail(diag.TextSyntax, t.pos, "%q is not a 64-bit integer", text)
		}
		return Const(v)
	case ps.accept("("):
		d := ps.dim(depth + 1)
		ps.expect(")")
		return sign(d)
	case t.kind == tokString:
		return sign(Sym(ps.next().text))
	}
	ps.expectKind(tokIdent, "a dim")
	f := dimFunctions[t.text]
	if f == nil {
		return sign(Sym(t.text))
	}
	ps.expect("(")
	a := ps.dim(depth + 1)
	ps.expect(",")
	b := ps.dim(depth + 1)
	ps.expect(")")
	return sign(ps.checkDim(t.pos, f(a, b)))
}

// attrs reads {name = value, ...} into the attribute struct of an operation.
func (ps *parser) attrs(op *Op, kind token) {
	if op.Attrs == nil {
		ps.fail(diag.TextUnknownName, ps.tok.pos, "%s has no attributes", kind.text)
	}
	ps.fields(reflect.ValueOf(op.Attrs).Elem(), kind.text)
}

func (ps *parser) fields(v reflect.Value, what string) {
	byName := map[string]int{}
	for i := range v.NumField() {
		byName[snakeCase(v.Type().Field(i).Name)] = i
	}
	seen := map[string]bool{}
	ps.expect("{")
	ps.list("}", func() {
		t := ps.expectKind(tokIdent, "an attribute")
		i, ok := byName[t.text]
		if !ok {
			ps.fail(diag.TextUnknownName, t.pos, "%s has no attribute %q", what, t.text)
		}
		if seen[t.text] {
			ps.fail(diag.TextDuplicate, t.pos, "attribute %q is given twice", t.text)
		}
		seen[t.text] = true
		ps.expect("=")
		ps.attr(v.Field(i), what)
	})
}

func (ps *parser) attr(v reflect.Value, what string) {
	switch into := v.Addr().Interface().(type) {
	case **Tensor:
		*into = ps.tensor()
	case *Dim:
		*into = ps.dim(0)
	case *DType:
		*into = ps.dtype(ps.expectKind(tokIdent, "an element type"))
	case encoding.TextUnmarshaler:
		t := ps.expectKind(tokIdent, "a name")
		if err := into.UnmarshalText([]byte(t.text)); err != nil {
			ps.fail(diag.TextUnknownName, t.pos, "%v", err)
		}
	default:
		ps.plain(v, what)
	}
}

// plain reads an attribute by its Go kind.
func (ps *parser) plain(v reflect.Value, what string) {
	t := ps.tok
	switch v.Kind() {
	case reflect.Bool:
		ps.next()
		if t.kind != tokIdent || t.text != "true" && t.text != "false" {
			ps.fail(diag.TextSyntax, t.pos, "expected true or false, found %s", t)
		}
		v.SetBool(t.text == "true")
	case reflect.Int:
		v.SetInt(int64(ps.index()))
	case reflect.Int64:
		v.SetInt(ps.integer())
	case reflect.Float64:
		f := NewTensor(F64)
		ps.floatInto(f, 0)
		v.SetFloat(f.Float(0))
	case reflect.String:
		v.SetString(ps.expectKind(tokString, "a string").text)
	case reflect.Slice:
		ps.expect("[")
		v.Set(reflect.Zero(v.Type()))
		ps.list("]", func() {
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			ps.attr(v.Index(v.Len()-1), what)
		})
	case reflect.Struct:
		ps.fields(v, v.Type().Name())
	default:
		panic("BUG: attribute of type " + v.Type().String() + " has no text")
	}
}

// tensor reads a literal.
func (ps *parser) tensor() *Tensor {
	pos := ps.tok.pos
	typ := ps.typ(0)
	shape, ok := typ.ConstShape()
	if typ.Kind != TensorKind || !ok {
		ps.fail(diag.TextType, pos, "a literal needs a tensor type of constant shape, not %s", typ)
	}
	t := &Tensor{DType: typ.DType, Shape: shape}
	for _, d := range shape {
		if d < 0 {
			ps.fail(diag.TextType, pos, "%s has a negative dim", typ)
		}
	}
	switch {
	case ps.accept("hex"):
		s := ps.expectKind(tokString, "bytes in hex")
		data, err := hex.DecodeString(s.text)
		if err != nil {
			ps.fail(diag.TextSyntax, s.pos, "%v", err)
		}
		if t.Data = data; typ.DType == String {
			ps.fail(diag.TextSyntax, s.pos, "strings have no hex form")
		}
	case ps.accept("splat"):
		ps.splat(t, pos)
	case len(shape) == 0:
		*t = *NewTensor(t.DType)
		ps.element(t, 0)
	default:
		ps.elements(t, pos)
	}
	if err := t.Check(); err != nil {
		ps.fail(diag.TextType, pos, "%v", err)
	}
	return t
}

func (ps *parser) splat(t *Tensor, pos int) {
	size := satMul(t.Numel(), int64(max(t.DType.Bits(), 8)))
	if t.DType == String {
		size = satMul(t.Numel(), 128)
	}
	if ps.literals = satAdd(ps.literals, size/8); ps.literals > maxLiteralBytes {
		ps.fail(diag.TextLimit, pos, "literals take more than %d MiB", maxLiteralBytes>>20)
	}
	one := NewTensor(t.DType)
	ps.element(one, 0)
	*t = *splat(one, t.Shape)
}

// elements reads [a, b, ...]; the text's length bounds the memory.
func (ps *parser) elements(t *Tensor, pos int) {
	ps.expect("[")
	one := NewTensor(t.DType)
	count := int64(0)
	var data []byte // whole elements; a byte each for smaller ones
	var strs []string
	ps.list("]", func() {
		ps.element(one, 0)
		count++
		switch {
		case t.DType == String:
			strs = append(strs, one.Strings[0])
		case t.DType.Size() > 0:
			data = append(data, one.Data...)
		default:
			data = append(data, byte(one.rawBits(0)))
		}
	})
	if count != t.Numel() {
		ps.fail(diag.TextType, pos, "%d elements for %s%v", count, t.DType, t.Shape)
	}
	if t.Data, t.Strings = data, strs; t.DType.Size() > 0 || t.DType == String {
		return
	}
	t.Data = make([]byte, t.bytes())
	for i, raw := range data {
		t.setRawBits(int64(i), uint64(raw))
	}
}

// element reads one element of a literal.
func (ps *parser) element(t *Tensor, i int64) {
	pos := ps.tok.pos
	switch {
	case t.DType == String:
		t.Strings[i] = ps.expectKind(tokString, "a string").text
	case t.DType == Bool:
		word := ps.expectKind(tokIdent, "true or false").text
		if word != "true" && word != "false" {
			ps.fail(diag.TextSyntax, pos, "expected true or false, found %q", word)
		}
		t.SetInt(i, b2i(word == "true"))
	case t.DType.IsInteger():
		ps.integerInto(t, i)
	case t.DType.IsComplex():
		half := t.parts()
		ps.expect("(")
		ps.floatInto(half, 2*i)
		ps.expect(",")
		ps.floatInto(half, 2*i+1)
		ps.expect(")")
	default:
		ps.floatInto(t, i)
	}
}

func (ps *parser) integerInto(t *Tensor, i int64) {
	pos := ps.tok.pos
	if t.DType == U64 {
		text := ps.expectKind(tokNumber, "an integer").text
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			ps.fail(diag.TextSyntax, pos, "%q is not an unsigned 64-bit integer", text)
		}
		t.SetInt(i, int64(v))
		return
	}
	v := ps.integer()
	if t.SetInt(i, v); t.Int(i) != v {
		ps.fail(diag.TextType, pos, "%d is not a value of %s", v, t.DType)
	}
}

// floatInto reads a number, inf or nan with an optional sign, rounded once.
func (ps *parser) floatInto(t *Tensor, i int64) {
	pos := ps.tok.pos
	sign := ""
	if ps.accept("-") {
		sign = "-"
	}
	tok := ps.next()
	word := tok.kind == tokIdent && (tok.text == "inf" || tok.text == "nan")
	if tok.kind != tokNumber && !word {
		ps.fail(diag.TextSyntax, pos, "expected a number, found %s", tok)
	}
	if tok.text == "nan" {
		t.SetFloat(i, math.NaN())
		return
	}
	if !t.setFloatText(i, sign+tok.text) {
		ps.fail(diag.TextSyntax, pos, "%q is not a number", sign+tok.text)
	}
}
