// Package mesh reads meshes and moves tensors between their global form and what each rank of a
// mesh holds.
package mesh

import (
	"slices"
	"strconv"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// MaxRanks is the largest mesh.
const MaxRanks = 1 << 20

// Parse reads a mesh as flags have it: "dp=8,tp=4".
func Parse(text string) (ir.Mesh, error) {
	var m ir.Mesh
	for _, part := range strings.Split(text, ",") {
		name, size, ok := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(strings.TrimSpace(size), 10, 64)
		name = strings.TrimSpace(name)
		switch {
		case !ok || err != nil || n < 1 || !axisName(name):
			return ir.Mesh{}, diag.Errorf(diag.BadMesh, "", "%q is not an axis and its size", part).Suggest("write axes as in dp=8,tp=4")
		case slices.ContainsFunc(m.Axes, func(a ir.MeshAxis) bool { return a.Name == name }):
			return ir.Mesh{}, diag.Errorf(diag.BadMesh, "", "axis %q is named twice", name)
		}
		m.Axes = append(m.Axes, ir.MeshAxis{Name: name, Size: n})
		if m.Size() > MaxRanks {
			return ir.Mesh{}, diag.Errorf(diag.BadMesh, "", "the mesh has more than %d ranks", MaxRanks)
		}
	}
	return m, nil
}

// axisName tells whether a name can stand in flags: a letter, then letters, digits and _.
func axisName(name string) bool {
	for i, c := range []byte(name) {
		if letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'; !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// Coordinates are the values of a rank's coordinate symbols.
func Coordinates(m ir.Mesh, rank int64) map[string]int64 {
	values := map[string]int64{}
	for _, a := range m.Axes {
		values[ir.RankSymbol(a.Name)] = m.Coordinate(rank, a.Name)
	}
	return values
}

// factor is a part with its sizes.
type factor struct {
	global, local int64 // elements
	first         int64 // global index of the rank's first element
	count         int64 // local elements that count
}

// Layout is a sharding with sizes bound, for one rank.
type Layout struct {
	Global, Local []int64 // shapes
	factors       []factor
}

// Bind evaluates a sharding for a rank. dims has the values of symbolic dims.
func Bind(s ir.Sharding, m ir.Mesh, rank int64, dims map[string]int64) (Layout, error) {
	l := Layout{Global: make([]int64, len(s)), Local: make([]int64, len(s))}
	for i, parts := range s {
		l.Global[i], l.Local[i] = 1, 1
		for _, p := range parts {
			n, err := p.Size.Eval(dims)
			if err != nil {
				return Layout{}, err
			}
			k := m.Extent(p.Axes)
			f := factor{global: n, local: (n + k - 1) / k}
			f.first = min(n, f.local*m.Position(rank, p.Axes))
			f.count = min(f.local, n-f.first)
			l.Global[i] *= f.global
			l.Local[i] *= f.local
			l.factors = append(l.factors, f)
		}
	}
	return l, nil
}

// Runs visits the stretches of elements that a rank holds: count elements that lie one after the
// other both in the global tensor and in the rank's. Local elements that it does not visit are
// padding.
func (l Layout) Runs(visit func(global, local, count int64)) {
	f, inner := l.factors, int64(1)
	for len(f) > 0 && f[len(f)-1].local == f[len(f)-1].global && f[len(f)-1].count == f[len(f)-1].global {
		inner *= f[len(f)-1].global
		f = f[:len(f)-1]
	}
	if len(f) == 0 {
		if inner > 0 {
			visit(0, 0, inner)
		}
		return
	}
	runs(f, inner, 0, 0, visit)
}

func runs(f []factor, inner, global, local int64, visit func(global, local, count int64)) {
	global, local = global*f[0].global+f[0].first, local*f[0].local
	if len(f) == 1 {
		if f[0].count*inner > 0 {
			visit(global*inner, local*inner, f[0].count*inner)
		}
		return
	}
	for i := range f[0].count {
		runs(f[1:], inner, global+i, local+i, visit)
	}
}

// Slice is what a rank holds of a global tensor; padding is zero. Elements are whole bytes.
func (l Layout) Slice(t *ir.Tensor) *ir.Tensor {
	out := ir.NewTensor(t.DType, l.Local...)
	size := int64(t.DType.Size())
	l.Runs(func(global, local, count int64) {
		copy(out.Data[local*size:(local+count)*size], t.Data[global*size:])
	})
	return out
}

// Place copies what a rank holds into its place in the global tensor.
func (l Layout) Place(global, local *ir.Tensor) {
	size := int64(global.DType.Size())
	l.Runs(func(g, at, count int64) {
		copy(global.Data[g*size:(g+count)*size], local.Data[at*size:])
	})
}
