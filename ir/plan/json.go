package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// Limits of a plan. What decoding takes is bounded by a multiple of its values.
const (
	maxBytes  = 64 << 20
	maxValues = 2 << 20 // fields and elements, counted by commas
	maxRank   = 64
)

// Encode prints the plan as canonical JSON: equal plans give equal bytes. Buffers and steps,
// nested ones too, have a line each, so that plans can be compared with line tools.
func (p *Plan) Encode() ([]byte, error) {
	w := &jsonWriter{}
	w.field("{", "version", p.Version)
	w.field(",", "target", p.Target)
	w.field(",", "entry", p.Entry)
	if len(p.Mesh) > 0 {
		w.field(",", "mesh", p.Mesh)
	}
	if len(p.Dims) > 0 {
		lines(w, "dims", p.Dims)
	}
	lines(w, "inputs", shaped(p.Inputs))
	lines(w, "outputs", shaped(p.Outputs))
	lines(w, "buffers", p.Buffers)
	w.b.WriteString(",\n\"steps\": ")
	w.steps(p.Steps, "\n ")
	w.b.WriteString("\n}\n")
	if w.err != nil {
		return nil, fmt.Errorf("encode plan of %s: %w", p.Entry, w.err)
	}
	return w.b.Bytes(), nil
}

type jsonWriter struct {
	b   bytes.Buffer
	err error
}

func (w *jsonWriter) value(v any) {
	enc := json.NewEncoder(&w.b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.b.Truncate(w.b.Len() - 1) // the encoder's line end
}

func (w *jsonWriter) field(before, name string, v any) {
	fmt.Fprintf(&w.b, "%s\n%q: ", before, name)
	w.value(v)
}

func lines[T any](w *jsonWriter, name string, list []T) {
	fmt.Fprintf(&w.b, ",\n%q: [", name)
	for i, v := range list {
		if i > 0 {
			w.b.WriteString(",")
		}
		w.b.WriteString("\n ")
		w.value(v)
	}
	w.b.WriteString("]")
}

// shaped gives tensors of rank 0 an empty list instead of none.
func shaped(list []Tensor) []Tensor {
	out := make([]Tensor, len(list))
	for i, t := range list {
		t.Shape = append([]ir.Dim{}, t.Shape...)
		out[i] = t
	}
	return out
}

// steps writes a list of steps; before starts each line.
func (w *jsonWriter) steps(list []Step, before string) {
	w.b.WriteString("[")
	for i, s := range list {
		if i > 0 {
			w.b.WriteString(",")
		}
		w.b.WriteString(before)
		w.step(s, before+" ")
	}
	w.b.WriteString("]")
}

// step writes a step. Only one with nested steps takes more than a line.
func (w *jsonWriter) step(s Step, before string) {
	switch nested := s.lists(); {
	case s.If != nil && s == (Step{If: s.If}):
		fmt.Fprintf(&w.b, `{"if":{"predicate":%d,"then":`, s.If.Predicate)
		w.steps(nested[0], before)
		w.b.WriteString(`,"else":`)
		w.steps(nested[1], before)
		w.b.WriteString("}}")
	case s.While != nil && s == (Step{While: s.While}):
		w.b.WriteString(`{"while":{"condition":`)
		w.steps(nested[0], before)
		fmt.Fprintf(&w.b, `,"predicate":%d,"body":`, s.While.Predicate)
		w.steps(nested[1], before)
		w.b.WriteString("}}")
	default:
		if s.Launch != nil && s.Launch.Args == nil { // an empty list instead of none
			l := *s.Launch
			l.Args = []Arg{}
			s.Launch = &l
		}
		w.value(s)
	}
}

// Decode reads what Encode wrote. Unknown fields and major versions are errors; errors are
// diagnostics (W50xx). A decoded plan is not verified yet.
func Decode(data []byte) (*Plan, error) {
	if len(data) > maxBytes || bytes.Count(data, []byte(",")) > maxValues {
		return nil, diag.Errorf(diag.PlanTooLarge, "", "a plan of %d bytes and more than %d values is too large", len(data), bytes.Count(data, []byte(",")))
	}
	var header struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(data, &header); err != nil {
		return nil, syntaxError(err)
	}
	if err := checkVersion(header.Version); err != nil {
		return nil, err
	}
	p := &Plan{}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		return nil, syntaxError(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, diag.Errorf(diag.PlanSyntax, "", "there is text after the plan")
	}
	return p, nil
}

// UnmarshalJSON reads exactly three sizes; package json would take any number.
func (g *Grid) UnmarshalJSON(data []byte) error {
	var dims []ir.Dim
	if err := json.Unmarshal(data, &dims); err != nil {
		return err
	}
	if len(dims) != len(g) {
		return fmt.Errorf("a grid has %d sizes, not %d", len(g), len(dims))
	}
	*g = Grid(dims)
	return nil
}

func checkVersion(version string) error {
	major, _, _ := strings.Cut(Version, ".")
	if got, minor, ok := strings.Cut(version, "."); ok && got == major && minor != "" {
		return nil
	}
	return diag.Errorf(diag.PlanVersion, "", "the plan has format version %.40q; this weft reads %s.x", version, major).
		Suggest("use the weft that wrote it, or compile again with this one")
}

func syntaxError(err error) error {
	var dim *diag.Diagnostic
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &dim):
		return diag.Errorf(diag.PlanSyntax, "", "not a size expression: %.300s", dim.Message).Because(err)
	case errors.As(err, &syntax):
		return diag.Errorf(diag.PlanSyntax, fmt.Sprintf("byte %d", syntax.Offset), "not valid JSON: %v", err).Because(err)
	case errors.As(err, &kind):
		return diag.Errorf(diag.PlanSyntax, fmt.Sprintf("byte %d", kind.Offset), "%.300s does not take a JSON %.100s", kind.Field, kind.Value).Because(err)
	}
	return diag.Errorf(diag.PlanSyntax, "", "%.300s", strings.TrimPrefix(err.Error(), "json: ")).Because(err)
}
