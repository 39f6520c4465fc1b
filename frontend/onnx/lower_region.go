package onnx

import (
	"math"
	"slices"

	"weft/frontend/lower"
	"weft/ir"
)

func regions() map[string][]version {
	return map[string][]version{"RoiAlign": {{10, roiAlign}}, "DeformConv": one(deformConv), "Det": one(determinant)}
}

// roiAlign averages (or takes the largest of) samples on a grid in each bin of each region.
func roiAlign(n *node) {
	x, regions := n.in(0), n.in(1)
	b := n.b
	n.rankIs(x, 4)
	n.rankIs(regions, 2)
	height, width, ratio := n.int("output_height", 1), n.int("output_width", 1), n.int("sampling_ratio", 0)
	if height < 1 || width < 1 || height > 1<<16 || width > 1<<16 || ratio > 1<<10 {
		n.wrong("output %d x %d, sampling_ratio %d", height, width, ratio)
	}
	if ratio < 1 {
		n.dataDependent("sampling_ratio 0 takes as many samples as a region is large")
	}
	half := n.version >= 16 && n.choice("coordinate_transformation_mode", "half_pixel", "half_pixel", "output_half_pixel") == "half_pixel"
	n.rankIs(n.in(2), 1)
	s := &sampler{n: n, x: b.Take(x, n.in(2), 0)}
	count := b.Shape(regions)[0]
	shape := []ir.Dim{count, ir.Const(height * ratio), ir.Const(width * ratio)}
	corner := func(i int64) ir.Value {
		v := lower.Scale(b, b.SliceAxis(regions, 1, ir.Const(i), ir.Const(i+1), 1), n.float("spatial_scale", 1))
		if half {
			v = lower.AddScalar(b, v, -0.5)
		}
		return b.Broadcast(b.Reshape(v, []ir.Dim{count}), shape, []int{0})
	}
	// position is start + (i + 0.5) * size / samples along one axis.
	position := func(low, high int64, axis int, samples int64) ir.Value {
		start := corner(low)
		size := b.Binary(ir.OpSubtract, corner(high), start)
		if !half {
			size = b.Binary(ir.OpMaximum, size, b.FullLike(size, 1))
		}
		i := lower.Scale(b, lower.AddScalar(b, b.Iota(b.DType(size), shape, axis), 0.5), 1/float64(samples))
		return b.Binary(ir.OpAdd, start, b.Binary(ir.OpMultiply, i, size))
	}
	rows, columns := position(1, 3, 1, height*ratio), position(0, 2, 2, width*ratio)
	largest := n.choice("mode", "avg", "avg", "max") == "max"
	y := s.combine([][]tap{s.edgeTaps(0, rows), s.edgeTaps(1, columns)}, largest)
	bins := b.Reshape(y, []ir.Dim{count, b.Shape(x)[1], ir.Const(height), ir.Const(ratio), ir.Const(width), ir.Const(ratio)})
	if largest {
		n.set(b.Reduce(ir.Max, bins, 3, 5))
		return
	}
	n.set(lower.Mean(b, bins, []int{3, 5}, false))
}

// edgeTaps gives the two neighbours of positions of which those up to one element outside
// count as the edge, and others as zero.
func (s *sampler) edgeTaps(dim int, v ir.Value) []tap {
	b := s.n.b
	last := lower.AddScalar(b, s.size(dim, v), -1)
	outside := b.Binary(ir.OpOr, lower.CompareScalar(b, ir.LT, v, -1), b.Compare(ir.GT, v, s.size(dim, v)))
	v = b.Op(ir.OpClamp, nil, nil, b.FullLike(v, 0), v, last)[0]
	base := b.Unary(ir.OpFloor, v)
	fraction := b.Binary(ir.OpSubtract, v, base)
	zero := b.FullLike(v, 0)
	next := b.Binary(ir.OpMinimum, lower.AddScalar(b, base, 1), last)
	return []tap{
		{b.Convert(base, ir.I64), b.Select(outside, zero, b.Binary(ir.OpSubtract, b.FullLike(v, 1), fraction))},
		{b.Convert(next, ir.I64), b.Select(outside, zero, fraction)},
	}
}

// zeroTaps gives the two neighbours of positions, those outside with weight zero.
func (s *sampler) zeroTaps(dim int, v ir.Value) []tap {
	b := s.n.b
	last := lower.AddScalar(b, s.size(dim, v), -1)
	base := b.Unary(ir.OpFloor, v)
	fraction := b.Binary(ir.OpSubtract, v, base)
	out := []tap{{base, b.Binary(ir.OpSubtract, b.FullLike(v, 1), fraction)}, {lower.AddScalar(b, base, 1), fraction}}
	for i, t := range out {
		outside := b.Binary(ir.OpOr, lower.CompareScalar(b, ir.LT, t.index, 0), b.Compare(ir.GT, t.index, last))
		out[i].weight = b.Select(outside, b.FullLike(t.weight, 0), t.weight)
		out[i].index = b.Convert(b.Op(ir.OpClamp, nil, nil, b.FullLike(v, 0), t.index, last)[0], ir.I64)
	}
	return out
}

