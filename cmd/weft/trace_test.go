package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/ir/plan"
	"weft/runtime/artifact"
	"weft/runtime/trace"
)

// chromeTrace is a trace as viewers read it.
type chromeTrace struct {
	Events []struct {
		Name     string
		Category string   `json:"cat"`
		Phase    string   `json:"ph"`
		Process  int64    `json:"pid"`
		Thread   int      `json:"tid"`
		Start    *float64 `json:"ts"`
		Duration *float64 `json:"dur"`
		Args     struct {
			Name  string
			Step  int
			Label string
			Bytes int64
			Axes  string
		}
	} `json:"traceEvents"`
	Other struct {
		Entry string
		Ranks []trace.Summary
	} `json:"otherData"`
}

// weftRun runs a command that must succeed.
func weftRun(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errors bytes.Buffer
	if status := run(args, strings.NewReader(""), &out, &errors); status != 0 {
		t.Fatalf("weft %s: exit status %d\n%s%s", strings.Join(args, " "), status, &out, &errors)
	}
	return out.String(), errors.String()
}

// tracedSteps are the steps of the plan of the only entry that a trace must have.
func tracedSteps(t *testing.T, path string) map[int]plan.Step {
	t.Helper()
	art, err := artifact.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer art.Close()
	data, err := art.Plan(art.Manifest.Targets[0].Name, art.Manifest.Entries[0].Name, "")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	steps := map[int]plan.Step{}
	for i, s := range p.Flat() {
		if s.Wait == nil { // the emulator's collectives are not asynchronous
			steps[i] = s
		}
	}
	return steps
}

// structure is all of a trace that does not depend on time. It checks the times.
func structure(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var c chromeTrace
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	lines := []string{c.Other.Entry}
	first, last := map[int64]float64{}, map[int64]float64{}
	for _, e := range c.Events {
		lines = append(lines, fmt.Sprint(e.Name, e.Category, e.Phase, e.Process, e.Thread, e.Args))
		if e.Phase != "X" {
			continue
		}
		if e.Start == nil || e.Duration == nil || *e.Start < 0 || *e.Duration < 0 {
			t.Fatalf("a complete event without times, or with negative ones: %+v", e)
		}
		if at, ok := first[e.Process]; !ok || *e.Start < at {
			first[e.Process] = *e.Start
		}
		last[e.Process] = max(last[e.Process], *e.Start+*e.Duration)
	}
	for _, s := range c.Other.Ranks {
		if took := last[s.Rank] - first[s.Rank]; took < s.Step-0.01 || took > s.Step+0.01 {
			t.Errorf("rank %d: events take %v, the step %v", s.Rank, took, s.Step)
		}
		if s.Computing <= 0 || s.Communicating <= 0 || s.Hidden != 0 || s.Computing+s.Communicating > s.Step+0.01 {
			t.Errorf("the emulator's kernels and collectives take turns: %+v", s)
		}
	}
	return lines
}

// The trace of a divided model has each step of the plan once on each rank, with what it is; two traces differ in times
// alone, as does one of a process for each rank.
func TestTrace(t *testing.T) {
	needLLC(t)
	dir, model := t.TempDir(), filepath.Join(models(t), "llama_tiny")
	path, inputs := filepath.Join(dir, "tp.weft"), filepath.Join(model, "io.safetensors")
	weftRun(t, "compile", filepath.Join(model, "model.pt2"), "--target", "sm_80", "--mesh", "tp=2", "--parallel", "tp:tp", "-o", path)
	var first []string
	for i, more := range [][]string{nil, {"--steps", "3"}} {
		file := filepath.Join(dir, fmt.Sprintf("%d.json", i))
		_, said := weftRun(t, append([]string{"run", path, "--device", "emu", "--inputs", inputs, "--expect", inputs, "--trace", file}, more...)...)
		if !strings.Contains(said, "trace of the last step in "+file+" (wall time)") || !strings.Contains(said, "SHARE HIDDEN") {
			t.Errorf("stderr:\n%s", said)
		}
		got := structure(t, file)
		if i == 0 {
			first = got
		} else if !slices.Equal(got, first) {
			t.Errorf("two traces differ in more than times:\n%s\n\n%s", strings.Join(first, "\n"), strings.Join(got, "\n"))
		}
	}
	var report runReport
	out, _ := weftRun(t, "run", path, "--device", "emu", "--inputs", inputs, "--trace", filepath.Join(dir, "j.json"), "--json")
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.Trace == nil || len(report.Trace.Ranks) != 2 || report.Trace.Clock != trace.ClockHost {
		t.Errorf("%v\n%s", err, out)
	}
	checkEvents(t, filepath.Join(dir, "0.json"), tracedSteps(t, path))
}

// checkEvents compares the events of two ranks with the plan.
func checkEvents(t *testing.T, file string, steps map[int]plan.Step) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c chromeTrace
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	seen := map[int64]map[int]bool{0: {}, 1: {}}
	for _, e := range c.Events {
		if e.Phase != "X" {
			continue
		}
		step, ok := steps[e.Args.Step]
		if !ok || seen[e.Process][e.Args.Step] {
			t.Errorf("step %d of rank %d is none of the plan, or there twice", e.Args.Step, e.Process)
			continue
		}
		seen[e.Process][e.Args.Step] = true
		switch {
		case step.Launch != nil:
			ok = e.Category == "kernel" && e.Thread == 0 && e.Args.Label == step.Launch.Label
		case step.Collective != nil:
			ok = e.Category == "collective" && e.Thread == 1 && e.Name == step.Collective.Kind && e.Args.Axes == "tp" && e.Args.Bytes > 0
		}
		if !ok {
			t.Errorf("step %d of rank %d: %+v", e.Args.Step, e.Process, e)
		}
	}
	for rank, of := range seen {
		if len(of) != len(steps) {
			t.Errorf("rank %d has %d of %d steps", rank, len(of), len(steps))
		}
	}
}
