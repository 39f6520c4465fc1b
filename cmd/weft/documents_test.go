package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documents are the pages whose console blocks TestDocuments runs.
var documents = []string{"cli.md", "kernels.md", "parallelism.md"}

// TestDocuments runs the commands of the pages, those of one page in one folder with models in
// X
func TestDocuments(t *testing.T) {
	needLLC(t)
	for _, name := range documents {
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs("../../docs/" + name)
			if err != nil {
				t.Fatal(err)
			}
			page, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			folder := models(t)
			t.Chdir(t.TempDir())
			if err := os.Symlink(folder, "models"); err != nil {
				t.Fatal(err)
			}
			if got := runPage(t, string(page)); *update && got != string(page) {
				if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var consoleBlock = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// runPage runs all console blocks and gives the page with what was printed.
func runPage(t *testing.T, page string) string {
	return consoleBlock.ReplaceAllStringFunc(page, func(block string) string {
		body := strings.TrimSuffix(strings.TrimPrefix(block, "```console\n"), "```")
		var b strings.Builder
		for _, part := range strings.Split("\n"+body, "\n$ ")[1:] {
			command, want, _ := strings.Cut(part, "\n")
			if want != "" && !strings.HasSuffix(want, "\n") {
				want += "\n"
			}
			b.WriteString("$ " + command + "\n" + runConsole(t, command, want))
		}
		return "```console\n" + b.String() + "```"
	})
}

// runConsole runs a command and gives what the page is to show for it.
func runConsole(t *testing.T, command, want string) string {
	words := strings.Fields(command)
	if len(words) == 2 && words[0] == "cat" {
		if err := os.WriteFile(words[1], []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		return want
	}
	if len(words) == 0 || words[0] != "weft" {
		t.Fatalf("%q is no command of weft", command)
	}
	var out bytes.Buffer
	run(words[1:], strings.NewReader(""), &out, &out)
	got := out.String()
	elided := strings.Contains(want, "...")
	switch {
	case matches(want, got):
		return want
	case *update && !elided:
		return got
	case elided:
		t.Errorf("$ %s\nprints\n%s\nwhich does not match\n%s", command, got, want)
	default:
		t.Errorf("$ %s\n%s", command, cmp.Diff(want, got))
	}
	return want
}

// changing is what changes with every change of a kernel's text: digests and register numbers.
var changing = regexp.MustCompile(`\b([0-9a-f]{64})\b|_([0-9a-f]{16})|%[a-z]*[0-9]+`)

// matches tells whether a text is as expected, digests, register numbers, spaces and blank lines at the end aside.
func matches(want, got string) bool {
	plain := func(s string) string {
		lines := strings.Split(strings.TrimRight(changing.ReplaceAllString(s, "#"), "\n"), "\n")
		for i, line := range lines {
			lines[i] = strings.Join(strings.Fields(line), " ")
		}
		return strings.Join(lines, "\n") + "\n"
	}
	var pattern strings.Builder
	for _, line := range strings.SplitAfter(plain(want), "\n") {
		if line == "...\n" {
			pattern.WriteString(`(.*\n)*?`)
		} else {
			pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), `\.\.\.`, `.*?`))
		}
	}
	return regexp.MustCompile("^" + pattern.String() + "$").MatchString(plain(got))
}

// TestMatches holds what a page may leave out.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		want, got string
		equal     bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\nb\n", "a\nc\n", false},
		{"a\n...\nd\n", "a\nb\nc\nd\n", true},
		{"a\n...\nd\n", "a\nb\nc\n", false},
		{"size ... KiB\n", "size 12.5 KiB\n", true},
		{"size ... KiB\n", "size 12.5\nKiB\n", false},
		{"row  ...  0 B\n", "row 117   0 B\n", true},
		{"rows_0123456789abcdef x\n", "rows_fedcba9876543210   x\n", true},
		{"a.b\n", "axb\n", false},
	} {
		if matches(c.want, c.got) != c.equal {
			t.Errorf("%q and %q: matches is %v", c.want, c.got, !c.equal)
		}
	}
}
