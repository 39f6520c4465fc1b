// Package passtest runs tests of passes that are text: programs whose leading comments say
// what should come out.
package passtest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/ir"
)

var update = flag.Bool("update", false, "rewrite the expectations of the programs in testdata")

// expectation starts a line of a program that says what should come out.
const expectation = "//: "

// Run runs a pass over each program of testdata and compares what describe says of the result
// with the lines of the program that start with "//: ". The result must be valid, and be
// unchanged in print where the pass says that it changed nothing.
func Run(t *testing.T, pass func(*ir.Program) (bool, error), describe func(*ir.Program) []string) {
	t.Helper()
	RunIn(t, "testdata", pass, describe)
}

// RunIn is Run over the programs of a folder.
func RunIn(t *testing.T, folder string, pass func(*ir.Program) (bool, error), describe func(*ir.Program) []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.weft"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	for _, file := range files {
		RunFile(t, file, pass, describe)
	}
}

// RunFile is Run over one program.
func RunFile(t *testing.T, file string, pass func(*ir.Program) (bool, error), describe func(*ir.Program) []string) {
	t.Helper()
	t.Run(strings.TrimSuffix(filepath.Base(file), ".weft"), func(t *testing.T) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got := result(t, file, text, pass, describe)
		want, rest := split(string(text))
		if slices.Equal(got, want) {
			return
		}
		if *update {
			out := expectation + strings.Join(got, "\n"+expectation) + "\n" + rest
			if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("%s gives\n%s\nnot\n%s", file, strings.Join(got, "\n"), strings.Join(want, "\n"))
	})
}

func result(t *testing.T, file string, text []byte, pass func(*ir.Program) (bool, error), describe func(*ir.Program) []string) []string {
	t.Helper()
	p, err := ir.ParseProgram(file, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(p); err != nil {
		t.Fatal(err)
	}
	before := p.String()
	changed, err := pass(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(p); err != nil {
		t.Fatalf("invalid after the pass: %v\n%s", err, p)
	}
	if after := p.String(); !changed && after != before {
		t.Errorf("the pass says it changed nothing, and made\n%s", after)
	}
	return describe(p)
}

// split parts a program's text into the expectations and the rest.
func split(text string) (want []string, rest string) {
	for line := range strings.Lines(text) {
		if w, ok := strings.CutPrefix(line, expectation); ok {
			want = append(want, strings.TrimSuffix(w, "\n"))
		} else {
			rest += line
		}
	}
	return want, rest
}

// Expressions describes each output of each entry as a formula over its inputs. Attributes are
// given where they are few.
func Expressions(p *ir.Program) []string {
	var out []string
	for _, e := range p.Entries {
		text := map[ir.Value]string{}
		for i, v := range e.Body.Params {
			text[v] = nameOf(e.Inputs[i].Name, e.Inputs[i].State)
		}
		for _, op := range e.Body.Ops {
			for i, r := range op.Results {
				text[r] = formula(op, text)
				if len(op.Results) > 1 {
					text[r] += fmt.Sprintf("#%d", i)
				}
			}
		}
		for i, v := range e.Body.Results {
			out = append(out, fmt.Sprintf("%s: %s = %s", e.Name, nameOf(e.Outputs[i].Name, e.Outputs[i].State), text[v]))
		}
	}
	return out
}

func nameOf(name, state string) string {
	if state != "" {
		return "@" + state
	}
	return name
}

func formula(op *ir.Op, text map[ir.Value]string) string {
	if c, ok := op.Attrs.(*ir.ConstantAttrs); ok {
		return c.Value.String()
	}
	args := make([]string, len(op.Operands))
	for i, v := range op.Operands {
		args[i] = text[v]
	}
	s := fmt.Sprintf("%s(%s)", op.Kind, strings.Join(args, ", "))
	if a := ir.AttrsText(op.Attrs); a != "" && a != "{}" && len(a) < 50 {
		s += a
	}
	return s
}

// Kernels describes each operation of each entry: a kernel by its group and the kinds of its
// region, without sources and changes of shape.
func Kernels(p *ir.Program) []string {
	var out []string
	for _, e := range p.Entries {
		for _, op := range e.Body.Ops {
			a, ok := op.Attrs.(*ir.KernelAttrs)
			if !ok {
				out = append(out, fmt.Sprintf("%s: %s", e.Name, op.Kind))
				continue
			}
			kinds := []string{a.Group.String()}
			for _, inner := range op.Regions[0].Ops {
				switch inner.Kind {
				case ir.OpConstant, ir.OpReshape, ir.OpBroadcastInDim:
				default:
					kinds = append(kinds, inner.Kind.String())
				}
			}
			out = append(out, fmt.Sprintf("%s: %s", e.Name, strings.Join(kinds, " ")))
		}
	}
	return out
}

// Schedules describes the attributes of each kernel.
func Schedules(p *ir.Program) []string {
	var out []string
	for _, e := range p.Entries {
		e.Body.Walk(func(op *ir.Op) {
			if op.Kind == ir.OpKernel {
				out = append(out, fmt.Sprintf("%s: %s", e.Name, strings.TrimSpace(ir.AttrsText(op.Attrs))))
			}
		})
	}
	return out
}

// Memory gives the memory plan of each entry as program text has it.
func Memory(p *ir.Program) []string {
	var out []string
	entry, inside := "", false
	for line := range strings.Lines(p.String()) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "entry "):
			entry, _, _ = strings.Cut(strings.TrimPrefix(line, "entry "), "(")
		case line == "memory {":
			inside = true
		case line == "}":
			inside = false
		case inside:
			out = append(out, entry+": "+line)
		}
	}
	return out
}

// Operations describes the bodies of entries as the order of their operations, with the names of
// results: for passes that move operations.
func Operations(p *ir.Program) []string {
	var lines []string
	for _, e := range p.Entries {
		numbers := map[ir.Value]int{}
		name := func(v ir.Value) string {
			if _, ok := numbers[v]; !ok {
				numbers[v] = len(numbers)
			}
			return fmt.Sprintf("%%%d", numbers[v])
		}
		for _, v := range e.Body.Params {
			name(v)
		}
		for _, op := range e.Body.Ops {
			var in []string
			for _, v := range op.Operands {
				in = append(in, name(v))
			}
			for _, v := range op.Results {
				lines = append(lines, fmt.Sprintf("%s: %s = %s(%s)", e.Name, name(v), op.Kind, strings.Join(in, ", ")))
			}
		}
	}
	return lines
}
