package ir

import (
	"fmt"
	"strings"

	"weft/ir/diag"
)

// Given is what a run is given for an input: element type and sizes.
type Given struct {
	DType DType
	Shape []int64
}

// String is the type in program text.
func (g Given) String() string { return TensorOf(g.DType, Consts(g.Shape...)...).String() }

// BindDims finds the sizes of the symbolic dims of a run. given has one element for each input
// of the entry, states included, global where ranks divide the tensor; one with no element type is left out of
// consideration. Each symbol is solved from dims that are linear in it; then every dim is compared and every symbol
// checked against its range and divisor. Errors are diagnostics (W70xx) that name the input, what it should be and
// what it is. The evaluator and the runtime both bind with it.
func BindDims(p *Program, e *Entry, given []Given) (map[string]int64, error) {
	b := binder{p: p, e: e, given: given, dims: map[string]int64{}, from: map[string]string{}}
	if len(given) != len(e.Body.Params) {
		return nil, diag.Errorf(diag.RunInputMissing, "", "%d values for the %d inputs of entry %q", len(given), len(e.Body.Params), e.Name)
	}
	b.checkTypes()
	if b.errs.Err() == nil {
		b.solve()
		b.checkShapes()
		b.checkRanges()
	}
	return b.dims, b.errs.Err()
}

type binder struct {
	p     *Program
	e     *Entry
	given []Given
	dims  map[string]int64
	from  map[string]string // where a symbol got its size
	errs  diag.List
}

func (b *binder) each(visit func(i int, t Type, g Given)) {
	for i, v := range b.e.Body.Params {
		if b.given[i].DType != InvalidDType {
			visit(i, b.p.globalInput(b.e, i, b.e.Types[v]), b.given[i])
		}
	}
}

// inputText names an input in messages.
func (e *Entry) inputText(i int) string {
	if in := e.Inputs[i]; in.State != "" {
		return fmt.Sprintf("state %q", in.State)
	}
	return fmt.Sprintf("input %q", e.Inputs[i].Name)
}

func (b *binder) fail(code diag.Code, i int, t Type, g Given) *diag.Diagnostic {
	name := b.e.inputText(i)
	d := diag.Errorf(code, name, "%s is %s, expected %s", name, g, b.p.describe(t))
	b.errs = append(b.errs, d)
	return d
}

// describe prints a type with what is known of its symbols.
func (p *Program) describe(t Type) string {
	var facts []string
	seen := map[string]bool{}
	for _, d := range t.Shape {
		d.Symbols(func(name string) {
			if s := p.Symbol(name); s != nil && !seen[name] {
				if f := s.facts(); f != "" {
					facts = append(facts, symbolText(name)+" "+f)
				}
			}
			seen[name] = true
		})
	}
	if len(facts) == 0 {
		return t.String()
	}
	return t.String() + " with " + strings.Join(facts, ", ")
}

// facts is what is known of a symbol: "in 1..64, a multiple of 8"; empty for nothing.
func (s *Symbol) facts() string {
	var parts []string
	switch {
	case s.Max != NoBound:
		parts = append(parts, fmt.Sprintf("in %d..%d", s.Min, s.Max))
	case s.Min > 0:
		parts = append(parts, fmt.Sprintf("at least %d", s.Min))
	}
	if s.Multiple > 1 {
		parts = append(parts, fmt.Sprintf("a multiple of %d", s.Multiple))
	}
	return strings.Join(parts, ", ")
}

func (b *binder) checkTypes() {
	b.each(func(i int, t Type, g Given) {
		if t.Kind != TensorKind || t.DType != g.DType || len(t.Shape) != len(g.Shape) {
			b.fail(diag.RunInputType, i, t, g)
		}
	})
}

// solve binds symbols until no dim yields another one.
func (b *binder) solve() {
	for progress := true; progress; {
		progress = false
		b.each(func(i int, t Type, g Given) {
			for axis, d := range t.Shape {
				name, v, ok := b.solveDim(d, g.Shape[axis])
				if !ok {
					continue
				}
				b.dims[name] = v
				b.from[name] = fmt.Sprintf("%s = %d comes from dim %d of %s", symbolText(name), v, axis, b.e.inputText(i))
				progress = true
			}
		})
	}
}

// solveDim solves d = size where d, with the known symbols put in, is linear in one symbol.
func (b *binder) solveDim(d Dim, size int64) (name string, v int64, ok bool) {
	d = d.Substitute(func(name string) (Dim, bool) {
		v, ok := b.dims[name]
		return Const(v), ok
	})
	terms, c := d.parts()
	if len(terms) != 1 || len(terms[0].atoms) != 1 || terms[0].atoms[0].op != dimSymbol {
		return "", 0, false
	}
	rest := satAdd(size, -c)
	if rest%terms[0].coef != 0 {
		return "", 0, false // no size fits: checkShapes reports it
	}
	return terms[0].atoms[0].symbol, rest / terms[0].coef, true
}

func (b *binder) checkShapes() {
	b.each(func(i int, t Type, g Given) {
		for axis, d := range t.Shape {
			size, err := d.Eval(b.dims)
			if err == nil && size == g.Shape[axis] {
				continue
			}
			known := true
			var notes []string
			d.Symbols(func(name string) {
				if _, ok := b.dims[name]; !ok {
					known = false
				} else if note := b.from[name]; len(notes) == 0 || notes[len(notes)-1] != note {
					notes = append(notes, note)
				}
			})
			f := b.fail(diag.RunInputShape, i, t, g)
			if _, c := d.IsConst(); !c && known {
				f.Note("dim %d should be %s = %d", axis, d, size)
			} else if !c {
				f.Note("no sizes of the symbols give dim %d = %s the size %d", axis, d, g.Shape[axis])
			}
			f.Notes = append(f.Notes, notes...)
			return
		}
	})
}

func (b *binder) checkRanges() {
	if b.errs.Err() != nil {
		return
	}
	for i := range b.p.Symbols {
		s := &b.p.Symbols[i]
		v, ok := b.dims[s.Name]
		if !ok || v >= s.Min && v <= s.Max && (s.Multiple <= 1 || v%s.Multiple == 0) {
			continue
		}
		b.errs = append(b.errs, diag.Errorf(diag.RunDimRange, "", "dim %s is %d, but the program was made for %s %s", symbolText(s.Name), v, symbolText(s.Name), s.facts()).
			Note("%s", b.from[s.Name]).Suggest("compile with another --dim %s=MIN..MAX to allow it", s.Name))
	}
}

// globalInput is the type of an input before ranks divide it; t is its type on one rank.
func (p *Program) globalInput(e *Entry, i int, t Type) Type {
	shard := e.Inputs[i].Shard
	if s := p.State(e.Inputs[i].State); s != nil && shard == nil {
		shard = s.Shard
	}
	if shard == nil {
		return t
	}
	return TensorOf(t.DType, shard.Global()...)
}
