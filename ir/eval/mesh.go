package eval

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
)

// runMesh evaluates an entry of a program for a mesh on all its ranks.
func runMesh(p *ir.Program, entry string, inputs []*ir.Tensor, state func(name string) (*ir.Tensor, error), observe Observer) (*Result, error) {
	e, outputs, dims, err := runRanks(p, entry, func(int64) []*ir.Tensor { return inputs }, state, observe)
	if err != nil {
		return nil, err
	}
	return joinOutputs(p, e, outputs, dims)
}

// RunRanks is Run of a program for a mesh with inputs by rank, which may differ where nothing divides them. It gives what
// each rank has of the outputs that are not states.
func RunRanks(p *ir.Program, entry string, inputs func(rank int64) []*ir.Tensor, state func(name string) (*ir.Tensor, error)) ([][]*ir.Tensor, error) {
	e, outputs, _, err := runRanks(p, entry, inputs, state, nil)
	if err != nil {
		return nil, err
	}
	for rank, all := range outputs {
		outputs[rank] = nil
		for i, out := range e.Outputs {
			if out.State == "" {
				outputs[rank] = append(outputs[rank], all[i])
			}
		}
	}
	return outputs, nil
}

// runRanks gives the results of each rank, and the sizes of the dims, which all have alike.
func runRanks(p *ir.Program, entry string, inputs func(rank int64) []*ir.Tensor, state func(name string) (*ir.Tensor, error), observe Observer) (
	e *ir.Entry, outputs [][]*ir.Tensor, dims map[string]int64, err error) {
	ranks := p.Mesh.Size()
	values := make([][]*ir.Tensor, ranks)
	for rank := range ranks {
		var own map[string]int64
		if e, values[rank], own, err = bindEntry(p, entry, inputs(rank), state); err != nil {
			return nil, nil, nil, err
		}
		if rank > 0 && !maps.Equal(own, dims) {
			return nil, nil, nil, diag.Errorf(diag.RunSize, "", "the inputs of rank %d have other sizes than those of rank 0: %v, %v", rank, own, dims)
		}
		dims = own
	}
	x := &exchange{mesh: p.Mesh, waiting: map[string]*meeting{}, gone: map[int64]bool{}}
	x.cond.L = &x.mu
	outputs = make([][]*ir.Tensor, ranks)
	var group errgroup.Group
	for rank := range ranks {
		group.Go(func() (err error) {
			defer func() { x.leave(rank, err) }()
			local, err := localInputs(p, e, rank, values[rank], dims)
			if err != nil {
				return err
			}
			ev := newEvaluator(e, dimsOfRank(p, rank, dims))
			ev.exchange, ev.rank, ev.observe = x, rank, observe
			outputs[rank], err = ev.block(&e.Body, local)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, nil, errors.Join(x.first, err)
	}
	return e, outputs, dims, nil
}

func dimsOfRank(p *ir.Program, rank int64, dims map[string]int64) map[string]int64 {
	all := mesh.Coordinates(p.Mesh, rank)
	for name, v := range dims {
		all[name] = v
	}
	return all
}

// localInputs are what a rank holds of the inputs of an entry.
func localInputs(p *ir.Program, e *ir.Entry, rank int64, values []*ir.Tensor, dims map[string]int64) ([]*ir.Tensor, error) {
	local := slices.Clone(values)
	for i, in := range e.Inputs {
		shard := in.Shard
		if in.State != "" {
			shard = p.State(in.State).Shard
		}
		if shard == nil {
			continue
		}
		l, err := mesh.Bind(shard, p.Mesh, rank, dims)
		if err != nil {
			return nil, err
		}
		local[i] = l.Slice(values[i])
	}
	return local, nil
}

// joinOutputs puts the results of the ranks together.
func joinOutputs(p *ir.Program, e *ir.Entry, outputs [][]*ir.Tensor, dims map[string]int64) (*Result, error) {
	r := &Result{State: map[string]*ir.Tensor{}, Dims: dims}
	for i, out := range e.Outputs {
		shard := out.Shard
		if out.State != "" {
			shard = p.State(out.State).Shard
		}
		whole, err := joinOutput(p.Mesh, shard, i, out, outputs, dims)
		if err != nil {
			return nil, err
		}
		if out.State != "" {
			r.State[out.State] = whole
		} else {
			r.Outputs = append(r.Outputs, whole)
		}
	}
	return r, nil
}

func joinOutput(m ir.Mesh, shard ir.Sharding, i int, out ir.Output, outputs [][]*ir.Tensor, dims map[string]int64) (*ir.Tensor, error) {
	if shard == nil {
		shard = ir.Replicated(ir.Consts(outputs[0][i].Shape...))
	}
	var whole *ir.Tensor
	for rank := range outputs {
		l, err := mesh.Bind(shard, m, int64(rank), dims)
		if err != nil {
			return nil, err
		}
		local := outputs[rank][i]
		if whole == nil {
			whole = ir.NewTensor(local.DType, l.Global...)
		}
		before := l.Slice(whole)
		if slices.ContainsFunc(slices.Collect(axesBefore(m, shard, rank)), func(r int64) bool { return r < int64(rank) }) && !sameCounted(l, before, local) {
			return nil, diag.Errorf(diag.RunOperation, "", "output %q differs between rank %d and the ranks before it, which hold the same part", out.Name, rank)
		}
		l.Place(whole, local)
	}
	return whole, nil
}

// axesBefore lists the ranks that hold the same part of a tensor.
func axesBefore(m ir.Mesh, s ir.Sharding, rank int) func(yield func(int64) bool) {
	var free []string
	used := s.Axes()
	for _, a := range m.Axes {
		if !slices.Contains(used, a.Name) {
			free = append(free, a.Name)
		}
	}
	return slices.Values(m.Group(int64(rank), free))
}

// sameCounted tells whether two local tensors are the same bits but for padding.
func sameCounted(l mesh.Layout, a, b *ir.Tensor) bool {
	same, size := true, int64(a.DType.Size())
	l.Runs(func(_, at, count int64) {
		same = same && bytes.Equal(a.Data[at*size:(at+count)*size], b.Data[at*size:(at+count)*size])
	})
	return same
}

// exchange is where ranks meet for collectives.
type exchange struct {
	mesh    ir.Mesh
	mu      sync.Mutex
	cond    sync.Cond
	waiting map[string]*meeting // by group and number
	first   error
	gone    map[int64]bool // ranks that issue no more collectives
}

// meeting is one collective of one group.
type meeting struct {
	given []*ir.Tensor
	count int
	taken int
}

// meet gives the tensors of the ranks of a group, in their order. number counts the rank's
// collectives so far.
func (x *exchange) meet(rank int64, axes []string, number int, t *ir.Tensor) ([]*ir.Tensor, error) {
	group := x.mesh.Group(rank, axes)
	key := fmt.Sprint(strings.Join(axes, ","), group[0], number)
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.waiting[key]
	if m == nil {
		m = &meeting{given: make([]*ir.Tensor, len(group))}
		x.waiting[key] = m
	}
	m.given[x.mesh.Position(rank, axes)] = t
	m.count++
	x.cond.Broadcast()
	for m.count < len(group) {
		for i, r := range group {
			if m.given[i] == nil && x.gone[r] {
				return nil, fmt.Errorf("rank %d ended before its collective", r)
			}
		}
		x.cond.Wait()
	}
	if m.taken++; m.taken == len(group) {
		delete(x.waiting, key)
	}
	return m.given, nil
}

// leave says that a rank issues no more collectives.
func (x *exchange) leave(rank int64, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.first == nil {
		x.first = err
	}
	x.gone[rank] = true
	x.cond.Broadcast()
}

// collective evaluates a collective. Outside of RunMesh there is one rank, which is not enough
// for a group of several.
func collective(c *call) (*ir.Tensor, error) {
	a := c.op.Attrs.(*ir.CollectiveAttrs)
	group, at := []*ir.Tensor{c.in[0]}, int64(0)
	if c.exchange != nil {
		var err error
		c.issued++
		if group, err = c.exchange.meet(c.rank, a.Axes, c.issued, c.in[0]); err != nil {
			return nil, c.fail("%v", err)
		}
		at = c.exchange.mesh.Position(c.rank, a.Axes)
	}
	if int64(len(group)) != a.Size {
		return nil, unsupported(c.op, "%s over %v needs %d ranks and one runs", c.op.Kind, a.Axes, a.Size)
	}
	return Collective(c.op.Kind, a, at, group)
}

// Collective is what the rank at a position of a group gets when its ranks give tensors of one
// type.
func Collective(kind ir.Kind, a *ir.CollectiveAttrs, position int64, given []*ir.Tensor) (*ir.Tensor, error) {
	in := given[position]
	k := int64(len(given))
	switch kind {
	case ir.OpAllReduce, ir.OpReduceScatter:
		shape := in.Shape
		if kind == ir.OpReduceScatter {
			shape = append([]int64{shape[0] / k}, shape[1:]...)
		}
		out := ir.NewTensor(in.DType, shape...)
		first := int64(0)
		if kind == ir.OpReduceScatter {
			first = position * out.Numel()
		}
		combineRanks(a.Combine, given, first, out)
		return out, nil
	case ir.OpAllGather:
		out := ir.NewTensor(in.DType, append([]int64{in.Shape[0] * k}, in.Shape[1:]...)...)
		for i, t := range given {
			copy(out.Data[i*len(in.Data):], t.Data)
		}
		return out, nil
	case ir.OpAllToAll:
		out := ir.NewTensor(in.DType, in.Shape...)
		share := int64(len(in.Data)) / k
		for i, t := range given {
			copy(out.Data[int64(i)*share:], t.Data[position*share:(position+1)*share])
		}
		return out, nil
	}
	out := ir.NewTensor(in.DType, in.Shape...)
	for _, p := range a.Pairs {
		if p.Target == position {
			copy(out.Data, given[p.Source].Data)
		}
	}
	return out, nil
}

// combineRanks combines the elements from first on of all ranks.
func combineRanks(c ir.Combine, given []*ir.Tensor, first int64, out *ir.Tensor) {
	stacked := ir.NewTensor(out.DType, append([]int64{int64(len(given))}, out.Shape...)...)
	size := int64(out.DType.Size())
	for i, t := range given {
		copy(stacked.Data[i*len(out.Data):(i+1)*len(out.Data)], t.Data[first*size:])
	}
	strides := append([]int64{0}, rowMajor(out.Shape)...)
	folding(stacked, out, c,
		func(f folder[float64], in, acc []float64) { f.reduce(stacked.Shape, strides, in, acc) },
		func(f folder[int64], in, acc []int64) { f.reduce(stacked.Shape, strides, in, acc) },
		func(f folder[complex128], in, acc []complex128) { f.reduce(stacked.Shape, strides, in, acc) })
}
