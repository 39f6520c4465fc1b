package ir

import (
	"slices"

	"weft/ir/diag"
)

// Limits of program text.
const (
	maxRegionDepth  = 64
	maxTypeDepth    = 16
	maxDimDepth     = 64
	maxDimTerms     = 1024
	maxDimText      = 1 << 15
	maxLiteralBytes = 16 << 20 // of all splats of a text together; other literals are as long as their text
)

// ParseProgram reads program text (docs/ir.md has the grammar). It checks that every value is
// defined once and has the type that its operation gives it; Verify checks the rest. name
// stands for the text in diagnostics, which give line:column.
func ParseProgram(name string, text []byte) (*Program, error) {
	ps := &parser{lexer: lexer{file: name, text: string(text)}, p: &Program{}, declared: map[string]bool{}}
	if err := Try(ps.program); err != nil {
		return nil, err
	}
	return ps.p, nil
}

// parser reads one text. Operands may come before their definition in the text; they are
// resolved at the end of the entry, and dominance is left to the verifier.
type parser struct {
	lexer
	p        *Program
	literals int64 // bytes of splats so far
	declared map[string]bool

	// of the entry being read
	e     *Entry
	names map[string]Value
	uses  []valueUse
	ops   []opAt
}

type valueUse struct {
	name string
	pos  int
}

type opAt struct {
	op  *Op
	pos int
}

func (ps *parser) program() {
	ps.next()
	for ps.tok.kind != tokEnd {
		t := ps.expectKind(tokIdent, "mesh, dim, state or entry")
		switch t.text {
		case "mesh":
			ps.mesh(t.pos)
		case "dim":
			ps.symbol()
		case "state":
			ps.state()
		case "entry":
			ps.entry()
		default:
			ps.fail(diag.TextSyntax, t.pos, "expected mesh, dim, state or entry, found %s", t)
		}
	}
}

// declare refuses the second declaration of a name.
func (ps *parser) declare(pos int, what, name string) {
	key := what + " " + name
	if ps.declared[key] {
		ps.fail(diag.TextDuplicate, pos, "%s %q is declared twice", what, name)
	}
	ps.declared[key] = true
}

func (ps *parser) symbol() {
	pos := ps.tok.pos
	s := Symbol{Name: ps.name("a dim's name"), Max: NoBound, Multiple: 1}
	ps.declare(pos, "dim", s.Name)
	if ps.accept("in") {
		s.Min = ps.integer()
		ps.expect("..")
		if ps.tok.kind == tokNumber || ps.is("-") {
			s.Max = ps.integer()
		}
	}
	if ps.accept("multiple") {
		s.Multiple = ps.integer()
	}
	ps.p.Symbols = append(ps.p.Symbols, s)
}

// mesh reads the axes of the mesh: dp=2, tp=4.
func (ps *parser) mesh(pos int) {
	ps.declare(pos, "mesh", "")
	for {
		at := ps.tok.pos
		a := MeshAxis{Name: ps.name("an axis")}
		ps.declare(at, "axis", a.Name)
		ps.expect("=")
		a.Size = ps.integer()
		ps.p.Mesh.Axes = append(ps.p.Mesh.Axes, a)
		if !ps.accept(",") {
			return
		}
	}
}

// shard reads "of" and how a tensor is divided, where that stands.
func (ps *parser) shard() Sharding {
	if !ps.accept("of") {
		return nil
	}
	return ps.sharding()
}

// sharding reads the parts of each dim.
func (ps *parser) sharding() Sharding {
	s, terms := Sharding{}, 1
	ps.expect("[")
	ps.list("]", func() {
		var parts []Part
		part := func() {
			pos := ps.tok.pos
			p := ps.part()
			parts = append(parts, p)
			// The product of all sizes must stay small, as that of dims.
			if ts, _ := p.Size.parts(); len(ts) > 0 {
				terms *= len(ts) + 1
			}
			if terms > maxDimTerms {
				ps.fail(diag.TextLimit, pos, "the number of elements has too many terms")
			}
		}
		if ps.accept("(") {
			ps.list(")", part)
		} else {
			part()
		}
		s = append(s, parts)
	})
	return s
}

