package fx

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"weft/ir"
)

// symbolFacts is what sympy's assumptions say about a symbol.
type symbolFacts struct {
	name     string
	positive bool
}

// exprParser reads the expressions that sympy's srepr prints, such as
// Mul(Integer(2), Symbol('s0', positive=True, integer=True)), into ir.Dim; and those that its
// str prints, such as 2*s0, which releases before torch 2.6 wrote.
type exprParser struct {
	text   string
	pos    int
	depth  int
	symbol func(symbolFacts) // told of every symbol
}

// parseExpr reads a whole expression.
func parseExpr(text string, symbol func(symbolFacts)) (ir.Dim, error) {
	p := &exprParser{text: text, symbol: symbol}
	d, err := p.expr()
	if err == nil && p.skipSpace() < len(text) {
		err = fmt.Errorf("there is more after the expression at %d", p.pos)
	}
	if err != nil {
		return ir.Dim{}, fmt.Errorf("%w in %.200q", err, text)
	}
	return d, nil
}

func (p *exprParser) skipSpace() int {
	for p.pos < len(p.text) && p.text[p.pos] == ' ' {
		p.pos++
	}
	return p.pos
}

func (p *exprParser) accept(c byte) bool {
	if p.skipSpace() < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// ident reads a name or a number.
func (p *exprParser) ident() string {
	start := p.skipSpace()
	for p.pos < len(p.text) {
		c := p.text[p.pos]
		if c != '_' && c != '.' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			break
		}
		p.pos++
	}
	return p.text[start:p.pos]
}

// expr reads a sum.
func (p *exprParser) expr() (ir.Dim, error) {
	d, err := p.product()
	for err == nil {
		switch {
		case p.accept('+'):
			d, err = p.infix("Add", d, p.product)
		case p.accept('-'):
			var y ir.Dim
			if y, err = p.product(); err == nil {
				d, err = applyFunction("Add", []ir.Dim{d, y.Neg()})
			}
		default:
			return d, nil
		}
	}
	return d, err
}

func (p *exprParser) product() (ir.Dim, error) {
	d, err := p.power()
	for err == nil {
		switch {
		case p.keyword("//"):
			d, err = p.infix("FloorDiv", d, p.power)
		case p.accept('*'):
			d, err = p.infix("Mul", d, p.power)
		case p.accept('%'):
			d, err = p.infix("PythonMod", d, p.power)
		default:
			return d, nil
		}
	}
	return d, err
}

// infix applies a function to x and the operand that follows.
func (p *exprParser) infix(name string, x ir.Dim, operand func() (ir.Dim, error)) (ir.Dim, error) {
	y, err := operand()
	if err != nil {
		return ir.Dim{}, err
	}
	return applyFunction(name, []ir.Dim{x, y})
}

// power reads an operand with its sign and exponent.
func (p *exprParser) power() (ir.Dim, error) {
	if p.depth++; p.depth > 100 {
		return ir.Dim{}, fmt.Errorf("expressions are nested too deep")
	}
	defer func() { p.depth-- }()
	if p.accept('-') {
		d, err := p.power()
		return d.Neg(), err
	}
	d, err := p.primary()
	if err == nil && p.keyword("**") {
		return p.infix("Pow", d, p.power)
	}
	return d, err
}

// primary reads a number, a symbol, a call or an expression in parentheses.
func (p *exprParser) primary() (ir.Dim, error) {
	if p.accept('(') {
		d, err := p.expr()
		if err == nil && !p.accept(')') {
			err = fmt.Errorf("expected ) at %d", p.pos)
		}
		return d, err
	}
	name := p.ident()
	if v, err := strconv.ParseInt(name, 10, 64); err == nil {
		return ir.Const(v), nil
	}
	switch name {
	case "":
		return ir.Dim{}, fmt.Errorf("expected a function or a number at %d", p.pos)
	case "Symbol", "Dummy":
		return p.symbolCall()
	case "Integer":
		return p.integer()
	}
	if p.skipSpace() == len(p.text) || p.text[p.pos] != '(' {
		return p.bareSymbol(name)
	}
	args, err := p.arguments()
	if err != nil {
		return ir.Dim{}, err
	}
	return applyFunction(name, args)
}

// bareSymbol is a symbol without its assumptions: sizes of inputs are s0, s1, ... and positive.
func (p *exprParser) bareSymbol(name string) (ir.Dim, error) {
	if strings.Contains(name, ".") || name[0] >= '0' && name[0] <= '9' || strings.HasSuffix(name, "oo") || name == "nan" {
		return ir.Dim{}, fmt.Errorf("%q is no size", name)
	}
	if p.symbol != nil {
		p.symbol(symbolFacts{name: name, positive: name[0] == 's'})
	}
	return ir.Sym(name), nil
}

