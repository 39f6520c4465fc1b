package shard

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"weft/ir"
)

// Parameters that are stored divided are made whole by block: all those of a layer before its first
// operation, and again where the layer is used once more after others, as in a backward. A block's whole
// parameters live while it runs.

// gathers lists, by the operation before which they are needed, the parameters to make whole.
type gathers map[int][]ir.Value

// use is an operation that uses a parameter of a block.
type use struct {
	op    int
	param ir.Value
}

// planGathers finds the uses of divided parameters and cuts those of each block where other
// layers come between.
func (w *rewriter) planGathers() gathers {
	uses := map[string][]use{}
	var names []string
	var numbered []int // operations that use parameters of numbered blocks, ascending, with their blocks
	blockAt := map[int]string{}
	index := map[ir.Value]int{}
	for i, v := range w.e.Body.Params {
		if in := w.e.Inputs[i]; in.State != "" && !w.stored[in.State].Equal(w.of(v)) {
			index[v] = i
		}
	}
	for n, op := range w.e.Body.Ops {
		if w.castOfStored(op) {
			index[op.Results[0]] = index[op.Operands[0]]
			continue
		}
		(&ir.Block{Ops: []*ir.Op{op}}).Uses(func(v *ir.Value) {
			i, ok := index[*v]
			if !ok {
				return
			}
			block, isLayer := w.blockAt(op, w.e.Inputs[i].State)
			if uses[block] == nil {
				names = append(names, block)
			}
			uses[block] = append(uses[block], use{n, *v})
			if isLayer {
				numbered = append(numbered, n)
				blockAt[n] = block
			}
		})
	}
	g := gathers{}
	for _, block := range names {
		list := uses[block]
		start := 0
		for i := 1; i <= len(list); i++ {
			if i < len(list) && !w.otherBetween(numbered, blockAt, block, list[i-1].op, list[i].op) {
				continue
			}
			for _, u := range list[start:i] {
				if at := list[start].op; !slices.Contains(g[at], u.param) {
					g[at] = append(g[at], u.param)
				}
			}
			start = i
		}
	}
	return g
}

// castOfStored tells whether an operation makes a parameter narrower that is stored divided: that is done
// to what is stored, so that less is gathered.
func (w *rewriter) castOfStored(op *ir.Op) bool {
	if op.Kind != ir.OpConvert || w.e.Type(op.Results[0]).DType.Bits() >= w.e.Type(op.Operands[0]).DType.Bits() {
		return false
	}
	i := slices.Index(w.e.Body.Params, op.Operands[0])
	return i >= 0 && w.e.Inputs[i].State != "" && !w.stored[w.e.Inputs[i].State].Equal(w.of(op.Operands[0]))
}

// castStored emits such an operation.
func (w *rewriter) castStored(op *ir.Op) {
	p := w.now[op.Operands[0]]
	p.value = w.emit(op, []placed{p}, []ir.Sharding{p.shard})[0]
	w.now[op.Results[0]] = p
}

// otherBetween tells whether another layer is used between two operations.
func (w *rewriter) otherBetween(numbered []int, blockAt map[int]string, block string, from, to int) bool {
	i, _ := slices.BinarySearch(numbered, from+1)
	for ; i < len(numbered) && numbered[i] < to; i++ {
		if blockAt[numbered[i]] != block {
			return true
		}
	}
	return false
}

// layerOf finds the layer in the place of an operation, for parameters whose names the exporter did not keep:
// "node_MatMul_83 in model.layers.0.mlp (...)", "/model/layers.0/mlp/MatMul".
var layerOf = regexp.MustCompile(`([A-Za-z_][A-Za-z0-9_./]*?[./][0-9]+)[./]`)

// blockAt is the block of a parameter where an operation uses it. Outside of numbered layers small parameters of
// a module travel together, large ones alone.
func (w *rewriter) blockAt(op *ir.Op, name string) (block string, numbered bool) {
	stored := ir.TensorOf(w.program.State(name).Type.DType, w.stored[name].Local(w.mesh)...)
	if block, numbered = blockOf(name); numbered {
		return block, true
	}
	if layer := layerOf.FindStringSubmatch(op.Loc); layer != nil {
		return strings.ReplaceAll(layer[1], "/", "."), true // as names have it, which some parameters keep
	}
	if strings.Contains(name, "::") && strings.HasPrefix(op.Loc, "/") { // made up by the exporter: "onnx::Conv_12"
		name = strings.ReplaceAll(op.Loc[1:], "/", ".")
	}
	if bytes, ok := stored.Bytes().IsConst(); ok && bytes <= smallBytes {
		return moduleOf(name), false
	}
	return name, false
}

