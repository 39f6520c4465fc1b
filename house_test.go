package weft

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// topLevel is what may lie at the top of the repository. Ignored files (build, tools' own) are
// left out of consideration, as are this package's tests.
var topLevel = []string{"cmd", "frontend", "ir", "passes", "codegen", "runtime", "testdata", "docs", ".ci",
	"README.md", "ARCHITECTURE.md", "LICENSE", "Makefile", "go.mod", "go.sum", ".gitignore", "weft.go"}

// house says for each part of the repository which others its packages may import (not counting
// tests); a package belongs to the part with the longest name that leads its path. A part that
// ends in /... covers everything below, which may import each other where the part lists itself.
//
// Data flows one way: frontend, ir, passes, codegen, runtime. Tables that describe (ir/plan,
// ir/target, ir/diag, codegen/ptx) are what the stages share.
var house = map[string][]string{
	"weft": {"codegen", "frontend", "frontend/lower", "frontend/weights", "ir", "ir/diag", "ir/plan", "ir/reproducer", "ir/target",
		"passes", "runtime", "runtime/artifact", "runtime/cache"},
	"cmd": {"weft", "codegen/llvm", "codegen/ptx", "codegen/ptxas", "frontend/...", "ir/...", "passes", "passes/precision", "runtime/..."},

	"frontend":         {"frontend/fx", "frontend/onnx", "frontend/lower", "frontend/weights", "ir", "ir/diag", "ir/mesh"},
	"frontend/fx":      {"frontend/lower", "frontend/weights", "ir", "ir/diag", "ir/mesh"},
	"frontend/onnx":    {"frontend/lower", "frontend/weights", "ir", "ir/diag"},
	"frontend/lower":   {"frontend/weights", "ir", "ir/diag"},
	"frontend/weights": {"ir", "ir/diag"},

	"ir":             {"ir/diag"}, // the program itself knows diagnostics alone
	"ir/diag":        {},
	"ir/diag/render": {"ir/diag"},
	"ir/compare":     {"ir"},
	"ir/eval":        {"ir", "ir/diag", "ir/mesh"},
	"ir/internal":    {"ir"},
	"ir/mesh":        {"ir", "ir/diag"},
	"ir/plan":        {"ir", "ir/diag", "ir/mesh", "ir/target"},
	"ir/reproducer":  {"ir/diag"},
	"ir/target":      {"ir/diag"},

	"passes":                    {"passes/...", "ir", "ir/diag", "ir/mesh", "ir/target"},
	"passes/...":                {"ir", "ir/diag", "ir/eval", "ir/mesh", "ir/target", "passes/internal/initentry", "passes/internal/sizing"}, // a pass knows no other pass
	"passes/internal/initentry": {"ir"},
	"passes/internal/sizing":    {"ir"},

	"codegen":            {"codegen/kernel", "codegen/llvm", "codegen/ptx", "codegen/ptxas", "ir", "ir/diag", "ir/plan", "ir/target"},
	"codegen/kernel":     {"codegen/elementary", "ir", "ir/diag"},
	"codegen/llvm":       {"codegen/kernel", "codegen/ptx", "ir", "ir/diag"},
	"codegen/elementary": {},
	"codegen/ptx":        {},
	"codegen/ptxas":      {"ir/diag"},

	// The runtime reads weights files as the frontends do: one package for both ends.
	"runtime":            {"runtime/artifact", "runtime/trace", "frontend/weights", "ir", "ir/diag", "ir/mesh", "ir/plan"},
	"runtime/artifact":   {"frontend/weights", "ir", "ir/diag"},
	"runtime/cache":      {"ir/diag"},
	"runtime/trace":      {},
	"runtime/emu":        {"runtime", "codegen/ptx"},
	"runtime/cuda":       {"runtime", "runtime/cuda/..."},
	"runtime/cuda/...":   {},
	"runtime/comm":       {"runtime", "runtime/comm/combine", "ir", "ir/diag"},
	"runtime/comm/...":   {"ir"},
	"runtime/devicetest": {"runtime"},
	"runtime/bench":      {"runtime", "runtime/artifact", "runtime/cuda", "runtime/emu", "frontend/weights", "ir", "ir/diag", "ir/plan"},
}

