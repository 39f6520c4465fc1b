package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// maxDepth bounds nesting of scopes and operands, so that hostile text cannot exhaust the stack.
const maxDepth = 64

// Parse reads a module. Errors are of type *Error.
func Parse(text string) (*Module, error) {
	tokens, err := tokenize(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens, module: &Module{}}
	for p.peek().text != "" {
		if err := p.topLevel(); err != nil {
			return nil, err
		}
	}
	if p.module.Version == "" {
		return nil, &Error{Position{1, 1}, "no .version directive: this is not PTX"}
	}
	return p.module, nil
}

type parser struct {
	text   string
	tokens []token
	next   int
	module *Module
}

func (p *parser) peek() token { return p.tokens[p.next] }

func (p *parser) take() token {
	t := p.tokens[p.next]
	if t.text != "" {
		p.next++
	}
	return t
}

// accept takes the next token if it has this text.
func (p *parser) accept(text string) bool {
	if p.peek().text == text {
		p.take()
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if t := p.take(); t.text != text {
		return unexpected(t, strconv.Quote(text))
	}
	return nil
}

func unexpected(t token, want string) error {
	found := strconv.Quote(t.text)
	if t.text == "" {
		found = "the end of the text"
	}
	return &Error{t.position(), fmt.Sprintf("expected %s, found %s", want, found)}
}

func errorAt(t token, format string, arguments ...any) error {
	return &Error{t.position(), fmt.Sprintf(format, arguments...)}
}

func isName(s string) bool {
	return s != "" && (s[0] == '_' || s[0] == '$' || s[0] == '%' || s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

func isNumber(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

func (p *parser) name() (token, error) {
	t := p.take()
	if !isName(t.text) {
		return t, unexpected(t, "a name")
	}
	return t, nil
}

// integer takes an integer literal with an optional minus sign.
func (p *parser) integer() (int64, error) {
	negative := p.accept("-")
	t := p.take()
	if !isNumber(t.text) {
		return 0, unexpected(t, "an integer")
	}
	bits, err := parseInteger(t)
	if err != nil {
		return 0, err
	}
	if negative {
		bits = -bits
	}
	return int64(bits), nil
}

// parseInteger reads decimal, hexadecimal, octal and binary literals, with an optional U.
func parseInteger(t token) (uint64, error) {
	s := strings.TrimSuffix(strings.TrimSuffix(t.text, "U"), "u")
	base := 10
	switch {
	case strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X"):
		s, base = s[2:], 16
	case strings.HasPrefix(s, "0b") || strings.HasPrefix(s, "0B"):
		s, base = s[2:], 2
	case len(s) > 1 && s[0] == '0':
		s, base = s[1:], 8
	}
	bits, err := strconv.ParseUint(s, base, 64)
	if err != nil {
		return 0, errorAt(t, "%q is not a 64-bit integer", t.text)
	}
	return bits, nil
}

// size takes a non-negative integer below 2^40.
func (p *parser) size() (int64, error) {
	t := p.peek()
	n, err := p.integer()
	if err != nil {
		return 0, err
	}
	if n < 0 || n >= 1<<40 {
		return 0, errorAt(t, "size %d is out of range", n)
	}
	return n, nil
}

func (p *parser) topLevel() error {
	t := p.peek()
	switch t.text {
	case ".version":
		p.take()
		p.module.Version = p.take().text
		if _, err := strconv.ParseFloat(p.module.Version, 64); err != nil {
			return errorAt(t, "malformed .version")
		}
		return nil
	case ".target":
		p.take()
		for {
			name, err := p.name()
			if err != nil {
				return err
			}
			p.module.Targets = append(p.module.Targets, name.text)
			if !p.accept(",") {
				return nil
			}
		}
	case ".address_size":
		p.take()
		size, err := p.size()
		p.module.AddressSize = int(size)
		return err
	case ".file":
		return p.skipFile()
	case ".section":
		return errorAt(t, "debug sections are not supported")
	}
	return p.declaration()
}

// skipFile skips .file INDEX "name" [, timestamp, size].
func (p *parser) skipFile() error {
	p.take()
	if _, err := p.size(); err != nil {
		return err
	}
	p.take()
	for p.accept(",") {
		if _, err := p.size(); err != nil {
			return err
		}
	}
	return nil
}

// declaration reads a module-level variable or function with its linkage.
func (p *parser) declaration() error {
	external := false
	for {
		switch p.peek().text {
		case ".extern":
			external = true
			p.take()
			continue
		case ".visible", ".weak", ".common":
			p.take()
			continue
		}
		break
	}
	t := p.peek()
	if t.text == ".entry" || t.text == ".func" {
		return p.function()
	}
	v, err := p.variable(0)
	if err != nil {
		return err
	}
	v.Extern = external
	if v.Array && v.Count == 0 && !external && v.Init == nil {
		return &Error{v.Position, fmt.Sprintf("variable %s has no size", v.Name)}
	}
	p.module.Variables = append(p.module.Variables, v)
	return p.expect(";")
}

// variable reads .space [.align N] .type name [dims] [= init], without the end mark. A
// parameter's .ptr annotations are read too.
func (p *parser) variable(depth int) (*Variable, error) {
	t := p.take()
	space, ok := ParseSpace(strings.TrimPrefix(t.text, "."))
	if !ok || !strings.HasPrefix(t.text, ".") {
		return nil, unexpected(t, "a declaration")
	}
	v := &Variable{Space: space, Count: 1}
	for v.Type == NoType || strings.HasPrefix(p.peek().text, ".") {
		t = p.take()
		if err := p.variableAttribute(v, t); err != nil {
			return nil, err
		}
	}
	name, err := p.name()
	if err != nil {
		return nil, err
	}
	v.Name, v.Position = name.text, name.position()
	if err := p.dimensions(v); err != nil {
		return nil, err
	}
	if p.accept("=") {
		if v.Init, err = p.initializer(v, depth); err != nil {
			return nil, err
		}
		if !v.Array && len(v.Init) > 1 || v.Array && v.Count > 0 && int64(len(v.Init)) > v.Count {
			return nil, errorAt(name, "variable %s has more initial values than elements", v.Name)
		}
		if v.Array && v.Count == 0 {
			v.Count = int64(len(v.Init))
		}
	}
	v.Align = max(v.Align, v.Type.Bits()/8, 1)
	return v, nil
}

func (p *parser) variableAttribute(v *Variable, t token) error {
	switch t.text {
	case ".align":
		align, err := p.size()
		if err != nil {
			return err
		}
		if align < 1 || align > 1<<20 || align&(align-1) != 0 {
			return errorAt(t, "alignment %d is no power of two", align)
		}
		v.Align = max(v.Align, int(align))
		return nil
	case ".ptr":
		v.Pointer = true
		return nil
	case ".attribute", ".managed":
		return errorAt(t, "%s is not supported", t.text)
	}
	if v.Pointer {
		if _, ok := ParseSpace(strings.TrimPrefix(t.text, ".")); ok {
			return nil
		}
	}
	typ, ok := ParseType(strings.TrimPrefix(t.text, "."))
	if !ok || v.Type != NoType || typ == Pred {
		return unexpected(t, "a type")
	}
	v.Type = typ
	return nil
}

func (p *parser) dimensions(v *Variable) error {
	for p.accept("[") {
		t := p.peek()
		count := int64(0)
		if t.text != "]" {
			var err error
			if count, err = p.size(); err != nil {
				return err
			}
		} else if v.Array {
			return errorAt(t, "only the first dimension may be open")
		}
		if count != 0 && v.Count > (1<<40)/count {
			return errorAt(t, "array is too large")
		}
		v.Count *= count
		v.Array = true
		if err := p.expect("]"); err != nil {
			return err
		}
	}
	return nil
}

// initializer reads an initial value; nested braces are flattened.
func (p *parser) initializer(v *Variable, depth int) ([]Initializer, error) {
	if depth > maxDepth {
		return nil, errorAt(p.peek(), "nesting is too deep")
	}
	if p.accept("{") {
		var values []Initializer
		for {
			more, err := p.initializer(v, depth+1)
			if err != nil {
				return nil, err
			}
			values = append(values, more...)
			if !p.accept(",") {
				return values, p.expect("}")
			}
		}
	}
	t := p.peek()
	if isName(t.text) {
		return p.addressInitializer()
	}
	operand, err := p.number()
	if err != nil {
		return nil, err
	}
	return []Initializer{{Bits: immediateBits(operand, v.Type)}}, nil
}

// addressInitializer reads symbol, symbol+4 or generic(symbol)+4.
func (p *parser) addressInitializer() ([]Initializer, error) {
	t, err := p.name()
	if err != nil {
		return nil, err
	}
	value := Initializer{Symbol: t.text}
	if t.text == "generic" && p.accept("(") {
		if t, err = p.name(); err != nil {
			return nil, err
		}
		value.Symbol, value.Generic = t.text, true
		if err := p.expect(")"); err != nil {
			return nil, err
		}
	}
	if p.peek().text == "+" || p.peek().text == "-" {
		p.accept("+")
		offset, err := p.integer()
		if err != nil {
			return nil, err
		}
		value.Bits = uint64(offset)
	}
	return []Initializer{value}, nil
}

// number takes an integer or floating-point literal.
func (p *parser) number() (Operand, error) {
	negative := p.accept("-")
	t := p.take()
	operand := Operand{Position: t.position(), Kind: OperandInteger}
	if !isNumber(t.text) {
		return operand, unexpected(t, "a number")
	}
	var err error
	switch {
	case len(t.text) == 10 && (t.text[:2] == "0f" || t.text[:2] == "0F"):
		operand.Kind = OperandFloat32
		operand.Bits, err = strconv.ParseUint(t.text[2:], 16, 32)
		if negative {
			operand.Bits ^= 1 << 31
		}
	case len(t.text) == 18 && (t.text[:2] == "0d" || t.text[:2] == "0D"):
		operand.Kind = OperandFloat64
		operand.Bits, err = strconv.ParseUint(t.text[2:], 16, 64)
		if negative {
			operand.Bits ^= 1 << 63
		}
	case strings.Contains(t.text, ".") && !strings.HasPrefix(t.text, "0x"):
		operand.Kind = OperandFloat64
		var value float64
		value, err = strconv.ParseFloat(t.text, 64)
		if negative {
			value = -value
		}
		operand.Bits = math.Float64bits(value)
	default:
		operand.Bits, err = parseInteger(t)
		if negative {
			operand.Bits = -operand.Bits
		}
	}
	if err != nil {
		return operand, errorAt(t, "malformed number %q", t.text)
	}
	return operand, nil
}

// ImmediateBits returns the bits that a literal operand denotes where a value of the type is
// expected: a floating-point literal is rounded to the type, an integer cut to its width.
func (o *Operand) ImmediateBits(t Type) uint64 { return immediateBits(*o, t) }

func immediateBits(o Operand, t Type) uint64 {
	bits := o.Bits
	switch {
	case o.Kind == OperandFloat32 && t == F64:
		bits = math.Float64bits(float64(math.Float32frombits(uint32(bits))))
	case o.Kind == OperandFloat64 && t == F32:
		bits = uint64(math.Float32bits(float32(math.Float64frombits(bits))))
	}
	if width := t.Bits(); width < 64 && width > 0 {
		bits &= 1<<width - 1
	}
	return bits
}
