// Package weft compiles exported models into artifacts, and opens artifacts to run them. This page
// joins the stages: frontends make a program, passes schedule it, codegen makes kernels and plans of
// it, llc makes PTX, the artifact holds the result, and a session runs it. Only a session on a GPU
// needs one.
package weft

import (
	"context"
	"encoding/json"
	"os"

	"weft/codegen"
	"weft/frontend"
	"weft/frontend/lower"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/plan"
	"weft/ir/reproducer"
	"weft/ir/target"
	"weft/passes"
	"weft/runtime"
	"weft/runtime/artifact"
)

// Version of weft; part of every artifact and key.
const Version = "0.1.0"

// File is a model file and the entry that it becomes.
type File = frontend.File

// Options of a compile. What is in Config decides about the bytes of the artifact; the rest
// does not.
type Options struct {
	Config
	Files     []File                                               // entries over the same states
	Jobs      int                                                  // processes of llc or ptxas at a time, at least 1
	VerifyIR  bool                                                 // check the program after the import and after every pass
	AfterPass func(pass string, changed bool, p *ir.Program) error // nil is allowed
	Progress  func(stage string)                                   // nil is allowed
	// Reproducers are the folders into which a bug may put its reproducer, the best first.
	Reproducers []string
}

// Config is the part of the options that an artifact depends on and records.
type Config struct {
	Targets []string `json:"targets"`             // names of GPUs: sm_80, sm_90a ... (see Targets)
	Dims    []string `json:"dims,omitempty"`      // what is known of dims, as --dim has it: "batch=1..64"
	Fixed   []string `json:"constants,omitempty"` // [ENTRY.]INPUT=VALUES of the files, which Compile gathers
	Weights string   `json:"weights"`             // embed (also when empty), reference, none, random:SEED
	Code    string   `json:"code,omitempty"`      // ptx (also when empty), cubin, both
	PTXAS   string   `json:"ptxas,omitempty"`     // its version, which Compile finds out
	passes.Settings
}

// Compiled is a compiled model before it is written. What a compile up to an early stage did not make
// is nil.
type Compiled struct {
	Imported  *ir.Program        // the model as it means, before scheduling
	Scheduled *ir.Program        // its kernel groups with their schedules, every value with its place
	Lowered   []*codegen.Lowered // for each of the targets that share them: kernels as LLVM IR, and a plan for each entry
	PTX       map[string][]byte  // by target
	Cubin     map[string][]byte  // by target; nil unless Code asks for it
	Report    *passes.Report
	Warnings  diag.List
	LLC       string // version line

	config  Config
	targets []target.Target
	weights weights.Source // nil for a file without
}

// Stage is how far a compile goes.
type Stage int

// The stages of a compile, in their order.
const (
	StageProgram   Stage = iota // imported
	StageScheduled              // kernel groups, schedules, memory
	StageLowered                // LLVM IR and plans
	StagePTX                    // everything
)

// Targets lists the names of the GPUs that weft compiles for.
func Targets() []string { return target.Names() }

// Import reads model files, joins them over their common states, and applies what --dim says of
// their dims. With contents, states of the same name must have the same first values. Close the result.
func Import(files []File, dims []string, contents bool) (*lower.Imported, error) {
	return frontend.ImportFiles(files, frontend.Options{Dims: dims}, contents)
}

// Open loads an artifact onto a device as one rank. The session is ready to run entries; close it before
// the device.
func Open(path string, device runtime.Device, o runtime.Options) (*runtime.Session, error) {
	a, err := artifact.Open(path)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return runtime.Open(a, device, o)
}

