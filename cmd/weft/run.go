package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/compare"
	"weft/ir/diag"
)

// runFlags are the flags of weft run.
type runFlags struct {
	device, entry, target, weights string
	given                          givenFlags
	ranks                          rankFlags
	before                         []string
	inputs, outputs, expect        string
	relative, absolute             float64
	relativeGiven, absoluteGiven   bool
	steps                          int
	seed                           uint64
	seedGiven                      bool
	trace                          string
	asJSON                         bool
}

var devices = []string{"reference", "emu", "cuda"}

func (a *app) runCommand() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run ARTIFACT|FILE --device reference|emu|cuda",
		Short: "Run an artifact or a model",
		Long: "run runs an entry of an artifact, or of a model file, which is compiled first.\n\n" +
			"Tensor files are .safetensors, .npz or .npy. Their tensors are in.N and out.N, or have the names of the\n" +
			"inputs and outputs; state.NAME is the first value of a state, after.state.NAME its value after the run.\n" +
			"One file can serve as --inputs and --expect: each takes what concerns it.\n\n" +
			"--before runs other entries first, over the same states: a cache that prefill fills is what decode extends.\n" +
			"The first values of states are then those of the first file.",
		Example: "  weft run model.weft --device emu --inputs io.safetensors --expect io.safetensors\n" +
			"  weft run model.weft --device cuda --before prefill=prompt.npz --entry decode --inputs token.npz --outputs logits.npy",
		Args: exactly("an ARTIFACT or FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.relativeGiven, f.absoluteGiven = cmd.Flags().Changed("rtol"), cmd.Flags().Changed("atol")
			f.seedGiven = cmd.Flags().Changed("seed")
			switch {
			case f.device == "":
				return usage(cmd, "--device is missing").Suggest("it takes %s", listText(devices))
			case f.expect == "" && (f.relativeGiven || f.absoluteGiven):
				return usage(cmd, "--rtol and --atol need --expect")
			case f.relative < 0 || f.absolute < 0:
				return usage(cmd, "tolerances are not negative")
			case f.steps < 1:
				return usage(cmd, "--steps is at least 1")
			case cmd.Flags().Changed("comm-timeout") && f.ranks.timeout <= 0:
				return usage(cmd, "--comm-timeout is above 0")
			case cmd.Flags().Changed("nproc") && f.ranks.launch.processes < 1:
				return usage(cmd, "--nproc is at least 1")
			}
			return a.run(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(choice(&f.device, devices...), "device", "run on `DEVICE`: reference (the float64 evaluator), emu (the emulator) or cuda")
	flags.StringVar(&f.entry, "entry", "", "entry to run (the only one, or forward)")
	flags.StringArrayVar(&f.before, "before", nil, "first run `ENTRY=FILE`, an entry with inputs from a file; repeatable")
	flags.StringVar(&f.target, "target", "", "kernels of the artifact to use (those that fit the device)")
	flags.StringVar(&f.weights, "weights", "", "weights from `FILE`, a directory, or random:SEED")
	f.given.add(cmd)
	flags.StringVar(&f.inputs, "inputs", "", "read inputs from `FILE`")
	flags.StringVar(&f.outputs, "outputs", "", "write outputs to `FILE`")
	flags.StringVar(&f.expect, "expect", "", "compare outputs with `FILE`; exit status 1 where they differ")
	flags.Float64Var(&f.relative, "rtol", 0, "relative tolerance of --expect (by type: f32 1e-4, bf16 2e-2, f16 4e-3, f64 1e-9)")
	flags.Float64Var(&f.absolute, "atol", 0, "absolute tolerance of --expect (by type: f32 1e-5, bf16 1e-2, f16 2e-3, f64 1e-9)")
	flags.Uint64Var(&f.seed, "seed", 0, "`SEED` of the random numbers that the model draws")
	flags.IntVar(&f.steps, "steps", 1, "run `N` times and print how long each took")
	f.ranks.add(cmd)
	flags.StringVar(&f.trace, "trace", "", "write what the devices did in the last step to `FILE`, as Chrome trace events (Perfetto opens it)")
	flags.BoolVar(&f.asJSON, "json", false, "print as JSON")
	completeWith(cmd, "device", devices)
	return cmd
}

// runReport is what a run prints.
type runReport struct {
	Device  string         `json:"device"`
	Entry   string         `json:"entry"`
	Steps   *timing        `json:"steps,omitempty"`
	Outputs []outputReport `json:"outputs"`
	Trace   *traceReport   `json:"trace,omitempty"`
}

type timing struct {
	Count  int     `json:"count"`
	First  float64 `json:"first_ms"`
	Min    float64 `json:"min_ms"` // this and the others: of the steps after the first
	Median float64 `json:"median_ms"`
	Max    float64 `json:"max_ms"`
}

type outputReport struct {
	Output     string      `json:"output"`
	Name       string      `json:"name,omitempty"`
	Type       string      `json:"type"`
	Comparison *comparison `json:"comparison,omitempty"`
}

func (a *app) run(ctx context.Context, path string, f *runFlags) error {
	if f.ranks.launch.processes != 0 {
		if err := checkTrace(f.trace); err != nil {
			return err
		}
		return a.launch(ctx, path, f.device, f.ranks)
	}
	trace, err := f.createTrace()
	if err != nil {
		return err
	}
	if trace != nil {
		defer trace.Abort()
	}
	path, err = a.input(path)
	if err != nil {
		return err
	}
	if err := f.given.resolve(); err != nil {
		return err
	}
	m, err := openGiven(path, f.given, a.warn)
	if err != nil {
		return err
	}
	defer m.Close()
	m.ranks, m.stderr, m.traced = f.ranks, a.stderr, f.trace != ""
	s, err := choose(m.entries(), f.entry)
	if err != nil {
		return err
	}
	var given *tensorFile
	if f.inputs != "" {
		if given, err = readTensors(f.inputs, "in.0"); err != nil {
			return err
		}
		defer given.Close()
	}
	inputs, states, err := given.inputs(s)
	if err != nil {
		return err
	}
	before, err := earlierRuns(m, f.before)
	if err != nil {
		return err
	}
	defer before.close()
	if len(before) > 0 {
		states = before[0].states
	}
	var expect *tensorFile
	if f.expect != "" {
		if expect, err = readTensors(f.expect, "out.0"); err != nil {
			return err
		}
		defer expect.Close()
	}
	values, err := m.givenWeights(f.weights, states)
	if err != nil {
		return err
	}
	if values, err = m.seeded(values, f.seed, f.seedGiven); err != nil {
		return err
	}
	session, err := m.open(ctx, f.device, f.target, values)
	if err != nil {
		return err
	}
	defer session.Close()
	for _, r := range before {
		if _, err := session.run(ctx, r.signature.Name, r.inputs); err != nil {
			return err
		}
	}
	if err := giveRanks(session, given); err != nil {
		return err
	}
	return a.runSession(ctx, session, s, inputs, expect, trace, f)
}

// earlierRun is a run of another entry before the one that is asked for.
type earlierRun struct {
	signature signature
	inputs    []*ir.Tensor
	states    []weights.Named
	file      *tensorFile // nil where the entry takes no inputs
}

type earlier []earlierRun

func (e earlier) close() {
	for _, r := range e {
		if r.file != nil {
			r.file.Close()
		}
	}
}

// earlierRuns reads the arguments of --before.
func earlierRuns(m *model, args []string) (list earlier, err error) {
	defer func() {
		if err != nil {
			list.close()
		}
	}()
	for _, arg := range args {
		name, path, given := strings.Cut(arg, "=")
		if name == "" {
			return list, diag.Errorf(diag.CommandLine, "", "--before does not take %q", arg).Suggest("write --before ENTRY=FILE")
		}
		r := earlierRun{}
		if r.signature, err = choose(m.entries(), name); err != nil {
			return list, err
		}
		if given {
			if r.file, err = readTensors(path, "in.0"); err != nil {
				return list, err
			}
		}
		list = append(list, r)
		last := &list[len(list)-1]
		if last.inputs, last.states, err = r.file.inputs(r.signature); err != nil {
			return list, err
		}
		if r.file != nil && len(r.file.ranks) > 0 {
			return list, diag.Errorf(diag.RunInputUnknown, "--before", "inputs of single ranks are for the entry that is run last").In(path)
		}
	}
	return list, nil
}

func (a *app) runSession(ctx context.Context, session session, s signature, inputs []*ir.Tensor, expect *tensorFile, trace *weights.PendingFile, f *runFlags) error {
	report := runReport{Device: session.target(), Entry: s.Name}
	start := time.Now()
	tensors, err := session.run(ctx, s.Name, inputs)
	if err != nil {
		return err
	}
	times := []time.Duration{time.Since(start)}
	if f.steps > 1 {
		start = time.Now()
		tensors, err = session.repeat(ctx, s.Name, inputs, f.steps-1, func() {
			times = append(times, time.Since(start))
			start = time.Now()
		})
		if err != nil {
			return err
		}
	}
	if report.Trace, err = f.writeTrace(ctx, session, trace); err != nil {
		return err
	}
	outputs, err := outputsOf(s, tensors, session.state)
	if ranks, ok := session.(*ranksSession); ok && err == nil {
		if ranks.others() {
			return nil
		}
		outputs, err = ranks.apart(outputs)
	}
	if err != nil {
		return err
	}
	if f.outputs != "" {
		if err := writeOutputs(f.outputs, outputs); err != nil {
			return err
		}
	}
	if f.steps > 1 {
		report.Steps = timingOf(times)
	}
	for _, o := range outputs {
		report.Outputs = append(report.Outputs, outputReport{Output: o.key, Name: o.name, Type: o.tensor.Type().String()})
	}
	var differs error
	if expect != nil {
		if differs, err = a.compare(report.Outputs, outputs, s, expect, f); err != nil {
			return err
		}
	}
	if f.asJSON {
		if err := a.printJSON(report); err != nil {
			return err
		}
		return differs
	}
	a.printRun(report, outputs, expect != nil)
	if report.Trace != nil {
		a.printTrace(report.Trace)
	}
	return differs
}

// warn keeps warnings for the end.
func (a *app) warn(list diag.List) { a.warnings = append(a.warnings, list...) }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// timingOf sums up the steps after the first, which also loads and warms up.
func timingOf(times []time.Duration) *timing {
	rest := slices.Sorted(slices.Values(times[1:]))
	return &timing{len(times), milliseconds(times[0]), milliseconds(rest[0]), milliseconds(rest[len(rest)/2]), milliseconds(rest[len(rest)-1])}
}

func (a *app) printRun(r runReport, outputs []output, compared bool) {
	a.printf("entry %s on %s\n", r.Entry, r.Device)
	if t := r.Steps; t != nil {
		a.printf("%d steps: first %.3f ms, then median %.3f ms (%.3f to %.3f)\n", t.Count, t.First, t.Median, t.Min, t.Max)
	}
	if compared {
		printComparisons(a.stdout, r.Outputs)
		return
	}
	rows := [][]string{{"OUTPUT", "NAME", "TYPE", "VALUES"}}
	for i, o := range r.Outputs {
		rows = append(rows, []string{o.Output, o.Name, o.Type, compare.Preview(outputs[i].tensor, 4)})
	}
	table(a.stdout, rows)
}

// givenWeights is what --weights names, with the states of the input file over it; nil for
// neither.
func (m *model) givenWeights(option string, states []weights.Named) (weights.Source, error) {
	var given weights.Source
	if option != "" {
		seed, random, err := weights.ParseRandom(option)
		switch {
		case err != nil:
			return nil, err
		case random:
			needs, err := m.needs()
			if err != nil {
				return nil, err
			}
			given, err = weights.Random(seed, needs)
			if err != nil {
				return nil, err
			}
		default:
			if given, err = weights.OpenSource(option); err != nil {
				return nil, err
			}
		}
	}
	if states == nil {
		return given, nil
	}
	named, err := m.statesAsWeights(states)
	if err != nil {
		return nil, err
	}
	return override(given, named)
}
