package passes

import "weft/ir"

// Before goes to where a step failed, which the place of its diagnostic says: it gives the program as it
// was then, and the passes that were still to run, the failed one first. The passes ahead of it run
// again, over a copy of the imported program. After a step that is no pass, that is the scheduled program,
// where there is one. If the passes fail now that did not before, all begins with the imported one.
func Before(imported, scheduled *ir.Program, o Options, place string) (p *ir.Program, left []string) {
	list, err := o.passes()
	if err != nil {
		return imported, nil
	}
	failed := -1
	for i, pass := range list {
		left = append(left, pass.Name)
		if Place(pass.Name) == place {
			failed = i
		}
	}
	switch {
	case failed < 0 && scheduled != nil:
		return scheduled, nil
	case failed <= 0:
		return imported, left
	}
	p = imported.Clone()
	again := Options{Sharding: o.Sharding, Precision: o.Precision, Disabled: o.Disabled, Only: left[:failed], table: o.table}
	if _, err := Run(p, again); err != nil {
		return imported, left
	}
	return p, left[failed:]
}
