// Package weft compiles exported models into artifacts and opens artifacts to run them. This
// page joins everything: frontends make a program, passes schedule it, codegen makes kernels
// and plans of it, llc makes PTX, and the artifact holds the result. No step needs a GPU.
package weft

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"weft/codegen"
	"weft/codegen/llvm"
	"weft/codegen/ptx"
	"weft/codegen/ptxas"
	"weft/frontend"
	"weft/frontend/lower"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
	"weft/ir/plan"
	"weft/ir/reproducer"
	"weft/ir/target"
	"weft/passes"
	"weft/passes/precision"
	"weft/passes/shard"
	"weft/runtime/artifact"
)

// Version of weft; part of every artifact and key.
const Version = "0.1.0"

// File is a model file and the entry that it becomes; an empty Entry is "forward". Constants are
// "INPUT=VALUES": inputs of the model that become constants, such as those that decide about
// shapes.
type File struct {
	Entry, Path string
	Constants   []string
}

// Options of a compile. What is in Config decides about the bytes of the artifact; the rest
// does not.
type Options struct {
	Config
	Files     []File // entries over the same states
	Jobs      int    // llc processes at a time, at least 1
	VerifyIR  bool
	AfterPass func(pass string, changed bool, p *ir.Program) error // nil is allowed
	Progress  func(stage string)                                   // nil is allowed
	// Reproducers are the folders into which a bug may put its reproducer, the best first.
	Reproducers []string
}

// Config is the part of the options that an artifact depends on and records.
type Config struct {
	Targets  []string `json:"targets"`
	Dims     []string `json:"dims,omitempty"`      // as --dim
	Fixed    []string `json:"constants,omitempty"` // [ENTRY.]INPUT=VALUES of the files, which Compile gathers
	Weights  string   `json:"weights"`             // embed, reference, none, random:SEED
	Code     string   `json:"code,omitempty"`      // ptx (also when empty), cubin, both
	PTXAS    string   `json:"ptxas,omitempty"`     // its version, which Compile finds out
	Disabled []string `json:"disabled_passes,omitempty"`
	Mesh     string   `json:"mesh,omitempty"`     // "dp=8,tp=4"; empty is one rank
	Parallel string   `json:"parallel,omitempty"` // strategies as shard.ParseStrategies reads them
	// Links are bandwidths between ranks for --parallel auto, "dp=50,tp=450" in GB/s; MemoryLimit is
	// what a rank may use in bytes (0: the target's memory).
	Links       string `json:"links,omitempty"`
	MemoryLimit int64  `json:"memory_limit,omitempty"`
	// Shardings and InputShardings are rules as shard.ParseRule reads them, by name of a state
	// or an input.
	Shardings      []string `json:"shardings,omitempty"`
	InputShardings []string `json:"input_shardings,omitempty"`
	// Precision is a policy as precision.Parse reads it; empty leaves the model's types.
	Precision string `json:"precision,omitempty"`
}

// Compiled is a compiled model before it is written.
type Compiled struct {
	Imported  *ir.Program // the model as it means, before scheduling
	Scheduled *ir.Program
	Lowered   *codegen.Lowered
	PTX       map[string][]byte // by target
	Cubin     map[string][]byte // by target; nil unless Code asks for it
	Report    *passes.Report
	Warnings  diag.List
	LLC       string // version line

	config  Config
	weights weights.Source
}

// Stage is how far a compile goes.
type Stage int

const (
	StageProgram   Stage = iota // imported
	StageScheduled              // kernel groups, schedules, memory
	StageLowered                // LLVM IR and plans
	StagePTX                    // everything
)

// Import reads model files, joins them over their common states, and applies what --dim says of
// their dims. With contents, states of the same name must have the same first values.
func Import(files []File, dims []string, contents bool) (*lower.Imported, error) {
	return importFiles(files, frontend.Options{Dims: dims}, contents)
}