// moduleOf is the module that has the one that a parameter belongs to, as the block of a network has a convolution;
// at the top the parameter's own.
func moduleOf(name string) string {
	parts := strings.Split(name, ".")
	if n := len(parts); n > 1 {
		parts = parts[:max(1, n-2)]
	}
	return strings.Join(parts, ".")
}

// blockOf is the layer that a parameter belongs to: its name up to the first number. A parameter
// outside of numbered layers has none.
func blockOf(name string) (block string, numbered bool) {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if part != "" && strings.Trim(part, "0123456789") == "" && i+1 < len(parts) {
			return strings.Join(parts[:i+1], "."), true
		}
	}
	return name, false
}

// smallBytes is the size on one rank below which parameters of a block travel together.
const smallBytes = 256 << 10

// gatherBlocks makes the parameters whole that are needed from an operation on.
func (w *rewriter) gatherBlocks(g gathers, op int) {
	list := g[op]
	if len(list) == 0 {
		return
	}
	w.why = "parameters of a block"
	small := map[string][]ir.Value{}
	var order []string
	for _, v := range list {
		delete(w.needed, key(v, w.of(v))) // an earlier block's copy is gone
		p := w.now[v]
		d, i, alone := w.storedPart(p.shard, w.of(v))
		bytes, constant := w.b.Type(p.value).Bytes().IsConst()
		if !alone || !constant || bytes > smallBytes {
			w.need(v, w.of(v))
			continue
		}
		k := w.b.DType(p.value).String() + " " + strings.Join(p.shard[d][i].Axes, " ")
		if small[k] == nil {
			order = append(order, k)
		}
		small[k] = append(small[k], v)
	}
	for _, k := range order {
		w.gatherTogether(small[k])
	}
}

// storedPart finds the only part that storage divides and computation does not.
func (w *rewriter) storedPart(stored, computed ir.Sharding) (d, i int, alone bool) {
	count := 0
	for j := range stored {
		if (stored[j : j+1]).Equal(computed[j : j+1]) {
			continue
		}
		for n := range stored[j] {
			if len(stored[j][n].Axes) > 0 && !w.keeps(stored[j], n, computed[j]) {
				d, i = j, n
				count++
			}
		}
	}
	return d, i, count == 1
}

// gatherTogether gathers several small tensors as one.
func (w *rewriter) gatherTogether(list []ir.Value) {
	if len(list) == 1 {
		w.need(list[0], w.of(list[0]))
		return
	}
	var flat []ir.Value
	for _, v := range list {
		x := w.now[v].value
		flat = append(flat, w.b.Reshape(x, []ir.Dim{w.b.Type(x).Numel()}))
	}
	d0, i0, _ := w.storedPart(w.now[list[0]].shard, w.of(list[0]))
	part := w.now[list[0]].shard[d0][i0]
	k := w.mesh.Extent(part.Axes)
	all := w.b.Concatenate(0, flat...)
	size := w.b.Shape(all)[0]
	g := w.b.Reshape(w.collective(ir.OpAllGather, ir.Sum, part.Axes, all), []ir.Dim{ir.Const(k), size})
	offset := ir.Const(0)
	for n, v := range list {
		end := offset.Add(w.b.Shape(flat[n])[0])
		p := w.now[v]
		d, i, _ := w.storedPart(p.shard, w.of(v))
		sizes, at := w.flatSizes(p.shard, d, i)
		q := w.ungather(p, d, i, w.b.SliceAxis(g, 1, offset, end, 1), k, p.shard[d][i].Local(w.mesh), sizes, at)
		w.needed[key(v, w.of(v))] = w.reshard(q, w.of(v))
		offset = end
	}
}

// bucketBytes is how much of gradients is summed by one collective.
const bucketBytes = 25 << 20

