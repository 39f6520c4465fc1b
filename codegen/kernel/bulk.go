package kernel

import (
	"cmp"
	"fmt"
	"slices"

	"weft/ir"
)

// TensorMap is a parameter that describes one of the kernel operation's operands to bulk copies: dims from the innermost one on.
type TensorMap struct {
	Operand int // of the kernel operation
	DType   ir.DType
	Offset  ir.Dim   // bytes
	Dims    []ir.Dim // elements
	Strides []ir.Dim // bytes, of all dims but the first
	Box     []int    // elements that a copy moves
	Swizzle int      // bytes after which chunks of 16 are permuted anew
}

// bulkOperand is an operand whose tiles bulk copies bring to shared memory, in panels.
type bulkOperand struct {
	tile      *sharedTile
	tensorMap *Expr
	order     []int // of rows (0) and outer extents (1 and on) in the tensor map, after columns
}

// bulkOperand adds the tensor map of a tile's operand: columns are adjacent in memory, rows apart, and outer extents say where the
// matrix is. A GPU wants strides that grow: rows and outer extents come in their order, where that is known.
func (g *group) bulkOperand(t *sharedTile, param ir.Value, offset ir.Dim, columns, rows ir.Extent, outer []ir.Extent) *bulkOperand {
	b, size := g.ev.b, int64(t.dtype.Size())
	o := &bulkOperand{tile: t}
	all := append([]ir.Extent{rows}, outer...)
	known := true
	for i, x := range all {
		_, fixed := x.Stride.IsConst()
		if known = known && fixed; i == 0 || !x.Stride.Is(0) {
			o.order = append(o.order, i)
		}
	}
	if known {
		slices.SortStableFunc(o.order, func(i, j int) int {
			x, _ := all[i].Stride.IsConst()
			y, _ := all[j].Stride.IsConst()
			return cmp.Compare(x, y)
		})
	} else {
		slices.SortFunc(o.order, func(i, j int) int { // from the innermost out: rows, then the last of the outer extents
			if i == 0 || j == 0 {
				return cmp.Compare(i, j)
			}
			return cmp.Compare(j, i)
		})
	}
	m := &TensorMap{Operand: slices.Index(g.region.Params, param), DType: t.dtype, Offset: offset.MulConst(size),
		Dims: []ir.Dim{columns.Size}, Box: []int{panelBytes / int(size)}, Swizzle: panelBytes}
	for _, i := range o.order {
		box := 1
		if i == 0 {
			box = t.height
		}
		m.Dims, m.Strides, m.Box = append(m.Dims, all[i].Size), append(m.Strides, all[i].Stride.MulConst(size)), append(m.Box, box)
	}
	b.Kernel.Maps = append(b.Kernel.Maps, m)
	o.tensorMap = b.node(Map, ir.I64, int64(len(b.Kernel.Maps)-1))
	return o
}

// copyTile starts the copies of the tile at a column and a row to a stage, one for each panel, whose bytes a barrier counts. outer has
// the places in the outer extents.
func (o *bulkOperand) copyTile(stage, column, row *Expr, outer []*Expr, full *Expr) {
	t, b := o.tile, o.tile.ev.b
	base := b.Mul(stage, b.Idx(int64(t.width*t.height)))
	all := append([]*Expr{row}, outer...)
	for first := 0; first < t.width; first += panelBytes / t.dtype.Size() {
		to := b.Address(t.shared, b.Add(base, b.Idx(int64(first*t.height))))
		args := []*Expr{to, o.tensorMap, b.FromIndex(b.Add(column, b.Idx(int64(first))), ir.I32)}
		for _, i := range o.order {
			args = append(args, b.FromIndex(all[i], ir.I32))
		}
		name := fmt.Sprintf("cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes", 1+len(o.order))
		b.Do(name, append(args, full)...)
	}
}

// openBarrier makes 8 bytes of shared memory a barrier whose phases end with some arrivals.
func (b *Builder) openBarrier(barrier *Expr, arrivals int64) {
	b.Do("mbarrier.init.shared::cta.b64", barrier, b.Int(ir.I32, arrivals))
}

// expectTiles arrives at a barrier whose phase then lasts until the bytes of tiles are there.
func (b *Builder) expectTiles(barrier *Expr, tiles ...*sharedTile) {
	bytes := 0
	for _, t := range tiles {
		bytes += t.width * t.height * t.dtype.Size()
	}
	b.Do("mbarrier.arrive.expect_tx.shared::cta.b64", barrier, b.Int(ir.I32, int64(bytes)))
}

// awaitPhase waits until a barrier is past the phase of a parity.
func (b *Builder) awaitPhase(barrier, parity *Expr) { b.Do("mbarrier.wait.parity", barrier, parity) }
