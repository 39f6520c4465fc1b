package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	weftruntime "weft/runtime"
	"weft/runtime/artifact"
	"weft/runtime/bench"
	"weft/runtime/emu"
)

// fullSize are the graphs that compile times are stated for.
var fullSize = []string{"mlp", "gpt2_124m", "gpt2_124m_loss", "bert_base", "resnet50", "llama3_1b", "llama3_8b", "llama3_8b_loss", "llama3_70b_loss"}

// benchedModels are the full-size graphs of the folder that WEFT_MODELS names, or the fixtures.
func benchedModels(b *testing.B) []string {
	var files []string
	if folder := os.Getenv("WEFT_MODELS"); folder != "" {
		for _, name := range fullSize {
			for _, file := range []string{"model.pt2", "model.json.zip"} {
				if path := filepath.Join(folder, name, file); exists(path) {
					files = append(files, path)
					break
				}
			}
		}
	}
	if files == nil {
		var err error
		if files, err = filepath.Glob(filepath.Join(models(b), "*", "model.pt2")); err != nil || files == nil {
			b.Fatal("no models: ", err)
		}
	}
	return files
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// BenchmarkCompile measures whole processes of weft compile for sm_90a: the median wall time, the
// median processor time (llc's included), which other work on the machine disturbs less, and the
// size of the artifact.
func BenchmarkCompile(b *testing.B) {
	needLLC(b)
	program := filepath.Join(b.TempDir(), "weft")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, file := range benchedModels(b) {
		b.Run(filepath.Base(filepath.Dir(file)), func(b *testing.B) { compileProcesses(b, program, file) })
	}
}

func compileProcesses(b *testing.B, program, file string) {
	out := filepath.Join(b.TempDir(), "model.weft")
	arguments := []string{"compile", file, "--target", "sm_90a", "-o", out}
	if strings.HasSuffix(file, ".json.zip") {
		arguments = append(arguments, "--weights", "random:1")
	}
	var times, busy []time.Duration
	for b.Loop() {
		cmd := exec.Command(program, arguments...)
		start := time.Now()
		if text, err := cmd.CombinedOutput(); err != nil {
			b.Skipf("does not compile: %v\n%s", err, text)
		}
		times = append(times, time.Since(start))
		busy = append(busy, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	info, err := os.Stat(out)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(bench.Summarize(times).Median, "ms-median")
	b.ReportMetric(bench.Summarize(busy).Median, "ms-cpu")
	b.ReportMetric(float64(info.Size())/(1<<20), "MiB-artifact")
}

// BenchmarkEmulator runs gpt2_tiny on the emulator, loaded and compiled before.
func BenchmarkEmulator(b *testing.B) {
	needLLC(b)
	out := filepath.Join(b.TempDir(), "model.weft")
	folder := filepath.Join(models(b), "gpt2_tiny")
	if status := run([]string{"compile", filepath.Join(folder, "model.pt2"), "--target", "sm_90a", "-o", out}, nil, os.Stdout, os.Stderr); status != 0 {
		b.Fatal("compile: status ", status)
	}
	a, err := artifact.Open(out)
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	device := emu.New(emu.Options{})
	defer device.Close()
	session, err := weftruntime.Open(a, device, weftruntime.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	file, err := readTensors(filepath.Join(folder, "io.safetensors"), "in.0")
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	entry, err := session.Entry("")
	if err != nil {
		b.Fatal(err)
	}
	s := signature{Name: entry.Name}
	for _, in := range entry.Inputs {
		s.Inputs = append(s.Inputs, value{in.Name, in.Type.String()})
	}
	inputs, _, err := file.inputs(s)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("gpt2_tiny", func(b *testing.B) {
		var times []time.Duration
		before := device.Instructions()
		for b.Loop() {
			start := time.Now()
			if _, err := session.Run("", inputs); err != nil {
				b.Fatal(err)
			}
			times = append(times, time.Since(start))
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(bench.Summarize(times).Median, "ms-median")
		cores := float64(min(runtime.GOMAXPROCS(0), runtime.NumCPU()))
		b.ReportMetric(float64(device.Instructions()-before)/b.Elapsed().Seconds()/1e6/cores, "Mwarpinstr/s/core")
	})
}
