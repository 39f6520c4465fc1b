package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"weft/codegen/llvm"
	"weft/codegen/ptxas"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/eval"
)

var update = flag.Bool("update", false, "rewrite the goldens in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weft": main})
}

// models is the folder of exported models.
func models(t testing.TB) string {
	folder, err := filepath.Abs("../../testdata/models")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// needLLC skips a test where llc is not installed, unless tools are required.
func needLLC(t testing.TB) {
	if !haveLLC() {
		t.Skip("llc-19 is not installed")
	}
}

func haveLLC() bool {
	_, err := llvm.FindCompiler(context.Background())
	return err == nil || os.Getenv("WEFT_REQUIRE_TOOLS") != ""
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("MODELS", models(t))
			if value, ok := os.LookupEnv("WEFT_LLC"); ok {
				e.Setenv("WEFT_LLC", value)
			}
			// A script's folder is outside of the source tree, where ptxas may be found.
			if assembler, err := ptxas.Find(context.Background()); err == nil {
				e.Setenv("WEFT_PTXAS", assembler.Path)
			}
			return nil
		},
		Condition: func(name string) (bool, error) {
			switch name {
			case "llc":
				return haveLLC(), nil
			case "ptxas":
				_, err := ptxas.Find(context.Background())
				return err == nil || os.Getenv("WEFT_REQUIRE_TOOLS") != "", nil
			}
			return false, fmt.Errorf("unknown condition %s", name)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    scriptExits,
			"json":     scriptJSON,
			"truncate": scriptTruncate,
			"tensors":  scriptTensors,
		},
	})
}

// scriptExits is "exits STATUS COMMAND...": the command ends with that status.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, expected %d", got, want)
	}
}

// scriptJSON is "json FILE [PATH VALUE]...": the file (stdout, stderr) is one JSON document, and
// what the dotted path leads to prints as the value.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args)%2 != 1 {
		ts.Fatalf("usage: json FILE [PATH VALUE]...")
	}
	var doc any
	text := ts.ReadFile(args[0])
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		ts.Fatalf("%s is not JSON: %v\n%s", args[0], err, text)
	}
	if _, err := dec.Token(); err != io.EOF {
		ts.Fatalf("%s has more than one document:\n%s", args[0], text)
	}
	for i := 1; i < len(args); i += 2 {
		if got := fmt.Sprint(lookup(doc, args[i])); got != args[i+1] {
			ts.Fatalf("%s is %s, expected %s", args[i], got, args[i+1])
		}
	}
}

func lookup(doc any, path string) any {
	for _, key := range strings.Split(path, ".") {
		switch at := doc.(type) {
		case map[string]any:
			doc = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			if key == "len" {
				doc = len(at)
			} else if err == nil && i < len(at) {
				doc = at[i]
			} else {
				return nil
			}
		default:
			return nil
		}
	}
	return doc
}

// scriptTruncate is "truncate FROM TO BYTES": TO is the beginning of FROM; of negative BYTES so
// many are cut off.
func scriptTruncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: truncate FROM TO BYTES")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	if n < 0 {
		n += len(data)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data[:n], 0o666))
}

// scriptTensors is "tensors FILE PROGRAM" (see writeTensors).
func scriptTensors(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tensors FILE PROGRAM")
	}
	ts.Check(writeTensors(ts.MkAbs(args[0]), ts.ReadFile(args[1])))
}

// writeTensors writes a tensor file with what a program without inputs gives, under the names of
// its outputs.
func writeTensors(path, program string) error {
	p, err := ir.ParseProgram("tensors", []byte(program))
	if err != nil {
		return err
	}
	result, err := eval.Run(p, p.Entries[0].Name, nil, nil)
	if err != nil {
		return err
	}
	var list []weights.Named
	for i, t := range result.Outputs {
		list = append(list, weights.Named{Name: p.Entries[0].Outputs[i].Name, Tensor: t})
	}
	return weights.WriteTensors(path, list)
}

// panicking is a standard input that breaks weft.
type panicking struct{}

func (panicking) Read([]byte) (int, error) { panic("an invariant is broken") }

func TestPanicIsABugReport(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status := run([]string{"run", "-", "--device", "reference"}, panicking{}, &stdout, &stderr); status != 5 {
		t.Errorf("exit status %d, expected 5", status)
	}
	for _, want := range []string{"W0900", "an invariant is broken", "panicking.Read", "report it"} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("no %q in:\n%s", want, &stderr)
		}
	}
	if stdout.Len() > 0 {
		t.Errorf("stdout: %s", &stdout)
	}
}

// failing is a standard output on a full disk.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestStandardOutputCannotBeWritten(t *testing.T) {
	var stderr bytes.Buffer
	if status := run([]string{"version"}, nil, failing{}, &stderr); status != 3 {
		t.Errorf("exit status %d, expected 3", status)
	}
	if !strings.Contains(stderr.String(), "W0004") || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("stderr: %s", &stderr)
	}
}
