package fx

import (
	"slices"

	"weft/ir"
)

func (c *call) constDim(t *tensor, axis int) int64 {
	shape := c.b.Shape(t.read(c.b))
	if axis >= len(shape) {
		c.bad("a scalar cannot be cut")
	}
	n, ok := shape[axis].IsConst()
	c.require(ok, "along a dim of symbolic size")
	return n
}

// checkPieces wants as many pieces as the node names, which bounds them by the file.
func (c *call) checkPieces(n int) {
	if names := len(c.outputNames()); n < names || n > max(names, 1) {
		c.bad("%d pieces, the node names %d", n, names)
	}
}

// pieces cuts a dim into parts of a size, the last one smaller.
func (c *call) pieces(t *tensor, axis int, size int64) []*tensor {
	if size < 1 {
		c.bad("pieces of size %d", size)
	}
	shape := c.b.Shape(t.read(c.b))
	if axis >= len(shape) {
		c.bad("a scalar cannot be cut")
	}
	n, known := shape[axis].IsConst()
	if !known {
		return c.symbolicPieces(t, axis, size)
	}
	c.checkPieces(int(max((n+size-1)/size, 1)))
	var sizes []ir.Dim
	for at := int64(0); at < n || at == 0; at += size {
		sizes = append(sizes, ir.Const(min(size, n-at)))
	}
	return c.cut(t, axis, sizes)
}

// symbolicPieces cuts a dim of symbolic size into as many parts as the node names: all of the
// given size but the last.
func (c *call) symbolicPieces(t *tensor, axis int, size int64) []*tensor {
	rest := c.b.Shape(t.read(c.b))[axis]
	n := len(c.outputNames())
	sizes := make([]ir.Dim, n)
	for i := range sizes {
		sizes[i] = ir.Const(size)
		if i == n-1 {
			sizes[i] = rest
		}
		rest = rest.AddConst(-size)
	}
	return c.cut(t, axis, sizes)
}

// sections cuts a dim into a number of parts, the first ones larger by one.
func (c *call) sections(t *tensor, axis int) []*tensor {
	n, sections := c.constDim(t, axis), c.int("sections", 1)
	c.checkPieces(int(sections))
	var sizes []ir.Dim
	for i := range sections {
		size := n / sections
		if i < n%sections {
			size++
		}
		sizes = append(sizes, ir.Const(size))
	}
	return c.cut(t, axis, sizes)
}

// cutAt cuts a dim at places, which count from the end when negative.
func (c *call) cutAt(t *tensor, axis int, places []int64) []*tensor {
	n := c.constDim(t, axis)
	c.checkPieces(len(places) + 1)
	var parts []*tensor
	start := int64(0)
	for _, end := range append(slices.Clone(places), n) {
		if end < 0 {
			end += n
		}
		end = min(max(end, 0), n)
		parts = append(parts, newView(c.b, t, sliceView{axis, ir.Const(min(start, end)), ir.Const(end), 1}))
		start = end
	}
	return parts
}

func splitSizes(c *call, t *tensor) []*tensor {
	return c.cut(t, c.axis("dim", 0, c.rank(t)), c.sizes("split_sizes"))
}

func (c *call) cut(t *tensor, axis int, sizes []ir.Dim) []*tensor {
	if axis >= c.rank(t) {
		c.bad("a scalar cannot be cut")
	}
	c.checkPieces(len(sizes))
	at := ir.Const(0)
	var parts []*tensor
	for _, size := range sizes {
		limit := at.Add(size)
		parts = append(parts, newView(c.b, t, sliceView{axis, at, limit, 1}))
		at = limit
	}
	return parts
}
