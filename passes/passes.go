// Package passes holds the ordered table of passes that turn an imported program into a
// scheduled one.
package passes

import (
	"slices"
	"time"

	"weft/ir"
	"weft/ir/diag"
	"weft/passes/canonicalize"
	"weft/passes/decompose"
	"weft/passes/fuse"
	"weft/passes/layout"
	"weft/passes/masks"
	"weft/passes/memory"
	"weft/passes/merge"
	"weft/passes/overlap"
	"weft/passes/precision"
	"weft/passes/prepare"
	"weft/passes/schedule"
	"weft/passes/shard"
	"weft/passes/split"
)

// Pass is a row of the table.
type Pass struct {
	Name     string
	Doc      string
	Reason   string // for its place in the order
	Required bool   // --disable-pass cannot leave it out
	After    []string
	run      func(p *ir.Program, o Options, r *Report) (bool, error)
}

// Report collects what passes tell about their work.
type Report struct {
	Fusion    map[string][]fuse.Decision `json:"fusion,omitempty"`
	Precision []precision.Row            `json:"precision,omitempty"`
	Sharding  *shard.Report              `json:"sharding,omitempty"`
	Warnings  diag.List                  `json:"-"`
	Times     []Timing                   `json:"-"`
}

// Timing is the time that one pass took.
type Timing struct {
	Pass    string
	Elapsed time.Duration
	Changed bool
}

// Table lists the passes in their order.
func Table() []Pass {
	plain := func(f func(*ir.Program) (bool, error)) func(*ir.Program, Options, *Report) (bool, error) {
		return func(p *ir.Program, _ Options, _ *Report) (bool, error) { return f(p) }
	}
	return []Pass{
		{Name: "canonicalize", Doc: "folds constants, merges equal operations, simplifies, drops dead code",
			Reason: "first, so that every later pass sees one form", run: plain(canonicalize.Run)},
		{Name: "masks", Doc: "makes masks of attention that are functions of positions the causal rule",
			Reason: "after canonicalize, which merges masks of layers; before shard, so that no rank has masks that nobody reads", After: []string{"canonicalize"}, run: plain(masks.Run)},
		{Name: "precision", Doc: "computes in the types that --precision names",
			Reason: "after canonicalize, so that it sees one form of each operation; before decompose, while attention is whole", Required: true,
			After: []string{"canonicalize"}, run: runPrecision},
		{Name: "shard", Doc: "divides tensors over the mesh and inserts collectives",
			Reason: "after precision, so that casts come before gathers; before decompose, while attention is whole", Required: true,
			After: []string{"canonicalize", "masks", "precision"}, run: func(p *ir.Program, o Options, r *Report) (changed bool, err error) {
				r.Sharding, changed, err = shard.Run(p, o.Sharding)
				if r.Sharding != nil {
					r.Warnings = append(r.Warnings, r.Sharding.Notes...)
				}
				return changed, err
			}},
		{Name: "decompose", Doc: "replaces composite operations that no kernel runs whole by primitives",
			Reason: "after canonicalize, which may drop them; before fuse, which groups primitives", Required: true,
			After: []string{"canonicalize", "precision", "shard"}, run: plain(decompose.Run)},
		{Name: "canonicalize-primitives", Doc: "canonicalize again, over what decompose made",
			Reason: "decompositions repeat masks and constants", After: []string{"decompose"}, run: plain(canonicalize.Run)},
		{Name: "prepare", Doc: "moves what depends on weights alone into the init entry",
			Reason: "before fuse, so that prepared weights are inputs of kernels", After: []string{"canonicalize-primitives"}, run: plain(prepare.Run)},
		{Name: "merge", Doc: "makes one product of small ones that share their activations",
			Reason: "after prepare, which leaves all that depends on weights alone as states to join, of a mesh those of one rank; before fuse, which reads slices in place",
			After:  []string{"prepare"}, run: plain(merge.Run)},
		{Name: "layout", Doc: "stores the images of convolutions with their channels last",
			Reason: "after prepare, which leaves kernels as states to reorder; before fuse, since canonicalize would undo it", After: []string{"prepare"}, run: plain(layout.Run)},
		{Name: "split", Doc: "does reductions with few rows in two stages, of which the first has many",
			Reason: "before fuse, so that each stage is the heart of a kernel", After: []string{"layout"}, run: plain(split.Run)},
		{Name: "overlap", Doc: "lets collectives run beside computation",
			Reason: "after prepare, which leaves gathers of states alone; before fuse, which keeps the order of steps", After: []string{"prepare", "layout", "split"}, run: plain(overlap.Run)},
		{Name: "fuse", Doc: "gathers operations into kernel groups",
			Reason: "after all rewrites of operations", Required: true, After: []string{"prepare", "merge", "layout", "split", "overlap"},
			run: func(p *ir.Program, _ Options, r *Report) (bool, error) {
				before := operations(p)
				d, err := fuse.Run(p)
				r.Fusion = d
				return !slices.Equal(before, operations(p)), err
			}},
		{Name: "schedule", Doc: "chooses threads, vectors and tiles of each kernel group",
			Reason: "after fuse, which makes the groups; before memory, since schedules may need workspaces", Required: true,
			After: []string{"fuse"}, run: plain(schedule.Run)},
		{Name: "memory", Doc: "gives every value a place",
			Reason: "last: lives are known only when the steps are", Required: true, After: []string{"schedule"}, run: plain(memory.Run)},
	}
}

