package fx

import (
	"slices"
	"strings"

	"weft/ir"
)

// collectiveLibraries are the namespaces of collectives without side effects, newest first.
var collectiveLibraries = []string{"_c10d_functional.", "_c10d_functional_autograd.", "c10d_functional.", "_dtensor."}

// collectiveName is the name of a collective without namespace and overload; "" for others.
func collectiveName(target string) string {
	target = strings.TrimPrefix(target, "torch.ops.")
	for _, library := range collectiveLibraries {
		if name, ok := strings.CutPrefix(target, library); ok {
			name, _, _ = strings.Cut(name, ".")
			return name
		}
	}
	return ""
}

// collectiveForms are the collectives of one tensor. Their names are those of the newest library;
// lists of tensors ("coalesced"), changes in place and results into a given tensor are derived.
var collectiveForms = map[string]func(c *call, x ir.Value) ir.Value{
	"all_reduce": func(c *call, x ir.Value) ir.Value {
		combine, mean := c.reduceOp()
		return c.meanOf(mean, c.overRanks(ir.OpAllReduce, combine, x))
	},
	"all_gather_into_tensor": func(c *call, x ir.Value) ir.Value {
		if c.b.Rank(x) == 0 {
			x = c.b.Reshape(x, ir.Consts[int64](1))
		}
		return c.overRanks(ir.OpAllGather, ir.Sum, x)
	},
	"reduce_scatter_tensor": func(c *call, x ir.Value) ir.Value {
		combine, mean := c.reduceOp()
		return c.meanOf(mean, c.overRanks(ir.OpReduceScatter, combine, x))
	},
	"broadcast":          (*call).broadcastRank,
	"all_to_all_single":  (*call).allToAll,
	"shard_dim_alltoall": (*call).moveShard,
}

// collectiveRules are the collectives of torch.distributed._functional_collectives.
func collectiveRules() map[string]rule {
	all := map[string]rule{}
	for _, library := range collectiveLibraries {
		for name, form := range collectiveForms {
			all[library+name+".default"] = ofOne(form, false)
			all[library+name+"_.default"] = ofOne(form, true)
			all[library+name+"_out.default"] = intoGiven(form)
			all[library+name+"_coalesced.default"] = ofList(form, false)
			all[library+name+"_coalesced_.default"] = ofList(form, true)
		}
		all[library+"wait_tensor.default"] = seen(func(c *call) *tensor { return c.first() })
		all[library+"_wrap_tensor_autograd.default"] = all[library+"wait_tensor.default"]
		all[library+"wait_tensors.default"] = func(c *call) []*tensor { return c.handles(c.selfName()) }
	}
	return all
}

// first is the first argument, whose name differs between releases.
func (c *call) first() *tensor { return c.handle(c.selfName()) }

func ofOne(form func(*call, ir.Value) ir.Value, changes bool) rule {
	return func(c *call) []*tensor {
		r := newTensor(form(c, c.first().read(c.b)))
		if changes {
			return []*tensor{c.mutate(c.selfName(), []*tensor{r})}
		}
		return []*tensor{r}
	}
}

func intoGiven(form func(*call, ir.Value) ir.Value) rule {
	return func(c *call) []*tensor {
		return []*tensor{c.mutate("out", []*tensor{newTensor(form(c, c.first().read(c.b)))})}
	}
}

func ofList(form func(*call, ir.Value) ir.Value, changes bool) rule {
	return func(c *call) []*tensor {
		list := c.handles(c.selfName())
		results := make([]*tensor, len(list))
		for i, t := range list {
			if t == nil {
				c.bad("element %d is None", i)
			}
			results[i] = newTensor(form(c, t.read(c.b)))
			if changes {
				c.require(t.write(c.b, results[i].read(c.b)), "of a view whose elements share memory")
				results[i] = t
			}
		}
		return results
	}
}

// group is the process group that the node names.
func (c *call) group() *processGroup {
	for _, name := range []string{"group_name", "group_size", "tag", "ranks"} {
		c.arg(name)
	}
	key, ok := groupKey(c.node)
	at := slices.IndexFunc(c.processGroups, func(g *processGroup) bool { return g.key == key })
	if !ok || at < 0 {
		c.unsupported(" with a process group that is no name")
	}
	return c.processGroups[at]
}

// overRanks is a collective over the node's group, along dim 0.
func (c *call) overRanks(kind ir.Kind, combine ir.Combine, x ir.Value) ir.Value {
	g := c.group()
	return c.b.Op(kind, &ir.CollectiveAttrs{Combine: combine, Axes: g.axes, Size: g.size}, nil, x)[0]
}

