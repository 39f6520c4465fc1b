package merge

import (
	"slices"

	"weft/ir"
)

const (
	// multiprocessors is the number of blocks of a large GPU that run at a time, where a block has a large tile.
	multiprocessors = 132
	// tileRows and tileColumns are the tile of a block that multiplies near the peak rate.
	tileRows, tileColumns = 128, 256
	// waves is the number of waves of blocks below which a product is small: it has few blocks for the multiprocessors, or takes
	// smaller tiles, which are slower, and much of its time is the way of the first tiles and the storing of the last.
	waves = 2
	// mostWaves bounds a merged product. One of so many waves keeps a GPU busy alone; another product in its last wave gains
	// next to nothing, while its result stays in memory as long as the other's.
	mostWaves = 8
	// guess is the size that an unbounded dim is taken for, as by passes/schedule.
	guess = 1024
)

// pays tells whether a group's products are faster as one.
func (f *finder) pays(g *group) bool {
	first := g.members[0].product
	rows, lhs := ir.Const(1), f.entry.Type(first.Operands[0]).Shape
	for axis, d := range lhs {
		if !slices.Contains(first.Attrs.(*ir.DotAttrs).LhsContract, axis) {
			rows = rows.Mul(d)
		}
	}
	down := ceil(f.estimate(rows), tileRows)
	small, columns := false, int64(0)
	for _, c := range g.members {
		small = small || down*ceil(c.columns, tileColumns) < waves*multiprocessors
		columns += c.columns
	}
	return small && down*ceil(columns, tileColumns) <= mostWaves*multiprocessors
}

// estimate is the largest size that a dim expression can have, or a guess.
func (f *finder) estimate(d ir.Dim) int64 {
	return d.Bounds(func(name string) (ir.Range, bool) {
		if r, ok := f.program.Range(name); ok && r.Max < ir.NoBound {
			return r, true
		}
		return ir.Range{Min: guess, Max: guess}, true
	}).Max
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }
