package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"weft/codegen/llvm"
	"weft/codegen/ptxas"
	weftruntime "weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/comm"
	"weft/runtime/cuda"
)

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor [ARTIFACT]",
		Short: "Say what was found on this machine, and how to install what is missing",
		Long:  "doctor lists the tools that weft uses (llc to compile, ptxas for --code cubin, a driver and GPUs to run with\n--device cuda) and what it found. With an ARTIFACT it says what that needs to run here.",
		Args:  atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			found := examine(cmd.Context())
			if len(args) == 1 {
				return a.doctorArtifact(args[0], found, asJSON)
			}
			if asJSON {
				return a.printJSON(found)
			}
			a.printFindings(found)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// findings is what a machine has.
type findings struct {
	Weft   versionInfo `json:"weft"`
	LLC    finding     `json:"llc"`
	PTXAS  finding     `json:"ptxas"`
	Driver finding     `json:"driver"`
	NCCL   finding     `json:"nccl"`
	GPUs   []gpu       `json:"gpus"`

	driver int // CUDA's number, 13000
}

type finding struct {
	Found   bool   `json:"found"`
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	Purpose string `json:"purpose"`
	Problem string `json:"problem,omitempty"`
	Install string `json:"install,omitempty"` // the command, where it is missing
}

type gpu struct {
	Name       string `json:"name"`
	Capability string `json:"compute_capability"`
	Memory     int64  `json:"memory_bytes"`

	major, minor int
}

func examine(ctx context.Context) findings {
	f := findings{Weft: version(), LLC: examineLLC(ctx), PTXAS: examinePTXAS(ctx), GPUs: []gpu{}}
	f.examineDriver()
	f.NCCL = examineNCCL()
	return f
}

func examineLLC(ctx context.Context) finding {
	f := finding{Purpose: "compiles kernels to PTX"}
	c, err := llvm.FindCompiler(ctx)
	if err != nil {
		f.Problem, f.Install = problemOf(err), "apt-get install llvm-19"
		return f
	}
	f.Found, f.Path, f.Version = true, c.Path, c.Version
	return f
}

func problemOf(err error) string {
	line, _, _ := strings.Cut(inFile(err, "").Error(), "\n")
	_, message, ok := strings.Cut(line, ": ")
	if !ok {
		return line
	}
	return message
}

func examinePTXAS(ctx context.Context) finding {
	f := finding{Purpose: "assembles kernels for --code cubin and both"}
	assembler, err := ptxas.Find(ctx)
	if err != nil {
		f.Problem, f.Install = problemOf(err), "pip install "+ptxas.Wheel
		return f
	}
	f.Found, f.Path, f.Version = true, assembler.Path, assembler.Version
	return f
}

func (f *findings) examineDriver() {
	f.Driver = finding{Purpose: "runs artifacts with --device cuda"}
	number, err := cuda.DriverVersion()
	if err != nil {
		f.Driver.Problem = err.Error()
		f.Driver.Install = "apt-get install nvidia-driver (on Debian, from non-free)"
		if !cuda.Built {
			f.Driver.Problem, f.Driver.Install = "this weft was built without CUDA", "make build-cuda"
		}
		return
	}
	f.driver = number
	f.Driver.Found, f.Driver.Version = true, "CUDA "+driverText(number)
	count, err := cuda.Count()
	if err != nil {
		f.Driver.Problem = err.Error()
	}
	for i := range count {
		device, err := cuda.Open(i)
		if err != nil {
			f.Driver.Problem = fmt.Sprintf("GPU %d: %v", i, err)
			continue
		}
		p := device.Properties()
		f.GPUs = append(f.GPUs, gpu{p.Name, fmt.Sprintf("%d.%d", p.ComputeMajor, p.ComputeMinor), p.Memory, p.ComputeMajor, p.ComputeMinor})
		device.Close()
	}
}

func examineNCCL() finding {
	f := finding{Purpose: "carries collectives between GPUs"}
	number, name, err := comm.NCCLVersion()
	if err != nil {
		f.Problem, f.Install = problemOf(err), "apt-get install libnccl2, or pip install nvidia-nccl-cu12 and set "+comm.LibraryVariable
		if !cuda.Built {
			f.Problem, f.Install = "this weft was built without CUDA", "make build-cuda"
		}
		return f
	}
	f.Found, f.Version, f.Path = true, number, name
	return f
}

