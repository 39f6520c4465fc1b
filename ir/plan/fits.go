package plan

import (
	"fmt"
	"math"
	"strings"

	"weft/ir"
	"weft/ir/diag"
)

// MemoryBounds bounds what a rank holds at once in a run: states, inputs, outputs and the arena,
// in bytes, over all sizes that the dims can have. bounded tells whether there is a most.
func (p *Plan) MemoryBounds() (least, most int64, bounded bool) {
	symbols := map[string]ir.Range{}
	for _, d := range p.Dims {
		s := d.Symbol()
		symbols[d.Name] = ir.Range{Min: s.Min, Max: s.Max}
	}
	ranges := func(name string) (ir.Range, bool) {
		r, ok := symbols[name]
		return r, ok
	}
	var arena, others ir.Range
	ends := make([]ir.Range, len(p.Buffers))
	for i, b := range p.Buffers {
		size := b.Size.Bounds(ranges)
		size = ir.Range{Min: clampSize(size.Min), Max: clampSize(size.Max)}
		if b.Kind != Arena {
			others = ir.Range{Min: clampSize(others.Min + size.Min), Max: clampSize(others.Max + size.Max)}
			continue
		}
		var offset ir.Range
		for _, a := range b.After {
			offset.Min, offset.Max = max(offset.Min, alignUp(ends[a].Min)), max(offset.Max, alignUp(ends[a].Max))
		}
		ends[i] = ir.Range{Min: clampSize(offset.Min + size.Min), Max: clampSize(offset.Max + size.Max)}
		arena.Min, arena.Max = max(arena.Min, ends[i].Min), max(arena.Max, ends[i].Max)
	}
	least, most = clampSize(arena.Min+others.Min), clampSize(arena.Max+others.Max)
	return least, most, most < maxSize
}

// clampSize keeps a sum of sizes from overflowing: maxSize stands for all that is not less.
func clampSize(v int64) int64 { return min(max(v, 0), maxSize) }

// Fits compares what a rank holds with a limit in bytes. nil where every run fits, or no size is
// bounded; an error (W5006) where none does; a warning where runs at the largest sizes do not.
func (p *Plan) Fits(limit int64) *diag.Diagnostic {
	least, most, bounded := p.MemoryBounds()
	who := "a run"
	if ranks := p.MeshOf().Size(); ranks > 1 {
		who = fmt.Sprintf("each of the %d ranks", ranks)
	}
	var d *diag.Diagnostic
	switch {
	case least > limit:
		d = diag.Errorf(diag.PlanMemory, entryPlace(p), "%s needs at least %s, and there is room for %s", who, gigabytes(least), gigabytes(limit))
	case bounded && most > limit:
		d = diag.Warnf(diag.PlanMemory, entryPlace(p), "%s needs up to %s at the largest sizes, and there is room for %s", who, gigabytes(most), gigabytes(limit))
	default:
		return nil
	}
	kinds := map[string]ir.Dim{}
	for _, b := range p.Buffers {
		kind := "inputs and outputs"
		switch {
		case b.Kind == Arena:
			continue
		case b.Kind == Input && p.Inputs[b.Index].State != "", b.Kind == Output && p.Outputs[b.Index].State != "":
			kind = "states"
		}
		kinds[kind] = kinds[kind].Add(b.Size)
	}
	parts := []string{}
	for _, kind := range []string{"states", "inputs and outputs"} {
		if text := kinds[kind].String(); text != "0" && len(text) <= maxFormula {
			parts = append(parts, fmt.Sprintf("%s: %s bytes", kind, text))
		}
	}
	if arena, ok := p.ArenaSize(); ok && !arena.Is(0) {
		parts = append(parts, fmt.Sprintf("scratch memory: %s bytes", arena))
	}
	return d.Note("%s", strings.Join(parts, "; "))
}

// gigabytes prints a size for people.
func gigabytes(bytes int64) string {
	if bytes < 1e7 {
		return fmt.Sprintf("%d bytes", bytes)
	}
	return fmt.Sprintf("%.4g GB", math.Round(float64(bytes)/1e6)/1e3)
}
