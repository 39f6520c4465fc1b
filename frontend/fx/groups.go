package fx

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
)

// processGroup is a process group of torch.distributed that collectives of the graph name. Each
// but the group of all ranks is an axis of the program's mesh.
type processGroup struct {
	key   string // what operators call it
	size  int64  // ranks; 0 until something tells
	place string // where its size was told
	axes  []string
}

// allRanks is the name of torch's default group.
const allRanks = "0"

// name is the mesh axis of the group, unless --mesh gives it another one.
func (g *processGroup) name() string {
	return "group" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, g.key)
}

// groupKey is the group that a node names: by its name, or by its ranks in torch's older operators.
func groupKey(n *node) (string, bool) {
	for i, in := range n.inputs {
		switch {
		case in.name == "group_name" && in.kind == argString:
			return in.argument.name, true
		case in.name == "ranks" && in.kind == argList:
			var ranks []string
			for _, r := range n.inputs[i].list {
				ranks = append(ranks, strconv.FormatInt(r.i, 10))
			}
			return "ranks " + strings.Join(ranks, " "), true
		}
	}
	return "", false
}

// groupSize is what a node tells of its group's size.
func groupSize(g *graph, n *node) (int64, bool) {
	for _, in := range n.inputs {
		switch {
		case in.name == "group_size" && in.kind == argInt:
			return in.i, true
		case strings.HasSuffix(in.name, "_split_sizes") && in.kind == argList && len(in.list) > 0:
			return int64(len(in.list)), true
		}
	}
	if collectiveName(n.target) != "shard_dim_alltoall" || len(n.inputs) < 2 || len(n.outputs) != 1 {
		return 0, false
	}
	from, to := g.tensors[n.inputs[0].argument.name].sizes, g.tensors[n.outputs[0].name].sizes
	axis := n.inputs[1].i
	if axis < 0 {
		axis += int64(len(from))
	}
	if axis < 0 || axis >= int64(min(len(from), len(to))) || from[axis].value == 0 || from[axis].expr != "" || to[axis].expr != "" {
		return 0, false
	}
	return to[axis].value / from[axis].value, true
}

// findGroups lists the process groups of a graph and its regions, in torch's order of making them:
// that of the dims of a DeviceMesh.
func (im *importer) findGroups(g *graph) {
	for i := range g.nodes {
		n := &g.nodes[i]
		for _, in := range n.inputs {
			if in.graph != nil {
				im.findGroups(in.graph)
			}
		}
		if collectiveName(n.target) == "" {
			continue
		}
		key, ok := groupKey(n)
		if !ok {
			continue
		}
		at := slices.IndexFunc(im.processGroups, func(g *processGroup) bool { return g.key == key })
		if at < 0 {
			at = len(im.processGroups)
			im.processGroups = append(im.processGroups, &processGroup{key: key})
		}
		size, told := groupSize(g, n)
		group := im.processGroups[at]
		switch {
		case !told:
		case size < 1 || size > mesh.MaxRanks:
			fail(diag.FXArgument, location(n), "%s: a group of %d ranks", shortTarget(n.target), size)
		case group.size != 0 && group.size != size:
			fail(diag.FXArgument, location(n), "%s: process group %q has %d ranks here, %d at %s", shortTarget(n.target), key, size, group.size, group.place)
		default:
			group.size, group.place = size, location(n)
		}
	}
}

