package plan

import (
	"fmt"
	"slices"
	"strings"

	"weft/ir"
)

// MeshOf is the mesh as programs have it.
func (p *Plan) MeshOf() ir.Mesh {
	var m ir.Mesh
	for _, a := range p.Mesh {
		m.Axes = append(m.Axes, ir.MeshAxis{Name: a.Name, Size: a.Size})
	}
	return m
}

// ShardOf is a sharding as plans have it.
func ShardOf(s ir.Sharding) [][]Part {
	var out [][]Part
	for _, parts := range s {
		dim := []Part{}
		for _, p := range parts {
			dim = append(dim, Part{p.Size, p.Axes})
		}
		out = append(out, dim)
	}
	return out
}

// Sharding is the tensor's sharding as programs have it; nil where each rank has all.
func (t Tensor) Sharding() ir.Sharding {
	var s ir.Sharding
	for _, parts := range t.Shard {
		dim := []ir.Part{}
		for _, p := range parts {
			dim = append(dim, ir.Part{Size: p.Size, Axes: p.Axes})
		}
		s = append(s, dim)
	}
	return s
}

// collectiveKinds are the collectives of a plan, with the sizes of their operand and result in
// shares: false is one share, true as many as there are ranks.
var collectiveKinds = map[string]struct{ from, to bool }{
	"all_reduce":         {},
	"all_gather":         {to: true},
	"reduce_scatter":     {from: true},
	"all_to_all":         {},
	"collective_permute": {},
}

// mesh checks P15 for the mesh.
func (v *verifier) mesh() {
	seen, ranks := map[string]bool{}, int64(1)
	for i, a := range v.p.Mesh {
		if a.Name == "" || seen[a.Name] || a.Size < 1 || a.Size > maxRanks/ranks {
			v.fail(15, at("mesh axis", i), "axis %.100q of size %d", a.Name, a.Size)
			return
		}
		ranks *= a.Size
		seen[a.Name] = true
		v.rankDims[ir.RankSymbol(a.Name)] = true
		if d, ok := v.dims[ir.RankSymbol(a.Name)]; ok && (d.Min != 0 || d.Max != a.Size-1 && a.Size > 1) {
			v.fail(15, at("mesh axis", i), "the coordinate is %s, the axis has size %d", d, a.Size)
		}
	}
}

// Bounds of meshes and shardings.
const (
	maxRanks = 1 << 20
	maxParts = 256
)

// shard checks P15 for a tensor that ranks divide.
func (v *verifier) shard(place string, t Tensor) {
	if t.Shard == nil {
		return
	}
	s, m := t.Sharding(), v.p.MeshOf()
	var sizes []ir.Dim
	for _, parts := range t.Shard {
		for _, p := range parts {
			sizes = append(sizes, p.Size)
		}
	}
	v.declared(place, sizes...)
	if len(t.Shard) > maxRank || len(sizes) > maxParts || !multipliable(sizes) {
		v.fail(15, place, "the sharding has %d dims of %d parts, or sizes whose product is too long", len(t.Shard), len(sizes))
		return
	}
	axes := s.Axes()
	for i, name := range axes {
		if _, ok := m.Axis(name); !ok || slices.Contains(axes[:i], name) {
			v.fail(15, place, "axis %.100q is not in the mesh or divides the tensor twice", name)
			return
		}
	}
	if !ir.SameShape(s.Local(m), t.Shape) {
		v.fail(15, place, "a rank has %s of %s, not %s", ir.DimList(s.Local(m)), s, ir.DimList(t.Shape))
	}
}

// collective checks P15 and P16 for a step.
func (v *verifier) collective(place string, c *Collective) {
	kind, known := collectiveKinds[c.Kind]
	dtype, typed := ir.ParseDType(c.DType)
	if !known || !typed || dtype.Size() == 0 || len(c.Axes) == 0 {
		v.fail(15, place, "there is no collective %.40q of %.40q over %d axes", c.Kind, c.DType, len(c.Axes))
		return
	}
	m := v.p.MeshOf()
	for i, name := range c.Axes {
		if _, ok := m.Axis(name); !ok || slices.Contains(c.Axes[:i], name) {
			v.fail(15, place, "axis %.100q is not in the mesh or is there twice", name)
			return
		}
	}
	if n := m.Extent(c.Axes); n != c.Ranks {
		v.fail(15, place, "%d ranks, along its axes there are %d", c.Ranks, n)
		return
	}
	v.combination(place, c)
	v.pairs(place, c)
	if v.buffer(place, c.From) && v.buffer(place, c.To) {
		v.shares(place, c, kind.from, kind.to)
	}
}

