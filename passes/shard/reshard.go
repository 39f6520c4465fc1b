package shard

import (
	"math"
	"slices"

	"weft/ir"
)

// first is the index of a rank's first element along a part.
func (pt *partitioner) first(p ir.Part) ir.Dim { return pt.position(p.Axes).Mul(p.Local(pt.mesh)) }

// position is a rank's place along axes together.
func (pt *partitioner) position(axes []string) ir.Dim {
	at := ir.Const(0)
	for _, name := range axes {
		a, _ := pt.mesh.Axis(name)
		at = at.MulConst(a.Size).Add(ir.Sym(ir.RankSymbol(name)))
	}
	return at
}

// need gives a value in a division, with sums taken. What was made once is used again.
func (w *rewriter) need(v ir.Value, s ir.Sharding) placed {
	k := key(v, s)
	if p, ok := w.needed[k]; ok {
		return p
	}
	p := w.now[v]
	if len(p.partial) > 0 {
		p = w.reduce(p, w.of(v))
		w.now[v] = p
	}
	if op := w.def[v]; op != nil && !p.shard.Equal(s) {
		if again, ok := w.again(op, s); ok {
			w.needed[k] = again
			return again
		}
	}
	p = w.reshard(p, s)
	w.needed[k] = p
	return p
}

// manySlices is how many slices of a value make it cheaper to bring the value to another division than each slice.
const manySlices = 5

// oneOfMany tells whether an operation is one of many slices of a value, transposed or not, as a convolution of each
// channel alone has in a backward.
func (w *rewriter) oneOfMany(op *ir.Op) bool {
	for op != nil && op.Kind == ir.OpTranspose {
		op = w.def[op.Operands[0]]
	}
	if op == nil || op.Kind != ir.OpSlice {
		return false
	}
	count := 0
	for _, user := range w.users[op.Operands[0]] {
		if user.Kind == ir.OpSlice {
			count++
		}
	}
	return count >= manySlices
}

// again makes a value that costs nothing anew in another division instead of moving it: one that
// broadcasts, one of many slices, or one that no input or state decides about.
func (w *rewriter) again(op *ir.Op, s ir.Sharding) (placed, bool) {
	cheap := op.Kind == ir.OpBroadcastInDim || op.Kind == ir.OpConvert && w.def[op.Operands[0]] != nil && w.def[op.Operands[0]].Kind == ir.OpBroadcastInDim
	cheap = cheap || w.oneOfMany(op)
	if !cheap && !w.isKnown(op) {
		return placed{}, false
	}
	if op.Kind == ir.OpIota {
		return w.iotaOf(op, s)
	}
	if m, ok := moves[op.Kind]; ok {
		needs, fits := m.operands(w.partitioner, w.e, op, s)
		if !fits.Equal(s) {
			return placed{}, false
		}
		var operands []placed
		for i, v := range op.Operands {
			operands = append(operands, w.need(v, needs[i]))
		}
		return placed{value: w.emit(op, operands, []ir.Sharding{s})[0], shard: s}, true
	}
	r := ruleOf(w.e, op)
	if r == nil {
		return placed{}, false
	}
	parts := make([][]ir.Part, r.factors)
	for d, f := range r.results[0] {
		if f >= 0 {
			parts[f] = s[d]
		} else if divided(s[d]) {
			return placed{}, false
		}
	}
	var operands []placed
	for i, v := range op.Operands {
		operands = append(operands, w.need(v, shardingOf(shapeOf(w.e, v), r.operands[i], parts)))
	}
	return placed{value: w.emit(op, operands, []ir.Sharding{s})[0], shard: s}, true
}

// collective appends a collective over axes.
func (w *rewriter) collective(kind ir.Kind, combine ir.Combine, axes []string, v ir.Value) ir.Value {
	w.channels++
	w.report.add(Collective{Kind: kind.String(), Axes: axes, Loc: w.b.Loc, Why: w.why, Channel: w.channels, Type: w.b.Type(v), Entry: w.e.Name})
	return w.b.Op(kind, &ir.CollectiveAttrs{Combine: combine, Axes: slices.Clone(axes), Size: w.mesh.Extent(axes), Channel: w.channels}, nil, v)[0]
}

// reduce takes a sum over ranks. Where the result is to be divided over some of these ranks, each
// keeps its share.
func (w *rewriter) reduce(p placed, want ir.Sharding) placed {
	left := slices.Clone(p.partial)
	for d, parts := range want {
		for i, part := range parts {
			share := slices.DeleteFunc(slices.Clone(part.Axes), func(axis string) bool { return !slices.Contains(left, axis) })
			if len(share) == 0 || !slices.Equal(share, part.Axes) || !w.alike(p.shard[d], parts, i) {
				continue
			}
			p = w.reduceScatter(p, d, i, parts, share)
			left = slices.DeleteFunc(left, func(axis string) bool { return slices.Contains(share, axis) })
		}
	}
	if len(left) > 0 {
		p.value = w.collective(ir.OpAllReduce, ir.Sum, left, p.value)
	}
	p.partial = nil
	return p
}

