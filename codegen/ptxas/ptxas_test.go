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

// spilling needs more registers than its bound allows.
const spilling = `.version 7.0
.target sm_80
.address_size 64
.visible .entry spilling(.param .u64 p) .maxntid 1024, 1, 1
{
	.local .align 4 .b8 depot[64];
	.reg .b32 %r<4>;
	.reg .b64 %rd<8>;
	ld.param.u64 %rd1, [p];
	cvta.to.global.u64 %rd2, %rd1;
	ld.global.u32 %r1, [%rd2];
	mov.u64 %rd3, depot;
	cvt.u64.u32 %rd4, %r1;
	add.s64 %rd5, %rd3, %rd4;
	st.local.u32 [%rd5], %r1;
	ld.local.u32 %r2, [depot+8];
	st.global.u32 [%rd2], %r2;
	ret;
}
`

func TestLocalMemoryIsABug(t *testing.T) {
	a := find(t)
	_, err := a.Assemble(context.Background(), []byte(spilling), "sm_80")
	list := diag.All(err)
	if len(list) != 1 || list[0].Code != diag.Bug || list[0].Place != Place || len(list[0].Notes) != 1 || !strings.HasPrefix(list[0].Notes[0], "spilling: 64 bytes stack frame") {
		t.Errorf("%v", err)
	}
}

func TestComplaints(t *testing.T) {
	const output = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_90a'
ptxas info    : Function properties for a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to insufficient register resources for the wgmma pipeline in the function 'b'
ptxas info    : Function properties for b
    0 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 255 registers
`
	got := complaints(output)
	if len(got) != 2 || !strings.HasPrefix(got[0], "b: (C7510)") || got[1] != "b: 0 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads" {
		t.Errorf("%q", got)
	}
}
