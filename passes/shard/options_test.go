package shard_test

import (
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
	"weft/passes/shard"
)

const twoWeights = `state @"layers.0.q.weight": f32[8, 8] parameter
state @"layers.1.q.weight": f32[8, 8] parameter

entry forward(%x "x": f32[4, 8], %a @"layers.0.q.weight": f32[8, 8], %b @"layers.1.q.weight": f32[8, 8]) {
  %y: f32[4, 8] = dot_general(%x, %a) {lhs_contract = [1], rhs_contract = [0], to = f32}
  %z: f32[4, 8] = dot_general(%y, %b) {lhs_contract = [1], rhs_contract = [0], to = f32}
  return %z "z"
}
`

// TestRules holds which rules are refused, and what the message says.
func TestRules(t *testing.T) {
	for _, test := range []struct {
		params, inputs string // separated by ;
		code           diag.Code
		says           string
	}{
		{"*.weight=[tp, *]", "x=[dp, *]", "", ""},
		{"*.weight=[(dp, tp), *]", "in.0=[*, *]", "", ""},
		{"layers.0.*=[tp, *];*.weight=[*, tp]", "", "", ""},
		{"layers.0.*=[tp, *];layers.0.q.weight=[tp, *]", "", "", ""},
		{"*.weight=[tp, *];layers.0.*=[*, tp]", "", diag.ShardingConflict, `what "*.weight=[tp, *]" has divided in another way`},
		{"*.weight=[tp]", "", diag.ShardingConflict, "divides 1 dims"},
		{"*.weight=[tp, tp]", "", diag.ShardingConflict, "twice"},
		{"*.weight=[pp, *]", "", diag.ShardingConflict, "the mesh dp=2,tp=2 does not have"},
		{"*.wieght=[tp, *]", "", diag.NoSuchParameter, "did you mean *.weight?"},
		{"layers.*.k.weight=[tp, *]", "", diag.NoSuchParameter, "did you mean layers.*.q.weight?"},
		{"layer.0.*=[tp, *]", "", diag.NoSuchParameter, "did you mean layers.0.*"},
		{"", "in.1=[dp, *]", diag.NoSuchParameter, "matches no input"},
		{"*.weight=tp", "", diag.BadParallel, "is not a pattern"},
		{"*.weight=[(tp, *]", "", diag.BadParallel, "is not a pattern"},
		{"=[tp, *]", "", diag.BadParallel, "is not a pattern"},
	} {
		err := runRules(t, test.params, test.inputs)
		list := diag.All(err)
		switch {
		case test.code == "" && err != nil:
			t.Errorf("%s, %s: %v", test.params, test.inputs, err)
		case test.code == "":
		case len(list) != 1 || list[0].Code != test.code || !strings.Contains(list[0].Message+" "+list[0].Suggestion, test.says):
			t.Errorf("%s, %s: %v", test.params, test.inputs, err)
		}
	}
}

func runRules(t *testing.T, params, inputs string) (err error) {
	t.Helper()
	p, err := ir.ParseProgram("two", []byte(twoWeights))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := mesh.Parse("dp=2,tp=2")
	o := shard.Options{Mesh: m}
	split := func(text string) []string {
		return strings.FieldsFunc(text, func(r rune) bool { return r == ';' })
	}
	if o.Parameters, err = shard.ParseRules(split(params)); err != nil {
		return err
	}
	if o.Inputs, err = shard.ParseRules(split(inputs)); err != nil {
		return err
	}
	_, _, err = shard.Run(p, o)
	return err
}

// TestStrategies holds how --parallel is read.
func TestStrategies(t *testing.T) {
	for _, test := range []struct{ mesh, text, want string }{
		{"dp=2", "", "dp:ddp"},
		{"fsdp=2,tp=2", "", "fsdp:fsdp,tp:tp"},
		{"dp=2,tp=2", "tp:tp+sp, dp:fsdp", "tp:tp+sp,dp:fsdp"},
		{"node=2,gpu=4", "node+gpu:hsdp", "node+gpu:hsdp"},
		{"x=2", "", "axis \"x\" has no strategy"},
		{"dp=2", "dp:fspd", "is not an axis and its strategy"},
		{"dp=2", "tp:tp", "which the mesh dp=2 does not have"},
		{"dp=2", "dp:fsdp,dp:ddp", "has two strategies"},
		{"dp=2", "dp:hsdp", "is over 1 axes, it takes 2"},
		{"a=2,b=2", "a+b:tp", "is over 2 axes, it takes 1"},
	} {
		m, err := mesh.Parse(test.mesh)
		if err != nil {
			t.Fatal(err)
		}
		list, err := shard.ParseStrategies(test.text, m)
		var texts []string
		for _, s := range list {
			texts = append(texts, s.String())
		}
		got := strings.Join(texts, ",")
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, test.want) {
			t.Errorf("%s over %s: %s", test.text, test.mesh, got)
		}
	}
}

// FuzzStrategies: what can be read prints as what reads the same.
func FuzzStrategies(f *testing.F) {
	for _, s := range []string{"dp:fsdp,tp:tp+sp", "dp+tp:hsdp", "", ",", ":", "dp:", "tp:ep,dp:zero2"} {
		f.Add(s)
	}
	m, _ := mesh.Parse("dp=2,tp=2")
	f.Fuzz(func(t *testing.T, text string) {
		list, err := shard.ParseStrategies(text, m)
		if err != nil {
			return
		}
		var texts []string
		for _, s := range list {
			texts = append(texts, s.String())
		}
		again, err := shard.ParseStrategies(strings.Join(texts, ","), m)
		if err != nil || len(again) != len(list) {
			t.Errorf("%q reads as %q, which does not", text, texts)
		}
	})
}

// FuzzRules: rules are read or refused, and those that are read have no empty axis.
func FuzzRules(f *testing.F) {
	for _, s := range []string{"*.w=[tp, *]", "in.0=[(dp, tp), *]", "a=[]", "a=[(", "=[", "a=[,]", "a=[(*)]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := shard.ParseRules([]string{text})
		if err != nil {
			return
		}
		for _, dim := range rules[0].Dims {
			for _, axis := range dim {
				if axis == "" || axis == "*" {
					t.Errorf("%q divides by axis %q", text, axis)
				}
			}
		}
	})
}

// TestIdleRanks holds when the pass says that some ranks have nothing of an input.
func TestIdleRanks(t *testing.T) {
	for _, test := range []struct{ mesh, says string }{
		{"dp=2", ""},
		{"dp=4", ""},
		{"dp=3", "a dim of 4 is divided over 3 ranks (dp), 2 on each: 1 without work"},
		{"dp=4,tp=2", ""},
		{"dp=8", "a dim of 4 is divided over 8 ranks (dp), 1 on each: 4 without work"},
	} {
		p, err := ir.ParseProgram("two", []byte(twoWeights))
		if err != nil {
			t.Fatal(err)
		}
		m, err := mesh.Parse(test.mesh)
		if err != nil {
			t.Fatal(err)
		}
		s, err := shard.ParseStrategies("", m)
		if err != nil {
			t.Fatal(err)
		}
		report, _, err := shard.Run(p, shard.Options{Mesh: m, Strategies: s})
		if err != nil {
			t.Fatal(err)
		}
		var says []string
		for _, note := range report.Notes {
			if note.Code != diag.NotSharded || note.Place != "x" {
				t.Errorf("%s: %v", test.mesh, note)
			}
			says = append(says, note.Message)
		}
		if got := strings.Join(says, "; "); got != test.says {
			t.Errorf("%s: %q", test.mesh, got)
		}
	}
}
