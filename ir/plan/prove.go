package plan

import (
	"weft/ir/diag"
	"weft/ir/target"
)

// For is the plan for a target.
func (p *Plan) For(name string) *Plan {
	q := *p
	q.Target = name
	return &q
}

// Prove holds the plans of a program's entries to all rules before anything is written: each alone,
// all ranks together, and what a rank holds against its memory, which is limit in bytes, or that of
// the smallest target where limit is 0. One rank without a limit may have more memory than the
// target's usual part: it is only warned.
func Prove(plans []*Plan, targets []target.Target, limit int64) (warnings diag.List, err error) {
	for _, p := range plans {
		for _, t := range targets {
			if err := Verify(p.For(t.Name), nil); err != nil {
				return nil, diag.Errorf(diag.Bug, "plan", "the plan of entry %s does not hold: %v", p.Entry, err).Because(err)
			}
		}
	}
	if err := VerifyRanks(plans...); err != nil {
		return nil, err // the model's own collectives may be at fault
	}
	room := target.Memory(targets, limit)
	if room == 0 {
		return nil, nil
	}
	var found diag.List
	for _, p := range plans {
		d := p.Fits(room)
		if d == nil {
			continue
		}
		if limit == 0 {
			d.Suggest("give the memory of the GPU with --memory-limit where it has more than the target's usual part")
			if p.MeshOf().Size() == 1 {
				d.Severity = diag.Warning
			}
		}
		found = append(found, d)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	return found, nil
}
