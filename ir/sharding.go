package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Mesh is a grid of ranks with named axes. Ranks are numbered in row-major order: the last
// axis varies fastest. The zero value is one rank.
type Mesh struct{ Axes []MeshAxis }

// MeshAxis is one axis of a mesh.
type MeshAxis struct {
	Name string
	Size int64
}

// Size is the number of ranks.
func (m Mesh) Size() int64 {
	n := int64(1)
	for _, a := range m.Axes {
		n = satMul(n, a.Size)
	}
	return n
}

// Axis finds an axis; its size is 1 where the mesh has none of the name.
func (m Mesh) Axis(name string) (MeshAxis, bool) {
	for _, a := range m.Axes {
		if a.Name == name {
			return a, true
		}
	}
	return MeshAxis{name, 1}, false
}

// Extent is the number of ranks along axes together.
func (m Mesh) Extent(axes []string) int64 {
	n := int64(1)
	for _, name := range axes {
		a, _ := m.Axis(name)
		n = satMul(n, a.Size)
	}
	return n
}

// Coordinate is the coordinate of a rank on an axis, 0 on one that the mesh does not have.
func (m Mesh) Coordinate(rank int64, axis string) int64 {
	for _, a := range slices.Backward(m.Axes) {
		if a.Name == axis {
			return rank % a.Size
		}
		rank /= a.Size
	}
	return 0
}

// Position is the place of a rank along axes together, the last of them varying fastest: its
// index in the group of ranks that differ only there.
func (m Mesh) Position(rank int64, axes []string) int64 {
	at := int64(0)
	for _, name := range axes {
		a, _ := m.Axis(name)
		at = at*a.Size + m.Coordinate(rank, name)
	}
	return at
}

// Group lists the ranks that differ from a rank only on the axes, by Position.
func (m Mesh) Group(rank int64, axes []string) []int64 {
	group := make([]int64, m.Extent(axes))
	for i := range group {
		at, left := rank, int64(i)
		for _, name := range slices.Backward(axes) {
			a, _ := m.Axis(name)
			at += (left%a.Size - m.Coordinate(rank, name)) * m.stride(name)
			left /= a.Size
		}
		group[i] = at
	}
	return group
}

// stride is the distance of neighbouring ranks on an axis.
func (m Mesh) stride(axis string) int64 {
	n := int64(1)
	for _, a := range slices.Backward(m.Axes) {
		if a.Name == axis {
			return n
		}
		n *= a.Size
	}
	return 0
}

// String is the mesh as flags have it: "dp=8,tp=4".
func (m Mesh) String() string {
	parts := make([]string, len(m.Axes))
	for i, a := range m.Axes {
		parts[i] = fmt.Sprintf("%s=%d", a.Name, a.Size)
	}
	return strings.Join(parts, ",")
}

// RankSymbol is the symbolic dim that has a rank's coordinate on a mesh axis as its value. A
// program for a mesh declares one for each axis; a run binds them.
func RankSymbol(axis string) string { return "rank." + axis }

// Part is a factor of a tensor dim. Where it has axes, its Size elements are divided over them
// in order: with k ranks, each has ceil(Size/k), and the last ones may have fewer that count;
// what they hold beyond is undefined unless something says that it is zero.
type Part struct {
	Size Dim
	Axes []string
}

// Sharding says how a global tensor is divided over a mesh. Each dim is a product of parts, from
// the major to the minor one, so that a dim made of others (heads times width, three
// projections side by side) keeps the division of its factors. nil is a tensor that every rank
// holds whole.
type Sharding [][]Part

// Global is the shape of the global tensor.
func (s Sharding) Global() []Dim {
	shape := make([]Dim, len(s))
	for i, parts := range s {
		shape[i] = Const(1)
		for _, p := range parts {
			shape[i] = shape[i].Mul(p.Size)
		}
	}
	return shape
}

// Local is the shape that each rank of a mesh holds.
func (s Sharding) Local(m Mesh) []Dim {
	shape := make([]Dim, len(s))
	for i, parts := range s {
		shape[i] = Const(1)
		for _, p := range parts {
			shape[i] = shape[i].Mul(p.Local(m))
		}
	}
	return shape
}

// Local is the size of the part on each rank.
func (p Part) Local(m Mesh) Dim { return p.Size.CeilDiv(m.Extent(p.Axes)) }

// Replicated is the sharding of a tensor that is whole on every rank.
func Replicated(shape []Dim) Sharding {
	s := make(Sharding, len(shape))
	for i, d := range shape {
		s[i] = []Part{{Size: d}}
	}
	return s
}

// Axes lists the mesh axes that a tensor is divided over, in the order of its dims.
func (s Sharding) Axes() []string {
	var axes []string
	for _, parts := range s {
		for _, p := range parts {
			axes = append(axes, p.Axes...)
		}
	}
	return axes
}

// Equal tells whether two shardings divide tensors alike.
func (s Sharding) Equal(o Sharding) bool {
	return slices.EqualFunc(s, o, func(a, b []Part) bool {
		return slices.EqualFunc(a, b, func(x, y Part) bool { return x.Size.Equal(y.Size) && slices.Equal(x.Axes, y.Axes) })
	})
}

// String is the sharding as program text has it: one global size a dim, with the axes that
// divide it, and the parts in parentheses where a dim has several: "[32@dp, (3, 64@(tp, sp))]".
func (s Sharding) String() string {
	dims := make([]string, len(s))
	for i, parts := range s {
		texts := make([]string, len(parts))
		for j, p := range parts {
			texts[j] = p.String()
		}
		dims[i] = strings.Join(texts, ", ")
		if len(parts) != 1 {
			dims[i] = "(" + dims[i] + ")"
		}
	}
	return "[" + strings.Join(dims, ", ") + "]"
}

// String is the part in program text: its size, and the axes that divide it.
func (p Part) String() string {
	switch len(p.Axes) {
	case 0:
		return p.Size.String()
	case 1:
		return p.Size.String() + "@" + nameText(p.Axes[0])
	}
	names := make([]string, len(p.Axes))
	for i, a := range p.Axes {
		names[i] = nameText(a)
	}
	return p.Size.String() + "@(" + strings.Join(names, ", ") + ")"
}
