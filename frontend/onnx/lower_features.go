package onnx

import (
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

// features are operators that prepare what classical models take.
func features() map[string][]version {
	return map[string][]version{
		"TfIdfVectorizer":                  {{9, tfIdfVectorizer}},
		"ai.onnx.ml.ArrayFeatureExtractor": one(arrayFeatureExtractor),
		"ai.onnx.ml.Binarizer":             one(binarizer),
	}
}

// binarizer is 1 where an element is above the threshold, else 0. Integers are compared as
// reals: the threshold may lie between two.
func binarizer(n *node) {
	x := n.in(0)
	b := n.b
	wide := x
	if !b.DType(x).IsFloat() {
		wide = b.Convert(x, ir.F64)
	}
	n.set(b.Convert(lower.CompareScalar(b, ir.GT, wide, n.float("threshold", 0)), b.DType(x)))
}

// arrayFeatureExtractor picks elements of the last dim; of a vector it makes one row.
func arrayFeatureExtractor(n *node) {
	x, at := n.in(0), n.in(1)
	b := n.b
	n.rankAtLeast(x, 1)
	last := b.Rank(x) - 1
	at = b.Reshape(at, []ir.Dim{b.Type(at).Numel()})
	y := b.Take(x, lower.WrapIndex(b, at, b.Shape(x)[last]), last)
	if last == 0 {
		y = b.Reshape(y, append([]ir.Dim{ir.Const(1)}, b.Shape(y)...))
	}
	n.set(y)
}

// Limits of a TfIdfVectorizer: operations over all distances and elements of n-grams, n-grams
// that count for one coordinate, and coordinates times the largest number of those.
const (
	maxGramSteps   = 1 << 12
	maxGramsOfOne  = 1 << 6
	maxCoordinates = 1 << 22
)

// grams are the n-grams of one size in a pool, one after another.
type grams struct {
	size  int64
	first int64   // the number of the first among those of all sizes
	keys  []int64 // size elements each
}

// gramPool reads the pool of a TfIdfVectorizer, and tells how many n-grams it has: those of
// size i+1 begin at ngram_counts[i].
func (n *node) gramPool() (pool []grams, count int64) {
	if n.hasAttr("pool_strings") {
		n.unsupportedForm("a pool of strings; map words to numbers before the model")
	}
	keys, starts := n.ints("pool_int64s"), n.ints("ngram_counts")
	for i, start := range starts {
		end := int64(len(keys))
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		size := int64(i + 1)
		if start < 0 || end < start || end > int64(len(keys)) || (end-start)%size != 0 {
			n.wrong("ngram_counts %v of a pool of %d", starts, len(keys))
		}
		if end > start {
			pool = append(pool, grams{size, count, keys[start:end]})
		}
		count += (end - start) / size
	}
	return pool, count
}

// tfIdfVectorizer counts how often n-grams of a pool occur in each row, at all distances
// between their elements up to max_skip_count+1.
func tfIdfVectorizer(n *node) {
	b := n.b
	x := b.Convert(n.in(0), ir.I64)
	flat := b.Rank(x) == 1
	if flat {
		x = b.Reshape(x, []ir.Dim{ir.Const(1), b.Shape(x)[0]})
	}
	n.rankIs(x, 2)
	length, ok := b.Shape(x)[1].IsConst()
	if !ok {
		n.unsupportedForm("rows of %s elements: give the dim a size with --dim", b.Shape(x)[1])
	}
	pool, count := n.gramPool()
	shortest, longest, skips := n.int("min_gram_length", 1), n.int("max_gram_length", 1), n.int("max_skip_count", 0)
	if shortest < 1 || longest < shortest || skips < 0 {
		n.wrong("n-grams of %d to %d elements, %d skips", shortest, longest, skips)
	}
	zero := b.Full(ir.TensorOf(ir.F32, b.Shape(x)[0], ir.Const(1)), 0)
	counts := []ir.Value{}
	steps := int64(0)
	for _, g := range pool {
		total := b.Broadcast(b.Reshape(zero, []ir.Dim{b.Shape(x)[0]}), []ir.Dim{b.Shape(x)[0], ir.Const(int64(len(g.keys)) / g.size)}, []int{0})
		distances := min(skips, length) + 1
		if g.size == 1 {
			distances = 1
		}
		for d := int64(1); d <= distances && (g.size-1)*d < length && g.size >= shortest && g.size <= longest; d++ {
			if steps += g.size; steps > maxGramSteps {
				n.unsupportedForm("more than %d comparisons of n-grams", maxGramSteps)
			}
			total = b.Binary(ir.OpAdd, total, n.occurrences(x, g, d, length))
		}
		counts = append(counts, total)
	}
	y := n.byCoordinate(n.weighed(b.Concatenate(1, append(counts, zero)...), count), count)
	if flat {
		y = b.Reshape(y, b.Shape(y)[1:])
	}
	n.set(y)
}

// occurrences counts n-grams [K] in the rows of x [N, length], whose elements are d apart: f32[N, K].
func (n *node) occurrences(x ir.Value, g grams, d, length int64) ir.Value {
	b := n.b
	count, windows := int64(len(g.keys))/g.size, length-(g.size-1)*d
	shape := []ir.Dim{b.Shape(x)[0], ir.Const(windows), ir.Const(count)}
	found := ir.NoValue
	for j := range g.size {
		column := make([]int64, count)
		for k := range column {
			column[k] = g.keys[int64(k)*g.size+j]
		}
		element := b.SliceAxis(x, 1, ir.Const(j*d), ir.Const(j*d+windows), 1)
		same := b.Compare(ir.EQ, b.Broadcast(element, shape, []int{0, 1}), b.Broadcast(b.Constant(ir.I64s(column, count)), shape, []int{2}))
		if found != ir.NoValue {
			same = b.Binary(ir.OpAnd, found, same)
		}
		found = same
	}
	n.check(found)
	return b.Reduce(ir.Sum, b.Convert(found, ir.F32), 1)
}

// weighed applies the mode to counts [N, count+1], whose last column is zero.
func (n *node) weighed(counts ir.Value, count int64) ir.Value {
	b := n.b
	mode := n.choice("mode", "TF", "TF", "IDF", "TFIDF")
	if mode == "TF" {
		return counts
	}
	if mode == "IDF" {
		counts = b.Convert(lower.CompareScalar(b, ir.GT, counts, 0), ir.F32)
	}
	list := n.floats("weights")
	if list == nil {
		return counts
	}
	if int64(len(list)) != count {
		n.wrong("%d weights for %d n-grams", len(list), count)
	}
	weights := ir.NewTensor(ir.F32, count+1)
	for i, w := range list {
		weights.SetFloat(int64(i), w)
	}
	return b.Binary(ir.OpMultiply, counts, b.Broadcast(b.Constant(weights), b.Shape(counts), []int{1}))
}

// byCoordinate moves the values of n-grams, the columns of x, to their coordinates; the last
// column is zero. Counts of one coordinate add up.
func (n *node) byCoordinate(x ir.Value, count int64) ir.Value {
	to := n.ints("ngram_indexes")
	if int64(len(to)) != count || count == 0 {
		n.wrong("%d ngram_indexes for %d n-grams", len(to), count)
	}
	size := slices.Max(to) + 1
	if slices.Min(to) < 0 || size < 1 || size > maxCoordinates {
		n.wrong("ngram_indexes from %d to %d", slices.Min(to), slices.Max(to))
	}
	from := [][]int64{}
	used := make([]int, size)
	for i, coordinate := range to {
		k := used[coordinate]
		if k == maxGramsOfOne || int64(k+1)*size > maxCoordinates {
			n.unsupportedForm("%d n-grams of one coordinate of %d", k+1, size)
		}
		if k == len(from) {
			from = append(from, slices.Repeat([]int64{count}, int(size)))
		}
		from[k][coordinate] = int64(i)
		used[coordinate]++
	}
	combine := ir.OpAdd
	if n.str("mode", "TF") == "IDF" {
		combine = ir.OpMaximum // what occurs counts once
		if len(from) > 1 && n.hasAttr("weights") {
			n.unsupportedForm("weights of several n-grams of one coordinate in the mode IDF")
		}
	}
	y := ir.NoValue
	for _, list := range from {
		part := n.b.Take(x, n.b.Constant(ir.I64s(list, size)), 1)
		if y != ir.NoValue {
			part = n.b.Binary(combine, y, part)
		}
		y = part
	}
	return y
}
