package emu

import "weft/codegen/ptx"

func (d *decoder) branch(in *instruction) error {
	if err := d.operands(1); err != nil {
		return err
	}
	if d.in.Operands[0].Kind != ptx.OperandLabel {
		return d.unsupported("the target is no label")
	}
	in.op = opBranch
	if d.in.Guard != nil {
		in.op = opBranchIf
	}
	return nil
}

// branchTable decodes brx.idx index, table.
func (d *decoder) branchTable(in *instruction) error {
	if err := d.operands(2); err != nil {
		return err
	}
	if d.in.Operands[1].Kind != ptx.OperandTable || d.in.Guard != nil {
		return d.unsupported("brx needs a table and no guard")
	}
	in.op, in.extra = opBranchTable, &extra{}
	var err error
	in.a, err = d.operand(&d.in.Operands[0], ptx.U32)
	return err
}

func (d *decoder) leave(in *instruction) error {
	in.op = opExit
	return d.operands(0)
}

func (d *decoder) trap(in *instruction) error {
	in.op = opTrap
	return d.operands(0)
}

// barrier decodes bar and barrier: sync, arrive and red. A barrier has a number and, if given,
// a count of threads.
func (d *decoder) barrier(in *instruction) error {
	if d.in.Has("cluster") {
		return d.clusterBarrier(in)
	}
	if err := d.modifiers("sync", "arrive", "red", "cta", "aligned", "and", "or", "popc", "warp"); err != nil {
		return err
	}
	if d.in.Has("warp") { // bar.warp.sync: a warp's lanes are always together here
		in.op = opMatch
		in.extra = &extra{mode: "warp"}
		if err := d.operands(1); err != nil {
			return err
		}
		var err error
		in.b, err = d.operand(&d.in.Operands[0], ptx.U32)
		return err
	}
	in.op = opBarrier
	in.extra = &extra{count: noSlot}
	operands := d.in.Operands
	var err error
	if d.in.Has("red") {
		if err := d.barrierReduction(in); err != nil {
			return err
		}
		operands = operands[1 : len(operands)-1]
	} else if d.in.Has("arrive") {
		in.extra.mode = "arrive"
	}
	if len(operands) < 1 || len(operands) > 2 || in.extra.mode == "arrive" && len(operands) != 2 {
		return d.unsupported("operands of a barrier")
	}
	if in.a, err = d.operand(&operands[0], ptx.U32); err != nil {
		return err
	}
	if len(operands) == 2 {
		in.extra.count, err = d.operand(&operands[1], ptx.U32)
	}
	return err
}

// barrierReduction decodes the result and the predicate of bar.red.
func (d *decoder) barrierReduction(in *instruction) error {
	o := d.in.Operands
	if len(o) < 3 {
		return d.unsupported("operands of a barrier reduction")
	}
	in.op = opBarrierReduce
	var err error
	for _, m := range []string{"and", "or", "popc"} {
		if d.in.Has(m) {
			in.extra.mode = m
		}
	}
	bits := 1
	if in.extra.mode == "popc" {
		bits = 32
	}
	if in.d, err = d.result(&o[0], bits); err != nil {
		return err
	}
	last := &o[len(o)-1]
	if in.c, err = d.operand(last, ptx.Pred); err != nil {
		return err
	}
	if last.Negated {
		in.extra.flip = ^uint32(0)
	}
	return nil
}

