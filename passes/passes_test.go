package passes

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
)

const text = `entry forward(%x "x": f32[4]) {
  %a: f32[4] = negate(%x)
  %b: f32[4] = negate(%a)
  %c: f32[4] = exponential(%b)
  return %c "y"
}
`

func parse(t *testing.T) *ir.Program {
	t.Helper()
	p, err := ir.ParseProgram("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The constraints of the table hold: passes come after those that they name, and every one
// says what it does and why it is where it is.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Table() {
		for _, before := range p.After {
			if !seen[before] {
				t.Errorf("%s comes before %s", p.Name, before)
			}
		}
		if p.Doc == "" || p.Reason == "" || seen[p.Name] {
			t.Errorf("%s has no text, or is there twice", p.Name)
		}
		seen[p.Name] = true
	}
}

func TestRun(t *testing.T) {
	var after []string
	r, err := Run(parse(t), Options{Verify: true, Disabled: []string{"canonicalize-primitives"}, Stop: "schedule",
		After: func(pass string, changed bool, p *ir.Program) error {
			if changed {
				after = append(after, pass)
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"canonicalize", "fuse", "schedule"}; !slices.Equal(after, want) {
		t.Errorf("changed by %v, expected %v", after, want)
	}
	var timed []string
	for _, x := range r.Times {
		timed = append(timed, x.Pass)
	}
	if want := []string{"canonicalize", "masks", "precision", "shard", "decompose", "prepare", "merge", "layout", "split", "overlap", "fuse", "schedule"}; !slices.Equal(timed, want) {
		t.Errorf("ran %v, expected %v", timed, want)
	}
	// A second run over a scheduled program has nothing to do.
	p := parse(t)
	if _, err := Run(p, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(p, Options{Verify: true, Only: []string{"fuse", "schedule"}, After: func(pass string, changed bool, _ *ir.Program) error {
		if changed {
			t.Errorf("%s changed a scheduled program", pass)
		}
		return nil
	}}); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	for _, o := range []Options{{Disabled: []string{"fuse"}}, {Disabled: []string{"fusion"}}, {Only: []string{"fusion"}}} {
		if _, err := Run(parse(t), o); err == nil || diag.ExitStatus(err) != diag.Usage {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// What a pass does wrong is a bug that names it.
func TestBugsNameTheirPass(t *testing.T) {
	tests := []struct {
		name string
		run  func(p *ir.Program, o Options, r *Report) (bool, error)
		want string
	}{
		{"panic", func(*ir.Program, Options, *Report) (bool, error) { var none []int; return none[3] > 0, nil }, "index out of range [3]"},
		{"error", func(*ir.Program, Options, *Report) (bool, error) { return false, errors.New("no such luck") }, "no such luck"},
		{"invalid program", func(p *ir.Program, _ Options, _ *Report) (bool, error) {
			p.Entries[0].Body.Ops = p.Entries[0].Body.Ops[1:]
			return true, nil
		}, "invalid after the pass"},
		{"hidden change", func(p *ir.Program, _ Options, _ *Report) (bool, error) {
			p.Entries[0].Body.Ops[0].Loc = "here"
			return false, nil
		}, "says that it did not"},
		{"no change", func(*ir.Program, Options, *Report) (bool, error) { return true, nil }, "says that it did"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			table := append(Table()[:1:1], Pass{Name: "broken", run: test.run}, Table()[1])
			r, err := Run(parse(t), Options{Verify: true, table: table})
			list := diag.All(err)
			if len(list) != 1 || list[0].Code != diag.Bug || list[0].Place != "pass broken" || !strings.Contains(list[0].Message, test.want) {
				t.Errorf("%v", err)
			}
			if diag.ExitStatus(err) != diag.InternalBug {
				t.Errorf("exit status %d", diag.ExitStatus(err))
			}
			if len(r.Times) != 2 || r.Times[1].Pass != "broken" {
				t.Errorf("times %v", r.Times)
			}
		})
	}
}

// An error that a user can cause stays what it is.
func TestUserErrorsStay(t *testing.T) {
	broken := Pass{Name: "strict", run: func(*ir.Program, Options, *Report) (bool, error) {
		return false, diag.Errorf("W4003", "layer", "no kernel")
	}}
	_, err := Run(parse(t), Options{table: []Pass{broken}})
	if list := diag.All(err); len(list) != 1 || list[0].Code != "W4003" || list[0].Place != "layer" {
		t.Errorf("%v", err)
	}
}
