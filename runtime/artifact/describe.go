package artifact

import "weft/ir"

// EntriesOf describes the entries of a program for a manifest.
func EntriesOf(p *ir.Program) []Entry {
	var entries []Entry
	for _, e := range p.Entries {
		out := Entry{Name: e.Name}
		for i, in := range e.Inputs {
			if in.State == "" {
				typ, shard := global(e.Type(e.Body.Params[i]), in.Shard)
				out.Inputs = append(out.Inputs, Value{Name: in.Name, Type: typ, Shard: shard})
			}
		}
		for i, o := range e.Outputs {
			name, divided := o.Name, o.Shard
			if o.State != "" { // as plans name it
				name = "@" + o.State
				if s := p.State(o.State); s != nil {
					divided = s.Shard
				}
				out.Donations = append(out.Donations, Donation{Output: name, State: o.State})
			}
			typ, shard := global(e.Type(e.Body.Results[i]), divided)
			out.Outputs = append(out.Outputs, Value{Name: name, Type: typ, Shard: shard})
		}
		entries = append(entries, out)
	}
	return entries
}

// DimsOf describes the symbolic dims of a program for a manifest.
func DimsOf(p *ir.Program) []Dim {
	var dims []Dim
	for _, s := range p.Symbols {
		d := Dim{Name: s.Name, Min: &s.Min}
		if s.Max < ir.NoBound {
			d.Max = &s.Max
		}
		if s.Multiple > 1 {
			d.Multiple = s.Multiple
		}
		dims = append(dims, d)
	}
	return dims
}