// shuffle decodes shfl.sync.mode.b32 d[|p], a, b, c, membermask.
func (d *decoder) shuffle(in *instruction) error {
	if err := d.modifiers("sync", "up", "down", "bfly", "idx"); err != nil {
		return err
	}
	if err := d.operands(5); err != nil {
		return err
	}
	o := d.in.Operands
	in.op, in.extra = opShuffle, &extra{}
	for _, m := range []string{"up", "down", "bfly", "idx"} {
		if d.in.Has(m) {
			in.extra.mode = m
		}
	}
	if !d.in.Has("sync") || in.extra.mode == "" {
		return d.unsupported("only shfl.sync with a mode")
	}
	results := o[:1]
	if o[0].Kind == ptx.OperandPair {
		results = o[0].Elements
	}
	var err error
	if in.d, err = d.result(&results[0], 32); err != nil {
		return err
	}
	if len(results) == 2 {
		if in.e, err = d.result(&results[1], 1); err != nil {
			return err
		}
	}
	for i, slot := range []*int32{&in.a, &in.b, &in.c, &in.extra.count} {
		if *slot, err = d.operand(&o[1+i], ptx.B32); err != nil {
			return err
		}
	}
	return nil
}

// vote decodes vote.sync.mode d, p, membermask.
func (d *decoder) vote(in *instruction) error {
	if err := d.modifiers("sync", "all", "any", "uni", "ballot"); err != nil {
		return err
	}
	if err := d.operands(3); err != nil {
		return err
	}
	o := d.in.Operands
	in.op, in.extra = opVote, &extra{}
	for _, m := range []string{"all", "any", "uni", "ballot"} {
		if d.in.Has(m) {
			in.extra.mode = m
		}
	}
	bits := 1
	if in.extra.mode == "ballot" {
		bits = 32
	}
	var err error
	if in.d, err = d.result(&o[0], bits); err != nil {
		return err
	}
	if in.a, err = d.operand(&o[1], ptx.Pred); err != nil {
		return err
	}
	if o[1].Negated {
		in.extra.flip = ^uint32(0)
	}
	in.b, err = d.operand(&o[2], ptx.B32)
	return err
}

func (d *decoder) activeMask(in *instruction) error {
	in.op = opActiveMask
	if err := d.operands(1); err != nil {
		return err
	}
	var err error
	in.d, err = d.result(&d.in.Operands[0], 32)
	return err
}

// match decodes match.any.sync and match.all.sync on 32 and 64 bits.
func (d *decoder) match(in *instruction) error {
	if err := d.modifiers("any", "all", "sync"); err != nil {
		return err
	}
	if err := d.operands(3); err != nil {
		return err
	}
	o := d.in.Operands
	t := d.typ()
	in.op, in.extra = opMatch, &extra{mode: "any", width: t.Bits()}
	results := o[:1]
	if o[0].Kind == ptx.OperandPair {
		results = o[0].Elements
	}
	var err error
	if d.in.Has("all") {
		in.extra.mode = "all"
		if len(results) == 2 {
			if in.e, err = d.result(&results[1], 1); err != nil {
				return err
			}
		}
	}
	if in.d, err = d.result(&results[0], 32); err != nil {
		return err
	}
	if in.a, err = d.operand(&o[1], t); err != nil {
		return err
	}
	in.b, err = d.operand(&o[2], ptx.B32)
	return err
}

// reduceWarp decodes redux.sync.op.type d, a, membermask.
func (d *decoder) reduceWarp(in *instruction) error {
	if err := d.modifiers("sync", "add", "min", "max", "and", "or", "xor"); err != nil {
		return err
	}
	t := d.typ()
	if t.Bits() != 32 || t.Float() {
		return d.unsupported("redux on .%s", t)
	}
	in.op, in.extra = opReduce, &extra{}
	for _, m := range d.in.Modifiers {
		f := scalarInteger[uint32](m)
		if t.Signed() {
			if g := scalarInteger[int32](m); g != nil {
				f = func(a, b, _ uint32) uint32 { return uint32(g(int32(a), int32(b), 0)) }
			}
		}
		if f != nil {
			in.extra.reduce = func(a, b uint32) uint32 { return f(a, b, 0) }
		}
	}
	if in.extra.reduce == nil {
		return d.unsupported("no operation")
	}
	return d.sources(in, ptx.B32, ptx.B32, ptx.B32)
}
