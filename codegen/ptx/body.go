package ptx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// function reads an entry or device function, its header and body.
func (p *parser) function() error {
	keyword := p.take()
	f := &Function{Entry: keyword.text == ".entry", Position: keyword.position()}
	var err error
	if !f.Entry && p.peek().text == "(" {
		if f.Results, err = p.parameters(); err != nil {
			return err
		}
	}
	name, err := p.name()
	if err != nil {
		return err
	}
	f.Name = name.text
	if p.peek().text == "(" {
		if f.Parameters, err = p.parameters(); err != nil {
			return err
		}
	}
	if err := p.performance(f); err != nil {
		return err
	}
	if p.accept(";") {
		f.Declared = true
	} else {
		b := newBody(p, f)
		if err := b.parse(); err != nil {
			return err
		}
	}
	if old := p.module.Function(f.Name); old != nil && !old.Declared && !f.Declared {
		return errorAt(name, "function %s is defined twice", f.Name)
	}
	p.module.Functions = append(p.module.Functions, f)
	return nil
}

// parameters reads a parenthesised list.
func (p *parser) parameters() ([]*Variable, error) {
	p.take()
	var list []*Variable
	if p.accept(")") {
		return list, nil
	}
	for {
		if p.peek().text == ".reg" {
			return nil, errorAt(p.peek(), "register parameters are not supported")
		}
		v, err := p.variable(0)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if !p.accept(",") {
			return list, p.expect(")")
		}
	}
}

// performance reads the directives between a function's header and its body.
func (p *parser) performance(f *Function) error {
	for {
		t := p.peek()
		switch t.text {
		case ".maxntid", ".reqntid", ".reqnctapercluster":
			p.take()
			dims, err := p.dims()
			if err != nil {
				return err
			}
			switch t.text {
			case ".maxntid":
				f.MaxThreads = dims
			case ".reqntid":
				f.ReqThreads = dims
			default:
				f.ClusterBlocks = dims
			}
		case ".minnctapersm", ".maxnctapersm", ".maxnreg", ".maxclusterrank":
			p.take()
			if _, err := p.size(); err != nil {
				return err
			}
		case ".noreturn", ".explicitcluster":
			p.take()
		case ".pragma":
			p.take()
			p.take()
			if err := p.expect(";"); err != nil {
				return err
			}
		case "{", ";":
			return nil
		default:
			return unexpected(t, "a function body")
		}
	}
}

func (p *parser) dims() ([3]int, error) {
	dims := [3]int{1, 1, 1}
	for i := range dims {
		n, err := p.size()
		if err != nil {
			return dims, err
		}
		dims[i] = int(min(n, 1<<31))
		if !p.accept(",") {
			break
		}
	}
	return dims, nil
}

// scope holds the names of one pair of braces. Inline assembly opens inner scopes.
type scope struct {
	parent    *scope
	registers map[string]int // index into Function.Registers
	families  []family
	labels    map[string]int
	tables    map[string]*labelTable
	uses      []labelUse // label references that this scope must still resolve
}

// family is a declaration such as .reg .b32 %r<9>.
type family struct {
	prefix string
	count  uint64
	typ    Type
}

type labelTable struct {
	names     []string
	positions []Position
}

type labelUse struct {
	instruction *Instruction
	operand     int
}

type body struct {
	*parser
	f      *Function
	scope  *scope
	depth  int
	labels []string // pending, in front of the next instruction
}

func newBody(p *parser, f *Function) *body {
	b := &body{parser: p, f: f}
	return b
}

func (b *body) open() {
	b.scope = &scope{parent: b.scope, registers: map[string]int{}, labels: map[string]int{}, tables: map[string]*labelTable{}}
	b.depth++
}

// close leaves a scope: label references are resolved in it or handed to the outer one.
func (b *body) close() error {
	s := b.scope
	for _, use := range s.uses {
		operand := &use.instruction.Operands[use.operand]
		if table, ok := s.tables[operand.Name]; ok {
			operand.Kind = OperandTable
			for i, name := range table.names {
				target, ok := s.labels[name]
				if !ok {
					return &Error{table.positions[i], fmt.Sprintf("label %s is not defined", name)}
				}
				operand.Targets = append(operand.Targets, target)
			}
			continue
		}
		target, ok := s.labels[operand.Name]
		switch {
		case ok:
			operand.Targets = []int{target}
		case s.parent != nil:
			s.parent.uses = append(s.parent.uses, use)
		default:
			return &Error{operand.Position, fmt.Sprintf("label %s is not defined", operand.Name)}
		}
	}
	b.scope = s.parent
	b.depth--
	return nil
}

func (b *body) parse() error {
	if err := b.expect("{"); err != nil {
		return err
	}
	b.open()
	for b.depth > 0 {
		if err := b.statement(); err != nil {
			return err
		}
	}
	return nil
}