// driverText prints CUDA's number for a version: 12040 is 12.4.
func driverText(number int) string { return fmt.Sprintf("%d.%d", number/1000, number%1000/10) }

func (a *app) printFindings(f findings) {
	a.printf("weft     %s (%s %s/%s)\n", f.Weft.Version, f.Weft.Go, f.Weft.OS, f.Weft.Arch)
	for _, row := range []struct {
		name string
		finding
	}{{"llc", f.LLC}, {"ptxas", f.PTXAS}, {"driver", f.Driver}, {"NCCL", f.NCCL}} {
		if row.Found {
			a.printf("%-8s %s\n", row.name, strings.TrimSpace(row.Version+" "+row.Path))
		} else {
			a.printf("%-8s missing: %s\n         it %s; to install it: %s\n", row.name, row.Problem, row.Purpose, row.Install)
		}
		if row.Found && row.Problem != "" {
			a.printf("         %s\n", row.Problem)
		}
	}
	if len(f.GPUs) == 0 {
		a.printf("GPUs     none found; --device emu runs artifacts on the CPU\n")
	}
	for i, g := range f.GPUs {
		a.printf("GPU %-4d %s, compute capability %s, %s\n", i, g.Name, g.Capability, bytesText(g.Memory))
	}
}

// need is something that an artifact needs.
type need struct {
	Need   string `json:"need"`
	Met    bool   `json:"met"`
	Detail string `json:"detail"`
}

func (a *app) doctorArtifact(path string, found findings, asJSON bool) error {
	art, err := artifact.Open(path)
	if err != nil {
		return err
	}
	defer art.Close()
	needs := []need{{"--device reference", true, "always: the float64 evaluator"}, {"--device emu", len(art.Manifest.Targets) > 0, "always: the emulator runs the artifact's PTX"}}
	for _, t := range art.Manifest.Targets {
		if _, err := art.Kernels(t.Name); err != nil {
			needs[1] = need{"--device emu", false, "the artifact has no PTX"}
		}
		needs = append(needs, found.runs(t))
	}
	if mesh := art.Manifest.Mesh.Program(); mesh.Size() > 1 {
		n := need{Need: fmt.Sprintf("NCCL, for %d GPUs", mesh.Size()), Met: found.NCCL.Found, Detail: found.NCCL.Version}
		if !n.Met {
			n.Detail = found.NCCL.Problem + "; to install it: " + found.NCCL.Install
		}
		needs = append(needs, n)
	}
	needs = append(needs, weightsNeed(art))
	if asJSON {
		return a.printJSON(struct {
			Machine findings `json:"machine"`
			Needs   []need   `json:"needs"`
		}{found, needs})
	}
	rows := [][]string{{"NEED", "MET", ""}}
	for _, n := range needs {
		met := "no"
		if n.Met {
			met = "yes"
		}
		rows = append(rows, []string{n.Need, met, n.Detail})
	}
	table(a.stdout, rows)
	return nil
}

// runs tells whether the kernels of a target run on a GPU of this machine.
func (f findings) runs(t artifact.Target) need {
	n := need{Need: "--device cuda, kernels of " + t.Name}
	if !f.Driver.Found {
		n.Detail = f.Driver.Problem + "; to install it: " + f.Driver.Install
		return n
	}
	for i, g := range f.GPUs {
		if weftruntime.RunsOn(t.Name, weftruntime.Properties{ComputeMajor: g.major, ComputeMinor: g.minor}) {
			n.Met, n.Detail = true, fmt.Sprintf("GPU %d, %s; PTX %s, driver for CUDA %s (oldest: %s)", i, g.Name, t.PTX, driverText(f.driver), t.MinDriver)
			return n
		}
	}
	n.Detail = "no GPU here runs them"
	return n
}

func weightsNeed(art *artifact.Artifact) need {
	var given int
	for _, s := range art.Manifest.State {
		if s.From.Reference != nil {
			given++
		}
	}
	if given == 0 {
		return need{"weights", true, "in the artifact"}
	}
	return need{"weights", false, fmt.Sprintf("%s to be given with --weights FILE or DIR", plural(given, "tensor"))}
}