// part reads a size and the axes that divide it.
func (ps *parser) part() Part {
	p := Part{Size: ps.dim(0)}
	if !ps.accept("@") {
		return p
	}
	if ps.accept("(") {
		ps.list(")", func() { p.Axes = append(p.Axes, ps.name("an axis")) })
	} else {
		p.Axes = append(p.Axes, ps.name("an axis"))
	}
	return p
}

func (ps *parser) state() {
	ps.expect("@")
	t := ps.expectKind(tokString, "a state's name in quotes")
	ps.declare(t.pos, "state", t.text)
	s := State{Name: t.text}
	ps.expect(":")
	s.Type = ps.typ(0)
	s.Kind = StateKind(ps.name("parameter, buffer, literal or prepared"))
	if ps.accept("from") {
		s.Source = ps.expectKind(tokString, "a name in quotes").text
	}
	s.Shard = ps.shard()
	ps.p.States = append(ps.p.States, s)
}

func (ps *parser) entry() {
	pos := ps.tok.pos
	e := &Entry{Name: ps.name("an entry's name")}
	ps.declare(pos, "entry", e.Name)
	ps.e, ps.names, ps.uses, ps.ops = e, map[string]Value{}, nil, nil
	ps.p.Entries = append(ps.p.Entries, e)
	ps.expect("(")
	ps.list(")", func() {
		t := ps.expectKind(tokValue, "a value")
		in := Input{}
		in.Name, in.State = ps.ioName()
		ps.expect(":")
		e.Body.Params = append(e.Body.Params, ps.define(t, ps.typ(0)))
		in.Shard = ps.shard()
		e.Inputs = append(e.Inputs, in)
	})
	ps.expect("{")
	ps.blockOps(&e.Body, "return", 0)
	for ps.tok.kind == tokValue {
		ps.use(&e.Body.Results)
		out := Output{}
		out.Name, out.State = ps.ioName()
		if ps.accept("gradient") {
			out.Gradient = ps.expectKind(tokString, "a state's name in quotes").text
		}
		out.Shard = ps.shard()
		e.Outputs = append(e.Outputs, out)
		if !ps.accept(",") {
			break
		}
	}
	if ps.accept("memory") {
		e.Memory = ps.memory()
	}
	ps.expect("}")
	ps.resolve(&e.Body)
	ps.check()
}

// ioName reads the name of an input or output: "name", @"state" or both; nothing is no name.
func (ps *parser) ioName() (name, state string) {
	named := ps.tok.kind == tokString
	if named {
		name = ps.next().text
	}
	if ps.accept("@") {
		state = ps.expectKind(tokString, "a state's name in quotes").text
		if !named {
			name = state
		}
	}
	return name, state
}

// define gives a value its type and its name.
func (ps *parser) define(t token, typ Type) Value {
	if _, ok := ps.names[t.text]; ok {
		ps.fail(diag.TextValue, t.pos, "%%%s is defined twice", t.text)
	}
	v := ps.e.NewValue(typ)
	ps.names[t.text] = v
	return v
}

// use appends a use of a value, to be resolved at the end of the entry.
func (ps *parser) use(to *[]Value) {
	t := ps.expectKind(tokValue, "a value")
	*to = append(*to, NoValue)
	ps.uses = append(ps.uses, valueUse{t.text, t.pos})
}

// resolve fills in the uses, which Block.Uses visits in the order of the text: operands of an
// operation before those in its regions, a block's results last.
func (ps *parser) resolve(b *Block) {
	uses := ps.uses
	b.Uses(func(v *Value) {
		use := uses[0]
		uses = uses[1:]
		known, ok := ps.names[use.name]
		if !ok {
			ps.fail(diag.TextValue, use.pos, "%%%s is not defined", use.name)
		}
		*v = known
	})
}

// check compares declared types with inferred ones, operations in regions first.
func (ps *parser) check() {
	for _, o := range ps.ops {
		types, err := Infer(o.op, ps.e)
		if err != nil {
			ps.fail(diag.TextType, o.pos, "%s: %v", o.op.Kind, err)
		}
		if declared := blockTypes(o.op.Results, ps.e); !slices.EqualFunc(declared, types, Type.Equal) {
			ps.fail(diag.TextType, o.pos, "%s gives %v, declared is %v", o.op.Kind, types, declared)
		}
	}
}

