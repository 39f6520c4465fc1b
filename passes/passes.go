// Package passes holds the ordered table of passes that turn an imported program into a
// scheduled one.
package passes

import (
	"fmt"
	"time"

	"weft/ir"
	"weft/ir/diag"
	"weft/passes/canonicalize"
	"weft/passes/decompose"
	"weft/passes/fuse"
	"weft/passes/memory"
	"weft/passes/prepare"
	"weft/passes/schedule"
)

// Pass is a row of the table.
type Pass struct {
	Name     string
	Doc      string
	Reason   string // for its place in the order
	Required bool   // --disable-pass cannot leave it out
	After    []string
	run      func(p *ir.Program, r *Report) (bool, error)
}

// Report collects what passes tell about their work.
type Report struct {
	Fusion map[string][]fuse.Decision `json:"fusion,omitempty"`
	Times  []Timing                   `json:"-"`
}

// Timing is the time that one pass took.
type Timing struct {
	Pass    string
	Elapsed time.Duration
	Changed bool
}

// Table lists the passes in their order.
func Table() []Pass {
	plain := func(f func(*ir.Program) (bool, error)) func(*ir.Program, *Report) (bool, error) {
		return func(p *ir.Program, _ *Report) (bool, error) { return f(p) }
	}
	return []Pass{
		{Name: "canonicalize", Doc: "folds constants, merges equal operations, simplifies, drops dead code",
			Reason: "first, so that every later pass sees one form", run: plain(canonicalize.Run)},
		{Name: "decompose", Doc: "replaces composite operations that no kernel runs whole by primitives",
			Reason: "after canonicalize, which may drop them; before fuse, which groups primitives", Required: true,
			After: []string{"canonicalize"}, run: plain(decompose.Run)},
		{Name: "canonicalize-primitives", Doc: "canonicalize again, over what decompose made",
			Reason: "decompositions repeat masks and constants", After: []string{"decompose"}, run: plain(canonicalize.Run)},
		{Name: "prepare", Doc: "moves what depends on weights alone into the init entry",
			Reason: "before fuse, so that prepared weights are inputs of kernels", After: []string{"canonicalize-primitives"}, run: plain(prepare.Run)},
		{Name: "fuse", Doc: "gathers operations into kernel groups",
			Reason: "after all rewrites of operations", Required: true, After: []string{"prepare"},
			run: func(p *ir.Program, r *Report) (bool, error) {
				d, err := fuse.Run(p)
				r.Fusion = d
				return true, err
			}},
		{Name: "schedule", Doc: "chooses threads, vectors and tiles of each kernel group",
			Reason: "after fuse, which makes the groups; before memory, since schedules may need workspaces", Required: true,
			After: []string{"fuse"}, run: plain(schedule.Run)},
		{Name: "memory", Doc: "gives every value a place",
			Reason: "last: lives are known only when the steps are", Required: true, After: []string{"schedule"}, run: plain(memory.Run)},
	}
}

// Options of a run over the table.
type Options struct {
	Disabled []string
	Verify   bool // after every pass
	// After is called after each pass; nil is allowed.
	After func(pass string, changed bool, p *ir.Program) error
	// Stop ends the run after the pass of that name; empty runs all.
	Stop string
}

// Run runs the table over a program, which it changes.
func Run(p *ir.Program, o Options) (*Report, error) {
	r := &Report{}
	disabled, err := o.disabled()
	if err != nil {
		return r, err
	}
	for _, pass := range Table() {
		if disabled[pass.Name] {
			continue
		}
		start := time.Now()
		changed, err := pass.run(p, r)
		r.Times = append(r.Times, Timing{pass.Name, time.Since(start), changed})
		if err != nil {
			return r, fmt.Errorf("pass %s: %w", pass.Name, err)
		}
		if o.Verify {
			if err := ir.Verify(p); err != nil {
				return r, diag.Errorf(diag.Bug, "", "the program is invalid after pass %s: %v", pass.Name, err)
			}
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

func (o Options) disabled() (map[string]bool, error) {
	known := map[string]Pass{}
	for _, p := range Table() {
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
