package shard_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/eval"
	"weft/ir/mesh"
	"weft/passes/canonicalize"
	"weft/passes/internal/passtest"
	"weft/passes/shard"
)

// TestText divides the programs of each folder of testdata as its name says: MESH, an underscore and
// strategies with "-" for ":". Lines "//! shard RULE" and "//! input RULE" of a program are rules. The ranks
// together must give what the whole program gives, with symbolic dims of 5.
func TestText(t *testing.T) {
	folders, err := filepath.Glob("testdata/*_*")
	if err != nil || len(folders) == 0 {
		t.Fatal("no programs")
	}
	for _, folder := range folders {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			continue
		}
		t.Run(filepath.Base(folder), func(t *testing.T) {
			text, strategies, _ := strings.Cut(filepath.Base(folder), "_")
			m, err := mesh.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			s, err := shard.ParseStrategies(strings.ReplaceAll(strategies, "-", ":"), m)
			if err != nil {
				t.Fatal(err)
			}
			files, err := filepath.Glob(filepath.Join(folder, "*.weft"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				o := shard.Options{Mesh: m, Strategies: s}
				rulesOf(t, file, &o)
				passtest.RunFile(t, file, func(p *ir.Program) (bool, error) { return divide(t, p, o) }, describe)
			}
		})
	}
}

// rulesOf reads the rules of a program.
func rulesOf(t *testing.T, file string, o *shard.Options) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		for mark, to := range map[string]*[]shard.Rule{"//! shard ": &o.Parameters, "//! input ": &o.Inputs} {
			if rule, ok := strings.CutPrefix(strings.TrimSpace(line), mark); ok {
				rules, err := shard.ParseRules([]string{rule})
				if err != nil {
					t.Fatal(err)
				}
				*to = append(*to, rules...)
			}
		}
	}
}

// divide runs the pass and compares what the ranks compute with the whole program.
func divide(t *testing.T, p *ir.Program, o shard.Options) (bool, error) {
	whole := p.Clone()
	_, changed, err := shard.Run(p, o)
	if err != nil {
		return changed, err
	}
	if _, err := canonicalize.Run(p); err != nil {
		return changed, err
	}
	for _, e := range whole.Entries {
		var inputs []*ir.Tensor
		for i, in := range e.Inputs {
			if in.State == "" {
				inputs = append(inputs, filled(e.Type(e.Body.Params[i]), 1+i))
			}
		}
		state := func(name string) (*ir.Tensor, error) { return filled(whole.State(name).Type, len(name)), nil }
		want, err := eval.Run(whole, e.Name, inputs, state)
		if err != nil {
			t.Fatal(err)
		}
		got, err := eval.Run(p, e.Name, inputs, state)
		if err != nil {
			t.Fatalf("%v\n%s", err, p)
		}
		for i, x := range want.Outputs {
			if y := got.Outputs[i]; !x.Type().Equal(y.Type()) || !near(x, y) {
				t.Errorf("output %d of %s differs:\n%s\n%s", i, e.Name, x, y)
			}
		}
		for name, x := range want.State {
			if !near(x, got.State[name]) {
				t.Errorf("state %s differs", name)
			}
		}
	}
	return changed, nil
}

// filled makes a tensor of small numbers; integers are 0 to 3.
func filled(typ ir.Type, seed int) *ir.Tensor {
	shape := make([]int64, len(typ.Shape))
	for i, d := range typ.Shape {
		n, ok := d.IsConst()
		if shape[i] = n; !ok {
			shape[i] = 5
		}
	}
	x := ir.NewTensor(typ.DType, shape...)
	for i := range x.Numel() {
		at := (int(i)*7 + seed*5) % 11
		if typ.DType.IsFloat() {
			x.SetFloat(i, float64(at-5)/8)
		} else {
			x.SetInt(i, int64(at%4))
			if typ.DType == ir.Bool {
				x.SetInt(i, int64(at%2))
			}
		}
	}
	return x
}

func near(x, y *ir.Tensor) bool {
	for i := range x.Numel() {
		if a, b := x.Float(i), y.Float(i); !(math.Abs(a-b) <= 1e-5*(1+math.Abs(a))) {
			return false
		}
	}
	return true
}

// describe lists what is divided, and the operations of a rank.
func describe(p *ir.Program) []string {
	var lines []string
	note := func(format string, s ir.Sharding, args ...any) {
		if s != nil {
			lines = append(lines, fmt.Sprintf(format, args...)+s.String())
		}
	}
	for _, s := range p.States {
		note("state %s ", s.Shard, s.Name)
	}
	for _, e := range p.Entries {
		for _, in := range e.Inputs {
			note("%s: input %s ", in.Shard, e.Name, in.Name)
		}
		for _, out := range e.Outputs {
			note("%s: output %s ", out.Shard, e.Name, out.Name)
		}
	}
	return append(lines, passtest.Operations(p)...)
}
