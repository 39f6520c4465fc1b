package main

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	tests := []struct {
		name, events, want string
	}{
		{
			name: "a passing package is one line",
			events: `{"Action":"run","Package":"weft/ir","Test":"TestA"}
{"Action":"output","Package":"weft/ir","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"weft/ir","Test":"TestA","Output":"--- PASS: TestA (0.00s)\n"}
{"Action":"pass","Package":"weft/ir","Test":"TestA"}
{"Action":"output","Package":"weft/ir","Output":"PASS\n"}
{"Action":"output","Package":"weft/ir","Output":"ok  \tweft/ir\t0.01s\n"}
{"Action":"pass","Package":"weft/ir"}
`,
			want: "ok  \tweft/ir\t0.01s\ntests: 1 passed, 0 failed, 0 skipped\n",
		},
		{
			name: "a failing test shows its output",
			events: `{"Action":"output","Package":"weft/ir","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"weft/ir","Test":"TestA","Output":"    a_test.go:7: got 1\n"}
{"Action":"output","Package":"weft/ir","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}
{"Action":"fail","Package":"weft/ir","Test":"TestA"}
{"Action":"output","Package":"weft/ir","Output":"FAIL\tweft/ir\t0.01s\n"}
{"Action":"fail","Package":"weft/ir"}
`,
			want: "    a_test.go:7: got 1\n--- FAIL: TestA (0.00s)\nFAIL\tweft/ir\t0.01s\ntests: 0 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "skips are listed by reason",
			events: `{"Action":"output","Package":"weft/cuda","Test":"TestA","Output":"    a_test.go:7: no CUDA device\n"}
{"Action":"output","Package":"weft/cuda","Test":"TestA","Output":"--- SKIP: TestA (0.00s)\n"}
{"Action":"skip","Package":"weft/cuda","Test":"TestA"}
{"Action":"skip","Package":"weft/empty"}
`,
			want: "skipped 1: no CUDA device\n    weft/cuda TestA\ntests: 0 passed, 0 failed, 1 skipped\n",
		},
		{
			name: "a crash fails the tests that it leaves open",
			events: `{"Action":"output","Package":"weft/ir","Test":"TestA","Output":"panic: oh\n"}
{"Action":"output","Package":"weft/ir","Output":"FAIL\tweft/ir\t0.01s\n"}
{"Action":"fail","Package":"weft/ir"}
`,
			want: "FAIL\tweft/ir\t0.01s\npanic: oh\ntests: 0 passed, 1 failed, 0 skipped\n",
		},
		{
			name:   "lines that are no events pass through",
			events: "# weft/ir\n{\"Action\":\"build-output\",\"ImportPath\":\"weft/ir\",\"Output\":\"ir/a.go:3: syntax error\\n\"}\n",
			want:   "# weft/ir\nir/a.go:3: syntax error\ntests: 0 passed, 0 failed, 0 skipped\n",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got strings.Builder
			s := newSummary(&got)
			if err := s.read(strings.NewReader(test.events)); err != nil {
				t.Fatal(err)
			}
			s.close()
			if got.String() != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got.String(), test.want)
			}
		})
	}
}
