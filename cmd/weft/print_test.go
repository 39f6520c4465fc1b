package main

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChart(t *testing.T) {
	want := `    0 |####################                    |      512 B  first
    1 |########################################|    1.0 KiB  second  <- peak
    2 |                                        |        0 B  third
`
	if diff := cmp.Diff(want, chart([]int64{512, 1024, 0}, []string{"first", "second", "third"})); diff != "" {
		t.Error(diff)
	}
	if got := chart(nil, nil); got != "" {
		t.Errorf("no steps: %q", got)
	}
	// Many steps share lines, and the peak is not lost.
	live, labels := make([]int64, 1000), make([]string, 1000)
	for i := range live {
		live[i], labels[i] = int64(i%7), fmt.Sprint("step ", i)
	}
	live[777] = 100
	lines := strings.Split(strings.TrimSpace(chart(live, labels)), "\n")
	if len(lines) != chartRows {
		t.Errorf("%d lines, expected %d", len(lines), chartRows)
	}
	if text := strings.Join(lines, "\n"); strings.Count(text, "<- peak") != 1 || !strings.Contains(text, "step 777  <- peak") {
		t.Errorf("no peak at step 777:\n%s", text)
	}
}

func TestBytesText(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 20 << 20: "20.0 MiB", 140 << 30: "140.0 GiB", 3 << 40: "3.0 TiB", math.MaxInt64: "8388608.0 TiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d is %s, expected %s", n, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{"1 kernel": plural(1, "kernel"), "2 kernels": plural(2, "kernel"), "0 entries": plural(0, "entry"), "1 entry": plural(1, "entry")} {
		if got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
}

func TestClip(t *testing.T) {
	if got := clip("größer", 4); got != "grö…" {
		t.Error(got)
	}
	if got := clip("kurz", 4); got != "kurz" {
		t.Error(got)
	}
}

func TestWrap(t *testing.T) {
	if diff := cmp.Diff("one two\nthree\nextraordinary\nx", wrap("one two three  extraordinary\nx", 9)); diff != "" {
		t.Error(diff)
	}
}
