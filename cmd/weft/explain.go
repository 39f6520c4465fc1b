package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"weft/ir"
	"weft/ir/diag"
)

func (a *app) explainCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain CODE|OPERATOR",
		Short: "Print the documentation of a diagnostic code or an operator",
		Long:  "explain prints what a diagnostic code (W2001) means and what to do about it, or what an operator of\nprograms (dot_general) does. Without an argument it lists all of both.",
		Args:  atMostOne,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.explainAll(asJSON)
			}
			return a.explain(args[0], asJSON)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return explainable(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

type codeJSON struct {
	Code   diag.Code `json:"code"`
	Title  string    `json:"title"`
	Help   string    `json:"help"`
	Status int       `json:"exit_status"`
}

type operatorJSON struct {
	Operator   string   `json:"operator"`
	Doc        string   `json:"doc"`
	Operands   string   `json:"operands"`
	Regions    string   `json:"regions,omitempty"`
	Attributes []string `json:"attributes,omitempty"`
}

func explainable() []string {
	var names []string
	for _, info := range diag.Codes() {
		names = append(names, string(info.Code))
	}
	for k := ir.OpConstant; k < ir.NumKinds; k++ {
		names = append(names, k.String())
	}
	return names
}

func (a *app) explain(name string, asJSON bool) error {
	if info, ok := diag.Lookup(diag.Code(strings.ToUpper(name))); ok {
		if asJSON {
			return a.printJSON(codeJSON{info.Code, info.Title, info.Help, int(info.Status)})
		}
		a.printf("%s: %s\nexit status %d\n\n%s\n", info.Code, info.Title, info.Status, wrap(info.Help, 100))
		return nil
	}
	if kind, ok := ir.ParseKind(name); ok {
		op := describe(kind)
		if asJSON {
			return a.printJSON(op)
		}
		a.printf("%s: %s\n", op.Operator, op.Operands)
		if op.Regions != "" {
			a.printf("regions: %s\n", op.Regions)
		}
		if len(op.Attributes) > 0 {
			a.printf("attributes: %s\n", strings.Join(op.Attributes, ", "))
		}
		a.printf("\n%s\n", wrap(op.Doc, 100))
		return nil
	}
	d := diag.Errorf(diag.UnknownName, "", "%q is no diagnostic code and no operator", name)
	if near := diag.Nearest(name, explainable(), 3); len(near) > 0 {
		d.Suggest("did you mean %s?", strings.Join(near, " or "))
	} else {
		d.Suggest("`weft explain` lists all")
	}
	return d
}

func describe(kind ir.Kind) operatorJSON {
	info := kind.Info()
	op := operatorJSON{Operator: info.Name, Doc: info.Doc}
	switch {
	case info.Max == 0:
		op.Operands = "no operands"
	case info.Max < 0:
		op.Operands = fmt.Sprintf("%s or more", plural(info.Min, "operand"))
	case info.Min == info.Max:
		op.Operands = plural(info.Min, "operand")
	default:
		op.Operands = fmt.Sprintf("%d to %s", info.Min, plural(info.Max, "operand"))
	}
	switch {
	case info.Regions < 0:
		op.Regions = "any number"
	case info.Regions > 0:
		op.Regions = fmt.Sprint(info.Regions)
	}
	op.Attributes = kind.AttrNames()
	return op
}

func (a *app) explainAll(asJSON bool) error {
	var codes []codeJSON
	rows := [][]string{{"CODE", "STATUS", "MEANING"}}
	for _, info := range diag.Codes() {
		codes = append(codes, codeJSON{info.Code, info.Title, info.Help, int(info.Status)})
		rows = append(rows, []string{string(info.Code), fmt.Sprint(info.Status), info.Title})
	}
	var operators []operatorJSON
	names := [][]string{{"OPERATOR", "OPERANDS"}}
	for k := ir.OpConstant; k < ir.NumKinds; k++ {
		op := describe(k)
		operators = append(operators, op)
		names = append(names, []string{op.Operator, op.Operands})
	}
	if asJSON {
		return a.printJSON(struct {
			Codes     []codeJSON     `json:"codes"`
			Operators []operatorJSON `json:"operators"`
		}{codes, operators})
	}
	table(a.stdout, rows)
	a.printf("\n")
	table(a.stdout, names)
	return nil
}

// wrap breaks text into lines of at most width bytes.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		if column > 0 && column+1+len(word) > width {
			b.WriteByte('\n')
			column = 0
		}
		if column > 0 {
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
