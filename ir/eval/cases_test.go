package eval

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/ir"
)

// TestCases runs testdata/*.cases: each line is
//
//	kind literal ; literal ... {attributes} -> literal ; literal ...
//
// Results must have the bits of the right side; any NaN equals any NaN. A line that starts with
// "about" allows a relative error of 4e-15 for elements of f64 and c128. A right side "error
// TEXT" asks for a failure that contains the text. Blank lines and lines that start with # are
// skipped.
func TestCases(t *testing.T) {
	seen := map[string]bool{}
	eachCase(t, func(file string, number int, line string) {
		line, about := strings.CutPrefix(line, "about ")
		kind, err := runCase(line, about)
		seen[kind] = true
		if err != nil {
			t.Errorf("%s:%d: %v\n\t%s", file, number, err, line)
		}
	})
	for k := ir.OpConstant; k < ir.NumKinds; k++ {
		if c := k.Info().Class; c != ir.ClassControl && c != ir.ClassCollective && !seen[k.String()] {
			t.Errorf("no case for %s", k)
		}
	}
}

// eachCase visits the lines of testdata/*.cases.
func eachCase(t testing.TB, visit func(file string, number int, line string)) {
	files, err := filepath.Glob("testdata/*.cases")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				visit(file, i+1, line)
			}
		}
	}
}

// caseText is the program of a case: its results, each followed by what it should be. wantError
// is set for a case that should fail.
func caseText(line string) (kind, text, wantError string, err error) {
	call, right, ok := strings.Cut(line, " -> ")
	if !ok {
		return "", "", "", fmt.Errorf("no -> in the line")
	}
	kind, rest, _ := strings.Cut(call, " ")
	operands, attrs := rest, ""
	if i := strings.Index(rest, "{"); i >= 0 {
		operands, attrs = rest[:i], rest[i:]
	}
	wantError, isError := strings.CutPrefix(right, "error ")
	if isError {
		wantError, right, _ = strings.Cut(wantError, "|") // error TEXT|result types
	} else {
		wantError = ""
	}
	var b strings.Builder
	b.WriteString("entry case() {\n")
	var ins, types, outs []string
	for i, l := range literals(operands) {
		fmt.Fprintf(&b, "%%in%d: %s = constant() {value = %s}\n", i, typeText(l), l)
		ins = append(ins, fmt.Sprintf("%%in%d", i))
	}
	for i, l := range literals(right) {
		types = append(types, fmt.Sprintf("%%out%d: %s", i, typeText(l)))
		outs = append(outs, fmt.Sprintf("%%out%d \"out%d\"", i, i))
		if !isError {
			fmt.Fprintf(&b, "%%want%d: %s = constant() {value = %s}\n", i, typeText(l), l)
			outs = append(outs, fmt.Sprintf("%%want%d \"want%d\"", i, i))
		}
	}
	fmt.Fprintf(&b, "(%s) = %s(%s) %s\n return %s }", strings.Join(types, ", "), kind, strings.Join(ins, ", "), attrs, strings.Join(outs, ", "))
	return kind, b.String(), wantError, nil
}

func runCase(line string, about bool) (kind string, err error) {
	kind, text, wantError, err := caseText(line)
	if err != nil {
		return kind, err
	}
	p, err := ir.ParseProgram("case", []byte(text))
	if err != nil {
		return kind, fmt.Errorf("%w\n%s", err, text)
	}
	r, err := Run(p, "case", nil, nil)
	if wantError != "" {
		if err == nil || !strings.Contains(err.Error(), wantError) {
			return kind, fmt.Errorf("error %v does not contain %q", err, wantError)
		}
		return kind, nil
	}
	if err != nil {
		return kind, err
	}
	for i := 0; i < len(r.Outputs); i += 2 {
		if got, want := r.Outputs[i], r.Outputs[i+1]; !same(got, want, about) {
			return kind, fmt.Errorf("result %d is\n\t%s, not\n\t%s", i/2, got, want)
		}
	}
	return kind, nil
}

func literals(text string) (ls []string) {
	for _, l := range strings.Split(text, ";") {
		if l = strings.TrimSpace(l); l != "" {
			ls = append(ls, l)
		}
	}
	return ls
}

func typeText(literal string) string { return literal[:strings.Index(literal, "]")+1] }

// same compares bits, NaN being equal to NaN.
func same(a, b *ir.Tensor, about bool) bool {
	if a.DType != b.DType || !equal(a.Shape, b.Shape) || a.Check() != nil {
		return false
	}
	if a.DType.IsComplex() {
		a, b = complexParts(a), complexParts(b)
	}
	if !a.DType.IsFloat() {
		return bytes.Equal(a.Data, b.Data) && strings.Join(a.Strings, "\x00") == strings.Join(b.Strings, "\x00")
	}
	for i := range a.Numel() {
		x, y := a.Float(i), b.Float(i)
		close := about && a.DType == ir.F64 && math.Abs(x-y) <= 4e-15*math.Abs(y)
		if !close && math.Float64bits(x) != math.Float64bits(y) && !(math.IsNaN(x) && math.IsNaN(y)) {
			return false
		}
	}
	return true
}
