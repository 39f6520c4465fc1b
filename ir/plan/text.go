package plan

import (
	"fmt"
	"strconv"
	"strings"

	"weft/ir"
)

// String prints the plan for people: a line for each dim, input, output, buffer and step.
//
//	plan forward for sm_80
//	dim batch in 1..64
//	input 0 "in.0": f32[batch, 64]
//	output 0 "out.0": f32[batch, 64]
//	buffer 0: input 0, 256*batch bytes
//	buffer 1: arena, 256*batch bytes, after 0  // hidden
//	step 0: launch map_1f [batch, 1, 1] x 256 (r 0, w 1, i32 64*batch)  // relu at model.py:12
//	step 1: copy 1 to 2
//	step 2: fill 3 with 0000803f
//	step 3: if 4 {
//	step 4:   copy 1 to 2
//	        } else {
//	        }
//	step 5: while {
//	step 6:   launch map_2a [1, 1, 1] x 32 (r 5, w 6)
//	        } 6 do {
//	step 7:   launch map_3b [1, 1, 1] x 32 (rw 5)
//	        }
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan %s for %s\n", p.Entry, p.Target)
	if len(p.Mesh) > 0 {
		fmt.Fprintf(&b, "mesh %s\n", p.MeshOf())
	}
	for _, d := range p.Dims {
		fmt.Fprintf(&b, "dim %s\n", d)
	}
	for i, t := range p.Inputs {
		fmt.Fprintf(&b, "input %d %s\n", i, t)
	}
	for i, t := range p.Outputs {
		fmt.Fprintf(&b, "output %d %s\n", i, t)
	}
	for i, buf := range p.Buffers {
		fmt.Fprintf(&b, "buffer %d: %s\n", i, buf)
	}
	t := &stepPrinter{b: &b}
	t.list(p.Steps, "")
	return b.String()
}

// stepPrinter prints steps with their numbers.
type stepPrinter struct {
	b    *strings.Builder
	next int
}

func (t *stepPrinter) list(list []Step, indent string) {
	for _, s := range list {
		number := fmt.Sprintf("step %d: ", t.next)
		blank := strings.Repeat(" ", len(number)) + indent
		t.next++
		opening, between := s.brackets()
		nested := s.lists()
		if opening == "" {
			fmt.Fprintf(t.b, "%s%s%s\n", number, indent, s)
			continue
		}
		fmt.Fprintf(t.b, "%s%s%s\n", number, indent, opening)
		t.list(nested[0], indent+"  ")
		fmt.Fprintf(t.b, "%s%s\n", blank, between)
		t.list(nested[1], indent+"  ")
		fmt.Fprintf(t.b, "%s}\n", blank)
	}
}

// brackets gives the text before and between the lists of steps inside a step.
func (s Step) brackets() (opening, between string) {
	switch {
	case s.If != nil:
		return fmt.Sprintf("if %d {", s.If.Predicate), "} else {"
	case s.While != nil:
		return "while {", fmt.Sprintf("} %d do {", s.While.Predicate)
	}
	return "", ""
}

// String prints the dim's name and facts.
func (d Dim) String() string {
	s := d.Name
	switch {
	case d.Max != 0:
		s += fmt.Sprintf(" in %d..%d", d.Min, d.Max)
	case d.Min != 0:
		s += fmt.Sprintf(" in %d..", d.Min)
	}
	if d.Multiple > 1 {
		s += fmt.Sprintf(" multiple %d", d.Multiple)
	}
	return s
}

// String prints name, state and type.
func (t Tensor) String() string {
	state := ""
	if t.State != "" {
		state = " @" + strconv.Quote(t.State)
	}
	shard := ""
	if t.Shard != nil {
		shard = " of " + t.Sharding().String()
	}
	return fmt.Sprintf("%q%s: %s%s%s", t.Name, state, t.DType, ir.DimList(t.Shape), shard)
}

// String prints kind, size, placement and what the buffer holds.
func (b Buffer) String() string {
	s := string(b.Kind)
	if b.Kind != Arena {
		s += fmt.Sprintf(" %d", b.Index)
	}
	s += fmt.Sprintf(", %s bytes", b.Size)
	if len(b.After) > 0 {
		s += ", after " + strings.Trim(fmt.Sprint(b.After), "[]")
	}
	return s + comment(b.Name)
}

// String prints the step.
func (s Step) String() string {
	var parts []string
	if s.Launch != nil {
		parts = append(parts, s.Launch.String())
	}
	if s.Copy != nil {
		parts = append(parts, fmt.Sprintf("copy %d to %d", s.Copy.From, s.Copy.To))
	}
	if s.Fill != nil {
		parts = append(parts, fmt.Sprintf("fill %d with %s", s.Fill.Buffer, s.Fill.Pattern))
	}
	if s.Wait != nil {
		parts = append(parts, fmt.Sprintf("wait for %d to %d", s.Wait.From, s.Wait.To))
	}
	if s.Collective != nil {
		parts = append(parts, s.Collective.String())
	}
	if opening, between := s.brackets(); opening != "" {
		nested := s.lists()
		parts = append(parts, opening+inLine(nested[0])+between+inLine(nested[1])+"}")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// inLine prints nested steps in one line.
func inLine(list []Step) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = s.String()
	}
	return " " + strings.Join(append(texts, ""), "; ")
}

// String prints kernel, grid x block, arguments and label.
func (l *Launch) String() string {
	args := make([]string, len(l.Args))
	for i, a := range l.Args {
		args[i] = a.String()
	}
	s := fmt.Sprintf("launch %s %s x %d", l.Kernel, ir.DimList(l.Grid[:]), l.Block)
	if l.Shared > 0 {
		s += fmt.Sprintf(" shared %d", l.Shared)
	}
	if l.Resident > 0 {
		s += fmt.Sprintf(" at most %d a multiprocessor", l.Resident)
	}
	return s + " (" + strings.Join(args, ", ") + ")" + comment(l.Label)
}

// String prints access and buffer, a tensor map of a buffer, or width and value.
func (a Arg) String() string {
	switch {
	case a.Map != nil:
		return fmt.Sprintf("map %d %s", a.Buffer, a.Map)
	case a.Buffer == -1:
		return fmt.Sprintf("i%d %s", a.Bits, a.Value)
	}
	return fmt.Sprintf("%s %d", a.Access, a.Buffer)
}

func comment(text string) string {
	if text == "" {
		return ""
	}
	return "  // " + strings.ReplaceAll(text, "\n", " ")
}
