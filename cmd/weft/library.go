package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"weft"
	"weft/frontend/lower"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/eval"
	"weft/ir/target"
	"weft/passes"
	weftruntime "weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/comm"
	"weft/runtime/cuda"
	"weft/runtime/emu"
)

// This file is where the command meets the rest of weft.

func importFile(path string, given givenFlags) (*lower.Imported, error) {
	return weft.Import(given.file(path), given.dims, true)
}

// lowerFile compiles a file up to kernels and plans, which are alike for all targets.
func lowerFile(ctx context.Context, path string, given givenFlags) (*weft.Compiled, error) {
	options := weft.Options{Config: weft.Config{Targets: weft.Targets()[:1], Dims: given.dims, Weights: "none"}, Files: given.file(path), Jobs: 1}
	return weft.Compile(ctx, options, weft.StageLowered)
}

// newReference makes a session of the evaluator. values has the states that need no
// preparation; the init entry, where there is one, makes the others.
func newReference(p *ir.Program, values weights.Source, traced bool) (session, error) {
	r := &reference{program: p, values: values, states: map[string]*ir.Tensor{}, traced: traced}
	if p.Entry(ir.InitEntry) != nil {
		if _, err := r.run(context.Background(), ir.InitEntry, nil); err != nil {
			values.Close()
			return nil, err
		}
	}
	return r, nil
}

func (r *reference) run(ctx context.Context, entry string, inputs []*ir.Tensor) ([]*ir.Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result, err := eval.RunObserved(r.program, entry, inputs, r.state, r.observer(entry))
	if err != nil {
		return nil, err
	}
	for name, t := range result.State {
		r.states[name] = t
	}
	return result.Outputs, nil
}

func (r *reference) repeat(ctx context.Context, entry string, inputs []*ir.Tensor, n int, each func()) (outputs []*ir.Tensor, err error) {
	for range n {
		if outputs, err = r.run(ctx, entry, inputs); err != nil {
			return nil, err
		}
		each()
	}
	return outputs, nil
}

// onDevice makes a session on the emulator or a GPU. A file is compiled first, for the best
// target of the device.
func (m *model) onDevice(ctx context.Context, name, want string, given weights.Source) (session, error) {
	targets := weft.Targets()
	if m.artifact != nil {
		targets = m.targets()
	}
	device, err := openDevice(name, want, targets, m.ordinal(name))
	if err != nil {
		return nil, err
	}
	s := &deviceSession{name: name, device: device, closers: []io.Closer{device}}
	return m.openOn(ctx, s, want, given)
}

