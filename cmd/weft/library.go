package main

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"

	"weft/frontend/lower"
	"weft/frontend/onnx"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/eval"
	"weft/runtime/cuda"
)

// This file is where the command meets the rest of weft.

// initEntry prepares weights; it runs once at load.
const initEntry = "init"

func weftVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// builtWithCUDA tells whether this binary has the CUDA device.
func builtWithCUDA() bool {
	_, err := cuda.Count()
	var unavailable *cuda.UnavailableError
	return err == nil || errors.As(err, &unavailable) && unavailable.Err != nil
}

func importFile(path string) (*lower.Imported, error) {
	m, err := weights.Map(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	if p, err := ir.ParseProgram(path, m.Data); err == nil {
		return &lower.Imported{Program: p}, nil
	}
	return onnx.Import(path, onnx.Options{})
}

// newReference makes a session of the evaluator. values has the states that need no
// preparation; init makes the others.
func newReference(p *ir.Program, values weights.Source) (session, error) {
	r := &reference{program: p, values: values, states: map[string]*ir.Tensor{}, close: values.Close}
	r.evaluate = func(entry string, inputs []*ir.Tensor, state func(string) (*ir.Tensor, error)) ([]*ir.Tensor, map[string]*ir.Tensor, error) {
		result, err := eval.Run(p, entry, inputs, state)
		if err != nil {
			return nil, nil, err
		}
		return result.Outputs, result.State, nil
	}
	if p.Entry(initEntry) != nil {
		if _, err := r.run(context.Background(), initEntry, nil); err != nil {
			values.Close()
			return nil, err
		}
	}
	return r, nil
}

func (m *model) onDevice(ctx context.Context, device, target string, given weights.Source) (session, error) {
	return nil, diag.Errorf(diag.DeviceUnavailable, "", "device %s", device)
}

// targetNames lists the GPUs that weft compiles for.
func targetNames() []string { return []string{"sm_80", "sm_90", "sm_90a"} }

func knownTarget(name string) bool { return slices.Contains(targetNames(), name) }

// targetFits tells whether kernels for a target run on a GPU of a compute capability.
func targetFits(target string, major, minor int) bool { return false }

func (a *app) compileWith(ctx context.Context, f *compileFlags, p *progress) error { return nil }