func (b *body) statement() error {
	t := b.peek()
	switch {
	case t.text == "":
		return unexpected(t, `"}"`)
	case t.text == "{":
		b.take()
		if b.depth >= maxDepth {
			return errorAt(t, "nesting is too deep")
		}
		b.open()
		return nil
	case t.text == "}":
		b.take()
		return b.close()
	case t.text == ";":
		b.take()
		return nil
	case strings.HasPrefix(t.text, "."):
		return b.directive()
	case isName(t.text) && b.tokens[b.next+1].text == ":":
		return b.label()
	}
	return b.instruction()
}

func (b *body) label() error {
	name := b.take()
	b.take()
	if b.peek().text == ".branchtargets" {
		b.take()
		table := &labelTable{}
		for {
			t, err := b.name()
			if err != nil {
				return err
			}
			table.names = append(table.names, t.text)
			table.positions = append(table.positions, t.position())
			if !b.accept(",") {
				break
			}
		}
		b.scope.tables[name.text] = table
		return b.expect(";")
	}
	if _, ok := b.scope.labels[name.text]; ok {
		return errorAt(name, "label %s is defined twice", name.text)
	}
	b.scope.labels[name.text] = len(b.f.Body)
	b.labels = append(b.labels, name.text)
	return nil
}

func (b *body) directive() error {
	t := b.peek()
	switch t.text {
	case ".reg":
		return b.registers()
	case ".loc":
		line := t.line
		for b.peek().line == line && b.peek().text != "" {
			b.take()
		}
		return nil
	case ".pragma":
		b.take()
		b.take()
		return b.expect(";")
	case ".shared", ".local", ".global", ".const", ".param":
		v, err := b.variable(0)
		if err != nil {
			return err
		}
		v.Function = b.f.Name
		b.f.Variables = append(b.f.Variables, v)
		return b.expect(";")
	}
	return unexpected(t, "an instruction or a known directive")
}

// registers reads .reg .type name, name<count>, ... ;
func (b *body) registers() error {
	b.take()
	t := b.take()
	typ, ok := ParseType(strings.TrimPrefix(t.text, "."))
	if !ok || !strings.HasPrefix(t.text, ".") {
		return unexpected(t, "a register type")
	}
	for {
		name, err := b.name()
		if err != nil {
			return err
		}
		if b.accept("<") {
			count, err := b.size()
			if err != nil {
				return err
			}
			b.scope.families = append(b.scope.families, family{name.text, uint64(count), typ})
			if err := b.expect(">"); err != nil {
				return err
			}
		} else if _, ok := b.scope.registers[name.text]; ok {
			return errorAt(name, "register %s is declared twice", name.text)
		} else {
			b.addRegister(b.scope, name.text, typ)
		}
		if !b.accept(",") {
			return b.expect(";")
		}
	}
}

func (b *body) addRegister(s *scope, name string, typ Type) int {
	index := len(b.f.Registers)
	b.f.Registers = append(b.f.Registers, Register{name, typ})
	s.registers[name] = index
	return index
}

// lookup finds the register of a name in the scopes, innermost first.
func (b *body) lookup(name string) (int, bool) {
	for s := b.scope; s != nil; s = s.parent {
		if index, ok := s.registers[name]; ok {
			return index, true
		}
		for _, f := range s.families {
			digits, ok := strings.CutPrefix(name, f.prefix)
			if !ok || digits == "" || len(digits) > 1 && digits[0] == '0' {
				continue
			}
			if n, err := strconv.ParseUint(digits, 10, 64); err == nil && n < f.count {
				return b.addRegister(s, name, f.typ), true
			}
		}
	}
	return 0, false
}

func (b *body) instruction() error {
	first := b.peek()
	in := &Instruction{Position: first.position(), Labels: b.labels}
	b.labels = nil
	if b.accept("@") {
		negated := b.accept("!")
		t, err := b.name()
		if err != nil {
			return err
		}
		register, ok := b.lookup(t.text)
		if !ok || b.f.Registers[register].Type != Pred {
			return errorAt(t, "%s is not a predicate register", t.text)
		}
		in.Guard = &Guard{register, negated}
	}
	opcode, err := b.name()
	if err != nil {
		return err
	}
	parts := strings.Split(opcode.text, ".")
	in.Opcode, in.Modifiers = parts[0], parts[1:]
	for b.peek().text != ";" {
		if b.peek().text == "" {
			return unexpected(b.peek(), `";"`)
		}
		operand, err := b.operand(0)
		if err != nil {
			return err
		}
		in.Operands = append(in.Operands, operand)
		if !b.accept(",") {
			break
		}
	}
	end := b.peek()
	if err := b.expect(";"); err != nil {
		return err
	}
	in.Text = strings.Join(strings.Fields(b.text[first.start:end.start]), " ")
	for i, operand := range in.Operands {
		if operand.Kind != OperandLabel {
			continue
		}
		if in.Opcode == "call" {
			in.Operands[i].Kind = OperandSymbol // a function, perhaps declared later
		} else {
			b.scope.uses = append(b.scope.uses, labelUse{in, i})
		}
	}
	b.f.Body = append(b.f.Body, in)
	return nil
}

