// Libcuda writes libcuda.a, a static stand-in for the CUDA driver library. A program linked with
// it starts on machines that have no driver, and reaches the real library where there is one.
//
//	go run ./runtime/cuda/libcuda -o DIR
//
// It compiles the packages that call the driver, reads from their object files which driver
// functions they leave undefined, and writes one trampoline for each: a jump through
// weft_cuda_table. Package runtime/cuda points the table into libcuda.so.1 when a CUDA device is
// asked for. Until then cuInit answers success, because gorgonia.org/cu calls it during package
// initialization and ends the process when it fails; every other function answers
// CUDA_ERROR_NOT_INITIALIZED.
//
// The environment must hold the CGO_CFLAGS that find cuda.h; runtime/cuda/build.sh sets it up.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// callers are the packages whose undefined driver functions get a trampoline.
var callers = []string{"gorgonia.org/cu", "weft/runtime/cuda"}

func main() {
	dir := flag.String("o", "", "folder that gets libcuda.a")
	list := flag.Bool("list", false, "print the driver functions instead")
	flag.Parse()
	if err := run(*dir, *list); err != nil {
		fmt.Fprintln(os.Stderr, "libcuda:", err)
		os.Exit(1)
	}
}

func run(dir string, list bool) error {
	if dir == "" && !list {
		return errors.New("-o DIR is missing")
	}
	arch, err := output("go", "env", "GOARCH")
	if err != nil {
		return err
	}
	archives, err := output("go", append([]string{"list", "-export", "-tags", "cuda", "-trimpath", "-f", "{{.Export}}"}, callers...)...)
	if err != nil {
		return err
	}
	symbols, err := undefined(strings.Fields(archives))
	if err != nil {
		return err
	}
	if list {
		fmt.Println(strings.Join(symbols, "\n"))
		return nil
	}
	source, err := assembly(strings.TrimSpace(arch), symbols)
	if err != nil {
		return err
	}
	return archive(dir, source)
}

// archive assembles source and puts the object into dir/libcuda.a. An archive that was made from
// the same source stays untouched, so that nothing is linked again without need.
func archive(dir string, source []byte) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	text, lib := filepath.Join(dir, "libcuda.S"), filepath.Join(dir, "libcuda.a")
	if old, err := os.ReadFile(text); err == nil && bytes.Equal(old, source) {
		if _, err := os.Stat(lib); err == nil {
			return nil
		}
	}
	cc, err := output("go", "env", "CC")
	if err != nil {
		return err
	}
	// Made aside and renamed: another build may be linking with the old one.
	aside, err := os.MkdirTemp(dir, "new")
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside)
	newText, object, newLib := filepath.Join(aside, "libcuda.S"), filepath.Join(aside, "libcuda.o"), filepath.Join(aside, "libcuda.a")
	if err := os.WriteFile(newText, source, 0o666); err != nil {
		return err
	}
	command := append(strings.Fields(cc), "-c", "-o", object, newText)
	if _, err := output(command[0], command[1:]...); err != nil {
		return err
	}
	if _, err := output("ar", "rcsD", newLib, object); err != nil {
		return err
	}
	if err := os.Rename(newLib, lib); err != nil {
		return err
	}
	return os.Rename(newText, text)
}

// output runs a command and returns what it wrote to standard output.
func output(name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
