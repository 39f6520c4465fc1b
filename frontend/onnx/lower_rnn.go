package onnx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// recurrent is what RNN, GRU and LSTM share: the inputs of one direction.
type recurrent struct {
	n           *node
	gates       int64
	hidden      ir.Dim
	x           ir.Value         // [T, B, I]
	initial     []ir.Value       // [D, B, H] each: hidden state, cell state
	lengths     ir.Value         // [B], or ir.NoValue
	activations []activationFunc // of all directions
	functions   int              // activations of one direction
	clip        float64
	peephole    ir.Value
	dtype       ir.DType
	directions  int
	batchFirst  bool     // layout 1
	w, rec      ir.Value // [D, gates*H, I], [D, gates*H, H]
	// hiddenInput prepares the hidden state for the product with rec; nil for nothing.
	hiddenInput func(b *ir.Builder, h ir.Value) ir.Value
}

// activationFunc is an activation of a recurrent operator.
type activationFunc func(b *ir.Builder, x ir.Value) ir.Value

// step computes the next states from the projected input [B, gates*H] and the states, with
// the recurrence weights of a direction and their bias (ir.NoValue: none).
type step func(r *recurrent, b *ir.Builder, d int, xt ir.Value, states []ir.Value, weights, bias ir.Value) []ir.Value

// recurrence lowers a recurrent operator with a number of gates and states.
func recurrence(gates, states, peephole int, functions []string, next step) func(*node) {
	return func(n *node) {
		w, rec := n.in(1), n.in(2)
		if n.b.DType(w).Bits() <= 16 {
			w, rec = n.b.Convert(w, ir.F32), n.b.Convert(rec, ir.F32)
		}
		n.newRecurrent(w, rec, gates, states, peephole, functions).finish(states, next)
	}
}

// newRecurrent reads the inputs and attributes; w and rec are the weights, in float32 or
// wider. peephole is the input of the peephole weights, 0 for none.
func (n *node) newRecurrent(w, rec ir.Value, gates, states, peephole int, functions []string) *recurrent {
	b := n.b
	r := &recurrent{n: n, gates: int64(gates), clip: n.float("clip", 0), peephole: ir.NoValue, dtype: b.DType(n.in(0)), w: w, rec: rec}
	wide := func(v ir.Value) ir.Value {
		if r.dtype.Bits() <= 16 {
			return b.Convert(v, ir.F32)
		}
		return v
	}
	r.directions = map[string]int{"forward": 1, "reverse": 1, "bidirectional": 2}[n.choice("direction", "forward", "forward", "reverse", "bidirectional")]
	r.x = wide(n.in(0))
	n.rankIs(r.x, 3)
	r.batchFirst = n.flag("layout", false)
	if r.batchFirst {
		r.x = b.Transpose(r.x, []int{1, 0, 2})
	}
	count := ir.Const(int64(r.directions))
	if b.Rank(w) != 3 || b.Rank(rec) != 3 || !b.Shape(w)[0].Equal(count) || !b.Shape(rec)[0].Equal(count) {
		n.wrong("inputs %s, %s and %s for %d directions", b.Type(r.x), b.Type(w), b.Type(rec), r.directions)
	}
	r.hidden = b.Shape(rec)[2]
	r.lengths = n.opt(4)
	zero := b.Full(ir.TensorOf(b.DType(r.x), count, b.Shape(r.x)[1], r.hidden), 0)
	for i := range states {
		state := zero
		if n.has(5 + i) {
			state = wide(n.in(5 + i))
			if r.batchFirst && b.Rank(state) == 3 {
				state = b.Transpose(state, []int{1, 0, 2})
			}
			state = n.sameDims(state, b.Shape(zero))
		}
		r.initial = append(r.initial, state)
	}
	if peephole > 0 && n.has(peephole) {
		r.peephole = wide(n.in(peephole))
	}
	r.readActivations(functions, r.directions)
	return r
}

