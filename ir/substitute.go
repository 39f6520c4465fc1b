package ir

import "reflect"

// SubstituteDims replaces symbols in every type and attribute of the program; replace returns
// false to keep one. The list of symbols is left to the caller.
func (p *Program) SubstituteDims(replace func(name string) (Dim, bool)) {
	shape := func(dims []Dim) []Dim {
		out := make([]Dim, len(dims))
		for i, d := range dims {
			out[i] = d.Substitute(replace)
		}
		return out
	}
	for _, e := range p.Entries {
		for i := range e.Types {
			e.Types[i].Shape = shape(e.Types[i].Shape)
		}
		e.Body.Walk(func(op *Op) {
			if op.Attrs != nil {
				op.Attrs = substituteAttrs(op.Attrs, replace, shape)
			}
		})
	}
}

// substituteAttrs copies an attribute struct with its Dim fields replaced.
func substituteAttrs(a Attrs, replace func(string) (Dim, bool), shape func([]Dim) []Dim) Attrs {
	v := reflect.ValueOf(a).Elem()
	out := reflect.New(v.Type())
	out.Elem().Set(v)
	for i := range v.NumField() {
		switch f := out.Elem().Field(i); d := f.Interface().(type) {
		case Dim:
			f.Set(reflect.ValueOf(d.Substitute(replace)))
		case []Dim:
			f.Set(reflect.ValueOf(shape(d)))
		}
	}
	return out.Interface().(Attrs)
}
