package merge

import (
	"slices"

	"weft/ir"
	"weft/passes/internal/sizing"
)

const (
	// tileRows and tileColumns are the tile of a block that multiplies near the peak rate.
	tileRows, tileColumns = 128, 256
	// waves is the number of waves of blocks below which a product is small: it has few blocks for the multiprocessors, or takes
	// smaller tiles, which are slower, and much of its time is the way of the first tiles and the storing of the last.
	waves = 2
	// mostWaves bounds a merged product. One of so many waves keeps a GPU busy alone; another product in its last wave gains
	// next to nothing, while its result stays in memory as long as the other's.
	mostWaves = 8
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
	down := sizing.Ceil(sizing.Estimate(f.program, rows), tileRows)
	small, columns := false, int64(0)
	for _, c := range g.members {
		small = small || down*sizing.Ceil(c.columns, tileColumns) < waves*sizing.Multiprocessors
		columns += c.columns
	}
	return small && down*sizing.Ceil(columns, tileColumns) <= mostWaves*sizing.Multiprocessors
}
