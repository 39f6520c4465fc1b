package bench

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

//go:embed torch.py
var torchScript []byte

// TorchModes are the ways in which PyTorch runs a model, from the fastest to start.
var TorchModes = []string{"eager", "default", "reduce-overhead", "max-autotune"}

// Torch asks a Python that has PyTorch to run the same model on the same inputs.
type Torch struct {
	Python  string         // the program
	Model   string         // .pt2, .json.zip or FILE.py:FUNCTION
	Device  string         // cuda or cpu
	Modes   []string       // of TorchModes
	Inputs  []*ir.Tensor   // that weft ran on
	Outputs []*ir.Tensor   // that weft gave
	Weights weights.Source // for a graph without weights: those weft ran with; nil otherwise
	Options Options
	Budget  time.Duration // for everything that Python does
	Log     io.Writer     // what PyTorch prints beside results; nil drops it
}

// TorchReport is what came back.
type TorchReport struct {
	Version string       `json:"version"`
	Device  string       `json:"device"`
	Notes   []string     `json:"notes,omitempty"`
	Checks  []TorchCheck `json:"checks"`
	Modes   []TorchMode  `json:"modes"`
}

// TorchCheck says how far the outputs of weft or of a mode are from float64.
type TorchCheck struct {
	Who      string `json:"check"` // weft, or a mode
	Agrees   bool   `json:"agrees"`
	Max      any    `json:"max"` // a number, or the text of an infinity
	RMS      any    `json:"rms"`
	Relative any    `json:"relative"` // RMS by that of the float64 outputs
	Outside  int64  `json:"outside"`  // elements out of the tolerance of their type
	Elements int64  `json:"elements"`
}

// TorchMode is how long one mode takes.
type TorchMode struct {
	Mode   string  `json:"mode"`
	Median float64 `json:"median_ms"`
	Min    float64 `json:"min_ms"`
	Max    float64 `json:"max_ms"`
	Count  int     `json:"count"`
	First  float64 `json:"first_call_s"` // compiling included
	Peak   int64   `json:"peak_bytes"`
	Error  string  `json:"error,omitempty"` // why there are no times
}

// Best is the fastest mode whose outputs agree; nil where none has times.
func (r *TorchReport) Best() *TorchMode {
	wrong := map[string]bool{}
	for _, c := range r.Checks {
		wrong[c.Who] = !c.Agrees
	}
	var best *TorchMode
	for i := range r.Modes {
		m := &r.Modes[i]
		if m.Error == "" && !wrong[m.Mode] && (best == nil || m.Median < best.Median) {
			best = m
		}
	}
	return best
}

// Check finds the check of weft's outputs or of a mode's; nil where there is none.
func (r *TorchReport) Check(who string) *TorchCheck {
	for i := range r.Checks {
		if r.Checks[i].Who == who {
			return &r.Checks[i]
		}
	}
	return nil
}

// grace is how long after its budget the process is ended: a compiler that it waits for cannot
// be stopped from inside.
const grace = 30 * time.Second

// Run runs the comparison. What was measured before an error or the end of the time is kept.
func (t *Torch) Run(ctx context.Context) (*TorchReport, error) {
	folder, err := os.MkdirTemp("", "weft-bench-*")
	if err != nil {
		return nil, diag.Errorf(diag.FileUnwritable, "", "a temporary folder cannot be made: %v", err).Because(err)
	}
	defer os.RemoveAll(folder)
	if err := t.write(folder); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.Budget+grace)
	defer cancel()
	cmd := exec.CommandContext(ctx, t.Python, filepath.Join(folder, "torch_bench.py"), folder, t.Model, "--device", t.Device,
		"--modes", strings.Join(t.Modes, ","), "--steps", strconv.Itoa(t.Options.Steps), "--warmup", strconv.Itoa(t.Options.Warmup),
		"--budget", fmt.Sprint(t.Budget.Seconds()))
	var results, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &results, &messages
	if t.Log != nil {
		cmd.Stderr = io.MultiWriter(&messages, t.Log)
	}
	cmd.WaitDelay = 5 * time.Second // processes that it leaves behind may hold the pipes
	if err := cmd.Start(); err != nil {
		return nil, diag.Errorf(diag.DeviceUnavailable, "", "%s does not run: %v", t.Python, err).Because(err).
			Suggest("name a Python that has PyTorch with --python")
	}
	err = cmd.Wait()
	r := &TorchReport{}
	r.read(&results)
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	switch {
	case ctx.Err() == context.DeadlineExceeded:
		r.Notes = append(r.Notes, fmt.Sprintf("ended after %v: the budget was %v", t.Budget+grace, t.Budget))
	case err != nil && len(r.Modes) > 0:
		r.Notes = append(r.Notes, fmt.Sprintf("%s ended early: %v: %s", t.Python, err, lastLine(messages.String())))
	case err != nil:
		return nil, diag.Errorf(diag.DeviceUnavailable, "", "%s cannot run the model in PyTorch: %v", t.Python, err).
			Note("%s", lastLine(messages.String())).Because(err)
	}
	return r, nil
}

// write puts the script and the tensors into the folder. The script must not be called torch.py
// there: it would be what `import torch` finds.
func (t *Torch) write(folder string) error {
	if err := os.WriteFile(filepath.Join(folder, "torch_bench.py"), torchScript, 0o600); err != nil {
		return diag.Errorf(diag.FileUnwritable, "", "%v", err).Because(err)
	}
	if err := writeNumbered(filepath.Join(folder, "inputs.safetensors"), "in.", t.Inputs); err != nil {
		return err
	}
	if err := writeNumbered(filepath.Join(folder, "outputs.safetensors"), "out.", t.Outputs); err != nil {
		return err
	}
	if t.Weights == nil {
		return nil
	}
	return weights.WriteFile(filepath.Join(folder, "weights.safetensors"), func(w io.Writer) error {
		return weights.WriteSafetensors(w, t.Weights, weights.SafetensorsOptions{})
	})
}

func writeNumbered(path, prefix string, list []*ir.Tensor) error {
	named := make([]weights.Named, len(list))
	for i, tensor := range list {
		named[i] = weights.Named{Name: prefix + strconv.Itoa(i), Tensor: tensor}
	}
	return weights.WriteTensors(path, named)
}

// read collects lines of results. Lines of another form are what libraries print.
func (r *TorchReport) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct {
			Torch, Note, Check, Mode, Device string
		}
		line := lines.Bytes()
		if json.Unmarshal(line, &row) != nil {
			continue
		}
		var err error
		switch {
		case row.Torch != "":
			r.Version, r.Device = row.Torch, row.Device
		case row.Note != "":
			r.Notes = append(r.Notes, row.Note)
		case row.Check != "":
			r.Checks = append(r.Checks, TorchCheck{})
			err = json.Unmarshal(line, &r.Checks[len(r.Checks)-1])
		case row.Mode != "":
			r.Modes = append(r.Modes, TorchMode{})
			err = json.Unmarshal(line, &r.Modes[len(r.Modes)-1])
		}
		if err != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("not understood: %s", line))
		}
	}
	if err := lines.Err(); err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("its results cannot be read to the end: %v", err))
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