// alike tells whether a dim is divided as wanted but for part i, which is whole.
func (w *rewriter) alike(have, want []ir.Part, i int) bool {
	without := slices.Clone(want)
	without[i] = ir.Part{Size: want[i].Size}
	have, without = w.normal(have), w.normal(without)
	return ir.Sharding{have}.Equal(ir.Sharding{without})
}

// reduceScatter sums part i of dim d, to be divided over axes, and keeps the rank's share.
func (w *rewriter) reduceScatter(p placed, d, i int, want []ir.Part, axes []string) placed {
	v := w.collective(ir.OpReduceScatter, ir.Sum, axes, w.shares(p, d, i, want, axes))
	s := slices.Clone(p.shard)
	s[d] = want
	return placed{value: w.b.Reshape(v, s.Local(w.mesh)), shard: s, partial: p.partial, zeros: w.sharedAsZeros(p)}
}

// sharedAsZeros tells whether shares of a value, which are padded by zeros, have no other padding: of a dim that
// ranks have unequally already.
func (w *rewriter) sharedAsZeros(p placed) bool {
	return p.zeros || !slices.ContainsFunc(slices.Concat(p.shard...), func(q ir.Part) bool { return len(q.Axes) > 0 && !w.even(q) })
}

// shares cuts part i of dim d into what each rank along axes is to have: [k, .., share, ..].
func (w *rewriter) shares(p placed, d, i int, want []ir.Part, axes []string) ir.Value {
	k := w.mesh.Extent(axes)
	share := want[i].Local(w.mesh)
	split, at := w.split(p.shard, d, want, i)
	v := w.b.Reshape(p.value, w.localSizes(split))
	v = w.padTo(v, at, share.MulConst(k))
	// [.., k*share, ..] to [k, .., share, ..]
	shape := slices.Clone(w.b.Shape(v))
	shape[at] = share
	v = w.b.Reshape(v, slices.Concat(shape[:at], []ir.Dim{ir.Const(k), share}, shape[at+1:]))
	return w.b.Transpose(v, toFront(len(shape)+1, at))
}

// toFront is the permutation that moves dim at to the front.
func toFront(n, at int) []int {
	perm := []int{at}
	for i := range n {
		if i != at {
			perm = append(perm, i)
		}
	}
	return perm
}

// split lists the parts of all dims, of dim d as in want, and the index of its part i.
func (w *rewriter) split(s ir.Sharding, d int, want []ir.Part, i int) (parts []ir.Part, at int) {
	for j := range s {
		if j != d {
			parts = append(parts, s[j]...)
			continue
		}
		at = len(parts) + i
		for n, p := range want {
			if n == i {
				p.Axes = nil
			}
			parts = append(parts, p)
		}
	}
	return parts, at
}

func (w *rewriter) localSizes(parts []ir.Part) []ir.Dim {
	sizes := make([]ir.Dim, len(parts))
	for i, p := range parts {
		sizes[i] = p.Local(w.mesh)
	}
	return sizes
}

// padTo adds zeros at the end of a dim up to a size.
func (w *rewriter) padTo(v ir.Value, d int, size ir.Dim) ir.Value {
	shape := w.b.Shape(v)
	if shape[d].Equal(size) {
		return v
	}
	low, high := make([]ir.Dim, len(shape)), make([]ir.Dim, len(shape))
	for i := range low {
		low[i], high[i] = ir.Const(0), ir.Const(0)
	}
	high[d] = size.Sub(shape[d])
	return w.b.Pad(v, w.zero(w.b.DType(v)), low, high, nil)
}

func (w *rewriter) zero(t ir.DType) ir.Value {
	return w.b.Constant(ir.NewTensor(t))
}

// reshard brings a value from one division into another: axes that must go are gathered, axes
// that must come are sliced, and an axis that moves from one dim to another is exchanged.
func (w *rewriter) reshard(p placed, to ir.Sharding) placed {
	if p.shard.Equal(to) {
		return p
	}
	for d := range to {
		if ir.Sharding(p.shard[d : d+1]).Equal(to[d : d+1]) {
			continue
		}
		for i := 0; i < len(p.shard[d]); i++ {
			if !w.keeps(p.shard[d], i, to[d]) {
				if q, moved := w.exchange(p, d, i, to); moved {
					p, i = q, -1
				} else {
					p, i = w.gather(p, d, i), -1
				}
			}
		}
	}
	for d := range to {
		for i, part := range to[d] {
			if len(part.Axes) > 0 && !w.has(p.shard[d], to[d], i) {
				p = w.slice(p, d, i, to[d])
			}
		}
	}
	return p
}