// importFiles is Import with what else a frontend may be told.
func importFiles(files []File, o frontend.Options, contents bool) (_ *lower.Imported, err error) {
	var parts []frontend.Part
	var imported *lower.Imported
	defer func() {
		if err == nil {
			return
		}
		for _, p := range parts {
			p.Close()
		}
	}()
	for _, f := range files {
		one := frontend.Options{Dims: o.Dims, Constants: f.Constants, Mesh: o.Mesh}
		if len(files) > 1 {
			one.Dims = frontend.FactsOf(f.Entry, o.Dims)
		}
		if imported, err = frontend.Import(f.Path, one); err != nil {
			return nil, err
		}
		parts = append(parts, frontend.Part{Entry: f.Entry, Path: f.Path, Imported: imported})
	}
	if imported, err = frontend.Join(parts, contents); err != nil {
		return nil, err
	}
	return imported, frontend.ApplyDims(imported.Program, o.Dims)
}

// fixedInputs are the constants of all files, with the entry's name where there are several.
func fixedInputs(files []File) (facts []string) {
	for _, f := range files {
		for _, fact := range f.Constants {
			if len(files) > 1 {
				fact = f.Entry + "." + fact
			}
			facts = append(facts, fact)
		}
	}
	slices.Sort(facts)
	return facts
}