// finish runs the directions, joins their results and sets the outputs.
func (r *recurrent) finish(states int, next step) {
	n, b := r.n, r.n.b
	columns := make([][]ir.Value, 1+states)
	for d := range r.directions {
		reverse := d == 1 || n.str("direction", "forward") == "reverse"
		y, last := r.direction(d, reverse, r.pick(r.w, d), r.pick(r.rec, d), next)
		columns[0] = append(columns[0], y)
		for i, v := range last {
			columns[1+i] = append(columns[1+i], v)
		}
	}
	outs := make([]ir.Value, 1+states)
	for i, column := range columns {
		axis := 0
		if i == 0 {
			axis = 1 // [T, D, B, H]
		}
		outs[i] = b.Convert(lower.Stack(b, axis, column...), r.dtype)
		switch {
		case r.batchFirst && i == 0:
			outs[i] = b.Transpose(outs[i], []int{2, 0, 1, 3})
		case r.batchFirst:
			outs[i] = b.Transpose(outs[i], []int{1, 0, 2})
		}
	}
	n.set(outs...)
}

// pick takes a direction's part of an input.
func (r *recurrent) pick(v ir.Value, d int) ir.Value {
	b := r.n.b
	return b.Reshape(b.SliceAxis(v, 0, ir.Const(int64(d)), ir.Const(int64(d+1)), 1), b.Shape(v)[1:])
}

// direction runs over time. The input's projection is one product for all times. Beyond a
// sequence's length the states stay and the output is zero.
func (r *recurrent) direction(d int, reverse bool, w, rec ir.Value, next step) (y ir.Value, last []ir.Value) {
	n, b := r.n, r.n.b
	projected := b.DotGeneral(r.x, w, &ir.DotAttrs{LhsContract: []int{2}, RhsContract: []int{1}})
	bias := ir.NoValue
	if n.has(3) {
		n.rankIs(n.in(3), 2)
		both := b.Convert(r.pick(n.in(3), d), b.DType(r.x))
		width := r.hidden.MulConst(r.gates)
		wb := b.SliceAxis(both, 0, ir.Const(0), width, 1)
		bias = b.SliceAxis(both, 0, width, width.MulConst(2), 1)
		projected = b.Binary(ir.OpAdd, projected, b.Broadcast(wb, b.Shape(projected), []int{2}))
	}
	time := b.Shape(r.x)[0]
	steps := b.Iota(ir.I64, []ir.Dim{time}, 0)
	if reverse {
		projected = b.Reverse(projected, 0)
		steps = b.Reverse(steps, 0)
	}
	var states []ir.Value
	for _, s := range r.initial {
		states = append(states, r.pick(s, d))
	}
	body := func(b *ir.Builder, i ir.Value, states []ir.Value) ([]ir.Value, ir.Value, []ir.Value) {
		after := next(r, b, d, n.element(b, projected, 0, i), states, rec, bias)
		out := after[0]
		if r.lengths != ir.NoValue {
			shape := b.Shape(after[0])
			at := b.Broadcast(n.element(b, steps, 0, i), shape, nil)
			inside := b.Compare(ir.LT, at, b.Broadcast(b.Convert(r.lengths, ir.I64), shape, []int{0}))
			out = b.Select(inside, after[0], b.FullLike(after[0], 0))
			for k := range after {
				after[k] = b.Select(inside, after[k], states[k])
			}
		}
		return after, ir.NoValue, []ir.Value{out}
	}
	final, collected := n.run(loop{trip: time, isKnown: true, tripValue: ir.NoValue, goOn: ir.NoValue, carried: states, body: body})
	y = collected[0]
	if reverse {
		y = b.Reverse(y, 0)
	}
	return y, final
}

// recur is h R^T + bias.
func (r *recurrent) recur(b *ir.Builder, h, rec, bias ir.Value) ir.Value {
	if r.hiddenInput != nil {
		h = r.hiddenInput(b, h)
	}
	y := b.DotGeneral(h, rec, &ir.DotAttrs{LhsContract: []int{1}, RhsContract: []int{1}})
	if bias != ir.NoValue {
		y = b.Binary(ir.OpAdd, y, b.Broadcast(bias, b.Shape(y), []int{1}))
	}
	return y
}