// reduceOps are torch's names of reductions.
var reduceOps = map[string]ir.Combine{"sum": ir.Sum, "avg": ir.Sum, "product": ir.Mul, "max": ir.Max, "min": ir.Min, "band": ir.And, "bor": ir.Or, "bxor": ir.Xor}

// reduceOp is how ranks are combined; mean when the sum is to be divided by their number.
func (c *call) reduceOp() (combine ir.Combine, mean bool) {
	name := "reduce_op"
	if c.has("reduceOp") {
		name = "reduceOp"
	}
	text := strings.ToLower(c.string(name, "sum"))
	combine, ok := reduceOps[text]
	if !ok {
		c.unsupported(" with the reduction " + text)
	}
	return combine, text == "avg"
}

func (c *call) meanOf(mean bool, sum ir.Value) ir.Value {
	if !mean {
		return sum
	}
	return c.b.Binary(ir.OpDivide, sum, c.b.FullLike(sum, float64(c.group().size)))
}

// position is the place of the rank in a group: an expression over its coordinates.
func (c *call) position(g *processGroup) ir.Dim {
	at := ir.Const(0)
	for _, name := range g.axes {
		a, _ := c.prog.Mesh.Axis(name)
		at = at.MulConst(a.Size).Add(ir.Sym(ir.RankSymbol(name)))
	}
	return at
}

// broadcastRank gives all ranks the tensor of one: the bits of the others are cleared, and those of
// all are joined.
func (c *call) broadcastRank(x ir.Value) ir.Value {
	g, src := c.group(), c.int("src", 0)
	if src < 0 || src >= g.size {
		c.bad("rank %d of a group of %d", src, g.size)
	}
	t := c.b.DType(x)
	bits, ok := map[int]ir.DType{8: ir.U8, 16: ir.I16, 32: ir.I32, 64: ir.I64}[t.Bits()]
	whole := t == ir.Bool || t.IsInteger()
	c.require(whole || ok && t.IsFloat(), "of "+t.String())
	if !whole {
		x = bitcastView{bits}.apply(c.b, x)
	}
	own := c.b.Compare(ir.EQ, c.b.Dim(c.position(g)), c.b.Constant(ir.ScalarInt(ir.I64, src)))
	own = c.b.Broadcast(own, c.b.Shape(x), nil)
	x = c.overRanks(ir.OpAllReduce, ir.Or, c.b.Select(own, x, c.b.FullLike(x, 0)))
	if !whole {
		x = bitcastView{t}.apply(c.b, x)
	}
	return x
}

// allToAll sends equal shares. Others differ between ranks, and a graph has those of one.
func (c *call) allToAll(x ir.Value) ir.Value {
	for _, name := range []string{"input_split_sizes", "output_split_sizes"} {
		shares, _ := c.dims(name)
		for _, d := range shares {
			c.require(d.Equal(shares[0]), "with shares of different sizes, which are those of one rank")
		}
	}
	return c.overRanks(ir.OpAllToAll, ir.Sum, x)
}

// moveShard makes a tensor that is divided along one dim one that is divided along another.
func (c *call) moveShard(x ir.Value) ir.Value {
	g := c.group()
	shape := c.b.Shape(x)
	gather, shard := c.axis("gather_dim", 0, len(shape)), c.axis("shard_dim", 0, len(shape))
	c.require(len(shape) > 0 && gather != shard, "along one dim")
	share, ok := shape[shard].DivExact(ir.Const(g.size))
	c.require(ok, "of a size that is not seen to be a multiple of the ranks")
	split := slices.Clone(shape) // [..., ranks, share, ...]
	split[shard] = share
	split = slices.Insert(split, shard, ir.Const(g.size))
	x = c.b.Transpose(c.b.Reshape(x, split), moved(len(split), shard, 0))
	x = c.overRanks(ir.OpAllToAll, ir.Sum, x) // [ranks, ...]
	x = c.b.Transpose(x, moved(len(split), 0, gather))
	merged := slices.Clone(shape)
	merged[shard], merged[gather] = share, shape[gather].MulConst(g.size)
	return c.b.Reshape(x, merged)
}

// moved is the permutation that takes a dim to another place.
func moved(rank, from, to int) []int {
	p := slices.Delete(identity(rank), from, from+1)
	return slices.Insert(p, to, from)
}
