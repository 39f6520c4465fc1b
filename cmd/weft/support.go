package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"weft/ir"
	"weft/ir/diag"
)

func (a *app) supportCommand() *cobra.Command {
	var asJSON bool
	var given givenFlags
	cmd := &cobra.Command{
		Use:   "support FILE...",
		Short: "Say which models can be compiled, and which operators are missing",
		Long:  "support takes every FILE as far as kernels and launch plans, which needs no llc, and lists what weft cannot\ncompile. The exit status is that of the worst file. --dim and --constant hold for every FILE.",
		Args:  atLeastOne("a FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.support(cmd.Context(), args, given, asJSON)
		},
	}
	cmd.Flags().SortFlags = false
	given.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

type supportReport struct {
	File       string   `json:"file"`
	Supported  bool     `json:"supported"`
	Entries    int      `json:"entries,omitempty"`
	Operations int      `json:"operations,omitempty"`
	Kernels    int      `json:"kernels,omitempty"`
	Problems   []string `json:"problems,omitempty"`
}

func (a *app) support(ctx context.Context, paths []string, given givenFlags, asJSON bool) error {
	if err := given.resolve(); err != nil {
		return err
	}
	reports := []supportReport{}
	var faults diag.List
	for _, path := range paths {
		r := supportReport{File: path}
		c, err := lowerFile(ctx, path, given)
		if err == nil {
			r.Supported, r.Entries, r.Operations, r.Kernels = true, len(c.Imported.Entries), operations(c.Imported), len(c.Lowered[0].Kernels)
			err = c.Close()
		}
		var list diag.List
		if err != nil {
			list = diag.All(inFile(err, path))
			faults = append(faults, list...)
		}
		for _, d := range list {
			r.Problems = append(r.Problems, d.Message)
			r.Problems = append(r.Problems, d.Notes...)
		}
		reports = append(reports, r)
	}
	if asJSON {
		return errors.Join(a.printJSON(reports), faults.Err())
	}
	for _, r := range reports {
		if r.Supported {
			a.printf("%s: supported: %s in %s, %s\n", r.File, plural(r.Operations, "operation"), plural(r.Entries, "entry"), plural(r.Kernels, "kernel"))
		} else {
			a.printf("%s: not supported\n", r.File)
		}
	}
	return faults.Err()
}

func operations(p *ir.Program) int {
	n := 0
	for _, e := range p.Entries {
		e.Body.Walk(func(*ir.Op) { n++ })
	}
	return n
}
