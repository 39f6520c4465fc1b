package main

import (
	"errors"

	"github.com/spf13/cobra"

	"weft/ir"
	"weft/ir/diag"
)

func (a *app) supportCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "support FILE...",
		Short: "Say which models can be compiled, and which operators are missing",
		Long:  "support imports every FILE and lists what weft cannot compile. The exit status is that of the worst file.",
		Args:  atLeastOne("a FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.support(args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

type supportReport struct {
	File       string   `json:"file"`
	Supported  bool     `json:"supported"`
	Entries    int      `json:"entries,omitempty"`
	Operations int      `json:"operations,omitempty"`
	Problems   []string `json:"problems,omitempty"`
}

func (a *app) support(paths []string, asJSON bool) error {
	reports := []supportReport{}
	var faults diag.List
	for _, path := range paths {
		r := supportReport{File: path}
		m, err := importFile(path)
		if err == nil {
			r.Supported, r.Entries, r.Operations = true, len(m.Program.Entries), operations(m.Program)
			err = m.Close()
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
			a.printf("%s: supported: %s in %s\n", r.File, plural(r.Operations, "operation"), plural(r.Entries, "entry"))
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
