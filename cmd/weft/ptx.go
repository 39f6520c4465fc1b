package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"weft/codegen/ptx"
	"weft/frontend/weights"
	"weft/ir/diag"
	"weft/runtime/emu"
)

func (a *app) ptxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ptx",
		Short: "Work with PTX text",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown("command", "ptx "+args[0], []string{"ptx check"})
			}
			return cmd.Help()
		},
	}
	var asJSON bool
	check := &cobra.Command{
		Use:   "check FILE",
		Short: "Parse PTX text, check it as weft checks its own, and load it into the emulator",
		Args:  exactly("a FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.ptxCheck(args[0], asJSON)
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.AddCommand(check)
	return cmd
}

// kernelInfo is a kernel of a PTX text.
type kernelInfo struct {
	Name         string `json:"name"`
	Parameters   int    `json:"parameters"`
	Instructions int    `json:"instructions"`
	Shared       int64  `json:"shared_bytes"`
}

func kernelsOf(m *ptx.Module) []kernelInfo {
	shared := map[string]int64{}
	for _, v := range m.Variables {
		if v.Space == ptx.Shared {
			shared[v.Name] = v.Size()
		}
	}
	list := []kernelInfo{}
	for _, f := range m.Entries() {
		k := kernelInfo{Name: f.Name, Parameters: len(f.Parameters), Instructions: len(f.Body)}
		for _, v := range f.Variables {
			if v.Space == ptx.Shared {
				k.Shared += v.Size()
			}
		}
		used := map[string]bool{}
		for _, in := range f.Body {
			symbols(in.Operands, used)
		}
		for name := range used {
			k.Shared += shared[name]
		}
		list = append(list, k)
	}
	return list
}

// symbols collects the names of variables that operands mention.
func symbols(operands []ptx.Operand, used map[string]bool) {
	for _, o := range operands {
		if o.Kind == ptx.OperandSymbol {
			used[o.Name] = true
		}
		symbols(o.Elements, used)
	}
}

func kernelRows(list []kernelInfo) [][]string {
	rows := [][]string{{"KERNEL", "PARAMETERS", "INSTRUCTIONS", "SHARED"}}
	for _, k := range list {
		rows = append(rows, []string{k.Name, fmt.Sprint(k.Parameters), fmt.Sprint(k.Instructions), bytesText(k.Shared)})
	}
	return rows
}

func (a *app) ptxCheck(arg string, asJSON bool) error {
	path, err := a.input(arg)
	if err != nil {
		return err
	}
	m, err := weights.Map(path)
	if err != nil {
		return err
	}
	defer m.Close()
	text := string(m.Data)
	module, err := ptx.Parse(text)
	if err == nil {
		err = ptx.Lint(text)
	}
	if err != nil {
		return ptxFaults(err, path)
	}
	device := emu.New(emu.Options{})
	loaded, err := device.Load(m.Data)
	if err != nil {
		return diag.Errorf(diag.InvalidPTX, "", "the emulator cannot load it: %v", err).In(path).Because(err)
	}
	defer loaded.Close()
	list := kernelsOf(module)
	if asJSON {
		return a.printJSON(list)
	}
	table(a.stdout, kernelRows(list))
	return nil
}

// ptxFaults makes diagnostics of syntax errors and of what lint found.
func ptxFaults(err error, path string) error {
	var list diag.List
	joined, ok := err.(interface{ Unwrap() []error })
	all := []error{err}
	if ok {
		all = joined.Unwrap()
	}
	for _, err := range all {
		place, message := "", err.Error()
		if at, ok := err.(*ptx.Error); ok {
			place, message = at.Position.String(), at.Message
		}
		list = append(list, diag.Errorf(diag.InvalidPTX, place, "%s", message).In(path).Because(err))
	}
	return list
}
