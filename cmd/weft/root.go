package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/ir/diag"
	"weft/ir/diag/render"
)

// execute parses the arguments and runs the command that they name.
func (a *app) execute(ctx context.Context, args []string) error {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	return root.ExecuteContext(ctx)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "Ahead-of-time compiler for exported models",
		Long: "weft compiles models that PyTorch exported (.pt2), or ONNX files, for NVIDIA GPUs ahead of time:\n" +
			"one artifact holds the kernels and the launch plan. No GPU and no Python are needed to compile,\n" +
			"to test and to inspect.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, c.Name())
			}
			return unknown("command", args[0], names)
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().Var(choice(&a.format, render.Formats()...), "format", "print diagnostics as `FORMAT`: text, json, sarif or github")
	completeWith(root, "format", render.Formats())
	root.AddCommand(a.compileCommand(), a.runCommand(), a.benchCommand(), a.conformanceCommand(), a.inspectCommand(), a.verifyCommand(), a.supportCommand(), a.ptxCommand(),
		a.passesCommand(), a.explainCommand(), a.doctorCommand(), a.reproduceCommand(), a.versionCommand())
	return root
}

// unknown is the diagnostic for a name that is not one of names, with the nearest of them.
func unknown(what, name string, names []string) error {
	d := diag.Errorf(diag.UnknownName, "", "there is no %s %q", what, name)
	if near := diag.Nearest(name, names, 3); len(near) > 0 {
		d.Suggest("did you mean %s?", strings.Join(near, " or "))
	}
	if len(names) > 0 {
		d.Note("%ss: %s", what, strings.Join(names, ", "))
	}
	return d
}

// usage is the diagnostic for a wrong command line.
func usage(cmd *cobra.Command, format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(diag.CommandLine, "", format, args...).Suggest("`%s --help` lists the flags and arguments", cmd.CommandPath())
}

// flagError makes a diagnostic of what pflag found wrong.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	d := usage(cmd, "%v", err)
	var noFlag *pflag.NotExistError
	if errors.As(err, &noFlag) {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		d = usage(cmd, "%s has no flag --%s", cmd.CommandPath(), noFlag.GetSpecifiedName())
		if short := noFlag.GetSpecifiedShortnames(); short != "" {
			d = usage(cmd, "%s has no flag -%s", cmd.CommandPath(), noFlag.GetSpecifiedName())
			names = nil
		}
		if near := diag.Nearest(noFlag.GetSpecifiedName(), names, 3); len(near) > 0 {
			d.Suggest("did you mean --%s?", strings.Join(near, " or --"))
		}
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		flag := invalid.GetFlag()
		d = usage(cmd, "--%s %q: %v", flag.Name, invalid.GetValue(), invalid.Unwrap())
		if c, ok := flag.Value.(*choiceValue); ok {
			d = usage(cmd, "--%s does not take %q", flag.Name, invalid.GetValue()).Suggest("it takes %s", strings.Join(c.names, ", "))
		}
	}
	return d.Because(err)
}

// exactly and atLeast check the number of arguments; names are for the message.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage(cmd, "%s needs %s", cmd.CommandPath(), strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return usage(cmd, "%s does not take the argument %q", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}

func atLeastOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(cmd, "%s needs %s", cmd.CommandPath(), name)
		}
		return nil
	}
}

func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage(cmd, "%s does not take the argument %q", cmd.CommandPath(), args[1])
	}
	return nil
}

// choiceValue is a flag that takes one of some names.
type choiceValue struct {
	names []string
	get   func() string
	set   func(string)
}

func choice[T ~string](to *T, names ...string) *choiceValue {
	return &choiceValue{names, func() string { return string(*to) }, func(s string) { *to = T(s) }}
}

func (c *choiceValue) String() string {
	if c.get == nil {
		return ""
	}
	return c.get()
}

func (c *choiceValue) Type() string { return "name" }

func (c *choiceValue) Set(s string) error {
	if !slices.Contains(c.names, s) {
		return fmt.Errorf("it takes %s", strings.Join(c.names, ", "))
	}
	c.set(s)
	return nil
}

// completeWith offers names for a flag's value in shells.
func completeWith(cmd *cobra.Command, flag string, names []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic("BUG: " + err.Error())
	}
}
