package masks

import (
	"slices"

	"weft/ir"
)

// moved is an element of the operand of an operation that only says where to read.
func moved(n *interpreter, op *ir.Op, point []form) value {
	from, ok := n.source(op, point)
	if !ok {
		return value{}
	}
	return n.at(op.Operands[0], from)
}

// onlyMoves tells whether operations of a kind only say where to read.
func onlyMoves(k ir.Kind) bool {
	switch k {
	case ir.OpReshape, ir.OpBroadcastInDim, ir.OpTranspose, ir.OpSlice, ir.OpReverse:
		return true
	}
	return false
}

// source is the point of the operand that an element of the result of a reshape, broadcast_in_dim, transpose, slice
// or reverse is read from.
func (n *interpreter) source(op *ir.Op, point []form) ([]form, bool) {
	shape := n.shape(op, 0)
	from := make([]form, len(shape))
	switch a := op.Attrs.(type) {
	case *ir.ReshapeAttrs:
		return n.reshaped(a.Dims, shape, point)
	case *ir.BroadcastAttrs:
		for i, axis := range a.Axes {
			if !shape[i].Is(1) {
				from[i] = point[axis]
			}
		}
	case *ir.TransposeAttrs:
		for i, p := range a.Permutation {
			from[p] = point[i]
		}
	case *ir.SliceAttrs:
		for i, f := range point {
			scaled, ok := f.scale(ir.Const(a.Stride[i]))
			if !ok {
				return nil, false
			}
			from[i] = scaled.plus(a.Start[i])
		}
	case *ir.AxesAttrs:
		copy(from, point)
		for _, axis := range a.Axes {
			from[axis] = form{}.add(point[axis], -1).plus(shape[axis].AddConst(-1))
		}
	default:
		panic("BUG: " + op.Kind.String() + " moves nothing")
	}
	return from, true
}

// reshaped finds the element of a tensor with the dims to that is at a point of its reshape to dims. Dims are matched
// from the left: equal ones, one that was several, several that were one.
func (n *interpreter) reshaped(dims, to []ir.Dim, point []form) ([]form, bool) {
	from := make([]form, 0, len(to))
	for len(dims) > 0 || len(to) > 0 {
		switch {
		case len(dims) > 0 && dims[0].Is(1):
			dims, point = dims[1:], point[1:]
			continue
		case len(to) > 0 && to[0].Is(1):
			to, from = to[1:], append(from, form{})
			continue
		case len(dims) == 0 || len(to) == 0:
			return nil, false
		}
		if count := prefix(dims, to[0]); count > 0 {
			joined, ok := join(dims[:count], point)
			if !ok {
				return nil, false
			}
			dims, point, to, from = dims[count:], point[count:], to[1:], append(from, joined)
			continue
		}
		count := prefix(to, dims[0])
		parts, ok := n.cut(to[:count], point[0])
		if !ok {
			return nil, false
		}
		dims, point, to, from = dims[1:], point[1:], to[count:], append(from, parts...)
	}
	return from, true
}

// prefix counts the leading dims whose product is d; 0 if there are none.
func prefix(dims []ir.Dim, d ir.Dim) int {
	product := ir.Const(1)
	for i, x := range dims {
		if product = product.Mul(x); product.Equal(d) {
			return i + 1
		}
	}
	return 0
}

// join is the row-major index of a point in dims.
func join(dims []ir.Dim, point []form) (form, bool) {
	index := point[0]
	for i, d := range dims[1:] {
		scaled, ok := index.scale(d)
		if !ok {
			return form{}, false
		}
		index = scaled.add(point[i+1], 1)
	}
	return index, true
}

// cut is the point in dims of a row-major index.
func (n *interpreter) cut(dims []ir.Dim, index form) ([]form, bool) {
	var point []form
	for i := range dims {
		if i == len(dims)-1 {
			return append(point, index), true
		}
		stride, ok := ir.Product(dims[i+1:]).IsConst()
		if !ok || stride < 1 {
			return nil, false
		}
		quotient, rest, ok := index.divide(stride)
		if r := n.bounds(rest); !ok || r.Min < 0 || r.Max >= stride {
			return nil, false
		}
		point, index = append(point, quotient), rest
	}
	return nil, false
}

