package onnx

import (
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// maxUnrolled is the longest loop that is written out; longer ones become a while.
const maxUnrolled = 64

// ifBranch takes the branch of a condition that is known, else both become regions.
func ifBranch(n *node) {
	condition := n.b.Convert(n.scalarIn(0), ir.Bool)
	then, otherwise := n.subgraph("then_branch"), n.subgraph("else_branch")
	if c, ok := n.known.Ints(condition); ok {
		if c[0] != 0 {
			n.outs = n.body(then, n.b, nil, "then_branch")
		} else {
			n.outs = n.body(otherwise, n.b, nil, "else_branch")
		}
		return
	}
	first, a := n.region(then, "then_branch")
	second, b := n.region(otherwise, "else_branch")
	if len(a) != len(b) {
		n.wrong("the branches give %d and %d outputs", len(a), len(b))
	}
	for i := range a {
		if !n.b.Type(a[i]).Equal(n.b.Type(b[i])) {
			ir.Fail(unsupportedForm(n.place, "If: output %d is %s in one branch and %s in the other", i, n.b.Type(a[i]), n.b.Type(b[i])).
				Suggest("where the condition depends on open dims, give them a size with --dim; where it depends on an input, --constant INPUT=VALUE; else export the model without the branch"))
		}
	}
	n.set(n.b.Op(ir.OpIf, nil, []*ir.Block{first, second}, condition)...)
}

// region walks a subgraph without inputs in a block of its own.
func (n *node) region(g *graphProto, name string) (*ir.Block, []ir.Value) {
	b := n.newBlock()
	b.Block.Results = n.tensors(n.body(g, b, nil, name))
	return b.Block, b.Block.Results
}

func (n *node) newBlock() *ir.Builder {
	block := &ir.Block{}
	n.known.Watch(block)
	return n.b.Within(block)
}

// tensors demands that values are tensors.
func (n *node) tensors(xs []*value) []ir.Value {
	out := make([]ir.Value, len(xs))
	for i, x := range xs {
		out[i] = n.tensor(n.s, x, n.place)
	}
	return out
}

func wrapAll(vs []ir.Value) []*value {
	out := make([]*value, len(vs))
	for i, v := range vs {
		out[i] = &value{v: v}
	}
	return out
}

// iteration is the body of a loop: from the number of the iteration (a scalar i64) and the
// carried values it makes the next values, whether to go on (ir.NoValue: always), and the
// elements of what is collected.
type iteration func(b *ir.Builder, i ir.Value, carried []ir.Value) (next []ir.Value, goOn ir.Value, collected []ir.Value)

// loop describes a loop of at most trip iterations (unlimited: no limit) while goOn is true
// (ir.NoValue: always).
type loop struct {
	trip      ir.Dim   // when it is known before the run
	tripValue ir.Value // else; ir.NoValue when there is no limit
	isKnown   bool
	goOn      ir.Value
	carried   []ir.Value
	body      iteration
}

// run gives the carried values after the loop and what it collected, stacked along a new
// first dim. Short loops of a known length are written out.
func (n *node) run(l loop) (final, collected []ir.Value) {
	if trip, isConst := l.trip.IsConst(); l.isKnown && isConst && l.goOn == ir.NoValue && trip > 0 && trip <= maxUnrolled {
		carried := l.carried
		var rows [][]ir.Value
		for i := range trip {
			next, _, row := l.body(n.b, n.b.Constant(ir.ScalarInt(ir.I64, i)), carried)
			carried, rows = next, append(rows, row)
		}
		for k := range rows[0] {
			column := make([]ir.Value, len(rows))
			for i := range rows {
				column[i] = rows[i][k]
			}
			collected = append(collected, lower.Stack(n.b, 0, column...))
		}
		return carried, collected
	}
	return n.whileLoop(l)
}

// whileLoop makes a while: its values are the iteration number, whether to go on, what is
// carried, and the buffers of what is collected.
func (n *node) whileLoop(l loop) (final, collected []ir.Value) {
	b := n.b
	start := []ir.Value{b.Constant(ir.ScalarInt(ir.I64, 0)), l.goOn}
	if l.goOn == ir.NoValue {
		start[1] = b.Constant(ir.ScalarInt(ir.Bool, 1))
	}
	start = append(start, l.carried...)
	body := n.newBlock()
	params := make([]ir.Value, len(start))
	for i, v := range start {
		params[i] = n.entry.NewValue(b.Type(v))
	}
	next, goOn, rows := l.body(body, params[0], params[2:])
	if len(rows) > 0 && (!l.isKnown || goOn != ir.NoValue || l.goOn != ir.NoValue) {
		n.dataDependent("the number of iterations, and so the size of what the loop collects, is only known when the model runs")
	}
	if goOn == ir.NoValue {
		goOn = params[1]
	}
	for i, v := range next {
		if want := b.Type(l.carried[i]); !b.Type(v).Equal(want) {
			n.unsupportedForm("carried value %d is %s before and %s after an iteration; only loops that keep shapes are supported", i, want, b.Type(v))
		}
	}
	one := body.Constant(ir.ScalarInt(ir.I64, 1))
	results := append([]ir.Value{body.Binary(ir.OpAdd, params[0], one), goOn}, next...)
	for _, row := range rows {
		t := b.Type(row)
		buffer := b.Full(ir.TensorOf(t.DType, append([]ir.Dim{l.trip}, t.Shape...)...), 0)
		param := n.entry.NewValue(b.Type(buffer))
		start, params = append(start, buffer), append(params, param)
		at := slices.Repeat([]ir.Value{body.Constant(ir.ScalarInt(ir.I64, 0))}, t.Rank()+1)
		at[0] = params[0]
		update := body.Reshape(row, append([]ir.Dim{ir.Const(1)}, t.Shape...))
		results = append(results, body.Op(ir.OpDynamicUpdateSlice, nil, nil, append([]ir.Value{param, update}, at...)...)[0])
	}
	body.Block.Params, body.Block.Results = params, results
	condition := n.newBlock()
	for _, v := range start {
		condition.Block.Params = append(condition.Block.Params, n.entry.NewValue(b.Type(v)))
	}
	proceed := condition.Block.Params[1]
	if l.isKnown || l.tripValue != ir.NoValue {
		trip := l.tripValue
		if l.isKnown {
			trip = condition.Dim(l.trip)
		}
		proceed = condition.Binary(ir.OpAnd, condition.Compare(ir.LT, condition.Block.Params[0], trip), proceed)
	}
	condition.Block.Results = []ir.Value{proceed}
	out := b.Op(ir.OpWhile, nil, []*ir.Block{condition.Block, body.Block}, start...)
	return out[2 : 2+len(l.carried)], out[2+len(l.carried):]
}

// loopOp is ONNX's Loop.
func loopOp(n *node) {
	g := n.subgraph("body")
	if len(g.inputs) < 2 || len(g.outputs) < 1 || len(n.p.inputs) < 2 {
		n.wrong("the body takes %d inputs and gives %d outputs", len(g.inputs), len(g.outputs))
	}
	carried := make([]*value, 0, len(n.p.inputs))
	for i := 2; i < len(n.p.inputs); i++ {
		x := n.input(i)
		if x == nil {
			n.wrong("input %d is missing", i)
		}
		carried = append(carried, n.shared(x))
	}
	if len(g.outputs) < 1+len(carried) {
		n.wrong("the body gives %d outputs for %d carried values", len(g.outputs), len(carried))
	}
	l := loop{tripValue: ir.NoValue, goOn: ir.NoValue}
	if n.has(0) {
		l.tripValue = n.b.Convert(n.scalarIn(0), ir.I64)
		if d, ok := n.known.Dims(l.tripValue); ok {
			l.trip, l.isKnown = lower.MaxDim(n.program, d[0], ir.Const(0)), true
		}
	}
	if n.has(1) {
		l.goOn = n.b.Convert(n.scalarIn(1), ir.Bool)
	}
	if n.unrollLoop(g, l, carried) {
		return
	}
	l.carried = n.tensors(carried)
	if l.goOn != ir.NoValue {
		if c, ok := n.known.Ints(l.goOn); ok && c[0] != 0 {
			l.goOn = ir.NoValue
		}
	}
	l.body = func(b *ir.Builder, i ir.Value, values []ir.Value) ([]ir.Value, ir.Value, []ir.Value) {
		condition := b.Constant(ir.ScalarInt(ir.Bool, 1)) // within an iteration it is true
		outs := n.tensors(n.body(g, b, append(wrapAll([]ir.Value{i, condition}), wrapAll(values)...), "body"))
		goOn := b.Convert(b.Reshape(outs[0], nil), ir.Bool)
		if c, ok := n.known.Ints(goOn); ok && c[0] != 0 {
			goOn = ir.NoValue
		}
		return outs[1 : 1+len(values)], goOn, outs[1+len(values):]
	}
	final, collected := n.whileLoop(l)
	n.set(append(final, collected...)...)
}

// unrollLoop writes a loop out when its length is known and short, or when it carries
// sequences; false when it cannot.
func (n *node) unrollLoop(g *graphProto, l loop, carried []*value) bool {
	limit := int64(maxUnrolled)
	sequences := slices.ContainsFunc(carried, func(x *value) bool { return x.sequence != nil })
	if sequences {
		limit = 1 << 12
	}
	trip, isConst := l.trip.IsConst()
	if l.isKnown && (!isConst || trip > limit) || !l.isKnown && l.tripValue != ir.NoValue {
		return false
	}
	if !l.isKnown {
		trip = limit + 1
	}
	goOn := l.goOn
	rows := make([][]ir.Value, len(g.outputs)-1-len(carried))
	for i := int64(0); i < trip; i++ {
		if goOn != ir.NoValue {
			c, ok := n.known.Ints(goOn)
			if !ok {
				return false
			}
			if c[0] == 0 {
				break
			}
		}
		if i == limit {
			return false
		}
		condition := n.b.Constant(ir.ScalarInt(ir.Bool, 1))
		outs := n.body(g, n.b, append(wrapAll([]ir.Value{n.b.Constant(ir.ScalarInt(ir.I64, i)), condition}), carried...), "body")
		goOn = n.b.Convert(n.b.Reshape(n.tensors(outs[:1])[0], nil), ir.Bool)
		carried = outs[1 : 1+len(carried)]
		for k, x := range n.tensors(outs[1+len(carried):]) {
			rows[k] = append(rows[k], x)
		}
	}
	n.outs = append(n.outs, carried...)
	for _, column := range rows {
		if len(column) == 0 {
			n.unsupportedForm("a loop of no iterations that collects elements")
		}
		n.outs = append(n.outs, &value{v: lower.Stack(n.b, 0, column...)})
	}
	return true
}

// scan is ONNX's Scan from version 9 on.
func scan(n *node) {
	n.set(n.scanOver(n.all())...)
}

func (n *node) scanOver(inputs []ir.Value) []ir.Value {
	g := n.subgraph("body")
	scans := int(min(n.int("num_scan_inputs", 0), 1<<20))
	states := len(inputs) - scans
	collects := len(g.outputs) - states
	if scans < 1 || states < 0 || collects < 0 || len(g.inputs) != len(inputs) {
		n.wrong("%d scanned of %d inputs, the body gives %d outputs", scans, len(inputs), len(g.outputs))
	}
	axes, directions := n.intsOr("scan_input_axes", scans, 0), n.intsOr("scan_input_directions", scans, 0)
	outAxes, outDirections := n.intsOr("scan_output_axes", collects, 0), n.intsOr("scan_output_directions", collects, 0)
	var trip ir.Dim
	for i, x := range inputs[states:] {
		axis := n.axis(axes[i], n.b.Rank(x))
		axes[i] = int64(axis)
		size := n.b.Shape(x)[axis]
		if i > 0 {
			n.unifyDims(trip, size)
		}
		if i == 0 {
			trip = size
		}
		if directions[i] == 1 {
			inputs[states+i] = n.b.Reverse(x, axis)
		}
	}
	if trip.Is(0) {
		n.unsupportedForm("a scan over no elements")
	}
	final, collected := n.run(loop{trip: trip, isKnown: true, tripValue: ir.NoValue, goOn: ir.NoValue, carried: inputs[:states],
		body: func(b *ir.Builder, i ir.Value, carried []ir.Value) ([]ir.Value, ir.Value, []ir.Value) {
			args := slices.Clone(carried)
			for k, x := range inputs[states:] {
				args = append(args, n.element(b, x, int(axes[k]), i))
			}
			outs := n.tensors(n.body(g, b, wrapAll(args), "body"))
			return outs[:states], ir.NoValue, outs[states:]
		}})
	for k, x := range collected {
		if outDirections[k] == 1 {
			x = n.b.Reverse(x, 0)
		}
		axis := n.axis(outAxes[k], n.b.Rank(x))
		collected[k] = moveFirst(n.b, x, axis)
	}
	return append(final, collected...)
}

// element takes element i along an axis, which vanishes.
func (n *node) element(b *ir.Builder, x ir.Value, axis int, i ir.Value) ir.Value {
	if at, ok := n.known.Ints(i); ok {
		rest := slices.Delete(slices.Clone(b.Shape(x)), axis, axis+1)
		return b.Reshape(b.SliceAxis(x, axis, ir.Const(at[0]), ir.Const(at[0]+1), 1), rest)
	}
	return b.Take(x, i, axis)
}

// moveFirst moves the first dim to an axis.
func moveFirst(b *ir.Builder, x ir.Value, axis int) ir.Value {
	perm := make([]int, b.Rank(x))
	for i := range perm {
		switch {
		case i < axis:
			perm[i] = i + 1
		case i == axis:
			perm[i] = 0
		default:
			perm[i] = i
		}
	}
	return b.Transpose(x, perm)
}

// scanBatched is Scan of version 8: dim 0 of everything is a batch, dim 1 is scanned.
func scanBatched(n *node) {
	if n.has(0) {
		n.unsupportedForm("sequence lengths")
	}
	n.p = &nodeProto{name: n.p.name, opType: n.p.opType, inputs: n.p.inputs[min(1, len(n.p.inputs)):], outputs: n.p.outputs, attributes: n.p.attributes, index: n.p.index}
	if d := n.ints("directions"); slices.Contains(d, 1) {
		n.unsupportedForm("reverse directions in version 8")
	}
	inputs := n.all()
	batch, ok := n.b.Shape(inputs[0])[0].IsConst()
	if !ok || batch < 1 || batch > maxUnrolled {
		n.unsupportedForm("version 8 with the batch %s", n.b.Shape(inputs[0])[0])
	}
	var columns [][]ir.Value
	for i := range batch {
		slices := make([]ir.Value, len(inputs))
		for k, x := range inputs {
			n.rankAtLeast(x, 1)
			slices[k] = n.element(n.b, x, 0, n.b.Constant(ir.ScalarInt(ir.I64, i)))
		}
		for k, v := range n.scanOver(slices) {
			if k >= len(columns) {
				columns = append(columns, nil)
			}
			columns[k] = append(columns[k], v)
		}
	}
	outs := make([]ir.Value, len(columns))
	for k, column := range columns {
		outs[k] = lower.Stack(n.b, 0, column...)
	}
	n.set(outs...)
}
