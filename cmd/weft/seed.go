package main

import (
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// seeded adds the first state of the program's random numbers to weights, unless they have it:
// the seed, and the offset 0. It is an error to ask for a seed where nothing is random.
func (m *model) seeded(given weights.Source, seed uint64, asked bool) (weights.Source, error) {
	var list []weights.Named
	for _, s := range m.program.States {
		if s.Kind != ir.Generator {
			continue
		}
		if given != nil && !asked {
			if _, ok := given.Info(s.Name); ok {
				continue
			}
		}
		state := ir.NewTensor(ir.I64, 2)
		state.SetInt(0, int64(seed))
		list = append(list, weights.Named{Name: s.Name, Tensor: state})
	}
	if len(list) == 0 {
		if asked {
			return given, diag.Errorf(diag.RunInputUnknown, "--seed", "the model draws no random numbers").In(m.path)
		}
		return given, nil
	}
	source, err := weights.FromTensors(list)
	if err != nil {
		return given, err
	}
	return override(given, source)
}
