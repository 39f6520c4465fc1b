package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"weft/ir/diag"
)

//go:generate go test . -run TestErrorsPage -update

// TestErrorsPage writes docs/errors.md from the table of codes and from testdata/errors, whose
// examples it runs: CODE.txtar has commands, the last of which must report CODE, and their
// files. The page must be up to date; -update rewrites it.
func TestErrorsPage(t *testing.T) {
	needLLC(t)
	page, err := filepath.Abs("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	archives := readExamples(t)
	examples := maps.Clone(archives)
	var b strings.Builder
	b.WriteString("# Diagnostics\n\nEvery error and warning has a code that does not change. `weft explain CODE` prints what is here. The exit status is\n" +
		"that of the most severe error.\n\n| status | |\n|---|---|\n| 0 | fine; warnings do not count |\n| 1 | results differ |\n| 2 | usage |\n| 3 | the input is at fault |\n" +
		"| 4 | unsupported |\n| 5 | a bug of weft |\n| 6 | the run failed |\n\nThe examples are run by a test, which writes this page (`go test ./cmd/weft -run TestErrorsPage -update`).\n" +
		"A line with # makes a file: `protobuf` from the text that protoc --decode_raw prints, `archive` by edits of a .pt2's model JSON,\n" +
		"`repack` by edits of the plans (or PTX) of an artifact, `edit` by edits of the bytes, `safetensors` from a header.\n")
	for _, info := range diag.Codes() {
		fmt.Fprintf(&b, "\n## %s: %s\nExit status %d. %s\n", info.Code, info.Title, info.Status, wrap(info.Help, 120))
		if archive, ok := examples[string(info.Code)]; ok {
			b.WriteString(runExample(t, info, archive))
			delete(examples, string(info.Code))
		}
		reason, ok := withoutExample[info.Code]
		if ok {
			fmt.Fprintf(&b, "\nNo example: %s.\n", reason)
		}
		if _, has := archives[string(info.Code)]; has == ok {
			t.Errorf("%s has neither an example nor a reason for having none, or both", info.Code)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(withoutExample)) {
		if _, ok := diag.Lookup(code); !ok {
			t.Errorf("%s, which is to have no example, is no code", code)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(examples)) {
		t.Errorf("testdata/errors/%s.txtar is of no known code", code)
	}
	have, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	// Digests change with kernels, and are no reason to write the page again.
	switch steady := func(s string) string { return changing.ReplaceAllString(s, "#") }; {
	case steady(string(have)) == steady(b.String()):
	case *update:
		if err := os.WriteFile(page, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("docs/errors.md is out of date; go test ./cmd/weft -run TestErrorsPage -update writes it\n%s", cmp.Diff(string(have), b.String()))
	}
}

// withoutExample says why a code has no example here.
var withoutExample = map[diag.Code]string{
	diag.Interrupted:    "it takes a signal (Ctrl-C) while the command runs",
	diag.FXAssertion:    "the model must hold an assertion about the contents of a tensor, as torch._check on an item gives; tests of frontend/fx have one",
	diag.FXOverlapping:  "the model must write in place to an expanded or unfolded view; tests of frontend/fx have one",
	diag.ONNXLimit:      "the file must nest, repeat or expand thousands of times; tests of frontend/onnx make such files",
	"W4002":             "llc-19 must be a file that is not LLVM 19",
	"W4003":             "every operator that a frontend makes today has a kernel; it is for the operators that come next",
	diag.PlanTooLarge:   "the plan must have millions of values; tests of ir/plan make one",
	diag.ArtifactNoPart: "`weft inspect --kernels` gives it for an artifact that was compiled with --code cubin, which takes ptxas",
	diag.RunMemory:      "it depends on the memory of the device",
	diag.RunDevice:      "it takes a fault of a kernel or a GPU",
	diag.NoNCCL:         "it takes a GPU",
	diag.RankFailed:     "it takes a rank that goes away; `weft run --nproc` reports it for a rank that is killed",
	diag.RunState:       "programs that use the Go package runtime meet it; the command names states that there are",
}

func readExamples(t *testing.T) map[string]*txtar.Archive {
	t.Helper()
	paths, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	examples := map[string]*txtar.Archive{}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		examples[strings.TrimSuffix(filepath.Base(path), ".txtar")] = archive
	}
	return examples
}

var temporary = regexp.MustCompile(`weft-(stdin|run|ptxas)-[0-9]+`)

// runExample runs the commands of an example in a folder with its files, where models leads to
// the exported models, and gives the example as text.
func runExample(t *testing.T, info diag.Info, archive *txtar.Archive) string {
	folder := models(t)
	var b strings.Builder
	t.Run(string(info.Code), func(t *testing.T) {
		dir := t.TempDir()
		t.Chdir(dir)
		if err := os.Symlink(folder, "models"); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n```console\n")
		for _, f := range archive.Files {
			if err := os.WriteFile(f.Name, f.Data, 0o666); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(f.Name, "tensors") {
				fmt.Fprintf(&b, "$ cat %s\n%s", f.Name, f.Data)
			}
		}
		commands := strings.Split(strings.TrimSpace(string(archive.Comment)), "\n")
		for i, command := range commands {
			status, text := runLine(t, command)
			if strings.Contains(text, "warning "+string(info.Code)) || strings.Contains(text, "note "+string(info.Code)) {
				info.Status = diag.OK // for a warning or a note
			}
			if last := i == len(commands)-1; last && status != int(info.Status) || !last && status != 0 {
				t.Fatalf("%s: exit status %d\n%s", command, status, text)
			} else if last && !strings.Contains(text, string(info.Code)) {
				t.Fatalf("%s: no %s in\n%s", command, info.Code, text)
			}
			maker := strings.Fields(command)[0]
			if _, ok := makers[maker]; ok && maker != "tensors" && maker != "cut" {
				fmt.Fprintf(&b, "# %s\n", command)
			} else if !ok {
				fmt.Fprintf(&b, "$ %s\n%s", command, strings.ReplaceAll(text, dir, "/folder"))
			}
		}
		b.WriteString("```\n")
		if temporary.MatchString(b.String()) || strings.Contains(b.String(), folder) {
			t.Errorf("the example names a path of the machine:\n%s", &b)
		}
	})
	return b.String()
}

// runLine runs "[NAME=VALUE] weft ARGUMENT..." or one of the makers and gives the exit status and
// what was printed on stderr. One that ends in & runs beside those after it: another rank.
func runLine(t *testing.T, line string) (status int, text string) {
	t.Helper()
	words := strings.Fields(line)
	if maker, ok := makers[words[0]]; ok {
		maker(t, words[1:])
		return 0, ""
	}
	if name, value, ok := strings.Cut(words[0], "="); ok {
		t.Setenv(name, value)
		words = words[1:]
	}
	if words[0] != "weft" {
		t.Fatalf("the command %q is not known", line)
	}
	if last := len(words) - 1; words[last] == "&" {
		done := make(chan struct{})
		go func() {
			defer close(done)
			run(words[1:last], strings.NewReader(""), io.Discard, io.Discard)
		}()
		t.Cleanup(func() { <-done })
		return 0, ""
	}
	var stdout, stderr bytes.Buffer
	status = run(words[1:], strings.NewReader(""), &stdout, &stderr)
	return status, stderr.String()
}
