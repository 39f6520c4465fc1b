package ir

import "slices"

// mesh checks rule V14 for the mesh itself.
func (v *verifier) mesh() {
	v.names("", "a mesh axis", func(yield func(string)) {
		for _, a := range v.p.Mesh.Axes {
			yield(a.Name)
		}
	})
	for _, a := range v.p.Mesh.Axes {
		s := v.p.Symbol(RankSymbol(a.Name))
		if a.Size < 1 {
			v.fail("", "V14", "mesh axis %q has size %d", a.Name, a.Size)
		} else if s == nil || s.Min != 0 || s.Max != a.Size-1 {
			v.fail("", "V14", "the coordinate on mesh axis %q is not declared as dim %q in 0..%d", a.Name, RankSymbol(a.Name), a.Size-1)
		}
	}
}

// shard checks rule V14 for a tensor that is divided.
func (v *verifier) shard(place string, s Sharding, t Type) {
	if s == nil {
		return
	}
	for _, parts := range s {
		for _, p := range parts {
			v.dim(place, p.Size)
		}
	}
	axes := s.Axes()
	for i, name := range axes {
		if _, ok := v.p.Mesh.Axis(name); !ok || slices.Contains(axes[:i], name) {
			v.fail(place, "V14", "axis %q is not in the mesh or divides the tensor twice", name)
		}
	}
	if t.Kind != TensorKind || !slices.EqualFunc(s.Local(v.p.Mesh), t.Shape, Dim.Equal) {
		v.fail(place, "V14", "each rank has %s of %s, not %s", DimList(s.Local(v.p.Mesh)), s, t)
	}
}

// pairs checks rule V17 for the collectives of a block.
func (v *verifier) pairs(b *Block) {
	started, ended := map[Value]*Op{}, map[Value]bool{}
	for _, op := range b.Ops {
		if a, ok := op.Attrs.(*CollectiveAttrs); ok && a.Async {
			started[op.Results[0]] = op
		}
		for _, x := range op.Operands {
			start := started[x]
			switch {
			case op.Kind == OpCollectiveDone && x == op.Operands[0] && (start == nil || ended[x] || start.Operands[0] != op.Operands[1]):
				v.opFail(op, "V17", "it ends no asynchronous collective of the block, or one a second time, or not with its operand")
			case op.Kind == OpCollectiveDone && x == op.Operands[0]:
				ended[x] = true
			case start != nil:
				v.opFail(op, "V17", "%s is used before a collective_done gives it", v.name(x))
			}
		}
	}
	for x, op := range started {
		if !ended[x] {
			v.opFail(op, "V17", "no collective_done of the block ends it")
			return // one is enough: the order of a map is not the program's
		}
	}
}

// collective checks rule V15.
func (v *verifier) collective(op *Op) {
	a, ok := op.Attrs.(*CollectiveAttrs)
	if !ok {
		return
	}
	for _, name := range a.Axes {
		if _, ok := v.p.Mesh.Axis(name); !ok {
			v.opFail(op, "V15", "there is no mesh axis %q", name)
			return
		}
	}
	if n := v.p.Mesh.Extent(a.Axes); n != a.Size {
		v.opFail(op, "V15", "the group has %d ranks, along its axes there are %d", a.Size, n)
	}
}
