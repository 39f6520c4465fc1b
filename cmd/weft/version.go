package main

import (
	"runtime"

	"github.com/spf13/cobra"

	"weft"
	"weft/runtime/cuda"
)

type versionInfo struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	CUDA    bool   `json:"cuda"` // built with the CUDA device
}

func version() versionInfo {
	return versionInfo{weft.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, cuda.Built}
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			v := version()
			if asJSON {
				return a.printJSON(v)
			}
			variant := ""
			if v.CUDA {
				variant = ", with CUDA"
			}
			a.printf("weft %s (%s %s/%s%s)\n", v.Version, v.Go, v.OS, v.Arch, variant)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}
