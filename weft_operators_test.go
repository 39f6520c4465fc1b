package weft

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"weft/ir"
)

// uncased are the kinds without cases of their own in ir/eval/testdata: their regions are programs, or several
// ranks take part, which TestCollectives of ir/eval and TestMeshPrograms have.
var uncased = map[ir.Kind]bool{ir.OpIf: true, ir.OpWhile: true, ir.OpKernel: true}

// TestOperatorTables holds the checklist of docs/add-an-op.md: every kind is documented in
// docs/ir.md, has cases that evaluator and kernels are held to, and occurs in the corpus. (That
// each has an evaluation is ir/eval's TestTableComplete; that each compiles and runs is
// TestCorpus.) Kernel operations are made by fusion, so that none is written down.
func TestOperatorTables(t *testing.T) {
	page := readAll(t, "docs/ir.md")
	cases := readAll(t, "ir/eval/testdata/*.cases")
	corpus := readAll(t, "testdata/programs/*.weft")
	for k := ir.OpConstant; k < ir.NumKinds; k++ {
		name := regexp.QuoteMeta(k.String())
		if !regexp.MustCompile("(?m)^\\| `" + name + "` \\|").MatchString(page) {
			t.Errorf("docs/ir.md does not have %s; go generate ./ir writes it", k)
		}
		ranks := k.Info().Class == ir.ClassCollective
		if !uncased[k] && !ranks && !regexp.MustCompile(`(?m)^(about )?`+name+` `).MatchString(cases) {
			t.Errorf("ir/eval/testdata has no case of %s", k)
		}
		if k != ir.OpKernel && !ranks && !regexp.MustCompile(`= `+name+`\(`).MatchString(corpus) {
			t.Errorf("testdata/programs has no program with %s", k)
		}
	}
}

func readAll(t *testing.T, pattern string) string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	var b strings.Builder
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
		b.WriteByte('\n')
	}
	return b.String()
}

// excerpt is a code block of a page under a line that names its file.
var excerpt = regexp.MustCompile("(?ms)^`([\\w./]+)`:?[^\n]*\n+```\\w*\n(.*?)^```$")

// TestAddAnOp holds docs/add-an-op.md to the code: each code block stands in the file that is
// named above it, but for indentation and what "..." leaves out.
func TestAddAnOp(t *testing.T) {
	blocks := excerpt.FindAllStringSubmatch(readAll(t, "docs/add-an-op.md"), -1)
	if len(blocks) < 8 {
		t.Fatalf("%d excerpts", len(blocks))
	}
	plain := func(s string) string {
		lines := strings.Split(strings.TrimSpace(s), "\n")
		for i, line := range lines {
			lines[i] = strings.Join(strings.Fields(line), " ")
		}
		return strings.Join(lines, "\n")
	}
	for _, b := range blocks {
		file := plain(readAll(t, b[1]))
		for part := range strings.SplitSeq(plain(b[2]), "...") {
			if part = strings.TrimSpace(part); !strings.Contains(file, part) {
				t.Errorf("%s no longer has\n%s", b[1], part)
			}
		}
	}
}
