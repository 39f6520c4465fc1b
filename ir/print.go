package ir

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// String is the program's text; ParseProgram reads it back. docs/ir.md has the grammar.
func (p *Program) String() string {
	pr := printer{}
	pr.program(p)
	return pr.b.String()
}

// Print writes the program's text.
func Print(w io.Writer, p *Program) error {
	_, err := io.WriteString(w, p.String())
	return err
}

// printer writes text. Values are numbered anew in the order in which the text defines them,
// so that the text does not depend on how the program was built.
type printer struct {
	b       strings.Builder
	e       *Entry
	numbers map[Value]int
}

func (pr *printer) f(format string, args ...any) { fmt.Fprintf(&pr.b, format, args...) }

func (pr *printer) program(p *Program) {
	if len(p.Mesh.Axes) > 0 {
		pr.f("mesh ")
		for i, a := range p.Mesh.Axes {
			pr.comma(i)
			pr.f("%s=%d", nameText(a.Name), a.Size)
		}
		pr.b.WriteByte('\n')
	}
	for _, s := range p.Symbols {
		pr.f("dim %s", symbolText(s.Name))
		switch {
		case s.Max != NoBound:
			pr.f(" in %d..%d", s.Min, s.Max)
		case s.Min != 0:
			pr.f(" in %d..", s.Min)
		}
		if s.Multiple != 1 {
			pr.f(" multiple %d", s.Multiple)
		}
		pr.b.WriteByte('\n')
	}
	for _, s := range p.States {
		pr.f("state @%q: %s %s", s.Name, s.Type, nameText(string(s.Kind)))
		if s.Source != "" {
			pr.f(" from %q", s.Source)
		}
		pr.shard(s.Shard)
		pr.b.WriteByte('\n')
	}
	for i, e := range p.Entries {
		if i > 0 || len(p.Symbols)+len(p.States)+len(p.Mesh.Axes) > 0 {
			pr.b.WriteByte('\n')
		}
		pr.entry(e)
	}
}

// isIdentifier tells whether a name can stand in the text without quotes.
func isIdentifier(name string) bool {
	for i, r := range name {
		if r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r))) {
			return false
		}
	}
	return name != ""
}

func nameText(name string) string {
	if isIdentifier(name) {
		return name
	}
	return strconv.Quote(name)
}

func (pr *printer) entry(e *Entry) {
	pr.e, pr.numbers = e, map[Value]int{}
	pr.number(&e.Body)
	pr.f("entry %s(", nameText(e.Name))
	for i, v := range e.Body.Params {
		var in Input // a broken entry prints too
		if i < len(e.Inputs) {
			in = e.Inputs[i]
		}
		pr.comma(i)
		pr.f("%s%s: %s", pr.use(v), ioText(in.Name, in.State), pr.typeOf(v))
		pr.shard(in.Shard)
	}
	pr.f(") {\n")
	pr.ops(&e.Body, "  ")
	pr.f("  return")
	for i, v := range e.Body.Results {
		var out Output
		if i < len(e.Outputs) {
			out = e.Outputs[i]
		}
		if i > 0 {
			pr.f(",")
		}
		pr.f(" %s%s", pr.use(v), ioText(out.Name, out.State))
		if out.Gradient != "" {
			pr.f(" gradient %q", out.Gradient)
		}
		pr.shard(out.Shard)
	}
	pr.b.WriteByte('\n')
	if e.Memory != nil {
		pr.memory(e.Memory)
	}
	pr.f("}\n")
}

// shard prints how a tensor is divided, with its global shape.
func (pr *printer) shard(s Sharding) {
	if s != nil {
		pr.f(" of %s", s)
	}
}

// ioText is the name of an input or output: "name", @"state", or both where they differ.
func ioText(name, state string) string {
	switch {
	case state == "":
		return fmt.Sprintf(" %q", name)
	case name == state:
		return fmt.Sprintf(" @%q", state)
	}
	return fmt.Sprintf(" %q @%q", name, state)
}

func (pr *printer) comma(i int) {
	if i > 0 {
		pr.b.WriteString(", ")
	}
}

// number gives values their numbers, in the order in which the text defines them.
func (pr *printer) number(b *Block) {
	add := func(vs []Value) {
		for _, v := range vs {
			if _, ok := pr.numbers[v]; !ok {
				pr.numbers[v] = len(pr.numbers)
			}
		}
	}
	if b == nil {
		return
	}
	add(b.Params)
	for _, op := range b.Ops {
		add(op.Results)
		for _, r := range op.Regions {
			pr.number(r)
		}
	}
}

// use names a value; one that a broken program does not define gets a name that shows it.
func (pr *printer) use(v Value) string {
	if n, ok := pr.numbers[v]; ok {
		return "%" + strconv.Itoa(n)
	}
	return "%undefined" + strconv.Itoa(int(v))
}

