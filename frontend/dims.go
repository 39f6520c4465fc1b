package frontend

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

var (
	dimByName  = regexp.MustCompile(`^([^=\[\]]+)=(.+)$`)
	dimByInput = regexp.MustCompile(`^(.+)\[(\d+)\]=([^:]+)(?::(.+))?$`)
	dimRange   = regexp.MustCompile(`^(\d+)\.\.(\d+)?$`)
)

// ApplyDims applies facts about dims as --dim gives them: "batch=1..64" and "batch=8" for a dim
// by its name, "in.0[0]=batch:1..64" for the dim of an input by position or name and axis,
// which also names it.
func ApplyDims(p *ir.Program, facts []string) error {
	for _, fact := range facts {
		if err := applyDim(p, fact); err != nil {
			return err
		}
	}
	return nil
}

func applyDim(p *ir.Program, fact string) error {
	if m := dimByInput.FindStringSubmatch(fact); m != nil {
		dim, err := dimOfInput(p, m[1], m[2])
		if err != nil {
			return err
		}
		name := m[3]
		size, err := strconv.ParseInt(name, 10, 64)
		isSize := err == nil && m[4] == "" // in.0[0]=8
		if known, fixed := dim.IsConst(); isSize && fixed && known == size {
			return nil
		}
		old, err := soleSymbol(p, dim, m[1], m[2])
		if err != nil {
			return err
		}
		if isSize {
			return setDim(p, old, name)
		}
		if name != old {
			if err := renameSymbol(p, old, name); err != nil {
				return err
			}
		}
		if m[4] == "" {
			return nil
		}
		return setDim(p, name, m[4])
	}
	m := dimByName.FindStringSubmatch(fact)
	if m == nil {
		return dimError("cannot read %q", fact).Suggest("write NAME=MIN..MAX, NAME=SIZE or in.N[AXIS]=NAME:MIN..MAX")
	}
	return setDim(p, m[1], m[2])
}

// fixedSizes are the facts that give a dim a size: NAME=SIZE and INPUT[AXIS]=SIZE, by what is
// left of the equals sign.
func fixedSizes(facts []string) map[string]int64 {
	sizes := map[string]int64{}
	for _, fact := range facts {
		if at := strings.LastIndex(fact, "="); at > 0 {
			if n, err := strconv.ParseInt(fact[at+1:], 10, 64); err == nil && n > 0 {
				sizes[fact[:at]] = n
			}
		}
	}
	return sizes
}

// FactsOf are the facts that concern an entry of several, as the file of that entry alone would
// have them: names of inputs lose the entry's name.
func FactsOf(entry string, facts []string) []string {
	own := make([]string, len(facts))
	for i, fact := range facts {
		own[i] = fact
		if dimByInput.MatchString(fact) {
			own[i] = strings.TrimPrefix(fact, entry+".")
		}
	}
	return own
}

func dimError(format string, args ...any) *diag.Diagnostic {
	return diag.Errorf("W0002", "--dim", format, args...)
}

// symbolNames lists the program's dims for messages.
func symbolNames(p *ir.Program) string {
	var names []string
	for _, s := range p.Symbols {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return "the model has no symbolic dims"
	}
	return "its symbolic dims are " + strings.Join(names, ", ")
}

// dimOfInput finds a dim of an input; the input is named, or in.N.
func dimOfInput(p *ir.Program, input, axisText string) (ir.Dim, error) {
	axis, err := strconv.Atoi(axisText)
	if err != nil {
		return ir.Dim{}, dimError("cannot read the axis %q", axisText)
	}
	var known []string
	for _, e := range p.Entries {
		name := input
		if len(p.Entries) > 1 { // decode.in.0, where the entries are several
			if name, _ = strings.CutPrefix(input, e.Name+"."); name == input {
				name = ""
			}
		}
		n := 0
		for i, in := range e.Inputs {
			if in.State != "" {
				continue
			}
			if full := fmt.Sprintf("in.%d", n); len(p.Entries) > 1 {
				known = append(known, fmt.Sprintf("%s.%s (%s)", e.Name, full, in.Name))
			} else {
				known = append(known, fmt.Sprintf("%s (%s)", full, in.Name))
			}
			if name != "" && (name == in.Name || name == fmt.Sprintf("in.%d", n)) {
				t := e.Type(e.Body.Params[i])
				if axis >= t.Rank() {
					return ir.Dim{}, dimError("input %s is %s and has no axis %d", input, t, axis)
				}
				return t.Shape[axis], nil
			}
			n++
		}
	}
	return ir.Dim{}, dimError("there is no input %q", input).Suggest("inputs are %s", strings.Join(known, ", "))
}

func soleSymbol(p *ir.Program, d ir.Dim, input, axis string) (string, error) {
	if p.Symbol(d.String()) == nil {
		return "", dimError("axis %s of input %s is %s in the model, not a dim of its own", axis, input, d).
			Suggest("export the model with this dim dynamic (torch.export's dynamic_shapes); %s", symbolNames(p))
	}
	return d.String(), nil
}

func renameSymbol(p *ir.Program, old, name string) error {
	if p.Symbol(name) != nil {
		return dimError("there is a dim %q already", name).Suggest("%s", symbolNames(p))
	}
	p.SubstituteDims(func(s string) (ir.Dim, bool) { return ir.Sym(name), s == old })
	p.Symbol(old).Name = name
	return nil
}

// setDim applies "8", "1..64" or "1.." to a symbol. Ranges may only narrow what is known.
func setDim(p *ir.Program, name, value string) error {
	s := p.Symbol(name)
	if s == nil {
		return dimError("there is no dim %q", name).Suggest("%s", symbolNames(p))
	}
	if v, err := strconv.ParseInt(value, 10, 64); err == nil {
		if v < s.Min || v > s.Max || v%s.Multiple != 0 {
			return dimError("dim %s cannot be %d: the model allows %s", name, v, rangeText(s))
		}
		p.SubstituteDims(func(n string) (ir.Dim, bool) { return ir.Const(v), n == name })
		return dropSymbol(p, name)
	}
	m := dimRange.FindStringSubmatch(value)
	if m == nil {
		return dimError("cannot read the range %q of dim %s", value, name).Suggest("write MIN..MAX, MIN.. or a size")
	}
	low, err1 := strconv.ParseInt(m[1], 10, 64)
	high, err2 := ir.NoBound, error(nil)
	if m[2] != "" {
		high, err2 = strconv.ParseInt(m[2], 10, 64)
	}
	low, high = max(low, s.Min), min(high, s.Max)
	if err1 != nil || err2 != nil || low > high {
		return dimError("dim %s cannot be in %s: the model allows %s", name, value, rangeText(s))
	}
	s.Min, s.Max = low, high
	return nil
}

func dropSymbol(p *ir.Program, name string) error {
	kept := p.Symbols[:0]
	for _, s := range p.Symbols {
		if s.Name != name {
			kept = append(kept, s)
		}
	}
	p.Symbols = kept
	// The shapes of operations follow from the operands': check that they still fit.
	return ir.Verify(p)
}

func rangeText(s *ir.Symbol) string {
	text := fmt.Sprintf("%d..", s.Min)
	if s.Max < ir.NoBound {
		text += strconv.FormatInt(s.Max, 10)
	}
	if s.Multiple > 1 {
		text += fmt.Sprintf(" in multiples of %d", s.Multiple)
	}
	return text
}