// Compile compiles the files of one model up to a stage. Close the result.
func Compile(ctx context.Context, o Options, until Stage) (*Compiled, error) {
	c := &Compiled{config: o.Config}
	var err error
	if c.targets, err = target.FindAll(o.Targets); err != nil {
		return nil, err
	}
	o.progress("import")
	contents := o.Weights == "" || o.Weights == "embed" || o.Weights == "reference"
	imported, err := frontend.ImportFiles(o.Files, frontend.Options{Dims: o.Dims, Mesh: o.Mesh}, contents)
	if err != nil {
		return nil, err
	}
	c.Imported, c.Warnings, c.weights = imported.Program, imported.Warnings, imported.Weights
	c.config.Fixed = frontend.ConstantsOf(o.Files)
	if err := c.run(ctx, o, nil, until); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// progress says that a stage begins.
func (o Options) progress(stage string) {
	if o.Progress != nil {
		o.Progress(stage)
	}
}

// run compiles the imported program. only are the passes to run; nil for all. A bug on the way
// leaves a reproducer.
func (c *Compiled) run(ctx context.Context, o Options, only []string, until Stage) error {
	err := c.stages(ctx, o, only, until)
	for _, d := range diag.All(err) {
		if d.Code == diag.Bug && ctx.Err() == nil {
			c.keep(d, o, only)
			break
		}
	}
	return err
}

// stages goes through the stages; a bug has the step that failed as its place.
func (c *Compiled) stages(ctx context.Context, o Options, only []string, until Stage) (err error) {
	if o.VerifyIR {
		if err := ir.Verify(c.Imported); err != nil {
			return diag.Errorf(diag.Bug, "import", "the frontend made an invalid program: %v", err)
		}
	}
	if until == StageProgram {
		return nil
	}
	how, err := o.Settings.Options(c.Imported.Mesh, c.targets)
	if err != nil {
		return err
	}
	c.config.Precision = how.Precision.String()
	how.Only, how.Verify, how.After = only, o.VerifyIR, o.AfterPass
	o.progress("passes")
	c.Scheduled = c.Imported.Clone()
	c.Report, err = passes.Run(c.Scheduled, how)
	c.Warnings = append(c.Warnings, c.Report.Warnings...)
	if err != nil || until == StageScheduled {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	o.progress("kernels")
	if c.Lowered, err = codegen.Lower(c.Scheduled, c.targets...); err != nil {
		return diag.Blame("kernels", err)
	}
	for _, l := range c.Lowered {
		warnings, err := plan.Prove(l.Plans, l.Targets, o.MemoryLimit)
		c.Warnings = append(c.Warnings, warnings...)
		if err != nil {
			return err
		}
	}
	if until == StageLowered {
		return nil
	}
	o.progress("llc")
	if c.PTX, c.LLC, err = codegen.PTX(ctx, c.Lowered, c.targets, o.Jobs); err != nil || o.Code == "" || o.Code == "ptx" {
		return diag.Blame("llc", err)
	}
	o.progress("ptxas")
	c.Cubin, c.config.PTXAS, err = codegen.Cubins(ctx, c.PTX, c.targets, o.Jobs)
	return err
}

// Close releases the model's weights.
func (c *Compiled) Close() error {
	if c.weights == nil {
		return nil
	}
	return c.weights.Close()
}

// LLVM is the LLVM IR of all kernels. The compile must have gone to StageLowered.
func (c *Compiled) LLVM() string { return codegen.LLVM(c.Lowered) }

// Plans are the plans for one of the compile's targets, one an entry. The compile must have gone to StageLowered.
func (c *Compiled) Plans(target string) []*plan.Plan {
	var plans []*plan.Plan
	for _, p := range codegen.For(c.Lowered, target).Plans {
		plans = append(plans, p.For(target))
	}
	return plans
}

// Write writes the artifact, whole or not at all. The compile must have gone to StagePTX.
func (c *Compiled) Write(path string) error {
	contents := artifact.Contents{Program: []byte(c.Imported.String())}
	var err error
	if contents.Manifest, contents.Weights, err = c.manifest(); err != nil {
		return err
	}
	if contents.Report, err = json.Marshal(c.Report); err != nil {
		return err
	}
	for _, t := range c.targets {
		kernels := artifact.Kernels{Target: t.Name, PTX: c.PTX[t.Name], Cubin: c.Cubin[t.Name]}
		if c.config.Code == "cubin" {
			kernels.PTX = nil
		}
		contents.Kernels = append(contents.Kernels, kernels)
		for _, p := range c.Plans(t.Name) {
			text, err := p.Encode()
			if err != nil {
				return err
			}
			contents.Plans = append(contents.Plans, artifact.Plan{Target: t.Name, Entry: p.Entry, JSON: text})
		}
	}
	return artifact.Write(path, contents)
}

// manifest describes the scheduled program, and gives the weights that the artifact is to hold.
func (c *Compiled) manifest() (m artifact.Manifest, embedded weights.Source, err error) {
	p := c.Scheduled
	m = artifact.Manifest{Weft: Version, Entries: artifact.EntriesOf(p), Dims: artifact.DimsOf(p), Mesh: artifact.MeshOf(p)}
	for _, t := range c.targets {
		m.Targets = append(m.Targets, artifact.Target{Name: t.Name, PTX: t.PTX, MinDriver: t.MinDriver, LLC: c.LLC, PTXAS: c.config.PTXAS})
	}
	if m.Config, err = json.Marshal(c.config); err != nil {
		return m, nil, err
	}
	m.State, embedded, err = artifact.StatesOf(p, c.config.Weights, c.weights)
	return m, embedded, err
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
	how, _ := o.Settings.Options(c.Imported.Mesh, c.targets) // read before the first pass ran
	how.Only = only
	p, left := passes.Before(c.Imported, c.Scheduled, how, d.Place)
	f := reproducer.File{Weft: Version, Failed: d.Place, Message: d.Message, Passes: left, Options: options, Program: p.String()}
	path, err := f.Keep(o.Reproducers, weights.WriteFile)
	if err != nil {
		d.Note("no reproducer could be written: %v", err)
		return
	}
	d.Note("the program before that step is in %s, which `weft reproduce` replays", path)
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
	o := Options{Config: r.Config, VerifyIR: r.VerifyIR, Jobs: jobs}
	o.Disabled = nil // they are not among the passes left
	c := &Compiled{config: o.Config}
	if c.Imported, err = ir.ParseProgram(path, []byte(f.Program)); err != nil {
		return "", nil, err
	}
	if c.targets, err = target.FindAll(o.Targets); err != nil {
		return "", nil, err
	}
	return f.Failed, c.run(ctx, o, append([]string{}, f.Passes...), StagePTX), nil
}