func (pr *printer) typeOf(v Value) string {
	if v < 0 || int(v) >= len(pr.e.Types) {
		return "token"
	}
	return pr.e.Types[v].String()
}

func (pr *printer) typed(vs []Value) {
	for i, v := range vs {
		pr.comma(i)
		pr.f("%s: %s", pr.use(v), pr.typeOf(v))
	}
}

func (pr *printer) uses(vs []Value) {
	for i, v := range vs {
		pr.comma(i)
		pr.b.WriteString(pr.use(v))
	}
}

func (pr *printer) ops(b *Block, indent string) {
	for _, op := range b.Ops {
		pr.b.WriteString(indent)
		if len(op.Results) != 1 {
			pr.f("(")
		}
		pr.typed(op.Results)
		if len(op.Results) != 1 {
			pr.f(")")
		}
		pr.f(" = %s(", op.Kind)
		pr.uses(op.Operands)
		pr.f(")")
		if op.Attrs != nil {
			pr.attrs(op.Attrs)
		}
		if op.Loc != "" {
			pr.f(" loc(%q)", op.Loc)
		}
		for i, r := range op.Regions {
			if i == 0 {
				pr.f(" do")
			}
			pr.region(r, indent)
		}
		pr.b.WriteByte('\n')
	}
}

func (pr *printer) region(r *Block, indent string) {
	if r == nil {
		r = &Block{} // of a broken program
	}
	if len(r.Params) > 0 {
		pr.f(" (")
		pr.typed(r.Params)
		pr.f(")")
	}
	pr.f(" {\n")
	pr.ops(r, indent+"  ")
	pr.f("%s  yield", indent)
	if len(r.Results) > 0 {
		pr.f(" ")
	}
	pr.uses(r.Results)
	pr.f("\n%s}", indent)
}

func (pr *printer) memory(m *Memory) {
	pr.f("  memory {\n")
	for i, b := range m.Buffers {
		pr.f("    buffer %d: %s live %d..%d", i, b.Size, b.First, b.Last)
		if len(b.After) > 0 {
			pr.f(" after ")
			pr.attr(reflect.ValueOf(b.After))
		}
		pr.b.WriteByte('\n')
	}
	byNumber := make([]Value, len(pr.numbers))
	for v, n := range pr.numbers {
		byNumber[n] = v
	}
	for _, v := range byNumber {
		if v < 0 || int(v) >= len(m.Places) || m.Places[v].Kind == Nowhere {
			continue
		}
		place := m.Places[v]
		pr.f("    %s in %s %d\n", pr.use(v), placeNames[place.Kind], place.Index)
	}
	pr.f("  }\n")
}

var placeNames = []string{InArena: "buffer", InInput: "input", InOutput: "output"}

// attrs prints the fields that are not zero; enumerations always, because their first value
// means as much as the others.
func (pr *printer) attrs(a Attrs) {
	v := reflect.ValueOf(a)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return
	}
	start := pr.b.Len()
	pr.fields(v.Elem(), " {", start)
	if pr.b.Len() > start {
		pr.f("}")
	}
}

func (pr *printer) fields(v reflect.Value, open string, start int) {
	for i := range v.NumField() {
		f := v.Field(i)
		_, named := f.Interface().(encoding.TextMarshaler)
		enum := named && f.Kind() == reflect.Uint8
		if !enum && (f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0) {
			continue
		}
		if pr.b.Len() == start {
			pr.b.WriteString(open)
		} else {
			pr.f(", ")
		}
		pr.f("%s = ", snakeCase(v.Type().Field(i).Name))
		pr.attr(f)
	}
}

// snakeCase turns a field's name into the attribute's.
func snakeCase(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func (pr *printer) attr(v reflect.Value) {
	switch x := v.Interface().(type) {
	case *Tensor:
		pr.b.WriteString(x.String())
	case Dim:
		pr.b.WriteString(x.String())
	case DType:
		pr.b.WriteString(x.String())
	case encoding.TextMarshaler:
		text, err := x.MarshalText()
		if err != nil {
			panic(fmt.Sprintf("BUG: attribute %T has no text: %v", x, err))
		}
		pr.b.Write(text)
	default:
		pr.plain(v)
	}
}

// plain prints an attribute by its Go kind.
func (pr *printer) plain(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		pr.f("%t", v.Bool())
	case reflect.Int, reflect.Int64:
		pr.f("%d", v.Int())
	case reflect.Float64:
		pr.b.WriteString(floatText(v.Float(), 64))
	case reflect.String:
		pr.f("%q", v.String())
	case reflect.Slice:
		pr.f("[")
		for i := range v.Len() {
			pr.comma(i)
			pr.attr(v.Index(i))
		}
		pr.f("]")
	case reflect.Struct:
		pr.f("{")
		pr.fields(v, "", pr.b.Len())
		pr.f("}")
	default:
		panic(fmt.Sprintf("BUG: attribute of type %s has no text", v.Type()))
	}
}