// piece is a part of a tensor along an axis.
type piece struct {
	start, size ir.Dim
	at          func(point []form) value // a point of the piece
}

// pieces is the element at a point of a tensor that is made of pieces along an axis: of the one that the point is in,
// or of any, where one formula serves for all.
func (n *interpreter) pieces(list []piece, axis int, point []form) value {
	f := point[axis]
	list = slices.DeleteFunc(list, func(p piece) bool {
		inside := f.plus(p.start.Neg())
		return n.bounds(inside).Max < 0 || n.atLeastZero(inside.plus(p.size.Neg()))
	})
	if len(list) == 1 {
		local := slices.Clone(point)
		local[axis] = f.plus(list[0].start.Neg())
		return list[0].at(local)
	}
	if len(f.terms) != 1 || abs(f.terms[0].coefficient) != 1 {
		return value{}
	}
	variable := f.terms[0].variable
	found, where := make([]value, len(list)), make([]form, len(list))
	for i, p := range list {
		where[i] = n.within(f, p.start, p.start.Add(p.size).AddConst(-1))
		local := slices.Clone(point)
		for d := range local {
			local[d] = local[d].substitute(variable, where[i])
		}
		local[axis] = local[axis].plus(p.start.Neg())
		found[i] = p.at(local)
	}
	for i, v := range found {
		if !where[i].fixed() {
			v = n.substitute(v, where[i].terms[0].variable, variableForm(variable))
		}
		serves := v.kind != unknown
		for j := range found {
			serves = serves && n.same(n.substitute(v, variable, where[j]), found[j])
		}
		if serves {
			return v
		}
	}
	return value{}
}

// within is the variable of f, whose coefficient is 1 or -1, where f is from low to high: another one, with that range.
func (n *interpreter) within(f form, low, high ir.Dim) form {
	old := n.ranges[f.terms[0].variable]
	low, high = low.Sub(f.c), high.Sub(f.c)
	if f.terms[0].coefficient < 0 {
		low, high = high.Neg(), low.Neg()
	}
	return n.between(low.Max(old.low).Within(n.program.Range), high.Min(old.high).Within(n.program.Range))
}

func concatenate(n *interpreter, op *ir.Op, point []form) value {
	axis, start := op.Attrs.(*ir.AxisAttrs).Axis, ir.Dim{}
	var list []piece
	for i, v := range op.Operands {
		size := n.shape(op, i)[axis]
		list = append(list, piece{start, size, func(point []form) value { return n.at(v, point) }})
		start = start.Add(size)
	}
	return n.pieces(list, axis, point)
}

// pad is an operand between pieces of one value, along one dim after the other.
func pad(n *interpreter, op *ir.Op, point []form) value {
	a, shape := op.Attrs.(*ir.PadAttrs), n.shape(op, 0)
	edge := n.at(op.Operands[1], nil)
	inner := func(point []form) value { return n.at(op.Operands[0], point) }
	for d := range shape {
		if a.Low[d].Is(0) && a.High[d].Is(0) && a.Interior[d] == 0 {
			continue
		}
		least := min(a.Low[d].Bounds(n.program.Range).Min, a.High[d].Bounds(n.program.Range).Min)
		if a.Interior[d] != 0 || least < 0 {
			return value{}
		}
		outside, rest := func([]form) value { return edge }, inner
		inner = func(point []form) value {
			return n.pieces([]piece{{ir.Const(0), a.Low[d], outside}, {a.Low[d], shape[d], rest}, {a.Low[d].Add(shape[d]), a.High[d], outside}}, d, point)
		}
	}
	return inner(point)
}

// clamped is a start index moved so that a part of a size fits, where it is known to need no move or to end at an edge.
func (n *interpreter) clamped(start value, part, size ir.Dim) (form, bool) {
	if start.kind != number {
		return form{}, false
	}
	raised, ok := n.larger(start.form, form{})
	if !ok {
		return form{}, false
	}
	return n.smaller(raised, constantForm(size.Sub(part)))
}

