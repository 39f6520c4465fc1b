package ir

import "slices"

// Replace offers each operation of every entry to replacement, those of its regions first. Where replacement is
// true, the operations that it made with b stand in the place of op, and the values that it gives, which they define,
// become op's results. Replace tells whether anything changed, and returns the diagnostic that a Builder raised.
func Replace(p *Program, replacement func(b *Builder, op *Op) ([]Value, bool)) (changed bool, err error) {
	for _, e := range p.Entries {
		if err := Try(func() { changed = replaceIn(&Builder{Program: p, Entry: e, Block: &e.Body}, replacement) || changed }); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

func replaceIn(b *Builder, replacement func(*Builder, *Op) ([]Value, bool)) bool {
	ops, changed := b.Block.Ops, false
	b.Block.Ops = nil
	for _, op := range ops {
		for _, r := range op.Regions {
			changed = replaceIn(&Builder{Program: b.Program, Entry: b.Entry, Block: r}, replacement) || changed
		}
		b.Loc = op.Loc
		values, ok := replacement(b, op)
		if !ok {
			b.Block.Ops = append(b.Block.Ops, op)
			continue
		}
		b.Block.define(values, op.Results)
		changed = true
	}
	return changed
}

// define lets the operations of the block that define and use values define and use results instead.
func (b *Block) define(values, results []Value) {
	defined := 0
	for _, made := range b.Ops {
		for n, v := range values {
			if i := slices.Index(made.Results, v); i >= 0 {
				made.Results[i] = results[n]
				defined++
			}
			for i, o := range made.Operands {
				if o == v {
					made.Operands[i] = results[n]
				}
			}
		}
	}
	if defined != len(values) {
		panic("BUG: a replacement does not define the results of what it replaces")
	}
}
