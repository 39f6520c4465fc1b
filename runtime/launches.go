package runtime

import "weft/ir/plan"

// PlannedLaunch is a launch of a binding's plan, ready to be given to the device.
type PlannedLaunch struct {
	Step   int // its number in the plan
	Launch Launch
}

// Launches lists the launches of the plan, those inside an if or while too, in the order of
// their steps; empty ones are left out. They are for measuring kernels one by one: the device
// that the session was opened with takes them as long as the binding is open.
func (b *Binding) Launches() []PlannedLaunch {
	var list []PlannedLaunch
	for i, step := range b.entry.plan.Flat() {
		if step.Launch != nil && !b.bound.Steps[i].Empty {
			list = append(list, PlannedLaunch{i, *b.command(i, step).launch})
		}
	}
	return list
}

// Plan is the plan that the binding runs.
func (b *Binding) Plan() *plan.Plan { return b.entry.plan }
