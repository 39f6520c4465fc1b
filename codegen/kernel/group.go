package kernel

import (
	"fmt"
	"math"
	"slices"

	"weft/ir"
	"weft/ir/diag"
)

// group is a kernel group while its kernel is built.
type group struct {
	ev        *evaluator
	region    *ir.Block
	schedule  ir.Schedule
	warpgroup bool   // the schedule is for warpgroups
	anchor    *ir.Op // of a contract group
	outputs   []*Buffer
}

// Build makes the kernel of a kernel operation. Its parameters are a pointer for each operand
// of the operation, a pointer for each result, then the sizes in Kernel.Sizes. With warpgroups it
// is for targets that have them. The parameters in Kernel.Maps come last.
func Build(p *ir.Program, e *ir.Entry, op *ir.Op, warpgroups bool) (k *Kernel, err error) {
	attrs := op.Attrs.(*ir.KernelAttrs)
	err = ir.Try(func() {
		region := op.Regions[0]
		g := &group{region: region, schedule: attrs.Schedule}
		if warpgroups && attrs.Warpgroup.Threads > 0 {
			g.schedule, g.warpgroup = attrs.Warpgroup, true
		}
		b := NewBuilder(p, g.schedule.Threads, indexType(p, e, region))
		g.ev = newEvaluator(p, e, op, b)
		for _, v := range region.Results {
			t := e.Type(v)
			if !Holdable(t.DType) {
				ir.Fail(diag.Errorf("W4004", op.Loc, "no kernel produces element type %s", t.DType).
					Suggest("convert to a supported type in the model, or run it with --device reference"))
			}
			g.outputs = append(g.outputs, b.Global(t.DType, true, g.ev.nonZero(t.Shape)))
		}
		switch attrs.Group {
		case ir.MapGroup:
			g.buildMap()
		case ir.RowsGroup:
			g.buildRows()
		case ir.ContractGroup:
			g.anchor = Anchor(region)
			if g.anchor == nil {
				panic("BUG: contract group without contraction")
			}
			if g.warpgroup && g.schedule.Bulk {
				g.buildBulk()
			} else if g.warpgroup {
				g.buildWarpgroups()
			} else if g.schedule.Stages > 0 {
				g.buildMMA()
			} else {
				g.buildContract()
			}
		case ir.AttentionGroup:
			g.anchor = Anchor(region)
			g.buildAttention()
		case ir.ScatterGroup:
			g.buildUpdate()
		default:
			panic(fmt.Sprintf("BUG: kernel group %s", attrs.Group))
		}
		b.Kernel.Index = b.Index
		k = b.Kernel
	})
	return k, err
}

// Anchor finds the contraction of a contract or attention group.
func Anchor(region *ir.Block) *ir.Op {
	for _, op := range region.Ops {
		if op.Kind == ir.OpDotGeneral || op.Kind == ir.OpConvolution || op.Kind == ir.OpAttention {
			return op
		}
	}
	return nil
}

// indexType is I32 where every tensor of the region has surely fewer than 2^31 elements, with
// room for the overshoot of the last block; else I64.
func indexType(p *ir.Program, e *ir.Entry, region *ir.Block) ir.DType {
	small := func(v ir.Value) bool {
		return e.Type(v).Numel().Bounds(p.Range).Max < math.MaxInt32-1<<20
	}
	for _, v := range region.Params {
		if !small(v) {
			return ir.I64
		}
	}
	for _, op := range region.Ops {
		if slices.ContainsFunc(op.Results, func(v ir.Value) bool { return !small(v) }) {
			return ir.I64
		}
		if a, ok := op.Attrs.(*ir.DimAttrs); ok {
			if r := a.Value.Bounds(p.Range); r.Min < math.MinInt32 || r.Max > math.MaxInt32 {
				return ir.I64
			}
		}
	}
	return ir.I32
}

// guardedScope runs f in a guarded block; what it evaluates is forgotten after.
func (g *group) guardedScope(cond *Expr, f func()) {
	ev := g.ev
	ev.b.If(cond, func() {
		ev.memo = append(ev.memo, map[string][]*Expr{})
		f()
		ev.memo = ev.memo[:len(ev.memo)-1]
	})
}

// storeLanes stores values of an output at points: as vectors where they are consecutive and
// aligned.
func (g *group) storeLanes(output int, points []*Point, values []*Expr) {
	g.storeLanesIf(g.ev.b.True(), output, points, values)
}

// storeLanesIf is storeLanes where a condition holds.
func (g *group) storeLanesIf(cond *Expr, output int, points []*Point, values []*Expr) {
	ev := g.ev
	buf := g.outputs[output]
	index := make([]*Expr, len(points))
	for i, p := range points {
		index[i] = ev.linearIndex(p)
	}
	for w := min(len(index), 16/buf.DType.Size()); w > 1; w /= 2 {
		if len(index)%w == 0 && ev.consecutive(index, w) {
			for i := 0; i < len(index); i += w {
				ev.b.StoreIf(cond, buf, index[i], values[i:i+w]...)
			}
			return
		}
	}
	for i := range index {
		ev.b.StoreIf(cond, buf, index[i], values[i])
	}
}

