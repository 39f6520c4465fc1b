package weft

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
	"weft/passes"
)

const tiny = `entry forward(%x "x": f32[4]) {
  %a: f32[4] = negate(%x)
  %b: f32[4] = exponential(%a)
  return %b "y"
}
`

// A bug leaves a file that fails in the same way: here kernels are made of a program that was
// never fused.
func TestReproducer(t *testing.T) {
	p, err := ir.ParseProgram("test", []byte(tiny))
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Targets: []string{"sm_80"}, Weights: "none"}
	folder := t.TempDir()
	o := Options{Config: config, VerifyIR: true, Reproducers: []string{filepath.Join(folder, "missing"), folder}}
	targets, err := findTargets(config.Targets)
	if err != nil {
		t.Fatal(err)
	}
	c := &Compiled{Imported: p, PTX: map[string][]byte{}, config: config}
	err = c.run(context.Background(), o, []string{"canonicalize", "memory"}, targets, StageLowered, func(string) {})
	if diag.ExitStatus(err) != diag.InternalBug {
		t.Fatalf("no bug: %v", err)
	}
	files, globErr := filepath.Glob(filepath.Join(folder, "weft-reproducer-*.weft.txt"))
	if globErr != nil || len(files) != 1 {
		t.Fatalf("reproducers: %v", files)
	}
	if !strings.Contains(err.Error(), files[0]) {
		t.Errorf("the diagnostic does not name the file: %v", err)
	}
	failed, replay, err := Reproduce(context.Background(), files[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	if list := diag.All(replay); failed != "kernels" || len(list) != 1 || list[0].Place != failed || list[0].Code != diag.Bug {
		t.Errorf("%s failed; now: %v", failed, replay)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), folder) {
		t.Errorf("a path is in\n%s", text)
	}
}

// What is written for a failed pass is the program before it, with the passes from it on.
func TestReproducerOfAPass(t *testing.T) {
	p, err := ir.ParseProgram("test", []byte(tiny))
	if err != nil {
		t.Fatal(err)
	}
	c := &Compiled{Imported: p}
	text, left := c.before(diag.Errorf(diag.Bug, "pass schedule", "x"), Options{Config: Config{Disabled: []string{"prepare"}}}, nil)
	if strings.Join(left, " ") != "schedule memory" || !strings.Contains(text, "kernel(") {
		t.Errorf("%v\n%s", left, text)
	}
	text, left = c.before(diag.Errorf(diag.Bug, "pass canonicalize", "x"), Options{}, nil)
	if len(left) != len(passes.Table()) || text != p.String() {
		t.Errorf("%v\n%s", left, text)
	}
}
