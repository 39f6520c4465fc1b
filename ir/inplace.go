package ir

import "slices"

// Updated is the number of the operand of a scatter kernel into whose memory the kernel writes:
// the first operand of the dynamic_update_slice or scatter that ends its region. The kernel
// writes the new elements only, so the result's place must hold the operand when it runs.
func (op *Op) Updated() (operand int, ok bool) {
	if a, kernel := op.Attrs.(*KernelAttrs); !kernel || a.Group != ScatterGroup || len(op.Regions) != 1 || op.Regions[0] == nil {
		return 0, false
	}
	update := op.Regions[0].Update()
	if update == nil {
		return 0, false
	}
	i := slices.Index(op.Regions[0].Params, update.Operands[0])
	return i, i >= 0 && i < len(op.Operands)
}

// Overwritten is the number of the operand in whose memory an operation may have its result: that which a
// scatter kernel updates, or that of an all_reduce beside which nothing runs.
func (op *Op) Overwritten() (operand int, ok bool) {
	if a, collective := op.Attrs.(*CollectiveAttrs); collective {
		return 0, op.Kind == OpAllReduce && !a.Async && len(op.Operands) == 1
	}
	return op.Updated()
}

// Update is the dynamic_update_slice or scatter whose result is the only one of a kernel's
// region; nil where it is another operation.
func (b *Block) Update() *Op {
	if len(b.Ops) == 0 || len(b.Results) != 1 {
		return nil
	}
	last := b.Ops[len(b.Ops)-1]
	if last.Kind != OpDynamicUpdateSlice && last.Kind != OpScatter || last.Results[0] != b.Results[0] {
		return nil
	}
	return last
}

// LastUses gives the index of the last operation of a block that uses a value, itself or in its
// regions; the number of operations for the block's results.
func (b *Block) LastUses() map[Value]int {
	last := map[Value]int{}
	for i, op := range b.Ops {
		for _, v := range op.Operands {
			last[v] = i
		}
		for _, r := range op.Regions {
			r.Uses(func(v *Value) { last[*v] = i })
		}
	}
	for _, v := range b.Results {
		last[v] = len(b.Ops)
	}
	return last
}
