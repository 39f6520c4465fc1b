package fx

import (
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// cell is a recurrent layer's step: the number of gates, and the next state of input gates
// (x W_ih^T + b_ih), hidden gates (h W_hh^T + b_hh) and the state, whose first part is h.
type cell struct {
	gates  int64
	states int
	step   func(b *ir.Builder, in, hidden ir.Value, state []ir.Value) []ir.Value
}

// recurrentRules are whole recurrent networks, and single steps of one.
func recurrentRules() map[string]rule {
	network := func(c cell) rule { return values(func(k *call) []ir.Value { return k.recurrent(c) }) }
	single := func(c cell) rule { return values(func(k *call) []ir.Value { return k.recurrentStep(c) }) }
	plain := func(kind func(b *ir.Builder, x ir.Value) ir.Value) cell {
		return cell{1, 1, func(b *ir.Builder, in, hidden ir.Value, _ []ir.Value) []ir.Value {
			return []ir.Value{kind(b, b.Binary(ir.OpAdd, in, hidden))}
		}}
	}
	lstm, gru := cell{4, 2, lstmStep}, cell{3, 1, gruStep}
	tanh, relu := plain(func(b *ir.Builder, x ir.Value) ir.Value { return b.Unary(ir.OpTanh, x) }), plain(lower.Relu)
	return map[string]rule{
		"lstm.input":            network(lstm),
		"gru.input":             network(gru),
		"rnn_tanh.input":        network(tanh),
		"rnn_relu.input":        network(relu),
		"lstm_cell.default":     single(lstm),
		"gru_cell.default":      single(gru),
		"rnn_tanh_cell.default": single(tanh),
		"rnn_relu_cell.default": single(relu),
	}
}

// gate takes gate number i of n from the last dim.
func gate(b *ir.Builder, x ir.Value, i, n int64) ir.Value {
	size := b.Shape(x)[b.Rank(x)-1].FloorDiv(ir.Const(n))
	return b.SliceAxis(x, b.Rank(x)-1, size.MulConst(i), size.MulConst(i+1), 1)
}

// lstmStep has gates input, forget, cell, output.
func lstmStep(b *ir.Builder, in, hidden ir.Value, state []ir.Value) []ir.Value {
	all := b.Binary(ir.OpAdd, in, hidden)
	squash := func(i int64) ir.Value { return b.Unary(ir.OpLogistic, gate(b, all, i, 4)) }
	fresh := b.Binary(ir.OpMultiply, squash(0), b.Unary(ir.OpTanh, gate(b, all, 2, 4)))
	c := b.Binary(ir.OpAdd, b.Binary(ir.OpMultiply, squash(1), state[1]), fresh)
	return []ir.Value{b.Binary(ir.OpMultiply, squash(3), b.Unary(ir.OpTanh, c)), c}
}

// gruStep has gates reset, update, new; reset acts on the hidden part of new.
func gruStep(b *ir.Builder, in, hidden ir.Value, state []ir.Value) []ir.Value {
	sum := func(i int64) ir.Value { return b.Binary(ir.OpAdd, gate(b, in, i, 3), gate(b, hidden, i, 3)) }
	reset, update := b.Unary(ir.OpLogistic, sum(0)), b.Unary(ir.OpLogistic, sum(1))
	fresh := b.Unary(ir.OpTanh, b.Binary(ir.OpAdd, gate(b, in, 2, 3), b.Binary(ir.OpMultiply, reset, gate(b, hidden, 2, 3))))
	rest := b.Binary(ir.OpMultiply, update, b.Binary(ir.OpSubtract, state[0], fresh))
	return []ir.Value{b.Binary(ir.OpAdd, fresh, rest)}
}

// maxUnrolled is the longest sequence whose steps are written out; longer ones are loops.
const maxUnrolled = 32

// recurrent runs all layers and directions. Results: the output, then the last states.
func (c *call) recurrent(k cell) []ir.Value {
	c.exporterGuesses = true // torch records wrong shapes for the last states
	x := c.tensor("input")
	hx, params := c.states(k), c.tensors("params")
	layers, biases := c.int("num_layers", 1), c.bool("has_biases", true)
	drop, train := c.float("dropout", 0), c.bool("train", false)
	c.require(drop == 0 || !train, "in training mode")
	directions := int64(1)
	if c.bool("bidirectional", false) {
		directions = 2
	}
	batchFirst := c.bool("batch_first", false)
	if c.b.Rank(x) != 3 {
		c.bad("an input of rank %d", c.b.Rank(x))
	}
	if batchFirst {
		x = c.b.Transpose(x, []int{1, 0, 2})
	}
	cells := layers * directions
	if layers < 1 || layers > 1024 || int64(len(params))%cells != 0 || len(params) == 0 {
		c.bad("%d parameters for %d layers", len(params), layers)
	}
	per := int64(len(params)) / cells
	want := int64(2)
	if biases {
		want = 4
	}
	c.require(per == want, "with projections")
	last := make([][]ir.Value, k.states)
	for l := range layers {
		var outs []ir.Value
		for d := range directions {
			n := l*directions + d
			state := make([]ir.Value, k.states)
			for i, h := range hx {
				state[i] = c.layerState(h, n, cells)
			}
			out, end := c.layer(k, x, state, params[n*per:(n+1)*per], d == 1)
			outs = append(outs, out)
			for i := range last {
				last[i] = append(last[i], end[i])
			}
		}
		x = c.b.Concatenate(2, outs...)
	}
	if batchFirst {
		x = c.b.Transpose(x, []int{1, 0, 2})
	}
	results := []ir.Value{x}
	for _, states := range last {
		results = append(results, lower.Stack(c.b, 0, states...))
	}
	return results
}

// recurrentStep is one step of one layer: the next states of x [B, I], or [I].
func (c *call) recurrentStep(k cell) []ir.Value {
	x, state := c.tensor("input"), c.states(k)
	in := lower.Linear(c.b, x, c.tensor("w_ih"), c.optional("b_ih"))
	hidden := lower.Linear(c.b, state[0], c.tensor("w_hh"), c.optional("b_hh"))
	if !ir.SameShape(c.b.Shape(in), c.b.Shape(hidden)) {
		c.bad("gates of %s from the input, of %s from the state", c.b.Type(in), c.b.Type(hidden))
	}
	return k.step(c.b, in, hidden, state)
}

// states reads hx: one tensor, or a list of hidden and cell states.
func (c *call) states(k cell) []ir.Value {
	a, _ := c.arg("hx")
	list := []ir.Value{}
	if a.kind == argList {
		list = c.tensors("hx")
	} else {
		list = append(list, c.tensor("hx"))
	}
	if len(list) != k.states {
		c.bad("%d initial states", len(list))
	}
	return list
}

func (c *call) layerState(h ir.Value, n, cells int64) ir.Value {
	shape := c.b.Shape(h)
	if len(shape) != 3 || !shape[0].Is(cells) {
		c.bad("an initial state of %s", c.b.Type(h))
	}
	return c.b.Reshape(c.b.SliceAxis(h, 0, ir.Const(n), ir.Const(n+1), 1), shape[1:])
}

// layer runs one direction of one layer over x [T, B, I]. weights are W_ih, W_hh and, where
// there are biases, b_ih, b_hh.
func (c *call) layer(k cell, x ir.Value, state, weights []ir.Value, backward bool) (out ir.Value, end []ir.Value) {
	bias := [2]ir.Value{ir.NoValue, ir.NoValue}
	if len(weights) == 4 {
		bias = [2]ir.Value{weights[2], weights[3]}
	}
	gates := lower.Linear(c.b, x, weights[0], bias[0])
	step := func(b *ir.Builder, in ir.Value, state []ir.Value) []ir.Value {
		return k.step(b, in, lower.Linear(b, state[0], weights[1], bias[1]), state)
	}
	if n, ok := c.b.Shape(x)[0].IsConst(); ok && n <= maxUnrolled {
		return c.unrolled(step, gates, state, n, backward)
	}
	return c.loop(step, gates, state, backward)
}

func (c *call) unrolled(step func(b *ir.Builder, in ir.Value, state []ir.Value) []ir.Value, gates ir.Value, state []ir.Value, n int64, backward bool) (ir.Value, []ir.Value) {
	outs := make([]ir.Value, n)
	for i := range n {
		t := i
		if backward {
			t = n - 1 - i
		}
		in := c.b.Reshape(c.b.SliceAxis(gates, 0, ir.Const(t), ir.Const(t+1), 1), c.b.Shape(gates)[1:])
		state = step(c.b, in, state)
		outs[t] = state[0]
	}
	if n == 0 {
		return c.b.Full(ir.TensorOf(c.b.DType(gates), append([]ir.Dim{ir.Const(0)}, c.b.Shape(state[0])...)...), 0), state
	}
	return lower.Stack(c.b, 0, outs...), state
}

// loop carries the time, the states and the output.
func (c *call) loop(step func(b *ir.Builder, in ir.Value, state []ir.Value) []ir.Value, gates ir.Value, state []ir.Value, backward bool) (ir.Value, []ir.Value) {
	steps := c.b.Shape(gates)[0]
	shape := slices.Concat([]ir.Dim{steps}, c.b.Shape(state[0]))
	start := slices.Concat([]ir.Value{c.b.Scalar(ir.I64, 0), c.b.Full(ir.TensorOf(c.b.DType(gates), shape...), 0)}, state)
	params := func() []ir.Value {
		list := make([]ir.Value, len(start))
		for i, v := range start {
			list[i] = c.entry.NewValue(c.b.Type(v))
		}
		return list
	}
	condition, body := &ir.Block{Params: params()}, &ir.Block{Params: params()}
	b := c.b.Within(condition)
	condition.Results = []ir.Value{b.Compare(ir.LT, condition.Params[0], b.Dim(steps))}
	b = c.b.Within(body)
	t, out := body.Params[0], body.Params[1]
	at := t
	if backward {
		at = b.Binary(ir.OpSubtract, b.Dim(steps.AddConst(-1)), t)
	}
	zero := b.Scalar(ir.I64, 0)
	sizes := slices.Concat([]ir.Dim{ir.Const(1)}, b.Shape(gates)[1:])
	in := b.Op(ir.OpDynamicSlice, &ir.DynamicSliceAttrs{Sizes: sizes}, nil, gates, at, zero, zero)[0]
	next := step(b, b.Reshape(in, b.Shape(gates)[1:]), body.Params[2:])
	row := b.Reshape(next[0], slices.Concat([]ir.Dim{ir.Const(1)}, b.Shape(next[0])))
	out = b.Op(ir.OpDynamicUpdateSlice, nil, nil, out, row, at, zero, zero)[0]
	body.Results = slices.Concat([]ir.Value{b.Binary(ir.OpAdd, t, b.Scalar(ir.I64, 1)), out}, next)
	results := c.b.Op(ir.OpWhile, nil, []*ir.Block{condition, body}, start...)
	return results[1], results[2:]
}