// Compile compiles the files of one model up to a stage. Close the result.
func Compile(ctx context.Context, o Options, until Stage) (*Compiled, error) {
	step := func(name string) {
		if o.Progress != nil {
			o.Progress(name)
		}
	}
	targets, err := findTargets(o.Targets)
	if err != nil {
		return nil, err
	}
	step("import")
	imported, err := importFiles(o.Files, frontend.Options{Dims: o.Dims, Mesh: o.Mesh}, o.Weights == "" || o.Weights == "embed" || o.Weights == "reference")
	if err != nil {
		return nil, err
	}
	c := &Compiled{Imported: imported.Program, Warnings: imported.Warnings, PTX: map[string][]byte{}, config: o.Config, weights: imported.Weights}
	c.config.Fixed = fixedInputs(o.Files)
	if err := c.run(ctx, o, nil, targets, until, step); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// run compiles the imported program. only are the passes to run; nil for all. A bug on the way
// leaves a reproducer.
func (c *Compiled) run(ctx context.Context, o Options, only []string, targets []target.Target, until Stage, step func(string)) error {
	err := c.stages(ctx, o, only, targets, until, step)
	for _, d := range diag.All(err) {
		if d.Code == diag.Bug && ctx.Err() == nil {
			c.keep(d, o, only)
			break
		}
	}
	return err
}

// stages goes through the stages; a bug has the step that failed as its place.
func (c *Compiled) stages(ctx context.Context, o Options, only []string, targets []target.Target, until Stage, step func(string)) (err error) {
	if o.VerifyIR {
		if err := ir.Verify(c.Imported); err != nil {
			return diag.Errorf(diag.Bug, "import", "the frontend made an invalid program: %v", err)
		}
	}
	if until == StageProgram {
		return nil
	}
	how, err := o.passes(c.Imported.Mesh)
	if err != nil {
		return err
	}
	c.config.Precision = how.Precision.String()
	how.Only, how.Verify, how.After = only, o.VerifyIR, o.AfterPass
	step("passes")
	c.Scheduled = c.Imported.Clone()
	c.Report, err = passes.Run(c.Scheduled, how)
	c.Warnings = append(c.Warnings, c.Report.Warnings...)
	if err != nil || until == StageScheduled {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	step("kernels")
	if c.Lowered, err = codegen.Lower(c.Scheduled); err != nil {
		return blame("kernels", err)
	}
	if err := c.verifyPlans(); err != nil || until == StageLowered {
		return err
	}
	step("llc")
	return c.assemble(ctx, o, targets, step)
}

// hardware is what --parallel auto plans for: the weakest of the targets.
func (c Config) hardware(m ir.Mesh) (*shard.Hardware, error) {
	targets, err := findTargets(c.Targets)
	if err != nil {
		return nil, err
	}
	h := &shard.Hardware{Memory: c.MemoryLimit}
	for i, t := range targets {
		if i == 0 || t.HalfTFLOPS*1e12 < h.FLOPS {
			h.FLOPS, h.Bandwidth = t.HalfTFLOPS*1e12, t.BandwidthGBs*1e9
		}
		if c.MemoryLimit == 0 && (h.Memory == 0 || t.Memory < h.Memory) {
			h.Memory = t.Memory
		}
	}
	h.Links, err = shard.ParseLinks(c.Links, m)
	return h, err
}

// sharding reads how the program is to be divided over a mesh. own is that of its own collectives.
func (c Config) sharding(own ir.Mesh) (o shard.Options, err error) {
	rules := len(c.Shardings)+len(c.InputShardings) > 0
	switch {
	case c.Mesh == "" && rules && len(own.Axes) > 0:
		o.Mesh = own
	case c.Mesh == "":
		if c.Parallel != "" || rules {
			return o, diag.Errorf(diag.BadMesh, "", "there is no mesh to divide the program over").Suggest("give one: --mesh dp=8")
		}
		return o, nil
	default:
		if o.Mesh, err = mesh.Parse(c.Mesh); err != nil {
			return o, err
		}
	}
	switch {
	case c.Parallel == "" && len(own.Axes) > 0: // nothing to divide
	case c.Parallel == "auto":
		o.Auto, err = c.hardware(o.Mesh)
	default:
		o.Strategies, err = shard.ParseStrategies(c.Parallel, o.Mesh)
	}
	if err != nil {
		return o, err
	}
	if o.Parameters, err = shard.ParseRules(c.Shardings); err != nil {
		return o, err
	}
	o.Inputs, err = shard.ParseRules(c.InputShardings)
	return o, err
}

// passes are the options of the passes that the configuration asks for, for a program with a mesh of
// its own or none.
func (c Config) passes(own ir.Mesh) (o passes.Options, err error) {
	o.Disabled = c.Disabled
	if c.Precision != "" {
		if o.Precision, err = precision.Parse(c.Precision); err != nil {
			return o, err
		}
	}
	o.Sharding, err = c.sharding(own)
	return o, err
}

// blame gives bugs among the diagnostics of an error the step as their place.
func blame(step string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	list := diag.All(err)
	for _, d := range list {
		if d.Code == diag.Bug && d.Place == "" {
			d.Place = step
		}
	}
	return list
}

// replayed are the options that a reproducer keeps.
type replayed struct {
	Config
	VerifyIR bool `json:"verify_ir,omitempty"`
}

// keep writes a reproducer of a bug into the first of o.Reproducers where it can be written,
// and says so in the diagnostic.
func (c *Compiled) keep(d *diag.Diagnostic, o Options, only []string) {
	if len(o.Reproducers) == 0 {
		return
	}
	options, err := json.Marshal(replayed{c.config, o.VerifyIR})
	if err != nil {
		panic("BUG: " + err.Error())
	}
	f := reproducer.File{Weft: Version, Failed: d.Place, Message: d.Message, Options: options}
	f.Program, f.Passes = c.before(d, o, only)
	text := f.Encode()
	for _, folder := range o.Reproducers {
		path := filepath.Join(folder, reproducer.Name(text))
		err = weights.WriteFile(path, func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		})
		if err == nil {
			d.Note("the program before that step is in %s, which `weft reproduce` replays", path)
			return
		}
	}
	d.Note("no reproducer could be written: %v", err)
}

// before is the text of the program before the step that failed, and the passes still to run:
// the passes before a failed one run again.
func (c *Compiled) before(d *diag.Diagnostic, o Options, only []string) (text string, left []string) {
	for _, pass := range passes.Table() {
		if !slices.Contains(o.Disabled, pass.Name) && (only == nil || slices.Contains(only, pass.Name)) {
			left = append(left, pass.Name)
		}
	}
	failed := slices.IndexFunc(left, func(pass string) bool { return d.Place == passes.Place(pass) })
	switch {
	case failed > 0:
		p := c.Imported.Clone()
		how, _ := o.passes(c.Imported.Mesh) // read before the first pass ran
		how.Only = left[:failed]
		if _, err := passes.Run(p, how); err == nil {
			return p.String(), left[failed:]
		}
	case failed < 0 && c.Report != nil && d.Place != "import":
		return c.Scheduled.String(), nil
	}
	return c.Imported.String(), left
}

// Reproduce replays a reproducer. It gives the step that failed when the file was written, and
// what compiling says now.
func Reproduce(ctx context.Context, path string, jobs int) (failed string, replay, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", nil, diag.Errorf(diag.FileUnreadable, "", "cannot read the file: %v", err).In(path).Because(err)
	}
	f, err := reproducer.Decode(path, text)
	if err != nil {
		return "", nil, err
	}
	var r replayed
	if err := json.Unmarshal(f.Options, &r); err != nil {
		return "", nil, diag.Errorf(diag.NotReproducer, "", "the options cannot be read: %v", err).In(path)
	}
	p, err := ir.ParseProgram(path, []byte(f.Program))
	if err != nil {
		return "", nil, err
	}
	o := Options{Config: r.Config, VerifyIR: r.VerifyIR, Jobs: jobs}
	o.Disabled = nil // they are not among the passes left
	targets, err := findTargets(o.Targets)
	if err != nil {
		return "", nil, err
	}
	c := &Compiled{Imported: p, PTX: map[string][]byte{}, config: o.Config}
	return f.Failed, c.run(ctx, o, append([]string{}, f.Passes...), targets, StagePTX, func(string) {}), nil
}

