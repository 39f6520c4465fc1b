package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/frontend/weights"
	"weft/ir"
)

func TestWithoutFlag(t *testing.T) {
	for line, want := range map[string]string{
		"run a --nproc 4 --device emu": "run a --device emu",
		"run --nproc=4 a":              "run a",
		"run a --nproc":                "run a",
		"run a --nproc 4 -- --nproc 5": "run a -- --nproc 5",
		"run a --nprocs 4":             "run a --nprocs 4",
	} {
		if got := withoutFlag(strings.Fields(line), "nproc"); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// forRanks is a program of three ranks that meet in every step.
const forRanks = `mesh x=3
dim "rank.x" in 0..2

entry sum() {
  %rank: i64[] = dim() {value = "rank.x"}
  %more: i64[] = add(%rank, %rank)
  %sum: i64[] = all_reduce(%more) {combine = add, axes = ["x"], size = 3}
  return %sum "sum"
}
`

// A rank of weft run that is killed or stopped ends the run of all: in time, with exit status 6, and
// with the reports of the others, which name it and their steps.
func TestRanksLost(t *testing.T) {
	needLLC(t)
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	dir := t.TempDir()
	program, artifact := filepath.Join(dir, "sum.weft"), filepath.Join(dir, "three.weft")
	if err := os.WriteFile(program, []byte(forRanks), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("weft", "compile", program, "--target", "sm_80", "-o", artifact).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, test := range []struct {
		signal syscall.Signal
		rank   int
		want   string
	}{
		{syscall.SIGKILL, 1, "W7105: rank 1 went away: its connection ended"},
		{syscall.SIGKILL, 0, "W7105: rank 0 went away: its connection ended"},
		{syscall.SIGSTOP, 2, "rank 2 is missing: it was last heard "},
		{syscall.SIGSTOP, 0, "rank 0 is missing: it was last heard "},
	} {
		t.Run(fmt.Sprintf("%v %d", test.signal, test.rank), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("weft", "run", artifact, "--device", "emu", "--steps", "1000000000", "--nproc", "3", "--comm-timeout", "1s")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			pid := rankProcess(t, cmd.Process.Pid, test.rank)
			time.Sleep(300 * time.Millisecond) // they meet, and run
			if err := syscall.Kill(pid, test.signal); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			cmd.Wait()
			took, limit := time.Since(start), 20*time.Second // of a busy machine
			if test.signal == syscall.SIGKILL {
				limit = 15 * time.Second
			}
			if status := cmd.ProcessState.ExitCode(); status != 6 || took > limit {
				t.Errorf("exit status %d after %s", status, took)
			}
			text := stderr.String()
			if !strings.Contains(text, test.want) {
				t.Errorf("nobody says %q", test.want)
			}
			for rank := range 3 {
				report := fmt.Sprintf("this rank, %d: in step ", rank)
				if rank != test.rank && (!strings.Contains(text, report) || !strings.Contains(text, "of entry sum; last finished all_reduce over x (number ")) {
					t.Errorf("rank %d has no report", rank)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// A rank that cannot start after all have met tells the others why.
func TestRankFailsToStart(t *testing.T) {
	needLLC(t)
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	const program = `mesh x=2
dim "rank.x" in 0..1
state @"w": f32[4] parameter

entry f(%w @"w": f32[4]) {
  %sum: f32[4] = all_reduce(%w) {combine = add, axes = ["x"], size = 2}
  return %sum "sum"
}
`
	if err := os.WriteFile(path("f.weft"), []byte(program), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, n := range map[string]int64{"0": 4, "1": 5} {
		if err := weights.WriteTensors(path(name+".safetensors"), []weights.Named{{Name: "w", Tensor: ir.NewTensor(ir.F32, n)}}); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("weft", "compile", path("f.weft"), "--target", "sm_80", "--weights", "none", "-o", path("f.out")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	var group sync.WaitGroup
	for rank := range 2 {
		group.Go(func() {
			cmd := exec.Command("weft", "run", path("f.out"), "--device", "emu", "--weights", path(fmt.Sprint(rank)+".safetensors"), "--comm-timeout", "20s")
			cmd.Env = append(os.Environ(), fmt.Sprint("RANK=", rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port)
			out, _ := cmd.CombinedOutput()
			if cmd.ProcessState.ExitCode() == 0 || !strings.Contains(string(out), "the weights that were given do not fit") {
				t.Errorf("rank %d ends with %d and says\n%s", rank, cmd.ProcessState.ExitCode(), out)
			}
		})
	}
	group.Wait()
}

// rankProcess waits for the process of a rank that a process started.
func rankProcess(t *testing.T, parent, rank int) int {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
		for _, file := range list {
			text, _ := os.ReadFile(file)
			for _, child := range strings.Fields(string(text)) {
				environment, _ := os.ReadFile("/proc/" + child + "/environ")
				if slices.Contains(strings.Split(string(environment), "\x00"), fmt.Sprintf("RANK=%d", rank)) {
					pid, _ := strconv.Atoi(child)
					return pid
				}
			}
		}
	}
	t.Fatalf("rank %d is not started", rank)
	return 0
}
