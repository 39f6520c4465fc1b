package weft

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/ir"
	"weft/ir/diag"
	"weft/ir/target"
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
	targets, err := target.FindAll(config.Targets)
	if err != nil {
		t.Fatal(err)
	}
	c := &Compiled{Imported: p, config: config, targets: targets}
	err = c.run(context.Background(), o, []string{"canonicalize", "memory"}, StageLowered)
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