// gate cuts gate k out of the last dim.
func (r *recurrent) gate(b *ir.Builder, v ir.Value, k int64) ir.Value {
	if v == ir.NoValue {
		return v
	}
	return b.SliceAxis(v, b.Rank(v)-1, r.hidden.MulConst(k), r.hidden.MulConst(k+1), 1)
}

// activate applies function k of direction d to the clipped x.
func (r *recurrent) activate(b *ir.Builder, d, k int, x ir.Value) ir.Value {
	if r.clip > 0 {
		x = lower.Clip(b, x, -r.clip, r.clip)
	}
	return r.activations[d*r.functions+k](b, x)
}

func rnnStep(r *recurrent, b *ir.Builder, d int, xt ir.Value, s []ir.Value, rec, bias ir.Value) []ir.Value {
	return []ir.Value{r.activate(b, d, 0, b.Binary(ir.OpAdd, xt, r.recur(b, s[0], rec, bias)))}
}

func gruStep(r *recurrent, b *ir.Builder, d int, xt ir.Value, s []ir.Value, rec, bias ir.Value) []ir.Value {
	h := s[0]
	part := func(from, to int64) (ir.Value, ir.Value) {
		w := b.SliceAxis(rec, 0, r.hidden.MulConst(from), r.hidden.MulConst(to), 1)
		if bias == ir.NoValue {
			return w, bias
		}
		return w, b.SliceAxis(bias, 0, r.hidden.MulConst(from), r.hidden.MulConst(to), 1)
	}
	w, wb := part(0, 2)
	zr := r.recur(b, h, w, wb)
	z := r.activate(b, d, 0, b.Binary(ir.OpAdd, r.gate(b, xt, 0), r.gate(b, zr, 0)))
	reset := r.activate(b, d, 0, b.Binary(ir.OpAdd, r.gate(b, xt, 1), r.gate(b, zr, 1)))
	w, wb = part(2, 3)
	var candidate ir.Value
	if r.n.flag("linear_before_reset", false) {
		candidate = b.Binary(ir.OpMultiply, reset, r.recur(b, h, w, wb))
	} else {
		candidate = r.recur(b, b.Binary(ir.OpMultiply, reset, h), w, wb)
	}
	candidate = r.activate(b, d, 1, b.Binary(ir.OpAdd, r.gate(b, xt, 2), candidate))
	keep := b.Binary(ir.OpMultiply, z, h)
	fresh := b.Binary(ir.OpMultiply, b.Binary(ir.OpSubtract, b.FullLike(z, 1), z), candidate)
	return []ir.Value{b.Binary(ir.OpAdd, fresh, keep)}
}

func lstmStep(r *recurrent, b *ir.Builder, d int, xt ir.Value, s []ir.Value, rec, bias ir.Value) []ir.Value {
	h, c := s[0], s[1]
	all := b.Binary(ir.OpAdd, xt, r.recur(b, h, rec, bias)) // input, output, forget, cell
	peep := func(gate int64, k int64, cell ir.Value) ir.Value {
		g := r.gate(b, all, gate)
		if r.peephole == ir.NoValue {
			return g
		}
		p := b.Reshape(b.SliceAxis(r.peephole, 0, ir.Const(int64(d)), ir.Const(int64(d+1)), 1), []ir.Dim{r.hidden.MulConst(3)})
		weighted := b.Binary(ir.OpMultiply, cell, b.Broadcast(r.gate(b, p, k), b.Shape(cell), []int{1}))
		return b.Binary(ir.OpAdd, g, weighted)
	}
	in := r.activate(b, d, 0, peep(0, 0, c))
	var forget ir.Value
	if r.n.flag("input_forget", false) {
		forget = b.Binary(ir.OpSubtract, b.FullLike(in, 1), in)
	} else {
		forget = r.activate(b, d, 0, peep(2, 2, c))
	}
	cell := r.activate(b, d, 1, r.gate(b, all, 3))
	c = b.Binary(ir.OpAdd, b.Binary(ir.OpMultiply, forget, c), b.Binary(ir.OpMultiply, in, cell))
	out := r.activate(b, d, 0, peep(1, 1, c))
	return []ir.Value{b.Binary(ir.OpMultiply, out, r.activate(b, d, 2, c)), c}
}