// bucket collects outputs that are sums over ranks until there are enough for one collective.
type bucket struct {
	key     string // type, axes that are summed over, and those that divide the results
	axes    []string
	outputs []ir.Value
	bytes   int64
}

// reduceOutput takes the sum of an output, where it is one, when it was made: in a bucket with others of
// its type that are to be whole, or divided over the same axes. Large shares travel alone, which saves
// the copies that joining takes.
func (w *rewriter) reduceOutput(v ir.Value) {
	p := w.now[v]
	if len(p.partial) == 0 || len(w.users[v]) > 0 {
		return
	}
	w.why = "gradient"
	size, constant := w.b.Type(p.value).Bytes().IsConst()
	var axes []string
	if w.wantsAny(v, p.partial) {
		d, i, ok := w.shareOf(v)
		if !ok || size > smallBytes*w.mesh.Extent(w.of(v)[d][i].Axes) {
			w.need(v, w.of(v))
			return
		}
		axes = w.of(v)[d][i].Axes
	} else if !p.shard.Equal(w.of(v)) {
		constant = false
	}
	if !constant {
		w.need(v, w.of(v))
		return
	}
	b := w.bucket(fmt.Sprint(w.b.DType(p.value), p.partial, axes))
	b.axes = axes
	b.outputs = append(b.outputs, v)
	if b.bytes += size; b.bytes >= bucketBytes {
		w.flush(b)
	}
}

// shareOf finds the one part of a sum by whose axes the result is divided; all else must be as it is.
func (w *rewriter) shareOf(v ir.Value) (d, i int, ok bool) {
	p, want := w.now[v], w.of(v)
	count := 0
	for e := range want {
		if p.shard[e : e+1].Equal(want[e : e+1]) {
			continue
		}
		for j, part := range want[e] {
			if len(part.Axes) > 0 && !slices.ContainsFunc(part.Axes, func(axis string) bool { return !slices.Contains(p.partial, axis) }) && w.alike(p.shard[e], want[e], j) {
				d, i, ok = e, j, true
			}
		}
		count++
	}
	return d, i, ok && count == 1
}

// bucket gives the open bucket with a key.
func (w *rewriter) bucket(key string) *bucket {
	for _, b := range w.open {
		if b.key == key {
			return b
		}
	}
	w.open = append(w.open, &bucket{key: key})
	return w.open[len(w.open)-1]
}

// flushAll sums what is in the buckets.
func (w *rewriter) flushAll() {
	for _, b := range w.open {
		w.flush(b)
	}
}

// flush sums what is in a bucket, and empties it.
func (w *rewriter) flush(b *bucket) {
	list := b.outputs
	b.outputs, b.bytes = nil, 0
	if len(list) == 0 {
		return
	}
	w.why = "gradients, in a bucket"
	if len(list) == 1 {
		w.need(list[0], w.of(list[0]))
		return
	}
	k := w.mesh.Extent(b.axes)
	flat := make([]ir.Value, len(list)) // [k, elements]: what each rank keeps
	for n, v := range list {
		x := w.now[v].value
		if len(b.axes) > 0 {
			d, i, _ := w.shareOf(v)
			x = w.shares(w.now[v], d, i, w.of(v)[d], b.axes)
		}
		size, ok := w.b.Type(x).Numel().DivExact(ir.Const(k))
		if !ok {
			panic("BUG: shares of ranks differ")
		}
		flat[n] = w.b.Reshape(x, []ir.Dim{ir.Const(k), size})
	}
	all := w.b.Concatenate(1, flat...)
	if len(b.axes) > 0 {
		all = w.collective(ir.OpReduceScatter, ir.Sum, b.axes, all)
	}
	left := slices.DeleteFunc(slices.Clone(w.now[list[0]].partial), func(axis string) bool { return slices.Contains(b.axes, axis) })
	if len(left) > 0 {
		all = w.collective(ir.OpAllReduce, ir.Sum, left, all)
	}
	offset := ir.Const(0)
	for n, v := range list {
		end := offset.Add(w.b.Shape(flat[n])[1])
		s := w.of(v)
		value := w.b.Reshape(w.b.SliceAxis(all, 1, offset, end, 1), s.Local(w.mesh))
		w.now[v] = placed{value: value, shard: s, zeros: len(b.axes) > 0 && w.sharedAsZeros(w.now[v])}
		offset = end
	}
}
