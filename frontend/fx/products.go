package fx

import (
	"slices"
	"strings"

	"weft/frontend/lower"
	"weft/ir"
)

// productRules are products of matrices and vectors.
func productRules() map[string]rule {
	matmul := func(x, y string) rule {
		return value(func(c *call) ir.Value { return lower.Matmul(c.b, c.matrix(x), c.matrix(y)) })
	}
	return map[string]rule{
		"linear.default": value(func(c *call) ir.Value {
			return lower.Linear(c.b, c.matrix("input"), c.matrix("weight"), c.optional("bias"))
		}),
		"mm.default":      matmul("self", "mat2"),
		"bmm.default":     matmul("self", "mat2"),
		"matmul.default":  matmul("self", "other"),
		"mv.default":      matmul("self", "vec"),
		"dot.default":     matmul("self", "tensor"),
		"vdot.default":    matmul("self", "other"),
		"addmm.default":   value(func(c *call) ir.Value { return c.addProductOf(c.tensor("mat1"), c.tensor("mat2")) }),
		"addmv.default":   value(func(c *call) ir.Value { return c.addProductOf(c.tensor("mat"), c.tensor("vec")) }),
		"baddbmm.default": value(func(c *call) ir.Value { return c.addProductOf(c.tensor("batch1"), c.tensor("batch2")) }),
		"addbmm.default": value(func(c *call) ir.Value {
			a := &ir.DotAttrs{LhsContract: []int{0, 2}, RhsContract: []int{0, 1}}
			return c.addScaledProduct(func(to ir.DType) ir.Value {
				a.To = to
				return c.b.DotGeneral(c.tensor("batch1"), c.tensor("batch2"), a)
			})
		}),
		"outer.default": value((*call).outer),
		"ger.default":   value((*call).outer),
		"linalg_vecdot.default": value(func(c *call) ir.Value {
			xs := lower.Broadcast(c.b, c.promoted([]ir.Value{c.tensor("x"), c.tensor("y")})...)
			return c.b.Reduce(ir.Sum, c.b.Binary(ir.OpMultiply, xs[0], xs[1]), c.axis("dim", -1, c.b.Rank(xs[0])))
		}),
		"inner.default": value(func(c *call) ir.Value {
			x, y := c.tensor("self"), c.tensor("other")
			if c.b.Rank(x) == 0 || c.b.Rank(y) == 0 {
				return lower.Binary(c.b, ir.OpMultiply, x, y)
			}
			return c.b.DotGeneral(x, y, &ir.DotAttrs{LhsContract: []int{c.b.Rank(x) - 1}, RhsContract: []int{c.b.Rank(y) - 1}})
		}),
		"tensordot.default": value(func(c *call) ir.Value {
			x, y := c.tensor("self"), c.tensor("other")
			x, y = c.summedOnes(x, y)
			a := &ir.DotAttrs{LhsContract: c.permutation("dims_self", c.b.Rank(x)), RhsContract: c.permutation("dims_other", c.b.Rank(y))}
			return c.b.DotGeneral(x, y, a)
		}),
		"einsum.default": value((*call).einsum),
		"kron.default":   value((*call).kron),
	}
}

// matrix is a tensor operand of a product, of rank 1 or more.
func (c *call) matrix(name string) ir.Value {
	x := c.tensor(name)
	if c.b.Rank(x) == 0 {
		c.bad("%s is a scalar", name)
	}
	return x
}

// addProductOf is beta*self + alpha*(x y), rounded once.
func (c *call) addProductOf(x, y ir.Value) ir.Value {
	if c.b.Rank(x) < 2 || c.b.Rank(y) < 1 {
		c.bad("products of rank %d and %d", c.b.Rank(x), c.b.Rank(y))
	}
	batched := c.b.Rank(x) == 3
	a := &ir.DotAttrs{LhsContract: []int{c.b.Rank(x) - 1}, RhsContract: []int{max(c.b.Rank(y)-2, 0)}}
	if batched {
		a.LhsBatch, a.RhsBatch = []int{0}, []int{0}
	}
	return c.addScaledProduct(func(to ir.DType) ir.Value { a.To = to; return c.b.DotGeneral(x, y, a) })
}