// findTargets finds targets by their names.
func findTargets(names []string) ([]target.Target, error) {
	targets := make([]target.Target, len(names))
	for i, name := range names {
		t, err := target.Find(name)
		if err != nil {
			return nil, err
		}
		targets[i] = t
	}
	return targets, nil
}

// verifyPlans proves the plans before anything is written.
func (c *Compiled) verifyPlans() error {
	for _, p := range c.Lowered.Plans {
		for _, name := range c.config.Targets {
			p.Target = name
		}
		if err := plan.Verify(p, nil); err != nil {
			return diag.Errorf(diag.Bug, "plan", "the plan of entry %s does not hold: %v", p.Entry, err).Because(err)
		}
	}
	if err := plan.VerifyRanks(c.Lowered.Plans...); err != nil {
		return err // the model's own collectives may be at fault
	}
	return c.fits()
}

// fits compares what a rank holds with the memory limit, or the memory of the smallest target. One rank
// without a limit may need more than the target's usual part has: it is warned.
func (c *Compiled) fits() error {
	limit := c.config.MemoryLimit
	targets, err := findTargets(c.config.Targets)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if c.config.MemoryLimit == 0 && (limit == 0 || t.Memory < limit) {
			limit = t.Memory
		}
	}
	var found diag.List
	for _, p := range c.Lowered.Plans {
		d := p.Fits(limit)
		if d == nil || limit == 0 {
			continue
		}
		if c.config.MemoryLimit == 0 {
			d.Suggest("give the memory of the GPU with --memory-limit where it has more than the target's usual part")
			if p.MeshOf().Size() == 1 {
				d.Severity = diag.Warning
			}
		}
		found = append(found, d)
	}
	if err := found.Err(); err != nil {
		return err
	}
	c.Warnings = append(c.Warnings, found...)
	return nil
}

// assemble makes the PTX of every target, and cubins where they are asked for.
func (c *Compiled) assemble(ctx context.Context, o Options, targets []target.Target, step func(string)) error {
	compiler, err := llvm.FindCompiler(ctx)
	if err != nil {
		return err
	}
	compiler.Jobs = o.Jobs
	c.LLC = compiler.Version
	for _, t := range targets {
		entries, err := compiler.Compile(ctx, c.Lowered.Kernels, t.Name)
		if err != nil {
			return blame("llc", err)
		}
		if len(entries) == 0 {
			c.PTX[t.Name] = fmt.Appendf(nil, ".version %s\n.target %s\n.address_size 64\n", t.PTX, t.Name)
			continue
		}
		text, err := ptx.Join(entries[0].Header, entries)
		if err != nil {
			return blame("llc", err)
		}
		c.PTX[t.Name] = []byte(text)
	}
	if o.Code == "" || o.Code == "ptx" {
		return nil
	}
	step("ptxas")
	return c.makeCubins(ctx, o, targets)
}

