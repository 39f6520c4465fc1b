//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A compile that is killed, at any moment, leaves no output or a whole one; the next compile
// removes the temporary files of those that were killed.
func TestKilledCompile(t *testing.T) {
	needLLC(t)
	dir := t.TempDir()
	out := filepath.Join(dir, "out.weft")
	args := []string{"compile", filepath.Join(models(t), "mlp", "model.pt2"), "--target", "sm_80", "--target", "sm_90a", "-o", out}
	start := time.Now()
	if text, err := exec.Command("weft", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	took := time.Since(start)
	whole, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	const moments = 20
	killed := 0
	for i := range moments {
		if err := os.Remove(out); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if ended, err := killAfter(exec.Command("weft", args...), took*time.Duration(i)/(moments-1)); err != nil {
			t.Fatal(err)
		} else if ended > 0 {
			took = ended // the machine is less busy now
		} else {
			killed++
		}
		got, err := os.ReadFile(out)
		if err == nil && !bytes.Equal(got, whole) {
			t.Errorf("killed after %d/%d: %d bytes of %d under the final name", i, moments-1, len(got), len(whole))
		}
	}
	if killed < moments/2 {
		t.Errorf("only %d of %d compiles were killed before their end", killed, moments)
	}

	stale := filepath.Join(dir, ".out.weft.tmp-0123456789abcdef")
	if err := os.WriteFile(stale, whole[:1000], 0o666); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("weft", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if left := list(t, dir); len(left) != 1 || left[0] != "out.weft" {
		t.Errorf("the folder has %v, expected out.weft alone", left)
	}
}

// killAfter runs a command and kills it after a time; ended is how long it took where it was
// faster.
func killAfter(cmd *exec.Cmd, wait time.Duration) (ended time.Duration, err error) {
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return time.Since(start), err
	case <-time.After(wait):
		cmd.Process.Kill() // fails where it has ended this moment
		<-done
		return 0, nil
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A compile that is interrupted stops its tools, says so, and leaves nothing.
func TestInterruptedCompile(t *testing.T) {
	dir := t.TempDir()
	started := filepath.Join(dir, "started")
	llc := filepath.Join(dir, "llc")
	script := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'LLVM version 19.1.7'; exit; fi\n: >'" + started + "'\nexec sleep 60\n"
	if err := os.WriteFile(llc, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "out")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("weft", "compile", filepath.Join(models(t), "mlp", "model.pt2"), "--target", "sm_80", "-o", filepath.Join(folder, "out.weft"))
	cmd.Env = append(os.Environ(), "WEFT_LLC="+llc)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(started); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the compile does not start llc")
		}
	}
	start := time.Now()
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("the compile stopped after %s", took)
	}
	if status := cmd.ProcessState.ExitCode(); status != 6 || !strings.Contains(stderr.String(), "W0006: stopped by a signal") {
		t.Errorf("exit status %d (%v), expected 6:\n%s", status, err, &stderr)
	}
	if left := list(t, folder); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