// homes are the only parts that may import a dependency.
var homes = map[string][]string{
	"gorgonia.org/cu":            {"runtime/cuda"},
	"github.com/llir/llvm":       {"codegen/llvm"},
	"github.com/spf13/cobra":     {"cmd"},
	"google.golang.org/protobuf": {"frontend/onnx"},

	"github.com/nlpodyssey/gopickle": {"frontend/fx"},
}

func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	ignored := ignoredNames(t)
	for _, e := range entries {
		name := e.Name()
		if name == ".git" || slices.Contains(topLevel, name) || slices.Contains(ignored, name) || strings.HasSuffix(name, "_test.go") {
			continue
		}
		t.Errorf("%s does not belong at the top of the repository", name)
	}
}

// ignoredNames are the plain names in .gitignore.
func ignoredNames(t *testing.T) []string {
	text, err := os.ReadFile(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		names = append(names, strings.Trim(strings.TrimSpace(line), "/"))
	}
	return names
}

func TestImports(t *testing.T) {
	imports := packageImports(t)
	for pkg, list := range imports {
		part := partOf(pkg)
		if part == "" {
			t.Errorf("package %s has no place in the house", pkg)
			continue
		}
		for _, to := range list {
			if inner, ours := strings.CutPrefix(to, "weft/"); ours || to == "weft" {
				if !ours {
					inner = "weft"
				}
				if !allows(house[part], inner) {
					t.Errorf("%s must not import %s", pkg, inner)
				}
				continue
			}
			for dependency, only := range homes {
				if (to == dependency || strings.HasPrefix(to, dependency+"/")) && !slices.Contains(only, part) {
					t.Errorf("%s must not import %s, which belongs to %v", pkg, to, only)
				}
			}
		}
	}
	checkCycles(t)
}

// packageImports reads the imports of all packages whatever their build tags, without tests.
// The keys are paths below weft; the package at the top is "weft".
func packageImports(t *testing.T) map[string][]string {
	imports := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "testdata" || name == "build" || strings.HasPrefix(name, ".") && name != ".") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(file))
		if pkg == "." {
			pkg = "weft"
		}
		for _, spec := range parsed.Imports {
			to, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imports[pkg] = append(imports[pkg], to)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return imports
}

// partOf is the part of the house that a package belongs to; empty when there is none.
func partOf(pkg string) string {
	if _, ok := house[pkg]; ok {
		return pkg
	}
	for dir := path.Dir(pkg); dir != "."; dir = path.Dir(dir) {
		for _, part := range []string{dir + "/...", dir} {
			if _, ok := house[part]; ok {
				return part
			}
		}
	}
	return ""
}

func allows(list []string, pkg string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		below, all := strings.CutSuffix(a, "/...")
		return a == pkg || all && (pkg == below || strings.HasPrefix(pkg, below+"/"))
	})
}

// checkCycles fails when the parts of the house could come to import each other in a circle:
// the compiler forbids it for packages, this for what the table allows.
func checkCycles(t *testing.T) {
	const walking, done = 1, 2
	state := map[string]int{}
	var visit func(part string, way []string)
	visit = func(part string, way []string) {
		switch state[part] {
		case walking:
			t.Errorf("the house allows a circle: %s", strings.Join(append(way, part), " -> "))
			return
		case done:
			return
		}
		state[part] = walking
		for _, to := range house[part] {
			for other := range house {
				if other == to || other == partOf(to) || strings.HasSuffix(to, "/...") && strings.HasPrefix(other, strings.TrimSuffix(to, "...")) {
					visit(other, append(way, part))
				}
			}
		}
		state[part] = done
	}
	for part := range house {
		visit(part, nil)
	}
}