// operand reads one operand, a|b pairs included.
func (b *body) operand(depth int) (Operand, error) {
	first, err := b.single(depth)
	if err != nil || b.peek().text != "|" {
		return first, err
	}
	b.take()
	second, err := b.single(depth)
	return Operand{Position: first.Position, Kind: OperandPair, Elements: []Operand{first, second}}, err
}

func (b *body) single(depth int) (Operand, error) {
	t := b.peek()
	operand := Operand{Position: t.position()}
	if depth > 4 {
		return operand, errorAt(t, "nesting is too deep")
	}
	switch {
	case t.text == "{":
		operand.Kind = OperandVector
		return b.list(operand, "}", depth)
	case t.text == "(":
		operand.Kind = OperandGroup
		return b.list(operand, ")", depth)
	case t.text == "[":
		return b.address(operand, depth)
	case t.text == "!":
		b.take()
		inner, err := b.single(depth + 1)
		if err == nil && inner.Kind != OperandRegister {
			err = errorAt(t, "only a predicate register can be negated")
		}
		inner.Negated = true
		return inner, err
	case t.text == "-" || isNumber(t.text):
		return b.number()
	}
	return b.named(operand)
}

func (b *body) list(operand Operand, closing string, depth int) (Operand, error) {
	b.take()
	if b.accept(closing) {
		return operand, nil
	}
	for {
		element, err := b.operand(depth + 1)
		if err != nil {
			return operand, err
		}
		operand.Elements = append(operand.Elements, element)
		if !b.accept(",") {
			return operand, b.expect(closing)
		}
	}
}

// address reads [base], [base+4], [base, {coordinates}].
func (b *body) address(operand Operand, depth int) (Operand, error) {
	operand.Kind = OperandAddress
	b.take()
	base, err := b.single(depth + 1)
	if err != nil {
		return operand, err
	}
	switch base.Kind {
	case OperandRegister, OperandInteger:
	case OperandSymbol:
		operand.Offset, base.Offset = base.Offset, 0
	case OperandLabel: // a parameter or variable that is declared elsewhere
		base.Kind = OperandSymbol
	default:
		return operand, &Error{base.Position, "not an address"}
	}
	operand.Elements = []Operand{base}
	if t := b.peek(); t.text == "+" || t.text == "-" {
		b.accept("+")
		offset, err := b.integer()
		if err != nil {
			return operand, err
		}
		operand.Offset += offset
	}
	for b.accept(",") {
		element, err := b.operand(depth + 1)
		if err != nil {
			return operand, err
		}
		operand.Elements = append(operand.Elements, element)
	}
	return operand, b.expect("]")
}

// named reads a register, special register, sink, variable or label.
func (b *body) named(operand Operand) (Operand, error) {
	t, err := b.name()
	if err != nil {
		return operand, err
	}
	operand.Name = t.text
	if register, ok := b.lookup(t.text); ok {
		operand.Kind, operand.Register = OperandRegister, register
		return operand, nil
	}
	switch {
	case t.text == "_":
		operand.Kind = OperandSink
	case t.text[0] == '%':
		if !isSpecial(t.text) {
			return operand, errorAt(t, "register %s is not declared", t.text)
		}
		operand.Kind = OperandSpecial
	case b.isVariable(t.text):
		operand.Kind = OperandSymbol
		if s := b.peek().text; s == "+" {
			b.take()
			operand.Offset, err = b.integer()
		}
	default:
		operand.Kind = OperandLabel
	}
	return operand, err
}

func (b *body) isVariable(name string) bool {
	named := func(v *Variable) bool { return v.Name == name }
	return slices.ContainsFunc(b.f.Variables, named) || slices.ContainsFunc(b.f.Parameters, named) ||
		slices.ContainsFunc(b.f.Results, named) || slices.ContainsFunc(b.module.Variables, named)
}

// specials are the special registers, by name before the dot.
var specials = []string{
	"%tid", "%ntid", "%ctaid", "%nctaid", "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid",
	"%gridid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid",
	"%cluster_ctarank", "%cluster_nctarank", "%is_explicit_cluster",
	"%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt",
	"%clock", "%clock64", "%clock_hi", "%globaltimer", "%dynamic_smem_size", "%total_smem_size",
}

func isSpecial(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	return slices.Contains(specials, base)
}
