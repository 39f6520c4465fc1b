package weft

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/frontend/weights"
)

var record = flag.String("record", "", "write the corpus for `weft conformance` into this folder: artifacts and their inputs")

// TestRecordCorpus writes every program of testdata/programs, with all its schedules, what comes by bulk copies and random programs on
// warpgroups, as FOLDER/NAME/program.weft, and the inputs of its entries at all sizes as io_ENTRY_N.safetensors:
// what testdata/bench/prepare.sh gives to a machine with a GPU, which has no Go.
func TestRecordCorpus(t *testing.T) {
	if *record == "" {
		t.Skip("-record names no folder")
	}
	files, err := filepath.Glob("testdata/programs/*.weft")
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs: %v", err)
	}
	var subjects []*subject
	for _, file := range files {
		variants, err := load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range variants {
			if err := v.schedule(v.disabled, v.override); err != nil {
				t.Fatalf("%s: %v", v.name, err)
			}
			v.compiled.aim(corpusTargets...)
			subjects = append(subjects, v.subject)
		}
	}
	const random = 40
	for _, name := range slices.Sorted(maps.Keys(bulkPrograms)) {
		subjects = append(subjects, bulkSubjects(t, name)...)
	}
	for seed := range uint64(random) {
		subjects = append(subjects, warpgroupSubject(t, 1+seed, seed%2 == 1))
	}
	assembleAll(t, subjects)
	for _, s := range subjects {
		if err := s.record(filepath.Join(*record, strings.NewReplacer("/", ".", " ", "_", ",", "").Replace(s.name))); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

// record writes the artifact of a program and its inputs.
func (s *subject) record(folder string) error {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	s.compiled.weights, _ = s.states()
	if err := s.compiled.Write(filepath.Join(folder, "program.weft")); err != nil {
		return err
	}
	for _, e := range s.program.Entries {
		for i, sizes := range s.spec.sizes {
			inputs, err := s.inputs(e.Name, sizes, uint64(i))
			if err != nil {
				return err
			}
			var named []weights.Named
			for k, v := range inputs {
				named = append(named, weights.Named{Name: fmt.Sprintf("in.%d", k), Tensor: v})
			}
			if err := weights.WriteTensors(filepath.Join(folder, fmt.Sprintf("io_%s_%d.safetensors", e.Name, i)), named); err != nil {
				return err
			}
		}
	}
	return nil
}
