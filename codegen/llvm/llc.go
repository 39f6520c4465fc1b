package llvm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"weft/codegen/ptx"
	"weft/ir/diag"
)

// Compiler is an llc with the NVPTX target.
type Compiler struct {
	Path    string
	Version string // "LLVM version 19.1.7", part of every key
	Jobs    int    // processes at a time
}

// wantedVersion is the release whose output is promised to be the same everywhere.
const wantedVersion = "LLVM version 19."

var versionLine = regexp.MustCompile(`LLVM version [0-9][^\s]*`)

// FindCompiler finds llc: the one that WEFT_LLC names, at any version, else llc-19 on PATH.
func FindCompiler(ctx context.Context) (*Compiler, error) {
	path, named := os.LookupEnv("WEFT_LLC")
	if !named || path == "" {
		path, named = "llc-19", false
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return nil, diag.Errorf("W4001", "", "llc is needed to make PTX, and %s is not there", path).Because(err).
			Suggest("install LLVM 19 (on Debian and Ubuntu: apt-get install llvm-19), or name an llc in WEFT_LLC")
	}
	out, err := exec.CommandContext(ctx, found, "--version").Output()
	version := versionLine.FindString(string(out))
	switch {
	case err != nil || version == "":
		return nil, diag.Errorf("W4001", "", "%s --version says no LLVM version", found).Because(err).
			Suggest("name a working llc in WEFT_LLC")
	case !named && !strings.HasPrefix(version, wantedVersion):
		return nil, diag.Errorf("W4002", "", "%s is %s, and PTX is promised to be the same for LLVM 19 alone", found, version).
			Suggest("install LLVM 19, or name this llc in WEFT_LLC to use it all the same")
	}
	return &Compiler{Path: found, Version: version, Jobs: 1}, nil
}

// Module is the LLVM IR text of one kernel.
type Module struct {
	Name string
	Text string
}

// Compile turns kernels into PTX for an -mcpu. Kernels are put together into as many modules as
// there are jobs; the result does not depend on how, since each is cut out again as if it had
// been compiled alone. Entries come in the order of the kernels.
func (c *Compiler) Compile(ctx context.Context, kernels []Module, cpu string) ([]ptx.Entry, error) {
	entries := make([]ptx.Entry, len(kernels))
	where := map[string]int{}
	for i, k := range kernels {
		where[k.Name] = i
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, shard := range c.shards(kernels) {
		group.Go(func() error {
			text, err := c.llc(ctx, join(shard), cpu)
			if err != nil {
				return fmt.Errorf("compiling %d kernels for %s: %w", len(shard), cpu, err)
			}
			split, err := ptx.Split(text)
			if err != nil {
				return fmt.Errorf("reading the PTX of llc for %s: %w", cpu, err)
			}
			for _, e := range split {
				i, ok := where[e.Name]
				if !ok {
					return fmt.Errorf("llc made an entry %s that was not asked for", e.Name)
				}
				entries[i] = e
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, e := range entries {
		if e.Name == "" {
			return nil, fmt.Errorf("llc made no entry %s", kernels[i].Name)
		}
		if err := ptx.Lint(e.Text()); err != nil {
			return nil, fmt.Errorf("kernel %s for %s: %w", e.Name, cpu, err)
		}
	}
	return entries, nil
}

// shards deals the kernels out, the longest first, so that the parts take about as long.
func (c *Compiler) shards(kernels []Module) [][]Module {
	n := min(max(c.Jobs, 1), len(kernels))
	sorted := slices.Clone(kernels)
	slices.SortStableFunc(sorted, func(a, b Module) int { return len(b.Text) - len(a.Text) })
	shards, sizes := make([][]Module, n), make([]int, n)
	for _, k := range sorted {
		least := slices.Index(sizes, slices.Min(sizes))
		shards[least] = append(shards[least], k)
		sizes[least] += len(k.Text)
	}
	return shards
}

// join makes one module of several: declarations once, annotations renumbered.
func join(kernels []Module) string {
	var head, body strings.Builder
	declared := map[string]bool{}
	var annotations []string
	for _, k := range kernels {
		for line := range strings.Lines(k.Text) {
			switch {
			case strings.HasPrefix(line, "target ") || strings.HasPrefix(line, "declare "):
				if !declared[line] {
					declared[line] = true
					head.WriteString(line)
				}
			case strings.HasPrefix(line, "!nvvm.annotations"):
			case strings.HasPrefix(line, "!0 = "):
				annotations = append(annotations, strings.TrimPrefix(line, "!0 = "))
			default:
				body.WriteString(line)
			}
		}
	}
	var tail strings.Builder
	refs := make([]string, len(annotations))
	for i, a := range annotations {
		fmt.Fprintf(&tail, "!%d = %s", i, a)
		refs[i] = fmt.Sprintf("!%d", i)
	}
	return head.String() + body.String() + "!nvvm.annotations = !{" + strings.Join(refs, ", ") + "}\n" + tail.String()
}

// llc compiles one module. No float operation is contracted: what rounds is written.
func (c *Compiler) llc(ctx context.Context, text, cpu string) (string, error) {
	cmd := exec.CommandContext(ctx, c.Path, "-march=nvptx64", "-mcpu="+cpu, "-O3", "-nvptx-fma-level=0", "-fp-contract=off", "-o", "-", "-")
	cmd.Stdin = strings.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		message := strings.TrimSpace(stderr.String())
		if len(message) > 2000 {
			message = message[:2000] + " ..."
		}
		return "", diag.Errorf(diag.Bug, "", "%s failed: %v: %s", c.Path, err, message).Because(errors.Unwrap(err)).
			Suggest("this is a bug in weft: please report it with the command and the input")
	}
	return string(out), nil
}
