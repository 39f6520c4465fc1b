// Package ptxas runs NVIDIA's assembler, which turns PTX into machine code (a cubin). A plain
// compile does without: the driver assembles PTX when it loads it.
package ptxas

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"weft/ir/diag"
)

// Assembler is a ptxas.
type Assembler struct {
	Path    string
	Version string // "ptxas 12.9.86"
}

var versionText = regexp.MustCompile(`release [0-9.]+, V([0-9.]+)`)

// Find finds ptxas and asks for its version. The file that WEFT_PTXAS names is used or is an
// error; else it is looked for in CUDA's folders, on PATH, where `make setup` unpacks NVIDIA's
// wheel, and in the Python environment that is active (see docs/dependencies.md).
func Find(ctx context.Context) (*Assembler, error) {
	path, named := os.Getenv("WEFT_PTXAS"), true
	if path == "" {
		path, named = search(), false
	}
	if path == "" {
		return nil, notFound("ptxas is needed to make cubins, and was not found in CUDA's folder, on PATH or in a Python environment")
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	m := versionText.FindSubmatch(out)
	switch {
	case m != nil && err == nil:
		return &Assembler{path, "ptxas " + string(m[1])}, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case named:
		return nil, notFound("ptxas is needed to make cubins, and %s, which WEFT_PTXAS names, does not run", path).Because(err)
	}
	return nil, notFound("ptxas is needed to make cubins, and %s does not say its version", path).Because(err)
}

func notFound(format string, args ...any) *diag.Diagnostic {
	return diag.Errorf(diag.NoAssembler, "", format, args...).
		Suggest("install it with `pip install %s`, or name one in WEFT_PTXAS; --code ptx does without", Wheel)
}

// Wheel is the package of PyPI that has ptxas.
const Wheel = "nvidia-cuda-nvcc-cu12"

// search gives the first ptxas that there is, empty for none.
func search() string {
	for _, folder := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda"} {
		if path := filepath.Join(folder, "bin", "ptxas"); folder != "" && isFile(path) {
			return path
		}
	}
	if path, err := exec.LookPath("ptxas"); err == nil {
		return path
	}
	const unpacked = "cuda/nvcc/nvidia/cuda_nvcc/bin/ptxas"
	if root := moduleRoot(); root != "" && isFile(filepath.Join(root, "build", unpacked)) {
		return filepath.Join(root, "build", unpacked)
	}
	if self, err := os.Executable(); err == nil && isFile(filepath.Join(filepath.Dir(self), unpacked)) {
		return filepath.Join(filepath.Dir(self), unpacked)
	}
	if environment := os.Getenv("VIRTUAL_ENV"); environment != "" {
		for _, folder := range []string{"cuda_nvcc", "cu13"} {
			found, err := filepath.Glob(filepath.Join(environment, "lib", "python3*", "site-packages", "nvidia", folder, "bin", "ptxas"))
			if err == nil && len(found) > 0 {
				return found[0]
			}
		}
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// moduleRoot is the folder of weft's sources, where the working directory is in them.
func moduleRoot() string {
	folder, err := os.Getwd()
	for err == nil {
		if text, err := os.ReadFile(filepath.Join(folder, "go.mod")); err == nil && strings.HasPrefix(string(text), "module weft\n") {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			break
		}
		folder = parent
	}
	return ""
}

// Assemble turns the PTX of a target into a cubin. It is a bug of weft (W0900) that ptxas refuses
// it, keeps registers in local memory, or warns of serialised instructions.
func (a *Assembler) Assemble(ctx context.Context, ptx []byte, target string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "weft-ptxas-*")
	if err != nil {
		return nil, diag.Errorf(diag.FileUnwritable, "", "a temporary folder cannot be made: %v", err).Because(err)
	}
	defer os.RemoveAll(folder)
	if err := os.WriteFile(filepath.Join(folder, "kernels.ptx"), ptx, 0o666); err != nil {
		return nil, diag.Errorf(diag.FileUnwritable, "", "a temporary file cannot be written: %v", err).Because(err)
	}
	// Plain names in a folder of its own: nothing of the machine can get into the cubin.
	path, err := filepath.Abs(a.Path)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, "-v", "-arch="+target, "-o", "kernels.cubin", "kernels.ptx")
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, diag.Errorf(diag.Bug, Place, "%s refuses the kernels for %s: %v\n%s", a.Version, target, err, firstLines(string(out), 5))
	}
	if problems := complaints(string(out)); len(problems) > 0 {
		d := diag.Errorf(diag.Bug, Place, "%s does not make good machine code of the kernels for %s", a.Version, target)
		d.Notes = problems[:min(len(problems), maxProblems)]
		return nil, d
	}
	cubin, err := os.ReadFile(filepath.Join(folder, "kernels.cubin"))
	if err == nil && len(cubin) == 0 {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return nil, diag.Errorf(diag.Bug, Place, "%s gives no cubin for %s: %v", a.Version, target, err)
	}
	return cubin, nil
}

// Place is the place of diagnostics about what ptxas says.
const Place = "ptxas"

const maxProblems = 10

var (
	properties = regexp.MustCompile(`Function properties for ([\w$]+)`)
	memory     = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)
	loss       = regexp.MustCompile(`\(C7[56]\d\d\).*`)
	inFunction = regexp.MustCompile(`(?:in the function|for entry function|function) '([\w$]+)'`)
)

// complaints finds what must not be in the output of ptxas -v: local memory, by kernel, and the
// messages C75xx and C76xx (instructions that ptxas had to serialise).
func complaints(output string) []string {
	var found []string
	kernel := "a kernel"
	for line := range strings.Lines(output) {
		if m := properties.FindStringSubmatch(line); m != nil {
			kernel = m[1]
		}
		if m := memory.FindStringSubmatch(line); m != nil && (m[1] != "0" || m[2] != "0" || m[3] != "0") {
			found = append(found, kernel+": "+m[0])
		}
		if m := loss.FindString(line); m != "" {
			if f := inFunction.FindStringSubmatch(line); f != nil {
				m = f[1] + ": " + m
			}
			found = append(found, strings.TrimSpace(m))
		}
	}
	return found
}

func firstLines(text string, n int) string {
	lines := strings.SplitN(strings.TrimSpace(text), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}