// epilogue follows the operations that depend on the anchor's result, whose values at points
// are given, to the group's result: elementwise operations at the same points, reshapes and
// transposes by moving the points.
func (g *group) epilogue(v ir.Value, points []*Point, values []*Expr) ([]*Point, []*Expr) {
	return g.epilogueTo(g.region.Results[0], v, points, values)
}

// epilogueTo is the part of the epilogue from one value to another.
func (g *group) epilogueTo(to, v ir.Value, points []*Point, values []*Expr) ([]*Point, []*Expr) {
	ev := g.ev
	type derived struct {
		points []*Point
		values []*Expr
	}
	known := map[ir.Value]derived{v: {points, values}}
	for _, op := range g.region.Ops {
		if _, ok := known[to]; ok {
			break
		}
		i := slices.IndexFunc(op.Operands, func(o ir.Value) bool { _, ok := known[o]; return ok })
		if i < 0 {
			continue
		}
		d := known[op.Operands[i]]
		switch op.Kind {
		case ir.OpReshape, ir.OpTranspose:
			known[op.Results[0]] = derived{ev.move(op, d.points), d.values}
		default:
			args := make([][]*Expr, len(op.Operands))
			for i, o := range op.Operands {
				if k, ok := known[o]; ok {
					args[i] = k.values
				} else {
					args[i] = ev.value(o, d.points)
				}
			}
			out := make([]*Expr, len(d.points))
			in := make([]*Expr, len(args))
			for l := range out {
				for i := range args {
					in[i] = args[i][l]
				}
				out[l] = ev.b.scalar(op, ev.entry, in)
			}
			known[op.Results[0]] = derived{d.points, out}
		}
	}
	d := known[to]
	return d.points, d.values
}

// epilogueInputs gives what epilogueTo reads beside v at points.
func (g *group) epilogueInputs(to, v ir.Value, points []*Point) []*Expr {
	ev := g.ev
	var inputs []*Expr
	known := map[ir.Value][]*Point{v: points}
	for _, op := range g.region.Ops {
		i := slices.IndexFunc(op.Operands, func(o ir.Value) bool { return known[o] != nil })
		if i < 0 || known[to] != nil {
			continue
		}
		at := known[op.Operands[i]]
		if op.Kind == ir.OpReshape || op.Kind == ir.OpTranspose {
			known[op.Results[0]] = ev.move(op, at)
			continue
		}
		for _, o := range op.Operands {
			if known[o] == nil {
				inputs = append(inputs, ev.value(o, at)...)
			}
		}
		known[op.Results[0]] = at
	}
	return inputs
}

// move gives the points where elements of the operand of a reshape or transpose are in its result.
func (ev *evaluator) move(op *ir.Op, points []*Point) []*Point {
	return ev.forward(points, ev.shape(op.Results[0]), func(p *Point, to []ir.Dim) []*Expr {
		at := ev.coordinates(p)
		if op.Kind == ir.OpReshape {
			return ev.regroup(at, p.dims, to)
		}
		moved := make([]*Expr, len(to))
		for i, from := range op.Attrs.(*ir.TransposeAttrs).Permutation {
			moved[i] = at[from]
		}
		return moved
	})
}

// moved gives the point of the group's result that an element of v becomes.
func (g *group) moved(v ir.Value, point *Point) *Point {
	known := map[ir.Value]*Point{v: point}
	for _, op := range g.region.Ops {
		for _, o := range op.Operands {
			p, ok := known[o]
			switch {
			case !ok:
				continue
			case op.Kind == ir.OpReshape || op.Kind == ir.OpTranspose:
				p = g.ev.move(op, []*Point{p})[0]
			}
			known[op.Results[0]] = p
			break
		}
	}
	return known[g.region.Results[0]]
}

func (ev *evaluator) forward(points []*Point, to []ir.Dim, f func(*Point, []ir.Dim) []*Expr) []*Point {
	out := make([]*Point, len(points))
	for i, p := range points {
		out[i] = ev.at(to, f(p, to))
	}
	return out
}

// buildMap emits the kernel of a map group: a thread computes Vector consecutive elements of
// each result.
func (g *group) buildMap() {
	ev, b := g.ev, g.ev.b
	if root := ev.defs[g.region.Results[0]]; root != nil && root.Kind == ir.OpSort {
		g.buildSort(root)
		return
	} else if root != nil && root.Kind == ir.OpCumulative && g.schedule.Rows > 0 {
		g.buildScan(root)
		return
	}
	if g.schedule.TileM > 0 {
		g.buildTransposing(ir.Transposed(ev.entry, g.region))
		return
	}
	dims := ev.shape(g.region.Results[0])
	vector := int64(max(1, g.schedule.Vector))
	total := ir.Product(dims)
	b.Kernel.Grid = [3]ir.Dim{total.CeilDiv(vector * int64(g.schedule.Threads)), ir.Const(1), ir.Const(1)}
	id := b.Add(b.Mul(b.BlockIndex(0), b.Idx(int64(g.schedule.Threads))), b.ThreadIndex())
	first := b.Mul(id, b.Idx(vector))
	b.If(b.Less(first, b.Size(total)), func() {
		points := make([]*Point, vector)
		for l := range points {
			points[l] = ev.atLinear(dims, b.Add(first, b.Idx(int64(l))))
		}
		for i, v := range g.region.Results {
			g.storeLanes(i, points, ev.value(v, points))
		}
	})
}