// deformConv is a convolution in two dims whose kernel's elements are moved by offsets.
func deformConv(n *node) {
	x, w, offset := n.in(0), n.in(1), n.in(2)
	b := n.b
	n.rankIs(x, 4)
	n.rankIs(w, 4)
	n.rankIs(offset, 4)
	kernel := n.kernelOf(w)
	spec := n.window(x, kernel)
	taps, groups, moved := kernel[0]*kernel[1], n.int("group", 1), n.int("offset_group", 1)
	channels, ok := b.Shape(x)[1].IsConst()
	if !ok || groups < 1 || moved < 1 || channels%groups != 0 || channels%moved != 0 || moved > 1<<12 || taps > 1<<12 {
		n.wrong("%d groups, %d offset groups of %s", groups, moved, b.Type(x))
	}
	batch, rows, columns := b.Shape(x)[0], b.Shape(offset)[2], b.Shape(offset)[3]
	offset = n.sameDims(offset, []ir.Dim{batch, ir.Const(moved * taps * 2), rows, columns})
	shape := []ir.Dim{batch, ir.Const(taps), rows, columns}
	split := b.Reshape(offset, []ir.Dim{batch, ir.Const(moved), ir.Const(taps), ir.Const(2), rows, columns})
	each := channels / moved
	var parts []ir.Value
	for g := range moved {
		s := &sampler{n: n, x: b.SliceAxis(x, 1, ir.Const(g*each), ir.Const((g+1)*each), 1)}
		var neighbours [][]tap
		for dim := range 2 {
			v := b.SliceAxis(b.SliceAxis(split, 1, ir.Const(g), ir.Const(g+1), 1), 3, ir.Const(int64(dim)), ir.Const(int64(dim+1)), 1)
			v = b.Reshape(v, shape)
			t := b.Iota(ir.I64, shape, 1)
			if dim == 0 {
				t = b.Binary(ir.OpDivide, t, b.FullLike(t, float64(kernel[1])))
			} else {
				t = b.Binary(ir.OpRemainder, t, b.FullLike(t, float64(kernel[1])))
			}
			base := b.Binary(ir.OpAdd, lower.Scale(b, b.Iota(ir.I64, shape, 2+dim), float64(spec.strides[dim])), lower.Scale(b, t, float64(spec.dilations[dim])))
			base = b.Binary(ir.OpSubtract, base, b.Broadcast(b.Dim(spec.low[dim]), shape, nil))
			neighbours = append(neighbours, s.zeroTaps(dim, b.Binary(ir.OpAdd, v, b.Convert(base, b.DType(v)))))
		}
		y := s.combine(neighbours, false) // [N, channels, taps, rows, columns]
		if n.has(4) {
			mask := n.sameDims(n.in(4), []ir.Dim{batch, ir.Const(moved * taps), rows, columns})
			mask = b.SliceAxis(mask, 1, ir.Const(g*taps), ir.Const((g+1)*taps), 1)
			y = b.Binary(ir.OpMultiply, y, b.Broadcast(mask, b.Shape(y), []int{0, 2, 3, 4}))
		}
		parts = append(parts, y)
	}
	moving := b.Concatenate(1, parts...)
	n.set(lower.AddBias(b, lower.Channels(b, n.opt(3), 4), func(to ir.DType) ir.Value { return n.columnProduct(moving, w, groups, to) }, b.DType(x)))
}

// columnProduct contracts columns [N, C, taps, rows, columns] with weights [M, C/groups, ...].
func (n *node) columnProduct(x, w ir.Value, groups int64, to ir.DType) ir.Value {
	b := n.b
	s, g := b.Shape(x), ir.Const(groups)
	per := s[1].FloorDiv(g).Mul(s[2])
	outs := b.Shape(w)[0].FloorDiv(g)
	x = b.Reshape(x, []ir.Dim{s[0], g, per, s[3].Mul(s[4])})
	w = b.Reshape(w, []ir.Dim{g, outs, per})
	y := b.DotGeneral(w, x, &ir.DotAttrs{LhsBatch: []int{0}, RhsBatch: []int{1}, LhsContract: []int{2}, RhsContract: []int{2}, To: to}) // [g, M/g, N, pixels]
	return b.Reshape(b.Transpose(y, []int{2, 0, 1, 3}), []ir.Dim{s[0], g.Mul(outs), s[3], s[4]})
}

// maxDeterminant is the largest matrix whose determinant is written out.
const maxDeterminant = 5

// determinant expands along the first row; matrices are the last two dims.
func determinant(n *node) {
	x := n.in(0)
	b := n.b
	n.rankAtLeast(x, 2)
	shape := b.Shape(x)
	rank := len(shape)
	size, ok := shape[rank-1].IsConst()
	if !ok || !shape[rank-2].Is(size) || size < 1 || size > maxDeterminant {
		n.unsupportedForm("determinants of %s; matrices of constant size up to %d are supported", b.Type(x), maxDeterminant)
	}
	at := func(row, column int64) ir.Value {
		v := b.SliceAxis(x, rank-2, ir.Const(row), ir.Const(row+1), 1)
		return b.Reshape(b.SliceAxis(v, rank-1, ir.Const(column), ir.Const(column+1), 1), shape[:rank-2])
	}
	var expand func(row int64, columns []int64) ir.Value
	expand = func(row int64, columns []int64) ir.Value {
		if len(columns) == 1 {
			return at(row, columns[0])
		}
		sum := ir.NoValue
		for i, c := range columns {
			minor := expand(row+1, slices.Delete(slices.Clone(columns), i, i+1))
			term := b.Binary(ir.OpMultiply, lower.Scale(b, at(row, c), math.Pow(-1, float64(i))), minor)
			if sum == ir.NoValue {
				sum = term
			} else {
				sum = b.Binary(ir.OpAdd, sum, term)
			}
		}
		return sum
	}
	columns := make([]int64, size)
	for i := range columns {
		columns[i] = int64(i)
	}
	n.set(expand(0, columns))
}
