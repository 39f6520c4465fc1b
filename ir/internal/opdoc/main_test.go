package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocument holds that docs/ir.md is up to date.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/ir.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate("../..", string(text))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("docs/ir.md is not up to date; run go generate ./ir: %s", diff)
	}
}
