package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"weft"
	"weft/ir/diag"
)

func (a *app) reproduceCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "reproduce FILE",
		Short: "Replay a reproducer, which a bug of the compiler has left",
		Long: "reproduce compiles the program of a reproducer (weft-reproducer-HASH.weft.txt) with the passes and options\n" +
			"that it records. The exit status is 5 when that fails as it did before, and 0 when it does not.",
		Args: exactly("a FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			failed, replay, err := weft.Reproduce(cmd.Context(), args[0], runtime.GOMAXPROCS(0))
			if err != nil {
				return err
			}
			if replay == nil {
				a.printf("fixed: %s no longer fails, nor does what comes after it\n", failed)
				return nil
			}
			for _, d := range diag.All(replay) {
				if d.Code == diag.Bug && d.Place == failed {
					return replay
				}
			}
			if cmd.Context().Err() != nil {
				return replay
			}
			a.printf("changed: %s no longer fails so; instead:\n%v\n", failed, replay)
			return nil
		},
	}
}
