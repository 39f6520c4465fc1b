package frontend_test

import (
	"strings"
	"testing"

	"weft/frontend"
	"weft/frontend/lower"
	"weft/frontend/weights"
	"weft/ir"
	"weft/ir/diag"
)

// part makes a part of program text; its states have a weight with all elements of a value.
func part(t *testing.T, entry, text string, value map[string]float64) frontend.Part {
	t.Helper()
	p, err := ir.ParseProgram(entry, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	imported := &lower.Imported{Program: p}
	if value != nil {
		var list []weights.Named
		for _, s := range p.States {
			shape, _ := s.Type.ConstShape()
			tensor := ir.NewTensor(s.Type.DType, shape...)
			for i := range tensor.Numel() {
				tensor.SetFloat(i, value[s.Name])
			}
			list = append(list, weights.Named{Name: s.Name, Tensor: tensor})
		}
		if imported.Weights, err = weights.FromTensors(list); err != nil {
			t.Fatal(err)
		}
	}
	return frontend.Part{Entry: entry, Path: entry + ".weft", Imported: imported}
}

const prefillText = `dim s0 in 1..8
dim s1 in 1..8
state @"w": f32[2] parameter
state @"c0": f32[2] literal

entry forward(%x "x": f32[s0, s1, 2], %w @"w": f32[2], %c @"c0": f32[2]) {
  %y: f32[2] = add(%w, %c)
  return %x "x", %y "y"
}
`

const decodeText = `dim s0 in 1..8
dim s1 in 1..64
state @"w": f32[2] parameter
state @"c0": f32[2] literal

entry forward(%x "x": f32[s0, s1, 2], %w @"w": f32[2], %c @"c0": f32[2]) {
  %y: f32[2] = multiply(%w, %c)
  return %x "x", %y "y"
}
`

func TestJoin(t *testing.T) {
	first := part(t, "prefill", prefillText, map[string]float64{"w": 1, "c0": 2})
	second := part(t, "decode", decodeText, map[string]float64{"w": 1, "c0": 3})
	joined, err := frontend.Join([]frontend.Part{first, second}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(joined.Program); err != nil {
		t.Error(err)
	}
	text := joined.Program.String()
	for _, want := range []string{"dim s0 ", "dim s1 ", "dim s1_decode ", "entry prefill", "entry decode", "f32[s0, s1_decode, 2]", `@"decode.c0"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if got := strings.Join(joined.Weights.Names(), " "); got != "w c0 decode.c0" {
		t.Errorf("weights %s", got)
	}
	for name, want := range map[string]float64{"w": 1, "c0": 2, "decode.c0": 3} {
		if v, err := weights.Load(joined.Weights, name); err != nil || v.Float(0) != want {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
}

func TestJoinRefuses(t *testing.T) {
	narrow := strings.ReplaceAll(decodeText, `@"w": f32[2]`, `@"w": f32[1, 2]`)
	narrow = strings.ReplaceAll(narrow, "multiply(%w, %c)", "multiply(%c, %c)")
	equal := map[string]float64{"w": 1, "c0": 2}
	tests := []struct {
		name     string
		second   frontend.Part
		contents bool
		code     diag.Code
		want     string
	}{
		{"other values", part(t, "decode", decodeText, map[string]float64{"w": 4, "c0": 2}), true, diag.StatesDiffer, `parameter "w": decode.weft has other values than prefill.weft`},
		{"other values that do not matter", part(t, "decode", decodeText, map[string]float64{"w": 4, "c0": 2}), false, "", ""},
		{"another type", part(t, "decode", narrow, equal), false, diag.StatesDiffer, `parameter "w": f32[2] in prefill.weft, f32[1, 2] in decode.weft`},
		{"a graph alone", part(t, "decode", decodeText, nil), true, "", ""},
		{"the same name", part(t, "prefill", decodeText, equal), true, diag.CommandLine, `two files have an entry "prefill"`},
		{"a reserved name", part(t, "init", decodeText, equal), true, diag.CommandLine, `"init"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			joined, err := frontend.Join([]frontend.Part{part(t, "prefill", prefillText, equal), test.second}, test.contents)
			if test.code == "" {
				if err != nil || len(joined.Program.States) != 2 {
					t.Errorf("%v", err)
				}
				return
			}
			list := diag.All(err)
			if len(list) != 1 || list[0].Code != test.code || !strings.Contains(err.Error(), test.want) {
				t.Errorf("want %s with %q, got %v", test.code, test.want, err)
			}
		})
	}
}

// Dims of several entries are addressed by the entry and its input.
func TestJoinedDims(t *testing.T) {
	join := func() *ir.Program {
		joined, err := frontend.Join([]frontend.Part{part(t, "prefill", prefillText, nil), part(t, "decode", decodeText, nil)}, true)
		if err != nil {
			t.Fatal(err)
		}
		return joined.Program
	}
	p := join()
	if err := frontend.ApplyDims(p, []string{"decode.in.0[1]=steps:1..16", "prefill.x[1]=4"}); err != nil {
		t.Fatal(err)
	}
	if s := p.Symbol("steps"); s == nil || s.Max != 16 || p.Symbol("s1") != nil {
		t.Errorf("%s", p)
	}
	if err := frontend.ApplyDims(join(), []string{"in.0[1]=4"}); err == nil || !strings.Contains(err.Error(), "decode.in.0 (x)") {
		t.Errorf("an input without its entry: %v", err)
	}
}
