package ptxas

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/ir/diag"
)

const nothing = `.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing(.param .u64 p) { ret; }
`

func find(t *testing.T) *Assembler {
	t.Helper()
	a, err := Find(context.Background())
	if err != nil {
		if os.Getenv("WEFT_REQUIRE_TOOLS") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return a
}

func TestAssemble(t *testing.T) {
	a := find(t)
	first, err := a.Assemble(context.Background(), []byte(nothing), "sm_80")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(first, []byte("\x7fELF")) {
		t.Errorf("the cubin begins with %q", first[:min(8, len(first))])
	}
	t.Setenv("TMPDIR", t.TempDir())
	second, err := a.Assemble(context.Background(), []byte(nothing), "sm_80")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two runs give other bytes")
	}
	if _, err := a.Assemble(context.Background(), []byte("add.f32"), "sm_80"); err == nil || diag.ExitStatus(err) != diag.InternalBug {
		t.Errorf("wrong PTX: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.Assemble(ctx, []byte(nothing), "sm_80"); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}

func TestFindWithoutOne(t *testing.T) {
	t.Setenv("WEFT_PTXAS", "/nonexistent/ptxas")
	_, err := Find(context.Background())
	if list := diag.All(err); len(list) != 1 || list[0].Code != diag.NoAssembler || !strings.Contains(list[0].Message, "/nonexistent/ptxas") {
		t.Errorf("a name that does not run: %v", err)
	}
	other := filepath.Join(t.TempDir(), "ptxas")
	if err := os.WriteFile(other, []byte("#!/bin/sh\necho some other program\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WEFT_PTXAS", other)
	if _, err := Find(context.Background()); diag.All(err)[0].Code != diag.NoAssembler {
		t.Errorf("another program: %v", err)
	}
}

// CUDA's folder goes before PATH, and PATH before the wheel of a Python environment.
func TestSearchOrder(t *testing.T) {
	dir := t.TempDir()
	place := func(parts ...string) string {
		path := filepath.Join(append([]string{dir}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o777); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if isFile("/usr/local/cuda/bin/ptxas") {
		t.Skip("this machine has CUDA's folder")
	}
	t.Chdir(dir)
	t.Setenv("CUDA_HOME", "")
	t.Setenv("CUDA_PATH", "")
	t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "venv"))
	t.Setenv("PATH", filepath.Join(dir, "path"))
	var want string
	for _, step := range [][]string{
		{"venv", "lib", "python3.12", "site-packages", "nvidia", "cu13", "bin", "ptxas"},
		{"venv", "lib", "python3.12", "site-packages", "nvidia", "cuda_nvcc", "bin", "ptxas"},
		{"build", "cuda", "nvcc", "nvidia", "cuda_nvcc", "bin", "ptxas"},
		{"path", "ptxas"},
		{"cuda", "bin", "ptxas"},
	} {
		want = place(step...)
		switch step[0] {
		case "build":
			if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module weft\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		case "cuda":
			t.Setenv("CUDA_HOME", filepath.Join(dir, "cuda"))
		}
		if got := search(); got != want {
			t.Errorf("found %s, expected %s", got, want)
		}
	}
}
