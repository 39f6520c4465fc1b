package weft

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/codegen/kernel"
	"weft/ir"
	"weft/runtime"
)

// testCase is a line of ir/eval/testdata/*.cases as an entry whose inputs are the operands.
type testCase struct {
	name, line string
	inputs     []*ir.Tensor
	want       []*ir.Tensor
}

// TestCases runs the evaluator's cases, as far as kernels compute with their types, on the
// emulator: one program with an entry for each.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("ir/eval/testdata/*.cases")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	var cases []testCase
	var text strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(data), "\n") {
			c := testCase{name: fmt.Sprintf("%s_%d", strings.TrimSuffix(filepath.Base(file), ".cases"), i+1), line: line}
			if entry, ok := c.parse(t); ok {
				text.WriteString(entry)
				cases = append(cases, c)
			}
		}
	}
	p, err := ir.ParseProgram("cases", []byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	s := &subject{name: "cases", program: p}
	if err := s.schedule(nil, nil); err != nil {
		t.Fatal(err)
	}
	assembleAll(t, []*subject{s})
	runCases(t, s, cases)
}

// parse reads a case and gives its entry; false for what kernels do not compute with, for
// failures and for what is no case.
func (c *testCase) parse(t *testing.T) (entry string, ok bool) {
	call, right, ok := strings.Cut(strings.TrimPrefix(c.line, "about "), " -> ")
	if !ok || strings.HasPrefix(call, "#") || strings.HasPrefix(right, "error ") {
		return "", false
	}
	kind, rest, _ := strings.Cut(call, " ")
	attrs := ""
	if i := strings.Index(rest, "{"); i >= 0 {
		rest, attrs = rest[:i], rest[i:]
	}
	if kind == ir.OpAttention.String() {
		return "", false // its parts round otherwise; TestCorpus has it
	}
	if c.inputs, ok = tensors(t, rest); !ok {
		return "", false
	}
	if c.want, ok = tensors(t, right); !ok {
		return "", false
	}
	var params, args, results, outs []string
	for i, x := range c.inputs {
		params = append(params, fmt.Sprintf("%%in%d \"in%d\": %s", i, i, x.Type()))
		args = append(args, fmt.Sprintf("%%in%d", i))
	}
	for i, x := range c.want {
		results = append(results, fmt.Sprintf("%%out%d: %s", i, x.Type()))
		outs = append(outs, fmt.Sprintf("%%out%d \"out%d\"", i, i))
	}
	return fmt.Sprintf("entry %q(%s) {\n(%s) = %s(%s) %s\nreturn %s }\n", c.name, strings.Join(params, ", "), strings.Join(results, ", "),
		kind, strings.Join(args, ", "), attrs, strings.Join(outs, ", ")), true
}

// tensors reads literals that are separated by semicolons; false when kernels do not compute
// with the type of one.
func tensors(t *testing.T, text string) (out []*ir.Tensor, ok bool) {
	for _, l := range strings.Split(text, ";") {
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		p, err := ir.ParseProgram("literal", fmt.Appendf(nil, "entry e() { %%0: %s = constant() {value = %s} return }", l[:strings.Index(l, "]")+1], l))
		if err != nil {
			t.Fatal(err)
		}
		v := p.Entries[0].Body.Ops[0].Attrs.(*ir.ConstantAttrs).Value
		if !kernel.Holdable(v.DType) {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

func runCases(t *testing.T, s *subject, cases []testCase) {
	a, device, _ := s.open(t)
	session, err := runtime.Open(a, device, runtime.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, c := range cases {
		got, err := session.Run(c.name, c.inputs)
		if err != nil {
			t.Errorf("%s: %v\n\t%s", c.name, err, c.line)
			continue
		}
		for i, w := range c.want {
			tolerance := spec{ulps: -1}
			if w.DType == ir.F64 {
				tolerance.ulps = 40
			}
			if strings.HasPrefix(c.name, "torch") || strings.HasPrefix(c.name, "contraction") {
				tolerance.relative = 1e-6 // sums
			}
			if err := tolerance.compareTensors(got.Outputs[i], w); err != nil {
				t.Errorf("%s: result %d: %v\n\t%s", c.name, i, err, c.line)
			}
		}
	}
}
