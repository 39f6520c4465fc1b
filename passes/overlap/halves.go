package overlap

import (
	"slices"

	"weft/ir"
)

// Options say what decides whether a product is halved. Without figures none is.
type Options struct {
	FLOPS float64            // a second, of products in half precision
	Links map[string]float64 // bytes a second and direction along each axis of the mesh
	Least int64              // bytes of a rank's product from which it is halved; 0 for leastHalved
}

// leastHalved is where halving may pay: a half of 8 MiB takes 19 us over links of 450 GB/s, several times as long as the steps of
// a ring are delayed, so two sums hardly take longer than one; in bf16 it is 256 tiles of 128 x 128, two waves on most GPUs.
const leastHalved = 16 << 20

// tileRows is what the rows of a half are a multiple of, so that no half ends within a tile (of 128 rows or 64).
const tileRows = 128

// hidden is the least part of a collective that must have a product to run beside: less gains nothing
// over the launches that halving adds.
const hidden = 0.25

// product is one whose result is a part of a sum over ranks, and how it can be halved.
type product struct {
	dot    *ir.Op
	after  []*ir.Op // reshapes and conversions of its result, in their order
	reduce *ir.Op
	axes   []int // that are halved: of the left operand, of the product, and of the result of each of after
}

// halve makes each large product whose sum nothing runs beside two, of its first rows and of the others:
// the sum of the first half is taken while the second is computed. Each element is the same sum as before. One stream serves all
// asynchronous collectives: where some are over other axes (gathers of parameters), sums would wait for those, and stay whole.
func (o *overlapper) halve(ops []*ir.Op) ([]*ir.Op, bool) {
	if severalAxes(ops) {
		return ops, false
	}
	made := make([][]*ir.Op, len(ops)+1) // by the operation that they come before
	gone := map[*ir.Op]bool{}
	for i, op := range ops {
		p, ok := o.product(ops, i)
		if !ok {
			continue
		}
		halves, join := o.halves(p)
		made[i] = append(made[i], halves...)
		use := firstUse(ops, i)
		made[use] = append(made[use], join)
		for _, old := range append(p.after, p.dot, op) {
			gone[old] = true
		}
	}
	if len(gone) == 0 {
		return ops, false
	}
	var out []*ir.Op
	for i := range len(ops) + 1 {
		out = append(out, made[i]...)
		if i < len(ops) && !gone[ops[i]] {
			out = append(out, ops[i])
		}
	}
	return out, true
}

// severalAxes tells whether collectives are over different axes.
func severalAxes(ops []*ir.Op) bool {
	var axes []string
	for _, op := range ops {
		if a, ok := op.Attrs.(*ir.CollectiveAttrs); ok {
			if axes != nil && !slices.Equal(axes, a.Axes) {
				return true
			}
			axes = a.Axes
		}
	}
	return false
}

// product looks whether operation i is a sum that is worth halving.
func (o *overlapper) product(ops []*ir.Op, i int) (p product, ok bool) {
	a, ok := ops[i].Attrs.(*ir.CollectiveAttrs)
	if !ok || ops[i].Kind != ir.OpAllReduce || a.Async || a.Combine != ir.Sum || !o.exposed(ops, i) {
		return p, false
	}
	p.reduce = ops[i]
	for v := ops[i].Operands[0]; ; v = p.after[0].Operands[0] {
		d, here := o.def[v]
		switch {
		case !here || o.uses[v] != 1:
			return p, false
		case ops[d].Kind == ir.OpReshape || ops[d].Kind == ir.OpConvert:
			p.after = slices.Insert(p.after, 0, ops[d])
			continue
		case ops[d].Kind != ir.OpDotGeneral:
			return p, false
		}
		p.dot = ops[d]
		return p, o.large(p, a) && o.rows(&p)
	}
}

// exposed tells whether no product runs between a collective and the first use of its result, and that is a single one by an
// elementwise operation, whose kernel can read either half.
func (o *overlapper) exposed(ops []*ir.Op, i int) bool {
	use := firstUse(ops, i)
	if slices.ContainsFunc(ops[i+1:use], func(op *ir.Op) bool { return op.Kind.Info().Class == ir.ClassContraction }) {
		return false
	}
	for v, at := ops[i].Results[0], i; ; v, at = ops[use].Results[0], use {
		if use = firstUse(ops, at); use == len(ops) || o.uses[v] != 1 {
			return false
		}
		if !isView(ops[use]) {
			return ops[use].Kind.Info().Class == ir.ClassElementwise
		}
	}
}