// keeps tells whether part i of a dim stays as it is in another division of the dim.
func (w *rewriter) keeps(have []ir.Part, i int, want []ir.Part) bool {
	return len(have[i].Axes) == 0 || w.same(have, i, want) >= 0
}

// same finds the part of another division that part i is: the same axes on the same stretch of
// elements, where it is divided evenly or the elements are the same one by one; -1 for none.
func (w *rewriter) same(have []ir.Part, i int, want []ir.Part) int {
	minor := sizeOf(have[i+1:])
	for j, q := range want {
		if !slices.Equal(q.Axes, have[i].Axes) {
			continue
		}
		inner := sizeOf(want[j+1:])
		if q.Size.Equal(have[i].Size) && inner.Equal(minor) ||
			q.Size.Mul(inner).Equal(have[i].Size.Mul(minor)) && w.even(q) && w.even(have[i]) {
			return j
		}
	}
	return -1
}

// has tells whether part j of a division is there already.
func (w *rewriter) has(have, want []ir.Part, j int) bool {
	for i := range have {
		if len(have[i].Axes) > 0 && w.same(have, i, want) == j {
			return true
		}
	}
	return false
}

// gather makes part i of dim d whole.
func (w *rewriter) gather(p placed, d, i int) placed {
	part := p.shard[d][i]
	g := w.collective(ir.OpAllGather, ir.Sum, part.Axes, p.value)
	sizes, at := w.flatSizes(p.shard, d, i)
	return w.ungather(p, d, i, g, w.mesh.Extent(part.Axes), part.Local(w.mesh), sizes, at)
}

// flatSizes lists the sizes on a rank of the parts of all dims, and the index of part i of dim d.
func (w *rewriter) flatSizes(s ir.Sharding, d, i int) (sizes []ir.Dim, at int) {
	for j, parts := range s {
		if j == d {
			at = len(sizes) + i
		}
		sizes = append(sizes, w.localSizes(parts)...)
	}
	return sizes, at
}

// ungather puts the shares of k ranks, one after the other in g, side by side along a part.
func (w *rewriter) ungather(p placed, d, i int, g ir.Value, k int64, share ir.Dim, sizes []ir.Dim, at int) placed {
	part := p.shard[d][i]
	v := w.b.Reshape(g, append([]ir.Dim{ir.Const(k)}, sizes...))
	perm := []int{}
	for j := range sizes {
		if j == at {
			perm = append(perm, 0)
		}
		perm = append(perm, j+1)
	}
	v = w.b.Transpose(v, perm)
	sizes = slices.Clone(sizes)
	sizes[at] = share.MulConst(k)
	v = w.b.Reshape(v, sizes)
	if !sizes[at].Equal(part.Size) {
		v = w.b.SliceAxis(v, at, ir.Const(0), part.Size, 1)
	}
	s := slices.Clone(p.shard)
	s[d] = slices.Clone(s[d])
	s[d][i] = ir.Part{Size: part.Size}
	s[d] = w.normal(s[d])
	return placed{value: w.b.Reshape(v, s.Local(w.mesh)), shard: s, partial: p.partial}
}

// slice keeps the rank's share of part i of a dim that is to be divided like want.
func (w *rewriter) slice(p placed, d, i int, want []ir.Part) placed {
	have := slices.Clone(want) // what the dim is now, cut like want
	for j := range want {
		if j >= i && !w.has(p.shard[d], want, j) {
			have[j].Axes = nil
		}
	}
	cut := slices.Clone(p.shard)
	cut[d] = have
	parts, at := w.split(cut, d, have, i)
	v := w.b.Reshape(p.value, w.localSizes(parts))
	share, k := want[i].Local(w.mesh), w.mesh.Extent(want[i].Axes)
	v = w.padTo(v, at, share.MulConst(k))
	first := w.first(want[i])
	v = w.b.SliceAxis(v, at, first, first.Add(share), 1)
	have = slices.Clone(have)
	have[i].Axes = want[i].Axes
	s := slices.Clone(p.shard)
	s[d] = w.normal(have)
	return placed{value: w.b.Reshape(v, s.Local(w.mesh)), shard: s, partial: p.partial, zeros: p.zeros}
}

