package artifact

import (
	"slices"

	"weft/ir"
)

// MeshOf describes the mesh of a program for a manifest.
func MeshOf(p *ir.Program) Mesh {
	var m Mesh
	for _, a := range p.Mesh.Axes {
		m.Axes = append(m.Axes, Axis(a))
	}
	return m
}

// Program is the mesh as programs have it.
func (m Mesh) Program() ir.Mesh {
	var p ir.Mesh
	for _, a := range m.Axes {
		p.Axes = append(p.Axes, ir.MeshAxis(a))
	}
	return p
}

// StateOf describes a state of a program for a manifest. The type is that of the global tensor.
func StateOf(s ir.State, from From) State {
	typ, shard := global(s.Type, s.Shard)
	return State{Name: s.Name, Type: typ, Shard: shard, Kind: string(s.Kind), From: from}
}

// global is the type of a global tensor and the text of its sharding; t is the type on one rank.
func global(t ir.Type, s ir.Sharding) (typ, shard string) {
	if s == nil {
		return t.String(), ""
	}
	return ir.TensorOf(t.DType, s.Global()...).String(), s.String()
}

// Bounds of a sharding that a manifest may have.
const (
	maxSharding = 64 << 10 // bytes of text
	maxParts    = 256
)

// Sharding is how ranks divide the state; nil where each has all.
func (s *State) Sharding() ir.Sharding { return readSharding(s.Shard) }

// readSharding reads a sharding that was checked.
func readSharding(text string) ir.Sharding {
	if text == "" {
		return nil
	}
	s, err := ir.ParseSharding(text)
	if err != nil {
		panic("BUG: a sharding of a checked manifest does not parse: " + err.Error())
	}
	return s
}

// checkMesh checks the axes of the mesh.
func (m *Manifest) checkMesh(once func(kind, name string) error) error {
	ranks := int64(1)
	for _, a := range m.Mesh.Axes {
		if err := once("mesh", a.Name); err != nil {
			return err
		}
		if a.Size < 1 || a.Size > maxRanks/ranks {
			return badManifest("mesh", "axis %.100q has size %d", a.Name, a.Size)
		}
		ranks *= a.Size
	}
	return nil
}

// maxRanks is the largest mesh.
const maxRanks = 1 << 20

// checkSharding checks a sharding against the mesh and the type of the global tensor. States have
// constant shapes of whole bytes.
func (m *Manifest) checkSharding(place, text, typ string, constant bool) error {
	if text == "" {
		return nil
	}
	if len(text) > maxSharding {
		return badManifest(place, "the sharding is too long")
	}
	s, err := ir.ParseSharding(text)
	if err != nil {
		return badManifest(place, "%.100q is no sharding", text)
	}
	parts, axes, mesh := 0, s.Axes(), m.Mesh.Program()
	for _, dim := range s {
		parts += len(dim)
		for _, p := range dim {
			if n, ok := p.Size.IsConst(); constant && !ok || n < 0 {
				return badManifest(place, "the sharding %.100q has a size of %s", text, p.Size)
			}
		}
	}
	for i, name := range axes {
		if _, ok := mesh.Axis(name); !ok || slices.Contains(axes[:i], name) {
			return badManifest(place, "axis %.100q of the sharding is not in the mesh, or divides the tensor twice", name)
		}
	}
	if parts > maxParts || len(s) > maxParts {
		return badManifest(place, "the sharding has too many parts")
	}
	if !constant {
		return nil // plans have the shapes
	}
	dtype, shape, ok := parseTensorType(typ)
	if global, c := ir.TensorOf(dtype, s.Global()...).ConstShape(); !ok || dtype.Size() == 0 || !c || !slices.Equal(global, shape) {
		return badManifest(place, "%.100s is not what %.100s divides", typ, text)
	}
	return nil
}
