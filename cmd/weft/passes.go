package main

import (
	"strings"

	"github.com/spf13/cobra"

	"weft/passes"
)

type passJSON struct {
	Name     string   `json:"name"`
	Does     string   `json:"does"`
	Required bool     `json:"required"`
	After    []string `json:"after,omitempty"`
	Reason   string   `json:"reason"`
}

func (a *app) passesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "passes",
		Short: "List the passes in their order, with the reason for it",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			list := []passJSON{}
			rows := [][]string{{"PASS", "REQUIRED", "DOES", "AFTER", "WHY HERE"}}
			for _, p := range passes.Table() {
				list = append(list, passJSON{p.Name, p.Doc, p.Required, p.After, p.Reason})
				required := "no"
				if p.Required {
					required = "yes"
				}
				rows = append(rows, []string{p.Name, required, p.Doc, strings.Join(p.After, ", "), p.Reason})
			}
			if asJSON {
				return a.printJSON(list)
			}
			table(a.stdout, rows)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func passNames() []string {
	var names []string
	for _, p := range passes.Table() {
		names = append(names, p.Name)
	}
	return names
}
