package shard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/frontend"
	"weft/ir"
	"weft/ir/diag"
	"weft/ir/mesh"
	"weft/passes/canonicalize"
	"weft/passes/shard"
)

// machine is a GPU of 1e15 operations and 3e12 bytes a second.
var machine = shard.Hardware{FLOPS: 1e15, Bandwidth: 3e12}

// layers is a network of n layers of width d for b sequences of s tokens.
func layers(t *testing.T, n, d, b, s int) *ir.Program {
	t.Helper()
	var states, params, body strings.Builder
	x := "%x"
	for i := range n {
		fmt.Fprintf(&states, "state @\"l.%d.up\": bf16[%d, %d] parameter\nstate @\"l.%d.down\": bf16[%d, %d] parameter\n", i, d, 4*d, i, 4*d, d)
		fmt.Fprintf(&params, ", %%up%d @\"l.%d.up\": bf16[%d, %d], %%down%d @\"l.%d.down\": bf16[%d, %d]", i, i, d, 4*d, i, i, 4*d, d)
		fmt.Fprintf(&body, "  %%a%d: bf16[%d, %d, %d] = dot_general(%s, %%up%d) {lhs_contract = [2], rhs_contract = [0], to = bf16}\n", i, b, s, 4*d, x, i)
		fmt.Fprintf(&body, "  %%b%d: bf16[%d, %d, %d] = tanh(%%a%d)\n", i, b, s, 4*d, i)
		fmt.Fprintf(&body, "  %%c%d: bf16[%d, %d, %d] = dot_general(%%b%d, %%down%d) {lhs_contract = [2], rhs_contract = [0], to = bf16}\n", i, b, s, d, i, i)
		fmt.Fprintf(&body, "  %%d%d: bf16[%d, %d, %d] = add(%s, %%c%d)\n", i, b, s, d, x, i)
		x = fmt.Sprintf("%%d%d", i)
	}
	text := fmt.Sprintf("%s\nentry forward(%%x \"x\": bf16[%d, %d, %d]%s) {\n%s  return %s \"y\"\n}\n", &states, b, s, d, &params, &body, x)
	p, err := ir.ParseProgram("layers", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func auto(t *testing.T, p *ir.Program, meshText string, h shard.Hardware) []shard.Choice {
	t.Helper()
	m, err := mesh.Parse(meshText)
	if err != nil {
		t.Fatal(err)
	}
	before := p.String()
	choices, err := shard.Auto(p, shard.Options{Mesh: m}, h)
	if err != nil {
		t.Fatal(err)
	}
	if p.String() != before {
		t.Error("the search changes the program")
	}
	return choices
}

func find(t *testing.T, choices []shard.Choice, parallel string) shard.Choice {
	t.Helper()
	i := slices.IndexFunc(choices, func(c shard.Choice) bool { return c.Parallel == parallel })
	if i < 0 {
		t.Fatalf("%s was not tried: %v", parallel, choices)
	}
	return choices[i]
}

// TestAutoMemory: what does not fit comes last, however fast it is.
func TestAutoMemory(t *testing.T) {
	p := layers(t, 4, 4096, 64, 512)
	h := machine
	choices := auto(t, p, "dp=8", h)
	if best := choices[0]; best.Parallel != "dp:ddp" || !best.Fits {
		t.Errorf("without a limit %s is best: there is nothing to exchange in a forward under ddp", best.Parallel)
	}
	ddp, fsdp := find(t, choices, "dp:ddp"), find(t, choices, "dp:fsdp")
	if fsdp.Memory >= ddp.Memory || fsdp.Exchange <= ddp.Exchange {
		t.Errorf("fsdp does not trade exchange for memory: %v, %v", fsdp, ddp)
	}
	h.Memory = (ddp.Memory + fsdp.Memory) / 2
	choices = auto(t, p, "dp=8", h)
	if best := choices[0]; best.Parallel == "dp:ddp" || !best.Fits || best.Memory > h.Memory {
		t.Errorf("with a limit of %d bytes %s is best, of %d bytes", h.Memory, best.Parallel, best.Memory)
	}
	if c := find(t, choices, "dp:ddp"); c.Fits {
		t.Error("ddp fits less than it needs")
	}
	h.Memory = 1
	choices = auto(t, p, "dp=8", h)
	if d := shard.Explain(choices, h.Memory); d.Severity != diag.Warning || !strings.Contains(d.Message, "no strategy fits") {
		t.Errorf("nothing fits a byte, and %v says otherwise", d)
	}
	for _, c := range choices {
		if c.Memory < choices[0].Memory {
			t.Errorf("nothing fits, and %s needs less than %s", c.Parallel, choices[0].Parallel)
		}
	}
}

// TestAutoLinks: of few sequences of wide layers, tensor parallelism is fastest where links are fast,
// and not where they are slow.
func TestAutoLinks(t *testing.T) {
	p := layers(t, 2, 4096, 1, 2048)
	h := machine
	for _, test := range []struct {
		link float64
		tp   bool
	}{{450e9, true}, {1e8, false}} {
		h.Links = map[string]float64{"x": test.link}
		best := auto(t, p, "x=8", h)[0]
		if strings.Contains(best.Parallel, "tp") != test.tp {
			t.Errorf("over links of %g bytes a second %s is best", test.link, best.Parallel)
		}
	}
	// Along axes of unequal links, the layers are divided along the faster one.
	h.Links = map[string]float64{"slow": 25e9, "fast": 450e9}
	for _, m := range []string{"slow=4,fast=4", "fast=4,slow=4"} {
		choices := auto(t, layers(t, 2, 4096, 4, 2048), m, h)
		slow, fast := 0.0, 0.0
		for _, c := range choices {
			switch c.Parallel {
			case "slow:tp,fast:ddp", "fast:ddp,slow:tp":
				slow = c.Exchange
			case "slow:ddp,fast:tp", "fast:tp,slow:ddp":
				fast = c.Exchange
			}
		}
		if slow <= fast || fast == 0 {
			t.Errorf("mesh %s: exchanging along slow takes %g s, along fast %g s", m, slow, fast)
		}
	}
}

// TestAutoExplains: every choice that was tried is in the notes or counted.
func TestAutoExplains(t *testing.T) {
	for _, test := range []struct {
		mesh    string
		choices int
	}{{"a=2", 4}, {"a=2,b=2", 12}, {"a=2,b=2,c=2", 32}} {
		choices := auto(t, layers(t, 1, 64, 4, 8), test.mesh, machine)
		if len(choices) != test.choices {
			t.Errorf("mesh %s: %d choices", test.mesh, len(choices))
		}
		d := shard.Explain(choices, 0)
		if !strings.Contains(d.Message, choices[0].Parallel) || d.Code != diag.ChosenParallel || d.Severity != diag.Note {
			t.Errorf("the message does not name the choice: %v", d)
		}
		text := strings.Join(d.Notes, "\n")
		listed := 1
		for _, c := range choices[1:] {
			if strings.Contains(text, c.Parallel+": ") {
				listed++
			}
		}
		if left := len(choices) - listed; left > 0 && !strings.Contains(text, fmt.Sprintf("%d more", left)) {
			t.Errorf("mesh %s: %d choices are not accounted for in\n%s", test.mesh, left, text)
		}
		for i := 1; i < len(choices); i++ {
			if a, b := choices[i-1], choices[i]; a.Fits == b.Fits && a.Seconds() > b.Seconds() {
				t.Errorf("%s comes before %s, which is faster", a.Parallel, b.Parallel)
			}
		}
	}
}

// TestAutoModels holds choices for real models, whose programs it partitions in the end.
func TestAutoModels(t *testing.T) {
	for _, test := range []struct{ model, mesh, want string }{
		{"llama_tiny", "dp=2", "dp:ddp"},
		{"mlp_joint", "dp=2", "dp:ddp"},
		{"mixtral_tiny", "ep=2", "ep:tp"},
	} {
		imported, err := frontend.Import("../../testdata/models/"+test.model+"/model.pt2", frontend.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p := imported.Program
		if _, err := canonicalize.Run(p); err != nil {
			t.Fatal(err)
		}
		m, err := mesh.Parse(test.mesh)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := shard.Run(p, shard.Options{Mesh: m, Auto: &machine})
		if err != nil {
			t.Fatal(err)
		}
		if r.Choices[0].Parallel != test.want {
			t.Errorf("%s over %s: %s", test.model, test.mesh, r.Choices[0].Parallel)
		}
		if err := ir.Verify(p); err != nil {
			t.Error(err)
		}
		hasExperts := slices.ContainsFunc(r.Choices, func(c shard.Choice) bool { return strings.HasSuffix(c.Parallel, ":ep") })
		if hasExperts != (test.model == "mixtral_tiny") {
			t.Errorf("%s: ep was tried: %v", test.model, hasExperts)
		}
	}
}

// TestParseLinks takes bandwidths of axes that there are.
func TestParseLinks(t *testing.T) {
	m, _ := mesh.Parse("dp=2,tp=2")
	links, err := shard.ParseLinks("dp=50, tp=450", m)
	if err != nil || links["dp"] != 50e9 || links["tp"] != 450e9 {
		t.Errorf("%v, %v", links, err)
	}
	for _, text := range []string{"x=1", "dp", "dp=", "dp=0", "dp=-1", "dp=inf", "dp=nan", "dp=1GB"} {
		if _, err := shard.ParseLinks(text, m); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