// makeCubins assembles the PTX of every target.
func (c *Compiled) makeCubins(ctx context.Context, o Options, targets []target.Target) error {
	assembler, err := ptxas.Find(ctx)
	if err != nil {
		return err
	}
	cubins := make([][]byte, len(targets))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(o.Jobs, 1))
	for i, t := range targets {
		group.Go(func() (err error) {
			cubins[i], err = assembler.Assemble(ctx, c.PTX[t.Name], t.Name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	c.config.PTXAS, c.Cubin = assembler.Version, map[string][]byte{}
	for i, t := range targets {
		c.Cubin[t.Name] = cubins[i]
	}
	return nil
}

// Close releases the model's weights.
func (c *Compiled) Close() error {
	if c.weights == nil {
		return nil
	}
	return c.weights.Close()
}

// Write writes the artifact, whole or not at all.
func (c *Compiled) Write(path string) error {
	contents := artifact.Contents{Program: []byte(c.Imported.String())}
	var err error
	if contents.Manifest, contents.Weights, err = c.manifest(); err != nil {
		return err
	}
	if contents.Report, err = json.Marshal(c.Report); err != nil {
		return err
	}
	for _, name := range c.config.Targets {
		kernels := artifact.Kernels{Target: name, PTX: c.PTX[name], Cubin: c.Cubin[name]}
		if c.config.Code == "cubin" {
			kernels.PTX = nil
		}
		contents.Kernels = append(contents.Kernels, kernels)
		for _, p := range c.Lowered.Plans {
			forTarget := *p
			forTarget.Target = name
			text, err := forTarget.Encode()
			if err != nil {
				return err
			}
			contents.Plans = append(contents.Plans, artifact.Plan{Target: name, Entry: p.Entry, JSON: text})
		}
	}
	return artifact.Write(path, contents)
}

// manifest describes the scheduled program and says where the first values of its states are.
func (c *Compiled) manifest() (artifact.Manifest, weights.Source, error) {
	config, err := json.Marshal(c.config)
	if err != nil {
		return artifact.Manifest{}, nil, err
	}
	m := artifact.Manifest{Weft: Version, Config: config, Entries: artifact.EntriesOf(c.Scheduled), Dims: artifact.DimsOf(c.Scheduled), Mesh: artifact.MeshOf(c.Scheduled)}
	for _, name := range c.config.Targets {
		t, err := target.Find(name)
		if err != nil {
			return m, nil, err
		}
		m.Targets = append(m.Targets, artifact.Target{Name: t.Name, PTX: t.PTX, MinDriver: t.MinDriver, LLC: c.LLC, PTXAS: c.config.PTXAS})
	}
	var names, from []string
	for _, s := range c.Scheduled.States {
		origin, err := c.origin(s)
		if err != nil {
			return m, nil, err
		}
		if origin.Embedded != nil {
			names, from = append(names, s.Name), append(from, sourceName(s))
		}
		m.State = append(m.State, artifact.StateOf(s, origin))
	}
	if len(names) == 0 {
		return m, nil, nil
	}
	renamed, err := weights.Rename(c.weights, names, from)
	return m, renamed, err
}

func sourceName(s ir.State) string {
	if s.Source != "" {
		return s.Source
	}
	return s.Name
}

// origin says where a state's first value comes from.
func (c *Compiled) origin(s ir.State) (artifact.From, error) {
	if s.Kind == ir.Prepared {
		return artifact.From{Prepared: &artifact.Prepared{Entry: initEntry}}, nil
	}
	if s.Kind == ir.Generator {
		return artifact.From{Random: &artifact.Random{Name: s.Name}}, nil // integers: zeros
	}
	how := c.config.Weights
	if seed, ok, err := weights.ParseRandom(how); ok || err != nil {
		return artifact.From{Random: &artifact.Random{Seed: seed, Name: sourceName(s)}}, err
	}
	if c.weights == nil && how != "none" {
		return artifact.From{}, diag.Errorf("W1012", "", "the file holds a graph without weights, and state %q has no value", s.Name).
			Suggest("compile with --weights none (weights are given at run time) or --weights random:SEED")
	}
	switch how {
	case "embed", "":
		return artifact.From{Embedded: &artifact.Embedded{}}, nil
	case "reference":
		digest, err := c.weights.Digest(sourceName(s))
		return artifact.From{Reference: &artifact.Reference{Name: sourceName(s), SHA256: digest}}, err
	case "none":
		return artifact.From{Reference: &artifact.Reference{Name: sourceName(s)}}, nil
	}
	return artifact.From{}, diag.Errorf("W0001", "--weights", "--weights does not take %q", how).
		Suggest("it takes embed, reference, none or random:SEED")
}

const initEntry = "init"

// Targets lists the names of the GPUs that weft compiles for.
func Targets() []string {
	var names []string
	for _, t := range target.All() {
		names = append(names, t.Name)
	}
	return slices.Clip(names)
}

// LLVM is the LLVM IR of all kernels, one after the other.
func (c *Compiled) LLVM() string {
	var b strings.Builder
	for _, k := range c.Lowered.Kernels {
		b.WriteString(k.Text + "\n")
	}
	return b.String()
}