// runPrecision applies the policy of the options, and notes where it changed nothing.
func runPrecision(p *ir.Program, o Options, r *Report) (bool, error) {
	result, err := precision.Run(p, o.Precision)
	r.Precision = result.Rows
	if err == nil && !result.Changed && !o.Precision.IsZero() {
		r.Warnings = append(r.Warnings, precision.Unchanged(o.Precision))
	}
	return result.Changed, err
}

// operations lists the operations that are not inside of kernels.
func operations(p *ir.Program) []*ir.Op {
	var list []*ir.Op
	var visit func(b *ir.Block)
	visit = func(b *ir.Block) {
		for _, op := range b.Ops {
			list = append(list, op)
			for _, r := range op.Regions {
				if op.Kind != ir.OpKernel {
					visit(r)
				}
			}
		}
	}
	for _, e := range p.Entries {
		visit(&e.Body)
	}
	return list
}

// Options of a run over the table.
type Options struct {
	Sharding  shard.Options
	Disabled  []string
	Precision precision.Policy
	Verify    bool // after every pass
	// After is called after each pass; nil is allowed.
	After func(pass string, changed bool, p *ir.Program) error
	// Stop ends the run after the pass of that name; empty runs all.
	Stop string
	// Only runs no other passes than these; nil runs all.
	Only []string

	table []Pass // of tests; nil is Table()
}

// Run runs the table over a program, which it changes. A pass that panics, leaves an invalid
// program (with Verify) or reports no change where there was one is a bug: its diagnostic
// (W0900) has Place(pass), and the last of the report's times is its.
func Run(p *ir.Program, o Options) (*Report, error) {
	r := &Report{}
	left, err := o.passes()
	if err != nil {
		return r, err
	}
	for _, pass := range left {
		changed, err := o.one(pass, p, r)
		if err != nil {
			return r, err
		}
		if o.After != nil {
			if err := o.After(pass.Name, changed, p); err != nil {
				return r, err
			}
		}
		if pass.Name == o.Stop {
			break
		}
	}
	return r, nil
}

// Place is the place of a diagnostic that a pass is to blame for.
func Place(pass string) string { return "pass " + pass }

// one runs one pass and checks what it did.
func (o Options) one(pass Pass, p *ir.Program, r *Report) (changed bool, err error) {
	before := ""
	if o.Verify {
		before = p.String()
	}
	start := time.Now()
	defer func() {
		if value := recover(); value != nil {
			err = diag.Panicked(Place(pass.Name), value)
			r.Times = append(r.Times, Timing{pass.Name, time.Since(start), true})
		}
	}()
	changed, err = pass.run(p, o, r)
	elapsed := time.Since(start)
	if err != nil {
		err = blame(pass.Name, err)
	} else if o.Verify {
		err = check(pass.Name, before, changed, p)
	}
	r.Times = append(r.Times, Timing{pass.Name, elapsed, changed})
	return changed, err
}

// blame makes a bug of an error that no user can cause.
func blame(pass string, err error) error {
	list := diag.All(err)
	for _, d := range list {
		if d.Code == diag.Bug {
			d.Place = Place(pass)
		}
	}
	return list
}

// check verifies the program after a pass, and what the pass says about having changed it.
func check(pass, before string, changed bool, p *ir.Program) error {
	if err := ir.Verify(p); err != nil {
		return diag.Errorf(diag.Bug, Place(pass), "the program is invalid after the pass: %v", err).Because(err)
	}
	if after := p.String(); (after != before) != changed {
		what := "changed the program and says that it did not"
		if changed {
			what = "did not change the program and says that it did"
		}
		return diag.Errorf(diag.Bug, Place(pass), "the pass %s", what)
	}
	return nil
}

// passes lists the passes that run.
func (o Options) passes() ([]Pass, error) {
	table := o.table
	if table == nil {
		table = Table()
	}
	disabled, err := o.disabled(table)
	if err != nil {
		return nil, err
	}
	var left []Pass
	for _, pass := range table {
		if !disabled[pass.Name] && (o.Only == nil || slices.Contains(o.Only, pass.Name)) {
			left = append(left, pass)
		}
	}
	for _, name := range o.Only {
		if !slices.ContainsFunc(table, func(p Pass) bool { return p.Name == name }) {
			return nil, diag.Errorf(diag.UnknownName, "", "there is no pass %q", name).Suggest("`weft passes` lists the passes")
		}
	}
	return left, nil
}

func (o Options) disabled(table []Pass) (map[string]bool, error) {
	known := map[string]Pass{}
	for _, p := range table {
		known[p.Name] = p
	}
	disabled := map[string]bool{}
	for _, name := range o.Disabled {
		p, ok := known[name]
		if !ok {
			return nil, diag.Errorf("W0002", "--disable-pass", "there is no pass %q", name).Suggest("`weft passes` lists the passes")
		}
		if p.Required {
			return nil, diag.Errorf("W0002", "--disable-pass", "pass %q is required", name).Suggest("`weft passes` tells which passes may be left out")
		}
		disabled[name] = true
	}
	return disabled, nil
}
