package shard

import (
	"slices"

	"weft/ir"
)

// divided tells whether any axis divides the parts.
func divided(parts []ir.Part) bool {
	return slices.ContainsFunc(parts, func(p ir.Part) bool { return len(p.Axes) > 0 })
}

// axesOf lists the axes that divide the parts.
func axesOf(parts []ir.Part) []string {
	var axes []string
	for _, p := range parts {
		axes = append(axes, p.Axes...)
	}
	return axes
}

func sizeOf(parts []ir.Part) ir.Dim {
	n := ir.Const(1)
	for _, p := range parts {
		n = n.Mul(p.Size)
	}
	return n
}

// normal joins neighbouring parts that no axis divides, and such a part to one before it that is
// divided evenly; it drops those of size 1. So equal divisions have equal parts.
func (pt *partitioner) normal(parts []ir.Part) []ir.Part {
	var out []ir.Part
	for _, p := range parts {
		if len(p.Axes) == 0 {
			if p.Size.Is(1) {
				continue
			}
			if n := len(out); n > 0 && pt.even(out[n-1]) {
				out[n-1].Size = out[n-1].Size.Mul(p.Size)
				continue
			}
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return []ir.Part{{Size: sizeOf(parts)}}
	}
	return out
}

// without takes axes away from parts.
func (pt *partitioner) without(parts []ir.Part, drop func(axis string) bool) []ir.Part {
	out := make([]ir.Part, len(parts))
	for i, p := range parts {
		out[i] = ir.Part{Size: p.Size, Axes: slices.DeleteFunc(slices.Clone(p.Axes), drop)}
	}
	return pt.normal(out)
}

// whole is the parts of a dim that no axis divides.
func whole(d ir.Dim) []ir.Part { return []ir.Part{{Size: d}} }

// even tells whether the ranks along axes divide a part into equal shares.
func (pt *partitioner) even(p ir.Part) bool {
	return p.Size.DivisibleBy(pt.mesh.Extent(p.Axes), pt.program.Divisor)
}

// regroup divides the same row-major elements, which have parts in one shape, in another shape:
// each dim gets the factors that make it up, and an axis stays where its factor stays whole or is
// cut at a multiple of its ranks. An axis that cannot stay is dropped.
func (pt *partitioner) regroup(from ir.Sharding, to []ir.Dim) ir.Sharding {
	var queue []ir.Part
	for _, parts := range from {
		for _, p := range parts {
			if !p.Size.Is(1) || len(p.Axes) > 0 {
				queue = append(queue, p)
			}
		}
	}
	out := make(ir.Sharding, len(to))
	for i, d := range to {
		parts, left, ok := pt.take(queue, d)
		if !ok {
			// Sizes that cannot be compared: nothing from here on stays divided.
			for j := i; j < len(to); j++ {
				out[j] = whole(to[j])
			}
			return out
		}
		out[i], queue = pt.normal(parts), left
	}
	return out
}

// take takes factors off a list until their product is d.
func (pt *partitioner) take(queue []ir.Part, d ir.Dim) (parts, left []ir.Part, ok bool) {
	if d.Is(1) && len(queue) > 0 && queue[0].Size.Is(1) {
		return queue[:1:1], queue[1:], true // one element that some rank has
	}
	for !d.Is(1) {
		if len(queue) == 0 || d.Is(0) || queue[0].Size.Is(0) {
			return nil, nil, false
		}
		p := queue[0]
		if rest, divides := d.DivExact(p.Size); divides {
			parts, queue, d = append(parts, p), queue[1:], rest
			continue
		}
		minor, divides := p.Size.DivExact(d)
		if !divides {
			return nil, nil, false
		}
		major := ir.Part{Size: d, Axes: p.Axes}
		if len(p.Axes) > 0 && !pt.even(major) {
			major.Axes = nil
		}
		parts = append(parts, major)
		queue = append([]ir.Part{{Size: minor}}, queue[1:]...)
		d = ir.Const(1)
	}
	if len(parts) == 0 {
		parts = whole(d)
	}
	return parts, queue, true
}

// blocks cuts a dim into count equal stretches and divides each like parts: what a concatenation
// of count tensors is.
func (pt *partitioner) blocks(count ir.Dim, parts []ir.Part) []ir.Part {
	return pt.normal(append([]ir.Part{{Size: count}}, parts...))
}