// floatText is the shortest text that reads back as v in a float of that many bits.
func floatText(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return map[bool]string{true: "inf", false: "-inf"}[v > 0]
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}

// hexAbove is the number of elements above which a literal prints as the hex of its bytes.
const hexAbove = 64

// String prints a literal: its type, then the value of a scalar, [values] in row-major order,
// splat and a value, or hex and the bytes in quotes.
func (t *Tensor) String() string {
	head := t.DType.String() + DimList(Consts(t.Shape...)) + " "
	if t.Check() != nil {
		return head + "invalid"
	}
	n := t.Numel()
	if n > 1 && t.isSplat() {
		if text, ok := t.elementText(0); ok {
			return head + "splat " + text
		}
	}
	asHex := n > hexAbove && t.DType != String
	texts := make([]string, 0, min(n, hexAbove))
	for i := int64(0); i < n && !asHex; i++ {
		text, ok := t.elementText(i)
		asHex = !ok
		texts = append(texts, text)
	}
	switch {
	case asHex || t.paddingSet():
		return head + `hex "` + hex.EncodeToString(t.Data) + `"`
	case len(t.Shape) == 0:
		return head + texts[0]
	}
	return head + "[" + strings.Join(texts, ", ") + "]"
}

// paddingSet tells whether bits past the last element are set: only hex can show them.
func (t *Tensor) paddingSet() bool {
	used := t.Numel() * int64(t.DType.Bits()) % 8
	return used != 0 && t.Data[len(t.Data)-1]>>used != 0
}

// isSplat tells whether all elements are the same bits.
func (t *Tensor) isSplat() bool {
	if t.DType == String {
		return !slices.ContainsFunc(t.Strings, func(s string) bool { return s != t.Strings[0] })
	}
	if t.paddingSet() {
		return false
	}
	one := &Tensor{DType: t.DType, Data: t.Data[:max(t.DType.Size(), 1)]}
	return bytes.Equal(t.Data, splat(one, t.Shape).Data)
}

// splat repeats a scalar. It is quick, because a short text can ask for a large tensor.
func splat(one *Tensor, shape []int64) *Tensor {
	t := NewTensor(one.DType, shape...)
	if t.Numel() == 0 {
		return t
	}
	if one.DType == String {
		for i := range t.Strings {
			t.Strings[i] = one.Strings[0]
		}
		return t
	}
	bits := one.DType.Bits()
	unit := max(1, bits/8)
	if unit == 1 && bits < 8 {
		raw := one.rawBits(0)
		for at := 0; at < 8; at += bits {
			t.Data[0] |= byte(raw << at)
		}
	} else {
		copy(t.Data, one.Data)
	}
	for n := unit; n < len(t.Data); n *= 2 {
		copy(t.Data[n:], t.Data[:n])
	}
	if used := t.Numel() * int64(bits) % 8; used != 0 {
		t.Data[len(t.Data)-1] &= 1<<used - 1 // no bits past the last element
	}
	return t
}

// elementText prints element i; it fails for bits that the text would not give back, such as
// the payload of a NaN.
func (t *Tensor) elementText(i int64) (string, bool) {
	switch {
	case t.DType == String:
		return strconv.Quote(t.Strings[i]), true
	case t.DType == Bool:
		return strconv.FormatBool(t.Data[i] != 0), t.Data[i] <= 1
	case t.DType == U64:
		return strconv.FormatUint(uint64(t.Int(i)), 10), true
	case t.DType.IsInteger():
		return strconv.FormatInt(t.Int(i), 10), true
	case t.DType.IsComplex():
		half := t.parts()
		re, ok1 := half.elementText(2 * i)
		im, ok2 := half.elementText(2*i + 1)
		return "(" + re + ", " + im + ")", ok1 && ok2
	}
	v := t.Float(i)
	text := floatText(v, min(64, max(32, t.DType.Bits())))
	back := NewTensor(t.DType)
	back.setFloatText(0, text)
	return text, back.rawBits(0) == t.rawBits(i)
}

// parts views a complex tensor as its real and imaginary parts in turn.
func (t *Tensor) parts() *Tensor {
	part := map[DType]DType{C32: F16, C64: F32, C128: F64}[t.DType]
	return &Tensor{DType: part, Shape: append(slices.Clone(t.Shape), 2), Data: t.Data}
}

// setFloatText sets element i of a float tensor to the value of a number's text, rounded once.
func (t *Tensor) setFloatText(i int64, text string) bool {
	bits := 64
	if t.DType == F32 {
		bits = 32
	}
	v, err := strconv.ParseFloat(text, bits)
	if err != nil && !math.IsInf(v, 0) {
		return false
	}
	t.SetFloat(i, v)
	return true
}