// addScaledProduct is beta*self + alpha*product.
func (c *call) addScaledProduct(product func(to ir.DType) ir.Value) ir.Value {
	self := c.tensor("self")
	t := c.b.DType(self)
	alpha, beta := c.float("alpha", 1), c.float("beta", 1)
	if t.IsFloat() && t.Bits() <= 16 && beta != 1 {
		self = c.b.Convert(self, ir.F32)
	}
	if beta != 1 {
		self = lower.Scale(c.b, self, beta)
	}
	if beta == 0 {
		self = ir.NoValue // NaN in self does not count
	}
	return lower.AddBias(c.b, self, func(to ir.DType) ir.Value {
		p := product(to)
		if alpha != 1 {
			p = lower.Scale(c.b, p, alpha)
		}
		return p
	}, t)
}

// summedOnes sums contracted dims of tensordot whose partner has size 1.
func (c *call) summedOnes(x, y ir.Value) (ir.Value, ir.Value) {
	p, q := c.permutation("dims_self", c.b.Rank(x)), c.permutation("dims_other", c.b.Rank(y))
	for i := range min(len(p), len(q)) {
		if p[i] >= c.b.Rank(x) || q[i] >= c.b.Rank(y) {
			c.bad("a dim of a scalar")
		}
		switch a, b := c.b.Shape(x)[p[i]], c.b.Shape(y)[q[i]]; {
		case a.Is(1) && !b.Is(1):
			y = c.b.ReduceKeep(ir.Sum, y, q[i])
		case b.Is(1) && !a.Is(1):
			x = c.b.ReduceKeep(ir.Sum, x, p[i])
		}
	}
	return x, y
}

func (c *call) outer() ir.Value {
	if x := c.tensor("self"); c.b.DType(x) == ir.Bool {
		dims := slices.Concat(c.b.Shape(x), c.b.Shape(c.tensor("vec2")))
		return c.b.Binary(ir.OpAnd, c.b.Broadcast(x, dims, []int{0}), c.b.Broadcast(c.tensor("vec2"), dims, []int{1}))
	}
	return c.b.DotGeneral(c.tensor("self"), c.tensor("vec2"), &ir.DotAttrs{})
}

// kron is the Kronecker product: blocks of other scaled by the elements of self.
func (c *call) kron() ir.Value {
	x, y := c.tensor("self"), c.tensor("other")
	rank := max(c.b.Rank(x), c.b.Rank(y))
	pad := func(v ir.Value) []ir.Dim {
		return slices.Concat(ir.Consts(slices.Repeat([]int64{1}, rank-c.b.Rank(v))...), c.b.Shape(v))
	}
	xs, ys := pad(x), pad(y)
	var xd, yd, out []ir.Dim
	for i := range rank {
		xd, yd = append(xd, xs[i], ir.Const(1)), append(yd, ir.Const(1), ys[i])
		out = append(out, xs[i].Mul(ys[i]))
	}
	v := lower.Broadcast(c.b, c.promoted([]ir.Value{c.b.Reshape(x, xd), c.b.Reshape(y, yd)})...)
	return c.b.Reshape(c.product(v[0], v[1]), out)
}

// labelled is a value whose dims have the labels of an einsum equation.
type labelled struct {
	v      ir.Value
	labels []rune
}

// einsum contracts operands from left to right.
func (c *call) einsum() ir.Value {
	xs := c.tensors("tensors")
	inputs, output, ok := c.parseEquation(strings.ReplaceAll(c.string("equation", ""), " ", ""), xs)
	if !ok || len(inputs) != len(xs) || len(xs) == 0 {
		c.bad("equation %q does not fit %d operands", c.string("equation", ""), len(xs))
	}
	acc := inputs[0]
	for i := 1; i <= len(inputs); i++ {
		needed := slices.Clone(output)
		for _, later := range inputs[i:] {
			needed = append(needed, later.labels...)
		}
		acc = c.sumUnneeded(acc, needed)
		if i < len(inputs) {
			keep := slices.Clone(output)
			for _, later := range inputs[i+1:] {
				keep = append(keep, later.labels...)
			}
			acc = c.contract(acc, c.sumUnneeded(inputs[i], append(slices.Clone(keep), acc.labels...)), keep)
		}
	}
	p := make([]int, len(output))
	for i, l := range output {
		if p[i] = slices.Index(acc.labels, l); p[i] < 0 {
			c.bad("output label %q is in no operand", l)
		}
	}
	if len(p) != len(acc.labels) {
		c.bad("an output label occurs twice")
	}
	return c.b.Transpose(acc.v, p)
}