// readActivations makes the functions of all directions. alpha and beta are given in the
// order of the functions that take them.
func (r *recurrent) readActivations(defaults []string, directions int) {
	n := r.n
	r.functions = len(defaults)
	names := n.strings("activations")
	if names == nil {
		for range directions {
			names = append(names, defaults...)
		}
	}
	if len(names) != len(defaults)*directions {
		n.wrong("%d activations for %d directions", len(names), directions)
	}
	alphas, betas := n.floats("activation_alpha"), n.floats("activation_beta")
	take := func(list *[]float64, absent float64) float64 {
		if len(*list) == 0 {
			return absent
		}
		v := (*list)[0]
		*list = (*list)[1:]
		return v
	}
	for _, name := range names {
		r.activations = append(r.activations, r.activation(name, func(v float64) float64 { return take(&alphas, v) }, func(v float64) float64 { return take(&betas, v) }))
	}
}

func (r *recurrent) activation(name string, alpha, beta func(absent float64) float64) activationFunc {
	switch name {
	case "Sigmoid":
		return func(b *ir.Builder, x ir.Value) ir.Value { return b.Unary(ir.OpLogistic, x) }
	case "Tanh":
		return func(b *ir.Builder, x ir.Value) ir.Value { return b.Unary(ir.OpTanh, x) }
	case "Relu":
		return func(b *ir.Builder, x ir.Value) ir.Value { return lower.Relu(b, x) }
	case "Softsign":
		return func(b *ir.Builder, x ir.Value) ir.Value { return lower.Softsign(b, x) }
	case "Softplus":
		return func(b *ir.Builder, x ir.Value) ir.Value { return lower.Softplus(b, x, 1, math.Inf(1)) }
	case "LeakyRelu":
		a := alpha(0.01)
		return func(b *ir.Builder, x ir.Value) ir.Value { return lower.LeakyRelu(b, x, a) }
	case "Elu":
		a := alpha(1)
		return func(b *ir.Builder, x ir.Value) ir.Value { return lower.Elu(b, x, a, 1, 1) }
	case "ThresholdedRelu":
		a := alpha(1)
		return func(b *ir.Builder, x ir.Value) ir.Value {
			return b.Select(lower.CompareScalar(b, ir.GE, x, a), x, b.FullLike(x, 0))
		}
	case "Affine":
		a, c := alpha(1), beta(0)
		return func(b *ir.Builder, x ir.Value) ir.Value { return lower.AddScalar(b, lower.Scale(b, x, a), c) }
	case "ScaledTanh":
		a, c := alpha(1), beta(1)
		return func(b *ir.Builder, x ir.Value) ir.Value {
			return lower.Scale(b, b.Unary(ir.OpTanh, lower.Scale(b, x, c)), a)
		}
	case "HardSigmoid":
		a, c := alpha(0.2), beta(0.5)
		return func(b *ir.Builder, x ir.Value) ir.Value { return lower.Hardsigmoid(b, x, a, c) }
	}
	r.n.wrong("activation %q", name)
	return nil
}

func recurrents() map[string][]version {
	return map[string][]version{
		"RNN":  one(recurrence(1, 1, 0, []string{"Tanh"}, rnnStep)),
		"GRU":  one(recurrence(3, 1, 0, []string{"Sigmoid", "Tanh"}, gruStep)),
		"LSTM": one(recurrence(4, 2, 7, []string{"Sigmoid", "Tanh", "Tanh"}, lstmStep)),
	}
}

// einsum is shared with torch's.
func einsum(n *node) {
	xs := slices.Clone(n.all())
	if !n.hasAttr("equation") {
		n.missingAttribute("equation")
	}
	y, err := lower.Einsum(n.b, n.str("equation", ""), xs...)
	if err != nil {
		n.wrong("%v", err)
	}
	n.set(y)
}