// large tells whether a sum takes long, and its product long enough to hide some of it.
func (o *overlapper) large(p product, a *ir.CollectiveAttrs) bool {
	least := o.options.Least
	if least == 0 {
		least = leastHalved
	}
	t := o.entry.Type(p.reduce.Operands[0])
	if a.Size < 2 || o.options.FLOPS == 0 || t.Bytes().Bounds(o.program.Range).Min < least {
		return false
	}
	link := 0.0
	for _, axis := range a.Axes {
		if l := o.options.Links[axis]; link == 0 || l < link {
			link = l
		}
	}
	depth := ir.Const(1)
	for _, axis := range p.dot.Attrs.(*ir.DotAttrs).LhsContract {
		depth = depth.Mul(o.entry.Type(p.dot.Operands[0]).Shape[axis])
	}
	// Of one element, and so of any number: it goes around a ring twice, but for a rank's own part.
	exchange := 2 * float64(t.DType.Size()) * float64(a.Size-1) / float64(a.Size)
	compute := 2 * float64(depth.Bounds(o.program.Range).Min)
	return compute/o.options.FLOPS >= hidden*exchange/link
}

// rows chooses the axis that is halved: the outermost of the left operand's own that can be.
func (o *overlapper) rows(p *product) bool {
	shape, a := o.entry.Type(p.dot.Operands[0]).Shape, p.dot.Attrs.(*ir.DotAttrs)
	var own []int
	for axis := range shape {
		if !slices.Contains(a.LhsBatch, axis) && !slices.Contains(a.LhsContract, axis) {
			own = append(own, axis)
		}
	}
	rows := ir.Const(1)
	for _, axis := range own {
		rows = rows.Mul(shape[axis])
	}
	if !rows.DivisibleBy(2*tileRows, o.program.Divisor) {
		return false
	}
	for n, axis := range own {
		if !o.even(shape[axis]) {
			continue
		}
		p.axes = []int{axis, len(a.LhsBatch) + n}
		if o.carry(p) {
			return true
		}
	}
	return false
}

func (o *overlapper) even(d ir.Dim) bool { return d.DivisibleBy(2, o.program.Divisor) }

// carry follows the axis through what comes after the product.
func (o *overlapper) carry(p *product) bool {
	for _, op := range p.after {
		axis := p.axes[len(p.axes)-1]
		if op.Kind == ir.OpReshape {
			if axis = o.through(o.entry.Type(op.Operands[0]).Shape[axis:], o.entry.Type(op.Results[0]).Shape); axis < 0 {
				return false
			}
		}
		p.axes = append(p.axes, axis)
	}
	return true
}

// through is the axis of a reshape's result whose halves are those of the first of the inner axes of its operand; -1 for none.
func (o *overlapper) through(inner, to []ir.Dim) int {
	_, fixed := inner[0].IsConst()
	for axis, d := range to {
		_, same := d.IsConst()
		same = same && fixed || d.Equal(inner[0])
		if same && o.even(d) && ir.Product(to[axis:]).Equal(ir.Product(inner)) {
			return axis
		}
	}
	return -1
}

// halves makes a product's two halves, each with its sum, and what joins these.
func (o *overlapper) halves(p product) (ops []*ir.Op, join *ir.Op) {
	b := ir.NewBuilder(o.program, o.entry).Within(&ir.Block{})
	join = &ir.Op{Kind: ir.OpConcatenate, Results: p.reduce.Results, Attrs: &ir.AxisAttrs{Axis: p.axes[len(p.axes)-1]}, Loc: p.reduce.Loc}
	for n := range 2 {
		b.Loc = p.dot.Loc
		lhs := p.dot.Operands[0]
		from, to := part(b.Shape(lhs)[p.axes[0]], n)
		dot := *p.dot.Attrs.(*ir.DotAttrs)
		v := b.DotGeneral(b.SliceAxis(lhs, p.axes[0], from, to, 1), p.dot.Operands[1], &dot)
		for i, op := range p.after {
			b.Loc = op.Loc
			if op.Kind == ir.OpConvert {
				v = b.Convert(v, b.DType(op.Results[0]))
				continue
			}
			shape := slices.Clone(b.Shape(op.Results[0]))
			from, to := part(shape[p.axes[i+2]], n)
			shape[p.axes[i+2]] = to.Sub(from)
			v = b.Reshape(v, shape)
		}
		b.Loc = p.reduce.Loc
		a := *p.reduce.Attrs.(*ir.CollectiveAttrs)
		join.Operands = append(join.Operands, b.Op(ir.OpAllReduce, &a, nil, v)[0])
		o.half[b.Block.Ops[len(b.Block.Ops)-1]] = true
	}
	return b.Block.Ops, join
}

// part is where a half of a dim begins and ends.
func part(d ir.Dim, n int) (from, to ir.Dim) {
	half := d.FloorDiv(ir.Const(2))
	if n == 0 {
		return ir.Const(0), half
	}
	return half, d
}
