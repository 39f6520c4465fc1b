package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"weft/codegen/ptx"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/plan"
	"weft/runtime/artifact"
)

func (a *app) verifyCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify ARTIFACT",
		Short: "Check an artifact's digests, program and plans",
		Long:  "verify compares every byte of an artifact with the digests in its manifest, checks the program, and proves\nfor every plan that memory is written before it is read and that live buffers do not overlap.",
		Args:  exactly("an ARTIFACT"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.verify(args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

type verifyReport struct {
	Digest  string `json:"digest"`
	Members int    `json:"members"`
	Bytes   int64  `json:"bytes"`
	Plans   int    `json:"plans"`
	Kernels int    `json:"kernels"`
}

func (a *app) verify(path string, asJSON bool) error {
	art, err := artifact.Open(path)
	if err != nil {
		return err
	}
	defer art.Close()
	if err := art.Verify(); err != nil {
		return inFile(err, path)
	}
	p, err := ir.ParseProgram("program.weft", art.Program())
	if err == nil {
		err = ir.Verify(p)
	}
	if err != nil {
		return inFile(err, path)
	}
	report := verifyReport{Digest: art.Digest(), Members: len(art.Manifest.Members)}
	for _, m := range art.Manifest.Members {
		report.Bytes += m.Size
	}
	for _, t := range art.Manifest.Targets {
		plans, kernels, err := verifyTarget(art, t.Name)
		if err != nil {
			return inFile(err, path)
		}
		report.Plans, report.Kernels = report.Plans+plans, report.Kernels+kernels
	}
	if asJSON {
		return a.printJSON(report)
	}
	a.printf("%s: %s, %s: every digest is right\n", path, plural(report.Members, "member"), bytesText(report.Bytes))
	a.printf("%s over %s: every rule of a plan holds\n", plural(report.Plans, "plan"), plural(report.Kernels, "kernel"))
	a.printf("sha256 %s\n", report.Digest)
	return nil
}

// verifyTarget verifies the plans of all entries for a target.
func verifyTarget(art *artifact.Artifact, target string) (plans, kernels int, err error) {
	parameters, err := kernelParameters(art, target)
	if err != nil {
		return 0, 0, err
	}
	var all []*plan.Plan
	for _, e := range art.Manifest.Entries {
		p, err := readPlan(art, target, e.Name)
		if err != nil {
			return 0, 0, err
		}
		all = append(all, p)
		kernels := func(name string) (int, bool) {
			n, ok := parameters[name]
			return n, ok
		}
		if parameters == nil {
			kernels = nil
		}
		if err := plan.Verify(p, kernels); err != nil {
			return 0, 0, err
		}
	}
	return len(all), len(parameters), plan.VerifyRanks(all...)
}

// kernelParameters counts the parameters of each kernel for a target; nil where the artifact
// has cubins alone.
func kernelParameters(art *artifact.Artifact, target string) (map[string]int, error) {
	text, err := art.Kernels(target)
	if err != nil {
		if _, cubin := art.Cubin(target); cubin == nil {
			return nil, nil
		}
		return nil, err
	}
	m, err := ptx.Parse(string(text))
	if err != nil {
		return nil, diag.Errorf(diag.ArtifactDamaged, "kernels/"+target+".ptx", "%v", err).Because(err)
	}
	parameters := map[string]int{}
	for _, f := range m.Entries() {
		parameters[f.Name] = len(f.Parameters)
	}
	return parameters, nil
}

// readPlan decodes the plan of an entry and checks all of it but the kernels' parameters.
func readPlan(art *artifact.Artifact, target, entry string) (*plan.Plan, error) {
	text, err := art.Plan(target, entry, "")
	if err != nil {
		return nil, err
	}
	p, err := plan.Decode(text)
	if err == nil {
		err = plan.Verify(p, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("plan of %s for %s: %w", entry, target, err)
	}
	return p, nil
}

// inFile names the file in diagnostics that name none.
func inFile(err error, path string) error {
	list := diag.All(err)
	for i, d := range list {
		if d.File == "" {
			c := *d
			list[i] = c.In(path)
		}
	}
	return list
}
