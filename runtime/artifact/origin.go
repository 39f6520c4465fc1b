package artifact

import (
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// StatesOf describes the states of a scheduled program for a manifest, and says where their first values
// are. how is what --weights says: embed (also when empty), reference, none or random:SEED; source has
// the model's weights, nil for a file with a graph alone. embedded has the values that the artifact is
// to hold, by name of the state; nil for none.
func StatesOf(p *ir.Program, how string, source weights.Source) (states []State, embedded weights.Source, err error) {
	var names, from []string
	for _, s := range p.States {
		origin, err := originOf(s, how, source)
		if err != nil {
			return nil, nil, err
		}
		if origin.Embedded != nil {
			names, from = append(names, s.Name), append(from, s.StoredName())
		}
		states = append(states, StateOf(s, origin))
	}
	if len(names) > 0 {
		embedded, err = weights.Rename(source, names, from)
	}
	return states, embedded, err
}

// originOf says where a state's first value comes from.
func originOf(s ir.State, how string, source weights.Source) (From, error) {
	switch s.Kind {
	case ir.Prepared:
		return From{Prepared: &Prepared{Entry: ir.InitEntry}}, nil
	case ir.Generator:
		return From{Random: &Random{Name: s.Name}}, nil // integers: zeros
	}
	if seed, ok, err := weights.ParseRandom(how); ok || err != nil {
		return From{Random: &Random{Seed: seed, Name: s.StoredName()}}, err
	}
	if source == nil && how != "none" {
		return From{}, diag.Errorf("W1012", "", "the file holds a graph without weights, and state %q has no value", s.Name).
			Suggest("compile with --weights none (weights are given at run time) or --weights random:SEED")
	}
	switch how {
	case "embed", "":
		return From{Embedded: &Embedded{}}, nil
	case "reference":
		digest, err := source.Digest(s.StoredName())
		return From{Reference: &Reference{Name: s.StoredName(), SHA256: digest}}, err
	case "none":
		return From{Reference: &Reference{Name: s.StoredName()}}, nil
	}
	return From{}, diag.Errorf("W0001", "--weights", "--weights does not take %q", how).
		Suggest("it takes embed, reference, none or random:SEED")
}