func dynamicSlice(n *interpreter, op *ir.Op, point []form) value {
	shape, from := n.shape(op, 0), make([]form, len(point))
	for d, size := range op.Attrs.(*ir.DynamicSliceAttrs).Sizes {
		start, ok := n.clamped(n.at(op.Operands[1+d], nil), size, shape[d])
		if !ok {
			return value{}
		}
		from[d] = start.add(point[d], 1)
	}
	return n.at(op.Operands[0], from)
}

func gather(n *interpreter, op *ir.Op, point []form) value {
	a, shape, indices := op.Attrs.(*ir.GatherAttrs), n.shape(op, 0), n.shape(op, 1)
	batch, offset := ir.SplitGather(a, point)
	from := make([]form, len(shape))
	for i, d := range a.StartIndexMap {
		at := ir.GatherIndexAt(a, batch, len(indices), constantForm(ir.Const(int64(i))))
		start, ok := n.clamped(n.at(op.Operands[1], at), a.SliceSizes[d], shape[d])
		if !ok {
			return value{}
		}
		from[d] = start
	}
	for i, d := range a.OperandBatchingDims {
		dim := a.StartIndicesBatchingDims[i]
		switch {
		case dim == a.IndexVectorDim:
			return value{}
		case dim > a.IndexVectorDim:
			dim-- // batch has no coordinate along index vectors
		}
		from[d] = batch[dim]
	}
	for d := range shape {
		if !slices.Contains(a.CollapsedSliceDims, d) && !slices.Contains(a.OperandBatchingDims, d) {
			from[d] = from[d].add(offset[0], 1)
			offset = offset[1:]
		}
	}
	return n.at(op.Operands[0], from)
}

// reduce is what elements along axes combine to, where all are the same.
func reduce(n *interpreter, op *ir.Op, point []form) value {
	a, shape := op.Attrs.(*ir.ReduceAttrs), n.shape(op, 0)
	count, some := ir.Const(1), true
	first := len(n.ranges)
	var from []form
	for d, size := range shape {
		if !slices.Contains(a.Axes, d) {
			from, point = append(from, point[0]), point[1:]
			continue
		}
		from = append(from, n.coordinate(size))
		count, some = count.Mul(size), some && size.Bounds(n.program.Range).Min > 0
	}
	last := len(n.ranges)
	v := n.at(op.Operands[0], from)
	for variable := first; variable < last; variable++ {
		if !v.without(variable) {
			return value{}
		}
	}
	switch {
	case a.Combine == ir.Sum && v.kind == number:
		sum, ok := v.form.scale(count)
		if ok {
			return value{kind: number, form: sum}
		}
	case some && idempotent(a.Combine, v), a.Combine == ir.And && v.always(), a.Combine == ir.Or && v.kind == never:
		return v
	}
	return value{}
}

// idempotent tells whether equal values combine to themselves.
func idempotent(c ir.Combine, v value) bool {
	switch c {
	case ir.Max, ir.Min:
		return v.kind != unknown
	case ir.And, ir.Or:
		return v.kind == truth || v.kind == never
	}
	return false
}

// cumulative is what elements up to a position combine to, where all along the axis are the same.
func cumulative(n *interpreter, op *ir.Op, point []form) value {
	a := op.Attrs.(*ir.CumulativeAttrs)
	size := n.shape(op, 0)[a.Axis]
	along := n.coordinate(size)
	from := slices.Clone(point)
	from[a.Axis] = along
	v := n.at(op.Operands[0], from)
	if !along.fixed() && !v.without(along.terms[0].variable) {
		return value{}
	}
	count := point[a.Axis] // elements before the position
	if a.Reverse {
		count = form{}.add(count, -1).plus(size.AddConst(-1))
	}
	if !a.Exclusive {
		count = count.plus(ir.Const(1))
	}
	switch {
	case a.Combine == ir.Sum && v.kind == number:
		sum, ok := product(&n.space, []form{v.form, count})
		if ok {
			return value{kind: number, form: sum}
		}
	case !a.Exclusive && idempotent(a.Combine, v):
		return v
	}
	return value{}
}