// openOn makes a session of one that has nothing but a device. It closes it on errors.
func (m *model) openOn(ctx context.Context, s *deviceSession, want string, given weights.Source) (session, error) {
	var err error
	art := m.artifact
	if art == nil {
		if want, err = weftruntime.ChooseTarget(weft.Targets(), want, s.device.Properties()); err == nil {
			art, err = m.compileToRun(ctx, want, s)
		}
		if err == nil {
			given, err = override(m.imported.Weights, given)
		}
	}
	var mesh ir.Mesh
	if err == nil {
		mesh = art.Manifest.Mesh.Program()
		s.world, err = m.findWorld(mesh)
	}
	if err == nil && mesh.Size() > 1 {
		return m.openRanks(ctx, art, s, want, given)
	}
	if err == nil {
		s.Session, err = weftruntime.Open(art, s.device, weftruntime.Options{Target: want, Weights: given, Trace: m.traced})
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// compileToRun compiles a file into an artifact without weights, in a folder that the session
// removes when it closes.
func (m *model) compileToRun(ctx context.Context, target string, s *deviceSession) (*artifact.Artifact, error) {
	folder, err := os.MkdirTemp("", "weft-run-*")
	if err != nil {
		return nil, diag.Errorf(diag.FileUnwritable, "", "a temporary folder cannot be made: %v", err).Because(err)
	}
	s.closers = append(s.closers, removeFolder(folder))
	options := weft.Options{Config: weft.Config{Targets: []string{target}, Dims: m.given.dims, Weights: "none"}, Files: m.given.file(m.path), Jobs: runtime.GOMAXPROCS(0),
		Reproducers: []string{"."}}
	c, err := weft.Compile(ctx, options, weft.StagePTX)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	path := filepath.Join(folder, "model.weft")
	if err := c.Write(path); err != nil {
		return nil, err
	}
	art, err := artifact.Open(path)
	if err == nil {
		s.closers = append(s.closers, art)
	}
	return art, err
}

type removeFolder string

func (f removeFolder) Close() error { return os.RemoveAll(string(f)) }

// openDevice opens the emulator, as a GPU that runs the wanted target or one of the others, or
// the GPU of a number.
func openDevice(name, want string, targets []string, ordinal int) (weftruntime.Device, error) {
	if name == "cuda" {
		device, err := cuda.Open(ordinal)
		if err != nil {
			return nil, diag.Errorf(diag.DeviceUnavailable, "", "%v", err).Because(err).
				Suggest("`weft doctor` shows what was found; --device emu needs no GPU")
		}
		return device, nil
	}
	options := emu.Options{ComputeMajor: 9}
	if want != "" {
		targets = []string{want}
	}
	if _, err := weftruntime.ChooseTarget(targets, want, emu.New(options).Properties()); err != nil && len(targets) > 0 {
		t, err := target.Find(targets[0])
		if err != nil {
			return nil, err
		}
		options.ComputeMajor, options.ComputeMinor = t.Compute/10, t.Compute%10
	}
	if want != "" {
		t, err := target.Find(want)
		if err != nil {
			return nil, err
		}
		options.ComputeMajor, options.ComputeMinor = t.Compute/10, t.Compute%10
	}
	return emu.New(options), nil
}

// deviceSession is the session of a device.
type deviceSession struct {
	*weftruntime.Session
	name    string
	device  weftruntime.Device
	world   comm.World
	closers []io.Closer // beside the session; the last first
}

func (s *deviceSession) run(ctx context.Context, entry string, inputs []*ir.Tensor) ([]*ir.Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	result, err := s.RunContext(ctx, entry, inputs)
	if err != nil {
		return nil, err
	}
	return result.Outputs, nil
}

// replay runs a binding n times, and calls each when a run has ended.
func replay(ctx context.Context, b interface {
	ReplayContext(context.Context) error
	Synchronize() error
}, n int, each func()) error {
	for range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.ReplayContext(ctx); err != nil {
			return err
		}
		if err := b.Synchronize(); err != nil {
			return err
		}
		each()
	}
	return nil
}

func (s *deviceSession) repeat(ctx context.Context, entry string, inputs []*ir.Tensor, n int, each func()) ([]*ir.Tensor, error) {
	b, err := s.Session.Bind(entry, inputs)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if err := replay(ctx, b, n, each); err != nil {
		return nil, err
	}
	return b.Download()
}

func (s *deviceSession) state(name string) (*ir.Tensor, error) { return s.Session.State(name) }

func (s *deviceSession) target() string {
	return fmt.Sprintf("%s (%s, kernels of %s)", s.name, s.device.Properties().Name, s.Session.Target())
}

// Close closes the session, then the device and what else was opened for it.
func (s *deviceSession) Close() error {
	var errs []error
	if s.Session != nil {
		errs = append(errs, s.Session.Close())
	}
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i].Close())
	}
	return errors.Join(errs...)
}

// compileWith compiles and writes what the flags ask for.
func (a *app) compileWith(ctx context.Context, f *compileFlags, p *progress) error {
	options := weft.Options{
		Config: weft.Config{Targets: f.targets, Dims: f.given.dims, Weights: f.weights, Code: f.recordedCode(), Settings: passes.Settings{
			Disabled: f.disabled, Precision: f.precision, Mesh: f.mesh, Parallel: f.parallel, Links: f.links, MemoryLimit: f.memoryLimit,
			Shardings: f.shard, InputShardings: f.shardInput}},
		Files:    f.files,
		Jobs:     f.jobs,
		VerifyIR: f.verifyIR,
		Progress: func(stage string) { p.update(stage, 0, 0) },

		Reproducers: []string{filepath.Dir(f.output), "."},
	}
	if f.jobs == 0 {
		options.Jobs = runtime.GOMAXPROCS(0)
	}
	if f.dumpAfter != "" {
		options.AfterPass = a.dump(f)
	}
	until, ok := map[string]weft.Stage{"program": weft.StageProgram, "scheduled": weft.StageScheduled, "llvm": weft.StageLowered, "plan": weft.StageLowered}[f.emit]
	if !ok {
		until = weft.StagePTX
	}
	c, err := weft.Compile(ctx, options, until)
	if err != nil {
		return err
	}
	defer c.Close()
	a.warn(c.Warnings)
	if f.timeEach && c.Report != nil {
		p.done()
		a.printTimes(c.Report.Times, f.output)
	}
	if f.emit == "" {
		p.update("write", 0, 0)
		return c.Write(f.output)
	}
	return a.emit(c, f)
}
