package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// member writes one member of an ar archive.
func member(name string, data []byte) []byte {
	b := fmt.Appendf(nil, "%-16s%-12d%-6d%-6d%-8o%-10d`\n%s", name, 0, 0, 0, 0o644, len(data), data)
	if len(data)%2 == 1 {
		b = append(b, '\n')
	}
	return b
}

func compile(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("cc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func needCompiler(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler: ", err)
	}
}

func TestUndefined(t *testing.T) {
	needCompiler(t)
	dir := t.TempDir()
	c, object := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.o")
	if err := os.WriteFile(c, []byte("int cuInit(int); int cuB_v2(int); int curl(int); int cuMine(int x) { return cuInit(cuB_v2(curl(x))); }"), 0o666); err != nil {
		t.Fatal(err)
	}
	compile(t, "-c", "-o", object, c)
	data, err := os.ReadFile(object)
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "package.a")
	data = slices.Concat([]byte(archiveMagic), member("__.PKGDEF", []byte("odd")), member("a.o", data))
	if err := os.WriteFile(archive, data, 0o666); err != nil {
		t.Fatal(err)
	}
	got, err := undefined([]string{archive})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"cuB_v2", "cuInit"}; !slices.Equal(got, want) {
		t.Errorf("undefined: %q, want %q", got, want)
	}
}

// A program linked with the trampolines gets the stand-in's answers until the table is filled, then
// those of the functions in the table, with all arguments.
func TestTrampolines(t *testing.T) {
	needCompiler(t)
	source, err := assembly(runtime.GOARCH, []string{"cuAdd", "cuInit", "cuNew"})
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if err := archive(dir, source); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "main.c")
	if err := os.WriteFile(main, []byte(`
#include <stdint.h>
#include <stdio.h>
extern int cuAdd(int, int, int, int, int, int, int, int), cuInit(unsigned), cuNew(void);
extern void *weft_cuda_table[];
extern const char *const weft_cuda_names[];
extern const uint64_t weft_cuda_count;
extern void weft_cuda_missing(void);
static int add(int a, int b, int c, int d, int e, int f, int g, int h) { return a + 2*b + 3*c + 4*d + 5*e + 6*f + 7*g + 8*h; }
int main(void) {
	printf("%d %d %d\n", cuInit(0), cuAdd(1, 2, 3, 4, 5, 6, 7, 8), cuNew());
	weft_cuda_table[0] = (void *)add;
	weft_cuda_table[2] = (void *)weft_cuda_missing;
	printf("%d %d %d\n", cuInit(0), cuAdd(1, 2, 3, 4, 5, 6, 7, 8), cuNew());
	for (uint64_t i = 0; i < weft_cuda_count; i++) puts(weft_cuda_names[i]);
}`), 0o666); err != nil {
		t.Fatal(err)
	}
	want := "0 3 3\n0 204 801\ncuAdd\ncuInit\ncuNew\n"
	for _, mode := range []string{"-pie", "-no-pie"} {
		program := filepath.Join(dir, "program"+mode)
		compile(t, "-fPIE", mode, "-o", program, main, "-L"+dir, "-lcuda")
		if got, err := exec.Command(program).CombinedOutput(); err != nil || string(got) != want {
			t.Errorf("%s: %v, printed\n%s\nwant\n%s", mode, err, got, want)
		}
	}
}

func TestAssemblyRefuses(t *testing.T) {
	if _, err := assembly("riscv64", []string{"cuInit"}); err == nil || !strings.Contains(err.Error(), "riscv64") {
		t.Errorf("unknown processor: %v", err)
	}
	if _, err := assembly("amd64", []string{"cuAdd"}); err == nil || !strings.Contains(err.Error(), "cuInit") {
		t.Errorf("no cuInit: %v", err)
	}
}

func FuzzReadArchive(f *testing.F) {
	f.Add(slices.Concat([]byte(archiveMagic), member("a", []byte("odd")), member("b", []byte("even"))))
	f.Add([]byte(archiveMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		members, err := readArchive(data)
		if err != nil {
			return
		}
		for _, m := range members {
			if !bytes.Contains(data, m) {
				t.Errorf("member %q is not in the archive", m)
			}
		}
	})
}
