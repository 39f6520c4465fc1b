package weft

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/ir"
)

// TestCorpus runs every program of testdata/programs through all stages: passes with the
// verifier and print/parse after each, the evaluator before and after scheduling, PTX on the
// emulator, at several sizes, with several schedules; and the assembler over all kernels.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/programs/*.weft")
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	var subjects []*subject
	for _, file := range files {
		made, err := load(file)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, s := range made {
			subjects = append(subjects, s.subject)
			if err := s.schedule(s.disabled, s.override); err != nil {
				t.Errorf("%s: %v", s.name, err)
				subjects = slices.DeleteFunc(subjects, func(x *subject) bool { return x == s.subject })
			}
		}
	}
	kernels, owner := assembleAll(t, subjects)
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.check(t)
		})
	}
	for i, cpu := range corpusTargets {
		// The kernels for all GPUs meet the assembler of the second target too.
		t.Run("ptxas/"+cpu, func(t *testing.T) { checkAssembly(t, slices.Concat(kernels[:i+1]...), owner, cpu) })
	}
}

// variant is a subject and how it is to be scheduled.
type variant struct {
	*subject
	disabled []string
	override *override
}

// load reads a program and makes its variants.
func load(file string) ([]variant, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p, err := ir.ParseProgram(file, text)
	if err != nil {
		return nil, err
	}
	spec, err := parseSpec(string(text))
	if err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(file), ".weft")
	make := func(suffix string) *subject { return &subject{name: name + suffix, program: p, spec: spec} }
	variants := []variant{{subject: make("")}}
	if spec.unoptimised {
		variants = append(variants, variant{subject: make("/unoptimised"), disabled: optionalPasses()})
	}
	for i, o := range spec.schedules {
		variants = append(variants, variant{subject: make("/schedule" + string(rune('a'+i))), override: &o})
	}
	return variants, nil
}