// exchange moves axes from part i of dim d to another dim that is to be divided over them, by one
// all_to_all, where both divide evenly.
func (w *rewriter) exchange(p placed, d, i int, to ir.Sharding) (placed, bool) {
	part := p.shard[d][i]
	for e := range to {
		if e == d || divided(p.shard[e]) || len(to[e]) != 1 || !slices.Equal(to[e][0].Axes, part.Axes) {
			continue
		}
		target := to[e][0]
		if !w.even(part) || !w.even(target) {
			continue
		}
		k, share := w.mesh.Extent(part.Axes), target.Local(w.mesh)
		var sizes []ir.Dim
		from, cut := 0, 0
		for j, parts := range p.shard {
			if j == d {
				from = len(sizes) + i
			}
			if j == e {
				cut = len(sizes)
				sizes = append(sizes, target.Size)
				continue
			}
			sizes = append(sizes, w.localSizes(parts)...)
		}
		// [.., target, ..] to [k, .., share, ..]: what each rank gets.
		v := w.b.Reshape(p.value, slices.Concat(sizes[:cut], []ir.Dim{ir.Const(k), share}, sizes[cut+1:]))
		v = w.b.Transpose(v, toFront(len(sizes)+1, cut))
		v = w.collective(ir.OpAllToAll, ir.Sum, part.Axes, v)
		sizes[cut] = share
		s := slices.Clone(p.shard)
		s[e] = to[e]
		q := placed{shard: s, partial: p.partial}
		return w.ungather(q, d, i, v, k, part.Local(w.mesh), sizes, from), true
	}
	return p, false
}

// maskVanishing makes the padding of factors that are combined neutral in the operands.
func (w *rewriter) maskVanishing(op *ir.Op, r *rule, parts [][]ir.Part, vanishing []bool, operands []placed) {
	for i := range operands {
		if op.Kind == ir.OpScatter && i == 0 {
			w.onlyFirst(&operands[0], r, parts, vanishing)
			continue
		}
		if operands[i].zeros && r.combine == ir.Sum || op.Kind == ir.OpScatter && i == 1 {
			continue
		}
		for d, f := range r.operands[i] {
			if f >= 0 && vanishing[f] && divided(parts[f]) {
				operands[i].value = w.mask(operands[i], d, identity(r.combine, w.b.DType(operands[i].value)))
			}
		}
	}
}

// onlyFirst keeps the operand of a scatter of divided updates on one rank: it counts once.
func (w *rewriter) onlyFirst(p *placed, r *rule, parts [][]ir.Part, vanishing []bool) {
	var axes []string
	for f := range vanishing {
		if vanishing[f] {
			axes = append(axes, axesOf(parts[f])...)
		}
	}
	v := p.value
	at := w.b.Dim(w.position(axes))
	here := w.b.Compare(ir.EQ, at, w.b.Constant(ir.ScalarInt(ir.I64, 0)))
	zero := w.b.Broadcast(w.zero(w.b.DType(v)), w.b.Shape(v), nil)
	p.value = w.b.Select(w.b.Broadcast(here, w.b.Shape(v), nil), v, zero)
}

// mask replaces the padding along a dim.
func (w *rewriter) mask(p placed, d int, with *ir.Tensor) ir.Value {
	v := p.value
	for i, part := range p.shard[d] {
		if len(part.Axes) == 0 || w.even(part) {
			continue
		}
		sizes, at := w.flatSizes(p.shard, d, i)
		shape := w.b.Shape(v)
		x := w.b.Reshape(v, sizes)
		count := w.b.Broadcast(w.b.Dim(part.Size.Sub(w.first(part))), sizes, nil)
		counts := w.b.Compare(ir.LT, w.b.Iota(ir.I64, sizes, at), count)
		x = w.b.Select(counts, x, w.b.Broadcast(w.b.Constant(with), sizes, nil))
		v = w.b.Reshape(x, shape)
	}
	return v
}

// identity is the scalar that combining leaves unchanged.
func identity(c ir.Combine, t ir.DType) *ir.Tensor {
	x := ir.NewTensor(t)
	one := func(v float64) {
		if t.IsFloat() {
			x.SetFloat(0, v)
		} else {
			x.SetInt(0, int64(v))
		}
	}
	switch c {
	case ir.Mul:
		one(1)
	case ir.Max, ir.Min:
		extreme(x, c == ir.Min)
	case ir.And:
		if t == ir.Bool {
			x.SetInt(0, 1)
		} else {
			x.SetInt(0, -1)
		}
	}
	return x
}

// extreme sets a scalar to the largest value of its type, or to the smallest.
func extreme(x *ir.Tensor, largest bool) {
	switch t := x.DType; {
	case t.IsFloat() && t.HasInfinity():
		x.SetFloat(0, math.Inf(map[bool]int{true: 1, false: -1}[largest]))
	case t.IsFloat() && largest:
		x.SetFloat(0, t.MaxFinite())
	case t.IsFloat():
		x.SetFloat(0, -t.MaxFinite())
	case t == ir.Bool:
		x.SetInt(0, map[bool]int64{true: 1, false: 0}[largest])
	case !t.IsSigned():
		x.SetInt(0, map[bool]int64{true: -1, false: 0}[largest])
	default:
		top := int64(1)<<(t.Bits()-1) - 1
		x.SetInt(0, map[bool]int64{true: top, false: -top - 1}[largest])
	}
}
