package fx

import (
	"slices"

	"weft/ir"
)

// scan(combine graph, carried, scanned, additional): the graph takes the carried values, one element
// of dim 0 of each scanned tensor and the additional ones; it gives the next carried values and
// elements that are collected along a new dim 0.
func (c *call) scan() {
	in := c.node.inputs
	if len(in) < 3 || in[0].graph == nil || in[1].kind != argList || in[2].kind != argList {
		c.bad("scan needs a graph and two lists")
	}
	carried, scanned := len(in[1].list), len(in[2].list)
	operands := c.operands(1)
	c.scanOver(in[0].graph, operands[:carried], operands[carried:carried+scanned], operands[carried+scanned:])
}

// eachElement is map(graph, mapped, additional): scan without carried values.
func (c *call) eachElement() {
	in := c.node.inputs
	if len(in) < 2 || in[0].graph == nil || in[1].kind != argList {
		c.bad("map needs a graph and a list")
	}
	scanned := len(in[1].list)
	operands := c.operands(1)
	c.scanOver(in[0].graph, nil, operands[:scanned], operands[scanned:])
}

// scanOver is a scan as a while that counts, carries, and puts what it collects into tensors of their
// final sizes.
func (c *call) scanOver(g *graph, carried, scanned, additional []any) {
	c.readAll(slices.Concat(carried, scanned, additional))
	start := []ir.Value{c.b.Constant(ir.ScalarInt(ir.I64, 0))}
	for _, v := range carried {
		start = append(start, c.operandValue(v))
	}
	var xs []ir.Value
	for _, v := range scanned {
		x := c.operandValue(v)
		if c.b.Rank(x) == 0 {
			c.bad("a scalar has no elements")
		}
		xs = append(xs, x)
	}
	if len(xs) == 0 {
		c.unsupported(" over nothing")
	}
	trips := c.b.Shape(xs[0])[0]
	body := &ir.Block{}
	for _, v := range start {
		body.Params = append(body.Params, c.entry.NewValue(c.b.Type(v)))
	}
	b := c.b.Within(body)
	at := body.Params[0]
	var operands []any
	for _, p := range body.Params[1:] {
		operands = append(operands, newTensor(p))
	}
	for _, x := range xs {
		operands = append(operands, newTensor(b.Take(x, at, 0)))
	}
	results := c.inside(g, append(operands, additional...), b)
	if len(results) < len(carried) {
		c.bad("the graph gives %d results for %d carried values", len(results), len(carried))
	}
	next := append([]ir.Value{b.Binary(ir.OpAdd, at, b.Constant(ir.ScalarInt(ir.I64, 1)))}, results[:len(carried)]...)
	for _, element := range results[len(carried):] {
		t := b.Type(element)
		all := c.b.Full(ir.TensorOf(t.DType, append([]ir.Dim{trips}, t.Shape...)...), 0)
		start = append(start, all)
		param := c.entry.NewValue(c.b.Type(all))
		body.Params = append(body.Params, param)
		place := slices.Repeat([]ir.Value{b.Constant(ir.ScalarInt(ir.I64, 0))}, t.Rank()+1)
		place[0] = at
		row := b.Reshape(element, append([]ir.Dim{ir.Const(1)}, t.Shape...))
		next = append(next, b.Op(ir.OpDynamicUpdateSlice, nil, nil, append([]ir.Value{param, row}, place...)...)[0])
	}
	body.Results = next
	condition := &ir.Block{}
	for _, v := range start {
		condition.Params = append(condition.Params, c.entry.NewValue(c.b.Type(v)))
	}
	b = c.b.Within(condition)
	condition.Results = []ir.Value{b.Compare(ir.LT, condition.Params[0], b.Dim(trips))}
	c.bindValues(c.b.Op(ir.OpWhile, nil, []*ir.Block{condition, body}, start...)[1:])
}

// operandValue is an operand that has to be a tensor.
func (c *call) operandValue(v any) ir.Value {
	t, ok := v.(*tensor)
	if !ok || t == nil {
		c.unsupported(" that carries a Python number")
	}
	return t.read(c.b)
}