func (p *exprParser) integer() (ir.Dim, error) {
	if p.accept('(') {
		sign := ""
		if p.accept('-') {
			sign = "-"
		}
		if v, err := strconv.ParseInt(sign+p.ident(), 10, 64); err == nil && p.accept(')') {
			return ir.Const(v), nil
		}
	}
	return ir.Dim{}, fmt.Errorf("malformed Integer at %d", p.pos)
}

// symbolCall reads ('name', assumption=True, ...).
func (p *exprParser) symbolCall() (ir.Dim, error) {
	bad := fmt.Errorf("malformed Symbol at %d", p.pos)
	if !p.accept('(') {
		return ir.Dim{}, bad
	}
	p.skipSpace()
	quote := strings.IndexAny(p.text[p.pos:min(len(p.text), p.pos+1)], `'"`)
	if quote != 0 {
		return ir.Dim{}, bad
	}
	q := p.text[p.pos]
	p.pos++
	name := p.ident()
	if name == "" || !p.accept(q) {
		return ir.Dim{}, bad
	}
	facts := symbolFacts{name: name}
	for p.accept(',') {
		key := p.ident()
		if !p.accept('=') {
			return ir.Dim{}, bad
		}
		if value := p.ident(); key == "positive" && value == "True" {
			facts.positive = true
		}
	}
	if !p.accept(')') || strings.Contains(name, ".") || name[0] >= '0' && name[0] <= '9' {
		return ir.Dim{}, bad
	}
	if p.symbol != nil {
		p.symbol(facts)
	}
	return ir.Sym(name), nil
}

func (p *exprParser) arguments() ([]ir.Dim, error) {
	if !p.accept('(') {
		return nil, fmt.Errorf("expected ( at %d", p.pos)
	}
	var args []ir.Dim
	for {
		a, err := p.expr()
		if err != nil {
			return nil, err
		}
		args = append(args, a)
		if p.accept(')') {
			return args, nil
		}
		if !p.accept(',') {
			return nil, fmt.Errorf("expected , or ) at %d", p.pos)
		}
		if p.keyword("evaluate=") {
			p.ident()
			if p.accept(')') {
				return args, nil
			}
			return nil, fmt.Errorf("expected ) at %d", p.pos)
		}
	}
}

func (p *exprParser) keyword(word string) bool {
	p.skipSpace()
	if strings.HasPrefix(p.text[p.pos:], word) {
		p.pos += len(word)
		return true
	}
	return false
}

// dimFunctions are sympy's and torch's functions of integers, by the number of operands (-1:
// any) and their meaning.
var dimFunctions = map[string]struct {
	arity int
	apply func(x, y ir.Dim) ir.Dim
}{
	"Add": {-1, ir.Dim.Add}, "Mul": {-1, ir.Dim.Mul}, "Max": {-1, ir.Dim.Max}, "Min": {-1, ir.Dim.Min},
	"FloorDiv": {2, ir.Dim.FloorDiv}, "CleanDiv": {2, ir.Dim.FloorDiv}, "CeilDiv": {2, ceilDiv},
	"Mod": {2, ir.Dim.Mod}, "PythonMod": {2, ir.Dim.Mod},
	"TruncToInt": {1, nil}, "Identity": {1, nil}, "ToFloat": {1, nil}, "CeilToInt": {1, nil}, "FloorToInt": {1, nil}, "floor": {1, nil},
}

func ceilDiv(x, y ir.Dim) ir.Dim { return x.Neg().FloorDiv(y).Neg() }

func applyFunction(name string, args []ir.Dim) (ir.Dim, error) {
	switch name {
	case "Pow", "PowByNatural":
		return power(args)
	case "ModularIndexing":
		if len(args) == 3 {
			return args[0].FloorDiv(args[1]).Mod(args[2]), nil
		}
	}
	f, ok := dimFunctions[name]
	if !ok {
		return ir.Dim{}, fmt.Errorf("unknown function %s", name)
	}
	if f.arity >= 0 && len(args) != f.arity {
		return ir.Dim{}, fmt.Errorf("%s of %d operands", name, len(args))
	}
	d := args[0]
	for _, a := range args[1:] {
		if zero := a.Is(0); zero && f.arity == 2 {
			return ir.Dim{}, fmt.Errorf("%s by zero", name)
		}
		if d = f.apply(d, a); len(d.String()) > maxExprText {
			return ir.Dim{}, errTooLarge
		}
	}
	return d, nil
}

// maxExprText bounds the canonical text of an expression; sizes of real models stay far below.
const maxExprText = 1024

var errTooLarge = errors.New("the expression is too large")

// maxPower bounds exponents, whose products are written out.
const maxPower = 8

func power(args []ir.Dim) (ir.Dim, error) {
	if len(args) == 2 {
		if n, ok := args[1].IsConst(); ok && n >= 0 && n <= maxPower {
			p := ir.Const(1)
			for range n {
				if p = p.Mul(args[0]); len(p.String()) > maxExprText {
					return ir.Dim{}, errTooLarge
				}
			}
			return p, nil
		}
	}
	return ir.Dim{}, fmt.Errorf("a power that is not a small natural number")
}