// asynchronous checks P17 for a list of steps; the number of its first step is v.next.
func (v *verifier) asynchronous(list []Step) {
	type flight struct {
		wait  Wait
		place string
	}
	var open []flight
	number := v.next
	for _, s := range list {
		place := at("step", number)
		s.each(func(inner Step, own bool) {
			number++
			inner.accesses(func(b int, _, writes bool) {
				for _, f := range open {
					if (b == f.wait.To || b == f.wait.From && writes) && !(own && s.Wait != nil && *s.Wait == f.wait) {
						v.fail(17, place, "buffer %d is in use by the asynchronous collective of %s", b, f.place)
					}
				}
			})
		})
		switch {
		case s.Collective != nil && s.Collective.Async:
			open = append(open, flight{Wait{s.Collective.From, s.Collective.To}, place})
		case s.Wait != nil:
			i := slices.IndexFunc(open, func(f flight) bool { return f.wait == *s.Wait })
			if i < 0 {
				v.fail(17, place, "no asynchronous collective from buffer %d to %d is on its way", s.Wait.From, s.Wait.To)
				continue
			}
			open = slices.Delete(open, i, i+1)
		}
	}
	for _, f := range open {
		v.fail(17, f.place, "nothing waits for the asynchronous collective to buffer %d", f.wait.To)
	}
}

// each visits a step and those inside it, in the order of their numbers; own for the step itself.
func (s Step) each(visit func(inner Step, own bool)) {
	visit(s, true)
	for _, list := range s.lists() {
		for _, inner := range list {
			inner.each(func(deep Step, _ bool) { visit(deep, false) })
		}
	}
}

// shares checks P16. fromAll and toAll tell which side has the shares of all ranks.
func (v *verifier) shares(place string, c *Collective, fromAll, toAll bool) {
	from, to := v.p.Buffers[c.From].Size, v.p.Buffers[c.To].Size
	left, right := from, to
	if toAll {
		left = from.MulConst(c.Ranks)
	}
	if fromAll {
		right = to.MulConst(c.Ranks)
	}
	inPlace := c.Kind == "all_reduce" && !c.Async
	if c.From == c.To && !inPlace || !left.Equal(right) {
		v.fail(16, place, "%s from buffer %d of %s bytes to buffer %d of %s", c.Kind, c.From, from, c.To, to)
		return
	}
	for _, size := range []ir.Dim{from, to} {
		size.Symbols(func(name string) {
			if v.rankDims[name] {
				v.fail(16, place, "%s of %s bytes, which differ between ranks", c.Kind, size)
			}
		})
	}
	dtype, _ := ir.ParseDType(c.DType)
	unit := int64(dtype.Size())
	if c.Kind == "all_to_all" {
		unit *= c.Ranks
	}
	if !from.DivisibleBy(unit, v.divisor) || !to.DivisibleBy(int64(dtype.Size()), v.divisor) {
		v.fail(16, place, "%s of %s from %s bytes to %s is not of whole elements", c.Kind, c.DType, from, to)
	}
}

// combination checks that what reduces says how, and nothing else does.
func (v *verifier) combination(place string, c *Collective) {
	reduces := c.Kind == "all_reduce" || c.Kind == "reduce_scatter"
	if !reduces && c.Combine == "" {
		return
	}
	combine, ok := ParseCombine(c.Combine)
	dtype, _ := ir.ParseDType(c.DType)
	if !reduces || !ok || ir.CombineTakes(combine, dtype) != nil {
		v.fail(15, place, "%s of %s by %.40q is not possible", c.Kind, c.DType, c.Combine)
	}
}

// ParseCombine finds the combination of a name.
func ParseCombine(name string) (c ir.Combine, ok bool) {
	err := c.UnmarshalText([]byte(name))
	return c, err == nil
}

// pairs checks those of a collective_permute: each rank sends once at most, and receives once.
func (v *verifier) pairs(place string, c *Collective) {
	if c.Kind != "collective_permute" && len(c.Pairs) > 0 {
		v.fail(15, place, "%s has pairs", c.Kind)
		return
	}
	var seen [2]map[int64]bool
	for i := range seen {
		seen[i] = map[int64]bool{}
	}
	for _, p := range c.Pairs {
		for i, rank := range p {
			if rank < 0 || rank >= c.Ranks || seen[i][rank] {
				v.fail(15, place, "pair %d to %d is outside of the group or repeats a rank", p[0], p[1])
				return
			}
			seen[i][rank] = true
		}
	}
}

// String prints the collective for people.
func (c *Collective) String() string {
	s := fmt.Sprintf("%s %d to %d over %s (%d ranks) of %s", c.Kind, c.From, c.To, strings.Join(c.Axes, ","), c.Ranks, c.DType)
	if c.Combine != "" {
		s += " by " + c.Combine
	}
	for _, p := range c.Pairs {
		s += fmt.Sprintf(" %d>%d", p[0], p[1])
	}
	if c.Async {
		s += " async"
	}
	if c.Channel != 0 {
		s += fmt.Sprintf(" channel %d", c.Channel)
	}
	return s + comment(c.Label)
}
