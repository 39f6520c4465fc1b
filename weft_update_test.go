package weft_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"weft"
	"weft/ir/plan"
)

// TestUpdatesInPlace says that a decode step writes its new keys and values into the caches: no
// step copies one, and no scratch memory holds one. Plans that are damaged there are refused.
func TestUpdatesInPlace(t *testing.T) {
	for _, test := range []struct {
		file    string
		updates int
	}{
		{"testdata/models/cache_decode/model.pt2", 2},
		{"testdata/programs/update_in_place.weft", 1},
	} {
		c, err := weft.Compile(context.Background(), weft.Options{
			Files: []weft.File{{Path: test.file}}, Config: weft.Config{Targets: []string{"sm_80"}}, VerifyIR: true}, weft.StageLowered)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		p := c.Lowered[0].Plans[0].For("sm_80")
		p.Target = "sm_80"
		updates := 0
		for _, s := range p.Flat() {
			if s.Copy != nil {
				t.Errorf("%s: buffer %d is copied", test.file, s.Copy.From)
			}
			if s.Launch == nil {
				continue
			}
			for _, a := range s.Launch.Args {
				if a.Access == plan.ReadWrite && p.Buffers[a.Buffer].Kind == plan.Input {
					updates++
				}
			}
		}
		if updates != test.updates {
			t.Errorf("%s: %d updates in place, want %d\n%s", test.file, updates, test.updates, p)
		}
		checkDamage(t, p)
	}
}

// checkDamage breaks each update in place of a plan that verifies.
func checkDamage(t *testing.T, p *plan.Plan) {
	t.Helper()
	if err := plan.Verify(p, nil); err != nil {
		t.Error(err)
	}
	refused := func(what, rule string) {
		if err := plan.Verify(p, nil); err == nil || !strings.Contains(err.Error(), rule) {
			t.Errorf("%s: %v, not %s", what, err, rule)
		}
	}
	for i := range p.Outputs {
		if state := p.Outputs[i].State; state != "" {
			p.Outputs[i].State = ""
			refused("an update of a state that no output replaces", "P8")
			p.Outputs[i].State = state
		}
	}
	for _, s := range p.Flat() {
		if s.Launch == nil {
			continue
		}
		for i := range s.Launch.Args {
			a := &s.Launch.Args[i]
			if a.Access != plan.ReadWrite {
				continue
			}
			whole := *a
			a.Buffer = len(p.Buffers)
			refused("an update of no buffer", "P6")
			*a = whole
			scratch := slices.IndexFunc(p.Buffers, func(b plan.Buffer) bool { return b.Kind == plan.Output })
			a.Buffer = scratch
			refused("an update of memory that holds nothing", "P7")
			*a = whole
			a.Access = plan.Write
			s.Launch.Args = append(s.Launch.Args, plan.Arg{Buffer: whole.Buffer, Access: plan.Read})
			refused("a state that is read and wholly written", "P13")
			s.Launch.Args = s.Launch.Args[:len(s.Launch.Args)-1]
			*a = whole
		}
	}
}
