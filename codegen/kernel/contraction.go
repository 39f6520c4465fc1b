package kernel

import (
	"slices"

	"weft/ir"
)

// contraction is a dot_general or a convolution in one form: for each batch index, a matrix
// product over k of lhs[m, k] and rhs[n, k]. Each of batch, m, n and k is a list of dims.
type contraction struct {
	ev             *evaluator
	op             *ir.Op
	batch, m, n, k []ir.Dim
	accumulator    ir.DType
	// lhs and rhs give the point of an operand and whether it is an element there (nil: always).
	lhs, rhs func(batch, free, k []*Expr) (*Point, *Expr)
	// lhsValue and rhsValue are the operands; a convolution's kernel is its lhs.
	lhsValue, rhsValue ir.Value
	// join gives the coordinates in the result.
	join func(batch, m, n []*Expr) []*Expr
}

// contractionOf reads the dimension numbers of a dot_general.
func contractionOf(ev *evaluator, op *ir.Op) *contraction {
	if op.Kind == ir.OpConvolution {
		return convolutionAsContraction(ev, op)
	}
	a := op.Attrs.(*ir.DotAttrs)
	l, r := ev.shape(op.Operands[0]), ev.shape(op.Operands[1])
	lhsFree := freeDims(len(l), a.LhsBatch, a.LhsContract)
	rhsFree := freeDims(len(r), a.RhsBatch, a.RhsContract)
	c := &contraction{ev: ev, op: op, lhsValue: op.Operands[0], rhsValue: op.Operands[1],
		batch: pickDims(l, a.LhsBatch), m: pickDims(l, lhsFree), n: pickDims(r, rhsFree), k: pickDims(l, a.LhsContract),
		accumulator: ev.b.accumulator(ev.entry.Type(op.Operands[0]).DType, a.To)}
	place := func(dims []ir.Dim, batchAt, freeAt, contractAt []int) func(batch, free, k []*Expr) (*Point, *Expr) {
		return func(batch, free, k []*Expr) (*Point, *Expr) {
			at := make([]*Expr, len(dims))
			scatterTo(at, batchAt, batch)
			scatterTo(at, freeAt, free)
			scatterTo(at, contractAt, k)
			return ev.at(dims, at), nil
		}
	}
	c.lhs = place(l, a.LhsBatch, lhsFree, a.LhsContract)
	c.rhs = place(r, a.RhsBatch, rhsFree, a.RhsContract)
	c.join = func(batch, m, n []*Expr) []*Expr { return slices.Concat(batch, m, n) }
	return c
}

// split takes the coordinates of a dot_general's result apart.
func (c *contraction) split(at []*Expr) (batch, m, n []*Expr) {
	i, j := len(c.batch), len(c.batch)+len(c.m)
	return at[:i], at[i:j], at[j:]
}

func (c *contraction) lhsPoint(batch, m, k []*Expr) *Point {
	p, _ := c.lhs(batch, m, k)
	return p
}

func (c *contraction) rhsPoint(batch, n, k []*Expr) *Point {
	p, _ := c.rhs(batch, n, k)
	return p
}

func freeDims(rank int, batch, contract []int) []int {
	var free []int
	for d := range rank {
		if !slices.Contains(batch, d) && !slices.Contains(contract, d) {
			free = append(free, d)
		}
	}
	return free
}

func pickDims(dims []ir.Dim, which []int) []ir.Dim {
	out := make([]ir.Dim, len(which))
	for i, d := range which {
		out[i] = dims[d]
	}
	return out
}

func scatterTo(at []*Expr, positions []int, values []*Expr) {
	for i, p := range positions {
		at[p] = values[i]
	}
}

// convolutionAsContraction: implicit GEMM. Batch is the group, m the group's output channels, n
// the image and output position, k the group's input channels and kernel positions; the input
// is read where the window puts it, never copied to columns. Where channels are adjacent in
// memory they are the last of k, and m and n change places, since results are stored alike.
func convolutionAsContraction(ev *evaluator, op *ir.Op) *contraction {
	a := op.Attrs.(*ir.ConvolutionAttrs)
	b := ev.b
	x, w, y := ev.shape(op.Operands[0]), ev.shape(op.Operands[1]), ev.shape(op.Results[0])
	perGroup, _ := w[0].DivExact(ir.Const(a.Groups))
	c := &contraction{ev: ev, op: op, lhsValue: op.Operands[1], rhsValue: op.Operands[0],
		batch: ir.Consts(a.Groups), m: []ir.Dim{perGroup}, n: append([]ir.Dim{x[0]}, y[2:]...), k: append([]ir.Dim{w[1]}, w[2:]...),
		accumulator: b.accumulator(ev.entry.Type(op.Operands[0]).DType, ev.entry.Type(op.Results[0]).DType)}
	split := func(k []*Expr) (channel *Expr, window []*Expr) { return k[0], k[1:] }
	channelsLast := ev.adjacent(op.Operands[0], 1) && ev.adjacent(op.Operands[1], 1)
	if channelsLast {
		c.k = append(slices.Clone(w[2:]), w[1])
		split = func(k []*Expr) (channel *Expr, window []*Expr) { return k[len(k)-1], k[:len(k)-1] }
	}
	inGroup := func(group, i *Expr, size ir.Dim) *Expr {
		if a.Groups == 1 {
			return i
		}
		return b.Add(b.Mul(group, b.Size(size)), i)
	}
	c.lhs = func(group, m, k []*Expr) (*Point, *Expr) {
		channel, window := split(k)
		position := slices.Clone(window)
		if a.ReverseKernel {
			for d := range position {
				position[d] = b.Sub(b.Size(w[2+d].AddConst(-1)), window[d])
			}
		}
		return ev.at(w, append([]*Expr{inGroup(group[0], m[0], perGroup), channel}, position...)), nil
	}
	c.rhs = func(group, n, k []*Expr) (*Point, *Expr) {
		channel, window := split(k)
		spatial, inside, _ := ev.convolutionAt(a, n[1:], window, x[2:], w[2:])
		return ev.at(x, append([]*Expr{n[0], inGroup(group[0], channel, w[1])}, spatial...)), inside
	}
	c.join = func(group, m, n []*Expr) []*Expr {
		return append([]*Expr{n[0], inGroup(group[0], m[0], perGroup)}, n[1:]...)
	}
	if channelsLast {
		c.swap()
	}
	return c
}

// swap exchanges the operands, so that n, along which results are stored, is what was m.
func (c *contraction) swap() {
	c.m, c.n, c.lhs, c.rhs, c.lhsValue, c.rhsValue = c.n, c.m, c.rhs, c.lhs, c.rhsValue, c.lhsValue
	join := c.join
	c.join = func(batch, m, n []*Expr) []*Expr { return join(batch, n, m) }
}

// adjacent tells whether a value is read from memory in such an order that neighbours along an
// axis are neighbours there.
func (ev *evaluator) adjacent(v ir.Value, axis int) bool {
	dims := ev.shape(v)
	if n, ok := dims[axis].IsConst(); !ok || n < 2 || !ev.nonZero(dims) {
		return false
	}
	at := repeat(ev.b.Idx(0), len(dims))
	first := ev.value(v, []*Point{ev.at(dims, at)})[0]
	at = slices.Clone(at)
	at[axis] = ev.b.Idx(1)
	second := ev.value(v, []*Point{ev.at(dims, at)})[0]
	if first.Op != Load || second.Op != Load || first.Buffer != second.Buffer {
		return false
	}
	d, ok := Difference(second.Args[0], first.Args[0])
	return ok && d == 1
}