// bindMesh gives the program the mesh of its process groups. given is what --mesh says.
func (im *importer) bindMesh(given ir.Mesh) {
	im.findGroups(im.ep.graph)
	if len(im.processGroups) == 0 {
		return
	}
	slices.SortFunc(im.processGroups, func(a, b *processGroup) int {
		return cmp.Or(cmp.Compare(len(a.key), len(b.key)), cmp.Compare(a.key, b.key))
	})
	var world *processGroup
	parts := im.processGroups
	if len(parts) > 1 && parts[0].key == allRanks {
		world, parts = parts[0], parts[1:]
	}
	if len(given.Axes) > 0 {
		im.prog.Mesh = givenMesh(given, world, parts)
	} else {
		im.prog.Mesh = solvedMesh(world, parts)
	}
	if n := im.prog.Mesh.Size(); n > mesh.MaxRanks {
		fail(diag.BadMesh, "", "the process groups make a mesh of %d ranks (%s)", n, im.prog.Mesh)
	}
	if world != nil {
		if n := im.prog.Mesh.Size(); world.size != 0 && world.size != n {
			ir.Fail(diag.Errorf(diag.BadMesh, "", "the group of all ranks has %d, the other process groups of the model make a mesh of %d (%s)", world.size, n, im.prog.Mesh).
				Suggest("name all axes, the major one first: --mesh %s,rest=%d", im.prog.Mesh, max(world.size/max(n, 1), 1)))
		}
		for _, a := range im.prog.Mesh.Axes {
			world.axes = append(world.axes, a.Name)
		}
		world.size = im.prog.Mesh.Size()
	}
	for _, a := range im.prog.Mesh.Axes {
		im.prog.AddSymbol(ir.RankSymbol(a.Name)).Max = a.Size - 1
	}
}

// solvedMesh has the groups as axes, with the sizes that operators tell; one that is missing follows
// from the number of all ranks.
func solvedMesh(world *processGroup, parts []*processGroup) (m ir.Mesh) {
	var unknown []*processGroup
	product := int64(1)
	for _, g := range parts {
		if g.size == 0 {
			unknown = append(unknown, g)
		} else if product *= g.size; product > mesh.MaxRanks {
			product = mesh.MaxRanks + 1
		}
	}
	if len(unknown) == 1 && world != nil && world.size > 0 && world.size%product == 0 {
		unknown[0].size, unknown = world.size/product, nil
	}
	if len(unknown) > 0 {
		failUnknown(unknown, parts)
	}
	for _, g := range parts {
		g.axes = []string{g.name()}
		m.Axes = append(m.Axes, ir.MeshAxis{Name: g.name(), Size: g.size})
	}
	return m
}

// failUnknown asks for the sizes of groups.
func failUnknown(unknown, parts []*processGroup) {
	axes := make([]string, len(parts))
	for i, g := range parts {
		axes[i] = g.name() + "=SIZE"
		if g.size > 0 {
			axes[i] = fmt.Sprintf("%s=%d", g.name(), g.size)
		}
	}
	keys := make([]string, len(unknown))
	for i, g := range unknown {
		keys[i] = strconv.Quote(g.key)
	}
	ir.Fail(diag.Errorf(diag.BadMesh, "", "no operator of the model tells how many ranks process group %s has", strings.Join(keys, ", ")).
		Suggest("give the sizes: --mesh %s", strings.Join(axes, ",")))
}

// givenMesh matches the axes of --mesh with groups: by name, or one after the other.
func givenMesh(given ir.Mesh, world *processGroup, parts []*processGroup) ir.Mesh {
	byName := !slices.ContainsFunc(parts, func(g *processGroup) bool { _, ok := given.Axis(g.name()); return !ok })
	if !byName && len(parts) != len(given.Axes) {
		names := make([]string, len(parts))
		for i, g := range parts {
			names[i] = g.name()
		}
		d := diag.Errorf(diag.BadMesh, "", "the mesh %s does not have the process groups of the model as axes: %s", given, strings.Join(names, ", "))
		if rest := len(given.Axes) - len(parts); rest > 0 {
			example := ir.Mesh{Axes: slices.Clone(given.Axes)}
			for i, name := range names {
				example.Axes[rest+i].Name = name
			}
			d.Suggest("use their names, and any for axes that no collective uses: --mesh %s, if they are the last", example)
		}
		ir.Fail(d)
	}
	for i, g := range parts {
		a := given.Axes[min(i, len(given.Axes)-1)]
		if byName {
			a, _ = given.Axis(g.name())
		}
		if g.size != 0 && g.size != a.Size {
			fail(diag.BadMesh, g.place, "process group %q has %d ranks, --mesh gives axis %s %d", g.key, g.size, a.Name, a.Size)
		}
		g.size, g.axes = a.Size, []string{a.Name}
	}
	return given
}
