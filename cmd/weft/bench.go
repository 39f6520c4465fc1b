package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	weftruntime "weft/runtime"
	"weft/runtime/bench"
)

// benchFlags are the flags of weft bench.
type benchFlags struct {
	device, entry, target, weights string
	inputs, expect, intRange       string
	dims                           []string
	steps, warmup                  int
	kernels, asJSON                bool
	against, python, model         string
	modes                          []string
	budget                         time.Duration
	ranks                          rankFlags
}

// largestWrittenWeights is how many bytes of weights are written for PyTorch at most.
const largestWrittenWeights = 8 << 30

func (a *app) benchCommand() *cobra.Command {
	f := &benchFlags{}
	cmd := &cobra.Command{
		Use:   "bench ARTIFACT|FILE --device emu|cuda",
		Short: "Measure an artifact or a model, kernel by kernel too",
		Long: "bench measures whole steps of an entry, without transfers, and with --kernels each kernel alone. On cuda\n" +
			"times are between device events and a step is replayed as a graph; on emu they are wall time.\n\n" +
			"Inputs come from --inputs, or are random: " + bench.Rule + ".\n\n" +
			"--against torch runs the same model (a .pt2, a graph without weights, or FILE.py:FUNCTION) in PyTorch on\n" +
			"the same inputs and weights in the same run. All outputs are compared with a float64 run first; exit status 1\n" +
			"where weft's differ.",
		Args: exactly("an ARTIFACT or FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.device == "":
				return usage(cmd, "--device is missing").Suggest("it takes emu, cuda")
			case f.steps < 0 || f.warmup < 0 && cmd.Flags().Changed("warmup"):
				return usage(cmd, "--steps and --warmup are not negative")
			case f.budget <= 0:
				return usage(cmd, "--budget is more than 0s")
			case f.inputs != "" && (len(f.dims) > 0 || f.intRange != ""):
				return usage(cmd, "--dim and --int-range are for random inputs, not for --inputs")
			case f.against == "" && f.model != "":
				return usage(cmd, "--model needs --against torch")
			}
			for _, mode := range f.modes {
				if !slices.Contains(bench.TorchModes, mode) {
					return unknown("mode", mode, bench.TorchModes)
				}
			}
			return a.bench(cmd.Context(), args[0], f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Var(choice(&f.device, "emu", "cuda"), "device", "measure on `DEVICE`: emu (the emulator) or cuda")
	flags.StringVar(&f.entry, "entry", "", "entry to run (the only one, or forward)")
	flags.StringVar(&f.target, "target", "", "kernels of the artifact to use (those that fit the device)")
	flags.StringVar(&f.weights, "weights", "", "weights from `FILE`, a directory, or random:SEED")
	flags.StringVar(&f.inputs, "inputs", "", "read inputs from `FILE`")
	flags.StringVar(&f.expect, "expect", "", "compare the outputs with `FILE` first")
	flags.StringArrayVar(&f.dims, "dim", nil, "size of a symbolic dim for random inputs: `NAME=N`, repeatable")
	flags.StringVar(&f.intRange, "int-range", "", "random integers are in `LOW..HIGH`")
	flags.IntVar(&f.steps, "steps", 0, "times to take (50 on cuda, 3 on emu)")
	flags.IntVar(&f.warmup, "warmup", -1, "runs before the first time (10 on cuda, 0 on emu)")
	flags.BoolVar(&f.kernels, "kernels", false, "measure each kernel alone as well")
	flags.Var(choice(&f.against, "torch"), "against", "measure the same model with `OTHER` too: torch")
	flags.StringVar(&f.model, "model", "", "the model that PyTorch loads: `FILE` (.pt2, .json.zip) or FILE.py:FUNCTION (the FILE argument)")
	flags.StringVar(&f.python, "python", "python3", "`PROGRAM` that has PyTorch")
	flags.StringSliceVar(&f.modes, "modes", bench.TorchModes, "how PyTorch runs: `MODES` of "+strings.Join(bench.TorchModes, ", "))
	flags.DurationVar(&f.budget, "budget", 5*time.Minute, "`TIME` for all that PyTorch does; modes that do not fit are left out")
	f.ranks.addLocal(cmd)
	flags.BoolVar(&f.asJSON, "json", false, "print as JSON")
	completeWith(cmd, "device", []string{"emu", "cuda"})
	return cmd
}

// options fills in what depends on the device.
func (f *benchFlags) options() bench.Options {
	o := bench.Options{Steps: f.steps, Warmup: f.warmup}
	if o.Steps == 0 {
		o.Steps = map[string]int{"cuda": 50, "emu": 3}[f.device]
	}
	if o.Warmup < 0 {
		o.Warmup = map[string]int{"cuda": 10, "emu": 0}[f.device]
	}
	return o
}

// benchReport is what a measurement prints.
type benchReport struct {
	Device   string             `json:"device"`
	Entry    string             `json:"entry"`
	Clock    string             `json:"clock"`
	Inputs   []outputReport     `json:"inputs"`
	Random   bool               `json:"random_inputs"`
	Outputs  []outputReport     `json:"outputs"`
	Launches int                `json:"launches"`
	Arena    int64              `json:"arena_bytes"`
	FLOPs    int64              `json:"flops"` // of contractions in a step
	Step     bench.Times        `json:"step"`
	Kernels  []bench.Kernel     `json:"kernels,omitempty"`
	Torch    *bench.TorchReport `json:"torch,omitempty"`
	Ratios   map[string]float64 `json:"ratios,omitempty"` // PyTorch's time by weft's, by mode and best
}

func (a *app) bench(ctx context.Context, path string, f *benchFlags) error {
	path, err := a.input(path)
	if err != nil {
		return err
	}
	m, err := openModel(path, a.warn)
	if err != nil {
		return err
	}
	defer m.Close()
	m.ranks = f.ranks
	s, err := choose(m.entries(), f.entry)
	if err != nil {
		return err
	}
	inputs, states, closer, err := m.benchInputs(s, f)
	if err != nil {
		return err
	}
	defer closer.Close()
	values, err := m.givenWeights(f.weights, states)
	if err != nil {
		return err
	}
	opened, err := m.onDevice(ctx, f.device, f.target, values)
	if err != nil {
		return err
	}
	defer opened.Close()
	run := &benchRun{app: a, flags: f, model: m, given: values, signature: s, inputs: inputs, session: opened}
	return run.all(ctx)
}

// benchInputs reads the inputs, or makes random ones.
func (m *model) benchInputs(s signature, f *benchFlags) ([]*ir.Tensor, []weights.Named, io.Closer, error) {
	if f.inputs != "" {
		given, err := readTensors(f.inputs, "in.0")
		if err != nil {
			return nil, nil, nil, err
		}
		inputs, states, err := given.inputs(s)
		if err != nil {
			given.Close()
			return nil, nil, nil, err
		}
		return inputs, states, given, nil
	}
	dims, err := parseSizes(f.dims)
	if err != nil {
		return nil, nil, nil, err
	}
	integers, err := parseIntRange(f.intRange)
	if err != nil {
		return nil, nil, nil, err
	}
	inputs, err := bench.Inputs(m.program, m.program.Entry(s.Name), dims, integers)
	return inputs, nil, io.NopCloser(nil), err
}

func parseSizes(texts []string) (map[string]int64, error) {
	sizes := map[string]int64{}
	for _, text := range texts {
		name, digits, ok := strings.Cut(text, "=")
		n, err := strconv.ParseInt(digits, 10, 64)
		if !ok || err != nil || n < 0 {
			return nil, diag.Errorf(diag.CommandLine, "--dim", "%q is not NAME=N", text).Suggest("for example --dim batch=8")
		}
		sizes[name] = n
	}
	return sizes, nil
}

func parseIntRange(text string) (*bench.IntRange, error) {
	if text == "" {
		return nil, nil
	}
	low, high, ok := strings.Cut(text, "..")
	from, err := strconv.ParseInt(low, 10, 64)
	to, err2 := strconv.ParseInt(high, 10, 64)
	if !ok || err != nil || err2 != nil || from > to {
		return nil, diag.Errorf(diag.CommandLine, "--int-range", "%q is not LOW..HIGH", text).Suggest("for example --int-range 0..255")
	}
	return &bench.IntRange{Low: from, High: to}, nil
}

// benchRun is one measurement.
type benchRun struct {
	*app
	flags     *benchFlags
	model     *model
	given     weights.Source // what --weights gave, or nil
	signature signature
	inputs    []*ir.Tensor
	session   session
	report    benchReport
}

// all checks, measures and prints.
func (r *benchRun) all(ctx context.Context) error {
	tensors, err := r.session.run(ctx, r.signature.Name, r.inputs)
	if err != nil {
		return err
	}
	r.report = benchReport{Device: r.session.target(), Entry: r.signature.Name, Random: r.flags.inputs == ""}
	for i, t := range r.inputs {
		r.report.Inputs = append(r.report.Inputs, outputReport{Output: fmt.Sprintf("in.%d", i), Name: r.signature.Inputs[i].Name, Type: t.Type().String()})
	}
	differs, err := r.check(tensors)
	if err != nil {
		return err
	}
	if differs == nil {
		if err := r.measure(ctx); err != nil {
			return err
		}
		if r.flags.against == "torch" {
			if differs, err = r.againstTorch(ctx, tensors); err != nil {
				return err
			}
		}
	}
	if r.flags.asJSON {
		err = r.printJSON(r.report)
	} else {
		r.print(differs == nil)
	}
	if err != nil {
		return err
	}
	return differs
}

// check compares the outputs with --expect.
func (r *benchRun) check(tensors []*ir.Tensor) (differs, err error) {
	outputs, err := outputsOf(r.signature, tensors, r.session.state)
	if ranks, ok := r.session.(*ranksSession); ok && err == nil {
		outputs, err = ranks.apart(outputs)
	}
	if err != nil {
		return nil, err
	}
	for _, o := range outputs {
		r.report.Outputs = append(r.report.Outputs, outputReport{Output: o.key, Name: o.name, Type: o.tensor.Type().String()})
	}
	if r.flags.expect == "" {
		return nil, nil
	}
	expect, err := readTensors(r.flags.expect, "out.0")
	if err != nil {
		return nil, err
	}
	defer expect.Close()
	return r.compare(r.report.Outputs, outputs, r.signature, expect, &runFlags{})
}

// measure takes the times of weft.
func (r *benchRun) measure(ctx context.Context) error {
	if ranks, ok := r.session.(*ranksSession); ok {
		return r.measureRanks(ctx, ranks)
	}
	session, ok := r.session.(*deviceSession)
	if !ok {
		panic("BUG: a session on a device is no deviceSession")
	}
	device := session.device
	r.report.Clock = bench.Clock(device)
	b, err := session.Bind(r.signature.Name, r.inputs)
	if err != nil {
		return err
	}
	defer b.Close()
	r.count(b)
	if r.report.Step, err = bench.Step(ctx, device, b, r.flags.options()); err != nil {
		return err
	}
	if r.flags.kernels {
		r.report.Kernels, err = bench.Kernels(ctx, device, b, r.flags.options())
	}
	return err
}

// measureRanks takes the times of all ranks together; kernels, launches and memory are those of the first.
func (r *benchRun) measureRanks(ctx context.Context, session *ranksSession) error {
	r.report.Clock = bench.Clock(session.Members()[0].Device)
	b, err := session.Ranks.Bind(r.signature.Name, session.inputsOf(r.inputs))
	if err != nil {
		return err
	}
	defer b.Close()
	first := b.Bindings()[0]
	r.count(first)
	if r.report.Step, err = bench.Ranks(ctx, b, r.flags.options()); err != nil {
		return err
	}
	if r.flags.kernels {
		r.report.Kernels, err = bench.RankKernels(ctx, session.Members()[0].Device, first, r.flags.options())
	}
	return err
}

// count notes what a run has to do.
func (r *benchRun) count(b *weftruntime.Binding) {
	launches := b.Launches()
	r.report.Launches, r.report.Arena = len(launches), b.Memory().Arena
	steps := b.Plan().Flat()
	for _, l := range launches {
		if n, err := steps[l.Step].Launch.FLOPs.Eval(b.Dims()); err == nil {
			r.report.FLOPs += n
		}
	}
}

// againstTorch measures the same model in PyTorch. differs says that weft's outputs are wrong.
func (r *benchRun) againstTorch(ctx context.Context, outputs []*ir.Tensor) (differs, err error) {
	t := bench.Torch{Python: r.flags.python, Model: r.flags.model, Device: "cpu", Modes: r.flags.modes, Inputs: r.inputs, Outputs: outputs,
		Options: r.flags.options(), Budget: r.flags.budget}
	if t.Model == "" {
		t.Model = r.model.path
	}
	if r.model.artifact != nil && r.flags.model == "" {
		return nil, diag.Errorf(diag.CommandLine, "--against", "PyTorch cannot load an artifact").Suggest("name the model that it was compiled from with --model FILE")
	}
	if r.flags.device == "cuda" {
		t.Device = "cuda"
	}
	if strings.HasSuffix(t.Model, ".json.zip") {
		if t.Weights, err = r.model.weightsForTorch(r.given); err != nil {
			return nil, err
		}
	}
	if r.report.Torch, err = t.Run(ctx); err != nil {
		return nil, err
	}
	r.report.Ratios = map[string]float64{}
	for _, mode := range r.report.Torch.Modes {
		if mode.Error == "" && r.report.Step.Median > 0 {
			r.report.Ratios[mode.Mode] = mode.Median / r.report.Step.Median
		}
	}
	if best := r.report.Torch.Best(); best != nil {
		r.report.Ratios["best"] = r.report.Ratios[best.Mode]
	}
	if c := r.report.Torch.Check("weft"); c != nil && !c.Agrees {
		return diag.Errorf(diag.OutputsDiffer, "", "the outputs differ from float64 by up to %v", c.Max).
			Note("%d of %d elements are out of tolerance", c.Outside, c.Elements), nil
	}
	return nil, nil
}

// weightsForTorch are the values of the states under the names that the model's file has for
// them; nil where they are too large to be written once more.
func (m *model) weightsForTorch(given weights.Source) (weights.Source, error) {
	all := given
	if m.artifact != nil {
		var err error
		if all, err = m.artifact.WeightsWith(given); err != nil {
			return nil, err
		}
	}
	if all == nil {
		return nil, nil
	}
	var names, from []string
	total := int64(0)
	for i := range m.program.States {
		s := &m.program.States[i]
		name, stored := s.StoredName(), s.StoredName()
		if m.artifact != nil {
			stored = s.Name
		}
		info, ok := all.Info(stored)
		if !ok || slices.Contains(names, name) {
			continue
		}
		size, err := weights.ByteSize(info.DType, info.Shape)
		if err != nil {
			return nil, err
		}
		total += size
		names, from = append(names, name), append(from, stored)
	}
	if total > largestWrittenWeights {
		return nil, nil
	}
	return weights.Rename(all, names, from)
}