// parseEquation labels the dims of the operands. Dims of an ellipsis get labels of their own,
// aligned at the end.
func (c *call) parseEquation(equation string, xs []ir.Value) (inputs []labelled, output []rune, ok bool) {
	left, right, explicit := strings.Cut(equation, "->")
	terms := strings.Split(left, ",")
	if len(terms) != len(xs) {
		return nil, nil, false
	}
	widest := 0
	for i, term := range terms {
		named := len(strings.ReplaceAll(term, "...", ""))
		dots := c.b.Rank(xs[i]) - named
		if dots < 0 || dots > 0 && !strings.Contains(term, "...") {
			return nil, nil, false
		}
		widest = max(widest, dots)
		inputs = append(inputs, c.withoutRepeats(labelled{xs[i], expandDots(term, dots)}))
	}
	if explicit {
		return inputs, expandDots(right, widest), true
	}
	// Without an output: dims of the ellipsis, then labels that occur once, in order.
	count := map[rune]int{}
	var once []rune
	for _, l := range left {
		if count[l]++; l != ',' && l != '.' {
			once = append(once, l)
		}
	}
	once = slices.DeleteFunc(once, func(l rune) bool { return count[l] != 1 })
	slices.Sort(once)
	return inputs, append(expandDots("...", widest), once...), true
}

// expandDots writes the labels of a term, with n labels counting down to 0 for an ellipsis.
func expandDots(term string, n int) []rune {
	before, after, found := strings.Cut(term, "...")
	labels := []rune(before)
	if found {
		for i := range n {
			labels = append(labels, rune(n-i)) // control characters are no letters
		}
	}
	return append(labels, []rune(after)...)
}

// withoutRepeats takes the diagonal of labels that occur twice.
func (c *call) withoutRepeats(x labelled) labelled {
	for i := 0; i < len(x.labels); i++ {
		j := slices.Index(x.labels[i+1:], x.labels[i])
		if j < 0 {
			continue
		}
		j += i + 1
		d := c.b.Shape(x.v)[i]
		x.v = diagonalView{row: i, col: j, len: d}.apply(c.b, x.v)
		label := x.labels[i]
		x.labels = slices.Delete(x.labels, j, j+1)
		x.labels = append(slices.Delete(x.labels, i, i+1), label)
		i--
	}
	return x
}

// sumUnneeded sums over labels that nothing else needs.
func (c *call) sumUnneeded(x labelled, needed []rune) labelled {
	var axes []int
	var rest []rune
	for i, l := range x.labels {
		if slices.Contains(needed, l) {
			rest = append(rest, l)
		} else {
			axes = append(axes, i)
		}
	}
	return labelled{c.b.Reduce(ir.Sum, x.v, axes...), rest}
}

// contract multiplies two operands, summing over common labels that are not kept.
func (c *call) contract(x, y labelled, keep []rune) labelled {
	x, y = c.sameSizes(x, y)
	a := &ir.DotAttrs{}
	var batch, free []rune
	for i, l := range x.labels {
		j := slices.Index(y.labels, l)
		switch {
		case j < 0:
			free = append(free, l)
		case slices.Contains(keep, l):
			a.LhsBatch, a.RhsBatch = append(a.LhsBatch, i), append(a.RhsBatch, j)
			batch = append(batch, l)
		default:
			a.LhsContract, a.RhsContract = append(a.LhsContract, i), append(a.RhsContract, j)
		}
	}
	for _, l := range y.labels {
		if !slices.Contains(x.labels, l) {
			free = append(free, l)
		}
	}
	return labelled{c.b.DotGeneral(x.v, y.v, a), append(batch, free...)}
}

// sameSizes broadcasts dims of size 1 that the other operand has larger.
func (c *call) sameSizes(x, y labelled) (labelled, labelled) {
	grow := func(x, y labelled) labelled {
		dims := slices.Clone(c.b.Shape(x.v))
		for i, l := range x.labels {
			if j := slices.Index(y.labels, l); j >= 0 && dims[i].Is(1) {
				dims[i] = c.b.Shape(y.v)[j]
			}
		}
		return labelled{c.b.BroadcastTo(x.v, dims), x.labels}
	}
	x = grow(x, y)
	return x, grow(y, x)
}
