package main

import (
	"context"
	"io"
	"strings"

	"weft/frontend/lower"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/runtime/artifact"
)

// model is what a FILE or ARTIFACT argument names: an open artifact, or an imported file.
type model struct {
	path     string
	artifact *artifact.Artifact // nil for a file
	imported *lower.Imported    // nil for an artifact
	program  *ir.Program
	given    givenFlags // about the inputs of a file
	ranks    rankFlags
	traced   bool // its runs are
	warn     func(diag.List)
	stderr   io.Writer // for what is said at once
}

// openModel opens an artifact or imports a file. Warnings of the import go to warn.
func openModel(path string, warn func(diag.List)) (*model, error) {
	return openGiven(path, givenFlags{}, warn)
}

// openGiven is openModel with more about the inputs of a file.
func openGiven(path string, given givenFlags, warn func(diag.List)) (*model, error) {
	if isArtifact(path) {
		if err := given.none(path); err != nil {
			return nil, err
		}
		a, err := artifact.Open(path)
		if err != nil {
			return nil, err
		}
		program, err := ir.ParseProgram("program.weft", a.Program())
		if err != nil {
			a.Close()
			return nil, err
		}
		return &model{path: path, artifact: a, program: program, warn: warn}, nil
	}
	imported, err := importFile(path, given)
	if err != nil {
		return nil, err
	}
	warn(imported.Warnings)
	return &model{path: path, imported: imported, program: imported.Program, given: given, warn: warn}, nil
}

// isArtifact tells artifacts from files by their manifest. A damaged archive that is named like
// an artifact counts as one.
func isArtifact(path string) bool {
	z, err := weights.OpenZip(path)
	if err != nil {
		return strings.HasSuffix(path, ".weft") && !isText(path)
	}
	defer z.Close()
	return z.Has("manifest.json")
}

// isText tells whether a file does not begin as a zip archive does.
func isText(path string) bool {
	m, err := weights.Map(path)
	if err != nil {
		return true
	}
	defer m.Close()
	return len(m.Data) < 2 || string(m.Data[:2]) != "PK"
}

// Close releases the mappings.
func (m *model) Close() error {
	if m.artifact != nil {
		return m.artifact.Close()
	}
	return m.imported.Close()
}

// entries lists the entries that a user runs.
func (m *model) entries() []signature {
	var list []signature
	for _, e := range m.program.Entries {
		if e.Name != ir.InitEntry {
			list = append(list, signatureOf(e))
		}
	}
	return list
}

// needs describes the weights that a user gives.
func (m *model) needs() ([]weights.Info, error) {
	if m.artifact != nil {
		return m.artifact.Needs()
	}
	var infos []weights.Info
	seen := map[string]bool{}
	for i := range m.program.States {
		s := &m.program.States[i]
		shape, ok := globalType(s.Type, s.Shard).ConstShape()
		name := s.StoredName()
		if s.Kind == ir.Prepared || seen[name] {
			continue
		}
		if !ok {
			return nil, diag.Errorf(diag.WeightType, "", "state %q has the symbolic type %s", s.Name, s.Type).In(m.path)
		}
		seen[name] = true
		infos = append(infos, weights.Info{Name: name, DType: s.Type.DType, Shape: shape})
	}
	return infos, nil
}

// statesAsWeights gives values of states the names under which weights are looked for.
func (m *model) statesAsWeights(states []weights.Named) (weights.Source, error) {
	var list []weights.Named
	for _, given := range states {
		s := m.program.State(given.Name)
		if s == nil {
			var names []string
			for _, s := range m.program.States {
				names = append(names, s.Name)
			}
			d := diag.Errorf(diag.RunInputUnknown, "", "there is no state %q", given.Name)
			if near := diag.Nearest(given.Name, names, 3); len(near) > 0 {
				d.Suggest("did you mean %s?", strings.Join(near, " or "))
			}
			return nil, d
		}
		name := s.Name
		if m.artifact == nil {
			name = s.StoredName()
		} else {
			for _, stored := range m.artifact.Manifest.State {
				if stored.Name == s.Name && stored.From.Reference != nil {
					name = stored.From.Reference.Name
				}
			}
		}
		list = append(list, weights.Named{Name: name, Tensor: given.Tensor})
	}
	return weights.FromTensors(list)
}

// open makes a session on a device. given, which may be nil, replaces weights of the model.
func (m *model) open(ctx context.Context, device, target string, given weights.Source) (session, error) {
	if device == "reference" {
		return m.reference(given)
	}
	return m.onDevice(ctx, device, target, given)
}

func (m *model) reference(given weights.Source) (session, error) {
	values, err := m.values(given)
	if err != nil {
		return nil, err
	}
	return newReference(m.program, values, m.traced)
}

// values is the source of the states' values, under the states' names.
func (m *model) values(given weights.Source) (weights.Source, error) {
	if m.artifact != nil {
		return m.artifact.WeightsWith(given)
	}
	all, err := override(m.imported.Weights, given)
	if err != nil {
		return nil, err
	}
	var names, from []string
	for i := range m.program.States {
		s := &m.program.States[i]
		if s.Kind == ir.Prepared {
			continue
		}
		if all == nil {
			return nil, diag.Errorf(diag.RunInputMissing, "", "state %q has no value: the file holds no weights", s.Name).In(m.path).
				Suggest("give weights with --weights FILE, a directory or random:SEED")
		}
		if shape, ok := globalType(s.Type, s.Shard).ConstShape(); ok {
			if err := weights.Expect(all, s.StoredName(), s.Type.DType, shape); err != nil {
				return nil, err
			}
		}
		names, from = append(names, s.Name), append(from, s.StoredName())
	}
	if all == nil {
		return weights.NewSource(nil)
	}
	return weights.Rename(all, names, from)
}
