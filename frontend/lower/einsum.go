package lower

import (
	"fmt"
	"slices"
	"strings"

	"weft/ir"
)

// labelled is a value whose dims have the labels of an einsum equation.
type labelled struct {
	v      ir.Value
	labels []rune
}

// Einsum contracts operands from left to right by an equation such as "bij,bjk->bik", with
// ellipses and repeated labels, as numpy.einsum does.
func Einsum(b *ir.Builder, equation string, xs ...ir.Value) (ir.Value, error) {
	terms, output, err := parseEquation(b, strings.ReplaceAll(equation, " ", ""), xs)
	if err != nil {
		return ir.NoValue, err
	}
	for i, t := range terms {
		terms[i] = diagonals(b, t)
	}
	sum := terms[0]
	for i := range terms {
		needed := slices.Clone(output)
		for _, later := range terms[i+1:] {
			needed = append(needed, later.labels...)
		}
		if i > 0 {
			sum = product(b, sum, summed(b, terms[i], append(slices.Clone(needed), sum.labels...)), needed)
		}
		sum = summed(b, sum, needed)
	}
	permutation := make([]int, len(output))
	for i, l := range output {
		permutation[i] = slices.Index(sum.labels, l)
	}
	return b.Transpose(sum.v, permutation), nil
}

// parseEquation labels the operands and the output. The dims of an ellipsis get the labels
// 1, 2, ... counted from the last.
func parseEquation(b *ir.Builder, equation string, xs []ir.Value) (terms []labelled, output []rune, err error) {
	left, right, explicit := strings.Cut(equation, "->")
	parts := strings.Split(left, ",")
	if len(parts) != len(xs) || len(xs) == 0 {
		return nil, nil, fmt.Errorf("equation %q has %d terms for %d operands", equation, len(parts), len(xs))
	}
	widest := 0
	count := map[rune]int{}
	for i, part := range parts {
		before, after, dots := strings.Cut(part, "...")
		open := b.Rank(xs[i]) - len(before) - len(after)
		if open < 0 || open > 0 && !dots || strings.ContainsFunc(before+after, notLetter) {
			return nil, nil, fmt.Errorf("term %q of equation %q does not fit %s", part, equation, b.Type(xs[i]))
		}
		widest = max(widest, open)
		terms = append(terms, labelled{xs[i], slices.Concat([]rune(before), ellipsis(open), []rune(after))})
		for _, l := range before + after {
			count[l]++
		}
	}
	if !explicit {
		for l, n := range count {
			if n == 1 {
				output = append(output, l)
			}
		}
		slices.Sort(output)
		return terms, append(ellipsis(widest), output...), nil
	}
	before, after, dots := strings.Cut(right, "...")
	output = []rune(before)
	if dots {
		output = append(output, ellipsis(widest)...)
	}
	output = append(output, []rune(after)...)
	for i, l := range output {
		known := slices.ContainsFunc(terms, func(t labelled) bool { return slices.Contains(t.labels, l) })
		if !known || slices.Contains(output[:i], l) {
			return nil, nil, fmt.Errorf("the output of equation %q repeats a label or has one that no operand has", equation)
		}
	}
	return terms, output, nil
}

func notLetter(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }

func ellipsis(n int) []rune {
	labels := make([]rune, n)
	for i := range labels {
		labels[i] = rune(n - i)
	}
	return labels
}

// diagonals merges dims with the same label.
func diagonals(b *ir.Builder, x labelled) labelled {
	for i := 0; i < len(x.labels); i++ {
		for j := len(x.labels) - 1; j > i; j-- {
			if x.labels[j] != x.labels[i] {
				continue
			}
			// Keep the elements where both indices are equal, and sum over the second.
			shape := b.Shape(x.v)
			hit := b.Compare(ir.EQ, b.Iota(ir.I64, shape, i), b.Iota(ir.I64, shape, j))
			x.v = b.Reduce(ir.Sum, b.Select(hit, x.v, b.FullLike(x.v, 0)), j)
			x.labels = slices.Delete(slices.Clone(x.labels), j, j+1)
		}
	}
	return x
}

// summed sums over the labels that are not needed.
func summed(b *ir.Builder, x labelled, needed []rune) labelled {
	var axes []int
	var rest []rune
	for i, l := range x.labels {
		if slices.Contains(needed, l) {
			rest = append(rest, l)
		} else {
			axes = append(axes, i)
		}
	}
	return labelled{b.Reduce(ir.Sum, x.v, axes...), rest}
}

// product multiplies two operands and sums over the labels that both have and nothing needs.
func product(b *ir.Builder, x, y labelled, needed []rune) labelled {
	a := &ir.DotAttrs{}
	var batch, free []rune
	xs, ys := slices.Clone(b.Shape(x.v)), slices.Clone(b.Shape(y.v))
	for i, l := range x.labels {
		j := slices.Index(y.labels, l)
		if j < 0 {
			free = append(free, l)
			continue
		}
		// A dim of 1 broadcasts.
		switch {
		case xs[i].Is(1):
			xs[i] = ys[j]
		case ys[j].Is(1):
			ys[j] = xs[i]
		}
		if slices.Contains(needed, l) {
			a.LhsBatch, a.RhsBatch, batch = append(a.LhsBatch, i), append(a.RhsBatch, j), append(batch, l)
		} else {
			a.LhsContract, a.RhsContract = append(a.LhsContract, i), append(a.RhsContract, j)
		}
	}
	for _, l := range y.labels {
		if !slices.Contains(x.labels, l) {
			free = append(free, l)
		}
	}
	v := b.DotGeneral(b.BroadcastTo(x.v, xs), b.BroadcastTo(y.v, ys), a)
	return labelled{v, append(batch, free...)}
}
