package main

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"weft"
)

// compileFlags are the flags of weft compile.
type compileFlags struct {
	files             []weft.File
	targets           []string
	given             givenFlags
	weights           string
	output            string
	emit              string
	dumpAfter         string
	disabled          []string
	verifyIR          bool
	timeEach          bool
	jobs              int
	code              string
	noCache           bool
	precision         string
	config, links     string
	memoryLimit       int64
	mesh, parallel    string
	shard, shardInput []string
}

var (
	stages   = []string{"program", "scheduled", "llvm", "ptx", "plan"}
	codes    = []string{"ptx", "cubin", "both"}
	entryArg = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*)=(.+)$`)
)

func (a *app) compileCommand() *cobra.Command {
	f := &compileFlags{code: "ptx"}
	cmd := &cobra.Command{
		Use:   "compile FILE | NAME=FILE... --target TARGET... -o OUT",
		Short: "Compile a model into an artifact",
		Long: "compile reads exported models (.pt2, .onnx, a graph-only .json.zip, or program text; - is standard input)\n" +
			"and writes one artifact with kernels and launch plans for every --target. NAME names the entry, which is\n" +
			"forward otherwise. Several files become entries over the same states: those of one name are stored once\n" +
			"and shared, so that a cache that prefill fills is the one that decode extends.",
		Example: "  weft compile model.pt2 --target sm_80 --target sm_90a -o model.weft\n" +
			"  weft compile prefill=a.pt2 decode=b.pt2 --target sm_90a --dim batch=1..64 -o model.weft\n" +
			"  weft compile model.onnx --target sm_90a --emit ptx -o -",
		Args: atLeastOne("a FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.config != "" {
				c, err := readConfig(f.config)
				if err != nil {
					return err
				}
				if err := c.apply(cmd, f.config, f); err != nil {
					return err
				}
			}
			if err := f.check(cmd); err != nil {
				return err
			}
			return a.compile(cmd.Context(), args, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.targets, "target", nil, "compile for GPU `TARGET` (sm_80, sm_86, sm_89, sm_90, sm_90a, native); repeatable, required")
	flags.StringVarP(&f.output, "output", "o", "", "write to `OUT`; - is standard output")
	f.given.add(cmd)
	flags.StringVar(&f.weights, "weights", "embed", "`HOW` the artifact has its weights: embed, reference, none or random:SEED")
	flags.StringVar(&f.config, "config", "", "take what flags do not say from `FILE` (weft.yaml)")
	flags.StringVar(&f.mesh, "mesh", "", "make the program of a `MESH` of ranks: named axes and their sizes, as dp=8,tp=4")
	flags.StringVar(&f.links, "links", "", "bandwidths between ranks in `GB/s` along axes, for --parallel auto, as dp=50,tp=450")
	flags.Var((*byteSize)(&f.memoryLimit), "memory-limit", "`SIZE` that a rank may use, as 80GB (the target's memory)")
	flags.StringVar(&f.parallel, "parallel", "", "what the ranks along axes do, as `AXIS:STRATEGY`,...: ddp, zero1, zero2, fsdp, hsdp (over a+b), tp, tp+sp, ep; or auto")
	flags.StringArrayVar(&f.shard, "shard", nil, "divide parameters whose names match, as `PATTERN=[AXIS,*]`; repeatable")
	flags.StringArrayVar(&f.shardInput, "shard-input", nil, "divide inputs whose names match, as `PATTERN=[AXIS,*]`; repeatable")
	flags.StringVar(&f.precision, "precision", "", "compute in the types of `POLICY`: bf16, fp16, f32, tf32, or parts such as compute=bf16,lm_head=f32")
	flags.Var(choice(&f.code, codes...), "code", "`KIND` of code: ptx, cubin or both")
	flags.Var(choice(&f.emit, stages...), "emit", "write `STAGE` instead of an artifact: program, scheduled, llvm, ptx or plan")
	flags.StringVar(&f.dumpAfter, "dump-after", "", "print the program after pass `NAME`, or after each that changed it: changed")
	flags.StringArrayVar(&f.disabled, "disable-pass", nil, "leave out pass `NAME`; repeatable")
	flags.BoolVar(&f.verifyIR, "verify-ir", false, "check the program after every pass")
	flags.BoolVar(&f.timeEach, "time-passes", false, "print the time of every pass")
	flags.BoolVar(&f.noCache, "no-cache", false, "compile every kernel anew")
	flags.IntVarP(&f.jobs, "jobs", "j", 0, "compile `N` kernels at a time (0: as many as there are cores)")
	completeWith(cmd, "target", append(weft.Targets(), nativeTarget))
	completeWith(cmd, "emit", stages)
	completeWith(cmd, "dump-after", append(passNames(), "changed"))
	completeWith(cmd, "disable-pass", passNames())
	completeWith(cmd, "code", codes)
	completeWith(cmd, "weights", []string{"embed", "reference", "none", "random:"})
	completeWith(cmd, "precision", []string{"bf16", "fp16", "tf32", "f32"})
	return cmd
}

// check checks the flags against each other.
func (f *compileFlags) check(cmd *cobra.Command) error {
	switch {
	case len(f.targets) == 0:
		return usage(cmd, "--target is missing").Suggest("name the GPUs to compile for: --target %s", strings.Join(weft.Targets(), " or --target "))
	case f.output == "" && f.emit == "":
		return usage(cmd, "-o is missing").Suggest("name the artifact to write: -o model.weft")
	case f.output == "-" && f.emit == "":
		return usage(cmd, "an artifact cannot be written to standard output").Suggest("name a file: -o model.weft")
	case f.jobs < 0:
		return usage(cmd, "--jobs is not negative")
	}
	if err := f.checkPasses(cmd); err != nil {
		return err
	}
	var err error
	if f.targets, err = resolveNative(f.targets); err != nil {
		return err
	}
	for _, t := range f.targets {
		if !slices.Contains(weft.Targets(), t) {
			return unknown("target", t, append(weft.Targets(), nativeTarget))
		}
	}
	switch seed := strings.TrimPrefix(f.weights, "random:"); {
	case f.weights == "embed", f.weights == "reference", f.weights == "none", seed != f.weights:
	default:
		return usage(cmd, "--weights does not take %q", f.weights).Suggest("it takes embed, reference, none or random:SEED")
	}
	return nil
}

// checkPasses checks what is said about passes.
func (f *compileFlags) checkPasses(cmd *cobra.Command) error {
	for _, pass := range f.disabled {
		if !slices.Contains(passNames(), pass) {
			return unknown("pass", pass, passNames())
		}
	}
	switch {
	case f.dumpAfter == "":
	case f.dumpAfter != "changed" && !slices.Contains(passNames(), f.dumpAfter):
		return unknown("pass", f.dumpAfter, append(passNames(), "changed"))
	case slices.Contains(f.disabled, f.dumpAfter):
		return usage(cmd, "--dump-after names pass %q, which --disable-pass leaves out", f.dumpAfter)
	}
	if f.emit == "program" && (f.dumpAfter != "" || f.timeEach) {
		return usage(cmd, "--emit program ends before the first pass: --dump-after and --time-passes have nothing to show")
	}
	return nil
}

// parseFile reads a FILE or NAME=FILE argument.
func (a *app) parseFile(arg string) (f weft.File, err error) {
	if m := entryArg.FindStringSubmatch(arg); m != nil {
		f.Entry, arg = m[1], m[2]
	}
	f.Path, err = a.input(arg)
	return f, err
}

func (a *app) compile(ctx context.Context, args []string, f *compileFlags) error {
	for _, arg := range args {
		file, err := a.parseFile(arg)
		if err != nil {
			return err
		}
		f.files = append(f.files, file)
	}
	if err := f.given.resolve(); err != nil {
		return err
	}
	if err := f.given.give(f.files); err != nil {
		return err
	}
	if f.emit != "" && f.output == "" {
		f.output = "-"
	}
	progress := newProgress(a.stderr, a.format)
	defer progress.done()
	return a.compileWith(ctx, f, progress)
}

// recordedCode is --code as the artifact records it: empty for PTX alone.
func (f *compileFlags) recordedCode() string {
	if f.code == "ptx" {
		return ""
	}
	return f.code
}