// blockOps reads operations up to a closing word, which it skips.
func (ps *parser) blockOps(b *Block, closing string, depth int) {
	if depth > maxRegionDepth {
		ps.fail(diag.TextLimit, ps.tok.pos, "regions nest deeper than %d", maxRegionDepth)
	}
	for !ps.accept(closing) {
		if ps.tok.kind != tokValue && !ps.is("(") {
			ps.fail(diag.TextSyntax, ps.tok.pos, "expected an operation or %s, found %s", closing, ps.tok)
		}
		b.Ops = append(b.Ops, ps.op(depth))
	}
}

func (ps *parser) op(depth int) *Op {
	op := &Op{}
	result := func() {
		t := ps.expectKind(tokValue, "a value")
		ps.expect(":")
		op.Results = append(op.Results, ps.define(t, ps.typ(0)))
	}
	if ps.accept("(") {
		ps.list(")", result)
	} else {
		result()
	}
	ps.expect("=")
	t := ps.expectKind(tokIdent, "an operator")
	kind, ok := ParseKind(t.text)
	if !ok {
		ps.fail(diag.TextUnknownName, t.pos, "there is no operator %q", t.text)
	}
	op.Kind, op.Attrs = kind, kind.newAttrs()
	ps.expect("(")
	ps.list(")", func() { ps.use(&op.Operands) })
	if ps.is("{") {
		ps.attrs(op, t)
	}
	if ps.accept("loc") {
		ps.expect("(")
		op.Loc = ps.expectKind(tokString, "a place in quotes").text
		ps.expect(")")
	}
	if ps.accept("do") {
		for len(op.Regions) == 0 || ps.is("(") && ps.regionFollows() || ps.is("{") {
			op.Regions = append(op.Regions, ps.region(depth+1))
		}
	}
	ps.ops = append(ps.ops, opAt{op, t.pos})
	return op
}

// regionFollows tells a region's parameters from the results of a next operation: both start
// with a parenthesis, but only parameters are followed by a brace.
func (ps *parser) regionFollows() bool {
	saved := ps.lexer
	defer func() { ps.lexer = saved }()
	depth := 0
	for {
		switch t := ps.next(); {
		case t.kind == tokEnd:
			return false
		case t.kind != tokPunct:
		case t.text == "(":
			depth++
		case t.text == ")":
			if depth--; depth == 0 {
				return ps.is("{")
			}
		}
	}
}

func (ps *parser) region(depth int) *Block {
	b := &Block{}
	if ps.accept("(") {
		ps.list(")", func() {
			t := ps.expectKind(tokValue, "a value")
			ps.expect(":")
			b.Params = append(b.Params, ps.define(t, ps.typ(0)))
		})
	}
	ps.expect("{")
	ps.blockOps(b, "yield", depth)
	for ps.tok.kind == tokValue {
		ps.use(&b.Results)
		if !ps.accept(",") {
			break
		}
	}
	ps.expect("}")
	return b
}

func (ps *parser) memory() *Memory {
	m := &Memory{Places: make([]Place, len(ps.e.Types))}
	ps.expect("{")
	for ps.accept("buffer") {
		if pos, i := ps.tok.pos, ps.index(); i != len(m.Buffers) {
			ps.fail(diag.TextSyntax, pos, "buffer %d comes where buffer %d should", i, len(m.Buffers))
		}
		ps.expect(":")
		b := ArenaBuffer{Size: ps.dim(0)}
		ps.expect("live")
		b.First = ps.index()
		ps.expect("..")
		b.Last = ps.index()
		if ps.accept("after") {
			ps.expect("[")
			ps.list("]", func() { b.After = append(b.After, ps.index()) })
		}
		m.Buffers = append(m.Buffers, b)
	}
	for !ps.accept("}") {
		t := ps.expectKind(tokValue, "a value or }")
		v, ok := ps.names[t.text]
		if !ok {
			ps.fail(diag.TextValue, t.pos, "%%%s is not defined", t.text)
		}
		ps.expect("in")
		where := ps.expectKind(tokIdent, "buffer, input or output")
		kind := slices.Index(placeNames, where.text)
		if kind <= 0 {
			ps.fail(diag.TextSyntax, where.pos, "expected buffer, input or output, found %s", where)
		}
		m.Places[v] = Place{PlaceKind(kind), ps.index()}
	}
	return m
}
